/* Whoever asks for much at once, and the others. */
#include "net/private.h"
#include "support/net_bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define GREEDY 8
#define SPINS  1000 /* of 200 us */

static struct net_bench b;

static void ask_for_much(int fd)
{
    static char text[SPINS * 9 + 1];
    for (int i = 0; i < SPINS; i++)
        memcpy(text + (size_t)i * 9, "spin 200\n", 10);
    say(fd, text);
}

/* How many of its replies have come; waits for none. */
static size_t replies(int fd)
{
    char sink[8192];
    ssize_t r, n = 0;
    while ((r = recv(fd, sink, sizeof sink, MSG_DONTWAIT)) > 0)
        n += r;
    return (size_t)n / 5;
}

/* Each has 0.2 s to do, all together 1.6 s, or more on a busy machine. */
static void others_are_served_in_between(void **state)
{
    (void)state;
    int greedy[GREEDY];
    net_bench_start(&b, NULL);
    int other = dial(&b);
    for (int i = 0; i < GREEDY; i++)
        ask_for_much(greedy[i] = dial(&b));
    NET_AWAIT(net_bench_bytes_in(&b) > 0);
    int64_t begun_us = clock_mono_us(clock_system());
    for (int i = 0; i < 5; i++) {
        say(other, "hello\n");
        expect(other, "hello\n");
    }
    int64_t took_us = clock_mono_us(clock_system()) - begun_us;
    size_t done[GREEDY], all = 0, least = SPINS, most = 0;
    for (int i = 0; i < GREEDY; i++) {
        done[i] = replies(greedy[i]);
        all += done[i];
        least = done[i] < least ? done[i] : least;
        most = done[i] > most ? done[i] : most;
    }
    assert_true(all < GREEDY * SPINS);     /* the five questions did not wait for the end of it */
    assert_true(most - least < SPINS / 4); /* and it goes round */
    for (int i = 0; i < GREEDY; i++) {
        while (done[i] < SPINS) {
            struct pollfd p = {.fd = greedy[i], .events = POLLIN};
            assert_int_equal(poll(&p, 1, 30000), 1);
            done[i] += replies(greedy[i]);
        }
        assert_int_equal(done[i], SPINS);
        (void)close(greedy[i]);
    }
    assert_true(took_us < (clock_mono_us(clock_system()) - begun_us) * 5 / 8);
    (void)close(other);
    NET_AWAIT(net_bench_connections(&b) == 0);
}

#define MANY  60
#define TRIES 4    /* a busy machine may hold up who counts */
#define LARGE 5000 /* bytes: more than a block */

static struct {
    int fd[MANY];
    int other;
} crowd;

static void dial_crowd(void)
{
    for (int i = 0; i < MANY; i++)
        crowd.fd[i] = dial(&b);
}

/* Each asks so many times, for itself. */
static void begin_crowd(int times)
{
    net_bench_start(&b, NULL);
    crowd.other = dial(&b);
    dial_crowd();
    for (int i = 0; i < MANY * times; i++) {
        say(crowd.fd[i / times], "spin 2000\n");
        expect(crowd.fd[i / times], "spun\n");
    }
}

/* How many of them have had a reply, after all were told that and five questions were answered. */
static int served_beside(const char *text)
{
    int done = 0;
    for (int i = 0; i < MANY; i++)
        say(crowd.fd[i], text);
    for (int i = 0; i < 5; i++) {
        say(crowd.other, "hello\n");
        expect(crowd.other, "hello\n");
    }
    for (int i = 0; i < MANY; i++) {
        struct pollfd p = {.fd = crowd.fd[i], .events = POLLIN};
        done += poll(&p, 1, 0);
    }
    return done;
}

static void end_crowd(void)
{
    for (int i = 0; i < MANY; i++)
        (void)close(crowd.fd[i]);
    (void)close(crowd.other);
    NET_AWAIT(net_bench_connections(&b) == 0);
}

/* One from each of many, one at a time: while some of them are answered, so are others. */
static void a_dear_request_of_each_of_many_holds_up_nobody(void **state)
{
    (void)state;
    int least = MANY;
    begin_crowd(2);
    for (int try = 0; try < TRIES; try++) {
        int done = served_beside("spin 2000\n");
        for (int i = 0; i < MANY; i++)
            expect(crowd.fd[i], "spun\n");
        least = done < least ? done : least;
    }
    assert_true(least < MANY / 2);
    end_crowd();
}

