#include "support/fake_coord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct fake_coord *of(struct coord *c)
{
    return (struct fake_coord *)c;
}

/* ---- the frame of every call ------------------------------------------------------------------
 */

/* Takes the lock, blocks where that is wanted, and writes the call down. */
static struct fake_coord_call *enter(struct fake_coord *f, enum fake_coord_op op)
{
    (void)pthread_mutex_lock(&f->lock);
    while (f->blocked) {
        f->inside++;
        (void)pthread_cond_broadcast(&f->change);
        (void)pthread_cond_wait(&f->change, &f->lock);
        f->inside--;
    }
    if (f->ncalls == FAKE_COORD_CALLS)
        abort();
    struct fake_coord_call *call = &f->call[f->ncalls++];
    memset(call, 0, sizeof *call);
    call->op = op;
    return call;
}

static bool take_fault(struct fake_coord *f, enum fake_coord_op op, struct fake_coord_fault *out)
{
    for (unsigned i = 0; i < f->nfaults; i++) {
        if (f->fault[i].op != op)
            continue;
        *out = f->fault[i];
        f->nfaults--;
        memmove(&f->fault[i], &f->fault[i + 1], (f->nfaults - i) * sizeof *f->fault);
        return true;
    }
    return false;
}

static uint64_t count_free(const struct fake_coord *f)
{
    uint64_t n = 0;
    for (unsigned w = f->pool.params.worker_from; w <= f->pool.params.worker_to; w++)
        n += !f->worker[w].held;
    return n;
}

static enum coord_status leave(struct fake_coord *f, struct fake_coord_call *call,
                               enum coord_status status, struct coord_reply *r)
{
    call->status = status;
    if (status == COORD_DOWN || status == COORD_REFUSED) {
        (void)err_set(&r->err, ERR_IO, "expected an answer, found none");
    } else {
        r->now_ms = clock_wall_ms(f->clock);
        r->era = status == COORD_NOPOOL ? 0 : 1 + f->reopened;
        r->free = count_free(f);
    }
    if (status == COORD_WAIT && r->wait_ms == 0)
        r->wait_ms = 700;
    (void)pthread_cond_broadcast(&f->change);
    (void)pthread_mutex_unlock(&f->lock);
    return status;
}

static enum coord_status check_pool(const struct fake_coord *f, const char *identity)
{
    return f->missing                                ? COORD_NOPOOL
           : strcmp(identity, f->pool.identity) != 0 ? COORD_WRONGPOOL
                                                     : COORD_OK;
}

/* ---- the operations ---------------------------------------------------------------------------
 */

static enum coord_status describe(struct coord *c, struct coord_pool *pool, struct coord_reply *r)
{
    struct fake_coord *f = of(c);
    struct fake_coord_fault fault;
    struct fake_coord_call *call = enter(f, FAKE_DESCRIBE);
    if (take_fault(f, FAKE_DESCRIBE, &fault))
        return leave(f, call, fault.status, r);
    if (!f->missing)
        *pool = f->pool;
    return leave(f, call, f->missing ? COORD_NOPOOL : COORD_OK, r);
}

static enum coord_status init(struct coord *c, const struct coord_init *in, struct coord_reply *r)
{
    struct fake_coord *f = of(c);
    struct fake_coord_fault fault;
    struct fake_coord_call *call = enter(f, FAKE_INIT);
    call->mode = in->mode;
    call->identity_said = in->identity_said;
    call->params = in->params;
    call->lost_ahead_ms = in->lost_ahead_ms;
    call->settle_ms = in->settle_ms;
    call->least_ms = in->least_ms;
    memcpy(call->identity, in->identity, sizeof call->identity);
    if (take_fault(f, FAKE_INIT, &fault) && !fault.takes_effect)
        return leave(f, call, fault.status, r);
    enum coord_status s = f->missing ? COORD_OK : COORD_EXISTS;
    if (f->missing) {
        memset(f->worker, 0, sizeof f->worker);
        memcpy(f->pool.identity, in->identity, sizeof f->pool.identity);
        if (coord_identity_read(in->identity, &f->pool.epoch_ms, &f->pool.layout, NULL))
            abort();
    }
    f->missing = false;
    return leave(f, call, s, r);
}

