#include "base/dec.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define UNTOUCHED 4242

static void u64_accepts(void **state)
{
    (void)state;
    static const struct {
        struct span text;
        uint64_t value;
    } cases[] = {
        {SPAN("0"), 0},
        {SPAN("007"), 7},
        {SPAN("1024"), 1024},
        {SPAN("18446744073709551615"), UINT64_MAX},
        {SPAN("000000000000000000000018446744073709551615"), UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v = UNTOUCHED;
        assert_true(dec_u64(cases[i].text, &v));
        assert_true(v == cases[i].value);
    }
}

static void u64_refuses(void **state)
{
    (void)state;
    static const struct span cases[] = {
        SPAN(""),      SPAN("-1"),
        SPAN("+1"),    SPAN(" 1"),
        SPAN("1 "),    SPAN("1a"),
        SPAN("0x10"),  SPAN("1.0"),
        SPAN("1\0"),   SPAN("\xb2"),
        SPAN("/"),     SPAN(":"),
        {NULL, 0},     SPAN("18446744073709551616"),
        SPAN("1e3"),   SPAN("18446744073709551620"),
        SPAN("1\r\n"), SPAN("99999999999999999999999"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v = UNTOUCHED;
        assert_false(dec_u64(cases[i], &v));
        assert_true(v == UNTOUCHED);
    }
}

static void u64_reads_no_further_than_its_span(void **state)
{
    (void)state;
    uint64_t v;
    assert_true(dec_u64(span_of("12345", 3), &v));
    assert_int_equal(v, 123);
}

static void i64_limits(void **state)
{
    (void)state;
    int64_t v = UNTOUCHED;
    assert_false(dec_i64(SPAN("9223372036854775808"), &v));
    assert_false(dec_i64(SPAN("-9223372036854775809"), &v));
    assert_false(dec_i64(SPAN("-"), &v));
    assert_false(dec_i64(SPAN("--1"), &v));
    assert_false(dec_i64(SPAN(""), &v));
    assert_true(v == UNTOUCHED);
    assert_true(dec_i64(SPAN("9223372036854775807"), &v) && v == INT64_MAX);
    assert_true(dec_i64(SPAN("-9223372036854775808"), &v) && v == INT64_MIN);
    assert_true(dec_i64(SPAN("-0"), &v) && v == 0);
    assert_true(dec_i64(SPAN("-007"), &v) && v == -7);
}

static void canonical_as_redis_reads(void **state)
{
    (void)state;
    static const struct span refused[] = {SPAN("01"), SPAN("-0"), SPAN("00"), SPAN("-01"),
                                          SPAN("-"),  SPAN(""),   SPAN("+1")};
    int64_t v = UNTOUCHED;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(dec_canonical_i64(refused[i], &v));
    assert_true(v == UNTOUCHED);
    assert_true(dec_canonical_i64(SPAN("0"), &v) && v == 0);
    assert_true(dec_canonical_i64(SPAN("-10"), &v) && v == -10);
    assert_true(dec_canonical_i64(SPAN("-9223372036854775808"), &v) && v == INT64_MIN);
}

static void assert_written_as_printf_does(uint64_t v)
{
    char expected[32], found[DEC_U64_MAX + 2];
    memset(found, '#', sizeof found);
    int n = snprintf(expected, sizeof expected, "%" PRIu64, v);
    assert_int_equal(dec_put_u64(found, v), n);
    assert_memory_equal(found, expected, (size_t)n);
    assert_int_equal(found[n], '#');
}

static void put_writes_every_length(void **state)
{
    (void)state;
    assert_written_as_printf_does(0);
    assert_written_as_printf_does(UINT64_MAX);
    for (uint64_t v = 0; v < 20000; v++)
        assert_written_as_printf_does(v);
    for (uint64_t i = 1; i < 20000; i++) /* odd multiples scatter over all digits */
        assert_written_as_printf_does((i * UINT64_C(0x9E3779B97F4A7C15)) >> (i % 64));
    for (uint64_t power = 10; power < UINT64_MAX / 10; power *= 10) {
        assert_written_as_printf_does(power - 1);
        assert_written_as_printf_does(power);
        assert_written_as_printf_does(power + 1);
    }
}

static void eight_digits_have_leading_zeros(void **state)
{
    (void)state;
    char expected[16], found[9] = "########";
    for (uint32_t v = 0; v < 100000000; v += v % 1000 ? 1 : 9973) {
        (void)snprintf(expected, sizeof expected, "%08" PRIu32, v);
        dec_put_eight(found, v);
        assert_string_equal(found, expected);
    }
    dec_put_eight(found, 99999999);
    assert_string_equal(found, "99999999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u64_accepts),
        cmocka_unit_test(u64_refuses),
        cmocka_unit_test(u64_reads_no_further_than_its_span),
        cmocka_unit_test(i64_limits),
        cmocka_unit_test(canonical_as_redis_reads),
        cmocka_unit_test(put_writes_every_length),
        cmocka_unit_test(eight_digits_have_leading_zeros),
    };
    return cmocka_run_group_tests_name("base/dec", tests, NULL, NULL);
}
