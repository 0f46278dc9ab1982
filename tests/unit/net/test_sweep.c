/* Clients that go while nothing is read from them. */
#include "net/private.h"
#include "support/net_bench.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;

static void reset(int fd)
{
    struct linger now = {1, 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(fd);
}

static void the_reset_are_noticed_behind_unread_input(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    for (int i = 0; i < 40; i++) {
        int fd = dial(&b);
        say(fd, "hold\n");
        NET_AWAIT(net_bench_bytes_in(&b) == 5 * (uint64_t)(i + 1));
        say(fd, "more\n");
        reset(fd);
    }
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(b.closed, 40);
    assert_int_equal(net_bench_bytes_in(&b), 5 * 40); /* no read has told of it */
}

static void whoever_left_a_unix_socket_is_noticed(void **state)
{
    (void)state;
    char address[64];
    (void)snprintf(address, sizeof address, "unix:///tmp/sidflake-sweep-%ld", (long)getpid());
    net_bench_start(&b, address);
    int gone = dial(&b), there = dial(&b);
    say(gone, "hold\n");
    say(there, "hold\n");
    NET_AWAIT(net_bench_bytes_in(&b) == 10);
    say(gone, "more\n");
    (void)close(gone);
    NET_AWAIT(net_bench_connections(&b) == 1);
    net_bench_open_gate(&b);
    expect(there, "hold\n");
    (void)close(there);
}

static void whoever_shut_one_side_is_answered_all_the_same(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "hold\nafter\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect_silence(fd, 2500); /* two sweeps */
    net_bench_open_gate(&b);
    expect(fd, "hold\nafter\n");
    expect_end(fd);
    (void)close(fd);
}

/* As nc -N does behind a pipeline: that nobody sends more is not that nobody reads. */
static void whoever_shut_one_side_has_replies_that_he_takes_late(void **state)
{
    (void)state;
    static char sink[400001];
    char address[64];
    (void)snprintf(address, sizeof address, "unix:///tmp/sidflake-shut-%ld", (long)getpid());
    net_bench_start(&b, address);
    int fd = dial(&b);
    say(fd, "big 400000\n");
    NET_AWAIT(net_bench_bytes_in(&b) == sizeof "big 400000");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    (void)poll(NULL, 0, 2500); /* two sweeps */
    assert_int_equal(recv(fd, sink, sizeof sink, MSG_WAITALL), sizeof sink);
    expect_end(fd);
    (void)close(fd);
}

static void many_are_looked_at_in_pieces(void **state)
{
    (void)state;
    static int fd[600];
    const int n = (int)(sizeof fd / sizeof *fd);
    b.conf.connections = 1000;
    net_bench_start(&b, NULL);
    for (int i = 0; i < n; i++) {
        fd[i] = dial(&b);
        say(fd[i], "hold\n");
    }
    NET_AWAIT(net_bench_bytes_in(&b) == 5 * (uint64_t)n);
    for (int i = 0; i < n; i += 2)
        reset(fd[i]);
    NET_AWAIT(net_bench_connections(&b) == (uint64_t)n / 2);
    net_bench_open_gate(&b);
    for (int i = 1; i < n; i += 2) {
        expect(fd[i], "hold\n");
        (void)close(fd[i]);
    }
    NET_AWAIT(net_bench_connections(&b) == 0);
}

static void do_close_within(struct net_bench *n, void *arg)
{
    size_t *left = arg;
    n->net->unswept = n->net->nwatched;
    assert_true(n->net->unswept >= 300);
    conns_each(n->net, conn_close);
    left[0] = n->net->nwatched;
    left[1] = n->net->unswept;
}

/* While a round pauses, all go whom it has yet to look at. */
static void a_round_knows_who_has_gone_since_it_began(void **state)
{
    (void)state;
    static int fd[300];
    const int n = (int)(sizeof fd / sizeof *fd);
    size_t left[2];
    b.conf.connections = 1000;
    net_bench_start(&b, NULL);
    for (int i = 0; i < n; i++) {
        fd[i] = dial(&b);
        say(fd[i], "hold\n");
    }
    NET_AWAIT(net_bench_bytes_in(&b) == 5 * (uint64_t)n);
    net_bench_call(&b, do_close_within, left);
    assert_int_equal(left[0], 0);
    assert_int_equal(left[1], 0);
    for (int i = 0; i < n; i++)
        (void)close(fd[i]);
}

/* ---- time -------------------------------------------------------------------------------------
 */

static void strangers_have_a_time_to_log_in(void **state)
{
    (void)state;
    b.strangers = true;
    b.conf.login_timeout_us = 300000;
    net_bench_start(&b, NULL);
    int silent = dial(&b), busy = dial(&b), known = dial(&b);
    say(known, "login\n");
    expect(known, "welcome\n");
    int64_t begun_us = clock_mono_us(clock_system());
    for (int i = 0; i < 10; i++) {
        if (sendto(busy, "hello\n", 6, MSG_NOSIGNAL, NULL, 0) < 0)
            break;
        (void)poll(NULL, 0, 50);
    }
    expect_end(silent);
    assert_true(clock_mono_us(clock_system()) - begun_us >= 300000);
    NET_AWAIT(net_bench_connections(&b) == 1);
    say(known, "there\n");
    expect(known, "there\n");
    assert_int_equal(net_bench_ended(&b, NET_END_LOGIN), 2);
    (void)close(silent);
    (void)close(busy);
    (void)close(known);
}

/* Who does not read, or has something wait for him, has no longer than others; a check that is ours
 * is not his time, and what comes after it is. */
static void so_have_strangers_who_are_not_read_from(void **state)
{
    (void)state;
    b.strangers = true;
    b.conf.login_timeout_us = 300000;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int takes_none = dial(&b), waits = dial(&b), held = dial(&b), checked = dial(&b);
    for (int i = 0; i < 50; i++)
        say(takes_none, "big 400000\n");
    say(waits, "wait\n");
    say(held, "hold\n");
    say(checked, "check\n");
    NET_AWAIT(net_bench_ended(&b, NET_END_LOGIN) == 3);
    assert_int_equal(net_bench_connections(&b), 1);
    expect_end(waits);
    expect_end(held);
    expect_silence(checked, 500);
    net_bench_open_gate(&b);
    expect(checked, "check\n");
    expect_end(checked);
    assert_int_equal(net_bench_ended(&b, NET_END_LOGIN), 4);
    (void)close(takes_none);
    (void)close(waits);
    (void)close(held);
    (void)close(checked);
}

/* Those who have something checked, and do not take what they were told before. */
static void do_count_deaf(struct net_bench *bench, void *arg)
{
    int *deaf = arg;
    for (struct link *l = bench->net->all.next; l != &bench->net->all; l = l->next) {
        const struct conn *c = CONTAINER(l, struct conn, all);
        *deaf += c->state == CONN_FLUSHING && c->svc->checked(c->svc, c->session);
    }
}

static int deaf(void)
{
    int n = 0;
    net_bench_call(&b, do_count_deaf, &n);
    return n;
}

/* The answer to such a check is never asked for. How much the kernel takes is not known: one of the
 * sizes is such that what stands before the check is what it does not. */
static void a_check_does_not_keep_who_does_not_read(void **state)
{
    (void)state;
    enum {
        SIZES = 12
    };
    char text[64], address[64];
    int fd[SIZES];
    (void)snprintf(address, sizeof address, "unix:///tmp/sidflake-deaf-%ld", (long)getpid());
    b.strangers = true;
    b.conf.login_timeout_us = 1000000;
    net_bench_start(&b, address);
    for (int i = 0; i < SIZES; i++) {
        fd[i] = dial(&b);
        (void)snprintf(text, sizeof text, "big %d\nbig 60000\ncheck\n", 70000 + i * 30000);
        say(fd[i], text);
    }
    NET_AWAIT(deaf() > 0);
    NET_AWAIT(deaf() == 0);
    assert_true(net_bench_ended(&b, NET_END_LOGIN) > 0);
    for (int i = 0; i < SIZES; i++)
        (void)close(fd[i]);
}

static void strangers_have_little_to_say(void **state)
{
    (void)state;
    char much[8001];
    memset(much, 'x', 8000);
    much[8000] = '\0';
    b.strangers = true;
    net_bench_start(&b, NULL);
    int stranger = dial(&b), known = dial(&b);
    say(known, "login\n");
    expect(known, "welcome\n");
    say(known, much);
    (void)sendto(stranger, much, 8000, MSG_NOSIGNAL, NULL, 0);
    expect_end(stranger);
    assert_int_equal(net_bench_ended(&b, NET_END_LOGIN), 1);
    say(known, "\n");
    char found[8001];
    size_t got = 0;
    for (ssize_t r; got < 8001 && (r = read(known, found + got, 8001 - got)) > 0;)
        got += (size_t)r;
    assert_int_equal(got, 8001);
    (void)close(stranger);
    (void)close(known);
}

/* Nor is what they send taken in where they take no replies. */
static void strangers_who_do_not_read_are_not_heard(void **state)
{
    (void)state;
    char line[8001], address[64];
    memset(line, 'x', 8000);
    line[8000] = '\n';
    (void)snprintf(address, sizeof address, "unix:///tmp/sidflake-unread-%ld", (long)getpid());
    b.strangers = true;
    net_bench_start(&b, address);
    int stranger = dial(&b);
    say(stranger, "big 400000\n");
    NET_AWAIT(net_bench_bytes_in(&b) > 0);
    (void)poll(NULL, 0, 100);
    uint64_t before = net_bench_bytes_in(&b);
    while (send(stranger, line, sizeof line, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof line)
        continue;
    (void)poll(NULL, 0, 2500); /* two sweeps */
    assert_int_equal(net_bench_bytes_in(&b), before);
    assert_int_equal(net_bench_connections(&b), 1);
    (void)close(stranger);
}

/* Replies of several sizes fill a socket: of some the kernel takes a part alone, and then half a
 * request behind them is not what their client tarries with. */
static void who_does_not_take_replies_does_not_tarry(void **state)
{
    (void)state;
    enum {
        CLIENTS = 12
    };
    static char sink[CLIENTS * 30001 + 60001];
    char address[64];
    int fd[CLIENTS];
    b.conf.request_timeout_us = 300000;
    (void)snprintf(address, sizeof address, "unix:/tmp/sidflake-sweep-%ld", (long)getpid());
    net_bench_start(&b, address);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial(&b);
        for (int k = 0; k < i; k++) {
            uint64_t before = net_bench_turns(&b);
            say(fd[i], "big 30000\n");
            for (int wait = 20; wait > 0 && net_bench_turns(&b) == before; wait--)
                (void)poll(NULL, 0, 1); /* a turn of its own for each, while it is read from */
        }
        say(fd[i], "big 60000\nhal");
    }
    (void)poll(NULL, 0, 1000);
    assert_true(net_bench_ended(&b, NET_END_REQUEST) > 0); /* all taken: they tarry */
    assert_true(net_bench_connections(&b) > 0);
    for (int i = 0; i < CLIENTS; i++) {
        size_t want = (size_t)i * 30001 + 60001, got = 0;
        for (ssize_t r = 1; r > 0 && got<want; got += r> 0 ? (size_t)r : 0)
            r = read(fd[i], sink, want - got);
        assert_int_equal(got, want);
        (void)close(fd[i]);
    }
}

static void a_request_begun_has_a_time(void **state)
{
    (void)state;
    b.conf.request_timeout_us = 300000;
    net_bench_start(&b, NULL);
    int half = dial(&b), idle = dial(&b), drop = dial(&b), held = dial(&b);
    say(half, "one\ntw");
    expect(half, "one\n");
    say(held, "hold\nhal"); /* it is not the client who tarries */
    say(idle, "whole\n");
    expect(idle, "whole\n");
    for (int i = 0; i < 12; i++) { /* a part now and then does not help */
        if (sendto(drop, "x", 1, MSG_NOSIGNAL, NULL, 0) < 0)
            break;
        (void)poll(NULL, 0, 50);
    }
    expect_end(half);
    NET_AWAIT(net_bench_connections(&b) == 2);
    assert_int_equal(net_bench_ended(&b, NET_END_REQUEST), 2);
    net_bench_open_gate(&b);
    expect(held, "hold\n");
    expect_end(held); /* its half is in time from then on */
    assert_int_equal(net_bench_ended(&b, NET_END_REQUEST), 3);
    say(idle, "still\n");
    expect(idle, "still\n");
    (void)close(half);
    (void)close(idle);
    (void)close(drop);
    (void)close(held);
}

/* They are looked at as often as the shortest time wants, not once a second. */
static void a_short_time_ends_soon(void **state)
{
    (void)state;
    b.conf.request_timeout_us = 100000;
    net_bench_start(&b, NULL);
    bool soon = false;
    for (int i = 0; i < 5 && !soon; i++) { /* a busy machine may be late, but not each time */
        int half = dial(&b);
        say(half, "hal");
        struct pollfd p = {.fd = half, .events = POLLIN};
        soon = poll(&p, 1, 700) == 1;
        expect_end(half);
        (void)close(half);
    }
    assert_true(soon);
}

static void do_reconfigure(struct net_bench *bench, void *arg)
{
    (void)arg;
    net_reconfigure(bench->net, &bench->conf);
}

static void a_new_time_is_for_those_who_are_there_too(void **state)
{
    (void)state;
    b.strangers = true;
    net_bench_start(&b, NULL);
    int half = dial(&b), stranger = dial(&b), known = dial(&b);
    say(known, "login\n");
    expect(known, "welcome\n");
    say(half, "login\nhal");
    expect(half, "welcome\n");
    b.conf.request_timeout_us = b.conf.login_timeout_us = 100000;
    net_bench_call(&b, do_reconfigure, NULL);
    expect_end(half);
    expect_end(stranger);
    assert_int_equal(net_bench_ended(&b, NET_END_REQUEST), 1);
    assert_int_equal(net_bench_ended(&b, NET_END_LOGIN), 1);
    say(known, "still\n");
    expect(known, "still\n");
    (void)close(half);
    (void)close(stranger);
    (void)close(known);
}

#define LARGE     5000    /* bytes: more than a block … */
#define DELIVERED 1000000 /* … and than a socket takes */

struct said {
    int fd;
    const char *text;
};

/* The loop has no time for what is said; then a reply comes from a server. */
static void do_defer_then_deliver(struct net_bench *bench, void *arg)
{
    static char reply[DELIVERED];
    struct net *n = bench->net;
    struct conn *c = CONTAINER(n->all.next, struct conn, all);
    const struct said *s = arg;
    say(s->fd, s->text);
    memset(reply, 'r', sizeof reply);
    n->now_us = clock_mono_us(clock_system());
    n->round_us = n->now_us - 1000000; /* crowded */
    ev_invoke(n->loop, &c->rd, EV_READ);
    assert_int_equal(c->state, CONN_MORE);
    assert_true(conn_deliver(c, span_of(reply, sizeof reply)));
    assert_int_equal(c->state, CONN_FLUSHING);
}

/* It is neither skipped when it goes, nor is it the one who tarries. */
static void who_does_not_wait_for_a_turn_any_more_is_looked_at(void **state)
{
    (void)state;
    static char text[LARGE + 1], found[DELIVERED + LARGE + 1];
    char address[64];
    (void)snprintf(address, sizeof address, "unix:/tmp/sidflake-sweep-%ld", (long)getpid());
    b.conf.request_timeout_us = 300000;
    net_bench_start(&b, address);
    int fd = dial(&b);
    NET_AWAIT(net_bench_connections(&b) == 1);
    memset(text, 'x', LARGE);
    memcpy(text + LARGE - 10, "\nhold\nhalf", 10);
    net_bench_call(&b, do_defer_then_deliver, &(struct said){fd, text});
    size_t got = 0;
    for (ssize_t r; got < DELIVERED + LARGE - 9 &&
                    (r = read(fd, found + got, DELIVERED + LARGE - 9 - got)) > 0;)
        got += (size_t)r;
    assert_int_equal(got, DELIVERED + LARGE - 9);
    expect_silence(fd, 1500);
    assert_int_equal(net_bench_connections(&b), 1);
    say(fd, "more\n");
    reset(fd);
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(net_bench_ended(&b, NET_END_GONE), 1);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

/* ---- memory that nobody needs any more ------------------------------------------------------- */

#define MUCH ((size_t)8 << 20)

static _Atomic size_t held; /* by each session */

static size_t holds(const struct net_service *svc, const void *session)
{
    (void)svc;
    (void)session;
    return held;
}

static void do_peak(struct net_bench *n, void *arg)
{
    *(size_t *)arg = n->net->peak;
}

static size_t peak(void)
{
    size_t n = 0;
    net_bench_call(&b, do_peak, &n);
    return n;
}

static void what_a_session_gives_up_is_given_back(void **state)
{
    (void)state;
    b.svc.holds = holds;
    held = MUCH;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    say(fd, "hello\n");
    expect(fd, "hello\n");
    NET_AWAIT(peak() >= MUCH);
    held = 0;
    say(fd, "hello\n");
    expect(fd, "hello\n");
    NET_AWAIT(peak() < MUCH);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(the_reset_are_noticed_behind_unread_input),
        NET(whoever_left_a_unix_socket_is_noticed),
        NET(whoever_shut_one_side_is_answered_all_the_same),
        NET(whoever_shut_one_side_has_replies_that_he_takes_late),
        NET(many_are_looked_at_in_pieces),
        NET(a_round_knows_who_has_gone_since_it_began),
        NET(strangers_have_a_time_to_log_in),
        NET(so_have_strangers_who_are_not_read_from),
        NET(a_check_does_not_keep_who_does_not_read),
        NET(strangers_have_little_to_say),
        NET(strangers_who_do_not_read_are_not_heard),
        NET(who_does_not_take_replies_does_not_tarry),
        NET(a_request_begun_has_a_time),
        NET(a_short_time_ends_soon),
        NET(who_does_not_wait_for_a_turn_any_more_is_looked_at),
        NET(a_new_time_is_for_those_who_are_there_too),
        NET(what_a_session_gives_up_is_given_back),
    };
    return cmocka_run_group_tests_name("net/sweep", tests, NULL, NULL);
}
