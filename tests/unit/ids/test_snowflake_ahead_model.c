/*
 * The logical time under random schedules, against bookkeeping that knows nothing of how it works:
 * of every workerId what was ever granted and used, of all IDs the latest one, and the time as a
 * coordinator has it. The clock jumps about as it likes.
 *
 * SIDFLAKE_TEST_SEED and SIDFLAKE_TEST_ROUNDS choose another or a longer run.
 */
#include "base/int64.h"
#include "base/mark.h"
#include "ids/snowflake_ahead.h"
#include "support/idcheck.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define EPOCH   INT64_C(1767225600000)
#define WORKERS 24
#define STEPS   3000
#define HOUR    INT64_C(3600000)
#define SKEW    2000

struct book {
    bool held, retired;
    uint32_t handle;
    int64_t floor, hi; /* of the range held: floor < time <= hi */
    int64_t last;      /* latest time used, or the floor */
    uint32_t next;     /* first sequence of `last` not used */
    int64_t hwm;       /* not held: everything up to here is taken */
    volatile uint64_t mark;
};

struct model {
    struct snowflake gen;
    struct snowflake_ahead ahead;
    struct layout layout;
    struct book book[WORKERS];
    struct idcheck seen;
    struct seeded rng;
    int64_t home;  /* the coordinator's time */
    int64_t off;   /* the clock less that */
    int64_t reach; /* most that IDs may be ahead of it */
    int64_t below;
    int64_t clock; /* the unit of the highest clock at which IDs came, since it stepped back */
    int64_t count[SNOWFLAKE_TOO_MANY + 1];
    int64_t carried, went_back, more;
    uint32_t handles;
    uint64_t latest;
};

static bool chance(struct model *m, int one_in)
{
    return seeded_in(&m->rng, 1, one_in) == 1;
}

static int64_t unit(const struct model *m, int64_t ms)
{
    return EPOCH + (ms - EPOCH) - (ms - EPOCH) % m->layout.unit_ms;
}

static struct layout_parts parts(const struct model *m, uint64_t id)
{
    struct layout_parts p;
    assert_true(layout_decompose(&m->layout, id, &p));
    p.time += EPOCH;
    return p;
}

/* ---- moves ------------------------------------------------------------------------------------
 */

static void move_clock(struct model *m)
{
    int64_t r = seeded_in(&m->rng, 0, 99);
    m->home += chance(m, 3) ? seeded_in(&m->rng, 0, m->layout.unit_ms) : 0;
    if (r < 4)
        m->off += seeded_in(&m->rng, -30, 30);
    else if (r < 6)
        m->off += seeded_in(&m->rng, -2000, 2000);
    else if (r < 7)
        m->off += seeded_in(&m->rng, -3 * HOUR, 3 * HOUR);
    else if (r < 11)
        m->off = 0;
}

static void grant(struct model *m)
{
    uint16_t w = (uint16_t)seeded_in(&m->rng, 0, WORKERS - 1);
    struct book *b = &m->book[w];
    if (b->held || m->gen.nmembers == SNOWFLAKE_MEMBERS)
        return;
    b->floor = b->hwm;
    if (b->floor < m->home - 100 && chance(m, 2))
        b->floor = m->home - seeded_in(&m->rng, 0, 100);
    b->hi = m->home + seeded_in(&m->rng, 5, chance(m, 2) ? HOUR : 5000);
    if (b->hi <= b->floor || b->floor >= m->home + SKEW)
        return;
    b->held = true;
    b->retired = false;
    b->handle = m->handles++;
    b->last = b->floor;
    b->next = layout_sequences(&m->layout);
    b->hwm = b->hi;
    mark_store(&b->mark, b->floor);
    assert_true(snowflake_grant(&m->gen, b->handle, w, b->floor, b->hi, &b->mark));
}

static void extend(struct model *m)
{
    struct book *b = &m->book[seeded_in(&m->rng, 0, WORKERS - 1)];
    if (!b->held || b->retired)
        return;
    b->hi = max64(b->hi, m->home + seeded_in(&m->rng, 5, HOUR));
    b->hwm = b->hi;
    snowflake_extend(&m->gen, b->handle, b->hi);
}

static void give_back(struct book *b, int64_t last)
{
    int64_t marked;
    assert_true(b->held && last == b->last);
    assert_true(mark_load(&b->mark, &marked) && marked == last);
    b->held = false;
    b->hwm = last;
}

static void revoke(struct model *m)
{
    struct book *b = &m->book[seeded_in(&m->rng, 0, WORKERS - 1)];
    int64_t last;
    if (!b->held || b->retired)
        return;
    assert_true(snowflake_revoke(&m->gen, b->handle, &last));
    if (chance(m, 2))
        give_back(b, last);
    else
        b->held = false; /* hwm stays at hi */
}

