/* The file of SQLite pools: its tables, and the connection to it. */
#include "coord/outcome.h"
#include "coord/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPLACED "%s: expected one file, found it replaced just now"
#define TICK_OPS 10000 /* virtual machine instructions between two looks at the deadline */
#define LOOK_MS  2     /* between two looks at a lock that another program holds */

#define APPLICATION 0x53464c4b /* "SFLK": SQLite's application_id of these files */
#define VERSION     1          /* of the tables below: SQLite's user_version */
#define CHANGES_AT  24         /* the count of changes, 4 bytes, most significant one first */

#define TEXT_OF(x)  #x
#define VALUE_OF(x) TEXT_OF(x)

static const char tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS pool(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT"
    " NULL, identity TEXT, era INT, topen INT, fl INT, fs INT, fp TEXT, tmax INT, closed INT,"
    " adopt INT, a INT, a0 INT, d0 INT, s INT, g INT, k INT, w_from INT, w_to INT, born INT);"
    "CREATE TABLE IF NOT EXISTS worker(pool INT NOT NULL, worker INT NOT NULL, era INT, hwm INT,"
    " token TEXT, t0 INT, n INT, due INT, who TEXT, PRIMARY KEY(pool, worker)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS worker_due ON worker(pool, due) WHERE due IS NOT NULL;"
    "CREATE TABLE IF NOT EXISTS queue(seq INTEGER PRIMARY KEY AUTOINCREMENT, pool INT NOT NULL,"
    " worker INT);"
    "CREATE INDEX IF NOT EXISTS queue_pool ON queue(pool, seq);"
    "PRAGMA application_id = " VALUE_OF(APPLICATION) ";"
                                                     "PRAGMA user_version = " VALUE_OF(
                                                         VERSION) ";"
                                                                  "COMMIT";

#define THERE(name) "SELECT count(*) FROM pragma_table_info('pool') WHERE name = '" name "'"
#define TABLE(name) "SELECT count(*) FROM sqlite_master WHERE name = '" name "'"

#define ADD(name) "ALTER TABLE pool ADD COLUMN " name " INT;"

/* Columns that a file of an earlier program lacks, and that program does not mind; NULL is 0. Those
 * of one row came together, and the one that is looked for is the last of them. */
static const struct {
    const char *there, *add;
} later[] = {
    {THERE("every"), ADD("settle") ADD("settle0") ADD("settle_t") ADD("fl0") ADD("fs0") ADD("era0")
                         ADD("more") ADD("trust") ADD("lent") ADD("ahead") ADD("every")},
    {THERE("cause"), ADD("cause")},
    {THERE("fence"), ADD("fence")},
    {THERE("least"), ADD("least")},
    {THERE("leapt"), ADD("leap") ADD("leapt")},
};
#define LATER (sizeof later / sizeof *later)

/* A table that it lacks, and does not mind either. */
static const char texts[] =
    "CREATE TABLE IF NOT EXISTS text(pool INT NOT NULL, key TEXT NOT NULL, value TEXT,"
    " PRIMARY KEY(pool, key)) WITHOUT ROWID";

/* ---- statements ------------------------------------------------------------------------------ */

static int64_t pragma(struct sql *q, const char *text)
{
    sqlite3_stmt *st = NULL;
    int64_t v = -1;
    if (q->rc == SQLITE_OK)
        sql_fail(q, sqlite3_prepare_v2(q->db, text, -1, &st, NULL));
    if (sql_step(q, st))
        v = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return v;
}

/* Whether the first row that it answers, which goes to out, is this word. */
static bool answers(struct sql *q, const char *text, const char *word, char *out, size_t cap)
{
    sqlite3_stmt *st = NULL;
    if (q->rc == SQLITE_OK)
        sql_fail(q, sqlite3_prepare_v2(q->db, text, -1, &st, NULL));
    const void *found = sql_step(q, st) ? sqlite3_column_text(st, 0) : NULL;
    (void)snprintf(out, cap, "%s", found ? (const char *)found : "");
    (void)sqlite3_finalize(st);
    return strcmp(out, word) == 0;
}

static void execute(struct sql *q, const char *text)
{
    if (q->rc == SQLITE_OK)
        sql_fail(q, sqlite3_exec(q->db, text, NULL, NULL, NULL));
}

/* ---- the file ------------------------------------------------------------------------------- */

bool sqlite_has_journal(struct sql *q)
{
    char mode[16];
    return answers(q, "PRAGMA journal_mode", "delete", mode, sizeof mode);
}

uint32_t sqlite_changes(struct sql *q)
{
    uint8_t b[4] = {0};
    sqlite3_file *file = NULL;
    if (q->rc == SQLITE_OK)
        sql_fail(q, sqlite3_file_control(q->db, "main", SQLITE_FCNTL_FILE_POINTER, &file));
    int rc = q->rc == SQLITE_OK ? file->pMethods->xRead(file, b, sizeof b, CHANGES_AT) : SQLITE_OK;
    if (rc != SQLITE_OK) { /* of which the connection does not know */
        q->rc = rc;
        (void)snprintf(q->why, sizeof q->why, "%s",
                       rc == SQLITE_IOERR_SHORT_READ ? "it cut short" : sqlite3_errstr(rc));
    }
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

void sqlite_forget(struct sql *q)
{
    if (q->rc == SQLITE_OK)
        sql_fail(q, sqlite3_file_control(q->db, "main", SQLITE_FCNTL_RESET_CACHE, NULL));
}

void sqlite_check(struct sql *q)
{
    char found[sizeof q->why - 32];
    if (answers(q, "PRAGMA integrity_check(1)", "ok", found, sizeof found) || q->rc != SQLITE_OK)
        return;
    q->rc = SQLITE_CORRUPT;
    (void)snprintf(q->why, sizeof q->why, "damage: %s", found);
}

enum kind {
    KIND_OURS,
    KIND_EMPTY,   /* no tables yet */
    KIND_FOREIGN, /* somebody else's, or of another version: why says what was found */
    KIND_BROKEN   /* rc and why say how */
};

/* Whoever comes first does it. */
static enum kind add_later(struct sql *q)
{
    if (pragma(q, later[LATER - 1].there) == 0 || pragma(q, TABLE("text")) == 0) {
        sql_run(q, SQL_BEGIN);
        for (size_t i = 0; i < LATER; i++)
            if (pragma(q, later[i].there) == 0)
                execute(q, later[i].add);
        execute(q, texts);
        sql_run(q, SQL_COMMIT);
    }
    return q->rc == SQLITE_OK ? KIND_OURS : KIND_BROKEN;
}

/* Files of version 0.1.0 have a -wal. While somebody else has the file open it cannot be left,
 * which sqlite_has_journal() says; whoever opens it next tries again. */
static void leave_wal(struct sql *q)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(q->db, "PRAGMA journal_mode = DELETE", -1, &st, NULL) == SQLITE_OK)
        (void)sqlite3_step(st);
    (void)sqlite3_finalize(st);
}

