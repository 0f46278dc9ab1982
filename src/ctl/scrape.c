/*
 * Reading a metrics page.
 */
#include "ctl/scrape.h"

#include "base/dec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------------
 */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An exponent, from -400 to 400: what is beyond is 0 or infinite in any case. */
static bool read_exponent(struct span s, int *out)
{
    uint64_t e;
    bool minus = s.n > 0 && s.p[0] == '-';
    if (s.n > 0 && (minus || s.p[0] == '+'))
        s = span_skip(s, 1);
    if (!dec_u64(s, &e) || e > 400)
        return false;
    *out = minus ? -(int)e : (int)e;
    return true;
}

/* Digits, with a point anywhere among them, and an exponent. strtod would ask the locale. */
static bool read_decimal(struct span s, double *out)
{
    double v = 0;
    int scale = 0, e = 0;
    size_t i = 0, digits = 0;
    bool point = false;
    for (; i < s.n && (digit(s.p[i]) || (s.p[i] == '.' && !point)); i++) {
        if (s.p[i] == '.') {
            point = true;
            continue;
        }
        v = v * 10 + (s.p[i] - '0');
        scale += point;
        digits++;
    }
    if (digits == 0)
        return false;
    if (i < s.n && (s.p[i] | 0x20) != 'e')
        return false;
    if (i < s.n && !read_exponent(span_skip(s, i + 1), &e))
        return false;
    e -= scale;
    *out = e < 0 ? v / pow(10, -e) : v * pow(10, e);
    return true;
}

static bool read_number(struct span s, double *out)
{
    bool minus = s.n > 0 && s.p[0] == '-';
    if (s.n > 0 && (minus || s.p[0] == '+'))
        s = span_skip(s, 1);
    if (span_eq_nocase(s, SPAN("inf")))
        *out = INFINITY;
    else if (span_eq_nocase(s, SPAN("nan")))
        *out = NAN;
    else if (!read_decimal(s, out))
        return false;
    if (minus)
        *out = -*out;
    return true;
}

/* ---- labels -----------------------------------------------------------------------------------
 */

/* Of `key="value",…`, the first key, and what stands between its quotes, as written; false at the
 * end or where it is not of that form. */
static bool next_label(struct span *rest, struct span *key, struct span *value)
{
    const char *eq = rest->n > 0 ? memchr(rest->p, '=', rest->n) : NULL;
    if (!eq || eq + 1 >= rest->p + rest->n || eq[1] != '"')
        return false;
    *key = span_of(rest->p, (size_t)(eq - rest->p));
    struct span s = span_skip(*rest, key->n + 2);
    size_t n = 0;
    while (n < s.n && s.p[n] != '"')
        n += s.p[n] == '\\' ? 2 : 1;
    if (n >= s.n)
        return false;
    *value = span_of(s.p, n);
    *rest = span_skip(s, n + 1);
    if (rest->n > 0 && rest->p[0] == ',')
        *rest = span_skip(*rest, 1);
    return true;
}

static bool find_label(struct span labels, const char *name, struct span *value)
{
    struct span key;
    while (next_label(&labels, &key, value))
        if (span_eq(key, span_str(name)))
            return true;
    return false;
}

bool scrape_label(const struct scrape_sample *s, const char *key, char *out, size_t cap)
{
    struct span v;
    size_t n = 0;
    if (!find_label(s->labels, key, &v))
        return false;
    for (size_t i = 0; i < v.n && n + 1 < cap; i++) {
        char c = v.p[i];
        if (c == '\\' && i + 1 < v.n)
            c = v.p[++i] == 'n' ? '\n' : v.p[i];
        out[n++] = c >= ' ' && c <= '~' ? c : '?';
    }
    out[n] = '\0';
    return true;
}

/* ---- lines ------------------------------------------------------------------------------------
 */

/* Length of what stands between the braces, quoted braces not counted; false: it has no end. */
static bool braced(struct span s, size_t *n)
{
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '}' && !quoted) {
            *n = i;
            return true;
        }
        if (s.p[i] == '"')
            quoted = !quoted;
        else if (s.p[i] == '\\' && quoted)
            i++;
    }
    return false;
}