static void take_retired(struct model *m)
{
    for (unsigned i = 0; i < m->gen.nretired; i++)
        for (int w = 0; w < WORKERS; w++)
            if (m->book[w].held && m->book[w].handle == m->gen.retired[i].handle)
                give_back(&m->book[w], m->gen.retired[i].last);
    m->gen.nretired = 0;
}

/* ---- judging ----------------------------------------------------------------------------------
 */

/* Whether n IDs of this workerId are left in the unit that begins at `at`, above the latest ID. */
static bool has_left(const struct model *m, unsigned w, int64_t at, uint32_t n)
{
    const struct book *b = &m->book[w];
    if (!b->held || b->retired || at > b->hi || at < b->last)
        return false;
    uint32_t from = at == b->last ? b->next : 0;
    uint64_t id =
        layout_compose(&m->layout, at - EPOCH, w, 0) + from * (uint64_t)layout_stride(&m->layout);
    return from + n <= layout_sequences(&m->layout) && id > m->latest;
}

/* What was granted from within a unit on may be of another life, whose IDs there are not known. */
static bool is_below_another(const struct snowflake *before, unsigned w, int64_t at)
{
    bool any = layout_worker_is_lowest(&before->layout);
    for (unsigned i = 0; i < before->nmembers; i++)
        if (before->member[i].last == at && (before->member[i].worker > w || any))
            return true;
    return false;
}

/* Of those that were active. Where the sequence is the higher one, another workerId within a unit
 * waits for the next. */
static bool some_active_has_left(const struct model *m, const struct snowflake *before, int64_t at,
                                 uint32_t n)
{
    for (unsigned i = 0; i < before->nactive; i++) {
        unsigned w = before->member[i].worker;
        bool waits =
            layout_worker_is_lowest(&m->layout) && m->latest && parts(m, m->latest).worker != w;
        if (has_left(m, w, at, n) && !waits && !is_below_another(before, w, at))
            return true;
    }
    return false;
}

/* The time of what would be next: the clock's, or the latest. */
static int64_t due(const struct model *m, int64_t now)
{
    bool back = !m->ahead.hold && now < m->clock && m->clock - now >= m->below;
    return m->latest && !back ? max64(unit(m, now), parts(m, m->latest).time) : unit(m, now);
}

static void judge_issued(struct model *m, const struct snowflake *before, int64_t now,
                         uint64_t first, uint32_t asked, uint32_t n)
{
    struct layout_parts p = parts(m, first);
    int64_t marked, at = due(m, now);
    struct book *b = &m->book[p.worker];
    assert_true(p.worker < WORKERS && b->held && !b->retired);
    assert_true(p.time <= b->hi && p.time >= b->last);
    assert_int_equal(p.sequence, p.time > b->last ? 0 : b->next);
    assert_true(p.sequence + n <= layout_sequences(&m->layout));
    b->last = p.time;
    b->next = p.sequence + n;
    assert_true(mark_load(&b->mark, &marked) && marked == p.time);
    if (first <= m->latest) {
        assert_true(!m->ahead.hold && m->clock - now >= m->below);
        assert_true(parts(m, m->latest).worker != p.worker);
        m->went_back++;
    }
    if (p.time > at) { /* carried, and no farther than it had to be */
        m->carried++;
        assert_true(p.time <= m->home + m->reach);
        assert_false(some_active_has_left(m, before, at, asked));
    }
    if (!m->ahead.hold && now < m->clock && m->clock - now >= m->below)
        m->clock = INT64_MIN;
    m->clock = max64(m->clock, unit(m, now));
    m->latest = first + (n - 1) * (uint64_t)layout_stride(&m->layout);
    for (uint32_t i = 0; layout_stride(&m->layout) > 1 && i < n; i++)
        idcheck_add(&m->seen, first + i * (uint64_t)layout_stride(&m->layout), 1);
    if (layout_stride(&m->layout) == 1)
        idcheck_add(&m->seen, first, n);
}

static void judge_refused(const struct model *m, const struct snowflake *before, int64_t now,
                          enum snowflake_status s, uint32_t n, int64_t until)
{
    int64_t at = due(m, now), next = at + m->layout.unit_ms, most = m->home + m->reach;
    if (s == SNOWFLAKE_EPOCH || before->nactive == 0)
        return;
    assert_false(some_active_has_left(m, before, at, n));
    if (s == SNOWFLAKE_FULL) {
        assert_true(until > now && until <= now + m->layout.unit_ms);
        if (m->ahead.borrow && next <= most)
            assert_false(some_active_has_left(m, before, next, n));
    }
    if (m->ahead.hold && (s == SNOWFLAKE_BEHIND || s == SNOWFLAKE_STALLED))
        for (unsigned i = 0; i < before->nactive; i++) {
            int64_t from = max64(at, unit(m, before->member[i].last) + m->layout.unit_ms);
            assert_true(from > most || from > before->member[i].hi);
        }
}

