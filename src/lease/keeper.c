#include "lease/keeper.h"

#include "base/int64.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTBOX_MAX (8 * SUPPLY_MAILS)

#define NEVER (INT64_MIN / 2)

static_assert(OUTBOX_MAX >= SUPPLY_MAX * SUPPLY_MAILS, "what all post at once fits");

struct keeper {
    struct keeper_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the keeper: an event came, or the outbox has room again; or ended */

    /* Under the lock. */
    bool give_back, pause, ended;
    bool full; /* the outbox has no room, for which the keeper waits */
    unsigned stops;
    struct supply_mail outbox[OUTBOX_MAX];
    size_t noutbox;
    struct keeper_report shared;

    /* The keeper's own. */
    struct keeper_report report;
    size_t first; /* in the list: who is asked first */
    bool stopping;
    bool often;                 /* the latest call came soon after the one before it */
    int64_t joined_ms, last_ms; /* mono: the first call over this connection, and the latest one's
                                   end; NEVER */
};

/* ---- mailboxes --------------------------------------------------------------------------------
 */

/* With the lock held: what the loop wants goes to the supplies. */
static void hear(struct keeper *k, int64_t mono)
{
    bool stop = k->stops > 0 && !k->stopping;
    k->stopping |= stop;
    for (size_t i = 0; i < k->o.nsupplies; i++) {
        struct supply *s = k->o.supplies[i];
        s->kind->hear(s, mono);
        if (stop)
            s->kind->stop(s, k->give_back, mono);
    }
}

static size_t posted(const struct keeper *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->o.nsupplies; i++)
        n += k->o.supplies[i]->nmail;
    return n;
}

/* What supply i has posted, if there is room for it. */
static void put_out(struct keeper *k, size_t i, bool room)
{
    struct supply *s = k->o.supplies[i];
    for (unsigned m = 0; room && m < s->nmail; m++) {
        s->mail[m].supply = i;
        k->outbox[k->noutbox++] = s->mail[m];
    }
    s->nmail = 0;
}

/* With the lock held: hands over mails and copies of the reports; waits while the loop is behind.
 */
static void hand_over(struct keeper *k)
{
    size_t n = posted(k);
    while ((k->full = k->noutbox + n > OUTBOX_MAX && k->stops == 0))
        (void)pthread_cond_wait(&k->wake, &k->lock);
    bool room = k->noutbox + n <= OUTBOX_MAX;
    for (size_t i = 0; i < k->o.nsupplies; i++) {
        struct supply *s = k->o.supplies[i];
        put_out(k, i, room);
        memcpy(s->shared, s->kind->report(s), s->kind->report_size);
    }
    k->shared = k->report;
}

static void deliver(struct keeper *k)
{
    (void)pthread_mutex_lock(&k->lock);
    hand_over(k);
    (void)pthread_mutex_unlock(&k->lock);
    k->o.notify(k->o.arg);
}

