/*
 * What reaches a real server, in front of servers that the test plays. The service is a line to the
 * server and a line back:
 *
 *   up TEXT     TEXT goes there on a link of the client's own
 *   also TEXT   the same, with another entry in what the link expects
 *   mute TEXT   the same, and no reply is expected
 *   block TEXT  as mute, and it may take any time
 *   wait TEXT   as up, and the reply may take any time
 *   share TEXT  the same on a link that all share
 *   other TEXT  on the other one that all share
 *   fetch TEXT  likewise; values come back
 *   quick TEXT  as share, by upstream_forward where that does it
 *   part TEXT   as up, but it is the first part of a request …
 *   rest TEXT   … and this the last; else that never comes
 *   hush TEXT   the same, and a reply would be expected only at its end
 *   take TEXT   as up; values come back
 *   drop TEXT   as up, and "no" comes back once the reply has come, which is for nobody
 *
 * A TEXT that begins with '#' has MANY_WORDS, one with "##" SOME_WORDS, and where the server cannot
 * be reached "down" comes back. Servers listen on 127.0.0.2 and .3.
 */
#ifndef SIDFLAKE_UNIT_NET_UPSTREAM_RIG_H
#define SIDFLAKE_UNIT_NET_UPSTREAM_RIG_H

#include "net/upstream/upstream.h"
#include "support/net_bench.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;
static uint16_t port;
static char address[64];
static int64_t timeout_us;
static uint32_t owned_max;
static size_t buffer; /* bytes, of upstream_config */

/* ---- the resolver ---------------------------------------------------------------------------- */

static pthread_mutex_t names = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answers = PTHREAD_COND_INITIALIZER;
static const char *hosts[3]; /* what the name stands for; NULL ends it */
static int preceding;        /* so many addresses stand before them, where nobody listens */
static int failure;          /* of getaddrinfo; 0: none */
static bool silent;          /* nobody answers */
static unsigned asked;

static inline int look_up(const char *host, const char *service, const struct addrinfo *hints,
                          struct addrinfo **list)
{
    struct addrinfo numeric = *hints, **end = list;
    (void)host;
    numeric.ai_flags = AI_NUMERICHOST;
    (void)pthread_mutex_lock(&names);
    asked++;
    while (silent)
        (void)pthread_cond_wait(&answers, &names);
    int r = failure;
    for (int i = 0; !r && i < preceding; i++) {
        char other[32];
        (void)snprintf(other, sizeof other, "127.0.9.%d", i + 1);
        r = getaddrinfo(other, service, &numeric, end);
        while (!r && *end)
            end = &(*end)->ai_next;
    }
    for (size_t i = 0; !r && hosts[i]; i++) {
        r = getaddrinfo(hosts[i], service, &numeric, end);
        while (!r && *end)
            end = &(*end)->ai_next;
    }
    (void)pthread_mutex_unlock(&names);
    return r;
}

static inline void name_is(const char *first, const char *second, int fails)
{
    (void)pthread_mutex_lock(&names);
    hosts[0] = first;
    hosts[1] = second;
    failure = fails;
    (void)pthread_mutex_unlock(&names);
}

static inline void more_before(int n)
{
    (void)pthread_mutex_lock(&names);
    preceding = n;
    (void)pthread_mutex_unlock(&names);
}

static inline void be_silent(bool on)
{
    (void)pthread_mutex_lock(&names);
    silent = on;
    (void)pthread_cond_broadcast(&answers);
    (void)pthread_mutex_unlock(&names);
}

static inline unsigned times_asked(void)
{
    (void)pthread_mutex_lock(&names);
    unsigned n = asked;
    (void)pthread_mutex_unlock(&names);
    return n;
}

/* ---- the service ----------------------------------------------------------------------------- */

static struct net_step (*plain)(struct net_service *, void *, struct span, struct net_turn *,
                                struct buf *);

#define MANY_WORDS 1000
#define SOME_WORDS 110

static inline uint32_t words_of(struct span text)
{
    return span_starts(text, SPAN("##"))  ? SOME_WORDS
           : span_starts(text, SPAN("#")) ? MANY_WORDS
                                          : 1;
}

static bool within; /* the loop's: one client's request that is not whole */

