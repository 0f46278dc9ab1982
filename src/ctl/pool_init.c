/*
 * sidflakectl pool init: which of three things is true has to be said.
 */
#include "ctl/session.h"

#include "base/dec.h"
#include "ids/layout.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char three[] =
    "Which is true of the IDs that this pool will give out?\n"
    "  1  fresh: nobody has ever issued IDs with this epoch for these applications, in any "
    "layout.\n"
    "     WorkerIds can be had at once. Wrongly said after a loss, it duplicates IDs.\n"
    "  2  after a loss: there was a pool, and it was lost, flushed or restored. Sidecars that run "
    "go\n"
    "     on; new ones wait until no earlier holder can still be issuing (horizon and two skews).\n"
    "  3  other workerIds: as 2, but with a range of workerIds never used before: nobody waits.\n"
    "     Use --workers FROM-TO.\n"
    "1, 2 or nothing to stop: ";

/* Which of the first two; false: neither was said. */
static bool ask_mode(struct ctl_args *a)
{
    static char range[16];
    char answer[8];
    (void)fputs(three, stderr);
    if (!ctl_read_answer(answer, sizeof answer))
        return false;
    a->fresh = strcmp(answer, "1") == 0;
    a->after_loss = strcmp(answer, "2") == 0;
    if (!a->after_loss || a->workers)
        return a->fresh || a->after_loss;
    (void)fputs("WorkerIds of the pool that was lost, FROM-TO; 0-32767 unless it was made with "
                "others: ",
                stderr);
    if (!ctl_read_answer(range, sizeof range))
        return false;
    a->workers = range;
    return true;
}

/* The layout that was asked for; without --workers the pool has as many as it has room for. */
static bool read_layout(struct ctl_args *a, struct layout *out, struct err *e)
{
    *out = layout_usual;
    if (a->layout && layout_parse(span_str(a->layout), out, e))
        return false;
    if (!a->workers)
        a->params.worker_to = coord_worker_most(out);
    return !coord_params_fit(&a->params, out, e);
}

static bool parse_workers(const char *text, struct coord_params *p)
{
    struct span rest = span_str(text);
    struct span from = span_cut(&rest, '-');
    uint64_t lo, hi;
    if (!rest.p || !dec_u64(from, &lo) || !dec_u64(rest, &hi) || lo > hi || hi >= COORD_WORKERS)
        return false;
    p->worker_from = (uint16_t)lo;
    p->worker_to = (uint16_t)hi;
    return true;
}

