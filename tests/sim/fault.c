/*
 * What can go wrong. Each function does one thing if the world is such that it can be done.
 */
#include "sim/world.h"

#define HOUR_MS INT64_C(3600000)
#define YEAR_MS (8766 * HOUR_MS)

const char *const fault_names[FAULTS] = {
    [FAULT_KILL] = "SIGKILL",
    [FAULT_KILL_TORN] = "SIGKILL between two stores to the page",
    [FAULT_STOP] = "SIGSTOP, SIGCONT",
    [FAULT_TERM_RETURN] = "SIGTERM, workerIds given back",
    [FAULT_TERM_KEEP] = "SIGTERM, workerIds kept in the page",
    [FAULT_PAGE_LOST] = "page lost",
    [FAULT_PAGE_COPIED] = "page copied to another node",
    [FAULT_PAGE_OLD] = "old copy of the page put in its place",
    [FAULT_PAGE_CUT] = "page truncated",
    [FAULT_PAGE_FLIP] = "bit of the page flipped",
    [FAULT_REBOOT] = "reboot",
    [FAULT_CLOCK_SMALL] = "clock stepped a little",
    [FAULT_CLOCK_EDGE] = "clock set to an edge of a range",
    [FAULT_CLOCK_YEARS] = "clock stepped by up to 10 years",
    [FAULT_CLOCK_RIGHT] = "clock put right",
    [FAULT_CLOCK_ALL_BACK] = "all clocks back by 1 s",
    [FAULT_REDIS_EMPTY] = "coordinator restarted without its data",
    [FAULT_REDIS_SUFFIX] = "coordinator restarted without its last writes",
    [FAULT_REDIS_WHOLE] = "coordinator restarted with all data",
    [FAULT_REDIS_OLD] = "old backup of the coordinator restored",
    [FAULT_REDIS_FLUSH] = "FLUSHALL, or file deleted",
    [FAULT_REDIS_EVICT] = "hash evicted, queue and index left",
    [FAULT_REDIS_FAILOVER] = "failover to a lagging replica",
    [FAULT_REDIS_IN_PLACE] = "rewound under the same fingerprint, seen by a holder",
    [FAULT_REDIS_CLOCK] = "coordinator's clock stepped within S",
    [FAULT_REDIS_CLOCK_WILD] = "coordinator's clock wrong by up to years",
    [FAULT_REDIS_DOWN] = "coordinator down for 1 s to hours",
    [FAULT_QUEUE_DOUBLED] = "queue entry doubled",
    [FAULT_QUEUE_LOST] = "queue lost",
    [FAULT_INDEX_LOST] = "index of held workerIds lost",
    [FAULT_INIT_SAME] = "init --after-loss with the old uuid",
    [FAULT_INIT_OTHER] = "init --after-loss with a new uuid",
    [FAULT_INIT_FRESH] = "init --fresh by mistake, seen by a holder",
    [FAULT_OP_EVICT] = "operator evicts a workerId",
    [FAULT_OP_REPAIR] = "operator repairs queue and index",
    [FAULT_OP_CLOSE] = "operator closes the pool",
    [FAULT_WRONG_POOL] = "node talks to another pool",
    [FAULT_PARTITION] = "node cut off",
    [FAULT_NET_LOST_REQUEST] = "request lost",
    [FAULT_NET_LOST_REPLY] = "reply lost",
    [FAULT_NET_DOUBLED] = "request doubled",
    [FAULT_NET_LATE] = "request run again much later",
    [FAULT_LIFE_NO_DIR] = "node without state_dir",
    [FAULT_LIFE_EPOCH_END] = "end of the epoch",
    [FAULT_LIFE_FLEET] = "dozens of nodes",
};

static struct node *some_node(struct world *w)
{
    return &w->node[world_draw(w, w->set.nodes)];
}

