/*
 * The seam between hiredis and what its replies mean, for redis.c and for those who feed it hostile
 * bytes. Declares no more of hiredis than names.
 */
#ifndef SIDFLAKE_COORD_REDIS_REPLY_H
#define SIDFLAKE_COORD_REDIS_REPLY_H

#include "coord/answer.h"

struct redisReader;
struct redisReply;

/* No array of more elements is made from a reply: a length is only a number until its elements have
 * come. A snapshot's longest is the holders, two for each workerId. */
#define COORD_REDIS_ELEMENTS_MAX (1 << 20)

/* Makes the reader refuse longer arrays as out of memory. */
void coord_redis_bound(struct redisReader *reader);

/* A reply of the script as spans into it. false: not an array of at most ANSWER_FIELDS_MAX strings.
 */
bool coord_redis_answer(const struct redisReply *reply, struct answer *out);

/* What snapshot.lua replied, of workerIds that begin with from. */
enum coord_status coord_redis_roster(const struct redisReply *said, uint16_t from,
                                     const struct answer_to *to, struct coord_snapshot *out,
                                     struct coord_reply *r);

#endif
