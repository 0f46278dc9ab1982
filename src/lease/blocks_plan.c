/* What the blocks machine wants next. */
#include "base/int64.h"
#include "lease/blocks_slots.h"

#include <string.h>

/* As many as there is room for; the lower one of a counter first. */
static void mail_proven(struct blocks *b)
{
    for (; b->unproven < b->conf.counters && b->nmail + 3 <= BLOCKS_MAIL_MAX; b->unproven++) {
        struct blocks_slot *s = b->counter[b->unproven].slot;
        unsigned low = s[1].unproven && (!s[0].unproven || s[1].lo < s[0].lo);
        if (s[0].unproven || s[1].unproven)
            blocks_post_known(b, b->unproven);
        if (s[low].unproven)
            blocks_mail_grant(b, &s[low]);
        if (s[!low].unproven)
            blocks_mail_grant(b, &s[!low]);
    }
}

/* ---- what is asked --------------------------------------------------------------------------- */

/* From here on it is the same until it is answered. What the counter is of is asked first: strict
 * or not decides who may have its numbers. */
static void begin_take(struct blocks *b, struct blocks_counter *c)
{
    if (c->taken)
        return;
    c->taken = true;
    c->token = coord_token_new(b->rng);
    bool looks = !c->known || c->look;
    c->look = false;
    c->taking = (struct blocks_want){0};
    if (looks)
        return;
    c->taking = c->want;
    c->want = (struct blocks_want){.upto = c->want.upto};
}

static void plan_item(struct blocks *b, uint32_t i, struct blocks_action *a)
{
    struct blocks_counter *c = &b->counter[i];
    begin_take(b, c);
    a->counter[a->nitems] = i;
    a->wants[a->nitems++] = (struct seq_want){.name = c->of.name,
                                              .sub = c->of.sub,
                                              .period = c->of.period,
                                              .text = c->text,
                                              .count = c->taking.count,
                                              .whole = c->taking.whole,
                                              .known_before = c->told != b->opened,
                                              .token = c->token,
                                              .gen = c->gen,
                                              .n = c->n,
                                              .seen = c->top};
}

/* There is nothing to be asked for it: it holds what it can hold, or has none without a period. */
static bool is_idle(struct blocks *b, uint32_t i)
{
    struct blocks_counter *c = &b->counter[i];
    bool holds = c->known && !c->strict && !c->want.whole;
    if (c->taken || c->look)
        return false;
    bool nowhere = c->known && c->reset != PERIOD_NEVER && !c->of.period[0];
    return nowhere || c->want.count == 0 || (holds && !blocks_room(b, c));
}

/* Those at the head; whose page is not proven waits at the tail. */
static void plan_take(struct blocks *b, struct blocks_action *a)
{
    uint32_t waiting = b->nline;
    while (a->nitems < b->nline && a->nitems < BLOCKS_ITEMS && waiting > 0) {
        uint32_t at = (b->first + (uint32_t)a->nitems) % b->conf.counters, i = b->line[at];
        bool idle = !blocks_wait_for_proof(&b->counter[i]) && is_idle(b, i);
        waiting--;
        if (!idle && !blocks_wait_for_proof(&b->counter[i])) {
            plan_item(b, i, a);
            continue;
        }
        for (uint32_t k = (uint32_t)a->nitems; k > 0; k--) /* it goes before those that are asked */
            b->line[(b->first + k) % b->conf.counters] =
                b->line[(b->first + k - 1) % b->conf.counters];
        b->line[b->first] = i;
        blocks_leave_line(b);
        if (!idle)
            blocks_queue(b, i);
    }
    if (a->nitems == 0)
        return;
    a->kind = BLOCKS_TAKE;
    a->by.opening = b->opening;
}

static bool is_leaving(const struct blocks_counter *c)
{
    return c->slot[0].state == PAGE_LEAVING || c->slot[1].state == PAGE_LEAVING;
}

static const struct blocks_slot *upper(const struct blocks_counter *c)
{
    const struct blocks_slot *s = c->slot;
    bool both = s[0].state == PAGE_LEAVING && s[1].state == PAGE_LEAVING;
    if (both)
        return s[0].hi > s[1].hi ? &s[0] : &s[1];
    return s[0].state == PAGE_LEAVING ? &s[0] : &s[1];
}

/* One for each counter: both of its blocks, where both are leaving, are one range. */
static void plan_return(struct blocks *b, struct blocks_action *a)
{
    for (uint32_t i = 0; i < b->conf.counters && a->nitems < BLOCKS_ITEMS; i++) {
        const struct blocks_counter *c = &b->counter[i];
        if (!is_leaving(c))
            continue;
        const struct blocks_slot *top = upper(c), *low = top;
        for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
            if (c->slot[k].state == PAGE_LEAVING && c->slot[k].lo < low->lo)
                low = &c->slot[k];
        a->kind = BLOCKS_RETURN;
        a->counter[a->nitems] = i;
        a->returns[a->nitems++] = (struct seq_return){.name = c->of.name,
                                                      .sub = c->of.sub,
                                                      .period = c->of.period,
                                                      .token = top->token,
                                                      .gen = top->gen,
                                                      .n = top->n,
                                                      .lo = low->lo + blocks_given(b, low),
                                                      .hi = top->hi};
    }
}

static void plan_stop(struct blocks *b, int64_t mono, struct blocks_action *a)
{
    if (mono >= b->stop_by)
        a->kind = BLOCKS_FINISHED;
    else if (mono < b->call_due)
        a->until = min64(b->call_due, b->stop_by);
    else
        plan_return(b, a);
    if (a->kind == BLOCKS_IDLE && mono >= b->call_due)
        a->kind = BLOCKS_FINISHED;
}

void blocks_next(struct blocks *b, int64_t mono, struct blocks_action *a)
{
    memset(a, 0, sizeof *a);
    a->kind = BLOCKS_IDLE;
    a->until = INT64_MAX;
    if (b->proven && !b->stopping)
        mail_proven(b);
    if (b->stopping)
        plan_stop(b, mono, a);
    else if (b->nmail + 3 > BLOCKS_MAIL_MAX)
        a->until = mono; /* the loop hears first */
    else if (mono < b->call_due)
        a->until = b->nline > 0 ? b->call_due : INT64_MAX;
    else
        plan_take(b, a);
    if (a->kind == BLOCKS_TAKE || a->kind == BLOCKS_RETURN)
        a->serial = b->under_way = ++b->serial;
}
