#include "sim/fault.h"
#include "sim/seqs.h"

#include "base/int64.h"

#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)
#define YEAR_MS (8766 * HOUR_MS)

/* ---- the coordinator ------------------------------------------------------------------------- */

/* What is lost is made up for by floors that follow this clock: it must be right within S. */
bool fault_may_lose(struct world *w)
{
    w->lossy = !w->wild;
    w->losses += w->lossy;
    if (w->lossy)
        w->word_era = 0;
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

const struct server_copy *fault_old_copy(struct world *w)
{
    const struct server_copy *c = &w->server->old[world_draw(w, SERVER_OLD)];
    return c->used && server_was(w->server, c) ? c : recent_copy(w);
}

/* ---- bets on settle ---- */

/* Of whatever pool that was ever made here, since all have one ID space. */
static bool calls_here(const struct world *w, const struct node *n)
{
    return !n->partitioned && !n->wrong_pool && coord_same_space(n->lease.identity, w->identity);
}

static bool holds(const struct node *n, uint16_t worker)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (n->lease.slot[i].rec.state == PAGE_HELD && n->lease.slot[i].rec.worker == worker)
            return true;
    return false;
}

/* Whoever may issue after the shortest settle is a holder that reaches the coordinator, and nobody
 * issued ahead of the time by as much. What is not so is what a bet gives up. */
static bool all_can_be_heard(const struct world *w)
{
    int64_t settle = w->set.params.first_horizon_ms;
    for (unsigned i = 0; i < w->set.nodes; i++) {
        const struct node *n = &w->node[i];
        struct range r[NODE_RANGES];
        bool reaches =
            node_runs(w, n) && calls_here(w, n) && !n->stopping && n->wall_off < settle / 2;
        if (!w->set.lease.ahead && ledger_latest(w, n) >= w->now + settle / 2)
            return false;
        for (unsigned k = ledger_ranges(w, n, r); k-- > 0;)
            if (r[k].lo <= r[k].hi && r[k].hi >= w->now + settle &&
                !(reaches && holds(n, r[k].worker)))
                return false;
    }
    return w->down_until <= w->now;
}

/* Whoever holds something of this pool knows of its reopening; of one of another name, the pool
 * grants nothing before it ends. Who knew of as many already knows a time that was lost: he is
 * heard by a renewal alone. */
static bool is_heard(const struct world *w, const struct node *n, const struct coord_pool *p,
                     uint64_t era)
{
    if (!node_runs(w, n) || lease_held(&n->lease) == 0)
        return true;
    if (strcmp(n->lease.identity, p->identity) == 0)
        return n->lease.era >= era && n->renewed;
    struct range r[NODE_RANGES];
    for (unsigned k = ledger_ranges(w, n, r); k-- > 0;)
        if (r[k].lo <= r[k].hi && r[k].hi > p->floor_short_ms)
            return false;
    return true;
}

/* The pool is reopened, and by a quarter of settle every holder is heard. One made without a uuid
 * may have taken another's name meanwhile: it refuses whoever knew it by its own, and had refused
 * until then whoever knew that name; they may try anything else in vain before the renewal, and
 * have as long again for that; so do all who know of another pool alone, made in this one's place
 * after it was copied. */
