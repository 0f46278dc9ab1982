/*
 * How far apart two words are: for one that somebody may have meant.
 *
 * Source: V. I. Levenshtein, "Binary codes capable of correcting deletions, insertions and
 * reversals", 1966.
 */
#ifndef SIDFLAKE_BASE_DISTANCE_H
#define SIDFLAKE_BASE_DISTANCE_H

#include "base/span.h"

#define DISTANCE_MAX 64 /* bytes of the second word */

/* Changes of one byte that make one of the other; SIZE_MAX: b is too long to say. */
size_t distance_between(struct span a, struct span b);

#endif
