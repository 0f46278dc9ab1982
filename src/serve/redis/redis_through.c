/*
 * With an upstream: which requests go there, and what has to be known of them for the replies to be
 * told apart. A request that is answered here waits for the replies before it.
 *
 *     all keys are IDs      -> here                    no keys  -> by the command's rds_at
 *     none is               -> there                   MULTI    -> where its first request belongs
 *     some are: MGET        -> there, and merged
 *               all others  -> an error
 *
 * Of a command that is not known the first arg is taken for a key, as of nearly all that are.
 */
#include "serve/redis/redis_through.h"

#include "wire/resp_keys.h"

#include <stdlib.h>

enum keys {
    KEYS_NONE,
    KEYS_IDS,
    KEYS_FOREIGN,
    KEYS_MIXED
};

static enum keys keys_of(struct rds_call *c)
{
    struct resp_range ranges[RESP_RANGES] = {{1, 1, 1}};
    unsigned n = c->cmd ? resp_key_ranges(c->cmd, c->req, ranges) : 1;
    struct resp_walk w = resp_walk_from(c->req, 0);
    unsigned kinds = KEYS_NONE;
    struct span arg;
    if (n == 0)
        return KEYS_NONE;
    for (uint32_t i = 0; i < c->req->whole && kinds != KEYS_MIXED && resp_next_arg(&w, &arg); i++)
        if (resp_is_key(ranges, n, i))
            kinds |= names_find(&rds_issuer(c)->names, arg) ? KEYS_IDS : KEYS_FOREIGN;
    return c->cmd ? (enum keys)kinds : kinds & KEYS_IDS ? KEYS_IDS : KEYS_NONE;
}

static enum serve_result merge(struct rds_call *c)
{
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    enum upstream_ready is = rds_ready(c, false);
    if (is == UPSTREAM_BUSY)
        return rds_behind(c);
    if (is == UPSTREAM_DOWN)
        return rds_unavailable(c);
    c->ses->passes = true;
    if (rds_introduce(c, is))
        return rds_behind(c);
    enum serve_result r = rds_merge(c);
    if (r != RDS_PARKED)
        serve_count(c->svc->serve, SERVE_REDIS, RESP_MGET - 1, r);
    return r;
}

bool rds_has_password(const struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span arg;
    bool found = rds_is_verb(c, RESP_AUTH);
    while (!found && rds_is_verb(c, RESP_HELLO) && resp_next_arg(&w, &arg))
        found = resp_is_word(arg, "auth");
    return found;
}

/* ---- transactions -----------------------------------------------------------------------------
 *
 *     MULTI (+OK)  ->  an ID: it is ours     ->  IDs and PING; anything else is an error
 *                      else: the upstream's  ->  anything but IDs
 */

static const struct span multi = SPAN("*1\r\n$5\r\nMULTI\r\n");
static const struct span discard = SPAN("*1\r\n$7\r\nDISCARD\r\n");

/* What would have to be followed at EXEC, or is ours and may not go there with what was queued. */
static const char *barred_in_multi(const struct rds_call *c)
{
    if (rds_is_sub(c, "reply"))
        return "ERR CLIENT REPLY within a transaction is not supported";
    if (rds_has_password(c) && c->ses->access.mode != ACCESS_OFF)
        return "ERR a login within a transaction is not supported";
    if (rds_is_verb(c, RESP_HELLO))
        return "ERR HELLO within a transaction is not supported";
    return NULL;
}

static enum serve_result refuse_subscribing(struct rds_call *c)
{
    return rds_through_refuse(c, SERVE_REFUSED,
                              "ERR subscribing within a transaction is not supported");
}

/* CLIENT REPLY OFF: the server answers nothing, nor what we have it do for the client. Of SKIP
 * nothing is left within a transaction: MULTI was skipped. */
static bool is_heard(const struct rds_call *c)
{
    return c->ses->there->mute == RDS_LOUD;
}

/* The transaction that was begun here moves to the upstream, with all that was queued. */
static enum serve_result move_multi(struct rds_call *c)
{
    struct rds_session *ses = c->ses;
    int queued = rds_multi_length(ses);
    if (rds_subscribes(c))
        return refuse_subscribing(c);
    if (ses->there->ids)
        return rds_answered(
            c, rds_reject(c, rds_fail(c, SERVE_REFUSED,
                                      "ERR a transaction that gives out IDs can hold nothing else: "
                                      "expected an ID key, found '%.*s'",
                                      RDS_SHOWN(c->req->argv[0]))));
    enum upstream_ready is = rds_ready(c, true);
    if (is == UPSTREAM_BUSY)
        return rds_behind(c);
    if (is == UPSTREAM_DOWN)
        return rds_unavailable(c);
    if (rds_introduce(c, is))
        return rds_behind(c);
    upstream_send(c->turn, multi);
    upstream_send(c->turn, rds_multi_bytes(ses));
    upstream_expect(c->turn, FRAME_RESP, is_heard(c) ? 1 + (uint32_t)queued : 0, UPSTREAM_SKIP);
    bool dirty = ses->dirty;
    rds_multi_end(ses);
    ses->dirty = dirty;
    ses->there->multi = true;
    return rds_there(c, RDS_PASS);
}

