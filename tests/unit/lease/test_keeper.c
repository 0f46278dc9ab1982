/* The keeper's thread, run for real; to be clean under ThreadSanitizer, too. */
#include "base/timefmt.h"
#include "keeper_bench.h"
#include "support/capture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- tests ------------------------------------------------------------------------------------
 */

/* With an active workerId and a spare one. */
static void workerids_come_and_are_renewed(void **state)
{
    (void)state;
    start_with_two();
    AWAIT(b.mails[LEASE_MAIL_EXTEND] >= 10);
    assert_false(b.disorder);
    assert_int_equal(b.mails[LEASE_MAIL_POOL], 1);
    assert_true(b.report.up && b.report.answered);
    assert_int_equal(b.report.held, 2);
    assert_int_equal(b.report.era, 1);
    assert_int_equal(b.report.free, FAKE_COORD_WORKERS - 2);
    assert_string_equal(b.report.pool.identity, RIG_IDENTITY);
    assert_string_equal(b.report.why, "");
    assert_true(b.report.renewals[COORD_HOW_RENEWED] >= 10);
    assert_true(histogram_total(&b.keepers.requests) >= 8);
    assert_true(__atomic_load_n(&b.notified, __ATOMIC_SEQ_CST) >= 8);
    stop(true);
    for (unsigned w = 0; w < FAKE_COORD_WORKERS; w++)
        assert_false(b.coord.worker[w].held);
    assert_int_equal(b.report.held, 0);
}

static void mails_come_in_order_however_slowly_they_are_taken(void **state)
{
    (void)state;
    b.options.lease.renew_ms = 5;
    b.options.lease.active = 16;
    b.options.lease.spare = 4;
    start_keeper();
    for (int i = 0; i < 30; i++) { /* 20 mails a renewal: the outbox fills */
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        take(1 + (size_t)i % 7);
        assert_false(b.disorder);
    }
    AWAIT(held() == 20);
    fake_coord_block(&b.coord, true);
    (void)fake_coord_await_blocked(&b.coord);
    for (uint16_t w = 0; w < 5; w++)
        b.coord.worker[first()[w].worker].token.b[0] ^= 1; /* five are lost */
    fake_coord_block(&b.coord, false);
    AWAIT(b.mails[LEASE_MAIL_REVOKE] >= 5 && held() == 20);
    assert_false(b.disorder);
    stop(true);
}

/* The loop may be away for long: the keeper waits with its mails, and loses none. */
static void a_loop_that_takes_nothing_holds_the_keeper_up(void **state)
{
    (void)state;
    b.options.lease.renew_ms = 5;
    b.options.lease.active = 16;
    start_keeper();
    unsigned renewals = 0;
    for (int quiet = 0; quiet < 1000; quiet++) { /* until there are none for a second */
        unsigned n = fake_coord_count(&b.coord, FAKE_RENEW);
        quiet = n == renewals && n > 0 ? quiet : 0;
        renewals = n;
        nap();
    }
    AWAIT(fake_coord_count(&b.coord, FAKE_RENEW) > renewals);
    assert_false(b.disorder);
    assert_int_equal(held(), 17);
    keeper_stop(b.keeper, true); /* a stop ends it, whoever takes */
    AWAIT(b.keepers.finished);
}

static void a_blocked_coordinator_blocks_nobody_else(void **state)
{
    (void)state;
    start_with_two();
    fake_coord_block(&b.coord, true);
    assert_true(fake_coord_await_blocked(&b.coord));
    int64_t start = now_ms();
    for (int i = 0; i < 1000; i++) {
        take(8);
        tell(WORKERS_URGE_RENEWAL, 0);
        tell(WORKERS_URGE_CLAIM, 0);
    }
    retire(first());
    assert_true(now_ms() - start < PATIENCE_MS);
    fake_coord_block(&b.coord, false);
    AWAIT(fake_coord_count(&b.coord, FAKE_RELEASE) == 1);
    stop(true);
}

static void the_retired_is_released_and_replaced(void **state)
{
    (void)state;
    start_with_two();
    struct rig_grant *g = first();
    uint16_t worker = g->worker;
    int64_t last = clock_wall_ms(clock_system());
    mark_store(g->mark, last);
    retire(g);
    AWAIT(held() == 2);
    AWAIT(fake_coord_count(&b.coord, FAKE_RELEASE) == 1);
    const struct fake_coord_call *c = fake_coord_latest(&b.coord, FAKE_RELEASE);
    assert_int_equal(c->release.worker, worker);
    assert_true(c->release.last_ms == last);
    stop(true);
}

