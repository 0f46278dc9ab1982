/* Reaching real servers: names that are looked up, addresses that refuse, descriptors that are
 * gone, greetings. */
#include "net/upstream/links.h"
#include "unit/net/upstream_rig.h"

#include <errno.h>
#include <sys/un.h>

/* ---- names ----------------------------------------------------------------------------------- */

static void a_name_is_looked_up_for_new_links(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    name_is("127.0.0.2", NULL, 0);
    start("server.example");
    assert_int_equal(times_asked(), 0); /* reached only when asked to */
    int c = dial(&b), d = dial(&b), e = dial(&b);
    int first = served_by(two, c, "up");
    int second = served_by(two, d, "up");
    assert_int_equal(times_asked(), 1); /* an answer serves others for two seconds */
    name_is("127.0.0.3", NULL, 0);
    pass(2100);
    int third = served_by(three, e, "up");
    assert_int_equal(times_asked(), 2);
    say(c, "up again\n"); /* what is open stays where it is */
    expect(first, "again\n");
    int ends[] = {first, second, third, c, d, e, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

static void the_address_in_use_stays_in_use(void **state)
{
    (void)state;
    int three = listen_at("127.0.0.3"), two = listen_at("127.0.0.2");
    name_is("127.0.0.3", NULL, 0);
    start("server.example");
    int c = dial(&b), d = dial(&b);
    int first = served_by(three, c, "up");
    name_is("127.0.0.2", "127.0.0.3", 0);
    pass(2100);
    int second = served_by(three, d, "up");
    assert_true(nobody_comes(two));
    (void)close(first);
    (void)close(second);
    (void)close(c);
    (void)close(d);
    (void)close(two);
    (void)close(three);
}

static void a_name_that_is_not_known_yet_hinders_nothing_else(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    name_is(NULL, NULL, EAI_AGAIN);
    start("server.example");
    int c = dial(&b);
    say(c, "hello\nup one\nhello\n");
    expect(c, "hello\ndown\nhello\n");
    assert_why("cannot look up server.example: ");
    say(c, "share one\n");
    expect(c, "down\n");
    assert_false(is_up());
    name_is("127.0.0.2", NULL, 0);
    pass(300);
    (void)close(served_by(two, c, "up"));
    assert_true(is_up());
    (void)close(c);
    (void)close(two);
}

static void while_nobody_answers_the_latest_addresses_are_used(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    name_is("127.0.0.2", NULL, 0);
    start("server.example");
    int c = dial(&b), d = dial(&b), e = dial(&b);
    int first = served_by(two, c, "up");
    be_silent(true);
    pass(2100);
    say(d, "up one\n");
    say(e, "hello\n"); /* the loop does not wait */
    expect(e, "hello\n");
    int link = accepted(two);
    expect(link, "one\n");
    be_silent(false);
    name_is(NULL, NULL, EAI_AGAIN); /* nor does it matter if it says so */
    pass(100);
    (void)close(served_by(two, e, "up"));
    (void)close(first);
    (void)close(link);
    (void)close(c);
    (void)close(d);
    (void)close(e);
    (void)close(two);
}

static void a_name_that_is_gone_leads_nowhere(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    name_is("127.0.0.2", NULL, 0);
    start("server.example");
    int c = dial(&b), d = dial(&b);
    int first = served_by(two, c, "up");
    name_is(NULL, NULL, EAI_NONAME);
    pass(2100);
    say(d, "up one\n");
    expect(d, "down\n");
    assert_true(nobody_comes(two));
    assert_why("cannot look up server.example: ");
    (void)close(first);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void without_any_answer_it_is_down_in_time(void **state)
{
    (void)state;
    timeout_us = 300000;
    be_silent(true);
    start("server.example");
    int c = dial(&b);
    say(c, "up one\n");
    expect(c, "down\n");
    assert_why("cannot look up server.example: no answer in time");
    net_bench_stop(&b); /* does not wait for it either */
    (void)close(c);
}

static void digits_are_no_name(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    (void)close(served_by(two, c, "share"));
    assert_int_equal(times_asked(), 0);
    (void)close(c);
    (void)close(two);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void an_address_that_refuses_is_followed_by_the_next(void **state)
{
    (void)state;
    int three = listen_at("127.0.0.3");
    name_is("127.0.0.2", "127.0.0.3", 0);
    start("server.example");
    int c = dial(&b), d = dial(&b);
    int first = served_by(three, c, "share");
    int second = served_by(three, d, "up");
    (void)close(three);
    (void)close(first);
    (void)close(second);
    expect_end(d);
    say(c, "share one\n");
    expect(c, "down\n");
    assert_why("Connection refused");
    int two = listen_at("127.0.0.2");
    pass(100);
    first = served_by(two, c, "share");
    (void)close(first);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void a_round_of_refusals_is_tried_again_after_a_while(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    (void)close(two);
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "up one\n");
    expect(c, "down\n");
    two = listen_at("127.0.0.2");
    say(c, "up one\n"); /* within 50 ms */
    expect(c, "down\n");
    assert_true(nobody_comes(two));
    (void)close(served_by(two, c, "up"));
    (void)close(c);
    (void)close(two);
}

/* 50, 100 … 800 ms, 1 s, 1 s: after any time away it is found within a second. */
static void a_server_that_is_away_for_long_is_tried_each_second(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    (void)close(two);
    start("127.0.0.2");
    int c = dial(&b);
    for (int i = 0; i < 45; i++) {
        say(c, "up one\n");
        expect(c, "down\n");
        pass(100);
    }
    two = listen_at("127.0.0.2");
    pass(1100);
    (void)close(served_by(two, c, "up"));
    (void)close(c);
    (void)close(two);
}

static void do_pause(struct net_bench *n, void *arg)
{
    (void)n;
    (void)arg;
    pass(100);
}

static void *pause_loop(void *arg)
{
    net_bench_call(&b, do_pause, NULL);
    return arg;
}

static void attempts_at_the_same_time_fail_once(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c[8];
    (void)close(two);
    start("127.0.0.2");
    for (size_t i = 0; i < 8; i++)
        c[i] = dial(&b);
    pthread_t pause;
    assert_int_equal(pthread_create(&pause, NULL, pause_loop, NULL), 0);
    pass(30);
    for (size_t i = 0; i < 8; i++)
        say(c[i], "up one\n");
    (void)pthread_join(pause, NULL);
    for (size_t i = 0; i < 8; i++)
        expect(c[i], "down\n");
    two = listen_at("127.0.0.2");
    pass(100); /* once 50 ms, not eight times as much again and again */
    (void)close(served_by(two, c[0], "up"));
    for (size_t i = 0; i < 8; i++)
        (void)close(c[i]);
    (void)close(two);
}

/* ---- what is no fault of the server ---------------------------------------------------------- */

static void what_we_are_short_of_delays_nobody(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b);
    int shared = served_by(two, c, "share");
    struct rlimit was, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3; /* what is open stays open */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    say(d, "up one\n");
    expect(d, "down\n");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_why("Too many open files");
    assert_true(is_up());
    int own = served_by(two, d, "up"); /* at once */
    (void)close(own);
    (void)close(shared);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* Of a UNIX socket: nobody was refused, there is only no place for one more at the moment. */
static void a_queue_that_is_full_delays_nobody(void **state)
{
    (void)state;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "/tmp/sidflake-full-%ld", (long)getpid());
    int server = socket(AF_UNIX, SOCK_STREAM, 0), ahead = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(listen(server, 0), 0);
    assert_int_equal(connect(ahead, (struct sockaddr *)&un, sizeof un), 0);
    (void)snprintf(address, sizeof address, "unix://%.50s", un.sun_path);
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, address);
    int c = dial(&b);
    say(c, "up one\n");
    expect(c, "down\n");
    assert_why("Resource temporarily unavailable");
    (void)close(accepted(server));
    int own = served_by(server, c, "up"); /* at once */
    (void)close(own);
    (void)close(c);
    (void)close(ahead);
    (void)close(server);
    (void)unlink(un.sun_path);
}

static void own_links_that_break_delay_nobody(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int good = dial(&b);
    int shared = served_by(two, good, "share");
    for (int i = 0; i < 5; i++) {
        int c = dial(&b);
        say(c, "up one\n");
        (void)close(accepted(two));
        expect_end(c);
        (void)close(c);
        say(good, "share more\n");
        expect(shared, "more\n");
        say(shared, "OK\r\n");
        expect(good, "OK\r\n");
        int d = dial(&b);
        (void)close(served_by(two, d, "up"));
        (void)close(d);
        assert_true(is_up());
    }
    (void)close(shared);
    (void)close(good);
    (void)close(two);
}

static void assert_end(int link, int error)
{
    char c;
    errno = 0;
    assert_int_equal(read(link, &c, 1), error ? -1 : 0);
    assert_int_equal(errno, error);
    (void)close(link);
}

/* Whoever is subscribed or blocked there asks nothing that could fail: its socket asks. */
static void a_server_that_is_gone_without_a_word_is_noticed(void **state)
{
    static const struct {
        int level, name, value;
    } expected[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},           {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 120000}, {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 256 << 10},
    };
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), there = served_by(two, c, "up"), links = 0;
    for (int fd = 0; fd < 256; fd++) { /* the loop's are ours, too */
        struct sockaddr_in in = {0};
        socklen_t n = sizeof in;
        if (getpeername(fd, (struct sockaddr *)&in, &n) < 0 || in.sin_family != AF_INET ||
            ntohs(in.sin_port) != port)
            continue;
        links++;
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            int value = 0;
            socklen_t len = sizeof value;
            assert_int_equal(getsockopt(fd, expected[i].level, expected[i].name, &value, &len), 0);
            assert_int_equal(value, expected[i].value);
        }
    }
    assert_int_equal(links, 1);
    (void)close(there);
    (void)close(c);
    (void)close(two);
}

