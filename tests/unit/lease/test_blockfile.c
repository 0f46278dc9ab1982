/* The file of blocks, on a disk and on tmpfs: what is taken over, and what proves it. */
#include "lease/blockfile.h"
#include "lease/blocks.h"
#include "support/capture.h"
#include "support/coord_setup.h"

#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define COORDINATOR "redis://10.0.0.1:6379/0|default"
#define SLOTS       16 /* the tenth lies in two pages of memory */
#define BYTES       blockpage_size(SLOTS)

static char dir[64], page_path[96], aside_path[104], copy_path[96], generation_path[104],
    new_path[104];

static void name_files(void)
{
    (void)snprintf(page_path, sizeof page_path, "%s/sequences.page", dir);
    (void)snprintf(new_path, sizeof new_path, "%s.new", page_path);
    (void)snprintf(aside_path, sizeof aside_path, "%s.aside", page_path);
    (void)snprintf(copy_path, sizeof copy_path, "%s/copy", dir);
    (void)snprintf(generation_path, sizeof generation_path, "%s/sequences.generation", dir);
}

static int make_in(const char *form)
{
    (void)snprintf(dir, sizeof dir, "%s", form);
    if (!mkdtemp(dir))
        return -1;
    name_files();
    return 0;
}

static int on_disk(void **state)
{
    (void)state;
    return make_in("/tmp/sidflake-blocks-XXXXXX");
}

static int on_tmpfs(void **state)
{
    (void)state;
    return make_in("/dev/shm/sidflake-blocks-XXXXXX");
}

static int remove_dir(void **state)
{
    (void)state;
    char more[128];
    const char *const paths[] = {page_path, new_path, aside_path, copy_path, generation_path};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        (void)unlink(paths[i]);
    (void)snprintf(more, sizeof more, "%s.new", generation_path);
    (void)unlink(more);
    return rmdir(dir);
}

static void open_left(struct blockfile *f, const struct blockfile_left *left)
{
    struct err e;
    if (blockfile_open(f, dir, COORDINATOR, SLOTS, left, &e))
        fail_msg("%s", e.text);
}

static void open_ok(struct blockfile *f)
{
    open_left(f, NULL);
}

static void hold(struct blockfile *f, int64_t given)
{
    struct blockpage_record r = {
        .state = PAGE_HELD, .of = {.name = "orders"}, .lo = 10, .hi = 109, .increment = 1};
    blockpage_store(f->page, 3, &r);
    mark_store(&f->page->slot[3].mark, given);
}

static void assert_holds(const struct blockfile *f, int64_t given)
{
    struct blockpage_record r;
    assert_non_null(f->page);
    assert_true(blockpage_load(f->page, 3, &r));
    assert_int_equal(r.state, PAGE_HELD);
    assert_int_equal(r.lo, 10);
    assert_int_equal(blockpage_given(f->page, 3, 100), given);
}

/* A life that ends by SIGKILL, say. */
static void live(int64_t given)
{
    struct blockfile f;
    struct err e;
    open_ok(&f);
    if (!f.page && blockfile_make(&f, "pool", &e))
        fail_msg("%s", e.text);
    hold(&f, given);
    blockfile_prove(&f);
    blockfile_close(&f);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Into the file that is there, or a new one. */
static void copy(const char *from, const char *to)
{
    static char data[1 << 16];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0600);
    assert_true(in >= 0 && out >= 0);
    ssize_t n = read(in, data, sizeof data);
    assert_int_equal(n, BYTES);
    assert_int_equal(write(out, data, (size_t)n), n);
    (void)close(in);
    (void)close(out);
}

/* Times of a file system are as fine as the kernel's clock tick. */
static void next_tick(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
}

/* ---- one life and the next ------------------------------------------------------------------- */

static void there_is_none_before_it_is_made(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    open_ok(&f);
    assert_null(f.page);
    assert_false(f.found);
    assert_false(exists(page_path) || exists(generation_path));
    assert_false(blockfile_leave(&f).known);
    assert_int_equal(blockfile_make(&f, "pool", &e), ERR_OK);
    assert_true(exists(page_path));
    assert_false(exists(new_path));
    assert_string_equal(f.page->head.identity, "pool");
    assert_true(f.proven);
    assert_true(blockfile_stands(&f, &e));
    blockfile_close(&f);
}

