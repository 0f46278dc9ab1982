/* What the supplies send comes to the generators and to what is told of them: each mail, in order.
 * To be clean under ThreadSanitizer, too. */
#include "unit/daemon/bridge_rig.h"

/* ---- mails ------------------------------------------------------------------------------------
 */

static void a_grant_is_issued_from_until_it_is_revoked(void **state)
{
    (void)state;
    uint64_t mark = 0;
    int64_t last;
    struct batch *x = fresh();
    (void)put(x, LEASE_MAIL_POOL, 0);
    struct lease_mail *m = put(x, LEASE_MAIL_GRANT, 5);
    m->worker = 77;
    m->mark = &mark;
    exchange();
    assert_int_equal(b.ids.ids.epoch_ms, RIG_EPOCH);
    assert_non_null(member(5));
    assert_int_equal(member(5)->worker, 77);
    assert_int_equal(member(5)->hi, T0 + HORIZON);
    assert_int_equal(member(5)->last, T0 - 10);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    assert_true(mark_load(&mark, &last) && last == T0);
    (void)put(fresh(), LEASE_MAIL_REVOKE, 5);
    exchange();
    assert_int_equal(issue(), SNOWFLAKE_NO_WORKER);
    assert_int_equal(b.nevents, 0); /* it was taken: nobody wants it back */
}

static void a_range_is_extended(void **state)
{
    (void)state;
    grant(5);
    put(fresh(), LEASE_MAIL_EXTEND, 5)->hi_ms = T0 + 2 * HORIZON;
    put(&b.batch[1], LEASE_MAIL_EXTEND, 6)->hi_ms = T0 + 3 * HORIZON;
    exchange();
    assert_int_equal(member(5)->hi, T0 + 2 * HORIZON);
    assert_null(member(6));
}

static void what_is_not_wanted_any_more_is_dropped_and_comes_back_once(void **state)
{
    (void)state;
    grant(5);
    (void)put(fresh(), LEASE_MAIL_RETIRE, 5);
    (void)put(&b.batch[1], LEASE_MAIL_RETIRE, 6);
    exchange();
    assert_null(member(5));
    assert_int_equal(b.nevents, 1);
    assert_told(0, WORKERS_RETIRE, 5);
}

static void a_grant_without_room_comes_back(void **state)
{
    (void)state;
    struct batch *x = fresh();
    (void)put(x, LEASE_MAIL_POOL, 0);
    for (uint32_t i = 0; i < SNOWFLAKE_MEMBERS + 2; i++)
        (void)put(x, LEASE_MAIL_GRANT, i);
    exchange();
    assert_int_equal(b.ids.ids.nmembers, SNOWFLAKE_MEMBERS);
    assert_int_equal(b.nevents, 2);
    assert_told(0, WORKERS_RETIRE, SNOWFLAKE_MEMBERS);
    assert_told(1, WORKERS_RETIRE, SNOWFLAKE_MEMBERS + 1);
}

/* n times: granted, extended and wanted back; the order shows in what comes back. */
static void put_lives(struct batch *x, unsigned n, uint32_t *handle)
{
    for (unsigned i = 0; i < n; i++) {
        ++*handle;
        (void)put(x, LEASE_MAIL_GRANT, *handle);
        put(x, LEASE_MAIL_EXTEND, *handle)->hi_ms = T0 + 2 * HORIZON;
        (void)put(x, LEASE_MAIL_RETIRE, *handle);
    }
}

static void assert_all_came(uint32_t n)
{
    assert_int_equal(b.nevents, n);
    for (uint32_t i = 0; i < n; i++)
        assert_told(i, WORKERS_RETIRE, i + 1);
    assert_int_equal(b.ids.ids.nmembers, 0);
}

