#include "http_conn.h"

/* ---- IDs --------------------------------------------------------------------------------------
 */

static void ids(void **state)
{
    (void)state;
    static const char three[] = "33554439173\n33554439174\n33554439175\n";
    ok(GET("/v1/id/orders"), "33554439168\n");
    ok(GET("/v1/id/orders?n=1"), "33554439169\n");
    answers(ACCEPT("/v1/id/orders?n=2", "text/html, Application/JSON;q=0.9"), "200 OK", JSON,
            "{\"ids\":[\"33554439170\",\"33554439171\"]}\n");
    answers(ACCEPT("/v1/id/orders", "application/json"), "200 OK", JSON,
            "{\"ids\":[\"33554439172\"]}\n");
    answers(ACCEPT("/v1/id/orders?x=1&n=3&n=9", "*/*"), "200 OK", TEXT, three);
    assert_int_equal(s.issuer.names.prefix[0].entry[0].issued, 8);
    assert_int_equal(count("id", SERVE_OK), 5);
}

static void names_in_paths(void **state)
{
    (void)state;
    static const char *const same[] = {
        GET("/v1/id/a\"b\\c/d"), GET("/v1/id/a%22b%5Cc%2Fd"),
        GET("/v1/id/a%22b%5cc%2fd%23x"), /* "#ANYTHING" is ignored, as in keys */
    };
    for (size_t i = 0; i < 3; i++) {
        struct span in = span_str(same[i]);
        assert_int_equal(run(&in).verdict, NET_MORE);
        (void)body_of("200");
        out.n = 0;
        assert_int_equal(s.issuer.names.prefix[0].entry[1].issued, i + 1);
    }
    static const char *const bad[] = {GET("/v1/id/a%"), GET("/v1/id/a%2"), GET("/v1/id/%g0"),
                                      GET("/v1/id/%0g")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct span in = span_str(bad[i]);
        assert_int_equal(run(&in).verdict, NET_MORE);
        (void)body_of("400");
        out.n = 0;
    }
    answers(GET("/v1/id/%zz"), "400 Bad Request", TEXT,
            "expected two hexadecimal digits behind each % of a name, found \"%zz\"\n");
}

static void unknown_names(void **state)
{
    (void)state;
    static char target[8192];
    answers(GET("/v1/id/order"), "404 Not Found", TEXT,
            "expected a name of ids.names, found \"order\"\n");
    answers(GET("/v1/id/"), "404 Not Found", TEXT, "expected a name of ids.names, found \"\"\n");
    answers(GET("/v1/id/%00"), "404 Not Found", TEXT,
            "expected a name of ids.names, found \"%00\"\n");
    for (int n = 190; n < 7000; n += 13) {
        (void)snprintf(target, sizeof target, "GET /v1/id/%0*d HTTP/1.1\r\nHost: x\r\n\r\n", n, 7);
        struct span in = span_str(target);
        assert_int_equal(run(&in).verdict, NET_MORE);
        assert_string_equal(body_of("404"),
                            "expected a name of ids.names, found \"0000000000000000000000000000000"
                            "000000000000000000000000000000000...\"\n");
        out.n = 0;
    }
    assert_int_equal(gen.ids.stats.issued, 0);
    assert_int_equal(count("id", SERVE_OK), 0);
}

static void any_name(void **state)
{
    (void)state;
    names_clear(&s.issuer.names);
    assert_int_equal(issuer_add(&s.issuer, &gen.base, "", NULL, 0, NULL), ERR_OK);
    ok(GET("/v1/id/whatever:1"), "33554439168\n");
    assert_int_equal(s.issuer.names.prefix[0].other.issued, 1);
    answers(GET("/v1/id/a%20b"), "404 Not Found", TEXT,
            "expected a name of 1 to 200 printable bytes, found \"a%20b\"\n");
}

static void bad_counts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0", "2049", "-1", "+1", "", "x", "1x", "18446744073709551617", "4294967297", "%31"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char in[128], body[128];
        (void)snprintf(in, sizeof in, "GET /v1/id/orders?n=%s" HOST "Accept: " JSON "\r\n\r\n",
                       bad[i]);
        (void)snprintf(body, sizeof body, "expected n from 1 to 2048, found \"%s\"\n", bad[i]);
        answers(in, "400 Bad Request", TEXT, body);
    }
    assert_int_equal(gen.ids.stats.issued, 0);
    assert_int_equal(count("id", SERVE_INVALID), sizeof bad / sizeof *bad);
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* More than a millisecond holds: the reply is built up over two of them, and sent whole. */
static void parks_midway(void **state)
{
    (void)state;
    struct span in = SPAN(GET("/v1/id/orders?n=1030") GET("/livez"));
    size_t whole = in.n;
    struct net_step step = run(&in);
    assert_int_equal(step.verdict, NET_QUEUE);
    assert_int_equal(step.until_ms, NOW_MS + 1);
    assert_true(step.partial);
    assert_int_equal(in.n, whole);
    assert_int_equal(s.issuer.names.prefix[0].entry[0].issued, 1024);
    step = run(&in); /* woken too early */
    assert_int_equal(step.verdict, NET_QUEUE);
    assert_true(step.partial);
    now.ms++;
    step = run(&in);
    assert_int_equal(step.verdict, NET_MORE);
    assert_int_equal(in.n, 0);
    const char *livez = response("200 OK", TEXT, "ok", true);
    out.n -= strlen(livez);
    assert_memory_equal(out.p + out.n, livez, strlen(livez));
    uint64_t before = 0, id;
    char *at = body_of("200"), *end;
    for (int i = 0; i < 1030; i++, at = end + 1) {
        id = strtoull(at, &end, 10);
        assert_int_equal(id, i < 1024 ? layout_compose(&layout_usual, 1000, 7, (uint32_t)i)
                                      : layout_compose(&layout_usual, 1001, 7, (uint32_t)i - 1024));
        assert_true(id > before && *end == '\n');
        before = id;
    }
    assert_int_equal(*at, '\0');
}