static inline struct net_step begin_part(struct span in, size_t used, struct net_turn *turn)
{
    if (upstream_ready(turn, UPSTREAM_OWN, 0) == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    within = true;
    upstream_send(turn, span_of(in.p + 5, used - 5));
    upstream_weigh(turn, words_of(span_of(in.p + 5, used - 5)));
    upstream_expect(turn, FRAME_MC_LINE, span_starts(in, SPAN("part ")), 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true, .begun = true};
}

static inline struct net_step end_part(struct span in, size_t used, struct net_turn *turn)
{
    enum upstream_ready is = upstream_ready(turn, UPSTREAM_REST, 0);
    if (is == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    within = false;
    if (is == UPSTREAM_DOWN)
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    upstream_send(turn, span_of(in.p + 5, used - 5));
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static bool dropping; /* the loop's: one client's request, whose reply is still to come */

static inline struct net_step drop(struct span in, size_t used, struct net_turn *turn,
                                   struct buf *out)
{
    struct span text = span_of(in.p + 5, used - 5);
    if (dropping && upstream_pending(turn) == 0) {
        dropping = false;
        BUF_PUT_LIT(out, "no\n");
        return (struct net_step){.verdict = NET_DONE, .used = used};
    }
    if (!dropping && upstream_ready(turn, UPSTREAM_OWN, words_of(text)) != UPSTREAM_BUSY) {
        dropping = true;
        upstream_send(turn, text);
        upstream_weigh(turn, words_of(text));
        upstream_expect(turn, FRAME_MC_LINE, 1, UPSTREAM_DROP);
    }
    return (struct net_step){.verdict = NET_BEHIND};
}

static inline struct net_step through(struct net_service *svc, void *session, struct span in,
                                      struct net_turn *turn, struct buf *out)
{
    const struct net_step behind = {.verdict = NET_BEHIND};
    bool also = span_starts(in, SPAN("also ")), mute = span_starts(in, SPAN("mute "));
    bool wait = span_starts(in, SPAN("wait ")), block = span_starts(in, SPAN("block "));
    bool take = span_starts(in, SPAN("take "));
    bool own = also || mute || wait || block || take || span_starts(in, SPAN("up "));
    bool fetch = span_starts(in, SPAN("fetch ")), quick = span_starts(in, SPAN("quick "));
    bool other = span_starts(in, SPAN("other "));
    bool shared = fetch || quick || other || span_starts(in, SPAN("share "));
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (within && in.n == 0)
        return (struct net_step){.verdict = NET_MORE, .begun = true};
    if (end && (span_starts(in, SPAN("part ")) || span_starts(in, SPAN("hush "))))
        return begin_part(in, (size_t)(end - in.p) + 1, turn);
    if (end && span_starts(in, SPAN("rest ")))
        return end_part(in, (size_t)(end - in.p) + 1, turn);
    if (end && span_starts(in, SPAN("drop ")))
        return drop(in, (size_t)(end - in.p) + 1, turn, out);
    if (!end || (!own && !shared))
        return end && upstream_pending(turn) > 0 ? behind : plain(svc, session, in, turn, out);
    size_t skip = also || mute || wait || take ? 5 : own && !block ? 3 : 6;
    size_t used = (size_t)(end - in.p) + 1;
    struct span text = span_of(in.p + skip, used - skip);
    struct net_step sent = {.verdict = NET_DONE, .used = used, .passed = true};
    if (quick && upstream_forward(turn, UPSTREAM_TEXT, text, words_of(text), FRAME_MC_LINE))
        return sent;
    enum upstream_lane lane = own ? UPSTREAM_OWN : other ? UPSTREAM_BINARY : UPSTREAM_TEXT;
    enum upstream_ready is = upstream_ready(turn, lane, words_of(text));
    if (is == UPSTREAM_BUSY)
        return behind;
    if (is == UPSTREAM_DOWN) {
        BUF_PUT_LIT(out, "down\n");
        return (struct net_step){.verdict = NET_DONE, .used = used};
    }
    upstream_send(turn, text);
    upstream_weigh(turn, words_of(text));
    upstream_expect(turn, fetch || take ? FRAME_MC_VALUES : FRAME_MC_LINE, !mute && !block,
                    also            ? UPSTREAM_CLEARS
                    : wait || block ? UPSTREAM_PATIENT
                                    : 0);
    return sent;
}

static inline void do_upstream(struct net_bench *n, void *arg)
{
    struct err e;
    struct upstream_config c = {.address = span_str(arg),
                                .timeout_us = timeout_us,
                                .buffer = buffer,
                                .connections = owned_max,
                                .look_up = look_up};
    assert_int_equal(upstream_new(n->net, &n->svc, &c, &e), ERR_OK);
}

static inline void do_look_behind(struct net_bench *n, void *arg)
{
    (void)arg;
    upstream_look(&n->svc);
}

/* arg: bool, whether all rest. */
static inline void do_rest(struct net_bench *n, void *arg)
{
    upstreams_rest(n->net, *(bool *)arg);
}

/* arg: what links to the server begin with from now on; WELCOME lets them in. */
static inline void do_greet(struct net_bench *n, void *arg)
{
    const struct upstream_greeting g = {
        .bytes = span_str(arg), .kind = FRAME_MC_LINE, .ok = SPAN("WELCOME\r\n")};
    assert_true(upstream_greet(&n->svc, UPSTREAM_TEXT, &g));
}

static char why[ERR_TEXT_MAX];
static struct upstream_stats seen;

static inline void do_look(struct net_bench *n, void *arg)
{
    (void)arg;
    (void)snprintf(why, sizeof why, "%s", upstream_why(&n->svc));
    seen = *upstream_stats(&n->svc);
}

static inline void assert_why(const char *part)
{
    net_bench_call(&b, do_look, NULL);
    if (!strstr(why, part))
        fail_msg("expected \"%s\", found \"%s\"", part, why);
}

static inline const struct upstream_stats *stats(void)
{
    net_bench_call(&b, do_look, NULL);
    return &seen;
}

static inline bool is_up(void)
{
    return stats()->up;
}

/* ---- servers --------------------------------------------------------------------------------- */

/* port 0: any, which is that of all from then on. */
static inline int listen_at(const char *host)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t n = sizeof in;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &n), 0);
    port = ntohs(in.sin_port);
    return fd;
}