/* More than the bridge takes at a time. */
static void one_take_takes_all_in_order(void **state)
{
    (void)state;
    uint32_t handle = 0;
    (void)put(fresh(), LEASE_MAIL_POOL, 0);
    for (int i = 0; i < 6; i++)
        put_lives(fresh(), 31, &handle);
    exchange();
    assert_all_came(handle);
}

/* As many as the bridge takes at a time, and none. */
static void a_take_that_fits_exactly_ends(void **state)
{
    (void)state;
    uint32_t handle = 0;
    struct batch *x = fresh();
    (void)put(x, LEASE_MAIL_POOL, 0);
    (void)put(x, LEASE_MAIL_POOL, 0);
    put_lives(x, 10, &handle);
    assert_int_equal(x->n, 32);
    exchange();
    assert_all_came(handle);
    bridge_take(&b.bridge);
    assert_all_came(handle);
}

/* As the loop does: once for whatever was told of. Returns how often it was, as of that take. */
static unsigned take_news(unsigned *seen)
{
    unsigned n = notifications();
    if (n != *seen)
        bridge_take(&b.bridge);
    *seen = n;
    return n;
}

/* The mailbox is full, and the keeper waits. */
static void nothing_is_lost_while_the_loop_is_away(void **state)
{
    (void)state;
    uint32_t handle = 0;
    (void)put(fresh(), LEASE_MAIL_POOL, 0);
    while (b.nbatches < BATCHES_MAX)
        put_lives(fresh(), SUPPLY_MAILS / 3, &handle);
    go();
    (void)poll(NULL, 0, 100);
    assert_true(notifications() < 1 + b.nbatches);
    unsigned seen = 0;
    AWAIT(take_news(&seen) == 1 + b.nbatches);
    assert_all_came(handle);
}

/* ---- the pool ---------------------------------------------------------------------------------
 */

static void a_pool_may_change_its_epoch_before_anything_was_granted(void **state)
{
    (void)state;
    (void)put(fresh(), LEASE_MAIL_POOL, 0);
    exchange();
    b.report.pool.epoch_ms = RIG_EPOCH + 86400000;
    b.report.pool.params.max_skew_ms = 7000;
    (void)put(fresh(), LEASE_MAIL_POOL, 0);
    exchange();
    assert_int_equal(b.ids.ids.epoch_ms, RIG_EPOCH + 86400000);
    assert_int_equal(b.bridge.max_skew_ms, 7000);
}

/* It is described again and again: what is held stays, and the order of IDs. */
static void a_pool_that_is_described_again_costs_nothing(void **state)
{
    (void)state;
    grant(5);
    assert_int_equal(issue(), SNOWFLAKE_OK);
    b.report.pool.params.max_skew_ms = 7000;
    (void)put(fresh(), LEASE_MAIL_POOL, 0);
    exchange();
    assert_non_null(member(5));
    assert_int_equal(member(5)->last, T0);
    assert_int_equal(b.bridge.max_skew_ms, 7000);
    (void)put(fresh(), LEASE_MAIL_REVOKE, 5);
    (void)put(&b.batch[2], LEASE_MAIL_POOL, 0);
    exchange();
    assert_int_equal(b.ids.ids.last_ms, T0); /* IDs go on above those of before */
}

/* ---- what is told of it -----------------------------------------------------------------------
 */

