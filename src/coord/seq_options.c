#include "coord/seq_options.h"

#include "base/buf.h"
#include "base/dec.h"
#include "base/int64.h"
#include "base/timefmt.h"
#include "coord/seq_rows.h"
#include "coord/seq_template.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX (TEMPLATE_TEXT_MAX + 3) /* bytes of one, quotes and NUL included */

/* ---- words ------------------------------------------------------------------------------------
 */

bool seq_number_read(struct span s, int64_t *out)
{
    int64_t v;
    if (!dec_i64(s, &v) || v < -SEQ_NUMBER_MAX || v > SEQ_NUMBER_MAX)
        return false;
    *out = v;
    return true;
}

static bool two_digits(const char *p, int *out)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
        return false;
    *out = 10 * (p[0] - '0') + (p[1] - '0');
    return true;
}

bool seq_zone_read(struct span s, int *offset_min)
{
    int h, m;
    if (span_eq(s, SPAN("UTC")) || span_eq(s, SPAN("Z"))) {
        *offset_min = 0;
        return true;
    }
    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':' || !two_digits(s.p + 1, &h) ||
        !two_digits(s.p + 4, &m) || m > 59 || 60 * h + m > PERIOD_OFFSET_MAX)
        return false;
    *offset_min = (s.p[0] == '-' ? -1 : 1) * (60 * h + m);
    return true;
}

enum err_code seq_check_name(struct span name, struct err *e)
{
    if (seq_is_name(name))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "expected a name of 1 to 64 letters, digits, '_', '.' and '-', found \"%.*s\"",
                   (int)(name.n < 80 ? name.n : 80), name.p);
}

/* ---- what they come to ------------------------------------------------------------------------
 */

static enum err_code read_order(const char *text, bool *strict, struct err *e)
{
    *strict = text && strcmp(text, "strict") == 0;
    if (!text || *strict || strcmp(text, "sidecar") == 0)
        return ERR_OK;
    return err_set(e, ERR_INVALID, "--order: expected sidecar or strict, found \"%.80s\"", text);
}

static enum err_code read_periods(const struct seq_words *in, struct seq_definition *d,
                                  struct err *e)
{
    if (in->reset && !period_reset_parse(span_str(in->reset), &d->reset))
        return err_set(e, ERR_INVALID,
                       "--reset: expected never, hour, day, month or year, found \"%.80s\"",
                       in->reset);
    if (!in->timezone)
        return ERR_OK;
    if (d->reset == PERIOD_NEVER)
        return err_set(e, ERR_INVALID,
                       "--timezone: expected with --reset hour, day, month or year, whose "
                       "beginnings it moves, found without");
    if (seq_zone_read(span_str(in->timezone), &d->offset_min))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "--timezone: expected UTC, Z or an offset from it such as +01:00, up to 14:00, "
                   "found \"%.80s\": periods keep one offset all the year, so the name of a zone, "
                   "whose offset changes with summer time and by law, cannot be kept",
                   in->timezone);
}

static enum err_code read_loss(const struct seq_words *in, struct seq_definition *d, struct err *e)
{
    if (in->has_rate && in->on_loss)
        return err_set(e, ERR_INVALID, "expected one of --max-rate and --on-loss, found both");
    if (in->has_rate)
        d->loss = SEQ_LOSS_SKIP;
    else if (!in->on_loss)
        d->loss = SEQ_LOSS_UNSAID;
    else if (strcmp(in->on_loss, "refuse") == 0)
        d->loss = SEQ_LOSS_REFUSE;
    else if (strcmp(in->on_loss, "trust") == 0)
        d->loss = SEQ_LOSS_TRUST;
    else
        return err_set(e, ERR_INVALID,
                       "--on-loss: expected refuse or trust, or --max-rate R in its place, found "
                       "\"%.80s\"",
                       in->on_loss);
    d->rate = in->has_rate ? in->rate : 0;
    d->burst = in->has_rate ? seq_burst(in->rate) : 0;
    return ERR_OK;
}

/* "400d" or "36h", as hours. */
static bool read_back(const char *text, int64_t *hours)
{
    size_t n = strlen(text);
    bool days = n > 0 && text[n - 1] == 'd';
    if (n < 2 || (!days && text[n - 1] != 'h') || !seq_number_read(span_of(text, n - 1), hours) ||
        *hours < 0 || *hours > SEQ_BACK_MAX / (days ? 24 : 1))
        return false;
    *hours *= days ? 24 : 1;
    return true;
}

