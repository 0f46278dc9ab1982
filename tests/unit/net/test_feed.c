/* What comes back on a link that clients share, and whose it is. */
#include "upstream_rig.h"

#define PART 300000 /* bytes of a large value that come at first */

/* Whoever comes while a large value is under way has another link. */
static void a_large_value_leaves_the_shared_link_to_others(void **state)
{
    (void)state;
    static char part[PART];
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int large = dial(&b), other = dial(&b);
    say(large, "fetch a\n");
    int first = accepted(server);
    expect(first, "a\n");
    say(first, "VALUE a 0 4000000\r\n");
    memset(part, 'x', sizeof part);
    for (size_t at = 0; at < sizeof part; at += 1000)
        assert_int_equal(send(first, part + at, 1000, MSG_NOSIGNAL), 1000);
    expect(large, "VALUE a 0 4000000\r\nxxxx");
    assert_int_equal(recv(large, part, sizeof part - 4, MSG_WAITALL), sizeof part - 4);
    assert_false(nobody_comes(server));
    pass(100); /* until it has taken the first one's place */
    int second = served_by(server, other, "share");
    (void)close(first);
    (void)close(second);
    (void)close(large);
    (void)close(other);
    (void)close(server);
}

/* Two replies come at once, the first to somebody who has reset his connection meanwhile. */
static void the_reply_of_who_is_gone_is_nobody_elses(void **state)
{
    (void)state;
    int server = listen_at("127.0.0.2");
    struct linger reset = {1, 0};
    start("127.0.0.2");
    for (int i = 0, link = -1; i < 3; i++) {
        int gone = dial(&b), other = dial(&b);
        say(gone, "share a\n");
        link = link < 0 ? accepted(server) : link;
        expect(link, "a\n");
        say(other, "share b\n");
        expect(link, "b\n");
        (void)setsockopt(gone, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        (void)close(gone);
        NET_AWAIT(net_bench_connections(&b) == 1);
        say(link, "STORED\r\nEXISTS\r\n");
        expect(other, "EXISTS\r\n");
        (void)close(other);
        NET_AWAIT(net_bench_connections(&b) == 0);
    }
    (void)close(server);
}

/* Of a read that the link does not outlive, too. */
static void a_reply_comes_whatever_stands_behind_it(void **state)
{
    static const char *const all[][2] = {
        {"+OK\r\n+OK\r\n", "it sent something unasked"},
        {"+OK\r\nHTTP/1.1 400 Bad Request\r\n\r\n", "it does not speak the protocol"}};
    (void)state;
    int server = listen_at("127.0.0.2");
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    for (size_t i = 0; i < 2; i++) {
        int c = dial(&b);
        say(c, i ? "share one\nshare two\n" : "share one\n");
        int link = accepted(server);
        expect(link, i ? "one\ntwo\n" : "one\n");
        say(link, all[i][0]);
        expect(c, "+OK\r\n");
        expect_end(link);
        assert_why(all[i][1]);
        (void)close(link);
        (void)close(c);
    }
    (void)close(server);
}

/* It has served, and may serve others. */
static void what_one_link_says_at_last_is_not_said_of_the_server(void **state)
{
    (void)state;
    int server = listen_at("127.0.0.2");
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "up one\n");
    int link = accepted(server);
    expect(link, "one\n");
    say(link, "+OK\r\n");
    expect(c, "+OK\r\n");
    say(c, "up two\n");
    expect(link, "two\n");
    say(link, "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_end(link);
    assert_true(is_up());
    (void)close(link);
    (void)close(c);
    (void)close(server);
}

/* In all it takes longer than a server may let wait. */
static void a_reply_that_comes_slowly_comes(void **state)
{
    (void)state;
    timeout_us = 1000000;
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "fetch a\n");
    int link = accepted(server);
    expect(link, "a\n");
    say(link, "VALUE a 0 5\r\n");
    expect(c, "VALUE a 0 5\r\n");
    for (int i = 0; i < 5; i++) {
        pass(300);
        say(link, "x");
        expect(c, "x");
    }
    say(link, "\r\nEND\r\n");
    expect(c, "\r\nEND\r\n");
    (void)close(link);
    (void)close(c);
    (void)close(server);
}

/* A client of RESP with a link of its own, on which a part of a push has come. */
static int within_a_push(int server, int *link)
{
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int client = dial(&b);
    say(client, "up hello\n");
    *link = accepted(server);
    expect(*link, "hello\n");
    say(*link, "+OK\r\n");
    expect(client, "+OK\r\n");
    say(*link, ">2\r\n$7\r\nmessage\r\n$9\r\nhalf");
    expect(client, ">2\r\n$7\r\nmessage\r\n$9\r\nhalf");
    return client;
}

