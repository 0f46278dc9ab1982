/*
 * `stats`: the names that memcached's own has and tools look for, then ours.
 */
#include "serve/memcached.h"

#include "base/timefmt.h"

#include <sys/resource.h>
#include <unistd.h>

static void put_u64(struct buf *out, const char *name, uint64_t v)
{
    mc_put_stat_u64(out, span_str(name), v);
}

static void put_str(struct buf *out, const char *name, const char *v)
{
    mc_put_stat(out, span_str(name), span_str(v));
}

static uint64_t requests_of(const struct serve *s, enum mc_verb verb)
{
    uint64_t n = 0;
    for (unsigned r = 0; r < SERVE_RESULTS; r++)
        n += s->requests[SERVE_MEMCACHED][verb][r];
    return n;
}

static void put_seconds(struct buf *out, const char *name, struct timeval tv)
{
    char text[48];
    struct buf b;
    buf_init(&b, text, sizeof text);
    buf_printf(&b, "%lld.%06ld", (long long)tv.tv_sec, (long)tv.tv_usec);
    mc_put_stat(out, span_str(name), buf_span(&b));
}

static void put_process(const struct memcached *m, struct buf *out)
{
    const struct serve *s = m->serve;
    struct rusage ru = {0};
    (void)getrusage(RUSAGE_SELF, &ru);
    put_u64(out, "pid", (uint64_t)getpid());
    put_u64(out, "uptime", (uint64_t)((clock_mono_us(s->clock) - s->started_mono_us) / 1000000));
    put_u64(out, "time", (uint64_t)(clock_wall_ms(s->clock) / 1000));
    put_str(out, "version", SIDFLAKE_VERSION);
    put_u64(out, "pointer_size", sizeof(void *) * 8);
    put_seconds(out, "rusage_user", ru.ru_utime);
    put_seconds(out, "rusage_system", ru.ru_stime);
}

static void put_traffic(const struct memcached *m, struct buf *out)
{
    static const enum mc_verb gets[] = {MC_GET, MC_GETS, MC_GAT, MC_GATS};
    static const enum mc_verb sets[] = {MC_SET, MC_ADD, MC_REPLACE, MC_APPEND, MC_PREPEND, MC_CAS};
    const struct serve *s = m->serve;
    uint64_t get = 0, hits = 0, misses = 0, set = 0;
    for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
        get += requests_of(s, gets[i]);
        hits += s->requests[SERVE_MEMCACHED][gets[i]][SERVE_OK];
        misses += s->requests[SERVE_MEMCACHED][gets[i]][SERVE_MISS];
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        set += requests_of(s, sets[i]);
    put_u64(out, "max_connections", s->max_connections);
    put_u64(out, "curr_connections", m->svc.connections);
    put_u64(out, "total_connections", m->svc.accepted);
    put_u64(out, "rejected_connections", m->svc.refused);
    put_u64(out, "cmd_get", get);
    put_u64(out, "cmd_set", set);
    put_u64(out, "cmd_flush", requests_of(s, MC_FLUSH_ALL));
    put_u64(out, "cmd_touch", requests_of(s, MC_TOUCH));
    put_u64(out, "get_hits", hits);
    put_u64(out, "get_misses", misses);
    put_u64(out, "incr_hits", s->requests[SERVE_MEMCACHED][MC_INCR][SERVE_OK]);
    put_u64(out, "incr_misses", s->requests[SERVE_MEMCACHED][MC_INCR][SERVE_MISS]);
    put_u64(out, "bytes_read", m->svc.bytes_in);
    put_u64(out, "bytes_written", m->svc.bytes_out);
    put_u64(out, "limit_maxbytes", 0);
    put_u64(out, "threads", 1);
    put_u64(out, "bytes", 0);
    put_u64(out, "curr_items", 0);
    put_u64(out, "total_items", 0);
    put_u64(out, "evictions", 0);
}

static void put_workers(const struct snowflake *g, struct buf *out)
{
    for (unsigned i = 0; i < g->nmembers; i++) {
        char name[40], ceiling[TIMEFMT_MAX];
        struct buf b;
        buf_init(&b, name, sizeof name);
        buf_printf(&b, "sidflake_worker_%u_%s", i, i < g->nactive ? "active" : "spare");
        mc_put_stat_u64(out, buf_span(&b), g->member[i].worker);
        b.n = 0;
        buf_printf(&b, "sidflake_worker_%u_ceiling", i);
        mc_put_stat(out, buf_span(&b), span_str(timefmt_rfc3339(ceiling, g->member[i].hi)));
    }
}

static void put_sidflake(const struct memcached *m, struct buf *out)
{
    const struct serve *s = m->serve;
    const struct snowflake *g = &s->issuer.gen;
    put_u64(out, "sidflake_ready", issuer_ready(&s->issuer, clock_wall_ms(s->clock)) == ISSUE_OK);
    put_u64(out, "sidflake_ids_issued", g->stats.issued);
    put_u64(out, "sidflake_rotations", g->stats.rotations);
    put_u64(out, "sidflake_clock_rollbacks", g->stats.rollbacks);
    put_u64(out, "sidflake_sequence_exhausted", g->stats.exhausted);
    put_u64(out, "sidflake_workers_held", s->facts.held);
    put_workers(g, out);
    put_str(out, "sidflake_coordinator", s->facts.coordinator);
    put_u64(out, "sidflake_coordinator_up", s->facts.up);
    put_str(out, "sidflake_pool", s->facts.pool);
    put_str(out, "sidflake_pool_identity", s->facts.identity);
    put_u64(out, "sidflake_pool_era", s->facts.era);
}

static void put_settings(const struct memcached *m, struct buf *out)
{
    for (size_t i = 0; i < m->serve->nsettings; i++)
        put_str(out, m->serve->settings[i].name, m->serve->settings[i].value);
}

static void put_connections(const struct memcached *m, struct buf *out)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = m->serve->services[i];
        if (svc)
            put_u64(out, svc->name, svc->connections);
    }
}

static void reset(struct memcached *m, struct buf *out)
{
    struct serve *s = m->serve;
    memset(s->requests[SERVE_MEMCACHED], 0, sizeof s->requests[SERVE_MEMCACHED]);
    m->svc.bytes_in = m->svc.bytes_out = 0;
    BUF_PUT_LIT(out, "RESET\r\n");
}

bool memcached_stats(struct memcached *m, const struct mc_req *req, struct buf *out)
{
    struct span form = req->args;
    while (form.n > 0 && form.p[0] == ' ')
        form = span_skip(form, 1);
    while (form.n > 0 && form.p[form.n - 1] == ' ')
        form.n--;
    if (span_eq_nocase(form, SPAN("reset"))) {
        reset(m, out);
        return true;
    }
    if (form.n == 0) {
        put_process(m, out);
        put_traffic(m, out);
        put_sidflake(m, out);
    } else if (span_eq_nocase(form, SPAN("settings"))) {
        put_settings(m, out);
    } else if (span_eq_nocase(form, SPAN("conns"))) {
        put_connections(m, out);
    } else if (!span_eq_nocase(form, SPAN("items")) && !span_eq_nocase(form, SPAN("slabs"))) {
        return false;
    }
    mc_put_end(out);
    return true;
}
