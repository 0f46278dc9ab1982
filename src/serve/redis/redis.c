/*
 * The Redis service: from bytes to a handler.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"
#include "base/rng.h"
#include "net/upstream/upstream.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define PARSED     7 /* net_step.cost of what has to be parsed */
#define TEXT_HEAD  (sizeof "$00\r\n" - 1)
#define NO_CLUSTER "ERR This instance has cluster support disabled"

/* Every verb has an answer; a unit test sends each command that there is. */
static const struct rds_verb verbs[RESP_VERB_COUNT] = {
    [RESP_OTHER] = {.label = "other", .fn = rds_other},
    [RESP_AUTH] = {.label = "auth", .fn = rds_auth, .at = RDS_BEST},
    [RESP_CLIENT] = {.label = "client", .subs = rds_client_subs},
    [RESP_CLUSTER] = {.label = "cluster", .refusal = NO_CLUSTER},
    [RESP_COMMAND] = {.label = "command",
                      .fn = rds_command,
                      .subs = rds_command_subs,
                      .at = RDS_BEST,
                      .dear = true},
    [RESP_CONFIG] = {.label = "config", .subs = rds_config_subs, .at = RDS_BEST, .dear = true},
    [RESP_DBSIZE] = {.label = "dbsize", .fn = rds_dbsize},
    [RESP_DEBUG] = {.label = "debug", .refusal = "ERR DEBUG is not allowed"},
    [RESP_DISCARD] = {.label = "discard", .fn = rds_discard, .when = RDS_IN_MULTI, .at = RDS_HERE},
    [RESP_ECHO] = {.label = "echo", .fn = rds_echo, .at = RDS_HERE},
    [RESP_EVAL] = {.label = "eval",
                   .refusal = "ERR scripts and functions are not supported: read IDs with GET, "
                              "MGET or LPOP"},
    [RESP_EXEC] =
        {.label = "exec", .fn = rds_exec, .when = RDS_IN_MULTI, .at = RDS_HERE, .dear = true},
    [RESP_EXISTS] = {.label = "exists", .fn = rds_exists},
    [RESP_EXPIRETIME] = {.label = "expiretime", .fn = rds_ttl},
    [RESP_FLUSH] = {.label = "flushall",
                    .refusal = "ERR flushing is not allowed: IDs are never given out twice"},
    [RESP_GET] = {.label = "get", .fn = rds_get},
    [RESP_GETDEL] = {.label = "getdel", .fn = rds_get},
    [RESP_GETEX] = {.label = "getex", .fn = rds_getex},
    [RESP_HELLO] = {.label = "hello", .fn = rds_hello, .at = RDS_STATE},
    [RESP_INCR] = {.label = "incr", .fn = rds_incr},
    [RESP_INCRBY] = {.label = "incrby", .fn = rds_incr},
    [RESP_INFO] = {.label = "info", .fn = rds_info, .at = RDS_BEST, .dear = true},
    [RESP_KEYS] = {.label = "keys", .fn = rds_keys, .dear = true},
    [RESP_LATENCY] = {.label = "latency", .subs = rds_latency_subs},
    [RESP_LPOP] = {.label = "lpop", .fn = rds_pop},
    [RESP_MGET] = {.label = "mget", .fn = rds_mget},
    [RESP_MONITOR] = {.label = "monitor",
                      .refusal = "ERR MONITOR is not allowed",
                      .at = RDS_TUNNEL},
    [RESP_MULTI] = {.label = "multi", .fn = rds_multi, .when = RDS_IN_MULTI, .at = RDS_HERE},
    [RESP_PEXPIRETIME] = {.label = "pexpiretime", .fn = rds_ttl},
    [RESP_PING] = {.label = "ping", .fn = rds_ping, .when = RDS_SUBSCRIBED, .at = RDS_HERE},
    [RESP_PSUBSCRIBE] = {.label = "psubscribe", .fn = rds_subscribe, .when = RDS_SUBSCRIBED},
    [RESP_PTTL] = {.label = "pttl", .fn = rds_ttl},
    [RESP_PUNSUBSCRIBE] = {.label = "punsubscribe", .fn = rds_unsubscribe, .when = RDS_SUBSCRIBED},
    [RESP_QUIT] = {.label = "quit",
                   .fn = rds_quit,
                   .when = RDS_IN_MULTI | RDS_SUBSCRIBED,
                   .at = RDS_HERE},
    [RESP_RANDOMKEY] = {.label = "randomkey", .fn = rds_randomkey},
    [RESP_READONLY] = {.label = "readonly", .refusal = NO_CLUSTER},
    [RESP_RESET] = {.label = "reset",
                    .fn = rds_reset,
                    .when = RDS_IN_MULTI | RDS_SUBSCRIBED,
                    .at = RDS_HERE},
    [RESP_RPOP] = {.label = "rpop", .fn = rds_pop},
    [RESP_SCAN] = {.label = "scan", .fn = rds_scan, .dear = true},
    [RESP_SELECT] = {.label = "select", .fn = rds_select, .at = RDS_BEST},
    [RESP_SHUTDOWN] = {.label = "shutdown",
                       .refusal = "ERR SHUTDOWN is not allowed: end the process with SIGTERM"},
    [RESP_SLOWLOG] = {.label = "slowlog", .subs = rds_slowlog_subs},
    [RESP_SPOP] = {.label = "spop", .fn = rds_pop},
    [RESP_SRANDMEMBER] = {.label = "srandmember", .fn = rds_pop},
    [RESP_SSUBSCRIBE] = {.label = "ssubscribe", .fn = rds_subscribe, .when = RDS_SUBSCRIBED},
    [RESP_SUBSCRIBE] = {.label = "subscribe", .fn = rds_subscribe, .when = RDS_SUBSCRIBED},
    [RESP_SUNSUBSCRIBE] = {.label = "sunsubscribe", .fn = rds_unsubscribe, .when = RDS_SUBSCRIBED},
    [RESP_SYNC] = {.label = "sync",
                   .refusal = "ERR replication is not supported",
                   .at = RDS_TUNNEL},
    [RESP_TIME] = {.label = "time", .fn = rds_time, .at = RDS_BEST},
    [RESP_TTL] = {.label = "ttl", .fn = rds_ttl},
    [RESP_TYPE] = {.label = "type", .fn = rds_type},
    [RESP_UNSUBSCRIBE] = {.label = "unsubscribe", .fn = rds_unsubscribe, .when = RDS_SUBSCRIBED},
    [RESP_UNWATCH] = {.label = "unwatch", .fn = rds_unwatch, .at = RDS_STATE},
    [RESP_WATCH] = {.label = "watch", .fn = rds_watch, .when = RDS_IN_MULTI},
};

