#include "ids/sequence_generator.h"

#include "base/int64.h"
#include "ids/sequence_causes.h"
#include "ids/sequence_places.h"
#include "ids/sequence_table.h"

static struct sequence_generator *of(struct generator *g)
{
    return (struct sequence_generator *)g;
}

static const struct sequence_generator *at(const struct generator *g)
{
    return (const struct sequence_generator *)g;
}

/* Of one that has periods, whatever is told is of the present one. */
static const struct sequence_generator *told(const struct generator *g)
{
    const struct sequence_generator *s = at(g);
    return s->present ? &s->table->place[s->present - 1] : s;
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Before the pool is known nobody is asked: that it was is not said. */
static void say_waits(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "no number is in hand: none has come from the coordinator yet");
}

static void say_spent(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "too few numbers are in hand: more have not come from the coordinator yet");
}

static void say_full(const struct generator *g, struct buf *b)
{
    const struct sequence_table *t = at(g)->table;
    uint32_t unknown = sequence_places_unknown_max(t);
    if (t->nunknown >= unknown)
        buf_printf(b, "all %u places for what is not known here yet are being asked about",
                   unknown);
    else
        buf_printf(b, "all %u places of sequences.counters are in use, or being asked about",
                   t->options.counters);
}

static void say_untimed(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "the coordinator's time, which decides the period, is not known yet");
}

static void say_unmade(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "no memory for sequences");
}

static void say_name(const struct generator *g, struct buf *b)
{
    const struct sequence_table *t = at(g)->table;
    buf_printf(b,
               "expected %sNAME or %sNAME:SUB, NAME of 1 to %d letters, digits, '_', '.' and '-', "
               "SUB of 1 to %d printable bytes; found ",
               t->options.prefix, t->options.prefix, SEQUENCE_NAME_MAX - 1, SEQUENCE_SUB_MAX - 1);
    if (t->found[0])
        buf_printf(b, "\"%s\"", t->found);
    else
        buf_printf(b, "none, or more than %d bytes, or another byte", NAMES_LENGTH_MAX);
}

static void say_date(const struct generator *g, struct buf *b)
{
    buf_printf(b, "expected the date of a period, such as 2026-11-22; found \"%s\"",
               at(g)->table->found);
}

static void say_later(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "no more numbers may be granted yet: the sequence is at its max rate, or it or "
                   "its period has not begun");
}

static void say_closed(const struct generator *g, struct buf *b)
{
    buf_printf(b, "the period %s is over", told(g)->of.period);
}

static void say_used_up(const struct generator *g, struct buf *b)
{
    const struct sequence *q = &told(g)->numbers;
    int64_t row = max64(q->refused.count - 1, sequence_left(q));
    if (row > 0)
        buf_printf(b, "used up: up to its max there are at most %lld in a row", (long long)row);
    else if (told(g)->has_limit)
        buf_printf(b, "used up: max %lld was reached", (long long)told(g)->limit);
    else
        BUF_PUT_LIT(b, "used up: its max was reached");
}

static void say_stopped(const struct generator *g, struct buf *b)
{
    BUF_PUT_LIT(b, "stopped, since the coordinator may have forgotten numbers: sidflakectl pool "
                   "reopen --nothing-lost, or seq reopen");
    buf_put_operand(b, at(g)->of.name, " --above N");
    BUF_PUT_LIT(b, ", lets it go on");
}

static void say_forgotten(const struct generator *g, struct buf *b)
{
    BUF_PUT_LIT(
        b, "stopped, since the coordinator may have forgotten numbers: sidflakectl seq reopen");
    buf_put_operand(b, at(g)->of.name, " --above N");
    BUF_PUT_LIT(b, " lets it go on");
}

/* What can't be a name is none, where it is only looked at. */
static void say_unknown(const struct generator *g, struct buf *b)
{
    if (!at(g)->of.name[0]) {
        say_name(g, b);
        return;
    }
    bool forgets = at(g)->table->options.forgets;
    BUF_PUT_LIT(b, "no such sequence: sidflakectl seq create");
    buf_put_operand(b, at(g)->of.name, forgets ? " --max-rate R" : "");
    buf_put_str(b, forgets ? ", or --on-loss in place of --max-rate, makes it" : " makes it");
}

static void say_dropped(const struct generator *g, struct buf *b)
{
    buf_printf(b, "the sequence %s was dropped", at(g)->of.name);
}

static void say_differs(const struct generator *g, struct buf *b)
{
    buf_printf(b,
               "the sequence %s of the pool is another than sequences.define says: the log has "
               "both",
               at(g)->of.name);
}

static void say_no_subs(const struct generator *g, struct buf *b)
{
    buf_printf(b, at(g)->of.sub[0] ? "the sequence %s has no subs" : "the sequence %s has none",
               at(g)->of.name);
}

