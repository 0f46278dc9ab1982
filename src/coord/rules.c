#include "coord/rules.h"

#include "coord/outcome.h"

#include <inttypes.h>

#define REAP_MAX 32
#define POP_MAX  64

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- what every operation begins and ends with ---------------------------------------------- */

static enum coord_status find(struct rules *u)
{
    switch (store_pool_get(u->store, u->name, &u->pool)) {
    case STORE_FOUND:
        return COORD_OK;
    case STORE_UNREADABLE:
        return outcome_refused(u->r,
                               "pool \"%s\": expected a sound row, found a field that cannot "
                               "be read",
                               u->name);
    default:
        return outcome_nopool(u->r, u->name);
    }
}

/* Epoch and layout: what must be the same for IDs to share a space. */
static bool same_space(const char *a, const char *b)
{
    const char *x = strchr(a, '|');
    const char *y = strchr(b, '|');
    return x && y ? strcmp(x, y) == 0 : x == y;
}

static enum coord_status enter(struct rules *u, bool renewing)
{
    struct coord_pool *p = &u->pool.p;
    enum coord_status s = find(u);
    if (s != COORD_OK)
        return s;
    if (strcmp(u->identity, p->identity) != 0) {
        if (!u->pool.adopt || !renewing || !same_space(u->identity, p->identity))
            return outcome_wrongpool(u->r, u->identity, span_str(p->identity));
        memcpy(p->identity, u->identity, strlen(u->identity) + 1);
        u->pool.adopt = false;
        store_pool_set(u->store, &u->pool);
    }
    if (u->now_ms < p->tmax_ms - 2 * p->params.max_skew_ms)
        return outcome_badclock(u->r, p->tmax_ms);
    return COORD_OK;
}

/* proof: a holder knows more than the table; of note where the file is still the same. */
static void arrive(struct rules *u, bool proof)
{
    struct coord_pool *p = &u->pool.p;
    const struct coord_params *k = &p->params;
    bool moved = strcmp(u->fingerprint, u->pool.fingerprint) != 0;
    if (moved || proof) {
        bool young = u->now_ms - p->tmax_ms < k->mature_after_ms - 4 * k->max_skew_ms && moved;
        u->pool.era++;
        p->topen_ms = u->now_ms;
        p->floor_ms = max(p->floor_ms, u->now_ms + k->horizon_ms + 2 * k->max_skew_ms);
        p->floor_short_ms =
            max(p->floor_short_ms,
                young ? u->now_ms + k->first_horizon_ms + 2 * k->max_skew_ms : p->floor_ms);
        memcpy(u->pool.fingerprint, u->fingerprint, strlen(u->fingerprint) + 1);
    }
    bool later = u->now_ms > p->tmax_ms;
    p->tmax_ms = max(p->tmax_ms, u->now_ms);
    if (moved || proof || later)
        store_pool_set(u->store, &u->pool);
}

/* The head of an answer: to be called when all is changed that will be. */
static enum coord_status answer(struct rules *u, enum coord_status s)
{
    u->r->era = (uint64_t)u->pool.era;
    u->r->free = store_queue_count(u->store);
    return s == COORD_CLOSED ? outcome_closed(u->r, u->name) : s;
}

/* ---- records -------------------------------------------------------------------------------- */

/* false: not a workerId of this pool, or a record that cannot be read. */
static bool get(struct rules *u, uint32_t worker, struct store_record *out)
{
    const struct coord_params *k = &u->pool.p.params;
    if (worker < k->worker_from || worker > k->worker_to)
        return false;
    switch (store_record_get(u->store, (uint16_t)worker, out)) {
    case STORE_FOUND:
        return true;
    case STORE_NONE:
        *out = (struct store_record){.worker = (uint16_t)worker, .era = 1};
        return true;
    default:
        return false;
    }
}

static bool fresh(const struct rules *u, const struct store_record *r)
{
    return r->era == u->pool.era;
}

static int64_t high(const struct rules *u, const struct store_record *r)
{
    if (fresh(u, r))
        return r->hwm_ms;
    return max(r->hwm_ms, r->held ? u->pool.p.floor_ms : u->pool.p.floor_short_ms);
}

static void save(struct rules *u, struct store_record *r)
{
    r->era = u->pool.era;
    r->n++;
    store_record_set(u->store, r);
}

static void set_free(struct rules *u, struct store_record *r)
{
    r->hwm_ms = high(u, r);
    r->held = false;
    save(u, r);
    store_queue_push(u->store, r->worker);
    store_who_set(u->store, r->worker, "");
}

/* ---- claim ---------------------------------------------------------------------------------- */

static void reap(struct rules *u)
{
    int64_t limit = u->now_ms - u->pool.p.params.grace_ms;
    uint16_t due[REAP_MAX];
    size_t n = store_due_list(u->store, limit, due, REAP_MAX);
    for (size_t i = 0; i < n; i++) {
        struct store_record r;
        if (!get(u, due[i], &r) || !r.held)
            store_due_set(u->store, due[i], -1);
        else if (high(u, &r) < limit)
            set_free(u, &r);
        else
            store_due_set(u->store, due[i], high(u, &r));
    }
}

