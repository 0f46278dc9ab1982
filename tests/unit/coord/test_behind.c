/*
 * A clock that was days ahead, with a caller's, and is right again: what goes on, and what waits
 * for the time that it has shown, on both coordinators and a toy store.
 */
#include "seq_rig.h"

#define MINUTE INT64_C(60000)
#define AHEAD  (2 * DAY) /* beyond all that an answer may say anew */

static struct seq_grant g, h;

static struct coord_grant claimed(uint8_t token)
{
    struct coord_grant x;
    assert_int_equal(claim(token, &x), COORD_OK);
    return x;
}

static enum coord_status renewed_at(int64_t caller_ms, struct coord_grant *x, uint8_t cur)
{
    enum coord_status s;
    enum coord_how how = renew_at(caller_ms, x, cur, (uint8_t)(cur + 1), &s);
    if (s == COORD_OK)
        assert_int_equal(how, COORD_HOW_RENEWED);
    return s;
}

/* x renews while the clock is ahead, which is shown by then. */
static void was_ahead(struct coord_grant *x, uint8_t cur)
{
    pair.clock.ms += AHEAD;
    assert_int_equal(renewed_at(pair.clock.ms, x, cur), COORD_OK);
    pair.clock.ms -= AHEAD - MINUTE;
}

/* A pool with two holders, of whom x has shown it those days. */
static void begin_behind(struct coord_grant *x, struct coord_grant *y)
{
    begin(EACH);
    *x = claimed(1);
    *y = claimed(11);
    pair.clock.ms += D0;
    assert_int_equal(renewed_at(pair.clock.ms, y, 11), COORD_OK);
    was_ahead(x, 1);
}

static void holders_go_on(void **state)
{
    (void)state;
    struct coord_grant x, y;
    begin_behind(&x, &y);
    int64_t beyond = x.hi_ms;
    for (uint8_t k = 0; k < 3; k++) {
        assert_int_equal(renewed_at(pair.clock.ms, &x, (uint8_t)(2 + k)), COORD_OK);
        assert_int_equal(x.hi_ms, beyond); /* what it had */
        assert_int_equal(renewed_at(pair.clock.ms, &y, (uint8_t)(12 + k)), COORD_OK);
        assert_int_equal(y.hi_ms, pair.clock.ms + A);
        pair.clock.ms += A / 2;
    }
}

/* Who claims while it is ahead finds all other ranges long over. */
static void who_lives_is_not_taken_for_gone_while_others_are_free(void **state)
{
    (void)state;
    struct coord_grant x, y, z;
    for (unsigned last = 1; last <= 5; last += 4) { /* the other pool has some that are free */
        enum coord_status s;
        pair.clock.ms = T0;
        init((uint16_t)last);
        x = claimed(1);
        y = claimed(11);
        for (uint8_t k = 0; k < 6; k++) {
            pair.clock.ms += 20000;
            assert_int_equal(renewed_at(pair.clock.ms, &x, (uint8_t)(1 + k)), COORD_OK);
            assert_int_equal(renewed_at(pair.clock.ms, &y, (uint8_t)(11 + k)), COORD_OK);
        }
        pair.clock.ms += AHEAD;
        for (uint8_t k = 0; k < 2; k++) { /* the second sees no leap */
            assert_int_equal(claim((uint8_t)(31 + k), &z), COORD_OK);
            pair.clock.ms += 700;
        }
        pair.clock.ms -= AHEAD + 1400;
        assert_int_equal(renew_at(pair.clock.ms, &x, 7, 8, &s),
                         last == 1 ? COORD_HOW_LOST : COORD_HOW_RENEWED);
        assert_int_equal(s, COORD_OK);
    }
}

/* After that all who live are known, and those who do not make room. */
static void who_is_gone_makes_room_once_those_who_live_are_heard(void **state)
{
    (void)state;
    struct coord_grant x, z;
    pair.clock.ms = T0;
    init(4);
    x = claimed(1);
    (void)claimed(11);
    pair.clock.ms += D0;
    assert_int_equal(renewed_at(pair.clock.ms, &x, 1), COORD_OK);
    pair.clock.ms = x.hi_ms + 60001;
    z = claimed(21);
    assert_int_equal(reply.free, 3); /* the other had less, and T need not have leapt for that */
    for (uint8_t k = 0; k < 4; k++) {
        assert_int_equal(renewed_at(pair.clock.ms, &z, (uint8_t)(21 + k)), COORD_OK);
        pair.clock.ms += COORD_EVERY_MS;
    }
    pair.clock.ms -= 1;
    (void)claimed(31);
    assert_int_equal(reply.free, 2);
    pair.clock.ms += 1;
    (void)claimed(41);
    assert_int_equal(reply.free, 2); /* that of x */
}

