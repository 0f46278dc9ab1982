/*
 * What a pool hears from holders of another: one made again after a loss, or fresh by mistake; from
 * pool.lua in a real Redis and from the SQLite driver. And what is told of a reopening.
 */
#include "pair_rig.h"

/* ---- a pool made after a loss learns from those of the lost one -------------------------------
 */

static enum coord_how renew_of(int64_t ahead_ms, struct coord_grant *g, uint8_t cur, uint8_t nxt)
{
    const struct coord_caller by = {.now_ms = pair.clock.ms, .ahead_ms = ahead_ms};
    const struct coord_renewal before = setup_renewal(g, cur, nxt);
    struct coord_renewal item;
    enum coord_status s;
    ALL(s, (item = before, coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply)));
    assert_int_equal(s, COORD_OK);
    return item.how;
}

/* Made again with an hour, where the pool that was lost had a day. */
static void a_longer_horizon_is_learnt(void **state)
{
    (void)state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_AFTER_LOSS, 3);
    struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + DAY}, y;
    struct coord_grant test = {.worker = 1, .n = 3, .hi_ms = T0 + 30000};
    enum coord_status s;
    pair.clock.ms = T0;
    pair_wipe(&pair, true);
    ALL(s, coord_init(c, &in, &reply));
    assert_int_equal(s, COORD_OK);
    (void)renew_of(60000 + 2 * S, &test, 1, 2); /* first of all one of a smaller pool */
    assert_int_equal(described().floor_short_ms, T0 + A + 2 * S);
    assert_int_equal(renew_of(DAY + 2 * S, &x, 2, 3), COORD_HOW_REASSERTED);
    assert_int_equal(described().floor_ms, T0 + DAY + 2 * S);
    assert_int_equal(described().floor_short_ms, T0 + DAY + 2 * S);
    (void)renew_of(A + 2 * S, &test, 2, 3);
    assert_int_equal(described().floor_short_ms, T0 + DAY + 2 * S);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(reply.wait_ms, DAY + 2 * S + 1);
    pair.clock.ms += 1000;
    pair_restart(&pair); /* a reopening does not forget it */
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(described().floor_ms, T0 + 1000 + DAY + 2 * S);
}

/* What the table forgot nobody has shown, but the range of that holder's pool is longer. */
static void a_word_is_not_taken_against_a_longer_horizon(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(1);
    assert_int_equal(claim(1, &x), COORD_OK);
    pair_restart(&pair);
    assert_int_equal(claim(11, &y), COORD_WAIT);
    assert_int_equal(renew_of(DAY + 2 * S, &x, 1, 2), COORD_HOW_REASSERTED);
    pair.clock.ms += 4 * COORD_EVERY_MS + 2 * S;
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "something was lost"));
}

/* ---- and so does one made fresh by mistake, of which somebody has claimed ---------------------
 */

/* A holder of another pool; *ms: how long a newcomer of this one waits then, 0: not at all. It is
 * the era before or the next. */
static void hears(const char *identity, int64_t ahead_ms, const struct coord_grant *stranger,
                  uint64_t era, int64_t *ms)
{
    const struct coord_caller by = {.now_ms = pair.clock.ms, .ahead_ms = ahead_ms};
    const struct coord_renewal before = setup_renewal(stranger, 91, 92);
    struct coord_renewal item;
    struct coord_grant g;
    enum coord_status s;
    ALL(s, (item = before, coord_renew(c, identity, &by, &item, 1, setup_terms(), &reply)));
    assert_int_equal(s, COORD_WRONGPOOL);
    s = claim(93, &g);
    *ms = s == COORD_WAIT ? reply.wait_ms : 0;
    assert_int_equal(s, s == COORD_WAIT ? COORD_WAIT : COORD_OK);
    assert_int_equal(reply.era, era);
}

static void a_stranger_shows_that_a_pool_is_not_fresh(void **state)
{
    (void)state;
    struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + A - 1000}, y, z;
    struct coord_grant late = {.worker = 1, .n = 9, .hi_ms = T0 + A + 2 * S};
    int64_t ms;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &y), COORD_OK);
    assert_int_equal(y.worker, x.worker);
    assert_int_equal(claim(2, &z), COORD_OK);
    pair.clock.ms += 5000;
    hears(SETUP_IDENTITY_OTHER, A + 2 * S, &x, 2, &ms);
    assert_int_equal(ms, A + 2 * S - 5000 + 1);
    assert_int_equal(renew(&y, 1, 11), COORD_HOW_LOST);
    assert_int_equal(renew(&z, 2, 12), COORD_HOW_REASSERTED);
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    pair.clock.ms += 5000;
    hears(SETUP_IDENTITY_OTHER, 0, &late, 2, &ms); /* a second one, with what was granted, too */
    assert_int_equal(ms, A + 2 * S - 10000 + 1);
    assert_int_equal(renew(&z, 12, 13), COORD_HOW_LOST);
    pair.clock.ms = T0 + A + 2 * S + 1;
    assert_int_equal(claim(3, &y), COORD_OK);
    assert_int_equal(y.lo_ms, T0 + A + 2 * S + 1);
    hears(SETUP_IDENTITY_OTHER, 0, &late, 2, &ms); /* it is over */
    assert_int_equal(ms, 0);
    assert_int_equal(renew(&y, 3, 4), COORD_HOW_RENEWED);
}

