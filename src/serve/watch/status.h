/*
 * What the status page shows, taken from the service at one moment: numbers and texts under the
 * names by which the template (status.html) calls them.
 *
 *   serve, log -> status_gather -> struct status -> the tables of status_page.c -> template.h
 *                                               -> the table of status_json.c
 *
 * Invariants
 *   - A number that is not known is STATUS_UNKNOWN, and is shown as a dash.
 *   - Texts live as long as the service, but for those of an item, which live until the next one.
 *   - Units are in the names: _ms milliseconds (durations, or Unix time), _ns nanoseconds, _milli
 *     thousandths.
 */
#ifndef SIDFLAKE_SERVE_WATCH_STATUS_H
#define SIDFLAKE_SERVE_WATCH_STATUS_H

#include "base/events.h"
#include "serve/watch/chart.h"
#include "serve/watch/health.h"
#include "serve/watch/process.h"

#define STATUS_UNKNOWN PROCESS_UNKNOWN

struct status {
    struct serve *s;
    const char *nonce, *version, *host, *title, *state, *up_word;
    const char *coordinator, *pool, *identity;

    int64_t now_ms, started_ms, uptime_ms;
    /* Now: the latest sample, or the unfinished one once it is long enough to tell. */
    int64_t rate_milli, p50_ns, p99_ns, p999_ns;
    /* The hour. */
    int64_t hour_issued, hour_failed, hour_missed, hour_rollbacks, hour_rotations, rate_most_milli,
        p999_most_ns, rate_top_milli, rate_half_milli, back_top, before, before_middle;
    /* Since the start. */
    int64_t issued, rollbacks, rotations, exhausted, waited_ms, waited_us, clock_jumps;
    /* workerIds */
    int64_t held, wanted, active, left_ms, horizon_ms, mature_after_ms;
    /* The pool. */
    int64_t pool_free, pool_size, era, skew_ms, max_skew_ms, grants_ms, first_grants_ms, renewals,
        renewals_renewed, renewals_again, renewals_reasserted, renewals_failed, renewals_lost,
        renewed_ago_ms, data_loss, coordinator_p50_ns, coordinator_p99_ns;
    /* The process. */
    int64_t resident, cpu_ms, cpu_us, open_fds, max_fds, max_connections;

    /* The item of a list that is being shown. */
    const char *finding, *check, *check_state, *check_mark, *check_word, *worker_use, *worker_state,
        *protocol, *upstream, *upstream_state, *upstream_mark, *upstream_word, *upstream_why,
        *upstream_note, *charted_and, *charted_name, *event, *event_level, *event_text, *figure_of,
        *figure;
    int64_t worker, worker_left_ms, worker_hi_ms, worker_permille, worker_percent;
    int64_t protocol_open, protocol_accepted, protocol_requests, protocol_failed, protocol_missed,
        protocol_p50_ns, protocol_p99_ns;
    int64_t upstream_for_ms, upstream_open, upstream_requests, upstream_away, upstream_errors;
    int64_t event_ms, event_ago_ms, event_first_ms, event_times;
    int64_t decade_y, decade_ns;
    int64_t figure_value;

    struct health health;
    struct history_sample live;
    struct chart chart;
    struct chart_scale rate_scale, latency_scale, back_scale;
    bool has_latency; /* a sample of the hour has one */
    bool answered;    /* the coordinator, ever */
    uint64_t events;  /* serial of the latest one */
    struct event current;
};

void status_gather(struct status *v, struct serve *s, const char *nonce);

/* As template.item. */
int status_item(void *status, struct span list, size_t i);

#endif
