#include "ids/snowflake_generator.h"

#include "base/human.h"
#include "base/timefmt.h"

#include <assert.h>

#define LIFETIME_LOW_MS (INT64_C(180) * 86400000)

static const struct snowflake_generator *of(const struct generator *g)
{
    return (const struct snowflake_generator *)g;
}

/* Who is told the last of several counts back by one: so there is no row where they are a stride
 * apart. Before a pool is found, nobody knows: as many as in the usual layout. */
static uint32_t most_in_a_row(const struct generator *g)
{
    const struct snowflake *s = &of(g)->ids;
    if (!of(g)->started)
        return LAYOUT_SEQUENCES;
    return layout_stride(&s->layout) > 1 ? 1 : s->sequences;
}

/* ---- refusals ---------------------------------------------------------------------------------
 */

/* 0: nothing is held. */
static int64_t latest_hi(const struct snowflake *s)
{
    int64_t top = 0;
    for (unsigned i = 0; i < s->nmembers; i++)
        top = max64(top, s->member[i].hi);
    return top;
}

static void say_none(const struct generator *g, struct buf *b)
{
    const struct snowflake_generator *s = of(g);
    BUF_PUT_LIT(b, "no workerId is held");
    buf_put_str(b, !s->why[0] ? " yet" : s->away ? ", and the coordinator is away: " : ": ");
    buf_put_str(b, s->why);
}

static void say_behind(const struct generator *g, struct buf *b)
{
    char until[TIMEFMT_MAX];
    BUF_PUT_LIT(b, "the clock is behind the latest ID, and no other workerId can stand in: wait "
                   "until it is ");
    buf_put_str(b, timefmt_rfc3339(until, snowflake_resumes(&of(g)->ids)));
    if (of(g)->alone)
        BUF_PUT_LIT(b, ", or name an N in static:N that no sidecar ever had, and another "
                       "state_dir");
}

/* With hold IDs never go back, though the clock did: they go on from a time that no range reaches,
 * or that is farther above the clock than IDs may be. */
static bool goes_on_above(const struct snowflake_generator *s, int64_t *from_ms)
{
    int64_t now_ms = clock_wall_ms(s->clock);
    *from_ms = snowflake_ahead_latest(&s->ahead, &s->ids);
    return *from_ms > now_ms && latest_hi(&s->ids) >= now_ms;
}

static void say_goes_on(const struct snowflake_generator *s, int64_t from_ms, struct buf *b)
{
    char from[TIMEFMT_MAX], until[TIMEFMT_MAX];
    BUF_PUT_LIT(b, "with clock.on_rollback: hold IDs go on from ");
    buf_put_str(b, timefmt_rfc3339(from, from_ms));
    BUF_PUT_LIT(b, ", which is farther ahead than they may be: there are none until about ");
    buf_put_str(b, timefmt_rfc3339(until, from_ms - s->trust.reach_ms));
    BUF_PUT_LIT(b, ", or with another state_dir, if they may go back");
}

/* Which clock is wrong cannot be known from here; but a coordinator that answers is not away.
 * Before it is asked once more, after the clock jumped, neither is known. */
static void say_above(const struct generator *g, struct buf *b)
{
    const struct snowflake_generator *s = of(g);
    int64_t from_ms;
    if (s->ahead.hold && goes_on_above(s, &from_ms)) {
        say_goes_on(s, from_ms, b);
    } else if (s->why[0]) {
        BUF_PUT_LIT(b, "each range of time held has ended, and no other can be had: ");
        buf_put_str(b, s->why);
    } else if (s->ahead_ms == 0) {
        BUF_PUT_LIT(b, "each range of time held has ended: the clock jumped ahead, or the "
                       "coordinator is away");
    } else {
        BUF_PUT_LIT(b, "the clock is above every range of time held: it is ");
        human_put_duration(b, s->ahead_ms);
        BUF_PUT_LIT(b, " ahead of the coordinator's");
    }
}

static void say_epoch(const struct generator *g, struct buf *b)
{
    (void)g;
    BUF_PUT_LIT(b, "the clock is before the epoch, or past the end of the IDs' time field");
}

