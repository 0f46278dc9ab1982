/* What one client may have under way at a server, and the links that others share: when they make
 * way, and for how many of clients' own there is room. */
#include "unit/net/upstream_rig.h"

#include <stdlib.h>

static void do_kept(struct net_bench *n, void *arg)
{
    *(uint64_t *)arg = net_kept(n->net);
}

static uint64_t kept(void)
{
    uint64_t n = 0;
    net_bench_call(&b, do_kept, &n);
    return n;
}

static void what_a_link_keeps_goes_with_it(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    uint64_t before = kept();
    int c = dial(&b);
    say(c, "up a\nalso b\nup c\n");
    int link = accepted(two);
    expect(link, "a\nb\nc\n");
    assert_true(kept() > before);
    (void)close(c);
    NET_AWAIT(kept() == before);
    (void)close(link);
    (void)close(two);
}

/* ---- what it may have under way -------------------------------------------------------------- */

/* How many requests of so many bytes come until none does for a while. */
static size_t heard(int link, size_t each)
{
    char mem[4096];
    size_t n = 0;
    struct pollfd p = {.fd = link, .events = POLLIN};
    while (poll(&p, 1, 100) == 1) {
        ssize_t r = recv(link, mem, sizeof mem, 0);
        assert_true(r > 0);
        n += (size_t)r;
    }
    assert_int_equal(n % each, 0);
    return n / each;
}

static void ask(int client, const char *what, size_t n)
{
    for (size_t i = 0; i < n; i++)
        say(client, what);
}

static void who_has_had_short_replies_may_ask_for_many(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), rounds = 0;
    start("127.0.0.2");
    int c = dial(&b);
    ask(c, "up x\n", 2000);
    int link = accepted(two);
    size_t n = heard(link, 2), most = n;
    assert_in_range(n, 1, 8); /* nothing is known of them yet */
    while (n > 0 && rounds++ < 12) {
        for (size_t i = 0; i < n; i++) {
            say(link, "OK\r\n");
            expect(c, "OK\r\n");
        }
        n = heard(link, 2);
        most = n > most ? n : most;
    }
    assert_in_range(most, 128, 256);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

#define LARGE ((size_t)100 << 10)

static void say_line(int link, size_t bytes)
{
    static char line[LARGE + 3];
    memset(line, 'x', bytes);
    memcpy(line + bytes, "\r\n", 3);
    say(link, line);
}

static void take(int client, size_t bytes)
{
    static char mem[1 << 16];
    while (bytes > 0) {
        struct pollfd p = {.fd = client, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 10000), 1);
        ssize_t r = recv(client, mem, bytes < sizeof mem ? bytes : sizeof mem, 0);
        assert_true(r > 0);
        bytes -= (size_t)r;
    }
}

static void who_gets_large_replies_asks_for_one_at_a_time(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    ask(c, "up x\n", 100);
    int link = accepted(two);
    size_t n = heard(link, 2);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < n; i++) {
            say_line(link, LARGE);
            take(c, LARGE + 2);
        }
        n = heard(link, 2);
        assert_int_equal(n, 1);
    }
    for (int i = 0; i < 60; i++) { /* and more again when they are short */
        say(link, "OK\r\n");
        expect(c, "OK\r\n");
    }
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void the_same_holds_on_a_shared_link(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    ask(c, "fetch x\n", 100);
    int link = accepted(two);
    size_t n = heard(link, 2);
    assert_in_range(n, 1, 8);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < n; i++) {
            say(link, "VALUE x 0 40960\r\n");
            say_line(link, 40960);
            say(link, "END\r\n");
            take(c, 17 + 40960 + 2 + 5);
        }
        n = heard(link, 2);
        assert_int_equal(n, 1);
    }
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* Of the two it is he who takes his time, and he has all that he wants. */
static void a_server_is_not_late_for_who_does_not_take_its_reply(void **state)
{
    (void)state;
    timeout_us = 300000;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "up");
    say(c, "up a\n");
    expect(link, "a\n");
    say_much(link);
    pass(1000);
    assert_int_equal(net_bench_connections(&b), 1);
    assert_int_equal(stats()->errors, 0);
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

