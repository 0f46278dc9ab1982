/*
 * A histogram of durations with fixed bounds, as Prometheus wants it: cumulative when read, one
 * increment when written.
 *
 * Invariants: one thread writes and reads it; it never allocates.
 */
#ifndef SIDFLAKE_BASE_HISTOGRAM_H
#define SIDFLAKE_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 20

/* Upper bounds in microseconds, inclusive: 1, 2, 5, 10 … 1 s, 2 s; a larger one counts only in
 * +Inf. The same for all histograms, so that they can be laid over each other. */
extern const uint32_t histogram_bounds_us[HISTOGRAM_BUCKETS];

struct histogram {
    uint64_t
        count[HISTOGRAM_BUCKETS + 1]; /* per bucket, not cumulative; the last is the overflow */
    uint64_t sum_us;
};

/* Counts n observations of us microseconds each; negative ones (a clock that stepped) count as 0.
 */
void histogram_add(struct histogram *h, int64_t us, uint64_t n);

uint64_t histogram_total(const struct histogram *h);

#endif
