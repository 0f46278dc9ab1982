/*
 * What no event tells: that a client went while nothing is read from it.
 *
 * libev says when a connection can be read or written. One that is not read from, because its
 * request waits or its replies are not taken, is not asked, and the end of what it sent stands in
 * the kernel behind what has not been read. So those are listed, and while there are any, poll(2)
 * is asked once a second who has hung up, which it sees behind unread input, too:
 *
 *     net.watched:   A waits | B does not take | C reads again | ...      once a second, in pieces
 *                       |            |              '-- goes from the list
 *                       '------------'-- polled: closed if its client is gone
 *
 * A client that has shut its own side alone still gets its replies. But a command that may wait
 * for ever on a link of the client's own ends with that, as a real server ends it.
 */
#include "net/private.h"

#include <poll.h>

#define SWEEP_US INT64_C(1000000)
#define PIECE    256u /* connections looked at in one go … */
#define PAUSE    5e-3 /* s, … and then others are served */

struct piece {
    struct pollfd fd[PIECE];
    struct conn *conn[PIECE];
    nfds_t n;
};

/* Whether there is something about it that no event will tell. */
static bool is_pending(const struct conn *c)
{
    return c->state != CONN_READING;
}

/* Looks at the first in the list: it goes to the end, or off it. */
static void look(struct conn *c, int64_t now_us, struct piece *p)
{
    struct net *n = c->net;
    sweep_forget(c);
    if (!is_pending(c))
        return;
    link_append(&n->watched, &c->watch);
    n->nwatched++;
    if (c->state == CONN_READING || now_us - c->active_us < SWEEP_US)
        return;
    p->fd[p->n] = (struct pollfd){.fd = c->rd.fd, .events = POLLRDHUP};
    p->conn[p->n++] = c;
}

/* It waits for its own link, for something that may never come. */
static bool is_blocked_there(const struct conn *c)
{
    return c->state == CONN_BEHIND && c->relay->own && c->relay->l && c->relay->l->patient > 0;
}

static void close_gone(struct piece *p)
{
    if (p->n == 0 || poll(p->fd, p->n, 0) <= 0)
        return;
    for (nfds_t i = 0; i < p->n; i++) {
        struct conn *c = p->conn[i]; /* may have been closed meanwhile; freed it is not */
        bool gone = p->fd[i].revents & (POLLERR | POLLHUP | POLLNVAL);
        bool shut = p->fd[i].revents & POLLRDHUP;
        if (c->state != CONN_DEAD && (gone || (shut && is_blocked_there(c))))
            conn_close(c);
    }
}

static void set_timer(struct net *n, double after)
{
    ev_timer_stop(n->loop, &n->sweep);
    ev_timer_set(&n->sweep, after, 0.);
    ev_timer_start(n->loop, &n->sweep);
}

static void swept(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, sweep);
    struct piece p = {.n = 0};
    int64_t now_us = clock_mono_us(n->conf.clock);
    if (n->unswept == 0)
        n->unswept = n->nwatched;
    for (unsigned i = 0; i < PIECE && n->unswept > 0; i++) {
        n->unswept--;
        look(CONTAINER(n->watched.next, struct conn, watch), now_us, &p);
    }
    close_gone(&p);
    if (n->nwatched > 0)
        set_timer(n, n->unswept > 0 ? PAUSE : (double)SWEEP_US / 1e6);
}

void sweep_init(struct net *n)
{
    link_init(&n->watched);
    ev_init(&n->sweep, swept);
}

void sweep_watch(struct conn *c)
{
    struct net *n = c->net;
    if (!link_empty(&c->watch))
        return;
    link_append(&n->watched, &c->watch);
    n->nwatched++;
    if (!ev_is_active(&n->sweep))
        set_timer(n, (double)SWEEP_US / 1e6);
}

void sweep_forget(struct conn *c)
{
    struct net *n = c->net;
    if (link_empty(&c->watch))
        return;
    link_remove(&c->watch);
    n->nwatched--;
    if (n->unswept > n->nwatched)
        n->unswept = n->nwatched;
}
