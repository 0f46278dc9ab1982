/*
 * What operators do with sequences, the making of them included.
 *
 * They keep their word: where numbers are given up (set --back), or a name is used again, no older
 * data are put in place any more; and who says above which number to go on knows the highest that
 * was granted to anybody.
 */
#include "sim/seqs_fault.h"

#include "base/int64.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)

#define PICK(w, ...)                                                                               \
    ((const int64_t[]){                                                                            \
        __VA_ARGS__})[world_draw(w, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))]

/* ---- an operator's call -----------------------------------------------------------------------
 */

struct order {
    const struct seqs_spec *s;
    const char *identity;
    const struct seq_create *create;
    struct seq_set set;
    const char *period, *template;
    char lost[PERIOD_LABEL_MAX]; /* of a record that a sweep dropped, though it is not closed */
    int64_t number, now_ms;
    struct coord_token token;
    struct seq_grant out;
    struct coord_reply reply;
};

static enum coord_status call_create(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_create(c, o->identity, o->create, &o->out, &o->reply);
}

static enum coord_status call_set(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_set(c, o->identity, &o->set, &o->out, &o->reply);
}

static enum coord_status call_drop(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_drop(c, o->identity, o->s->name, &o->out, &o->reply);
}

static enum coord_status call_alter(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_alter(c, o->identity, o->s->name, o->number, &o->out, &o->reply);
}

static enum coord_status call_template(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_alter_template(c, o->identity, o->s->name, o->template, &o->out, &o->reply);
}

static bool has(const struct seq_counters *all, const struct seq_counter_info *k)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].gen == k->gen && strcmp(all->v[i].period, k->period) == 0 &&
            strcmp(all->v[i].sub, k->sub) == 0)
            return true;
    return false;
}

/* Of what is not closed for good a record stays. */
static void look_for_lost(struct order *o, const struct seq_counters *before,
                          const struct seq_counters *after)
{
    const struct seq_info *s = &after->sequence;
    for (size_t i = 0; i < before->n; i++) {
        const struct seq_counter_info *k = &before->v[i];
        if (!s->dropped && k->gen == s->gen && strcmp(k->period, s->closed) >= 0 && !has(after, k))
            memcpy(o->lost, k->period, sizeof o->lost);
    }
}

static enum coord_status call_sweep(struct coord *c, void *with)
{
    struct order *o = with;
    struct seq_counters before, after;
    struct coord_reply r;
    if (seq_show(c, o->identity, o->s->name, &before, &r) != COORD_OK)
        before = (struct seq_counters){.n = 0};
    enum coord_status s = seq_sweep(c, o->identity, o->s->name, o->period, &o->out, &o->reply);
    if (s == COORD_OK && seq_show(c, o->identity, o->s->name, &after, &r) == COORD_OK) {
        look_for_lost(o, &before, &after);
        free(after.v);
    }
    free(before.v);
    return s;
}

static enum coord_status call_reopen(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_reopen(c, o->identity, o->s->name, o->number, &o->out, &o->reply);
}

static enum coord_status call_reserve(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_reserve(c, o->identity, o->now_ms, o->s->name, "", o->period, o->number, o->token,
                       &o->out, &o->reply);
}

/* What it came to; SEQ_HOWS: nothing that is known. */
static enum seq_how order(struct world *w, const char *what,
                          enum coord_status (*call)(struct coord *, void *), struct order *o)
{
    o->identity = w->identity;
    o->now_ms = max64(server_ms(w->server), 0);
    if (w->down_until > w->now)
        return SEQ_HOWS;
    int64_t called = w->now;
    enum coord_status s = server_do(w->server, o->now_ms, call, o);
    w->seqs->called = called;
    world_note(w, "operator: %s %s: %s, %s", what, o->s->name, coord_status_name(s),
               s == COORD_OK ? seq_how_name(o->out.how) : "");
    if (s == COORD_OK)
        w->stats->seq_how[o->out.how]++;
    server_remember(w->server, w->now);
    return s == COORD_OK ? o->out.how : SEQ_HOWS;
}

