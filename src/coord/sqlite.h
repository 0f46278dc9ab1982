/*
 * The coordinator in an SQLite file on this host: a store (store.h) of one file, whose files are
 *
 *   sqlite.c              the driver: URL, life, who is the first at a path
 *   sqlite_transaction.c  begin, commit, and what is checked around them
 *   sqlite_rows.c         the rows
 *   sqlite_tally.c        whether the file was set back
 *   sqlite_file.c         the file and its tables
 *   sql.c                 the connection and its statements
 *   place.c               which file it is, and whose journal stands beside it
 *   sole.c, tally.c       who else uses the path; how many transactions were answered
 *   beside.c              both of these by each name of the file
 *
 * Invariants
 *   - T is this host's clock, read when the transaction has its lock.
 *   - A file is made by init alone. Before each operation the path is compared with the file that
 *     is open (device and inode): one that was deleted, replaced or restored is seen as such.
 *   - The fingerprint is that inode, the time of its birth, since inode numbers are used again, and
 *     the turn of the tally, since a file set back in place keeps both. Another one reopens the
 *     pool. The device's number is good for one boot only, so the tally has it.
 *   - A transaction is answered when its tick stands beside the file (tally.h, beside.h).
 *   - What somebody else keeps in WAL mode is not used: a file put back would not show.
 *   - A transaction that has failed before COMMIT changed nothing; of one that failed in COMMIT
 *     that is not known. There are no conflicts: BEGIN IMMEDIATE waits for the lock.
 *
 * URL: sqlite:///PATH or sqlite:PATH, the path taken as it stands.
 */
#ifndef SIDFLAKE_COORD_SQLITE_H
#define SIDFLAKE_COORD_SQLITE_H

#include "coord/beside.h"
#include "coord/place.h"
#include "coord/sql.h"
#include "coord/store.h"

#define SQLITE_PAST_MAX 256 /* transactions whose numbers are remembered, at least */

struct sqlite {
    struct store store; /* first */
    struct sql sql;
    struct clock *clock;
    int64_t timeout_us;
    int64_t deadline_us; /* of the call that runs now; monotonic */
    const char *pool;    /* name, for texts */
    struct beside beside;
    struct place place; /* of the open file, or of the one before */
    char fingerprint[STORE_FINGERPRINT_MAX];
    char boot[TALLY_BOOT_MAX];  /* "": not known */
    struct tally_name answered; /* the latest in that file that this process was answered */
    struct tally_name own;      /* of the transaction that runs; tick 0: it tells nobody anything */
    uint32_t changes;           /* by SQLite's count, before it */
    char path[PATH_MAX];
};

_Static_assert(STORE_FINGERPRINT_MAX >= TALLY_INODE_MAX + 20, "inode, birth and turn fit");

static inline struct sqlite *sqlite_of(struct store *s)
{
    return (struct sqlite *)(void *)s;
}

/* ---- the table: rows are in sqlite_rows.c ---- */

extern const struct store_ops sqlite_ops;
enum coord_status sqlite_begin(struct store *s, enum store_access access, int64_t deadline_us,
                               struct coord_reply *r);
int64_t sqlite_now(struct store *s);
const char *sqlite_fingerprint(struct store *s);
enum coord_status sqlite_commit(struct store *s, bool *conflict, struct coord_reply *r);
void sqlite_rollback(struct store *s);
/* Unless somebody said that the ID space is fresh, nobody may have used the path. */
enum coord_status sqlite_vouch(struct store *s, const struct coord_init *in, struct coord_reply *r);

/* ---- the file ---- */

/* COORD_OK: open, and the file at the path is the one that was opened. f->deadline_us is set. */
enum coord_status sqlite_ready(struct sqlite *f, bool create, struct coord_reply *r);
/* As coord_writes; likewise. */
enum coord_status sqlite_writes(struct sqlite *f, struct coord_reply *r);

/* What SQLite's failure comes to, and the end of the connection: the next call opens anew. */
enum coord_status sqlite_failed(struct sqlite *f, bool committing, struct coord_reply *r);

/* Whether transactions go by a journal: a -wal that somebody else keeps is read whatever file was
 * put beside it, and can be left only by who has it open alone. */
bool sqlite_has_journal(struct sql *q);

/* SQLite's count of the changes of the file, as it stands on the disk: within a transaction that of
 * before it, which its commit raises by 1. */
uint32_t sqlite_changes(struct sql *q);

/* What is known of the file's pages: those of another state may have the same count. Between
 * transactions. */
void sqlite_forget(struct sql *q);

/* By SQLite's own check of all pages; damage is a failure. */
void sqlite_check(struct sql *q);

/* ---- the tally ---- */

/* In a transaction that writes: numbers it, and knows by that whether the file was set back, which
 * the fingerprint then says. 0, or an error of errno(3); EOVERFLOW: the numbers are used up. */
int sqlite_number(struct sqlite *f);

/* Whether what was committed is still in the file, of which it now shows beside if it is set back;
 * and what shows there is in the file, whose lock keeps it as it is. */
bool sqlite_stands(struct sqlite *f);

#endif
