/* The supply of sequences over a restart: what of the state page is given out from, and when. */
#include "sequences_bench.h"

#include <sys/stat.h>
#include <time.h>

#define GIVEN 4

/* A block of 10, of which GIVEN were given out, and a renewal since. */
static void live(void)
{
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    const struct blocks_mail *m = must_have(0, "orders", 10);
    mark_store(m->mark, GIVEN);
    pass(25000);
}

/* What the process says of its blocks that it took over. */
static void assert_taken_over(void)
{
    const struct blocks_mail *m = NULL;
    for (unsigned i = b.nmail; i-- > 0;)
        m = b.mail[i].kind == BLOCKS_MAIL_GRANT ? &b.mail[i] : m;
    assert_non_null(latest(BLOCKS_MAIL_KNOWN, 0));
    assert_non_null(m);
    assert_int_equal(m->lo, 0);
    assert_int_equal(m->hi, 9);
    assert_int_equal(m->given, GIVEN);
    assert_true(b.supply[1]->kind->proven(b.supply[1]));
    assert_int_equal(report()->dropped, 0);
}

static void assert_dropped(int64_t numbers)
{
    assert_null(latest(BLOCKS_MAIL_GRANT, 0));
    assert_true(b.supply[1]->kind->proven(b.supply[1]));
    assert_int_equal(report()->dropped, numbers);
    tell_want(0, 10);
    run();
    assert_non_null(latest(BLOCKS_MAIL_KNOWN, 0));
    assert_true(latest(BLOCKS_MAIL_GRANT, 0)->lo >= 10);
}

static void assert_waits(void)
{
    assert_null(latest(BLOCKS_MAIL_GRANT, 0));
    assert_false(b.supply[1]->kind->proven(b.supply[1]));
}

static void away(bool on)
{
    toy_of(b.coord)->loses = on;
}

static void next_tick(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
}

/* ---- tmpfs ----------------------------------------------------------------------------------- */

static void on_tmpfs_it_goes_on_at_once_with_the_next_number(void **state)
{
    (void)state;
    live();
    end_life();
    next_tick();
    start();
    assert_taken_over();
    assert_string_equal(sequences_found(b.sequences, 0)->name, "orders");
    assert_null(sequences_found(b.sequences, 1));
    tell_want(0, 10);
    run();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 10);
}

static void on_tmpfs_nobody_has_to_answer_for_that(void **state)
{
    (void)state;
    live();
    end_life();
    away(true);
    capture_begin();
    start();
    run();
    (void)capture_end();
    assert_taken_over();
}

static void put_back(const char *copied)
{
    end_life();
    next_tick();
    copy(copied, "sequences.page");
    capture_begin();
    start();
    assert_non_null(strstr(capture_end(), "blocks of numbers dropped numbers=6"));
    assert_dropped(10 - GIVEN);
}

static void on_tmpfs_a_copy_put_back_is_dropped(void **state)
{
    (void)state;
    live();
    copy("sequences.page", "copy");
    pass(25000); /* renewed since */
    put_back("copy");
}

/* The coordinator knows of nothing since. */
static void on_tmpfs_one_that_is_younger_than_any_renewal_is_dropped_too(void **state)
{
    (void)state;
    live();
    copy("sequences.page", "copy");
    mark_store(latest(BLOCKS_MAIL_GRANT, 0)->mark, GIVEN + 2);
    put_back("copy");
}

/* Its time says nothing then: a gap, and the next start finds it as it was left. */
static void on_tmpfs_one_whose_modes_changed_is_dropped(void **state)
{
    (void)state;
    live();
    end_life();
    next_tick();
    assert_int_equal(chmod(path_of("sequences.page"), 0640), 0);
    capture_begin();
    start();
    (void)capture_end();
    assert_dropped(10 - GIVEN);
    int64_t lo = latest(BLOCKS_MAIL_GRANT, 0)->lo;
    killed();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, lo);
    assert_int_equal(report()->dropped, 0);
}

/* ---- a disk ---------------------------------------------------------------------------------- */

static void on_a_disk_the_coordinator_says_that_it_is_the_latest(void **state)
{
    (void)state;
    live();
    end_life();
    start();
    assert_waits();
    tell_want(0, 100); /* nothing is taken before: that would lie above */
    run();
    assert_taken_over();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 10);
    killed();
    run();
    assert_taken_over();
}

