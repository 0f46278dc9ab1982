/* Requests of many words: what all together have of them under way, over all links. The test plays
 * the server. */
#include "net/private.h"
#include "net/upstream/links.h"
#include "unit/net/upstream_rig.h"

#define FIT   5u /* requests of MANY_WORDS that are under way at once */
#define MANY  (FIT + 3)
#define KNOWN "known"

static int server, shared, client[MANY];

/* n clients that share a link, and have been served there. */
static void begin_clients(size_t n)
{
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
    for (size_t i = 0; i < n; i++) {
        client[i] = dial(&b);
        say(client[i], "share " KNOWN "\n");
        shared = i == 0 ? let_in(server) : shared;
        expect(shared, KNOWN "\n");
        say(shared, "OK\r\n");
        expect(client[i], "OK\r\n");
    }
}

static void leave(size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)close(client[i]);
    (void)close(shared);
    (void)close(server);
}

/* The loop has seen what it says. */
static void asks(size_t i, const char *how, const char *what)
{
    char text[64];
    uint64_t turns = net_bench_turns(&b);
    (void)snprintf(text, sizeof text, "%s %s\n", how, what);
    say(client[i], text);
    NET_AWAIT(net_bench_turns(&b) > turns);
}

static bool hears_nothing(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 100) == 0;
}

/* The first n clients, each on a link of its own. */
static void ask_on_own_links(int *own, size_t n, const char *how, const char *what)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s\n", what);
    for (size_t i = 0; i < n; i++) {
        asks(i, how, what);
        own[i] = accepted(server);
        expect(own[i], text);
    }
}

struct state {
    uint64_t words;
    bool crowded;
};

static void do_look_at_it(struct net_bench *n, void *arg)
{
    struct state *s = arg;
    *s = (struct state){.words = 0};
    for (int i = 0; i < CROWDS; i++) {
        s->words += n->svc.upstream->crowd[i].words;
        s->crowded |= !link_empty(&n->svc.upstream->crowd[i].line);
    }
}

static struct state state_now(void)
{
    struct state s;
    net_bench_call(&b, do_look_at_it, &s);
    return s;
}

/* All who ask for much, the last three of them in vain. */
static void fill(const char *how)
{
    for (size_t i = 0; i < MANY; i++) {
        asks(i, how, i % 2 ? "#odd" : "#even");
        if (i < FIT)
            expect(shared, i % 2 ? "#odd\n" : "#even\n");
    }
    assert_int_equal(state_now().words, FIT * MANY_WORDS);
    assert_true(state_now().crowded);
    assert_true(hears_nothing(shared));
}

static void answer(size_t i)
{
    say(shared, "OK\r\n");
    expect(client[i], "OK\r\n");
}

/* Who waits goes on as soon as there is room, in his order. */
static void who_asks_for_much_waits_for_the_others(const char *how)
{
    begin_clients(MANY);
    fill(how);
    asks(0, how, "#again"); /* as soon as it has its reply, and behind those who wait */
    answer(0);
    expect(shared, "#odd\n"); /* the sixth */
    assert_true(hears_nothing(shared));
    answer(1);
    expect(shared, "#even\n");
    answer(2);
    expect(shared, "#odd\n");
    answer(3);
    expect(shared, "#again\n");
    for (size_t i = 4; i < MANY; i++)
        answer(i);
    answer(0);
    assert_int_equal(state_now().words, 0);
    assert_false(state_now().crowded);
    leave(MANY);
}

static void who_asks_for_much_waits(void **state)
{
    (void)state;
    who_asks_for_much_waits_for_the_others("share");
}

static void and_so_where_it_is_forwarded_at_once(void **state)
{
    (void)state;
    who_asks_for_much_waits_for_the_others("quick");
}

static void who_asks_for_little_goes_by(void **state)
{
    (void)state;
    begin_clients(MANY);
    int little = dial(&b);
    served_at(shared, little);
    fill("quick");
    say(little, "share more\n");
    expect(shared, "more\n");
    say(little, "quick more\n");
    expect(shared, "more\n");
    assert_int_equal(state_now().words, FIT * MANY_WORDS);
    say(little, "quick #much\n");
    assert_true(hears_nothing(shared));
    (void)close(little);
    leave(MANY);
}

