/* A client's side of the links: what must not stay of what was, and of whom it is thought. */
#include "net/private.h"
#include "net/upstream/links.h"
#include "unit/net/upstream_rig.h"

#define LARGE 400000 /* bytes: more than a UNIX socket keeps */

/* The client that came first and is there. */
static struct conn *first(struct net_bench *n)
{
    return CONTAINER(n->net->all.next, struct conn, all);
}

static void send_value(int link, size_t bytes)
{
    static char x[4096];
    char head[64];
    memset(x, 'x', sizeof x);
    (void)snprintf(head, sizeof head, "VALUE a 0 %zu\r\n", bytes);
    say(link, head);
    for (size_t n; bytes > 0; bytes -= n) {
        n = bytes < sizeof x ? bytes : sizeof x;
        assert_int_equal(send(link, x, n, MSG_NOSIGNAL), n);
    }
    say(link, "\r\nEND\r\n");
}

static void take_value(int fd, size_t bytes)
{
    char head[64];
    (void)snprintf(head, sizeof head, "VALUE a 0 %zu\r\n", bytes);
    expect(fd, head);
    for (char c; bytes > 0; bytes--)
        if (recv(fd, &c, 1, 0) != 1 || c != 'x')
            fail_msg("expected %zu more bytes of the value", bytes);
    expect(fd, "\r\nEND\r\n");
}

/* Listens on a UNIX socket, which keeps little, at path. */
static void start_inside(char *path, size_t size)
{
    char text[96];
    (void)snprintf(path, size, "/tmp/sf-relay-%d.sock", (int)getpid());
    (void)snprintf(text, sizeof text, "unix:%s", path);
    (void)snprintf(address, sizeof address, "tcp://127.0.0.2:%u", port);
    net_bench_start(&b, text);
    net_bench_call(&b, do_upstream, address);
}

static void do_hold_much(struct net_bench *n, void *arg)
{
    (void)arg;
    first(n)->out_held = 1u << 20;
}

/* An unfinished reply, all sent since, was longer than what is kept now: what stands behind that in
 * memory is nobody's. */
static void what_was_held_back_once_is_not_counted_again(void **state)
{
    (void)state;
    char path[64];
    int two = listen_at("127.0.0.2");
    start_inside(path, sizeof path);
    int c = dial(&b), link = served_by(two, c, "share");
    net_bench_call(&b, do_hold_much, NULL);
    say(c, "fetch a\n");
    expect(link, "a\n");
    send_value(link, LARGE);
    pass(100); /* as much as finds room, and some that is kept */
    take_value(c, LARGE);
    expect_silence(c, 50);
    say(c, "there\n");
    expect(c, "there\n");
    (void)close(link);
    (void)close(c);
    (void)close(two);
    (void)unlink(path);
}

static void do_deliver_much(struct net_bench *n, void *arg)
{
    static char much[8 << 20];
    struct conn *c = first(n);
    (void)arg;
    memset(much, 'x', sizeof much);
    turns_add(c);
    assert_true(conn_deliver(c, span_of(much, sizeof much)));
    assert_int_equal(c->state, CONN_FLUSHING);
    assert_true(link_empty(&c->park));
    assert_int_equal(n->net->nturns, 0);
    conn_close(c);
}

/* What it does not take comes first; then its turn. */
static void who_has_a_turn_due_and_takes_nothing_has_none(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int c = dial(&b);
    say(c, "there\n");
    expect(c, "there\n");
    net_bench_call(&b, do_deliver_much, NULL);
    assert_int_equal(net_bench_connections(&b), 0);
    (void)close(c);
}

static void do_wake_in_vain(struct net_bench *n, void *arg)
{
    struct upstream_link *l = n->svc.upstream->shared[UPSTREAM_TEXT];
    struct conn *c = CONTAINER(l->waiters.next, struct conn, park);
    (void)arg;
    l->state = LINK_OPEN;
    link_wake(l);
    assert_true(net_may_go_on(n->net));
    l->replies += 1u << 20; /* others were faster */
    net_go_on(n->net);
    l->replies -= 1u << 20;
    l->state = LINK_PROBING;
    assert_ptr_equal(CONTAINER(l->waiters.next, struct conn, park), c);
}

static void who_was_called_in_vain_is_the_next_all_the_same(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b);
    say(c, "share a\n");
    int link = accepted(two);
    expect(link, "version\r\n");
    uint64_t turns = net_bench_turns(&b);
    say(d, "share b\n");
    NET_AWAIT(net_bench_turns(&b) > turns);
    net_bench_call(&b, do_wake_in_vain, NULL);
    say(link, "VERSION 1\r\n");
    expect(link, "a\nb\n");
    say(link, "1\r\n2\r\n");
    expect(c, "1\r\n");
    expect(d, "2\r\n");
    (void)close(link);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void do_break(struct net_bench *n, void *arg)
{
    (void)arg;
    first(n)->relay->broken = true; /* as without memory for what it expects */
}

