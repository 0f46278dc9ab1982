#include "coord/outcome.h"

#include "base/timefmt.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void say(struct coord_reply *r, enum err_code code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void say(struct coord_reply *r, enum err_code code, const char *fmt, va_list ap)
{
    char *text = r->err.text;
    (void)vsnprintf(text, sizeof r->err.text, fmt, ap);
    r->err.code = code;
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
    }
}

static enum coord_status tell(struct coord_reply *r, enum coord_status s, enum err_code code,
                              const char *fmt, ...) PRINTF_LIKE(4, 5);

static enum coord_status tell(struct coord_reply *r, enum coord_status s, enum err_code code,
                              const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(r, code, fmt, ap);
    va_end(ap);
    return s;
}

enum coord_status outcome_nopool(struct coord_reply *r, const char *pool)
{
    return tell(r, COORD_NOPOOL, ERR_NOT_FOUND,
                "pool \"%s\": expected one at the coordinator, found none", pool);
}

enum coord_status outcome_exists(struct coord_reply *r, const char *pool)
{
    return tell(r, COORD_EXISTS, ERR_EXISTS,
                "pool \"%s\": expected none at the coordinator, found one", pool);
}

enum coord_status outcome_closed(struct coord_reply *r, const char *pool)
{
    return tell(r, COORD_CLOSED, ERR_BUSY,
                "pool \"%s\": expected an open one, found it closed: it is about to move", pool);
}

enum coord_status outcome_gone(struct coord_reply *r)
{
    return outcome_refused(r, "open: expected a pool that was made again nowhere, found one that "
                              "was closed as moved, or since then a sidecar with workerIds of "
                              "another pool: while that one is open, IDs would repeat");
}

enum coord_status outcome_wrongpool(struct coord_reply *r, const char *asked, struct span found)
{
    size_t n = found.n < COORD_IDENTITY_MAX ? found.n : COORD_IDENTITY_MAX;
    return tell(r, COORD_WRONGPOOL, ERR_INVALID, "identity of the pool: expected %s, found %.*s",
                asked, (int)n, n ? found.p : "");
}

enum coord_status outcome_badclock(struct coord_reply *r, int64_t tmax_ms)
{
    char past[TIMEFMT_MAX];
    char now[TIMEFMT_MAX];
    return tell(r, COORD_BADCLOCK, ERR_RANGE,
                "the coordinator's clock: expected about %s or later, which it has shown before, "
                "found %s",
                timefmt_rfc3339(past, tmax_ms), timefmt_rfc3339(now, r->now_ms));
}

enum coord_status outcome_not_ahead(struct coord_reply *r)
{
    char now[TIMEFMT_MAX];
    return outcome_refused(r,
                           "clock was ahead: expected the coordinator's clock to be behind a time "
                           "that it has shown before, found none later than %s: the pool goes on",
                           timefmt_rfc3339(now, r->now_ms));
}

enum coord_status outcome_skew(struct coord_reply *r, int64_t caller_ms, int64_t max_skew_ms)
{
    char theirs[TIMEFMT_MAX];
    char ours[TIMEFMT_MAX];
    return tell(r, COORD_SKEW, ERR_RANGE,
                "this host's clock: expected within %" PRId64 " ms of the coordinator's %s, "
                "found %s",
                max_skew_ms, timefmt_rfc3339(theirs, r->now_ms), timefmt_rfc3339(ours, caller_ms));
}

enum coord_status outcome_early(struct coord_reply *r, int64_t from_ms)
{
    char from[TIMEFMT_MAX];
    char now[TIMEFMT_MAX];
    return outcome_refused(r,
                           "nothing lost: expected the time of four renewals since the pool was "
                           "reopened, in which each sidecar that knows better is heard: it is "
                           "taken from %s on, found %s",
                           timefmt_rfc3339(from, from_ms), timefmt_rfc3339(now, r->now_ms));
}

enum coord_status outcome_more(struct coord_reply *r, int64_t topen_ms)
{
    char at[TIMEFMT_MAX];
    return outcome_refused(r,
                           "nothing lost: expected no sidecar that knows more than the "
                           "coordinator, reopened on %s, found one: something was lost, and its "
                           "floors stay",
                           timefmt_rfc3339(at, topen_ms));
}

enum coord_status outcome_none(struct coord_reply *r, int64_t topen_ms)
{
    char at[TIMEFMT_MAX];
    return outcome_refused(r,
                           "nothing lost: expected a reopening to take back, found none: the "
                           "latest, on %s, made the pool, opened it after a move, was taken "
                           "back, or came with a sidecar of version 0.1.0",
                           timefmt_rfc3339(at, topen_ms));
}

enum coord_status outcome_refused(struct coord_reply *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(r, ERR_INVALID, fmt, ap);
    va_end(ap);
    return COORD_REFUSED;
}

enum coord_status outcome_down(struct coord_reply *r, enum err_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(r, code, fmt, ap);
    va_end(ap);
    return COORD_DOWN;
}

enum coord_status outcome_of_pool(struct coord_pool *pool, struct coord_reply *r)
{
    struct err e;
    if (coord_identity_read(pool->identity, &pool->epoch_ms, &pool->layout, &e) ||
        coord_params_check(&pool->params, &e) || coord_params_fit(&pool->params, &pool->layout, &e))
        return outcome_refused(r, "the pool: %s", e.text);
    return COORD_OK;
}
