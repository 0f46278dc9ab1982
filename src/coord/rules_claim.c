/* A workerId for who asks for one: rules.h and pool.lua have why it is as it is. */
#include "base/int64.h"
#include "coord/outcome.h"
#include "coord/rules_within.h"

#define REAP_MAX 32
#define POP_MAX  64

/* Held workerIds whose range ended more than G ago go back to the queue. As long as others are to
 * be had, whom T may have gone ahead of is heard first. */
static void reap(struct rules *u, int64_t leap)
{
    int64_t limit = u->now_ms - u->pool.p.params.grace_ms - leap;
    uint16_t due[REAP_MAX];
    size_t n = store_due_list(u->store, limit, due, REAP_MAX);
    for (size_t i = 0; i < n; i++) {
        struct store_record r;
        if (!rules_get(u, due[i], &r) || !r.held)
            store_due_set(u->store, due[i], -1);
        else if (rules_high(u, &r) < limit)
            rules_set_free(u, &r);
        else
            store_due_set(u->store, due[i], rules_high(u, &r));
    }
}

static enum coord_status grant(struct rules *u, struct store_record *r, struct coord_token nxt,
                               struct coord_grant *out)
{
    int64_t floor = rules_high(u, r);
    r->hwm_ms = u->now_ms + u->pool.p.params.first_horizon_ms;
    r->held = true;
    r->token = nxt;
    r->t0_ms = u->now_ms;
    rules_save(u, r);
    store_who_set(u->store, r->worker, u->who);
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
    return rules_answer(u, COORD_OK);
}

/* ms, until the range that ends first has rested; 0: not known. */
static int64_t until_first_ends(struct rules *u)
{
    uint16_t first;
    struct store_record r;
    bool known = store_due_list(u->store, INT64_MAX, &first, 1) == 1 && rules_get(u, first, &r);
    return known ? max64(1, rules_high(u, &r) + u->pool.p.params.grace_ms - u->now_ms + 1) : 0;
}

static enum coord_status take(struct rules *u, int64_t leap, struct coord_token nxt,
                              struct coord_grant *out)
{
    reap(u, leap);
    int64_t soonest = -1;
    int64_t pops = min64((int64_t)store_queue_count(u->store), POP_MAX);
    uint32_t worker;
    while (pops-- > 0 && store_queue_pop(u->store, &worker)) {
        struct store_record r;
        if (!rules_get(u, worker, &r) || (r.held && rules_fresh(u, &r)))
            continue;
        int64_t floor = rules_high(u, &r);
        if (floor < u->caller_ms)
            return grant(u, &r, nxt, out);
        store_queue_push(u->store, r.worker);
        if (soonest < 0 || floor < soonest)
            soonest = floor;
    }
    if (leap > 0)
        return take(u, 0, nxt, out);
    u->r->wait_ms = soonest < 0 ? until_first_ends(u) : soonest - u->caller_ms + 1;
    return rules_answer(u, soonest < 0 ? COORD_EXHAUSTED : COORD_WAIT);
}

enum coord_status rules_claim(struct rules *u, struct coord_token nxt, struct coord_grant *out)
{
    enum coord_status s = rules_come_in_on_time(u);
    if (s != COORD_OK)
        return s;
    if (u->pool.p.closed)
        return rules_answer(u, COORD_CLOSED);
    return take(u, rules_leap(u), nxt, out);
}
