/*
 * sidflakectl top of a sidecar, by its status.
 */
#include "ctl/top_sidecar.h"

#include "base/base64.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "http://127.0.0.1:9464"

/* ---- looking ----------------------------------------------------------------------------------
 */

static void put_login(struct sidecar *s, const char *user, const char *password)
{
    char text[PASSFILE_MAX + 512];
    struct buf out;
    int n = snprintf(text, sizeof text, "%s:%s", user, password);
    buf_init(&out, s->login, sizeof s->login - 1);
    base64_put_encoded(&out, span_of(text, (size_t)n < sizeof text ? (size_t)n : 0));
    s->login[out.n] = '\0';
    explicit_bzero(text, sizeof text);
}

static int take_login(struct sidecar *s, const struct ctl_args *a)
{
    char password[PASSFILE_MAX + 1];
    int status = a->user ? ctl_password(a, password) : CTL_OK;
    if (!a->user || status)
        return status;
    if (!password[0])
        return ctl_fail(CTL_USAGE, "--user: expected --password-file FILE, too");
    put_login(s, a->user, password);
    explicit_bzero(password, sizeof password);
    return CTL_OK;
}

static void sidecar_free(void *view)
{
    struct sidecar *s = view;
    json_decref(s->now);
    json_decref(s->before);
    explicit_bzero(s->login, sizeof s->login);
    free(s);
}

static void *sidecar_open(const struct ctl_args *a, int *status)
{
    struct sidecar *s = calloc(1, sizeof *s);
    if (!s) {
        *status = ctl_fail(CTL_BAD, "no memory for a view");
        return NULL;
    }
    s->url = a->connect ? a->connect : DEFAULT_URL;
    *status = take_login(s, a);
    if (*status == CTL_OK)
        return s;
    sidecar_free(s);
    return NULL;
}

/* The answer to be had, with the login where one is wanted. */
static enum err_code ask(struct sidecar *s, struct ctl_http *page)
{
    for (;;) {
        enum err_code code = ctl_http_get(s->url, "/v1/status", s->asks_login ? s->login : "",
                                          TOP_TIMEOUT_US, page, &s->e);
        if (code || page->status != 401 || s->asks_login || !s->login[0])
            return code;
        s->asks_login = true;
        free(page->body);
    }
}

/* Why there is no status in an answer. */
static enum err_code refusal(struct sidecar *s, const struct ctl_http *page)
{
    char said[200];
    struct span rest = span_of(page->body, page->n);
    (void)ctl_clean(said, sizeof said, span_cut(&rest, '\n'));
    if (page->status == 404)
        return err_set(&s->e, ERR_INVALID,
                       "%s: expected /v1/status, found no such path: a sidecar of an earlier "
                       "version, or another server",
                       s->url);
    if (page->status == 401 && !s->login[0])
        return err_set(&s->e, ERR_INVALID, "%s: expected --user NAME --password-file FILE", s->url);
    return err_set(&s->e, ERR_INVALID, "%s: expected status 200, found %d: %s", s->url,
                   page->status, said);
}

static enum err_code read_status(struct sidecar *s)
{
    struct ctl_http page;
    json_t *fresh = NULL;
    enum err_code code = ask(s, &page);
    if (!code && page.status != 200)
        code = refusal(s, &page);
    else if (!code)
        code = ctl_status_read(page.body, page.n, &fresh, &s->e);
    free(page.body);
    if (code)
        return code;
    int64_t now_us = clock_mono_us(clock_system());
    json_decref(s->before);
    s->before = s->now;
    s->now = fresh;
    s->us = now_us - s->answered_us;
    s->answered_us = now_us;
    return ERR_OK;
}

static void keep_ranges(struct sidecar *s)
{
    const json_t *ids = json_object_get(s->now, "worker_ids");
    for (size_t i = 0; i < json_array_size(ids) && i < SIDECAR_SLOTS; i++) {
        const json_t *id = json_array_get(ids, i);
        double worker = ctl_status_number(id, "worker");
        double left = ctl_status_number(id, "left_ms") / 1000;
        if (s->slot[i].worker != worker)
            s->slot[i] = (struct sidecar_range){.worker = worker};
        if (left > s->slot[i].most)
            s->slot[i].most = left;
    }
}