/* A port in TIME-WAIT for each short connection, and there are none left. */
static void what_was_answered_leaves_no_port_behind(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int a = dial(&b), c = dial(&b), d = dial(&b);
    int all = served_by(two, a, "up"), mute = served_by(two, c, "up"),
        due = served_by(two, d, "up");
    say(c, "mute last\n");
    say(d, "up last\n");
    expect(due, "last\n");
    (void)close(a);
    (void)close(c);
    (void)close(d);
    assert_end(all, ECONNRESET);
    expect(mute, "last\n"); /* what no reply vouches for has to arrive */
    assert_end(mute, 0);
    assert_end(due, 0);
    (void)close(two);
}

/* What it was told in place of a reply would be taken for the rest of the value. */
static void whose_value_broke_off_is_closed_and_told_nothing(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.lost = SPAN("lost\r\n");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), link = served_by(two, d, "share");
    say(c, "fetch a\n");
    expect(link, "a\n");
    say(d, "share one\n");
    expect(link, "one\n");
    say(link, "VALUE a 0 60\r\nabc");
    expect(c, "VALUE a 0 60\r\nabc");
    (void)close(link);
    expect_end(c);
    expect(d, "lost\r\n"); /* of its reply nothing had come */
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* ---- what a client may take from others ------------------------------------------------------ */

