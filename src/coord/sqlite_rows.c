/* The rows of a store in SQLite's tables. */
#include "coord/outcome.h"
#include "coord/sqlite.h"

#include <sqlite3.h>
#include <string.h>

static struct sql *sql_of(struct store *s)
{
    return &sqlite_of(s)->sql;
}

/* ---- statements ------------------------------------------------------------------------------ */

/* With the pool as first value. */
static sqlite3_stmt *use_pool(struct sql *q, enum sql_text what)
{
    sqlite3_stmt *st = sql_use(q, what);
    if (st)
        sql_fail(q, sqlite3_bind_int64(st, 1, q->pool));
    return st;
}

/* The same with a workerId as second value. */
static sqlite3_stmt *use_worker(struct sql *q, enum sql_text what, uint16_t worker)
{
    sqlite3_stmt *st = use_pool(q, what);
    if (st)
        sql_fail(q, sqlite3_bind_int64(st, 2, worker));
    return st;
}

static uint64_t count_of(struct sql *q, enum sql_text what)
{
    sqlite3_stmt *st = use_pool(q, what);
    int64_t n = 0;
    if (sql_step(q, st) && !sql_number_at(st, 0, &n))
        n = 0;
    sql_done(st);
    return (uint64_t)n;
}

/* ---- the pool ------------------------------------------------------------------------------- */

/* Number i is one of later, in a row that nobody has written since. */
static bool not_yet(sqlite3_stmt *st, size_t i, int64_t *out)
{
    *out = 0;
    return i >= STORE_POOL_NUMBERS - COORD_LATERS &&
           sqlite3_column_type(st, 3 + (int)i) == SQLITE_NULL;
}

static enum store_found pool_get(struct store *s, const char *name, struct store_pool *out)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = sql_use(q, SQL_POOL_GET);
    int64_t v[STORE_POOL_NUMBERS];
    memset(out, 0, sizeof *out);
    sql_bind_text(q, st, 1, name);
    bool row = sql_step(q, st);
    bool good = row && sql_number_at(st, 0, &q->pool) &&
                sql_text_at(st, 1, out->p.identity, sizeof out->p.identity) &&
                sql_text_at(st, 2, out->fingerprint, sizeof out->fingerprint);
    for (size_t i = 0; good && i < STORE_POOL_NUMBERS; i++)
        good = sql_number_at(st, 3 + (int)i, &v[i]) || not_yet(st, i, &v[i]);
    sql_done(st);
    if (!row)
        return STORE_NONE;
    return good && store_pool_unpack(out, v) ? STORE_FOUND : STORE_UNREADABLE;
}

static void pool_set(struct store *s, const struct store_pool *p)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_pool(q, SQL_POOL_SET);
    int64_t v[STORE_POOL_NUMBERS];
    store_pool_pack(p, v);
    sql_bind_text(q, st, 2, p->p.identity);
    sql_bind_text(q, st, 3, p->fingerprint);
    for (size_t i = 0; i < STORE_POOL_NUMBERS; i++)
        sql_bind_number(q, st, 4 + (int)i, v[i]);
    sql_finish(q, st);
}

static void pool_add(struct store *s, const char *name, const struct store_pool *p)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = sql_use(q, SQL_POOL_ADD);
    sql_bind_text(q, st, 1, name);
    sql_finish(q, st);
    if (q->rc == SQLITE_OK)
        q->pool = sqlite3_last_insert_rowid(q->db);
    pool_set(s, p);
}

/* ---- records -------------------------------------------------------------------------------- */

/* The columns of SQL_RECORD_GET and SQL_ALL_RECORDS. */
static bool record_at(sqlite3_stmt *st, struct store_record *out)
{
    char token[COORD_TOKEN_TEXT];
    int64_t worker;
    memset(out, 0, sizeof *out);
    if (!sql_number_at(st, 0, &worker) || worker >= COORD_WORKERS)
        return false;
    out->worker = (uint16_t)worker;
    out->held = sqlite3_column_type(st, 5) != SQLITE_NULL;
    return sql_number_at(st, 1, &out->era) && sql_number_at(st, 2, &out->hwm_ms) &&
           sql_number_at(st, 3, &out->t0_ms) && sql_number_at(st, 4, &out->n) &&
           (!out->held || (sql_text_at(st, 5, token, sizeof token) &&
                           coord_token_parse(span_str(token), &out->token)));
}

