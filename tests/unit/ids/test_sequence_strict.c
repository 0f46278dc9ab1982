/* Of strict sequences: who wants more than there is room for in one call, and who beside him. */
#include "ids/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MOST SEQUENCE_ROW_MAX

static struct sequence s;

static int setup(void **state)
{
    (void)state;
    sequence_init(&s, 1000, MOST, 5000);
    sequence_define(&s, 1, 1, true);
    return 0;
}

static struct sequence_ask asked(void)
{
    struct sequence_ask a;
    assert_true(sequence_asks(&s, &a));
    return a;
}

static int64_t given(int64_t *ticket, int64_t n)
{
    int64_t index;
    return sequence_strict(&s, 5000, ticket, n, &index) == SEQUENCE_OK ? index : -1;
}

/* However many want all that one call may have, again and again. */
static void one_is_served_between_two_who_want_all(void **state)
{
    (void)state;
    int64_t all = sequence_arrive(&s, MOST), one = sequence_arrive(&s, 1);
    struct sequence_ask a = asked();
    assert_true(a.count == MOST && a.most == MOST && a.upto == one);
    int64_t next = sequence_arrive(&s, MOST);
    sequence_own(&s, 0, MOST - 1, a.upto, true);
    assert_int_equal(given(&all, MOST), 0);
    assert_true(sequence_may_wait(&s));
    assert_int_equal(given(&one, 1), -1);
    assert_true(one > next); /* he has arrived anew, behind another who wants all */
    a = asked();
    assert_true(a.count == 2 && !a.whole && a.upto == one);
    sequence_own(&s, MOST, MOST + 1, a.upto, false);
    assert_int_equal(given(&next, MOST), -1);
    assert_int_equal(given(&one, 1), MOST);
    a = asked();
    assert_true(a.count == MOST && a.whole && a.upto == next);
}

static void as_many_are_asked_for_as_there_is_room_for(void **state)
{
    (void)state;
    (void)sequence_arrive(&s, 400000);
    assert_true(sequence_expect(&s, 9, 300000));
    (void)sequence_arrive(&s, 1);
    assert_int_equal(s.ask.count, MOST);
    assert_false(sequence_expect(&s, 9, 1));
    assert_int_equal(s.few, 1);
}

/* Such as that there is none of that name: it may have been made since. */
static void a_refusal_that_is_old_is_asked_about(void **state)
{
    (void)state;
    int64_t first = sequence_arrive(&s, 1), next = 0, index;
    const struct sequence_refusal none = {
        .cause = 4, .stands = true, .until_ms = 6000, .count = 1, .upto = asked().upto};
    sequence_refuse(&s, &none, false);
    assert_int_equal(sequence_strict(&s, 5000, &first, 1, &index), SEQUENCE_REFUSED);
    assert_int_equal(sequence_strict(&s, 5999, &next, 1, &index), SEQUENCE_REFUSED);
    assert_int_equal(sequence_strict(&s, 6000, &next, 1, &index), SEQUENCE_EMPTY);
    assert_true(next > first && asked().upto == next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_is_served_between_two_who_want_all, setup),
        cmocka_unit_test_setup(as_many_are_asked_for_as_there_is_room_for, setup),
        cmocka_unit_test_setup(a_refusal_that_is_old_is_asked_about, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
