/* A connection's turns: what is read, in which writes it is answered, and how it ends. */
#include "support/net_bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;

/* The loop's only way out: it stands before the C library's, and counts. */
static unsigned sends;

ssize_t send(int fd, const void *p, size_t n, int flags)
{
    (void)__atomic_add_fetch(&sends, 1, __ATOMIC_SEQ_CST);
    return sendto(fd, p, n, flags, NULL, 0);
}

static unsigned count_sends(void)
{
    return __atomic_load_n(&sends, __ATOMIC_SEQ_CST);
}

static void requests_are_answered(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "one\n");
    expect(fd, "one\n");
    say(fd, "two\n");
    expect(fd, "two\n");
    assert_int_equal(net_bench_connections(&b), 1);
    (void)close(fd);
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(b.closed, 1);
    assert_int_equal(b.svc.accepted, 1);
    assert_int_equal(b.svc.bytes_in, 8);
    assert_int_equal(b.svc.bytes_out, 8);
    assert_int_equal(histogram_total(&b.svc.duration), 2);
    assert_true(b.settled >= 2);
}

static void input_may_come_byte_by_byte(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    const char *text = "first\nsecond line\n\nbig 3\nlast\n";
    for (const char *c = text; *c; c++) {
        char one[2] = {*c, '\0'};
        say(fd, one);
        uint64_t seen = (uint64_t)(c - text) + 1; /* so that each byte is a read of its own */
        NET_AWAIT(net_bench_bytes_in(&b) == seen);
    }
    expect(fd, "first\nsecond line\n\nxxx\nlast\n");
    expect_silence(fd, 20);
    (void)close(fd);
}

static void a_batch_is_answered_in_few_writes(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    char batch[4001] = "";
    for (size_t i = 0; i < 1000; i++) {
        char line[5] = {(char)('0' + i / 100), (char)('0' + i / 10 % 10), (char)('0' + i % 10),
                        '\n'};
        memcpy(batch + 4 * i, line, 5);
    }
    say(fd, "x\n");
    expect(fd, "x\n");
    unsigned before = count_sends();
    say(fd, batch);
    for (int i = 0; i < 1000; i++) {
        char line[5];
        memcpy(line, batch + 4 * i, 4);
        line[4] = '\0';
        expect(fd, line);
    }
    assert_in_range(count_sends() - before, 1, 20); /* a turn may end within it */
    (void)close(fd);
}

static void a_large_output_is_sent_in_between(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    static char big[400002];
    memset(big, 'x', 400001);
    big[400000] = '\n';
    unsigned before = count_sends();
    say(fd, "big 400000\nbig 400000\nafter\n");
    for (int i = 0; i < 2; i++) {
        size_t got = 0;
        static char found[400001];
        while (got < sizeof found) {
            ssize_t r = read(fd, found + got, sizeof found - got);
            assert_true(r > 0);
            got += (size_t)r;
        }
        assert_memory_equal(found, big, sizeof found);
    }
    expect(fd, "after\n");
    assert_true(count_sends() - before >= 3);
    (void)close(fd);
}

/* ---- slow clients -----------------------------------------------------------------------------
 */

/* Repeats the text until the other side has taken nothing for a second; returns how much it took.
 * from: how much of it went before. */
static size_t stuff(int fd, const char *text, size_t from)
{
    size_t sum = from, n = strlen(text);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (poll(&p, 1, 1000) == 0)
            return sum - from;
        ssize_t r = sendto(fd, text + sum % n, n - sum % n, MSG_DONTWAIT, NULL, 0);
        sum += r > 0 ? (size_t)r : 0;
    }
}

