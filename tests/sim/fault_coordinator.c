#include "sim/fault.h"

#define HOUR_MS INT64_C(3600000)
#define YEAR_MS (8766 * HOUR_MS)

/* ---- the coordinator ------------------------------------------------------------------------- */

/* What is lost is made up for by floors that follow this clock: it must be right within S. */
static bool may_lose(struct world *w)
{
    w->lossy = !w->wild;
    w->losses += w->lossy;
    return w->lossy;
}

static const struct server_copy *recent_copy(struct world *w)
{
    struct server *s = w->server;
    unsigned back = 1 + (unsigned)world_draw(w, world_chance(w, 50) ? 4 : SERVER_RECENT);
    if (back > s->nrecent)
        return NULL;
    const struct server_copy *c = &s->recent[(s->nrecent - back) % SERVER_RECENT];
    return c->used && server_was(s, c) ? c : NULL;
}

static const struct server_copy *old_copy(struct world *w)
{
    const struct server_copy *c = &w->server->old[world_draw(w, SERVER_OLD)];
    return c->used && server_was(w->server, c) ? c : recent_copy(w);
}

static bool restart_with(struct world *w, const struct server_copy *c)
{
    if (!c || !may_lose(w))
        return false;
    world_note(w, "coordinator goes back to %lld", (long long)(c->at_ms - WORLD_EPOCH));
    if (!server_restart(w->server, c, world_chance(w, 30)))
        return false;
    if (world_chance(w, 50))
        w->server->at->clock_off = fault_within_skew(w);
    return true;
}

bool fault_redis_empty(struct world *w)
{
    if (!may_lose(w))
        return false;
    server_restart_empty(w->server, world_chance(w, 30));
    w->no_pool = true;
    return true;
}

bool fault_redis_suffix(struct world *w)
{
    return restart_with(w, recent_copy(w));
}

bool fault_redis_old(struct world *w)
{
    return restart_with(w, old_copy(w));
}

bool fault_redis_failover(struct world *w)
{
    const struct server_copy *c = recent_copy(w);
    if (!c || !may_lose(w))
        return false;
    if (!server_restart(w->server, c, false))
        return false;
    w->server->at->clock_off = fault_within_skew(w);
    return true;
}

bool fault_redis_whole(struct world *w)
{
    server_restart_whole(w->server, world_chance(w, 30));
    if (!w->wild && world_chance(w, 50))
        w->server->at->clock_off = fault_within_skew(w);
    return true;
}

bool fault_redis_flush(struct world *w)
{
    if (!may_lose(w))
        return false;
    server_lose_pool(w->server, true);
    w->no_pool = true;
    return true;
}

bool fault_redis_evict(struct world *w)
{
    if (!may_lose(w))
        return false;
    server_lose_pool(w->server, false);
    w->no_pool = true;
    return true;
}

/* Before any other, the server runs what n is about to send; n hears of it if it was answered. */
static enum coord_status call_first(struct world *w, struct node *n)
{
    struct server_call call = {.action = n->action, .wall_ms = node_wall(w, n)};
    bool waits = w->waiting;
    memcpy(call.identity, n->lease.identity, sizeof call.identity);
    w->waiting = true; /* nothing comes between */
    server_run(w->server, &call);
    w->waiting = waits;
    if (call.outcome.status == COORD_OK || !n->back)
        node_answer(w, n, &call);
    return call.outcome.status;
}

/* A holder whose n is above that of a record which the table does not know to be stale. */
static bool proves_rewind(struct server *s, const struct lease_action *a)
{
    struct server_record r;
    for (size_t i = 0; i < a->nitems; i++)
        if (server_record(s, a->items[i].worker, &r) && r.era == server_number(s, "era") &&
            a->items[i].n > r.n)
            return true;
    return false;
}

/* Nothing promises that this is seen before the next claim; what is promised is that it is healed
 * once a holder is heard whose n is above the table's. So that comes first. */
bool fault_redis_in_place(struct world *w)
{
    struct server *s = w->server;
    struct node *n = world_some_node(w);
    const struct server_copy *c = old_copy(w);
    if (!c || s->sqlite || !node_runs(w, n) || n->phase != KEEPER_SEND ||
        n->action.kind != LEASE_RENEW || n->wrong_pool || !may_lose(w))
        return false;
    server_backup(s, SERVER_OLD - 1, w->now);
    if (c != &s->old[SERVER_OLD - 1] && !server_rewind_in_place(s, c))
        return false;
    if (!proves_rewind(s, &n->action)) {
        (void)server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
        return false;
    }
    world_note(w, "coordinator goes back to %lld, in place", (long long)(c->at_ms - WORLD_EPOCH));
    int64_t era = server_number(s, "era");
    (void)call_first(w, n);
    if (server_number(s, "era") > era)
        return true;
    /* It was not heard: too few replicas followed. */
    world_note(w, "coordinator is as it was before");
    (void)server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
    return false;
}

bool fault_redis_clock(struct world *w)
{
    if (w->wild)
        return false;
    w->server->at->clock_off = fault_within_skew(w);
    return true;
}

