/* What a client that has gone leaves to be sent, on a link of its own. */
#include "net/upstream/links.h"
#include "upstream_rig.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define LINE  (50u << 10)
#define LINES 200u /* more than a socket takes */
#define ALL   (LINES * (LINE - sizeof "mute "))

static _Atomic bool elsewhere; /* the server is, where ports are used up */

/* In the place of libc's, for the loop. */
int getpeername(int fd, struct sockaddr *to, socklen_t *n)
{
    int r = (int)syscall(SYS_getpeername, fd, to, n);
    bool as_if = elsewhere;
    if (r == 0 && as_if && to->sa_family == AF_INET)
        ((struct sockaddr_in *)(void *)to)->sin_addr.s_addr = htonl(0xC0000201); /* 192.0.2.1 */
    return r;
}

static int two; /* the server, which takes little unread */

static void begin_slow(int64_t us)
{
    int little = 4096;
    two = listen_at("127.0.0.2");
    assert_int_equal(setsockopt(two, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    buffer = 16 << 20;
    timeout_us = us;
    start("127.0.0.2");
}

/* LINE bytes of a request that has no reply. */
static const char *line(void)
{
    static char text[LINE];
    memset(text, 'x', LINE - 1);
    memcpy(text, "mute ", 5);
    text[LINE - 2] = '\n';
    return text;
}

/* A client that wants no replies says much, of which its link reads nothing. */
static int says(int client)
{
    say(client, line());
    int link = accepted(two);
    for (unsigned i = 1; i < LINES; i++)
        say(client, line());
    return link;
}

/* And goes. */
static int left(void)
{
    int c = dial(&b), link = says(c);
    uint64_t there = net_bench_connections(&b);
    (void)close(c);
    NET_AWAIT(net_bench_connections(&b) < there);
    assert_int_equal(stats()->connections, 1);
    return link;
}

static size_t read_all(int link)
{
    static char part[1 << 16];
    size_t all = 0;
    for (ssize_t r; (r = recv(link, part, sizeof part, 0)) > 0;)
        all += (size_t)r;
    return all;
}

static void what_is_left_is_sent(void **state)
{
    (void)state;
    begin_slow(60000000);
    int link = left();
    say(link, "what it says is for nobody\r\n");
    assert_int_equal(read_all(link), ALL);
    NET_AWAIT(stats()->connections == 0);
    assert_int_equal(stats()->errors, 0);
    (void)close(link);
    (void)close(two);
}

/* Also what nobody has read when he goes; by a UNIX socket his end shows at once. */
static void it_is_heard_to_its_end(void **state)
{
    struct net_bench inside = {.door = b.door};
    struct pollfd p = {.events = POLLOUT};
    size_t said = LINE - 1;
    (void)state;
    begin_slow(60000000);
    net_bench_inside(&b, &inside);
    int c = dial(&inside);
    say(c, line());
    int link = accepted(two);
    for (p.fd = c; poll(&p, 1, 300) == 1;) {
        ssize_t r = send(c, line() + said % (LINE - 1), LINE - 1 - said % (LINE - 1),
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        said += r > 0 ? (size_t)r : 0;
    }
    (void)close(c);
    pass(2500); /* two sweeps */
    assert_int_equal(read_all(link), said / (LINE - 1) * (LINE - sizeof "mute "));
    (void)close(link);
    (void)close(two);
}

/* Whoever is closed to make room leaves none that is not had. */
static void those_that_stay_are_counted(void **state)
{
    struct net_bench inside = {.door = b.door};
    int c[2], link[2];
    (void)state;
    owned_max = 2;
    begin_slow(60000000);
    net_bench_inside(&b, &inside);
    for (int i = 0; i < 2; i++)
        link[i] = says(c[i] = dial(&b));
    int in = dial(&inside), own = served_by(two, in, "up");
    expect_end(c[0]);
    assert_int_equal(stats()->connections, 2);
    (void)close(in);
    (void)close(own);
    for (int i = 0; i < 2; i++) {
        (void)close(c[i]);
        (void)close(link[i]);
    }
    (void)close(two);
}

static void it_makes_room_for_who_is_there(void **state)
{
    (void)state;
    owned_max = 1;
    begin_slow(60000000);
    int link = left(), c = dial(&b), own = served_by(two, c, "up");
    assert_true(read_all(link) < ALL);
    assert_int_equal(stats()->connections, 1);
    (void)close(own);
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

/* There are descriptors for so many. */
static void clients_and_those_that_stay_are_no_more_than_clients_may_be(void **state)
{
    int link[3];
    (void)state;
    b.conf.connections = 2;
    begin_slow(60000000);
    for (int i = 0; i < 3; i++) {
        int c = dial(&b);
        link[i] = says(c);
        (void)close(c);
        NET_AWAIT(net_bench_connections(&b) == 0);
    }
    NET_AWAIT(stats()->connections == 2);
    int c = dial(&b);
    say(c, "x\n");
    expect(c, "x\n");
    assert_int_equal(stats()->connections, 1);
    (void)close(c);
    for (int i = 0; i < 3; i++)
        (void)close(link[i]);
    (void)close(two);
}

static void a_server_that_takes_none_of_it_is_left(void **state)
{
    (void)state;
    begin_slow(3000000);
    int link = left();
    NET_AWAIT(stats()->errors > 0); /* which nobody else was told */
    assert_int_equal(stats()->faults, 1);
    assert_true(read_all(link) < ALL);
    (void)close(link);
    (void)close(two);
}

static void as_is_one_that_has_gone(void **state)
{
    (void)state;
    begin_slow(60000000);
    (void)close(left());
    NET_AWAIT(stats()->connections == 0);
    assert_int_equal(stats()->errors, 1);
    (void)close(two);
}

/* Which a reset tells, too; an end alone may be seen again and again. */
static void and_one_that_says_no_more(void **state)
{
    (void)state;
    begin_slow(60000000);
    int link = left();
    assert_int_equal(shutdown(link, SHUT_WR), 0);
    NET_AWAIT(stats()->connections == 0);
    (void)close(link);
    (void)close(two);
}

static void do_say_and_go(struct net_bench *bench, void *client)
{
    (void)bench;
    say(*(int *)client, "mute x\n");
    (void)close(*(int *)client);
}

/* Nothing of it was sent yet when the end is seen. */
static void what_is_said_and_left_within_a_turn_is_sent(void **state)
{
    (void)state;
    two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "up");
    net_bench_call(&b, do_say_and_go, &c);
    expect(link, "x\n");
    expect_end(link);
    NET_AWAIT(stats()->connections == 0);
    (void)close(link);
    (void)close(two);
}

static bool no_one_stands(const struct net_service *svc, const void *session)
{
    (void)svc;
    (void)session;
    return false;
}

static void do_revoke(struct net_bench *n, void *arg)
{
    (void)arg;
    n->svc.stands = no_one_stands;
    (void)net_review(n->net);
}

static void whoever_may_no_more_leaves_nothing(void **state)
{
    (void)state;
    begin_slow(60000000);
    int c = dial(&b), link = says(c);
    net_bench_call(&b, do_revoke, NULL);
    NET_AWAIT(stats()->connections == 0);
    assert_true(read_all(link) < ALL);
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

static void do_limit(struct net_bench *n, void *arg)
{
    (void)arg;
    net_reconfigure(n->net, &n->conf);
}

static void it_goes_before_anybody_does(void **state)
{
    (void)state;
    begin_slow(60000000);
    int link = left(), c = dial(&b);
    b.conf.memory = ALL / 4;
    net_bench_call(&b, do_limit, NULL);
    say(c, "x");
    NET_AWAIT(stats()->connections == 0);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
    say(c, "x\n");
    expect(c, "xx\n");
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

static void orderly_ends_are_so_many_at_once_and_so_many_a_second(void **state)
{
    struct farewells f = {0, 0};
    int64_t at_us = 5000000;
    unsigned n = 0, more = 0;
    (void)state;
    while (leave_orderly(&f, at_us))
        n++;
    assert_int_equal(n, 8000);
    for (int ms = 0; ms < 60000; ms++)
        more += leave_orderly(&f, at_us += 1000);
    assert_int_equal(more, 60 * 100);
    for (n = 0, at_us += INT64_C(3600) * 1000000; leave_orderly(&f, at_us);)
        n++;
    assert_int_equal(n, 8000);
}

static void do_use_up(struct net_bench *n, void *arg)
{
    (void)arg;
    while (leave_orderly(&n->svc.upstream->farewells, upstream_now_us(n->svc.upstream)))
        ;
}

/* What was said without replies is known to be carried out only where the end is orderly. */
static void whoever_has_many_end_has_them_reset(void **state)
{
    (void)state;
    two = listen_at("127.0.0.2");
    start("127.0.0.2");
    for (int many = 0; many < 3; many++) {
        char c;
        int client = dial(&b);
        elsewhere = many == 2;
        say(client, "mute x\n");
        int link = accepted(two);
        expect(link, "x\n");
        if (many)
            net_bench_call(&b, do_use_up, NULL);
        (void)close(client);
        ssize_t r = recv(link, &c, 1, 0);
        assert_true(elsewhere ? r < 0 && errno == ECONNRESET : r == 0);
        (void)close(link);
    }
    elsewhere = false;
    (void)close(two);
}

/* A reset would take with it what the server has not read yet. */
static void but_not_before_the_server_had_time_to_read(void **state)
{
    (void)state;
    two = listen_at("127.0.0.2");
    start("127.0.0.2");
    elsewhere = true;
    int client = dial(&b), one = served_by(two, client, "up");
    net_bench_call(&b, do_use_up, NULL);
    say(client, "mute x\n");
    (void)close(client);
    pass(500);
    expect(one, "x\n");
    NET_AWAIT(stats()->connections == 0);
    elsewhere = false;
    (void)close(one);
    (void)close(two);
}

static void do_stuck(struct net_bench *n, void *arg)
{
    *(uint64_t *)arg = net_stuck(n->net);
}

static void it_is_waited_for_at_an_upgrade(void **state)
{
    (void)state;
    begin_slow(60000000);
    int link = left();
    uint64_t stuck = 0;
    net_bench_call(&b, do_stuck, &stuck);
    assert_int_equal(stuck, 1);
    assert_int_equal(read_all(link), ALL);
    NET_AWAIT(stats()->connections == 0);
    net_bench_call(&b, do_stuck, &stuck);
    assert_int_equal(stuck, 0);
    (void)close(link);
    (void)close(two);
}

static bool is_drained(void)
{
    return __atomic_load_n(&b.drained, __ATOMIC_SEQ_CST);
}

static void and_at_a_stop_for_as_long_as_for_others(void **state)
{
    (void)state;
    for (int patient = 0; patient < 2; patient++) {
        if (patient) {
            (void)end(state);
            (void)begin(state);
        }
        begin_slow(60000000);
        int link = left();
        net_bench_drain(&b, patient ? 30000000 : 100000);
        if (patient) {
            pass(50);
            assert_false(is_drained());
        }
        NET_AWAIT(patient || is_drained());
        size_t all = read_all(link);
        assert_true(patient ? all == ALL : all < ALL);
        NET_AWAIT(is_drained());
        (void)close(link);
        (void)close(two);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(what_is_left_is_sent),
        BENCH(it_is_heard_to_its_end),
        BENCH(it_makes_room_for_who_is_there),
        BENCH(those_that_stay_are_counted),
        BENCH(clients_and_those_that_stay_are_no_more_than_clients_may_be),
        BENCH(a_server_that_takes_none_of_it_is_left),
        BENCH(as_is_one_that_has_gone),
        BENCH(and_one_that_says_no_more),
        BENCH(what_is_said_and_left_within_a_turn_is_sent),
        BENCH(whoever_may_no_more_leaves_nothing),
        cmocka_unit_test(orderly_ends_are_so_many_at_once_and_so_many_a_second),
        BENCH(whoever_has_many_end_has_them_reset),
        BENCH(but_not_before_the_server_had_time_to_read),
        BENCH(it_goes_before_anybody_does),
        BENCH(it_is_waited_for_at_an_upgrade),
        BENCH(and_at_a_stop_for_as_long_as_for_others),
    };
    return cmocka_run_group_tests_name("net/leave", tests, NULL, NULL);
}