static void a_word_is_not_taken_against_a_stranger(void **state)
{
    (void)state;
    struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + A - 1000}, y;
    int64_t ms;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &y), COORD_OK);
    hears(SETUP_IDENTITY_OTHER, A + 2 * S, &x, 2, &ms);
    pair.clock.ms += 4 * COORD_EVERY_MS + 2 * S;
    assert_int_equal(nothing_lost(), COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "something was lost"));
}

/* A pool lives beside others: of a test, of another part of the workerIds, of another epoch. */
static void a_stranger_who_is_nothing_to_us_stops_nobody(void **state)
{
    (void)state;
    const struct coord_grant later = {.worker = 0, .n = 7, .hi_ms = T0 + A + 2 * S + 1};
    const struct coord_grant longer = {.worker = 0, .n = 7, .hi_ms = T0 + DAY + 1};
    const struct coord_grant beside = {.worker = 4, .n = 7, .hi_ms = T0 + A - 1000};
    const struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + A - 1000};
    struct coord_grant y;
    int64_t ms;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &y), COORD_OK);
    assert_int_equal(claim(2, &y), COORD_OK);
    pair.clock.ms += 5000;
    hears(SETUP_IDENTITY_OTHER, 0, &later, 1, &ms);
    assert_int_equal(ms, 0);
    hears(SETUP_IDENTITY_OTHER, DAY, &longer, 1, &ms); /* nothing can have come back */
    assert_int_equal(ms, 0);
    pair.clock.ms += 20 * A0;
    hears(SETUP_IDENTITY_OTHER, 0, &beside, 1, &ms);
    assert_int_equal(ms, 0);
    pair.clock.ms += 20 * A0;
    hears(SETUP_IDENTITY_EPOCH, 0, &x, 1, &ms);
    assert_int_equal(ms, 0);
    pair.clock.ms = T0 + A + 2 * S;
    hears(SETUP_IDENTITY_OTHER, 0, &x, 1, &ms);
    assert_int_equal(ms, 0);
}

/* One with a horizon of a day, heard once, is not believed for good. */
static void a_strangers_horizon_counts_from_the_birth(void **state)
{
    (void)state;
    const struct coord_grant x = {.worker = 3, .n = 7, .hi_ms = T0 + A};
    struct coord_grant y;
    int64_t ms;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &y), COORD_OK);
    pair.clock.ms += 5000;
    hears(SETUP_IDENTITY_OTHER, DAY + 2 * S, &x, 2, &ms);
    assert_int_equal(ms, DAY + 2 * S - 5000 + 1);
    assert_int_equal(described().floor_ms, T0 + DAY + 2 * S);
    pair.clock.ms = T0 + 2 * DAY;
    pair_restart(&pair);
    assert_int_equal(claim(2, &y), COORD_WAIT);
    assert_int_equal(described().floor_ms, T0 + 2 * DAY + A + 2 * S);
}

/* Such a reopening says nothing of what the restart lost; that one comes first. */
static void a_stranger_hides_no_restart(void **state)
{
    (void)state;
    const struct coord_grant x = {.worker = 3, .n = 7, .hi_ms = T0 + A};
    struct coord_grant y;
    int64_t ms;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &y), COORD_OK);
    pair.clock.ms += A;
    pair_restart(&pair);
    hears(SETUP_IDENTITY_OTHER, DAY, &x, 2, &ms);
    assert_int_equal(described().floor_short_ms, T0 + 2 * A + 2 * S);
    hears(SETUP_IDENTITY_OTHER, DAY, &x, 3, &ms);
    assert_int_equal(described().floor_short_ms, T0 + DAY);
}

