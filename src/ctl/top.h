/*
 * sidflakectl top: what the two views share, a sidecar's and a pool's.
 *
 * Invariants
 *   - A view looks, which may block for a second or two, and paints what it saw last, which does
 *     not.
 *   - What it could not see is part of the view: a sidecar that is down is no error of top's.
 */
#ifndef SIDFLAKE_CTL_TOP_H
#define SIDFLAKE_CTL_TOP_H

#include "ctl/ctl.h"
#include "ctl/paint.h"

#define TOP_TIMEOUT_US INT64_C(1500000)

struct top_view {
    /* NULL: *status is the exit status, and the reason is told. */
    void *(*open)(const struct ctl_args *a, int *status);
    void (*free)(void *view);
    /* The exit status for a look alone: CTL_OK, or CTL_DOWN where nobody answered and so on. */
    int (*look)(void *view);
    void (*paint)(const void *view, struct paint *p);
    /* What has gone wrong, for stderr. */
    const char *(*why)(const void *view);
    /* true: the key changed what is painted. MAY. */
    bool (*key)(void *view, int key);
    const char *keys; /* what they are, for the last line */
    /* How long to leave it alone after a look, ms; 0: no matter. MAY. */
    int64_t (*pause)(const void *view);
};

extern const struct top_view top_sidecar, top_pool;

/* ---- words ----------------------------------------------------------------------------------- */

#define TOP_LABEL 13 /* columns of what stands at the left */

/* Numbers as short texts, in two ctl_words at most; "-" for what is not known. per_s: per second;
 * seconds: "5 µs", "1.2 ms", "> 2 s" where over is the largest bound known. */
const char *top_per_s(double v);
const char *top_count(double v);
const char *top_seconds(double s, double over);
const char *top_bytes(double v);

/* A stretch of time in seconds, short: "4.2 s", "28 s", "59 min 41 s", "7.8 years". */
const char *top_span(double s);

/* The bar on top: what is looked at, and at the right when. */
void top_head(struct paint *p, const char *what, const char *right);

/* Begins a line with its label. */
void top_label(struct paint *p, const char *label);

/* Green, yellow or red for a part of a range that is left. */
enum paint_style top_style_of(double fraction);

/* What a renewal grants where v is the most that was seen to be left, all in seconds: the first
 * horizon, of a young tenure, or the horizon; v itself where it is more, or they are NAN. */
double top_scale(double v, double first, double horizon);

/* ---- history --------------------------------------------------------------------------------- */

#define TOP_HISTORY 240

/* The latest values, oldest first. */
struct top_history {
    double v[TOP_HISTORY];
    unsigned n;
};

void top_remember(struct top_history *h, double v);

#endif
