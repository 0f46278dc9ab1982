/*
 * The kind of generator that gives IDs: a snowflake, and what it is told of its workerIds.
 *
 * Invariants
 *   - Before `started` there is no epoch, and so no ID; the machine is all zero.
 *   - Causes are numbered as enum snowflake_status.
 */
#ifndef SIDFLAKE_IDS_SNOWFLAKE_GENERATOR_H
#define SIDFLAKE_IDS_SNOWFLAKE_GENERATOR_H

#include "ids/generator.h"
#include "ids/snowflake.h"

struct snowflake_generator {
    struct generator base; /* of snowflake_kind */
    struct snowflake ids;
    bool started; /* ids has an epoch: a pool was found */

    /* Kept by whoever holds the leases. */
    bool alone;       /* static:N: nobody gives another workerId */
    int64_t ahead_ms; /* this clock less the coordinator's, at its latest answer, where that is more
                         than the pool allows; else 0 */
    const char *why;  /* why there is no workerId; one line, "" when unknown. Outlives this */
};

extern const struct generator_kind snowflake_kind;

/* why: as the field. */
static inline void snowflake_generator_init(struct snowflake_generator *g, const char *why)
{
    *g = (struct snowflake_generator){.base.kind = &snowflake_kind, .why = why};
}

/* A pool was found, with this epoch and layout. As snowflake_init; it forgets every workerId. */
static inline void snowflake_generator_start(struct snowflake_generator *g, int64_t epoch_ms,
                                             const struct layout *layout, int64_t wait_below_ms,
                                             unsigned want_active)
{
    snowflake_init(&g->ids, epoch_ms, layout, wait_below_ms, want_active);
    g->started = true;
}

static inline bool snowflake_generator_is(const struct generator *g)
{
    return g->kind == &snowflake_kind;
}

/* The usual case, inline behind that test: as snowflake_more. */
static inline bool snowflake_generator_more(struct generator *g, int64_t now_ms, int64_t *id)
{
    return snowflake_more(&((struct snowflake_generator *)g)->ids, now_ms, 1, (uint64_t *)id);
}

#endif
