/*
 * sidflakectl top: live on a terminal, plain elsewhere.
 */
#include "ctl/top.h"

#include "ctl/screen.h"

#include <locale.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCKS_OFF 1.1 /* a sidecar's clock may be behind the coordinator's */

/* ---- words ------------------------------------------------------------------------------------
 */

const char *top_count(double v)
{
    if (!(v >= 0))
        return "-";
    return v < 1.8e19 ? ctl_number((uint64_t)v) : "many";
}

const char *top_per_s(double v)
{
    char *out = ctl_word();
    if (!(v >= 0))
        return "- /s";
    if (v > 0 && v < 9.95)
        (void)snprintf(out, CTL_WORD_MAX, v < 0.095 ? "%.2f /s" : "%.1f /s", v);
    else
        (void)snprintf(out, CTL_WORD_MAX, "%s /s", top_count(v + 0.5));
    return out;
}

const char *top_seconds(double s, double over)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}};
    char *out = ctl_word();
    size_t i = 0;
    if (isnan(s))
        return "-";
    if (s == 0)
        return "0 s";
    if (isinf(s)) {
        (void)snprintf(out, CTL_WORD_MAX, "> %g s", over);
        return out;
    }
    while (i + 1 < sizeof units / sizeof *units && fabs(s) < units[i].unit)
        i++;
    double v = s / units[i].unit;
    (void)snprintf(out, CTL_WORD_MAX, fabs(v) < 9.95 && v != 0 ? "%.1f %s" : "%.0f %s", v,
                   units[i].name);
    return out;
}

const char *top_span(double s)
{
    char *out = ctl_word();
    if (isnan(s))
        return "-";
    if (fabs(s) < 60)
        (void)snprintf(out, CTL_WORD_MAX, fabs(s) < 9.95 && s != floor(s) ? "%.1f s" : "%.0f s", s);
    else if (fabs(s) > 2 * 365.25 * 86400)
        (void)snprintf(out, CTL_WORD_MAX, fabs(s) < 1e10 ? "%.1f years" : "for ever",
                       s / 86400 / 365.25);
    else
        (void)snprintf(out, CTL_WORD_MAX, "%s", ctl_span((int64_t)s * 1000));
    return out;
}

const char *top_bytes(double v)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    char *out = ctl_word();
    size_t i = 0;
    if (!(v >= 0))
        return "-";
    for (; v >= 1024 && i + 1 < sizeof units / sizeof *units; i++)
        v /= 1024;
    (void)snprintf(out, CTL_WORD_MAX, i > 0 && v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[i]);
    return out;
}

void top_head(struct paint *p, const char *what, const char *right)
{
    paint_at(p, 0, 1);
    paint_put(p, PAINT_HEAD, "%s", what);
    if (p->cols > strlen(what) + strlen(right) + 4)
        paint_right(p, p->cols - 1, PAINT_HEAD, "%s", right);
    paint_line(p, 0, PAINT_HEAD);
    paint_at(p, 1, 0);
}

void top_label(struct paint *p, const char *label)
{
    paint_next(p);
    paint_put(p, PAINT_FAINT, " %s", label);
    paint_tab(p, TOP_LABEL);
}

enum paint_style top_style_of(double fraction)
{
    return fraction > 0.5 ? PAINT_GOOD : fraction > 0.15 ? PAINT_WARN : PAINT_BAD;
}

double top_scale(double v, double first, double horizon)
{
    if (v <= first * CLOCKS_OFF)
        return first;
    return v <= horizon * CLOCKS_OFF ? horizon : v;
}

void top_remember(struct top_history *h, double v)
{
    if (h->n == TOP_HISTORY)
        memmove(h->v, h->v + 1, (TOP_HISTORY - 1) * sizeof *h->v);
    else
        h->n++;
    h->v[h->n - 1] = v;
}

/* ---- showing ----------------------------------------------------------------------------------
 */

struct top {
    const struct top_view *view;
    void *state;
    int64_t delay_ms;
    uint32_t count; /* 0: for ever */
    bool utf8;
};

#define PLAIN_COLS 100

/* By the environment; ncurses has to be of the same mind, also where the locale is not installed.
 */
static bool speaks_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return (strcasestr(v, "utf-8") || strcasestr(v, "utf8")) &&
                   setlocale(LC_CTYPE, "C.UTF-8");
    }
    return false;
}

/* https://no-color.org: set, and not empty. */
static bool wants_color(const struct ctl_args *a)
{
    const char *no = getenv("NO_COLOR");
    return !a->no_color && !(no && *no);
}

