/*
 * The issuer: one generator for all protocols, and what becomes of a request it cannot serve yet.
 *
 * Invariant: a clock reading older than the turn is never used; the clock is read once per turn,
 * and again only when the generator says that it has to wait.
 */
#ifndef SIDFLAKE_SERVE_ISSUER_H
#define SIDFLAKE_SERVE_ISSUER_H

#include "ids/names.h"
#include "ids/snowflake.h"
#include "net/net.h"

struct issuer {
    struct snowflake gen;
    struct names names;
    bool started;        /* gen has an epoch: a pool was found */
    bool granted;        /* a workerId was held at least once */
    bool alone;          /* static:N: nobody gives another workerId */
    int64_t max_wait_us; /* longest that a request waits for a clock or a workerId */
    uint32_t batch;      /* most IDs of one request that names a count */
    int64_t ahead_ms;    /* this clock less the coordinator's, at its latest answer, where that is
                            more than the pool allows; else 0 */
    char why[ERR_TEXT_MAX]; /* why there is no workerId; one line, "" when unknown */

    uint64_t waited_us; /* time that the clock was waited for, in all */
};

enum issue_status {
    ISSUE_OK,
    ISSUE_PARK, /* step says for what; nothing was issued */
    /* Refused, after waiting where that could help. The order is that of issue_refusals. */
    ISSUE_LOADING, /* no workerId yet, or none any more */
    ISSUE_STALLED, /* the clock is behind the latest ID, and no other workerId can stand in */
    ISSUE_CEILING, /* the clock is above every range held: the coordinator is away for too long, has
                      another pool, or none, or its clock is far behind */
    ISSUE_EPOCH,   /* the time is before the epoch, or past the end of the time field */
};

/* n contiguous IDs (1..1024), *first .. *first + n - 1. Fills *step with ISSUE_PARK. */
enum issue_status issuer_next(struct issuer *i, struct net_turn *turn, uint32_t n, uint64_t *first,
                              struct net_step *step);

/* The usual case of issuer_next, inline; false: nothing was done, ask issuer_next. */
static inline bool issuer_more(struct issuer *i, struct net_turn *turn, uint32_t n, uint64_t *first)
{
    if (turn->quota < n || !snowflake_more(&i->gen, turn->wall_ms, n, first))
        return false;
    turn->quota -= n;
    return true;
}

/* 1..max contiguous IDs, as many as can be had at once; *got is how many. */
enum issue_status issuer_some(struct issuer *i, struct net_turn *turn, uint32_t max,
                              uint64_t *first, uint32_t *got, struct net_step *step);

/* Most IDs of issuer_next for one request: those of one millisecond, or the fewer of batch. */
static inline uint32_t issuer_run(const struct issuer *i)
{
    return i->batch < LAYOUT_SEQUENCES ? i->batch : LAYOUT_SEQUENCES;
}

/* What to tell the client about a refusal: one line, without the protocol's own prefix. The text is
 * valid until the next call. */
const char *issuer_refusal(const struct issuer *i, enum issue_status s);

/* The latest ceiling of what is held, in Unix ms: IDs can be had no longer. 0: nothing is held. */
int64_t issuer_until(const struct issuer *i);

/* Whether an ID could be had now: ISSUE_OK, or the refusal that it would come to. A clock that is
 * behind by less than wait_below counts as OK. */
enum issue_status issuer_ready(const struct issuer *i, int64_t wall_ms);

#endif
