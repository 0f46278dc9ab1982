#include "daemon/bridge.h"

#include "base/log.h"
#include "base/timefmt.h"
#include "daemon/bridge_sequences.h"

#include <assert.h>

static_assert(SNOWFLAKE_MEMBERS >= PAGE_SLOTS, "every grant has room in the generator");

#define URGE_EVERY_US  1000000
#define CHECK_EVERY_MS 1000
#define LOG_EVERY_MS   1000
#define REMIND_MS      60000 /* what lasts as long as a coordinator's outage */

void bridge_init(struct bridge *b)
{
    b->checked_ms = clock_wall_ms(b->clock);
    b->offset_us = clock_wall_us(b->clock) - clock_mono_us(b->clock);
    b->max_skew_ms = coord_params_default.max_skew_ms;
}

static void tell_workers(struct bridge *b, enum workers_event_kind kind, uint32_t handle)
{
    const struct workers_event e = {.kind = kind, .handle = handle};
    keeper_tell(b->keeper, SUPPLY_WORKERS, &e);
}

/* ---- from the keeper --------------------------------------------------------------------------
 */

static void pool_known(struct bridge *b, const struct coord_pool *pool, int64_t latest_ms)
{
    /* A pool that was replaced before anything was granted may have another epoch, or layout. */
    if (!b->ids->started || !b->serve->facts.granted) {
        snowflake_generator_start(b->ids, pool->epoch_ms, &pool->layout, b->wait_below_ms,
                                  b->want_active);
        snowflake_generator_go_on(b->ids, latest_ms, pool->params.max_skew_ms);
    }
    b->max_skew_ms = pool->params.max_skew_ms;
}

static void take_one(struct bridge *b, const struct lease_mail *m, const struct coord_pool *pool)
{
    struct snowflake *g = &b->ids->ids;
    int64_t last;
    switch (m->kind) {
    case LEASE_MAIL_POOL:
        pool_known(b, pool, m->last_ms);
        break;
    case LEASE_MAIL_GRANT:
        if (!snowflake_grant(g, m->handle, m->worker, m->last_ms, m->hi_ms, m->mark))
            /* no room: there never are more grants than that */
            tell_workers(b, WORKERS_RETIRE, m->handle);
        b->serve->facts.granted = true;
        break;
    case LEASE_MAIL_EXTEND:
        snowflake_extend(g, m->handle, m->hi_ms);
        break;
    case LEASE_MAIL_REVOKE:
        (void)snowflake_revoke(g, m->handle, &last);
        break;
    case LEASE_MAIL_RETIRE:
        if (snowflake_revoke(g, m->handle, &last))
            tell_workers(b, WORKERS_RETIRE, m->handle);
        break;
    }
    if (m->t0_ms > 0 && (b->serve->facts.tenure_start_ms == 0 || m->kind == LEASE_MAIL_GRANT))
        b->serve->facts.tenure_start_ms = m->t0_ms;
}

static uint64_t renewals(const struct serve_facts *f)
{
    return f->renewals_renewed + f->renewals_again + f->renewals_reasserted;
}

static_assert(SERVE_RISKS == COORD_RISKS, "what is told of one is told of the other");
static_assert(sizeof((struct serve_facts *)0)->coordinator >= COORD_URL_MAX &&
                  sizeof((struct serve_facts *)0)->pool >= COORD_POOL_NAME_MAX &&
                  sizeof((struct serve_facts *)0)->identity == COORD_IDENTITY_MAX,
              "as long as the coordinator has them");

static void note_pool(struct serve_facts *f, const struct coord_pool *p)
{
    memcpy(f->identity, p->identity, sizeof f->identity);
    if (!serve_pool_known(f)) /* a state page has no more than the identity */
        return;
    f->horizon_ms = p->params.horizon_ms;
    f->first_horizon_ms = p->params.first_horizon_ms;
    f->mature_after_ms = p->params.mature_after_ms;
    f->max_skew_ms = p->params.max_skew_ms;
    f->pool_size = p->params.worker_to - p->params.worker_from + 1u;
}

/* What a pool lends is known once it has answered: a state page has no more than its identity. */
static void note_time(struct bridge *b, const struct workers_report *r)
{
    if (r->heard_ms > 0 && serve_pool_known(&b->serve->facts))
        b->ids->trust = (struct snowflake_trust){.ms = r->heard_ms,
                                                 .mono_ms = r->heard_mono,
                                                 .skew_ms = r->pool.params.max_skew_ms,
                                                 .reach_ms = r->pool.params.first_horizon_ms};
}

