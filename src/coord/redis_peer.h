/*
 * A connection to one server, Redis or Sentinel: requests and their replies, in plain blocking
 * calls.
 *
 * Invariants
 *   - One deadline, set by peer_allow, bounds everything asked until it is set again: connecting,
 *     sending, waiting. A name is looked up beyond it: each server in resolv.conf is asked once for
 *     IPv4 and once for IPv6, for as long, and for a second at least (resolver(3)).
 *   - Nor is more read until then than was allowed, or an answer without an end took all memory.
 *   - A request is sent once. Whether one without an answer took effect is not known, and such a
 *     connection is dropped, so that no late reply is taken for the answer to a later question.
 *   - Declares no more of hiredis than names.
 *
 * Each enum coord_status is COORD_OK, or COORD_DOWN or COORD_REFUSED with a text that names the
 * server.
 */
#ifndef SIDFLAKE_COORD_REDIS_PEER_H
#define SIDFLAKE_COORD_REDIS_PEER_H

#include "base/clock.h"
#include "coord/coord.h"
#include "coord/redis_url.h"

struct redisContext;
struct redisReply;

struct peer {
    struct redis_url_node at;
    struct clock *clock;
    int64_t began_us, deadline_us; /* of what is asked now; monotonic */
    size_t may_read;               /* bytes, of answers to it */
    struct redisContext *context;  /* NULL: not connected */
};

#define PEER_READ_MAX ((size_t)1 << 20) /* bytes: more than any answer but a snapshot's */

/* From now on there are us microseconds, at least 0, and PEER_READ_MAX bytes of answers. */
void peer_allow(struct peer *p, int64_t us);

/* What is left of them, at least 0. */
int64_t peer_left_us(const struct peer *p);

/* Connects to p->at; there must be no connection. */
enum coord_status peer_join(struct peer *p, struct coord_reply *r);

/* Gives up the connection, if there is one. */
void peer_drop(struct peer *p);

/* Whether there is a connection that can be used again: one with anything to read has been closed
 * by the server, or carries what nobody asked for. */
bool peer_ready(const struct peer *p);

/* One command, one reply, which is the caller's to give to peer_forget. What is not COORD_OK has
 * dropped the connection. An error reply is a reply. */
enum coord_status peer_ask(struct peer *p, int argc, const char **argv, const size_t *len,
                           struct redisReply **reply, struct coord_reply *r);

/* A command of the connection's own, which must be answered by OK; else the connection is dropped.
 * secret: of the arguments; see peer_unwanted. */
enum coord_status peer_greet(struct peer *p, int argc, const char **argv, const size_t *len,
                             struct span secret, struct coord_reply *r);

/* AUTH, where there is a password. */
enum coord_status peer_login(struct peer *p, const struct redis_url_secret *user,
                             const struct redis_url_secret *password, struct coord_reply *r);

/* Several at once: put each, then send all, then take a reply for each. */
enum coord_status peer_put(struct peer *p, int argc, const char **argv, struct coord_reply *r);
enum coord_status peer_send(struct peer *p, struct coord_reply *r);
enum coord_status peer_take(struct peer *p, struct redisReply **reply, struct coord_reply *r);

/* ---- replies -------------------------------------------------------------------------------- */

enum peer_kind {
    PEER_TEXT,   /* a string, or a status such as OK */
    PEER_ERROR,  /* text: what follows the '-' */
    PEER_NUMBER, /* an integer */
    PEER_LIST,
    PEER_NIL,
    PEER_OTHER,
};

struct peer_said {
    enum peer_kind kind;
    struct span text; /* of TEXT and ERROR; lives as long as the reply */
    int64_t number;
    size_t n; /* elements of LIST */
};

/* reply may be NULL, which is PEER_OTHER. */
struct peer_said peer_said(const struct redisReply *reply);

/* Element i of a list; PEER_OTHER where there is none. */
struct peer_said peer_item(const struct redisReply *reply, size_t i);

/* The first word of an error, such as NOAUTH, is this. */
bool peer_is_error(const struct redisReply *reply, const char *code);

/* What a reply of the wrong kind comes to: COORD_DOWN for the error of a server that will answer
 * later or has ceased to be the master, else COORD_REFUSED. The server's words are told whole, but
 * for an error that may quote the secret that was sent. */
#define PEER_NO_SECRET ((struct span){NULL, 0})
enum coord_status peer_unwanted(const struct redisReply *reply, const char *command,
                                struct span secret, struct coord_reply *r);

/* Frees *reply, which may be NULL, and makes it NULL. */
void peer_forget(struct redisReply **reply);

#endif
