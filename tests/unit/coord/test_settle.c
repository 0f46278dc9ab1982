/* A pool that bets on being told by all who live, and an operator's word: Redis and SQLite alike.
 */
#include "pair_rig.h"

#define SETTLE INT64_C(60000)

static void init_settling(uint16_t last_worker)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, last_worker);
    enum coord_status s;
    in.settle_ms = SETTLE;
    pair_wipe(&pair, true);
    ALL(s, coord_init(c, &in, &reply));
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

/* ... as long as any that is re-asserted can be, which is what a holder's pool may have granted. */
static void after_a_bet_no_gap_is_short_for_who_was_granted_more(void **state)
{
    (void)state;
    const struct coord_grant stranger = {.worker = 2, .n = 1, .hi_ms = T0};
    struct coord_grant x, y;
    grow_old(&x);
    const struct coord_caller by = {.now_ms = pair.clock.ms, .ahead_ms = 4 * A};
    const struct coord_renewal before = setup_renewal(&stranger, 91, 92);
    struct coord_renewal item;
    enum coord_status s;
    ALL(s, (item = before, coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply)));
    assert_int_equal(s, COORD_OK);
    pair.clock.ms = T0 + 5 * A; /* the floors that this raised have passed */
    pair_restart(&pair);
    assert_int_equal(waits(11, &y), SETTLE + 2 * S + 1);
    pair.clock.ms += A + 4 * S;
    assert_int_equal(release(&y, 11, 11, pair.clock.ms), COORD_OK);
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
    ALL(s, coord_settle(c, SETUP_IDENTITY, SETTLE, &reply));
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
    ALL(s, coord_settle(c, SETUP_IDENTITY, 2 * SETTLE, &reply)); /* a longer one at once */
    p = described();
    assert_int_equal(coord_pool_settle(&p, pair.clock.ms), 2 * SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, 2 * A, &reply));
    assert_int_equal(described().later.settle_ms, A);
}

/* Data of a time with the shorter one may come back, and whoever starts since is to know of it. */
static void the_shortest_that_was_raised_is_kept(void **state)
{
    (void)state;
    enum coord_status s;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(described().later.least_ms, 0);
    ALL(s, coord_settle(c, SETUP_IDENTITY, 2 * SETTLE, &reply));
    assert_int_equal(s, COORD_OK);
    assert_int_equal(described().later.least_ms, 0);
    ALL(s, coord_settle(c, SETUP_IDENTITY, 3 * SETTLE, &reply));
    assert_int_equal(described().later.least_ms, 2 * SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, SETTLE, &reply));
    assert_int_equal(described().later.least_ms, 2 * SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, A, &reply));
    assert_int_equal(described().later.least_ms, SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, 2 * SETTLE, &reply));
    ALL(s, coord_settle(c, SETUP_IDENTITY, A, &reply));
    assert_int_equal(described().later.least_ms, SETTLE);
    assert_int_equal(described().later.settle_ms, A);
}

/* Data of the time of the pool that was lost may come back as well. */
static void the_shortest_that_a_lost_pool_had_is_kept(void **state)
{
    (void)state;
    enum coord_status s;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_AFTER_LOSS, 2);
    pair.clock.ms = T0;
    pair_wipe(&pair, true);
    in.settle_ms = 3 * SETTLE;
    for (int longer = 0; longer < 2; longer++) {
        in.least_ms = longer ? A + 1 : A0 - 1;
        ALL(s, coord_init(c, &in, &reply));
        assert_int_equal(s, COORD_REFUSED);
        assert_non_null(strstr(reply.err.text, "least-settle: expected first-horizon to horizon"));
    }
    in.least_ms = SETTLE;
    ALL(s, coord_init(c, &in, &reply));
    assert_int_equal(s, COORD_OK);
    for (size_t i = 0; i < PAIR_SIDES; i++) {
        struct coord_pool p;
        assert_int_equal(coord_describe(pair_side(&pair, i), &p, &reply), COORD_OK);
        assert_int_equal(p.later.settle_ms, 3 * SETTLE);
        assert_int_equal(p.later.least_ms, SETTLE);
        assert_int_equal(coord_pool_least_settle(&p), SETTLE);
    }
    ALL(s, coord_settle(c, SETUP_IDENTITY, A, &reply));
    assert_int_equal(described().later.least_ms, SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, A0, &reply));
    assert_int_equal(described().later.least_ms, SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, A, &reply));
    assert_int_equal(described().later.least_ms, A0);
}

