/*
 * The bridge on a bench: the keeper's thread is run for real, with a supply that says what the test
 * says and keeps what the bridge told it; the test is the loop.
 */
#ifndef SIDFLAKE_UNIT_DAEMON_BRIDGE_RIG_H
#define SIDFLAKE_UNIT_DAEMON_BRIDGE_RIG_H

#include "daemon/bridge.h"
#include "support/capture.h"
#include "support/fake_clock.h"
#include "support/fake_coord.h"
#include "support/lease_rig.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T0          RIG_T0
#define EVENTS_MAX  4096
#define BATCHES_MAX 32
#define PATIENCE_MS 10000
#define HORIZON     INT64_C(3600000)

/* ---- a supply that says what it is told to ----------------------------------------------------
 */

struct batch {
    struct lease_mail mail[SUPPLY_MAILS];
    unsigned n;
};

static struct bench {
    struct supply supply;
    struct workers_report shared; /* the keeper's copy, under its lock */

    /* The test's, until go() gives them to the keeper's thread, which reads them. */
    struct workers_report report;
    struct batch batch[BATCHES_MAX];
    unsigned nbatches;

    /* Under the keeper's lock. */
    unsigned due, done;
    bool stopped;
    struct workers_report latest;
    struct workers_event event[EVENTS_MAX]; /* what the bridge told; the test is the loop */
    unsigned nevents;

    unsigned notified; /* atomic */
    struct fake_coord coord;
    struct supply *supplies[SUPPLY_KINDS];
    struct fake_clock clock;
    struct serve serve;
    struct snowflake_generator ids;
    struct net *net;
    struct bridge bridge;
    bool captures;
} b;

#define GO 1000 /* an event of the test's own: that many batches are due */

static inline void tell(struct supply *s, const void *event)
{
    const struct workers_event *e = event;
    (void)s;
    if ((unsigned)e->kind == GO)
        b.due = e->handle;
    else if (b.nevents < EVENTS_MAX)
        b.event[b.nevents++] = *e;
}

static inline void hear(struct supply *s, int64_t mono)
{
    (void)s;
    (void)mono;
}

static inline void stop(struct supply *s, bool give_back, int64_t mono)
{
    (void)s;
    (void)give_back;
    (void)mono;
    b.stopped = true;
}

static inline enum supply_next next(struct supply *s, int64_t mono, int64_t *until)
{
    (void)s;
    (void)mono;
    *until = INT64_MAX;
    if (b.stopped)
        return SUPPLY_FINISHED;
    return b.done < b.due ? SUPPLY_CALL : SUPPLY_IDLE;
}

static inline void call(struct supply *s, struct coord *c, int64_t wall)
{
    (void)s;
    (void)c;
    (void)wall;
}

static inline void done(struct supply *s, int64_t mono, int64_t wall)
{
    (void)mono;
    (void)wall;
    const struct batch *x = &b.batch[b.done++];
    for (unsigned i = 0; i < x->n; i++)
        supply_post(s, &x->mail[i], sizeof x->mail[i]);
    b.latest = b.report;
}

static inline bool proven(const struct supply *s)
{
    (void)s;
    return false;
}

static inline const void *report(struct supply *s)
{
    (void)s;
    return &b.latest;
}

static const struct supply_kind scripted = {.tell = tell,
                                            .hear = hear,
                                            .stop = stop,
                                            .next = next,
                                            .call = call,
                                            .done = done,
                                            .proven = proven,
                                            .report = report,
                                            .report_size = sizeof(struct workers_report)};

static inline void notify(void *arg)
{
    (void)arg;
    (void)__atomic_add_fetch(&b.notified, 1, __ATOMIC_SEQ_CST);
}

/* ---- the bench --------------------------------------------------------------------------------
 */

static inline void start_keeper(void)
{
    struct err e;
    const struct keeper_options o = {.supplies = b.supplies,
                                     .nsupplies = 1,
                                     .coord = &b.coord.coord,
                                     .clock = clock_system(),
                                     .notify = notify};
    if (keeper_start(&o, &b.bridge.keeper, &e))
        fail_msg("%s", e.text);
}

