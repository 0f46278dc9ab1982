#include "pagefile_rig.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* ---- ordinary lives ---------------------------------------------------------------------------
 */

static void the_first_start_finds_nothing(void **state)
{
    (void)state;
    struct pagefile f;
    struct stat st;
    open_ok(&f);
    assert_false(f.found);
    assert_empty(f.page);
    assert_int_equal(f.page->head.pid, getpid());
    assert_int_equal(fstat(f.fd, &st), 0);
    assert_int_equal(st.st_size, PAGE_SIZE_BYTES);
    assert_true(st.st_blocks * 512 >= PAGE_SIZE_BYTES); /* preallocated */
    assert_int_equal(st.st_mode & 0777, 0600);
    pagefile_close(&f);
    pagefile_close(&f); /* twice is harmless */
    assert_true(exists(page_path));
}

static void the_directory_is_made(void **state)
{
    (void)state;
    struct pagefile f;
    assert_int_equal(rmdir(dir), 0);
    open_ok(&f);
    pagefile_close(&f);
}

static void the_next_start_takes_over(void **state)
{
    (void)state;
    struct pagefile f;
    open_ok(&f);
    hold_one(&f);
    pagefile_close(&f);
    open_ok(&f);
    assert_true(f.found);
    assert_int_equal(f.verdict, PAGE_OWN);
    assert_holds_one(f.page);
    assert_false(exists(aside_path));
    pagefile_close(&f);
}

