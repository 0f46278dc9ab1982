#include "coord/store.h"

#include "base/int64.h"

#include "base/dec.h"
#include "coord/outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const sql[STORE_SQLS] = {
    [STORE_BEGIN] = "BEGIN IMMEDIATE",
    [STORE_BEGIN_READ] = "BEGIN",
    [STORE_COMMIT] = "COMMIT",
    [STORE_ROLLBACK] = "ROLLBACK",
    [STORE_TALLY_MAKE] = "CREATE TABLE IF NOT EXISTS tally(one INTEGER PRIMARY KEY CHECK(one = 1),"
                         " tick INT, turn INT, device INT, boot TEXT)",
    [STORE_TALLY_GET] = "SELECT tick, turn, device, boot FROM tally",
    [STORE_TALLY_SET] = "INSERT OR REPLACE INTO tally VALUES(1, ?1, ?2, ?3, ?4)",
    [STORE_PAST_MAKE] = "CREATE TABLE IF NOT EXISTS past(tick INTEGER PRIMARY KEY, nonce INT,"
                        " changes INT, inode TEXT)",
    [STORE_PAST_GET] = "SELECT nonce, changes, inode FROM past WHERE tick = ?1",
    [STORE_PAST_LACKS] =
        "SELECT (SELECT min(tick) FROM past) <= ?1 AND (SELECT tick FROM tally) >= ?1"
        " AND NOT EXISTS(SELECT 1 FROM past WHERE tick = ?1 AND nonce = ?2)",
    [STORE_PAST_SET] = "INSERT OR REPLACE INTO past VALUES(?1, ?2, ?3, ?4)",
    [STORE_PAST_DROP] = "DELETE FROM past WHERE tick <= ?1 OR tick > ?2",
    [STORE_POOL_GET] = "SELECT id, identity, fp, era, topen, fl, fs, tmax, closed, adopt, a, a0,"
                       " d0, s, g, k, w_from, w_to, born, settle, settle0, settle_t, fl0, fs0,"
                       " era0, more, trust, lent, ahead, every, cause FROM pool WHERE name = ?1",
    [STORE_POOL_ADD] = "INSERT INTO pool(name) VALUES(?1)",
    [STORE_POOL_SET] = "UPDATE pool SET identity=?2, fp=?3, era=?4, topen=?5, fl=?6, fs=?7,"
                       " tmax=?8, closed=?9, adopt=?10, a=?11, a0=?12, d0=?13, s=?14, g=?15,"
                       " k=?16, w_from=?17, w_to=?18, born=?19, settle=?20, settle0=?21,"
                       " settle_t=?22, fl0=?23, fs0=?24, era0=?25, more=?26, trust=?27, lent=?28,"
                       " ahead=?29, every=?30, cause=?31 WHERE id = ?1",
    [STORE_RECORD_GET] = "SELECT worker, era, hwm, t0, n, token, due, who FROM worker"
                         " WHERE pool = ?1 AND worker = ?2",
    [STORE_RECORD_SET] = "INSERT INTO worker(pool, worker, era, hwm, t0, n, token, due)"
                         " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET"
                         " era=?3, hwm=?4, t0=?5, n=?6, token=?7, due=?8",
    [STORE_DUE_SET] = "UPDATE worker SET due = ?3 WHERE pool = ?1 AND worker = ?2",
    [STORE_DUE_LIST] = "SELECT worker FROM worker WHERE pool = ?1 AND due < ?2"
                       " ORDER BY due, CAST(worker AS TEXT) LIMIT ?3",
    [STORE_DUE_COUNT] = "SELECT count(*) FROM worker WHERE pool = ?1 AND due IS NOT NULL",
    [STORE_WHO_SET] = "UPDATE worker SET who = ?3 WHERE pool = ?1 AND worker = ?2",
    [STORE_QUEUE_HEAD] = "SELECT seq, worker FROM queue WHERE pool = ?1 ORDER BY seq LIMIT 1",
    [STORE_QUEUE_DROP] = "DELETE FROM queue WHERE seq = ?1",
    [STORE_QUEUE_ADD] = "INSERT INTO queue(pool, worker) VALUES(?1, ?2)",
    [STORE_QUEUE_FILL] = "INSERT INTO queue(pool, worker) WITH RECURSIVE w(x) AS (SELECT ?2"
                         " UNION ALL SELECT x + 1 FROM w WHERE x < ?3)"
                         " SELECT ?1, x FROM w ORDER BY x",
    [STORE_QUEUE_REMOVE] = "DELETE FROM queue WHERE pool = ?1"
                           " AND (substr(?2, worker + 1, 1) = x'01' OR"
                           " typeof(worker) <> 'integer' OR worker NOT BETWEEN ?3 AND ?4)",
    [STORE_QUEUE_COUNT] = "SELECT count(*) FROM queue WHERE pool = ?1",
    [STORE_ALL_RECORDS] = "SELECT worker, era, hwm, t0, n, token, due, who FROM worker"
                          " WHERE pool = ?1 ORDER BY worker",
    [STORE_ALL_QUEUE] = "SELECT worker FROM queue WHERE pool = ?1 ORDER BY seq",
    [STORE_ALL_DUE] = "SELECT worker FROM worker WHERE pool = ?1 AND due IS NOT NULL"
                      " ORDER BY worker",
};

