/*
 * The clients' side of an upstream. A relay lives as long as its connection, and longer where
 * replies to it are still to come on a shared link: somebody has to be named as their addressee.
 */
#include "net/upstream/links.h"

#include <stdlib.h>
#include <unistd.h>

/* What a client may have under way at the server, where others wait for it: so many replies, and so
 * many bytes of them, or one. What comes is not known, but what has come, and how much was asked.
 */
#define WINDOW      256u
#define WINDOW_SIZE (64u << 10)
#define SIZE_FIRST  (WINDOW_SIZE / 4)  /* bytes of a reply to one of whom nothing is known */
#define WORD        64u                /* bytes of a reply that a word of a request counts as */
#define ASKS_MUCH   ((size_t)16 << 10) /* bytes of a request: others wait while they are sent */

/* ---- life -------------------------------------------------------------------------------------
 */

static struct relay *relay_of(struct conn *c)
{
    if (c->relay)
        return c->relay;
    struct relay *r = calloc(1, sizeof *r);
    if (r)
        *r = (struct relay){.c = c,
                            .size = SIZE_FIRST,
                            .window = WINDOW_SIZE / SIZE_FIRST,
                            .loud = cut_recalls(c->svc->upstream, c)};
    c->relay = r;
    find_doubt(c->svc->upstream);
    return r;
}

/* Up at once, and down in steps: who has had one that was large may ask for more of them. */
void relay_measure(struct relay *r, uint32_t n, size_t bytes)
{
    size_t each = n > 0 ? bytes / n : bytes;
    uint32_t size = each < WINDOW_SIZE ? (uint32_t)each : WINDOW_SIZE;
    if (size >= r->size)
        r->size = size;
    else if (n > 0)
        r->size -= (r->size - size) * (n < 8 ? n : 8) / 8;
    r->window = r->size > WINDOW_SIZE / WINDOW ? WINDOW_SIZE / r->size : WINDOW;
}

static void drop_own(struct relay *r)
{
    if (r->own && r->l) {
        crowd_forget(r->l, r);
        if (r->l->up->net->revokes) /* whoever may not say it any more has not said it */
            link_close(r->l);
        else
            link_leave(r->l);
    }
    r->l = NULL;
    r->own = r->tunnel = r->late = false;
}

void relay_closed(struct conn *c)
{
    struct relay *r = c->relay;
    bool shared = r->pending > 0 && !r->own;
    struct upstream_link *spoilt = r->broken && !r->own ? r->l : NULL;
    if (shared && r->l->stalled == r)
        link_read_on(r->l);
    c->relay = NULL;
    r->c = NULL;
    if (shared)
        link_deserted(r->l, r->pending);
    if (!shared)
        drop_own(r);
    if (!shared || r->pending == 0)
        free(r);
    if (spoilt) /* before it sends a part of a request, or one whose reply nobody expects */
        link_spoil(spoilt);
}

bool relay_adopt(struct conn *c, int fd)
{
    struct relay *r = relay_of(c);
    if (!r) {
        (void)close(fd);
        return false;
    }
    r->l = link_adopt(c->svc->upstream, r, fd);
    r->own = r->l != NULL;
    return r->own;
}

bool relay_expect(struct relay *r, uint8_t kind, uint32_t n, uint8_t flags, uint32_t acks)
{
    if (r->late)
        flags |= UPSTREAM_PATIENT;
    const struct expect x = {.r = r, .n = n, .kind = kind, .flags = flags, .acks = acks};
    if (!link_expect(r->l, &x))
        return false;
    if (!(flags & UPSTREAM_PATIENT))
        crowd_ask(r, r->asked);
    r->asked = 0;
    r->late = false;
    r->pending += n;
    r->owes = true;
    return true;
}

void relay_whole(struct relay *r)
{
    r->owes = false;
    r->asked = 0;
    crowd_whole(r);
}

