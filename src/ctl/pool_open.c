/*
 * sidflakectl pool open: takes pool close and drain back.
 *
 * By itself it only makes grants possible again, by the rules that hold anyhow. What those cannot
 * know is whether the pool lives elsewhere by now: so that is asked, and not taken where the pool
 * bears the mark of it.
 */
#include "ctl/session.h"

#include "base/int64.h"

#include <stdio.h>

static int refuse_moved(const struct ctl_args *a)
{
    char command[CTL_COMMAND_MAX], url[COORD_URL_MAX];
    return ctl_fail(
        CTL_BAD,
        "pool \"%.64s\" at %.256s was closed as moved, or a sidecar was heard since that "
        "has workerIds of another pool: beside the one in its place it is not opened, "
        "since IDs would repeat. Close that one, then `%s`, with --horizon, --max-skew and "
        "--ahead as the line options of its `pool status` has them: sidecars that run go on, new "
        "ones wait until all that it granted has ended, or a day where --horizon is not said",
        ctl_session_pool(a), ctl_session_url(a, url),
        ctl_session_command(a, "sidflakectl pool open --moved-back", command));
}

/* What is said of the other pool is what a pool may be. */
static int check(const struct ctl_args *a)
{
    struct coord_params p = coord_params_default;
    struct err e;
    if (!a->moved_back && (a->has_horizon || a->has_max_skew || a->has_ahead))
        return ctl_fail(CTL_USAGE,
                        "pool open: --horizon, --max-skew and --ahead are those of the pool "
                        "that was in its place: expected with --moved-back alone");
    p.horizon_ms = a->has_horizon ? a->params.horizon_ms : COORD_HORIZON_MAX_MS;
    p.max_skew_ms = a->params.max_skew_ms;
    p.first_horizon_ms = p.horizon_ms;
    p.mature_after_ms = COORD_HORIZON_MAX_MS;
    return coord_params_check(&p, &e) ? ctl_fail(CTL_USAGE, "%s", e.text) : CTL_OK;
}

/* When all has ended that either pool granted, or lost. */
static int64_t both_end(const struct ctl_session *s)
{
    int64_t ahead = max64(ctl_session_lost_ahead(s->args), s->pool.later.ahead_ms);
    return max64(ctl_session_last_range(s), s->reply.now_ms + ahead);
}

static int confirm(const struct ctl_session *s)
{
    const struct ctl_args *a = s->args;
    char url[COORD_URL_MAX], question[COORD_URL_MAX + 512];
    const char *at = ctl_session_url(a, url);
    if (a->moved_back)
        (void)snprintf(question, sizeof question,
                       "Open pool \"%.64s\" at %s as one that comes back? The pool that was in its "
                       "place has to be closed: if it is not, IDs will repeat. New sidecars get a "
                       "workerId from %s on.",
                       ctl_session_pool(a), at, ctl_time(both_end(s) + 1));
    else
        (void)snprintf(question, sizeof question,
                       "Open pool \"%.64s\" at %s? If it was made again at another coordinator and "
                       "is not closed there, IDs will repeat; if it was and is, say --moved-back. "
                       "%llu workerIds are held; it was asked last on %s.",
                       ctl_session_pool(a), at, (unsigned long long)s->pool.held,
                       ctl_time(s->pool.tmax_ms));
    return ctl_confirm(a, "pool open", question);
}

static int tell(const struct ctl_session *s, bool was_closed)
{
    int64_t from = ctl_session_grants_from(s);
    bool waits = from > s->reply.now_ms;
    if (s->args->json)
        return ctl_print_json(CTL_OK, json_pack("{s:b, s:b, s:s}", "open", 1, "changed",
                                                (int)was_closed, "grants_from", ctl_time(from)));
    if (!was_closed)
        (void)puts("the pool is open already: nothing was changed");
    else
        (void)printf("open: sidecars renew again; new ones get a workerId %s%s%s%s\n",
                     waits ? "from " : "at once", waits ? ctl_time(from) : "", waits ? " on" : "",
                     waits && s->reply.free == 0 ? ", if its holder is gone: none is free" : "");
    return ctl_flush(CTL_OK);
}

int ctl_pool_open(struct ctl_args *a)
{
    struct ctl_session s;
    struct coord_snapshot snap;
    int status = check(a);
    if (!status)
        status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    bool was_closed = s.pool.closed;
    enum coord_status r = COORD_OK;
    if (was_closed && s.pool.moved && !a->moved_back)
        status = refuse_moved(a);
    else if (was_closed)
        status = confirm(&s);
    if (!status && was_closed)
        r = coord_unclose(s.coord, s.pool.identity, a->moved_back ? ctl_session_lost_ahead(a) : 0,
                          &s.reply);
    if (!status && r == COORD_OK)
        r = coord_snapshot(s.coord, &snap, &s.reply);
    coord_free(s.coord);
    if (status)
        return status;
    if (r != COORD_OK)
        return ctl_session_fail_change(a, r, &s.reply);
    s.pool = snap.pool;
    ctl_session_look(&s, &snap);
    coord_snapshot_clear(&snap);
    return tell(&s, was_closed);
}
