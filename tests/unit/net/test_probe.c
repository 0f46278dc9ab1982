/* Whether a server serves, or only answers: the probe of shared links, and what replies say. */
#include "upstream_rig.h"

static const struct span refusals[] = {SPAN("CLIENT_ERROR unauthenticated"), SPAN("")};

static int probing(void **state)
{
    int r = begin(state);
    b.svc.probe = probe;
    b.svc.refusals = refusals;
    b.svc.alien = SPAN("-");
    return r;
}

static void nothing_goes_on_a_shared_link_before_its_probe_is_answered(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "share one\n");
    int link = accepted(two);
    expect(link, "version\r\n");
    expect_silence(link, 100);
    assert_false(is_up());
    say(link, "VERSION");
    expect_silence(link, 100);
    assert_false(is_up());
    say(link, " 1\r\n");
    expect(link, "one\n");
    assert_true(is_up());
    say(link, "1\r\n");
    expect(c, "1\r\n");
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void a_server_that_refuses_the_probe_is_down_and_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *says, *why;
    } all[] = {
        {"CLIENT_ERROR unauthenticated\r\n",
         "it answers, but refuses: CLIENT_ERROR unauthenticated"},
        {"ERROR Too many open connections\r\n", "it answers, but refuses: ERROR Too many open"},
        {"-ERR unknown command\r\n", "it answers, but refuses: -ERR unknown"},
        {"VERSION 1\r\nVERSION 1\r\n", "it sent something unasked"},
        {"", "it answers nothing, and closes the connection"},
    };
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pass(1050);
        say(c, "share secret\n");
        int link = accepted(two);
        expect(link, "version\r\n");
        say(link, all[i].says);
        if (!all[i].says[0])
            (void)close(link);
        expect(c, "down\n");
        assert_why(all[i].why);
        assert_false(is_up());
        assert_int_equal(stats()->errors, i + 1);
        say(c, "share secret\n"); /* not tried again at once */
        expect(c, "down\n");
        assert_true(nobody_comes(two));
        if (all[i].says[0]) {
            expect_end(link);
            (void)close(link);
        }
    }
    (void)close(c);
    (void)close(two);
}

/* As of memcached -Y: who logs in on a link of his own is no matter of others. */
static void links_of_ones_own_are_not_held_back_by_it(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b);
    say(c, "share one\n");
    int link = accepted(two);
    say(link, "CLIENT_ERROR unauthenticated\r\n");
    expect(c, "down\n");
    int own = served_by(two, d, "up");
    assert_true(is_up());
    (void)close(link);
    (void)close(own);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* Whether it lets in nobody, or one who has not logged in himself, is told by a shared one. */
static void who_is_refused_where_nobody_is_served_has_a_shared_one_tried(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), e = dial(&b);
    int served = served_by(two, c, "up");
    say(d, "up one\n");
    int own = accepted(two);
    expect(own, "one\n");
    say(own, "CLIENT_ERROR unauthenticated\r\n");
    expect(d, "CLIENT_ERROR unauthenticated\r\n");
    assert_true(nobody_comes(two)); /* it serves another */
    (void)close(c);
    expect_end(served);
    say(d, "up one\n");
    expect(own, "one\n");
    say(own, "CLIENT_ERROR unauthenticated\r\n");
    expect(d, "CLIENT_ERROR unauthenticated\r\n");
    assert_true(nobody_comes(two)); /* once for each connection */
    say(e, "up one\n");
    int other = accepted(two);
    expect(other, "one\n");
    say(other, "CLIENT_ERROR unauthenticated\r\n");
    int link = accepted(two);
    expect(link, "version\r\n");
    say(link, "CLIENT_ERROR unauthenticated\r\n");
    NET_AWAIT(!is_up());
    (void)close(link);
    (void)close(other);
    (void)close(own);
    (void)close(served);
    (void)close(d);
    (void)close(e);
    (void)close(two);
}

static void do_log_in(struct net_bench *n, void *arg)
{
    (void)arg;
    struct upstream_greeting g = {
        .bytes = SPAN("hello\n"), .kind = FRAME_MC_LINE, .ok = SPAN("WELCOME\r\n")};
    assert_true(upstream_greet(&n->svc, UPSTREAM_TEXT, &g));
}

