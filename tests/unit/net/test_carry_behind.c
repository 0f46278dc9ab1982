/* Links to a server that go from one loop to another with those whose they are. */
#include "unit/net/carry_rig.h"

/* ---- with a server behind ----------------------------------------------------------------------
 *
 *   up TEXT     TEXT goes there on a link of the client's own, and one line comes back
 *   hush TEXT   TEXT goes there likewise, may take any time, and has no reply
 *   wait TEXT   as up, and the reply may take any time
 *   subs TEXT   as up, and two acknowledgements come back
 *   none TEXT   as up, and acknowledgements come back until none of their kind is left
 *   pipe TEXT   TEXT goes there likewise, and from then on whatever comes
 *   share TEXT  the same as up on a link that all share
 */

static int64_t timeout_us;
static uint32_t owned_max;
static int server = -1; /* listens */
static char server_address[64];
static enum frame_kind reply; /* what up and its kin expect */
static struct net_step (*plain)(struct net_service *, void *, struct span, struct net_turn *,
                                struct buf *);

static struct net_step through(struct net_service *svc, void *session, struct span in,
                               struct net_turn *turn, struct buf *out)
{
    const struct net_step behind = {.verdict = NET_BEHIND};
    bool shared = span_starts(in, SPAN("share ")), up = span_starts(in, SPAN("up "));
    bool hush = span_starts(in, SPAN("hush ")), wait = span_starts(in, SPAN("wait "));
    bool subs = span_starts(in, SPAN("subs ")), none = span_starts(in, SPAN("none "));
    bool pipe = span_starts(in, SPAN("pipe "));
    bool own = up || hush || wait || subs || none || pipe;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end || (!own && !shared))
        return end && upstream_pending(turn) > 0 ? behind : plain(svc, session, in, turn, out);
    size_t skip = up ? 3 : own ? 5 : 6, used = (size_t)(end - in.p) + 1;
    enum upstream_ready is = upstream_ready(turn, own ? UPSTREAM_OWN : UPSTREAM_TEXT, 0);
    if (is == UPSTREAM_BUSY)
        return behind;
    if (is == UPSTREAM_DOWN)
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    upstream_send(turn, span_of(in.p + skip, used - skip));
    if (subs || none)
        upstream_expect_acks(turn, subs ? 2 : UPSTREAM_ACKS_ALL);
    else if (pipe)
        upstream_tunnel(turn);
    else
        upstream_expect(turn, reply, !hush, hush || wait ? UPSTREAM_PATIENT : 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static void open_server(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof in;
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    (void)snprintf(server_address, sizeof server_address, "tcp://127.0.0.1:%u", ntohs(in.sin_port));
}

static int begin_behind(void **state)
{
    int r = begin(state);
    timeout_us = 30000000;
    owned_max = 0;
    open_server();
    plain = a.svc.serve;
    a.svc.serve = b.svc.serve = through;
    a.svc.frame = b.svc.frame = frame_memcached;
    reply = FRAME_MC_LINE;
    return r;
}

static int end_behind(void **state)
{
    (void)close(server);
    return end(state);
}

static void do_upstream(struct net_bench *n, void *arg)
{
    struct err e;
    struct upstream_config c = {.address = span_str(arg),
                                .timeout_us = timeout_us,
                                .connections = owned_max,
                                .buffer = 1 << 16};
    assert_int_equal(upstream_new(n->net, &n->svc, &c, &e), ERR_OK);
}

static void do_rest(struct net_bench *n, void *arg)
{
    upstreams_rest(n->net, *(bool *)arg);
}

/* As take_over, with a server behind. */
static void take_over_behind(void)
{
    net_bench_inherit(&b, buf_span(&parcel), NULL);
    net_bench_call(&b, do_upstream, server_address);
    net_bench_call(&b, do_adopt, NULL);
    net_bench_stop(&a);
}

static int accepted(void)
{
    assert_int_equal(poll(&(struct pollfd){.fd = server, .events = POLLIN}, 1, 10000), 1);
    int fd = accept(server, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

static void a_link_goes_over_with_what_is_expected(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int idle = dial(&a), waiting = dial(&a);
    say(idle, "up hello\n");
    int first = accepted();
    expect(first, "hello\n");
    say(first, "there\r\n");
    expect(idle, "there\r\n");
    say(waiting, "up one\nup two\nlocal\n");
    int second = accepted();
    expect(second, "one\ntwo\n");
    assert_int_equal(leave(), 5);
    assert_int_equal(lost, 0);
    take_over_behind();
    assert_int_equal(taken, 2);
    say(second, "1\r\n");
    expect(waiting, "1\r\n");
    expect_silence(waiting, 50);
    say(second, "2\r\n");
    expect(waiting, "2\r\nlocal\n");
    say(idle, "up again\n");
    expect(first, "again\n");
    say(first, "yes\r\n");
    expect(idle, "yes\r\n");
    (void)close(idle);
    expect_end(first);
    (void)close(second);
    expect_end(waiting);
}

/* A value has more than a line. */
static void a_reply_ends_where_it_would_have_ended(void **state)
{
    (void)state;
    reply = FRAME_MC_VALUES;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up get\nlocal\n");
    int link = accepted();
    expect(link, "get\n");
    assert_int_equal(leave(), 3);
    take_over_behind();
    say(link, "VALUE a 0 1\r\n1\r\n");
    expect(fd, "VALUE a 0 1\r\n1\r\n");
    expect_silence(fd, 50);
    say(link, "END\r\n");
    expect(fd, "END\r\nlocal\n");
    (void)close(fd);
    (void)close(link);
}

/* As BLPOP whose reply is muted: the one after it waits for it, in the next program, too. */
static void what_waits_behind_a_command_that_may_block_is_waited_for(void **state)
{
    (void)state;
    timeout_us = 200000;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "hush block\n");
    int link = accepted();
    expect(link, "block\n");
    (void)leave();
    assert_int_equal(lost, 0);
    take_over_behind();
    say(fd, "up next\n");
    expect(link, "next\n");
    expect_silence(fd, 600);
    say(link, "yes\r\n");
    expect(fd, "yes\r\n");
    (void)close(fd);
    (void)close(link);
}

/* As BLPOP for longer than any other reply may take, across an upgrade; on a link where others were
 * answered before, and another waits behind. */
static void a_reply_that_may_take_any_time_still_may(void **state)
{
    (void)state;
    timeout_us = 200000;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\n");
    int link = accepted();
    expect(link, "one\n");
    say(link, "1\r\n");
    expect(fd, "1\r\n");
    say(fd, "wait block\nup two\nlocal\n");
    expect(link, "block\ntwo\n");
    assert_int_equal(leave(), 3);
    take_over_behind();
    expect_silence(fd, 600);
    say(link, "yes\r\n2\r\n");
    expect(fd, "yes\r\n2\r\nlocal\n");
    (void)close(fd);
    (void)close(link);
}

/* The next program does not know what was sent before: no reply may vouch for the last of it. */
static void what_was_sent_before_arrives_though_the_client_goes(void **state)
{
    char byte;
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\nhush last\n");
    int link = accepted();
    NET_AWAIT(net_bench_bytes_in(&a) == strlen("up one\nhush last\n"));
    assert_int_equal(leave(), 3);
    take_over_behind();
    say(link, "1\r\n");
    expect(fd, "1\r\n");
    (void)close(fd);
    NET_AWAIT(net_bench_connections(&b) == 0);
    expect(link, "one\nlast\n");
    assert_int_equal(read(link, &byte, 1), 0); /* not reset: that would have thrown it away */
    (void)close(link);
}

/* ---- subscriptions --------------------------------------------------------------------------- */

#define ACK_A     "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
#define ACK_B     "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
#define ACK_P     "*3\r\n$10\r\npsubscribe\r\n$1\r\np\r\n:2\r\n"
#define NO_MORE_A "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"

static void speak_resp(void)
{
    a.svc.frame = b.svc.frame = frame_resp;
    reply = FRAME_RESP;
}

/* Of two one has come; the other would be taken for a message, and the reply to what comes behind
 * for that to this. */
static void acknowledgements_to_come_go_over(void **state)
{
    (void)state;
    speak_resp();
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "subs a b\nup ping\nlocal\n");
    int link = accepted();
    expect(link, "a b\nping\n");
    say(link, ACK_A);
    expect(fd, ACK_A);
    assert_int_equal(leave(), 3);
    assert_int_equal(lost, 0);
    take_over_behind();
    say(link, ACK_B "+PONG\r\n");
    expect(fd, ACK_B "+PONG\r\nlocal\n");
    (void)close(fd);
    (void)close(link);
}

/* Channels and patterns are counted together in what the server says. */
static void what_is_subscribed_to_goes_over(void **state)
{
    (void)state;
    speak_resp();
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "subs a p\n");
    int link = accepted();
    expect(link, "a p\n");
    say(link, ACK_A ACK_P);
    expect(fd, ACK_A ACK_P);
    assert_int_equal(leave(), 3);
    take_over_behind();
    say(fd, "none a\nlocal\n");
    expect(link, "a\n");
    say(link, NO_MORE_A); /* the only one: the pattern is of another kind */
    expect(fd, NO_MORE_A "local\n");
    (void)close(fd);
    (void)close(link);
}