/* A request behind MULTI that the upstream has. */
static enum serve_result within_multi(struct rds_call *c, enum keys keys)
{
    struct rds_session *ses = c->ses;
    bool ends = rds_is_verb(c, RESP_EXEC) || rds_is_verb(c, RESP_DISCARD);
    if (keys == KEYS_IDS || keys == KEYS_MIXED)
        return rds_through_refuse(
            c, SERVE_REFUSED,
            "ERR an ID key cannot be used in a transaction that was begun with other "
            "commands");
    if (rds_subscribes(c))
        return refuse_subscribing(c);
    if (rds_is_verb(c, RESP_QUIT))
        return rds_here(c);
    if (rds_is_verb(c, RESP_EXEC) && ses->dirty) {
        if (upstream_pending(c->turn) > 0)
            return rds_behind(c);
        if (rds_ready(c, true) == UPSTREAM_BUSY)
            return rds_behind(c);
        upstream_send(c->turn, discard);
        upstream_expect(c->turn, FRAME_RESP, is_heard(c), UPSTREAM_SKIP);
        ses->there->multi = ses->there->watching = ses->dirty = false;
        return rds_answered(
            c, rds_reject(c, rds_fail(c, SERVE_INVALID,
                                      "EXECABORT Transaction discarded because of previous "
                                      "errors.")));
    }
    enum serve_result r = rds_there(c, RDS_PASS);
    if (r == SERVE_PASSED && ends)
        ses->there->multi = ses->there->watching = ses->dirty = false;
    return r;
}

/* ---- which ------------------------------------------------------------------------------------
 */

static enum rds_at place(struct rds_call *c)
{
    enum rds_at at =
        c->sub && rds_is_verb(c, RESP_CLIENT) ? (enum rds_at)c->sub->at : (enum rds_at)c->verb->at;
    if (rds_is_verb(c, RESP_SELECT) && !upstream_owns(c->turn) &&
        span_eq(c->req->argv[1], SPAN("0")))
        return RDS_HERE;
    if (rds_has_password(c)) /* ours, or the upstream's */
        return c->ses->access.mode != ACCESS_OFF ? RDS_HERE : RDS_BEST;
    if (rds_is_verb(c, RESP_PING)) /* among IDs it is ours: such a transaction goes nowhere */
        return c->svc->serve->ping_there && !c->ses->there->ids ? RDS_PASS : RDS_HERE;
    if (at == RDS_STATE)
        return upstream_owns(c->turn) ? RDS_PASS : RDS_HERE;
    return at;
}

/* A section that a kind of generator has to itself. */
static bool is_section(const struct rds_call *c, struct span name)
{
    const struct generator *g = rds_issuer(c)->generators;
    while (g && !(g->kind->section && span_eq_nocase(name, span_str(g->kind->section))))
        g = g->after;
    return g != NULL;
}

/* Asked of sidflake itself, whatever is behind; and what asks the same of memcached, so that
 * sidflakectl learns at once which of the two it speaks with. */
static bool is_ours(const struct rds_call *c)
{
    const struct resp_req *q = c->req;
    if (q->argc != 2 || q->seen != 2)
        return false;
    bool info = rds_is_verb(c, RESP_INFO);
    return span_eq_nocase(q->argv[1], SPAN("sidflake"))
               ? info || span_eq_nocase(q->argv[0], SPAN("stats"))
               : info && is_section(c, q->argv[1]);
}

/* The client keeps its own link, which is reset, too. A RESET that is to be skipped is answered all
 * the same, for what comes behind it to wait; a PING is skipped in its place. */
static enum serve_result reset(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    bool skipped = t->mute == RDS_MUTE_NEXT;
    enum upstream_ready is =
        upstream_owns(c->turn) ? upstream_ready(c->turn, UPSTREAM_OWN, 0) : UPSTREAM_DOWN;
    if (is == UPSTREAM_BUSY)
        return rds_behind(c);
    if (is == UPSTREAM_READY && upstream_logs_in(c->turn)) { /* which a RESET there would undo */
        upstream_renew(c->turn);
        is = UPSTREAM_DOWN;
    }
    enum serve_result r = rds_request(c);
    if (skipped || is == UPSTREAM_READY)
        buf_truncate(c->out, c->start);
    if (is == UPSTREAM_READY) {
        upstream_send(c->turn, skipped ? SPAN("*1\r\n$4\r\nPING\r\n") : span_of("", 0));
        upstream_send(c->turn, SPAN("*1\r\n$5\r\nRESET\r\n"));
        upstream_expect(c->turn, FRAME_RESP, 1,
                        UPSTREAM_NEWS | UPSTREAM_CLEARS | (skipped ? UPSTREAM_SKIP : 0u));
        r = SERVE_PASSED;
    }
    rds_through_end(c->ses);
    c->ses->passes = r == SERVE_PASSED;
    return r;
}

