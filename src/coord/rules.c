#include "coord/rules_within.h"

#include "base/int64.h"
#include "coord/outcome.h"

#include <inttypes.h>

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

/* The time that is followed. */
static int64_t followed(const struct rules *u)
{
    bool ahead = u->now_ms - u->caller_ms > 2 * u->pool.p.params.max_skew_ms;
    return ahead ? u->caller_ms : u->now_ms;
}

static bool is_skewed(const struct rules *u, int64_t most)
{
    int64_t skew = u->caller_ms - u->now_ms;
    return (skew < 0 ? -skew : skew) > most;
}

/* COORD_OK: the caller's clock is within S of T. */
static enum coord_status check_skew(struct rules *u, int64_t most)
{
    return is_skewed(u, most) ? outcome_skew(u->r, u->caller_ms, most) : COORD_OK;
}

/* The pool is there, and is the one that the caller means. */
static enum coord_status admit(struct rules *u, bool renewing)
{
    struct coord_pool *p = &u->pool.p;
    enum coord_status s = find(u);
    if (s != COORD_OK)
        return s;
    if (strcmp(u->identity, p->identity) != 0) {
        if (!u->pool.adopt || !renewing || !coord_same_space(u->identity, p->identity))
            return outcome_wrongpool(u->r, u->identity, span_str(p->identity));
        memcpy(p->identity, u->identity, strlen(u->identity) + 1);
        u->pool.adopt = false;
        store_pool_set(u->store, &u->pool);
    }
    return COORD_OK;
}

/* T is behind what it has been. */
bool rules_is_behind(const struct rules *u)
{
    return coord_pool_behind_until(&u->pool.p, u->now_ms) > 0;
}

static enum coord_status check_past(struct rules *u)
{
    return rules_is_behind(u) ? outcome_badclock(u->r, u->pool.p.tmax_ms) : COORD_OK;
}

/* How far ahead of its time a table that was lost may have granted. */
int64_t rules_reach(const struct rules *u)
{
    const struct coord_params *k = &u->pool.p.params;
    return max64(coord_reach(k), u->pool.p.later.ahead_ms);
}

static bool has_moved(const struct rules *u)
{
    return strcmp(u->fingerprint, u->pool.fingerprint) != 0;
}

/* The store knows that it was set back: see store_ops.fingerprint. */
static bool is_set_back(const struct rules *u)
{
    const char *now = strrchr(u->fingerprint, ':'), *then = strrchr(u->pool.fingerprint, ':');
    return now && then && strcmp(now, then) != 0;
}

void rules_reopen(struct rules *u, bool proof, int64_t floor, enum coord_cause cause)
{
    struct coord_pool *p = &u->pool.p;
    const struct coord_params *k = &p->params;
    struct coord_later *l = &p->later;
    int64_t now = u->now_ms, skews = 2 * k->max_skew_ms;
    int64_t settle = max64(coord_pool_settle(p, now), k->first_horizon_ms);
    int64_t fence = l->fence_ms + rules_reach(u);
    bool sound = !proof && now >= fence;
    bool young = coord_pool_is_young(p, now) && sound && now >= l->lent_ms;
    bool older = is_set_back(u);
    bool bet = !young && sound && !older && settle < k->horizon_ms;
    u->pool.era++;
    l->cause = older ? COORD_CAUSE_SET_BACK : cause;
    l->more_era = older ? u->pool.era : l->more_era; /* no word says otherwise */
    l->floor_before_ms = p->floor_ms;
    l->floor_short_before_ms = p->floor_short_ms;
    l->era_before = u->pool.era;
    l->trust = bet ? COORD_TRUST_BET : COORD_TRUST_NONE;
    l->lent_ms = bet ? now + rules_reach(u) : l->lent_ms;
    p->topen_ms = now;
    p->floor_ms = max64(p->floor_ms, max64(floor, fence));
    int64_t floor_short = young ? now + k->first_horizon_ms + skews : now + settle + skews;
    p->floor_short_ms = max64(p->floor_short_ms, young || bet ? floor_short : p->floor_ms);
    memcpy(u->pool.fingerprint, u->fingerprint, strlen(u->fingerprint) + 1);
}

int64_t rules_leap(const struct rules *u)
{
    const struct coord_later *l = &u->pool.p.later;
    int64_t off = u->now_ms - l->leapt_ms, most = coord_pool_renewals(&u->pool.p, 4);
    return off > -most && off < most ? l->leap_ms : 0;
}

/* proof: a holder knows more than the table; of note where the file is still the same. COORD_OK, or
 * the pool is to be reopened, and not for this caller. */