/* More than is read at once, and than is kept. */
static void what_had_arrived_before_a_drain_is_answered(void **state)
{
    (void)state;
    const size_t all = 40000;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    char *lines = malloc(all * 5 + 1);
    assert_non_null(lines);
    for (size_t i = 0; i < all; i++)
        memcpy(lines + 5 * i, "up x\n", 6);
    say(c, lines);
    free(lines);
    int link = accepted(two);
    pass(100);
    net_bench_drain(&b, 20000000);
    for (size_t n = 0, done = 0; done < all; done += n) {
        struct pollfd p = {.fd = link, .events = POLLIN};
        char mem[4096];
        assert_int_equal(poll(&p, 1, 10000), 1);
        ssize_t r = recv(link, mem, sizeof mem / 2 * 2, MSG_PEEK);
        if (r <= 0)
            fail_msg("%zu of %zu were asked for", done, all);
        n = (size_t)recv(link, mem, (size_t)r / 2 * 2, 0) / 2;
        for (size_t i = 0; i < n; i++)
            say(link, "OK\r\n");
        take(c, 4 * n);
    }
    expect_end(c);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* ---- who is gone within a request ------------------------------------------------------------ */

static void do_whole(struct net_bench *n, void *arg)
{
    (void)n;
    (void)arg;
    within = false;
}

static void what_can_never_be_whole_is_not_waited_for(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "up before\npart one\n");
    int link = accepted(two);
    expect(link, "before\none\n");
    assert_int_equal(shutdown(c, SHUT_WR), 0);
    expect_silence(c, 100); /* a reply is due to what was whole */
    say(link, "OK\r\n");
    expect(c, "OK\r\n");
    expect_end(c);
    expect_end(link);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void a_reply_due_to_another_request_has_the_servers_time(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    timeout_us = 300000;
    start("127.0.0.2");
    int c = dial(&b), d;
    say(c, "part one\n"); /* its own reply waits for its end */
    int link = accepted(two);
    expect(link, "one\n");
    expect_silence(c, 1000);
    (void)close(c);
    expect_end(link);
    (void)close(link);
    net_bench_call(&b, do_whole, NULL);
    d = dial(&b);
    say(d, "up slow\nhush one\n");
    link = accepted(two);
    expect(link, "slow\none\n");
    expect_end(d);
    assert_int_equal(net_bench_connections(&b), 0);
    (void)close(link);
    (void)close(d);
    (void)close(two);
}

enum {
    CROWD = 12,
    LINE = 4096
};

/* 4 KiB each: 128 of them are a long line, though they are few. */
static void a_line_that_is_long_by_bytes_makes_shares_smaller(void **state)
{
    (void)state;
    static char value[LINE + 1];
    int two = listen_at("127.0.0.2"), c[CROWD], link = -1;
    size_t first = 0, last = 0;
    (void)snprintf(value, sizeof value, "VALUE x 0 4060\r\n%04060d\r\nEND\r\n", 0);
    start("127.0.0.2");
    for (int i = 0; i < CROWD * 30; i++) { /* until their replies' size is known */
        int k = i % CROWD;
        c[k] = i < CROWD ? dial(&b) : c[k];
        say(c[k], "fetch x\n");
        link = link < 0 ? accepted(two) : link;
        expect(link, "x\n");
        say(link, value);
        take(c[k], strlen(value));
    }
    for (int i = 0; i < CROWD; i++) {
        ask(c[i], "fetch x\n", 40);
        last = heard(link, 2);
        first = i == 0 ? last : first;
    }
    assert_in_range(first, 12, 16);
    assert_in_range(last, 1, 2);
    for (int i = 0; i < CROWD; i++)
        (void)close(c[i]);
    (void)close(link);
    (void)close(two);
}

/* ---- a shared link makes way ----------------------------------------------------------------- */

/* A client has a large value on the shared link, which is returned, and good another. */
static int with_large_value(int server, int good, int large)
{
    int link = served_by(server, good, "share");
    say(large, "fetch big\n");
    expect(link, "big\n");
    say(link, "VALUE big 0 102400\r\n");
    say_line(link, LARGE);
    say(link, "END\r\n");
    expect(large, "VALUE big 0 102400\r\n");
    take(large, LARGE + 2);
    expect(large, "END\r\n");
    return link;
}

static void a_shared_link_makes_way_when_another_was_let_in(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b), other = dial(&b);
    int old = with_large_value(two, good, large), new = accepted(two);
    expect(new, "version\r\n");
    served_at(old, good);
    say(other, "share wait\n");
    expect(old, "wait\n");
    say(new, "VERSION 1\r\n");
    pass(100);
    served_at(new, good);
    say(old, "TOUCHED\r\n");
    expect(other, "TOUCHED\r\n");
    expect_end(old);
    served_at(new, other);
    assert_true(is_up());
    (void)close(old);
    (void)close(new);
    (void)close(good);
    (void)close(large);
    (void)close(other);
    (void)close(two);
}

