/*
 * What happens to sequences alone: what it is called, and what a coordinator does to them.
 */
#include "sim/seqs_fault.h"

#include "base/int64.h"
#include "sim/fault.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)

const char *const seqs_names[SEQS_COUNTS] = {
    [SEQS_SET] = "operator sets a sequence forward",
    [SEQS_SET_BACK] = "operator sets a sequence back, and no older data come",
    [SEQS_DROP] = "operator drops a sequence",
    [SEQS_REUSE] = "operator makes a dropped name again, and no older data come",
    [SEQS_ALTER] = "operator raises a max",
    [SEQS_TEMPLATE] = "operator has numbers written in another way",
    [SEQS_SWEEP] = "operator closes periods",
    [SEQS_RESERVE] = "operator reserves numbers",
    [SEQS_REOPEN] = "operator says above which number to go on",
    [SEQS_CREATE_AGAIN] = "operator makes a sequence that may be there",
    [SEQS_IN_PLACE] = "rewound under the same fingerprint, where a holder of blocks is heard next",
    [SEQS_CLOCK_DAY] = "coordinator's clock a day ahead while holders take blocks",
    [SEQS_AREA_LOST] = "blocks of the page lost",
    [SEQS_AREA_OLD] = "old copy of the blocks put in their place",
    [SEQS_AREA_CUT] = "blocks of the page cut",
    [SEQS_AREA_FLIP] = "bit of the blocks flipped",
    [SEQS_AREA_BACK] = "blocks put back in place as they were",
    [SEQS_STATE_BACK] = "the whole page put back in place as it was, not on tmpfs",
    [SEQS_STOP] = "SIGTERM, blocks given back",
    [SEQS_RETURN_LATE] = "give-back run again once others had what went back",
    [SEQS_KILL_LEAVING] = "SIGKILL before it is heard that blocks went back",
    [SEQS_REPLY_LOST] = "reply to a take lost, and others answered before it is repeated",
    [SEQS_KILL_TORN] = "SIGKILL between two stores to the blocks",
    [SEQS_LOST] = "request or reply lost",
    [SEQS_DOUBLED] = "request run again, soon or much later",
    [SEQS_REMADE] = "sequence made again by a sidecar that asked",
    [SEQS_PROVEN_TMPFS] = "page proven by its ctime",
    [SEQS_PROVEN_RENEWAL] = "page proven by a renewal",
    [SEQS_PROVEN_UPGRADE] = "page proven by the program before",
    [SEQS_UNPROVEN] = "page that could not be proven",
    [SEQS_ALIENS] = "nodes with another definition in their cache",
    [SEQS_OTHER_POOL] = "blocks of another pool dropped",
    [SEQS_GIVEN] = "numbers given out",
    [SEQS_GIVEN_STRICT] = "strict numbers given out",
    [SEQS_GIVEN_WHOLE] = "requests for several in a row served",
    [SEQS_WENT_BACK] = "blocks that went back",
};

/* ---- the coordinator --------------------------------------------------------------------------
 */

static struct node *about_to_take(struct world *w)
{
    unsigned from = (unsigned)world_draw(w, w->set.nodes);
    for (unsigned i = 0; i < w->set.nodes; i++) {
        struct node *n = &w->node[(from + i) % w->set.nodes];
        struct seqs_holder *h = seqs_of(w, n);
        if (node_runs(w, n) && h->has_b && h->phase == KEEPER_READY)
            seqs_keep_once(w, n);
        if (node_runs(w, n) && h->phase == KEEPER_SEND && h->action.kind == BLOCKS_TAKE)
            return n;
    }
    return NULL;
}

