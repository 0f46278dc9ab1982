/*
 * Schedules that are one margin away from two holders of one time, put to pool.lua in a real Redis
 * and to the SQLite driver. Chance meets them too seldom: tests/model says that they are there.
 */
#include "pair_rig.h"

/* How long a newcomer has to wait for a pool made after a loss; both say how far what was lost may
 * have granted, where that is farther than they do, for the time when they are lost themselves. */
static int64_t waits_after_loss(const struct coord_init *in)
{
    struct coord_grant g;
    enum coord_status s;
    int64_t own = in->params.horizon_ms + 2 * in->params.max_skew_ms;
    pair_wipe(&pair, true);
    ALL(s, coord_init(c, in, &reply));
    assert_int_equal(s, COORD_OK);
    for (size_t i = 0; i < PAIR_SIDES; i++) {
        struct coord_pool p;
        assert_int_equal(coord_describe(pair_side(&pair, i), &p, &reply), COORD_OK);
        assert_int_equal(p.later.ahead_ms, in->lost_ahead_ms > own ? in->lost_ahead_ms : 0);
    }
    assert_int_equal(claim(1, &g), COORD_WAIT);
    int64_t ms = reply.wait_ms;
    pair.clock.ms += ms - 1;
    assert_int_equal(claim(1, &g), COORD_WAIT);
    pair.clock.ms += 1;
    assert_int_equal(claim(1, &g), COORD_OK);
    assert_true(g.lo_ms <= pair.clock.ms);
    return ms;
}

/* The last one granted by what was lost had a ceiling of A above a clock that was fast by S, and
 * the clock that the floor is stamped with may be slow by S. */
static void a_pool_made_after_a_loss_waits_for_all_that_was_granted(void **state)
{
    (void)state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_AFTER_LOSS, 0);
    const struct coord_params *k = &in.params;
    pair.clock.ms = T0;
    assert_int_equal(waits_after_loss(&in), k->horizon_ms + 2 * k->max_skew_ms + 1);
    in.lost_ahead_ms = COORD_AHEAD_MAX_MS; /* it was not said how far ahead */
    assert_int_equal(waits_after_loss(&in), COORD_AHEAD_MAX_MS + 1);
    in.lost_ahead_ms = 1; /* less than this pool may itself, which may be the one that was lost */
    assert_int_equal(waits_after_loss(&in), k->horizon_ms + 2 * k->max_skew_ms + 1);
}

static void a_claimer_whose_clock_is_off_is_refused(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim_at(T0 + S + 1, 1, &x), COORD_SKEW);
    assert_int_equal(claim_at(T0 - S - 1, 1, &x), COORD_SKEW);
    assert_int_equal(claim_at(T0 + S, 1, &x), COORD_OK);
    assert_int_equal(claim_at(T0 - S, 2, &x), COORD_OK);
}

/* Log and page say it, and whoever waits asks again then. */
static void of_those_that_rest_the_first_is_waited_for(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct coord_grant x[2], y;
        pair.clock.ms = T0;
        init(1);
        for (uint8_t i = 0; i < 2; i++)
            assert_int_equal(claim(i + 1, &x[i]), COORD_OK);
        for (uint8_t i = 0; i < 2; i++)
            assert_int_equal(release(&x[i], i + 1, i + 1, T0 + (i == first ? 10000 : 20000)),
                             COORD_OK);
        assert_int_equal(claim(3, &y), COORD_WAIT);
        assert_int_equal(reply.wait_ms, 10001);
        pair.clock.ms += reply.wait_ms;
        assert_int_equal(claim(3, &y), COORD_OK);
        assert_int_equal(y.worker, x[first].worker);
    }
}

/* Its next rewind is told by the count, so what it lost once must not lower it. */
static void a_holder_of_a_rewound_table_keeps_its_count(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(0);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_RENEWED);
    assert_int_equal(x.n, 3);
    pair_restore(&pair, 0, false);
    assert_int_equal(renew(&x, 3, 4), COORD_HOW_REASSERTED);
    assert_int_equal(x.n, 4);
}

/* What the table records then covers all that others may have been granted by the one that was
 * lost. */
