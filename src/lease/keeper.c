#include "lease/keeper.h"

#include "base/log.h"
#include "base/timefmt.h"
#include "lease/explain.h"
#include "lease/trouble.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTBOX_MAX  (8 * LEASE_MAIL_MAX)
#define RETIRED_MAX (4 * LEASE_SLOTS)
#define RISKS_US    INT64_C(600000000) /* between two looks at what the server may lose */

struct keeper {
    struct keeper_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the keeper: a request came, or the outbox has room again */

    /* Under the lock. */
    uint32_t retired[RETIRED_MAX];
    unsigned nretired;
    bool urge_renewal, urge_claim, give_back, pause;
    unsigned stops;
    struct lease_mail outbox[OUTBOX_MAX];
    size_t noutbox;
    struct keeper_report shared;

    /* The keeper's own. */
    struct lease lease;
    struct keeper_report report;
    struct trouble trouble, claims;
    bool page_lost;   /* that was logged */
    bool undated;     /* likewise: no new generation of the page can be had */
    bool range_told;  /* likewise: the pool's range is another one */
    int64_t risks_us; /* monotonic: the server is asked again what it may lose; 0: it never was */
    bool stopping;
};

/* ---- mailboxes --------------------------------------------------------------------------------
 */

/* With the lock held: requests of the loop go to the machine. */
static void take_requests(struct keeper *k, int64_t mono)
{
    for (unsigned i = 0; i < k->nretired; i++)
        lease_retire(&k->lease, k->retired[i], mono);
    if (k->urge_renewal)
        lease_urge_renewal(&k->lease, mono);
    if (k->urge_claim)
        lease_urge_claim(&k->lease, mono);
    if (k->stops > 0 && !k->stopping) {
        k->stopping = true;
        lease_stop(&k->lease, k->give_back, mono);
    }
    k->nretired = 0;
    k->urge_renewal = k->urge_claim = false;
}

/* Hands over the machine's mails and a copy of the report; waits while the loop is behind. */
static void deliver(struct keeper *k)
{
    (void)pthread_mutex_lock(&k->lock);
    while (k->noutbox + k->lease.nmail > OUTBOX_MAX && k->stops == 0)
        (void)pthread_cond_wait(&k->wake, &k->lock);
    if (k->noutbox + k->lease.nmail <= OUTBOX_MAX) {
        memcpy(k->outbox + k->noutbox, k->lease.mail, k->lease.nmail * sizeof *k->outbox);
        k->noutbox += k->lease.nmail;
    }
    k->lease.nmail = 0;
    k->shared = k->report;
    (void)pthread_mutex_unlock(&k->lock);
    k->o.notify(k->o.arg);
}

size_t keeper_take(struct keeper *k, struct lease_mail *mails, size_t max,
                   struct keeper_report *report)
{
    (void)pthread_mutex_lock(&k->lock);
    size_t n = k->noutbox < max ? k->noutbox : max;
    memcpy(mails, k->outbox, n * sizeof *mails);
    memmove(k->outbox, k->outbox + n, (k->noutbox - n) * sizeof *mails);
    k->noutbox -= n;
    *report = k->shared;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
    return n;
}

static void request(struct keeper *k, bool *flag)
{
    (void)pthread_mutex_lock(&k->lock);
    *flag = true;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
}

void keeper_urge_renewal(struct keeper *k)
{
    request(k, &k->urge_renewal);
}

void keeper_urge_claim(struct keeper *k)
{
    request(k, &k->urge_claim);
}

void keeper_retire(struct keeper *k, uint32_t handle)
{
    (void)pthread_mutex_lock(&k->lock);
    /* There are at most LEASE_SLOTS grants, each retired once: the box cannot overflow unless the
     * keeper hangs in a call while slots are reused, which they are not before it returns. */
    if (k->nretired < RETIRED_MAX)
        k->retired[k->nretired++] = handle;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
}

void keeper_pause(struct keeper *k, bool on)
{
    (void)pthread_mutex_lock(&k->lock);
    k->pause = on;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
}

void keeper_stop(struct keeper *k, bool give_back)
{
    (void)pthread_mutex_lock(&k->lock);
    k->give_back = give_back;
    k->stops++;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
}

