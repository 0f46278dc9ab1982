#include "serve/watch/exposition.h"

static const struct {
    const char *type, *suffix, *om_type;
} kinds[EXPOSITION_KINDS] = {
    [EXPOSITION_COUNTER] = {"counter", "_total", "counter"},
    [EXPOSITION_GAUGE] = {"gauge", "", "gauge"},
    [EXPOSITION_HISTOGRAM] = {"histogram", "", "histogram"},
    [EXPOSITION_INFO] = {"gauge", "_info", "info"},
};

void exposition_family(struct exposition *e, const struct exposition_family *f)
{
    e->family = f;
    e->headed = false;
}

static void put_comment(struct exposition *e, const char *keyword, const char *text)
{
    buf_put_str(e->out, keyword);
    buf_put_str(e->out, e->family->name);
    if (!e->openmetrics)
        buf_put_str(e->out, kinds[e->family->kind].suffix);
    buf_put_char(e->out, ' ');
    buf_put_str(e->out, text);
    buf_put_char(e->out, '\n');
}

static void put_comments(struct exposition *e)
{
    const struct exposition_family *f = e->family;
    put_comment(e, "# HELP ", f->help);
    put_comment(e, "# TYPE ", e->openmetrics ? kinds[f->kind].om_type : kinds[f->kind].type);
    if (e->openmetrics && f->unit[0])
        put_comment(e, "# UNIT ", f->unit);
}

static void begin_with(struct exposition *e, const char *suffix)
{
    if (!e->headed)
        put_comments(e);
    e->headed = true;
    e->labelled = false;
    buf_put_str(e->out, e->family->name);
    buf_put_str(e->out, suffix);
}

void exposition_begin(struct exposition *e)
{
    begin_with(e, kinds[e->family->kind].suffix);
}

void exposition_label(struct exposition *e, const char *key, struct span value)
{
    buf_put_char(e->out, e->labelled ? ',' : '{');
    buf_put_str(e->out, key);
    BUF_PUT_LIT(e->out, "=\"");
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c == '\\' || c == '"' || c == '\n')
            buf_put_char(e->out, '\\');
        buf_put_char(e->out, (char)(c == '\n' ? 'n' : c));
    }
    buf_put_char(e->out, '"');
    e->labelled = true;
}

void exposition_end(struct exposition *e, int64_t v, unsigned decimals)
{
    if (e->labelled)
        buf_put_char(e->out, '}');
    buf_put_char(e->out, ' ');
    buf_put_decimal(e->out, v, decimals);
    buf_put_char(e->out, '\n');
}

/* A bound as OpenMetrics' "canonical number", which is what Go's and Python's clients write: an
 * exponent below 0.0001, and ".0" behind a whole number. Bounds have one digit that is not 0. */
static void put_bound(struct buf *b, uint32_t us)
{
    if (us < 100) {
        buf_put_u64(b, us < 10 ? us : us / 10);
        buf_put_str(b, us < 10 ? "e-06" : "e-05");
        return;
    }
    buf_put_decimal(b, us, 6);
    if (us % 1000000 == 0)
        BUF_PUT_LIT(b, ".0");
}

static void begin_part(struct exposition *e, const char *suffix, const char *key, const char *value)
{
    begin_with(e, suffix);
    if (key)
        exposition_label(e, key, span_str(value));
}

void exposition_histogram(struct exposition *e, const struct histogram *h, const char *key,
                          const char *value)
{
    char text[16];
    struct buf le;
    uint64_t total = 0;
    for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++) {
        total += h->count[i];
        buf_init(&le, text, sizeof text);
        if (i < HISTOGRAM_BUCKETS)
            put_bound(&le, histogram_bounds_us[i]);
        else
            BUF_PUT_LIT(&le, "+Inf");
        begin_part(e, "_bucket", key, value);
        exposition_label(e, "le", buf_span(&le));
        exposition_end(e, (int64_t)total, 0);
    }
    begin_part(e, "_sum", key, value);
    exposition_end(e, (int64_t)h->sum_us, 6);
    begin_part(e, "_count", key, value);
    exposition_end(e, (int64_t)total, 0);
}

void exposition_finish(struct exposition *e)
{
    if (e->openmetrics)
        BUF_PUT_LIT(e->out, "# EOF\n");
}