static void a_shared_link_stays_while_no_other_is_let_in(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b);
    int old = with_large_value(two, good, large), new = accepted(two);
    say(new, "ERROR Too many open connections\r\n");
    (void)close(new);
    for (int i = 0; i < 3; i++)
        served_at(old, good);
    int own = served_by(two, large, "up"); /* its own is not held back */
    assert_true(is_up());
    (void)close(old);
    (void)close(own);
    (void)close(good);
    (void)close(large);
    (void)close(two);
}

static void a_successor_takes_the_place_of_one_that_broke(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b);
    int old = with_large_value(two, good, large), new = accepted(two);
    expect(new, "version\r\n");
    (void)close(old);
    pass(100);
    say(good, "share one\n");
    expect_silence(new, 100);
    say(new, "VERSION 1\r\n");
    expect(new, "one\n");
    say(new, "1\r\n");
    expect(good, "1\r\n");
    (void)close(new);
    (void)close(good);
    (void)close(large);
    (void)close(two);
}

static void many_replies_for_nobody_make_a_shared_link_make_way(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int good = dial(&b), old = served_by(two, good, "share");
    for (int i = 0; i < 40; i++) {
        int c = dial(&b);
        ask(c, "share x\n", 4);
        assert_in_range(heard(old, 2), 2, 4);
        (void)setsockopt(c, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                         sizeof(struct linger)); /* it does not wait for its replies */
        (void)close(c);
        pass(10);
        struct pollfd p = {.fd = two, .events = POLLIN};
        if (poll(&p, 1, 0) == 1)
            break;
        assert_true(i < 39);
    }
    int new = accepted(two);
    pass(100);
    served_at(new, good);
    (void)close(old);
    (void)close(new);
    (void)close(good);
    (void)close(two);
}

/* They are no trouble that is added up: a link has as many for nobody as are still to come. */
static void replies_for_nobody_that_have_come_are_no_matter(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int good = dial(&b), shared = served_by(two, good, "share");
    for (int i = 0; i < 70; i++) {
        int c = dial(&b);
        say(c, "share x\n");
        expect(shared, "x\n");
        (void)setsockopt(c, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                         sizeof(struct linger)); /* it does not wait for its reply */
        (void)close(c);
        NET_AWAIT(net_bench_connections(&b) == 1);
        say(shared, "OK\r\n");
        served_at(shared, good);
    }
    (void)close(good);
    (void)close(shared);
    (void)close(two);
}

/* Where there may be one link of a client's own, there may be one that is replaced. */
static void a_shared_link_makes_way_where_there_may_be_one_more(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    owned_max = 1;
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b), old = with_large_value(two, good, large);
    int new = accepted(two);
    expect_end(old);
    served_at(new, good);
    (void)close(old);
    (void)close(new);
    (void)close(good);
    (void)close(large);
    (void)close(two);
}

