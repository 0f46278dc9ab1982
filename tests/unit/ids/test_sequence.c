#include "ids/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define LASTS 1000 /* ms */
#define MAX   100000

static struct sequence s;
static int64_t mono;
static volatile uint64_t marks[64], owns[64]; /* the latter in no page */
static uint32_t handles;

static void begin(void)
{
    mono = 5000;
    handles = 0;
    memset((void *)marks, 0, sizeof marks);
    sequence_init(&s, LASTS, MAX, mono);
    sequence_define(&s, 1, 1, false);
}

static void grant(int64_t lo, int64_t n)
{
    const struct sequence_block b = {lo, lo, lo + n - 1, handles, &marks[handles], &owns[handles]};
    handles++;
    sequence_grant(&s, mono, &b);
}

static int64_t mark(unsigned handle)
{
    int64_t n = -1;
    assert_true(mark_load(&marks[handle], &n));
    return n;
}

static int64_t take(int64_t n)
{
    int64_t index;
    if (sequence_more(&s, n, &index) || sequence_next(&s, mono, n, &index) == SEQUENCE_OK)
        return index;
    return -1;
}

static int64_t asked(void)
{
    struct sequence_ask a;
    return sequence_asks(&s, &a) ? a.count : 0;
}

/* ---- giving out ------------------------------------------------------------------------------ */

static void each_number_is_marked_before_it_leaves(void **state)
{
    (void)state;
    begin();
    grant(100, 50);
    for (int64_t i = 0; i < 50; i++) {
        assert_int_equal(take(1), 100 + i);
        assert_int_equal(mark(0), i + 1);
        assert_int_equal(owns[0], marks[0]);
    }
    assert_int_equal(take(1), -1);
    assert_int_equal(sequence_given(&s), 50);
}

/* Whoever grants sees that a block is used up by its mark, and puts another one in its place before
 * the loop has looked. */
static void a_used_up_block_leaves_the_mark_of_the_next_alone(void **state)
{
    (void)state;
    int64_t index;
    begin();
    grant(0, 10);
    for (int64_t i = 0; i < 9; i++)
        assert_int_equal(take(1), i);
    assert_true(sequence_more(&s, 1, &index));
    assert_int_equal(mark(0), 10);
    mark_store(&marks[0], 0);
    const struct sequence_block b = {
        .lo = 10, .next = 10, .hi = 19, .handle = 4711, .mark = &marks[0]};
    sequence_grant(&s, mono, &b);
    assert_int_equal(mark(0), 0);
    assert_int_equal(take(1), 10);
    assert_int_equal(mark(0), 1);
}

static void a_number_is_counted_from_the_start(void **state)
{
    (void)state;
    begin();
    sequence_define(&s, 1000, -3, false);
    assert_int_equal(sequence_number(&s, 0), 1000);
    assert_int_equal(sequence_number(&s, 7), 979);
}

static void many_in_a_row_go_over_from_block_to_block(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(10, 10);
    assert_int_equal(take(7), 0);
    assert_int_equal(take(6), 7);
    assert_int_equal(mark(0), 10);
    assert_int_equal(mark(1), 3);
    assert_int_equal(take(7), 13);
    assert_int_equal(sequence_given(&s), 20);
}

static void where_they_would_not_be_in_a_row_the_rest_is_dropped(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(20, 10);
    assert_int_equal(take(7), 0);
    assert_int_equal(take(4), 20);
    assert_int_equal(mark(0), 10);
    assert_int_equal(sequence_given(&s), 11);
}

static void some_are_as_many_as_there_are(void **state)
{
    (void)state;
    int64_t index, n;
    begin();
    grant(0, 10);
    grant(20, 10);
    assert_int_equal(take(7), 0);
    assert_int_equal(sequence_some(&s, mono, 100, &index, &n), SEQUENCE_OK);
    assert_true(index == 7 && n == 3);
    assert_int_equal(sequence_some(&s, mono, 4, &index, &n), SEQUENCE_OK);
    assert_true(index == 20 && n == 4);
}

