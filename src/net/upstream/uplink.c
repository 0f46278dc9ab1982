/*
 * Links to a real server: opening, sending, breaking.
 */
#include "net/upstream/links.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define FIFO_FIRST  8u
#define FIFO_MAX    16384u /* entries of a link: those of one client, alike, are one */
#define REPLIES_MAX 2048u  /* expected on a shared link: who comes last waits for all */
#define SHARE_MAX   64u    /* there by one client … */
#define MANY        8u     /* … and so much less of all while a quarter of that, or so many … */
#define LINE_LONG   ((size_t)512 << 10) /* … bytes, about, are expected */
#define RESERVE     (REPLIES_MAX / 2)   /* of all, for those of whom nothing is under way */
#define ORPHANS_MAX 64u                 /* replies for nobody that stand in others' way */

/* ---- opening ----------------------------------------------------------------------------------
 */

static bool is_next(const struct upstream_link *l)
{
    return l->lane < UPSTREAM_SHARED && l->up->next[l->lane] == l;
}

/* The link before stays for the replies that are still to come on it. New requests go here. */
static void take_over(struct upstream_link *l)
{
    struct upstream *up = l->up;
    struct upstream_link *before = up->shared[l->lane];
    up->next[l->lane] = NULL;
    up->unready[l->lane] = up->unspared[l->lane] = (struct backoff){0, 0};
    link_retire(before);
    up->shared[l->lane] = l;
}

void link_opened(struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (l->state == LINK_PROBING)
        upstream_serves(up);
    l->state = LINK_OPEN;
    l->optional = false;
    up->refused[l->speaks] = (struct backoff){0, 0};
    ev_io_stop(up->net->loop, &l->wr);
    ev_io_start(up->net->loop, &l->rd);
    if (l->lane < UPSTREAM_SHARED)
        up->stats.unshared_us = 0;
    if (l->lane < UPSTREAM_SHARED && l->refusals == up->refusals) /* else it is no newer one */
        up->stats.unowned_us = 0;
    if (is_next(l))
        take_over(l);
    else if (l->outdated) /* since it was asked whether it still serves: it does */
        link_replace(l);
    link_wake(l);
}

static void connected(struct upstream_link *l)
{
    upstream_connected(l->up);
    if (!greet(l))
        link_opened(l);
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
        connected(l);
    net_go_on(l->up->net);
}

static void readable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    struct upstream_link *l = CONTAINER(w, struct upstream_link, rd);
    struct net *n = l->up->net;
    turns_came(n);
    if (l->state < LINK_OPEN)
        greet_hear(l);
    else
        feed(l);
    turns_tick(n); /* those who go on have not taken that */
    link_wake(l);
    net_go_on(n);
    memory_check(n);
}

static unsigned speaks(const struct upstream *up, const struct relay *owner, unsigned lane)
{
    if (lane < UPSTREAM_SHARED)
        return lane;
    return owner && up->svc->speaks ? up->svc->speaks(owner->c->session) : UPSTREAM_TEXT;
}

/* Without a connection yet; NULL: no memory. */
static struct upstream_link *link_make(struct upstream *up, struct relay *owner, unsigned lane,
                                       int fd)
{
    struct upstream_link *l = calloc(1, sizeof *l);
    if (!l) {
        upstream_short(up, "no memory");
        return NULL;
    }
    l->up = up;
    l->owner = owner;
    l->lane = (uint8_t)lane;
    l->speaks = (uint8_t)(up->spoken = speaks(up, owner, lane));
    l->since_us = upstream_now_us(up);
    l->refusals = up->refusals;
    link_init(&l->dirty);
    link_init(&l->roomy);
    link_init(&l->waiters);
    link_append(&up->links, &l->all);
    up->stats.connections++;
    ev_io_init(&l->rd, readable, fd, EV_READ);
    ev_io_init(&l->wr, writable, fd, EV_WRITE);
    return l;
}

/* For one more link of c's own. */
static bool has_room_for(struct upstream *up, const struct conn *c)
{
    if (upstream_may_own(up) || leave_makes_room(up))
        return true;
    return room_for_link(up, c) && (upstream_may_own(up) || leave_makes_room(up));
}

/* One of the program before, whose limit may have been another. */
struct upstream_link *link_adopt(struct upstream *up, struct relay *owner, int fd)
{
    struct upstream_link *l =
        has_room_for(up, owner->c) ? link_make(up, owner, UPSTREAM_OWN, fd) : NULL;
    if (!l) {
        (void)close(fd);
        return NULL;
    }
    l->used = true;
    upstream_connected(up);
    link_opened(l);
    return l;
}

