/* The loop itself: signals, timers, and the end. */
#include "net/addr.h"
#include "net/private.h"
#include "support/net_bench.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;

static bool is_drained(void)
{
    return __atomic_load_n(&b.drained, __ATOMIC_SEQ_CST);
}

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_system());
}

/* ---- busy_poll --------------------------------------------------------------------------------
 */

static void count_turns(struct net_bench *bench, void *arg)
{
    *(unsigned *)arg = ev_iteration(bench->net->loop);
}

static unsigned turns(void)
{
    unsigned n;
    net_bench_call(&b, count_turns, &n);
    return n;
}

/* Turns of the loop in the 200 ms after a reply, with this busy_poll; then it sleeps. */
static unsigned turns_after_a_reply(int64_t busy_poll_us)
{
    b.conf.busy_poll_us = busy_poll_us;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    unsigned before = turns();
    say(fd, "x\n");
    expect(fd, "x\n");
    (void)poll(NULL, 0, 200);
    unsigned after = turns();
    (void)poll(NULL, 0, 100);
    assert_true(turns() - after < 20);
    (void)close(fd);
    return after - before;
}

static void without_busy_poll_it_sleeps(void **state)
{
    (void)state;
    assert_true(turns_after_a_reply(0) < 20);
}

static void with_busy_poll_it_turns_for_that_long(void **state)
{
    (void)state;
    assert_true(turns_after_a_reply(50000) > 50);
}

/* ---- draining ---------------------------------------------------------------------------------
 */

static void an_idle_loop_is_drained_at_once(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "x\n");
    expect(fd, "x\n");
    int64_t start = now_ms();
    net_bench_drain(&b, 60000000);
    expect_end(fd);
    NET_AWAIT(is_drained());
    assert_true(now_ms() - start < 30000);
    (void)close(fd);
}

static void nobody_is_accepted_any_more(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    net_bench_drain(&b, 0);
    NET_AWAIT(is_drained());
    struct addr a;
    struct err e;
    int fd;
    assert_int_equal(addr_parse(span_str(b.address), &a, &e), ERR_OK);
    assert_int_equal(addr_connect(&a, 1000000, &fd, &e), ERR_IO);
    assert_int_equal(net_bench_connections(&b), 0);
}

static void what_has_arrived_is_answered(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int half = dial(&b), waits = dial(&b);
    say(half, "x\nhalf a requ");
    say(waits, "x\nwait\nafter\n");
    expect(half, "x\n");
    expect(waits, "x\n");
    net_bench_drain(&b, 60000000);
    expect_end(half);
    expect_silence(waits, 50);
    assert_false(is_drained());
    net_bench_open_gate(&b);
    expect(waits, "open\nafter\n");
    expect_end(waits);
    NET_AWAIT(is_drained());
    (void)close(half);
    (void)close(waits);
}

static void drained_at_last(void *arg)
{
    __atomic_store_n(&((struct net_bench *)arg)->drained, true, __ATOMIC_SEQ_CST);
}

struct flood {
    int fd;
    size_t lines;
};

/* In the loop's thread: so that none of it is read before the drain begins. */
static void flood_and_drain(struct net_bench *bench, void *arg)
{
    struct flood *f = arg;
    static char lines[65536];
    for (size_t i = 0; i < sizeof lines; i += 2)
        memcpy(lines + i, "y\n", 2);
    size_t sent = 0;
    for (ssize_t r; (r = sendto(f->fd, lines, sizeof lines, MSG_DONTWAIT, NULL, 0)) > 0;)
        sent += (size_t)r;
    if (sent % 2 && sendto(f->fd, "\n", 1, MSG_DONTWAIT, NULL, 0) < 0)
        sent--;
    f->lines = sent / 2;
    net_drain(bench->net, 20000000, NULL, NULL);
}

