#include "lease/workers.h"

#include "base/log.h"
#include "base/timefmt.h"
#include "lease/ask.h"
#include "lease/explain.h"
#include "lease/trouble.h"

#include <stdlib.h>
#include <string.h>

#define RETIRED_MAX (4 * LEASE_SLOTS)
#define RISKS_MS    600000 /* between two looks at what the server may lose */

static_assert(LEASE_MAIL_MAX <= SUPPLY_MAILS, "all mails of an outcome are posted");
static_assert(sizeof(struct lease_mail) <= SUPPLY_BODY, "one is the body of a mail");

struct workers {
    struct supply supply;
    struct workers_options o;
    struct workers_report shared; /* under the keeper's lock, as is what was told: */
    uint32_t retired[RETIRED_MAX];
    unsigned nretired;
    bool urge_renewal, urge_claim;

    struct {
        struct coord_token token;
        enum workers_word word;
    } found[LEASE_SLOTS]; /* in the page, at the start */

    struct lease lease;
    struct lease_action action; /* decided on */
    struct lease_outcome outcome;
    struct workers_report report;
    char lacks[ERR_TEXT_MAX]; /* why the latest claim had no workerId; "": it had one */
    struct trouble trouble, claims;
    bool page_lost;   /* that was logged */
    bool undated;     /* likewise: no new generation of the page can be had */
    bool range_told;  /* likewise: the pool's range is another one */
    bool pool_gone;   /* likewise: there is none to renew with */
    int64_t asked_ms; /* monotonic: action was decided on */
    int64_t risks_ms; /* likewise: the server is asked again what it may lose; 0: it never was */
    unsigned risks;   /* as it said in the call that was made */
};

static struct workers *of(struct supply *s)
{
    return (struct workers *)(void *)s;
}

/* ---- the log: what changed --------------------------------------------------------------------
 */

static void log_grant(const struct lease_mail *m)
{
    char to[TIMEFMT_MAX];
    log_info("workerId held", kv_u64("worker", m->worker),
             kv_str("ceiling", timefmt_rfc3339(to, m->hi_ms)));
}

static void log_pool(const struct workers *w)
{
    const struct coord_pool *p = &w->lease.pool;
    char epoch[TIMEFMT_MAX], end[TIMEFMT_MAX];
    log_info("pool found", kv_str("coordinator", w->o.coord_name), kv_str("pool", w->o.pool_name),
             kv_str("identity", p->identity), kv_u64("era", w->lease.era),
             kv_str("epoch", timefmt_rfc3339(epoch, p->epoch_ms)),
             kv_str("lasts_until", timefmt_rfc3339(end, layout_end_ms(&p->layout, p->epoch_ms))),
             kv_i64("horizon_ms", p->params.horizon_ms));
    uint64_t half = coord_acknowledge_short_of(p);
    if (half > 0)
        log_warn("fewer of the coordinator's replicas have to acknowledge than half of all nodes: "
                 "a failover may repeat IDs",
                 kv_u64("replicas", p->replicas), kv_u64("must_acknowledge", p->params.replicas),
                 kv_u64("half", half), kv_str("pool", w->o.pool_name));
}

/* A renewal that is answered names each workerId that is lost; any other outcome by which one goes
 * says that there is no pool to renew it with, and takes only what has ended. */
static const char *why_lost(const struct lease_mail *m, const struct lease_action *a,
                            const struct lease_outcome *o)
{
    if (m->released)
        return "an operator released it";
    if (a->kind != LEASE_RENEW || o->status != COORD_OK)
        return "its range is over, and its pool is gone, or there is another one";
    return "the coordinator knows a later holder, rested it, or has other workerIds";
}

/* a, o: what brought the mails; of those of a start, which revoke nothing, NULL. */
static void log_mails(const struct workers *w, const struct lease_action *a,
                      const struct lease_outcome *o)
{
    for (unsigned i = 0; i < w->lease.nmail; i++) {
        const struct lease_mail *m = &w->lease.mail[i];
        if (m->kind == LEASE_MAIL_POOL && !w->lease.described)
            log_info("state page taken over", kv_str("identity", w->lease.identity));
        else if (m->kind == LEASE_MAIL_POOL)
            log_pool(w);
        else if (m->kind == LEASE_MAIL_GRANT)
            log_grant(m);
        else if (m->kind == LEASE_MAIL_REVOKE)
            log_warn("workerId lost", kv_u64("worker", m->worker),
                     kv_str("why", why_lost(m, a, o)));
    }
}

