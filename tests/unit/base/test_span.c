#include "base/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const struct span none = {NULL, 0};

static void equality(void **state)
{
    (void)state;
    assert_true(span_eq(SPAN("get"), span_str("get")));
    assert_false(span_eq(SPAN("get"), SPAN("gets")));
    assert_false(span_eq(SPAN("get"), SPAN("gat")));
    assert_true(span_eq(SPAN("a\0b"), span_of("a\0b", 3)));
    assert_false(span_eq(SPAN("a\0b"), SPAN("a\0c")));
    assert_true(span_eq(none, SPAN("")));
    assert_true(span_eq(none, none));
}

static void case_is_folded_for_ascii_letters_alone(void **state)
{
    (void)state;
    assert_true(span_eq_nocase(SPAN("GeT"), SPAN("gEt")));
    assert_true(span_eq_nocase(SPAN("AZaz09"), SPAN("azAZ09")));
    assert_false(span_eq_nocase(SPAN("get"), SPAN("getx")));
    assert_false(span_eq_nocase(SPAN("@[`{"), SPAN("`{@[")));
    assert_false(span_eq_nocase(SPAN("\xc4"), SPAN("\xe4")));
    assert_true(span_eq_nocase(none, SPAN("")));
}

static void prefixes(void **state)
{
    (void)state;
    assert_true(span_starts(SPAN("id:orders"), SPAN("id:")));
    assert_true(span_starts(SPAN("id:"), SPAN("id:")));
    assert_false(span_starts(SPAN("id"), SPAN("id:")));
    assert_false(span_starts(SPAN("ID:orders"), SPAN("id:")));
    assert_true(span_starts(SPAN("x"), none));
    assert_true(span_starts(none, none));
    assert_false(span_starts(none, SPAN("i")));
}

static void skipping(void **state)
{
    (void)state;
    assert_true(span_eq(span_skip(SPAN("id:orders"), 3), SPAN("orders")));
    assert_int_equal(span_skip(SPAN("id"), 2).n, 0);
    assert_null(span_skip(none, 0).p);
}

static void cutting_walks_every_part(void **state)
{
    (void)state;
    static const struct {
        const char *text, *parts[4];
        size_t n;
    } cases[] = {
        {"a,b,", {"a", "b", ""}, 3}, {"", {""}, 1}, {"a", {"a"}, 1}, {",", {"", ""}, 2},
        {",,x", {"", "", "x"}, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span rest = span_str(cases[i].text);
        size_t n = 0;
        for (; rest.p; n++) {
            struct span part = span_cut(&rest, ',');
            assert_true(n < cases[i].n);
            assert_true(span_eq(part, span_str(cases[i].parts[n])));
        }
        assert_int_equal(n, cases[i].n);
        assert_int_equal(rest.n, 0);
    }
}

static void cutting_stays_inside(void **state)
{
    (void)state;
    struct span rest = span_of("ab,cd", 2);
    assert_true(span_eq(span_cut(&rest, ','), SPAN("ab")));
    assert_null(rest.p);
    rest = none;
    assert_int_equal(span_cut(&rest, ',').n, 0);
    assert_null(rest.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality),
        cmocka_unit_test(case_is_folded_for_ascii_letters_alone),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(skipping),
        cmocka_unit_test(cutting_walks_every_part),
        cmocka_unit_test(cutting_stays_inside),
    };
    return cmocka_run_group_tests_name("base/span", tests, NULL, NULL);
}
