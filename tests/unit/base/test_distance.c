#include "base/distance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void changes_of_one_byte(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {{"", "", 0},          {"", "ab", 2},
                 {"ab", "", 2},        {"ab", "ab", 0},
                 {"ab", "aB", 1},      {"ab", "ba", 2},
                 {"batch", "bath", 1}, {"bath", "batch", 1},
                 {"abc", "bcd", 2},    {"kitten", "sitting", 3},
                 {"abcd", "x", 4},     {"status", "stauts", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(distance_between(span_str(cases[i].a), span_str(cases[i].b)),
                         cases[i].distance);
}

/* What is compared with it may be of any length. */
static void a_word_that_is_too_long(void **state)
{
    (void)state;
    static char longer[DISTANCE_MAX + 1];
    memset(longer, 'x', sizeof longer);
    assert_int_equal(distance_between(SPAN(""), span_of(longer, DISTANCE_MAX)), DISTANCE_MAX);
    assert_int_equal(distance_between(SPAN("x"), span_of(longer, DISTANCE_MAX)), DISTANCE_MAX - 1);
    assert_int_equal(distance_between(SPAN("x"), span_of(longer, sizeof longer)), SIZE_MAX);
    assert_int_equal(distance_between(span_of(longer, sizeof longer), SPAN("x")), DISTANCE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_one_byte),
        cmocka_unit_test(a_word_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
