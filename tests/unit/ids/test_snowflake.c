/* The cases of the generator's header, one by one. test_snowflake_model.c tries them by chance. */
#include "base/mark.h"
#include "ids/snowflake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EPOCH INT64_C(1767225600000)
#define T0    (EPOCH + 1000000) /* the time at which the tests begin */
#define BELOW 15
#define ALL   LAYOUT_SEQUENCES

struct answer {
    enum snowflake_status status;
    uint64_t first;
    int64_t until;
};

static struct answer ask(struct snowflake *s, int64_t now, uint32_t n)
{
    struct answer a = {.first = UINT64_MAX, .until = -1};
    a.status = snowflake_next(s, now, n, &a.first, &a.until);
    return a;
}

static void expect_id(struct snowflake *s, int64_t now, uint32_t n, uint32_t worker, uint32_t seq)
{
    struct answer a = ask(s, now, n);
    assert_int_equal(a.status, SNOWFLAKE_OK);
    assert_true(a.first == layout_compose(&layout_usual, now - EPOCH, worker, seq));
}

static void expect_wait(struct snowflake *s, int64_t now, uint32_t n, enum snowflake_status status,
                        int64_t until)
{
    uint64_t issued = s->stats.issued;
    struct answer a = ask(s, now, n);
    assert_int_equal(a.status, status);
    assert_true(a.until == until);
    assert_true(s->stats.issued == issued && a.first == UINT64_MAX);
}

static void expect_refusal(struct snowflake *s, int64_t now, enum snowflake_status status)
{
    uint64_t issued = s->stats.issued;
    assert_int_equal(ask(s, now, 1).status, status);
    assert_int_equal(snowflake_peek(s, now), status);
    assert_true(s->stats.issued == issued);
}

/* workerIds 100, 101, … with handles 0, 1, …, floors at T0 and an hour ahead. */
static struct snowflake make(unsigned active, unsigned members)
{
    struct snowflake s;
    snowflake_init(&s, EPOCH, &layout_usual, BELOW, active);
    for (unsigned i = 0; i < members; i++)
        assert_true(snowflake_grant(&s, i, (uint16_t)(100 + i), T0 - 1, T0 + 3600000, NULL));
    return s;
}

static void sequences_rise_and_start_at_0_in_each_millisecond(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    expect_id(&s, T0, 1, 100, 0);
    expect_id(&s, T0, 1, 100, 1);
    expect_id(&s, T0, 5, 100, 2);
    expect_id(&s, T0, 1, 100, 7);
    expect_id(&s, T0 + 1, 1, 100, 0);
    expect_id(&s, T0 + 5, 1024, 100, 0);
    assert_int_equal(snowflake_peak(&s), 1024);
    assert_int_equal(s.stats.issued, 8 + 1 + 1024);
}

static void a_full_millisecond_waits_for_the_next(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    expect_id(&s, T0, 1000, 100, 0);
    expect_wait(&s, T0, 25, SNOWFLAKE_FULL, T0 + 1); /* 24 are left: no block is cut */
    expect_id(&s, T0, 24, 100, 1000);
    expect_wait(&s, T0, 1, SNOWFLAKE_FULL, T0 + 1);
    assert_int_equal(s.stats.exhausted, 2);
    assert_int_equal(snowflake_peek(&s, T0), SNOWFLAKE_OK);
    expect_id(&s, T0 + 1, 1, 100, 0);
}

static void active_workers_are_used_in_turn_and_never_back(void **state)
{
    (void)state;
    struct snowflake s = make(3, 3);
    expect_id(&s, T0, ALL, 100, 0);
    expect_id(&s, T0, 1000, 101, 0);
    expect_id(&s, T0, 100, 102, 0);
    expect_id(&s, T0, 1, 102, 100); /* 101 has room, but lower IDs */
    expect_id(&s, T0, 923, 102, 101);
    expect_wait(&s, T0, 1, SNOWFLAKE_FULL, T0 + 1);
    expect_id(&s, T0 + 1, 1, 100, 0);
}

