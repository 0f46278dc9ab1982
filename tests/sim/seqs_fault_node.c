/*
 * What goes wrong with the blocks in a node's page: lost, cut, of before, and given back by a
 * program that does not come to its end.
 */
#include "sim/seqs_fault.h"

#include "sim/fault.h"

#include <stdio.h>

/* ---- the page ---------------------------------------------------------------------------------
 */

static struct seqs_holder *dead_with_area(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    return !n->alive && h->has_file ? h : NULL;
}

bool seqs_fault_area_lost(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (h)
        h->has_file = false;
    return h != NULL;
}

/* Another file. */
bool seqs_fault_area_old(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (!h || !h->has_backup)
        return false;
    h->area = h->backup;
    h->inode = ++w->inodes;
    h->ctime = (int64_t)++w->inodes;
    return true;
}

bool seqs_fault_area_cut(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (h)
        memset(h->area.bytes, 0, 8);
    return h != NULL;
}

bool seqs_fault_area_flip(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (!h)
        return false;
    size_t slot = 1024 + world_draw(w, SEQS_SLOTS) * sizeof(struct blockpage_slot);
    size_t at = world_chance(w, 40)
                    ? slot + offsetof(struct blockpage_slot, commit) + world_draw(w, 16)
                    : slot + world_draw(w, sizeof(struct blockpage_slot));
    uint8_t *byte = &h->area.bytes[world_chance(w, 80) ? at : world_draw(w, SEQS_AREA)];
    *byte ^= (uint8_t)(1u << world_draw(w, 8));
    return true;
}

/* The blocks of this file, as they were; of this life, or as they were before some went back, which
 * takes a new generation. */
static bool has_state_of_before(const struct seqs_holder *h)
{
    return h->has_file && h->has_backup &&
           (h->backup.generation == h->generation || h->backup_returns != h->returns);
}

static void put_back(struct world *w, struct seqs_holder *h)
{
    h->area = h->backup;
    h->ctime = (int64_t)++w->inodes;
}

/* Its witness is a token that was renewed since. */
static bool is_older(const struct node *n, const struct seqs_holder *h)
{
    const struct seqs_witness *x = &h->backup.witness;
    struct page_record r;
    return h->backup_returns != h->returns || !x->known || !page_load(&n->page, x->slot, &r) ||
           r.state != PAGE_HELD || !coord_token_equal(r.cur, x->token);
}

/* Up to where a renewal has told whether what the page says is believed. */
static void start_again(struct world *w, struct node *n)
{
    node_start(w, n);
    for (unsigned i = 0; i < 3 && n->alive && !w->failed; i++) {
        schedule_keep(w, n);
        seqs_live(w, n);
    }
}

static void find_before(struct world *w, struct node *n)
{
    if (n->alive)
        node_kill(w, n);
    put_back(w, seqs_of(w, n));
    world_note(w, "node %u finds its blocks as they were before", node_number(w, n));
    start_again(w, n);
    if (n->alive && world_chance(w, 30))
        node_upgrade(w, n);
}

