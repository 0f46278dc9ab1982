#include "base/int64.h"
#include "coord/seq_template.h"
#include "sim/seqs.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- every number -----------------------------------------------------------------------------
 */

#define COUNTERS 512
#define RUNS     4096 /* of one counter: numbers without a gap */
#define RETURNED 256

struct run {
    int64_t lo, hi;
};

struct counter {
    unsigned spec, text, sub, epoch;
    char period[PERIOD_LABEL_MAX];
    struct run run[RUNS]; /* rising */
    unsigned n;
    int64_t answered;          /* the highest; -1: none */
    int64_t last[WORLD_NODES]; /* of each node; -1: none */
};

static struct counter counters[COUNTERS];
static unsigned ncounters;

/* Blocks of which something went back. */
static struct {
    struct coord_token token;
    int64_t lo, hi;
} returned[RETURNED];
static unsigned nreturned;

void seqs_ledger_clear(void)
{
    ncounters = nreturned = 0;
}

static _Noreturn void full(const char *what)
{
    (void)fprintf(stderr, "ledger of sequences: expected room for one more %s, found none\n", what);
    abort();
}

static struct counter *counter_of(unsigned spec, unsigned text, unsigned sub, unsigned epoch,
                                  const char *period)
{
    for (unsigned i = 0; i < ncounters; i++) {
        struct counter *c = &counters[i];
        if (c->spec == spec && c->text == text && c->sub == sub && c->epoch == epoch &&
            strcmp(c->period, period) == 0)
            return c;
    }
    if (ncounters == COUNTERS)
        full("counter");
    struct counter *c = &counters[ncounters++];
    c->spec = spec;
    c->text = text;
    c->sub = sub;
    c->epoch = epoch;
    memcpy(c->period, period, sizeof c->period);
    c->n = 0;
    c->answered = -1;
    for (unsigned i = 0; i < WORLD_NODES; i++)
        c->last[i] = -1;
    return c;
}

