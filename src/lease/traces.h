/*
 * What earlier lives left in state pages, beside the slots that can be taken over: which pool they
 * knew, and up to which time their workerIds were used.
 */
#ifndef SIDFLAKE_LEASE_TRACES_H
#define SIDFLAKE_LEASE_TRACES_H

#include "lease/lease.h"

/* No IDs were issued with this state directory: no page, or one that never knew a pool. */
bool traces_none(const struct pagefile *f);

/* The pool that the page knew: last_identity, last_params, last_settle_ms, last_known. */
void traces_note_pool(struct lease *l, const struct page *p);

/* Where IDs may have been issued of the pool noted: its epoch and layout are to be those of any
 * other, unless the configuration names one. */
void traces_pin_space(struct lease *l, const struct page *p);

/* The slots of another boot's page: foreign, foreign_last, nforeign. */
void traces_note_foreign(struct lease *l, const struct page *old);

/* Slot i of this page is not gone on from, its IDs being ahead of a clock: likewise, and free. */
void traces_note_ahead(struct lease *l, unsigned i);

/* Up to when IDs were issued, of whichever workerId: latest_ms. */
void traces_note_latest(struct lease *l, const struct pagefile *f);

/* Unix ms: the latest time at which the grant's workerId may have been used; at least lo - 1. */
int64_t traces_floor(const struct lease *l, const struct coord_grant *g);

#endif