/* What follows would be answered with the reply to a request that nobody is known to wait for. */
static void a_shared_link_that_took_what_nobody_expects_is_given_up(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int broken = dial(&b), link = served_by(two, broken, "share"), other = dial(&b);
    say(broken, "share a\n");
    expect(link, "a\n");
    say(other, "share b\n");
    expect(link, "b\n");
    net_bench_call(&b, do_break, NULL);
    say(broken, "share c\n");
    expect(broken, "down\n");
    expect_end(broken);
    assert_int_equal(stats()->connections, 0);
    expect_end(link);
    expect_end(other); /* in the place of a reply that may be another's */
    (void)close(link);
    (void)close(broken);
    (void)close(other);
    (void)close(two);
}

/* Short requests, too, that go at once. */
static void who_had_a_large_reply_has_a_link_of_its_own_for_all(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    say(c, "fetch a\n");
    expect(link, "a\n");
    send_value(link, (size_t)100 << 10);
    take_value(c, (size_t)100 << 10);
    int next = accepted(two); /* in the place of that */
    expect_end(link);
    say(c, "quick x\n");
    int own = accepted(two);
    expect(own, "x\n");
    say(own, "1\r\n");
    expect(c, "1\r\n");
    int d = dial(&b);
    say(d, "quick y\n");
    expect(next, "y\n");
    say(next, "2\r\n");
    expect(d, "2\r\n");
    (void)close(own);
    (void)close(next);
    (void)close(link);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* It needs none: where none can even be begun the shared one will do, at once. */
static void who_cannot_have_one_here_shares_all_the_same(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    say(c, "fetch a\n");
    expect(link, "a\n");
    send_value(link, (size_t)100 << 10);
    take_value(c, (size_t)100 << 10);
    int next = accepted(two);
    expect_end(link);
    struct rlimit was, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3; /* what is open stays open */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    served_at(next, c);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    (void)close(next);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void do_renew(struct net_bench *n, void *arg)
{
    (void)arg;
    struct conn *c = first(n);
    struct net_turn t = {.conn = c};
    c->relay->subs.n[0] = 1;
    assert_true(upstream_subscribed(&t));
    upstream_renew(&t);
    assert_false(upstream_subscribed(&t));
    assert_false(upstream_owns(&t));
}

static void on_a_new_link_nobody_is_subscribed(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "up");
    net_bench_call(&b, do_renew, NULL);
    expect_end(link);
    (void)close(link);
    link = served_by(two, c, "share"); /* of its own all the same */
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void do_ask_in_a_rest(struct net_bench *n, void *arg)
{
    struct net_turn t = {.conn = first(n)};
    upstreams_rest(n->net, true);
    assert_int_equal(upstream_ready(&t, UPSTREAM_OWN, 0), UPSTREAM_BUSY);
    assert_int_equal(upstream_ready(&t, UPSTREAM_TEXT, 0), UPSTREAM_BUSY);
    *(enum upstream_ready *)arg = upstream_ready(&t, UPSTREAM_REST, 0);
    upstreams_rest(n->net, false);
}

/* Before an upgrade who is within a value may end it. */
static void the_rest_of_a_request_goes_on_while_others_rest(void **state)
{
    (void)state;
    enum upstream_ready is = UPSTREAM_DOWN;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "up");
    net_bench_call(&b, do_ask_in_a_rest, &is);
    assert_int_equal(is, UPSTREAM_READY);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* Nothing is expected of the server, so what has to come is room for what is sent. */
static void what_a_server_does_not_take_has_a_time_too(void **state)
{
    (void)state;
    static char text[30000];
    int two = listen_at("127.0.0.2");
    timeout_us = 200000;
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "up");
    memset(text, 'x', sizeof text);
    memcpy(text, "mute ", 5);
    text[sizeof text - 1] = '\n';
    struct pollfd p = {.fd = c, .events = POLLOUT};
    bool open = true;
    for (size_t at = 0; open && poll(&p, 1, 5000) == 1;) {
        size_t from = at % sizeof text;
        ssize_t r = send(c, text + from, sizeof text - from, MSG_NOSIGNAL | MSG_DONTWAIT);
        open = r >= 0;
        at += open ? (size_t)r : 0;
    }
    assert_false(open);
    NET_AWAIT(net_bench_connections(&b) == 0);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void do_keep_unsent(struct net_bench *n, void *arg)
{
    struct conn *c = CONTAINER(n->net->all.next, struct conn, all);
    (void)arg;
    assert_true(kept_add(n->net, &c->relay->l->out, SPAN("x")));
}

/* The client owes a rest, but it is the server that does not take what is there of the request. */
static void a_part_that_is_not_taken_has_the_servers_time(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    timeout_us = 300000;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "part one\n");
    int link = accepted(two);
    expect(link, "one\n");
    net_bench_call(&b, do_keep_unsent, NULL);
    expect_end(c);
    NET_AWAIT(net_bench_connections(&b) == 0);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* ---- whose turns are dear -------------------------------------------------------------------- */

static void do_dear(struct net_bench *n, void *arg)
{
    *(unsigned *)arg = first(n)->dear;
}

static unsigned dear(void)
{
    unsigned n = 0;
    net_bench_call(&b, do_dear, &n);
    return n;
}

/* Of one that has nothing answered here any more; a part of a request makes up for nothing. */
static void who_asks_the_server_for_little_is_not_dear_for_ever(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), link = -1;
    start("127.0.0.2");
    int c = dial(&b);
    for (int i = 0; i < 4; i++) {
        say(c, "spin 2000\n");
        expect(c, "spun\n");
    }
    unsigned was = dear();
    assert_true(was >= 3);
    for (int i = 0; i < 100 && dear() > 3; i++) { /* a busy machine may hold up some */
        say(c, "share a\n");
        link = link < 0 ? accepted(two) : link;
        expect(link, "a\n");
        say(link, "OK\r\n");
        expect(c, "OK\r\n");
    }
    assert_int_equal(dear(), 3);
    say(c, "part one\n");
    int own = accepted(two);
    expect(own, "one\n");
    assert_true(dear() >= 3);
    (void)close(c);
    (void)close(own);
    (void)close(link);
    (void)close(two);
}

/* ---- who has ended ----------------------------------------------------------------------------
 */

static void do_count_ended(struct net_bench *n, void *arg)
{
    unsigned *ended = arg;
    for (struct link *l = n->net->all.next; l != &n->net->all; l = l->next)
        *ended += CONTAINER(l, struct conn, all)->eof;
}

static bool one_has_ended(void)
{
    unsigned ended = 0;
    net_bench_call(&b, do_count_ended, &ended);
    return ended == 1;
}

/* For whoever waits for the server two seconds pass. */
static void do_let_pass(struct net_bench *n, void *arg)
{
    (void)arg;
    for (struct link *l = n->net->all.next; l != &n->net->all; l = l->next) {
        struct conn *c = CONTAINER(l, struct conn, all);
        c->active_us -= c->state == CONN_READING ? 0 : 2000000;
    }
}

/* Over TCP whoever gave up and went looks like one that waits for its reply. */
static void who_has_ended_makes_room_for_its_own(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.conf.connections = 2;
    start("127.0.0.2");
    int waits = dial(&b), gone = dial(&b);
    say(waits, "share a\n");
    int link = accepted(two);
    expect(link, "a\n");
    say(gone, "share b\n");
    expect(link, "b\n");
    int third = dial(&b);
    expect(third, "full\n");
    (void)close(third);
    (void)shutdown(gone, SHUT_WR);
    NET_AWAIT(one_has_ended());
    third = dial(&b);
    expect(third, "full\n"); /* such a reply mostly comes soon */
    (void)close(third);
    net_bench_call(&b, do_let_pass, NULL);
    third = dial(&b);
    say(third, "hi\n");
    expect(third, "hi\n");
    expect_end(gone);
    say(link, "OK\r\nOK\r\n");
    expect(waits, "OK\r\n");
    say(third, "still\n");
    expect(third, "still\n");
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 1);
    (void)close(third);
    (void)close(gone);
    (void)close(waits);
    (void)close(link);
    (void)close(two);
}

