/*
 * Bugs that others had with sequences, each as the schedule that showed it there: of sequences.lua
 * in a real Redis, of the rules in C over an SQLite file and over a toy store. Those of who holds
 * blocks are in lease/test_blocks_others.
 */
#include "seq_rig.h"

#define RATE 100

static struct seq_grant g;

/* Once numbers may be had again after a reopening. */
static enum seq_how take_sub(const char *sub, int64_t count, uint8_t token)
{
    struct seq_want w = want_of("orders", count, token);
    w.sub = sub;
    for (int64_t waited = 0; take(&w, &g) == SEQ_WAIT && waited < 60000; waited += g.wait_ms)
        pair.clock.ms += g.wait_ms;
    return g.how;
}

static bool apart(const struct seq_grant *a, const struct seq_grant *b)
{
    return a->hi < b->lo || b->hi < a->lo;
}

/* Redis 6062: a master fails, and the replica that takes its place lacks the latest writes; a
 * client of INCR that saw 91 sees 81. */
static void redis_6062_a_replica_in_the_masters_place_does_not_count_back(void **state)
{
    (void)state;
    begin(FORGETTING);
    assert_int_equal(create("orders", skipping(RATE), &g), SEQ_DONE);
    assert_int_equal(take_sub("", 80, 1), SEQ_GRANTED);
    pair_backup(&pair, 0);
    assert_int_equal(take_sub("", 11, 2), SEQ_GRANTED);
    assert_int_equal(seq_number(&g.definition, g.hi), 91);
    pair_restore(&pair, 0, false);
    assert_int_equal(take_sub("", 1, 3), SEQ_GRANTED);
    assert_true(seq_number(&g.definition, g.lo) > 91);
}

/* Vitess 3116: A has reserved numbers and holds them; B is made primary, reserves and gives out; A
 * is primary again and goes on with what it holds. Here B lacks what A reserved, even the record of
 * the counter, and A's data come back without what B did. */
static void vitess_3116_what_is_held_over_two_changes_of_the_primary_stays_apart(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_definition d = skipping(RATE);
    d.subs = 10;
    assert_int_equal(create("orders", d, &g), SEQ_DONE);
    pair_backup(&pair, 0);
    assert_int_equal(take_sub("acme", 100, 1), SEQ_GRANTED);
    const struct seq_grant held = g;
    pair_backup(&pair, 1);
    pair_restore(&pair, 0, false);
    assert_int_equal(take_sub("acme", 100, 2), SEQ_GRANTED);
    const struct seq_grant other = g;
    pair_restore(&pair, 1, false);
    assert_int_equal(take_sub("acme", 100, 3), SEQ_GRANTED);
    assert_true(apart(&held, &other) && apart(&held, &g) && apart(&other, &g));
}

/* Vitess 5590: who holds numbers writes back the next one as he has it in mind, over what another
 * primary, or an operator, has put there meanwhile. */
static void vitess_5590_the_next_number_is_the_one_that_is_there(void **state)
{
    (void)state;
    begin(EACH);
    assert_int_equal(create("orders", lossy(SEQ_LOSS_REFUSE), &g), SEQ_DONE);
    assert_int_equal(take_of("orders", 10, 1, &g), SEQ_GRANTED);
    assert_int_equal(take_of("orders", 10, 2, &g), SEQ_GRANTED); /* another's */
    assert_int_equal(set_to("orders", 1000, false, &g), SEQ_DONE);
    struct seq_want w = want_of("orders", 10, 2);
    w.seen = 20;
    assert_int_equal(take(&w, &g), SEQ_GRANTED); /* with all that it had in mind */
    assert_int_equal(seq_number(&g.definition, g.lo), 1000);
    assert_int_equal(take_of("orders", 10, 1, &g), SEQ_GRANTED);
    assert_int_equal(seq_number(&g.definition, g.lo), 1010);
}

int main(void)
{
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redis_6062_a_replica_in_the_masters_place_does_not_count_back),
        cmocka_unit_test(vitess_3116_what_is_held_over_two_changes_of_the_primary_stays_apart),
        cmocka_unit_test(vitess_5590_the_next_number_is_the_one_that_is_there),
    };
    return cmocka_run_group_tests_name("coord/sequences_others", tests, seq_setup, teardown);
}
