/*
 * sidflakectl pool drain: closes a pool and waits until nobody issues IDs of it.
 *
 * A closed pool renews nothing, so each holder goes in one of two ways: it returns its workerId, or
 * its range ends. The second leaves a record that says held for ever, since a closed pool reaps
 * nothing either; so what counts is the ceiling, and S after it: the holder's clock may be behind
 * the coordinator's.
 *
 * A coordinator that comes back with an older data set has forgotten that the pool was closed, and
 * who holds what; so it is closed each time before it is looked at, which reopens it first.
 */
#include "ctl/holders.h"
#include "ctl/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t interrupted; /* the signal */

static void interrupt(int signo)
{
    interrupted = signo;
}

/* How it stands. */
struct stand {
    uint64_t held;   /* workerIds whose range has not ended */
    int64_t last_ms; /* until when somebody may issue, if nobody returns anything; 0: nobody */
    int64_t now_ms;  /* as ctl_holders_now */
    int64_t left_ms; /* until a holder whose clock is behind by S is past last_ms, too */
    int64_t took_ms; /* to find out */
};

static enum coord_status look(struct ctl_session *s, struct stand *out)
{
    struct coord_snapshot snap;
    int64_t began = clock_mono_ms(clock_system());
    enum coord_status r = coord_close(s->coord, s->pool.identity, s->args->moved, &s->reply);
    if (r == COORD_OK)
        r = coord_snapshot(s->coord, &snap, &s->reply);
    if (r != COORD_OK)
        return r;
    out->now_ms = ctl_holders_now(&snap, clock_wall_ms(clock_system()));
    out->last_ms = ctl_holders_end(&snap, out->now_ms - snap.pool.params.max_skew_ms, &out->held);
    out->left_ms = out->last_ms + snap.pool.params.max_skew_ms - out->now_ms;
    coord_snapshot_clear(&snap);
    out->took_ms = clock_mono_ms(clock_system()) - began;
    return COORD_OK;
}

/* A second, or so much longer that looking takes a twentieth of the time: a large pool's snapshot
 * is megabytes. */
static void rest(const struct stand *st, int64_t left_ms)
{
    int64_t ms = 20 * st->took_ms > 1000 ? 20 * st->took_ms : 1000;
    ms = ms < left_ms ? ms : left_ms;
    if (!interrupted && ms > 0)
        (void)poll(NULL, 0, (int)(ms < 60000 ? ms : 60000));
}

/* A coordinator that does not answer for a while is waited for, as is a holder. */
static int wait_for_all(const struct ctl_args *a, struct ctl_session *s, struct stand *st)
{
    struct ctl_progress progress;
    int64_t began = clock_mono_ms(clock_system());
    int status = CTL_BAD;
    ctl_progress_begin(&progress, false);
    for (;;) {
        enum coord_status r = look(s, st);
        int64_t waited = clock_mono_ms(clock_system()) - began;
        int64_t left = a->has_timeout ? a->timeout_ms - waited : INT64_MAX;
        if (r != COORD_OK && r != COORD_DOWN)
            status = ctl_session_fail(a, r, &s->reply);
        if ((r != COORD_OK && r != COORD_DOWN) || (r == COORD_OK && st->last_ms == 0) ||
            interrupted || left <= 0)
            break;
        if (r == COORD_DOWN)
            ctl_progress_show(&progress, "no answer: %s", s->reply.err.text);
        else
            ctl_progress_show(&progress, "%s held; the last range ends in %s", ctl_number(st->held),
                              ctl_span(st->left_ms));
        rest(st, left);
    }
    ctl_progress_end(&progress);
    if (interrupted)
        return (int)CTL_SIGNAL + interrupted;
    if (st->now_ms > 0 && st->last_ms == 0)
        return CTL_OK;
    return status;
}

/* Somebody may have opened it since the latest look. */
static bool is_opened(struct ctl_session *s)
{
    return coord_describe(s->coord, &s->pool, &s->reply) == COORD_OK && !s->pool.closed;
}

/* Told whatever it came to: how it stands, and what goes on with it. */
static int tell(const struct ctl_args *a, const struct stand *st, bool opened, int status)
{
    if (a->json)
        return ctl_print_json(status, json_pack("{s:b, s:b, s:I, s:s?}", "drained",
                                                status == CTL_OK, "closed", !opened, "held",
                                                (json_int_t)st->held, "ranges_end_by",
                                                st->last_ms > 0 ? ctl_time(st->last_ms) : NULL));
    if (status == CTL_OK) {
        (void)puts("drained: nobody issues IDs of this pool");
        return ctl_flush(status);
    }
    if (opened)
        return ctl_fail(status,
                        "not drained: the pool was opened meanwhile, and grants and renews; "
                        "the same command closes it again");
    return ctl_fail(status,
                    "not drained: the pool is closed, %llu workerIds are held, and the last range "
                    "%sends by %s; the same command goes on waiting",
                    (unsigned long long)st->held,
                    st->held > 0 ? "" : "that was taken away, or that the pool has lost, ",
                    ctl_time(st->last_ms));
}

int ctl_pool_drain(struct ctl_args *a)
{
    struct ctl_session s;
    struct stand st = {0};
    struct sigaction on = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    int status = ctl_session_open_to_close(a, &s, "pool drain");
    if (status)
        return status;
    enum coord_status r = coord_close(s.coord, s.pool.identity, a->moved, &s.reply);
    if (r != COORD_OK) {
        coord_free(s.coord);
        return ctl_session_fail_change(a, r, &s.reply);
    }
    /* The second Ctrl-C ends it at once. */
    (void)sigaction(SIGINT, &on, NULL);
    (void)sigaction(SIGTERM, &on, NULL);
    status = wait_for_all(a, &s, &st);
    bool known = st.now_ms > 0, opened = known && status != CTL_OK && is_opened(&s);
    coord_free(s.coord);
    return known ? tell(a, &st, opened, status)
                 : ctl_fail(status == CTL_BAD ? CTL_DOWN : status,
                            "the pool is closed, but who holds it could not be read");
}
