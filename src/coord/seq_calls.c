#include "coord/seq_calls.h"

#include "base/int64.h"
#include "coord/outcome.h"
#include "coord/seq_rows.h"
#include "coord/seq_template.h"
#include "coord/seq_within.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is asked --------------------------------------------------------------------------- */

static const struct seq_driver *driver(struct coord *c, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->sequences)
        (void)outcome_refused(r,
                              "sequences: expected a coordinator with a pool, found one without");
    return c->driver->sequences;
}

bool seq_forgets(struct coord *c)
{
    return c->driver->sequences && c->driver->sequences->forgets(c);
}

static bool is_index(int64_t v)
{
    return v >= 0 && v <= SEQ_INDEX_MAX;
}

static bool is_number(int64_t v)
{
    return v >= -SEQ_NUMBER_MAX && v <= SEQ_NUMBER_MAX;
}

/* Cut, since it may be of any length. */
static bool no(struct coord_reply *r, const char *what, const char *expected, const char *found)
{
    (void)outcome_refused(r, "%s: expected %s, found \"%.80s\"", what, expected, found);
    return false;
}

static bool is_name(const char *name)
{
    return seq_is_name(span_of(name, strnlen(name, SEQ_NAME_MAX)));
}

static bool is_sub(const char *sub)
{
    return !*sub || seq_is_sub(span_of(sub, strnlen(sub, SEQ_SUB_MAX)));
}

static bool is_period(const char *period)
{
    return !*period || seq_is_period(span_of(period, strnlen(period, PERIOD_LABEL_MAX)));
}

bool seq_are_names(const char *name, const char *sub, const char *period)
{
    return is_name(name) && is_sub(sub) && is_period(period);
}

static bool are_names(const char *name, const char *sub, const char *period, struct coord_reply *r)
{
    if (!is_name(name))
        return no(r, "sequence", "a name of 1 to 64 letters, digits, '_', '.' and '-'", name);
    if (!is_sub(sub))
        return no(r, "sub", "1 to 100 printable characters without a space", sub);
    return is_period(period) || no(r, "period", "a date such as 2026-11-22", period);
}

static bool is_text(const char *s, size_t max)
{
    size_t n = strnlen(s, max), i = 0;
    while (i < n && s[i] >= ' ' && s[i] <= '~')
        i++;
    return i == n && n < max;
}

bool seq_is_opening(const struct seq_opening *o)
{
    return is_index(o->era) && is_index(o->topen_ms) && is_text(o->fingerprint, SEQ_OPENING_MAX);
}

static bool is_want(const struct seq_want *w, struct coord_reply *r)
{
    if (!are_names(w->name, w->sub, w->period, r))
        return false;
    if (w->count < 0 || w->count > SEQ_BLOCK_MAX || !is_index(w->gen) || !is_index(w->n) ||
        !is_index(w->seen)) {
        (void)outcome_refused(r,
                              "sequence \"%s\": expected 0 to %d numbers and counts of 0 to 2^53-1,"
                              " found %" PRId64 ", %" PRId64 ", %" PRId64 " and %" PRId64,
                              w->name, SEQ_BLOCK_MAX, w->count, w->gen, w->n, w->seen);
        return false;
    }
    return is_text(w->text, SEQ_TEXT_MAX) || no(r, "definition", "printable text", w->text);
}

static bool is_identity(const char *identity, struct coord_reply *r)
{
    return (*identity && is_text(identity, COORD_IDENTITY_MAX) && !strchr(identity, ' ')) ||
           no(r, "identity", "1 to 95 printable characters", identity);
}

bool seq_may_ask(struct coord *c, const char *identity, const char *name, struct coord_reply *r)
{
    return driver(c, r) && is_identity(identity, r) && (!name || are_names(name, "", "", r));
}

static bool is_count(size_t n, struct coord_reply *r)
{
    if (n > 0 && n <= SEQ_ITEMS_MAX)
        return true;
    (void)outcome_refused(r, "sequences: expected 1 to %d at once, found %zu", SEQ_ITEMS_MAX, n);
    return false;
}