static void more_than_one_read_of_it_is_answered(void **state)
{
    (void)state;
    char address[64];
    (void)snprintf(address, sizeof address, "unix:/tmp/sidflake-drain-%ld", (long)getpid());
    net_bench_start(&b, address);
    struct flood f = {.fd = dial(&b)};
    say(f.fd, "x\n");
    expect(f.fd, "x\n");
    net_bench_call(&b, flood_and_drain, &f);
    assert_true(f.lines * 2 > NET_IN_MAX);
    size_t got = 0;
    char sink[65536];
    for (ssize_t r; (r = read(f.fd, sink, sizeof sink)) > 0;)
        got += (size_t)r;
    assert_int_equal(got, f.lines * 2);
    (void)close(f.fd);
}

static void a_client_that_does_not_read_is_given_up(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int slow = dial(&b);
    for (int i = 0; i < 100; i++)
        say(slow, "big 400000\n");
    (void)poll(NULL, 0, 100);
    int64_t start = now_ms();
    net_bench_drain(&b, 300000);
    NET_AWAIT(is_drained());
    assert_true(now_ms() - start >= 299);
    assert_int_equal(net_bench_connections(&b), 0);
    (void)close(slow);
}

enum {
    PARTS = 17
};

/* In the loop's thread, as above. */
static void overflow_and_drain(struct net_bench *bench, void *arg)
{
    for (int i = 0; i < 100; i++)
        say(*(int *)arg, "big 400000\n");
    net_drain(bench->net, 300000, drained_at_last, bench);
}

static void a_drain_ends_though_its_turns_close_others(void **state)
{
    (void)state;
    static char part[61001];
    char address[64];
    int fd[PARTS]; /* they keep nearly all of the limit: it is not enough that the first goes */
    memset(part, 'x', sizeof part - 1);
    b.conf.memory = (size_t)1 << 20;
    (void)snprintf(address, sizeof address, "unix:/tmp/sidflake-full-%ld", (long)getpid());
    net_bench_start(&b, address);
    int first = dial(&b);
    say(first, "x\n");
    expect(first, "x\n");
    for (int i = 0; i < PARTS; i++) {
        fd[i] = dial(&b);
        say(fd[i], part);
        NET_AWAIT(net_bench_bytes_in(&b) == 2 + 61000 * (uint64_t)(i + 1));
    }
    assert_int_equal(net_bench_connections(&b), PARTS + 1);
    net_bench_call(&b, overflow_and_drain, &first);
    NET_AWAIT(is_drained());
    assert_true(net_bench_ended(&b, NET_END_MEMORY) > 1);
    for (int i = 0; i < PARTS; i++)
        (void)close(fd[i]);
    (void)close(first);
}

/* ---- events -----------------------------------------------------------------------------------
 */

static unsigned signals, fired;

static void on_signal(void *arg, int signo)
{
    assert_ptr_equal(arg, &signals);
    assert_int_equal(signo, SIGUSR1);
    (void)__atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST);
}

