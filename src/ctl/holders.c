/*
 * sidflakectl: the workerIds that are held, in some order.
 */
#include "ctl/holders.h"

#include "base/int64.h"
#include "ctl/session.h"

#include <stdlib.h>
#include <string.h>

const char *const ctl_sort_names[CTL_SORTS] = {"worker", "age", "left", "holder", "ceiling"};

bool ctl_sort_parse(const char *name, enum ctl_sort *out)
{
    for (int i = 0; i < CTL_SORTS; i++) {
        if (strcmp(name, ctl_sort_names[i]) != 0)
            continue;
        *out = (enum ctl_sort)i;
        return true;
    }
    return false;
}

bool ctl_holders_of(const struct coord_snapshot *snap, struct ctl_holders *out)
{
    out->n = 0;
    out->v = calloc(snap->nworkers + 1, sizeof *out->v);
    for (size_t i = 0; out->v && i < snap->nworkers; i++) {
        const struct coord_worker *w = &snap->workers[i];
        if (w->held)
            out->v[out->n++] = (struct ctl_holder){
                .w = w, .ceiling_ms = ctl_session_ceiling(&snap->pool, w), .host = "-", .pod = "-"};
    }
    return out->v != NULL;
}

/* A free record may have a holder all the same, from whom it was taken and who has not heard of it:
 * an operator's word, or a holder of another pool that was heard. One that was given back ends with
 * the last time used, which is over. */
int64_t ctl_holders_end(const struct coord_snapshot *snap, int64_t after_ms, uint64_t *held)
{
    int64_t end = max64(snap->pool.floor_ms, snap->pool.floor_short_ms);
    *held = 0;
    for (size_t i = 0; i < snap->nworkers; i++) {
        const struct coord_worker *w = &snap->workers[i];
        int64_t ceiling = ctl_session_ceiling(&snap->pool, w);
        *held += w->held && ceiling >= after_ms;
        end = max64(end, ceiling);
    }
    return end >= after_ms ? end : 0;
}

/* A free one of an earlier era counts as used up to the short floor; who never had a holder has no
 * record. */
static void rests_of_queued(const struct coord_snapshot *snap, int64_t *rest)
{
    const struct coord_pool *p = &snap->pool;
    int64_t short_ms = snap->reply.era > 1 ? p->floor_short_ms : 0;
    for (size_t i = 0; i < snap->nqueue; i++)
        if (snap->queue[i] >= p->params.worker_from && snap->queue[i] <= p->params.worker_to &&
            snap->queue[i] < COORD_WORKERS)
            rest[snap->queue[i]] = short_ms;
    for (size_t i = 0; i < snap->nworkers; i++) {
        const struct coord_worker *w = &snap->workers[i];
        if (w->worker >= COORD_WORKERS || rest[w->worker] == INT64_MAX)
            continue;
        if (w->held || w->unreadable)
            rest[w->worker] = INT64_MAX;
        else
            rest[w->worker] = w->stale ? max64(w->hwm_ms, short_ms) : w->hwm_ms;
    }
}

int64_t ctl_holders_first(const struct coord_snapshot *snap)
{
    static int64_t rest[COORD_WORKERS];
    int64_t end = INT64_MAX;
    for (size_t i = 0; i < COORD_WORKERS; i++)
        rest[i] = INT64_MAX;
    rests_of_queued(snap, rest);
    for (size_t i = 0; i < COORD_WORKERS; i++)
        end = min64(end, rest[i]);
    for (size_t i = 0; i < snap->nworkers; i++)
        if (snap->workers[i].held)
            end = min64(end, ctl_session_ceiling(&snap->pool, &snap->workers[i]) +
                                 snap->pool.params.grace_ms);
    return end < INT64_MAX ? end + 1 : 0;
}

int64_t ctl_holders_now(const struct coord_snapshot *snap, int64_t host_ms)
{
    int64_t now = snap->reply.now_ms;
    return now - host_ms > 2 * snap->pool.params.max_skew_ms ? host_ms : now;
}

int64_t ctl_holder_renewed(const struct coord_snapshot *snap, const struct coord_worker *w,
                           int64_t now_ms)
{
    const struct coord_params *k = &snap->pool.params;
    bool mature = w->hwm_ms - k->horizon_ms >= w->t0_ms + k->mature_after_ms;
    if (mature)
        return min64(now_ms, w->hwm_ms - k->horizon_ms);
    /* A range that was re-asserted is long, whatever was granted: but who has that one has renewed
     * while his tenure, which began with it, was young. */
    int64_t most_ms = min64(w->hwm_ms - k->first_horizon_ms, w->t0_ms + k->mature_after_ms);
    return min64(now_ms, most_ms);
}

void ctl_holders_clear(struct ctl_holders *h)
{
    free(h->v);
    *h = (struct ctl_holders){0};
}

static void field(json_t *who, const char *name, char out[CTL_HOLDER_TEXT])
{
    const char *v = json_string_value(json_object_get(who, name));
    (void)ctl_clean(out, CTL_HOLDER_TEXT, span_str(v && *v ? v : "-"));
}

void ctl_holder_read(struct ctl_holder *h)
{
    json_t *who = h->w->who ? json_loads(h->w->who, 0, NULL) : NULL;
    field(who, "host", h->host);
    field(who, "pod", h->pod);
    h->pid = json_integer_value(json_object_get(who, "pid"));
    json_decref(who);
}

/* ---- order ------------------------------------------------------------------------------------
 */

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_worker(const struct ctl_holder *a, const struct ctl_holder *b)
{
    return order(a->w->worker, b->w->worker);
}

static int by_age(const struct ctl_holder *a, const struct ctl_holder *b)
{
    return order(b->w->t0_ms, a->w->t0_ms);
}

static int by_ceiling(const struct ctl_holder *a, const struct ctl_holder *b)
{
    return order(a->ceiling_ms, b->ceiling_ms);
}

static int by_holder(const struct ctl_holder *a, const struct ctl_holder *b)
{
    int host = strcmp(a->host, b->host);
    int pod = strcmp(a->pod, b->pod);
    return host ? host : pod ? pod : order(a->pid, b->pid);
}

struct rule {
    int (*by)(const struct ctl_holder *, const struct ctl_holder *);
    bool reverse;
};

static int compare(const void *a, const void *b, void *to)
{
    const struct rule *r = to;
    int c = r->reverse ? r->by(b, a) : r->by(a, b);
    return c ? c : by_worker(a, b);
}

void ctl_holders_sort(struct ctl_holders *h, enum ctl_sort by, bool reverse)
{
    static int (*const rules[CTL_SORTS])(const struct ctl_holder *, const struct ctl_holder *) = {
        [CTL_SORT_WORKER] = by_worker,   [CTL_SORT_AGE] = by_age,
        [CTL_SORT_LEFT] = by_ceiling,    [CTL_SORT_HOLDER] = by_holder,
        [CTL_SORT_CEILING] = by_ceiling,
    };
    struct rule r = {rules[by], reverse};
    if (h->n > 0) /* v is NULL otherwise, which qsort_r must not be given */
        qsort_r(h->v, h->n, sizeof *h->v, compare, &r);
}