static void say_too_many(const struct generator *g, struct buf *b)
{
    BUF_PUT_LIT(b, "expected 1 to ");
    buf_put_u64(b, most_in_a_row(g));
    BUF_PUT_LIT(b, " IDs in a row, as many as the pool's layout has, found more");
}

static const struct generator_cause causes[] = {
    [SNOWFLAKE_OK] = {ISSUE_OK},
    [SNOWFLAKE_FULL] = {ISSUE_PARK},
    [SNOWFLAKE_BEHIND] = {ISSUE_PARK, .of_clock = true},
    [SNOWFLAKE_NO_WORKER] = {ISSUE_LOADING, .waits = true, .check = "workerId", .say = say_none},
    [SNOWFLAKE_STALLED] = {ISSUE_AGAIN, .waits = true, .of_clock = true, .check = "clock",
                           .say = say_behind},
    [SNOWFLAKE_CEILING] = {ISSUE_NEVER, .waits = true, .check = "lease", .say = say_above},
    [SNOWFLAKE_EPOCH] = {ISSUE_NEVER, .check = "epoch", .say = say_epoch},
    [SNOWFLAKE_TOO_MANY] = {ISSUE_WRONG, .say = say_too_many},
};

/* ---- issuing ----------------------------------------------------------------------------------
 */

static unsigned not_started(struct generator_ask *ask)
{
    ask->until_ms = INT64_MAX;
    return SNOWFLAKE_NO_WORKER;
}

static unsigned next(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    struct snowflake_generator *s = (struct snowflake_generator *)g;
    uint64_t first = 0;
    if (!s->started)
        return not_started(ask);
    if (ask->n > most_in_a_row(g)) { /* it was asked for before the layout was known */
        ask->until_ms = INT64_MAX;
        return SNOWFLAKE_TOO_MANY;
    }
    enum snowflake_status r = snowflake_next(&s->ids, ask->now_ms, ask->n, &first, &ask->until_ms);
    *out = (struct generator_run){(int64_t)first, layout_stride(&s->ids.layout), ask->n};
    return r;
}

static unsigned some(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    struct snowflake_generator *s = (struct snowflake_generator *)g;
    uint64_t first = 0;
    uint32_t n = 0;
    if (!s->started)
        return not_started(ask);
    enum snowflake_status r =
        snowflake_some(&s->ids, ask->now_ms, ask->n, &first, &n, &ask->until_ms);
    *out = (struct generator_run){(int64_t)first, layout_stride(&s->ids.layout), n};
    return r;
}

/* ---- the same, ahead of the clock --------------------------------------------------------------
 */

static struct snowflake_clock believed(const struct snowflake_generator *s, int64_t now_ms)
{
    return snowflake_believed(&s->ahead, &s->trust, now_ms, clock_mono_ms(s->clock));
}

static unsigned issue_ahead(struct generator *g, struct generator_ask *ask, bool part,
                            struct generator_run *out)
{
    struct snowflake_generator *s = (struct snowflake_generator *)g;
    uint64_t first = 0;
    uint32_t n = 0;
    if (!s->started)
        return not_started(ask);
    if (!part && ask->n > most_in_a_row(g)) {
        ask->until_ms = INT64_MAX;
        return SNOWFLAKE_TOO_MANY;
    }
    struct snowflake_clock c = believed(s, ask->now_ms);
    enum snowflake_status r =
        snowflake_ahead_issue(&s->ahead, &s->ids, c, ask->n, part, &first, &n, &ask->until_ms);
    *out = (struct generator_run){(int64_t)first, layout_stride(&s->ids.layout), n};
    if (ask->until_ms != INT64_MAX) /* it is waited for by the clock as it is */
        ask->until_ms += ask->now_ms - c.now_ms;
    return r;
}

static unsigned next_ahead(struct generator *g, struct generator_ask *ask,
                           struct generator_run *out)
{
    return issue_ahead(g, ask, false, out);
}

static unsigned some_ahead(struct generator *g, struct generator_ask *ask,
                           struct generator_run *out)
{
    return issue_ahead(g, ask, true, out);
}

/* ---- before it is asked for one ----------------------------------------------------------------
 */

static uint32_t run(const struct generator *g, uint32_t batch)
{
    uint32_t most = most_in_a_row(g);
    return batch < most ? batch : most;
}

