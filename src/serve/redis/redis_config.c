/*
 * CONFIG GET and COMMAND: what tools ask about the server before they use it.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"
#include "base/glob.h"
#include "base/timefmt.h"

/* ---- CONFIG -----------------------------------------------------------------------------------
 */

/* Redis's own settings, as what they come to here. NULL: see redis_setting. */
static const struct serve_setting redis_settings[] = {
    {"appendfsync", "no"},
    {"appendonly", "no"},
    {"cluster-enabled", "no"},
    {"databases", "16"},
    {"io-threads", "1"},
    {"latency-monitor-threshold", "0"},
    {"lazyfree-lazy-eviction", "no"},
    {"maxclients", NULL},
    {"maxmemory", "0"},
    {"maxmemory-policy", "noeviction"},
    {"notify-keyspace-events", ""},
    {"proto-max-bulk-len", "536870912"},
    {"replica-read-only", "yes"},
    {"replicaof", ""},
    {"requirepass", ""},
    {"save", ""},
    {"slave-read-only", "yes"},
    {"slowlog-log-slower-than", "-1"},
    {"slowlog-max-len", "0"},
    {"timeout", NULL},
};

#define PATTERNS_MAX 16 /* of CONFIG GET */
#define ROWS_MAX     64 /* more than there are */

/* Seconds, rounded up, of our own idle_timeout: clients keep alive by it. */
static uint64_t timeout_s(const struct serve *s)
{
    int64_t us = 0;
    for (size_t i = 0; i < s->nsettings; i++)
        if (span_eq(span_str(s->settings[i].name), SPAN("limits.idle_timeout")))
            (void)timefmt_parse_duration(span_str(s->settings[i].value), &us);
    return (uint64_t)(us / 1000000 + (us % 1000000 > 0));
}

static struct serve_setting setting(const struct serve *s, size_t i, char mem[DEC_U64_MAX + 1])
{
    const size_t ours = sizeof redis_settings / sizeof *redis_settings;
    if (i >= ours)
        return s->settings[i - ours];
    struct serve_setting row = redis_settings[i];
    if (!row.value) {
        uint64_t v = row.name[0] == 'm' ? s->max_connections : timeout_s(s);
        mem[dec_put_u64(mem, v)] = '\0';
        row.value = mem;
    }
    return row;
}

/* Whether one of the patterns of CONFIG GET matches. */
static bool wanted(struct rds_call *c, const char *name)
{
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span pattern;
    while (resp_next_arg(&w, &pattern))
        if (pattern.n <= GLOB_MAX && glob_match(pattern, span_str(name), true))
            return true;
    return false;
}

static enum serve_result config_get(struct rds_call *c)
{
    if (c->req->argc - 2 > PATTERNS_MAX)
        return rds_fail(c, SERVE_REFUSED, "ERR too many patterns: expected at most %d",
                        PATTERNS_MAX);
    const struct serve *s = c->svc->serve;
    size_t rows = sizeof redis_settings / sizeof *redis_settings + s->nsettings;
    bool want[ROWS_MAX];
    char mem[DEC_U64_MAX + 1];
    uint64_t n = 0;
    rows = rows < ROWS_MAX ? rows : ROWS_MAX;
    for (size_t i = 0; i < rows; i++)
        n += want[i] = wanted(c, setting(s, i, mem).name);
    resp_put_map(c->out, c->ses->proto, n);
    for (size_t i = 0; i < rows; i++) {
        struct serve_setting row = setting(s, i, mem);
        if (!want[i])
            continue;
        resp_put_bulk(c->out, span_str(row.name));
        resp_put_bulk(c->out, span_str(row.value));
    }
    return SERVE_OK;
}

const struct rds_sub rds_config_subs[] = {
    {"get", -3, config_get, NULL},
    {"help", 2, rds_help, NULL},
    {"resetstat", 2, NULL, "ERR CONFIG RESETSTAT is not allowed"},
    {"rewrite", 2, NULL, "ERR CONFIG REWRITE is not allowed"},
    {"set", -4, NULL, "ERR CONFIG SET is not allowed: change the configuration and reload it"},
    {.name = NULL},
};

