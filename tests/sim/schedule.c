#include "sim/seqs.h"

#define HOUR_MS INT64_C(3600000)

/* ---- chance: a stream for each step, from the seed ------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static void fill(struct rng *r, void *out, size_t n)
{
    struct world *w = (struct world *)(void *)((char *)r - offsetof(struct world, rng));
    for (char *p = out; n > 0;) {
        uint64_t v = mix(w->stream += UINT64_C(0x9E3779B97F4A7C15));
        size_t k = n < sizeof v ? n : sizeof v;
        memcpy(p, &v, k);
        p += k;
        n -= k;
    }
}

static void begin_stream(struct world *w, unsigned step)
{
    w->step = step;
    w->stream = mix(w->seed + UINT64_C(0x9E3779B97F4A7C15)) ^ mix(step + 1);
}

/* ---- settings -------------------------------------------------------------------------------- */

#define PICK(w, ...)                                                                               \
    ((const int64_t[]){                                                                            \
        __VA_ARGS__})[world_draw(w, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))]

/* Mostly the least that coord_params_check allows, so that every margin is met often. */
static void draw_params(struct world *w)
{
    struct coord_params *p = &w->set.params;
    *p = coord_params_default;
    p->worker_to = (uint16_t)(world_draw(w, 8));
    if (world_chance(w, 15))
        return;
    p->max_skew_ms = PICK(w, 1, 1, 2, 3, 10, 100, 1000, 2000, 5000);
    p->first_horizon_ms = 15001 + PICK(w, 0, 0, 1, 5000, 15000);
    p->mature_after_ms = 20001 + PICK(w, 0, 0, 1, 10000, 100000);
    p->horizon_ms = 60000 + PICK(w, 0, 0, 1, 60000, 3540000);
    p->grace_ms = PICK(w, 0, 0, 1, 1000, 5000, 60000);
}

static void draw_lease(struct world *w)
{
    struct lease_config *l = &w->set.lease;
    *l = (struct lease_config){.active = (unsigned)PICK(w, 1, 1, 1, 2, 3),
                               .spare = (unsigned)PICK(w, 0, 1, 1, 2),
                               .renew_ms = PICK(w, 1000, 5000, 20000),
                               .rotation_jitter_ms = PICK(w, 0, 0, 30000),
                               .stop_ms = PICK(w, 0, 5000),
                               .epoch_pinned = world_chance(w, 50),
                               .layout = layout_usual,
                               .epoch_ms = WORLD_EPOCH};
    w->set.wait_below_ms = PICK(w, 0, 1, 15, 15, 1000);
}

/* Units of several ms, the workerId below the sequence, few sequences, and another order of bits.
 */
static void draw_layout(struct world *w)
{
    static const char *const others[] = {
        "twitter",
        "sonyflake",
        "js53",
        "time:35,unit=1s worker:8 sequence:10",
        "time:40,unit=37ms worker:6 zero:3 sequence:4 zero:2",
        "time:38,unit=250ms zero:1 sequence:3 worker:10",
    };
    struct layout *l = &w->set.lease.layout;
    if (!w->layouts)
        return;
    if (layout_parse(span_str(others[world_draw(w, sizeof others / sizeof *others)]), l, NULL))
        world_fail(w, "no layout");
    if (layout_worker_is_lowest(l))
        w->set.lease.active = 1;
}

/* Few sequences, so that what is borrowed gets far; and the usual layout in its turn. */
#define BORROWS_FAR "time:35,unit=1s worker:8 sequence:2"
static void draw_ahead(struct world *w)
{
    struct setting *s = &w->set;
    if (!w->ahead)
        return;
    int64_t how = world_between(w, 1, 3);
    s->borrow = how & 1;
    s->hold = s->lease.rising = how & 2;
    s->lease.ahead = true;
    if (world_chance(w, 50) && layout_parse(SPAN(BORROWS_FAR), &s->lease.layout, NULL))
        world_fail(w, "no layout");
    if (world_chance(w, 20))
        s->lease.layout = layout_usual;
}

/* K is half of the nodes: it and the master are a majority. Half of the schedules are about two
 * masters that both live for long, each with some nodes and replicas. */
