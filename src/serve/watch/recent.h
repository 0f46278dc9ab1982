/*
 * Requests for one ID that were answered lately, known again by their bytes. An application asks
 * with the same few lines again and again, and a request is its bytes: one that begins with those
 * of an earlier request means the same, whoever sends it, and need not be parsed or looked up
 * again. Nor is its reply written anew: IDs given out one after the other differ in their last
 * digits.
 *
 *     reply   VALUE id:orders 0 18\r\n 6875412345 01785601 \r\nEND\r\n
 *                                               '- 8 digits: the ID less base
 *
 * Of numbers below 10^8, as sequences give, those with as many digits differ in nothing else.
 *
 * Invariants
 *   - An entry is the whole of a request, with its end: no other request begins with it.
 *   - Whether a session gives the request another meaning is asked by the service, each time.
 *   - The reply to a request holds nothing that changes but the ID.
 */
#ifndef SIDFLAKE_SERVE_WATCH_RECENT_H
#define SIDFLAKE_SERVE_WATCH_RECENT_H

#include "base/buf.h"
#include "base/dec.h"
#include "ids/names.h"

#include <string.h>

#define RECENT_REQUESTS 4
#define RECENT_BYTES    96
#define RECENT_LEAST    sizeof(uint64_t)
#define RECENT_REPLY    128 /* bytes; a request of RECENT_BYTES has no longer one */
#define RECENT_RANGE    100000000
#define RECENT_NONE     (UINT64_C(1) << 63) /* no number is that, or above it by RECENT_RANGE */

struct recent_request {
    char bytes[RECENT_BYTES];
    size_t n;                 /* RECENT_LEAST.., or SIZE_MAX: none yet */
    uint64_t tail;            /* its last 8 bytes: requests differ there if anywhere */
    struct span key;          /* into bytes */
    struct names_entry *name; /* of the table, which never changes */
    char reply[RECENT_REPLY]; /* the latest that was written in full */
    size_t reply_n;
    size_t digits; /* where in reply the ID's last 8 begin */
    uint64_t base; /* the ID of reply with those digits 0; RECENT_NONE: no reply of such a one */
    /* Of a short number: reply is that of from .. less - 1, and of the 8 bytes at digits those are
     * its own where mask is 0xff. less 0: no reply of such a one. */
    int64_t from, less;
    char mask[8];
};

struct recent {
    struct recent_request request[RECENT_REQUESTS];
    unsigned at;   /* the one asked for last: looked at first */
    unsigned next; /* the one to be given up next */
};

static inline void recent_init(struct recent *r)
{
    memset(r, 0, sizeof *r);
    for (unsigned i = 0; i < RECENT_REQUESTS; i++)
        r->request[i].n = SIZE_MAX;
}

static inline uint64_t recent_tail(const char *p, size_t n)
{
    uint64_t v;
    memcpy(&v, p + n - sizeof v, sizeof v);
    return v;
}

static inline bool recent_is(const struct recent_request *q, struct span in)
{
    return in.n >= q->n && recent_tail(in.p, q->n) == q->tail && memcmp(in.p, q->bytes, q->n) == 0;
}

/* NULL: none of them. */
static inline struct recent_request *recent_find(struct recent *r, struct span in)
{
    if (recent_is(&r->request[r->at], in))
        return &r->request[r->at];
    for (unsigned i = 0; i < RECENT_REQUESTS; i++)
        if (recent_is(&r->request[i], in))
            return &r->request[r->at = i];
    return NULL;
}

/* request was answered with an ID for key, which lies in it. One that is known was parsed for want
 * of the usual case, as at the turn of a millisecond: a second copy would push another out. */
static inline void recent_note(struct recent *r, struct span request, struct span key,
                               struct names_entry *name)
{
    struct recent_request *q = &r->request[r->next];
    if (request.n < RECENT_LEAST || request.n > RECENT_BYTES || recent_find(r, request))
        return;
    memcpy(q->bytes, request.p, request.n);
    q->n = request.n;
    q->tail = recent_tail(request.p, request.n);
    q->key = span_of(q->bytes + (key.p - request.p), key.n);
    q->name = name;
    q->base = RECENT_NONE;
    q->less = 0;
    r->next = (r->next + 1) % RECENT_REQUESTS;
}

/* Appends the reply with this ID to out; false: nothing was done, it has to be written in full. */
static inline bool recent_put(const struct recent_request *q, int64_t id, struct buf *out)
{
    uint64_t low = (uint64_t)id - q->base;
    if (low >= RECENT_RANGE || out->failed || out->cap - out->n < RECENT_REPLY)
        return false;
    char *at = out->p + out->n;
    memcpy(at, q->reply, RECENT_REPLY); /* all: a copy of reply_n would be a call */
    dec_put_eight(at + q->digits, (uint32_t)low);
    out->n += q->reply_n;
    return true;
}

/* The same for a short number. */
static inline bool recent_put_short(const struct recent_request *q, int64_t id, struct buf *out)
{
    uint64_t digits, own, mask;
    char eight[8];
    if (id < q->from || id >= q->less || out->failed || out->cap - out->n < RECENT_REPLY)
        return false;
    char *at = out->p + out->n;
    memcpy(at, q->reply, RECENT_REPLY);
    dec_put_eight(eight, (uint32_t)id);
    memcpy(&digits, eight, sizeof digits);
    memcpy(&own, at + q->digits, sizeof own);
    memcpy(&mask, q->mask, sizeof mask);
    own = (own & ~mask) | (digits & mask);
    memcpy(at + q->digits, &own, sizeof own);
    out->n += q->reply_n;
    return true;
}

/* n digits stand at the end of what is at digits. */
static inline void recent_keep_short(struct recent_request *q, int64_t id)
{
    int64_t from = 1;
    memset(q->mask, 0, sizeof q->mask);
    q->mask[7] = (char)0xff;
    for (int n = 1; from * 10 <= id; n++) {
        from *= 10;
        q->mask[7 - n] = (char)0xff;
    }
    q->from = from > 1 ? from : 0;
    q->less = from * 10;
}

/* What stands in out from start on is the reply, written in full, with this ID; `after` bytes of it
 * follow the ID. */
static inline void recent_keep(struct recent_request *q, int64_t id, const struct buf *out,
                               size_t start, size_t after)
{
    size_t n = out->n - start;
    if (out->failed || n > RECENT_REPLY || id < 0 || n - after < 8)
        return;
    memcpy(q->reply, out->p + start, n);
    q->reply_n = n;
    q->digits = n - after - 8;
    q->base = RECENT_NONE;
    q->less = 0;
    if (id < RECENT_RANGE) {
        recent_keep_short(q, id);
        return;
    }
    q->base = (uint64_t)(id - id % RECENT_RANGE);
}

#endif