void relay_answered(struct relay *r, uint32_t n)
{
    r->pending -= n;
    if (r->pending > r->enough)
        return;
    r->enough = 0;
    if (!r->c && r->pending == 0)
        free(r);
    else if (r->c && !r->blocked && !r->crowd)
        relay_wake(r->c);
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Replies that come only once the client has sent the rest of its request. */
static uint32_t relay_owed(const struct conn *c)
{
    return c->passing && c->relay->owes;
}

/* A blocked command waits for others, which a client that has gone does not. */
bool relay_waits(const struct conn *c)
{
    const struct relay *r = c->relay;
    return r->pending > relay_owed(c) && !(r->own && r->l->patient > 0);
}

bool relay_says(const struct conn *c)
{
    const struct relay *r = c->relay;
    return r && r->own && r->blocked && r->pending == 0;
}

bool relay_is_served(const struct conn *c)
{
    const struct relay *r = c->relay;
    return r->pending > relay_owed(c) || r->late || r->tunnel || frame_subscribed(&r->subs);
}

/* A tunnel is one frame that never ends, and nothing is answered here beside it. */
bool relay_hears_unasked(const struct relay *r)
{
    const struct upstream_link *l = r->own ? r->l : NULL;
    return l && l->fifo_n == 0 && l->framing && l->frame.begun &&
           l->frame.kind != FRAME_RESP_TUNNEL;
}

void relay_behind(struct conn *c)
{
    struct relay *r = c->relay;
    if (r->enough < relay_owed(c))
        r->enough = relay_owed(c);
    if (r->crowd)
        crowd_wait(r, c->svc->upstream);
    else if (r->blocked && r->l) {
        link_append(&r->l->waiters, &c->park);
        link_wake(r->l); /* what it had no room for may have been sent since, in the same turn */
    } else if (r->pending == 0 && c->net->rests)
        link_append(&c->net->resting, &c->park);
    else if (relay_hears_unasked(r))
        upstream_tick(c->svc->upstream);
    else if (r->pending == 0) /* nothing will come: it has failed meanwhile */
        relay_wake(c);
}

void relay_wake(struct conn *c)
{
    if (c->state != CONN_BEHIND)
        return;
    link_remove(&c->park);
    link_append(&c->net->ready, &c->park);
}

static void waits_no_more(struct relay *r)
{
    r->blocked = false;
    r->crowd = NULL;
}

void relay_go_on(struct conn *c, enum relay_called called)
{
    link_remove(&c->park);
    c->state = CONN_READING;
    waits_no_more(c->relay);
    c->relay->called = called;
    if (c->net->draining) /* more may have arrived than was read */
        conn_go_on(c, false);
    else
        conn_resume(c, UINT32_MAX);
    if (c->relay)
        c->relay->called = CALLED_NOT;
}

/* Those who wait for room on a link stay in its line until they are called, one after the other, as
 * long as there is room: nobody who comes meanwhile is before them, and whoever has had some comes
 * behind them if it wants more. */
static void call_next(struct upstream_link *l)
{
    link_remove(&l->roomy);
    if (l->state != LINK_OPEN || !link_has_room(l) || link_empty(&l->waiters))
        return;
    relay_go_on(CONTAINER(l->waiters.next, struct conn, park), CALLED_BY_LINK);
    link_wake(l);
}

bool net_may_go_on(const struct net *n)
{
    return !link_empty(&n->ready) || !link_empty(&n->roomy) || !link_empty(&n->uncrowded);
}

/* For a round, where much has come: who is left goes on before the loop sleeps, or looks again. */
void net_go_on(struct net *n)
{
    while (net_may_go_on(n) && !turns_crowded(n)) {
        if (!link_empty(&n->ready))
            relay_go_on(CONTAINER(n->ready.next, struct conn, park), CALLED_NOT);
        if (!link_empty(&n->roomy))
            call_next(CONTAINER(n->roomy.next, struct upstream_link, roomy));
        if (!link_empty(&n->uncrowded))
            crowd_call(CONTAINER(n->uncrowded.next, struct crowd, roomy));
    }
}

/* On a shared link what many have forwarded is sent at once; on somebody's own it would only stay,
 * and what that takes would be nobody's. */
void relay_send(struct conn *c)
{
    const struct relay *r = c->relay;
    if (r->own && r->l && !r->broken)
        link_send(r->l);
}

void relay_settled(struct conn *c)
{
    struct relay *r = c->relay;
    if (r->broken) {
        conn_close(c);
        return;
    }
    bool takes = c->state == CONN_READING || c->state == CONN_BEHIND;
    if (takes && r->l && (r->own || (r->pending > 0 && r->l->stalled == r)))
        link_read_on(r->l);
}

void upstreams_rest(struct net *n, bool on)
{
    n->rests = on;
    if (on) { /* who stalls has little time */
        for (struct link *u = n->upstreams.next; u != &n->upstreams; u = u->next)
            upstream_tick_anew(CONTAINER(u, struct upstream, all));
        return;
    }
    for (struct link *u = n->upstreams.next; u != &n->upstreams; u = u->next)
        links_replace_outdated(CONTAINER(u, struct upstream, all));
    while (!link_empty(&n->resting))
        relay_wake(CONTAINER(n->resting.next, struct conn, park));
    net_go_on(n);
}

/* ---- for serve --------------------------------------------------------------------------------
 */

static enum upstream_ready blocked(struct relay *r)
{
    r->blocked = true;
    return UPSTREAM_BUSY;
}

/* There is room on l, and nobody waits for it who came before. */
static bool may_put(const struct upstream_link *l, const struct relay *r)
{
    return l->state == LINK_OPEN && link_has_room(l) && (r->called || link_empty(&l->waiters));
}

/* Puts r on the link that it should be on: false if that cannot be had now. The only place where a
 * relay that shared a link gets one of its own, which it keeps. */
static bool choose(struct relay *r, struct upstream *up, enum upstream_lane lane, bool optional)
{
    if (r->own && r->l && lane == UPSTREAM_OWN)
        link_set_extra(r->l, false);
    if (r->pending > 0 || (r->own && r->l))
        return true;
    if (optional && (r->l = link_new(up, r, UPSTREAM_OWN)) != NULL) {
        r->own = true;
        link_set_extra(r->l, true);
        return true;
    }
    r->own |= lane >= UPSTREAM_OWN;
    r->l = r->own ? link_new(up, r, UPSTREAM_OWN)
                  : (up->shared[lane] ? up->shared[lane] : link_new(up, NULL, lane));
    return r->l != NULL;
}

/* The link on which r can have a request forwarded at once: where upstream_ready, below, would say
 * READY. */
static struct upstream_link *link_at_once(const struct relay *r, const struct upstream *up,
                                          enum upstream_lane lane, uint32_t words)
{
    if (!r || r->down || r->broken || up->net->rests)
        return NULL;
    struct upstream_link *l = r->own ? r->l : up->shared[lane];
    bool its = l && (r->own ? l->used : !r->loud && (r->pending == 0 || r->l == l));
    bool goes = its && may_put(l, r) && r->pending < link_share(l, r);
    return goes && !crowd_holds(r, words) && !crowd_bars(r, up, words) ? l : NULL;
}

/* Whether the server lets in one more link, as far as is known: none is being opened in the place
 * of a shared one, and the last that was has not been refused. */
static bool lets_in_more(const struct upstream *up, enum upstream_lane lane)
{
    return upstream_may_have_extra(up) && !up->next[lane] && up->unready[lane].until_us == 0 &&
           up->unspared[lane].until_us == 0;
}

static enum upstream_ready refuse(struct upstream *up, enum upstream_lane lane)
{
    if (lane < UPSTREAM_SHARED) {
        up->refusals++;
        up->stats.unshared_us = upstream_now_us(up);
    }
    return UPSTREAM_DOWN;
}

enum upstream_ready upstream_ready(struct net_turn *t, enum upstream_lane lane, uint32_t words)
{
    struct upstream *up = t->conn->svc->upstream;
    struct relay *r = relay_of(t->conn);
    if (!r || r->down || r->broken) {
        if (r)
            r->down = false;
        return refuse(up, lane);
    }
    waits_no_more(r);
    r->enough = 0;
    bool begins = lane != UPSTREAM_REST; /* a rest belongs to what was let through */
    if (up->net->rests && begins)
        return UPSTREAM_BUSY;
    bool optional = !r->own && r->loud && lane < UPSTREAM_OWN && lets_in_more(up, lane);
    if (!choose(r, up, lane, optional))
        return refuse(up, lane);
    bool moves = optional || lane >= UPSTREAM_OWN || up->shared[lane] != r->l;
    if (!r->own && r->pending > 0 && moves)
        return UPSTREAM_BUSY; /* until nothing is expected on the old link */
    uint32_t share = link_share(r->l, r);
    if (r->pending >= share && begins) {
        r->enough = share / 2;
        return UPSTREAM_BUSY;
    }
    if (begins && crowd_holds(r, words))
        return UPSTREAM_BUSY;
    if (!may_put(r->l, r))
        return blocked(r);
    words = begins ? words : r->asked + r->part;
    if (crowd_bars(r, up, words))
        return crowd_enter(r, up, words);
    return r->own && !r->l->used ? UPSTREAM_FRESH : UPSTREAM_READY;
}

/* A large request holds up those behind it as a large reply does. So whoever sends one on a shared
 * link is loud, too, and until it has moved its requests count like replies of their size. */
static void measure_asked(struct relay *r, size_t bytes)
{
    if (r->own || bytes <= ASKS_MUCH)
        return;
    r->loud = true;
    relay_measure(r, 0, bytes);
}

void upstream_send(struct net_turn *t, struct span bytes)
{
    struct relay *r = t->conn->relay;
    measure_asked(r, bytes.n);
    if (bytes.n > 0 && !link_put(r->l, bytes))
        r->broken = true;
}

void upstream_expect(struct net_turn *t, enum frame_kind kind, uint32_t n, unsigned flags)
{
    struct relay *r = t->conn->relay;
    r->late |= n == 0 && flags & UPSTREAM_PATIENT;
    if (n > 0 && !r->broken && !relay_expect(r, (uint8_t)kind, n, (uint8_t)flags, 0))
        r->broken = true;
    if ((flags & UPSTREAM_DROP) == UPSTREAM_DROP) /* its client may be answered only after that */
        crowd_whole(r);
}

void upstream_weigh(struct net_turn *t, uint32_t words)
{
    struct relay *r = t->conn->relay;
    r->asked += words;
    if ((size_t)r->asked * WORD > r->size)
        relay_measure(r, 0, (size_t)r->asked * WORD);
}

void upstream_expect_acks(struct net_turn *t, uint32_t n)
{
    struct relay *r = t->conn->relay;
    if (!r->broken && !relay_expect(r, FRAME_RESP, 1, UPSTREAM_NEWS, n))
        r->broken = true;
}

bool upstream_subscribed(const struct net_turn *t)
{
    return t->conn && t->conn->relay && frame_subscribed(&t->conn->relay->subs);
}

/* Puts it on the link that upstream_ready would put it on, if that says READY. */
static bool ready_at_once(struct relay *r, const struct upstream *up, enum upstream_lane lane,
                          uint32_t words)
{
    struct upstream_link *l = link_at_once(r, up, lane, words);
    if (!l)
        return false;
    r->l = l;
    waits_no_more(r);
    r->enough = 0;
    return true;
}

bool upstream_forward(struct net_turn *t, enum upstream_lane lane, struct span bytes,
                      uint32_t words, enum frame_kind kind)
{
    if (!ready_at_once(t->conn->relay, t->conn->svc->upstream, lane, words))
        return false;
    upstream_send(t, bytes);
    upstream_weigh(t, words);
    upstream_expect(t, kind, 1, 0);
    return true;
}

uint32_t upstream_pending(const struct net_turn *t)
{
    const struct relay *r = t->conn ? t->conn->relay : NULL;
    return r ? r->pending + relay_hears_unasked(r) : 0;
}

void upstream_wait_for(struct net_turn *t, uint32_t n)
{
    t->conn->relay->enough = n;
}

bool upstream_owns(const struct net_turn *t)
{
    return t->conn && t->conn->relay && t->conn->relay->own && t->conn->relay->l;
}

bool upstream_logs_in(const struct net_turn *t)
{
    const struct relay *r = t->conn ? t->conn->relay : NULL;
    return r && r->l && r->l->up->greeting[r->l->speaks].g.bytes.n > 0;
}

void upstream_renew(struct net_turn *t)
{
    struct relay *r = t->conn->relay;
    link_leave(r->l);
    leave_places(t->conn->net);
    r->l = NULL;
    r->tunnel = r->late = false;
    r->subs = (struct frame_subs){.n = {0}};
}

void upstream_tunnel(struct net_turn *t)
{
    t->conn->relay->tunnel = true;
}
