#include "base/histogram.h"

const uint32_t histogram_bounds_us[HISTOGRAM_BUCKETS] = {
    1,    2,    5,     10,    20,    50,     100,    200,    500,     1000,
    2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000,
};

void histogram_add(struct histogram *h, int64_t us, uint64_t n)
{
    uint64_t v = us > 0 ? (uint64_t)us : 0;
    size_t i = 0;
    while (i < HISTOGRAM_BUCKETS && v > histogram_bounds_us[i])
        i++;
    h->count[i] += n;
    h->sum_us += v * n;
}

uint64_t histogram_total(const struct histogram *h)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        total += h->count[i];
    return total;
}
