#include "sim/twin.h"

#include "base/dec.h"
#include "coord/outcome.h"
#include "coord/transact.h"
#include "coord/transact_sequences.h"
#include "sim/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT(s, n) ((struct span){(s), (n)})

struct twin {
    struct transact transact; /* first */
    struct store store;
    struct dataset *data; /* of the transaction */
    struct dataset_reply reply;
    char fingerprint[STORE_FINGERPRINT_MAX];
    char pool[DATASET_NAME_MAX], queue[DATASET_NAME_MAX], due[DATASET_NAME_MAX],
        who[DATASET_NAME_MAX];
};

static struct twin *of(struct store *s)
{
    return (struct twin *)(void *)((char *)s - offsetof(struct twin, store));
}

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "simulated rules in C: %s\n", what);
    abort();
}

/* ---- commands -------------------------------------------------------------------------------- */

static const struct dataset_reply *run(struct twin *t, size_t argc, const struct span *argv)
{
    if (!dataset_command(t->data, argc, argv, &t->reply) || t->reply.kind == DATASET_ERROR)
        die(argv[0].p);
    return &t->reply;
}

#define RUN(t, ...)                                                                                \
    run((t), sizeof(struct span[]){__VA_ARGS__} / sizeof(struct span), (struct span[]){__VA_ARGS__})

struct digits {
    char p[24];
};

static struct span number(struct digits *d, int64_t v)
{
    return TEXT(d->p, dec_put_i64(d->p, v));
}

static uint32_t worker_in(struct span s)
{
    uint64_t w;
    return dec_u64(s, &w) && w < COORD_WORKERS ? (uint32_t)w : UINT32_MAX;
}

static bool copy(char *out, size_t cap, struct span s)
{
    bool fits = s.n < cap;
    size_t n = fits ? s.n : 0;
    memcpy(out, s.p ? s.p : "", n);
    out[n] = '\0';
    return fits;
}

/* ---- the transaction ------------------------------------------------------------------------- */

static enum coord_status begin(struct store *s, enum store_access access, int64_t deadline_us,
                               struct coord_reply *r)
{
    struct twin *t = of(s);
    (void)access, (void)deadline_us;
    t->data = script_data();
    return t->data ? COORD_OK : outcome_down(r, ERR_IO, "expected a master, found none");
}

static int64_t now(struct store *s)
{
    return of(s)->data->now_us / 1000;
}

static const char *fingerprint(struct store *s)
{
    struct twin *t = of(s);
    (void)snprintf(t->fingerprint, sizeof t->fingerprint, "%s%s", t->data->run_id, t->data->replid);
    return t->fingerprint;
}

static enum coord_status commit(struct store *s, bool *conflict, struct coord_reply *r)
{
    (void)s, (void)conflict, (void)r;
    return COORD_OK;
}

static void rollback(struct store *s)
{
    (void)s;
    die("rollback");
}

/* ---- the pool -------------------------------------------------------------------------------- */

/* As store_pool_pack orders them. */
static const char *const fields[STORE_POOL_NUMBERS] = {
    "era",    "topen",   "fl",       "fs",    "tmax",  "closed", "adopt", "A",
    "A0",     "D0",      "S",        "G",     "K",     "from",   "to",    "born",
    "settle", "settle0", "settle_t", "fl0",   "fs0",   "era0",   "more",  "trust",
    "lent",   "ahead",   "every",    "cause", "fence", "least",  "leap",  "leapt"};

static enum store_found pool_get(struct store *s, const char *name, struct store_pool *out)
{
    struct twin *t = of(s);
    struct span argv[4 + STORE_POOL_NUMBERS] = {SPAN("HMGET"), span_str(t->pool), SPAN("identity"),
                                                SPAN("fp")};
    int64_t v[STORE_POOL_NUMBERS] = {0};
    (void)name;
    memset(out, 0, sizeof *out);
    if (!dataset_find(t->data, t->pool))
        return STORE_NONE;
    for (size_t i = 0; i < STORE_POOL_NUMBERS; i++)
        argv[4 + i] = span_str(fields[i]);
    const struct dataset_reply *r = run(t, 4 + STORE_POOL_NUMBERS, argv);
    for (size_t i = 0; i < STORE_POOL_NUMBERS; i++)
        if (!r->item[2 + i].nil && !dec_i64(r->item[2 + i].text, &v[i]))
            return STORE_UNREADABLE;
    bool good = !r->item[0].nil && !r->item[1].nil &&
                copy(out->p.identity, sizeof out->p.identity, r->item[0].text) &&
                copy(out->fingerprint, sizeof out->fingerprint, r->item[1].text) &&
                store_pool_unpack(out, v);
    return good ? STORE_FOUND : STORE_UNREADABLE;
}

