/*
 * The network: calls that are sent, run by the server at some time, and answered at another.
 *
 * A call may be run more than once, and long after its sender gave up, or died. A reply that nobody
 * waits for is dropped, as a connection is after a time-out.
 */
#include "sim/world.h"

static struct flight *slot(struct world *w)
{
    for (unsigned i = 0; i < WORLD_FLIGHTS; i++)
        if (!w->flight[i].used)
            return &w->flight[i];
    /* Some are lost: so are packets. */
    struct flight *f = &w->flight[world_draw(w, WORLD_FLIGHTS)];
    return f->running ? &w->flight[f == w->flight] : f;
}

static bool awaited(const struct world *w, const struct flight *f)
{
    const struct node *n = &w->node[f->node];
    return n->alive && n->life == f->life && n->phase == KEEPER_WAIT && n->serial == f->serial;
}

void net_send(struct world *w, struct node *n)
{
    struct flight *f = slot(w);
    n->serial++;
    n->phase = KEEPER_WAIT;
    f->used = true;
    f->answered = f->running = false;
    f->other_pool = n->wrong_pool;
    f->side = n->wrong_pool ? 0 : failover_side(w, n);
    f->node = (uint8_t)(n - w->node);
    f->life = n->life;
    f->serial = n->serial;
    f->call.action = n->action;
    f->call.wall_ms = node_wall(w, n);
    memcpy(f->call.identity, n->lease.identity, sizeof f->call.identity);
    if (n->partitioned) {
        world_count(w, FAULT_PARTITION);
        f->used = false;
    } else if (w->set.weight[FAULT_NET_LOST_REQUEST] && world_chance(w, 4)) {
        world_count(w, FAULT_NET_LOST_REQUEST);
        f->used = false;
    }
}

/* A range on its way is as good as held. */
static void check_answer(struct world *w, const struct flight *f)
{
    const struct node *n = &w->node[f->node];
    const struct server_call *c = &f->call;
    if (c->outcome.status != COORD_OK || !awaited(w, f) || w->set.fixed)
        return;
    if (c->action.kind == LEASE_CLAIM) {
        const struct coord_grant *g = &c->outcome.grant;
        struct range r = {g->worker, g->lo_ms, g->hi_ms};
        ledger_check_range(w, n, &r);
    }
    for (size_t i = 0; c->action.kind == LEASE_RENEW && i < c->action.nitems; i++) {
        const struct coord_renewal *item = &c->action.items[i];
        struct range r = {item->worker, n->granted[item->worker].hi + 1, item->hi_ms};
        if (item->how != COORD_HOW_LOST)
            ledger_check_range(w, n, &r);
    }
}

/* The server runs a call. One that may come again stays behind as it was. */
static void run(struct world *w, struct flight *f)
{
    bool again = w->set.weight[FAULT_NET_DOUBLED] && world_chance(w, w->set.copies_percent);
    bool late = w->set.weight[FAULT_NET_LATE] && world_chance(w, w->set.copies_percent);
    struct server *s = f->other_pool ? w->other : w->server;
    if (again || late) {
        struct flight *copy = slot(w);
        if (copy != f)
            *copy = *f;
        world_count(w, late ? FAULT_NET_LATE : FAULT_NET_DOUBLED);
    }
    s->at = &s->group.member[f->side];
    f->running = true;
    if (w->set.fixed)
        fixed_run(w, &w->node[f->node], &f->call);
    else
        server_run(s, &f->call);
    f->running = false;
    world_note(w, "server %u runs a call of node %u: %s", f->side, f->node,
               coord_status_name(f->call.outcome.status));
    w->stats->calls++;
    world_digest(w, f->call.outcome.status);
    f->answered = true;
    check_answer(w, f);
    enum coord_status status = f->call.outcome.status;
    bool ran = status == COORD_OK || status == COORD_CLOSED; /* which grants nothing */
    if (!f->other_pool && awaited(w, f) && f->call.action.kind == LEASE_RENEW && ran)
        w->node[f->node].renewed = true;
    if (!f->other_pool && (!s->sqlite || world_chance(w, 20)))
        server_remember(s, w->now);
}

static void answer(struct world *w, struct flight *f)
{
    bool lost = w->set.weight[FAULT_NET_LOST_REPLY] && world_chance(w, 6);
    f->used = false;
    if (!awaited(w, f))
        return;
    if (!node_runs(w, &w->node[f->node]))
        f->used = true; /* it lies in the socket's buffer */
    else if (lost)
        world_count(w, FAULT_NET_LOST_REPLY);
    else if (w->set.weight[FAULT_KILL_TORN] && world_chance(w, 3)) {
        world_count(w, FAULT_KILL_TORN);
        node_kill_torn(w, &w->node[f->node], &f->call);
    } else
        node_answer(w, &w->node[f->node], &f->call);
}

static bool up(const struct world *w)
{
    return w->down_until <= w->now;
}

static void move(struct world *w, struct flight *f)
{
    if (f->answered)
        answer(w, f);
    else if (up(w))
        run(w, f);
}

bool net_step(struct world *w)
{
    unsigned from = (unsigned)world_draw(w, WORLD_FLIGHTS);
    for (unsigned i = 0; i < WORLD_FLIGHTS; i++) {
        struct flight *f = &w->flight[(from + i) % WORLD_FLIGHTS];
        if (!f->used || f->running)
            continue;
        move(w, f);
        return true;
    }
    return false;
}

void net_round_trip(struct world *w, struct node *n)
{
    for (unsigned i = 0; i < WORLD_FLIGHTS && n->phase == KEEPER_WAIT; i++) {
        struct flight *f = &w->flight[i];
        if (f->used && !f->running && awaited(w, f)) {
            if (!f->answered && up(w))
                run(w, f);
            if (f->used && f->answered && !w->failed)
                answer(w, f);
        }
    }
    /* No answer: the call times out. */
    if (n->alive && n->phase == KEEPER_WAIT && node_runs(w, n))
        node_answer(w, n, NULL);
}
