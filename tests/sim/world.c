#include "sim/world.h"

#include <stdio.h>

/* ---- chance ---------------------------------------------------------------------------------- */

uint64_t world_draw(struct world *w, uint64_t bound)
{
    return rng_below(&w->rng, bound);
}

bool world_chance(struct world *w, unsigned percent)
{
    return world_draw(w, 100) < percent;
}

int64_t world_between(struct world *w, int64_t from, int64_t to)
{
    return from + (int64_t)world_draw(w, (uint64_t)(to - from) + 1);
}

/* ---- the record of what happens -------------------------------------------------------------- */

struct node *world_some_node(struct world *w)
{
    return &w->node[world_draw(w, w->set.nodes)];
}

unsigned node_number(const struct world *w, const struct node *n)
{
    return (unsigned)(n - w->node);
}

void world_fail(struct world *w, const char *fmt, ...)
{
    va_list ap;
    if (w->failed)
        return;
    w->failed = true;
    va_start(ap, fmt);
    (void)vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
    world_note(w, "FAILED: %s", w->why);
}

void world_note(const struct world *w, const char *fmt, ...)
{
    va_list ap;
    if (!w->trace)
        return;
    (void)printf("# %4u  %lld  ", w->step, (long long)(w->now - WORLD_EPOCH));
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    (void)printf("\n");
}

void world_count(struct world *w, enum fault f)
{
    w->stats->fault[f]++;
    world_note(w, "fault: %s", fault_names[f]);
}

void world_digest(struct world *w, uint64_t what)
{
    w->digest = (w->digest ^ what) * UINT64_C(0x9E3779B97F4A7C15);
    w->digest ^= w->digest >> 32;
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t node_wall(const struct world *w, const struct node *n)
{
    return w->now + n->wall_off;
}

int64_t node_mono(const struct world *w, const struct node *n)
{
    return w->now + n->mono_off;
}

static int64_t margin(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    const int64_t margins[] = {0, p->max_skew_ms, 2 * p->max_skew_ms, 3 * p->max_skew_ms,
                               p->grace_ms};
    int64_t m = margins[world_chance(w, 50) ? 0 : world_draw(w, sizeof margins / sizeof *margins)];
    return (world_chance(w, 50) ? m : -m) + world_between(w, -1, 1);
}

static int64_t pool_edge(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    struct server *s = w->server;
    struct server_record r = {0};
    switch (world_draw(w, 8)) {
    case 0:
        return server_number(s, "topen") + 3 * p->max_skew_ms;
    case 1:
        return server_number(s, "topen") + p->horizon_ms + 2 * p->max_skew_ms;
    case 2:
        return server_number(s, "fl");
    case 3:
        return server_number(s, "fs");
    case 4:
        return server_number(s, "tmax") + p->mature_after_ms - 2 * p->max_skew_ms;
    default:
        (void)server_record(s, (uint16_t)world_between(w, p->worker_from, p->worker_to), &r);
        return r.hwm_ms;
    }
}

static int64_t range_edge(struct world *w, const struct node *n)
{
    struct range r[NODE_RANGES];
    unsigned k = ledger_ranges(w, n, r);
    if (k == 0)
        return n->gen.last_ms > 0 ? n->gen.last_ms : 0;
    k = (unsigned)world_draw(w, k);
    return world_chance(w, 50) ? r[k].lo - 1 : r[k].hi;
}

int64_t world_edge(struct world *w, int64_t *off)
{
    const struct node *n = &w->node[world_draw(w, w->set.nodes)];
    bool pool = world_chance(w, 50);
    int64_t t = pool ? pool_edge(w) : range_edge(w, n);
    *off = world_chance(w, 40) ? w->server->at->clock_off : n->wall_off;
    return t <= 0 ? w->now + *off : t + margin(w);
}
