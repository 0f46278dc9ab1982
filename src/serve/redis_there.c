/*
 * The way of a Redis request to the upstream: on which link, what has to be known of the replies
 * for them to be told apart, and what the two sides have to know of each other.
 */
#include "serve/redis_through.h"

#include "base/dec.h"

#include <stdlib.h>

/* ---- here -------------------------------------------------------------------------------------
 */

enum serve_result rds_behind(struct rds_call *c)
{
    c->step = (struct net_step){.verdict = NET_BEHIND};
    return RDS_PARKED;
}

enum serve_result rds_here(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    enum upstream_ready is = UPSTREAM_DOWN;
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    if (t->mute == RDS_MUTE_NEXT && (is = upstream_ready(c->turn, UPSTREAM_OWN)) == UPSTREAM_BUSY)
        return rds_behind(c);
    enum serve_result r = rds_request(c);
    if (r == RDS_PARKED || t->mute == RDS_LOUD)
        return r;
    buf_truncate(c->out, c->start);
    if (t->mute == RDS_MUTE_NEXT && is != UPSTREAM_DOWN)
        upstream_send(c->turn, SPAN("*1\r\n$4\r\nPING\r\n")); /* the one that is skipped there */
    t->mute = t->mute == RDS_MUTE_NEXT ? RDS_LOUD : t->mute;
    return r;
}

/* An error that also spoils the transaction under way, here or there. */
enum serve_result rds_through_refuse(struct rds_call *c, enum serve_result r, const char *what)
{
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    c->ses->dirty |= c->ses->there->multi;
    return rds_reject(c, rds_fail(c, r, "ERR %s", what));
}

enum serve_result rds_unavailable(struct rds_call *c)
{
    const char *why = upstream_why(&c->svc->net);
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    c->ses->dirty |= c->ses->there->multi;
    return rds_reject(
        c, rds_fail(c, SERVE_FAILED, "ERR upstream unavailable: %s", *why ? why : "no connection"));
}

/* ---- there ------------------------------------------------------------------------------------
 */

static void put_command(struct buf *b, const char *name, struct span arg)
{
    resp_put_array(b, 2);
    resp_put_bulk(b, span_str(name));
    resp_put_bulk(b, arg);
}

