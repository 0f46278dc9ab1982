/*
 * Transactions. What comes between MULTI and EXEC is kept as it came, and read again at EXEC:
 *
 *     bytes   | carried out ... | under way | to come ... |
 *             0                 at                        n
 *
 * An EXEC whose requests have to wait is parked like any other request: its reply so far is kept
 * back, and it goes on with the request at `at`.
 */
#include "base/dec.h"
#include "serve/redis/redis.h"

#include <stdlib.h>

#define TXN_BYTES    (64u << 10)
#define TXN_REQUESTS 1024u
#define TXN_TURN     128u /* requests that EXEC carries out before others have a turn */
#define TXN_FIRST    512u /* bytes allocated for the first request */

struct rds_txn {
    uint32_t n, cap; /* of bytes */
    uint32_t requests;
    uint32_t at;     /* EXEC: bytes carried out */
    size_t reply_at; /* EXEC: where the reply of the one under way begins, in that of EXEC */
    bool under_way;  /* it was parked */
    char bytes[];
};

void rds_multi_end(struct rds_session *ses)
{
    free(ses->txn);
    ses->txn = NULL;
    ses->multi = ses->dirty = ses->watches = false;
    if (ses->there)
        ses->there->ids = false;
}

struct span rds_multi_bytes(const struct rds_session *ses)
{
    return ses->txn ? span_of(ses->txn->bytes, ses->txn->n) : span_of("", 0);
}

size_t rds_multi_holds(const struct rds_session *ses)
{
    return ses->txn ? sizeof *ses->txn + ses->txn->cap : 0;
}

int rds_multi_length(const struct rds_session *ses)
{
    return !ses->multi ? -1 : ses->txn ? (int)ses->txn->requests : 0;
}

enum serve_result rds_multi(struct rds_call *c)
{
    if (c->ses->multi)
        return rds_fail(c, SERVE_INVALID, "ERR MULTI calls can not be nested");
    c->ses->multi = true;
    return rds_ok(c);
}

enum serve_result rds_discard(struct rds_call *c)
{
    if (!c->ses->multi)
        return rds_fail(c, SERVE_INVALID, "ERR DISCARD without MULTI");
    rds_multi_end(c->ses);
    return rds_ok(c);
}

/* Nothing that is watched here ever changes: an ID key has no value to compare, and of what is none
 * there is nothing. It is noted for a server that may come behind. */
enum serve_result rds_watch(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span key;
    if (c->ses->multi)
        return rds_fail(c, SERVE_INVALID, "ERR WATCH inside MULTI is not allowed");
    while (!c->ses->watches && resp_next_arg(&w, &key))
        c->ses->watches = !names_find(&rds_issuer(c)->names, key);
    return rds_ok(c);
}

enum serve_result rds_unwatch(struct rds_call *c)
{
    c->ses->watches = false;
    return rds_ok(c);
}

/* ---- queueing ---------------------------------------------------------------------------------
 */

/* Room for n more bytes; false: no memory. n was checked against TXN_BYTES. */
static bool grow(struct rds_session *ses, size_t n)
{
    struct rds_txn *t = ses->txn;
    uint32_t used = t ? t->n : 0, cap = t ? t->cap : TXN_FIRST;
    while (cap - used < n)
        cap *= 2;
    if (t && cap == t->cap)
        return true;
    struct rds_txn *larger = realloc(t, sizeof *t + cap);
    if (!larger)
        return false;
    if (!t)
        *larger = (struct rds_txn){0};
    larger->cap = cap;
    ses->txn = larger;
    return true;
}

enum serve_result rds_queue(struct rds_call *c)
{
    struct rds_session *ses = c->ses;
    struct rds_txn *t = ses->txn;
    size_t left = TXN_BYTES - (t ? t->n : 0);
    if (c->cmd->flags & RESP_F_NO_MULTI)
        return rds_fail(c, SERVE_REFUSED, "ERR Command not allowed inside a transaction");
    if (c->raw.n > left || (t && t->requests >= TXN_REQUESTS))
        return rds_fail(c, SERVE_REFUSED,
                        "ERR transaction is too large: expected at most %u requests and %u bytes",
                        TXN_REQUESTS, TXN_BYTES);
    if (!grow(ses, c->raw.n))
        return rds_fail(c, SERVE_FAILED, "ERR out of memory");
    t = ses->txn;
    memcpy(t->bytes + t->n, c->raw.p, c->raw.n);
    t->n += (uint32_t)c->raw.n;
    t->requests++;
    BUF_PUT_LIT(c->out, "+QUEUED\r\n");
    return SERVE_OK;
}

