/* What the kind makes of a layout: how many in a row, how far apart, and the parts of an ID. */
#include "ids/snowflake_generator.h"

#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define EPOCH INT64_C(1767225600000)
#define T0    (EPOCH + 1000000)

static struct snowflake_generator gen;

static void start(const char *layout)
{
    struct layout l;
    assert_int_equal(layout_parse(span_str(layout), &l, NULL), ERR_OK);
    snowflake_generator_init(&gen, "");
    snowflake_generator_start(&gen, EPOCH, &l, 15, 1);
    assert_true(snowflake_grant(&gen.ids, 0, 38, T0 - 1, T0 + 3600000, NULL));
}

static unsigned ask(uint32_t n, struct generator_run *run)
{
    struct generator_ask a = {.now_ms = T0, .n = n};
    unsigned cause = gen.base.kind->next(&gen.base, &a, run);
    assert_true(!cause || a.until_ms == INT64_MAX);
    return cause;
}

static void a_row_is_as_long_as_a_unit(void **state)
{
    (void)state;
    struct generator_run run;
    start("js53");
    assert_int_equal(gen.base.kind->run(&gen.base, 1000), 128);
    assert_int_equal(gen.base.kind->run(&gen.base, 100), 100);
    /* What was asked for before a pool was found; else 129 would be of the next workerId. */
    assert_int_equal(ask(129, &run), SNOWFLAKE_TOO_MANY);
    assert_int_equal(ask(128, &run), SNOWFLAKE_OK);
    assert_int_equal(run.n, 128);
    assert_int_equal(run.stride, 1);
    struct refusal r = {&gen.base, SNOWFLAKE_TOO_MANY};
    assert_int_equal(refusal_status(r), ISSUE_WRONG);
    assert_non_null(strstr(refusal_text(r), "1 to 128 IDs in a row"));
}

/* Whoever is told the last of five would take the four below it for his. */
static void where_they_are_a_stride_apart_there_is_no_row(void **state)
{
    (void)state;
    struct generator_run run;
    int64_t one;
    start("sonyflake");
    assert_int_equal(gen.base.kind->run(&gen.base, 1000), 1);
    assert_int_equal(ask(5, &run), SNOWFLAKE_TOO_MANY);
    assert_int_equal(ask(1, &run), SNOWFLAKE_OK);
    struct generator_ask a = {.now_ms = T0, .n = 5};
    assert_int_equal(gen.base.kind->some(&gen.base, &a, &run), SNOWFLAKE_OK);
    assert_int_equal(run.n, 5);
    assert_int_equal(run.stride, 65536);
    assert_true(snowflake_generator_more(&gen.base, T0, &one));
    assert_true(one == generator_run_at(&run, 4) + 65536);
}

static void an_id_is_taken_apart_by_its_layout(void **state)
{
    (void)state;
    struct generator_run run;
    struct generator_part p[GENERATOR_PARTS];
    start("twitter");
    assert_int_equal(ask(3, &run), SNOWFLAKE_OK);
    assert_int_equal(gen.base.kind->decode(&gen.base, (uint64_t)run.first + 2, p), 6);
    static const struct {
        const char *name;
        int64_t value;
    } parts[] = {{"time", T0},       {"unix_ms", T0},   {"worker", 38},
                 {"worker_high", 1}, {"worker_low", 6}, {"sequence", 2}};
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(p[i].name, parts[i].name);
        assert_true(p[i].value == parts[i].value);
    }
    start("time:40,unit=10ms worker:6 zero:3 sequence:4");
    assert_int_equal(ask(1, &run), SNOWFLAKE_OK);
    assert_int_equal(gen.base.kind->decode(&gen.base, (uint64_t)run.first, p), 4);
    assert_true(p[1].value == T0 && p[2].value == 38 && p[3].value == 0);
    assert_int_equal(gen.base.kind->decode(&gen.base, (uint64_t)run.first | 16, p), 0);
    assert_int_equal(gen.base.kind->decode(&gen.base, UINT64_MAX, p), 0);
    gen.started = false;
    assert_int_equal(gen.base.kind->decode(&gen.base, (uint64_t)run.first, p), -1);
}