static enum coord_status grant(struct rules *u, struct store_record *r, struct coord_token nxt,
                               const char *who, struct coord_grant *out)
{
    int64_t floor = high(u, r);
    r->hwm_ms = u->now_ms + u->pool.p.params.first_horizon_ms;
    r->held = true;
    r->token = nxt;
    r->t0_ms = u->now_ms;
    save(u, r);
    store_who_set(u->store, r->worker, who);
    if (u->pool.adopt) {
        u->pool.adopt = false;
        store_pool_set(u->store, &u->pool);
    }
    *out = (struct coord_grant){
        .worker = r->worker,
        .lo_ms = floor + 1,
        .hi_ms = r->hwm_ms,
        .n = (uint64_t)r->n,
        .t0_ms = r->t0_ms,
    };
    return answer(u, COORD_OK);
}

static enum coord_status take(struct rules *u, int64_t caller_ms, struct coord_token nxt,
                              const char *who, struct coord_grant *out)
{
    int64_t soonest = -1;
    uint64_t pops = store_queue_count(u->store);
    uint32_t worker;
    if (pops > POP_MAX)
        pops = POP_MAX;
    while (pops-- > 0 && store_queue_pop(u->store, &worker)) {
        struct store_record r;
        if (!get(u, worker, &r) || (r.held && fresh(u, &r)))
            continue;
        int64_t floor = high(u, &r);
        if (floor < caller_ms)
            return grant(u, &r, nxt, who, out);
        store_queue_push(u->store, r.worker);
        if (soonest < 0 || floor < soonest)
            soonest = floor;
    }
    if (soonest < 0)
        return answer(u, COORD_EXHAUSTED);
    u->r->wait_ms = soonest - caller_ms + 1;
    return answer(u, COORD_WAIT);
}

enum coord_status rules_claim(struct rules *u, int64_t caller_ms, struct coord_token nxt,
                              const char *who, struct coord_grant *out)
{
    enum coord_status s = enter(u, false);
    if (s != COORD_OK)
        return s;
    int64_t skew = caller_ms - u->now_ms;
    if ((skew < 0 ? -skew : skew) > u->pool.p.params.max_skew_ms)
        return outcome_skew(u->r, caller_ms, u->pool.p.params.max_skew_ms);
    arrive(u, false);
    if (u->pool.p.closed)
        return answer(u, COORD_CLOSED);
    reap(u);
    return take(u, caller_ms, nxt, who, out);
}

/* ---- renew ---------------------------------------------------------------------------------- */

static bool reasserts(const struct rules *u, const struct store_record *r,
                      const struct coord_renewal *item)
{
    const struct coord_params *k = &u->pool.p.params;
    int64_t topen = u->pool.p.topen_ms;
    bool known_later =
        (uint64_t)r->n > item->n && !(r->held && coord_token_equal(r->token, item->nxt));
    return !known_later && item->hi_ms >= topen + 3 * k->max_skew_ms &&
           item->hi_ms <= topen + k->horizon_ms + 2 * k->max_skew_ms;
}

/* Fills *hi with the ceiling; *r is the record as it is afterwards. */
static enum coord_how renew_one(struct rules *u, struct store_record *r,
                                const struct coord_renewal *item, int64_t *hi)
{
    const struct coord_params *k = &u->pool.p.params;
    bool again = fresh(u, r) && r->held && coord_token_equal(r->token, item->nxt);
    enum coord_how how = again ? COORD_HOW_AGAIN : COORD_HOW_RENEWED;
    if (!again && fresh(u, r)) {
        if (!r->held || !coord_token_equal(r->token, item->cur))
            return COORD_HOW_LOST;
    } else if (!again) {
        if (!reasserts(u, r, item))
            return COORD_HOW_LOST;
        how = COORD_HOW_REASSERTED;
        r->hwm_ms = max(high(u, r), item->hi_ms);
        r->t0_ms = u->now_ms;
        r->n = max(r->n, (int64_t)item->n);
    }
    bool mature = u->now_ms - r->t0_ms >= k->mature_after_ms;
    *hi = max(min(r->hwm_ms, item->hi_ms),
              u->now_ms + (mature ? k->horizon_ms : k->first_horizon_ms));
    if (again) {
        *hi = min(r->hwm_ms, *hi);
        return how;
    }
    r->hwm_ms = max(r->hwm_ms, *hi);
    r->held = true;
    r->token = item->nxt;
    save(u, r);
    return how;
}

static void renew_all(struct rules *u, struct store_record *records, const bool *known,
                      struct coord_renewal *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t hi = 0;
        items[i].how = known[i] ? renew_one(u, &records[i], &items[i], &hi) : COORD_HOW_LOST;
        if (items[i].how == COORD_HOW_LOST)
            continue;
        items[i].hi_ms = hi;
        items[i].n = (uint64_t)records[i].n;
        items[i].t0_ms = records[i].t0_ms;
    }
}

