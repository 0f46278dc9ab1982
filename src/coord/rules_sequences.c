/* What sidecars ask of sequences: sequences.lua has why it is as it is. */
#include "coord/rules_sequences.h"

#include "base/int64.h"
#include "coord/outcome.h"
#include "coord/rules_within.h"

#include <stdio.h>

_Static_assert(SEQ_KEY_MAX <= STORE_KEY_MAX, "a key fits");
_Static_assert(SEQ_OPENING_MAX >= STORE_FINGERPRINT_MAX, "a fingerprint fits");

#define FAITH "seq"

/* ---- what reopenings mean -------------------------------------------------------------------- */

static struct seq_faith faith_of(struct rules *u)
{
    char row[SEQ_ROW_MAX];
    struct seq_faith f = {0};
    if (store_text_get(u->store, FAITH, row, sizeof row) == STORE_FOUND)
        (void)seq_faith_read(span_str(row), &f);
    return f;
}

static bool is_loss(const struct coord_later *l, int64_t era)
{
    return l->more_era == era || l->cause >= COORD_CAUSE_SET_BACK;
}

void rules_seq_believe(struct rules *u)
{
    char row[SEQ_ROW_MAX];
    int64_t era = u->pool.era;
    const struct coord_later *l = &u->pool.p.later;
    struct seq_faith before = faith_of(u), f = before;
    if (l->trust == COORD_TRUST_WORD && f.to != era) {
        f.from = f.to == era - 1 ? f.from : era - 1;
        f.to = era;
    }
    if (is_loss(l, era))
        f.lost = era;
    if (f.from != before.from || f.to != before.to || f.lost != before.lost)
        store_text_set(u->store, FAITH, seq_faith_write(row, &f));
}

bool rules_seq_is_sound(const struct rules *u, const struct seq_place *p, int64_t era)
{
    const struct seq_faith *f = &p->faith;
    bool forgets = u->store->ops->forgets;
    if (p->skips)
        return true;
    if (forgets && p->definition.loss == SEQ_LOSS_TRUST)
        return era >= max64(f->lost, 1);
    return era == u->pool.era || (f->to == u->pool.era && era >= f->from);
}

enum seq_how rules_seq_halt(const struct rules *u, const struct seq_place *p, int64_t era)
{
    const struct seq_faith *f = &p->faith;
    int64_t now = u->pool.era, from = f->to == now - 1 ? f->from : now - 1;
    bool trusts = u->store->ops->forgets && p->definition.loss == SEQ_LOSS_TRUST;
    bool word = !trusts && coord_pool_word_from(&u->pool.p, (uint64_t)now) > 0;
    return word && era >= from ? SEQ_STOPPED : SEQ_FORGOTTEN;
}

/* ---- finding a counter ----------------------------------------------------------------------- */

static enum seq_how find_state(struct rules *u, const char *name, struct seq_place *p)
{
    char key[SEQ_KEY_MAX], row[SEQ_ROW_MAX];
    switch (store_text_get(u->store, seq_state_key(key, name), row, sizeof row)) {
    case STORE_NONE:
        return SEQ_UNKNOWN;
    case STORE_FOUND:
        p->known = seq_state_read(span_str(row), &p->state, &p->definition);
        break;
    default:
        break;
    }
    if (!p->known)
        return SEQ_UNREADABLE;
    p->skips = u->store->ops->forgets && p->definition.loss == SEQ_LOSS_SKIP;
    return SEQ_LOOKED;
}

int64_t rules_seq_latest(const struct rules *u)
{
    return max64(u->now_ms, max64(u->pool.p.tmax_ms, u->pool.p.later.fence_ms));
}

int64_t rules_seq_today(const struct rules *u)
{
    return rules_is_behind(u) ? u->now_ms : max64(u->now_ms, u->pool.p.tmax_ms);
}

static bool find_period(const struct rules *u, const char *period, struct seq_place *p)
{
    const struct seq_definition *d = &p->definition;
    struct period found;
    p->opens_ms = d->begins_ms;
    p->ends_ms = INT64_MAX;
    p->period[0] = '\0';
    if (d->reset == PERIOD_NEVER)
        return !*period;
    if (!*period && !period_label(d->reset, d->offset_min, rules_seq_today(u), p->period))
        return false;
    if (*period)
        (void)snprintf(p->period, sizeof p->period, "%s", period);
    if (!period_find(d->reset, d->offset_min, span_str(p->period), &found))
        return false;
    p->opens_ms = found.opens_ms;
    p->ends_ms = found.ends_ms + d->back_h * 3600000;
    return true;
}