/* Those that the pool was made again for would be refused: their range may be short. */
static void a_stranger_takes_no_pool_whose_identity_was_said(void **state)
{
    (void)state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_AFTER_LOSS, 3);
    const struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + A - 1000};
    struct coord_grant own = {.worker = 1, .n = 3, .hi_ms = T0 + A0};
    for (unsigned said = 0; said < 2; said++) {
        const struct coord_caller by = {.now_ms = T0};
        struct coord_renewal item;
        enum coord_status s;
        in.identity_said = said;
        pair.clock.ms = T0;
        pair_wipe(&pair, true);
        ALL(s, coord_init(c, &in, &reply));
        assert_int_equal(s, COORD_OK);
        ALL(s, (item = setup_renewal(&x, 91, 92),
                coord_renew(c, SETUP_IDENTITY_OTHER, &by, &item, 1, setup_terms(), &reply)));
        assert_int_equal(s, said ? COORD_WRONGPOOL : COORD_OK);
        const char *taken = said ? SETUP_IDENTITY : SETUP_IDENTITY_OTHER;
        assert_string_equal(described().identity, taken);
        ALL(s, (item = setup_renewal(&own, 1, 2), /* one was taken: the next is refused */
                coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply)));
        assert_int_equal(s, said ? COORD_OK : COORD_WRONGPOOL);
        assert_string_equal(described().identity, taken);
    }
    assert_int_equal(renew(&own, 1, 2), COORD_HOW_AGAIN);
}

/* By a clock that is behind its own past no floor can be made. */
static void a_stranger_is_not_heard_by_a_clock_that_is_behind(void **state)
{
    (void)state;
    const struct coord_caller by = {.now_ms = T0};
    const struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + A - 1000};
    for (unsigned behind = 0; behind < 2; behind++) {
        struct coord_renewal item;
        struct coord_grant y;
        enum coord_status s;
        pair.clock.ms = T0;
        init(3);
        pair.clock.ms = T0 + 60000;
        assert_int_equal(claim(1, &y), COORD_OK);
        pair.clock.ms -= 2 * S + behind;
        ALL(s, (item = setup_renewal(&x, 91, 92),
                coord_renew(c, SETUP_IDENTITY_OTHER, &by, &item, 1, setup_terms(), &reply)));
        assert_int_equal(s, COORD_WRONGPOOL);
        (void)described();
        assert_int_equal(reply.era, behind ? 1 : 2);
    }
}

/* Of whom it was granted at a time that no earlier holder's range reaches, whatever the clock. */
static void a_stranger_takes_nothing_that_was_granted_beyond_its_time(void **state)
{
    (void)state;
    const struct coord_grant x = {.worker = 0, .n = 7, .hi_ms = T0 + A - 1000};
    for (unsigned later = 0; later < 2; later++) {
        struct coord_grant y;
        int64_t ms;
        pair.clock.ms = T0;
        init(3);
        pair.clock.ms = T0 + A + S + later;
        assert_int_equal(claim(1, &y), COORD_OK);
        assert_int_equal(y.worker, x.worker);
        hears(SETUP_IDENTITY_OTHER, 0, &x, 2, &ms);
        assert_int_equal(renew(&y, 1, 2), later ? COORD_HOW_REASSERTED : COORD_HOW_LOST);
    }
}

/* ---- what is told of a reopening --------------------------------------------------------------
 */

static void the_cause_of_a_reopening_is_told(void **state)
{
    (void)state;
    const struct coord_grant x = {.worker = 3, .n = 7, .hi_ms = T0 + A};
    struct coord_grant y;
    int64_t ms;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(described().later.cause, COORD_CAUSE_NONE);
    assert_int_equal(claim(1, &y), COORD_OK);
    hears(SETUP_IDENTITY_OTHER, 0, &x, 2, &ms);
    assert_int_equal(described().later.cause, COORD_CAUSE_STRANGER);
    pair.clock.ms += 1000;
    pair_restart(&pair);
    assert_int_equal(renew(&y, 1, 2), COORD_HOW_REASSERTED);
    assert_int_equal(described().later.cause, COORD_CAUSE_MOVED);
    pair_backup(&pair, 0);
    assert_int_equal(renew(&y, 2, 3), COORD_HOW_RENEWED);
    pair_restore(&pair, 0, true); /* under the same fingerprint */
    assert_int_equal(renew(&y, 3, 4), COORD_HOW_REASSERTED);
    assert_int_equal(described().later.cause, COORD_CAUSE_HOLDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_longer_horizon_is_learnt),
        cmocka_unit_test(a_word_is_not_taken_against_a_longer_horizon),
        cmocka_unit_test(a_stranger_shows_that_a_pool_is_not_fresh),
        cmocka_unit_test(a_word_is_not_taken_against_a_stranger),
        cmocka_unit_test(a_stranger_who_is_nothing_to_us_stops_nobody),
        cmocka_unit_test(a_strangers_horizon_counts_from_the_birth),
        cmocka_unit_test(a_stranger_hides_no_restart),
        cmocka_unit_test(a_stranger_is_not_heard_by_a_clock_that_is_behind),
        cmocka_unit_test(a_stranger_takes_nothing_that_was_granted_beyond_its_time),
        cmocka_unit_test(a_stranger_takes_no_pool_whose_identity_was_said),
        cmocka_unit_test(the_cause_of_a_reopening_is_told),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/strangers", tests, setup, teardown);
}
