/* Many who ask for more than a shared link takes: whose turn it is. Replies are counted, not time,
 * so that the machine's load is no matter. */
#include "net/private.h"
#include "net/upstream/links.h"
#include "unit/net/upstream_rig.h"

#include <stdlib.h>
#include <sys/ioctl.h>

#define MOST   2048 /* replies expected there, by all together */
#define LENGTH 2    /* bytes of a request at the server: a letter and its line's end */
#define BACKLOG                                                                                    \
    ((size_t)1 << 22) /* bytes: all that clients may have under way, and what was answered */

static char requests[BACKLOG]; /* at the server, from the first on */
static size_t nheard, nanswered;
static int server, link_fd;

static void hear(void)
{
    struct pollfd p = {.fd = link_fd, .events = POLLIN};
    while (poll(&p, 1, 50) == 1) {
        ssize_t r = recv(link_fd, requests + nheard * LENGTH, BACKLOG - nheard * LENGTH, 0);
        assert_true(r > 0 && r % LENGTH == 0);
        nheard += (size_t)r / LENGTH;
    }
}

static void answer(size_t n)
{
    static char replies[4 * MOST];
    assert_true(n <= nheard - nanswered && n <= MOST);
    for (size_t i = 0; i < n; i++)
        memcpy(replies + 4 * i, "OK\r\n", 4);
    for (size_t at = 0; at < 4 * n;) {
        ssize_t r = send(link_fd, replies + at, 4 * n - at, MSG_NOSIGNAL);
        assert_true(r > 0);
        at += (size_t)r;
    }
    nanswered += n;
}

static size_t count(char letter, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < nheard; i++)
        n += requests[i * LENGTH] == letter;
    return n;
}

/* n clients, of which each has sent text, times times. The link is theirs. */
static int *crowd(size_t n, const char *text, size_t times)
{
    static char much[1 << 16];
    int *c = calloc(n, sizeof *c);
    assert_true(c && times * strlen(text) < sizeof much);
    much[0] = '\0';
    for (size_t i = 0; i < times; i++)
        memcpy(much + i * strlen(text), text, strlen(text) + 1);
    for (size_t i = 0; i < n; i++) {
        c[i] = dial(&b);
        say(c[i], much);
    }
    link_fd = accepted(server);
    nheard = nanswered = 0;
    hear();
    return c;
}

static void leave(int *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)close(c[i]);
    free(c);
    (void)close(link_fd);
    (void)close(server);
}

static void begin_crowd(void)
{
    struct rlimit rl;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
    rl.rlim_cur = rl.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
    b.conf.connections = 2 * MOST;
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
}

/* However much the others have sent, who asks for little waits for what is under way. */
static void who_comes_to_a_busy_link_is_served(void **state)
{
    (void)state;
    begin_crowd();
    size_t n = 300, most = 0;
    int *c = crowd(n, "share x\n", 2000), good = dial(&b);
    while (nanswered < 10000 || (nheard - nanswered < MOST && nanswered < 20000)) {
        most = nheard - nanswered > most ? nheard - nanswered : most;
        answer(nheard - nanswered < 700 ? nheard - nanswered : 700);
        hear();
    }
    assert_true(most <= MOST);
    size_t asked_at = nanswered;
    say(good, "share h\n");
    hear();
    while (count('h', 0) == 0 && nanswered - asked_at < 4 * MOST) {
        answer(nheard - nanswered < 700 ? nheard - nanswered : 700);
        hear();
    }
    assert_in_range(nanswered - asked_at, 0, MOST);
    (void)close(good);
    leave(c, n);
}

/* n values of so many bytes each to one client, and then so many others who ask for much, and of
 * whom nothing is known: four each, as long as there is room. How many of theirs are under way. */
static size_t under_way_behind(size_t n, size_t bytes, size_t others)
{
    static char text[50000], got[sizeof text];
    begin_crowd();
    int *c = crowd(1, "fetch x\n", n), *o = calloc(others, sizeof *o);
    assert_non_null(o);
    assert_int_equal(nheard, n);
    int head = snprintf(text, sizeof text, "VALUE a 0 %zu\r\n", bytes);
    memset(text + head, 'y', bytes);
    (void)snprintf(text + (size_t)head + bytes, 16, "\r\nEND\r\n");
    for (size_t i = 0; i < n; i++) {
        say(link_fd, text);
        assert_int_equal(recv(c[0], got, strlen(text), MSG_WAITALL), strlen(text));
    }
    for (size_t i = 0; i < others; i++) {
        o[i] = dial(&b);
        say(o[i], "share h\nshare h\nshare h\nshare h\n");
    }
    hear();
    for (size_t i = 0; i < others; i++)
        (void)close(o[i]);
    free(o);
    size_t there = count('h', n);
    leave(c, 1);
    return there;
}