static struct seqs_spec *some_spec(struct world *w)
{
    return &w->seqs->spec[world_draw(w, w->seqs->specs)];
}

static const struct seq_definition *definition_of(const struct seqs_spec *s)
{
    return &s->version[s->versions - 1].definition;
}

/* A label that is now, or was, or comes; "": there are none. */
static const char *some_period(struct world *w, const struct seq_definition *d)
{
    static char label[PERIOD_LABEL_MAX];
    label[0] = '\0';
    int64_t at = w->now + PICK(w, 0, 0, 0, -HOUR_MS, HOUR_MS, -d->back_h * HOUR_MS);
    (void)period_label(d->reset, d->offset_min, at, label);
    return label;
}

/* ---- what is made -----------------------------------------------------------------------------
 */

/* Numbers are written so; of one that cannot have a template "" is. */
static void draw_template(struct world *w, const struct seq_definition *d,
                          char out[TEMPLATE_TEXT_MAX + 1])
{
    const char *date = d->reset == PERIOD_HOUR ? "@{date,%Y%m%d%H}" : "";
    out[0] = '\0';
    if (d->start > 0 && d->increment > 0 && !d->cycle)
        (void)snprintf(out, TEMPLATE_TEXT_MAX + 1, "%c%s-@{seq}", (int)PICK(w, 'A', 'B', 'C', 'D'),
                       date);
}

static void draw_definition(struct world *w, struct seq_create *v)
{
    struct seq_definition *d = &v->definition;
    int64_t loss = (int64_t)world_draw(w, 100);
    *d =
        (struct seq_definition){.start = PICK(w, 1, 1, 100, -5), .increment = PICK(w, 1, 1, 3, -2)};
    d->loss = loss < 65 ? SEQ_LOSS_SKIP : loss < 85 ? SEQ_LOSS_REFUSE : SEQ_LOSS_TRUST;
    if (d->loss == SEQ_LOSS_SKIP) {
        d->rate = PICK(w, 1, 100, 100, 1000, 10000, 1000000);
        d->burst = seq_burst(d->rate);
    }
    d->strict = world_chance(w, 35);
    d->subs = world_chance(w, 40) ? world_between(w, 1, SEQS_SUBS) : 0;
    d->reset = world_chance(w, 35) ? PERIOD_HOUR : PERIOD_NEVER;
    d->offset_min = d->reset == PERIOD_HOUR ? (int)PICK(w, 0, 30, -90) : 0;
    d->back_h = d->reset == PERIOD_HOUR ? PICK(w, 0, 1, 3) : 0;
    d->begins_ms = w->now + PICK(w, -10 * w->set.params.max_skew_ms, -HOUR_MS, 0, 2000, 60000);
    v->has_max = d->loss != SEQ_LOSS_SKIP && world_chance(w, 60);
    v->max = d->start + PICK(w, 20, 300, 5000) * d->increment;
    d->cycle = d->strict && v->has_max && world_chance(w, 30);
    if (world_chance(w, 30))
        d->begins_ms = 0;
}

static void know(struct seqs_spec *s, const struct seq_grant *g)
{
    unsigned i = s->versions - 1;
    s->version[i].definition = g->definition;
    (void)seq_definition_text(s->text[i], &g->definition);
    s->top[i] = g->max;
    /* Another one: later, and of another rate where it has one. */
    s->alien[i] = s->version[i];
    struct seq_definition *d = &s->alien[i].definition;
    d->begins_ms++;
    if (d->rate > 0) {
        d->rate = d->rate == 1 ? 100 : 1;
        d->burst = seq_burst(d->rate);
    }
    (void)seq_definition_text(s->text[SEQS_ALIEN + i], d);
}