/* What was agreed upon here has to hold there. */
void rds_send_state(struct rds_call *c)
{
    const struct rds_session *ses = c->ses;
    char mem[RDS_NAME_MAX + 128];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    if (ses->proto == 3)
        put_command(&b, "HELLO", SPAN("3"));
    if (ses->db > 0) {
        BUF_PUT_LIT(&b, "*2\r\n$6\r\nSELECT\r\n");
        resp_put_bulk_u64(&b, ses->db);
    }
    if (ses->name_n > 0) {
        BUF_PUT_LIT(&b, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n");
        resp_put_bulk(&b, span_of(ses->name, ses->name_n));
    }
    upstream_send(c->turn, buf_span(&b));
    uint32_t n =
        (ses->proto == 3 ? 1u : 0u) + (ses->db > 0 ? 1u : 0u) + (ses->name_n > 0 ? 1u : 0u);
    upstream_expect(c->turn, FRAME_RESP, n, UPSTREAM_SKIP);
}

/* HELLO [proto] [AUTH user password] [SETNAME name] */
static void follow_hello(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span option, value;
    int64_t proto;
    if (c->req->argc > 1 && dec_canonical_i64(c->req->argv[1], &proto) && proto >= 2 && proto <= 3)
        c->ses->proto = (uint8_t)proto;
    while (resp_next_arg(&w, &option) && resp_next_arg(&w, &value)) {
        if (span_eq_nocase(option, SPAN("auth")))
            (void)resp_next_arg(&w, &value);
        else if (span_eq_nocase(option, SPAN("setname")) && !rds_name_fault(value))
            rds_set_name(c->ses, value);
    }
}

/* HELLO, SELECT and their kin change what we know, too; the upstream says what comes of it.
 * true: from RESP3 back to RESP2. */
static bool follow(struct rds_call *c)
{
    bool resp3 = c->ses->proto == 3;
    if (rds_is_verb(c, RESP_HELLO))
        follow_hello(c);
    if (rds_is_verb(c, RESP_SELECT))
        (void)rds_select(c);
    if (rds_is_sub(c, "setname"))
        (void)c->sub->fn(c);
    buf_truncate(c->out, c->start);
    return resp3 && c->ses->proto == 2;
}

bool rds_subscribes(const struct rds_call *c)
{
    return c->cmd && c->verb->when == RDS_SUBSCRIBED && c->cmd->verb != RESP_PING;
}

/* How many acknowledgements will come is the upstream's to know: a PING behind the request tells
 * when they have, and in RESP2 whether any subscription is left, for then it is answered otherwise.
 */
static void send_probe(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    if (t->mute != RDS_LOUD)
        return;
    upstream_send(c->turn, SPAN("*1\r\n$4\r\nPING\r\n"));
    bool asks = c->ses->proto == 2;
    upstream_expect(c->turn, FRAME_RESP, 1, UPSTREAM_SKIP | (asks ? UPSTREAM_TELL : 0u));
    t->asked += asks;
}

/* CLIENT REPLY, and what it has the upstream keep back. Returns the replies to come. */
static uint32_t expect_loud(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    struct span mode = rds_is_sub(c, "reply") ? c->req->argv[2] : span_of("", 0);
    bool skip = span_eq_nocase(mode, SPAN("skip")), off = span_eq_nocase(mode, SPAN("off"));
    if (span_eq_nocase(mode, SPAN("on")))
        t->mute = RDS_LOUD;
    else if (off || (skip && t->mute == RDS_LOUD))
        t->mute = off ? RDS_MUTE : RDS_MUTE_NEXT;
    else if (t->mute == RDS_MUTE_NEXT)
        t->mute = RDS_LOUD;
    else if (t->mute == RDS_LOUD)
        return 1;
    return mode.n > 0 && t->mute == RDS_LOUD;
}

bool rds_blocks(const struct rds_call *c)
{
    static const char *const others[] = {"wait", "waitaof"};
    bool known = c->cmd && (c->cmd->flags & RESP_F_BLOCKING);
    for (size_t i = 0; c->req->seen > 0 && i < sizeof others / sizeof *others; i++)
        known |= span_eq_nocase(c->req->argv[0], span_str(others[i]));
    return known;
}

/* Redis may take an inline request for another one than we do: one with a NUL in it has no end
 * there. So what it answers, or never does, is nobody else's. */
enum upstream_ready rds_ready(struct rds_call *c, enum rds_at at)
{
    const struct rds_session *ses = c->ses;
    bool own = (at != RDS_PASS && at != RDS_BEST) || ses->db > 0 || ses->proto == 3 ||
               ses->there->mute != RDS_LOUD || c->req->truncated || c->req->inline_cmd ||
               rds_blocks(c);
    return upstream_ready(c->turn, own ? UPSTREAM_OWN : UPSTREAM_TEXT);
}

/* The remainder of a request that is larger than a connection's input follows by rds_stream. */
static bool begin_stream(struct rds_call *c)
{
    if (!c->req->truncated)
        return true;
    c->ses->swallow = malloc(sizeof *c->ses->swallow);
    if (!c->ses->swallow)
        return false;
    *c->ses->swallow = c->req->swallow;
    c->ses->there->streams = true;
    c->req->truncated = false; /* it is not refused */
    return true;
}

/* While the upstream is down any password is right, for those who want IDs; what it is good for
 * there is not known. */
static enum serve_result here_for_now(struct rds_call *c)
{
    struct access *a = &c->ses->access;
    uint8_t mode = a->mode;
    bool auth = rds_is_verb(c, RESP_AUTH) || rds_is_verb(c, RESP_HELLO);
    if (auth && mode == ACCESS_OFF)
        a->mode = ACCESS_ANY;
    enum serve_result r = rds_here(c);
    a->mode = mode;
    c->ses->there->lapsed |= auth && r == SERVE_OK;
    return r;
}

enum serve_result rds_there(struct rds_call *c, enum rds_at at)
{
    struct rds_session *ses = c->ses;
    enum upstream_ready is = rds_ready(c, at);
    bool auth = rds_is_verb(c, RESP_AUTH) || rds_is_verb(c, RESP_HELLO);
    if (is == UPSTREAM_BUSY)
        return rds_behind(c);
    if (is == UPSTREAM_DOWN)
        return at == RDS_BEST || at == RDS_BEST_OWN ? here_for_now(c) : rds_unavailable(c);
    if (ses->there->lapsed && !auth) {
        c->close = true;
        return upstream_pending(c->turn) > 0
                   ? rds_behind(c)
                   : rds_fail(c, SERVE_FAILED,
                              "NOAUTH the upstream was down at AUTH: connect again");
    }
    ses->passes = true;
    uint32_t n = expect_loud(c); /* acknowledgements are never kept back, nor counted */
    if (rds_subscribes(c))
        n = 0;
    ses->there->subscribed |= rds_subscribes(c) && ses->proto == 2;
    upstream_watch(c->turn, ses->there->subscribed);
    if (is == UPSTREAM_FRESH && !auth)
        rds_send_state(c);
    upstream_send(c->turn, c->raw);
    upstream_expect(c->turn, FRAME_RESP, n, rds_blocks(c) ? UPSTREAM_PATIENT : 0);
    bool back = follow(c);
    ses->there->subscribed |= back; /* perhaps: what was subscribed to in RESP3 still is */
    bool speaks_again = rds_is_sub(c, "reply") && ses->there->asked == 0;
    if (rds_subscribes(c) || (ses->there->subscribed && (speaks_again || back)))
        send_probe(c);
    if (is == UPSTREAM_FRESH && rds_is_verb(c, RESP_AUTH))
        rds_send_state(c);
    if (at == RDS_TUNNEL) {
        upstream_tunnel(c->turn);
        ses->there->tunnel = true;
    }
    rds_note_form(c);
    if (!begin_stream(c))
        c->close = true;
    serve_count(c->svc->serve, SERVE_REDIS, rds_counted(c), SERVE_PASSED);
    return SERVE_PASSED;
}

/* ---- between requests -------------------------------------------------------------------------
 */

struct net_step rds_stream(struct rds_session *ses, struct span in, struct net_turn *turn)
{
    bool done = false, bad = false;
    size_t used = in.n;
    if (in.n == 0)
        return (struct net_step){.verdict = NET_MORE, .begun = ses->swallow != NULL};
    enum upstream_ready is = upstream_ready(turn, UPSTREAM_REST);
    if (is == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    if (is != UPSTREAM_DOWN && ses->swallow)
        used = resp_swallow(ses->swallow, in, &done, &bad);
    if (is == UPSTREAM_DOWN || bad)
        return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    upstream_send(turn, span_of(in.p, used));
    if (done) {
        free(ses->swallow);
        ses->swallow = NULL;
        ses->there->streams = false;
    }
    return (struct net_step){
        .verdict = NET_DONE, .used = used, .passed = true, .begun = ses->swallow != NULL};
}

void rds_heard(struct net_service *net, void *session, const struct frame *f, struct buf *out)
{
    struct rds_there *t = ((struct rds_session *)session)->there;
    (void)net;
    if (f->kind == FRAME_RESP_MERGE)
        rds_merge_part(session, f, out);
    else if (t && t->asked > 0 && --t->asked == 0)
        t->subscribed = f->type == '*';
}

void rds_through_end(struct rds_session *ses)
{
    rds_merge_end(ses);
    free(ses->there);
    ses->there = NULL;
}