/* ---- statements ----------------------------------------------------------------------------- */

void store_fail(struct store *s, int rc)
{
    if (s->rc != SQLITE_OK || rc == SQLITE_OK)
        return;
    int primary = rc & 0xff;
    int errnum = s->db && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)
                     ? sqlite3_system_errno(s->db)
                     : 0;
    errnum = errnum == ENOENT ? 0 : errnum; /* of its second try, without making the file */
    s->rc = rc;
    (void)snprintf(s->why, sizeof s->why, "%s%s%s",
                   s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc), errnum ? ": " : "",
                   errnum ? strerror(errnum) : "");
}

/* The statement, fresh and without values; NULL after a failure. */
static sqlite3_stmt *use(struct store *s, enum store_sql what)
{
    if (s->rc != SQLITE_OK)
        return NULL;
    if (s->stmt[what])
        return s->stmt[what];
    int rc =
        sqlite3_prepare_v3(s->db, sql[what], -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[what], NULL);
    store_fail(s, rc);
    return s->stmt[what];
}

static sqlite3_stmt *use_pool(struct store *s, enum store_sql what)
{
    sqlite3_stmt *st = use(s, what);
    if (st)
        store_fail(s, sqlite3_bind_int64(st, 1, s->pool));
    return st;
}

/* The same with a workerId as second value. */
static sqlite3_stmt *use_worker(struct store *s, enum store_sql what, uint16_t worker)
{
    sqlite3_stmt *st = use_pool(s, what);
    if (st)
        store_fail(s, sqlite3_bind_int64(st, 2, worker));
    return st;
}