/* Each once, as long as it lasts. */
static void log_risks(struct workers *w)
{
    for (unsigned i = 0; i < COORD_RISKS; i++) {
        const char *text = coord_risk_text(w->risks & ~w->report.risks, i);
        if (text)
            log_warn(text, kv_str("coordinator", w->o.coord_name), kv_str("pool", w->o.pool_name));
    }
    w->report.risks = w->risks;
}

static void log_range(struct workers *w)
{
    bool differs = w->lease.range.code != ERR_OK;
    if (differs && !w->range_told)
        log_warn("the pool's workerIds are others than before", kv_str("why", w->lease.range.text),
                 kv_str("pool", w->o.pool_name));
    w->range_told = differs;
}

/* The latest ceiling of what was granted, Unix ms; 0: nothing is held. */
static int64_t ids_until(const struct lease *l)
{
    int64_t until = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct lease_slot *x = &l->slot[i];
        bool granted = x->rec.state == PAGE_HELD && x->unproven == 0;
        if (granted && x->rec.hi_ms > until)
            until = x->rec.hi_ms;
    }
    return until;
}

/* The reason may be long, and a line is cut at its end. */
static void log_trouble(const struct workers *w, const struct trouble *t)
{
    char until[TIMEFMT_MAX];
    int64_t until_ms = ids_until(&w->lease);
    log_write(trouble_level(t), trouble_message(t),
              LOG_KVS(kv_u64("held", lease_held(&w->lease)),
                      kv_str("ids_until", until_ms > 0 ? timefmt_rfc3339(until, until_ms) : "none"),
                      kv_str("why", w->report.why), kv_str("coordinator", w->o.coord_name)));
}

/* Of claims alone: all else is answered meanwhile. */
static bool is_of_claims(enum coord_status s)
{
    return s == COORD_WAIT || s == COORD_EXHAUSTED || s == COORD_SKEW || s == COORD_CLOSED;
}

/* Where a pool is missing that is made next, or somebody else has made it just now, it is the next
 * call that tells; and where a claim has to wait of a pool that was reopened just now, the next
 * claim, which knows what can be done. A claim may have to wait while all else is answered: that is
 * a state of its own, or it would change with each renewal. */
static void log_status(struct workers *w, const struct trouble_call *c)
{
    bool waits = c->kind == LEASE_CLAIM && is_of_claims(c->status);
    struct trouble_call all = *c, claim = *c;
    all.status = waits || c->status == COORD_LOST ? COORD_OK : c->status;
    claim.status = waits ? c->status : COORD_OK;
    if (c->status == COORD_EXISTS || (c->status == COORD_NOPOOL && lease_may_init(&w->lease)))
        return;
    if (trouble_is_news(&w->trouble, &all)) {
        if (w->trouble.status != COORD_OK)
            log_trouble(w, &w->trouble);
        else if (w->report.answered)
            log_info(trouble_message(&w->trouble), kv_str("coordinator", w->o.coord_name));
    }
    if ((waits && !w->lease.described) || c->kind != LEASE_CLAIM || all.status != COORD_OK)
        return;
    if (trouble_is_news(&w->claims, &claim) && waits)
        log_trouble(w, &w->claims);
}

/* ---- one call ---------------------------------------------------------------------------------
 */

/* false: states of the page from before a workerId was given up could still be taken over. */
static bool page_is_dated(struct workers *w)
{
    struct err e;
    if (!w->lease.gave_up)
        return true;
    bool failed = pagefile_begin_generation(w->o.file, &e) != ERR_OK;
    if (failed && !w->undated)
        log_warn("state page without a new generation: no workerId is given back, each rests until "
                 "its range is over",
                 kv_str("file", w->o.file->path), kv_str("why", e.text));
    w->undated = failed;
    w->lease.gave_up = failed;
    return !failed;
}

