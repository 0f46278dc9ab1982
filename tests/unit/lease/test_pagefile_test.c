/* A state_dir is looked at, before a start or beside a process that runs on it: what a start would
 * say is said, and nothing is changed. */
#include "pagefile_rig.h"

#include <sys/file.h>

static void says(const char *where, enum pagefile_worth worth, const char *want)
{
    struct err e;
    enum err_code r = pagefile_test(where, COORDINATOR, worth, &e);
    if (!want && r)
        fail_msg("%s", e.text);
    if (want && (!r || !strstr(e.text, want)))
        fail_msg("expected \"%s\", found \"%s\"", want, r ? e.text : "no error");
}

static void says_of_both(const char *where, const char *want)
{
    says(where, PAGEFILE_SAVES_WAITING, want);
    says(where, PAGEFILE_KNOWS_ALONE, want);
}

static void an_empty_or_missing_dir_is_right_and_stays_so(void **state)
{
    char missing[96];
    (void)state;
    (void)snprintf(missing, sizeof missing, "%s/missing", dir);
    says_of_both(dir, NULL);
    says_of_both(missing, NULL);
    assert_false(exists(missing));
    assert_false(exists(page_path));
    assert_false(exists(generation_path));
}

static void a_dir_that_cannot_be_made_or_used_is_told(void **state)
{
    char deep[96], beneath[128];
    (void)state;
    (void)snprintf(deep, sizeof deep, "%s/a/b", dir);
    says_of_both(deep, "cannot make state_dir");
    says_of_both("/proc/none", "cannot make state_dir /proc/none");
    says_of_both("/proc", "cannot make a file in state_dir /proc");
    copy_file("/dev/null", spare_path, 0);
    (void)snprintf(beneath, sizeof beneath, "%s/state", spare_path);
    says_of_both(beneath, "Not a directory");
    says_of_both(spare_path, "Not a directory");
    assert_int_equal(symlink("/dev/null", page_path), 0);
    says_of_both(dir, "cannot open");
}

/* By its owner: root may write all the same. */
static void a_dir_of_others_is_told(void **state)
{
    (void)state;
    if (geteuid() == 0 && seteuid(65534) < 0)
        skip();
    says_of_both("/", "cannot make a file in state_dir /: Permission denied");
    says_of_both("/sidflake-none", "cannot make state_dir /sidflake-none: Permission denied");
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

static void the_page_of_a_running_process_is_no_error_and_stays(void **state)
{
    struct pagefile f;
    struct page before;
    (void)state;
    open_ok(&f);
    hold_one(&f);
    before = *f.page;
    says_of_both(dir, NULL);
    assert_memory_equal(&before, f.page, sizeof before);
    assert_true(pagefile_stands(&f, &(struct err){.code = ERR_OK}));
    int fd = open(page_path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1); /* still */
    (void)close(fd);
    pagefile_close(&f);
}

/* Where a coordinator knows, it is set aside at the start. */
static void a_damaged_page_is_an_error_where_it_knew_alone(void **state)
{
    (void)state;
    leave_a_page();
    assert_int_equal(truncate(page_path, 100), 0);
    says(dir, PAGEFILE_KNOWS_ALONE, "is damaged (expected 4096 bytes, found 100): remove it");
    says(dir, PAGEFILE_SAVES_WAITING, NULL);
    assert_false(exists(aside_path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_or_missing_dir_is_right_and_stays_so, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_dir_that_cannot_be_made_or_used_is_told, make_dir,
                                        remove_dir),
        cmocka_unit_test(a_dir_of_others_is_told),
        cmocka_unit_test_setup_teardown(the_page_of_a_running_process_is_no_error_and_stays,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_damaged_page_is_an_error_where_it_knew_alone, make_dir,
                                        remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