static int sidecar_look(void *view)
{
    struct sidecar *s = view;
    enum err_code code = read_status(s);
    s->down = code != ERR_OK;
    if (!s->down)
        keep_ranges(s);
    bool both = !s->down && s->before;
    if (s->answered_us > 0 && (s->down || both)) {
        top_remember(&s->ids, both ? sidecar_grown(s, "ids.issued_total") : NAN);
        top_remember(&s->requests,
                     both ? sidecar_grown_sum(s, "requests", "answered_total", NULL, NULL) : NAN);
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
    char what[160], version[32], url[100], right[96];
    int64_t wall = clock_wall_ms(clock_system());
    (void)snprintf(what, sizeof what, "sidflake %s  %s",
                   ctl_status_text(s->now, "version", version, sizeof version),
                   ctl_clean(url, sizeof url, span_str(s->url)));
    /* By its own count: either clock may have been set meanwhile. */
    double up = sidecar_seconds(s, "uptime_ms");
    int64_t age_us = clock_mono_us(clock_system()) - s->answered_us;
    (void)snprintf(right, sizeof right, "%.8s UTC", ctl_time(wall) + 11);
    if (!isnan(up))
        (void)snprintf(right, sizeof right, "up %s   %.8s UTC", top_span(up + (double)age_us / 1e6),
                       ctl_time(wall) + 11);
    top_head(p, what, right);
}

static void paint_state(const struct sidecar *s, struct paint *p)
{
    char why[ERR_TEXT_MAX + 64];
    double held = sidecar_number(s, "workers.held");
    double left = sidecar_seconds(s, "workers.left_ms");
    int64_t age = clock_mono_us(clock_system()) - s->answered_us;
    paint_put(p, PAINT_PLAIN, " ");
    if (s->down) {
        paint_put(p, PAINT_BAD, "NO ANSWER");
        if (s->answered_us > 0)
            paint_put(p, PAINT_BAD, " for %s", top_span((double)(age / 1000000)));
        paint_put(p, PAINT_PLAIN, "  %s", s->e.text);
    } else if (!json_is_true(json_object_get(s->now, "ready"))) {
        paint_put(p, PAINT_BAD, "NOT READY");
        paint_put(p, PAINT_PLAIN, "  %s", ctl_status_text(s->now, "why", why, sizeof why));
    } else if (!ctl_status_is(s->now, "coordinator.state", "up")) {
        bool refuses = ctl_status_is(s->now, "coordinator.state", "refuses");
        paint_put(p, PAINT_WARN, "READY, COORDINATOR %s", refuses ? "REFUSES" : "DOWN");
        paint_put(p, PAINT_PLAIN, "  IDs can be had for %s more", top_span(left));
    } else {
        paint_put(p, PAINT_GOOD, "READY");
        paint_put(p, PAINT_PLAIN, "  %s workerId%s held, with %s left at least", top_count(held),
                  held == 1 ? "" : "s", top_span(left));
    }
    paint_next(p);
}

/* Of a server behind that is away its own line does. */
static bool is_said_below(const struct sidecar *s, const char *name)
{
    const size_t n = sizeof "upstream." - 1;
    return strncmp(name, "upstream.", n) == 0 &&
           ctl_status_is(ctl_status_row(s->now, "upstreams", "protocol", name + n), "state",
                         "away");
}

/* What needs attention though IDs can be had. Of one that is not ready the line above has said it.
 */
static void paint_findings(const struct sidecar *s, struct paint *p)
{
    const json_t *list = json_object_get(s->now, "findings");
    char name[32], text[ERR_TEXT_MAX + 256];
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        ctl_status_text(one, "name", name, sizeof name);
        if (ctl_status_is(one, "state", "fail") || is_said_below(s, name))
            continue;
        paint_put(p, PAINT_WARN, " WARNING");
        paint_tab(p, TOP_LABEL);
        paint_put(p, PAINT_PLAIN, "%s", ctl_status_text(one, "text", text, sizeof text));
        paint_next(p);
    }
}

static void sidecar_paint(const void *view, struct paint *p)
{
    const struct sidecar *s = view;
    paint_head(s, p);
    paint_state(s, p);
    if (s->answered_us == 0)
        return;
    if (!s->down)
        paint_findings(s, p);
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
