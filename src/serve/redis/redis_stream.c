/*
 * With an upstream: a request that is larger than a connection's input, and so goes there in
 * pieces.
 *
 *     *2001 $4 MSET $2 k1 $1 v ... | $2 k9 ... | $9 id:orders   <- an error here, and the end
 *     `------ c->raw -------------'`- rds_stream -------------'
 *
 * Invariant: a key's length line is not sent before it is known that the key is no ID. So the
 * server never has such a request whole, whatever stood before that.
 *
 * It has taken what came before, and answers nothing until the request has ended: all that is left
 * is to close the connection.
 */
#include "serve/redis/redis_through.h"

#include <stdlib.h>

bool rds_begin_stream(struct rds_call *c)
{
    const struct resp_req *q = c->req;
    if (!q->truncated)
        return true;
    struct rds_rest *rest = calloc(1, sizeof *rest);
    if (!rest)
        return false;
    *rest = (struct rds_rest){
        .swallow = {.args_left = q->argc - q->whole}, .passed_on = true, .argc = q->argc};
    rest->ranges = resp_rest_ranges(c->cmd, c->req, rest->key);
    c->ses->rest = rest;
    c->raw.n = q->fore;
    c->req->truncated = false; /* it is not refused */
    return true;
}

enum verdict {
    GOOD,
    MORE, /* has to come for it to be told */
    BAD,  /* it breaks the protocol */
    IS_ID,
};

/* The arg at the front of in. GOOD: *used are the bytes of its length line, which is taken. */
static enum verdict judge(struct rds_service *svc, struct rds_rest *rest, struct span in,
                          size_t *used)
{
    struct names *names = &svc->serve->issuer.names;
    struct resp_swallow s = rest->swallow;
    size_t at = 0;
    bool done, bad = false;
    while (at < in.n && s.bytes_left == 0 && !bad)
        at += resp_swallow(&s, span_of(in.p + at, 1), &done, &bad);
    if (bad || s.bytes_left == 0)
        return bad ? BAD : MORE;
    uint64_t n = s.bytes_left - 2, enough = n < names_enough(names) ? n : names_enough(names);
    if (resp_is_key(rest->key, rest->ranges, rest->argc - (uint32_t)rest->swallow.args_left)) {
        if (in.n - at < enough)
            return MORE;
        if (names_find(names, span_of(in.p + at, (size_t)enough)))
            return IS_ID;
    }
    rest->swallow = s;
    *used = at;
    return GOOD;
}

/* How much of in may be sent, and what is behind it. */
static size_t look(struct rds_service *svc, struct rds_rest *rest, struct span in, enum verdict *v)
{
    struct resp_swallow *s = &rest->swallow;
    for (size_t at = 0, n;; at += n) {
        n = in.n - at < s->bytes_left ? in.n - at : (size_t)s->bytes_left;
        s->bytes_left -= n;
        at += n;
        *v = GOOD;
        if (s->bytes_left > 0 || s->args_left == 0)
            return at;
        *v = judge(svc, rest, span_skip(in, at), &n);
        if (*v != GOOD)
            return at;
    }
}

/* What the arg at the front of in is refused for. */
static void put_why(const struct rds_rest *rest, enum verdict v, struct span in, struct buf *out)
{
    struct resp_swallow s = rest->swallow;
    bool done, bad;
    if (v == IS_ID) {
        resp_put_error(out, SPAN("ERR an ID key cannot be used in a request of more than 64 KiB"));
        return;
    }
    (void)resp_swallow(&s, in, &done, &bad);
    buf_put_span(out, s.error);
}

/* The replies before that which it will not have are given first. Who wants none has none; behind
 * MONITOR and its kin there never is one. */
static struct net_step refuse(const struct rds_session *ses, enum verdict v, struct span in,
                              struct net_turn *turn, struct buf *out)
{
    uint32_t owed = ses->rest->owed;
    if (upstream_pending(turn) > owed) {
        upstream_wait_for(turn, owed);
        return (struct net_step){.verdict = NET_BEHIND};
    }
    if (owed || (ses->there->tunnel && ses->there->mute == RDS_LOUD))
        put_why(ses->rest, v, in, out);
    return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
}

struct net_step rds_stream(struct rds_service *svc, struct rds_session *ses, struct span in,
                           struct net_turn *turn, struct buf *out)
{
    struct rds_rest next = *ses->rest;
    enum verdict v;
    if (in.n == 0)
        return (struct net_step){.verdict = NET_MORE, .begun = true};
    enum upstream_ready is = upstream_ready(turn, UPSTREAM_REST, 0);
    if (is == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    if (is == UPSTREAM_DOWN)
        return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    size_t used = look(svc, &next, in, &v);
    if (used == 0 && (v == IS_ID || v == BAD))
        return refuse(ses, v, in, turn, out);
    if (used == 0)
        return (struct net_step){.verdict = NET_MORE, .begun = true};
    upstream_send(turn, span_of(in.p, used));
    *ses->rest = next;
    if (next.swallow.bytes_left == 0 && next.swallow.args_left == 0) {
        free(ses->rest);
        ses->rest = NULL;
    }
    return (struct net_step){
        .verdict = NET_DONE, .used = used, .passed = true, .begun = ses->rest != NULL};
}
