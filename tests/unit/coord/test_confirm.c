/*
 * K >= 1, the script alone: a server that is new to the pool answers nothing but CONFIRM until its
 * own nonce comes back. The test is the client, and says what K replicas have acknowledged.
 */
#include "base/clock.h"
#include "support/redis_server.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const char pool_lua[];

#define IDENTITY "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10"
#define KEYS     "sidflake:{p}:h", "sidflake:{p}:free", "sidflake:{p}:exp", "sidflake:{p}:who"
#define RUN(op, nonce, ...)                                                                        \
    ((void)SERVER_DO(&server, out, "EVAL", pool_lua, "4", KEYS, op, IDENTITY, nonce, __VA_ARGS__))

static struct server server;
static char out[4096];

/* The n-th line of the answer, from 0. */
static const char *line(unsigned n)
{
    static char text[128];
    const char *at = out;
    while (n-- > 0 && at)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    (void)snprintf(text, sizeof text, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    return text;
}

static void make(const char *nonce)
{
    char now[24];
    (void)snprintf(now, sizeof now, "%" PRId64, clock_wall_ms(clock_system()));
    RUN("init", nonce, now, "fresh", "3600000", "30000", "120000", "2000", "60000", "1", "0", "3",
        "0", "0", "0", "1");
}

static void evict_at(int64_t caller_ms, const char *nonce)
{
    char now[24];
    (void)snprintf(now, sizeof now, "%" PRId64, caller_ms);
    RUN("evict", nonce, now, "0");
}

static void evict(const char *nonce)
{
    evict_at(clock_wall_ms(clock_system()), nonce);
}

/* Up to when it is known that replicas had all. */
static int64_t sure(void)
{
    (void)SERVER_DO(&server, out, "HGET", "sidflake:{p}:h", "sure");
    return strtoll(out, NULL, 10);
}

static void make_sure(int64_t ms)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, ms);
    (void)SERVER_DO(&server, out, "HSET", "sidflake:{p}:h", "sure", text);
}

/* The nonce that the server asks to be confirmed. */
static void asked(char nonce[128])
{
    if (strcmp(line(0), "CONFIRM") != 0)
        fail_msg("expected CONFIRM, found %s", out);
    (void)snprintf(nonce, 128, "%s", line(2));
    assert_string_equal(line(3), "1");
}

/* What a server of another run_id would have given out at the same time. */
static void of_another(char other[128], const char *nonce)
{
    (void)snprintf(other, 128, "%s", nonce);
    other[0] = other[0] == '0' ? '1' : '0';
}

static void a_pool_is_made_once_confirmed(void **state)
{
    (void)state;
    char nonce[128], other[128];
    (void)SERVER_DO(&server, out, "FLUSHALL");
    make("");
    asked(nonce);
    of_another(other, nonce);
    make(other);
    asked(nonce);
    make(nonce);
    assert_string_equal(line(0), "OK");
}

static void a_new_server_reopens_once_confirmed(void **state)
{
    (void)state;
    char nonce[128], other[128];
    (void)SERVER_DO(&server, out, "FLUSHALL");
    make("");
    asked(nonce);
    make(nonce);
    evict("");
    assert_string_equal(line(0), "LOST");
    assert_true(SERVER_DO(&server, out, "HSET", "sidflake:{p}:h", "fp", "0123456789abcdef"));
    evict("");
    asked(nonce);
    of_another(other, nonce);
    evict(other);
    asked(nonce);
    evict(strchr(nonce, '@'));
    asked(nonce);
    assert_true(SERVER_DO(&server, out, "HGET", "sidflake:{p}:h", "era"));
    assert_string_equal(line(0), "1");
    evict(nonce);
    assert_string_equal(line(0), "LOST");
    assert_string_equal(line(2), "2");
}

/* A restart is short by what was confirmed last; so that is never longer ago than the renewal of a
 * sidecar alone, nor too high. */
static void a_server_is_confirmed_from_time_to_time(void **state)
{
    (void)state;
    char nonce[128], first[128];
    (void)SERVER_DO(&server, out, "FLUSHALL");
    make("");
    asked(first);
    make(first);
    int64_t at = strtoll(strchr(first, '@') + 1, NULL, 10);
    assert_int_equal(sure(), at);
    make_sure(at - 15000 + 5000); /* an eighth of D0, less what this takes */
    evict("");
    assert_string_equal(line(0), "LOST");
    make_sure(at - 15000 - 1);
    evict("");
    asked(nonce);
    evict(nonce);
    assert_string_equal(line(0), "LOST");
    assert_true(sure() >= at);
    make_sure(at + 1000);
    evict(first); /* a late one */
    assert_int_equal(sure(), at + 1000);
}

/* Its clock is ahead, and what is confirmed at a time that has not come may be lost by then. */
static void what_is_sure_follows_a_caller_who_is_behind(void **state)
{
    (void)state;
    char nonce[128];
    (void)SERVER_DO(&server, out, "FLUSHALL");
    make("");
    asked(nonce);
    make(nonce);
    int64_t caller = clock_wall_ms(clock_system()) - 10000;
    make_sure(0);
    evict_at(caller, "");
    asked(nonce);
    evict_at(caller, nonce);
    assert_string_equal(line(0), "LOST");
    assert_int_equal(sure(), caller);
}

static int setup(void **state)
{
    (void)state;
    server_start(&server, false, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_free(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_is_made_once_confirmed),
        cmocka_unit_test(a_new_server_reopens_once_confirmed),
        cmocka_unit_test(a_server_is_confirmed_from_time_to_time),
        cmocka_unit_test(what_is_sure_follows_a_caller_who_is_behind),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/confirm", tests, setup, teardown);
}