/* 512 KiB of replies, by their average, are much. */
static void one_long_reply_leaves_others_their_share(void **state)
{
    (void)state;
    assert_int_equal(under_way_behind(1, 40000, 64), 4 * 64);
}

static void many_long_replies_leave_others_less(void **state)
{
    (void)state;
    assert_in_range(under_way_behind(4, 14000, 100), 300, 350);
}

/* On a full link those who wait go on as soon as there is room, and before who asks again. */
static void who_waits_longest_has_the_room(void **state)
{
    (void)state;
    begin_crowd();
    size_t n = MOST + 200;
    int *c = crowd(n, "share a\nshare b\n", 1);
    assert_int_equal(nheard, MOST);
    size_t before = nheard, again = count('b', 0);
    answer(1);
    hear();
    assert_int_equal(nheard, before + 1);
    answer(99);
    hear();
    assert_int_equal(nheard, before + 100);
    assert_int_equal(count('b', 0), again);
    leave(c, n);
}

/* ---- rounds: the clock leaps by one each time it is read --------------------------------------
 */

static int64_t leap_us(struct clock *c)
{
    static int64_t leapt_us;
    (void)c;
    leapt_us += 1100;
    return leapt_us + clock_mono_us(clock_system());
}

static int64_t wall_us(struct clock *c)
{
    (void)c;
    return clock_wall_us(clock_system());
}

static struct clock leaping = {.wall_us = wall_us, .mono_us = leap_us};
static unsigned looks; /* of the loop, at the sockets */

static void do_count_looks(struct net_bench *n, void *arg)
{
    (void)arg;
    looks = ev_iteration(n->net->loop);
}

/* And what it does before it sleeps. */
static void do_go_on(struct net_bench *n, void *arg)
{
    (void)arg;
    upstreams_rest(n->net, false);
    ev_invoke(n->net->loop, &n->net->prepare, EV_PREPARE);
    assert_false(link_empty(&n->net->ready));
    assert_true(ev_is_active(&n->net->awake));
}

/* However many may go on at once, the loop looks at the sockets meanwhile, and does not sleep
 * before all have. */
static void those_who_may_go_on_have_a_round_at_a_time(void **state)
{
    enum {
        CLIENTS = 40
    };
    int c[CLIENTS];
    char got[2 * CLIENTS];
    bool on = true;
    (void)state;
    server = listen_at("127.0.0.2");
    b.conf.clock = &leaping;
    timeout_us = 600 * INT64_C(1000000);
    start("127.0.0.2");
    int first = dial(&b);
    link_fd = served_by(server, first, "share");
    net_bench_call(&b, do_rest, &on);
    for (size_t i = 0; i < CLIENTS; i++) {
        uint64_t turns = net_bench_turns(&b);
        c[i] = dial(&b);
        say(c[i], "share x\n");
        NET_AWAIT(net_bench_turns(&b) > turns);
    }
    net_bench_call(&b, do_count_looks, NULL);
    unsigned before = looks;
    net_bench_call(&b, do_go_on, NULL);
    for (size_t n = 0; n < sizeof got;) {
        ssize_t r = recv(link_fd, got + n, sizeof got - n, 0);
        assert_true(r > 0);
        n += (size_t)r;
    }
    net_bench_call(&b, do_count_looks, NULL);
    assert_in_range(looks - before, CLIENTS / 2, 10 * CLIENTS);
    for (size_t i = 0; i < CLIENTS; i++)
        (void)close(c[i]);
    (void)close(first);
    (void)close(link_fd);
    (void)close(server);
}

static void do_hear(struct net_bench *n, void *arg)
{
    (void)arg;
    say(link_fd, "OK\r\n");
    ev_invoke(n->net->loop, &n->svc.upstream->shared[UPSTREAM_TEXT]->rd, EV_READ);
    assert_false(link_empty(&n->net->ready));
}

