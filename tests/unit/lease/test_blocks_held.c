/* The blocks machine: what is held, over reopenings, revocations, restarts and the end. */
#include "blocks_bench.h"

#include <stdio.h>

/* ---- the opening, and what an operator does -------------------------------------------------- */

static struct seq_want asked(unsigned counter)
{
    struct blocks_action a;
    const struct blocks_want w = {.count = 1, .whole = true};
    blocks_want(&h->m, counter, &w);
    blocks_next(&h->m, rig.mono, &a);
    assert_int_equal(a.kind, BLOCKS_TAKE);
    const struct blocks_outcome none = {.status = COORD_DOWN};
    brig_done(h, &a, &none);
    brig_pass(&rig, 10000);
    return a.wants[0];
}

static void a_count_is_of_the_opening_in_which_it_was_told(void **state)
{
    (void)state;
    begin();
    use(0, 1);
    use(1, 1);
    struct seq_want w = asked(0);
    assert_true(w.n == 1 && w.gen == 1 && !w.known_before);
    brig_reopen(&rig, NULL);
    brig_pass(&rig, 300);
    (void)brig_must(h, 2, 1); /* hears of it */
    w = asked(1);
    assert_true(w.n == 1 && w.known_before);
    end();
}

static void a_count_outlives_the_process_with_its_opening(void **state)
{
    (void)state;
    begin();
    use(0, 1);
    brig_start(h, true);
    struct blocks_action a;
    const struct blocks_want w = {.count = 1, .whole = true};
    blocks_want(&h->m, 0, &w);
    brig_next(h, &a);
    assert_true(a.wants[0].n == 1 && !a.wants[0].known_before);
    assert_true(blockpage_same_opening(&a.by.opening, &rig.store.opening));
    end();
}

/* It knows by now what it lost, and what the next one lost is not told by that. */
static void a_store_without_the_sequence_is_told_of_a_count_once(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    rig.store.how = SEQ_UNKNOWN;
    brig_reopen(&rig, NULL);
    struct seq_want w = asked(0);
    assert_true(w.n == 1 && w.gen == 1);
    brig_settle(h);
    brig_reopen(&rig, NULL);
    w = asked(0);
    assert_true(w.n == 0 && w.seen > 0);
    brig_start(h, true);
    w = asked(0);
    assert_true(w.n == 0);
    rig.store.how = SEQ_LOOKED;
    assert_int_equal(brig_must(h, 0, 1), 3); /* what was granted is there still */
    end();
}

/* The table is an earlier one, and nothing but a count tells it. */
static void a_silent_rewind_is_proven(void **state)
{
    (void)state;
    begin();
    struct brig_table before = rig.store.table;
    use(0, 40);
    rig.store.table = before;
    for (unsigned i = 0; i < 100; i++) {
        (void)try(0, 1);
        brig_settle(h);
        brig_pass(&rig, 50);
    }
    assert_int_equal(rig.store.proofs, 1);
    end();
}

static void a_store_that_went_back_repeats_nothing_here(void **state)
{
    (void)state;
    begin();
    struct brig_table before = rig.store.table;
    use(0, 40);
    h->m.counter[0].n = 0; /* nobody knows more */
    rig.store.table = before;
    for (unsigned i = 0; i < 200; i++) {
        int64_t index;
        (void)brig_get(h, 0, 1, &index);
        brig_settle(h);
        brig_pass(&rig, 50);
    }
    assert_true(h->seq[0].given > 60);
    assert_int_equal(rig.store.proofs, 0);
    end();
}

static void revoke(int64_t era, int64_t from)
{
    rig.store.turn++;
    rig.store.revoked = (struct seq_revoked){rig.store.turn, era, from};
}

/* What was taken for one request, who has gone before he was served: it stands in no page. From an
 * index that is not revoked it stays. */
