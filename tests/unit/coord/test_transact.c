/*
 * Runs of the rules within transactions, and once more after a conflict, over a toy store. What the
 * rules say is test_differential's, which has the toy, too.
 */
#include "support/coord_says.h"
#include "support/seeded.h"
#include "support/toy_store.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define S  coord_params_default.max_skew_ms
#define A0 coord_params_default.first_horizon_ms

struct fixture {
    struct setup_clock clock;
    struct coord *c;
    struct toy *toy;
    struct coord_reply r;
};

static enum coord_status make(struct fixture *f, uint16_t to)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, to);
    return coord_init(f->c, &in, &f->r);
}

static int setup(void **state)
{
    static struct fixture f;
    setup_clock_init(&f.clock, SETUP_T0_MS);
    f.c = toy_open("p", &f.clock);
    f.toy = toy_of(f.c);
    *state = &f;
    return make(&f, 3) == COORD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    coord_free(((struct fixture *)*state)->c);
    return 0;
}

static enum coord_status claim(struct fixture *f, int64_t caller_ms, struct coord_grant *g)
{
    return coord_claim(f->c, SETUP_IDENTITY, caller_ms, setup_token(1), g, &f->r);
}

/* ---- one rule each --------------------------------------------------------------------------- */

/* Its items have an n that is one more after the first run: no proof that the table was rewound. */
static void a_run_judges_what_the_caller_gave(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    assert_int_equal(claim(f, f->clock.ms, &g), COORD_OK);
    struct coord_renewal item = setup_renewal(&g, 1, 2);
    f->toy->conflicts_next = 2;
    f->toy->runs = 0;
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_caller(f->clock.ms), &item, 1,
                                 setup_terms(), &f->r),
                     COORD_OK);
    assert_int_equal(f->toy->runs, 3);
    assert_int_equal(item.how, COORD_HOW_RENEWED);
    assert_int_equal(item.n, g.n + 1);
    assert_int_equal(f->r.era, 1);
    assert_int_equal(f->toy->state.pool.p.floor_ms, 0);
}

static void each_run_has_the_time_behind_its_lock(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    int64_t start = f->clock.ms;
    f->toy->lock_ms = 700;
    assert_int_equal(claim(f, start, &g), COORD_OK);
    assert_int_equal(f->r.now_ms, start + 700);
    assert_int_equal(g.t0_ms, start + 700);
    f->toy->conflicts_next = 2;
    assert_int_equal(claim(f, start + 700, &g), COORD_SKEW); /* 2,100 ms apart by then */
    assert_int_equal(f->r.now_ms, start + 2800);
    f->toy->conflicts_next = 2;
    assert_int_equal(claim(f, start + 4900 - S, &g), COORD_OK);
    assert_int_equal(f->r.now_ms, start + 4900);
    assert_int_equal(g.hi_ms, start + 4900 + A0);
}

/* The first run grants, the second refuses. */
static void what_an_earlier_run_found_is_forgotten(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    f->toy->lock_ms = S;
    f->toy->conflicts_next = 1;
    assert_int_equal(claim(f, f->clock.ms, &g), COORD_SKEW);
    assert_int_equal(g.hi_ms, 0);
    assert_int_equal(f->r.era, 0);
    assert_int_equal(f->r.free, 0);
    assert_int_equal(f->toy->state.queued, 4);
}

/* Asked of the driver itself, since the wrappers put back what an answer other than OK must not
 * have. */
