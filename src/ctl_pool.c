/*
 * sidflakectl pool …: what operators do to a pool.
 */
#include "ctl.h"

#include "base/dec.h"
#include "base/timefmt.h"
#include "ids/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_US   INT64_C(5000000)
#define REPAIR_BATCH COORD_REPAIR_MAX
#define URL_MAX      1025

struct session {
    struct coord *coord;
    struct coord_pool pool;
    struct coord_reply reply;
    int64_t asked_ms; /* our clock at the time of the answer, for the skew */
};

static int fail_status(const struct ctl_args *a, enum coord_status s, const struct coord_reply *r)
{
    const char *pool = a->pool ? a->pool : "default";
    char at[URL_MAX];
    if (coord_url_public(span_str(a->coordinator), at, sizeof at))
        (void)snprintf(at, sizeof at, "the coordinator");
    if (s == COORD_NOPOOL)
        return ctl_fail(CTL_BAD, "no pool \"%s\" at %s: make it with `sidflakectl pool init`", pool,
                        at);
    if (s == COORD_EXISTS)
        return ctl_fail(CTL_BAD, "there is a pool \"%s\" at %s already", pool, at);
    return ctl_fail(s == COORD_DOWN ? CTL_DOWN : CTL_BAD, "%s: %s", coord_status_name(s),
                    r->err.text[0] ? r->err.text : "the coordinator refused");
}