/* Looks at a file just opened, and makes the tables where it is empty and create is set. */
static enum kind prepare(struct sql *q, bool create)
{
    execute(q, "PRAGMA synchronous = EXTRA; PRAGMA trusted_schema = OFF;"
               "PRAGMA cell_size_check = ON");
    int64_t app = pragma(q, "PRAGMA application_id");
    int64_t version = pragma(q, "PRAGMA user_version");
    int64_t objects = pragma(q, "SELECT count(*) FROM sqlite_master");
    if (q->rc != SQLITE_OK)
        return KIND_BROKEN;
    if (app == APPLICATION && version == VERSION) {
        leave_wal(q);
        return sqlite_has_journal(q) ? add_later(q) : q->rc == SQLITE_OK ? KIND_OURS : KIND_BROKEN;
    }
    if (app != 0 || version != 0 || objects != 0) {
        (void)snprintf(q->why, sizeof q->why,
                       "expected a pool of version %d (application_id %d), found version %" PRId64
                       " (application_id %" PRId64 ")",
                       VERSION, APPLICATION, version, app);
        return KIND_FOREIGN;
    }
    if (!create)
        return KIND_EMPTY;
    execute(q, tables);
    return add_later(q);
}

/* ---- opening it ------------------------------------------------------------------------------ */

static int past_deadline(void *arg)
{
    struct sqlite *f = arg;
    return clock_mono_us(f->clock) > f->deadline_us;
}

/* By SQLite's own handler who has waited long looks ever more rarely, each 100 ms in the end, and
 * those who have just come take the lock before him: of three sidecars with one strict sequence
 * somebody waited a second in vain. So all look equally often. */
static int wait_for_lock(void *arg, int looks)
{
    const struct sqlite *f = arg;
    if (looks >= f->timeout_us / (LOOK_MS * 1000))
        return 0;
    (void)sqlite3_sleep(LOOK_MS);
    return 1;
}

/* SQLite has the same words for a file, a directory and a file system that cannot be written to,
 * and for one that has no room for a journal: its second try, which makes none, hides why the first
 * one failed. So it is tried once more, by a file without a name. 0: it cannot be told. */
static int no_writing(const struct sqlite *f)
{
    char dir[PATH_MAX];
    sole_directory(f->path, dir);
    if ((access(f->path, W_OK) != 0 && errno != ENOENT) || access(dir, W_OK) != 0)
        return errno;
    int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    int why = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    return why == ENOSPC || why == EDQUOT || why == EROFS || why == EACCES ? why : 0;
}

