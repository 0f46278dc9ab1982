#include "ids/check_digit.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct check_digit of_kind(const char *name)
{
    struct check_digit c = {.a = 0};
    assert_true(check_kind_parse(span_str(name), &c.kind));
    assert_string_equal(check_kind_name(c.kind), name);
    if (c.kind == CHECK_LINEAR)
        c.a = 9, c.b = 31, c.c = 10;
    return c;
}

static void expect(const char *kind, const char *text, const char *digits)
{
    struct check_digit c = of_kind(kind);
    char out[CHECK_DIGIT_WIDTH + 1] = "";
    assert_int_equal(check_digit_width(&c), strlen(digits));
    check_digit_write(&c, span_str(text), out);
    assert_string_equal(out, digits);
}

static void published_numbers_have_their_digits(void **state)
{
    (void)state;
    expect("luhn", "7992739871", "3");
    expect("luhn", "49015420323751", "8"); /* an IMEI, of 3GPP TS 23.003 */
    expect("luhn", "411111111111111", "1");
    expect("gs1", "629104150021", "3"); /* GS1's own example of a GTIN-13 */
    expect("gs1", "400638133393", "1");
    expect("gs1", "37610425002123456", "9"); /* of an SSCC */
    expect("damm", "572", "4");
    expect("verhoeff", "236", "3");
    expect("verhoeff", "12345", "1");
    expect("verhoeff", "142857", "0");
    expect("mod11-2", "0794", "0");            /* of the standard */
    expect("mod11-2", "079", "X");             /* of the standard */
    expect("mod11-2", "000000021825009", "7"); /* ORCID */
    expect("mod11-2", "000000021694233", "X");
    expect("mod37-2", "G123489654321", "Y");          /* as ISBT 128 numbers donations */
    expect("mod97-10", "794", "44");                  /* of the standard */
    expect("mod97-10", "5493001KJTIIGC8Y1R", "12");   /* LEI */
    expect("mod97-10", "WEST12345698765432GB", "82"); /* IBAN, its country behind */
}

static void those_in_use_here(void **state)
{
    (void)state;
    expect("linear", "417", "2"); /* SN-417-2 */
    expect("linear", "0417", "2");
    expect("linear", "0", "0");
    expect("luhn", "0", "0");
}

static void what_it_is_not_over_is_passed_over(void **state)
{
    (void)state;
    expect("damm", "INV-5.7/2 ", "4");
    expect("luhn", "x7992-7398-71x", "3");
    expect("verhoeff", "2a36", "3");
    expect("gs1", "(00) 6291041 50021", "3");
    expect("mod11-2", "0000-0002-1694-233", "X");
    expect("mod37-2", "G1234 89 654321 -", "Y");
    expect("mod97-10", "WEST 1234 5698 7654 32GB", "82");
    expect("linear", "SN-417-", "2");
}

static void linear_has_as_many_digits_as_its_largest_value(void **state)
{
    (void)state;
    struct check_digit c = {CHECK_LINEAR, 1, 1000, 100};
    char out[CHECK_DIGIT_WIDTH];
    assert_int_equal(check_digit_width(&c), 2);
    check_digit_write(&c, SPAN("1203"), out);
    assert_memory_equal(out, "03", 2);
    c = (struct check_digit){CHECK_LINEAR, 1, 1, 1};
    assert_int_equal(check_digit_width(&c), 1);
    c = (struct check_digit){CHECK_LINEAR, 999999999, 1000000000, 1000000000};
    assert_int_equal(check_digit_width(&c), 9);
    check_digit_write(&c, SPAN("9007199254740991"), out); /* 9 × 10^24 is not cut on the way */
    assert_memory_equal(out, "745259009", 9);
}

/* As long as a template's text can be, which is more than any register has. */
static void a_long_text_is_cut_nowhere(void **state)
{
    (void)state;
    struct check_digit c = {CHECK_LINEAR, 1, 1000000000, 1000000000};
    char text[240], out[CHECK_DIGIT_WIDTH];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('0' + (i + 1) % 10);
    for (size_t n = 9; n <= sizeof text; n++) { /* its last nine digits */
        check_digit_write(&c, span_of(text, n), out);
        assert_memory_equal(out, text + n - 9, 9);
    }
    for (size_t n = 1; n <= sizeof text; n++) { /* digit by digit, as the standard has it */
        unsigned rest = 0;
        memset(text, 'Z', n);
        for (size_t i = 0; i < n; i++)
            rest = (rest * 100 + 35) % 97;
        c = of_kind("mod97-10");
        check_digit_write(&c, span_of(text, n), out);
        rest = (rest * 100 + (unsigned)(out[0] - '0') * 10 + (unsigned)(out[1] - '0')) % 97;
        assert_int_equal(rest, 1);
    }
}

/* Which of 20,000 slips in numbers of 12 digits show. */
static unsigned shows(const char *kind, bool swap)
{
    struct check_digit c = of_kind(kind);
    struct seeded rng = seeded_of(7);
    unsigned shown = 0;
    for (unsigned i = 0; i < 20000;) {
        char text[12], is[CHECK_DIGIT_WIDTH], was[CHECK_DIGIT_WIDTH];
        for (size_t k = 0; k < sizeof text; k++)
            text[k] = (char)('0' + seeded_in(&rng, 0, 9));
        check_digit_write(&c, span_of(text, sizeof text), was);
        size_t at = (size_t)seeded_in(&rng, 0, 10);
        char other = swap ? text[at + 1] : (char)('0' + seeded_in(&rng, 0, 9));
        if (other == text[at])
            continue;
        if (swap)
            text[at + 1] = text[at];
        text[at] = other;
        check_digit_write(&c, span_of(text, sizeof text), is);
        shown += memcmp(is, was, check_digit_width(&c)) != 0;
        i++;
    }
    return shown;
}

static void slips_show_as_the_table_says(void **state)
{
    (void)state;
    static const char *const all[] = {"damm", "verhoeff", "mod11-2", "mod37-2", "mod97-10"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(shows(all[i], false), 20000);
        assert_int_equal(shows(all[i], true), 20000);
    }
    assert_int_equal(shows("luhn", false), 20000);
    assert_in_range(shows("luhn", true), 19400, 19750); /* 88 of 90 */
    assert_int_equal(shows("gs1", false), 20000);
    assert_in_range(shows("gs1", true), 17500, 18100); /* 80 of 90 */
}

static void other_names_are_none(void **state)
{
    (void)state;
    enum check_kind k;
    assert_false(check_kind_parse(SPAN("Luhn"), &k));
    assert_false(check_kind_parse(SPAN(""), &k));
    assert_false(check_kind_parse(SPAN("mod11"), &k));
    assert_string_equal(check_kind_name(CHECK_KINDS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_numbers_have_their_digits),
        cmocka_unit_test(those_in_use_here),
        cmocka_unit_test(what_it_is_not_over_is_passed_over),
        cmocka_unit_test(linear_has_as_many_digits_as_its_largest_value),
        cmocka_unit_test(a_long_text_is_cut_nowhere),
        cmocka_unit_test(slips_show_as_the_table_says),
        cmocka_unit_test(other_names_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
