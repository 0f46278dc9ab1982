/* What the kind makes of a layout: how many in a row, how far apart, and the parts of an ID. */
#include "ids/snowflake_generator.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_as_long_as_a_unit),
        cmocka_unit_test(where_they_are_a_stride_apart_there_is_no_row),
        cmocka_unit_test(an_id_is_taken_apart_by_its_layout),
    };
    return cmocka_run_group_tests_name("ids/snowflake_generator", tests, NULL, NULL);
}
