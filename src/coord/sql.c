#include "coord/sql.h"

#include "coord/outcome.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[SQL_TEXTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_TRY] = "UPDATE pool SET name = name",
    [SQL_TALLY_MAKE] = "CREATE TABLE IF NOT EXISTS tally(one INTEGER PRIMARY KEY CHECK(one = 1),"
                       " tick INT, turn INT, device INT, boot TEXT)",
    [SQL_TALLY_GET] = "SELECT tick, turn, device, boot FROM tally",
    [SQL_TALLY_SET] = "INSERT OR REPLACE INTO tally VALUES(1, ?1, ?2, ?3, ?4)",
    [SQL_PAST_MAKE] = "CREATE TABLE IF NOT EXISTS past(tick INTEGER PRIMARY KEY, nonce INT,"
                      " changes INT, inode TEXT)",
    [SQL_PAST_GET] = "SELECT nonce, changes, inode FROM past WHERE tick = ?1",
    [SQL_PAST_LACKS] =
        "SELECT (SELECT min(tick) FROM past) <= ?1 AND (SELECT tick FROM tally) >= ?1"
        " AND NOT EXISTS(SELECT 1 FROM past WHERE tick = ?1 AND nonce = ?2)",
    [SQL_PAST_SET] = "INSERT OR REPLACE INTO past VALUES(?1, ?2, ?3, ?4)",
    [SQL_PAST_DROP] = "DELETE FROM past WHERE tick <= ?1 OR tick > ?2",
    [SQL_POOL_GET] = "SELECT id, identity, fp, era, topen, fl, fs, tmax, closed, adopt, a, a0,"
                     " d0, s, g, k, w_from, w_to, born, settle, settle0, settle_t, fl0, fs0,"
                     " era0, more, trust, lent, ahead, every, cause, fence, least,"
                     " leap, leapt FROM pool WHERE name = ?1",
    [SQL_POOL_ADD] = "INSERT INTO pool(name) VALUES(?1)",
    [SQL_POOL_SET] = "UPDATE pool SET identity=?2, fp=?3, era=?4, topen=?5, fl=?6, fs=?7,"
                     " tmax=?8, closed=?9, adopt=?10, a=?11, a0=?12, d0=?13, s=?14, g=?15,"
                     " k=?16, w_from=?17, w_to=?18, born=?19, settle=?20, settle0=?21,"
                     " settle_t=?22, fl0=?23, fs0=?24, era0=?25, more=?26, trust=?27, lent=?28,"
                     " ahead=?29, every=?30, cause=?31, fence=?32, least=?33,"
                     " leap=?34, leapt=?35 WHERE id = ?1",
    [SQL_RECORD_GET] = "SELECT worker, era, hwm, t0, n, token, due, who FROM worker"
                       " WHERE pool = ?1 AND worker = ?2",
    [SQL_RECORD_SET] = "INSERT INTO worker(pool, worker, era, hwm, t0, n, token, due)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET"
                       " era=?3, hwm=?4, t0=?5, n=?6, token=?7, due=?8",
    [SQL_DUE_SET] = "UPDATE worker SET due = ?3 WHERE pool = ?1 AND worker = ?2",
    [SQL_DUE_LIST] = "SELECT worker FROM worker WHERE pool = ?1 AND due < ?2"
                     " ORDER BY due, CAST(worker AS TEXT) LIMIT ?3",
    [SQL_DUE_COUNT] = "SELECT count(*) FROM worker WHERE pool = ?1 AND due IS NOT NULL",
    [SQL_WHO_SET] = "UPDATE worker SET who = ?3 WHERE pool = ?1 AND worker = ?2",
    [SQL_QUEUE_HEAD] = "SELECT seq, worker FROM queue WHERE pool = ?1 ORDER BY seq LIMIT 1",
    [SQL_QUEUE_DROP] = "DELETE FROM queue WHERE seq = ?1",
    [SQL_QUEUE_ADD] = "INSERT INTO queue(pool, worker) VALUES(?1, ?2)",
    [SQL_QUEUE_FILL] = "INSERT INTO queue(pool, worker) WITH RECURSIVE w(x) AS (SELECT ?2"
                       " UNION ALL SELECT x + 1 FROM w WHERE x < ?3)"
                       " SELECT ?1, x FROM w ORDER BY x",
    [SQL_QUEUE_REMOVE] = "DELETE FROM queue WHERE pool = ?1"
                         " AND (substr(?2, worker + 1, 1) = x'01' OR"
                         " typeof(worker) <> 'integer' OR worker NOT BETWEEN ?3 AND ?4)",
    [SQL_QUEUE_COUNT] = "SELECT count(*) FROM queue WHERE pool = ?1",
    [SQL_ALL_RECORDS] = "SELECT worker, era, hwm, t0, n, token, due, who FROM worker"
                        " WHERE pool = ?1 ORDER BY worker",
    [SQL_ALL_QUEUE] = "SELECT worker FROM queue WHERE pool = ?1 ORDER BY seq",
    [SQL_ALL_DUE] = "SELECT worker FROM worker WHERE pool = ?1 AND due IS NOT NULL"
                    " ORDER BY worker",
    [SQL_TEXT_GET] = "SELECT value FROM text WHERE pool = ?1 AND key = ?2",
    [SQL_TEXT_SET] = "INSERT OR REPLACE INTO text VALUES(?1, ?2, ?3)",
    [SQL_TEXT_DROP] = "DELETE FROM text WHERE pool = ?1 AND key = ?2",
    [SQL_TEXT_NEXT] = "SELECT key, value FROM text WHERE pool = ?1 AND key >= ?2 AND key > ?3"
                      " ORDER BY key LIMIT 1",
};

