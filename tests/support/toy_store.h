/*
 * A store in memory (coord/store.h), for tests: the least that the rules need, and conflicts put
 * in. It shows what a store has to do, and that rules.c does its work over any.
 *
 * A transaction works on a copy of the state, and its commit puts that copy in the state's place.
 * One that is doomed goes on for a random number of calls as if nothing were amiss, fails, and is
 * said to be in conflict when it ends; so what its rules concluded is of part of the rows.
 *
 * Invariants
 *   - The state is one plain struct: copying it is a backup, and writing one back puts it in place.
 *   - Conflicts are of its own random numbers: with and without them the caller draws the same.
 */
#ifndef SIDFLAKE_TESTS_SUPPORT_TOY_STORE_H
#define SIDFLAKE_TESTS_SUPPORT_TOY_STORE_H

#include "coord/transact.h"
#include "support/coord_setup.h"

#define TOY_WORKERS 16   /* workerIds 0..15 */
#define TOY_QUEUE   1024 /* entries, doubled ones included */
#define TOY_TEXTS   64

struct toy_row {
    bool there;
    struct store_record record;
    int64_t due_ms; /* -1: not in the index */
    char who[COORD_WHO_MAX];
};

struct toy_text {
    char key[128], value[640]; /* key "": there is none */
};

struct toy_state {
    bool made;
    char name[COORD_POOL_NAME_MAX];
    struct store_pool pool;
    struct toy_row row[TOY_WORKERS];
    size_t queued;
    uint32_t queue[TOY_QUEUE]; /* head first */
    size_t texts;
    struct toy_text text[TOY_TEXTS]; /* by key */
};

struct toy {
    struct transact transact; /* first */
    struct store store;
    struct setup_clock *clock;
    struct toy_state state;   /* what is committed */
    struct toy_state *work;   /* of the transaction that runs */
    size_t walked[3];         /* rows of each list */
    bool failed, doomed;      /* the transaction that runs */
    unsigned calls_left;      /* before a doomed one fails */
    unsigned runs, rollbacks; /* transactions that were begun; that were turned back */
    unsigned counted;         /* how often the queue was */
    /* set by the test */
    char fingerprint[STORE_FINGERPRINT_MAX];
    uint64_t random;
    unsigned conflicts_of_8; /* of 8 transactions so many are in conflict; 8: all */
    unsigned conflicts_next; /* the next so many are, at their very end */
    int64_t lock_ms;         /* passes while begin waits for its lock */
    bool loses;              /* commits have no effect, and nobody knows that */
    bool mistrusts;          /* new pools must not be made */
};

/* Aborts where there is no memory. Closed by coord_free. */
struct coord *toy_open(const char *pool, struct setup_clock *clock);
struct toy *toy_of(struct coord *c);

/* Damage to the hints, behind its back: a second entry in the queue; an index that is lost. */
void toy_double(struct coord *c, uint16_t worker);
void toy_unindex(struct coord *c);

#endif