/* Where many ask for little, a round of them all takes the server longer, and much is more. */
static void beside_many_who_ask_for_little_there_is_room_for_more(void **state)
{
    enum {
        LITTLE = 130
    };
    int little[LITTLE];
    (void)state;
    b.conf.connections = 2 * LITTLE;
    begin_clients(MANY);
    fill("share");
    for (size_t i = 0; i < LITTLE; i++) {
        little[i] = dial(&b);
        say(little[i], "share little\n");
        expect(shared, "little\n");
    }
    answer(0);
    expect(shared, "#odd\n#even\n"); /* not one for one */
    assert_true(hears_nothing(shared));
    assert_int_equal(state_now().words, (FIT + 1) * MANY_WORDS);
    for (size_t i = 0; i < LITTLE; i++)
        (void)close(little[i]);
    leave(MANY);
}

/* And who asks for much by those who ask for very much, up to as many words. */
static void who_asks_for_much_goes_by_who_asks_for_more(void **state)
{
    enum {
        MORE = 41 /* requests of SOME_WORDS */
    };
    int c[MORE + 1];
    (void)state;
    begin_clients(MANY);
    fill("quick");
    for (size_t i = 0; i < MORE + 1; i++) {
        uint64_t turns = net_bench_turns(&b);
        c[i] = dial(&b);
        say(c[i], "share ##some\n");
        NET_AWAIT(net_bench_turns(&b) > turns);
        if (i < MORE)
            expect(shared, "##some\n");
    }
    assert_true(hears_nothing(shared));
    assert_int_equal(state_now().words, FIT * MANY_WORDS + MORE * SOME_WORDS);
    int little = dial(&b);
    say(little, "share little\n");
    expect(shared, "little\n");
    (void)close(little);
    answer(0);
    expect(shared, "#odd\n");
    for (size_t i = 1; i < FIT; i++)
        answer(i);
    expect(shared, "#even\n#odd\n");
    say(shared, "OK\r\n");
    expect(c[0], "OK\r\n");
    expect(shared, "##some\n");
    for (size_t i = 0; i < MORE + 1; i++)
        (void)close(c[i]);
    leave(MANY);
}

/* But not by those who wait, because it was its turn with what it had asked for before. */
static void a_turn_in_one_line_is_none_in_the_other(void **state)
{
    enum {
        MORE = 41 /* requests of SOME_WORDS */
    };
    int c[MORE];
    char replies[4 * (MORE + 1) + 1];
    (void)state;
    begin_clients(MANY);
    int both = dial(&b);
    served_at(shared, both);
    for (size_t i = 0; i < MORE; i++) {
        c[i] = dial(&b);
        say(c[i], "share ##some\n");
        expect(shared, "##some\n");
    }
    for (size_t i = 0; i < MANY; i++) {
        asks(i, "share", "#odd");
        if (i < FIT)
            expect(shared, "#odd\n");
    }
    say(both, "share ##both\nshare #both\n");
    assert_true(hears_nothing(shared));
    for (size_t i = 0; i < MORE + 1; i++)
        (void)snprintf(replies + 4 * i, sizeof replies - 4 * i, "OK\r\n");
    say(shared, replies); /* at once: to those who ask for less first */
    expect(shared, "##both\n#odd\n");
    assert_true(hears_nothing(shared));
    for (size_t i = 0; i < MORE; i++)
        (void)close(c[i]);
    (void)close(both);
    leave(MANY);
}

/* Wherever it goes: it is one server. */
static void links_of_their_own_count_too(void **state)
{
    int own[FIT];
    (void)state;
    begin_clients(MANY);
    ask_on_own_links(own, FIT, "up", "#own");
    asks(FIT, "quick", "#shared");
    asks(FIT + 1, "up", "#late");
    int late = accepted(server);
    assert_true(hears_nothing(shared));
    assert_true(hears_nothing(late));
    say(own[0], "OK\r\n");
    expect(client[0], "OK\r\n");
    expect(shared, "#shared\n");
    (void)close(own[1]); /* who is gone asks for nothing on a link of his own */
    expect_end(client[1]);
    expect(late, "#late\n");
    for (size_t i = 2; i < FIT; i++)
        (void)close(own[i]);
    say(late, "OK\r\n");
    expect(client[FIT + 1], "OK\r\n");
    answer(FIT);
    NET_AWAIT(net_bench_connections(&b) == MANY - (FIT - 1));
    assert_int_equal(state_now().words, 0);
    (void)close(own[0]);
    (void)close(late);
    leave(MANY);
}

/* What it does not take is its own loss. */
static void who_does_not_take_his_reply_holds_up_nobody(void **state)
{
    int own[FIT];
    (void)state;
    begin_clients(MANY);
    ask_on_own_links(own, FIT, "take", "#own");
    asks(FIT, "quick", "#shared");
    assert_true(state_now().crowded);
    for (size_t i = 0; i < FIT; i++)
        say_much(own[i]);
    expect(shared, "#shared\n");
    assert_int_equal(state_now().words, MANY_WORDS);
    for (size_t i = 0; i < FIT; i++)
        (void)close(own[i]);
    leave(MANY);
}

