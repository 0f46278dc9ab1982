/*
 * INFO: Redis's fields as far as clients and exporters read them, and a section of our own.
 */
#include "serve/redis/redis.h"

#include <sys/resource.h>
#include <unistd.h>

#define INFO_MAX 24576 /* bytes of all sections */

static unsigned long long ull(uint64_t v)
{
    return v;
}

static uint64_t uptime_s(const struct rds_call *c)
{
    int64_t us = clock_mono_us(c->turn->clock) - c->svc->serve->started_mono_us;
    return us > 0 ? (uint64_t)us / 1000000 : 0;
}

/* Requests that ended so; SERVE_RESULTS: all of them. */
static uint64_t requests(const struct serve *s, enum serve_result which)
{
    uint64_t n = 0;
    for (size_t i = 0; i < SERVE_COMMANDS; i++)
        for (size_t r = 0; r < SERVE_RESULTS; r++)
            n += which == SERVE_RESULTS || r == which ? s->requests[SERVE_REDIS][i][r] : 0;
    return n;
}

static void server(struct rds_call *c, struct buf *b)
{
    uint64_t up = uptime_s(c);
    buf_printf(b,
               "redis_version:%s\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\n"
               "redis_mode:standalone\r\nos:Linux\r\narch_bits:%zu\r\nmultiplexing_api:libev\r\n"
               "process_id:%ld\r\nrun_id:%s\r\ntcp_port:0\r\nserver_time_usec:%lld\r\n"
               "uptime_in_seconds:%llu\r\nuptime_in_days:%llu\r\n",
               RDS_VERSION, sizeof(void *) * 8, (long)getpid(), c->svc->run_id,
               (long long)clock_wall_us(c->turn->clock), ull(up), ull(up / 86400));
}

static void clients(struct rds_call *c, struct buf *b)
{
    buf_printf(b,
               "connected_clients:%llu\r\ncluster_connections:0\r\nmaxclients:%lu\r\n"
               "blocked_clients:0\r\ntracking_clients:0\r\n",
               ull(c->svc->net.connections), (unsigned long)c->svc->serve->max_connections);
}

/* What was resident at most: that costs no file to be read. */
static void memory(struct rds_call *c, struct buf *b)
{
    struct rusage usage = {0};
    (void)c;
    (void)getrusage(RUSAGE_SELF, &usage);
    unsigned long long bytes = ull((uint64_t)usage.ru_maxrss) * 1024;
    buf_printf(b,
               "used_memory:%llu\r\nused_memory_human:%.2fM\r\nused_memory_rss:%llu\r\n"
               "used_memory_peak:%llu\r\nused_memory_peak_human:%.2fM\r\nmaxmemory:0\r\n"
               "maxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\nmem_allocator:libc\r\n",
               bytes, (double)bytes / 1048576, bytes, bytes, (double)bytes / 1048576);
}

/* Clients wait, and ask again after loading_eta_seconds, rather than give up. */
static void persistence(struct rds_call *c, struct buf *b)
{
    bool loading = !c->svc->serve->facts.granted;
    buf_printf(b,
               "loading:%d\r\n%sasync_loading:0\r\nrdb_changes_since_last_save:0\r\n"
               "rdb_bgsave_in_progress:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:0\r\n"
               "aof_rewrite_in_progress:0\r\n",
               loading, loading ? "loading_eta_seconds:1\r\n" : "");
}

