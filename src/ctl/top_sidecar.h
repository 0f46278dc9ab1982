/*
 * sidflakectl top of a sidecar: what was seen of it, and how its figures are painted.
 */
#ifndef SIDFLAKE_CTL_TOP_SIDECAR_H
#define SIDFLAKE_CTL_TOP_SIDECAR_H

#include "ctl/http_get.h"
#include "ctl/status_reply.h"
#include "ctl/top.h"

#define SIDECAR_SLOTS 32

/* The longest range that was seen of the workerId in a slot: what a full bar is. A young tenure
 * gets 30 s where a mature one gets an hour. */
struct sidecar_range {
    double worker, most;
};

struct sidecar {
    const char *url;
    json_t *now, *before;           /* NULL: none yet */
    int64_t us;                     /* between the two */
    int64_t answered_us;            /* when `now` was read; monotonic, 0: never */
    bool down;                      /* the latest look found nothing */
    struct err e;                   /* where down */
    char login[CTL_HTTP_LOGIN_MAX]; /* --user and its password, "": none */
    bool asks_login;                /* the sidecar wants them: else they are not sent */
    struct top_history ids, requests;
    struct sidecar_range slot[SIDECAR_SLOTS];
};

/* Growth in a second between the two looks, of a number or of a sum (ctl_status_sum); NAN:
 * unknown. */
double sidecar_grown(const struct sidecar *s, const char *path);
double sidecar_grown_sum(const struct sidecar *s, const char *list, const char *member,
                         const char *key, const char *text);

/* The number of a path, and one of milliseconds in seconds; NAN: none. */
double sidecar_number(const struct sidecar *s, const char *path);
double sidecar_seconds(const struct sidecar *s, const char *path_ms);

/* Each some lines, and most of them a blank one after. */
void sidecar_paint_rates(const struct sidecar *s, struct paint *p);
void sidecar_paint_protocols(const struct sidecar *s, struct paint *p);
void sidecar_paint_upstreams(const struct sidecar *s, struct paint *p);
void sidecar_paint_workers(const struct sidecar *s, struct paint *p);
void sidecar_paint_lease(const struct sidecar *s, struct paint *p);
void sidecar_paint_process(const struct sidecar *s, struct paint *p);

#endif