static enum seq_how find_counter(struct rules *u, struct seq_place *p)
{
    char key[SEQ_KEY_MAX], row[SEQ_ROW_MAX];
    (void)seq_counter_key(key, p->name, p->state.gen, p->period, p->sub);
    enum store_found found = store_text_get(u->store, key, row, sizeof row);
    p->found = found == STORE_FOUND && seq_counter_read(span_str(row), &p->counter);
    return found == STORE_NONE || p->found ? SEQ_LOOKED : SEQ_UNREADABLE;
}

enum seq_how rules_seq_find(struct rules *u, const char *name, const char *sub, const char *period,
                            const char *text, struct seq_place *p)
{
    *p = (struct seq_place){.name = name, .sub = sub, .faith = faith_of(u)};
    enum seq_how how = find_state(u, name, p);
    if (how != SEQ_LOOKED)
        return how;
    if (p->state.dropped)
        return SEQ_DROPPED;
    if (*text && strcmp(text, p->state.text) != 0)
        return SEQ_DIFFERS;
    if (*sub && p->definition.subs == 0)
        return SEQ_NO_SUBS;
    if (!find_period(u, period, p))
        return SEQ_NO_PERIOD;
    return find_counter(u, p);
}

/* ---- what a counter's past allows ------------------------------------------------------------ */

static struct line line_of(const struct seq_place *p)
{
    return (struct line){p->opens_ms, p->definition.rate, p->definition.burst};
}

int64_t rules_seq_line(const struct seq_place *p, int64_t now_ms)
{
    struct line l = line_of(p);
    return line_at(&l, now_ms);
}

int64_t rules_seq_line_when(const struct seq_place *p, int64_t index)
{
    struct line l = line_of(p);
    return line_when(&l, index);
}

/* There is no record, and never was one: nobody can have been granted anything. */
static bool is_new(const struct rules *u, const struct seq_place *p, int64_t begins)
{
    int64_t skews = 2 * u->pool.p.params.max_skew_ms;
    return !p->found && (u->pool.era == 1 || u->pool.p.topen_ms < begins - skews);
}

enum seq_how rules_seq_judge(struct rules *u, const struct seq_place *p, int64_t *next,
                             int64_t *wait_ms)
{
    const struct seq_state *s = &p->state;
    const struct seq_counter *c = &p->counter;
    int64_t now = rules_followed(u), skews = 2 * u->pool.p.params.max_skew_ms;
    int64_t begins = max64(p->definition.begins_ms, p->opens_ms);
    *next = c->next;
    if (now < begins) {
        *wait_ms = begins - now;
        return SEQ_WAIT;
    }
    if (rules_seq_today(u) >= p->ends_ms || (*p->period && strcmp(p->period, s->mark) < 0))
        return SEQ_CLOSED;
    bool fresh = is_new(u, p, begins);
    if (!fresh && !rules_seq_is_sound(u, p, max64(c->era, s->ok)))
        return rules_seq_halt(u, p, max64(c->era, s->ok));
    if (c->turn < s->bturn && begins <= s->bt_ms + skews)
        *next = max64(*next, s->base);
    if (p->skips && !fresh && c->era != u->pool.era)
        *next =
            max64(*next, min64(rules_seq_line(p, u->pool.p.topen_ms + skews), LINE_TOP - 1) + 1);
    return SEQ_LOOKED;
}

/* ---- writing --------------------------------------------------------------------------------- */

void rules_seq_save_state(struct rules *u, const struct seq_place *p)
{
    char key[SEQ_KEY_MAX], row[SEQ_ROW_MAX];
    store_text_set(u->store, seq_state_key(key, p->name), seq_state_write(row, &p->state));
}

void rules_seq_save(struct rules *u, struct seq_place *p)
{
    char key[SEQ_KEY_MAX], row[SEQ_ROW_MAX];
    p->counter.era = u->pool.era;
    p->counter.turn = p->state.turn;
    p->counter.n++;
    p->found = true;
    (void)seq_counter_key(key, p->name, p->state.gen, p->period, p->sub);
    store_text_set(u->store, key, seq_counter_write(row, &p->counter));
}

void rules_seq_tell(const struct seq_place *p, struct seq_grant *out)
{
    if (!p->known)
        return;
    memcpy(out->text, p->state.text, sizeof out->text);
    memcpy(out->period, p->period, sizeof out->period);
    out->gen = p->state.gen;
    out->turn = p->state.turn;
    out->max = p->state.max;
    out->revoked = p->state.revoked;
    out->n = p->counter.n;
    out->next = p->counter.next;
}

