/*
 * The generator under random schedules, against bookkeeping that knows nothing of how it works:
 * every workerId has a record of what was ever granted of it and used, as a coordinator keeps it,
 * and every answer is judged by that alone.
 *
 * SIDFLAKE_TEST_SEED and SIDFLAKE_TEST_ROUNDS choose another or a longer run.
 */
#include "base/mark.h"
#include "ids/snowflake.h"
#include "support/idcheck.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EPOCH    INT64_C(1767225600000)
#define WORKERS  40
#define STEPS    4000
#define HOUR     INT64_C(3600000)
#define YEARS_10 (87660 * HOUR)

struct book {
    bool held, retired; /* retired: held until the holder of the leases has taken note */
    uint32_t handle;
    int64_t floor, hi; /* of the range held: floor < time <= hi */
    int64_t last;      /* latest time used, or the floor */
    uint32_t next;     /* first sequence of `last` not used; 1024 where nothing was */
    int64_t hwm;       /* not held: everything up to here is taken */
    volatile uint64_t mark;
};

struct model {
    struct snowflake gen;
    struct layout layout;
    struct book book[WORKERS];
    struct idcheck seen;
    struct seeded rng;
    int64_t now, home; /* the clock, and where it returns to */
    int64_t below;
    uint32_t handles;
    uint64_t latest; /* the latest ID, or 0 */
    uint64_t count[SNOWFLAKE_TOO_MANY + 1];
};

/* The first ms of the unit that the clock is in. */
static int64_t unit(const struct model *m)
{
    int64_t since = m->now - EPOCH;
    return EPOCH + since - since % m->layout.unit_ms;
}

static bool chance(struct model *m, int one_in)
{
    return seeded_in(&m->rng, 1, one_in) == 1;
}

/* ---- moves ------------------------------------------------------------------------------------
 */

static void move_clock(struct model *m)
{
    int64_t r = seeded_in(&m->rng, 0, 99);
    if (r < 55)
        m->now += seeded_in(&m->rng, 0, 2) * (chance(m, 8) ? (m->layout.unit_ms + 1) / 2 : 1);
    else if (r < 70)
        m->now += seeded_in(&m->rng, -14, 14);
    else if (r < 76)
        m->now += seeded_in(&m->rng, -60, 60);
    else if (r < 78)
        m->now += seeded_in(&m->rng, -2000, 2000);
    else if (r < 79)
        m->now += seeded_in(&m->rng, -3 * HOUR, 3 * HOUR);
    else if (r < 80)
        m->now += chance(m, 2) ? YEARS_10 : -YEARS_10;
    else if (r < 84)
        m->now = m->home; /* as a time server would set it */
    m->home += seeded_in(&m->rng, 0, 3);
}