static bool packs(void)
{
    char mem[256];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    return svc->pack(svc, session, &b);
}

/* A quota of two IDs a turn. */
static void yields(void **state)
{
    (void)state;
    struct span in = SPAN(ACCEPT("/v1/id/orders?n=5", JSON));
    for (int i = 0; i < 2; i++) {
        turn.quota = 2;
        struct net_step step = run(&in);
        assert_int_equal(step.verdict, NET_YIELD);
        assert_true(step.partial);
        assert_false(packs()); /* what is written of it would be lost, and its head */
    }
    turn.quota = 2;
    assert_int_equal(run(&in).verdict, NET_MORE);
    sent(response("200 OK", JSON,
                  "{\"ids\":[\"33554439168\",\"33554439169\",\"33554439170\",\"33554439171\","
                  "\"33554439172\"]}\n",
                  true));
    answers(ACCEPT("/v1/id/orders", JSON), "200 OK", JSON, "{\"ids\":[\"33554439173\"]}\n");
}

/* What could not begin leaves nothing in the output. */
static void parks_at_once(void **state)
{
    (void)state;
    int64_t last;
    assert_true(snowflake_revoke(&gen.ids, 1, &last));
    struct span in = SPAN(GET("/livez") ACCEPT("/v1/id/orders", JSON));
    struct net_step step = run(&in);
    assert_int_equal(step.verdict, NET_WAIT);
    assert_int_equal(step.until_ms, INT64_MAX);
    assert_false(step.partial);
    sent(response("200 OK", TEXT, "ok", true));
    turn.waited_us = s.issuer.max_wait_us;
    struct span again = in;
    assert_int_equal(run(&in).verdict, NET_MORE);
    sent(response("503 Service Unavailable", TEXT, "no workerId is held yet\n", true));
    assert_int_equal(count("id", SERVE_FAILED), 1);
    assert_true(snowflake_grant(&gen.ids, 2, 8, NOW_MS - 1, HI_MS, NULL));
    turn.waited_us = 0;
    assert_int_equal(run(&again).verdict, NET_MORE);
    sent(response("200 OK", JSON, "{\"ids\":[\"33554440192\"]}\n", true));
}

/* Refused midway: the IDs collected are dropped, and the next request starts from nothing. */
static void refused_midway(void **state)
{
    (void)state;
    int64_t last;
    struct span in = SPAN(ACCEPT("/v1/id/orders?n=2048", JSON));
    assert_true(run(&in).partial);
    assert_true(snowflake_revoke(&gen.ids, 1, &last));
    assert_int_equal(run(&in).verdict, NET_WAIT);
    turn.waited_us = s.issuer.max_wait_us;
    assert_int_equal(run(&in).verdict, NET_MORE);
    sent(response("503 Service Unavailable", TEXT, "no workerId is held yet\n", true));
    assert_true(snowflake_grant(&gen.ids, 2, 8, NOW_MS, HI_MS, NULL));
    now.ms++;
    ok(GET("/v1/id/orders?n=1"), "33587994624\n");
}

/* ---- decode -----------------------------------------------------------------------------------
 */

static void decode(void **state)
{
    (void)state;
    ok(GET("/v1/decode/33554439173"), "id=33554439173\ntime=2026-01-01T00:00:01.000Z\n"
                                      "unix_ms=1767225601000\nworker=7\nsequence=5\n");
    ok(GET("/v1/decode/9223372036854775807"),
       "id=9223372036854775807\ntime=2034-09-17T10:58:26.943Z\nunix_ms=2042103506943\n"
       "worker=32767\nsequence=1023\n");
    answers(ACCEPT("/v1/decode/33554439173", JSON), "200 OK", JSON,
            "{\"id\":\"33554439173\",\"time\":\"2026-01-01T00:00:01.000Z\","
            "\"unix_ms\":1767225601000,\"worker\":7,\"sequence\":5}\n");
    static const char *const bad[] = {
        "", "x", "-1", "1/", "9223372036854775808", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char in[128], body[128];
        (void)snprintf(in, sizeof in, "GET /v1/decode/%s" HOST "\r\n", bad[i]);
        (void)snprintf(body, sizeof body,
                       "expected an ID from 0 to 9223372036854775807, found \"%s\"\n", bad[i]);
        answers(in, "400 Bad Request", TEXT, body);
    }
    gen.started = false;
    refused(GET("/v1/decode/33554439173"), "no workerId is held yet\n");
    assert_int_equal(count("decode", SERVE_OK), 3);
    assert_int_equal(count("decode", SERVE_INVALID), 6);
    assert_int_equal(count("decode", SERVE_FAILED), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ids),      TEST(names_in_paths), TEST(unknown_names),
        TEST(any_name), TEST(bad_counts),     TEST(parks_midway),
        TEST(yields),   TEST(parks_at_once),  TEST(refused_midway),
        TEST(decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