/* ---- what is answered ------------------------------------------------------------------------ */

/* It is as the rules make it: a driver that reads what it is told has no other judge. count 0: of
 * no block. */
static bool is_sound(const struct seq_grant *g, int64_t count)
{
    bool block = g->how == SEQ_GRANTED || g->how == SEQ_AGAIN;
    if ((unsigned)g->how >= SEQ_HOWS || block != (g->hi > 0 || g->lo > 0 || block))
        return false;
    if (block &&
        (g->gen == 0 || !*g->text || count == 0 || g->lo > g->hi || g->hi > g->max ||
         g->hi - g->lo >= SEQ_BLOCK_MAX || (g->how == SEQ_GRANTED && g->hi - g->lo >= count)))
        return false;
    return (g->how == SEQ_WAIT) == (g->wait_ms > 0);
}

static bool read_definition(struct seq_grant *g)
{
    return !*g->text || (seq_definition_parse(span_str(g->text), &g->definition) &&
                         g->max <= seq_last_index(&g->definition));
}

static enum coord_status judge(enum coord_status s, struct seq_grant *g, int64_t count,
                               struct coord_reply *r)
{
    if (s != COORD_OK || (is_sound(g, count) && read_definition(g)))
        return s;
    return outcome_refused(r,
                           "answer of the script: expected a block of up to %" PRId64
                           " below max, and a definition, found %s of %" PRId64 "..%" PRId64
                           ", max %" PRId64 ", wait %" PRId64 ", \"%.48s\"",
                           count, seq_how_name(g->how), g->lo, g->hi, g->max, g->wait_ms, g->text);
}

/* ---- what sidecars do ------------------------------------------------------------------------ */

enum coord_status seq_take(struct coord *c, const char *identity, const struct seq_caller *by,
                           const struct seq_want *items, struct seq_grant *out, size_t n,
                           struct seq_opening *opening, struct coord_reply *r)
{
    const struct seq_driver *d = driver(c, r);
    *opening = (struct seq_opening){.era = 0};
    if (!d || !is_identity(identity, r) || !is_count(n, r))
        return COORD_REFUSED;
    memset(out, 0, n * sizeof *out);
    if (!is_index(by->now_ms) || !seq_is_opening(&by->opening))
        return outcome_refused(r, "sequences: expected a clock and an opening, found none");
    for (size_t i = 0; i < n; i++) {
        if (!is_want(&items[i], r))
            return COORD_REFUSED;
    }
    enum coord_status s = d->take(c, identity, by, items, out, n, opening, r);
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        s = judge(s, &out[i], items[i].count, r);
    if (s != COORD_OK)
        memset(out, 0, n * sizeof *out);
    return s;
}

enum coord_status seq_give_back(struct coord *c, const char *identity,
                                const struct seq_return *items, enum seq_how *how, size_t n,
                                struct coord_reply *r)
{
    const struct seq_driver *d = driver(c, r);
    if (!d || !is_identity(identity, r) || !is_count(n, r))
        return COORD_REFUSED;
    for (size_t i = 0; i < n; i++) {
        const struct seq_return *v = &items[i];
        how[i] = SEQ_KEPT;
        if (!are_names(v->name, v->sub, v->period, r))
            return COORD_REFUSED;
        if (!is_index(v->gen) || !is_index(v->n) || !is_index(v->lo) || !is_index(v->hi) ||
            v->lo > v->hi)
            return outcome_refused(
                r, "sequence \"%s\": expected a block to give back, found %" PRId64 "..%" PRId64,
                v->name, v->lo, v->hi);
    }
    return d->give_back(c, identity, items, how, n, r);
}

enum coord_status seq_reserve(struct coord *c, const char *identity, int64_t caller_ms,
                              const char *name, const char *sub, const char *period, int64_t count,
                              struct coord_token token, struct seq_grant *out,
                              struct coord_reply *r)
{
    const struct seq_caller by = {.now_ms = caller_ms};
    const struct seq_want want = {.name = name,
                                  .sub = sub,
                                  .period = period,
                                  .text = "",
                                  .count = count,
                                  .whole = true,
                                  .token = token};
    struct seq_opening opening;
    return seq_take(c, identity, &by, &want, out, 1, &opening, r);
}

