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
 * Those are listed, too, that have begun a request or have yet to log in: each has a time for it.
 *
 * A client that has shut its own side alone still gets its replies. But a command that may wait
 * for ever on a link of the client's own ends with that, as a real server ends it. Where a socket
 * holds no more, that stands at the client's behind what it could not send; so what comes behind
 * such a command is read, up to a bound.
 *
 * So is what a client sends that takes no replies: many send a whole pipeline before they take the
 * first, and would wait for us as we for them. A unix socket holds little of it.
 */
#include "net/private.h"
#include "net/upstream/links.h"

#include <poll.h>

#define SWEEP_US     INT64_C(1000000)
#define PIECE        256u       /* connections looked at in one go … */
#define HEARD        NET_IN_MAX /* bytes heard in one go, and the rest of that client's … */
#define PAUSE        5e-3       /* s, … and then others are served: for whom others wait, too */
#define SOON         5e-2       /* s, where there was something to hear, there may be more */
#define SAY_MS       10000
#define FAVOUR_US    INT64_C(5000000) /* in which who is favoured (memory.c) says … */
#define FAVOUR_BYTES NET_IN_MAX       /* … so much, or another is */

struct piece {
    struct pollfd fd[PIECE];
    struct conn *conn[PIECE];
    nfds_t n;
    size_t heard; /* bytes */
};

static bool is_overdue(int64_t since_us, int64_t now_us, int64_t limit_us)
{
    return limit_us > 0 && now_us - since_us > limit_us;
}

/* A stranger's time is that since it came, whatever it does: who does not take its replies, or has
 * us look at one password after the other, is not read from, and would stay for as long as it
 * likes. The one wait that is ours is that for the first password to be looked at. */
static bool is_late(const struct conn *c, int64_t now_us)
{
    return is_overdue(c->since_us, now_us, c->net->conf.login_timeout_us) && !conn_is_checked(c);
}

static void end_request(struct conn *c, int64_t now_us)
{
    struct net_peer peer;
    uint64_t more = 0;
    if (log_limit_pass(&c->net->tardy, now_us / 1000, SAY_MS, &more)) {
        net_peer(&(struct net_turn){.conn = c}, &peer);
        log_info("closed a client that did not end its request in time",
                 kv_str("protocol", c->svc->name), kv_str("peer", peer.text), kv_u64("more", more));
    }
    conn_end(c, NET_END_REQUEST);
}

/* Whether there is something about it that no event will tell; or it was its end. Whose request is
 * not whole and who is not read from is not the one who tarries, unless it is his turn soon. */
static bool is_pending(struct conn *c, int64_t now_us)
{
    const struct net_config *conf = &c->net->conf;
    bool unheard = c->state != CONN_READING;
    if (unheard && !c->unread && c->begun_us > 0)
        c->begun_us = now_us;
    bool stranger = conn_is_stranger(c);
    if (stranger && is_late(c, now_us)) {
        conn_end(c, NET_END_LOGIN);
        return false;
    }
    if (c->begun_us > 0 && is_overdue(c->begun_us, now_us, conf->request_timeout_us)) {
        end_request(c, now_us);
        return false;
    }
    return unheard || (stranger && conf->login_timeout_us > 0) ||
           (c->begun_us > 0 && conf->request_timeout_us > 0);
}

/* As often as what is waited for wants it. */
static int64_t period_us(const struct net *n)
{
    int64_t us = SWEEP_US;
    const int64_t limits[] = {n->conf.login_timeout_us, n->conf.request_timeout_us,
                              n->conf.idle_timeout_us};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i] > 0 && limits[i] / 2 < us)
            us = limits[i] / 2;
    return us > 10000 ? us : 10000;
}

/* It waits for its own link, for something that may never come. */
static bool is_blocked_there(const struct conn *c)
{
    return c->state == CONN_BEHIND && c->relay->own && c->relay->l && c->relay->l->patient > 0;
}

/* Who has yet to log in has no room for more, and who is closed after its replies is not asked. */
static bool is_to_be_heard(const struct conn *c)
{
    return is_blocked_there(c) ||
           (c->state == CONN_FLUSHING && !c->closing && !conn_is_stranger(c));
}

/* Another is favoured as soon as this one has what it wants, or does not go on: who says a byte a
 * second would keep the others waiting. */
