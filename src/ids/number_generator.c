#include "ids/number_generator.h"

#include "base/dec.h"
#include "base/int64.h"
#include "ids/sequence_causes.h"
#include "ids/sequence_places.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(TEMPLATE_OUT_MAX <= GENERATOR_TEXT_MAX, "a text has room");
static_assert(SEQUENCE_LABEL_MAX == TEMPLATE_PERIOD_MAX, "both have labels of periods");

static struct number_generator *of(struct generator *g)
{
    return (struct number_generator *)g;
}

static const struct number_generator *at(const struct generator *g)
{
    return (const struct number_generator *)g;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static void begin(struct number_generator *n, struct number_table *t, struct sequence_generator *s)
{
    n->base.kind = &number_kind;
    n->entry.generator = &n->base;
    n->table = t;
    n->of = n->from = s;
}

void number_table_init(struct number_table *t, struct sequence_table *sequences,
                       const struct generator *ids, struct rng *rng, const char *prefix)
{
    *t = (struct number_table){.base.kind = &number_table_kind,
                               .sequences = sequences,
                               .ids = ids,
                               .rng = rng,
                               .prefix = prefix};
}

void number_table_clear(struct number_table *t)
{
    free(t->place);
    t->place = NULL;
}

/* The value of "name=value" in "a=b&name=value"; empty: there is none. */
static struct span query_get(struct span query, struct span name)
{
    while (query.p) {
        struct span value = span_cut(&query, '&'), key = span_cut(&value, '=');
        if (value.p && span_eq(key, name))
            return value;
    }
    return span_of("", 0);
}

/* Beside its place; what is not used takes no memory. */
static struct number_generator *beside(struct number_table *t, struct sequence_generator *s)
{
    const struct sequence_table *q = t->sequences;
    if (s == &q->fresh)
        return &t->fresh;
    if (!t->place)
        t->place = calloc(q->options.counters, sizeof *t->place);
    return t->place ? &t->place[sequence_place_of(s)] : &t->fresh;
}

static struct names_entry *entry(struct generator *g, struct span name, struct span part)
{
    struct number_table *t = (struct number_table *)g;
    struct span args = name;
    name = span_cut(&args, '?');
    if (!args.p || args.n >= sizeof t->args)
        args = span_of("", 0);
    memcpy(t->args, args.p, args.n);
    t->args[args.n] = '\0';
    struct span date = part.n > 0 ? part : query_get(args, SPAN("date"));
    struct generator *found = sequence_table_entry(&t->sequences->base, name, date)->generator;
    struct sequence_generator *s = (struct sequence_generator *)found;
    struct number_generator *n = beside(t, s);
    begin(n, t, s);
    return &n->entry;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

static int32_t worker_of(const struct number_generator *n)
{
    const struct number_table *t = n->table;
    struct generator_worker w;
    bool any = n->from->template->has_worker && t->ids && t->ids->kind->worker &&
               t->ids->kind->worker(t->ids, 0, &w) && w.active;
    return any ? (int32_t)w.worker : -1;
}

static struct template_values values(const struct number_generator *n, int64_t number,
                                     int64_t now_ms)
{
    const struct number_table *t = n->table;
    return (struct template_values){.number = number,
                                    .period = n->from->of.period,
                                    .sub = span_str(n->from->of.sub),
                                    .worker = worker_of(n),
                                    .now_ms = now_ms,
                                    .rng = t->rng,
                                    .args = span_str(t->args)};
}

/* Not inline, as `agrees` below: a struct err is cleared where it is declared, and nearly all
 * numbers need none. */
__attribute__((noinline)) static size_t write_whole(struct number_generator *n, int64_t number,
                                                    int64_t now_ms, char *out)
{
    const struct template *t = n->from->template;
    const struct template_values v = values(n, number, now_ms);
    struct err e;
    size_t size = template_write(t, &v, out, GENERATOR_TEXT_MAX, &e);
    if (size > 0)
        template_stencil_make(&n->stencil, t, &v, span_of(out, size));
    return size;
}

/* Whoever asks how long one is may ask before it is known. */
static size_t write(const struct generator *g, int64_t number, int64_t now_ms,
                    char out[GENERATOR_TEXT_MAX])
{
    struct number_generator *n = of((struct generator *)g); /* it remembers */
    const struct template *t = n->from->template;
    const char *period = n->from->of.period;
    if (!t)
        return dec_put_i64(out, number);
    size_t size = template_stencil_put(&n->stencil, t, period, number, out);
    return size > 0 ? size : write_whole(n, number, now_ms, out);
}

/* ---- refusals ---------------------------------------------------------------------------------
 */

/* What can't be a name or a sub. */
static void say_name(const struct generator *g, struct buf *b)
{
    const char *prefix = at(g)->table->prefix, *found = at(g)->table->sequences->found;
    buf_printf(b,
               "expected %sNAME or %sNAME:SUB, and ?ARGUMENT=VALUE behind it; NAME of 1 to %d "
               "letters, digits, '_', '.' and '-', SUB of 1 to %d printable bytes; found ",
               prefix, prefix, SEQUENCE_NAME_MAX - 1, SEQUENCE_SUB_MAX - 1);
    if (found[0])
        buf_printf(b, "\"%s\"", found);
    else
        buf_printf(b, "none, or more than %d bytes, or another byte", NAMES_LENGTH_MAX);
}

static void say_sequence(const struct generator *g, struct buf *b)
{
    const struct number_generator *n = at(g);
    if (n->cause == SEQUENCE_NAME)
        say_name(g, b);
    else
        sequence_kind.causes[n->cause].say(&n->from->base, b);
}

static void say_unformed(const struct generator *g, struct buf *b)
{
    buf_printf(b, "whether the sequence %s has a template is not known yet", at(g)->from->of.name);
}

static void say_plain(const struct generator *g, struct buf *b)
{
    const char *name = at(g)->from->of.name;
    buf_printf(b, "the sequence %s has no template: sidflakectl seq alter", name);
    buf_put_operand(b, name, " --template TEXT");
}

static void say_wrong(const struct generator *g, struct buf *b)
{
    buf_put_str(b, at(g)->table->why);
}

static void say_homeless(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "the template has a workerId in it, and none is held");
}

static void say_wide(const struct generator *g, struct buf *b)
{
    const char *name = at(g)->from->of.name;
    buf_printf(b,
               "used up: the template of the sequence %s takes numbers up to %lld: sidflakectl "
               "seq alter",
               name, (long long)template_last_number(at(g)->from->template));
    buf_put_operand(b, name, " --template TEXT");
}

#define ROW(cause, what, may_wait, is_end, text)                                                   \
    [cause] = {.status = what, .waits = may_wait, .ends = is_end, .say = say_sequence},

static const struct generator_cause causes[NUMBER_CAUSES] = {
    SEQUENCE_CAUSE_ROWS(ROW)[NUMBER_UNFORMED] = {ISSUE_LOADING, .waits = true, .say = say_unformed},
    [NUMBER_PLAIN] = {ISSUE_WRONG, .say = say_plain},
    [NUMBER_WRONG] = {ISSUE_WRONG, .say = say_wrong},
    [NUMBER_HOMELESS] = {ISSUE_LOADING, .waits = true, .say = say_homeless},
    [NUMBER_WIDE] = {ISSUE_NEVER, .ends = true, .say = say_wide},
};

static unsigned refuse(struct number_generator *n, struct generator_ask *ask, unsigned cause,
                       int64_t until_mono)
{
    n->cause = cause;
    if (cause < NUMBER_UNFORMED)
        return sequence_generator_refuse(n->from, ask, cause, until_mono);
    ask->until_ms = INT64_MAX;
    bool waits = cause == NUMBER_UNFORMED || cause == NUMBER_HOMELESS;
    n->from->refused += !waits;
    n->from->parked += waits && *ask->ticket == 0;
    if (*ask->ticket == 0)
        *ask->ticket = -1;
    return cause;
}

/* ---- issuing ----------------------------------------------------------------------------------
 */

/* The number that would be next; 0: not known. */
static int64_t following(const struct sequence *q)
{
    for (unsigned i = 0; i < q->nblocks; i++)
        if (q->block[i].next <= q->block[i].hi)
            return sequence_number(q, q->block[i].next);
    return 0;
}

/* How many of the next n fit the template; at least 1 where that is not known. */
static uint32_t that_fit(const struct sequence_generator *s, uint32_t n)
{
    int64_t last = template_last_number(s->template), next = following(&s->numbers);
    int64_t step = s->numbers.increment;
    if (next > last)
        return 0;
    return step > 0 && next > 0 ? (uint32_t)min64((last - next) / step + 1, n) : n;
}

static unsigned misfit(struct number_generator *n, struct generator_ask *ask)
{
    struct sequence_generator *s = n->from;
    struct err e;
    if (!s->formed) {
        s->to_look = true;
        sequence_places_queue(s);
        return NUMBER_UNFORMED;
    }
    if (!s->template)
        return NUMBER_PLAIN;
    const struct template_values v = values(n, 0, ask->now_ms);
    enum err_code code = template_check(s->template, &v, &e);
    if (code == ERR_NOT_FOUND)
        return NUMBER_HOMELESS;
    if (code) {
        memcpy(n->table->why, e.text, sizeof n->table->why);
        return NUMBER_WRONG;
    }
    uint32_t fit = that_fit(s, ask->n);
    if (fit == 0) {
        sequence_places_look_again(s, ask->mono_ms); /* numbers in hand are never used up then */
        return NUMBER_WIDE;
    }
    ask->n = fit;
    return 0;
}

/* What a strict sequence gives is known once it is given. */
static bool are_wide(const struct sequence_generator *s, const struct generator_run *r)
{
    int64_t last = template_last_number(s->template);
    return r->first > last || generator_run_at(r, r->n - 1) > last;
}

static unsigned issue(struct generator *g, struct generator_ask *ask, bool some,
                      struct generator_run *out)
{
    struct number_generator *n = of(g);
    int64_t until_mono;
    n->from = n->of;
    unsigned cause = sequence_table_place(&n->from, ask->mono_ms, &until_mono);
    if (cause)
        return refuse(n, ask, cause, until_mono);
    cause = n->from->known ? misfit(n, ask) : 0;
    if (cause)
        return refuse(n, ask, cause, INT64_MAX);
    n->cause = sequence_generator_give(n->from, ask, some, out);
    if (!n->cause && !n->from->template)
        return refuse(n, ask, NUMBER_UNFORMED, INT64_MAX);
    if (!n->cause && are_wide(n->from, out))
        return refuse(n, ask, NUMBER_WIDE, INT64_MAX);
    return n->cause;
}

static unsigned next(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    return issue(g, ask, false, out);
}

static unsigned some(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    return issue(g, ask, true, out);
}

__attribute__((noinline)) static bool agrees(const struct number_generator *n, int64_t now_ms)
{
    const struct template_values v = values(n, 0, now_ms);
    struct err e;
    return !template_check(n->from->template, &v, &e);
}

/* What the caller and the others say is looked at where the template asks for it. */
static bool fits(const struct number_generator *n, int64_t now_ms)
{
    const struct template *t = n->from->template;
    return (!t->takes_args && !t->has_sub && !t->has_worker) || agrees(n, now_ms);
}

/* Whoever is known again by the name alone has no arguments. All that have no place share one
 * generator, and so have no name by which they could be. */
static bool more(struct generator *g, int64_t now_ms, int64_t mono_ms, int64_t *number)
{
    struct number_generator *n = of(g);
    struct sequence_generator *s = n->of;
    int64_t until_mono, index;
    if (n == &n->table->fresh || sequence_table_place(&s, mono_ms, &until_mono) || !s->template)
        return false;
    n->from = s;
    n->table->args[0] = '\0';
    const struct sequence *q = &s->numbers;
    if (!fits(n, now_ms) ||
        sequence_number(q, q->block[0].next) > template_last_number(s->template) ||
        !sequence_more(&s->numbers, 1, &index))
        return false;
    *number = sequence_number(q, index);
    return true;
}

static bool expect(struct generator *g, const struct generator_ask *ask, uint32_t n)
{
    return sequence_kind.expect(&of(g)->of->base, ask, n);
}

/* What is told behind it is of the present period. */
static unsigned look(struct generator *g, struct generator_ask *ask)
{
    struct number_generator *n = of(g);
    struct sequence_generator *s = n->of;
    n->cause = sequence_kind.look(&s->base, ask);
    n->from = s->present ? &s->table->place[s->present - 1] : s;
    return n->cause;
}

/* Numbers in a row are of no use, where each has a text of its own. */
static uint32_t run(const struct generator *g, uint32_t batch)
{
    (void)g;
    (void)batch;
    return 1;
}

static unsigned peek(struct generator *g, int64_t now_ms)
{
    return sequence_kind.peek(&at(g)->of->base, now_ms);
}

static int64_t example(const struct generator *g, int64_t now_ms)
{
    return sequence_kind.example(&at(g)->of->base, now_ms);
}

/* They are counted as the sequence's. */
static void count(const struct generator *g, struct generator_counts *out)
{
    (void)g;
    *out = (struct generator_counts){0};
}

/* ---- what is shown ----------------------------------------------------------------------------
 */

static int64_t left(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return sequence_left(&at(g)->from->numbers);
}

static int64_t until_width(const struct generator *g, int64_t now_ms)
{
    int64_t n = sequence_until_width(at(g)->from);
    (void)now_ms;
    return n < SEQUENCE_TOP ? n : GENERATOR_UNKNOWN;
}

static const struct generator_figure figures[] = {
    {.member = "left", .value = left},
    {.member = "until_width", .value = until_width},
};

const struct generator_kind number_kind = {
    .name = "no",
    .causes = causes,
    .by_mono = true,
    .counts = true,
    .next = next,
    .some = some,
    .more = more,
    .expect = expect,
    .look = look,
    .run = run,
    .peek = peek,
    .example = example,
    .count = count,
    .write = write,
    .figures = figures,
    .ncauses = NUMBER_CAUSES,
    .nfigures = sizeof figures / sizeof *figures,
};

const struct generator_kind number_table_kind = {
    .name = "no",
    .causes = generator_no_causes,
    .peek = generator_peek_none,
    .count = count,
    .write = write,
    .entry = entry,
    .read = number_table_read,
    .ncauses = 1,
};
