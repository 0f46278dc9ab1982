#include "coord/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DB "/anywhere/pool.db"

struct fixture {
    char path[64];
    int dir;
};

static int setup(void **state)
{
    static struct fixture f;
    (void)snprintf(f.path, sizeof f.path, "/tmp/sidflake-tally-XXXXXX");
    if (!mkdtemp(f.path))
        return -1;
    f.dir = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = &f;
    return f.dir < 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[96];
    (void)close(f->dir);
    (void)snprintf(command, sizeof command, "rm -rf %s", f->path);
    return system(command);
}

static int64_t latest(const struct fixture *f)
{
    struct tally_name n = {.tick = -2};
    assert_int_equal(tally_look(f->dir, DB, &n), 0);
    return n.tick;
}

static void put(const struct fixture *f, const char *name)
{
    int fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static bool is_there(const struct fixture *f, const char *name)
{
    return faccessat(f->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void the_highest_stands_alone(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(latest(f), -1);
    assert_int_equal(tally_leave(f->dir, DB, 9, 0), 0);
    assert_int_equal(latest(f), 9);
    assert_int_equal(tally_leave(f->dir, DB, 10, 0), 0);
    assert_int_equal(latest(f), 10);
    assert_false(is_there(f, ".pool.db-tally.9"));
    assert_int_equal(tally_leave(f->dir, DB, 7, 0), 0); /* one who was late takes nothing back */
    assert_int_equal(latest(f), 10);
    assert_int_equal(tally_leave(f->dir, DB, 10, 0), 0);
    put(f, ".pool.db-tally.8"); /* a copy of the directory, put back over it */
    assert_int_equal(latest(f), 10);
}

static void other_names_are_none(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {
        ".pool.db-tally.",
        ".pool.db-tally.x",
        ".pool.db-tally.1x",
        ".pool.db-tally.1.",
        ".pool.db-tally.1.x",
        ".pool.db-tally.1.12345678901234567",
        ".pool.db-tally.1.2.3",
        ".pool.db-tally.-1",
        ".pool.db-tally",
        ".other.db-tally.5",
        "pool.db-tally.5",
        ".pool.db-tally. 5",
        ".pool.db-tally.1000000000000000",
        "..pool.db-tally.50",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(f, names[i]);
    assert_int_equal(latest(f), -1);
    assert_int_equal(tally_leave(f->dir, DB, 3, 0), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(is_there(f, names[i]));
}

static void a_name_says_which_transaction_it_is_of(void **state)
{
    struct fixture *f = *state;
    struct tally_name n;
    put(f, ".pool.db-tally.5"); /* which does not say */
    assert_int_equal(tally_leave(f->dir, DB, 5, 77), 0);
    assert_int_equal(tally_look(f->dir, DB, &n), 0);
    assert_int_equal(n.tick, 5);
    assert_int_equal(n.nonce, 77);
    assert_false(n.torn);
    assert_int_equal(tally_leave(f->dir, DB, 5, 78), 0);
    assert_int_equal(tally_look(f->dir, DB, &n), 0);
    assert_true(n.torn);
    assert_int_equal(tally_leave(f->dir, DB, 6, 77), 0);
    assert_int_equal(tally_look(f->dir, DB, &n), 0);
    assert_int_equal(n.tick, 6);
    assert_false(n.torn);
    assert_false(is_there(f, ".pool.db-tally.5.78"));
}

/* In whatever order they come, from one directory or two. */
static void two_of_one_tick_are_torn(void **state)
{
    (void)state;
    static const struct {
        struct tally_name a, b, both;
    } table[] = {
        {{-1, 0, false}, {4, 7, false}, {4, 7, false}},
        {{3, 9, true}, {4, 7, false}, {4, 7, false}},
        {{4, 7, false}, {4, 7, false}, {4, 7, false}},
        {{4, 0, false}, {4, 7, false}, {4, 7, false}},
        {{4, 8, false}, {4, 7, false}, {4, 8, true}},
        {{4, 7, true}, {4, 7, false}, {4, 7, true}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct tally_name one = table[i].a, other = table[i].b;
        tally_merge(&one, &table[i].b);
        tally_merge(&other, &table[i].a);
        assert_int_equal(one.tick, table[i].both.tick);
        assert_int_equal(one.nonce, table[i].both.nonce);
        assert_int_equal(one.torn, table[i].both.torn);
        assert_int_equal(other.tick, one.tick);
        assert_int_equal(other.torn, one.torn);
        assert_true(one.torn || other.nonce == one.nonce);
    }
}

static void what_cannot_be_told_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct tally_name n;
    char path[512];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(tally_leave(f->dir, path, 1, 0), ENAMETOOLONG);
    assert_int_equal(tally_look(-1, DB, &n), EBADF);
    assert_int_equal(symlinkat("nowhere", f->dir, ".pool.db-tally.4"), 0);
    assert_int_equal(tally_leave(f->dir, DB, 4, 0), ELOOP);
}

/* The transaction after it, in the same file. */
static void next(struct tally *t, int64_t known, int64_t device, const char *boot)
{
    struct tally_now now = {false, device, boot, "7:1.2", 1, (uint32_t)t->changes};
    tally_next(t, known, &now);
}

static void a_file_with_fewer_transactions_than_were_answered_takes_a_turn(void **state)
{
    (void)state;
    struct tally t = {.tick = 104, .turn = 7, .device = 1, .boot = "b", .inode = "7:1.2"};
    next(&t, 104, 1, "b");
    assert_int_equal(t.tick, 105);
    assert_int_equal(t.turn, 7);
    next(&t, 103, 1, "b"); /* committed, and not answered */
    next(&t, -1, 1, "b");  /* what stood beside is lost */
    assert_int_equal(t.tick, 107);
    assert_int_equal(t.turn, 7);
    next(&t, 108, 1, "b");
    assert_int_equal(t.tick, 109);
    assert_int_equal(t.turn, 109);
    next(&t, 109, 1, "b");
    assert_int_equal(t.turn, 109);
}

/* One more digit would be a name that is not counted, and never removed. */
static void the_largest_tick_can_be_left(void **state)
{
    struct fixture *f = *state;
    struct tally t = {.tick = 104, .turn = 7, .device = 1, .boot = "b", .inode = "7:1.2"};
    put(f, ".pool.db-tally.999999999999998");
    next(&t, latest(f), 1, "b");
    assert_int_equal(t.tick, TALLY_TICK_MAX);
    assert_int_equal(t.turn, TALLY_TICK_MAX);
    assert_int_equal(tally_leave(f->dir, DB, t.tick, 0), 0);
    assert_int_equal(latest(f), TALLY_TICK_MAX);
    assert_false(is_there(f, ".pool.db-tally.999999999999998"));
}

/* Numbers of devices are given anew by each boot. */
static void another_device_takes_a_turn_within_one_boot(void **state)
{
    (void)state;
    struct tally t = {.tick = 0};
    next(&t, -1, 1, "b");
    assert_int_equal(t.turn, 0);
    next(&t, 1, 2, "c");
    assert_int_equal(t.turn, 0);
    assert_int_equal(t.device, 2);
    next(&t, 2, 3, "c");
    assert_int_equal(t.turn, 3);
    next(&t, 3, 4, "");
    next(&t, 4, 5, "");
    assert_int_equal(t.turn, 3);
}

/* Other programs raise the count, too; after the largest it begins anew. */
static void an_older_first_page_takes_a_turn(void **state)
{
    (void)state;
    struct tally t = {.tick = 0};
    struct tally_now now = {false, 1, "b", "7:1.2", 1, 40};
    tally_next(&t, -1, &now); /* the tally of an earlier program */
    assert_int_equal(t.turn, 0);
    assert_int_equal(t.changes, 41);
    now.changes = 41;
    tally_next(&t, 1, &now);
    now.changes = 90;
    tally_next(&t, 2, &now);
    assert_int_equal(t.turn, 0);
    now.changes = 90;
    tally_next(&t, 3, &now);
    assert_int_equal(t.turn, 4);
    now.changes = UINT32_MAX;
    t.changes = UINT32_MAX;
    tally_next(&t, 4, &now);
    now.changes = 0;
    tally_next(&t, 5, &now);
    now.changes = 1;
    tally_next(&t, 6, &now);
    assert_int_equal(t.turn, 4);
    now.changes = UINT32_MAX;
    tally_next(&t, 7, &now);
    assert_int_equal(t.turn, 8);
}

static void what_is_lost_or_missing_takes_a_turn(void **state)
{
    (void)state;
    struct tally t = {.tick = 104, .turn = 7, .device = 1, .boot = "b", .inode = "7:1.2"};
    struct tally_now now = {true, 1, "b", "7:1.2", 1, 0};
    tally_next(&t, 104, &now); /* another 104 was answered than the file's */
    assert_int_equal(t.turn, 105);
    t.inode[0] = '\0'; /* an older page has the rows of the latest */
    next(&t, 105, 1, "b");
    assert_int_equal(t.turn, 106);
}

/* VACUUM INTO and .restore begin a count of their own. */
static void another_file_has_a_count_of_its_own(void **state)
{
    (void)state;
    struct tally t = {.tick = 0};
    struct tally_now now = {false, 1, "b", "7:1.2", 1, 500};
    tally_next(&t, -1, &now);
    now = (struct tally_now){false, 1, "b", "7:1.3", 1, 1};
    tally_next(&t, 1, &now);
    assert_int_equal(t.turn, 0);
    tally_next(&t, 2, &now);
    assert_int_equal(t.turn, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_highest_stands_alone),
        TEST(other_names_are_none),
        TEST(a_name_says_which_transaction_it_is_of),
        cmocka_unit_test(two_of_one_tick_are_torn),
        cmocka_unit_test(what_is_lost_or_missing_takes_a_turn),
        TEST(what_cannot_be_told_is_an_error),
        TEST(the_largest_tick_can_be_left),
        cmocka_unit_test(a_file_with_fewer_transactions_than_were_answered_takes_a_turn),
        cmocka_unit_test(another_device_takes_a_turn_within_one_boot),
        cmocka_unit_test(an_older_first_page_takes_a_turn),
        cmocka_unit_test(another_file_has_a_count_of_its_own),
    };
    return cmocka_run_group_tests_name("coord/tally", tests, NULL, NULL);
}
