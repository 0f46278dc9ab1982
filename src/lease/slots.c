#include "lease/slots.h"

#include <assert.h>

unsigned slots_count(const struct lease *l, enum page_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        n += l->slot[i].rec.state == state;
    return n;
}

unsigned slots_first(const struct lease *l, enum page_state state)
{
    unsigned i = 0;
    while (i < LEASE_SLOTS && l->slot[i].rec.state != state)
        i++;
    return i;
}

unsigned slots_outside(const struct lease *l)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        n += l->slot[i].rec.state == PAGE_HELD && l->slot[i].outside;
    return n;
}

void slots_revoke_outside(struct lease *l)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (l->slot[i].rec.state == PAGE_HELD && l->slot[i].outside) {
            slots_revoke(l, i, false);
            return;
        }
}

void slots_post(struct lease *l, enum lease_mail_kind kind, unsigned slot, int64_t last)
{
    struct lease_slot *s = &l->slot[slot];
    assert(l->nmail < LEASE_MAIL_MAX);
    l->mail[l->nmail++] = (struct lease_mail){.kind = kind,
                                              .handle = s->handle,
                                              .worker = s->rec.worker,
                                              .last_ms = last,
                                              .hi_ms = s->rec.hi_ms,
                                              .t0_ms = s->t0_ms,
                                              .mark = &l->page->slot[slot].mark};
}

void slots_free(struct lease *l, unsigned i)
{
    l->slot[i].rec.state = PAGE_FREE;
    page_store(l->page, i, &l->slot[i].rec);
}

void slots_revoke(struct lease *l, unsigned i, bool released)
{
    slots_free(l, i);
    l->gave_up = true;
    if (!l->slot[i].unproven) {
        slots_post(l, LEASE_MAIL_REVOKE, i, 0);
        l->mail[l->nmail - 1].released = released;
    }
    l->slot[i].unproven = 0;
}

void slots_grant(struct lease *l, unsigned i, int64_t last)
{
    l->slot[i].handle = l->serial++ * LEASE_SLOTS + i;
    l->conf.epoch_pinned = l->conf.layout_pinned = true; /* from now on: IDs are issued with it */
    l->conf.epoch_ms = l->pool.epoch_ms;
    l->conf.layout = l->pool.layout;
    slots_post(l, LEASE_MAIL_GRANT, i, last);
}

void slots_leave(struct lease *l, unsigned i)
{
    struct lease_slot *s = &l->slot[i];
    bool known = !s->unproven && mark_load(&l->page->slot[i].mark, &s->last_ms);
    /* Below the floor: the loop, which had not heard yet, issued for the slot's holder before. */
    if (!known || s->last_ms + 1 < s->rec.lo_ms)
        s->last_ms = s->rec.hi_ms; /* no exact last time is known: all of the range is used */
    s->unproven = 0;
    s->rec.state = PAGE_LEAVING;
    l->gave_up = true;
    page_store(l->page, i, &s->rec);
}

bool slots_leave_surplus(struct lease *l, unsigned i)
{
    bool surplus = lease_held(l) > l->conf.active + l->conf.spare;
    if (surplus)
        slots_leave(l, i);
    return surplus;
}
