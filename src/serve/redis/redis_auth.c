/*
 * HELLO and AUTH, and what a session may do before and after. Texts and order of checks are those
 * of Redis 7.0.15.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"
#include "wire/resp_keys.h"

#define WRONGPASS "WRONGPASS invalid username-password pair or user is disabled."
#define NO_PASSWORD                                                                                \
    "ERR AUTH <password> called without any password configured for the default user. Are you "    \
    "sure your configuration is correct?"
#define HELLO_NOAUTH                                                                               \
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH " \
    "<user> <pass> option can be used to authenticate the client and select the RESP protocol "    \
    "version at the same time"

/* ---- before a command is carried out ----------------------------------------------------------
 */

/* The text does not begin with NOPERM, which some clients take for an error in their setup and give
 * up on. */
static bool keys_allowed(struct rds_call *c)
{
    struct resp_range ranges[RESP_RANGES];
    unsigned n = resp_key_ranges(c->cmd, c->req, ranges);
    struct resp_walk w = resp_walk_from(c->req, 0);
    uint32_t seen = c->req->seen - c->req->truncated;
    struct span key;
    for (uint32_t i = 0; n > 0 && i < seen && resp_next_arg(&w, &key); i++) {
        if (!resp_is_key(ranges, n, i) || access_may(c->svc->serve, &c->ses->access, key))
            continue;
        (void)rds_fail(c, SERVE_REFUSED, "ERR id key '%.*s' is not allowed to user '%s'",
                       RDS_SHOWN(key), access_user_name(c->svc->serve, &c->ses->access));
        return false;
    }
    return true;
}

bool rds_allowed(struct rds_call *c)
{
    const struct access *a = &c->ses->access;
    if (a->mode < ACCESS_REQUIRED)
        return true;
    if (access_granted(a))
        return keys_allowed(c);
    if (c->cmd->flags & RESP_F_NO_AUTH)
        return true;
    (void)rds_fail(c, SERVE_REFUSED, "%sNOAUTH Authentication required.",
                   c->cmd->verb == RESP_EXEC ? "EXECABORT Transaction discarded because of: " : "");
    if (c->cmd->verb == RESP_EXEC)
        rds_multi_end(c->ses);
    return false;
}

/* ---- AUTH -------------------------------------------------------------------------------------
 */

/* SERVE_OK: nothing is written yet. */
static enum serve_result login(struct rds_call *c, struct span name, struct span password)
{
    struct access *a = &c->ses->access;
    if (a->mode == ACCESS_OFF && !span_eq(name, SPAN("default")))
        return rds_fail(c, SERVE_REFUSED, WRONGPASS);
    enum auth_answer r = access_login(c->svc->serve, a, c->turn, name, password);
    if (r == AUTH_YES)
        return SERVE_OK;
    if (r == AUTH_NO)
        return rds_fail(c, SERVE_REFUSED, WRONGPASS);
    c->step = (struct net_step){.verdict = NET_HOLD};
    return RDS_PARKED;
}

enum serve_result rds_auth(struct rds_call *c)
{
    const struct span *argv = c->req->argv;
    if (c->req->argc > 3)
        return rds_fail(c, SERVE_INVALID, "ERR syntax error");
    if (c->req->argc == 2 && c->ses->access.mode == ACCESS_OFF)
        return rds_fail(c, SERVE_REFUSED, NO_PASSWORD);
    enum serve_result r =
        c->req->argc == 2 ? login(c, SPAN("default"), argv[1]) : login(c, argv[1], argv[2]);
    return r == SERVE_OK ? rds_ok(c) : r;
}

/* ---- HELLO ------------------------------------------------------------------------------------
 */

static void put_hello(struct rds_call *c)
{
    struct buf *out = c->out;
    resp_put_map(out, c->ses->proto, 7);
    resp_put_bulk(out, SPAN("server"));
    resp_put_bulk(out, SPAN("redis"));
    resp_put_bulk(out, SPAN("version"));
    resp_put_bulk(out, SPAN(RDS_VERSION));
    resp_put_bulk(out, SPAN("proto"));
    resp_put_integer(out, c->ses->proto);
    resp_put_bulk(out, SPAN("id"));
    resp_put_integer(out, (int64_t)c->ses->id);
    resp_put_bulk(out, SPAN("mode"));
    resp_put_bulk(out, SPAN("standalone"));
    resp_put_bulk(out, SPAN("role"));
    resp_put_bulk(out, SPAN("master"));
    resp_put_bulk(out, SPAN("modules"));
    resp_put_array(out, 0);
}

struct hello {
    struct span client;         /* SETNAME; p is NULL: not given */
    struct span name, password; /* AUTH; likewise */
};

/* [AUTH user pass] [SETNAME name] ...; false: the error is written. */
static bool hello_options(struct rds_call *c, struct hello *h)
{
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span option;
    while (resp_next_arg(&w, &option)) {
        bool setname = resp_is_word(option, "setname");
        bool auth = resp_is_word(option, "auth");
        const char *fault = NULL;
        if (!(setname && resp_next_arg(&w, &h->client)) &&
            !(auth && resp_next_arg(&w, &h->name) && resp_next_arg(&w, &h->password))) {
            (void)rds_fail(c, SERVE_INVALID, "ERR Syntax error in HELLO option '%.*s'",
                           RDS_SHOWN(option));
            return false;
        }
        if (setname)
            fault = rds_name_fault(h->client);
        if (fault) {
            (void)rds_fail(c, SERVE_INVALID, "%s", fault);
            return false;
        }
    }
    return true;
}

enum serve_result rds_hello(struct rds_call *c)
{
    int64_t proto = c->ses->proto;
    struct hello h = {.client = {NULL, 0}};
    if (c->req->argc > 1 && !dec_canonical_i64(c->req->argv[1], &proto))
        return rds_fail(c, SERVE_INVALID, "ERR Protocol version is not an integer or out of range");
    if (proto < 2 || proto > 3)
        return rds_fail(c, SERVE_INVALID, "NOPROTO unsupported protocol version");
    if (!hello_options(c, &h))
        return SERVE_INVALID;
    enum serve_result r = h.name.p ? login(c, h.name, h.password) : SERVE_OK;
    if (r != SERVE_OK)
        return r;
    if (!access_granted(&c->ses->access))
        return rds_fail(c, SERVE_REFUSED, HELLO_NOAUTH);
    if (h.client.p)
        rds_set_name(c->ses, h.client);
    c->ses->proto = (uint8_t)proto;
    put_hello(c);
    return SERVE_OK;
}
