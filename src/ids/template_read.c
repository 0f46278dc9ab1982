/*
 * A text taken apart: cut into what its steps wrote, from which number and period are read; then
 * what follows from those is written once more, and has to be what is there.
 */
#include "ids/template_steps.h"

#include <inttypes.h>
#include <stdio.h>

#define SHOWN(s) (int)((s).n < 80 ? (s).n : 80), (s).p

struct cut {
    const struct template *t;
    struct span text;
    struct span of[TEMPLATE_STEPS]; /* each step's */
    struct err *e;
};

static size_t place(const struct cut *c, struct span part)
{
    return (size_t)(part.p - c->text.p) + 1;
}

static enum err_code refuse(const struct cut *c, struct span found, const char *expected)
{
    return err_set(c->e, ERR_INVALID, "expected %s at character %zu, found \"%.*s\"", expected,
                   place(c, found), SHOWN(found));
}

/* ---- where each part begins -------------------------------------------------------------------
 */

/* How many characters of rest are the step's. */
static size_t length_of(const struct cut *c, unsigned i, struct span rest)
{
    const struct template *t = c->t;
    const struct template_step *s = &t->step[i];
    size_t behind = 0, n = 0;
    if (i != t->flex) {
        while (n < rest.n && n < s->most &&
               (n < s->least || template_chars_has(&s->chars, rest.p[n])))
            n++;
        return n;
    }
    for (unsigned k = i + 1; k < t->n; k++)
        behind += t->step[k].most;
    return rest.n > behind ? rest.n - behind : 0;
}

static enum err_code cut_step(struct cut *c, unsigned i, struct span *rest)
{
    const struct template_step *s = &c->t->step[i];
    size_t n = length_of(c, i, *rest);
    struct span part = span_of(rest->p, n);
    *rest = span_skip(*rest, n);
    c->of[i] = part;
    bool fits = s->kind == TEMPLATE_LITERAL ? span_eq(part, template_step_text(c->t, s))
                                            : template_fits(s, part);
    if (fits)
        return ERR_OK;
    char expected[TEMPLATE_OUT_MAX + 80];
    if (s->kind == TEMPLATE_LITERAL)
        (void)snprintf(expected, sizeof expected, "\"%.*s\"", (int)s->text_n, c->t->text + s->text);
    else if (s->least < s->most)
        (void)snprintf(expected, sizeof expected, "%u to %u characters of @{%s}", s->least, s->most,
                       template_kind_name((enum template_kind)s->kind));
    else
        (void)snprintf(expected, sizeof expected, "%u characters of @{%s}", s->most,
                       template_kind_name((enum template_kind)s->kind));
    return refuse(c, part, expected);
}

static enum err_code cut_text(struct cut *c)
{
    struct span rest = c->text;
    for (unsigned i = 0; i < c->t->n; i++)
        if (cut_step(c, i, &rest))
            return c->e->code;
    return rest.n ? refuse(c, rest, "the text's end") : ERR_OK;
}

/* ---- number and period ------------------------------------------------------------------------
 */

/* What the first step of a kind wrote; n 0: there is none. */
static struct span first_of(const struct cut *c, enum template_kind kind, uint8_t *base)
{
    for (unsigned i = 0; i < c->t->n; i++) {
        if (c->t->step[i].kind == kind) {
            *base = c->t->step[i].base;
            return c->of[i];
        }
    }
    return span_of("", 0);
}

/* Of digits; above TEMPLATE_NUMBER_MAX: too many. */
static uint64_t value_of(struct span s, unsigned base)
{
    const char *digits = template_alphabet(base);
    uint64_t v = 0;
    for (size_t i = 0; i < s.n && v <= TEMPLATE_NUMBER_MAX; i++)
        v = v * base + (uint64_t)(strchr(digits, s.p[i]) - digits);
    return v;
}

static enum err_code read_number(const struct cut *c, int64_t *out)
{
    uint8_t base = 10;
    struct span s = first_of(c, TEMPLATE_SEQ, &base);
    uint64_t v = value_of(s, base);
    if (v > (uint64_t)c->t->last_number)
        return refuse(c, s, "a number up to 2^53-1, or what the template is wide enough for,");
    *out = (int64_t)v;
    return ERR_OK;
}

/* A field of a date; fallback where there is none. */
static unsigned field(const struct cut *c, enum template_kind kind, unsigned fallback)
{
    uint8_t base;
    struct span s = first_of(c, kind, &base);
    return s.n ? template_digits_at(s.p, s.n) : fallback;
}

/* Month and day of day number `of` of a year, as far as there is such a day. */
static void from_year_day(unsigned year, unsigned of, unsigned *month, unsigned *day)
{
    *month = 1;
    while (*month < 12 && template_year_day(year, *month + 1, 1) <= of)
        ++*month;
    *day = of + 1 - template_year_day(year, *month, 1);
}

