#include "lease/lease.h"

#include "base/int64.h"
#include "lease/backoff.h"
#include "lease/slots.h"
#include "lease/terms.h"
#include "lease/traces.h"

#include <string.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS   5000
#define URGE_EVERY_MS    1000 /* a clock above a ceiling asks for a renewal with every request */
#define WAIT_MAX_MS      5000 /* the queue moves on while one waits for its head */

static int64_t jitter(struct lease *l, int64_t ms)
{
    return backoff_jitter(l->rng, ms);
}

unsigned lease_held(const struct lease *l)
{
    return slots_count(l, PAGE_HELD);
}

/* A claim is heard of for itself alone. */
bool lease_heard_of_all(const struct lease *l, const struct lease_action *a,
                        const struct lease_outcome *o)
{
    bool all = a->kind == LEASE_RENEW || (a->kind == LEASE_CLAIM && lease_held(l) == 1);
    return all && o->status == COORD_OK && o->reply.now_ms > 0;
}

bool lease_proven(const struct lease *l)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (l->slot[i].rec.state == PAGE_HELD && l->slot[i].unproven)
            return false;
    return true;
}

bool lease_may_init(const struct lease *l)
{
    return l->conf.auto_init && (l->fresh_ok || l->last_known);
}

/* ---- taking over a page --------------------------------------------------------------------- */

static void take_over_slot(struct lease *l, unsigned i, bool proven)
{
    struct lease_slot *s = &l->slot[i];
    if (!page_load(l->page, i, &s->rec) || !mark_load(&l->page->slot[i].mark, &s->last_ms))
        s->rec.state = PAGE_FREE;
    if (s->rec.state == PAGE_HELD && !proven && (s->rec.ahead || l->conf.ahead)) {
        traces_note_ahead(l, i);
        return;
    }
    if (s->rec.state == PAGE_HELD && !s->rec.ahead && l->conf.ahead) {
        s->rec.ahead = true;
        page_store(l->page, i, &s->rec);
    }
    s->young = true; /* until the coordinator says otherwise */
    s->unproven = s->rec.state == PAGE_HELD && !proven;
    l->gave_up |= s->rec.state == PAGE_LEAVING;
    if (s->unproven && s->rec.renewing)
        s->unproven = 2; /* the pair in the page is repeated first */
    if (s->rec.state == PAGE_HELD && proven && !slots_leave_surplus(l, i))
        slots_grant(l, i, s->last_ms);
}

/* A clock beyond the ceiling may have been there before: then all of the range counts as used. The
 * last time never falls: a floor from another boot's page may be above the ceiling. */
static void raise_last(struct lease *l, unsigned i, int64_t wall)
{
    struct lease_slot *s = &l->slot[i];
    s->unproven = 0;
    int64_t used = min64(wall, s->rec.hi_ms);
    if (used > s->last_ms)
        s->last_ms = used;
    mark_store(&l->page->slot[i].mark, s->last_ms);
}

static void take_over(struct lease *l, bool proven)
{
    char identity[COORD_IDENTITY_MAX];
    struct layout layout;
    int64_t epoch;
    memcpy(identity, l->page->head.identity, sizeof identity);
    if (!identity[0] || !terms_space_agrees(l, identity, &epoch, &layout)) {
        page_clear(l->page);
        page_set_identity(l->page, identity); /* it tells the next life that IDs were issued */
        return;
    }
    memcpy(l->identity, identity, sizeof l->identity);
    memcpy(l->pool.identity, identity, sizeof l->pool.identity);
    l->pool.epoch_ms = epoch;
    l->pool.layout = layout;
    if (l->last_known) {
        l->pool.params = l->last_params;
        terms_learn_range(l, &l->last_params);
    }
    slots_post(l, LEASE_MAIL_POOL, 0, l->latest_ms);
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        take_over_slot(l, i, proven);
}

void lease_init(struct lease *l, const struct lease_config *conf, struct pagefile *f,
                struct rng *rng, int64_t mono)
{
    memset(l, 0, sizeof *l);
    l->conf = *conf;
    l->rng = rng;
    l->page = f->page;
    l->pool.params = coord_params_default;
    l->fresh_ok = traces_none(f);
    l->call_due = l->renew_due = l->claim_due = mono;
    l->renewed = mono - URGE_EVERY_MS;
    traces_note_pool(l, f->page);
    traces_pin_space(l, f->page);
    traces_note_latest(l, f);
    if (f->found && f->verdict == PAGE_OWN)
        take_over(l, f->proven);
    else if (f->found && f->verdict == PAGE_FOREIGN)
        traces_note_foreign(l, &f->old);
}