/* Who asks for a date has the number and the date of one document: it may be made out late. */
static enum err_code read_template(const struct seq_words *in, struct seq_definition *d,
                                   struct err *e)
{
    if (in->template && (!*in->template || strlen(in->template) > TEMPLATE_TEXT_MAX))
        return err_set(e, ERR_RANGE, "--template: expected 1 to %d bytes, found %zu",
                       TEMPLATE_TEXT_MAX, strlen(in->template));
    if (in->template)
        memcpy(d->template, in->template, strlen(in->template) + 1);
    if (in->template && d->reset != PERIOD_NEVER)
        d->back_h = SEQ_BACK_DEFAULT_H;
    if (!in->date_back)
        return ERR_OK;
    if (d->reset == PERIOD_NEVER)
        return err_set(e, ERR_INVALID,
                       "--date-back: expected with --reset hour, day, month or year, whose numbers "
                       "it grants later, found without");
    if (read_back(in->date_back, &d->back_h))
        return ERR_OK;
    return err_set(e, ERR_INVALID, "--date-back: expected 0d to %dd or 0h to %dh, found \"%.80s\"",
                   SEQ_BACK_MAX / 24, SEQ_BACK_MAX, in->date_back);
}

/* What of an operator's words belongs together. */
static enum err_code check_words(const struct seq_words *in, struct err *e)
{
    if (in->reuse && !in->no_older)
        return err_set(e, ERR_INVALID,
                       "--reuse: expected --no-older-data as well, your word that no data from "
                       "before the name was dropped ever come back, since numbers would repeat");
    if (in->no_older && !in->reuse)
        return err_set(e, ERR_INVALID, "--no-older-data: expected with --reuse, found without");
    if (in->fresh && in->has_begins)
        return err_set(e, ERR_INVALID,
                       "expected one of --new (there was none of this name) and --begins (when "
                       "that one began), found both");
    if (in->has_begins && in->begins_ms <= 0)
        return err_set(e, ERR_RANGE, "--begins: expected a time after 1970, found one before");
    return ERR_OK;
}

enum err_code seq_words_read(const struct seq_words *in, struct seq_create *out, struct err *e)
{
    struct seq_definition d = {.start = in->has_start ? in->start : 1,
                               .increment = in->has_increment ? in->increment : 1,
                               .cycle = in->cycle};
    enum err_code code = check_words(in, e);
    if (!code)
        code = read_order(in->order, &d.strict, e);
    if (!code)
        code = read_periods(in, &d, e);
    if (!code)
        code = read_loss(in, &d, e);
    if (!code)
        code = read_template(in, &d, e);
    if (code)
        return code;
    d.subs = in->max_subs > 0 ? (int64_t)in->max_subs : in->subs ? SEQ_SUBS_DEFAULT : 0;
    d.begins_ms = in->has_begins ? in->begins_ms : 0;
    *out = (struct seq_create){
        .name = out->name,
        .definition = d,
        .has_max = in->has_max,
        .max = in->has_max        ? in->max
               : d.increment >= 0 ? SEQ_NUMBER_MAX
                                  : -SEQ_NUMBER_MAX,
        .fresh = in->fresh,
        .reuse = in->reuse,
        .no_older = in->no_older,
    };
    struct template ignored;
    code = seq_check(&d, out->max, e);
    return code || !d.template[0] ? code : seq_template_parse(out->name, &d, out->max, &ignored, e);
}

/* ---- one by one ------------------------------------------------------------------------------
 */

enum word_kind {
    WORD_FLAG,
    WORD_TEXT,
    WORD_NUMBER,
    WORD_COUNT,
    WORD_TIME
};

static const char *const wanted[] = {
    [WORD_TEXT] = "a word",
    [WORD_NUMBER] = SEQ_NUMBER_EXPECTED,
    [WORD_COUNT] = "a number from 1 to 1000000",
    [WORD_TIME] = "a time as in RFC 3339, such as 2026-01-01T00:00:00Z",
};
static_assert(SEQ_SUBS_MAX == 1000000, "as it is said");

#define AT(field) offsetof(struct seq_words, field)

