/*
 * Links to a real server: opening, sending, breaking.
 */
#include "base/log.h"
#include "net/private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define FIFO_FIRST  8u
#define FIFO_MAX    16384u /* entries of a link: those of one client, alike, are one */
#define REPLIES_MAX 2048u  /* expected on a shared link: who comes last waits for all */
#define SHARE_OWN   4096u  /* replies that a client may expect on its own link … */
#define SHARE_MAX   64u    /* … on a shared one … */
#define SHARE_MANY  8u     /* … and there while many are expected */

/* ---- opening ----------------------------------------------------------------------------------
 */

static void opened(struct upstream_link *l)
{
    struct upstream *up = l->up;
    l->state = LINK_OPEN;
    if (!up->stats.up)
        log_info("upstream reached", kv_str("protocol", up->svc->name));
    up->stats.up = true;
    up->backoff_us = 0;
    ev_io_stop(up->net->loop, &l->wr);
    ev_io_start(up->net->loop, &l->rd);
    link_wake(l);
}

static void flush(struct upstream_link *l);

static void writable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    struct upstream_link *l = CONTAINER(w, struct upstream_link, wr);
    int why = 0;
    socklen_t n = sizeof why;
    if (l->state == LINK_OPEN)
        flush(l);
    else if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &why, &n) < 0 || why)
        link_fail(l, strerror(why ? why : errno));
    else
        opened(l);
    net_go_on(l->up->net);
}

static void readable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    struct upstream_link *l = CONTAINER(w, struct upstream_link, rd);
    feed(l);
    if (l->state == LINK_OPEN && link_is_calm(l))
        link_wake(l);
    net_go_on(l->up->net);
    memory_check(l->up->net);
}

/* A socket whose connection is under way, or -1. */
static int begin_connecting(struct upstream *up)
{
    int on = 1;
    int fd = socket(up->addr[up->at].ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a no-op on unix sockets */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&up->addr[up->at], up->addr_n[up->at]) == 0 ||
        errno == EINPROGRESS)
        return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

/* With its connection under way; NULL: no memory, and fd is closed. */
static struct upstream_link *link_on(struct upstream *up, struct relay *owner, unsigned lane,
                                     int fd, unsigned at)
{
    struct upstream_link *l = calloc(1, sizeof *l);
    if (!l) {
        (void)close(fd);
        return NULL;
    }
    l->up = up;
    l->owner = owner;
    l->lane = (uint8_t)lane;
    l->at = (uint8_t)at;
    l->since_us = upstream_now_us(up);
    link_init(&l->dirty);
    link_init(&l->waiters);
    link_append(&up->links, &l->all);
    up->stats.connections++;
    ev_io_init(&l->rd, readable, fd, EV_READ);
    ev_io_init(&l->wr, writable, fd, EV_WRITE);
    return l;
}

/* One of the program before. */
struct upstream_link *link_adopt(struct upstream *up, struct relay *owner, int fd, unsigned at)
{
    struct upstream_link *l = link_on(up, owner, UPSTREAM_OWN, fd, at);
    if (!l)
        return NULL;
    l->used = true;
    opened(l);
    return l;
}

struct upstream_link *link_new(struct upstream *up, struct relay *owner, unsigned lane)
{
    int fd = upstream_now_us(up) >= up->retry_us ? begin_connecting(up) : -1;
    if (fd < 0 && upstream_now_us(up) >= up->retry_us)
        upstream_failed(up, strerror(errno));
    struct upstream_link *l = fd >= 0 ? link_on(up, owner, lane, fd, up->at) : NULL;
    if (!l)
        return NULL;
    if (!owner)
        up->shared[lane] = l;
    ev_io_start(up->net->loop, &l->wr);
    upstream_tick(up);
    return l;
}

/* ---- closing ----------------------------------------------------------------------------------
 */

void link_wake(struct upstream_link *l)
{
    while (!link_empty(&l->waiters))
        relay_wake(CONTAINER(l->waiters.next, struct conn, park));
}

