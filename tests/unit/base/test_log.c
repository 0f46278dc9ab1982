#include "base/log.h"

#include "base/timefmt.h"
#include "support/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define STAMP_BYTES (sizeof "2026-01-02T03:04:05.678Z" - 1)
#define LINE_BYTES  2048

static const char *written(enum log_level level, const char *msg, const struct log_kv *kv)
{
    capture_begin();
    log_write(level, msg, kv);
    return capture_end();
}

static void assert_stamp(const char *text)
{
    int64_t ms;
    assert_true(strlen(text) > STAMP_BYTES);
    assert_true(timefmt_parse_rfc3339(span_of(text, STAMP_BYTES), &ms));
}

static int plain(void **state)
{
    (void)state;
    unsetenv("JOURNAL_STREAM");
    log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    return 0;
}

static void text_lines(void **state)
{
    (void)state;
    const char *line = written(LOG_LVL_INFO, "worker claimed",
                               LOG_KVS(kv_u64("worker", 7), kv_i64("low", -1), kv_str("by", "x")));
    assert_stamp(line);
    assert_string_equal(line + STAMP_BYTES, " info  worker claimed worker=7 low=-1 by=x\n");
    assert_string_equal(written(LOG_LVL_ERROR, "no", LOG_KVS()) + STAMP_BYTES, " error no\n");
    assert_string_equal(written(LOG_LVL_WARN, "no", LOG_KVS()) + STAMP_BYTES, " warn  no\n");
}

static void text_values_are_quoted_where_they_must(void **state)
{
    (void)state;
    static const struct {
        struct span value;
        const char *text;
    } cases[] = {
        {SPAN("tcp://h:1"), "v=tcp://h:1\n"},
        {SPAN(""), "v=\"\"\n"},
        {{NULL, 0}, "v=\"\"\n"},
        {SPAN("a b"), "v=\"a b\"\n"},
        {SPAN("a=b"), "v=\"a=b\"\n"},
        {SPAN("say \"hi\""), "v=\"say \\\"hi\\\"\"\n"},
        {SPAN("c:\\x"), "v=\"c:\\\\x\"\n"},
        {SPAN("a\nerror b"), "v=\"a\\u000aerror b\"\n"},
        {SPAN("\0\x1b[31m\x7f"), "v=\"\\u0000\\u001b[31m\\u007f\"\n"},
        {SPAN("\xc3\xa4"), "v=\"\\u00c3\\u00a4\"\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *line = written(LOG_LVL_INFO, "m", LOG_KVS(kv_span("v", cases[i].value)));
        assert_string_equal(line + STAMP_BYTES + sizeof " info  m", cases[i].text);
    }
}

static void json_lines(void **state)
{
    (void)state;
    log_setup(LOG_LVL_INFO, LOG_FMT_JSON);
    const char *line =
        written(LOG_LVL_WARN, "odd \"thing\"",
                LOG_KVS(kv_u64("max", UINT64_MAX), kv_i64("min", INT64_MIN), kv_str("s", "bare"),
                        kv_span("raw", SPAN("\r\n\"\\\xff")), kv_str("none", "")));
    const size_t head = sizeof "{\"time\":\"" - 1;
    assert_memory_equal(line, "{\"time\":\"", head);
    assert_stamp(line + head);
    assert_string_equal(line + head + STAMP_BYTES,
                        "\",\"level\":\"warn\",\"msg\":\"odd \\\"thing\\\"\","
                        "\"max\":18446744073709551615,\"min\":-9223372036854775808,\"s\":\"bare\","
                        "\"raw\":\"\\u000d\\u000a\\\"\\\\\\u00ff\",\"none\":\"\"}\n");
}

static void journald_gets_priorities_for_times(void **state)
{
    (void)state;
    static const char *const expected[] = {"<3>m k=1\n", "<4>m k=1\n", "<6>m k=1\n", "<7>m k=1\n"};
    setenv("JOURNAL_STREAM", "8:12345", 1);
    log_setup(LOG_LVL_DEBUG, LOG_FMT_TEXT);
    for (unsigned level = LOG_LVL_ERROR; level <= LOG_LVL_DEBUG; level++)
        assert_string_equal(written(level, "m", LOG_KVS(kv_i64("k", 1))), expected[level]);
}

static void levels_above_the_limit_are_silent(void **state)
{
    (void)state;
    for (unsigned limit = LOG_LVL_ERROR; limit <= LOG_LVL_DEBUG; limit++) {
        log_setup(limit, LOG_FMT_TEXT);
        for (unsigned level = LOG_LVL_ERROR; level <= LOG_LVL_DEBUG; level++)
            assert_int_equal(written(level, "m", LOG_KVS())[0] != '\0', level <= limit);
    }
}

static void macros_pass_their_level(void **state)
{
    (void)state;
    log_setup(LOG_LVL_DEBUG, LOG_FMT_TEXT);
    capture_begin();
    log_error("a");
    log_warn("b", kv_i64("k", 1));
    log_info("c");
    const char *text = capture_end();
    assert_non_null(strstr(text, " error a\n"));
    assert_non_null(strstr(text, " warn  b k=1\n"));
    assert_non_null(strstr(text, " info  c\n"));
}

static const char *ending(const char *line, const char *expected)
{
    return line + strlen(line) - strlen(expected);
}

/* A value of n bytes after another key; the line must be whole or end as a cut one does. */
static void check_cut(char fill, size_t n, const char *cut_ending)
{
    static char value[4 * LINE_BYTES];
    memset(value, fill, n);
    const char *line = written(
        LOG_LVL_INFO, "m", LOG_KVS(kv_span("v", span_of(value, n)), kv_u64("last", UINT64_MAX)));
    size_t length = strlen(line);
    assert_in_range(length, 1, LINE_BYTES);
    assert_ptr_equal(strchr(line, '\n'), line + length - 1);
    if (!strstr(line, "18446744073709551615"))
        assert_string_equal(ending(line, cut_ending), cut_ending);
    if (n >= LINE_BYTES)
        assert_true(length > LINE_BYTES - 32);
}

static void long_lines_are_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n < 2 * LINE_BYTES; n++) {
        log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
        check_cut('x', n, " cut=true\n");
        log_setup(LOG_LVL_INFO, LOG_FMT_JSON);
        check_cut('x', n, "\",\"cut\":true}\n");
    }
}

