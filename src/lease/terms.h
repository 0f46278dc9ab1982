/*
 * What a pool's answers teach the lease machine: how often to renew, how far ahead the pool grants,
 * and whether its workerIds are still those that it had.
 */
#ifndef SIDFLAKE_LEASE_TERMS_H
#define SIDFLAKE_LEASE_TERMS_H

#include "lease/lease.h"

/* ms, or less: give or take its jitter of a fifth it is a quarter of settle at most. */
int64_t terms_within_settle(const struct lease *l, int64_t ms);

/* Between renewals, ms: of a holder with a young tenure, or of one without. */
int64_t terms_renew_every(const struct lease *l, bool young);

/* Of a pool from which something is held, or will be. */
void terms_learn_ahead(struct lease *l, const struct coord_params *p);

/* The same of one whose workerIds are to be told from those that a renewal finds. */
void terms_learn_range(struct lease *l, const struct coord_params *p);

/* All that a pool as it was described teaches; the page remembers its parameters, unless all that
 * is held are workerIds which that pool has not. */
void terms_learn_pool(struct lease *l, const struct coord_pool *p);

/* false: the page remembers another pool than the one that was described last. */
bool terms_is_learnt(const struct lease *l);

/* ms from wall until the last range that is held has ended; 0: nothing is held, or all have. */
int64_t terms_left(const struct lease *l, int64_t wall);

/* Ranges below it are over. What is given up cannot be brought into a pool that is made again, so a
 * clock that is ahead of the coordinator's is not believed: it may be right again in a moment. */
int64_t terms_over(const struct lease *l, const struct coord_reply *r, int64_t wall);

/* Whether identity has the epoch and the layout that IDs must have, the config's, or those that
 * some were issued with; else l->trouble says what was found. */
bool terms_space_agrees(struct lease *l, const char *identity, int64_t *epoch,
                        struct layout *layout);

/* Whether a claim waits since the pool was reopened: until the floor of what was free then, give or
 * take what the clocks may differ by. Else it waits for the end of some holder's range. */
bool terms_rest_of_reopening(const struct coord_pool *p, const struct coord_reply *r);

/* Whether an operator's word would end it: the latest reopening can be taken back before the wait
 * is over, and none before it has a floor that would stay. */
bool terms_word_helps(const struct coord_pool *p, const struct coord_reply *r);

/* What any answer tells: the era. A pool that is missing, or of another era than before, may have
 * been made again by the next answer, and is described anew. */
void terms_learn_answer(struct lease *l, const struct lease_outcome *o);

/* That the pool is lost: where its clock was ahead with this one, it had granted farther ahead of
 * the time than its parameters allow. The pool that is made in its place learns so, by whom it is
 * made and by each renewal. */
void terms_learn_loss(struct lease *l, const struct coord_reply *r, int64_t wall);

/* What an answered renewal tells: the settle, in l->range whether the workerIds are others than
 * those of what is held, and whether the pool is to be described anew, being another one by now:
 * lost and made again between two renewals, it has the identity and the era of the one before. */
void terms_learn_renewal(struct lease *l, const struct coord_terms *t);

#endif
