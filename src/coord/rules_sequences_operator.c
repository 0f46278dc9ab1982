/* What operators do with sequences: sequences.lua has why it is as it is. */
#include "base/int64.h"
#include "coord/outcome.h"
#include "coord/rules_sequences.h"
#include "coord/rules_within.h"

#include <stdio.h>

#define SWEEP_MAX 500 /* counters dropped at once */

/* ---- tombstones ------------------------------------------------------------------------------ */

/* Highest index + 1 that any table may have granted by now, be it one that has no tombstone: by the
 * line, or since nothing is lost. */
static int64_t covered(const struct rules *u, const struct seq_place *p)
{
    const struct seq_definition *d = &p->definition;
    const struct seq_state *s = &p->state;
    struct line l = {d->begins_ms, d->rate, d->burst};
    int64_t until = rules_seq_latest(u) + 2 * u->pool.p.params.max_skew_ms;
    if (d->reset != PERIOD_NEVER) {
        l.begins_ms = 0;
        until = seq_open_ms(d);
    }
    return p->skips ? max64(s->top, min64(line_at(&l, until), s->max) + 1) : s->top;
}

/* ---- create ---------------------------------------------------------------------------------- */

/* The counter of now, where it has one without a sub. */
static void write_first(struct rules *u, struct seq_place *p)
{
    struct seq_place made;
    if (rules_seq_find(u, p->name, "", "", "", &made) != SEQ_LOOKED)
        return;
    made.counter.next = made.state.base;
    rules_seq_save(u, &made);
    *p = made;
}

/* A template that it had, and does not have by the text, is kept: no other may write its texts. */
static void keep_template(struct rules *u, const struct seq_order *in,
                          const struct seq_definition *had, const struct seq_definition *has)
{
    char key[SEQ_KEY_MAX];
    if (had->template[0] && strcmp(had->template, has->template) != 0)
        store_text_set(u->store, seq_template_key(key, in->name, in->kept), had->template);
}

static enum seq_how make(struct rules *u, const struct seq_order *in, struct seq_definition *d,
                         struct seq_place *p)
{
    struct seq_state *s = &p->state;
    int64_t era = u->pool.era, skews = 2 * u->pool.p.params.max_skew_ms;
    if (d->begins_ms == 0 && era > 1 && !in->flag)
        return SEQ_NO_BEGIN;
    if (d->begins_ms == 0)
        d->begins_ms = u->now_ms;
    bool fresh = era == 1 || in->flag || u->pool.p.topen_ms < d->begins_ms - skews;
    bool again = s->dropped;
    *s = (struct seq_state){
        .gen = s->gen + 1,
        .turn = again ? s->turn + 1 : 0,
        .bturn = again ? s->turn + 1 : 0,
        .bt_ms = again ? SEQ_INDEX_MAX : 0,
        .base = in->base,
        .ok = fresh ? era : 0,
        .max = in->index,
        .top = in->base,
    };
    (void)seq_definition_text(s->text, d);
    if (again)
        keep_template(u, in, &p->definition, d);
    p->definition = *d;
    p->known = true;
    rules_seq_save_state(u, p);
    if (fresh)
        write_first(u, p);
    return SEQ_DONE;
}

static enum seq_how create(struct rules *u, const struct seq_order *in, struct seq_place *p)
{
    struct seq_definition d;
    enum seq_how how = rules_seq_find(u, in->name, "", "", "", p);
    if (!seq_definition_parse(span_str(in->text), &d) || (how == SEQ_UNREADABLE && !p->known))
        return SEQ_UNREADABLE;
    if (d.loss == SEQ_LOSS_UNSAID && u->store->ops->forgets)
        return SEQ_UNSAID;
    if (d.loss == SEQ_LOSS_UNSAID)
        d.loss = SEQ_LOSS_REFUSE;
    if (p->known && !p->state.dropped)
        return seq_definition_means(&d, p->definition.begins_ms, p->state.text) ? SEQ_KEPT
                                                                                : SEQ_DIFFERS;
    if (p->state.gen != in->gen)
        return p->known ? SEQ_DROPPED : SEQ_UNKNOWN;
    if (p->known && !rules_seq_is_sound(u, p, p->state.ok))
        return rules_seq_halt(u, p, p->state.ok);
    if (p->known && covered(u, p) > in->top)
        return SEQ_DROPPED;
    return make(u, in, &d, p);
}