/* What is left below would come after it, be it in the next life. */
static void a_grant_of_its_own_drops_what_is_below(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(10, 10);
    assert_int_equal(take(1), 0);
    (void)asked();
    assert_int_equal(take(500), -1);
    assert_int_equal(asked(), 500);
    sequence_own(&s, 20, 519, 0, false);
    assert_int_equal(take(1), 1);
    assert_int_equal(take(500), 20);
    assert_int_equal(mark(0), 10);
    assert_int_equal(mark(1), 10);
    assert_int_equal(take(1), -1);
    assert_int_equal(sequence_given(&s), 502);
}

static void a_grant_of_its_own_is_revoked_by_no_handle(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    assert_int_equal(take(500), -1);
    sequence_own(&s, 10, 509, 0, false);
    sequence_revoke(&s, 0, 509);
    sequence_revoke(&s, 4711, -1);
    assert_int_equal(s.own[0].n, 500);
    sequence_revoke(&s, 0, 508);
    assert_int_equal(take(500), -1);
    assert_int_equal(take(1), 0);
}

static void one_that_lies_below_a_block_is_not_used(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    assert_int_equal(take(500), -1);
    sequence_own(&s, 10, 509, 0, false);
    grant(510, 10);
    assert_int_equal(take(10), 0);
    assert_int_equal(take(1), 510);
    assert_int_equal(take(500), -1);
}

static void a_third_block_is_dropped(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(10, 10);
    grant(20, 10);
    assert_int_equal(mark(2), 10);
    assert_int_equal(sequence_left(&s), 20);
}

/* Each grant of its own drops the block that others wait for. */
static void who_wants_few_is_not_behind_all_who_want_many(void **state)
{
    struct sequence_ask a;
    (void)state;
    begin();
    grant(0, 10);
    assert_int_equal(take(10), 0);
    assert_int_equal(take(500), -1);
    assert_int_equal(take(1), -1);
    assert_true(sequence_asks(&s, &a));
    assert_true(a.whole && a.count == 500);
    sequence_own(&s, 10, 509, 0, true);
    assert_int_equal(take(500), 10);
    assert_int_equal(take(500), -1);
    assert_true(sequence_asks(&s, &a));
    assert_true(!a.whole && a.count == 2);
    grant(510, 2);
    assert_int_equal(take(500), -1);
    assert_true(sequence_asks(&s, &a));
    assert_true(a.whole && a.count == 500); /* nor are these behind those */
    assert_int_equal(take(1), 510);
}

/* Who pipelines would have all of a block before the next in line has his turn. */
static void what_few_are_wanted_is_kept_of_a_block(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    assert_int_equal(take(10), 0);
    assert_int_equal(take(500), -1);
    assert_int_equal(take(3), -1);
    grant(10, 600);
    assert_int_equal(take(500), 10);
    assert_int_equal(take(98), 510);
    assert_int_equal(take(2), 608);
    assert_int_equal(take(1), -1);
    grant(610, 600); /* nobody waits any more but for one */
    assert_int_equal(take(600), -1);
    assert_int_equal(take(599), 610);
    assert_int_equal(take(1), 1209);
}

/* Blocks need not adjoin: what is left does not tell how far they go. */
static void the_last_in_hand_is_told(void **state)
{
    (void)state;
    begin();
    assert_int_equal(sequence_last(&s), -1);
    grant(0, 10);
    grant(50, 10);
    assert_int_equal(take(1), 0);
    assert_int_equal(sequence_last(&s), 59);
    sequence_own(&s, 100, 111, 0, true);
    assert_int_equal(sequence_last(&s), 111);
    assert_int_equal(take(12), 100);
    assert_int_equal(sequence_last(&s), -1);
}

/* What a grant is left with that is revoked or let go is counted by whoever granted it. */
static void what_is_dropped_is_counted(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(10, 10);
    grant(20, 10); /* a third one */
    assert_int_equal(s.dropped, 10);
    assert_int_equal(take(1), 0);
    grant(30, 5);
    assert_int_equal(s.dropped, 15);
    assert_int_equal(take(20), -1);
    sequence_own(&s, 40, 59, 0, false);
    assert_int_equal(take(20), 40); /* over the 19 that were in hand */
    assert_int_equal(s.dropped, 34);
    sequence_own(&s, 60, 79, 0, false);
    sequence_own(&s, 80, 99, 0, false); /* in the place of what nobody came for */
    assert_int_equal(s.dropped, 54);
    sequence_revoke(&s, 0, 90);
    assert_int_equal(s.dropped, 74);
    grant(100, 10);
    sequence_revoke(&s, handles - 1, 104);
    assert_int_equal(take(1), 100);
    sequence_let_go(&s);
    assert_int_equal(s.dropped, 74);
    assert_int_equal(sequence_given(&s), 22);
}

