/*
 * sidflakectl pool status.
 */
#include "ctl/session.h"

#include "ids/layout.h"
#include "lease/recovery.h"

#include <stdio.h>

#define OPTIONS_MAX 512

static json_t *status_json(const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    char layout[LAYOUT_FIELDS_MAX];
    int64_t word = coord_pool_word_from(p, s->reply.era);
    return json_pack(
        "{s:s, s:I, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:I, "
        "s:{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:i,s:i}, s:I, s:s, s:s, s:o}",
        "identity", p->identity, "era", (json_int_t)s->reply.era, "epoch", ctl_time(p->epoch_ms),
        "layout", layout_fields(layout, &p->layout), "closed", (int)p->closed, "moved",
        (int)p->moved, "workers", (json_int_t)(p->params.worker_to - p->params.worker_from) + 1,
        "free", (json_int_t)s->reply.free, "held", (json_int_t)p->held, "made",
        ctl_time(p->born_ms), "opened", ctl_time(p->topen_ms), "opened_because",
        coord_pool_cause(p), "lasts_until", ctl_time(layout_end_ms(&p->layout, p->epoch_ms)),
        "lifetime_ms", (json_int_t)(layout_end_ms(&p->layout, p->epoch_ms) - s->reply.now_ms),
        "clock_skew_ms", (json_int_t)(s->reply.now_ms - s->asked_ms), "replicas_connected",
        (json_int_t)p->replicas, "parameters", "settle_ms",
        (json_int_t)coord_pool_settle(p, s->reply.now_ms), "least_settle_ms",
        (json_int_t)coord_pool_least_settle(p), "horizon_ms", (json_int_t)p->params.horizon_ms,
        "first_horizon_ms", (json_int_t)p->params.first_horizon_ms, "mature_after_ms",
        (json_int_t)p->params.mature_after_ms, "max_skew_ms", (json_int_t)p->params.max_skew_ms,
        "grace_ms", (json_int_t)p->params.grace_ms, "replicas", (int)p->params.replicas,
        "worker_from", (int)p->params.worker_from, "worker_to", (int)p->params.worker_to,
        "ahead_ms", (json_int_t)p->later.ahead_ms, "grants_from",
        ctl_time(ctl_session_grants_from(s)), "nothing_lost_from", word > 0 ? ctl_time(word) : "",
        "warnings", ctl_session_warnings(s));
}

static void print_settle(const struct ctl_session *s)
{
    const struct coord_params *q = &s->pool.params;
    const struct coord_later *l = &s->pool.later;
    int64_t now = coord_pool_settle(&s->pool, s->reply.now_ms);
    (void)printf("settle       %s", ctl_duration(now));
    if (now >= q->horizon_ms)
        (void)fputs(", the horizon", stdout);
    if (l->settle_from_ms > s->reply.now_ms)
        (void)printf("; %s from %s on", ctl_duration(l->settle_ms), ctl_time(l->settle_from_ms));
    else if (coord_pool_least_settle(&s->pool) < now)
        (void)printf("; was %s, by which sidecars go on renewing",
                     ctl_duration(coord_pool_least_settle(&s->pool)));
    (void)puts("");
}

/* To be copied where the pool moves: a horizon that is said shorter, or a range that is said
 * narrower, or a pool that is not taken for one that was lost, has the next one grant what holders
 * of this one still issue from. */
static void print_options(const struct ctl_session *s)
{
    char text[OPTIONS_MAX];
    struct buf b;
    buf_init(&b, text, sizeof text - 1);
    recovery_put_pool(&b, &s->pool, s->reply.now_ms);
    text[b.n] = '\0';
    if (coord_pool_ahead(&s->pool, s->reply.now_ms) > COORD_AHEAD_MAX_MS)
        (void)printf("options      none while the coordinator's clock is so far behind: any pool "
                     "of these workerIds would repeat IDs\n");
    else if (!b.failed)
        (void)printf("options      --after-loss%s\n", text);
}

static void print_status(const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    const struct coord_params *q = &p->params;
    char layout[LAYOUT_FIELDS_MAX];
    (void)printf("identity     %s\n", p->identity);
    (void)printf("workerIds    %u to %u: %llu held, %llu free\n", q->worker_from, q->worker_to,
                 (unsigned long long)p->held, (unsigned long long)s->reply.free);
    const char *cause = coord_pool_cause(p);
    (void)printf("era          %llu, since %s%s%s%s\n", (unsigned long long)s->reply.era,
                 ctl_time(p->topen_ms),
                 p->moved    ? ", closed as moved"
                 : p->closed ? ", closed"
                             : "",
                 *cause ? "; reopened: " : "", cause);
    (void)printf("layout       %s\n", layout_fields(layout, &p->layout));
    (void)printf("epoch        %s; IDs last until %s (%s)\n", ctl_time(p->epoch_ms),
                 ctl_time(layout_end_ms(&p->layout, p->epoch_ms)),
                 ctl_span(layout_end_ms(&p->layout, p->epoch_ms) - s->reply.now_ms));
    (void)printf("horizon      %s; %s for the first %s\n", ctl_duration(q->horizon_ms),
                 ctl_duration(q->first_horizon_ms), ctl_duration(q->mature_after_ms));
    (void)printf("max skew     %s; grace %s\n", ctl_duration(q->max_skew_ms),
                 ctl_duration(q->grace_ms));
    print_settle(s);
    if (p->later.ahead_ms > 0)
        (void)printf("ahead        %s, of a pool lost before\n", ctl_duration(p->later.ahead_ms));
    (void)printf("replicas     %u must acknowledge; %llu connected\n", q->replicas,
                 (unsigned long long)p->replicas);
    (void)printf("clock skew   %s\n", ctl_span(s->reply.now_ms - s->asked_ms));
    print_options(s);
    json_t *w = ctl_session_warnings(s), *one;
    size_t i;
    json_array_foreach(w, i, one)(void) printf("warning      %s\n", json_string_value(one));
    json_decref(w);
}

/* Where they cannot be read, that is a warning, and all else is told all the same; static:N has
 * none. */
static void look_at_workers(struct ctl_session *s)
{
    struct coord_snapshot snap;
    struct coord_reply r;
    if (!s->coord->driver->snapshot)
        return;
    if (coord_snapshot(s->coord, &snap, &r) != COORD_OK) {
        s->unread = r.err;
        return;
    }
    ctl_session_look(s, &snap);
    coord_snapshot_clear(&snap);
}

int ctl_pool_status(struct ctl_args *a)
{
    struct ctl_session s;
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    look_at_workers(&s);
    ctl_session_ask_server(&s);
    coord_free(s.coord);
    if (a->json)
        return ctl_print_json(CTL_OK, status_json(&s));
    print_status(&s);
    return ctl_flush(CTL_OK);
}
