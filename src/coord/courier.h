/*
 * The way to Redis: the script's calls and a pool's raw contents go over one connection, which is
 * made where there is none, straight or by asking sentinels for the master.
 *
 * Invariants
 *   - One deadline bounds everything from courier_start to courier_end: asking sentinels,
 *     connecting, AUTH, ROLE, SELECT, loading the script, and the requests. Only the look-up of a
 *     name is not bounded.
 *   - A connection is used again only after a reply that was understood. After anything else it is
 *     dropped, so that no late reply is taken for the answer to a later question.
 *   - A request is sent once. Whether one without an answer took effect is not known.
 *   - What replicas acknowledge is the history that the script wrote to: a server that was made
 *     another's replica in between, and a master again, has another replication id for good.
 */
#ifndef SIDFLAKE_COORD_COURIER_H
#define SIDFLAKE_COORD_COURIER_H

#include "coord/answer.h"
#include "coord/redis_peer.h"
#include "coord/redis_url.h"
#include "coord/sentinel.h"

#define COURIER_SHA1_TEXT 40
#define COURIER_KEYS      4
#define COURIER_KEY_HELD  2 /* the sorted set of held workerIds */
#define COURIER_KEY_MAX   (COORD_POOL_NAME_MAX + 24)
#define COURIER_ARGS_MAX                                                                           \
    (10 + COURIER_KEYS + 5 * COORD_RENEW_MAX) /* a renewal's; the others are shorter */
#define COURIER_ARG_SCRIPT 1 /* places among the arguments of EVALSHA: the SHA1 … */
#define COURIER_ARG_NONCE  (5 + COURIER_KEYS) /* … ARGV[3] … */
#define COURIER_ARG_CALLER (6 + COURIER_KEYS) /* … and ARGV[4] */

_Static_assert(12 + COURIER_KEYS + 11 * SEQ_ITEMS_MAX <= COURIER_ARGS_MAX, "a take fits");

enum courier_text {
    COURIER_POOL,      /* pool.lua */
    COURIER_SEQUENCES, /* sequences.lua, with what they share */
    COURIER_SNAPSHOT,  /* snapshot.lua */
    COURIER_TEXTS
};

struct courier {
    struct redis_url to;
    enum courier_text text;                  /* that courier_script runs */
    struct sentinel sentinel;                /* where to.master is not empty */
    struct peer peer;                        /* the Redis; its clock is set before the first call */
    int64_t timeout_us;                      /* of a call */
    char *password_file;                     /* owned; NULL: none */
    const char *password_of;                 /* as in coord_options; NULL: the URL's */
    struct redisReply *reply;                /* what the last answer points into, or NULL */
    char key[COURIER_KEYS][COURIER_KEY_MAX]; /* the script's, in its order */
    char sha[COURIER_TEXTS][COURIER_SHA1_TEXT + 1]; /* of each script, as the server says; empty:
                                                       not loaded yet */
    bool counts; /* an answer counts with replicas alone: from then on each connection knows … */
    char history[COURIER_SHA1_TEXT + 1]; /* … its server's replication id; empty: not asked yet */
    bool hidden; /* CONFIG GET was refused: it is not asked again, for a server notes who asks */
};

/* Gives up the connection, if there is one, until the next call. */
void courier_drop(struct courier *c);

/* Drops the connection and forgets the secrets; the memory is the caller's. */
void courier_clear(struct courier *c);

/* Answers from here on count with replicas alone; whether that was known before. */
bool courier_counts(struct courier *c);

/* The time of a call begins. */
void courier_start(struct courier *c);

/* EVALSHA with these arguments; argv[COURIER_ARG_SCRIPT] and its length are filled in here.
 * COORD_OK: *a is what the script said, good until the next courier_script or courier_end. Else
 * COORD_DOWN or COORD_REFUSED. */
enum coord_status courier_script(struct courier *c, int argc, const char **argv, size_t *len,
                                 struct answer *a, struct coord_reply *r);

/* COORD_OK: at least n replicas have acknowledged all that this connection's script wrote. Else
 * COORD_DOWN or COORD_REFUSED. COORD_DOWN as well where courier_counts was not called before
 * the script was. Sources: the Redis commands WAIT and INFO. */
enum coord_status courier_wait(struct courier *c, uint32_t n, struct coord_reply *r);

/* Ends a call that came to s, whatever that was; returns s. */
enum coord_status courier_end(struct courier *c, enum coord_status s);

/* As coord_risks. Source: the Redis commands INFO and CONFIG GET. */
bool courier_risks(struct courier *c, unsigned *out);

/* As coord_writes. Source: the Redis command ZADD. */
enum coord_status courier_writes(struct courier *c, struct coord_reply *r);

/* The four keys at one moment. */
enum coord_status courier_snapshot(struct courier *c, const struct answer_to *to,
                                   struct coord_snapshot *out, struct coord_reply *r);

#endif
