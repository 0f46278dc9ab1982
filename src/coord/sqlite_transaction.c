/* How a transaction in an SQLite file begins, and what has to be so before it is answered. */
#include "coord/outcome.h"
#include "coord/sqlite.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

/* ---- begin ---------------------------------------------------------------------------------- */

/* What it tells to do leaves a name, by which a path that was used is not taken for new. */
static enum coord_status unnumbered(struct sqlite *f, int why, struct coord_reply *r)
{
    const char *name = strrchr(f->path, '/') + 1;
    sql_close(&f->sql);
    if (why != EOVERFLOW)
        return outcome_down(r, ERR_BUSY, "%s: expected a directory to list, found %s", f->path,
                            strerror(why));
    return outcome_refused(r,
                           "%s: expected fewer than 10^15 transactions, found a name beside it, or "
                           "the file, that says so many: make a file .%s-tally.0, remove %s and "
                           "all other names that begin with .%s-tally, and make the pool again by "
                           "the command in the log of a sidecar that used it",
                           f->path, name, name, name);
}

/* What was put in the place of such a file does not show, and neither its tally. */
static enum coord_status kept_in_wal(struct sqlite *f, struct coord_reply *r)
{
    sql_close(&f->sql);
    return outcome_down(
        r, ERR_BUSY,
        "%s: expected a file with a journal, found one that another program (a "
        "shell, a replicator, an earlier build) keeps in WAL mode: nothing is read or "
        "written until that closes it",
        f->path);
}

enum coord_status sqlite_begin(struct store *store, enum store_access access, int64_t deadline_us,
                               struct coord_reply *r)
{
    struct sqlite *f = sqlite_of(store);
    bool reads = access == STORE_READ || access == STORE_READ_ALL;
    f->deadline_us = deadline_us;
    r->now_ms = clock_wall_ms(f->clock);
    enum coord_status s = sqlite_ready(f, access == STORE_CREATE, r);
    if (s != COORD_OK)
        return s;
    sqlite_forget(&f->sql); /* another file of as many changes may have been put there since */
    sql_run(&f->sql, reads ? SQL_BEGIN_READ : SQL_BEGIN);
    if (f->sql.rc != SQLITE_OK)
        return sqlite_failed(f, false, r);
    if (!sqlite_has_journal(&f->sql) && f->sql.rc == SQLITE_OK)
        return kept_in_wal(f, r);
    f->own.tick = 0;
    int fault = reads ? 0 : sqlite_number(f);
    if (fault)
        return unnumbered(f, fault, r);
    if (access == STORE_READ_ALL)
        sqlite_check(&f->sql);
    return COORD_OK;
}

int64_t sqlite_now(struct store *s)
{
    return clock_wall_ms(sqlite_of(s)->clock);
}

const char *sqlite_fingerprint(struct store *s)
{
    return sqlite_of(s)->fingerprint;
}

/* ---- the end -------------------------------------------------------------------------------- */

static enum coord_status set_back(struct sqlite *f, struct coord_reply *r)
{
    sql_close(&f->sql);
    return outcome_down(r, ERR_BUSY,
                        "%s: expected to find there what was written, found it set back, or "
                        "written to %d times since",
                        f->path, SQLITE_PAST_MAX);
}

/* What was committed is answered once its tick stands beside the file, and it in the file. */
static enum coord_status confirm(struct sqlite *f, struct coord_reply *r)
{
    int fault = beside_leave(&f->beside, f->path, f->own.tick, f->own.nonce);
    if (fault) {
        sql_close(&f->sql);
        return outcome_down(r, ERR_BUSY, "%s: expected a directory to leave a file in, found %s",
                            f->path, strerror(fault));
    }
    bool there = sqlite_stands(f);
    if (f->sql.rc != SQLITE_OK)
        return sqlite_failed(f, true, r);
    if (!there)
        return set_back(f, r);
    f->answered = f->own;
    return COORD_OK;
}

enum coord_status sqlite_commit(struct store *s, bool *conflict, struct coord_reply *r)
{
    struct sqlite *f = sqlite_of(s);
    (void)conflict;
    /* What was read of two states, one put there since it began, would be written as one. */
    bool as_begun = f->own.tick == 0 || sqlite_changes(&f->sql) == f->changes;
    if (f->sql.rc != SQLITE_OK)
        return sqlite_failed(f, false, r);
    if (!as_begun)
        return set_back(f, r);
    sql_run(&f->sql, SQL_COMMIT);
    if (f->sql.rc != SQLITE_OK)
        return sqlite_failed(f, true, r);
    return f->own.tick == 0 ? COORD_OK : confirm(f, r);
}

void sqlite_rollback(struct store *s)
{
    sql_run(&sqlite_of(s)->sql, SQL_ROLLBACK);
}