/* A release that is not sent is as good as one that came too late. */
static bool may_ask(struct workers *w, const struct lease_action *a)
{
    if (a->kind != LEASE_RELEASE || page_is_dated(w))
        return true;
    log_warn("workerId not given back", kv_u64("worker", a->release.worker));
    return false;
}

static void log_call(const struct lease_action *a, enum coord_status s)
{
    char last[TIMEFMT_MAX];
    if (a->kind == LEASE_INIT && s == COORD_OK)
        log_info("pool made", kv_str("mode", coord_init_mode_name(a->init.mode)));
    else if (a->kind == LEASE_RELEASE)
        log_info("workerId given back", kv_u64("worker", a->release.worker),
                 kv_str("status", coord_status_name(s)),
                 kv_str("last", a->release.has_last && a->release.last_ms > 0
                                    ? timefmt_rfc3339(last, a->release.last_ms)
                                    : "none"));
}

/* After a pool was found, and now and then: an operator may have mended it. */
static void ask_risks(struct workers *w, struct coord *c)
{
    enum lease_action_kind kind = w->action.kind;
    bool due = kind == LEASE_DESCRIBE || (kind == LEASE_RENEW && w->asked_ms >= w->risks_ms);
    if (w->outcome.status != COORD_OK || !due)
        return;
    w->risks_ms = w->asked_ms + RISKS_MS;
    (void)coord_risks(c, &w->risks);
}

static void make_call(struct supply *s, struct coord *c, int64_t wall)
{
    struct workers *w = of(s);
    if (!may_ask(w, &w->action)) {
        w->outcome = (struct lease_outcome){.status = COORD_LOST};
        return;
    }
    lease_ask(c, w->lease.identity, wall, &w->action, &w->outcome);
    log_call(&w->action, w->outcome.status);
    ask_risks(w, c);
}

/* There is none, or not the one that what is held came from. */
static bool is_gone(const struct lease_action *a, const struct lease_outcome *o)
{
    const struct coord_terms *t = &o->terms;
    for (size_t i = 0; o->status == COORD_OK && i < a->nitems; i++)
        if (a->items[i].worker < t->worker_from || a->items[i].worker > t->worker_to)
            return true;
    return o->status == COORD_NOPOOL || o->status == COORD_WRONGPOOL;
}

/* A workerId whose range has not ended is lost where the coordinator forgot, or it says why. A pool
 * that is gone is one loss, whatever other calls were told before and between. */
static bool forgot(struct workers *w, const struct lease_action *a, const struct lease_outcome *o)
{
    if (a->kind != LEASE_RENEW)
        return false;
    bool told = w->pool_gone, gone = is_gone(a, o);
    if (gone || o->status == COORD_OK)
        w->pool_gone = gone;
    if (gone)
        return !told;
    for (size_t i = 0; o->status == COORD_OK && i < a->nitems; i++) {
        const struct coord_renewal *x = &a->items[i];
        if (x->how == COORD_HOW_LOST && !x->released && x->hi_ms > o->reply.now_ms)
            return true;
    }
    return false;
}

static void count_renewals(struct workers_report *r, const struct lease_action *a,
                           const struct lease_outcome *o)
{
    if (a->kind != LEASE_RENEW)
        return;
    if (o->status != COORD_OK)
        r->renewals_failed++;
    for (size_t i = 0; o->status == COORD_OK && i < a->nitems; i++)
        r->renewals[a->items[i].how]++;
}

/* Whoever is refused for long has nothing of the coordinator, though it can be reached. */
static bool serves(enum coord_status s)
{
    return s == COORD_OK || s == COORD_LOST || s == COORD_WAIT || s == COORD_EXHAUSTED ||
           s == COORD_EXISTS;
}

/* What a claim is refused for is so until one is not, whatever else is answered between. */
static void say_why(struct workers *w, const struct lease_action *a, const struct lease_outcome *o)
{
    struct workers_report *r = &w->report;
    explain(&w->o, &w->lease, o, r->why, sizeof r->why);
    if (a->kind == LEASE_CLAIM)
        memcpy(w->lacks, r->why, sizeof w->lacks);
    else if (!r->why[0])
        memcpy(r->why, w->lacks, sizeof r->why);
}

