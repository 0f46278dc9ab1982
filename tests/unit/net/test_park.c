/* Waiting: for a change, for a time, and in turn. */
#include "support/net_bench.h"

#include <linux/sockios.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;

static int64_t now_us(void)
{
    return clock_mono_us(clock_system());
}

/* ---- for a change -----------------------------------------------------------------------------
 */

static void a_wait_ends_after_max_wait(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b), other = dial(&b);
    int64_t start = now_us();
    say(fd, "wait\nafter\n");
    say(other, "hello\n");
    expect(other, "hello\n"); /* nobody else waits */
    expect(fd, "late\nafter\n");
    int64_t took = now_us() - start;
    assert_true(took >= 100000 && took < 5000000);
    (void)close(fd);
    (void)close(other);
}

/* Each request has max_wait of its own. */
static void requests_of_one_batch_wait_one_after_the_other(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    int64_t start = now_us();
    say(fd, "wait\nwait\nwait\n");
    expect(fd, "late\nlate\nlate\n");
    assert_true(now_us() - start >= 300000);
    (void)close(fd);
}

static void a_wake_ends_the_wait_of_all(void **state)
{
    (void)state;
    enum {
        N = 20
    };
    int fd[N];
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    for (int i = 0; i < N; i++) {
        fd[i] = dial(&b);
        say(fd[i], "before\nwait\nafter\n");
    }
    for (int i = 0; i < N; i++)
        expect(fd[i], "before\n");
    expect_silence(fd[0], 50);
    net_bench_open_gate(&b);
    for (int i = 0; i < N; i++) {
        expect(fd[i], "open\nafter\n");
        (void)close(fd[i]);
    }
}

static void do_wake(struct net_bench *bench, void *arg)
{
    (void)arg;
    net_wake(bench->net);
}

static void a_wake_for_nothing_does_not_lengthen_the_wait(void **state)
{
    (void)state;
    b.conf.max_wait_us = 300000;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    int64_t start = now_us();
    say(fd, "wait\n");
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 20) == 0)
        net_bench_call(&b, do_wake, NULL);
    expect(fd, "late\n");
    assert_true(now_us() - start >= 300000);
    (void)close(fd);
}

/* The process is stopped; *arg: whether it is woken for something else after that. */
static void do_stand_still(struct net_bench *bench, void *arg)
{
    const struct timespec t = {.tv_nsec = 400000000};
    (void)nanosleep(&t, NULL);
    if (*(bool *)arg)
        net_wake(bench->net);
}

/* What others have answered meanwhile is read before that. */
static void a_wait_goes_on_for_a_moment_after_we_stood_still(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b), other = dial(&b);
    for (int i = 0; i < 2; i++) {
        bool wakes = i > 0;
        say(fd, "wait\n");
        say(other, "x\n");
        expect(other, "x\n");
        int64_t start = now_us();
        net_bench_call(&b, do_stand_still, &wakes);
        expect(fd, "late\n");
        assert_in_range(now_us() - start, 490000, 5000000);
    }
    (void)close(fd);
    (void)close(other);
}

static void do_give(struct net_bench *bench, void *arg)
{
    bench->pieces += *(unsigned *)arg;
    net_wake(bench->net);
}

/* Who asks for more and more is never before the others. */
static void who_waits_is_before_who_was_served(void **state)
{
    (void)state;
    unsigned give = 1;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int greedy = dial(&b), other = dial(&b), third = dial(&b);
    say(greedy, "come\npiece\npiece\npiece\n");
    expect(greedy, "come\n");
    say(other, "come\npiece\n");
    expect(other, "come\n");
    say(third, "come\npiece\n");
    expect(third, "come\n");
    net_bench_call(&b, do_give, &give);
    expect(greedy, "piece\n");
    net_bench_call(&b, do_give, &give);
    expect(other, "piece\n");
    net_bench_call(&b, do_give, &give);
    expect(third, "piece\n");
    give = 2;
    net_bench_call(&b, do_give, &give);
    expect(greedy, "piece\npiece\n");
    (void)close(greedy);
    (void)close(other);
    (void)close(third);
}

static void a_request_keeps_its_word_while_it_waits(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int one = dial(&b), other = dial(&b);
    say(one, "ticket\nticket\n");
    expect_silence(one, 20);
    say(other, "ticket\n");
    expect_silence(other, 20);
    net_bench_call(&b, do_wake, NULL);
    net_bench_open_gate(&b);
    expect(one, "0 1\n0 3\n"); /* the next request has none yet */
    expect(other, "0 2\n");
    say(one, "ticket\n");
    expect(one, "0 4\n");
    (void)close(one);
    (void)close(other);
}

