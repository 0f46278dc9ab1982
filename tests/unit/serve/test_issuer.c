#include "base/timefmt.h"
#include "serve/issuer.h"
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define EPOCH    INT64_C(1767225600000)
#define T0       (EPOCH + 1000000)
#define MAX_WAIT 100000

static struct fake_clock clock_;
static struct issuer issuer;
static struct snowflake_generator gen;
static char no_worker[ERR_TEXT_MAX];
static struct names_entry *name;
static struct net_turn turn;
static struct net_step step;
static int64_t first;

/* The turn begins at ms; the clock may stand elsewhere by then. */
static void begin_turn(int64_t ms)
{
    fake_clock_init(&clock_, ms);
    turn = (struct net_turn){.clock = &clock_.clock, .wall_ms = ms, .quota = UINT32_MAX};
}

static void begin(unsigned workers)
{
    struct err e;
    names_clear(&issuer.names);
    memset(&issuer, 0, sizeof issuer);
    no_worker[0] = '\0';
    snowflake_generator_init(&gen, no_worker);
    assert_int_equal(issuer_add(&issuer, &gen.base, "id:", NULL, 0, &e), ERR_OK);
    name = names_find(&issuer.names, SPAN("id:orders"));
    issuer.max_wait_us = MAX_WAIT;
    issuer.batch = 1024;
    snowflake_generator_start(&gen, EPOCH, &layout_usual, 15, 1);
    for (uint32_t i = 0; i < workers; i++)
        assert_true(snowflake_grant(&gen.ids, i, (uint16_t)(7 + i), T0 - 1, T0 + 60000, NULL));
    begin_turn(T0);
}

static enum issue_status next(uint32_t n)
{
    first = 0;
    memset(&step, 0, sizeof step);
    enum issue_status r = n == 1 ? issuer_next(&issuer, name, &turn, &first, &step)
                                 : issuer_row(&issuer, name, &turn, n, &first, &step);
    first -= r == ISSUE_OK ? n - 1 : 0;
    return r;
}

static void expect_park(enum net_verdict verdict, int64_t until)
{
    assert_int_equal(next(1), ISSUE_PARK);
    assert_int_equal(step.verdict, verdict);
    assert_int_equal(step.used, 0);
    assert_false(step.partial);
    assert_true(step.until_ms == until);
}

/* Waited for as long as is allowed, the answer is this. */
static void expect_refusal(enum issue_status status, const char *why)
{
    turn.waited_us = MAX_WAIT - 1;
    assert_int_equal(next(1), ISSUE_PARK);
    turn.waited_us = MAX_WAIT;
    assert_int_equal(next(1), status);
    assert_non_null(strstr(refusal_text(issuer.refused), why));
    assert_null(strchr(refusal_text(issuer.refused), '\n'));
    assert_int_equal(refusal_status(issuer_ready(&issuer, turn.wall_ms)), status);
}

static void ids_are_of_the_turns_time(void **state)
{
    (void)state;
    begin(1);
    fake_clock_step(&clock_, 3); /* time goes on during a turn, and nobody looks */
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(next(1), ISSUE_OK);
        assert_true((uint64_t)first == layout_compose(&layout_usual, T0 - EPOCH, 7, i));
    }
    assert_int_equal(next(1000), ISSUE_OK);
    assert_true((uint64_t)first == layout_compose(&layout_usual, T0 - EPOCH, 7, 3));
    assert_int_equal(clock_.reads, 0);
    assert_null(issuer_ready(&issuer, T0).by);
}

static void a_full_millisecond_looks_at_the_clock_and_then_queues(void **state)
{
    (void)state;
    begin(1);
    assert_int_equal(next(1024), ISSUE_OK);
    expect_park(NET_QUEUE, T0 + 1);
    assert_int_equal(clock_.reads, 1);
    assert_null(issuer_ready(&issuer, T0).by);
    turn.waited_us = 10 * MAX_WAIT; /* however long: it only queues */
    expect_park(NET_QUEUE, T0 + 1);
    fake_clock_step(&clock_, 2);
    assert_int_equal(next(1), ISSUE_OK);
    assert_true((uint64_t)first == layout_compose(&layout_usual, T0 + 2 - EPOCH, 7, 0));
    assert_true(turn.wall_ms == T0 + 2); /* and the turn goes on with it */
    assert_int_equal(issuer.waited_us, 0);
}

static void a_clock_a_little_behind_queues(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(next(1), ISSUE_OK);
    begin_turn(T0 - 10);
    expect_park(NET_QUEUE, T0);
    assert_null(issuer_ready(&issuer, T0 - 10).by);
    assert_int_equal(issuer.waited_us, 10000);
    assert_int_equal(gen.ids.nretired, 0);
}