static void what_was_taken_whole_is_revoked_too(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        assert_int_not_equal(try(0, 50), SEQUENCE_OK);
        brig_settle(h);
        assert_int_equal(h->mails[BLOCKS_MAIL_OWN], 1);
        brig_reopen(&rig, NULL);
        if (i < 2)
            revoke(rig.store.opening.era, i == 0 ? 49 : 50);
        else
            rig.store.gen++;
        (void)asked(0);
        rig.store.how = SEQ_STOPPED;
        brig_settle(h);
        assert_int_equal(h->mails[BLOCKS_MAIL_REVOKE], i != 1);
        if (i == 1)
            assert_int_equal(try(0, 50), SEQUENCE_OK);
        else
            assert_int_not_equal(try(0, 50), SEQUENCE_OK);
        end();
    }
}

static void a_set_drops_what_is_held(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    revoke(rig.store.opening.era + 1, 0);
    rig.store.table.counter[0].next = 5000;
    (void)asked(0);
    brig_settle(h); /* the next call */
    assert_int_equal(h->mails[BLOCKS_MAIL_REVOKE], 1);
    assert_true(brig_must(h, 0, 1) >= 5000);
    end();
}

/* What was granted before the reopening, from that index on; what was granted since stays. */
static void a_reopening_by_word_cuts_older_blocks(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    use(1, 3);
    brig_reopen(&rig, NULL);
    revoke(rig.store.opening.era, 5);
    (void)asked(0);
    (void)asked(1);
    rig.store.how = SEQ_STOPPED;
    brig_settle(h);
    assert_true(h->mails[BLOCKS_MAIL_REVOKE] >= 2);
    assert_int_equal(try(0, 1), SEQUENCE_OK);
    assert_int_equal(try(0, 1), SEQUENCE_OK);
    assert_int_not_equal(try(0, 1), SEQUENCE_OK);
    assert_true(brig_record(h, 1, 0).hi == 4 || brig_record(h, 1, 1).hi == 4);
    end();
}

static void blocks_of_this_era_outlast_a_reopening_by_word(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    revoke(rig.store.opening.era, 5);
    (void)asked(0);
    brig_settle(h);
    assert_int_equal(h->mails[BLOCKS_MAIL_REVOKE], 0);
    end();
}

static void another_making_of_the_name_is_another_sequence(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        use(0, 3);
        rig.store.gen += i == 0;
        rig.store.definition.increment += i == 1;
        (void)seq_definition_text(rig.store.text, &rig.store.definition);
        rig.store.how = i == 2 ? SEQ_DROPPED : i == 3 ? SEQ_UNKNOWN : SEQ_LOOKED;
        (void)asked(0);
        brig_settle(h);
        assert_int_equal(h->mails[BLOCKS_MAIL_REVOKE], i == 3 ? 0 : 1);
        end();
    }
}

static void another_pool_has_other_sequences(void **state)
{
    (void)state;
    begin();
    use(0, 3);
    blocks_lose(&h->m, "another");
    assert_string_equal(h->page->head.identity, "another");
    assert_int_equal(h->m.mail[0].kind, BLOCKS_MAIL_LOST);
    assert_int_equal(brig_count(h, 0, PAGE_HELD), 0);
    struct seq_want w = asked(0);
    assert_true(w.n == 0 && w.gen == 0 && w.seen == 0);
    end();
}

/* ---- one life and the next ------------------------------------------------------------------- */

static void a_restart_goes_on_with_the_next_number(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    unsigned takes = rig.store.takes;
    brig_start(h, true);
    brig_settle(h);
    assert_int_equal(brig_must(h, 0, 1), 4);
    assert_int_equal(rig.store.takes, takes);
    end();
}