/* On the shared link it holds up who is behind it there, until it is cut. */
static void nor_does_who_takes_none_from_the_shared_link(void **state)
{
    (void)state;
    begin_clients(1);
    asks(0, "fetch", "#much");
    expect(shared, "#much\n");
    assert_int_equal(state_now().words, MANY_WORDS);
    say_much(shared);
    assert_int_equal(state_now().words, 0);
    leave(1);
}

static void what_may_take_any_time_does_not_count(void **state)
{
    int own[MANY];
    (void)state;
    begin_clients(MANY);
    ask_on_own_links(own, MANY, "wait", "#blocks");
    assert_int_equal(state_now().words, 0);
    for (size_t i = 0; i < MANY; i++)
        (void)close(own[i]);
    leave(MANY);
}

/* Nor is it sent before that has its reply, after which it does: on a link that blocks it would be
 * under way for ever. */
static void what_stands_behind_that_waits_for_it(void **state)
{
    int own[FIT], worker[FIT];
    (void)state;
    begin_clients(1);
    for (size_t i = 0; i < FIT; i++) {
        worker[i] = dial(&b);
        say(worker[i], i % 2 ? "wait blocks\nup #behind\n" : "wait blocks\nquick #behind\n");
        own[i] = accepted(server);
        expect(own[i], "blocks\n");
        assert_true(hears_nothing(own[i]));
    }
    asks(0, "quick", "#shared");
    expect(shared, "#shared\n");
    assert_int_equal(state_now().words, MANY_WORDS);
    answer(0);
    for (size_t i = 0; i < FIT; i++) {
        say(own[i], "OK\r\n");
        expect(worker[i], "OK\r\n");
        expect(own[i], "#behind\n");
    }
    for (size_t i = 0; i < FIT; i++) {
        (void)close(worker[i]);
        (void)close(own[i]);
    }
    leave(1);
}

/* With its own reply it is done, whatever blocks behind it, and not before, whatever was asked
 * before it. */
static void what_stands_before_that_is_done_with_its_reply(void **state)
{
    (void)state;
    begin_clients(1);
    int worker = dial(&b);
    say(worker, "up first\n");
    int own = accepted(server);
    expect(own, "first\n");
    say(worker, "up ##then\nwait blocks\n");
    expect(own, "##then\nblocks\n");
    assert_int_equal(state_now().words, SOME_WORDS);
    say(own, "OK\r\n");
    expect(worker, "OK\r\n");
    assert_int_equal(state_now().words, SOME_WORDS);
    say(own, "OK\r\n");
    expect(worker, "OK\r\n");
    assert_int_equal(state_now().words, 0);
    (void)close(worker);
    (void)close(own);
    leave(1);
}

/* Half of a request, and the server has already answered it, or what stood before it. */
static void what_is_answered_before_it_is_whole_is_done(void **state)
{
    (void)state;
    begin_clients(1);
    say(client[0], "up ##whole\npart #half\n");
    int own = accepted(server);
    expect(own, "##whole\n#half\n");
    assert_int_equal(state_now().words, SOME_WORDS);
    say(own, "OK\r\n");
    expect(client[0], "OK\r\n");
    assert_int_equal(state_now().words, 0);
    say(own, "OK\r\n");
    expect(client[0], "OK\r\n");
    say(client[0], "rest of it\n");
    expect(own, "of it\n");
    assert_int_equal(state_now().words, 0);
    (void)close(own);
    leave(1);
}

/* Nor what has no reply: the words are not those of the next one. */
static void what_has_no_reply_does_not_count(void **state)
{
    (void)state;
    begin_clients(1);
    asks(0, "mute", "#mute");
    int own = accepted(server);
    expect(own, "#mute\n");
    asks(0, "up", "loud");
    expect(own, "loud\n");
    assert_int_equal(state_now().words, 0);
    (void)close(own);
    leave(1);
}

/* What is refused here for its end is work for the server up to there. */
static void what_is_not_for_the_client_counts_too(void **state)
{
    (void)state;
    begin_clients(1);
    asks(0, "drop", "#refused");
    int own = accepted(server);
    expect(own, "#refused\n");
    assert_int_equal(state_now().words, MANY_WORDS);
    say(own, "OK\r\n");
    expect(client[0], "no\n");
    assert_int_equal(state_now().words, 0);
    (void)close(own);
    leave(1);
}

