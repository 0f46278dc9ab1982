/*
 * A snapshot of a pool, made from the raw contents of the script's four keys. Pure but for the
 * memory of the snapshot.
 *
 * Invariants
 *   - The keys may hold anything: an entry that cannot be read is shown as such or left out, and
 *     only a hash without the pool's own fields makes no snapshot.
 *   - Spans need to live only until the call returns.
 */
#ifndef SIDFLAKE_COORD_ROSTER_H
#define SIDFLAKE_COORD_ROSTER_H

#include "coord/answer.h"

struct roster_list {
    struct span *v;
    size_t n;
};

struct roster {
    struct roster_list hash;  /* field, value, field, value … */
    struct roster_list queue; /* head first */
    struct roster_list index;
    struct roster_list who; /* workerId, JSON … */
    int64_t now_ms;
};

/* Fills out and r. What is not COORD_OK may leave memory in out: coord_snapshot_clear. */
enum coord_status roster_read(const struct roster *in, const struct answer_to *to,
                              struct coord_snapshot *out, struct coord_reply *r);

#endif