bool fault_redis_clock_wild(struct world *w)
{
    if (w->lossy)
        return false;
    w->wild = true;
    w->server->at->clock_off =
        world_chance(w, 30) ? fault_within_skew(w) : world_between(w, -YEAR_MS, YEAR_MS);
    if (world_chance(w, 50))
        w->server->at->clock_off =
            world_between(w, -5 * w->set.params.horizon_ms, 5 * w->set.params.horizon_ms);
    for (unsigned i = 0; i < w->set.nodes; i++)
        if (world_chance(w, 50))
            w->node[i].wall_off = w->server->at->clock_off;
    return true;
}

bool fault_redis_down(struct world *w)
{
    w->down_until = w->now + world_between(w, 1000, world_chance(w, 70) ? 300000 : 5 * HOUR_MS);
    return true;
}

static uint16_t some_worker(struct world *w)
{
    return (uint16_t)world_between(w, w->set.params.worker_from, w->set.params.worker_to);
}

bool fault_queue_doubled(struct world *w)
{
    server_double(w->server, some_worker(w), world_chance(w, 50));
    return true;
}

bool fault_queue_lost(struct world *w)
{
    server_lose_queue(w->server);
    return true;
}

bool fault_index_lost(struct world *w)
{
    server_lose_index(w->server);
    return true;
}

/* The same file as before, with contents of before, while nobody runs. That is seen through where
 * the first renewals are answered, by a coordinator that has forgotten nothing since, and the clock
 * has not gone back since; it is a limit otherwise, so here all of that holds. */
bool fault_page_back(struct world *w)
{
    struct node *n = world_some_node(w);
    struct err why;
    if (!n->has_file || n->cut || !n->has_backup || n->wrong_pool ||
        n->backup_losses != w->losses || page_judge(&n->backup, &n->home, &why) != PAGE_OWN ||
        node_wall(w, n) < ledger_latest(w, n))
        return false;
    if (n->alive)
        node_kill(w, n);
    static struct page page;
    page = n->page;
    n->page = n->backup;
    n->back = true;
    world_note(w, "node %u finds its page as it was before", node_number(w, n));
    node_start(w, n);
    if (world_chance(w, 30)) /* what was not proven to the one is not to the other */
        node_upgrade(w, n);
    bool answered;
    do { /* twice where the page has a renewal under way */
        node_keep(w, n);
        answered = n->phase == KEEPER_SEND && n->action.kind == LEASE_RENEW &&
                   call_first(w, n) == COORD_OK;
    } while (answered && !lease_proven(&n->lease));
    if (!answered) {
        node_kill(w, n);
        n->page = page;
    }
    n->back = false;
    return answered;
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool init_after_loss(struct world *w, bool other)
{
    struct coord_init in = {.params = w->set.params, .mode = COORD_INIT_AFTER_LOSS};
    char uuid[COORD_UUID_TEXT];
    char identity[COORD_IDENTITY_MAX];
    memcpy(identity, w->identity, sizeof identity);
    if (other &&
        coord_identity_make(identity, span_str(coord_uuid_new(uuid, &w->rng)), WORLD_EPOCH, NULL))
        return false;
    memcpy(in.identity, identity, sizeof identity);
    w->no_pool = false;
    if (server_init(w->server, &in) != COORD_OK)
        return false;
    memcpy(w->identity, identity, sizeof identity);
    server_remember(w->server, w->now);
    return true;
}

bool fault_init_same(struct world *w)
{
    return init_after_loss(w, false);
}

bool fault_init_other(struct world *w)
{
    return init_after_loss(w, true);
}

/* As above: the mistake is healed once a holder is heard, which comes first here. */
bool fault_init_fresh(struct world *w)
{
    struct node *n = world_some_node(w);
    struct coord_init in = {.params = w->set.params, .mode = COORD_INIT_FRESH};
    if (!node_runs(w, n) || n->phase != KEEPER_SEND || n->action.kind != LEASE_RENEW ||
        n->wrong_pool || n->action.items[0].worker > in.params.worker_to || !may_lose(w))
        return false;
    server_lose_pool(w->server, true);
    memcpy(in.identity, w->identity, sizeof in.identity);
    if (server_init(w->server, &in) != COORD_OK)
        return false;
    w->no_pool = false;
    (void)call_first(w, n);
    return true;
}

bool fault_op_evict(struct world *w)
{
    (void)server_evict(w->server, w->identity, some_worker(w));
    server_remember(w->server, w->now);
    return true;
}

bool fault_op_repair(struct world *w)
{
    uint16_t workers[WORLD_WORKERS];
    size_t n = 0;
    for (uint16_t i = w->set.params.worker_from; i <= w->set.params.worker_to; i++)
        workers[n++] = i;
    (void)server_repair(w->server, w->identity, workers, n);
    return true;
}

bool fault_op_close(struct world *w)
{
    if (!world_chance(w, 10))
        return false;
    (void)server_close_pool(w->server, w->identity);
    return true;
}
