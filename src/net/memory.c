/*
 * What is kept for connections, all together: blocks (block.c), what sessions hold, and what links
 * expect. It is counted in net.bytes, and has a limit.
 *
 * Over the limit the connections that hold most are closed, which are those whose clients do not
 * take their replies or do not end their requests: whoever does holds nothing between two turns.
 * What stands in links that clients share is nobody's, and closing clients would not make it less:
 * those links are few, each has a bound of its own (link_has_room), and they count apart. One that
 * was replaced is kept by the client that does not take its reply, if there is one, and counts as
 * that client's; if nobody is left who waits for a reply on it, it goes first.
 * Looked at after each turn, so what is kept exceeds the limit by no more than one.
 *
 * When a crowd has gone, what it held is given back to the system by the next sweep.
 */
#include "base/log.h"
#include "net/private.h"

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
    return is_retired(l) && l->orphans == l->replies;
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

static size_t most_held(const struct net *n)
{
    size_t most = 0;
    for (const struct link *l = n->all.next; l != &n->all; l = l->next) {
        size_t held = held_by(CONTAINER(l, struct conn, all));
        most = held > most ? held : most;
    }
    return most;
}

/* Those that hold at least so much, as many as there is room for: closing one may close another. */
static unsigned find_holders(const struct net *n, size_t least, struct conn *found[VICTIMS])
{
    unsigned found_n = 0;
    for (const struct link *l = n->all.next; l != &n->all && found_n < VICTIMS; l = l->next) {
        struct conn *c = CONTAINER(l, struct conn, all);
        if (held_by(c) >= least)
            found[found_n++] = c;
    }
    return found_n;
}

static void tell(struct net *n, size_t was, unsigned closed)
{
    uint64_t held_back = 0;
    if (log_limit_pass(&n->evictions, clock_mono_ms(n->conf.clock), LOG_MS, &held_back))
        log_warn("limits.memory is reached: connections that keep most are closed",
                 kv_u64("bytes", was), kv_u64("limit", n->conf.memory), kv_u64("closed", closed),
                 kv_u64("lines_held_back", held_back));
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
    struct conn *victim[VICTIMS];
    size_t was = n->bytes, most, enough = n->conf.memory - n->conf.memory / SLACK;
    unsigned closed = 0;
    if (!is_above(n, n->conf.memory))
        return;
    drop_deserted(n);
    while (is_above(n, enough) && (most = most_held(n)) > 0) {
        unsigned found = find_holders(n, most - most / 2, victim);
        for (unsigned i = 0; i < found && is_above(n, enough); i++) {
            if (victim[i]->state == CONN_DEAD)
                continue;
            evict(victim[i]);
            closed++;
        }
    }
    if (closed > 0)
        tell(n, was, closed);
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
