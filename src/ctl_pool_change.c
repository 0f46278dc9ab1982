/*
 * sidflakectl pool release, close: what changes a pool by one word.
 */
#include "ctl_session.h"

#include <stdio.h>
#include <unistd.h>

int ctl_pool_release(struct ctl_args *a)
{
    struct ctl_session s;
    char question[160];
    if (!a->has_worker)
        return ctl_fail(CTL_USAGE, "pool release: expected --worker N");
    if (!a->yes && !isatty(STDIN_FILENO))
        return ctl_fail(CTL_USAGE,
                        "pool release: expected --yes where there is no terminal to ask on");
    (void)snprintf(
        question, sizeof question,
        "Take workerId %u from its holder? It keeps its range; a holder that lives loses it.",
        a->worker);
    if (!a->yes && !ctl_confirm(question))
        return ctl_fail(CTL_BAD, "nothing was changed");
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    enum coord_status r = coord_evict(s.coord, s.pool.identity, (uint16_t)a->worker, &s.reply);
    coord_free(s.coord);
    if (r == COORD_LOST)
        return ctl_fail(CTL_BAD, "workerId %u is not held", a->worker);
    if (r != COORD_OK)
        return ctl_session_fail(a, r, &s.reply);
    if (a->json)
        return ctl_print_json(CTL_OK,
                              json_pack("{s:i, s:b}", "worker", (int)a->worker, "released", 1));
    (void)printf("workerId %u is back in the queue\n", a->worker);
    return ctl_flush(CTL_OK);
}

int ctl_pool_close(struct ctl_args *a)
{
    struct ctl_session s;
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    enum coord_status r = coord_close(s.coord, s.pool.identity, &s.reply);
    coord_free(s.coord);
    if (r != COORD_OK)
        return ctl_session_fail(a, r, &s.reply);
    const char *ends = ctl_time(s.reply.now_ms + s.pool.params.horizon_ms);
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:b, s:s}", "closed", 1, "ranges_end_by", ends));
    (void)printf("closed: no more grants and renewals; every range ends by %s\n", ends);
    return ctl_flush(CTL_OK);
}
