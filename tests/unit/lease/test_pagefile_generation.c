/* Earlier states of the page, put back in place; and what hangs on the page alone. */
#include "pagefile_rig.h"

#include <sys/resource.h>

/* ---- generations: earlier states, put back in place -------------------------------------------
 */

static void new_generation(struct pagefile *f)
{
    struct err e;
    if (pagefile_begin_generation(f, &e))
        fail_msg("%s", e.text);
}

static void assert_own(void)
{
    struct pagefile f;
    open_ok(&f);
    if (f.verdict != PAGE_OWN)
        fail_msg("%s", f.why.text);
    assert_holds_one(f.page);
    pagefile_close(&f);
}

static void a_page_of_before_a_new_generation_is_foreign(void **state)
{
    (void)state;
    struct pagefile f;
    open_ok(&f);
    hold_one(&f);
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    new_generation(&f);
    pagefile_close(&f);
    copy_file(spare_path, page_path, PAGE_SIZE_BYTES);
    assert_set_aside(PAGE_FOREIGN, "earlier state");
}

/* Both files as they were, into the same inodes, with their times. */
static void both_files_put_back_are_foreign(void **state)
{
    (void)state;
    struct pagefile f;
    struct stat st;
    open_ok(&f);
    hold_one(&f);
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_int_equal(stat(generation_path, &st), 0);
    new_generation(&f);
    pagefile_close(&f);
    copy_file(spare_path, page_path, PAGE_SIZE_BYTES);
    copy_file("/dev/null", generation_path, 0);
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, generation_path, times, 0), 0);
    assert_set_aside(PAGE_FOREIGN, "earlier state");
}

static void each_start_begins_a_generation(void **state)
{
    (void)state;
    leave_a_page();
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_own();
    copy_file(spare_path, page_path, PAGE_SIZE_BYTES);
    assert_set_aside(PAGE_FOREIGN, "earlier state");
}

static void a_page_whose_generation_is_lost_is_foreign(void **state)
{
    (void)state;
    leave_a_page();
    assert_int_equal(unlink(generation_path), 0);
    assert_set_aside(PAGE_FOREIGN, "worker.generation is not the one it had");
}

/* The next generation is in the page before it stands there: either is right. */
static void a_kill_before_the_new_generation_stands_there_costs_nothing(void **state)
{
    (void)state;
    struct pagefile f;
    open_ok(&f);
    hold_one(&f);
    new_generation(&f);
    uint64_t there = f.page->head.generation.word[0];
    page_expect(f.page, there, 99);
    assert_true(page_is_of(f.page, there) && page_is_of(f.page, 99));
    copy_file("/dev/null", made_path, 0);
    pagefile_close(&f);
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_own();
    copy_file(spare_path, page_path, PAGE_SIZE_BYTES); /* what it left is in nobody's way */
    assert_set_aside(PAGE_FOREIGN, "earlier state");
}

/* Of a version that knew no generations. */
static void a_page_without_a_generation_is_taken_over_where_there_is_none(void **state)
{
    (void)state;
    struct pagefile f;
    open_ok(&f);
    hold_one(&f);
    memset(&f.page->head.generation, 0, sizeof f.page->head.generation);
    pagefile_close(&f);
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    assert_int_equal(unlink(generation_path), 0);
    assert_own();
    copy_file(spare_path, page_path, PAGE_SIZE_BYTES);
    assert_set_aside(PAGE_FOREIGN, "earlier state");
}

static void where_none_can_be_made_the_one_before_goes_on(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    open_ok(&f);
    hold_one(&f);
    assert_int_equal(mkdir(made_path, 0700), 0);
    assert_int_not_equal(pagefile_begin_generation(&f, &e), ERR_OK);
    assert_non_null(strstr(e.text, made_path));
    pagefile_close(&f);
    assert_own(); /* it could not begin one either */
    assert_own();
    assert_int_equal(rmdir(made_path), 0);
}

/* A generation must not make an earlier state, written over a page in use, a good one. */
static void a_page_that_others_wrote_over_gets_no_generation(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    open_ok(&f);
    hold_one(&f);
    copy_file(page_path, spare_path, PAGE_SIZE_BYTES);
    new_generation(&f);
    struct page before;
    int fd = open(spare_path, O_RDONLY);
    assert_int_equal(read(fd, &before, sizeof before), sizeof before);
    (void)close(fd);
    memcpy(f.page, &before, sizeof before); /* as `dd conv=notrunc` does */
    assert_false(pagefile_stands(&f, &e));
    assert_non_null(strstr(e.text, "earlier state"));
    assert_int_equal(pagefile_begin_generation(&f, &e), ERR_INVALID);
    pagefile_close(&f);
    assert_set_aside(PAGE_FOREIGN, "earlier state");
}