void link_close(struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (l->state == LINK_BROKEN)
        return;
    struct span rest = kept_span(&l->out);
    if (l->state == LINK_OPEN && l->owner && !l->owner->broken && rest.n > 0)
        (void)send(l->wr.fd, rest.p, rest.n,
                   MSG_NOSIGNAL | MSG_DONTWAIT); /* nobody waits for their replies */
    kept_free(up->net, &l->out);
    l->state = LINK_BROKEN;
    l->owner = NULL;
    l->stalled = NULL;
    ev_io_stop(up->net->loop, &l->rd);
    ev_io_stop(up->net->loop, &l->wr);
    (void)close(l->rd.fd);
    if (l->lane < UPSTREAM_SHARED && up->shared[l->lane] == l)
        up->shared[l->lane] = NULL;
    up->stats.connections--;
    link_remove(&l->dirty);
    link_remove(&l->all);
    link_append(&up->net->broken, &l->all);
}

/* Whoever waits for the link is told that it failed. */
static void refuse_waiters(struct upstream_link *l)
{
    for (struct link *i = l->waiters.next; i != &l->waiters; i = i->next) {
        struct relay *r = CONTAINER(i, struct conn, park)->relay;
        r->down = true;
        r->blocked = false;
        if (r->pending == 0)
            r->l = NULL;
    }
    link_wake(l);
}

/* The replies of x will not come. begun: one of them has come in part. */
static void lose(struct upstream *up, const struct expect *x, bool begun)
{
    struct relay *r = x->r;
    struct span lost = up->svc->lost;
    bool loud = !(x->flags & UPSTREAM_SILENT);
    if (r->c && (begun || (loud && (lost.n == 0 || x->kind >= FRAME_MC_BINARY))))
        conn_close(r->c);
    for (uint32_t i = 0; i < x->n && loud && r->c; i++)
        (void)conn_deliver(r->c, lost);
    if (r->c && r->pending == x->n)
        r->l = NULL;
    relay_answered(r, x->n);
}

void link_fail(struct upstream_link *l, const char *why)
{
    struct upstream *up = l->up;
    struct relay *owner = l->owner;
    bool connecting = l->state == LINK_CONNECTING;
    if (l->state == LINK_BROKEN)
        return;
    upstream_failed(up, why);
    if (!connecting) /* it was there a moment ago, and may be back at once */
        up->retry_us = up->backoff_us == UPSTREAM_BACKOFF_US ? 0 : up->retry_us;
    link_close(l);
    refuse_waiters(l);
    if (owner && !connecting && owner->c)
        conn_close(owner->c);
    else if (owner) {
        owner->l = NULL;
        owner->own = false;
    }
    for (uint32_t i = 0; !owner && i < l->fifo_n; i++)
        lose(up, &l->fifo[(l->fifo_at + i) % l->fifo_cap], i == 0 && l->framing && l->frame.begun);
}

void link_free(struct upstream_link *l)
{
    kept_free(l->up->net, &l->out);
    kept_free(l->up->net, &l->in);
    kept_free(l->up->net, &l->keys);
    link_remove(&l->all);
    l->up->net->bytes -= l->fifo_cap * sizeof *l->fifo;
    free(l->fifo);
    free(l);
}

/* ---- sending ----------------------------------------------------------------------------------
 */

bool link_has_room(const struct upstream_link *l)
{
    return l->out.n - l->out.at < l->up->buffer && l->fifo_n < FIFO_MAX &&
           (l->owner || l->replies < REPLIES_MAX);
}

bool link_is_calm(const struct upstream_link *l)
{
    return link_has_room(l) && (l->owner || l->replies <= REPLIES_MAX / 2);
}

uint32_t link_share(const struct upstream_link *l)
{
    if (l->owner)
        return SHARE_OWN;
    return l->replies < REPLIES_MAX / 2 ? SHARE_MAX : SHARE_MANY;
}