/* ---- what came of it ------------------------------------------------------------------------ */

static void back_off(struct lease *l, int64_t mono)
{
    int64_t ms = backoff_ms(BACKOFF_FIRST_MS, l->fails, BACKOFF_MAX_MS);
    l->fails++;
    l->call_due = mono + jitter(l, terms_within_settle(l, ms));
}

/* No answer of this pool to us can be had: whoever holds nothing that is still good asks anew which
 * pool there is, as a restart would. */
static void forget_pool(struct lease *l, int64_t wall)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (l->slot[i].rec.state == PAGE_HELD && l->slot[i].rec.hi_ms < wall)
            slots_revoke(l, i, false);
    if (lease_held(l) == 0) {
        l->described = false;
        l->identity[0] = '\0';
    }
}

/* Another pool than the one whose workerIds are held: their ranges stay good, nothing else is. */
static bool other_pool(struct lease *l, const struct coord_pool *pool)
{
    if (!l->identity[0] || strcmp(l->identity, pool->identity) == 0)
        return false;
    (void)err_set(&l->trouble, ERR_INVALID, "expected pool %s, found pool %s", l->identity,
                  pool->identity);
    return true;
}

static void describe_done(struct lease *l, const struct lease_outcome *o, int64_t mono,
                          int64_t wall)
{
    const struct coord_pool *pool = &o->pool;
    struct layout layout;
    int64_t epoch;
    if (o->status == COORD_NOPOOL && lease_may_init(l))
        return; /* it is made at once */
    if (o->status == COORD_OK && strcmp(l->identity, pool->identity) != 0)
        forget_pool(l, terms_over(l, &o->reply, wall));
    if (o->status != COORD_OK || other_pool(l, pool) ||
        !terms_space_agrees(l, pool->identity, &epoch, &layout)) {
        back_off(l, mono);
        return;
    }
    if (!l->identity[0]) {
        memcpy(l->identity, pool->identity, sizeof l->identity);
        page_set_identity(l->page, l->identity);
    }
    l->pool = *pool;
    terms_learn_pool(l, pool);
    /* Its settle may be shorter than the one that the next renewal was set by. */
    l->renew_due = min64(l->renew_due, mono + jitter(l, terms_renew_every(l, false)));
    l->described = true;
    l->fresh_ok = false; /* somebody else may have had a workerId of it */
    l->trouble.code = ERR_OK;
    l->fails = 0;
    if (strcmp(l->foreign_identity, l->identity) != 0)
        l->nforeign = 0;
    slots_post(l, LEASE_MAIL_POOL, 0, l->latest_ms);
}

static void claimed(struct lease *l, unsigned i, const struct coord_grant *g, struct coord_token t,
                    int64_t mono)
{
    struct lease_slot *s = &l->slot[i];
    int64_t last = traces_floor(l, g); /* before the slot forgets whose it was */
    *s = (struct lease_slot){.t0_ms = g->t0_ms, .young = true};
    s->rec = (struct page_record){.state = PAGE_HELD,
                                  .worker = g->worker,
                                  .ahead = l->conf.ahead,
                                  .cur = t,
                                  .nxt = t,
                                  .n = g->n,
                                  .lo_ms = g->lo_ms,
                                  .hi_ms = g->hi_ms};
    page_clear_mark(l->page, i, last);
    page_store(l->page, i, &s->rec);
    if (lease_held(l) >= l->conf.active + l->conf.spare)
        l->extra = false;
    if (lease_held(l) == 1)
        l->renew_due = mono + jitter(l, terms_renew_every(l, true));
    slots_grant(l, i, last);
    slots_revoke_outside(l);
    l->described = l->described && terms_is_learnt(l);
}

/* A workerId that this process holds already was handed out twice: neither copy may grow. */
static bool holds(const struct lease *l, uint16_t worker)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (l->slot[i].rec.state != PAGE_FREE && l->slot[i].rec.worker == worker)
            return true;
    return false;
}