/* Of each of many who have just come, so that nothing is known of them. */
static void a_large_request_of_each_of_many_holds_up_nobody(void **state)
{
    (void)state;
    static char text[LARGE + sizeof "\nspin 2000\n"];
    int least = MANY;
    memset(text, 'x', LARGE);
    memcpy(text + LARGE, "\nspin 2000\n", sizeof "\nspin 2000\n");
    begin_crowd(0);
    for (int try = 0; try < TRIES; try++) {
        int done = served_beside(text);
        least = done < least ? done : least;
        for (int i = 0; i < MANY; i++)
            (void)close(crowd.fd[i]);
        NET_AWAIT(net_bench_connections(&b) == 1);
        dial_crowd();
    }
    assert_true(least < MANY / 2);
    end_crowd();
}

static void do_set_gate(struct net_bench *bench, void *open)
{
    bench->open = *(bool *)open;
    net_wake(bench->net);
}

static void set_gate(bool open)
{
    net_bench_call(&b, do_set_gate, &open);
}

/* Of each of many who have waited for the same. */
static void those_who_are_woken_at_once_hold_up_nobody(void **state)
{
    (void)state;
    int least = MANY;
    b.conf.max_wait_us = 60000000;
    begin_crowd(0);
    for (int try = 0; try < TRIES; try++) {
        int done = 0;
        for (int i = 0; i < MANY; i++)
            say(crowd.fd[i], "wait\nspin 2000\n");
        expect_silence(crowd.fd[MANY - 1], 20);
        set_gate(true);
        say(crowd.other, "hello\n");
        expect(crowd.other, "hello\n");
        for (int i = 0; i < MANY; i++) {
            struct pollfd p = {.fd = crowd.fd[i], .events = POLLIN};
            done += poll(&p, 1, 0);
        }
        for (int i = 0; i < MANY; i++)
            expect(crowd.fd[i], "open\nspun\n");
        set_gate(false);
        least = done < least ? done : least;
    }
    assert_true(least < MANY / 2);
    end_crowd();
}

static void do_close_who_was_woken(struct net_bench *bench, void *arg)
{
    struct net *n = bench->net;
    struct conn *first = CONTAINER(n->waiting[WAITING_CAME].next, struct conn, park);
    (void)arg;
    link_remove(&first->park);
    link_append(&n->woken, &first->park);
    bench->open = true;
    net_wake(n);
    conn_close(first);
}

/* Whoever waited by then would have had a turn behind those who are gone. */
static void a_change_counts_though_those_who_were_woken_are_gone(void **state)
{
    (void)state;
    b.conf.max_wait_us = 60000000;
    net_bench_start(&b, NULL);
    int first = dial(&b), other = dial(&b);
    say(first, "wait\n");
    expect_silence(first, 20);
    say(other, "wait\n");
    expect_silence(other, 20);
    net_bench_call(&b, do_close_who_was_woken, NULL);
    expect(other, "open\n");
    (void)close(first);
    (void)close(other);
}

/* From another address than dial(), so that it is another party. */
static int dial_from(const char *ip)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strrchr(b.address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(inet_pton(AF_INET, ip, &from.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* us of processor time that the next 300 ms take, of which a busy machine may leave a part. */
static int64_t spent_idle_us(void)
{
    struct timespec before, after;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before), 0);
    (void)poll(NULL, 0, 300);
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after), 0);
    return (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
}

/* Who has more to do makes room for somebody, outside of any turn. */
static void the_loop_sleeps_when_the_last_is_closed(void **state)
{
    (void)state;
    b.strangers = true;
    b.conf.connections = 2;
    net_bench_start(&b, NULL);
    int busy = dial(&b), other = dial(&b);
    ask_for_much(busy);
    NET_AWAIT(net_bench_bytes_in(&b) > 0);
    say(other, "hello\n");
    expect(other, "hello\n");
    int comes = dial_from("127.0.0.3");
    say(comes, "hello\n");
    expect(comes, "hello\n");
    NET_AWAIT(net_bench_ended(&b, NET_END_SLOT) == 1);
    assert_true(spent_idle_us() < 100000);
    (void)close(busy);
    (void)close(other);
    (void)close(comes);
}

/* ---- in the loop: its time is what a test says ------------------------------------------------
 */

