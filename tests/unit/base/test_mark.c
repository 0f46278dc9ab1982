#include "base/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int64_t times[] = {0, 1, 1767225600000, 1767225600001, MARK_MAX_MS};

static void what_was_stored_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        volatile uint64_t cell = 0;
        int64_t ms = -1;
        mark_store(&cell, times[i]);
        assert_true(mark_load(&cell, &ms));
        assert_int_equal(ms, times[i]);
    }
}

static void times_out_of_range_are_held_to_it(void **state)
{
    (void)state;
    int64_t ms;
    assert_true(mark_read(mark_of(-1), &ms));
    assert_int_equal(ms, 0);
    assert_true(mark_read(mark_of(INT64_MAX), &ms));
    assert_int_equal(ms, MARK_MAX_MS);
}

static void empty_memory_is_no_mark(void **state)
{
    (void)state;
    int64_t ms;
    assert_false(mark_read(0, &ms));
    assert_false(mark_read(UINT64_MAX, &ms));
}

static void a_flipped_bit_is_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        for (int a = 0; a < 64; a++) {
            uint64_t mark = mark_of(times[i]) ^ UINT64_C(1) << a;
            int64_t ms;
            assert_false(mark_read(mark, &ms));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_stored_is_read),
        cmocka_unit_test(times_out_of_range_are_held_to_it),
        cmocka_unit_test(empty_memory_is_no_mark),
        cmocka_unit_test(a_flipped_bit_is_noticed),
    };
    return cmocka_run_group_tests_name("base/mark", tests, NULL, NULL);
}
