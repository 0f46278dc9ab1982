/* Sweeping a pool of many counters, and one that has no end. */
#include "lease/period_sweep.h"

#include "coord/seq_rows.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS   INT64_C(1790000000123)
#define IDENTITY "identity"

static struct blocks_counter counter;
static struct blocks blocks;
static struct seeded rng;
static struct period_sweep sweep;

/* ---- a store ----------------------------------------------------------------------------------
 */

static int64_t from, next; /* of the latest part: where it began, and what it answered */
static int parts;

static enum coord_status rows(struct coord *c, const char *identity, const char *prefix,
                              struct seq_rows *out, struct coord_reply *r)
{
    static const char state[] =
        "1 0 1 0 0 0 9 1 0 0 0 0 0 0 - - start=1 increment=1 begins=1 rate=0 burst=0 subs=0 "
        "reset=day offset=0 loss=refuse order=sidecar cycle=no";
    (void)c, (void)identity, (void)r;
    assert_true(seq_rows_add(out, span_str(prefix), span_str(state)));
    return COORD_OK;
}

static enum coord_status operate(struct coord *c, const char *identity, const struct seq_order *in,
                                 struct seq_grant *out, struct coord_reply *r)
{
    (void)c, (void)identity, (void)r;
    from = in->index;
    out->how = SEQ_DONE;
    out->next = next;
    parts++;
    return COORD_OK;
}

static const struct seq_driver sequences = {.rows = rows, .operate = operate};
static const struct coord_driver driver = {.sequences = &sequences};
static struct coord store = {.driver = &driver};

/* ---- what is asked ----------------------------------------------------------------------------
 */

static int setup(void **state)
{
    (void)state;
    counter = (struct blocks_counter){
        .open = true, .known = true, .whole = 1, .reset = PERIOD_DAY, .of = {.name = "daily"}};
    blocks = (struct blocks){.conf.counters = 1, .counter = &counter, .time_ms = NOW_MS};
    rng = seeded_of(1);
    period_sweep_init(&sweep, &rng.rng, 0);
    from = next = parts = 0;
    return 0;
}

static bool is_due_at(int64_t mono)
{
    int64_t until = INT64_MAX;
    return period_sweep_due(&sweep, &blocks, mono, &until);
}

static bool is_due(void)
{
    return is_due_at(2 * SWEEP_EVERY_MS);
}

static void a_part_at_a_time_is_asked_for(void **state)
{
    (void)state;
    assert_true(is_due());
    next = 7;
    period_sweep_call(&sweep, &store, IDENTITY);
    assert_int_equal(parts, 1);
    assert_true(is_due());
    next = 0;
    period_sweep_call(&sweep, &store, IDENTITY);
    assert_int_equal(from, 7);
    assert_false(is_due());
}

static void one_without_an_end_is_left_for_the_next_time(void **state)
{
    (void)state;
    next = 7;
    while (is_due() && parts <= SEQ_PARTS_MAX)
        period_sweep_call(&sweep, &store, IDENTITY);
    assert_int_equal(parts, SEQ_PARTS_MAX);
}

/* Of all its counters, subs and periods, one is enough. */
static void a_sequence_is_swept_once(void **state)
{
    struct blocks_counter two[2] = {counter, counter};
    (void)state;
    blocks.conf.counters = 2;
    blocks.counter = two;
    assert_true(is_due());
    period_sweep_call(&sweep, &store, IDENTITY);
    assert_false(is_due());
    assert_int_equal(parts, 1);
}

static void closes(const char *period)
{
    period_sweep_init(&sweep, &rng.rng, 0);
    assert_true(is_due());
    assert_string_equal(sweep.period, period);
}

/* It is 2026-09-22 by then. */
static void what_is_still_granted_stays(void **state)
{
    (void)state;
    closes("2026-09-21");
    counter.back_ms = INT64_C(400) * 24 * 3600000;
    closes("2025-08-17");
    counter.back_ms = NOW_MS + 2 * SWEEP_EVERY_MS - SWEEP_KEPT_MS - 1;
    closes("1970-01-01");
    counter.back_ms++;
    period_sweep_init(&sweep, &rng.rng, 0);
    assert_false(is_due());
}

/* By the page alone it is not known how long periods are open. */
static void who_knows_no_definition_sweeps_nothing(void **state)
{
    (void)state;
    counter.whole = 0;
    assert_false(is_due());
}

/* In a round two names may have one hash; in the next one they have others. */
static void none_of_many_sequences_is_left_out_for_ever(void **state)
{
    static struct blocks_counter many[64];
    bool swept[64] = {false};
    size_t n = 0;
    (void)state;
    blocks.conf.counters = 64;
    blocks.counter = many;
    for (int i = 0; i < 64; i++) {
        many[i] = counter;
        (void)snprintf(many[i].of.name, sizeof many[i].of.name, "hourly%d", i);
    }
    for (int64_t round = 1; round <= 20; round++)
        while (is_due_at(round * 2 * SWEEP_EVERY_MS)) {
            period_sweep_call(&sweep, &store, IDENTITY);
            bool *its = &swept[sweep.at - 1];
            n += !*its;
            *its = true;
        }
    assert_int_equal(n, 64);
}

/* What is closed is so for good: a year of it by a clock that is wrong for a moment would be a year
 * without numbers. */
static void a_clock_that_has_jumped_closes_nothing(void **state)
{
    (void)state;
    assert_false(is_due_at(1));
    blocks.time_ms += INT64_C(400) * 24 * 3600000;
    assert_false(is_due());
    blocks.time_ms = NOW_MS;
    assert_true(is_due_at(4 * SWEEP_EVERY_MS));
    assert_string_equal(sweep.period, "2026-09-21");
}

static void one_that_was_set_a_little_ahead_does_not_hinder(void **state)
{
    (void)state;
    assert_false(is_due_at(1));
    blocks.time_ms += 3600000;
    assert_true(is_due());
}

static void an_operators_sweep_has_an_end_too(void **state)
{
    struct seq_grant g;
    struct coord_reply r;
    (void)state;
    next = 7;
    assert_int_equal(seq_sweep(&store, IDENTITY, "daily", "", &g, &r), COORD_REFUSED);
    assert_int_equal(parts, SEQ_PARTS_MAX);
    assert_non_null(strstr(r.err.text, "expected an end"));
}

#define SWEEP(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {SWEEP(a_part_at_a_time_is_asked_for),
                                       SWEEP(one_without_an_end_is_left_for_the_next_time),
                                       SWEEP(a_sequence_is_swept_once),
                                       SWEEP(what_is_still_granted_stays),
                                       SWEEP(who_knows_no_definition_sweeps_nothing),
                                       SWEEP(none_of_many_sequences_is_left_out_for_ever),
                                       SWEEP(a_clock_that_has_jumped_closes_nothing),
                                       SWEEP(one_that_was_set_a_little_ahead_does_not_hinder),
                                       SWEEP(an_operators_sweep_has_an_end_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
