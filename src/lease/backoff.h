/*
 * When to ask again: times that sidecars which failed together do not have in common.
 */
#ifndef SIDFLAKE_LEASE_BACKOFF_H
#define SIDFLAKE_LEASE_BACKOFF_H

#include "base/int64.h"
#include "base/rng.h"

/* ms, give or take a fifth. */
static inline int64_t backoff_jitter(struct rng *rng, int64_t ms)
{
    return ms - ms / 5 + (int64_t)rng_below(rng, (uint64_t)(2 * ms / 5) + 1);
}

/* first, doubled with each failure before this one, six times at most; not above max. All ms. */
static inline int64_t backoff_ms(int64_t first, unsigned fails, int64_t max)
{
    return min64(first << (fails < 6 ? fails : 6), max);
}

#endif
