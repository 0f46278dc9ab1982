/*
 * The metrics page: which families there are, and where their samples come from.
 *
 * Invariant: what is not known yet has no sample, since 0 would be a lie.
 */
#include "base/dec.h"
#include "net/upstream/upstream.h"
#include "serve/serve.h"
#include "serve/watch/exposition.h"
#include "serve/watch/process.h"

#define UNKNOWN PROCESS_UNKNOWN

/* Metrics that are one number without labels. _MS and _US: thousandths and millionths of what the
 * page says. */
enum number {
    NONE,
    HELD,
    RESERVATION_MS,
    TENURE_MS,
    ERA,
    ROTATIONS,
    ROLLBACKS,
    CLOCK_WAIT_US,
    SKEW_MS,
    EXHAUSTED,
    UP,
    ANSWERS,
    DATA_LOSS,
    POOL_FREE,
    HORIZON_MS,
    FIRST_HORIZON_MS,
    CPU_US,
    OPEN_FDS,
    MAX_FDS,
    VIRTUAL,
    RESIDENT,
    THREADS,
    START_MS,
    KEPT,
    STATE_PAGE,
    NUMBERS
};

struct page {
    struct exposition e;
    struct serve *s;
    int64_t number[NUMBERS];
};

/* One of number, histogram and samples says what the samples are. */
struct row {
    struct exposition_family family;
    enum number number;
    unsigned decimals;              /* of number */
    size_t histogram;               /* offset in struct serve; never 0 */
    void (*samples)(struct page *); /* those with labels; without a family: whole families */
};

/* ---- families with labels ---------------------------------------------------------------------
 */

static void put_labelled(struct page *p, const char *key, struct span label, uint64_t v)
{
    exposition_begin(&p->e);
    exposition_label(&p->e, key, label);
    exposition_end(&p->e, (int64_t)v, 0);
}

static void put_name(struct page *p, const struct names_prefix *prefix, bool label,
                     struct span name, uint64_t issued)
{
    exposition_begin(&p->e);
    exposition_label(&p->e, "name", name);
    if (label)
        exposition_label(&p->e, "prefix", span_of(prefix->text, prefix->length));
    exposition_end(&p->e, (int64_t)issued, 0);
}

static void issued_with(struct page *p, const struct names_prefix *n, bool label)
{
    for (size_t i = 0; i < n->count; i++)
        put_name(p, n, label, span_of(n->entry[i].text, n->entry[i].length), n->entry[i].issued);
    if (n->count == 0)
        put_name(p, n, label, SPAN("other"), n->other.issued);
}

/* Under the prefix of IDs the name alone tells them apart. */
static void ids_issued(struct page *p)
{
    const struct names *n = &p->s->issuer.names;
    for (unsigned i = 0; i < n->n; i++)
        if (!n->prefix[i].generator->kind->entry) /* else each name shows its own */
            issued_with(p, &n->prefix[i], i > 0);
}

static void requests_of(struct page *p, enum serve_protocol protocol, unsigned command,
                        const char *label)
{
    for (unsigned r = 0; r < SERVE_RESULTS; r++) {
        uint64_t n = p->s->requests[protocol][command][r];
        if (n == 0)
            continue;
        exposition_begin(&p->e);
        exposition_label(&p->e, "protocol", span_str(serve_protocol_name(protocol)));
        exposition_label(&p->e, "command", span_str(label));
        exposition_label(&p->e, "result", span_str(serve_result_name((enum serve_result)r)));
        exposition_end(&p->e, (int64_t)n, 0);
    }
}

static void requests(struct page *p)
{
    for (unsigned protocol = 0; protocol < SERVE_PROTOCOLS; protocol++) {
        for (unsigned i = 0; i < SERVE_COMMANDS; i++) {
            const char *label = serve_command((enum serve_protocol)protocol, i);
            if (label)
                requests_of(p, (enum serve_protocol)protocol, i, label);
        }
    }
}

static void request_duration(struct page *p)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++)
        if (p->s->services[i])
            exposition_histogram(&p->e, &p->s->services[i]->duration, "protocol",
                                 p->s->services[i]->name);
}