enum {
    MANY = 14,
    PAIRS = 2000
};

static void those_who_wait_with_most_are_closed_and_no_others(void **state)
{
    (void)state;
    static char pairs[PAIRS * 12 + 1];
    int two = listen_at("127.0.0.2"), fd[MANY], link[MANY];
    for (int i = 0; i < PAIRS; i++)
        memcpy(pairs + (size_t)i * 12, "up a\nalso b\n", 12);
    b.conf.memory = (size_t)1 << 18;
    start("127.0.0.2");
    int small = dial(&b);
    int its = served_by(two, small, "up");
    say(small, "up more\n");
    expect(its, "more\n");
    for (int i = 0; i < MANY; i++) {
        uint64_t before = net_bench_bytes_in(&b);
        fd[i] = dial(&b);
        say(fd[i], pairs);
        link[i] = accepted(two);
        NET_AWAIT(net_bench_bytes_in(&b) - before == sizeof pairs - 1);
    }
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) > 0);
    say(its, "STORED\r\n");
    expect(small, "STORED\r\n");
    assert_true(net_bench_ended(&b, NET_END_MEMORY) <= MANY / 2);
    for (int i = 0; i < MANY; i++) {
        (void)close(link[i]);
        (void)close(fd[i]);
    }
    (void)close(its);
    (void)close(small);
    (void)close(two);
}

