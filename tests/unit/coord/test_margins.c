/*
 * Schedules that are one margin away from two holders of one time, put to pool.lua in a real Redis
 * and to the SQLite driver. Chance meets them too seldom: tests/model says that they are there.
 */
#include "pair_rig.h"

/* From now on, for long enough for a short floor to pass, nobody is granted what x may use. */
static void is_safe(const struct coord_grant *x)
{
    struct coord_grant y;
    enum coord_status s = claim(90, &y); /* this reopens */
    for (int64_t passed = 0; s != COORD_OK && passed <= A0 + 4 * S; passed += S) {
        assert_int_equal(s, COORD_WAIT);
        pair.clock.ms += S;
        s = claim(90, &y);
    }
    if (s == COORD_OK && y.lo_ms <= x->hi_ms)
        fail_msg("a range from %lld on was granted, while another holder's ends at %lld",
                 (long long)(y.lo_ms - T0), (long long)(x->hi_ms - T0));
}

/* How long a newcomer has to wait for a pool made after a loss; both say how far what was lost may
 * have granted, where that is farther than they do, for the time when they are lost themselves. */
static int64_t waits_after_loss(const struct coord_init *in)
{
    struct coord_grant g;
    enum coord_status s;
    int64_t own = in->params.horizon_ms + 2 * in->params.max_skew_ms;
    int64_t ahead[2];
    pair_wipe(&pair, true);
    BOTH(s, coord_init(c, in, &reply));
    assert_int_equal(s, COORD_OK);
    for (int i = 0; i < 2; i++) {
        struct coord_pool p;
        assert_int_equal(coord_describe(i ? pair.redis : pair.sqlite, &p, &reply), COORD_OK);
        ahead[i] = p.later.ahead_ms;
    }
    assert_int_equal(ahead[0], in->lost_ahead_ms > own ? in->lost_ahead_ms : 0);
    assert_int_equal(ahead[1], ahead[0]);
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

static const char *first_holder(void)
{
    static char who[64];
    struct coord *both[] = {pair.sqlite, pair.redis};
    for (size_t i = 0; i < 2; i++) {
        struct coord_snapshot snap;
        assert_int_equal(coord_snapshot(both[i], &snap, &reply), COORD_OK);
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
    BOTH(s, coord_evict(c, SETUP_IDENTITY, 0, &reply)); /* this reopens */
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
    BOTH(s, coord_evict(c, SETUP_IDENTITY, 0, &reply));
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
        BOTH(s, coord_evict(c, SETUP_IDENTITY, 0, &reply));
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
    BOTH(s, coord_evict(c, SETUP_IDENTITY, 1, &reply));
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
    assert_int_equal(described().tmax_ms, T0 + D0);
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

#define SETTLE INT64_C(60000)

static void init_settling(uint16_t last_worker)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, last_worker);
    enum coord_status s;
    in.settle_ms = SETTLE;
    pair_wipe(&pair, true);
    BOTH(s, coord_init(c, &in, &reply));
    assert_int_equal(s, COORD_OK);
}

/* How long a newcomer waits from now on; *g is what it gets. */
static int64_t waits(uint8_t token, struct coord_grant *g)
{
    int64_t from = pair.clock.ms;
    enum coord_status s;
    while ((s = claim(token, g)) != COORD_OK) {
        assert_int_equal(s, COORD_WAIT);
        pair.clock.ms += reply.wait_ms;
    }
    return pair.clock.ms - from;
}

/* workerId 0 is held by x, whose range is long; the table as it was before that is backup 0. */
static void grow_old(struct coord_grant *x)
{
    pair.clock.ms = T0;
    init_settling(2);
    pair_backup(&pair, 0);
    assert_int_equal(claim(1, x), COORD_OK);
    pair.clock.ms = T0 + D0;
    assert_int_equal(renew(x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(x->hi_ms, T0 + D0 + A);
}

static void a_server_that_was_away_for_long_settles(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init_settling(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_restart(&pair);
    pair.clock.ms = T0 + D0 - 4 * S; /* not short any more */
    assert_int_equal(waits(11, &y), SETTLE + 2 * S + 1);
    assert_int_equal(y.worker, 1);
    assert_int_equal(described().floor_ms, T0 + D0 - 4 * S + A + 2 * S); /* of what is held */
    assert_int_equal(described().later.trust, COORD_TRUST_BET);
}

/* It was heard in time, so nobody gets its workerId; and others that it knows nothing of may be cut
 * off, so nobody gets theirs. */
static void who_knows_more_ends_the_bet(void **state)
{
    (void)state;
    struct coord_grant x, y;
    grow_old(&x);
    pair_restore(&pair, 0, false);
    assert_int_equal(claim(11, &y), COORD_WAIT); /* this reopens */
    assert_int_equal(reply.wait_ms, SETTLE + 2 * S + 1);
    pair.clock.ms += SETTLE;
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_REASSERTED);
    assert_int_equal(described().floor_short_ms, described().topen_ms + A + 2 * S);
    assert_int_equal(described().later.trust, COORD_TRUST_NONE);
    assert_int_equal(waits(12, &y), A + 2 * S + 1 - SETTLE);
    assert_int_not_equal(y.worker, x.worker);
}

/* The same from whoever's range ends too soon to be re-asserted. */
static void who_knows_more_and_is_lost_ends_the_bet(void **state)
{
    (void)state;
    struct coord_grant x, y;
    grow_old(&x);
    pair_restore(&pair, 0, false);
    pair.clock.ms = x.hi_ms;
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_LOST);
    assert_int_equal(described().floor_short_ms, described().topen_ms + A + 2 * S);
}

/* What was lost with the last writes may be a re-assertion, with a range that is long. */
static void after_a_bet_no_gap_is_short(void **state)
{
    (void)state;
    struct coord_grant x, y;
    grow_old(&x);
    pair_restore(&pair, 0, false);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    pair.clock.ms += SETTLE; /* x is heard next, but what it says is lost */
    pair_restart(&pair);
    assert_int_equal(claim(12, &y), COORD_WAIT);
    assert_int_equal(reply.wait_ms, SETTLE + 2 * S + 1);
    assert_int_equal(described().later.trust, COORD_TRUST_BET);
}

static void a_proven_rewind_is_no_bet(void **state)
{
    (void)state;
    struct coord_grant x;
    grow_old(&x);
    pair_backup(&pair, 1);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_RENEWED);
    pair_restore(&pair, 1, true);
    assert_int_equal(renew(&x, 3, 4), COORD_HOW_REASSERTED);
    assert_int_equal(described().floor_short_ms, described().topen_ms + A + 2 * S);
}

/* Whoever renews by the longer one may be heard as late as that. */
static void a_shorter_settle_counts_once_the_longer_has_passed(void **state)
{
    (void)state;
    struct coord_grant y;
    enum coord_status s;
    pair.clock.ms = T0;
    init(0);
    BOTH(s, coord_settle(c, SETUP_IDENTITY, SETTLE, &reply));
    assert_int_equal(s, COORD_OK);
    struct coord_pool p = described();
    assert_int_equal(p.later.settle_ms, SETTLE);
    assert_int_equal(coord_pool_settle(&p, T0 + A + 2 * S - 1), A);
    assert_int_equal(coord_pool_settle(&p, T0 + A + 2 * S), SETTLE);
    pair_restart(&pair);
    pair.clock.ms = T0 + A + 2 * S - 1;
    assert_int_equal(claim(1, &y), COORD_WAIT);
    assert_int_equal(reply.wait_ms, A + 2 * S + 1);
    pair_restart(&pair);
    pair.clock.ms += D0;
    assert_int_equal(claim(1, &y), COORD_WAIT);
    assert_int_equal(described().later.trust, COORD_TRUST_BET);
    BOTH(s, coord_settle(c, SETUP_IDENTITY, 2 * SETTLE, &reply)); /* a longer one at once */
    p = described();
    assert_int_equal(coord_pool_settle(&p, pair.clock.ms), 2 * SETTLE);
    BOTH(s, coord_settle(c, SETUP_IDENTITY, 2 * A, &reply));
    assert_int_equal(described().later.settle_ms, A);
}

/* ---- an operator's word ---------------------------------------------------------------------- */

#define WORD_AFTER (4 * COORD_EVERY_MS + 2 * S)

static void says(const char *what)
{
    if (!strstr(reply.err.text, what))
        fail_msg("expected \"%s\", found \"%s\"", what, reply.err.text);
}

/* A server that was away for long, with all it knew. */
static void a_word_takes_a_reopening_back(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    says("expected a reopening to take back, found none");
    pair_restart(&pair);
    pair.clock.ms = T0 + D0;
    assert_int_equal(claim(11, &y), COORD_WAIT);
    int64_t opened = pair.clock.ms;
    struct coord_pool p = described();
    assert_int_equal(coord_pool_word_from(&p, 2), opened + WORD_AFTER);
    pair.clock.ms = opened + WORD_AFTER - 1;
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    says("expected the time of four renewals");
    pair.clock.ms += 1;
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(reply.era, 2);
    assert_int_equal(described().floor_ms, 0);
    assert_int_equal(described().floor_short_ms, 0);
    assert_int_equal(claim(12, &y), COORD_OK);
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    says("found none");
}

static void a_word_waits_for_those_who_renew_seldom(void **state)
{
    (void)state;
    struct coord_grant x;
    enum coord_status s;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    struct coord_caller by = {.now_ms = T0, .every_ms = 2 * COORD_EVERY_MS};
    struct coord_renewal item;
    struct coord_renewal before = setup_renewal(&x, 1, 2);
    BOTH(s, (item = before, coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply)));
    assert_int_equal(s, COORD_OK);
    x.n = item.n, x.hi_ms = item.hi_ms;
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_RENEWED); /* who renews more often */
    pair_restart(&pair);
    struct coord_grant y;
    assert_int_equal(claim(11, &y), COORD_WAIT);
    pair.clock.ms = T0 + 8 * COORD_EVERY_MS + 2 * S - 1;
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    pair.clock.ms += 1;
    assert_int_equal(nothing_lost(), COORD_OK);
}