static void nothing_is_told_before_the_commit(void **state)
{
    struct fixture *f = *state;
    const struct coord_driver *d = f->c->driver;
    struct coord_grant g, other = {.worker = 77};
    struct coord_terms terms = {.born_ms = 5};
    struct coord_pool pool = {.tmax_ms = 9};
    struct coord_snapshot snap = {.nworkers = 0};
    assert_int_equal(claim(f, f->clock.ms, &g), COORD_OK);
    struct coord_renewal item = setup_renewal(&g, 1, 2);
    f->toy->loses = true;
    memset(&f->r, 0, sizeof f->r);
    assert_int_equal(d->renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, &terms, &f->r),
                     COORD_DOWN);
    assert_true(item.n == g.n && item.hi_ms == g.hi_ms && terms.born_ms == 5);
    assert_int_equal(f->r.era, 0);
    assert_int_equal(f->r.now_ms, f->clock.ms);
    coord_says(&f->r, "nobody knows what became of it");
    assert_int_equal(d->claim(f->c, SETUP_IDENTITY, f->clock.ms, setup_token(3), &other, &f->r),
                     COORD_DOWN);
    assert_int_equal(other.worker, 77);
    assert_int_equal(d->describe(f->c, &pool, &f->r), COORD_DOWN);
    assert_int_equal(pool.tmax_ms, 9);
    assert_int_equal(d->snapshot(f->c, &snap, &f->r), COORD_DOWN);
    assert_null(snap.workers);
}

static void without_luck_a_call_ends_in_time(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    f->toy->conflicts_of_8 = 8;
    f->toy->transact.timeout_us = 2000;
    f->toy->runs = 0;
    assert_int_equal(claim(f, f->clock.ms, &g), COORD_DOWN);
    coord_says(&f->r, "others came first each time");
    assert_true(f->toy->runs > 0);
    assert_int_equal(f->toy->state.queued, 4);
}

static void a_pool_that_nobody_vouches_for_is_not_made(void **state)
{
    struct fixture *f = *state;
    f->toy->mistrusts = true;
    assert_int_equal(make(f, 3), COORD_EXISTS); /* which says more */
    f->toy->state.made = false;
    f->toy->runs = 0;
    assert_int_equal(make(f, 3), COORD_REFUSED);
    coord_says(&f->r, "somebody may have used it");
    assert_int_equal(f->toy->runs, 1);
    assert_int_equal(f->toy->rollbacks, 1);
    assert_false(f->toy->state.made);
}

/* ---- with conflicts and without: the same ---------------------------------------------------- */

#define OPS    30000
#define MEMORY 24 /* renewals that may come again */

struct twins {
    struct setup_clock clock;
    struct coord *c[2]; /* the second has conflicts */
    struct seeded random;
    struct coord_renewal sent[MEMORY];
    struct coord_reply r[2];
    uint64_t ok;
};

static int64_t upto(struct twins *t, int64_t max)
{
    return seeded_in(&t->random, 0, max);
}

static void same_answer(struct twins *t, enum coord_status a, enum coord_status b)
{
    assert_int_equal(a, b);
    assert_int_equal(t->r[0].now_ms, t->r[1].now_ms);
    assert_int_equal(t->r[0].era, t->r[1].era);
    assert_int_equal(t->r[0].free, t->r[1].free);
    assert_int_equal(t->r[0].wait_ms, t->r[1].wait_ms);
    assert_string_equal(t->r[0].err.text, t->r[1].err.text);
    t->ok += a == COORD_OK;
}

static void same_row(const struct toy_row *x, const struct toy_row *y)
{
    const struct store_record *a = &x->record, *b = &y->record;
    assert_int_equal(x->there, y->there);
    assert_int_equal(x->due_ms, y->due_ms);
    assert_string_equal(x->who, y->who);
    assert_int_equal(a->held, b->held);
    assert_true(!a->held || coord_token_equal(a->token, b->token));
    assert_int_equal(a->era, b->era);
    assert_int_equal(a->hwm_ms, b->hwm_ms);
    assert_int_equal(a->t0_ms, b->t0_ms);
    assert_int_equal(a->n, b->n);
}

