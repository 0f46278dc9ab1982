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
    int64_t n = -2;
    assert_int_equal(tally_look(f->dir, DB, &n), 0);
    return n;
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
    assert_int_equal(tally_leave(f->dir, DB, 9), 0);
    assert_int_equal(latest(f), 9);
    assert_int_equal(tally_leave(f->dir, DB, 10), 0);
    assert_int_equal(latest(f), 10);
    assert_false(is_there(f, ".pool.db-tally.9"));
    assert_int_equal(tally_leave(f->dir, DB, 7), 0); /* one who was late takes nothing back */
    assert_int_equal(latest(f), 10);
    assert_int_equal(tally_leave(f->dir, DB, 10), 0);
    put(f, ".pool.db-tally.8"); /* a copy of the directory, put back over it */
    assert_int_equal(latest(f), 10);
}

static void other_names_are_none(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {
        ".pool.db-tally.",    ".pool.db-tally.x",  ".pool.db-tally.1x",
        ".pool.db-tally.-1",  ".pool.db-tally",    ".other.db-tally.5",
        "pool.db-tally.5",    ".pool.db-tally. 5", ".pool.db-tally.1000000000000000",
        "..pool.db-tally.50",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(f, names[i]);
    assert_int_equal(latest(f), -1);
    assert_int_equal(tally_leave(f->dir, DB, 3), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(is_there(f, names[i]));
}

static void a_strangers_word_counts_where_not_everybody_writes(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    put(f, ".pool.db-tally.5");
    assert_int_equal(fchownat(f->dir, ".pool.db-tally.5", 4711, 4711, 0), 0);
    assert_int_equal(latest(f), 5);
    assert_int_equal(fchmod(f->dir, 01777), 0);
    assert_int_equal(latest(f), -1);
    put(f, "pool.db");
    assert_int_equal(latest(f), -1);
    assert_int_equal(fchownat(f->dir, "pool.db", 4711, 4711, 0), 0);
    assert_int_equal(latest(f), 5); /* the pool is his */
    assert_int_equal(fchownat(f->dir, "pool.db", 4712, 4711, 0), 0);
    assert_int_equal(latest(f), -1);
    assert_int_equal(fchmodat(f->dir, "pool.db", 0660, 0), 0);
    assert_int_equal(latest(f), -1); /* his group may be the directory's doing */
    assert_int_equal(fchmodat(f->dir, "pool.db", 0666, 0), 0);
    assert_int_equal(latest(f), 5); /* … or everybody's */
}

/* Who serves is another user than root most often, and then no pool.db tells it. */
static void ones_own_word_counts_where_everybody_writes(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(fchmod(f->dir, 01777), 0);
    assert_int_equal(seteuid(4711), 0);
    int why = tally_leave(f->dir, DB, 5);
    int64_t own = latest(f);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(seteuid(4712), 0);
    int64_t others = latest(f);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(why, 0);
    assert_int_equal(own, 5);
    assert_int_equal(others, -1);
}

static void what_cannot_be_told_is_an_error(void **state)
{
    struct fixture *f = *state;
    int64_t n;
    char path[512];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(tally_leave(f->dir, path, 1), ENAMETOOLONG);
    assert_int_equal(tally_look(-1, DB, &n), EBADF);
    assert_int_equal(symlinkat("nowhere", f->dir, ".pool.db-tally.4"), 0);
    assert_int_equal(tally_leave(f->dir, DB, 4), ELOOP);
}

/* The transaction after it, in the same file. */
static void next(struct tally *t, int64_t known, int64_t device, const char *boot)
{
    struct tally_now now = {device, boot, "7:1.2", 1, (uint32_t)t->changes};
    tally_next(t, known, &now);
}

static void a_file_with_fewer_transactions_than_were_answered_takes_a_turn(void **state)
{
    (void)state;
    struct tally t = {.tick = 104, .turn = 7, .device = 1, .boot = "b"};
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
static void the_largest_tick_stays(void **state)
{
    struct fixture *f = *state;
    struct tally t = {.tick = 104, .turn = 7, .device = 1, .boot = "b"};
    put(f, ".pool.db-tally.999999999999998");
    for (unsigned i = 0; i < 3; i++) {
        next(&t, latest(f), 1, "b");
        assert_int_equal(tally_leave(f->dir, DB, t.tick), 0);
        assert_int_equal(latest(f), 999999999999999);
        assert_false(is_there(f, ".pool.db-tally.999999999999998"));
        assert_int_equal(t.turn, 999999999999999);
    }
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
    struct tally_now now = {1, "b", "7:1.2", 1, 40};
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

/* VACUUM INTO and .restore begin a count of their own. */
static void another_file_has_a_count_of_its_own(void **state)
{
    (void)state;
    struct tally t = {.tick = 0};
    struct tally_now now = {1, "b", "7:1.2", 1, 500};
    tally_next(&t, -1, &now);
    now = (struct tally_now){1, "b", "7:1.3", 1, 1};
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
        TEST(a_strangers_word_counts_where_not_everybody_writes),
        TEST(ones_own_word_counts_where_everybody_writes),
        TEST(what_cannot_be_told_is_an_error),
        TEST(the_largest_tick_stays),
        cmocka_unit_test(a_file_with_fewer_transactions_than_were_answered_takes_a_turn),
        cmocka_unit_test(another_device_takes_a_turn_within_one_boot),
        cmocka_unit_test(an_older_first_page_takes_a_turn),
        cmocka_unit_test(another_file_has_a_count_of_its_own),
    };
    return cmocka_run_group_tests_name("coord/tally", tests, NULL, NULL);
}