static bool is_live(const struct ctl_args *a)
{
    const char *term = getenv("TERM");
    return !a->once && isatty(STDOUT_FILENO) == 1 && term && *term && strcmp(term, "dumb") != 0;
}

static int64_t delay_of(const struct top *t)
{
    int64_t pause = t->view->pause ? t->view->pause(t->state) : 0;
    return pause > t->delay_ms ? pause : t->delay_ms;
}

static int run_plain(struct top *t)
{
    struct paint p = {0};
    int status = t->view->look(t->state);
    if (status)
        return ctl_fail(status, "%s", t->view->why(t->state));
    unsigned rows, cols = PLAIN_COLS;
    bool terminal = isatty(STDOUT_FILENO) == 1;
    if (terminal)
        screen_size(&rows, &cols);
    if (!paint_size(&p, PAINT_ROWS_MAX, cols, !terminal))
        return ctl_fail(CTL_BAD, "no memory for a page");
    for (uint32_t i = 0; i < (t->count ? t->count : 1) && status == CTL_OK; i++) {
        (void)poll(NULL, 0, (int)delay_of(t)); /* rates are those of between two looks */
        status = t->view->look(t->state);
        if (status)
            (void)ctl_fail(status, "%s", t->view->why(t->state));
        paint_clear(&p);
        t->view->paint(t->state, &p);
        if (i > 0)
            (void)puts("");
        paint_plain(&p, t->utf8, stdout);
        status = ctl_flush(status);
    }
    paint_free(&p);
    return status;
}

/* The last line, over whatever stands there. */
static void paint_keys(const struct top *t, struct paint *p)
{
    if (p->rows < 4)
        return;
    for (unsigned col = 0; col < p->cols; col++) {
        paint_at(p, p->rows - 1, col);
        paint_put(p, PAINT_PLAIN, " ");
    }
    paint_at(p, p->rows - 1, 1);
    paint_put(p, PAINT_FAINT, "q quit   space look now%s", t->view->keys ? t->view->keys : "");
    paint_right(p, p->cols - 1, PAINT_FAINT, "every %s", top_span((double)delay_of(t) / 1000));
}

/* Paints and shows, in the size that the terminal has now. false: no memory, or no terminal. */
static bool show(const struct top *t, struct paint *p)
{
    unsigned rows, cols;
    screen_size(&rows, &cols);
    if ((!p->cell || p->rows != rows || p->cols != cols) && !paint_size(p, rows, cols, false))
        return false;
    paint_clear(p);
    t->view->paint(t->state, p);
    paint_keys(t, p);
    return screen_show(p, t->utf8);
}

/* Until the next look is due. false: the user has had enough. */
static bool watch(const struct top *t, struct paint *p, int64_t ms)
{
    int64_t until = clock_mono_ms(clock_system()) + ms;
    for (;;) {
        int said = screen_wait(until - clock_mono_ms(clock_system()));
        if (said == 'q' || said == 'Q' || said == 3 || said == 4 || said == SCREEN_GONE)
            return false;
        if (said == SCREEN_TIME || said == ' ' || said == '\r' || said == '\n')
            return true;
        if (said != SCREEN_RESIZED && (!t->view->key || !t->view->key(t->state, said)))
            continue;
        if (!show(t, p))
            return false;
    }
}

static int run_live(struct top *t)
{
    struct paint p = {0};
    for (uint32_t i = 0; t->count == 0 || i < t->count; i++) {
        (void)t->view->look(t->state);
        /* The first rates soon. */
        int64_t ms = delay_of(t);
        if (!show(t, &p) || !watch(t, &p, i == 0 && ms > 300 ? 300 : ms))
            break;
    }
    screen_close();
    paint_free(&p);
    return CTL_OK;
}

int ctl_top(struct ctl_args *a)
{
    int status = CTL_OK;
    if (a->connect && a->coordinator)
        return ctl_fail(CTL_USAGE, "top: expected --connect or --coordinator, found both");
    if (a->user && a->coordinator)
        return ctl_fail(CTL_USAGE, "top: --user is for a sidecar, expected no --coordinator");
    struct top t = {.view = a->coordinator ? &top_pool : &top_sidecar,
                    .delay_ms = a->delay_ms,
                    .count = a->count,
                    .utf8 = speaks_utf8()};
    t.state = t.view->open(a, &status);
    if (!t.state)
        return status;
    status = is_live(a) && screen_open(wants_color(a)) ? run_live(&t) : run_plain(&t);
    t.view->free(t.state);
    return status;
}
