/* Definitions of sequences: what can be one, and its text. */
#include "coord/seq_calls.h"

#include "base/dec.h"
#include "base/int64.h"

#include <inttypes.h>
#include <stdio.h>

#define BURST_MIN 1000
#define YEAR_S    INT64_C(31557600)
#define LASTS_S   (50 * YEAR_S)

static const char *const losses[SEQ_LOSSES] = {
    [SEQ_LOSS_UNSAID] = "unsaid",
    [SEQ_LOSS_SKIP] = "skip",
    [SEQ_LOSS_REFUSE] = "refuse",
    [SEQ_LOSS_TRUST] = "trust",
};

#define HOUR_MS INT64_C(3600000)

int64_t seq_open_ms(const struct seq_definition *d)
{
    return period_longest_ms(d->reset) + d->back_h * HOUR_MS;
}

int64_t seq_burst(int64_t rate)
{
    return max64(10 * rate, BURST_MIN);
}

/* ---- indices --------------------------------------------------------------------------------- */

int64_t seq_max_index(const struct seq_definition *d, int64_t max)
{
    int64_t far = d->increment > 0 ? max - d->start : d->start - max;
    int64_t step = d->increment > 0 ? d->increment : -d->increment;
    return far < 0 ? -1 : min64(far / step, SEQ_INDEX_MAX - 1);
}

int64_t seq_last_index(const struct seq_definition *d)
{
    return seq_max_index(d, d->increment > 0 ? SEQ_NUMBER_MAX : -SEQ_NUMBER_MAX);
}

bool seq_has_index(int64_t start, int64_t increment, int64_t index)
{
    const struct seq_definition d = {.start = start, .increment = increment};
    bool counts = start >= -SEQ_NUMBER_MAX && start <= SEQ_NUMBER_MAX && increment != 0 &&
                  increment >= -SEQ_NUMBER_MAX && increment <= SEQ_NUMBER_MAX;
    return counts && index >= 0 && index <= seq_last_index(&d);
}

int64_t seq_number(const struct seq_definition *d, int64_t index)
{
    return d->start + index * d->increment;
}

int64_t seq_index_from(const struct seq_definition *d, int64_t number)
{
    int64_t far = d->increment > 0 ? number - d->start : d->start - number;
    int64_t step = d->increment > 0 ? d->increment : -d->increment;
    return far <= 0 ? 0 : far / step + (far % step != 0);
}

/* ---- what can be one ------------------------------------------------------------------------- */

static enum err_code outside(struct err *e, const char *what, int64_t min, int64_t max, int64_t v)
{
    return err_set(e, ERR_RANGE, "%s: expected %" PRId64 " to %" PRId64 ", found %" PRId64, what,
                   min, max, v);
}

static enum err_code check_numbers(const struct seq_definition *d, struct err *e)
{
    const struct {
        const char *what;
        int64_t min, max, v;
    } ranges[] = {
        {"start", -SEQ_NUMBER_MAX, SEQ_NUMBER_MAX, d->start},
        {"increment", -SEQ_NUMBER_MAX, SEQ_NUMBER_MAX, d->increment},
        {"begins", 0, COORD_HORIZON_MAX_MS * 366 * 9999, d->begins_ms},
        {"subs", 0, SEQ_SUBS_MAX, d->subs},
        {"offset from UTC", -PERIOD_OFFSET_MAX, PERIOD_OFFSET_MAX, d->offset_min},
        {"date-back, in hours", 0, d->reset == PERIOD_NEVER ? 0 : SEQ_BACK_MAX, d->back_h},
        {"max-rate", d->loss == SEQ_LOSS_SKIP, d->loss == SEQ_LOSS_SKIP ? LINE_RATE_MAX : 0,
         d->rate},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].v < ranges[i].min || ranges[i].v > ranges[i].max)
            return outside(e, ranges[i].what, ranges[i].min, ranges[i].max, ranges[i].v);
    }
    if (d->increment == 0)
        return err_set(e, ERR_RANGE, "increment: expected another number than 0, found 0");
    return ERR_OK;
}

/* Whatever its max. */
static enum err_code check_alone(const struct seq_definition *d, struct err *e)
{
    enum err_code code = check_numbers(d, e);
    if (code)
        return code;
    if ((unsigned)d->reset >= PERIOD_RESETS || (unsigned)d->loss >= SEQ_LOSSES)
        return err_set(e, ERR_INVALID, "expected a reset and a word for a loss, found none");
    if (d->reset == PERIOD_NEVER && d->offset_min != 0)
        return err_set(e, ERR_INVALID,
                       "timezone: expected a sequence that begins anew, found --reset never");
    if (d->cycle && (!d->strict || d->loss == SEQ_LOSS_SKIP))
        return err_set(e, ERR_INVALID,
                       "cycle: expected --order strict and no --max-rate, since "
                       "numbers repeat, found one that %s",
                       d->strict ? "skips" : "is not strict");
    if (d->burst != (d->loss == SEQ_LOSS_SKIP ? seq_burst(d->rate) : 0))
        return err_set(e, ERR_INVALID, "burst: expected that of the rate, found %" PRId64,
                       d->burst);
    return ERR_OK;
}

int64_t seq_lasting_ms(const struct seq_definition *d)
{
    return d->reset == PERIOD_NEVER ? LASTS_S * 1000 : seq_open_ms(d);
}

