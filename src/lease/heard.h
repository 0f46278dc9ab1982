/*
 * The definitions of sequences as a coordinator told them last, by name: who has lost his pool has
 * nobody else to ask.
 *
 * Invariants
 *   - At most HEARD_MAX: the one that was known longest makes room for another.
 *   - One that was dropped is not heard of any more.
 */
#ifndef SIDFLAKE_LEASE_HEARD_H
#define SIDFLAKE_LEASE_HEARD_H

#include "coord/seq_calls.h"

#define HEARD_MAX 256

/* All zero: none. */
struct heard {
    struct heard_one *first;
    unsigned n;
};

/* What an answer says of the sequence; where there is no memory, it is as if it had said nothing.
 */
void heard_note(struct heard *h, const char *name, const struct seq_grant *g);

/* false: there was none. *max: highest index. */
bool heard_find(const struct heard *h, const char *name, struct seq_definition *out, int64_t *max);
void heard_clear(struct heard *h);

#endif
