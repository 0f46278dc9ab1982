#include "coord/sole.h"

#include <errno.h>
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
    char dir[64], db[96], trace[96];
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
    (void)snprintf(f.trace, sizeof f.trace, "%s/.sidflake-pool", f.dir);
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
    sole_yield(&f->a);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_FIRST); /* nobody had a workerId yet */
    sole_yield(&f->b);
    assert_true(sole_join(&f->a, f->db) && sole_hold(&f->a) == 0);
    assert_int_equal(sole_look(&f->a, f->db), SOLE_UNKNOWN); /* and it lets go of nothing */
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    sole_yield(&f->a); /* a holder stays one */
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    sole_end(&f->a);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_UNKNOWN);
    assert_true(sole_join(&f->b, f->db)); /* the lock was not kept */
    sole_yield(&f->b);
    assert_int_equal(unlink(f->trace), 0);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_FIRST);
}

static void who_looks_keeps_others_from_becoming_holders(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sole_look(&f->a, f->db), SOLE_FIRST);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    assert_false(sole_join(&f->b, f->db));
    sole_yield(&f->a);
    assert_true(sole_join(&f->b, f->db));
    assert_int_equal(sole_look(&f->a, f->db), SOLE_OTHERS);
    sole_yield(&f->b); /* it got none after all */
    assert_int_equal(sole_look(&f->a, f->db), SOLE_FIRST);
    assert_true(sole_hold(&f->a) == 0);                            /* it did */
    assert_true(sole_join(&f->b, f->db) && sole_hold(&f->b) == 0); /* and excludes nobody else */
}

static void a_link_tells_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(symlink("elsewhere.db", f->db), 0);
    assert_int_equal(sole_look(&f->a, f->db), SOLE_UNKNOWN);
    assert_int_equal(unlink(f->db), 0);
    assert_int_equal(sole_look(&f->a, f->db), SOLE_FIRST);
    assert_int_equal(symlink("elsewhere", f->trace), 0); /* somebody's, who is up to something */
    assert_int_equal(sole_look(&f->b, f->db), SOLE_OTHERS);
    sole_yield(&f->a);
    assert_int_equal(sole_look(&f->b, f->db), SOLE_UNKNOWN);
}

/* Whoever came later would think himself the first. */
static void a_holder_that_would_not_be_seen_is_none(void **state)
{
    struct fixture *f = *state;
    char away[96];
    (void)snprintf(away, sizeof away, "%s/none/pool.db", f->dir);
    assert_true(sole_join(&f->a, away));
    assert_int_equal(sole_hold(&f->a), ENOENT);
    bool root = geteuid() == 0;
    assert_int_equal(chmod(f->dir, root ? 0755 : 0500), 0);
    assert_true(!root || seteuid(65534) == 0);
    assert_true(sole_join(&f->b, f->db));
    int fault = sole_hold(&f->b);
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(fault, EACCES);
    assert_int_equal(chmod(f->dir, 0700), 0);
    assert_int_equal(symlink("nowhere/trace", f->trace), 0);
    assert_int_equal(sole_hold(&f->b), 0); /* a trace, if an odd one */
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_is_told_from_one_who_comes_after_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_looks_keeps_others_from_becoming_holders, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_link_tells_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_holder_that_would_not_be_seen_is_none, setup, teardown),
        cmocka_unit_test(a_directory_that_is_not_of_one_host_tells_nothing),
    };
    return cmocka_run_group_tests_name("coord/sole", tests, NULL, NULL);
}