static void do_count_deaf(struct net_bench *n, void *arg)
{
    unsigned *deaf = arg;
    for (struct link *l = n->net->all.next; l != &n->net->all; l = l->next) {
        const struct conn *c = CONTAINER(l, struct conn, all);
        *deaf += c->eof && c->state == CONN_FLUSHING;
    }
}

static bool one_does_not_take(void)
{
    unsigned deaf = 0;
    net_bench_call(&b, do_count_deaf, &deaf);
    return deaf == 1;
}

/* Whoever has gone is closed by what is sent to it: so it is there. */
static void who_has_ended_and_has_a_reply_to_take_stays(void **state)
{
    (void)state;
    char path[64];
    int two = listen_at("127.0.0.2");
    b.conf.connections = 1;
    start_inside(path, sizeof path);
    int c = dial(&b), link = served_by(two, c, "share");
    say(c, "fetch a\n");
    expect(link, "a\n");
    (void)shutdown(c, SHUT_WR);
    NET_AWAIT(one_has_ended());
    send_value(link, LARGE);
    NET_AWAIT(one_does_not_take());
    net_bench_call(&b, do_let_pass, NULL);
    int other = dial(&b);
    expect(other, "full\n");
    take_value(c, LARGE);
    expect_end(c);
    (void)close(other);
    (void)close(link);
    (void)close(c);
    (void)close(two);
    (void)unlink(path);
}