static void a_reassertion_that_is_repeated_uncovers_no_more(void **state)
{
    (void)state;
    struct coord_grant x, late;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    late = x;
    pair_restart(&pair);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
    assert_int_equal(x.hi_ms, T0 + A0);
    assert_int_equal(renew(&late, 1, 2), COORD_HOW_AGAIN);
    assert_int_equal(late.hi_ms, T0 + A0);
    pair.clock.ms += D0; /* now it is old enough, for what was recorded */
    assert_int_equal(renew(&late, 1, 2), COORD_HOW_AGAIN);
    assert_int_equal(late.hi_ms, T0 + A + 2 * S);
}

static const char *first_holder(void)
{
    static char who[64];
    for (size_t i = 0; i < PAIR_SIDES; i++) {
        struct coord_snapshot snap;
        assert_int_equal(coord_snapshot(pair_side(&pair, i), &snap, &reply), COORD_OK);
        assert_true(snap.nworkers > 0 && snap.workers[0].held);
        const char *found = snap.workers[0].who ? snap.workers[0].who : "";
        if (i > 0)
            assert_string_equal(found, who);
        (void)snprintf(who, sizeof who, "%s", found);
        coord_snapshot_clear(&snap);
    }
    return who;
}

/* A renewal says who holds it; else nobody would know it until the next claim. */
static void a_holder_of_a_rewound_table_has_its_name_again(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(0);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_string_equal(first_holder(), SETUP_WHO);
    pair_restore(&pair, 0, false);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
    assert_string_equal(first_holder(), SETUP_WHO);
}

/* Its reply was lost, and then the server: the record is made one of this era all the same. */
static void a_renewal_that_was_answered_before_a_reopening_reasserts(void **state)
{
    (void)state;
    struct coord_grant x, unheard;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    unheard = x;
    assert_int_equal(renew(&unheard, 1, 2), COORD_HOW_RENEWED);
    pair_restart(&pair);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_AGAIN);
}

/* A claim and a release of x come once more, after y was there. */
static void a_late_claim_and_its_release_uncover_nobody(void **state)
{
    (void)state;
    struct coord_grant x, y, z, late;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(release(&x, 1, 1, x.lo_ms - 1), COORD_OK);
    assert_int_equal(claim(2, &y), COORD_OK);
    assert_int_equal(release(&y, 2, 2, T0 - 1), COORD_OK);
    assert_int_equal(claim(1, &late), COORD_OK);
    assert_int_equal(release(&x, 1, 1, x.lo_ms - 1), COORD_OK);
    assert_int_equal(claim(3, &z), COORD_WAIT);
    pair.clock.ms += A0 + 1;
    assert_int_equal(claim(3, &z), COORD_OK);
    assert_true(z.lo_ms > T0 - 1);
}

