/*
 * sidflakectl top of a sidecar: its figures.
 */
#include "ctl/top_sidecar.h"

#include <math.h>
#include <string.h>

double sidecar_grown(const struct sidecar *s, const char *path)
{
    return ctl_status_rate(ctl_status_number(s->now, path), ctl_status_number(s->before, path),
                           s->us);
}

double sidecar_grown_sum(const struct sidecar *s, const char *list, const char *member,
                         const char *key, const char *text)
{
    return ctl_status_rate(ctl_status_sum(s->now, list, member, key, text),
                           ctl_status_sum(s->before, list, member, key, text), s->us);
}

double sidecar_number(const struct sidecar *s, const char *path)
{
    return ctl_status_number(s->now, path);
}

double sidecar_seconds(const struct sidecar *s, const char *path_ms)
{
    return ctl_status_number(s->now, path_ms) / 1000;
}

#define KINDS 48

struct kind {
    char text[48];
    double rate;
};

/* Puts it where it belongs among the fastest, if it does. */
static size_t keep_kind(struct kind out[KINDS], size_t n, const char *text, double rate)
{
    size_t at = n < KINDS ? n : KINDS - 1;
    if (!(rate > 0) || (n == KINDS && out[at].rate >= rate))
        return n;
    for (; at > 0 && out[at - 1].rate < rate; at--)
        out[at] = out[at - 1];
    (void)ctl_clean(out[at].text, sizeof out[at].text, span_str(text));
    out[at].rate = rate;
    return n < KINDS ? n + 1 : n;
}

/* The rates of a list by one of its texts, those that are not 0, fastest first. */
static size_t kinds_of(const struct sidecar *s, const char *list, const char *member,
                       const char *key, struct kind out[KINDS])
{
    size_t n = 0;
    json_t *now = ctl_status_sums(s->now, list, member, key);
    json_t *before = ctl_status_sums(s->before, list, member, key), *sum;
    const char *text;
    json_object_foreach(now, text, sum)
    {
        const json_t *was = json_object_get(before, text);
        double rate = was ? ctl_status_rate(json_real_value(sum), json_real_value(was), s->us) : 0;
        n = keep_kind(out, n, text, rate);
    }
    json_decref(now);
    json_decref(before);
    return n;
}