/* ---- ahead of the clock ------------------------------------------------------------------------
 */

static struct fake_clock clock_here;

static void start_ahead(bool borrow, bool hold)
{
    fake_clock_init(&clock_here, T0);
    snowflake_generator_init(&gen, "");
    snowflake_generator_ahead(&gen, borrow, hold, &clock_here.clock);
    snowflake_generator_start(&gen, EPOCH, &layout_usual, 15, 1);
    snowflake_generator_go_on(&gen, T0 - 1, 2000);
    assert_true(snowflake_grant(&gen.ids, 0, 38, T0 - 1, T0 + 3600000, NULL));
}

static void tell_time(int64_t ms)
{
    gen.trust = (struct snowflake_trust){ms, clock_mono_ms(&clock_here.clock), 2000, 30000};
}

/* Returns the cause; *ms is the time of the ID. */
static unsigned one(int64_t *ms, int64_t *until)
{
    struct generator_ask a = {.now_ms = clock_wall_ms(&clock_here.clock), .n = 1};
    struct generator_run run = {0};
    struct layout_parts p;
    unsigned cause = gen.base.kind->next(&gen.base, &a, &run);
    assert_int_equal(gen.base.kind->peek(&gen.base, a.now_ms), cause == SNOWFLAKE_FULL ? 0 : cause);
    assert_true(layout_decompose(&layout_usual, (uint64_t)run.first, &p));
    *ms = EPOCH + p.time;
    *until = a.until_ms;
    return cause;
}

static void a_clock_that_jumps_is_believed_as_far_as_the_coordinator(void **state)
{
    (void)state;
    int64_t ms, until;
    start_ahead(false, true);
    tell_time(T0);
    fake_clock_step(&clock_here, 7200000); /* above hi */
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 2000);
    fake_clock_pass(&clock_here, 500000); /* what has passed since is counted */
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 2500);
    for (int i = 1; i < 1024; i++)
        assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_FULL);
    assert_true(until == clock_wall_ms(&clock_here.clock) + 1); /* by the clock that waits */
    fake_clock_step(&clock_here, -7200000);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 2501);
}

/* What was put back in the place of its data has not heard of what was lent since. */
static void what_is_lent_is_told_anew_by_the_coordinator_alone(void **state)
{
    const struct snowflake_trust t = {T0, 1000, 2000, 30000};
    const struct snowflake_ahead a = {.borrow = true};
    (void)state;
    assert_true(snowflake_believed(&a, &t, T0, 1000).most_ms == T0 + 30000);
    assert_true(snowflake_believed(&a, &t, T0, 11000).most_ms == T0 + 30000);
    assert_true(snowflake_believed(&a, &t, T0, 61000).most_ms == T0 + 62000);
}

/* A Redis whose clock steps back has no IDs of a sidecar go back whose own is right. */
static void without_hold_the_clock_is_believed(void **state)
{
    (void)state;
    int64_t ms, until;
    start_ahead(true, false);
    tell_time(T0);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    fake_clock_pass(&clock_here, 60000000);
    tell_time(T0);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 60000);
    assert_false(gen.ids.wants_worker);
}

static void before_the_coordinator_has_told_the_time_none_is_lent(void **state)
{
    (void)state;
    int64_t ms, until;
    start_ahead(true, true);
    for (int i = 0; i < 1024; i++)
        assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_FULL);
    tell_time(T0);
    snowflake_generator_go_on(&gen, 0, 0); /* what is told counts for more */
    for (int i = 0; i < 100000; i++)
        assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 98);
}

