#include "base/passfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WHAT "--password-file"

static char dir[64], path[80];
static char out[PASSFILE_MAX + 1];
static struct err e;

static int begin(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-passfile-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/p", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

static enum err_code read_from(const char *content, size_t n)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(content, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(out, sizeof out, "before");
    enum err_code rc = passfile_read(path, WHAT, false, out, &e);
    assert_true(rc == ERR_OK || out[0] == '\0');
    return rc;
}

static void others_may_not_write_to_it(void **state)
{
    (void)state;
    static const mode_t wrong[] = {0620, 0602, 0666}, right[] = {0600, 0640, 0644, 0400};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_from("secret", 6), ERR_OK);
        assert_int_equal(chmod(path, wrong[i]), 0);
        assert_int_equal(passfile_read(path, WHAT, false, out, &e), ERR_INVALID);
        assert_string_equal(out, "");
        assert_int_equal(chmod(path, 0600), 0);
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(chmod(path, right[i]), 0);
        assert_int_equal(passfile_read(path, WHAT, false, out, &e), ERR_OK);
    }
    assert_int_equal(chmod(path, 0600), 0);
}

static void one_line_end_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *content, *password;
    } cases[] = {
        {"secret", "secret"},
        {"secret\n", "secret"},
        {"secret\r\n", "secret"},
        {"secret\n\n", "secret\n"},
        {" two\nlines \n", " two\nlines "},
        {"a\r\nb", "a\r\nb"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_from(cases[i].content, strlen(cases[i].content)), ERR_OK);
        assert_string_equal(out, cases[i].password);
    }
}

static void too_long_is_refused(void **state)
{
    (void)state;
    char big[PASSFILE_MAX + 40];
    memset(big, 'x', sizeof big);
    assert_int_equal(read_from(big, PASSFILE_MAX), ERR_OK);
    assert_int_equal(strlen(out), PASSFILE_MAX);
    for (size_t n = PASSFILE_MAX + 1; n <= sizeof big; n++)
        assert_int_equal(read_from(big, n), ERR_RANGE);
    assert_string_equal(e.text, "expected 1..1024 bytes in " WHAT ", found more");
    memcpy(big + PASSFILE_MAX, "\r\n\n", 3);
    assert_int_equal(read_from(big, PASSFILE_MAX + 2), ERR_OK);
    assert_int_equal(strlen(out), PASSFILE_MAX);
    assert_int_equal(read_from(big, PASSFILE_MAX + 3), ERR_RANGE);
}

static void nothing_is_refused(void **state)
{
    (void)state;
    assert_int_equal(read_from("", 0), ERR_RANGE);
    assert_string_equal(e.text, "expected 1..1024 bytes in " WHAT ", found none");
    assert_int_equal(read_from("\n", 1), ERR_RANGE);
    assert_int_equal(read_from("\r\n", 2), ERR_RANGE);
}

static void nul_is_refused(void **state)
{
    (void)state;
    assert_int_equal(read_from("a\0b", 3), ERR_INVALID);
    assert_string_equal(e.text, "expected text in " WHAT ", found a NUL");
    assert_int_equal(read_from("a\0\n", 3), ERR_INVALID);
}

static void no_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(passfile_read("/nonexistent", WHAT, false, out, &e), ERR_IO);
    assert_string_equal(e.text, "expected a readable file for " WHAT
                                ", found \"/nonexistent\": No such file or directory");
}

/* Of the fifo nobody has the other end: to read it, even to open it, might take for ever. */
static void other_kinds_are_refused(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *const others[] = {path, dir, "/dev/zero"};
    (void)alarm(10);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(passfile_read(others[i], WHAT, false, out, &e), ERR_INVALID);
        assert_string_equal(e.text, "expected a regular file for " WHAT ", found another kind");
    }
    (void)alarm(0);
}

static void who_can_wait_takes_a_pipe(void **state)
{
    (void)state;
    int pipes[2];
    char name[32];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], "secret\n", 7), 7);
    (void)close(pipes[1]);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", pipes[0]);
    assert_int_equal(passfile_read(name, WHAT, true, out, &e), ERR_OK);
    assert_string_equal(out, "secret");
    (void)close(pipes[0]);
    assert_int_equal(passfile_read(dir, WHAT, true, out, &e), ERR_IO);
}

#define PASSFILE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PASSFILE(others_may_not_write_to_it),
        PASSFILE(one_line_end_is_left_out),
        PASSFILE(too_long_is_refused),
        PASSFILE(nothing_is_refused),
        PASSFILE(nul_is_refused),
        PASSFILE(no_file_is_refused),
        PASSFILE(other_kinds_are_refused),
        PASSFILE(who_can_wait_takes_a_pipe),
    };
    return cmocka_run_group_tests_name("base/passfile", tests, NULL, NULL);
}