static void say_too_many_subs(const struct generator *g, struct buf *b)
{
    buf_printf(b, "the sequence %s has as many subs as it may have", at(g)->of.name);
}

static void say_no_period(const struct generator *g, struct buf *b)
{
    buf_printf(b, "the sequence %s has no period \"%s\"", told(g)->of.name, told(g)->of.period);
}

static void say_unreadable(const struct generator *g, struct buf *b)
{
    buf_printf(b, "what the coordinator keeps of the sequence %s cannot be read", at(g)->of.name);
}

/* There may be some, and fewer than were asked for in a row. */
static void say_in_hand(const struct generator *g, struct buf *b)
{
    bool any = sequence_left(&told(g)->numbers) > 0;
    buf_put_str(b, any ? "too few numbers are in hand" : "no number is in hand");
}

/* Down, without a pool, or refusing: the log tells which. */
static void say_away(const struct generator *g, struct buf *b)
{
    say_in_hand(g, b);
    BUF_PUT_LIT(b, ", and the coordinator grants none: see the log");
}

static void say_shut(const struct generator *g, struct buf *b)
{
    say_in_hand(g, b);
    BUF_PUT_LIT(b, ", and the pool is closed");
}

static void say_back(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "the coordinator offers numbers that were given out here before");
}

static void say_other(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "the coordinator refuses: see the log");
}

#define ROW(cause, what, may_wait, is_end, text)                                                   \
    [cause] = {.status = what, .waits = may_wait, .ends = is_end, .say = text},

static const struct generator_cause causes[] = {SEQUENCE_CAUSE_ROWS(ROW)};

/* ---- issuing --------------------------------------------------------------------------------- */

static int64_t wall_of(const struct generator_ask *ask, int64_t mono)
{
    return mono == INT64_MAX ? mono : ask->now_ms + max64(mono - ask->mono_ms, 0);
}

/* Who is told to wait is counted once. */
unsigned sequence_generator_refuse(struct sequence_generator *s, struct generator_ask *ask,
                                   unsigned cause, int64_t until_mono)
{
    ask->until_ms = wall_of(ask, until_mono);
    if (!causes[cause].waits)
        s->refused++;
    else if (*ask->ticket == 0)
        s->parked++;
    if (*ask->ticket == 0)
        *ask->ticket = -1;
    return cause;
}

static enum sequence_status strict(struct sequence_generator *s, struct generator_ask *ask,
                                   bool some, int64_t *index, int64_t *n)
{
    if (*ask->ticket <= s->ticket_base) {
        if (!some && !sequence_may_arrive(&s->numbers, ask->mono_ms, ask->n))
            return SEQUENCE_REFUSED;
        s->parked += *ask->ticket == 0;
        *ask->ticket = sequence_arrive(&s->numbers, ask->n);
    }
    return some ? sequence_strict_some(&s->numbers, ask->mono_ms, ask->ticket, ask->n, index, n)
                : sequence_strict(&s->numbers, ask->mono_ms, ask->ticket, ask->n, index);
}

/* What is told of one who waits: while it is asked again whether a refusal still holds, it does. */
static unsigned waits_for(const struct sequence *q, int64_t n)
{
    unsigned heard = sequence_refuses(q, n) ? q->refused.cause : SEQUENCE_GIVEN;
    if (heard && causes[heard].waits)
        return heard;
    return sequence_given(q) + sequence_left(q) > 0 ? SEQUENCE_SPENT : SEQUENCE_WAITS;
}

unsigned sequence_generator_give(struct sequence_generator *s, struct generator_ask *ask, bool some,
                                 struct generator_run *out)
{
    struct sequence *q = &s->numbers;
    int64_t index = 0, n = ask->n;
    enum sequence_status r = q->strict ? strict(s, ask, some, &index, &n)
                             : some    ? sequence_some(q, ask->mono_ms, ask->n, &index, &n)
                                       : sequence_next(q, ask->mono_ms, n, &index);
    sequence_table_note(s);
    if (r == SEQUENCE_EMPTY)
        return sequence_generator_refuse(s, ask, waits_for(q, ask->n), INT64_MAX);
    if (r == SEQUENCE_REFUSED)
        return sequence_generator_refuse(s, ask, q->refused.cause, q->refused.until_ms);
    *out = (struct generator_run){sequence_number(q, index), q->increment, (uint32_t)n};
    return SEQUENCE_GIVEN;
}

static unsigned issue(struct generator *g, struct generator_ask *ask, bool some,
                      struct generator_run *out)
{
    struct sequence_generator *s = of(g);
    int64_t until_mono;
    enum sequence_cause cause = sequence_table_place(&s, ask->mono_ms, &until_mono);
    return cause ? sequence_generator_refuse(s, ask, cause, until_mono)
                 : sequence_generator_give(s, ask, some, out);
}

