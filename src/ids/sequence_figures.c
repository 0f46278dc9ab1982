/* What is shown of sequences: of each by its name, and what all of them have in common. */
#include "ids/sequence_places.h"

static const struct sequence_table *table(const struct generator *g)
{
    return (const struct sequence_table *)g;
}

static const struct sequence_family *family(const struct generator *g)
{
    return (const struct sequence_family *)g;
}

/* ---- what a generator that gives out nothing has to have ------------------------------------- */

static void count_none(const struct generator *g, struct generator_counts *out)
{
    (void)g;
    *out = (struct generator_counts){0};
}

/* ---- a sequence ------------------------------------------------------------------------------ */

static const struct sequence_generator *member(const struct link *l)
{
    return (const struct sequence_generator *)(const void *)((const char *)l -
                                                             offsetof(struct sequence_generator,
                                                                      sibling));
}

#define EACH(l, f)                                                                                 \
    const struct link *l = (f)->members.next;                                                      \
    l != &(f)->members;                                                                            \
    l = l->next

static int64_t given(const struct generator *g, int64_t now_ms)
{
    int64_t sum = (int64_t)family(g)->given;
    (void)now_ms;
    for (EACH(l, family(g)))
        sum += sequence_given(&member(l)->numbers);
    return sum;
}

static int64_t left(const struct generator *g, int64_t now_ms)
{
    int64_t sum = 0;
    (void)now_ms;
    for (EACH(l, family(g)))
        sum += sequence_left(&member(l)->numbers);
    return sum;
}

/* Of the counter that is the farthest. What `seq reopen` is told must not be before it. */
static int64_t last(const struct generator *g, int64_t now_ms)
{
    int64_t farthest = -1, number = GENERATOR_UNKNOWN;
    (void)now_ms;
    for (EACH(l, family(g))) {
        const struct sequence *q = &member(l)->numbers;
        int64_t index = sequence_last(q);
        if (index > farthest) {
            farthest = index;
            number = sequence_number(q, index);
        }
    }
    return number;
}

/* Of the counter that ends first; one that never does, or of which it is not known, has all. */
static int64_t until_max(const struct generator *g, int64_t now_ms)
{
    int64_t least = SEQUENCE_TOP;
    (void)now_ms;
    for (EACH(l, family(g)))
        if (member(l)->beyond >= 0 && member(l)->beyond < least)
            least = member(l)->beyond;
    return least;
}

#define LASTS_MAX_S INT64_C(1000000000000000) /* what lasts longer is not told apart */

/* As the coordinator's time has it, which goes on while nobody asks. */
static int64_t mono_at(const struct sequence_table *t, int64_t now_ms)
{
    int64_t mono = t->time_ms ? t->time_mono + (now_ms - t->time_ms) : 0;
    return mono > t->mono ? mono : t->mono;
}

/* How long so many numbers of a counter last; -1: they never end. What nobody takes of, or whose
 * period is over before, has no such time. */
static int64_t lasts_s(const struct sequence_generator *s, int64_t numbers, int64_t now_ms)
{
    double pace = sequence_pace(&s->numbers, mono_at(s->table, now_ms));
    if (numbers < 0 || numbers >= SEQUENCE_TOP || (numbers > 0 && pace <= 0))
        return GENERATOR_UNKNOWN;
    double seconds = numbers > 0 ? (double)numbers / pace / 1000 : 0;
    if (s->ends_ms > 0 && seconds * 1000 >= (double)(s->ends_ms - now_ms))
        return GENERATOR_UNKNOWN;
    return seconds < LASTS_MAX_S ? (int64_t)seconds : LASTS_MAX_S;
}

static int64_t max_lasts_s(const struct sequence_generator *s, int64_t now_ms)
{
    bool ends = s->beyond >= 0 && s->beyond < SEQUENCE_TOP;
    return lasts_s(s, ends ? s->beyond + sequence_left(&s->numbers) : -1, now_ms);
}

static int64_t width_lasts_s(const struct sequence_generator *s, int64_t now_ms)
{
    return lasts_s(s, sequence_until_width(s), now_ms);
}

/* Of the counter that is the first to end, at the pace of this sidecar alone. */
static int64_t first_s(const struct generator *g, int64_t now_ms,
                       int64_t (*lasts)(const struct sequence_generator *s, int64_t now_ms))
{
    int64_t least = GENERATOR_UNKNOWN;
    for (EACH(l, family(g))) {
        int64_t s = lasts(member(l), now_ms);
        if (s != GENERATOR_UNKNOWN && (least == GENERATOR_UNKNOWN || s < least))
            least = s;
    }
    return least;
}

static int64_t used_up_s(const struct generator *g, int64_t now_ms)
{
    return first_s(g, now_ms, max_lasts_s);
}

static int64_t width_used_up_s(const struct generator *g, int64_t now_ms)
{
    return first_s(g, now_ms, width_lasts_s);
}

