/* What operators say: rules.h and pool.lua have why it is as it is. */
#include "base/int64.h"
#include "coord/outcome.h"
#include "coord/rules_within.h"

enum coord_status rules_init(struct rules *u, const struct coord_init *in)
{
    const struct coord_params *k = &in->params;
    if (store_pool_get(u->store, u->name, &u->pool) != STORE_NONE)
        return outcome_exists(u->r, u->name);
    bool lost = in->mode == COORD_INIT_AFTER_LOSS;
    int64_t own = coord_reach(k), ahead = max64(own, in->lost_ahead_ms);
    u->pool = (struct store_pool){
        .p = {.params = *k,
              .born_ms = u->now_ms,
              .topen_ms = u->now_ms,
              .tmax_ms = u->now_ms,
              .floor_ms = lost ? u->now_ms + ahead : 0,
              .floor_short_ms = lost ? u->now_ms + ahead : 0,
              .later = {.settle_ms = in->settle_ms,
                        .ahead_ms = lost && ahead > own ? ahead : 0,
                        .least_ms = in->least_ms}},
        .era = in->mode == COORD_INIT_FRESH ? 1 : 2, /* 1: it was never reopened */
        .adopt = !in->identity_said,
    };
    enum coord_status s = rules_on_time(u);
    if (s != COORD_OK) /* its floors and tmax are stamped now */
        return s;
    memcpy(u->pool.p.identity, in->identity, sizeof u->pool.p.identity);
    memcpy(u->pool.fingerprint, u->fingerprint, strlen(u->fingerprint) + 1);
    store_pool_add(u->store, u->name, &u->pool);
    store_queue_fill(u->store, k->worker_from, k->worker_to);
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_evict(struct rules *u, uint16_t worker)
{
    struct store_record r;
    enum coord_status s = rules_come_in(u);
    if (s != COORD_OK)
        return s;
    if (!rules_get(u, worker, &r) || !r.held)
        return rules_answer(u, COORD_LOST);
    char token[COORD_TOKEN_TEXT];
    rules_set_free(u, &r);
    store_who_set(u->store, worker, coord_token_text(token, r.token));
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_close(struct rules *u, bool moved)
{
    enum coord_status s = rules_come_in(u);
    if (s != COORD_OK)
        return s;
    u->pool.p.closed = true;
    u->pool.p.moved |= moved;
    store_pool_set(u->store, &u->pool);
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_unclose(struct rules *u, int64_t lost_ahead_ms)
{
    struct coord_pool *p = &u->pool.p;
    enum coord_status s = rules_come_in_on_time(u);
    if (s != COORD_OK)
        return s;
    if (p->moved && lost_ahead_ms == 0)
        return outcome_gone(u->r);
    if (p->closed && lost_ahead_ms > 0) {
        if (lost_ahead_ms > rules_reach(u))
            p->later.ahead_ms = lost_ahead_ms;
        rules_reopen(u, true, u->now_ms + rules_reach(u), COORD_CAUSE_BACK);
        p->later.era_before = 0;
    }
    p->closed = p->moved = false;
    store_pool_set(u->store, &u->pool);
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_repair(struct rules *u, const uint16_t *workers, size_t n)
{
    enum coord_status s = rules_come_in(u);
    if (s != COORD_OK)
        return s;
    uint8_t named[COORD_WORKERS] = {0};
    for (size_t i = 0; i < n; i++)
        named[workers[i]] = 1;
    store_queue_remove(u->store, named, u->pool.p.params.worker_from, u->pool.p.params.worker_to);
    for (size_t i = 0; i < n; i++) {
        struct store_record r;
        if (!named[workers[i]])
            continue;
        bool known = rules_get(u, workers[i], &r);
        store_due_set(u->store, workers[i], known && r.held ? rules_high(u, &r) : -1);
        if (known && !r.held)
            store_queue_push(u->store, workers[i]);
        named[workers[i]] = 0; /* the second time that it is named it is done */
    }
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_settle(struct rules *u, int64_t settle_ms)
{
    struct coord_later *l = &u->pool.p.later;
    const struct coord_params *k = &u->pool.p.params;
    enum coord_status s = rules_come_in_on_time(u);
    if (s != COORD_OK)
        return s;
    int64_t before = coord_pool_settle(&u->pool.p, u->now_ms);
    int64_t said = l->settle_ms > 0 ? l->settle_ms : k->horizon_ms;
    l->settle_ms = min64(max64(settle_ms, k->first_horizon_ms), k->horizon_ms);
    if (l->settle_ms > said)
        l->least_ms = min64(l->least_ms > 0 ? l->least_ms : k->horizon_ms, said);
    if (l->settle_ms < said) {
        l->settle_before_ms = before;
        l->settle_from_ms = u->now_ms + before + 2 * k->max_skew_ms;
    } else if (l->settle_ms >= before)
        l->settle_before_ms = l->settle_from_ms = 0;
    store_pool_set(u->store, &u->pool);
    return rules_answer(u, COORD_OK);
}

enum coord_status rules_nothing_lost(struct rules *u)
{
    struct coord_pool *p = &u->pool.p;
    struct coord_later *l = &p->later;
    enum coord_status s = rules_come_in_on_time(u);
    if (s != COORD_OK)
        return s;
    if (l->more_era == u->pool.era)
        return outcome_more(u->r, p->topen_ms);
    if (l->era_before != u->pool.era)
        return outcome_none(u->r, p->topen_ms);
    int64_t from = coord_pool_word_from(p, (uint64_t)u->pool.era);
    if (u->now_ms < from)
        return outcome_early(u->r, from);
    p->floor_ms = l->floor_before_ms;
    p->floor_short_ms = l->floor_short_before_ms;
    l->era_before = 0;
    l->trust = COORD_TRUST_WORD;
    store_pool_set(u->store, &u->pool);
    return rules_answer(u, COORD_OK);
}

/* Before the pool may be reopened, so that this goes by the fence. */
enum coord_status rules_clock_was_ahead(struct rules *u)
{
    struct coord_pool *p = &u->pool.p;
    enum coord_status s = rules_enter(u);
    if (s == COORD_OK)
        s = rules_on_time(u);
    if (s != COORD_OK)
        return s;
    if (rules_is_behind(u)) {
        p->later.fence_ms = max64(p->later.fence_ms, p->tmax_ms);
        p->tmax_ms = u->now_ms;
        p->topen_ms = min64(p->topen_ms, u->now_ms); /* or it was reopened by that clock */
        store_pool_set(u->store, &u->pool);
    }
    s = rules_arrive(u, false, false);
    if (s == COORD_OK && p->later.fence_ms <= u->now_ms)
        return outcome_not_ahead(u->r);
    return s == COORD_OK ? rules_answer(u, COORD_OK) : s;
}
