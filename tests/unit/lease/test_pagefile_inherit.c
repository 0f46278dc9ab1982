/* The page's file, taken over with its lock by the program that comes next in the process. */
#include "lease/pagefile.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COORDINATOR "redis://10.0.0.1:6379/0|default"
#define LO          INT64_C(1780000000000)

static char dir[64], page_path[96], aside_path[96], generation_path[96];
static struct pagefile before; /* the program before's: not closed by it */
static struct pagefile_left left;
static struct page proof;

static int begin(void **state)
{
    (void)state;
    struct err e;
    struct page_record r = {.state = PAGE_HELD, .worker = 7, .lo_ms = LO, .hi_ms = LO + 1000};
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-left-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(page_path, sizeof page_path, "%s/worker.page", dir);
    (void)snprintf(aside_path, sizeof aside_path, "%s/worker.page.aside", dir);
    (void)snprintf(generation_path, sizeof generation_path, "%s/worker.generation", dir);
    if (pagefile_inherit(&before, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e))
        return -1;
    page_set_identity(before.page, "some-pool");
    mark_store(&before.page->slot[2].mark, LO + 5);
    page_store(before.page, 2, &r);
    proof = *before.page;
    left = (struct pagefile_left){.fd = dup(before.fd), .page = &proof};
    return left.fd < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    pagefile_close(&before);
    (void)unlink(page_path);
    (void)unlink(aside_path);
    (void)unlink(generation_path);
    return rmdir(dir);
}

static bool locked(void)
{
    int fd = open(page_path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    bool taken = flock(fd, LOCK_EX | LOCK_NB) < 0;
    (void)close(fd);
    return taken;
}

static void inherit(struct pagefile *f, const char *coordinator)
{
    struct err e;
    if (pagefile_inherit(f, dir, coordinator, PAGEFILE_SAVES_WAITING, &left, &e))
        fail_msg("%s", e.text);
}

static void a_page_as_it_was_left_is_proven_and_stays_locked(void **state)
{
    (void)state;
    struct pagefile f;
    inherit(&f, COORDINATOR);
    assert_true(f.found && f.verdict == PAGE_OWN && f.proven);
    assert_int_equal(f.fd, left.fd);
    assert_true(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
    pagefile_close(&before);
    before.page = NULL;
    before.fd = -1;
    assert_true(locked());
    pagefile_close(&f);
    assert_false(locked());
}

static void one_that_changed_since_is_not_proven(void **state)
{
    (void)state;
    struct pagefile f;
    mark_store(&before.page->slot[2].mark, LO + 6);
    inherit(&f, COORDINATOR);
    assert_true(f.verdict == PAGE_OWN && !f.proven);
    pagefile_close(&f);
}

static void one_without_its_copy_is_not_proven(void **state)
{
    (void)state;
    struct pagefile f;
    left.page = NULL;
    inherit(&f, COORDINATOR);
    assert_true(f.verdict == PAGE_OWN && !f.proven);
    pagefile_close(&f);
}

static void of_another_coordinator_nothing_is_proven(void **state)
{
    (void)state;
    struct pagefile f;
    inherit(&f, "redis://10.0.0.2:6379/0|default");
    assert_true(f.found && f.verdict == PAGE_FOREIGN && !f.proven);
    pagefile_close(&f);
}

/* A page begun here is of the generation that stands there: the next start takes it over. */
static void of_another_coordinator_a_page_is_begun(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    inherit(&f, "redis://10.0.0.2:6379/0|default");
    pagefile_close(&f);
    assert_int_equal(pagefile_inherit(&f, dir, "redis://10.0.0.2:6379/0|default",
                                      PAGEFILE_SAVES_WAITING, NULL, &e),
                     ERR_OK);
    assert_int_equal(f.verdict, PAGE_OWN);
    pagefile_close(&f);
}

/* What stands at the path counts, as for every later start; the old lock is given up. */
static void another_file_at_the_path_is_opened_as_ever(void **state)
{
    (void)state;
    struct pagefile f;
    assert_int_equal(rename(page_path, aside_path), 0);
    inherit(&f, COORDINATOR);
    assert_true(!f.found && !f.proven && f.fd >= 0);
    pagefile_close(&f);
}

static void a_copy_at_the_path_is_foreign(void **state)
{
    (void)state;
    struct pagefile f;
    assert_int_equal(rename(page_path, aside_path), 0);
    int fd = open(page_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, &proof, sizeof proof), sizeof proof);
    (void)close(fd);
    inherit(&f, COORDINATOR);
    assert_true(f.found && f.verdict == PAGE_FOREIGN && !f.proven);
    pagefile_close(&f);
}

static void without_anything_left_it_is_opened_as_ever(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    (void)close(left.fd);
    left.fd = -1;
    assert_int_equal(pagefile_inherit(&f, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, &left, &e),
                     ERR_BUSY);
    pagefile_close(&before);
    before.fd = -1;
    before.page = NULL;
    inherit(&f, COORDINATOR);
    assert_true(f.verdict == PAGE_OWN && !f.proven);
    pagefile_close(&f);
}

static bool alone(const struct pagefile_place *ours)
{
    struct err e;
    enum err_code r = pagefile_alone(dir, ours, &e);
    assert_true(r == ERR_OK || (r == ERR_BUSY && strstr(e.text, "worker.page is locked by")));
    return r == ERR_OK;
}

/* Of another one it counts whether somebody runs on it; and the look leaves no lock. */
static void who_runs_on_a_page_of_another_place_is_seen(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(fstat(before.fd, &st), 0);
    struct pagefile_place ours = {.device = st.st_dev, .inode = st.st_ino}, none = {0, 0};
    assert_true(alone(&ours));
    ours.inode++;
    assert_false(alone(&ours));
    assert_false(alone(&none));
    pagefile_close(&before);
    before.page = NULL;
    before.fd = -1;
    assert_false(alone(&none)); /* the lock is with whom it was left to */
    (void)close(left.fd);
    left.fd = -1;
    assert_true(alone(&none));
    assert_false(locked());
    assert_int_equal(unlink(page_path), 0);
    assert_true(alone(&none));
}

#define LEFT(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEFT(a_page_as_it_was_left_is_proven_and_stays_locked),
        LEFT(one_that_changed_since_is_not_proven),
        LEFT(one_without_its_copy_is_not_proven),
        LEFT(of_another_coordinator_nothing_is_proven),
        LEFT(of_another_coordinator_a_page_is_begun),
        LEFT(another_file_at_the_path_is_opened_as_ever),
        LEFT(a_copy_at_the_path_is_foreign),
        LEFT(without_anything_left_it_is_opened_as_ever),
        LEFT(who_runs_on_a_page_of_another_place_is_seen),
    };
    return cmocka_run_group_tests_name("lease/pagefile_inherit", tests, NULL, NULL);
}