static void active_workers_are_ordered_however_they_were_granted(void **state)
{
    (void)state;
    struct snowflake s;
    snowflake_init(&s, EPOCH, &layout_usual, BELOW, 3);
    static const uint16_t workers[] = {7, 32767, 0};
    for (uint32_t i = 0; i < 3; i++)
        assert_true(snowflake_grant(&s, i, workers[i], T0 - 1, T0 + 1000, NULL));
    expect_id(&s, T0, ALL, 0, 0);
    expect_id(&s, T0, ALL, 7, 0);
    expect_id(&s, T0, ALL, 32767, 0);
    expect_wait(&s, T0, 1, SNOWFLAKE_FULL, T0 + 1);
}

static void a_grant_is_issued_from_above_its_last(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    expect_wait(&s, T0 - 1, 1, SNOWFLAKE_FULL, T0); /* `last` itself counts as used up */
    expect_wait(&s, T0 - 2, 1, SNOWFLAKE_BEHIND, T0 - 1);
    expect_wait(&s, T0 - 15, 1, SNOWFLAKE_BEHIND, T0 - 1);
    expect_wait(&s, T0 - 16, 1, SNOWFLAKE_STALLED, T0 - 1);
    expect_id(&s, T0, 1, 100, 0);
}

static void a_rollback_of_1_to_14_ms_waits(void **state)
{
    (void)state;
    for (int64_t by = 1; by < BELOW; by++) {
        struct snowflake s = make(1, 2);
        expect_id(&s, T0 + 50, 1, 100, 0);
        expect_wait(&s, T0 + 50 - by, 1, SNOWFLAKE_BEHIND, T0 + 50);
        assert_int_equal(s.nretired, 0);
        assert_int_equal(s.stats.rollbacks, 1);
        expect_id(&s, T0 + 50, 1, 100, 1); /* the same millisecond goes on */
    }
}

static void a_rollback_of_15_ms_rotates_within_the_call(void **state)
{
    (void)state;
    static const int64_t by[] = {15, 16, 50};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        struct snowflake s = make(1, 2);
        expect_id(&s, T0 + 50, 1, 100, 0);
        expect_id(&s, T0 + 50 - by[i], 1, 101, 0);
        assert_int_equal(s.nretired, 1);
        assert_int_equal(s.retired[0].handle, 0);
        assert_true(s.retired[0].last == T0 + 50);
        assert_int_equal(s.nmembers, 1);
        assert_int_equal(s.stats.rotations, 1);
        assert_int_equal(histogram_total(&s.stats.rollback), 1);
        assert_true(s.stats.rollback.sum_us == (uint64_t)by[i] * 1000);
    }
}

static void wait_below_0_rotates_at_once(void **state)
{
    (void)state;
    struct snowflake s = make(1, 2);
    s.wait_below_ms = 0;
    expect_id(&s, T0 + 50, 1, 100, 0);
    expect_id(&s, T0 + 49, 1, 101, 0);
    assert_int_equal(s.nretired, 1);
}

/* The first of all members that can go on is enough. */
static void what_is_behind_goes_on_where_the_lowest_stands(void **state)
{
    (void)state;
    struct snowflake s = make(1, 2);
    s.member[0].last = T0 + 70;
    s.member[1].last = T0 + 50;
    assert_true(snowflake_resumes(&s) == T0 + 50);
    s.member[0].last = T0 + 40;
    assert_true(snowflake_resumes(&s) == T0 + 40);
}

static void the_retired_is_never_issued_from_again(void **state)
{
    (void)state;
    struct snowflake s = make(1, 2);
    expect_id(&s, T0 + 50, 1, 100, 0);
    expect_id(&s, T0 + 20, 1, 101, 0);
    for (int64_t t = T0 + 20; t < T0 + 200; t++)
        expect_id(&s, t, 1, 101, t == T0 + 20);
    expect_wait(&s, T0 + 100, 1, SNOWFLAKE_STALLED, T0 + 199);
    snowflake_extend(&s, 0, T0 + 7200000); /* whoever does not know yet changes nothing */
    int64_t last;
    assert_false(snowflake_revoke(&s, 0, &last));
    expect_wait(&s, T0 + 100, 1, SNOWFLAKE_STALLED, T0 + 199);
}

