/*
 * A node's supply of blocks, and the area of its state page: what lease/sequences.c does. All that
 * is decided is left to the blocks machine.
 *
 * What proves the area of a process that was killed (a copy of it may have been put back):
 *   on tmpfs the file's ctime is the one noted when it was formatted, or not;
 *   elsewhere the area names a token of a workerId that the coordinator had answered, its witness,
 *   which stands in the page beside it, too, and the first renewal with it says that nobody has
 *   renewed since.
 */
#include "lease/blocks_slots.h"
#include "sim/seqs.h"

#include <stdio.h>
#include <stdlib.h>

void seqs_count(struct world *w, enum seqs_count c)
{
    w->stats->seqs[c]++;
    world_note(w, "sequences: %s", seqs_names[c]);
}

/* ---- the area ---------------------------------------------------------------------------------
 */

static struct page_home home_of(const struct node *n, const struct seqs_holder *h)
{
    struct page_home home = n->home;
    home.inode = h->inode;
    return home;
}

/* It must be the file, as it is, of the generation that stands outside. */
bool seqs_area_is_own(const struct world *w, const struct node *n)
{
    struct seqs_holder *h = seqs_of(w, n);
    struct page_home home = home_of(n, h);
    struct err why;
    return n->has_dir && h->has_file && h->area.generation == h->generation &&
           blockpage_judge(seqs_page(&h->area), SEQS_AREA, &home, &why) == PAGE_OWN;
}

static bool begin_generation(struct world *w, struct seqs_holder *h)
{
    if (h->has_file && w->set.weight[FAULT_PAGE_FULL] && world_chance(w, 10)) {
        world_count(w, FAULT_PAGE_FULL);
        return false;
    }
    h->area.generation = h->generation = ++w->inodes;
    return true;
}

static void format(struct world *w, struct node *n, struct seqs_holder *h)
{
    static const struct page_home nowhere;
    h->inode = ++w->inodes;
    struct page_home home = home_of(n, h);
    blockpage_format(seqs_page(&h->area), SEQS_SLOTS, n->has_dir ? &home : &nowhere, "");
    h->area.noted_ctime = h->ctime = (int64_t)++w->inodes;
    h->area.generation = h->generation;
    h->area.witness.known = false;
    h->has_file = n->has_dir;
}

/* ---- proof ------------------------------------------------------------------------------------
 */

static void settle(struct world *w, struct seqs_holder *h, bool so, enum seqs_count how)
{
    h->settled = true;
    h->back = false;
    blocks_prove(&h->b, so);
    seqs_count(w, so ? how : SEQS_UNPROVEN);
}

/* What is not held any more is not renewed. */
static void give_up_words(const struct node *n, struct seqs_holder *h)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (h->word[i] == SEQS_UNHEARD && n->lease.slot[i].rec.state != PAGE_HELD)
            h->word[i] = SEQS_DENIED;
}

static void look_for_proof(struct world *w, const struct node *n, struct seqs_holder *h)
{
    const struct seqs_witness *x = &h->witness;
    if (h->settled)
        return;
    give_up_words(n, h);
    bool same = x->known && coord_token_equal(h->found[x->slot], x->token);
    enum seqs_word word = same ? h->word[x->slot] : SEQS_DENIED;
    if (word != SEQS_UNHEARD)
        settle(w, h, word == SEQS_LATEST, SEQS_PROVEN_RENEWAL);
}

/* Of an area that is proven: in another one it would prove what may be older. */
static void store_witness(const struct node *n, struct seqs_holder *h)
{
    for (unsigned i = 0; i < LEASE_SLOTS && h->settled; i++) {
        const struct lease_slot *s = &n->lease.slot[i];
        if (s->rec.state != PAGE_HELD || s->unproven)
            continue;
        h->area.witness = (struct seqs_witness){true, i, s->rec.cur};
        return;
    }
}

/* The first answer of each workerId that was found. A renewal that repeats what was about to be
 * sent tells nothing of when that was answered, and one by which the coordinator learns of a holder
 * that it has forgotten tells nothing at all. A coordinator that was set back after the page was,
 * has the workerIds of that page again: not closed. */
void seqs_renewed(struct world *w, struct node *n, const struct lease_action *a,
                  const struct lease_outcome *o)
{
    struct seqs_holder *h = w->seqs ? seqs_of(w, n) : NULL;
    if (!h)
        return;
    bool closed = !h->back || h->back_losses == w->losses;
    for (size_t k = 0; a->kind == LEASE_RENEW && o->status == COORD_OK && k < a->nitems; k++) {
        enum seqs_word *word = &h->word[a->slots[k]];
        if (*word == SEQS_UNHEARD)
            *word = closed && a->items[k].how == COORD_HOW_RENEWED ? SEQS_LATEST : SEQS_DENIED;
    }
    give_up_words(n, h);
    h->due_mono = INT64_MIN;
}