static void what_a_strict_one_drops_is_counted(void **state)
{
    (void)state;
    int64_t index;
    begin();
    sequence_define(&s, 1, 1, true);
    int64_t a = sequence_arrive(&s, 1);
    sequence_own(&s, 0, 4, a, false); /* for five, of whom four are gone */
    assert_int_equal(sequence_strict(&s, mono, &a, 1, &index), SEQUENCE_OK);
    sequence_own(&s, 5, 9, a, false);
    assert_int_equal(s.dropped, 0);
    sequence_own(&s, 10, 14, a, false);
    assert_int_equal(s.dropped, 4);
    sequence_let_go(&s);
    assert_int_equal(s.dropped, 14);
    assert_int_equal(sequence_given(&s), 1);
}

static void a_block_that_was_taken_over_goes_on(void **state)
{
    (void)state;
    begin();
    const struct sequence_block b = {.lo = 0, .next = 4, .hi = 9, .mark = &marks[0]};
    sequence_grant(&s, mono, &b);
    assert_int_equal(take(1), 4);
    assert_int_equal(mark(0), 5);
    assert_int_equal(sequence_given(&s), 1);
}

static void what_is_revoked_is_not_given_out(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(10, 10);
    assert_int_equal(take(3), 0);
    sequence_revoke(&s, 1, 14);
    sequence_revoke(&s, 0, 5);
    assert_int_equal(take(3), 3);
    assert_int_equal(take(1), 10);
    mark_store(&marks[1], 0); /* another block's by now */
    sequence_revoke(&s, 1, -1);
    assert_int_equal(mark(1), 0);
    assert_int_equal(take(1), -1);
    assert_int_equal(sequence_given(&s), 7);
}

static void of_what_was_given_out_nothing_is_revoked(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    assert_int_equal(take(6), 0);
    sequence_revoke(&s, 0, 2);
    assert_int_equal(sequence_left(&s), 0);
    grant(100, 10);
    assert_int_equal(take(1), 100);
    assert_int_equal(sequence_left(&s), 9);
    assert_int_equal(sequence_given(&s), 7);
    assert_int_equal(s.dropped, 0);
}

