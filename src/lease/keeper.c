#include "lease/keeper.h"

#include "lease/workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTBOX_MAX  (8 * LEASE_MAIL_MAX)
#define RETIRED_MAX (4 * LEASE_SLOTS)

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
    struct workers workers;
    bool stopping;
};

/* ---- mailboxes --------------------------------------------------------------------------------
 */

/* With the lock held: requests of the loop go to the machine. */
static void take_requests(struct keeper *k, int64_t mono)
{
    for (unsigned i = 0; i < k->nretired; i++)
        lease_retire(&k->workers.lease, k->retired[i], mono);
    if (k->urge_renewal)
        lease_urge_renewal(&k->workers.lease, mono);
    if (k->urge_claim)
        lease_urge_claim(&k->workers.lease, mono);
    if (k->stops > 0 && !k->stopping) {
        k->stopping = true;
        lease_stop(&k->workers.lease, k->give_back, mono);
    }
    k->nretired = 0;
    k->urge_renewal = k->urge_claim = false;
}

/* Hands over the machine's mails and a copy of the report; waits while the loop is behind. */
static void deliver(struct keeper *k)
{
    (void)pthread_mutex_lock(&k->lock);
    while (k->noutbox + k->workers.lease.nmail > OUTBOX_MAX && k->stops == 0)
        (void)pthread_cond_wait(&k->wake, &k->lock);
    if (k->noutbox + k->workers.lease.nmail <= OUTBOX_MAX) {
        memcpy(k->outbox + k->noutbox, k->workers.lease.mail,
               k->workers.lease.nmail * sizeof *k->outbox);
        k->noutbox += k->workers.lease.nmail;
    }
    k->workers.lease.nmail = 0;
    k->shared = k->workers.report;
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

static void run(struct keeper *k, struct lease_action *a)
{
    struct clock *c = k->o.clock;
    struct lease_outcome o;
    struct workers_times t = {.started_us = clock_mono_us(c)};
    workers_call(&k->workers, k->o.coord, a, &o, clock_wall_ms(c));
    t.ended_us = clock_mono_us(c);
    t.wall_ms = clock_wall_ms(c);
    workers_done(&k->workers, a, &o, &t);
    deliver(k);
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
    k->shared.proven = lease_proven(&k->workers.lease);
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
            lease_next(&k->workers.lease, clock_mono_ms(k->o.clock), a);
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
    k->workers.report.finished = true;
    k->workers.report.held = lease_held(&k->workers.lease);
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
    workers_init(&k->workers, &k->o);
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