static void stats(struct rds_call *c, struct buf *b)
{
    const struct serve *s = c->svc->serve;
    struct generator_counts sum;
    generators_count(s->issuer.generators, &sum);
    buf_printf(b,
               "total_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
               "total_net_input_bytes:%llu\r\ntotal_net_output_bytes:%llu\r\n"
               "rejected_connections:%llu\r\nexpired_keys:0\r\nevicted_keys:0\r\n"
               "keyspace_hits:%llu\r\nkeyspace_misses:%llu\r\npubsub_channels:0\r\n"
               "pubsub_patterns:0\r\nlatest_fork_usec:0\r\ntotal_error_replies:%llu\r\n",
               ull(c->svc->net.accepted), ull(requests(s, SERVE_RESULTS)),
               ull(c->svc->net.bytes_in), ull(c->svc->net.bytes_out), ull(c->svc->net.refused),
               ull(sum.issued + sum.counted), ull(requests(s, SERVE_MISS)),
               ull(requests(s, SERVE_REFUSED) + requests(s, SERVE_INVALID) +
                   requests(s, SERVE_FAILED) + requests(s, SERVE_AWAY)));
}

static void replication(struct rds_call *c, struct buf *b)
{
    buf_printf(b,
               "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n"
               "master_replid:%s\r\nmaster_repl_offset:0\r\nsecond_repl_offset:-1\r\n"
               "repl_backlog_active:0\r\n",
               c->svc->run_id);
}

