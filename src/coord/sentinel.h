/*
 * Where the master is, by those who watch it.
 *
 * The sentinels of the address are asked in turn until one names the master. Each gets a fair share
 * of the time that is left, one share being kept for the master itself: one that is dead or silent
 * cannot use up the call.
 *
 * Invariants
 *   - The one that answered last is asked first the next time, but for sentinel_doubt: a sentinel
 *     cut off together with an old master goes on naming that one.
 *   - What is named is believed only as a place to connect to. Whether it is the master, the server
 *     there is asked (ROLE), by sentinel_confirm.
 *   - An error names the master, and each sentinel with what it said, as far as the text goes.
 *
 * Source: the guidelines for clients of Redis Sentinel (redis.io, "Sentinel client spec").
 */
#ifndef SIDFLAKE_COORD_SENTINEL_H
#define SIDFLAKE_COORD_SENTINEL_H

#include "coord/redis_peer.h"

struct sentinel {
    size_t first; /* of the address's nodes: to be asked first, and who named the master last */
};

/* master: its clock and deadline are used; its place is filled in. COORD_OK; COORD_REFUSED where a
 * sentinel answered that it knows no such master, or not as one; COORD_DOWN where none answered.
 * User and password of the address are given to a sentinel that asks for them. */
enum coord_status sentinel_find(struct sentinel *s, const struct redis_url *a, struct peer *master,
                                struct coord_reply *r);

/* Asks the server itself, once it has been given the password: COORD_OK, if it says that it is a
 * master. If it says that it is none, a failover is under way: COORD_DOWN. */
enum coord_status sentinel_confirm(struct peer *master, struct coord_reply *r);

/* The master named did not serve as one: another sentinel is asked first the next time. */
void sentinel_doubt(struct sentinel *s, const struct redis_url *a);

/* Puts before the error of a call who had named the server; returns status. */
enum coord_status sentinel_blame(const struct sentinel *s, const struct redis_url *a,
                                 enum coord_status status, struct coord_reply *r);

#endif
