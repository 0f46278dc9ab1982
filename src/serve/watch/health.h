/*
 * Whether this sidecar is well, and why not: what /readyz answers, and what the status page warns
 * of.
 *
 * Invariants
 *   - HEALTH_FAIL if and only if /readyz answers 503.
 *   - A warning says what is wrong, and what comes of it where that is not plain. The bounds are
 *     those of the alerts in packaging/prometheus.
 *   - Pure: it is told the time.
 */
#ifndef SIDFLAKE_SERVE_WATCH_HEALTH_H
#define SIDFLAKE_SERVE_WATCH_HEALTH_H

#include "serve/serve.h"

/* What has to be well for an ID to be had. */
struct health_check {
    const char *name; /* a literal */
    bool fails;
};

/* Check number i: the first is liveness, which never fails, or nobody would answer; then those of
 * the generators' kinds. ready: what issuer_ready says. The clock fails whenever it is the reason:
 * a claim is refused for it, or the cause is one that comes of a wrong clock. false: there is none.
 */
bool health_check(const struct serve *s, size_t i, struct refusal ready, struct health_check *out);

/* The name of what is found out about a server behind. */
const char *health_upstream(enum serve_protocol p);

enum health_state {
    HEALTH_OK,
    HEALTH_WARN,
    HEALTH_FAIL
};

#define HEALTH_FINDINGS_MAX 24

struct health_finding {
    enum health_state state; /* WARN or FAIL */
    const char *name;        /* what it is about, one word as a check's */
    char text[ERR_TEXT_MAX + 192];
};

struct health {
    enum health_state state;                            /* the worst of the findings */
    struct refusal ready;                               /* by is NULL: it is */
    struct health_finding finding[HEALTH_FINDINGS_MAX]; /* the worst first */
    size_t n;
};

/* live: what the history's next sample would be (serve_sample_now). */
void health_judge(const struct serve *s, int64_t now_ms, const struct history_sample *live,
                  struct health *h);

#endif
