/*
 * What an action of the lease machine asks of a coordinator. Blocks.
 */
#ifndef SIDFLAKE_LEASE_ASK_H
#define SIDFLAKE_LEASE_ASK_H

#include "lease/lease.h"

/* Of any action but IDLE and FINISHED: makes its call and fills in the outcome; items of a renewal
 * are answered in the action. identity: the pool's. wall: the caller's clock, Unix ms. */
void lease_ask(struct coord *c, const char *identity, int64_t wall, struct lease_action *a,
               struct lease_outcome *o);

#endif
