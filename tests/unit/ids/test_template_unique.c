/*
 * Random templates: one that is taken writes no text for two numbers, whatever period, sub and
 * arguments are, and reads each as what it was written for. Values are few and alike, so that what
 * can be confused is.
 */
#include "ids/template.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEMPLATES 60000
#define TEXTS     120 /* of each that is taken */

static struct seeded rng;

static unsigned below(unsigned n)
{
    return (unsigned)seeded_in(&rng, 0, n - 1);
}

static const char *one_of(const char *const *list, unsigned n)
{
    return list[below(n)];
}
#define ONE_OF(list) one_of(list, sizeof(list) / sizeof *(list))

/* ---- templates --------------------------------------------------------------------------------
 */

static const char *const parts[] = {
    "@{seq}",
    "@{seq}",
    "@{seq,width=3}",
    "@{seq,base=16}",
    "@{seq,width=2,base=62}",
    "@{seq,base=58}",
    "@{sub}",
    "@{sub,width=1..2}",
    "@{sub,width=2,chars=0-9}",
    "@{sub,chars=0-9-}",
    "@{arg,a,width=1..2}",
    "@{arg,b,width=2,chars=01}",
    "@{arg,a,width=1..3,chars=a-c,default=a}",
    "@{arg,b,width=1..3,chars=01-}",
    "@{name}",
    "@{worker}",
    "@{worker,width=3,base=36}",
    "@{rand,width=1,chars=01}",
    "@{check,luhn}",
    "@{check,mod37-2}",
    "@{check,mod97-10,of=seq}",
    "@{check,linear,9,31,10,of=seq}",
    "@{date,%Y}",
    "@{date,%m}",
    "@{date,%d}",
    "@{date,%Y%m%d}",
    "@{date,%Y%j}",
    "@{date,%H}",
    "@{date,%Y-%m}",
    "@{date,%Y%m%d%H}",
};
static const char *const literals[] = {"-", "1", "0", "a", "-1", "1-", "/", "01", "Q", "--"};

static struct span make_template(char out[TEMPLATE_TEXT_MAX + 64])
{
    out[0] = '\0';
    for (unsigned n = 1 + below(6); n > 0; n--) {
        strcat(out, ONE_OF(parts));
        if (below(3))
            strcat(out, ONE_OF(literals));
    }
    return span_str(out);
}

static const char *const labels[TEMPLATE_RESETS][4] = {
    [TEMPLATE_NEVER] = {"", "", "", ""},
    [TEMPLATE_HOUR] = {"2001-01-11T01", "2001-01-11T10", "2001-11-01T01", "2010-01-11T01"},
    [TEMPLATE_DAY] = {"2001-01-11", "2001-11-01", "2001-01-01", "2010-01-11"},
    [TEMPLATE_MONTH] = {"2001-01", "2001-11", "2010-01", "2001-10"},
    [TEMPLATE_YEAR] = {"2001", "2010", "2011", "2101"},
};
static const char *const subs[] = {"1", "01", "11", "1-", "a", "a1", "1a", "Q", "10"};
static const char *const args[] = {"",         "a=1",      "a=a&b=01",  "a=11&b=11", "a=1a&b=1",
                                   "b=1-&a=a", "b=00&a=b", "a=c&b=1-1", "a=01&b=10"};

/* ---- what each text was written for -----------------------------------------------------------
 */

struct written {
    char text[TEMPLATE_OUT_MAX + 1];
    int64_t number;
    const char *period, *sub; /* sub "": the template has none */
};

static struct written table[TEXTS];

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct written *)a)->text, ((const struct written *)b)->text);
}

static int64_t some_number(const struct template *t)
{
    int64_t last = template_last_number(t), v = below(2) ? below(12) : below(1300);
    return v < last ? v : last;
}

static void check_read(const struct template *t, const struct written *w, const char *template)
{
    struct template_reading r;
    struct err e = {.text = ""};
    if (template_read(t, span_str(w->text), &r, &e))
        fail_msg("%s wrote %s, and does not read it: %s", template, w->text, e.text);
    if (r.number != w->number || strcmp(r.period, w->period) != 0 ||
        !span_eq(r.sub, span_str(w->sub)))
        fail_msg("%s wrote %s for %lld in \"%s\" of \"%s\", and reads %lld in \"%s\"", template,
                 w->text, (long long)w->number, w->period, w->sub, (long long)r.number, r.period);
}

