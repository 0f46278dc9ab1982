/* No request that names an ID reaches the server behind, which the test plays. */
#include "support/net_bench.h"
#include "unit/serve/redis_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct net_bench b;
static struct rig *rig;           /* names, and the service of Redis */
static struct net_service *inner; /* the service under test, which the bench's stands before */
static int server = -1;

static struct net_step serve(struct net_service *svc, void *session, struct span in,
                             struct net_turn *turn, struct buf *out)
{
    inner->upstream = svc->upstream;
    return inner->serve(inner, session, in, turn, out);
}

static void closed(struct net_service *svc, void *session)
{
    (void)svc;
    inner->close(inner, session);
}

static void heard(struct net_service *svc, void *session, const struct frame *f, struct buf *out)
{
    (void)svc;
    inner->heard(inner, session, f, out);
}

static void do_upstream(struct net_bench *n, void *arg)
{
    struct err e;
    struct upstream_config c = {
        .address = span_str(arg), .timeout_us = 30000000, .buffer = 1 << 20};
    assert_int_equal(upstream_new(n->net, &n->svc, &c, &e), ERR_OK);
}

static void start(struct net_service *svc)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof in;
    char address[64];
    inner = svc;
    net_bench_init(&b);
    b.svc.session_size = svc->session_size;
    b.svc.serve = serve;
    b.svc.close = closed;
    b.svc.heard = heard;
    b.svc.frame = svc->frame;
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    (void)snprintf(address, sizeof address, "tcp://127.0.0.1:%u", ntohs(in.sin_port));
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, address);
}

static int begin(void **state)
{
    (void)state;
    rig = rig_new(NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_bench_stop(&b);
    (void)close(server);
    if (inner != rig->svc)
        free(inner);
    rig_free(rig);
    return 0;
}

static int accepted(void)
{
    struct pollfd p = {.fd = server, .events = POLLIN};
    const struct timeval most = {.tv_sec = 10};
    assert_int_equal(poll(&p, 1, 10000), 1);
    int fd = accept(server, NULL, NULL);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    return fd;
}

static void say_span(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        assert_true(n > 0);
        s = span_skip(s, (size_t)n);
    }
}

/* All that comes up to the end, of which the last is kept. */
static size_t rest_of(int fd, char tail[4096])
{
    size_t n = 0, have = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        assert_int_equal(poll(&p, 1, 10000), 1);
        if (have > 2048) {
            memmove(tail, tail + have - 2048, 2048);
            have = 2048;
        }
        ssize_t got = recv(fd, tail + have, 4095 - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
        n += (size_t)got;
    }
    tail[have] = '\0';
    return n;
}

/* ---- Redis ------------------------------------------------------------------------------------
 */

#define APART "-ERR an ID key is not supported behind MONITOR, SYNC, PSYNC and REPLCONF"

static void behind_monitor_there_are_none(void **state)
{
    static const char *const asked[] = {"INCR id:a\r\n", "MGET k id:a\r\n", "NEWER id:a\r\n"};
    char got[4096];
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int client = dial(&b);
        say(client, "MONITOR\r\n");
        int link = accepted();
        expect(link, "MONITOR\r\n");
        say(link, "-NOPERM\r\n");
        expect(client, "-NOPERM\r\n");
        say(client, "GET k\r\n\nNEWER k\r\n"); /* an empty line is a sign of life */
        expect(link, "GET k\r\n\nNEWER k\r\n");
        expect_silence(client, 20);
        say(link, "$1\r\nv\r\n+NEW\r\n");
        expect(client, "$1\r\nv\r\n+NEW\r\n");
        say(client, asked[i]);
        (void)rest_of(client, got);
        assert_memory_equal(got, APART, sizeof APART - 1);
        assert_int_equal(rest_of(link, got), 0);
        (void)close(client);
        (void)close(link);
    }
}

static void within_multi_monitor_is_a_request_like_others(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "MULTI\r\n");
    expect(client, "+OK\r\n");
    say(client, "MONITOR\r\n");
    int link = accepted();
    expect(link, "*1\r\n$5\r\nMULTI\r\nMONITOR\r\n");
    say(link, "+OK\r\n+QUEUED\r\n");
    expect(client, "+QUEUED\r\n");
    say(client, "INCR id:a\r\n");
    expect(client, "-ERR an ID key cannot be used in a transaction that was begun with other "
                   "commands\r\n");
    (void)close(client);
    (void)close(link);
}