/* Not where what is held serves nobody, since the clock stepped back behind it. */
static bool may_wait(const struct lease *l)
{
    return lease_held(l) > 0 && !l->extra;
}

/* Reopened by a clock that was ahead, and asks to wait all the same: by an operator's word that
 * time is another one. */
static bool is_ahead_no_more(const struct lease *l, const struct coord_reply *r)
{
    return l->pool.topen_ms > r->now_ms + 2 * l->pool.params.max_skew_ms;
}

static void claim_done(struct lease *l, const struct lease_action *a, const struct lease_outcome *o,
                       int64_t mono, int64_t wall)
{
    switch (o->status) {
    case COORD_OK:
        l->fails = 0;
        if (holds(l, o->grant.worker))
            l->claim_due = mono + jitter(l, BACKOFF_MAX_MS);
        else
            claimed(l, a->slots[0], &o->grant, a->token, mono);
        break;
    case COORD_WAIT: /* where it was reopened just now, the next one knows what is waited for */
        l->claim_due = mono;
        l->described &= !is_ahead_no_more(l, &o->reply);
        if (l->described)
            l->claim_due += jitter(l, 10 + min64(o->reply.wait_ms, WAIT_MAX_MS));
        break;
    case COORD_EXHAUSTED:
    case COORD_SKEW:
    case COORD_BADCLOCK:
        l->claim_due = mono + jitter(l, may_wait(l) ? 2 * BACKOFF_MAX_MS : 1000);
        break;
    case COORD_NOPOOL:
    case COORD_WRONGPOOL:
        forget_pool(l, terms_over(l, &o->reply, wall));
        back_off(l, mono);
        break;
    default:
        back_off(l, mono);
    }
}

/* None of the pool's, which was made again with others: nobody has it of this pool, so its range
 * stays good, and is used until another workerId is had. */
static bool is_outside(const struct lease *l, const struct lease_slot *s,
                       const struct lease_outcome *o, int64_t wall)
{
    bool named = s->rec.worker >= o->terms.worker_from && s->rec.worker <= o->terms.worker_to;
    return !named && !s->unproven && s->rec.hi_ms >= terms_over(l, &o->reply, wall);
}

static void renewed_one(struct lease *l, unsigned i, const struct coord_renewal *item,
                        const struct lease_outcome *o, int64_t wall)
{
    struct lease_slot *s = &l->slot[i];
    if (s->rec.state != PAGE_HELD || s->rec.worker != item->worker)
        return; /* retired while the renewal was under way: its release names both tokens */
    s->outside = item->how == COORD_HOW_LOST && is_outside(l, s, o, wall);
    if (s->outside)
        return;
    if (item->how == COORD_HOW_LOST) {
        slots_revoke(l, i, item->released);
        return;
    }
    s->rec.cur = s->rec.nxt;
    s->rec.renewing = false;
    s->rec.n = item->n;
    s->rec.hi_ms = max64(s->rec.hi_ms, item->hi_ms);
    s->t0_ms = item->t0_ms;
    s->young = o->reply.now_ms - item->t0_ms < l->pool.params.mature_after_ms;
    page_store(l->page, i, &s->rec);
    if (!s->unproven)
        slots_post(l, LEASE_MAIL_EXTEND, i, 0);
    else if (--s->unproven == 0) {
        raise_last(l, i, wall);
        if (!slots_leave_surplus(l, i))
            slots_grant(l, i, s->last_ms);
    }
}

/* As late as it would have been proven; and the loop, which issues from it, is to stop first. */
static void call_back_surplus(struct lease *l)
{
    unsigned held = lease_held(l);
    if (l->surplus == 0 || --l->surplus > 0)
        return;
    for (unsigned i = LEASE_SLOTS; i-- > 0 && held > l->conf.active + l->conf.spare;)
        if (l->slot[i].rec.state == PAGE_HELD) {
            slots_post(l, LEASE_MAIL_RETIRE, i, 0);
            held--;
        }
}

/* Nobody can say whether the page is right, so it is believed: a restart during an outage serves.
 * What is too many is kept until then: a release is no place for belief. */
static void grant_unproven(struct lease *l, int64_t wall)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (l->slot[i].rec.state == PAGE_HELD && l->slot[i].unproven) {
            if (l->slot[i].unproven > l->surplus)
                l->surplus = l->slot[i].unproven;
            raise_last(l, i, wall);
            slots_grant(l, i, l->slot[i].last_ms);
        }
}