static enum seq_how make_version(struct world *w, struct seqs_spec *s, bool reuse)
{
    struct seq_create *v = &s->version[s->versions];
    int64_t start = s->version[0].definition.start, increment = s->version[0].definition.increment;
    draw_definition(w, v);
    if (reuse) { /* so that its indices are those of before */
        v->definition.start = start;
        v->definition.increment = increment;
        v->has_max = v->definition.cycle = false;
        v->definition.begins_ms = max64(v->definition.begins_ms, w->now);
    }
    if (world_chance(w, 50))
        draw_template(w, &v->definition, v->definition.template);
    v->name = s->name;
    v->reuse = v->no_older = reuse;
    struct order o = {.s = s, .create = v};
    enum seq_how how = order(w, "create", call_create, &o);
    v->reuse = v->no_older = false;
    if (how != SEQ_DONE)
        return how;
    s->versions++;
    know(s, &o.out);
    return how;
}

void seqs_draw(struct world *w)
{
    struct seqs *q = w->seqs;
    q->specs = (unsigned)world_between(w, 1, SEQS_SPECS);
    q->lasts_ms = PICK(w, 1000, 1000, 60000);
    q->cache_max = PICK(w, 10, 1000, 1000, 100000);
    q->sizes = (unsigned)PICK(w, 4, 6, 8, 10, 10, 10);
    bool aliens = world_chance(w, 20);
    for (unsigned f = 0; f < SEQS_FAULTS; f++)
        q->weight[f] = world_chance(w, 60);
    q->weight[SEQS_REOPEN] *= 4;
    q->weight[SEQS_IN_PLACE] *= 6;
    q->weight[SEQS_REUSE] *= 6;
    q->weight[SEQS_STATE_BACK] *= 6;
    q->weight[SEQS_AREA_BACK] *= 4;
    q->weight[SEQS_CLOCK_DAY] *= 2;
    q->weight[SEQS_STOP] *= 10;
    q->weight[SEQS_REPLY_LOST] *= 12;
    for (unsigned i = 0; i < q->specs && !w->failed; i++) {
        struct seqs_spec *s = &q->spec[i];
        (void)snprintf(s->name, sizeof s->name, "%c", (char)('k' + (int)i));
        if (make_version(w, s, false) != SEQ_DONE)
            world_fail(w, "cannot make a sequence");
        s->has_alien = aliens && world_chance(w, 60);
    }
    for (unsigned i = 0; i < w->set.nodes; i++) {
        struct seqs_holder *h = &q->holder[i];
        h->tmpfs = world_chance(w, 50);
        h->texts = world_chance(w, 85);
        for (unsigned k = 0; k < q->specs; k++)
            h->alien[k] = q->spec[k].has_alien && world_chance(w, 30);
    }
    if (aliens)
        seqs_count(w, SEQS_ALIENS);
}

/* ---- operators --------------------------------------------------------------------------------
 */

static bool no_older_data(struct world *w)
{
    if (w->set.replicas > 0)
        return false;
    server_forget_copies(w->server);
    return true;
}

static bool set(struct world *w, bool back)
{
    struct seqs_spec *s = some_spec(w);
    const struct seq_definition *d = definition_of(s);
    int64_t index = back ? (int64_t)world_draw(w, (uint64_t)s->highest + 1)
                         : s->highest + PICK(w, 0, 1, 50, 900, 20000);
    bool sub = d->subs > 0 && world_chance(w, 50);
    if (index > seq_last_index(d) || (back && !no_older_data(w)))
        return false;
    struct order o = {.s = s,
                      .set = {.name = s->name,
                              .sub = sub ? "a" : "",
                              .period = some_period(w, d),
                              .number = seq_number(d, index),
                              .back = back,
                              .no_older = back}};
    enum seq_how how = order(w, back ? "set --back" : "set", call_set, &o);
    if (how != SEQ_DONE)
        return false;
    s->highest = max64(s->highest, index);
    if (back) {
        /* Within 2S a turn that was lost may have had this number, too. */
        s->is_void |= s->back_turn > 0 || o.out.turn <= s->turns;
        s->back_turn = o.out.turn;
        s->losses = w->losses;
        server_forget_copies(w->server);
    }
    s->turns = max64(s->turns, o.out.turn);
    return true;
}

bool seqs_fault_set(struct world *w)
{
    return set(w, false);
}

bool seqs_fault_set_back(struct world *w)
{
    return world_chance(w, 30) && set(w, true);
}

