/* Many who want numbers of one sequence, and some of them more than there are. */
#include "support/fake_supply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct fake_sequence sequences[] = {
    {.name = "strict", .start = 1, .increment = 1, .top = 400, .strict = true},
    {.name = "plain", .start = 1, .increment = 1, .top = 4000},
};

static struct sequence_table table;
static struct fake_supply supply;
static int64_t mono;

static unsigned ask_of(const char *name, uint32_t n, int64_t *ticket, struct generator_run *out)
{
    struct generator_ask ask = {
        .now_ms = 1790000000123, .mono_ms = mono, .n = n, .ticket = ticket, .until_ms = INT64_MAX};
    struct generator *g =
        sequence_table_entry(&table.base, span_str(name), span_of("", 0))->generator;
    *out = (struct generator_run){0};
    return g->kind->next(g, &ask, out);
}

static unsigned ask_for(uint32_t n, int64_t *ticket, struct generator_run *out)
{
    return ask_of("strict", n, ticket, out);
}

/* They would be asked for in one call, and refused in one. */
static void who_is_refused_at_once_is_not_asked_for_with_others(void **state)
{
    (void)state;
    struct generator_run run;
    int64_t many = 0, one = 0;
    assert_int_equal(ask_for(500, &many, &run), SEQUENCE_WAITS);
    for (int i = 0; i < 3; i++) { /* it is known; it is asked for; it is refused */
        fake_supply_serve(&supply, mono);
        (void)ask_for(500, &many, &run);
    }
    many = 0;
    assert_int_equal(ask_for(500, &many, &run), SEQUENCE_USED_UP);
    assert_int_equal(ask_for(1, &one, &run), SEQUENCE_WAITS);
    fake_supply_serve(&supply, mono);
    assert_int_equal(ask_for(1, &one, &run), SEQUENCE_GIVEN);
    assert_int_equal(run.first, 1);
}

/* Or who waits as long as it takes to ask again, and no longer, is told less than is known. */
static void a_refusal_is_told_while_it_is_asked_again(void **state)
{
    (void)state;
    struct generator_run run;
    int64_t one = 0;
    supply.how = SEQUENCE_LATER;
    assert_int_equal(ask_for(1, &one, &run), SEQUENCE_SPENT);
    fake_supply_serve(&supply, mono);
    assert_int_equal(ask_for(1, &one, &run), SEQUENCE_LATER);
    mono += 3600000;
    assert_int_equal(ask_for(1, &one, &run), SEQUENCE_LATER);
    supply.how = 0;
    fake_supply_serve(&supply, mono);
    assert_int_equal(ask_for(1, &one, &run), SEQUENCE_GIVEN);
}

/* "Not yet" is for those who start; who was served before asks again later. */
static void who_waits_is_told_whether_any_numbers_have_come(void **state)
{
    (void)state;
    struct generator_run run;
    int64_t one = 0, many = 0;
    assert_int_equal(ask_of("plain", 1, &one, &run), SEQUENCE_WAITS);
    assert_int_equal(sequence_kind.causes[SEQUENCE_WAITS].status, ISSUE_LOADING);
    fake_supply_serve(&supply, mono);
    assert_int_equal(ask_of("plain", 1, &one, &run), SEQUENCE_GIVEN);
    assert_int_equal(ask_of("plain", 500, &many, &run), SEQUENCE_SPENT);
    assert_int_equal(sequence_kind.causes[SEQUENCE_SPENT].status, ISSUE_AGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_refused_at_once_is_not_asked_for_with_others),
        cmocka_unit_test(a_refusal_is_told_while_it_is_asked_again),
        cmocka_unit_test(who_waits_is_told_whether_any_numbers_have_come)};
    mono = 5000;
    fake_supply_table(&table, 16);
    supply.table = &table;
    supply.sequence = sequences;
    supply.nsequences = sizeof sequences / sizeof *sequences;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sequence_table_clear(&table);
    return failed;
}
