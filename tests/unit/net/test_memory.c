/* What is kept for all connections has a limit. */
#include "net/private.h"
#include "upstream_rig.h"

#define LIMIT ((size_t)1 << 20)
#define CROWD 60
#define PART  60000 /* bytes of a request without an end */

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
        if (net_bench_ended(&b, NET_END_MEMORY) > 0) /* few at a time: closing takes long */
            assert_true(kept() > LIMIT - LIMIT / 8);
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

enum {
    CROWD_MAX = 200
};

/* A server that listens, and takes little of what it does not read. */
static int lazy_server(void)
{
    const int few = 4096;
    timeout_us = 60000000;
    int server = listen_at("127.0.0.2");
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    return server;
}

/* Requests to a server that does not read, until so much more is kept, by clients in fd: their
 * number. */
static int fill_link(int fd[CROWD_MAX], uint64_t more)
{
    static char line[16001] = "share ";
    uint64_t before = kept(), in = net_bench_bytes_in(&b);
    int n = 0;
    memset(line + 6, 'x', sizeof line - 8);
    line[sizeof line - 2] = '\n';
    for (uint64_t i = 0; kept() < before + more; i++) {
        if (i % 4 == 0 && n < CROWD_MAX) /* more replies are not expected for one */
            fd[n++] = dial(&b);
        say_what_it_takes(fd[n - 1], line, sizeof line - 1);
        NET_AWAIT(net_bench_bytes_in(&b) == in + (i + 1) * (sizeof line - 1));
    }
    return n;
}

/* A server that hangs fills the link to it: that is no reason to close whoever keeps a little. */
static void what_stands_in_a_shared_link_is_nobodys(void **state)
{
    (void)state;
    b.conf.memory = 60000; /* the link keeps 64 KiB */
    int server = lazy_server(), much[CROWD_MAX];
    start("127.0.0.2");
    int little = dial(&b);
    say(little, "a request that is not who");
    NET_AWAIT(kept() > 0);
    int n = fill_link(much, 65536 - kept());
    assert_true(kept() > b.conf.memory);
    say(little, "le\n");
    expect(little, "a request that is not whole\n");
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
    (void)close(little);
    while (n > 0)
        (void)close(much[--n]);
    (void)close(server);
}

static void reset(int fd)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                     sizeof(struct linger));
    (void)close(fd);
}

/* A link that is full of requests of those who are gone, behind the reply to one client, who takes
 * nothing of it, is replaced. Returns the successor. */
static int replaced(int server, int link, int client)
{
    int crowd[CROWD_MAX];
    say(client, "fetch big\n");
    link = link < 0 ? let_in(server) : link;
    NET_AWAIT(kept() > 0);
    pass(20);
    uint64_t there = net_bench_connections(&b);
    int n = fill_link(crowd, 65536);
    while (n > 0)
        reset(crowd[--n]);
    NET_AWAIT(net_bench_connections(&b) == there);
    say_much(link);
    int next = let_in(server);
    pass(20);
    return next;
}

enum {
    ROUNDS = 12
};

static const void *holder; /* the loop's: the first session that had a turn */

/* More than half of what each of the others keeps but for its link. */
static size_t holds(const struct net_service *svc, const void *session)
{
    (void)svc;
    holder = holder ? holder : session;
    return session == holder ? 90000 : 0;
}

static void a_link_that_was_replaced_is_the_clients_that_keeps_it(void **state)
{
    (void)state;
    int server = lazy_server(), idle[ROUNDS], link[ROUNDS + 1] = {-1};
    b.svc.probe = probe;
    b.svc.holds = holds;
    b.conf.memory = 8 * 65536;
    start("127.0.0.2");
    int much = dial(&b);
    say(much, "hello\n");
    expect(much, "hello\n");
    for (int i = 0; i < ROUNDS; i++) {
        link[i + 1] = replaced(server, link[i], idle[i] = dial(&b));
        assert_true(kept() < b.conf.memory + 2 * 65536);
    }
    assert_in_range(net_bench_ended(&b, NET_END_MEMORY), 1, ROUNDS - 1);
    say(much, "hello\n");
    expect(much, "hello\n");
    (void)close(much);
    for (int i = 0; i < ROUNDS; i++) {
        (void)close(idle[i]);
        (void)close(link[i + 1]);
    }
    (void)close(server);
}

static void one_on_which_nobody_waits_goes_first(void **state)
{
    (void)state;
    int server = lazy_server(), link[ROUNDS + 1] = {-1};
    b.svc.probe = probe;
    b.conf.memory = 8 * 65536;
    start("127.0.0.2");
    int little = dial(&b);
    say(little, "a request that is not who");
    for (int i = 0; i < ROUNDS; i++) {
        int gone = dial(&b);
        link[i + 1] = replaced(server, link[i], gone);
        reset(gone);
        NET_AWAIT(net_bench_connections(&b) == 1);
        assert_true(kept() < b.conf.memory + 2 * 65536);
    }
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
    say(little, "le\n");
    expect(little, "a request that is not whole\n");
    (void)close(little);
    for (int i = 0; i < ROUNDS; i++)
        (void)close(link[i + 1]);
    (void)close(server);
}

