#include "lease/blocks_slots.h"

#include "base/int64.h"

#include <string.h>

/* ---- mails ----------------------------------------------------------------------------------- */

struct blocks_mail *blocks_post(struct blocks *b, enum blocks_mail_kind kind, uint32_t i)
{
    const struct blocks_counter *c = &b->counter[i];
    assert(b->nmail < BLOCKS_MAIL_MAX);
    struct blocks_mail *m = &b->mail[b->nmail++];
    *m = (struct blocks_mail){
        .kind = (uint8_t)kind, .counter = i, .start = c->start, .increment = c->increment};
    return m;
}

void blocks_refuse(struct blocks *b, uint32_t i, unsigned how, int64_t until, bool keeps_on)
{
    struct blocks_mail *m = blocks_post(b, BLOCKS_MAIL_REFUSED, i);
    m->how = (uint8_t)how;
    m->when = until;
    m->keeps_on = keeps_on;
    const struct blocks_want *w = &b->counter[i].taking;
    bool by_count = how == SEQ_WAIT || how == SEQ_USED_UP; /* others may be served */
    m->hi = by_count && w->whole ? w->count : 1;
    m->upto = w->upto;
}

void blocks_post_known(struct blocks *b, uint32_t i)
{
    const struct blocks_counter *c = &b->counter[i];
    struct blocks_mail *m = blocks_post(b, BLOCKS_MAIL_KNOWN, i);
    m->strict = c->strict;
    m->given = c->whole != 0;
    m->template = c->template;
    m->when = c->subs;
    m->lo = c->reset;
    m->hi = c->offset_min;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static unsigned place(const struct blocks *b, const struct blocks_slot *s)
{
    size_t offset = (size_t)((const char *)s - (const char *)b->counter);
    size_t counter = offset / sizeof *b->counter;
    return (unsigned)(counter * BLOCKS_SLOTS + (size_t)(s - b->counter[counter].slot));
}

/* An earlier copy of the page, written over it, has fewer than were given out since. */
int64_t blocks_given(const struct blocks *b, const struct blocks_slot *s)
{
    int64_t size = s->hi - s->lo + 1, own;
    int64_t given = blockpage_given(b->page, place(b, s), size);
    return mark_load(&s->own, &own) && own > given ? min64(own, size) : given;
}

bool blocks_used_up(const struct blocks *b, const struct blocks_slot *s)
{
    return blocks_given(b, s) > s->hi - s->lo;
}

void blocks_store(struct blocks *b, const struct blocks_slot *s)
{
    unsigned at = place(b, s);
    const struct blocks_counter *c = &b->counter[at / BLOCKS_SLOTS];
    const struct blockpage_record r = {.state = s->state,
                                       .of = c->of,
                                       .token = s->token,
                                       .gen = s->gen,
                                       .turn = s->turn,
                                       .era = s->era,
                                       .n = s->n,
                                       .opening = c->told,
                                       .lo = s->lo,
                                       .hi = s->hi,
                                       .start = s->start,
                                       .increment = s->increment,
                                       .definition = s->definition,
                                       .reset = c->reset,
                                       .offset_min = c->offset_min};
    blockpage_store(b->page, at, &r);
}

void blocks_set_free(struct blocks *b, struct blocks_slot *s)
{
    if (s->state == PAGE_FREE)
        return;
    s->state = PAGE_FREE;
    s->unproven = false;
    blocks_store(b, s);
}

/* NULL: there are two blocks already. */
struct blocks_slot *blocks_room(struct blocks *b, struct blocks_counter *c)
{
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        if (c->slot[k].state == PAGE_FREE ||
            (c->slot[k].state == PAGE_HELD && !c->slot[k].unproven &&
             blocks_used_up(b, &c->slot[k])))
            return &c->slot[k];
    return NULL;
}

bool blocks_wait_for_proof(const struct blocks_counter *c)
{
    bool any = false;
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        any |= c->slot[k].unproven;
    return any;
}

/* The loop hears of it unless it never had it. */
void blocks_cut(struct blocks *b, struct blocks_slot *s, int64_t hi)
{
    if (!s->unproven) {
        struct blocks_mail *m = blocks_post(b, BLOCKS_MAIL_REVOKE, place(b, s) / BLOCKS_SLOTS);
        m->handle = s->handle;
        m->hi = hi;
    }
    if (hi < s->lo) {
        blocks_set_free(b, s);
        return;
    }
    s->hi = hi;
    blocks_store(b, s);
}

/* Whoever wanted it whole may not have come for it yet, or be gone. */
void blocks_cut_own(struct blocks *b, struct blocks_counter *c, int64_t hi)
{
    struct blocks_mail *m = blocks_post(b, BLOCKS_MAIL_REVOKE, (uint32_t)(c - b->counter));
    m->handle = 0;
    m->hi = hi;
    c->own_end = 0;
}

void blocks_drop(struct blocks *b, struct blocks_counter *c)
{
    if (c->own_end > 0)
        blocks_cut_own(b, c, -1);
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        if (c->slot[k].state == PAGE_HELD)
            blocks_cut(b, &c->slot[k], -1);
    c->top = 0;
    memset(&c->latest, 0, sizeof c->latest);
}

void blocks_mail_grant(struct blocks *b, struct blocks_slot *s)
{
    unsigned at = place(b, s);
    s->handle = ++b->handles;
    s->unproven = false;
    struct blocks_mail *m = blocks_post(b, BLOCKS_MAIL_GRANT, at / BLOCKS_SLOTS);
    m->handle = s->handle;
    m->lo = s->lo;
    m->hi = s->hi;
    m->given = (uint32_t)blocks_given(b, s);
    m->beyond = b->counter[at / BLOCKS_SLOTS].beyond;
    m->mark = &b->page->slot[at].mark;
    m->own = &s->own;
    mark_store(&s->own, m->given);
}

/* ---- the line -------------------------------------------------------------------------------- */

void blocks_queue(struct blocks *b, uint32_t i)
{
    struct blocks_counter *c = &b->counter[i];
    if (c->queued)
        return;
    c->queued = true;
    b->line[(b->first + b->nline++) % b->conf.counters] = i;
}

void blocks_leave_line(struct blocks *b)
{
    struct blocks_counter *c = &b->counter[b->line[b->first]];
    c->queued = false;
    b->first = (b->first + 1) % b->conf.counters;
    b->nline--;
}
