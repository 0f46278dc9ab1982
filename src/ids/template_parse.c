/*
 * A template as it is defined, into steps. Whether they are unique is looked at once all are there
 * (template_unique.c).
 */
#include "ids/template_steps.h"

#include "base/dec.h"

#include <stdarg.h>
#include <stdio.h>

#define ARG_NAME_MAX  32
#define SHOWN(s)      (int)((s).n < 80 ? (s).n : 80), (s).p
#define WORKER_MAX    65535 /* of any layout */
#define RAND_CHARS    "0-9A-HJKMNP-TV-Z"
#define SUB_CHARS     "0-9A-Za-z"
#define SUB_WIDTH_MAX 100 /* as long as a sub can be */

struct parser {
    struct template *t;
    const struct template_frame *of;
    struct err *e;
    struct span part; /* "@{...}", for what is said of it */
    size_t used;      /* of t->text */
};

static enum err_code refuse(struct parser *p, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Names the part that it is about. */
static enum err_code refuse(struct parser *p, enum err_code code, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(p->e, code, "template, at \"%.*s\": %s", SHOWN(p->part), text);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static struct template_step *add_step(struct parser *p, enum template_kind kind)
{
    struct template *t = p->t;
    if (t->n == TEMPLATE_STEPS) {
        (void)refuse(p, ERR_RANGE,
                     "expected at most %d parts, of which a date has one for each of %%Y, %%m ..., "
                     "found more",
                     TEMPLATE_STEPS);
        return NULL;
    }
    struct template_step *s = &t->step[t->n++];
    *s = (struct template_step){.kind = (uint8_t)kind, .of = TEMPLATE_STEPS};
    return s;
}

/* Of text that is kept; false: they are too many. */
static bool keep(struct parser *p, struct span text)
{
    if (text.n > sizeof p->t->text - p->used)
        return false;
    if (text.n > 0)
        memcpy(p->t->text + p->used, text.p, text.n);
    p->used += text.n;
    return true;
}

static enum err_code add_literal(struct parser *p, struct span text)
{
    struct template *t = p->t;
    struct template_step *s = t->n > 0 ? &t->step[t->n - 1] : NULL;
    if (!s || s->kind != TEMPLATE_LITERAL) {
        s = add_step(p, TEMPLATE_LITERAL);
        if (!s)
            return p->e->code;
        s->text = (uint16_t)p->used;
    }
    if (s->text_n + text.n > TEMPLATE_OUT_MAX || !keep(p, text))
        return refuse(p, ERR_RANGE, "expected at most %d characters, found more", TEMPLATE_OUT_MAX);
    s->text_n = (uint8_t)(s->text_n + text.n);
    s->least = s->most = s->text_n;
    return ERR_OK;
}

/* ---- words: what stands in a part behind its kind ---------------------------------------------
 */

enum word {
    WIDTH = 1,
    BASE = 2,
    CHARS = 4,
    DEFAULT = 8,
    OF = 16,
    RANGE = 32, /* of width: LEAST..MOST, too */
};

struct words {
    unsigned said; /* enum word */
    unsigned least, most;
    unsigned base;
    struct template_chars chars;
    struct span text; /* of default */
};

static bool read_count(struct span s, unsigned *out)
{
    uint64_t v;
    if (!dec_u64(s, &v) || v < 1 || v > TEMPLATE_OUT_MAX)
        return false;
    *out = (unsigned)v;
    return true;
}

static enum err_code read_width(struct parser *p, unsigned may, struct span text, struct words *out)
{
    struct span most = text, least = span_cut(&most, '.');
    bool range = most.n > 1 && *most.p == '.';
    bool is = range ? read_count(least, &out->least) && read_count(span_skip(most, 1), &out->most)
                    : most.p == NULL && read_count(least, &out->least);
    if (is && !range)
        out->most = out->least;
    if (!is || out->least > out->most || (out->least < out->most && !(may & RANGE)))
        return refuse(p, ERR_INVALID, "width: expected a number from 1 to %d%s, found \"%.*s\"",
                      TEMPLATE_OUT_MAX, may & RANGE ? ", or LEAST..MOST" : "", SHOWN(text));
    return ERR_OK;
}

/* "0-9A-Z-": characters and ranges of them; a '-' that is first or last is itself. */
static bool read_chars(struct span s, struct template_chars *out)
{
    for (size_t i = 0; i < s.n; i++) {
        char last = s.p[i];
        if (i + 2 < s.n && s.p[i + 1] == '-') {
            last = s.p[i + 2];
            if (last < s.p[i])
                return false;
        }
        for (int c = s.p[i]; c <= last; c++)
            template_chars_add(out, (char)c);
        i += last == s.p[i] ? 0 : 2;
    }
    return s.n > 0;
}

static enum err_code read_word(struct parser *p, unsigned may, struct span token, struct words *out)
{
    static const struct {
        const char *name;
        enum word word;
    } names[] = {
        {"width", WIDTH}, {"base", BASE}, {"chars", CHARS}, {"default", DEFAULT}, {"of", OF}};
    struct span value = token, name = span_cut(&value, '=');
    unsigned word = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (value.p && span_eq(name, span_str(names[i].name)))
            word = names[i].word & may;
    if (!word)
        return refuse(p, ERR_INVALID, "expected%s%s%s%s%s, found \"%.*s\"",
                      may & WIDTH ? " width=" : "", may & BASE ? " base=" : "",
                      may & CHARS ? " chars=" : "", may & DEFAULT ? " default=" : "",
                      may & OF ? " of="
                      : may    ? ""
                               : " nothing",
                      SHOWN(token));
    if (out->said & word)
        return refuse(p, ERR_INVALID, "%.*s: expected once, found twice", SHOWN(name));
    out->said |= word;
    if (word == WIDTH)
        return read_width(p, may, value, out);
    if (word == BASE && (!read_count(value, &out->base) || !template_alphabet(out->base)))
        return refuse(p, ERR_INVALID, "base: expected " TEMPLATE_BASE_EXPECTED ", found \"%.*s\"",
                      SHOWN(value));
    if (word == CHARS && !read_chars(value, &out->chars))
        return refuse(p, ERR_INVALID,
                      "chars: expected characters and ranges of them, such as 0-9A-Z, found "
                      "\"%.*s\"",
                      SHOWN(value));
    if (word == OF && !span_eq(value, SPAN("seq")))
        return refuse(p, ERR_INVALID, "of: expected seq, found \"%.*s\"", SHOWN(value));
    out->text = word == DEFAULT ? value : out->text;
    return ERR_OK;
}

static enum err_code read_words(struct parser *p, unsigned may, struct span rest, struct words *out)
{
    *out = (struct words){.base = 10};
    while (rest.p) {
        enum err_code code = read_word(p, may, span_cut(&rest, ','), out);
        if (code)
            return code;
    }
    return ERR_OK;
}

/* Of a set that is a default. */
static struct template_chars chars_or(const struct words *w, const char *list)
{
    struct template_chars set = w->chars;
    if (!(w->said & CHARS))
        (void)read_chars(span_str(list), &set);
    return set;
}

/* ---- parts ------------------------------------------------------------------------------------
 */

/* Those that a date part can have; level: the longest period of whose beginning it is not always
 * the same, which is written then. */
static const struct field {
    char letter;
    enum template_kind kind;
    enum template_reset level;
    const char *fixed;
} fields[] = {
    {'Y', TEMPLATE_YEARS, TEMPLATE_YEAR, ""},    {'m', TEMPLATE_MONTHS, TEMPLATE_MONTH, "01"},
    {'d', TEMPLATE_DAYS, TEMPLATE_DAY, "01"},    {'j', TEMPLATE_YEARDAYS, TEMPLATE_MONTH, "001"},
    {'H', TEMPLATE_HOURS, TEMPLATE_HOUR, "00"},  {'M', TEMPLATE_HOURS, TEMPLATE_NEVER, "00"},
    {'S', TEMPLATE_HOURS, TEMPLATE_NEVER, "00"},
};

static enum err_code add_field(struct parser *p, char letter)
{
    const struct field *f = fields;
    while (f->letter != letter)
        if (++f == fields + sizeof fields / sizeof *fields)
            return refuse(p, ERR_INVALID,
                          "date: expected of strftime %%Y, %%m, %%d, %%j, %%H, %%M or %%S, found "
                          "%%%c: others come again, or change with the place",
                          letter);
    if (p->of->reset > f->level)
        return add_literal(p, span_str(f->fixed));
    struct template_step *s = add_step(p, f->kind);
    if (!s)
        return p->e->code;
    s->least = s->most = f->kind == TEMPLATE_YEARS ? 4 : f->kind == TEMPLATE_YEARDAYS ? 3 : 2;
    s->chars = template_chars_of(template_alphabet(10));
    return ERR_OK;
}

static enum err_code parse_date(struct parser *p, struct span format)
{
    if (p->of->reset == TEMPLATE_NEVER)
        return refuse(p, ERR_INVALID,
                      "expected a sequence with --reset hour, day, month or year, whose periods a "
                      "date shows, found one without: the day of a clock need not be the number's");
    if (format.n == 0)
        return refuse(p, ERR_INVALID, "expected a format, as in @{date,%%Y%%m%%d}, found none");
    enum err_code code = ERR_OK;
    for (size_t i = 0; i < format.n && !code; i++) {
        if (format.p[i] != '%')
            code = add_literal(p, span_of(format.p + i, 1));
        else if (++i < format.n)
            code = add_field(p, format.p[i]);
        else
            code = refuse(p, ERR_INVALID, "date: expected a letter behind %%, found none");
    }
    return code;
}

static enum err_code parse_seq(struct parser *p, struct span rest)
{
    struct words w;
    if (read_words(p, WIDTH | BASE, rest, &w))
        return p->e->code;
    unsigned longest = template_digits(TEMPLATE_NUMBER_MAX, w.base);
    if (w.said & WIDTH && w.most > 64)
        return refuse(p, ERR_RANGE, "width: expected at most 64, found %u", w.most);
    struct template_step *s = add_step(p, TEMPLATE_SEQ);
    if (!s)
        return p->e->code;
    s->base = (uint8_t)w.base;
    s->chars = template_chars_of(template_alphabet(w.base));
    s->least = (uint8_t)(w.said & WIDTH ? w.least : 1);
    s->most = (uint8_t)(w.said & WIDTH ? w.most : longest);
    int64_t last = 1;
    for (unsigned i = 0; i < s->most && last <= TEMPLATE_NUMBER_MAX; i++)
        last *= w.base;
    if (last - 1 < p->t->last_number)
        p->t->last_number = last - 1;
    return ERR_OK;
}

static bool is_name(struct span s)
{
    if (s.n < 1 || s.n > ARG_NAME_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && c != '_' && !(c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

/* What would end an argument in a key, or be read as something else in a URL. */
static bool has_any(const struct template_chars *set, const char *list, char *found)
{
    for (; *list; list++) {
        if (template_chars_has(set, *list)) {
            *found = *list;
            return true;
        }
    }
    return false;
}

static enum err_code check_arg(struct parser *p, struct span name, const struct words *w)
{
    char c;
    if (!is_name(name) || template_is_reserved(name))
        return refuse(p, ERR_INVALID,
                      "expected a name of 1 to %d letters, digits and '_', and neither date, n, "
                      "block nor sub, found \"%.*s\"",
                      ARG_NAME_MAX, SHOWN(name));
    if (!(w->said & WIDTH))
        return refuse(p, ERR_INVALID,
                      "expected width=, how many characters the caller may say, "
                      "found none");
    if (has_any(&w->chars, "&#%+", &c))
        return refuse(p, ERR_INVALID,
                      "chars: expected none of & # %% +, which mean something in "
                      "a key or URL, found %c",
                      c);
    return ERR_OK;
}

static enum err_code parse_arg(struct parser *p, struct span rest)
{
    struct words w;
    struct span name = span_cut(&rest, ',');
    if (read_words(p, WIDTH | RANGE | CHARS | DEFAULT, rest, &w) || check_arg(p, name, &w))
        return p->e->code;
    struct template_step *s = add_step(p, TEMPLATE_ARG);
    if (!s)
        return p->e->code;
    s->least = (uint8_t)w.least;
    s->most = (uint8_t)w.most;
    s->chars = chars_or(&w, SUB_CHARS);
    s->text = (uint16_t)p->used;
    s->text_n = (uint8_t)name.n;
    s->default_n = (uint8_t)w.text.n;
    if (!keep(p, name) || !keep(p, w.text))
        return refuse(p, ERR_RANGE, "expected less text, found more than there is room for");
    if (w.said & DEFAULT && !template_fits(s, w.text))
        return refuse(p, ERR_INVALID,
                      "default: expected of the width and the characters of its part, found "
                      "\"%.*s\"",
                      SHOWN(w.text));
    p->t->takes_args = true;
    return ERR_OK;
}

static enum err_code parse_sub(struct parser *p, struct span rest)
{
    struct words w;
    if (!p->of->subs)
        return refuse(p, ERR_INVALID, "expected a sequence with --subs, found one without");
    if (read_words(p, WIDTH | RANGE | CHARS, rest, &w))
        return p->e->code;
    if (w.said & WIDTH && w.most > SUB_WIDTH_MAX)
        return refuse(p, ERR_RANGE, "width: expected at most %d, which subs have, found %u",
                      SUB_WIDTH_MAX, w.most);
    struct template_step *s = add_step(p, TEMPLATE_SUB);
    if (!s)
        return p->e->code;
    s->least = (uint8_t)(w.said & WIDTH ? w.least : 1);
    s->most = (uint8_t)(w.said & WIDTH ? w.most : SUB_WIDTH_MAX);
    s->chars = chars_or(&w, SUB_CHARS);
    p->t->has_sub = true;
    return ERR_OK;
}

static enum err_code parse_name(struct parser *p, struct span rest)
{
    struct words w;
    if (read_words(p, 0, rest, &w))
        return p->e->code;
    return add_literal(p, p->of->name);
}

static enum err_code parse_worker(struct parser *p, struct span rest)
{
    struct words w;
    if (read_words(p, WIDTH | BASE, rest, &w))
        return p->e->code;
    struct template_step *s = add_step(p, TEMPLATE_WORKER);
    if (!s)
        return p->e->code;
    s->base = (uint8_t)w.base;
    s->chars = template_chars_of(template_alphabet(w.base));
    s->least = s->most = (uint8_t)(w.said & WIDTH ? w.least : template_digits(WORKER_MAX, w.base));
    p->t->has_worker = true;
    return ERR_OK;
}

static enum err_code parse_ms(struct parser *p, struct span rest)
{
    struct words w;
    if (read_words(p, 0, rest, &w))
        return p->e->code;
    struct template_step *s = add_step(p, TEMPLATE_MS);
    if (!s)
        return p->e->code;
    s->least = s->most = TEMPLATE_MS_WIDTH;
    s->chars = template_chars_of(template_alphabet(10));
    return ERR_OK;
}

static enum err_code parse_rand(struct parser *p, struct span rest)
{
    struct words w;
    if (read_words(p, WIDTH | CHARS, rest, &w))
        return p->e->code;
    if (!(w.said & WIDTH))
        return refuse(p, ERR_INVALID, "expected width=, how many characters, found none");
    struct template_step *s = add_step(p, TEMPLATE_RAND);
    if (!s)
        return p->e->code;
    s->least = s->most = (uint8_t)w.least;
    s->chars = chars_or(&w, RAND_CHARS);
    p->t->has_rand = true;
    return ERR_OK;
}

/* "9,31,10" of linear, which what is left of *rest goes on behind. */
static bool read_factors(struct span *rest, struct check_digit *out)
{
    uint32_t *const to[] = {&out->a, &out->b, &out->c};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        uint64_t v;
        if (!rest->p || !dec_u64(span_cut(rest, ','), &v) || v < 1 || v > CHECK_DIGIT_FACTOR_MAX)
            return false;
        *to[i] = (uint32_t)v;
    }
    return true;
}

/* The step of the number that a check is over; the nearest one before. */
static unsigned seq_before(const struct template *t)
{
    for (unsigned i = t->n; i-- > 0;)
        if (t->step[i].kind == TEMPLATE_SEQ)
            return i;
    return TEMPLATE_STEPS;
}

static enum err_code parse_check(struct parser *p, struct span rest)
{
    struct words w;
    struct check_digit c = {.kind = CHECK_LUHN};
    struct span name = span_cut(&rest, ',');
    if (!check_kind_parse(name, &c.kind))
        return refuse(p, ERR_INVALID,
                      "expected luhn, gs1, damm, verhoeff, mod11-2, mod37-2, mod97-10 or "
                      "linear,A,B,C, found \"%.*s\"",
                      SHOWN(name));
    if (c.kind == CHECK_LINEAR && !read_factors(&rest, &c))
        return refuse(p, ERR_INVALID,
                      "expected linear,A,B,C with whole numbers from 1 to %d, found \"%.*s\"",
                      CHECK_DIGIT_FACTOR_MAX, SHOWN(p->part));
    if (read_words(p, OF, rest, &w))
        return p->e->code;
    unsigned of = w.said & OF ? seq_before(p->t) : TEMPLATE_STEPS;
    if (w.said & OF && of == TEMPLATE_STEPS)
        return refuse(p, ERR_INVALID, "of=seq: expected @{seq} before, found none");
    struct template_step *s = add_step(p, TEMPLATE_CHECK);
    if (!s)
        return p->e->code;
    s->of = (uint8_t)of;
    s->check = c;
    s->least = s->most = (uint8_t)check_digit_width(&c);
    s->chars = template_chars_of(check_digit_alphabet(&c));
    return ERR_OK;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static enum err_code parse_part(struct parser *p)
{
    static const struct {
        const char *name;
        enum err_code (*parse)(struct parser *p, struct span rest);
    } parts[] = {
        {"date", parse_date}, {"seq", parse_seq},   {"arg", parse_arg},
        {"sub", parse_sub},   {"name", parse_name}, {"worker", parse_worker},
        {"ms", parse_ms},     {"rand", parse_rand}, {"check", parse_check},
    };
    struct span rest = span_of(p->part.p + 2, p->part.n - 3);
    struct span name = span_cut(&rest, ',');
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (span_eq(name, span_str(parts[i].name)))
            return parts[i].parse(p, rest);
    return refuse(p, ERR_INVALID,
                  "expected date, seq, arg, sub, name, worker, ms, rand or check, found \"%.*s\"",
                  SHOWN(name));
}

/* What *rest begins with: a part, or a character. */
static enum err_code parse_next(struct parser *p, struct span *rest)
{
    p->part = span_of(rest->p, 1);
    if (*rest->p != '@') {
        *rest = span_skip(*rest, 1);
        return add_literal(p, p->part);
    }
    p->part = *rest;
    if (rest->n > 1 && rest->p[1] == '@') {
        *rest = span_skip(*rest, 2);
        return add_literal(p, SPAN("@"));
    }
    const char *end = rest->n > 1 && rest->p[1] == '{' ? memchr(rest->p, '}', rest->n) : NULL;
    if (!end)
        return refuse(p, ERR_INVALID, "expected @{PART} or @@, found neither");
    p->part.n = (size_t)(end - rest->p) + 1;
    *rest = span_skip(*rest, p->part.n);
    return parse_part(p);
}

enum err_code template_parse(struct template *t, struct span text, const struct template_frame *of,
                             struct err *e)
{
    struct err own;
    struct parser p = {.t = t, .of = of, .e = e ? e : &own};
    *t = (struct template){.reset = (uint8_t)of->reset, .last_number = TEMPLATE_NUMBER_MAX};
    if (text.n < 1 || text.n > TEMPLATE_TEXT_MAX)
        return err_set(e, ERR_RANGE, "template: expected 1 to %d characters, found %zu",
                       TEMPLATE_TEXT_MAX, text.n);
    for (size_t i = 0; i < text.n; i++)
        if (!template_is_printable(text.p[i]))
            return err_set(e, ERR_INVALID,
                           "template: expected printable ASCII without spaces, found byte 0x%02x "
                           "at %zu",
                           (unsigned)(unsigned char)text.p[i], i + 1);
    while (text.n) {
        enum err_code code = parse_next(&p, &text);
        if (code)
            return code;
    }
    return template_unique(t, of, p.e);
}
