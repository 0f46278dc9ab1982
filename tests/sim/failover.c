/*
 * Replicas, and what happens to them: they lag, are cut off, are promoted while the old master
 * lives on, and follow the new one, at any time; also while a call waits for them.
 */
#include "sim/world.h"

static struct group *group_of(struct world *w)
{
    return &w->server->group;
}

static unsigned number(const struct world *w, const struct member *m)
{
    return (unsigned)(m - w->server->group.member);
}

static struct member *some_member(struct world *w)
{
    return &group_of(w)->member[world_draw(w, group_of(w)->n)];
}

static bool newest(const struct group *g, const struct member *m)
{
    return m->master && m->reign == g->reigns;
}

/* A random master, the newest most of the time; NULL where there is none. */
static struct member *some_master(struct world *w)
{
    struct group *g = group_of(w);
    bool any = world_chance(w, 40);
    unsigned from = (unsigned)world_draw(w, g->n);
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < g->n; i++) {
            struct member *m = &g->member[(from + i) % g->n];
            if (m->master && (any || pass == 1 || newest(g, m)))
                return m;
        }
    return NULL;
}

void failover_choose(struct world *w)
{
    struct member *m = group_of(w)->n > 1 ? some_master(w) : NULL;
    if (m)
        w->server->at = m;
}

/* A node goes on with the one it knows, as long as that is a master and even if it is not the
 * newest. */
uint8_t failover_side(struct world *w, struct node *n)
{
    struct group *g = group_of(w);
    if (g->n == 1)
        return 0;
    if (!g->member[n->side].master || world_chance(w, w->set.astray_percent)) {
        struct member *m = some_master(w);
        n->side = m ? (uint8_t)number(w, m) : n->side;
    }
    return n->side;
}

/* ---- faults ---------------------------------------------------------------------------------- */

bool failover_cut(struct world *w)
{
    struct member *r = some_member(w);
    if (r->master)
        return false;
    r->cut = !r->cut;
    world_note(w, "replica %u %s", number(w, r), r->cut ? "is cut off" : "is heard again");
    return r->cut;
}

static struct member *candidate(struct world *w)
{
    struct group *g = group_of(w);
    bool lagging = world_chance(w, 50);
    struct member *best = NULL;
    unsigned from = (unsigned)world_draw(w, g->n);
    for (unsigned i = 0; i < g->n; i++) {
        struct member *r = &g->member[(from + i) % g->n];
        if (r->master || r->follows == GROUP_NOBODY)
            continue;
        if (!best || (lagging && r->written < best->written))
            best = r;
    }
    return best;
}

static bool promote(struct world *w, bool old_lives)
{
    struct group *g = group_of(w);
    struct member *r = candidate(w);
    if (!r)
        return false;
    struct member *old = &g->member[r->follows];
    bool stale = old->master && !newest(g, old);
    if (stale && !world_chance(w, w->set.stale_percent))
        return false;
    bool lacks = old->master && !group_has(g, r, old, old->counted);
    if (!group_promote(g, r))
        return false;
    w->losses++;
    world_note(w, "replica %u is promoted, with %llu writes; its master %u %s", number(w, r),
               (unsigned long long)r->written, number(w, old), old_lives ? "goes on" : "is down");
    if (lacks)
        world_count(w, FAULT_GROUP_LACKS);
    if (r->promoted == 2)
        world_count(w, FAULT_GROUP_TWICE);
    if (stale)
        world_count(w, FAULT_GROUP_STALE);
    if (!old_lives && old->master)
        group_depose(g, old);
    return true;
}

bool failover_clean(struct world *w)
{
    return promote(w, false);
}

bool failover_split(struct world *w)
{
    return promote(w, true);
}

static bool follow_one(struct world *w)
{
    struct group *g = group_of(w);
    struct member *i = some_member(w), *m = some_master(w);
    if (!m || !group_may_follow(g, i, m))
        return false;
    world_note(w, "member %u follows %u now", number(w, i), number(w, m));
    if (i->master)
        world_count(w, FAULT_GROUP_DEPOSED);
    group_follow(g, i, m);
    return true;
}

bool failover_follow(struct world *w)
{
    bool any = false;
    for (unsigned k = world_chance(w, 25) ? 2 * GROUP_MAX : 1; k > 0; k--)
        any |= follow_one(w);
    return any;
}

bool failover_restart(struct world *w)
{
    struct member *r = some_member(w);
    if (r->master)
        return false;
    group_restart(group_of(w), r, true);
    return true;
}

/* ---- WAIT ------------------------------------------------------------------------------------ */

/* Whatever else can go on while a call waits; but not within that. */
static void meanwhile(struct world *w)
{
    if (w->waiting || w->step == 0 || !world_chance(w, w->set.meanwhile_percent))
        return;
    w->waiting = true;
    world_count(w, FAULT_GROUP_MEANWHILE);
    for (uint64_t k = 1 + world_draw(w, 6); k > 0 && !w->failed; k--)
        schedule_meanwhile(w);
    w->waiting = false;
}

static void gather(struct world *w, struct member *m, uint64_t written, bool acked[GROUP_MAX])
{
    struct group *g = group_of(w);
    for (unsigned i = 0; i < g->n; i++) {
        struct member *r = &g->member[i];
        bool soon = w->step == 0 || world_chance(w, w->set.catch_up_percent);
        if (soon && group_linked(g, r, m))
            group_catch_up(g, r);
        acked[i] |= group_has(g, r, m, written);
        /* The master may not have seen yet that it is followed no more. */
        if (acked[i] && !group_linked(g, r, m) && world_chance(w, 50))
            acked[i] = false;
    }
}

bool failover_acknowledged(void *world, struct member *m, uint64_t written, uint32_t n)
{
    struct world *w = world;
    bool acked[GROUP_MAX] = {false};
    uint32_t count = 0;
    uint64_t runs = m->runs;
    for (unsigned k = 0; k < 2; k++) {
        if (m->runs == runs)
            gather(w, m, written, acked);
        meanwhile(w);
    }
    if (m->runs == runs)
        gather(w, m, written, acked);
    for (unsigned i = 0; i < GROUP_MAX; i++)
        count += acked[i];
    bool old = m->master && !newest(group_of(w), m);
    if (count < n)
        world_count(w, old ? FAULT_GROUP_OLD_SHORT : FAULT_GROUP_SHORT);
    else if (old)
        world_count(w, FAULT_GROUP_OLD_COUNTS);
    return count >= n;
}
