/* What is said of a server: only what is true. */
#include "net/upstream/links.h"
#include "support/capture.h"
#include "unit/net/upstream_rig.h"

/* Servers close what is idle. Another one is opened, as one that is gone would not let it. */
static void an_idle_link_that_is_closed_says_nothing(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    (void)close(link);
    link = accepted(two);
    assert_true(is_up());
    (void)close(link); /* nobody has used it */
    assert_true(nobody_comes(two));
    assert_true(is_up());
    assert_why("");
    link = served_by(two, c, "share");
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

static void a_server_that_is_gone_is_noticed_though_nobody_asks(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    (void)close(two);
    (void)close(link);
    NET_AWAIT(!is_up());
    assert_why("refused");
    int64_t since = stats()->since_us;
    assert_true(since > 0);
    uint64_t errors = stats()->errors;
    pass(300); /* until it is tried again */
    say(c, "share again\n");
    NET_AWAIT(stats()->errors > errors);
    assert_int_equal(stats()->since_us, since); /* it was away before */
    (void)close(c);
}

/* Only who looks has it tried, and not more often than who asks. */
static void a_server_that_came_back_is_noticed_by_who_looks(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    net_bench_call(&b, do_look_behind, NULL);
    assert_true(nobody_comes(two)); /* nobody has asked for it yet */
    int c = dial(&b), link = served_by(two, c, "share");
    (void)close(two);
    (void)close(link);
    NET_AWAIT(!is_up());
    uint64_t errors = stats()->errors;
    for (int i = 0; i < 10; i++)
        net_bench_call(&b, do_look_behind, NULL);
    assert_true(stats()->errors <= errors + 1);
    two = listen_at("127.0.0.2");
    pass(300); /* until it may be tried */
    assert_true(nobody_comes(two));
    assert_false(is_up());
    net_bench_call(&b, do_look_behind, NULL);
    link = let_in(two);
    NET_AWAIT(is_up());
    net_bench_call(&b, do_look_behind, NULL);
    assert_true(nobody_comes(two));
    say(c, "share again\n");
    expect(link, "again\n");
    say(link, "1\r\n");
    expect(c, "1\r\n");
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* As a server that ends does: what it has let in goes on. */
static void a_server_that_lets_nobody_else_in_is_there_while_the_shared_link_is(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), own = dial(&b), link = served_by(two, c, "share");
    (void)close(two);
    say(own, "up one\n");
    expect(own, "down\n");
    assert_why("refused");
    assert_true(is_up());
    assert_int_equal(stats()->unowned, 1); /* nothing else tells it */
    assert_true(stats()->unowned_us > 0);
    served_at(link, c);
    two = listen_at("127.0.0.2");
    pass(300); /* until it may be tried */
    int other = served_by(two, own, "up");
    assert_true(stats()->unowned_us == 0);
    (void)close(other);
    (void)close(two);
    (void)close(link);
    (void)close(own);
    (void)close(c);
}

/* That what is shared still serves, which is asked then, says nothing of others. */
static void a_server_that_is_mute_to_others_is_told_while_the_shared_link_serves(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    char greeting[] = "let me in\n";
    timeout_us = 300000;
    b.svc.probe = probe;
    start("127.0.0.2");
    int c = dial(&b), own = dial(&b), shared = served_by(two, c, "share");
    net_bench_call(&b, do_greet, greeting);
    int next = accepted(two);
    expect(next, greeting);
    say(next, "WELCOME\r\n");
    expect(next, "version\r\n");
    say(next, "VERSION 1\r\n");
    expect_end(shared);
    say(own, "up one\n");
    int mute = accepted(two);
    expect(mute, greeting);
    expect(own, "down\n");
    expect(next, "version\r\n");
    say(next, "VERSION 1\r\n");
    served_at(next, c);
    assert_true(is_up());
    assert_true(stats()->unowned_us > 0);
    int ends[] = {mute, next, shared, own, c, two};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)close(ends[i]);
}

static void a_link_that_owes_and_is_closed_is_lost(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), own = dial(&b);
    int link = served_by(two, c, "share"), other = served_by(two, own, "up");
    say(c, "share more\n");
    expect(link, "more\n");
    (void)close(link);
    NET_AWAIT(!is_up());
    assert_why("it closed the connection");
    say(own, "up again\n"); /* whatever is answered says that it is there */
    expect(other, "again\n");
    say(other, "OK\r\n");
    expect(own, "OK\r\n");
    assert_true(is_up());
    (void)close(other);
    (void)close(own);
    (void)close(c);
    (void)close(two);
}

#define LARGE ((size_t)100 << 10)

/* c has a reply on the shared link old that has it replaced, while slow waits on it. */
static void outgrow(int old, int c, int slow)
{
    static char value[LARGE + 1];
    memset(value, 'x', LARGE);
    say(c, "fetch big\n");
    expect(old, "big\n");
    say(slow, "share slow\n");
    expect(old, "slow\n");
    say(old, "VALUE big 0 102400\r\n");
    say(old, value);
    say(old, "\r\nEND\r\n");
}

