#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void bounds_rise_from_1us_to_2s(void **state)
{
    (void)state;
    assert_int_equal(histogram_bounds_us[0], 1);
    assert_int_equal(histogram_bounds_us[HISTOGRAM_BUCKETS - 1], 2000000);
    for (size_t i = 1; i < HISTOGRAM_BUCKETS; i++)
        assert_true(histogram_bounds_us[i] > histogram_bounds_us[i - 1]);
}

static void a_bound_belongs_to_its_bucket(void **state)
{
    (void)state;
    struct histogram h = {0};
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        histogram_add(&h, histogram_bounds_us[i], i + 1);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        assert_int_equal(h.count[i], i + 1);
    assert_int_equal(h.count[HISTOGRAM_BUCKETS], 0);
    histogram_add(&h, histogram_bounds_us[4] + 1, 1);
    assert_int_equal(h.count[5], 7);
}

static void extremes(void **state)
{
    (void)state;
    struct histogram h = {0};
    histogram_add(&h, 0, 1);
    histogram_add(&h, -5, 1);
    histogram_add(&h, INT64_MIN, 1);
    assert_int_equal(h.count[0], 3);
    assert_int_equal(h.sum_us, 0);
    histogram_add(&h, 2000001, 1);
    histogram_add(&h, INT64_MAX, 1);
    assert_int_equal(h.count[HISTOGRAM_BUCKETS], 2);
    assert_true(h.sum_us == (uint64_t)INT64_MAX + 2000001);
}

static void sum_and_total_count_every_observation(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_int_equal(histogram_total(&h), 0);
    histogram_add(&h, 7, 3);
    histogram_add(&h, 3000000, 2);
    histogram_add(&h, 9, 0);
    assert_int_equal(histogram_total(&h), 5);
    assert_int_equal(h.sum_us, 3 * 7 + 2 * 3000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_rise_from_1us_to_2s),
        cmocka_unit_test(a_bound_belongs_to_its_bucket),
        cmocka_unit_test(extremes),
        cmocka_unit_test(sum_and_total_count_every_observation),
    };
    return cmocka_run_group_tests_name("base/histogram", tests, NULL, NULL);
}
