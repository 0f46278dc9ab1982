/*
 * sidflakectl top of a sidecar: its figures.
 */
#include "ctl/top_sidecar.h"

#include "base/dec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double sidecar_grown(const struct sidecar *s, const char *name, const char *key, const char *value)
{
    return scrape_rate(scrape_sum(&s->now, name, key, value),
                       s->before.n > 0 ? scrape_sum(&s->before, name, key, value) : NAN, s->us);
}

double sidecar_number(const struct sidecar *s, const char *name)
{
    return scrape_value(&s->now, name, NULL, NULL);
}

unsigned sidecar_slot(const struct scrape_sample *x)
{
    char text[16];
    uint64_t slot;
    bool known = scrape_label(x, "slot", text, sizeof text) && dec_u64(span_str(text), &slot);
    return known && slot < SIDECAR_SLOTS ? (unsigned)slot : SIDECAR_SLOTS;
}

#define KINDS 48

struct kind {
    char text[48];
    double rate;
};

static int faster(const void *a, const void *b)
{
    double x = ((const struct kind *)a)->rate, y = ((const struct kind *)b)->rate;
    return (x < y) - (x > y);
}

/* The rates of a family by one of its labels, those that are not 0, fastest first. */
static size_t kinds_of(const struct sidecar *s, const char *name, const char *key,
                       struct kind out[KINDS])
{
    size_t n = 0;
    char text[48];
    for (size_t i = 0; i < s->now.n && n < KINDS; i++) {
        size_t at = 0;
        if (!span_eq(s->now.v[i].name, span_str(name)) ||
            !scrape_label(&s->now.v[i], key, text, sizeof text))
            continue;
        while (at < n && strcmp(out[at].text, text) != 0)
            at++;
        double rate = at == n ? sidecar_grown(s, name, key, text) : 0;
        if (at < n || !(rate > 0))
            continue;
        memcpy(out[n].text, text, sizeof text);
        out[n++].rate = rate;
    }
    qsort(out, n, sizeof *out, faster);
    return n;
}

static void paint_kinds(const struct sidecar *s, struct paint *p, const char *label,
                        const char *name, const char *key)
{
    struct kind k[KINDS];
    size_t n = kinds_of(s, name, key, k);
    if (n == 0 || (n == 1 && strcmp(k[0].text, "other") == 0))
        return;
    top_label(p, label);
    for (size_t i = 0; i < n && p->col + 16 < p->cols; i++)
        paint_put(p, PAINT_PLAIN, "%s%s %s", i > 0 ? ", " : "", k[i].text, top_per_s(k[i].rate));
}

static unsigned chart_width(const struct paint *p)
{
    unsigned left = p->cols > 58 ? p->cols - 58 : 0;
    return left < TOP_HISTORY ? left : TOP_HISTORY;
}

void sidecar_paint_rates(const struct sidecar *s, struct paint *p)
{
    struct kind k[KINDS];
    double exhausted = sidecar_number(s, "sidflake_sequence_exhausted_total");
    top_label(p, "IDs");
    paint_right(p, TOP_LABEL + 12, PAINT_STRONG, "%s",
                top_per_s(sidecar_grown(s, "sidflake_ids_issued_total", NULL, NULL)));
    paint_tab(p, TOP_LABEL + 13);
    paint_chart(p, PAINT_LINE, chart_width(p), s->ids.v, s->ids.n);
    paint_put(p, PAINT_PLAIN, "  %s in all",
              top_count(scrape_sum(&s->now, "sidflake_ids_issued_total", NULL, NULL)));
    top_label(p, "Requests");
    paint_right(p, TOP_LABEL + 12, PAINT_STRONG, "%s",
                top_per_s(sidecar_grown(s, "sidflake_requests_total", NULL, NULL)));
    paint_tab(p, TOP_LABEL + 13);
    paint_chart(p, PAINT_LINE, chart_width(p), s->requests.v, s->requests.n);
    size_t n = kinds_of(s, "sidflake_requests_total", "result", k);
    for (size_t i = 0, shown = 0; i < n; i++)
        if (strcmp(k[i].text, "ok") != 0)
            paint_put(p, strcmp(k[i].text, "failed") == 0 ? PAINT_BAD : PAINT_PLAIN, "%s%s %s",
                      shown++ > 0 ? ", " : "  ", k[i].text, top_per_s(k[i].rate));
    paint_kinds(s, p, "by command", "sidflake_requests_total", "command");
    paint_kinds(s, p, "by name", "sidflake_ids_issued_total", "name");
    top_label(p, "Sequence");
    paint_put(p, PAINT_PLAIN, "peak %s of 1,024 in a millisecond; used up for %s request%s",
              top_count(sidecar_number(s, "sidflake_sequence_peak")), top_count(exhausted),
              exhausted == 1 ? "" : "s");
    paint_next(p);
}

