/*
 * sidflakectl top of a sidecar: what was seen of it, and how its figures are painted.
 */
#ifndef SIDFLAKE_CTL_TOP_SIDECAR_H
#define SIDFLAKE_CTL_TOP_SIDECAR_H

#include "ctl/scrape.h"
#include "ctl/top.h"

#define SIDECAR_SLOTS 32

/* The longest range that was seen of the workerId in a slot: what a full bar is. A young tenure
 * gets 30 s where a mature one gets an hour. */
struct sidecar_range {
    double worker, most;
};

struct sidecar {
    const char *url;
    struct scrape now, before;   /* n 0: none yet */
    int64_t us;                  /* between the two */
    int64_t answered_us;         /* when `now` was read; monotonic, 0: never */
    bool down, ready;            /* down: the latest look found nothing */
    struct err e;                /* where down */
    char why[ERR_TEXT_MAX + 64]; /* where not ready */
    struct top_history ids, requests;
    struct sidecar_range slot[SIDECAR_SLOTS];
};

/* Growth in a second of the sum of a family (with that label) between the two looks; NAN: unknown.
 */
double sidecar_grown(const struct sidecar *s, const char *name, const char *key, const char *value);

/* The first sample of a family; NAN: none. */
double sidecar_number(const struct sidecar *s, const char *name);

/* The number of a sample's slot; SIDECAR_SLOTS: none, or too large a one. */
unsigned sidecar_slot(const struct scrape_sample *x);

/* Each some lines, and most of them a blank one after. */
void sidecar_paint_rates(const struct sidecar *s, struct paint *p);
void sidecar_paint_protocols(const struct sidecar *s, struct paint *p);
void sidecar_paint_upstreams(const struct sidecar *s, struct paint *p);
void sidecar_paint_workers(const struct sidecar *s, struct paint *p);
void sidecar_paint_lease(const struct sidecar *s, struct paint *p);
void sidecar_paint_process(const struct sidecar *s, struct paint *p);

#endif
