#include "base/hex.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void digits(void **state)
{
    (void)state;
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
        const char *l = memchr(lower, c, 16), *u = memchr(upper, c, 16);
        int value = l ? (int)(l - lower) : u ? (int)(u - upper) : -1;
        assert_int_equal(hex_digit((char)c), value);
    }
}

static void percent(void **state)
{
    (void)state;
    static const struct {
        struct span in, out;
    } cases[] = {
        {SPAN(""), SPAN("")},
        {SPAN("plain+ "), SPAN("plain+ ")},
        {SPAN("%41%62c"), SPAN("Abc")},
        {SPAN("a%2Fb%2fc"), SPAN("a/b/c")},
        {SPAN("%00%ff"), SPAN("\0\xff")},
        {SPAN("%2541"), SPAN("%41")},
    };
    static const struct span bad[] = {SPAN("%"),   SPAN("a%"),  SPAN("%4"),
                                      SPAN("%4g"), SPAN("%g4"), SPAN("%41%4")};
    char mem[8];
    struct buf b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_init(&b, mem, sizeof mem);
        assert_true(hex_put_unescaped(&b, cases[i].in));
        assert_true(!b.failed && span_eq(buf_span(&b), cases[i].out));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buf_init(&b, mem, sizeof mem);
        assert_false(hex_put_unescaped(&b, bad[i]));
    }
}

static void percent_that_does_not_fit(void **state)
{
    (void)state;
    char mem[8];
    struct buf b;
    buf_init(&b, mem, 2);
    assert_true(hex_put_unescaped(&b, SPAN("%41%42")));
    assert_false(b.failed);
    buf_init(&b, mem, 2);
    assert_true(hex_put_unescaped(&b, SPAN("%41%42%43")));
    assert_true(b.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits),
        cmocka_unit_test(percent),
        cmocka_unit_test(percent_that_does_not_fit),
    };
    return cmocka_run_group_tests_name("base/hex", tests, NULL, NULL);
}
