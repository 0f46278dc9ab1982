#include "lease/templates.h"

#include "support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct templates all;
static char text[SEQ_TEXT_MAX];

static const struct template *found(const char *name, const char *template, int64_t subs)
{
    struct seq_definition d = {.start = 1, .increment = 1, .subs = subs};
    (void)snprintf(d.template, sizeof d.template, "%s", template);
    return templates_find(&all, name, &d, seq_definition_text(text, &d));
}

static int end(void **state)
{
    (void)state;
    templates_clear(&all);
    assert_null(all.first);
    return 0;
}

/* The loop reads them while others come. */
static void each_is_parsed_once_and_stays(void **state)
{
    (void)state;
    const struct template *a = found("a", "A@{seq,width=3}", 0);
    assert_non_null(a);
    assert_int_equal(template_last_number(a), 999);
    for (int i = 0; i < 50; i++) {
        char other[32];
        (void)snprintf(other, sizeof other, "B%02d-@{seq}", i);
        assert_non_null(found("a", other, 0));
    }
    assert_ptr_equal(found("a", "A@{seq,width=3}", 0), a);
    assert_int_equal(template_last_number(a), 999);
}

/* @{name} is another text, and @{sub} needs subs. */
static void it_is_of_one_name_and_definition(void **state)
{
    (void)state;
    const struct template *a = found("a", "@{name}-@{seq}", 0);
    assert_ptr_not_equal(found("b", "@{name}-@{seq}", 0), a);
    assert_ptr_not_equal(found("a", "@{name}-@{seq}", 3), a);
    assert_ptr_equal(found("a", "@{name}-@{seq}", 0), a);
    assert_null(found("a", "", 0));
}

static void what_cannot_be_is_said_once(void **state)
{
    (void)state;
    capture_begin();
    const struct template *a = found("a", "@{sub,width=3}-@{seq}", 0);
    const char *said = capture_end();
    bool is_said = strstr(said, "cannot be used") && strstr(said, "sequence=a");
    assert_null(a);
    assert_true(is_said);
    capture_begin();
    a = found("a", "@{sub,width=3}-@{seq}", 0);
    is_said = *capture_end();
    assert_true(!a && !is_said);
    assert_non_null(found("a", "@{sub,width=3}-@{seq}", 9));
}

#define TEST(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_is_parsed_once_and_stays),
        TEST(it_is_of_one_name_and_definition),
        TEST(what_cannot_be_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