/* The quantiles of what came since the look before, or of all where there was none. */
static void paint_quantiles(const struct sidecar *s, struct paint *p, const char *name,
                            const char *key, const char *value)
{
    static const double qs[] = {0.5, 0.9, 0.99, 0.999};
    struct scrape_histogram now, before;
    scrape_histogram(&s->now, name, key, value, &now);
    scrape_histogram(&s->before, name, key, value, &before);
    scrape_histogram_since(&now, &before);
    double over = now.n > 1 ? now.le[now.n - 2] : 0;
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++)
        paint_right(p, TOP_LABEL + 35 + 10 * (unsigned)i, PAINT_PLAIN, "%s",
                    top_seconds(scrape_quantile(&now, qs[i]), over));
}

void sidecar_paint_protocols(const struct sidecar *s, struct paint *p)
{
    static const char *const columns[] = {"requests", "connections", "p50", "p90", "p99", "p99.9"};
    static const unsigned ends[] = {12, 25, 35, 45, 55, 65};
    static const char *const protocols[] = {"memcached", "redis", "http"};
    top_label(p, "");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        paint_right(p, TOP_LABEL + ends[i], PAINT_FAINT, "%s", columns[i]);
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        const char *of = protocols[i];
        double connections = scrape_value(&s->now, "sidflake_connections", "protocol", of);
        if (isnan(connections))
            continue;
        double rate = sidecar_grown(s, "sidflake_requests_total", "protocol", of);
        top_label(p, of);
        /* A protocol that was never asked has no sample of requests. */
        paint_right(p, TOP_LABEL + 12, PAINT_PLAIN, "%s",
                    top_per_s(isnan(rate) && s->before.n > 0 ? 0 : rate));
        paint_right(p, TOP_LABEL + 25, PAINT_PLAIN, "%s", top_count(connections));
        paint_quantiles(s, p, "sidflake_request_duration_seconds", "protocol", of);
    }
    paint_next(p);
}

static void paint_upstream(const struct sidecar *s, struct paint *p, const char *of, double up)
{
    double since = scrape_value(&s->now, "sidflake_upstream_state_seconds", "protocol", of);
    double links = scrape_value(&s->now, "sidflake_upstream_connections", "protocol", of);
    double errors = scrape_value(&s->now, "sidflake_upstream_errors_total", "protocol", of);
    paint_put(p, PAINT_PLAIN, "%-10s", of);
    if (up == 1)
        paint_put(p, PAINT_GOOD, "up");
    else
        paint_put(p, errors > 0 ? PAINT_BAD : PAINT_PLAIN, errors > 0 ? "AWAY" : "not asked yet");
    if (!isnan(since))
        paint_put(p, PAINT_PLAIN, " for %s", top_span(since));
    paint_put(p, PAINT_PLAIN, "; %s connection%s; %s; ", top_count(links), links == 1 ? "" : "s",
              top_per_s(sidecar_grown(s, "sidflake_upstream_requests_total", "protocol", of)));
    paint_put(p, errors > 0 ? PAINT_WARN : PAINT_PLAIN, "%s failure%s", top_count(errors),
              errors == 1 ? "" : "s");
}

/* Nothing where there are none. */
void sidecar_paint_upstreams(const struct sidecar *s, struct paint *p)
{
    static const char *const protocols[] = {"memcached", "redis"};
    unsigned n = 0;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        double up = scrape_value(&s->now, "sidflake_upstream_up", "protocol", protocols[i]);
        if (isnan(up))
            continue;
        top_label(p, n++ == 0 ? "Upstream" : "");
        paint_upstream(s, p, protocols[i], up);
    }
    if (n > 0)
        paint_next(p);
}

/* ---- workerIds, lease, process ----------------------------------------------------------------
 */

static void paint_worker(const struct sidecar *s, struct paint *p, const struct scrape_sample *id)
{
    char state[16] = "";
    double left = NAN;
    unsigned slot = sidecar_slot(id), width = p->cols > 76 ? p->cols - 60 : 12;
    for (size_t i = 0; i < s->now.n; i++) {
        const struct scrape_sample *x = &s->now.v[i];
        if (!span_eq(x->name, SPAN("sidflake_worker_range_seconds")) || sidecar_slot(x) != slot)
            continue;
        left = x->value;
        (void)scrape_label(x, "state", state, sizeof state);
    }
    double most = top_scale(slot < SIDECAR_SLOTS ? s->slot[slot].most : 0,
                            sidecar_number(s, "sidflake_pool_first_horizon_seconds"),
                            sidecar_number(s, "sidflake_pool_horizon_seconds"));
    paint_next(p);
    paint_right(p, TOP_LABEL - 2, PAINT_STRONG, "%.0f", id->value);
    paint_tab(p, TOP_LABEL);
    paint_put(p, PAINT_PLAIN, "%s", state);
    paint_tab(p, TOP_LABEL + 7);
    if (isnan(left))
        return;
    paint_bar(p, top_style_of(left / most), width < 60 ? width : 60, left / most);
    if (left > 0)
        paint_put(p, PAINT_PLAIN, "  %s left of %s", top_span(left), top_span(most));
    else
        paint_put(p, PAINT_BAD, "  USED UP");
}

