/*
 * What coord/answer.h promises of any answer that is taken: for those who feed it hostile ones.
 */
#ifndef SIDFLAKE_FUZZ_COORD_BOUNDS_H
#define SIDFLAKE_FUZZ_COORD_BOUNDS_H

#include "feed.h"

#include "coord/coord.h"

#define BOUNDS_CALLER_MS INT64_C(1780000000000) /* Unix ms: the asker's clock */
#define BOUNDS_AHEAD_MS  (INT64_C(25) * 3600 * 1000)

/* An answer that is not one of a working pool's is explained. */
static inline void bounds_explained(enum coord_status s, const struct coord_reply *r)
{
    feed_must(s <= COORD_DOWN, "a status is one of those there are");
    feed_must(s <= COORD_LOST || r->err.text[0] != '\0', "what is refused is explained");
}

static inline void bounds_grant(const struct coord_grant *g, const struct coord_reply *r)
{
    feed_must(g->worker < COORD_WORKERS, "a workerId has 15 bits");
    feed_must(g->lo_ms >= 1 && g->lo_ms <= BOUNDS_CALLER_MS, "a floor is not above the clock");
    feed_must(g->hi_ms >= g->lo_ms && g->hi_ms <= r->now_ms + BOUNDS_AHEAD_MS,
              "a ceiling is at most 25 h ahead");
    feed_must(g->n >= 1, "a record has changed at least once");
}

/* Of an item that was held up to BOUNDS_CALLER_MS. */
static inline void bounds_renewal(const struct coord_renewal *item, const struct coord_reply *r)
{
    feed_must(item->hi_ms >= BOUNDS_CALLER_MS, "a renewal never lowers a ceiling");
    feed_must(item->how == COORD_HOW_LOST || item->hi_ms <= r->now_ms + BOUNDS_AHEAD_MS,
              "a ceiling is at most 25 h ahead");
}

static inline void bounds_pool(const struct coord_pool *pool)
{
    struct err e;
    feed_must(coord_params_check(&pool->params, &e) == ERR_OK, "a pool's parameters are sound");
}

#endif