static enum err_code read_period(const struct cut *c, char out[TEMPLATE_PERIOD_MAX])
{
    uint8_t ignored;
    enum template_reset reset = (enum template_reset)c->t->reset;
    char label[64];
    out[0] = '\0';
    if (reset == TEMPLATE_NEVER)
        return ERR_OK;
    unsigned year = field(c, TEMPLATE_YEARS, 0), of = field(c, TEMPLATE_YEARDAYS, 1), month, day;
    from_year_day(year, of, &month, &day);
    month = field(c, TEMPLATE_MONTHS, month);
    if (!first_of(c, TEMPLATE_YEARDAYS, &ignored).n)
        day = 1;
    day = field(c, TEMPLATE_DAYS, day);
    unsigned hour = field(c, TEMPLATE_HOURS, 0);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || of < 1 || hour > 23 ||
        template_year_day(year, month, day) >= template_year_day(year, month + 1, 1))
        return refuse(c, first_of(c, TEMPLATE_YEARS, &ignored), "a day that there is, or an hour,");
    (void)snprintf(label, sizeof label, "%04u-%02u-%02uT%02u", year, month, day, hour);
    size_t n = template_label_length(reset);
    memcpy(out, label, n);
    out[n] = '\0';
    return ERR_OK;
}

/* ---- what follows from them --------------------------------------------------------------------
 */

/* Dates and numbers, each of which has to be that of the first. */
static enum err_code check_same(const struct cut *c, unsigned i,
                                const struct template_reading *found)
{
    const struct template_step *s = &c->t->step[i];
    char text[TEMPLATE_OUT_MAX], expected[TEMPLATE_OUT_MAX + 80];
    size_t n = s->most;
    if (s->kind == TEMPLATE_SEQ) {
        n = s->least == s->most ? n : template_digits((uint64_t)found->number, s->base);
        (void)template_put_number(text, n, (uint64_t)found->number, s->base);
    } else {
        template_put_date(text, (enum template_kind)s->kind, found->period);
    }
    if (span_eq(c->of[i], span_of(text, n)))
        return ERR_OK;
    (void)snprintf(expected, sizeof expected, "\"%.*s\", by what stands elsewhere in it,", (int)n,
                   text);
    return refuse(c, c->of[i], expected);
}

static enum err_code check_digits(const struct cut *c, unsigned i)
{
    const struct template_step *s = &c->t->step[i];
    char text[CHECK_DIGIT_WIDTH];
    struct span over = span_of(c->text.p, (size_t)(c->of[i].p - c->text.p));
    if (s->of < TEMPLATE_STEPS)
        over = c->of[s->of];
    check_digit_write(&s->check, over, text);
    if (span_eq(c->of[i], span_of(text, s->most)))
        return ERR_OK;
    return err_set(
        c->e, ERR_CORRUPT,
        "expected check digit \"%.*s\" by %s at character %zu, found \"%.*s\": something "
        "in it was misread or mistyped",
        (int)s->most, text, check_kind_name(s->check.kind), place(c, c->of[i]), SHOWN(c->of[i]));
}

static enum err_code check_step(const struct cut *c, unsigned i,
                                const struct template_reading *found)
{
    switch (c->t->step[i].kind) {
    case TEMPLATE_YEARS:
    case TEMPLATE_MONTHS:
    case TEMPLATE_DAYS:
    case TEMPLATE_YEARDAYS:
    case TEMPLATE_HOURS:
    case TEMPLATE_SEQ:
        return check_same(c, i, found);
    default:
        return ERR_OK;
    }
}

static void add_part(const struct cut *c, unsigned i, struct template_reading *out)
{
    const struct template_step *s = &c->t->step[i];
    if (s->kind == TEMPLATE_LITERAL)
        return;
    out->part[out->n++] = (struct template_part){
        .kind = (enum template_kind)s->kind,
        .name = s->kind == TEMPLATE_ARG ? template_step_text(c->t, s) : span_of("", 0),
        .text = c->of[i],
        .value = s->kind == TEMPLATE_WORKER ? value_of(c->of[i], s->base)
                 : s->kind == TEMPLATE_MS   ? value_of(c->of[i], 10)
                                            : 0,
    };
    if (s->kind == TEMPLATE_SUB)
        out->sub = c->of[i];
}

/* Check digits come first of what is said: where one is wrong, whatever else is may be, too. */
enum err_code template_read(const struct template *t, struct span text,
                            struct template_reading *out, struct err *e)
{
    struct err own;
    struct cut c = {.t = t, .text = text, .e = e ? e : &own};
    *out = (struct template_reading){.number = 0};
    enum err_code code = cut_text(&c);
    for (unsigned i = 0; i < t->n && !code; i++)
        if (t->step[i].kind == TEMPLATE_CHECK)
            code = check_digits(&c, i);
    if (!code)
        code = read_number(&c, &out->number);
    if (!code)
        code = read_period(&c, out->period);
    for (unsigned i = 0; i < t->n && !code; i++) {
        code = check_step(&c, i, out);
        add_part(&c, i, out);
    }
    return code;
}
