/*
 * A fuzzer's input as a stream of small numbers: what a target asks for one after another.
 *
 * Invariants
 *   - Never fails: where the input has ended, every number is 0 and every block empty.
 *   - Numbers are little-endian.
 */
#ifndef SIDFLAKE_FUZZ_FEED_H
#define SIDFLAKE_FUZZ_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* MAY: what the inputs so far should have led to and did not, or NULL. Asked once a whole corpus
 * has been replayed, so that one that has gone stale fails. */
const char *fuzz_unreached(void);

struct feed {
    const uint8_t *p;
    size_t n; /* bytes left */
};

static inline uint64_t feed_number(struct feed *f, size_t bytes)
{
    uint64_t v = 0;
    size_t n = bytes < f->n ? bytes : f->n;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)f->p[i] << (8 * i);
    f->p += n;
    f->n -= n;
    return v;
}

static inline uint8_t feed_u8(struct feed *f)
{
    return (uint8_t)feed_number(f, 1);
}

static inline uint16_t feed_u16(struct feed *f)
{
    return (uint16_t)feed_number(f, 2);
}

/* A difference of time in ms: one byte of small steps, or, after 0x7f, two's complement of 64 bits.
 */
static inline int64_t feed_delta(struct feed *f)
{
    int8_t small = (int8_t)feed_u8(f);
    return small == INT8_MAX ? (int64_t)feed_number(f, 8) : small;
}

/* At most n bytes; *got is how many there were. */
static inline const uint8_t *feed_bytes(struct feed *f, size_t n, size_t *got)
{
    const uint8_t *p = f->p;
    *got = n < f->n ? n : f->n;
    f->p += *got;
    f->n -= *got;
    return p;
}

/* What a target promises; what: the promise, for whoever reads the crash. */
static inline void feed_must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* Whether a corpus still leads where it should: feed_reached(i) on the way, and the first of n
 * names that was not reached, NULL where all were, at the end. */
static uint32_t feed_places;

static inline void feed_reached(unsigned place)
{
    feed_places |= (uint32_t)1 << place;
}

static inline const char *feed_unreached(const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!(feed_places >> i & 1))
            return names[i];
    return NULL;
}

#endif