static void paint_kinds(const struct sidecar *s, struct paint *p, const char *label,
                        const char *list, const char *member, const char *key)
{
    struct kind k[KINDS];
    size_t n = kinds_of(s, list, member, key, k);
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

#define ENDS_SOON_S (7 * 86400.0) /* as SidflakeSequenceEnding, SidflakeTemplateEnding */

/* The first one to end, where that is soon. */
static void paint_ending(const struct sidecar *s, struct paint *p, const char *member,
                         const char *what)
{
    const json_t *row, *first = NULL;
    double least = ENDS_SOON_S;
    char name[80];
    size_t i;
    json_array_foreach(json_object_get(s->now, "sequences"), i, row)
    {
        double lasts = ctl_status_number(row, member);
        if (!(lasts < least)) /* nor where it is not known */
            continue;
        least = lasts;
        first = row;
    }
    if (!first)
        return;
    ctl_status_text(first, "name", name, sizeof name);
    if (least > 0)
        paint_put(p, PAINT_WARN, "; %s%s lasts for %s", what, name, top_span(least));
    else
        paint_put(p, PAINT_BAD, "; %s%s is USED UP", what, name);
}

/* Nothing where there are no sequences. */
static void paint_numbers(const struct sidecar *s, struct paint *p)
{
    if (json_array_size(json_object_get(s->now, "sequences")) == 0)
        return;
    top_label(p, "Numbers");
    paint_right(p, TOP_LABEL + 12, PAINT_STRONG, "%s",
                top_per_s(sidecar_grown_sum(s, "sequences", "given", NULL, NULL)));
    paint_put(p, PAINT_PLAIN, "  %s in hand, %s gaps",
              top_count(ctl_status_sum(s->now, "sequences", "left", NULL, NULL)),
              top_count(ctl_status_sum(s->now, "sequence_supply", "gaps", NULL, NULL)));
    paint_ending(s, p, "used_up_seconds", "");
    paint_ending(s, p, "width_seconds", "template of ");
    paint_kinds(s, p, "by sequence", "sequences", "given", "name");
}

void sidecar_paint_rates(const struct sidecar *s, struct paint *p)
{
    struct kind k[KINDS];
    double exhausted = sidecar_number(s, "ids.exhausted_total");
    top_label(p, "IDs");
    paint_right(p, TOP_LABEL + 12, PAINT_STRONG, "%s",
                top_per_s(sidecar_grown(s, "ids.issued_total")));
    paint_tab(p, TOP_LABEL + 13);
    paint_chart(p, PAINT_LINE, chart_width(p), s->ids.v, s->ids.n);
    paint_put(p, PAINT_PLAIN, "  %s in all", top_count(sidecar_number(s, "ids.issued_total")));
    top_label(p, "Requests");
    paint_right(p, TOP_LABEL + 12, PAINT_STRONG, "%s",
                top_per_s(sidecar_grown_sum(s, "requests", "answered_total", NULL, NULL)));
    paint_tab(p, TOP_LABEL + 13);
    paint_chart(p, PAINT_LINE, chart_width(p), s->requests.v, s->requests.n);
    size_t n = kinds_of(s, "requests", "answered_total", "result", k);
    for (size_t i = 0, shown = 0; i < n; i++)
        if (strcmp(k[i].text, "ok") != 0)
            paint_put(p, strcmp(k[i].text, "failed") == 0 ? PAINT_BAD : PAINT_PLAIN, "%s%s %s",
                      shown++ > 0 ? ", " : "  ", k[i].text, top_per_s(k[i].rate));
    paint_kinds(s, p, "by command", "requests", "answered_total", "command");
    paint_kinds(s, p, "by name", "names", "issued_total", "name");
    top_label(p, "Sequence");
    paint_put(p, PAINT_PLAIN, "peak %s of %s in %s; used up for %s request%s",
              top_count(sidecar_number(s, "ids.sequence_peak")),
              top_count(sidecar_number(s, "ids.ids_per_unit")),
              top_seconds(sidecar_seconds(s, "ids.unit_ms"), 0), top_count(exhausted),
              exhausted == 1 ? "" : "s");
    paint_numbers(s, p);
    paint_next(p);
}

/* The quantiles of what came since the look before, or of all where there was none. */
static void paint_quantiles(const json_t *row, const json_t *row_before, struct paint *p)
{
    static const double qs[] = {0.5, 0.9, 0.99, 0.999};
    struct ctl_histogram now, before;
    ctl_histogram_read(row, "request_duration", &now);
    ctl_histogram_read(row_before, "request_duration", &before);
    ctl_histogram_since(&now, &before);
    double over = now.n > 1 ? now.le[now.n - 2] : 0;
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++)
        paint_right(p, TOP_LABEL + 35 + 10 * (unsigned)i, PAINT_PLAIN, "%s",
                    top_seconds(ctl_histogram_quantile(&now, qs[i]), over));
}

#define PROTOCOLS_SHOWN 8 /* more than there are: what a sidecar says may be anything */

/* Row i of a list of protocols, and which of them it is, as it stands there and to be shown; false:
 * there is none. */
static bool protocol_row(const struct sidecar *s, const char *list, size_t i, const json_t **row,
                         const char **of, char shown[TOP_LABEL])
{
    *row = json_array_get(json_object_get(s->now, list), i);
    *of = json_string_value(json_object_get(*row, "protocol"));
    ctl_status_text(*row, "protocol", shown, TOP_LABEL - 1);
    return i < PROTOCOLS_SHOWN && *of;
}

