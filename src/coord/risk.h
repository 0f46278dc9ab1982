/*
 * What a Redis is set up to lose of a pool, told from what it says of itself. Pure.
 *
 * Invariants
 *   - What is not said is no risk: hosted servers hide much.
 *   - A policy of the volatile kind is none: the pool's keys have no time to live.
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
