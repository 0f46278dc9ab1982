/*
 * Reading a metrics page, text exposition 0.0.4, and the differences of two.
 *
 * Invariants
 *   - A page is as hostile as anything from a socket: its size is bounded, and one line that is no
 *     sample makes it none.
 *   - What a page does not tell is NAN, never 0.
 *   - A counter that fell began anew: it counts from 0.
 *
 * Source: Prometheus, "Exposition formats".
 */
#ifndef SIDFLAKE_CTL_SCRAPE_H
#define SIDFLAKE_CTL_SCRAPE_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define SCRAPE_BYTES_MAX   (4u << 20)
#define SCRAPE_SAMPLES_MAX 65536u

struct scrape_sample {
    struct span name;
    struct span labels; /* as written, between the braces */
    double value;
};

struct scrape {
    char *text; /* what the spans point into */
    struct scrape_sample *v;
    size_t n;
    int64_t mono_us; /* when it was read; the caller's to set */
};

/* Takes text, which is freed by scrape_clear or here on failure; n bytes of it. */
enum err_code scrape_parse(struct scrape *s, char *text, size_t n, struct err *e) MUST_CHECK;
void scrape_clear(struct scrape *s);

/* The value of a label, unescaped and printable; false where there is none. */
bool scrape_label(const struct scrape_sample *s, const char *key, char *out, size_t cap);

/* The first sample of that name, and of that label where key is not NULL; NAN where there is none.
 */
double scrape_value(const struct scrape *s, const char *name, const char *key, const char *value);

/* The sum over all samples of that name (and label). */
double scrape_sum(const struct scrape *s, const char *name, const char *key, const char *value);

/* Growth in a second of what two sums came to; NAN where either is not known. */
double scrape_rate(double now, double before, int64_t us);

/* ---- histograms ------------------------------------------------------------------------------ */

#define SCRAPE_BUCKETS 64

struct scrape_histogram {
    unsigned n;
    double le[SCRAPE_BUCKETS];    /* rising; the last is INFINITY */
    double count[SCRAPE_BUCKETS]; /* cumulative */
};

/* name without _bucket. n is 0 where there is none, or it is not of the form it must have. */
void scrape_histogram(const struct scrape *s, const char *name, const char *key, const char *value,
                      struct scrape_histogram *out);

/* What came since; all of it where the two do not fit one another, or it began anew. */
void scrape_histogram_since(struct scrape_histogram *h, const struct scrape_histogram *before);

/* The q-quantile, 0 < q < 1, by linear interpolation within its bucket as Prometheus does it; NAN
 * where there is no observation, INFINITY above the largest bound. */
double scrape_quantile(const struct scrape_histogram *h, double q);

#endif