static bool keeps_favour(struct conn *c, int64_t now_us)
{
    struct favour *f = &room_kept(c->lot)->favour;
    size_t heard = kept_span(&c->in).n;
    if (heard >= f->heard + FAVOUR_BYTES) {
        f->heard = heard;
        f->since_us = now_us;
    }
    return now_us - f->since_us < FAVOUR_US;
}

/* Looks at the first in the list: it goes to the end, or off it. */
static void look(struct conn *c, int64_t now_us, struct piece *p)
{
    struct net *n = c->net;
    bool favoured = memory_favours(c);
    sweep_forget(c);
    bool pending = is_pending(c, now_us);
    bool waits = pending && c->state != CONN_READING; /* else it has all its replies */
    bool keeps = favoured && waits && keeps_favour(c, now_us);
    memory_favour(c, keeps);
    n->heard |= favoured && !keeps;
    if (!pending)
        return;
    link_append(&n->watched, &c->watch);
    n->nwatched++;
    if (c->state == CONN_READING || c->unread)
        return;
    if (is_to_be_heard(c) && keeps == favoured) /* else it is another's turn */
        p->heard += conn_hear(c);
    if (c->state == CONN_DEAD || now_us - c->active_us < SWEEP_US)
        return; /* the last may have sent something and hung up */
    p->fd[p->n] = (struct pollfd){.fd = c->rd.fd, .events = POLLRDHUP};
    p->conn[p->n++] = c;
}

static void close_gone(struct piece *p)
{
    if (p->n == 0 || poll(p->fd, p->n, 0) <= 0)
        return;
    for (nfds_t i = 0; i < p->n; i++) {
        struct conn *c = p->conn[i]; /* may have been closed meanwhile; freed it is not */
        bool left = p->fd[i].revents & POLLHUP; /* what it said may be there still */
        bool gone = p->fd[i].revents & (POLLERR | POLLNVAL) || (left && !relay_says(c));
        bool shut = p->fd[i].revents & POLLRDHUP;
        if (c->state != CONN_DEAD && (gone || (shut && is_blocked_there(c))))
            conn_end(c, NET_END_GONE);
    }
}

static void set_timer(struct net *n, double after)
{
    ev_timer_stop(n->loop, &n->sweep);
    ev_timer_set(&n->sweep, after, 0.);
    n->sweep_due_us = clock_mono_us(n->conf.clock) + (int64_t)(after * 1e6);
    ev_timer_start(n->loop, &n->sweep);
}

static void excuse_all(struct net *n, int64_t still_us, int64_t now_us)
{
    for (struct link *l = n->watched.next; still_us > 0 && l != &n->watched; l = l->next) {
        struct conn *c = CONTAINER(l, struct conn, watch);
        net_excuse(&c->since_us, still_us, now_us);
        if (c->begun_us > 0)
            net_excuse(&c->begun_us, still_us, now_us);
    }
}

/* Until some are looked at again. */
static double pause_s(const struct net *n)
{
    if (n->unswept > 0)
        return PAUSE;
    if (n->heard)
        return n->nfavoured > 0 ? PAUSE : SOON;
    return (double)period_us(n) / 1e6;
}

static void swept(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, sweep);
    struct piece p = {.n = 0};
    int64_t now_us = clock_mono_us(n->conf.clock);
    excuse_all(n, net_stood_still(n->sweep_due_us, now_us), now_us);
    if (n->unswept == 0) {
        n->unswept = n->nwatched;
        n->weighed = false;
    }
    for (unsigned i = 0; i < PIECE && p.heard < HEARD && n->unswept > 0; i++) {
        n->unswept--;
        look(CONTAINER(n->watched.next, struct conn, watch), now_us, &p);
    }
    close_gone(&p);
    n->heard |= p.heard > 0;
    bool slack = memory_is_slack(n);
    if (slack && n->unswept == 0)
        memory_trim(n);
    if (n->nwatched > 0)
        set_timer(n, pause_s(n));
    if (n->unswept == 0)
        n->heard = false;
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
        set_timer(n, (double)period_us(n) / 1e6);
}

void sweep_slack(struct net *n)
{
    if (memory_is_slack(n) && !ev_is_active(&n->sweep))
        set_timer(n, (double)period_us(n) / 1e6);
}

void sweep_forget(struct conn *c)
{
    struct net *n = c->net;
    if (link_empty(&c->watch))
        return;
    link_remove(&c->watch);
    n->nwatched--;
    memory_favour(c, false);
    if (n->unswept > n->nwatched)
        n->unswept = n->nwatched;
}
