/*
 * The two real coordinators side by side, an SQLite file and a Redis, and a toy (toy_store.h)
 * beside them: under one clock that the test sets, and with one fingerprint, so that whatever is
 * done to all must be answered alike.
 *
 * Invariants
 *   - Redis runs pool.lua itself but for the bodies of clock() and fingerprint(), which take their
 *     values from the hash `sidflake:{p}:test`; the replacement must match exactly once each.
 *   - The fingerprint is the SQLite file's, so an operation goes to SQLite first: pair_sync hands
 *     time and fingerprint to the others before the same is asked there.
 *   - Many transactions of the toy are in conflict, which must not show.
 */
#ifndef SIDFLAKE_TESTS_SUPPORT_COORD_PAIR_H
#define SIDFLAKE_TESTS_SUPPORT_COORD_PAIR_H

#include "support/coord_setup.h"
#include "support/redis_server.h"
#include "support/toy_store.h"

#define PAIR_POOL    "p"
#define PAIR_BACKUPS 4

struct redisContext;

/* In the order in which they are asked. */
enum pair_side {
    PAIR_SQLITE,
    PAIR_REDIS,
    PAIR_TOY,
    PAIR_SIDES
};

struct pair {
    struct server server;
    struct redisContext *side; /* a second connection, for what is done behind the script's back */
    struct setup_clock clock;  /* of all of them */
    struct coord *redis;
    struct coord *sqlite;
    struct coord *toy;
    struct toy_state *kept; /* backups of the toy */
    int64_t synced_ms;      /* what the others were told last */
    char synced_fp[96];
    char dir[64];
    char db[96];
    bool backup[PAIR_BACKUPS]; /* which of them hold a state */
};

/* script: room for the text of pool.lua, which the driver is linked with; *n becomes its length.
 * Aborts where anything fails. */
void pair_open(struct pair *p, char *script, size_t cap, size_t *n);
void pair_close(struct pair *p);

/* The text of sequences.lua with what it shares, for who asks of sequences, too. */
void pair_sequences(char *script, size_t cap, size_t *n);

/* None has a pool, nor a backup. */
void pair_wipe(struct pair *p, bool backups);

void pair_sync(struct pair *p);

/* One of them (enum pair_side), which has been told time and fingerprint. */
struct coord *pair_side(struct pair *p, size_t side);

/* The fingerprint of all changes, the data stay. */
void pair_restart(struct pair *p);

void pair_backup(struct pair *p, size_t slot);

/* The state of the backup comes back: as another file, or (in_place) within the same, which changes
 * no fingerprint where what stands beside the file is lost, too. */
void pair_restore(struct pair *p, size_t slot, bool in_place);

/* Damage to the hints: a second entry in the queue; an index that is lost. */
void pair_double(struct pair *p, uint16_t worker);
void pair_unindex(struct pair *p);

#endif
