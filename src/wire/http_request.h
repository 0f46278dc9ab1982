/*
 * HTTP/1.0 and HTTP/1.1 for a server that only answers GET and HEAD: request heads in, response
 * heads out.
 *
 * Source: RFC 9112 (messages), RFC 9110 (semantics).
 *
 * Invariants
 *   - A head has at most HTTP_HEAD_MAX bytes, its empty line included.
 *   - Strict where requests are smuggled or split: no control characters, no obs-fold, no space
 *     before a colon, one Host, no body of any kind. A bare LF is taken for CRLF (RFC 9112, 2.2).
 *   - Every error closes: what follows a head not understood is not a request.
 *   - Nothing is percent-decoded: paths and queries are compared as they were sent.
 */
#ifndef SIDFLAKE_WIRE_HTTP_REQUEST_H
#define SIDFLAKE_WIRE_HTTP_REQUEST_H

#include "base/buf.h"
#include "base/span.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX  8192 /* bytes of a request's head */
#define HTTP_ERROR_MAX 640  /* bytes of a whole error response */

enum http_method {
    HTTP_GET,
    HTTP_HEAD
};

/* Filled by http_parse, except after WIRE_MORE. error may lie in error_text: not to be copied. */
struct http_req {
    enum http_method method;
    int minor;          /* 0: HTTP/1.0; 1: HTTP/1.1 or any later 1.x */
    bool keep_alive;    /* the client wants the connection kept, by its version and headers */
    struct span path;   /* begins with '/'; static if an absolute target has none */
    struct span query;  /* without '?'; p is NULL if there was none */
    struct span host;   /* of the Host header, or of an absolute target; may be empty */
    struct span accept; /* of the first Accept header; p is NULL if there was none */
    struct span authorization; /* of the first Authorization header; likewise */
    struct span origin;        /* of the first Origin header; likewise */
    struct span site, dest;    /* of the first Sec-Fetch-Site and -Dest; likewise */
    int status;                /* with WIRE_CLOSE: the error's status */
    struct span error;         /* with WIRE_CLOSE: the whole response, head and body */

    /* While parsing. */
    unsigned hosts; /* Host headers seen */
    bool has_length, close, keep, coded, chunked;
    uint64_t content_length; /* bytes; 0 without has_length */
    char error_text[HTTP_ERROR_MAX];
};

/* Answers WIRE_MORE, WIRE_REQ or WIRE_CLOSE. */
enum wire_status http_parse(struct span in, struct http_req *req, size_t *used);

/* The value of the first `name` or `name=value` of a query, parted by '&'. false if there is none;
 * *value is untouched then. A name without '=' has an empty value. */
bool http_query_get(struct span query, struct span name, struct span *value);

/* true if list, a comma-separated header value, has token, in either case, at the beginning of an
 * item that is not one of ";q=0":
 * "close", or "text/plain" in "text/plain; version=0.0.4;q=0.5". */
bool http_list_has(struct span list, struct span token);

/* "Not Found" for 404; "Unknown" for a status without a name here. */
const char *http_status_text(int status);

/* The head of a response, its empty line included. It forbids caching, as an ID read twice is a
 * duplicate; a 405 carries Allow. extra: whole header lines with their CRLF, or empty; must not
 * hold bytes from outside. To HEAD, send the head that GET would get, and no body. */
void http_put_head(struct buf *b, int status, struct span content_type, uint64_t content_length,
                   bool keep_alive, struct span extra);

#endif