void sidecar_paint_protocols(const struct sidecar *s, struct paint *p)
{
    static const char *const columns[] = {"requests", "connections", "p50", "p90", "p99", "p99.9"};
    static const unsigned ends[] = {12, 25, 35, 45, 55, 65};
    char shown[TOP_LABEL];
    const json_t *row;
    const char *of;
    top_label(p, "");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        paint_right(p, TOP_LABEL + ends[i], PAINT_FAINT, "%s", columns[i]);
    for (size_t i = 0; protocol_row(s, "protocols", i, &row, &of, shown); i++) {
        double rate = sidecar_grown_sum(s, "requests", "answered_total", "protocol", of);
        top_label(p, shown);
        /* A protocol that was never asked has no row of requests. */
        paint_right(p, TOP_LABEL + 12, PAINT_PLAIN, "%s",
                    top_per_s(isnan(rate) && s->before ? 0 : rate));
        paint_right(p, TOP_LABEL + 25, PAINT_PLAIN, "%s",
                    top_count(ctl_status_number(row, "connections")));
        paint_quantiles(row, ctl_status_row(s->before, "protocols", "protocol", of), p);
    }
    paint_next(p);
}

static void paint_upstream(const struct sidecar *s, struct paint *p, const char *of,
                           const char *shown, const json_t *row)
{
    double since = ctl_status_number(row, "state_ms") / 1000;
    double links = ctl_status_number(row, "connections");
    double errors = ctl_status_number(row, "errors_total");
    char why[160];
    bool away = ctl_status_is(row, "state", "away");
    paint_put(p, PAINT_PLAIN, "%-10s", shown);
    if (ctl_status_is(row, "state", "up"))
        paint_put(p, PAINT_GOOD, "up");
    else
        paint_put(p, away ? PAINT_BAD : PAINT_PLAIN, away ? "AWAY" : "not asked yet");
    if (!isnan(since))
        paint_put(p, PAINT_PLAIN, " for %s", top_span(since));
    paint_put(p, PAINT_PLAIN, "; %s connection%s; %s; ", top_count(links), links == 1 ? "" : "s",
              top_per_s(sidecar_grown_sum(s, "upstreams", "requests_total", "protocol", of)));
    paint_put(p, errors > 0 ? PAINT_WARN : PAINT_PLAIN, "%s failure%s", top_count(errors),
              errors == 1 ? "" : "s");
    if (!away)
        return;
    paint_next(p);
    paint_tab(p, TOP_LABEL + 10);
    paint_put(p, PAINT_PLAIN, "%s", ctl_status_text(row, "why", why, sizeof why));
}

/* Nothing where there are none. */
void sidecar_paint_upstreams(const struct sidecar *s, struct paint *p)
{
    char shown[TOP_LABEL];
    const json_t *row;
    const char *of;
    for (size_t i = 0; protocol_row(s, "upstreams", i, &row, &of, shown); i++) {
        top_label(p, i == 0 ? "Upstream" : "");
        paint_upstream(s, p, of, shown, row);
    }
    if (json_array_size(json_object_get(s->now, "upstreams")) > 0)
        paint_next(p);
}

/* ---- workerIds, lease, process ----------------------------------------------------------------
 */

static void paint_worker(const struct sidecar *s, struct paint *p, const json_t *id, size_t slot)
{
    char use[16];
    double left = ctl_status_number(id, "left_ms") / 1000;
    unsigned width = p->cols > 76 ? p->cols - 60 : 12;
    double most = top_scale(slot < SIDECAR_SLOTS ? s->slot[slot].most : 0,
                            sidecar_seconds(s, "pool.first_horizon_ms"),
                            sidecar_seconds(s, "pool.horizon_ms"));
    paint_next(p);
    paint_right(p, TOP_LABEL - 2, PAINT_STRONG, "%.0f", ctl_status_number(id, "worker"));
    paint_tab(p, TOP_LABEL);
    paint_put(p, PAINT_PLAIN, "%s", ctl_status_text(id, "use", use, sizeof use));
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
    const json_t *ids = json_object_get(s->now, "worker_ids");
    size_t room = p->rows > 32 ? p->rows - 24 : 8, n = json_array_size(ids);
    paint_next(p);
    paint_put(p, PAINT_FAINT, " WorkerIds and how far ahead each may issue");
    for (size_t i = 0; i < n && i < room; i++)
        paint_worker(s, p, json_array_get(ids, i), i);
    if (n == 0 || n > room) {
        paint_next(p);
        paint_tab(p, TOP_LABEL);
        paint_put(p, n == 0 ? PAINT_BAD : PAINT_FAINT, n == 0 ? "NONE HELD" : "and %zu more",
                  n - room);
    }
    paint_next(p);
}

