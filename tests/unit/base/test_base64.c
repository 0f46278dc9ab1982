#include "base/base64.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct buf b;
static char mem[64];

static bool decodes(struct span s)
{
    buf_init(&b, mem, sizeof mem);
    return base64_put_decoded(&b, s);
}

/* RFC 4648, 10, and both ends of the alphabet. */
static void what_an_encoder_writes(void **state)
{
    (void)state;
    static const struct {
        struct span in, out;
    } cases[] = {
        {SPAN(""), SPAN("")},
        {SPAN("Zg=="), SPAN("f")},
        {SPAN("Zm8="), SPAN("fo")},
        {SPAN("Zm9v"), SPAN("foo")},
        {SPAN("Zm9vYg=="), SPAN("foob")},
        {SPAN("Zm9vYmE="), SPAN("fooba")},
        {SPAN("Zm9vYmFy"), SPAN("foobar")},
        {SPAN("AAAA"), SPAN("\0\0\0")},
        {SPAN("+/+/"), SPAN("\xfb\xff\xbf")},
        {SPAN("////"), SPAN("\xff\xff\xff")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(decodes(cases[i].in));
        assert_true(span_eq(buf_span(&b), cases[i].out));
        assert_true(base64_is_canonical(cases[i].in));
        buf_init(&b, mem, sizeof mem);
        base64_put_encoded(&b, cases[i].out);
        assert_true(span_eq(buf_span(&b), cases[i].in));
    }
}

static void what_others_write(void **state)
{
    (void)state;
    static const struct {
        struct span in, out;
    } cases[] = {
        {SPAN("Zg"), SPAN("f")},         {SPAN("Zg="), SPAN("f")},     {SPAN("Zg==="), SPAN("f")},
        {SPAN("Zh=="), SPAN("f")},       {SPAN("Zm9="), SPAN("fo")},   {SPAN("Zm8"), SPAN("fo")},
        {SPAN("Zm9v===="), SPAN("foo")}, {SPAN("Zm9vY"), SPAN("foo")}, {SPAN("===="), SPAN("")},
        {SPAN("Zm9vY==="), SPAN("foo")}, {SPAN("="), SPAN("")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(decodes(cases[i].in));
        assert_true(span_eq(buf_span(&b), cases[i].out));
        assert_false(base64_is_canonical(cases[i].in));
    }
}

static void other_characters_are_refused(void **state)
{
    (void)state;
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
        char text[4] = {'A', (char)c, 'A', 'A'};
        assert_true(decodes(span_of(text, 4)) == (memchr(alphabet, c, 64) != NULL));
    }
    assert_false(decodes(SPAN("Zg==Zg==")));
}

static void what_does_not_fit_fails(void **state)
{
    (void)state;
    buf_init(&b, mem, 3);
    assert_true(base64_put_decoded(&b, SPAN("Zm9v")));
    assert_false(base64_put_decoded(&b, SPAN("Zg==")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_encoder_writes),
        cmocka_unit_test(what_others_write),
        cmocka_unit_test(other_characters_are_refused),
        cmocka_unit_test(what_does_not_fit_fails),
    };
    return cmocka_run_group_tests_name("base/base64", tests, NULL, NULL);
}
