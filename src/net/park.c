/*
 * Waiting, fairly.
 *
 * The queue is for a millisecond that is used up. When the next begins, those in it are resumed in
 * order, each with a quota; whoever wants more goes to its end. So a client that asks for thousands
 * delays one that asks for a single ID by no more than the queue's length.
 *
 *     next ms:   A(quota) B(quota) C(quota) | A(quota) B(quota) ...   until the ms is used up again
 */
#include "net/private.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define QUOTA_PER_ROUND 1024u          /* IDs dealt out in one round of the queue */
#define QUOTA_FRESH     16u            /* of whoever comes while others are in the queue */
#define RECHECK_US      INT64_C(50000) /* a clock that is waited for may be set meanwhile */

static struct conn *conn_of(struct link *l)
{
    return CONTAINER(l, struct conn, park);
}

/* first: it did not get its turn, and keeps its place. */
void park_queue(struct conn *c, bool first)
{
    c->state = CONN_QUEUED;
    sweep_watch(c);
    if (first)
        link_prepend(&c->net->queue, &c->park);
    else
        link_append(&c->net->queue, &c->park);
}

void park_wait(struct conn *c)
{
    c->state = CONN_WAITING;
    sweep_watch(c);
    if (c->waiting_us == 0)
        c->waiting_us = clock_mono_us(c->net->conf.clock);
    link_append(&c->net->waiting, &c->park);
}

/* Until net_wake_one. */
void park_hold(struct conn *c)
{
    c->state = CONN_WAITING;
    sweep_watch(c);
}

uint32_t park_quota(const struct net *n)
{
    return link_empty(&n->queue) ? UINT32_MAX : QUOTA_FRESH;
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

static int64_t delay_of_waiting(const struct net *n)
{
    int64_t delay = INT64_MAX;
    int64_t mono = clock_mono_us(n->conf.clock);
    for (struct link *l = n->waiting.next; l != &n->waiting; l = l->next) {
        const struct conn *c = conn_of(l);
        int64_t left = c->waiting_us + n->conf.max_wait_us - mono;
        delay = earliest(delay, left > 0 ? left : 0);
        delay = earliest(delay, c->until_ms == INT64_MAX ? delay : until_wall(n, c->until_ms));
    }
    return delay;
}

/* Sets the timer for whoever waits; switches it off where nobody does. Either way it has not fired
 * yet afterwards (timerfd_settime(2)), and need not be read. */
void park_arm(struct net *n)
{
    if (n->resuming)
        return;
    int64_t delay = delay_of_waiting(n);
    if (!link_empty(&n->queue)) {
        int64_t wait = until_wall(n, conn_of(n->queue.next)->until_ms);
        delay = earliest(delay, earliest(wait, RECHECK_US));
    }
    struct itimerspec t = {0};
    if (delay != INT64_MAX) {
        delay = delay > 0 ? delay : 1;
        t.it_value.tv_sec = delay / 1000000;
        t.it_value.tv_nsec = delay % 1000000 * 1000;
    }
    (void)timerfd_settime(n->timer_fd, 0, &t, NULL);
}

/* ---- resuming ---------------------------------------------------------------------------------
 */

static size_t length(const struct link *head)
{
    size_t n = 0;
    for (const struct link *l = head->next; l != head; l = l->next)
        n++;
    return n;
}

/* Rounds over the queue, until somebody has to wait for a time again. Each call of conn_resume
 * either issues or waits, so this ends with the millisecond at the latest. */
static void run_queue(struct net *n)
{
    size_t waiting = length(&n->queue);
    uint32_t quota = waiting < QUOTA_PER_ROUND ? QUOTA_PER_ROUND / (uint32_t)(waiting + 1) : 1;
    for (size_t left = 4 * waiting + 4; left > 0 && !link_empty(&n->queue); left--) {
        struct conn *c = conn_of(n->queue.next);
        park_leave(c);
        conn_resume(c, quota > 0 ? quota : 1);
        bool full = c->state == CONN_QUEUED && c->until_ms > 0;
        if (full) {
            link_remove(&c->park);
            park_queue(c, true);
            return;
        }
    }
}

/* Resumes those in WAIT who may go on: a change came, their time has come, or max_wait has passed.
 */
static void run_waiting(struct net *n, bool changed)
{
    struct link due, *next;
    int64_t mono = clock_mono_us(n->conf.clock);
    link_init(&due);
    for (struct link *l = n->waiting.next; l != &n->waiting; l = next) {
        struct conn *c = conn_of(l);
        next = l->next;
        if (changed || mono >= c->waiting_us + n->conf.max_wait_us ||
            (c->until_ms != INT64_MAX && until_wall(n, c->until_ms) == 0)) {
            link_remove(l);
            link_append(&due, l);
        }
    }
    while (!link_empty(&due)) {
        struct conn *c = conn_of(due.next);
        park_leave(c);
        conn_resume(c, UINT32_MAX);
    }
}

/* The queue is run whatever made the timer fire: a clock that was set meanwhile changes everything,
 * and if nothing changed its head goes back to its place. */
void park_fired(struct net *n)
{
    n->resuming = true;
    run_waiting(n, false);
    if (!link_empty(&n->queue))
        run_queue(n);
    n->resuming = false;
    park_arm(n);
}

void park_wake(struct net *n)
{
    n->resuming = true;
    run_waiting(n, true);
    n->resuming = false;
    park_arm(n);
}

void net_wake_one(struct conn *c)
{
    if (c->state != CONN_WAITING)
        return;
    park_leave(c);
    conn_resume(c, UINT32_MAX);
}