/* A uint64_t of each service, by its offset there. */
static void put_services(struct page *p, size_t offset)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = p->s->services[i];
        uint64_t v;
        if (!svc)
            continue;
        memcpy(&v, (const char *)svc + offset, sizeof v);
        put_labelled(p, "protocol", span_str(svc->name), v);
    }
}

static void connections(struct page *p)
{
    put_services(p, offsetof(struct net_service, connections));
}

static void connections_accepted(struct page *p)
{
    put_services(p, offsetof(struct net_service, accepted));
}

static void connections_refused(struct page *p)
{
    put_services(p, offsetof(struct net_service, refused));
}

static void connections_ended(struct page *p)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = p->s->services[i];
        for (unsigned why = 0; svc && why < NET_ENDS; why++) {
            exposition_begin(&p->e);
            exposition_label(&p->e, "protocol", span_str(svc->name));
            exposition_label(&p->e, "reason", span_str(net_end_name((enum net_end)why)));
            exposition_end(&p->e, (int64_t)svc->ended[why], 0);
        }
    }
}

/* A number of each upstream, by its offset in its stats. */
static void put_upstreams(struct page *p, size_t offset, bool flag)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = p->s->services[i];
        const struct upstream_stats *st = upstream_stats(svc);
        uint64_t v = 0;
        if (!st)
            continue;
        const char *at = (const char *)st + offset;
        if (flag)
            v = *(const bool *)at;
        else
            memcpy(&v, at, sizeof v);
        put_labelled(p, "protocol", span_str(svc->name), v);
    }
}

static void upstream_up(struct page *p)
{
    put_upstreams(p, offsetof(struct upstream_stats, up), true);
}

static void upstream_state(struct page *p)
{
    int64_t now = clock_mono_us(p->s->clock);
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = p->s->services[i];
        const struct upstream_stats *st = upstream_stats(svc);
        if (!st || st->since_us == 0)
            continue;
        exposition_begin(&p->e);
        exposition_label(&p->e, "protocol", span_str(svc->name));
        exposition_end(&p->e, now > st->since_us ? (now - st->since_us) / 1000 : 0, 3);
    }
}

static void upstream_connections(struct page *p)
{
    put_upstreams(p, offsetof(struct upstream_stats, connections), false);
}

static void upstream_requests(struct page *p)
{
    put_upstreams(p, offsetof(struct upstream_stats, requests), false);
}

static void upstream_errors(struct page *p)
{
    put_upstreams(p, offsetof(struct upstream_stats, errors), false);
}

static void upstream_refused(struct page *p)
{
    put_upstreams(p, offsetof(struct upstream_stats, unowned), false);
}

static void upstream_faults(struct page *p)
{
    put_upstreams(p, offsetof(struct upstream_stats, faults), false);
}

static void worker_id(struct page *p)
{
    struct generator_worker w;
    for (unsigned i = 0; generators_worker(p->s->issuer.generators, i, &w); i++) {
        char slot[DEC_U64_MAX];
        size_t n = dec_put_u64(slot, i);
        put_labelled(p, "slot", span_of(slot, n), w.worker);
    }
}

static void worker_range(struct page *p)
{
    struct generator_worker w;
    int64_t now_ms = clock_wall_ms(p->s->clock);
    for (unsigned i = 0; generators_worker(p->s->issuer.generators, i, &w); i++) {
        char slot[DEC_U64_MAX];
        size_t n = dec_put_u64(slot, i);
        exposition_begin(&p->e);
        exposition_label(&p->e, "slot", span_of(slot, n));
        exposition_label(&p->e, "state", w.active ? SPAN("active") : SPAN("spare"));
        exposition_end(&p->e, w.hi_ms - now_ms, 3);
    }
}

static void renewals(struct page *p)
{
    const struct serve_facts *f = &p->s->facts;
    put_labelled(p, "result", SPAN("renewed"), f->renewals_renewed);
    put_labelled(p, "result", SPAN("again"), f->renewals_again);
    put_labelled(p, "result", SPAN("reasserted"), f->renewals_reasserted);
    put_labelled(p, "result", SPAN("lost"), f->renewals_lost);
    put_labelled(p, "result", SPAN("failed"), f->renewals_failed);
}

