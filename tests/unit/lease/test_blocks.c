/* The blocks machine: what is asked, shared and refused, each rule by the schedule that needs it.
 */
#include "blocks_bench.h"

/* ---- taking ---------------------------------------------------------------------------------- */

static void what_a_sequence_is_is_asked_before_numbers_are(void **state)
{
    (void)state;
    struct blocks_action a;
    begin();
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    brig_next(h, &a);
    assert_int_equal(a.kind, BLOCKS_TAKE);
    assert_int_equal(a.nitems, 1);
    assert_int_equal(a.wants[0].count, 0);
    struct blocks_outcome o;
    brig_take(&rig, &a, &o);
    brig_done(h, &a, &o);
    assert_int_equal(h->mails[BLOCKS_MAIL_KNOWN], 1);
    brig_next(h, &a);
    assert_int_equal(a.wants[0].count, SEQUENCE_FIRST);
    assert_string_equal(a.wants[0].name, "orders");
    end();
}

static void a_definition_that_is_configured_is_known(void **state)
{
    (void)state;
    struct blocks_action a;
    begin();
    assert_true(blocks_close(&h->m, 0));
    blocks_open(&h->m, 0, brig_name(0), rig.store.text);
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    brig_next(h, &a);
    assert_int_equal(a.wants[0].count, SEQUENCE_FIRST);
    assert_string_equal(a.wants[0].text, rig.store.text);
    end();
}

static void one_call_carries_the_wants_of_all(void **state)
{
    (void)state;
    struct blocks_action a;
    begin();
    for (unsigned i = 0; i < BRIG_COUNTERS; i++)
        assert_int_equal(try(i, 1), SEQUENCE_EMPTY);
    brig_next(h, &a);
    assert_int_equal(a.nitems, BRIG_COUNTERS);
    struct blocks_outcome o;
    brig_take(&rig, &a, &o);
    brig_done(h, &a, &o);
    assert_int_equal(brig_step(h), BLOCKS_TAKE);
    assert_int_equal(rig.store.takes, 2);
    for (unsigned i = 0; i < BRIG_COUNTERS; i++)
        assert_int_equal(try(i, 1), SEQUENCE_OK);
    end();
}

static void nothing_is_asked_where_nothing_is_wanted(void **state)
{
    (void)state;
    struct blocks_action a;
    begin();
    use(0, 1);
    brig_settle(h);
    brig_next(h, &a);
    assert_int_equal(a.kind, BLOCKS_IDLE);
    assert_true(a.until == INT64_MAX);
    end();
}

/* The answer is lost: the same token, and nothing new is granted. */
static void a_take_is_repeated_as_it_was(void **state)
{
    (void)state;
    struct blocks_action a, b;
    struct blocks_outcome o, lost = {.status = COORD_DOWN};
    begin();
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    (void)brig_step(h);
    brig_next(h, &a);
    brig_take(&rig, &a, &o);
    brig_done(h, &a, &lost);
    assert_int_equal(h->told.how, BLOCKS_AWAY);
    assert_true(h->told.keeps_on && h->told.when > rig.mono);
    brig_next(h, &b);
    assert_int_equal(b.kind, BLOCKS_IDLE);
    assert_true(b.until == h->told.when);
    const struct blocks_want more = {.count = 77};
    blocks_want(&h->m, 0, &more);
    brig_pass(&rig, b.until - rig.mono);
    brig_next(h, &b);
    assert_memory_equal(b.wants[0].token.b, a.wants[0].token.b, 16);
    assert_int_equal(b.wants[0].count, a.wants[0].count);
    brig_take(&rig, &b, &o);
    assert_int_equal(o.grants[0].how, SEQ_AGAIN);
    brig_done(h, &b, &o);
    assert_int_equal(brig_must(h, 0, 1), 0);
    end();
}

static void pauses_grow_and_end_with_an_answer(void **state)
{
    (void)state;
    int64_t first = 0, pause = 0;
    begin();
    rig.store.status = COORD_DOWN;
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    for (unsigned i = 0; i < 10; i++) {
        (void)brig_step(h);
        pause = h->told.when - rig.mono;
        first = i == 0 ? pause : first;
        brig_pass(&rig, pause);
    }
    assert_in_range(first, 80, 120);
    assert_in_range(pause, 4000, 6000);
    assert_int_equal(blocks_kind_of(h->told.how), BLOCKS_RETRY);
    rig.store.status = COORD_OK;
    (void)brig_must(h, 0, 1);
    rig.store.status = COORD_CLOSED;
    assert_int_equal(try(1, 1), SEQUENCE_EMPTY);
    (void)brig_step(h);
    assert_in_range(h->told.when - rig.mono, 80, 120);
    assert_int_equal(h->told.how, BLOCKS_SHUT);
    end();
}