static enum coord_status arrive(struct rules *u, bool proof)
{
    struct coord_pool *p = &u->pool.p;
    bool moved = has_moved(u);
    enum coord_status s = moved ? check_skew(u, u->pool.p.params.max_skew_ms) : COORD_OK;
    if (s != COORD_OK)
        return s;
    if (moved || proof)
        rules_reopen(u, proof, u->now_ms + rules_reach(u),
                     proof ? COORD_CAUSE_HOLDER : COORD_CAUSE_MOVED);
    int64_t leap = u->now_ms - p->tmax_ms;
    bool leaps = leap > max64(coord_pool_renewals(p, 2), rules_leap(u));
    if (leaps) {
        p->later.leap_ms = leap;
        p->later.leapt_ms = u->now_ms;
    }
    bool later = followed(u) > p->tmax_ms;
    p->tmax_ms = max64(p->tmax_ms, followed(u));
    if (moved || proof || later || leaps)
        store_pool_set(u->store, &u->pool);
    return COORD_OK;
}

/* Both of them, for an operation that proves nothing. */
enum coord_status rules_come_in(struct rules *u)
{
    enum coord_status s = admit(u, false);
    if (s == COORD_OK)
        s = check_past(u);
    return s == COORD_OK ? arrive(u, false) : s;
}

/* The same for one that needs a caller whose clock agrees. */
enum coord_status rules_come_in_on_time(struct rules *u)
{
    enum coord_status s = admit(u, false);
    if (s == COORD_OK)
        s = check_skew(u, u->pool.p.params.max_skew_ms);
    if (s == COORD_OK)
        s = check_past(u);
    return s == COORD_OK ? arrive(u, false) : s;
}

/* The head of an answer: to be called when all is changed that will be. */
enum coord_status rules_answer(struct rules *u, enum coord_status s)
{
    u->r->free = store_queue_count(u->store);
    return rules_head(u, s);
}

/* ---- records -------------------------------------------------------------------------------- */

/* false: not a workerId of this pool, or a record that cannot be read. */
bool rules_get(struct rules *u, uint32_t worker, struct store_record *out)
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

int64_t rules_high(const struct rules *u, const struct store_record *r)
{
    if (rules_fresh(u, r))
        return r->hwm_ms;
    return max64(r->hwm_ms, r->held ? u->pool.p.floor_ms : u->pool.p.floor_short_ms);
}

void rules_save(struct rules *u, struct store_record *r)
{
    r->era = u->pool.era;
    r->n++;
    store_record_set(u->store, r);
}

void rules_set_free(struct rules *u, struct store_record *r)
{
    r->hwm_ms = rules_high(u, r);
    r->held = false;
    rules_save(u, r);
    store_queue_push(u->store, r->worker);
    store_who_set(u->store, r->worker, "");
}

/* ---- renew ---------------------------------------------------------------------------------- */

static bool reasserts(const struct rules *u, const struct store_record *r,
                      const struct coord_renewal *item)
{
    const struct coord_pool *p = &u->pool.p;
    int64_t skews = 3 * p->params.max_skew_ms, shown = max64(p->tmax_ms, p->later.fence_ms);
    bool later = (uint64_t)r->n > item->n && !(r->held && coord_token_equal(r->token, item->nxt));
    bool above = r->hwm_ms > item->hi_ms && item->hi_ms < shown + skews; /* its clock was ahead */
    return !later && !above && item->hi_ms >= p->topen_ms + skews &&
           item->hi_ms <= p->topen_ms + rules_reach(u);
}

/* Fills *hi with the ceiling; *r is the record as it is afterwards. */
static enum coord_how renew_one(struct rules *u, struct store_record *r,
                                const struct coord_renewal *item, int64_t *hi)
{
    const struct coord_params *k = &u->pool.p.params;
    bool again = rules_fresh(u, r) && r->held && coord_token_equal(r->token, item->nxt);
    enum coord_how how = again ? COORD_HOW_AGAIN : COORD_HOW_RENEWED;
    if (!again && rules_fresh(u, r)) {
        if (!r->held || !coord_token_equal(r->token, item->cur))
            return COORD_HOW_LOST;
    } else if (!again) {
        if (!reasserts(u, r, item))
            return COORD_HOW_LOST;
        how = COORD_HOW_REASSERTED;
        r->hwm_ms = max64(rules_high(u, r), item->hi_ms);
        r->t0_ms = u->now_ms;
        r->n = max64(r->n, (int64_t)item->n);
    }
    if (r->t0_ms > u->now_ms + 2 * k->max_skew_ms && !rules_is_behind(u))
        r->t0_ms = u->now_ms;
    bool mature = followed(u) - r->t0_ms >= k->mature_after_ms;
    *hi = max64(min64(r->hwm_ms, item->hi_ms),
                followed(u) + (mature ? k->horizon_ms : k->first_horizon_ms));
    if (again) {
        *hi = min64(r->hwm_ms, *hi);
        return how;
    }
    r->hwm_ms = max64(r->hwm_ms, *hi);
    r->held = true;
    r->token = item->nxt;
    rules_save(u, r);
    return how;
}