/* ---- what operators do ----------------------------------------------------------------------- */

static enum coord_status operate(struct coord *c, const char *identity, const struct seq_order *in,
                                 struct seq_grant *out, struct coord_reply *r)
{
    memset(out, 0, sizeof *out);
    enum coord_status s = c->driver->sequences->operate(c, identity, in, out, r);
    s = judge(s, out, 0, r);
    if (s != COORD_OK)
        memset(out, 0, sizeof *out);
    return s;
}

static enum coord_status no_end(struct coord_reply *r)
{
    return outcome_refused(r, "answer of the script: expected an end within %d parts, found none",
                           SEQ_PARTS_MAX);
}

enum coord_status seq_read_rows(struct coord *c, const char *identity, const char *prefix,
                                struct seq_rows *out, struct coord_reply *r)
{
    for (int i = 0; i < SEQ_PARTS_MAX; i++) {
        enum coord_status s = c->driver->sequences->rows(c, identity, prefix, out, r);
        bool ends = out->cursor == 0 && out->told == 0;
        if (s == COORD_OK && !ends)
            continue;
        seq_rows_sort(out);
        return s;
    }
    return no_end(r);
}

/* The sequence as it is, so that what follows is meant for it, and counts in its indices. COORD_OK
 * and out->text: it is there, dropped or not; its record is what out says. */
static enum coord_status look(struct coord *c, const char *identity, const char *name,
                              struct seq_grant *out, int64_t *top, struct coord_reply *r)
{
    struct seq_rows rows = {.n = 0};
    struct seq_state state;
    char key[SEQ_KEY_MAX];
    memset(out, 0, sizeof *out);
    if (!seq_may_ask(c, identity, name, r))
        return COORD_REFUSED;
    enum coord_status s = seq_read_rows(c, identity, seq_state_key(key, name), &rows, r);
    out->how = SEQ_UNKNOWN;
    for (size_t i = 0; i < rows.n && s == COORD_OK; i++) {
        if (strcmp(rows.v[i].key, key) != 0)
            continue;
        out->how = SEQ_UNREADABLE;
        if (!seq_state_read(span_str(rows.v[i].value), &state, &out->definition))
            continue;
        memcpy(out->text, state.text, sizeof out->text);
        out->how = state.dropped ? SEQ_DROPPED : SEQ_LOOKED;
        out->gen = state.gen;
        out->max = state.max;
        *top = state.top;
    }
    seq_rows_clear(&rows);
    return s;
}

/* An order for the sequence that look() found. */
static struct seq_order order(enum seq_verb verb, const char *name, const struct seq_grant *found)
{
    return (struct seq_order){.verb = verb,
                              .name = name,
                              .sub = "",
                              .period = "",
                              .text = found->text,
                              .to = "",
                              .gen = found->gen};
}

#define LATER_MS (2 * COORD_MAX_SKEW_MS + 60000) /* a creation comes within this of a look */

static enum coord_status not_apart(const char *name, const char *template, const char *had,
                                   const char *why, struct coord_reply *r)
{
    return outcome_refused(r,
                           "sequence \"%s\": expected a template with a literal at a fixed place "
                           "that differs from all that it had, so that none writes another's "
                           "texts, found \"%.120s\" beside \"%.120s\"%s",
                           name, template, had, why);
}

/* Whether none writes a text of the other. The earlier one was taken by a definition that is not
 * kept: so it is read by the shortest period that it can tell, by which least of a date is text. */
static bool are_apart(const char *name, const char *had, const struct template *t)
{
    struct seq_definition was = {.subs = 1};
    struct template earlier;
    struct err ignored;
    (void)snprintf(was.template, sizeof was.template, "%s", had);
    for (was.reset = PERIOD_NEVER; was.reset < PERIOD_RESETS; was.reset++)
        if (!seq_template_parse(name, &was, 0, &earlier, &ignored))
            return template_apart(t, &earlier);
    return false;
}