static void draw_replicas(struct world *w)
{
    struct setting *s = &w->set;
    s->replicas = 0;
    s->params.replicas = 0;
    if (s->sqlite || !world_chance(w, 25))
        return;
    world_count(w, FAULT_LIFE_REPLICAS);
    s->replicas = (unsigned)world_between(w, 1, GROUP_MAX - 1);
    s->catch_up_percent = (unsigned)PICK(w, 30, 60, 90, 100);
    s->meanwhile_percent = (unsigned)PICK(w, 0, 10, 30, 60);
    s->stale_percent = (unsigned)PICK(w, 0, 0, 50);
    s->astray_percent = 10;
    fault_draw_failovers(w);
    if (world_chance(w, 50)) {
        s->replicas = GROUP_MAX - 1;
        s->catch_up_percent = (unsigned)PICK(w, 90, 100);
        s->stale_percent = 100;
        s->astray_percent = 1;
        s->fault_percent = (unsigned)PICK(w, 3, 6, 10);
        s->nodes = (unsigned)world_between(w, 3, 4);
        s->params.worker_to = (uint16_t)world_between(w, 0, 2);
        s->lease.active = 1;
        s->lease.spare = 0;
    }
    s->params.replicas = (s->replicas + 1) / 2;
}

static void draw_setting(struct world *w)
{
    struct setting *s = &w->set;
    memset(s->weight, 0, sizeof s->weight);
    s->borrow = s->hold = false;
    s->sqlite = w->server->sqlite;
    draw_params(w);
    draw_lease(w);
    draw_layout(w);
    draw_ahead(w);
    s->nodes = (unsigned)world_between(w, 2, 6);
    s->steps = (unsigned)PICK(w, 60, 100, 150, 250, 400);
    s->fault_percent = (unsigned)PICK(w, 5, 10, 20, 30);
    s->copies_percent = (unsigned)PICK(w, 3, 6, 20, 40);
    if (world_chance(w, 50)) {
        fault_draw_weights(w);
    } else {
        fault_draw_rewinds(w);
        s->nodes = (unsigned)world_between(w, 2, 4);
        s->params.worker_to = (uint16_t)world_draw(w, 3);
        s->lease.active = 1;
        if (world_chance(w, 50)) /* so that what is 1 S wide is met */
            s->params.max_skew_ms = 5000;
    }
    w->now = WORLD_EPOCH + world_between(w, 24 * HOUR_MS, 50000 * HOUR_MS);
    if (world_chance(w, 3)) {
        world_count(w, FAULT_LIFE_FLEET);
        s->nodes = (unsigned)world_between(w, 12, WORLD_NODES);
        s->params.worker_to = (uint16_t)world_between(w, 7, 31);
        s->steps = 600;
    }
    if (world_chance(w, 4)) {
        world_count(w, FAULT_LIFE_EPOCH_END);
        w->now = layout_end_ms(&s->lease.layout, WORLD_EPOCH) -
                 world_between(w, 0, 3 * s->params.horizon_ms);
    }
    draw_replicas(w);
    s->lease.auto_init = s->sqlite && world_chance(w, 50);
    if (s->lease.auto_init)
        world_count(w, FAULT_LIFE_AUTO_INIT);
    s->fixed = !s->sqlite && s->replicas == 0 && !w->ahead && world_chance(w, 15);
    s->settle_ms = 0;
    if (s->replicas == 0 && s->nodes <= 6 && world_chance(w, 30)) {
        const struct coord_params *p = &s->params;
        int64_t longer = world_between(w, p->first_horizon_ms, p->horizon_ms - 1);
        s->settle_ms = world_chance(w, 60) ? p->first_horizon_ms : longer;
    }
}

static int64_t skewed(struct world *w)
{
    int64_t s = w->set.params.max_skew_ms;
    return PICK(w, -s, s, 0, world_between(w, -s, s));
}

