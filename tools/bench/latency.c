#include "latency.h"

/* Below LATENCY_STEPS a bucket is one nanosecond wide; then 64 to each doubling. */
static unsigned bucket_of(uint64_t ns)
{
    if (ns < LATENCY_STEPS)
        return (unsigned)ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - 6;
    unsigned at = (shift + 1) * LATENCY_STEPS + (unsigned)(ns >> shift) - LATENCY_STEPS;
    return at < LATENCY_BUCKETS ? at : LATENCY_BUCKETS - 1;
}

/* The middle of a bucket, in nanoseconds. */
static double middle_of(unsigned at)
{
    if (at < LATENCY_STEPS)
        return at;
    unsigned shift = at / LATENCY_STEPS - 1;
    double width = (double)(UINT64_C(1) << shift);
    return (double)(LATENCY_STEPS + at % LATENCY_STEPS) * width + width / 2;
}

void latency_add(struct latency *l, uint64_t ns, uint64_t n)
{
    l->count[bucket_of(ns)] += n;
    l->total += n;
    if (ns > l->max_ns)
        l->max_ns = ns;
}

double latency_us(const struct latency *l, double share)
{
    uint64_t seen = 0, want = (uint64_t)(share * (double)l->total + 0.5);
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        seen += l->count[i];
        if (seen > 0 && seen >= want)
            return middle_of(i) / 1000;
    }
    return 0;
}
