/*
 * A histogram of latencies, fine enough for percentiles: 64 steps to each doubling, so that a
 * percentile is off by less than 1.6 %.
 *
 * Invariant: counts are never lost; times beyond the last bucket count in it.
 */
#ifndef SIDFLAKE_BENCH_LATENCY_H
#define SIDFLAKE_BENCH_LATENCY_H

#include <stdint.h>

#define LATENCY_STEPS   64
#define LATENCY_BUCKETS (LATENCY_STEPS * 40) /* up to about 9 minutes */

struct latency {
    uint64_t count[LATENCY_BUCKETS];
    uint64_t total;
    uint64_t max_ns;
};

/* Counts n requests that took ns nanoseconds each. */
void latency_add(struct latency *l, uint64_t ns, uint64_t n);

/* The time, in microseconds, that `share` (0..1) of the requests took at most; 0 without any. */
double latency_us(const struct latency *l, double share);

#endif