static void note(struct workers *w, const struct lease_action *a, const struct lease_outcome *o,
                 int64_t mono, int64_t wall)
{
    struct workers_report *r = &w->report;
    uint64_t era = r->era;
    count_renewals(r, a, o);
    if (forgot(w, a, o)) {
        r->data_loss++;
        log_error("coordinator forgot what it had granted",
                  kv_str("status", coord_status_name(o->status)));
    }
    r->up = coord_answered(o->status, &o->reply);
    r->status = o->status;
    if (o->reply.now_ms > 0) {
        r->skew_ms = o->reply.now_ms - wall;
        r->time_ms = o->reply.now_ms;
        r->time_mono = mono;
    }
    if (lease_heard_of_all(&w->lease, a, o)) {
        r->heard_ms = o->reply.now_ms;
        r->heard_mono = mono;
    }
    if (o->reply.era > 0) {
        r->era = o->reply.era;
        r->free = o->reply.free;
    }
    if (era > 0 && r->era != era)
        log_warn("pool reopened: its server restarted, failed over or lost data",
                 kv_u64("era", r->era), kv_u64("era_before", era));
    say_why(w, a, o);
    /* A pool that answers, but that this process must not use, is as good as another one. */
    bool unusable = o->status == COORD_OK && w->lease.trouble.code;
    const struct trouble_call came = {.kind = a->kind,
                                      .status = unusable ? COORD_WRONGPOOL : o->status,
                                      .answered = r->up,
                                      .why = r->why,
                                      .mono_ms = mono};
    log_status(w, &came);
    r->serves = serves(o->status) && !unusable;
    r->answered |= r->up;
    r->pool = w->lease.pool;
}

/* Said once: it does not come back. IDs go on, since what is held is the coordinator's to know. */
static void look_at_page(struct workers *w)
{
    struct err e = {.code = ERR_OK};
    if (w->page_lost || pagefile_stands(w->o.file, &e))
        return;
    w->page_lost = true;
    memcpy(w->report.page, e.text, sizeof w->report.page);
    log_error(w->o.lease.page_knows_alone ? "state page lost: a restart may be refused, or repeat "
                                            "IDs if the clock has stepped back"
                                          : "state page lost: a restart will cost a workerId",
              kv_str("file", w->o.file->path), kv_str("why", e.text));
}

/* A renewal that repeats what the page says was about to be sent tells nothing of when that was
 * answered, and one by which the coordinator learns of a holder that it has forgotten tells nothing
 * at all. */
static void hear_words(struct workers *w)
{
    const struct lease_action *a = &w->action;
    bool answered = a->kind == LEASE_RENEW && w->outcome.status == COORD_OK;
    for (size_t k = 0; answered && k < a->nitems; k++) {
        enum workers_word *word = &w->found[a->slots[k]].word;
        if (*word == WORKERS_UNHEARD)
            *word = a->items[k].how == COORD_HOW_RENEWED ? WORKERS_LATEST : WORKERS_DENIED;
    }
}

/* What is not held any more is not renewed. */
static void give_up_words(struct workers *w)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (w->found[i].word == WORKERS_UNHEARD && w->lease.slot[i].rec.state != PAGE_HELD)
            w->found[i].word = WORKERS_DENIED;
}

bool workers_witness(const struct workers *w, struct workers_witness *out)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct lease_slot *x = &w->lease.slot[i];
        if (x->rec.state != PAGE_HELD || x->unproven)
            continue;
        *out = (struct workers_witness){.slot = i, .token = x->rec.cur};
        return true;
    }
    return false;
}

enum workers_word workers_word(const struct workers *w, const struct workers_witness *x)
{
    if (x->slot >= LEASE_SLOTS || !coord_token_equal(w->found[x->slot].token, x->token))
        return WORKERS_DENIED;
    return w->found[x->slot].word;
}

const char *workers_identity(const struct workers *w)
{
    return w->lease.identity;
}

bool workers_page_stands(const struct workers *w, struct err *why)
{
    return pagefile_stands(w->o.file, why);
}

void workers_time(const struct workers *w, int64_t *ms, int64_t *mono)
{
    const struct workers_report *r = &w->report;
    if (r->time_ms == 0 || r->time_mono < *mono)
        return;
    *ms = r->time_ms;
    *mono = r->time_mono;
}