static void the_next_start_takes_it_over(void **state)
{
    (void)state;
    live(7);
    struct blockfile f;
    struct err e;
    open_ok(&f);
    assert_true(f.found);
    assert_int_equal(f.verdict, PAGE_OWN);
    assert_holds(&f, 7);
    assert_true(blockfile_stands(&f, &e));
    blockfile_close(&f);
}

static void who_comes_by_another_worker_page_is_kept_out(void **state)
{
    (void)state;
    struct blockfile f, other;
    struct err e;
    live(7);
    open_ok(&f);
    assert_int_equal(blockfile_open(&other, dir, COORDINATOR, SLOTS, NULL, &e), ERR_BUSY);
    assert_non_null(strstr(e.text, "state_dir of its own"));
    blockfile_close(&other);
    blockfile_close(&f);
}

/* Killed before the rename, and after it. */
static void a_kill_while_it_is_made_leaves_none_or_an_empty_one(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    int fd = open(new_path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "half", 4), 4);
    (void)close(fd);
    open_ok(&f);
    assert_null(f.page);
    assert_int_equal(blockfile_make(&f, "pool", &e), ERR_OK);
    assert_false(exists(new_path));
    blockpage_set_changed(f.page, 0); /* it did not come to that */
    blockfile_close(&f);
    open_ok(&f);
    assert_int_equal(f.verdict, PAGE_OWN);
    assert_false(f.proven);
    blockfile_close(&f);
}

/* ---- set aside ------------------------------------------------------------------------------- */

static void assert_aside(enum page_verdict verdict, const char *why)
{
    struct blockfile f;
    open_ok(&f);
    assert_true(f.found);
    assert_null(f.page);
    assert_int_equal(f.verdict, verdict);
    if (!strstr(f.why.text, why))
        fail_msg("expected \"%s\", found \"%s\"", why, f.why.text);
    assert_true(exists(aside_path));
    assert_false(exists(page_path));
    blockfile_close(&f);
}

static void what_is_foreign_or_broken_is_set_aside(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    live(7);
    assert_int_equal(rename(page_path, copy_path), 0);
    copy(copy_path, page_path);
    assert_aside(PAGE_FOREIGN, "another boot, file");
    live(7);
    assert_int_equal(truncate(page_path, 100), 0);
    assert_aside(PAGE_BROKEN, "no blocks");
    live(7);
    assert_int_equal(truncate(page_path, 3000), 0);
    assert_aside(PAGE_BROKEN, "found 3000");
    live(7);
    assert_int_equal(blockfile_open(&f, dir, COORDINATOR, SLOTS + 2, NULL, &e), ERR_OK);
    assert_null(f.page);
    assert_non_null(strstr(f.why.text, "room for 18 blocks, found 16"));
    blockfile_close(&f);
    live(7);
    assert_int_equal(blockfile_open(&f, dir, "another|pool", SLOTS, NULL, &e), ERR_OK);
    assert_null(f.page);
    blockfile_close(&f);
}

static void an_earlier_generation_is_set_aside(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    live(7);
    copy(page_path, copy_path);
    open_ok(&f);
    assert_int_equal(blockfile_begin_generation(&f, &e), ERR_OK);
    blockfile_close(&f);
    copy(copy_path, page_path);
    assert_aside(PAGE_FOREIGN, "earlier state of itself");
}

/* A start alone is enough. */
static void each_start_begins_a_generation(void **state)
{
    (void)state;
    live(7);
    copy(page_path, copy_path);
    live(8);
    live(9);
    copy(copy_path, page_path);
    assert_aside(PAGE_FOREIGN, "earlier state of itself");
}

static void without_its_generation_it_begins_no_other(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    live(7);
    open_ok(&f);
    assert_int_equal(unlink(generation_path), 0);
    assert_int_equal(blockfile_begin_generation(&f, &e), ERR_IO);
    assert_false(blockfile_stands(&f, &e));
    blockfile_close(&f);
}

/* ---- proof ----------------------------------------------------------------------------------- */

static void on_tmpfs_the_time_of_its_change_proves_it(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    next_tick();
    open_ok(&f);
    assert_true(f.proven);
    hold(&f, 20); /* stores leave the time alone */
    blockfile_close(&f);
    next_tick();
    open_ok(&f);
    assert_true(f.proven);
    assert_holds(&f, 20);
    blockfile_close(&f);
}

/* Within the same life, so that the generation is right. */
static void put_back(void)
{
    struct blockfile f;
    open_ok(&f);
    hold(&f, 20);
    copy(page_path, copy_path);
    hold(&f, 30);
    blockfile_close(&f);
    next_tick();
    copy(copy_path, page_path);
}

