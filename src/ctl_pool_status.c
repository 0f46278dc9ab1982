/*
 * sidflakectl pool status.
 */
#include "ctl_session.h"

#include "ids/layout.h"

#include <stdio.h>

static json_t *status_json(const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    return json_pack(
        "{s:s, s:I, s:s, s:b, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, "
        "s:{s:I,s:I,s:I,s:I,s:I,s:i,s:i,s:i}, s:o}",
        "identity", p->identity, "era", (json_int_t)s->reply.era, "epoch", ctl_time(p->epoch_ms),
        "closed", (int)p->closed, "workers",
        (json_int_t)(p->params.worker_to - p->params.worker_from) + 1, "free",
        (json_int_t)s->reply.free, "held", (json_int_t)p->held, "made", ctl_time(p->born_ms),
        "opened", ctl_time(p->topen_ms), "lasts_until", ctl_time(layout_end_ms(p->epoch_ms)),
        "lifetime_ms", (json_int_t)(layout_end_ms(p->epoch_ms) - s->reply.now_ms), "clock_skew_ms",
        (json_int_t)(s->reply.now_ms - s->asked_ms), "replicas_connected", (json_int_t)p->replicas,
        "parameters", "horizon_ms", (json_int_t)p->params.horizon_ms, "first_horizon_ms",
        (json_int_t)p->params.first_horizon_ms, "mature_after_ms",
        (json_int_t)p->params.mature_after_ms, "max_skew_ms", (json_int_t)p->params.max_skew_ms,
        "grace_ms", (json_int_t)p->params.grace_ms, "replicas", (int)p->params.replicas,
        "worker_from", (int)p->params.worker_from, "worker_to", (int)p->params.worker_to,
        "warnings", ctl_session_warnings(s));
}

static void print_status(const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    const struct coord_params *q = &p->params;
    (void)printf("identity     %s\n", p->identity);
    (void)printf("workerIds    %u to %u: %llu held, %llu free\n", q->worker_from, q->worker_to,
                 (unsigned long long)p->held, (unsigned long long)s->reply.free);
    (void)printf("era          %llu, since %s%s\n", (unsigned long long)s->reply.era,
                 ctl_time(p->topen_ms), p->closed ? ", closed" : "");
    (void)printf("epoch        %s; IDs last until %s (%s)\n", ctl_time(p->epoch_ms),
                 ctl_time(layout_end_ms(p->epoch_ms)),
                 ctl_span(layout_end_ms(p->epoch_ms) - s->reply.now_ms));
    (void)printf("horizon      %s; %s for the first %s\n", ctl_span(q->horizon_ms),
                 ctl_span(q->first_horizon_ms), ctl_span(q->mature_after_ms));
    (void)printf("max skew     %s; grace %s\n", ctl_span(q->max_skew_ms), ctl_span(q->grace_ms));
    (void)printf("replicas     %u must acknowledge; %llu connected\n", q->replicas,
                 (unsigned long long)p->replicas);
    (void)printf("clock skew   %s\n", ctl_span(s->reply.now_ms - s->asked_ms));
    json_t *w = ctl_session_warnings(s), *one;
    size_t i;
    json_array_foreach(w, i, one)(void) printf("warning      %s\n", json_string_value(one));
    json_decref(w);
}

int ctl_pool_status(struct ctl_args *a)
{
    struct ctl_session s;
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    coord_free(s.coord);
    if (a->json)
        return ctl_print_json(CTL_OK, status_json(&s));
    print_status(&s);
    return ctl_flush(CTL_OK);
}