/* A count of this opening that is above the record's. */
static bool proves_rewind(struct world *w, const struct node *n)
{
    const struct seqs_holder *h = seqs_of(w, n);
    const struct blocks_action *a = &h->action;
    struct server *s = w->server;
    char fp[DATASET_TEXT_MAX + 1];
    if (a->by.opening.era != server_number(s, "era") ||
        a->by.opening.topen_ms != server_number(s, "topen") || !server_field(s, "fp", fp) ||
        strcmp(fp, a->by.opening.fingerprint) != 0)
        return false;
    for (size_t i = 0; i < a->nitems; i++) {
        const struct seq_want *t = &a->wants[i];
        char name[200], text[DATASET_TEXT_MAX + 1];
        long long changes;
        (void)snprintf(name, sizeof name, "num %s %lld %s%s%s", t->name, (long long)t->gen,
                       *t->period ? t->period : "-", *t->sub ? " " : "", t->sub);
        if (t->n > 0 && !t->known_before && server_field(s, name, text) &&
            sscanf(text, "%*d %*d %lld", &changes) == 1 && t->n > changes)
            return true;
    }
    return false;
}

/* As fault_redis_in_place. */
static bool fault_in_place(struct world *w)
{
    struct server *s = w->server;
    struct node *n = about_to_take(w);
    const struct server_copy *c = fault_old_copy(w);
    if (!c || s->sqlite || !n || w->waiting || node_wall(w, n) < 0 || !fault_may_lose(w))
        return false;
    server_backup(s, SERVER_OLD - 1, w->now);
    if (c != &s->old[SERVER_OLD - 1] && !server_rewind_in_place(s, c))
        return false;
    int64_t era = server_number(s, "era");
    if (!proves_rewind(w, n)) {
        (void)server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
        return false;
    }
    world_note(w, "coordinator goes back to %lld, in place", (long long)(c->at_ms - WORLD_EPOCH));
    enum coord_status status = seqs_call_first(w, n);
    if (server_number(s, "era") > era)
        return true;
    if (status == COORD_OK)
        world_fail(w, "a rewind that a holder of blocks has proven goes unnoticed");
    (void)server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
    return false;
}

/* As fault_redis_clock_day. */
static bool fault_clock_day(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    struct server *s = w->server;
    int64_t before = s->at->clock_off;
    bool called = false;
    if (w->wild || w->waiting || w->down_until > w->now)
        return false;
    s->at->clock_off = 24 * HOUR_MS + world_between(w, 0, p->horizon_ms);
    for (unsigned i = 0; i < 3; i++) {
        struct node *n = about_to_take(w);
        if (!n || llabs(n->wall_off) > p->max_skew_ms)
            continue;
        (void)seqs_call_first(w, n);
        called = true;
    }
    s->at->clock_off = before;
    if (!s->sqlite && server_number(s, "tmax") > server_ms(s) + 2 * p->max_skew_ms)
        world_fail(w, "the coordinator's clock was a day ahead, and is believed");
    return called;
}

/* A counter that n gives out from, a strict one where it has any. */
static bool some_counter(struct world *w, const struct node *n, struct blocks_name *of)
{
    const struct seqs_holder *h = seqs_of(w, n);
    const struct seqs_place *found = NULL;
    unsigned from = (unsigned)world_draw(w, SEQS_PLACES);
    for (unsigned k = 0; k < SEQS_PLACES; k++) {
        const struct seqs_place *p = &h->place[(from + k) % SEQS_PLACES];
        if (p->open && !p->open_due && !p->closing &&
            (!found || !(found->known && found->s.strict)))
            found = p;
    }
    if (found)
        *of = h->b.counter[found - h->place].of;
    return found != NULL;
}

/* Somebody asks n for a number, and the take that it makes for it comes to the server, whose reply
 * is lost. */
