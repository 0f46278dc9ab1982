/*
 * The lists of the status page: what is shown once for each finding, workerId, event ..., and the
 * conditions, which are lists of one item or none.
 */
#include "serve/watch/status.h"

#include "net/upstream/upstream.h"

typedef bool item_fn(struct status *v, size_t i); /* of functions, not of a struct */

/* ---- lists ------------------------------------------------------------------------------------
 */

static bool findings(struct status *v, size_t i)
{
    if (i >= v->health.n)
        return false;
    v->finding = v->health.finding[i].text;
    return true;
}

static bool checks(struct status *v, size_t i)
{
    struct health_check c;
    if (!health_check(v->s, i, v->health.ready, &c))
        return false;
    v->check = c.name;
    v->check_state = c.fails ? "fail" : "ok";
    v->check_mark = c.fails ? "\xe2\x9c\x97" : "\xe2\x9c\x93"; /* a cross, a tick */
    v->check_word = c.fails ? "failed" : "ok";
    return true;
}

/* A ceiling that nears because nobody raises it is a worry; one that is near because the tenure is
 * young is not. */
static const char *worry(const struct status *v, int64_t left_ms)
{
    if (left_ms <= 0)
        return "fail";
    return !v->s->facts.serves && left_ms < v->horizon_ms / 2 ? "warn" : "ok";
}

static bool workers(struct status *v, size_t i)
{
    struct generator_worker w;
    if (!generators_worker(v->s->issuer.generators, (unsigned)i, &w))
        return false;
    int64_t left = w.hi_ms > v->now_ms ? w.hi_ms - v->now_ms : 0;
    int64_t whole = v->horizon_ms > left ? v->horizon_ms : left;
    v->worker = w.worker;
    v->worker_use = w.active ? "active" : "spare";
    v->worker_hi_ms = w.hi_ms;
    v->worker_left_ms = left;
    v->worker_permille = whole > 0 ? (int64_t)(1000. * (double)left / (double)whole + 0.5) : 0;
    v->worker_percent = v->worker_permille / 10;
    v->worker_state = worry(v, left);
    return true;
}

/* Of kinds that have a section of their own: the page has no place for each. */
static bool figures(struct status *v, size_t i)
{
    for (const struct generator *g = v->s->issuer.generators; g; g = g->after) {
        for (unsigned n = 0; g->kind->section && n < g->kind->nfigures; n++) {
            const struct generator_figure *f = &g->kind->figures[n];
            if (!f->page || i-- > 0)
                continue;
            v->figure_of = g->label ? g->label : g->kind->section;
            v->figure = f->page;
            v->figure_value = f->value(g, v->now_ms);
            return true;
        }
    }
    return false;
}

/* Protocols that nobody listens for have a service, too. */
static bool protocols(struct status *v, size_t i)
{
    const struct net_service *svc = i < SERVE_PROTOCOLS ? v->s->services[i] : NULL;
    if (!svc)
        return false;
    enum serve_protocol p = (enum serve_protocol)i;
    v->protocol = svc->name;
    v->protocol_open = (int64_t)svc->connections;
    v->protocol_accepted = (int64_t)svc->accepted;
    v->protocol_failed = (int64_t)serve_requests(v->s, p, SERVE_FAILED);
    v->protocol_missed = (int64_t)serve_requests(v->s, p, SERVE_MISS);
    v->protocol_requests = 0;
    for (unsigned r = 0; r < SERVE_RESULTS; r++)
        v->protocol_requests += (int64_t)serve_requests(v->s, p, (enum serve_result)r);
    uint32_t p50 = history_quantile_ns(&svc->duration, 0.5);
    uint32_t p99 = history_quantile_ns(&svc->duration, 0.99);
    v->protocol_p50_ns = p50 > 0 ? p50 : STATUS_UNKNOWN;
    v->protocol_p99_ns = p99 > 0 ? p99 : STATUS_UNKNOWN;
    return true;
}

/* The protocols that the charts are of. */
static bool charted(struct status *v, size_t i)
{
    v->charted_and = i > 0 ? " and " : "";
    for (unsigned p = 0; p < SERVE_PROTOCOLS; p++) {
        if (!protocol_table[p]->for_ids || i-- > 0)
            continue;
        v->charted_name = protocol_table[p]->title;
        return true;
    }
    return false;
}

/* The i-th service with a server behind it. */
static const struct net_service *upstream_at(const struct status *v, size_t i, unsigned *p)
{
    for (*p = 0; *p < SERVE_PROTOCOLS; ++*p) {
        const struct net_service *svc = v->s->services[*p];
        if (svc && svc->upstream && i-- == 0)
            return svc;
    }
    return NULL;
}

