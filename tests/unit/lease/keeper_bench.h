/*
 * What the tests of the keeper's thread begin with: the supply of workerIds before a coordinator in
 * memory, and the loop's side.
 */
#ifndef SIDFLAKE_UNIT_LEASE_KEEPER_BENCH_H
#define SIDFLAKE_UNIT_LEASE_KEEPER_BENCH_H

#include "base/log.h"
#include "lease/keeper.h"
#include "lease/workers.h"
#include "support/fake_coord.h"
#include "support/lease_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_MS 30000

static struct bench {
    struct fake_coord coord;
    struct pagefile file;
    struct workers *workers;
    struct supply *supplies[1];
    struct keeper *keeper;
    struct workers_options options;
    unsigned notified; /* atomic */
    /* The loop's side. */
    struct rig_grant grant[LEASE_SLOTS];
    struct workers_report report;
    struct keeper_report keepers;
    unsigned mails[LEASE_MAIL_RETIRE + 1];
    bool disorder; /* a mail that cannot follow those before it */
} b;

static inline void notify(void *arg)
{
    (void)__atomic_add_fetch((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
}

static inline void start_keeper(void)
{
    struct err e;
    if (workers_new(&b.options, clock_mono_ms(clock_system()), &b.workers, &e))
        fail_msg("%s", e.text);
    b.supplies[0] = workers_supply(b.workers);
    const struct keeper_options o = {.supplies = b.supplies,
                                     .nsupplies = 1,
                                     .coord = &b.coord.coord,
                                     .clock = clock_system(),
                                     .notify = notify,
                                     .arg = &b.notified};
    if (keeper_start(&o, &b.keeper, &e))
        fail_msg("%s", e.text);
}

static inline int begin(void **state)
{
    (void)state;
    struct err e;
    memset(&b, 0, sizeof b);
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    fake_coord_init(&b.coord, clock_system(), RIG_IDENTITY, 0, FAKE_COORD_WORKERS - 1);
    if (pagefile_memory(&b.file, false, &e))
        return -1;
    b.options = (struct workers_options){.lease = rig_config(),
                                         .coord_name = "fake://",
                                         .pool_name = "default",
                                         .file = &b.file,
                                         .rng = rng_system()};
    b.options.lease.renew_ms = 40;
    b.options.lease.rotation_jitter_ms = 20;
    b.options.lease.stop_ms = 400;
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    fake_coord_block(&b.coord, false);
    for (int i = 0; i < 2 && b.keeper; i++) /* where a check has failed */
        keeper_stop(b.keeper, false);
    keeper_free(b.keeper);
    workers_free(b.workers);
    pagefile_close(&b.file);
    fake_coord_clear(&b.coord);
    return 0;
}

static inline void tell(enum workers_event_kind kind, uint32_t handle)
{
    const struct workers_event e = {.kind = kind, .handle = handle};
    keeper_tell(b.keeper, 0, &e);
}

/* ---- the loop's side --------------------------------------------------------------------------
 */

static inline void take_one(const struct lease_mail *m)
{
    struct rig_grant *g = &b.grant[m->handle % LEASE_SLOTS];
    b.mails[m->kind]++;
    if (m->kind == LEASE_MAIL_GRANT) {
        b.disorder |= g->held || b.mails[LEASE_MAIL_POOL] == 0;
        *g = (struct rig_grant){true, m->handle, m->worker, m->last_ms, m->hi_ms, m->mark};
    } else if (m->kind == LEASE_MAIL_EXTEND) {
        b.disorder |= g->held && (g->handle != m->handle || m->hi_ms < g->hi_ms);
        g->hi_ms = m->hi_ms;
    } else if (m->kind == LEASE_MAIL_REVOKE) {
        b.disorder |= g->held && g->handle != m->handle;
        g->held = false;
    }
}

static inline void take(size_t max)
{
    struct supply_mail mails[64];
    void *const reports[] = {&b.report};
    size_t n;
    do {
        n = keeper_take(b.keeper, mails, max, &b.keepers, reports);
        for (size_t i = 0; i < n; i++) {
            const struct lease_mail m = workers_mail(&mails[i]);
            assert_int_equal(mails[i].supply, 0);
            take_one(&m);
        }
    } while (n == max);
}

static inline unsigned held(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        n += b.grant[i].held;
    return n;
}

/* One must be held. */
static inline struct rig_grant *first(void)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (b.grant[i].held)
            return &b.grant[i];
    abort();
}

static inline int64_t now_ms(void)
{
    return clock_mono_ms(clock_system());
}

static inline void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Takes mails until the condition holds. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ = now_ms() + PATIENCE_MS;                                                   \
        for (take(8); !(condition); take(8)) {                                                     \
            if (now_ms() > until_)                                                                 \
                fail_msg("never came: %s", #condition);                                            \
            nap();                                                                                 \
        }                                                                                          \
    } while (0)

/* As the loop would retire it: it is dropped first. */
static inline void retire(struct rig_grant *g)
{
    g->held = false;
    tell(WORKERS_RETIRE, g->handle);
}

static inline void stop(bool give_back)
{
    keeper_stop(b.keeper, give_back);
    AWAIT(b.keepers.finished);
}

static inline void start_with_two(void)
{
    start_keeper();
    AWAIT(held() == 2);
}

#define KEEPER(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