static void what_is_answered_here_waits_for_the_end_of_a_push(void **state)
{
    (void)state;
    int link, server = listen_at("127.0.0.2"), client = within_a_push(server, &link);
    say(client, "x\n");
    pass(50);
    say(link, " of i");
    expect(client, " of i");
    say(client, "y\n");
    pass(50);
    say(link, "\r\n");
    expect(client, "\r\nx\ny\n");
    say(link, ">2\r"); /* kept until the line is whole: the client has nothing of it yet */
    pass(50);
    say(client, "z\n");
    expect(client, "z\n");
    (void)close(link);
    (void)close(client);
    (void)close(server);
}

/* Not for ever: it is as a reply that does not come. */
static void a_push_without_an_end_is_not_waited_for(void **state)
{
    (void)state;
    timeout_us = 200000;
    int link, server = listen_at("127.0.0.2"), client = within_a_push(server, &link);
    pass(500);
    say(link, "+");
    expect(client, "+"); /* nobody waited */
    say(client, "x\n");
    char c;
    assert_int_equal(read(client, &c, 1), 0);
    (void)close(link);
    (void)close(client);
    (void)close(server);
}

/* A line, or a block, that nothing was expected for when it began, and a request that is forwarded
 * while it comes: its own reply is still to come, and what is answered here waits for that. */
static void what_began_unasked_is_no_reply_to_what_is_asked_meanwhile(void **state)
{
    (void)state;
    static const char *const unasked[][2] = {{"ts=1 type=it", "em_get\r\n"},
                                             {"VALUE a 0 4\r\nab", "cd\r\n"}};
    int server = listen_at("127.0.0.2");
    b.svc.unasked = FRAME_MC_ANY;
    start("127.0.0.2");
    for (size_t i = 0; i < 2; i++) {
        int client = dial(&b);
        say(client, "mute watch\n");
        int link = accepted(server);
        expect(link, "watch\n");
        say(link, unasked[i][0]);
        pass(50);
        say(client, "up more\nx\n");
        expect(link, "more\n");
        say(link, unasked[i][1]);
        pass(50);
        say(link, "STORED\r\n");
        expect(client, unasked[i][0]);
        expect(client, unasked[i][1]);
        expect(client, "STORED\r\nx\n");
        (void)close(link);
        (void)close(client);
    }
    (void)close(server);
}

/* Takes what comes, as fast as it can, until `left` bytes have come. */
static void *take_all(void *arg)
{
    static char mem[1 << 16];
    size_t *left = ((size_t **)arg)[0];
    int fd = *((int **)arg)[1];
    while (*left > 0) {
        ssize_t r = recv(fd, mem, *left < sizeof mem ? *left : sizeof mem, 0);
        if (r <= 0)
            break;
        *left -= (size_t)r;
    }
    return NULL;
}

static void send_large(int link)
{
    static char value[1 << 20];
    char head[64];
    (void)snprintf(head, sizeof head, "VALUE a 0 %zu\r\n", sizeof value);
    say(link, head);
    for (size_t at = 0; at < sizeof value;) {
        ssize_t r = send(link, value + at, sizeof value - at, MSG_NOSIGNAL);
        assert_true(r > 0);
        at += (size_t)r;
    }
    say(link, "\r\nEND\r\n");
}

static int64_t stands_us; /* atomic: where the clock stands; 0: it runs */

static int64_t mono_us(struct clock *c)
{
    (void)c;
    int64_t at = __atomic_load_n(&stands_us, __ATOMIC_RELAXED);
    return at ? at : clock_mono_us(clock_system());
}

static int64_t wall_us(struct clock *c)
{
    (void)c;
    return clock_wall_us(clock_system());
}

static struct clock standing = {wall_us, mono_us};

/* The same in two halves, each once it has woken up: 3 ms of the clock that stands. */
static void *wake_and_take_all(void *arg)
{
    static char half[1 << 19];
    size_t *left = ((size_t **)arg)[0];
    for (int i = 0; i < 2; i++) {
        pass(50);
        (void)__atomic_fetch_add(&stands_us, 3000, __ATOMIC_RELAXED);
        pass(20);
        ssize_t r = recv(*((int **)arg)[1], half, sizeof half, MSG_WAITALL);
        *left -= r > 0 ? (size_t)r : 0;
    }
    return take_all(arg);
}

#define STALLERS 20

/* After so many have held up others, who is quick has a large value whole all the same: on a clock
 * that stands, so that it is quick on any machine. */
