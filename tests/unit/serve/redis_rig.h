/*
 * A connection of the Redis service without a socket: what a test sends is handed to serve as net
 * would, and what comes back is compared byte by byte.
 *
 * Invariants
 *   - The clock stands still unless the test moves it, so that IDs can be foretold: rig_id(n) is
 *     the n-th of the millisecond.
 *   - Input lies in a block of its exact size, for the sanitizer to watch.
 */
#ifndef SIDFLAKE_UNIT_SERVE_REDIS_RIG_H
#define SIDFLAKE_UNIT_SERVE_REDIS_RIG_H

#include "serve/redis/redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RIG_MS     (LAYOUT_EPOCH_DEFAULT_MS + 1000)
#define RIG_WORKER 7u
#define RIG_BATCH  100u

struct rig {
    struct clock clock; /* first */
    int64_t us;         /* of the wall clock; the monotonic one runs beside it */
    struct serve serve;
    struct snowflake_generator gen;
    struct net_service *svc;
    void *session;
    struct net_turn turn;
    struct net_step step; /* the last one */
    struct buf out;
    char *in; /* not dealt with yet */
    size_t n;
    char mem[NET_OUT_MAX];
};

static inline int64_t rig_wall(struct clock *c)
{
    return ((struct rig *)(void *)c)->us;
}

static inline uint64_t rig_id(uint32_t sequence)
{
    return layout_compose(&layout_usual, 1000, RIG_WORKER, sequence);
}

static inline struct rds_session *rig_session(struct rig *r)
{
    return r->session;
}

/* Moves the time to ms after RIG_MS. */
static inline void rig_at(struct rig *r, int64_t ms)
{
    r->us = (RIG_MS + ms) * 1000;
    r->turn.wall_ms = RIG_MS + ms;
}

static inline void rig_connect(struct rig *r)
{
    r->session = calloc(1, r->svc->session_size);
    assert_non_null(r->session);
}

static inline void rig_disconnect(struct rig *r)
{
    r->svc->close(r->svc, r->session);
    free(r->session);
    free(r->in);
    r->in = NULL;
    r->n = 0;
    r->out.n = r->turn.reply_start = 0;
}

/* names: NULL-terminated list of the configured ones, or NULL for any. */
static inline struct rig *rig_new(char *const *names)
{
    struct rig *r = calloc(1, sizeof *r);
    size_t count = 0;
    struct err e;
    assert_non_null(r);
    r->clock = (struct clock){rig_wall, rig_wall};
    while (names && names[count])
        count++;
    snowflake_generator_init(&r->gen, r->serve.facts.why);
    assert_int_equal(issuer_add(&r->serve.issuer, &r->gen.base, "id:", names, count, &e), ERR_OK);
    snowflake_generator_start(&r->gen, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 1);
    assert_true(snowflake_grant(&r->gen.ids, 1, RIG_WORKER, RIG_MS - 1, RIG_MS + 3600000, NULL));
    r->serve.facts.granted = true;
    r->serve.issuer.batch = RIG_BATCH;
    r->serve.issuer.max_wait_us = 100000;
    r->serve.clock = &r->clock;
    r->serve.max_connections = 4096;
    r->serve.started_mono_us = RIG_MS * 1000 - 90061000000;
    r->svc = protocol_redis.make(&r->serve);
    assert_non_null(r->svc);
    buf_init(&r->out, r->mem, sizeof r->mem);
    r->turn = (struct net_turn){.clock = &r->clock, .quota = UINT32_MAX};
    rig_at(r, 0);
    rig_connect(r);
    return r;
}

static inline void rig_free(struct rig *r)
{
    rig_disconnect(r);
    names_clear(&r->serve.issuer.names);
    free(r->svc);
    free(r);
}

/* Serves until something else comes back than NET_DONE or that it is long, as net does. */
static inline enum net_verdict rig_pump(struct rig *r)
{
    bool goes_on;
    do {
        r->step = r->svc->serve(r->svc, r->session, span_of(r->in, r->n), &r->turn, &r->out);
        assert_true(r->step.used <= r->n);
        assert_false(r->out.failed);
        size_t left = r->n - r->step.used;
        char *rest = malloc(left ? left : 1);
        assert_non_null(rest);
        if (left)
            memcpy(rest, r->in + r->step.used, left);
        free(r->in);
        r->in = rest;
        r->n = left;
        if (r->step.verdict == NET_DONE)
            net_turn_answered(&r->turn);
        if (r->step.verdict == NET_DONE || !r->step.partial)
            r->turn.reply_start = r->out.n;
        goes_on = r->step.verdict == NET_DONE ||
                  (r->step.verdict == NET_YIELD && r->step.cost == NET_DEAR);
    } while (goes_on);
    return r->step.verdict;
}