static unsigned next(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    return issue(g, ask, false, out);
}

static unsigned some(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    return issue(g, ask, true, out);
}

/* The ticket, which this call has given, is the latest. */
static bool expect(struct generator *g, const struct generator_ask *ask, uint32_t n)
{
    struct sequence_generator *s = of(g);
    if (s->present)
        s = &s->table->place[s->present - 1];
    return s->numbers.strict && sequence_expect(&s->numbers, n, ask->n);
}

/* What is not known yet is asked for as if a number were wanted: there is none in hand that could
 * be given out by that. */
static unsigned look(struct generator *g, struct generator_ask *ask)
{
    struct sequence_generator *s = of(g);
    struct generator_run ignored;
    int64_t until_mono;
    enum sequence_cause cause = sequence_table_place(&s, ask->mono_ms, &until_mono);
    if (cause == SEQUENCE_NAME)
        return SEQUENCE_UNKNOWN;
    if (cause && !s->known)
        return sequence_generator_refuse(s, ask, cause, until_mono);
    return s->known ? SEQUENCE_GIVEN : sequence_generator_give(s, ask, false, &ignored);
}

static uint32_t run(const struct generator *g, uint32_t batch)
{
    (void)g;
    (void)batch;
    return SEQUENCE_ROW_MAX;
}

static unsigned peek(struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    const struct sequence *q = &told(g)->numbers;
    return q->nblocks == 0 && sequence_refuses(q, 1) ? q->refused.cause : SEQUENCE_GIVEN;
}

static int64_t example(const struct generator *g, int64_t now_ms)
{
    const struct sequence *q = &told(g)->numbers;
    (void)now_ms;
    return sequence_number(q, q->nblocks > 0 ? q->block[0].next : 0);
}

static void count(const struct generator *g, struct generator_counts *out)
{
    *out = (struct generator_counts){.counted = (uint64_t)sequence_given(&told(g)->numbers)};
}

/* ---- what is shown of one -------------------------------------------------------------------- */

static int64_t given(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return sequence_given(&told(g)->numbers);
}

static int64_t left(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return sequence_left(&told(g)->numbers);
}

static int64_t following(const struct generator *g, int64_t now_ms)
{
    const struct sequence *q = &told(g)->numbers;
    (void)now_ms;
    return q->nblocks > 0 ? sequence_number(q, q->block[0].next) : GENERATOR_UNKNOWN;
}

static int64_t last(const struct generator *g, int64_t now_ms)
{
    const struct sequence *q = &told(g)->numbers;
    int64_t index = sequence_last(q);
    (void)now_ms;
    return index >= 0 ? sequence_number(q, index) : GENERATOR_UNKNOWN;
}

static int64_t size(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return told(g)->numbers.size > 0 ? told(g)->numbers.size : GENERATOR_UNKNOWN;
}

int64_t sequence_until_width(const struct sequence_generator *s)
{
    const struct sequence *q = &s->numbers;
    int64_t last = s->template ? template_last_number(s->template) : TEMPLATE_NUMBER_MAX;
    if (last >= TEMPLATE_NUMBER_MAX || q->increment <= 0)
        return SEQUENCE_TOP;
    int64_t fit = last >= q->start ? (last - q->start) / q->increment + 1 : 0;
    return max64(fit - (sequence_left(q) > 0 ? q->block[0].next : s->top), 0);
}

static const struct generator_figure figures[] = {
    {.member = "given", .value = given},     {.member = "left", .value = left},
    {.member = "next", .value = following},  {.member = "last", .value = last},
    {.member = "block_size", .value = size},
};

#define KIND                                                                                       \
    .name = "seq", .causes = causes, .by_mono = true, .counts = true, .next = next, .some = some,  \
    .look = look, .expect = expect, .run = run, .peek = peek, .example = example, .count = count,  \
    .figures = figures, .ncauses = sizeof causes / sizeof *causes,                                 \
    .nfigures = sizeof figures / sizeof *figures

/* One more of the present period's block. Of a sequence without periods that is inline:
 * sequence_generator_more. */
static bool more(struct generator *g, int64_t now_ms, int64_t mono_ms, int64_t *number)
{
    struct sequence_generator *s = (struct sequence_generator *)g;
    int64_t until_mono;
    (void)now_ms;
    return !sequence_table_place(&s, mono_ms, &until_mono) &&
           sequence_generator_more(&s->base, number);
}

const struct generator_kind sequence_kind = {KIND};
const struct generator_kind sequence_period_kind = {KIND, .more = more};