/* An escape of six bytes is never split: what remains of a JSON line can be read. */
static void escapes_are_cut_whole(void **state)
{
    (void)state;
    static char value[LINE_BYTES];
    log_setup(LOG_LVL_INFO, LOG_FMT_JSON);
    for (size_t lead = 0; lead < 12; lead++) {
        memset(value, 'x', lead);
        memset(value + lead, '\n', sizeof value - lead);
        const char *line =
            written(LOG_LVL_INFO, "m", LOG_KVS(kv_span("v", span_of(value, sizeof value))));
        const char *end = ending(line, "\\u000a\",\"cut\":true}\n");
        assert_string_equal(end, "\\u000a\",\"cut\":true}\n");
        assert_in_range(strlen(line), LINE_BYTES - 16, LINE_BYTES);
    }
}

static void *write_lines(void *fill)
{
    char value[200];
    memset(value, *(char *)fill, sizeof value);
    for (int i = 0; i < 200; i++)
        log_info("t", kv_span("v", span_of(value, sizeof value)));
    return NULL;
}

/* Four threads write while the level is set again and again; run under ThreadSanitizer, too. */
static void threads_do_not_mix_lines(void **state)
{
    (void)state;
    char fills[] = "abcd";
    pthread_t threads[4];
    capture_begin();
    for (size_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, write_lines, &fills[i]) != 0)
            abort();
    for (int i = 0; i < 100; i++)
        log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    const char *text = capture_end();
    size_t lines = 0;
    struct span rest = span_str(text);
    while (rest.n > 0) {
        struct span line = span_cut(&rest, '\n');
        assert_int_equal(line.n, STAMP_BYTES + sizeof " info  t v=" - 1 + 200);
        for (size_t i = 2; i <= 200; i++)
            assert_int_equal(line.p[line.n - i], line.p[line.n - 1]);
        lines++;
    }
    assert_int_equal(lines, 4 * 200);
}

static void a_lost_line_is_no_failure(void **state)
{
    (void)state;
    capture_begin();
    close(STDERR_FILENO);
    log_error("nobody reads this");
    assert_string_equal(capture_end(), "");
}

/* A pipe that is full: who would wait for its reader, waits for ever. */
static void nobody_waits_for_who_reads(void **state)
{
    (void)state;
    int pipes[2], before = dup(STDERR_FILENO), why;
    char mem[64 << 10];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fcntl(pipes[1], F_SETPIPE_SZ, 8192), 8192);
    assert_true(dup2(pipes[1], STDERR_FILENO) >= 0);
    (void)alarm(10);
    for (int i = 0; i < 400; i++)
        log_error("nobody reads this, and so it is too much by and by");
    (void)alarm(0);
    uint64_t n = log_lost(&why);
    assert_in_range(n, 200, 399);
    assert_int_equal(why, EAGAIN);
    assert_true(read(pipes[0], mem, sizeof mem) > 0);
    log_error("again");
    ssize_t got = read(pipes[0], mem, sizeof mem - 1);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    assert_true(got > 0);
    mem[got] = '\0';
    char expected[64];
    (void)snprintf(expected, sizeof expected, " warn  lines of the log were lost number=%d\n",
                   (int)n);
    assert_non_null(strstr(mem, expected));
    assert_non_null(strstr(mem, " error again\n"));
    assert_int_equal(log_lost(&why), 0);
    (void)close(before);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* A terminal that nobody reads has room for less than a line before it has none. */
