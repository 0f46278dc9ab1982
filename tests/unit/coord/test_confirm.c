/*
 * K >= 1, the script alone: a server that is new to the pool answers nothing but CONFIRM until its
 * own nonce comes back. The test is the client, and says what K replicas have acknowledged.
 */
#include "support/redis_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
    RUN("init", nonce, "fresh", "3600000", "30000", "120000", "2000", "60000", "1", "0", "3");
}

static void evict(const char *nonce)
{
    RUN("evict", nonce, "0");
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
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/confirm", tests, setup, teardown);
}
