/*
 * What is kept for connections, all together: blocks (block.c), what sessions hold, and what links
 * expect. It is counted in net.bytes, and has a limit.
 *
 * Over the limit the connections that hold most are closed, which are those whose clients do not
 * take their replies or do not end their requests: whoever does holds nothing between two turns.
 * It is the party that holds most whose are closed (the lots of room.c), and of those who have
 * logged in the user of a party: many that hold little each may not drive out one that holds more.
 * What stands in links that clients share is nobody's, and closing clients would not make it less:
 * those links are few, each has a bound of its own (link_has_room), and they count apart. One that
 * was replaced is kept by the client that does not take its reply, if there is one, and counts as
 * that client's; if nobody is left who waits for a reply on it, it goes first.
 * Who sends a whole pipeline before it takes a reply is heard, if there is room (sweep.c). Of one
 * party many could each be heard in part, fill the limit, and wait for good. So above half of it
 * one of a party at a time is heard, its favoured, to its end; then it takes its replies, and all
 * that it held is free for another. No party waits for another's favoured; and one that holds less
 * than another has a quarter of the limit for all of its own at once: it shall not come to hold
 * most by what it is heard, and have connections closed for what that other says next. (With a
 * limit below 16 MiB one alone may do that.) So that of many parties each may have its favoured,
 * it is a sixteenth where more than three quarters are held by all.
 * Looked at after each turn, so what is kept exceeds the limit by no more than one.
 *
 * When a crowd has gone, what it held is given back to the system by the next sweep.
 */
#include "base/log.h"
#include "net/private.h"
#include "net/upstream/links.h"

#include <malloc.h>
#include <sys/mman.h>

#define VICTIMS    64u
#define SLACK      64u /* a part of the limit: so much is made free, soon done and not soon again */
#define LOG_MS     10000
#define MUCH       ((size_t)1 << 20) /* bytes that are worth being given back */
#define CONNECTION ((size_t)1 << 10) /* bytes of one that holds nothing, about */

static size_t held_by_link(const struct upstream_link *l)
{
    return l->in.cap + l->out.cap + l->fifo_cap * sizeof *l->fifo;
}

static bool is_retired(const struct upstream_link *l)
{
    return l->state == LINK_OPEN && l->lane < UPSTREAM_SHARED && l->up->shared[l->lane] != l;
}

/* Everybody who waits on it is gone, and nobody else will come. */
static bool is_deserted(const struct upstream_link *l)
{
    return l->state == LINK_LEAVING || (is_retired(l) && l->orphans == l->replies);
}

/* The link that is there for c alone, or NULL. */
static struct upstream_link *link_of(const struct conn *c)
{
    const struct relay *r = c->relay;
    if (!r || (!r->own && r->pending == 0))
        return NULL;
    return r->own || (r->l->stalled == r && is_retired(r->l)) ? r->l : NULL;
}

static size_t held_by(const struct conn *c)
{
    const struct upstream_link *l = link_of(c);
    size_t n = c->held + (c->in.p ? c->in.cap : 0) + (c->out.p ? c->out.cap : 0);
    return l ? n + held_by_link(l) : n;
}

/* The links that are there for several. */
static size_t held_by_all(const struct net *n)
{
    size_t held = 0;
    for (const struct link *u = n->upstreams.next; u != &n->upstreams; u = u->next) {
        const struct upstream *up = CONTAINER(u, struct upstream, all);
        for (const struct link *k = up->links.next; k != &up->links; k = k->next) {
            const struct upstream_link *l = CONTAINER(k, struct upstream_link, all);
            bool none = l->owner || is_deserted(l) || (l->stalled && is_retired(l));
            held += none ? 0 : held_by_link(l);
        }
    }
    return held;
}

static void drop_if_deserted(struct upstream_link *l)
{
    if (is_deserted(l))
        link_drop(l);
}

static void drop_deserted(struct net *n)
{
    struct link left;
    for (struct link *u = n->upstreams.next; u != &n->upstreams; u = u->next) {
        struct upstream *up = CONTAINER(u, struct upstream, all);
        link_take(&left, &up->links);
        while (!link_empty(&left))
            drop_if_deserted(
                CONTAINER(link_take_first(&left, &up->links), struct upstream_link, all));
    }
}

static void each(const struct net *n, void (*fn)(struct conn *c, void *arg), void *arg)
{
    for (const struct link *l = n->all.next; l != &n->all; l = l->next)
        fn(CONTAINER(l, struct conn, all), arg);
}

/* ---- whose are closed -------------------------------------------------------------------------
 */

static void weigh_anew(struct conn *c, void *unused)
{
    (void)unused;
    if (c->lot)
        room_kept(c->lot)->bytes = 0;
}

static void weigh(struct conn *c, void *unused)
{
    (void)unused;
    if (c->lot)
        room_kept(c->lot)->bytes += held_by(c);
}

/* Of its lot, as it was weighed; of the connection, if it is in none. */
static size_t weight(const struct conn *c)
{
    return c->lot ? room_kept(c->lot)->bytes : held_by(c);
}

static bool is_with(const struct conn *c, const struct conn *other)
{
    return c == other || (c->lot && c->lot == other->lot);
}

struct victims {
    struct conn *heaviest; /* one of its lot, or alone */
    size_t most;           /* that one of those with it holds */
    unsigned n;
    struct conn *of[VICTIMS];
};

static void find_heaviest(struct conn *c, void *arg)
{
    struct victims *v = arg;
    if (!v->heaviest || weight(c) > weight(v->heaviest))
        v->heaviest = c;
}

static void find_most(struct conn *c, void *arg)
{
    struct victims *v = arg;
    size_t held = is_with(c, v->heaviest) ? held_by(c) : 0;
    v->most = held > v->most ? held : v->most;
}