/* Its reply was lost, and then the holder leaves: what it did not use is free. */
static void a_release_after_a_renewal_that_was_not_heard_says_what_was_used(void **state)
{
    (void)state;
    struct coord_grant x, unheard, z;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    unheard = x;
    assert_int_equal(renew(&unheard, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(release(&x, 1, 2, T0), COORD_OK);
    pair.clock.ms++;
    assert_int_equal(claim(3, &z), COORD_OK);
    assert_int_equal(z.lo_ms, T0 + 1);
}

/* A renewal and a release of x come once more, when the table has forgotten y, who came after x. */
static void a_late_release_uncovers_nobody(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_backup(&pair, 0);
    assert_int_equal(release(&x, 1, 2, T0 - 1), COORD_OK);
    assert_int_equal(claim(5, &y), COORD_OK);
    assert_int_equal(y.lo_ms, T0);
    pair_restore(&pair, 0, false);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
    assert_int_equal(release(&x, 1, 2, T0 - 1), COORD_OK);
    is_safe(&y);
}

/* A tenure begins after the snapshot, and is mature before the rewind. The first server's clock is
 * fast, the second's slow, so that the gap looks 2S shorter than it was. */
static void a_gap_in_which_a_tenure_matured_is_not_short(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0 + S;
    init(0);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair.clock.ms = T0 + D0 + S;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(x.hi_ms, T0 + D0 + S + A);
    pair_restore(&pair, 0, false);
    pair.clock.ms = T0 + D0 - S;
    is_safe(&x);
}

/* The same with one clock that wanders: fast at the snapshot, slow when the tenure begins, fast
 * when it is mature by that, slow at the rewind. The gap looks 4S shorter than the tenure. */
static void a_clock_that_wanders_makes_no_gap_short(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0 + S;
    init(0);
    pair_backup(&pair, 0);
    pair.clock.ms = T0 - S;
    assert_int_equal(claim(1, &x), COORD_OK);
    pair.clock.ms = T0 - S + D0;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(x.hi_ms, T0 - S + D0 + A);
    pair_restore(&pair, 0, false);
    pair.clock.ms = T0 - 3 * S + D0;
    is_safe(&x);
}

/* And its age is told by the same clock, whatever the claimer's shows. */
static void a_claimer_that_is_slow_makes_no_gap_short(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0 + S;
    init(0);
    pair_backup(&pair, 0);
    pair.clock.ms = T0 - S;
    assert_int_equal(claim_at(T0 - 2 * S, 1, &x), COORD_OK);
    pair.clock.ms = T0 - 2 * S + D0;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    pair_restore(&pair, 0, false);
    pair.clock.ms = T0 - 4 * S + D0;
    is_safe(&x);
}

/* What a re-assertion gets may be lost again, and then stands below a short floor. */
static void a_reassertion_gets_a_young_range(void **state)
{
    (void)state;
    struct coord_grant x;
    enum coord_status s;
    pair.clock.ms = T0;
    init(0);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_restore(&pair, 0, false);
    ALL(s, coord_evict(c, SETUP_IDENTITY, 0, &reply)); /* this reopens */
    assert_int_equal(s, COORD_LOST);
    pair_backup(&pair, 1);
    pair.clock.ms = T0 + S;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
    assert_int_equal(x.hi_ms, T0 + S + A0);
    pair_restore(&pair, 1, false);
    is_safe(&x);
}

/* y, whose clock is fast, claims from a fast server what x held until then. A slow server that has
 * forgotten y hears x: 1 ms more in x's ceiling, and y could not have claimed. */
static void a_holder_whose_successor_was_forgotten_is_lost(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_backup(&pair, 0);
    pair.clock.ms = x.hi_ms + 1 - S;
    ALL(s, coord_evict(c, SETUP_IDENTITY, 0, &reply));
    assert_int_equal(s, COORD_OK);
    assert_int_equal(claim_at(pair.clock.ms + S, 5, &y), COORD_OK);
    assert_int_equal(y.lo_ms, x.hi_ms + 1);
    pair_restore(&pair, 0, false);
    pair.clock.ms -= 2 * S;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_LOST);
    assert_int_equal(reply.era, 2);
}

/* Also where the reply that told of the last renewal was lost, or the server has restarted; but not
 * a holder whose last renewal was forgotten before the operator came. */
static void a_holder_is_told_that_an_operator_released_it(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct coord_grant x;
        enum coord_status s;
        pair.clock.ms = T0;
        init(0);
        assert_int_equal(claim(1, &x), COORD_OK);
        pair_backup(&pair, 0);
        assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
        if (i == 3)
            pair_restore(&pair, 0, true);
        ALL(s, coord_evict(c, SETUP_IDENTITY, 0, &reply));
        assert_int_equal(s, COORD_OK);
        if (i == 2)
            pair_restart(&pair);
        assert_int_equal(i == 1 ? renew(&x, 1, 2) : renew(&x, 2, 3), COORD_HOW_LOST);
        assert_int_equal(was_released, i < 3);
    }
}

/* x was given back and is y's by now, when an older state of x's page is put back in its place. */
static void a_holder_that_the_table_left_behind_is_lost(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(release(&x, 1, 1, T0 - 1), COORD_OK);
    assert_int_equal(claim(5, &y), COORD_OK);
    pair_restart(&pair);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_LOST);
    assert_int_equal(renew(&y, 5, 6), COORD_HOW_REASSERTED);
}

