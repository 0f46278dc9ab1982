#include "support/toy_store.h"

#include "coord/outcome.h"
#include "coord/transact_sequences.h"
#include "support/seeded.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct toy *toy_of(struct coord *c)
{
    return (struct toy *)(void *)c;
}

static struct toy *toy(struct store *s)
{
    return (struct toy *)(void *)((char *)s - offsetof(struct toy, store));
}

/* ---- the transaction ------------------------------------------------------------------------ */

static uint64_t below(struct toy *t, uint64_t n)
{
    struct seeded s = seeded_of(t->random++);
    return rng_below(&s.rng, n);
}

static enum coord_status begin(struct store *s, enum store_access access, int64_t deadline_us,
                               struct coord_reply *r)
{
    struct toy *t = toy(s);
    (void)access, (void)deadline_us, (void)r;
    t->runs++;
    t->failed = false;
    t->doomed = t->conflicts_next > 0 || below(t, 8) < t->conflicts_of_8;
    t->calls_left = t->conflicts_next > 0 ? UINT_MAX : (unsigned)below(t, 16);
    t->conflicts_next -= t->conflicts_next > 0;
    memset(t->walked, 0, sizeof t->walked);
    *t->work = t->state;
    t->clock->ms += t->lock_ms;
    return COORD_OK;
}

/* What the calls below begin with: NULL after a failure. */
static struct toy_state *rows(struct store *s)
{
    struct toy *t = toy(s);
    if (t->doomed && t->calls_left-- == 0)
        t->failed = true;
    return t->failed ? NULL : t->work;
}

static int64_t now(struct store *s)
{
    return toy(s)->clock->ms;
}

static const char *fingerprint(struct store *s)
{
    return toy(s)->fingerprint;
}

static enum coord_status vouch(struct store *s, const struct coord_init *in, struct coord_reply *r)
{
    (void)in;
    return toy(s)->mistrusts ? outcome_refused(r, "somebody may have used it") : COORD_OK;
}

static enum coord_status commit(struct store *s, bool *conflict, struct coord_reply *r)
{
    struct toy *t = toy(s);
    *conflict = t->doomed;
    if (t->doomed)
        return outcome_down(r, ERR_BUSY, "others came first each time");
    if (t->loses)
        return outcome_down(r, ERR_IO, "nobody knows what became of it");
    t->state = *t->work;
    return COORD_OK;
}

static void rollback(struct store *s)
{
    toy(s)->rollbacks++;
}

/* ---- the pool ------------------------------------------------------------------------------- */

static enum store_found pool_get(struct store *s, const char *name, struct store_pool *out)
{
    struct toy_state *w = rows(s);
    bool found = w && w->made && strcmp(w->name, name) == 0;
    memset(out, 0, sizeof *out);
    if (found)
        *out = w->pool;
    return found ? STORE_FOUND : STORE_NONE;
}

static void pool_add(struct store *s, const char *name, const struct store_pool *p)
{
    struct toy_state *w = rows(s);
    if (!w)
        return;
    memset(w, 0, sizeof *w);
    w->made = true;
    w->pool = *p;
    (void)snprintf(w->name, sizeof w->name, "%s", name);
}

static void pool_set(struct store *s, const struct store_pool *p)
{
    struct toy_state *w = rows(s);
    if (w)
        w->pool = *p;
}

/* ---- records -------------------------------------------------------------------------------- */

/* NULL: there is none, or there was a failure. */
static struct toy_row *row_of(struct store *s, uint16_t worker)
{
    struct toy_state *w = rows(s);
    return w && worker < TOY_WORKERS && w->row[worker].there ? &w->row[worker] : NULL;
}

static enum store_found record_get(struct store *s, uint16_t worker, struct store_record *out)
{
    const struct toy_row *row = row_of(s, worker);
    memset(out, 0, sizeof *out);
    if (row)
        *out = row->record;
    return row ? STORE_FOUND : STORE_NONE;
}

static void record_set(struct store *s, const struct store_record *r)
{
    struct toy_state *w = rows(s);
    if (!w)
        return;
    if (r->worker >= TOY_WORKERS)
        abort();
    struct toy_row *row = &w->row[r->worker];
    row->there = true;
    row->record = *r;
    row->due_ms = r->held ? r->hwm_ms : -1;
}

