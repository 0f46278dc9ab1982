/* What is written by a stencil is what the template writes. */
#include "ids/template_stencil.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct template t;
static struct template_stencil stencil;
static const char days[][TEMPLATE_PERIOD_MAX] = {"2026-11-22", "2026-11-23"};

static void begin(const char *text, enum template_reset reset)
{
    struct template_frame f = {.name = SPAN("orders"),
                               .reset = reset,
                               .subs = true,
                               .first = 1,
                               .last = TEMPLATE_NUMBER_MAX};
    struct err e = {.text = ""};
    stencil = (struct template_stencil){.of = NULL};
    if (template_parse(&t, span_str(text), &f, &e))
        fail_msg("%s: %s", text, e.text);
}

static struct template_values values(const char *period, int64_t number)
{
    return (struct template_values){
        .number = number, .period = period, .sub = SPAN("acme"), .worker = 1, .args = SPAN("")};
}

static size_t write(const char *period, int64_t number, char *out)
{
    const struct template_values v = values(period, number);
    struct err e;
    size_t n = template_write(&t, &v, out, TEMPLATE_OUT_MAX, &e);
    assert_true(n > 0);
    return n;
}

/* As whoever writes does it: the stencil is made anew where it does not help. Returns how many had
 * their text by it. */
static unsigned helps(const char *text, enum template_reset reset, int64_t from, unsigned numbers)
{
    unsigned helped = 0;
    begin(text, reset);
    for (int64_t number = from; number < from + numbers; number++) {
        const char *period = reset ? days[number / 50 % 2] : "\0\0\0\0\0\0\0\0\0\0\0\0\0";
        char is[TEMPLATE_OUT_MAX], was[TEMPLATE_OUT_MAX];
        size_t n = write(period, number, was);
        size_t by = template_stencil_put(&stencil, &t, period, number, is);
        if (by == 0) {
            const struct template_values v = values(period, number);
            template_stencil_make(&stencil, &t, &v, span_of(was, n));
            continue;
        }
        helped++;
        assert_int_equal(by, n);
        assert_memory_equal(is, was, n);
    }
    return helped;
}

static void one_in_a_hundred_is_written_in_full(void **state)
{
    (void)state;
    static const char *const checks[] = {"luhn",    "gs1",     "damm",     "verhoeff",
                                         "mod11-2", "mod37-2", "mod97-10", "linear,9,31,10"};
    char text[100];
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        (void)snprintf(text, sizeof text, "N-4@{seq,width=6}-7@{check,%s}/8", checks[i]);
        assert_int_equal(helps(text, TEMPLATE_NEVER, 0, 1000), 990);
        (void)snprintf(text, sizeof text, "N-4@{seq,width=6}-7@{check,%s,of=seq}/8", checks[i]);
        assert_int_equal(helps(text, TEMPLATE_NEVER, 12300, 1000), 990);
    }
    assert_int_equal(helps("@{date,%Y%m%d}@{seq,width=5}", TEMPLATE_DAY, 0, 1000), 980);
    assert_int_equal(helps("SN-@{seq}", TEMPLATE_NEVER, 0, 1200), 1089); /* not of 0 to 99 */
}

static void what_changes_otherwise_has_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"@{seq,base=16}",
                                        "@{seq,width=1}",
                                        "@{sub}/@{seq,width=6}",
                                        "@{worker}.@{seq,width=6}",
                                        "@{ms}-@{seq,width=6}",
                                        "@{arg,a,width=1,default=x}@{seq,width=6}",
                                        "@{seq,width=6}@{check,damm}@{check,luhn}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(helps(texts[i], TEMPLATE_NEVER, 0, 9), 0);
    char text[100] = "@{seq,width=6}";
    memset(text + strlen(text), 'x', 43);
    assert_int_equal(helps(text, TEMPLATE_NEVER, 0, 9), 0); /* 49 bytes */
    assert_int_equal(helps("@{seq,width=2}", TEMPLATE_NEVER, 0, 100), 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_in_a_hundred_is_written_in_full),
        cmocka_unit_test(what_changes_otherwise_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
