/*
 * sidflakectl: connecting to a pool, and what goes wrong with it.
 */
#include "ctl/session.h"

#include "base/int64.h"
#include "coord/advice.h"
#include "coord/redis_url.h"
#include "ctl/holders.h"
#include "ids/layout.h"
#include "lease/recovery.h"

#include <stdio.h>
#include <string.h>

#define NO_POOL_MAX 320 /* bytes of what stands around the command */

const char *ctl_session_pool(const struct ctl_args *a)
{
    return a->pool ? a->pool : "default";
}

const char *ctl_session_url(const struct ctl_args *a, char out[COORD_URL_MAX])
{
    if (coord_url_public(span_str(a->coordinator), out, COORD_URL_MAX))
        (void)snprintf(out, COORD_URL_MAX, "the coordinator");
    return out;
}

/* How a command names the file: a password that stands in the URL is not shown there. */
static const char *password_word(const struct ctl_args *a)
{
    struct redis_url u = {.nodes = 0};
    struct err e;
    bool in_url = !redis_url_parse(&u, span_str(a->coordinator), &e) && u.password.n > 0;
    explicit_bzero(&u, sizeof u);
    return a->password_file || !in_url ? a->password_file : "FILE";
}

const char *ctl_session_command(const struct ctl_args *a, const char *what,
                                char out[CTL_COMMAND_MAX])
{
    char url[COORD_URL_MAX];
    struct buf b;
    struct recovery_place at = {.url = ctl_session_url(a, url),
                                .pool = ctl_session_pool(a),
                                .password_file = password_word(a)};
    buf_init(&b, out, CTL_COMMAND_MAX - 1);
    buf_put_str(&b, what);
    recovery_put_place(&b, &at);
    out[b.n] = '\0';
    return b.failed ? what : out;
}

/* The command is whole, with the coordinator, or no more than a word. */
static void why_no_pool(const struct ctl_args *a, struct err *out)
{
    char text[CTL_COMMAND_MAX], url[COORD_URL_MAX], fresh[32];
    const char *command = ctl_session_command(a, "sidflakectl pool init", text);
    struct buf b;
    if (strlen(command) > ERR_TEXT_MAX - NO_POOL_MAX)
        command = "sidflakectl pool init";
    buf_init(&b, fresh, sizeof fresh - 1);
    advice_put_fresh(&b, ctl_session_url(a, url));
    fresh[b.n] = '\0';
    (void)err_set(out, ERR_NOT_FOUND, "no pool \"%s\": make it with `%s%s` " ADVICE_WHEN_FRESH,
                  ctl_session_pool(a), command, fresh);
}

void ctl_session_why(const struct ctl_args *a, enum coord_status s, const struct coord_reply *r,
                     struct err *out)
{
    char at[COORD_URL_MAX];
    (void)ctl_session_url(a, at);
    if (s == COORD_NOPOOL)
        why_no_pool(a, out);
    else if (s == COORD_EXISTS)
        (void)err_set(out, ERR_EXISTS, "there is a pool \"%s\" at %s already", ctl_session_pool(a),
                      at);
    else
        (void)err_set(out, ERR_IO, "%s: %s", coord_status_name(s),
                      r->err.text[0] ? r->err.text : "the coordinator refused");
}

int ctl_session_fail(const struct ctl_args *a, enum coord_status s, const struct coord_reply *r)
{
    struct err e;
    ctl_session_why(a, s, r, &e);
    return ctl_fail(s == COORD_DOWN ? CTL_DOWN : CTL_BAD, "%s", e.text);
}

int ctl_session_fail_change(const struct ctl_args *a, enum coord_status s,
                            const struct coord_reply *r)
{
    struct err e;
    if (s != COORD_DOWN)
        return ctl_session_fail(a, s, r);
    ctl_session_why(a, s, r, &e);
    return ctl_fail(CTL_DOWN,
                    "%s; it may have been done all the same, as pool status and list tell", e.text);
}

int ctl_session_open(const struct ctl_args *a, struct ctl_session *s, int64_t timeout_us,
                     bool describe)
{
    char password[PASSFILE_MAX + 1];
    struct err e;
    memset(s, 0, sizeof *s);
    s->args = a;
    int status = ctl_password(a, password);
    if (status)
        return status;
    struct coord_options o = {.url = span_str(a->coordinator),
                              .pool = span_str(ctl_session_pool(a)),
                              .password = span_str(password),
                              .password_of = "--password-file",
                              .timeout_us = timeout_us,
                              .clock = clock_system()};
    enum err_code bad = coord_open(&o, &s->coord, &e);
    explicit_bzero(password, sizeof password);
    if (bad)
        return ctl_fail(bad == ERR_NOMEM ? CTL_DOWN : CTL_USAGE, "%s", e.text);
    if (!describe)
        return CTL_OK;
    enum coord_status r = coord_describe(s->coord, &s->pool, &s->reply);
    s->asked_ms = clock_wall_ms(clock_system());
    if (r == COORD_OK)
        return CTL_OK;
    coord_free(s->coord);
    s->coord = NULL;
    return ctl_session_fail(a, r, &s->reply);
}