/* Of the counter that has fewest; unknown where there is no template that ends. */
static int64_t until_width(const struct generator *g, int64_t now_ms)
{
    int64_t least = SEQUENCE_TOP;
    (void)now_ms;
    for (EACH(l, family(g))) {
        int64_t n = sequence_until_width(member(l));
        least = n < least ? n : least;
    }
    return least < SEQUENCE_TOP ? least : GENERATOR_UNKNOWN;
}

static int64_t counters(const struct generator *g, int64_t now_ms)
{
    int64_t n = 0;
    (void)now_ms;
    for (EACH(l, family(g)))
        n++;
    return n;
}

static int64_t size(const struct generator *g, int64_t now_ms)
{
    int64_t most = 0;
    (void)now_ms;
    for (EACH(l, family(g)))
        most = member(l)->numbers.size > most ? member(l)->numbers.size : most;
    return most;
}

static int64_t parked(const struct generator *g, int64_t now_ms)
{
    uint64_t sum = family(g)->parked;
    (void)now_ms;
    for (EACH(l, family(g)))
        sum += member(l)->parked;
    return (int64_t)sum;
}

static int64_t refused(const struct generator *g, int64_t now_ms)
{
    uint64_t sum = family(g)->refused;
    (void)now_ms;
    for (EACH(l, family(g)))
        sum += member(l)->refused;
    return (int64_t)sum;
}

static void count(const struct generator *g, struct generator_counts *out)
{
    *out = (struct generator_counts){.counted = (uint64_t)given(g, 0)};
}

static const struct generator_figure figures[] = {
    {.metric = "sidflake_sequence_given",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Numbers given out of a sequence.",
     .stat = "given",
     .info = "given",
     .member = "given",
     .page = "given",
     .value = given},
    {.metric = "sidflake_sequence_left",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Numbers of a sequence that are in hand.",
     .stat = "left",
     .info = "left",
     .member = "left",
     .page = "left",
     .value = left},
    {.stat = "last", .info = "last", .member = "last", .value = last},
    {.metric = "sidflake_sequence_until_max",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Numbers that a sequence has until its max, of its counter that has fewest here.",
     .stat = "until_max",
     .info = "until_max",
     .member = "until_max",
     .value = until_max},
    {.metric = "sidflake_sequence_used_up_seconds",
     .type = GENERATOR_GAUGE,
     .unit = "seconds",
     .help = "Time until a sequence reaches its max at this sidecar's rate of the latest hours, of "
             "its counter that is the first; absent where none does, or not within its period.",
     .stat = "used_up_seconds",
     .info = "used_up_seconds",
     .member = "used_up_seconds",
     .value = used_up_s},
    {.metric = "sidflake_sequence_until_width",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help =
         "Numbers that a sequence has until its template takes no more, of its counter that has "
         "fewest here; absent where there is no template, or one that takes any.",
     .stat = "until_width",
     .info = "until_width",
     .member = "until_width",
     .value = until_width},
    {.metric = "sidflake_sequence_width_seconds",
     .type = GENERATOR_GAUGE,
     .unit = "seconds",
     .help = "Time until numbers of a sequence are too large for its template, as "
             "sidflake_sequence_used_up_seconds.",
     .stat = "width_seconds",
     .info = "width_seconds",
     .member = "width_seconds",
     .value = width_used_up_s},
    {.metric = "sidflake_sequence_block",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Numbers of the block that was asked for last, the largest of its counters.",
     .stat = "block",
     .info = "block",
     .member = "block",
     .value = size},
    {.metric = "sidflake_sequence_counters",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Counters of a sequence that are open here: subs and periods.",
     .stat = "counters",
     .info = "counters",
     .member = "counters",
     .value = counters},
    {.metric = "sidflake_sequence_parked",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Requests that had to wait for numbers.",
     .stat = "parked",
     .info = "parked",
     .member = "parked",
     .value = parked},
    {.metric = "sidflake_sequence_refused",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Requests that were refused at once: used up, stopped, closed, not there.",
     .stat = "refused",
     .info = "refused",
     .member = "refused",
     .value = refused},
};

/* The first of its counters that is refused until somebody does something about it. */
static bool is_refused(const struct generator *g, int64_t now_ms, struct buf *b)
{
    (void)now_ms;
    for (EACH(l, family(g))) {
        const struct sequence_generator *s = member(l);
        unsigned cause = s->numbers.refused.cause;
        if (!cause || s->numbers.refused.count > 1 ||
            sequence_kind.causes[cause].status != ISSUE_NEVER)
            continue;
        buf_printf(b, "sequence %s: ", family(g)->name);
        sequence_kind.causes[cause].say(&s->base, b);
        return true;
    }
    return false;
}

/* The first of its counters whose next number its template does not take: that one goes on. */
static bool is_too_wide(const struct generator *g, int64_t now_ms, struct buf *b)
{
    (void)now_ms;
    for (EACH(l, family(g))) {
        const struct sequence_generator *s = member(l);
        if (!s->template || sequence_until_width(s) > 0)
            continue;
        const char *name = family(g)->name;
        buf_printf(b,
                   "sequence %s: used up: its template takes numbers up to %lld: sidflakectl seq "
                   "alter",
                   name, (long long)template_last_number(s->template));
        buf_put_operand(b, name, " --template TEXT");
        return true;
    }
    return false;
}

