/*
 * A store with transactions, as the rules see it: the rows of pools, and nothing of what they mean.
 * Each store fills in the table below; rules.c runs over it, within transact.c.
 *
 *   pool    one row per pool: the fields of the script's hash
 *   record  one per workerId that was ever granted; due is its place in the index of held ones
 *           (what the script has in its zset), or it has none
 *   who     a text beside a record
 *   queue   the free list, first in, first out
 *   text    a text beside a key, for sequences: what else the script's hash has
 *
 * What every store promises
 *   - A transaction takes effect as a whole, at its commit, or not at all. What is committed
 *     outlives the store's own crash.
 *   - Those that write stand one after another, whoever runs them, and `now` rises along that
 *     order. How that is had is the store's: a lock that begin waits for, or a comparison at commit
 *     that says conflict. One that reads sees what one moment had, no earlier than its begin.
 *   - A call sees what the calls before it in its transaction wrote. Writes answer nothing, so a
 *     store may keep them back until something that depends on them is read, or the commit.
 *   - Failure is sticky: after one, calls do nothing and answer as if there were no row. The rules
 *     go on with such answers, and come to an end; commit says what became of it, once.
 *   - What was read before a conflict need not belong together, and is never told to anybody.
 *   - A number outside 0..COORD_NUMBER_MAX, or of another type, makes its row unreadable, never a
 *     wrong one.
 *   - One thread at a time, one transaction at a time, which ends with commit or rollback.
 */
#ifndef SIDFLAKE_COORD_STORE_H
#define SIDFLAKE_COORD_STORE_H

#include "coord/coord.h"

#define STORE_FINGERPRINT_MAX 96  /* NUL included */
#define STORE_KEY_MAX         256 /* NUL included: of a text */

/* First member of each store's own struct. */
struct store {
    const struct store_ops *ops;
};

/* What a transaction is for. */
enum store_access {
    STORE_READ,     /* nothing is written */
    STORE_READ_ALL, /* nothing is written, and an operator wants to see everything: who can check
                       what it keeps does it, and damage is a failure */
    STORE_WRITE,
    STORE_CREATE /* writes, and makes what a first pool needs, a file or tables, where it is missing
                  */
};

/* The script's hash without the records. */
struct store_pool {
    struct coord_pool p; /* held and epoch_ms are not kept here */
    int64_t era;
    bool adopt;
    char fingerprint[STORE_FINGERPRINT_MAX];
};

/* Its numbers in an order: era topen fl fs tmax closed adopt A A0 D0 S G K from to born, and those
 * of struct coord_later. */
#define STORE_POOL_NUMBERS (16 + COORD_LATERS)

void store_pool_pack(const struct store_pool *in, int64_t v[STORE_POOL_NUMBERS]);
/* false: one of them is out of its range. Identity and fingerprint are left alone. */
bool store_pool_unpack(struct store_pool *out, const int64_t v[STORE_POOL_NUMBERS]);

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

/* Lists, which are walked to their end or to the first failure. */
enum store_list {
    STORE_ALL_RECORDS, /* by workerId, ascending */
    STORE_ALL_QUEUE,   /* head first */
    STORE_ALL_DUE      /* the index, by workerId, ascending */
};

/* A row of one of them. */
struct store_row {
    uint32_t worker;            /* UINT32_MAX: no workerId */
    enum store_found found;     /* of the record; STORE_ALL_RECORDS only, as all that follows */
    struct store_record record; /* where found */
    char who[COORD_WHO_MAX];    /* "" where there is none */
};

/* All MUST unless marked MAY. Workers are below COORD_WORKERS. */
struct store_ops {
    /* ---- the transaction ---- */

    /* Connects where need be. COORD_OK: a transaction is open. Otherwise none is, and *r says why:
     * COORD_NOPOOL where there can be no pool, COORD_DOWN, COORD_REFUSED. By deadline_us
     * (monotonic) the whole of it has to be over; a store that is still at something then fails. */
    enum coord_status (*begin)(struct store *s, enum store_access access, int64_t deadline_us,
                               struct coord_reply *r);

