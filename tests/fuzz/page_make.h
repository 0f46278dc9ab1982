/*
 * A state page made as a fuzzer's input says:
 *
 *   | patches: offset (2 bytes), length (1), bytes ... | 0xffff |
 *
 * over zeroes or a page with records, and then with check values made right, or not.
 */
#ifndef SIDFLAKE_FUZZ_PAGE_MAKE_H
#define SIDFLAKE_FUZZ_PAGE_MAKE_H

#include "feed.h"
#include "page_oracle.h"

#define MAKE_MS       INT64_C(1780000000000) /* Unix ms: about when the records were written */
#define MAKE_IDENTITY "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10"

enum {
    MAKE_TEMPLATE = 1, /* patches go over a page with records, else over zeroes */
    MAKE_HEAD = 2,     /* then check values are made right: of the head, */
    MAKE_COPIES = 4,   /* of the copies, */
    MAKE_COMMITS = 8,  /* of the commits, which name the copy they named, */
    MAKE_MARKS = 16    /* and of the marks */
};

static inline void make_slot(struct page *p, unsigned slot, enum page_state state, uint16_t worker,
                             bool renewing)
{
    struct page_record r = {.state = state,
                            .worker = worker,
                            .renewing = renewing,
                            .cur = {{(uint8_t)slot, 1}},
                            .nxt = {{(uint8_t)slot, renewing ? 2 : 1}},
                            .n = 3,
                            .lo_ms = MAKE_MS - 60000,
                            .hi_ms = MAKE_MS + 30000};
    mark_store(&p->slot[slot].mark, MAKE_MS - 10);
    page_store(p, slot, &r);
}

static inline void make_template(struct page *p, const struct page_home *home)
{
    page_format(p, home, 1);
    page_set_identity(p, MAKE_IDENTITY);
    make_slot(p, 0, PAGE_HELD, 5, false);
    make_slot(p, 0, PAGE_HELD, 5, true);
    make_slot(p, 1, PAGE_HELD, 6, false);
    make_slot(p, 2, PAGE_LEAVING, 7, true);
    make_slot(p, 3, PAGE_FREE, 8, false);
}

static inline void make_patched(struct page *p, struct feed *in)
{
    for (uint16_t at; in->n > 0 && (at = feed_u16(in)) != UINT16_MAX;) {
        size_t got, most = feed_u8(in);
        const uint8_t *bytes = feed_bytes(in, most, &got);
        size_t from = at % sizeof *p;
        size_t n = got < sizeof *p - from ? got : sizeof *p - from;
        if (n > 0)
            memcpy((char *)p + from, bytes, n);
    }
}

/* A fuzzer guesses no check value: with these it need not. */
static inline void make_whole(struct page *p, unsigned flags)
{
    struct page_head *h = &p->head;
    if (flags & MAKE_HEAD)
        h->check = oracle_check(h, offsetof(struct page_head, check));
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_slot *s = &p->slot[i];
        for (unsigned k = 0; k < 2 && flags & MAKE_COPIES; k++)
            s->copy[k].check = oracle_check(&s->copy[k], offsetof(struct page_copy, check));
        if (flags & MAKE_COMMITS && s->commit != 0)
            s->commit = mark_of((int64_t)s->copy[s->commit & 1].version);
        if (flags & MAKE_MARKS)
            s->mark = mark_of((int64_t)(s->mark >> 20));
    }
}

/* Whether a process can have written it: no workerId twice, and room to count versions on. What
 * else a forger with the right check values may write cannot be told from the truth. */
static inline bool make_plausible(const struct page *p)
{
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        bool blank;
        const struct page_copy *c = oracle_record(p, i, &blank);
        if (c && c->version > (uint64_t)MARK_MAX_MS / 2)
            return false;
    }
    return !oracle_doubled(p);
}

static inline void make_page(struct page *p, const struct page_home *home, unsigned flags,
                             struct feed *in)
{
    memset(p, 0, sizeof *p);
    if (flags & MAKE_TEMPLATE)
        make_template(p, home);
    make_patched(p, in);
    make_whole(p, flags);
}

#endif
