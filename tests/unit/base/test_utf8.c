#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Text of the number, in as many bytes as asked, be they too many. */
static struct span written(char out[4], uint32_t rune, size_t bytes)
{
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i-- > 1; rune >>= 6)
        out[i] = (char)(0x80 | (rune & 0x3f));
    out[0] = (char)(leads[bytes] | rune);
    return span_of(out, bytes);
}

static size_t bytes_of(uint32_t rune)
{
    return rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
}

/* Every number that four bytes can hold, in every length that can hold it: the shortest alone is a
 * character, whole and not a byte less. */
static void each_character_has_one_form(void **state)
{
    static const uint32_t ends[] = {0, 0x80, 0x800, 0x10000, 0x200000};
    char text[4];
    (void)state;
    for (size_t bytes = 1; bytes <= 4; bytes++) {
        for (uint32_t rune = 0; rune < ends[bytes]; rune++) {
            struct span s = written(text, rune, bytes), cut = span_of(s.p, s.n - 1);
            bool is = bytes == bytes_of(rune) && rune <= 0x10ffff && rune >> 11 != 0x1b;
            uint32_t got = UINT32_MAX;
            if (cut.n > 0 && utf8_take(&cut, &got))
                fail_msg("U+%04X of %zu bytes, cut, was taken", rune, bytes);
            if (utf8_take(&s, &got) != is || s.n != (is ? 0 : bytes) ||
                got != (is ? rune : UINT32_MAX))
                fail_msg("U+%04X of %zu bytes: found U+%04X, %zu bytes left", rune, bytes, got,
                         s.n);
        }
    }
}

static void what_goes_on_wrongly_is_none(void **state)
{
    static const struct span none[] = {
        SPAN("\x80"),    SPAN("\xbf"),      SPAN("\xff"),      SPAN("\xf8\x88\x80\x80\x80"),
        SPAN("\xc3("),   SPAN("\xe2(\x82"), SPAN("\xe2\x82("), SPAN("\xf0\x9f\x98("),
        SPAN("\xc3\xc3")};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct span s = none[i];
        uint32_t rune;
        assert_false(utf8_take(&s, &rune));
        assert_ptr_equal(s.p, none[i].p);
        assert_int_equal(utf8_take_shown(&s), '?');
        assert_int_equal(s.n, none[i].n - 1);
    }
}

static void what_does_not_show(void **state)
{
    static const uint32_t hidden[] = {0,      0x1b,   '\n',   0x7f,   0x80,   0x9b,
                                      0x9f,   0xad,   0x61c,  0x200b, 0x200e, 0x2028,
                                      0x202e, 0x2066, 0xfeff, 0xfff9, 0xe0001};
    static const uint32_t shown[] = {' ', '~', 0xa0, 0xb5, 0x2026, 0x2588, 0x4e2d, 0xfffd, 0x1f600};
    char text[4];
    (void)state;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        struct span s = written(text, hidden[i], bytes_of(hidden[i]));
        assert_int_equal(utf8_take_shown(&s), '?');
        assert_int_equal(s.n, 0);
    }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct span s = written(text, shown[i], bytes_of(shown[i]));
        assert_int_equal(utf8_take_shown(&s), shown[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_character_has_one_form),
        cmocka_unit_test(what_goes_on_wrongly_is_none),
        cmocka_unit_test(what_does_not_show),
    };
    return cmocka_run_group_tests_name("base/utf8", tests, NULL, NULL);
}