static void note_workers(struct bridge *b, const void *report)
{
    const struct workers_report *r = report;
    struct serve_facts *f = &b->serve->facts;
    uint64_t renewed = renewals(f), forgot = f->data_loss, lost = f->renewals_lost;
    f->answered = r->answered;
    f->up = r->up && r->answered;
    f->serves = r->serves;
    f->era = r->era;
    f->pool_free = r->free;
    f->held = r->held;
    f->skew_ms = r->skew_ms;
    f->renewals_lost = r->renewals[COORD_HOW_LOST];
    f->renewals_renewed = r->renewals[COORD_HOW_RENEWED];
    f->renewals_again = r->renewals[COORD_HOW_AGAIN];
    f->renewals_reasserted = r->renewals[COORD_HOW_REASSERTED];
    f->renewals_failed = r->renewals_failed;
    f->data_loss = r->data_loss;
    note_pool(f, &r->pool);
    note_time(b, r);
    for (unsigned i = 0; i < SERVE_RISKS; i++)
        f->risk[i] = coord_risk_text(r->risks, i);
    int64_t now = clock_mono_us(b->clock);
    f->renewed_us = renewals(f) > renewed ? now : f->renewed_us;
    f->forgot_us = f->data_loss > forgot ? now : f->forgot_us;
    f->lost_us = f->renewals_lost > lost ? now : f->lost_us;
    bool ahead = f->up && f->max_skew_ms > 0 && r->skew_ms < -f->max_skew_ms;
    b->ids->ahead_ms = ahead ? -r->skew_ms : 0;
    b->ids->away = !f->up && !f->alone;
    memcpy(f->why, r->why, sizeof f->why);
    memcpy(f->page, r->page, sizeof f->page);
}

static void take_workers(struct bridge *b, const struct supply_mail *m, const void *report)
{
    const struct workers_report *r = report;
    const struct lease_mail mail = workers_mail(m);
    take_one(b, &mail, &r->pool);
}

/* What becomes of the mails of each supply, with its report as of then, and of that report. */
static const struct {
    void (*take)(struct bridge *b, const struct supply_mail *m, const void *report);
    void (*note)(struct bridge *b, const void *report);
} supplies[SUPPLY_KINDS] = {
    [SUPPLY_WORKERS] = {take_workers, note_workers},
    [SUPPLY_SEQUENCES] = {bridge_sequences_take, bridge_sequences_note},
};

static void note_report(struct bridge *b, const struct keeper_report *r)
{
    b->serve->facts.coordinator_requests = r->requests;
    b->finished = r->finished;
    b->paused = r->paused;
    b->proven = r->proven;
}

/* After each call to the coordinator, so that an end is told though nobody asks for an ID. Of a
 * clock that stepped back tell_behind says more, and of a start without a workerId the keeper: not
 * of what no grant ends, as a time field that has. */
static void tell_ready(struct bridge *b, int64_t now_ms)
{
    char until[TIMEFMT_MAX];
    const struct issuer *i = &b->serve->issuer;
    struct refusal r = issuer_ready(i, now_ms);
    bool ready = !r.by;
    const struct generator_cause *cause = ready ? NULL : &r.by->kind->causes[r.cause];
    bool told = ready == b->ready && (ready || b->was_ready || cause->waits);
    if (told || (cause && cause->of_clock) || b->finished)
        return;
    b->ready = ready;
    if (ready)
        log_info(b->was_ready ? "ready again" : "ready", kv_u64("held", b->serve->facts.held),
                 kv_str("ids_until", timefmt_rfc3339(until, generators_until(i->generators))));
    else
        log_error("no IDs can be had", kv_str("why", refusal_text(r)));
    b->was_ready = true;
}

void bridge_take(struct bridge *b)
{
    struct supply_mail mails[32];
    struct keeper_report report;
    struct workers_report workers;
    struct sequences_report sequences;
    void *const reports[SUPPLY_KINDS] = {
        [SUPPLY_WORKERS] = &workers, [SUPPLY_SEQUENCES] = b->sequences ? &sequences : NULL};
    size_t n;
    bool changed = false;
    do {
        n = keeper_take(b->keeper, mails, sizeof mails / sizeof *mails, &report, reports);
        for (size_t i = 0; i < n; i++)
            supplies[mails[i].supply].take(b, &mails[i], reports[mails[i].supply]);
        changed |= n > 0;
    } while (n == sizeof mails / sizeof *mails);
    note_report(b, &report);
    for (size_t i = 0; i < SUPPLY_KINDS; i++)
        if (reports[i])
            supplies[i].note(b, reports[i]);
    tell_ready(b, clock_wall_ms(b->clock));
    serve_sample(b->serve);
    if (changed)
        net_wake(b->net);
    if (b->sequences)
        bridge_sequences_settle(b);
}

