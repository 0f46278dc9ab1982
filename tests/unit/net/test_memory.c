/* What is kept for all connections has a limit. */
#include "support/net_bench.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((size_t)1 << 20)
#define CROWD 60
#define PART  60000 /* bytes of a request without an end */

static struct net_bench b;

static void do_kept(struct net_bench *bench, void *arg)
{
    *(uint64_t *)arg = net_kept(bench->net);
}

static uint64_t kept(void)
{
    uint64_t n = 0;
    net_bench_call(&b, do_kept, &n);
    return n;
}

static void say_what_it_takes(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = sendto(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
        struct pollfd w = {.fd = fd, .events = POLLOUT};
        if (r < 0 && poll(&w, 1, 200) != 1)
            return;
        if (r < 0 && w.revents & (POLLERR | POLLHUP))
            return;
        n -= r > 0 ? (size_t)r : 0;
        p += r > 0 ? r : 0;
    }
}

static void those_who_keep_most_are_closed(void **state)
{
    (void)state;
    static char part[PART];
    int fd[CROWD];
    memset(part, 'x', sizeof part);
    b.conf.memory = LIMIT;
    net_bench_start(&b, NULL);
    int little = dial(&b), idle = dial(&b);
    say(little, "a request that is not who");
    say(idle, "hello\n");
    expect(idle, "hello\n");
    for (int i = 0; i < CROWD; i++) {
        fd[i] = dial(&b);
        say_what_it_takes(fd[i], part, PART);
        assert_true(kept() <= LIMIT + NET_IN_MAX);
    }
    NET_AWAIT(kept() <= LIMIT);
    assert_true(net_bench_ended(&b, NET_END_MEMORY) >= CROWD / 2);
    assert_true(kept() > LIMIT / 2); /* not more of them than needed */
    say(little, "le\n");
    expect(little, "a request that is not whole\n");
    say(idle, "there\n");
    expect(idle, "there\n");
    for (int i = 0; i < CROWD; i++)
        (void)close(fd[i]);
    NET_AWAIT(net_bench_connections(&b) == 2);
    assert_int_equal(kept(), 0);
    (void)close(little);
    (void)close(idle);
}

static void so_are_those_who_take_nothing(void **state)
{
    (void)state;
    int fd[20];
    b.conf.memory = LIMIT;
    net_bench_start(&b, NULL);
    for (int i = 0; i < 20; i++) {
        fd[i] = dial(&b);
        for (int k = 0; k < 40; k++)
            say_what_it_takes(fd[i], "big 400000\n", 11);
    }
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) > 0);
    int other = dial(&b);
    say(other, "hello\n");
    expect(other, "hello\n");
    NET_AWAIT(kept() <= LIMIT);
    for (int i = 0; i < 20; i++)
        (void)close(fd[i]);
    (void)close(other);
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(kept(), 0);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(those_who_keep_most_are_closed),
        NET(so_are_those_who_take_nothing),
    };
    return cmocka_run_group_tests_name("net/memory", tests, NULL, NULL);
}