static bool lose_reply(struct world *w, struct node *n, struct blocks_name *of)
{
    static struct seqs_call lost;
    struct seqs_holder *h = seqs_of(w, n);
    if (!node_runs(w, n) || n->stopping || !h->has_b)
        return false;
    if (h->phase == KEEPER_WAIT)
        seqs_round_trip(w, n);
    if (w->failed || !node_runs(w, n) || !some_counter(w, n, of))
        return false;
    seqs_request(w, n, of);
    seqs_serve(w, n);
    if (!w->failed && h->phase == KEEPER_READY)
        seqs_keep_once(w, n);
    if (w->failed || !node_runs(w, n) || h->phase != KEEPER_SEND || h->action.kind != BLOCKS_TAKE)
        return false;
    seqs_copy_call(w, n, &lost);
    seqs_run_copy(w, &lost);
    seqs_time_out(w, n);
    return !w->failed;
}

/* Others are answered before that take is repeated, and who comes meanwhile must not share it. */
static bool fault_reply_lost(struct world *w)
{
    unsigned from = (unsigned)world_draw(w, w->set.nodes);
    struct node *n = NULL;
    struct blocks_name of;
    for (unsigned i = 0; i < w->set.nodes && !n && w->down_until <= w->now && !w->failed; i++)
        if (lose_reply(w, &w->node[(from + i) % w->set.nodes], &of))
            n = &w->node[(from + i) % w->set.nodes];
    if (!n)
        return false;
    for (unsigned i = 0; i < 3 * w->set.nodes && !w->failed; i++) {
        struct node *other = &w->node[i % w->set.nodes];
        if (other == n || !node_runs(w, other) || other->stopping)
            continue;
        seqs_request(w, other, &of);
        seqs_live(w, other);
    }
    if (w->failed || !node_runs(w, n) || n->stopping)
        return true;
    seqs_hang_up(w, n);
    for (unsigned i = 0; i < 3; i++)
        seqs_request(w, n, &of);
    seqs_serve(w, n);
    w->now += max64(seqs_of(w, n)->b.call_due - node_mono(w, n), 0); /* it is due again */
    for (unsigned i = 0; i < 3 && !w->failed; i++)
        seqs_live(w, n);
    return true;
}

/* ---- which ------------------------------------------------------------------------------------
 */

static bool (*const faults[SEQS_FAULTS])(struct world *) = {
    [SEQS_SET] = seqs_fault_set,
    [SEQS_SET_BACK] = seqs_fault_set_back,
    [SEQS_DROP] = seqs_fault_drop,
    [SEQS_REUSE] = seqs_fault_reuse,
    [SEQS_ALTER] = seqs_fault_alter,
    [SEQS_TEMPLATE] = seqs_fault_template,
    [SEQS_SWEEP] = seqs_fault_sweep,
    [SEQS_RESERVE] = seqs_fault_reserve,
    [SEQS_REOPEN] = seqs_fault_reopen,
    [SEQS_CREATE_AGAIN] = seqs_fault_create_again,
    [SEQS_IN_PLACE] = fault_in_place,
    [SEQS_CLOCK_DAY] = fault_clock_day,
    [SEQS_AREA_LOST] = seqs_fault_area_lost,
    [SEQS_AREA_OLD] = seqs_fault_area_old,
    [SEQS_AREA_CUT] = seqs_fault_area_cut,
    [SEQS_AREA_FLIP] = seqs_fault_area_flip,
    [SEQS_AREA_BACK] = seqs_fault_area_back,
    [SEQS_STATE_BACK] = seqs_fault_state_back,
    [SEQS_STOP] = seqs_fault_stop,
    [SEQS_REPLY_LOST] = fault_reply_lost,
};

void seqs_fault(struct world *w)
{
    uint64_t sum = 0;
    for (unsigned f = 0; f < SEQS_FAULTS; f++)
        sum += faults[f] ? w->seqs->weight[f] : 0;
    uint64_t at = sum > 0 ? world_draw(w, sum) : 0;
    for (unsigned f = 0; f < SEQS_FAULTS && sum > 0; f++) {
        uint64_t weight = faults[f] ? w->seqs->weight[f] : 0;
        if (at < weight) {
            if (faults[f](w))
                seqs_count(w, (enum seqs_count)f);
            break;
        }
        at -= weight;
    }
    ledger_pages_changed();
}
