/*
 * Writing a metrics page, in two dialects of one format:
 *
 *                      text 0.0.4                      OpenMetrics 1.0.0
 *   counter x          TYPE x_total, sample x_total    TYPE x, sample x_total
 *   info x             TYPE x_info gauge               TYPE x info, sample x_info
 *   unit, end          -                               UNIT x_seconds seconds, EOF
 *
 * Invariants
 *   - Samples are the same in both, the values of `le` included, so that a scraper may change over
 *     without breaking its series.
 *   - A family's comment lines come once, before its first sample; a family without samples leaves
 *     nothing.
 *   - No printf: a locale has no say in numbers.
 *
 * Sources: Prometheus, "Exposition formats"; the OpenMetrics 1.0.0 specification.
 */
#ifndef SIDFLAKE_SERVE_WATCH_EXPOSITION_H
#define SIDFLAKE_SERVE_WATCH_EXPOSITION_H

#include "base/buf.h"
#include "base/histogram.h"

enum exposition_kind {
    EXPOSITION_COUNTER,
    EXPOSITION_GAUGE,
    EXPOSITION_HISTOGRAM,
    EXPOSITION_INFO,
    EXPOSITION_KINDS
};

struct exposition_family {
    const char *name; /* without _total and _info; ends in the unit, if there is one */
    enum exposition_kind kind;
    const char *unit; /* base unit, or "" */
    const char *help; /* without quotes and backslashes, which the dialects escape differently */
};

/* out and openmetrics are the caller's to set, the rest begins as 0. */
struct exposition {
    struct buf *out;
    bool openmetrics;
    const struct exposition_family *family; /* being written */
    bool headed;                            /* its comment lines are written */
    bool labelled;                          /* the sample being written has a label */
};

void exposition_family(struct exposition *e, const struct exposition_family *f);

/* One sample of a counter, gauge or info: begin, any number of labels, end. A label's value may
 * hold any bytes. v counts units of 10^-decimals (0..9): 1500 with 3 decimals is written 1.5. */
void exposition_begin(struct exposition *e);
void exposition_label(struct exposition *e, const char *key, struct span value);
void exposition_end(struct exposition *e, int64_t v, unsigned decimals);

/* All samples of a histogram, in seconds. key: of a label that each has, or NULL for none. */
void exposition_histogram(struct exposition *e, const struct histogram *h, const char *key,
                          const char *value);

/* Ends the page. */
void exposition_finish(struct exposition *e);

#endif