/* Said again, or longer by a little, it is the one that already waits. */
static void a_settle_said_twice_waits_once(void **state)
{
    (void)state;
    enum coord_status s;
    pair.clock.ms = T0;
    init(0);
    ALL(s, coord_settle(c, SETUP_IDENTITY, SETTLE, &reply));
    assert_int_equal(s, COORD_OK);
    pair.clock.ms += A / 2;
    ALL(s, coord_settle(c, SETUP_IDENTITY, SETTLE, &reply));
    ALL(s, coord_settle(c, SETUP_IDENTITY, 2 * SETTLE, &reply));
    struct coord_pool p = described();
    assert_int_equal(coord_pool_settle(&p, T0 + A + 2 * S - 1), A);
    assert_int_equal(coord_pool_settle(&p, T0 + A + 2 * S), 2 * SETTLE);
    ALL(s, coord_settle(c, SETUP_IDENTITY, SETTLE, &reply)); /* that one nobody may have heard */
    p = described();
    assert_int_equal(coord_pool_settle(&p, T0 + A / 2 + A + 2 * S - 1), A);
    ALL(s, coord_settle(c, SETUP_IDENTITY, A, &reply));
    p = described();
    assert_int_equal(p.later.settle_from_ms, 0);
    assert_int_equal(coord_pool_settle(&p, pair.clock.ms), A);
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
    ALL(s, (item = before, coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply)));
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
    ALL(s, coord_init(c, &others, &reply));
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
    ALL(s, coord_evict(c, SETUP_IDENTITY, worker, &reply));
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

/* A holder whom this pool does not know of, and cannot have had before it was born. */
static void a_stranger(int64_t hi_ms, int64_t ahead_ms)
{
    const struct coord_caller by = {.now_ms = pair.clock.ms, .ahead_ms = ahead_ms};
    const struct coord_grant g = {.worker = 2, .n = 1, .hi_ms = hi_ms};
    const struct coord_renewal before = setup_renewal(&g, 91, 92);
    struct coord_renewal item;
    enum coord_status s;
    ALL(s, (item = before,
            coord_renew(c, SETUP_IDENTITY_OTHER, &by, &item, 1, setup_terms(), &reply)));
    assert_int_equal(s, COORD_WRONGPOOL);
}

/* It is `since_born` old, and comes back as it was `gap` ago, when two workerIds were granted. */
static void come_back(int64_t since_born, int64_t gap)
{
    struct coord_grant x;
    pair.clock.ms = T0;
    init_settling(2);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair.clock.ms = T0 + since_born - gap;
    assert_int_equal(claim(2, &x), COORD_OK);
    pair_backup(&pair, 0);
    pair.clock.ms = T0 + since_born;
    pair_restore(&pair, 0, false);
}

/* The data that came back are older than a pool that was made in this one's place. What is above
 * the first floors cannot be of one before; and above the reopening's, of none that was replaced.
 */
static void a_later_pools_holder_ends_the_bet(void **state)
{
    (void)state;
    const int64_t opened = T0 + A;
    const struct {
        int64_t hi_ms;
        bool heard;
    } strangers[] = {
        {T0 + A + 2 * S, false},
        {T0 + A + 2 * S + 1, true},
        {opened + A + 2 * S, true},
        {opened + A + 2 * S + 1, false},
    };
    struct coord_grant y;
    for (unsigned i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        bool heard = strangers[i].heard;
        come_back(A, D0);
        a_stranger(T0 + 2 * A, 0); /* a new server reopens first */
        assert_int_equal(claim(11, &y), COORD_WAIT);
        assert_int_equal(described().later.trust, COORD_TRUST_BET);
        pair.clock.ms += 3 * S; /* all that was granted before this pool was born has ended */
        a_stranger(strangers[i].hi_ms, A + 2 * S);
        assert_int_equal(described().later.trust, heard ? COORD_TRUST_NONE : COORD_TRUST_BET);
        assert_int_equal(described().floor_short_ms, opened + (heard ? A : SETTLE) + 2 * S);
        assert_int_equal(waits(12, &y), (heard ? A : SETTLE) + 1 - S);
        assert_int_equal(nothing_lost(), COORD_REFUSED);
        if (heard)
            says("something was lost");
    }
}

