/*
 * The status as JSON, for programs: sidflakectl top, scripts.
 *
 * Invariants
 *   - Each member is always there; one that is not known is null, since 0 would be a lie.
 *   - Names are a promise: members are added, and never change their meaning. Units are in them.
 *   - Lists are arrays of objects, so that no text from outside is ever a member's name.
 */
#include "base/json.h"
#include "net/upstream/upstream.h"
#include "serve/watch/status.h"

/* ---- writing ----------------------------------------------------------------------------------
 */

struct json {
    struct buf *out;
    bool rest; /* something stands before, in the same object or array */
};

/* name: of a member; NULL: an element of an array. */
static void put_name(struct json *j, const char *name)
{
    if (j->rest)
        buf_put_char(j->out, ',');
    if (name) {
        json_put_string(j->out, span_str(name));
        buf_put_char(j->out, ':');
    }
    j->rest = true;
}

static void begin(struct json *j, const char *name, char bracket)
{
    put_name(j, name);
    buf_put_char(j->out, bracket);
    j->rest = false;
}

static void end(struct json *j, char bracket)
{
    buf_put_char(j->out, bracket);
    j->rest = true;
}

/* v counts units of 10^-decimals. */
static void put_number(struct json *j, const char *name, int64_t v, unsigned decimals)
{
    put_name(j, name);
    if (v == STATUS_UNKNOWN)
        BUF_PUT_LIT(j->out, "null");
    else
        buf_put_decimal(j->out, v, decimals);
}

static void put_count(struct json *j, const char *name, uint64_t n)
{
    put_number(j, name, (int64_t)n, 0);
}

static void put_span(struct json *j, const char *name, struct span text)
{
    put_name(j, name);
    json_put_string(j->out, text);
}

/* NULL: null. */
static void put_text(struct json *j, const char *name, const char *text)
{
    if (text) {
        put_span(j, name, span_str(text));
    } else {
        put_name(j, name);
        BUF_PUT_LIT(j->out, "null");
    }
}

/* counts has one more than bounds: those above. */
static void put_histogram(struct json *j, const char *name, const struct histogram *h)
{
    begin(j, name, '{');
    begin(j, "bounds_us", '[');
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        put_count(j, NULL, histogram_bounds_us[i]);
    end(j, ']');
    begin(j, "counts", '[');
    for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        put_count(j, NULL, h->count[i]);
    end(j, ']');
    put_count(j, "sum_us", h->sum_us);
    end(j, '}');
}

/* ---- lists ------------------------------------------------------------------------------------
 */

static const char *state_name(enum health_state s)
{
    static const char *const names[] = {
        [HEALTH_OK] = "ok", [HEALTH_WARN] = "warn", [HEALTH_FAIL] = "fail"};
    return names[s];
}

static void findings(struct json *j, const struct status *v)
{
    for (size_t i = 0; i < v->health.n; i++) {
        begin(j, NULL, '{');
        put_text(j, "state", state_name(v->health.finding[i].state));
        put_text(j, "name", v->health.finding[i].name);
        put_text(j, "text", v->health.finding[i].text);
        end(j, '}');
    }
}

static void worker_ids(struct json *j, const struct status *v)
{
    struct generator_worker w;
    for (unsigned i = 0; generators_worker(v->s->issuer.generators, i, &w); i++) {
        begin(j, NULL, '{');
        put_count(j, "worker", w.worker);
        put_text(j, "use", w.active ? "active" : "spare");
        put_number(j, "ceiling_unix_ms", w.hi_ms, 0);
        put_number(j, "left_ms", serve_difference(w.hi_ms, v->now_ms), 0);
        end(j, '}');
    }
}

static void put_name_row(struct json *j, const struct names_prefix *prefix, struct span name,
                         uint64_t issued)
{
    begin(j, NULL, '{');
    put_span(j, "name", name);
    if (prefix)
        put_span(j, "prefix", span_of(prefix->text, prefix->length));
    put_count(j, "issued_total", issued);
    end(j, '}');
}

/* Under the prefix of IDs the name alone tells them apart. */
static void names(struct json *j, const struct status *v)
{
    const struct names *n = &v->s->issuer.names;
    for (unsigned p = 0; p < n->n; p++) {
        const struct names_prefix *of = &n->prefix[p], *told = p > 0 ? of : NULL;
        if (of->generator->kind->entry) /* each name shows its own */
            continue;
        for (size_t i = 0; i < of->count; i++)
            put_name_row(j, told, span_of(of->entry[i].text, of->entry[i].length),
                         of->entry[i].issued);
        if (of->count == 0)
            put_name_row(j, told, SPAN("other"), of->other.issued);
    }
}

