#include "serve/watch/chart.h"

/* ---- values -----------------------------------------------------------------------------------
 */

double chart_rate(const struct history_sample *s)
{
    return s->length_us > 0 ? (double)s->issued * 1e6 / (double)s->length_us : -1;
}

static double percentile(const struct history_sample *s, enum history_percentile p)
{
    return s->percentile_ns[p] > 0 ? (double)s->percentile_ns[p] : -1;
}

double chart_p50(const struct history_sample *s)
{
    return percentile(s, HISTORY_P50);
}

double chart_p99(const struct history_sample *s)
{
    return percentile(s, HISTORY_P99);
}

double chart_p999(const struct history_sample *s)
{
    return percentile(s, HISTORY_P999);
}

double chart_rollbacks(const struct history_sample *s)
{
    return s->rollbacks;
}

double chart_rotations(const struct history_sample *s)
{
    return s->rotations;
}

double chart_failed(const struct history_sample *s)
{
    return s->failed > 0;
}

/* ---- scales -----------------------------------------------------------------------------------
 */

static const struct history_sample *sample(const struct chart *c, size_t i)
{
    int64_t now = c->live->end_us;
    return i == 0 ? c->live : history_get(c->history, i - 1, now, HISTORY_SPAN_US);
}

bool chart_range(const struct chart *c, chart_value *value, double *least, double *most)
{
    const struct history_sample *s;
    bool found = false;
    *least = *most = 0;
    for (size_t i = 0; (s = sample(c, i)); i++) {
        double v = value(s);
        if (v < 0)
            continue;
        *least = !found || v < *least ? v : *least;
        *most = !found || v > *most ? v : *most;
        found = true;
    }
    return found;
}

struct chart_scale chart_scale_linear(double most, double least)
{
    static const double steps[] = {2, 2.5, 2}; /* 1, 2, 5, 10 */
    double hi = 1;
    for (size_t i = 0; hi < most || hi < least; i = (i + 1) % 3)
        hi *= steps[i];
    return (struct chart_scale){.lo = 0, .hi = hi};
}

struct chart_scale chart_scale_log(double least, double most)
{
    struct chart_scale s = {.lo = 1, .log = true};
    while (s.lo * 10 <= least)
        s.lo *= 10;
    for (s.hi = s.lo * 100; s.hi < most;)
        s.hi *= 10;
    return s;
}

/* log10 of v >= 1, exact at 1, 2, 5 and 10 times a power of ten, which are the bounds of the
 * histograms that it is for, and linear between, as the quantiles are. Saves libm's pages. */
static double decades(double v)
{
    static const double from[] = {1, 2, 5, 10}, at[] = {0, 0.30103, 0.69897, 1};
    double whole = 0;
    size_t i = 0;
    for (; v >= 10; v /= 10)
        whole++;
    while (i < 2 && v >= from[i + 1])
        i++;
    return whole + at[i] + (v - from[i]) / (from[i + 1] - from[i]) * (at[i + 1] - at[i]);
}

int chart_y(const struct chart_scale *s, double v)
{
    if (v < s->lo)
        return CHART_HEIGHT;
    if (v > s->hi)
        return 0;
    double part =
        s->log ? decades(v / s->lo) / decades(s->hi / s->lo) : (v - s->lo) / (s->hi - s->lo);
    return (int)(CHART_HEIGHT * (1 - part) + 0.5);
}

/* ---- paths ------------------------------------------------------------------------------------
 */

static int chart_x(const struct chart *c, int64_t at_us)
{
    int64_t ago = (c->live->end_us - at_us) / 1000000;
    return ago < CHART_WIDTH ? (int)(CHART_WIDTH - ago) : 0;
}

static void command(struct buf *out, char name, int a)
{
    buf_put_char(out, name);
    buf_put_i64(out, a);
}

static void move(struct buf *out, int x, int y)
{
    command(out, 'M', x);
    command(out, ' ', y);
}

void chart_line(const struct chart *c, chart_value *value, const struct chart_scale *s,
                struct buf *out)
{
    const struct history_sample *p;
    bool drawing = false;
    for (size_t i = 0; (p = sample(c, i)); i++) {
        double v = value(p);
        int y = v < 0 ? 0 : chart_y(s, v);
        if (v >= 0 && drawing)
            command(out, 'V', y);
        else if (v >= 0)
            move(out, chart_x(c, p->end_us), y);
        drawing = v >= 0;
        if (drawing)
            command(out, 'H', chart_x(c, p->end_us - p->length_us));
    }
}

void chart_area(const struct chart *c, chart_value *value, const struct chart_scale *s, bool bars,
                struct buf *out)
{
    const struct history_sample *p;
    for (size_t i = 0; (p = sample(c, i)); i++) {
        double v = value(p);
        if (v < 0 || (bars && !(v > 0)))
            continue;
        move(out, chart_x(c, p->end_us), CHART_HEIGHT);
        command(out, 'V', chart_y(s, v));
        command(out, 'H', chart_x(c, p->end_us - p->length_us));
        command(out, 'V', CHART_HEIGHT);
        buf_put_char(out, 'Z');
    }
}