/* Two upgrades, one after the other: what its client has said on it holds all the same. */
static void a_link_that_was_not_used_since_goes_over_again(void **state)
{
    (void)state;
    struct parcel_record r;
    enum parcel_purpose purpose = PARCEL_TAKE;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\n");
    int link = accepted(), links = 0;
    expect(link, "one\n");
    say(link, "1\r\n");
    expect(fd, "1\r\n");
    assert_int_equal(leave(), 3);
    take_over_behind();
    buf_truncate(&parcel, 0);
    net_bench_call(&b, do_pack, &purpose);
    assert_int_equal(lost, 0);
    for (struct span in = buf_span(&parcel); parcel_next(&in, &r);)
        links += r.kind == PARCEL_LINK;
    assert_int_equal(links, 1);
    (void)close(fd);
    (void)close(link);
}

/* On the link that all share; heard there, and answered. */
static int asks_for_much(int client, int link)
{
    static char text[40000], got[sizeof text];
    memcpy(text, "share ", 6);
    memset(text + 6, 'x', sizeof text - 7);
    text[sizeof text - 1] = '\n';
    assert_int_equal(send(client, text, sizeof text, MSG_NOSIGNAL), sizeof text);
    link = link >= 0 ? link : accepted();
    assert_int_equal(recv(link, got, sizeof text - 6, MSG_WAITALL), sizeof text - 6);
    say(link, "OK\r\n");
    expect(client, "OK\r\n");
    return link;
}