static void an_outcome_is_taken_once(void **state)
{
    (void)state;
    struct blocks_action a;
    struct blocks_outcome o;
    begin();
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    (void)brig_step(h);
    brig_next(h, &a);
    brig_take(&rig, &a, &o);
    brig_done(h, &a, &o);
    brig_done(h, &a, &o);
    assert_int_equal(h->mails[BLOCKS_MAIL_GRANT], 1);
    struct blocks_action late = a;
    use(0, 2);
    for (unsigned i = 0; i < 100; i++)
        use(0, 1);
    brig_next(h, &a);
    brig_done(h, &late, &o);
    assert_int_equal(brig_count(h, 0, PAGE_HELD) <= BLOCKS_SLOTS, 1);
    end();
}

static void the_next_block_is_there_before_the_first_is_over(void **state)
{
    (void)state;
    int64_t index;
    begin();
    use(0, 1);
    brig_settle(h);
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(brig_get(h, 0, 1, &index), SEQUENCE_OK);
        assert_int_equal(index, i + 1);
        if (i % 3 == 0) {
            brig_pass(&rig, 1);
            brig_settle(h);
        }
    }
    assert_true(rig.store.takes < 20);
    end();
}

static void what_is_more_than_a_block_is_a_grant_of_its_own(void **state)
{
    (void)state;
    int64_t index;
    begin();
    use(0, 3);
    assert_int_equal(brig_get(h, 0, 500, &index), SEQUENCE_EMPTY);
    brig_settle(h);
    unsigned held = brig_count(h, 0, PAGE_HELD);
    assert_int_equal(brig_get(h, 0, 1, &index), SEQUENCE_OK); /* of the block, meanwhile */
    assert_int_equal(index, 3);
    assert_int_equal(brig_get(h, 0, 500, &index), SEQUENCE_OK);
    assert_int_equal(index, SEQUENCE_FIRST);
    assert_true(held > 0);
    assert_int_equal(brig_must(h, 0, 1), SEQUENCE_FIRST + 500); /* what was left is dropped */
    end();
}

static void what_is_dropped_is_not_there_after_a_restart(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    assert_int_equal(brig_must(h, 0, 500), SEQUENCE_FIRST);
    brig_start(h, true);
    assert_int_equal(brig_must(h, 0, 1), SEQUENCE_FIRST + 500);
    end();
}

/* ---- strict ---------------------------------------------------------------------------------- */

static void strict_begin(void)
{
    begin();
    rig.store.definition.strict = true;
    (void)seq_definition_text(rig.store.text, &rig.store.definition);
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY); /* it does not know yet */
    brig_settle(h);
    assert_true(h->seq[0].strict);
}

static enum sequence_status strict(int64_t *ticket, int64_t n, int64_t *index)
{
    enum sequence_status s = sequence_strict(&h->seq[0], rig.mono, ticket, n, index);
    if (s == SEQUENCE_OK)
        brig_watch(h, 0, *index, n);
    return s;
}

static void who_waits_shares_a_call(void **state)
{
    (void)state;
    int64_t index, t[3];
    strict_begin();
    unsigned takes = rig.store.takes;
    for (unsigned i = 0; i < 3; i++)
        t[i] = sequence_arrive(&h->seq[0], i + 1);
    brig_settle(h);
    assert_int_equal(rig.store.takes, takes + 1);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(strict(&t[i], i + 1, &index), SEQUENCE_OK);
    assert_int_equal(rig.store.table.counter[0].next, 6);
    assert_int_equal(brig_count(h, 0, PAGE_HELD), 0);
    end();
}

/* Its repeats included: the answer to the first sending may be older than what others were given
 * when the later request came. */
