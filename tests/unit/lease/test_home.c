/* Which file, and which boot. A file of another boot, or a copy, must not be taken for that one. */
#include "lease/home.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[96];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-home-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/page", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

static int make(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "page", 4), 4);
    return fd;
}

/* Its digits, and nothing else. */
static void the_boot_is_that_of_the_kernel(void **state)
{
    struct page_home home = {.coordinator = 0};
    struct err e;
    char text[64] = "", digits[33] = "", found[33] = "";
    unsigned n = 0;
    (void)state;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    for (const char *c = text; *c && n < 32; c++)
        if (*c != '-')
            digits[n++] = *c;
    memset(home.boot, 0xff, sizeof home.boot);
    assert_int_equal(home_read_boot(&home, &e), ERR_OK);
    for (size_t i = 0; i < sizeof home.boot; i++)
        (void)snprintf(found + 2 * i, 3, "%02x", (unsigned char)home.boot[i]);
    assert_string_equal(found, digits);
}

static void a_file_is_told_by_device_inode_and_birth(void **state)
{
    struct page_home home, by_path, other;
    struct stat st;
    (void)state;
    int fd = make();
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(home_read_file(fd, NULL, &home));
    assert_true(home_read_file(-1, path, &by_path));
    assert_true(home.device == st.st_dev && home.inode == st.st_ino);
    assert_true(by_path.device == home.device && by_path.inode == home.inode);
    assert_true(by_path.born_ns == home.born_ns);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
    assert_false(home_read_file(-1, path, &by_path));
    assert_int_equal(symlink(".", path), 0); /* it is the link that is told of */
    assert_true(home_read_file(-1, path, &by_path));
    assert_true(home_read_file(-1, dir, &other));
    assert_true(by_path.inode != other.inode);
}

static void a_file_in_its_place_is_another(void **state)
{
    int64_t bytes = -1;
    struct err why;
    (void)state;
    int fd = make();
    assert_true(home_is_at(fd, path, &bytes, &why));
    assert_int_equal(bytes, 4);
    assert_int_equal(unlink(path), 0);
    assert_false(home_is_at(fd, path, &bytes, &why));
    assert_non_null(strstr(why.text, "cannot find"));
    int other = make();
    assert_false(home_is_at(fd, path, &bytes, &why));
    assert_non_null(strstr(why.text, "another file was put in its place"));
    assert_true(home_is_at(other, path, &bytes, &why));
    (void)close(other);
    (void)close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_boot_is_that_of_the_kernel),
        TEST(a_file_is_told_by_device_inode_and_birth),
        TEST(a_file_in_its_place_is_another),
    };
    return cmocka_run_group_tests_name("lease/home", tests, NULL, NULL);
}