/* The file's contents less one final line end. */
static bool read_password(const char *path, char out[1025])
{
    out[0] = '\0';
    if (!path)
        return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, 1024) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (n < 0) {
        (void)ctl_fail(CTL_BAD, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    return true;
}

/* Connects; with describe, reads the pool as well. CTL_OK, or the exit status. */
static int open_pool(const struct ctl_args *a, struct session *s, bool describe)
{
    char password[1025];
    struct err e;
    memset(s, 0, sizeof *s);
    if (!read_password(a->password_file, password))
        return CTL_BAD;
    struct coord_options o = {.url = span_str(a->coordinator),
                              .pool = span_str(a->pool ? a->pool : "default"),
                              .password = span_str(password),
                              .timeout_us = TIMEOUT_US,
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
    return fail_status(a, r, &s->reply);
}

/* ---- init -------------------------------------------------------------------------------------
 */

static const char three[] =
    "Which is true of the IDs that this pool will give out?\n"
    "  1  fresh: nobody has ever issued IDs with this epoch and layout for these applications.\n"
    "     WorkerIds can be had at once. Wrongly said after a loss, it duplicates IDs.\n"
    "  2  after a loss: there was a pool, and it was lost, flushed or restored. Sidecars that run "
    "go\n"
    "     on; new ones wait until no earlier holder can still be issuing (horizon and two skews).\n"
    "  3  other workerIds: as 2, but with a range of workerIds never used before: nobody waits.\n"
    "     Use --workers FROM-TO.\n"
    "1, 2 or nothing to stop: ";

/* Which of the three; false: none was said. */
static bool ask_mode(struct ctl_args *a)
{
    char answer[8] = "";
    (void)fputs(three, stderr);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    a->fresh = answer[0] == '1';
    a->after_loss = answer[0] == '2';
    return a->fresh || a->after_loss;
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
    if (a->fresh + a->after_loss + (a->workers != NULL) > 1)
        return ctl_fail(CTL_USAGE,
                        "pool init: expected one of --fresh, --after-loss and --workers");
    if (a->workers && !parse_workers(a->workers, &a->params))
        return ctl_fail(CTL_USAGE, "--workers: expected FROM-TO within 0-32767, found \"%s\"",
                        a->workers);
    if (coord_params_check(&a->params, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    if (a->fresh || a->after_loss || a->workers)
        return CTL_OK;
    if (!isatty(STDIN_FILENO))
        return ctl_fail(CTL_USAGE,
                        "pool init: expected --fresh, --after-loss or --workers FROM-TO; "
                        "see sidflakectl --help for what each says");
    return ask_mode(a) ? CTL_OK : ctl_fail(CTL_USAGE, "nothing was made");
}

static int make_identity(const struct ctl_args *a, char out[COORD_IDENTITY_MAX])
{
    char uuid[COORD_UUID_TEXT];
    struct err e;
    int64_t epoch = a->has_epoch ? a->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS;
    if (epoch > clock_wall_ms(clock_system()))
        return ctl_fail(CTL_USAGE, "--epoch: expected a time in the past, found %s",
                        ctl_time(epoch));
    struct span id = a->uuid ? span_str(a->uuid) : span_str(coord_uuid_new(uuid, rng_system()));
    if (coord_identity_make(out, id, epoch, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    return CTL_OK;
}

int ctl_pool_init(struct ctl_args *a)
{
    struct session s;
    struct coord_init in = {0};
    int status = check_init(a);
    if (status || (status = make_identity(a, in.identity)) || (status = open_pool(a, &s, false)))
        return status;
    in.params = a->params;
    in.mode = a->after_loss ? COORD_INIT_AFTER_LOSS : COORD_INIT_FRESH;
    enum coord_status r = coord_init(s.coord, &in, &s.reply);
    coord_free(s.coord);
    if (r == COORD_EXISTS && a->if_missing) {
        (void)puts("the pool exists already: nothing was changed");
        return CTL_OK;
    }
    if (r != COORD_OK)
        return fail_status(a, r, &s.reply);
    (void)printf("made pool %s with workerIds %u to %u\n", in.identity, in.params.worker_from,
                 in.params.worker_to);
    if (in.mode == COORD_INIT_AFTER_LOSS)
        (void)printf("new sidecars get a workerId from %s on; those that run go on\n",
                     ctl_time(s.reply.now_ms + in.params.horizon_ms + 2 * in.params.max_skew_ms));
    return CTL_OK;
}

/* ---- status -----------------------------------------------------------------------------------
 */

#define LIFETIME_WARN_MS (INT64_C(180) * 86400000)

static json_t *warnings_of(const struct session *s)
{
    const struct coord_pool *p = &s->pool;
    json_t *w = json_array();
    int64_t skew = s->reply.now_ms - s->asked_ms;
    uint64_t size = (uint64_t)(p->params.worker_to - p->params.worker_from) + 1;
    if (p->closed)
        json_array_append_new(w, json_string("the pool is closed: it grants and renews nothing"));
    if (skew > p->params.max_skew_ms || skew < -p->params.max_skew_ms)
        json_array_append_new(w,
                              json_sprintf("this host's clock and the coordinator's differ by "
                                           "%s, more than max-skew: claims from here are refused",
                                           ctl_span(skew)));
    if (layout_end_ms(p->epoch_ms) - s->reply.now_ms < LIFETIME_WARN_MS)
        json_array_append_new(w, json_sprintf("the time field of the IDs ends on %s",
                                              ctl_time(layout_end_ms(p->epoch_ms))));
    if (s->reply.free * 20 < size)
        json_array_append_new(w, json_sprintf("less than 5 %% of the workerIds are free"));
    if (p->replicas < p->params.replicas)
        json_array_append_new(w, json_sprintf("%llu replicas are connected, fewer than the %u that "
                                              "must acknowledge: nothing is granted or renewed",
                                              (unsigned long long)p->replicas, p->params.replicas));
    if (p->floor_ms > s->reply.now_ms && p->topen_ms > p->born_ms)
        json_array_append_new(w,
                              json_sprintf("reopened on %s: workerIds that were held then and are "
                                           "not renewed rest until %s",
                                           ctl_time(p->topen_ms), ctl_time(p->floor_ms)));
    return w;
}

static json_t *status_json(const struct session *s)
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
        "warnings", warnings_of(s));
}

static void print_status(const struct session *s)
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
    json_t *w = warnings_of(s), *one;
    size_t i;
    json_array_foreach(w, i, one)(void) printf("warning      %s\n", json_string_value(one));
    json_decref(w);
}

int ctl_pool_status(struct ctl_args *a)
{
    struct session s;
    int status = open_pool(a, &s, true);
    if (status)
        return status;
    coord_free(s.coord);
    if (a->json)
        return ctl_print_json(status_json(&s));
    print_status(&s);
    return CTL_OK;
}

/* ---- list -------------------------------------------------------------------------------------
 */

/* A field of the holder's JSON, which is as hostile as anything from a coordinator: control
 * characters are not printed. */
static const char *holder_field(json_t *who, const char *name, char out[64])
{
    const char *v = json_string_value(json_object_get(who, name));
    (void)snprintf(out, 64, "%s", v && *v ? v : "-");
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return out;
}

static json_t *worker_json(const struct coord_worker *w, int64_t now_ms)
{
    json_t *who = w->who ? json_loads(w->who, JSON_REJECT_DUPLICATES, NULL) : NULL;
    return json_pack("{s:i, s:b, s:I, s:s, s:s, s:I, s:I, s:o}", "worker", (int)w->worker, "stale",
                     (int)w->stale, "era", (json_int_t)w->era, "since", ctl_time(w->t0_ms),
                     "ceiling", ctl_time(w->hwm_ms), "age_ms", (json_int_t)(now_ms - w->t0_ms),
                     "range_left_ms", (json_int_t)(w->hwm_ms - now_ms), "holder",
                     who ? who : json_null());
}

static void print_worker(const struct coord_worker *w, int64_t now_ms)
{
    char host[64], pod[64];
    json_t *who = w->who ? json_loads(w->who, 0, NULL) : NULL;
    json_int_t pid = json_integer_value(json_object_get(who, "pid"));
    (void)printf("%-8u %-24s %-24s %-8lld %-14s %-14s %s%s\n", w->worker,
                 holder_field(who, "host", host), holder_field(who, "pod", pod), (long long)pid,
                 ctl_span(now_ms - w->t0_ms), ctl_span(w->hwm_ms - now_ms), ctl_time(w->hwm_ms),
                 w->stale ? "  (of an earlier era)" : "");
    json_decref(who);
}

static int read_snapshot(struct ctl_args *a, struct session *s, struct coord_snapshot *snap)
{
    int status = open_pool(a, s, true);
    if (status)
        return status;
    enum coord_status r = coord_snapshot(s->coord, snap, &s->reply);
    if (r == COORD_OK)
        return CTL_OK;
    coord_free(s->coord);
    return fail_status(a, r, &s->reply);
}

int ctl_pool_list(struct ctl_args *a)
{
    struct session s;
    struct coord_snapshot snap = {0};
    int status = read_snapshot(a, &s, &snap);
    if (status)
        return status;
    json_t *list = json_array();
    if (!a->json)
        (void)printf("%-8s %-24s %-24s %-8s %-14s %-14s %s\n", "WORKERID", "HOST", "POD", "PID",
                     "AGE", "RANGE LEFT", "CEILING");
    for (size_t i = 0; i < snap.nworkers; i++) {
        const struct coord_worker *w = &snap.workers[i];
        if (w->held && a->json)
            json_array_append_new(list, worker_json(w, snap.reply.now_ms));
        else if (w->held)
            print_worker(w, snap.reply.now_ms);
    }
    coord_snapshot_clear(&snap);
    coord_free(s.coord);
    if (a->json)
        return ctl_print_json(list);
    json_decref(list);
    return CTL_OK;
}

/* ---- release, close ---------------------------------------------------------------------------
 */

int ctl_pool_release(struct ctl_args *a)
{
    struct session s;
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
    int status = open_pool(a, &s, true);
    if (status)
        return status;
    enum coord_status r = coord_evict(s.coord, s.pool.identity, (uint16_t)a->worker, &s.reply);
    coord_free(s.coord);
    if (r == COORD_LOST)
        return ctl_fail(CTL_BAD, "workerId %u is not held", a->worker);
    if (r != COORD_OK)
        return fail_status(a, r, &s.reply);
    (void)printf("workerId %u is back in the queue\n", a->worker);
    return CTL_OK;
}

int ctl_pool_close(struct ctl_args *a)
{
    struct session s;
    int status = open_pool(a, &s, true);
    if (status)
        return status;
    enum coord_status r = coord_close(s.coord, s.pool.identity, &s.reply);
    coord_free(s.coord);
    if (r != COORD_OK)
        return fail_status(a, r, &s.reply);
    (void)printf("closed: no more grants and renewals; every range ends by %s\n",
                 ctl_time(s.reply.now_ms + s.pool.params.horizon_ms));
    return CTL_OK;
}

/* ---- check ------------------------------------------------------------------------------------
 */

static int repair(struct session *s, const struct coord_audit *audit, struct ctl_args *a)
{
    uint16_t batch[REPAIR_BATCH];
    size_t n = 0;
    for (uint32_t w = 0; w <= COORD_WORKERS; w++) {
        bool last = w == COORD_WORKERS;
        if (!last && audit->faults[w])
            batch[n++] = (uint16_t)w;
        if (n == 0 || (!last && n < REPAIR_BATCH))
            continue;
        enum coord_status r = coord_repair(s->coord, s->pool.identity, batch, n, &s->reply);
        if (r != COORD_OK)
            return fail_status(a, r, &s->reply);
        n = 0;
    }
    return CTL_OK;
}

static void print_audit(const struct coord_audit *audit)
{
    for (int f = 0; f < COORD_FAULTS; f++) {
        unsigned shown = 0;
        if (audit->count[f] == 0)
            continue;
        (void)printf("%-12s %llu:", coord_fault_name((enum coord_fault)f),
                     (unsigned long long)audit->count[f]);
        for (uint32_t w = 0; w < COORD_WORKERS && shown < 16; w++)
            if (audit->faults[w] & 1u << f && shown++ < 16)
                (void)printf(" %u", w);
        (void)puts(audit->count[f] > shown ? " …" : "");
    }
    if (audit->strangers > 0)
        (void)printf("%llu queue entries are no workerId of the pool\n",
                     (unsigned long long)audit->strangers);
}

static json_t *audit_json(const struct coord_audit *audit, uint64_t faults)
{
    json_t *j = json_pack("{s:I, s:I}", "faults", (json_int_t)faults, "strangers",
                          (json_int_t)audit->strangers);
    for (int f = 0; f < COORD_FAULTS; f++) {
        json_t *list = json_array();
        for (uint32_t w = 0; w < COORD_WORKERS; w++)
            if (audit->faults[w] & 1u << f)
                json_array_append_new(list, json_integer((json_int_t)w));
        json_object_set_new(j, coord_fault_name((enum coord_fault)f), list);
    }
    return j;
}

int ctl_pool_check(struct ctl_args *a)
{
    static struct coord_audit audit;
    struct session s;
    struct coord_snapshot snap = {0};
    int status = read_snapshot(a, &s, &snap);
    if (status)
        return status;
    uint64_t faults = coord_audit(&snap, &audit);
    coord_snapshot_clear(&snap);
    if (a->json)
        status = ctl_print_json(audit_json(&audit, faults));
    else
        print_audit(&audit);
    if (status == CTL_OK && faults > 0 && a->repair) {
        status = repair(&s, &audit, a);
        if (status == CTL_OK && !a->json)
            (void)puts("repaired");
    } else if (status == CTL_OK && faults > 0) {
        status = CTL_BAD;
    } else if (status == CTL_OK && !a->json) {
        (void)puts("nothing is wrong");
    }
    coord_free(s.coord);
    return status;
}
