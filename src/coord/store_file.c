#include "coord/store.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

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

/* Columns that a file of an earlier program lacks, and that program does not mind; NULL is 0. */
static const char later[] =
    "ALTER TABLE pool ADD COLUMN settle INT; ALTER TABLE pool ADD COLUMN settle0 INT;"
    "ALTER TABLE pool ADD COLUMN settle_t INT; ALTER TABLE pool ADD COLUMN fl0 INT;"
    "ALTER TABLE pool ADD COLUMN fs0 INT; ALTER TABLE pool ADD COLUMN era0 INT;"
    "ALTER TABLE pool ADD COLUMN more INT; ALTER TABLE pool ADD COLUMN trust INT;"
    "ALTER TABLE pool ADD COLUMN lent INT; ALTER TABLE pool ADD COLUMN ahead INT;"
    "ALTER TABLE pool ADD COLUMN every INT";
static const char last[] = "ALTER TABLE pool ADD COLUMN cause INT";

#define THERE(name) "SELECT count(*) FROM pragma_table_info('pool') WHERE name = '" name "'"

/* ---- statements ------------------------------------------------------------------------------ */

static int64_t pragma(struct store *s, const char *text)
{
    sqlite3_stmt *st = NULL;
    int64_t v = -1;
    if (s->rc == SQLITE_OK)
        store_fail(s, sqlite3_prepare_v2(s->db, text, -1, &st, NULL));
    if (store_step(s, st))
        v = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return v;
}

/* Whether the first row that it answers, which goes to out, is this word. */
static bool answers(struct store *s, const char *text, const char *word, char *out, size_t cap)
{
    sqlite3_stmt *st = NULL;
    if (s->rc == SQLITE_OK)
        store_fail(s, sqlite3_prepare_v2(s->db, text, -1, &st, NULL));
    const void *found = store_step(s, st) ? sqlite3_column_text(st, 0) : NULL;
    (void)snprintf(out, cap, "%s", found ? (const char *)found : "");
    (void)sqlite3_finalize(st);
    return strcmp(out, word) == 0;
}

static void execute(struct store *s, const char *text)
{
    if (s->rc == SQLITE_OK)
        store_fail(s, sqlite3_exec(s->db, text, NULL, NULL, NULL));
}

/* ---- the file ------------------------------------------------------------------------------- */

bool store_has_journal(struct store *s)
{
    char mode[16];
    return answers(s, "PRAGMA journal_mode", "delete", mode, sizeof mode);
}

uint32_t store_changes(struct store *s)
{
    uint8_t b[4] = {0};
    sqlite3_file *file = NULL;
    if (s->rc == SQLITE_OK)
        store_fail(s, sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file));
    int rc = s->rc == SQLITE_OK ? file->pMethods->xRead(file, b, sizeof b, CHANGES_AT) : SQLITE_OK;
    if (rc != SQLITE_OK) { /* of which the connection does not know */
        s->rc = rc == SQLITE_IOERR_SHORT_READ ? SQLITE_BUSY : rc;
        (void)snprintf(s->why, sizeof s->why, "%s", sqlite3_errstr(rc));
    }
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

void store_forget(struct store *s)
{
    if (s->rc == SQLITE_OK)
        store_fail(s, sqlite3_file_control(s->db, "main", SQLITE_FCNTL_RESET_CACHE, NULL));
}

void store_check(struct store *s)
{
    char found[sizeof s->why - 32];
    if (answers(s, "PRAGMA integrity_check(1)", "ok", found, sizeof found) || s->rc != SQLITE_OK)
        return;
    s->rc = SQLITE_CORRUPT;
    (void)snprintf(s->why, sizeof s->why, "damage: %s", found);
}

/* Whoever comes first does it. */
static enum store_kind add_later(struct store *s)
{
    if (pragma(s, THERE("cause")) == 0) {
        store_run(s, STORE_BEGIN);
        if (pragma(s, THERE("every")) == 0)
            execute(s, later);
        if (pragma(s, THERE("cause")) == 0)
            execute(s, last);
        store_run(s, STORE_COMMIT);
    }
    return s->rc == SQLITE_OK ? STORE_OURS : STORE_BROKEN;
}

/* Files of version 0.1.0 have a -wal. While somebody else has the file open it cannot be left,
 * which store_has_journal() says; whoever opens it next tries again. */
static void leave_wal(struct store *s)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(s->db, "PRAGMA journal_mode = DELETE", -1, &st, NULL) == SQLITE_OK)
        (void)sqlite3_step(st);
    (void)sqlite3_finalize(st);
}

enum store_kind store_prepare(struct store *s, bool create)
{
    execute(s, "PRAGMA synchronous = EXTRA; PRAGMA trusted_schema = OFF;"
               "PRAGMA cell_size_check = ON");
    int64_t app = pragma(s, "PRAGMA application_id");
    int64_t version = pragma(s, "PRAGMA user_version");
    int64_t objects = pragma(s, "SELECT count(*) FROM sqlite_master");
    if (s->rc != SQLITE_OK)
        return STORE_BROKEN;
    if (app == APPLICATION && version == VERSION) {
        leave_wal(s);
        return store_has_journal(s) ? add_later(s) : s->rc == SQLITE_OK ? STORE_OURS : STORE_BROKEN;
    }
    if (app != 0 || version != 0 || objects != 0) {
        (void)snprintf(s->why, sizeof s->why,
                       "expected a pool of version %d (application_id %d), found version %" PRId64
                       " (application_id %" PRId64 ")",
                       VERSION, APPLICATION, version, app);
        return STORE_FOREIGN;
    }
    if (!create)
        return STORE_EMPTY;
    execute(s, tables);
    return add_later(s);
}