/* Those that have replies to bring are no more than half of all that there may be. */
static void links_that_were_replaced_leave_half_to_others(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), link[3], large[3], other[3];
    owned_max = 3;
    start("127.0.0.2");
    int good = dial(&b);
    link[0] = served_by(two, good, "share");
    for (int i = 0; i < 3; i++) {
        pass(100); /* it has taken the place of the one before */
        say(large[i] = dial(&b), "fetch big\n");
        expect(link[i], "big\n");
        say(other[i] = dial(&b), "share wait\n");
        expect(link[i], "wait\n");
        say(link[i], "VALUE big 0 102400\r\n");
        say_line(link[i], LARGE);
        say(link[i], "END\r\n");
        expect(large[i], "VALUE big 0 102400\r\n");
        take(large[i], LARGE + 2);
        expect(large[i], "END\r\n");
        if (i < 2)
            link[i + 1] = accepted(two);
    }
    assert_true(nobody_comes(two));
    for (int i = 0; i < 3; i++) {
        say(link[i], "OK\r\n");
        expect(other[i], "OK\r\n");
        (void)close(link[i]);
        (void)close(large[i]);
        (void)close(other[i]);
    }
    (void)close(good);
    (void)close(two);
}

static void links_of_ones_own_are_limited(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    owned_max = 2;
    start("127.0.0.2");
    int a = dial(&b), c = dial(&b), d = dial(&b), large = dial(&b), good = dial(&b);
    int first = served_by(two, a, "up"), second = served_by(two, c, "up");
    say(d, "up one\n");
    expect(d, "down\n");
    assert_why("upstream.connections is reached");
    int shared = with_large_value(two, good, large);
    assert_true(nobody_comes(two)); /* the one before would be one more, too */
    served_at(shared, large);       /* as it has none of its own */
    (void)close(a);
    expect_end(first);
    (void)close(served_by(two, d, "up"));
    (void)close(first);
    (void)close(second);
    (void)close(shared);
    (void)close(c);
    (void)close(d);
    (void)close(large);
    (void)close(good);
    (void)close(two);
}

#define MUCH 40000 /* bytes of a request */

static void ask_for_much(int client, int times)
{
    static char text[6 + MUCH + 1] = "share ";
    memset(text + 6, 'x', MUCH - 1);
    text[6 + MUCH - 1] = '\n';
    for (int i = 0; i < times; i++)
        assert_int_equal(send(client, text, 6 + MUCH, MSG_NOSIGNAL), 6 + MUCH);
}

/* What it sends others would wait for, too. */
static void who_sends_much_has_a_link_of_its_own_behind_the_first(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b), shared = served_by(two, good, "share");
    ask_for_much(large, 4);
    assert_int_equal(heard(shared, MUCH), 1);
    assert_true(nobody_comes(two)); /* what is under way comes first */
    say(shared, "OK\r\n");
    expect(large, "OK\r\n");
    int own = accepted(two);
    for (size_t n, all = 0; all < 3; all += n) {
        n = heard(own, MUCH);
        assert_in_range(n, 1, 3);
        for (size_t i = 0; i < n; i++)
            say(own, "OK\r\n");
    }
    for (int i = 0; i < 3; i++)
        expect(large, "OK\r\n");
    served_at(shared, good); /* it makes way for none: nothing large is to come on it */
    assert_true(nobody_comes(two));
    (void)close(good);
    (void)close(large);
    (void)close(shared);
    (void)close(own);
    (void)close(two);
}

static void where_there_is_none_it_sends_one_at_a_time(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    owned_max = 1;
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b), a = dial(&b);
    int shared = served_by(two, good, "share"), other = served_by(two, a, "up");
    for (int i = 0; i < 40; i++)
        served_at(shared, large); /* known for short replies */
    ask_for_much(large, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(heard(shared, MUCH), 1);
        say(shared, "OK\r\n");
        expect(large, "OK\r\n");
    }
    (void)close(good);
    (void)close(large);
    (void)close(a);
    (void)close(shared);
    (void)close(other);
    (void)close(two);
}

/* On the link that is shared, and the reply. */
static void asks_for_much(int shared, int client)
{
    ask_for_much(client, 1);
    assert_int_equal(heard(shared, MUCH), 1);
    say(shared, "OK\r\n");
    expect(client, "OK\r\n");
}