/* ---- COMMAND ----------------------------------------------------------------------------------
 */

/* The ten fields of Redis 7, of which ACL categories, tips, key specifications and subcommands are
 * left empty. */
static void put_command(struct rds_call *c, const struct resp_cmd *cmd)
{
    int proto = c->ses->proto;
    resp_put_array(c->out, 10);
    resp_put_bulk(c->out, span_of(cmd->name, cmd->name_n));
    resp_put_integer(c->out, cmd->arity);
    resp_put_set(c->out, proto, (uint64_t)__builtin_popcount(cmd->flags));
    for (unsigned i = 0; i < RESP_FLAGS; i++)
        if (cmd->flags >> i & 1)
            resp_put_simple(c->out, span_str(resp_flag_name(i)));
    resp_put_integer(c->out, cmd->first);
    resp_put_integer(c->out, cmd->last);
    resp_put_integer(c->out, cmd->step);
    resp_put_set(c->out, proto, 0);
    for (int i = 0; i < 3; i++)
        resp_put_array(c->out, 0);
}

enum serve_result rds_command(struct rds_call *c)
{
    size_t n, start = c->out->n;
    struct serve *s = c->svc->serve;
    struct print *p = &s->prints[c->ses->proto == 3 ? PRINT_COMMAND3 : PRINT_COMMAND2];
    const struct resp_cmd *all = resp_commands(&n);
    if (print_put(p, clock_mono_us(s->clock), c->out))
        return SERVE_OK;
    resp_put_array(c->out, n);
    for (size_t i = 0; i < n; i++)
        put_command(c, &all[i]);
    print_note(p, c->out, start);
    return SERVE_OK;
}

static enum serve_result command_info(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span name;
    if (c->req->argc == 2)
        return rds_command(c);
    resp_put_array(c->out, c->req->argc - 2);
    while (resp_next_arg(&w, &name)) {
        const struct resp_cmd *cmd = resp_lookup(name);
        if (cmd)
            put_command(c, cmd);
        else
            resp_put_null(c->out, c->ses->proto);
    }
    return SERVE_OK;
}

static enum serve_result command_count(struct rds_call *c)
{
    size_t n;
    (void)resp_commands(&n);
    resp_put_integer(c->out, (int64_t)n);
    return SERVE_OK;
}

/* No documents: redis-cli and others do without. */
static enum serve_result command_docs(struct rds_call *c)
{
    resp_put_map(c->out, c->ses->proto, 0);
    return SERVE_OK;
}

/* LIST [FILTERBY PATTERN p | MODULE m | ACLCAT a]: no command is of a module or a category. */
static enum serve_result command_list(struct rds_call *c)
{
    const struct span *argv = c->req->argv;
    struct span pattern = SPAN("*");
    uint64_t found = 0;
    size_t n;
    const struct resp_cmd *all = resp_commands(&n);
    if (c->req->argc != 2) {
        bool known =
            c->req->argc == 5 && span_eq_nocase(argv[2], SPAN("filterby")) &&
            (span_eq_nocase(argv[3], SPAN("pattern")) || span_eq_nocase(argv[3], SPAN("module")) ||
             span_eq_nocase(argv[3], SPAN("aclcat")));
        if (!known || argv[4].n > GLOB_MAX)
            return rds_fail(c, SERVE_INVALID, "ERR syntax error");
        pattern = span_eq_nocase(argv[3], SPAN("pattern")) ? argv[4] : SPAN("");
    }
    for (size_t i = 0; i < n; i++)
        found += glob_match(pattern, span_of(all[i].name, all[i].name_n), true);
    resp_put_array(c->out, found);
    for (size_t i = 0; i < n; i++)
        if (glob_match(pattern, span_of(all[i].name, all[i].name_n), true))
            resp_put_bulk(c->out, span_of(all[i].name, all[i].name_n));
    return SERVE_OK;
}

const struct rds_sub rds_command_subs[] = {
    {"count", 2, command_count, NULL}, {"docs", -2, command_docs, NULL},
    {"help", 2, rds_help, NULL},       {"info", -2, command_info, NULL},
    {"list", -2, command_list, NULL},  {.name = NULL},
};