static void the_probe_follows_the_login(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    net_bench_call(&b, do_log_in, NULL);
    int c = dial(&b);
    say(c, "share one\n");
    int link = accepted(two);
    expect(link, "hello\n");
    expect_silence(link, 50);
    say(link, "WELCOME\r\n");
    expect(link, "version\r\n");
    expect_silence(link, 50);
    assert_false(is_up());
    say(link, "VERSION 1\r\n");
    expect(link, "one\n");
    say(link, "1\r\n");
    expect(c, "1\r\n");
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* Who asks gets a link, or is told at once that the server is not tried yet. */
static bool is_tried(int server, int client, const char *text)
{
    struct pollfd p[] = {{.fd = server, .events = POLLIN}, {.fd = client, .events = POLLIN}};
    say(client, text);
    assert_true(poll(p, 2, 10000) > 0);
    if (p[0].revents)
        return true;
    expect(client, "down\n");
    return false;
}

/* How long it takes until five have been refused, however often somebody asks. */
static int64_t five_are_refused(int server, int client, const char *text, const char *with)
{
    int64_t began_us = clock_mono_us(clock_system());
    for (int i = 0; i < 5; i++) {
        while (!is_tried(server, client, text))
            pass(1);
        int link = accepted(server);
        say(link, with);
        expect(client, "down\n");
        (void)close(link);
    }
    return clock_mono_us(clock_system()) - began_us;
}

/* All but the words that are listed let in, but they have to be a reply: what is none would leave
 * that to the first who asks. */
static void what_is_no_reply_to_the_probe_lets_nobody_in(void **state)
{
    static const struct span no[] = {SPAN("-NOAUTH"), SPAN("")};
    static const struct upstream_greeting ping[UPSTREAM_SHARED] = {
        {.bytes = SPAN("PING\r\n"), .kind = FRAME_RESP, .no = no}};
    static char long_one[2200] = "+";
    (void)state;
    memset(long_one + 1, 'x', sizeof long_one - 2);
    const char *const all[] = {">1\r\n+x\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", long_one};
    int two = listen_at("127.0.0.2");
    b.svc.probe = ping;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        while (!is_tried(two, c, "share one\n"))
            pass(1);
        int link = accepted(two);
        expect(link, "PING\r\n");
        say(link, all[i]);
        expect(c, "down\n");
        assert_why("it does not speak the protocol");
        (void)close(link);
    }
    (void)close(c);
    (void)close(two);
}

#define FOUR_WAITS ((INT64_C(50) + 100 + 200 + 400) * 1000)

static void a_server_that_refuses_is_tried_ever_more_seldom(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    assert_true(five_are_refused(two, c, "share one\n", "CLIENT_ERROR no\r\n") >= FOUR_WAITS);
    (void)close(c);
    (void)close(two);
}

/* Each would be asked for the same. */
static void a_login_that_is_refused_holds_back_links_of_ones_own(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    net_bench_call(&b, do_log_in, NULL);
    int c = dial(&b);
    assert_true(five_are_refused(two, c, "up one\n", "GO AWAY\r\n") >= FOUR_WAITS);
    (void)close(c);
    (void)close(two);
}

static void a_refusal_on_a_link_of_ones_own_is_no_sign_of_service(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "up one\n");
    int own = accepted(two);
    expect(own, "one\n");
    say(own, "CLIENT_ERR");
    pass(50);
    assert_false(is_up());
    say(own, "OR unauthenticated\r\n");
    expect(c, "CLIENT_ERROR unauthenticated\r\n"); /* the client's business all the same */
    assert_false(is_up());
    assert_why("it answers, but refuses: CLIENT_ERROR unauthenticated");
    say(c, "up login\n");
    expect(own, "login\n");
    say(own, "STORED\r\n");
    expect(c, "STORED\r\n");
    assert_true(is_up());
    int d = dial(&b);
    say(d, "up two\n"); /* of a server that serves it says nothing */
    int other = accepted(two);
    say(other, "CLIENT_ERROR unauthenticated\r\n");
    expect(d, "CLIENT_ERROR unauthenticated\r\n");
    assert_true(is_up());
    assert_int_equal(stats()->unowned, 0); /* nobody shares */
    (void)close(other);
    (void)close(own);
    (void)close(d);
    (void)close(c);
    (void)close(two);
}

