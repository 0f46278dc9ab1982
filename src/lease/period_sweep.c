#include "lease/period_sweep.h"

#include "base/fnv.h"
#include "base/int64.h"

#include <string.h>

/* Not all sidecars at once. */
static void set_due(struct period_sweep *s, int64_t mono)
{
    int64_t ms = SWEEP_EVERY_MS;
    s->due = mono + ms - ms / 2 + (int64_t)rng_below(s->rng, (uint64_t)ms);
}

void period_sweep_init(struct period_sweep *s, struct rng *rng, int64_t mono)
{
    *s = (struct period_sweep){.rng = rng};
    set_due(s, mono);
}

static bool is_seen(struct period_sweep *s, const char *name)
{
    uint64_t h = fnv64_str(name) * s->salt >> 55, bit = UINT64_C(1) << h % 64;
    bool seen = s->seen[h / 64] & bit;
    s->seen[h / 64] |= bit;
    return seen;
}

static bool is_for(struct period_sweep *s, const struct blocks_counter *c, int64_t now_ms)
{
    return c->open && c->known && c->whole != 0 && c->reset != PERIOD_NEVER &&
           now_ms > SWEEP_KEPT_MS + c->back_ms &&
           period_label(c->reset, c->offset_min, now_ms - SWEEP_KEPT_MS - c->back_ms, s->period) &&
           !is_seen(s, c->of.name);
}

/* One that is ahead by less closes nothing that is open. */
static bool keeps_pace(const struct period_sweep *s, int64_t now_ms, int64_t mono)
{
    return now_ms - s->time_ms - (mono - s->mono) < SWEEP_KEPT_MS / 2;
}

static void note_time(struct period_sweep *s, int64_t now_ms, int64_t mono)
{
    s->time_ms = now_ms;
    s->mono = mono;
}

/* Only who has counters is to wake for it. */
bool period_sweep_due(struct period_sweep *s, const struct blocks *b, int64_t mono, int64_t *until)
{
    int64_t now_ms = blocks_time(b, mono);
    if (s->cursor > 0)
        return true;
    if (s->time_ms == 0)
        note_time(s, now_ms, mono);
    if (!s->on && mono < s->due) {
        *until = min64(*until, s->due);
        return false;
    }
    if (!s->on) {
        memset(s->seen, 0, sizeof s->seen);
        s->salt = rng_u64(s->rng) | 1;
        s->at = keeps_pace(s, now_ms, mono) ? 0 : b->conf.counters;
        s->on = true;
        note_time(s, now_ms, mono);
    }
    while (now_ms > SWEEP_KEPT_MS && s->at < b->conf.counters) {
        const struct blocks_counter *c = &b->counter[s->at++];
        if (!is_for(s, c, now_ms))
            continue;
        memcpy(s->name, c->of.name, sizeof s->name);
        s->parts = 0;
        return true;
    }
    s->on = false;
    set_due(s, mono);
    *until = min64(*until, s->due);
    return false;
}

void period_sweep_call(struct period_sweep *s, struct coord *c, const char *identity)
{
    struct seq_grant g;
    struct coord_reply r;
    (void)seq_sweep_part(c, identity, s->name, s->period, &s->cursor, &g, &r);
    if (++s->parts == SEQ_PARTS_MAX)
        s->cursor = 0;
}