/* Memory that is not mapped yet: to store there without a load before changes the file's time. */
static void on_tmpfs_it_is_proven_wherever_blocks_were_stored(void **state)
{
    (void)state;
    const struct seq_opening o = {1, 2, "run:1"};
    struct blockpage_record r = {
        .state = PAGE_HELD, .of = {.name = "orders"}, .hi = 99, .increment = 1};
    struct blockfile f;
    live(7);
    for (unsigned slot = SLOTS; slot-- > 0;) {
        next_tick();
        open_ok(&f);
        assert_true(f.proven);
        blockfile_looked_at(&f);
        blockfile_prove(&f);
        blockpage_store(f.page, slot, &r);
        mark_store(&f.page->slot[slot].mark, 1);
        blockfile_close(&f);
    }
    for (unsigned what = 0; what < 3; what++) {
        next_tick();
        open_ok(&f);
        assert_true(f.proven);
        blockfile_looked_at(&f);
        blockfile_prove(&f);
        if (what == 0)
            blockpage_clear(f.page, SLOTS, "pool");
        else if (what == 1)
            (void)blockpage_set_opening(f.page, &o);
        blockfile_close(&f);
    }
}

/* Of memory that was never touched the kernel maps no more than what is asked for. */
static void on_tmpfs_the_first_store_anywhere_keeps_it_proven(void **state)
{
    (void)state;
    struct blockpage_record r = {
        .state = PAGE_HELD, .of = {.name = "orders"}, .hi = 99, .increment = 1};
    for (unsigned slot = 0; slot <= SLOTS; slot++) {
        struct blockfile f;
        struct err e;
        open_ok(&f);
        assert_int_equal(blockfile_make(&f, "pool", &e), ERR_OK);
        next_tick();
        if (slot < SLOTS)
            blockpage_store(f.page, slot, &r);
        else
            blockpage_clear(f.page, SLOTS, "pool");
        blockfile_close(&f);
        open_ok(&f);
        assert_true(f.proven);
        blockfile_close(&f);
        assert_int_equal(unlink(page_path), 0);
    }
}

static void on_tmpfs_a_copy_put_back_is_not_proven(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    put_back();
    open_ok(&f);
    assert_holds(&f, 20);
    assert_false(f.proven);
    assert_false(blockfile_leave(&f).known);
    blockfile_close(&f);
    open_ok(&f); /* nor by the next one */
    assert_false(f.proven);
    blockfile_prove(&f); /* somebody has said so */
    blockfile_close(&f);
    open_ok(&f);
    assert_true(f.proven);
    blockfile_close(&f);
}

static void on_tmpfs_modes_and_lengths_that_are_changed_unprove_it(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    next_tick();
    assert_int_equal(chmod(page_path, 0640), 0);
    open_ok(&f);
    assert_false(f.proven);
    blockfile_prove(&f);
    blockfile_close(&f);
    next_tick();
    assert_int_equal(truncate(page_path, (off_t)BYTES - 1), 0);
    assert_int_equal(truncate(page_path, (off_t)BYTES), 0);
    open_ok(&f);
    assert_false(f.proven);
    blockfile_close(&f);
}

/* While it runs: what it proves later is not taken for its own. */
static void what_came_to_it_meanwhile_is_not_proven_with_it(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    open_ok(&f);
    copy(page_path, copy_path);
    next_tick();
    copy(copy_path, page_path);
    blockfile_prove(&f);
    blockfile_close(&f);
    open_ok(&f);
    assert_false(f.proven);
    blockfile_close(&f);
}

static void on_a_disk_nothing_in_it_proves_it(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    open_ok(&f);
    assert_holds(&f, 7);
    assert_false(f.proven);
    blockfile_close(&f);
}

static void the_heir_proves_it_by_each_byte(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    open_ok(&f);
    blockfile_prove(&f);
    const struct blockfile_left left = blockfile_leave(&f);
    assert_true(left.known);
    blockfile_close(&f);
    open_left(&f, &left);
    assert_true(f.proven);
    blockfile_prove(&f);
    const struct blockfile_left next = blockfile_leave(&f);
    hold(&f, 8); /* one more was given out since */
    blockfile_close(&f);
    open_left(&f, &next);
    assert_false(f.proven);
    blockfile_close(&f);
}

