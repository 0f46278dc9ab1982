#include "coord/sole.h"

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

struct fixture {
    char dir[64], db[96], trace[128], away[80];
    struct sole a, b; /* descriptors of their own: as of two processes */
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.a = SOLE_INIT, .b = SOLE_INIT};
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/sidflake-sole-XXXXXX");
    if (!mkdtemp(f.dir))
        return -1;
    (void)snprintf(f.db, sizeof f.db, "%s/pool.db", f.dir);
    (void)snprintf(f.trace, sizeof f.trace, "%s/.pool.db-tally.0", f.dir);
    (void)snprintf(f.away, sizeof f.away, "%s.away", f.dir);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sole_end(&f->a);
    sole_end(&f->b);
    (void)unlink(f->trace);
    return rmdir(f->dir);
}

static void the_first_is_told_from_one_who_comes_after_others(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sole_look(&f->a, f->db), SOLE_FIRST);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_FIRST); /* nobody asked for a workerId yet */
    assert_int_equal(sole_hold(&f->a, f->db), 0);
    assert_int_equal(sole_look(&f->a, f->db), SOLE_UNKNOWN); /* it is no newcomer itself */
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    assert_int_equal(sole_hold(&f->b, f->db), 0); /* they exclude nobody */
    sole_end(&f->b);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    sole_end(&f->a);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_UNKNOWN);
    assert_int_equal(unlink(f->trace), 0);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_FIRST);
}

/* rm -r, mv or mount: the path is the same, and the one who uses it lives. */
static void a_directory_that_is_another_now_hides_nobody(void **state)
{
    struct fixture *f = *state;
    char trace[128];
    (void)snprintf(trace, sizeof trace, "%s/.pool.db-tally.0", f->away);
    assert_int_equal(sole_hold(&f->a, f->db), 0);
    assert_int_equal(rename(f->dir, f->away), 0);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_UNKNOWN); /* there is none */
    assert_int_equal(mkdir(f->dir, 0700), 0);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    int dir;
    assert_int_equal(sole_enter(&f->a, f->db, &dir), 0); /* it sees the new one, and moves there */
    assert_int_equal(access(f->trace, F_OK), 0);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    sole_end(&f->a);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_UNKNOWN);
    assert_int_equal(unlink(trace), 0);
    assert_int_equal(rmdir(f->away), 0);
}

static void one_path_in_other_words_is_one(void **state)
{
    struct fixture *f = *state;
    char odd[128];
    (void)snprintf(odd, sizeof odd, "/tmp//./%s/./pool.db", strrchr(f->dir, '/') + 1);
    assert_int_equal(sole_hold(&f->a, odd), 0);
    int dir = open(".", O_RDONLY | O_CLOEXEC);
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(sole_look(&f->b, "./pool.db"), SOLE_OTHERS);
    assert_int_equal(fchdir(dir), 0);
    (void)close(dir);
}

static void another_name_of_the_directory_hides_nobody(void **state)
{
    struct fixture *f = *state;
    char link[96], by_link[128], trace[128];
    (void)snprintf(link, sizeof link, "%s.link", f->dir);
    (void)snprintf(by_link, sizeof by_link, "%s/../%s/pool.db", link, strrchr(link, '/') + 1);
    (void)snprintf(trace, sizeof trace, "%s/.pool.db-tally.0", f->away);
    assert_int_equal(symlink(f->dir, link), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sole_hold(&f->a, i ? f->db : by_link), 0);
        assert_int_equal(rename(f->dir, f->away), 0);
        assert_int_equal(mkdir(f->dir, 0700), 0);
        assert_int_equal(sole_look(&f->b, i ? by_link : f->db), SOLE_OTHERS);
        sole_end(&f->a);
        sole_end(&f->b);
        assert_int_equal(unlink(trace), 0);
        assert_int_equal(rmdir(f->away), 0);
    }
    assert_int_equal(unlink(link), 0);
}