/* And what the loop has read from a server is a part of it. */
static void who_was_answered_goes_on_in_the_next_round_where_that_took_one(void **state)
{
    (void)state;
    server = listen_at("127.0.0.2");
    b.conf.clock = &leaping;
    timeout_us = 600 * INT64_C(1000000);
    start("127.0.0.2");
    int c = dial(&b);
    link_fd = served_by(server, c, "share");
    say(c, "share a\nthere\n");
    expect(link_fd, "a\n");
    net_bench_call(&b, do_hear, NULL);
    expect(c, "OK\r\nthere\n");
    (void)close(c);
    (void)close(link_fd);
    (void)close(server);
}

static void do_fill(struct net_bench *n, void *arg)
{
    struct upstream_link *l = n->svc.upstream->shared[UPSTREAM_TEXT];
    if (*(bool *)arg)
        l->replies += 1u << 20;
    else
        l->replies -= 1u << 20;
}

/* There is room, and somebody comes. */
static void do_come(struct net_bench *n, void *arg)
{
    bool full = false;
    struct conn *c = CONTAINER(n->net->all.prev, struct conn, all);
    do_fill(n, &full);
    link_wake(n->svc.upstream->shared[UPSTREAM_TEXT]);
    say(*(int *)arg, "share z\n");
    ev_invoke(n->net->loop, &c->rd, EV_READ);
}

/* However little time they have at a time, and nobody comes before them. */
static void those_who_wait_for_room_go_on_in_their_order(void **state)
{
    enum {
        CLIENTS = 20
    };
    int c[CLIENTS + 1];
    bool full = true;
    char text[] = "share a\n", all[2 * (CLIENTS + 1) + 1] = "";
    (void)state;
    server = listen_at("127.0.0.2");
    b.conf.clock = &leaping;
    timeout_us = 600 * INT64_C(1000000);
    start("127.0.0.2");
    int first = dial(&b);
    link_fd = served_by(server, first, "share");
    net_bench_call(&b, do_fill, &full);
    for (size_t i = 0; i < CLIENTS; i++) {
        uint64_t turns = net_bench_turns(&b);
        c[i] = dial(&b);
        text[6] = (char)('a' + i);
        say(c[i], text);
        NET_AWAIT(net_bench_turns(&b) > turns);
        memcpy(all + 2 * i, text + 6, 2);
    }
    memcpy(all + 2 * CLIENTS, "z\n", 2);
    c[CLIENTS] = dial(&b);
    NET_AWAIT(net_bench_connections(&b) == CLIENTS + 2);
    net_bench_call(&b, do_come, &c[CLIENTS]);
    expect(link_fd, all);
    for (size_t i = 0; i <= CLIENTS; i++)
        (void)close(c[i]);
    (void)close(first);
    (void)close(link_fd);
    (void)close(server);
}

/* Nothing of theirs was sent, so that another link will do. */
static void those_who_wait_for_room_go_on_on_another_link_when_theirs_breaks(void **state)
{
    bool full = true;
    (void)state;
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int first = dial(&b), second = dial(&b);
    link_fd = served_by(server, first, "share");
    net_bench_call(&b, do_fill, &full);
    uint64_t turns = net_bench_turns(&b);
    say(second, "share a\n");
    NET_AWAIT(net_bench_turns(&b) > turns);
    (void)close(link_fd);
    link_fd = accepted(server);
    expect(link_fd, "a\n");
    say(link_fd, "OK\r\n");
    expect(second, "OK\r\n");
    (void)close(first);
    (void)close(second);
    (void)close(link_fd);
    (void)close(server);
}

/* ---- who pays for what is sent ----------------------------------------------------------------
 */

struct asked {
    int fd;
    const char *text;
    bool dirty; /* a link, behind its turn */
};

/* All that it says has come to its connection. */
static struct conn *asks(struct net_bench *n, const struct asked *a)
{
    struct conn *c = CONTAINER(n->net->all.next, struct conn, all);
    int came = 0;
    say(a->fd, a->text);
    for (int i = 0; i < 10000 && came < (int)strlen(a->text); i++) {
        pass(i > 0);
        assert_int_equal(ioctl(c->rd.fd, FIONREAD, &came), 0);
    }
    assert_int_equal(came, strlen(a->text));
    return c;
}

