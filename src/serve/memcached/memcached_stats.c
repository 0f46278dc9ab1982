/*
 * `stats`: the names that memcached's own has and tools look for, then ours. Text and binary differ
 * in how a row is written, and in nothing else.
 */
#include "serve/memcached/memcached.h"

#include "base/dec.h"
#include "base/timefmt.h"

#include <sys/resource.h>
#include <unistd.h>

struct rows {
    struct memcached *m;
    const struct access *who;
    const struct mcb_req *binary; /* NULL: text */
    struct buf *out;
};

static void put(const struct rows *r, struct span name, struct span value)
{
    if (r->binary)
        mcb_put(r->out, r->binary, MCB_OK, name, value, 0);
    else
        mc_put_stat(r->out, name, value);
}

static void put_number(const struct rows *r, struct span name, uint64_t v)
{
    char digits[DEC_U64_MAX];
    put(r, name, span_of(digits, dec_put_u64(digits, v)));
}

static void put_u64(const struct rows *r, const char *name, uint64_t v)
{
    put_number(r, span_str(name), v);
}

static void put_str(const struct rows *r, const char *name, const char *v)
{
    put(r, span_str(name), span_str(v));
}

static uint64_t result_of(const struct memcached *m, enum mc_verb verb, enum serve_result r)
{
    return m->serve->requests[SERVE_MEMCACHED][verb][r] - m->since.requests[verb][r];
}

static uint64_t requests_of(const struct memcached *m, enum mc_verb verb)
{
    uint64_t n = 0;
    for (unsigned r = 0; r < SERVE_RESULTS; r++)
        n += result_of(m, verb, (enum serve_result)r);
    return n;
}

static void put_seconds(const struct rows *r, const char *name, struct timeval tv)
{
    char text[48];
    struct buf b;
    buf_init(&b, text, sizeof text);
    buf_printf(&b, "%lld.%06ld", (long long)tv.tv_sec, (long)tv.tv_usec);
    put(r, span_str(name), buf_span(&b));
}

static void put_process(const struct rows *r)
{
    const struct serve *s = r->m->serve;
    struct rusage ru = {0};
    (void)getrusage(RUSAGE_SELF, &ru);
    put_u64(r, "pid", (uint64_t)getpid());
    put_u64(r, "uptime", (uint64_t)((clock_mono_us(s->clock) - s->started_mono_us) / 1000000));
    put_u64(r, "time", (uint64_t)(clock_wall_ms(s->clock) / 1000));
    put_str(r, "version", MCD_VERSION);
    put_u64(r, "pointer_size", sizeof(void *) * 8);
    put_seconds(r, "rusage_user", ru.ru_utime);
    put_seconds(r, "rusage_system", ru.ru_stime);
}

static void put_traffic(const struct rows *r)
{
    static const enum mc_verb gets[] = {MC_GET, MC_GETS, MC_GAT, MC_GATS, MC_META_GET};
    static const enum mc_verb sets[] = {MC_SET,     MC_ADD, MC_REPLACE, MC_APPEND,
                                        MC_PREPEND, MC_CAS, MC_META_SET};
    const struct memcached *m = r->m;
    uint64_t get = 0, hits = 0, misses = 0, set = 0;
    for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
        get += requests_of(m, gets[i]);
        hits += result_of(m, gets[i], SERVE_OK);
        misses += result_of(m, gets[i], SERVE_MISS);
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        set += requests_of(m, sets[i]);
    put_u64(r, "max_connections", m->serve->max_connections);
    put_u64(r, "curr_connections", m->svc.connections);
    put_u64(r, "total_connections", m->svc.accepted);
    put_u64(r, "rejected_connections", m->svc.refused);
    put_u64(r, "cmd_get", get);
    put_u64(r, "cmd_set", set);
    put_u64(r, "cmd_flush", requests_of(m, MC_FLUSH_ALL));
    put_u64(r, "cmd_touch", requests_of(m, MC_TOUCH));
    put_u64(r, "get_hits", hits);
    put_u64(r, "get_misses", misses);
    put_u64(r, "incr_hits",
            result_of(m, MC_INCR, SERVE_OK) + result_of(m, MC_META_ARITHMETIC, SERVE_OK));
    put_u64(r, "incr_misses",
            result_of(m, MC_INCR, SERVE_MISS) + result_of(m, MC_META_ARITHMETIC, SERVE_MISS));
    put_u64(r, "bytes_read", m->svc.bytes_in - m->since.bytes_in);
    put_u64(r, "bytes_written", m->svc.bytes_out - m->since.bytes_out);
    put_u64(r, "limit_maxbytes", 0);
    put_u64(r, "threads", 1);
    put_u64(r, "bytes", 0);
    put_u64(r, "curr_items", 0);
    put_u64(r, "total_items", 0);
    put_u64(r, "evictions", 0);
}

