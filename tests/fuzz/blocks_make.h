/*
 * An area of blocks made as a fuzzer's input says:
 *
 *   | patches: offset (2 bytes), length (1), bytes ... | 0xffff |
 *
 * over zeroes or an area with records, and then with check values made right, or not.
 */
#ifndef SIDFLAKE_FUZZ_BLOCKS_MAKE_H
#define SIDFLAKE_FUZZ_BLOCKS_MAKE_H

#include "blocks_oracle.h"
#include "feed.h"

#include "base/fnv.h"

#define BLOCKS_MAKE_COUNTERS 3
#define BLOCKS_MAKE_SLOTS    (2 * BLOCKS_MAKE_COUNTERS)
#define BLOCKS_MAKE_BYTES    (1024 + 768 * BLOCKS_MAKE_SLOTS)
#define BLOCKS_MAKE_TEXT                                                                           \
    "start=1 increment=1 begins=0 rate=0 burst=0 subs=0 reset=never offset=0 loss=trust "          \
    "order=sidecar cycle=no"
#define BLOCKS_MAKE_IDENTITY "11111111-2222-4333-8444-555555555555|0|38.15.10"

enum {
    BLOCKS_TEMPLATE = 1, /* patches go over an area with records, else over zeroes */
    BLOCKS_HEAD = 2,     /* then check values are made right: of the head, */
    BLOCKS_COPIES = 4,   /* of copies, */
    BLOCKS_COMMITS = 8,  /* of commits, which name the copy they named, */
    BLOCKS_MARKS = 16    /* and of marks */
};

static inline void blocks_make_slot(struct blockpage *p, unsigned slot, enum page_state state,
                                    int64_t lo, int64_t given)
{
    struct blockpage_record r = {.state = state,
                                 .of = {.name = "orders"},
                                 .token = {{(uint8_t)slot, 1}},
                                 .gen = 1,
                                 .turn = 1,
                                 .era = 1,
                                 .n = 3 + lo,
                                 .opening = 1,
                                 .lo = lo,
                                 .hi = lo + 19,
                                 .start = 1,
                                 .increment = 1,
                                 .definition = fnv64_str(BLOCKS_MAKE_TEXT)};
    r.of.name[0] = (char)('a' + slot / 2);
    if (slot / 2 == 2) {
        memcpy(r.of.sub, "acme", 5);
        memcpy(r.of.period, "2026-11-22", 11);
        r.reset = PERIOD_DAY;
    }
    blockpage_store(p, slot, &r);
    mark_store(&p->slot[slot].mark, given);
}

static inline void blocks_make_template(struct blockpage *p, const struct page_home *home)
{
    const struct seq_opening o = {1, INT64_C(1780000000000), "run:1"};
    blockpage_format(p, BLOCKS_MAKE_SLOTS, home, BLOCKS_MAKE_IDENTITY);
    (void)blockpage_set_opening(p, &o);
    blockpage_set_witness(p, 0, (struct coord_token){{1}});
    blocks_make_slot(p, 0, PAGE_HELD, 0, 7);
    blocks_make_slot(p, 1, PAGE_HELD, 20, 0);
    blocks_make_slot(p, 2, PAGE_LEAVING, 0, 3);
    blocks_make_slot(p, 4, PAGE_HELD, 100, 1);
    blocks_make_slot(p, 5, PAGE_HELD, 60, 19);
}

static inline void blocks_make_patched(struct blockpage *p, struct feed *in)
{
    for (uint16_t at; in->n > 0 && (at = feed_u16(in)) != UINT16_MAX;) {
        size_t got, most = feed_u8(in);
        const uint8_t *bytes = feed_bytes(in, most, &got);
        size_t from = at % BLOCKS_MAKE_BYTES;
        size_t n = got < BLOCKS_MAKE_BYTES - from ? got : BLOCKS_MAKE_BYTES - from;
        if (n > 0)
            memcpy((char *)p + from, bytes, n);
    }
}

#define BLOCKS_RECHECK(c) ((c)->check = oracle_check((c), offsetof(__typeof__(*(c)), check)))

static inline void blocks_make_whole(struct blockpage *p, unsigned flags)
{
    struct blockpage_head *h = &p->head;
    if (flags & BLOCKS_HEAD)
        BLOCKS_RECHECK(h);
    for (unsigned k = 0; k < 2 && flags & BLOCKS_COPIES; k++) {
        BLOCKS_RECHECK(&h->opening[k]);
        BLOCKS_RECHECK(&h->witness[k]);
        BLOCKS_RECHECK(&h->time[k]);
    }
    if (flags & BLOCKS_COPIES)
        BLOCKS_RECHECK(&h->changed);
    for (unsigned i = 0; i < BLOCKS_MAKE_SLOTS; i++) {
        struct blockpage_slot *s = &p->slot[i];
        for (unsigned k = 0; k < 2 && flags & BLOCKS_COPIES; k++)
            BLOCKS_RECHECK(&s->copy[k]);
        if (flags & BLOCKS_COMMITS && s->commit != 0)
            s->commit = mark_of((int64_t)s->copy[s->commit & 1].version);
        if (flags & BLOCKS_MARKS)
            s->mark = mark_of((int64_t)(s->mark >> 20));
    }
}

/* Whether a process can have written it: no numbers of a counter twice, and room to count versions
 * on. What else a forger with the right check values may write cannot be told from the truth. */
static inline bool blocks_make_plausible(const struct blockpage *p)
{
    for (unsigned i = 0; i < BLOCKS_MAKE_SLOTS; i++) {
        const struct blockpage_copy *c = oracle_block(p, i), *d = oracle_block(p, i ^ 1);
        if (c && c->version > (uint64_t)MARK_MAX_MS / 2)
            return false;
        if (c && d && c->state == PAGE_HELD && d->state == PAGE_HELD && c->lo <= d->hi &&
            d->lo <= c->hi)
            return false;
    }
    return true;
}

static inline void blocks_make(struct blockpage *p, const struct page_home *home, unsigned flags,
                               struct feed *in)
{
    memset(p, 0, BLOCKS_MAKE_BYTES);
    if (flags & BLOCKS_TEMPLATE)
        blocks_make_template(p, home);
    blocks_make_patched(p, in);
    blocks_make_whole(p, flags);
}

#endif