/* Who came, in order. */
static struct conn *nth(struct net *n, int i)
{
    struct link *l = n->all.next;
    while (i-- > 0)
        l = l->next;
    return CONTAINER(l, struct conn, all);
}

/* The loop has had turns for so long, and hears what was said to fd, of the i-th. */
static enum conn_state heard_after(struct net *n, int64_t us, int i, int fd, const char *text)
{
    struct conn *c = nth(n, i);
    say(fd, text);
    n->now_us = clock_mono_us(clock_system());
    n->round_us = n->now_us - us;
    ev_invoke(n->loop, &c->rd, EV_READ);
    return c->state;
}

/* The same; the turn seems to have taken so long. Returns how dear that makes it, who was not. */
static unsigned dear_after(struct net *n, int64_t us, int fd, const char *text)
{
    struct conn *c = nth(n, 0);
    c->dear = 0;
    say(fd, text);
    n->now_us = n->round_us = clock_mono_us(clock_system()) - us;
    ev_invoke(n->loop, &c->rd, EV_READ);
    assert_int_equal(c->state, CONN_READING);
    return c->dear;
}

static void do_seem_long(struct net_bench *bench, void *arg)
{
    int fd = *(int *)arg;
    char text[1502];
    memset(text, 'x', 1500);
    memcpy(text + 1500, "\n", 2);
    assert_int_equal(dear_after(bench->net, 5000, fd, "hello\n"), 0);
    assert_true(dear_after(bench->net, 900, fd, "spin 1\n") > 0);
    assert_true(dear_after(bench->net, 900, fd, "big 3000\n") > 0);
    text[1500] = '\0'; /* its end never comes, and so no reply */
    assert_true(dear_after(bench->net, 900, fd, text) > 0);
}

/* The processor may have been somebody else's. */
static void who_asks_for_little_is_not_dear_however_long_it_took(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    NET_AWAIT(net_bench_connections(&b) == 1);
    net_bench_call(&b, do_seem_long, &fd);
    (void)close(fd);
}

static void do_note(struct net_bench *bench, void *arg)
{
    struct net *n = bench->net;
    struct conn *c = nth(n, 0);
    (void)arg;
    n->now_us = clock_mono_us(clock_system());
    n->round_us = n->now_us - 5000;
    for (int i = 0; i < 20; i++)
        turns_note(c, 50, true, 1000);
    unsigned dear = c->dear;
    turns_note(c, 50, true, 1000);
    assert_int_equal(c->dear, dear);
    for (int i = 0; i < 20; i++)
        turns_note(c, 500, true, 1000);
    assert_true(turns_waits(c) && c->dear > dear);
    for (int i = 0; i < 20; i++)
        turns_note(c, 50, true, 1000);
    assert_int_equal(c->dear, dear);
    assert_true(turns_waits(c));
    n->round_us = n->now_us; /* as for who has waited for that: there is no crowd in the list */
    for (int i = 0; i < 20; i++)
        turns_note(c, 50, true, 1000);
    assert_true(turns_waits(c));
    for (int i = 0; i < 20; i++)
        turns_note(c, 5, true, 1000);
    assert_int_equal(c->dear, 0);
}

static void who_takes_a_while_in_a_crowd_is_less_dear_than_who_takes_long(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    NET_AWAIT(net_bench_connections(&b) == 1);
    net_bench_call(&b, do_note, NULL);
    (void)close(fd);
}

static void do_between(struct net_bench *bench, void *arg)
{
    struct net *n = bench->net;
    const int *fd = arg;
    nth(n, 0)->dear = 8;
    assert_int_equal(heard_after(n, 0, 0, fd[0], "hello\n"), CONN_MORE);
    (void)heard_after(n, 500, 1, fd[1], "hello\n");
    assert_int_equal(nth(n, 0)->state, CONN_MORE);
    int64_t round_us = clock_mono_us(clock_system()) - 5000;
    (void)heard_after(n, 5000, 1, fd[1], "hello\n");
    assert_int_equal(nth(n, 0)->state, CONN_READING);
    assert_in_range(n->round_us, round_us, round_us + 4000); /* it is not forgotten */
    assert_int_equal(heard_after(n, 0, 0, fd[0], "hello\n"), CONN_MORE);
    n->turns_us = clock_mono_us(clock_system());
    (void)heard_after(n, 5000, 1, fd[1], "hello\n"); /* it had its round */
    assert_int_equal(nth(n, 0)->state, CONN_MORE);
}