static enum store_found record_get(struct store *s, uint16_t worker, struct store_record *out)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_worker(q, SQL_RECORD_GET, worker);
    bool row = sql_step(q, st);
    bool good = row && record_at(st, out);
    if (!good)
        *out = (struct store_record){.n = 0};
    sql_done(st);
    if (!row)
        return STORE_NONE;
    return good ? STORE_FOUND : STORE_UNREADABLE;
}

static void record_set(struct store *s, const struct store_record *r)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_worker(q, SQL_RECORD_SET, r->worker);
    char token[COORD_TOKEN_TEXT];
    sql_bind_number(q, st, 3, r->era);
    sql_bind_number(q, st, 4, r->hwm_ms);
    sql_bind_number(q, st, 5, r->t0_ms);
    sql_bind_number(q, st, 6, r->n);
    if (r->held) {
        sql_bind_text(q, st, 7, coord_token_text(token, r->token));
        sql_bind_number(q, st, 8, r->hwm_ms);
    }
    sql_finish(q, st);
}

static void due_set(struct store *s, uint16_t worker, int64_t due_ms)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_worker(q, SQL_DUE_SET, worker);
    if (due_ms >= 0)
        sql_bind_number(q, st, 3, due_ms);
    sql_finish(q, st);
}

static size_t due_list(struct store *s, int64_t limit_ms, uint16_t *out, size_t max)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_pool(q, SQL_DUE_LIST);
    size_t n = 0;
    sql_bind_number(q, st, 2, limit_ms);
    sql_bind_number(q, st, 3, (int64_t)max);
    while (n < max && sql_step(q, st)) {
        int64_t worker;
        if (sql_number_at(st, 0, &worker) && worker < COORD_WORKERS)
            out[n++] = (uint16_t)worker;
    }
    sql_done(st);
    return n;
}

static uint64_t due_count(struct store *s)
{
    return count_of(sql_of(s), SQL_DUE_COUNT);
}

static void who_set(struct store *s, uint16_t worker, const char *text)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_worker(q, SQL_WHO_SET, worker);
    if (*text)
        sql_bind_text(q, st, 3, text);
    sql_finish(q, st);
}

static bool who_is(struct store *s, uint16_t worker, const char *text)
{
    struct sql *q = sql_of(s);
    char who[COORD_WHO_MAX];
    sqlite3_stmt *st = use_worker(q, SQL_RECORD_GET, worker);
    bool same = sql_step(q, st) && sql_text_at(st, 7, who, sizeof who) && strcmp(who, text) == 0;
    sql_done(st);
    return same;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static uint32_t entry_at(sqlite3_stmt *st, int i)
{
    int64_t worker;
    return sql_number_at(st, i, &worker) && worker < COORD_WORKERS ? (uint32_t)worker : UINT32_MAX;
}

static bool queue_pop(struct store *s, uint32_t *worker)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_pool(q, SQL_QUEUE_HEAD);
    int64_t seq = 0;
    bool row = sql_step(q, st);
    if (row) {
        seq = sqlite3_column_int64(st, 0);
        *worker = entry_at(st, 1);
    }
    sql_done(st);
    if (!row)
        return false;
    st = sql_use(q, SQL_QUEUE_DROP);
    sql_bind_number(q, st, 1, seq);
    sql_finish(q, st);
    return q->rc == SQLITE_OK;
}

static void queue_push(struct store *s, uint16_t worker)
{
    struct sql *q = sql_of(s);
    sql_finish(q, use_worker(q, SQL_QUEUE_ADD, worker));
}

static void queue_fill(struct store *s, uint16_t from, uint16_t to)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_worker(q, SQL_QUEUE_FILL, from);
    sql_bind_number(q, st, 3, to);
    sql_finish(q, st);
}