static void put_figure(struct page *p, const struct generator *g, const struct generator_figure *f)
{
    if (f->type == GENERATOR_HISTOGRAM) {
        exposition_histogram(&p->e, f->histogram(g), g->label ? "name" : NULL, g->label);
        return;
    }
    int64_t v = f->value(g, clock_wall_ms(p->s->clock));
    if (v == GENERATOR_UNKNOWN)
        return;
    exposition_begin(&p->e);
    if (g->label)
        exposition_label(&p->e, "name", span_str(g->label));
    if (f->label)
        exposition_label(&p->e, f->label, span_str(f->label_value));
    exposition_end(&p->e, v, f->decimals);
}

/* What only one kind has: a family for each figure, with a sample of each generator. */
static void figures(struct page *p)
{
    static const enum exposition_kind types[] = {[GENERATOR_COUNTER] = EXPOSITION_COUNTER,
                                                 [GENERATOR_GAUGE] = EXPOSITION_GAUGE,
                                                 [GENERATOR_HISTOGRAM] = EXPOSITION_HISTOGRAM};
    const struct generator *list = p->s->issuer.generators;
    for (const struct generator *first = list; first; first = first->after) {
        bool once = generators_first(list, first);
        for (unsigned i = 0; once && i < first->kind->nfigures; i++) {
            const struct generator_figure *f = &first->kind->figures[i];
            const struct exposition_family family = {f->metric, types[f->type], f->unit, f->help};
            if (!f->metric)
                continue;
            if (i == 0 || f[-1].metric != f->metric)
                exposition_family(&p->e, &family);
            for (const struct generator *g = first; g; g = g->after)
                if (g->kind == first->kind)
                    put_figure(p, g, f);
        }
    }
}