static void begin_proof(struct world *w, const struct node *n, struct seqs_holder *h, bool own,
                        bool left)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        h->found[i] = n->lease.slot[i].rec.cur;
        h->word[i] = SEQS_UNHEARD;
    }
    give_up_words(n, h);
    h->witness = h->area.witness;
    h->settled = false;
    bool any = false;
    for (unsigned i = 0; i < SEQS_PLACES; i++)
        any |= h->b.counter[i].open;
    if (!own || !any) {
        h->settled = true;
        blocks_prove(&h->b, true);
    } else if (left) {
        settle(w, h, true, SEQS_PROVEN_UPGRADE);
    } else if (h->tmpfs) {
        settle(w, h, h->ctime == h->area.noted_ctime, SEQS_PROVEN_TMPFS);
    }
}

/* ---- start and end ----------------------------------------------------------------------------
 */

static bool find_spec(const struct world *w, const char *name, unsigned *out)
{
    for (*out = 0; *out < w->seqs->specs; ++*out)
        if (strcmp(w->seqs->spec[*out].name, name) == 0)
            return true;
    return false;
}

/* Counters whose blocks were taken over have their places; whichever definition is there is meant.
 */
static void take_over_places(struct world *w, struct seqs_holder *h)
{
    memset(h->place, 0, sizeof h->place);
    memset(h->told, 0, sizeof h->told);
    for (unsigned i = 0; i < SEQS_PLACES; i++) {
        const struct blocks_counter *c = &h->b.counter[i];
        struct seqs_place *p = &h->place[i];
        if (!c->open || !find_spec(w, c->of.name, &p->spec))
            continue;
        p->open = true;
        p->own[0].lo = p->own[1].lo = 1;
        p->sub = c->of.sub[0] ? (unsigned)(c->of.sub[0] - 'a') + 1 : 0;
        memcpy(p->period, c->of.period, sizeof p->period);
        sequence_init(&p->s, w->seqs->lasts_ms, w->seqs->cache_max, 0);
    }
}

void seqs_started(struct world *w, struct node *n)
{
    if (!w->seqs || !n->alive)
        return;
    struct seqs_holder *h = seqs_of(w, n);
    const struct blocks_config conf = {.counters = SEQS_PLACES, .stop_ms = 5000};
    struct err e;
    bool own = seqs_area_is_own(w, n), heir = h->heir;
    bool left = own && h->proof && memcmp(&h->handed, &h->area, sizeof h->area) == 0;
    h->heir = h->proof = false;
    if (!own)
        format(w, n, h);
    if (!own || !heir)
        (void)begin_generation(w, h);
    if (blocks_init(&h->b, &conf, seqs_page(&h->area), &w->rng, node_mono(w, n), &e)) {
        (void)fprintf(stderr, "node: %s\n", e.text);
        abort();
    }
    h->has_b = true;
    h->mails = 0;
    h->phase = KEEPER_READY;
    h->due_mono = INT64_MIN;
    h->finished = false;
    for (unsigned i = 0; i < w->seqs->specs; i++)
        h->version[i] = w->seqs->spec[i].versions - 1;
    take_over_places(w, h);
    begin_proof(w, n, h, own, left);
}

void seqs_killed(struct world *w, struct node *n)
{
    struct seqs_holder *h = w->seqs ? seqs_of(w, n) : NULL;
    if (!h)
        return;
    if (h->has_b)
        blocks_clear(&h->b);
    h->has_b = false;
    if (!n->has_dir)
        h->has_file = false;
}

/* Before the end of the program that hands it over. */
void seqs_handed(struct world *w, struct node *n)
{
    struct seqs_holder *h = w->seqs ? seqs_of(w, n) : NULL;
    if (!h)
        return;
    h->handed = h->area;
    h->proof = h->settled && blocks_are_proven(&h->b);
    h->heir = true;
}

void seqs_told_to_stop(struct world *w, struct node *n)
{
    if (w->seqs)
        seqs_of(w, n)->due_mono = INT64_MIN;
}

bool seqs_finished(const struct world *w, const struct node *n)
{
    return !w->seqs || seqs_of(w, n)->finished;
}

/* ---- mails ------------------------------------------------------------------------------------
 */