static void a_word_is_not_taken_against_who_knows_more(void **state)
{
    (void)state;
    struct coord_grant x;
    grow_old(&x);
    pair_restore(&pair, 0, false);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_REASSERTED);
    pair.clock.ms += WORD_AFTER;
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    says("found one: something was lost");
}

/* Nor against who has a workerId that the table knows nothing of: the pool was made again with
 * others after a loss, and then what had been lost was put back. */
static void a_word_is_not_taken_against_who_has_another_worker(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    struct coord_init others = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    others.params.worker_from = 5;
    pair.clock.ms = T0;
    init(1);
    pair_backup(&pair, 0);
    pair_wipe(&pair, false);
    BOTH(s, coord_init(c, &others, &reply));
    assert_int_equal(s, COORD_OK);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(x.worker, 5);
    pair_restore(&pair, 0, false);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_LOST);
    pair.clock.ms += WORD_AFTER;
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    says("found one: something was lost");
}

/* Two in a row: the second has a short floor, which takes nothing back of the first; nor does a
 * word, which is of the latest alone. */
static void the_floor_of_an_earlier_reopening_stays(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_restart(&pair);
    pair.clock.ms = T0 + D0;
    assert_int_equal(claim(11, &y), COORD_WAIT);
    int64_t floor = described().floor_short_ms;
    assert_int_equal(floor, T0 + D0 + A + 2 * S);
    pair_restart(&pair);
    pair.clock.ms += 1000;
    assert_int_equal(claim(12, &y), COORD_WAIT);
    assert_int_equal(described().floor_short_ms, floor);
    assert_int_equal(described().floor_ms, floor + 1000);
    pair.clock.ms += WORD_AFTER;
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(described().floor_short_ms, floor);
    assert_int_equal(described().floor_ms, floor);
    assert_int_equal(claim(13, &y), COORD_WAIT);
}

