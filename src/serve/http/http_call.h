/*
 * One HTTP request on its way through a route: what the files of the HTTP service share.
 *
 * Invariants
 *   - A route appends a body to out, behind call.body, and returns its status; it never writes
 *     before call.body.
 *   - HTTP_PARKED: call.step says what is waited for. If session.collected is not 0, what stands in
 *     out is found there again; else the route begins anew.
 */
#ifndef SIDFLAKE_SERVE_HTTP_HTTP_CALL_H
#define SIDFLAKE_SERVE_HTTP_HTTP_CALL_H

#include "serve/access.h"
#include "serve/serve.h"
#include "wire/http_request.h"

#define HTTP_PARKED    0 /* instead of a status */
#define HTTP_TYPE_JSON SPAN("application/json")
#define HTTP_CALL_MORE 320 /* bytes of further header lines */

/* State of a connection. */
struct http_session {
    struct access access; /* first */
    uint32_t collected;   /* IDs in the unfinished reply at the front */
};

struct http_call {
    struct serve *serve;
    struct http_session *session;
    const struct http_req *req;
    struct net_turn *turn;
    struct buf *out;
    size_t body;      /* offset in out */
    const char *path; /* of the route */
    struct span arg;  /* what follows it in the request's path; printable, as sent */
    struct span type; /* Content-Type of the body */
    struct buf more;  /* header lines besides the usual ones, with their CRLF; in more_text */
    char more_text[HTTP_CALL_MORE];
    struct access access; /* of this request: each brings its own user */
    struct net_step step;
};

/* Replaces the body by "expected …, found "…"", as plain text; found is cut. Returns status. */
int http_call_fail(struct http_call *c, int status, const char *expected, struct span found);

/* Replaces the body by the reason why no number can be had. Returns 503, or 404 where there is
 * nothing of that name. */
int http_call_refuse(struct http_call *c, struct refusal why);

/* Whether IDs are to be had by this request: 200, else HTTP_PARKED or the status of the body
 * written.
 */
int http_call_admit(struct http_call *c);

/* Whether a browser may have been led here by another site: 200, else the status of the body
 * written. guarded: IDs and the status. */
int http_call_host(struct http_call *c, bool guarded);

/* Of a path /v1/KIND/NAME: the prefix of the kind, and NAME; NULL: it is no such path. */
const struct names_prefix *http_call_kind(const struct serve *s, struct span path,
                                          struct span *name);

static inline bool http_call_wants_json(const struct http_call *c)
{
    return http_list_has(c->req->accept, HTTP_TYPE_JSON);
}

/* GET /v1/id/NAME?n=N and GET /v1/decode/TEXT. */
int http_call_id(struct http_call *c);
int http_call_decode(struct http_call *c);

#endif