static int check_init(struct ctl_args *a)
{
    struct err e;
    if (a->fresh && a->after_loss)
        return ctl_fail(CTL_USAGE, "pool init: expected --fresh or --after-loss, found both");
    bool said = a->fresh || a->after_loss || a->workers;
    if (!said && isatty(STDIN_FILENO))
        said = ask_mode(a);
    else if (!said)
        return ctl_fail(CTL_USAGE,
                        "pool init: expected --fresh, --after-loss or --workers FROM-TO; "
                        "see sidflakectl pool init --help for what each says");
    if (said && a->after_loss && !a->workers)
        return ctl_fail(
            CTL_USAGE, "pool init --after-loss: expected --workers FROM-TO, those of the pool that "
                       "was lost: 0-32767 unless it was made with others; a sidecar's log has the "
                       "whole command");
    if (!said)
        return ctl_fail(CTL_USAGE, "nothing was made");
    if (a->has_ahead && !a->after_loss)
        return ctl_fail(CTL_USAGE, "--ahead: expected with --after-loss alone, whose wait it is");
    if (!a->has_replicas && a->coordinator && strncmp(a->coordinator, "redis+sentinel:", 15) == 0)
        return ctl_fail(CTL_USAGE,
                        "pool init: expected --replicas to be said where sentinels fail over: half "
                        "of all nodes, rounded down; with 0 a failover may repeat IDs");
    if (a->workers && !parse_workers(a->workers, &a->params))
        return ctl_fail(CTL_USAGE, "--workers: expected FROM-TO within 0-32767, found \"%s\"",
                        a->workers);
    if (coord_params_check(&a->params, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    return ctl_check_settle(a, &a->params);
}

static int check_settle(const char *option, int64_t ms, const struct coord_params *p)
{
    if (ms > 0 && coord_params_settle(p, ms))
        return CTL_OK;
    return ctl_fail(CTL_USAGE, "%s: expected first-horizon to horizon, %s to %s, found %s", option,
                    ctl_span(p->first_horizon_ms), ctl_span(p->horizon_ms), ctl_span(ms));
}

int ctl_check_settle(const struct ctl_args *a, const struct coord_params *p)
{
    int status = a->has_settle ? check_settle("--settle", a->settle_ms, p) : CTL_OK;
    if (status || !a->has_least_settle)
        return status;
    return check_settle("--least-settle", a->least_settle_ms, p);
}

static int make_identity(struct ctl_args *a, char out[COORD_IDENTITY_MAX])
{
    char uuid[COORD_UUID_TEXT];
    struct layout layout;
    struct err e;
    int64_t now = clock_wall_ms(clock_system());
    int64_t epoch = a->has_epoch ? a->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS;
    if (epoch > now)
        return ctl_fail(CTL_USAGE, "--epoch: expected a time in the past, found %s",
                        ctl_time(epoch));
    if (!read_layout(a, &layout, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    if (layout_end_ms(&layout, epoch) < now)
        return ctl_fail(CTL_USAGE,
                        "--epoch: expected one from which the layout's time, %s, is not over, "
                        "found %s",
                        ctl_span(layout_lasts_ms(&layout)), ctl_time(epoch));
    struct span id = a->uuid ? span_str(a->uuid) : span_str(coord_uuid_new(uuid, rng_system()));
    if (coord_identity_make(out, id, epoch, &layout, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    return CTL_OK;
}

static int64_t end_of(const char *identity)
{
    struct layout layout = layout_usual;
    int64_t epoch_ms = 0;
    (void)!coord_identity_read(identity, &epoch_ms, &layout, NULL); /* it was made here */
    return layout_end_ms(&layout, epoch_ms);
}

/* Made, or found where that is no error (then identity is that of the pool found). */
static int told(const struct ctl_session *s, const struct coord_init *in, bool made,
                int64_t from_ms)
{
    const struct ctl_args *a = s->args;
    const char *identity = made ? in->identity : s->pool.identity;
    json_t *warnings = json_array(), *one;
    size_t i;
    ctl_spare_replicas(&s->pool, warnings);
    ctl_risks(s->risks, warnings);
    if (a->json && made)
        return ctl_print_json(CTL_OK,
                              json_pack("{s:b, s:s, s:i, s:i, s:s, s:o}", "made", 1, "identity",
                                        identity, "worker_from", (int)in->params.worker_from,
                                        "worker_to", (int)in->params.worker_to, "grants_from",
                                        ctl_time(from_ms), "warnings", warnings));
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:b, s:s, s:o}", "made", 0, "identity", identity,
                                                "warnings", warnings));
    json_array_foreach(warnings, i, one)(void)
        ctl_fail(CTL_OK, "warning: %s", json_string_value(one));
    json_decref(warnings);
    if (!made)
        (void)puts("the pool exists already: nothing was changed");
    else
        (void)printf("made pool %s with workerIds %u to %u, IDs until %s\n", identity,
                     in->params.worker_from, in->params.worker_to, ctl_time(end_of(identity)));
    /* Of an earlier one IDs were given out that those of this pool only come to now. */
    if (made && a->workers && !a->has_epoch)
        (void)printf(
            "its epoch is %s, as --epoch was not said: in the place of a pool that was lost, "
            "--epoch, --layout and --horizon have to be that one's\n",
            ctl_time(LAYOUT_EPOCH_DEFAULT_MS));
    if (made && in->mode == COORD_INIT_AFTER_LOSS)
        (void)printf(
            "new sidecars get a workerId from %s on; those that run go on%s\n", ctl_time(from_ms),
            a->has_horizon ? "" : " (a day: --horizon, that of the lost pool, was not said)");
    return ctl_flush(CTL_OK);
}

/* Of a pool that was removed just now, all at once, the unit that is begun may be in use. */
static void outlast_unit(const struct coord_init *in)
{
    struct layout l;
    int64_t epoch_ms;
    if (coord_identity_read(in->identity, &epoch_ms, &l, NULL))
        return;
    int64_t ms = layout_unit_left(&l, clock_wall_ms(clock_system()) - epoch_ms);
    const struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&left, NULL);
}

int ctl_pool_init(struct ctl_args *a)
{
    struct ctl_session s;
    struct coord_reply described;
    struct coord_init in = {0};
    int status = check_init(a);
    if (status || (status = make_identity(a, in.identity)) ||
        (status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, false)))
        return status;
    in.params = a->params;
    in.mode = a->after_loss ? COORD_INIT_AFTER_LOSS
              : a->fresh    ? COORD_INIT_FRESH
                            : COORD_INIT_RANGE;
    in.identity_said = a->uuid != NULL;
    in.replicas_said = a->has_replicas;
    in.settle_ms = a->settle_ms;
    in.least_ms = a->least_settle_ms;
    in.lost_ahead_ms = a->after_loss ? ctl_session_lost_ahead(a) : 0;
    outlast_unit(&in);
    enum coord_status r = coord_init(s.coord, &in, &s.reply);
    int64_t from = s.reply.now_ms;
    bool found = r == COORD_EXISTS && a->if_missing;
    if (found)
        r = coord_describe(s.coord, &s.pool, &s.reply);
    else if (r == COORD_OK) /* for warnings alone */
        (void)coord_describe(s.coord, &s.pool, &described);
    if (r == COORD_OK)
        (void)coord_risks(s.coord, &s.risks);
    coord_free(s.coord);
    if (r != COORD_OK)
        return found ? ctl_session_fail(a, r, &s.reply) : ctl_session_fail_change(a, r, &s.reply);
    if (in.mode == COORD_INIT_AFTER_LOSS)
        from += in.lost_ahead_ms;
    return told(&s, &in, !found, from);
}