static void place_nodes(struct world *w)
{
    for (unsigned i = 0; i < w->set.nodes; i++) {
        struct node *n = &w->node[i];
        memset(n, 0, sizeof *n);
        n->wall_off = skewed(w) + (world_chance(w, 60) ? w->server->at->clock_off : 0);
        n->mono_off = -w->now + world_between(w, 0, HOUR_MS);
        n->home.boot[0] = (uint8_t)i;
        n->has_dir = world_chance(w, 85);
        if (!n->has_dir)
            world_count(w, FAULT_LIFE_NO_DIR);
    }
}

static void make_pool(struct world *w, struct server *s, char identity[COORD_IDENTITY_MAX],
                      uint16_t from, uint16_t to)
{
    bool main = s == w->server;
    char uuid[COORD_UUID_TEXT];
    struct coord_init in = {
        .params = w->set.params, .mode = COORD_INIT_FRESH, .settle_ms = w->set.settle_ms};
    in.params.worker_from = from;
    in.params.worker_to = to;
    if (!main)
        in.params.replicas = 0;
    server_reset(s, main ? w->set.replicas + 1 : 1);
    if (coord_identity_make(in.identity, span_str(coord_uuid_new(uuid, &w->rng)), WORLD_EPOCH,
                            &w->set.lease.layout, NULL) ||
        server_init(s, &in) != COORD_OK)
        world_fail(w, "cannot make a pool");
    memcpy(identity, in.identity, COORD_IDENTITY_MAX);
}

void schedule_begin(struct world *w, uint64_t seed, const struct setting *given)
{
    w->seed = seed;
    w->rng.fill = fill;
    begin_stream(w, 0);
    w->failed = w->wild = w->lossy = w->no_pool = w->waiting = false;
    w->losses = 0;
    w->word_era = w->fence_ms = 0;
    w->digest = seed;
    w->down_until = 0;
    w->ntenure = 0;
    w->inodes = 0;
    ledger_clear();
    for (unsigned i = 0; i < WORLD_FLIGHTS; i++)
        w->flight[i].used = false;
    if (given) {
        w->set = *given;
        w->now = WORLD_EPOCH + 24 * HOUR_MS;
    } else {
        draw_setting(w);
    }
    if (w->seqs) {
        w->set.fixed = false;
        w->set.weight[FAULT_WRONG_POOL] = 0; /* its sequences would be others */
    }
    for (unsigned i = 0; i <= w->set.replicas; i++)
        w->server->group.member[i].clock_off = skewed(w);
    w->server->at = w->server->group.member;
    w->server->true_ms = &w->now;
    w->server->acknowledged = failover_acknowledged;
    w->server->world = w;
    w->least_ms = w->set.settle_ms;
    place_nodes(w);
    if (w->set.fixed) {
        world_count(w, FAULT_LIFE_FIXED);
        fixed_place(w);
    }
    make_pool(w, w->server, w->identity, 0, w->set.params.worker_to);
    seqs_begin(w);
    server_remember(w->server, w->now);
    if (!w->other)
        return;
    w->other->true_ms = &w->now;
    w->other->at->clock_off = w->server->at->clock_off;
    if (w->set.weight[FAULT_WRONG_POOL])
        make_pool(w, w->other, w->other_identity, 40, 47);
}

/* ---- steps ----------------------------------------------------------------------------------- */

void schedule_keep(struct world *w, struct node *n)
{
    for (unsigned i = 0; i < 3 && node_runs(w, n) && n->phase != KEEPER_WAIT; i++)
        node_keep(w, n);
    if (node_runs(w, n) && n->phase == KEEPER_WAIT)
        net_round_trip(w, n);
}

static void keep_step(struct world *w, struct node *n)
{
    if (!node_runs(w, n))
        return;
    if (n->phase != KEEPER_WAIT)
        node_keep(w, n);
    else if (world_chance(w, 15))
        node_answer(w, n, NULL); /* timed out */
}

static void serve_some(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!node_runs(w, n))
        return;
    node_serve(w, n);
    if (n->has_file && world_chance(w, 10)) {
        n->backup = n->page;
        n->has_backup = true;
    }
}

static void start_some(struct world *w)
{
    struct node *n = world_some_node(w);
    if (n->alive)
        return;
    if (world_chance(w, 40))
        n->wall_off = skewed(w) + w->server->at->clock_off;
    if (w->set.fixed)
        fixed_start(w, n);
    else
        node_start(w, n);
}