static void a_clock_far_behind_takes_the_spare(void **state)
{
    (void)state;
    begin(2);
    begin_turn(T0 + 100);
    assert_int_equal(next(1), ISSUE_OK);
    begin_turn(T0 + 50);
    assert_int_equal(next(1), ISSUE_OK);
    assert_true((uint64_t)first == layout_compose(&layout_usual, T0 + 50 - EPOCH, 8, 0));
    assert_int_equal(gen.ids.nretired, 1);
}

static void without_a_spare_it_waits_for_the_clock_and_fails(void **state)
{
    (void)state;
    begin(1);
    begin_turn(T0 + 40);
    assert_int_equal(next(1), ISSUE_OK);
    begin_turn(T0 + 10);
    expect_park(NET_WAIT, T0 + 40);
    assert_int_equal(issuer.waited_us, 30000);
    expect_refusal(ISSUE_AGAIN, "behind the latest ID");
    char until[TIMEFMT_MAX];
    const char *text = refusal_text(issuer.refused);
    assert_string_equal(strstr(text, "until it is ") + strlen("until it is "),
                        timefmt_rfc3339(until, T0 + 40));
    gen.alone = true;
    assert_non_null(strstr(refusal_text(issuer.refused), ", or name an N in static:N"));
    gen.alone = false;
    begin_turn(T0 + 40);
    assert_int_equal(next(1), ISSUE_OK);
    assert_true((uint64_t)first == layout_compose(&layout_usual, T0 + 40 - EPOCH, 7, 1));
}

/* Ten years behind, a request waits no longer than it may: that is the time that was lost. */
static void only_the_time_really_waited_is_counted(void **state)
{
    (void)state;
    begin(1);
    assert_int_equal(next(1), ISSUE_OK);
    begin_turn(T0 - 900000);
    for (int i = 0; i < 5; i++) {
        turn.waited_us = 0;
        assert_int_equal(next(1), ISSUE_PARK);
        turn.waited_us = MAX_WAIT + 500;
        assert_int_equal(next(1), ISSUE_AGAIN);
    }
    assert_int_equal(issuer.waited_us, 5 * MAX_WAIT);
}

static void above_the_ceiling_it_waits_for_a_renewal_and_fails(void **state)
{
    (void)state;
    begin(1);
    begin_turn(T0 + 60001);
    expect_park(NET_WAIT, INT64_MAX);
    assert_true(gen.ids.wants_renewal);
    expect_refusal(ISSUE_NEVER, "range of time held has ended");
    snowflake_extend(&gen.ids, 0, T0 + 70000);
    assert_int_equal(next(1), ISSUE_OK);
}

static void without_a_workerid_it_waits_for_one_and_fails(void **state)
{
    (void)state;
    begin(0);
    expect_park(NET_WAIT, INT64_MAX);
    expect_refusal(ISSUE_LOADING, "no workerId is held yet");
    gen.started = false; /* not even a pool is known */
    begin_turn(T0);
    expect_park(NET_WAIT, INT64_MAX);
    expect_refusal(ISSUE_LOADING, "no workerId is held yet");
    (void)strcpy(no_worker, "the pool has no free workerId");
    expect_refusal(ISSUE_LOADING, "no workerId is held: the pool has no free workerId");
    memset(no_worker, 'w', sizeof no_worker - 1);
    assert_true(strlen(refusal_text(issuer.refused)) > sizeof no_worker);
}

static void outside_the_epoch_it_fails_at_once(void **state)
{
    (void)state;
    static const int64_t times[] = {EPOCH - 1, EPOCH + LAYOUT_TIME_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        begin(1);
        begin_turn(times[i]);
        assert_int_equal(next(1), ISSUE_NEVER);
        assert_int_equal(refusal_status(issuer_ready(&issuer, times[i])), ISSUE_NEVER);
        assert_non_null(strstr(refusal_text(issuer.refused), "epoch"));
    }
}

static void a_wait_of_0_fails_at_once(void **state)
{
    (void)state;
    begin(0);
    issuer.max_wait_us = 0;
    assert_int_equal(next(1), ISSUE_LOADING);
}

static void a_quota_that_is_spent_yields(void **state)
{
    (void)state;
    begin(1);
    turn.quota = 3;
    assert_int_equal(next(1), ISSUE_OK);
    assert_int_equal(turn.quota, 2);
    assert_int_equal(next(500), ISSUE_OK); /* a block is never cut; the quota is spent with it */
    assert_int_equal(turn.quota, 0);
    expect_park(NET_YIELD, 0);
    assert_int_equal(gen.ids.stats.issued, 501);
}