struct upstream_link *link_new(struct upstream *up, struct relay *owner, unsigned lane)
{
    if (upstream_waits(up, lane, speaks(up, owner, lane)))
        return NULL;
    if (owner && !has_room_for(up, owner->c)) {
        up->stats.full_us = upstream_now_us(up);
        upstream_short(up, "upstream.connections is reached");
        return NULL;
    }
    struct upstream_link *l = link_make(up, owner, lane, -1);
    if (!l)
        return NULL;
    l->optional = owner && !owner->own;
    if (!find_must_ask(up) && !link_dial(l)) {
        link_close(l);
        return NULL;
    }
    if (!owner)
        *(up->shared[lane] ? &up->next[lane] : &up->shared[lane]) = l;
    upstream_tick(up);
    return l;
}

void link_found(struct upstream_link *l)
{
    if (l->state != LINK_LOOKING || (find_has(l->up) && link_dial(l)))
        return;
    if (is_next(l)) /* else it would be tried again as soon as it is gone */
        upstream_unready(l->up, &l->up->unready[l->lane], "");
    link_drop(l);
}

/* It is looked at before the loop sleeps, if not before. */
static void make_dirty(struct upstream_link *l)
{
    if (link_empty(&l->dirty))
        link_append(&l->up->net->dirty, &l->dirty);
}

/* ---- closing ----------------------------------------------------------------------------------
 */

void link_wake(struct upstream_link *l)
{
    bool wakes = l->state == LINK_OPEN && link_has_room(l) && !link_empty(&l->waiters);
    if (wakes && link_empty(&l->roomy))
        link_append(&l->up->net->roomy, &l->roomy);
}

/* What a closed link keeps does not count any more, so that closing one makes room at once. Its
 * queue is freed only before the loop sleeps, as a caller may be walking it. */
static void forget_kept(struct upstream_link *l)
{
    struct net *n = l->up->net;
    kept_free(n, &l->out);
    kept_free(n, &l->in);
    n->bytes -= l->fifo_cap * sizeof *l->fifo;
}

/* The successor of a shared link takes its place, even one that is still opening: another would be
 * no faster. */
static void unlist(struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (is_next(l))
        up->next[l->lane] = NULL;
    if (l->lane >= UPSTREAM_SHARED || up->shared[l->lane] != l)
        return;
    up->shared[l->lane] = up->next[l->lane];
    up->next[l->lane] = NULL;
}