/* Nobody was granted it; a workerId would be out of use until then. */
static void a_ceiling_beyond_all_grants_is_lost(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_restart(&pair);
    x.hi_ms = T0 + A + 2 * S + 1;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_LOST);
    x.hi_ms--;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
}

/* Rewound where no fingerprint tells, and touched before a holder is heard: tmax says nothing. */
static void a_proven_rewind_has_no_short_floor(void **state)
{
    (void)state;
    struct coord_grant x, other;
    enum coord_status s;
    pair.clock.ms = T0;
    init(1);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(claim(11, &other), COORD_OK);
    pair.clock.ms = T0 + D0;
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(renew(&other, 11, 12), COORD_HOW_RENEWED);
    pair_restore(&pair, 0, true);
    ALL(s, coord_evict(c, SETUP_IDENTITY, 1, &reply));
    assert_int_equal(s, COORD_LOST);
    assert_int_equal(renew(&other, 12, 13), COORD_HOW_REASSERTED);
    is_safe(&x);
}

/* After an ordinary restart that lost the last second, whoever calls first: tmax bounds what was
 * lost, and a newcomer waits for the short floor alone. */
static void a_restart_has_the_short_floor_whoever_is_heard_first(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair.clock.ms = T0 + 10000;
    pair_backup(&pair, 0);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    pair_restore(&pair, 0, false);
    pair.clock.ms = T0 + 11000;
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_REASSERTED);
    pair.clock.ms += A0 + 2 * S;
    assert_int_equal(claim(11, &y), COORD_WAIT);
    pair.clock.ms += 1;
    assert_int_equal(claim(12, &y), COORD_OK);
    assert_int_not_equal(x.worker, y.worker);
}

/* Followed, it would keep the pool from everybody for a day, once it is right again. */
static void a_clock_that_is_a_day_ahead_is_not_followed(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair.clock.ms = T0 + 1000 + 2 * S; /* as far ahead as is followed */
    assert_int_equal(renew_at(T0 + 1000, &x, 1, 2, &s), COORD_HOW_RENEWED);
    assert_int_equal(x.hi_ms, T0 + 1000 + 2 * S + A0);
    assert_int_equal(described().tmax_ms, T0 + 1000 + 2 * S);
    pair.clock.ms = T0 + DAY;
    assert_int_equal(renew_at(T0 + 6000, &x, 2, 3, &s), COORD_HOW_RENEWED);
    assert_int_equal(x.hi_ms, T0 + 6000 + A0); /* young, though a day seems to have passed */
    assert_int_equal(described().tmax_ms, T0 + 6000);
    pair.clock.ms = T0 + 7000;
    assert_int_equal(claim(11, &y), COORD_OK);
    assert_int_equal(renew(&x, 3, 4), COORD_HOW_RENEWED);
}

/* Its own ceiling follows its clock, and nothing else does. */
static void a_holder_that_is_a_day_slow_takes_nothing_from_others(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(claim(11, &y), COORD_OK);
    pair.clock.ms = T0 + D0;
    assert_int_equal(renew(&y, 11, 12), COORD_HOW_RENEWED);
    int64_t hi = x.hi_ms;
    pair.clock.ms += 1;
    assert_int_equal(renew_at(T0 - DAY, &x, 1, 2, &s), COORD_HOW_RENEWED);
    assert_int_equal(x.hi_ms, hi);
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct coord_pool p;
        (void)coord_describe(pair_side(&pair, side), &p, &reply);
        assert_int_equal(p.tmax_ms, T0 + D0);
    }
    pair.clock.ms -= 1;
    assert_int_equal(renew(&y, 12, 13), COORD_HOW_RENEWED);
    assert_int_equal(y.hi_ms, T0 + D0 + A);
}