/* true: there is a row, to be followed by done() or another step. */
bool store_step(struct store *s, sqlite3_stmt *st)
{
    if (!st || s->rc != SQLITE_OK)
        return false;
    int rc = sqlite3_step(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        store_fail(s, rc);
    return rc == SQLITE_ROW;
}

static void done(sqlite3_stmt *st)
{
    if (!st)
        return;
    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
}

/* Runs a statement whose rows, if any, nobody wants. */
static void finish(struct store *s, sqlite3_stmt *st)
{
    (void)store_step(s, st);
    done(st);
}

static void bind_text(struct store *s, sqlite3_stmt *st, int i, const char *text)
{
    if (st)
        store_fail(s, sqlite3_bind_text(st, i, text, -1, SQLITE_TRANSIENT));
}

static void bind_number(struct store *s, sqlite3_stmt *st, int i, int64_t v)
{
    if (st)
        store_fail(s, sqlite3_bind_int64(st, i, v));
}

static bool number_at(sqlite3_stmt *st, int i, int64_t *out)
{
    if (sqlite3_column_type(st, i) != SQLITE_INTEGER)
        return false;
    int64_t v = sqlite3_column_int64(st, i);
    if (v < 0 || v > COORD_NUMBER_MAX)
        return false;
    *out = v;
    return true;
}

static bool text_at(sqlite3_stmt *st, int i, char *out, size_t cap)
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

static uint64_t count_of(struct store *s, enum store_sql what)
{
    sqlite3_stmt *st = use_pool(s, what);
    int64_t n = 0;
    if (store_step(s, st) && !number_at(st, 0, &n))
        n = 0;
    done(st);
    return (uint64_t)n;
}

void store_run(struct store *s, enum store_sql what)
{
    finish(s, use(s, what));
}

void store_close(struct store *s)
{
    for (size_t i = 0; i < STORE_SQLS; i++)
        (void)sqlite3_finalize(s->stmt[i]);
    (void)sqlite3_close(s->db);
    memset(s, 0, sizeof *s);
}

/* ---- the tally ------------------------------------------------------------------------------- */

void store_tally_get(struct store *s, struct tally *out)
{
    store_run(s, STORE_TALLY_MAKE); /* what was put back may be a file of before */
    store_run(s, STORE_PAST_MAKE);
    sqlite3_stmt *st = use(s, STORE_TALLY_GET);
    bool good = store_step(s, st) && number_at(st, 0, &out->tick) && number_at(st, 1, &out->turn) &&
                number_at(st, 2, &out->device) && text_at(st, 3, out->boot, sizeof out->boot);
    done(st);
    if (!good)
        *out = (struct tally){.tick = 0};
    st = use(s, STORE_PAST_GET);
    bind_number(s, st, 1, out->tick);
    if (!store_step(s, st) || !number_at(st, 1, &out->changes) ||
        !text_at(st, 2, out->inode, sizeof out->inode))
        out->inode[0] = '\0'; /* an earlier program was here since */
    done(st);
}

void store_tally_set(struct store *s, const struct tally *t, int64_t beside)
{
    sqlite3_stmt *st = use(s, STORE_TALLY_SET);
    bind_number(s, st, 1, t->tick);
    bind_number(s, st, 2, t->turn);
    bind_number(s, st, 3, t->device);
    bind_text(s, st, 4, t->boot);
    finish(s, st);
    st = use(s, STORE_PAST_SET);
    bind_number(s, st, 1, t->tick);
    bind_number(s, st, 2, t->nonce);
    bind_number(s, st, 3, t->changes);
    bind_text(s, st, 4, t->inode);
    finish(s, st);
    st = use(s, STORE_PAST_DROP);
    bind_number(s, st, 1, min64(t->tick - STORE_PAST_MAX, beside - 1));
    bind_number(s, st, 2, t->tick);
    finish(s, st);
}

bool store_tally_has(struct store *s, int64_t tick, int64_t nonce)
{
    sqlite3_stmt *st = use(s, STORE_PAST_GET);
    bind_number(s, st, 1, tick);
    bool there = store_step(s, st) && sqlite3_column_int64(st, 0) == nonce;
    done(st);
    return there;
}

bool store_tally_lacks(struct store *s, int64_t tick, int64_t nonce)
{
    sqlite3_stmt *st = use(s, STORE_PAST_LACKS);
    bind_number(s, st, 1, tick);
    bind_number(s, st, 2, nonce);
    bool lacks = store_step(s, st) && sqlite3_column_int64(st, 0) != 0;
    done(st);
    return lacks;
}

/* ---- the pool ------------------------------------------------------------------------------- */

/* Columns era to born, and those of later, in the order of the statements. */
#define POOL_NUMBERS (16 + COORD_LATERS)

static bool pool_unpack(struct store_pool *out, const int64_t v[POOL_NUMBERS])
{
    struct coord_params *params = &out->p.params;
    if (v[12] > UINT16_MAX || v[13] >= COORD_WORKERS || v[14] >= COORD_WORKERS)
        return false;
    out->era = v[0];
    out->p.topen_ms = v[1];
    out->p.floor_ms = v[2];
    out->p.floor_short_ms = v[3];
    out->p.tmax_ms = v[4];
    out->p.closed = v[5] != 0;
    out->p.moved = v[5] == COORD_CLOSED_MOVED;
    out->adopt = v[6] != 0;
    params->horizon_ms = v[7];
    params->first_horizon_ms = v[8];
    params->mature_after_ms = v[9];
    params->max_skew_ms = v[10];
    params->grace_ms = v[11];
    params->replicas = (uint32_t)v[12];
    params->worker_from = (uint16_t)v[13];
    params->worker_to = (uint16_t)v[14];
    out->p.born_ms = v[15];
    memcpy(&out->p.later, v + POOL_NUMBERS - COORD_LATERS, sizeof out->p.later);
    return true;
}

static void pool_pack(const struct store_pool *in, int64_t v[POOL_NUMBERS])
{
    const struct coord_params *params = &in->p.params;
    const int64_t all[POOL_NUMBERS] = {
        in->era,
        in->p.topen_ms,
        in->p.floor_ms,
        in->p.floor_short_ms,
        in->p.tmax_ms,
        in->p.moved ? COORD_CLOSED_MOVED : in->p.closed,
        in->adopt,
        params->horizon_ms,
        params->first_horizon_ms,
        params->mature_after_ms,
        params->max_skew_ms,
        params->grace_ms,
        params->replicas,
        params->worker_from,
        params->worker_to,
        in->p.born_ms,
    };
    memcpy(v, all, sizeof all);
    memcpy(v + POOL_NUMBERS - COORD_LATERS, &in->p.later, sizeof in->p.later);
}

/* Number i is one of later, in a row that nobody has written since. */
static bool not_yet(sqlite3_stmt *st, size_t i, int64_t *out)
{
    *out = 0;
    return i >= POOL_NUMBERS - COORD_LATERS && sqlite3_column_type(st, 3 + (int)i) == SQLITE_NULL;
}

enum store_found store_pool_get(struct store *s, const char *name, struct store_pool *out)
{
    sqlite3_stmt *st = use(s, STORE_POOL_GET);
    int64_t v[POOL_NUMBERS];
    memset(out, 0, sizeof *out);
    bind_text(s, st, 1, name);
    bool row = store_step(s, st);
    bool good = row && number_at(st, 0, &s->pool) &&
                text_at(st, 1, out->p.identity, sizeof out->p.identity) &&
                text_at(st, 2, out->fingerprint, sizeof out->fingerprint);
    for (size_t i = 0; good && i < POOL_NUMBERS; i++)
        good = number_at(st, 3 + (int)i, &v[i]) || not_yet(st, i, &v[i]);
    done(st);
    if (!row)
        return STORE_NONE;
    return good && pool_unpack(out, v) ? STORE_FOUND : STORE_UNREADABLE;
}

void store_pool_add(struct store *s, const char *name, const struct store_pool *p)
{
    sqlite3_stmt *st = use(s, STORE_POOL_ADD);
    bind_text(s, st, 1, name);
    finish(s, st);
    if (s->rc == SQLITE_OK)
        s->pool = sqlite3_last_insert_rowid(s->db);
    store_pool_set(s, p);
}

void store_pool_set(struct store *s, const struct store_pool *p)
{
    sqlite3_stmt *st = use_pool(s, STORE_POOL_SET);
    int64_t v[POOL_NUMBERS];
    pool_pack(p, v);
    bind_text(s, st, 2, p->p.identity);
    bind_text(s, st, 3, p->fingerprint);
    for (size_t i = 0; i < POOL_NUMBERS; i++)
        bind_number(s, st, 4 + (int)i, v[i]);
    finish(s, st);
}

/* ---- records -------------------------------------------------------------------------------- */

/* The columns of STORE_RECORD_GET and STORE_ALL_RECORDS. */
static bool record_at(sqlite3_stmt *st, struct store_record *out)
{
    char token[COORD_TOKEN_TEXT];
    int64_t worker;
    memset(out, 0, sizeof *out);
    if (!number_at(st, 0, &worker) || worker >= COORD_WORKERS)
        return false;
    out->worker = (uint16_t)worker;
    out->held = sqlite3_column_type(st, 5) != SQLITE_NULL;
    return number_at(st, 1, &out->era) && number_at(st, 2, &out->hwm_ms) &&
           number_at(st, 3, &out->t0_ms) && number_at(st, 4, &out->n) &&
           (!out->held || (text_at(st, 5, token, sizeof token) &&
                           coord_token_parse(span_str(token), &out->token)));
}

enum store_found store_record_get(struct store *s, uint16_t worker, struct store_record *out)
{
    sqlite3_stmt *st = use_worker(s, STORE_RECORD_GET, worker);
    bool row = store_step(s, st);
    bool good = row && record_at(st, out);
    if (!good)
        *out = (struct store_record){.n = 0};
    done(st);
    if (!row)
        return STORE_NONE;
    return good ? STORE_FOUND : STORE_UNREADABLE;
}

void store_record_set(struct store *s, const struct store_record *r)
{
    sqlite3_stmt *st = use_worker(s, STORE_RECORD_SET, r->worker);
    char token[COORD_TOKEN_TEXT];
    bind_number(s, st, 3, r->era);
    bind_number(s, st, 4, r->hwm_ms);
    bind_number(s, st, 5, r->t0_ms);
    bind_number(s, st, 6, r->n);
    if (r->held) {
        bind_text(s, st, 7, coord_token_text(token, r->token));
        bind_number(s, st, 8, r->hwm_ms);
    }
    finish(s, st);
}

void store_due_set(struct store *s, uint16_t worker, int64_t due_ms)
{
    sqlite3_stmt *st = use_worker(s, STORE_DUE_SET, worker);
    if (due_ms >= 0)
        bind_number(s, st, 3, due_ms);
    finish(s, st);
}

size_t store_due_list(struct store *s, int64_t limit_ms, uint16_t *out, size_t max)
{
    sqlite3_stmt *st = use_pool(s, STORE_DUE_LIST);
    size_t n = 0;
    bind_number(s, st, 2, limit_ms);
    bind_number(s, st, 3, (int64_t)max);
    while (n < max && store_step(s, st)) {
        int64_t worker;
        if (number_at(st, 0, &worker) && worker < COORD_WORKERS)
            out[n++] = (uint16_t)worker;
    }
    done(st);
    return n;
}

uint64_t store_due_count(struct store *s)
{
    return count_of(s, STORE_DUE_COUNT);
}

void store_who_set(struct store *s, uint16_t worker, const char *text)
{
    sqlite3_stmt *st = use_worker(s, STORE_WHO_SET, worker);
    if (*text)
        bind_text(s, st, 3, text);
    finish(s, st);
}

bool store_who_is(struct store *s, uint16_t worker, const char *text)
{
    char who[COORD_WHO_MAX];
    sqlite3_stmt *st = use_worker(s, STORE_RECORD_GET, worker);
    bool same = store_step(s, st) && text_at(st, 7, who, sizeof who) && strcmp(who, text) == 0;
    done(st);
    return same;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static uint32_t entry_at(sqlite3_stmt *st, int i)
{
    int64_t worker;
    return number_at(st, i, &worker) && worker < COORD_WORKERS ? (uint32_t)worker : UINT32_MAX;
}

bool store_queue_pop(struct store *s, uint32_t *worker)
{
    sqlite3_stmt *st = use_pool(s, STORE_QUEUE_HEAD);
    int64_t seq = 0;
    bool row = store_step(s, st);
    if (row) {
        seq = sqlite3_column_int64(st, 0);
        *worker = entry_at(st, 1);
    }
    done(st);
    if (!row)
        return false;
    st = use(s, STORE_QUEUE_DROP);
    bind_number(s, st, 1, seq);
    finish(s, st);
    return s->rc == SQLITE_OK;
}

void store_queue_push(struct store *s, uint16_t worker)
{
    finish(s, use_worker(s, STORE_QUEUE_ADD, worker));
}

void store_queue_fill(struct store *s, uint16_t from, uint16_t to)
{
    sqlite3_stmt *st = use_worker(s, STORE_QUEUE_FILL, from);
    bind_number(s, st, 3, to);
    finish(s, st);
}

void store_queue_remove(struct store *s, const uint8_t named[COORD_WORKERS], uint16_t from,
                        uint16_t to)
{
    sqlite3_stmt *st = use_pool(s, STORE_QUEUE_REMOVE);
    if (st)
        store_fail(s, sqlite3_bind_blob(st, 2, named, COORD_WORKERS, SQLITE_STATIC));
    bind_number(s, st, 3, from);
    bind_number(s, st, 4, to);
    finish(s, st);
}

uint64_t store_queue_count(struct store *s)
{
    return count_of(s, STORE_QUEUE_COUNT);
}

/* ---- lists ---------------------------------------------------------------------------------- */

bool store_next(struct store *s, enum store_sql list, struct store_row *row)
{
    /* A statement that has not begun is given its pool; SQLite forbids it afterwards. */
    sqlite3_stmt *st = use(s, list);
    if (st && !sqlite3_stmt_busy(st))
        st = use_pool(s, list);
    if (!store_step(s, st)) {
        done(st);
        return false;
    }
    row->worker = entry_at(st, 0);
    row->who[0] = '\0';
    if (list == STORE_ALL_RECORDS) {
        row->found = record_at(st, &row->record) ? STORE_FOUND : STORE_UNREADABLE;
        if (!text_at(st, 7, row->who, sizeof row->who))
            row->who[0] = '\0';
    }
    return true;
}
