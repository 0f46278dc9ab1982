/*
 * A service with a server behind it, which the test plays: clients by a real loop, from
 * support/net_bench.h.
 */
#ifndef SIDFLAKE_UNIT_SERVE_THERE_RIG_H
#define SIDFLAKE_UNIT_SERVE_THERE_RIG_H

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
static enum access_mode mode; /* of who connects */
static int64_t timeout_us;    /* of the server */

static inline struct net_step serve(struct net_service *svc, void *session, struct span in,
                                    struct net_turn *turn, struct buf *out)
{
    inner->upstream = svc->upstream;
    return inner->serve(inner, session, in, turn, out);
}

static inline void opened(struct net_service *svc, void *session, uint8_t mark)
{
    (void)svc;
    (void)mark;
    inner->open(inner, session, (uint8_t)mode);
}

static inline void closed(struct net_service *svc, void *session)
{
    (void)svc;
    inner->close(inner, session);
}

static inline bool heard(struct net_service *svc, void *session, const struct frame *f,
                         struct buf *out)
{
    (void)svc;
    return inner->heard(inner, session, f, out);
}

static inline size_t holds(const struct net_service *svc, const void *session)
{
    (void)svc;
    return inner->holds(inner, session);
}

static inline void do_kept(struct net_bench *n, void *arg)
{
    *(uint64_t *)arg = net_kept(n->net);
}

/* Bytes, of all connections. */
static inline uint64_t kept(void)
{
    uint64_t n = 0;
    net_bench_call(&b, do_kept, &n);
    return n;
}

static inline void do_upstream(struct net_bench *n, void *arg)
{
    struct err e;
    struct upstream_config c = {
        .address = span_str(arg), .timeout_us = timeout_us, .buffer = 1 << 20};
    assert_int_equal(upstream_new(n->net, &n->svc, &c, &e), ERR_OK);
}

static inline void start(struct net_service *svc)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof in;
    char address[64];
    inner = svc;
    net_bench_init(&b);
    b.svc.session_size = svc->session_size;
    b.svc.serve = serve;
    b.svc.open = opened;
    b.svc.close = closed;
    b.svc.heard = heard;
    b.svc.holds = holds;
    b.svc.frame = svc->frame;
    b.svc.lost = svc->lost;
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    (void)snprintf(address, sizeof address, "tcp://127.0.0.1:%u", ntohs(in.sin_port));
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, address);
}

static inline int begin(void **state)
{
    (void)state;
    rig = rig_new(NULL);
    mode = ACCESS_OFF;
    timeout_us = 30000000;
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    net_bench_stop(&b);
    (void)close(server);
    if (inner != rig->svc)
        free(inner);
    rig_free(rig);
    return 0;
}

static inline int accepted(void)
{
    struct pollfd p = {.fd = server, .events = POLLIN};
    const struct timeval most = {.tv_sec = 10};
    assert_int_equal(poll(&p, 1, 10000), 1);
    int fd = accept(server, NULL, NULL);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    return fd;
}

static inline void say_span(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        assert_true(n > 0);
        s = span_skip(s, (size_t)n);
    }
}

/* What comes up to the first end begins so. */
static inline void expect_to(int fd, const char *start, const char *last)
{
    char got[256];
    size_t n = 0, tail = strlen(last);
    while (n < tail || memcmp(got + n - tail, last, tail) != 0) {
        assert_true(n < sizeof got);
        assert_int_equal(recv(fd, got + n, 1, 0), 1);
        n++;
    }
    assert_true(n >= strlen(start));
    assert_memory_equal(got, start, strlen(start));
}

/* All that comes up to the end, of which the last is kept. */
static inline size_t rest_of(int fd, char tail[4096])
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

#endif