bool link_put(struct upstream_link *l, struct span bytes)
{
    struct net *n = l->up->net;
    l->joint.n = 0;
    if (!kept_add(n, &l->out, bytes))
        return false;
    l->used = true;
    if (l->owner) /* a request that is sent slowly is no reason to expect its reply */
        l->since_us = upstream_now_us(l->up);
    if (link_empty(&l->dirty))
        link_append(&n->dirty, &l->dirty);
    return true;
}

static bool grow_fifo(struct upstream_link *l)
{
    uint32_t cap = l->fifo_cap ? 2 * l->fifo_cap : FIFO_FIRST;
    struct expect *larger = malloc(cap * sizeof *larger);
    if (!larger)
        return false;
    for (uint32_t i = 0; i < l->fifo_n; i++)
        larger[i] = l->fifo[(l->fifo_at + i) % l->fifo_cap];
    memory_add(l->up->net, (cap - l->fifo_cap) * sizeof *larger);
    free(l->fifo);
    l->fifo = larger;
    l->fifo_cap = cap;
    l->fifo_at = 0;
    return true;
}

bool link_expect(struct upstream_link *l, const struct expect *x)
{
    struct expect *last =
        l->fifo_n > 0 ? &l->fifo[(l->fifo_at + l->fifo_n - 1) % l->fifo_cap] : NULL;
    if (!last)
        l->since_us = upstream_now_us(l->up);
    upstream_tick(l->up);
    bool same =
        last && last->r == x->r && last->kind == x->kind && last->flags == x->flags && !x->fresh;
    if (!same && l->fifo_n == l->fifo_cap && !grow_fifo(l))
        return false;
    if (same)
        last->n += x->n;
    else
        l->fifo[(l->fifo_at + l->fifo_n++) % l->fifo_cap] = *x;
    l->up->stats.requests += x->n;
    l->replies += x->n;
    if (x->flags & UPSTREAM_PATIENT)
        l->patient += x->n;
    return true;
}

static void flush(struct upstream_link *l)
{
    struct ev_loop *loop = l->up->net->loop;
    l->joint.n = 0;
    while (l->out.at < l->out.n) {
        ssize_t r =
            send(l->wr.fd, l->out.p + l->out.at, l->out.n - l->out.at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && errno == EAGAIN) {
            ev_io_start(loop, &l->wr);
            return;
        }
        if (r < 0) {
            link_fail(l, strerror(errno));
            return;
        }
        l->out.at += (uint32_t)r;
    }
    ev_io_stop(loop, &l->wr);
    kept_free(l->up->net, &l->out);
    if (link_is_calm(l))
        link_wake(l);
}

/* Before the loop sleeps: what the turns have forwarded, link by link; then what that has broken is
 * freed. */
void upstreams_flush(struct net *n)
{
    while (!link_empty(&n->dirty)) {
        struct upstream_link *l = CONTAINER(n->dirty.next, struct upstream_link, dirty);
        link_remove(&l->dirty);
        flush(l);
        net_go_on(n);
    }
    while (!link_empty(&n->broken))
        link_free(CONTAINER(n->broken.next, struct upstream_link, all));
}

void link_retire(struct upstream_link *l)
{
    if (l->up->shared[l->lane] == l)
        l->up->shared[l->lane] = NULL;
}

/* A client takes its replies again. */
void link_read_on(struct upstream_link *l)
{
    l->stalled = NULL;
    if (l->state == LINK_OPEN && !ev_is_active(&l->rd)) {
        l->since_us = upstream_now_us(l->up);
        ev_io_start(l->up->net->loop, &l->rd);
        if (l->fifo_n > 0)
            upstream_tick(l->up);
    }
}

bool link_others_wait(const struct upstream_link *l, const struct relay *stalled)
{
    for (uint32_t i = 0; i < l->fifo_n; i++) {
        const struct relay *r = l->fifo[(l->fifo_at + i) % l->fifo_cap].r;
        if (r != stalled && r->c)
            return true;
    }
    return false;
}