static struct seqs_note note_of(const struct seqs_holder *h, const struct blocks_mail *m)
{
    const struct blocks_counter *c = &h->b.counter[m->counter];
    struct seqs_note note = {m->lo, m->hi, c->turn, h->b.opening.era, c->latest, c->definition};
    for (unsigned k = 0; k < BLOCKS_SLOTS && m->kind == BLOCKS_MAIL_GRANT; k++)
        if (c->slot[k].handle == m->handle) {
            note.turn = c->slot[k].turn;
            note.era = c->slot[k].era;
            note.token = c->slot[k].token;
            note.definition = c->slot[k].definition;
        }
    return note;
}

static void deliver(struct seqs_holder *h)
{
    if (h->mails + h->b.nmail > SEQS_MAILS) {
        (void)fprintf(stderr, "node: expected at most %d mails of blocks\n", SEQS_MAILS);
        abort();
    }
    for (unsigned i = 0; i < h->b.nmail; i++) {
        struct seqs_mail *to = &h->mail[h->mails++];
        to->m = h->b.mail[i];
        to->note = note_of(h, &to->m);
        to->revoked = h->told[to->m.counter].turn;
    }
    h->b.nmail = 0;
}

/* ---- the keeper -------------------------------------------------------------------------------
 */

static void hear_place(struct world *w, struct seqs_holder *h, uint32_t i)
{
    struct seqs_place *p = &h->place[i];
    struct seqs_spec *s = &w->seqs->spec[p->spec];
    struct blocks_name of = {.sub = {0}};
    if (p->open_due) {
        memcpy(of.name, s->name, sizeof s->name);
        of.sub[0] = p->sub ? (char)('a' + p->sub - 1) : '\0';
        memcpy(of.period, p->period, sizeof of.period);
        blocks_open(&h->b, i, &of, p->has_text ? s->text[p->text] : "");
        h->told[i] = (struct seq_revoked){0};
        if (h->b.counter[i].known) { /* by its text */
            blocks_post_known(&h->b, i);
            deliver(h);
        }
    }
    if (p->want_due)
        blocks_want(&h->b, i, &p->want);
    p->open_due = p->want_due = false;
    p->want = (struct blocks_want){0};
    if (p->close_due && blocks_close(&h->b, i)) {
        h->mail[h->mails++] = (struct seqs_mail){.m = {.kind = BLOCKS_MAIL_CLOSED, .counter = i}};
        p->close_due = false;
    }
}

static void hear(struct world *w, struct node *n, struct seqs_holder *h)
{
    const char *identity = n->lease.identity;
    if (identity[0] && strcmp(seqs_page(&h->area)->head.identity, identity) != 0) {
        if (seqs_page(&h->area)->head.identity[0])
            seqs_count(w, SEQS_OTHER_POOL);
        blocks_lose(&h->b, identity);
        deliver(h);
    }
    for (uint32_t i = 0; i < SEQS_PLACES; i++)
        hear_place(w, h, i);
    if (n->stopping && !h->b.stopping) {
        for (uint32_t i = 0; i < SEQS_PLACES; i++)
            sequence_let_go(&h->place[i].s);
        blocks_stop(&h->b, n->give_back, node_mono(w, n));
    }
}

/* Without a new generation nothing goes back. */
static bool area_is_dated(struct world *w, struct seqs_holder *h)
{
    if (h->b.gave_up)
        h->b.gave_up = !begin_generation(w, h);
    return !h->b.gave_up;
}

static void decide(struct world *w, struct node *n)
{
    static const struct blocks_outcome unsent = {.status = COORD_DOWN};
    struct seqs_holder *h = seqs_of(w, n);
    int64_t mono = node_mono(w, n);
    if (h->mails > SEQS_MAILS / 2)
        return;
    hear(w, n, h);
    look_for_proof(w, n, h);
    store_witness(n, h);
    if (!n->lease.identity[0] && !n->stopping)
        return; /* whom to ask is not known yet */
    blocks_next(&h->b, mono, &h->action);
    deliver(h);
    if (h->action.kind == BLOCKS_IDLE) {
        h->due_mono = h->action.until;
    } else if (h->action.kind == BLOCKS_FINISHED) {
        h->finished = true;
    } else if (h->action.kind == BLOCKS_RETURN && !area_is_dated(w, h)) {
        blocks_done(&h->b, &h->action, &unsent, mono);
        deliver(h);
        h->due_mono = INT64_MIN;
    } else {
        h->phase = KEEPER_SEND;
    }
}

void seqs_keep_once(struct world *w, struct node *n)
{
    struct seqs_holder *h = seqs_of(w, n);
    if (h->finished || !h->has_b)
        return;
    if (h->phase == KEEPER_READY)
        decide(w, n);
    else if (h->phase == KEEPER_SEND)
        seqs_send(w, n);
}

