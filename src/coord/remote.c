/*
 * The coordinator in Redis: each operation is one call of pool.lua, whose answer is believed only
 * as far as answer.h says.
 */
#include "coord/remote.h"
#include "coord/outcome.h"

#include <stdio.h>
#include <stdlib.h>

#define REPAIR_MAX COORD_REPAIR_MAX /* workerIds per script */

static struct answer_to asked(const struct remote *m, const char *identity)
{
    return (struct answer_to){m->pool, identity};
}

static enum coord_status plainly(struct remote *m, struct remote_call *c, const char *identity,
                                 struct coord_reply *r)
{
    struct answer a;
    struct answer_to to = asked(m, identity);
    enum coord_status s = remote_run(m, c, &a, r);
    if (s == COORD_OK)
        s = answer_plain(&a, &to, r);
    return courier_end(&m->courier, s);
}

/* ---- the operations ------------------------------------------------------------------------- */

static enum coord_status remote_describe(struct coord *base, struct coord_pool *pool,
                                         struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    struct answer a;
    struct answer_to to = asked(m, NULL);
    remote_call_begin(&c, m, "describe", "");
    enum coord_status s = remote_run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_describe(&a, &to, pool, r);
    if (s == COORD_OK && pool->params.replicas > 0)
        (void)courier_counts(&m->courier);
    return courier_end(&m->courier, s);
}

/* The replicas were too few for a pool to be made, or went away while it was. */
static enum coord_status not_made(const struct answer *a, enum coord_status s,
                                  struct coord_reply *r)
{
    struct err e = r->err;
    if (s != COORD_DOWN || a->n == 0)
        return s;
    if (span_eq(a->f[0], SPAN("CONFIRM")))
        return outcome_down(r, e.code,
                            "no pool was made (%s): connect the replicas first, or say that fewer "
                            "must acknowledge",
                            e.text);
    if (!span_eq(a->f[0], SPAN("OK")))
        return s;
    return outcome_down(r, e.code,
                        "the pool was made, but on this server alone (%s): it grants nothing until "
                        "the replicas are connected; should a failover lose it before that, make "
                        "it again",
                        e.text);
}

static enum coord_status remote_init(struct coord *base, const struct coord_init *in,
                                     struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    const struct coord_params *p = &in->params;
    const int64_t args[] = {p->horizon_ms,     p->first_horizon_ms, p->mature_after_ms,
                            p->max_skew_ms,    p->grace_ms,         p->replicas,
                            p->worker_from,    p->worker_to,        in->lost_ahead_ms,
                            in->replicas_said, in->settle_ms,       in->least_ms,
                            !in->identity_said};
    struct remote_call c;
    struct answer a;
    struct answer_to to = asked(m, in->identity);
    remote_call_begin(&c, m, "init", in->identity);
    remote_call_str(&c, coord_init_mode_name(in->mode));
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        remote_call_num(&c, args[i]);
    if (p->replicas > 0)
        (void)courier_counts(&m->courier);
    enum coord_status s = remote_run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_init(&a, &to, r);
    else
        s = not_made(&a, s, r);
    return courier_end(&m->courier, s);
}

static enum coord_status remote_claim(struct coord *base, const char *identity, int64_t caller_ms,
                                      struct coord_token nxt, struct coord_grant *out,
                                      struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    struct answer a;
    struct answer_to to = asked(m, identity);
    remote_call_begin_at(&c, m, "claim", identity, caller_ms);
    remote_call_token(&c, nxt);
    remote_call_put(&c, span_of(m->who, m->who_n));
    enum coord_status s = remote_run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_claim(&a, &to, c.caller_ms, out, r);
    return courier_end(&m->courier, s);
}

static enum coord_status remote_renew(struct coord *base, const char *identity,
                                      const struct coord_caller *by, struct coord_renewal *items,
                                      size_t n, struct coord_terms *terms, struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    struct answer a;
    struct answer_to to = asked(m, identity);
    remote_call_begin_at(&c, m, "renew", identity, by->now_ms);
    remote_call_num(&c, by->ahead_ms);
    remote_call_num(&c, by->every_ms);
    remote_call_put(&c, span_of(m->who, m->who_n));
    for (size_t i = 0; i < n; i++) {
        remote_call_num(&c, items[i].worker);
        remote_call_token(&c, items[i].cur);
        remote_call_token(&c, items[i].nxt);
        remote_call_num(&c, items[i].hi_ms);
        remote_call_num(&c, (int64_t)items[i].n);
    }
    enum coord_status s = remote_run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_renew(&a, &to, items, n, terms, r);
    return courier_end(&m->courier, s);
}

static enum coord_status remote_release(struct coord *base, const char *identity,
                                        const struct coord_release *item, struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    remote_call_begin(&c, m, "release", identity);
    remote_call_num(&c, item->worker);
    remote_call_token(&c, item->cur);
    remote_call_token(&c, item->nxt);
    if (item->has_last)
        remote_call_num(&c, item->last_ms);
    else
        remote_call_str(&c, "");
    remote_call_num(&c, (int64_t)item->n);
    return plainly(m, &c, identity, r);
}

static enum coord_status remote_evict(struct coord *base, const char *identity, uint16_t worker,
                                      struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    remote_call_begin(&c, m, "evict", identity);
    remote_call_num(&c, worker);
    return plainly(m, &c, identity, r);
}

/* An operation whose one argument is a number. */
static enum coord_status said(struct coord *base, const char *op, const char *identity,
                              int64_t number, struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    remote_call_begin(&c, m, op, identity);
    remote_call_num(&c, number);
    return plainly(m, &c, identity, r);
}

static enum coord_status remote_close(struct coord *base, const char *identity, bool moved,
                                      struct coord_reply *r)
{
    return said(base, "close", identity, moved, r);
}

