/* Sequences in a world: its beginning, and the steps of its schedule that are about them. */
#include "sim/seqs.h"

void seqs_begin(struct world *w)
{
    struct seqs *q = w->seqs;
    if (!q)
        return;
    for (unsigned i = 0; i < WORLD_NODES; i++)
        if (q->holder[i].has_b)
            blocks_clear(&q->holder[i].b);
    memset(q->holder, 0, w->set.nodes * sizeof *q->holder);
    memset(q->spec, 0, sizeof q->spec);
    for (unsigned i = 0; i < SEQS_FLIGHTS; i++)
        q->flight[i].used = false;
    seqs_ledger_clear();
    seqs_draw(w);
    if (world_chance(w, 30))
        return;
    for (unsigned i = 0; i < w->set.nodes && !w->failed;
         i++) { /* most are there from the beginning */
        node_start(w, &w->node[i]);
        schedule_keep(w, &w->node[i]);
    }
}

/* A wild coordinator has shown no loss: a mistake of its own that nobody has seen is one. */
void seqs_made_fresh(struct world *w)
{
    struct coord_pool p;
    uint64_t era;
    if (!w->seqs || (server_pool(w->server, &p, &era) && era > 1))
        return;
    for (unsigned i = 0; i < w->seqs->specs; i++)
        w->seqs->spec[i].is_void = true;
}

static void keep_step(struct world *w, struct node *n)
{
    if (!node_runs(w, n))
        return;
    if (seqs_of(w, n)->phase != KEEPER_WAIT)
        seqs_keep_once(w, n);
    else if (world_chance(w, 15))
        seqs_time_out(w, n);
}

static bool may_be_torn(struct world *w, struct node *n)
{
    return w->set.weight[FAULT_KILL_TORN] && node_runs(w, n) && n->has_dir &&
           seqs_of(w, n)->phase == KEEPER_READY && world_chance(w, 3);
}

/* One that can happen while a call waits for replicas. */
static void small_step(struct world *w)
{
    uint64_t kind = world_draw(w, 100);
    struct node *n = world_some_node(w);
    if (kind < 25)
        seqs_keep(w, n);
    else if (kind < 45)
        keep_step(w, n);
    else if (kind < 60)
        (void)seqs_net_step(w);
    else if (node_runs(w, n))
        seqs_serve(w, n);
}

bool seqs_step(struct world *w)
{
    if (!w->seqs || !world_chance(w, 60))
        return false;
    struct node *n = world_some_node(w);
    if (!w->waiting && world_chance(w, w->set.fault_percent / 2)) {
        seqs_fault(w);
    } else if (!w->waiting && may_be_torn(w, n)) {
        seqs_count(w, SEQS_KILL_TORN);
        seqs_kill_torn(w, n, NULL);
    } else {
        small_step(w);
    }
    return true;
}

void seqs_live(struct world *w, struct node *n)
{
    if (!w->seqs || !node_runs(w, n))
        return;
    seqs_keep(w, n);
    if (node_runs(w, n) && !w->failed)
        seqs_serve(w, n);
}
