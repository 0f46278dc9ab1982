/* What the lease machine wants next. */
#include "base/int64.h"
#include "lease/slots.h"
#include "lease/terms.h"

#include <string.h>

/* No more than the pool has: a small pool, or a static workerId. */
static unsigned at_most_pool(const struct lease *l, unsigned n)
{
    unsigned size = l->pool.params.worker_to - l->pool.params.worker_from + 1u;
    return n < size ? n : size;
}

static unsigned wanted(const struct lease *l)
{
    return at_most_pool(l, l->conf.active + l->conf.spare + l->extra);
}

static void plan_renewal(struct lease *l, int64_t mono, struct lease_action *a)
{
    a->kind = LEASE_RENEW;
    a->by.ahead_ms = l->ahead_ms;
    a->by.every_ms = terms_within_settle(l, l->conf.renew_ms) * 6 / 5;
    l->renewed = mono;
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        struct page_record *r = &l->slot[i].rec;
        if (r->state != PAGE_HELD)
            continue;
        if (!r->renewing) {
            r->nxt = coord_token_new(l->rng);
            r->renewing = true;
            page_store(l->page, i, r);
        }
        a->slots[a->nitems] = (uint8_t)i;
        a->items[a->nitems++] = (struct coord_renewal){
            .worker = r->worker, .cur = r->cur, .nxt = r->nxt, .n = r->n, .hi_ms = r->hi_ms};
    }
}

static void plan_release(struct lease *l, unsigned i, struct lease_action *a)
{
    const struct page_record *r = &l->slot[i].rec;
    a->kind = LEASE_RELEASE;
    a->slots[0] = (uint8_t)i;
    a->release = (struct coord_release){
        .worker = r->worker, .cur = r->cur, .nxt = r->renewing ? r->nxt : r->cur, .n = r->n};
    a->release.has_last = true;
    a->release.last_ms = l->slot[i].last_ms;
}

static void plan_foreign(struct lease *l, struct lease_action *a)
{
    const struct page_record *r = &l->foreign[l->nforeign - 1];
    a->kind = LEASE_RELEASE;
    a->slots[0] = LEASE_SLOTS;
    a->release = (struct coord_release){
        .worker = r->worker, .cur = r->cur, .nxt = r->renewing ? r->nxt : r->cur};
}

static void plan_claim(struct lease *l, struct lease_action *a)
{
    a->kind = LEASE_CLAIM;
    a->slots[0] = (uint8_t)slots_first(l, PAGE_FREE);
    a->token = coord_token_new(l->rng);
}

static void plan_stop(struct lease *l, int64_t mono, struct lease_action *a)
{
    unsigned i = slots_first(l, PAGE_LEAVING);
    if (i == LEASE_SLOTS || mono >= l->stop_by || !l->identity[0])
        a->kind = LEASE_FINISHED;
    else if (mono < l->call_due)
        a->until = min64(l->call_due, l->stop_by);
    else
        plan_release(l, i, a);
}

/* A lost pool is made again under its identity, with its parameters: its holders go on. */
static void plan_init(struct lease *l, struct lease_action *a)
{
    char uuid[COORD_UUID_TEXT];
    a->kind = LEASE_INIT;
    a->init.params = l->last_known ? l->last_params : coord_params_default;
    if (!l->last_known)
        a->init.params.worker_to = coord_worker_most(&l->conf.layout);
    a->init.settle_ms = l->last_known ? l->last_settle_ms : 0;
    a->init.least_ms = l->last_known ? l->last_least_ms : 0;
    a->init.lost_ahead_ms = l->last_known ? l->last_ahead_ms : 0;
    a->init.mode = l->fresh_ok ? COORD_INIT_FRESH : COORD_INIT_AFTER_LOSS;
    a->init.unattended = true;
    a->init.identity_said = l->last_identity[0] != '\0';
    if (l->last_identity[0])
        memcpy(a->init.identity, l->last_identity, sizeof l->last_identity);
    else if (coord_identity_make(a->init.identity, span_str(coord_uuid_new(uuid, l->rng)),
                                 l->conf.epoch_ms, &l->conf.layout, NULL))
        a->kind = LEASE_DESCRIBE; /* cannot be: the config was checked */
}

/* Serving comes first: what is held is renewed, then enough is claimed to issue from; what others
 * wait for comes second; the spare last. */
static void plan(struct lease *l, int64_t mono, struct lease_action *a)
{
    unsigned held = lease_held(l), lasting = held - slots_outside(l);
    unsigned leaving = slots_first(l, PAGE_LEAVING);
    bool room = slots_first(l, PAGE_FREE) < LEASE_SLOTS;
    bool claim_now = lasting < wanted(l) && room && mono >= l->claim_due;
    if (l->init_wanted) /* before the renewal that found no pool: it stays due */
        plan_init(l, a);
    else if (held > 0 && mono >= l->renew_due)
        plan_renewal(l, mono, a);
    else if (!l->described)
        a->kind = LEASE_DESCRIBE;
    else if (claim_now && lasting < at_most_pool(l, l->conf.active))
        plan_claim(l, a);
    else if (leaving < LEASE_SLOTS)
        plan_release(l, leaving, a);
    else if (l->nforeign > 0)
        plan_foreign(l, a);
    else if (claim_now)
        plan_claim(l, a);
    else {
        a->until = held > 0 ? l->renew_due : INT64_MAX;
        if (lasting < wanted(l) && room)
            a->until = min64(a->until, l->claim_due);
    }
}

void lease_next(struct lease *l, int64_t mono, struct lease_action *a)
{
    memset(a, 0, sizeof *a);
    a->kind = LEASE_IDLE;
    if (l->stopping)
        plan_stop(l, mono, a);
    else if (mono < l->call_due)
        a->until = l->call_due;
    else
        plan(l, mono, a);
}
