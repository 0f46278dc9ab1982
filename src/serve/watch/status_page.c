/*
 * The status page: the names of its template, and how their values are written.
 *
 *   {{name}} is a text or a drawing; {{name:format}} a number.
 */
#include "base/human.h"
#include "base/timefmt.h"
#include "serve/watch/page_template.h"
#include "serve/watch/status.h"

extern const char status_html[];
extern const size_t status_html_len;

/* ---- drawings ---------------------------------------------------------------------------------
 */

static void rate_area(const struct status *v, struct buf *b)
{
    chart_area(&v->chart, chart_rate, &v->rate_scale, false, b);
}

static void rate_line(const struct status *v, struct buf *b)
{
    chart_line(&v->chart, chart_rate, &v->rate_scale, b);
}

/* As low marks at the foot, however many: their number is no rate of IDs. */
static void failed_bars(const struct status *v, struct buf *b)
{
    const struct chart_scale low = {.lo = 0, .hi = 6};
    chart_area(&v->chart, chart_failed, &low, true, b);
}

static void p50_line(const struct status *v, struct buf *b)
{
    chart_line(&v->chart, chart_p50, &v->latency_scale, b);
}

static void p99_line(const struct status *v, struct buf *b)
{
    chart_line(&v->chart, chart_p99, &v->latency_scale, b);
}

static void p999_line(const struct status *v, struct buf *b)
{
    chart_line(&v->chart, chart_p999, &v->latency_scale, b);
}

static void rollback_bars(const struct status *v, struct buf *b)
{
    chart_area(&v->chart, chart_rollbacks, &v->back_scale, true, b);
}

static void rotation_bars(const struct status *v, struct buf *b)
{
    chart_area(&v->chart, chart_rotations, &v->back_scale, true, b);
}

/* ---- formats ----------------------------------------------------------------------------------
 */

static void plain(struct buf *b, int64_t n)
{
    buf_put_i64(b, n);
}

static void latency(struct buf *b, int64_t ns)
{
    human_put_latency(b, (double)ns);
}

static void rate(struct buf *b, int64_t milli)
{
    human_put_rate(b, (double)milli / 1000);
}

static void iso(struct buf *b, int64_t ms)
{
    char text[TIMEFMT_MAX];
    buf_put_str(b, timefmt_rfc3339(text, ms));
}

/* "2026-01-02 03:04:05" */
static void date(struct buf *b, int64_t ms)
{
    char text[TIMEFMT_MAX];
    (void)timefmt_rfc3339(text, ms);
    text[10] = ' ';
    buf_put(b, text, 19);
}

static const struct {
    const char *name;
    void (*put)(struct buf *b, int64_t n);
} formats[] = {
    {"", plain},
    {"count", human_put_count},
    {"duration", human_put_duration},
    {"latency", latency},
    {"rate", rate},
    {"bytes", human_put_bytes},
    {"iso", iso},
    {"date", date},
};

/* ---- names ------------------------------------------------------------------------------------
 */

#define TEXT(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct status, member), true, NULL                                       \
    }
#define NUMBER(member)                                                                             \
    {                                                                                              \
#member, offsetof(struct status, member), false, NULL                                      \
    }
#define DRAW(function)                                                                             \
    {                                                                                              \
#function, 0, false, function                                                              \
    }

struct field {
    const char *name;
    size_t offset;
    bool text;
    void (*draw)(const struct status *v, struct buf *b);
};

