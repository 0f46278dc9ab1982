#include "serve/watch/history.h"

void history_init(struct history *h, int64_t now_us)
{
    h->before_us = now_us;
}

uint32_t history_quantile_ns(const struct histogram *h, double q)
{
    uint64_t total = histogram_total(h), below = 0;
    double rank = q * (double)total;
    if (total == 0)
        return 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double n = (double)h->count[i];
        if (n > 0 && (double)below + n >= rank) {
            double from = i > 0 ? histogram_bounds_us[i - 1] : 0, to = histogram_bounds_us[i];
            double us = from + (to - from) * (rank - (double)below) / n;
            return us > 0 ? (uint32_t)(us * 1000) : 1;
        }
        below += h->count[i];
    }
    return histogram_bounds_us[HISTOGRAM_BUCKETS - 1] * 1000;
}

/* Counters only grow; of a histogram that was reset nothing is known. */
static uint64_t growth(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static uint32_t small_growth(uint64_t now, uint64_t before)
{
    uint64_t n = growth(now, before);
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

void history_since(const struct history *h, int64_t now_us, const struct history_totals *t,
                   struct history_sample *out)
{
    static const double q[HISTORY_PERCENTILES] = {0.5, 0.99, 0.999};
    const struct history_totals *b = &h->before;
    struct histogram grown = {.sum_us = 0};
    for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        grown.count[i] = growth(t->duration.count[i], b->duration.count[i]);
    *out = (struct history_sample){
        .end_us = now_us,
        .length_us = now_us > h->before_us ? now_us - h->before_us : 0,
        .issued = growth(t->issued, b->issued),
        .counted = growth(t->counted, b->counted),
        .failed = small_growth(t->failed, b->failed),
        .missed = small_growth(t->missed, b->missed),
        .exhausted = small_growth(t->exhausted, b->exhausted),
        .rollbacks = small_growth(t->rollbacks, b->rollbacks),
        .rotations = small_growth(t->rotations, b->rotations),
    };
    for (size_t i = 0; i < HISTORY_PERCENTILES; i++)
        out->percentile_ns[i] = history_quantile_ns(&grown, q[i]);
}

void history_take(struct history *h, int64_t now_us, const struct history_totals *t)
{
    history_since(h, now_us, t, &h->ring[h->taken++ % HISTORY_MAX]);
    h->before_us = now_us;
    h->before = *t;
}

const struct history_sample *history_get(const struct history *h, size_t i, int64_t now_us,
                                         int64_t back_us)
{
    if (i >= h->taken || i >= HISTORY_MAX)
        return NULL;
    const struct history_sample *s = &h->ring[(h->taken - 1 - i) % HISTORY_MAX];
    return now_us - s->end_us < back_us ? s : NULL;
}
