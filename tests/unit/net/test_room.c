/* Who makes room when all places are taken. Two parties: who comes by TCP, and who by UNIX. */
#include "support/capture.h"
#include "support/net_bench.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;
static struct net_bench inside; /* its address alone: of the other listener */

static void start(uint32_t connections, bool strangers)
{
    b.conf.connections = connections;
    b.strangers = strangers;
    net_bench_start(&b, NULL);
    net_bench_inside(&b, &inside);
}

/* One who was let in. */
static int come(const struct net_bench *by)
{
    int fd = dial(by);
    say(fd, "hi\n");
    expect(fd, "hi\n");
    return fd;
}

static void stays(int fd)
{
    say(fd, "still\n");
    expect(fd, "still\n");
}

static void log_in(int fd)
{
    say(fd, "login\n");
    expect(fd, "welcome\n");
}

static void is_refused(const struct net_bench *by)
{
    int fd = dial(by);
    expect(fd, "full\n");
    expect_end(fd);
    (void)close(fd);
}

static void check(int fd)
{
    uint64_t before = net_bench_turns(&b);
    say(fd, "check\n");
    NET_AWAIT(net_bench_turns(&b) > before);
}

static void close_all(const int *fd, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)close(fd[i]);
}

static void strangers_make_room_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    int fd[7];
    start(4, true);
    for (int i = 0; i < 4; i++)
        fd[i] = come(&b);
    log_in(fd[1]);
    for (int i = 4; i < 7; i++) {
        fd[i] = come(&b);
        log_in(fd[i]);
        expect_end(fd[i == 4 ? 0 : i - 3]);
    }
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 3);
    is_refused(&b); /* nobody takes the place of who has logged in */
    is_refused(&inside);
    stays(fd[1]);
    for (int i = 4; i < 7; i++)
        stays(fd[i]);
    close_all(fd, 7);
}

static void those_of_whom_most_are_there_make_room(void **state)
{
    (void)state;
    int fd[9];
    start(6, true);
    fd[0] = come(&inside);
    for (int i = 1; i < 6; i++)
        fd[i] = come(&b);
    fd[6] = come(&inside);
    expect_end(fd[1]);
    fd[7] = come(&b); /* one of its own */
    expect_end(fd[2]);
    fd[8] = come(&inside);
    expect_end(fd[3]);
    stays(fd[0]);
    close_all(fd, 9);
}

/* Of about as many of each, too. */
static void one_more_is_most(void **state)
{
    (void)state;
    int fd[6];
    start(5, true);
    for (int i = 0; i < 5; i++)
        fd[i] = come(i < 2 ? &inside : &b);
    fd[5] = come(&inside);
    expect_end(fd[2]);
    stays(fd[0]);
    close_all(fd, 6);
}

static void do_reconfigure(struct net_bench *bench, void *arg)
{
    (void)arg;
    net_reconfigure(bench->net, &bench->conf);
}

/* A lower limit ends nobody: who comes finds no place before they have become fewer. */
static void above_a_new_limit_nobody_makes_room(void **state)
{
    (void)state;
    int fd[5];
    start(4, true);
    for (int i = 0; i < 4; i++)
        fd[i] = come(&b);
    b.conf.connections = 2;
    net_bench_call(&b, do_reconfigure, NULL);
    is_refused(&b);
    is_refused(&inside);
    for (int i = 0; i < 4; i++)
        stays(fd[i]);
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 0);
    close_all(fd, 2);
    NET_AWAIT(net_bench_connections(&b) == 2);
    fd[4] = come(&b);
    expect_end(fd[2]);
    stays(fd[3]);
    close_all(fd + 2, 3);
}

static void who_is_being_checked_makes_room_for_those_who_are_fewer(void **state)
{
    (void)state;
    int fd[5];
    start(3, true);
    for (int i = 0; i < 3; i++)
        fd[i] = come(&b);
    check(fd[0]);
    fd[3] = come(&b);
    expect_end(fd[1]);
    check(fd[2]);
    check(fd[3]);
    is_refused(&b); /* the others of its party would never get in */
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 1);
    fd[4] = come(&inside);
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 2);
    close_all(fd, 5);
}

/* Clients are told in words that many libraries drop; so is the operator. */
static void that_connections_are_refused_is_logged_once_in_a_while(void **state)
{
    (void)state;
    int fd[2];
    start(2, false);
    for (int i = 0; i < 2; i++)
        fd[i] = come(&b);
    capture_begin();
    is_refused(&b);
    is_refused(&b);
    const char *text = capture_end();
    const char *line = strstr(text, "limits.connections is reached: connections are refused");
    assert_non_null(line);
    assert_non_null(strstr(line, "protocol=toy limit=2 peer=127.0.0.1:"));
    assert_null(strstr(line + 1, "limits.connections"));
    close_all(fd, 2);
}

static void a_party_of_guests_has_no_more_than_half_against_others(void **state)
{
    (void)state;
    int fd[6];
    start(5, false);
    for (int i = 0; i < 4; i++)
        fd[i] = come(&b);
    fd[4] = come(&inside);
    stays(fd[0]);
    is_refused(&b);
    fd[5] = come(&inside);
    expect_end(fd[1]); /* silent longest */
    is_refused(&b);
    is_refused(&inside); /* three and two: they would only take turns */
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 1);
    close_all(fd, 6);
}

static void do_strangers(struct net_bench *n, void *arg)
{
    (void)arg;
    n->strangers = true;
}

/* Nor do guests, where there are strangers who cannot. */
static void who_is_being_checked_is_not_spared_by_guests(void **state)
{
    (void)state;
    int fd[5];
    start(5, false);
    for (int i = 0; i < 4; i++)
        fd[i] = come(&b);
    net_bench_call(&b, do_strangers, NULL);
    fd[4] = come(&b);
    check(fd[4]);
    is_refused(&inside);
    for (int i = 0; i < 4; i++)
        stays(fd[i]);
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 0);
    close_all(fd, 5);
}

/* Another process, which has n connections until it is killed. */
static pid_t another(int n)
{
    uint64_t before = net_bench_connections(&b);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; pid == 0 && i < n; i++)
        (void)dial(&inside);
    if (pid == 0)
        for (;;)
            (void)pause();
    NET_AWAIT(net_bench_connections(&b) == before + (uint64_t)n);
    return pid;
}

static void a_party_of_guests_may_have_half(void **state)
{
    (void)state;
    int fd[4];
    start(6, false);
    for (int i = 0; i < 3; i++)
        fd[i] = come(&b);
    pid_t pid = another(2);
    fd[3] = come(&inside);
    is_refused(&inside);
    is_refused(&b);
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 0);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close_all(fd, 4);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(strangers_make_room_in_the_order_in_which_they_came),
        NET(those_of_whom_most_are_there_make_room),
        NET(one_more_is_most),
        NET(above_a_new_limit_nobody_makes_room),
        NET(who_is_being_checked_makes_room_for_those_who_are_fewer),
        NET(that_connections_are_refused_is_logged_once_in_a_while),
        NET(a_party_of_guests_has_no_more_than_half_against_others),
        NET(who_is_being_checked_is_not_spared_by_guests),
        NET(a_party_of_guests_may_have_half),
    };
    return cmocka_run_group_tests_name("net/room", tests, NULL, NULL);
}