/* Clients may have taken all descriptors that there are. */
static void a_generation_needs_no_descriptor(void **state)
{
    (void)state;
    struct pagefile f;
    struct rlimit before, none = {0, 0};
    struct err e;
    open_ok(&f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool stood = pagefile_stands(&f, &e);
    enum err_code r = pagefile_begin_generation(&f, &e);
    bool stands = pagefile_stands(&f, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(stood && stands);
    assert_int_equal(r, ERR_OK);
    pagefile_close(&f);
}

static void memory_needs_no_generation(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    assert_int_equal(pagefile_memory(&f, false, &e), ERR_OK);
    new_generation(&f);
    pagefile_close(&f);
    assert_false(exists(generation_path));
}

/* ---- where the page knows alone ---------------------------------------------------------------
 */

static enum err_code open_alone(struct pagefile *f, const char *coordinator, struct err *e)
{
    return pagefile_inherit(f, dir, coordinator, PAGEFILE_KNOWS_ALONE, NULL, e);
}

static void assert_refused_alone(const char *why)
{
    struct pagefile f;
    struct err e;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(open_alone(&f, COORDINATOR, &e), ERR_CORRUPT);
        if (!strstr(e.text, why) || !strstr(e.text, page_path) || !strstr(e.text, "remove it"))
            fail_msg("expected \"%s\", found \"%s\"", why, e.text);
    }
    assert_true(exists(page_path));
}

static void a_broken_page_that_alone_knew_is_an_error_and_stays(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    leave_a_page();
    assert_int_equal(truncate(page_path, 100), 0);
    assert_refused_alone("expected 4096 bytes, found 100");
    assert_int_equal(truncate(page_path, 0), 0);
    assert_refused_alone("expected 4096 bytes, found 0");
    assert_false(exists(aside_path));
    assert_int_equal(unlink(page_path), 0);
    assert_int_equal(open_alone(&f, COORDINATOR, &e), ERR_OK); /* the operator's word */
    assert_int_equal(page_floor(f.page), 0);
    pagefile_close(&f);
}

/* It was set aside while a coordinator knew. */
static void one_that_took_a_broken_ones_place_is_an_error_too(void **state)
{
    (void)state;
    leave_a_page();
    assert_int_equal(truncate(page_path, 100), 0);
    assert_set_aside(PAGE_BROKEN, "found 100");
    assert_refused_alone("is damaged, or one whose place it took");
}

/* Given back or not, it tells up to when IDs were issued. */
static void one_with_a_damaged_mark_is_an_error_too(void **state)
{
    (void)state;
    struct pagefile f;
    struct err e;
    leave_a_page();
    assert_int_equal(open_alone(&f, COORDINATOR, &e), ERR_OK);
    mark_store(&f.page->slot[9].mark, LO + 9);
    f.page->slot[9].mark ^= UINT64_C(1) << 30;
    pagefile_close(&f);
    assert_refused_alone("is damaged");
    assert_int_equal(pagefile_inherit(&f, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e),
                     ERR_OK);
    assert_int_equal(f.verdict, PAGE_OWN); /* a coordinator knows */
    pagefile_close(&f);
}

static void what_pages_that_were_replaced_knew_is_kept(void **state)
{
    (void)state;
    static const char *const names[] = {"static:6|default", "static:7|default", COORDINATOR};
    struct pagefile f;
    struct err e;
    leave_a_page();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(open_alone(&f, names[i], &e), ERR_OK);
        assert_empty(f.page);
        assert_int_equal(page_floor(f.page), LO + 5);
        mark_store(&f.page->slot[0].mark, LO + 3);
        pagefile_close(&f);
    }
    assert_int_equal(open_alone(&f, COORDINATOR, &e), ERR_OK);
    assert_int_equal(f.verdict, PAGE_OWN);
    assert_int_equal(page_floor(f.page), LO + 5);
    page_clear(f.page);
    assert_int_equal(page_floor(f.page), LO + 5);
    mark_store(&f.page->slot[9].mark, LO + 9);
    page_clear(f.page);
    assert_int_equal(page_floor(f.page), LO + 9);
    f.page->head.floor ^= 4;
    assert_true(page_floor(f.page) == PAGE_FLOOR_UNKNOWN);
    pagefile_close(&f);
    assert_int_equal(open_alone(&f, COORDINATOR, &e), ERR_CORRUPT);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_page_of_before_a_new_generation_is_foreign),
        IN_DIR(both_files_put_back_are_foreign),
        IN_DIR(each_start_begins_a_generation),
        IN_DIR(a_page_whose_generation_is_lost_is_foreign),
        IN_DIR(a_kill_before_the_new_generation_stands_there_costs_nothing),
        IN_DIR(a_page_without_a_generation_is_taken_over_where_there_is_none),
        IN_DIR(where_none_can_be_made_the_one_before_goes_on),
        IN_DIR(a_page_that_others_wrote_over_gets_no_generation),
        IN_DIR(a_generation_needs_no_descriptor),
        IN_DIR(memory_needs_no_generation),
        IN_DIR(a_broken_page_that_alone_knew_is_an_error_and_stays),
        IN_DIR(one_that_took_a_broken_ones_place_is_an_error_too),
        IN_DIR(one_with_a_damaged_mark_is_an_error_too),
        IN_DIR(what_pages_that_were_replaced_knew_is_kept),
    };
    return cmocka_run_group_tests_name("lease/pagefile_generation", tests, NULL, NULL);
}
