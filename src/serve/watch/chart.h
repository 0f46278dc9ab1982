/*
 * Charts of the last hour, as the `d` of an SVG path in a viewBox of CHART_WIDTH x CHART_HEIGHT,
 * which the page stretches to its place:
 *
 *      0,0
 *       |        ___                        CHART_WIDTH is one hour, a unit a second;
 *       |   ____|   |__        __|          the right edge is now
 *       |__|           |______|
 *      0,CHART_HEIGHT
 *
 * A sample is a step as wide as it took; where there is no value there is a gap.
 *
 * Invariant: only digits, '.', '-', spaces and letters of path commands are written.
 */
#ifndef SIDFLAKE_SERVE_WATCH_CHART_H
#define SIDFLAKE_SERVE_WATCH_CHART_H

#include "base/buf.h"
#include "serve/watch/history.h"

#define CHART_WIDTH  3600
#define CHART_HEIGHT 1000

/* A sample's value, or a negative one where it has none. */
typedef double chart_value(const struct history_sample *s);

double chart_rate(const struct history_sample *s); /* IDs a second */
double chart_p50(const struct history_sample *s);  /* nanoseconds */
double chart_p99(const struct history_sample *s);
double chart_p999(const struct history_sample *s);
double chart_rollbacks(const struct history_sample *s);
double chart_rotations(const struct history_sample *s);
double chart_failed(const struct history_sample *s); /* 1 where a request failed, else 0 */

struct chart {
    const struct history *history;
    const struct history_sample *live; /* the unfinished one, which ends now */
};

/* From bottom to top: lo to hi, hi > lo; log: by decades, both powers of ten. */
struct chart_scale {
    double lo, hi;
    bool log;
};

/* Smallest and largest value of the hour; false: there is none, and both are 0. */
bool chart_range(const struct chart *c, chart_value *value, double *least, double *most);

/* From 0 to the first of 1, 2, 5, 10, 20 ... that is not below most, nor below least. */
struct chart_scale chart_scale_linear(double most, double least);

/* Whole decades around both, which are at least 1; at least two of them. */
struct chart_scale chart_scale_log(double least, double most);

/* Where a value lies: 0 (top) to CHART_HEIGHT (bottom). */
int chart_y(const struct chart_scale *s, double value);

void chart_line(const struct chart *c, chart_value *value, const struct chart_scale *s,
                struct buf *out);

/* Filled down to the bottom; bars: only where the value is above 0. */
void chart_area(const struct chart *c, chart_value *value, const struct chart_scale *s, bool bars,
                struct buf *out);

#endif
