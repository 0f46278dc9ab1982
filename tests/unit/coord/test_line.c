/*
 * The line of a counter against the same in 128 bits and in rational numbers, and periods against
 * the C library's calendar.
 */
#include "coord/line.h"
#include "coord/period.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

__extension__ typedef __int128 wide;

/* floor(burst - 1 + rate * (now - begins) / 1000), not above LINE_TOP. */
static int64_t wide_at(const struct line *l, int64_t now)
{
    if (now < l->begins_ms)
        return -1;
    wide v = ((wide)(l->burst - 1) * 1000 + (wide)l->rate * (now - l->begins_ms)) / 1000;
    return v > LINE_TOP ? LINE_TOP : (int64_t)v;
}

static int64_t wide_when(const struct line *l, int64_t index)
{
    if (index < l->burst)
        return l->begins_ms;
    wide above = (wide)(index - l->burst + 1) * 1000;
    wide t = l->begins_ms + (above + l->rate - 1) / l->rate;
    return t > LINE_TOP ? LINE_TOP : (int64_t)t;
}

/* Of any size, small ones as often as large ones. */
static int64_t any(struct seeded *s, int64_t max)
{
    int64_t bits = seeded_in(s, 0, 53);
    int64_t v = seeded_in(s, 0, (INT64_C(1) << bits) - (bits > 0));
    return v > max ? max : v;
}

static struct line any_line(struct seeded *s)
{
    int64_t rate = any(s, LINE_RATE_MAX), burst = any(s, LINE_TOP);
    return (struct line){
        .begins_ms = any(s, LINE_TOP),
        .rate = rate ? rate : 1,
        .burst = burst ? burst : 1,
    };
}

static void it_is_what_128_bits_say(void **state)
{
    (void)state;
    struct seeded s = seeded_of(7);
    for (size_t i = 0; i < 600000; i++) {
        struct line l = any_line(&s);
        int64_t now = l.begins_ms + any(&s, LINE_TOP - l.begins_ms), index = any(&s, LINE_TOP);
        assert_int_equal(line_at(&l, now), wide_at(&l, now));
        assert_int_equal(line_when(&l, index), wide_when(&l, index));
    }
}

/* A wait that is told is long enough, and not longer than need be. */
static void when_is_the_first_time(void **state)
{
    (void)state;
    struct seeded s = seeded_of(8);
    for (size_t i = 0; i < 200000; i++) {
        struct line l = any_line(&s);
        l.begins_ms = any(&s, INT64_C(1) << 42);
        int64_t index = any(&s, LINE_TOP), t = line_when(&l, index);
        if (t == LINE_TOP)
            continue;
        assert_true(line_at(&l, t) >= index);
        assert_true(t == l.begins_ms || line_at(&l, t - 1) < index);
    }
}

static void its_edges(void **state)
{
    (void)state;
    const struct line l = {.begins_ms = 5000, .rate = 3, .burst = 1000};
    assert_int_equal(line_at(&l, 4999), -1);
    assert_int_equal(line_at(&l, 5000), 999);
    assert_int_equal(line_at(&l, 5333), 999);
    assert_int_equal(line_at(&l, 5334), 1000);
    assert_int_equal(line_when(&l, 999), 5000);
    assert_int_equal(line_when(&l, 1000), 5334);
    const struct line steep = {.begins_ms = 0, .rate = LINE_RATE_MAX, .burst = LINE_TOP};
    assert_int_equal(line_at(&steep, LINE_TOP), LINE_TOP);
    assert_int_equal(line_when(&steep, LINE_TOP), 1);
    const struct line flat = {.begins_ms = 0, .rate = 1, .burst = 1};
    assert_int_equal(line_when(&flat, LINE_TOP), LINE_TOP);
}

/* ---- periods --------------------------------------------------------------------------------- */

/* The label of the calendar's own text, by its length. */
static const size_t lengths[PERIOD_RESETS] = {
    [PERIOD_HOUR] = 13,
    [PERIOD_DAY] = 10,
    [PERIOD_MONTH] = 7,
    [PERIOD_YEAR] = 4,
};

static void labels_are_the_calendar_s(void **state)
{
    (void)state;
    struct seeded s = seeded_of(9);
    for (size_t i = 0; i < 100000; i++) {
        enum period_reset r = (enum period_reset)seeded_in(&s, PERIOD_HOUR, PERIOD_YEAR);
        int offset = (int)seeded_in(&s, -PERIOD_OFFSET_MAX, PERIOD_OFFSET_MAX);
        int64_t local = seeded_in(&s, 0, INT64_C(253402300799999));
        int64_t ms = local - offset * INT64_C(60000);
        time_t t = (time_t)(local / 1000);
        struct tm tm;
        char label[PERIOD_LABEL_MAX], expected[32], before[PERIOD_LABEL_MAX];
        struct period p;
        assert_non_null(gmtime_r(&t, &tm));
        assert_true(strftime(expected, sizeof expected, "%Y-%m-%dT%H", &tm) > 0);
        expected[lengths[r]] = '\0';
        assert_true(period_label(r, offset, ms, label));
        assert_string_equal(label, expected);
        assert_true(period_find(r, offset, span_str(label), &p));
        assert_true(p.begins_ms <= ms && ms < p.ends_ms);
        assert_true(p.ends_ms - p.begins_ms <= period_longest_ms(r));
        assert_true(p.opens_ms < p.begins_ms || p.opens_ms == 0);
        /* the first and the last of it, and none other */
        assert_true(period_label(r, offset, p.begins_ms, before));
        assert_string_equal(before, label);
        assert_true(period_label(r, offset, p.ends_ms - 1, before));
        assert_string_equal(before, label);
        if (period_label(r, offset, p.begins_ms - 1, before))
            assert_true(strcmp(before, label) < 0);
        if (period_label(r, offset, p.ends_ms, before))
            assert_true(strcmp(before, label) > 0);
    }
}

static void what_is_no_label(void **state)
{
    (void)state;
    static const struct {
        enum period_reset reset;
        const char *label;
    } bad[] = {
        {PERIOD_DAY, "2026-02-29"},
        {PERIOD_DAY, "2026-13-01"},
        {PERIOD_DAY, "2026-00-10"},
        {PERIOD_DAY, "2026-01-00"},
        {PERIOD_DAY, "2026-1-1"},
        {PERIOD_DAY, "2026-01"},
        {PERIOD_DAY, "2026/01/01"},
        {PERIOD_DAY, "1969-12-31"},
        {PERIOD_DAY, ""},
        {PERIOD_HOUR, "2026-01-01T24"},
        {PERIOD_HOUR, "2026-01-01"},
        {PERIOD_MONTH, "2026-12-01"},
        {PERIOD_YEAR, "202"},
        {PERIOD_YEAR, "20266"},
        {PERIOD_NEVER, ""},
        {PERIOD_DAY, "2026-01-0x"},
        {PERIOD_HOUR, "2026-01-01 10"},
    };
    struct period p;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(period_find(bad[i].reset, 0, span_str(bad[i].label), &p));
    assert_true(period_find(PERIOD_DAY, 0, SPAN("2024-02-29"), &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_128_bits_say),
        cmocka_unit_test(when_is_the_first_time),
        cmocka_unit_test(its_edges),
        cmocka_unit_test(labels_are_the_calendar_s),
        cmocka_unit_test(what_is_no_label),
    };
    return cmocka_run_group_tests_name("coord/line", tests, NULL, NULL);
}