static void due_set(struct store *s, uint16_t worker, int64_t due_ms)
{
    struct toy_row *row = row_of(s, worker);
    if (row)
        row->due_ms = due_ms;
}

/* Whether a comes before b: by due and then as texts, of which "10" is before "9". */
static bool is_before(const struct toy_state *w, uint16_t a, uint16_t b)
{
    char x[8], y[8];
    (void)snprintf(x, sizeof x, "%u", a);
    (void)snprintf(y, sizeof y, "%u", b);
    int64_t d = w->row[a].due_ms, e = w->row[b].due_ms;
    return d != e ? d < e : strcmp(x, y) < 0;
}

static size_t due_list(struct store *s, int64_t limit_ms, uint16_t *out, size_t max)
{
    const struct toy_state *w = rows(s);
    uint16_t all[TOY_WORKERS];
    size_t n = 0;
    for (uint16_t i = 0; w && i < TOY_WORKERS; i++) {
        if (!w->row[i].there || w->row[i].due_ms < 0 || w->row[i].due_ms >= limit_ms)
            continue;
        size_t at = n++;
        for (; at > 0 && is_before(w, i, all[at - 1]); at--)
            all[at] = all[at - 1];
        all[at] = i;
    }
    n = n < max ? n : max;
    memcpy(out, all, n * sizeof *out);
    return n;
}

static uint64_t due_count(struct store *s)
{
    const struct toy_state *w = rows(s);
    uint64_t n = 0;
    for (size_t i = 0; w && i < TOY_WORKERS; i++)
        n += w->row[i].there && w->row[i].due_ms >= 0;
    return n;
}

static void who_set(struct store *s, uint16_t worker, const char *text)
{
    struct toy_row *row = row_of(s, worker);
    if (row)
        (void)snprintf(row->who, sizeof row->who, "%s", text);
}