static void whoever_does_not_read_is_not_read_from(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int slow = dial(&b), other = dial(&b);
    const char *request = "big 6000\n";
    size_t sent = 0;
    for (size_t more = 1; more > 0; sent += more)
        more = stuff(slow, request, sent);
    uint64_t taken = net_bench_bytes_in(&b);
    assert_true(taken <= sent);
    assert_true(net_bench_bytes_in(&b) == taken); /* it is held off */
    assert_true(taken < 64 * NET_IN_MAX);
    say(other, "hello\n"); /* and nobody else is */
    expect(other, "hello\n");
    char sink[65536];
    uint64_t lines = 0;
    (void)shutdown(slow, SHUT_WR);
    for (ssize_t r; (r = read(slow, sink, sizeof sink)) > 0;)
        for (ssize_t i = 0; i < r; i++)
            lines += sink[i] == '\n';
    assert_true(lines == sent / strlen(request)); /* everything is answered in the end */
    (void)close(slow);
    (void)close(other);
}

static void a_slow_reader_gets_every_byte_in_order(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b), small = 4096;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    char line[32];
    for (int i = 0; i < 200; i++) {
        (void)snprintf(line, sizeof line, "big %d\n", 1000 + i * 50);
        say(fd, line);
    }
    char bytes[512]; /* small reads: the sender is held up again and again */
    ssize_t got = 0, at = 0;
    for (int i = 0; i < 200; i++) {
        int n = 0;
        for (char c = 'x'; c == 'x'; n++) {
            if (at == got) {
                got = read(fd, bytes, sizeof bytes);
                at = 0;
                assert_true(got > 0);
            }
            c = bytes[at++];
        }
        assert_int_equal(bytes[at - 1], '\n');
        assert_int_equal(n - 1, 1000 + i * 50);
    }
    (void)close(fd);
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static void a_half_closed_connection_is_answered_to_its_end(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "one\ntwo\nthr");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect(fd, "one\ntwo\n");
    expect_end(fd); /* the half of a request is dropped */
    NET_AWAIT(net_bench_connections(&b) == 0);
    (void)close(fd);
}

static void a_half_closed_connection_that_waits_is_answered(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "wait\nafter\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect_silence(fd, 30);
    net_bench_open_gate(&b);
    expect(fd, "open\nafter\n");
    expect_end(fd);
    (void)close(fd);
}

static void a_service_may_close(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "one\nclose\ntwo\n");
    expect(fd, "one\nbye\n");
    expect_end(fd);
    (void)close(fd);
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(histogram_total(&b.svc.duration), 2); /* the last one, too, was answered */
    fd = dial(&b);
    say(fd, "big 400000\nbig 400000\nbig 400000\nclose\n"); /* with output still to be sent */
    size_t got = 0;
    char sink[65536];
    for (ssize_t r; (r = read(fd, sink, sizeof sink)) > 0;)
        got += (size_t)r;
    assert_int_equal(got, 3 * 400001 + 4);
    (void)close(fd);
    NET_AWAIT(net_bench_connections(&b) == 0);
}

static void clients_that_vanish_leave_nothing_behind(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    static const char *const last_words[] = {"",           "half a requ",      "wait\n",
                                             "half\nmore", "big 400000\nwait", "take 3000\n"};
    for (size_t i = 0; i < 60; i++) {
        struct linger now = {1, 0}; /* close sends a reset */
        int fd = dial(&b);
        say(fd, last_words[i % 6]);
        if (i % 2)
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        (void)close(fd);
    }
    net_bench_open_gate(&b); /* those who wait are noticed when they are answered */
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(b.closed, b.svc.accepted);
}

static void an_endless_request_is_cut(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    static char flood[4096];
    memset(flood, 'a', sizeof flood);
    for (int i = 0; i < 64; i++)
        if (sendto(fd, flood, sizeof flood, MSG_NOSIGNAL, NULL, 0) < 0)
            break; /* closed already */
    expect_end(fd);
    assert_true(net_bench_bytes_in(&b) <= NET_IN_MAX);
    (void)close(fd);
}

/* ---- limits -----------------------------------------------------------------------------------
 */

