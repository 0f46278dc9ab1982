/*
 * The coordinator of a simulation: one that can lose, rewind and damage what it knows.
 *
 * Invariants
 *   - Every call runs the real code: remote.c and pool.lua on a data set in memory, the rules in C
 *     on the same, or sqlite.c on a file.
 *   - Everything is done to one member of the group, `at`. There is one alone, but for the
 *     schedules about replicas.
 *   - Data that were replaced show as another fingerprint, as a restart, a failover or another file
 *     does. But for server_rewind_in_place, whose caller must let a holder prove it.
 */
#ifndef SIDFLAKE_TESTS_SIM_SERVER_H
#define SIDFLAKE_TESTS_SIM_SERVER_H

#include "lease/lease.h"
#include "sim/group.h"
#include "sim/poolfile.h"
#include "sim/script.h"

#define SERVER_RECENT                                                                              \
    32               /* data sets after each of the latest calls: what a crash can go back to      \
                      */
#define SERVER_OLD 6 /* backups, older than those */

/* One state to go back to. */
struct server_copy {
    bool used;
    int64_t at_ms; /* true time */
    struct dataset data;
    unsigned life; /* group.h */
    uint64_t written;
    struct poolfile_copy file;
};

struct server {
    struct coord *coord, *twin; /* twin.h; NULL of SQLite */
    bool in_c;                  /* calls go to twin, where there are no replicas */
    bool sqlite;
    struct clock clock; /* SQLite's; of Redis's driver: the caller's */
    int64_t caller_off; /* ms, from the time: what that shows during a call */
    struct poolfile file;

    const int64_t *true_ms; /* the time */
    struct group group;
    struct member *at; /* whom all calls and all faults are about, until the next one is chosen */

    /* Whether n replicas of m had its first `written` writes within the time of a call; world is
     * passed on. Other calls may be run meanwhile. */
    bool (*acknowledged)(void *world, struct member *m, uint64_t written, uint32_t n);
    void *world;

    struct server_copy recent[SERVER_RECENT], old[SERVER_OLD];
    unsigned nrecent; /* how many were ever made: the ring's head */
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

/* An empty coordinator with no past, of n members. */
void server_reset(struct server *s, unsigned n);

/* Its clock, Unix ms. */
int64_t server_ms(const struct server *s);

/* The call, of a driver. */
void server_ask(struct coord *c, struct server_call *call);

/* The same as a call that comes to `at`. COORD_DOWN where `at` is not a master. */
void server_run(struct server *s, struct server_call *c);

/* Any other call of the driver, by somebody whose clock shows caller_ms. */
enum coord_status server_do(struct server *s, int64_t caller_ms,
                            enum coord_status (*call)(struct coord *c, void *with), void *with);

/* An operator's calls. */
enum coord_status server_init(struct server *s, const struct coord_init *in);
/* A newcomer that goes at once. */
enum coord_status server_claim(struct server *s, const char *identity);
enum coord_status server_evict(struct server *s, const char *identity, uint16_t w);
enum coord_status server_close_pool(struct server *s, const char *identity);
enum coord_status server_unclose_pool(struct server *s, const char *identity,
                                      int64_t lost_ahead_ms);
enum coord_status server_repair(struct server *s, const char *identity, const uint16_t *w,
                                size_t n);

enum coord_status server_settle(struct server *s, const char *identity, int64_t ms);
enum coord_status server_nothing_lost(struct server *s, const char *identity);
enum coord_status server_clock_was_ahead(struct server *s, const char *identity);

/* The pool as it describes itself; false: there is none. */
bool server_pool(struct server *s, struct coord_pool *out, uint64_t *era);

/* Keeps the state as it is, at true time at_ms: after a call, or as the backup of that number. */
void server_remember(struct server *s, int64_t at_ms);
void server_backup(struct server *s, unsigned i, int64_t at_ms);

/* Restarts with the data of a copy, with none, or with all of them. keep_replid: the half of the
 * fingerprint that a restart may keep. */
bool server_restart(struct server *s, const struct server_copy *from, bool keep_replid);
void server_restart_empty(struct server *s, bool keep_replid);
void server_restart_whole(struct server *s, bool keep_replid);
bool server_rewind_in_place(struct server *s, const struct server_copy *from);

/* The SQLite file with the contents of the copy, within the same inode. False where it is gone. */
bool server_set_back(struct server *s, const struct server_copy *from);

/* Whether the copy is a past of what `at` has now. */
bool server_was(const struct server *s, const struct server_copy *from);

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

/* A field of the pool's hash; false where there is none. Redis alone. */
bool server_field(struct server *s, const char *name, char out[DATASET_TEXT_MAX + 1]);

/* No state of before is put in place any more. */
void server_forget_copies(struct server *s);

/* A number of the pool's, such as "topen"; 0 where there is none. Redis alone. */
int64_t server_number(struct server *s, const char *field);

#endif
