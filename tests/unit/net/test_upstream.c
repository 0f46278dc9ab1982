/*
 * Reaching real servers: names that are looked up, addresses that refuse, descriptors that are
 * gone, greetings. The service is a line to the server and a line back:
 *
 *   up TEXT     TEXT goes there on a link of the client's own
 *   also TEXT   the same, with another entry in what the link expects
 *   share TEXT  the same on a link that all share
 *   fetch TEXT  likewise; values come back
 *
 * and where the server cannot be reached "down" comes back. Servers listen on 127.0.0.2 and .3.
 */
#include "net/upstream.h"
#include "support/net_bench.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;
static uint16_t port;
static char address[64];
static int64_t timeout_us;

/* ---- the resolver ---------------------------------------------------------------------------- */

static pthread_mutex_t names = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answers = PTHREAD_COND_INITIALIZER;
static const char *hosts[3]; /* what the name stands for; NULL ends it */
static int failure;          /* of getaddrinfo; 0: none */
static bool silent;          /* nobody answers */
static unsigned asked;

static int look_up(const char *host, const char *service, const struct addrinfo *hints,
                   struct addrinfo **list)
{
    struct addrinfo numeric = *hints, **end = list;
    (void)host;
    numeric.ai_flags = AI_NUMERICHOST;
    (void)pthread_mutex_lock(&names);
    asked++;
    while (silent)
        (void)pthread_cond_wait(&answers, &names);
    int r = failure;
    for (size_t i = 0; !r && hosts[i]; i++) {
        r = getaddrinfo(hosts[i], service, &numeric, end);
        while (!r && *end)
            end = &(*end)->ai_next;
    }
    (void)pthread_mutex_unlock(&names);
    return r;
}

static void name_is(const char *first, const char *second, int fails)
{
    (void)pthread_mutex_lock(&names);
    hosts[0] = first;
    hosts[1] = second;
    failure = fails;
    (void)pthread_mutex_unlock(&names);
}

static void be_silent(bool on)
{
    (void)pthread_mutex_lock(&names);
    silent = on;
    (void)pthread_cond_broadcast(&answers);
    (void)pthread_mutex_unlock(&names);
}

static unsigned times_asked(void)
{
    (void)pthread_mutex_lock(&names);
    unsigned n = asked;
    (void)pthread_mutex_unlock(&names);
    return n;
}

/* ---- the service ----------------------------------------------------------------------------- */

static struct net_step (*plain)(struct net_service *, void *, struct span, struct net_turn *,
                                struct buf *);

static struct net_step through(struct net_service *svc, void *session, struct span in,
                               struct net_turn *turn, struct buf *out)
{
    const struct net_step behind = {.verdict = NET_BEHIND};
    bool also = span_starts(in, SPAN("also ")), own = also || span_starts(in, SPAN("up "));
    bool fetch = span_starts(in, SPAN("fetch ")), shared = fetch || span_starts(in, SPAN("share "));
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end || (!own && !shared))
        return end && upstream_pending(turn) > 0 ? behind : plain(svc, session, in, turn, out);
    size_t skip = also ? 5 : own ? 3 : 6, used = (size_t)(end - in.p) + 1;
    enum upstream_ready is = upstream_ready(turn, own ? UPSTREAM_OWN : UPSTREAM_TEXT);
    if (is == UPSTREAM_BUSY)
        return behind;
    if (is == UPSTREAM_DOWN) {
        BUF_PUT_LIT(out, "down\n");
        return (struct net_step){.verdict = NET_DONE, .used = used};
    }
    upstream_send(turn, span_of(in.p + skip, used - skip));
    upstream_expect(turn, fetch ? FRAME_MC_VALUES : FRAME_MC_LINE, 1, also ? UPSTREAM_SILENT : 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static void do_upstream(struct net_bench *n, void *arg)
{
    struct err e;
    struct upstream_config c = {
        .address = span_str(arg), .timeout_us = timeout_us, .buffer = 1 << 16, .look_up = look_up};
    assert_int_equal(upstream_new(n->net, &n->svc, &c, &e), ERR_OK);
}

static char why[ERR_TEXT_MAX];
static bool up;

static void do_look(struct net_bench *n, void *arg)
{
    (void)arg;
    (void)snprintf(why, sizeof why, "%s", upstream_why(&n->svc));
    up = upstream_stats(&n->svc)->up;
}

static void assert_why(const char *part)
{
    net_bench_call(&b, do_look, NULL);
    if (!strstr(why, part))
        fail_msg("expected \"%s\", found \"%s\"", part, why);
}

static bool is_up(void)
{
    net_bench_call(&b, do_look, NULL);
    return up;
}

/* ---- servers --------------------------------------------------------------------------------- */

/* port 0: any, which is that of all from then on. */
static int listen_at(const char *host)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t n = sizeof in;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &n), 0);
    port = ntohs(in.sin_port);
    return fd;
}