static void on_a_disk_it_waits_for_that_while_nobody_answers(void **state)
{
    (void)state;
    live();
    end_life();
    away(true);
    capture_begin();
    start();
    for (int i = 0; i < 10; i++)
        pass(5000);
    assert_waits();
    away(false);
    pass(10000);
    (void)capture_end();
    assert_taken_over();
}

static void on_a_disk_an_older_copy_is_dropped(void **state)
{
    (void)state;
    live();
    copy("sequences.page", "copy");
    pass(25000);
    end_life();
    copy("copy", "sequences.page");
    capture_begin();
    start();
    run();
    assert_non_null(strstr(capture_end(), "nothing proves them"));
    assert_dropped(10 - GIVEN);
}

/* The coordinator knows a later renewal. */
static void on_a_disk_older_copies_of_both_pages_are_dropped(void **state)
{
    (void)state;
    live();
    copy("sequences.page", "copy");
    copy("worker.page", "copy2");
    pass(25000);
    end_life();
    copy("copy", "sequences.page");
    copy("copy2", "worker.page");
    capture_begin();
    start();
    assert_waits();
    run();
    (void)capture_end();
    assert_dropped(10 - GIVEN);
}

/* Killed before it had its answer: it may have been answered, for all that the page tells. */
static void on_a_disk_a_renewal_that_is_repeated_proves_nothing(void **state)
{
    (void)state;
    live();
    b.mono += 25000;
    b.clock.ms += 25000;
    int64_t until;
    assert_int_equal(b.supply[0]->kind->next(b.supply[0], b.mono, &until), SUPPLY_CALL);
    b.supply[0]->kind->call(b.supply[0], b.coord, b.clock.ms);
    end_life();
    capture_begin();
    start();
    assert_waits();
    run();
    (void)capture_end();
    assert_dropped(10 - GIVEN);
}

/* The same, which the coordinator never heard of. */
static void on_a_disk_one_that_was_never_heard_proves_it_when_it_is(void **state)
{
    (void)state;
    live();
    b.mono += 25000;
    b.clock.ms += 25000;
    int64_t until;
    assert_int_equal(b.supply[0]->kind->next(b.supply[0], b.mono, &until), SUPPLY_CALL);
    end_life();
    start();
    assert_waits();
    run();
    assert_taken_over();
}

static void where_the_workerid_is_lost_no_proof_can_come(void **state)
{
    (void)state;
    struct coord_reply r;
    live();
    end_life();
    for (uint16_t w = 0; w <= 7; w++)
        (void)coord_evict(b.coord, SETUP_IDENTITY, w, &r);
    capture_begin();
    start();
    assert_waits();
    run();
    (void)capture_end();
    assert_dropped(10 - GIVEN);
}

static void nor_where_there_is_no_state_page_of_it(void **state)
{
    (void)state;
    live();
    end_life();
    assert_int_equal(unlink(path_of("worker.page")), 0);
    capture_begin();
    start();
    run();
    (void)capture_end();
    assert_dropped(10 - GIVEN);
}

/* Of which renewal it was stored after is not known: it may be any earlier state. */
static void nor_where_its_witness_is_damaged(void **state)
{
    (void)state;
    live();
    end_life();
    struct blockpage_head h;
    FILE *f = fopen(path_of("sequences.page"), "r+");
    assert_true(f && fread(&h, sizeof h, 1, f) == 1);
    h.witness[0].slot ^= 1;
    h.witness[1].slot ^= 1;
    assert_int_equal(fseek(f, 0, SEEK_SET), 0);
    assert_int_equal(fwrite(&h, sizeof h, 1, f), 1);
    (void)fclose(f);
    capture_begin();
    start();
    run();
    assert_non_null(strstr(capture_end(), "nothing proves them"));
    assert_dropped(10 - GIVEN);
}

/* What the coordinator has forgotten it cannot vouch for. */
static void a_holder_that_it_had_forgotten_proves_nothing(void **state)
{
    (void)state;
    live();
    struct toy *t = toy_of(b.coord);
    for (int i = 0; i < 60; i++) /* its range reaches well beyond the loss */
        pass(25000);
    struct toy_state *before = malloc(sizeof *before);
    assert_non_null(before);
    *before = t->state;
    pass(25000);
    t->state = *before;
    (void)snprintf(t->fingerprint, sizeof t->fingerprint, "another");
    end_life();
    capture_begin();
    start();
    run();
    const char *log = capture_end();
    assert_non_null(strstr(log, "blocks of numbers dropped"));
    assert_int_equal(report()->dropped, 10 - GIVEN);
    free(before);
}

