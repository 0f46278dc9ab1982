/*
 * The bridge between the keeper's supplies and the generators: the only place that knows both, by a
 * table with a row for each supply.
 *
 * Invariant: it runs in the serving loop's thread alone.
 */
#ifndef SIDFLAKE_DAEMON_BRIDGE_H
#define SIDFLAKE_DAEMON_BRIDGE_H

#include "base/log.h"
#include "ids/sequence_table.h"
#include "ids/snowflake_generator.h"
#include "lease/keeper.h"
#include "lease/workers.h"
#include "serve/serve.h"

struct bridge {
    struct serve *serve;
    struct snowflake_generator *ids;  /* what the workerIds are for */
    struct sequence_table *sequences; /* NULL: there are none, nor their supply */
    struct keeper *keeper;            /* NULL before it runs */
    struct net *net;
    struct clock *clock;
    unsigned want_active;
    int64_t wait_below_ms;

    bool finished;       /* the keeper has stopped */
    bool paused, proven; /* as its report says */
    bool ready;          /* the log has said that IDs can be had, and not that they have ended */
    bool was_ready;      /* ... ever, or why not was told */
    int64_t checked_ms;  /* wall ms at which the clocks were compared last */
    int64_t offset_us;   /* wall less monotonic time then */
    int64_t urge_due_us; /* monotonic: the next urgent request to the keeper may be sent */
    uint64_t rotations;  /* as seen last */
    int64_t max_skew_ms; /* a forward jump of the clock by more is answered by a renewal */
    struct log_limit rollback_log, ceiling_log, behind_log;
    int64_t behind_ms; /* Unix ms: until when the clock was behind as behind_log had it last */
};

/* The fields above `finished` are the caller's to set before. */
void bridge_init(struct bridge *b);

/* Takes what the keeper has sent. */
void bridge_take(struct bridge *b);

/* Why no IDs can be had; "": they can, or nothing is known yet. Till the next call. */
const char *bridge_why(const struct bridge *b);

/* After each turn of the loop: passes on what the generators want. Cheap when they want nothing. */
void bridge_settle(struct bridge *b);

/* Nothing that could be given back is given out any more. */
void bridge_let_go(struct bridge *b);

#endif