size_t keeper_take(struct keeper *k, struct supply_mail *mails, size_t max,
                   struct keeper_report *report, void *const *reports)
{
    (void)pthread_mutex_lock(&k->lock);
    size_t n = k->noutbox < max ? k->noutbox : max;
    memcpy(mails, k->outbox, n * sizeof *mails);
    memmove(k->outbox, k->outbox + n, (k->noutbox - n) * sizeof *mails);
    k->noutbox -= n;
    *report = k->shared;
    for (size_t i = 0; i < k->o.nsupplies; i++)
        if (reports[i])
            memcpy(reports[i], k->o.supplies[i]->shared, k->o.supplies[i]->kind->report_size);
    if (k->full) /* to wake it costs more than all of this */
        (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
    return n;
}

void keeper_tell(struct keeper *k, size_t i, const void *event)
{
    struct supply *s = k->o.supplies[i];
    (void)pthread_mutex_lock(&k->lock);
    s->kind->tell(s, event);
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
}

void keeper_pause(struct keeper *k, bool on)
{
    (void)pthread_mutex_lock(&k->lock);
    k->pause = on;
    bool rests = k->shared.paused; /* since a pause before: it did not wake, and says nothing */
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
    if (on && rests)
        k->o.notify(k->o.arg);
}

void keeper_stop(struct keeper *k, bool give_back)
{
    (void)pthread_mutex_lock(&k->lock);
    k->give_back = give_back;
    k->stops++;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
}

/* ---- who is due -------------------------------------------------------------------------------
 */

/* The first that has a call to make. Else *until is when one may have, unless all have
 * finished. */
static enum supply_next ask(const struct keeper *k, int64_t mono, size_t *who, int64_t *until)
{
    bool finished = true;
    *until = INT64_MAX;
    for (size_t i = 0; i < k->o.nsupplies; i++) {
        int64_t till = INT64_MAX;
        *who = (k->first + i) % k->o.nsupplies;
        struct supply *s = k->o.supplies[*who];
        enum supply_next due = s->kind->next(s, mono, &till);
        if (due == SUPPLY_CALL)
            return due;
        if (due == SUPPLY_IDLE)
            *until = min64(*until, till);
        finished &= due == SUPPLY_FINISHED;
    }
    return finished ? SUPPLY_FINISHED : SUPPLY_IDLE;
}

static void run(struct keeper *k, size_t who)
{
    struct supply *s = k->o.supplies[who];
    struct clock *c = k->o.clock;
    int64_t started = clock_mono_us(c);
    k->often = started / 1000 - k->last_ms < coord_keep_ms(k->o.coord);
    if (k->joined_ms == NEVER)
        k->joined_ms = started / 1000;
    s->kind->call(s, k->o.coord, clock_wall_ms(c));
    int64_t ended = clock_mono_us(c);
    k->last_ms = ended / 1000;
    histogram_add(&k->report.requests, ended - started, 1);
    s->kind->done(s, ended / 1000, clock_wall_ms(c));
    k->first = who + 1;
    deliver(k);
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Until mono, or an event. With the lock held. */
static void sleep_until(struct keeper *k, int64_t mono_ms)
{
    if (mono_ms == INT64_MAX) {
        (void)pthread_cond_wait(&k->wake, &k->lock);
        return;
    }
    struct timespec ts = {.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000};
    (void)pthread_cond_timedwait(&k->wake, &k->lock, &ts);
}

static bool proven(const struct keeper *k)
{
    bool all = true;
    for (size_t i = 0; i < k->o.nsupplies; i++)
        all &= k->o.supplies[i]->kind->proven(k->o.supplies[i]);
    return all;
}

/* With the lock held, and the connection given up. */
static void rest(struct keeper *k)
{
    k->shared.paused = true;
    k->shared.proven = proven(k);
    k->o.notify(k->o.arg);
    while (k->pause && k->stops == 0)
        (void)pthread_cond_wait(&k->wake, &k->lock);
    k->shared.paused = false;
}

/* Until when the connection is worth keeping; mono. */
static int64_t keeps_until(const struct keeper *k)
{
    return k->often ? k->joined_ms + coord_keep_ms(k->o.coord) : NEVER;
}

/* Without the lock, which is held: a file that is closed may wait for its disk. */
static bool disconnect(struct keeper *k)
{
    k->joined_ms = NEVER;
    (void)pthread_mutex_unlock(&k->lock);
    coord_idle(k->o.coord);
    (void)pthread_mutex_lock(&k->lock);
    return true;
}

/* With the lock held. Mails that were posted without a call; true: more may have been told while
 * the loop was waited for. */
static bool hand_over_early(struct keeper *k)
{
    if (posted(k) == 0)
        return false;
    hand_over(k);
    k->o.notify(k->o.arg);
    return true;
}

/* true: that supply's call is to be made. The connection is given up before a sleep, but for a
 * short one where calls are many: to connect and log in takes longer than most of them. */
static bool next(struct keeper *k, size_t *who)
{
    enum supply_next due = SUPPLY_IDLE;
    bool idle = false;
    (void)pthread_mutex_lock(&k->lock);
    for (;;) {
        bool pause = k->pause && k->stops == 0;
        int64_t until = INT64_MAX, mono = clock_mono_ms(k->o.clock);
        hear(k, mono);
        due = pause ? SUPPLY_IDLE : ask(k, mono, who, &until);
        bool again = hand_over_early(k);
        if (due != SUPPLY_IDLE || k->stops > 1)
            break;
        k->first = 0;
        if (again)
            continue;
        if (idle && pause)
            rest(k);
        else if (idle)
            sleep_until(k, until);
        else if (!pause && mono < keeps_until(k))
            sleep_until(k, min64(until, keeps_until(k)));
        else
            idle = disconnect(k);
    }
    bool more = due == SUPPLY_CALL && k->stops < 2;
    (void)pthread_mutex_unlock(&k->lock);
    return more;
}

static void *thread_main(void *arg)
{
    struct keeper *k = arg;
    size_t who;
    while (next(k, &who))
        run(k, who);
    coord_idle(k->o.coord);
    k->report.finished = true;
    deliver(k);
    (void)pthread_mutex_lock(&k->lock);
    k->ended = true;
    (void)pthread_cond_signal(&k->wake);
    (void)pthread_mutex_unlock(&k->lock);
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

static void clear(struct keeper *k)
{
    (void)pthread_cond_destroy(&k->wake);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

enum err_code keeper_start(const struct keeper_options *o, struct keeper **out, struct err *e)
{
    pthread_condattr_t attr;
    struct keeper *k = calloc(1, sizeof *k);
    if (!k)
        return err_set(e, ERR_NOMEM, "no memory for the keeper");
    k->o = *o;
    k->joined_ms = k->last_ms = NEVER;
    (void)pthread_mutex_init(&k->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&k->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    deliver(k);
    enum err_code r = start_thread(k, e);
    if (r) {
        clear(k);
        return r;
    }
    *out = k;
    return ERR_OK;
}

bool keeper_ends(struct keeper *k, int64_t ms)
{
    int64_t until = clock_mono_ms(k->o.clock) + ms;
    (void)pthread_mutex_lock(&k->lock);
    while (!k->ended && clock_mono_ms(k->o.clock) < until)
        sleep_until(k, until);
    bool ended = k->ended;
    (void)pthread_mutex_unlock(&k->lock);
    return ended;
}

void keeper_free(struct keeper *k)
{
    if (!k)
        return;
    (void)pthread_join(k->thread, NULL);
    clear(k);
}