/* The rest of a request waits, too, and the server is not late meanwhile. */
static void a_rest_may_wait_for_longer_than_a_reply(void **state)
{
    (void)state;
    timeout_us = 800000;
    begin_clients(MANY);
    asks(0, "part", "#half");
    int own = accepted(server);
    expect(own, "#half\n");
    for (size_t i = 1; i < MANY; i++) {
        asks(i, "quick", "#odd");
        if (i <= FIT)
            expect(shared, "#odd\n");
    }
    asks(0, "rest", "of it");
    for (size_t i = 1; i < MANY - FIT; i++) { /* the others, who came before */
        pass(500);
        answer(i);
        expect(shared, "#odd\n");
    }
    assert_true(state_now().crowded);
    assert_true(hears_nothing(own));
    answer(3);
    expect(own, "of it\n");
    assert_int_equal(state_now().words, 5 * MANY_WORDS);
    say(own, "OK\r\n");
    expect(client[0], "OK\r\n");
    (void)close(own);
    leave(MANY);
}

/* A server may take links that it does not serve. */
static void a_link_that_is_silent_keeps_nobody_back_for_long(void **state)
{
    int own[FIT];
    (void)state;
    begin_clients(MANY);
    ask_on_own_links(own, FIT, "up", "#silent");
    asks(FIT, "quick", "#shared");
    assert_true(state_now().crowded);
    expect(shared, "#shared\n");
    NET_AWAIT(state_now().words == MANY_WORDS);
    say(own[0], "OK\r\n");
    expect(client[0], "OK\r\n");
    answer(FIT);
    assert_int_equal(state_now().words, 0);
    for (size_t i = 0; i < FIT; i++)
        (void)close(own[i]);
    leave(MANY);
}

/* Nor what is not there yet. */
static void what_was_not_sent_to_its_end_does_not_count(void **state)
{
    (void)state;
    begin_clients(1);
    asks(0, "part", "#half");
    int own = accepted(server);
    expect(own, "#half\n");
    assert_int_equal(state_now().words, 0);
    (void)close(own);
    leave(1);
}

/* Of whose request others wait for the reply on the shared link, it is under way until it is there;
 * with the link all are gone, and those who wait go on on another. */
static void a_link_that_fails_keeps_nothing(void **state)
{
    (void)state;
    begin_clients(MANY);
    fill("quick");
    (void)close(client[0]);
    assert_int_equal(state_now().words, FIT * MANY_WORDS);
    (void)close(shared);
    shared = let_in(server);
    expect(shared, "#odd\n#even\n#odd\n");
    assert_int_equal(state_now().words, (MANY - FIT) * MANY_WORDS);
    client[0] = dial(&b);
    leave(MANY);
}

/* At an upgrade nothing more is asked for, and then all of it. */
static void who_waits_rests_with_all_others(void **state)
{
    bool on = true, off = false;
    (void)state;
    begin_clients(MANY);
    fill("quick");
    net_bench_call(&b, do_rest, &on);
    for (size_t i = 0; i < FIT; i++)
        answer(i);
    assert_true(hears_nothing(shared));
    assert_int_equal(state_now().words, 0);
    net_bench_call(&b, do_rest, &off);
    expect(shared, "#odd\n#even\n#odd\n");
    for (size_t i = FIT; i < MANY; i++)
        answer(i);
    leave(MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(who_asks_for_much_waits),
        BENCH(and_so_where_it_is_forwarded_at_once),
        BENCH(who_asks_for_little_goes_by),
        BENCH(beside_many_who_ask_for_little_there_is_room_for_more),
        BENCH(who_asks_for_much_goes_by_who_asks_for_more),
        BENCH(a_turn_in_one_line_is_none_in_the_other),
        BENCH(links_of_their_own_count_too),
        BENCH(who_does_not_take_his_reply_holds_up_nobody),
        BENCH(nor_does_who_takes_none_from_the_shared_link),
        BENCH(what_may_take_any_time_does_not_count),
        BENCH(what_stands_behind_that_waits_for_it),
        BENCH(what_stands_before_that_is_done_with_its_reply),
        BENCH(what_is_answered_before_it_is_whole_is_done),
        BENCH(what_has_no_reply_does_not_count),
        BENCH(what_is_not_for_the_client_counts_too),
        BENCH(what_was_not_sent_to_its_end_does_not_count),
        BENCH(a_rest_may_wait_for_longer_than_a_reply),
        BENCH(a_link_that_is_silent_keeps_nobody_back_for_long),
        BENCH(a_link_that_fails_keeps_nothing),
        BENCH(who_waits_rests_with_all_others),
    };
    return cmocka_run_group_tests_name("net/crowd", tests, NULL, NULL);
}
