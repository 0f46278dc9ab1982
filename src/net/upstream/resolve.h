/*
 * Looking a name up, off the loop.
 *
 *     loop                          a thread
 *     resolver_ask, a job is left -> getaddrinfo ... -> notify
 *     resolver_take: the answer
 *
 * Invariants
 *   - The loop never waits: the one lock is held for a few instructions.
 *   - One question is under way at a time; who asks meanwhile gets its answer.
 *   - Freeing does not wait for an answer, which may take minutes where nobody gives one: the
 *     thread sees to what is its own, and calls nobody any more.
 */
#ifndef SIDFLAKE_NET_UPSTREAM_RESOLVE_H
#define SIDFLAKE_NET_UPSTREAM_RESOLVE_H

#include "base/err.h"
#include "net/upstream/upstream.h"

#include <sys/socket.h>

#define ADDRESSES 4 /* of a name; others are left out */

struct resolved {
    unsigned n; /* 0: none, and why says so */
    struct sockaddr_storage addr[ADDRESSES];
    socklen_t len[ADDRESSES];
    bool cut;        /* it has others, too */
    bool none;       /* there is no such name, as opposed to: nobody can say */
    const char *why; /* static; NULL where there are some */
};

struct resolver;

/* What getaddrinfo(3) says now, by the caller's thread; numeric: for addresses written in digits
 * alone, without asking anybody. */
void resolve(upstream_look_up *look_up, const char *host, uint16_t port, bool numeric,
             struct resolved *out);

/* look_up stands for getaddrinfo(3) where not NULL. notify is called by the thread. */
enum err_code resolver_new(const char *host, uint16_t port, upstream_look_up *look_up,
                           void (*notify)(void *arg), void *arg, struct resolver **out,
                           struct err *e) MUST_CHECK;

void resolver_ask(struct resolver *r);

/* false: none has come since. */
bool resolver_take(struct resolver *r, struct resolved *out);

/* NULL is allowed. */
void resolver_free(struct resolver *r);

#endif
