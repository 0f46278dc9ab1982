/*
 * Requests for one ID that were answered lately, known again by their bytes. An application asks
 * with the same few lines again and again, and a request is its bytes: one that begins with those
 * of an earlier request means the same, whoever sends it, and need not be parsed or looked up
 * again.
 *
 * Invariants
 *   - An entry is the whole of a request, with its end: no other request begins with it.
 *   - Whether a session gives the request another meaning is asked by the service, each time.
 */
#ifndef SIDFLAKE_SERVE_RECENT_H
#define SIDFLAKE_SERVE_RECENT_H

#include "base/span.h"
#include "ids/names.h"

#include <string.h>

#define RECENT_REQUESTS 4
#define RECENT_BYTES    96
#define RECENT_LEAST    sizeof(uint64_t)

struct recent_request {
    char bytes[RECENT_BYTES];
    size_t n;                 /* RECENT_LEAST.., or SIZE_MAX: none yet */
    uint64_t tail;            /* its last 8 bytes: requests differ there if anywhere */
    struct span key;          /* into bytes */
    struct names_entry *name; /* of the table, which never changes */
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
static inline const struct recent_request *recent_find(struct recent *r, struct span in)
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
    r->next = (r->next + 1) % RECENT_REQUESTS;
}

#endif