static void requests_that_had_come_with_one_may_share_its_word(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    b.share = 2;
    net_bench_start(&b, NULL);
    int one = dial(&b), other = dial(&b);
    say(one, "ticket\nticket\nticket\nticket\n");
    expect_silence(one, 20);
    say(other, "ticket\nbig 1\nticket\n");
    expect_silence(other, 20);
    net_bench_call(&b, do_wake, NULL);
    net_bench_open_gate(&b);
    expect(one, "0 1\n1 1\n1 1\n0 3\n"); /* two share it, and no more */
    expect(other, "0 2\nx\n0 4\n");      /* what stands behind another one does not */
    (void)close(one);
    (void)close(other);
}

static void an_unfinished_reply_is_kept_back(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "before\nhalf\nhalf\nafter\n");
    expect(fd, "before\n");
    expect_silence(fd, 50);
    net_bench_open_gate(&b);
    expect(fd, "half open\nhalf open\nafter\n");
    (void)close(fd);
}

/* The part that is kept back must survive behind output that a slow client does not take. */
static void an_unfinished_reply_is_kept_behind_unsent_output(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd = dial(&b), n = 60;
    for (int i = 0; i < n; i++)
        say(fd, "big 100000\nhalf\n");
    say(fd, "after\n");
    (void)poll(NULL, 0, 20); /* less than until the clock is looked at again */
    net_bench_open_gate(&b);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 25; k++) {
            char x[4001];
            memset(x, 'x', 4000);
            x[4000] = '\0';
            expect(fd, x);
        }
        expect(fd, "\nhalf open\n");
    }
    expect(fd, "after\n");
    (void)close(fd);
}

/* The same where the kernel takes only a part of what may be sent: some of the fillings leave it so
 * little room. A socket file's buffer is small and does not grow. */
static void an_unfinished_reply_is_kept_behind_a_partial_write(void **state)
{
    (void)state;
    b.conf.max_wait_us = 100000;
    char address[64];
    (void)snprintf(address, sizeof address, "unix:/tmp/sidflake-park-%ld", (long)getpid());
    net_bench_start(&b, address);
    for (int filling = 0; filling < 12; filling++) {
        static char sink[1 << 20];
        size_t want = (size_t)filling * 30001 + 65001, got = 0;
        int fd = dial(&b);
        for (int i = 0; i < filling; i++) {
            say(fd, "big 30000\n");
            (void)poll(NULL, 0, 2); /* a turn of its own for each */
        }
        say(fd, "big 65000\nhalf\n");
        (void)poll(NULL, 0, 10);
        while (got < want) {
            ssize_t r = read(fd, sink + got, want - got);
            assert_true(r > 0);
            got += (size_t)r;
        }
        assert_true(memchr(sink, 'h', want) == NULL);
        expect(fd, "half late\n");
        (void)close(fd);
    }
}

/* ---- for a time -------------------------------------------------------------------------------
 */

static void a_wait_for_a_time_ends_then(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int late = dial(&b), soon = dial(&b);
    int64_t start = now_us();
    say(late, "until 300\n");
    say(soon, "until 100\n");
    expect(soon, "time\n");
    int64_t took = now_us() - start;
    assert_true(took >= 98000);
    expect(late, "time\n");
    assert_true(now_us() - start >= 298000);
    (void)close(late);
    (void)close(soon);
}

/* What the loop's thread has run. */
static int64_t cpu_us(void)
{
    clockid_t clock;
    struct timespec t;
    assert_int_equal(pthread_getcpuclockid(b.thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static void whoever_comes_later_may_be_the_first(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd = dial(&b), other = dial(&b);
    say(fd, "before\nwait\n");
    expect(fd, "before\n");
    expect_silence(fd, 20); /* it waits */
    say(other, "until 30\n");
    expect(other, "time\n");
    (void)close(fd);
    (void)close(other);
}

static void idle_waits_cost_nothing(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "x\nwait\n");
    expect(fd, "x\n");
    expect_silence(fd, 50);
    uint64_t before = net_bench_turns(&b);
    expect_silence(fd, 500);
    assert_true(net_bench_turns(&b) == before); /* nobody looks at it meanwhile */
    int64_t ran = cpu_us();
    say(fd, "y\n"); /* nor at what it sends */
    expect_silence(fd, 500);
    assert_true(net_bench_turns(&b) == before);
    assert_true(cpu_us() - ran < 20000);
    net_bench_open_gate(&b);
    expect(fd, "open\ny\n");
    (void)close(fd);
}

static void a_timer_that_has_fired_is_quiet(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "wait\n");
    expect(fd, "late\n");
    int64_t ran = cpu_us();
    expect_silence(fd, 500);
    assert_true(cpu_us() - ran < 20000);
    (void)close(fd);
}

/* ---- in turn ----------------------------------------------------------------------------------
 */

static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, c = *(const int64_t *)y;
    return (a > c) - (a < c);
}