static inline enum net_verdict rig_send(struct rig *r, struct span bytes)
{
    char *in = malloc(r->n + bytes.n + 1);
    assert_non_null(in);
    if (r->n)
        memcpy(in, r->in, r->n);
    memcpy(in + r->n, bytes.p, bytes.n);
    free(r->in);
    r->n += bytes.n;
    r->in = realloc(in, r->n);
    return rig_pump(r);
}

/* Sends words, divided by single spaces, as a multibulk; "" between two spaces is an empty arg. */
static inline enum net_verdict rig_ask(struct rig *r, const char *words)
{
    static char mem[70000];
    struct buf b;
    struct span rest = span_str(words);
    uint64_t n = 1;
    for (size_t i = 0; i < rest.n; i++)
        n += rest.p[i] == ' ';
    buf_init(&b, mem, sizeof mem);
    resp_put_array(&b, n);
    while (rest.p)
        resp_put_bulk(&b, span_cut(&rest, ' '));
    assert_false(b.failed);
    return rig_send(r, buf_span(&b));
}

/* What was answered since the last look. */
static inline void rig_expect(struct rig *r, const char *expected)
{
    r->mem[r->out.n < sizeof r->mem ? r->out.n : sizeof r->mem - 1] = '\0';
    assert_string_equal(r->mem, expected);
    r->out.n = r->turn.reply_start = 0;
}

/* Asks, and compares the whole answer. */
static inline void rig_check(struct rig *r, const char *words, const char *expected)
{
    assert_int_equal(rig_ask(r, words), NET_MORE);
    rig_expect(r, expected);
}

/* As rig_check, for an answer that is to begin so. */
static inline void rig_begins(struct rig *r, const char *words, const char *expected)
{
    assert_int_equal(rig_ask(r, words), NET_MORE);
    if (!span_starts(buf_span(&r->out), span_str(expected)))
        rig_expect(r, expected);
    r->out.n = r->turn.reply_start = 0;
}

/* Expected bytes of n IDs as bulk strings, from the sequence number first on, behind a header. */
static inline const char *rig_ids(const char *header, uint32_t first, uint32_t n)
{
    static char text[32768];
    struct buf b;
    buf_init(&b, text, sizeof text - 1);
    buf_put_str(&b, header);
    for (uint32_t i = 0; i < n; i++)
        resp_put_bulk_u64(&b, rig_id(first + i));
    text[b.n] = '\0';
    return text;
}

/* Expected bytes put together from two parts. */
static inline const char *rig_both(const char *a, const char *b)
{
    static char text[32768 + 1024];
    struct buf both;
    buf_init(&both, text, sizeof text - 1);
    buf_put_str(&both, a);
    buf_put_str(&both, b);
    text[both.n] = '\0';
    return text;
}

/* Expected bytes of one ID as an integer. */
static inline const char *rig_integer(uint32_t sequence)
{
    static char text[64];
    (void)snprintf(text, sizeof text, ":%llu\r\n", (unsigned long long)rig_id(sequence));
    return text;
}

static inline uint64_t rig_counted(const struct rig *r, const char *label, enum serve_result res)
{
    for (unsigned i = 0; i < SERVE_COMMANDS; i++)
        if (serve_command(SERVE_REDIS, i) && strcmp(serve_command(SERVE_REDIS, i), label) == 0)
            return r->serve.requests[SERVE_REDIS][i][res];
    fail_msg("no command %s is counted", label);
    return 0;
}

static inline int rig_setup(void **state)
{
    *state = rig_new(NULL);
    return 0;
}

static inline int rig_setup_names(void **state)
{
    static char orders[] = "orders", users[] = "users", invoices[] = "invoices";
    static char *const names[] = {orders, users, invoices, NULL};
    *state = rig_new(names);
    return 0;
}

static inline int rig_teardown(void **state)
{
    rig_free(*state);
    return 0;
}

#define RIG_TEST(f)       cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
#define RIG_NAMES_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup_names, rig_teardown)

#endif
