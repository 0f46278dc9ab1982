/*
 * MGET of IDs and other keys: the others are asked for upstream in one MGET, whose reply passes
 * through with the IDs put in their places.
 *
 *     MGET a id:x b   ->   MGET a b   ->   *2 [a] [b]   ->   *3 [a] [ID] [b]
 *
 * The IDs are drawn first: the upstream's reply, once begun, has to wait for nothing.
 */
#include "serve/redis/redis.h"

#include <stdlib.h>

#define BULK_MAX (sizeof "$20\r\n-9223372036854775808\r\n" - 1) /* bytes of a number's */

struct rds_merge {
    uint32_t keys;  /* of the request */
    uint32_t seen;  /* while IDs are drawn: keys looked at */
    uint32_t n;     /* IDs drawn */
    uint32_t at;    /* replies of others that have begun */
    uint32_t given; /* IDs that stand in the reply */
    bool sent;
    struct {
        int64_t id;
        uint32_t before; /* replies of others that stand before it */
        bool miss;       /* there is none */
    } item[];
};

/* false: out has no room for all of them. */
static bool put_due(struct rds_merge *m, int proto, struct buf *out, uint32_t at)
{
    for (; m->given < m->n && m->item[m->given].before <= at; m->given++) {
        if (out->cap - out->n < BULK_MAX)
            return false;
        if (m->item[m->given].miss)
            resp_put_null(out, proto);
        else
            resp_put_bulk_i64(out, m->item[m->given].id);
    }
    return true;
}

bool rds_merge_part(struct rds_session *ses, const struct frame *f, struct buf *out)
{
    struct rds_merge *m = ses->there ? ses->there->merge : NULL;
    bool last = f->part.n == 0;
    if (!m)
        return false;
    if (!last && f->part.p[0] == '*') {
        resp_put_array(out, m->keys);
        return false;
    }
    if (!put_due(m, ses->proto, out, last ? UINT32_MAX : m->at))
        return true;
    m->at++;
    if (last)
        rds_merge_end(ses);
    return false;
}

void rds_merge_end(struct rds_session *ses)
{
    if (!ses->there)
        return;
    free(ses->there->merge);
    ses->there->merge = NULL;
}

void rds_merge_give_up(struct rds_session *ses)
{
    if (ses->there && ses->there->merge && !ses->there->merge->sent)
        rds_merge_end(ses);
}

/* One that is there and not sent is this request's, which was parked: see rds_merge_give_up. */
static struct rds_merge *begin(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    if (t->merge && !t->merge->sent)
        return t->merge;
    rds_merge_end(c->ses);
    t->merge = calloc(1, sizeof *t->merge + c->req->argc * sizeof *t->merge->item);
    if (t->merge)
        t->merge->keys = c->req->argc - 1;
    return t->merge;
}

static enum serve_result draw(struct rds_call *c, struct rds_merge *m)
{
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span key;
    for (uint32_t i = 0; resp_next_arg(&w, &key); i++) {
        struct names_entry *name = i < m->seen ? NULL : rds_name(c, key);
        if (name) {
            enum issue_status s =
                issuer_one_of(rds_issuer(c), name, c->turn, m->n > 0, &m->item[m->n].id, &c->step);
            if (s == ISSUE_PARK && c->turn->arrived)
                issuer_ahead(name, c->turn, rds_alike(w, key), 1);
            if (s != ISSUE_OK && s != ISSUE_MISS)
                return rds_not_issued(c, s);
            m->item[m->n].miss = s == ISSUE_MISS;
            m->item[m->n].before = i - m->n;
            m->n++;
        }
        m->seen += i >= m->seen;
    }
    return SERVE_OK;
}

static void put_head(struct rds_call *c, char type, uint64_t n, struct span rest)
{
    char mem[32];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    buf_put_char(&b, type);
    buf_put_u64(&b, n);
    BUF_PUT_LIT(&b, "\r\n");
    upstream_send(c->turn, buf_span(&b));
    upstream_send(c->turn, rest);
}

static void send_others(struct rds_call *c, const struct rds_merge *m)
{
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span key;
    put_head(c, '*', m->keys - m->n + 1, SPAN("$4\r\nMGET\r\n"));
    while (resp_next_arg(&w, &key)) {
        if (rds_name(c, key))
            continue;
        put_head(c, '$', key.n, key);
        upstream_send(c->turn, SPAN("\r\n"));
    }
}

enum serve_result rds_merge(struct rds_call *c)
{
    struct rds_merge *m = begin(c);
    if (!m)
        return rds_fail(c, SERVE_FAILED, "ERR out of memory");
    enum serve_result r = draw(c, m);
    if (r == RDS_PARKED)
        return r;
    if (r != SERVE_OK) {
        rds_merge_end(c->ses);
        return r;
    }
    m->sent = true;
    send_others(c, m);
    upstream_weigh(c->turn, m->keys - m->n + 1);
    upstream_expect(c->turn, FRAME_RESP_MERGE, 1, 0);
    return SERVE_PASSED;
}

size_t rds_merge_holds(const struct rds_session *ses)
{
    const struct rds_merge *m = ses->there ? ses->there->merge : NULL;
    return m ? sizeof *m + (m->keys + 1) * sizeof *m->item : 0;
}
