#include "lease/terms.h"

#include "base/int64.h"
#include "base/timefmt.h"
#include "lease/traces.h"

#include <inttypes.h>

#define YOUNG_RENEW_MS 5000

int64_t terms_within_settle(const struct lease *l, int64_t ms)
{
    int64_t most = l->settle_ms / 4 * 5 / 6;
    return l->settle_ms > 0 && ms > most ? most : ms;
}

int64_t terms_renew_every(const struct lease *l, bool young)
{
    bool sooner = young && l->conf.renew_ms > YOUNG_RENEW_MS;
    return terms_within_settle(l, sooner ? YOUNG_RENEW_MS : l->conf.renew_ms);
}

int64_t terms_left(const struct lease *l, int64_t wall)
{
    int64_t left = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct page_record *r = &l->slot[i].rec;
        if (r->state == PAGE_HELD && r->hi_ms - wall >= left)
            left = r->hi_ms - wall + 1;
    }
    return left;
}

int64_t terms_over(const struct lease *l, const struct coord_reply *r, int64_t wall)
{
    return r->now_ms > 0 ? min64(wall, r->now_ms + l->pool.params.max_skew_ms) : wall;
}

bool terms_rest_of_reopening(const struct coord_pool *p, const struct coord_reply *r)
{
    int64_t off = r->now_ms + r->wait_ms - p->floor_short_ms, skew = p->params.max_skew_ms + 1;
    return r->era > 1 && p->floor_short_ms > r->now_ms && off >= -skew && off <= skew;
}

bool terms_word_helps(const struct coord_pool *p, const struct coord_reply *r)
{
    int64_t from = coord_pool_word_from(p, r->era);
    return from > 0 && from < r->now_ms + r->wait_ms && p->later.floor_short_before_ms <= r->now_ms;
}

static void keep_to(struct lease *l, int64_t ms)
{
    if (ms > 0 && (l->settle_ms == 0 || ms < l->settle_ms))
        l->settle_ms = ms;
}

/* A shorter one is kept to as long as this process lives, and that of the page as long as the pool
 * does, since data of its time may come back. */
static void learn_settle(struct lease *l, int64_t ms)
{
    keep_to(l, ms);
    if (l->last_known) {
        keep_to(l, l->last_settle_ms);
        keep_to(l, l->last_least_ms);
    }
}

void terms_learn_ahead(struct lease *l, const struct coord_params *p)
{
    int64_t ahead = coord_reach(p);
    l->ahead_ms = ahead > l->ahead_ms ? ahead : l->ahead_ms;
}

/* In the page: what is to be said of the pool if it is lost; how far ahead ranges may last that
 * pools before it granted, too, whose holders may be cut off. */
static void remember(struct lease *l, const struct coord_params *p, int64_t settle_ms,
                     int64_t ahead_ms)
{
    int64_t own = coord_reach(p);
    ahead_ms = ahead_ms > l->ahead_ms ? ahead_ms : l->ahead_ms;
    if (l->last_known && l->last_ahead_ms > ahead_ms)
        ahead_ms = l->last_ahead_ms;
    int64_t least_ms = l->settle_ms > 0 ? max64(l->settle_ms, p->first_horizon_ms) : 0;
    page_set_params(l->page, p, settle_ms, least_ms, ahead_ms > own ? ahead_ms : 0);
    traces_note_pool(l, l->page);
}

void terms_learn_range(struct lease *l, const struct coord_params *p)
{
    terms_learn_ahead(l, p);
    l->range_from = p->worker_from;
    l->range_to = p->worker_to;
}

/* Made again with other workerIds, by mistake perhaps: until one of them is held, what would have
 * to be made, were that one deleted, is the pool that those which are held came from. */
static bool holds_others_alone(const struct lease *l, const struct coord_params *p)
{
    bool any = false;
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct page_record *r = &l->slot[i].rec;
        if (r->state != PAGE_HELD)
            continue;
        if (r->worker >= p->worker_from && r->worker <= p->worker_to)
            return false;
        any = true;
    }
    return any && l->last_known;
}

bool terms_is_learnt(const struct lease *l)
{
    const struct coord_params *last = &l->last_params, *now = &l->pool.params;
    return !l->last_known ||
           (last->worker_from == now->worker_from && last->worker_to == now->worker_to);
}

