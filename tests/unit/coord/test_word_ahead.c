/*
 * A coordinator's clock that was ahead, a sidecar's with it, and is right again: what an operator's
 * word gives back, and what stays, on all stores.
 */
#include "pair_rig.h"

static enum coord_status word(void)
{
    enum coord_status s;
    ALL(s, coord_clock_was_ahead(c, SETUP_IDENTITY, &reply));
    return s;
}

/* x was granted at T0, and renewed a day ahead; it is T0 + 1 s now. */
static void was_a_day_ahead(struct coord_grant *x)
{
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, x), COORD_OK);
    pair.clock.ms = T0 + DAY;
    assert_int_equal(renew(x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(x->hi_ms, T0 + DAY + A);
    pair_backup(&pair, 0);
    pair.clock.ms = T0 + 1000;
}

static void a_word_has_the_pool_go_on(void **state)
{
    (void)state;
    struct coord_grant x, y;
    was_a_day_ahead(&x);
    assert_int_equal(claim(11, &y), COORD_BADCLOCK);
    assert_int_equal(word(), COORD_OK);
    assert_int_equal(reply.era, 1);
    assert_int_equal(described().later.fence_ms, T0 + DAY);
    assert_int_equal(described().tmax_ms, T0 + 1000);
    assert_int_equal(claim(11, &y), COORD_OK);
    assert_int_not_equal(y.worker, x.worker);
    assert_int_equal(y.hi_ms, T0 + 1000 + A0);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_RENEWED);
    assert_int_equal(x.hi_ms, T0 + DAY + A); /* that is its own */
    assert_int_equal(word(), COORD_OK);      /* said again */
    assert_int_equal(described().later.fence_ms, T0 + DAY);
}

/* An operator's clock that is wrong says nothing of another. SQLite has that of its host alone. */
static void it_is_taken_by_a_clock_that_agrees(void **state)
{
    (void)state;
    struct coord_grant x;
    was_a_day_ahead(&x);
    pair_sync(&pair);
    pair.clock.ms += S + 1;
    assert_int_equal(coord_clock_was_ahead(pair.redis, SETUP_IDENTITY, &reply), COORD_SKEW);
    pair.clock.ms -= 2 * S + 2;
    assert_int_equal(coord_clock_was_ahead(pair.redis, SETUP_IDENTITY, &reply), COORD_SKEW);
    pair.clock.ms += 1;
    assert_int_equal(coord_clock_was_ahead(pair.redis, SETUP_IDENTITY, &reply), COORD_OK);
}

/* The clock may be the one that is wrong now: then none is known to have been ahead. */
static void it_is_taken_from_a_pool_that_is_behind_alone(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair.clock.ms = T0 - 2 * S;
    assert_int_equal(word(), COORD_REFUSED);
    if (!strstr(reply.err.text, "clock was ahead: expected the coordinator's clock to be behind"))
        fail_msg("found \"%s\"", reply.err.text);
    assert_int_equal(described().later.fence_ms, 0);
    assert_int_equal(described().tmax_ms, T0);
    pair.clock.ms = T0 - 2 * S - 1;
    assert_int_equal(word(), COORD_OK);
    pair.clock.ms = T0;
    assert_int_equal(word(), COORD_REFUSED); /* that time has come */
}

/* It was ahead twice: the farthest counts. */
static void the_fence_never_falls(void **state)
{
    (void)state;
    struct coord_grant x;
    was_a_day_ahead(&x);
    assert_int_equal(word(), COORD_OK);
    pair.clock.ms = T0 + DAY / 2;
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_RENEWED);
    pair.clock.ms = T0 + 2000;
    assert_int_equal(word(), COORD_OK);
    assert_int_equal(described().later.fence_ms, T0 + DAY);
    assert_int_equal(described().tmax_ms, T0 + 2000);
}

/* What was granted a day ahead, and is lost: until then nothing is bet, and no gap is short. */
static void reopened_it_goes_by_the_fence(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    was_a_day_ahead(&x);
    ALL(s, coord_settle(c, SETUP_IDENTITY, A0, &reply));
    assert_int_equal(s, COORD_BADCLOCK);
    assert_int_equal(word(), COORD_OK);
    ALL(s, coord_settle(c, SETUP_IDENTITY, A0, &reply));
    assert_int_equal(s, COORD_OK);
    for (unsigned i = 0; i < 2; i++) { /* young, and then a bet */
        pair_restart(&pair);
        assert_int_equal(claim(11, &y), COORD_WAIT);
        assert_int_equal(described().floor_ms, T0 + DAY + A + 2 * S);
        assert_int_equal(described().floor_short_ms, T0 + DAY + A + 2 * S);
        assert_int_equal(described().later.trust, COORD_TRUST_NONE);
        pair.clock.ms += 2 * A;
    }
    pair.clock.ms = T0 + DAY + A + 2 * S;
    pair_restart(&pair); /* from then on as ever */
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(described().later.trust, COORD_TRUST_BET);
}