static void hear_all(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    bool reopened = server_pool(w->server, &p, &era) &&
                    server_repair(w->server, p.identity, NULL, 0) == COORD_OK;
    if (!server_pool(w->server, &p, &era) || p.later.trust != COORD_TRUST_BET)
        return;
    int64_t settle = coord_pool_settle(&p, server_ms(w->server));
    int64_t quarter = w->now + settle / 4 + 1; /* who is due just then has its turn */
    bool lossless = !w->set.weight[FAULT_NET_LOST_REQUEST] && !w->set.weight[FAULT_NET_LOST_REPLY];
    bool ran[WORLD_NODES], knew[WORLD_NODES], keeps_to_it[WORLD_NODES];
    for (unsigned i = 0; i < w->set.nodes; i++) {
        ran[i] = node_runs(w, &w->node[i]);
        knew[i] = strcmp(w->node[i].lease.identity, p.identity) == 0;
        int64_t its = w->node[i].lease.settle_ms; /* who learns of it now keeps to it from now on */
        keeps_to_it[i] = its > 0 && its <= settle;
        w->node[i].renewed = !reopened || (knew[i] && w->node[i].lease.era < era);
    }
    uint8_t kills = w->set.weight[FAULT_KILL_TORN]; /* who is killed meanwhile is not heard */
    w->set.weight[FAULT_KILL_TORN] = 0;
    schedule_live(w, quarter, 600);
    bool passed = w->now >= quarter;
    uint64_t now;
    (void)server_pool(w->server, &p, &now);
    bool behind =
        coord_pool_behind_until(&p, server_ms(w->server)) > 0; /* nobody is, nor granted */
    for (unsigned i = 0; i < w->set.nodes && !w->failed; i++) {
        struct node *n = &w->node[i];
        if (is_heard(w, n, &p, era))
            continue;
        bool knows = knew[i] && strcmp(n->lease.identity, p.identity) == 0;
        bool dated =
            w->now + n->wall_off >= 0; /* a time before 1970 is refused, and issues nothing */
        bool asks_it = calls_here(w, n) && knows && !behind && dated;
        if (passed && lossless && ran[i] && asks_it && n->phase != KEEPER_WAIT && keeps_to_it[i])
            world_fail(w, "node %u was not heard within a quarter of settle", i);
        bool strange = calls_here(w, n) && !knows;
        for (unsigned k = 0; k < 60 && !is_heard(w, n, &p, era); k++) { /* 5 s: it backs off */
            n->urge_renewal = true;
            n->due_mono = INT64_MIN;
            w->now += 100;
            schedule_keep(w, n);
            (void)server_pool(w->server, &p, &now);
        }
        if (lossless && strange && reopened && !behind && !is_heard(w, n, &p, era))
            world_fail(w, "node %u, of another pool, was not heard", i);
    }
    w->set.weight[FAULT_KILL_TORN] = kills;
    world_count(w, FAULT_BET_WON);
}

static bool goes_back(struct world *w)
{
    return (w->set.settle_ms == 0 || w->unheard || all_can_be_heard(w)) && fault_may_lose(w);
}

static void went_back(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    if (server_pool(w->server, &p, &era)) /* which may be one of another name */
        memcpy(w->identity, p.identity, sizeof w->identity);
    if (w->set.settle_ms > 0 && !w->unheard)
        hear_all(w);
}

static bool restart_with(struct world *w, const struct server_copy *c)
{
    if (!c || !goes_back(w))
        return false;
    world_note(w, "coordinator goes back to %lld", (long long)(c->at_ms - WORLD_EPOCH));
    if (!server_restart(w->server, c, world_chance(w, 30)))
        return false;
    if (world_chance(w, 50))
        w->server->at->clock_off = fault_within_skew(w);
    went_back(w);
    return true;
}

/* All that was granted while the clock was ahead would be lost with it: then a holder that did not
 * run meanwhile, and comes back, may have lost its workerId to another (tests/README.md, "Not
 * closed"). */
static bool was_ahead(const struct world *w)
{
    return w->fence_ms > w->now;
}

bool fault_redis_empty(struct world *w)
{
    if (was_ahead(w) || !fault_may_lose(w))
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
    return restart_with(w, fault_old_copy(w));
}

bool fault_redis_failover(struct world *w)
{
    const struct server_copy *c = recent_copy(w);
    if (!c || !goes_back(w))
        return false;
    if (!server_restart(w->server, c, false))
        return false;
    w->server->at->clock_off = fault_within_skew(w);
    went_back(w);
    return true;
}

/* Of a table that was reopened since it lost anything, the next era can be taken back. */
static void restart_whole(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    bool there = w->set.replicas == 0 && w->down_until <= w->now &&
                 server_repair(w->server, w->identity, NULL, 0) == COORD_OK &&
                 server_pool(w->server, &p, &era);
    w->word_era = there ? (int64_t)era + 1 : 0;
    server_restart_whole(w->server, world_chance(w, 30));
}