void terms_learn_pool(struct lease *l, const struct coord_pool *p)
{
    if (lease_held(l) == 0) {
        l->ahead_ms = 0;
        l->range.code = ERR_OK;
    }
    if (l->ahead_ms == 0)
        terms_learn_range(l, &p->params);
    terms_learn_ahead(l, &p->params);
    learn_settle(l, p->later.settle_ms);
    learn_settle(l, p->later.least_ms);
    if (!holds_others_alone(l, &p->params))
        remember(l, &p->params, p->later.settle_ms, p->later.ahead_ms);
}

void terms_learn_answer(struct lease *l, const struct lease_outcome *o)
{
    uint64_t era = o->reply.era;
    if (o->status == COORD_NOPOOL || (era > 0 && era != l->era))
        l->described = false;
    l->era = era > 0 ? era : l->era;
}

void terms_learn_loss(struct lease *l, const struct coord_reply *r, int64_t wall)
{
    const struct coord_params *p = &l->last_params;
    int64_t left = terms_left(l, r->now_ms > 0 ? r->now_ms : wall);
    if (!l->last_known || left <= coord_reach(p))
        return;
    left += p->max_skew_ms;
    l->last_ahead_ms = max64(l->last_ahead_ms, left);
    l->ahead_ms = max64(l->ahead_ms, min64(left, COORD_AHEAD_MAX_MS));
}

static bool same_range(const struct coord_terms *t, uint16_t from, uint16_t to)
{
    return t->worker_from == from && t->worker_to == to;
}

/* A pool made anew with other workerIds gives out some that may be another pool's. */
static void compare_range(struct lease *l, const struct coord_terms *t)
{
    l->range.code = ERR_OK;
    if (l->ahead_ms > 0 && !same_range(t, l->range_from, l->range_to))
        (void)err_set(&l->range, ERR_RANGE,
                      "expected workerIds %u to %u, as the pool had, found %" PRId64 " to %" PRId64
                      ": was it made again with others?",
                      l->range_from, l->range_to, t->worker_from, t->worker_to);
}

void terms_learn_renewal(struct lease *l, const struct coord_terms *t)
{
    learn_settle(l, t->settle_ms);
    bool news = t->settle_ms != l->last_settle_ms || t->ahead_ms > l->last_ahead_ms;
    if (l->last_known && news) /* set, or learnt, since */
        remember(l, &l->last_params, t->settle_ms, t->ahead_ms);
    compare_range(l, t);
    if (t->born_ms != l->pool.born_ms ||
        !same_range(t, l->pool.params.worker_from, l->pool.params.worker_to))
        l->described = false;
}

static bool epoch_agrees(struct lease *l, int64_t epoch)
{
    char want[TIMEFMT_MAX], found[TIMEFMT_MAX];
    if (!l->conf.epoch_pinned || epoch == l->conf.epoch_ms)
        return true;
    (void)err_set(&l->trouble, ERR_INVALID, "expected a pool of epoch %s, found epoch %s",
                  timefmt_rfc3339(want, l->conf.epoch_ms), timefmt_rfc3339(found, epoch));
    return false;
}

static bool layout_agrees(struct lease *l, const struct layout *layout)
{
    char want[LAYOUT_FIELDS_MAX], found[LAYOUT_FIELDS_MAX];
    if (l->conf.layout_pinned && !layout_equal(layout, &l->conf.layout)) {
        (void)err_set(&l->trouble, ERR_INVALID,
                      "expected a pool of layout \"%s\", found layout \"%s\"",
                      layout_fields(want, &l->conf.layout), layout_fields(found, layout));
        return false;
    }
    if (l->conf.active > 1 && layout_worker_is_lowest(layout)) {
        (void)err_set(&l->trouble, ERR_INVALID,
                      "expected workers.active: 1 for the pool's layout \"%s\", whose sequence "
                      "stands above the workerId; found %u",
                      layout_fields(found, layout), l->conf.active);
        return false;
    }
    return true;
}

bool terms_space_agrees(struct lease *l, const char *identity, int64_t *epoch,
                        struct layout *layout)
{
    return coord_identity_read(identity, epoch, layout, &l->trouble) == ERR_OK &&
           epoch_agrees(l, *epoch) && layout_agrees(l, layout);
}