static void put_workers(const struct rows *r, const struct generator *list)
{
    struct generator_worker w;
    for (unsigned i = 0; generators_worker(list, i, &w); i++) {
        char name[40], ceiling[TIMEFMT_MAX];
        struct buf b;
        buf_init(&b, name, sizeof name);
        buf_printf(&b, "sidflake_worker_%u_%s", i, w.active ? "active" : "spare");
        put_number(r, buf_span(&b), w.worker);
        b.n = 0;
        buf_printf(&b, "sidflake_worker_%u_ceiling", i);
        put(r, buf_span(&b), span_str(timefmt_rfc3339(ceiling, w.hi_ms)));
    }
}

/* A row: the figure's name, behind that of its generator if it has one. */
static void put_figure(const struct rows *r, const struct generator *g,
                       const struct generator_figure *f)
{
    char name[NAMES_LENGTH_MAX + 64];
    struct buf b;
    int64_t v = f->value(g, clock_wall_ms(r->m->serve->clock));
    if (v == GENERATOR_UNKNOWN)
        return;
    buf_init(&b, name, sizeof name);
    buf_printf(&b, "%s%s%s", g->label ? g->label : "", g->label ? ":" : "", f->stat);
    char digits[DEC_U64_MAX + 1];
    struct buf d;
    buf_init(&d, digits, sizeof digits);
    buf_put_i64(&d, v);
    put(r, buf_span(&b), buf_span(&d));
}

/* Of the kinds of this section; NULL: of those without one. */
static void put_figures(const struct rows *r, const char *section)
{
    const struct serve *s = r->m->serve;
    for (const struct generator *g = s->issuer.generators; g; g = g->after) {
        bool shown = g->kind->section == section && access_sees(s, r->who, g);
        for (unsigned i = 0; shown && i < g->kind->nfigures; i++)
            if (g->kind->figures[i].stat)
                put_figure(r, g, &g->kind->figures[i]);
    }
}

static void put_sidflake(const struct rows *r)
{
    const struct serve *s = r->m->serve;
    const struct generator *list = s->issuer.generators;
    struct generator_counts sum;
    generators_count(list, &sum);
    put_str(r, "sidflake_version", SIDFLAKE_VERSION);
    put_u64(r, "sidflake_ready", !issuer_ready(&s->issuer, clock_wall_ms(s->clock)).by);
    put_u64(r, "sidflake_ids_issued", sum.issued);
    put_u64(r, "sidflake_rotations", sum.rotations);
    put_u64(r, "sidflake_clock_rollbacks", sum.rollbacks);
    put_u64(r, "sidflake_sequence_exhausted", sum.exhausted);
    put_u64(r, "sidflake_workers_held", s->facts.held);
    put_workers(r, list);
    put_figures(r, NULL);
    put_str(r, "sidflake_coordinator", s->facts.coordinator);
    put_u64(r, "sidflake_coordinator_up", s->facts.serves);
    put_str(r, "sidflake_pool", s->facts.pool);
    put_str(r, "sidflake_pool_identity", s->facts.identity);
    if (serve_pool_known(&s->facts))
        put_u64(r, "sidflake_pool_era", s->facts.era);
}