static void without_a_spare_it_stalls_and_goes_on(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    expect_id(&s, T0 + 50, 3, 100, 0);
    expect_wait(&s, T0 + 20, 1, SNOWFLAKE_STALLED, T0 + 50);
    assert_true(s.wants_worker);
    assert_int_equal(s.nretired, 0);
    assert_int_equal(snowflake_peek(&s, T0 + 20), SNOWFLAKE_STALLED);
    expect_wait(&s, T0 + 40, 1, SNOWFLAKE_BEHIND, T0 + 50);
    expect_id(&s, T0 + 50, 1, 100, 3);
    expect_id(&s, T0 + 51, 1, 100, 0);
    assert_int_equal(s.stats.rotations, 0);
}

static void a_spare_that_comes_later_takes_over(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    expect_id(&s, T0 + 50, 1, 100, 0);
    expect_wait(&s, T0 + 20, 1, SNOWFLAKE_STALLED, T0 + 50);
    assert_true(snowflake_grant(&s, 9, 5, T0 + 10, T0 + 1000, NULL));
    expect_id(&s, T0 + 21, 1, 5, 0);
    assert_int_equal(s.nretired, 1);
    assert_int_equal(s.retired[0].handle, 0);
}

/* A spare is no use outside its own range. */
static void only_a_spare_whose_range_holds_now_stands_in(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    assert_true(snowflake_grant(&s, 1, 101, T0 + 30, T0 + 1000, NULL)); /* too late */
    assert_true(snowflake_grant(&s, 2, 102, T0 - 500, T0 - 400, NULL)); /* over */
    assert_true(snowflake_grant(&s, 3, 103, T0 - 500, T0 + 100, NULL)); /* this one */
    expect_id(&s, T0 + 50, 1, 100, 0);
    expect_id(&s, T0 + 10, 1, 103, 0);
    assert_int_equal(s.nretired, 1);
}

static void above_the_ceiling_nothing_is_touched(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    int64_t hi = s.member[0].hi;
    expect_id(&s, T0, 7, 100, 0);
    expect_refusal(&s, hi + 1, SNOWFLAKE_CEILING);
    assert_true(s.wants_renewal);
    expect_refusal(&s, hi + 10 * INT64_C(3600000), SNOWFLAKE_CEILING);
    assert_true(s.member[0].last == T0);
    expect_id(&s, T0, 1, 100, 7); /* back: no trace but the rollback that was seen */
    assert_int_equal(s.nretired, 0);
    expect_id(&s, hi, 1, 100, 0); /* the ceiling is included */
    expect_refusal(&s, hi + 1, SNOWFLAKE_CEILING);
    snowflake_extend(&s, 0, hi + 5);
    snowflake_extend(&s, 0, hi + 1); /* never lowered */
    expect_id(&s, hi + 5, 1, 100, 0);
    expect_refusal(&s, hi + 6, SNOWFLAKE_CEILING);
}

/* The test of the ceiling comes first: a member above its hi is not judged by its last. */
static void a_jump_ahead_and_back_does_not_rotate(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    int64_t hi = s.member[0].hi;
    assert_true(snowflake_grant(&s, 1, 101, T0 - 1, hi, NULL));
    expect_id(&s, T0, 1, 100, 0);
    for (int i = 0; i < 3; i++) {
        expect_refusal(&s, hi + 315360000000, SNOWFLAKE_EPOCH);
        expect_refusal(&s, hi + 1000, SNOWFLAKE_CEILING);
        expect_id(&s, T0 + i, 1, 100, (uint32_t)(i == 0));
    }
    assert_int_equal(s.nretired, 0);
    assert_int_equal(s.stats.rotations, 0);
}

static void a_spare_stands_in_above_a_ceiling_and_nobody_is_retired(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    int64_t hi = s.member[0].hi;
    assert_true(snowflake_grant(&s, 1, 50, T0 - 1, hi + 100, NULL));
    expect_id(&s, hi, 1, 100, 0);
    expect_id(&s, hi + 1, 1, 50, 0);
    assert_true(s.wants_renewal);
    assert_int_equal(s.nretired, 0);
    assert_int_equal(s.nmembers, 2);
    snowflake_extend(&s, 0, hi + 1000);
    expect_id(&s, hi + 100, 1, 50, 0);
    expect_id(&s, hi + 101, 1, 100, 0);
    assert_int_equal(s.nretired, 0);
}