/* The one that took its place is there. */
static void a_link_that_was_replaced_says_nothing_of_the_server(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    timeout_us = 400000;
    start("127.0.0.2");
    int c = dial(&b), slow = dial(&b), old = served_by(two, c, "share");
    outgrow(old, c, slow);
    int new = accepted(two);
    pass(600); /* in vain: no reply to slow */
    expect_end(slow);
    expect_end(old);
    assert_true(is_up());
    (void)close(new);
    (void)close(old);
    (void)close(slow);
    (void)close(c);
    (void)close(two);
}

static void do_look_at_fault(struct net_bench *n, void *arg)
{
    (void)arg;
    (void)snprintf(why, sizeof why, "%s", upstream_fault(&n->svc));
}

/* own asks on a link of its own, which keeps silent until its time is over. */
static void has_no_answer(int server, int own)
{
    say(own, "up slow\n");
    int link = accepted(server);
    expect(link, "slow\n");
    expect_end(own);
    (void)close(link);
    (void)close(own);
}

/* Where all have links of their own, nobody else would notice a server that hangs. */
static void who_has_no_answer_on_a_link_of_his_own_has_a_shared_one_tried(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    timeout_us = 300000;
    start("127.0.0.2");
    has_no_answer(two, dial(&b));
    assert_why("no reply in time"); /* already: the page has it */
    assert_true(stats()->faults == 1 && stats()->faulty_us > 0);
    net_bench_call(&b, do_look_at_fault, NULL);
    assert_string_equal(why, "no reply in time");
    int link = let_in(two);
    NET_AWAIT(is_up());
    (void)close(link);
    (void)close(two);
}

