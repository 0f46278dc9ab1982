/*
 * Waiting, fairly.
 *
 * The queue is for a millisecond that is used up. When the next begins, those in it are resumed in
 * turn, each with a quota; whoever wants more goes to the end of the second line. So a client that
 * asks for a single ID waits for those who came with it, and not for all who ask for thousands.
 *
 *     QUEUE_CAME:   A | B             asked, and has had nothing          resumed: A C B D E, until
 *     QUEUE_MORE:   C | D | E         has had a part, and wants more      the ms is used up again
 *
 * A turn costs more than its IDs where much of a reply is kept, so a quota is never small, and
 * after ROUND_US the sockets are looked at, where others may ask for little. And a request is read
 * again in each turn, which is most of what one for thousands of IDs costs: so it has more of them.
 */
#include "net/private.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define QUOTA_PER_ROUND 1024u /* IDs dealt out in one round of the queue */
#define QUOTA_FRESH     16u   /* of whoever comes while others are in the queue … */
#define QUOTA_LEAST     16u   /* … and of each round, however many they are */
#define PER_ID          256u  /* bytes of input that a turn may read again for one more */
#define ROUND_US        INT64_C(1000)
#define RECHECK_US      INT64_C(50000) /* a clock that is waited for may be set meanwhile */

static struct conn *conn_of(struct link *l)
{
    return CONTAINER(l, struct conn, park);
}

static bool queue_empty(const struct net *n)
{
    return link_empty(&n->queue[QUEUE_CAME]) && link_empty(&n->queue[QUEUE_MORE]);
}

uint32_t park_quota(const struct net *n)
{
    return queue_empty(n) ? UINT32_MAX : QUOTA_FRESH;
}

void park_leave(struct conn *c)
{
    link_remove(&c->park);
    c->state = CONN_READING;
}

/* ---- the timer --------------------------------------------------------------------------------
 */

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Microseconds until a wall time; never negative. */
static int64_t until_wall(const struct net *n, int64_t ms)
{
    int64_t wall = clock_wall_us(n->conf.clock);
    return ms > wall / 1000 + 1000000 ? RECHECK_US : ms * 1000 <= wall ? 0 : ms * 1000 - wall;
}

/* Of one in WAIT. Whoever has waited for long enough in the same millisecond is resumed at once:
 * each time all of them are looked at. */
static int64_t delay_of(const struct conn *c, int64_t mono)
{
    int64_t over_us = (c->waiting_us + c->net->conf.max_wait_us + 999) / 1000 * 1000;
    int64_t left = over_us > mono ? over_us - mono : 0;
    return c->until_ms == INT64_MAX ? left : earliest(left, until_wall(c->net, c->until_ms));
}

/* Of whoever is first in a line of the queue. */
static int64_t delay_of_line(const struct net *n, const struct conn *first)
{
    return earliest(until_wall(n, first->until_ms), RECHECK_US);
}

/* Switches it off, where nobody waits. Either way it has not fired yet afterwards
 * (timerfd_settime(2)), and need not be read. */
static void set_timer(struct net *n, int64_t delay, int64_t mono)
{
    struct itimerspec t = {0};
    n->fires_us = delay == INT64_MAX ? delay : mono + delay;
    if (delay != INT64_MAX) {
        delay = delay > 0 ? delay : 1;
        t.it_value.tv_sec = delay / 1000000;
        t.it_value.tv_nsec = delay % 1000000 * 1000;
    }
    (void)timerfd_settime(n->timer_fd, 0, &t, NULL);
}

/* For one more who waits: those who do already are not looked at, who may be thousands. */
static void arm_for(struct net *n, int64_t delay, int64_t mono)
{
    if (!n->resuming && mono + delay < n->fires_us)
        set_timer(n, delay, mono);
}

/* Sets the timer for whoever waits. */
static void arm(struct net *n)
{
    int64_t delay = INT64_MAX, mono = clock_mono_us(n->conf.clock);
    for (int i = 0; i < WAITING_LINES; i++)
        for (const struct link *l = n->waiting[i].next; l != &n->waiting[i]; l = l->next)
            delay = earliest(delay, delay_of(CONTAINER(l, struct conn, park), mono));
    for (int i = 0; i < QUEUE_LINES; i++)
        if (!link_empty(&n->queue[i]))
            delay = earliest(delay, delay_of_line(n, conn_of(n->queue[i].next)));
    set_timer(n, delay, mono);
}

void park_queue(struct conn *c, enum queue_line line)
{
    struct net *n = c->net;
    bool first = link_empty(&n->queue[line]);
    c->state = CONN_QUEUED;
    sweep_watch(c);
    link_append(&n->queue[line], &c->park);
    if (first) /* it knows the time; whoever joins behind it waits for the same one */
        arm_for(n, delay_of_line(n, c), clock_mono_us(n->conf.clock));
}

void park_wait(struct conn *c)
{
    struct net *n = c->net;
    int64_t mono = clock_mono_us(n->conf.clock);
    enum waiting_line line = c->waiting_us ? WAITING_AGAIN : WAITING_CAME;
    c->state = CONN_WAITING;
    sweep_watch(c);
    if (c->waiting_us == 0)
        c->waiting_us = mono;
    link_append(&n->waiting[line], &c->park);
    arm_for(n, delay_of(c, mono), mono);
}

