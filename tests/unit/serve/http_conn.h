/*
 * The HTTP service and one connection of it, without the network: what the tests of the service
 * share. A pool with the default epoch is known, workerId 7 is held for an hour, and the time is
 * one second after the epoch.
 */
#ifndef SIDFLAKE_TESTS_UNIT_SERVE_HTTP_CONN_H
#define SIDFLAKE_TESTS_UNIT_SERVE_HTTP_CONN_H

#include "serve/http/http_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW_MS (LAYOUT_EPOCH_DEFAULT_MS + 1000)
#define HI_MS  (NOW_MS + 3600000)

#define TEXT                  "text/plain; charset=utf-8"
#define JSON                  "application/json"
#define HOST                  " HTTP/1.1\r\nHost: x\r\n"
#define GET(target)           "GET " target HOST "\r\n"
#define ACCEPT(target, types) "GET " target HOST "Accept: " types "\r\n\r\n"

struct fake {
    struct clock clock;
    int64_t ms;
};

static inline int64_t fake_us(struct clock *c)
{
    return ((struct fake *)c)->ms * 1000;
}

static inline void fill_zeros(struct rng *r, void *p, size_t n)
{
    (void)r;
    memset(p, 0, n);
}

static struct fake now;
static struct rng zeros = {fill_zeros};
static struct serve s;
static struct net_service *svc;
static void *session;
static char memory[NET_OUT_MAX + 1]; /* one more for a NUL */
static struct buf out;
static struct net_turn turn;
static struct snowflake_generator gen;
static unsigned served; /* requests answered */

static inline int set_up(void **state)
{
    (void)state;
    static char one[] = "orders", two[] = "a\"b\\c/d";
    char *const list[] = {one, two};
    now = (struct fake){{fake_us, fake_us}, NOW_MS};
    memset(&s, 0, sizeof s);
    s.clock = &now.clock;
    s.rng = &zeros;
    s.issuer.batch = 2048;
    s.issuer.max_wait_us = 100000;
    snowflake_generator_init(&gen, s.facts.why);
    snowflake_generator_start(&gen, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 1);
    svc = protocol_http.make(&s);
    session = svc ? calloc(1, svc->session_size) : NULL;
    buf_init(&out, memory, NET_OUT_MAX);
    turn = (struct net_turn){.clock = &now.clock, .quota = UINT32_MAX};
    bool granted = snowflake_grant(&gen.ids, 1, 7, NOW_MS - 1, HI_MS, NULL);
    bool named = issuer_add(&s.issuer, &gen.base, "id:", list, 2, NULL) == ERR_OK;
    return session && granted && named ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    names_clear(&s.issuer.names);
    free(session);
    free(svc);
    return 0;
}

/* As a connection does: requests until one cannot be answered; what was used is cut from *in. */
static inline struct net_step run(struct span *in)
{
    struct net_step step;
    turn.reply_start = 0;
    turn.wall_ms = now.ms;
    do {
        step = svc->serve(svc, session, *in, &turn, &out);
        *in = span_skip(*in, step.used);
        served += (step.verdict == NET_DONE || step.verdict == NET_CLOSE) && step.used > 0;
        if (step.verdict == NET_DONE || !step.partial)
            turn.reply_start = out.n;
    } while (step.verdict == NET_DONE);
    return step;
}

static inline void sent(const char *expected)
{
    out.p[out.n] = '\0';
    assert_string_equal(out.p, expected);
    out.n = 0;
}

/* The response, head and body. The text lives until the next call. */
static inline const char *response(const char *status, const char *type, const char *body,
                                   bool keep)
{
    static char text[2048];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                     "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s"
                     "Connection: %s\r\n\r\n%s",
                     status, type, strlen(body), *status == '5' ? "Retry-After: 1\r\n" : "",
                     keep ? "keep-alive" : "close", body);
    assert_in_range(n, 1, sizeof text - 1);
    return text;
}

static inline void answers(const char *in, const char *status, const char *type, const char *body)
{
    struct span rest = span_str(in);
    assert_int_equal(run(&rest).verdict, NET_MORE);
    assert_int_equal(rest.n, 0);
    sent(response(status, type, body, true));
}

static inline void ok(const char *in, const char *body)
{
    answers(in, "200 OK", TEXT, body);
}

static inline void refused(const char *in, const char *body)
{
    answers(in, "503 Service Unavailable", TEXT, body);
}

/* The body of the one reply in out, which ends with it and then with NUL. */
static inline char *body_of(const char *status)
{
    out.p[out.n] = '\0';
    assert_memory_equal(out.p, "HTTP/1.1 ", 9);
    assert_memory_equal(out.p + 9, status, strlen(status));
    char *body = strstr(out.p, "\r\n\r\n");
    const char *length = strstr(out.p, "Content-Length: ");
    assert_non_null(body);
    assert_non_null(length);
    body += 4;
    assert_int_equal(strtoul(length + 16, NULL, 10), out.n - (size_t)(body - out.p));
    return body;
}

static inline uint64_t count(const char *command, enum serve_result r)
{
    unsigned i = 0;
    while (strcmp(serve_command(SERVE_HTTP, i), command) != 0)
        i++;
    return s.requests[SERVE_HTTP][i][r];
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