/* They are nobody's need, and nobody gives one back. */
static void links_for_those_who_are_loud_leave_half_to_others(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), large[3], link[5];
    owned_max = 5;
    start("127.0.0.2");
    int good = dial(&b), shared = served_by(two, good, "share"), c[4];
    for (int i = 0; i < 3; i++)
        asks_for_much(shared, large[i] = dial(&b));
    for (int i = 0; i < 2; i++)
        link[i] = served_by(two, large[i], "share");
    served_at(shared, large[2]);
    for (int i = 0; i < 3; i++)
        link[2 + i] = served_by(two, c[i] = dial(&b), "up");
    say(c[3] = dial(&b), "up one\n");
    expect(c[3], "down\n");
    (void)close(large[0]);
    expect_end(link[0]);
    (void)close(link[0]);
    link[0] = served_by(two, large[2], "share");
    for (int i = 0; i < 3; i++)
        (void)close(large[i]);
    for (int i = 0; i < 4; i++)
        (void)close(c[i]);
    for (int i = 0; i < 5; i++)
        (void)close(link[i]);
    (void)close(good);
    (void)close(shared);
    (void)close(two);
}

/* One that its client is in need of later on is none of them any more. */
static void a_link_that_is_needed_is_not_among_those(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), large[2], link[2];
    owned_max = 2;
    start("127.0.0.2");
    int good = dial(&b), shared = served_by(two, good, "share");
    for (int i = 0; i < 2; i++)
        asks_for_much(shared, large[i] = dial(&b));
    link[0] = served_by(two, large[0], "share");
    served_at(shared, large[1]);
    say(large[0], "up more\n");
    expect(link[0], "more\n");
    say(link[0], "STORED\r\n");
    expect(large[0], "STORED\r\n");
    link[1] = served_by(two, large[1], "share");
    for (int i = 0; i < 2; i++) {
        (void)close(large[i]);
        (void)close(link[i]);
    }
    (void)close(good);
    (void)close(shared);
    (void)close(two);
}

static void so_do_links_that_are_replaced(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c = -1;
    owned_max = 2;
    start("127.0.0.2");
    int good = dial(&b), large = dial(&b), loud = dial(&b);
    int shared = served_by(two, good, "share");
    asks_for_much(shared, loud);
    int own = served_by(two, loud, "share");
    say(large, "fetch big\n");
    expect(shared, "big\n");
    say(shared, "VALUE big 0 102400\r\n");
    expect(large, "VALUE big 0 102400\r\n");
    assert_true(nobody_comes(two));
    (void)close(served_by(two, c = dial(&b), "up"));
    (void)close(c);
    (void)close(good);
    (void)close(large);
    (void)close(loud);
    (void)close(own);
    (void)close(shared);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(what_a_link_keeps_goes_with_it),
        BENCH(who_has_had_short_replies_may_ask_for_many),
        BENCH(who_gets_large_replies_asks_for_one_at_a_time),
        BENCH(the_same_holds_on_a_shared_link),
        BENCH(what_can_never_be_whole_is_not_waited_for),
        BENCH(a_reply_due_to_another_request_has_the_servers_time),
        BENCH(a_server_is_not_late_for_who_does_not_take_its_reply),
        BENCH(what_had_arrived_before_a_drain_is_answered),
        BENCH(a_line_that_is_long_by_bytes_makes_shares_smaller),
        BENCH(a_shared_link_makes_way_when_another_was_let_in),
        BENCH(a_shared_link_stays_while_no_other_is_let_in),
        BENCH(a_successor_takes_the_place_of_one_that_broke),
        BENCH(many_replies_for_nobody_make_a_shared_link_make_way),
        BENCH(replies_for_nobody_that_have_come_are_no_matter),
        BENCH(a_shared_link_makes_way_where_there_may_be_one_more),
        BENCH(links_that_were_replaced_leave_half_to_others),
        BENCH(links_of_ones_own_are_limited),
        BENCH(who_sends_much_has_a_link_of_its_own_behind_the_first),
        BENCH(where_there_is_none_it_sends_one_at_a_time),
        BENCH(links_for_those_who_are_loud_leave_half_to_others),
        BENCH(a_link_that_is_needed_is_not_among_those),
        BENCH(so_do_links_that_are_replaced),
    };
    return cmocka_run_group_tests_name("net/bounds", tests, NULL, NULL);
}
