#include "lease/blocks.h"

#include "base/fnv.h"
#include "base/int64.h"
#include "lease/backoff.h"
#include "lease/blocks_left.h"
#include "lease/blocks_slots.h"

#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS   5000
#define PAUSE_MS         60000 /* from a reopening on: grants pause for a moment, and lag behind */
#define RECHECK_MS       1000 /* somebody may have done something about a refusal, be it to a clock */

/* ---- refusals -------------------------------------------------------------------------------- */

static const enum blocks_kind kinds[BLOCKS_REFUSALS] = {
    [SEQ_WAIT] = BLOCKS_LATER,      [SEQ_CLOSED] = BLOCKS_NEVER,
    [SEQ_USED_UP] = BLOCKS_NEVER,   [SEQ_STOPPED] = BLOCKS_NEVER,
    [SEQ_FORGOTTEN] = BLOCKS_NEVER, [SEQ_UNKNOWN] = BLOCKS_MISS,
    [SEQ_DROPPED] = BLOCKS_MISS,    [SEQ_DIFFERS] = BLOCKS_NEVER,
    [SEQ_NO_SUBS] = BLOCKS_NEVER,   [SEQ_TOO_MANY_SUBS] = BLOCKS_NEVER,
    [SEQ_NO_PERIOD] = BLOCKS_NEVER, [SEQ_UNREADABLE] = BLOCKS_NEVER,
    [BLOCKS_AWAY] = BLOCKS_RETRY,   [BLOCKS_SHUT] = BLOCKS_RETRY,
    [BLOCKS_BACK] = BLOCKS_RETRY,
};

enum blocks_kind blocks_kind_of(unsigned how)
{
    return how < BLOCKS_REFUSALS ? kinds[how] : BLOCKS_NEVER;
}

/* ---- taking over a page ---------------------------------------------------------------------- */

static void take_over_counter(struct blocks_counter *c, const struct blockpage_record *r)
{
    if (c->open)
        return;
    *c =
        (struct blocks_counter){.open = true, .known = true, .text = "", .of = r->of, .beyond = -1};
    c->start = r->start;
    c->increment = r->increment;
    c->definition = r->definition;
    c->reset = r->reset;
    c->offset_min = r->offset_min;
}

/* What was LEAVING may have gone back, and be granted again. */
static void take_over_counts(struct blocks_counter *c, const struct blockpage_record *r)
{
    if (r->gen > c->gen || (r->gen == c->gen && r->n > c->n)) {
        c->gen = r->gen;
        c->n = r->n;
        c->told = r->opening;
    }
    if (r->turn > c->turn) {
        c->turn = r->turn;
        c->top = 0;
    }
    if (r->turn == c->turn && r->state == PAGE_HELD && r->hi >= c->top) {
        c->top = r->hi + 1;
        c->latest = r->token;
    }
}

static void take_over_slot(struct blocks *b, uint32_t i, unsigned k)
{
    struct blocks_counter *c = &b->counter[i];
    struct blocks_slot *s = &c->slot[k];
    struct blockpage_record r;
    if (!blockpage_load(b->page, i * BLOCKS_SLOTS + k, &r) || r.state == PAGE_FREE)
        return;
    bool other = c->open && (!blocks_name_equal(&c->of, &r.of) || c->definition != r.definition);
    take_over_counter(c, &r);
    *s = (struct blocks_slot){.state = r.state,
                              .unproven = true,
                              .token = r.token,
                              .gen = r.gen,
                              .turn = r.turn,
                              .era = r.era,
                              .n = r.n,
                              .lo = r.lo,
                              .hi = r.hi,
                              .start = r.start,
                              .increment = r.increment,
                              .definition = r.definition};
    if (!other)
        take_over_counts(c, &r);
    if (other || r.state == PAGE_LEAVING || blocks_used_up(b, s))
        blocks_set_free(b, s);
}

/* One of which nothing is left to be mailed is not known to the loop. */
static void take_over_slots(struct blocks *b, uint32_t i)
{
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        take_over_slot(b, i, k);
    if (b->counter[i].open)
        b->counter[i].known = blocks_wait_for_proof(&b->counter[i]);
}