/* ---- take ------------------------------------------------------------------------------------ */

/* SEQ_LOOKED: from *lo on, up to *hi, where count numbers are wanted. */
static enum seq_how measure(struct rules *u, const struct seq_place *p, bool whole, int64_t count,
                            int64_t *lo, int64_t *hi, int64_t *wait_ms)
{
    int64_t max = p->state.max, least = whole ? count : 1, now = rules_followed(u);
    bool cycles = p->definition.cycle && least <= max + 1;
    if (*lo > max - least + 1) {
        if (!cycles)
            return SEQ_USED_UP;
        *lo = 0;
    }
    int64_t top = p->skips ? min64(max, rules_seq_line(p, now)) : max;
    if (*lo + least - 1 > top) {
        *wait_ms = rules_seq_line_when(p, *lo + least - 1) - now;
        return SEQ_WAIT;
    }
    *hi = min64(*lo + count - 1, top);
    return SEQ_LOOKED;
}

bool rules_seq_count_sub(struct seq_place *p)
{
    struct seq_state *s = &p->state;
    if (p->found || !*p->sub)
        return true;
    if (strcmp(p->period, s->per) > 0) {
        memcpy(s->per, p->period, sizeof s->per);
        s->subs = 0;
    }
    return s->subs++ < p->definition.subs;
}

static void grant(struct rules *u, struct seq_place *p, struct coord_token token, int64_t lo,
                  int64_t hi)
{
    struct seq_counter *c = &p->counter;
    struct seq_state *s = &p->state;
    bool counted = !p->found && *p->sub;
    c->gaps += max64(lo - c->next, 0);
    c->next = hi + 1;
    c->taken = true;
    c->token = token;
    c->lo = lo;
    c->hi = hi;
    rules_seq_save(u, p);
    if (c->next > s->top || counted) {
        s->top = max64(s->top, c->next);
        rules_seq_save_state(u, p);
    }
}

/* A sidecar was granted what nobody here knows of: for people. */
static void note_seen(struct rules *u, struct seq_place *p, int64_t seen)
{
    struct seq_state *s = &p->state;
    if (seen > s->top && seen > s->seen) {
        s->seen = seen;
        rules_seq_save_state(u, p);
    }
}

static enum seq_how take(struct rules *u, struct seq_place *p, const struct seq_want *w,
                         struct seq_grant *out)
{
    struct seq_counter *c = &p->counter;
    int64_t lo, hi;
    note_seen(u, p, w->seen);
    if (w->count > 0 && p->found && c->taken && c->era == u->pool.era && c->turn == p->state.turn &&
        coord_token_equal(c->token, w->token)) {
        out->lo = c->lo;
        out->hi = c->hi;
        return SEQ_AGAIN;
    }
    enum seq_how how = rules_seq_judge(u, p, &lo, &out->wait_ms);
    out->next = lo;
    if (how == SEQ_LOOKED)
        how = measure(u, p, w->whole, max64(w->count, 1), &lo, &hi, &out->wait_ms);
    if (how == SEQ_LOOKED && !rules_seq_count_sub(p))
        return SEQ_TOO_MANY_SUBS;
    if (how != SEQ_LOOKED || w->count == 0)
        return how;
    grant(u, p, w->token, lo, hi);
    out->lo = lo;
    out->hi = hi;
    return SEQ_GRANTED;
}

static void take_one(struct rules *u, const struct seq_want *w, struct seq_grant *out)
{
    struct seq_place p;
    memset(out, 0, sizeof *out);
    enum seq_how how = rules_seq_find(u, w->name, w->sub, w->period, w->text, &p);
    if (how == SEQ_LOOKED)
        how = take(u, &p, w, out);
    int64_t next = out->next;
    rules_seq_tell(&p, out);
    if (how != SEQ_GRANTED && how != SEQ_AGAIN && next > 0)
        out->next = next;
    out->how = how;
}

/* ---- who knows more than the table ----------------------------------------------------------- */

/* The count of a counter's changes is one that a caller may compare with his; -1: he knows more,
 * whatever his is. */