/* How its numbers are written, in the answer that there are no more yet. */
static void of_what_a_page_has_the_template_is_heard_while_grants_pause(void **state)
{
    (void)state;
    const unsigned sub = 2;
    begin();
    (void)snprintf(rig.store.definition.template, sizeof rig.store.definition.template, "A@{seq}");
    (void)seq_definition_text(rig.store.text, &rig.store.definition);
    assert_true(brig_name(sub)->sub[0]);
    use(sub, 4);
    brig_start(h, true);
    (void)brig_step(h);
    assert_null(h->m.counter[sub].template);
    rig.store.how = SEQ_WAIT;
    rig.store.wait_ms = 4000;
    blocks_want(&h->m, sub, &(struct blocks_want){.look = true});
    (void)brig_step(h);
    assert_non_null(h->m.counter[sub].template);
    assert_true(h->m.counter[sub].known);
    assert_int_equal(brig_must(h, sub, 1), 4);
    end();
}

static void begin_unproven(void)
{
    const struct blocks_config conf = {.counters = BRIG_COUNTERS};
    struct err e;
    begin();
    use(0, 4);
    blocks_clear(&h->m);
    assert_int_equal(blocks_init(&h->m, &conf, h->page, &rig.rng.rng, rig.mono, &e), ERR_OK);
    sequence_init(&h->seq[0], 1000, 1000, rig.mono);
    assert_false(blocks_are_proven(&h->m));
}

/* And nothing is taken meanwhile: it would lie above. */
static void a_page_is_proven_before_it_is_used(void **state)
{
    (void)state;
    begin_unproven();
    unsigned grants = h->mails[BLOCKS_MAIL_GRANT];
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    assert_int_equal(brig_step(h), BLOCKS_IDLE);
    assert_int_equal(h->mails[BLOCKS_MAIL_GRANT], grants);
    blocks_prove(&h->m, true);
    (void)brig_step(h);
    assert_true(blocks_are_proven(&h->m));
    assert_int_equal(brig_must(h, 0, 1), 4);
    end();
}

static void what_cannot_be_proven_is_dropped(void **state)
{
    (void)state;
    begin_unproven();
    blocks_prove(&h->m, false);
    assert_int_equal(try(0, 1), SEQUENCE_EMPTY);
    (void)brig_step(h);
    assert_int_equal(brig_must(h, 0, 1), SEQUENCE_FIRST);
    assert_true(blocks_are_proven(&h->m));
    end();
}

static void stop(bool give_back)
{
    blocks_stop(&h->m, give_back, rig.mono);
    for (unsigned i = 0; i < 9 && brig_step(h) != BLOCKS_FINISHED; i++)
        brig_pass(&rig, 10);
}

static void what_is_left_goes_back(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    use(1, 1);
    stop(true);
    assert_int_equal(rig.store.returns, 1);
    assert_int_equal(rig.store.table.counter[0].next, 4);
    assert_int_equal(rig.store.table.counter[1].next, 1);
    assert_int_equal(brig_count(h, 0, PAGE_FREE), BLOCKS_SLOTS);
    assert_true(h->m.gave_up);
    h = &rig.holder[1];
    assert_int_equal(brig_must(h, 0, 1), 4);
    end();
}

static void two_blocks_in_a_row_go_back_as_one(void **state)
{
    (void)state;
    begin();
    use(0, 9);
    brig_settle(h);
    assert_int_equal(h->seq[0].nblocks, 2);
    stop(true);
    assert_int_equal(rig.store.returns, 1);
    assert_int_equal(rig.store.table.counter[0].next, 9);
    end();
}

/* Between them is somebody else's. */
static void of_two_blocks_apart_the_upper_goes_back(void **state)
{
    (void)state;
    begin();
    use(0, 1);
    h = &rig.holder[1];
    use(0, 1);
    h = &rig.holder[0];
    use(0, 8);
    brig_settle(h);
    assert_int_equal(h->seq[0].nblocks, 2);
    stop(true);
    assert_int_equal(rig.store.table.counter[0].next, 20);
    assert_int_equal(brig_count(h, 0, PAGE_HELD), 1);
    end();
}