/* As after a restart behind IDs of a clock that was ahead, which is right again. */
static void who_holds_above_every_range_says_from_when(void **state)
{
    (void)state;
    int64_t ms, until;
    struct refusal r = {&gen.base, SNOWFLAKE_CEILING};
    start_ahead(false, true);
    snowflake_generator_go_on(&gen, T0 + 7200000, 2000);
    tell_time(T0);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_CEILING);
    assert_non_null(strstr(refusal_text(r), "hold IDs go on from 2026-01-01T02:16:40.001Z, which"));
    assert_non_null(strstr(refusal_text(r), "none until about 2026-01-01T02:16:10.001Z"));
    assert_true(snowflake_generator_is_ahead(&gen));
    fake_clock_step(&clock_here, 7200000); /* above hi, too */
    assert_int_equal(one(&ms, &until), SNOWFLAKE_CEILING);
    assert_non_null(strstr(refusal_text(r), "each range of time held has ended"));
    fake_clock_step(&clock_here, -7200000);
    snowflake_extend(&gen.ids, 0, T0 + 7200001);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 7200001);
}

/* By the coordinator's clock, too, which was as wrong. What waits without a limit is to end soon.
 */
static void what_was_lent_by_a_wrong_clock_is_refused_once_used_up(void **state)
{
    (void)state;
    int64_t ms, until;
    struct refusal r = {&gen.base, SNOWFLAKE_CEILING};
    start_ahead(false, true);
    fake_clock_step(&clock_here, 3000000);
    tell_time(T0 + 3000000);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    fake_clock_step(&clock_here, -3000000);
    tell_time(T0);
    for (unsigned i = 1; i < LAYOUT_SEQUENCES; i++)
        assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 3000000);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_CEILING);
    assert_true(gen.ids.wants_renewal && !gen.ids.wants_worker);
    assert_non_null(strstr(refusal_text(r), "hold IDs go on from 2026-01-01T01:06:40.000Z, which"));
    fake_clock_pass(&clock_here, 2970000000); /* what may be lent is near */
    tell_time(T0 + 2970000);
    assert_int_equal(gen.base.kind->peek(&gen.base, clock_wall_ms(&clock_here.clock)), 0);
    fake_clock_pass(&clock_here, 1000);
    tell_time(T0 + 2970001);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_OK);
    assert_true(ms == T0 + 3000001);
}

static void nothing_is_ahead_before_a_pool_is_found(void **state)
{
    (void)state;
    int64_t ms, until;
    fake_clock_init(&clock_here, T0);
    snowflake_generator_init(&gen, "");
    snowflake_generator_ahead(&gen, true, true, &clock_here.clock);
    assert_int_equal(one(&ms, &until), SNOWFLAKE_NO_WORKER);
    assert_true(until == INT64_MAX);
    start_ahead(true, false);
    struct generator_ask a = {.now_ms = T0, .n = 1025};
    struct generator_run run;
    assert_int_equal(gen.base.kind->next(&gen.base, &a, &run), SNOWFLAKE_TOO_MANY);
    assert_int_equal(gen.base.kind->some(&gen.base, &a, &run), SNOWFLAKE_OK);
    assert_int_equal(run.n, 1024);
    snowflake_generator_init(&gen, "");
    snowflake_generator_ahead(&gen, false, false, NULL);
    assert_true(gen.base.kind == &snowflake_kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_as_long_as_a_unit),
        cmocka_unit_test(where_they_are_a_stride_apart_there_is_no_row),
        cmocka_unit_test(an_id_is_taken_apart_by_its_layout),
        cmocka_unit_test(a_clock_that_jumps_is_believed_as_far_as_the_coordinator),
        cmocka_unit_test(what_is_lent_is_told_anew_by_the_coordinator_alone),
        cmocka_unit_test(without_hold_the_clock_is_believed),
        cmocka_unit_test(before_the_coordinator_has_told_the_time_none_is_lent),
        cmocka_unit_test(who_holds_above_every_range_says_from_when),
        cmocka_unit_test(what_was_lent_by_a_wrong_clock_is_refused_once_used_up),
        cmocka_unit_test(nothing_is_ahead_before_a_pool_is_found),
    };
    return cmocka_run_group_tests_name("ids/snowflake_generator", tests, NULL, NULL);
}