static void files_of_one_directory_are_apart(void **state)
{
    struct fixture *f = *state;
    char other[128];
    (void)snprintf(other, sizeof other, "%s/other.db", f->dir);
    assert_int_equal(sole_hold(&f->a, f->db), 0);
    assert_int_equal(sole_look(&f->b, other), SOLE_FIRST);
}

static void a_long_path_is_locked_at_its_root(void **state)
{
    struct fixture *f = *state;
    char deep[SOLE_DEPTH + 2][128], db[160];
    (void)snprintf(deep[0], sizeof deep[0], "%s/d", f->dir);
    for (size_t i = 1; i < SOLE_DEPTH + 2; i++)
        (void)snprintf(deep[i], sizeof deep[i], "%.100s/d", deep[i - 1]);
    for (size_t i = 0; i < SOLE_DEPTH + 2; i++)
        assert_int_equal(mkdir(deep[i], 0700), 0);
    (void)snprintf(db, sizeof db, "%s/pool.db", deep[SOLE_DEPTH + 1]);
    assert_int_equal(sole_hold(&f->a, db), 0);
    assert_int_equal(f->a.n, SOLE_DEPTH);
    assert_int_equal(rename(deep[0], f->away), 0);
    for (size_t i = 0; i < SOLE_DEPTH + 2; i++)
        assert_int_equal(mkdir(deep[i], 0700), 0);
    assert_int_equal(sole_look(&f->b, db), SOLE_OTHERS);
    assert_int_equal(system("rm -rf /tmp/sidflake-sole-*.away /tmp/sidflake-sole-*/d"), 0);
}

static void a_link_tells_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(symlink("elsewhere.db", f->db), 0);
    assert_int_equal(sole_look(&f->a, f->db), SOLE_UNKNOWN);
    assert_int_equal(unlink(f->db), 0);
    assert_int_equal(sole_look(&f->a, f->db), SOLE_FIRST);
    assert_int_equal(symlink("elsewhere", f->trace), 0); /* somebody's, who is up to something */
    assert_int_equal(sole_look(&f->b, f->db), SOLE_UNKNOWN);
}

/* Whoever came later would think himself the first. */
static void a_holder_that_would_not_be_seen_is_none(void **state)
{
    struct fixture *f = *state;
    char away[96];
    (void)snprintf(away, sizeof away, "%s/none/pool.db", f->dir);
    assert_int_equal(sole_hold(&f->a, away), ENOENT);
    bool root = geteuid() == 0;
    assert_int_equal(chmod(f->dir, root ? 0755 : 0500), 0);
    assert_true(!root || seteuid(65534) == 0);
    int fault = sole_hold(&f->b, f->db);
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(fault, EACCES);
    assert_false(f->b.holder);
    assert_int_equal(chmod(f->dir, 0700), 0);
    assert_int_equal(symlink("nowhere/trace", f->trace), 0);
    assert_int_equal(sole_hold(&f->b, f->db), 0); /* a trace, if an odd one */
}

static void a_directory_that_is_not_of_one_host_tells_nothing(void **state)
{
    (void)state;
    struct sole s = SOLE_INIT;
    assert_int_equal(sole_look(&s, "/proc/pool.db"), SOLE_UNKNOWN);
    sole_end(&s);
    assert_int_equal(sole_look(&s, "/nonexistent/pool.db"), SOLE_UNKNOWN);
    sole_end(&s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_is_told_from_one_who_comes_after_others),
        TEST(a_directory_that_is_another_now_hides_nobody),
        TEST(one_path_in_other_words_is_one),
        TEST(another_name_of_the_directory_hides_nobody),
        TEST(files_of_one_directory_are_apart),
        TEST(a_long_path_is_locked_at_its_root),
        TEST(a_link_tells_nothing),
        TEST(a_holder_that_would_not_be_seen_is_none),
        cmocka_unit_test(a_directory_that_is_not_of_one_host_tells_nothing),
    };
    return cmocka_run_group_tests_name("coord/sole", tests, NULL, NULL);
}