void link_close(struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (l->state == LINK_BROKEN)
        return;
    const struct linger none = {.l_onoff = 1};
    if (l->rd.fd >= 0 && leave_by_reset(l))
        (void)setsockopt(l->rd.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    if (l->state == LINK_LEAVING)
        leave_ended(l);
    forget_kept(l);
    l->state = LINK_BROKEN;
    l->owner = NULL;
    l->stalled = NULL;
    ev_io_stop(up->net->loop, &l->rd);
    ev_io_stop(up->net->loop, &l->wr);
    if (l->rd.fd >= 0)
        (void)close(l->rd.fd);
    unlist(l);
    up->stats.connections--;
    up->extras -= l->extra;
    link_remove(&l->dirty);
    link_remove(&l->roomy);
    link_remove(&l->all);
    link_append(&up->net->broken, &l->all);
}

/* Wakes those who wait for room on the link, with requests of which nothing was sent: down, they
 * are told that the server cannot be reached; else they ask for another link. */
static void refuse_waiters(struct upstream_link *l, bool down)
{
    while (!link_empty(&l->waiters)) {
        struct conn *c = CONTAINER(l->waiters.next, struct conn, park);
        c->relay->down = down;
        c->relay->blocked = false;
        if (c->relay->pending == 0)
            c->relay->l = NULL;
        relay_wake(c);
    }
}

/* The replies of x will not come. begun: one of them has come in part. */
static void lose(struct upstream *up, struct expect *x, bool begun)
{
    struct relay *r = x->r;
    struct span lost = up->svc->lost;
    bool dropped = (x->flags & UPSTREAM_DROP) == UPSTREAM_DROP;
    if (r->c && !dropped && (begun || lost.n == 0 || x->kind >= FRAME_MC_BINARY))
        conn_close(r->c);
    for (uint32_t i = 0; i < x->n && !dropped && r->c; i++)
        (void)conn_deliver(r->c, lost);
    if (r->c && r->pending == x->n)
        r->l = NULL;
    crowd_lighten(up, x);
    relay_answered(r, x->n);
}

void link_drop(struct upstream_link *l)
{
    struct upstream *up = l->up;
    struct relay *owner = l->owner;
    bool begun = l->state == LINK_OPEN;
    if (l->state == LINK_BROKEN)
        return;
    link_close(l);
    refuse_waiters(l, !begun && !l->optional);
    if (owner && begun && owner->c) {
        conn_close(owner->c);
    } else if (owner) {
        owner->l = NULL;
        owner->own = !l->optional;
    }
    for (uint32_t i = 0; !owner && i < l->fifo_n; i++)
        lose(up, &l->fifo[(l->fifo_at + i) % l->fifo_cap], i == 0 && l->framing && l->frame.begun);
}

void link_fail(struct upstream_link *l, const char *why)
{
    if (l->state == LINK_CONNECTING && link_dial_elsewhere(l, why))
        return;
    if (l->state == LINK_GREETING || l->state == LINK_PROBING)
        upstream_turned_away(l);
    if (l->optional) /* the shared one goes on */
        upstream_unready(l->up, &l->up->unspared[l->speaks], why);
    else if (is_next(l) && l->state != LINK_GREETING)
        upstream_unready(l->up, &l->up->unready[l->lane], why);
    else if (l->state == LINK_LOOKING)
        upstream_lookup_failed(l, why);
    else if (l->state == LINK_GREETING || l->state == LINK_PROBING)
        upstream_refused(l, why);
    else if (l->state == LINK_OPEN)
        upstream_broke(l, why);
    link_drop(l);
}

/* A server closes links that are idle, and all of them when it ends: whether another can be opened
 * tells which. Not after one that was never used, or a server that closes at once would be asked
 * for ever. */
void link_ended(struct upstream_link *l)
{
    struct upstream *up = l->up;
    unsigned lane = l->lane;
    bool again = lane < UPSTREAM_SHARED && up->shared[lane] == l && l->used && !up->next[lane];
    if (l->owner) {
        link_fail(l, "it closed the connection");
        return;
    }
    link_drop(l);
    if (again && !up->net->rests && !up->net->draining)
        (void)link_new(up, NULL, lane);
}

void link_spoil(struct upstream_link *l)
{
    if (l->state != LINK_BROKEN)
        upstream_short(l->up, "no memory");
    link_drop(l);
}

void link_free(struct upstream_link *l) /* closed */
{
    link_remove(&l->all);
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

uint32_t link_share(const struct upstream_link *l, const struct relay *r)
{
    if (l->owner)
        return r->window;
    uint32_t n = r->window < SHARE_MAX ? r->window : SHARE_MAX;
    if (l->replies >= REPLIES_MAX / 4 || (size_t)l->replies * l->size >= LINE_LONG)
        n /= MANY;
    return n > 0 && l->replies < REPLIES_MAX - RESERVE ? n : 1;
}

bool upstream_may_own(const struct upstream *up)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++)
        used += (up->shared[i] ? 1u : 0u) + (up->next[i] ? 1u : 0u);
    return up->others_max == 0 || up->stats.connections - used < up->others_max;
}

/* Nobody gives one back for want of need. */
bool upstream_may_have_extra(const struct upstream *up)
{
    return upstream_may_own(up) && (up->others_max == 0 || up->extras < up->others_max / 2);
}

/* A shared link that was replaced is one only until its last reply: of one there may be one. */
static bool may_replace(const struct upstream *up)
{
    return upstream_may_own(up) && (up->others_max == 0 || up->extras < (up->others_max + 1) / 2);
}

void links_replace_outdated(struct upstream *up)
{
    for (unsigned i = 0; i < UPSTREAM_SHARED && !up->net->rests && !up->net->draining; i++)
        if (up->shared[i] && up->shared[i]->outdated && up->unready[i].until_us == 0)
            link_replace(up->shared[i]);
}

void link_set_extra(struct upstream_link *l, bool extra)
{
    bool fewer = l->extra && !extra;
    l->up->extras += extra - l->extra;
    l->extra = extra;
    if (fewer)
        links_replace_outdated(l->up);
}

bool link_put(struct upstream_link *l, struct span bytes)
{
    struct net *n = l->up->net;
    if (l->state == LINK_BROKEN || !kept_add(n, &l->out, bytes))
        return false;
    l->used = l->mute = true;
    if (l->owner) /* a request that is sent slowly is no reason to expect its reply */
        l->since_us = upstream_now_us(l->up);
    make_dirty(l);
    return true;
}