void seqs_keep(struct world *w, struct node *n)
{
    struct seqs_holder *h = w->seqs ? seqs_of(w, n) : NULL;
    if (!h)
        return;
    for (unsigned i = 0; i < 3 && node_runs(w, n) && h->phase != KEEPER_WAIT; i++)
        seqs_keep_once(w, n);
    if (node_runs(w, n) && h->phase == KEEPER_WAIT)
        seqs_round_trip(w, n);
}

/* ---- what came of it --------------------------------------------------------------------------
 */

/* A sidecar that has it in its configuration makes it where it is missing. */
static void make_missing(struct world *w, struct node *n, struct seqs_holder *h, uint32_t i)
{
    const struct seqs_place *p = &h->place[i];
    const struct seqs_spec *s = &w->seqs->spec[p->spec];
    if (!p->open || !p->has_text || s->dropped || p->text % SEQS_ALIEN + 1 != s->versions)
        return;
    seqs_send_create(w, n, p->spec, p->text);
}

static void note_grants(struct world *w, struct node *n, const struct blocks_action *a,
                        const struct blocks_outcome *o)
{
    struct seqs_holder *h = seqs_of(w, n);
    for (size_t k = 0; k < a->nitems; k++) {
        const struct seq_grant *g = &o->grants[k];
        world_note(w, "  %s \"%s\" \"%s\": %s, %lld..%lld, turn %lld, n %lld, next %lld, wait %lld",
                   a->wants[k].name, a->wants[k].sub, a->wants[k].period, seq_how_name(g->how),
                   (long long)g->lo, (long long)g->hi, (long long)g->turn, (long long)g->n,
                   (long long)g->next, (long long)g->wait_ms);
        w->stats->seq_how[g->how]++;
        h->told[a->counter[k]] = g->revoked;
        if (g->how == SEQ_UNKNOWN)
            make_missing(w, n, h, a->counter[k]);
    }
}

void seqs_answer(struct world *w, struct node *n, const struct blocks_action *a,
                 const struct blocks_outcome *o)
{
    struct seqs_holder *h = seqs_of(w, n);
    world_note(w, "node %u hears of its %s: %s", node_number(w, n),
               a->kind == BLOCKS_TAKE ? "take" : "give-back", coord_status_name(o->status));
    if (a->kind == BLOCKS_TAKE && o->status == COORD_OK)
        note_grants(w, n, a, o);
    blocks_done(&h->b, a, o, node_mono(w, n));
    deliver(h);
    h->phase = KEEPER_READY;
    h->due_mono = INT64_MIN;
}

void seqs_time_out(struct world *w, struct node *n)
{
    static const struct blocks_outcome down = {.status = COORD_DOWN};
    seqs_answer(w, n, &seqs_of(w, n)->action, &down);
}

/* ---- a kill between two stores ----------------------------------------------------------------
 */

static void copy_some(void *to, const void *from, size_t n, uint64_t *left)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    for (size_t i = 0; i<n && * left> 0; i++) {
        *left -= t[i] != f[i];
        t[i] = f[i];
    }
}

static void copy_cell(volatile uint64_t *to, const volatile uint64_t *from, uint64_t *left)
{
    if (*to == *from || *left == 0)
        return;
    --*left;
    *to = *from;
}

/* A slot whose mark begins anew was FREE in between: it is there as a whole, or not at all. */
static void copy_slot(struct blockpage_slot *to, const struct blockpage_slot *from, uint64_t *left)
{
    if (to->mark != from->mark) {
        *left -= *left > 0;
        if (*left > 0)
            *to = *from;
        return;
    }
    copy_some(to->copy, from->copy, sizeof to->copy, left);
    copy_cell(&to->commit, &from->commit, left);
}

void seqs_kill_torn(struct world *w, struct node *n, const struct seqs_call *call)
{
    static struct seqs_area torn;
    struct seqs_holder *h = seqs_of(w, n);
    uint64_t left = world_draw(w, 2) ? world_draw(w, 8) : world_draw(w, 400);
    torn = h->area;
    if (call)
        seqs_answer(w, n, &call->action, &call->outcome);
    else
        decide(w, n);
    struct blockpage *to = seqs_page(&torn);
    const struct blockpage *from = seqs_page(&h->area);
    copy_some(to->head_bytes, from->head_bytes, offsetof(struct blockpage_head, opened), &left);
    copy_cell(&to->head.opened, &from->head.opened, &left);
    for (unsigned i = 0; i < SEQS_SLOTS && left > 0; i++)
        copy_slot(&to->slot[i], &from->slot[i], &left);
    if (left == 0) /* last of all, another file stands for the generation */
        h->generation = torn.generation;
    else
        torn.generation = h->area.generation;
    h->area = torn;
    node_kill(w, n);
}