/* Nor is it lost who has one that he does not need: half are for others. */
static void links_that_nobody_needs_count_as_such(void **state)
{
    (void)state;
    owned_max = 2;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int loud = dial(&a), other = dial(&a), shared = asks_for_much(loud, -1);
    say(loud, "share two\n");
    int own = accepted();
    expect(own, "two\n");
    say(own, "2\r\n");
    expect(loud, "2\r\n");
    assert_int_equal(leave(), 4);
    take_over_behind();
    expect_end(shared);
    int next = asks_for_much(other, -1);
    say(other, "share three\n");
    expect(next, "three\n");
    (void)close(loud);
    (void)close(other);
    (void)close(own);
    (void)close(next);
    (void)close(shared);
}

/* He who had one without need, and needs it since, is none of these. */
static void links_that_somebody_needs_by_now_do_not(void **state)
{
    (void)state;
    owned_max = 2;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int loud = dial(&a), other = dial(&a), shared = asks_for_much(loud, -1);
    say(loud, "share two\n");
    int own = accepted();
    expect(own, "two\n");
    say(own, "2\r\n");
    expect(loud, "2\r\n");
    say(loud, "up three\n");
    expect(own, "three\n");
    say(own, "3\r\n");
    expect(loud, "3\r\n");
    assert_int_equal(leave(), 4);
    take_over_behind();
    expect_end(shared);
    int next = asks_for_much(other, -1);
    say(other, "share four\n");
    int its = accepted();
    expect(its, "four\n");
    (void)close(loud);
    (void)close(other);
    (void)close(own);
    (void)close(next);
    (void)close(its);
    (void)close(shared);
}

