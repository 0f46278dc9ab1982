/*
 * sidflakectl pool list: who holds what.
 */
#include "ctl/holders.h"
#include "ctl/session.h"

#include <stdio.h>

static json_t *worker_json(const struct ctl_holder *h, int64_t now_ms)
{
    const struct coord_worker *w = h->w;
    json_t *who = w->who ? json_loads(w->who, JSON_REJECT_DUPLICATES, NULL) : NULL;
    return json_pack("{s:i, s:b, s:I, s:s, s:s, s:I, s:I, s:o}", "worker", (int)w->worker, "stale",
                     (int)w->stale, "era", (json_int_t)w->era, "since", ctl_time(w->t0_ms),
                     "ceiling", ctl_time(w->hwm_ms), "age_ms", (json_int_t)(now_ms - w->t0_ms),
                     "range_left_ms", (json_int_t)(w->hwm_ms - now_ms), "holder",
                     who ? who : json_null());
}

static json_t *list_json(const struct ctl_holders *h, int64_t now_ms)
{
    json_t *list = json_array();
    for (size_t i = 0; i < h->n; i++)
        if (json_array_append_new(list, worker_json(&h->v[i], now_ms))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static void print_list(const struct ctl_holders *h, int64_t now_ms)
{
    (void)printf("%-8s %-24s %-24s %-8s %-14s %-14s %s\n", "WORKERID", "HOST", "POD", "PID", "AGE",
                 "RANGE LEFT", "CEILING");
    for (size_t i = 0; i < h->n; i++) {
        const struct ctl_holder *o = &h->v[i];
        const struct coord_worker *w = o->w;
        (void)printf("%-8u %-24s %-24s %-8lld %-14s %-14s %s%s\n", w->worker, o->host, o->pod,
                     (long long)o->pid, ctl_span(now_ms - w->t0_ms), ctl_span(w->hwm_ms - now_ms),
                     ctl_time(w->hwm_ms), w->stale ? "  (of an earlier era)" : "");
    }
}

int ctl_pool_list(struct ctl_args *a)
{
    struct ctl_session s;
    struct coord_snapshot snap = {0};
    struct ctl_holders h;
    enum ctl_sort by = CTL_SORT_WORKER;
    if (a->sort && !ctl_sort_parse(a->sort, &by))
        return ctl_fail(CTL_USAGE,
                        "--sort: expected worker, age, left, holder or ceiling, found \"%s\"",
                        a->sort);
    int status = ctl_session_snapshot(a, &s, &snap);
    if (status)
        return status;
    coord_free(s.coord);
    if (!ctl_holders_of(&snap, &h)) {
        coord_snapshot_clear(&snap);
        return ctl_fail(CTL_BAD, "no memory for a list");
    }
    for (size_t i = 0; i < h.n; i++)
        ctl_holder_read(&h.v[i]);
    ctl_holders_sort(&h, by, a->reverse);
    if (a->json)
        status = ctl_print_json(CTL_OK, list_json(&h, snap.reply.now_ms));
    else
        print_list(&h, snap.reply.now_ms);
    ctl_holders_clear(&h);
    coord_snapshot_clear(&snap);
    return a->json ? status : ctl_flush(CTL_OK);
}