/* In the page the upper one may stand before the lower one. */
static void of_two_blocks_of_a_page_the_upper_is_the_latest(void **state)
{
    (void)state;
    begin();
    use(0, 9);
    brig_settle(h);
    while (brig_record(h, 0, 0).lo == 0 || h->seq[0].nblocks < 2) {
        use(0, 1);
        brig_settle(h);
    }
    assert_true(brig_record(h, 0, 0).lo > brig_record(h, 0, 1).hi);
    int64_t next = h->last[0] + 1;
    brig_start(h, true);
    (void)brig_step(h);
    stop(true);
    assert_int_equal(rig.store.table.counter[0].next, next);
    end();
}

/* Its marks may be of an earlier state of the page: others, or we, may have given out what is
 * behind. */
static void what_is_not_proven_does_not_go_back(void **state)
{
    (void)state;
    begin_unproven();
    int64_t next = rig.store.table.counter[0].next;
    stop(true);
    assert_int_equal(rig.store.returns, 0);
    assert_int_equal(rig.store.table.counter[0].next, next);
    assert_int_equal(brig_count(h, 0, PAGE_LEAVING), 0);
    end();
}

static void what_others_took_since_keeps_it(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    h = &rig.holder[1];
    use(0, 1);
    h = &rig.holder[0];
    stop(true);
    assert_int_equal(rig.store.table.counter[0].next, 20);
    end();
}

static void blocks_of_an_earlier_era_do_not_go_back(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    brig_settle(h);
    brig_reopen(&rig, NULL);
    brig_pass(&rig, 300);
    use(1, 1);
    stop(true);
    assert_int_equal(brig_count(h, 0, PAGE_HELD), 2); /* the next life gives them out */
    end();
}

/* It may have reached the coordinator. */
static void what_is_leaving_is_never_given_out_again(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    rig.store.status = COORD_DOWN;
    stop(true);
    assert_int_equal(brig_count(h, 0, PAGE_LEAVING), 1);
    rig.store.status = COORD_OK;
    brig_start(h, true);
    assert_int_equal(h->seq[0].nblocks, 0);
    assert_int_equal(brig_must(h, 0, 1), SEQUENCE_FIRST);
    end();
}

/* Lower numbers are those of who comes next, where it has reached the coordinator. */
static void what_went_back_may_be_had_after_a_kill(void **state)
{
    (void)state;
    struct blocks_action a;
    struct blocks_outcome o;
    begin();
    use(0, 4);
    blocks_stop(&h->m, true, rig.mono);
    brig_next(h, &a);
    assert_int_equal(a.kind, BLOCKS_RETURN);
    brig_return(&rig, &a, &o);
    assert_int_equal(rig.store.table.counter[0].next, 4);
    brig_start(h, true);
    assert_int_equal(brig_must(h, 0, 1), 4);
    end();
}

/* Of the two blocks that are found each has a count of its own. */
static void the_latest_count_is_told_after_a_restart(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 1; i < SEQUENCE_FIRST && brig_count(h, 0, PAGE_HELD) < 2; i++, brig_settle(h))
        use(0, 1);
    assert_int_equal(brig_count(h, 0, PAGE_HELD), 2);
    brig_start(h, true);
    brig_settle(h);
    assert_int_equal(asked(0).n, rig.store.table.counter[0].n);
    end();
}

static void a_return_that_is_not_answered_ends_in_time(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    rig.store.status = COORD_DOWN;
    blocks_stop(&h->m, true, rig.mono);
    int64_t began = rig.mono;
    struct blocks_action a;
    for (;;) {
        brig_next(h, &a);
        if (a.kind == BLOCKS_FINISHED)
            break;
        if (a.kind == BLOCKS_IDLE)
            brig_pass(&rig, a.until - rig.mono);
        else
            brig_done(h, &a, &(struct blocks_outcome){.status = COORD_DOWN});
    }
    assert_int_equal(rig.mono - began, 3000);
    end();
}

static void what_another_pool_does_not_take_is_not_offered_again(void **state)
{
    (void)state;
    const enum coord_status none[] = {COORD_WRONGPOOL, COORD_NOPOOL};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        begin();
        use(0, 4);
        rig.store.status = none[i];
        int64_t began = rig.mono;
        blocks_stop(&h->m, true, rig.mono);
        assert_int_equal(brig_step(h), BLOCKS_RETURN);
        assert_int_equal(brig_step(h), BLOCKS_FINISHED);
        assert_int_equal(rig.mono, began);
        end();
    }
}