static void what_goes_through_still_does(void **state)
{
    (void)state;
    speak_resp();
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "pipe all\n");
    int link = accepted();
    expect(link, "all\n");
    say(link, "what");
    expect(fd, "what");
    assert_int_equal(leave(), 3);
    take_over_behind();
    say(link, "ever\n");
    expect(fd, "ever\n");
    (void)close(fd);
    (void)close(link);
}

/* ---- what is not taken ----------------------------------------------------------------------- */

static void half_a_reply_is_not_carried(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\nlocal\n");
    int link = accepted();
    expect(link, "one\n");
    say(link, "hal");
    for (int left = 3000; lost == 0 && left > 0; left--) { /* in the kernel it would be carried */
        (void)poll(NULL, 0, 10);
        parcel.n = 0;
        (void)leave_in_vain();
    }
    assert_int_equal(lost, 1);
    say(link, "f\r\n");
    expect(fd, "half\r\nlocal\n");
}

/* Of which nothing is kept here: its rest would be taken for the next reply. */
static void half_a_value_is_not_carried(void **state)
{
    (void)state;
    speak_resp();
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\n");
    int link = accepted();
    expect(link, "one\n");
    say(link, "$12\r\n+hello\r\n");
    expect(fd, "$12\r\n+hello\r\n");
    assert_int_equal(leave_in_vain(), 1);
    assert_int_equal(lost, 1);
    say(link, "+you\r\n");
    expect(fd, "+you\r\n");
    (void)close(fd);
    (void)close(link);
}

/* Requests, until no more are taken: some of them are still here. */
static void say_as_much_as_is_taken(int fd)
{
    static const char hush[] = "hush 0123456789 0123456789 0123456789 0123456789 012345678\n";
    static char much[1000 * (sizeof hush - 1)];
    for (size_t i = 0; i < sizeof much; i += sizeof hush - 1)
        memcpy(much + i, hush, sizeof hush - 1);
    for (size_t n = 0; poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000) == 1;) {
        ssize_t r = send(fd, much + n, sizeof much - n, MSG_NOSIGNAL | MSG_DONTWAIT);
        assert_true(r > 0);
        n = (n + (size_t)r) % sizeof much;
    }
}

/* What the next program sent would come amid it. */
static void half_a_request_is_not_carried(void **state)
{
    const int few = 4096;
    (void)state;
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "hush hello\n");
    int link = accepted();
    expect(link, "hello\n");
    assert_int_equal(leave_in_vain(), 3);
    assert_int_equal(lost, 0);
    say_as_much_as_is_taken(fd);
    parcel.n = 0;
    assert_int_equal(leave_in_vain(), 1);
    assert_int_equal(lost, 1);
    (void)close(link);
    (void)close(fd);
}

static void a_link_to_another_server_is_closed_with_its_client(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a), old = server;
    say(fd, "up one\n");
    int link = accepted();
    expect(link, "one\n");
    assert_int_equal(leave(), 3);
    open_server();
    take_over_behind();
    assert_int_equal(taken, 0);
    assert_int_equal(not_taken, 1);
    expect_end(fd);
    expect_end(link);
    (void)close(old);
}

/* As if their clients had come one after the other: who has most makes room. */
/* Its configuration names none any more. */
static void a_link_where_no_server_is_behind_is_closed_with_its_client(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int c = dial(&a);
    say(c, "up hello\n");
    int link = accepted();
    expect(link, "hello\n");
    say(link, "there\r\n");
    expect(c, "there\r\n");
    assert_int_equal(leave(), 3);
    take_over(NULL);
    assert_int_equal(taken, 0);
    assert_int_equal(not_taken, 1);
    expect_end(c);
    (void)close(c);
    (void)close(link);
}

static void of_too_many_those_are_carried_that_there_may_be(void **state)
{
    (void)state;
    int fd[4], link[4];
    a.strangers = b.strangers = true;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    for (int i = 0; i < 4; i++) {
        say(fd[i] = dial(&a), i < 3 ? "login 1\n" : "login 2\n");
        expect(fd[i], "welcome\n");
        say(fd[i], "up one\n");
        link[i] = accepted();
        expect(link[i], "one\n");
    }
    assert_int_equal(leave(), 9);
    owned_max = 3;
    take_over_behind();
    assert_int_equal(taken, 3);
    assert_int_equal(not_taken, 1);
    expect_end(fd[0]);
    expect_end(link[0]);
    for (int i = 1; i < 4; i++) {
        say(link[i], "there\r\n");
        expect(fd[i], "there\r\n");
    }
    for (int i = 0; i < 4; i++) {
        (void)close(fd[i]);
        (void)close(link[i]);
    }
}