int ctl_session_snapshot(const struct ctl_args *a, struct ctl_session *s,
                         struct coord_snapshot *snap)
{
    int status = ctl_session_open(a, s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    enum coord_status r = coord_snapshot(s->coord, snap, &s->reply);
    if (r == COORD_OK)
        return CTL_OK;
    coord_free(s->coord);
    s->coord = NULL;
    return ctl_session_fail(a, r, &s->reply);
}

int ctl_session_open_to_close(const struct ctl_args *a, struct ctl_session *s, const char *command)
{
    char url[COORD_URL_MAX], question[COORD_URL_MAX + 512];
    int status = ctl_session_open(a, s, CTL_SESSION_TIMEOUT_US, true);
    if (status || s->pool.closed)
        return status;
    int64_t until = coord_pool_behind_until(&s->pool, s->reply.now_ms);
    if (until > 0) {
        coord_free(s->coord);
        s->coord = NULL;
        return ctl_fail(CTL_BAD,
                        "the coordinator's clock is behind a time that it has shown before: the "
                        "pool grants nothing until it is %s, and cannot be closed before; ranges "
                        "may last until %s",
                        ctl_time(until), ctl_time(ctl_session_last_range(s)));
    }
    (void)snprintf(
        question, sizeof question,
        "Close pool \"%.64s\" at %s%s? %llu workerIds are held, none is renewed then, and "
        "the last range ends by %s.",
        ctl_session_pool(a), ctl_session_url(a, url),
        a->moved ? " for good, as one that is made again elsewhere" : "",
        (unsigned long long)s->pool.held, ctl_time(ctl_session_last_range(s)));
    status = ctl_confirm(a, command, question);
    if (!status)
        return CTL_OK;
    coord_free(s->coord);
    s->coord = NULL;
    return status;
}

/* An era says less than a time, since data that come back have their next one again. */
int ctl_session_confirm_loss(struct ctl_session *s, const char *command, const char *question,
                             int (*look)(struct ctl_session *s))
{
    int64_t asked_ms = s->pool.topen_ms;
    int status = ctl_confirm(s->args, command, question);
    if (!status && !s->args->yes)
        status = look(s);
    if (!status && s->pool.topen_ms != asked_ms)
        status = ctl_fail(CTL_BAD,
                          "pool \"%.64s\": it was reopened since that was asked, and may have "
                          "forgotten more: nothing was changed",
                          ctl_session_pool(s->args));
    return status;
}

/* No range that is recorded ends later than T + A + 2S, by the latest T that ever was, and none
 * that was lost than the floors. */
int64_t ctl_session_last_range(const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    int64_t latest = max64(p->tmax_ms, p->later.fence_ms);
    int64_t ends = max64(s->reply.now_ms, latest) + coord_reach(&p->params);
    return max64(ends, max64(p->floor_ms, p->floor_short_ms));
}

int64_t ctl_session_lost_ahead(const struct ctl_args *a)
{
    const struct coord_params *p = &a->params;
    int64_t skew = a->has_max_skew ? p->max_skew_ms : COORD_MAX_SKEW_MS;
    int64_t own = (a->has_horizon ? p->horizon_ms : COORD_HORIZON_MAX_MS) + 2 * skew;
    return max64(own, a->ahead_ms);
}

int64_t ctl_session_grants_from(const struct ctl_session *s)
{
    int64_t floor = s->reply.era > 1 ? s->pool.floor_short_ms + 1 : 0;
    int64_t now = s->reply.now_ms, rest = s->pool.unmet_ms ? s->pool.unmet_ms - now : 0;
    int64_t from = max64(now, coord_pool_behind_until(&s->pool, now)) + rest;
    return max64(from, s->first_ms ? s->first_ms : floor);
}

int64_t ctl_session_ceiling(const struct coord_pool *p, const struct coord_worker *w)
{
    return w->stale && p->floor_ms > w->hwm_ms ? p->floor_ms : w->hwm_ms;
}

/* ---- warnings ----------------------------------------------------------------------------------
 */

#define LIFETIME_WARN_MS (INT64_C(180) * 86400000)

/* Which clock is wrong cannot be known from here: how they stand to each other is said. */
static void warn_of_clocks(json_t *w, const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    int64_t skew = s->reply.now_ms - s->asked_ms;
    int64_t until = coord_pool_behind_until(p, s->reply.now_ms);
    char command[CTL_COMMAND_MAX];
    if (skew > p->params.max_skew_ms || skew < -p->params.max_skew_ms)
        json_array_append_new(
            w, json_sprintf("the coordinator's clock is %s %s this host's, more than max-skew: "
                            "claims from here are refused",
                            ctl_span(skew > 0 ? skew : -skew), skew > 0 ? "ahead of" : "behind"));
    if (until > 0)
        json_array_append_new(
            w, json_sprintf("the coordinator's clock is %s behind a time that it has shown "
                            "before, with a sidecar's: no workerId is granted until it is %s, and "
                            "sidecars go on. If it is right now, and was ahead: `%s`. IDs with "
                            "times up to %s may exist: a pool that is "
                            "made anew, with other options than `pool status` prints, repeats them",
                            ctl_span(p->tmax_ms - s->reply.now_ms), ctl_time(until),
                            ctl_session_command(
                                s->args, "sidflakectl pool reopen --clock-was-ahead", command),
                            ctl_time(ctl_session_last_range(s))));
}

static void warn_of_closed(json_t *w, const struct ctl_session *s)
{
    char text[CTL_COMMAND_MAX];
    if (s->pool.moved)
        json_array_append_new(
            w, json_string("the pool is closed, and another may be in its place: it was closed as "
                           "moved, or a sidecar was heard since that has workerIds of another"));
    else if (s->pool.closed)
        json_array_append_new(
            w, json_sprintf("the pool is closed: it grants and renews nothing; `%s` takes that "
                            "back, unless it was made again elsewhere",
                            ctl_session_command(s->args, "sidflakectl pool open", text)));
}

static const char *reopen_command(const struct ctl_args *a, char out[CTL_COMMAND_MAX])
{
    return ctl_session_command(a, "sidflakectl pool reopen --nothing-lost", out);
}

static void warn_of_lost(json_t *w, const struct ctl_session *s)
{
    char text[CTL_COMMAND_MAX];
    if (s->lost > 0)
        json_array_append_new(
            w, json_sprintf("%llu workerIds are free and not in the queue, so that nobody gets "
                            "them: `%s` puts them back",
                            (unsigned long long)s->lost,
                            ctl_session_command(s->args, "sidflakectl pool check --repair", text)));
}

/* To look at it is no call that reopens it. */
static void warn_of_unmet(json_t *w, const struct ctl_session *s)
{
    if (s->pool.unmet_ms)
        json_array_append_new(
            w,
            json_sprintf("its server restarted or failed over since "
                         "it was asked last, on %s: whoever asks next reopens it, and new "
                         "sidecars wait from then on, for %s or longer",
                         ctl_time(s->pool.tmax_ms), ctl_span(s->pool.unmet_ms - s->reply.now_ms)));
}

/* When IDs come, and what else there is to do. */
static void warn_of_floors(json_t *w, const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    int64_t from = coord_pool_word_from(p, s->reply.era);
    char command[CTL_COMMAND_MAX];
    if (p->floor_ms <= s->reply.now_ms)
        return;
    if (p->topen_ms <= p->born_ms) {
        json_array_append_new(w, json_sprintf("made again on %s after a loss: new sidecars get a "
                                              "workerId from %s on; those that run go on",
                                              ctl_time(p->born_ms), ctl_time(p->floor_ms)));
        return;
    }
    json_array_append_new(w, json_sprintf("reopened on %s: workerIds that were held then and are "
                                          "not renewed rest until %s",
                                          ctl_time(p->topen_ms), ctl_time(p->floor_ms)));
    if (p->floor_short_ms <= s->reply.now_ms)
        return;
    const char *free = ctl_time(p->floor_short_ms);
    int64_t before = p->later.floor_short_before_ms;
    if (from > 0 && before > s->reply.now_ms)
        json_array_append_new(
            w, json_sprintf("reopened: new sidecars get a workerId from %s on. `%s` takes back the "
                            "latest reopening alone: what was before it stays until %s",
                            free, reopen_command(s->args, command), ctl_time(before)));
    else if (p->later.trust == COORD_TRUST_WORD)
        json_array_append_new(
            w, json_sprintf("reopened: new sidecars get a workerId from %s on: what was taken back "
                            "is the latest reopening alone, what was before it stays",
                            free));
    else if (from >= p->floor_short_ms) /* nobody waits by then */
        json_array_append_new(
            w, json_sprintf("reopened: new sidecars get a workerId from %s on", free));
    else if (from > 0)
        json_array_append_new(
            w, json_sprintf("reopened: new sidecars get a workerId from %s on. If the "
                            "coordinator came back with all that it knew: `%s`, which is taken "
                            "from %s on",
                            free, reopen_command(s->args, command), ctl_time(from)));
    else
        json_array_append_new(
            w, json_sprintf("reopened: new sidecars get a workerId from %s on; something "
                            "was lost, or may have been",
                            free));
}

void ctl_risks(unsigned risks, json_t *to)
{
    for (unsigned i = 0; i < COORD_RISKS; i++)
        if (coord_risk_text(risks, i))
            json_array_append_new(to, json_string(coord_risk_text(risks, i)));
}

void ctl_session_ask_server(struct ctl_session *s)
{
    struct coord_reply r;
    (void)coord_risks(s->coord, &s->risks);
    (void)coord_writes(s->coord, &r);
    s->unwritten = r.err;
}

void ctl_session_look(struct ctl_session *s, const struct coord_snapshot *snap)
{
    static struct coord_audit audit;
    (void)coord_audit(snap, &audit);
    s->lost = audit.count[COORD_FAULT_LOST];
    s->reply.free = audit.free;
    s->first_ms = ctl_holders_first(snap);
}

void ctl_spare_replicas(const struct coord_pool *p, json_t *to)
{
    unsigned k = p->params.replicas;
    if (k > 0 && p->replicas == k)
        json_array_append_new(
            to,
            json_sprintf("%u replica%s connected, as many as must acknowledge: when one is gone, "
                         "nothing is granted or renewed%s",
                         k, k == 1 ? " is" : "s are",
                         k == 1 ? "; three nodes are the fewest of which one may be" : ""));
}

static void warn_of_halves(json_t *w, const struct coord_pool *p)
{
    unsigned long long half = coord_acknowledge_short_of(p);
    if (half == 0)
        return;
    const char *end =
        "a failover may repeat IDs; make the pool with --replicas, of other workerIds";
    if (p->params.replicas == 0)
        json_array_append_new(w, json_sprintf("%llu replicas are connected, and none has to "
                                              "acknowledge: %s",
                                              (unsigned long long)p->replicas, end));
    else
        json_array_append_new(w, json_sprintf("%llu replicas are connected, and %u have to "
                                              "acknowledge, fewer than the %llu that are half of "
                                              "all nodes: %s",
                                              (unsigned long long)p->replicas, p->params.replicas,
                                              half, end));
}

json_t *ctl_session_warnings(const struct ctl_session *s)
{
    const struct coord_pool *p = &s->pool;
    json_t *w = json_array();
    uint64_t size = (uint64_t)(p->params.worker_to - p->params.worker_from) + 1;
    warn_of_closed(w, s);
    warn_of_clocks(w, s);
    if (layout_end_ms(&p->layout, p->epoch_ms) - s->reply.now_ms < LIFETIME_WARN_MS)
        json_array_append_new(w, json_sprintf("the time field of the IDs ends on %s",
                                              ctl_time(layout_end_ms(&p->layout, p->epoch_ms))));
    warn_of_lost(w, s);
    if (s->unwritten.text[0])
        json_array_append_new(w, json_sprintf("nothing can be written, so that no workerId is "
                                              "granted or renewed: %s",
                                              s->unwritten.text));
    if (s->unread.text[0])
        json_array_append_new(w, json_sprintf("the workerIds cannot be read: %s", s->unread.text));
    if (s->reply.free == 0 && s->first_ms > 0)
        json_array_append_new(w, json_sprintf("no workerId is free: the range that ends first is "
                                              "over and rested on %s, if its holder is gone",
                                              ctl_time(s->first_ms)));
    else if (size > 1 && s->reply.free * 20 < size) /* of static:N none is ever free */
        json_array_append_new(w, json_sprintf("less than 5 %% of the workerIds are free"));
    if (s->reply.free > 0 && s->first_ms > s->reply.now_ms &&
        p->floor_short_ms <= s->reply.now_ms) /* else the floors tell */
        json_array_append_new(w, json_sprintf("every free workerId rests: new sidecars get one "
                                              "from %s on",
                                              ctl_time(s->first_ms)));
    if (p->replicas < p->params.replicas)
        json_array_append_new(w, json_sprintf("%llu replicas are connected, fewer than the %u that "
                                              "must acknowledge: nothing is granted or renewed",
                                              (unsigned long long)p->replicas, p->params.replicas));
    ctl_spare_replicas(p, w);
    warn_of_halves(w, p);
    warn_of_unmet(w, s);
    warn_of_floors(w, s);
    ctl_risks(s->risks, w);
    return w;
}