static void some_is_bounded_by_quota_and_millisecond(void **state)
{
    (void)state;
    struct generator_run run;
    begin(1);
    turn.quota = 10;
    assert_int_equal(issuer_some(&issuer, name, &turn, 100, &run, &step), ISSUE_OK);
    assert_int_equal(run.n, 10);
    assert_int_equal(turn.quota, 0);
    assert_int_equal(issuer_some(&issuer, name, &turn, 100, &run, &step), ISSUE_PARK);
    assert_int_equal(step.verdict, NET_YIELD);
    turn.quota = UINT32_MAX;
    assert_int_equal(issuer_some(&issuer, name, &turn, 5000, &run, &step), ISSUE_OK);
    assert_int_equal(run.n, 1014);
    assert_true((uint64_t)run.first == layout_compose(&layout_usual, T0 - EPOCH, 7, 10));
    assert_int_equal(run.stride, 1);
    assert_int_equal(name->issued, 1024);
    assert_int_equal(issuer_some(&issuer, name, &turn, 5000, &run, &step), ISSUE_PARK);
    assert_int_equal(step.verdict, NET_QUEUE);
    assert_true(step.until_ms == T0 + 1);
}

/* ---- a request's own word ---------------------------------------------------------------------
 */

static unsigned cause_of_all;
static int64_t seen_ticket, seen_mono;

static unsigned hand_out(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    (void)g;
    seen_ticket = *ask->ticket;
    seen_mono = ask->mono_ms;
    *ask->ticket = seen_ticket ? seen_ticket : 77;
    *out = (struct generator_run){-5, -2, ask->n};
    return cause_of_all;
}

static void say_no(const struct generator *g, struct buf *b)
{
    (void)g;
    buf_put_str(b, "no");
}

static void a_request_keeps_its_ticket_until_it_is_answered(void **state)
{
    (void)state;
    static const struct generator_cause causes[] = {
        {ISSUE_OK}, {ISSUE_AGAIN, .waits = true, .say = say_no}, {ISSUE_MISS, .say = say_no}};
    static const struct generator_kind kind = {
        .causes = causes, .by_mono = true, .next = hand_out, .some = hand_out, .ncauses = 3};
    static struct generator other = {.kind = &kind};
    struct names_entry entry = {.generator = &other};
    begin(1);
    name = &entry;
    cause_of_all = 1;
    expect_park(NET_WAIT, INT64_MAX);
    assert_int_equal(seen_ticket, 0);
    assert_int_equal(turn.ticket, 77);
    assert_true(seen_mono == clock_mono_ms(&clock_.clock));
    expect_park(NET_WAIT, INT64_MAX);
    assert_int_equal(seen_ticket, 77);
    cause_of_all = 0;
    assert_int_equal(issuer_row(&issuer, name, &turn, 3, &first, &step), ISSUE_OK);
    assert_int_equal(first, -9);  /* the last of three */
    assert_true(turn.ticket < 0); /* until net says that all of it is */
    net_turn_answered(&turn);
    assert_int_equal(turn.ticket, 0);
    cause_of_all = 2;
    assert_int_equal(next(1), ISSUE_MISS);
    assert_true(turn.ticket < 0);
    cause_of_all = 1;
    turn.waited_us = MAX_WAIT;
    assert_int_equal(next(1), ISSUE_AGAIN);
    assert_true(turn.ticket < 0);
    assert_int_equal(entry.issued, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_of_the_turns_time),
        cmocka_unit_test(a_full_millisecond_looks_at_the_clock_and_then_queues),
        cmocka_unit_test(a_clock_a_little_behind_queues),
        cmocka_unit_test(a_clock_far_behind_takes_the_spare),
        cmocka_unit_test(without_a_spare_it_waits_for_the_clock_and_fails),
        cmocka_unit_test(only_the_time_really_waited_is_counted),
        cmocka_unit_test(above_the_ceiling_it_waits_for_a_renewal_and_fails),
        cmocka_unit_test(without_a_workerid_it_waits_for_one_and_fails),
        cmocka_unit_test(outside_the_epoch_it_fails_at_once),
        cmocka_unit_test(a_wait_of_0_fails_at_once),
        cmocka_unit_test(a_quota_that_is_spent_yields),
        cmocka_unit_test(some_is_bounded_by_quota_and_millisecond),
        cmocka_unit_test(a_request_keeps_its_ticket_until_it_is_answered),
    };
    return cmocka_run_group_tests_name("serve/issuer", tests, NULL, NULL);
}