/* clang-format off */
static const struct field fields[] = {
    TEXT(nonce), TEXT(version), TEXT(host), TEXT(title), TEXT(state), TEXT(up_word),
    TEXT(coordinator), TEXT(pool), TEXT(identity),
    NUMBER(now_ms), NUMBER(started_ms), NUMBER(uptime_ms),
    NUMBER(rate_milli), NUMBER(p50_ns), NUMBER(p99_ns), NUMBER(p999_ns),
    NUMBER(hour_issued), NUMBER(hour_failed), NUMBER(hour_missed), NUMBER(hour_rollbacks), NUMBER(hour_rotations),
    NUMBER(rate_most_milli), NUMBER(p999_most_ns), NUMBER(rate_top_milli), NUMBER(rate_half_milli),
    NUMBER(back_top), NUMBER(before), NUMBER(before_middle),
    NUMBER(issued), NUMBER(rollbacks), NUMBER(rotations), NUMBER(exhausted),
    NUMBER(waited_ms), NUMBER(clock_jumps),
    NUMBER(held), NUMBER(wanted), NUMBER(active), NUMBER(left_ms), NUMBER(horizon_ms),
    NUMBER(mature_after_ms),
    NUMBER(pool_free), NUMBER(pool_size), NUMBER(era), NUMBER(skew_ms), NUMBER(max_skew_ms),
    NUMBER(renewals), NUMBER(renewals_failed), NUMBER(renewals_lost), NUMBER(renewed_ago_ms),
    NUMBER(data_loss), NUMBER(coordinator_p50_ns),
    NUMBER(coordinator_p99_ns),
    NUMBER(resident), NUMBER(cpu_ms), NUMBER(open_fds), NUMBER(max_fds), NUMBER(max_connections),
    TEXT(finding), TEXT(check), TEXT(check_state), TEXT(check_mark), TEXT(check_word),
    NUMBER(worker), TEXT(worker_use), TEXT(worker_state), NUMBER(worker_left_ms),
    NUMBER(worker_hi_ms), NUMBER(worker_permille), NUMBER(worker_percent),
    TEXT(protocol), NUMBER(protocol_open), NUMBER(protocol_accepted), NUMBER(protocol_requests),
    NUMBER(protocol_failed), NUMBER(protocol_missed), NUMBER(protocol_p50_ns),
    NUMBER(protocol_p99_ns), TEXT(charted_and), TEXT(charted_name),
    TEXT(upstream), TEXT(upstream_state), TEXT(upstream_mark), TEXT(upstream_word),
    TEXT(upstream_why), TEXT(upstream_note), NUMBER(upstream_for_ms), NUMBER(upstream_open),
    NUMBER(upstream_requests), NUMBER(upstream_away), NUMBER(upstream_errors),
    TEXT(event), TEXT(event_level), TEXT(event_text), NUMBER(event_ms), NUMBER(event_ago_ms),
    NUMBER(event_first_ms), NUMBER(event_times),
    NUMBER(decade_y), NUMBER(decade_ns),
    TEXT(figure_of), TEXT(figure), NUMBER(figure_value),
    DRAW(rate_area), DRAW(rate_line), DRAW(failed_bars), DRAW(p50_line), DRAW(p99_line),
    DRAW(p999_line), DRAW(rollback_bars), DRAW(rotation_bars),
};
/* clang-format on */

static bool put_number(struct buf *out, int64_t n, struct span format)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!span_eq(format, span_str(formats[i].name)))
            continue;
        if (n == STATUS_UNKNOWN)
            BUF_PUT_LIT(out, "\xe2\x80\x93"); /* a dash */
        else
            formats[i].put(out, n);
        return true;
    }
    return false;
}

static bool put_figure(const struct status *v, struct span name, struct span format,
                       struct buf *out)
{
    const struct generator *g;
    const struct generator_figure *f = generators_figure_by_page(v->s->issuer.generators, name, &g);
    return f && put_number(out, f->value(g, v->now_ms), format);
}

static bool put_field(void *status, struct span tag, struct buf *out)
{
    const struct status *v = status;
    struct span format = tag, name = span_cut(&format, ':');
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *at = (const char *)v + fields[i].offset;
        if (!span_eq(name, span_str(fields[i].name)))
            continue;
        if (fields[i].draw)
            fields[i].draw(v, out);
        else if (fields[i].text)
            buf_put_str(out, *(const char *const *)(const void *)at);
        else
            return put_number(out, *(const int64_t *)(const void *)at, format);
        return true;
    }
    return put_figure(v, name, format, out);
}

void serve_put_status(struct serve *s, const char *nonce, struct buf *out)
{
    struct status v;
    struct page_template t = {.arg = &v, .put = put_field, .item = status_item};
    status_gather(&v, s, nonce);
    page_template_put(&t, span_of(status_html, status_html_len), out);
}