static void do_limit(struct net_bench *bench, void *arg)
{
    (void)arg;
    net_reconfigure(bench->net, &bench->conf);
}

#define LITTLE ((size_t)9000) /* bytes, and far less than half of what the link keeps */

/* Who keeps most is closed, and with it goes what is kept for nobody else: that is enough, and
 * those who keep a little stay. */
static void a_link_goes_with_the_client_that_keeps_it(void **state)
{
    static char part[LITTLE + 1];
    int server = lazy_server(), little[4];
    (void)state;
    b.svc.probe = probe;
    start("127.0.0.2");
    int much = dial(&b), next = replaced(server, -1, much);
    uint64_t link = kept();
    memset(part, 'x', LITTLE);
    for (int i = 0; i < 4; i++)
        say(little[i] = dial(&b), part);
    NET_AWAIT(kept() >= link + 4 * LITTLE);
    b.conf.memory = kept() - link + 2 * LITTLE;
    net_bench_call(&b, do_limit, NULL);
    say(little[0], "x");
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) > 0);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 1);
    assert_int_equal(net_bench_connections(&b), 4);
    NET_AWAIT(kept() <= b.conf.memory);
    for (int i = 0; i < 4; i++)
        (void)close(little[i]);
    (void)close(much);
    (void)close(next);
    (void)close(server);
}

/* One who keeps more than the limit comes, and is closed. */
static void evict_one(void)
{
    static char part[LITTLE + 1];
    uint64_t ended = net_bench_ended(&b, NET_END_MEMORY);
    memset(part, 'x', LITTLE);
    int heavy = dial(&b);
    say(heavy, part);
    expect_end(heavy);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), ended + 1);
}

/* On none of them is anybody waited for: one is shared, one a client's own, and one is let in. */
static void links_that_will_be_of_use_stay(void **state)
{
    (void)state;
    static char value[100001], taken[sizeof value];
    b.svc.probe = probe;
    b.conf.memory = LITTLE / 2;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), owner = dial(&b);
    int shared = served_by(two, c, "share"), own = served_by(two, owner, "up");
    evict_one();
    served_at(shared, c);
    served_at(own, owner);
    memset(value, 'x', sizeof value - 1);
    say(c, "fetch big\n");
    expect(shared, "big\n");
    say(shared, "VALUE big 0 100000\r\n");
    say(shared, value);
    int next = accepted(two);
    expect(next, "version\r\n");
    say(shared, "\r\nEND\r\n");
    expect(c, "VALUE big 0 100000\r\n");
    assert_int_equal(recv(c, taken, sizeof value - 1, MSG_WAITALL), sizeof value - 1);
    expect(c, "\r\nEND\r\n");
    evict_one();
    say(next, "VERSION 1\r\n");
    expect_end(shared);
    served_at(next, d);
    for (size_t i = 0; i < 3; i++)
        (void)close(((int[]){c, d, owner})[i]);
    (void)close(shared);
    (void)close(own);
    (void)close(next);
    (void)close(two);
}

enum {
    SMALL = 12
};

/* What is not sent yet on a client's own link is that client's: it is closed, and not those who
 * keep a little. */
static void what_stands_in_ones_own_link_is_ones_own(void **state)
{
    (void)state;
    static char part[4001], line[2001] = "up ", sink[64];
    memset(part, 'x', sizeof part - 1);
    memset(line + 3, 'x', sizeof line - 5);
    line[sizeof line - 2] = '\n';
    b.conf.memory = 100000;
    int server = listen_at("127.0.0.2"), few = 4096, small[SMALL];
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    start("127.0.0.2");
    for (int i = 0; i < SMALL; i++)
        say(small[i] = dial(&b), part);
    NET_AWAIT(net_bench_bytes_in(&b) == SMALL * (sizeof part - 1));
    int large = dial(&b), link = -1;
    for (int i = 0; i < 20000 && net_bench_ended(&b, NET_END_MEMORY) == 0; i++) {
        say_what_it_takes(large, line, sizeof line - 1);
        link = link < 0 ? let_in(server) : link;
        (void)send(link, "OK\r\n", 4, MSG_NOSIGNAL); /* though it was not read */
        (void)recv(large, sink, 4, MSG_WAITALL);
    }
    expect_end(large);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 1);
    assert_int_equal(net_bench_connections(&b), SMALL);
    for (int i = 0; i < SMALL; i++)
        (void)close(small[i]);
    (void)close(large);
    (void)close(link);
    (void)close(server);
}

/* Many who keep little each, and one of another party who keeps more than each of them. */
static void drive_out(int one, int (*come)(void))
{
    static char part[12001];
    int few[4 * SMALL];
    memset(part, 'x', sizeof part - 1);
    part[sizeof part - 1] = '\0';
    uint64_t before = kept();
    say(one, part);
    NET_AWAIT(kept() >= before + sizeof part - 1);
    for (int i = 0; i < 4 * SMALL; i++)
        say_what_it_takes(few[i] = come(), part, 4000);
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) > 0);
    NET_AWAIT(kept() <= b.conf.memory);
    say(one, "\n");
    assert_int_equal(recv(one, part, sizeof part, MSG_WAITALL), sizeof part);
    assert_int_equal(part[sizeof part - 1], '\n');
    for (int i = 0; i < 4 * SMALL; i++)
        (void)close(few[i]);
    (void)close(one);
}