static void who_came_after_it_was_sent_does_not(void **state)
{
    (void)state;
    struct blocks_action a;
    struct blocks_outcome o, lost = {.status = COORD_DOWN};
    int64_t index;
    strict_begin();
    int64_t early = sequence_arrive(&h->seq[0], 1);
    int64_t gone = sequence_arrive(&h->seq[0], 1);
    brig_next(h, &a);
    assert_int_equal(a.wants[0].count, 2);
    brig_take(&rig, &a, &o);
    brig_done(h, &a, &lost);
    int64_t later = sequence_arrive(&h->seq[0], 1);
    brig_pass(&rig, 200);
    brig_next(h, &a);
    assert_int_equal(a.wants[0].count, 2);
    brig_take(&rig, &a, &o);
    brig_done(h, &a, &o);
    assert_int_equal(strict(&later, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(strict(&early, 1, &index), SEQUENCE_OK);
    assert_int_equal(strict(&later, 1, &index), SEQUENCE_EMPTY); /* that of who is gone is a gap */
    brig_settle(h);
    assert_int_equal(strict(&later, 1, &index), SEQUENCE_OK);
    assert_int_equal(index, 2);
    (void)gone;
    end();
}

static void who_was_refused_is_asked_for_again(void **state)
{
    (void)state;
    int64_t index;
    strict_begin();
    int64_t a = sequence_arrive(&h->seq[0], 1), b = sequence_arrive(&h->seq[0], 1);
    rig.store.how = SEQ_WAIT;
    rig.store.wait_ms = 30;
    brig_settle(h);
    assert_int_equal(h->told.how, SEQ_WAIT);
    assert_int_equal(strict(&a, 1, &index), SEQUENCE_REFUSED);
    rig.store.how = SEQ_LOOKED;
    brig_pass(&rig, 30);
    unsigned takes = rig.store.takes;
    assert_int_equal(strict(&a, 1, &index), SEQUENCE_EMPTY);
    assert_int_equal(strict(&b, 1, &index), SEQUENCE_EMPTY);
    brig_settle(h);
    assert_int_equal(rig.store.takes, takes + 1);
    assert_int_equal(strict(&a, 1, &index), SEQUENCE_OK);
    assert_int_equal(strict(&b, 1, &index), SEQUENCE_OK);
    end();
}

/* What one wants too much of is nothing to the others, nor to who comes later. */
static void who_wants_too_much_is_refused_alone(void **state)
{
    (void)state;
    int64_t index;
    strict_begin();
    rig.store.max = 9;
    int64_t a = sequence_arrive(&h->seq[0], 1), much = sequence_arrive(&h->seq[0], 50),
            b = sequence_arrive(&h->seq[0], 2);
    for (unsigned i = 0; i < 4; i++) {
        brig_settle(h);
        assert_int_not_equal(strict(&much, 50, &index), SEQUENCE_OK);
        if (a && strict(&a, 1, &index) == SEQUENCE_OK)
            a = 0;
        if (b && strict(&b, 2, &index) == SEQUENCE_OK)
            b = 0;
    }
    assert_true(a == 0 && b == 0);
    assert_int_equal(rig.store.table.counter[0].next, 3); /* and nothing is lost */
    int64_t later = sequence_arrive(&h->seq[0], 7);
    for (unsigned i = 0; i < 3; i++) {
        brig_settle(h);
        if (later && strict(&later, 7, &index) == SEQUENCE_OK)
            later = 0;
    }
    assert_int_equal(later, 0);
    end();
}

/* Two of whom each takes what there is: the second one has what the first has left. */
static void where_it_ends_some_are_those_that_are_left(void **state)
{
    (void)state;
    int64_t index, n;
    strict_begin();
    rig.store.max = 9;
    int64_t a = sequence_arrive(&h->seq[0], 7), b = sequence_arrive(&h->seq[0], 7), got = 0;
    for (unsigned i = 0; i < 6; i++, brig_settle(h)) {
        int64_t *t = got == 0 ? &a : &b;
        if (got == 10 ||
            sequence_strict_some(&h->seq[0], rig.mono, t, 7, &index, &n) != SEQUENCE_OK)
            continue;
        assert_true(index == got && n == (got == 0 ? 7 : 3));
        got += n;
    }
    assert_int_equal(got, 10);
    int64_t c = sequence_arrive(&h->seq[0], 7);
    brig_settle(h);
    assert_int_equal(sequence_strict_some(&h->seq[0], rig.mono, &c, 7, &index, &n),
                     SEQUENCE_REFUSED);
    assert_int_equal(h->seq[0].refused.count, 1);
    end();
}

/* More than a call may ask for would be refused, with what all others want in it. */
static void what_adds_up_is_asked_for_up_to_what_one_may_have(void **state)
{
    (void)state;
    struct blocks_action a;
    const struct blocks_want many = {
        .count = SEQ_BLOCK_MAX - 1, .whole = true, .upto = 9, .most = SEQ_BLOCK_MAX - 1};
    strict_begin();
    blocks_want(&h->m, 0, &many);
    blocks_want(&h->m, 0, &many);
    blocks_next(&h->m, rig.mono, &a);
    assert_int_equal(a.kind, BLOCKS_TAKE);
    assert_int_equal(a.wants[0].count, SEQ_BLOCK_MAX);
    end();
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* The clock by which that day is ahead may be wrong, or the sequence be made anew. */
static void what_is_a_day_ahead_is_asked_about_again_all_the_same(void **state)
{
    (void)state;
    begin();
    rig.store.how = SEQ_WAIT;
    rig.store.wait_ms = 86400000;
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    brig_settle(h);
    assert_int_equal(try(0, 1), SEQUENCE_REFUSED);
    rig.store.how = SEQ_LOOKED;
    brig_pass(&rig, 1000);
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    brig_settle(h);
    assert_int_equal(try(0, 1), SEQUENCE_OK);
    end();
}

static void each_refusal_is_one_of_four_kinds(void **state)
{
    (void)state;
    static const struct {
        enum seq_how how;
        enum blocks_kind kind;
    } rows[] = {
        {SEQ_WAIT, BLOCKS_LATER},          {SEQ_CLOSED, BLOCKS_NEVER},
        {SEQ_USED_UP, BLOCKS_NEVER},       {SEQ_STOPPED, BLOCKS_NEVER},
        {SEQ_UNKNOWN, BLOCKS_MISS},        {SEQ_DROPPED, BLOCKS_MISS},
        {SEQ_DIFFERS, BLOCKS_NEVER},       {SEQ_NO_SUBS, BLOCKS_NEVER},
        {SEQ_TOO_MANY_SUBS, BLOCKS_NEVER}, {SEQ_NO_PERIOD, BLOCKS_NEVER},
        {SEQ_UNREADABLE, BLOCKS_NEVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        rig.store.how = rows[i].how;
        rig.store.wait_ms = 250;
        assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
        brig_settle(h);
        assert_int_equal(h->told.how, rows[i].how);
        assert_int_equal(blocks_kind_of(h->told.how), rows[i].kind);
        assert_int_equal(h->told.when - rig.mono, rows[i].how == SEQ_WAIT ? 250 : 1000);
        assert_int_equal(try(0, 1), SEQUENCE_REFUSED);
        brig_settle(h);
        assert_int_equal(rig.store.takes, 1); /* not before its time */
        rig.store.how = SEQ_LOOKED;
        brig_pass(&rig, 1000);
        (void)try(0, 1);
        brig_settle(h);
        assert_int_equal(try(0, 1), SEQUENCE_OK);
        end();
    }
}

/* Who wants fewer in a row may have them, where it is by how many there are; else nobody has any.
 */
static void a_refusal_is_of_so_many_or_of_all(void **state)
{
    (void)state;
    static const struct {
        enum seq_how how;
        int64_t of;
    } rows[] = {
        {SEQ_WAIT, 5}, {SEQ_USED_UP, 5}, {SEQ_CLOSED, 1}, {SEQ_STOPPED, 1}, {SEQ_DROPPED, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t index;
        strict_begin();
        rig.store.how = rows[i].how;
        rig.store.wait_ms = 250;
        int64_t t = sequence_arrive(&h->seq[0], 5);
        brig_settle(h);
        assert_int_not_equal(strict(&t, 5, &index), SEQUENCE_OK);
        assert_int_equal(h->told.how, rows[i].how);
        assert_int_equal(h->told.hi, rows[i].of);
        end();
    }
}

static int64_t rate_told(void)
{
    rig.store.how = SEQ_WAIT;
    rig.store.wait_ms = 50;
    (void)try(0, 1);
    brig_settle(h);
    assert_int_equal(h->told.how, SEQ_WAIT);
    return h->told.lo;
}

/* It has begun, the pool is not just reopened, and somebody waits. */
static void that_it_is_at_its_line_is_told(void **state)
{
    (void)state;
    begin();
    assert_int_equal(rate_told(), BRIG_RATE);
    end();
    begin();
    rig.store.definition.begins_ms = rig.wall + 1;
    (void)seq_definition_text(rig.store.text, &rig.store.definition);
    assert_int_equal(rate_told(), 0);
    end();
    for (int64_t passed = 59999; passed <= 60000; passed++) {
        begin();
        brig_reopen(&rig, NULL);
        brig_pass(&rig, passed);
        assert_int_equal(rate_told(), passed < 60000 ? 0 : BRIG_RATE);
        end();
    }
    strict_begin();
    (void)sequence_arrive(&h->seq[0], 1);
    assert_int_equal(rate_told(), BRIG_RATE);
    end();
}

static void who_has_numbers_in_hand_is_not_at_its_line(void **state)
{
    (void)state;
    int64_t index;
    begin();
    (void)brig_must(h, 0, 1);
    rig.store.how = SEQ_WAIT;
    rig.store.wait_ms = 50;
    blocks_want(&h->m, 0, &(struct blocks_want){.count = 20}); /* in advance */
    brig_settle(h);
    assert_int_equal(h->told.how, SEQ_WAIT);
    assert_int_equal(h->told.lo, 0);
    brig_pass(&rig, 50);
    assert_int_equal(brig_get(h, 0, 500, &index), SEQUENCE_EMPTY);
    brig_settle(h);
    assert_int_equal(h->told.hi, 500);
    assert_int_equal(h->told.lo, BRIG_RATE);
    end();
}

static void blocks_in_hand_outlast_a_store_that_forgot(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    rig.store.how = SEQ_UNKNOWN;
    for (unsigned i = 3; i < SEQUENCE_FIRST; i++) {
        assert_int_equal(try(0, 1), SEQUENCE_OK);
        brig_settle(h);
    }
    assert_int_equal(h->told.how, SEQ_UNKNOWN);
    end();
}

static void who_wants_less_than_was_refused_gets_it(void **state)
{
    (void)state;
    begin();
    rig.store.max = 99;
    use(0, 1);
    assert_int_equal(try(0, 200), SEQUENCE_EMPTY);
    brig_settle(h);
    assert_int_equal(h->told.how, SEQ_USED_UP);
    assert_int_equal(h->told.hi, 99 + 1 - SEQUENCE_FIRST + 1); /* fewer can be had */
    assert_int_equal(try(0, 200), SEQUENCE_REFUSED);
    assert_int_equal(brig_must(h, 0, 1), 1);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_sequence_is_is_asked_before_numbers_are),
        cmocka_unit_test(a_definition_that_is_configured_is_known),
        cmocka_unit_test(one_call_carries_the_wants_of_all),
        cmocka_unit_test(nothing_is_asked_where_nothing_is_wanted),
        cmocka_unit_test(a_take_is_repeated_as_it_was),
        cmocka_unit_test(pauses_grow_and_end_with_an_answer),
        cmocka_unit_test(an_outcome_is_taken_once),
        cmocka_unit_test(the_next_block_is_there_before_the_first_is_over),
        cmocka_unit_test(what_is_more_than_a_block_is_a_grant_of_its_own),
        cmocka_unit_test(what_is_dropped_is_not_there_after_a_restart),
        cmocka_unit_test(who_waits_shares_a_call),
        cmocka_unit_test(who_came_after_it_was_sent_does_not),
        cmocka_unit_test(who_was_refused_is_asked_for_again),
        cmocka_unit_test(who_wants_too_much_is_refused_alone),
        cmocka_unit_test(where_it_ends_some_are_those_that_are_left),
        cmocka_unit_test(what_adds_up_is_asked_for_up_to_what_one_may_have),
        cmocka_unit_test(what_is_a_day_ahead_is_asked_about_again_all_the_same),
        cmocka_unit_test(each_refusal_is_one_of_four_kinds),
        cmocka_unit_test(a_refusal_is_of_so_many_or_of_all),
        cmocka_unit_test(that_it_is_at_its_line_is_told),
        cmocka_unit_test(who_has_numbers_in_hand_is_not_at_its_line),
        cmocka_unit_test(blocks_in_hand_outlast_a_store_that_forgot),
        cmocka_unit_test(who_wants_less_than_was_refused_gets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