static void nor_for_who_has_the_terminal(void **state)
{
    (void)state;
    static char text[900];
    int ours = posix_openpt(O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO), why;
    assert_true(ours >= 0);
    assert_int_equal(grantpt(ours), 0);
    assert_int_equal(unlockpt(ours), 0);
    int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
    assert_true(theirs >= 0);
    assert_true(dup2(theirs, STDERR_FILENO) >= 0);
    (void)alarm(10);
    for (size_t i = 0; i < 3000; i++) {
        text[i % (sizeof text - 1)] = 'x';
        log_error("too much", kv_str("text", text));
    }
    (void)alarm(0);
    uint64_t n = log_lost(&why);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    assert_in_range(n, 1500, 2999);
    assert_int_equal(why, EAGAIN);
    assert_non_null(
        strstr(written(LOG_LVL_ERROR, "again", LOG_KVS()), "lines of the log were lost"));
    (void)close(before);
    (void)close(theirs);
    (void)close(ours);
}

/* As journald has it. */
static void nor_for_who_has_the_socket(void **state)
{
    (void)state;
    int fd[2], before = dup(STDERR_FILENO), why;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_true(dup2(fd[1], STDERR_FILENO) >= 0);
    (void)alarm(10);
    for (int i = 0; i < 9000; i++)
        log_error("nobody reads this, and so it is too much by and by");
    (void)alarm(0);
    uint64_t n = log_lost(&why);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    assert_in_range(n, 1000, 8999);
    assert_int_equal(why, EAGAIN);
    (void)written(LOG_LVL_ERROR, "again", LOG_KVS());
    (void)close(before);
    (void)close(fd[0]);
    (void)close(fd[1]);
}

static void *read_soon(void *fd)
{
    char mem[64 << 10];
    const struct timespec soon = {.tv_nsec = 5000000}; /* of a grace of 100 ms */
    (void)nanosleep(&soon, NULL);
    return read(*(int *)fd, mem, sizeof mem) > 0 ? fd : NULL;
}

static void who_reads_slowly_loses_nothing(void **state)
{
    (void)state;
    int pipes[2], before = dup(STDERR_FILENO), why;
    pthread_t reader;
    void *has_read;
    assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
    while (write(pipes[1], "full", 4) > 0)
        continue;
    assert_int_equal(pthread_create(&reader, NULL, read_soon, &pipes[0]), 0);
    assert_true(dup2(pipes[1], STDERR_FILENO) >= 0);
    log_error("read soon");
    uint64_t n = log_lost(&why);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    assert_int_equal(pthread_join(reader, &has_read), 0);
    assert_non_null(has_read);
    assert_int_equal(n, 0);
    (void)close(before);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

static void limit_lets_one_through(void **state)
{
    (void)state;
    struct log_limit l = {0};
    uint64_t held = 99;
    assert_true(log_limit_pass(&l, 5000, 1000, &held));
    assert_int_equal(held, 0);
    assert_false(log_limit_pass(&l, 5000, 1000, &held));
    assert_false(log_limit_pass(&l, 5999, 1000, NULL));
    assert_int_equal(held, 0);
    assert_true(log_limit_pass(&l, 6000, 1000, &held));
    assert_int_equal(held, 2);
    assert_true(log_limit_pass(&l, 7000, 1000, NULL));
    assert_int_equal(l.held, 0);
}

static struct log_last last_words = {.n = 0};

static const char *last_written(enum log_format format)
{
    log_setup(LOG_LVL_ERROR, format);
    log_prepare(&last_words, "it ends", LOG_KVS(kv_str("why", "a b"), kv_u64("n", 7)));
    capture_begin();
    log_last_words(&last_words);
    return capture_end();
}

static void a_line_can_be_made_beforehand(void **state)
{
    (void)state;
    assert_string_equal(last_written(LOG_FMT_TEXT), "error it ends why=\"a b\" n=7\n");
    assert_string_equal(last_written(LOG_FMT_JSON),
                        "{\"level\":\"error\",\"msg\":\"it ends\",\"why\":\"a b\",\"n\":7}\n");
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(log_level_name(LOG_LVL_ERROR), "error");
    assert_string_equal(log_level_name(LOG_LVL_WARN), "warn");
    assert_string_equal(log_level_name(LOG_LVL_INFO), "info");
    assert_string_equal(log_level_name(LOG_LVL_DEBUG), "debug");
    assert_null(log_level_name(LOG_LVL_DEBUG + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(text_lines, plain),
        cmocka_unit_test_setup(text_values_are_quoted_where_they_must, plain),
        cmocka_unit_test_setup(json_lines, plain),
        cmocka_unit_test_setup(journald_gets_priorities_for_times, plain),
        cmocka_unit_test_setup(levels_above_the_limit_are_silent, plain),
        cmocka_unit_test_setup(macros_pass_their_level, plain),
        cmocka_unit_test_setup(long_lines_are_cut, plain),
        cmocka_unit_test_setup(escapes_are_cut_whole, plain),
        cmocka_unit_test_setup(threads_do_not_mix_lines, plain),
        cmocka_unit_test_setup(a_lost_line_is_no_failure, plain),
        cmocka_unit_test_setup(nobody_waits_for_who_reads, plain),
        cmocka_unit_test_setup(nor_for_who_has_the_terminal, plain),
        cmocka_unit_test_setup(nor_for_who_has_the_socket, plain),
        cmocka_unit_test_setup(who_reads_slowly_loses_nothing, plain),
        cmocka_unit_test(limit_lets_one_through),
        cmocka_unit_test_setup(a_line_can_be_made_beforehand, plain),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