/* As d, whose numbers go on with that of an index: what writes them has to be wide enough for it.
 */
static struct seq_definition going_on(const struct seq_definition *d, int64_t index)
{
    struct seq_definition from = *d;
    from.start = seq_number(d, index);
    return from;
}

/* Holds the template of d, where it has one, against those that its name had before, the latest of
 * which stands in `found`; *kept: under which number that is to be kept. */
static enum coord_status check_template(struct coord *c, const char *identity, const char *name,
                                        const struct seq_definition *d, int64_t max,
                                        const struct seq_definition *found, int64_t *kept,
                                        struct coord_reply *r)
{
    struct seq_rows rows = {.n = 0};
    struct template t;
    struct err e;
    if (d->template[0] && seq_template_parse(name, d, max, &t, &e))
        return outcome_refused(r, "sequence \"%s\": %s", name, e.text);
    enum coord_status s = seq_templates(c, identity, name, &rows, r);
    *kept = (int64_t)rows.n;
    if (s == COORD_OK && rows.n >= SEQ_KEPT_MAX)
        s = outcome_refused(r, "sequence \"%s\": expected at most %d templates, found as many",
                            name, SEQ_KEPT_MAX);
    for (size_t i = 0; i <= rows.n && s == COORD_OK && d->template[0]; i++) {
        const char *had = i < rows.n ? rows.v[i].value : found->template;
        bool same = strcmp(had, d->template) == 0;
        if (*had && !(same && i == rows.n) && (same || !are_apart(name, had, &t)))
            s = not_apart(name, d->template, had, same ? ": it was left for another one" : "", r);
    }
    seq_rows_clear(&rows);
    return s;
}

/* What it may have granted, index + 1: a table without its tombstone may have gone on, where it can
 * forget that. */
static int64_t top_of(struct coord *c, const struct seq_grant *dropped, int64_t top, int64_t now_ms)
{
    const struct seq_definition *d = &dropped->definition;
    struct line l = {d->begins_ms, d->rate, d->burst};
    if (d->loss != SEQ_LOSS_SKIP || !seq_forgets(c))
        return top;
    if (d->reset != PERIOD_NEVER)
        l.begins_ms = 0;
    int64_t until = d->reset == PERIOD_NEVER ? now_ms + LATER_MS : seq_open_ms(d);
    return max64(top, min64(line_at(&l, until), dropped->max) + 1);
}

/* The first index that lies behind all numbers of the sequence that was dropped. */
static enum coord_status base_of(const struct seq_grant *dropped, int64_t top,
                                 const struct seq_definition *d, int64_t *base,
                                 struct coord_reply *r)
{
    const struct seq_definition *old = &dropped->definition;
    *base = 0;
    if ((old->increment > 0) != (d->increment > 0))
        return outcome_refused(r, "reuse: expected it to count as the one that was dropped did, %s",
                               old->increment > 0 ? "up" : "down");
    if (top > 0) {
        int64_t last = seq_number(old, top - 1);
        *base = seq_index_from(d, last + (d->increment > 0 ? 1 : -1));
    }
    return COORD_OK;
}

/* Of one that skips, whether numbers from base on may be granted by the time a period begins. Its
 * line is the same in each, and so a period would give none, or none at first, for ever. */
static bool reaches(struct coord *c, const struct seq_definition *d, int64_t base)
{
    const struct line l = {0, d->rate, d->burst};
    return d->reset == PERIOD_NEVER || d->loss != SEQ_LOSS_SKIP || !seq_forgets(c) ||
           base <= line_at(&l, period_lead_ms(d->reset));
}