/* A claim: lo above everything ever taken of this workerId, hi from the coordinator's clock. */
static void grant(struct model *m)
{
    uint16_t w = (uint16_t)seeded_in(&m->rng, 0, WORKERS - 1);
    struct book *b = &m->book[w];
    if (b->held || m->gen.nmembers == SNOWFLAKE_MEMBERS)
        return;
    b->floor = b->hwm;
    if (b->floor < m->home - 100 && chance(m, 2)) /* a rest of the floor is usual */
        b->floor = m->home - seeded_in(&m->rng, 0, 100);
    b->hi = m->home + seeded_in(&m->rng, 5, chance(m, 4) ? HOUR : 500);
    if (b->hi <= b->floor)
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

static struct book *held_one(struct model *m)
{
    int from = (int)seeded_in(&m->rng, 0, WORKERS - 1);
    for (int i = 0; i < WORKERS; i++)
        if (m->book[(from + i) % WORKERS].held && !m->book[(from + i) % WORKERS].retired)
            return &m->book[(from + i) % WORKERS];
    return NULL;
}

static void extend(struct model *m)
{
    struct book *b = held_one(m);
    if (!b)
        return;
    int64_t hi = m->home + seeded_in(&m->rng, 5, HOUR);
    snowflake_extend(&m->gen, b->handle, hi);
    b->hi = hi > b->hi ? hi : b->hi;
    b->hwm = b->hi;
}

/* A clean return: what is above the exact last time goes to the next holder. */
static void give_back(struct book *b, int64_t last)
{
    int64_t marked;
    assert_true(b->held);
    assert_true(last == b->last);
    assert_true(mark_load(&b->mark, &marked) && marked == last);
    b->held = false;
    b->hwm = last;
}

static void revoke(struct model *m)
{
    struct book *b = held_one(m);
    int64_t last;
    if (!b)
        return;
    assert_true(snowflake_revoke(&m->gen, b->handle, &last));
    if (chance(m, 2))
        give_back(b, last);
    else
        b->held = false; /* hwm stays at hi */
}

static struct book *holder(struct model *m, uint32_t handle)
{
    for (int w = 0; w < WORKERS; w++)
        if (m->book[w].held && m->book[w].handle == handle)
            return &m->book[w];
    fail_msg("handle %u is held by nobody", handle);
    abort();
}

static void note_retired(struct model *m)
{
    for (unsigned i = 0; i < m->gen.nretired; i++)
        holder(m, m->gen.retired[i].handle)->retired = true;
}

static void take_retired(struct model *m)
{
    for (unsigned i = 0; i < m->gen.nretired; i++)
        give_back(holder(m, m->gen.retired[i].handle), m->gen.retired[i].last);
    m->gen.nretired = 0;
}

/* ---- judging ----------------------------------------------------------------------------------
 */

static bool usable(const struct model *m, const struct book *b, uint32_t n)
{
    if (!b->held || b->retired || unit(m) > b->hi || unit(m) < b->last)
        return false;
    return unit(m) > b->last || b->next + n <= layout_sequences(&m->layout);
}

static unsigned count_usable(const struct model *m, uint32_t n)
{
    unsigned count = 0;
    for (int w = 0; w < WORKERS; w++)
        count += usable(m, &m->book[w], n);
    return count;
}

/* *until of a wait is the last time of a workerId held, or of the latest ID. */
static bool is_somebodys_last(const struct model *m, int64_t until)
{
    for (int w = 0; w < WORKERS; w++)
        if (m->book[w].held && !m->book[w].retired && m->book[w].last == until)
            return true;
    struct layout_parts p;
    return m->latest > 0 && layout_decompose(&m->layout, m->latest, &p) && EPOCH + p.time == until;
}

static void judge_issued(struct model *m, uint64_t first, uint32_t n)
{
    struct layout_parts p;
    int64_t marked;
    assert_true(layout_decompose(&m->layout, first, &p));
    assert_true(p.time == unit(m) - EPOCH);
    assert_true(p.worker < WORKERS);
    assert_true(p.sequence + n <= layout_sequences(&m->layout));
    struct book *b = &m->book[p.worker];
    assert_true(usable(m, b, n));
    assert_int_equal(p.sequence, unit(m) > b->last ? 0 : b->next);
    b->last = unit(m);
    b->next = p.sequence + n;
    assert_true(mark_load(&b->mark, &marked) && marked == unit(m));
    if (first < m->latest) { /* only a rotation may do this: the clock is behind by enough */
        struct layout_parts before;
        assert_true(layout_decompose(&m->layout, m->latest, &before));
        assert_true(before.time - p.time >= m->below);
        assert_true(before.worker != p.worker);
    }
    assert_true(first != m->latest);
    uint64_t stride = (uint64_t)layout_stride(&m->layout);
    m->latest = first + (n - 1) * stride;
    if (stride == 1)
        idcheck_add(&m->seen, first, n);
    for (uint32_t i = 0; stride > 1 && i < n; i++)
        idcheck_add(&m->seen, first + i * stride, 1);
}

static void judge_refused(const struct model *m, enum snowflake_status status, uint32_t n,
                          int64_t until)
{
    bool in_time = m->now >= EPOCH && m->now <= layout_end_ms(&m->layout, EPOCH);
    assert_true((status == SNOWFLAKE_EPOCH) == !in_time);
    switch (status) {
    case SNOWFLAKE_FULL:
        assert_true(until == unit(m) + m->layout.unit_ms);
        return;
    case SNOWFLAKE_BEHIND:
        assert_true(until > m->now && until - m->now < m->below);
        assert_true(is_somebodys_last(m, until));
        return;
    case SNOWFLAKE_STALLED:
        assert_true(until - m->now >= m->below);
        assert_true(is_somebodys_last(m, until));
        break;
    default:
        break;
    }
    /* These three are final for now: nothing held may have been good for it. */
    assert_true(!in_time || count_usable(m, n) == 0);
}

static enum snowflake_status lenient(enum snowflake_status s)
{
    return s == SNOWFLAKE_FULL || s == SNOWFLAKE_BEHIND ? SNOWFLAKE_OK : s;
}

static void ask(struct model *m)
{
    uint64_t first = 0, issued = m->gen.stats.issued;
    int64_t until = INT64_MIN;
    uint32_t most = layout_sequences(&m->layout);
    uint32_t n = chance(m, 3) ? (uint32_t)seeded_in(&m->rng, 1, most) : 1, got = n;
    bool some = chance(m, 4);
    enum snowflake_status peeked = snowflake_peek(&m->gen, m->now);
    enum snowflake_status s = some ? snowflake_some(&m->gen, m->now, n, &first, &got, &until)
                                   : snowflake_next(&m->gen, m->now, n, &first, &until);
    m->count[s]++;
    note_retired(m);
    if (some || n == 1)
        assert_int_equal(lenient(peeked), lenient(s));
    if (s == SNOWFLAKE_OK) {
        assert_true(got >= 1 && got <= n);
        judge_issued(m, first, got);
    } else {
        judge_refused(m, s, some ? 1 : n, until);
    }
    assert_true(m->gen.stats.issued == issued + (s == SNOWFLAKE_OK ? got : 0));
    if (chance(m, 2))
        take_retired(m);
}

static void check_order(const struct snowflake *s)
{
    assert_true(s->nactive <= s->want_active && s->nactive <= s->nmembers);
    for (unsigned i = 1; i < s->nactive; i++)
        assert_true(s->member[i - 1].worker < s->member[i].worker);
}

/* Half of the schedules have the usual layout. */
static void choose_layout(struct model *m)
{
    static const char *const others[] = {
        "twitter",
        "sonyflake",
        "time:32,unit=1s worker:8 sequence:10",
        "time:36,unit=7ms worker:6 zero:3 sequence:4 zero:2",
        "time:38,unit=50ms zero:1 sequence:3 worker:10",
    };
    size_t pick = (size_t)seeded_in(&m->rng, 0, 9);
    m->layout = layout_usual;
    if (pick < sizeof others / sizeof *others)
        assert_int_equal(layout_parse(span_str(others[pick]), &m->layout, NULL), ERR_OK);
}

static void one_schedule(struct model *m)
{
    choose_layout(m);
    bool strides = layout_worker_is_lowest(&m->layout);
    unsigned active = strides ? 1 : (unsigned)seeded_in(&m->rng, 1, 4);
    m->below = chance(m, 4) ? seeded_in(&m->rng, 0, 40) : 15;
    m->now = m->home = EPOCH + seeded_in(&m->rng, 0, 100 * HOUR);
    snowflake_init(&m->gen, EPOCH, &m->layout, m->below, active);
    for (int step = 0; step < STEPS; step++) {
        move_clock(m);
        if (m->gen.nmembers < active + 2 ? chance(m, 5) : chance(m, 200))
            grant(m);
        if (chance(m, 20))
            extend(m);
        if (chance(m, 100))
            revoke(m);
        ask(m);
        check_order(&m->gen);
    }
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_schedules_never_repeat_an_id(void **state)
{
    (void)state;
    uint64_t seed = setting("SIDFLAKE_TEST_SEED", 1);
    uint64_t rounds = setting("SIDFLAKE_TEST_ROUNDS", 100);
    uint64_t count[SNOWFLAKE_TOO_MANY + 1] = {0}, rotations = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        struct model *m = calloc(1, sizeof *m);
        assert_non_null(m);
        m->rng = seeded_of(seed + i);
        uint64_t example = 0;
        one_schedule(m);
        if (idcheck_duplicates(&m->seen, &example))
            fail_msg("seed %llu: ID %llu was issued twice", (unsigned long long)(seed + i),
                     (unsigned long long)example);
        for (int s = 0; s <= SNOWFLAKE_EPOCH; s++)
            count[s] += m->count[s];
        rotations += m->gen.stats.rotations;
        idcheck_clear(&m->seen);
        free(m);
    }
    for (int s = 0; s <= SNOWFLAKE_EPOCH; s++) /* the schedules reach every answer, and often */
        assert_true(count[s] > rounds);
    assert_true(rotations > rounds);
}

static void the_duplicate_checker_finds_duplicates(void **state)
{
    (void)state;
    struct idcheck c = {0};
    uint64_t example = 0;
    assert_int_equal(idcheck_duplicates(&c, &example), 0);
    idcheck_add(&c, 100, 10);
    idcheck_add(&c, 50, 50);
    idcheck_add(&c, 110, 1);
    assert_int_equal(idcheck_duplicates(&c, &example), 0);
    idcheck_add(&c, 99, 3);
    assert_int_equal(idcheck_duplicates(&c, &example), 3);
    idcheck_add(&c, 110, 1);
    assert_int_equal(idcheck_duplicates(&c, &example), 4);
    assert_int_equal(example, 110);
    assert_int_equal(c.ids, 65);
    idcheck_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_duplicate_checker_finds_duplicates),
        cmocka_unit_test(random_schedules_never_repeat_an_id),
    };
    return cmocka_run_group_tests_name("ids/snowflake, by chance", tests, NULL, NULL);
}