/* Marks are stored by the loop while the keeper reads and stores everything else of the page. */
static void marks_and_records_do_not_race(void **state)
{
    (void)state;
    b.options.lease.renew_ms = 2;
    b.options.lease.rotation_jitter_ms = 0;
    start_with_two();
    int64_t start = now_ms(), retired = start;
    while (now_ms() < start + 500) {
        if (held() > 0)
            mark_store(first()->mark, clock_wall_ms(clock_system()));
        if (held() > 0 && now_ms() > retired) {
            retire(first());
            retired = now_ms();
        }
        take(8);
    }
    assert_false(b.disorder);
    stop(true);
    for (unsigned i = 0; i < b.coord.ncalls; i++)
        if (b.coord.call[i].op == FAKE_RELEASE)
            assert_int_equal(b.coord.call[i].status, COORD_OK);
}

/* A page in a directory of its own, and where its new generation is made. */
static char page_dir[32], page_made[64];
static struct page_generation begun;

static void page_begin(void)
{
    struct err e;
    (void)snprintf(page_dir, sizeof page_dir, "/tmp/sidflake-keeper-XXXXXX");
    assert_non_null(mkdtemp(page_dir));
    (void)snprintf(page_made, sizeof page_made, "%s/worker.generation.new", page_dir);
    pagefile_close(&b.file);
    assert_int_equal(
        pagefile_inherit(&b.file, page_dir, "fake://", PAGEFILE_SAVES_WAITING, NULL, &e), ERR_OK);
    begun = b.file.page->head.generation;
}

static void page_end(void)
{
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", page_dir);
    assert_int_equal(system(command), 0);
}

/* An earlier state of the page, put back, must not be taken over once somebody else may have what
 * was given up: so first the generation, then the release, or neither. */
static void without_a_new_generation_of_the_page_nothing_is_given_back(void **state)
{
    (void)state;
    page_begin();
    start_with_two();
    assert_memory_equal(&begun, &b.file.page->head.generation, sizeof begun);
    assert_int_equal(mkdir(page_made, 0700), 0);
    retire(first());
    AWAIT(held() == 2 && b.mails[LEASE_MAIL_GRANT] == 3);
    assert_int_equal(fake_coord_count(&b.coord, FAKE_RELEASE), 0);
    assert_memory_equal(&begun, &b.file.page->head.generation, sizeof begun);
    assert_int_equal(rmdir(page_made), 0);
    retire(first());
    AWAIT(fake_coord_count(&b.coord, FAKE_RELEASE) == 1);
    assert_memory_not_equal(&begun, &b.file.page->head.generation, sizeof begun);
    stop(true);
    page_end();
}

/* One after the other: that the first could not have one is no leave for the next. */
static void nor_is_the_next_one_given_back_at_the_end(void **state)
{
    (void)state;
    page_begin();
    start_with_two();
    assert_int_equal(mkdir(page_made, 0700), 0);
    stop(true);
    assert_int_equal(fake_coord_count(&b.coord, FAKE_RELEASE), 0);
    page_end();
}

/* Whoever has it now is not to be disturbed by an earlier state of our page. */
static void what_is_lost_is_followed_by_a_new_generation(void **state)
{
    (void)state;
    page_begin();
    start_with_two();
    fake_coord_block(&b.coord, true);
    (void)fake_coord_await_blocked(&b.coord);
    b.coord.worker[first()->worker].token.b[0] ^= 1;
    fake_coord_block(&b.coord, false);
    AWAIT(b.mails[LEASE_MAIL_REVOKE] == 1);
    assert_memory_not_equal(&begun, &b.file.page->head.generation, sizeof begun);
    stop(false);
    page_end();
}

static void a_stop_that_keeps_returns_nothing(void **state)
{
    (void)state;
    start_with_two();
    stop(false);
    assert_int_equal(fake_coord_count(&b.coord, FAKE_RELEASE), 0);
    assert_int_equal(b.report.held, 2);
}

static void a_stop_ends_although_the_coordinator_is_down(void **state)
{
    (void)state;
    start_with_two();
    for (int i = 0; i < 50; i++) {
        fake_coord_fail(&b.coord, FAKE_RELEASE, COORD_DOWN, false);
    }
    int64_t start = now_ms();
    stop(true);
    assert_true(now_ms() - start >= 300);
    assert_true(fake_coord_count(&b.coord, FAKE_RELEASE) >= 2);
}