/* Of one command: a row for each result that there was. */
static void requests_of(struct json *j, const struct status *v, enum serve_protocol p,
                        unsigned command)
{
    for (unsigned r = 0; r < SERVE_RESULTS; r++) {
        uint64_t n = v->s->requests[p][command][r];
        if (n == 0)
            continue;
        begin(j, NULL, '{');
        put_text(j, "protocol", serve_protocol_name(p));
        put_text(j, "command", serve_command(p, command));
        put_text(j, "result", serve_result_name((enum serve_result)r));
        put_count(j, "answered_total", n);
        end(j, '}');
    }
}

static void requests(struct json *j, const struct status *v)
{
    for (unsigned p = 0; p < SERVE_PROTOCOLS; p++)
        for (unsigned i = 0; i < SERVE_COMMANDS; i++)
            if (serve_command((enum serve_protocol)p, i))
                requests_of(j, v, (enum serve_protocol)p, i);
}

static void protocols(struct json *j, const struct status *v)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = v->s->services[i];
        if (!svc)
            continue;
        begin(j, NULL, '{');
        put_text(j, "protocol", svc->name);
        put_count(j, "connections", svc->connections);
        put_count(j, "accepted_total", svc->accepted);
        put_count(j, "refused_total", svc->refused);
        put_histogram(j, "request_duration", &svc->duration);
        end(j, '}');
    }
}

static void upstreams(struct json *j, const struct status *v)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = v->s->services[i];
        const struct upstream_stats *st = upstream_stats(svc);
        if (!st)
            continue;
        bool away = !st->up && st->errors > 0;
        begin(j, NULL, '{');
        put_text(j, "protocol", svc->name);
        put_text(j, "state", st->up ? "up" : away ? "away" : "unasked");
        put_number(j, "state_ms",
                   st->since_us > 0 ? (v->live.end_us - st->since_us) / 1000 : STATUS_UNKNOWN, 0);
        put_text(j, "why", away ? upstream_why(svc) : NULL);
        put_count(j, "connections", st->connections);
        put_count(j, "requests_total", st->requests);
        put_count(j, "away_total", serve_requests(v->s, (enum serve_protocol)i, SERVE_AWAY));
        put_count(j, "errors_total", st->errors);
        end(j, '}');
    }
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

#define NUMBER(object, name, member, decimals)                                                     \
    {                                                                                              \
        object, name, offsetof(struct status, member), decimals, false                             \
    }

/* Rows of one object stand together. */
static const struct row {
    const char *object, *name;
    size_t at; /* of an int64_t in struct status */
    unsigned decimals;
    bool figures; /* those of generators follow */
} rows[] = {
    NUMBER("now", "ids_per_s", rate_milli, 3),
    NUMBER("now", "p50_us", p50_ns, 3),
    NUMBER("now", "p99_us", p99_ns, 3),
    NUMBER("now", "p999_us", p999_ns, 3),
    NUMBER("hour", "ids_issued", hour_issued, 0),
    NUMBER("hour", "requests_failed", hour_failed, 0),
    NUMBER("hour", "reads_missed", hour_missed, 0),
    NUMBER("hour", "clock_rollbacks", hour_rollbacks, 0),
    NUMBER("hour", "rotations", hour_rotations, 0),
    NUMBER("ids", "issued_total", issued, 0),
    {"ids", "exhausted_total", offsetof(struct status, exhausted), .figures = true},
    NUMBER("workers", "held", held, 0),
    NUMBER("workers", "wanted", wanted, 0),
    NUMBER("workers", "active", active, 0),
    NUMBER("workers", "left_ms", left_ms, 0),
    NUMBER("clock", "rollbacks_total", rollbacks, 0),
    NUMBER("clock", "rotations_total", rotations, 0),
    NUMBER("clock", "jumps_total", clock_jumps, 0),
    NUMBER("clock", "waited_us_total", waited_us, 0),
    NUMBER("clock", "skew_ms", skew_ms, 0),
    NUMBER("renewals", "renewed_total", renewals_renewed, 0),
    NUMBER("renewals", "again_total", renewals_again, 0),
    NUMBER("renewals", "reasserted_total", renewals_reasserted, 0),
    NUMBER("renewals", "lost_total", renewals_lost, 0),
    NUMBER("renewals", "failed_total", renewals_failed, 0),
    NUMBER("renewals", "latest_ago_ms", renewed_ago_ms, 0),
    NUMBER("process", "cpu_us_total", cpu_us, 0),
    NUMBER("process", "resident_bytes", resident, 0),
    NUMBER("process", "open_fds", open_fds, 0),
    NUMBER("process", "max_fds", max_fds, 0),
    NUMBER("process", "max_connections", max_connections, 0),
};