static void reports_become_facts(void **state)
{
    (void)state;
    const struct serve_facts *f = &b.serve.facts;
    struct workers_report *r = &b.report;
    (void)fresh();
    exchange();
    assert_string_equal(f->identity, RIG_IDENTITY); /* by a state page, which has no more of it */
    assert_false(serve_pool_known(f));
    assert_int_equal(f->pool_size, 0);
    r->era = 3;
    r->free = 99;
    r->held = 2;
    r->skew_ms = -70;
    r->renewals[COORD_HOW_LOST] = 1;
    r->renewals[COORD_HOW_RENEWED] = 2;
    r->renewals[COORD_HOW_AGAIN] = 3;
    r->renewals[COORD_HOW_REASSERTED] = 4;
    r->renewals_failed = 5;
    r->data_loss = 6;
    strcpy(r->why, "why");
    strcpy(r->page, "page");
    (void)fresh();
    exchange();
    assert_false(b.ids.away);
    assert_true(f->answered && f->up && f->serves && f->era == 3 && f->pool_free == 99);
    assert_true(f->held == 2 && f->skew_ms == -70 && f->data_loss == 6);
    assert_true(f->renewals_lost == 1 && f->renewals_renewed == 2 && f->renewals_again == 3 &&
                f->renewals_reasserted == 4 && f->renewals_failed == 5);
    assert_string_equal(f->why, "why");
    assert_string_equal(f->page, "page");
    assert_string_equal(f->identity, RIG_IDENTITY);
    assert_int_equal(f->pool_size, COORD_WORKERS);
    assert_int_equal(f->horizon_ms, coord_params_default.horizon_ms);
    assert_int_equal(f->max_skew_ms, coord_params_default.max_skew_ms);
    r->answered = false; /* static:N is up, and was never asked */
    (void)fresh();
    exchange();
    assert_false(f->up);
    assert_true(b.ids.away);
}

static void the_times_of_renewals_and_of_troubles_are_kept(void **state)
{
    (void)state;
    const struct serve_facts *f = &b.serve.facts;
    struct workers_report *r = &b.report;
    uint64_t *const renewals[] = {&r->renewals[COORD_HOW_RENEWED], &r->renewals[COORD_HOW_AGAIN],
                                  &r->renewals[COORD_HOW_REASSERTED]};
    uint64_t *const troubles[] = {&r->renewals[COORD_HOW_LOST], &r->data_loss};
    const int64_t *const told[] = {&f->lost_us, &f->forgot_us};
    int64_t renewed = 0, trouble[2] = {0, 0};
    for (int i = 0; i < 6; i++) {
        pass_ms(1000);
        if (i < 3) {
            ++*renewals[i];
            renewed = clock_mono_us(&b.clock.clock);
        } else if (i < 5) {
            ++*troubles[i - 3];
            trouble[i - 3] = clock_mono_us(&b.clock.clock);
        }
        (void)fresh();
        exchange();
        assert_int_equal(f->renewed_us, renewed);
        for (int t = 0; t < 2; t++)
            assert_int_equal(*told[t], trouble[t]);
    }
}

static void a_clock_that_is_ahead_of_the_coordinators_is_known_while_that_answers(void **state)
{
    (void)state;
    static const struct {
        int64_t skew_ms;
        bool up;
        int64_t ahead_ms;
    } cases[] = {{-2001, true, 2001}, {-2000, true, 0}, {-2001, false, 0}, {2001, true, 0}};
    b.report.era = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b.report.skew_ms = cases[i].skew_ms;
        b.report.up = cases[i].up;
        (void)fresh();
        exchange();
        assert_int_equal(b.ids.ahead_ms, cases[i].ahead_ms);
    }
}

static void a_tenure_begins_with_the_first_grant_that_tells_and_with_each_after_it(void **state)
{
    (void)state;
    grant(1);
    assert_int_equal(b.serve.facts.tenure_start_ms, 0);
    put(fresh(), LEASE_MAIL_EXTEND, 1)->t0_ms = T0 - 500;
    exchange();
    assert_int_equal(b.serve.facts.tenure_start_ms, T0 - 500);
    put(fresh(), LEASE_MAIL_EXTEND, 1)->t0_ms = T0 - 400;
    exchange();
    assert_int_equal(b.serve.facts.tenure_start_ms, T0 - 500);
    put(fresh(), LEASE_MAIL_GRANT, 2)->t0_ms = T0 - 300;
    exchange();
    assert_int_equal(b.serve.facts.tenure_start_ms, T0 - 300);
}

