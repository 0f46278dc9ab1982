/*
 * What the files of rules share: what every operation begins and ends with, and a workerId's record
 * as the pool counts it.
 */
#ifndef SIDFLAKE_COORD_RULES_WITHIN_H
#define SIDFLAKE_COORD_RULES_WITHIN_H

#include "coord/outcome.h"
#include "coord/rules.h"

/* The pool is found, is the caller's, and has been reopened where the store may have been replaced.
 * COORD_OK, or what to answer. on_time: also where the caller's clock is not within S of T. */
enum coord_status rules_come_in(struct rules *u);
enum coord_status rules_come_in_on_time(struct rules *u);

/* The head of an answer: to be called when all is changed that will be. Returns s. */
enum coord_status rules_answer(struct rules *u, enum coord_status s);

/* The same without reply.free, of an operation on sequences: counting workerIds that nobody asks
 * for would be half of its work on SQLite, which has no length of a list. */
static inline enum coord_status rules_head(struct rules *u, enum coord_status s)
{
    u->r->era = (uint64_t)u->pool.era;
    return s == COORD_CLOSED ? outcome_closed(u->r, u->name) : s;
}

/* The parts of these, for what has no time in it: a clock that is behind its own past keeps nobody
 * out but where the pool is to be reopened. The caller may know more than the table: entered, he is
 * judged by the pool as it is found; proof: he is right, and the pool's opening is the one that he
 * means; heard: he is right, and means another one. */
enum coord_status rules_enter(struct rules *u);
enum coord_status rules_arrive(struct rules *u, bool proof, bool heard);
/* Both, for an operation that proves nothing. */
enum coord_status rules_come_in_behind(struct rules *u);
void rules_hear_more(struct rules *u);
/* T is behind what it has shown before. */
bool rules_is_behind(const struct rules *u);
/* COORD_OK: the caller's clock is within S of T. */
enum coord_status rules_on_time(struct rules *u);

/* The time that is followed, Unix ms. */
int64_t rules_followed(const struct rules *u);

/* How far T has gone ahead of who lives, ms, unless nobody did; 0 once those who live have had time
 * to be heard. */
int64_t rules_leap(const struct rules *u);

/* How far ahead of its time a table that was lost may have granted, ms. */
int64_t rules_reach(const struct rules *u);

/* proof: that something was lost. floor: of records that say held, Unix ms. u->pool is changed; to
 * store it is the caller's. */
void rules_reopen(struct rules *u, bool proof, int64_t floor, enum coord_cause cause);

/* false: not a workerId of this pool, or a record that cannot be read. */
bool rules_get(struct rules *u, uint32_t worker, struct store_record *out);
/* Up to when it counts as used, Unix ms. */
int64_t rules_high(const struct rules *u, const struct store_record *r);
/* Of this era: it counts as it is. */
static inline bool rules_fresh(const struct rules *u, const struct store_record *r)
{
    return r->era == u->pool.era;
}
/* Stores it, as changed once more in this era. */
void rules_save(struct rules *u, struct store_record *r);
/* Makes it free, with what it counts as used, and queues it. */
void rules_set_free(struct rules *u, struct store_record *r);

#endif
