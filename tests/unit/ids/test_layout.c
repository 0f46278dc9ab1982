#include "ids/layout.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_fields_stand_where_the_drawing_says(void **state)
{
    (void)state;
    assert_true(layout_compose(0, 0, 0) == 0);
    assert_true(layout_compose(0, 0, 1) == 1);
    assert_true(layout_compose(0, 1, 0) == UINT64_C(1) << 10);
    assert_true(layout_compose(1, 0, 0) == UINT64_C(1) << 25);
    assert_true(layout_compose(0, 0, LAYOUT_SEQUENCES - 1) == 0x3FF);
    assert_true(layout_compose(0, LAYOUT_WORKERS - 1, 0) == 0x1FFFC00);
    assert_true(layout_compose(LAYOUT_TIME_MAX, LAYOUT_WORKERS - 1, LAYOUT_SEQUENCES - 1) ==
                (uint64_t)INT64_MAX);
}

static void what_is_composed_is_decomposed(void **state)
{
    (void)state;
    struct seeded rng = seeded_of(1);
    for (int i = 0; i < 100000; i++) {
        int64_t time = seeded_in(&rng, 0, LAYOUT_TIME_MAX);
        uint32_t worker = (uint32_t)seeded_in(&rng, 0, LAYOUT_WORKERS - 1);
        uint32_t sequence = (uint32_t)seeded_in(&rng, 0, LAYOUT_SEQUENCES - 1);
        struct layout_parts p;
        assert_true(layout_decompose(layout_compose(time, worker, sequence), &p));
        assert_true(p.time == time);
        assert_int_equal(p.worker, worker);
        assert_int_equal(p.sequence, sequence);
    }
}

static void ids_sort_by_time_then_worker_then_sequence(void **state)
{
    (void)state;
    assert_true(layout_compose(7, LAYOUT_WORKERS - 1, LAYOUT_SEQUENCES - 1) <
                layout_compose(8, 0, 0));
    assert_true(layout_compose(7, 4, LAYOUT_SEQUENCES - 1) < layout_compose(7, 5, 0));
    assert_true(layout_compose(7, 4, 5) < layout_compose(7, 4, 6));
}

static void a_number_with_bit_63_is_no_id(void **state)
{
    (void)state;
    struct layout_parts p;
    assert_false(layout_decompose(UINT64_C(1) << 63, &p));
    assert_false(layout_decompose(UINT64_MAX, &p));
    assert_true(layout_decompose(INT64_MAX, &p));
}

static void the_default_epoch_lasts_until_2034(void **state)
{
    (void)state;
    /* 2026-01-01T00:00:00Z, and 2034-09-17T10:58:26.943Z. */
    assert_true(LAYOUT_EPOCH_DEFAULT_MS == INT64_C(1767225600) * 1000);
    assert_true(layout_end_ms(LAYOUT_EPOCH_DEFAULT_MS) == INT64_C(2042103506943));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fields_stand_where_the_drawing_says),
        cmocka_unit_test(what_is_composed_is_decomposed),
        cmocka_unit_test(ids_sort_by_time_then_worker_then_sequence),
        cmocka_unit_test(a_number_with_bit_63_is_no_id),
        cmocka_unit_test(the_default_epoch_lasts_until_2034),
    };
    return cmocka_run_group_tests_name("ids/layout", tests, NULL, NULL);
}