/* ---- the others ------------------------------------------------------------------------------ */

static enum seq_how alter(struct rules *u, const struct seq_order *in, struct seq_place *p)
{
    struct seq_definition to = p->definition;
    if (p->definition.cycle || in->index < p->state.max)
        return SEQ_LOWER;
    if (*in->to && !seq_definition_parse(span_str(in->to), &to))
        return SEQ_UNREADABLE;
    keep_template(u, in, &p->definition, &to);
    (void)seq_definition_text(p->state.text, &to);
    p->state.max = in->index;
    p->definition = to;
    rules_seq_save_state(u, p);
    return SEQ_DONE;
}

/* Blocks of earlier turns, from that index on; with those of revocations before, for who has missed
 * them. A turn that another branch of the past had, which is lost, must be an earlier one: so turns
 * have the time in them, as long as two reopenings of which the latter loses an order behind the
 * former are more than 2S apart; and eras, which branches count alike, do not tell. */
static void revoke(const struct rules *u, struct seq_state *s, int64_t from)
{
    struct seq_revoked *v = &s->revoked;
    const struct coord_pool *p = &u->pool.p;
    int64_t opened = u->pool.era > 1 ? p->topen_ms + 3 * p->params.max_skew_ms : 0;
    s->turn = max64(s->turn + 1, max64(u->now_ms, opened));
    *v = (struct seq_revoked){
        .turn = s->turn,
        .era = SEQ_INDEX_MAX,
        .from = v->turn ? min64(v->from, from) : from,
    };
}

static enum seq_how set(struct rules *u, const struct seq_order *in, struct seq_place *p,
                        int64_t *wait_ms)
{
    int64_t next, now = rules_followed(u);
    struct seq_counter *c = &p->counter;
    enum seq_how how = rules_seq_judge(u, p, &next, wait_ms);
    if (how != SEQ_LOOKED)
        return how;
    if (in->index > p->state.max)
        return SEQ_USED_UP;
    if (p->skips && in->index > rules_seq_line(p, now)) {
        *wait_ms = rules_seq_line_when(p, in->index) - now;
        return SEQ_WAIT;
    }
    if (in->index < next && !in->flag)
        return SEQ_LOWER;
    if (!rules_seq_count_sub(p))
        return SEQ_TOO_MANY_SUBS;
    c->gaps += max64(in->index - c->next, 0);
    c->next = in->index;
    c->taken = false;
    revoke(u, &p->state, 0);
    p->state.top = max64(p->state.top, in->index);
    rules_seq_save(u, p);
    rules_seq_save_state(u, p);
    return SEQ_DONE;
}

static enum seq_how drop(struct rules *u, struct seq_place *p)
{
    if (!rules_seq_is_sound(u, p, p->state.ok))
        return rules_seq_halt(u, p, p->state.ok);
    p->state.top = covered(u, p);
    p->state.dropped = 1;
    rules_seq_save_state(u, p);
    return SEQ_DONE;
}

static enum seq_how reopen(struct rules *u, const struct seq_order *in, struct seq_place *p)
{
    struct seq_state *s = &p->state;
    if (p->skips)
        return SEQ_NOT_STOPPED;
    if (in->index > s->max + 1)
        return SEQ_USED_UP;
    revoke(u, s, in->index);
    bool again = s->bt_ms == SEQ_INDEX_MAX; /* labels of before may come again, by another offset */
    s->bturn = s->turn;
    s->bt_ms = max64(s->bt_ms, u->now_ms);
    s->base = again ? max64(s->base, in->index) : in->index;
    s->ok = u->pool.era;
    s->top = max64(s->top, in->index);
    s->seen = 0;
    rules_seq_save_state(u, p);
    return SEQ_DONE;
}

/* ---- sweep ----------------------------------------------------------------------------------- */