static void a_second_stop_does_not_wait_for_releases(void **state)
{
    (void)state;
    b.options.lease.stop_ms = 60000;
    start_with_two();
    for (int i = 0; i < 60; i++)
        fake_coord_fail(&b.coord, FAKE_RELEASE, COORD_DOWN, false);
    keeper_stop(b.keeper, true);
    AWAIT(fake_coord_count(&b.coord, FAKE_RELEASE) >= 1);
    assert_false(b.keepers.finished);
    int64_t start = now_ms();
    stop(true);
    assert_true(now_ms() - start < PATIENCE_MS); /* of 60 s */
}

static void a_stop_during_a_blocked_call_ends_with_the_call(void **state)
{
    (void)state;
    fake_coord_block(&b.coord, true);
    start_keeper();
    assert_true(fake_coord_await_blocked(&b.coord));
    keeper_stop(b.keeper, true);
    keeper_stop(b.keeper, true);
    assert_false(keeper_ends(b.keeper, 20));
    fake_coord_block(&b.coord, false);
    AWAIT(b.keepers.finished);
    assert_true(keeper_ends(b.keeper, PATIENCE_MS));
    assert_int_equal(fake_coord_count(&b.coord, FAKE_CLAIM), 0);
}

static void a_page_is_taken_over_while_the_coordinator_is_down(void **state)
{
    (void)state;
    struct page_record r = {.state = PAGE_HELD,
                            .worker = 9,
                            .n = 1,
                            .lo_ms = 5,
                            .hi_ms = clock_wall_ms(clock_system()) + 20000};
    page_set_identity(b.file.page, RIG_IDENTITY);
    mark_store(&b.file.page->slot[4].mark, 1234);
    page_store(b.file.page, 4, &r);
    b.file.found = true;
    b.file.verdict = PAGE_OWN;
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    start_keeper();
    AWAIT(held() == 1);
    assert_int_equal(first()->worker, 9);
    assert_true(first()->last_ms <= clock_wall_ms(clock_system()));
    assert_true(first()->last_ms > clock_wall_ms(clock_system()) - 20000);
    AWAIT(b.mails[LEASE_MAIL_REVOKE] == 1); /* its token is unknown here */
    AWAIT(held() == 2);
    assert_true(b.report.data_loss >= 1);
    stop(true);
}

/* Two are taken from their holder while their ranges last: which of them was forgotten is known. */
static void what_an_operator_releases_is_no_loss_of_data(void **state)
{
    (void)state;
    b.options.lease.renew_ms = 5;
    start_with_two();
    for (int i = 0; i < 2; i++) {
        fake_coord_block(&b.coord, true);
        (void)fake_coord_await_blocked(&b.coord);
        struct fake_coord_worker *w = &b.coord.worker[first()->worker];
        w->held = false;
        w->released = i == 0;
        fake_coord_block(&b.coord, false);
        AWAIT(b.report.renewals[COORD_HOW_LOST] == (unsigned)i + 1 && held() == 2);
        assert_int_equal(b.mails[LEASE_MAIL_REVOKE], i + 1);
        assert_int_equal(b.report.data_loss, i);
    }
    stop(true);
}

static void why_there_is_no_workerid_is_told(void **state)
{
    (void)state;
    b.coord.missing = true;
    start_keeper();
    AWAIT(b.report.answered);
    assert_int_equal(b.report.status, COORD_NOPOOL);
    assert_non_null(strstr(b.report.why, "sidflakectl pool init --coordinator fake:// --pool "
                                         "default"));
    assert_null(strchr(b.report.why, '\n'));
    assert_null(strstr(b.report.why, "auto_init"));
    stop(true);
}

/* `--fresh` is what the message ends with: whoever reads it must know what stands in the way. */
static void why_a_pool_is_not_made_by_itself_is_told(void **state)
{
    (void)state;
    struct err e;
    pagefile_close(&b.file);
    assert_int_equal(pagefile_memory(&b.file, true, &e), ERR_OK);
    (void)err_set(&b.file.why, ERR_IO, "cannot make /x: no space");
    b.coord.missing = true;
    b.options.lease.auto_init = true;
    start_keeper();
    AWAIT(b.report.answered);
    assert_int_equal(b.report.status, COORD_NOPOOL);
    assert_non_null(strstr(b.report.why, "auto_init makes none, as no state page tells whether IDs "
                                         "were issued before (cannot make /x: no space): make it"));
    stop(true);
}

static void a_pool_that_is_gone_serves_nobody(void **state)
{
    (void)state;
    start_keeper();
    AWAIT(held() == 2 && b.report.serves);
    b.coord.worker[first()->worker].token.b[0] ^= 1; /* lost, and replaced: that is an answer */
    AWAIT(b.mails[LEASE_MAIL_REVOKE] == 1 && held() == 2);
    assert_true(b.report.serves);
    fake_coord_block(&b.coord, true);
    (void)fake_coord_await_blocked(&b.coord);
    b.coord.missing = true;
    fake_coord_block(&b.coord, false);
    AWAIT(b.report.status == COORD_NOPOOL);
    assert_true(b.report.up && !b.report.serves);
    stop(true);
}

