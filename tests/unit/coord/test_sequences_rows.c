/*
 * What cannot be read, or nearly: a sequence whose rows are odd grants nothing, and is not taken
 * for one that is missing; answers at the end of what numbers there are, of what is skipped, and
 * of a pool that is closed.
 */
#include "coord/line.h"
#include "seq_rig.h"

#include <sqlite3.h>

static struct seq_grant g;

/* What somebody else wrote is never handed out. */
static void rows_that_cannot_be_read(void **state)
{
    static const char *const odd[][2] = {
        {"num a 1 -", "1 x 3"},
        {"num a 1 -", "1 9007199254740992 3 - 0 0 0 0"},
        {"seq a",
         "1 0 1 0 0 0 9 1 0 0 0 0 0 0 - - start=-9007199254740992 increment=1 begins=1 rate=0 "
         "burst=0 subs=0 reset=never offset=0 loss=trust order=sidecar cycle=no"},
        {"seq a", "1 2 3"}};
    (void)state;
    char out[256];
    begin(ONE(PAIR_REDIS));
    (void)create("a", lossy(SEQ_LOSS_TRUST), &g);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_true(SERVER_DO(&pair.server, out, "HSET", "sidflake:{p}:h", odd[i][0], odd[i][1]));
        assert_int_equal(take_of("a", 1, 1, &g), SEQ_UNREADABLE);
        assert_int_equal(set_to("a", 50, false, &g), SEQ_UNREADABLE);
    }
    assert_int_equal(create("a", lossy(SEQ_LOSS_TRUST), &g), SEQ_UNREADABLE);
    struct seq_list list;
    assert_int_equal(seq_list(pair.redis, SETUP_IDENTITY, &list, &reply), COORD_OK);
    assert_true(list.n == 1 && list.v[0].unreadable);
    free(list.v);
}

static void write_text(const char *key, const char *value)
{
    sqlite3 *db = NULL;
    char sql[256];
    (void)snprintf(sql, sizeof sql, "UPDATE text SET value = %s WHERE key = '%s'", value, key);
    assert_int_equal(sqlite3_open(pair.db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* One that is no text, or a longer one than any, is not one that is missing: the numbers would
 * begin anew. */
static void rows_of_sqlite_that_cannot_be_read(void **state)
{
    static const char *const odd[] = {"'1 x 3'", "NULL", "7", "zeroblob(9)", "hex(zeroblob(9999))"};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        begin(ONE(PAIR_SQLITE));
        (void)create("a", lossy(SEQ_LOSS_TRUST), &g);
        assert_int_equal(take_of("a", 5, 1, &g), SEQ_GRANTED);
        write_text("num a 1 -", odd[i]);
        assert_int_equal(take_of("a", 1, 2, &g), SEQ_UNREADABLE);
        assert_int_equal(set_to("a", 50, false, &g), SEQ_UNREADABLE);
        write_text("seq a", odd[i]);
        assert_int_equal(take_of("a", 1, 2, &g), SEQ_UNREADABLE);
        assert_int_equal(create("a", lossy(SEQ_LOSS_TRUST), &g), SEQ_UNREADABLE);
    }
}

/* A line that has reached the end leaves nothing, and what is next can still be told. */
static void a_line_ends_behind_the_last_index(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_definition d = skipping(5700000); /* for 50 years */
    d.begins_ms = 1;
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    (void)take_of("a", 1, 1, &g);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_USED_UP);
    assert_true(g.next == LINE_TOP && g.next == g.max + 1);
}

/* A file has 32,768 rows of them, which a name that does not exist is no reason to read. */
static void workerids_are_not_counted_for_a_number(void **state)
{
    (void)state;
    begin(EACH);
    assert_int_equal(create("a", lossy(SEQ_LOSS_REFUSE), &g), SEQ_DONE);
    toy_of(pair.toy)->counted = 0;
    assert_int_equal(take_of("none", 1, 1, &g), SEQ_UNKNOWN);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
    assert_int_equal(give_back("a", &g, 1, g.lo), SEQ_DONE);
    assert_int_equal(set_to("a", 50, false, &g), SEQ_DONE);
    assert_int_equal(toy_of(pair.toy)->counted, 0);
}

/* For `seq gaps`: by the line, and no more where nothing is skipped. */
static void what_a_grant_skips_is_counted(void **state)
{
    (void)state;
    struct seq_counters all;
    begin(FORGETTING);
    assert_int_equal(create("a", skipping(1000), &g), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 1, &g), SEQ_GRANTED);
    pair_restart(&pair);
    (void)take_of("a", 1, 2, &g);
    pair.clock.ms += 60000;
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    int64_t skipped = g.lo - 10;
    assert_true(skipped > 0);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_GRANTED);
    assert_int_equal(seq_show(pair.redis, SETUP_IDENTITY, "a", &all, &reply), COORD_OK);
    assert_true(all.n == 1 && all.v[0].gaps == skipped);
    free(all.v);
    assert_int_equal(seq_show(pair.toy, SETUP_IDENTITY, "a", &all, &reply), COORD_OK);
    assert_true(all.n == 1 && all.v[0].gaps == skipped);
    free(all.v);
}

/* The pool in its place goes on with what this one had. */
static void a_closed_pool_takes_no_order(void **state)
{
    (void)state;
    enum coord_status s;
    begin(EACH);
    assert_int_equal(create("a", lossy(SEQ_LOSS_REFUSE), &g), SEQ_DONE);
    const struct seq_create other = {.name = "b", .definition = lossy(SEQ_LOSS_REFUSE)};
    ALL(s, coord_close(c, SETUP_IDENTITY, false, &reply));
    assert_int_equal(s, COORD_OK);
    ALL(s, seq_create(c, SETUP_IDENTITY, &other, &g, &reply));
    assert_int_equal(s, COORD_CLOSED);
    ALL(s, seq_drop(c, SETUP_IDENTITY, "a", &g, &reply));
    assert_int_equal(s, COORD_CLOSED);
    ALL(s, coord_unclose(c, SETUP_IDENTITY, 0, &reply));
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
}

int main(void)
{
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_cannot_be_read),
        cmocka_unit_test(rows_of_sqlite_that_cannot_be_read),
        cmocka_unit_test(workerids_are_not_counted_for_a_number),
        cmocka_unit_test(a_line_ends_behind_the_last_index),
        cmocka_unit_test(what_a_grant_skips_is_counted),
        cmocka_unit_test(a_closed_pool_takes_no_order),
    };
    return cmocka_run_group_tests_name("coord/sequences_rows", tests, seq_setup, teardown);
}