static void evict(uint16_t worker)
{
    enum coord_status s;
    BOTH(s, coord_evict(c, SETUP_IDENTITY, worker, &reply));
    assert_int_equal(s, COORD_OK);
}

/* The operator was wrong, and had waited: what was not granted yet is safe again. */
static void who_knows_more_later_brings_the_floors_back(void **state)
{
    (void)state;
    struct coord_grant x, y;
    grow_old(&x);
    pair_restore(&pair, 0, false);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    int64_t opened = pair.clock.ms;
    pair.clock.ms += WORD_AFTER;
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_REASSERTED);
    assert_int_equal(described().floor_ms, opened + A + 2 * S);
    assert_int_equal(described().floor_short_ms, opened + A + 2 * S);
    assert_int_equal(claim(12, &y), COORD_WAIT);
}

/* What was freed since is as any other. */
static void who_knows_more_later_finds_what_was_freed(void **state)
{
    (void)state;
    struct coord_grant x, y, z;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &z), COORD_OK);
    assert_int_equal(claim(2, &y), COORD_OK);
    pair_backup(&pair, 0);
    evict(z.worker);
    pair.clock.ms = z.hi_ms + 1;
    assert_int_equal(claim(3, &x), COORD_OK);
    assert_int_equal(x.worker, z.worker);
    pair.clock.ms += D0;
    assert_int_equal(renew(&x, 3, 4), COORD_HOW_RENEWED);
    assert_int_equal(renew(&y, 2, 5), COORD_HOW_RENEWED);
    pair_restore(&pair, 0, false);
    assert_int_equal(claim(11, &z),
                     COORD_EXHAUSTED); /* stale: until the floor, and then it rests */
    assert_int_equal(reply.wait_ms, A + 2 * S + coord_params_default.grace_ms + 1);
    pair.clock.ms += WORD_AFTER;
    assert_int_equal(nothing_lost(), COORD_OK);
    evict(x.worker);
    assert_int_equal(renew(&y, 5, 6), COORD_HOW_REASSERTED);
    is_safe(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_made_after_a_loss_waits_for_all_that_was_granted),
        cmocka_unit_test(a_claimer_whose_clock_is_off_is_refused),
        cmocka_unit_test(a_holder_of_a_rewound_table_keeps_its_count),
        cmocka_unit_test(a_holder_of_a_rewound_table_has_its_name_again),
        cmocka_unit_test(a_renewal_that_was_answered_before_a_reopening_reasserts),
        cmocka_unit_test(a_late_release_uncovers_nobody),
        cmocka_unit_test(a_late_claim_and_its_release_uncover_nobody),
        cmocka_unit_test(a_gap_in_which_a_tenure_matured_is_not_short),
        cmocka_unit_test(a_clock_that_wanders_makes_no_gap_short),
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
        cmocka_unit_test(a_server_that_was_away_for_long_settles),
        cmocka_unit_test(who_knows_more_ends_the_bet),
        cmocka_unit_test(who_knows_more_and_is_lost_ends_the_bet),
        cmocka_unit_test(after_a_bet_no_gap_is_short),
        cmocka_unit_test(a_proven_rewind_is_no_bet),
        cmocka_unit_test(a_shorter_settle_counts_once_the_longer_has_passed),
        cmocka_unit_test(a_word_takes_a_reopening_back),
        cmocka_unit_test(a_word_waits_for_those_who_renew_seldom),
        cmocka_unit_test(a_word_is_not_taken_against_who_knows_more),
        cmocka_unit_test(a_word_is_not_taken_against_who_has_another_worker),
        cmocka_unit_test(the_floor_of_an_earlier_reopening_stays),
        cmocka_unit_test(who_knows_more_later_brings_the_floors_back),
        cmocka_unit_test(who_knows_more_later_finds_what_was_freed),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/margins", tests, setup, teardown);
}
