/* A snowflake in logical time: bursts that are carried ahead, and clocks that step back. */
#include "ids/snowflake_ahead.h"

#include "base/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EPOCH INT64_C(1767225600000)
#define T0    (EPOCH + 100 * HOUR)
#define HOUR  INT64_C(3600000)
#define REACH INT64_C(30000)

static struct snowflake gen;
static struct snowflake_ahead ahead;
static struct layout layout;
static volatile uint64_t mark;
static uint64_t latest;
static int64_t until, most;
static bool twice; /* something was not above the latest */

static void start(const char *fields, bool borrow, bool hold)
{
    assert_int_equal(layout_parse(span_str(fields), &layout, NULL), ERR_OK);
    snowflake_init(&gen, EPOCH, &layout, 15, 1);
    ahead = (struct snowflake_ahead){.borrow = borrow, .hold = hold};
    snowflake_ahead_init(&ahead, &gen, 0);
    mark = 0;
    latest = 0;
    twice = false;
    most = T0 + REACH;
}

static void grant(uint32_t handle, uint16_t worker, int64_t last, int64_t hi)
{
    assert_true(snowflake_grant(&gen, handle, worker, last, hi, handle == 0 ? &mark : NULL));
}

static enum snowflake_status ask(int64_t now, uint32_t n, bool some, uint32_t *got)
{
    uint64_t first;
    until = -1;
    enum snowflake_status r = snowflake_ahead_issue(
        &ahead, &gen, (struct snowflake_clock){now, most}, n, some, &first, got, &until);
    if (r != SNOWFLAKE_OK)
        return r;
    twice |= first <= latest;
    latest = first + (*got - 1) * (uint64_t)layout_stride(&layout);
    return r;
}

static enum snowflake_status one(int64_t now)
{
    uint32_t got;
    return ask(now, 1, false, &got);
}

static int64_t time_of_latest(void)
{
    struct layout_parts p;
    assert_true(layout_decompose(&layout, latest, &p));
    return EPOCH + p.time;
}

static uint32_t worker_of_latest(void)
{
    struct layout_parts p;
    assert_true(layout_decompose(&layout, latest, &p));
    return p.worker;
}

/* ---- borrow -----------------------------------------------------------------------------------
 */

static void a_burst_of_100000_in_one_ms_does_not_wait(void **state)
{
    (void)state;
    int64_t marked;
    for (int some = 0; some < 2; some++) {
        start("sidflake", true, false);
        grant(0, 7, T0 - 1, T0 + HOUR);
        for (uint32_t n = 0, got; n < 100000; n += got)
            assert_int_equal(ask(T0, some ? 100000 - n : 1, some, &got), SNOWFLAKE_OK);
        assert_false(twice);
        assert_int_equal(time_of_latest(), T0 + 97); /* 97 units of 1,024, and some of the next */
        assert_true(mark_load(&mark, &marked) && marked == T0 + 97);
        assert_int_equal(gen.stats.issued, 100000);
    }
}

static void none_is_above_hi(void **state)
{
    (void)state;
    start("sidflake", true, false);
    grant(0, 7, T0 - 1, T0 + 9);
    for (int n = 0; n < 10 * 1024; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_false(gen.wants_renewal);
    assert_int_equal(one(T0), SNOWFLAKE_FULL); /* it waits for a renewal, or for the clock */
    assert_int_equal(until, T0 + 1);
    assert_true(gen.wants_renewal);
    assert_int_equal(time_of_latest(), T0 + 9);
    assert_int_equal(one(T0 + 10), SNOWFLAKE_CEILING);
    snowflake_extend(&gen, 0, T0 + 10);
    assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 10);
    assert_false(twice);
}

/* The short way is for a clock that says what it said last. A unit into which IDs were carried is
 * judged anew once the clock is there: from there it steps back, else it would be from before. */
static void the_clock_is_seen_in_a_unit_that_was_lent(void **state)
{
    (void)state;
    uint64_t first;
    start("sidflake", true, false);
    grant(0, 7, T0 - 1, T0 + HOUR);
    grant(1, 8, T0 - 20, T0 + HOUR);
    for (int n = 0; n < 5 * 1024 + 1; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 5);
    assert_false(snowflake_ahead_more(&ahead, &gen, T0 + 5, 1, &first));
    assert_false(snowflake_ahead_more(&ahead, &gen, T0, 1, &first));
    assert_int_equal(one(T0 + 5), SNOWFLAKE_OK);
    assert_true(snowflake_ahead_more(&ahead, &gen, T0 + 5, 1, &first));
    assert_true(first == latest + 1);
    assert_int_equal(one(T0 - 10), SNOWFLAKE_OK); /* 15 ms behind where the clock was */
    assert_int_equal(worker_of_latest(), 8);
    assert_int_equal(time_of_latest(), T0 - 10);
}

