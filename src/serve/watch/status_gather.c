#include "serve/watch/status.h"

#define LONG_ENOUGH_US INT64_C(5000000) /* for an unfinished sample to say what is going on now */

static int64_t quantile(const struct histogram *h, double q)
{
    uint32_t ns = history_quantile_ns(h, q);
    return ns > 0 ? ns : STATUS_UNKNOWN;
}

static int64_t known(double v)
{
    return v < 0 ? STATUS_UNKNOWN : (int64_t)v;
}

/* ---- the hour ---------------------------------------------------------------------------------
 */

static void gather_now(struct status *v)
{
    const struct history_sample *latest =
        history_get(&v->s->history, 0, v->live.end_us, HISTORY_SPAN_US);
    if (!latest || v->live.length_us >= LONG_ENOUGH_US)
        latest = &v->live;
    v->rate_milli = known(chart_rate(latest) * 1000);
    v->p50_ns = known(chart_p50(latest));
    v->p99_ns = known(chart_p99(latest));
    v->p999_ns = known(chart_p999(latest));
}

static void gather_sums(struct status *v)
{
    const struct history_sample *p = &v->live;
    for (size_t i = 0; p; i++) {
        v->hour_issued += (int64_t)p->issued;
        v->hour_failed += p->failed;
        v->hour_missed += p->missed;
        v->hour_rollbacks += p->rollbacks;
        v->hour_rotations += p->rotations;
        p = history_get(&v->s->history, i, v->live.end_us, HISTORY_SPAN_US);
    }
}

static void gather_charts(struct status *v)
{
    double least, most, lowest, highest;
    const struct chart *c = &v->chart;
    (void)chart_range(c, chart_rate, &least, &most);
    v->rate_scale = chart_scale_linear(most, 1);
    v->rate_most_milli = known(most * 1000);
    v->rate_top_milli = known(v->rate_scale.hi * 1000);
    v->rate_half_milli = v->rate_top_milli / 2;
    (void)chart_range(c, chart_rollbacks, &least, &most);
    v->back_scale = chart_scale_linear(most, 2);
    v->back_top = known(v->back_scale.hi);
    v->has_latency =
        chart_range(c, chart_p50, &lowest, &most) && chart_range(c, chart_p999, &least, &highest);
    v->latency_scale =
        chart_scale_log(v->has_latency ? lowest : 1000, v->has_latency ? highest : 1000);
    v->p999_most_ns = v->has_latency ? known(highest) : STATUS_UNKNOWN;
    int64_t age_s = v->uptime_ms / 1000;
    v->before = age_s < CHART_WIDTH ? CHART_WIDTH - age_s : 0;
    v->before_middle = v->before * 50 / CHART_WIDTH;
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static void gather_workers(struct status *v)
{
    const struct serve_facts *f = &v->s->facts;
    const struct generator *list = v->s->issuer.generators;
    struct generator_counts sum;
    struct generator_worker w;
    int64_t ceiling = generators_ceiling(list);
    generators_count(list, &sum);
    v->held = f->held;
    v->wanted = f->wanted;
    for (unsigned i = 0; generators_worker(list, i, &w); i++)
        v->active += w.active;
    v->left_ms = ceiling > 0 ? serve_difference(ceiling, v->now_ms) : STATUS_UNKNOWN;
    if (v->left_ms < 0 && v->left_ms != STATUS_UNKNOWN)
        v->left_ms = 0;
    v->horizon_ms = f->horizon_ms > 0 ? f->horizon_ms : STATUS_UNKNOWN;
    if (v->horizon_ms > 0 && v->horizon_ms < v->left_ms) /* of static:N, which no horizon bounds */
        v->horizon_ms = v->left_ms;
    v->mature_after_ms = f->mature_after_ms;
    v->issued = (int64_t)sum.issued;
    v->rollbacks = (int64_t)sum.rollbacks;
    v->rotations = (int64_t)sum.rotations;
    v->exhausted = (int64_t)sum.exhausted;
    v->waited_ms = (int64_t)(v->s->issuer.waited_us / 1000);
    v->waited_us = (int64_t)v->s->issuer.waited_us;
    v->clock_jumps = (int64_t)f->clock_jumps;
}

static void gather_pool(struct status *v)
{
    const struct serve_facts *f = &v->s->facts;
    bool pool = serve_pool_known(f);
    v->coordinator = f->coordinator;
    v->pool = f->pool;
    v->identity = f->identity[0] ? f->identity : "not known yet";
    v->answered = f->answered;
    v->up_word = f->serves                  ? "up"
                 : f->up                    ? "refuses"
                 : f->answered || f->why[0] ? "down"
                                            : "no answer yet";
    v->pool_free = pool ? (int64_t)f->pool_free : STATUS_UNKNOWN;
    v->pool_size = pool ? f->pool_size : STATUS_UNKNOWN;
    v->era = pool ? (int64_t)f->era : STATUS_UNKNOWN;
    v->skew_ms = f->answered ? f->skew_ms : STATUS_UNKNOWN;
    v->max_skew_ms = pool ? f->max_skew_ms : STATUS_UNKNOWN;
    v->grants_ms = pool ? f->horizon_ms : STATUS_UNKNOWN;
    v->first_grants_ms = pool ? f->first_horizon_ms : STATUS_UNKNOWN;
    v->renewals_renewed = (int64_t)f->renewals_renewed;
    v->renewals_again = (int64_t)f->renewals_again;
    v->renewals_reasserted = (int64_t)f->renewals_reasserted;
    v->renewals = (int64_t)(f->renewals_renewed + f->renewals_again + f->renewals_reasserted);
    v->renewals_failed = (int64_t)f->renewals_failed;
    v->renewals_lost = (int64_t)f->renewals_lost;
    v->renewed_ago_ms =
        f->renewed_us > 0 ? (v->live.end_us - f->renewed_us) / 1000 : STATUS_UNKNOWN;
    v->data_loss = (int64_t)f->data_loss;
    v->coordinator_p50_ns = quantile(&f->coordinator_requests, 0.5);
    v->coordinator_p99_ns = quantile(&f->coordinator_requests, 0.99);
}

static void gather_process(struct status *v)
{
    struct process p;
    process_read(&p);
    v->resident = p.resident_bytes;
    v->cpu_ms = p.cpu_us == PROCESS_UNKNOWN ? STATUS_UNKNOWN : p.cpu_us / 1000;
    v->cpu_us = p.cpu_us;
    v->open_fds = p.open_fds;
    v->max_fds = p.max_fds;
    v->max_connections = v->s->max_connections;
}

void status_gather(struct status *v, struct serve *s, const char *nonce)
{
    static const struct {
        const char *class, *title;
    } words[] = {
        [HEALTH_OK] = {"ok", "Healthy"},
        [HEALTH_WARN] = {"warn", "Needs attention"},
        [HEALTH_FAIL] = {"fail", "No IDs can be had"},
    };
    *v = (struct status){.s = s, .nonce = nonce, .version = SIDFLAKE_VERSION};
    serve_sample_now(s, &v->live);
    v->chart = (struct chart){&s->history, &v->live};
    v->host = s->facts.host;
    v->now_ms = clock_wall_ms(s->clock);
    v->started_ms = s->started_ms;
    v->uptime_ms = (v->live.end_us - s->started_mono_us) / 1000;
    v->events = events_latest();
    health_judge(s, v->now_ms, &v->live, &v->health);
    v->state = words[v->health.state].class;
    v->title = words[v->health.state].title;
    gather_now(v);
    gather_sums(v);
    gather_charts(v);
    gather_workers(v);
    gather_pool(v);
    gather_process(v);
}
