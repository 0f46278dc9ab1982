/*
 * What a Redis is set up to lose of a pool, or cannot take, told from what it says of itself. Pure.
 *
 * Invariants
 *   - What is not said is no risk: hosted servers hide much.
 *   - A policy of the volatile kind is none: the pool's keys have no time to live.
 *   - Full is what refuses writes: more memory in use than there may be, but for the buffers that
 *     Redis does not count, where nothing is evicted for it; or a log that cannot be written.
 *
 * Sources: the Redis commands INFO and CONFIG GET save.
 */
#ifndef SIDFLAKE_COORD_RISK_H
#define SIDFLAKE_COORD_RISK_H

#include "base/span.h"

#include <stdbool.h>

/* save: the value of that setting where it was told, which save_told says; ""
 * is none. Returns enum coord_risk, or'ed. */
unsigned risk_of(struct span info, bool save_told, struct span save);

#endif
