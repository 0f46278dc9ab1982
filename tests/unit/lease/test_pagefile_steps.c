/*
 * A page is replaced by another one, and between any two steps of that the process is killed, a
 * step fails, or somebody else starts on the same directory: what the old page knew is never lost.
 */
#include "pagefile_rig.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STEPS_MAX 40
#define NOW       "static:7|default"

enum what {
    KILL,
    FAIL,
    ANOTHER
};

/* What happens before step `at`, the first being 1; 0: nothing. */
static struct {
    unsigned at, done;
    enum what what;
    struct pagefile second;
    enum err_code second_r;
} plan;

static enum err_code open_alone(struct pagefile *f)
{
    struct err e;
    return pagefile_inherit(f, dir, NOW, PAGEFILE_KNOWS_ALONE, NULL, &e);
}

/* true: it is to fail. */
static bool step(void)
{
    if (plan.at == 0 || ++plan.done != plan.at)
        return false;
    plan.at = 0;
    if (plan.what == KILL)
        (void)raise(SIGKILL);
    if (plan.what == ANOTHER)
        plan.second_r = open_alone(&plan.second);
    errno = ENOSPC;
    return plan.what == FAIL;
}

/* In place of the C library's. */
int flock(int fd, int operation)
{
    return step() ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int posix_fallocate(int fd, off_t offset, off_t len)
{
    if (step())
        return ENOSPC;
    return syscall(SYS_fallocate, fd, 0, offset, len) < 0 ? errno : 0;
}

int unlink(const char *path)
{
    return step() ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int link(const char *from, const char *to)
{
    return step() ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int rename(const char *from, const char *to)
{
    return step() ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void begin(unsigned at, enum what what)
{
    memset(&plan, 0, sizeof plan);
    plan.second.fd = -1;
    leave_a_page(); /* of another coordinator */
    plan.at = at;
    plan.what = what;
}

/* Takes away what is there, too. */
static void assert_known(unsigned at)
{
    struct pagefile f;
    assert_int_equal(open_alone(&f), ERR_OK);
    if (page_floor(f.page) != LO + 5)
        fail_msg("step %u: expected the floor %lld, found %lld", at, (long long)(LO + 5),
                 (long long)page_floor(f.page));
    pagefile_close(&f);
    (void)unlink(page_path);
    (void)unlink(aside_path);
    (void)unlink(generation_path);
    (void)unlink(made_path);
}

static void whoever_is_killed_leaves_what_was_known(void **state)
{
    (void)state;
    unsigned killed = 0;
    for (unsigned at = 1; at <= STEPS_MAX; at++) {
        begin(at, KILL);
        pid_t child = fork();
        if (child == 0) {
            struct pagefile f;
            _exit(open_alone(&f) != ERR_OK);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        killed += WIFSIGNALED(status);
        plan.at = 0;
        assert_known(at);
    }
    assert_true(killed >= 7 && killed < STEPS_MAX);
}

static void whatever_fails_leaves_what_was_known(void **state)
{
    (void)state;
    unsigned refused = 0, went_on = 0;
    for (unsigned at = 1; at <= STEPS_MAX; at++) {
        struct pagefile f;
        begin(at, FAIL);
        enum err_code r = open_alone(&f);
        bool failed = plan.at == 0;
        plan.at = 0;
        refused += r != ERR_OK;
        went_on += failed && r == ERR_OK;
        if (r == ERR_OK)
            assert_int_equal(page_floor(f.page), LO + 5);
        pagefile_close(&f);
        assert_known(at);
    }
    assert_true(refused >= 4);
    assert_true(went_on >= 3); /* without one aside, or a generation */
}

/* One of the two has it at most, and it knows. */
static void whoever_comes_meanwhile_finds_it_locked_or_whole(void **state)
{
    (void)state;
    unsigned busy = 0;
    for (unsigned at = 1; at <= STEPS_MAX; at++) {
        struct pagefile f;
        begin(at, ANOTHER);
        enum err_code r = open_alone(&f);
        bool came = plan.at == 0;
        plan.at = 0;
        bool second = came && plan.second_r == ERR_OK;
        if ((r == ERR_OK) == second)
            fail_msg("step %u: expected one to start, found %s", at, second ? "two" : "none");
        assert_int_equal(page_floor(second ? plan.second.page : f.page), LO + 5);
        busy += came && plan.second_r == ERR_BUSY;
        pagefile_close(&f);
        pagefile_close(&plan.second);
        assert_known(at);
    }
    assert_true(busy >= 6);
}

/* There is no room for a second page: the one that is there stays, and is told. */
static void a_full_directory_keeps_the_page(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e = {.text = ""};
    if (mount("none", dir, "tmpfs", 0, "size=64k,nr_inodes=4") < 0) {
        print_message("skipped: a file system to fill wants root\n");
        skip();
    }
    begin(0, KILL); /* the directory, the page, its generation: one is left */
    FILE *filler = fopen(spare_path, "w");
    enum err_code r = pagefile_inherit(&f, dir, NOW, PAGEFILE_KNOWS_ALONE, NULL, &e);
    pagefile_close(&f);
    if (filler)
        (void)fclose(filler);
    (void)unlink(spare_path);
    enum err_code later = open_alone(&f);
    int64_t floor = later ? 0 : page_floor(f.page);
    pagefile_close(&f);
    assert_int_equal(umount(dir), 0);
    assert_non_null(filler);
    assert_int_equal(r, ERR_IO);
    assert_non_null(strstr(e.text, "No space left"));
    assert_int_equal(later, ERR_OK);
    assert_int_equal(floor, LO + 5);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(whoever_is_killed_leaves_what_was_known),
        IN_DIR(whatever_fails_leaves_what_was_known),
        IN_DIR(whoever_comes_meanwhile_finds_it_locked_or_whole),
        IN_DIR(a_full_directory_keeps_the_page),
    };
    return cmocka_run_group_tests_name("lease/pagefile_steps", tests, NULL, NULL);
}