static void ask(struct model *m)
{
    uint64_t first = 0;
    int64_t until = INT64_MIN, now = m->home + min64(m->off, SKEW);
    uint32_t most = layout_sequences(&m->layout);
    uint32_t n = chance(m, 2) ? (uint32_t)seeded_in(&m->rng, 1, most) : 1, got;
    bool some = chance(m, 4);
    struct snowflake_clock c = {now, m->home + m->reach};
    struct snowflake before = m->gen;
    enum snowflake_status s = SNOWFLAKE_OK;
    if (!some && chance(m, 2) && snowflake_ahead_more(&m->ahead, &m->gen, now, n, &first)) {
        got = n;
        m->more++;
    } else {
        s = snowflake_ahead_issue(&m->ahead, &m->gen, c, n, some, &first, &got, &until);
    }
    m->count[s]++;
    if (m->ahead.hold) /* whatever the clock does: only who stands in for what is used up */
        for (unsigned i = before.nretired; i < m->gen.nretired; i++)
            assert_true(m->gen.retired[i].last + m->layout.unit_ms > due(m, now));
    if (s == SNOWFLAKE_OK) {
        assert_true(got >= 1 && got <= n && (some || got == n));
        judge_issued(m, &before, now, first, some ? 1 : n, got);
    } else {
        judge_refused(m, &before, now, s, some ? 1 : n, until);
    }
    for (unsigned i = 0; i < m->gen.nretired; i++)
        for (int w = 0; w < WORKERS; w++)
            m->book[w].retired |= m->book[w].held && m->book[w].handle == m->gen.retired[i].handle;
    if (chance(m, 2))
        take_retired(m);
}

static void one_schedule(struct model *m)
{
    static const char *const layouts[] = {
        "sidflake",
        "twitter",
        "sonyflake",
        "time:32,unit=1s worker:8 sequence:10",
        "time:36,unit=7ms worker:6 zero:3 sequence:4 zero:2",
        "time:38,unit=50ms zero:1 sequence:3 worker:10",
    };
    int64_t mode = seeded_in(&m->rng, 1, 3);
    assert_int_equal(layout_parse(span_str(layouts[seeded_in(&m->rng, 0, 5)]), &m->layout, NULL),
                     ERR_OK);
    unsigned active = layout_worker_is_lowest(&m->layout) ? 1 : (unsigned)seeded_in(&m->rng, 1, 4);
    m->below = seeded_in(&m->rng, 0, 40);
    m->reach = chance(m, 3) ? seeded_in(&m->rng, 0, 200) : 30000;
    m->home = EPOCH + 10 * HOUR + seeded_in(&m->rng, 0, 100 * HOUR);
    m->clock = INT64_MIN;
    snowflake_init(&m->gen, EPOCH, &m->layout, m->below, active);
    m->ahead = (struct snowflake_ahead){.borrow = mode & 1, .hold = mode & 2};
    snowflake_ahead_init(&m->ahead, &m->gen, 0);
    for (int step = 0; step < STEPS; step++) {
        move_clock(m);
        if (m->gen.nmembers < active + 2 ? chance(m, 5) : chance(m, 200))
            grant(m);
        if (chance(m, 20))
            extend(m);
        if (chance(m, 100))
            revoke(m);
        ask(m);
    }
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_schedules_keep_to_their_ranges_and_order(void **state)
{
    (void)state;
    uint64_t seed = setting("SIDFLAKE_TEST_SEED", 1);
    int64_t rounds = (int64_t)setting("SIDFLAKE_TEST_ROUNDS", 150);
    int64_t carried = 0, went_back = 0, more = 0, rotations = 0,
            count[SNOWFLAKE_TOO_MANY + 1] = {0};
    for (int64_t i = 0; i < rounds; i++) {
        struct model *m = calloc(1, sizeof *m);
        uint64_t example = 0;
        assert_non_null(m);
        m->rng = seeded_of(seed + (uint64_t)i);
        one_schedule(m);
        if (idcheck_duplicates(&m->seen, &example))
            fail_msg("seed %lld: ID %llu was issued twice", (long long)seed + i,
                     (unsigned long long)example);
        for (int s = 0; s <= SNOWFLAKE_EPOCH; s++)
            count[s] += m->count[s];
        carried += m->carried;
        went_back += m->went_back;
        more += m->more;
        rotations += (int64_t)m->gen.stats.rotations;
        idcheck_clear(&m->seen);
        free(m);
    }
    assert_true(more > 50 * rounds && carried > 50 * rounds && went_back > rounds &&
                rotations > rounds);
    for (int s = 0; s < SNOWFLAKE_EPOCH; s++)
        assert_true(count[s] > rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_keep_to_their_ranges_and_order),
    };
    return cmocka_run_group_tests_name("ids/snowflake_ahead, by chance", tests, NULL, NULL);
}
