#include "coord/answer.h"

#include "base/dec.h"
#include "coord/outcome.h"

#include <inttypes.h>

#define AHEAD_MAX_MS (INT64_C(25) * 3600 * 1000) /* the header says why */

/* What a status carries beside its name and T, and what is made of it. */
enum shape {
    SHAPE_POOL,    /* era, length of the queue, replicas, and the operation's own fields */
    SHAPE_BARE,    /* nothing */
    SHAPE_TEXT,    /* one text */
    SHAPE_TIME,    /* one time */
    SHAPE_TIMES,   /* two */
    SHAPE_CONFIRM, /* nonce, replicas: never an answer to an operation */
};

static const struct word {
    const char *word;
    enum coord_status status;
    enum shape shape;
} words[] = {
    {"OK", COORD_OK, SHAPE_POOL},
    {"WAIT", COORD_WAIT, SHAPE_POOL},
    {"EXHAUSTED", COORD_EXHAUSTED, SHAPE_POOL},
    {"LOST", COORD_LOST, SHAPE_POOL},
    {"CLOSED", COORD_CLOSED, SHAPE_POOL},
    {"NOPOOL", COORD_NOPOOL, SHAPE_BARE},
    {"EXISTS", COORD_EXISTS, SHAPE_BARE},
    {"WRONGPOOL", COORD_WRONGPOOL, SHAPE_TEXT},
    {"REDISCLOCK", COORD_BADCLOCK, SHAPE_TIME},
    {"SKEW", COORD_SKEW, SHAPE_TIMES},
    {"GONE", COORD_REFUSED, SHAPE_BARE},
    {"EARLY", COORD_REFUSED, SHAPE_TIME},
    {"MORE", COORD_REFUSED, SHAPE_TIME},
    {"NONE", COORD_REFUSED, SHAPE_TIME},
    {"NOTAHEAD", COORD_REFUSED, SHAPE_BARE},
    {"CONFIRM", COORD_REFUSED, SHAPE_CONFIRM},
    {"NOINFO", COORD_REFUSED, SHAPE_TEXT},
    {"REPLICAS", COORD_REFUSED, SHAPE_TEXT},
    {"REPLICA", COORD_DOWN, SHAPE_TEXT},
    {"CORRUPT", COORD_REFUSED, SHAPE_TEXT},
    {"BADOP", COORD_REFUSED, SHAPE_TEXT},
};

static const size_t fields_of[] = {
    [SHAPE_POOL] = ANSWER_HEAD, [SHAPE_BARE] = 2,  [SHAPE_TEXT] = 3,
    [SHAPE_TIME] = 3,           [SHAPE_TIMES] = 4, [SHAPE_CONFIRM] = 4,
};

bool answer_number(struct span s, int64_t *out)
{
    int64_t v;
    if (!dec_canonical_i64(s, &v) || v < 0 || v > COORD_NUMBER_MAX)
        return false;
    *out = v;
    return true;
}

static enum coord_status odd_count(const struct answer *a, size_t expected, struct coord_reply *r)
{
    return outcome_refused(r, "answer of the script: expected %zu fields, found %zu", expected,
                           a->n);
}

/* A field that is wrong; the found text is cut, for it may be of any length. */
static enum coord_status odd(const struct answer *a, size_t i, const char *expected,
                             struct coord_reply *r)
{
    struct span s = i < a->n ? a->f[i] : (struct span){NULL, 0};
    return outcome_refused(r, "answer of the script, field %zu: expected %s, found \"%.*s\"", i,
                           expected, (int)(s.n < 48 ? s.n : 48), s.n ? s.p : "");
}

/* Numbers from field i on into out[0..n-1]; false (and r->err) at the first that is none. */
static bool numbers(const struct answer *a, size_t i, int64_t *out, size_t n, struct coord_reply *r)
{
    for (size_t k = 0; k < n; k++) {
        if (i + k >= a->n || !answer_number(a->f[i + k], &out[k])) {
            (void)odd(a, i + k, "a decimal number", r);
            return false;
        }
    }
    return true;
}

static const struct word *word_of(struct span s)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (span_eq(s, span_str(words[i].word)))
            return &words[i];
    }
    return NULL;
}