enum err_code blocks_init(struct blocks *b, const struct blocks_config *conf,
                          struct blockpage *page, struct rng *rng, int64_t mono, struct err *e)
{
    memset(b, 0, sizeof *b);
    b->conf = *conf;
    b->rng = rng;
    b->page = page;
    memcpy(b->identity, page->head.identity, sizeof b->identity - 1);
    b->counter = calloc(conf->counters, sizeof *b->counter);
    b->line = calloc(conf->counters, sizeof *b->line);
    if (!b->counter || !b->line) {
        blocks_clear(b);
        return err_set(e, ERR_NOMEM, "no memory for %u sequences", conf->counters);
    }
    b->call_due = mono;
    (void)blockpage_opening(page, &b->opening, &b->opened);
    (void)blockpage_time(page, mono, &b->time_ms);
    b->time_mono = mono;
    for (uint32_t i = 0; i < conf->counters && !conf->empty; i++)
        take_over_slots(b, i);
    return ERR_OK;
}

void blocks_clear(struct blocks *b)
{
    templates_clear(&b->templates);
    heard_clear(&b->heard);
    free(b->counter);
    free(b->line);
    b->counter = NULL;
    b->line = NULL;
}

/* The loop has heard nothing of it, and what it is is asked anew. */
static void forget_unproven(struct blocks *b, struct blocks_counter *c)
{
    c->known &= !blocks_wait_for_proof(c);
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        if (c->slot[k].unproven)
            blocks_set_free(b, &c->slot[k]);
}

void blocks_prove(struct blocks *b, bool so)
{
    b->proven = true;
    for (uint32_t i = 0; !so && i < b->conf.counters; i++)
        if (b->counter[i].open)
            forget_unproven(b, &b->counter[i]);
}

void blocks_forget(struct blocks *b, uint32_t i)
{
    struct blocks_counter *c = &b->counter[i];
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        blocks_set_free(b, &c->slot[k]);
    c->open = false;
}

bool blocks_are_proven(const struct blocks *b)
{
    return b->proven && b->unproven == b->conf.counters;
}

/* ---- who wants something --------------------------------------------------------------------- */

static void define(struct blocks *b, struct blocks_counter *c, const struct seq_definition *d,
                   const char *text)
{
    c->known = true;
    c->strict = d->strict;
    c->cycle = d->cycle;
    c->reset = d->reset;
    c->offset_min = d->offset_min;
    c->start = d->start;
    c->increment = d->increment;
    c->definition = seq_definition_hash(span_str(text));
    c->whole = fnv64_str(text);
    c->back_ms = d->back_h * 3600000;
    c->subs = d->subs;
    c->template = templates_find(&b->templates, c->of.name, d, text);
}

static bool is_whole(const struct blocks_name *of)
{
    return !of->sub[0] && !of->period[0];
}

/* That its sequence is there says nothing of a sub or a period, which clients may think of. */
void blocks_open(struct blocks *b, uint32_t i, const struct blocks_name *of, const char *text)
{
    struct blocks_counter *c = &b->counter[i];
    struct seq_definition d;
    assert(!c->open);
    *c = (struct blocks_counter){.open = true, .of = *of, .text = text, .beyond = -1};
    if (is_whole(of) && seq_definition_parse(span_str(text), &d))
        define(b, c, &d, text);
}

void blocks_pin(struct blocks *b, uint32_t i, const char *text)
{
    b->counter[i].text = text;
}

bool blocks_close(struct blocks *b, uint32_t i)
{
    struct blocks_counter *c = &b->counter[i];
    if (c->queued || blocks_wait_for_proof(c))
        return false;
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        blocks_set_free(b, &c->slot[k]);
    c->open = false;
    return true;
}

uint32_t blocks_find(const struct blocks *b, const struct blocks_name *of)
{
    uint32_t i = 0;
    while (i < b->conf.counters &&
           !(b->counter[i].open && blocks_name_equal(&b->counter[i].of, of)))
        i++;
    return i;
}

/* Of a strict one, what is not asked for yet is wanted by its requests all the same; who has no
 * ticket does not know yet that it is one, and comes again. */
void blocks_want(struct blocks *b, uint32_t i, const struct blocks_want *w)
{
    struct blocks_counter *c = &b->counter[i];
    bool strict = c->known && c->strict;
    if (b->stopping || !c->open)
        return;
    c->look |= w->look;
    if (c->look)
        blocks_queue(b, i);
    if (w->count == 0 || (strict && w->upto == 0))
        return;
    int64_t before = strict ? c->want.count : 0;
    c->want.count = min64(before + w->count, SEQ_BLOCK_MAX);
    c->want.whole = w->whole || (before > 0 && c->want.whole);
    c->want.upto = max64(c->want.upto, w->upto);
    c->want.most = before > 0 ? max64(c->want.most, w->most) : w->most;
    blocks_queue(b, i);
}

