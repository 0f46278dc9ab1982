#include "base/timefmt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#define UNTOUCHED 4242
#define YEAR_0000 INT64_C(-62167219200000)
#define YEAR_9999 INT64_C(253402300799999)

static const struct {
    int64_t ms;
    const char *text;
} both_ways[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {-1, "1969-12-31T23:59:59.999Z"},
    {1767225600000, "2026-01-01T00:00:00.000Z"},
    {951782400000, "2000-02-29T00:00:00.000Z"},
    {951868799999, "2000-02-29T23:59:59.999Z"},
    {951868800000, "2000-03-01T00:00:00.000Z"},
    {1709164800000, "2024-02-29T00:00:00.000Z"},
    {-2203891200000, "1900-03-01T00:00:00.000Z"},
    {-2203891200001, "1900-02-28T23:59:59.999Z"},
    {4107542400000, "2100-03-01T00:00:00.000Z"},
    {YEAR_0000, "0000-01-01T00:00:00.000Z"},
    {YEAR_9999, "9999-12-31T23:59:59.999Z"},
};

static void times_go_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++) {
        char text[TIMEFMT_MAX];
        int64_t ms = UNTOUCHED;
        assert_string_equal(timefmt_rfc3339(text, both_ways[i].ms), both_ways[i].text);
        assert_true(timefmt_parse_rfc3339(span_str(both_ways[i].text), &ms));
        assert_int_equal(ms, both_ways[i].ms);
    }
}

static void times_out_of_range_are_held_to_it(void **state)
{
    (void)state;
    char text[TIMEFMT_MAX];
    assert_string_equal(timefmt_rfc3339(text, INT64_MIN), "0000-01-01T00:00:00.000Z");
    assert_string_equal(timefmt_rfc3339(text, YEAR_9999 + 1), "9999-12-31T23:59:59.999Z");
    assert_string_equal(timefmt_rfc3339(text, INT64_MAX), "9999-12-31T23:59:59.999Z");
}

/* Every day of 801 years against the C library, and back. */
static void every_day_agrees_with_libc(void **state)
{
    (void)state;
    for (int64_t day = -135140; day < 157424; day++) { /* 1600-01-01 .. 2401-01-06 */
        char found[TIMEFMT_MAX], expected[TIMEFMT_MAX];
        time_t seconds = (time_t)(day * 86400 + 3661);
        struct tm tm;
        int64_t ms;
        assert_non_null(gmtime_r(&seconds, &tm));
        assert_int_not_equal(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000Z", &tm), 0);
        assert_string_equal(timefmt_rfc3339(found, seconds * 1000), expected);
        assert_true(timefmt_parse_rfc3339(span_str(found), &ms) && ms == seconds * 1000);
    }
}

static void rfc3339_accepts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"2026-01-01", 1767225600000},
        {"2026-01-01T00:00:00Z", 1767225600000},
        {"2026-01-01t00:00:00z", 1767225600000},
        {"2026-01-01 00:00:00Z", 1767225600000},
        {"2026-01-01T01:30:00.250+01:30", 1767225600250},
        {"2025-12-31T22:00:00-02:00", 1767225600000},
        {"2026-01-01T00:00:00-00:00", 1767225600000},
        {"2026-01-01T00:00:00.5Z", 1767225600500},
        {"2026-01-01T00:00:00.05Z", 1767225600050},
        {"2026-01-01T00:00:00.1239Z", 1767225600123},
        {"2026-01-01T00:00:00.123456789Z", 1767225600123},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"2016-12-31T23:59:60.5Z", 1483228800500},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = UNTOUCHED;
        assert_true(timefmt_parse_rfc3339(span_str(cases[i].text), &ms));
        assert_int_equal(ms, cases[i].ms);
    }
}

static void rfc3339_refuses(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "2026",
        "2026-1-01",
        "26-01-01",
        "2026-00-01",
        "2026-13-01",
        "2026-01-00",
        "2026-01-32",
        "2026-04-31",
        "2026-02-29",
        "1900-02-29",
        "2100-02-29",
        "2026/01/01",
        "-2026-01-01",
        "+2026-01-01",
        " 2026-01-01",
        "2026-01-01 ",
        "2026-01-01T",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01_00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z",
        "2026-01-01T00:00:00,5Z",
        "2026-01-01T00:00:00ZZ",
        "2026-01-01T00:00:00Z ",
        "2026-01-01T00:00:00+1:00",
        "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+01:60",
        "2026-01-01T00:00:-1Z",
    };
    int64_t ms = UNTOUCHED;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (timefmt_parse_rfc3339(span_str(cases[i]), &ms))
            fail_msg("\"%s\" was read as %lld", cases[i], (long long)ms);
    assert_false(timefmt_parse_rfc3339(span_of(NULL, 0), &ms));
    assert_int_equal(ms, UNTOUCHED);
}

/* No prefix of a full time but the bare date is a time: a cut text is never misread. */
static void rfc3339_reads_no_further_than_its_span(void **state)
{
    (void)state;
    static const char text[] = "2026-01-01T01:30:00.25+01:30";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        int64_t ms;
        assert_int_equal(timefmt_parse_rfc3339(span_of(text, n), &ms), n == 10);
    }
}

static void durations_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"00", 0},
        {"1us", 1},
        {"15ms", 15000},
        {"020s", 20000000},
        {"90m", INT64_C(5400000000)},
        {"1h", INT64_C(3600000000)},
        {"2d", INT64_C(172800000000)},
        {"9223372036854775807us", INT64_MAX},
        {"106751991d", INT64_C(106751991) * 86400000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us = UNTOUCHED;
        assert_true(timefmt_parse_duration(span_str(cases[i].text), &us));
        assert_int_equal(us, cases[i].us);
    }
}

static void durations_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",      "s",   "1",    "-1s",        "+1s",
        " 1s",   "1s ", "1 s",  "1S",         "1.5s",
        "1h30m", "1w",  "1min", "106751992d", "9223372036854775808us",
    };
    int64_t us = UNTOUCHED;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (timefmt_parse_duration(span_str(cases[i]), &us))
            fail_msg("\"%s\" was read as %lld us", cases[i], (long long)us);
    assert_false(timefmt_parse_duration(span_of(NULL, 0), &us));
    assert_int_equal(us, UNTOUCHED);
}

static void durations_are_written_shortest(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "1us"},
        {1500, "1500us"},
        {15000, "15ms"},
        {1500000, "1500ms"},
        {20000000, "20s"},
        {90000000, "90s"},
        {INT64_C(5400000000), "90m"},
        {INT64_C(3600000000), "1h"},
        {INT64_C(172800000000), "2d"},
        {INT64_MAX, "9223372036854775807us"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TIMEFMT_MAX];
        int64_t back;
        assert_string_equal(timefmt_duration(text, cases[i].us), cases[i].text);
        assert_true(timefmt_parse_duration(span_str(text), &back) && back == cases[i].us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_go_both_ways),
        cmocka_unit_test(times_out_of_range_are_held_to_it),
        cmocka_unit_test(every_day_agrees_with_libc),
        cmocka_unit_test(rfc3339_accepts),
        cmocka_unit_test(rfc3339_refuses),
        cmocka_unit_test(rfc3339_reads_no_further_than_its_span),
        cmocka_unit_test(durations_accepted),
        cmocka_unit_test(durations_refused),
        cmocka_unit_test(durations_are_written_shortest),
    };
    return cmocka_run_group_tests_name("base/timefmt", tests, NULL, NULL);
}
