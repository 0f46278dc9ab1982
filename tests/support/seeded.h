/*
 * A stream of random bytes that is the same for the same seed, so that a failure can be repeated.
 *
 * Source: splitmix64 (Steele, Lea, Flood 2014).
 */
#ifndef SIDFLAKE_SUPPORT_SEEDED_H
#define SIDFLAKE_SUPPORT_SEEDED_H

#include "base/rng.h"

#include <string.h>

struct seeded {
    struct rng rng; /* first: what the code under test is given */
    uint64_t state;
};

static inline void seeded_fill(struct rng *r, void *out, size_t n)
{
    struct seeded *s = (struct seeded *)r;
    for (size_t at = 0; at < n; at += 8) {
        uint64_t z = s->state += UINT64_C(0x9E3779B97F4A7C15);
        z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
        z ^= z >> 31;
        memcpy((char *)out + at, &z, n - at < 8 ? n - at : 8);
    }
}

static inline struct seeded seeded_of(uint64_t seed)
{
    return (struct seeded){{seeded_fill}, seed};
}

/* Uniform in lo..hi, both included. */
static inline int64_t seeded_in(struct seeded *s, int64_t lo, int64_t hi)
{
    return lo + (int64_t)rng_below(&s->rng, (uint64_t)(hi - lo) + 1);
}

#endif