#define LATE_MS 60000 /* for so long it is told */

/* The first of its counters of which more is asked for than there may be. */
static bool is_late(const struct generator *g, int64_t now_ms, struct buf *b)
{
    for (EACH(l, family(g))) {
        const struct sequence_generator *s = member(l);
        if (s->late_ms == 0 || now_ms - s->late_ms >= LATE_MS)
            continue;
        buf_printf(
            b,
            "sequence %s: at its max rate: more than %lld a second are asked for, and clients "
            "wait, or are refused",
            s->of.name, (long long)s->rate);
        return true;
    }
    return false;
}

static const struct generator_warning warnings[] = {
    {"sequence", is_refused}, {"template", is_too_wide}, {"max_rate", is_late}};

const struct generator_kind sequence_family_kind = {
    .name = "",
    .section = "sequences",
    .causes = generator_no_causes,
    .peek = generator_peek_none,
    .count = count,
    .figures = figures,
    .warnings = warnings,
    .ncauses = 1,
    .nfigures = sizeof figures / sizeof *figures,
    .nwarnings = sizeof warnings / sizeof *warnings,
};

/* ---- all of them ----------------------------------------------------------------------------- */

#define TAKES(name, which)                                                                         \
    static int64_t name(const struct generator *g, int64_t now_ms)                                 \
    {                                                                                              \
        (void)now_ms;                                                                              \
        return (int64_t)table(g)->told.takes[which];                                               \
    }

TAKES(granted, SEQUENCE_TAKE_GRANTED)
TAKES(looked, SEQUENCE_TAKE_LOOKED)
TAKES(later, SEQUENCE_TAKE_LATER)
TAKES(used_up, SEQUENCE_TAKE_USED_UP)
TAKES(unknown, SEQUENCE_TAKE_UNKNOWN)
TAKES(mistaken, SEQUENCE_TAKE_MISTAKEN)
TAKES(not_granted, SEQUENCE_TAKE_REFUSED)
TAKES(failed, SEQUENCE_TAKE_FAILED)

static int64_t given_back(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return (int64_t)table(g)->told.given_back;
}

static int64_t dropped(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return (int64_t)(table(g)->told.dropped + table(g)->dropped);
}

static int64_t places(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return table(g)->open;
}

static int64_t evicted(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return (int64_t)table(g)->evicted;
}

static const struct histogram *take_time(const struct generator *g)
{
    return &table(g)->told.take_us;
}

static const char takes_metric[] = "sidflake_sequence_takes";

#define TAKE(of, fn)                                                                               \
    {                                                                                              \
        .metric = takes_metric, .type = GENERATOR_COUNTER, .unit = "",                             \
        .help = "What was asked of the coordinator for a counter, by what it came to.",            \
        .label = "outcome", .label_value = of, .stat = "takes_" of, .info = "takes_" of,           \
        .member = "takes_" of, .value = fn                                                         \
    }

static const struct generator_figure table_figures[] = {
    TAKE("granted", granted),
    TAKE("looked", looked),
    TAKE("later", later),
    TAKE("used_up", used_up),
    TAKE("unknown", unknown),
    TAKE("mistaken", mistaken),
    TAKE("refused", not_granted),
    TAKE("failed", failed),
    {.metric = "sidflake_sequence_take_seconds",
     .type = GENERATOR_HISTOGRAM,
     .unit = "seconds",
     .help = "Time of a call for numbers to the coordinator.",
     .histogram = take_time},
    {.metric = "sidflake_sequence_given_back",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Numbers given back to the coordinator.",
     .stat = "given_back",
     .info = "given_back",
     .member = "given_back",
     .value = given_back},
    {.metric = "sidflake_sequence_gaps",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Numbers that were granted here and will not be given out.",
     .stat = "gaps",
     .info = "gaps",
     .member = "gaps",
     .value = dropped},
    {.metric = "sidflake_sequence_places",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Counters that are open here, of sequences.counters.",
     .stat = "places",
     .info = "places",
     .member = "places",
     .value = places},
    {.metric = "sidflake_sequence_evicted",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Counters that were closed to make room for others.",
     .stat = "evicted",
     .info = "evicted",
     .member = "evicted",
     .value = evicted},
};

static bool has_no_page(const struct generator *g, int64_t now_ms, struct buf *b)
{
    const char *why = table(g)->told.page;
    (void)now_ms;
    if (!why[0])
        return false;
    BUF_PUT_LIT(b, "no state page of sequences: a restart leaves a gap in the numbers: ");
    buf_put_str(b, why);
    return true;
}

static const struct generator_warning table_warnings[] = {{"sequences_page", has_no_page}};

const struct generator_kind sequence_table_kind = {
    .name = "seq",
    .section = "sequence_supply",
    .causes = generator_no_causes,
    .peek = generator_peek_none,
    .count = count_none,
    .entry = sequence_table_entry,
    .figures = table_figures,
    .warnings = table_warnings,
    .ncauses = 1,
    .nfigures = sizeof table_figures / sizeof *table_figures,
    .nwarnings = 1,
};