/* ---- what came of it ------------------------------------------------------------------------- */

static void back_off(struct blocks *b, int64_t mono)
{
    int64_t ms = backoff_ms(BACKOFF_FIRST_MS, b->fails, BACKOFF_MAX_MS);
    b->fails++;
    b->call_due = mono + backoff_jitter(b->rng, ms);
}

static void learn_opening(struct blocks *b, const struct seq_opening *o)
{
    if (o->era == 0 || (b->opened && blockpage_same_opening(o, &b->opening)))
        return;
    b->opening = *o;
    b->opened = blockpage_set_opening(b->page, o);
}

static void learn_definition(struct blocks *b, uint32_t i, const struct seq_grant *g)
{
    struct blocks_counter *c = &b->counter[i];
    define(b, c, &g->definition, g->text);
    if (c->strict &&
        c->want.upto == 0) /* wanted by who did not know: his requests have no tickets */
        c->want.count = 0;
    blocks_post_known(b, i);
}

/* Whether the counter is there, or would be made by a take: by a sub or a date that its sequence
 * can't have, or that is over, there is none, and nothing is known by that name. */
static bool is_there(const struct blocks_counter *c, enum seq_how how)
{
    return is_whole(&c->of) || how == SEQ_LOOKED || how == SEQ_GRANTED || how == SEQ_AGAIN ||
           how == SEQ_USED_UP;
}

/* What the page does not have is of no use to most; a template that is another one is. */
static bool needs_whole(const struct blocks_counter *c, const struct seq_grant *g)
{
    return c->whole != 0 || c->taking.count == 0 || g->definition.template[0];
}

/* Blocks of an earlier making of the name, or of another definition, are of another sequence. */
static void learn_sequence(struct blocks *b, uint32_t i, const struct seq_grant *g)
{
    struct blocks_counter *c = &b->counter[i];
    heard_note(&b->heard, c->of.name, g);
    if (g->gen == 0) /* unknown, unreadable: what was granted is ours all the same */
        return;
    bool other = c->known && seq_definition_hash(span_str(g->text)) != c->definition;
    if (other || g->how == SEQ_DROPPED || (c->gen > 0 && g->gen != c->gen))
        blocks_drop(b, c);
    bool news = other || (c->whole != fnv64_str(g->text) && needs_whole(c, g));
    if (g->how == SEQ_DIFFERS)
        return;
    if (c->known && !news) {
        c->whole = fnv64_str(g->text);
        c->back_ms = g->definition.back_h * 3600000;
        return;
    }
    c->known = (c->known && !other) || is_there(c, g->how); /* numbers of it are held, or were */
    if (c->known)
        learn_definition(b, i, g);
}

/* The store was told of our count, so it knows what it lost. Told to the next one, it would say
 * that this one lost something, too, and nobody could take that one's reopening back. */
static void forget_count(struct blocks *b, struct blocks_counter *c)
{
    c->n = 0;
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++) {
        c->slot[k].n = 0;
        if (c->slot[k].state == PAGE_HELD)
            blocks_store(b, &c->slot[k]);
    }
}

/* Where an operator has set it, or said how far it was. */
static void learn_turn(struct blocks *b, struct blocks_counter *c, const struct seq_grant *g)
{
    const struct seq_revoked *r = &g->revoked;
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++) {
        struct blocks_slot *s = &c->slot[k];
        if (s->state == PAGE_HELD && s->turn < r->turn && s->era < r->era && s->hi >= r->from)
            blocks_cut(b, s, r->from - 1);
    }
    if (c->own_turn < r->turn && c->own_era < r->era && c->own_end > r->from)
        blocks_cut_own(b, c, r->from - 1);
    if (g->how == SEQ_UNKNOWN && c->n > 0)
        forget_count(b, c);
    if (g->gen == 0)
        return;
    if (g->turn != c->turn) {
        c->top = 0;
        memset(&c->latest, 0, sizeof c->latest);
    }
    c->turn = g->turn;
    c->gen = g->gen;
    c->n = g->n;
    c->told = b->opened;
}

static void hold(struct blocks *b, uint32_t i, const struct seq_grant *g)
{
    struct blocks_counter *c = &b->counter[i];
    struct blocks_slot *s = blocks_room(b, c);
    if (!s) /* cannot be: there was room when it was asked for */
        return;
    blocks_set_free(b, s);
    *s = (struct blocks_slot){.state = PAGE_HELD,
                              .token = c->token,
                              .gen = g->gen,
                              .turn = g->turn,
                              .era = b->opening.era,
                              .n = g->n,
                              .lo = g->lo,
                              .hi = g->hi,
                              .start = c->start,
                              .increment = c->increment,
                              .definition = c->definition};
    blocks_store(b, s);
    blocks_mail_grant(b, s);
}

