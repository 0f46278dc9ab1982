#include "support/fake_supply.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- days: "d17" ------------------------------------------------------------------------------
 */

static bool label(int reset, int offset_min, int64_t ms, char out[SEQUENCE_LABEL_MAX])
{
    (void)offset_min;
    (void)snprintf(out, SEQUENCE_LABEL_MAX, "d%d", (int)(ms / FAKE_DAY_MS));
    return reset == FAKE_DAILY;
}

static bool find(int reset, int offset_min, struct span text, struct sequence_period *out)
{
    char word[SEQUENCE_LABEL_MAX];
    (void)offset_min;
    if (reset != FAKE_DAILY || text.n < 2 || text.p[0] != 'd' || text.n >= sizeof word)
        return false;
    memcpy(word, text.p, text.n);
    word[text.n] = '\0';
    out->begins_ms = atoll(word + 1) * FAKE_DAY_MS;
    out->opens_ms = out->begins_ms - 7200000;
    out->ends_ms = out->begins_ms + FAKE_DAY_MS;
    return true;
}

static bool is_label(struct span text)
{
    return text.n > 0 && text.p[0] == 'd';
}

static const struct sequence_calendar calendar = {label, find, is_label};

void fake_supply_table(struct sequence_table *t, uint32_t counters)
{
    sequence_table_init(t, &(struct sequence_options){.counters = counters,
                                                      .lasts_ms = 60000,
                                                      .max = 1000,
                                                      .prefix = "seq:",
                                                      .calendar = &calendar});
}

/* ---- the store --------------------------------------------------------------------------------
 */

static const struct fake_sequence *sequence_of(const struct fake_supply *f, const char *name)
{
    for (size_t i = 0; i < f->nsequences; i++)
        if (strcmp(f->sequence[i].name, name) == 0)
            return &f->sequence[i];
    return NULL;
}

static struct fake_counter *counter_of(struct fake_supply *f, const struct sequence_name *of)
{
    for (unsigned i = 0; i < f->ncounters; i++)
        if (memcmp(&f->counter[i].of, of, sizeof *of) == 0)
            return &f->counter[i];
    assert(f->ncounters < FAKE_COUNTERS);
    f->counter[f->ncounters].of = *of;
    return &f->counter[f->ncounters++];
}

static unsigned how_of(const struct fake_supply *f, const struct fake_place *p,
                       const struct fake_sequence *s)
{
    if (f->how)
        return f->how;
    if (!s)
        return SEQUENCE_UNKNOWN;
    if (p->of.sub[0] && !s->subs)
        return SEQUENCE_NO_SUBS;
    return p->of.period[0] && !s->daily ? SEQUENCE_NO_PERIOD : 0;
}

static void refuse(struct fake_supply *f, uint32_t i, int64_t mono, unsigned how, int64_t count)
{
    bool keeps_on = how == SEQUENCE_AWAY;
    bool stands = how != SEQUENCE_AWAY && how != SEQUENCE_LATER;
    sequence_table_refuse(
        f->table, i,
        &(struct sequence_refusal){how, stands, mono + 1000, count, f->place[i].want.upto},
        keeps_on);
    if (!keeps_on)
        f->place[i].want.count = 0;
}

static void grant(struct fake_supply *f, uint32_t i, int64_t mono, const struct fake_sequence *s)
{
    struct sequence_ask *w = &f->place[i].want;
    struct fake_counter *c = counter_of(f, &f->place[i].of);
    int64_t n = f->largest && !w->whole && f->largest < w->count ? f->largest : w->count;
    int64_t left = s->top ? s->top - c->next + 1 : n;
    if (left <= 0 || (w->whole && left < n)) {
        sequence_table_limit(f->table, i, s->start + s->top * s->increment);
        refuse(f, i, mono, SEQUENCE_USED_UP, left <= 0 ? 1 : left + 1);
        return;
    }
    n = n < left ? n : left;
    struct sequence_block b = {.lo = c->next, .next = c->next, .hi = c->next + n - 1};
    c->next += n;
    if (s->strict || w->whole) {
        sequence_table_own(f->table, i, b.lo, b.hi, w->upto, s->strict && w->whole && n <= w->most);
    } else {
        assert(f->handle + 1 < FAKE_MARKS);
        b.handle = ++f->handle;
        b.mark = &f->mark[b.handle];
        sequence_table_grant(f->table, i, mono, &b);
    }
    w->count = 0;
}

static void answer(struct fake_supply *f, uint32_t i, int64_t mono)
{
    struct fake_place *p = &f->place[i];
    const struct fake_sequence *s = sequence_of(f, p->of.name);
    unsigned how = how_of(f, p, s);
    f->takes++;
    if (how) {
        refuse(f, i, mono, how, 1);
        return;
    }
    if (!p->known || p->look) {
        bool formed = !s->late || p->look;
        p->known = true;
        p->look = false;
        sequence_table_known(f->table, i,
                             &(struct sequence_facts){.start = s->start,
                                                      .increment = s->increment,
                                                      .strict = s->strict,
                                                      .reset = s->daily ? FAKE_DAILY : 0,
                                                      .formed = formed,
                                                      .subs = s->subs,
                                                      .template = formed ? s->template : NULL});
        if (s->strict && p->want.upto == 0) /* no request of his has a ticket */
            p->want.count = 0;
    }
    if (s->daily && !p->of.period[0])
        p->want.count = 0;
    if (p->want.count > 0)
        grant(f, i, mono, s);
}

/* ---- the way there and back -------------------------------------------------------------------
 */

void fake_supply_hear(struct fake_supply *f)
{
    struct sequence_event e;
    while (sequence_table_event(f->table, &e)) {
        assert(e.place < FAKE_PLACES);
        struct fake_place *p = &f->place[e.place];
        assert(p->open == (e.kind != SEQUENCE_EVENT_OPEN));
        if (e.kind == SEQUENCE_EVENT_OPEN) {
            *p = (struct fake_place){.open = true, .of = *e.of};
            f->opens++;
        } else if (e.kind == SEQUENCE_EVENT_WANT) {
            bool adds =
                p->known && sequence_of(f, p->of.name) && sequence_of(f, p->of.name)->strict;
            int64_t before = adds ? p->want.count : 0;
            p->want = e.want;
            p->want.count += before;
            p->look |= e.look;
            f->wants++;
        } else {
            f->closes++;
        }
    }
    if (!f->closes_late)
        fake_supply_close(f);
}

void fake_supply_answer(struct fake_supply *f, int64_t mono)
{
    if (f->time_ms > 0)
        sequence_table_time(f->table, f->time_ms, mono);
    for (uint32_t i = 0; i < FAKE_PLACES; i++)
        if (f->place[i].open && (f->place[i].want.count > 0 || f->place[i].look))
            answer(f, i, mono);
}

void fake_supply_serve(struct fake_supply *f, int64_t mono)
{
    fake_supply_hear(f);
    fake_supply_answer(f, mono);
    fake_supply_hear(f);
}

void fake_supply_close(struct fake_supply *f)
{
    for (uint32_t i = 0; f->table->place && i < f->table->options.counters; i++) {
        if (!f->place[i].open || f->table->place[i].state != SEQUENCE_CLOSING)
            continue;
        f->place[i] = (struct fake_place){0};
        f->forgets++;
        sequence_table_closed(f->table, i);
    }
}