    /* The coordinator's time, Unix ms; asked once, first of all. For one that writes it must be
     * read after every earlier transaction's commit: behind the lock, where there is one, and not
     * in the statement that waits for it. */
    int64_t (*now)(struct store *s);

    /* At most STORE_FINGERPRINT_MAX with its NUL, good until the end; another text than before
     * reopens the pool. It changes whenever this may be another store than the one that gave the
     * latest answer, or an earlier state of it. What follows the last ':', if there is one, changes
     * only where an earlier state is proven: then nothing is bet, and no word taken (rules.h). Read
     * in each transaction. */
    const char *(*fingerprint)(struct store *s);

    /* MAY: asked when a new pool is written and not committed yet. COORD_OK: it may be made.
     * Otherwise it is rolled back, and *r says why: nobody said that its ID space is fresh
     * (coord_init.unattended), and somebody may have used it. Absent: nothing is refused. */
    enum coord_status (*vouch)(struct store *s, const struct coord_init *in, struct coord_reply *r);

    /* COORD_OK: it took effect, or it wrote nothing. Otherwise *r says why:
     * with *conflict, which is false before: it certainly had no effect, since another transaction
     *     came first; the same rules, run again from begin, may be luckier;
     * without: it may have had an effect, or none. Whoever asks again is known by his tokens. */
    enum coord_status (*commit)(struct store *s, bool *conflict, struct coord_reply *r);

    /* As if it had never been. */
    void (*rollback)(struct store *s);

    /* ---- the pool ---- */

    /* Finds the pool by name; all that follows works on that one. All 0 where it is not found. */
    enum store_found (*pool_get)(struct store *s, const char *name, struct store_pool *out);
    /* There is none of that name, as pool_get said in this transaction. It works on it, too. */
    void (*pool_add)(struct store *s, const char *name, const struct store_pool *p);
    void (*pool_set)(struct store *s, const struct store_pool *p);

    /* ---- records ---- */

    /* All 0 where it is not found. */
    enum store_found (*record_get)(struct store *s, uint16_t worker, struct store_record *out);
    /* Writes the record, and leaves who as it is. It is in the index by hwm where held, and not in
     * it where free. */
    void (*record_set)(struct store *s, const struct store_record *r);

    /* due_ms < 0: out of the index. Workers without a record have no place in it. */
    void (*due_set)(struct store *s, uint16_t worker, int64_t due_ms);
    /* Those in the index below limit_ms, by due and then by their decimal text, as the script's are
     * ordered; at most max. */
    size_t (*due_list)(struct store *s, int64_t limit_ms, uint16_t *out, size_t max);
    uint64_t (*due_count)(struct store *s);

    /* "" removes it. Workers without a record have none. */
    void (*who_set)(struct store *s, uint16_t worker, const char *text);
    /* Whether that is what who_set was given last. */
    bool (*who_is)(struct store *s, uint16_t worker, const char *text);

    /* ---- the queue ---- */

    /* Takes the head off; false where there is none. What is no workerId comes as UINT32_MAX. */
    bool (*queue_pop)(struct store *s, uint32_t *worker);
    /* To the tail. The same workerId may be in it twice. */
    void (*queue_push)(struct store *s, uint16_t worker);
    /* From and to included, ascending. */
    void (*queue_fill)(struct store *s, uint16_t from, uint16_t to);
    /* Those with a 1 at their place, and what is no workerId from `from` to `to`; all of each. */
    void (*queue_remove)(struct store *s, const uint8_t named[COORD_WORKERS], uint16_t from,
                         uint16_t to);
    uint64_t (*queue_count)(struct store *s);

    /* ---- texts: what seq_rows.h says ---- */

    bool forgets; /* it may come back, whole, as it was before answers that it gave, and say so only
                     by another fingerprint, as Redis may. Otherwise that is somebody's doing */