static enum coord_status without_pool(const struct answer *a, const struct word *w,
                                      const struct answer_to *to, struct coord_reply *r)
{
    int64_t t[2] = {0, 0};
    if (a->n != fields_of[w->shape])
        return odd_count(a, fields_of[w->shape], r);
    if ((w->shape == SHAPE_TIME || w->shape == SHAPE_TIMES) && !numbers(a, 2, t, a->n - 2, r))
        return COORD_REFUSED;
    switch (w->status) {
    case COORD_NOPOOL:
        return outcome_nopool(r, to->pool);
    case COORD_EXISTS:
        return outcome_exists(r, to->pool);
    case COORD_WRONGPOOL:
        return outcome_wrongpool(r, to->identity ? to->identity : "any", a->f[2]);
    case COORD_BADCLOCK:
        return outcome_badclock(r, t[0]);
    case COORD_SKEW:
        return outcome_skew(r, t[0], t[1]);
    default:
        break;
    }
    if (w->shape == SHAPE_CONFIRM)
        return odd(a, 0, "another answer than a second CONFIRM", r);
    if (span_eq(a->f[0], SPAN("GONE")))
        return outcome_gone(r);
    if (span_eq(a->f[0], SPAN("EARLY")))
        return outcome_early(r, t[0]);
    if (span_eq(a->f[0], SPAN("MORE")))
        return outcome_more(r, t[0]);
    if (span_eq(a->f[0], SPAN("NONE")))
        return outcome_none(r, t[0]);
    if (span_eq(a->f[0], SPAN("NOTAHEAD")))
        return outcome_not_ahead(r);
    if (span_eq(a->f[0], SPAN("REPLICAS")))
        return outcome_refused(
            r,
            "init: expected --replicas to be said of a server with %.*s of them: "
            "half of all nodes, rounded down, so that no failover repeats an ID; "
            "or 0, so that one may repeat IDs",
            (int)(a->f[2].n < 20 ? a->f[2].n : 20), a->f[2].p);
    if (w->status == COORD_DOWN)
        return outcome_down(r, ERR_BUSY,
                            "the server: expected a master, found a replica of %.*s: claims and "
                            "renewals need the master",
                            (int)(a->f[2].n < 160 ? a->f[2].n : 160), a->f[2].p);
    if (span_eq(a->f[0], SPAN("NOINFO")))
        return outcome_refused(r,
                               "INFO, asked by a script: expected run_id and master_replid, by "
                               "which a server that restarted or failed over is known, found: %.*s",
                               (int)(a->f[2].n < 160 ? a->f[2].n : 160), a->f[2].p);
    return odd(a, 2,
               span_eq(a->f[0], SPAN("CORRUPT")) ? "a sound field of the pool" : "an operation", r);
}

/* Reads the head. COORD_OK, _WAIT, _EXHAUSTED, _LOST: the operation's fields begin at ANSWER_HEAD.
 */
static enum coord_status head(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r)
{
    int64_t v[3]; /* era, length of the queue, K */
    const struct word *w = a->n > 0 ? word_of(a->f[0]) : NULL;
    if (!w)
        return odd(a, 0, "a status", r);
    if (!numbers(a, 1, v, 1, r))
        return COORD_REFUSED;
    r->now_ms = v[0];
    if (w->shape != SHAPE_POOL)
        return without_pool(a, w, to, r);
    if (!numbers(a, 2, v, 3, r))
        return COORD_REFUSED;
    if (v[0] == 0)
        return odd(a, 2, "an era of 1 or more", r);
    r->era = (uint64_t)v[0];
    r->free = (uint64_t)v[1];
    return w->status == COORD_CLOSED ? outcome_closed(r, to->pool) : w->status;
}

enum coord_status answer_head(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r)
{
    return head(a, to, r);
}

enum coord_status answer_odd(const struct answer *a, size_t i, const char *expected,
                             struct coord_reply *r)
{
    return odd(a, i, expected, r);
}

enum coord_status answer_plain(const struct answer *a, const struct answer_to *to,
                               struct coord_reply *r)
{
    enum coord_status s = head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK && s != COORD_LOST)
        return odd(a, 0, "OK or LOST", r);
    return a->n == ANSWER_HEAD ? s : odd_count(a, ANSWER_HEAD, r);
}

enum coord_status answer_init(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r)
{
    enum coord_status s = head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK)
        return odd(a, 0, "OK or EXISTS", r);
    return a->n == ANSWER_HEAD ? s : odd_count(a, ANSWER_HEAD, r);
}