static int dial_there(void)
{
    return dial(&b);
}

static void those_are_closed_of_whom_all_together_keep_most(void **state)
{
    (void)state;
    struct net_bench inside = {.door = b.door};
    b.conf.memory = 100000;
    net_bench_start(&b, NULL);
    net_bench_inside(&b, &inside);
    drive_out(dial(&inside), dial_there);
}

/* As HTTP has them: with places of their own they would each be weighed alone. */
static void so_are_those_that_have_slots(void **state)
{
    (void)state;
    struct net_bench inside = {.door = b.door};
    b.conf.memory = 100000;
    b.svc.slots = 100;
    net_bench_start(&b, NULL);
    net_bench_inside(&b, &inside);
    drive_out(dial(&inside), dial_there);
}

static int dial_as(const char *login)
{
    int fd = dial(&b);
    say(fd, login);
    expect(fd, "welcome\n");
    return fd;
}

static int dial_as_the_other(void)
{
    return dial_as("login 2\n");
}

static void so_are_those_of_the_user_that_keeps_most(void **state)
{
    (void)state;
    b.strangers = true;
    b.conf.memory = 100000;
    net_bench_start(&b, NULL);
    drive_out(dial_as("login 1\n"), dial_as_the_other);
}

/* What it kept before, and what was closed for that, is past. */
static void who_kept_most_before_is_not_the_one_now(void **state)
{
    (void)state;
    static char part[PART];
    int fd[8], other[2];
    memset(part, 'x', sizeof part);
    b.strangers = true;
    b.conf.memory = 2 * (size_t)PART;
    net_bench_start(&b, NULL);
    int little = dial_as("login 1\n");
    for (int i = 0; i < 8; i++) {
        fd[i] = dial_as("login 1\n");
        say_what_it_takes(fd[i], part, PART);
        NET_AWAIT(kept() > 0 && kept() <= b.conf.memory);
    }
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) >= 6);
    for (int i = 0; i < 8; i++)
        (void)close(fd[i]);
    NET_AWAIT(net_bench_connections(&b) == 1);
    say(little, "a request that is not who");
    for (int i = 0; i < 2; i++) {
        other[i] = dial_as("login 2\n");
        say_what_it_takes(other[i], part, PART);
    }
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) >= 7);
    say(little, "le\n");
    expect(little, "a request that is not whole\n");
    (void)close(little);
    for (int i = 0; i < 2; i++)
        (void)close(other[i]);
}

static int dial_as_another_now(void)
{
    int fd = dial_as("login 1\n");
    say(fd, "login 2\n");
    expect(fd, "welcome\n");
    return fd;
}

/* Whose it was before is no matter. */
static void who_logs_in_anew_is_the_one_from_then_on(void **state)
{
    (void)state;
    b.strangers = true;
    b.conf.memory = 100000;
    net_bench_start(&b, NULL);
    drive_out(dial_as("login 1\n"), dial_as_another_now);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

static void do_spare(struct net_bench *bench, void *arg)
{
    *(unsigned *)arg = bench->net->nspare;
}

/* A crowd that has gone on leaves no more than 128 KiB of them. */
static void few_blocks_are_kept_for_the_next(void **state)
{
    (void)state;
    int fd[CROWD];
    unsigned spare = 0;
    net_bench_start(&b, NULL);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = dial(&b);
        say(fd[i], "a part");
    }
    NET_AWAIT(kept() == (size_t)CROWD * NET_BLOCK);
    for (int i = 0; i < CROWD; i++) {
        say(fd[i], "\n");
        expect(fd[i], "a part\n");
    }
    net_bench_call(&b, do_spare, &spare);
    assert_int_equal(spare, 32);
    for (int i = 0; i < CROWD; i++)
        (void)close(fd[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(those_who_keep_most_are_closed),
        NET(few_blocks_are_kept_for_the_next),
        NET(so_are_those_who_take_nothing),
        NET(those_are_closed_of_whom_all_together_keep_most),
        NET(so_are_those_that_have_slots),
        NET(so_are_those_of_the_user_that_keeps_most),
        NET(who_logs_in_anew_is_the_one_from_then_on),
        NET(who_kept_most_before_is_not_the_one_now),
        BENCH(what_stands_in_a_shared_link_is_nobodys),
        BENCH(what_stands_in_ones_own_link_is_ones_own),
        BENCH(a_link_that_was_replaced_is_the_clients_that_keeps_it),
        BENCH(one_on_which_nobody_waits_goes_first),
        BENCH(a_link_goes_with_the_client_that_keeps_it),
        BENCH(links_that_will_be_of_use_stay),
    };
    return cmocka_run_group_tests_name("net/memory", tests, NULL, NULL);
}