/* The last record is of a link, and ends with how many replies of which kind are expected how. */
static void a_reply_that_cannot_be_carried_is_not_taken(void **state)
{
    static const uint64_t all[][4] = {
        {0, FRAME_MC_LINE, 0, 0},
        {2, FRAME_MC_LINE, 0, 1}, /* of acknowledgements one alone is the last */
        {1, FRAME_MC_MERGE, 0, 0},
        {1, FRAME_RESP_MERGE, 0, 0},
        {1, FRAME_MC_NOOP, 0, 0},
        {1, FRAME_KINDS, 0, 0},
        {1, FRAME_MC_LINE, UPSTREAM_FLAGS + 1, 0},
    };
    const uint64_t is[] = {1, FRAME_MC_LINE, 0, 0};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        net_bench_start(&a, NULL);
        net_bench_call(&a, do_upstream, server_address);
        int fd = dial(&a);
        say(fd, "up one\n");
        int link = accepted();
        expect(link, "one\n");
        parcel.n = 0;
        assert_int_equal(leave(), 3);
        char *expected = mem + parcel.n - sizeof is;
        assert_memory_equal(expected, is, sizeof is);
        memcpy(expected, all[i], sizeof all[i]);
        take_over_behind();
        assert_int_equal(taken, 0);
        expect_end(fd);
        expect_end(link);
        net_bench_stop(&b);
        (void)close(fd);
        (void)close(link);
    }
}

/* On a link where another was answered before: of the session it is not known how far it is. */
static void a_reply_that_this_program_alone_can_end_is_not_carried(void **state)
{
    static const enum frame_kind all[] = {FRAME_MC_MERGE, FRAME_RESP_MERGE, FRAME_MC_NOOP};
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        reply = FRAME_MC_LINE;
        int fd = dial(&a);
        say(fd, "up one\n");
        int link = accepted();
        expect(link, "one\n");
        say(link, "1\r\n");
        expect(fd, "1\r\n");
        reply = all[i];
        say(fd, "up two\n");
        expect(link, "two\n");
        parcel.n = 0;
        assert_int_equal(leave_in_vain(), 1);
        assert_int_equal(lost, 1);
        (void)close(fd);
        (void)close(link);
        NET_AWAIT(net_bench_connections(&a) == 0);
    }
}

static void do_greet(struct net_bench *n, void *arg)
{
    const struct upstream_greeting g = {
        .bytes = SPAN("hello\n"), .kind = FRAME_MC_LINE, .ok = SPAN("WELCOME\r\n")};
    (void)arg;
    assert_true(upstream_greet(&n->svc, UPSTREAM_TEXT, &g));
}

/* It was asked for nothing yet: the next program opens another. */
static void who_waits_for_a_link_to_open_goes_over_without(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    net_bench_call(&a, do_greet, NULL);
    int fd = dial(&a);
    say(fd, "up one\n");
    int link = accepted();
    expect(link, "hello\n");
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 0);
    take_over_behind();
    assert_int_equal(taken, 1);
    int next = accepted();
    expect(next, "one\n");
    say(next, "1\r\n");
    expect(fd, "1\r\n");
    (void)close(fd);
    (void)close(link);
    (void)close(next);
}

static void do_count_expecting(struct net_bench *n, void *arg)
{
    *(uint64_t *)arg = net_expecting(n->net);
}

static uint64_t count_expecting(void)
{
    uint64_t n = 99;
    net_bench_call(&a, do_count_expecting, &n);
    return n;
}