static void the_epoch_bounds_the_time(void **state)
{
    (void)state;
    struct snowflake s;
    snowflake_init(&s, EPOCH, &layout_usual, BELOW, 1);
    expect_refusal(&s, EPOCH, SNOWFLAKE_NO_WORKER);
    assert_true(snowflake_grant(&s, 0, 9, EPOCH - 1, INT64_MAX, NULL));
    expect_refusal(&s, EPOCH - 1, SNOWFLAKE_EPOCH);
    expect_refusal(&s, -EPOCH, SNOWFLAKE_EPOCH);
    expect_id(&s, EPOCH, 1, 9, 0);
    int64_t end = layout_end_ms(&layout_usual, EPOCH);
    expect_id(&s, end, ALL, 9, 0);
    expect_wait(&s, end, 1, SNOWFLAKE_FULL, end + 1);
    expect_refusal(&s, end + 1, SNOWFLAKE_EPOCH);
    expect_refusal(&s, 100 * EPOCH, SNOWFLAKE_EPOCH);
    assert_true(s.member[0].last == end);
}

static void without_a_worker_nothing_is_issued(void **state)
{
    (void)state;
    struct snowflake s = make(1, 0);
    expect_refusal(&s, T0, SNOWFLAKE_NO_WORKER);
    assert_true(snowflake_grant(&s, 3, 4, T0 - 1, T0 + 9, NULL));
    expect_id(&s, T0, 1, 4, 0);
    int64_t last = 0;
    assert_true(snowflake_revoke(&s, 3, &last));
    assert_true(last == T0);
    expect_refusal(&s, T0 + 1, SNOWFLAKE_NO_WORKER);
}

/* Its successor must not give out lower IDs, even where it could. */
static void order_is_kept_across_a_revocation(void **state)
{
    (void)state;
    struct snowflake s = make(1, 2);
    int64_t last;
    expect_id(&s, T0, 1, 100, 0);
    assert_true(snowflake_grant(&s, 7, 5, T0 - 100, T0 + 1000, NULL));
    assert_true(snowflake_revoke(&s, 0, &last));
    assert_true(snowflake_revoke(&s, 1, &last));
    expect_wait(&s, T0, 1, SNOWFLAKE_FULL, T0 + 1);
    expect_wait(&s, T0 - 1, 1, SNOWFLAKE_BEHIND, T0);
    expect_id(&s, T0 + 1, 1, 5, 0);
}

static void the_mark_is_stored_before_an_id_is_returned(void **state)
{
    (void)state;
    volatile uint64_t mark[2] = {0};
    struct snowflake s;
    int64_t ms;
    snowflake_init(&s, EPOCH, &layout_usual, BELOW, 1);
    for (uint32_t i = 0; i < 2; i++) {
        mark_store(&mark[i], T0 - 1);
        assert_true(snowflake_grant(&s, i, (uint16_t)i, T0 - 1, T0 + 1000, &mark[i]));
    }
    for (int64_t t = T0; t < T0 + 50; t += 7) {
        expect_id(&s, t, 3, 0, 0);
        assert_true(mark_load(&mark[0], &ms) && ms == t);
        assert_true(mark_load(&mark[1], &ms) && ms == T0 - 1);
    }
    expect_id(&s, T0 + 2, 1, 1, 0);
    assert_true(mark_load(&mark[1], &ms) && ms == T0 + 2);
    assert_true(mark_load(&mark[0], &ms) && ms == T0 + 49 && s.retired[0].last == T0 + 49);
    expect_refusal(&s, T0 + 5000, SNOWFLAKE_CEILING);
    assert_true(mark_load(&mark[1], &ms) && ms == T0 + 2);
}

static void some_takes_what_is_left(void **state)
{
    (void)state;
    struct snowflake s = make(2, 2);
    uint64_t first;
    uint32_t got;
    int64_t until;
    expect_id(&s, T0, 1000, 100, 0);
    assert_int_equal(snowflake_some(&s, T0, 100, &first, &got, &until), SNOWFLAKE_OK);
    assert_true(first == layout_compose(&layout_usual, T0 - EPOCH, 100, 1000) && got == 24);
    assert_int_equal(snowflake_some(&s, T0, 5000, &first, &got, &until), SNOWFLAKE_OK);
    assert_true(first == layout_compose(&layout_usual, T0 - EPOCH, 101, 0) && got == 1024);
    assert_int_equal(snowflake_some(&s, T0, 1, &first, &got, &until), SNOWFLAKE_FULL);
    assert_true(until == T0 + 1);
    assert_int_equal(snowflake_some(&s, T0 + 1, 1, &first, &got, &until), SNOWFLAKE_OK);
    assert_true(first == layout_compose(&layout_usual, T0 + 1 - EPOCH, 100, 0) && got == 1);
    assert_int_equal(s.stats.issued, 2049);
}