/* ---- the log: what changed --------------------------------------------------------------------
 */

static void log_grant(const struct lease_mail *m)
{
    char to[TIMEFMT_MAX];
    log_info("workerId held", kv_u64("worker", m->worker),
             kv_str("ceiling", timefmt_rfc3339(to, m->hi_ms)));
}

static void log_pool(const struct keeper *k)
{
    const struct coord_pool *p = &k->lease.pool;
    char epoch[TIMEFMT_MAX], end[TIMEFMT_MAX];
    log_info("pool found", kv_str("coordinator", k->o.coord_name), kv_str("pool", k->o.pool_name),
             kv_str("identity", p->identity), kv_u64("era", k->lease.era),
             kv_str("epoch", timefmt_rfc3339(epoch, p->epoch_ms)),
             kv_str("lasts_until", timefmt_rfc3339(end, p->epoch_ms + ((INT64_C(1) << 38) - 1))),
             kv_i64("horizon_ms", p->params.horizon_ms));
    if (p->replicas > 0 && p->params.replicas == 0)
        log_warn("the coordinator has replicas and none has to acknowledge: a failover may repeat "
                 "IDs",
                 kv_u64("replicas", p->replicas), kv_str("pool", k->o.pool_name));
}

/* A renewal that is answered names each workerId that is lost; any other outcome by which one goes
 * says that there is no pool to renew it with, and takes only what has ended. */
static const char *why_lost(const struct lease_mail *m, const struct lease_action *a,
                            const struct lease_outcome *o)
{
    if (m->released)
        return "an operator released it";
    if (a->kind != LEASE_RENEW || o->status != COORD_OK)
        return "its range is over, and its pool is gone, or there is another one";
    return "the coordinator knows a later holder, rested it, or has other workerIds";
}

/* a, o: what brought the mails; of those of a start, which revoke nothing, NULL. */
static void log_mails(const struct keeper *k, const struct lease_action *a,
                      const struct lease_outcome *o)
{
    for (unsigned i = 0; i < k->lease.nmail; i++) {
        const struct lease_mail *m = &k->lease.mail[i];
        if (m->kind == LEASE_MAIL_POOL && !k->lease.described)
            log_info("state page taken over", kv_str("identity", k->lease.identity));
        else if (m->kind == LEASE_MAIL_POOL)
            log_pool(k);
        else if (m->kind == LEASE_MAIL_GRANT)
            log_grant(m);
        else if (m->kind == LEASE_MAIL_REVOKE)
            log_warn("workerId lost", kv_u64("worker", m->worker),
                     kv_str("why", why_lost(m, a, o)));
    }
}

static void log_range(struct keeper *k)
{
    bool differs = k->lease.range.code != ERR_OK;
    if (differs && !k->range_told)
        log_warn("the pool's workerIds are others than before", kv_str("why", k->lease.range.text),
                 kv_str("pool", k->o.pool_name));
    k->range_told = differs;
}

/* The latest ceiling of what was granted, Unix ms; 0: nothing is held. */
static int64_t ids_until(const struct lease *l)
{
    int64_t until = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct lease_slot *x = &l->slot[i];
        bool granted = x->rec.state == PAGE_HELD && x->unproven == 0;
        if (granted && x->rec.hi_ms > until)
            until = x->rec.hi_ms;
    }
    return until;
}

/* The reason may be long, and a line is cut at its end. */
static void log_trouble(const struct keeper *k, const struct trouble *t)
{
    char until[TIMEFMT_MAX];
    int64_t until_ms = ids_until(&k->lease);
    log_write(trouble_level(t), trouble_message(t),
              LOG_KVS(kv_u64("held", lease_held(&k->lease)),
                      kv_str("ids_until", until_ms > 0 ? timefmt_rfc3339(until, until_ms) : "none"),
                      kv_str("why", k->report.why), kv_str("coordinator", k->o.coord_name)));
}

/* Of claims alone: all else is answered meanwhile. */
static bool is_of_claims(enum coord_status s)
{
    return s == COORD_WAIT || s == COORD_EXHAUSTED || s == COORD_SKEW || s == COORD_CLOSED;
}

