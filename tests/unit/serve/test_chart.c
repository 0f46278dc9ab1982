#include "serve/watch/chart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S(n) ((n)*INT64_C(1000000))

static struct history h;
static struct history_totals totals;
static struct history_sample live;
static struct chart c = {&h, &live};
static char text[8192];

static int set_up(void **state)
{
    (void)state;
    memset(&h, 0, sizeof h);
    memset(&totals, 0, sizeof totals);
    history_init(&h, S(10000));
    return 0;
}

/* until: seconds after the start. */
static void take(int64_t until, uint64_t issued, uint64_t rollbacks)
{
    totals.issued += issued;
    totals.rollbacks += rollbacks;
    history_take(&h, S(10000 + until), &totals);
}

static void now(int64_t at, uint64_t issued)
{
    totals.issued += issued;
    history_since(&h, S(10000 + at), &totals, &live);
}

static const char *line(chart_value *value, struct chart_scale s)
{
    struct buf b;
    memset(text, 0, sizeof text);
    buf_init(&b, text, sizeof text - 1);
    chart_line(&c, value, &s, &b);
    assert_false(b.failed);
    return text;
}

static const char *area(chart_value *value, struct chart_scale s, bool bars)
{
    struct buf b;
    memset(text, 0, sizeof text);
    buf_init(&b, text, sizeof text - 1);
    chart_area(&c, value, &s, bars, &b);
    assert_false(b.failed);
    return text;
}

static const struct chart_scale to_ten = {.lo = 0, .hi = 10};

static void lines(void **state)
{
    (void)state;
    take(20, 200, 0); /* 10 a second */
    take(40, 0, 0);
    now(50, 50); /* 5 a second, for 10 s */
    assert_string_equal(line(chart_rate, to_ten), "M3600 500H3590V1000H3570V0H3550");
    assert_string_equal(
        area(chart_rate, to_ten, false),
        "M3600 1000V500H3590V1000ZM3590 1000V1000H3570V1000ZM3570 1000V0H3550V1000Z");
}

static void gaps_where_there_were_no_requests(void **state)
{
    (void)state;
    const struct chart_scale s = {.lo = 1e3, .hi = 1e5, .log = true};
    histogram_add(&totals.duration, 10, 100);
    take(20, 0, 0);
    take(40, 0, 0);
    histogram_add(&totals.duration, 100, 100);
    now(50, 0);
    /* 7.5 us lies in the middle of the bucket from 5 to 10, and 75 likewise */
    assert_string_equal(line(chart_p50, s), "M3600 75H3590M3570 575H3550");
    double least, most;
    assert_true(chart_range(&c, chart_p50, &least, &most));
    assert_true(least == 7500 && most == 75000);
}

static void bars_only_where_something_was(void **state)
{
    (void)state;
    take(20, 0, 3);
    take(40, 0, 0);
    take(60, 0, 10);
    now(60, 0);
    assert_string_equal(area(chart_rollbacks, to_ten, true),
                        "M3600 1000V0H3580V1000ZM3560 1000V700H3540V1000Z");
    assert_string_equal(area(chart_rotations, to_ten, true), "");
}

static void older_than_an_hour_is_cut(void **state)
{
    (void)state;
    take(4000, 400000, 0);
    now(7000, 0);
    assert_string_equal(line(chart_rate, (struct chart_scale){.lo = 0, .hi = 200}),
                        "M3600 1000H600V500H0");
    now(7600, 0);
    assert_string_equal(line(chart_rate, to_ten), "M3600 1000H0");
}

static void no_time_has_passed(void **state)
{
    (void)state;
    double least, most;
    now(0, 5);
    assert_string_equal(line(chart_rate, to_ten), "");
    assert_false(chart_range(&c, chart_rate, &least, &most));
    assert_true(least == 0 && most == 0);
}

static void scales(void **state)
{
    (void)state;
    assert_true(chart_scale_linear(0, 1).hi == 1);
    assert_true(chart_scale_linear(1.5, 1).hi == 2);
    assert_true(chart_scale_linear(5, 1).hi == 5);
    assert_true(chart_scale_linear(51, 1).hi == 100);
    assert_true(chart_scale_linear(1.8e7, 1).hi == 2e7);
    struct chart_scale s = chart_scale_log(1200, 8000);
    assert_true(s.lo == 1e3 && s.hi == 1e5);
    assert_true(chart_scale_log(1000, 8000).lo == 1e3);
    s = chart_scale_log(999, 2e9);
    assert_true(s.lo == 100 && s.hi == 1e10);
    assert_int_equal(chart_y(&s, 100), 1000);
    assert_int_equal(chart_y(&s, 1e6), 500);
    assert_int_equal(chart_y(&s, 1e10), 0);
    assert_int_equal(chart_y(&s, 1e300), 0);
    assert_int_equal(chart_y(&s, 1), 1000);
    assert_int_equal(chart_y(&to_ten, 2.5), 750);
    assert_int_equal(chart_y(&to_ten, 11), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lines, set_up),
        cmocka_unit_test_setup(gaps_where_there_were_no_requests, set_up),
        cmocka_unit_test_setup(bars_only_where_something_was, set_up),
        cmocka_unit_test_setup(older_than_an_hour_is_cut, set_up),
        cmocka_unit_test_setup(no_time_has_passed, set_up),
        cmocka_unit_test(scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