static void on_after(void *arg)
{
    (void)__atomic_add_fetch((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
}

static void do_watch(struct net_bench *bench, void *arg)
{
    (void)arg;
    struct err e;
    assert_int_equal(net_on_signal(bench->net, SIGUSR1, on_signal, &signals, &e), ERR_OK);
}

static void signals_arrive_in_the_loop(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_watch, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(kill(getpid(), SIGUSR1), 0);
        NET_AWAIT(__atomic_load_n(&signals, __ATOMIC_SEQ_CST) == i);
    }
}

static void do_after(struct net_bench *bench, void *arg)
{
    static unsigned replaced;
    (void)arg;
    net_after(bench->net, 50000, on_after, &replaced);
    net_after(bench->net, 100000, on_after, &fired);
    assert_int_equal(replaced, 0);
}

static void a_timer_fires_once(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int64_t start = now_ms();
    net_bench_call(&b, do_after, NULL);
    NET_AWAIT(__atomic_load_n(&fired, __ATOMIC_SEQ_CST) == 1);
    assert_true(now_ms() - start >= 99);
    (void)poll(NULL, 0, 200);
    assert_int_equal(__atomic_load_n(&fired, __ATOMIC_SEQ_CST), 1);
}

static void a_loop_with_open_connections_can_be_freed(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd[6];
    static const char *const words[] = {
        "",       "half of it",   "wait\n",
        "half\n", "take 90000\n", "big 400000\nbig 400000\nbig 400000\nbig 400000\n"};
    for (int i = 0; i < 6; i++) {
        fd[i] = dial(&b);
        say(fd[i], "x\n");
        expect(fd[i], "x\n");
        say(fd[i], words[i]);
    }
    (void)poll(NULL, 0, 50);
    net_bench_stop(&b);
    assert_int_equal(b.closed, 6);
    assert_int_equal(b.svc.connections, 0);
    for (int i = 0; i < 6; i++)
        (void)close(fd[i]);
    net_free(NULL);
}

/* ---- a review ---------------------------------------------------------------------------------
 */

enum {
    REVIEWED = 9
};
static int reviewed;

/* The first and the last who came may go on. */
static bool first_or_last(const struct net_service *svc, const void *session)
{
    (void)svc;
    (void)session;
    int at = reviewed++;
    return at == 0 || at == REVIEWED - 1;
}

static void do_review(struct net_bench *bench, void *arg)
{
    bench->svc.stands = first_or_last;
    *(uint64_t *)arg = net_review(bench->net);
}

/* All that has been sent is read, and then the end, or an error. */
static void expect_closed(int fd)
{
    char mem[65536];
    ssize_t n;
    while ((n = recv(fd, mem, sizeof mem, 0)) > 0)
        continue;
}

static void who_frees_in_a_drain_is_not_told_of_its_end(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "x\nwait\n");
    expect(fd, "x\n");
    net_bench_drain(&b, 60000000);
    net_bench_stop(&b);
    assert_false(is_drained());
    (void)close(fd);
}

static void a_review_closes_in_every_state(void **state)
{
    static const char *const words[REVIEWED] = {
        "",
        "",
        "half of it",
        "wait\n",
        "half\n",
        "hold\n",
        "take 90000\n",
        "big 400000\nbig 400000\nbig 400000\nbig 400000\nbig 400000\nbig 400000\nbig 400000\n",
        ""};
    int fd[REVIEWED];
    uint64_t closed = 0;
    (void)state;
    reviewed = 0;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    for (int i = 0; i < REVIEWED; i++) {
        fd[i] = dial(&b);
        say(fd[i], "x\n");
        expect(fd[i], "x\n");
        say(fd[i], words[i]);
    }
    (void)poll(NULL, 0, 20);
    net_bench_call(&b, do_review, &closed);
    assert_int_equal(closed, REVIEWED - 2);
    assert_int_equal(net_bench_connections(&b), 2);
    for (int i = 1; i < REVIEWED - 1; i++)
        expect_closed(fd[i]);
    say(fd[0], "y\n");
    expect(fd[0], "y\n");
    say(fd[REVIEWED - 1], "z\n");
    expect(fd[REVIEWED - 1], "z\n");
    for (int i = 0; i < REVIEWED; i++)
        (void)close(fd[i]);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(without_busy_poll_it_sleeps),
        NET(with_busy_poll_it_turns_for_that_long),
        NET(an_idle_loop_is_drained_at_once),
        NET(nobody_is_accepted_any_more),
        NET(what_has_arrived_is_answered),
        NET(more_than_one_read_of_it_is_answered),
        NET(a_client_that_does_not_read_is_given_up),
        NET(a_drain_ends_though_its_turns_close_others),
        NET(signals_arrive_in_the_loop),
        NET(a_timer_fires_once),
        NET(a_loop_with_open_connections_can_be_freed),
        NET(who_frees_in_a_drain_is_not_told_of_its_end),
        NET(a_review_closes_in_every_state),
    };
    return cmocka_run_group_tests_name("net/loop", tests, NULL, NULL);
}
