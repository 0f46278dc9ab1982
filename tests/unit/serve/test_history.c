#include "serve/watch/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S(n) ((n)*INT64_C(1000000))

static struct history h;

static int set_up(void **state)
{
    (void)state;
    memset(&h, 0, sizeof h);
    history_init(&h, S(100));
    return 0;
}

static void due(void **state)
{
    (void)state;
    struct history_totals t = {0};
    assert_false(history_due(&h, S(100)));
    assert_false(history_due(&h, S(115) - 1));
    assert_true(history_due(&h, S(115)));
    history_take(&h, S(130), &t);
    assert_false(history_due(&h, S(144)));
    assert_true(history_due(&h, S(145)));
}

static void differences(void **state)
{
    (void)state;
    struct history_totals t = {
        .issued = 1000, .failed = 2, .exhausted = 3, .rollbacks = 4, .rotations = 5};
    histogram_add(&t.duration, 15, 100);
    history_take(&h, S(120), &t);
    t.issued += 7;
    t.rollbacks++;
    histogram_add(&t.duration, 900, 10);
    history_take(&h, S(140), &t);
    const struct history_sample *s = history_get(&h, 1, S(140), HISTORY_SPAN_US);
    assert_int_equal(s->issued, 1000);
    assert_int_equal(s->length_us, S(20));
    assert_int_equal(s->end_us, S(120));
    assert_int_equal(s->rotations, 5);
    assert_int_equal(s->percentile_ns[HISTORY_P50], 15000);
    s = history_get(&h, 0, S(140), HISTORY_SPAN_US);
    assert_int_equal(s->issued, 7);
    assert_int_equal(s->failed + s->exhausted + s->rotations, 0);
    assert_int_equal(s->rollbacks, 1);
    assert_int_equal(s->percentile_ns[HISTORY_P50], 750000); /* of these ten alone */
    struct history_sample now;
    t.issued += 3;
    history_since(&h, S(141), &t, &now);
    assert_int_equal(now.issued, 3);
    assert_int_equal(now.length_us, S(1));
    assert_int_equal(now.percentile_ns[HISTORY_P999], 0);
    assert_null(history_get(&h, 2, S(140), HISTORY_SPAN_US));
}

/* Nor does a time that stands still. */
static void nothing_goes_back(void **state)
{
    (void)state;
    struct history_totals t = {.issued = 50, .failed = 9};
    struct history_sample s;
    histogram_add(&t.duration, 15, 100);
    history_take(&h, S(120), &t);
    t = (struct history_totals){.issued = 50, .rollbacks = UINT64_MAX};
    history_since(&h, S(120), &t, &s);
    assert_int_equal(s.issued + s.failed, 0);
    assert_int_equal(s.length_us, 0);
    assert_int_equal(s.rollbacks, UINT32_MAX);
    assert_int_equal(s.percentile_ns[HISTORY_P50], 0);
}

static void an_hour(void **state)
{
    (void)state;
    struct history_totals t = {0};
    int64_t now = S(100);
    for (int i = 0; i < 3 * HISTORY_MAX; i++) {
        now += HISTORY_EVERY_US;
        t.issued++;
        history_take(&h, now, &t);
    }
    size_t n = 0;
    while (history_get(&h, n, now, HISTORY_SPAN_US))
        n++;
    assert_int_equal(n, HISTORY_MAX);
    assert_null(history_get(&h, 0, now + HISTORY_SPAN_US, HISTORY_SPAN_US));
    const struct history_sample *oldest = history_get(&h, n - 1, now, HISTORY_SPAN_US);
    assert_true(oldest->end_us - oldest->length_us <= now - HISTORY_SPAN_US);
}

static void quantiles(void **state)
{
    (void)state;
    struct histogram d = {.sum_us = 0};
    assert_int_equal(history_quantile_ns(&d, 0.5), 0);
    histogram_add(&d, 7, 50);
    histogram_add(&d, 70, 50);
    assert_int_equal(history_quantile_ns(&d, 0.25), 7500);
    assert_int_equal(history_quantile_ns(&d, 0.5), 10000);
    assert_int_equal(history_quantile_ns(&d, 0.75), 75000);
    assert_int_equal(history_quantile_ns(&d, 1), 100000);
    histogram_add(&d, 5000000, 1000);
    assert_int_equal(history_quantile_ns(&d, 0.99), 2000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(due, set_up),
        cmocka_unit_test_setup(differences, set_up),
        cmocka_unit_test_setup(nothing_goes_back, set_up),
        cmocka_unit_test_setup(an_hour, set_up),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