/* The log has them first. */
static void post(struct workers *w, const struct lease_action *a, const struct lease_outcome *o)
{
    log_mails(w, a, o);
    for (unsigned i = 0; i < w->lease.nmail; i++)
        supply_post(&w->supply, &w->lease.mail[i], sizeof w->lease.mail[i]);
    w->lease.nmail = 0;
}

static void done(struct supply *s, int64_t mono, int64_t wall)
{
    struct workers *w = of(s);
    hear_words(w);
    lease_done(&w->lease, &w->action, &w->outcome, mono, wall);
    give_up_words(w);
    (void)page_is_dated(w); /* of what was found to be lost */
    note(w, &w->action, &w->outcome, mono, wall);
    look_at_page(w);
    log_range(w);
    log_risks(w);
    post(w, &w->action, &w->outcome);
}

/* ---- the machine's side -----------------------------------------------------------------------
 */

static void tell(struct supply *s, const void *event)
{
    struct workers *w = of(s);
    const struct workers_event *e = event;
    w->urge_renewal |= e->kind == WORKERS_URGE_RENEWAL;
    w->urge_claim |= e->kind == WORKERS_URGE_CLAIM;
    /* There are at most LEASE_SLOTS grants, each retired once: the box cannot overflow unless the
     * keeper hangs in a call while slots are reused, which they are not before it returns. */
    if (e->kind == WORKERS_RETIRE && w->nretired < RETIRED_MAX)
        w->retired[w->nretired++] = e->handle;
}

static void hear(struct supply *s, int64_t mono)
{
    struct workers *w = of(s);
    for (unsigned i = 0; i < w->nretired; i++)
        lease_retire(&w->lease, w->retired[i], mono);
    if (w->urge_renewal)
        lease_urge_renewal(&w->lease, mono);
    if (w->urge_claim)
        lease_urge_claim(&w->lease, mono);
    give_up_words(w);
    w->nretired = 0;
    w->urge_renewal = w->urge_claim = false;
}

static void stop(struct supply *s, bool give_back, int64_t mono)
{
    lease_stop(&of(s)->lease, give_back, mono);
}

static enum supply_next next(struct supply *s, int64_t mono, int64_t *until)
{
    struct workers *w = of(s);
    lease_next(&w->lease, mono, &w->action);
    w->asked_ms = mono;
    *until = w->action.until;
    return w->action.kind == LEASE_IDLE       ? SUPPLY_IDLE
           : w->action.kind == LEASE_FINISHED ? SUPPLY_FINISHED
                                              : SUPPLY_CALL;
}

static bool proven(const struct supply *s)
{
    return lease_proven(&((const struct workers *)(const void *)s)->lease);
}

static const void *report(struct supply *s)
{
    struct workers *w = of(s);
    w->report.held = lease_held(&w->lease);
    return &w->report;
}

static const struct supply_kind kind = {.tell = tell,
                                        .hear = hear,
                                        .stop = stop,
                                        .next = next,
                                        .call = make_call,
                                        .done = done,
                                        .proven = proven,
                                        .report = report,
                                        .report_size = sizeof(struct workers_report)};

/* ---- life -------------------------------------------------------------------------------------
 */

enum err_code workers_new(const struct workers_options *o, int64_t mono, struct workers **out,
                          struct err *e)
{
    struct workers *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(e, ERR_NOMEM, "no memory for workerIds");
    w->supply.kind = &kind;
    w->supply.shared = &w->shared;
    w->o = *o;
    lease_init(&w->lease, &o->lease, o->file, o->rng, mono);
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        w->found[i].token = w->lease.slot[i].rec.cur;
    give_up_words(w);
    w->report.pool = w->lease.pool;
    if (o->file->fd < 0)
        memcpy(w->report.page, o->file->why.text, sizeof w->report.page);
    post(w, NULL, NULL);
    *out = w;
    return ERR_OK;
}

struct supply *workers_supply(struct workers *w)
{
    return &w->supply;
}

struct lease_mail workers_mail(const struct supply_mail *m)
{
    struct lease_mail out;
    memcpy(&out, m->body, sizeof out);
    return out;
}

void workers_free(struct workers *w)
{
    free(w);
}