static void refuse_at(int link, int client, const char *text)
{
    say(client, "up ");
    say(client, text);
    expect(link, text);
    say(link, "CLIENT_ERROR unauthenticated\r\n");
    expect(client, "CLIENT_ERROR unauthenticated\r\n");
}

static void who_is_refused_beside_a_shared_link_counts_once_until_served(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), e = dial(&b);
    int shared = served_by(two, c, "share"), before = served_by(two, e, "up");
    say(d, "up one\n");
    int own = accepted(two);
    expect(own, "one\n");
    say(own, "CLIENT_ERROR unauthenticated\r\n");
    expect(d, "CLIENT_ERROR unauthenticated\r\n");
    refuse_at(own, d, "two\n");
    assert_int_equal(stats()->unowned, 1);
    say(e, "up three\n"); /* who was let in earlier says nothing of the next */
    expect(before, "three\n");
    say(before, "STORED\r\n");
    expect(e, "STORED\r\n");
    assert_true(stats()->unowned_us > 0);
    say(d, "up login\n");
    expect(own, "login\n");
    say(own, "STORED\r\n");
    expect(d, "STORED\r\n");
    assert_true(stats()->unowned_us == 0);
    refuse_at(own, d, "four\n"); /* the words of something else */
    assert_int_equal(stats()->unowned, 1);
    (void)close(before);
    (void)close(own);
    (void)close(shared);
    (void)close(e);
    (void)close(d);
    (void)close(c);
    (void)close(two);
}

/* Its error may have in it what the client said, which is no business of the log's. */
static void an_error_of_another_kind_of_server_is_not_quoted(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), before = served_by(two, d, "up");
    assert_true(is_up());
    say(c, "up app secret\n");
    int own = accepted(two);
    expect(own, "app secret\n");
    say(own, "-ERR unknown command 'app', with args beginning with: 'secret'\r\n");
    expect(c, "-ERR unknown command 'app', with args beginning with: 'secret'\r\n");
    assert_false(is_up());
    assert_why("it does not speak the protocol");
    (void)close(before);
    (void)close(own);
    (void)close(d);
    (void)close(c);
    (void)close(two);
}

static void who_speaks_something_else_on_a_link_of_ones_own_is_down(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.unasked = FRAME_MC_BINARY;
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b);
    int own = served_by(two, d, "up");
    (void)close(own);
    assert_true(is_up());
    say(c, "mute one\n");
    own = accepted(two);
    expect(own, "one\n");
    say(own, "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_end(own);
    assert_false(is_up());
    assert_why("it does not speak the protocol");
    (void)close(own);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void a_part_of_a_reply_is_none(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = NULL;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "share one\n");
    int link = accepted(two);
    expect(link, "one\n");
    say(link, "STO");
    pass(50);
    assert_false(is_up());
    say(link, "RED\r\n");
    expect(c, "STORED\r\n");
    assert_true(is_up());
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

#define PROBED(f) cmocka_unit_test_setup_teardown(f, probing, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROBED(nothing_goes_on_a_shared_link_before_its_probe_is_answered),
        PROBED(a_server_that_refuses_the_probe_is_down_and_says_why),
        PROBED(links_of_ones_own_are_not_held_back_by_it),
        PROBED(who_is_refused_where_nobody_is_served_has_a_shared_one_tried),
        PROBED(the_probe_follows_the_login),
        PROBED(what_is_no_reply_to_the_probe_lets_nobody_in),
        PROBED(a_server_that_refuses_is_tried_ever_more_seldom),
        PROBED(a_login_that_is_refused_holds_back_links_of_ones_own),
        PROBED(a_refusal_on_a_link_of_ones_own_is_no_sign_of_service),
        PROBED(who_is_refused_beside_a_shared_link_counts_once_until_served),
        PROBED(an_error_of_another_kind_of_server_is_not_quoted),
        PROBED(who_speaks_something_else_on_a_link_of_ones_own_is_down),
        PROBED(a_part_of_a_reply_is_none),
    };
    return cmocka_run_group_tests_name("net/probe", tests, NULL, NULL);
}