static void put_settings(const struct rows *r)
{
    for (size_t i = 0; i < r->m->serve->nsettings; i++)
        put_str(r, r->m->serve->settings[i].name, r->m->serve->settings[i].value);
}

static void put_connections(const struct rows *r)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = r->m->serve->services[i];
        if (svc)
            put_u64(r, svc->name, svc->connections);
    }
}

static void reset(struct memcached *m)
{
    memcpy(m->since.requests, m->serve->requests[SERVE_MEMCACHED], sizeof m->since.requests);
    m->since.bytes_in = m->svc.bytes_in;
    m->since.bytes_out = m->svc.bytes_out;
}

static void put_general(const struct rows *r)
{
    put_process(r);
    put_traffic(r);
    put_sidflake(r);
}

/* Of what is not stored: as memcached says it when it is empty. */
static void put_nothing(const struct rows *r)
{
    (void)r;
}

static void put_slabs(const struct rows *r)
{
    put_u64(r, "active_slabs", 0);
    put_u64(r, "total_malloced", 0);
}

static void put_sizes(const struct rows *r)
{
    put_str(r, "sizes_status", "disabled");
}

static const struct {
    const char *form; /* words, after which others may come */
    void (*put)(const struct rows *);
} tables[] = {
    {"sidflake", put_sidflake}, {"settings", put_settings}, {"conns", put_connections},
    {"items", put_nothing},     {"slabs", put_slabs},       {"sizes", put_sizes},
};

/* Forms that are answered with one line of text; in binary without a row, or as if they were
 * unknown. */
static const struct {
    const char *form;
    bool binary;
    struct span line;
} lines[] = {
    {"reset", true, SPAN("RESET\r\n")},
    {"detail on", true, SPAN("OK\r\n")},
    {"detail off", true, SPAN("OK\r\n")},
    {"detail dump", true, SPAN("END\r\n")},
    {"detail", false, SPAN("CLIENT_ERROR usage: stats detail on|off|dump\r\n")},
    {"cachedump", false, SPAN("CLIENT_ERROR stats cachedump not allowed\r\n")},
};

static bool is_form(struct span words, const char *form)
{
    struct span wanted = span_str(form), word, want;
    while (mc_next_key(&wanted, &want))
        if (!mc_next_key(&words, &word) || !span_eq_nocase(word, want))
            return false;
    return true;
}

bool mcd_stats_are_ours(const struct memcached *m, struct span words)
{
    const struct generator *g = m->serve->issuer.generators;
    while (g && !(g->kind->section && is_form(words, g->kind->section)))
        g = g->after;
    return g || is_form(words, "sidflake");
}

static bool put_table(const struct rows *r, struct span words)
{
    struct span rest = words, word;
    if (!mc_next_key(&rest, &word)) {
        put_general(r);
        return true;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (is_form(words, tables[i].form)) {
            tables[i].put(r);
            return true;
        }
    }
    for (const struct generator *g = r->m->serve->issuer.generators; g; g = g->after) {
        if (g->kind->section && is_form(words, g->kind->section)) {
            put_figures(r, g->kind->section);
            return true;
        }
    }
    return false;
}

static void put_end(const struct rows *r)
{
    const struct span none = {"", 0};
    if (r->binary)
        mcb_put(r->out, r->binary, MCB_OK, none, none, 0);
    else
        mc_put_end(r->out);
}

bool mcd_stats(struct memcached *m, const struct access *who, struct span words,
               const struct mcb_req *binary, struct buf *out)
{
    const struct rows r = {m, who, binary, out};
    if (put_table(&r, words)) {
        put_end(&r);
        return true;
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!is_form(words, lines[i].form))
            continue;
        if (binary && !lines[i].binary)
            return false;
        if (i == 0)
            reset(m);
        if (binary)
            put_end(&r);
        else
            buf_put_span(out, lines[i].line);
        return true;
    }
    return false;
}