/* A coordinator that lost data may grant the workerId again from its settle on. */
static void nor_farther_ahead_of_the_coordinator_than_a_settle(void **state)
{
    (void)state;
    start("sidflake", true, true);
    most = T0 + 3;
    grant(0, 7, T0 - 1, T0 + HOUR);
    for (int n = 0; n < 4 * 1024; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(one(T0), SNOWFLAKE_FULL);
    assert_int_equal(until, T0 + 1);
    most++;
    assert_int_equal(one(T0 + 1), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 4);
    /* And once the clock is there, it is waited for as ever. */
    for (int n = 1; n < 1024; n++)
        assert_int_equal(one(T0 + 1), SNOWFLAKE_OK);
    assert_int_equal(one(T0 + 4), SNOWFLAKE_FULL);
    assert_int_equal(until, T0 + 5);
}

static void all_active_are_used_up_before_the_next_unit(void **state)
{
    (void)state;
    start("sidflake", true, false);
    gen.want_active = 2;
    grant(0, 7, T0 - 1, T0 + HOUR);
    grant(1, 9, T0 - 1, T0 + HOUR);
    for (int n = 0; n < 1024; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(worker_of_latest(), 7);
    for (int n = 0; n < 1024; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(worker_of_latest(), 9);
    assert_int_equal(time_of_latest(), T0);
    assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(worker_of_latest(), 7);
    assert_int_equal(time_of_latest(), T0 + 1);
    assert_false(twice);
}

static void units_of_more_than_a_ms_and_strides_are_carried_as_well(void **state)
{
    (void)state;
    start("sonyflake", true, false); /* 10 ms, 256 */
    grant(0, 7, T0 + 3, T0 + 40);
    for (int n = 0; n < 4 * 256; n++)
        assert_int_equal(one(T0 + 5), SNOWFLAKE_OK);
    assert_false(twice);
    assert_int_equal(time_of_latest(), T0 + 40); /* the first: T0 + 10, not the granted rest */
    assert_int_equal(one(T0 + 5), SNOWFLAKE_FULL);
    assert_int_equal(until, T0 + 15);
    assert_int_equal(one(T0 + 50), SNOWFLAKE_CEILING);
}

/* What is borrowed is no clock that stepped back. */
static void what_was_borrowed_does_not_rotate(void **state)
{
    (void)state;
    start("sidflake", true, false);
    grant(0, 7, T0 - 1, T0 + HOUR);
    grant(1, 8, T0 - 1, T0 + HOUR);
    for (int n = 0; n < 100 * 1024; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    for (int64_t t = T0 + 1; t < T0 + 200; t++)
        assert_int_equal(one(t), SNOWFLAKE_OK);
    assert_int_equal(one(T0 + 186), SNOWFLAKE_OK); /* by less than wait_below: not waited for */
    assert_false(twice);
    assert_int_equal(gen.nretired, 0);
    assert_int_equal(worker_of_latest(), 7);
    assert_int_equal(one(T0 + 184), SNOWFLAKE_OK);
    assert_true(twice);
    assert_int_equal(gen.nretired, 1);
    assert_int_equal(gen.retired[0].last, T0 + 199);
    assert_int_equal(worker_of_latest(), 8);
    assert_int_equal(time_of_latest(), T0 + 184);
    twice = false;
    for (int n = 0; n < 3000; n++)
        assert_int_equal(one(T0 + 184), SNOWFLAKE_OK);
    assert_false(twice);
    assert_int_equal(time_of_latest(), T0 + 186);
}

/* ---- hold -------------------------------------------------------------------------------------
 */

static void no_step_of_the_clock_is_an_error_or_a_rotation(void **state)
{
    (void)state;
    static const int64_t steps[] = {-10, -1000, -HOUR, HOUR};
    static const char *const layouts[] = {"sidflake", "twitter", "sonyflake", "baidu"};
    for (size_t l = 0; l < 4; l++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            start(layouts[l], false, true);
            grant(0, 7, T0 - 1, T0 + 2 * HOUR);
            grant(1, 8, T0 - 1, T0 + 2 * HOUR);
            most = T0 + 2 * HOUR;
            for (int64_t t = T0 + 1000; t < T0 + 1100; t++)
                assert_int_equal(one(t), SNOWFLAKE_OK);
            for (int64_t t = T0 + 1100; t < T0 + 1200; t++)
                assert_int_equal(one(t + steps[i]), SNOWFLAKE_OK);
            for (int64_t t = T0 + 1200; t < T0 + 1300; t++)
                assert_int_equal(one(t), SNOWFLAKE_OK);
            assert_false(twice);
            assert_int_equal(gen.nretired, 0);
            assert_int_equal(gen.stats.rotations, 0);
            assert_int_equal(gen.stats.rollbacks, 1);
            assert_int_equal(worker_of_latest(), 7);
        }
}

/* The latest unit is used up, and the clock far behind it: it counts on, and so does the time. */
static void a_held_time_goes_on_as_fast_as_the_clock(void **state)
{
    (void)state;
    start("time:38,unit=10ms worker:8 sequence:7", false, true);
    grant(0, 7, T0 - 1, T0 + 2 * HOUR);
    for (int n = 0; n < 128; n++)
        assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(one(T0 + 3), SNOWFLAKE_FULL);
    assert_int_equal(until, T0 + 10);
    for (int n = 0; n < 128; n++) /* a step back is not waited for: one unit */
        assert_int_equal(one(T0 - HOUR), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 10);
    for (int64_t t = T0 - HOUR; t < T0 - HOUR + 10; t++) {
        assert_int_equal(one(t), SNOWFLAKE_FULL);
        assert_int_equal(until, T0 - HOUR + 10);
    }
    assert_int_equal(one(T0 - HOUR + 10), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 20);
    assert_false(twice);
}

/* What was asked for in between does not put it off. */
static void a_held_unit_lasts_from_its_first_id(void **state)
{
    (void)state;
    start("time:38,unit=10ms worker:8 sequence:7", false, true);
    grant(0, 7, T0 - 1, T0 + 2 * HOUR);
    assert_int_equal(one(T0), SNOWFLAKE_OK);
    for (int n = 1; n < 128; n++)
        assert_int_equal(one(T0 - HOUR), SNOWFLAKE_OK);
    for (int n = 0; n < 128; n++)
        assert_int_equal(one(T0 - HOUR + n / 16), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 10);
    assert_int_equal(one(T0 - HOUR + 8), SNOWFLAKE_FULL);
    assert_int_equal(until, T0 - HOUR + 10);
    assert_false(twice);
}

/* A unit used up is not lent: by less than is waited for above what may be, it is; by more not,
 * unless another workerId comes that has some of it. */
static void a_unit_that_may_not_come_yet_is_waited_for_or_refused(void **state)
{
    (void)state;
    start("sidflake", false, true);
    grant(0, 7, T0 - 1, T0 + HOUR);
    most = T0 + 100;
    for (int n = 0; n < 1024; n++)
        assert_int_equal(one(T0 + 100), SNOWFLAKE_OK);
    most = T0 + 86;
    assert_int_equal(one(T0), SNOWFLAKE_FULL); /* 14 ms */
    most = T0 + 85;
    struct snowflake_clock c = {T0, most};
    assert_int_equal(snowflake_ahead_peek(&ahead, &gen, c), SNOWFLAKE_OK);
    assert_int_equal(one(T0), SNOWFLAKE_CEILING);
    assert_int_equal(until, T0 + 100);
    assert_int_equal(snowflake_ahead_peek(&ahead, &gen, c), SNOWFLAKE_CEILING);
    gen.want_active = 2;
    grant(1, 9, T0 - 1, T0 + HOUR);
    assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(worker_of_latest(), 9);
    assert_int_equal(snowflake_ahead_peek(&ahead, &gen, c), SNOWFLAKE_OK);
    assert_false(twice);
}

static void the_latest_time_outlives_changes_of_worker(void **state)
{
    (void)state;
    int64_t last;
    start("sidflake", false, true);
    grant(0, 9, T0 - 1, T0 + HOUR);
    assert_int_equal(one(T0 + 500), SNOWFLAKE_OK);
    assert_true(snowflake_revoke(&gen, 0, &last));
    grant(1, 3, T0 - 1, T0 + HOUR);
    assert_int_equal(one(T0 + 100), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 501); /* 3 is below 9 */
    assert_false(twice);
}

/* Whichever workerId it has then. */
static void it_begins_above_what_is_known(void **state)
{
    (void)state;
    start("time:38,unit=10ms worker:8 sequence:7", false, true);
    snowflake_ahead_init(&ahead, &gen, T0 + 17);
    grant(0, 3, T0 - 1, T0 + HOUR);
    assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 20);
    start("sidflake", false, true);
    snowflake_ahead_init(&ahead, &gen, T0 + 17);
    grant(0, 3, T0 - 1, T0 + HOUR);
    assert_int_equal(one(T0 + 30), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 30);
}

/* Granted before the clock stepped back, and not used since. */
static void it_goes_on_where_a_range_begins(void **state)
{
    (void)state;
    start("sidflake", false, true);
    grant(0, 3, T0 - 1, T0 + HOUR);
    struct snowflake_clock c = {T0 - HOUR, most};
    assert_int_equal(snowflake_ahead_peek(&ahead, &gen, c), SNOWFLAKE_OK);
    assert_int_equal(one(T0 - HOUR), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0);
    assert_false(gen.wants_worker);
    start("sidflake", false, true);
    most = c.most_ms = T0 - 1;
    grant(0, 3, T0 - 1, T0 + HOUR);
    assert_int_equal(snowflake_ahead_peek(&ahead, &gen, c), SNOWFLAKE_STALLED);
    assert_int_equal(one(T0 - HOUR), SNOWFLAKE_STALLED);
    assert_true(gen.wants_worker);
}

/* A range may end before its first unit begins. */
static void a_range_without_a_unit_is_good_for_none(void **state)
{
    (void)state;
    start("time:38,unit=10ms worker:8 sequence:7", true, true);
    grant(0, 3, T0 + 15, T0 + 19);
    assert_int_equal(one(T0 - HOUR), SNOWFLAKE_CEILING);
    snowflake_extend(&gen, 0, T0 + 20);
    assert_int_equal(one(T0 - HOUR), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0 + 20);
}

static void before_the_epoch_the_latest_time_goes_on(void **state)
{
    (void)state;
    start("sidflake", false, true);
    assert_int_equal(one(EPOCH - 1), SNOWFLAKE_EPOCH);
    grant(0, 3, T0 - 1, T0 + HOUR);
    assert_int_equal(one(T0), SNOWFLAKE_OK);
    assert_int_equal(one(0), SNOWFLAKE_OK);
    assert_int_equal(time_of_latest(), T0);
}

static void the_end_of_the_field_is_not_carried_over(void **state)
{
    (void)state;
    start("sidflake", true, true);
    int64_t end = layout_end_ms(&layout, EPOCH);
    grant(0, 3, end - 10, end + HOUR);
    most = end + HOUR;
    for (int n = 0; n < 1024; n++)
        assert_int_equal(one(end), SNOWFLAKE_OK);
    assert_int_equal(one(end), SNOWFLAKE_EPOCH);
    assert_false(twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_of_100000_in_one_ms_does_not_wait),
        cmocka_unit_test(none_is_above_hi),
        cmocka_unit_test(the_clock_is_seen_in_a_unit_that_was_lent),
        cmocka_unit_test(nor_farther_ahead_of_the_coordinator_than_a_settle),
        cmocka_unit_test(all_active_are_used_up_before_the_next_unit),
        cmocka_unit_test(units_of_more_than_a_ms_and_strides_are_carried_as_well),
        cmocka_unit_test(what_was_borrowed_does_not_rotate),
        cmocka_unit_test(no_step_of_the_clock_is_an_error_or_a_rotation),
        cmocka_unit_test(a_held_time_goes_on_as_fast_as_the_clock),
        cmocka_unit_test(a_held_unit_lasts_from_its_first_id),
        cmocka_unit_test(a_unit_that_may_not_come_yet_is_waited_for_or_refused),
        cmocka_unit_test(the_latest_time_outlives_changes_of_worker),
        cmocka_unit_test(it_begins_above_what_is_known),
        cmocka_unit_test(it_goes_on_where_a_range_begins),
        cmocka_unit_test(a_range_without_a_unit_is_good_for_none),
        cmocka_unit_test(before_the_epoch_the_latest_time_goes_on),
        cmocka_unit_test(the_end_of_the_field_is_not_carried_over),
    };
    return cmocka_run_group_tests_name("ids/snowflake_ahead", tests, NULL, NULL);
}