static bool find_free(struct fake_coord *f, int64_t caller_ms, uint16_t *worker,
                      enum coord_status *why)
{
    unsigned from = f->pool.params.worker_from;
    unsigned count = f->pool.params.worker_to - from + 1u;
    *why = COORD_EXHAUSTED;
    for (unsigned i = 0; i < count; i++) {
        unsigned w = from + (f->next - from + i) % count;
        if (f->worker[w].held)
            continue;
        *why = COORD_WAIT;
        if (f->worker[w].hwm_ms < caller_ms) {
            f->next = (uint16_t)(from + (w - from + 1) % count);
            *worker = (uint16_t)w;
            return true;
        }
    }
    return false;
}

static enum coord_status do_claim(struct fake_coord *f, int64_t caller_ms, struct coord_token nxt,
                                  struct coord_grant *out)
{
    uint16_t w;
    enum coord_status why;
    if (!find_free(f, caller_ms, &w, &why))
        return why;
    struct fake_coord_worker *r = &f->worker[w];
    int64_t now = clock_wall_ms(f->clock);
    *out = (struct coord_grant){.worker = w, .lo_ms = r->hwm_ms + 1, .t0_ms = now};
    r->hwm_ms = now + f->pool.params.first_horizon_ms;
    if (r->hwm_ms < out->lo_ms)
        r->hwm_ms = out->lo_ms;
    r->held = true;
    r->token = nxt;
    r->t0_ms = now;
    out->n = ++r->n;
    out->hi_ms = r->hwm_ms;
    return COORD_OK;
}

static enum coord_status claim(struct coord *c, const char *identity, int64_t caller_ms,
                               struct coord_token nxt, struct coord_grant *out,
                               struct coord_reply *r)
{
    struct fake_coord *f = of(c);
    struct fake_coord_fault fault;
    struct fake_coord_call *call = enter(f, FAKE_CLAIM);
    call->token = nxt;
    (void)snprintf(call->identity, sizeof call->identity, "%s", identity);
    bool failed = take_fault(f, FAKE_CLAIM, &fault);
    if (failed && !fault.takes_effect)
        return leave(f, call, fault.status, r);
    enum coord_status s = check_pool(f, identity);
    if (s == COORD_OK)
        s = do_claim(f, caller_ms, nxt, out);
    if (failed)
        memset(out, 0, sizeof *out);
    return leave(f, call, failed ? fault.status : s, r);
}

static void renew_one(struct fake_coord *f, struct coord_renewal *item)
{
    struct fake_coord_worker *r = &f->worker[item->worker % FAKE_COORD_WORKERS];
    const struct coord_params *p = &f->pool.params;
    int64_t now = clock_wall_ms(f->clock);
    item->how = COORD_HOW_LOST;
    item->released = !r->held && r->released;
    if (!r->held)
        return;
    if (coord_token_equal(r->token, item->nxt))
        item->how = COORD_HOW_AGAIN;
    else if (coord_token_equal(r->token, item->cur))
        item->how = COORD_HOW_RENEWED;
    else
        return;
    int64_t hi = now + (now - r->t0_ms >= p->mature_after_ms ? p->horizon_ms : p->first_horizon_ms);
    r->hwm_ms = hi > r->hwm_ms ? hi : r->hwm_ms;
    r->token = item->nxt;
    item->n = ++r->n;
    item->hi_ms = r->hwm_ms;
    item->t0_ms = r->t0_ms;
}

static enum coord_status renew(struct coord *c, const char *identity, const struct coord_caller *by,
                               struct coord_renewal *items, size_t n, struct coord_terms *terms,
                               struct coord_reply *r)
{
    struct fake_coord *f = of(c);
    struct fake_coord_fault fault;
    struct fake_coord_call *call = enter(f, FAKE_RENEW);
    call->by = *by;
    *terms = (struct coord_terms){.settle_ms = f->pool.later.settle_ms,
                                  .worker_from = f->pool.params.worker_from,
                                  .worker_to = f->pool.params.worker_to,
                                  .born_ms = f->pool.born_ms,
                                  .ahead_ms = f->pool.later.ahead_ms};
    (void)snprintf(call->identity, sizeof call->identity, "%s", identity);
    memcpy(call->items, items, n * sizeof *items);
    call->nitems = n;
    bool failed = take_fault(f, FAKE_RENEW, &fault);
    if (failed && !fault.takes_effect)
        return leave(f, call, fault.status, r);
    enum coord_status s = check_pool(f, identity);
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        renew_one(f, &items[i]);
    return leave(f, call, failed ? fault.status : s, r);
}