enum coord_status rules_renew(struct rules *u, struct coord_renewal *items, size_t n)
{
    struct store_record records[COORD_RENEW_MAX];
    bool known[COORD_RENEW_MAX];
    bool proof = false;
    enum coord_status s = enter(u, true);
    if (s != COORD_OK)
        return s;
    for (size_t i = 0; i < n; i++) {
        known[i] = get(u, items[i].worker, &records[i]);
        if (known[i] && fresh(u, &records[i]) && items[i].n > (uint64_t)records[i].n)
            proof = true;
    }
    arrive(u, proof);
    if (u->pool.p.closed)
        return answer(u, COORD_CLOSED);
    renew_all(u, records, known, items, n);
    return answer(u, COORD_OK);
}

/* ---- the others ----------------------------------------------------------------------------- */

enum coord_status rules_release(struct rules *u, const struct coord_release *item)
{
    struct store_record r;
    enum coord_status s = enter(u, false);
    if (s != COORD_OK)
        return s;
    arrive(u, false);
    if (!get(u, item->worker, &r) || !fresh(u, &r) || !r.held ||
        (!coord_token_equal(r.token, item->cur) && !coord_token_equal(r.token, item->nxt)))
        return answer(u, COORD_LOST);
    if (item->has_last)
        r.hwm_ms = min(r.hwm_ms, max(item->last_ms, u->pool.p.floor_short_ms));
    set_free(u, &r);
    return answer(u, COORD_OK);
}

enum coord_status rules_evict(struct rules *u, uint16_t worker)
{
    struct store_record r;
    enum coord_status s = enter(u, false);
    if (s != COORD_OK)
        return s;
    arrive(u, false);
    if (!get(u, worker, &r) || !r.held)
        return answer(u, COORD_LOST);
    set_free(u, &r);
    return answer(u, COORD_OK);
}

enum coord_status rules_close(struct rules *u)
{
    enum coord_status s = enter(u, false);
    if (s != COORD_OK)
        return s;
    arrive(u, false);
    u->pool.p.closed = true;
    store_pool_set(u->store, &u->pool);
    return answer(u, COORD_OK);
}

enum coord_status rules_repair(struct rules *u, const uint16_t *workers, size_t n)
{
    enum coord_status s = enter(u, false);
    if (s != COORD_OK)
        return s;
    arrive(u, false);
    uint8_t named[COORD_WORKERS] = {0};
    for (size_t i = 0; i < n; i++)
        named[workers[i]] = 1;
    store_queue_remove(u->store, named, u->pool.p.params.worker_from, u->pool.p.params.worker_to);
    for (size_t i = 0; i < n; i++) {
        struct store_record r;
        if (!named[workers[i]])
            continue;
        bool known = get(u, workers[i], &r);
        store_due_set(u->store, workers[i], known && r.held ? high(u, &r) : -1);
        if (known && !r.held)
            store_queue_push(u->store, workers[i]);
        named[workers[i]] = 0; /* the second time that it is named it is done */
    }
    return answer(u, COORD_OK);
}

enum coord_status rules_init(struct rules *u, const struct coord_init *in)
{
    const struct coord_params *k = &in->params;
    enum store_found found = store_pool_get(u->store, u->name, &u->pool);
    if (found != STORE_NONE)
        return outcome_exists(u->r, u->name);
    bool lost = in->mode == COORD_INIT_AFTER_LOSS;
    int64_t ahead = max(k->horizon_ms + 2 * k->max_skew_ms, in->lost_ahead_ms);
    int64_t floor = lost ? u->now_ms + ahead : 0;
    u->pool = (struct store_pool){
        .p = {.params = *k,
              .born_ms = u->now_ms,
              .topen_ms = u->now_ms,
              .tmax_ms = u->now_ms,
              .floor_ms = floor,
              .floor_short_ms = floor},
        .era = lost ? 2 : 1,
        .adopt = true,
    };
    memcpy(u->pool.p.identity, in->identity, sizeof u->pool.p.identity);
    memcpy(u->pool.fingerprint, u->fingerprint, strlen(u->fingerprint) + 1);
    store_pool_add(u->store, u->name, &u->pool);
    store_queue_fill(u->store, k->worker_from, k->worker_to);
    return answer(u, COORD_OK);
}

enum coord_status rules_describe(struct rules *u, struct coord_pool *out)
{
    enum coord_status s = find(u);
    if (s != COORD_OK)
        return s;
    *out = u->pool.p;
    out->held = store_due_count(u->store);
    (void)answer(u, COORD_OK);
    return outcome_of_pool(out, u->r);
}

enum coord_status rules_snapshot(struct rules *u, struct coord_snapshot *out)
{
    enum coord_status s = rules_describe(u, &out->pool);
    if (s != COORD_OK)
        return s;
    if (!store_all(u->store, u->pool.era, out))
        return outcome_down(u->r, ERR_NOMEM, "no memory for a snapshot");
    return COORD_OK;
}