static void quick_one_has_all_behind(int stallers)
{
    char path[64], text[96];
    int server = listen_at("127.0.0.2"), slow[STALLERS], link = -1;
    b.conf.clock = &standing;
    (void)snprintf(path, sizeof path, "/tmp/sf-feed-%d.sock", (int)getpid());
    (void)snprintf(text, sizeof text, "unix:%s", path);
    (void)snprintf(address, sizeof address, "tcp://127.0.0.2:%u", port);
    net_bench_start(&b, text); /* a socket that keeps little */
    net_bench_call(&b, do_upstream, address);
    int other = dial(&b), quick = dial(&b);
    link = served_by(server, quick, "share"); /* later, its party begins on links of its own */
    for (int i = 0; i < stallers; i++) {
        slow[i] = dial(&b);
        say(slow[i], "fetch a\n");
        expect(link, "a\n");
    }
    say(other, "share b\n");
    expect(link, "b\n");
    for (int i = 0; i < stallers; i++)
        send_large(link);
    say(link, "STORED\r\n");
    expect(other, "STORED\r\n");
    int next = accepted(server); /* in the place of the first, which has made way */
    size_t left = strlen("VALUE a 0 1048576\r\n") + (1 << 20) + strlen("\r\nEND\r\n");
    void *what[] = {&left, &quick};
    pthread_t taker;
    say(quick, "fetch a\n");
    expect(next, "a\n");
    say(other, "share b\n");
    expect(next, "b\n");
    __atomic_store_n(&stands_us, clock_mono_us(clock_system()), __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&taker, NULL, wake_and_take_all, what), 0);
    send_large(next);
    say(next, "STORED\r\n");
    (void)pthread_join(taker, NULL);
    assert_int_equal(left, 0);
    expect(other, "STORED\r\n");
    __atomic_store_n(&stands_us, 0, __ATOMIC_RELAXED);
    (void)close(link);
    (void)close(next);
    for (int i = 0; i < stallers; i++)
        (void)close(slow[i]);
    (void)close(quick);
    (void)close(other);
    (void)close(server);
    (void)unlink(path);
}

static void one_who_stalls_does_not_have_quick_ones_cut(void **state)
{
    (void)state;
    quick_one_has_all_behind(1);
}

static void many_who_stall_do_not_have_quick_ones_cut(void **state)
{
    (void)state;
    quick_one_has_all_behind(STALLERS);
}

#define MUCH ((size_t)32 << 20)

