/* Who is idle, and who is silent for a reason. */
#include "unit/net/upstream_rig.h"

#define IDLE_MS 300

static void begin_idle(const char *host)
{
    b.conf.idle_timeout_us = IDLE_MS * 1000;
    start(host);
}

static void who_waits_for_a_server_is_not_idle(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    begin_idle("127.0.0.2");
    int own = dial(&b), shared = dial(&b);
    say(own, "up hello\n");
    int link = accepted(two);
    say(shared, "share hello\n");
    int other = accepted(two);
    pass(3 * IDLE_MS);
    say(link, "STORED\r\n");
    say(other, "STORED\r\n");
    expect(own, "STORED\r\n");
    expect(shared, "STORED\r\n");
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 0);
    expect_end(own); /* now nobody waits */
    expect_end(shared);
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 2);
    (void)close(link);
    (void)close(other);
    (void)close(own);
    (void)close(shared);
    (void)close(two);
}

/* As BLPOP whose reply is muted, and as who watches memcached: nothing is expected of it. */
static void who_waits_for_what_has_no_reply_is_not_idle(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    begin_idle("127.0.0.2");
    int muted = dial(&b), told = dial(&b);
    say(muted, "mute hello\n");
    int first = accepted(two);
    say(told, "block hello\n");
    int second = accepted(two);
    expect(second, "hello\n");
    expect_end(muted); /* that takes no time */
    pass(2 * IDLE_MS);
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 1);
    say(second, "unasked\r\n");
    expect(told, "unasked\r\n");
    expect_silence(told, 2 * IDLE_MS);
    say(told, "up more\n");
    expect(second, "more\n");
    say(second, "STORED\r\n");
    expect(told, "STORED\r\n");
    expect_end(told); /* with that the time is over */
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 2);
    (void)close(first);
    (void)close(second);
    (void)close(muted);
    (void)close(told);
    (void)close(two);
}

static void who_owes_the_rest_of_a_request_is_idle(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    begin_idle("127.0.0.2");
    int c = dial(&b);
    say(c, "part one\n");
    int link = accepted(two);
    expect(link, "one\n");
    expect_end(c);
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 1);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void who_waits_for_us_is_not_idle(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    b.conf.idle_timeout_us = IDLE_MS * 1000;
    net_bench_start(&b, NULL);
    int c = dial(&b);
    say(c, "wait\n");
    expect_silence(c, 3 * IDLE_MS);
    net_bench_open_gate(&b);
    expect(c, "open\n");
    expect_end(c);
    (void)close(c);
}

static size_t take_some(int fd)
{
    static char mem[1 << 16];
    ssize_t r = recv(fd, mem, sizeof mem, 0);
    assert_true(r > 0);
    return (size_t)r;
}

/* It is never seen to take anything but by the kernel, which holds more than it takes in time. */
static void who_takes_what_there_is_is_not_idle(void **state)
{
    (void)state;
    const int few = 1 << 16, times = 20;
    size_t left = (size_t)times * 400001;
    b.conf.idle_timeout_us = 2 * IDLE_MS * 1000;
    net_bench_start(&b, NULL);
    int slow = dial(&b), never = dial(&b);
    assert_int_equal(setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    for (int i = 0; i < times; i++) {
        say(slow, "big 400000\n");
        say(never, "big 400000\n");
    }
    for (int i = 0; i < 100; i++) {
        pass(20);
        left -= take_some(slow);
    }
    while (left > 0)
        left -= take_some(slow);
    NET_AWAIT(net_bench_ended(&b, NET_END_IDLE) == 1);
    say(slow, "x\n");
    expect(slow, "x\n");
    (void)close(slow);
    (void)close(never);
}

static bool listens(const struct net_service *svc, const void *session)
{
    (void)svc;
    (void)session;
    return true;
}

static void who_listens_is_not_idle(void **state)
{
    (void)state;
    b.svc.listens = listens;
    b.conf.idle_timeout_us = IDLE_MS * 1000;
    net_bench_start(&b, NULL);
    int c = dial(&b);
    expect_silence(c, 3 * IDLE_MS);
    say(c, "x\n");
    expect(c, "x\n");
    (void)close(c);
}

static void do_reconfigure(struct net_bench *bench, void *arg)
{
    (void)arg;
    net_reconfigure(bench->net, &bench->conf);
}

static void who_was_silent_before_there_was_a_limit_has_all_of_its_time(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int c = dial(&b);
    pass(2 * IDLE_MS);
    b.conf.idle_timeout_us = IDLE_MS * 1000;
    net_bench_call(&b, do_reconfigure, NULL);
    expect_silence(c, IDLE_MS / 2);
    expect_end(c);
    (void)close(c);
}

/* Reloads that change the limit, one after the other, do not keep anybody. */
static void another_limit_begins_nobodys_time_anew(void **state)
{
    (void)state;
    begin_idle("127.0.0.2");
    int c = dial(&b);
    for (int i = 0; i < 100 && net_bench_ended(&b, NET_END_IDLE) == 0; i++) {
        pass(IDLE_MS / 10);
        b.conf.idle_timeout_us = (IDLE_MS + i % 2) * 1000;
        net_bench_call(&b, do_reconfigure, NULL);
    }
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 1);
    expect_end(c);
    (void)close(c);
}

/* The process is stopped, and c asks for something meanwhile. */
static void do_stand_still(struct net_bench *bench, void *c)
{
    (void)bench;
    pass(2 * IDLE_MS);
    say(*(int *)c, "late\n");
}

/* Also who has been silent longest, whose time the timer was set to. */
static void what_comes_while_we_stand_still_is_read_first(void **state)
{
    (void)state;
    begin_idle("127.0.0.2");
    int c = dial(&b);
    pass(IDLE_MS / 2);
    say(c, "x\n");
    expect(c, "x\n");
    pass(IDLE_MS * 3 / 4); /* the timer was set anew, for this one */
    net_bench_call(&b, do_stand_still, &c);
    expect(c, "late\n");
    expect_end(c); /* and is set once more */
    (void)close(c);
}

static void do_stop(struct net_bench *bench, void *arg)
{
    (void)bench;
    (void)arg;
    pass(2000);
}

/* Though it ended before the time was over that a timer for it would have been set to. */
static void nobody_is_idle_while_we_stand_still(void **state)
{
    (void)state;
    b.conf.idle_timeout_us = 3000000;
    start("127.0.0.2");
    int c = dial(&b);
    pass(500);
    net_bench_call(&b, do_stop, NULL);
    expect_silence(c, 1200);
    expect_end(c);
    (void)close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(who_waits_for_a_server_is_not_idle),
        BENCH(who_waits_for_what_has_no_reply_is_not_idle),
        BENCH(who_owes_the_rest_of_a_request_is_idle),
        BENCH(who_waits_for_us_is_not_idle),
        BENCH(who_takes_what_there_is_is_not_idle),
        BENCH(who_listens_is_not_idle),
        BENCH(who_was_silent_before_there_was_a_limit_has_all_of_its_time),
        BENCH(another_limit_begins_nobodys_time_anew),
        BENCH(what_comes_while_we_stand_still_is_read_first),
        BENCH(nobody_is_idle_while_we_stand_still),
    };
    return cmocka_run_group_tests_name("net/idle", tests, NULL, NULL);
}