/* Where a pool is missing that is made next, or somebody else has made it just now, it is the next
 * call that tells; and where a claim has to wait of a pool that was reopened just now, the next
 * claim, which knows what can be done. A claim may have to wait while all else is answered: that is
 * a state of its own, or it would change with each renewal. */
static void log_status(struct keeper *k, const struct trouble_call *c)
{
    bool waits = c->kind == LEASE_CLAIM && is_of_claims(c->status);
    struct trouble_call all = *c, claim = *c;
    all.status = waits || c->status == COORD_LOST ? COORD_OK : c->status;
    claim.status = waits ? c->status : COORD_OK;
    if (c->status == COORD_EXISTS || (c->status == COORD_NOPOOL && lease_may_init(&k->lease)))
        return;
    if (trouble_is_news(&k->trouble, &all)) {
        if (k->trouble.status != COORD_OK)
            log_trouble(k, &k->trouble);
        else if (k->report.answered)
            log_info(trouble_message(&k->trouble), kv_str("coordinator", k->o.coord_name));
    }
    if ((waits && !k->lease.described) || c->kind != LEASE_CLAIM || all.status != COORD_OK)
        return;
    if (trouble_is_news(&k->claims, &claim) && waits)
        log_trouble(k, &k->claims);
}

/* ---- one call ---------------------------------------------------------------------------------
 */

/* false: states of the page from before a workerId was given up could still be taken over. */
static bool page_is_dated(struct keeper *k)
{
    struct err e;
    if (!k->lease.gave_up)
        return true;
    bool failed = pagefile_begin_generation(k->o.file, &e) != ERR_OK;
    if (failed && !k->undated)
        log_warn("state page without a new generation: no workerId is given back, each rests until "
                 "its range is over",
                 kv_str("file", k->o.file->path), kv_str("why", e.text));
    k->undated = failed;
    k->lease.gave_up = failed;
    return !failed;
}

/* A release that is not sent is as good as one that came too late. */
static enum coord_status release(struct keeper *k, const struct coord_release *r,
                                 struct coord_reply *reply)
{
    if (!page_is_dated(k)) {
        log_warn("workerId not given back", kv_u64("worker", r->worker));
        return COORD_LOST;
    }
    char last[TIMEFMT_MAX];
    enum coord_status s = coord_release(k->o.coord, k->lease.identity, r, reply);
    log_info("workerId given back", kv_u64("worker", r->worker),
             kv_str("status", coord_status_name(s)),
             kv_str("last", r->has_last ? timefmt_rfc3339(last, r->last_ms) : "none"));
    return s;
}

static void call(struct keeper *k, struct lease_action *a, struct lease_outcome *o, int64_t wall)
{
    struct coord *c = k->o.coord;
    const char *id = k->lease.identity;
    memset(o, 0, sizeof *o);
    switch (a->kind) {
    case LEASE_DESCRIBE:
        o->status = coord_describe(c, &o->pool, &o->reply);
        break;
    case LEASE_INIT:
        o->status = coord_init(c, &a->init, &o->reply);
        if (o->status == COORD_OK)
            log_info("pool made",
                     kv_str("mode", a->init.mode == COORD_INIT_FRESH ? "fresh" : "after-loss"));
        break;
    case LEASE_CLAIM:
        o->status = coord_claim(c, id, wall, a->token, &o->grant, &o->reply);
        break;
    case LEASE_RENEW:
        a->by.now_ms = wall;
        o->status = coord_renew(c, id, &a->by, a->items, a->nitems, &o->terms, &o->reply);
        break;
    case LEASE_RELEASE:
        o->status = release(k, &a->release, &o->reply);
        break;
    case LEASE_IDLE:
    case LEASE_FINISHED:
        break;
    }
}

/* A workerId whose range has not ended is lost where the coordinator forgot, or it says why. */
static bool forgot(const struct lease_action *a, const struct lease_outcome *o,
                   enum coord_status before)
{
    if (a->kind != LEASE_RENEW)
        return false;
    if (o->status == COORD_NOPOOL || o->status == COORD_WRONGPOOL)
        return before != o->status;
    for (size_t i = 0; o->status == COORD_OK && i < a->nitems; i++) {
        const struct coord_renewal *x = &a->items[i];
        if (x->how == COORD_HOW_LOST && !x->released && x->hi_ms > o->reply.now_ms)
            return true;
    }
    return false;
}