static void pool_set(struct store *s, const struct store_pool *p)
{
    struct twin *t = of(s);
    struct digits d[STORE_POOL_NUMBERS];
    struct span argv[6 + 2 * STORE_POOL_NUMBERS] = {SPAN("HSET"),     span_str(t->pool),
                                                    SPAN("identity"), span_str(p->p.identity),
                                                    SPAN("fp"),       span_str(p->fingerprint)};
    int64_t v[STORE_POOL_NUMBERS];
    store_pool_pack(p, v);
    for (size_t i = 0; i < STORE_POOL_NUMBERS; i++) {
        argv[6 + 2 * i] = span_str(fields[i]);
        argv[7 + 2 * i] = number(&d[i], v[i]);
    }
    (void)run(t, 6 + 2 * STORE_POOL_NUMBERS, argv);
}

/* What is there without a pool is of one that was lost. */
static void pool_add(struct store *s, const char *name, const struct store_pool *p)
{
    struct twin *t = of(s);
    (void)name;
    (void)RUN(t, SPAN("DEL"), span_str(t->queue), span_str(t->due), span_str(t->who));
    pool_set(s, p);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool read_record(struct span text, struct store_record *out)
{
    struct span part[5];
    for (size_t i = 0; i < 5; i++)
        part[i] = span_cut(&text, ' ');
    out->held = !span_eq(part[2], SPAN("-"));
    return !text.p && dec_i64(part[0], &out->era) && dec_i64(part[1], &out->hwm_ms) &&
           (!out->held || coord_token_parse(part[2], &out->token)) &&
           dec_i64(part[3], &out->t0_ms) && dec_i64(part[4], &out->n);
}

static enum store_found record_get(struct store *s, uint16_t worker, struct store_record *out)
{
    struct twin *t = of(s);
    struct digits d;
    memset(out, 0, sizeof *out);
    const struct dataset_reply *r = RUN(t, SPAN("HGET"), span_str(t->pool), number(&d, worker));
    if (r->kind == DATASET_NIL)
        return STORE_NONE;
    bool good = read_record(r->text, out);
    if (!good)
        memset(out, 0, sizeof *out);
    out->worker = worker;
    return good ? STORE_FOUND : STORE_UNREADABLE;
}

static void due_set(struct store *s, uint16_t worker, int64_t due_ms)
{
    struct twin *t = of(s);
    struct digits d, w;
    if (due_ms >= 0)
        (void)RUN(t, SPAN("ZADD"), span_str(t->due), number(&d, due_ms), number(&w, worker));
    else
        (void)RUN(t, SPAN("ZREM"), span_str(t->due), number(&w, worker));
}

static void record_set(struct store *s, const struct store_record *r)
{
    struct twin *t = of(s);
    struct digits w;
    char text[DATASET_TEXT_MAX], token[COORD_TOKEN_TEXT] = "-";
    if (r->held)
        (void)coord_token_text(token, r->token);
    int n = snprintf(text, sizeof text, "%lld %lld %s %lld %lld", (long long)r->era,
                     (long long)r->hwm_ms, token, (long long)r->t0_ms, (long long)r->n);
    (void)RUN(t, SPAN("HSET"), span_str(t->pool), number(&w, r->worker), TEXT(text, (size_t)n));
    due_set(s, r->worker, r->held ? r->hwm_ms : -1);
}

static size_t due_list(struct store *s, int64_t limit_ms, uint16_t *out, size_t max)
{
    struct twin *t = of(s);
    struct digits most, d = {"("};
    size_t n = dec_put_i64(d.p + 1, limit_ms) + 1, found = 0;
    const struct dataset_reply *r =
        RUN(t, SPAN("ZRANGEBYSCORE"), span_str(t->due), SPAN("-inf"), TEXT(d.p, n), SPAN("LIMIT"),
            SPAN("0"), number(&most, (int64_t)max));
    for (size_t i = 0; i < r->n; i++) {
        uint32_t w = worker_in(r->item[i].text);
        if (w != UINT32_MAX)
            out[found++] = (uint16_t)w;
    }
    return found;
}

static uint64_t count_of(struct twin *t, struct span command, const char *key)
{
    return (uint64_t)RUN(t, command, span_str(key))->number;
}

static uint64_t due_count(struct store *s)
{
    return count_of(of(s), SPAN("ZCARD"), of(s)->due);
}

static void who_set(struct store *s, uint16_t worker, const char *text)
{
    struct twin *t = of(s);
    struct digits w;
    if (*text)
        (void)RUN(t, SPAN("HSET"), span_str(t->who), number(&w, worker), span_str(text));
    else
        (void)RUN(t, SPAN("HDEL"), span_str(t->who), number(&w, worker));
}

static bool who_is(struct store *s, uint16_t worker, const char *text)
{
    struct twin *t = of(s);
    struct digits w;
    const struct dataset_reply *r = RUN(t, SPAN("HGET"), span_str(t->who), number(&w, worker));
    return r->kind == DATASET_TEXT && span_eq(r->text, span_str(text));
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool queue_pop(struct store *s, uint32_t *worker)
{
    struct twin *t = of(s);
    const struct dataset_reply *r = RUN(t, SPAN("LPOP"), span_str(t->queue));
    if (r->kind == DATASET_NIL)
        return false;
    *worker = worker_in(r->text);
    return true;
}

static void queue_push(struct store *s, uint16_t worker)
{
    struct twin *t = of(s);
    struct digits w;
    (void)RUN(t, SPAN("RPUSH"), span_str(t->queue), number(&w, worker));
}

static void queue_fill(struct store *s, uint16_t from, uint16_t to)
{
    for (uint32_t w = from; w <= to; w++)
        queue_push(s, (uint16_t)w);
}

static void queue_remove(struct store *s, const uint8_t named[COORD_WORKERS], uint16_t from,
                         uint16_t to)
{
    struct twin *t = of(s);
    uint16_t kept[DATASET_ELEMENTS];
    size_t n = 0;
    const struct dataset_reply *r =
        RUN(t, SPAN("LRANGE"), span_str(t->queue), SPAN("0"), SPAN("-1"));
    for (size_t i = 0; i < r->n; i++) {
        uint32_t w = worker_in(r->item[i].text);
        if (w != UINT32_MAX && w >= from && w <= to && !named[w])
            kept[n++] = (uint16_t)w;
    }
    (void)RUN(t, SPAN("DEL"), span_str(t->queue));
    for (size_t i = 0; i < n; i++)
        queue_push(s, kept[i]);
}

static uint64_t queue_count(struct store *s)
{
    return count_of(of(s), SPAN("LLEN"), of(s)->queue);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static enum store_found text_get(struct store *s, const char *key, char *out, size_t cap)
{
    struct twin *t = of(s);
    const struct dataset_reply *r = RUN(t, SPAN("HGET"), span_str(t->pool), span_str(key));
    *out = '\0';
    if (r->kind == DATASET_NIL)
        return STORE_NONE;
    return copy(out, cap, r->text) ? STORE_FOUND : STORE_UNREADABLE;
}

static void text_set(struct store *s, const char *key, const char *text)
{
    struct twin *t = of(s);
    (void)RUN(t, SPAN("HSET"), span_str(t->pool), span_str(key), span_str(text));
}

static void text_drop(struct store *s, const char *key)
{
    struct twin *t = of(s);
    (void)RUN(t, SPAN("HDEL"), span_str(t->pool), span_str(key));
}

static bool text_next(struct store *s, const char *prefix, const char *after, char *key, char *text,
                      size_t cap)
{
    const struct dataset_key *k = dataset_find(of(s)->data, of(s)->pool);
    const struct dataset_element *best = NULL;
    char name[DATASET_SUB_MAX + 1], least[DATASET_SUB_MAX + 1] = "";
    for (unsigned i = 0; k && i < k->n; i++) {
        (void)copy(name, sizeof name, TEXT(k->e[i].sub, k->e[i].nsub));
        if (strncmp(name, prefix, strlen(prefix)) != 0 || strcmp(name, after) <= 0 ||
            (best && strcmp(name, least) >= 0))
            continue;
        best = &k->e[i];
        memcpy(least, name, sizeof least);
    }
    if (!best)
        return false;
    memcpy(key, least, sizeof least);
    (void)copy(text, cap, TEXT(best->text, best->ntext));
    return true;
}

/* Snapshots are none of a simulation's. */
static bool next(struct store *s, enum store_list list, struct store_row *row)
{
    (void)s, (void)list, (void)row;
    die("next");
}

static const struct store_ops ops = {
    .forgets = true,
    .begin = begin,
    .now = now,
    .fingerprint = fingerprint,
    .commit = commit,
    .rollback = rollback,
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

/* ---- life ------------------------------------------------------------------------------------ */

static void twin_free(struct coord *c)
{
    free(c);
}

static const struct coord_driver driver = {
    .free = twin_free,
    .describe = transact_describe,
    .init = transact_new,
    .claim = transact_claim,
    .renew = transact_renew,
    .release = transact_release,
    .evict = transact_evict,
    .close = transact_close,
    .unclose = transact_unclose,
    .repair = transact_repair,
    .settle = transact_settle,
    .nothing_lost = transact_nothing_lost,
    .clock_was_ahead = transact_clock_was_ahead,
    .sequences = &transact_sequences,
};

static void name_key(char out[DATASET_NAME_MAX], const char *pool, const char *what)
{
    (void)snprintf(out, DATASET_NAME_MAX, "sidflake:{%.16s}:%s", pool, what);
}

struct coord *twin_open(const struct coord_options *o)
{
    struct twin *t = calloc(1, sizeof *t);
    if (!t)
        die("no memory");
    transact_init(&t->transact, &driver, &t->store, o);
    t->transact.callers = o->clock;
    t->store.ops = &ops;
    name_key(t->pool, t->transact.pool, "h");
    name_key(t->queue, t->transact.pool, "free");
    name_key(t->due, t->transact.pool, "exp");
    name_key(t->who, t->transact.pool, "who");
    return &t->transact.base;
}