enum coord_status answer_terms(const struct answer *a, struct answer_terms *out,
                               struct coord_reply *r)
{
    int64_t acks;
    const struct word *w = a->n > 0 ? word_of(a->f[0]) : NULL;
    bool confirm = w && w->shape == SHAPE_CONFIRM;
    *out = (struct answer_terms){0};
    if (!w || (!confirm && w->shape != SHAPE_POOL))
        return COORD_OK;
    size_t at = confirm ? 3 : ANSWER_HEAD - 1;
    if (!numbers(a, at, &acks, 1, r))
        return COORD_REFUSED;
    if (acks > COORD_REPLICAS_MAX || (confirm && acks == 0))
        return odd(a, at, "1 to 100 replicas", r);
    if (confirm && (a->f[2].n == 0 || a->f[2].n > ANSWER_NONCE_MAX))
        return odd(a, 2, "a nonce", r);
    out->acks = (uint32_t)acks;
    if (confirm)
        out->nonce = a->f[2];
    return COORD_OK;
}

enum {
    D_TOPEN,
    D_FL,
    D_FS,
    D_TMAX,
    D_CLOSED,
    D_A,
    D_A0,
    D_D0,
    D_S,
    D_G,
    D_K,
    D_FROM,
    D_TO,
    D_BORN,
    D_LATER,
    D_HELD = D_LATER + COORD_LATERS,
    D_REPLICAS,
    D_UNMET,
    D_COUNT
};

static enum coord_status pool_from(const struct answer *a, const int64_t *v,
                                   struct coord_pool *pool, struct coord_reply *r)
{
    struct span id = a->f[ANSWER_HEAD];
    if (id.n >= sizeof pool->identity)
        return odd(a, ANSWER_HEAD, "an identity", r);
    memcpy(pool->identity, id.p, id.n);
    pool->identity[id.n] = '\0';
    if (v[D_FROM] >= COORD_WORKERS || v[D_TO] >= COORD_WORKERS || v[D_K] > UINT16_MAX)
        return odd(a, ANSWER_HEAD + 1 + D_TO, "workerIds of 15 bits", r);
    pool->params = (struct coord_params){
        .horizon_ms = v[D_A],
        .first_horizon_ms = v[D_A0],
        .mature_after_ms = v[D_D0],
        .max_skew_ms = v[D_S],
        .grace_ms = v[D_G],
        .replicas = (uint32_t)v[D_K],
        .worker_from = (uint16_t)v[D_FROM],
        .worker_to = (uint16_t)v[D_TO],
    };
    pool->born_ms = v[D_BORN];
    pool->topen_ms = v[D_TOPEN];
    pool->floor_ms = v[D_FL];
    pool->floor_short_ms = v[D_FS];
    pool->tmax_ms = v[D_TMAX];
    pool->closed = v[D_CLOSED] != 0;
    pool->moved = v[D_CLOSED] == COORD_CLOSED_MOVED;
    memcpy(&pool->later, &v[D_LATER], sizeof pool->later);
    pool->held = (uint64_t)v[D_HELD];
    pool->replicas = (uint64_t)v[D_REPLICAS];
    pool->unmet_ms = v[D_UNMET];
    return outcome_of_pool(pool, r);
}

enum coord_status answer_describe(const struct answer *a, const struct answer_to *to,
                                  struct coord_pool *pool, struct coord_reply *r)
{
    int64_t v[D_COUNT];
    enum coord_status s = head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK)
        return odd(a, 0, "OK", r);
    if (a->n != ANSWER_HEAD + 1 + D_COUNT)
        return odd_count(a, ANSWER_HEAD + 1 + D_COUNT, r);
    return numbers(a, ANSWER_HEAD + 1, v, D_COUNT, r) ? pool_from(a, v, pool, r) : COORD_REFUSED;
}

enum {
    C_WORKER,
    C_LO,
    C_HI,
    C_N,
    C_T0,
    C_COUNT
};

