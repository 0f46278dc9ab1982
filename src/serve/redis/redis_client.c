/*
 * CLIENT: what a connection says about itself. Of others it learns nothing.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"

#include <stdio.h>

#define ODD_NAME "cannot contain spaces, newlines or special characters."

bool rds_name_is_plain(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '!' || s.p[i] > '~')
            return false;
    return true;
}

const char *rds_name_fault(struct span name)
{
    static char text[96];
    if (!rds_name_is_plain(name))
        return "ERR Client names " ODD_NAME;
    if (name.n <= RDS_NAME_MAX)
        return NULL;
    (void)snprintf(text, sizeof text,
                   "ERR Client name is too long: expected at most %d bytes, found %zu",
                   RDS_NAME_MAX, name.n);
    return text;
}

void rds_set_name(struct rds_session *ses, struct span name)
{
    if (name.n > 0)
        memcpy(ses->name, name.p, name.n);
    ses->name_n = (uint8_t)name.n;
}

static enum serve_result get_id(struct rds_call *c)
{
    resp_put_integer(c->out, (int64_t)c->ses->id);
    return SERVE_OK;
}

static enum serve_result set_name(struct rds_call *c)
{
    const char *fault = rds_name_fault(c->req->argv[2]);
    if (fault)
        return rds_fail(c, SERVE_INVALID, "%s", fault);
    rds_set_name(c->ses, c->req->argv[2]);
    return rds_ok(c);
}

static enum serve_result get_name(struct rds_call *c)
{
    if (c->ses->name_n == 0)
        resp_put_null(c->out, c->ses->proto);
    else
        resp_put_bulk(c->out, span_of(c->ses->name, c->ses->name_n));
    return SERVE_OK;
}

/* Checked and forgotten: nobody could ask for it. */
static enum serve_result set_info(struct rds_call *c)
{
    static const char *const known[] = {"lib-name", "lib-ver"};
    struct span option = c->req->argv[2];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!span_eq_nocase(option, span_str(known[i])))
            continue;
        if (!rds_name_is_plain(c->req->argv[3]))
            return rds_fail(c, SERVE_INVALID, "ERR %s " ODD_NAME, known[i]);
        return rds_ok(c);
    }
    return rds_fail(c, SERVE_INVALID, "ERR Unrecognized option '%.*s'", RDS_SHOWN(option));
}

/* Nobody is evicted here and no key is ever touched: either is as asked. */
static enum serve_result on_off(struct rds_call *c)
{
    struct span arg = c->req->argv[2];
    if (!span_eq_nocase(arg, SPAN("on")) && !span_eq_nocase(arg, SPAN("off")))
        return rds_fail(c, SERVE_INVALID, "ERR syntax error");
    return rds_ok(c);
}

static enum serve_result get_redir(struct rds_call *c)
{
    resp_put_integer(c->out, -1);
    return SERVE_OK;
}

/* All fields of Redis 7.0, for clients take them for granted. */
static void put_self(struct rds_call *c, bool shown)
{
    const struct rds_session *ses = c->ses;
    char text[512];
    struct buf b;
    int64_t age = (c->turn->wall_ms - ses->since_ms) / 1000;
    buf_init(&b, text, sizeof text);
    if (shown)
        buf_printf(&b,
                   "id=%llu addr=0.0.0.0:0 laddr=0.0.0.0:0 fd=-1 name=%.*s age=%lld idle=0 "
                   "flags=%s db=%u sub=%u psub=%u ssub=%u multi=%d qbuf=0 qbuf-free=0 argv-mem=0 "
                   "multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=client|%s "
                   "user=%s redir=-1 resp=%u\n",
                   (unsigned long long)ses->id, (int)ses->name_n, ses->name,
                   (long long)(age > 0 ? age : 0),
                   ses->subs    ? "P"
                   : ses->multi ? "x"
                                : "N",
                   ses->db, rds_subs_count(ses, RDS_CHANNEL), rds_subs_count(ses, RDS_PATTERN),
                   rds_subs_count(ses, RDS_SHARD), rds_multi_length(ses), c->sub->name,
                   access_user_name(c->svc->serve, &ses->access), ses->proto);
    resp_put_verbatim(c->out, ses->proto, buf_span(&b));
}

static enum serve_result info(struct rds_call *c)
{
    put_self(c, true);
    return SERVE_OK;
}

/* [TYPE type]: normal, or pubsub when subscribed. */
static enum serve_result list_type(struct rds_call *c)
{
    static const char *const types[] = {"normal", "pubsub", "master", "replica", "slave"};
    struct span type = c->req->argv[3];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (span_eq_nocase(type, span_str(types[i]))) {
            put_self(c, i == (c->ses->subs ? 1 : 0));
            return SERVE_OK;
        }
    }
    return rds_fail(c, SERVE_INVALID, "ERR Unknown client type '%.*s'", RDS_SHOWN(type));
}

/* [ID id …] */
static enum serve_result list_ids(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 3);
    struct span arg;
    uint64_t id;
    bool shown = false;
    while (resp_next_arg(&w, &arg)) {
        if (!dec_u64(arg, &id) || id == 0)
            return rds_fail(c, SERVE_INVALID, "ERR Invalid client ID");
        shown |= id == c->ses->id;
    }
    put_self(c, shown);
    return SERVE_OK;
}

static enum serve_result list(struct rds_call *c)
{
    uint32_t argc = c->req->argc;
    if (argc == 2)
        return info(c);
    if (argc == 4 && span_eq_nocase(c->req->argv[2], SPAN("type")))
        return list_type(c);
    if (argc >= 4 && span_eq_nocase(c->req->argv[2], SPAN("id")))
        return list_ids(c);
    return rds_fail(c, SERVE_INVALID, "ERR syntax error");
}

#define CACHING "ERR client-side caching is not allowed: an ID from a cache would be used twice"

const struct rds_sub rds_client_subs[] = {
    {"caching", -2, NULL, CACHING, RDS_HERE},
    {"getname", 2, get_name, NULL, RDS_STATE},
    {"getredir", 2, get_redir, NULL, RDS_STATE},
    {"help", 2, rds_help, NULL, RDS_HERE},
    {"id", 2, get_id, NULL, RDS_BEST},
    {"info", 2, info, NULL, RDS_STATE},
    {"kill", -3, NULL, "ERR CLIENT KILL is not allowed", RDS_PASS},
    {"list", -2, list, NULL, RDS_PASS},
    {"no-evict", 3, on_off, NULL, RDS_STATE},
    {"no-touch", 3, on_off, NULL, RDS_STATE},
    {"pause", -3, NULL, "ERR CLIENT PAUSE is not allowed", RDS_PASS},
    {"reply", 3, NULL, "ERR CLIENT REPLY is not supported: every request is answered", RDS_PASS},
    {"setinfo", 4, set_info, NULL, RDS_STATE},
    {"setname", 3, set_name, NULL, RDS_STATE},
    {"tracking", -2, NULL, CACHING, RDS_HERE},
    {"trackinginfo", 2, NULL, CACHING, RDS_HERE},
    {"unblock", -3, NULL, "ERR CLIENT UNBLOCK is not supported: no command blocks", RDS_PASS},
    {"unpause", 2, NULL, "ERR CLIENT UNPAUSE is not allowed", RDS_PASS},
    {.name = NULL},
};
