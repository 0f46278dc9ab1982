/*
 * Schedules of static:N: each node has workerIds of its own, and only its page knows up to when IDs
 * were issued. What is shared is the code of lease machine, page and generator.
 *
 * What a page does not know is repeated where the clock goes back; so a page is taken away, or put
 * back as it was, only where the node's clock is above all that it issued, and something is claimed
 * before anything else happens.
 */
#include "sim/fault.h"

#include <stdio.h>
#include <stdlib.h>

#define OTHER 32 /* from one workerId of a node to the other */

/* ---- the coordinator, which is in the process -------------------------------------------------
 */

static int64_t of_call_us; /* the clock of who calls */

static int64_t call_clock(struct clock *c)
{
    (void)c;
    return of_call_us;
}

static struct clock call_time = {.wall_us = call_clock, .mono_us = call_clock};

void fixed_run(struct world *w, struct node *n, struct server_call *c)
{
    char url[64], layout[LAYOUT_NAME_MAX];
    struct coord *fixed;
    struct err e;
    struct coord_options o = {.pool = SPAN("p"), .timeout_us = 1000000, .clock = &call_time};
    int len = snprintf(url, sizeof url, "static:%u?layout=%s", (unsigned)n->home.coordinator,
                       layout_name(layout, &w->set.lease.layout));
    o.url = span_of(url, (size_t)len);
    if (coord_open(&o, &fixed, &e)) {
        (void)fprintf(stderr, "%s: %s\n", url, e.text);
        abort();
    }
    of_call_us = node_wall(w, n) * 1000;
    server_ask(fixed, c);
    coord_free(fixed);
}

/* ---- nodes ------------------------------------------------------------------------------------
 */

void fixed_place(struct world *w)
{
    static const enum fault about[] = {
        FAULT_KILL,      FAULT_KILL_TORN, FAULT_STOP,        FAULT_TERM_RETURN,   FAULT_TERM_KEEP,
        FAULT_UPGRADE,   FAULT_PAGE_CUT,  FAULT_CLOCK_SMALL, FAULT_CLOCK_RIGHT,   FAULT_FIXED_PAGE,
        FAULT_PAGE_FULL, FAULT_FIXED_N,   FAULT_PAGE_FLIP,   FAULT_CLOCK_ALL_BACK};
    uint8_t *weight = w->set.weight;
    memset(weight, 0, sizeof w->set.weight);
    for (unsigned i = 0; i < sizeof about / sizeof *about; i++)
        weight[about[i]] = world_chance(w, 70) ? 10 : 0;
    weight[FAULT_CLOCK_YEARS] = world_chance(w, 20);
    weight[FAULT_KILL] = 10;
    w->set.lease.page_knows_alone = true;
    w->set.nodes = (unsigned)world_between(w, 1, w->set.nodes < 4 ? w->set.nodes : 4);
    for (unsigned i = 0; i < w->set.nodes; i++) {
        w->node[i].has_dir = true;
        w->node[i].home.coordinator = i;
    }
}

static bool above_all(const struct world *w, const struct node *n)
{
    return node_wall(w, n) > ledger_latest(w, n);
}

static bool holds(const struct node *n)
{
    return lease_held(&n->lease) > 0 && lease_proven(&n->lease);
}

/* Until something is held, which a kill meanwhile would keep from being written down. */
static void claim_now(struct world *w, struct node *n)
{
    uint8_t kills = w->set.weight[FAULT_KILL_TORN];
    w->set.weight[FAULT_KILL_TORN] = 0;
    for (unsigned i = 0; i < 20 && n->alive && !holds(n); i++) {
        n->due_mono = INT64_MIN;
        schedule_keep(w, n);
    }
    w->set.weight[FAULT_KILL_TORN] = kills;
}

/* An operator removes a page that was refused, as the log says. */
void fixed_start(struct world *w, struct node *n)
{
    node_start(w, n);
    if (!n->refused || !above_all(w, n))
        return;
    world_note(w, "the page of node %u is removed", node_number(w, n));
    world_count(w, FAULT_FIXED_REFUSED);
    n->has_file = false;
    node_start(w, n);
    claim_now(w, n);
}

/* ---- faults -----------------------------------------------------------------------------------
 */

static void spoil(struct world *w, struct node *n)
{
    const struct node *from = world_some_node(w);
    switch (world_draw(w, 4)) {
    case 0:
        n->has_file = false;
        break;
    case 1:
        n->cut = true;
        break;
    case 2:
        n->page = n->has_backup ? n->backup : n->page;
        n->home.inode += world_chance(w, 50) ? ++w->inodes : 0;
        break;
    default:
        n->page = from->page;
        n->home.inode = ++w->inodes;
    }
}

bool fault_fixed_page(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!n->has_file || !above_all(w, n) || n->stopped_until > w->now)
        return false;
    if (n->alive)
        node_kill(w, n);
    spoil(w, n);
    world_note(w, "node %u loses its page, or finds another", node_number(w, n));
    ledger_pages_changed();
    n->back = true;
    fixed_start(w, n);
    claim_now(w, n);
    n->back = false;
    return true;
}

/* Another N in its configuration, or the one before; its page is another coordinator's then. */
bool fault_fixed_n(struct world *w)
{
    struct node *n = world_some_node(w);
    if (n->alive)
        node_kill(w, n);
    n->home.coordinator ^= OTHER;
    world_note(w, "node %u is static:%u", node_number(w, n), (unsigned)n->home.coordinator);
    return true;
}