/* Up to TEXTS of them; fewer where values don't fit. */
static unsigned write_some(const struct template *t, enum template_reset reset,
                           const char *template)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TEXTS; i++) {
        struct template_values v = {.number = some_number(t),
                                    .period = labels[reset][below(4)],
                                    .worker = (int32_t)below(3),
                                    .rng = &rng.rng};
        const char *sub = ONE_OF(subs);
        struct written *w = &table[n];
        v.sub = span_str(sub);
        v.args = span_str(t->takes_args ? ONE_OF(args) : "");
        size_t length = template_write(t, &v, w->text, TEMPLATE_OUT_MAX, NULL);
        if (!length)
            continue;
        assert_true(length <= template_longest(t, v.number));
        w->text[length] = '\0';
        w->number = v.number, w->period = v.period, w->sub = t->has_sub ? sub : "";
        check_read(t, w, template);
        n++;
    }
    return n;
}

static void check_once(unsigned n, const char *template)
{
    qsort(table, n, sizeof *table, by_text);
    for (unsigned i = 1; i < n; i++) {
        const struct written *a = &table[i - 1], *b = &table[i];
        if (by_text(a, b) == 0 && (a->number != b->number || strcmp(a->period, b->period) != 0 ||
                                   strcmp(a->sub, b->sub) != 0))
            fail_msg("%s writes %s for %lld in \"%s\" of \"%s\" and %lld in \"%s\" of \"%s\"",
                     template, a->text, (long long)a->number, a->period, a->sub,
                     (long long)b->number, b->period, b->sub);
    }
}

static void no_template_that_is_taken_writes_a_text_twice(void **state)
{
    (void)state;
    char text[TEMPLATE_TEXT_MAX + 64];
    unsigned taken = 0, texts = 0;
    rng = seeded_of(18);
    for (unsigned i = 0; i < TEMPLATES; i++) {
        struct template t;
        struct err e = {.text = ""};
        struct span s = make_template(text);
        struct template_frame f = {.name = SPAN("n1"),
                                   .reset = (enum template_reset)below(5),
                                   .subs = below(2),
                                   .first = 1,
                                   .last = TEMPLATE_NUMBER_MAX};
        enum err_code code = template_parse(&t, s, &f, &e);
        if (code) {
            assert_non_null(strstr(e.text, "expected"));
            assert_non_null(strstr(e.text, "found"));
            continue;
        }
        unsigned n = write_some(&t, f.reset, text);
        check_once(n, text);
        taken++, texts += n;
    }
    assert_in_range(taken, TEMPLATES / 25, TEMPLATES);
    assert_in_range(texts, taken * 30, taken * TEXTS);
    print_message("%u templates taken of %u, %u texts\n", taken, TEMPLATES, texts);
}

/* ---- two templates over one counter -----------------------------------------------------------
 */

static bool take_any(struct template *t, enum template_reset reset, char *text)
{
    struct template_frame f = {
        .name = SPAN("n1"), .reset = reset, .subs = true, .first = 1, .last = TEMPLATE_NUMBER_MAX};
    return template_parse(t, make_template(text), &f, NULL) == ERR_OK;
}

static void templates_that_are_apart_write_no_text_both(void **state)
{
    (void)state;
    static struct written first[TEXTS];
    char text[2][TEMPLATE_TEXT_MAX + 64];
    unsigned apart = 0;
    rng = seeded_of(19);
    for (unsigned i = 0; i < TEMPLATES; i++) {
        struct template one, two;
        enum template_reset reset = (enum template_reset)below(2);
        if (!take_any(&one, reset, text[0]))
            continue;
        while (!take_any(&two, reset, text[1]))
            ;
        if (!template_apart(&one, &two))
            continue;
        unsigned n = write_some(&one, reset, text[0]);
        memcpy(first, table, sizeof first);
        unsigned m = write_some(&two, reset, text[1]);
        for (unsigned k = 0; k < n * m; k++)
            if (strcmp(first[k / m].text, table[k % m].text) == 0)
                fail_msg("%s and %s both write %s", text[0], text[1], first[k / m].text);
        apart++;
    }
    assert_in_range(apart, 500, TEMPLATES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_that_are_apart_write_no_text_both),
        cmocka_unit_test(no_template_that_is_taken_writes_a_text_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
