/*
 * A connection to an SQLite file, and its statements, each of which is prepared once.
 *
 *   pool    one row per pool of the file: the fields of the script's hash
 *   worker  one row per workerId with a record; due is NULL where it is not in the index
 *   queue   the free list in order of seq, which only rises
 *   text    one row per key of a pool: sequences, as seq_rows.h says
 *   tally   one row: how far the file is (tally.h)
 *   past    a row for each of the latest transactions: what an earlier program's tally lacks
 *
 * Invariants
 *   - Failure is sticky: after one, calls do nothing and answer as if there were no row. Whoever
 *     opened the transaction looks at rc once, at the end, and closes.
 *   - A statement that was used is done with before it is used again.
 */
#ifndef SIDFLAKE_COORD_SQL_H
#define SIDFLAKE_COORD_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

/* One for each statement of the table in sql.c. */
enum sql_text {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_TRY, /* a write that changes nothing */
    SQL_TALLY_MAKE,
    SQL_TALLY_GET,
    SQL_TALLY_SET,
    SQL_PAST_MAKE,
    SQL_PAST_GET,
    SQL_PAST_LACKS,
    SQL_PAST_SET,
    SQL_PAST_DROP,
    SQL_POOL_GET,
    SQL_POOL_ADD,
    SQL_POOL_SET,
    SQL_RECORD_GET,
    SQL_RECORD_SET,
    SQL_DUE_SET,
    SQL_DUE_LIST,
    SQL_DUE_COUNT,
    SQL_WHO_SET,
    SQL_QUEUE_HEAD,
    SQL_QUEUE_DROP,
    SQL_QUEUE_ADD,
    SQL_QUEUE_FILL,
    SQL_QUEUE_REMOVE,
    SQL_QUEUE_COUNT,
    SQL_ALL_RECORDS,
    SQL_ALL_QUEUE,
    SQL_ALL_DUE,
    SQL_TEXT_GET,
    SQL_TEXT_SET,
    SQL_TEXT_DROP,
    SQL_TEXT_NEXT,
    SQL_TEXTS
};

struct sql {
    struct sqlite3 *db; /* NULL: not open */
    struct sqlite3_stmt *stmt[SQL_TEXTS];
    int rc;        /* SQLite's extended result code; 0 while all is well */
    int64_t pool;  /* row of the pool that is worked on */
    int errnum;    /* the system's, where it has one; 0 */
    char why[256]; /* SQLite's text for rc, and that for errnum */
};

/* Keeps the first failure. rc: SQLite's. */
void sql_fail(struct sql *q, int rc);

/* The statement, fresh and without values; NULL after a failure, which all that follows take. */
struct sqlite3_stmt *sql_use(struct sql *q, enum sql_text what);

void sql_bind_text(struct sql *q, struct sqlite3_stmt *st, int i, const char *text);
void sql_bind_number(struct sql *q, struct sqlite3_stmt *st, int i, int64_t v);

/* true: there is a row, to be followed by sql_done or another step. */
bool sql_step(struct sql *q, struct sqlite3_stmt *st);
void sql_done(struct sqlite3_stmt *st);
/* Runs a statement whose rows, if any, nobody wants. */
void sql_finish(struct sql *q, struct sqlite3_stmt *st);
/* The same for one without values: SQL_BEGIN, SQL_COMMIT, ... */
void sql_run(struct sql *q, enum sql_text what);

/* Column i of the row; false: not a number of 0..2^53-1, not a text that fits into cap with its
 * NUL. */
bool sql_number_at(struct sqlite3_stmt *st, int i, int64_t *out);
bool sql_text_at(struct sqlite3_stmt *st, int i, char *out, size_t cap);

/* All 0 afterwards. */
void sql_close(struct sql *q);

#endif
