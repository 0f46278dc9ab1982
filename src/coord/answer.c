#include "coord/answer.h"

#include "base/dec.h"
#include "coord/outcome.h"

#include <inttypes.h>

#define AHEAD_MAX_MS (INT64_C(25) * 3600 * 1000) /* the header says why */

/* What a status carries beside its name and T, and what is made of it. */
enum shape {
    SHAPE_POOL,  /* era, length of the queue, and the operation's own fields */
    SHAPE_BARE,  /* nothing */
    SHAPE_TEXT,  /* one text */
    SHAPE_TIME,  /* one time */
    SHAPE_TIMES, /* two */
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
    {"NOINFO", COORD_REFUSED, SHAPE_BARE},
    {"CORRUPT", COORD_REFUSED, SHAPE_TEXT},
    {"BADOP", COORD_REFUSED, SHAPE_TEXT},
};

static const size_t fields_of[] = {
    [SHAPE_POOL] = 4, [SHAPE_BARE] = 2, [SHAPE_TEXT] = 3, [SHAPE_TIME] = 3, [SHAPE_TIMES] = 4,
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
    if (w->shape >= SHAPE_TIME && !numbers(a, 2, t, a->n - 2, r))
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
    if (w->shape == SHAPE_BARE)
        return outcome_refused(r, "INFO of the server: expected run_id and master_replid, found "
                                  "one missing");
    return odd(a, 2,
               span_eq(a->f[0], SPAN("CORRUPT")) ? "a sound field of the pool" : "an operation", r);
}

/* Reads the head. COORD_OK, _WAIT, _EXHAUSTED, _LOST: the operation's fields begin at index 4. */
static enum coord_status head(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r)
{
    int64_t v[3];
    const struct word *w = a->n > 0 ? word_of(a->f[0]) : NULL;
    if (!w)
        return odd(a, 0, "a status", r);
    if (!numbers(a, 1, v, 1, r))
        return COORD_REFUSED;
    r->now_ms = v[0];
    if (w->shape != SHAPE_POOL)
        return without_pool(a, w, to, r);
    if (!numbers(a, 2, v, 2, r))
        return COORD_REFUSED;
    if (v[0] == 0)
        return odd(a, 2, "an era of 1 or more", r);
    r->era = (uint64_t)v[0];
    r->free = (uint64_t)v[1];
    return w->status == COORD_CLOSED ? outcome_closed(r, to->pool) : w->status;
}

enum coord_status answer_plain(const struct answer *a, const struct answer_to *to,
                               struct coord_reply *r)
{
    enum coord_status s = head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK && s != COORD_LOST)
        return odd(a, 0, "OK or LOST", r);
    return a->n == 4 ? s : odd_count(a, 4, r);
}

enum coord_status answer_init(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r)
{
    struct answer padded = *a;
    bool made = a->n > 0 && span_eq(a->f[0], SPAN("OK"));
    if (made && a->n != 3)
        return odd_count(a, 3, r);
    /* A new pool answers without the length of its queue, which the caller knows. */
    if (made)
        padded.f[padded.n++] = SPAN("0");
    enum coord_status s = head(&padded, to, r);
    return s == COORD_OK || s > COORD_LOST ? s : odd(a, 0, "OK or EXISTS", r);
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
    D_HELD,
    D_COUNT
};

static enum coord_status pool_from(const struct answer *a, const int64_t *v,
                                   struct coord_pool *pool, struct coord_reply *r)
{
    struct span id = a->f[4];
    if (id.n >= sizeof pool->identity)
        return odd(a, 4, "an identity", r);
    memcpy(pool->identity, id.p, id.n);
    pool->identity[id.n] = '\0';
    if (v[D_FROM] >= COORD_WORKERS || v[D_TO] >= COORD_WORKERS || v[D_K] > UINT16_MAX)
        return odd(a, 5 + D_TO, "workerIds of 15 bits", r);
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
    pool->held = (uint64_t)v[D_HELD];
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
    if (a->n != 5 + D_COUNT)
        return odd_count(a, 5 + D_COUNT, r);
    return numbers(a, 5, v, D_COUNT, r) ? pool_from(a, v, pool, r) : COORD_REFUSED;
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
    if (a->n != 4 + C_COUNT)
        return odd_count(a, 4 + C_COUNT, r);
    if (!numbers(a, 4, v, C_COUNT, r))
        return COORD_REFUSED;
    if (v[C_WORKER] >= COORD_WORKERS)
        return odd(a, 4 + C_WORKER, "a workerId of 15 bits", r);
    if (v[C_LO] < 1 || v[C_LO] > caller_ms)
        return odd(a, 4 + C_LO, "a floor at or below the caller's clock", r);
    if (v[C_HI] < v[C_LO] || v[C_HI] - r->now_ms > AHEAD_MAX_MS)
        return odd(a, 4 + C_HI, "a ceiling above the floor and at most 25 h ahead", r);
    if (v[C_N] < 1)
        return odd(a, 4 + C_N, "a count of changes of 1 or more", r);
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
    if (s == COORD_WAIT) {
        if (a->n != 5)
            return odd_count(a, 5, r);
        return numbers(a, 4, &r->wait_ms, 1, r) ? s : COORD_REFUSED;
    }
    if (s == COORD_LOST)
        return odd(a, 0, "OK, WAIT or EXHAUSTED", r);
    return s != COORD_EXHAUSTED || a->n == 4 ? s : odd_count(a, 4, r);
}

static const char *const hows[] = {
    [COORD_HOW_LOST] = "LOST",
    [COORD_HOW_RENEWED] = "renewed",
    [COORD_HOW_AGAIN] = "again",
    [COORD_HOW_REASSERTED] = "reasserted",
};

static bool renewed(const struct answer *a, size_t i, struct coord_renewal *item,
                    struct coord_reply *r)
{
    int64_t v[3]; /* hi n t0 */
    size_t how = 0;
    while (how < sizeof hows / sizeof *hows && !span_eq(a->f[i], span_str(hows[how])))
        how++;
    if (how == sizeof hows / sizeof *hows) {
        (void)odd(a, i, "renewed, again, reasserted or LOST", r);
        return false;
    }
    if (!numbers(a, i + 1, v, 3, r))
        return false;
    item->how = (enum coord_how)how;
    if (how == COORD_HOW_LOST)
        return true;
    if (v[0] < item->hi_ms || v[0] - r->now_ms > AHEAD_MAX_MS) {
        (void)odd(a, i + 1, "a ceiling not below the one held and at most 25 h ahead", r);
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
                               struct coord_renewal *items, size_t n, struct coord_reply *r)
{
    enum coord_status s = head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK)
        return odd(a, 0, "OK", r);
    if (a->n != 4 + 4 * n)
        return odd_count(a, 4 + 4 * n, r);
    for (size_t i = 0; i < n; i++) {
        if (!renewed(a, 4 + 4 * i, &items[i], r))
            return COORD_REFUSED;
    }
    return COORD_OK;
}
