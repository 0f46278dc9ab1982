/*
 * Was any ID issued twice? Takes all IDs of a test, from however many generators and lives, and
 * looks for equals at the end.
 *
 * Invariant: it forgets nothing; without memory it aborts.
 */
#ifndef SIDFLAKE_SUPPORT_IDCHECK_H
#define SIDFLAKE_SUPPORT_IDCHECK_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialised. */
struct idcheck {
    struct idcheck_run {
        uint64_t first, n;
    } * run; /* contiguous IDs: first .. first + n - 1 */
    size_t runs, room;
    uint64_t ids;
};

void idcheck_add(struct idcheck *c, uint64_t first, uint64_t n);

/* How many IDs occur a second time; *example (may be NULL) is one of them. Sorts. */
uint64_t idcheck_duplicates(struct idcheck *c, uint64_t *example);

void idcheck_clear(struct idcheck *c);

#endif