/* With a password that is ours; a protocol that comes with it has to hold there, too. The database
 * does already, where it is the server's: it may have refused the latest, or discarded it. What
 * somebody has subscribed to in RESP3 is no other user's to hear, and nothing tells when it has
 * ended. */
static enum serve_result log_in(struct rds_call *c)
{
    uint8_t proto = c->ses->proto;
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    enum upstream_ready is =
        upstream_owns(c->turn) ? upstream_ready(c->turn, UPSTREAM_OWN, 0) : UPSTREAM_DOWN;
    if (is == UPSTREAM_BUSY)
        return rds_behind(c);
    uint32_t user = c->ses->access.user;
    enum serve_result r = rds_here(c);
    if (is == UPSTREAM_READY && c->ses->proto != proto)
        rds_send_state(c, proto, 0);
    if (upstream_subscribed(c->turn) && c->ses->access.user != user)
        c->close = true;
    return r;
}

/* Outside of the upstream's transactions. */
static enum serve_result choose(struct rds_call *c, enum keys keys, enum rds_at at)
{
    struct rds_session *ses = c->ses;
    bool foreign = keys == KEYS_FOREIGN || (keys == KEYS_NONE && at != RDS_HERE);
    bool merges = rds_is_verb(c, RESP_MGET) && ses->there->mute == RDS_LOUD;
    if (keys == KEYS_MIXED && merges && !ses->multi && !c->req->truncated)
        return merge(c);
    if (keys == KEYS_MIXED)
        return rds_through_refuse(c, SERVE_REFUSED,
                                  "ERR ID keys cannot be used together with others, but in MGET");
    if (keys == KEYS_IDS && rds_is_verb(c, RESP_EVAL))
        return rds_through_refuse(
            c, SERVE_REFUSED,
            "ERR an ID key cannot be used in scripts and functions: read IDs with GET, MGET "
            "or LPOP");
    if (rds_is_verb(c, RESP_MULTI) && ses->there->watching) {
        enum serve_result r = rds_there(c, RDS_PASS);
        ses->there->multi |= r == SERVE_PASSED;
        return r;
    }
    if (!foreign && rds_has_password(c))
        return log_in(c);
    if (!foreign) {
        enum serve_result r = rds_here(c);
        if (keys == KEYS_IDS && r == SERVE_OK && ses->multi)
            ses->there->ids = true;
        return r;
    }
    if (ses->multi && !(c->verb->when & RDS_IN_MULTI))
        return move_multi(c);
    if (ses->multi)
        return rds_here(c);
    enum serve_result r = rds_there(c, at);
    if (r == SERVE_PASSED && (rds_is_verb(c, RESP_WATCH) || rds_is_verb(c, RESP_UNWATCH)))
        ses->there->watching = rds_is_verb(c, RESP_WATCH);
    return r;
}

/* Redis has an error for nearly all, but a password that is ours is not for it to hear, and whether
 * the client still is subscribed there nobody here can say: so an ID key never goes there. */
static enum serve_result while_subscribed(struct rds_call *c, enum keys keys)
{
    if (keys == KEYS_IDS || keys == KEYS_MIXED)
        return rds_here(c);
    if (rds_has_password(c) && c->ses->access.mode != ACCESS_OFF)
        return rds_through_refuse(c, SERVE_REFUSED,
                                  "ERR a login while subscribed is not supported");
    return rds_there(c, RDS_PASS);
}

/* Newer than our table, perhaps, or in vain: it changes nothing that we follow. */
static void forget_command(struct rds_call *c)
{
    static const struct rds_verb unknown = {.label = "other", .at = RDS_PASS};
    buf_truncate(c->out, c->start);
    c->verb = &unknown;
    c->cmd = NULL;
    c->sub = NULL;
}

/* Redis finds commands by a hash of the whole name, and compares that up to a NUL: of MSET\0 with
 * whatever behind, some are its MSET. So of these nobody knows what they are. */
static bool is_cut(const struct rds_call *c)
{
    struct span name = c->req->argv[0];
    return name.n > 0 && memchr(name.p, '\0', name.n);
}

