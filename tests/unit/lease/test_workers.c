/* What the supply of workerIds tells of calls, one after the other, without a thread. */
#include "base/log.h"
#include "lease/workers.h"
#include "support/fake_clock.h"
#include "support/fake_coord.h"
#include "support/lease_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct bench {
    struct fake_clock clock;
    struct fake_coord coord;
    struct pagefile file;
    struct workers *workers;
} b;

static int begin(void **state)
{
    (void)state;
    struct err e;
    memset(&b, 0, sizeof b);
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    fake_clock_init(&b.clock, RIG_T0);
    fake_coord_init(&b.coord, &b.clock.clock, RIG_IDENTITY, 0, FAKE_COORD_WORKERS - 1);
    struct workers_options o = {.lease = rig_config(),
                                .coord_name = "fake://",
                                .pool_name = "default",
                                .file = &b.file,
                                .rng = rng_system()};
    return pagefile_memory(&b.file, false, &e) ||
           workers_new(&o, clock_mono_ms(&b.clock.clock), &b.workers, &e);
}

static int end(void **state)
{
    (void)state;
    workers_free(b.workers);
    pagefile_close(&b.file);
    fake_coord_clear(&b.coord);
    return 0;
}

static const struct workers_report *report(void)
{
    struct supply *s = workers_supply(b.workers);
    return s->kind->report(s);
}

/* Time goes by until the next call, which is made. */
static void call(void)
{
    struct supply *s = workers_supply(b.workers);
    struct clock *c = &b.clock.clock;
    int64_t until;
    while (s->kind->next(s, clock_mono_ms(c), &until) == SUPPLY_IDLE)
        fake_clock_pass(&b.clock, (until - clock_mono_ms(c)) * 1000);
    s->kind->call(s, &b.coord.coord, clock_wall_ms(c));
    s->kind->done(s, clock_mono_ms(c), clock_wall_ms(c));
    s->nmail = 0; /* taken */
}

static void call_until(enum fake_coord_op op)
{
    unsigned before = fake_coord_count(&b.coord, op);
    while (fake_coord_count(&b.coord, op) == before)
        call();
}

static void hold_two(void)
{
    while (report()->held < 2)
        call();
    call_until(FAKE_RENEW);
}

/* The alert goes by the count: one that a claim hears of first counts, too, and a pool that is gone
 * for hours is one loss, be it away in between. */
static void a_pool_that_is_gone_is_one_loss_of_data(void **state)
{
    (void)state;
    hold_two();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(report()->data_loss, i);
        b.coord.missing = true;
        call_until(FAKE_RENEW);
        assert_int_equal(report()->data_loss, i + 1);
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
        call_until(FAKE_RENEW);
        assert_int_equal(report()->status, COORD_DOWN);
        call_until(FAKE_RENEW);
        assert_int_equal(report()->status, COORD_NOPOOL);
        assert_int_equal(report()->data_loss, i + 1);
        b.coord.missing = false;
        call_until(FAKE_RENEW);
    }
}

/* … and so is one made again with other workerIds, whose holders go on for their ranges. */
static void a_pool_made_again_with_others_is_no_second_loss(void **state)
{
    (void)state;
    hold_two();
    b.coord.missing = true;
    call_until(FAKE_RENEW);
    b.coord.missing = false;
    memset(b.coord.worker, 0, sizeof b.coord.worker);
    b.coord.pool.params.worker_from = 10;
    b.coord.worker[10].hwm_ms = b.coord.worker[11].hwm_ms = INT64_MAX; /* they rest */
    b.coord.pool.params.worker_to = 11;
    for (unsigned i = 0; i < 3; i++)
        call_until(FAKE_RENEW);
    assert_int_equal(report()->held, 2);
    assert_int_equal(report()->data_loss, 1);
}

static void a_loss_that_a_claim_hears_of_first_counts(void **state)
{
    struct supply *s = workers_supply(b.workers);
    const struct workers_event more = {.kind = WORKERS_URGE_CLAIM};
    (void)state;
    hold_two();
    b.coord.missing = true;
    s->kind->tell(s, &more);
    s->kind->hear(s, clock_mono_ms(&b.clock.clock));
    call_until(FAKE_CLAIM);
    assert_int_equal(report()->status, COORD_NOPOOL);
    assert_int_equal(report()->data_loss, 0);
    call_until(FAKE_RENEW);
    assert_int_equal(report()->data_loss, 1);
}

/* As it is when the call is made. */
static void a_renewal_tells_the_clock_of_its_caller(void **state)
{
    (void)state;
    hold_two();
    call_until(FAKE_RENEW);
    const struct fake_coord_call *last = fake_coord_latest(&b.coord, FAKE_RENEW);
    assert_true(last->by.now_ms == clock_wall_ms(&b.clock.clock));
}

#define WORKERS(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* Renewals are answered meanwhile, or not: page and probes say it all the time. */
static void what_a_claim_is_refused_for_is_said_until_one_is_served(void **state)
{
    char lacks[ERR_TEXT_MAX];
    (void)state;
    fake_coord_fail(&b.coord, FAKE_CLAIM, COORD_OK, true);
    for (int i = 0; i < 2; i++)
        fake_coord_fail(&b.coord, FAKE_CLAIM, COORD_EXHAUSTED, false);
    while (report()->status != COORD_EXHAUSTED)
        call();
    assert_int_equal(report()->held, 1);
    memcpy(lacks, report()->why, sizeof lacks);
    assert_non_null(strstr(lacks, "the pool has no free workerId"));
    call_until(FAKE_RENEW);
    assert_int_equal(report()->status, COORD_OK);
    assert_string_equal(report()->why, lacks);
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    call_until(FAKE_RENEW);
    assert_string_not_equal(report()->why, lacks);
    call_until(FAKE_RENEW);
    assert_string_equal(report()->why, lacks);
    while (report()->held < 2)
        call();
    assert_string_equal(report()->why, "");
    call_until(FAKE_RENEW);
    assert_string_equal(report()->why, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKERS(a_pool_that_is_gone_is_one_loss_of_data),
        WORKERS(a_pool_made_again_with_others_is_no_second_loss),
        WORKERS(a_loss_that_a_claim_hears_of_first_counts),
        WORKERS(a_renewal_tells_the_clock_of_its_caller),
        WORKERS(what_a_claim_is_refused_for_is_said_until_one_is_served),
    };
    return cmocka_run_group_tests_name("lease/workers", tests, NULL, NULL);
}