enum coord_status seq_create(struct coord *c, const char *identity, const struct seq_create *in,
                             struct seq_grant *out, struct coord_reply *r)
{
    struct seq_definition d = in->definition;
    struct seq_grant found;
    struct err e;
    char text[SEQ_TEXT_MAX];
    int64_t top = 0, max = d.increment > 0 ? SEQ_NUMBER_MAX : -SEQ_NUMBER_MAX;
    d.burst =
        d.loss == SEQ_LOSS_SKIP && d.rate > 0 && d.rate <= LINE_RATE_MAX ? seq_burst(d.rate) : 0;
    max = in->has_max ? in->max : max;
    memset(out, 0, sizeof *out);
    enum coord_status s = look(c, identity, in->name, &found, &top, r);
    if (s != COORD_OK)
        return s;
    if (seq_check(&d, max, &e))
        return outcome_refused(r, "sequence \"%s\": %s", in->name, e.text);
    if (found.how == SEQ_LOOKED &&
        seq_definition_means(&d, found.definition.begins_ms, found.text)) {
        *out = found; /* no order, which clocks apart are refused, and a closed pool */
        out->how = SEQ_KEPT;
        return COORD_OK;
    }
    struct seq_order o = order(SEQ_VERB_CREATE, in->name, &found);
    o.text = seq_definition_text(text, &d);
    o.index = seq_max_index(&d, max);
    o.flag = in->fresh;
    bool again = found.how == SEQ_DROPPED && in->reuse && in->no_older;
    o.gen = again ? found.gen : 0;
    o.top = again ? top_of(c, &found, top, r->now_ms) : 0;
    s = again ? base_of(&found, o.top, &d, &o.base, r) : COORD_OK;
    const struct seq_definition from = going_on(&d, o.base);
    if (s == COORD_OK && (d.template[0] || again))
        s = check_template(c, identity, in->name, &from, max, &found.definition, &o.kept, r);
    if (s != COORD_OK)
        return s;
    if (o.base > o.index)
        return outcome_refused(r,
                               "sequence \"%s\": expected a max behind all that was given out of "
                               "the one that was dropped, found %" PRId64,
                               in->name, max);
    if (!reaches(c, &d, o.base))
        return outcome_refused(r,
                               "sequence \"%s\": expected another name, or --on-loss refuse, since "
                               "it would go on from %" PRId64
                               " in each %s, behind all that was given out of the one that was "
                               "dropped, which a line of %" PRId64 " a second reaches too late",
                               in->name, seq_number(&d, o.base), period_reset_name(d.reset),
                               d.rate);
    return operate(c, identity, &o, out, r);
}

enum coord_status seq_alter(struct coord *c, const char *identity, const char *name, int64_t max,
                            struct seq_grant *out, struct coord_reply *r)
{
    int64_t top;
    enum coord_status s = look(c, identity, name, out, &top, r);
    if (s != COORD_OK || out->how != SEQ_LOOKED)
        return s;
    if (!is_number(max))
        return outcome_refused(r, "max: expected up to 2^53-1, found %" PRId64, max);
    const struct seq_grant found = *out;
    const struct seq_definition *d = &found.definition;
    struct template t;
    struct err e;
    if (d->template[0] && seq_template_parse(name, d, max, &t, &e))
        return outcome_refused(r, "sequence \"%s\": %s", name, e.text);
    struct seq_order o = order(SEQ_VERB_ALTER, name, &found);
    o.index = seq_max_index(d, max);
    if (o.index < found.max) {
        out->how = SEQ_LOWER;
        return s;
    }
    return operate(c, identity, &o, out, r);
}

enum coord_status seq_alter_template(struct coord *c, const char *identity, const char *name,
                                     const char *template, struct seq_grant *out,
                                     struct coord_reply *r)
{
    int64_t top;
    char text[SEQ_TEXT_MAX];
    enum coord_status s = look(c, identity, name, out, &top, r);
    if (s != COORD_OK || out->how != SEQ_LOOKED)
        return s;
    const struct seq_grant found = *out;
    struct seq_definition to = found.definition;
    if (strcmp(template, to.template) == 0) {
        out->how = SEQ_KEPT;
        return s;
    }
    (void)snprintf(to.template, sizeof to.template, "%s", template);
    if (strlen(template) > TEMPLATE_TEXT_MAX || !*template)
        return outcome_refused(r, "template: expected 1 to %d bytes, found %zu", TEMPLATE_TEXT_MAX,
                               strlen(template));
    struct seq_order o = order(SEQ_VERB_ALTER, name, &found);
    o.index = found.max;
    bool begins = to.reset != PERIOD_NEVER || to.subs > 0 || to.increment < 0; /* with the widest */
    const struct seq_definition from = going_on(&to, begins ? 0 : min64(top, found.max));
    s = check_template(c, identity, name, &from, seq_number(&to, found.max), &found.definition,
                       &o.kept, r);
    if (s != COORD_OK)
        return s;
    o.to = seq_definition_text(text, &to);
    return operate(c, identity, &o, out, r);
}