static void handles_and_room_are_checked(void **state)
{
    (void)state;
    struct snowflake s = make(1, SNOWFLAKE_MEMBERS);
    int64_t last;
    assert_false(snowflake_grant(&s, 77, 1, 0, T0, NULL));
    assert_true(snowflake_revoke(&s, 5, &last));
    assert_false(snowflake_grant(&s, 6, 1, 0, T0, NULL));
    assert_true(snowflake_grant(&s, 5, 1, 0, T0, NULL));
    assert_false(snowflake_revoke(&s, 5000, &last));
}

/* The list of the retired is taken away by the holder of the leases; until then nobody is added. */
static void a_full_list_of_the_retired_loses_nobody(void **state)
{
    (void)state;
    struct snowflake s = make(1, 2);
    s.nretired = SNOWFLAKE_MEMBERS;
    expect_id(&s, T0 + 50, 1, 100, 0);
    expect_id(&s, T0 + 20, 1, 101, 0);
    assert_int_equal(s.nretired, SNOWFLAKE_MEMBERS);
    assert_int_equal(s.nmembers, 2);
    s.nretired = 0;
    expect_id(&s, T0 + 21, 1, 101, 0);
    expect_id(&s, T0 + 49, 1, 101, 0);
    expect_id(&s, T0 + 50, 1, 101, 0); /* 100 was lower within T0 + 50: no way back to it */
}

static void the_peak_is_that_of_one_millisecond(void **state)
{
    (void)state;
    struct snowflake s = make(1, 1);
    uint64_t first;
    int64_t until, last;
    assert_int_equal(snowflake_peak(&s), 0);
    assert_int_equal(snowflake_next(&s, T0, 3, &first, &until), SNOWFLAKE_OK);
    assert_int_equal(snowflake_peak(&s), 3);
    assert_int_equal(snowflake_next(&s, T0 + 1, 2, &first, &until), SNOWFLAKE_OK);
    assert_int_equal(snowflake_peak(&s), 3);
    assert_int_equal(snowflake_next(&s, T0 + 1, 5, &first, &until), SNOWFLAKE_OK);
    assert_int_equal(snowflake_peak(&s), 7);
    assert_true(snowflake_revoke(&s, 0, &last));
    assert_int_equal(snowflake_peak(&s), 7);
}

/* ---- other layouts ----------------------------------------------------------------------------
 */

/* Units of 10 ms, sequence above workerId: 256 IDs a unit, 65,536 apart. T0 begins a unit. */
static struct snowflake make_sonyflake(struct layout *l)
{
    struct snowflake s;
    assert_int_equal(layout_parse(SPAN("sonyflake"), l, NULL), ERR_OK);
    snowflake_init(&s, EPOCH, l, BELOW, 1);
    return s;
}

static void expect_of(struct snowflake *s, int64_t now, uint32_t n, int64_t unit, uint32_t worker,
                      uint32_t seq)
{
    struct answer a = ask(s, now, n);
    assert_int_equal(a.status, SNOWFLAKE_OK);
    assert_true(a.first == layout_compose(&s->layout, unit - EPOCH, worker, seq));
}

static void a_unit_is_of_one_time(void **state)
{
    (void)state;
    struct layout l;
    struct snowflake s = make_sonyflake(&l);
    assert_true(snowflake_grant(&s, 0, 7, T0 - 1, T0 + 3600000, NULL));
    expect_of(&s, T0, 1, T0, 7, 0);
    expect_of(&s, T0 + 4, 2, T0, 7, 1);
    expect_of(&s, T0 + 9, 253, T0, 7, 3);
    expect_wait(&s, T0 + 9, 1, SNOWFLAKE_FULL, T0 + 10);
    expect_wait(&s, T0 + 5, 1, SNOWFLAKE_FULL, T0 + 10); /* back within the unit: nobody sees it */
    expect_of(&s, T0 + 10, 256, T0 + 10, 7, 0);
    assert_int_equal(snowflake_peak(&s), 256);
    assert_int_equal(s.member[0].last, T0 + 10);
}