static void a_stop_without_it_leaves_all_for_the_next_start(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    stop(false);
    assert_int_equal(rig.store.returns, 0);
    brig_start(h, true);
    brig_settle(h);
    assert_int_equal(brig_must(h, 0, 1), 4);
    end();
}

static void a_place_is_free_for_another_counter(void **state)
{
    (void)state;
    begin();
    use(0, 4);
    brig_settle(h);
    assert_int_equal(blocks_find(&h->m, brig_name(0)), 0);
    assert_int_equal(try(1, 1), SEQUENCE_EMPTY);
    struct blocks_action a;
    brig_next(h, &a);
    assert_false(blocks_close(&h->m, 1));
    assert_true(blocks_close(&h->m, 0));
    assert_int_equal(blocks_find(&h->m, brig_name(0)), BRIG_COUNTERS);
    assert_int_equal(brig_count(h, 0, PAGE_HELD), 0);
    end();
}

static void the_coordinators_time_goes_on(void **state)
{
    (void)state;
    begin();
    assert_int_equal(blocks_time(&h->m, rig.mono), 0);
    use(0, 1);
    assert_true(blocks_time(&h->m, rig.mono + 500) == BRIG_T0 + 500);
    brig_start(h, true);
    assert_true(blocks_time(&h->m, rig.mono + 500) == BRIG_T0 + 500);
    brig_start(h, false);
    assert_int_equal(blocks_time(&h->m, rig.mono), 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_is_of_the_opening_in_which_it_was_told),
        cmocka_unit_test(a_count_outlives_the_process_with_its_opening),
        cmocka_unit_test(a_store_without_the_sequence_is_told_of_a_count_once),
        cmocka_unit_test(a_silent_rewind_is_proven),
        cmocka_unit_test(a_store_that_went_back_repeats_nothing_here),
        cmocka_unit_test(what_was_taken_whole_is_revoked_too),
        cmocka_unit_test(a_set_drops_what_is_held),
        cmocka_unit_test(a_reopening_by_word_cuts_older_blocks),
        cmocka_unit_test(blocks_of_this_era_outlast_a_reopening_by_word),
        cmocka_unit_test(another_making_of_the_name_is_another_sequence),
        cmocka_unit_test(another_pool_has_other_sequences),
        cmocka_unit_test(a_restart_goes_on_with_the_next_number),
        cmocka_unit_test(of_what_a_page_has_the_template_is_heard_while_grants_pause),
        cmocka_unit_test(a_page_is_proven_before_it_is_used),
        cmocka_unit_test(what_cannot_be_proven_is_dropped),
        cmocka_unit_test(what_is_left_goes_back),
        cmocka_unit_test(two_blocks_in_a_row_go_back_as_one),
        cmocka_unit_test(of_two_blocks_apart_the_upper_goes_back),
        cmocka_unit_test(of_two_blocks_of_a_page_the_upper_is_the_latest),
        cmocka_unit_test(what_is_not_proven_does_not_go_back),
        cmocka_unit_test(what_others_took_since_keeps_it),
        cmocka_unit_test(blocks_of_an_earlier_era_do_not_go_back),
        cmocka_unit_test(what_is_leaving_is_never_given_out_again),
        cmocka_unit_test(what_went_back_may_be_had_after_a_kill),
        cmocka_unit_test(the_latest_count_is_told_after_a_restart),
        cmocka_unit_test(a_return_that_is_not_answered_ends_in_time),
        cmocka_unit_test(what_another_pool_does_not_take_is_not_offered_again),
        cmocka_unit_test(a_stop_without_it_leaves_all_for_the_next_start),
        cmocka_unit_test(a_place_is_free_for_another_counter),
        cmocka_unit_test(the_coordinators_time_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
