/*
 * What becomes of a slot of the lease machine: in the state page, and in mails to the loop. Of this
 * room alone.
 */
#ifndef SIDFLAKE_LEASE_SLOTS_H
#define SIDFLAKE_LEASE_SLOTS_H

#include "lease/lease.h"

/* How many are in the state; the first that is, or LEASE_SLOTS. */
unsigned slots_count(const struct lease *l, enum page_state state);
unsigned slots_first(const struct lease *l, enum page_state state);

/* How many are held for the rest of their ranges alone. */
unsigned slots_outside(const struct lease *l);

/* One of them is not needed any more, if there is any. */
void slots_revoke_outside(struct lease *l);

/* A mail about slot i. last: LEASE_MAIL_GRANT, its last_ms. */
void slots_post(struct lease *l, enum lease_mail_kind kind, unsigned i, int64_t last);

void slots_free(struct lease *l, unsigned i);

/* What is HELD is so no more, by the coordinator's word or for its range is over. released: an
 * operator took it away. */
void slots_revoke(struct lease *l, unsigned i, bool released);

/* The loop may issue from it, above last, Unix ms. */
void slots_grant(struct lease *l, unsigned i, int64_t last);

/* HELD becomes LEAVING. The page first: from here on the slot is not issued from, whoever comes
 * next. */
void slots_leave(struct lease *l, unsigned i);

/* Held by the life before, which wanted more: it goes back instead of being granted. true: so it
 * does. */
bool slots_leave_surplus(struct lease *l, unsigned i);

#endif