static inline int begin(void **state)
{
    (void)state;
    struct err e;
    memset(&b, 0, sizeof b);
    log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    capture_begin(); /* what is logged is no part of most tests */
    b.captures = true;
    fake_clock_init(&b.clock, T0);
    fake_coord_init(&b.coord, clock_system(), RIG_IDENTITY, 0, FAKE_COORD_WORKERS - 1);
    b.supply.kind = &scripted;
    b.supply.shared = &b.shared;
    b.supplies[SUPPLY_WORKERS] = &b.supply;
    b.serve.clock = &b.clock.clock;
    history_init(&b.serve.history, clock_mono_us(&b.clock.clock));
    snowflake_generator_init(&b.ids, b.serve.facts.why);
    const struct net_config nc = {.clock = &b.clock.clock, .connections = 10};
    if (issuer_add(&b.serve.issuer, &b.ids.base, "id:", NULL, 0, &e) || net_new(&nc, &b.net, &e))
        return -1;
    b.bridge = (struct bridge){.serve = &b.serve,
                               .ids = &b.ids,
                               .net = b.net,
                               .clock = &b.clock.clock,
                               .want_active = SNOWFLAKE_MEMBERS,
                               .wait_below_ms = 0};
    bridge_init(&b.bridge);
    b.report.answered = b.report.up = b.report.serves = true;
    b.report.pool.epoch_ms = RIG_EPOCH;
    b.report.pool.layout = layout_usual;
    b.report.pool.params = coord_params_default;
    strcpy(b.report.pool.identity, RIG_IDENTITY);
    b.latest = b.report;
    start_keeper();
    return 0;
}

static inline const char *logged(void)
{
    b.captures = false;
    return capture_end();
}

static inline void log_anew(void)
{
    (void)logged();
    capture_begin();
    b.captures = true;
}

static inline int end(void **state)
{
    (void)state;
    if (b.captures)
        (void)logged();
    keeper_stop(b.bridge.keeper, false);
    keeper_stop(b.bridge.keeper, false);
    keeper_free(b.bridge.keeper);
    net_free(b.net);
    names_clear(&b.serve.issuer.names);
    fake_coord_clear(&b.coord);
    return 0;
}

static inline struct batch *fresh(void)
{
    assert_true(b.nbatches < BATCHES_MAX);
    return &b.batch[b.nbatches++];
}

static inline struct lease_mail *put(struct batch *x, enum lease_mail_kind kind, uint32_t handle)
{
    assert_true(x->n < SUPPLY_MAILS);
    x->mail[x->n] = (struct lease_mail){.kind = kind,
                                        .handle = handle,
                                        .worker = (uint16_t)(handle % 1000),
                                        .last_ms = T0 - 10,
                                        .hi_ms = T0 + HORIZON};
    return &x->mail[x->n++];
}

/* What was put goes to the loop. */
static inline void go(void)
{
    const struct workers_event e = {.kind = (enum workers_event_kind)GO, .handle = b.nbatches};
    keeper_tell(b.bridge.keeper, SUPPLY_WORKERS, &e);
}

static inline unsigned notifications(void)
{
    return __atomic_load_n(&b.notified, __ATOMIC_SEQ_CST);
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int left_ = PATIENCE_MS;                                                                   \
        while (!(condition) && left_-- > 0)                                                        \
            (void)poll(NULL, 0, 1);                                                                \
        assert_true(left_ > 0);                                                                    \
    } while (0)

/* The same, and the loop takes it. One notification for each call, one when it started. */
static inline void exchange(void)
{
    go();
    AWAIT(notifications() >= 1 + b.nbatches);
    bridge_take(&b.bridge);
}

/* A grant, and the pool before the first. */
static inline void grant(uint32_t handle)
{
    struct batch *x = fresh();
    if (!b.ids.started)
        (void)put(x, LEASE_MAIL_POOL, 0);
    (void)put(x, LEASE_MAIL_GRANT, handle);
    b.report.held++;
    exchange();
}

static inline const struct snowflake_member *member(uint32_t handle)
{
    for (unsigned i = 0; i < b.ids.ids.nmembers; i++)
        if (b.ids.ids.member[i].handle == handle)
            return &b.ids.ids.member[i];
    return NULL;
}

static inline void assert_told(unsigned n, enum workers_event_kind kind, uint32_t handle)
{
    assert_true(b.nevents > n);
    assert_int_equal(b.event[n].kind, kind);
    assert_int_equal(b.event[n].handle, handle);
}

static inline int64_t now_ms(void)
{
    return clock_wall_ms(&b.clock.clock);
}

/* An ID, or why not; then the turn ends. */
static inline enum snowflake_status issue(void)
{
    uint64_t id;
    int64_t until;
    enum snowflake_status s = snowflake_next(&b.ids.ids, now_ms(), 1, &id, &until);
    bridge_settle(&b.bridge);
    return s;
}

static inline void pass_ms(int64_t ms)
{
    fake_clock_pass(&b.clock, ms * 1000);
}

static inline void assert_logged(const char *log, const char *text, unsigned times)
{
    unsigned n = 0;
    for (const char *p = log; (p = strstr(p, text)); p++)
        n++;
    if (n != times)
        fail_msg("expected \"%s\" %u times, found it %u times in:\n%s", text, times, n, log);
}

#define BRIDGE(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
