#include "lease/traces.h"

#include "lease/slots.h"

#include <string.h>

/* Also from pages that this one replaced. */
static bool was_issued_from(const struct page *p)
{
    int64_t last;
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        if (mark_load(&p->slot[i].mark, &last) && last > 0)
            return true;
    return page_floor(p) > 0;
}

bool traces_none(const struct pagefile *f)
{
    if (!f->found)
        return true;
    return f->verdict != PAGE_BROKEN && !f->page->head.identity[0] && !f->old.head.identity[0] &&
           !was_issued_from(f->page);
}

/* The pool that this state directory knew last: what it was like has to be said when it is lost. */
void traces_note_pool(struct lease *l, const struct page *p)
{
    memcpy(l->last_identity, p->head.identity, sizeof l->last_identity);
    l->last_known =
        page_params(p, &l->last_params, &l->last_settle_ms, &l->last_least_ms, &l->last_ahead_ms);
}

void traces_pin_space(struct lease *l, const struct page *p)
{
    struct layout layout;
    int64_t epoch;
    struct err e;
    if (!was_issued_from(p) || coord_identity_read(l->last_identity, &epoch, &layout, &e))
        return;
    if (!l->conf.epoch_pinned)
        l->conf.epoch_ms = epoch;
    if (!l->conf.layout_pinned)
        l->conf.layout = layout;
    l->conf.epoch_pinned = l->conf.layout_pinned = true;
}

/* Those that are to be released stand in front, those that were at the end: these are there for
 * their marks alone. */
void traces_note_foreign(struct lease *l, const struct page *old)
{
    unsigned end = LEASE_SLOTS;
    memcpy(l->foreign_identity, old->head.identity, sizeof l->foreign_identity);
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        struct page_record r;
        int64_t last;
        if (!page_load(old, i, &r))
            continue;
        unsigned to = r.state == PAGE_FREE ? --end : l->nforeign++;
        l->foreign_last[to] = mark_load(&old->slot[i].mark, &last) ? last : 0;
        l->foreign[to] = r;
    }
}

void traces_note_ahead(struct lease *l, unsigned i)
{
    const struct lease_slot *s = &l->slot[i];
    memcpy(l->foreign_identity, l->identity, sizeof l->foreign_identity);
    l->foreign_last[l->nforeign] = s->last_ms;
    l->foreign[l->nforeign++] = s->rec;
    l->gave_up = true;
    slots_free(l, i);
}

/* Where rotations let IDs go back, a clock that was ahead is to leave no trace but in who goes on
 * with what it left: of the workerIds that are held, and not of those given up for that clock. */
void traces_note_latest(struct lease *l, const struct pagefile *f)
{
    struct page_record r;
    int64_t last, floor = page_floor(f->page);
    bool goes_on = l->conf.ahead && f->found && f->verdict == PAGE_OWN && f->proven;
    if (!l->conf.rising && !goes_on)
        return;
    l->latest_ms = l->conf.rising && floor != PAGE_FLOOR_UNKNOWN ? floor : 0;
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        bool held = page_load(f->page, i, &r) && r.state == PAGE_HELD;
        if ((l->conf.rising || held) && mark_load(&f->page->slot[i].mark, &last))
            l->latest_ms = last > l->latest_ms ? last : l->latest_ms;
    }
}

/* Without a coordinator that remembers, the marks are all there is to go by: of an earlier boot's
 * page, and of slots of ours, given back or not; and of pages that were replaced, whatever workerId
 * they were of. With one they are below the range in any case. */
int64_t traces_floor(const struct lease *l, const struct coord_grant *g)
{
    int64_t floor = g->lo_ms - 1, last = page_floor(l->page);
    if (l->conf.page_knows_alone && last != PAGE_FLOOR_UNKNOWN && last > floor)
        floor = last;
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        if (l->foreign[i].worker == g->worker && l->foreign_last[i] > floor)
            floor = l->foreign_last[i];
        if (l->slot[i].rec.worker == g->worker && mark_load(&l->page->slot[i].mark, &last) &&
            last > floor)
            floor = last;
    }
    return floor;
}
