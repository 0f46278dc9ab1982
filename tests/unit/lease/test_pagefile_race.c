/*
 * Another process sets the page aside between this one's open and its lock: the locked file is then
 * not the one that stands at the path, and nobody else would respect its lock.
 */
#include "lease/pagefile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[96], aside[96], generation[96];
static unsigned renames; /* to be done, one before each lock */

/* In place of the C library's. */
int flock(int fd, int operation)
{
    if (renames > 0 && rename(path, aside) == 0)
        renames--;
    return (int)syscall(SYS_flock, fd, operation);
}

static void open_page(struct pagefile *f)
{
    struct err e;
    if (pagefile_inherit(f, dir, "redis://test", PAGEFILE_SAVES_WAITING, NULL, &e))
        fail_msg("%s", e.text);
}

static void the_locked_file_is_the_one_at_the_path(void **state)
{
    (void)state;
    struct pagefile f;
    struct stat ours, there;
    open_page(&f);
    pagefile_close(&f);
    renames = 2;
    open_page(&f);
    assert_int_equal(renames, 0);
    assert_int_equal(fstat(f.fd, &ours), 0);
    assert_int_equal(stat(path, &there), 0);
    assert_true(ours.st_dev == there.st_dev && ours.st_ino == there.st_ino);
    assert_false(f.found);
    pagefile_close(&f);
}

static int setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(dir, sizeof dir, "%s/sidflake-race-XXXXXX",
                   tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/worker.page", dir);
    (void)snprintf(aside, sizeof aside, "%s/worker.page.aside", dir);
    (void)snprintf(generation, sizeof generation, "%s/worker.generation", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(aside);
    (void)unlink(generation);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_locked_file_is_the_one_at_the_path),
    };
    return cmocka_run_group_tests_name("lease/pagefile_race", tests, setup, teardown);
}
