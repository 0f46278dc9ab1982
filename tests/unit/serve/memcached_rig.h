/*
 * A connection of the memcached service without a socket: what a test sends is handed to serve as
 * net would, and what comes back is compared byte by byte.
 *
 * Invariants
 *   - The clock stands still unless the test moves it, so that IDs can be foretold.
 *   - Input lies in a block of its exact size, for the sanitizer to watch.
 */
#ifndef SIDFLAKE_UNIT_SERVE_MEMCACHED_RIG_H
#define SIDFLAKE_UNIT_SERVE_MEMCACHED_RIG_H

#include "serve/memcached/memcached.h"
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EPOCH INT64_C(1767225600000)
#define T0    (EPOCH + 1000)

/* The first IDs of T0, of workerId 7. */
#define ID0 "33554439168"
#define ID1 "33554439169"
#define ID2 "33554439170"

static struct fake_clock clock_;
static struct serve serve;
static struct snowflake_generator gen;
static struct net_service *svc;
static void *session;
static struct net_turn turn;
static struct net_step step; /* the latest */
static char input[1 << 20];
static size_t input_n;
static char output[NET_OUT_MAX];
static struct buf out;

static inline void begin_named(const char *prefix, char *const *names, size_t n)
{
    struct err e;
    free(svc);
    free(session);
    names_clear(&serve.issuer.names);
    memset(&serve, 0, sizeof serve);
    fake_clock_init(&clock_, T0);
    serve.clock = &clock_.clock;
    snowflake_generator_init(&gen, serve.facts.why);
    serve.issuer.max_wait_us = 100000;
    serve.issuer.batch = 1024;
    snowflake_generator_start(&gen, EPOCH, &layout_usual, 15, 1);
    assert_true(snowflake_grant(&gen.ids, 0, 7, T0 - 1, T0 + 3600000, NULL));
    assert_int_equal(issuer_add(&serve.issuer, &gen.base, prefix, names, n, &e), ERR_OK);
    svc = protocol_memcached.make(&serve);
    session = calloc(1, svc->session_size);
    assert_non_null(session);
    serve.services[SERVE_MEMCACHED] = svc;
    turn = (struct net_turn){.clock = &clock_.clock, .wall_ms = T0, .quota = UINT32_MAX};
    input_n = 0;
    buf_init(&out, output, sizeof output);
}

static inline int begin(void **state)
{
    (void)state;
    begin_named("id:", NULL, 0);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    free(svc);
    free(session);
    svc = NULL;
    session = NULL;
    names_clear(&serve.issuer.names);
    return 0;
}

/* As the connection does it, without sending. The input lies in a block of its exact size. */
static inline void run(void)
{
    do {
        char *in = malloc(input_n ? input_n : 1);
        assert_non_null(in);
        memcpy(in, input, input_n);
        step = svc->serve(svc, session, span_of(in, input_n), &turn, &out);
        free(in);
        assert_true(step.used <= input_n);
        input_n -= step.used;
        memmove(input, input + step.used, input_n);
        if (step.verdict == NET_DONE || !step.partial)
            turn.reply_start = out.n;
    } while (step.verdict == NET_DONE);
    assert_false(out.failed);
}

static inline void feed(const char *bytes, size_t n)
{
    assert_true(input_n + n <= sizeof input);
    memcpy(input + input_n, bytes, n);
    input_n += n;
    run();
}

static inline void forget_output(void)
{
    buf_truncate(&out, 0);
    turn.reply_start = 0;
}

static inline void check_output(const char *request, const char *want)
{
    if (out.n != strlen(want) || memcmp(out.p, want, out.n) != 0)
        fail_msg("for \"%s\"\nexpected \"%s\"\nfound    \"%.*s\"", request, want, (int)out.n,
                 out.p);
    forget_output();
}

/* The answer to a whole request, however it is cut: at once here, byte by byte below. */
static inline void expect(const char *request, const char *answer)
{
    feed(request, strlen(request));
    check_output(request, answer);
    assert_int_equal(step.verdict, NET_MORE);
    assert_int_equal(input_n, 0);
}

static inline uint64_t counted(enum mc_verb verb, enum serve_result r)
{
    return serve.requests[SERVE_MEMCACHED][verb][r];
}

static inline void take_worker_away(void)
{
    int64_t last;
    assert_true(snowflake_revoke(&gen.ids, 0, &last));
}

/* The conversation again, byte by byte: the answer must be that to the whole. */
static inline void check_byte_by_byte(const char *conversation, size_t n)
{
    static char whole[8192];
    feed(conversation, n);
    size_t answered = out.n;
    assert_true(answered < sizeof whole && answered > 200);
    memcpy(whole, out.p, answered);
    begin(NULL);
    for (size_t i = 0; i < n; i++)
        feed(conversation + i, 1);
    assert_int_equal(out.n, answered);
    assert_memory_equal(out.p, whole, answered);
}

#define MC(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