static bool grow_fifo(struct upstream_link *l)
{
    uint32_t cap = l->fifo_cap ? 2 * l->fifo_cap : FIFO_FIRST;
    struct expect *larger = l->state != LINK_BROKEN ? malloc(cap * sizeof *larger) : NULL;
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
    if (l->stalled && l->stalled != x->r && !link_others_wait(l, l->stalled))
        cut_pause_begins(l, l->stalled, upstream_now_us(l->up)); /* before, it held up nobody */
    upstream_tick(l->up);
    bool same = last && last->r == x->r && last->kind == x->kind && last->flags == x->flags &&
                last->acks == 0 && x->acks == 0 && last->words == 0;
    if (!same && l->fifo_n == l->fifo_cap && !grow_fifo(l))
        return false;
    if (same)
        last->n += x->n;
    else
        l->fifo[(l->fifo_at + l->fifo_n++) % l->fifo_cap] = *x;
    l->mute = false;
    l->up->stats.requests += x->n;
    l->replies += x->n;
    if (x->flags & UPSTREAM_PATIENT)
        l->patient += x->n;
    return true;
}

int link_write(struct upstream_link *l)
{
    while (l->out.at < l->out.n) {
        ssize_t r =
            send(l->wr.fd, l->out.p + l->out.at, l->out.n - l->out.at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return errno;
        l->out.at += (uint32_t)r;
        if (l->fifo_n == 0) /* the one sign of life that is due */
            l->since_us = upstream_now_us(l->up);
    }
    return 0;
}

static void flush(struct upstream_link *l)
{
    struct ev_loop *loop = l->up->net->loop;
    int why = link_write(l);
    if (why == EAGAIN) {
        ev_io_start(loop, &l->wr);
        upstream_tick(l->up);
        return;
    }
    if (why == EPIPE || why == ECONNRESET) {
        /* It has gone: what it has said before that is still to be read, and then its end. */
        ev_io_stop(loop, &l->wr);
        kept_free(l->up->net, &l->out);
        return;
    }
    if (why) {
        link_fail(l, strerror(why));
        return;
    }
    ev_io_stop(loop, &l->wr);
    kept_free(l->up->net, &l->out);
    link_wake(l);
}

void link_send(struct upstream_link *l)
{
    if (link_empty(&l->dirty))
        return;
    link_remove(&l->dirty);
    flush(l);
}

/* Before the loop sleeps: who may go on, for a round, and what the turns have forwarded, link by
 * link; then what that has broken is freed. */
void upstreams_flush(struct net *n)
{
    turns_begin(n);
    do {
        net_go_on(n);
        while (!link_empty(&n->dirty))
            link_send(CONTAINER(n->dirty.next, struct upstream_link, dirty));
    } while (net_may_go_on(n) && !turns_crowded(n));
    if (link_empty(&n->broken))
        return;
    while (!link_empty(&n->broken)) {
        struct upstream_link *l = CONTAINER(n->broken.next, struct upstream_link, all);
        links_replace_outdated(l->up);
        link_free(l);
    }
    sweep_slack(n); /* their clients may have gone long before */
}

void link_replace(struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (l->state != LINK_OPEN || up->shared[l->lane] != l || up->next[l->lane] ||
        upstream_now_us(up) < up->unready[l->lane].until_us || !may_replace(up))
        return;
    if (!link_new(up, NULL, l->lane))
        upstream_unready(up, &up->unready[l->lane], "");
}

/* Replies for clients that are gone hold up the others, and such clients can come again and again:
 * a link with too many is replaced. */
void link_deserted(struct upstream_link *l, uint32_t n)
{
    l->orphans += n;
    if (l->orphans > ORPHANS_MAX)
        link_replace(l);
}

void link_retire(struct upstream_link *l)
{
    unlist(l);
    link_set_extra(l, true);
    refuse_waiters(l, false);
    if (l->fifo_n == 0) /* else it goes with its last reply */
        link_close(l);
}

/* A client takes its replies again, or is gone. */
void link_read_on(struct upstream_link *l)
{
    if (l->stalled)
        cut_pause_ends(l, upstream_now_us(l->up));
    if (l->state == LINK_OPEN && !ev_is_active(&l->rd)) {
        l->since_us = upstream_now_us(l->up);
        ev_io_start(l->up->net->loop, &l->rd);
        if (l->fifo_n > 0)
            upstream_tick(l->up);
    }
}

bool link_others_wait(const struct upstream_link *l, const struct relay *stalled)
{
    if (!link_empty(&l->waiters) || !link_empty(&l->up->net->resting))
        return true;
    for (uint32_t i = 0; i < l->fifo_n; i++) {
        const struct relay *r = l->fifo[(l->fifo_at + i) % l->fifo_cap].r;
        if (r != stalled && r->c)
            return true;
    }
    return false;
}