/* By `cp` under a program that runs: its heir must not take it for what it left. */
static void an_older_state_that_comes_to_it_meanwhile_is_not_left(void **state)
{
    (void)state;
    struct blockfile f;
    unsigned slot;
    struct coord_token token;
    const struct coord_token tokens[] = {{{1}}, {{2}}, {{3}}};
    live(7);
    open_ok(&f);
    blockfile_prove(&f);
    blockfile_set_witness(&f, 0, tokens[0]);
    assert_true(blockfile_leave(&f).known);
    copy(page_path, copy_path);
    hold(&f, 8);
    blockfile_set_witness(&f, 0, tokens[1]);
    assert_true(blockfile_leave(&f).known);
    copy(copy_path, page_path);
    assert_holds(&f, 7);
    assert_false(blockfile_leave(&f).known);
    blockfile_set_witness(&f, 0, tokens[2]); /* it would be of a later time by that */
    assert_true(blockpage_witness(f.page, &slot, &token));
    assert_true(coord_token_equal(token, tokens[0]));
    assert_false(blockfile_leave(&f).known);
    blockfile_close(&f);
}

static void on_tmpfs_what_comes_to_it_meanwhile_is_not_as_it_was_left(void **state)
{
    (void)state;
    struct blockfile f;
    live(7);
    open_ok(&f);
    blockfile_prove(&f);
    const struct blockfile_left left = blockfile_leave(&f);
    blockfile_close(&f);
    open_left(&f, &left);
    assert_true(f.proven);
    copy(page_path, copy_path);
    next_tick();
    copy(copy_path, page_path);
    const struct blockfile_left later = blockfile_leave(&f);
    blockfile_close(&f);
    open_left(&f, &later);
    assert_false(f.proven);
    blockfile_close(&f);
}

/* ---- what the disk does ---------------------------------------------------------------------- */

static void a_full_disk_shows_when_it_is_made(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    if (mount("none", dir, "tmpfs", 0, "size=4k,nr_inodes=8") < 0) {
        print_message("skipped: a file system to fill wants root\n");
        skip();
    }
    open_ok(&f);
    enum err_code r = blockfile_make(&f, "pool", &e);
    bool left = exists(new_path) || exists(page_path) || f.page;
    bool memory = !blockfile_memory(&f, SLOTS, "pool", &e);
    bool works = memory && f.fd < 0 && blockfile_stands(&f, &e);
    blockfile_close(&f);
    assert_int_equal(umount(dir), 0);
    assert_int_equal(r, ERR_IO);
    assert_false(left);
    assert_true(works);
}

static void a_store_that_it_does_not_take_ends_the_process(void **state)
{
    (void)state;
    live(7);
    pid_t child = fork();
    if (child == 0) {
        struct blockfile f;
        struct err e;
        (void)close(STDERR_FILENO);
        if (blockfile_open(&f, dir, COORDINATOR, SLOTS, NULL, &e))
            _exit(1);
        (void)(ftruncate(f.fd, 0) + 1);
        mark_store(&f.page->slot[3].mark, 8);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 74);
}

static void it_is_missed_when_it_is_not_there_as_it_was(void **state)
{
    (void)state;
    struct blockfile f;
    struct err e;
    live(7);
    open_ok(&f);
    assert_int_equal(rename(page_path, copy_path), 0);
    assert_false(blockfile_stands(&f, &e));
    assert_non_null(strstr(e.text, "cannot find"));
    copy(copy_path, page_path);
    assert_false(blockfile_stands(&f, &e));
    assert_non_null(strstr(e.text, "another file"));
    assert_int_equal(rename(copy_path, page_path), 0);
    assert_true(blockfile_stands(&f, &e));
    assert_int_equal(ftruncate(f.fd, 2000), 0);
    assert_false(blockfile_stands(&f, &e));
    blockfile_close(&f);
}

