/*
 * Sweeping: now and then the counters of periods that are over, of sequences that this process has
 * numbers of, are dropped in the pool. Periods of the latest day stay, for people to look at,
 * behind those that numbers are still granted of. Of what is known by the page alone it is not
 * known how long that is. By a clock that has jumped nothing is closed, since nobody could open it
 * again.
 */
#ifndef SIDFLAKE_LEASE_PERIOD_SWEEP_H
#define SIDFLAKE_LEASE_PERIOD_SWEEP_H

#include "lease/blocks.h"

#define SWEEP_EVERY_MS (INT64_C(6) * 3600000)
#define SWEEP_KEPT_MS  (INT64_C(24) * 3600000)

struct period_sweep {
    struct rng *rng;
    int64_t due; /* mono: a round begins */
    /* Coordinator's time and mono as the round before began, or at first; time 0: not known. */
    int64_t time_ms, mono;
    bool on;     /* one is under way, and goes on at … */
    uint32_t at; /* … this counter */
    /* Names that had their turn in it, by a hash of the round's own: one of several may be left
     * out, and not for ever. */
    uint64_t seen[8], salt;
    char name[SEQ_NAME_MAX], period[PERIOD_LABEL_MAX]; /* what the call is about … */
    int64_t cursor; /* … and where in the pool it goes on; 0: it is over */
    int parts;
};

void period_sweep_init(struct period_sweep *s, struct rng *rng, int64_t mono);

/* true: a call is to be made; else *until falls to when that may be. */
bool period_sweep_due(struct period_sweep *s, const struct blocks *b, int64_t mono, int64_t *until);

/* Blocks, for one part of the pool: between two of them others are asked for. What it comes to does
 * not matter: there is another one. */
void period_sweep_call(struct period_sweep *s, struct coord *c, const char *identity);

#endif