/* ---- counting ---------------------------------------------------------------------------------
 */

static_assert(RESP_VERB_COUNT <= SERVE_COMMANDS, "every verb is counted apart");
static_assert(RESP_OTHER == 0, "verb v is counted at v - 1, what is left at the end");

static const char *command_label(unsigned index)
{
    if (index < RESP_VERB_COUNT - 1)
        return verbs[index + 1].label;
    return index == SERVE_COMMANDS - 1 ? verbs[RESP_OTHER].label : NULL;
}

unsigned rds_counted(const struct rds_call *c)
{
    unsigned verb = c->cmd ? c->cmd->verb : RESP_OTHER;
    return verb ? verb - 1 : SERVE_COMMANDS - 1;
}

static void count(const struct rds_call *c, enum serve_result r)
{
    serve_count(c->svc->serve, SERVE_REDIS, rds_counted(c), r);
}

/* ---- replies ----------------------------------------------------------------------------------
 */

enum serve_result rds_fail(struct rds_call *c, enum serve_result r, const char *fmt, ...)
{
    char text[512 + ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    buf_truncate(c->out, c->start);
    resp_put_error(c->out, span_of(text, len));
    return r;
}

enum serve_result rds_ok(struct rds_call *c)
{
    BUF_PUT_LIT(c->out, "+OK\r\n");
    return SERVE_OK;
}

enum serve_result rds_wrong_arity(struct rds_call *c)
{
    return rds_fail(c, SERVE_INVALID, "ERR wrong number of arguments for '%s%s%s' command",
                    c->cmd->name, c->sub ? "|" : "", c->sub ? c->sub->name : "");
}

bool rds_integer(struct rds_call *c, struct span arg, int64_t *v)
{
    if (dec_canonical_i64(arg, v))
        return true;
    (void)rds_fail(c, SERVE_INVALID, "ERR value is not an integer or out of range");
    return false;
}

static void put_upper(struct buf *b, const char *s)
{
    for (; *s; s++)
        buf_put_char(b, *s >= 'a' && *s <= 'z' ? (char)(*s - ('a' - 'A')) : *s);
}

/* As Redis, but for the explanations: what is refused is left out. */
enum serve_result rds_help(struct rds_call *c)
{
    size_t n = 0;
    for (const struct rds_sub *s = c->verb->subs; s->name; s++)
        n += s->fn != NULL;
    resp_put_array(c->out, n + 1);
    BUF_PUT_LIT(c->out, "+");
    put_upper(c->out, c->cmd->name);
    BUF_PUT_LIT(c->out, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n");
    for (const struct rds_sub *s = c->verb->subs; s->name; s++) {
        if (!s->fn)
            continue;
        BUF_PUT_LIT(c->out, "+");
        put_upper(c->out, s->name);
        BUF_PUT_LIT(c->out, "\r\n");
    }
    return SERVE_OK;
}

/* ---- dispatch ---------------------------------------------------------------------------------
 */

static bool find_sub(struct rds_call *c)
{
    struct span name = c->req->argv[1];
    const struct rds_sub *s = c->verb->subs;
    while (s->name && !span_eq_nocase(span_str(s->name), name))
        s++;
    if (!s->name) {
        char command[sizeof c->cmd->name * 2];
        struct buf b;
        buf_init(&b, command, sizeof command);
        put_upper(&b, c->cmd->name);
        (void)rds_fail(c, SERVE_INVALID, "ERR unknown subcommand '%.*s'. Try %.*s HELP.",
                       RDS_SHOWN(name), (int)b.n, b.p);
        return false;
    }
    c->sub = s;
    if (s->arity >= 0 ? c->req->argc == (uint32_t)s->arity : c->req->argc >= (uint32_t)-s->arity)
        return true;
    (void)rds_wrong_arity(c);
    return false;
}

bool rds_find(struct rds_call *c)
{
    c->sub = NULL;
    c->verb = &verbs[RESP_OTHER];
    c->cmd = c->req->seen ? resp_lookup(c->req->argv[0]) : NULL;
    if (!c->cmd) {
        resp_put_unknown(c->out, c->req);
        return false;
    }
    if (!resp_arity_ok(c->cmd, c->req->argc)) {
        resp_put_wrong_arity(c->out, c->cmd);
        return false;
    }
    c->verb = &verbs[c->cmd->verb];
    return (!c->verb->subs || c->req->seen < 2 || find_sub(c)) && rds_allowed(c);
}

enum serve_result rds_run(struct rds_call *c)
{
    enum serve_result (*fn)(struct rds_call *) = c->sub ? c->sub->fn : c->verb->fn;
    const char *refusal = c->sub ? c->sub->refusal : c->verb->refusal;
    enum serve_result r = fn ? fn(c) : rds_fail(c, SERVE_REFUSED, "%s", refusal);
    if (r == RDS_PARKED && c->out->failed) /* no waiting makes room: it is over, see finish */
        r = SERVE_REFUSED;
    if (r == RDS_PARKED)
        return r;
    c->ses->done = 0;
    count(c, r);
    return r;
}

enum serve_result rds_reject(struct rds_call *c, enum serve_result r)
{
    c->ses->dirty |= c->ses->multi;
    count(c, r);
    return r;
}

enum serve_result rds_request(struct rds_call *c)
{
    struct rds_session *ses = c->ses;
    if (!rds_find(c))
        return rds_reject(c, SERVE_INVALID);
    if (c->req->truncated)
        return rds_reject(c, rds_oversized(c));
    bool subscribed = ses->subs || upstream_subscribed(c->turn);
    if (subscribed && ses->proto == 2 && !(c->verb->when & RDS_SUBSCRIBED))
        return rds_reject(c,
                          rds_fail(c, SERVE_INVALID,
                                   "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE "
                                   "/ PING / QUIT / RESET are allowed in this context",
                                   c->cmd->name));
    if (ses->multi && !(c->verb->when & RDS_IN_MULTI)) {
        enum serve_result r = rds_queue(c);
        return r == SERVE_OK ? r : rds_reject(c, r);
    }
    return rds_run(c);
}

/* ---- the service ------------------------------------------------------------------------------
 */

/* The remainder of a request that was refused; its reply is written. */
__attribute__((noinline)) static struct net_step swallow(struct rds_service *svc,
                                                         struct rds_session *ses, struct span in,
                                                         struct net_turn *turn, struct buf *out)
{
    bool done, bad;
    if (ses->rest->passed_on)
        return rds_stream(svc, ses, in, turn, out);
    size_t used = resp_swallow(&ses->rest->swallow, in, &done, &bad);
    if (bad)
        buf_put_span(out, ses->rest->swallow.error);
    if (bad || done) {
        free(ses->rest);
        ses->rest = NULL;
    }
    return (struct net_step){.verdict = bad    ? NET_CLOSE
                                        : done ? NET_DONE
                                               : NET_MORE,
                             .used = bad ? in.n : used,
                             .begun = !done};
}

static struct net_step start_swallow(struct rds_call *c, size_t used)
{
    struct rds_rest *rest = calloc(1, sizeof *rest);
    if (!rest)
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    rest->swallow = c->req->swallow;
    c->ses->rest = rest;
    return (struct net_step){.verdict = NET_MORE, .used = used, .begun = true};
}

static void begin(struct rds_service *svc, struct rds_session *ses, const struct net_turn *turn)
{
    ses->id = ++svc->clients;
    ses->since_ms = turn->wall_ms;
    ses->proto = 2;
}

static struct net_step finish(struct rds_call *c, enum serve_result r)
{
    size_t used = c->raw.n;
    if (r == RDS_PARKED) {
        c->step.used = 0;
        c->step.partial = c->out->n > c->turn->reply_start;
        return c->step;
    }
    if (c->out->failed) {
        c->start = c->turn->reply_start;
        (void)rds_fail(c, r, "ERR the reply is too long: expected at most %zu bytes",
                       c->out->cap - c->start);
    }
    if (c->req->truncated && !c->close)
        return start_swallow(c, used);
    return (struct net_step){.verdict = c->close ? NET_CLOSE : NET_DONE,
                             .used = used,
                             .passed = r == SERVE_PASSED,
                             .begun = c->ses->rest != NULL,
                             .cost = c->verb && c->verb->dear ? NET_DEAR : PARSED};
}

/* For a session that is set up, and in no state that gives a GET another meaning. */
static bool plain(const struct rds_service *svc, const struct rds_session *ses)
{
    return !ses->multi && !ses->passes && !ses->subs && access_plain(svc->serve, &ses->access);
}

/* What rds_get does, for the request noted; false: nothing was done, it has to be parsed. */
static bool get_recent(struct rds_service *svc, struct recent_request *q, struct net_turn *turn,
                       struct buf *out)
{
    int64_t id;
    size_t start = out->n;
    if (!issuer_more(q->name, turn, &id))
        return false;
    if (!recent_put(q, id, out) && !recent_put_short(q, id, out)) {
        resp_put_bulk_i64(out, id);
        recent_keep(q, id, out, start, sizeof "\r\n" - 1);
    }
    serve_count(svc->serve, SERVE_REDIS, RESP_GET - 1, SERVE_OK);
    return true;
}

/* A text of that number, which is written where it belongs behind a length of two digits: nearly
 * all have one. out has room. */
static void put_text(struct buf *out, const struct generator *g, int64_t number, int64_t now_ms)
{
    char *at = out->p + out->n, *text = at + TEXT_HEAD;
    size_t n = generator_text(g, number, now_ms, text).n;
    if (n < 10 || n > 99) {
        char mem[GENERATOR_TEXT_MAX]; /* here, as what is declared is cleared */
        memcpy(mem, text, n);
        resp_put_bulk(out, span_of(mem, n));
        return;
    }
    memcpy(at, "$00\r\n", TEXT_HEAD);
    at[1] = (char)('0' + n / 10);
    at[2] = (char)('0' + n % 10);
    memcpy(text + n, "\r\n", 2);
    buf_took(out, TEXT_HEAD + n + 2);
}

/* The same of a text, which costs more than a call. */
static bool get_recent_text(struct rds_service *svc, const struct recent_request *q,
                            struct net_turn *turn, struct buf *out)
{
    int64_t number;
    if (out->failed || out->cap - out->n < TEXT_HEAD + GENERATOR_TEXT_MAX + 2 ||
        !issuer_more_text(q->name, turn, &number))
        return false;
    put_text(out, q->name->generator, number, turn->wall_ms);
    serve_count(svc->serve, SERVE_REDIS, RESP_GET - 1, SERVE_OK);
    return true;
}

static struct net_step serve_parsed(struct rds_service *svc, struct rds_session *ses,
                                    struct span in, struct net_turn *turn, struct buf *out)
{
    size_t used;
    enum wire_status status = resp_parse(in, &svc->req, &used);
    if (status == WIRE_MORE)
        return (struct net_step){.verdict = NET_MORE};
    if (status != WIRE_REQ) {
        if (upstream_pending(turn) > 0)
            return (struct net_step){.verdict = NET_BEHIND};
        serve_count(svc->serve, SERVE_REDIS, SERVE_COMMANDS - 1, SERVE_INVALID);
        buf_put_span(out, svc->req.error);
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    }
    if (svc->req.argc == 0)
        return ses->there ? rds_blank(ses, span_of(in.p, used), turn)
                          : (struct net_step){.verdict = NET_DONE, .used = used};
    if (ses->id == 0)
        begin(svc, ses, turn);
    turn->front = span_of(in.p, used);
    turn->behind = span_skip(in, used);
    struct rds_call c = {.svc = svc,
                         .ses = ses,
                         .req = &svc->req,
                         .turn = turn,
                         .out = out,
                         .raw = {in.p, used},
                         .start = turn->reply_start};
    enum serve_result r = svc->net.upstream ? rds_through(&c) : rds_request(&c);
    if (r != RDS_PARKED)
        rds_merge_give_up(ses);
    if (c.name)
        recent_note(&svc->recent, c.raw, span_of(in.p, 0), c.name);
    ses->plain = plain(svc, ses);
    ses->forwards = rds_forwards(svc, ses, turn);
    return finish(&c, r);
}

/* Not inline, so that the usual request does not pay for this one's frame, nor for telling it what
 * was found: that was the latest. */
__attribute__((noinline)) static struct net_step serve_other(struct rds_service *svc,
                                                             struct rds_session *ses,
                                                             struct span in, struct net_turn *turn,
                                                             struct buf *out)
{
    const struct recent_request *q = &svc->recent.request[svc->recent.at];
    struct net_step step;
    if (ses->plain && recent_is(q, in) && get_recent_text(svc, q, turn, out))
        return (struct net_step){.verdict = NET_DONE, .used = q->n};
    if (ses->forwards && rds_forward(svc, in, turn, &step))
        return step;
    return serve_parsed(svc, ses, in, turn, out);
}

static struct net_step serve(struct net_service *net, void *session, struct span in,
                             struct net_turn *turn, struct buf *out)
{
    struct rds_service *svc = (struct rds_service *)(void *)net;
    struct rds_session *ses = session;
    if (ses->rest)
        return swallow(svc, ses, in, turn, out);
    if (in.n == 0) /* the end of nearly every turn */
        return (struct net_step){.verdict = NET_MORE};
    struct recent_request *q = ses->plain ? recent_find(&svc->recent, in) : NULL;
    if (q && get_recent(svc, q, turn, out))
        return (struct net_step){.verdict = NET_DONE, .used = q->n};
    return serve_other(svc, ses, in, turn, out);
}

static size_t holds(const struct net_service *net, const void *session)
{
    (void)net;
    const struct rds_session *ses = session;
    size_t n = ses->rest ? sizeof *ses->rest : 0;
    if (ses->there)
        n += sizeof *ses->there;
    return n + rds_multi_holds(ses) + rds_subs_holds(ses) + rds_merge_holds(ses);
}

static bool listens(const struct net_service *net, const void *session)
{
    (void)net;
    return ((const struct rds_session *)session)->subs != NULL;
}

static bool stands(const struct net_service *net, const void *session)
{
    return access_stands(((const struct rds_service *)(const void *)net)->serve,
                         &((const struct rds_session *)session)->access);
}

static void closed(struct net_service *net, void *session)
{
    struct rds_session *ses = session;
    access_close(((struct rds_service *)(void *)net)->serve, &ses->access);
    rds_multi_end(ses);
    rds_subs_end(ses);
    rds_through_end(ses);
    free(ses->rest);
    ses->rest = NULL;
}

static_assert(offsetof(struct rds_session, access) == 0, "access_open and the others take it");

static struct net_service *make(struct serve *s)
{
    /* Whatever else it says, it says to one that was let in: LOADING, NOPERM, MISCONF, BUSY. */
    static const struct span refusals[] = {SPAN("-ERR max number of clients"), SPAN("-DENIED"),
                                           SPAN("-NOAUTH"), SPAN("")};
    static const struct span faults[] = {
        SPAN("-LOADING "),    SPAN("-OOM "),         SPAN("-MISCONF "),
        SPAN("-READONLY "),   SPAN("-BUSY "),        SPAN("-MASTERDOWN "),
        SPAN("-NOREPLICAS "), SPAN("-CLUSTERDOWN "), SPAN("")};
    static const struct upstream_greeting probe = {
        .bytes = SPAN("*1\r\n$4\r\nPING\r\n"), .kind = FRAME_RESP, .no = refusals, .words = 1};
    struct rds_service *svc = calloc(1, sizeof *svc);
    if (!svc)
        return NULL;
    svc->net = (struct net_service){.name = protocol_redis.name,
                                    .session_size = sizeof(struct rds_session),
                                    .serve = serve,
                                    .open = access_open,
                                    .stranger = access_stranger,
                                    .user = access_user,
                                    .checked = access_checked,
                                    .holds = holds,
                                    .listens = listens,
                                    .close = closed,
                                    .stands = stands,
                                    .pack = rds_pack,
                                    .unpack = rds_unpack,
                                    .frame = frame_resp,
                                    .probe = &probe,
                                    .refusals = refusals,
                                    .faults = faults,
                                    .lost = SPAN(""), /* it may have been carried out: nobody can
                                                         say, so the connection closes */
                                    .heard = rds_heard,
                                    .refusal = SPAN("-ERR max number of clients reached\r\n")};
    svc->serve = s;
    recent_init(&svc->recent);
    for (size_t i = 0; i < RDS_RUN_ID; i++)
        svc->run_id[i] = "0123456789abcdef"[rng_below(rng_system(), 16)];
    return &svc->net;
}

static void forget(struct net_service *net)
{
    recent_init(&((struct rds_service *)net)->recent);
}

/* Whoever looks by PING whether the Redis is there should know who answers. */
static const char *note(const struct serve *s)
{
    return s->ping_there ? "; PING is answered there" : "; PING is answered here";
}

const struct protocol protocol_redis = {
    .name = "redis",
    .title = "Redis",
    .make = make,
    .forget = forget,
    .command = command_label,
    .for_ids = true,
    .logins = rds_logins,
    .note = note,
};