static void count_renewals(struct keeper_report *r, const struct lease_action *a,
                           const struct lease_outcome *o)
{
    if (a->kind != LEASE_RENEW)
        return;
    if (o->status != COORD_OK)
        r->renewals_failed++;
    for (size_t i = 0; o->status == COORD_OK && i < a->nitems; i++)
        r->renewals[a->items[i].how]++;
}

/* Whoever is refused for long has nothing of the coordinator, though it can be reached. */
static bool serves(enum coord_status s)
{
    return s == COORD_OK || s == COORD_LOST || s == COORD_WAIT || s == COORD_EXHAUSTED ||
           s == COORD_EXISTS;
}

static void note(struct keeper *k, const struct lease_action *a, const struct lease_outcome *o,
                 int64_t started_us, int64_t ended_us, int64_t wall)
{
    struct keeper_report *r = &k->report;
    uint64_t era = r->era;
    histogram_add(&r->requests, ended_us - started_us, 1);
    count_renewals(r, a, o);
    if (forgot(a, o, r->status)) {
        r->data_loss++;
        log_error("coordinator forgot what it had granted",
                  kv_str("status", coord_status_name(o->status)));
    }
    r->up = coord_answered(o->status, &o->reply);
    r->status = o->status;
    if (o->reply.now_ms > 0)
        r->skew_ms = o->reply.now_ms - wall;
    if (o->reply.era > 0) {
        r->era = o->reply.era;
        r->free = o->reply.free;
    }
    if (era > 0 && r->era != era)
        log_warn("pool reopened: its server restarted, failed over or lost data",
                 kv_u64("era", r->era), kv_u64("era_before", era));
    explain(&k->o, &k->lease, o, k->report.why, sizeof k->report.why);
    /* A pool that answers, but that this process must not use, is as good as another one. */
    bool unusable = o->status == COORD_OK && k->lease.trouble.code;
    const struct trouble_call came = {.kind = a->kind,
                                      .status = unusable ? COORD_WRONGPOOL : o->status,
                                      .answered = r->up,
                                      .why = r->why,
                                      .mono_ms = ended_us / 1000};
    log_status(k, &came);
    r->serves = serves(o->status) && !unusable;
    r->answered |= r->up;
    r->pool = k->lease.pool;
    r->held = lease_held(&k->lease);
}

/* Said once: it does not come back. IDs go on, since what is held is the coordinator's to know. */
static void look_at_page(struct keeper *k)
{
    struct err e = {.code = ERR_OK};
    if (k->page_lost || pagefile_stands(k->o.file, &e))
        return;
    k->page_lost = true;
    memcpy(k->report.page, e.text, sizeof k->report.page);
    log_error(k->o.lease.page_knows_alone ? "state page lost: a restart may be refused, or repeat "
                                            "IDs if the clock has stepped back"
                                          : "state page lost: a restart will cost a workerId",
              kv_str("file", k->o.file->path), kv_str("why", e.text));
}

/* Asked after a pool was found, and now and then: an operator may have mended it. Told once. */
static void look_at_risks(struct keeper *k, const struct lease_action *a,
                          const struct lease_outcome *o, int64_t now_us)
{
    bool found = a->kind == LEASE_DESCRIBE, due = a->kind == LEASE_RENEW && now_us >= k->risks_us;
    unsigned risks = k->report.risks;
    if (o->status != COORD_OK || !(found || due))
        return;
    k->risks_us = now_us + RISKS_US;
    if (!coord_risks(k->o.coord, &risks))
        return;
    for (unsigned i = 0; i < COORD_RISKS; i++) {
        const char *text = coord_risk_text(risks & ~k->report.risks, i);
        if (text)
            log_warn(text, kv_str("coordinator", k->o.coord_name), kv_str("pool", k->o.pool_name));
    }
    k->report.risks = risks;
    deliver(k);
}

