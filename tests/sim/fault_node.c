#include "sim/fault.h"

#define HOUR_MS INT64_C(3600000)
#define YEAR_MS (8766 * HOUR_MS)

/* ---- processes ------------------------------------------------------------------------------- */

bool fault_kill_one(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!n->alive)
        return false;
    world_note(w, "node %u is killed", node_number(w, n));
    node_kill(w, n);
    return true;
}

bool fault_kill_torn(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!node_runs(w, n) || n->phase != KEEPER_READY || !n->has_dir)
        return false;
    world_note(w, "node %u is killed within a store", node_number(w, n));
    node_kill_torn(w, n, NULL);
    return true;
}

bool fault_stop_one(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!n->alive)
        return false;
    int64_t ms =
        world_chance(w, 50) ? world_between(w, 0, 30000) : world_between(w, 0, 3 * HOUR_MS);
    n->stopped_until = n->stopped_until > w->now ? 0 : w->now + ms;
    world_note(w, "node %u stopped for %lld ms", node_number(w, n),
               (long long)(n->stopped_until ? ms : 0));
    return true;
}

static bool term(struct world *w, bool give_back)
{
    struct node *n = world_some_node(w);
    if (!node_runs(w, n) || n->stopping)
        return false;
    world_note(w, "node %u is told to end", node_number(w, n));
    node_term(w, n, give_back);
    return true;
}

bool fault_term_return(struct world *w)
{
    return term(w, true);
}

bool fault_term_keep(struct world *w)
{
    return term(w, false);
}

/* One in five dies between the two programs. */
bool fault_upgrade(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!node_runs(w, n) || n->stopping || n->phase != KEEPER_READY)
        return false;
    world_note(w, "node %u is upgraded", node_number(w, n));
    if (world_chance(w, 80))
        node_upgrade(w, n);
    else
        node_kill(w, n);
    return true;
}

/* ---- pages: those of dead processes, but for the copy ---------------------------------------- */

static struct node *dead_with_page(struct world *w)
{
    struct node *n = world_some_node(w);
    return !n->alive && n->has_file ? n : NULL;
}

bool fault_page_lost(struct world *w)
{
    struct node *n = dead_with_page(w);
    if (!n)
        return false;
    world_note(w, "node %u loses its page", node_number(w, n));
    n->has_file = false;
    return true;
}

/* The copy is another file on a machine of its own; or, half of the time, on the same machine. */
bool fault_page_copied(struct world *w)
{
    struct node *from = world_some_node(w), *to = world_some_node(w);
    if (from == to || !from->has_file || to->alive || !to->has_dir)
        return false;
    world_note(w, "node %u gets a copy of the page of node %u", node_number(w, to),
               node_number(w, from));
    to->page = from->page;
    to->has_file = true;
    to->cut = false;
    to->home.inode = ++w->inodes;
    if (world_chance(w, 50))
        memcpy(to->home.boot, from->home.boot, sizeof to->home.boot);
    return true;
}

bool fault_page_old(struct world *w)
{
    struct node *n = world_some_node(w);
    if (n->alive || !n->has_backup || !n->has_dir)
        return false;
    world_note(w, "node %u gets an old copy of its page", node_number(w, n));
    n->page = n->backup;
    n->has_file = true;
    n->home.inode = ++w->inodes;
    return true;
}

bool fault_page_cut(struct world *w)
{
    struct node *n = dead_with_page(w);
    if (!n)
        return false;
    world_note(w, "page of node %u truncated", node_number(w, n));
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

bool fault_page_flip(struct world *w)
{
    struct node *n = dead_with_page(w);
    if (!n)
        return false;
    size_t at = world_chance(w, 70) ? telling_byte(w) : world_draw(w, sizeof n->page);
    unsigned bit = (unsigned)world_draw(w, 8);
    uint8_t *byte = (uint8_t *)&n->page + at;
    world_note(w, "bit %u of byte %zu of the page of node %u flipped", bit, at, node_number(w, n));
    *byte = (uint8_t)(*byte ^ 1u << bit);
    return true;
}

/* The page as the disk has it: marks, and whole sectors, of any time before. */
bool fault_reboot(struct world *w)
{
    struct node *n = world_some_node(w);
    world_note(w, "node %u reboots", node_number(w, n));
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
    world_note(w, "clock of node %u: %+lld ms, was %+lld", node_number(w, n), (long long)off,
               (long long)n->wall_off);
    n->wall_off = off;
    return true;
}

bool fault_clock_small(struct world *w)
{
    struct node *n = world_some_node(w);
    int64_t most = world_chance(w, 50) ? 20 : 4 * w->set.params.max_skew_ms;
    return step_clock(w, n, n->wall_off + world_between(w, -most, most));
}

bool fault_clock_edge(struct world *w)
{
    int64_t off;
    struct node *n = world_some_node(w);
    return step_clock(w, n, world_edge(w, &off) - w->now);
}

bool fault_clock_years(struct world *w)
{
    struct node *n = world_some_node(w);
    static const int64_t most[] = {HOUR_MS, 24 * HOUR_MS, YEAR_MS, 10 * YEAR_MS};
    int64_t m = most[world_draw(w, sizeof most / sizeof *most)];
    return step_clock(w, n, n->wall_off + world_between(w, -m, m));
}

int64_t fault_within_skew(struct world *w)
{
    int64_t s = w->set.params.max_skew_ms;
    const int64_t offs[] = {-s, s, 0, world_between(w, -s, s)};
    return offs[world_draw(w, sizeof offs / sizeof *offs)];
}

/* Right may still be S off, and S off the coordinator's clock, which is what claims are held to. */
bool fault_clock_right(struct world *w)
{
    struct node *n = world_some_node(w);
    bool all = world_chance(w, 50);
    for (unsigned i = 0; i < w->set.nodes; i++)
        if (all || &w->node[i] == n)
            (void)step_clock(w, &w->node[i],
                             fault_within_skew(w) +
                                 (world_chance(w, 50) ? w->server->at->clock_off : 0));
    return true;
}

bool fault_clock_all_back(struct world *w)
{
    for (unsigned i = 0; i < w->set.nodes; i++)
        w->node[i].wall_off -= 1000;
    return true;
}