#define APART " not supported behind MONITOR, SYNC, PSYNC and REPLCONF: connect again"

/* Why it may not go there, or NULL. Who has rights that are limited had others when it began. */
static const char *barred_in_tunnel(struct rds_call *c)
{
    const struct access *a = &c->ses->access;
    enum keys keys = keys_of(c);
    bool login = rds_has_password(c) || (rds_is_verb(c, RESP_HELLO) && c->req->truncated);
    if (keys == KEYS_IDS || keys == KEYS_MIXED)
        return "ERR an ID key is" APART;
    if (login && a->mode != ACCESS_OFF)
        return "ERR a login is" APART;
    if (rds_is_verb(c, RESP_RESET) && (a->mode == ACCESS_REQUIRED || upstream_logs_in(c->turn)))
        return "ERR a RESET, which logs out, is" APART; /* the client here, or us there */
    if (is_cut(c))
        return "ERR a command with a NUL in its name is" APART;
    if (!access_granted(a) || access_limits(c->svc->serve, a))
        return "ERR a user whose rights are limited is" APART;
    return NULL;
}

/* What comes from the server may be the changes to its keys, or all that it is asked for, and has
 * no end; nothing tells when an answer from here could stand among that, whether the server has
 * agreed to it or not. So there is none, for good, but one that ends the connection. */
static enum serve_result within_tunnel(struct rds_call *c, bool known)
{
    const char *bar = barred_in_tunnel(c);
    c->close = bar != NULL;
    if (bar)
        return rds_through_refuse(c, SERVE_REFUSED, bar);
    if (!known)
        forget_command(c);
    return rds_there(c, RDS_TUNNEL);
}

enum serve_result rds_through(struct rds_call *c)
{
    struct rds_session *ses = c->ses;
    if (!ses->there && !(ses->there = calloc(1, sizeof *ses->there))) {
        c->close = true;
        return rds_fail(c, SERVE_FAILED, "ERR out of memory");
    }
    if (c->out->n > c->start) /* its reply was begun here, maybe before there was an upstream */
        return rds_here(c);
    if (ses->there->asked && upstream_pending(c->turn) > 0) /* which protocol, or database? */
        return rds_behind(c);
    bool known = rds_find(c);
    if (ses->there->tunnel)
        return within_tunnel(c, known);
    bool barred = !known && (c->cmd ? !rds_allowed(c) : is_cut(c));
    if (barred || !access_granted(&ses->access)) {
        buf_truncate(c->out, c->start);
        ses->dirty |= barred && ses->there->multi;
        return !barred && rds_has_password(c) ? log_in(c) : rds_here(c); /* again, after a RESET */
    }
    switch (rds_rights(c, known)) {
    case RDS_RIGHTS_HERE:
        buf_truncate(c->out, c->start);
        return rds_here(c);
    case RDS_RIGHTS_REFUSED:
        return SERVE_REFUSED;
    case RDS_RIGHTS_BEHIND:
        return RDS_PARKED;
    case RDS_RIGHTS_PASS:
        break;
    }
    enum rds_at at = is_ours(c) ? RDS_HERE : known ? place(c) : RDS_PASS;
    const char *bar = ses->multi || ses->there->multi ? barred_in_multi(c) : NULL;
    if (rds_is_verb(c, RESP_HELLO) && c->req->truncated) { /* a password may stand in the rest */
        ses->dirty |= ses->there->multi;
        return rds_here(c);
    }
    enum keys keys = keys_of(c);
    bool newer = !c->cmd;
    if (bar || (!known && ses->access.mode != ACCESS_OFF && rds_has_password(c))) {
        buf_truncate(c->out, c->start);
        return bar ? rds_through_refuse(c, SERVE_REFUSED, bar) : rds_here(c);
    }
    if (!known)
        forget_command(c);
    if (newer && keys == KEYS_IDS)
        return rds_through_refuse(
            c, SERVE_REFUSED,
            "ERR an ID key cannot be used in a command that sidflake does not know");
    if (rds_is_sub(c, "tracking") || rds_is_sub(c, "caching"))
        return rds_through_refuse(c, SERVE_REFUSED, c->sub->refusal);
    if (rds_is_verb(c, RESP_RESET))
        return reset(c);
    if (ses->there->multi)
        return within_multi(c, keys);
    if (rds_hears_news(c) && !rds_is_verb(c, RESP_QUIT)) {
        if (rds_subscribes(c) || rds_is_verb(c, RESP_PING))
            return rds_there(c, RDS_PASS);
        if (upstream_pending(c->turn) > 0) /* it may be so no longer when the replies have come */
            return rds_behind(c);
        if (upstream_subscribed(c->turn))
            return while_subscribed(c, keys);
    }
    return choose(c, keys, at);
}