static void find_holders(struct conn *c, void *arg)
{
    struct victims *v = arg;
    if (v->n < VICTIMS && is_with(c, v->heaviest) && held_by(c) >= v->most - v->most / 2)
        v->of[v->n++] = c;
}

static void weigh_all(const struct net *n, struct victims *v)
{
    *v = (struct victims){.n = 0};
    each(n, weigh_anew, NULL);
    each(n, weigh, NULL);
    each(n, find_heaviest, v);
}

/* Of those that keep most, all together, the ones that do, as many as there is room for: closing
 * one may close another. false: nobody keeps anything. */
static bool choose(const struct net *n, struct victims *v)
{
    weigh_all(n, v);
    if (v->heaviest)
        each(n, find_most, v);
    if (v->most > 0)
        each(n, find_holders, v);
    return v->n > 0;
}

/* first: of those that are closed. */
static void tell(struct net *n, size_t was, unsigned closed, const struct net_peer *first)
{
    uint64_t held_back = 0;
    if (log_limit_pass(&n->evictions, clock_mono_ms(n->conf.clock), LOG_MS, &held_back))
        log_warn("limits.memory is reached: connections that keep most are closed",
                 kv_u64("bytes", was), kv_u64("limit", n->conf.memory), kv_u64("closed", closed),
                 kv_str("peer", first->text), kv_u64("lines_held_back", held_back));
}

static void evict(struct conn *c)
{
    struct upstream_link *l = link_of(c);
    conn_end(c, NET_END_MEMORY);
    if (l)
        drop_if_deserted(l);
}

/* What they keep who may be asked for it is more than so much. */
static bool is_above(const struct net *n, size_t limit)
{
    return n->bytes > limit && n->bytes > limit + held_by_all(n);
}

void memory_evict(struct net *n)
{
    struct victims v;
    size_t was = n->bytes, enough = n->conf.memory - n->conf.memory / SLACK;
    unsigned closed = 0;
    struct net_peer first = {.text = ""};
    if (!is_above(n, n->conf.memory))
        return;
    drop_deserted(n);
    while (is_above(n, enough) && choose(n, &v))
        for (unsigned i = 0; i < v.n && is_above(n, enough); i++) {
            if (v.of[i]->state == CONN_DEAD)
                continue;
            if (closed++ == 0)
                peer_of(v.of[i]->rd.fd, &first);
            evict(v.of[i]);
        }
    if (closed > 0)
        tell(n, was, closed, &first);
}

/* They are weighed once in a round of the sweep, by the first who asks. */
static bool is_of_heaviest(const struct conn *c)
{
    struct net *n = c->net;
    struct victims v;
    if (!n->weighed) {
        weigh_all(n, &v);
        n->heaviest = v.heaviest->lot;
        n->weighed = true;
    }
    return c->lot == n->heaviest;
}

static void tell_they_wait(struct net *n)
{
    uint64_t held_back = 0;
    if (log_limit_pass(&n->waits, clock_mono_ms(n->conf.clock), LOG_MS, &held_back))
        log_warn("limits.memory is reached: clients that send before they take replies wait for "
                 "each other",
                 kv_u64("bytes", n->bytes), kv_u64("limit", n->conf.memory),
                 kv_u64("lines_held_back", held_back));
}

bool memory_favours(const struct conn *c)
{
    return c->lot && room_kept(c->lot)->favour.of == c;
}

void memory_favour(struct conn *c, bool is)
{
    if (!c->lot || memory_favours(c) == is)
        return;
    room_kept(c->lot)->favour.of = is ? c : NULL;
    c->net->nfavoured += is ? 1 : (unsigned)-1;
}

bool memory_has_room(struct conn *c, size_t bytes)
{
    struct net *n = c->net;
    size_t most = n->conf.memory;
    if (most == 0 || bytes == 0 || n->bytes + bytes <= most / 2 || !c->lot)
        return true;
    struct room_kept *k = room_kept(c->lot);
    bool heaviest = is_of_heaviest(c);
    size_t part = n->bytes + bytes <= most - most / 4 ? most / 4 : most / 16;
    if (!heaviest && k->bytes + bytes <= part) {
        k->bytes += bytes;
        return true;
    }
    if (k->favour.of && k->favour.of != c) {
        idle_touch(c); /* it waits for us */
        return false;
    }
    if (!k->favour.of)
        k->favour =
            (struct favour){.heard = kept_span(&c->in).n, .since_us = clock_mono_us(n->conf.clock)};
    memory_favour(c, !heaviest || n->bytes + bytes <= most - most / SLACK);
    if (!memory_favours(c))
        tell_they_wait(n);
    return memory_favours(c);
}

void memory_note(struct conn *c)
{
    size_t held = c->state != CONN_DEAD ? c->svc->holds(c->svc, c->session) : 0;
    memory_add(c->net, held);
    c->net->bytes -= c->held;
    bool less = held < c->held;
    c->held = held;
    if (less)
        sweep_slack(c->net);
}

static size_t in_use(const struct net *n)
{
    return n->bytes + n->connections * CONNECTION;
}

bool memory_is_slack(const struct net *n)
{
    return n->peak >= in_use(n) + MUCH;
}

/* The blocks of a turn hold nothing between two. */
void memory_trim(struct net *n)
{
    size_t now = in_use(n);
    if (n->peak < 2 * now && n->peak < now + 4 * MUCH) /* more may be about to go */
        return;
    n->peak = now;
    (void)madvise(n->in, NET_IN_MAX, MADV_DONTNEED);
    (void)madvise(n->out, NET_OUT_MAX, MADV_DONTNEED);
    if (n->up)
        (void)madvise(n->up, NET_IN_MAX, MADV_DONTNEED);
    blocks_free(n);
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}