static void do_ask(struct net_bench *n, void *arg)
{
    struct asked *a = arg;
    struct conn *c = asks(n, a);
    ev_invoke(n->net->loop, &c->rd, EV_READ);
    a->dirty = !link_empty(&n->net->dirty);
}

/* What goes on a shared link goes with what others have forwarded; on his own within his turn, and
 * so on his account. */
static void what_one_sends_on_his_own_link_is_sent_in_his_turn(void **state)
{
    (void)state;
    struct asked share = {.text = "share a\n"}, own = {.text = "up a\n"};
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
    share.fd = own.fd = dial(&b);
    link_fd = served_by(server, share.fd, "share");
    net_bench_call(&b, do_ask, &share);
    assert_true(share.dirty);
    expect(link_fd, "a\n");
    say(link_fd, "OK\r\n");
    expect(share.fd, "OK\r\n");
    int link = served_by(server, own.fd, "up");
    net_bench_call(&b, do_ask, &own);
    assert_false(own.dirty);
    expect(link, "a\n");
    (void)close(own.fd);
    (void)close(link);
    (void)close(link_fd);
    (void)close(server);
}

/* All that there is room for is sent in one turn, and then there is room for more. */
static void who_has_filled_his_link_in_a_turn_goes_on_behind_it(void **state)
{
    enum {
        PARTS = 3,
        PART = 2000
    };
    static char text[PARTS * PART + 16], got[PARTS * PART];
    struct asked own = {.text = text};
    size_t n = 0;
    (void)state;
    buffer = (PARTS - 1) * PART;
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
    own.fd = dial(&b);
    link_fd = served_by(server, own.fd, "up");
    for (size_t i = 0; i < PARTS; i++, n += PART) {
        memset(text + n, 'x', PART);
        memcpy(text + n, "mute ", 5);
        text[n + PART - 1] = '\n';
    }
    memcpy(text + n, "up last\n", sizeof "up last\n");
    net_bench_call(&b, do_ask, &own);
    for (size_t left = PARTS * (PART - 5); left > 0;) {
        ssize_t r = recv(link_fd, got, left, 0);
        assert_true(r > 0);
        left -= (size_t)r;
    }
    expect(link_fd, "last\n");
    (void)close(own.fd);
    (void)close(link_fd);
    (void)close(server);
}

static void do_answer_and_reset(struct net_bench *n, void *arg)
{
    const struct linger reset = {.l_onoff = 1};
    struct conn *c = asks(n, arg);
    struct pollfd p = {.fd = c->relay->l->rd.fd};
    say(link_fd, "OK\r\n");
    (void)setsockopt(link_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)close(link_fd);
    assert_int_equal(poll(&p, 1, 10000), 1); /* it has gone, and what it has said is there */
    ev_invoke(n->net->loop, &c->rd, EV_READ);
}

/* That a server takes no more is found before what it has said is read. */
static void what_a_server_has_said_before_it_went_is_delivered(void **state)
{
    (void)state;
    struct asked own = {.text = "up b\n"};
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
    own.fd = dial(&b);
    link_fd = served_by(server, own.fd, "up");
    say(own.fd, "up a\n");
    expect(link_fd, "a\n");
    net_bench_call(&b, do_answer_and_reset, &own);
    expect(own.fd, "OK\r\n");
    expect_end(own.fd);
    (void)close(own.fd);
    (void)close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(who_comes_to_a_busy_link_is_served),
        BENCH(one_long_reply_leaves_others_their_share),
        BENCH(many_long_replies_leave_others_less),
        BENCH(who_waits_longest_has_the_room),
        BENCH(those_who_may_go_on_have_a_round_at_a_time),
        BENCH(who_was_answered_goes_on_in_the_next_round_where_that_took_one),
        BENCH(those_who_wait_for_room_go_on_in_their_order),
        BENCH(those_who_wait_for_room_go_on_on_another_link_when_theirs_breaks),
        BENCH(what_one_sends_on_his_own_link_is_sent_in_his_turn),
        BENCH(who_has_filled_his_link_in_a_turn_goes_on_behind_it),
        BENCH(what_a_server_has_said_before_it_went_is_delivered),
    };
    return cmocka_run_group_tests_name("net/share", tests, NULL, NULL);
}