/* Those who want thousands share each millisecond; one who wants a single token is not behind the
 * sum of all that they want. */
static void a_bystander_is_served_among_heavy_clients(void **state)
{
    (void)state;
    enum {
        HEAVY = 8,
        SAMPLES = 21
    };
    int heavy[HEAVY];
    int64_t took[SAMPLES];
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    for (int i = 0; i < HEAVY; i++) {
        heavy[i] = dial(&b);
        for (int k = 0; k < 20; k++)
            say(heavy[i], "take 60000\n"); /* 59 ms each: 9 s in all */
    }
    (void)poll(NULL, 0, 20);
    for (int i = 0; i < SAMPLES; i++) {
        int64_t start = now_us();
        say(fd, "take 1\n");
        expect(fd, "took 1\n");
        took[i] = now_us() - start;
    }
    qsort(took, SAMPLES, sizeof *took, by_value);
    assert_true(took[SAMPLES / 2] < 30000);
    assert_true(took[SAMPLES - 1] < 450000); /* behind them all it would be 9 s */
    for (int i = 0; i < HEAVY; i++)
        (void)close(heavy[i]);
    (void)close(fd);
}

/* The same against many who come with a small request each time: they must not overtake whoever
 * stands in the queue. */
static void the_queue_is_not_overtaken(void **state)
{
    (void)state;
    enum {
        HEAVY = 8,
        ROUNDS = 60
    };
    int heavy[HEAVY], fd;
    net_bench_start(&b, NULL);
    fd = dial(&b);
    for (int i = 0; i < HEAVY; i++) {
        heavy[i] = dial(&b);
        say(heavy[i], "take 1024\n");
    }
    say(fd, "take 2048\n");
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rounds = 0;
    for (; rounds < ROUNDS && poll(&p, 1, 0) == 0; rounds++) {
        for (int i = 0; i < HEAVY; i++) {
            expect(heavy[i], "took 1024\n");
            say(heavy[i], "take 1024\n");
        }
    }
    assert_true(rounds < ROUNDS / 2); /* two turns of everybody would be fair */
    expect(fd, "took 2048\n");
    for (int i = 0; i < HEAVY; i++)
        (void)close(heavy[i]);
    (void)close(fd);
}

static void everybody_in_the_queue_gets_all(void **state)
{
    (void)state;
    enum {
        N = 50
    };
    int fd[N];
    net_bench_start(&b, NULL);
    for (int i = 0; i < N; i++) {
        fd[i] = dial(&b);
        say(fd[i], "take 500\nx\ntake 1500\n");
    }
    for (int i = 0; i < N; i++) {
        expect(fd[i], "took 500\nx\ntook 1500\n");
        (void)close(fd[i]);
    }
    NET_AWAIT(net_bench_connections(&b) == 0);
}

/* ---- in turn, on a wall clock that the test sets: a millisecond is as long as it says -----------
 */

static _Atomic int64_t wall;

static int64_t set_wall_us(struct clock *c)
{
    (void)c;
    return wall;
}

static int64_t real_mono_us(struct clock *c)
{
    (void)c;
    return now_us();
}

static struct clock set_clock = {set_wall_us, real_mono_us};

static void start_at(unsigned connections)
{
    wall = 5000000;
    b.conf.clock = &set_clock;
    b.conf.connections = connections;
    net_bench_start(&b, NULL);
}

/* All of them are in the queue: none has had an answer, and the millisecond is used up. */
static void all_queue(int *fd, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        say(fd[i] = dial(&b), text);
    NET_AWAIT(net_bench_turns(&b) >= n);
}