/* Whether an operator took it away: then its token stands in the holder's place. */
static bool was_released(struct rules *u, const struct coord_renewal *item)
{
    char token[COORD_TOKEN_TEXT];
    return store_who_is(u->store, item->worker, coord_token_text(token, item->cur)) ||
           store_who_is(u->store, item->worker, coord_token_text(token, item->nxt));
}

static void renew_all(struct rules *u, struct store_record *records, const bool *known,
                      struct coord_renewal *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t hi = 0;
        items[i].how = known[i] ? renew_one(u, &records[i], &items[i], &hi) : COORD_HOW_LOST;
        if (items[i].how == COORD_HOW_LOST) {
            items[i].released = known[i] && was_released(u, &items[i]);
            continue;
        }
        if (!store_who_is(u->store, items[i].worker, u->who)) /* lost, or of a process before */
            store_who_set(u->store, items[i].worker, u->who);
        items[i].hi_ms = hi;
        items[i].n = (uint64_t)records[i].n;
        items[i].t0_ms = records[i].t0_ms;
    }
}

/* Behind the latest reopening somebody was granted more than the table takes for the most there is.
 */
static void raise_floors(struct rules *u, int64_t ahead_ms)
{
    struct coord_pool *p = &u->pool.p;
    int64_t floor = max64(p->topen_ms, p->later.fence_ms) + ahead_ms;
    p->later.more_era = u->pool.era;
    p->floor_ms = max64(p->floor_ms, floor);
    p->floor_short_ms = max64(p->floor_short_ms, floor);
}

/* A holder's pool may have been another one than this, which was made anew after a loss. */
static void learn(struct rules *u, const struct coord_caller *by)
{
    struct coord_later *l = &u->pool.p.later;
    l->every_ms = max64(l->every_ms, by->every_ms);
    if (by->ahead_ms <= rules_reach(u))
        return;
    l->ahead_ms = by->ahead_ms;
    raise_floors(u, by->ahead_ms);
}

/* A holder knows more than the table: where fs rests on trust, it does not any more. */
static void hear_more(struct rules *u)
{
    struct coord_pool *p = &u->pool.p;
    struct coord_later *l = &p->later;
    if (l->trust == COORD_TRUST_WORD) /* what was freed since counts as current: see rules.h */
        rules_reopen(u, true, p->topen_ms + rules_reach(u), COORD_CAUSE_HOLDER);
    if (l->trust == COORD_TRUST_BET)
        p->floor_short_ms = max64(p->floor_short_ms, p->floor_ms);
    l->more_era = u->pool.era;
    l->trust = COORD_TRUST_NONE;
    p->moved = p->closed;
}

/* The items of a renewal with their records. */
struct heard {
    struct coord_renewal *items;
    size_t n;
    struct store_record records[COORD_RENEW_MAX]; /* where not known all 0, so of no era */
    bool known[COORD_RENEW_MAX];
};

/* A holder knows more than the table, which takes its record for current, or which does not. Who
 * has another workerId than the pool's has it of a pool that was made again with others. */
static bool knows_more(const struct rules *u, const struct heard *h, bool current)
{
    for (size_t i = 0; i < h->n; i++)
        if (rules_fresh(u, &h->records[i]) == current && h->items[i].n > (uint64_t)h->records[i].n)
            return true;
    return false;
}

static bool any_stale(const struct rules *u, const struct heard *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (!h->known[i] || !rules_fresh(u, &h->records[i]))
            return true;
    return false;
}

/* COORD_OK: what is to be renewed is, whatever the clock showed before. */
static enum coord_status may_renew(struct rules *u, const struct heard *h, bool proof)
{
    bool skewed = is_skewed(u, u->pool.p.params.max_skew_ms);
    return skewed || proof || has_moved(u) || any_stale(u, h) ? check_past(u) : COORD_OK;
}

static void set_if_new(struct rules *u, const struct coord_pool *before)
{
    if (memcmp(before, &u->pool.p, sizeof *before) != 0)
        store_pool_set(u->store, &u->pool);
}

/* COORD_OK: the pool is in the era in which the items are to be judged. */
static enum coord_status hear(struct rules *u, const struct coord_caller *by, struct heard *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->known[i] = rules_get(u, h->items[i].worker, &h->records[i]);
    bool proof = !has_moved(u) && knows_more(u, h, true);
    enum coord_status s = may_renew(u, h, proof);
    if (s == COORD_OK)
        s = arrive(u, proof);
    if (s != COORD_OK)
        return s;
    struct coord_pool before = u->pool.p;
    learn(u, by);
    if (proof || knows_more(u, h, false))
        hear_more(u);
    set_if_new(u, &before);
    return COORD_OK;
}