/* The area keeps what it had until it is proven, however often it starts. */
static void a_life_that_ends_before_the_proof_proves_nothing_for_the_next(void **state)
{
    (void)state;
    live();
    copy("sequences.page", "copy");
    copy("worker.page", "copy2");
    pass(25000);
    end_life();
    copy("copy", "sequences.page");
    copy("copy2", "worker.page");
    away(true);
    capture_begin();
    start();
    run();
    assert_waits();
    killed();
    away(false);
    run();
    (void)capture_end();
    assert_dropped(10 - GIVEN);
}

/* ---- what is not wanted, or not there ---------------------------------------------------------
 */

static void what_cannot_be_given_out_is_a_gap(void **state)
{
    (void)state;
    live();
    end_life();
    b.forget = 1;
    start();
    assert_null(sequences_found(b.sequences, 0));
    assert_int_equal(report()->dropped, 10 - GIVEN);
    run();
    assert_int_equal(count(BLOCKS_MAIL_GRANT), 0);
    assert_int_equal(must_have(0, "orders", 10)->lo, 10);
}

static void of_one_that_was_used_up_it_is_told_what_it_is(void **state)
{
    (void)state;
    live();
    mark_store(latest(BLOCKS_MAIL_GRANT, 0)->mark, 10);
    killed();
    tell_want(0, 10);
    run();
    assert_non_null(latest(BLOCKS_MAIL_KNOWN, 0));
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 10);
}

/* ---- the heir -------------------------------------------------------------------------------- */

static void on_a_disk_the_heir_takes_it_over_at_once(void **state)
{
    (void)state;
    live();
    b.left = sequences_leave(b.sequences);
    assert_true(b.left.known);
    end_life();
    away(true);
    capture_begin();
    start();
    (void)capture_end();
    assert_taken_over();
}

static void what_changed_since_is_as_after_a_restart(void **state)
{
    (void)state;
    live();
    b.left = sequences_leave(b.sequences);
    mark_store(latest(BLOCKS_MAIL_GRANT, 0)->mark, GIVEN + 1);
    end_life();
    start();
    assert_waits();
}

static void what_is_not_proven_is_not_left_as_proven(void **state)
{
    (void)state;
    live();
    end_life();
    away(true);
    capture_begin();
    start();
    run();
    (void)capture_end();
    assert_false(sequences_leave(b.sequences).known);
}

#define DISK(f)  cmocka_unit_test_setup_teardown(f, begin_disk, end)
#define TMPFS(f) cmocka_unit_test_setup_teardown(f, begin_tmpfs, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TMPFS(on_tmpfs_it_goes_on_at_once_with_the_next_number),
        TMPFS(on_tmpfs_nobody_has_to_answer_for_that),
        TMPFS(on_tmpfs_a_copy_put_back_is_dropped),
        TMPFS(on_tmpfs_one_that_is_younger_than_any_renewal_is_dropped_too),
        TMPFS(on_tmpfs_one_whose_modes_changed_is_dropped),
        DISK(on_a_disk_the_coordinator_says_that_it_is_the_latest),
        DISK(on_a_disk_it_waits_for_that_while_nobody_answers),
        DISK(on_a_disk_an_older_copy_is_dropped),
        DISK(on_a_disk_older_copies_of_both_pages_are_dropped),
        DISK(on_a_disk_a_renewal_that_is_repeated_proves_nothing),
        DISK(on_a_disk_one_that_was_never_heard_proves_it_when_it_is),
        DISK(where_the_workerid_is_lost_no_proof_can_come),
        DISK(nor_where_there_is_no_state_page_of_it),
        DISK(nor_where_its_witness_is_damaged),
        DISK(a_holder_that_it_had_forgotten_proves_nothing),
        DISK(a_life_that_ends_before_the_proof_proves_nothing_for_the_next),
        DISK(what_cannot_be_given_out_is_a_gap),
        TMPFS(what_cannot_be_given_out_is_a_gap),
        TMPFS(of_one_that_was_used_up_it_is_told_what_it_is),
        DISK(on_a_disk_the_heir_takes_it_over_at_once),
        DISK(what_changed_since_is_as_after_a_restart),
        DISK(what_is_not_proven_is_not_left_as_proven),
    };
    return cmocka_run_group_tests_name("lease/sequences_proof", tests, NULL, NULL);
}