    /* The text beside a key, into out of cap bytes; STORE_UNREADABLE: it is none, or too long. out
     * is empty where it is not found. */
    enum store_found (*text_get)(struct store *s, const char *key, char *out, size_t cap);
    void (*text_set)(struct store *s, const char *key, const char *text);
    void (*text_drop)(struct store *s, const char *key);
    /* The first row, by the bytes of its key, which begins with prefix, behind the key `after`; ""
     * is before all. key and text have STORE_KEY_MAX and cap bytes; text is empty where it is
     * unreadable. false: there is none, or its key is too long. */
    bool (*text_next)(struct store *s, const char *prefix, const char *after, char *key, char *text,
                      size_t cap);

    /* ---- lists ---- */

    /* The next row of a list, one list after the other; false at its end. */
    bool (*next)(struct store *s, enum store_list list, struct store_row *row);
};

/* ---- the same as functions: what the rules call ------------------------------------------------
 */

static inline enum store_found store_pool_get(struct store *s, const char *name,
                                              struct store_pool *out)
{
    return s->ops->pool_get(s, name, out);
}

static inline void store_pool_add(struct store *s, const char *name, const struct store_pool *p)
{
    s->ops->pool_add(s, name, p);
}

static inline void store_pool_set(struct store *s, const struct store_pool *p)
{
    s->ops->pool_set(s, p);
}

static inline enum store_found store_record_get(struct store *s, uint16_t worker,
                                                struct store_record *out)
{
    return s->ops->record_get(s, worker, out);
}

static inline void store_record_set(struct store *s, const struct store_record *r)
{
    s->ops->record_set(s, r);
}

static inline void store_due_set(struct store *s, uint16_t worker, int64_t due_ms)
{
    s->ops->due_set(s, worker, due_ms);
}

static inline size_t store_due_list(struct store *s, int64_t limit_ms, uint16_t *out, size_t max)
{
    return s->ops->due_list(s, limit_ms, out, max);
}

static inline uint64_t store_due_count(struct store *s)
{
    return s->ops->due_count(s);
}

static inline void store_who_set(struct store *s, uint16_t worker, const char *text)
{
    s->ops->who_set(s, worker, text);
}

static inline bool store_who_is(struct store *s, uint16_t worker, const char *text)
{
    return s->ops->who_is(s, worker, text);
}

static inline bool store_queue_pop(struct store *s, uint32_t *worker)
{
    return s->ops->queue_pop(s, worker);
}

static inline void store_queue_push(struct store *s, uint16_t worker)
{
    s->ops->queue_push(s, worker);
}

static inline void store_queue_fill(struct store *s, uint16_t from, uint16_t to)
{
    s->ops->queue_fill(s, from, to);
}

static inline void store_queue_remove(struct store *s, const uint8_t named[COORD_WORKERS],
                                      uint16_t from, uint16_t to)
{
    s->ops->queue_remove(s, named, from, to);
}

static inline uint64_t store_queue_count(struct store *s)
{
    return s->ops->queue_count(s);
}

static inline enum store_found store_text_get(struct store *s, const char *key, char *out,
                                              size_t cap)
{
    return s->ops->text_get(s, key, out, cap);
}

static inline void store_text_set(struct store *s, const char *key, const char *text)
{
    s->ops->text_set(s, key, text);
}

static inline void store_text_drop(struct store *s, const char *key)
{
    s->ops->text_drop(s, key);
}

static inline bool store_text_next(struct store *s, const char *prefix, const char *after,
                                   char *key, char *text, size_t cap)
{
    return s->ops->text_next(s, prefix, after, key, text, cap);
}

static inline bool store_next(struct store *s, enum store_list list, struct store_row *row)
{
    return s->ops->next(s, list, row);
}

/* Workers, queue and index of a snapshot. era: the pool's. False: no memory; the store's own
 * failures are commit's to tell. */
bool store_all(struct store *s, int64_t era, struct coord_snapshot *out);

#endif
