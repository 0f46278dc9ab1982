/* Who this sidecar says it is: a JSON object at the coordinator, whatever the host is named. */
#include "daemon/self.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

/* pod: POD_NAME, or NULL. told: whether it is a name. */
static void check(const char *pod, bool told)
{
    struct self s;
    char host[256] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_int_equal(pod ? setenv("POD_NAME", pod, 1) : unsetenv("POD_NAME"), 0);
    self_describe(&s);
    json_t *who = json_loads(s.who, 0, NULL);
    if (!who)
        fail_msg("expected JSON, found %s", s.who);
    assert_string_equal(json_string_value(json_object_get(who, "pod")), told ? pod : "");
    assert_int_equal(json_integer_value(json_object_get(who, "pid")), getpid());
    assert_string_equal(json_string_value(json_object_get(who, "version")), SIDFLAKE_VERSION);
    assert_string_equal(json_string_value(json_object_get(who, "host")), host);
    assert_string_equal(s.host, told ? pod : host);
    json_decref(who);
}

static void who_it_is(void **state)
{
    char most[128];
    (void)state;
    memset(most, 'x', sizeof most - 1);
    most[sizeof most - 1] = '\0';
    check(NULL, false);
    check("shop-7", true);
    check(most, true);
}

/* It would be two members, or none. */
static void what_is_no_name_is_left_out(void **state)
{
    static const char *const odd[] = {"a\"b", "a\\",   "a\nb",  "a\tb",
                                      "a\rb", "a\x1b", "a\x7f", "a\xff"};
    char longer[129];
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        check(odd[i], false);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    check(longer, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_it_is),
        cmocka_unit_test(what_is_no_name_is_left_out),
    };
    return cmocka_run_group_tests_name("daemon/self", tests, NULL, NULL);
}