static void queue_remove(struct store *s, const uint8_t named[COORD_WORKERS], uint16_t from,
                         uint16_t to)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_pool(q, SQL_QUEUE_REMOVE);
    if (st)
        sql_fail(q, sqlite3_bind_blob(st, 2, named, COORD_WORKERS, SQLITE_STATIC));
    sql_bind_number(q, st, 3, from);
    sql_bind_number(q, st, 4, to);
    sql_finish(q, st);
}

static uint64_t queue_count(struct store *s)
{
    return count_of(sql_of(s), SQL_QUEUE_COUNT);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static bool next(struct store *s, enum store_list list, struct store_row *row)
{
    static const enum sql_text texts[] = {
        [STORE_ALL_RECORDS] = SQL_ALL_RECORDS,
        [STORE_ALL_QUEUE] = SQL_ALL_QUEUE,
        [STORE_ALL_DUE] = SQL_ALL_DUE,
    };
    struct sql *q = sql_of(s);
    /* A statement that has not begun is given its pool; SQLite forbids it afterwards. */
    sqlite3_stmt *st = sql_use(q, texts[list]);
    if (st && !sqlite3_stmt_busy(st))
        st = use_pool(q, texts[list]);
    if (!sql_step(q, st)) {
        sql_done(st);
        return false;
    }
    row->worker = entry_at(st, 0);
    row->who[0] = '\0';
    if (list == STORE_ALL_RECORDS) {
        row->found = record_at(st, &row->record) ? STORE_FOUND : STORE_UNREADABLE;
        if (!sql_text_at(st, 7, row->who, sizeof row->who))
            row->who[0] = '\0';
    }
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static sqlite3_stmt *use_key(struct sql *q, enum sql_text what, const char *key)
{
    sqlite3_stmt *st = use_pool(q, what);
    sql_bind_text(q, st, 2, key);
    return st;
}

static enum store_found text_get(struct store *s, const char *key, char *out, size_t cap)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_key(q, SQL_TEXT_GET, key);
    bool row = sql_step(q, st);
    bool good = row && sql_text_at(st, 0, out, cap);
    sql_done(st);
    if (!good)
        out[0] = '\0';
    return good ? STORE_FOUND : row ? STORE_UNREADABLE : STORE_NONE;
}

static void text_set(struct store *s, const char *key, const char *text)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_key(q, SQL_TEXT_SET, key);
    sql_bind_text(q, st, 3, text);
    sql_finish(q, st);
}

static void text_drop(struct store *s, const char *key)
{
    struct sql *q = sql_of(s);
    sql_finish(q, use_key(q, SQL_TEXT_DROP, key));
}

static bool text_next(struct store *s, const char *prefix, const char *after, char *key, char *text,
                      size_t cap)
{
    struct sql *q = sql_of(s);
    sqlite3_stmt *st = use_key(q, SQL_TEXT_NEXT, prefix);
    sql_bind_text(q, st, 3, after);
    bool row = sql_step(q, st) && sql_text_at(st, 0, key, STORE_KEY_MAX) &&
               strncmp(key, prefix, strlen(prefix)) == 0;
    if (row && !sql_text_at(st, 1, text, cap))
        text[0] = '\0';
    sql_done(st);
    return row;
}

/* ---- the table ------------------------------------------------------------------------------ */

const struct store_ops sqlite_ops = {
    .begin = sqlite_begin,
    .now = sqlite_now,
    .fingerprint = sqlite_fingerprint,
    .vouch = sqlite_vouch,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .pool_get = pool_get,
    .pool_add = pool_add,
    .pool_set = pool_set,
    .record_get = record_get,
    .record_set = record_set,
    .due_set = due_set,
    .due_list = due_list,
    .due_count = due_count,
    .who_set = who_set,
    .who_is = who_is,
    .queue_pop = queue_pop,
    .queue_push = queue_push,
    .queue_fill = queue_fill,
    .queue_remove = queue_remove,
    .queue_count = queue_count,
    .text_get = text_get,
    .text_set = text_set,
    .text_drop = text_drop,
    .text_next = text_next,
    .next = next,
};