static void same_rows(const struct toy_state *x, const struct toy_state *y)
{
    const struct coord_pool *p = &x->pool.p, *q = &y->pool.p;
    assert_string_equal(p->identity, q->identity);
    assert_string_equal(x->pool.fingerprint, y->pool.fingerprint);
    assert_int_equal(x->pool.era, y->pool.era);
    assert_int_equal(x->pool.adopt, y->pool.adopt);
    assert_memory_equal(&p->params, &q->params, sizeof p->params);
    assert_memory_equal(&p->later, &q->later, sizeof p->later);
    assert_int_equal(p->topen_ms, q->topen_ms);
    assert_int_equal(p->floor_ms, q->floor_ms);
    assert_int_equal(p->floor_short_ms, q->floor_short_ms);
    assert_int_equal(p->tmax_ms, q->tmax_ms);
    assert_int_equal(p->closed, q->closed);
    for (size_t i = 0; i < TOY_WORKERS; i++)
        same_row(&x->row[i], &y->row[i]);
    assert_int_equal(x->queued, y->queued);
    assert_memory_equal(x->queue, y->queue, x->queued * sizeof *x->queue);
}

static void both_make(struct twins *t)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, (uint16_t)upto(t, 11));
    enum coord_status s[2];
    in.settle_ms = upto(t, 1) ? 0 : in.params.first_horizon_ms;
    for (size_t i = 0; i < 2; i++)
        s[i] = coord_init(t->c[i], &in, &t->r[i]);
    same_answer(t, s[0], s[1]);
}

static void both_claim(struct twins *t)
{
    struct coord_grant g[2];
    enum coord_status s[2];
    struct coord_token token = coord_token_new(&t->random.rng);
    int64_t caller = t->clock.ms + upto(t, 2 * S + 100) - S;
    for (size_t i = 0; i < 2; i++)
        s[i] = coord_claim(t->c[i], SETUP_IDENTITY, caller, token, &g[i], &t->r[i]);
    same_answer(t, s[0], s[1]);
    assert_true(g[0].worker == g[1].worker && g[0].lo_ms == g[1].lo_ms);
    assert_true(g[0].hi_ms == g[1].hi_ms && g[0].n == g[1].n && g[0].t0_ms == g[1].t0_ms);
    if (s[0] == COORD_OK)
        t->sent[upto(t, MEMORY - 1)] = (struct coord_renewal){
            .worker = g[0].worker, .cur = token, .n = g[0].n, .hi_ms = g[0].hi_ms};
}

/* Of up to three holders, who know of the latest renewal or do not. */
static void both_renew(struct twins *t)
{
    struct coord_renewal *from[3], items[2][3];
    enum coord_status s[2];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        from[n] = &t->sent[upto(t, MEMORY - 1)];
        if (upto(t, 3) > 0)
            from[n]->nxt = coord_token_new(&t->random.rng);
        bool twice = from[n]->hi_ms == 0;
        for (size_t k = 0; k < n; k++)
            twice |= from[k]->worker == from[n]->worker;
        n += !twice;
    }
    if (n == 0)
        return;
    const struct coord_caller by = {.now_ms = t->clock.ms + upto(t, 2 * S) - S};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < n; k++)
            items[i][k] = *from[k];
        s[i] = coord_renew(t->c[i], SETUP_IDENTITY, &by, items[i], n, setup_terms(), &t->r[i]);
    }
    same_answer(t, s[0], s[1]);
    for (size_t k = 0; k < n; k++) {
        const struct coord_renewal *a = &items[0][k], *b = &items[1][k];
        assert_true(a->how == b->how && a->hi_ms == b->hi_ms && a->n == b->n);
        assert_true(a->t0_ms == b->t0_ms && a->released == b->released);
        if (s[0] != COORD_OK || a->how == COORD_HOW_LOST || upto(t, 5) == 0)
            continue;
        *from[k] = *a;
        from[k]->cur = a->nxt;
    }
}

static void both_release(struct twins *t)
{
    const struct coord_renewal *known = &t->sent[upto(t, MEMORY - 1)];
    const struct coord_release item = {.worker = known->worker,
                                       .cur = known->cur,
                                       .nxt = known->nxt,
                                       .n = known->n,
                                       .has_last = upto(t, 2) > 0,
                                       .last_ms = known->hi_ms};
    enum coord_status s[2];
    for (size_t i = 0; i < 2; i++)
        s[i] = coord_release(t->c[i], SETUP_IDENTITY, &item, &t->r[i]);
    same_answer(t, s[0], s[1]);
}

