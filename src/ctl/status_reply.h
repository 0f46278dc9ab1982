/*
 * sidflakectl: the status of a sidecar (GET /v1/status), and the differences of two.
 *
 * Invariants
 *   - A status is as hostile as anything from a socket: its size is bounded, Jansson bounds its
 *     depth, and a member of another type than expected is one that is not there.
 *   - What a status does not tell is NAN, never 0.
 *   - A counter that fell began anew: it counts from 0.
 *
 * A path is of members, with dots: "pool.free".
 */
#ifndef SIDFLAKE_CTL_STATUS_REPLY_H
#define SIDFLAKE_CTL_STATUS_REPLY_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The caller gives *out back to Jansson. ERR_INVALID: it is no JSON, or not a sidecar's. */
enum err_code ctl_status_read(const char *text, size_t n, json_t **out, struct err *e) MUST_CHECK;

/* NAN where it is no number. */
double ctl_status_number(const json_t *j, const char *path);

/* A member's text, printable and cut to cap - 1 bytes; "" where it is none. Returns out. */
char *ctl_status_text(const json_t *j, const char *path, char *out, size_t cap);
bool ctl_status_is(const json_t *j, const char *path, const char *text);

/* The first row of a list that has this text; NULL: none. */
const json_t *ctl_status_row(const json_t *j, const char *list, const char *key, const char *text);

/* The sum of a member over a list: of all its rows where key is NULL. NAN: there is none. */
double ctl_status_sum(const json_t *j, const char *list, const char *member, const char *key,
                      const char *text);

/* The same for each text that there is, as an object of numbers, for the caller to give back; NULL:
 * no memory. Rows whose text Jansson does not take for a key are left out. */
json_t *ctl_status_sums(const json_t *j, const char *list, const char *member, const char *key);

/* Growth in a second; NAN where either is not known. */
double ctl_status_rate(double now, double before, int64_t us);

/* ---- histograms ------------------------------------------------------------------------------ */

#define CTL_BUCKETS 64

struct ctl_histogram {
    unsigned n;
    double le[CTL_BUCKETS];    /* seconds, rising; the last is INFINITY */
    double count[CTL_BUCKETS]; /* cumulative */
};

/* n is 0 where there is none, or it is not of the form it must have. */
void ctl_histogram_read(const json_t *j, const char *path, struct ctl_histogram *out);

/* What came since; all of it where the two do not fit one another, or it began anew. */
void ctl_histogram_since(struct ctl_histogram *h, const struct ctl_histogram *before);

/* The q-quantile, 0 < q < 1, by linear interpolation within its bucket as Prometheus does it; NAN
 * where there is no observation, INFINITY above the largest bound. */
double ctl_histogram_quantile(const struct ctl_histogram *h, double q);

#endif