/* ---- EXEC -------------------------------------------------------------------------------------
 */

/* A request waits, and those of the same bytes behind it have arrived, too. */
static void expect_alike(struct rds_call *c, struct span rest, size_t used)
{
    struct span one = span_of(rest.p, used), behind = span_skip(rest, used);
    uint32_t n = 0, argc = c->req->argc;
    int64_t each = 1;
    bool row = c->cmd->verb == RESP_INCRBY && dec_canonical_i64(c->req->argv[2], &each);
    struct names_entry *name = row || argc == 2 ? rds_name(c, c->req->argv[1]) : NULL;
    for (; span_starts(behind, one); n++)
        behind = span_skip(behind, used);
    if (name)
        issuer_ahead(name, c->turn, n, (uint32_t)each);
}

/* Carries out the request at t->at, which was read before: it is whole and known. *left: 0 if it
 * is as dear as many. */
static enum serve_result run_next(struct rds_call *exec, struct rds_txn *t, int *left)
{
    struct rds_call c = *exec;
    struct span rest = span_of(t->bytes + t->at, t->n - t->at);
    size_t used;
    if (!t->under_way)
        t->reply_at = exec->out->n - exec->start;
    c.start = exec->start + t->reply_at;
    c.req = &exec->svc->queued;
    enum serve_result r = SERVE_INVALID;
    if (resp_parse(rest, c.req, &used) != WIRE_REQ)
        used = rest.n;
    else if (rds_find(&c))
        r = rds_run(&c);
    if (c.verb && c.verb->dear)
        *left = 0;
    t->under_way = r == RDS_PARKED;
    if (t->under_way && c.turn->arrived)
        expect_alike(&c, rest, used);
    if (t->under_way)
        exec->step = c.step;
    else
        t->at += (uint32_t)used;
    return r;
}

enum serve_result rds_exec(struct rds_call *c)
{
    struct rds_session *ses = c->ses;
    if (!ses->multi)
        return rds_fail(c, SERVE_INVALID, "ERR EXEC without MULTI");
    if (ses->dirty) {
        rds_multi_end(ses);
        return rds_fail(c, SERVE_INVALID,
                        "EXECABORT Transaction discarded because of previous errors.");
    }
    if (c->out->n == c->start)
        resp_put_array(c->out, ses->txn ? ses->txn->requests : 0);
    for (int left = TXN_TURN; ses->txn && ses->txn->at < ses->txn->n && !c->out->failed; left--) {
        if (left <= 0) {
            c->step = (struct net_step){.verdict = NET_YIELD, .cost = NET_DEAR};
            return RDS_PARKED;
        }
        if (run_next(c, ses->txn, &left) == RDS_PARKED)
            return RDS_PARKED;
    }
    rds_multi_end(ses);
    return SERVE_OK;
}

/* ---- for the program that takes over -----------------------------------------------------------
 */

void rds_multi_pack(const struct rds_session *ses, struct buf *parcel)
{
    static const struct rds_txn none;
    const struct rds_txn *t = ses->txn ? ses->txn : &none;
    parcel_put_u64(parcel, ses->multi);
    parcel_put_u64(parcel, ses->dirty);
    parcel_put_bytes(parcel, span_of(ses->txn ? ses->txn->bytes : NULL, t->n));
    parcel_put_u64(parcel, t->requests);
    parcel_put_u64(parcel, t->at);
    parcel_put_u64(parcel, t->reply_at);
    parcel_put_u64(parcel, t->under_way);
}

bool rds_multi_unpack(struct rds_session *ses, struct span *in)
{
    uint64_t multi, dirty, requests, at, reply_at, under_way;
    struct span bytes;
    if (!parcel_get_upto(in, 1, &multi) || !parcel_get_upto(in, 1, &dirty) ||
        !parcel_get_bytes(in, &bytes) || bytes.n > TXN_BYTES ||
        !parcel_get_upto(in, TXN_REQUESTS, &requests) || !parcel_get_upto(in, bytes.n, &at) ||
        !parcel_get_upto(in, NET_OUT_MAX, &reply_at) || !parcel_get_upto(in, 1, &under_way))
        return false;
    ses->multi = multi;
    ses->dirty = dirty;
    if (bytes.n == 0)
        return true;
    if (!multi || !grow(ses, bytes.n))
        return false;
    struct rds_txn *t = ses->txn;
    memcpy(t->bytes, bytes.p, bytes.n);
    t->n = (uint32_t)bytes.n;
    t->requests = (uint32_t)requests;
    t->at = (uint32_t)at;
    t->reply_at = (size_t)reply_at;
    t->under_way = under_way;
    return true;
}