static enum seq_how close_before(struct rules *u, const char *period, struct seq_place *p,
                                 int64_t *wait_ms)
{
    const struct seq_definition *d = &p->definition;
    struct seq_state *s = &p->state;
    struct period found;
    if (!*period)
        return SEQ_DONE;
    if (!period_find(d->reset, d->offset_min, span_str(period), &found))
        return SEQ_NO_PERIOD;
    if (found.begins_ms > rules_seq_today(u)) {
        *wait_ms = found.begins_ms - rules_seq_today(u);
        return SEQ_WAIT;
    }
    if (strcmp(period, s->mark) > 0) {
        memcpy(s->mark, period, strlen(period) + 1);
        rules_seq_save_state(u, p);
    }
    return SEQ_DONE;
}

static bool is_gone(const struct seq_state *s, const struct seq_counter_info *c)
{
    return c->gen < s->gen || s->dropped || (*c->period && strcmp(c->period, s->mark) < 0);
}

/* *rest: 1: there may be more of them. */
static void drop_counters(struct rules *u, const struct seq_place *p, int64_t *rest)
{
    char prefix[SEQ_KEY_MAX], key[STORE_KEY_MAX] = "", after[STORE_KEY_MAX] = "",
                              name[SEQ_NAME_MAX];
    char row[SEQ_ROW_MAX];
    size_t dropped = 0;
    (void)snprintf(prefix, sizeof prefix, "num %s ", p->name);
    while (dropped < SWEEP_MAX && store_text_next(u->store, prefix, after, key, row, sizeof row)) {
        struct seq_counter_info info;
        if (seq_counter_key_read(span_str(key), name, &info) && is_gone(&p->state, &info)) {
            store_text_drop(u->store, key);
            dropped++;
        }
        memcpy(after, key, sizeof after);
    }
    *rest = dropped == SWEEP_MAX;
}

static enum seq_how sweep(struct rules *u, const struct seq_order *in, struct seq_place *p,
                          struct seq_grant *out, int64_t *rest)
{
    enum seq_how how = close_before(u, in->period, p, &out->wait_ms);
    if (how == SEQ_DONE)
        drop_counters(u, p, rest);
    return how;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Which states an operation is for; the others answer how. */
static bool is_for(const struct seq_order *in, const struct seq_place *p, enum seq_how how)
{
    if (in->verb == SEQ_VERB_SET)
        return how == SEQ_LOOKED;
    bool also_dropped = in->verb == SEQ_VERB_SWEEP || in->verb == SEQ_VERB_REOPEN;
    return p->known && (how != SEQ_DROPPED || also_dropped) && how != SEQ_DIFFERS;
}

static enum seq_how operate(struct rules *u, const struct seq_order *in, struct seq_place *p,
                            struct seq_grant *out, int64_t *rest)
{
    if (in->verb == SEQ_VERB_CREATE)
        return create(u, in, p);
    bool whole = in->verb == SEQ_VERB_SET;
    enum seq_how how =
        rules_seq_find(u, in->name, whole ? in->sub : "", whole ? in->period : "", in->text, p);
    if (!is_for(in, p, how))
        return how;
    if (p->state.gen != in->gen)
        return SEQ_DIFFERS;
    switch (in->verb) {
    case SEQ_VERB_ALTER:
        return alter(u, in, p);
    case SEQ_VERB_SET:
        return set(u, in, p, &out->wait_ms);
    case SEQ_VERB_DROP:
        return drop(u, p);
    case SEQ_VERB_REOPEN:
        return reopen(u, in, p);
    default:
        return sweep(u, in, p, out, rest);
    }
}

enum coord_status rules_seq_operate(struct rules *u, const struct seq_order *in,
                                    struct seq_grant *out)
{
    struct seq_place p;
    int64_t rest = 0;
    enum coord_status s = rules_enter(u);
    if (s == COORD_OK)
        s = rules_arrive(u, false, false);
    if (s == COORD_OK)
        s = rules_on_time(u);
    if (s != COORD_OK)
        return s;
    if (u->pool.p.closed)
        return rules_head(u, COORD_CLOSED);
    rules_seq_believe(u);
    memset(out, 0, sizeof *out);
    enum seq_how how = operate(u, in, &p, out, &rest);
    rules_seq_tell(&p, out);
    out->how = how;
    if (in->verb == SEQ_VERB_SWEEP)
        out->next = rest;
    return rules_head(u, COORD_OK);
}