static void do_dealt(struct net_bench *bench, void *arg)
{
    *(bool *)arg = bench->ms == wall / 1000 && bench->taken == 1024;
}

static bool is_dealt_out(void)
{
    bool is = false;
    net_bench_call(&b, do_dealt, &is);
    return is;
}

/* Each turn moves what is kept of a reply, so it has to give some IDs; and whoever has just come is
 * not behind all who have had a part. */
static void a_millisecond_is_dealt_out_in_few_turns(void **state)
{
    (void)state;
    enum {
        HEAVY = 400
    };
    static int heavy[HEAVY];
    start_at(HEAVY + 10);
    all_queue(heavy, HEAVY, "take 60000\n");
    for (int ms = 1; ms <= 12; ms++) { /* until each has had a part */
        uint64_t before = net_bench_turns(&b);
        wall += 1000;
        NET_AWAIT(is_dealt_out());
        expect_silence(heavy[0], 2);
        assert_true(net_bench_turns(&b) - before <= 80);
    }
    uint64_t before = net_bench_turns(&b);
    int other = dial(&b);
    say(other, "take 1\n");
    NET_AWAIT(net_bench_turns(&b) > before);
    expect_silence(other, 20);
    wall += 1000;
    expect(other, "took 1\n");
    for (int i = 0; i < HEAVY; i++)
        (void)close(heavy[i]);
    (void)close(other);
}

/* A text comes in pieces, and the next ones of who waits are read in his turns. */
static bool all_are_read(const int *fd, unsigned n)
{
    int unread = 0;
    for (unsigned i = 0; i < n && unread == 0; i++)
        assert_int_equal(ioctl(fd[i], SIOCOUTQ, &unread), 0);
    return unread == 0;
}

/* What is kept of a request is read again in each turn: a long one has more IDs in each, 172 where
 * others have 16, which were 64 turns. Some turns only look at the clock. */
static void who_asks_by_a_long_request_has_few_turns(void **state)
{
    (void)state;
    enum {
        HEAVY = 100,
        LONG = 40000
    };
    static int heavy[HEAVY];
    static char text[16 + LONG] = "take 60000\n";
    memset(text + strlen(text), 'x', LONG);
    start_at(HEAVY + 10);
    all_queue(heavy, HEAVY, text);
    for (int ms = 1; ms <= 1000 && !all_are_read(heavy, HEAVY); ms++) {
        wall += 1000;
        NET_AWAIT(is_dealt_out());
    }
    assert_true(all_are_read(heavy, HEAVY));
    for (int ms = 1; ms <= 30; ms++) {
        uint64_t before = net_bench_turns(&b);
        wall += 1000;
        NET_AWAIT(is_dealt_out());
        expect_silence(heavy[0], 2);
        assert_true(net_bench_turns(&b) - before <= 40);
    }
    for (int i = 0; i < HEAVY; i++)
        (void)close(heavy[i]);
}

/* However much one has sent before it takes a reply, it has a part of each millisecond. */
static void who_sends_all_before_it_takes_a_reply_does_not_have_all(void **state)
{
    (void)state;
    enum {
        BIG = 400000, /* bytes: more than a socket holds */
        MANY = 40000  /* 400 KB of requests, 10 of whose turns are all of a millisecond */
    };
    static char text[sizeof "big 400000\n" + MANY * sizeof "take 100\n"], reply[BIG + 1];
    char path[64];
    size_t n = (size_t)snprintf(text, sizeof text, "big %d\n", BIG), took = 0;
    for (int i = 0; i < MANY; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "take 100\n");
    (void)snprintf(path, sizeof path, "unix:///tmp/sidflake-heard-%ld", (long)getpid());
    wall = 5000000;
    b.conf.clock = &set_clock;
    net_bench_start(&b, path);
    int fd = dial(&b), other = dial(&b);
    say(fd, text);
    NET_AWAIT(net_bench_bytes_in(&b) == n);
    for (ssize_t r = 0; took < sizeof reply; took += (size_t)r)
        assert_true((r = recv(fd, reply, sizeof reply - took, 0)) > 0);
    for (int ms = 1; ms <= 3; ms++) {
        NET_AWAIT(is_dealt_out());
        wall += 1000;
    }
    NET_AWAIT(is_dealt_out());
    uint64_t before = net_bench_turns(&b);
    say(other, "take 1\n");
    NET_AWAIT(net_bench_turns(&b) > before);
    wall += 1000;
    expect(other, "took 1\n");
    (void)close(fd);
    (void)close(other);
}

