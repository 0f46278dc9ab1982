#include "ids/template_steps.h"

#include "base/dec.h"

#include <assert.h>

/* ---- single values ----------------------------------------------------------------------------
 */

struct template_chars template_chars_of(const char *list)
{
    struct template_chars set = {0, 0};
    for (; *list; list++)
        template_chars_add(&set, *list);
    return set;
}

const char *template_alphabet(unsigned base)
{
    switch (base) {
    case 10:
        return "0123456789";
    case 16:
        return "0123456789ABCDEF";
    case 32:
        return "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    case 36:
        return "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    case 58:
        return "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    case 62:
        return "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    default:
        return NULL;
    }
}

unsigned template_digits(uint64_t v, unsigned base)
{
    unsigned n = 1;
    while (v /= base)
        n++;
    return n;
}

/* v's digits are the last of sixteen. */
static bool put_decimal(char *out, size_t n, uint64_t v)
{
    static const uint64_t limits[] = {1,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000};
    char text[16];
    if (n < sizeof text && v >= limits[n])
        return false;
    for (; n > sizeof text; n--)
        *out++ = '0';
    memset(text, '0', 8);
    if (v >= 100000000)
        dec_put_eight(text, (uint32_t)(v / 100000000));
    dec_put_eight(text + 8, (uint32_t)(v % 100000000));
    memcpy(out, text + sizeof text - n, n);
    return true;
}

bool template_put_number(char *out, size_t n, uint64_t v, unsigned base)
{
    if (base == 10 && v < UINT64_C(10000000000000000)) /* which nearly all are */
        return put_decimal(out, n, v);
    const char *digits = template_alphabet(base);
    for (size_t i = n; i-- > 0; v /= base)
        out[i] = digits[v % base];
    return v == 0;
}

bool template_fits(const struct template_step *s, struct span text)
{
    if (text.n < s->least || text.n > s->most)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (!template_chars_has(&s->chars, text.p[i]))
            return false;
    return true;
}

/* ---- dates ------------------------------------------------------------------------------------
 */

size_t template_label_length(enum template_reset reset)
{
    static const unsigned char lengths[TEMPLATE_RESETS] = {
        [TEMPLATE_HOUR] = 13, [TEMPLATE_DAY] = 10, [TEMPLATE_MONTH] = 7, [TEMPLATE_YEAR] = 4};
    return lengths[reset];
}

unsigned template_digits_at(const char *p, size_t n)
{
    unsigned v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * 10 + (unsigned)(p[i] - '0');
    return v;
}

unsigned template_year_day(unsigned year, unsigned month, unsigned day)
{
    static const unsigned short before[] = {0,   31,  59,  90,  120, 151, 181,
                                            212, 243, 273, 304, 334, 365};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    assert(month >= 1 && month <= 13);
    return before[month - 1] + (leap && month > 2 ? 1u : 0u) + day;
}

static void put_year_day(char *out, const char *label)
{
    unsigned month = label[4] ? template_digits_at(label + 5, 2) : 1;
    unsigned day = label[4] && label[7] ? template_digits_at(label + 8, 2) : 1;
    (void)template_put_number(out, 3, template_year_day(template_digits_at(label, 4), month, day),
                              10);
}

void template_put_date(char *out, enum template_kind field, const char *label)
{
    /* YYYY-mm-ddTHH */
    if (field == TEMPLATE_YEARS)
        memcpy(out, label, 4);
    else if (field == TEMPLATE_MONTHS)
        memcpy(out, label + 5, 2);
    else if (field == TEMPLATE_DAYS)
        memcpy(out, label + 8, 2);
    else if (field == TEMPLATE_HOURS)
        memcpy(out, label + 11, 2);
    else
        put_year_day(out, label);
}

/* ---- of a whole one ---------------------------------------------------------------------------
 */

const char *template_kind_name(enum template_kind k)
{
    static const char *const names[TEMPLATE_KINDS] = {
        [TEMPLATE_LITERAL] = "text",  [TEMPLATE_YEARS] = "date",    [TEMPLATE_MONTHS] = "date",
        [TEMPLATE_DAYS] = "date",     [TEMPLATE_YEARDAYS] = "date", [TEMPLATE_HOURS] = "date",
        [TEMPLATE_SEQ] = "seq",       [TEMPLATE_ARG] = "arg",       [TEMPLATE_SUB] = "sub",
        [TEMPLATE_WORKER] = "worker", [TEMPLATE_MS] = "ms",         [TEMPLATE_RAND] = "rand",
        [TEMPLATE_CHECK] = "check",
    };
    return k < TEMPLATE_KINDS ? names[k] : "unknown";
}

bool template_is_reserved(struct span name)
{
    static const char *const names[] = {"date", "n", "block", "sub"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (span_eq(name, span_str(names[i])))
            return true;
    return false;
}

int64_t template_last_number(const struct template *t)
{
    return t->last_number;
}

size_t template_longest(const struct template *t, int64_t last)
{
    size_t n = 0;
    for (unsigned i = 0; i < t->n; i++) {
        const struct template_step *s = &t->step[i];
        bool counts = s->kind == TEMPLATE_SEQ && s->least < s->most;
        n += counts ? template_digits((uint64_t)last, s->base) : s->most;
    }
    return n;
}

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The literals that stand at fixed places, counted from the beginning, or backwards from the end;
 * 0 where there is none. */
static void fixed_places(const struct template *t, bool backwards, char out[TEMPLATE_OUT_MAX])
{
    size_t at = 0;
    memset(out, 0, TEMPLATE_OUT_MAX);
    for (unsigned k = 0; k < t->n; k++) {
        const struct template_step *s = &t->step[backwards ? t->n - 1 - k : k];
        for (size_t i = 0; s->kind == TEMPLATE_LITERAL && i < s->text_n; i++)
            out[at + i] = folded(t->text[s->text + (backwards ? s->text_n - 1 - i : i)]);
        if (s->least < s->most)
            return;
        at += s->most;
    }
}

static bool are_apart(const struct template *a, const struct template *b, bool backwards)
{
    char of_a[TEMPLATE_OUT_MAX], of_b[TEMPLATE_OUT_MAX];
    fixed_places(a, backwards, of_a);
    fixed_places(b, backwards, of_b);
    for (size_t i = 0; i < TEMPLATE_OUT_MAX; i++)
        if (of_a[i] && of_b[i] && of_a[i] != of_b[i])
            return true;
    return false;
}

bool template_apart(const struct template *a, const struct template *b)
{
    return are_apart(a, b, false) || are_apart(a, b, true);
}