static void renew_done(struct lease *l, const struct lease_action *a, const struct lease_outcome *o,
                       int64_t mono, int64_t wall)
{
    if (o->status != COORD_OK) {
        back_off(l, mono);
        if (o->status == COORD_NOPOOL || o->status == COORD_WRONGPOOL) {
            int64_t now = terms_over(l, &o->reply, wall);
            forget_pool(l, now); /* and another one is asked for once nothing is held */
            l->call_due = min64(l->call_due, mono + terms_left(l, now));
        }
        grant_unproven(l, wall);
        return;
    }
    l->fails = 0;
    terms_learn_renewal(l, &o->terms);
    bool young = false, unproven = false;
    for (size_t k = 0; k < a->nitems; k++) {
        renewed_one(l, a->slots[k], &a->items[k], o, wall);
        const struct lease_slot *s = &l->slot[a->slots[k]];
        young |= s->rec.state == PAGE_HELD && s->young;
        unproven |= s->unproven > 0;
    }
    call_back_surplus(l);
    l->renew_due = unproven ? mono : mono + jitter(l, terms_renew_every(l, young));
}

static void release_done(struct lease *l, const struct lease_action *a, enum coord_status status,
                         int64_t mono)
{
    bool answered = status == COORD_OK || status == COORD_LOST || status == COORD_NOPOOL ||
                    status == COORD_WRONGPOOL;
    if (!answered) {
        back_off(l, mono);
        return;
    }
    l->fails = 0;
    if (a->slots[0] == LEASE_SLOTS)
        l->nforeign--;
    else
        slots_free(l, a->slots[0]);
}

void lease_done(struct lease *l, const struct lease_action *a, const struct lease_outcome *o,
                int64_t mono, int64_t wall)
{
    terms_learn_answer(l, o);
    if (o->status == COORD_NOPOOL) {
        terms_learn_loss(l, &o->reply, wall);
        l->init_wanted = lease_may_init(l);
        if (l->init_wanted && l->fresh_ok) /* a unit that another pool has begun ends first */
            l->call_due = mono + layout_unit_left(&l->conf.layout, wall - l->conf.epoch_ms);
    }
    switch (a->kind) {
    case LEASE_DESCRIBE:
        describe_done(l, o, mono, wall);
        break;
    case LEASE_INIT:
        l->init_wanted = false;
        if (o->status != COORD_OK && o->status != COORD_EXISTS)
            back_off(l, mono);
        break;
    case LEASE_CLAIM:
        claim_done(l, a, o, mono, wall);
        break;
    case LEASE_RENEW:
        renew_done(l, a, o, mono, wall);
        break;
    case LEASE_RELEASE:
        release_done(l, a, o->status, mono);
        break;
    case LEASE_IDLE:
    case LEASE_FINISHED:
        break;
    }
}

/* ---- events --------------------------------------------------------------------------------- */

void lease_retire(struct lease *l, uint32_t handle, int64_t mono)
{
    unsigned i = handle % LEASE_SLOTS;
    if (l->slot[i].rec.state != PAGE_HELD || l->slot[i].handle != handle)
        return; /* it was lost in the meantime */
    slots_leave(l, i);
    /* A leap second rotates a whole fleet at once: let it not claim at once, too. */
    if (l->conf.rotation_jitter_ms > 0 && lease_held(l) >= l->conf.active)
        l->claim_due = mono + (int64_t)rng_below(l->rng, (uint64_t)l->conf.rotation_jitter_ms);
}

void lease_urge_renewal(struct lease *l, int64_t mono)
{
    l->renew_due = min64(l->renew_due, max64(mono, l->renewed + URGE_EVERY_MS));
}

void lease_urge_claim(struct lease *l, int64_t mono)
{
    if (!l->extra)
        l->claim_due = mono;
    l->extra = true;
}

void lease_stop(struct lease *l, bool give_back, int64_t mono)
{
    l->stopping = true;
    l->stop_by = mono + l->conf.stop_ms;
    l->call_due = mono;
    for (unsigned i = 0; give_back && i < LEASE_SLOTS; i++)
        if (l->slot[i].rec.state == PAGE_HELD)
            slots_leave(l, i);
}
