/*
 * What this process did over the last hour, in samples: the counters' growth between two moments at
 * which it was awake anyway.
 *
 *        sample     sample        sample   since the latest, unfinished
 *     |----------|------------|----------|-------
 *     oldest                          before_us   now
 *
 * Invariants
 *   - Samples lie end to end, each at least HISTORY_EVERY_US long, and longer where nothing woke
 *     the process: so HISTORY_MAX of them cover an hour at least.
 *   - Nothing here asks to be woken. Times are monotonic: the wall clock may jump.
 *   - Pure: it is told the time and the totals.
 */
#ifndef SIDFLAKE_SERVE_WATCH_HISTORY_H
#define SIDFLAKE_SERVE_WATCH_HISTORY_H

#include "base/histogram.h"

#include <stdbool.h>

#define HISTORY_SPAN_US  INT64_C(3600000000)
#define HISTORY_EVERY_US INT64_C(15000000)
#define HISTORY_MAX      (HISTORY_SPAN_US / HISTORY_EVERY_US)

/* Since start. */
struct history_totals {
    uint64_t issued;    /* IDs */
    uint64_t counted;   /* numbers of sequences */
    uint64_t failed;    /* requests for IDs or numbers that came to nothing */
    uint64_t missed;    /* reads of keys that are no IDs */
    uint64_t exhausted; /* requests that found the millisecond used up */
    uint64_t rollbacks, rotations;
    struct histogram duration; /* of requests */
};

enum history_percentile {
    HISTORY_P50,
    HISTORY_P99,
    HISTORY_P999,
    HISTORY_PERCENTILES
};

struct history_sample {
    int64_t end_us; /* monotonic */
    int64_t length_us;
    uint64_t issued, counted;
    uint32_t failed, missed, exhausted, rollbacks, rotations; /* at most UINT32_MAX */
    uint32_t percentile_ns[HISTORY_PERCENTILES];              /* 0: there were no requests */
};

struct history {
    int64_t before_us; /* monotonic: end of the latest sample, or the start */
    struct history_totals before;
    struct history_sample ring[HISTORY_MAX];
    uint64_t taken; /* samples since the start; the latest is ring[(taken - 1) % HISTORY_MAX] */
};

/* h is zeroed memory, and stays untouched where no samples are. now_us: monotonic, of the process's
 * start. */
void history_init(struct history *h, int64_t now_us);

/* Whether it is time for a sample. Cheap. */
static inline bool history_due(const struct history *h, int64_t now_us)
{
    return now_us - h->before_us >= HISTORY_EVERY_US;
}

/* Takes the sample that ends now. */
void history_take(struct history *h, int64_t now_us, const struct history_totals *t);

/* What a sample that ends now would be. */
void history_since(const struct history *h, int64_t now_us, const struct history_totals *t,
                   struct history_sample *out);

/* Samples kept that end less than back_us before now_us, the latest first: i from 0 up; NULL: no
 * more. */
const struct history_sample *history_get(const struct history *h, size_t i, int64_t now_us,
                                         int64_t back_us);

/* The q-th quantile (0..1) of what was counted, in nanoseconds, as Prometheus' histogram_quantile
 * has it: linear within a bucket, and the last bound where it lies above. 0 without observations.
 */
uint32_t history_quantile_ns(const struct histogram *h, double q);

#endif
