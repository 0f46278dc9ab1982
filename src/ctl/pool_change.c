/*
 * sidflakectl pool release, close, set, reopen: what changes a pool by one word. pool_open.c has
 * pool open.
 */
#include "ctl/holders.h"
#include "ctl/session.h"

#include "base/int64.h"

#include <stdio.h>
#include <unistd.h>

/* NULL: it is not held. */
static const struct coord_worker *holder_of(const struct coord_snapshot *snap, uint16_t worker)
{
    for (size_t i = 0; i < snap->nworkers; i++)
        if (snap->workers[i].worker == worker && snap->workers[i].held)
            return &snap->workers[i];
    return NULL;
}

/* While somebody thinks about an answer the one whom he was asked about may go, and another come.
 */
static int check_same(const struct ctl_args *a, struct ctl_session *s,
                      const struct coord_worker *asked)
{
    struct coord_snapshot snap;
    enum coord_status r = coord_snapshot(s->coord, &snap, &s->reply);
    if (r != COORD_OK)
        return ctl_session_fail(a, r, &s->reply);
    const struct coord_worker *w = holder_of(&snap, asked->worker);
    bool same = w && w->t0_ms == asked->t0_ms;
    coord_snapshot_clear(&snap);
    return same ? CTL_OK
                : ctl_fail(CTL_BAD,
                           "workerId %u is not held by that one any more: nothing was changed",
                           asked->worker);
}

/* Who was heard a moment ago lives: --yes may be a script's, which does not know. */
static int check_gone(const struct ctl_args *a, struct ctl_session *s,
                      const struct coord_snapshot *snap)
{
    const struct coord_worker *w = holder_of(snap, (uint16_t)a->worker);
    if (!w || a->even_if_alive)
        return CTL_OK;
    struct ctl_holder h = {.w = w};
    int64_t now = ctl_holders_now(snap, clock_wall_ms(clock_system()));
    int64_t ago = now - ctl_holder_renewed(snap, w, now);
    if (ago >= max64(COORD_EVERY_MS, snap->pool.later.every_ms))
        return CTL_OK;
    char question[320];
    ctl_holder_read(&h);
    (void)snprintf(
        question, sizeof question,
        "workerId %u was renewed %s ago, by process %lld of %s %s: who renews lives, and "
        "loses it.",
        a->worker, ctl_span(ago), (long long)h.pid, h.host, h.pod);
    if (!isatty(STDIN_FILENO))
        return ctl_fail(CTL_BAD,
                        "%s Nothing was changed: stop that one and wait for %s, or say "
                        "--even-if-alive",
                        question, ctl_span(max64(COORD_EVERY_MS, snap->pool.later.every_ms) - ago));
    (void)snprintf(question + strlen(question), sizeof question - strlen(question),
                   " Take it all the same?");
    int status = ctl_ask(question);
    return status ? status : check_same(a, s, w);
}

int ctl_pool_release(struct ctl_args *a)
{
    struct ctl_session s;
    struct coord_snapshot snap;
    char question[160];
    if (!a->has_worker)
        return ctl_fail(CTL_USAGE, "pool release: expected --worker N");
    (void)snprintf(
        question, sizeof question,
        "Take workerId %u from its holder? It keeps its range; a holder that lives loses it.",
        a->worker);
    int status = ctl_confirm(a, "pool release", question);
    if (status || (status = ctl_session_snapshot(a, &s, &snap)))
        return status;
    status = check_gone(a, &s, &snap);
    coord_snapshot_clear(&snap);
    if (status) {
        coord_free(s.coord);
        return status;
    }
    enum coord_status r = coord_evict(s.coord, s.pool.identity, (uint16_t)a->worker, &s.reply);
    coord_free(s.coord);
    if (r == COORD_LOST)
        return ctl_fail(CTL_BAD, "workerId %u is not held", a->worker);
    if (r != COORD_OK)
        return ctl_session_fail_change(a, r, &s.reply);
    if (a->json)
        return ctl_print_json(CTL_OK,
                              json_pack("{s:i, s:b}", "worker", (int)a->worker, "released", 1));
    (void)printf("workerId %u is back in the queue\n", a->worker);
    return ctl_flush(CTL_OK);
}

int ctl_pool_close(struct ctl_args *a)
{
    struct ctl_session s;
    int status = ctl_session_open_to_close(a, &s, "pool close");
    if (status)
        return status;
    enum coord_status r = coord_close(s.coord, s.pool.identity, a->moved, &s.reply);
    if (r == COORD_OK) /* it may have been reopened by that */
        r = coord_describe(s.coord, &s.pool, &s.reply);
    coord_free(s.coord);
    if (r != COORD_OK)
        return ctl_session_fail_change(a, r, &s.reply);
    const char *ends = ctl_time(ctl_session_last_range(&s));
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:b, s:s}", "closed", 1, "ranges_end_by", ends));
    (void)printf("closed: no more grants and renewals; every range ends by %s\n", ends);
    return ctl_flush(CTL_OK);
}