static void a_unit_belongs_to_the_range_that_has_its_first_ms(void **state)
{
    (void)state;
    struct layout l;
    struct snowflake s = make_sonyflake(&l);
    /* The range begins within a unit: that one is the holder's before. */
    assert_true(snowflake_grant(&s, 0, 7, T0 + 2, T0 + 25, NULL));
    expect_wait(&s, T0 + 3, 1, SNOWFLAKE_FULL, T0 + 10);
    assert_int_equal(snowflake_peek(&s, T0 + 3), SNOWFLAKE_OK); /* it only queues */
    expect_of(&s, T0 + 10, 1, T0 + 10, 7, 0);
    /* It ends within one, which is this holder's to its end. */
    expect_of(&s, T0 + 20, 1, T0 + 20, 7, 0);
    expect_of(&s, T0 + 29, 1, T0 + 20, 7, 1);
    expect_refusal(&s, T0 + 30, SNOWFLAKE_CEILING);
    int64_t last;
    assert_true(snowflake_revoke(&s, 0, &last) && last == T0 + 20);
    /* So whoever comes next, by this clock or by one that is behind, waits for the next unit. */
    assert_true(snowflake_grant(&s, 1, 7, T0 + 25, T0 + 3600000, NULL));
    expect_wait(&s, T0 + 29, 1, SNOWFLAKE_FULL, T0 + 30);
    expect_wait(&s, T0 + 12, 1, SNOWFLAKE_BEHIND, T0 + 20);
    expect_of(&s, T0 + 30, 1, T0 + 30, 7, 0);
}

static void what_was_given_back_within_a_unit_goes_on_in_the_next(void **state)
{
    (void)state;
    struct layout l;
    struct snowflake s = make_sonyflake(&l);
    int64_t last;
    assert_true(snowflake_grant(&s, 0, 7, T0 - 1, T0 + 3600000, NULL));
    expect_of(&s, T0 + 6, 1, T0, 7, 0);
    assert_true(snowflake_revoke(&s, 0, &last) && last == T0);
    assert_true(snowflake_grant(&s, 1, 7, last, T0 + 3600000, NULL));
    expect_wait(&s, T0 + 7, 1, SNOWFLAKE_FULL, T0 + 10);
    expect_of(&s, T0 + 10, 1, T0 + 10, 7, 0);
}

static void where_the_workerid_is_lowest_another_waits_for_the_next_unit(void **state)
{
    (void)state;
    struct layout l;
    struct snowflake s = make_sonyflake(&l);
    int64_t last;
    assert_true(snowflake_grant(&s, 0, 7, T0 - 1, T0 + 3600000, NULL));
    assert_true(snowflake_grant(&s, 1, 9, T0 - 1, T0 + 3600000, NULL));
    expect_of(&s, T0, 5, T0, 7, 0);
    assert_true(snowflake_revoke(&s, 0, &last));
    expect_wait(&s, T0 + 1, 1, SNOWFLAKE_FULL, T0 + 10); /* 9 with sequence 0 is below 7 with 4 */
    expect_of(&s, T0 + 10, 1, T0 + 10, 9, 0);
}