static void build_info(struct page *p)
{
    put_labelled(p, "version", SPAN(SIDFLAKE_VERSION), 1);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

#define OF(member) offsetof(struct serve, member)

/* clang-format off */
static const struct row rows[] = {
    {{"sidflake_build", EXPOSITION_INFO, "", "Version of this sidecar."}, .samples = build_info},
    {{"sidflake_ids_issued", EXPOSITION_COUNTER, "",
      "IDs given out, by configured name."}, .samples = ids_issued},
    {{"sidflake_requests", EXPOSITION_COUNTER, "", "Requests answered."}, .samples = requests},
    {{"sidflake_request_duration_seconds", EXPOSITION_HISTOGRAM, "seconds",
      "Time from reading a request that is answered here to handing its answer to the kernel."},
     .samples = request_duration},
    {{"sidflake_connections", EXPOSITION_GAUGE, "", "Connections open."}, .samples = connections},
    {{"sidflake_connections_accepted", EXPOSITION_COUNTER, "",
      "Connections accepted."}, .samples = connections_accepted},
    {{"sidflake_connections_refused", EXPOSITION_COUNTER, "",
      "Connections refused, being over the limit or of a user who may not connect."}, .samples = connections_refused},
    {{"sidflake_connections_ended", EXPOSITION_COUNTER, "",
      "Connections that were closed here for want of time or room, or because the client had gone."},
     .samples = connections_ended},
    {{"sidflake_connections_kept_bytes", EXPOSITION_GAUGE, "bytes",
      "Memory kept for connections: requests that are not whole, replies that are not taken."},
     .number = KEPT},
    {{"sidflake_upstream_up", EXPOSITION_GAUGE, "",
      "Whether the upstream can be reached: it answers, and lets connect."}, .samples = upstream_up},
    {{"sidflake_upstream_state_seconds", EXPOSITION_GAUGE, "seconds",
      "For how long the upstream could be reached, or could not."}, .samples = upstream_state},
    {{"sidflake_upstream_connections", EXPOSITION_GAUGE, "",
      "Connections open to the upstream."}, .samples = upstream_connections},
    {{"sidflake_upstream_requests", EXPOSITION_COUNTER, "",
      "Replies asked of the upstream."}, .samples = upstream_requests},
    {{"sidflake_upstream_errors", EXPOSITION_COUNTER, "",
      "Connections to the upstream that failed, broke off or timed out."},
     .samples = upstream_errors},
    {{"sidflake_upstream_refused", EXPOSITION_COUNTER, "",
      "Connections that the upstream refused, or that could not be made here, while it served "
      "those that it had let in before."},
     .samples = upstream_refused},
    {{"sidflake_upstream_faults", EXPOSITION_COUNTER, "",
      "Replies of the upstream that are errors of its own, as without memory or while it "
      "loads, and requests on clients' own connections that had none in time."},
     .samples = upstream_faults},
    {{"sidflake_state_page", EXPOSITION_GAUGE, "",
      "Whether the next start finds a state page, and goes on with the same workerIds."},
     .number = STATE_PAGE},
    {{"sidflake_worker_id", EXPOSITION_GAUGE, "",
      "workerId in each slot: those issued from, then spares."}, .samples = worker_id},
    {{"sidflake_worker_range_seconds", EXPOSITION_GAUGE, "seconds",
      "Time left until the ceiling of the workerId in each slot."}, .samples = worker_range},
    {{"sidflake_workers_held", EXPOSITION_GAUGE, "", "workerIds held."}, .number = HELD},
    {{"sidflake_reservation_seconds", EXPOSITION_GAUGE, "seconds",
      "Time left until the ceiling of what the coordinator has granted."},
     .number = RESERVATION_MS, .decimals = 3},
    {{"sidflake_tenure_age_seconds", EXPOSITION_GAUGE, "seconds",
      "Age of the longest tenure among the active workerIds."}, .number = TENURE_MS, .decimals = 3},
    {{"sidflake_pool_era", EXPOSITION_GAUGE, "",
      "How often the pool was reopened, its coordinator having restarted."}, .number = ERA},
    {{"sidflake_renewals", EXPOSITION_COUNTER, "",
      "Renewals of workerIds, by outcome."}, .samples = renewals},
    {{"sidflake_rotations", EXPOSITION_COUNTER, "",
      "workerIds given up because the clock stepped back."}, .number = ROTATIONS},
    {{"sidflake_clock_rollbacks", EXPOSITION_COUNTER, "",
      "Times that the clock was seen to step back."}, .number = ROLLBACKS},
    {{"sidflake_clock_wait_seconds", EXPOSITION_COUNTER, "seconds",
      "Time spent waiting for a clock behind the latest ID."},
     .number = CLOCK_WAIT_US, .decimals = 6},
    {{"sidflake_clock_skew_seconds", EXPOSITION_GAUGE, "seconds",
      "Clock of the coordinator less this one."}, .number = SKEW_MS, .decimals = 3},
    {{"sidflake_sequence_exhausted", EXPOSITION_COUNTER, "",
      "Requests that found every ID of the millisecond given out."}, .number = EXHAUSTED},
    {.samples = figures},
    {{"sidflake_coordinator_up", EXPOSITION_GAUGE, "",
      "Whether the latest call of the coordinator was answered, and not refused."}, .number = UP},
    {{"sidflake_coordinator_answers", EXPOSITION_GAUGE, "",
      "Whether the latest call of the coordinator was answered, be it with a refusal."},
     .number = ANSWERS},
    {{"sidflake_coordinator_request_seconds", EXPOSITION_HISTOGRAM, "seconds",
      "Time of calls of the coordinator."}, .histogram = OF(facts.coordinator_requests)},
    {{"sidflake_coordinator_data_loss", EXPOSITION_COUNTER, "",
      "Times that the coordinator had forgotten what it granted."}, .number = DATA_LOSS},
    {{"sidflake_pool_free", EXPOSITION_GAUGE, "",
      "workerIds that nobody holds."}, .number = POOL_FREE},
    {{"sidflake_pool_horizon_seconds", EXPOSITION_GAUGE, "seconds",
      "Longest range of time that a renewal grants."}, .number = HORIZON_MS, .decimals = 3},
    {{"sidflake_pool_first_horizon_seconds", EXPOSITION_GAUGE, "seconds",
      "The same for a young tenure."}, .number = FIRST_HORIZON_MS, .decimals = 3},
    {{"process_cpu_seconds", EXPOSITION_COUNTER, "seconds",
      "User and system CPU time spent."}, .number = CPU_US, .decimals = 6},
    {{"process_open_fds", EXPOSITION_GAUGE, "", "File descriptors open."}, .number = OPEN_FDS},
    {{"process_max_fds", EXPOSITION_GAUGE, "",
      "Most file descriptors that may be open."}, .number = MAX_FDS},
    {{"process_virtual_memory_bytes", EXPOSITION_GAUGE, "bytes",
      "Virtual memory size."}, .number = VIRTUAL},
    {{"process_resident_memory_bytes", EXPOSITION_GAUGE, "bytes",
      "Resident memory size."}, .number = RESIDENT},
    {{"process_threads", EXPOSITION_GAUGE, "", "Threads of the process."}, .number = THREADS},
    {{"process_start_time_seconds", EXPOSITION_GAUGE, "seconds",
      "Unix time at which the process started."}, .number = START_MS, .decimals = 3},
};
/* clang-format on */

/* ---- the page ----------------------------------------------------------------------------------
 */

static void gather_serve(const struct serve *s, int64_t now_ms, int64_t v[NUMBERS])
{
    const struct serve_facts *f = &s->facts;
    struct generator_counts sum;
    generators_count(s->issuer.generators, &sum);
    int64_t ceiling = generators_ceiling(s->issuer.generators);
    bool pool = serve_pool_known(f);
    v[HELD] = f->held;
    v[RESERVATION_MS] = ceiling > 0 ? serve_difference(ceiling, now_ms) : UNKNOWN;
    v[TENURE_MS] = f->tenure_start_ms != 0 ? serve_difference(now_ms, f->tenure_start_ms) : UNKNOWN;
    v[ERA] = pool ? (int64_t)f->era : UNKNOWN;
    v[ROTATIONS] = (int64_t)sum.rotations;
    v[ROLLBACKS] = (int64_t)sum.rollbacks;
    v[CLOCK_WAIT_US] = (int64_t)s->issuer.waited_us;
    v[SKEW_MS] = f->answered ? f->skew_ms : UNKNOWN;
    v[EXHAUSTED] = (int64_t)sum.exhausted;
    v[UP] = f->serves;
    v[ANSWERS] = f->up;
    v[DATA_LOSS] = (int64_t)f->data_loss;
    v[STATE_PAGE] = f->page[0] == '\0';
    /* Of one workerId, as static:N is, none is ever free: no reason for an alert. */
    v[POOL_FREE] = pool && f->pool_size > 1 ? (int64_t)f->pool_free : UNKNOWN;
    v[HORIZON_MS] = pool ? f->horizon_ms : UNKNOWN;
    v[FIRST_HORIZON_MS] = pool ? f->first_horizon_ms : UNKNOWN;
    v[START_MS] = s->started_ms;
    v[KEPT] = s->net ? (int64_t)net_kept(s->net) : UNKNOWN;
}

static void gather_process(int64_t v[NUMBERS])
{
    struct process p;
    process_read(&p);
    v[CPU_US] = p.cpu_us;
    v[OPEN_FDS] = p.open_fds;
    v[MAX_FDS] = p.max_fds;
    v[VIRTUAL] = p.virtual_bytes;
    v[RESIDENT] = p.resident_bytes;
    v[THREADS] = p.threads;
}

static void put_number(struct page *p, const struct row *r)
{
    if (p->number[r->number] == UNKNOWN)
        return;
    exposition_begin(&p->e);
    exposition_end(&p->e, p->number[r->number], r->decimals);
}

void serve_put_metrics(struct serve *s, struct buf *out, bool openmetrics)
{
    struct page p = {.e = {.out = out, .openmetrics = openmetrics}, .s = s};
    gather_serve(s, clock_wall_ms(s->clock), p.number);
    gather_process(p.number);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        exposition_family(&p.e, &r->family);
        if (r->samples)
            r->samples(&p);
        else if (r->histogram)
            exposition_histogram(&p.e, (const void *)((const char *)s + r->histogram), NULL, NULL);
        else
            put_number(&p, r);
    }
    exposition_finish(&p.e);
}
