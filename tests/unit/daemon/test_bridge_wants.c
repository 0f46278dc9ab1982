/* What the generator wants comes to the supply, and what the clocks do. */
#include "unit/daemon/bridge_rig.h"

/* ---- what the generator wants -----------------------------------------------------------------
 */

static void a_workerid_that_was_rotated_is_given_back_once(void **state)
{
    (void)state;
    grant(1);
    b.report.held = 1;
    assert_int_equal(issue(), SNOWFLAKE_OK);
    struct batch *x = fresh();
    struct lease_mail *m = put(x, LEASE_MAIL_GRANT, 2);
    m->last_ms = T0 - 100000;
    exchange();
    b.nevents = 0;
    log_anew();
    fake_clock_step(&b.clock, -5000);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    assert_null(member(1));
    assert_told(0, WORKERS_RETIRE, 1);
    assert_int_equal(b.ids.ids.nretired, 0);
    unsigned told = b.nevents;
    assert_int_equal(issue(), SNOWFLAKE_OK);
    assert_int_equal(b.nevents, told);
    const char *log = logged();
    assert_logged(log, "clock stepped back: workerId rotated", 1);
    assert_logged(log, "behind_ms=5000", 1);
}

static unsigned told(enum workers_event_kind kind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b.nevents; i++)
        n += b.event[i].kind == kind;
    return n;
}

/* Each request would ask: the keeper is told once a second, and the wish is kept until then. */
static void a_workerid_is_asked_for_once_a_second(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    log_anew();
    fake_clock_step(&b.clock, -60000);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(issue(), SNOWFLAKE_STALLED);
        assert_int_equal(told(WORKERS_URGE_CLAIM), 1);
        pass_ms(9);
    }
    assert_true(b.ids.ids.wants_worker);
    pass_ms(100);
    bridge_settle(&b.bridge);
    assert_int_equal(told(WORKERS_URGE_CLAIM), 2);
    assert_false(b.ids.ids.wants_worker);
    bridge_settle(&b.bridge);
    pass_ms(1000);
    bridge_settle(&b.bridge);
    assert_int_equal(told(WORKERS_URGE_CLAIM), 2);
    assert_int_equal(told(WORKERS_URGE_RENEWAL), 0);
    assert_logged(logged(), "no workerId can stand in: claiming another", 1);
}

/* Where traffic goes by readiness, nobody else asks. */
static void who_looks_whether_it_is_ready_has_one_asked_for(void **state)
{
    (void)state;
    struct issuer issuer = {.generators = &b.ids.base};
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    log_anew();
    fake_clock_step(&b.clock, -60000);
    assert_non_null(issuer_ready(&issuer, clock_wall_ms(&b.clock.clock)).by);
    bridge_settle(&b.bridge);
    assert_int_equal(told(WORKERS_URGE_CLAIM), 1);
    assert_logged(logged(), "no workerId can stand in: claiming another", 1);
    fake_clock_step(&b.clock, 60000 + HORIZON + 2);
    pass_ms(1000);
    assert_non_null(issuer_ready(&issuer, clock_wall_ms(&b.clock.clock)).by);
    bridge_settle(&b.bridge);
    assert_int_equal(told(WORKERS_URGE_RENEWAL), 1);
}

/* It may be so for a day: one that is behind another time is another. */
static void a_clock_that_stays_behind_is_told_now_and_then(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    log_anew();
    fake_clock_step(&b.clock, -3600000);
    for (int i = 0; i < 70; i++, pass_ms(1000))
        assert_int_equal(issue(), SNOWFLAKE_STALLED);
    assert_int_equal(told(WORKERS_URGE_CLAIM), 70);
    fake_clock_step(&b.clock, 3600000);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    pass_ms(1000);
    fake_clock_step(&b.clock, -3600000);
    assert_int_equal(issue(), SNOWFLAKE_STALLED);
    assert_logged(logged(), "no workerId can stand in: claiming another", 3);
}