/* A value that comes in parts, over more than a second. */
static void who_has_ended_and_takes_what_comes_stays(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.conf.connections = 1;
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    say(c, "fetch a\n");
    expect(link, "a\n");
    (void)shutdown(c, SHUT_WR);
    NET_AWAIT(one_has_ended());
    net_bench_call(&b, do_let_pass, NULL);
    say(link, "VALUE a 0 4\r\nab");
    expect(c, "VALUE a 0 4\r\nab");
    int other = dial(&b);
    expect(other, "full\n");
    say(link, "cd\r\nEND\r\n");
    expect(c, "cd\r\nEND\r\n");
    expect_end(c);
    (void)close(other);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void do_count_waiting(struct net_bench *n, void *arg)
{
    unsigned *waiting = arg;
    *waiting += first(n)->state == CONN_BEHIND && kept_span(&first(n)->in).n > 0;
}

static bool it_waits_with_more(void)
{
    unsigned waiting = 0;
    net_bench_call(&b, do_count_waiting, &waiting);
    return waiting == 1;
}

/* Who has more requests than may be under way is not read from, nor its end. */
static void whose_end_is_unread_makes_room_too(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), other;
    b.conf.connections = 1;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "share a\nshare b\nshare c\nshare d\nshare e\nshare f\n");
    int link = accepted(two);
    expect(link, "a\nb\nc\nd\n");
    NET_AWAIT(it_waits_with_more());
    net_bench_call(&b, do_let_pass, NULL);
    expect(other = dial(&b), "full\n"); /* the first has not ended */
    (void)close(other);
    (void)shutdown(c, SHUT_WR);
    say(link, "OK\r\n");
    expect(c, "OK\r\n");
    expect(other = dial(&b), "full\n"); /* it has just taken one */
    (void)close(other);
    net_bench_call(&b, do_let_pass, NULL);
    say(other = dial(&b), "hi\n");
    expect(other, "hi\n");
    expect_end(c);
    (void)close(other);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void who_is_gone_makes_room_at_once(void **state)
{
    (void)state;
    const struct linger none = {.l_onoff = 1};
    int two = listen_at("127.0.0.2"), other;
    b.conf.connections = 1;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "share a\nshare b\nshare c\nshare d\nshare e\nshare f\n");
    int link = accepted(two);
    expect(link, "a\nb\nc\nd\n");
    NET_AWAIT(it_waits_with_more());
    assert_int_equal(setsockopt(c, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    (void)close(c); /* with a reset */
    say(other = dial(&b), "hi\n");
    expect(other, "hi\n");
    (void)close(other);
    (void)close(link);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(what_was_held_back_once_is_not_counted_again),
        BENCH(who_has_a_turn_due_and_takes_nothing_has_none),
        BENCH(who_was_called_in_vain_is_the_next_all_the_same),
        BENCH(a_shared_link_that_took_what_nobody_expects_is_given_up),
        BENCH(who_had_a_large_reply_has_a_link_of_its_own_for_all),
        BENCH(who_cannot_have_one_here_shares_all_the_same),
        BENCH(on_a_new_link_nobody_is_subscribed),
        BENCH(the_rest_of_a_request_goes_on_while_others_rest),
        BENCH(what_a_server_does_not_take_has_a_time_too),
        BENCH(a_part_that_is_not_taken_has_the_servers_time),
        BENCH(who_asks_the_server_for_little_is_not_dear_for_ever),
        BENCH(who_has_ended_makes_room_for_its_own),
        BENCH(who_has_ended_and_has_a_reply_to_take_stays),
        BENCH(who_has_ended_and_takes_what_comes_stays),
        BENCH(whose_end_is_unread_makes_room_too),
        BENCH(who_is_gone_makes_room_at_once),
    };
    return cmocka_run_group_tests_name("net/relay", tests, NULL, NULL);
}
