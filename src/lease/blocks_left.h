/*
 * How many numbers are left in blocks that the machine holds: for what is told of them. The loop
 * gives out from them meanwhile.
 */
#ifndef SIDFLAKE_LEASE_BLOCKS_LEFT_H
#define SIDFLAKE_LEASE_BLOCKS_LEFT_H

#include "lease/blocks.h"

int64_t blocks_left_in(const struct blocks *b, const struct blocks_slot *s);
int64_t blocks_left_of(const struct blocks *b, uint32_t counter);
/* unproven: of what is so alone. */
int64_t blocks_left(const struct blocks *b, bool unproven);

/* What was in hand of the counters of an action. */
struct blocks_was {
    uint32_t handle[BLOCKS_ITEMS][BLOCKS_SLOTS];
    int64_t left;
};

void blocks_note_left(const struct blocks *b, const struct blocks_action *a,
                      struct blocks_was *was);
/* So many numbers less are in hand of it than were. */
int64_t blocks_gone_since(const struct blocks *b, const struct blocks_action *a,
                          const struct blocks_was *was);

#endif
