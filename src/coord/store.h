/*
 * A pool in an SQLite file: the rows, and nothing of what they mean.
 *
 *   pool    one row per pool of the file: the fields of the script's hash
 *   worker  one row per workerId with a record; due is its place in the index of held ones
 *           (what the script has in its zset), NULL where it is not in it
 *   queue   the free list in order of seq, which only rises
 *   tally   one row: how far the file is (tally.h)
 *   past    a row for each of the latest transactions: what an earlier program's tally lacks
 *
 * Invariants
 *   - Failure is sticky: after one, calls do nothing and answer as if there were no row. Whoever
 *     opened the transaction looks at rc once, at the end, and rolls back.
 *   - A number outside 0..2^53-1, or of another type, makes its row unreadable, never a wrong one.
 *   - All calls stand within a transaction of the caller's.
 */
#ifndef SIDFLAKE_COORD_STORE_H
#define SIDFLAKE_COORD_STORE_H

#include "coord/coord.h"
#include "coord/tally.h"

#define STORE_PAST_MAX        256
#define STORE_FINGERPRINT_MAX (TALLY_INODE_MAX + 20) /* NUL included */

struct sqlite3;
struct sqlite3_stmt;

/* One for each statement of the table in store.c. */
enum store_sql {
    STORE_BEGIN,
    STORE_BEGIN_READ,
    STORE_COMMIT,
    STORE_ROLLBACK,
    STORE_TALLY_MAKE,
    STORE_TALLY_GET,
    STORE_TALLY_SET,
    STORE_PAST_MAKE,
    STORE_PAST_GET,
    STORE_PAST_LACKS,
    STORE_PAST_SET,
    STORE_PAST_DROP,
    STORE_POOL_GET,
    STORE_POOL_ADD,
    STORE_POOL_SET,
    STORE_RECORD_GET,
    STORE_RECORD_SET,
    STORE_DUE_SET,
    STORE_DUE_LIST,
    STORE_DUE_COUNT,
    STORE_WHO_SET,
    STORE_QUEUE_HEAD,
    STORE_QUEUE_DROP,
    STORE_QUEUE_ADD,
    STORE_QUEUE_FILL,
    STORE_QUEUE_REMOVE,
    STORE_QUEUE_COUNT,
    STORE_ALL_RECORDS,
    STORE_ALL_QUEUE,
    STORE_ALL_DUE,
    STORE_SQLS
};

struct store {
    struct sqlite3 *db; /* NULL: not open */
    struct sqlite3_stmt *stmt[STORE_SQLS];
    int rc;        /* SQLite's extended result code; 0 while all is well */
    int64_t pool;  /* row of the pool that is worked on */
    char why[256]; /* SQLite's text for rc, and the system's where it has one */
};

/* The script's hash without the records. */
struct store_pool {
    struct coord_pool p; /* held and epoch_ms are not kept here */
    int64_t era;
    bool adopt;
    char fingerprint[STORE_FINGERPRINT_MAX];
};

struct store_record {
    uint16_t worker;
    bool held;
    struct coord_token token; /* where held */
    int64_t era, hwm_ms, t0_ms, n;
};

enum store_found {
    STORE_NONE,
    STORE_FOUND,
    STORE_UNREADABLE
};

enum store_kind {
    STORE_OURS,
    STORE_EMPTY,   /* no tables yet */
    STORE_FOREIGN, /* somebody else's, or of another version: why says what was found */
    STORE_BROKEN   /* rc and why say how */
};

/* Looks at a file just opened, and makes the tables where it is empty and create is set. */
enum store_kind store_prepare(struct store *s, bool create);
void store_close(struct store *s);

/* Simple statements without arguments: STORE_BEGIN, _BEGIN_READ, _COMMIT, _ROLLBACK. */
void store_run(struct store *s, enum store_sql what);

/* Keeps the first failure. */
void store_fail(struct store *s, int rc);
/* true: there is a row. NULL, or after a failure: false. */
bool store_step(struct store *s, struct sqlite3_stmt *st);

/* Whether transactions go by a journal: a -wal that somebody else keeps is read whatever file was
 * put beside it, and can be left only by who has it open alone. */
bool store_has_journal(struct store *s);

/* SQLite's count of the changes of the file, as it stands on the disk: within a transaction that of
 * before it, which its commit raises by 1. */
uint32_t store_changes(struct store *s);

/* What is known of the file's pages: those of another state may have the same count. Between
 * transactions. */
void store_forget(struct store *s);

/* By SQLite's own check of all pages; damage is a failure. */
void store_check(struct store *s);

/* In a transaction that writes. All 0 where there is none, or none that can be read: as old as a
 * file can be. */
void store_tally_get(struct store *s, struct tally *out);
/* Forgets the transactions before the latest STORE_PAST_MAX; but not the one of the highest name
 * beside the file, of which that tick is, nor those since. */
void store_tally_set(struct store *s, const struct tally *t, int64_t beside);

/* Whether the file has the transaction of that number, and has not forgotten it. */
bool store_tally_has(struct store *s, int64_t tick, int64_t nonce);

/* Whether it has none of that number, and would know it: it is not above its latest. */
bool store_tally_lacks(struct store *s, int64_t tick, int64_t nonce);

/* Finds the pool by name and works on it from here on. */
enum store_found store_pool_get(struct store *s, const char *name, struct store_pool *out);
void store_pool_add(struct store *s, const char *name, const struct store_pool *p);
void store_pool_set(struct store *s, const struct store_pool *p);

/* All 0 where it is not found. */
enum store_found store_record_get(struct store *s, uint16_t worker, struct store_record *out);

/* Writes the record; it is in the index by hwm where held, and not in it where free. */
void store_record_set(struct store *s, const struct store_record *r);

/* due_ms < 0: out of the index. Workers without a record have no place in it. */
void store_due_set(struct store *s, uint16_t worker, int64_t due_ms);

/* Those in the index below limit_ms, by due and then by their decimal text; at most max. */
size_t store_due_list(struct store *s, int64_t limit_ms, uint16_t *out, size_t max);
uint64_t store_due_count(struct store *s);

/* json "" removes it. */
void store_who_set(struct store *s, uint16_t worker, const char *text);
/* Whether that is what store_who_set was given last. */
bool store_who_is(struct store *s, uint16_t worker, const char *text);

/* Takes the first entry off the queue; false where there is none. Entries that are no workerId
 * come as UINT32_MAX. */
bool store_queue_pop(struct store *s, uint32_t *worker);
void store_queue_push(struct store *s, uint16_t worker);
void store_queue_fill(struct store *s, uint16_t from, uint16_t to);
/* Those with a 1 at their place, and what is no workerId from `from` to `to`, in one walk of the
 * queue. */
void store_queue_remove(struct store *s, const uint8_t named[COORD_WORKERS], uint16_t from,
                        uint16_t to);
uint64_t store_queue_count(struct store *s);

/* A row of one of the lists below, which are walked to their end or to the first failure. */
struct store_row {
    uint32_t worker;            /* UINT32_MAX: no workerId */
    enum store_found found;     /* of the record; STORE_ALL_RECORDS only, as all that follows */
    struct store_record record; /* where found */
    char who[COORD_WHO_MAX];    /* "" where there is none */
};

/* list: STORE_ALL_RECORDS and STORE_ALL_DUE by workerId, STORE_ALL_QUEUE head first. */
bool store_next(struct store *s, enum store_sql list, struct store_row *row);

/* Workers, queue and index of a snapshot. era: the pool's. False: no memory; SQLite's own failures
 * are in rc. */
bool store_all(struct store *s, int64_t era, struct coord_snapshot *out);

#endif
