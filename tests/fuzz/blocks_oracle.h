/*
 * A second opinion on an area of blocks: what lease/blockpage.h says in words, read from the bytes
 * without the code under test.
 *
 * Invariant: shares with lease/blockpage.c the layout alone.
 */
#ifndef SIDFLAKE_FUZZ_BLOCKS_ORACLE_H
#define SIDFLAKE_FUZZ_BLOCKS_ORACLE_H

#include "page_oracle.h"

#include "lease/blockpage.h"

/* Of a name, or a sub. */
static inline bool oracle_word(const char *s, size_t max, bool sub)
{
    size_t n = strnlen(s, max);
    for (size_t i = 0; i < n; i++) {
        bool plain = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'z') ||
                     (s[i] >= 'A' && s[i] <= 'Z') || strchr("_.-", s[i]);
        if (!(sub ? s[i] > ' ' && s[i] <= '~' : plain))
            return false;
    }
    return n < max && (n > 0 || sub);
}

static inline bool oracle_period(const char *s)
{
    size_t n = strnlen(s, PERIOD_LABEL_MAX);
    return n == 0 || (n > 3 && n < PERIOD_LABEL_MAX && strspn(s, "0123456789-T") == n);
}

static inline bool oracle_index(int64_t v)
{
    return v >= 0 && v <= SEQ_INDEX_MAX;
}

/* Whether a coordinator can have granted it: counts are indices, and its numbers are numbers. */
static inline bool oracle_block_possible(const struct blockpage_copy *c)
{
    if (c->state > PAGE_LEAVING || c->reset >= PERIOD_RESETS ||
        !memchr(c->of.name, 0, sizeof c->of.name) || !memchr(c->of.sub, 0, sizeof c->of.sub) ||
        !memchr(c->of.period, 0, sizeof c->of.period))
        return false;
    if (c->state == PAGE_FREE)
        return true;
    if (!oracle_word(c->of.name, sizeof c->of.name, false) ||
        !oracle_word(c->of.sub, sizeof c->of.sub, true) || !oracle_period(c->of.period))
        return false;
    __int128 last = (__int128)c->hi * c->increment + c->start;
    return oracle_index(c->gen) && oracle_index(c->turn) && oracle_index(c->era) &&
           oracle_index(c->n) && oracle_index(c->lo) && oracle_index(c->hi) && c->lo <= c->hi &&
           c->hi - c->lo < SEQ_BLOCK_MAX && c->hi < SEQ_INDEX_MAX && c->increment != 0 &&
           c->start >= -SEQ_NUMBER_MAX && c->start <= SEQ_NUMBER_MAX &&
           c->increment >= -SEQ_NUMBER_MAX && c->increment <= SEQ_NUMBER_MAX &&
           last >= -SEQ_NUMBER_MAX && last <= SEQ_NUMBER_MAX;
}

/* The copy that counts, NULL where the slot is damaged or was never used. */
static inline const struct blockpage_copy *oracle_block(const struct blockpage *p, unsigned slot)
{
    const struct blockpage_slot *s = &p->slot[slot];
    int64_t version;
    if (s->commit == 0 || !oracle_mark(s->commit, &version))
        return NULL;
    for (unsigned k = 0; k < 2; k++) {
        const struct blockpage_copy *c = &s->copy[k];
        if (c->version == (uint64_t)version &&
            c->check == oracle_check(c, offsetof(struct blockpage_copy, check)))
            return oracle_block_possible(c) ? c : NULL;
    }
    return NULL;
}

/* How many of a block of that size were given out, all of them where nobody knows. */
static inline int64_t oracle_given(const struct blockpage *p, unsigned slot, int64_t size)
{
    int64_t given;
    return oracle_mark(p->slot[slot].mark, &given) && given < size ? given : size;
}

static inline enum page_verdict oracle_blocks_verdict(const struct blockpage *p, size_t bytes,
                                                      const struct page_home *home)
{
    const struct blockpage_head *h = &p->head;
    if (bytes < 1024 || memcmp(h->magic, "SIDFBLKS", 8) != 0 || h->version != BLOCKPAGE_VERSION ||
        bytes != 1024 + (size_t)h->slots * 768 ||
        h->check != oracle_check(h, offsetof(struct blockpage_head, check)) ||
        h->identity[sizeof h->identity - 1] != '\0')
        return PAGE_BROKEN;
    return memcmp(&h->home, home, sizeof *home) == 0 ? PAGE_OWN : PAGE_FOREIGN;
}

#endif