static bool who_is(struct store *s, uint16_t worker, const char *text)
{
    const struct toy_row *row = row_of(s, worker);
    return row && *row->who && strcmp(row->who, text) == 0;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static bool queue_pop(struct store *s, uint32_t *worker)
{
    struct toy_state *w = rows(s);
    if (!w || w->queued == 0)
        return false;
    *worker = w->queue[0];
    w->queued--;
    memmove(w->queue, w->queue + 1, w->queued * sizeof *w->queue);
    return true;
}

static void queue_push(struct store *s, uint16_t worker)
{
    struct toy_state *w = rows(s);
    if (w && w->queued == TOY_QUEUE)
        abort();
    if (w)
        w->queue[w->queued++] = worker;
}

static void queue_fill(struct store *s, uint16_t from, uint16_t to)
{
    for (uint32_t i = from; i <= to; i++)
        queue_push(s, (uint16_t)i);
}

static void queue_remove(struct store *s, const uint8_t named[COORD_WORKERS], uint16_t from,
                         uint16_t to)
{
    struct toy_state *w = rows(s);
    size_t kept = 0;
    for (size_t i = 0; w && i < w->queued; i++) {
        uint32_t one = w->queue[i];
        if (one >= from && one <= to && !named[one])
            w->queue[kept++] = one;
    }
    if (w)
        w->queued = kept;
}

static uint64_t queue_count(struct store *s)
{
    const struct toy_state *w = rows(s);
    toy(s)->counted++;
    return w ? w->queued : 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static bool next(struct store *s, enum store_list list, struct store_row *row)
{
    const struct toy_state *w = rows(s);
    size_t *at = &toy(s)->walked[list];
    if (!w)
        return false;
    row->who[0] = '\0';
    if (list == STORE_ALL_QUEUE) {
        if (*at == w->queued)
            return false;
        row->worker = w->queue[(*at)++];
        return true;
    }
    while (*at < TOY_WORKERS &&
           !(w->row[*at].there && (list == STORE_ALL_RECORDS || w->row[*at].due_ms >= 0)))
        ++*at;
    if (*at == TOY_WORKERS)
        return false;
    row->worker = (uint32_t)*at;
    row->found = STORE_FOUND;
    row->record = w->row[*at].record;
    memcpy(row->who, w->row[*at].who, sizeof row->who);
    ++*at;
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The first place whose key is not before this one. */
static size_t place_of(const struct toy_state *w, const char *key)
{
    size_t i = 0;
    while (i < w->texts && strcmp(w->text[i].key, key) < 0)
        i++;
    return i;
}

static bool is_at(const struct toy_state *w, size_t i, const char *key)
{
    return i < w->texts && strcmp(w->text[i].key, key) == 0;
}

static enum store_found text_get(struct store *s, const char *key, char *out, size_t cap)
{
    const struct toy_state *w = rows(s);
    size_t i = w ? place_of(w, key) : 0;
    bool found = w && is_at(w, i, key);
    (void)snprintf(out, cap, "%s", found ? w->text[i].value : "");
    return found ? STORE_FOUND : STORE_NONE;
}

static void text_set(struct store *s, const char *key, const char *text)
{
    struct toy_state *w = rows(s);
    if (!w)
        return;
    size_t i = place_of(w, key);
    if (!is_at(w, i, key)) {
        if (w->texts == TOY_TEXTS || strlen(key) >= sizeof w->text->key)
            abort();
        memmove(w->text + i + 1, w->text + i, (w->texts - i) * sizeof *w->text);
        w->texts++;
    }
    (void)snprintf(w->text[i].key, sizeof w->text->key, "%s", key);
    (void)snprintf(w->text[i].value, sizeof w->text->value, "%s", text);
}

static void text_drop(struct store *s, const char *key)
{
    struct toy_state *w = rows(s);
    size_t i = w ? place_of(w, key) : 0;
    if (!w || !is_at(w, i, key))
        return;
    w->texts--;
    memmove(w->text + i, w->text + i + 1, (w->texts - i) * sizeof *w->text);
}

static bool text_next(struct store *s, const char *prefix, const char *after, char *key, char *text,
                      size_t cap)
{
    const struct toy_state *w = rows(s);
    size_t i = w ? place_of(w, prefix) : 0;
    while (w && i < w->texts && strcmp(w->text[i].key, after) <= 0)
        i++;
    if (!w || i == w->texts || strncmp(w->text[i].key, prefix, strlen(prefix)) != 0)
        return false;
    (void)snprintf(key, STORE_KEY_MAX, "%s", w->text[i].key);
    (void)snprintf(text, cap, "%s", w->text[i].value);
    return true;
}

/* ---- the tables ----------------------------------------------------------------------------- */

static const struct store_ops ops = {
    .begin = begin,
    .now = now,
    .fingerprint = fingerprint,
    .vouch = vouch,
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
    .forgets = true,
    .text_get = text_get,
    .text_set = text_set,
    .text_drop = text_drop,
    .text_next = text_next,
    .next = next,
};

static void toy_free(struct coord *c)
{
    free(toy_of(c)->work);
    free(c);
}

static const char *const schemes[] = {"toy", NULL};

static const struct coord_driver driver = {
    .schemes = schemes,
    .free = toy_free,
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
    .snapshot = transact_snapshot,
    .sequences = &transact_sequences,
};

struct coord *toy_open(const char *pool, struct setup_clock *clock)
{
    struct toy *t = calloc(1, sizeof *t);
    const struct coord_options o = {
        .pool = span_str(pool),
        .who = SPAN(SETUP_WHO),
        .timeout_us = 2000000,
        .clock = &clock->clock,
    };
    if (!t || !(t->work = calloc(1, sizeof *t->work)))
        abort();
    t->store.ops = &ops;
    t->clock = clock;
    (void)snprintf(t->fingerprint, sizeof t->fingerprint, "toy");
    transact_init(&t->transact, &driver, &t->store, &o);
    return &t->transact.base;
}

/* ---- damage --------------------------------------------------------------------------------- */

void toy_double(struct coord *c, uint16_t worker)
{
    struct toy_state *state = &toy_of(c)->state;
    if (state->queued == TOY_QUEUE)
        abort();
    if (state->made)
        state->queue[state->queued++] = worker;
}

void toy_unindex(struct coord *c)
{
    for (size_t i = 0; i < TOY_WORKERS; i++)
        toy_of(c)->state.row[i].due_ms = -1;
}