enum coord_status seq_set(struct coord *c, const char *identity, const struct seq_set *in,
                          struct seq_grant *out, struct coord_reply *r)
{
    int64_t top;
    enum coord_status s = look(c, identity, in->name, out, &top, r);
    if (s != COORD_OK || out->how != SEQ_LOOKED)
        return s;
    if (!are_names(in->name, in->sub, in->period, r))
        return COORD_REFUSED;
    const struct seq_grant found = *out;
    struct seq_order o = order(SEQ_VERB_SET, in->name, &found);
    o.sub = in->sub;
    o.period = in->period;
    o.flag = in->back && in->no_older;
    o.index = is_number(in->number) ? seq_index_from(&found.definition, in->number) : -1;
    if (!is_index(o.index) || o.index > found.max) {
        out->how = SEQ_USED_UP;
        return s;
    }
    return operate(c, identity, &o, out, r);
}

enum coord_status seq_drop(struct coord *c, const char *identity, const char *name,
                           struct seq_grant *out, struct coord_reply *r)
{
    int64_t top;
    enum coord_status s = look(c, identity, name, out, &top, r);
    if (s != COORD_OK || out->how != SEQ_LOOKED)
        return s;
    const struct seq_grant found = *out;
    struct seq_order o = order(SEQ_VERB_DROP, name, &found);
    return operate(c, identity, &o, out, r);
}

enum coord_status seq_reopen(struct coord *c, const char *identity, const char *name, int64_t above,
                             struct seq_grant *out, struct coord_reply *r)
{
    int64_t top;
    enum coord_status s = look(c, identity, name, out, &top, r);
    if (s != COORD_OK || (out->how != SEQ_LOOKED && out->how != SEQ_DROPPED))
        return s;
    if (!is_number(above))
        return outcome_refused(r, "above: expected up to 2^53-1, found %" PRId64, above);
    const struct seq_grant found = *out;
    struct seq_order o = order(SEQ_VERB_REOPEN, name, &found);
    o.index = seq_index_from(&found.definition, above + (found.definition.increment > 0 ? 1 : -1));
    if (o.index > found.max + 1) {
        out->how = SEQ_USED_UP;
        return s;
    }
    return operate(c, identity, &o, out, r);
}

enum coord_status seq_sweep_part(struct coord *c, const char *identity, const char *name,
                                 const char *period, int64_t *cursor, struct seq_grant *out,
                                 struct coord_reply *r)
{
    int64_t top;
    enum coord_status s = look(c, identity, name, out, &top, r);
    if (s != COORD_OK || (out->how != SEQ_LOOKED && out->how != SEQ_DROPPED))
        return s;
    if (!are_names(name, "", period, r))
        return COORD_REFUSED;
    const struct seq_grant found = *out;
    struct seq_order o = order(SEQ_VERB_SWEEP, name, &found);
    o.period = period;
    o.index = *cursor;
    s = operate(c, identity, &o, out, r);
    *cursor = s == COORD_OK && out->how == SEQ_DONE ? out->next : 0;
    return s;
}

enum coord_status seq_sweep(struct coord *c, const char *identity, const char *name,
                            const char *period, struct seq_grant *out, struct coord_reply *r)
{
    int64_t cursor = 0;
    for (int i = 0; i < SEQ_PARTS_MAX; i++) {
        enum coord_status s = seq_sweep_part(c, identity, name, period, &cursor, out, r);
        if (s != COORD_OK || cursor == 0)
            return s;
    }
    return no_end(r);
}
