/*
 * A second opinion on a state page: what lease/page.h says in words, read from the bytes without
 * the code under test.
 *
 * Invariant: shares with lease/page.c the layout alone; check values and marks are computed here.
 */
#ifndef SIDFLAKE_FUZZ_PAGE_ORACLE_H
#define SIDFLAKE_FUZZ_PAGE_ORACLE_H

#include "lease/page.h"

#include <stddef.h>
#include <string.h>

/* FNV-1a, 32 bits. */
static inline uint32_t oracle_check(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint32_t h = 0x811c9dc5u;
    for (const uint8_t *end = b + n; b < end; b++) {
        h ^= *b;
        h *= 0x01000193u;
    }
    return h;
}

/* 44 bits of Unix ms above 20 check bits. */
static inline bool oracle_mark(uint64_t mark, int64_t *ms)
{
    *ms = (int64_t)(mark >> 20);
    return ((uint64_t)(*ms + 1) * UINT64_C(0x9E3779B97F4A7C15)) >> 44 == (mark & 0xfffff);
}

static inline bool oracle_copy(const struct page_copy *c, int64_t version)
{
    return c->version == (uint64_t)version && c->state <= PAGE_LEAVING &&
           c->worker < COORD_WORKERS &&
           c->check == oracle_check(c, offsetof(struct page_copy, check));
}

/* The copy that counts, NULL where the slot is damaged; *blank: it was never used. */
static inline const struct page_copy *oracle_record(const struct page *p, unsigned slot,
                                                    bool *blank)
{
    const struct page_slot *s = &p->slot[slot];
    int64_t version;
    *blank = s->commit == 0;
    if (!oracle_mark(s->commit, &version))
        return NULL;
    if (oracle_copy(&s->copy[0], version))
        return &s->copy[0];
    return oracle_copy(&s->copy[1], version) ? &s->copy[1] : NULL;
}

static inline bool oracle_slot_whole(const struct page *p, unsigned slot)
{
    bool blank;
    int64_t last;
    const struct page_copy *c = oracle_record(p, slot, &blank);
    if (!c)
        return blank;
    return c->state == PAGE_FREE ||
           (oracle_mark(p->slot[slot].mark, &last) && last + 1 >= c->lo_ms);
}

/* Whether two slots in use name one workerId. */
static inline bool oracle_doubled(const struct page *p)
{
    static uint8_t seen[COORD_WORKERS];
    bool blank, doubled = false;
    memset(seen, 0, sizeof seen);
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        const struct page_copy *c = oracle_record(p, i, &blank);
        if (c && c->state != PAGE_FREE)
            doubled |= seen[c->worker]++ > 0;
    }
    return doubled;
}

static inline enum page_verdict oracle_verdict(const struct page *p, const struct page_home *home)
{
    const struct page_head *h = &p->head;
    bool whole = memcmp(h->magic, "SIDFPAGE", 8) == 0 && h->version == PAGE_VERSION &&
                 h->slots == PAGE_SLOTS &&
                 h->check == oracle_check(h, offsetof(struct page_head, check)) &&
                 h->identity[sizeof h->identity - 1] == '\0';
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        whole = whole && oracle_slot_whole(p, i);
    if (!whole)
        return PAGE_BROKEN;
    bool ours = memcmp(&h->home, home, sizeof *home) == 0;
    return ours ? PAGE_OWN : PAGE_FOREIGN;
}

#endif
