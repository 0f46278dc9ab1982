/*
 * A snapshot of a pool, made from the raw contents of the script's four keys. Pure but for the
 * memory of the snapshot.
 *
 * Invariants
 *   - Of the hash only these fields are asked for: it has the rows of the pool's sequences, too, of
 *     which there may be millions, and a server serves nobody while it tells them all.
 *   - The keys may hold anything: an entry that cannot be read is shown as such or left out, and
 *     only a hash without the pool's own fields makes no snapshot.
 *   - Spans need to live only until the call returns.
 */
#ifndef SIDFLAKE_COORD_ROSTER_H
#define SIDFLAKE_COORD_ROSTER_H

#include "coord/answer.h"

#define ROSTER_OWN 34 /* fields of the pool itself; then one for each workerId */

/* The name of field i, 0..ROSTER_OWN-1. */
const char *roster_field(size_t i);

struct roster_list {
    struct span *v;
    size_t n;
};

struct roster {
    struct roster_list hash;  /* values of the fields, in their order; p is NULL: there is none */
    uint16_t from;            /* the first of the workerIds */
    struct roster_list queue; /* head first */
    struct roster_list index;
    struct roster_list who; /* workerId, JSON … */
    int64_t now_ms;
};

/* Fills out and r. What is not COORD_OK may leave memory in out: coord_snapshot_clear. */
enum coord_status roster_read(const struct roster *in, const struct answer_to *to,
                              struct coord_snapshot *out, struct coord_reply *r);

#endif