static bool read_sample(struct span line, struct scrape_sample *out)
{
    size_t n = 0;
    while (n < line.n && line.p[n] != '{' && line.p[n] != ' ')
        n++;
    out->name = span_of(line.p, n);
    out->labels = span_of(line.p, 0);
    struct span rest = span_skip(line, n);
    if (rest.n > 0 && rest.p[0] == '{') {
        rest = span_skip(rest, 1);
        if (!braced(rest, &n))
            return false;
        out->labels = span_of(rest.p, n);
        rest = span_skip(rest, n + 1);
    }
    while (rest.n > 0 && rest.p[0] == ' ')
        rest = span_skip(rest, 1);
    return out->name.n > 0 && read_number(span_cut(&rest, ' '), &out->value);
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

static enum err_code read_lines(struct scrape *s, size_t n, struct err *e)
{
    struct span rest = span_of(s->text, n);
    for (size_t number = 1; rest.p; number++) {
        struct span line = span_cut(&rest, '\n');
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (line.n == 0 || line.p[0] == '#')
            continue;
        if (!read_sample(line, &s->v[s->n]))
            return err_set(e, ERR_INVALID, "line %zu: expected a metric, found another", number);
        s->n++;
    }
    return ERR_OK;
}

enum err_code scrape_parse(struct scrape *s, char *text, size_t n, struct err *e)
{
    size_t lines = count_lines(text, n);
    *s = (struct scrape){.text = text};
    if (lines > SCRAPE_SAMPLES_MAX || n > SCRAPE_BYTES_MAX) {
        scrape_clear(s);
        return err_set(e, ERR_RANGE, "expected a page of at most %u lines, found %zu",
                       SCRAPE_SAMPLES_MAX, lines);
    }
    s->v = calloc(lines, sizeof *s->v);
    enum err_code code =
        s->v ? read_lines(s, n, e) : err_set(e, ERR_NOMEM, "no memory for a page of metrics");
    if (code)
        scrape_clear(s);
    return code;
}

void scrape_clear(struct scrape *s)
{
    free(s->text);
    free(s->v);
    *s = (struct scrape){0};
}

/* ---- values -----------------------------------------------------------------------------------
 */

static bool matches(const struct scrape_sample *s, struct span name, const char *key,
                    const char *value)
{
    struct span v;
    return span_eq(s->name, name) &&
           (!key || (find_label(s->labels, key, &v) && span_eq(v, span_str(value))));
}

double scrape_value(const struct scrape *s, const char *name, const char *key, const char *value)
{
    for (size_t i = 0; i < s->n; i++)
        if (matches(&s->v[i], span_str(name), key, value))
            return s->v[i].value;
    return NAN;
}

double scrape_sum(const struct scrape *s, const char *name, const char *key, const char *value)
{
    double sum = NAN;
    for (size_t i = 0; i < s->n; i++)
        if (matches(&s->v[i], span_str(name), key, value))
            sum = isnan(sum) ? s->v[i].value : sum + s->v[i].value;
    return sum;
}

double scrape_rate(double now, double before, int64_t us)
{
    if (us <= 0)
        return NAN;
    double grown = now < before ? now : now - before;
    return grown / ((double)us / 1e6);
}

/* ---- histograms -------------------------------------------------------------------------------
 */

void scrape_histogram(const struct scrape *s, const char *name, const char *key, const char *value,
                      struct scrape_histogram *out)
{
    size_t n = strlen(name);
    struct span le;
    out->n = 0;
    for (size_t i = 0; i < s->n && out->n < SCRAPE_BUCKETS; i++) {
        const struct scrape_sample *x = &s->v[i];
        double bound;
        if (x->name.n != n + 7 || memcmp(x->name.p + n, "_bucket", 7) != 0 ||
            !matches(x, span_of(x->name.p, x->name.n), key, value) ||
            !span_starts(x->name, span_str(name)) || !find_label(x->labels, "le", &le) ||
            !read_number(le, &bound))
            continue;
        bool rising =
            out->n == 0 || (bound > out->le[out->n - 1] && x->value >= out->count[out->n - 1]);
        if (!rising)
            break;
        out->le[out->n] = bound;
        out->count[out->n++] = x->value;
    }
    if (out->n == 0 || !isinf(out->le[out->n - 1]))
        out->n = 0;
}

void scrape_histogram_since(struct scrape_histogram *h, const struct scrape_histogram *before)
{
    if (h->n != before->n)
        return;
    for (unsigned i = 0; i < h->n; i++)
        if (h->le[i] != before->le[i] || h->count[i] < before->count[i])
            return;
    for (unsigned i = 0; i < h->n; i++)
        h->count[i] -= before->count[i];
}

double scrape_quantile(const struct scrape_histogram *h, double q)
{
    double total = h->n > 0 ? h->count[h->n - 1] : 0;
    double rank = q * total;
    unsigned i = 0;
    if (!(total > 0))
        return NAN;
    while (i + 1 < h->n && h->count[i] < rank)
        i++;
    if (i + 1 >= h->n)
        return INFINITY;
    double from = i > 0 ? h->le[i - 1] : 0;
    double below = i > 0 ? h->count[i - 1] : 0;
    return from + (h->le[i] - from) * (rank - below) / (h->count[i] - below);
}