/* How short a gap may be is this pool's notion: the other one's tenures may grow old sooner. */
static void beside_a_later_pools_holder_no_gap_is_short(void **state)
{
    (void)state;
    struct coord_grant y;
    come_back(A, 10000);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(described().floor_short_ms, T0 + A + A0 + 2 * S);
    a_stranger(T0 + A + 2 * S, A + 2 * S);
    assert_int_equal(described().floor_short_ms,
                     T0 + A + A0 + 2 * S); /* of one before, it may be */
    a_stranger(T0 + A + 10 * A0, A + 2 * S);
    assert_int_equal(described().floor_short_ms, T0 + A + A + 2 * S);
}

/* Its horizon may have been longer. */
static void a_later_pools_horizon_counts_from_the_reopening(void **state)
{
    (void)state;
    struct coord_grant y;
    come_back(DAY, D0);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    for (unsigned again = 0; again < 2; again++) {
        a_stranger(T0 + DAY + 2 * S + 1, DAY + 2 * S);
        assert_int_equal(described().floor_ms, T0 + DAY + DAY + 2 * S);
        assert_int_equal(described().floor_short_ms, T0 + DAY + DAY + 2 * S);
    }
    assert_int_equal(described().later.ahead_ms,
                     0); /* one that lives beside is not believed for good */
}

/* And a word that nothing was lost is not taken, or taken back. */
static void a_later_pools_holder_brings_the_floors_back(void **state)
{
    (void)state;
    struct coord_grant y;
    come_back(A, D0);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    int64_t opened = pair.clock.ms;
    pair.clock.ms += WORD_AFTER;
    assert_int_equal(nothing_lost(), COORD_OK);
    uint64_t era = reply.era;
    a_stranger(T0 + 2 * A, A + 2 * S);
    assert_int_equal(described().floor_short_ms, opened + A + 2 * S);
    assert_int_equal(claim(12, &y), COORD_WAIT);
    assert_int_equal(reply.era, era + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_was_away_for_long_settles),
        cmocka_unit_test(who_knows_more_ends_the_bet),
        cmocka_unit_test(who_knows_more_and_is_lost_ends_the_bet),
        cmocka_unit_test(after_a_bet_no_gap_is_short),
        cmocka_unit_test(after_a_bet_no_gap_is_short_for_who_was_granted_more),
        cmocka_unit_test(a_proven_rewind_is_no_bet),
        cmocka_unit_test(a_shorter_settle_counts_once_the_longer_has_passed),
        cmocka_unit_test(the_shortest_that_was_raised_is_kept),
        cmocka_unit_test(the_shortest_that_a_lost_pool_had_is_kept),
        cmocka_unit_test(a_settle_said_twice_waits_once),
        cmocka_unit_test(a_word_takes_a_reopening_back),
        cmocka_unit_test(a_word_waits_for_those_who_renew_seldom),
        cmocka_unit_test(a_word_is_not_taken_against_who_knows_more),
        cmocka_unit_test(a_word_is_not_taken_against_who_has_another_worker),
        cmocka_unit_test(the_floor_of_an_earlier_reopening_stays),
        cmocka_unit_test(who_knows_more_later_brings_the_floors_back),
        cmocka_unit_test(who_knows_more_later_finds_what_was_freed),
        cmocka_unit_test(a_later_pools_holder_ends_the_bet),
        cmocka_unit_test(beside_a_later_pools_holder_no_gap_is_short),
        cmocka_unit_test(a_later_pools_horizon_counts_from_the_reopening),
        cmocka_unit_test(a_later_pools_holder_brings_the_floors_back),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/settle", tests, setup, teardown);
}
