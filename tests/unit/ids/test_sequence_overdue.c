/* What was asked for and never came: nobody waits for what becomes of one call alone. */
#include "ids/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int64_t asked_at(struct sequence *s, int64_t mono, int64_t n)
{
    struct sequence_ask a;
    int64_t index;
    assert_int_equal(sequence_next(s, mono, n, &index), SEQUENCE_EMPTY);
    return sequence_asks(s, &a) ? a.count : 0;
}

static void it_is_asked_for_again_after_a_second(void **state)
{
    struct sequence s;
    volatile uint64_t mark = 0;
    (void)state;
    sequence_init(&s, 1000, 100000, 5000);
    sequence_define(&s, 1, 1, false);
    assert_true(asked_at(&s, 6000, 1) > 0);
    assert_int_equal(asked_at(&s, 6999, 1), 0);
    assert_true(asked_at(&s, 7000, 1) > 0);
    assert_int_equal(asked_at(&s, 7999, 1), 0);
    assert_true(asked_at(&s, 8000, 1) > 0);
    const struct sequence_block b = {.lo = 0, .next = 0, .hi = 0, .handle = 1, .mark = &mark};
    sequence_grant(&s, 8000, &b);
    int64_t index;
    assert_int_equal(sequence_next(&s, 8000, 1, &index), SEQUENCE_OK);
    (void)asked_at(&s, 60000, 1); /* who waits, waits from now on */
    assert_int_equal(asked_at(&s, 60999, 1), 0);
    assert_true(asked_at(&s, 61000, 1) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_for_again_after_a_second),
    };
    return cmocka_run_group_tests_name("ids/sequence_overdue", tests, NULL, NULL);
}