static void granted(struct blocks *b, uint32_t i, const struct seq_grant *g, int64_t mono)
{
    struct blocks_counter *c = &b->counter[i];
    if (!c->cycle && g->lo < c->top) {
        blocks_refuse(b, i, BLOCKS_BACK, mono + BACKOFF_FIRST_MS, false);
        return;
    }
    c->top = g->hi + 1;
    c->beyond = c->cycle ? -1 : g->max - g->hi;
    c->latest = c->token;
    if (!c->strict && !c->taking.whole) {
        hold(b, i, g);
        return;
    }
    struct blocks_mail *m = blocks_post(b, BLOCKS_MAIL_OWN, i);
    m->lo = g->lo;
    m->hi = g->hi;
    m->when = c->taking.upto;
    m->beyond = c->beyond;
    m->given = c->strict && c->taking.whole && c->taking.count <= c->taking.most;
    c->own_turn = g->turn;
    c->own_era = b->opening.era;
    c->own_end = g->hi + 1;
}

/* Nobody knows which of a crowd there is enough for: the largest is asked for next, alone. */
static bool ask_largest(struct blocks *b, struct blocks_counter *c, enum seq_how how)
{
    bool crowd = c->strict && c->taking.whole && c->taking.count > c->taking.most;
    if (!crowd || (how != SEQ_WAIT && how != SEQ_USED_UP))
        return false;
    c->taking.count = c->taking.most;
    c->token = coord_token_new(b->rng);
    c->taken = true;
    return true;
}

/* Fewer in a row than were asked for may be had, until others have had them. */
static void tell_what_is_left(const struct blocks_counter *c, const struct seq_grant *g,
                              struct blocks_mail *m)
{
    int64_t left = g->max + 1 - (c->cycle ? 0 : g->next);
    m->lo = g->max;
    m->hi = min64(m->hi, max64(left, 0) + 1);
}

/* Neither it nor its period has still to begin, nor did the pool just reopen: so it is the line. */
static bool is_at_line(const struct blocks *b, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    struct period p;
    bool early =
        period_find(d->reset, d->offset_min, span_str(g->period), &p) && b->time_ms < p.opens_ms;
    bool pauses = b->opening.era > 1 && b->time_ms < b->opening.topen_ms + PAUSE_MS;
    return g->how == SEQ_WAIT && b->time_ms >= d->begins_ms && !early && !pauses;
}

/* While numbers are in hand more are asked for in advance, and that of them there are none is no
 * matter to anybody. */
static void tell_rate(const struct blocks *b, uint32_t i, const struct seq_grant *g,
                      struct blocks_mail *m)
{
    const struct blocks_counter *c = &b->counter[i];
    bool awaited = c->strict || c->taking.whole || blocks_left_of(b, i) == 0;
    m->lo = awaited && is_at_line(b, g) ? g->definition.rate : 0;
}

static void refused(struct blocks *b, uint32_t i, const struct seq_grant *g, int64_t mono)
{
    struct blocks_counter *c = &b->counter[i];
    int64_t ms = g->how == SEQ_WAIT ? min64(max64(g->wait_ms, 1), RECHECK_MS) : RECHECK_MS;
    blocks_refuse(b, i, g->how, mono + ms, false);
    if (g->how == SEQ_USED_UP)
        tell_what_is_left(c, g, &b->mail[b->nmail - 1]);
    else
        tell_rate(b, i, g, &b->mail[b->nmail - 1]);
    if (!c->strict)
        c->want.count = 0;
}

/* true: it has more to ask. */
static bool take_done(struct blocks *b, uint32_t i, const struct seq_grant *g, int64_t mono)
{
    struct blocks_counter *c = &b->counter[i];
    bool newer = c->want.count > 0;
    learn_sequence(b, i, g);
    learn_turn(b, c, g);
    c->taken = false;
    bool is_grant = g->how == SEQ_GRANTED || g->how == SEQ_AGAIN;
    if (is_grant)
        granted(b, i, g, mono);
    else if (ask_largest(b, c, g->how))
        return true;
    else if (g->how != SEQ_LOOKED)
        refused(b, i, g, mono);
    return (is_grant || g->how == SEQ_LOOKED || (newer && c->strict)) && c->want.count > 0;
}

