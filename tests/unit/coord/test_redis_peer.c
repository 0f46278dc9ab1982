/* A connection to a server that may send anything, for as long as it likes. */
#include "coord/redis_peer.h"
#include "support/coord_says.h"
#include "support/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "$1073741824\r\n"

/* The first n bytes of a string of 1 GiB; as an answer to TIME. */
static enum coord_status ask_one_that_sends(size_t n, size_t may_read, struct coord_reply *r)
{
    struct fake_server fake;
    struct peer p = {.at = {.host = "127.0.0.1"}, .clock = clock_system()};
    struct redisReply *reply = NULL;
    const char *argv[1] = {"TIME"};
    const size_t len[1] = {4};
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, 'x', n);
    memcpy(bytes, HEAD, strlen(HEAD));
    fake_server_start(&fake, bytes, n, 0);
    p.at.port = (uint16_t)fake.port;
    peer_allow(&p, 3000000);
    if (may_read > 0)
        p.may_read = may_read;
    assert_int_equal(peer_join(&p, r), COORD_OK);
    enum coord_status s = peer_ask(&p, 1, argv, len, &reply, r);
    peer_forget(&reply);
    peer_drop(&p);
    fake_server_stop(&fake);
    free(bytes);
    return s;
}

static void an_answer_without_an_end_takes_no_more_memory_than_is_allowed(void **state)
{
    struct coord_reply r;
    (void)state;
    assert_int_equal(ask_one_that_sends(PEER_READ_MAX + 1, 0, &r), COORD_DOWN);
    coord_says(&r, "expected an end of it, found none");
}

static void one_that_is_allowed_is_waited_for(void **state)
{
    struct coord_reply r;
    (void)state;
    assert_int_equal(ask_one_that_sends(PEER_READ_MAX, 0, &r), COORD_DOWN);
    assert_int_equal(r.err.code, ERR_TIMEOUT);
    assert_int_equal(ask_one_that_sends(PEER_READ_MAX + 1, SIZE_MAX, &r), COORD_DOWN);
    assert_int_equal(r.err.code, ERR_TIMEOUT);
}

/* It is none, and that is known once all of it has come. */
static void a_snapshot_may_be_longer(void **state)
{
    enum {
        SIZE = 2 * PEER_READ_MAX
    };
    char *bytes = malloc(SIZE + 32), url[64];
    (void)state;
    assert_non_null(bytes);
    int n = snprintf(bytes, 32, "$%d\r\n", SIZE);
    memset(bytes + n, 'x', SIZE);
    memcpy(bytes + n + SIZE, "\r\n", 3);
    const struct fake_reply replies[] = {
        {"HMGET", "*2\r\n$1\r\n0\r\n$1\r\n7\r\n"},
        {"SCRIPT", "$40\r\n0123456789012345678901234567890123456789\r\n"},
        {"EVALSHA", bytes},
        {NULL, NULL},
    };
    struct fake_server fake;
    struct coord_snapshot snap;
    struct coord_reply r;
    struct coord *c;
    struct err e;
    fake_server_script(&fake, replies);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", fake.port);
    const struct coord_options o = {.url = span_str(url),
                                    .pool = SPAN("p"),
                                    .who = SPAN("{}"),
                                    .timeout_us = 3000000,
                                    .clock = clock_system()};
    assert_int_equal(coord_open(&o, &c, &e), ERR_OK);
    coord_came_to(&r, coord_snapshot(c, &snap, &r), COORD_REFUSED);
    coord_says(&r, "snapshot: expected another kind of reply");
    coord_free(c);
    fake_server_stop(&fake);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_without_an_end_takes_no_more_memory_than_is_allowed),
        cmocka_unit_test(one_that_is_allowed_is_waited_for),
        cmocka_unit_test(a_snapshot_may_be_longer),
    };
    return cmocka_run_group_tests_name("coord/redis_peer", tests, NULL, NULL);
}