static void a_clock_above_a_ceiling_has_it_renewed(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    pass_ms(HORIZON + 1);
    assert_int_equal(issue(), SNOWFLAKE_CEILING);
    assert_int_equal(told(WORKERS_URGE_RENEWAL), 1);
    assert_int_equal(told(WORKERS_URGE_CLAIM), 0);
    assert_false(b.ids.ids.wants_renewal);
    assert_logged(logged(), "the clock is past every range of time held: renewing", 1);
}

/* The coordinator may be away for hours: it is asked once a second, and told once a minute. */
static void a_ceiling_that_stays_below_the_clock_is_told_now_and_then(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    pass_ms(HORIZON + 1);
    for (int i = 0; i < 90; i++, pass_ms(1000))
        assert_int_equal(issue(), SNOWFLAKE_CEILING);
    assert_int_equal(told(WORKERS_URGE_RENEWAL), 90);
    assert_logged(logged(), "the clock is past every range of time held: renewing", 2);
}

static void a_jump_forward_by_more_than_max_skew_is_noticed_once(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    pass_ms(5000);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    fake_clock_step(&b.clock, 2000);
    assert_int_equal(issue(), SNOWFLAKE_OK); /* as much as may be */
    assert_int_equal(b.serve.facts.clock_jumps, 0);
    fake_clock_step(&b.clock, 2001);
    for (int i = 0; i < 3; i++, pass_ms(2000))
        assert_int_equal(issue(), SNOWFLAKE_OK);
    assert_int_equal(b.serve.facts.clock_jumps, 1);
    assert_int_equal(told(WORKERS_URGE_RENEWAL), 1);
    assert_logged(logged(), "clock jumped forward: renewing by_ms=2001", 1);
}

/* Slow drift adds up over days, and is followed. */
static void drift_is_no_jump(void **state)
{
    (void)state;
    grant(1);
    for (int i = 0; i < 100; i++) {
        pass_ms(1000);
        fake_clock_step(&b.clock, 100);
        assert_int_equal(issue(), SNOWFLAKE_OK);
    }
    assert_int_equal(b.serve.facts.clock_jumps, 0);
    assert_int_equal(told(WORKERS_URGE_RENEWAL), 0);
}

static void a_clock_that_steps_back_is_told_once_a_second(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    log_anew();
    for (int i = 0; i < 10; i++) {
        fake_clock_step(&b.clock, -3000);
        (void)issue();
        pass_ms(50);
    }
    assert_logged(logged(), "clock stepped back by_ms=3000", 1);
}

static void before_the_first_request_no_clocks_are_compared(void **state)
{
    (void)state;
    grant(1);
    fake_clock_step(&b.clock, 60000);
    bridge_settle(&b.bridge);
    assert_int_equal(b.serve.facts.clock_jumps, 0);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    assert_int_equal(b.serve.facts.clock_jumps, 1);
}

/* The end of a range is told at the next request, without a word of the keeper's. */
static void an_end_is_told_while_the_coordinator_is_silent(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    pass_ms(HORIZON + 1);
    (void)issue();
    assert_logged(logged(), "no IDs can be had", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BRIDGE(a_workerid_that_was_rotated_is_given_back_once),
        BRIDGE(a_workerid_is_asked_for_once_a_second),
        BRIDGE(who_looks_whether_it_is_ready_has_one_asked_for),
        BRIDGE(a_clock_that_stays_behind_is_told_now_and_then),
        BRIDGE(a_clock_above_a_ceiling_has_it_renewed),
        BRIDGE(a_ceiling_that_stays_below_the_clock_is_told_now_and_then),
        BRIDGE(a_jump_forward_by_more_than_max_skew_is_noticed_once),
        BRIDGE(drift_is_no_jump),
        BRIDGE(a_clock_that_steps_back_is_told_once_a_second),
        BRIDGE(before_the_first_request_no_clocks_are_compared),
        BRIDGE(an_end_is_told_while_the_coordinator_is_silent),
    };
    return cmocka_run_group_tests_name("daemon/bridge_wants", tests, NULL, NULL);
}