bool seqs_fault_area_back(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    if (!n->has_dir || !has_state_of_before(h) || !(h->tmpfs || is_older(n, h)))
        return false;
    find_before(w, n);
    return true;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

/* Its call has come to a server that may give again what went back, and comes once more. */
static void return_late(struct world *w, struct seqs_call *c)
{
    const struct seq_return *r = &c->action.returns[0];
    if (*r->sub == '\0' && r->hi - r->lo < SEQ_BLOCK_MAX)
        (void)seqs_reserve(w, seqs_spec_of(w, r->name), r->period, r->hi - r->lo + 1);
    seqs_run_copy(w, c);
    seqs_count(w, SEQS_RETURN_LATE);
}

static void remember(const struct world *w, const struct node *n, struct seqs_holder *h)
{
    h->backup = h->area;
    h->backup_page = n->page;
    h->backup_returns = h->returns;
    h->backup_losses = w->losses;
    h->has_backup = true;
}

static bool about_to_return(const struct seqs_holder *h)
{
    return h->phase == KEEPER_SEND && h->action.kind == BLOCKS_RETURN;
}

/* Its blocks went back, of which it has not heard, its workerIds not yet, and the next one finds
 * the page as it stands. */
static bool kill_leaving(struct world *w, struct node *n)
{
    static struct seqs_call sent;
    struct seqs_holder *h = seqs_of(w, n);
    for (unsigned i = 0; i < 4 && node_runs(w, n) && !w->failed && !about_to_return(h); i++)
        (h->phase == KEEPER_WAIT ? seqs_round_trip : seqs_keep_once)(w, n);
    if (!node_runs(w, n) || w->failed || !about_to_return(h) || w->down_until > w->now)
        return false;
    seqs_count(w, SEQS_KILL_LEAVING);
    seqs_copy_call(w, n, &sent);
    seqs_run_copy(w, &sent);
    node_kill(w, n);
    start_again(w, n);
    return true;
}

/* Given back, and the next one starts, where all goes well. Or it is killed once the blocks went
 * back, its workerIds not yet, and the blocks are as they stand, or put back as they were. */
bool seqs_fault_stop(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    if (!node_runs(w, n) || n->stopping)
        return false;
    if (world_chance(w, 50)) { /* with a block of which nothing was given out */
        seqs_serve(w, n);
        seqs_keep(w, n);
    }
    if (w->failed || !node_runs(w, n))
        return false;
    world_note(w, "node %u is told to end", node_number(w, n));
    remember(w, n, h);
    node_term(w, n, true);
    if (world_chance(w, 25) && kill_leaving(w, n))
        return true;
    seqs_keep(w, n);
    bool went = !w->failed && h->has_b && h->returns != h->backup_returns &&
                h->action.kind == BLOCKS_RETURN;
    if (went && world_chance(w, 30) && w->down_until <= w->now) {
        static struct seqs_call again;
        seqs_copy_call(w, n, &again);
        return_late(w, &again);
    }
    if (!w->failed && h->has_file && h->returns != h->backup_returns && world_chance(w, 30)) {
        find_before(w, n);
        return true;
    }
    for (unsigned i = 0; i < 6 && world_chance(w, 85) && !w->failed; i++) {
        for (unsigned k = 0; k < 4 && !w->failed; k++)
            seqs_live(w, world_some_node(w)); /* who may be given what went back */
        (void)seqs_net_step(w);
        if (node_runs(w, n))
            seqs_keep(w, n);
        if (node_runs(w, n))
            schedule_keep(w, n);
        w->now += world_between(w, 0, 150); /* it may be repeated */
    }
    return true;
}

/* ---- both pages -------------------------------------------------------------------------------
 */

static bool is_token(const char *text, struct coord_token t)
{
    char hex[COORD_TOKEN_TEXT];
    return strcmp(text, coord_token_text(hex, t)) == 0;
}

static bool is_of(const char *token, const struct page_record *r)
{
    return is_token(token, r->cur) || (r->renewing && is_token(token, r->nxt));
}

static bool holds_by(const struct page *p, const char *token)
{
    struct page_record r;
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        if (page_load(p, i, &r) && r.state == PAGE_HELD && is_of(token, &r))
            return true;
    return false;
}

/* The coordinator has a later token of each workerId that the page held then: with the same one, or
 * an earlier one, since it went back, too, what was given out meanwhile is not closed. */
static bool was_renewed_since(struct world *w, const struct node *n, const struct page *p)
{
    bool went_back = w->losses != seqs_of(w, n)->backup_losses;
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_record r;
        char name[8], text[DATASET_TEXT_MAX + 1], token[40];
        if (!page_load(p, i, &r) || r.state != PAGE_HELD)
            continue;
        (void)snprintf(name, sizeof name, "%u", r.worker);
        bool has = server_field(w->server, name, text) && sscanf(text, "%*d %*d %39s", token) == 1;
        if (has ? is_of(token, &r) || (went_back && !holds_by(&n->page, token)) : went_back)
            return false;
    }
    return true;
}

bool seqs_fault_state_back(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    if (w->server->sqlite || h->tmpfs || w->set.replicas > 0 || !has_state_of_before(h) ||
        !fault_may_put_back(w, n, &h->backup_page) ||
        !(h->backup_returns != h->returns || was_renewed_since(w, n, &h->backup_page)))
        return false;
    if (n->alive)
        node_kill(w, n);
    put_back(w, h);
    h->back = true;
    h->back_losses = w->losses;
    fault_put_back(w, n, &h->backup_page);
    return true;
}