int ctl_pool_set(struct ctl_args *a)
{
    struct ctl_session s;
    if (!a->has_settle)
        return ctl_fail(CTL_USAGE, "pool set: expected --settle TIME");
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    enum coord_status r = COORD_OK;
    status = ctl_check_settle(a, &s.pool.params);
    if (!status)
        r = coord_settle(s.coord, s.pool.identity, a->settle_ms, &s.reply);
    if (!status && r == COORD_OK)
        r = coord_describe(s.coord, &s.pool, &s.reply);
    coord_free(s.coord);
    if (status)
        return status;
    if (r != COORD_OK)
        return ctl_session_fail_change(a, r, &s.reply);
    const struct coord_later *l = &s.pool.later;
    bool pending = l->settle_from_ms > s.reply.now_ms;
    const char *from = ctl_time(pending ? l->settle_from_ms : s.reply.now_ms);
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:I, s:s}", "settle_ms", (json_int_t)l->settle_ms,
                                                "counts_from", from));
    (void)printf("settle is %s, from %s on\n", ctl_duration(l->settle_ms), from);
    return ctl_flush(CTL_OK);
}

static int say_nothing_lost(struct ctl_session *s)
{
    const struct ctl_args *a = s->args;
    enum coord_status r = coord_nothing_lost(s->coord, s->pool.identity, &s->reply);
    if (r == COORD_OK) /* an earlier reopening's floors stay */
        r = coord_describe(s->coord, &s->pool, &s->reply);
    if (r != COORD_OK)
        return ctl_session_fail_change(a, r, &s->reply);
    int64_t floor = s->pool.floor_short_ms;
    int64_t stays = floor > s->reply.now_ms ? floor + 1 : 0;
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:b, s:s?}", "taken_back", 1, "grants_from",
                                                stays ? ctl_time(stays) : NULL));
    if (stays)
        (void)printf(
            "pool %s: taken back: the latest reopening alone; what was before it stays, so new "
            "sidecars get a workerId from %s on\n",
            ctl_session_pool(a), ctl_time(stays));
    else
        (void)printf(
            "pool %s: taken back: new sidecars get workerIds as before the coordinator was away\n",
            ctl_session_pool(a));
    return ctl_flush(CTL_OK);
}

static int say_clock_was_ahead(struct ctl_session *s)
{
    const struct ctl_args *a = s->args;
    enum coord_status r = coord_clock_was_ahead(s->coord, s->pool.identity, &s->reply);
    if (r == COORD_OK) /* it may have been reopened by that, or while it was ahead */
        r = coord_describe(s->coord, &s->pool, &s->reply);
    if (r != COORD_OK)
        return ctl_session_fail_change(a, r, &s->reply);
    const char *fence = ctl_time(s->pool.later.fence_ms),
               *from = ctl_time(ctl_session_grants_from(s));
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:b, s:s, s:s}", "goes_on", 1, "was_at", fence,
                                                "grants_from", from));
    (void)printf("pool %s: goes on; its clock was at %s. New sidecars get a workerId from %s on\n",
                 ctl_session_pool(a), fence, from);
    return ctl_flush(CTL_OK);
}

/* The word itself reopens it where that is due, and comes too early then. */
static int look(struct ctl_session *s)
{
    enum coord_status r = coord_describe(s->coord, &s->pool, &s->reply);
    return r == COORD_OK ? CTL_OK : ctl_session_fail(s->args, r, &s->reply);
}

int ctl_pool_reopen(struct ctl_args *a)
{
    struct ctl_session s;
    char question[320];
    if (a->nothing_lost == a->clock_was_ahead)
        return ctl_fail(CTL_USAGE, "pool reopen: expected --nothing-lost or --clock-was-ahead");
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    (void)snprintf(question, sizeof question,
                   a->nothing_lost
                       ? "Did the coordinator of pool \"%.64s\" come back with all that it knew "
                         "before? If not, IDs may repeat."
                       : "Is the clock of the coordinator of pool \"%.64s\" right now, and was it "
                         "ahead before? If it is behind, IDs may repeat.",
                   ctl_session_pool(a));
    status = ctl_session_confirm_loss(&s, "pool reopen", question, look);
    if (!status)
        status = a->nothing_lost ? say_nothing_lost(&s) : say_clock_was_ahead(&s);
    coord_free(s.coord);
    return status;
}