#define VALUE ((size_t)64 << 20)

/* Reads a little every 10 ms, and so is never long without taking anything. */
static void who_takes_a_reply_in_drops_does_not_hold_up_others(void **state)
{
    (void)state;
    static char mem[1 << 18];
    int two = listen_at("127.0.0.2"), taken = 0;
    size_t left = VALUE;
    start("127.0.0.2");
    int good = dial(&b), slow = dial(&b), link = served_by(two, good, "share");
    say(slow, "fetch big\n");
    expect(link, "big\n");
    say(good, "share more\n");
    expect(link, "more\n");
    (void)snprintf(mem, sizeof mem, "VALUE big 0 %zu\r\n", VALUE);
    say(link, mem);
    struct pollfd answer = {.fd = good, .events = POLLIN};
    while (poll(&answer, 1, 10) == 0 && taken++ < 300) {
        size_t n = left < sizeof mem ? left : sizeof mem;
        for (ssize_t r; left > 0 && (r = send(link, mem, n, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) {
            left -= (size_t)r;
            n = left < sizeof mem ? left : sizeof mem;
            if (left == 0)
                say(link, "\r\nEND\r\nSTORED\r\n");
        }
        (void)recv(slow, mem, 100000, MSG_DONTWAIT);
    }
    assert_true(taken < 300);
    expect(good, "STORED\r\n");
    (void)close(link);
    (void)close(slow);
    (void)close(good);
    (void)close(two);
}

/* ---- greetings ------------------------------------------------------------------------------- */

static size_t user_n; /* bytes of the user, with which a greeting begins; 0: the default one */

static void do_greet_by_name(struct net_bench *n, void *arg)
{
    struct span bytes = span_str(arg);
    struct upstream_greeting g = {.bytes = bytes,
                                  .user = span_of(bytes.p, user_n),
                                  .secret = span_of(bytes.p + 6, bytes.n - 7), /* no \n */
                                  .kind = FRAME_MC_LINE,
                                  .ok = SPAN("WELCOME\r\n")};
    assert_true(upstream_greet(&n->svc, UPSTREAM_TEXT, &g));
}

static void greet_with(const char *text)
{
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%s", text);
    net_bench_call(&b, do_greet_by_name, copy);
}

/* As by a reload without a password. */
static void a_greeting_taken_away_is_still_answered(void **state)
{
    char none[] = "";
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    greet_with("hello secret\n");
    int c = dial(&b);
    say(c, "up one\n");
    int own = accepted(two);
    expect(own, "hello secret\n");
    net_bench_call(&b, do_greet, none);
    say(own, "WELCOME\r\n");
    expect(own, "one\n");
    say(own, "1\r\n");
    expect(c, "1\r\n");
    (void)close(own);
    (void)close(c);
    (void)close(two);
}

static void a_link_is_open_when_its_greeting_was_accepted(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    greet_with("hello secret\n");
    int c = dial(&b), d = dial(&b);
    say(c, "share one\n");
    int shared = accepted(two);
    expect(shared, "hello secret\n");
    expect_silence(shared, 100);
    say(shared, "WEL");
    expect_silence(shared, 100);
    say(shared, "COME\r\n");
    expect(shared, "one\n");
    say(shared, "1\r\n");
    expect(c, "1\r\n");
    say(d, "up two\n");
    int own = accepted(two);
    expect(own, "hello secret\n");
    say(own, "no, secret\x01 is wrong\r\n");
    expect(d, "down\n");
    expect_end(own);
    assert_why("the login was refused: ");
    assert_null(strstr(why, "secret"));
    assert_true(is_up());
    pass(100);
    say(d, "up two\n");
    (void)close(own);
    own = accepted(two);
    expect(own, "hello secret\n");
    say(own, "go \x01\x7f\xe4 away\r\n");
    expect(d, "down\n");
    assert_why("the login was refused: go ??? away");
    (void)close(own);
    (void)close(shared);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* Redis repeats 128 bytes of the arguments of a command that it does not know, and has the most
 * usual passwords among its own words. */
static void of_words_with_a_secret_the_first_is_told(void **state)
{
    static const char *const rows[][3] = {
        {"hello 0123456789abcdefghij\n", "ERR unknown command 'hello', with: '0123456\r\n",
         "the login was refused: ERR (the rest may be the password)"},
        {"hello 0123456789abcdefghij\n", "no, 0123456789abcdefgh\r\n", "no, (the rest may be"},
        {"hello password\n", "WRONGPASS invalid username-password pair\r\n", "WRONGPASS (the rest"},
        {"hello secret\n", "secret it was\r\n", "the login was refused: its words may be"},
    };
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        greet_with(rows[i][0]);
        say(c, "up one\n");
        int own = accepted(two);
        expect(own, rows[i][0]);
        say(own, rows[i][1]);
        expect(c, "down\n");
        assert_why(rows[i][2]);
        assert_null(strstr(why, "0123"));
        (void)close(own);
        pass(200);
    }
    (void)close(c);
    (void)close(two);
}

/* The shared link, with one request of c's under way. */
static int let_in_first(int server, int c)
{
    greet_with("first one\n");
    say(c, "share one\n");
    int link = accepted(server);
    expect(link, "first one\n");
    say(link, "WELCOME\r\n");
    expect(link, "one\n");
    return link;
}

/* Who share one are served by it until another was let in. */
static void another_password_of_a_user_leaves_the_shared_link(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    user_n = strlen("first");
    int c = dial(&b), d = dial(&b), old = let_in_first(two, c);
    greet_with("first two\n");
    int new = accepted(two);
    expect(new, "first two\n");
    say(new, "no\r\n");
    expect_end(new);
    say(d, "share two\n");
    expect(old, "two\n");
    user_n = 0;
    (void)close(new);
    (void)close(old);
    (void)close(d);
    (void)close(c);
    (void)close(two);
}

static void another_password_replaces_the_shared_link_behind_its_successor(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), old = let_in_first(two, c);
    greet_with("first one\n"); /* the same: nothing happens */
    greet_with("wrong one\n");
    int new = accepted(two);
    expect(new, "wrong one\n");
    say(new, "no\r\n");
    expect_end(new);
    (void)close(new);
    greet_with("wrong one\n"); /* by now it may be right */
    new = accepted(two);
    expect(new, "wrong one\n");
    say(new, "no\r\n");
    expect_end(new);
    (void)close(new);
    assert_true(stats()->unowned_us > 0);
    assert_why("the login was refused: no");
    say(d, "share two\n");
    expect(old, "two\n");
    greet_with("the second\n");
    new = accepted(two);
    expect(new, "the second\n");
    greet_with("the second\n"); /* is under way */
    say(new, "WELCOME\r\n");
    say(old, "1\r\n2\r\n"); /* what was asked for is still answered */
    expect(c, "1\r\n");
    expect(d, "2\r\n");
    expect_end(old);
    assert_int_equal(stats()->unowned_us, 0);
    say(d, "share three\n");
    expect(new, "three\n");
    say(new, "3\r\n");
    expect(d, "3\r\n");
    (void)close(old);
    (void)close(new);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* It may have had more rights. */
static void a_link_of_another_user_is_not_used_any_more(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    user_n = strlen("first");
    int c = dial(&b), d = dial(&b), old = let_in_first(two, c);
    user_n = strlen("the s");
    greet_with("the second\n");
    say(d, "share two\n");
    int new = accepted(two);
    expect(new, "the second\n");
    say(new, "WELCOME\r\n");
    expect(new, "two\n");
    say(new, "2\r\n");
    expect(d, "2\r\n");
    say(old, "1\r\n");
    expect(c, "1\r\n");
    expect_end(old);
    user_n = 0;
    greet_with("the third\n"); /* nothing is expected: it closes at once */
    expect_end(new);
    (void)close(old);
    (void)close(new);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void do_look_for_successor(struct net_bench *n, void *arg)
{
    *(bool *)arg = n->svc.upstream->next[UPSTREAM_TEXT] != NULL;
}

static bool has_successor(void)
{
    bool found = false;
    net_bench_call(&b, do_look_for_successor, &found);
    return found;
}

/* One is to take the shared link's place, and would with the old login: that it is let in comes too
 * late. */
static void another_greeting_ends_a_successor_with_the_one_before(void **state)
{
    static char big[100000];
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    greet_with("first one\n");
    int c = dial(&b), d = dial(&b);
    say(c, "fetch big\n");
    int old = accepted(two);
    expect(old, "first one\n");
    say(old, "WELCOME\r\n");
    expect(old, "big\n");
    memset(big, 'x', sizeof big - 1);
    say(old, "VALUE big 0 900000\r\n");
    say(old, big);
    int next = accepted(two); /* large replies go on beside */
    expect(next, "first one\n");
    greet_with("the second\n");
    (void)send(next, "WELCOME\r\n", 9, MSG_NOSIGNAL);
    int new = accepted(two);
    expect(new, "the second\n");
    say(new, "WELCOME\r\n");
    NET_AWAIT(!has_successor());
    say(d, "share two\n");
    expect(new, "two\n");
    expect_end(next);
    (void)close(old);
    (void)close(next);
    (void)close(new);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(a_name_is_looked_up_for_new_links),
        BENCH(the_address_in_use_stays_in_use),
        BENCH(a_name_that_is_not_known_yet_hinders_nothing_else),
        BENCH(while_nobody_answers_the_latest_addresses_are_used),
        BENCH(a_name_that_is_gone_leads_nowhere),
        BENCH(without_any_answer_it_is_down_in_time),
        BENCH(digits_are_no_name),
        BENCH(an_address_that_refuses_is_followed_by_the_next),
        BENCH(a_round_of_refusals_is_tried_again_after_a_while),
        BENCH(a_server_that_is_away_for_long_is_tried_each_second),
        BENCH(attempts_at_the_same_time_fail_once),
        BENCH(what_we_are_short_of_delays_nobody),
        BENCH(a_queue_that_is_full_delays_nobody),
        BENCH(own_links_that_break_delay_nobody),
        BENCH(a_server_that_is_gone_without_a_word_is_noticed),
        BENCH(what_was_answered_leaves_no_port_behind),
        BENCH(whose_value_broke_off_is_closed_and_told_nothing),
        BENCH(those_who_wait_with_most_are_closed_and_no_others),
        BENCH(who_takes_a_reply_in_drops_does_not_hold_up_others),
        BENCH(a_link_is_open_when_its_greeting_was_accepted),
        BENCH(a_greeting_taken_away_is_still_answered),
        BENCH(of_words_with_a_secret_the_first_is_told),
        BENCH(another_password_of_a_user_leaves_the_shared_link),
        BENCH(another_password_replaces_the_shared_link_behind_its_successor),
        BENCH(a_link_of_another_user_is_not_used_any_more),
        BENCH(another_greeting_ends_a_successor_with_the_one_before),
    };
    return cmocka_run_group_tests_name("net/upstream", tests, NULL, NULL);
}