/* However many come who ask for little. */
static void the_list_has_its_rounds_while_others_are_heard(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd[2] = {dial(&b), dial(&b)};
    NET_AWAIT(net_bench_connections(&b) == 2);
    net_bench_call(&b, do_between, fd);
    for (int i = 0; i < 2; i++)
        expect(fd[0], "hello\n");
    for (int i = 0; i < 3; i++)
        expect(fd[1], "hello\n");
    (void)close(fd[0]);
    (void)close(fd[1]);
}

struct lines {
    int fd[6];
    unsigned many, last; /* how dear: the first five, and the one that comes behind them */
    bool served;         /* that one, in the first round */
};

static void do_lines(struct net_bench *bench, void *arg)
{
    struct net *n = bench->net;
    struct lines *l = arg;
    for (int i = 0; i < 6; i++) {
        nth(n, i)->dear = (uint8_t)(i < 5 ? l->many : l->last);
        assert_int_equal(heard_after(n, 0, i, l->fd[i], "spin 400\n"), CONN_MORE);
    }
    turns_run(n);
    l->served |= nth(n, 5)->state == CONN_READING;
    assert_true(n->nturns > 0);
    while (n->nturns > 0)
        turns_run(n);
}

/* Whoever is dear, and whoever is not, waits for his like. */
static void who_is_dear_and_who_is_not_have_half_of_a_round_each(void **state)
{
    (void)state;
    struct lines l = {.many = 8, .last = 4};
    net_bench_start(&b, NULL);
    for (int i = 0; i < 6; i++) {
        l.fd[i] = dial(&b);
        NET_AWAIT(net_bench_connections(&b) == (uint64_t)i + 1);
    }
    net_bench_call(&b, do_lines, &l);
    assert_true(l.served);
    l = (struct lines){
        .fd = {l.fd[0], l.fd[1], l.fd[2], l.fd[3], l.fd[4], l.fd[5]}, .many = 4, .last = 8};
    for (int try = 0; try < 20 && !l.served; try++) /* a busy machine may end a round */
        net_bench_call(&b, do_lines, &l);
    assert_true(l.served);
    for (int i = 0; i < 6; i++)
        (void)close(l.fd[i]);
}

static void do_long_ones(struct net_bench *bench, void *arg)
{
    struct net *n = bench->net;
    const int *fd = arg;
    for (int i = 0; i < 6; i++) {
        nth(n, i)->dear = i < 5 ? 4 : 8;
        assert_int_equal(heard_after(n, 0, i, fd[i], "spin 2000\n"), CONN_MORE);
    }
    turns_run(n);
    assert_int_equal(nth(n, 5)->state, CONN_MORE);
    turns_run(n);
    assert_int_equal(nth(n, 5)->state, CONN_READING);
    while (n->nturns > 0)
        turns_run(n);
}

/* What one line has had more is not forgotten when a round is over. */
static void one_turn_as_long_as_a_round_is_made_up_for_in_the_next(void **state)
{
    (void)state;
    int fd[6];
    net_bench_start(&b, NULL);
    for (int i = 0; i < 6; i++) {
        fd[i] = dial(&b);
        NET_AWAIT(net_bench_connections(&b) == (uint64_t)i + 1);
    }
    net_bench_call(&b, do_long_ones, fd);
    for (int i = 0; i < 6; i++)
        (void)close(fd[i]);
}

static void do_hear_much(struct net_bench *bench, void *arg)
{
    struct net *n = bench->net;
    static char much[601 + 1], part[LARGE + 1];
    int fd = *(int *)arg;
    memset(much, 'x', 600);
    memcpy(much + 600, "\n", 2);
    memset(part, 'x', LARGE);
    assert_int_equal(heard_after(n, 5000, 0, fd, "hello\n"), CONN_READING);
    uint64_t in = bench->svc.bytes_in;
    assert_int_equal(heard_after(n, 5000, 0, fd, much), CONN_MORE);
    assert_int_equal(bench->svc.bytes_in, in);
    assert_int_equal(n->bytes, 0);
    turns_run(n);
    assert_int_equal(bench->svc.bytes_in, in + 601);
    assert_int_equal(heard_after(n, 0, 0, fd, part), CONN_READING);
    assert_int_equal(heard_after(n, 5000, 0, fd, "its end\n"), CONN_MORE); /* behind what is kept */
    assert_int_equal(bench->svc.bytes_in, in + 601 + LARGE);
    turns_run(n);
    assert_int_equal(nth(n, 0)->state, CONN_READING);
    assert_int_equal(n->bytes, 0);
}