static void run(struct keeper *k, struct lease_action *a)
{
    struct clock *c = k->o.clock;
    struct lease_outcome o;
    int64_t started = clock_mono_us(c);
    call(k, a, &o, clock_wall_ms(c));
    int64_t ended = clock_mono_us(c);
    int64_t wall = clock_wall_ms(c);
    lease_done(&k->lease, a, &o, ended / 1000, wall);
    (void)page_is_dated(k); /* of what was found to be lost */
    note(k, a, &o, started, ended, wall);
    look_at_page(k);
    log_range(k);
    log_mails(k, a, &o);
    deliver(k);
    look_at_risks(k, a, &o, ended);
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Until mono, or a request. With the lock held. */
static void sleep_until(struct keeper *k, int64_t mono_ms)
{
    if (mono_ms == INT64_MAX) {
        (void)pthread_cond_wait(&k->wake, &k->lock);
        return;
    }
    struct timespec ts = {.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000};
    (void)pthread_cond_timedwait(&k->wake, &k->lock, &ts);
}

/* With the lock held, and the connection given up. */
static void rest(struct keeper *k)
{
    k->shared.paused = true;
    k->shared.proven = lease_proven(&k->lease);
    k->o.notify(k->o.arg);
    while (k->pause && k->stops == 0)
        (void)pthread_cond_wait(&k->wake, &k->lock);
    k->shared.paused = false;
}

/* Without the lock, which is held: a file that is closed may wait for its disk. */
static bool disconnect(struct keeper *k)
{
    (void)pthread_mutex_unlock(&k->lock);
    coord_idle(k->o.coord);
    (void)pthread_mutex_lock(&k->lock);
    return true;
}

/* true: an action is to be run. The connection is given up before a sleep. */
static bool next(struct keeper *k, struct lease_action *a)
{
    bool idle = false;
    (void)pthread_mutex_lock(&k->lock);
    for (;;) {
        bool pause = k->pause && k->stops == 0;
        take_requests(k, clock_mono_ms(k->o.clock));
        if (pause)
            a->kind = LEASE_IDLE;
        else
            lease_next(&k->lease, clock_mono_ms(k->o.clock), a);
        if (a->kind != LEASE_IDLE || k->stops > 1)
            break;
        if (idle && pause)
            rest(k);
        else if (idle)
            sleep_until(k, a->until);
        else
            idle = disconnect(k);
    }
    bool more = a->kind != LEASE_FINISHED && k->stops < 2;
    (void)pthread_mutex_unlock(&k->lock);
    return more;
}

static void *thread_main(void *arg)
{
    struct keeper *k = arg;
    struct lease_action a;
    while (next(k, &a))
        run(k, &a);
    coord_idle(k->o.coord);
    k->report.finished = true;
    k->report.held = lease_held(&k->lease);
    deliver(k);
    return NULL;
}

static enum err_code start_thread(struct keeper *k, struct err *e)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGBUS);                     /* see pagefile_guard */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    int r = pthread_create(&k->thread, NULL, thread_main, k);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r ? err_errno(e, r, "cannot start the keeper's thread") : ERR_OK;
}

enum err_code keeper_start(const struct keeper_options *o, struct keeper **out, struct err *e)
{
    pthread_condattr_t attr;
    struct keeper *k = calloc(1, sizeof *k);
    if (!k)
        return err_set(e, ERR_NOMEM, "no memory for the keeper");
    k->o = *o;
    (void)pthread_mutex_init(&k->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&k->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    lease_init(&k->lease, &o->lease, o->file, o->rng, clock_mono_ms(o->clock));
    k->report.pool = k->lease.pool;
    k->report.held = lease_held(&k->lease);
    if (o->file->fd < 0)
        memcpy(k->report.page, o->file->why.text, sizeof k->report.page);
    log_mails(k, NULL, NULL);
    deliver(k);
    enum err_code r = start_thread(k, e);
    if (r) {
        (void)pthread_cond_destroy(&k->wake);
        (void)pthread_mutex_destroy(&k->lock);
        free(k);
        return r;
    }
    *out = k;
    return ERR_OK;
}

void keeper_free(struct keeper *k)
{
    if (!k)
        return;
    (void)pthread_join(k->thread, NULL);
    (void)pthread_cond_destroy(&k->wake);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}
