/*
 * What the log says of calls to a coordinator that come to nothing: each trouble once, with the
 * reason of the moment, and its end.
 *
 *     well --- a call fails ---> trouble: told, again when status or reason change, or each minute
 *      ^                            |
 *      '--- it is over, told -------'
 *
 * Invariants
 *   - A call that needs less says nothing of one that needs more: on a full disk and on a replica a
 *     pool can be read, and renewed where a claim fails. So a trouble is over when a call is
 *     answered that needs as much as those that failed, or when none has failed for a minute; and
 *     one in which nobody answered when somebody does.
 *   - Two reasons that differ in nothing but numbers are one.
 *   - A trouble that keeps changing is told twice at once, and then every ten seconds. Another
 *     state has such a limit of its own: reasons that take turns (a connection reset, or closed)
 *     hold back no "no pool".
 *   - One that comes and goes likewise, and what is not told has no end to be told: for a strict
 *     sequence each request is a call.
 *
 * Pure: it is told the time and writes nothing.
 */
#ifndef SIDFLAKE_LEASE_TROUBLE_H
#define SIDFLAKE_LEASE_TROUBLE_H

#include "base/log.h"
#include "lease/lease.h"

/* Zero-initialised: all is well. */
struct trouble {
    enum coord_status status;            /* as told; COORD_OK: none */
    bool answered;                       /* likewise */
    uint32_t reason;                     /* likewise, without its numbers */
    unsigned needs;                      /* most that a call needed which failed since it began */
    int64_t failed_ms;                   /* monotonic: the latest failure */
    struct log_limit remind, state, why; /* the same again; another state; another reason */
    enum coord_status ended;             /* status of the one before */
    int64_t began_ms;                    /* monotonic: when one was told to begin … */
    struct log_limit back;               /* … and is back soon */
};

/* A call and what became of it. */
struct trouble_call {
    enum lease_action_kind kind;
    enum coord_status status; /* COORD_OK: it is well */
    bool answered;            /* as coord_answered */
    const char *why;          /* "" where it is well */
    int64_t mono_ms;
};

/* true: something is to be told, which is t->status, COORD_OK meaning that the trouble is over. */
bool trouble_is_news(struct trouble *t, const struct trouble_call *c);

/* The line that tells it, a message of its own for each state. */
enum log_level trouble_level(const struct trouble *t);
const char *trouble_message(const struct trouble *t);

#endif