/* Bytes of a value that the link takes until its client holds it up. */
static size_t send_until_held_up(int link)
{
    static char part[1 << 16];
    struct pollfd p = {.fd = link, .events = POLLOUT};
    size_t sent = 0;
    while (sent < MUCH && poll(&p, 1, 300) == 1) {
        size_t n = MUCH - sent < sizeof part ? MUCH - sent : sizeof part;
        ssize_t r = send(link, part, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += r > 0 ? (size_t)r : 0;
    }
    return sent;
}

static void who_takes_a_held_up_reply_gets_all_of_it(void **state)
{
    (void)state;
    static char rest[MUCH];
    struct timeval soon = {.tv_sec = 10};
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int client = dial(&b);
    say(client, "fetch a\n");
    int link = accepted(server);
    expect(link, "a\n");
    say(link, "VALUE a 0 33554432\r\n");
    size_t sent = send_until_held_up(link);
    assert_true(sent < MUCH);
    size_t left = strlen("VALUE a 0 33554432\r\n") + MUCH;
    void *what[] = {&left, &client};
    pthread_t taker;
    (void)setsockopt(link, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    assert_int_equal(pthread_create(&taker, NULL, take_all, what), 0);
    for (ssize_t r; sent < MUCH && (r = send(link, rest, MUCH - sent, MSG_NOSIGNAL)) > 0;)
        sent += (size_t)r;
    (void)pthread_join(taker, NULL);
    assert_int_equal(left, 0);
    (void)close(link);
    (void)close(client);
    (void)close(server);
}

/* The link is full of requests of clients that have gone, and another one cannot be had. */
static void fill(void)
{
    static char text[60000];
    struct linger reset = {1, 0};
    memset(text, 'x', sizeof text);
    memcpy(text, "share ", 6);
    text[sizeof text - 2] = '\n';
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 150; i++) {
        int gone = dial(&b);
        uint64_t before = net_bench_bytes_in(&b);
        say(gone, text);
        NET_AWAIT(net_bench_bytes_in(&b) == before + strlen(text));
        (void)setsockopt(gone, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        (void)close(gone);
    }
}

static void who_waits_for_room_is_held_up(void **state)
{
    (void)state;
    owned_max = 1;
    timeout_us = 60000000;
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int own = dial(&b), slow = dial(&b), other = dial(&b);
    say(own, "up x\n");
    int its = accepted(server);
    expect(its, "x\n");
    say(slow, "fetch a\n");
    int link = accepted(server);
    expect(link, "a\n");
    say(link, "VALUE a 0 33554432\r\n");
    assert_true(send_until_held_up(link) < MUCH);
    fill();
    say(other, "share b\n");
    NET_AWAIT(net_bench_connections(&b) == 2); /* without who does not take his reply */
    (void)close(own);
    (void)close(slow);
    (void)close(other);
    (void)close(its);
    (void)close(link);
    (void)close(server);
}

/* However long it has taken nothing before: its time begins when somebody comes. */
static void who_has_held_up_nobody_has_all_of_its_time(void **state)
{
    (void)state;
    static char rest[MUCH];
    owned_max = 1;
    timeout_us = 60000000;
    b.conf.clock = &standing;
    __atomic_store_n(&stands_us, clock_mono_us(clock_system()), __ATOMIC_RELAXED);
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int own = dial(&b), slow = dial(&b), other = dial(&b);
    say(own, "up x\n");
    int its = accepted(server);
    expect(its, "x\n");
    say(slow, "fetch a\n");
    int link = accepted(server);
    expect(link, "a\n");
    say(link, "VALUE a 0 33554432\r\n");
    size_t sent = send_until_held_up(link);
    (void)__atomic_fetch_add(&stands_us, 1000000, __ATOMIC_RELAXED);
    say(other, "share b\n");
    expect(link, "b\n");
    pass(600); /* it is looked at twice */
    size_t left = strlen("VALUE a 0 33554432\r\n") + MUCH;
    void *what[] = {&left, &slow};
    pthread_t taker;
    assert_int_equal(pthread_create(&taker, NULL, take_all, what), 0);
    for (ssize_t r; sent < MUCH && (r = send(link, rest, MUCH - sent, MSG_NOSIGNAL)) > 0;)
        sent += (size_t)r;
    (void)pthread_join(taker, NULL);
    assert_int_equal(left, 0);
    __atomic_store_n(&stands_us, 0, __ATOMIC_RELAXED);
    (void)close(own);
    (void)close(slow);
    (void)close(other);
    (void)close(its);
    (void)close(link);
    (void)close(server);
}

/* ---- what the service says of a reply -------------------------------------------------------- */

/* Its reply is one that the service is shown. */
static struct net_step ask_shown(struct net_service *svc, void *session, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    (void)svc, (void)session, (void)out;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return (struct net_step){.verdict = NET_MORE};
    if (upstream_ready(turn, UPSTREAM_OWN, 0) == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    size_t used = (size_t)(end - in.p) + 1;
    upstream_send(turn, span_of(in.p, used));
    upstream_expect(turn, FRAME_MC_LINE, 1, UPSTREAM_TELL);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static bool say_too_much(struct net_service *svc, void *session, const struct frame *f,
                         struct buf *out)
{
    (void)svc, (void)session, (void)f;
    out->failed = true;
    return false;
}

/* Its client is closed, and the link with it, on which more has come. */
static void a_link_that_ends_while_its_reply_is_shown_is_not_used_any_more(void **state)
{
    (void)state;
    int server = listen_at("127.0.0.2");
    b.svc.serve = ask_shown;
    b.svc.heard = say_too_much;
    start("127.0.0.2");
    for (int i = 0; i < 8; i++) {
        int c = dial(&b);
        say(c, "one\ntwo\n");
        int link = accepted(server);
        expect(link, "one\ntwo\n");
        say(link, "OK\r\nOK\r\n");
        expect(c, "OK\r\n");
        expect_end(c);
        expect_end(link);
        (void)close(c);
        (void)close(link);
    }
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(stats()->connections, 0);
    (void)close(server);
}

#define UP(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UP(a_large_value_leaves_the_shared_link_to_others),
        UP(the_reply_of_who_is_gone_is_nobody_elses),
        UP(a_reply_comes_whatever_stands_behind_it),
        UP(what_one_link_says_at_last_is_not_said_of_the_server),
        UP(a_reply_that_comes_slowly_comes),
        UP(what_is_answered_here_waits_for_the_end_of_a_push),
        UP(a_push_without_an_end_is_not_waited_for),
        UP(what_began_unasked_is_no_reply_to_what_is_asked_meanwhile),
        UP(one_who_stalls_does_not_have_quick_ones_cut),
        UP(many_who_stall_do_not_have_quick_ones_cut),
        UP(who_waits_for_room_is_held_up),
        UP(who_takes_a_held_up_reply_gets_all_of_it),
        UP(who_has_held_up_nobody_has_all_of_its_time),
        UP(a_link_that_ends_while_its_reply_is_shown_is_not_used_any_more),
    };
    return cmocka_run_group_tests_name("net/feed", tests, NULL, NULL);
}
