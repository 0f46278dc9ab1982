/*
 * The coordinator of a simulation: one authority, which can lose, rewind and damage what it knows.
 *
 * Invariants
 *   - Every call runs the real code: remote.c and pool.lua on a data set in memory, or sqlite.c on
 * a file.
 *   - There is one truth at a time. A failover or a restore replaces it; two masters at once are
 *     not simulated, since without replicas (K = 0) nothing is promised for them.
 *   - Data that were replaced show as another fingerprint, as a restart, a failover or another file
 *     does. But for server_rewind_in_place, whose caller must let a holder prove it.
 */
#ifndef SIDFLAKE_TESTS_SIM_SERVER_H
#define SIDFLAKE_TESTS_SIM_SERVER_H

#include "lease/lease.h"
#include "sim/dataset.h"

#define SERVER_RECENT                                                                              \
    32               /* data sets after each of the latest calls: what a crash can go back to      \
                      */
#define SERVER_OLD 6 /* backups, older than those */

/* One state to go back to. */
struct server_copy {
    bool used;
    int64_t at_ms; /* true time */
    struct dataset data;
    char file[96]; /* SQLite: a copy of the file */
};

struct server {
    struct coord *coord;
    bool sqlite;
    struct clock clock; /* SQLite's */
    int64_t now_ms;     /* this server's clock, set before each call */
    char dir[64], path[96];

    struct dataset data;
    struct server_copy recent[SERVER_RECENT], old[SERVER_OLD];
    unsigned nrecent; /* how many were ever made: the ring's head */
    uint64_t ids;     /* of fingerprints */
};

/* One request, as the keeper makes it, and its outcome. */
struct server_call {
    struct lease_action action; /* renewals are answered in it */
    char identity[COORD_IDENTITY_MAX];
    int64_t wall_ms; /* the caller's clock when it asked */
    struct lease_outcome outcome;
};

/* who: a directory for files is made only for SQLite. Ends the program where anything fails. */
void server_open(struct server *s, bool sqlite);
void server_close(struct server *s);

/* An empty coordinator with no past. */
void server_reset(struct server *s);

/* What keeper.c does with an action, at the server's clock now_ms. */
void server_run(struct server *s, struct server_call *c, int64_t now_ms);

/* An operator's calls. */
enum coord_status server_init(struct server *s, const struct coord_init *in, int64_t now_ms);
enum coord_status server_evict(struct server *s, const char *identity, uint16_t w, int64_t now_ms);
enum coord_status server_close_pool(struct server *s, const char *identity, int64_t now_ms);
enum coord_status server_repair(struct server *s, const char *identity, const uint16_t *w, size_t n,
                                int64_t now_ms);

/* Keeps the state as it is, at true time at_ms: after a call, or as the backup of that number. */
void server_remember(struct server *s, int64_t at_ms);
void server_backup(struct server *s, unsigned i, int64_t at_ms);

/* Restarts with the data of a copy, with none, or with all of them. keep_replid: the half of the
 * fingerprint that a restart may keep. */
void server_restart(struct server *s, const struct server_copy *from, bool keep_replid);
void server_restart_empty(struct server *s, bool keep_replid);
void server_restart_whole(struct server *s, bool keep_replid);
void server_rewind_in_place(struct server *s, const struct server_copy *from);

/* Damage without a restart. The first is the loss of everything, the others are hints. */
void server_lose_pool(struct server *s, bool with_hints);
void server_lose_queue(struct server *s);
void server_lose_index(struct server *s);
void server_double(struct server *s, uint16_t w, bool first);

/* A record as it stands; false where there is none. Redis alone. */
struct server_record {
    int64_t era, hwm_ms;
    bool held;
    uint64_t n;
};

bool server_record(struct server *s, uint16_t w, struct server_record *out);

/* A number of the pool's, such as "topen"; 0 where there is none. Redis alone. */
int64_t server_number(struct server *s, const char *field);

#endif
