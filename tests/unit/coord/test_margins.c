/*
 * Schedules that are one margin away from two holders of one time, put to pool.lua in a real Redis
 * and to the SQLite driver. Chance meets them too seldom: tests/model says that they are there.
 */
#include "support/coord_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The driver's script, in place of the library's: see pair_open. */
extern char pool_lua[];
extern size_t pool_lua_len;
char pool_lua[1 << 16];
size_t pool_lua_len;

#define T0 SETUP_T0_MS
#define A  coord_params_default.horizon_ms
#define A0 coord_params_default.first_horizon_ms
#define D0 coord_params_default.mature_after_ms
#define S  coord_params_default.max_skew_ms

static struct pair pair;
static struct coord_reply reply;

/* Both are asked, and must agree; returns what they say. */
#define BOTH(same, call)                                                                           \
    do {                                                                                           \
        struct coord *c = pair.sqlite;                                                             \
        enum coord_status first = (call);                                                          \
        pair_sync(&pair);                                                                          \
        c = pair.redis;                                                                            \
        (same) = (call);                                                                           \
        assert_int_equal(first, same);                                                             \
    } while (0)

static void init(uint16_t last_worker)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, last_worker);
    enum coord_status s;
    pair_wipe(&pair, true);
    BOTH(s, coord_init(c, &in, &reply));
    assert_int_equal(s, COORD_OK);
}

static enum coord_status claim_at(int64_t caller_ms, uint8_t token, struct coord_grant *g)
{
    enum coord_status s;
    BOTH(s, coord_claim(c, SETUP_IDENTITY, caller_ms, setup_token(token), g, &reply));
    return s;
}

static enum coord_status claim(uint8_t token, struct coord_grant *g)
{
    return claim_at(pair.clock.ms, token, g);
}

/* *g is brought up to date. */
static enum coord_how renew(struct coord_grant *g, uint8_t cur, uint8_t nxt)
{
    const struct coord_renewal before = setup_renewal(g, cur, nxt);
    struct coord_renewal item;
    enum coord_status s;
    BOTH(s, (item = before, coord_renew(c, SETUP_IDENTITY, &item, 1, &reply)));
    assert_int_equal(s, COORD_OK);
    if (item.how != COORD_HOW_LOST)
        g->n = item.n, g->hi_ms = item.hi_ms;
    return item.how;
}

static enum coord_status release(const struct coord_grant *g, uint8_t cur, uint8_t nxt,
                                 int64_t last_ms)
{
    const struct coord_release item = {.worker = g->worker,
                                       .cur = setup_token(cur),
                                       .nxt = setup_token(nxt),
                                       .has_last = true,
                                       .last_ms = last_ms};
    enum coord_status s;
    BOTH(s, coord_release(c, SETUP_IDENTITY, &item, &reply));
    return s;
}

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

/* How long a newcomer has to wait for a pool made after a loss. */
static int64_t waits_after_loss(const struct coord_init *in)
{
    struct coord_grant g;
    enum coord_status s;
    pair_wipe(&pair, true);
    BOTH(s, coord_init(c, in, &reply));
    assert_int_equal(s, COORD_OK);
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

static int setup(void **state)
{
    (void)state;
    pair_open(&pair, pool_lua, sizeof pool_lua, &pool_lua_len);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pair_close(&pair);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_made_after_a_loss_waits_for_all_that_was_granted),
        cmocka_unit_test(a_claimer_whose_clock_is_off_is_refused),
        cmocka_unit_test(a_holder_of_a_rewound_table_keeps_its_count),
        cmocka_unit_test(a_late_release_uncovers_nobody),
        cmocka_unit_test(a_gap_in_which_a_tenure_matured_is_not_short),
        cmocka_unit_test(a_clock_that_wanders_makes_no_gap_short),
        cmocka_unit_test(a_reassertion_gets_a_young_range),
        cmocka_unit_test(a_holder_whose_successor_was_forgotten_is_lost),
        cmocka_unit_test(a_holder_that_the_table_left_behind_is_lost),
        cmocka_unit_test(a_ceiling_beyond_all_grants_is_lost),
        cmocka_unit_test(a_proven_rewind_has_no_short_floor),
        cmocka_unit_test(a_restart_has_the_short_floor_whoever_is_heard_first),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/margins", tests, setup, teardown);
}