/* Until net_wake_one. */
void park_hold(struct conn *c)
{
    c->state = CONN_WAITING;
    sweep_watch(c);
}

/* ---- resuming ---------------------------------------------------------------------------------
 */

/* What each may have, that all of them get something out of one millisecond. */
static uint32_t quota_of_round(const struct net *n)
{
    uint32_t sharers = 1;
    for (int i = 0; i < QUEUE_LINES; i++)
        for (const struct link *l = n->queue[i].next;
             l != &n->queue[i] && sharers < QUOTA_PER_ROUND / QUOTA_LEAST; l = l->next)
            sharers++;
    return QUOTA_PER_ROUND / sharers;
}

/* A turn reads no more than NET_IN_MAX again, however much was heard (conn_hear). */
static uint32_t quota_of(const struct conn *c, uint32_t quota)
{
    size_t again = kept_span(&c->in).n;
    return quota + (uint32_t)((again < NET_IN_MAX ? again : NET_IN_MAX) / PER_ID);
}

/* Who was told to wait for a time keeps his place, and it holds for the other line, too. */
static void keep_place(struct conn *c, enum queue_line line)
{
    struct net *n = c->net;
    link_remove(&c->park);
    link_prepend(&n->queue[line], &c->park);
    n->line = line;
    if (!link_empty(&n->queue[!line]))
        conn_of(n->queue[!line].next)->until_ms = c->until_ms;
}

/* The lines in turn, until the millisecond is used up, or the sockets should be looked at. */
static void run_queue(struct net *n)
{
    int64_t over_us = clock_mono_us(n->conf.clock) + ROUND_US;
    uint32_t quota = quota_of_round(n);
    while (!queue_empty(n) && clock_mono_us(n->conf.clock) < over_us) {
        enum queue_line line = n->line;
        if (link_empty(&n->queue[line]))
            line = !line;
        struct conn *c = conn_of(n->queue[line].next);
        n->line = !line;
        park_leave(c);
        conn_resume(c, quota_of(c, quota));
        if (c->state == CONN_QUEUED && c->until_ms > 0) {
            keep_place(c, line);
            return;
        }
    }
}

/* Those in WAIT who may go on: a change came, their time has come, or max_wait has passed. They may
 * be thousands, and each request is read again: so they are resumed in rounds, between which others
 * are served. */
static void end_line(struct net *n, struct link *line, bool changed)
{
    struct link *next;
    int64_t mono = clock_mono_us(n->conf.clock);
    for (struct link *l = line->next; l != line; l = next) {
        struct conn *c = conn_of(l);
        next = l->next;
        bool due = mono >= c->waiting_us + n->conf.max_wait_us ||
                   (c->until_ms != INT64_MAX && until_wall(n, c->until_ms) == 0);
        if (!changed && !due)
            continue;
        link_remove(l);
        link_append(changed ? &n->woken : &n->due, l);
    }
}

/* Who was resumed in vain comes first: or whoever was served, and comes again, had the next one,
 * too. Nobody is late for what has come while we stood still. */
static void end_waiting(struct net *n, bool changed)
{
    int64_t mono = clock_mono_us(n->conf.clock), still_us = net_stood_still(n->fires_us, mono);
    for (int i = 0; still_us > 0 && i < WAITING_LINES; i++)
        for (struct link *l = n->waiting[i].next; l != &n->waiting[i]; l = l->next)
            net_excuse(&conn_of(l)->waiting_us, still_us, mono);
    end_line(n, &n->waiting[WAITING_AGAIN], changed);
    end_line(n, &n->waiting[WAITING_CAME], changed);
}

/* false: there is none. */
static bool resume_first(struct link *list)
{
    if (link_empty(list))
        return false;
    struct conn *c = conn_of(list->next);
    park_leave(c);
    conn_resume(c, UINT32_MAX);
    return true;
}

void park_run_woken(struct net *n)
{
    int64_t over_us = clock_mono_us(n->conf.clock) + ROUND_US;
    bool more = true;
    while (more && clock_mono_us(n->conf.clock) < over_us) {
        more = resume_first(&n->woken);
        more |= resume_first(&n->due);
    }
    if (n->wakes_again && link_empty(&n->woken))
        park_wake(n);
}

/* The queue is run whatever made the timer fire: a clock that was set meanwhile changes everything,
 * and if nothing changed its head goes back to its place. */
void park_fired(struct net *n)
{
    end_waiting(n, false);
    n->resuming = true;
    run_queue(n);
    n->resuming = false;
    arm(n);
}

/* Changes may come more often than all who wait have had their turn: then the next is for all who
 * wait by the end of that. They would have stood behind the others anyhow. */
void park_wake(struct net *n)
{
    n->wakes_again = !link_empty(&n->woken);
    if (n->wakes_again)
        return;
    end_waiting(n, true);
    arm(n);
}

void net_wake_one(struct conn *c)
{
    if (c->state != CONN_WAITING)
        return;
    park_leave(c);
    conn_resume(c, UINT32_MAX);
}