/* What the server came back with may be older than a pool that was made in this one's place: its
 * holders are granted what ends too late for one from before this pool, and was granted before the
 * latest reopening. */
static bool is_later(const struct rules *u, int64_t hi_ms, int64_t most_ms)
{
    const struct coord_pool *p = &u->pool.p;
    return hi_ms > p->born_ms + most_ms && hi_ms <= max64(p->topen_ms, p->later.fence_ms) + most_ms;
}

/* A holder of another pool of the same ID space: it may live from one that this pool was made in
 * the place of, as if there had been none; or from one that was made since. */
static void hear_stranger(struct rules *u, int64_t ahead_ms, const struct coord_renewal *items,
                          size_t n)
{
    struct coord_pool *p = &u->pool.p;
    int64_t most = max64(rules_reach(u), ahead_ms);
    int64_t skew = p->params.max_skew_ms, floor = p->born_ms + most;
    struct coord_pool before = *p;
    bool waits = has_moved(u) || rules_is_behind(u); /* to be heard when that is over */
    bool later = false;
    for (size_t i = 0; i < n; i++) {
        p->moved |= p->closed && items[i].hi_ms > u->now_ms;
        later |= is_later(u, items[i].hi_ms, most);
    }
    if (later && !waits) {
        raise_floors(u, most);
        hear_more(u);
    }
    set_if_new(u, &before);
    if (waits || u->now_ms >= floor)
        return;
    for (size_t i = 0; i < n; i++) {
        struct store_record r;
        if (items[i].hi_ms > floor || !rules_get(u, items[i].worker, &r))
            continue;
        if (p->floor_short_ms < floor) {
            rules_reopen(u, true, floor, COORD_CAUSE_STRANGER);
            p->later.more_era = u->pool.era;
            store_pool_set(u->store, &u->pool);
        }
        if (r.held && r.t0_ms <= floor - skew)
            rules_set_free(u, &r);
    }
}

enum coord_status rules_renew(struct rules *u, const struct coord_caller *by,
                              struct coord_renewal *items, size_t n, struct coord_terms *terms)
{
    struct heard h = {.items = items, .n = n};
    const struct coord_pool *p = &u->pool.p;
    enum coord_status s = admit(u, true);
    if (s == COORD_WRONGPOOL && coord_same_space(u->identity, p->identity))
        hear_stranger(u, by->ahead_ms, items, n);
    if (s == COORD_OK)
        s = hear(u, by, &h);
    if (s != COORD_OK)
        return s;
    if (u->pool.p.closed)
        return rules_answer(u, COORD_CLOSED);
    *terms = (struct coord_terms){p->later.settle_ms, p->params.worker_from, p->params.worker_to,
                                  p->born_ms, p->later.ahead_ms};
    renew_all(u, h.records, h.known, items, n);
    return rules_answer(u, COORD_OK);
}

/* ---- what rules of other things begin with --------------------------------------------------- */

enum coord_status rules_enter(struct rules *u)
{
    return admit(u, false);
}

enum coord_status rules_arrive(struct rules *u, bool proof, bool heard)
{
    enum coord_status s = has_moved(u) || proof || heard ? check_past(u) : COORD_OK;
    return s == COORD_OK ? arrive(u, proof && !has_moved(u)) : s;
}

enum coord_status rules_come_in_behind(struct rules *u)
{
    enum coord_status s = rules_enter(u);
    return s == COORD_OK ? rules_arrive(u, false, false) : s;
}

void rules_hear_more(struct rules *u)
{
    hear_more(u);
    store_pool_set(u->store, &u->pool);
}

enum coord_status rules_on_time(struct rules *u)
{
    return check_skew(u, u->pool.p.params.max_skew_ms);
}

int64_t rules_followed(const struct rules *u)
{
    return followed(u);
}

/* ---- the others ----------------------------------------------------------------------------- */

enum coord_status rules_release(struct rules *u, const struct coord_release *item)
{
    struct store_record r;
    enum coord_status s = rules_come_in_behind(u);
    if (s != COORD_OK)
        return s;
    if (!rules_get(u, item->worker, &r) || !rules_fresh(u, &r) || !r.held ||
        (!coord_token_equal(r.token, item->cur) && !coord_token_equal(r.token, item->nxt)))
        return rules_answer(u, COORD_LOST);
    if (item->has_last && (uint64_t)r.n <= item->n + 1)
        r.hwm_ms = min64(r.hwm_ms, max64(item->last_ms, u->pool.p.floor_short_ms));
    rules_set_free(u, &r);
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_describe(struct rules *u, struct coord_pool *out)
{
    enum coord_status s = find(u);
    if (s != COORD_OK)
        return s;
    *out = u->pool.p;
    out->held = store_due_count(u->store);
    (void)rules_answer(u, COORD_OK);
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