static void cpu(struct rds_call *c, struct buf *b)
{
    struct rusage usage = {0};
    (void)c;
    (void)getrusage(RUSAGE_SELF, &usage);
    buf_printf(b, "used_cpu_sys:%lld.%06ld\r\nused_cpu_user:%lld.%06ld\r\n",
               (long long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec,
               (long long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
}

static void cluster(struct rds_call *c, struct buf *b)
{
    (void)c;
    buf_put_str(b, "cluster_enabled:0\r\n");
}

static void keyspace(struct rds_call *c, struct buf *b)
{
    size_t n = rds_issuer(c)->names.count;
    if (n > 0)
        buf_printf(b, "db0:keys=%zu,expires=0,avg_ttl=0\r\n", n);
}

static void put_workers(const struct generator *list, struct buf *b)
{
    struct generator_worker w;
    unsigned held = 0, active = 0;
    for (; generators_worker(list, held, &w); held++)
        active += w.active;
    buf_printf(b, "workers_held:%u\r\nworkers_active:%u\r\nceiling_ms:%lld\r\n", held, active,
               (long long)generators_ceiling(list));
    for (unsigned i = 0; generators_worker(list, i, &w); i++)
        buf_printf(b, "worker%u:id=%u,active=%d,last_ms=%lld,ceiling_ms=%lld\r\n", i, w.worker,
                   w.active, (long long)w.last_ms, (long long)w.hi_ms);
}

/* Rows of what has no label; else one row: label:figure=value,figure=value. */
static void put_figures(struct rds_call *c, const struct generator *g, struct buf *b)
{
    const char *before = g->label ? ":" : "";
    buf_put_str(b, g->label ? g->label : "");
    for (unsigned i = 0; i < g->kind->nfigures; i++) {
        const struct generator_figure *f = &g->kind->figures[i];
        int64_t v = f->info ? f->value(g, c->turn->wall_ms) : GENERATOR_UNKNOWN;
        if (v == GENERATOR_UNKNOWN)
            continue;
        buf_printf(b, g->label ? "%s%s=%lld" : "%s%s:%lld\r\n", before, f->info, (long long)v);
        before = g->label ? "," : "";
    }
    buf_put_str(b, g->label ? "\r\n" : "");
}

/* Of the kinds of this section; NULL: of those without one. */
static void put_section(struct rds_call *c, const char *section, struct buf *b)
{
    for (const struct generator *g = rds_issuer(c)->generators; g; g = g->after)
        if (g->kind->section == section && access_sees(c->svc->serve, &c->ses->access, g))
            put_figures(c, g, b);
}

static void sidflake(struct rds_call *c, struct buf *b)
{
    const struct serve_facts *f = &c->svc->serve->facts;
    const struct issuer *issuer = rds_issuer(c);
    const struct names *names = &issuer->names;
    struct refusal ready = issuer_ready(issuer, c->turn->wall_ms);
    struct generator_counts sum;
    generators_count(issuer->generators, &sum);
    buf_printf(b,
               "sidflake_version:%s\r\nsidflake_ready:%d\r\nsidflake_ready_reason:%s\r\nids_issued:"
               "%llu\r\n"
               "id_prefix:%s\r\nid_batch_max:%lu\r\n",
               SIDFLAKE_VERSION, !ready.by, refusal_text(ready), ull(sum.issued),
               names->n > 0 ? names->prefix[0].text : "", (unsigned long)issuer->batch);
    put_section(c, NULL, b);
    put_workers(issuer->generators, b);
    buf_printf(b,
               "coordinator:%s\r\ncoordinator_state:%s\r\npool:%s\r\npool_identity:%s\r\n"
               "rotations:%llu\r\nclock_rollbacks:%llu\r\n",
               f->coordinator,
               f->serves     ? "up"
               : f->up       ? "refuses"
               : f->answered ? "down"
                             : "never reached",
               f->pool, f->identity, ull(sum.rotations), ull(sum.rollbacks));
    if (serve_pool_known(f))
        buf_printf(b, "pool_era:%llu\r\npool_free:%llu\r\n", ull(f->era), ull(f->pool_free));
}

struct section {
    const char *name;                               /* as in the heading */
    void (*put)(struct rds_call *c, struct buf *b); /* NULL: of kinds of generators */
};

static const struct section sections[] = {
    {"Server", server},     {"Clients", clients},
    {"Memory", memory},     {"Persistence", persistence},
    {"Stats", stats},       {"Replication", replication},
    {"CPU", cpu},           {"Cluster", cluster},
    {"Keyspace", keyspace}, {"Sidflake", sidflake},
};

#define SECTIONS     (sizeof sections / sizeof *sections)
#define SECTIONS_MAX 32u /* with those of kinds: bits of a mask */

/* All that there are, in their order. Returns how many. */
static unsigned list_sections(struct rds_call *c, struct section *all)
{
    const struct generator *list = rds_issuer(c)->generators;
    unsigned n = SECTIONS;
    memcpy(all, sections, sizeof sections);
    for (const struct generator *g = list; g && n < SECTIONS_MAX; g = g->after)
        if (g->kind->section && generators_first(list, g))
            all[n++] = (struct section){g->kind->section, NULL};
    return n;
}

/* Which of them are asked for, a bit each: by one walk, as a request may have thousands of words.
 * Every section is part of `default`, `all` and `everything`. */
static uint32_t wanted(struct rds_call *c, const struct section *all, unsigned n)
{
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span arg;
    uint32_t found = c->req->argc == 1 ? UINT32_MAX : 0;
    while (found != UINT32_MAX && resp_next_arg(&w, &arg)) {
        if (span_eq_nocase(arg, SPAN("default")) || span_eq_nocase(arg, SPAN("all")) ||
            span_eq_nocase(arg, SPAN("everything")))
            found = UINT32_MAX;
        for (unsigned i = 0; i < n; i++)
            found |= (uint32_t)span_eq_nocase(arg, span_str(all[i].name)) << i;
    }
    return found;
}

enum serve_result rds_info(struct rds_call *c)
{
    char text[INFO_MAX];
    struct buf b;
    struct section all[SECTIONS_MAX];
    unsigned n = list_sections(c, all);
    uint32_t which = wanted(c, all, n);
    buf_init(&b, text, sizeof text);
    for (unsigned i = 0; i < n; i++) {
        if (!(which >> i & 1))
            continue;
        buf_printf(&b, "%s# %s\r\n", b.n > 0 ? "\r\n" : "", all[i].name);
        if (all[i].put)
            all[i].put(c, &b);
        else
            put_section(c, all[i].name, &b);
    }
    if (b.failed)
        return rds_fail(c, SERVE_FAILED, "ERR INFO is too long: expected at most %d bytes",
                        INFO_MAX);
    resp_put_verbatim(c->out, c->ses->proto, buf_span(&b));
    return SERVE_OK;
}
