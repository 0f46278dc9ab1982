/*
 * Replies that carry IDs, from a client's side.
 *
 * Invariants
 *   - Pure: bytes in, one complete reply out; REPLY_MORE says that it is not complete yet.
 *   - IDs are told only of a complete reply: a client that lost its connection half-way through one
 *     never had them.
 */
#ifndef SIDFLAKE_CHAOS_REPLY_H
#define SIDFLAKE_CHAOS_REPLY_H

#include <stddef.h>
#include <stdint.h>

#define REPLY_IDS_MAX  1024u
#define REPLY_TEXT_MAX 80u

enum reply_status {
    REPLY_MORE,
    REPLY_IDS,
    REPLY_REFUSED, /* an error reply, as there must be when no ID can be had */
    REPLY_BAD,     /* neither: a fault of the sidecar */
};

struct reply {
    size_t used; /* bytes; not for REPLY_MORE and REPLY_BAD */
    size_t n;    /* IDs, in the order of the reply */
    uint64_t id[REPLY_IDS_MAX];
    char text[REPLY_TEXT_MAX]; /* of an error, or the beginning of what is bad */
};

/* A bulk string, an integer, an array of bulk strings, or an error. */
enum reply_status reply_resp(const char *p, size_t n, struct reply *out);

/* The items of a get up to END, at least one, or an error line. */
enum reply_status reply_memcached(const char *p, size_t n, struct reply *out);

#endif