static const struct word {
    const char *name;
    enum word_kind kind;
    size_t at, has; /* fields; has 0: there is none */
    bool once;      /* said of one making, and so of no definition that is written down */
} words[] = {
    {"start", WORD_NUMBER, AT(start), AT(has_start), false},
    {"increment", WORD_NUMBER, AT(increment), AT(has_increment), false},
    {"max", WORD_NUMBER, AT(max), AT(has_max), false},
    {"cycle", WORD_FLAG, AT(cycle), 0, false},
    {"order", WORD_TEXT, AT(order), 0, false},
    {"reset", WORD_TEXT, AT(reset), 0, false},
    {"timezone", WORD_TEXT, AT(timezone), 0, false},
    {"subs", WORD_FLAG, AT(subs), 0, false},
    {"max-subs", WORD_COUNT, AT(max_subs), 0, false},
    {"max-rate", WORD_NUMBER, AT(rate), AT(has_rate), false},
    {"on-loss", WORD_TEXT, AT(on_loss), 0, false},
    {"template", WORD_TEXT, AT(template), 0, false},
    {"date-back", WORD_TEXT, AT(date_back), 0, false},
    {"begins", WORD_TIME, AT(begins_ms), AT(has_begins), false},
    {"new", WORD_FLAG, AT(fresh), 0, true},
    {"reuse", WORD_FLAG, AT(reuse), 0, true},
    {"no-older-data", WORD_FLAG, AT(no_older), 0, true},
};

#define WORDS (sizeof words / sizeof *words)

static const struct word *find(struct span name)
{
    for (size_t i = 0; i < WORDS; i++)
        if (span_eq(name, span_str(words[i].name)))
            return &words[i];
    return NULL;
}

static bool read_value(const struct word *w, const char *text, char *at)
{
    int64_t v = 0;
    if (w->kind == WORD_TEXT) {
        memcpy(at, &text, sizeof text);
        return true;
    }
    if (w->kind == WORD_TIME ? !timefmt_parse_rfc3339(span_str(text), &v)
                             : !seq_number_read(span_str(text), &v))
        return false;
    if (w->kind == WORD_COUNT) {
        uint32_t count = (uint32_t)v;
        memcpy(at, &count, sizeof count);
        return v >= 1 && v <= SEQ_SUBS_MAX;
    }
    memcpy(at, &v, sizeof v);
    return true;
}

static enum err_code read_word(const struct word *w, const char *text, struct seq_words *out,
                               struct err *e)
{
    bool yes = true;
    if (w->has || w->kind == WORD_FLAG)
        memcpy((char *)out + (w->has ? w->has : w->at), &yes, sizeof yes);
    if (w->kind == WORD_FLAG || read_value(w, text, (char *)out + w->at))
        return ERR_OK;
    return err_set(e, ERR_INVALID, "--%s: expected %s, found \"%.80s\"", w->name, wanted[w->kind],
                   text);
}

static enum err_code no_option(struct span found, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "expected an option of sidflakectl seq create, such as --start or --max-rate, "
                   "found \"%.*s\"",
                   (int)(found.n < 80 ? found.n : 80), found.p);
}

enum err_code seq_word_read(const char *name, const char *text, struct seq_words *out,
                            struct err *e)
{
    const struct word *w = find(span_str(name));
    return w ? read_word(w, text, out, e) : no_option(span_str(name), e);
}

/* ---- as one line ------------------------------------------------------------------------------
 */

/* The next word up to a space, as a text of its own; n 0: there is none. */
static struct span take(struct span *rest)
{
    struct span s = {rest->p, 0};
    while (rest->n && *rest->p == ' ')
        *rest = span_skip(*rest, 1);
    s.p = rest->p;
    while (s.n < rest->n && s.p[s.n] != ' ')
        s.n++;
    *rest = span_skip(*rest, s.n);
    return s;
}

/* The texts of those that were found, which are empty of those that have no value. */
struct texts {
    bool found[WORDS];
    char of[WORDS][WORD_MAX];
};

/* As a shell's line has it: 'it'\''s' is it's. out has WORD_MAX bytes. false: it has no room. */
static bool put_unquoted(struct span text, char *out)
{
    char quote = *text.p;
    bool quoted = text.n > 2 && (quote == '\'' || quote == '"') && text.p[text.n - 1] == quote;
    size_t n = 0;
    if (quoted)
        text = span_of(text.p + 1, text.n - 2);
    while (text.n && n < WORD_MAX - 1) {
        bool apostrophe = quoted && quote == '\'' && span_starts(text, SPAN("'\\''"));
        out[n++] = *text.p;
        text = span_skip(text, apostrophe ? 4 : 1);
    }
    out[n] = '\0';
    return text.n == 0;
}