static enum coord_status granted(const struct answer *a, int64_t caller_ms, struct coord_grant *out,
                                 struct coord_reply *r)
{
    int64_t v[C_COUNT];
    if (a->n != ANSWER_HEAD + C_COUNT)
        return odd_count(a, ANSWER_HEAD + C_COUNT, r);
    if (!numbers(a, ANSWER_HEAD, v, C_COUNT, r))
        return COORD_REFUSED;
    if (v[C_WORKER] >= COORD_WORKERS)
        return odd(a, ANSWER_HEAD + C_WORKER, "a workerId of 15 bits", r);
    if (v[C_LO] < 1 || v[C_LO] > caller_ms)
        return odd(a, ANSWER_HEAD + C_LO, "a floor at or below the caller's clock", r);
    if (v[C_HI] < v[C_LO] || v[C_HI] - r->now_ms > AHEAD_MAX_MS)
        return odd(a, ANSWER_HEAD + C_HI, "a ceiling above the floor and at most 25 h ahead", r);
    if (v[C_N] < 1)
        return odd(a, ANSWER_HEAD + C_N, "a count of changes of 1 or more", r);
    *out = (struct coord_grant){
        .worker = (uint16_t)v[C_WORKER],
        .lo_ms = v[C_LO],
        .hi_ms = v[C_HI],
        .n = (uint64_t)v[C_N],
        .t0_ms = v[C_T0],
    };
    return COORD_OK;
}

enum coord_status answer_claim(const struct answer *a, const struct answer_to *to,
                               int64_t caller_ms, struct coord_grant *out, struct coord_reply *r)
{
    enum coord_status s = head(a, to, r);
    if (s == COORD_OK)
        return granted(a, caller_ms, out, r);
    if (s == COORD_LOST)
        return odd(a, 0, "OK, WAIT or EXHAUSTED", r);
    if (s > COORD_LOST)
        return s;
    if (a->n != ANSWER_HEAD + 1)
        return odd_count(a, ANSWER_HEAD + 1, r);
    return numbers(a, ANSWER_HEAD, &r->wait_ms, 1, r) ? s : COORD_REFUSED;
}

#define HOW_RELEASED (COORD_HOW_REASSERTED + 1)

static const char *const hows[] = {
    [COORD_HOW_LOST] = "LOST",   [COORD_HOW_RENEWED] = "renewed",
    [COORD_HOW_AGAIN] = "again", [COORD_HOW_REASSERTED] = "reasserted",
    [HOW_RELEASED] = "released",
};

static bool renewed(const struct answer *a, size_t i, struct coord_renewal *item,
                    struct coord_reply *r)
{
    int64_t v[3]; /* hi n t0 */
    size_t how = 0;
    while (how < sizeof hows / sizeof *hows && !span_eq(a->f[i], span_str(hows[how])))
        how++;
    if (how == sizeof hows / sizeof *hows) {
        (void)odd(a, i, "renewed, again, reasserted, released or LOST", r);
        return false;
    }
    if (!numbers(a, i + 1, v, 3, r))
        return false;
    item->released = how == HOW_RELEASED;
    item->how = item->released ? COORD_HOW_LOST : (enum coord_how)how;
    if (item->how == COORD_HOW_LOST)
        return true;
    if (v[0] < item->hi_ms || (v[0] > item->hi_ms && v[0] - r->now_ms > AHEAD_MAX_MS)) {
        (void)odd(a, i + 1, "the ceiling that is held, or a later one at most 25 h ahead", r);
        return false;
    }
    if (v[1] < 1) {
        (void)odd(a, i + 2, "a count of changes of 1 or more", r);
        return false;
    }
    item->hi_ms = v[0];
    item->n = (uint64_t)v[1];
    item->t0_ms = v[2];
    return true;
}

enum coord_status answer_renew(const struct answer *a, const struct answer_to *to,
                               struct coord_renewal *items, size_t n, struct coord_terms *terms,
                               struct coord_reply *r)
{
    int64_t v[ANSWER_TERMS];
    size_t first = ANSWER_HEAD + ANSWER_TERMS;
    enum coord_status s = head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK)
        return odd(a, 0, "OK", r);
    if (a->n != first + 4 * n)
        return odd_count(a, first + 4 * n, r);
    if (!numbers(a, ANSWER_HEAD, v, ANSWER_TERMS, r))
        return COORD_REFUSED;
    for (size_t i = 0; i < n; i++) {
        if (!renewed(a, first + 4 * i, &items[i], r))
            return COORD_REFUSED;
    }
    *terms = (struct coord_terms){v[0], v[1], v[2], v[3], v[4]};
    return COORD_OK;
}