/* Floors a day too high would keep everybody waiting, and topen would refuse all holders. */
static void a_reopening_waits_for_a_caller_whose_clock_agrees(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_restart(&pair);
    pair.clock.ms = T0 + DAY;
    (void)renew_at(T0 + 1000, &x, 1, 2, &s);
    assert_int_equal(s, COORD_SKEW);
    assert_int_equal(described().topen_ms, T0);
    pair.clock.ms = T0 + 2000;
    (void)renew_at(T0 + 2000 + S + 1, &x, 1, 2, &s);
    assert_int_equal(s, COORD_SKEW);
    (void)renew_at(T0 + 2000 - S - 1, &x, 1, 2, &s);
    assert_int_equal(s, COORD_SKEW);
    assert_int_equal(claim_at(T0 + 2000 - S, 11, &y), COORD_WAIT); /* this reopens */
    assert_int_equal(described().topen_ms, T0 + 2000);
    assert_int_equal(renew_at(T0 - DAY, &x, 1, 2, &s), COORD_HOW_REASSERTED);
}

/* The next claim would not know of what it proves. */
static void a_proof_is_heard_whatever_the_clock(void **state)
{
    (void)state;
    struct coord_grant x, other;
    enum coord_status s;
    pair.clock.ms = T0;
    init(1);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(claim(11, &other), COORD_OK);
    pair_restore(&pair, 0, true);
    assert_int_equal(renew_at(T0 - DAY, &other, 11, 12, &s), COORD_HOW_REASSERTED);
    assert_int_equal(described().floor_short_ms, T0 + A + 2 * S);
    is_safe(&x);
}

/* ---- a bet on settle ------------------------------------------------------------------------- */

/* What the script cannot find in INFO it finds here in a hash. */
static void a_redis_without_a_fingerprint_is_refused(void **state)
{
    (void)state;
    struct coord_reply r;
    struct coord_pool pool;
    char out[64];
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    pair_sync(&pair);
    assert_true(SERVER_DO(&pair.server, out, "HDEL", "sidflake:{p}:test", "fp"));
    assert_int_equal(coord_init(pair.redis, &in, &r), COORD_REFUSED);
    assert_non_null(strstr(r.err.text, "found: no field of 40 digits"));
    assert_int_equal(coord_describe(pair.redis, &pool, &r), COORD_REFUSED);
    assert_non_null(strstr(r.err.text, "found: no field of 40 digits"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_made_after_a_loss_waits_for_all_that_was_granted),
        cmocka_unit_test(a_claimer_whose_clock_is_off_is_refused),
        cmocka_unit_test(a_reassertion_that_is_repeated_uncovers_no_more),
        cmocka_unit_test(of_those_that_rest_the_first_is_waited_for),
        cmocka_unit_test(a_holder_of_a_rewound_table_keeps_its_count),
        cmocka_unit_test(a_holder_of_a_rewound_table_has_its_name_again),
        cmocka_unit_test(a_renewal_that_was_answered_before_a_reopening_reasserts),
        cmocka_unit_test(a_late_release_uncovers_nobody),
        cmocka_unit_test(a_release_after_a_renewal_that_was_not_heard_says_what_was_used),
        cmocka_unit_test(a_late_claim_and_its_release_uncover_nobody),
        cmocka_unit_test(a_gap_in_which_a_tenure_matured_is_not_short),
        cmocka_unit_test(a_clock_that_wanders_makes_no_gap_short),
        cmocka_unit_test(a_claimer_that_is_slow_makes_no_gap_short),
        cmocka_unit_test(a_reassertion_gets_a_young_range),
        cmocka_unit_test(a_holder_whose_successor_was_forgotten_is_lost),
        cmocka_unit_test(a_holder_is_told_that_an_operator_released_it),
        cmocka_unit_test(a_holder_that_the_table_left_behind_is_lost),
        cmocka_unit_test(a_ceiling_beyond_all_grants_is_lost),
        cmocka_unit_test(a_proven_rewind_has_no_short_floor),
        cmocka_unit_test(a_restart_has_the_short_floor_whoever_is_heard_first),
        cmocka_unit_test(a_clock_that_is_a_day_ahead_is_not_followed),
        cmocka_unit_test(a_holder_that_is_a_day_slow_takes_nothing_from_others),
        cmocka_unit_test(a_reopening_waits_for_a_caller_whose_clock_agrees),
        cmocka_unit_test(a_proof_is_heard_whatever_the_clock),
        cmocka_unit_test(a_redis_without_a_fingerprint_is_refused),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/margins", tests, setup, teardown);
}