/* What is in the queue and rests is not free for whoever asks now. */
static void who_is_gone_makes_room_where_all_others_rest(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(1);
    x = claimed(1);
    pair.clock.ms += D0;
    assert_int_equal(renewed_at(pair.clock.ms, &x, 1), COORD_OK);
    y = claimed(11);
    enum coord_status s;
    ALL(s, coord_evict(c, SETUP_IDENTITY, x.worker, &reply));
    assert_int_equal(s, COORD_OK);
    pair.clock.ms = y.hi_ms + 60001;
    (void)claimed(21);
    assert_int_equal(reply.free, 1);
    assert_true(pair.clock.ms < x.hi_ms);
}

/* What a renewal tells of those to come says nothing of what was heard before it. */
static void a_leap_is_judged_by_what_was_told_before(void **state)
{
    (void)state;
    struct coord_grant x;
    struct coord_pool p;
    begin(EACH);
    x = claimed(1);
    pair.clock.ms += 2 * COORD_EVERY_MS + 1;
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct coord *c = pair_side(&pair, side);
        struct coord_renewal item = setup_renewal(&x, 1, 2);
        struct coord_caller by = {.now_ms = pair.clock.ms, .every_ms = DAY};
        assert_int_equal(coord_renew(c, SETUP_IDENTITY, &by, &item, 1, setup_terms(), &reply),
                         COORD_OK);
        assert_int_equal(coord_describe(c, &p, &reply), COORD_OK);
        assert_int_equal(p.later.leap_ms, 2 * COORD_EVERY_MS + 1);
        assert_int_equal(p.later.leapt_ms, pair.clock.ms);
    }
}

/* tmax would say of a table that comes back that it lacks the last moments alone. */
static void nobody_begins_and_who_ends_is_heard(void **state)
{
    (void)state;
    struct coord_grant x, y, z;
    begin_behind(&x, &y);
    assert_int_equal(claim(21, &z), COORD_BADCLOCK);
    assert_int_equal(release(&y, 12, 12, pair.clock.ms), COORD_OK);
    pair.clock.ms += AHEAD - MINUTE - 2 * S - 1;
    assert_int_equal(claim(21, &z), COORD_BADCLOCK);
    pair.clock.ms += 1;
    assert_int_equal(claim(21, &z), COORD_OK);
}

/* Then it may be the clock that is wrong now. */
static void a_holder_whose_clock_differs_waits(void **state)
{
    (void)state;
    struct coord_grant x, y;
    begin_behind(&x, &y);
    assert_int_equal(renewed_at(pair.clock.ms + S + 1, &y, 12), COORD_BADCLOCK);
    assert_int_equal(renewed_at(pair.clock.ms - S - 1, &y, 12), COORD_BADCLOCK);
    assert_int_equal(renewed_at(pair.clock.ms + S, &y, 12), COORD_OK);
}

/* It is judged by when the pool was reopened, which may have been in those days. */
static void a_holder_of_before_a_reopening_waits(void **state)
{
    (void)state;
    struct coord_grant x, y;
    enum coord_status s;
    begin(EACH);
    x = claimed(1);
    y = claimed(11);
    pair.clock.ms += D0;
    assert_int_equal(renewed_at(pair.clock.ms, &x, 1), COORD_OK);
    assert_int_equal(renewed_at(pair.clock.ms, &y, 11), COORD_OK);
    pair_restart(&pair);
    assert_int_equal(renew(&x, 2, 3), COORD_HOW_REASSERTED);
    was_ahead(&x, 3);
    (void)renew_at(pair.clock.ms, &y, 12, 13, &s);
    assert_int_equal(s, COORD_BADCLOCK);
    assert_int_equal(renewed_at(pair.clock.ms, &x, 4), COORD_OK);
}