/* The data that come back are of the time when it was ahead: what was granted then is lost. */
static void a_word_for_data_that_came_back_goes_by_the_fence(void **state)
{
    (void)state;
    struct coord_grant x, y;
    was_a_day_ahead(&x);
    pair.clock.ms = T0 + DAY + 1000;
    assert_int_equal(claim(11, &y), COORD_OK);
    pair_restore(&pair, 0, false);
    pair.clock.ms = T0 + 1000;
    assert_int_equal(word(), COORD_OK);
    assert_int_equal(described().floor_short_ms, T0 + DAY + A + 2 * S);
    assert_int_equal(claim(12, &y), COORD_WAIT);
}

/* A holder's pool could grant more: from the fence on, too. */
static void what_is_learnt_counts_from_the_fence(void **state)
{
    (void)state;
    struct coord_grant x;
    enum coord_status s;
    was_a_day_ahead(&x);
    assert_int_equal(word(), COORD_OK);
    struct coord_caller by = {.now_ms = T0 + 1000, .ahead_ms = 2 * A};
    struct coord_renewal item, before = setup_renewal(&x, 2, 3);
    ALL(s, (item = before, coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply)));
    assert_int_equal(s, COORD_OK);
    assert_int_equal(described().floor_ms, T0 + DAY + 2 * A);
    assert_int_equal(described().floor_short_ms, T0 + DAY + 2 * A);
}

/* A tenure that began while it was ahead is young now, and no longer than others. */
static void a_tenure_of_then_grows_old(void **state)
{
    (void)state;
    struct coord_grant x, y;
    was_a_day_ahead(&x);
    pair.clock.ms = T0 + DAY;
    assert_int_equal(claim(11, &y), COORD_OK);
    y.hi_ms = 0; /* a holder that was granted less, by a clock that was right */
    pair.clock.ms = T0 + 1000;
    assert_int_equal(word(), COORD_OK);
    assert_int_equal(renew(&y, 11, 12), COORD_HOW_RENEWED);
    assert_int_equal(y.hi_ms, T0 + 1000 + A0);
    y.hi_ms = 0;
    pair.clock.ms += D0 - 1;
    assert_int_equal(renew(&y, 12, 13), COORD_HOW_RENEWED);
    assert_int_equal(y.hi_ms, T0 + 1000 + D0 - 1 + A0);
    y.hi_ms = 0;
    pair.clock.ms += 1;
    assert_int_equal(renew(&y, 13, 14), COORD_HOW_RENEWED);
    assert_int_equal(y.hi_ms, T0 + 1000 + D0 + A);
}

/* x was lost by a table that was set back, and its workerId granted to another, above it, while the
 * clock was ahead: x's next ranges would be of that time. */
static void who_was_passed_over_meanwhile_is_lost(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(1);
    pair_backup(&pair, 1);
    assert_int_equal(claim(1, &x), COORD_OK);
    for (uint8_t i = 1; i < 9; i++)
        assert_int_equal(renew(&x, i, (uint8_t)(i + 1)), COORD_HOW_RENEWED);
    pair_restore(&pair, 1, false);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    pair.clock.ms = T0 + DAY;
    assert_int_equal(claim(11, &y), COORD_OK);
    assert_int_equal(y.worker, x.worker);
    pair.clock.ms = T0 + 1000;
    assert_int_equal(word(), COORD_OK);
    assert_int_equal(renew(&x, 9, 10), COORD_HOW_LOST);
}

/* Redis' host boots with a clock that is a day ahead, and a sidecar of that host asks: y, whose
 * clock is right, goes on. */
static void who_was_held_when_it_reopened_ahead_goes_on(void **state)
{
    (void)state;
    struct coord_grant y, z;
    enum coord_status s;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &y), COORD_OK);
    pair.clock.ms = T0 + D0;
    assert_int_equal(renew(&y, 1, 2), COORD_HOW_RENEWED);
    pair_restart(&pair);
    pair.clock.ms = T0 + D0 + DAY;
    assert_int_equal(claim(11, &z), COORD_WAIT);
    pair.clock.ms = T0 + D0 + 1000;
    (void)renew_at(pair.clock.ms, &y, 2, 3, &s);
    assert_int_equal(s, COORD_BADCLOCK);
    assert_int_equal(word(), COORD_OK);
    assert_int_equal(described().topen_ms, T0 + D0 + 1000);
    assert_int_equal(renew(&y, 2, 3), COORD_HOW_REASSERTED);
    assert_int_equal(claim(11, &z), COORD_WAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_has_the_pool_go_on),
        cmocka_unit_test(it_is_taken_by_a_clock_that_agrees),
        cmocka_unit_test(it_is_taken_from_a_pool_that_is_behind_alone),
        cmocka_unit_test(the_fence_never_falls),
        cmocka_unit_test(reopened_it_goes_by_the_fence),
        cmocka_unit_test(a_word_for_data_that_came_back_goes_by_the_fence),
        cmocka_unit_test(what_is_learnt_counts_from_the_fence),
        cmocka_unit_test(a_tenure_of_then_grows_old),
        cmocka_unit_test(who_was_passed_over_meanwhile_is_lost),
        cmocka_unit_test(who_was_held_when_it_reopened_ahead_goes_on),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
