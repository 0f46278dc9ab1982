/*
 * static:N, with no coordinator: workerId N is this sidecar's by the operator's word.
 *
 * Nothing is shared, so there is nothing to renew or lose: a range begins at the caller's clock and
 * ends so far ahead that it bounds nothing but a clock gone wild. What has been used before is the
 * state page's to know.
 *
 * URL: static:N[?epoch=RFC3339][&layout=LAYOUT], N 0..32767, or up to what the layout has room for;
 * without an epoch 2026-01-01T00:00:00Z, without a layout the usual one. LAYOUT is a name: that of
 * a preset, or as in an identity.
 */
#include "coord/outcome.h"

#include "base/dec.h"
#include "base/timefmt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define AHEAD_MS (INT64_C(3652) * 24 * 3600 * 1000) /* ten years */

struct fixed {
    struct coord base;
    struct clock *clock;
    uint16_t worker;
    int64_t born_ms; /* as described */
    char identity[COORD_IDENTITY_MAX];
};

static struct fixed *fixed_of(struct coord *c)
{
    return (struct fixed *)(void *)c;
}

static enum err_code read_option(struct span one, int64_t *epoch_ms, struct layout *layout,
                                 struct err *e)
{
    if (span_starts(one, SPAN("layout=")))
        return layout_parse(span_skip(one, sizeof "layout=" - 1), layout, e);
    if (span_starts(one, SPAN("epoch=")) &&
        timefmt_parse_rfc3339(span_skip(one, sizeof "epoch=" - 1), epoch_ms))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "coordinator url: expected static:N?epoch=YYYY-MM-DDTHH:MM:SSZ&layout=NAME, "
                   "found \"%.*s\"",
                   (int)(one.n < 64 ? one.n : 64), one.p);
}

static enum err_code read_url(struct span url, uint64_t *worker, int64_t *epoch_ms,
                              struct layout *layout, struct err *e)
{
    struct span rest = span_skip(url, sizeof "static:" - 1);
    struct span number = span_cut(&rest, '?');
    *epoch_ms = LAYOUT_EPOCH_DEFAULT_MS;
    *layout = layout_usual;
    while (rest.p) {
        enum err_code r = read_option(span_cut(&rest, '&'), epoch_ms, layout, e);
        if (r)
            return r;
    }
    uint16_t most = coord_worker_most(layout);
    if (dec_u64(number, worker) && *worker <= most)
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "coordinator url: expected static:N with N of 0 to %u, found \"%.*s\"", most,
                   (int)(url.n < 64 ? url.n : 64), url.p);
}

static enum err_code fixed_open(const struct coord_options *o, struct coord **out, struct err *e)
{
    struct layout layout;
    uint64_t worker;
    int64_t epoch_ms;
    char uuid[64];
    enum err_code code = read_url(o->url, &worker, &epoch_ms, &layout, e);
    if (code)
        return code;
    struct fixed *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(e, ERR_NOMEM, "no memory for a coordinator");
    f->base.driver = &coord_static;
    f->clock = o->clock;
    f->worker = (uint16_t)worker;
    (void)snprintf(uuid, sizeof uuid, "00000000-0000-0000-0000-%012" PRIu64, worker);
    code = coord_identity_make(f->identity, span_str(uuid), epoch_ms, &layout, e);
    if (code) {
        free(f);
        return code;
    }
    *out = &f->base;
    return ERR_OK;
}

static void fixed_free(struct coord *c)
{
    free(fixed_of(c));
}

static void now(struct fixed *f, struct coord_reply *r)
{
    r->now_ms = clock_wall_ms(f->clock);
    r->era = 1;
}

static enum coord_status fixed_describe(struct coord *c, struct coord_pool *pool,
                                        struct coord_reply *r)
{
    struct fixed *f = fixed_of(c);
    now(f, r);
    memcpy(pool->identity, f->identity, sizeof pool->identity);
    pool->params = coord_params_default;
    pool->params.worker_from = pool->params.worker_to = f->worker;
    pool->born_ms = f->born_ms = pool->topen_ms = pool->tmax_ms = r->now_ms;
    pool->held = 1;
    return outcome_of_pool(pool, r);
}

static enum coord_status fixed_init(struct coord *c, const struct coord_init *in,
                                    struct coord_reply *r)
{
    struct fixed *f = fixed_of(c);
    now(f, r);
    return outcome_refused(r, "init: expected a coordinator that keeps pools, found static:%u (%s)",
                           f->worker, in->identity);
}

/* true: the caller means this pool. */
static bool begin(struct fixed *f, const char *identity, struct coord_reply *r)
{
    now(f, r);
    return strcmp(identity, f->identity) == 0;
}

static enum coord_status wrong(struct fixed *f, const char *identity, struct coord_reply *r)
{
    r->era = 0;
    return outcome_wrongpool(r, identity, span_str(f->identity));
}

static enum coord_status fixed_claim(struct coord *c, const char *identity, int64_t caller_ms,
                                     struct coord_token nxt, struct coord_grant *out,
                                     struct coord_reply *r)
{
    struct fixed *f = fixed_of(c);
    (void)nxt;
    if (!begin(f, identity, r))
        return wrong(f, identity, r);
    *out = (struct coord_grant){
        .worker = f->worker,
        .lo_ms = caller_ms,
        .hi_ms = (caller_ms > r->now_ms ? caller_ms : r->now_ms) + AHEAD_MS,
        .n = 1,
        .t0_ms = r->now_ms,
    };
    return COORD_OK;
}

static enum coord_status fixed_renew(struct coord *c, const char *identity,
                                     const struct coord_caller *by, struct coord_renewal *items,
                                     size_t n, struct coord_terms *terms, struct coord_reply *r)
{
    struct fixed *f = fixed_of(c);
    (void)by;
    if (!begin(f, identity, r))
        return wrong(f, identity, r);
    terms->worker_from = terms->worker_to = f->worker;
    terms->born_ms = f->born_ms;
    for (size_t i = 0; i < n; i++) {
        items[i].how = items[i].worker == f->worker ? COORD_HOW_RENEWED : COORD_HOW_LOST;
        if (items[i].how == COORD_HOW_LOST)
            continue;
        if (items[i].hi_ms < r->now_ms + AHEAD_MS)
            items[i].hi_ms = r->now_ms + AHEAD_MS;
        items[i].n++;
        items[i].t0_ms = r->now_ms;
    }
    return COORD_OK;
}

static enum coord_status fixed_release(struct coord *c, const char *identity,
                                       const struct coord_release *item, struct coord_reply *r)
{
    struct fixed *f = fixed_of(c);
    if (!begin(f, identity, r))
        return wrong(f, identity, r);
    return item->worker == f->worker ? COORD_OK : COORD_LOST;
}

static const char *const schemes[] = {"static", NULL};

const struct coord_driver coord_static = {
    .schemes = schemes,
    .forms = "static:0..32767",
    .open = fixed_open,
    .free = fixed_free,
    .describe = fixed_describe,
    .init = fixed_init,
    .claim = fixed_claim,
    .renew = fixed_renew,
    .release = fixed_release,
};
