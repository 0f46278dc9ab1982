/*
 * sidflakectl top of a pool, by snapshots of it.
 */
#include "ctl/changes.h"
#include "ctl/holders.h"
#include "ctl/session.h"
#include "ctl/top.h"
#include "ids/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool {
    const struct ctl_args *a;
    struct ctl_session s; /* its coord is connected for as long as the view is open */
    struct coord_snapshot snap;
    struct ctl_holders held; /* of snap, in the order that is shown */
    bool seen, down;
    char why[ERR_TEXT_MAX];
    int64_t seen_us, us; /* when snap was read, monotonic; between it and the one before */
    int64_t took_ms;
    struct ctl_past past;
    struct ctl_changes changes;
    bool compared; /* changes are known */
    struct top_history renewals, count;
    enum ctl_sort by;
    bool reverse;
};

/* ---- looking ----------------------------------------------------------------------------------
 */

static void *pool_open(const struct ctl_args *a, int *status)
{
    struct pool *v = calloc(1, sizeof *v);
    if (!v) {
        *status = ctl_fail(CTL_BAD, "no memory for a view");
        return NULL;
    }
    v->a = a;
    v->by = CTL_SORT_LEFT;
    *status = ctl_session_open(a, &v->s, TOP_TIMEOUT_US, false);
    if (*status == CTL_OK)
        return v;
    free(v);
    return NULL;
}

static void pool_free(void *view)
{
    struct pool *v = view;
    ctl_holders_clear(&v->held);
    coord_snapshot_clear(&v->snap);
    coord_free(v->s.coord);
    free(v);
}

static void sort(struct pool *v)
{
    for (size_t i = 0; v->by == CTL_SORT_HOLDER && i < v->held.n; i++)
        ctl_holder_read(&v->held.v[i]);
    ctl_holders_sort(&v->held, v->by, v->reverse);
}

static void keep(struct pool *v, struct coord_snapshot *snap)
{
    int64_t now = clock_mono_us(clock_system());
    coord_snapshot_clear(&v->snap);
    ctl_holders_clear(&v->held);
    v->snap = *snap;
    ctl_session_look(&v->s, &v->snap);
    v->compared = ctl_changes_since(&v->past, &v->snap, &v->changes);
    v->us = now - v->seen_us;
    v->seen_us = now;
    v->seen = ctl_holders_of(&v->snap, &v->held);
    sort(v);
    if (v->compared)
        top_remember(&v->renewals, (double)v->changes.renewals / ((double)v->us / 1e6));
    top_remember(&v->count, (double)v->held.n);
}

static int pool_look(void *view)
{
    struct pool *v = view;
    struct coord_snapshot snap;
    struct err e;
    enum coord_status r = coord_describe(v->s.coord, &v->s.pool, &v->s.reply);
    v->s.asked_ms = clock_wall_ms(clock_system());
    struct coord_reply told = v->s.reply;
    /* Neither connecting nor a timeout is the pool's. */
    int64_t began = clock_mono_ms(clock_system());
    if (r == COORD_OK)
        r = coord_snapshot(v->s.coord, &snap, &told);
    v->took_ms = r == COORD_OK ? clock_mono_ms(clock_system()) - began : 0;
    if (r == COORD_OK)
        ctl_session_ask_server(&v->s);
    v->down = r != COORD_OK;
    if (r == COORD_OK) {
        keep(v, &snap);
        return CTL_OK;
    }
    ctl_session_why(v->a, r, &told, &e);
    memcpy(v->why, e.text, sizeof v->why);
    return r == COORD_DOWN ? CTL_DOWN : CTL_BAD;
}

static const char *pool_why(const void *view)
{
    return ((const struct pool *)view)->why;
}

/* Looking takes at most a twentieth of the time: a large pool's snapshot is megabytes. */
static int64_t pool_pause(const void *view)
{
    return 20 * ((const struct pool *)view)->took_ms;
}

static bool pool_key(void *view, int key)
{
    struct pool *v = view;
    if (key == 's')
        v->by = (enum ctl_sort)((v->by + 1) % CTL_SORT_CEILING); /* it is the order of LEFT */
    else if (key == 'r')
        v->reverse = !v->reverse;
    else
        return false;
    sort(v);
    return true;
}

/* ---- painting ---------------------------------------------------------------------------------
 */

static void paint_state(const struct pool *v, struct paint *p)
{
    int64_t age = (clock_mono_us(clock_system()) - v->seen_us) / 1000000 * 1000;
    paint_put(p, PAINT_PLAIN, " ");
    if (v->down) {
        paint_put(p, PAINT_BAD, "NO ANSWER");
        if (v->seen)
            paint_put(p, PAINT_BAD, " for %s", top_span((double)age / 1000));
        paint_put(p, PAINT_PLAIN, "  %s", v->why);
        paint_next(p);
        return;
    }
    paint_put(p, v->s.pool.closed ? PAINT_WARN : PAINT_GOOD, v->s.pool.closed ? "CLOSED" : "OPEN");
    paint_put(p, PAINT_PLAIN, "  era %llu since %.19sZ; %s", (unsigned long long)v->s.reply.era,
              ctl_time(v->s.pool.topen_ms), v->s.pool.identity);
    paint_next(p);
}

