/*
 * Random sequences of operations and faults, put to pool.lua in a real Redis, to the SQLite driver
 * and to a toy store whose transactions are often in conflict: every answer must agree field by
 * field. And I1 itself: all ranges of one workerId that holders may have used are pairwise
 * disjoint.
 *
 * SEED=n replays a run, OPS=n sets its length (default 100,000, under sanitizers 40,000).
 *
 * Rounds are of two kinds. A covered one keeps to what the protocol assumes: the coordinator's
 * clock stays within S of a time that never goes back, and every loss or rewind changes the
 * fingerprint. There I1 must hold. A wild one breaks that, and only the answers are compared.
 */
#include "base/int64.h"
#include "support/coord_pair.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The driver's script, in place of the library's: see pair_open. */
extern char pool_lua[];
extern size_t pool_lua_len;
char pool_lua[1 << 16];
size_t pool_lua_len;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEFAULT_OPS 40000
#else
#define DEFAULT_OPS 100000
#endif

#define ROUND_OPS 400
#define HOLDERS   12
#define TENURES   1024
#define MESSAGES  256 /* remembered, to arrive once more or much later */

/* A process that holds, or once held, a workerId. */
struct holder {
    bool alive;
    bool sent; /* a renewal went out, and no answer came */
    uint16_t worker;
    struct coord_token cur, nxt;
    int64_t lo, hi;
    uint64_t n;
    size_t tenure;
};

/* What one holder may have used of its workerId. */
struct tenure {
    uint16_t worker;
    int64_t lo, hi, t0;
};

struct run {
    struct pair pair;
    size_t side; /* enum pair_side, that is held against SQLite's answer */
    uint64_t random;
    uint64_t ops;
    uint64_t count[COORD_DOWN + 1];
    uint64_t hows[COORD_HOW_REASSERTED + 1], released;
    uint64_t tenures_checked, bets, words, fences, opened, gone;
    /* of this round */
    bool covered;
    bool made;
    int64_t truth; /* true time, ms */
    int64_t tmax;  /* latest that the coordinators have seen, or nearly so */
    struct coord_init init;
    char identity[COORD_IDENTITY_MAX]; /* that the holders are pinned to */
    struct holder holder[HOLDERS];
    struct tenure tenure[TENURES];
    size_t tenures;
    struct coord_renewal renewal[MESSAGES];
    struct coord_release release[MESSAGES];
    size_t renewals, releases; /* sent so far; the last MESSAGES are remembered */
};

static struct run run;

/* ---- random ---------------------------------------------------------------------------------- */