enum coord_status sqlite_failed(struct sqlite *f, bool committing, struct coord_reply *r)
{
    int rc = f->sql.rc, primary = rc & 0xff;
    int errnum = f->sql.errnum;
    char why[sizeof f->sql.why + 64];
    (void)snprintf(why, sizeof why, "%s", f->sql.why);
    sql_close(&f->sql);
    if (errnum == 0 && (primary == SQLITE_READONLY || primary == SQLITE_CANTOPEN)) {
        errnum = no_writing(f);
        (void)snprintf(why + strlen(why), 64, "%s%s", errnum ? ": " : "",
                       errnum ? strerror(errnum) : "");
    }
    if (primary == SQLITE_INTERRUPT) /* by past_deadline */
        return outcome_down(r, ERR_BUSY,
                            "%s: expected to be through within %" PRId64
                            " ms, found it to take longer: the host or its disk is slow",
                            f->path, f->timeout_us / 1000);
    if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED)
        return outcome_down(r, ERR_BUSY,
                            "%s: expected a lock within %" PRId64
                            " ms, found %s: lslocks(8) tells by whom",
                            f->path, f->timeout_us / 1000, why);
    if (rc == SQLITE_READONLY_DBMOVED)
        return outcome_down(r, ERR_BUSY, REPLACED, f->path);
    if (primary == SQLITE_CORRUPT)
        return outcome_refused(r,
                               "%s: expected a sound file, found %s: remove it, and nothing beside "
                               "it, and make the pool again by the command in the log of a sidecar "
                               "that used it",
                               f->path, why);
    /* A disk is full for the next one, too, wherever in a transaction that shows. */
    bool full = primary == SQLITE_FULL || errnum == ENOSPC || errnum == EDQUOT;
    /* It tells no errno, and an AUTOINCREMENT without a next number is it, too. */
    if (primary == SQLITE_FULL)
        (void)snprintf(why + strlen(why), sizeof why - strlen(why),
                       ", or row numbers: see seq in sqlite_sequence");
    if (committing || full || primary == SQLITE_IOERR)
        return outcome_down(r, ERR_BUSY, "%s: expected the transaction to be written, found %s",
                            f->path, why);
    return outcome_refused(r, "%s: expected a pool to work on, found %s", f->path, why);
}

static enum coord_status missing(struct sqlite *f, int errnum, struct coord_reply *r)
{
    if (errnum == ENOENT)
        return outcome_nopool(r, f->pool);
    return outcome_refused(r, "%s: expected a file, found %s", f->path, strerror(errnum));
}

static int connect_file(struct sqlite *f, bool create)
{
    struct sql *q = &f->sql;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(f->path, &q->db, flags, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(q->db, 1);
        (void)sqlite3_busy_handler(q->db, wait_for_lock, f);
        (void)sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
        sqlite3_progress_handler(q->db, TICK_OPS, past_deadline, f);
    }
    sql_fail(q, rc);
    return rc;
}

static enum coord_status open_file(struct sqlite *f, bool create, struct coord_reply *r)
{
    struct place before = {.inode = ""}, after;
    int errnum = place_find(f->path, &before);
    if (errnum && !(create && errnum == ENOENT))
        return missing(f, errnum, r);
    if (errnum)
        place_make(f->path);
    if (connect_file(f, create) != SQLITE_OK)
        return sqlite_failed(f, false, r);
    enum kind kind = prepare(&f->sql, create);
    if (kind == KIND_BROKEN)
        return sqlite_failed(f, false, r);
    if (kind == KIND_FOREIGN) {
        enum coord_status s = outcome_refused(r, "%s: %s", f->path, f->sql.why);
        sql_close(&f->sql);
        return s;
    }
    errnum = place_find(f->path, &after);
    if (kind == KIND_EMPTY || errnum) {
        sql_close(&f->sql);
        return missing(f, errnum ? errnum : ENOENT, r);
    }
    if (before.inode[0] && !place_same(&before, &after)) {
        sql_close(&f->sql);
        return outcome_down(r, ERR_BUSY, REPLACED, f->path);
    }
    if (!place_same(&f->place, &after))
        f->answered = TALLY_NAME_NONE;
    f->place = after;
    return COORD_OK;
}

enum coord_status sqlite_ready(struct sqlite *f, bool create, struct coord_reply *r)
{
    enum coord_status s = place_check(f->path, create, r);
    if (s != COORD_OK)
        return s;
    if (f->sql.db) {
        struct place now;
        if (place_find(f->path, &now) == 0 && place_same(&now, &f->place))
            return COORD_OK;
        sql_close(&f->sql);
    }
    return open_file(f, create, r);
}

enum coord_status sqlite_writes(struct sqlite *f, struct coord_reply *r)
{
    enum coord_status s = sqlite_ready(f, false, r);
    if (s != COORD_OK || (access(f->path, W_OK) != 0 && errno == EACCES)) /* others may, then */
        return s;
    sql_run(&f->sql, SQL_BEGIN);
    sql_run(&f->sql, SQL_TRY);
    if (f->sql.rc != SQLITE_OK)
        return sqlite_failed(f, false, r);
    sql_run(&f->sql, SQL_ROLLBACK);
    return COORD_OK;
}