static bool upstreams(struct status *v, size_t i)
{
    unsigned p;
    const struct net_service *svc = upstream_at(v, i, &p);
    if (!svc)
        return false;
    const struct upstream_stats *st = upstream_stats(svc);
    bool away = !st->up && st->errors > 0;
    v->upstream = protocol_table[p]->title;
    v->upstream_state = st->up ? "ok" : away ? "warn" : "info";
    v->upstream_mark = st->up ? "\xe2\x9c\x93" : away ? "\xe2\x9c\x97" : "\xe2\x80\x93";
    v->upstream_word = st->up ? "reached" : away ? "unreachable" : "not asked for yet";
    v->upstream_why = away ? upstream_why(svc) : "";
    v->upstream_note = protocol_table[p]->note ? protocol_table[p]->note(v->s) : "";
    v->upstream_for_ms = st->since_us > 0 ? (v->live.end_us - st->since_us) / 1000 : STATUS_UNKNOWN;
    v->upstream_open = (int64_t)st->connections;
    v->upstream_requests = (int64_t)st->requests;
    v->upstream_away = (int64_t)serve_requests(v->s, (enum serve_protocol)p, SERVE_AWAY);
    v->upstream_errors = (int64_t)st->errors;
    return true;
}

/* One that is not kept any more, others having come meanwhile, ends the list. */
static bool events(struct status *v, size_t i)
{
    struct event *e = &v->current;
    if (i >= v->events || !events_get(v->events - i, e))
        return false;
    v->event = e->msg;
    v->event_level = log_level_name(e->level);
    v->event_text = e->text;
    v->event_ms = e->last_ms;
    v->event_first_ms = e->first_ms;
    v->event_times = (int64_t)e->times;
    int64_t mono_ms = v->live.end_us / 1000;
    v->event_ago_ms = mono_ms > e->last_mono_ms ? mono_ms - e->last_mono_ms : 0;
    return true;
}

/* Lines of the latency chart: a power of ten each, but the lowest, which is the base. */
static bool decades(struct status *v, size_t i)
{
    const struct chart_scale *s = &v->latency_scale;
    double ns = s->hi;
    for (; i > 0; i--)
        ns /= 10;
    if (ns < s->lo * 5)
        return false;
    v->decade_ns = (int64_t)(ns + 0.5);
    v->decade_y = chart_y(s, ns) * 100 / CHART_HEIGHT;
    return true;
}

/* ---- conditions -------------------------------------------------------------------------------
 */

static bool is_ok(struct status *v, size_t i)
{
    return i == 0 && v->health.state == HEALTH_OK;
}

static bool is_warn(struct status *v, size_t i)
{
    return i == 0 && v->health.state == HEALTH_WARN;
}

static bool is_fail(struct status *v, size_t i)
{
    return i == 0 && v->health.state == HEALTH_FAIL;
}

static bool has_findings(struct status *v, size_t i)
{
    return i == 0 && v->health.n > 0;
}

static bool has_latency(struct status *v, size_t i)
{
    return i == 0 && v->has_latency;
}

static bool requested(struct status *v, size_t i)
{
    return i == 0 && v->p50_ns != STATUS_UNKNOWN;
}

/* So much of the hour lies before the start that there is room to say so. */
static bool early(struct status *v, size_t i)
{
    return i == 0 && v->before > CHART_WIDTH / 2 && v->has_latency;
}

static bool back_any(struct status *v, size_t i)
{
    return i == 0 && v->hour_rollbacks + v->hour_rotations > 0;
}

static bool young(struct status *v, size_t i)
{
    int64_t since = v->s->facts.tenure_start_ms;
    return i == 0 && since > 0 && v->now_ms - since < v->mature_after_ms;
}

static bool answered(struct status *v, size_t i)
{
    return i == 0 && v->answered;
}

static bool renewed(struct status *v, size_t i)
{
    return i == 0 && v->renewed_ago_ms != STATUS_UNKNOWN;
}

static bool has_upstreams(struct status *v, size_t i)
{
    unsigned p;
    return i == 0 && upstream_at(v, 0, &p);
}

static bool upstream_noted(struct status *v, size_t i)
{
    return i == 0 && *v->upstream_note;
}

static bool upstream_known(struct status *v, size_t i)
{
    return i == 0 && v->upstream_for_ms != STATUS_UNKNOWN;
}

static bool upstream_gone(struct status *v, size_t i)
{
    return i == 0 && *v->upstream_why;
}

/* IDs may be ahead of the clock here. */
static bool ahead(struct status *v, size_t i)
{
    const struct generator *g;
    return i == 0 &&
           generators_figure_by_page(v->s->issuer.generators, SPAN("ahead_ms"), &g) != NULL;
}

static bool event_repeated(struct status *v, size_t i)
{
    return i == 0 && v->event_times > 1;
}

#define LIST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }

static const struct {
    const char *name;
    item_fn *item;
} lists[] = {
    LIST(findings),       LIST(checks),        LIST(workers),        LIST(protocols),
    LIST(events),         LIST(decades),       LIST(is_ok),          LIST(is_warn),
    LIST(is_fail),        LIST(has_findings),  LIST(back_any),       LIST(young),
    LIST(answered),       LIST(has_latency),   LIST(event_repeated), LIST(renewed),
    LIST(requested),      LIST(early),         LIST(upstreams),      LIST(has_upstreams),
    LIST(upstream_known), LIST(upstream_gone), LIST(upstream_noted), LIST(charted),
    LIST(figures),        LIST(ahead),
};

int status_item(void *status, struct span list, size_t i)
{
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        if (span_eq(list, span_str(lists[l].name)))
            return lists[l].item(status, i);
    return -1;
}
