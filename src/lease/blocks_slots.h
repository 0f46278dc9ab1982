/*
 * What becomes of a block of the machine: in the state page, and in mails to the loop. Of this room
 * alone.
 */
#ifndef SIDFLAKE_LEASE_BLOCKS_SLOTS_H
#define SIDFLAKE_LEASE_BLOCKS_SLOTS_H

#include "lease/blocks.h"

/* A mail about counter i. */
struct blocks_mail *blocks_post(struct blocks *b, enum blocks_mail_kind kind, uint32_t i);
void blocks_post_known(struct blocks *b, uint32_t i);

/* What was asked of counter i is refused. until: mono; keeps_on: as the mail's. */
void blocks_refuse(struct blocks *b, uint32_t i, unsigned how, int64_t until, bool keeps_on);

/* How many of its numbers were given out, or dropped. */
int64_t blocks_given(const struct blocks *b, const struct blocks_slot *s);
bool blocks_used_up(const struct blocks *b, const struct blocks_slot *s);

void blocks_store(struct blocks *b, const struct blocks_slot *s);
void blocks_set_free(struct blocks *b, struct blocks_slot *s);

/* Where a further block can be; NULL: there are two already. */
struct blocks_slot *blocks_room(struct blocks *b, struct blocks_counter *c);

/* Whether some block is told by the page alone. */
bool blocks_wait_for_proof(const struct blocks_counter *c);

/* Nothing above hi is given out any more. */
void blocks_cut(struct blocks *b, struct blocks_slot *s, int64_t hi);
/* The same of its latest OWN. */
void blocks_cut_own(struct blocks *b, struct blocks_counter *c, int64_t hi);
/* Nothing of the counter. */
void blocks_drop(struct blocks *b, struct blocks_counter *c);

/* The loop may give out from it. */
void blocks_mail_grant(struct blocks *b, struct blocks_slot *s);

/* The counter wants something, and is asked for in its turn. */
void blocks_queue(struct blocks *b, uint32_t i);
/* The first in the line has had its turn. */
void blocks_leave_line(struct blocks *b);

#endif
