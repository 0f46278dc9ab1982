#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int pipe_with(const char *text)
{
    int end[2];
    assert_int_equal(pipe(end), 0);
    assert_int_equal(write(end[1], text, strlen(text)), strlen(text));
    (void)close(end[1]);
    return end[0];
}

static void reads_to_the_end(void **state)
{
    (void)state;
    char mem[16];
    size_t n = 99;
    int fd = pipe_with("twelve bytes");
    assert_int_equal(file_read(fd, mem, sizeof mem, &n), ERR_OK);
    assert_int_equal(n, 12);
    assert_memory_equal(mem, "twelve bytes", 12);
    assert_int_equal(file_read(fd, mem, sizeof mem, &n), ERR_OK);
    assert_int_equal(n, 0);
    (void)close(fd);
}

static void reads_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    char mem[16] = "###############";
    size_t n = 99;
    int fd = pipe_with("twelve bytes");
    assert_int_equal(file_read(fd, mem, 6, &n), ERR_OK);
    assert_int_equal(n, 6);
    assert_string_equal(mem, "twelve#########");
    (void)close(fd);
}

static void says_that_it_cannot_be_read(void **state)
{
    (void)state;
    char mem[16];
    size_t n;
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_read(fd, mem, sizeof mem, &n), ERR_IO);
    assert_int_equal(errno, EISDIR);
    (void)close(fd);
}

static void loads_by_path(void **state)
{
    (void)state;
    char mem[16];
    size_t n = 99;
    assert_int_equal(file_load("/dev/null", 0, mem, sizeof mem, &n), ERR_OK);
    assert_int_equal(n, 0);
    assert_int_equal(file_load("/dev/zero", 0, mem, sizeof mem, &n), ERR_OK);
    assert_int_equal(n, sizeof mem);
    assert_int_equal(file_load("/", 0, mem, sizeof mem, &n), ERR_IO);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(file_load("/nonexistent", 0, mem, sizeof mem, &n), ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(file_load("/dev/null", O_DIRECTORY, mem, sizeof mem, &n), ERR_IO);
    assert_int_equal(errno, ENOTDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_to_the_end),
        cmocka_unit_test(reads_no_more_than_there_is_room_for),
        cmocka_unit_test(says_that_it_cannot_be_read),
        cmocka_unit_test(loads_by_path),
    };
    return cmocka_run_group_tests_name("base/file", tests, NULL, NULL);
}