static int accepted(int server)
{
    struct pollfd p = {.fd = server, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    int fd = accept(server, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

static bool nobody_comes(int server)
{
    struct pollfd p = {.fd = server, .events = POLLIN};
    return poll(&p, 1, 100) == 0;
}

/* The client asks on a link of its own, which server gets and answers. Returns it. */
static int served_by(int server, int client, const char *how)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s hello\n", how);
    say(client, text);
    int link = accepted(server);
    expect(link, "hello\n");
    say(link, "STORED\r\n");
    expect(client, "STORED\r\n");
    return link;
}

static void start(const char *host)
{
    (void)snprintf(address, sizeof address, "tcp://%s:%u", host, port);
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, address);
}

static int begin(void **state)
{
    (void)state;
    net_bench_init(&b);
    plain = b.svc.serve;
    b.svc.serve = through;
    b.svc.frame = frame_memcached;
    port = 0;
    timeout_us = 5000000;
    name_is(NULL, NULL, 0);
    asked = 0;
    silent = false;
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_bench_stop(&b);
    be_silent(false);
    return 0;
}

static void pass(int ms)
{
    (void)poll(NULL, 0, ms);
}

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

/* ---- what a client may take from others ------------------------------------------------------ */

enum {
    MANY = 14,
    PAIRS = 2000
};

static void those_who_expect_most_are_closed_and_no_others(void **state)
{
    (void)state;
    static char pairs[PAIRS * 12 + 1];
    int two = listen_at("127.0.0.2"), fd[MANY], link[MANY];
    for (int i = 0; i < PAIRS; i++)
        memcpy(pairs + (size_t)i * 12, "up a\nalso b\n", 12);
    b.conf.memory = (size_t)1 << 20;
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
    NET_AWAIT(b.svc.ended[NET_END_MEMORY] > 0);
    say(its, "STORED\r\n");
    expect(small, "STORED\r\n");
    assert_true(b.svc.ended[NET_END_MEMORY] <= MANY / 2);
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

static void do_greet(struct net_bench *n, void *arg)
{
    struct span bytes = span_str(arg);
    struct upstream_greeting g = {.bytes = bytes,
                                  .secret = span_of(bytes.p + 6, bytes.n - 7), /* no \n */
                                  .kind = FRAME_MC_LINE,
                                  .ok = SPAN("WELCOME\r\n")};
    assert_true(upstream_greet(&n->svc, UPSTREAM_TEXT, &g));
}

static void greet_with(const char *text)
{
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%s", text);
    net_bench_call(&b, do_greet, copy);
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
    say(own, "go \x01 away\r\n");
    expect(d, "down\n");
    assert_why("the login was refused: go ? away");
    (void)close(own);
    (void)close(shared);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void another_greeting_replaces_the_shared_link(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    greet_with("first one\n");
    int c = dial(&b), d = dial(&b);
    say(c, "share one\n");
    int old = accepted(two);
    expect(old, "first one\n");
    say(old, "WELCOME\r\n");
    expect(old, "one\n");
    greet_with("first one\n"); /* the same: nothing happens */
    greet_with("the second\n");
    say(d, "share two\n");
    int new = accepted(two);
    expect(new, "the second\n");
    say(new, "WELCOME\r\n");
    expect(new, "two\n");
    say(new, "2\r\n");
    expect(d, "2\r\n");
    say(old, "1\r\n"); /* what was asked for is still answered */
    expect(c, "1\r\n");
    expect_end(old);
    greet_with("the third\n"); /* nothing is expected: it closes at once */
    expect_end(new);
    (void)close(old);
    (void)close(new);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

#define BENCH(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(a_name_is_looked_up_for_new_links),
        BENCH(a_name_that_is_not_known_yet_hinders_nothing_else),
        BENCH(while_nobody_answers_the_latest_addresses_are_used),
        BENCH(a_name_that_is_gone_leads_nowhere),
        BENCH(without_any_answer_it_is_down_in_time),
        BENCH(digits_are_no_name),
        BENCH(an_address_that_refuses_is_followed_by_the_next),
        BENCH(a_round_of_refusals_is_tried_again_after_a_while),
        BENCH(attempts_at_the_same_time_fail_once),
        BENCH(what_we_are_short_of_delays_nobody),
        BENCH(own_links_that_break_delay_nobody),
        BENCH(those_who_expect_most_are_closed_and_no_others),
        BENCH(who_takes_a_reply_in_drops_does_not_hold_up_others),
        BENCH(a_link_is_open_when_its_greeting_was_accepted),
        BENCH(another_greeting_replaces_the_shared_link),
    };
    return cmocka_run_group_tests_name("net/upstream", tests, NULL, NULL);
}