static enum coord_status do_release(struct fake_coord *f, const struct coord_release *item)
{
    struct fake_coord_worker *r = &f->worker[item->worker % FAKE_COORD_WORKERS];
    if (!r->held ||
        (!coord_token_equal(r->token, item->cur) && !coord_token_equal(r->token, item->nxt)))
        return COORD_LOST;
    if (item->has_last && r->n <= item->n + 1 && item->last_ms < r->hwm_ms)
        r->hwm_ms = item->last_ms;
    r->held = false;
    return COORD_OK;
}

static enum coord_status release(struct coord *c, const char *identity,
                                 const struct coord_release *item, struct coord_reply *r)
{
    struct fake_coord *f = of(c);
    struct fake_coord_fault fault;
    struct fake_coord_call *call = enter(f, FAKE_RELEASE);
    (void)snprintf(call->identity, sizeof call->identity, "%s", identity);
    call->release = *item;
    bool failed = take_fault(f, FAKE_RELEASE, &fault);
    if (failed && !fault.takes_effect)
        return leave(f, call, fault.status, r);
    enum coord_status s = check_pool(f, identity);
    if (s == COORD_OK)
        s = do_release(f, item);
    return leave(f, call, failed ? fault.status : s, r);
}

static void idle(struct coord *c)
{
    struct fake_coord *f = of(c);
    (void)pthread_mutex_lock(&f->lock);
    f->idles++;
    (void)pthread_mutex_unlock(&f->lock);
}

/* ---- the test's side --------------------------------------------------------------------------
 */

static const struct coord_driver driver = {.idle = idle,
                                           .describe = describe,
                                           .init = init,
                                           .claim = claim,
                                           .renew = renew,
                                           .release = release};

void fake_coord_init(struct fake_coord *f, struct clock *clock, const char *identity, uint16_t from,
                     uint16_t to)
{
    memset(f, 0, sizeof *f);
    f->coord.driver = &driver;
    f->clock = clock;
    f->next = from;
    f->pool.params = coord_params_default;
    f->pool.params.worker_from = from;
    f->pool.params.worker_to = to;
    (void)snprintf(f->pool.identity, sizeof f->pool.identity, "%s", identity);
    if (to >= FAKE_COORD_WORKERS ||
        coord_identity_read(identity, &f->pool.epoch_ms, &f->pool.layout, NULL))
        abort();
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->change, NULL);
}

void fake_coord_clear(struct fake_coord *f)
{
    (void)pthread_cond_destroy(&f->change);
    (void)pthread_mutex_destroy(&f->lock);
}

void fake_coord_fail(struct fake_coord *f, enum fake_coord_op op, enum coord_status status,
                     bool takes_effect)
{
    (void)pthread_mutex_lock(&f->lock);
    if (f->nfaults == FAKE_COORD_FAULTS)
        abort();
    f->fault[f->nfaults++] = (struct fake_coord_fault){op, status, takes_effect};
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_coord_block(struct fake_coord *f, bool on)
{
    (void)pthread_mutex_lock(&f->lock);
    f->blocked = on;
    (void)pthread_cond_broadcast(&f->change);
    (void)pthread_mutex_unlock(&f->lock);
}

bool fake_coord_await_blocked(struct fake_coord *f)
{
    struct timespec until;
    int r = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    (void)pthread_mutex_lock(&f->lock);
    while (f->inside == 0 && r == 0)
        r = pthread_cond_timedwait(&f->change, &f->lock, &until);
    bool inside = f->inside > 0;
    (void)pthread_mutex_unlock(&f->lock);
    return inside;
}

unsigned fake_coord_count(struct fake_coord *f, enum fake_coord_op op)
{
    unsigned n = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->ncalls; i++)
        n += f->call[i].op == op;
    (void)pthread_mutex_unlock(&f->lock);
    return n;
}

const struct fake_coord_call *fake_coord_latest(struct fake_coord *f, enum fake_coord_op op)
{
    const struct fake_coord_call *found = NULL;
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = f->ncalls; i > 0 && !found; i--)
        if (f->call[i - 1].op == op)
            found = &f->call[i - 1];
    (void)pthread_mutex_unlock(&f->lock);
    return found;
}

void fake_coord_steal(struct fake_coord *f, uint16_t worker)
{
    (void)pthread_mutex_lock(&f->lock);
    f->worker[worker].held = true;
    memset(&f->worker[worker].token, 0xEE, sizeof f->worker[worker].token);
    (void)pthread_mutex_unlock(&f->lock);
}