static enum err_code keep_text(const struct word *w, struct span text, char *kept, struct err *e)
{
    if (text.n == 0 || memchr(text.p, '\0', text.n) || !put_unquoted(text, kept))
        return err_set(e, ERR_INVALID, "--%s: expected %s, found \"%.*s\"", w->name,
                       wanted[w->kind], (int)(text.n < 80 ? text.n : 80), text.p);
    return ERR_OK;
}

/* "--name value" or "--name=value". */
static enum err_code read_option(struct span option, struct span *rest, struct texts *t,
                                 struct seq_words *out, struct err *e)
{
    bool dashes = span_starts(option, SPAN("--"));
    struct span value = option, name = span_cut(&value, '=');
    const struct word *w = dashes ? find(span_skip(name, 2)) : NULL;
    if (!w || w->once || (value.p && w->kind == WORD_FLAG))
        return no_option(option, e);
    size_t i = (size_t)(w - words);
    if (t->found[i])
        return err_set(e, ERR_INVALID, "--%s: expected once, found twice", w->name);
    t->found[i] = true;
    if (w->kind != WORD_FLAG && !value.p)
        value = take(rest);
    enum err_code r = w->kind == WORD_FLAG ? ERR_OK : keep_text(w, value, t->of[i], e);
    return r ? r : read_word(w, t->of[i], out, e);
}

enum err_code seq_line_read(struct span line, char *name, struct seq_create *out, struct err *e)
{
    struct texts texts = {.found = {false}};
    struct seq_words said = {0};
    struct span s = take(&line), option;
    enum err_code r = seq_check_name(s, e);
    while (!r && (option = take(&line)).n)
        r = read_option(option, &line, &texts, &said, e);
    if (r)
        return r;
    memcpy(name, s.p, s.n);
    name[s.n] = '\0';
    out->name = name;
    return seq_words_read(&said, out, e);
}

/* ---- and back --------------------------------------------------------------------------------
 */

char *seq_zone_text(char *out, int offset_min)
{
    unsigned far = (unsigned)(offset_min < 0 ? -offset_min : offset_min);
    if (far == 0)
        return memcpy(out, "UTC", sizeof "UTC");
    (void)snprintf(out, SEQ_ZONE_MAX, "%c%02u:%02u", offset_min < 0 ? '-' : '+', far / 60 % 100,
                   far % 60);
    return out;
}

/* As a shell takes it. */
static void put_template(struct buf *b, const char *template)
{
    buf_put_str(b, " --template '");
    for (const char *c = template; *c; c++)
        if (*c == '\'')
            buf_put_str(b, "'\\''");
        else
            buf_put_char(b, *c);
    buf_put_char(b, '\'');
}

char *seq_options_text(char *out, const struct seq_definition *d, int64_t max)
{
    char word[TIMEFMT_MAX];
    struct buf b;
    buf_init(&b, out, SEQ_OPTIONS_MAX - 1);
    buf_printf(&b, "--start %" PRId64 " --increment %" PRId64, d->start, d->increment);
    if (max < seq_last_index(d))
        buf_printf(&b, " --max %" PRId64, seq_number(d, max64(max, 0)));
    if (d->strict)
        buf_put_str(&b, " --order strict");
    if (d->cycle)
        buf_put_str(&b, " --cycle");
    if (d->reset != PERIOD_NEVER)
        buf_printf(&b, " --reset %s", period_reset_name(d->reset));
    if (d->offset_min != 0)
        buf_printf(&b, " --timezone %s", seq_zone_text(word, d->offset_min));
    if (d->subs > 0)
        buf_printf(&b, " --max-subs %" PRId64, d->subs);
    if (d->loss == SEQ_LOSS_SKIP)
        buf_printf(&b, " --max-rate %" PRId64, d->rate);
    else if (d->loss != SEQ_LOSS_UNSAID)
        buf_printf(&b, " --on-loss %s", d->loss == SEQ_LOSS_TRUST ? "trust" : "refuse");
    if (d->back_h != (d->template[0] && d->reset != PERIOD_NEVER ? SEQ_BACK_DEFAULT_H : 0))
        buf_printf(&b, " --date-back %" PRId64 "%s", d->back_h / (d->back_h % 24 ? 1 : 24),
                   d->back_h % 24 ? "h" : "d");
    if (d->begins_ms > 0)
        buf_printf(&b, " --begins %s", timefmt_rfc3339(word, d->begins_ms));
    if (d->template[0])
        put_template(&b, d->template);
    out[b.n] = '\0';
    return out;
}
