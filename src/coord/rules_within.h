/*
 * What the files of rules share: what every operation begins and ends with, and a workerId's record
 * as the pool counts it.
 */
#ifndef SIDFLAKE_COORD_RULES_WITHIN_H
#define SIDFLAKE_COORD_RULES_WITHIN_H

#include "coord/rules.h"

/* The pool is found, is the caller's, and has been reopened where the store may have been replaced.
 * COORD_OK, or what to answer. on_time: also where the caller's clock is not within S of T. */
enum coord_status rules_come_in(struct rules *u);
enum coord_status rules_come_in_on_time(struct rules *u);

/* The head of an answer: to be called when all is changed that will be. Returns s. */
enum coord_status rules_answer(struct rules *u, enum coord_status s);

/* How far ahead of its time a table that was lost may have granted, ms. */
int64_t rules_reach(const struct rules *u);

/* proof: that something was lost. floor: of records that say held, Unix ms. u->pool is changed; to
 * store it is the caller's. */
void rules_reopen(struct rules *u, bool proof, int64_t floor, enum coord_cause cause);

/* false: not a workerId of this pool, or a record that cannot be read. */
bool rules_get(struct rules *u, uint32_t worker, struct store_record *out);
/* Up to when it counts as used, Unix ms. */
int64_t rules_high(const struct rules *u, const struct store_record *r);
/* Makes it free, with what it counts as used, and queues it. */
void rules_set_free(struct rules *u, struct store_record *r);

#endif
