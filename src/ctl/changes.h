/*
 * What happened in a pool between two snapshots, told from its records alone.
 */
#ifndef SIDFLAKE_CTL_CHANGES_H
#define SIDFLAKE_CTL_CHANGES_H

#include "coord/coord.h"

/* Of each workerId what is needed to compare. */
struct ctl_past {
    int64_t t0_ms[COORD_WORKERS]; /* -1: not held */
    uint64_t n[COORD_WORKERS];
    bool known; /* false: nothing is remembered yet */
};

/* Those between two looks: a workerId that was returned and claimed again counts as both. */
struct ctl_changes {
    uint64_t claims, renewals, returns;
};

/* Fills *out, and remembers snap for the next time; true where there was one before. */
bool ctl_changes_since(struct ctl_past *past, const struct coord_snapshot *snap,
                       struct ctl_changes *out);

#endif
