/*
 * Any bytes as a template, with a frame and values: refused with a reason, or taken; then what it
 * writes is read as the same, and a text that is read is written the same. What comes behind is
 * read as a text of it, too, and is none or is what it says.
 *
 *     a byte of the frame, four of the number, a line each: sub, arguments, template, another text
 */
#include "feed.h"

#include "ids/template.h"

enum {
    REFUSED,
    TAKEN,
    WRITTEN,
    UNWRITTEN,
    READ,
    MISTYPED,
    UNREAD,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected a template that is refused, found none",
        "expected a template that is taken, found none",
        "expected a text that is written, found none",
        "expected values that don't fit, found none",
        "expected another text that is read, found none",
        "expected a check digit that is wrong, found none",
        "expected a text of no such template, found none",
    };
    return feed_unreached(names, PLACES);
}

static void fill(struct rng *r, void *out, size_t n)
{
    (void)r;
    memset(out, 7, n);
}

static void check_said(const struct err *e)
{
    feed_must(e->code == ERR_INVALID || e->code == ERR_RANGE || e->code == ERR_CORRUPT ||
                  e->code == ERR_NOT_FOUND,
              "an error is of those that there are");
    feed_must(strstr(e->text, "expected") && strstr(e->text, "found"), "it says why");
}

static void check_taken(const struct template *t)
{
    size_t longest = template_longest(t, TEMPLATE_NUMBER_MAX);
    feed_must(t->n > 0 && t->n <= TEMPLATE_STEPS, "it has steps");
    feed_must(longest > 0 && longest <= TEMPLATE_OUT_MAX, "it writes no more than there is room");
    feed_must(template_last_number(t) >= 0, "it has a number");
    feed_must(!template_apart(t, t), "it is not apart from itself");
}

static void check_written(const struct template *t, const struct template_values *v)
{
    char out[TEMPLATE_OUT_MAX];
    struct template_reading r;
    struct err e = {.text = ""};
    size_t n = template_write(t, v, out, sizeof out, &e);
    if (n == 0) {
        check_said(&e);
        feed_reached(UNWRITTEN);
        return;
    }
    feed_must(n <= template_longest(t, v->number), "it is not longer than said");
    for (size_t i = 0; i < n; i++)
        feed_must(out[i] > ' ' && out[i] <= '~', "it is printable");
    feed_must(template_check(t, v, &e) == ERR_OK, "what is written was not refused before");
    feed_must(template_read(t, span_of(out, n), &r, &e) == ERR_OK, "what is written is read");
    feed_must(r.number == v->number, "as the number");
    feed_must(strcmp(r.period, v->period) == 0, "and the period");
    feed_must(!t->has_sub || span_eq(r.sub, v->sub), "and the sub");
    feed_reached(WRITTEN);
}

/* A text that is read is as long as all that was found in it, and each part lies in it. */
static void check_read(const struct template *t, struct span text)
{
    struct template_reading r;
    struct err e = {.text = ""};
    enum err_code code = template_read(t, text, &r, &e);
    if (code) {
        check_said(&e);
        feed_reached(code == ERR_CORRUPT ? MISTYPED : UNREAD);
        return;
    }
    feed_must(r.number >= 0 && r.number <= template_last_number(t), "its number fits");
    for (unsigned i = 0; i < r.n; i++)
        feed_must(r.part[i].text.p >= text.p &&
                      r.part[i].text.p + r.part[i].text.n <= text.p + text.n,
                  "its parts are in it");
    feed_reached(READ);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const labels[TEMPLATE_RESETS] = {"", "2024-12-31T23", "2024-02-29",
                                                        "2026-11", "1970"};
    struct feed f = {data, size};
    struct rng rng = {fill};
    struct template t;
    struct err e = {.text = ""};
    unsigned bits = feed_u8(&f);
    struct template_frame of = {.name = SPAN("orders"),
                                .reset = (enum template_reset)(bits % TEMPLATE_RESETS),
                                .subs = bits & 32,
                                .cycle = (bits & 192) == 192,
                                .first = 1,
                                .last = bits & 128 ? 99999 : TEMPLATE_NUMBER_MAX};
    struct template_values v = {.number = (int64_t)(feed_number(&f, 4)), .rng = &rng};
    struct span rest = span_of((const char *)f.p, f.n);
    v.worker = (int32_t)(bits & 64) - 1;
    v.now_ms = 1780000000123 + v.number;
    v.period = labels[of.reset];
    v.sub = span_cut(&rest, '\n');
    v.args = span_cut(&rest, '\n');
    if (template_parse(&t, span_cut(&rest, '\n'), &of, &e)) {
        check_said(&e);
        feed_reached(REFUSED);
        return 0;
    }
    feed_reached(TAKEN);
    check_taken(&t);
    check_written(&t, &v);
    check_read(&t, span_of(rest.p ? rest.p : "", rest.n));
    return 0;
}
