/* What hashes come to stands in files, so that each value here is for good. */
#include "base/fnv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void known_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t h32;
        uint64_t h64;
    } cases[] = {
        {"", UINT32_C(0x811c9dc5), UINT64_C(0xcbf29ce484222325)},
        {"a", UINT32_C(0xe40c292c), UINT64_C(0xaf63dc4c8601ec8c)},
        {"foobar", UINT32_C(0xbf9cf968), UINT64_C(0x85944171f73967e8)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(fnv32_str(cases[i].text), cases[i].h32);
        assert_int_equal(fnv64_str(cases[i].text), cases[i].h64);
    }
}

/* Also where char has a sign. */
static void bytes_are_without_a_sign(void **state)
{
    (void)state;
    assert_int_equal(fnv32("\xff\0", 2), UINT32_C(0x6e1e20ca));
    assert_int_equal(fnv64("\xff\0", 2), UINT64_C(0x0a99a607b6f60bea));
}

static void one_goes_on_where_another_ended(void **state)
{
    (void)state;
    assert_int_equal(fnv32_on(fnv32("foo", 3), "bar", 3), fnv32("foobar", 6));
    assert_int_equal(fnv32_on(FNV32_NOTHING, "foobar", 6), fnv32("foobar", 6));
}

static void by_words(void **state)
{
    (void)state;
    char text[17] = "0123456789abcdef";
    assert_int_equal(fnv64_words(text, 0), FNV64_NOTHING);
    assert_int_equal(fnv64_words(text, 16), UINT64_C(0x4914f088f409e718));
    for (unsigned bit = 0; bit < 128; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_not_equal(fnv64_words(text, 16), UINT64_C(0x4914f088f409e718));
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(bytes_are_without_a_sign),
        cmocka_unit_test(one_goes_on_where_another_ended),
        cmocka_unit_test(by_words),
    };
    return cmocka_run_group_tests_name("base/fnv", tests, NULL, NULL);
}