static void paint_warnings(const struct pool *v, struct paint *p)
{
    json_t *w = ctl_session_warnings(&v->s), *one;
    size_t i;
    json_array_foreach(w, i, one)
    {
        top_label(p, "");
        p->col = 1;
        paint_put(p, PAINT_WARN, "WARNING");
        paint_tab(p, TOP_LABEL);
        paint_put(p, PAINT_PLAIN, "%s", json_string_value(one));
    }
    json_decref(w);
}

/* How many of those held are young, past their range, or of an earlier era. */
static void paint_kinds(const struct pool *v, struct paint *p)
{
    unsigned young = 0, over = 0, stale = 0;
    int64_t now = v->snap.reply.now_ms;
    for (size_t i = 0; i < v->held.n; i++) {
        const struct ctl_holder *h = &v->held.v[i];
        young += now - h->w->t0_ms < v->snap.pool.params.mature_after_ms && h->ceiling_ms >= now;
        over += h->ceiling_ms < now;
        stale += h->w->stale;
    }
    top_label(p, "");
    paint_put(p, PAINT_PLAIN, "%s young, %s past their range, %s of an earlier era",
              ctl_number(young), ctl_number(over), ctl_number(stale));
}

static void paint_counts(const struct pool *v, struct paint *p)
{
    const struct coord_params *q = &v->snap.pool.params;
    double size = (double)(q->worker_to - q->worker_from) + 1, held = (double)v->held.n;
    unsigned width = p->cols > 72 ? p->cols - 60 : 8;
    top_label(p, "Held");
    paint_put(p, PAINT_STRONG, "%s", top_count(held));
    paint_put(p, PAINT_PLAIN, " of %s  ", top_count(size));
    paint_bar(p,
              held / size > 0.95  ? PAINT_BAD
              : held / size > 0.8 ? PAINT_WARN
                                  : PAINT_LINE,
              width < 50 ? width : 50, held / size);
    paint_put(p, PAINT_PLAIN, "  %.1f %%; %s free", 100 * held / size, ctl_number(v->s.reply.free));
    paint_kinds(v, p);
    top_label(p, "Changes");
    if (v->compared) {
        double s = (double)v->us / 1e6;
        paint_put(p, PAINT_PLAIN, "renewals %s, claims %s, returns %s",
                  top_per_s((double)v->changes.renewals / s),
                  top_per_s((double)v->changes.claims / s),
                  top_per_s((double)v->changes.returns / s));
        paint_tab(p, TOP_LABEL + 50);
        paint_chart(p, PAINT_LINE, p->cols > 80 ? p->cols - 80 : 0, v->renewals.v, v->renewals.n);
    } else {
        paint_put(p, PAINT_FAINT, "after the next look");
    }
    top_label(p, "Coordinator");
    paint_put(p, PAINT_PLAIN, "skew %s; horizon %s; ",
              top_seconds((double)(v->s.reply.now_ms - v->s.asked_ms) / 1000, 0),
              top_span((double)q->horizon_ms / 1000));
    if (q->replicas > 0)
        paint_put(p, PAINT_PLAIN, "%u of %llu replicas must acknowledge; ", q->replicas,
                  (unsigned long long)v->s.pool.replicas);
    paint_put(p, PAINT_PLAIN, "IDs last until %.10s",
              ctl_time(layout_end_ms(&v->s.pool.layout, v->s.pool.epoch_ms)));
}

static const char *holder_text(struct ctl_holder *h, char out[140])
{
    ctl_holder_read(h);
    bool pod = strcmp(h->pod, "-") != 0;
    (void)snprintf(out, 140, "%s%s%s", h->host, pod ? " " : "", pod ? h->pod : "");
    return out;
}

/* The first or last by age, whatever the order shown is. */
static void paint_extreme(const struct pool *v, struct paint *p, const char *label, bool oldest)
{
    const struct ctl_holder *found = NULL;
    char text[140];
    for (size_t i = 0; i < v->held.n; i++) {
        const struct ctl_holder *h = &v->held.v[i];
        if (!found || (oldest ? h->w->t0_ms < found->w->t0_ms : h->w->t0_ms > found->w->t0_ms))
            found = h;
    }
    if (!found)
        return;
    struct ctl_holder h = *found;
    top_label(p, label);
    paint_put(p, PAINT_PLAIN, "%s: workerId %u of %s",
              top_span((double)(v->snap.reply.now_ms - h.w->t0_ms) / 1000), h.w->worker,
              holder_text(&h, text));
}