static bool compared(struct rules *u, const struct seq_want *w, int64_t *n)
{
    struct seq_place p;
    enum seq_how how = rules_seq_find(u, w->name, w->sub, w->period, "", &p);
    *n = p.counter.n;
    if (how == SEQ_UNKNOWN)
        return true;
    if (!p.known)
        return false;
    if (p.state.gen < w->gen)
        *n = -1;
    if (p.state.gen != w->gen)
        return p.state.gen < w->gen;
    bool closed = *p.period && strcmp(p.period, p.state.mark) < 0; /* its record may be gone */
    return how == SEQ_LOOKED && !closed && (*w->period || p.definition.reset == PERIOD_NEVER);
}

static bool same_opening(const struct rules *u, const struct seq_opening *o)
{
    return o->era == u->pool.era && o->topen_ms == u->pool.p.topen_ms &&
           strcmp(o->fingerprint, u->pool.fingerprint) == 0;
}

/* Whether one of them knows more, of this opening, or of another one. */
static void listen(struct rules *u, const struct seq_opening *known, const struct seq_want *items,
                   size_t n, bool *now, bool *before)
{
    bool same = same_opening(u, known);
    *now = *before = false;
    for (size_t i = 0; i < n; i++) {
        int64_t count;
        if (items[i].n == 0 || !compared(u, &items[i], &count) || items[i].n <= count)
            continue;
        if (same && !items[i].known_before)
            *now = true;
        else
            *before = true;
    }
}

enum coord_status rules_seq_take(struct rules *u, const struct seq_opening *known,
                                 const struct seq_want *items, struct seq_grant *out, size_t n,
                                 struct seq_opening *opening)
{
    bool now, before;
    enum coord_status s = rules_enter(u);
    if (s != COORD_OK)
        return s;
    listen(u, known, items, n, &now, &before);
    s = rules_arrive(u, now, before);
    if (s != COORD_OK)
        return s;
    if (now || before)
        rules_hear_more(u);
    if (u->pool.p.closed)
        return rules_head(u, COORD_CLOSED);
    rules_seq_believe(u);
    for (size_t i = 0; i < n; i++)
        take_one(u, &items[i], &out[i]);
    *opening = (struct seq_opening){.era = u->pool.era, .topen_ms = u->pool.p.topen_ms};
    memcpy(opening->fingerprint, u->pool.fingerprint, sizeof u->pool.fingerprint);
    return rules_head(u, COORD_OK);
}

/* ---- give back ------------------------------------------------------------------------------- */

static enum seq_how give_back(struct rules *u, const struct seq_return *item)
{
    struct seq_place p;
    struct seq_counter *c = &p.counter;
    enum seq_how how = rules_seq_find(u, item->name, item->sub, item->period, "", &p);
    if (how != SEQ_LOOKED)
        return how;
    if (!p.found || p.state.gen != item->gen || c->era != u->pool.era || c->turn != p.state.turn ||
        !c->taken || !coord_token_equal(c->token, item->token) || item->n != c->n ||
        item->hi != c->next - 1)
        return SEQ_KEPT;
    c->next = item->lo;
    c->taken = false;
    rules_seq_save(u, &p);
    return SEQ_DONE;
}

enum coord_status rules_seq_give_back(struct rules *u, const struct seq_return *items,
                                      enum seq_how *how, size_t n)
{
    enum coord_status s = rules_come_in_behind(u);
    if (s != COORD_OK)
        return s;
    rules_seq_believe(u);
    for (size_t i = 0; i < n; i++)
        how[i] = give_back(u, &items[i]);
    return rules_head(u, COORD_OK);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* false: no memory. */
static bool list(struct rules *u, const char *prefix, struct seq_rows *out)
{
    char key[STORE_KEY_MAX] = "", after[STORE_KEY_MAX] = "", row[SEQ_ROW_MAX];
    while (store_text_next(u->store, prefix, after, key, row, sizeof row)) {
        if (!seq_rows_add(out, span_str(key), span_str(row)))
            return false;
        memcpy(after, key, sizeof after);
    }
    return true;
}

enum coord_status rules_seq_rows(struct rules *u, const char *prefix, struct seq_rows *out)
{
    char row[SEQ_ROW_MAX];
    enum coord_status s = rules_enter(u);
    bool many = *prefix && prefix[strlen(prefix) - 1] == ' ', listed = true;
    if (s != COORD_OK)
        return s;
    out->opening.era = u->pool.era;
    if (many)
        listed = list(u, prefix, out);
    else if (store_text_get(u->store, prefix, row, sizeof row) != STORE_NONE)
        listed = seq_rows_add(out, span_str(prefix), span_str(row));
    return listed ? rules_head(u, COORD_OK) : outcome_down(u->r, ERR_NOMEM, "no memory for a list");
}