/* All at the head of the line are repeated. */
static void take_failed(struct blocks *b, const struct blocks_action *a, enum coord_status s,
                        int64_t mono)
{
    unsigned how = s == COORD_CLOSED ? BLOCKS_SHUT : BLOCKS_AWAY;
    back_off(b, mono);
    for (size_t k = 0; k < a->nitems; k++)
        blocks_refuse(b, a->counter[k], how, b->call_due, true);
}

static void takes_done(struct blocks *b, const struct blocks_action *a,
                       const struct blocks_outcome *o, int64_t mono)
{
    if (o->status != COORD_OK) {
        take_failed(b, a, o->status, mono);
        return;
    }
    b->fails = 0;
    learn_opening(b, &o->opening);
    for (size_t k = 0; k < a->nitems; k++) {
        bool more = take_done(b, a->counter[k], &o->grants[k], mono);
        blocks_leave_line(b);
        if (more)
            blocks_queue(b, a->counter[k]);
    }
}

static void return_done(struct blocks *b, const struct blocks_action *a, enum coord_status s,
                        int64_t mono)
{
    if (s != COORD_OK && s != COORD_NOPOOL && s != COORD_WRONGPOOL) {
        back_off(b, mono);
        return;
    }
    b->fails = 0;
    for (size_t k = 0; k < a->nitems; k++)
        for (unsigned j = 0; j < BLOCKS_SLOTS; j++)
            if (b->counter[a->counter[k]].slot[j].state == PAGE_LEAVING)
                blocks_set_free(b, &b->counter[a->counter[k]].slot[j]);
}

void blocks_done(struct blocks *b, const struct blocks_action *a, const struct blocks_outcome *o,
                 int64_t mono)
{
    if (a->serial == 0 || a->serial != b->under_way)
        return;
    b->under_way = 0;
    if (o->reply.now_ms > 0) {
        b->time_ms = o->reply.now_ms;
        b->time_mono = mono;
        blockpage_set_time(b->page, b->time_ms, mono);
    }
    if (a->kind == BLOCKS_RETURN)
        return_done(b, a, o->status, mono);
    else if (!b->stopping)
        takes_done(b, a, o, mono);
}

int64_t blocks_time(const struct blocks *b, int64_t mono)
{
    return b->time_ms > 0 ? b->time_ms + (mono - b->time_mono) : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool could_go_back(const struct blocks *b, const struct blocks_counter *c,
                          const struct blocks_slot *s)
{
    return s->state == PAGE_HELD && !s->unproven && s->era == b->opening.era &&
           s->turn == c->turn && s->gen == c->gen && !blocks_used_up(b, s);
}

static void leave(struct blocks *b, struct blocks_slot *s)
{
    s->state = PAGE_LEAVING;
    b->gave_up = true;
    blocks_store(b, s);
}

static void give_back_top(struct blocks *b, struct blocks_counter *c)
{
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++) {
        struct blocks_slot *top = &c->slot[k], *low = &c->slot[1 - k];
        if (!could_go_back(b, c, top) || !coord_token_equal(top->token, c->latest))
            continue;
        if (could_go_back(b, c, low) && low->hi + 1 == top->lo && blocks_given(b, top) == 0)
            leave(b, low);
        leave(b, top);
        return;
    }
}

void blocks_stop(struct blocks *b, bool give_back, int64_t mono)
{
    b->stopping = true;
    b->stop_by = mono + b->conf.stop_ms;
    b->call_due = mono;
    for (uint32_t i = 0; give_back && i < b->conf.counters; i++)
        if (b->counter[i].open)
            give_back_top(b, &b->counter[i]);
}

void blocks_lose(struct blocks *b, const char *identity)
{
    blockpage_clear(b->page, b->conf.counters * BLOCKS_SLOTS, identity);
    memcpy(b->identity, b->page->head.identity, sizeof b->identity - 1);
    b->opening = (struct seq_opening){0};
    b->opened = 0;
    for (uint32_t i = 0; i < b->conf.counters; i++) {
        struct blocks_counter *c = &b->counter[i];
        memset(c->slot, 0, sizeof c->slot);
        memset(&c->latest, 0, sizeof c->latest);
        c->known = c->known && *c->text;
        c->gen = c->n = c->turn = c->top = c->own_end = 0;
        c->told = 0;
    }
    assert(b->nmail < BLOCKS_MAIL_MAX);
    b->mail[b->nmail++] = (struct blocks_mail){.kind = BLOCKS_MAIL_LOST};
}
