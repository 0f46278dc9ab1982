/*
 * A client's own link whose client has gone, with requests that are not sent yet, or not known to
 * be read. Whoever wants no replies (noreply, CLIENT REPLY OFF) goes as soon as he has said all,
 * and a server that he had said it to would carry it out. So the link stays until the last byte is
 * sent, for as long as the server takes some; what it says meanwhile is for nobody.
 *
 *     LEAVING, with bytes --all sent--> in order:   closed
 *                                   --> by a reset: LEAVING for READ_US more --> closed
 *
 * It is the first that makes room.
 */
#include "net/upstream/links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

/* All ports are 28,232, and whoever uses them up has nobody else get a link. So many within a
 * minute are about half of them; who goes beyond that, with requests of which nothing tells that
 * they were carried out, says good-bye without a word, once the server has had time to read. */
#define ORDERLY   8000u
#define ORDERLY_S 100 /* and more, each second */
#define READ_US   INT64_C(1000000)

bool leave_orderly(struct farewells *f, int64_t now_us)
{
    int64_t over = (now_us - f->at_us) / (1000000 / ORDERLY_S);
    f->n -= over < f->n ? (uint32_t)over : f->n;
    f->at_us = f->n > 0 ? f->at_us + over * (1000000 / ORDERLY_S) : now_us;
    if (f->n >= ORDERLY)
        return false;
    f->n++;
    return true;
}

/* For a minute. On its way to itself a host takes one again after a second (tcp_tw_reuse). */
static bool keeps_port(const struct upstream_link *l)
{
    union {
        struct sockaddr_storage any;
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } to;
    socklen_t n = sizeof to;
    if (getpeername(l->rd.fd, &to.sa, &n) < 0)
        return false;
    if (to.sa.sa_family == AF_INET)
        return ntohl(to.in.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
    return to.sa.sa_family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(&to.in6.sin6_addr);
}

/* All requests have their replies, so that the link may be closed by a reset. An orderly close
 * would keep its port for a minute (TIME_WAIT), and many short connections would use up all. */
static bool is_settled(const struct upstream_link *l)
{
    return l->state == LINK_OPEN && l->fifo_n == 0 && !l->mute && kept_span(&l->out).n == 0;
}

static bool uses_up_ports(struct upstream_link *l)
{
    return keeps_port(l) && !leave_orderly(&l->up->farewells, upstream_now_us(l->up));
}

bool leave_by_reset(struct upstream_link *l)
{
    if (l->end == LINK_END_OPEN)
        l->end = is_settled(l) || uses_up_ports(l) ? LINK_END_RESET : LINK_END_ORDERLY;
    return l->end == LINK_END_RESET;
}

/* All is sent: how it ends is known by now. */
static void sent(struct upstream_link *l)
{
    if (!leave_by_reset(l)) {
        link_close(l);
        return;
    }
    ev_io_stop(l->up->net->loop, &l->wr);
    l->since_us = upstream_now_us(l->up);
}

static void push(struct upstream_link *l)
{
    int why = link_write(l);
    if (why == 0)
        sent(l);
    else if (why != EAGAIN)
        link_close(l);
}

bool leave_waits(struct upstream_link *l, int64_t now)
{
    if (l->state != LINK_LEAVING || ev_is_active(&l->wr))
        return false;
    if (now - l->since_us > READ_US)
        link_close(l);
    return true;
}

static void writable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    push(CONTAINER(w, struct upstream_link, wr));
}

/* Or a server that waits until it is read would take no more. */
static void readable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    char nobody[4096];
    (void)loop;
    (void)revents;
    ssize_t r = recv(w->fd, nobody, sizeof nobody, MSG_DONTWAIT);
    if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR))
        link_close(CONTAINER(w, struct upstream_link, rd));
}

void link_leave(struct upstream_link *l)
{
    struct net *n = l->up->net;
    bool all = kept_span(&l->out).n == 0;
    if (l->state != LINK_OPEN || l->owner->broken ||
        (all && (is_settled(l) || !leave_by_reset(l)))) {
        link_close(l);
        return;
    }
    link_remove(&l->dirty);
    kept_free(n, &l->in);
    l->state = LINK_LEAVING;
    l->owner = NULL;
    l->stalled = NULL;
    l->fifo_n = l->replies = l->patient = 0;
    l->since_us = upstream_now_us(l->up);
    n->leaving++;
    ev_set_cb(&l->rd, readable);
    ev_set_cb(&l->wr, writable);
    ev_io_start(n->loop, &l->rd);
    ev_io_start(n->loop, &l->wr);
    upstream_tick(l->up);
    push(l);
}

uint64_t leave_unsent(const struct net *n)
{
    uint64_t unsent = 0;
    for (const struct link *u = n->upstreams.next; n->leaving > 0 && u != &n->upstreams;
         u = u->next) {
        const struct upstream *up = CONTAINER(u, struct upstream, all);
        for (const struct link *i = up->links.next; i != &up->links; i = i->next) {
            const struct upstream_link *l = CONTAINER(i, struct upstream_link, all);
            unsent += l->state == LINK_LEAVING && ev_is_active(&l->wr);
        }
    }
    return unsent;
}

void leave_ended(struct upstream_link *l)
{
    l->up->net->leaving--;
    if (kept_span(&l->out).n > 0)
        upstream_unsent(l->up, kept_span(&l->out).n);
}

/* Of which all is sent, the first, or else the first. */
bool leave_makes_room(struct upstream *up)
{
    struct upstream_link *first = NULL;
    for (struct link *i = up->links.next; i != &up->links; i = i->next) {
        struct upstream_link *l = CONTAINER(i, struct upstream_link, all);
        if (l->state != LINK_LEAVING || (first && ev_is_active(&l->wr)))
            continue;
        first = l;
        if (!ev_is_active(&l->wr))
            break;
    }
    if (first)
        link_close(first);
    return first;
}

static bool one_less(struct net *n)
{
    struct link *u = n->upstreams.next;
    while (u != &n->upstreams && !leave_makes_room(CONTAINER(u, struct upstream, all)))
        u = u->next;
    return u != &n->upstreams;
}

/* There are descriptors for as many clients and a link for each. Who goes leaves one of two. */
void leave_places(struct net *n)
{
    while (n->shared + n->leaving > n->conf.connections && one_less(n))
        ;
}

void leave_at_once(struct net *n)
{
    while (one_less(n))
        ;
}