static void what_was_moved_or_lost_waits(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost < 2; lost++) {
        struct coord_grant x, y;
        begin_behind(&x, &y);
        int64_t era = (int64_t)reply.era;
        pair_backup(&pair, 0);
        if (lost) {
            assert_int_equal(renewed_at(pair.clock.ms, &y, 12), COORD_OK);
            pair_restore(&pair, 0, true);
            assert_int_equal(renewed_at(pair.clock.ms, &y, 13), COORD_BADCLOCK);
        } else {
            pair_restart(&pair);
            assert_int_equal(renewed_at(pair.clock.ms, &x, 2), COORD_BADCLOCK);
            assert_int_equal(release(&x, 2, 2, pair.clock.ms), COORD_BADCLOCK);
        }
        (void)described();
        assert_int_equal(reply.era, era);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static enum coord_status take_knowing(const struct seq_opening *known, int64_t gen, int64_t n)
{
    struct seq_want w = want_of("a", 1, 2);
    w.gen = gen;
    w.n = n;
    return taken_at(pair.clock.ms, known, &w, &g);
}

static void numbers_go_on(void **state)
{
    (void)state;
    struct coord_grant x, y;
    begin_behind(&x, &y);
    assert_int_equal(create("a", lossy(SEQ_LOSS_REFUSE), &g), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 1, &g), SEQ_GRANTED);
    assert_true(g.lo == 0 && g.hi == 9);
    assert_int_equal(give_back("a", &g, 1, 5), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 2, &h), SEQ_GRANTED);
    assert_int_equal(h.lo, 5);
    assert_int_equal(set_to("a", 100, false, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_GRANTED);
    assert_int_equal(seq_number(&g.definition, g.lo), 100);
}

/* By the time that is, though the line has shown more. */
static void numbers_that_skip_keep_to_their_line(void **state)
{
    (void)state;
    struct coord_grant x;
    begin(FORGETTING);
    x = claimed(1);
    assert_int_equal(create("a", skipping(10), &g), SEQ_DONE);
    was_ahead(&x, 1);
    assert_int_equal(take_of("a", 100000, 1, &g), SEQ_GRANTED);
    assert_int_equal(g.hi, g.lo + 999 + 10 * MINUTE / 1000);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_WAIT);
}

static void numbers_wait_where_something_was_moved_or_lost(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost < 3; lost++) {
        struct coord_grant x, y;
        begin_behind(&x, &y);
        assert_int_equal(create("a", lossy(SEQ_LOSS_TRUST), &g), SEQ_DONE);
        assert_int_equal(take_of("a", 10, 1, &g), SEQ_GRANTED);
        if (lost == 0)
            pair_restart(&pair);
        const struct seq_opening *known = lost == 2 ? NULL : &opening; /* another, or this one */
        assert_int_equal(take_knowing(known, g.gen, g.n + (lost > 0)), COORD_BADCLOCK);
    }
}

/* It was ahead while a number of the next day was granted. */
static void periods_are_those_of_the_time(void **state)
{
    (void)state;
    struct coord_grant x;
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.reset = PERIOD_DAY;
    begin(EACH);
    x = claimed(1);
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 1, &g), SEQ_GRANTED);
    pair.clock.ms += DAY;
    assert_int_equal(take_of("a", 10, 2, &h), SEQ_GRANTED);
    assert_string_not_equal(g.period, h.period);
    pair.clock.ms -= DAY;
    was_ahead(&x, 1);
    assert_int_equal(take_of("a", 1, 3, &h), SEQ_GRANTED);
    assert_string_equal(g.period, h.period);
    assert_int_equal(h.lo, 10);
    pair.clock.ms += DAY - MINUTE;
    assert_int_equal(take_of("a", 1, 4, &h), SEQ_GRANTED);
    assert_int_equal(h.lo, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_go_on),
        cmocka_unit_test(who_lives_is_not_taken_for_gone_while_others_are_free),
        cmocka_unit_test(who_is_gone_makes_room_once_those_who_live_are_heard),
        cmocka_unit_test(who_is_gone_makes_room_where_all_others_rest),
        cmocka_unit_test(a_leap_is_judged_by_what_was_told_before),
        cmocka_unit_test(nobody_begins_and_who_ends_is_heard),
        cmocka_unit_test(a_holder_whose_clock_differs_waits),
        cmocka_unit_test(a_holder_of_before_a_reopening_waits),
        cmocka_unit_test(what_was_moved_or_lost_waits),
        cmocka_unit_test(numbers_go_on),
        cmocka_unit_test(numbers_that_skip_keep_to_their_line),
        cmocka_unit_test(numbers_wait_where_something_was_moved_or_lost),
        cmocka_unit_test(periods_are_those_of_the_time),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/behind", tests, seq_setup, teardown);
}
