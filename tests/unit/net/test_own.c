/* Links of clients' own: who makes room for another's. */
#include "net/upstream/links.h"
#include "upstream_rig.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Two parties: who comes by TCP, and who by UNIX. */
static void a_party_of_guests_has_no_more_than_half_of_them_against_others(void **state)
{
    (void)state;
    struct net_bench inside = {.door = b.door};
    int two = listen_at("127.0.0.2"), c[5], link[5];
    owned_max = 5;
    start("127.0.0.2");
    net_bench_inside(&b, &inside);
    for (int i = 0; i < 5; i++)
        link[i] = served_by(two, c[i] = dial(&b), "up");
    served_at(link[0], c[0]); /* it is not the one that was silent longest */
    int own = dial(&b), in[3], out[3];
    say(own, "up one\n");
    expect(own, "down\n"); /* of those who have them all, nobody takes another's */
    out[0] = served_by(two, in[0] = dial(&inside), "up");
    expect_end(c[1]);
    expect_end(link[1]);
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 1);
    out[1] = served_by(two, in[1] = dial(&inside), "up");
    expect_end(c[2]);
    say(in[2] = dial(&inside), "up one\n");
    expect(in[2], "down\n"); /* three and two: they would only take turns */
    say(own, "up one\n");
    expect(own, "down\n");
    served_at(link[0], c[0]);
    served_at(link[3], c[3]);
    served_at(out[0], in[0]);
    served_at(out[1], in[1]);
    for (int i = 0; i < 5; i++) {
        (void)close(c[i]);
        (void)close(link[i]);
    }
    for (int i = 0; i < 3; i++)
        (void)close(in[i]);
    (void)close(out[0]);
    (void)close(out[1]);
    (void)close(own);
    (void)close(two);
}

/* Each process that comes by UNIX is a party of its own. */
static void a_party_of_guests_may_have_half_of_them(void **state)
{
    (void)state;
    struct net_bench inside = {.door = b.door};
    int two = listen_at("127.0.0.2"), c[2], link[4];
    owned_max = 4;
    start("127.0.0.2");
    net_bench_inside(&b, &inside);
    for (int i = 0; i < 2; i++)
        link[i] = served_by(two, c[i] = dial(&b), "up");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; pid == 0 && i < 2; i++)
        say(dial(&inside), "up one\n");
    if (pid == 0)
        for (;;)
            (void)pause();
    for (int i = 2; i < 4; i++)
        expect(link[i] = accepted(two), "one\n");
    int third = dial(&inside);
    say(third, "up one\n");
    expect(third, "down\n");
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 0);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 4; i++)
        (void)close(link[i]);
    (void)close(c[0]);
    (void)close(c[1]);
    (void)close(third);
    (void)close(two);
}

/* One who has logged in and has a link of his own. */
static int with_link(const struct net_bench *by, int server, int *link)
{
    int fd = dial(by);
    say(fd, "login 1\n");
    expect(fd, "welcome\n");
    *link = served_by(server, fd, "up");
    return fd;
}

/* Of the same user, too: each process that comes by UNIX is a party of its own. */
static void who_has_logged_in_makes_room_as_guests_do(void **state)
{
    (void)state;
    struct net_bench inside = {.door = b.door};
    int two = listen_at("127.0.0.2"), c[4], link[4];
    owned_max = 3;
    b.strangers = true;
    start("127.0.0.2");
    net_bench_inside(&b, &inside);
    for (int i = 0; i < 3; i++)
        c[i] = with_link(&b, two, &link[i]);
    c[3] = with_link(&inside, two, &link[3]);
    expect_end(c[0]);
    assert_int_equal(net_bench_ended(&b, NET_END_SLOT), 1);
    for (int i = 0; i < 4; i++) {
        (void)close(c[i]);
        (void)close(link[i]);
    }
    (void)close(two);
}

static int greeted(int server, const char *greeting)
{
    int link = accepted(server);
    expect(link, greeting);
    say(link, "WELCOME\r\n");
    return link;
}

static char first[] = "first\n", second[] = "second\n"; /* greetings */

/* c shares a link, which it returns, and d, whose request is not answered yet, has all others. */
static int all_taken(int server, int *c, int *d, int *own)
{
    owned_max = 1;
    start("127.0.0.2");
    net_bench_call(&b, do_greet, first);
    *c = dial(&b);
    *d = dial(&b);
    say(*c, "share one\n");
    int shared = greeted(server, first);
    expect(shared, "one\n");
    say(shared, "1\r\n");
    expect(*c, "1\r\n");
    say(*d, "up one\n");
    *own = greeted(server, first);
    expect(*own, "one\n");
    return shared;
}

/* One that clients share has begun with another login, and its successor had no room at first. */
static void the_room_of_one_that_has_gone_is_the_successors(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c, d, own, shared = all_taken(two, &c, &d, &own);
    net_bench_call(&b, do_greet, second);
    assert_true(nobody_comes(two));
    (void)close(d);
    int next = greeted(two, second);
    expect_end(shared);
    served_at(next, c);
    (void)close(next);
    (void)close(own);
    (void)close(shared);
    (void)close(c);
    (void)close(two);
}

static void do_make_loud(struct net_bench *n, void *arg)
{
    (void)arg;
    CONTAINER(n->net->all.next, struct conn, all)->relay->loud = true;
}

/* It was being opened when the login changed, for one who asks for much. */
static void the_room_of_one_that_was_refused_is_the_successors(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), c, d;
    owned_max = 2;
    start("127.0.0.2");
    net_bench_call(&b, do_greet, first);
    say(c = dial(&b), "share one\n");
    int shared = greeted(two, first);
    expect(shared, "one\n");
    say(shared, "1\r\n");
    expect(c, "1\r\n");
    net_bench_call(&b, do_make_loud, NULL);
    say(d = dial(&b), "up one\n");
    int own = greeted(two, first);
    expect(own, "one\n");
    say(c, "share two\n");
    int optional = accepted(two);
    expect(optional, first);
    net_bench_call(&b, do_greet, second);
    assert_true(nobody_comes(two));
    say(optional, "NO\r\n");
    expect(shared, "two\n");
    int next = greeted(two, second);
    (void)close(next);
    (void)close(optional);
    (void)close(own);
    (void)close(d);
    (void)close(shared);
    (void)close(c);
    (void)close(two);
}

/* As where an upgrade is tried in vain: who has gone meanwhile is noticed then. */
static void room_that_came_while_all_rest_is_the_successors_too(void **state)
{
    (void)state;
    bool on = true, off = false;
    int two = listen_at("127.0.0.2"), c, d, own, shared = all_taken(two, &c, &d, &own);
    say(own, "1\r\n");
    expect(d, "1\r\n");
    net_bench_call(&b, do_greet, second);
    net_bench_call(&b, do_rest, &on);
    (void)close(d);
    expect_end(own);
    assert_true(nobody_comes(two));
    net_bench_call(&b, do_rest, &off);
    int next = greeted(two, second);
    expect_end(shared);
    served_at(next, c);
    (void)close(next);
    (void)close(own);
    (void)close(shared);
    (void)close(c);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(a_party_of_guests_has_no_more_than_half_of_them_against_others),
        BENCH(a_party_of_guests_may_have_half_of_them),
        BENCH(who_has_logged_in_makes_room_as_guests_do),
        BENCH(the_room_of_one_that_has_gone_is_the_successors),
        BENCH(the_room_of_one_that_was_refused_is_the_successors),
        BENCH(room_that_came_while_all_rest_is_the_successors_too),
    };
    return cmocka_run_group_tests_name("net/own", tests, NULL, NULL);
}