/* A clock that is behind by less than wait_below is waited for in order, as a full millisecond is.
 */
static unsigned peeked(struct generator *g, enum snowflake_status s)
{
    struct snowflake *ids = &((struct snowflake_generator *)g)->ids;
    ids->wants_worker |= s == SNOWFLAKE_STALLED;
    ids->wants_renewal |= s == SNOWFLAKE_CEILING;
    return causes[s].status == ISSUE_PARK ? SNOWFLAKE_OK : s;
}

static unsigned peek(struct generator *g, int64_t now_ms)
{
    const struct snowflake_generator *s = of(g);
    return peeked(g, s->started ? snowflake_peek(&s->ids, now_ms) : SNOWFLAKE_NO_WORKER);
}

static unsigned peek_ahead(struct generator *g, int64_t now_ms)
{
    const struct snowflake_generator *s = of(g);
    return peeked(g, s->started ? snowflake_ahead_peek(&s->ahead, &s->ids, believed(s, now_ms))
                                : SNOWFLAKE_NO_WORKER);
}

static int64_t example(const struct generator *g, int64_t now_ms)
{
    const struct snowflake *s = &of(g)->ids;
    const struct layout *l = of(g)->started ? &s->layout : &layout_usual;
    int64_t ms = now_ms - s->epoch_ms;
    return (int64_t)layout_compose(l, ms > 0 ? ms : 0, 0, 0);
}

/* ---- what is shown ----------------------------------------------------------------------------
 */

static void count(const struct generator *g, struct generator_counts *out)
{
    const struct snowflake_stats *s = &of(g)->ids.stats;
    *out = (struct generator_counts){.issued = s->issued,
                                     .exhausted = s->exhausted,
                                     .rollbacks = s->rollbacks,
                                     .rotations = s->rotations};
}

static bool worker(const struct generator *g, unsigned i, struct generator_worker *out)
{
    const struct snowflake *s = &of(g)->ids;
    if (i >= s->nmembers)
        return false;
    const struct snowflake_member *m = &s->member[i];
    *out = (struct generator_worker){
        .worker = m->worker, .active = i < s->nactive, .last_ms = m->last, .hi_ms = m->hi};
    return true;
}

/* The latest of all workerIds, spares too. static:N has no ceiling, but its IDs have an end. */
static int64_t until(const struct generator *g)
{
    const struct snowflake *s = &of(g)->ids;
    int64_t top = latest_hi(s);
    int64_t end = top > 0 ? layout_end_ms(&s->layout, s->epoch_ms) : top;
    return top < end ? top : end;
}

/* It is ahead of all that is held, or before the epoch. */
static bool clock_is_wrong(const struct generator *g, unsigned cause, int64_t now_ms)
{
    return (cause == SNOWFLAKE_CEILING && of(g)->ahead_ms > 0) ||
           (cause == SNOWFLAKE_EPOCH && now_ms < of(g)->ids.epoch_ms);
}

static int decode(const struct generator *g, uint64_t number,
                  struct generator_part out[GENERATOR_PARTS])
{
    const struct layout *l = &of(g)->ids.layout;
    struct layout_parts p;
    int n = 3;
    if (number >> 63)
        return 0;
    if (!of(g)->started) /* no pool: neither epoch nor layout */
        return -1;
    if (!layout_decompose(l, number, &p))
        return 0;
    int64_t unix_ms = of(g)->ids.epoch_ms + p.time;
    out[0] = (struct generator_part){"time", unix_ms, true};
    out[1] = (struct generator_part){"unix_ms", unix_ms, false};
    out[2] = (struct generator_part){"worker", p.worker, false};
    if (l->worker_high > 0) {
        out[n++] = (struct generator_part){"worker_high", layout_worker_high(l, p.worker), false};
        out[n++] = (struct generator_part){"worker_low", layout_worker_low(l, p.worker), false};
    }
    out[n++] = (struct generator_part){"sequence", p.sequence, false};
    return n;
}

static int64_t epoch(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return of(g)->ids.epoch_ms;
}

static int64_t peak(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return snowflake_peak(&of(g)->ids);
}