/* What a killed process stored is in the page, though it wrote nothing by itself. */
static void a_killed_process_leaves_its_page(void **state)
{
    (void)state;
    struct pagefile f;
    pid_t child = fork();
    if (child == 0) {
        struct err e;
        if (pagefile_inherit(&f, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e))
            _exit(1);
        hold_one(&f);
        (void)raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    open_ok(&f);
    assert_int_equal(f.verdict, PAGE_OWN);
    assert_holds_one(f.page);
    assert_int_equal(f.page->head.pid, getpid());
    pagefile_close(&f);
}

/* ---- the lock ---------------------------------------------------------------------------------
 */

static void a_second_process_is_told_the_pid_of_the_first(void **state)
{
    (void)state;
    struct pagefile f;
    char pid[32];
    open_ok(&f);
    hold_one(&f);
    (void)snprintf(pid, sizeof pid, "pid %ld:", (long)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct pagefile second;
        struct err e;
        enum err_code r =
            pagefile_inherit(&second, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e);
        bool told = strstr(e.text, pid) && strstr(e.text, page_path);
        _exit(r == ERR_BUSY && told && second.fd == -1 && !second.page ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_holds_one(f.page);
    pagefile_close(&f);
    open_ok(&f); /* the lock went with the first */
    pagefile_close(&f);
}

/* Whoever waits at a file that was renamed must not end up with the old one. */
static void a_page_set_aside_while_it_is_opened_is_not_used(void **state)
{
    (void)state;
    struct pagefile f;
    struct stat ours, there;
    open_ok(&f);
    hold_one(&f);
    pagefile_close(&f);
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_int_equal(rename(spare_path, page_path), 0);
    open_ok(&f);
    assert_int_equal(fstat(f.fd, &ours), 0);
    assert_int_equal(stat(page_path, &there), 0);
    assert_true(ours.st_ino == there.st_ino);
    pagefile_close(&f);
}

/* ---- pages that are worth nothing -------------------------------------------------------------
 */

static void a_copy_is_foreign(void **state)
{
    (void)state;
    leave_a_page();
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_int_equal(rename(spare_path, page_path), 0);
    assert_set_aside(PAGE_FOREIGN, "it is a copy");
}

/* File systems give the number of a removed inode to the next file: it alone proves nothing. */
static void a_copy_in_the_place_of_the_removed_file_is_foreign(void **state)
{
    (void)state;
    struct statx stx = {0};
    leave_a_page();
    if (statx(AT_FDCWD, page_path, 0, STATX_BTIME, &stx) < 0 || !(stx.stx_mask & STATX_BTIME)) {
        print_message("skipped: this file system does not tell when a file was made\n");
        skip();
    }
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_int_equal(unlink(page_path), 0);
    copy_file(spare_path, page_path, PAGE_SIZE_BYTES);
    assert_set_aside(PAGE_FOREIGN, "it is a copy");
}

static void another_coordinators_page_is_foreign(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    const char *other = "redis://10.0.0.2:6379/0|default";
    assert_int_equal(pagefile_inherit(&f, dir, other, PAGEFILE_SAVES_WAITING, NULL, &e), ERR_OK);
    hold_one(&f);
    pagefile_close(&f);
    assert_set_aside(PAGE_FOREIGN, "another coordinator");
}

static void a_truncated_page_is_broken(void **state)
{
    (void)state;
    static const off_t sizes[] = {1, 255, 256, 2048, PAGE_SIZE_BYTES - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        (void)unlink(aside_path);
        leave_a_page();
        assert_int_equal(truncate(page_path, sizes[i]), 0);
        assert_set_aside(PAGE_BROKEN, "expected 4096 bytes, found");
    }
}

static void a_longer_page_is_broken(void **state)
{
    (void)state;
    leave_a_page();
    assert_int_equal(truncate(page_path, PAGE_SIZE_BYTES + 1), 0);
    assert_set_aside(PAGE_BROKEN, "found 4097");
}

static void a_corrupt_page_is_broken(void **state)
{
    (void)state;
    leave_a_page();
    int fd = open(page_path, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 256 + 2 * 160 + 8), 1); /* in the record of slot 2 */
    (void)close(fd);
    assert_set_aside(PAGE_BROKEN, "slot 2");
}

static void another_file_is_broken(void **state)
{
    (void)state;
    FILE *out = fopen(page_path, "w");
    assert_non_null(out);
    for (int i = 0; i < 4096; i++)
        (void)fputc('A', out);
    (void)fclose(out);
    assert_set_aside(PAGE_BROKEN, "SIDFPAGE");
}

/* ---- directories that cannot be used ----------------------------------------------------------
 */

static void assert_unusable(const char *where, const char *why)
{
    struct pagefile f;
    struct err e;
    enum err_code r = pagefile_inherit(&f, where, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e);
    assert_true(r != ERR_OK && r != ERR_BUSY);
    if (!strstr(e.text, why))
        fail_msg("expected \"%s\", found \"%s\"", why, e.text);
    assert_int_equal(f.fd, -1);
    assert_null(f.page);
    pagefile_close(&f);
}

static void an_unusable_directory_is_told(void **state)
{
    (void)state;
    char deep[128];
    (void)snprintf(deep, sizeof deep, "%s/a/b", dir);
    assert_unusable(deep, "cannot make state_dir");
    assert_unusable("/dev/null", "/dev/null/worker.page");
    assert_unusable("/proc/self", "cannot open /proc/self/worker.page");
}

/* Somebody else's link must not make us write elsewhere. */
static void a_symbolic_link_is_not_followed(void **state)
{
    (void)state;
    assert_int_equal(symlink("copy", page_path), 0);
    assert_unusable(dir, "cannot open");
    assert_false(exists(spare_path));
}

static void a_full_disk_shows_at_start(void **state)
{
    (void)state;
    if (mount("none", dir, "tmpfs", 0, "size=4k,nr_inodes=8") < 0) {
        print_message("skipped: a file system to fill wants root\n");
        skip();
    }
    FILE *filler = fopen(spare_path, "w");
    bool filled = filler && fputc('x', filler) >= 0 && fflush(filler) == 0;
    struct pagefile f;
    struct err e;
    enum err_code r = pagefile_inherit(&f, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e);
    pagefile_close(&f);
    if (filler)
        (void)fclose(filler);
    assert_int_equal(umount(dir), 0);
    assert_true(filled);
    assert_int_equal(r, ERR_IO);
    assert_non_null(strstr(e.text, "No space left"));
    assert_non_null(strstr(e.text, "4096"));
}

static void memory_is_a_page_without_a_file(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    assert_int_equal(pagefile_memory(&f, false, &e), ERR_OK);
    assert_int_equal(f.fd, -1);
    assert_false(f.found);
    assert_empty(f.page);
    hold_one(&f);
    assert_holds_one(f.page);
    pagefile_close(&f);
    assert_false(exists(page_path));
}

/* ---- while it is open -------------------------------------------------------------------------
 */

/* How a process ends that does so with its page. */
static int end_of(void (*harm)(struct pagefile *))
{
    pid_t child = fork();
    if (child == 0) {
        struct pagefile f;
        struct err e;
        (void)close(STDERR_FILENO);
        if (pagefile_inherit(&f, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e))
            _exit(1);
        hold_one(&f);
        pagefile_guard(&f);
        harm(&f);
        mark_store(&f.page->slot[2].mark, LO + 6);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void cut_to_nothing(struct pagefile *f)
{
    (void)(ftruncate(f->fd, 0) + 1);
}

static void bus_error_of_another(struct pagefile *f)
{
    (void)f;
    (void)raise(SIGBUS);
}

static void no_harm(struct pagefile *f)
{
    (void)f;
}

static void a_store_that_the_file_does_not_take_ends_the_process(void **state)
{
    (void)state;
    int status = end_of(cut_to_nothing);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), MAPGUARD_LOST);
    status = end_of(bus_error_of_another);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    status = end_of(no_harm);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)unlink(spare_path);
}

static void assert_missed(const struct pagefile *f, const char *why)
{
    struct err e;
    assert_false(pagefile_stands(f, &e));
    if (!strstr(e.text, why))
        fail_msg("expected \"%s\", found \"%s\"", why, e.text);
}

static void a_page_is_missed_when_it_is_not_there_as_it_was(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    open_ok(&f);
    assert_true(pagefile_stands(&f, &e));
    hold_one(&f);
    mark_store(&f.page->slot[2].mark, LO - 100); /* issued for the holder before: no damage */
    assert_true(pagefile_stands(&f, &e));
    assert_int_equal(rename(page_path, spare_path), 0);
    assert_missed(&f, "cannot find");
    int other = open(page_path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_missed(&f, "another file");
    assert_int_equal(rename(spare_path, page_path), 0);
    assert_true(pagefile_stands(&f, &e));
    assert_int_equal(ftruncate(f.fd, 100), 0);
    assert_missed(&f, "found 100");
    assert_int_equal(ftruncate(f.fd, 0), 0);
    assert_int_equal(ftruncate(f.fd, PAGE_SIZE_BYTES), 0);
    assert_missed(&f, "no state page");
    (void)close(other);
    pagefile_close(&f);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(the_first_start_finds_nothing),
        IN_DIR(the_directory_is_made),
        IN_DIR(the_next_start_takes_over),
        IN_DIR(a_killed_process_leaves_its_page),
        IN_DIR(a_second_process_is_told_the_pid_of_the_first),
        IN_DIR(a_page_set_aside_while_it_is_opened_is_not_used),
        IN_DIR(a_copy_is_foreign),
        IN_DIR(a_copy_in_the_place_of_the_removed_file_is_foreign),
        IN_DIR(another_coordinators_page_is_foreign),
        IN_DIR(a_truncated_page_is_broken),
        IN_DIR(a_longer_page_is_broken),
        IN_DIR(a_corrupt_page_is_broken),
        IN_DIR(another_file_is_broken),
        IN_DIR(an_unusable_directory_is_told),
        IN_DIR(a_symbolic_link_is_not_followed),
        IN_DIR(a_full_disk_shows_at_start),
        IN_DIR(memory_is_a_page_without_a_file),
        IN_DIR(a_store_that_the_file_does_not_take_ends_the_process),
        IN_DIR(a_page_is_missed_when_it_is_not_there_as_it_was),
    };
    return cmocka_run_group_tests_name("lease/pagefile", tests, NULL, NULL);
}