static inline int accepted(int server)
{
    struct pollfd p = {.fd = server, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    int fd = accept(server, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

static inline bool nobody_comes(int server)
{
    struct pollfd p = {.fd = server, .events = POLLIN};
    return poll(&p, 1, 100) == 0;
}

/* For b.svc, before start: shared links are probed. Without it none is. */
static const struct upstream_greeting probe[UPSTREAM_SHARED] = {
    {.bytes = SPAN("version\r\n"), .kind = FRAME_MC_LINE, .ok = SPAN("VERSION ")},
    {.bytes = SPAN("version\r\n"), .kind = FRAME_MC_LINE, .ok = SPAN("VERSION ")}};

/* The next link, which is a shared one. */
static inline int let_in(int server)
{
    int link = accepted(server);
    if (b.svc.probe) {
        expect(link, "version\r\n");
        say(link, "VERSION 1\r\n");
    }
    return link;
}

/* As much of a reply that never ends as finds room. */
static inline void say_much(int link)
{
    static char part[1 << 16];
    struct pollfd p = {.fd = link, .events = POLLOUT};
    say(link, "VALUE big 0 900000000\r\n");
    while (poll(&p, 1, 100) == 1)
        assert_true(send(link, part, sizeof part, MSG_NOSIGNAL | MSG_DONTWAIT) > 0);
}

/* The client asks on a link of its own, or on the first shared one, which server gets and answers.
 * Returns it. */
static inline int served_by(int server, int client, const char *how)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s hello\n", how);
    say(client, text);
    bool shares = strcmp(how, "share") == 0 || strcmp(how, "other") == 0;
    int link = shares ? let_in(server) : accepted(server);
    expect(link, "hello\n");
    say(link, "STORED\r\n");
    expect(client, "STORED\r\n");
    return link;
}

/* Is asked, and answered, there. */
static inline void served_at(int link, int client)
{
    say(client, "share more\n");
    expect(link, "more\n");
    say(link, "OK\r\n");
    expect(client, "OK\r\n");
}

static inline void start(const char *host)
{
    (void)snprintf(address, sizeof address, "tcp://%s:%u", host, port);
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, address);
}

static inline int begin(void **state)
{
    (void)state;
    net_bench_init(&b);
    plain = b.svc.serve;
    b.svc.serve = through;
    b.svc.frame = frame_memcached;
    port = 0;
    timeout_us = 5000000;
    owned_max = 0;
    buffer = 1 << 16;
    name_is(NULL, NULL, 0);
    more_before(0);
    asked = 0;
    be_silent(false);
    within = false;
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    net_bench_stop(&b);
    be_silent(false);
    return 0;
}

static inline void pass(int ms)
{
    (void)poll(NULL, 0, ms);
}

#define BENCH(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