void sidecar_paint_workers(const struct sidecar *s, struct paint *p)
{
    unsigned room = p->rows > 32 ? p->rows - 24 : 8, n = 0;
    paint_next(p);
    paint_put(p, PAINT_FAINT, " WorkerIds and how far ahead each may issue");
    for (size_t i = 0; i < s->now.n; i++)
        if (span_eq(s->now.v[i].name, SPAN("sidflake_worker_id")) && n++ < room)
            paint_worker(s, p, &s->now.v[i]);
    if (n == 0 || n > room) {
        paint_next(p);
        paint_tab(p, TOP_LABEL);
        paint_put(p, n == 0 ? PAINT_BAD : PAINT_FAINT, n == 0 ? "NONE HELD" : "and %u more",
                  n - room);
    }
    paint_next(p);
}

static double renewals(const struct sidecar *s, const char *result)
{
    return scrape_value(&s->now, "sidflake_renewals_total", "result", result);
}

void sidecar_paint_lease(const struct sidecar *s, struct paint *p)
{
    double up = sidecar_number(s, "sidflake_coordinator_up"), lost = renewals(s, "lost");
    bool refuses = sidecar_number(s, "sidflake_coordinator_answers") == 1;
    double failed = renewals(s, "failed"),
           losses = sidecar_number(s, "sidflake_coordinator_data_loss_total");
    struct scrape_histogram h;
    top_label(p, "Coordinator");
    paint_put(p, up == 1 ? PAINT_GOOD : PAINT_BAD,
              up == 1   ? "up"
              : refuses ? "REFUSES"
              : up == 0 ? "DOWN"
                        : "unknown");
    scrape_histogram(&s->now, "sidflake_coordinator_request_seconds", NULL, NULL, &h);
    paint_put(p, PAINT_PLAIN, "; calls p50 %s, p99 %s; skew %s; ",
              top_seconds(scrape_quantile(&h, 0.5), 2), top_seconds(scrape_quantile(&h, 0.99), 2),
              top_seconds(sidecar_number(s, "sidflake_clock_skew_seconds"), 0));
    paint_put(p, losses > 0 ? PAINT_WARN : PAINT_PLAIN, "data lost %s time%s", top_count(losses),
              losses == 1 ? "" : "s");
    top_label(p, "Renewals");
    paint_put(p, PAINT_PLAIN, "%s; %s again, %s reasserted, ", top_count(renewals(s, "renewed")),
              top_count(renewals(s, "again")), top_count(renewals(s, "reasserted")));
    paint_put(p, failed > 0 ? PAINT_WARN : PAINT_PLAIN, "%s failed", top_count(failed));
    paint_put(p, PAINT_PLAIN, ", ");
    paint_put(p, lost > 0 ? PAINT_WARN : PAINT_PLAIN, "%s lost", top_count(lost));
    top_label(p, "Clock");
    paint_put(p, PAINT_PLAIN, "%s rollbacks, %s rotations, %s waited",
              top_count(sidecar_number(s, "sidflake_clock_rollbacks_total")),
              top_count(sidecar_number(s, "sidflake_rotations_total")),
              top_seconds(sidecar_number(s, "sidflake_clock_wait_seconds_total"), 0));
    top_label(p, "Pool");
    paint_put(p, PAINT_PLAIN, "%s workerIds free; era %s; IDs last for %s",
              top_count(sidecar_number(s, "sidflake_pool_free")),
              top_count(sidecar_number(s, "sidflake_pool_era")),
              top_span(sidecar_number(s, "sidflake_lifetime_seconds")));
}

void sidecar_paint_process(const struct sidecar *s, struct paint *p)
{
    double cpu = sidecar_grown(s, "process_cpu_seconds_total", NULL, NULL);
    top_label(p, "Process");
    if (isnan(cpu))
        paint_put(p, PAINT_PLAIN, "CPU -");
    else
        paint_put(p, PAINT_PLAIN, "CPU %.1f %%", cpu * 100);
    paint_put(p, PAINT_PLAIN, "; %s resident; %s of %s descriptors",
              top_bytes(sidecar_number(s, "process_resident_memory_bytes")),
              top_count(sidecar_number(s, "process_open_fds")),
              top_count(sidecar_number(s, "process_max_fds")));
}