/* SplitMix64. */
static uint64_t draw(void)
{
    uint64_t z = run.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t below(int64_t n)
{
    return (int64_t)(draw() % (uint64_t)n);
}

static bool once_in(int64_t n)
{
    return below(n) == 0;
}

static struct coord_token token(void)
{
    struct coord_token t;
    for (size_t i = 0; i < sizeof t.b; i++)
        t.b[i] = (uint8_t)draw();
    return t;
}

/* ---- comparing ------------------------------------------------------------------------------- */

#define SAME(a, b)                                                                                 \
    do {                                                                                           \
        if ((a) != (b))                                                                            \
            differ(op, #a, (int64_t)(a), (int64_t)(b));                                            \
    } while (0)

static const char *const names[] = {"SQLite", "Redis", "the toy"};

static void differ(const char *op, const char *what, int64_t sqlite, int64_t other)
{
    fail_msg("after %" PRIu64 " operations, %s: %s is %" PRId64 " in SQLite, %" PRId64 " in %s",
             run.ops, op, what, sqlite, other, names[run.side]);
}

static void same_reply(const char *op, enum coord_status a, enum coord_status b,
                       const struct coord_reply *x, const struct coord_reply *y)
{
    if (a != b || a == COORD_DOWN)
        fail_msg("after %" PRIu64 " operations, %s: %s in SQLite (%s), %s in %s (%s)", run.ops, op,
                 coord_status_name(a), x->err.text, coord_status_name(b), names[run.side],
                 y->err.text);
    SAME(x->now_ms, y->now_ms);
    SAME(x->era, y->era);
    SAME(x->free, y->free);
    SAME(x->wait_ms, y->wait_ms);
    SAME(x->err.code, y->err.code);
    if (a != COORD_REFUSED)
        assert_string_equal(x->err.text, y->err.text);
}

/* One operation, put to all of them. */
struct asked {
    enum coord_status s[PAIR_SIDES];
    struct coord_reply r[PAIR_SIDES];
};

/* All are asked; c is the side whose turn it is. */
#define ASK(call)                                                                                  \
    for (size_t i = 0; i < PAIR_SIDES; i++) {                                                      \
        struct coord *c = pair_side(&run.pair, i);                                                 \
        q.s[i] = (call);                                                                           \
    }

static enum coord_status same_answers(const char *op, const struct asked *q)
{
    run.ops++;
    run.count[q->s[0]]++;
    run.tmax = max64(run.tmax, run.pair.clock.ms);
    for (run.side = 1; run.side < PAIR_SIDES; run.side++)
        same_reply(op, q->s[0], q->s[run.side], &q->r[0], &q->r[run.side]);
    return q->s[0];
}

static void same_pool(const char *op, const struct coord_pool *x, const struct coord_pool *y)
{
    assert_string_equal(x->identity, y->identity);
    assert_memory_equal(&x->params, &y->params, sizeof x->params);
    SAME(x->born_ms, y->born_ms);
    SAME(x->epoch_ms, y->epoch_ms);
    SAME(x->topen_ms, y->topen_ms);
    SAME(x->floor_ms, y->floor_ms);
    SAME(x->floor_short_ms, y->floor_short_ms);
    SAME(x->tmax_ms, y->tmax_ms);
    SAME(x->closed, y->closed);
    SAME(x->moved, y->moved);
    run.gone += x->moved;
    int64_t p[COORD_LATERS], q[COORD_LATERS];
    memcpy(p, &x->later, sizeof p);
    memcpy(q, &y->later, sizeof q);
    for (size_t i = 0; i < COORD_LATERS; i++)
        if (p[i] != q[i])
            fail_msg("after %" PRIu64 " operations, %s: number %zu of later is %" PRId64
                     " in SQLite, %" PRId64 " in %s",
                     run.ops, op, i, p[i], q[i], names[run.side]);
    SAME(x->held, y->held);
}

static void same_worker(const char *op, const struct coord_worker *x, const struct coord_worker *y)
{
    SAME(x->worker, y->worker);
    SAME(x->held, y->held);
    SAME(x->stale, y->stale);
    SAME(x->unreadable, y->unreadable);
    SAME(x->era, y->era);
    SAME(x->n, y->n);
    SAME(x->hwm_ms, y->hwm_ms);
    SAME(x->t0_ms, y->t0_ms);
    assert_string_equal(x->who ? x->who : "", y->who ? y->who : "");
}

static void same_snapshot(const struct coord_snapshot *x, const struct coord_snapshot *y)
{
    const char *op = "snapshot";
    same_pool(op, &x->pool, &y->pool);
    SAME(x->nworkers, y->nworkers);
    SAME(x->nqueue, y->nqueue);
    SAME(x->nindex, y->nindex);
    for (size_t i = 0; i < x->nworkers; i++)
        same_worker(op, &x->workers[i], &y->workers[i]);
    for (size_t i = 0; i < x->nqueue; i++)
        SAME(x->queue[i], y->queue[i]);
    for (size_t i = 0; i < x->nindex; i++)
        SAME(x->index[i], y->index[i]);
}

/* ---- I1 -------------------------------------------------------------------------------------- */

static void check_disjoint(size_t t)
{
    const struct tenure *a = &run.tenure[t];
    if (!run.covered)
        return;
    run.tenures_checked++;
    for (size_t i = 0; i < run.tenures; i++) {
        const struct tenure *b = &run.tenure[i];
        if (i != t && a->worker == b->worker && a->lo <= b->hi && b->lo <= a->hi)
            fail_msg("after %" PRIu64 " operations: workerId %u was granted %" PRId64 "..%" PRId64
                     " and %" PRId64 "..%" PRId64,
                     run.ops, a->worker, a->lo, a->hi, b->lo, b->hi);
    }
}

static size_t begin_tenure(const struct coord_grant *g)
{
    assert_true(run.tenures < TENURES);
    run.tenure[run.tenures] = (struct tenure){g->worker, g->lo_ms, g->hi_ms, g->t0_ms};
    check_disjoint(run.tenures);
    return run.tenures++;
}

/* ---- operations ------------------------------------------------------------------------------ */

static const char *identity(void)
{
    if (once_in(60))
        return SETUP_IDENTITY_OTHER;
    return once_in(200) ? SETUP_IDENTITY_EPOCH : run.identity;
}

/* The pool may have taken another holder's identity; whoever asks next is told. */
static void learn_identity(enum coord_status s, const struct coord_pool *pool)
{
    if (s == COORD_OK)
        (void)snprintf(run.identity, sizeof run.identity, "%s", pool->identity);
}

static int64_t around(int64_t edge)
{
    return edge + below(5) - 2;
}

static void same_grant(const char *op, const struct coord_grant *a, const struct coord_grant *b)
{
    SAME(a->worker, b->worker);
    SAME(a->lo_ms, b->lo_ms);
    SAME(a->hi_ms, b->hi_ms);
    SAME(a->n, b->n);
    SAME(a->t0_ms, b->t0_ms);
}

static void do_claim(void)
{
    int64_t S = run.init.params.max_skew_ms;
    int64_t skew = once_in(8) ? around(once_in(2) ? S : -S) : below(2 * S + 1) - S;
    int64_t caller = run.pair.clock.ms + skew;
    if (run.tenures && once_in(8)) {
        /* Just before, at, or just after the floor that a tenure may have left behind. */
        int64_t floor = run.tenure[below((int64_t)run.tenures)].hi + below(3) - 1;
        caller = llabs(floor - run.pair.clock.ms) <= S ? floor : caller;
    }
    struct coord_token nxt = token();
    struct coord_grant g[PAIR_SIDES];
    struct asked q;
    const char *id = identity();
    ASK(coord_claim(c, id, caller, nxt, &g[i], &q.r[i]));
    enum coord_status s = same_answers("claim", &q);
    for (run.side = 1; run.side < PAIR_SIDES; run.side++)
        same_grant("claim", &g[0], &g[run.side]);
    if (s != COORD_OK)
        return;
    size_t tenure = begin_tenure(&g[0]);
    struct holder *h = &run.holder[below(HOLDERS)];
    *h = (struct holder){.alive = true,
                         .worker = g[0].worker,
                         .cur = nxt,
                         .lo = g[0].lo_ms,
                         .hi = g[0].hi_ms,
                         .n = g[0].n,
                         .tenure = tenure};
}

/* A renewal is taken whatever the holder's clock shows; at most what it gets depends on it. */
static struct coord_caller renewer(void)
{
    int64_t S = run.init.params.max_skew_ms, T = run.pair.clock.ms;
    int64_t off[] = {
        below(2 * S + 1) - S,
        around(once_in(2) ? S : -S),
        around(-2 * S),
        below(4 * run.init.params.horizon_ms) - 2 * run.init.params.horizon_ms,
    };
    int64_t more = run.covered || !once_in(60) ? 0 : below(2 * run.init.params.horizon_ms);
    return (struct coord_caller){
        .now_ms = T + off[once_in(2) ? 0 : below(4)],
        .ahead_ms = once_in(4) ? 0 : run.init.params.horizon_ms + 2 * S + more,
        .every_ms = below(30000),
    };
}

/* What a sound holder sends; a try that was cut short goes out again with the same next token. */
static struct coord_renewal sound_renewal(struct holder *h)
{
    if (!h->sent)
        h->nxt = token();
    struct coord_renewal r = {
        .worker = h->worker, .cur = h->cur, .nxt = h->nxt, .n = h->n, .hi_ms = h->hi};
    run.renewal[run.renewals++ % MESSAGES] = r;
    return r;
}

static size_t remembered(size_t sent)
{
    return (size_t)below((int64_t)(sent < MESSAGES ? sent : MESSAGES));
}

/* One that was sent before; in a wild round maybe forged. Nobody reads the answer. */
static struct coord_renewal late_renewal(void)
{
    struct coord_renewal r = run.renewal[remembered(run.renewals)];
    if (run.covered)
        return r;
    if (once_in(6))
        r.cur = token();
    if (once_in(6))
        r.nxt = once_in(2) ? r.cur : token();
    if (once_in(6))
        r.worker = (uint16_t)below(10);
    if (once_in(3))
        r.hi_ms = around(run.pair.clock.ms + below(3 * run.init.params.horizon_ms));
    if (once_in(3))
        r.n += (uint64_t)below(3);
    return r;
}

static void renewed(struct holder *h, const struct coord_renewal *r)
{
    if (r->how == COORD_HOW_LOST) {
        h->alive = false;
        return;
    }
    assert_true(r->hi_ms >= h->hi);
    h->cur = r->nxt;
    h->sent = false;
    h->n = r->n;
    h->hi = run.tenure[h->tenure].hi = r->hi_ms;
    check_disjoint(h->tenure);
}

static void same_renewals(const char *op, const struct coord_renewal *a,
                          const struct coord_renewal *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SAME(a[i].hi_ms, b[i].hi_ms);
        SAME(a[i].n, b[i].n);
        SAME(a[i].t0_ms, b[i].t0_ms);
        SAME(a[i].how, b[i].how);
        SAME(a[i].released, b[i].released);
    }
}

static void same_terms(const char *op, const struct coord_terms *p, const struct coord_terms *q)
{
    SAME(p->settle_ms, q->settle_ms);
    SAME(p->worker_from, q->worker_from);
    SAME(p->worker_to, q->worker_to);
    SAME(p->born_ms, q->born_ms);
    SAME(p->ahead_ms, q->ahead_ms);
}

/* Some of the holders, each workerId once; from: who reads the answer, or NULL. */
static size_t some_renewals(struct coord_renewal out[HOLDERS], struct holder *from[HOLDERS])
{
    size_t n = 0;
    for (size_t i = 0; i < HOLDERS; i++) {
        struct holder *h = &run.holder[i];
        bool sound = h->alive && !once_in(6);
        if (once_in(3) || (!sound && (run.renewals == 0 || !once_in(4))))
            continue;
        out[n] = sound ? sound_renewal(h) : late_renewal();
        from[n] = sound ? h : NULL;
        bool twice = false;
        for (size_t k = 0; k < n; k++)
            twice |= out[k].worker == out[n].worker;
        n += !twice;
    }
    return n;
}

static void do_renew(void)
{
    struct coord_renewal asked[HOLDERS], items[PAIR_SIDES][HOLDERS];
    struct coord_terms terms[PAIR_SIDES];
    struct holder *from[HOLDERS];
    struct asked q;
    size_t n = some_renewals(asked, from);
    if (n == 0)
        return;
    const char *id = identity();
    const struct coord_caller by = renewer();
    for (size_t i = 0; i < PAIR_SIDES; i++) {
        memcpy(items[i], asked, sizeof *asked * n);
        q.s[i] = coord_renew(pair_side(&run.pair, i), id, &by, items[i], n, &terms[i], &q.r[i]);
    }
    enum coord_status s = same_answers("renew", &q);
    for (run.side = 1; run.side < PAIR_SIDES; run.side++) {
        same_terms("renew", &terms[0], &terms[run.side]);
        same_renewals("renew", items[0], items[run.side], n);
    }
    bool lost_reply = once_in(10);
    for (size_t i = 0; i < n; i++) {
        const struct coord_renewal *a = &items[0][i];
        run.released += s == COORD_OK && a->released;
        run.hows[a->how] += s == COORD_OK;
        if (from[i] && (s != COORD_OK || lost_reply))
            from[i]->sent = true;
        else if (from[i])
            renewed(from[i], a);
    }
}

/* The holder goes, and says what it used; or does not know it any more. */
static struct coord_release leave(struct holder *h)
{
    int64_t span = h->hi - h->lo + 2;
    struct coord_release r = {
        .worker = h->worker, .cur = h->cur, .nxt = h->sent ? h->nxt : h->cur, .n = h->n};
    r.has_last = !once_in(4);
    r.last_ms = r.has_last ? h->lo - 1 + below(span) : 0;
    if (r.has_last)
        run.tenure[h->tenure].hi = r.last_ms;
    h->alive = false;
    run.release[run.releases++ % MESSAGES] = r;
    return r;
}

static void do_release(void)
{
    struct holder *h = &run.holder[below(HOLDERS)];
    struct asked q;
    struct coord_release r;
    if (h->alive && !once_in(4))
        r = leave(h);
    else if (run.releases > 0)
        r = run.release[remembered(run.releases)];
    else
        return;
    if (!run.covered && once_in(4))
        r.cur = r.nxt = token();
    const char *id = identity();
    ASK(coord_release(c, id, &r, &q.r[i]));
    (void)same_answers("release", &q);
}

static void do_evict(void)
{
    uint16_t w = (uint16_t)below(10);
    struct asked q;
    ASK(coord_evict(c, run.identity, w, &q.r[i]));
    (void)same_answers("evict", &q);
}

static void do_repair(void)
{
    uint16_t w[10];
    size_t n = (size_t)below(11);
    struct asked q;
    for (size_t i = 0; i < n; i++)
        w[i] = (uint16_t)below(10);
    ASK(coord_repair(c, run.identity, w, n, &q.r[i]));
    (void)same_answers("repair", &q);
}

static void do_close(void)
{
    struct asked q;
    bool moved = once_in(4);
    ASK(coord_close(c, run.identity, moved, &q.r[i]));
    (void)same_answers("close", &q);
}

static void do_unclose(void)
{
    struct asked q;
    int64_t reach = coord_reach(&run.init.params), lost_ahead = 0;
    if (once_in(2))
        lost_ahead = once_in(2) ? reach : 2 * reach;
    ASK(coord_unclose(c, run.identity, lost_ahead, &q.r[i]));
    run.opened += same_answers("unclose", &q) == COORD_OK;
}

/* In a covered round nothing is bet: who is not heard would lose. */
static void do_settle(void)
{
    const struct coord_params *k = &run.init.params;
    int64_t ms = run.covered ? k->horizon_ms + below(2) : around(below(2 * k->horizon_ms) + 3);
    struct asked q;
    ASK(coord_settle(c, run.identity, ms, &q.r[i]));
    (void)same_answers("settle", &q);
}

typedef enum coord_status word(struct coord *c, const char *identity, struct coord_reply *r);

/* In a covered round nobody says what is not so. */
static bool is_taken(const char *name, word *say)
{
    struct asked q;
    if (run.covered)
        return false;
    ASK(say(c, run.identity, &q.r[i]));
    enum coord_status s = same_answers(name, &q);
    for (run.side = 1; run.side < PAIR_SIDES; run.side++)
        assert_string_equal(q.r[0].err.text, q.r[run.side].err.text);
    return s == COORD_OK;
}

static void do_nothing_lost(void)
{
    run.words += is_taken("nothing lost", coord_nothing_lost);
}

static void do_clock_was_ahead(void)
{
    run.fences += is_taken("clock was ahead", coord_clock_was_ahead);
}

static void do_describe(void)
{
    struct coord_pool pool[PAIR_SIDES];
    struct asked q;
    ASK(coord_describe(c, &pool[i], &q.r[i]));
    enum coord_status s = same_answers("describe", &q);
    for (run.side = 1; run.side < PAIR_SIDES; run.side++)
        same_pool("describe", &pool[0], &pool[run.side]);
    run.bets += pool[0].later.trust == COORD_TRUST_BET;
    learn_identity(s, &pool[0]);
}

/* TIME cannot be set, so that of a snapshot in Redis is another. */
static void do_snapshot(void)
{
    struct coord_snapshot snap[PAIR_SIDES];
    struct coord_audit audits[PAIR_SIDES];
    struct asked q;
    ASK(coord_snapshot(c, &snap[i], &q.r[i]));
    q.r[PAIR_REDIS].now_ms = q.r[0].now_ms;
    (void)same_answers("snapshot", &q);
    run.bets += snap[0].pool.later.trust == COORD_TRUST_BET;
    memset(audits, 0, sizeof audits);
    uint64_t faults = coord_audit(&snap[0], &audits[0]);
    for (run.side = 1; run.side < PAIR_SIDES; run.side++) {
        same_snapshot(&snap[0], &snap[run.side]);
        assert_int_equal(faults, coord_audit(&snap[run.side], &audits[run.side]));
        assert_memory_equal(audits[0].count, audits[run.side].count, sizeof audits[0].count);
    }
    for (size_t i = 0; i < PAIR_SIDES; i++)
        coord_snapshot_clear(&snap[i]);
}

static void do_init(enum coord_init_mode mode, const char *id)
{
    struct asked q;
    run.init.mode = mode;
    run.init.settle_ms = run.covered || once_in(3) ? 0 : run.init.params.first_horizon_ms;
    run.init.least_ms = once_in(2) ? 0 : run.init.params.first_horizon_ms + 1;
    run.init.identity_said = once_in(2);
    run.init.lost_ahead_ms = once_in(2) ? 0 : 2 * run.init.params.horizon_ms;
    (void)snprintf(run.init.identity, sizeof run.init.identity, "%s", id);
    ASK(coord_init(c, &run.init, &q.r[i]));
    assert_int_equal(same_answers("init", &q), run.made ? COORD_EXISTS : COORD_OK);
    run.made = true;
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* A moment at which one of the rules changes its mind, or one beside it. */
static int64_t edge(void)
{
    const struct coord_params *k = &run.init.params;
    const struct tenure *t = run.tenures ? &run.tenure[below((int64_t)run.tenures)] : NULL;
    const int64_t edges[] = {
        run.tmax + k->mature_after_ms - 2 * k->max_skew_ms, /* the short floor still does */
        run.tmax - 2 * k->max_skew_ms,                      /* the coordinator's clock still goes */
        t ? t->hi + k->grace_ms : 0,                        /* reaped */
        t ? t->t0 + k->mature_after_ms : 0,                 /* mature */
        t ? t->hi - 3 * k->max_skew_ms : 0,                 /* re-asserted, if reopened now */
        t ? t->hi : 0,
        run.tmax + k->first_horizon_ms + 2 * k->max_skew_ms,
        run.tmax + k->horizon_ms + 2 * k->max_skew_ms,
        run.tmax + 4 * COORD_EVERY_MS + 2 * k->max_skew_ms, /* a word is taken */
    };
    return edges[below(sizeof edges / sizeof *edges)] + below(3) - 1;
}

/* Mostly a little; sometimes to an edge, if need be with a reopening there. */
static void pass_time(void)
{
    const struct coord_params *k = &run.init.params;
    int64_t to = once_in(15) ? edge() : 0;
    if (to > run.truth || (!run.covered && to > run.truth - k->horizon_ms)) {
        run.pair.clock.ms = run.truth = to;
        if (once_in(3))
            pair_restart(&run.pair);
    } else {
        run.truth += below(3000);
        run.pair.clock.ms = run.truth + below(k->max_skew_ms + 1) - k->max_skew_ms / 2;
    }
    if (!run.covered && once_in(100))
        run.pair.clock.ms = run.truth += below(4 * k->horizon_ms) - k->horizon_ms;
}

static void lose_all(void)
{
    pair_wipe(&run.pair, false);
    run.made = false;
    if (once_in(2))
        do_describe(); /* NOPOOL */
    bool fresh = !run.covered && once_in(2);
    do_init(fresh ? COORD_INIT_FRESH : COORD_INIT_AFTER_LOSS,
            once_in(2) ? run.identity : SETUP_IDENTITY_OTHER);
}

/* Nobody is heard before it: later somebody has mostly shown that something was lost. */
static void word_in_time(void)
{
    do_nothing_lost(); /* too early, but that it was away is seen by this */
    run.truth = max64(run.truth, run.tmax) + 4 * COORD_EVERY_MS + 2 * run.init.params.max_skew_ms +
                below(3);
    run.pair.clock.ms = run.truth;
    do_nothing_lost();
}

static void fault(void)
{
    size_t slot = (size_t)below(PAIR_BACKUPS);
    switch (below(8)) {
    case 0:
    case 1:
        pair_restart(&run.pair);
        if (!run.covered && !once_in(4))
            word_in_time();
        break;
    case 2:
    case 3:
        pair_backup(&run.pair, slot);
        break;
    case 4:
    case 5:
        if (run.pair.backup[slot])
            pair_restore(&run.pair, slot, !run.covered && once_in(2));
        break;
    case 6:
        pair_double(&run.pair, (uint16_t)below(8));
        if (once_in(3))
            pair_unindex(&run.pair);
        break;
    default:
        if (once_in(4))
            lose_all();
        break;
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void begin_round(void)
{
    struct coord_params *k = &run.init.params;
    pair_wipe(&run.pair, true);
    memset(run.holder, 0, sizeof run.holder);
    run.tenures = run.renewals = run.releases = 0;
    run.made = false;
    run.covered = !once_in(3);
    run.truth = SETUP_T0_MS + below(1000000);
    run.pair.clock.ms = run.tmax = run.truth;
    run.init = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 0);
    k->horizon_ms = 60000 + below(60000);
    k->first_horizon_ms = 16000 + below(10000);
    k->mature_after_ms = 21000 + below(30000);
    k->max_skew_ms = 1 + below(4000);
    k->grace_ms = below(3) * 2500;
    k->worker_from = (uint16_t)below(3);
    k->worker_to = (uint16_t)(k->worker_from + below(8));
    (void)snprintf(run.identity, sizeof run.identity, "%s", SETUP_IDENTITY);
    do_init((enum coord_init_mode)below(3), SETUP_IDENTITY);
}

/* Weights of the operations, of 100. */
static const struct {
    unsigned weight;
    void (*act)(void);
} acts[] = {
    {33, do_claim}, {37, do_renew},       {12, do_release},        {1, do_evict},
    {1, do_repair}, {5, do_snapshot},     {4, do_describe},        {3, fault},
    {1, do_settle}, {1, do_nothing_lost}, {2, do_clock_was_ahead},
};

static void act(void)
{
    unsigned at = (unsigned)below(100);
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        if (at < acts[i].weight) {
            acts[i].act();
            return;
        }
        at -= acts[i].weight;
    }
}

static void all_agree_and_no_range_is_granted_twice(void **state)
{
    (void)state;
    uint64_t seed = setup_wanted("SEED", rng_u64(rng_system()) % 1000000000);
    uint64_t ops = setup_wanted("OPS", DEFAULT_OPS);
    run.random = seed;
    printf("SEED=%" PRIu64 " OPS=%" PRIu64 "\n", seed, ops);
    (void)fflush(stdout);
    toy_of(run.pair.toy)->random = seed;
    while (run.ops < ops) {
        begin_round();
        for (uint64_t end = run.ops + ROUND_OPS; run.ops < end;) {
            if (once_in(2))
                pass_time();
            act();
            if (once_in(1500))
                do_close();
            if (once_in(150))
                do_unclose();
            if (once_in(500))
                do_init(COORD_INIT_FRESH, SETUP_IDENTITY);
        }
    }
    for (size_t i = 0; i <= COORD_DOWN; i++)
        printf("%s %" PRIu64 "  ", coord_status_name((enum coord_status)i), run.count[i]);
    printf("\nlost %" PRIu64 "  renewed %" PRIu64 "  again %" PRIu64 "  reasserted %" PRIu64
           "  released %" PRIu64 "  ranges checked %" PRIu64 "  bets seen %" PRIu64
           "  words taken %" PRIu64 " and %" PRIu64 "  opened %" PRIu64 "  seen as moved %" PRIu64
           "\n",
           run.hows[0], run.hows[1], run.hows[2], run.hows[3], run.released, run.tenures_checked,
           run.bets, run.words, run.fences, run.opened, run.gone);
    uint64_t runs = toy_of(run.pair.toy)->runs;
    printf("the toy: %" PRIu64 " transactions for %" PRIu64 " operations\n", runs, run.ops);
    assert_true(runs > run.ops + run.ops / 4);
    assert_true(ops < 40000 || (run.bets && run.words && run.fences && run.released));
    assert_true(ops < 40000 || (run.opened > 0 && run.gone > 0));
    /* A run that never came near what it is for proves nothing. */
    for (size_t i = 0; ops >= 40000 && i < COORD_REFUSED; i++)
        assert_true(run.count[i] > 0);
    for (size_t i = 0; ops >= 40000 && i <= COORD_HOW_REASSERTED; i++)
        assert_true(run.hows[i] > 0);
}

static int setup(void **state)
{
    (void)state;
    pair_open(&run.pair, pool_lua, sizeof pool_lua, &pool_lua_len);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pair_close(&run.pair);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_agree_and_no_range_is_granted_twice, setup, teardown),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/differential", tests, NULL, NULL);
}
