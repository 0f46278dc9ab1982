/* What the keeper tells of the latest ID and of the time reaches a generator that may be ahead. */
#include "unit/daemon/bridge_rig.h"

static void grant_above(int64_t latest_ms)
{
    snowflake_generator_ahead(&b.ids, true, true, &b.clock.clock);
    struct batch *x = fresh();
    put(x, LEASE_MAIL_POOL, 0)->last_ms = latest_ms;
    (void)put(x, LEASE_MAIL_GRANT, 1);
    b.report.held = 1;
    exchange();
}

static void hear_again(void)
{
    (void)put(fresh(), LEASE_MAIL_EXTEND, 1);
    exchange();
}

static enum snowflake_status ask(uint64_t *id)
{
    struct generator_ask a = {.now_ms = now_ms(), .n = 1};
    struct generator_run run = {0};
    enum snowflake_status r = b.ids.base.kind->next(&b.ids.base, &a, &run);
    *id = (uint64_t)run.first;
    bridge_settle(&b.bridge);
    return r;
}

static int64_t time_of(uint64_t id)
{
    struct layout_parts p;
    assert_true(layout_decompose(&layout_usual, id, &p));
    return RIG_EPOCH + p.time;
}

static void ids_are_above_the_latest_one_that_is_known(void **state)
{
    (void)state;
    uint64_t id;
    grant_above(T0 + 500);
    assert_int_equal(ask(&id), SNOWFLAKE_OK);
    assert_true(time_of(id) == T0 + 501);
    assert_true(b.ids.trust.ms == T0 + 500 && b.ids.trust.reach_ms == 0);
}

static void where_none_is_known_the_clock_is_believed(void **state)
{
    (void)state;
    uint64_t id;
    grant_above(0);
    assert_int_equal(ask(&id), SNOWFLAKE_OK);
    assert_true(time_of(id) == T0);
}

static void the_time_is_believed_once_the_pool_has_told_it(void **state)
{
    (void)state;
    grant_above(T0 + 500);
    b.report.era = 1; /* a state page knows that, too, and no time */
    hear_again();
    assert_true(b.ids.trust.ms == T0 + 500 && b.ids.trust.reach_ms == 0);
    b.report.era = 0;
    b.report.heard_ms = T0 + 700;
    b.report.heard_mono = clock_mono_ms(&b.clock.clock) - 20;
    hear_again();
    assert_true(b.ids.trust.ms == T0 + 500 && b.ids.trust.reach_ms == 0);
    b.report.era = 1;
    hear_again();
    const struct snowflake_trust *t = &b.ids.trust;
    assert_true(t->ms == T0 + 700 && t->mono_ms == b.report.heard_mono);
    assert_true(t->skew_ms == coord_params_default.max_skew_ms);
    assert_true(t->reach_ms == coord_params_default.first_horizon_ms);
}

/* At the end of all that is held who asks waits for a renewal, which is asked for. */
static void all_that_is_borrowed_has_it_renewed(void **state)
{
    (void)state;
    uint64_t id;
    grant_above(0);
    b.report.era = 1;
    b.report.heard_ms = T0 + HORIZON;
    b.report.heard_mono = clock_mono_ms(&b.clock.clock);
    hear_again();
    fake_clock_step(&b.clock, HORIZON - 2);
    for (int i = 0; i < 3 * 1024; i++)
        assert_int_equal(ask(&id), SNOWFLAKE_OK);
    assert_true(time_of(id) == T0 + HORIZON);
    b.nevents = 0;
    log_anew();
    assert_int_equal(ask(&id), SNOWFLAKE_FULL);
    assert_told(0, WORKERS_URGE_RENEWAL, 0);
    assert_logged(logged(), "IDs are ahead of the clock up to a ceiling: renewing", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BRIDGE(ids_are_above_the_latest_one_that_is_known),
        BRIDGE(where_none_is_known_the_clock_is_believed),
        BRIDGE(the_time_is_believed_once_the_pool_has_told_it),
        BRIDGE(all_that_is_borrowed_has_it_renewed),
    };
    return cmocka_run_group_tests_name("daemon/bridge, ahead of the clock", tests, NULL, NULL);
}
