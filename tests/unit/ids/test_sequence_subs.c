/* Who asks for subs of a sequence that has none, and who asks beside. */
#include "support/fake_supply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MONO INT64_C(5000)

static struct fake_sequence sequences[] = {
    {.name = "plain", .start = 1, .increment = 1},
    {.name = "tenants", .start = 1, .increment = 1, .subs = true},
    {.name = "paged", .start = 1, .increment = 1, .late = true},
};

static struct sequence_table table;
static struct fake_supply supply;
static int64_t mono;

static int begin(void **state)
{
    (void)state;
    fake_supply_table(&table, 64); /* of which what is not known may have 16 */
    memset(&supply, 0, sizeof supply);
    supply.table = &table;
    supply.sequence = sequences;
    supply.nsequences = sizeof sequences / sizeof *sequences;
    sequences[0].subs = false;
    mono = MONO;
    return 0;
}

static int end(void **state)
{
    (void)state;
    sequence_table_clear(&table);
    return 0;
}

static unsigned ask(const char *name)
{
    int64_t ticket = 0;
    struct generator_run got;
    struct generator_ask a = {.mono_ms = mono, .n = 1, .ticket = &ticket, .until_ms = INT64_MAX};
    struct generator *g =
        sequence_table_entry(&table.base, span_str(name), span_of("", 0))->generator;
    return g->kind->next(g, &a, &got);
}

static unsigned take(const char *name)
{
    unsigned cause = ask(name);
    for (int i = 0; i < 4 && cause && sequence_kind.causes[cause].waits; i++) {
        fake_supply_serve(&supply, mono);
        cause = ask(name);
    }
    fake_supply_serve(&supply, mono);
    return cause;
}

static unsigned ask_sub(const char *of, unsigned i)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s:s%u", of, i);
    return ask(name);
}

static void many_subs_that_there_can_not_be_take_one_place(void **state)
{
    (void)state;
    assert_int_equal(take("plain"), 0);
    unsigned takes = supply.takes, opens = supply.opens;
    assert_int_equal(ask_sub("plain", 0), SEQUENCE_WAITS); /* that the log has it */
    for (unsigned i = 1; i < 200; i++)
        assert_int_equal(ask_sub("plain", i), SEQUENCE_NO_SUBS);
    fake_supply_serve(&supply, mono);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(ask_sub("plain", i), SEQUENCE_NO_SUBS);
    assert_int_equal(table.nunknown, 1);
    assert_int_equal(supply.opens, opens + 1);
    assert_int_equal(supply.takes, takes + 2); /* and a look at the sequence itself */
    assert_int_equal(take("tenants:a"), 0);
    assert_int_equal(take("plain"), 0);
}

/* Who forgot --subs need not ask for the sequence itself. */
static void what_one_sub_is_refused_for_is_known_of_the_others(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(ask_sub("plain", i), i < 16 ? SEQUENCE_WAITS : SEQUENCE_FULL);
    fake_supply_serve(&supply, mono);
    for (unsigned i = 20; i < 200; i++)
        assert_int_equal(ask_sub("plain", i), SEQUENCE_NO_SUBS);
    fake_supply_serve(&supply, mono);
    for (mono += 999; mono < MONO + 3000; mono += 999)
        assert_int_equal(ask_sub("plain", 300), SEQUENCE_NO_SUBS);
    assert_int_equal(take("tenants:a"), 0);
    assert_int_equal(take("plain"), 0);
}

static void one_that_is_made_again_with_subs_has_them(void **state)
{
    (void)state;
    assert_int_equal(take("plain"), 0);
    assert_int_equal(take("plain:a"), SEQUENCE_NO_SUBS);
    assert_int_equal(take("plain:b"), SEQUENCE_NO_SUBS);
    sequences[0].subs = true;
    unsigned takes = supply.takes;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(take("plain:b"), SEQUENCE_NO_SUBS);
    assert_int_equal(supply.takes, takes);
    mono += 1000;
    assert_int_equal(ask("plain:b"), SEQUENCE_NO_SUBS);
    fake_supply_serve(&supply, mono);
    assert_int_equal(supply.takes, takes + 1); /* a look, for all of them */
    assert_int_equal(take("plain:b"), 0);
}

/* Nothing but what is heard from the coordinator is gone by. */
static void what_is_not_told_of_a_sequence_is_asked(void **state)
{
    (void)state;
    assert_int_equal(take("paged"), 0);
    assert_int_equal(ask_sub("paged", 0), SEQUENCE_WAITS);
    assert_int_equal(ask_sub("paged", 1), SEQUENCE_WAITS);
    assert_int_equal(take("tenants"), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(ask_sub("tenants", i), SEQUENCE_WAITS);
    assert_int_equal(take("none:a"), SEQUENCE_UNKNOWN);
    assert_int_equal(take("none:b"), SEQUENCE_UNKNOWN);
}

static void one_that_was_dropped_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(take("plain"), 0);
    assert_int_equal(take("plain:a"), SEQUENCE_NO_SUBS);
    supply.nsequences = 0;
    mono += 1000;
    assert_int_equal(ask("plain:b"), SEQUENCE_NO_SUBS);
    fake_supply_serve(&supply, mono);
    assert_int_equal(take("plain:b"), SEQUENCE_UNKNOWN);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(many_subs_that_there_can_not_be_take_one_place),
        TEST(what_one_sub_is_refused_for_is_known_of_the_others),
        TEST(one_that_is_made_again_with_subs_has_them),
        TEST(what_is_not_told_of_a_sequence_is_asked),
        TEST(one_that_was_dropped_is_not_there),
    };
    return cmocka_run_group_tests_name("ids/sequence_subs", tests, NULL, NULL);
}