static int64_t sequences(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return of(g)->started ? of(g)->ids.sequences : GENERATOR_UNKNOWN;
}

static int64_t unit(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return of(g)->started ? of(g)->ids.layout.unit_ms : GENERATOR_UNKNOWN;
}

static int64_t end(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    const struct snowflake *s = &of(g)->ids;
    return of(g)->started ? layout_end_ms(&s->layout, s->epoch_ms) : GENERATOR_UNKNOWN;
}

static int64_t lifetime(const struct generator *g, int64_t now_ms)
{
    int64_t left;
    return of(g)->started && !__builtin_sub_overflow(end(g, now_ms), now_ms, &left)
               ? left
               : GENERATOR_UNKNOWN;
}

static int64_t ahead(const struct generator *g, int64_t now_ms)
{
    int64_t last = of(g)->started ? of(g)->ids.last_ms : INT64_MIN;
    return last > now_ms ? last - now_ms : 0;
}

static int64_t carried(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return (int64_t)of(g)->ahead.carried;
}

static const struct histogram *rollback(const struct generator *g)
{
    return &of(g)->ids.stats.rollback;
}

static const struct generator_figure figures[] = {
    {.info = "epoch_ms", .value = epoch},
    {.metric = "sidflake_clock_rollback_seconds",
     .type = GENERATOR_HISTOGRAM,
     .unit = "seconds",
     .help = "How far the clock stepped back.",
     .histogram = rollback},
    {.metric = "sidflake_sequence_peak",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Most IDs out of one workerId in one unit of the layout's time: a millisecond, unless "
             "the pool was made with another.",
     .member = "sequence_peak",
     .page = "peak",
     .value = peak},
    {.member = "ids_per_unit", .page = "sequences", .value = sequences},
    {.member = "unit_ms", .page = "unit_ms", .value = unit},
    {.member = "end_unix_ms", .page = "end_ms", .value = end},
    {.metric = "sidflake_lifetime_seconds",
     .type = GENERATOR_GAUGE,
     .unit = "seconds",
     .help = "Time left until the time field of IDs is used up.",
     .decimals = 3,
     .member = "lifetime_ms",
     .page = "lifetime_ms",
     .value = lifetime},
    /* Where IDs may be ahead of the clock: */
    {.metric = "sidflake_ahead_seconds",
     .type = GENERATOR_GAUGE,
     .unit = "seconds",
     .help = "How far the time of the latest ID is above the clock.",
     .decimals = 3,
     .member = "ahead_ms",
     .page = "ahead_ms",
     .value = ahead},
    {.metric = "sidflake_carried",
     .type = GENERATOR_COUNTER,
     .unit = "",
     .help = "Requests that got IDs of a later unit of time, the one due being used up.",
     .member = "carried_total",
     .page = "carried",
     .value = carried},
};

#define OF_AHEAD 2 /* the last of them */

static bool ends_soon(const struct generator *g, int64_t now_ms, struct buf *b)
{
    int64_t left = lifetime(g, now_ms);
    if (left == GENERATOR_UNKNOWN || left >= LIFETIME_LOW_MS || left <= 0)
        return false;
    BUF_PUT_LIT(b, "the time field of IDs is used up in ");
    human_put_duration(b, left);
    return true;
}

static const struct generator_warning warnings[] = {{"lifetime", ends_soon}};

#define SNOWFLAKE_KIND(how_next, how_some, how_peek, figures_left_out)                             \
    {                                                                                              \
        .name = "id", .causes = causes, .next = how_next, .some = how_some, .run = run,            \
        .peek = how_peek, .example = example, .count = count, .worker = worker, .until = until,    \
        .clock_is_wrong = clock_is_wrong, .decode = decode, .figures = figures,                    \
        .warnings = warnings, .ncauses = sizeof causes / sizeof *causes,                           \
        .nfigures = sizeof figures / sizeof *figures - (figures_left_out),                         \
        .nwarnings = sizeof warnings / sizeof *warnings,                                           \
    }

const struct generator_kind snowflake_kind = SNOWFLAKE_KIND(next, some, peek, OF_AHEAD);
const struct generator_kind snowflake_ahead_kind =
    SNOWFLAKE_KIND(next_ahead, some_ahead, peek_ahead, 0);