static void the_log_says_when_ids_can_be_had_and_when_they_end(void **state)
{
    (void)state;
    (void)fresh();
    exchange(); /* none yet: nothing has ended */
    memcpy(b.report.why, "no pool", sizeof "no pool");
    (void)fresh();
    exchange();
    assert_string_equal(bridge_why(&b.bridge), "no pool");
    grant(1);
    (void)fresh();
    exchange();
    assert_string_equal(bridge_why(&b.bridge), "");
    (void)put(fresh(), LEASE_MAIL_REVOKE, 1);
    exchange();
    (void)fresh();
    exchange();
    const char *log = logged();
    assert_logged(log, " ready held=1 ids_until=2026-05-28T", 1);
    assert_logged(log, "ready", 1);
    assert_logged(log, "no IDs can be had", 1);
    capture_begin();
    b.captures = true;
    b.report.held = 0;
    grant(2);
    assert_logged(logged(), "ready again held=1", 1);
}

/* Nobody else would tell: its workerId is held. */
static void a_start_behind_the_end_of_the_time_field_is_told_once(void **state)
{
    (void)state;
    b.report.pool.epoch_ms = T0 - (INT64_C(1) << 38);
    (void)fresh();
    exchange();
    grant(1);
    (void)fresh();
    exchange();
    const char *log = logged();
    assert_logged(log, "no IDs can be had", 1);
    assert_logged(log, "past the end of the IDs' time field", 1);
    assert_non_null(strstr(bridge_why(&b.bridge), "past the end of the IDs' time field"));
    assert_logged(log, "ready", 0);
}

static void the_end_of_a_stop_is_not_told_as_a_loss(void **state)
{
    (void)state;
    grant(1);
    log_anew();
    (void)put(fresh(), LEASE_MAIL_RETIRE, 1);
    go();
    AWAIT(notifications() >= 1 + b.nbatches);
    keeper_stop(b.bridge.keeper, true);
    AWAIT(notifications() >= 2 + b.nbatches);
    bridge_take(&b.bridge);
    assert_true(b.bridge.finished);
    assert_told(0, WORKERS_RETIRE, 1);
    assert_logged(logged(), "no IDs can be had", 0);
}

static void a_pause_is_passed_on(void **state)
{
    (void)state;
    bridge_take(&b.bridge);
    assert_false(b.bridge.paused || b.bridge.finished);
    unsigned before = notifications();
    keeper_pause(b.bridge.keeper, true);
    AWAIT(notifications() > before);
    bridge_take(&b.bridge);
    assert_true(b.bridge.paused && !b.bridge.proven && !b.bridge.finished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BRIDGE(a_grant_is_issued_from_until_it_is_revoked),
        BRIDGE(a_range_is_extended),
        BRIDGE(what_is_not_wanted_any_more_is_dropped_and_comes_back_once),
        BRIDGE(a_grant_without_room_comes_back),
        BRIDGE(one_take_takes_all_in_order),
        BRIDGE(a_take_that_fits_exactly_ends),
        BRIDGE(nothing_is_lost_while_the_loop_is_away),
        BRIDGE(a_pool_may_change_its_epoch_before_anything_was_granted),
        BRIDGE(a_pool_that_is_described_again_costs_nothing),
        BRIDGE(reports_become_facts),
        BRIDGE(the_times_of_renewals_and_of_troubles_are_kept),
        BRIDGE(a_clock_that_is_ahead_of_the_coordinators_is_known_while_that_answers),
        BRIDGE(a_tenure_begins_with_the_first_grant_that_tells_and_with_each_after_it),
        BRIDGE(the_log_says_when_ids_can_be_had_and_when_they_end),
        BRIDGE(a_start_behind_the_end_of_the_time_field_is_told_once),
        BRIDGE(the_end_of_a_stop_is_not_told_as_a_loss),
        BRIDGE(a_pause_is_passed_on),
    };
    return cmocka_run_group_tests_name("daemon/bridge", tests, NULL, NULL);
}
