/*
 * The kind of generator that gives IDs: a snowflake, and what it is told of its workerIds.
 *
 * Invariants
 *   - Before `started` there is no epoch, and so no ID; the machine is all zero.
 *   - Causes are numbered as enum snowflake_status.
 *   - Where its IDs may be ahead of the clock, that is believed no further than `trust` bears out.
 */
#ifndef SIDFLAKE_IDS_SNOWFLAKE_GENERATOR_H
#define SIDFLAKE_IDS_SNOWFLAKE_GENERATOR_H

#include "base/clock.h"
#include "ids/generator.h"
#include "ids/snowflake.h"
#include "ids/snowflake_ahead.h"

struct snowflake_generator {
    struct generator base; /* of snowflake_kind, or of snowflake_ahead_kind */
    struct snowflake ids;
    struct snowflake_ahead ahead; /* of snowflake_ahead_kind alone, as are … */
    struct clock *clock;          /* … what counts on while nobody is asked for the time … */
    struct snowflake_trust trust; /* … and the coordinator's word on it */
    bool started;                 /* ids has an epoch: a pool was found */

    /* Kept by whoever holds the leases. */
    bool alone;       /* static:N: nobody gives another workerId */
    int64_t ahead_ms; /* this clock less the coordinator's, at its latest answer, where that is more
                         than the pool allows; else 0 */
    bool away;        /* who could grant one does not answer: why says what came instead */
    const char *why;  /* why there is no workerId; one line, "" when unknown. Outlives this */
};

extern const struct generator_kind snowflake_kind;

/* The same, where its IDs may be ahead of the clock. A kind of its own, so that it costs the other
 * nothing. */
extern const struct generator_kind snowflake_ahead_kind;

/* why: as the field. */
static inline void snowflake_generator_init(struct snowflake_generator *g, const char *why)
{
    *g = (struct snowflake_generator){.base.kind = &snowflake_kind, .why = why};
}

/* Right behind it. clock outlives g. */
static inline void snowflake_generator_ahead(struct snowflake_generator *g, bool borrow, bool hold,
                                             struct clock *clock)
{
    if (borrow || hold)
        g->base.kind = &snowflake_ahead_kind;
    g->ahead = (struct snowflake_ahead){.borrow = borrow, .hold = hold};
    g->clock = clock;
}

/* A pool was found, with this epoch and layout. As snowflake_init; it forgets every workerId. */
static inline void snowflake_generator_start(struct snowflake_generator *g, int64_t epoch_ms,
                                             const struct layout *layout, int64_t wait_below_ms,
                                             unsigned want_active)
{
    snowflake_init(&g->ids, epoch_ms, layout, wait_below_ms, want_active);
    snowflake_ahead_init(&g->ahead, &g->ids, 0);
    g->started = true;
}

/* Right behind that: up to when IDs are known to have been issued, 0: not known, and how far above
 * the time the clock is believed. */
static inline void snowflake_generator_go_on(struct snowflake_generator *g, int64_t latest_ms,
                                             int64_t skew_ms)
{
    snowflake_ahead_init(&g->ahead, &g->ids, latest_ms);
    if (g->base.kind == &snowflake_ahead_kind && g->trust.reach_ms == 0)
        g->trust =
            (struct snowflake_trust){.ms = latest_ms > 0 ? latest_ms : clock_wall_ms(g->clock),
                                     .mono_ms = clock_mono_ms(g->clock),
                                     .skew_ms = skew_ms};
}

/* The latest ID, also of an earlier life, is of a time above the clock. */
static inline bool snowflake_generator_is_ahead(const struct snowflake_generator *g)
{
    return g->base.kind == &snowflake_ahead_kind &&
           snowflake_ahead_latest(&g->ahead, &g->ids) > g->ahead.seen_ms;
}

static inline bool snowflake_generator_is(const struct generator *g)
{
    return g->kind == &snowflake_kind;
}

static inline bool snowflake_ahead_generator_is(const struct generator *g)
{
    return g->kind == &snowflake_ahead_kind;
}

/* The usual cases, inline behind these tests: as snowflake_more. */
static inline bool snowflake_ahead_generator_more(struct generator *g, int64_t now_ms, int64_t *id)
{
    struct snowflake_generator *s = (struct snowflake_generator *)g;
    return snowflake_ahead_more(&s->ahead, &s->ids, now_ms, 1, (uint64_t *)id);
}

static inline bool snowflake_generator_more(struct generator *g, int64_t now_ms, int64_t *id)
{
    return snowflake_more(&((struct snowflake_generator *)g)->ids, now_ms, 1, (uint64_t *)id);
}

#endif
