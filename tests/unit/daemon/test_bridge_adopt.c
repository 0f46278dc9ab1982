/* What the loop begins with after a start: the counters that the state page has. */
#include "daemon/bridge_sequences.h"
#include "support/fake_supply.h"
#include "unit/lease/sequences_bench.h"

static struct sequence_table table;

/* A life that had numbers of two, and the next one. */
static void live(void)
{
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    make("tickets", &d);
    start();
    must_have(0, "orders", 10);
    must_have(1, "tickets", 10);
    killed();
}

static void what_the_page_has_is_at_its_place(void **state)
{
    (void)state;
    live();
    fake_supply_table(&table, COUNTERS);
    bridge_sequences_adopt(&table, b.sequences);
    assert_string_equal(table.place[0].of.name, "orders");
    assert_string_equal(table.place[1].of.name, "tickets");
    assert_int_equal(table.top, 2);
    sequence_table_clear(&table);
}

/* Its numbers must not come to whoever has the place then. */
static void what_cannot_be_adopted_is_forgotten(void **state)
{
    (void)state;
    live();
    fake_supply_table(&table, COUNTERS);
    assert_true(sequence_table_adopt(&table, 0, &(struct sequence_name){.name = "others"}));
    capture_begin();
    bridge_sequences_adopt(&table, b.sequences);
    assert_non_null(strstr(capture_end(), "cannot be taken over sequence=orders"));
    assert_null(sequences_found(b.sequences, 0));
    assert_string_equal(sequences_found(b.sequences, 1)->name, "tickets");
    assert_int_equal(report()->dropped, 10);
    sequence_table_clear(&table);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_tmpfs, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_page_has_is_at_its_place),
        TEST(what_cannot_be_adopted_is_forgotten),
    };
    return cmocka_run_group_tests_name("daemon/bridge_adopt", tests, NULL, NULL);
}
