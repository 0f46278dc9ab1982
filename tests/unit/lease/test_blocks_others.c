/* Bugs that others had with numbers that are held, each as the schedule that showed it there. Those
 * of stores are in coord/test_sequences_others. */
#include "blocks_bench.h"

#define HOLDERS 2
#define SET_TO  5000

static void start(void)
{
    brig_init(&rig, HOLDERS, 1);
}

static void revoke_all(void)
{
    rig.store.turn++;
    rig.store.revoked = (struct seq_revoked){rig.store.turn, rig.store.opening.era + 1, 0};
}

/* Each asks the coordinator once more, as it does of itself when it needs more. */
static void asks(struct brig_holder *of, unsigned counter)
{
    const struct blocks_want w = {.count = 1, .whole = true};
    blocks_want(&of->m, counter, &w);
    brig_settle(of);
}

/* Vitess 9442: others write rows with numbers of their own for a while; the sequence is set above
 * these, and who holds numbers goes on with those below until he is restarted. */
static void vitess_9442_a_sequence_that_is_set_needs_no_restart(void **state)
{
    (void)state;
    start();
    for (unsigned i = 0; i < HOLDERS; i++)
        (void)brig_must(&rig.holder[i], 0, 1);
    rig.store.table.counter[0].next = SET_TO;
    revoke_all();
    for (unsigned i = 0; i < HOLDERS; i++) {
        asks(&rig.holder[i], 0);
        assert_true(brig_must(&rig.holder[i], 0, 1) >= SET_TO);
        brig_start(&rig.holder[i], true); /* and what the page has is no older */
        assert_true(brig_must(&rig.holder[i], 0, 1) >= SET_TO);
    }
    brig_clear(&rig);
}

/* YugabyteDB TA-22935: numbers that are held are known by a name that two databases have, and by
 * one that was dropped and made again. */
static void yugabyte_ta_22935_numbers_are_of_one_making_of_one_counter(void **state)
{
    (void)state;
    struct brig_holder *of = &rig.holder[0];
    start();
    for (int64_t k = 0; k < 5; k++) /* a sequence, and a sub of the same name */
        assert_true(brig_must(of, 0, 1) == k && brig_must(of, 2, 1) == k);
    rig.store.gen++;
    rig.store.table.counter[0].next = SET_TO;
    rig.store.table.counter[0].taken = false;
    asks(of, 0);
    assert_true(brig_must(of, 0, 1) >= SET_TO);
    brig_start(of, true);
    assert_true(brig_must(of, 0, 1) >= SET_TO);
    brig_clear(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vitess_9442_a_sequence_that_is_set_needs_no_restart),
        cmocka_unit_test(yugabyte_ta_22935_numbers_are_of_one_making_of_one_counter),
    };
    return cmocka_run_group_tests_name("lease/blocks_others", tests, NULL, NULL);
}
