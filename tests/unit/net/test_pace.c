/* How often the loop looks for input: a pause while many requests are forwarded for calm clients.
 */
#include "net/private.h"
#include "support/fake_clock.h"
#include "support/net_bench.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the rule ---------------------------------------------------------------------------------
 */

static void turns_of(struct pace *p, unsigned turns, int64_t rest_us)
{
    for (unsigned i = 0; i < turns; i++)
        pace_turn(p, rest_us);
}

/* Whether it gathers after a tally of took_us with so many requests, and turns with so much rest
 * between those of one client. */
static bool after(int64_t took_us, uint64_t requests, unsigned turns, int64_t rest_us)
{
    struct pace p = {.since_us = 5000000, .forwarded = 70};
    turns_of(&p, turns, rest_us);
    bool gathers = pace_gathers(&p, 5000000 + took_us, 70 + requests);
    assert_true(p.gathers == gathers);
    return gathers;
}

static void many_requests_of_calm_clients_are_gathered(void **state)
{
    (void)state;
    assert_true(after(1000, 300, 50, 400));
    assert_true(after(4000, 1200, 50, 1000000));
    assert_false(after(1000, 299, 50, 400));
    assert_false(after(4000, 1199, 50, 400));
}

static void few_clients_that_wait_for_each_reply_are_not_kept_waiting(void **state)
{
    (void)state;
    assert_false(after(1000, 1000, 50, 399));
    assert_false(after(1000, 1000, 1, 0));
}

static void one_in_four_may_be_in_a_hurry(void **state)
{
    (void)state;
    for (unsigned hurried = 25; hurried <= 26; hurried++) {
        struct pace p = {.since_us = 0};
        turns_of(&p, 100 - hurried, 100000);
        turns_of(&p, hurried, 100);
        assert_true(pace_gathers(&p, 1000, 1000) == (hurried == 25));
    }
}

static void it_stays_as_it_is_for_a_millisecond(void **state)
{
    (void)state;
    struct pace p = {.since_us = 1000, .gathers = true};
    assert_true(pace_gathers(&p, 1999, 0));
    assert_int_equal(p.since_us, 1000);
    assert_false(pace_gathers(&p, 2000, 0));
    assert_false(pace_gathers(&p, 2999, 1000));
}

static void each_tally_is_by_itself(void **state)
{
    (void)state;
    struct pace p = {.since_us = 0};
    turns_of(&p, 10, 100);
    assert_false(pace_gathers(&p, 1000, 300));
    assert_int_equal(p.since_us, 1000);
    turns_of(&p, 10, 1000);
    assert_true(pace_gathers(&p, 2000, 600));
    assert_false(pace_gathers(&p, 3000, 899));
}

/* The first tally began with the machine. */
static void a_start_gathers_nothing(void **state)
{
    (void)state;
    struct pace p = {0};
    turns_of(&p, 1, 1000);
    assert_false(pace_gathers(&p, 1000000, 1000));
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

static struct net_bench b;
static struct net_service other; /* with an upstream, too; nobody asks it */
static struct fake_clock fake;
static int server;
static double pause_s; /* the loop's own: as libev was told last */

/* Stands before libev's. */
void ev_set_io_collect_interval(struct ev_loop *loop, ev_tstamp interval)
{
    (void)loop;
    pause_s = interval;
}

/* Each line goes to the server. */
static struct net_step forward(struct net_service *svc, void *session, struct span in,
                               struct net_turn *t, struct buf *out)
{
    (void)svc;
    (void)session;
    (void)out;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return (struct net_step){.verdict = NET_MORE};
    enum upstream_ready r = upstream_ready(t, UPSTREAM_TEXT);
    if (r == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    assert_int_equal(r, UPSTREAM_READY);
    struct span line = span_of(in.p, (size_t)(end + 1 - in.p));
    upstream_send(t, line);
    upstream_expect(t, FRAME_RESP, 1, 0);
    return (struct net_step){.verdict = NET_DONE, .used = line.n};
}

static void heard(struct net_service *svc, void *session, const struct frame *f, struct buf *out)
{
    (void)svc;
    (void)session;
    (void)f;
    (void)out;
}

static void do_upstream(struct net_bench *bench, void *address)
{
    struct upstream_config c = {
        .address = span_str(address), .timeout_us = INT64_MAX / 2, .buffer = 65536};
    struct err e;
    assert_int_equal(upstream_new(bench->net, &bench->svc, &c, &e), ERR_OK);
    assert_int_equal(upstream_new(bench->net, &other, &c, &e), ERR_OK);
}

static int begin(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    char address[64];
    fake_clock_init(&fake, 1700000000000);
    net_bench_init(&b);
    b.conf.clock = &fake.clock;
    b.svc.serve = forward;
    b.svc.frame = frame_resp;
    b.svc.heard = heard;
    server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0 || bind(server, (struct sockaddr *)&a, sizeof a) || listen(server, 8) ||
        getsockname(server, (struct sockaddr *)&a, &n))
        return -1;
    (void)snprintf(address, sizeof address, "tcp://127.0.0.1:%u", ntohs(a.sin_port));
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, address);
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_bench_stop(&b);
    return close(server);
}