/* Where that may be. */
static void paint_ahead(const struct sidecar *s, struct paint *p)
{
    double by = sidecar_seconds(s, "ids.ahead_ms");
    if (!isnan(by))
        paint_put(p, PAINT_PLAIN, "; IDs %s ahead", top_seconds(by, 0));
}

void sidecar_paint_lease(const struct sidecar *s, struct paint *p)
{
    bool up = ctl_status_is(s->now, "coordinator.state", "up");
    double failed = sidecar_number(s, "renewals.failed_total");
    double lost = sidecar_number(s, "renewals.lost_total");
    double losses = sidecar_number(s, "coordinator.data_loss_total");
    double free_ids = sidecar_number(s, "pool.size") > 1 ? sidecar_number(s, "pool.free") : NAN;
    bool refuses = ctl_status_is(s->now, "coordinator.state", "refuses");
    struct ctl_histogram h;
    top_label(p, "Coordinator");
    paint_put(p, up ? PAINT_GOOD : PAINT_BAD, up ? "up" : refuses ? "REFUSES" : "DOWN");
    ctl_histogram_read(s->now, "coordinator.call_duration", &h);
    paint_put(p, PAINT_PLAIN, "; calls p50 %s, p99 %s; skew %s; ",
              top_seconds(ctl_histogram_quantile(&h, 0.5), 2),
              top_seconds(ctl_histogram_quantile(&h, 0.99), 2),
              top_seconds(sidecar_seconds(s, "clock.skew_ms"), 0));
    paint_put(p, losses > 0 ? PAINT_WARN : PAINT_PLAIN, "data lost %s time%s", top_count(losses),
              losses == 1 ? "" : "s");
    top_label(p, "Renewals");
    paint_put(p, PAINT_PLAIN, "%s; %s again, %s reasserted, ",
              top_count(sidecar_number(s, "renewals.renewed_total")),
              top_count(sidecar_number(s, "renewals.again_total")),
              top_count(sidecar_number(s, "renewals.reasserted_total")));
    paint_put(p, failed > 0 ? PAINT_WARN : PAINT_PLAIN, "%s failed", top_count(failed));
    paint_put(p, PAINT_PLAIN, ", ");
    paint_put(p, lost > 0 ? PAINT_WARN : PAINT_PLAIN, "%s lost", top_count(lost));
    top_label(p, "Clock");
    paint_put(p, PAINT_PLAIN, "%s rollbacks, %s rotations, %s waited",
              top_count(sidecar_number(s, "clock.rollbacks_total")),
              top_count(sidecar_number(s, "clock.rotations_total")),
              top_seconds(sidecar_number(s, "clock.waited_us_total") / 1e6, 0));
    paint_ahead(s, p);
    top_label(p, "Pool");
    paint_put(p, PAINT_PLAIN, "%s workerIds free; era %s; IDs last for %s", top_count(free_ids),
              top_count(sidecar_number(s, "pool.era")),
              top_span(sidecar_seconds(s, "ids.lifetime_ms")));
}

void sidecar_paint_process(const struct sidecar *s, struct paint *p)
{
    double cpu = sidecar_grown(s, "process.cpu_us_total");
    top_label(p, "Process");
    if (isnan(cpu))
        paint_put(p, PAINT_PLAIN, "CPU -");
    else
        paint_put(p, PAINT_PLAIN, "CPU %.1f %%", cpu / 1e4);
    paint_put(p, PAINT_PLAIN, "; %s resident; %s of %s descriptors",
              top_bytes(sidecar_number(s, "process.resident_bytes")),
              top_count(sidecar_number(s, "process.open_fds")),
              top_count(sidecar_number(s, "process.max_fds")));
}
