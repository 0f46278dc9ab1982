/* How often the loop looks for input: with a pause in between where that gets more done. */
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

/* Tallies of 5 ms, with these rates: without a pause, and with it. Returns how many had a pause. */
static unsigned run(struct pace *p, unsigned tallies, uint64_t without, uint64_t with)
{
    unsigned paused = 0;
    for (unsigned i = 0; i < tallies; i++) {
        bool pause = p->gathers;
        paused += pause;
        bool next =
            pace_gathers(p, p->since_us + 5000, p->requests + (pause ? with : without) / 200);
        assert_true(next == p->gathers);
    }
    return paused;
}

/* Its trial comes next: the load has begun. */
static struct pace begun(void)
{
    struct pace p = {.since_us = 1000000};
    assert_int_equal(run(&p, 1, 50000, 0), 0);
    return p;
}

static void a_pause_that_brings_more_stays(void **state)
{
    (void)state;
    struct pace p = begun();
    assert_int_equal(run(&p, 8, 50000, 60000), 4);
    assert_int_equal(run(&p, 92, 50000, 60000), 92);
    assert_int_equal(run(&p, 8, 50000, 60000), 4);
    assert_int_equal(run(&p, 92, 50000, 60000), 92);
}

static void one_that_brings_less_is_hardly_tried(void **state)
{
    (void)state;
    struct pace p = begun();
    assert_int_equal(run(&p, 4, 50000, 40000), 2);
    assert_int_equal(run(&p, 92, 50000, 40000), 0);
    assert_int_equal(run(&p, 4, 50000, 40000), 2);
    assert_int_equal(run(&p, 184, 50000, 40000), 0);
    assert_int_equal(run(&p, 4, 50000, 40000), 2);
    assert_int_equal(run(&p, 200, 50000, 40000), 0);
    assert_int_equal(run(&p, 20400, 50000, 40000), 200);
}

static void less_than_one_in_16_is_no_gain(void **state)
{
    (void)state;
    struct pace p = begun();
    assert_int_equal(run(&p, 8, 160000, 169800), 4);
    assert_int_equal(run(&p, 92, 160000, 169800), 0);
    assert_int_equal(run(&p, 8, 160000, 170000), 4);
    assert_int_equal(run(&p, 92, 160000, 170000), 92);
}

/* Once it has brought something, trials come as often as at first. */
static void what_is_no_use_now_may_be_later(void **state)
{
    (void)state;
    struct pace p = begun();
    (void)run(&p, 2000, 50000, 40000);
    assert_true(run(&p, 300, 50000, 60000) > 50);
    assert_int_equal(run(&p, 1000, 50000, 60000), 960);
    assert_true(run(&p, 1000, 50000, 40000) < 120);
}

static void a_load_that_grows_is_no_gain(void **state)
{
    (void)state;
    struct pace p = begun();
    for (uint64_t i = 0; i < 8; i++)
        (void)run(&p, 1, 50000 + i * 20000, 50000 + i * 20000);
    assert_int_equal(run(&p, 92, 200000, 200000), 0);
}

static void little_is_not_gathered(void **state)
{
    (void)state;
    struct pace p = begun();
    assert_int_equal(run(&p, 1000, 19800, 100000), 0);
    assert_int_equal(run(&p, 9, 20000, 100000), 4); /* the load begins again */
}

/* It was enough for a trial without the pause. */
static void a_pause_that_leaves_little_is_a_loss(void **state)
{
    (void)state;
    struct pace p = begun();
    assert_int_equal(run(&p, 2, 21000, 19000), 1);
    assert_int_equal(run(&p, 92, 21000, 19000), 0);
    assert_int_equal(run(&p, 2, 21000, 19000), 1);
    assert_int_equal(run(&p, 184, 21000, 19000), 0);
    assert_int_equal(run(&p, 5, 21000, 50000), 2); /* however much it was at first */
    assert_int_equal(run(&p, 1, 21000, 19000), 1);
    assert_int_equal(run(&p, 200, 21000, 19000), 0);
}

static void a_load_that_ends_is_not_paused_for(void **state)
{
    (void)state;
    struct pace p = begun();
    (void)run(&p, 20, 50000, 60000);
    assert_int_equal(run(&p, 1, 0, 0), 1);
    assert_int_equal(run(&p, 100, 0, 0), 0);
    assert_int_equal(run(&p, 9, 50000, 60000), 4);
    assert_int_equal(run(&p, 92, 50000, 60000), 92);
}

/* An end does not bring a trial nearer, if the last one was in vain. */
static void loads_that_come_and_go_are_not_tried_each_time(void **state)
{
    (void)state;
    struct pace p = begun();
    assert_int_equal(run(&p, 4, 50000, 40000), 2);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(run(&p, 10, 50000, 40000), 0);
        assert_int_equal(run(&p, 10, 0, 0), 0);
    }
    assert_int_equal(run(&p, 6, 50000, 40000), 2);
}