/* The pool does its work: it is no reason for an alert that others hold all there is. */
static void a_pool_in_which_one_has_to_wait_serves(void **state)
{
    static const enum coord_status full[] = {COORD_WAIT, COORD_EXHAUSTED};
    (void)state;
    for (size_t i = 0; i < 2; i++)
        fake_coord_fail(&b.coord, FAKE_CLAIM, full[i], false);
    start_keeper();
    for (size_t i = 0; i < 2; i++) {
        AWAIT(b.report.status == full[i]);
        assert_true(b.report.up && b.report.serves);
    }
    AWAIT(held() == 2);
    stop(true);
}

/* With what it says, until overheard(), which returns that. */
static void start_overheard(void)
{
    log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    capture_begin();
    start_keeper();
}

static const char *overheard(void)
{
    const char *text = capture_end();
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return text;
}

static void assert_said(const char *text, const char *what, unsigned times)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    if (n != times)
        fail_msg("expected \"%s\" %u times, found it %u times in\n%s", what, times, n, text);
}

/* Nobody else has it: the operator is not to look for a second holder. */
static void a_range_that_ends_without_its_pool_is_told_as_that(void **state)
{
    (void)state;
    b.coord.pool.params.horizon_ms = b.coord.pool.params.first_horizon_ms = 300;
    start_overheard();
    for (int64_t until = now_ms() + PATIENCE_MS; held() < 2 && now_ms() < until; take(8))
        nap();
    fake_coord_block(&b.coord, true);
    (void)fake_coord_await_blocked(&b.coord);
    b.coord.missing = true;
    fake_coord_block(&b.coord, false);
    for (int64_t until = now_ms() + PATIENCE_MS; held() > 0 && now_ms() < until; take(8))
        nap();
    const char *text = overheard();
    assert_int_equal(held(), 0);
    assert_said(text, "its range is over, and its pool is gone", 2);
    assert_said(text, "knows a later holder", 0);
    stop(true);
}

/* Its renewals are answered all the while: of neither is there anything new to say. */
static void a_spare_that_is_waited_for_is_told_once(void **state)
{
    (void)state;
    for (uint16_t w = 1; w < FAKE_COORD_WORKERS; w++)
        b.coord.worker[w] = (struct fake_coord_worker){.hwm_ms = INT64_MAX / 2};
    b.options.lease.renew_ms = 5;
    start_overheard();
    for (int64_t until = now_ms() + PATIENCE_MS; (fake_coord_count(&b.coord, FAKE_CLAIM) < 4 ||
                                                  fake_coord_count(&b.coord, FAKE_RENEW) < 100) &&
                                                 now_ms() < until;
         take(8))
        nap();
    const char *text = overheard();
    assert_int_equal(held(), 1);
    assert_true(fake_coord_count(&b.coord, FAKE_CLAIM) >= 4);
    assert_said(text, "a workerId is waited for", 1);
    assert_said(text, "error", 0);
    assert_said(text, "coordinator answers again", 0);
    stop(true);
}

/* What an operator may say to a pool that was reopened is known once it is described anew. */
static void that_a_workerid_is_waited_for_is_told_when_it_is_known_why(void **state)
{
    (void)state;
    fake_coord_fail(&b.coord, FAKE_CLAIM, COORD_EXHAUSTED, false);
    start_overheard();
    while (fake_coord_count(&b.coord, FAKE_CLAIM) == 0)
        nap();
    fake_coord_block(&b.coord, true);
    bool asked = fake_coord_await_blocked(&b.coord); /* by the next claim */
    b.coord.reopened = 1;
    fake_coord_fail(&b.coord, FAKE_CLAIM, COORD_WAIT, false);
    fake_coord_block(&b.coord, false);
    for (int64_t until = now_ms() + PATIENCE_MS; held() < 2 && now_ms() < until; take(8))
        nap();
    const char *text = overheard();
    assert_true(asked && held() == 2);
    assert_said(text, "no workerId is free", 1);
    assert_said(text, "a workerId is waited for", 0);
    stop(true);
}