/* The first run that ends at index or later; c->n: none does. */
static unsigned find(const struct counter *c, int64_t index)
{
    unsigned from = 0, to = c->n;
    while (from < to) {
        unsigned mid = (from + to) / 2;
        if (c->run[mid].hi < index)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static bool is_used(const struct counter *c, int64_t lo, int64_t hi)
{
    unsigned i = find(c, lo);
    return i < c->n && c->run[i].lo <= hi;
}

static void use(struct counter *c, int64_t lo, int64_t hi)
{
    unsigned i = find(c, lo);
    bool below = i > 0 && c->run[i - 1].hi + 1 == lo;
    bool above = i < c->n && c->run[i].lo == hi + 1;
    if (below && above) {
        c->run[i - 1].hi = c->run[i].hi;
        memmove(&c->run[i], &c->run[i + 1], (c->n - i - 1) * sizeof *c->run);
        c->n--;
    } else if (below) {
        c->run[i - 1].hi = hi;
    } else if (above) {
        c->run[i].lo = lo;
    } else {
        if (c->n == RUNS)
            full("run of numbers");
        memmove(&c->run[i + 1], &c->run[i], (c->n - i) * sizeof *c->run);
        c->run[i] = (struct run){lo, hi};
        c->n++;
    }
}

/* ---- which ones -------------------------------------------------------------------------------
 */

/* The definition of the name that this is the text of; a version that is none of them: 2 * those.
 */
static unsigned text_of(const struct seqs_spec *s, uint64_t definition)
{
    unsigned i = 0;
    while (i < 2 * SEQS_VERSIONS && !(i % SEQS_ALIEN < s->versions &&
                                      seq_definition_hash(span_str(s->text[i])) == definition))
        i++;
    return i;
}

static unsigned sub_number(const char *sub)
{
    return *sub ? (unsigned)(*sub - 'a') + 1 : 0;
}

/* Whoever set it back gave up all numbers of before: they are others from that turn on. What was
 * lost since may bring earlier turns again. */
static bool is_promised(const struct world *w, const struct seqs_spec *s)
{
    return !s->is_void && (s->back_turn == 0 || s->losses == w->losses);
}

static unsigned epoch_of(const struct seqs_spec *s, int64_t turn)
{
    return s->back_turn > 0 && turn >= s->back_turn;
}

static bool trusts(const struct seqs_spec *s, unsigned text)
{
    const struct seqs_spec *v = s;
    unsigned i = text % SEQS_ALIEN;
    return v->version[i].definition.loss == SEQ_LOSS_TRUST;
}

/* ---- grants -----------------------------------------------------------------------------------
 */

/* The line, in another way than line.c: in 128 bits. */
static __int128 line(const struct seq_definition *d, int64_t begins, int64_t ms)
{
    if (ms < begins)
        return -1;
    return (__int128)d->burst - 1 + (__int128)d->rate * (ms - begins) / 1000;
}

void seqs_ledger_again(struct world *w, unsigned spec, const struct seq_grant *g)
{
    struct seqs_spec *s = &w->seqs->spec[spec];
    s->highest = max64(s->highest, g->hi + 1);
}

void seqs_ledger_granted(struct world *w, unsigned spec, const struct seq_grant *g)
{
    struct seqs_spec *s = &w->seqs->spec[spec];
    const struct seq_definition *d = &g->definition;
    int64_t skew = w->set.params.max_skew_ms, off = w->server->at->clock_off;
    struct period p = {.opens_ms = d->begins_ms, .ends_ms = INT64_MAX};
    /* Of a coordinator that was a day ahead the caller's clock counts, which is right within S. */
    int64_t latest = w->now + (off > skew ? 3 * skew : skew);
    seqs_ledger_again(w, spec, g);
    if (w->wild)
        return;
    if (d->reset != PERIOD_NEVER &&
        !period_find(d->reset, d->offset_min, span_str(g->period), &p)) {
        world_fail(w, "%s: granted for the period \"%s\", which is none", s->name, g->period);
        return;
    }
    p.ends_ms += d->reset != PERIOD_NEVER ? d->back_h * INT64_C(3600000) : 0;
    if (latest < max64(p.opens_ms, d->begins_ms) || w->seqs->called - skew >= p.ends_ms)
        world_fail(w, "%s: granted for the period \"%s\" (%lld..%lld), or a beginning, at %lld",
                   s->name, g->period, (long long)p.opens_ms, (long long)p.ends_ms,
                   (long long)w->now);
    if (!w->server->sqlite && d->loss == SEQ_LOSS_SKIP && g->hi > line(d, p.opens_ms, latest))
        world_fail(w, "%s: %lld..%lld were granted, and the line stands at %lld", s->name,
                   (long long)g->lo, (long long)g->hi, (long long)line(d, p.opens_ms, latest));
}

void seqs_ledger_returned(struct world *w, unsigned spec, const struct seq_return *r)
{
    const struct seqs_spec *s = &w->seqs->spec[spec];
    w->stats->seqs[SEQS_WENT_BACK]++;
    unsigned at = nreturned++ % RETURNED;
    returned[at].token = r->token;
    returned[at].lo = r->lo;
    returned[at].hi = r->hi;
    if (!is_promised(w, s) || s->back_turn > 0 || s->version[0].definition.cycle ||
        w->set.replicas > 0) /* others may have had it by the time that replicas have it */
        return;
    for (unsigned i = 0; i < ncounters; i++) {
        const struct counter *c = &counters[i];
        if (c->spec == spec && c->text + 1 == s->versions && c->sub == sub_number(r->sub) &&
            strcmp(c->period, r->period) == 0 && is_used(c, r->lo, r->hi) && !s->has_alien &&
            !(trusts(s, c->text) && w->losses > 0))
            world_fail(w, "%s: %lld..%lld went back, and some of them were given out", s->name,
                       (long long)r->lo, (long long)r->hi);
    }
}

/* ---- what is given out ------------------------------------------------------------------------
 */

/* A name that was dropped goes on behind all that it gave out, as long as no tombstone was lost. */
static void check_tombstones(struct world *w, const struct seqs_place *p, unsigned text,
                             int64_t index, int64_t hi)
{
    const struct seqs_spec *s = &w->seqs->spec[p->spec];
    for (unsigned v = 0; v < s->versions; v++)
        if (v != text && w->losses == s->reused_at[v < text ? v + 1 : text + 1] &&
            is_used(counter_of(p->spec, v, p->sub, 0, p->period), index, hi))
            world_fail(w, "%s: %lld..%lld are given out as before it was dropped", s->name,
                       (long long)index, (long long)hi);
}

static void check_grant(struct world *w, const struct node *n, const struct seqs_place *p,
                        const struct seqs_note *note, bool lost, int64_t index, int64_t hi)
{
    const char *name = w->seqs->spec[p->spec].name;
    for (unsigned i = 0; i < nreturned && i < RETURNED; i++)
        if (coord_token_equal(returned[i].token, note->token) && returned[i].lo <= hi &&
            index <= returned[i].hi)
            world_fail(w, "%s: node %u gives out %lld..%lld, which went back", name,
                       node_number(w, n), (long long)index, (long long)hi);
    if (!lost && note->turn < p->told.turn && note->era < p->told.era && hi >= p->told.from)
        world_fail(w, "%s: node %u gives out %lld..%lld of turn %lld, which was revoked", name,
                   node_number(w, n), (long long)index, (long long)hi, (long long)note->turn);
}

static const char *wrong(const struct counter *c, const struct node *n, const struct world *w,
                         int64_t index, int64_t hi, bool strict, int64_t floor)
{
    if (is_used(c, index, hi))
        return "twice";
    if (!strict && index <= c->last[node_number(w, n)])
        return "after a higher one of this node";
    if (index <= floor)
        return "though a higher one was answered before it was asked for";
    return NULL;
}

void seqs_ledger_given(struct world *w, const struct node *n, const struct seqs_place *p,
                       const struct seqs_note *note, int64_t index, int64_t count,
                       const struct seqs_request *strict)
{
    const struct seqs_spec *s = &w->seqs->spec[p->spec];
    unsigned told = text_of(s, note->definition), text = p->has_text ? p->text : told;
    int64_t hi = index + count - 1;
    w->stats->seqs[SEQS_GIVEN] += (uint64_t)count;
    world_digest(w, (uint64_t)hi);
    world_note(w, "node %u gives out %lld..%lld of %s, sub %u, period \"%s\", turn %lld, text %u",
               node_number(w, n), (long long)index, (long long)hi, s->name, p->sub, p->period,
               (long long)note->turn, told);
    bool known = told % SEQS_ALIEN < s->versions;
    bool lost =
        known && trusts(s, told) && w->losses > 0; /* where nothing could be, by its maker */
    check_grant(w, n, p, note, lost, index, hi);
    if (told != text)
        world_fail(w, "%s: node %u gives out of another definition than it is configured with",
                   s->name, node_number(w, n));
    if (told == 2 * SEQS_VERSIONS)
        world_fail(w, "%s: node %u gives out of a definition that nobody made", s->name,
                   node_number(w, n));
    if (!known)
        return;
    const struct seq_create *v = &s->version[told % SEQS_ALIEN];
    if (hi > s->top[told % SEQS_ALIEN])
        world_fail(w, "%s: node %u gives out %lld, above the max", s->name, node_number(w, n),
                   (long long)hi);
    if (!is_promised(w, s) || v->definition.cycle || lost)
        return;
    struct counter *c = counter_of(p->spec, text, p->sub, epoch_of(s, note->turn), p->period);
    bool counts = strict && strict->of == c;
    if (text < s->versions && s->back_turn == 0 && !s->has_alien)
        check_tombstones(w, p, text, index, hi);
    const char *why = wrong(c, n, w, index, hi, strict != NULL, counts ? strict->floor : -1);
    if (why) {
        world_fail(w, "%s, sub %u, period \"%s\": node %u gives out %lld..%lld %s", s->name, p->sub,
                   p->period, node_number(w, n), (long long)index, (long long)hi, why);
        return;
    }
    use(c, index, hi);
    c->answered = max64(c->answered, hi);
    c->last[node_number(w, n)] = max64(c->last[node_number(w, n)], hi);
}

void seqs_ledger_reserved(struct world *w, unsigned spec, const struct seq_grant *g)
{
    const struct seqs_spec *s = &w->seqs->spec[spec];
    unsigned text = text_of(s, seq_definition_hash(span_str(g->text)));
    if (text == 2 * SEQS_VERSIONS || !is_promised(w, s) || g->definition.cycle ||
        (trusts(s, text) && w->losses > 0))
        return;
    struct counter *c = counter_of(spec, text, 0, epoch_of(s, g->turn), g->period);
    if (is_used(c, g->lo, g->hi))
        world_fail(w, "%s: an operator is given %lld..%lld, of which some were given out", s->name,
                   (long long)g->lo, (long long)g->hi);
    else
        use(c, g->lo, g->hi);
    c->answered = max64(c->answered, g->hi);
}

void seqs_ledger_asked(struct world *w, const struct seqs_place *p, struct seqs_request *r)
{
    const struct seqs_spec *s = &w->seqs->spec[p->spec];
    unsigned text = p->has_text ? p->text : s->versions - 1;
    const struct counter *c = counter_of(p->spec, text, p->sub, s->back_turn > 0, p->period);
    r->of = c;
    r->floor = c->answered;
}
