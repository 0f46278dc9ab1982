/*
 * Which IDs were received: exact, one bit for each that there can be.
 *
 *   bit [millisecond since the first ID, less a margin] [workerId, as met] [sequence]
 *   bit [number]      of what is below IDSET_NUMBERS: of a sequence, since no ID is so small
 *
 * Invariants
 *   - No duplicate is missed within IDSET_MS of the first ID; an ID outside of that is told.
 *   - Only the pages that are used become resident.
 */
#ifndef SIDFLAKE_BENCH_IDSET_H
#define SIDFLAKE_BENCH_IDSET_H

#include <stdbool.h>
#include <stdint.h>

#define IDSET_MS      (1 << 17) /* 131 s */
#define IDSET_MARGIN  1000      /* ms before the first ID that another workerId may be behind */
#define IDSET_WORKERS 64
#define IDSET_NUMBERS (UINT64_C(1) << 33)

enum idset_verdict {
    IDSET_NEW,
    IDSET_DUPLICATE,
    IDSET_OUTSIDE, /* no ID of the layout, too far from the first one, or too many workerIds */
};

struct idset {
    uint64_t *bits;    /* [IDSET_MS][IDSET_WORKERS][1024 / 64] */
    uint64_t *numbers; /* [IDSET_NUMBERS / 64] */
    int64_t first;     /* time field of the first bit row; -1: none yet */
    uint32_t worker[IDSET_WORKERS];
    unsigned workers;
};

/* false: no memory. */
bool idset_init(struct idset *s);
void idset_clear(struct idset *s); /* of a zeroed one, too */
enum idset_verdict idset_add(struct idset *s, uint64_t id);

#endif
