/* Looking a server up: what its addresses are good for, and for how long. */
#include "net/upstream/links.h"
#include "net/upstream/resolve.h"
#include "unit/net/upstream_rig.h"

#include <netdb.h>
#include <stdatomic.h>

enum {
    CROWD = 8
};

/* ---- a clock that the test sets forward ------------------------------------------------------ */

static _Atomic int64_t ahead_us;

static int64_t wall_us(struct clock *c)
{
    (void)c;
    return clock_wall_us(clock_system());
}

static int64_t mono_us(struct clock *c)
{
    (void)c;
    return clock_mono_us(clock_system()) + atomic_load(&ahead_us);
}

static struct clock ahead = {wall_us, mono_us};

/* It leads to 127.0.0.2, for the time being. */
static void start_by_name(void)
{
    name_is("127.0.0.2", NULL, 0);
    atomic_store(&ahead_us, 0);
    b.conf.clock = &ahead;
    start("server.example");
}

/* Its address may be somebody else's by then. */
static void an_old_address_is_not_used_for_ever(void **state)
{
    char said[128];
    (void)state;
    int two = listen_at("127.0.0.2");
    start_by_name();
    int c = dial(&b), first = served_by(two, c, "up");
    name_is(NULL, NULL, EAI_AGAIN);
    atomic_store(&ahead_us, 30000000);
    int d = dial(&b), second = served_by(two, d, "up");
    atomic_store(&ahead_us, 61000000);
    int e = dial(&b);
    say(e, "up one\n");
    expect(e, "down\n");
    (void)snprintf(said, sizeof said, "cannot look up server.example: %s", gai_strerror(EAI_AGAIN));
    assert_why(said);
    int ends[] = {first, second, c, d, e, two};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* The same answer is one from then. */
static void an_address_that_is_found_again_is_no_old_one(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c[3], links[3];
    start_by_name();
    for (int i = 0; i < 3; i++) {
        atomic_store(&ahead_us, i * INT64_C(40000000));
        name_is("127.0.0.2", NULL, i < 2 ? 0 : EAI_AGAIN);
        c[i] = dial(&b);
        links[i] = served_by(two, c[i], "up");
    }
    assert_int_equal(times_asked(), 3);
    for (int i = 0; i < 3; i++) {
        (void)close(links[i]);
        (void)close(c[i]);
    }
    (void)close(two);
}

/* It was in use, and is not among those that are left. */
static void an_address_that_the_name_leads_to_no_more_is_not_used(void **state)
{
    (void)state;
    int three = listen_at("127.0.0.3");
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    int c = dial(&b), d = dial(&b), first = served_by(three, c, "up");
    name_is("127.0.0.2", NULL, 0);
    atomic_store(&ahead_us, 3000000);
    say(d, "up one\n");
    expect(d, "down\n");
    assert_true(nobody_comes(three));
    (void)close(first);
    (void)close(c);
    (void)close(d);
    (void)close(three);
}

static void who_is_connected_stays_though_the_name_is_gone(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start_by_name();
    int c = dial(&b), d = dial(&b), first = served_by(two, c, "up");
    name_is(NULL, NULL, EAI_NONAME);
    atomic_store(&ahead_us, 3000000);
    say(d, "up one\n");
    expect(d, "down\n");
    say(c, "up two\n");
    expect(first, "two\n");
    say(first, "2\r\n");
    expect(c, "2\r\n");
    (void)close(first);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* As a client that connects again would directly: it may be told that its server is none any more.
 */
static void who_comes_is_where_the_name_leads_by_now(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    start_by_name();
    int c = dial(&b), d = dial(&b), e = dial(&b), shared = served_by(two, c, "share");
    name_is("127.0.0.3", "127.0.0.2", 0);
    atomic_store(&ahead_us, 3000000);
    served_at(shared, d);
    assert_true(nobody_comes(three)); /* it leads there, too */
    name_is("127.0.0.3", NULL, 0);
    atomic_store(&ahead_us, 6000000);
    served_at(shared, c); /* who is there stays there … */
    assert_true(nobody_comes(three));
    say(e, "share one\n");
    expect(shared, "one\n");
    int next = accepted(three);
    served_at(next, c); /* … until somebody comes */
    say(shared, "1\r\n");
    expect(e, "1\r\n");
    expect_end(shared);
    served_at(next, e);
    int ends[] = {next, shared, c, d, e, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

static void who_shares_stays_while_nobody_is_there_yet(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = -1, next = -1;
    start_by_name();
    int c = dial(&b), d = dial(&b), shared = served_by(two, c, "share");
    name_is("127.0.0.3", NULL, 0);
    atomic_store(&ahead_us, 3000000);
    unsigned before = times_asked();
    served_at(shared, d);
    NET_AWAIT(times_asked() > before && stats()->errors > 0);
    served_at(shared, c);
    three = listen_at("127.0.0.3");
    served_at(shared, c); /* none comes, and nothing is asked for */
    next = accepted(three);
    assert_int_equal(times_asked(), before + 1);
    expect_end(shared);
    served_at(next, c);
    int ends[] = {next, shared, c, d, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* It was asked for just before: it is again, once that may be. */
static void who_comes_early_is_followed_all_the_same(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    start_by_name();
    int c = dial(&b), d = dial(&b), shared = served_by(two, c, "share");
    name_is("127.0.0.3", NULL, 0);
    served_at(shared, d);
    assert_int_equal(times_asked(), 1);
    assert_true(nobody_comes(three));
    atomic_store(&ahead_us, 3000000);
    served_at(shared, c);
    int next = accepted(three);
    expect_end(shared);
    served_at(next, d);
    assert_int_equal(times_asked(), 2);
    int ends[] = {next, shared, c, d, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* It answers for who had come before the name led elsewhere. */
static void who_comes_while_a_name_is_being_looked_up_is_followed_all_the_same(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    start_by_name();
    int c = dial(&b), d = dial(&b), e = dial(&b), shared = served_by(two, c, "share");
    atomic_store(&ahead_us, 3000000);
    be_silent(true);
    served_at(shared, d);
    atomic_store(&ahead_us, 6000000);
    served_at(shared, e);
    be_silent(false);
    NET_AWAIT(times_asked() == 2);
    pass(100);
    name_is("127.0.0.3", NULL, 0);
    atomic_store(&ahead_us, 9000000);
    served_at(shared, c);
    int next = accepted(three);
    expect_end(shared);
    served_at(next, e);
    int ends[] = {next, shared, c, d, e, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

static bool remembers;

static void do_recall(struct net_bench *n, void *arg)
{
    (void)arg;
    remembers = n->svc.upstream->unready[UPSTREAM_TEXT].until_us != 0;
}

static void do_hold_back(struct net_bench *n, void *arg)
{
    (void)arg;
    n->svc.upstream->unready[UPSTREAM_TEXT].until_us = INT64_MAX; /* or it would be tried there */
}

static bool recalls_a_refusal(void)
{
    net_bench_call(&b, do_recall, NULL);
    return remembers;
}

/* Else nobody would have a link of his own any more who asks for much. */
static void what_was_refused_elsewhere_is_forgotten_where_the_name_leads_back(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start_by_name();
    int c = dial(&b), d = dial(&b), e = dial(&b), shared = served_by(two, c, "share");
    name_is("127.0.0.3", NULL, 0);
    atomic_store(&ahead_us, 3000000);
    served_at(shared, d);
    NET_AWAIT(recalls_a_refusal());
    assert_true(stats()->unowned_us > 0);
    net_bench_call(&b, do_hold_back, NULL);
    name_is("127.0.0.2", NULL, 0);
    atomic_store(&ahead_us, 6000000);
    served_at(shared, e);
    NET_AWAIT(!recalls_a_refusal());
    assert_true(stats()->unowned_us == 0);
    served_at(shared, c);
    int ends[] = {shared, c, d, e, two};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

static void who_is_not_let_in_yet_where_the_name_led_takes_no_place(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    b.svc.probe = probe;
    timeout_us = 60000000;
    start_by_name();
    int c = dial(&b), d = dial(&b), e = dial(&b), shared = served_by(two, c, "share");
    name_is("127.0.0.3", NULL, 0);
    atomic_store(&ahead_us, 3000000);
    served_at(shared, d);
    int late = accepted(three);
    expect(late, "version\r\n");
    name_is("127.0.0.2", NULL, 0);
    atomic_store(&ahead_us, 6000000); /* within the time that it has */
    served_at(shared, e);
    expect_end(late);
    served_at(shared, c);
    int ends[] = {shared, late, c, d, e, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* It may be among those that there was no room for. */
static void of_a_name_with_many_addresses_any_will_do(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start_by_name();
    int c = dial(&b), d = dial(&b), shared = served_by(two, c, "share");
    more_before(ADDRESSES);
    atomic_store(&ahead_us, 3000000);
    served_at(shared, d);
    NET_AWAIT(times_asked() == 2);
    pass(300);
    served_at(shared, c);
    assert_int_equal(stats()->errors, 0);
    (void)close(shared);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void whoever_comes_where_nobody_can_say_asks_now_and_then(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c[CROWD];
    start_by_name();
    int shared = served_by(two, c[0] = dial(&b), "share");
    name_is(NULL, NULL, EAI_NONAME);
    atomic_store(&ahead_us, 3000000);
    for (int i = 1; i < CROWD; i++) {
        served_at(shared, c[i] = dial(&b));
        pass(20);
    }
    assert_int_equal(times_asked(), 2);
    for (int i = 0; i < CROWD; i++)
        (void)close(c[i]);
    (void)close(shared);
    (void)close(two);
}

/* It is known where to, by an old answer, but we have no descriptor left. */
static void a_successor_that_cannot_even_begin_is_not_asked_for_again_at_once(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    char greeting[] = "let me in\n";
    struct rlimit was, none;
    start_by_name();
    int c = dial(&b), shared = served_by(two, c, "share");
    name_is(NULL, NULL, EAI_AGAIN);
    atomic_store(&ahead_us, 30000000);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3; /* what is open stays open */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    unsigned before = times_asked();
    net_bench_call(&b, do_greet, greeting);
    NET_AWAIT(times_asked() > before);
    pass(200);
    assert_in_range(times_asked() - before, 1, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    served_at(shared, c);
    (void)close(shared);
    (void)close(c);
    (void)close(two);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* One lookup that fails is one failure, however many links wait for it: 50 ms. */
static void a_lookup_that_fails_many_fails_once(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c[CROWD];
    be_silent(true);
    name_is(NULL, NULL, EAI_AGAIN);
    start("server.example");
    for (int i = 0; i < CROWD; i++) {
        uint64_t before = net_bench_bytes_in(&b);
        c[i] = dial(&b);
        say(c[i], "up one\n");
        NET_AWAIT(net_bench_bytes_in(&b) > before);
    }
    be_silent(false);
    for (int i = 0; i < CROWD; i++)
        expect(c[i], "down\n");
    name_is("127.0.0.2", NULL, 0);
    pass(200);
    (void)close(served_by(two, c[0], "up"));
    for (int i = 0; i < CROWD; i++)
        (void)close(c[i]);
    (void)close(two);
}

/* Nobody who connects there hears of it. */
static void fill(int server, const char *host, int fd[CROWD])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
    assert_int_equal(listen(server, 0), 0);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd[i] >= 0);
        (void)connect(fd[i], (struct sockaddr *)&in, sizeof in);
    }
}

static void answers_one(int link, int client)
{
    expect(link, "one\n");
    say(link, "STORED\r\n");
    expect(client, "STORED\r\n");
}

/* Who asked has waited for a part of his time: the rest is for the next address. */
static void an_address_that_says_nothing_is_followed_by_the_next(void **state)
{
    (void)state;
    int full = listen_at("127.0.0.2"), three = listen_at("127.0.0.3"), fd[CROWD];
    timeout_us = 2000000;
    fill(full, "127.0.0.2", fd);
    name_is("127.0.0.2", "127.0.0.3", 0);
    start("server.example");
    int c = dial(&b);
    say(c, "share one\n");
    pass(500);
    assert_true(nobody_comes(three));
    int link = accepted(three);
    answers_one(link, c);
    for (int i = 0; i < CROWD; i++)
        (void)close(fd[i]);
    (void)close(link);
    (void)close(c);
    (void)close(full);
    (void)close(three);
}

/* Nobody comes through to it, and meanwhile the name is asked for again, by who comes. */
static void leave_one_that_hangs(const char *first, const char *second, int before_them)
{
    int full = listen_at("127.0.0.2"), three = listen_at("127.0.0.3"), fd[CROWD];
    fill(full, "127.0.0.2", fd);
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    int c = dial(&b), d = dial(&b);
    say(c, "share one\n");
    NET_AWAIT(times_asked() == 1);
    pass(100);
    name_is(first, second, 0);
    more_before(before_them);
    atomic_store(&ahead_us, 3000000); /* as if the process had stood still */
    say(d, "share one\n");
    NET_AWAIT(times_asked() == 2);
    int link = accepted(three);
    answers_one(link, c);
    answers_one(link, d);
    for (int i = 0; i < CROWD; i++)
        (void)close(fd[i]);
    int ends[] = {link, c, d, full, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

static void an_address_that_hangs_is_left_though_the_next_answer_has_another_order(void **state)
{
    (void)state;
    leave_one_that_hangs("127.0.0.3", "127.0.0.2", 0);
}

static void an_address_that_hangs_is_left_though_the_next_answer_has_another_beside_it(void **state)
{
    (void)state;
    leave_one_that_hangs("127.0.0.2", "127.0.0.3", 1);
}

static void that_all_addresses_hang_is_told_in_whatever_order_they_come(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3"), fd[2][CROWD];
    fill(two, "127.0.0.2", fd[0]);
    fill(three, "127.0.0.3", fd[1]);
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    int c = dial(&b);
    say(c, "share one\n");
    NET_AWAIT(times_asked() == 1);
    name_is("127.0.0.3", "127.0.0.2", 0);
    expect(c, "down\n");
    assert_why("the connection timed out");
    for (int i = 0; i < CROWD; i++) {
        (void)close(fd[0][i]);
        (void)close(fd[1][i]);
    }
    int ends[] = {c, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* It lets connect, and no more. */
static void a_server_that_is_mute_is_followed_by_the_next(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    b.svc.probe = probe;
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    int c = dial(&b);
    say(c, "share one\n");
    int mute = accepted(two);
    expect(mute, "version\r\n");
    atomic_store(&ahead_us, 6000000);
    expect(c, "down\n");
    pass(100);
    (void)close(served_by(three, c, "share"));
    int ends[] = {mute, c, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* The next link there, which begins so, and is not let in. */
static int refused_at(int server, const char *begins)
{
    int link = accepted(server);
    expect(link, begins);
    say(link, "ERROR\r\n");
    return link;
}

/* And where the name leads elsewhere by now, so is the first of those. */
static void a_successor_that_is_not_let_in_tries_the_next(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3"), four = listen_at("127.0.0.4");
    b.svc.probe = probe;
    start_by_name();
    int c = dial(&b), d = dial(&b), shared = served_by(two, c, "share");
    name_is("127.0.0.3", "127.0.0.4", 0);
    atomic_store(&ahead_us, 3000000);
    served_at(shared, d);
    int refused = refused_at(three, "version\r\n");
    pass(100);
    served_at(shared, c);
    int next = let_in(four);
    expect_end(shared);
    served_at(next, c);
    int ends[] = {refused, next, shared, c, d, two, three, four};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* Also where nobody shares: a link of a client's own tells it as well. */
static void a_clients_own_that_is_not_let_in_is_followed_by_the_next(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    char greeting[] = "let me in\n";
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    net_bench_call(&b, do_greet, greeting);
    int c = dial(&b);
    say(c, "up one\n");
    int refused = refused_at(two, greeting);
    expect(c, "down\n");
    pass(100);
    say(c, "up one\n");
    int own = accepted(three);
    expect(own, greeting);
    int ends[] = {own, refused, c, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* Nobody came through to it for a moment. */
static void a_clients_own_that_is_not_let_in_elsewhere_is_where_others_share(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    char greeting[] = "let me in\n";
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    net_bench_call(&b, do_greet, greeting);
    int c = dial(&b), d = dial(&b);
    say(c, "share one\n");
    int shared = accepted(two);
    expect(shared, greeting);
    say(shared, "WELCOME\r\n");
    expect(shared, "one\n");
    (void)close(two);
    say(d, "up one\n");
    int refused = accepted(three);
    two = listen_at("127.0.0.2");
    expect(refused, greeting);
    say(refused, "ERROR\r\n");
    expect(d, "down\n");
    pass(100);
    say(d, "up one\n");
    int own = accepted(two);
    int ends[] = {own, refused, shared, c, d, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* Nor does it matter that what another lane shares is there. */
static void a_clients_own_is_where_its_own_lane_shares(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    char greeting[] = "let me in\n";
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    net_bench_call(&b, do_greet, greeting);
    int c = dial(&b), d = dial(&b);
    say(c, "share one\n");
    int shared = accepted(two);
    expect(shared, greeting);
    say(shared, "WELCOME\r\n");
    expect(shared, "one\n");
    (void)close(two);
    int e = dial(&b);
    say(e, "other one\n");
    int other = accepted(three);
    expect(other, "one\n");
    two = listen_at("127.0.0.2");
    say(d, "up one\n");
    int refused = refused_at(three, greeting);
    expect(d, "down\n");
    pass(100);
    say(d, "up one\n");
    int own = accepted(two);
    int ends[] = {own, other, refused, shared, c, d, e, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* Its own are where what he shares is. */
static void who_is_served_stays_where_one_more_is_not_let_in(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    char greeting[] = "let me in\n";
    b.svc.probe = probe;
    start_by_name();
    name_is("127.0.0.2", "127.0.0.3", 0);
    int c = dial(&b), d = dial(&b), shared = served_by(two, c, "share");
    net_bench_call(&b, do_greet, greeting);
    int refused = refused_at(two, greeting);
    expect_end(refused);
    say(d, "up one\n");
    int own = accepted(two);
    int ends[] = {own, refused, shared, c, d, two, three};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

/* Of two old addresses one had refused, and one said nothing, when there were two new ones. The
 * first of those refuses: that is one of two, not two of two. */
static void failures_at_old_addresses_do_not_count_against_new_ones(void **state)
{
    (void)state;
    int full = listen_at("127.0.0.3"), five = listen_at("127.0.0.5"), fd[CROWD];
    timeout_us = 20000000;
    fill(full, "127.0.0.3", fd);
    name_is("127.0.0.2", "127.0.0.3", 0);
    start("server.example");
    int c = dial(&b), d = dial(&b);
    say(c, "up one\n");
    expect_silence(c, 2100);
    name_is("127.0.0.4", "127.0.0.5", 0);
    int link = served_by(five, d, "up");
    expect_silence(c, 0);
    for (int i = 0; i < CROWD; i++)
        (void)close(fd[i]);
    (void)close(link);
    (void)close(c);
    (void)close(d);
    (void)close(full);
    (void)close(five);
}

static uint32_t begun; /* upstream.round at an attempt */

static void do_begin(struct net_bench *n, void *arg)
{
    (void)arg;
    begun = n->svc.upstream->round;
}

/* arg: bool, whether others are held back by that. */
static void do_fail(struct net_bench *n, void *arg)
{
    const struct upstream_link l = {.up = n->svc.upstream, .round = begun};
    upstream_missed(&l, "refused");
    *(bool *)arg = n->svc.upstream->connects.step_us > 0;
}

static void do_look_whether_astray(struct net_bench *n, void *arg)
{
    *(bool *)arg = n->svc.upstream->astray[UPSTREAM_TEXT];
}

static bool is_astray(void)
{
    bool is = false;
    net_bench_call(&b, do_look_whether_astray, &is);
    return is;
}

/* It was under way when the name led elsewhere: of that it says nothing. */
static void an_attempt_at_an_old_address_fails_for_itself(void **state)
{
    (void)state;
    bool held_back = true;
    int two = listen_at("127.0.0.2");
    start_by_name();
    int c = dial(&b), d = dial(&b), shared = served_by(two, c, "share");
    net_bench_call(&b, do_begin, NULL);
    net_bench_call(&b, do_hold_back, NULL);
    name_is("127.0.0.3", NULL, 0);
    atomic_store(&ahead_us, 3000000);
    served_at(shared, d);
    NET_AWAIT(is_astray());
    net_bench_call(&b, do_fail, &held_back);
    assert_false(held_back);
    (void)close(shared);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static int six(const char *host, const char *service, const struct addrinfo *hints,
               struct addrinfo **list)
{
    struct addrinfo numeric = *hints;
    (void)host;
    numeric.ai_flags = AI_NUMERICHOST;
    for (int i = 1; i <= 6; i++) {
        char one[32];
        (void)snprintf(one, sizeof one, "127.0.0.%d", i);
        if (getaddrinfo(one, service, &numeric, list))
            return EAI_FAIL;
        list = &(*list)->ai_next;
    }
    return 0;
}

static void of_many_addresses_the_first_are_kept(void **state)
{
    struct resolved r;
    (void)state;
    resolve(six, "many", 1, false, &r);
    assert_int_equal(r.n, ADDRESSES);
    assert_null(r.why);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        struct sockaddr_in in;
        memcpy(&in, &r.addr[i], sizeof in);
        assert_int_equal(r.len[i], sizeof in);
        assert_int_equal(ntohl(in.sin_addr.s_addr), 0x7f000001 + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(an_old_address_is_not_used_for_ever),
        BENCH(an_address_that_is_found_again_is_no_old_one),
        BENCH(an_address_that_the_name_leads_to_no_more_is_not_used),
        BENCH(who_is_connected_stays_though_the_name_is_gone),
        BENCH(who_comes_is_where_the_name_leads_by_now),
        BENCH(who_shares_stays_while_nobody_is_there_yet),
        BENCH(who_comes_early_is_followed_all_the_same),
        BENCH(who_comes_while_a_name_is_being_looked_up_is_followed_all_the_same),
        BENCH(what_was_refused_elsewhere_is_forgotten_where_the_name_leads_back),
        BENCH(who_is_not_let_in_yet_where_the_name_led_takes_no_place),
        BENCH(of_a_name_with_many_addresses_any_will_do),
        BENCH(whoever_comes_where_nobody_can_say_asks_now_and_then),
        BENCH(a_successor_that_cannot_even_begin_is_not_asked_for_again_at_once),
        BENCH(a_lookup_that_fails_many_fails_once),
        BENCH(an_address_that_says_nothing_is_followed_by_the_next),
        BENCH(an_address_that_hangs_is_left_though_the_next_answer_has_another_order),
        BENCH(an_address_that_hangs_is_left_though_the_next_answer_has_another_beside_it),
        BENCH(that_all_addresses_hang_is_told_in_whatever_order_they_come),
        BENCH(a_server_that_is_mute_is_followed_by_the_next),
        BENCH(a_successor_that_is_not_let_in_tries_the_next),
        BENCH(a_clients_own_that_is_not_let_in_is_followed_by_the_next),
        BENCH(a_clients_own_that_is_not_let_in_elsewhere_is_where_others_share),
        BENCH(a_clients_own_is_where_its_own_lane_shares),
        BENCH(who_is_served_stays_where_one_more_is_not_let_in),
        BENCH(failures_at_old_addresses_do_not_count_against_new_ones),
        BENCH(an_attempt_at_an_old_address_fails_for_itself),
        cmocka_unit_test(of_many_addresses_the_first_are_kept),
    };
    return cmocka_run_group_tests_name("net/find", tests, NULL, NULL);
}