/* Each loss lets the counter skip to where it would be at the full rate. */
static enum err_code check_lasts(const struct seq_definition *d, int64_t top, struct err *e)
{
    if (d->loss != SEQ_LOSS_SKIP || (top - d->burst) / d->rate >= seq_lasting_ms(d) / 1000)
        return ERR_OK;
    return err_set(e, ERR_RANGE,
                   "max: expected enough for %s at max-rate, to which numbers skip after a loss, "
                   "found %" PRId64 " numbers at %" PRId64 " a second, which last %" PRId64
                   " days: a lower --max-rate, a larger --max, or --on-loss refuse",
                   d->reset == PERIOD_NEVER ? "50 years" : "a whole period", top, d->rate,
                   max64(top - d->burst, 0) / d->rate / 86400);
}

enum err_code seq_check(const struct seq_definition *d, int64_t max, struct err *e)
{
    enum err_code code = check_alone(d, e);
    if (code)
        return code;
    if (max < -SEQ_NUMBER_MAX || max > SEQ_NUMBER_MAX)
        return outside(e, "max", -SEQ_NUMBER_MAX, SEQ_NUMBER_MAX, max);
    int64_t top = seq_max_index(d, max);
    if (top < 0)
        return err_set(e, ERR_RANGE,
                       "max: expected one that is not before start, %" PRId64 ", found %" PRId64,
                       d->start, max);
    return check_lasts(d, top, e);
}

/* ---- its text -------------------------------------------------------------------------------- */

char *seq_definition_text(char *out, const struct seq_definition *d)
{
    int n = snprintf(out, SEQ_TEXT_MAX,
                     "start=%" PRId64 " increment=%" PRId64 " begins=%" PRId64 " rate=%" PRId64
                     " burst=%" PRId64 " subs=%" PRId64 " reset=%s offset=%d loss=%s order=%s"
                     " cycle=%s",
                     d->start, d->increment, d->begins_ms, d->rate, d->burst, d->subs,
                     period_reset_name(d->reset), d->offset_min, losses[d->loss],
                     d->strict ? "strict" : "sidecar", d->cycle ? "yes" : "no");
    if (d->back_h > 0)
        n += snprintf(out + n, SEQ_TEXT_MAX - (size_t)n, " back=%" PRId64, d->back_h);
    if (d->template[0])
        (void)snprintf(out + n, SEQ_TEXT_MAX - (size_t)n, " template=%s", d->template);
    return out;
}

/* The value of "name=value " at the beginning of *rest, which goes on behind it. */
static bool value(struct span *rest, const char *name, struct span *out)
{
    struct span part = span_cut(rest, ' ');
    struct span key = span_cut(&part, '=');
    *out = part;
    return span_eq(key, span_str(name)) && part.p != NULL;
}

static bool number(struct span *rest, const char *name, int64_t *out)
{
    struct span text;
    return value(rest, name, &text) && dec_canonical_i64(text, out);
}

/* Which of n words it is. */
static bool word(struct span *rest, const char *name, const char *const *words, size_t n,
                 size_t *out)
{
    struct span text;
    if (!value(rest, name, &text))
        return false;
    for (*out = 0; *out < n; ++*out) {
        if (span_eq(text, span_str(words[*out])))
            return true;
    }
    return false;
}

static bool is_template(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return s.n > 0 && s.n <= TEMPLATE_TEXT_MAX;
}

/* What older versions have not, and take such a definition for unreadable: " back=9600
 * template=...", or one of them, or none. */
static bool parse_more(struct span rest, struct seq_definition *d)
{
    struct span text;
    if (rest.p && span_starts(rest, SPAN("back=")) &&
        (!number(&rest, "back", &d->back_h) || d->back_h <= 0))
        return false;
    if (!rest.p)
        return true;
    if (!value(&rest, "template", &text) || rest.p || !is_template(text))
        return false;
    memcpy(d->template, text.p, text.n);
    return true;
}

bool seq_definition_parse(struct span s, struct seq_definition *out)
{
    static const char *const orders[] = {"sidecar", "strict"}, *const cycles[] = {"no", "yes"};
    struct seq_definition d = {.start = 0};
    struct span rest = s, reset;
    size_t loss, order, cycle;
    int64_t offset;
    struct err e;
    if (s.n >= SEQ_TEXT_MAX || !number(&rest, "start", &d.start) ||
        !number(&rest, "increment", &d.increment) || !number(&rest, "begins", &d.begins_ms) ||
        !number(&rest, "rate", &d.rate) || !number(&rest, "burst", &d.burst) ||
        !number(&rest, "subs", &d.subs) || !value(&rest, "reset", &reset) ||
        !period_reset_parse(reset, &d.reset) || !number(&rest, "offset", &offset) ||
        !word(&rest, "loss", losses, SEQ_LOSSES, &loss) ||
        !word(&rest, "order", orders, 2, &order) || !word(&rest, "cycle", cycles, 2, &cycle) ||
        !parse_more(rest, &d) || offset < -PERIOD_OFFSET_MAX || offset > PERIOD_OFFSET_MAX)
        return false;
    d.offset_min = (int)offset;
    d.loss = (enum seq_loss)loss;
    d.strict = order == 1;
    d.cycle = cycle == 1;
    *out = d;
    return check_alone(&d, &e) == ERR_OK;
}

bool seq_definition_means(const struct seq_definition *d, int64_t begins_ms, const char *text)
{
    char own[SEQ_TEXT_MAX];
    struct seq_definition meant = *d;
    meant.begins_ms = d->begins_ms ? d->begins_ms : begins_ms;
    return strcmp(seq_definition_text(own, &meant), text) == 0;
}