/* The coordinator answers, and renewals with that clock go on: it is the claim alone that waits. */
static void a_claim_with_a_clock_that_is_off_is_told_as_that(void **state)
{
    (void)state;
    fake_coord_fail(&b.coord, FAKE_CLAIM, COORD_SKEW, false);
    start_overheard();
    for (int64_t until = now_ms() + PATIENCE_MS; held() < 2 && now_ms() < until; take(8))
        nap();
    const char *text = overheard();
    assert_int_equal(held(), 2);
    assert_said(text, "clocks differ held=0 ids_until=none", 1);
    assert_said(text, "coordinator refuses", 0);
    stop(true);
}

/* At each try the pool is found missing before it is refused: that is no answer that is good. */
static void a_pool_that_must_not_be_made_is_told_once(void **state)
{
    (void)state;
    b.coord.missing = true;
    b.options.lease.auto_init = true;
    for (int i = 0; i < 3; i++)
        fake_coord_fail(&b.coord, FAKE_INIT, COORD_REFUSED, false);
    fake_coord_fail(&b.coord, FAKE_INIT, COORD_EXISTS, false); /* somebody was faster */
    start_overheard();
    for (int64_t until = now_ms() + PATIENCE_MS; held() < 2 && now_ms() < until; take(8))
        nap();
    const char *text = overheard();
    assert_int_equal(held(), 2);
    assert_int_equal(fake_coord_count(&b.coord, FAKE_INIT), 5);
    assert_said(text, "coordinator refuses", 1);
    assert_said(text, "coordinator answers again", 1);
    assert_said(text, "pool made", 1);
    assert_said(text, "exists", 0);
    stop(true);
}

/* A line names the time, not how long or in how many milliseconds. */
static void what_ends_is_told_with_the_time_at_which_it_does(void **state)
{
    char last[TIMEFMT_MAX], given[96];
    (void)state;
    start_overheard();
    for (int64_t until = now_ms() + PATIENCE_MS; held() < 2 && now_ms() < until; take(8))
        nap();
    fake_coord_block(&b.coord, true);
    (void)fake_coord_await_blocked(&b.coord);
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_CLOSED, false);
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_CLOSED, false);
    unsigned renewals = fake_coord_count(&b.coord, FAKE_RENEW);
    int64_t ended = clock_wall_ms(clock_system()) + 1;
    mark_store(first()->mark, ended);
    fake_coord_block(&b.coord, false);
    for (int64_t until = now_ms() + PATIENCE_MS;
         fake_coord_count(&b.coord, FAKE_RENEW) < renewals + 2 && now_ms() < until; take(8))
        nap();
    stop(true);
    const char *text = overheard();
    (void)snprintf(given, sizeof given, "last=%s", timefmt_rfc3339(last, ended));
    assert_said(text, given, 1);
    assert_said(text, "the pool is closed held=2 ids_until=20", 1);
    assert_said(text, "last_ms", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEEPER(workerids_come_and_are_renewed),
        KEEPER(mails_come_in_order_however_slowly_they_are_taken),
        KEEPER(a_loop_that_takes_nothing_holds_the_keeper_up),
        KEEPER(a_blocked_coordinator_blocks_nobody_else),
        KEEPER(the_retired_is_released_and_replaced),
        KEEPER(without_a_new_generation_of_the_page_nothing_is_given_back),
        KEEPER(nor_is_the_next_one_given_back_at_the_end),
        KEEPER(what_is_lost_is_followed_by_a_new_generation),
        KEEPER(marks_and_records_do_not_race),
        KEEPER(a_stop_that_keeps_returns_nothing),
        KEEPER(a_stop_ends_although_the_coordinator_is_down),
        KEEPER(a_second_stop_does_not_wait_for_releases),
        KEEPER(a_stop_during_a_blocked_call_ends_with_the_call),
        KEEPER(a_page_is_taken_over_while_the_coordinator_is_down),
        KEEPER(what_an_operator_releases_is_no_loss_of_data),
        KEEPER(why_there_is_no_workerid_is_told),
        KEEPER(why_a_pool_is_not_made_by_itself_is_told),
        KEEPER(a_pool_that_is_gone_serves_nobody),
        KEEPER(a_pool_in_which_one_has_to_wait_serves),
        KEEPER(a_range_that_ends_without_its_pool_is_told_as_that),
        KEEPER(a_spare_that_is_waited_for_is_told_once),
        KEEPER(that_a_workerid_is_waited_for_is_told_when_it_is_known_why),
        KEEPER(a_claim_with_a_clock_that_is_off_is_told_as_that),
        KEEPER(a_pool_that_must_not_be_made_is_told_once),
        KEEPER(what_ends_is_told_with_the_time_at_which_it_does),
    };
    return cmocka_run_group_tests_name("lease/keeper", tests, NULL, NULL);
}