static void what_is_let_go_is_not_given_out(void **state)
{
    (void)state;
    begin();
    grant(0, 10);
    grant(10, 10);
    assert_int_equal(take(3), 0);
    sequence_let_go(&s);
    assert_int_equal(take(1), -1);
    assert_int_equal(mark(0), 3);
    assert_int_equal(sequence_given(&s), 3);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void the_first_block_is_small(void **state)
{
    (void)state;
    begin();
    assert_int_equal(take(1), -1);
    assert_int_equal(asked(), SEQUENCE_FIRST);
    assert_int_equal(take(1), -1);
    assert_int_equal(asked(), 0); /* it stands */
}

/* Gives out n numbers, one each `every` ms, with a store that answers at once. */
static void run(int64_t *next, int64_t n, int64_t every)
{
    for (int64_t i = 0; i < n; i++) {
        if (take(1) < 0) {
            int64_t size = asked();
            assert_true(size > 0);
            grant(*next, size);
            *next += size;
            assert_true(take(1) >= 0);
        }
        int64_t more = asked();
        if (more) {
            handles %= 60;
            grant(*next, more);
            *next += more;
        }
        mono += every;
    }
}

static void a_block_lasts_as_long_as_it_should(void **state)
{
    (void)state;
    int64_t next = 0;
    begin();
    run(&next, 3000, 1); /* 1,000 a second */
    assert_in_range(s.size, LASTS * 9 / 10, LASTS * 11 / 10);
    run(&next, 3000, 10);
    assert_in_range(s.size, LASTS / 12, LASTS / 8);
}

static void a_block_is_at_most_twice_or_half_of_the_last(void **state)
{
    (void)state;
    int64_t next = 0, last = 0, up = 0;
    begin();
    for (unsigned i = 0; i < 20000; i++) {
        run(&next, 1, i < 15000 ? 1 : 100);
        if (last > 0 && s.size != last) {
            assert_true(s.size <= 2 * last && s.size >= last / 2);
            up += s.size > last;
        }
        last = s.size;
    }
    assert_true(up >= 4 && s.size <= 20);
}

static void a_block_is_at_most_as_large_as_is_allowed(void **state)
{
    (void)state;
    int64_t next = 0;
    begin();
    s.max = 300;
    run(&next, 20000, 0);
    assert_int_equal(s.size, 300);
}

/* Not by a share of it: at one number a minute ten last ten minutes. */
static void the_next_is_asked_for_by_the_time_left(void **state)
{
    (void)state;
    begin();
    grant(0, 1000);
    for (unsigned i = 0; i < 998; i++) {
        assert_int_equal(take(1), i);
        assert_int_equal(asked(), 0);
        mono += 60000;
    }
    begin();
    grant(0, 1000000);
    int64_t at = 0;
    while (!s.asked && take(1) >= 0)
        mono += ++at % 1000 == 0; /* 1,000,000 a second */
    assert_true(at < 500000);
}

static void a_burst_is_seen_at_once(void **state)
{
    (void)state;
    begin();
    grant(0, 1000);
    assert_int_equal(take(1), 0);
    mono += 3600000;
    for (unsigned i = 0; i < 500 && !s.asked; i++)
        (void)take(1);
    assert_true(s.asked);
}

static void a_refusal_holds_until_its_time(void **state)
{
    (void)state;
    int64_t index;
    begin();
    assert_int_equal(take(1), -1);
    (void)asked();
    const struct sequence_refusal later = {.cause = 3, .until_ms = mono + 50, .count = 1};
    sequence_refuse(&s, &later, false);
    assert_int_equal(sequence_next(&s, mono, 1, &index), SEQUENCE_REFUSED);
    assert_int_equal(asked(), 0);
    mono += 50;
    assert_int_equal(sequence_next(&s, mono, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(asked() > 0, 1);
    const struct sequence_refusal stands = {
        .cause = 4, .stands = true, .until_ms = mono + 50, .count = 1};
    sequence_refuse(&s, &stands, false);
    assert_int_equal(sequence_next(&s, mono, 1, &index), SEQUENCE_REFUSED);
    assert_int_equal(asked(), 0);
    mono += 50;
    assert_int_equal(sequence_next(&s, mono, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(asked() > 0, 1);
    grant(0, 10);
    assert_int_equal(take(1), 0);
}

static void who_is_away_is_not_asked_by_each(void **state)
{
    (void)state;
    int64_t index;
    begin();
    assert_int_equal(take(1), -1);
    (void)asked();
    const struct sequence_refusal away = {.cause = 5, .until_ms = mono + 50, .count = 1};
    sequence_refuse(&s, &away, true);
    mono += 100;
    assert_int_equal(sequence_next(&s, mono, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(asked(), 0);
}

static void a_refused_crowd_does_not_refuse_one(void **state)
{
    (void)state;
    int64_t index;
    begin();
    assert_int_equal(take(500), -1);
    (void)asked();
    const struct sequence_refusal many = {
        .cause = 3, .stands = true, .until_ms = mono + 1000, .count = 500};
    sequence_refuse(&s, &many, false);
    assert_int_equal(sequence_next(&s, mono, 500, &index), SEQUENCE_REFUSED);
    assert_int_equal(sequence_next(&s, mono, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(asked() > 0, 1);
}

#define HOUR 3600000

/* Ten an hour, all at once: as many as in the hours before, and not as in that moment. */
static void the_pace_is_that_of_hours(void **state)
{
    (void)state;
    struct sequence next;
    begin();
    for (int64_t h = 0; h < 30; h++) {
        mono += HOUR;
        grant(h * 10, 10);
        assert_int_equal(take(10), h * 10);
        assert_float_equal(sequence_pace(&s, mono) * HOUR, 10, 1.7);
    }
    assert_float_equal(sequence_pace(&s, mono + HOUR / 2) * HOUR, 10, 1.7);
    assert_true(sequence_pace(&s, mono + 100 * HOUR) * HOUR < 1.2); /* idle since */
    sequence_init(&next, LASTS, MAX, mono);
    sequence_follow(&next, &s, mono);
    assert_float_equal(sequence_pace(&next, mono) * HOUR, 10, 1.7);
}

static void the_pace_of_a_strict_one_is_known(void **state)
{
    (void)state;
    int64_t index;
    begin();
    sequence_define(&s, 1, 1, true);
    for (int64_t h = 0; h < 30; h++) {
        mono += HOUR;
        int64_t a = sequence_arrive(&s, 4);
        sequence_own(&s, h * 4, h * 4 + 3, a, true);
        assert_int_equal(sequence_strict(&s, mono, &a, 4, &index), SEQUENCE_OK);
        assert_float_equal(sequence_pace(&s, mono) * HOUR, 4, h < 6 ? 0.001F : 0.7F);
    }
    mono += 13 * HOUR; /* what came before is forgotten with two more looks */
    for (int64_t i = 0; i < 2; i++, mono += 7 * HOUR) {
        int64_t a = sequence_arrive(&s, 1);
        assert_int_equal(sequence_strict(&s, mono, &a, 1, &index), SEQUENCE_EMPTY);
    }
    assert_true(sequence_pace(&s, mono) == 0);
}

static void what_is_waited_for_makes_no_way(void **state)
{
    (void)state;
    begin();
    assert_int_equal(take(1), -1);
    assert_int_equal(take(500), -1); /* who comes later has to wait for the next one */
    assert_int_equal(asked(), SEQUENCE_FIRST);
    grant(0, SEQUENCE_FIRST);
    assert_int_equal(take(1), 0);
    assert_int_equal(take(500), -1);
    assert_int_equal(take(600), -1);
    assert_int_equal(asked(), 500);
}

static void what_is_asked_for_in_advance_makes_way(void **state)
{
    (void)state;
    begin();
    assert_int_equal(take(1), -1);
    (void)asked();
    grant(0, SEQUENCE_FIRST);
    mono += 10;
    assert_int_equal(take(SEQUENCE_FIRST / 2), 0); /* at this rate it does not last */
    assert_true(s.ask.count > 0);
    assert_int_equal(take(500), -1);
    assert_int_equal(asked(), 500);
}

/* 500 in a row were asked for, and `from` or more cannot be had. Their ticket. */
static int64_t many_are_refused(int64_t from)
{
    struct sequence_ask ask;
    int64_t many = sequence_arrive(&s, 500);
    assert_true(sequence_asks(&s, &ask));
    const struct sequence_refusal refusal = {
        .cause = 3, .stands = true, .until_ms = mono + 1000, .count = from, .upto = many};
    sequence_refuse(&s, &refusal, false);
    return many;
}

/* Or all who arrive meanwhile were asked for, and refused, together with it. */
static void who_is_refused_at_once_has_not_arrived(void **state)
{
    (void)state;
    struct sequence_ask ask;
    begin();
    sequence_define(&s, 1, 1, true);
    (void)many_are_refused(500);
    assert_false(sequence_may_arrive(&s, mono, 500));
    assert_true(sequence_may_arrive(&s, mono, 499));
    mono += 1000;
    assert_true(sequence_may_arrive(&s, mono, 500)); /* now and then it is asked for again, … */
    (void)sequence_arrive(&s, 500);
    assert_false(sequence_may_arrive(&s, mono, 500)); /* … once */
    assert_true(sequence_asks(&s, &ask) && ask.count == 500);
    sequence_own(&s, 0, 499, ask.upto, true); /* more are allowed by now */
    assert_true(sequence_may_arrive(&s, mono, 500));
}

/* Or who wants one has three calls made for it: with those who want too many, they alone, it alone.
 */
static void a_few_that_come_say_nothing_of_many(void **state)
{
    (void)state;
    struct sequence_ask ask;
    begin();
    sequence_define(&s, 1, 1, true);
    int64_t many = many_are_refused(401);
    int64_t one = sequence_arrive(&s, 1);
    assert_true(sequence_asks(&s, &ask) && ask.count == 1);
    sequence_own(&s, 0, 0, one, false);
    assert_false(sequence_may_arrive(&s, mono, 401));
    assert_true(sequence_may_arrive(&s, mono, 400));
    (void)sequence_arrive(&s, 1);
    mono += 1000;
    assert_true(sequence_may_arrive(&s, mono, 401)); /* be somebody asking all the time */
    many = sequence_arrive(&s, 500);
    assert_true(sequence_asks(&s, &ask) && ask.count == 501);
    sequence_own(&s, 1, 501, many, false);
    assert_false(sequence_refuses(&s, 401));
}

/* ---- strict ---------------------------------------------------------------------------------- */

static void strict_requests_add_up(void **state)
{
    (void)state;
    struct sequence_ask a;
    begin();
    sequence_define(&s, 1, 1, true);
    (void)sequence_arrive(&s, 1);
    (void)sequence_arrive(&s, 4);
    assert_true(sequence_asks(&s, &a));
    assert_true(a.count == 5 && a.upto == 2 && a.whole && a.most == 4);
    (void)sequence_arrive(&s, 1);
    assert_true(sequence_asks(&s, &a));
    assert_true(a.count == 1 && a.upto == 3 && !a.whole);
}

static void those_behind_a_request_add_up_while_it_is_not_told(void **state)
{
    (void)state;
    struct sequence_ask a;
    begin();
    sequence_define(&s, 1, 1, true);
    int64_t t = sequence_arrive(&s, 1);
    assert_true(sequence_expect(&s, 15, 1));
    assert_true(sequence_asks(&s, &a) && a.count == 16 && a.upto == t && !a.whole);
    assert_false(sequence_expect(&s, 15, 1)); /* it is under way */
    assert_false(sequence_asks(&s, &a));
}

static void a_later_ticket_is_not_served_from_an_earlier_block(void **state)
{
    (void)state;
    int64_t index;
    begin();
    sequence_define(&s, 1, 1, true);
    int64_t a = sequence_arrive(&s, 1), b = sequence_arrive(&s, 1);
    sequence_own(&s, 10, 19, a, false);
    assert_int_equal(sequence_strict(&s, mono, &b, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(sequence_strict(&s, mono, &a, 1, &index), SEQUENCE_OK);
    assert_int_equal(index, 10);
    sequence_own(&s, 20, 29, b, false);
    assert_int_equal(sequence_strict(&s, mono, &b, 1, &index), SEQUENCE_OK);
    assert_int_equal(index, 20);
}

static void whose_block_was_too_small_asks_again(void **state)
{
    (void)state;
    int64_t index;
    struct sequence_ask ask;
    begin();
    sequence_define(&s, 1, 1, true);
    int64_t a = sequence_arrive(&s, 5);
    assert_true(sequence_asks(&s, &ask));
    sequence_own(&s, 0, 2, a, false);
    assert_int_equal(sequence_strict(&s, mono, &a, 5, &index), SEQUENCE_EMPTY);
    assert_true(sequence_asks(&s, &ask));
    assert_true(ask.count == 5 && ask.whole && ask.upto == 2 && a == 2);
}

static void a_block_for_one_request_is_not_eaten_by_others(void **state)
{
    (void)state;
    int64_t index;
    begin();
    sequence_define(&s, 1, 1, true);
    int64_t a = sequence_arrive(&s, 1), b = sequence_arrive(&s, 5);
    sequence_own(&s, 10, 14, b, true);
    assert_int_equal(sequence_strict(&s, mono, &a, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(a, 3);
    assert_int_equal(sequence_strict(&s, mono, &b, 5, &index), SEQUENCE_OK);
    assert_int_equal(index, 10);
}

/* The next call's block comes while the first one's is handed out: each has his number all the
 * same, and none is lost. */
static void a_block_that_comes_meanwhile_takes_nobodys_number(void **state)
{
    (void)state;
    int64_t index, a[3], b[3], late;
    struct sequence_ask out;
    begin();
    sequence_define(&s, 1, 1, true);
    for (int i = 0; i < 3; i++)
        a[i] = sequence_arrive(&s, 1);
    assert_true(sequence_asks(&s, &out) && out.count == 3);
    for (int i = 0; i < 3; i++)
        b[i] = sequence_arrive(&s, 1);
    assert_true(sequence_asks(&s, &out) && out.count == 3);
    sequence_own(&s, 0, 2, a[2], false);
    assert_int_equal(sequence_strict(&s, mono, &a[0], 1, &index), SEQUENCE_OK);
    assert_int_equal(s.own[1].n, 0);
    sequence_own(&s, 3, 5, b[2], false);
    assert_true(sequence_may_wait(&s));
    late = sequence_arrive(&s, 1);
    assert_int_equal(sequence_strict(&s, mono, &late, 1, &index), SEQUENCE_EMPTY);
    for (int i = 0; i < 3; i++) { /* in any order */
        assert_int_equal(sequence_strict(&s, mono, &b[i], 1, &index), SEQUENCE_OK);
        assert_int_equal(index, 3 + i);
    }
    for (int i = 1; i < 3; i++) {
        assert_int_equal(sequence_strict(&s, mono, &a[i], 1, &index), SEQUENCE_OK);
        assert_int_equal(index, i);
    }
    assert_int_equal(sequence_strict(&s, mono, &late, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(sequence_given(&s), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_marked_before_it_leaves),
        cmocka_unit_test(a_used_up_block_leaves_the_mark_of_the_next_alone),
        cmocka_unit_test(a_number_is_counted_from_the_start),
        cmocka_unit_test(many_in_a_row_go_over_from_block_to_block),
        cmocka_unit_test(where_they_would_not_be_in_a_row_the_rest_is_dropped),
        cmocka_unit_test(some_are_as_many_as_there_are),
        cmocka_unit_test(a_grant_of_its_own_drops_what_is_below),
        cmocka_unit_test(a_grant_of_its_own_is_revoked_by_no_handle),
        cmocka_unit_test(one_that_lies_below_a_block_is_not_used),
        cmocka_unit_test(a_third_block_is_dropped),
        cmocka_unit_test(the_last_in_hand_is_told),
        cmocka_unit_test(who_wants_few_is_not_behind_all_who_want_many),
        cmocka_unit_test(what_few_are_wanted_is_kept_of_a_block),
        cmocka_unit_test(what_is_dropped_is_counted),
        cmocka_unit_test(what_a_strict_one_drops_is_counted),
        cmocka_unit_test(a_block_that_was_taken_over_goes_on),
        cmocka_unit_test(what_is_revoked_is_not_given_out),
        cmocka_unit_test(of_what_was_given_out_nothing_is_revoked),
        cmocka_unit_test(what_is_let_go_is_not_given_out),
        cmocka_unit_test(the_first_block_is_small),
        cmocka_unit_test(a_block_lasts_as_long_as_it_should),
        cmocka_unit_test(a_block_is_at_most_twice_or_half_of_the_last),
        cmocka_unit_test(a_block_is_at_most_as_large_as_is_allowed),
        cmocka_unit_test(the_next_is_asked_for_by_the_time_left),
        cmocka_unit_test(a_burst_is_seen_at_once),
        cmocka_unit_test(a_refusal_holds_until_its_time),
        cmocka_unit_test(who_is_away_is_not_asked_by_each),
        cmocka_unit_test(a_refused_crowd_does_not_refuse_one),
        cmocka_unit_test(the_pace_is_that_of_hours),
        cmocka_unit_test(the_pace_of_a_strict_one_is_known),
        cmocka_unit_test(what_is_waited_for_makes_no_way),
        cmocka_unit_test(what_is_asked_for_in_advance_makes_way),
        cmocka_unit_test(who_is_refused_at_once_has_not_arrived),
        cmocka_unit_test(a_few_that_come_say_nothing_of_many),
        cmocka_unit_test(strict_requests_add_up),
        cmocka_unit_test(those_behind_a_request_add_up_while_it_is_not_told),
        cmocka_unit_test(a_later_ticket_is_not_served_from_an_earlier_block),
        cmocka_unit_test(a_block_for_one_request_is_not_eaten_by_others),
        cmocka_unit_test(whose_block_was_too_small_asks_again),
        cmocka_unit_test(a_block_that_comes_meanwhile_takes_nobodys_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