/* What operators do. */
static void both_operate(struct twins *t)
{
    int64_t what = upto(t, 3);
    uint16_t worker = (uint16_t)upto(t, 11);
    enum coord_status s[2];
    for (size_t i = 0; i < 2; i++) {
        struct coord *c = t->c[i];
        struct coord_reply *r = &t->r[i];
        s[i] = what == 0   ? coord_evict(c, SETUP_IDENTITY, worker, r)
               : what == 1 ? coord_repair(c, SETUP_IDENTITY, &worker, 1, r)
               : what == 2 ? coord_settle(c, SETUP_IDENTITY, A0 * (worker + 1), r)
                           : coord_nothing_lost(c, SETUP_IDENTITY, r);
    }
    same_answer(t, s[0], s[1]);
}

static void both_look(struct twins *t)
{
    struct coord_snapshot snap[2];
    enum coord_status s[2];
    for (size_t i = 0; i < 2; i++)
        s[i] = coord_snapshot(t->c[i], &snap[i], &t->r[i]);
    same_answer(t, s[0], s[1]);
    assert_int_equal(snap[0].nworkers, snap[1].nworkers);
    assert_int_equal(snap[0].nqueue, snap[1].nqueue);
    assert_int_equal(snap[0].nindex, snap[1].nindex);
    for (size_t i = 0; i < 2; i++)
        coord_snapshot_clear(&snap[i]);
}

/* Time passes; the store may be another one than before. */
static void both_change(struct twins *t)
{
    t->clock.ms += upto(t, 3) > 0 ? upto(t, 3000) : upto(t, 2 * A0);
    if (upto(t, 60) > 0)
        return;
    int64_t name = upto(t, 1000);
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(toy_of(t->c[i])->fingerprint, STORE_FINGERPRINT_MAX, "toy %" PRId64, name);
}

static void conflicts_change_neither_answers_nor_rows(void **state)
{
    static void (*const acts[])(struct twins *) = {
        both_claim,   both_claim,   both_renew, both_renew,  both_renew,  both_renew,
        both_release, both_operate, both_look,  both_change, both_change, both_change,
    };
    const char *given = getenv("SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : rng_u64(rng_system()) % 1000000000;
    static struct twins t;
    (void)state;
    printf("SEED=%" PRIu64 "\n", seed);
    t.random = seeded_of(seed);
    setup_clock_init(&t.clock, SETUP_T0_MS);
    for (size_t i = 0; i < 2; i++)
        t.c[i] = toy_open("p", &t.clock);
    toy_of(t.c[1])->conflicts_of_8 = 4;
    toy_of(t.c[1])->random = seed;
    for (size_t i = 0; i < OPS; i++) {
        if (i % 300 == 0) {
            toy_of(t.c[0])->state.made = toy_of(t.c[1])->state.made = false;
            both_make(&t);
        }
        acts[upto(&t, sizeof acts / sizeof *acts - 1)](&t);
        same_rows(&toy_of(t.c[0])->state, &toy_of(t.c[1])->state);
    }
    assert_true(t.ok > OPS / 5);
    assert_true(toy_of(t.c[1])->runs > toy_of(t.c[0])->runs * 3 / 2);
    for (size_t i = 0; i < 2; i++)
        coord_free(t.c[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_judges_what_the_caller_gave),
        TEST(each_run_has_the_time_behind_its_lock),
        TEST(what_an_earlier_run_found_is_forgotten),
        TEST(nothing_is_told_before_the_commit),
        TEST(without_luck_a_call_ends_in_time),
        TEST(a_pool_that_nobody_vouches_for_is_not_made),
        cmocka_unit_test(conflicts_change_neither_answers_nor_rows),
    };
    return cmocka_run_group_tests_name("coord/transact", tests, NULL, NULL);
}
