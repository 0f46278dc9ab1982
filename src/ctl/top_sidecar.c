/*
 * sidflakectl top of a sidecar, by its metrics page.
 */
#include "ctl/top_sidecar.h"
#include "ctl/http.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "http://127.0.0.1:9464"

/* ---- looking ----------------------------------------------------------------------------------
 */

static void *sidecar_open(const struct ctl_args *a, int *status)
{
    struct sidecar *s = calloc(1, sizeof *s);
    if (!s) {
        *status = ctl_fail(CTL_BAD, "no memory for a view");
        return NULL;
    }
    s->url = a->connect ? a->connect : DEFAULT_URL;
    return s;
}

static void sidecar_free(void *view)
{
    struct sidecar *s = view;
    scrape_clear(&s->now);
    scrape_clear(&s->before);
    free(s);
}

/* false: the sidecar says that no ID can be had, and the first line of why. */
static void ask_ready(struct sidecar *s)
{
    struct ctl_http answer;
    struct err e;
    s->ready =
        !ctl_http_get(s->url, "/readyz", TOP_TIMEOUT_US, &answer, &e) && answer.status == 200;
    struct span rest = span_of(answer.body, answer.n);
    (void)ctl_clean(s->why, sizeof s->why, answer.body ? span_cut(&rest, '\n') : SPAN("no answer"));
    free(answer.body);
}

static enum err_code read_page(struct sidecar *s)
{
    struct ctl_http page;
    struct scrape fresh;
    enum err_code code = ctl_http_get(s->url, "/metrics", TOP_TIMEOUT_US, &page, &s->e);
    if (code)
        return code;
    if (page.status != 200) {
        free(page.body);
        return err_set(&s->e, ERR_INVALID, "%s: expected status 200, found %d", s->url,
                       page.status);
    }
    code = scrape_parse(&fresh, page.body, page.n, &s->e);
    if (!code && isnan(scrape_sum(&fresh, "sidflake_build_info", NULL, NULL))) {
        scrape_clear(&fresh);
        code = err_set(&s->e, ERR_INVALID, "%s: expected the metrics of sidflake, found others",
                       s->url);
    }
    if (code)
        return code;
    scrape_clear(&s->before);
    s->before = s->now;
    s->now = fresh;
    s->now.mono_us = clock_mono_us(clock_system());
    s->us = s->now.mono_us - s->before.mono_us;
    return ERR_OK;
}

static void keep_ranges(struct sidecar *s)
{
    for (size_t i = 0; i < s->now.n; i++) {
        const struct scrape_sample *x = &s->now.v[i];
        unsigned at = sidecar_slot(x);
        if (at == SIDECAR_SLOTS)
            continue;
        if (span_eq(x->name, SPAN("sidflake_worker_id")) && s->slot[at].worker != x->value)
            s->slot[at] = (struct sidecar_range){.worker = x->value};
        if (span_eq(x->name, SPAN("sidflake_worker_range_seconds")) && x->value > s->slot[at].most)
            s->slot[at].most = x->value;
    }
}

static int sidecar_look(void *view)
{
    struct sidecar *s = view;
    enum err_code code = read_page(s);
    s->down = code != ERR_OK;
    if (!s->down) {
        s->answered_us = s->now.mono_us;
        ask_ready(s);
        keep_ranges(s);
    }
    bool both = !s->down && s->before.n > 0;
    if (s->answered_us > 0 && (s->down || both)) {
        top_remember(&s->ids,
                     both ? sidecar_grown(s, "sidflake_ids_issued_total", NULL, NULL) : NAN);
        top_remember(&s->requests,
                     both ? sidecar_grown(s, "sidflake_requests_total", NULL, NULL) : NAN);
    }
    return !s->down ? CTL_OK : code == ERR_INVALID ? CTL_USAGE : CTL_DOWN;
}

static const char *sidecar_why(const void *view)
{
    return ((const struct sidecar *)view)->e.text;
}

/* ---- painting ---------------------------------------------------------------------------------
 */

static void paint_head(const struct sidecar *s, struct paint *p)
{
    char what[160] = "sidflake", version[32] = "", url[100], right[96];
    int64_t wall = clock_wall_ms(clock_system());
    for (size_t i = 0; i < s->now.n; i++)
        if (span_eq(s->now.v[i].name, SPAN("sidflake_build_info")))
            (void)scrape_label(&s->now.v[i], "version", version, sizeof version);
    (void)snprintf(what, sizeof what, "sidflake %s  %s", version,
                   ctl_clean(url, sizeof url, span_str(s->url)));
    double started = sidecar_number(s, "process_start_time_seconds");
    (void)snprintf(right, sizeof right, "%.8s UTC", ctl_time(wall) + 11);
    if (!isnan(started))
        (void)snprintf(right, sizeof right, "up %s   %.8s UTC",
                       top_span((double)wall / 1000 - started), ctl_time(wall) + 11);
    top_head(p, what, right);
}

static void paint_state(const struct sidecar *s, struct paint *p)
{
    double up = sidecar_number(s, "sidflake_coordinator_up");
    double held = sidecar_number(s, "sidflake_workers_held");
    int64_t age = clock_mono_us(clock_system()) - s->answered_us;
    paint_put(p, PAINT_PLAIN, " ");
    if (s->down) {
        paint_put(p, PAINT_BAD, "NO ANSWER");
        if (s->answered_us > 0)
            paint_put(p, PAINT_BAD, " for %s", top_span((double)(age / 1000000)));
        paint_put(p, PAINT_PLAIN, "  %s", s->e.text);
    } else if (!s->ready) {
        paint_put(p, PAINT_BAD, "NOT READY");
        paint_put(p, PAINT_PLAIN, "  %s", s->why);
    } else if (up == 0) {
        bool answers = sidecar_number(s, "sidflake_coordinator_answers") == 1;
        paint_put(p, PAINT_WARN, "READY, COORDINATOR %s", answers ? "REFUSES" : "DOWN");
        paint_put(p, PAINT_PLAIN, "  IDs can be had for %s more",
                  top_span(sidecar_number(s, "sidflake_reservation_seconds")));
    } else {
        paint_put(p, PAINT_GOOD, "READY");
        paint_put(p, PAINT_PLAIN, "  %s workerId%s held, with %s left at least", top_count(held),
                  held == 1 ? "" : "s",
                  top_span(sidecar_number(s, "sidflake_reservation_seconds")));
    }
    paint_next(p);
}

static void sidecar_paint(const void *view, struct paint *p)
{
    const struct sidecar *s = view;
    paint_head(s, p);
    paint_state(s, p);
    if (s->answered_us == 0)
        return;
    sidecar_paint_rates(s, p);
    sidecar_paint_protocols(s, p);
    sidecar_paint_upstreams(s, p);
    sidecar_paint_workers(s, p);
    sidecar_paint_lease(s, p);
    sidecar_paint_process(s, p);
}

const struct top_view top_sidecar = {
    .open = sidecar_open,
    .free = sidecar_free,
    .look = sidecar_look,
    .paint = sidecar_paint,
    .why = sidecar_why,
};