/* That life changed from 2 to 5 within the unit, or from one to the other. */
static void what_a_life_before_gave_out_of_the_unit_is_not_gone_below(void **state)
{
    (void)state;
    const struct {
        const char *layout;
        uint16_t spare;
        bool waits;
    } cases[] = {
        {"time:36,unit=1s worker:8 sequence:12", 4, true},
        {"time:36,unit=1s worker:8 sequence:12", 6, false},
        {"time:36,unit=1s sequence:12 worker:8", 4, true},
        {"time:36,unit=1s sequence:12 worker:8", 6, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snowflake s;
        struct layout l;
        assert_int_equal(layout_parse(span_str(cases[i].layout), &l, NULL), ERR_OK);
        snowflake_init(&s, EPOCH, &l, BELOW, 1);
        assert_true(snowflake_grant(&s, 0, cases[i].spare, T0 - 1, T0 + 3600000, NULL));
        assert_true(snowflake_grant(&s, 1, 2, T0, T0 + 3600000, NULL));
        assert_true(snowflake_grant(&s, 2, 5, T0, T0 + 3600000, NULL));
        if (cases[i].waits)
            expect_wait(&s, T0 + 300, 1, SNOWFLAKE_FULL, T0 + 1000);
        else
            expect_of(&s, T0 + 300, 1, T0, cases[i].spare, 0);
        expect_of(&s, T0 + 1000, 1, T0 + 1000, cases[i].spare, 0);
    }
}

static void several_come_a_stride_apart(void **state)
{
    (void)state;
    struct layout l;
    struct snowflake s = make_sonyflake(&l);
    uint64_t first, second;
    uint32_t got;
    int64_t until;
    assert_true(snowflake_grant(&s, 0, 7, T0 - 1, T0 + 3600000, NULL));
    assert_int_equal(snowflake_some(&s, T0, 1000, &first, &got, &until), SNOWFLAKE_OK);
    assert_int_equal(got, 256);
    assert_int_equal(snowflake_some(&s, T0 + 10, 3, &first, &got, &until), SNOWFLAKE_OK);
    assert_int_equal(got, 3);
    assert_true(snowflake_more(&s, T0 + 10, 1, &second));
    assert_true(second == first + 3 * 65536);
    assert_false(snowflake_more(&s, T0 + 11, 1, &second)); /* another time is judged anew */
}

static void a_workerid_too_wide_for_the_layout_is_not_taken(void **state)
{
    (void)state;
    struct layout l;
    struct snowflake s;
    assert_int_equal(layout_parse(SPAN("twitter"), &l, NULL), ERR_OK);
    snowflake_init(&s, EPOCH, &l, BELOW, 1);
    assert_false(snowflake_grant(&s, 0, 1024, T0 - 1, T0 + 3600000, NULL));
    assert_true(snowflake_grant(&s, 0, 1023, T0 - 1, T0 + 3600000, NULL));
    expect_of(&s, T0, 4096, T0, 1023, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_rise_and_start_at_0_in_each_millisecond),
        cmocka_unit_test(a_full_millisecond_waits_for_the_next),
        cmocka_unit_test(active_workers_are_used_in_turn_and_never_back),
        cmocka_unit_test(active_workers_are_ordered_however_they_were_granted),
        cmocka_unit_test(a_grant_is_issued_from_above_its_last),
        cmocka_unit_test(a_rollback_of_1_to_14_ms_waits),
        cmocka_unit_test(a_rollback_of_15_ms_rotates_within_the_call),
        cmocka_unit_test(wait_below_0_rotates_at_once),
        cmocka_unit_test(what_is_behind_goes_on_where_the_lowest_stands),
        cmocka_unit_test(the_retired_is_never_issued_from_again),
        cmocka_unit_test(without_a_spare_it_stalls_and_goes_on),
        cmocka_unit_test(a_spare_that_comes_later_takes_over),
        cmocka_unit_test(only_a_spare_whose_range_holds_now_stands_in),
        cmocka_unit_test(above_the_ceiling_nothing_is_touched),
        cmocka_unit_test(a_jump_ahead_and_back_does_not_rotate),
        cmocka_unit_test(a_spare_stands_in_above_a_ceiling_and_nobody_is_retired),
        cmocka_unit_test(the_epoch_bounds_the_time),
        cmocka_unit_test(without_a_worker_nothing_is_issued),
        cmocka_unit_test(order_is_kept_across_a_revocation),
        cmocka_unit_test(the_mark_is_stored_before_an_id_is_returned),
        cmocka_unit_test(some_takes_what_is_left),
        cmocka_unit_test(handles_and_room_are_checked),
        cmocka_unit_test(a_full_list_of_the_retired_loses_nobody),
        cmocka_unit_test(the_peak_is_that_of_one_millisecond),
        cmocka_unit_test(a_unit_is_of_one_time),
        cmocka_unit_test(a_unit_belongs_to_the_range_that_has_its_first_ms),
        cmocka_unit_test(what_was_given_back_within_a_unit_goes_on_in_the_next),
        cmocka_unit_test(where_the_workerid_is_lowest_another_waits_for_the_next_unit),
        cmocka_unit_test(what_a_life_before_gave_out_of_the_unit_is_not_gone_below),
        cmocka_unit_test(several_come_a_stride_apart),
        cmocka_unit_test(a_workerid_too_wide_for_the_layout_is_not_taken),
    };
    return cmocka_run_group_tests_name("ids/snowflake", tests, NULL, NULL);
}