static void who_has_no_answer_on_a_link_of_his_own_has_the_shared_one_asked(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    timeout_us = 300000;
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    has_no_answer(two, dial(&b));
    expect(link, "version\r\n");
    say(c, "share more\n"); /* waits for that, as for any link that is not let in yet */
    say(link, "VERSION 1\r\n");
    expect(link, "more\n");
    say(link, "OK\r\n");
    expect(c, "OK\r\n");
    assert_true(is_up());
    assert_int_equal(stats()->faults, 1);
    has_no_answer(two, dial(&b));
    assert_int_equal(stats()->faults, 2);
    expect(link, "version\r\n"); /* in vain */
    NET_AWAIT(!is_up());
    assert_why("no reply in time");
    expect_end(link);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* Of memcached there is one for binary, too. */
static void each_shared_link_is_asked(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    timeout_us = 300000;
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b);
    int link = served_by(two, c, "share"), other = served_by(two, d, "other");
    has_no_answer(two, dial(&b));
    expect(link, "version\r\n");
    expect(other, "version\r\n");
    (void)close(link);
    (void)close(other);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

/* However long nobody has used it. */
static void a_shared_link_that_is_asked_has_all_of_the_time(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    timeout_us = 800000;
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    has_no_answer(two, dial(&b));
    expect(link, "version\r\n");
    pass(300); /* it is looked at each 200 */
    say(link, "VERSION 1\r\n");
    served_at(link, c);
    assert_true(is_up());
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* What is due on it tells, and what is there of a reply is no answer to the question. */
static void a_shared_link_on_which_something_is_due_is_not_asked(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    timeout_us = 300000;
    start("127.0.0.2");
    int c = dial(&b), own = dial(&b), link = served_by(two, c, "share");
    say(own, "up slow\n");
    int other = accepted(two);
    pass(150);
    say(c, "share more\n");
    expect(link, "more\n");
    expect_end(own);
    say(link, "OK\r\n");
    expect(c, "OK\r\n");
    served_at(link, c);
    assert_true(is_up());
    (void)close(other);
    (void)close(link);
    (void)close(own);
    (void)close(c);
    (void)close(two);
}

static void do_find_next(struct net_bench *n, void *arg)
{
    *(bool *)arg = n->svc.upstream->next[UPSTREAM_TEXT] != NULL;
}

static bool has_next(void)
{
    bool is = true;
    net_bench_call(&b, do_find_next, &is);
    return is;
}

/* One that is still being let in shows nothing. */
static void a_link_whose_successor_is_not_there_yet_is_lost(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.probe = probe;
    timeout_us = 60000000; /* not by the probe either */
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), slow = dial(&b), old = served_by(two, c, "share");
    outgrow(old, c, slow);
    int new = let_in(two);
    NET_AWAIT(!has_next());
    served_at(new, d);
    (void)close(new);
    int next = accepted(two);
    expect(next, "version\r\n");
    assert_true(is_up());
    (void)close(old);
    NET_AWAIT(!is_up());
    (void)close(next);
    (void)close(slow);
    (void)close(d);
    (void)close(c);
    (void)close(two);
}

/* Who asks has the login tried, at once. */
static void login_is_refused(int server, int client, const char *login)
{
    say(client, "share x\n");
    int link = accepted(server);
    expect(link, login);
    say(link, "GO AWAY\r\n");
    expect(client, "down\n");
    (void)close(link);
}

/* Whoever has corrected a password wants to know whether it is the right one, by now. */
static void what_comes_of_another_password_is_tried_and_told_at_once(void **state)
{
    (void)state;
    char one[] = "hello one\n", two[] = "hello two\n";
    unsigned told = 0;
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    net_bench_call(&b, do_greet, one);
    int c = dial(&b);
    capture_begin();
    for (int ms = 60; ms < 500; ms *= 2) {
        login_is_refused(server, c, one);
        pass(ms < 300 ? ms : 0); /* it is held back for as long */
    }
    net_bench_call(&b, do_greet, two);
    login_is_refused(server, c, two);
    for (const char *at = capture_end(); (at = strstr(at, "upstream lost")); at++)
        told++;
    assert_int_equal(told, 2);
    (void)close(c);
    (void)close(server);
}

static void do_doubt(struct net_bench *n, void *arg)
{
    (void)arg;
    upstream_doubt(n->svc.upstream);
}

/* The link of c, which shares it, with what it begins with. */
static int let_in_with(int server, int c, const char *login)
{
    say(c, "share one\n");
    int link = accepted(server);
    expect(link, login);
    say(link, "WELCOME\r\n");
    expect(link, "version\r\n");
    return link;
}

/* It serves until it says otherwise. */
static void another_password_leaves_a_link_that_is_asked_whether_it_serves(void **state)
{
    (void)state;
    char one[] = "hello one\n", two[] = "hello two\n";
    int server = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    net_bench_call(&b, do_greet, one);
    int c = dial(&b), link = let_in_with(server, c, one);
    say(link, "VERSION 1\r\n");
    expect(link, "one\n");
    say(link, "OK\r\n");
    expect(c, "OK\r\n");
    net_bench_call(&b, do_doubt, NULL);
    expect(link, "version\r\n");
    net_bench_call(&b, do_greet, two);
    say(link, "VERSION 1\r\n");
    int next = accepted(server); /* now, as it still does */
    expect(next, two);
    served_at(link, c);
    (void)close(next);
    (void)close(link);
    (void)close(c);
    (void)close(server);
}

/* It has served nobody, and with that password it would not. */
static void another_password_ends_a_link_that_was_not_let_in_yet(void **state)
{
    (void)state;
    char one[] = "hello one\n", two[] = "hello two\n";
    int server = listen_at("127.0.0.2");
    b.svc.probe = probe;
    start("127.0.0.2");
    net_bench_call(&b, do_greet, one);
    int c = dial(&b), link = let_in_with(server, c, one);
    net_bench_call(&b, do_greet, two);
    expect_end(link);
    (void)close(link);
    link = accepted(server);
    expect(link, two);
    (void)close(link);
    (void)close(c);
    (void)close(server);
}

/* It serves; what it says is for the client, and for whoever looks. */
static void errors_of_the_servers_own_are_counted_and_told(void **state)
{
    static const char said[] = "SERVER_ERROR out of memory storing object\r\nERROR\r\n"
                               "SERVER_ERROR out of memory storing object\r\n";
    static const struct span faults[] = {SPAN("SERVER_ERROR out of memory"), SPAN("")};
    (void)state;
    b.svc.faults = faults;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    assert_int_equal(stats()->faults, 0);
    assert_int_equal(stats()->faulty_us, 0);
    say(c, "share one\nshare two\nshare three\n");
    expect(link, "one\ntwo\nthree\n");
    say(link, said);
    expect(c, said);
    assert_int_equal(stats()->faults, 2);
    assert_true(stats()->faulty_us > 0 && is_up());
    net_bench_call(&b, do_look_at_fault, NULL);
    assert_string_equal(why, "it answers: SERVER_ERROR out of memory storing object");
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(an_idle_link_that_is_closed_says_nothing),
        BENCH(a_server_that_is_gone_is_noticed_though_nobody_asks),
        BENCH(a_server_that_came_back_is_noticed_by_who_looks),
        BENCH(a_server_that_lets_nobody_else_in_is_there_while_the_shared_link_is),
        BENCH(a_server_that_is_mute_to_others_is_told_while_the_shared_link_serves),
        BENCH(a_link_that_owes_and_is_closed_is_lost),
        BENCH(a_link_that_was_replaced_says_nothing_of_the_server),
        BENCH(a_link_whose_successor_is_not_there_yet_is_lost),
        BENCH(who_has_no_answer_on_a_link_of_his_own_has_a_shared_one_tried),
        BENCH(who_has_no_answer_on_a_link_of_his_own_has_the_shared_one_asked),
        BENCH(each_shared_link_is_asked),
        BENCH(a_shared_link_that_is_asked_has_all_of_the_time),
        BENCH(a_shared_link_on_which_something_is_due_is_not_asked),
        BENCH(errors_of_the_servers_own_are_counted_and_told),
        BENCH(what_comes_of_another_password_is_tried_and_told_at_once),
        BENCH(another_password_leaves_a_link_that_is_asked_whether_it_serves),
        BENCH(another_password_ends_a_link_that_was_not_let_in_yet),
    };
    return cmocka_run_group_tests_name("net/reach", tests, NULL, NULL);
}