static void after_half_a_second_of_quiet_all_is_new(void **state)
{
    (void)state;
    for (int64_t quiet = 499999; quiet <= 500000; quiet++) {
        struct pace p = begun();
        assert_int_equal(run(&p, 20, 50000, 40000), 2);
        assert_false(pace_gathers(&p, p.since_us + quiet, p.requests + 1));
        assert_int_equal(run(&p, 5, 50000, 40000), quiet < 500000 ? 0 : 2);
        assert_int_equal(p.rest, 92);
        p = begun();
        (void)run(&p, 20, 50000, 60000);
        assert_true(pace_gathers(&p, p.since_us + quiet, p.requests + 1000000) == (quiet < 500000));
    }
}

static void a_tally_takes_5_ms_or_longer(void **state)
{
    (void)state;
    struct pace p = begun();
    struct pace before = p;
    assert_false(pace_gathers(&p, p.since_us + 4999, p.requests + 1000));
    assert_memory_equal(&p, &before, sizeof p);
    assert_true(pace_gathers(&p, p.since_us + 10000, p.requests + 500)); /* the trial's second */
    assert_true(p.sum[0] == 50000 && p.sum[1] == 0);
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

/* Each "x" goes to the server, which says nothing; all else is answered. */
static struct net_step forward(struct net_service *svc, void *session, struct span in,
                               struct net_turn *t, struct buf *out)
{
    (void)svc;
    (void)session;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return (struct net_step){.verdict = NET_MORE};
    struct span line = span_of(in.p, (size_t)(end + 1 - in.p));
    if (line.p[0] != 'x') {
        buf_put_span(out, line);
        return (struct net_step){.verdict = NET_DONE, .used = line.n};
    }
    enum upstream_ready r = upstream_ready(t, UPSTREAM_TEXT);
    if (r == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    assert_int_equal(r, UPSTREAM_READY);
    upstream_send(t, line);
    upstream_expect(t, FRAME_RESP, 1, 0);
    return (struct net_step){.verdict = NET_DONE, .used = line.n, .passed = true};
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
    uint64_t before = look().forwarded;
    for (unsigned i = 0; i < n; i++)
        say(fd, "x\n");
    NET_AWAIT(look().forwarded == before + n);
}

static void answered(int fd, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        say(fd, "y\n");
        expect(fd, "y\n");
    }
}

#define CLIENTS 20

/* 5 ms after another, so many requests of each client are forwarded, without a pause and with it;
 * and 50 answered here: only with those it is 20,000 a second. */
static void assert_paused(const char *expected, unsigned without, unsigned with)
{
    int fd[CLIENTS], here = dial(&b);
    for (int i = 0; i < CLIENTS; i++)
        fd[i] = dial(&b);
    for (const char *c = expected; *c; c++) {
        pass(5000);
        forwarded(fd[0], 1);
        bool pause = look().pause_s > 0.;
        assert_true(look().pause_s < 1e-3);
        if (pause != (*c == 'x'))
            fail_msg("expected %s, found another at %s", expected, c);
        for (int i = 0; i < CLIENTS; i++)
            forwarded(fd[i], pause ? with : without);
        answered(here, 50);
    }
    for (int i = 0; i < CLIENTS; i++)
        (void)close(fd[i]);
    (void)close(here);
}

static void the_loop_pauses_where_that_gets_more_done(void **state)
{
    (void)state;
    assert_paused("--xx--xx-xxx", 3, 4);
}

static void the_loop_does_not_pause_where_it_does_not(void **state)
{
    (void)state;
    assert_paused("--xx--xx----", 3, 3);
}

#define LOOP(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_that_brings_more_stays),
        cmocka_unit_test(one_that_brings_less_is_hardly_tried),
        cmocka_unit_test(less_than_one_in_16_is_no_gain),
        cmocka_unit_test(what_is_no_use_now_may_be_later),
        cmocka_unit_test(a_load_that_grows_is_no_gain),
        cmocka_unit_test(little_is_not_gathered),
        cmocka_unit_test(a_pause_that_leaves_little_is_a_loss),
        cmocka_unit_test(a_load_that_ends_is_not_paused_for),
        cmocka_unit_test(loads_that_come_and_go_are_not_tried_each_time),
        cmocka_unit_test(after_half_a_second_of_quiet_all_is_new),
        cmocka_unit_test(a_tally_takes_5_ms_or_longer),
        LOOP(the_loop_pauses_where_that_gets_more_done),
        LOOP(the_loop_does_not_pause_where_it_does_not),
    };
    return cmocka_run_group_tests_name("net/pace", tests, NULL, NULL);
}