/* Of a request of more than 64 KiB, so many bytes stand before the ID among its keys. */
static void put_long(struct buf *req, const char *name, uint32_t keys, size_t filler)
{
    static char x[1 << 17];
    memset(x, 'x', sizeof x);
    resp_put_array(req, keys + 3);
    resp_put_bulk(req, span_str(name));
    resp_put_bulk(req, span_of(x, filler));
    for (uint32_t i = 0; i < keys; i++)
        resp_put_bulk(req, SPAN("key"));
    resp_put_bulk(req, SPAN("id:a"));
}

static char mem[1 << 18];

/* Wherever the input ends, by what it holds at a time. */
static void no_key_is_behind_what_is_seen(void **state)
{
    static const struct {
        const char *name;
        uint32_t keys;
        size_t filler;
    } table[] = {
        {"MGET", 20000, 1},           {"DEL", 0, WIRE_IN_MAX - 30},  {"DEL", 0, WIRE_IN_MAX - 26},
        {"DEL", 0, WIRE_IN_MAX - 24}, {"MGET", 0, WIRE_IN_MAX - 33}, {"MGET", 0, WIRE_IN_MAX},
        {"MGET", 1, 100000},
    };
    static char got[4096];
    const char why[] = "-ERR an ID key cannot be used in a request of more than 64 KiB\r\n";
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct buf req;
        buf_init(&req, mem, sizeof mem);
        put_long(&req, table[i].name, table[i].keys, table[i].filler);
        assert_true(!req.failed && req.n > WIRE_IN_MAX);
        int client = dial(&b);
        say_span(client, buf_span(&req));
        int link = accepted();
        size_t n = rest_of(link, got);
        assert_true(n <= req.n - (sizeof "$4\r\nid:a\r\n" - 1));
        assert_null(strstr(got, "$4\r\nid:a"));
        (void)rest_of(client, got);
        assert_string_equal(got, why);
        (void)close(client);
        (void)close(link);
    }
}

static void the_replies_before_are_given_first(void **state)
{
    static char got[4096];
    struct buf req;
    (void)state;
    start(rig->svc);
    buf_init(&req, mem, sizeof mem);
    buf_put_span(&req, SPAN("ECHO2 x\r\n"));
    put_long(&req, "MGET", 20000, 1);
    int client = dial(&b);
    say_span(client, buf_span(&req));
    int link = accepted();
    for (size_t n = 0; n < 100000;) {
        ssize_t more = recv(link, got, sizeof got, 0);
        assert_true(more > 0);
        n += (size_t)more;
    }
    expect_silence(client, 50);
    say(link, "$1\r\nx\r\n");
    expect(client, "$1\r\nx\r\n-ERR an ID key cannot be used in a request of more than 64 KiB\r\n");
    expect_end(client);
    (void)close(client);
    (void)close(link);
}

/* ---- memcached --------------------------------------------------------------------------------
 */

static void no_odd_line_goes_there(void **state)
{
    static const struct {
        struct span line;
        const char *answer;
    } table[] = {
        {SPAN("gat +1 id:a\r\n"), "CLIENT_ERROR invalid exptime argument\r\n"},
        {SPAN("get id:a x\x01\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("gets id:a\0 x\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("set id:a +0 0 5\r\nhello\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("ms id:a +5\r\nhello\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("set id:a 0 +0 5 noreply\r\nhello\r\n"), ""},
        {SPAN("mg aWQ6YQ== v b b\r\n"), "CLIENT_ERROR duplicate flag\r\n"},
        {SPAN("mg aW!Q6YQ== v b\r\n"), "CLIENT_ERROR error decoding key\r\n"},
        {SPAN("me aWQ6YQ== v b\r\n"), "CLIENT_ERROR bad command line format\r\n"},
    };
    (void)state;
    start(serve_memcached_new(&rig->serve));
    int client = dial(&b);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        say_span(client, table[i].line);
        expect(client, table[i].answer);
    }
    say(client, "incr k +1\r\n");
    int link = accepted();
    expect(link, "incr k +1\r\n");
    say(link, "7\r\n");
    expect(client, "7\r\n");
    (void)close(client);
    (void)close(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(behind_monitor_there_are_none, begin, end),
        cmocka_unit_test_setup_teardown(within_multi_monitor_is_a_request_like_others, begin, end),
        cmocka_unit_test_setup_teardown(no_key_is_behind_what_is_seen, begin, end),
        cmocka_unit_test_setup_teardown(the_replies_before_are_given_first, begin, end),
        cmocka_unit_test_setup_teardown(no_odd_line_goes_there, begin, end),
    };
    return cmocka_run_group_tests_name("serve/id_keys", tests, NULL, NULL);
}