static void do_pass(struct net_bench *bench, void *us)
{
    (void)bench;
    fake_clock_pass(&fake, *(int64_t *)us);
}

static void pass(int64_t us)
{
    net_bench_call(&b, do_pass, &us);
}

struct state {
    uint64_t forwarded;
    double pause_s;
};

static void do_look(struct net_bench *bench, void *state)
{
    *(struct state *)state = (struct state){upstreams_forwarded(bench->net), pause_s};
}

static struct state look(void)
{
    struct state s;
    net_bench_call(&b, do_look, &s);
    return s;
}

/* n requests, and they are forwarded. */
static void forwarded(int fd, unsigned n)
{
    char text[128] = "";
    assert_true(2 * n < sizeof text);
    for (unsigned i = 0; i < n; i++)
        memcpy(text + (size_t)2 * i, "x\n", 3);
    uint64_t before = look().forwarded;
    say(fd, text);
    NET_AWAIT(look().forwarded == before + n);
}

#define CLIENTS 8

static void the_loop_pauses_while_much_is_forwarded(void **state)
{
    (void)state;
    int fd[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial(&b);
        forwarded(fd[i], 1);
    }
    pass(1000);
    forwarded(fd[0], 1); /* a tally begins */
    pass(500);
    for (int i = 0; i < CLIENTS; i++)
        forwarded(fd[i], 40);
    assert_true(look().pause_s == 0.);
    pass(500);
    forwarded(fd[0], 1);
    assert_true(look().pause_s > 0. && look().pause_s < 1e-3);
    pass(1000);
    forwarded(fd[0], 1);
    assert_true(look().pause_s == 0.);
    for (int i = 0; i < CLIENTS; i++)
        (void)close(fd[i]);
}

static void clients_in_a_hurry_are_not_made_to_pause(void **state)
{
    (void)state;
    int fd[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial(&b);
        forwarded(fd[i], 1);
    }
    pass(1000);
    forwarded(fd[0], 1);
    for (int turn = 0; turn < 9; turn++) {
        pass(100);
        for (int i = 0; i < CLIENTS; i++)
            forwarded(fd[i], 5);
    }
    pass(100);
    forwarded(fd[0], 1);
    assert_true(look().pause_s == 0.);
    for (int i = 0; i < CLIENTS; i++)
        (void)close(fd[i]);
}

#define LOOP(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_requests_of_calm_clients_are_gathered),
        cmocka_unit_test(few_clients_that_wait_for_each_reply_are_not_kept_waiting),
        cmocka_unit_test(one_in_four_may_be_in_a_hurry),
        cmocka_unit_test(it_stays_as_it_is_for_a_millisecond),
        cmocka_unit_test(each_tally_is_by_itself),
        cmocka_unit_test(a_start_gathers_nothing),
        LOOP(the_loop_pauses_while_much_is_forwarded),
        LOOP(clients_in_a_hurry_are_not_made_to_pause),
    };
    return cmocka_run_group_tests_name("net/pace", tests, NULL, NULL);
}