static enum coord_status remote_unclose(struct coord *base, const char *identity,
                                        int64_t lost_ahead_ms, struct coord_reply *r)
{
    return said(base, "unclose", identity, lost_ahead_ms, r);
}

static enum coord_status remote_settle(struct coord *base, const char *identity, int64_t settle_ms,
                                       struct coord_reply *r)
{
    return said(base, "settle", identity, settle_ms, r);
}

/* One without. */
static enum coord_status word(struct coord *base, const char *op, const char *identity,
                              struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct remote_call c;
    remote_call_begin(&c, m, op, identity);
    return plainly(m, &c, identity, r);
}

static enum coord_status remote_nothing_lost(struct coord *base, const char *identity,
                                             struct coord_reply *r)
{
    return word(base, "nothing-lost", identity, r);
}

static enum coord_status remote_clock_was_ahead(struct coord *base, const char *identity,
                                                struct coord_reply *r)
{
    return word(base, "clock-was-ahead", identity, r);
}

/* Each part has the whole timeout: a repair of all workerIds is an operator's, and may take long.
 */
static enum coord_status remote_repair(struct coord *base, const char *identity,
                                       const uint16_t *workers, size_t n, struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    enum coord_status s = COORD_OK;
    size_t done = 0;
    do {
        struct remote_call c;
        remote_call_begin(&c, m, "repair", identity);
        remote_call_list(&c, workers + done, n - done < REPAIR_MAX ? n - done : REPAIR_MAX);
        done += n - done < REPAIR_MAX ? n - done : REPAIR_MAX;
        s = plainly(m, &c, identity, r);
    } while (s == COORD_OK && done < n);
    return s;
}

static enum coord_status remote_snapshot(struct coord *base, struct coord_snapshot *out,
                                         struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct answer_to to = asked(m, NULL);
    return courier_snapshot(&m->courier, &to, out, r);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void remote_idle(struct coord *c)
{
    courier_drop(&remote_of(c)->courier);
}

static bool remote_risks(struct coord *c, unsigned *out)
{
    struct remote *m = remote_of(c);
    courier_start(&m->courier);
    bool told = courier_risks(&m->courier, out);
    (void)courier_end(&m->courier, told ? COORD_OK : COORD_DOWN);
    return told;
}

static enum coord_status remote_writes(struct coord *c, struct coord_reply *r)
{
    struct remote *m = remote_of(c);
    courier_start(&m->courier);
    return courier_end(&m->courier, courier_writes(&m->courier, r));
}

static void remote_free(struct coord *c)
{
    struct remote *m = remote_of(c);
    courier_clear(&m->courier);
    free(m);
}

static enum err_code configure(struct remote *m, const struct coord_options *o, struct err *e)
{
    static const char *const names[COURIER_KEYS] = {"h", "free", "exp", "who"};
    enum err_code code = redis_url_parse(&m->courier.to, o->url, e);
    if (code)
        return code;
    if (o->password.n > sizeof m->courier.to.password.b)
        return err_set(e, ERR_RANGE, "password: expected at most %zu bytes, found %zu",
                       sizeof m->courier.to.password.b, o->password.n);
    if (o->password.n > 0) {
        memcpy(m->courier.to.password.b, o->password.p, o->password.n);
        m->courier.to.password.n = o->password.n;
    }
    /* Where there is no password it is the place to name one in. */
    if (o->password.n > 0 || m->courier.to.password.n == 0)
        m->courier.password_of = o->password_of;
    if (o->password_file && !(m->courier.password_file = strdup(o->password_file)))
        return err_set(e, ERR_NOMEM, "no memory for a path");
    if (m->courier.to.user.n > 0 && m->courier.to.password.n == 0)
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected a password with the user, found none");
    memcpy(m->pool, o->pool.p, o->pool.n);
    for (size_t i = 0; i < COURIER_KEYS; i++)
        (void)snprintf(m->courier.key[i], sizeof m->courier.key[i], "sidflake:{%s}:%s", m->pool,
                       names[i]);
    if (o->who.n > 0)
        memcpy(m->who, o->who.p, o->who.n);
    m->who_n = o->who.n;
    m->courier.timeout_us = o->timeout_us;
    m->courier.peer.clock = o->clock;
    return ERR_OK;
}

static enum err_code remote_open(const struct coord_options *o, struct coord **out, struct err *e)
{
    struct remote *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(e, ERR_NOMEM, "no memory for a coordinator");
    m->base.driver = &coord_redis;
    enum err_code code = configure(m, o, e);
    if (code) {
        remote_free(&m->base);
        return code;
    }
    *out = &m->base;
    return ERR_OK;
}

static const char *const schemes[] = {"redis", "redis+unix", "redis+sentinel", NULL};

const struct coord_driver coord_redis = {
    .schemes = schemes,
    .forms = "redis://HOST:PORT/DB, redis+unix:///PATH, redis+sentinel://HOST:PORT,.../MASTER",
    .open = remote_open,
    .free = remote_free,
    .idle = remote_idle,
    .keep_ms = 1000, /* no longer: sentinels may name another, or a name's address change */
    .risks = remote_risks,
    .writes = remote_writes,
    .describe = remote_describe,
    .init = remote_init,
    .claim = remote_claim,
    .renew = remote_renew,
    .release = remote_release,
    .evict = remote_evict,
    .close = remote_close,
    .unclose = remote_unclose,
    .repair = remote_repair,
    .settle = remote_settle,
    .nothing_lost = remote_nothing_lost,
    .clock_was_ahead = remote_clock_was_ahead,
    .snapshot = remote_snapshot,
    .sequences = &remote_sequences,
};
