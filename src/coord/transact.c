#include "coord/transact_call.h"

void transact_init(struct transact *t, const struct coord_driver *driver, struct store *store,
                   const struct coord_options *o)
{
    t->base.driver = driver;
    t->store = store;
    t->clock = o->clock;
    t->timeout_us = o->timeout_us;
    memcpy(t->pool, o->pool.p, o->pool.n);
    t->pool[o->pool.n] = '\0';
    if (o->who.n > 0)
        memcpy(t->who, o->who.p, o->who.n);
    t->who[o->who.n] = '\0';
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct transact_call transact_call_of(struct coord *c, enum store_access access,
                                      const char *identity)
{
    const struct transact *t = (const struct transact *)(void *)c;
    return (struct transact_call){
        .t = t,
        .access = access,
        .identity = identity,
        .deadline_us = clock_mono_us(t->clock) + t->timeout_us,
    };
}

bool transact_begins(struct transact_call *c)
{
    const struct transact *t = c->t;
    struct store *s = t->store;
    if (c->over)
        return false;
    memset(&c->reply, 0, sizeof c->reply);
    c->status = s->ops->begin(s, c->access, c->deadline_us, &c->reply);
    if (c->status != COORD_OK)
        return false;
    c->reply.now_ms = s->ops->now(s);
    c->u = (struct rules){
        .store = s,
        .r = &c->reply,
        .name = t->pool,
        .identity = c->identity,
        .who = t->who,
        .fingerprint = s->ops->fingerprint(s),
        .now_ms = c->reply.now_ms,
        .caller_ms = t->callers ? clock_wall_ms(t->callers) : c->reply.now_ms,
    };
    return true;
}

void transact_ends(struct transact_call *c, enum coord_status said)
{
    struct store *s = c->t->store;
    struct coord_reply failure = {.now_ms = c->reply.now_ms};
    bool conflict = false;
    c->status = s->ops->commit(s, &conflict, &failure);
    c->committed = c->status == COORD_OK;
    c->over = c->committed || !conflict || clock_mono_us(c->t->clock) > c->deadline_us;
    if (c->committed)
        c->status = said;
    else
        c->reply = failure;
}

/* why: the answer, in c->reply as well. */
static void turns_back(struct transact_call *c, enum coord_status why)
{
    struct store *s = c->t->store;
    s->ops->rollback(s);
    c->status = why;
    c->over = true;
}

enum coord_status transact_answer(const struct transact_call *c, struct coord_reply *r)
{
    *r = c->reply;
    return c->status;
}

/* ---- the operations ------------------------------------------------------------------------- */

enum coord_status transact_describe(struct coord *coord, struct coord_pool *pool,
                                    struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_READ, NULL);
    struct coord_pool found;
    while (transact_begins(&c)) {
        found = *pool;
        transact_ends(&c, rules_describe(&c.u, &found));
    }
    if (c.committed)
        *pool = found;
    return transact_answer(&c, r);
}

enum coord_status transact_new(struct coord *coord, const struct coord_init *in,
                               struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_CREATE, in->identity);
    struct store *s = c.t->store;
    while (transact_begins(&c)) {
        enum coord_status said = rules_init(&c.u, in), word = COORD_OK;
        if (said == COORD_OK && s->ops->vouch)
            word = s->ops->vouch(s, in, &c.reply);
        if (word == COORD_OK)
            transact_ends(&c, said);
        else
            turns_back(&c, word);
    }
    return transact_answer(&c, r);
}

enum coord_status transact_claim(struct coord *coord, const char *identity, int64_t caller_ms,
                                 struct coord_token nxt, struct coord_grant *out,
                                 struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    struct coord_grant grant;
    while (transact_begins(&c)) {
        grant = *out;
        c.u.caller_ms = caller_ms;
        transact_ends(&c, rules_claim(&c.u, nxt, &grant));
    }
    if (c.committed)
        *out = grant;
    return transact_answer(&c, r);
}

enum coord_status transact_renew(struct coord *coord, const char *identity,
                                 const struct coord_caller *by, struct coord_renewal *items,
                                 size_t n, struct coord_terms *terms, struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    struct coord_renewal mine[COORD_RENEW_MAX];
    struct coord_terms told;
    while (transact_begins(&c)) {
        memcpy(mine, items, n * sizeof *items);
        told = *terms;
        c.u.caller_ms = by->now_ms;
        transact_ends(&c, rules_renew(&c.u, by, mine, n, &told));
    }
    if (c.committed) {
        memcpy(items, mine, n * sizeof *items);
        *terms = told;
    }
    return transact_answer(&c, r);
}

enum coord_status transact_release(struct coord *coord, const char *identity,
                                   const struct coord_release *item, struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_release(&c.u, item));
    return transact_answer(&c, r);
}

enum coord_status transact_evict(struct coord *coord, const char *identity, uint16_t worker,
                                 struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_evict(&c.u, worker));
    return transact_answer(&c, r);
}

enum coord_status transact_close(struct coord *coord, const char *identity, bool moved,
                                 struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_close(&c.u, moved));
    return transact_answer(&c, r);
}

enum coord_status transact_unclose(struct coord *coord, const char *identity, int64_t lost_ahead_ms,
                                   struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_unclose(&c.u, lost_ahead_ms));
    return transact_answer(&c, r);
}

enum coord_status transact_repair(struct coord *coord, const char *identity,
                                  const uint16_t *workers, size_t n, struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_repair(&c.u, workers, n));
    return transact_answer(&c, r);
}

enum coord_status transact_settle(struct coord *coord, const char *identity, int64_t settle_ms,
                                  struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_settle(&c.u, settle_ms));
    return transact_answer(&c, r);
}

enum coord_status transact_nothing_lost(struct coord *coord, const char *identity,
                                        struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_nothing_lost(&c.u));
    return transact_answer(&c, r);
}

enum coord_status transact_clock_was_ahead(struct coord *coord, const char *identity,
                                           struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    while (transact_begins(&c))
        transact_ends(&c, rules_clock_was_ahead(&c.u));
    return transact_answer(&c, r);
}

/* The lists of a run that was not committed are nobody's. */
enum coord_status transact_snapshot(struct coord *coord, struct coord_snapshot *out,
                                    struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_READ_ALL, NULL);
    while (transact_begins(&c)) {
        struct coord_snapshot found = {.nworkers = 0};
        transact_ends(&c, rules_snapshot(&c.u, &found));
        if (c.committed)
            *out = found;
        else
            coord_snapshot_clear(&found);
    }
    return transact_answer(&c, r);
}