static unsigned number(const struct world *w, const struct node *n)
{
    return (unsigned)(n - w->node);
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool kill_one(struct world *w)
{
    struct node *n = some_node(w);
    if (!n->alive)
        return false;
    world_note(w, "node %u is killed", number(w, n));
    node_kill(w, n);
    return true;
}

static bool kill_torn(struct world *w)
{
    struct node *n = some_node(w);
    if (!node_runs(w, n) || n->phase != KEEPER_READY || !n->has_dir)
        return false;
    world_note(w, "node %u is killed within a store", number(w, n));
    node_kill_torn(w, n, NULL);
    return true;
}

static bool stop_one(struct world *w)
{
    struct node *n = some_node(w);
    if (!n->alive)
        return false;
    int64_t ms =
        world_chance(w, 50) ? world_between(w, 0, 30000) : world_between(w, 0, 3 * HOUR_MS);
    n->stopped_until = n->stopped_until > w->now ? 0 : w->now + ms;
    world_note(w, "node %u stopped for %lld ms", number(w, n),
               (long long)(n->stopped_until ? ms : 0));
    return true;
}

static bool term(struct world *w, bool give_back)
{
    struct node *n = some_node(w);
    if (!node_runs(w, n) || n->stopping)
        return false;
    world_note(w, "node %u is told to end", number(w, n));
    node_term(w, n, give_back);
    return true;
}

static bool term_return(struct world *w)
{
    return term(w, true);
}

static bool term_keep(struct world *w)
{
    return term(w, false);
}

/* ---- pages: those of dead processes, but for the copy ---------------------------------------- */

static struct node *dead_with_page(struct world *w)
{
    struct node *n = some_node(w);
    return !n->alive && n->has_file ? n : NULL;
}

static bool page_lost(struct world *w)
{
    struct node *n = dead_with_page(w);
    if (!n)
        return false;
    world_note(w, "node %u loses its page", number(w, n));
    n->has_file = false;
    return true;
}

/* The copy is another file on a machine of its own; or, half of the time, on the same machine. */
static bool page_copied(struct world *w)
{
    struct node *from = some_node(w), *to = some_node(w);
    if (from == to || !from->has_file || to->alive || !to->has_dir)
        return false;
    world_note(w, "node %u gets a copy of the page of node %u", number(w, to), number(w, from));
    to->page = from->page;
    to->has_file = true;
    to->cut = false;
    to->home.inode = ++w->inodes;
    if (world_chance(w, 50))
        memcpy(to->home.boot, from->home.boot, sizeof to->home.boot);
    return true;
}

static bool page_old(struct world *w)
{
    struct node *n = some_node(w);
    if (n->alive || !n->has_backup || !n->has_dir)
        return false;
    world_note(w, "node %u gets an old copy of its page", number(w, n));
    n->page = n->backup;
    n->has_file = true;
    n->home.inode = ++w->inodes;
    return true;
}

static bool page_cut(struct world *w)
{
    struct node *n = dead_with_page(w);
    if (!n)
        return false;
    world_note(w, "page of node %u truncated", number(w, n));
    n->cut = true;
    return true;
}

/* Where it matters most, most of the time. */
static size_t telling_byte(struct world *w)
{
    static const size_t copy[] = {
        offsetof(struct page_copy, version), offsetof(struct page_copy, n),
        offsetof(struct page_copy, lo_ms),   offsetof(struct page_copy, hi_ms),
        offsetof(struct page_copy, worker),  offsetof(struct page_copy, state),
    };
    static const size_t cell[] = {offsetof(struct page_slot, commit),
                                  offsetof(struct page_slot, mark)};
    size_t slot = offsetof(struct page, slot) + world_draw(w, 2) * sizeof(struct page_slot);
    if (world_chance(w, 40))
        return slot + cell[world_draw(w, 2)] + world_draw(w, 5);
    return slot + world_draw(w, 2) * sizeof(struct page_copy) +
           copy[world_draw(w, sizeof copy / sizeof *copy)] + world_draw(w, 3);
}

static bool page_flip(struct world *w)
{
    struct node *n = dead_with_page(w);
    if (!n)
        return false;
    size_t at = world_chance(w, 70) ? telling_byte(w) : world_draw(w, sizeof n->page);
    unsigned bit = (unsigned)world_draw(w, 8);
    uint8_t *byte = (uint8_t *)&n->page + at;
    world_note(w, "bit %u of byte %zu of the page of node %u flipped", bit, at, number(w, n));
    *byte = (uint8_t)(*byte ^ 1u << bit);
    return true;
}

/* The page as the disk has it: marks, and whole sectors, of any time before. */
static bool reboot(struct world *w)
{
    struct node *n = some_node(w);
    world_note(w, "node %u reboots", number(w, n));
    if (n->alive)
        node_kill(w, n);
    for (unsigned i = 0; i < sizeof n->home.boot; i++)
        n->home.boot[i] = (uint8_t)world_draw(w, 256);
    n->mono_off = -w->now;
    n->stopped_until = 0;
    unsigned percent = world_chance(w, 60) ? 100 : world_chance(w, 50) ? 30 : 0;
    for (size_t at = 0; n->has_backup && at < sizeof n->page; at += 512)
        if (world_chance(w, percent))
            memcpy((char *)&n->page + at, (const char *)&n->backup + at, 512);
    return true;
}

/* ---- clocks of nodes ------------------------------------------------------------------------- */

static bool step_clock(struct world *w, struct node *n, int64_t off)
{
    world_note(w, "clock of node %u: %+lld ms, was %+lld", number(w, n), (long long)off,
               (long long)n->wall_off);
    n->wall_off = off;
    return true;
}

static bool clock_small(struct world *w)
{
    struct node *n = some_node(w);
    int64_t most = world_chance(w, 50) ? 20 : 4 * w->set.params.max_skew_ms;
    return step_clock(w, n, n->wall_off + world_between(w, -most, most));
}

static bool clock_edge(struct world *w)
{
    int64_t off;
    struct node *n = some_node(w);
    return step_clock(w, n, world_edge(w, &off) - w->now);
}

static bool clock_years(struct world *w)
{
    struct node *n = some_node(w);
    static const int64_t most[] = {HOUR_MS, 24 * HOUR_MS, YEAR_MS, 10 * YEAR_MS};
    int64_t m = most[world_draw(w, sizeof most / sizeof *most)];
    return step_clock(w, n, n->wall_off + world_between(w, -m, m));
}

static int64_t within_skew(struct world *w)
{
    int64_t s = w->set.params.max_skew_ms;
    const int64_t offs[] = {-s, s, 0, world_between(w, -s, s)};
    return offs[world_draw(w, sizeof offs / sizeof *offs)];
}

/* Right may still be S off, and S off the coordinator's clock, which is what claims are held to. */
static bool clock_right(struct world *w)
{
    struct node *n = some_node(w);
    bool all = world_chance(w, 50);
    for (unsigned i = 0; i < w->set.nodes; i++)
        if (all || &w->node[i] == n)
            (void)step_clock(w, &w->node[i],
                             within_skew(w) + (world_chance(w, 50) ? w->server_off : 0));
    return true;
}

static bool clock_all_back(struct world *w)
{
    for (unsigned i = 0; i < w->set.nodes; i++)
        w->node[i].wall_off -= 1000;
    return true;
}

/* ---- the coordinator ------------------------------------------------------------------------- */

/* What is lost is made up for by floors that follow this clock: it must be right within S. */
static bool may_lose(struct world *w)
{
    w->lossy = !w->wild;
    return w->lossy;
}

static const struct server_copy *recent_copy(struct world *w)
{
    struct server *s = w->server;
    unsigned back = 1 + (unsigned)world_draw(w, world_chance(w, 50) ? 4 : SERVER_RECENT);
    if (back > s->nrecent)
        return NULL;
    const struct server_copy *c = &s->recent[(s->nrecent - back) % SERVER_RECENT];
    return c->used ? c : NULL;
}

static const struct server_copy *old_copy(struct world *w)
{
    const struct server_copy *c = &w->server->old[world_draw(w, SERVER_OLD)];
    return c->used ? c : recent_copy(w);
}

static bool restart_with(struct world *w, const struct server_copy *c)
{
    if (!c || !may_lose(w))
        return false;
    world_note(w, "coordinator goes back to %lld", (long long)(c->at_ms - WORLD_EPOCH));
    server_restart(w->server, c, world_chance(w, 30));
    if (world_chance(w, 50))
        w->server_off = within_skew(w);
    return true;
}

static bool redis_empty(struct world *w)
{
    if (!may_lose(w))
        return false;
    server_restart_empty(w->server, world_chance(w, 30));
    w->no_pool = true;
    return true;
}

static bool redis_suffix(struct world *w)
{
    return restart_with(w, recent_copy(w));
}

static bool redis_old(struct world *w)
{
    return restart_with(w, old_copy(w));
}

static bool redis_failover(struct world *w)
{
    const struct server_copy *c = recent_copy(w);
    if (!c || !may_lose(w))
        return false;
    server_restart(w->server, c, false);
    w->server_off = within_skew(w);
    return true;
}

static bool redis_whole(struct world *w)
{
    server_restart_whole(w->server, world_chance(w, 30));
    if (!w->wild && world_chance(w, 50))
        w->server_off = within_skew(w);
    return true;
}

static bool redis_flush(struct world *w)
{
    if (!may_lose(w))
        return false;
    server_lose_pool(w->server, true);
    w->no_pool = true;
    return true;
}

static bool redis_evict(struct world *w)
{
    if (!may_lose(w))
        return false;
    server_lose_pool(w->server, false);
    w->no_pool = true;
    return true;
}

/* Before any other, the server runs what n is about to send. */
static void call_first(struct world *w, struct node *n)
{
    struct server_call call = {.action = n->action, .wall_ms = node_wall(w, n)};
    memcpy(call.identity, n->lease.identity, sizeof call.identity);
    server_run(w->server, &call, world_server_ms(w));
    node_answer(w, n, &call);
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
static bool redis_in_place(struct world *w)
{
    struct server *s = w->server;
    struct node *n = some_node(w);
    const struct server_copy *c = old_copy(w);
    if (!c || s->sqlite || !node_runs(w, n) || n->phase != KEEPER_SEND ||
        n->action.kind != LEASE_RENEW || n->wrong_pool || !may_lose(w))
        return false;
    server_backup(s, SERVER_OLD - 1, w->now);
    if (c != &s->old[SERVER_OLD - 1])
        server_rewind_in_place(s, c);
    if (!proves_rewind(s, &n->action)) {
        server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
        return false;
    }
    world_note(w, "coordinator goes back to %lld, in place", (long long)(c->at_ms - WORLD_EPOCH));
    call_first(w, n);
    return true;
}

static bool redis_clock(struct world *w)
{
    if (w->wild)
        return false;
    w->server_off = within_skew(w);
    return true;
}

static bool redis_clock_wild(struct world *w)
{
    if (w->lossy)
        return false;
    w->wild = true;
    w->server_off = world_chance(w, 30) ? within_skew(w) : world_between(w, -YEAR_MS, YEAR_MS);
    if (world_chance(w, 50))
        w->server_off =
            world_between(w, -5 * w->set.params.horizon_ms, 5 * w->set.params.horizon_ms);
    for (unsigned i = 0; i < w->set.nodes; i++)
        if (world_chance(w, 50))
            w->node[i].wall_off = w->server_off;
    return true;
}

static bool redis_down(struct world *w)
{
    w->down_until = w->now + world_between(w, 1000, world_chance(w, 70) ? 300000 : 5 * HOUR_MS);
    return true;
}

static uint16_t some_worker(struct world *w)
{
    return (uint16_t)world_between(w, w->set.params.worker_from, w->set.params.worker_to);
}

static bool queue_doubled(struct world *w)
{
    server_double(w->server, some_worker(w), world_chance(w, 50));
    return true;
}

static bool queue_lost(struct world *w)
{
    server_lose_queue(w->server);
    return true;
}

static bool index_lost(struct world *w)
{
    server_lose_index(w->server);
    return true;
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
    if (server_init(w->server, &in, world_server_ms(w)) != COORD_OK)
        return false;
    memcpy(w->identity, identity, sizeof identity);
    server_remember(w->server, w->now);
    return true;
}

static bool init_same(struct world *w)
{
    return init_after_loss(w, false);
}

static bool init_other(struct world *w)
{
    return init_after_loss(w, true);
}

/* As above: the mistake is healed once a holder is heard, which comes first here. */
static bool init_fresh(struct world *w)
{
    struct node *n = some_node(w);
    struct coord_init in = {.params = w->set.params, .mode = COORD_INIT_FRESH};
    if (!node_runs(w, n) || n->phase != KEEPER_SEND || n->action.kind != LEASE_RENEW ||
        n->wrong_pool || n->action.items[0].worker > in.params.worker_to || !may_lose(w))
        return false;
    server_lose_pool(w->server, true);
    memcpy(in.identity, w->identity, sizeof in.identity);
    if (server_init(w->server, &in, world_server_ms(w)) != COORD_OK)
        return false;
    w->no_pool = false;
    call_first(w, n);
    return true;
}

static bool op_evict(struct world *w)
{
    (void)server_evict(w->server, w->identity, some_worker(w), world_server_ms(w));
    server_remember(w->server, w->now);
    return true;
}

static bool op_repair(struct world *w)
{
    uint16_t workers[WORLD_WORKERS];
    size_t n = 0;
    for (uint16_t i = w->set.params.worker_from; i <= w->set.params.worker_to; i++)
        workers[n++] = i;
    (void)server_repair(w->server, w->identity, workers, n, world_server_ms(w));
    return true;
}

static bool op_close(struct world *w)
{
    if (!world_chance(w, 10))
        return false;
    (void)server_close_pool(w->server, w->identity, world_server_ms(w));
    return true;
}

/* ---- the network ----------------------------------------------------------------------------- */

static bool wrong_pool(struct world *w)
{
    struct node *n = some_node(w);
    if (!w->other)
        return false;
    n->wrong_pool = !n->wrong_pool;
    world_note(w, "node %u talks to the %s pool", number(w, n), n->wrong_pool ? "other" : "right");
    return true;
}

static bool partition(struct world *w)
{
    struct node *n = some_node(w);
    n->partitioned = !n->partitioned;
    return false; /* counted when a request is lost */
}

/* ---- which, and how often -------------------------------------------------------------------- */

static const struct {
    bool (*run)(struct world *); /* NULL: it is in the network, or a setting */
    uint8_t weight;
} faults[FAULTS] = {
    [FAULT_KILL] = {kill_one, 30},
    [FAULT_KILL_TORN] = {kill_torn, 20},
    [FAULT_STOP] = {stop_one, 20},
    [FAULT_TERM_RETURN] = {term_return, 15},
    [FAULT_TERM_KEEP] = {term_keep, 10},
    [FAULT_PAGE_LOST] = {page_lost, 20},
    [FAULT_PAGE_COPIED] = {page_copied, 30},
    [FAULT_PAGE_OLD] = {page_old, 20},
    [FAULT_PAGE_CUT] = {page_cut, 5},
    [FAULT_PAGE_FLIP] = {page_flip, 10},
    [FAULT_REBOOT] = {reboot, 10},
    [FAULT_CLOCK_SMALL] = {clock_small, 20},
    [FAULT_CLOCK_EDGE] = {clock_edge, 30},
    [FAULT_CLOCK_YEARS] = {clock_years, 8},
    [FAULT_CLOCK_RIGHT] = {clock_right, 40},
    [FAULT_CLOCK_ALL_BACK] = {clock_all_back, 4},
    [FAULT_REDIS_EMPTY] = {redis_empty, 8},
    [FAULT_REDIS_SUFFIX] = {redis_suffix, 15},
    [FAULT_REDIS_WHOLE] = {redis_whole, 10},
    [FAULT_REDIS_OLD] = {redis_old, 15},
    [FAULT_REDIS_FLUSH] = {redis_flush, 6},
    [FAULT_REDIS_EVICT] = {redis_evict, 4},
    [FAULT_REDIS_FAILOVER] = {redis_failover, 15},
    [FAULT_REDIS_IN_PLACE] = {redis_in_place, 15},
    [FAULT_REDIS_CLOCK] = {redis_clock, 20},
    [FAULT_REDIS_CLOCK_WILD] = {redis_clock_wild, 6},
    [FAULT_REDIS_DOWN] = {redis_down, 5},
    [FAULT_QUEUE_DOUBLED] = {queue_doubled, 20},
    [FAULT_QUEUE_LOST] = {queue_lost, 3},
    [FAULT_INDEX_LOST] = {index_lost, 3},
    [FAULT_INIT_SAME] = {init_same, 30},
    [FAULT_INIT_OTHER] = {init_other, 15},
    [FAULT_INIT_FRESH] = {init_fresh, 15},
    [FAULT_OP_EVICT] = {op_evict, 10},
    [FAULT_OP_REPAIR] = {op_repair, 6},
    [FAULT_OP_CLOSE] = {op_close, 2},
    [FAULT_WRONG_POOL] = {wrong_pool, 5},
    [FAULT_PARTITION] = {partition, 10},
    [FAULT_NET_LOST_REQUEST] = {NULL, 1},
    [FAULT_NET_LOST_REPLY] = {NULL, 1},
    [FAULT_NET_DOUBLED] = {NULL, 1},
    [FAULT_NET_LATE] = {NULL, 1},
};

/* A part of all faults in each schedule: many at once hide each other. */
void fault_draw_weights(struct world *w)
{
    unsigned percent = (unsigned)world_between(w, 10, 90);
    for (unsigned f = 0; f < FAULTS; f++)
        w->set.weight[f] = world_chance(w, percent) ? faults[f].weight : 0;
    if (w->set.weight[FAULT_INIT_OTHER] == 0)
        w->set.weight[FAULT_INIT_SAME] = faults[FAULT_INIT_SAME].weight;
    w->set.weight[FAULT_CLOCK_RIGHT] = faults[FAULT_CLOCK_RIGHT].weight;
}

/* Loss, late messages and processes that live on, while all clocks are within S: what the floors
 * and the re-assertion are for. */
void fault_draw_rewinds(struct world *w)
{
    static const enum fault about[] = {
        FAULT_KILL,        FAULT_STOP,        FAULT_TERM_RETURN,    FAULT_TERM_KEEP,
        FAULT_PAGE_LOST,   FAULT_PAGE_COPIED, FAULT_REDIS_SUFFIX,   FAULT_REDIS_SUFFIX,
        FAULT_REDIS_OLD,   FAULT_REDIS_WHOLE, FAULT_REDIS_FAILOVER, FAULT_REDIS_IN_PLACE,
        FAULT_REDIS_CLOCK, FAULT_REDIS_EMPTY, FAULT_OP_EVICT,       FAULT_NET_LOST_REPLY,
        FAULT_NET_LATE,    FAULT_NET_DOUBLED, FAULT_CLOCK_RIGHT,    FAULT_CLOCK_RIGHT,
    };
    for (unsigned i = 0; i < sizeof about / sizeof *about; i++)
        if (world_chance(w, 60))
            w->set.weight[about[i]] = faults[about[i]].weight;
    w->set.weight[FAULT_REDIS_SUFFIX] = faults[FAULT_REDIS_SUFFIX].weight;
    w->set.weight[FAULT_PARTITION] *= 2;
    w->set.weight[FAULT_OP_EVICT] *= 2;
    w->set.weight[FAULT_INIT_SAME] = faults[FAULT_INIT_SAME].weight;
}

void fault_heal_pool(struct world *w)
{
    enum fault f =
        w->set.weight[FAULT_INIT_OTHER] && world_chance(w, 40) ? FAULT_INIT_OTHER : FAULT_INIT_SAME;
    if (faults[f].run(w))
        world_count(w, f);
}

void fault_step(struct world *w)
{
    uint64_t sum = 0;
    for (unsigned f = 0; f < FAULTS; f++)
        sum += faults[f].run ? w->set.weight[f] : 0;
    uint64_t at = world_draw(w, sum);
    for (unsigned f = 0; f < FAULTS; f++) {
        uint64_t weight = faults[f].run ? w->set.weight[f] : 0;
        if (at < weight) {
            if (faults[f].run(w))
                world_count(w, (enum fault)f);
            return;
        }
        at -= weight;
    }
}