bool seqs_fault_drop(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    if (!world_chance(w, 30) || order(w, "drop", call_drop, &o) != SEQ_DONE)
        return false;
    struct seqs_spec *s = &w->seqs->spec[o.s - w->seqs->spec];
    s->dropped_at = s->dropped ? s->dropped_at : w->losses;
    s->dropped = true;
    return true;
}

bool seqs_fault_reuse(struct world *w)
{
    struct seqs_spec *s = some_spec(w);
    if (!s->dropped || s->versions == SEQS_VERSIONS || !no_older_data(w) ||
        make_version(w, s, true) != SEQ_DONE)
        return false;
    server_forget_copies(w->server);
    s->dropped = false;
    s->reused_at[s->versions - 1] = s->dropped_at;
    return true;
}

bool seqs_fault_alter(struct world *w)
{
    struct seqs_spec *s = some_spec(w);
    struct seq_create *v = &s->version[s->versions - 1];
    struct order o = {.s = s};
    if (!v->has_max || v->definition.cycle)
        return false;
    o.number = v->max + world_between(w, 0, 300) * v->definition.increment;
    if (w->down_until <= w->now) { /* from when it is done on, be it that nobody hears of that */
        int64_t *top = &s->top[s->versions - 1];
        *top = max64(*top, seq_max_index(&v->definition, o.number));
    }
    bool done = order(w, "alter", call_alter, &o) == SEQ_DONE;
    v->max = done ? o.number : v->max;
    return done;
}

/* Configurations follow, or not: then who has it in his is refused what he wants. */
bool seqs_fault_template(struct world *w)
{
    struct seqs_spec *s = some_spec(w);
    struct seq_create *v = &s->version[s->versions - 1];
    char template[TEMPLATE_TEXT_MAX + 1];
    draw_template(w, &v->definition, template);
    struct order o = {.s = s, .template = template};
    if (!template[0] || order(w, "template", call_template, &o) != SEQ_DONE)
        return false;
    if (!world_chance(w, 70))
        return true;
    memcpy(v->definition.template, template, sizeof template);
    (void)seq_definition_text(s->text[s->versions - 1], &v->definition);
    return true;
}

bool seqs_fault_sweep(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    o.period = world_chance(w, 30) ? "" : some_period(w, definition_of(o.s));
    bool done = order(w, "sweep", call_sweep, &o) == SEQ_DONE;
    if (done && o.lost[0] && w->set.replicas == 0) /* nothing came between */
        world_fail(w, "%s: a sweep drops the period \"%s\", which is not closed", o.s->name,
                   o.lost);
    return done;
}

bool seqs_reserve(struct world *w, unsigned spec, const char *period, int64_t n)
{
    struct order o = {.s = &w->seqs->spec[spec], .period = period, .number = n};
    o.token = coord_token_new(&w->rng);
    if (order(w, "reserve", call_reserve, &o) != SEQ_GRANTED)
        return false;
    seqs_ledger_granted(w, spec, &o.out);
    seqs_ledger_reserved(w, spec, &o.out);
    return true;
}

bool seqs_fault_reserve(struct world *w)
{
    const struct seqs_spec *s = some_spec(w);
    int64_t n = world_between(w, 1, 50);
    return seqs_reserve(w, (unsigned)(s - w->seqs->spec), some_period(w, definition_of(s)), n);
}

bool seqs_fault_reopen(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    const struct seq_definition *d = definition_of(o.s);
    o.number = o.s->highest > 0 ? seq_number(d, o.s->highest - 1) : d->start - d->increment;
    int64_t *turns = &w->seqs->spec[o.s - w->seqs->spec].turns;
    bool done = order(w, "reopen", call_reopen, &o) == SEQ_DONE;
    *turns = max64(*turns, o.out.turn);
    return done;
}

bool seqs_fault_create_again(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    o.create = &o.s->version[o.s->versions - 1];
    if (o.s->dropped)
        return false;
    enum seq_how how = order(w, "create", call_create, &o);
    return how == SEQ_DONE || how == SEQ_KEPT;
}