bool fault_redis_whole(struct world *w)
{
    restart_whole(w);
    if (!w->wild && world_chance(w, 50))
        w->server->at->clock_off = fault_within_skew(w);
    return true;
}

bool fault_redis_flush(struct world *w)
{
    if (was_ahead(w) || !fault_may_lose(w))
        return false;
    server_lose_pool(w->server, true);
    w->no_pool = true;
    return true;
}

bool fault_redis_evict(struct world *w)
{
    if (was_ahead(w) || !fault_may_lose(w))
        return false;
    server_lose_pool(w->server, false);
    w->no_pool = true;
    return true;
}

/* Before any other, the server runs what n is about to send. */
static enum coord_status call_first(struct world *w, struct node *n)
{
    struct server_call call = {.action = n->action, .wall_ms = node_wall(w, n)};
    bool waits = w->waiting;
    memcpy(call.identity, n->lease.identity, sizeof call.identity);
    w->waiting = true; /* nothing comes between */
    server_run(w->server, &call);
    w->waiting = waits;
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
    const struct server_copy *c = fault_old_copy(w);
    if (!c || s->sqlite || !node_runs(w, n) || n->phase != KEEPER_SEND ||
        n->action.kind != LEASE_RENEW || n->wrong_pool || !fault_may_lose(w))
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

/* Whoever comes next sees it, a newcomer, too. */
bool fault_file_in_place(struct world *w)
{
    const struct server_copy *c = fault_old_copy(w);
    if (!c || !w->server->sqlite || !fault_may_lose(w))
        return false;
    world_note(w, "file goes back to %lld, in place", (long long)(c->at_ms - WORLD_EPOCH));
    return server_set_back(w->server, c);
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

/* It refuses all, since its clock was ahead with others. */
static bool is_behind(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    return server_pool(w->server, &p, &era) &&
           coord_pool_behind_until(&p, server_ms(w->server)) > 0;
}

/* For as long as holders call whose clocks are right: losses may come later all the same, and when
 * it is right again nobody is refused. */
bool fault_redis_clock_day(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    struct server *s = w->server;
    int64_t before = s->at->clock_off;
    bool called = false;
    if (w->wild || w->waiting || is_behind(w))
        return false;
    s->at->clock_off = 24 * HOUR_MS + world_between(w, 0, p->horizon_ms);
    for (unsigned i = 0; i < 3; i++) {
        struct node *n = world_some_node(w);
        if (!node_runs(w, n) || n->phase != KEEPER_SEND || n->wrong_pool ||
            n->action.kind != LEASE_RENEW || llabs(n->wall_off) > p->max_skew_ms)
            continue;
        (void)call_first(w, n);
        called = true;
    }
    s->at->clock_off = before;
    if (!s->sqlite && server_number(s, "tmax") > server_ms(s) + 2 * p->max_skew_ms)
        world_fail(w, "the coordinator's clock was a day ahead, and is believed");
    return called;
}

/* With some of those who call, and a restart, or one that it begins with. Data of before, put in
 * place later, would not know how far: what comes back is of a time since. */
static void is_ahead_for_a_while(struct world *w)
{
    struct member *at = w->server->at;
    int64_t ahead =
        world_between(w, 2 * w->set.params.max_skew_ms + 1, 2 * w->set.params.horizon_ms);
    bool with[WORLD_NODES];
    at->clock_off += ahead;
    for (unsigned i = 0; i < w->set.nodes; i++) {
        with[i] = world_chance(w, 50);
        w->node[i].wall_off += with[i] ? ahead : 0;
    }
    unsigned restarts = world_chance(w, 50) ? 0 : (unsigned)world_between(w, 1, 2);
    if (restarts == 1)
        restart_whole(w);
    schedule_live(w, w->now + world_between(w, 0, 150000), 60);
    if (restarts == 2) {
        restart_whole(w);
        schedule_live(w, w->now + world_between(w, 0, 30000), 20);
    }
    w->fence_ms = max64(w->fence_ms, server_ms(w->server));
    server_forget_copies(w->server);
    server_remember(w->server, w->now);
    at->clock_off -= ahead;
    for (unsigned i = 0; i < w->set.nodes; i++)
        w->node[i].wall_off -= with[i] ? ahead : 0;
}

bool fault_redis_clock_ahead(struct world *w)
{
    if (w->wild || w->waiting || w->seqs || w->set.replicas > 0 || w->down_until > w->now)
        return false;
    if (!is_behind(w)) {
        is_ahead_for_a_while(w);
        if (!is_behind(w) || world_chance(w, 30))
            return true;
    }
    bool taken = server_clock_was_ahead(w->server, w->identity) == COORD_OK;
    if (taken) /* a copy from before would look as of now when the time comes that it was ahead to
                */
        server_forget_copies(w->server);
    server_remember(w->server, w->now);
    return taken;
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

/* The first calls, answered or not, until what the page says is believed or not. */
static void prove(struct world *w, struct node *n, bool away)
{
    for (unsigned i = 0; i < 6 && n->alive && !lease_proven(&n->lease); i++) {
        node_keep(w, n);
        if (n->phase != KEEPER_SEND)
            continue;
        if (away)
            node_answer(w, n, NULL);
        else
            (void)call_first(w, n);
    }
}

/* The latest time that counts as used once the page is believed: that of the clock, within what the
 * page knows of ranges. */
static bool clock_is_within(const struct page *p, int64_t wall)
{
    struct page_record r;
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        if (page_load(p, i, &r) && r.state == PAGE_HELD && r.hi_ms < wall)
            return false;
    return true;
}

/* That is seen through by its generation, or all that it holds is this node's still. Where the
 * clock has gone back since, or goes back later from above a range that the page knows, it is a
 * limit, so here it does not. */
bool fault_may_put_back(struct world *w, struct node *n, const struct page *before)
{
    struct err why;
    return n->has_file && !n->cut && !n->wrong_pool &&
           page_judge(before, &n->home, &why) == PAGE_OWN &&
           (w->set.lease.ahead ||
            (node_wall(w, n) >= ledger_latest(w, n) && clock_is_within(before, node_wall(w, n))));
}

void fault_put_back(struct world *w, struct node *n, const struct page *before)
{
    if (n->alive)
        node_kill(w, n);
    n->page = *before;
    n->back = true;
    world_note(w, "node %u finds its page as it was before", node_number(w, n));
    node_start(w, n);
    seqs_live(w, n);
    if (world_chance(w, 30)) /* what was not proven to the one is not to the other */
        node_upgrade(w, n);
    prove(w, n, world_chance(w, 50));
    n->back = false;
}

/* The same file as before, with contents of before, while nobody runs. */
bool fault_page_back(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!n->has_backup || !fault_may_put_back(w, n, &n->backup))
        return false;
    fault_put_back(w, n, &n->backup);
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool init_after_loss(struct world *w, bool other)
{
    struct coord_init in = {.params = w->set.params,
                            .mode = COORD_INIT_AFTER_LOSS,
                            .settle_ms = w->set.settle_ms,
                            .least_ms = other ? 0 : w->least_ms};
    char uuid[COORD_UUID_TEXT];
    char identity[COORD_IDENTITY_MAX];
    memcpy(identity, w->identity, sizeof identity);
    if (other && coord_identity_make(identity, span_str(coord_uuid_new(uuid, &w->rng)), WORLD_EPOCH,
                                     &w->set.lease.layout, NULL))
        return false;
    memcpy(in.identity, identity, sizeof identity);
    in.identity_said = !other && world_chance(w, 50);
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

/* It is lost, made again under another name, and serves for a while: then its old data come back,
 * which know nothing of whoever was granted something meanwhile. */
bool fault_redis_before(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    if (was_ahead(w) || w->no_pool || !fault_may_lose(w))
        return false;
    server_backup(w->server, SERVER_OLD - 1, w->now);
    server_lose_pool(w->server, true);
    if (!init_after_loss(w, true))
        return false;
    w->now += p->horizon_ms + 2 * p->max_skew_ms + world_between(w, 0, p->horizon_ms);
    schedule_live(w, w->now + p->mature_after_ms + world_between(w, 0, p->first_horizon_ms), 150);
    return restart_with(w, &w->server->old[SERVER_OLD - 1]);
}

/* Its renewal is under way, and will be heard: a clock that shows a time before 1970 is refused. */
static bool is_heard_next(const struct world *w, const struct node *n)
{
    return node_runs(w, n) && n->phase == KEEPER_SEND && n->action.kind == LEASE_RENEW &&
           !n->wrong_pool && n->action.items[0].worker <= w->set.params.worker_to &&
           node_wall(w, n) >= 0;
}

/* As above: the mistake is healed once a holder is heard, which comes first here. */
bool fault_init_fresh(struct world *w)
{
    struct node *n = world_some_node(w);
    struct coord_init in = {.params = w->set.params, .mode = COORD_INIT_FRESH};
    if (was_ahead(w) || !is_heard_next(w, n) || !fault_may_lose(w))
        return false;
    server_lose_pool(w->server, true);
    memcpy(in.identity, w->identity, sizeof in.identity);
    if (server_init(w->server, &in) != COORD_OK)
        return false;
    w->no_pool = false;
    (void)call_first(w, n);
    seqs_made_fresh(w);
    return true;
}

/* One who claims first, and has gone before it issues anything, keeps those of the lost pool from
 * being recognised as its own. */
bool fault_init_stranger(struct world *w)
{
    struct node *n = world_some_node(w);
    struct coord_init in = {.params = w->set.params, .mode = COORD_INIT_FRESH};
    char uuid[COORD_UUID_TEXT];
    if (was_ahead(w) || !is_heard_next(w, n) || !fault_may_lose(w) ||
        coord_identity_make(in.identity, span_str(coord_uuid_new(uuid, &w->rng)), WORLD_EPOCH,
                            &w->set.lease.layout, NULL))
        return false;
    server_lose_pool(w->server, true);
    if (server_init(w->server, &in) != COORD_OK)
        return false;
    w->no_pool = false;
    memcpy(w->identity, in.identity, sizeof in.identity);
    (void)server_claim(w->server, w->identity);
    (void)call_first(w, n);
    seqs_made_fresh(w);
    server_remember(w->server, w->now); /* not before: a state without it is the mistake again */
    return true;
}

bool fault_op_settle(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    struct coord_pool pool;
    uint64_t era;
    if (w->set.settle_ms == 0 || !server_pool(w->server, &pool, &era))
        return false;
    bool longer = world_chance(w, 40);
    int64_t ms = longer ? world_between(w, pool.later.settle_ms, p->horizon_ms)
                        : world_between(w, p->first_horizon_ms, pool.later.settle_ms);
    bool done = server_settle(w->server, w->identity, ms) == COORD_OK;
    if (done)
        w->least_ms = ms < w->least_ms ? ms : w->least_ms;
    server_remember(w->server, w->now);
    return done;
}

/* Some of the wait for four renewals goes by first. */
bool fault_op_word(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    (void)server_repair(w->server, w->identity, NULL, 0);
    if (!server_pool(w->server, &p, &era) || (int64_t)era != w->word_era)
        return false;
    if (world_chance(w, 50))
        schedule_live(w, w->now + 4 * COORD_EVERY_MS + 2 * w->set.params.max_skew_ms, 200);
    bool taken = server_nothing_lost(w->server, w->identity) == COORD_OK;
    server_remember(w->server, w->now);
    return taken;
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

/* Holders may have been heard meanwhile that know more: then only as one that comes back. */
bool fault_op_open(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    if (!server_pool(w->server, &p, &era) || !p.closed)
        return false;
    (void)server_unclose_pool(w->server, w->identity,
                              world_chance(w, 50) ? coord_reach(&p.params) : 0);
    server_remember(w->server, w->now);
    return true;
}