static void put_figures(struct json *j, const struct status *v, const struct generator *g)
{
    for (unsigned i = 0; i < g->kind->nfigures; i++) {
        const struct generator_figure *f = &g->kind->figures[i];
        if (f->member)
            put_number(j, f->member, f->value(g, v->now_ms), 0);
    }
}

/* Of kinds that have no section of their own. */
static void put_figures_of_ids(struct json *j, const struct status *v)
{
    for (const struct generator *g = v->s->issuer.generators; g; g = g->after)
        if (!g->kind->section)
            put_figures(j, v, g);
}

/* Of one that has: an object for each of its generators. */
static void put_section(struct json *j, const struct status *v, const struct generator_kind *kind)
{
    begin(j, kind->section, '[');
    for (const struct generator *g = v->s->issuer.generators; g; g = g->after) {
        if (g->kind != kind)
            continue;
        begin(j, NULL, '{');
        put_text(j, "name", g->label);
        put_figures(j, v, g);
        end(j, '}');
    }
    end(j, ']');
}

static void put_rows(struct json *j, const struct status *v)
{
    const char *object = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        if (strcmp(object, r->object) != 0) {
            if (i > 0)
                end(j, '}');
            begin(j, object = r->object, '{');
        }
        int64_t n;
        memcpy(&n, (const char *)v + r->at, sizeof n);
        put_number(j, r->name, n, r->decimals);
        if (r->figures)
            put_figures_of_ids(j, v);
    }
    end(j, '}');
}

/* ---- the document -----------------------------------------------------------------------------
 */

static void put_head(struct json *j, const struct status *v)
{
    struct refusal ready = v->health.ready;
    put_text(j, "version", v->version);
    put_text(j, "host", v->host);
    put_number(j, "time_unix_ms", v->now_ms, 0);
    put_number(j, "started_unix_ms", v->started_ms, 0);
    put_number(j, "uptime_ms", v->uptime_ms, 0);
    put_name(j, "ready");
    buf_put_str(j->out, ready.by ? "false" : "true");
    put_text(j, "why", ready.by ? refusal_text(ready) : NULL);
    put_text(j, "state", state_name(v->health.state));
}

static void put_coordinator(struct json *j, const struct status *v)
{
    const struct serve_facts *f = &v->s->facts;
    const char *why = f->why;
    begin(j, "coordinator", '{');
    put_text(j, "url", v->coordinator);
    put_text(j, "state", f->serves ? "up" : f->up ? "refuses" : "down");
    put_text(j, "why", why[0] ? why : NULL);
    put_number(j, "data_loss_total", v->data_loss, 0);
    put_histogram(j, "call_duration", &f->coordinator_requests);
    end(j, '}');
}

static void put_pool(struct json *j, const struct status *v)
{
    begin(j, "pool", '{');
    put_text(j, "name", v->pool);
    put_text(j, "identity", v->s->facts.identity[0] ? v->s->facts.identity : NULL);
    put_number(j, "era", v->era, 0);
    put_number(j, "size", v->pool_size, 0);
    put_number(j, "free", v->pool_free, 0);
    put_number(j, "horizon_ms", v->grants_ms, 0);
    put_number(j, "first_horizon_ms", v->first_grants_ms, 0);
    put_number(j, "max_skew_ms", v->max_skew_ms, 0);
    end(j, '}');
}

static const struct {
    const char *name;
    void (*put)(struct json *j, const struct status *v);
} lists[] = {
    {"findings", findings}, {"worker_ids", worker_ids}, {"names", names},
    {"requests", requests}, {"protocols", protocols},   {"upstreams", upstreams},
};

void serve_put_status_json(struct serve *s, struct buf *out)
{
    struct status v;
    struct json j = {.out = out};
    status_gather(&v, s, "");
    begin(&j, NULL, '{');
    put_head(&j, &v);
    put_coordinator(&j, &v);
    put_pool(&j, &v);
    put_rows(&j, &v);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        begin(&j, lists[i].name, '[');
        lists[i].put(&j, &v);
        end(&j, ']');
    }
    for (const struct generator *g = s->issuer.generators; g; g = g->after)
        if (g->kind->section && generators_first(s->issuer.generators, g))
            put_section(&j, &v, g->kind);
    end(&j, '}');
    buf_put_char(out, '\n');
}