/* Nobody pays for the copies, and nobody is closed for what is kept of them. */
static void in_a_crowd_who_has_sent_much_waits_for_his_turn_before_it_is_read(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b), on = 1;
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    NET_AWAIT(net_bench_connections(&b) == 1);
    net_bench_call(&b, do_hear_much, &fd);
    (void)close(fd);
}

/* Over a unix socket its end is known before its bytes are read. */
static void who_sends_and_closes_is_heard_before_its_end(void **state)
{
    (void)state;
    char dir[] = "/tmp/sidflake-turns-XXXXXX", address[64];
    int busy[GREEDY];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(address, sizeof address, "unix://%s/s", dir);
    b.conf.request_timeout_us = 20000; /* as often as that who waits is looked at */
    net_bench_start(&b, address);
    int sends = dial(&b);
    for (int k = 0; k < 2; k++) {
        say(sends, "spin 2000\n");
        expect(sends, "spun\n");
    }
    for (int i = 0; i < GREEDY; i++)
        busy[i] = dial(&b);
    (void)poll(NULL, 0, 1200); /* it is silent for longer than a client that is asked whether it is
                                  there */
    for (int i = 0; i < GREEDY; i++)
        ask_for_much(busy[i]);
    (void)poll(NULL, 0, 20);
    say(sends, "no reply is waited for\n");
    (void)close(sends);
    NET_AWAIT(net_bench_connections(&b) == GREEDY);
    assert_int_equal(net_bench_ended(&b, NET_END_GONE), 0);
    for (int i = 0; i < GREEDY; i++)
        (void)close(busy[i]);
    NET_AWAIT(net_bench_connections(&b) == 0);
    (void)rmdir(dir);
}

static void whoever_goes_in_between_leaves_nothing(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    for (int i = 0; i < 4; i++) {
        struct linger now = {i % 2, 0};
        int fd = dial(&b);
        ask_for_much(fd);
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        NET_AWAIT(net_bench_accepted(&b) == (uint64_t)i + 1);
        (void)poll(NULL, 0, 20);
        (void)close(fd);
    }
    NET_AWAIT(net_bench_connections(&b) == 0);
    assert_int_equal(b.closed, 4);
}

static void a_half_closed_one_gets_all(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    ask_for_much(fd);
    say(fd, "last\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    for (int i = 0; i < SPINS; i++)
        expect(fd, "spun\n");
    expect(fd, "last\n");
    expect_end(fd);
    (void)close(fd);
}

/* Waiting for a turn keeps the loop awake; nothing does once all is done. */
static void then_the_loop_sleeps_again(void **state)
{
    (void)state;
    net_bench_start(&b, NULL);
    int fd = dial(&b);
    ask_for_much(fd);
    for (int i = 0; i < SPINS; i++)
        expect(fd, "spun\n");
    assert_true(spent_idle_us() < 100000);
    (void)close(fd);
}

#define NET(f) cmocka_unit_test_prestate_setup_teardown(f, net_bench_begin, net_bench_end, &b)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(others_are_served_in_between),
        NET(a_dear_request_of_each_of_many_holds_up_nobody),
        NET(a_large_request_of_each_of_many_holds_up_nobody),
        NET(those_who_are_woken_at_once_hold_up_nobody),
        NET(a_change_counts_though_those_who_were_woken_are_gone),
        NET(the_loop_sleeps_when_the_last_is_closed),
        NET(who_asks_for_little_is_not_dear_however_long_it_took),
        NET(who_takes_a_while_in_a_crowd_is_less_dear_than_who_takes_long),
        NET(the_list_has_its_rounds_while_others_are_heard),
        NET(who_is_dear_and_who_is_not_have_half_of_a_round_each),
        NET(one_turn_as_long_as_a_round_is_made_up_for_in_the_next),
        NET(in_a_crowd_who_has_sent_much_waits_for_his_turn_before_it_is_read),
        NET(who_sends_and_closes_is_heard_before_its_end),
        NET(whoever_goes_in_between_leaves_nothing),
        NET(a_half_closed_one_gets_all),
        NET(then_the_loop_sleeps_again),
    };
    return cmocka_run_group_tests_name("net/turns", tests, NULL, NULL);
}