/* The queue as it is due at once may be long: others are served in between. */
static void a_long_queue_lets_others_in(void **state)
{
    (void)state;
    enum {
        SLOW = 90
    };
    int slow[SLOW];
    size_t done = 0;
    char sink[64];
    start_at(SLOW + 10);
    int first = dial(&b), other = dial(&b);
    say(first, "take 1024\n");
    expect(first, "took 1024\n");
    all_queue(slow, SLOW, "take 1\nspin 3000\n");
    wall += 1000;
    expect(slow[0], "took 1\nspun\n");
    say(other, "hello\n");
    expect(other, "hello\n");
    for (int i = 1; i < SLOW; i++)
        done += recv(slow[i], sink, sizeof sink, MSG_DONTWAIT) > 0;
    assert_true(done < SLOW / 2);
    for (int i = 0; i < SLOW; i++)
        (void)close(slow[i]);
    (void)close(first);
    (void)close(other);
}

#define DUE_MS 305000 /* five minutes after start_at */

static struct net_step queue_until_due(struct net_service *svc, void *session, struct span in,
                                       struct net_turn *turn, struct buf *out)
{
    (void)svc;
    (void)session;
    if (in.n == 0)
        return (struct net_step){.verdict = NET_MORE};
    if (turn->wall_ms < DUE_MS)
        return (struct net_step){.verdict = NET_QUEUE, .until_ms = DUE_MS};
    BUF_PUT_LIT(out, "due\n");
    return (struct net_step){.verdict = NET_DONE, .used = in.n};
}

/* Minutes away by a clock that was set back: when it is right again, nobody waits for minutes. */
static void the_queue_notices_that_the_clock_is_set(void **state)
{
    (void)state;
    b.svc.serve = queue_until_due;
    start_at(10);
    int fd = dial(&b);
    say(fd, "hello\n");
    expect_silence(fd, 200);
    wall = (int64_t)DUE_MS * 1000;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    expect(fd, "due\n");
    (void)close(fd);
}

static void a_hold_ends_with_a_wake_alone(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b), other = dial(&b);
    say(fd, "hold\nafter\n");
    say(other, "wait\nhello\n");
    expect(other, "late\nhello\n"); /* max_wait is over */
    expect_silence(fd, 200);
    net_bench_open_gate(&b);
    expect(fd, "hold\nafter\n");
    (void)close(fd);
    (void)close(other);
}

static void what_is_held_can_be_closed(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b), other = dial(&b);
    say(fd, "hold\n");
    say(other, "hold\n");
    (void)shutdown(other, SHUT_RDWR);
    NET_AWAIT(net_bench_turns(&b) == 2);
    net_bench_drain(&b, 0);
    expect_end(fd);
    (void)close(fd);
    (void)close(other);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(a_wait_ends_after_max_wait),
        NET(requests_of_one_batch_wait_one_after_the_other),
        NET(a_wake_ends_the_wait_of_all),
        NET(a_wake_for_nothing_does_not_lengthen_the_wait),
        NET(a_wait_goes_on_for_a_moment_after_we_stood_still),
        NET(who_waits_is_before_who_was_served),
        NET(a_request_keeps_its_word_while_it_waits),
        NET(requests_that_had_come_with_one_may_share_its_word),
        NET(an_unfinished_reply_is_kept_back),
        NET(an_unfinished_reply_is_kept_behind_unsent_output),
        NET(an_unfinished_reply_is_kept_behind_a_partial_write),
        NET(a_wait_for_a_time_ends_then),
        NET(whoever_comes_later_may_be_the_first),
        NET(a_hold_ends_with_a_wake_alone),
        NET(what_is_held_can_be_closed),
        NET(idle_waits_cost_nothing),
        NET(a_timer_that_has_fired_is_quiet),
        NET(a_bystander_is_served_among_heavy_clients),
        NET(the_queue_is_not_overtaken),
        NET(everybody_in_the_queue_gets_all),
        NET(a_millisecond_is_dealt_out_in_few_turns),
        NET(who_asks_by_a_long_request_has_few_turns),
        NET(who_sends_all_before_it_takes_a_reply_does_not_have_all),
        NET(a_long_queue_lets_others_in),
        NET(the_queue_notices_that_the_clock_is_set),
    };
    return cmocka_run_group_tests_name("net/park", tests, NULL, NULL);
}