/* Columns of the holder: those that a wide terminal has left, too. */
static unsigned holder_width(const struct paint *p)
{
    unsigned more = p->cols > 110 ? p->cols - 110 : 0;
    return 30 + (more < 30 ? more : 30);
}

static void paint_holder(const struct pool *v, struct paint *p, struct ctl_holder h)
{
    int64_t now = v->snap.reply.now_ms, left = h.ceiling_ms - now;
    const struct coord_params *q = &v->snap.pool.params;
    /* A full bar is what a renewal grants at that age. */
    int64_t full = now - h.w->t0_ms < q->mature_after_ms ? q->first_horizon_ms : q->horizon_ms;
    double fraction = (double)left / (double)full;
    unsigned at = holder_width(p), width = p->cols > at + 50 ? p->cols - at - 47 : 0;
    char text[140];
    paint_next(p);
    paint_right(p, 9, PAINT_STRONG, "%u", h.w->worker);
    paint_tab(p, TOP_LABEL);
    paint_put(p, PAINT_PLAIN, "%.*s", (int)at, holder_text(&h, text));
    paint_right(p, TOP_LABEL + at + 15, PAINT_PLAIN, "%s",
                top_span((double)(now - h.w->t0_ms) / 1000));
    paint_right(p, TOP_LABEL + at + 30, left < 0 ? PAINT_BAD : PAINT_PLAIN, "%s",
                left < 0 ? "OVER" : top_span((double)left / 1000));
    paint_tab(p, TOP_LABEL + at + 32);
    paint_bar(p, top_style_of(fraction), width < 40 ? width : 40, fraction);
    if (h.w->stale)
        paint_put(p, PAINT_WARN, " of an earlier era");
}

/* Where the list begins: of those to expire, the ones that have are the last to be of interest. */
static size_t first_row(const struct pool *v)
{
    size_t i = 0;
    if (v->by != CTL_SORT_LEFT || v->reverse)
        return 0;
    while (i < v->held.n && v->held.v[i].ceiling_ms < v->snap.reply.now_ms)
        i++;
    return i;
}

static void paint_table(const struct pool *v, struct paint *p)
{
    unsigned at = holder_width(p), rows = p->rows > p->row + 4 ? p->rows - p->row - 4 : 0;
    if (p->rows == PAINT_ROWS_MAX)
        rows = 20; /* plain: no screen to fill */
    paint_next(p);
    paint_next(p);
    paint_put(p, PAINT_FAINT, " WORKERID");
    paint_tab(p, TOP_LABEL);
    paint_put(p, PAINT_FAINT, "HOLDER");
    paint_right(p, TOP_LABEL + at + 15, PAINT_FAINT, "AGE");
    paint_right(p, TOP_LABEL + at + 30, PAINT_FAINT, "LEFT");
    paint_tab(p, TOP_LABEL + at + 32);
    if (v->by == CTL_SORT_LEFT && !v->reverse)
        paint_put(p, PAINT_FAINT, "next to expire first");
    else
        paint_put(p, PAINT_FAINT, "by %s%s", ctl_sort_names[v->by], v->reverse ? ", reversed" : "");
    size_t first = first_row(v);
    for (size_t i = 0; i < v->held.n && i < rows; i++)
        paint_holder(v, p, v->held.v[(first + i) % v->held.n]);
    if (v->held.n == 0) {
        paint_next(p);
        paint_tab(p, TOP_LABEL);
        paint_put(p, PAINT_FAINT, "nobody holds a workerId");
    }
}

static void pool_paint(const void *view, struct paint *p)
{
    const struct pool *v = view;
    char what[200], url[COORD_URL_MAX], right[32], pool[COORD_POOL_NAME_MAX], shown[100];
    (void)snprintf(what, sizeof what, "sidflake pool %s  %s",
                   ctl_clean(pool, sizeof pool, span_str(ctl_session_pool(v->a))),
                   ctl_clean(shown, sizeof shown, span_str(ctl_session_url(v->a, url))));
    (void)snprintf(right, sizeof right, "%.8s UTC", ctl_time(clock_wall_ms(clock_system())) + 11);
    top_head(p, what, right);
    paint_state(v, p);
    if (!v->seen)
        return;
    paint_warnings(v, p);
    paint_counts(v, p);
    paint_extreme(v, p, "Oldest", true);
    paint_extreme(v, p, "Youngest", false);
    paint_table(v, p);
}

const struct top_view top_pool = {
    .open = pool_open,
    .free = pool_free,
    .look = pool_look,
    .paint = pool_paint,
    .why = pool_why,
    .key = pool_key,
    .keys = "   s sort by another column   r reverse",
    .pause = pool_pause,
};