static void a_witness_is_the_latest_stored_whole(void **state)
{
    (void)state;
    struct blockfile f;
    struct coord_token t;
    unsigned slot;
    live(7);
    open_ok(&f);
    assert_false(blockpage_witness(f.page, &slot, &t));
    for (uint8_t i = 1; i < 5; i++) {
        blockpage_set_witness(f.page, i, setup_token(i));
        assert_true(blockpage_witness(f.page, &slot, &t));
        assert_int_equal(slot, i);
        assert_true(coord_token_equal(t, setup_token(i)));
    }
    blockpage_clear(f.page, SLOTS, "another");
    assert_true(blockpage_witness(f.page, &slot, &t));
    assert_int_equal(slot, 4);
    assert_string_equal(f.page->head.identity, "another");
    f.page->head.witness[0].slot ^= 1;
    f.page->head.witness[1].slot ^= 1;
    assert_false(blockpage_witness(f.page, &slot, &t));
    blockfile_close(&f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_true(f && fscanf(f, "%ld %ld", &pages, &resident) == 2);
    (void)fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

#define MANY     20000 /* counters: 30 MiB of file, 14 of the machine's */
#define MANY_KIB 4096

static void start_many(struct blockfile *f, bool empty)
{
    struct blocks b;
    struct err e;
    const struct blocks_config conf = {.counters = MANY, .empty = empty};
    struct blocks_action a;
    assert_int_equal(blocks_init(&b, &conf, f->page, rng_system(), 0, &e), ERR_OK);
    blocks_prove(&b, empty);
    blocks_next(&b, 0, &a);
    blocks_stop(&b, true, 0);
    blocks_clear(&b);
}

/* Neither in what is made, nor once it was taken over. ThreadSanitizer keeps notes of all that is
 * read, and those are resident: what it counts there is not the program's. */
static void places_that_are_not_used_take_no_memory(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    struct blockfile f;
    struct err e;
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20); /* or the second time it is memory used before */
    long before = resident_kib();
    assert_int_equal(blockfile_open(&f, dir, COORDINATOR, MANY * BLOCKS_SLOTS, NULL, &e), ERR_OK);
    assert_int_equal(blockfile_make(&f, SETUP_IDENTITY, &e), ERR_OK);
    start_many(&f, true);
    assert_true(resident_kib() - before < MANY_KIB);
    blockfile_close(&f);
    assert_int_equal(blockfile_open(&f, dir, COORDINATOR, MANY * BLOCKS_SLOTS, NULL, &e), ERR_OK);
    assert_non_null(f.page);
    start_many(&f, false);
    blockfile_looked_at(&f);
    assert_true(resident_kib() - before < MANY_KIB);
    blockfile_close(&f);
}

#define ON_DISK(f)  cmocka_unit_test_setup_teardown(f, on_disk, remove_dir)
#define ON_TMPFS(f) cmocka_unit_test_setup_teardown(f, on_tmpfs, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(there_is_none_before_it_is_made),
        ON_DISK(the_next_start_takes_it_over),
        ON_TMPFS(the_next_start_takes_it_over),
        ON_DISK(who_comes_by_another_worker_page_is_kept_out),
        ON_DISK(a_kill_while_it_is_made_leaves_none_or_an_empty_one),
        ON_TMPFS(a_kill_while_it_is_made_leaves_none_or_an_empty_one),
        ON_DISK(what_is_foreign_or_broken_is_set_aside),
        ON_DISK(an_earlier_generation_is_set_aside),
        ON_DISK(each_start_begins_a_generation),
        ON_DISK(without_its_generation_it_begins_no_other),
        ON_TMPFS(on_tmpfs_the_time_of_its_change_proves_it),
        ON_TMPFS(on_tmpfs_it_is_proven_wherever_blocks_were_stored),
        ON_TMPFS(on_tmpfs_the_first_store_anywhere_keeps_it_proven),
        ON_TMPFS(on_tmpfs_a_copy_put_back_is_not_proven),
        ON_TMPFS(on_tmpfs_modes_and_lengths_that_are_changed_unprove_it),
        ON_TMPFS(what_came_to_it_meanwhile_is_not_proven_with_it),
        ON_TMPFS(on_tmpfs_what_comes_to_it_meanwhile_is_not_as_it_was_left),
        ON_DISK(on_a_disk_nothing_in_it_proves_it),
        ON_DISK(the_heir_proves_it_by_each_byte),
        ON_DISK(an_older_state_that_comes_to_it_meanwhile_is_not_left),
        ON_DISK(a_full_disk_shows_when_it_is_made),
        ON_DISK(a_store_that_it_does_not_take_ends_the_process),
        ON_DISK(it_is_missed_when_it_is_not_there_as_it_was),
        ON_DISK(a_witness_is_the_latest_stored_whole),
        ON_DISK(places_that_are_not_used_take_no_memory),
        ON_TMPFS(places_that_are_not_used_take_no_memory),
    };
    return cmocka_run_group_tests_name("lease/blockfile", tests, NULL, NULL);
}