/* For replies on links that do not go over, an upgrade waits. */
static void who_expects_something_on_a_shared_link_is_waited_for(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int one = dial(&a), two = dial(&a);
    say(two, "up two\n");
    int own = accepted();
    expect(own, "two\n");
    assert_int_equal(count_expecting(), 0);
    say(one, "share one\n");
    int link = accepted();
    expect(link, "one\n");
    assert_int_equal(count_expecting(), 1);
    say(link, "1\r\n");
    expect(one, "1\r\n");
    assert_int_equal(count_expecting(), 0);
    (void)close(one);
    (void)close(two);
    (void)close(own);
    (void)close(link);
}

/* What is pending is answered, the rest waits; should the next program fail, it goes on. */
static void at_rest_nothing_is_forwarded(void **state)
{
    (void)state;
    bool rest = true;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int one = dial(&a), two = dial(&a), local = dial(&a);
    say(one, "share one\n");
    int link = accepted();
    expect(link, "one\n");
    net_bench_call(&a, do_rest, &rest);
    say(one, "share more\n");
    say(two, "share two\nlocal\n");
    say(local, "id\n");
    expect(local, "id\n");
    expect_silence(link, 50);
    assert_int_equal(leave_in_vain(), 3);
    assert_int_equal(lost, 1);
    say(link, "1\r\n");
    expect(one, "1\r\n");
    expect_silence(link, 50);
    parcel.n = 0;
    assert_int_equal(leave_in_vain(), 4);
    assert_int_equal(lost, 0);
    rest = false;
    net_bench_call(&a, do_rest, &rest);
    char got[9] = "";
    for (size_t n = 0; n < 9;) {
        ssize_t r = read(link, got + n, sizeof got - n);
        assert_true(r > 0);
        n += (size_t)r;
    }
    assert_true(memcmp(got, "two\nmore\n", 9) == 0 || memcmp(got, "more\ntwo\n", 9) == 0);
    say(link, "1\r\n1\r\n");
    expect(one, "1\r\n");
    expect(two, "1\r\nlocal\n");
}

/* What waited goes over as input, and is forwarded by the next program. */
static void what_rests_is_carried(void **state)
{
    (void)state;
    bool rest = true;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    net_bench_call(&a, do_rest, &rest);
    int fd = dial(&a);
    say(fd, "share one\nlocal\nup two\n");
    NET_AWAIT(net_bench_bytes_in(&a) > 0);
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 0);
    take_over_behind();
    int link = accepted();
    expect(link, "one\n");
    say(link, "1\r\n");
    expect(fd, "1\r\nlocal\n");
    int own = accepted();
    expect(own, "two\n");
    say(own, "2\r\n");
    expect(fd, "2\r\n");
}

#define BEHIND(f) cmocka_unit_test_setup_teardown(f, begin_behind, end_behind)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEHIND(a_link_goes_over_with_what_is_expected),
        BEHIND(a_reply_ends_where_it_would_have_ended),
        BEHIND(what_waits_behind_a_command_that_may_block_is_waited_for),
        BEHIND(a_reply_that_may_take_any_time_still_may),
        BEHIND(what_was_sent_before_arrives_though_the_client_goes),
        BEHIND(acknowledgements_to_come_go_over),
        BEHIND(what_is_subscribed_to_goes_over),
        BEHIND(a_link_that_was_not_used_since_goes_over_again),
        BEHIND(links_that_nobody_needs_count_as_such),
        BEHIND(links_that_somebody_needs_by_now_do_not),
        BEHIND(what_goes_through_still_does),
        BEHIND(half_a_reply_is_not_carried),
        BEHIND(half_a_value_is_not_carried),
        BEHIND(half_a_request_is_not_carried),
        BEHIND(a_link_to_another_server_is_closed_with_its_client),
        BEHIND(a_link_where_no_server_is_behind_is_closed_with_its_client),
        BEHIND(of_too_many_those_are_carried_that_there_may_be),
        BEHIND(a_reply_that_cannot_be_carried_is_not_taken),
        BEHIND(a_reply_that_this_program_alone_can_end_is_not_carried),
        BEHIND(who_waits_for_a_link_to_open_goes_over_without),
        BEHIND(who_expects_something_on_a_shared_link_is_waited_for),
        BEHIND(at_rest_nothing_is_forwarded),
        BEHIND(what_rests_is_carried),
    };
    return cmocka_run_group_tests_name("net/carry_behind", tests, NULL, NULL);
}