void sql_fail(struct sql *q, int rc)
{
    if (q->rc != SQLITE_OK || rc == SQLITE_OK)
        return;
    int primary = rc & 0xff;
    int errnum = q->db && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)
                     ? sqlite3_system_errno(q->db)
                     : 0;
    errnum = errnum == ENOENT ? 0 : errnum; /* of its second try, without making the file */
    q->rc = rc;
    q->errnum = errnum;
    (void)snprintf(q->why, sizeof q->why, "%s%s%s",
                   q->db ? sqlite3_errmsg(q->db) : sqlite3_errstr(rc), errnum ? ": " : "",
                   errnum ? strerror(errnum) : "");
}

sqlite3_stmt *sql_use(struct sql *q, enum sql_text what)
{
    if (q->rc != SQLITE_OK)
        return NULL;
    if (q->stmt[what])
        return q->stmt[what];
    int rc =
        sqlite3_prepare_v3(q->db, texts[what], -1, SQLITE_PREPARE_PERSISTENT, &q->stmt[what], NULL);
    sql_fail(q, rc);
    return q->stmt[what];
}

bool sql_step(struct sql *q, sqlite3_stmt *st)
{
    if (!st || q->rc != SQLITE_OK)
        return false;
    int rc = sqlite3_step(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        sql_fail(q, rc);
    return rc == SQLITE_ROW;
}

void sql_done(sqlite3_stmt *st)
{
    if (!st)
        return;
    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
}

void sql_finish(struct sql *q, sqlite3_stmt *st)
{
    (void)sql_step(q, st);
    sql_done(st);
}

void sql_bind_text(struct sql *q, sqlite3_stmt *st, int i, const char *text)
{
    if (st)
        sql_fail(q, sqlite3_bind_text(st, i, text, -1, SQLITE_TRANSIENT));
}

void sql_bind_number(struct sql *q, sqlite3_stmt *st, int i, int64_t v)
{
    if (st)
        sql_fail(q, sqlite3_bind_int64(st, i, v));
}

bool sql_number_at(sqlite3_stmt *st, int i, int64_t *out)
{
    if (sqlite3_column_type(st, i) != SQLITE_INTEGER)
        return false;
    int64_t v = sqlite3_column_int64(st, i);
    if (v < 0 || v > COORD_NUMBER_MAX)
        return false;
    *out = v;
    return true;
}

bool sql_text_at(sqlite3_stmt *st, int i, char *out, size_t cap)
{
    if (sqlite3_column_type(st, i) != SQLITE_TEXT)
        return false;
    const void *p = sqlite3_column_text(st, i);
    size_t n = (size_t)sqlite3_column_bytes(st, i);
    if (!p || n >= cap || memchr(p, '\0', n))
        return false;
    memcpy(out, p, n);
    out[n] = '\0';
    return true;
}

void sql_run(struct sql *q, enum sql_text what)
{
    sql_finish(q, sql_use(q, what));
}

void sql_close(struct sql *q)
{
    for (size_t i = 0; i < SQL_TEXTS; i++)
        (void)sqlite3_finalize(q->stmt[i]);
    (void)sqlite3_close(q->db);
    memset(q, 0, sizeof *q);
}
