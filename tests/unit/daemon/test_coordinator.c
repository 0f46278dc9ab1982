/* What is said of a configuration whose coordinator and upstream are one, or whose
 * coordinator is sidflake. */
#include "daemon/coordinator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Clients without a login write where the pool is. */
static void pool_in_reach(void **state)
{
    static const struct {
        const char *upstream, *url, *more;
        bool warned;
    } cases[] = {
        {"tcp://10.0.0.1:6379", "redis://10.0.0.1:6379/0", "", true},
        {"tcp://10.0.0.1:6379", "redis://u:p%40x@10.0.0.1", "", true},
        {"tcp://[::2]:6379", "redis://[::2]/3", "", true},
        {"tcp://localhost:7000", "redis://127.0.0.1:7000/1", "", true},
        {"unix:///run/r.sock", "redis+unix:///run/r.sock?db=1", "", true},
        {"unix:///run/r.sock", "redis+unix://u:p@/run/r.sock", "", true},
        {"tcp://10.0.0.1:6379", "redis://10.0.0.1:6379/0",
         "auth: {mode: accept_any}\nlisten: {redis: [\"tcp://127.0.0.1:1?auth=off\"]}\n", true},
        {"tcp://10.0.0.1:6379", "redis://10.0.0.1:6380/0", "", false},
        {"tcp://10.0.0.2:6379", "redis://10.0.0.1/0", "", false},
        {"unix:///run/r.sock", "redis+unix:///run/s.sock", "", false},
        {"tcp://10.0.0.1:6379", "sqlite:///run/pool.db", "", false},
        {"tcp://10.0.0.1:6379", "redis+sentinel://10.0.0.1:6379/m", "", false},
        {"tcp://10.0.0.1:6379", "redis://10.0.0.1:6379/0", "listen: {redis: []}\n", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "upstream: {redis: \"%s\"}\ncoordinator: {url: \"%s\"}\n%s",
                       cases[i].upstream, cases[i].url, cases[i].more);
        struct conf c;
        struct err e;
        if (conf_load_text(&c, "f", span_str(yaml), NULL, 0, NULL, NULL, &e))
            fail_msg("%s%s", yaml, e.text);
        bool warned =
            c.warnings.n == 1 && strstr(c.warnings.item[0], "the coordinator's Redis, too");
        if (warned != cases[i].warned || c.warnings.n > 1)
            fail_msg("%s: %zu warnings", yaml, c.warnings.n);
        conf_clear(&c);
    }
}

/* The coordinator of which is sidflake itself. */
static void pool_at_home(void **state)
{
    static const struct {
        const char *url, *listen;
        bool refused;
    } cases[] = {
        {"redis://127.0.0.1:6380/0", "tcp://127.0.0.1:6380", true},
        {"redis://u:secret@localhost:6380", "tcp://127.0.0.1:6380", true},
        {"redis://127.0.0.1:6380/0", "tcp://0.0.0.0:6380", true},
        {"redis+unix:///run/r.sock", "unix:///run/r.sock", true},
        {"redis://127.0.0.9:6380", "tcp://0.0.0.0:6380", true},
        {"redis://127.0.0.1:6380", "tcp://[::]:6380", false},
        {"redis://10.0.0.1:6380/0", "tcp://0.0.0.0:6380", false},
        {"redis://127.0.0.1:6379/0", "tcp://127.0.0.1:6380", false},
        {"sqlite:///run/r.sock", "unix:///run/r.sock", false},
        {"redis+sentinel://127.0.0.1:6380/m", "tcp://127.0.0.1:6380", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "coordinator: {url: \"%s\"}\nlisten: {redis: [\"%s\"], "
                       "allow_unprotected: true}\n",
                       cases[i].url, cases[i].listen);
        struct conf c;
        struct err e;
        enum err_code r = conf_load_text(&c, "f", span_str(yaml), NULL, 0, NULL, NULL, &e);
        if ((r == ERR_INVALID) != cases[i].refused)
            fail_msg("%s%s", yaml, r ? e.text : "taken");
        if (r && (!strstr(e.text, "f:1:20: expected the address of another") ||
                  !strstr(e.text, "see listen.redis") || strstr(e.text, "secret")))
            fail_msg("%s", e.text);
        if (!r)
            conf_clear(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_in_reach),
        cmocka_unit_test(pool_at_home),
    };
    conf_judges.is_coordinator = coordinator_is_there;
    conf_judges.is_own_coordinator = coordinator_is_here;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