static void one_connection_too_many_is_told(void **state)
{
    (void)state;
    b.conf.connections = 2;
    net_bench_start(&b, NULL);
    int one = dial(&b), two = dial(&b);
    say(one, "a\n");
    say(two, "b\n");
    expect(one, "a\n");
    expect(two, "b\n");
    int three = dial(&b);
    expect(three, "full\n");
    expect_end(three);
    (void)close(three);
    (void)close(one);
    NET_AWAIT(net_bench_connections(&b) == 1);
    three = dial(&b);
    say(three, "c\n");
    expect(three, "c\n");
    assert_int_equal(net_bench_connections(&b), 2);
    assert_int_equal(b.svc.refused, 1);
    assert_int_equal(b.svc.accepted, 3);
    (void)close(two);
    (void)close(three);
}

static void the_idle_are_closed_and_the_busy_are_not(void **state)
{
    (void)state;
    b.conf.idle_timeout_us = 400000;
    net_bench_start(&b, NULL);
    int64_t start = clock_mono_ms(clock_system());
    int idle = dial(&b), busy = dial(&b);
    bool closed = false;
    for (int i = 0; i < 300 && !closed; i++) {
        say(busy, "x\n");
        expect(busy, "x\n");
        struct pollfd p = {.fd = idle, .events = POLLIN};
        closed = poll(&p, 1, 10) == 1;
    }
    assert_true(closed);
    assert_true(clock_mono_ms(clock_system()) - start >= 400);
    expect_end(idle);
    say(busy, "still here\n");
    expect(busy, "still here\n");
    expect_end(busy); /* now it is idle, too */
    (void)close(idle);
    (void)close(busy);
}

static void where_there_are_slots_the_idlest_makes_room(void **state)
{
    (void)state;
    b.conf.connections = 0;
    b.svc.slots = 3;
    net_bench_start(&b, NULL);
    int one = dial(&b), two = dial(&b), three = dial(&b);
    int fd[] = {two, three, one};
    for (size_t i = 0; i < 3; i++) {
        say(fd[i], "a\n");
        expect(fd[i], "a\n");
        (void)poll(NULL, 0, 2);
    }
    int four = dial(&b);
    say(four, "b\n");
    expect(four, "b\n");
    expect_end(two);
    say(one, "c\n");
    expect(one, "c\n");
    say(three, "c\n");
    expect(three, "c\n");
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 1);
    assert_int_equal(b.svc.refused, 0);
    (void)close(one);
    (void)close(two);
    (void)close(three);
    (void)close(four);
    NET_AWAIT(net_bench_connections(&b) == 0);
}

static void do_reconfigure(struct net_bench *bench, void *arg)
{
    (void)arg;
    net_reconfigure(bench->net, &bench->conf);
}

static void limits_can_be_changed(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "a\n");
    expect(fd, "a\n");
    b.conf.connections = 1;
    b.conf.idle_timeout_us = 50000;
    net_bench_call(&b, do_reconfigure, NULL);
    int more = dial(&b);
    expect(more, "full\n");
    (void)close(more);
    expect_end(fd);
    (void)close(fd);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(requests_are_answered),
        NET(input_may_come_byte_by_byte),
        NET(a_batch_is_answered_in_few_writes),
        NET(a_large_output_is_sent_in_between),
        NET(whoever_does_not_read_is_not_read_from),
        NET(a_slow_reader_gets_every_byte_in_order),
        NET(a_half_closed_connection_is_answered_to_its_end),
        NET(a_half_closed_connection_that_waits_is_answered),
        NET(a_service_may_close),
        NET(clients_that_vanish_leave_nothing_behind),
        NET(an_endless_request_is_cut),
        NET(one_connection_too_many_is_told),
        NET(where_there_are_slots_the_idlest_makes_room),
        NET(the_idle_are_closed_and_the_busy_are_not),
        NET(limits_can_be_changed),
    };
    return cmocka_run_group_tests_name("net/conn", tests, NULL, NULL);
}