const char *bridge_why(const struct bridge *b)
{
    if (b->serve->facts.held == 0)
        return b->serve->facts.why;
    return b->ready ? "" : refusal_text(issuer_ready(&b->serve->issuer, clock_wall_ms(b->clock)));
}

void bridge_let_go(struct bridge *b)
{
    if (b->sequences)
        sequence_table_let_go(b->sequences);
}

/* ---- to the keeper ----------------------------------------------------------------------------
 */

static bool may_urge(struct bridge *b)
{
    int64_t now = clock_mono_us(b->clock);
    if (now < b->urge_due_us)
        return false;
    b->urge_due_us = now + URGE_EVERY_US;
    return true;
}

static void give_back(struct bridge *b, struct snowflake *g)
{
    for (unsigned i = 0; i < g->nretired; i++) {
        char last[TIMEFMT_MAX];
        tell_workers(b, WORKERS_RETIRE, g->retired[i].handle);
        log_warn("clock stepped back: workerId rotated",
                 kv_str("last", timefmt_rfc3339(last, g->retired[i].last)),
                 kv_i64("behind_ms", g->retired[i].last - g->seen_ms),
                 kv_u64("rotations", g->stats.rotations));
    }
    g->nretired = 0;
}

/* Of the earliest time at which somebody held can issue again, which is by then maybe over: the
 * clock is right again, or what was held is given up. The same is told now and then. */
static void tell_behind(struct bridge *b, const struct snowflake *g)
{
    char until[TIMEFMT_MAX];
    int64_t resumes_ms = snowflake_resumes(g), behind_ms = resumes_ms - clock_wall_ms(b->clock);
    if (resumes_ms != b->behind_ms)
        b->behind_log.next_ms = 0;
    b->behind_ms = resumes_ms;
    if (behind_ms > 0 && log_limit_pass(&b->behind_log, clock_mono_ms(b->clock), REMIND_MS, NULL))
        log_warn(b->serve->facts.alone
                     ? "clock stepped back: no IDs until it is as late again, or with an N in "
                       "static:N that no sidecar ever had, and another state_dir"
                     : "clock stepped back and no workerId can stand in: claiming another",
                 kv_i64("behind_ms", behind_ms),
                 kv_str("until", timefmt_rfc3339(until, resumes_ms)));
}

static void urge(struct bridge *b, struct snowflake *g)
{
    if (!may_urge(b))
        return;
    if (g->wants_renewal) {
        tell_workers(b, WORKERS_URGE_RENEWAL, 0);
        if (log_limit_pass(&b->ceiling_log, clock_mono_ms(b->clock), REMIND_MS, NULL))
            log_warn(snowflake_generator_is_ahead(b->ids)
                         ? "IDs are ahead of the clock up to a ceiling: renewing"
                         : "the clock is past every range of time held: renewing",
                     kv_u64("held", b->serve->facts.held));
    }
    if (g->wants_worker) {
        tell_workers(b, WORKERS_URGE_CLAIM, 0);
        tell_behind(b, g);
    }
    g->wants_renewal = g->wants_worker = false;
}

/* The wall clock against the monotonic one: slow drift is followed, a forward jump told. */
static void compare_clocks(struct bridge *b, int64_t now_ms)
{
    int64_t offset = clock_wall_us(b->clock) - clock_mono_us(b->clock);
    int64_t jump_ms = (offset - b->offset_us) / 1000;
    b->checked_ms = now_ms;
    b->offset_us = offset;
    if (jump_ms > b->max_skew_ms) {
        b->serve->facts.clock_jumps++;
        log_warn("clock jumped forward: renewing", kv_i64("by_ms", jump_ms));
        tell_workers(b, WORKERS_URGE_RENEWAL, 0);
    }
    if (jump_ms < 0 &&
        log_limit_pass(&b->rollback_log, clock_mono_ms(b->clock), LOG_EVERY_MS, NULL))
        log_info("clock stepped back", kv_i64("by_ms", -jump_ms));
}

/* Once a second at most, while requests come. */
static void look_around(struct bridge *b, int64_t now_ms)
{
    compare_clocks(b, now_ms);
    tell_ready(b, now_ms);
    serve_sample(b->serve);
}

void bridge_settle(struct bridge *b)
{
    struct snowflake *g = &b->ids->ids;
    if (g->nretired > 0)
        give_back(b, g);
    if (b->sequences && b->sequences->queued > 0)
        bridge_sequences_settle(b);
    bool seen = g->seen_ms != INT64_MIN; /* before the first request it is not a time */
    if (seen && (g->seen_ms < b->checked_ms || g->seen_ms - b->checked_ms >= CHECK_EVERY_MS))
        look_around(b, g->seen_ms);
    if (g->wants_renewal || g->wants_worker) /* after who looks around, who wants the same */
        urge(b, g);
}