/* Whose keeper is due, runs; everybody serves. */
void schedule_live(struct world *w, int64_t end, unsigned turns)
{
    for (unsigned i = 0; i < turns && w->now < end && !w->failed; i++) {
        int64_t next = end;
        for (unsigned k = 0; k < w->set.nodes; k++) {
            struct node *n = &w->node[k];
            seqs_live(w, n);
            if (!node_runs(w, n) || w->failed)
                continue;
            if (n->phase == KEEPER_READY && n->due_mono > node_mono(w, n)) {
                int64_t due = n->due_mono - n->mono_off;
                next = due < next ? due : next;
                continue;
            }
            schedule_keep(w, n);
            if (w->failed)
                return;
            if (node_runs(w, n))
                node_serve(w, n);
            int64_t due = n->due_mono == INT64_MIN ? w->now : n->due_mono - n->mono_off;
            next = due < next ? due : next;
        }
        w->now = next > w->now ? next : w->now + 1;
    }
}

static void calm(struct world *w)
{
    schedule_live(w, w->now + world_between(w, 0, world_chance(w, 50) ? 30000 : 150000), 40);
}

static void pass_time(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    int64_t off, ms;
    uint64_t kind = world_draw(w, 100);
    if (kind < 45) {
        w->now += world_between(w, 0, 3);
    } else if (kind < 65) {
        int64_t t = world_edge(w, &off) - off;
        if (t > w->now && t < w->now + 2 * p->horizon_ms)
            w->now = t;
    } else if (kind < 75) {
        ms = PICK(w, p->max_skew_ms, 2 * p->max_skew_ms, 3 * p->max_skew_ms, p->grace_ms,
                  p->first_horizon_ms, p->mature_after_ms, p->horizon_ms) +
             world_between(w, -1, 1);
        w->now += ms > 0 ? ms : 0;
    } else if (kind < 85) {
        w->now += world_between(w, 0, 6000);
    } else if (kind < 98) {
        calm(w);
    } else {
        w->now += world_between(w, 0, 3 * HOUR_MS);
    }
}

void schedule_meanwhile(struct world *w)
{
    static const enum fault events[] = {FAULT_GROUP_FOLLOW, FAULT_GROUP_FOLLOW, FAULT_GROUP_CUT,
                                        FAULT_GROUP_SPLIT};
    if (seqs_step(w))
        return;
    uint64_t kind = world_draw(w, 100);
    if (kind < 15)
        w->now += world_between(w, 0, world_chance(w, 70) ? 3 : 6000);
    else if (kind < 25)
        w->now += world_between(w, 0, 4 * w->set.params.max_skew_ms);
    else if (kind < 60)
        schedule_keep(w, world_some_node(w));
    else if (kind < 70)
        (void)net_step(w);
    else if (kind < 80)
        serve_some(w);
    else
        fault_do(w, events[world_draw(w, sizeof events / sizeof *events)]);
}

static void step(struct world *w)
{
    failover_choose(w);
    if (seqs_step(w))
        return;
    if (world_chance(w, w->set.fault_percent)) {
        fault_step(w);
        return;
    }
    uint64_t kind = world_draw(w, 100);
    if (w->no_pool && kind < 5)
        fault_heal_pool(w);
    else if (kind < 15)
        pass_time(w);
    else if (kind < 25)
        start_some(w);
    else if (kind < 45)
        schedule_keep(w, world_some_node(w));
    else if (kind < 60)
        keep_step(w, world_some_node(w));
    else if (kind < 75)
        (void)net_step(w);
    else if (kind < 98)
        serve_some(w);
    else
        server_backup(w->server, (unsigned)world_draw(w, SERVER_OLD - 1), w->now);
}

void schedule_run(struct world *w, uint64_t seed, const uint8_t *skip)
{
    schedule_begin(w, seed, NULL);
    for (unsigned i = 1; i <= w->set.steps && !w->failed; i++) {
        if (skip && skip[i])
            continue;
        begin_stream(w, i);
        step(w);
        w->stats->steps++;
    }
    w->stats->digest += w->digest;
    w->stats->schedules++;
}
