#include "http_conn.h"

/* ---- probes -----------------------------------------------------------------------------------
 */

static void ready(void **state)
{
    (void)state;
    ok(GET("/livez"), "ok");
    ok(GET("/readyz"), "ok");
    ok(GET("/healthz"), "ok");
    ok(GET("/livez?verbose"), "[+]loop ok\nlivez check passed\n");
    ok(GET("/readyz?verbose"), "[+]loop ok\n[+]workerId ok\n[+]clock ok\n[+]lease ok\n"
                               "[+]epoch ok\nreadyz check passed\n");
    ok(GET("/healthz?x&verbose=1"), "[+]loop ok\n[+]workerId ok\n[+]clock ok\n[+]lease ok\n"
                                    "[+]epoch ok\nhealthz check passed\n");
    assert_int_equal(count("livez", SERVE_OK), 2);
    assert_int_equal(count("readyz", SERVE_OK), 4);
    assert_int_equal(gen.ids.stats.issued, 0);
}

/* IDs go on for as long as the ranges last: whoever looks learns that nothing extends them. */
static void a_coordinator_that_is_away_fails_no_check(void **state)
{
    (void)state;
#define CHECKS "[+]loop ok\n[+]workerId ok\n[+]clock ok\n[+]lease ok\n[+]epoch ok\n"
#define UNTIL  "; IDs can be had until 2026-01-01T01:00:01.000Z, for 1 h\n"
    strcpy(s.facts.why, "connection refused");
    s.facts.answered = true;
    ok(GET("/readyz?verbose"), CHECKS
       "[!]coordinator: the coordinator is away: connection refused" UNTIL "readyz check passed\n");
    s.facts.up = true;
    ok(GET("/readyz?verbose"), CHECKS
       "[!]coordinator: the coordinator refuses: connection refused" UNTIL "readyz check passed\n");
}

/* Each of health's findings, in its order: skew, the next start ... */
static void what_fails_no_check_is_listed(void **state)
{
    (void)state;
    s.facts.answered = s.facts.up = s.facts.serves = true;
    s.facts.max_skew_ms = 2000;
    s.facts.skew_ms = 1500;
    strcpy(s.facts.page, "cannot make /x: Read-only file system");
    ok(GET("/readyz?verbose"),
       CHECKS "[!]skew: this clock and the coordinator's are 1 s apart; claims are refused from "
              "2 s\n[!]state_page: no state page: a restart costs workerIds, and gives no IDs "
              "while the coordinator is away: cannot make /x: Read-only file system\n"
              "readyz check passed\n");
    ok(GET("/readyz"), "ok");
}

static void no_worker(void **state)
{
    (void)state;
    int64_t last;
    assert_true(snowflake_revoke(&gen.ids, 1, &last));
    ok(GET("/livez"), "ok");
    refused(GET("/readyz"), "no workerId is held yet\n");
    strcpy(s.facts.why, "the pool is empty");
    refused(GET("/healthz"), "no workerId is held: the pool is empty\n");
    refused(GET("/readyz?verbose"),
            "[+]loop ok\n[-]workerId failed: no workerId is held: the pool is empty\n"
            "[+]clock ok\n[+]lease ok\n[+]epoch ok\nreadyz check failed\n");
    gen.started = false;
    refused(GET("/readyz"), "no workerId is held: the pool is empty\n");
    assert_int_equal(count("readyz", SERVE_FAILED), 4);
}

static void no_worker_for_the_clock(void **state)
{
    (void)state;
    int64_t last;
    s.facts.answered = true;
    s.facts.max_skew_ms = 2000;
    s.facts.skew_ms = -86400000;
    ok(GET("/readyz"), "ok"); /* IDs go on */
    assert_true(snowflake_revoke(&gen.ids, 1, &last));
    strcpy(s.facts.why, "the clocks differ by a day");
    refused(GET("/readyz?verbose"),
            "[+]loop ok\n[-]workerId failed: no workerId is held: the clocks differ by a day\n"
            "[-]clock failed: no workerId is held: the clocks differ by a day\n"
            "[+]lease ok\n[+]epoch ok\n[!]skew: this clock and the coordinator's are 1 d apart; "
            "claims are refused from 2 s\nreadyz check failed\n");
    s.facts.skew_ms = 2000; /* that is allowed */
    refused(GET("/readyz?verbose"),
            "[+]loop ok\n[-]workerId failed: no workerId is held: the clocks differ by a day\n"
            "[+]clock ok\n[+]lease ok\n[+]epoch ok\n[!]skew: this clock and the coordinator's are "
            "2 s apart; claims are refused from 2 s\nreadyz check failed\n");
}

/* The one check that fails is the one that names the reason. */
static void not_ready(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *line;
    } table[] = {
        {NOW_MS - 100, "[-]clock failed: the clock is behind"},
        {HI_MS + 1, "[-]lease failed: each range of time held has ended"},
    };
    ok(GET("/v1/id/orders"), "33554439168\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct span in = SPAN(GET("/readyz?verbose"));
        now.ms = table[i].ms;
        assert_int_equal(run(&in).verdict, NET_MORE);
        const char *bad = strstr(body_of("503"), "[-]");
        assert_non_null(bad);
        assert_memory_equal(bad, table[i].line, strlen(table[i].line));
        assert_null(strstr(bad + 1, "[-]"));
        assert_non_null(strstr(bad, "\nreadyz check failed\n"));
        out.n = 0;
    }
}

/* ---- the connection ---------------------------------------------------------------------------
 */

static void list(void **state)
{
    (void)state;
    ok(ACCEPT("/", "text/plain"),
       "sidflake " SIDFLAKE_VERSION "\n"
       "/metrics       Prometheus text, or OpenMetrics by Accept\n"
       "/livez         200 while the process serves; ?verbose\n"
       "/readyz        200 when an ID can be had, else 503; ?verbose\n"
       "/healthz       the same\n"
       "/v1/id/NAME    ?n=N IDs, one a line, or JSON by Accept\n"
       "/v1/decode/ID  time, workerId, sequence; or JSON by Accept\n"
       "/v1/status     what the status page tells, as JSON\n"
       "/              the status page; this list with Accept: text/plain\n");
    static const char *const unknown[] = {"/metrics/", "/livezz", "/v1/id", "//", "/favicon.ico"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char in[128], body[128];
        (void)snprintf(in, sizeof in, "GET %s" HOST "\r\n", unknown[i]);
        (void)snprintf(body, sizeof body, "expected one of the paths that / lists, found \"%s\"\n",
                       unknown[i]);
        answers(in, "404 Not Found", TEXT, body);
    }
    assert_int_equal(count("other", SERVE_MISS), 5);
}

/* What comes as HTML may run nothing but its own script, and be framed by nobody. */
static void status_page(void **state)
{
    (void)state;
    struct span in = SPAN(ACCEPT("/", "text/html,*/*;q=0.8"));
    assert_int_equal(run(&in).verdict, NET_MORE);
    const char *body = body_of("200 OK");
    assert_non_null(strstr(out.p, "\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(out.p, "\r\nCache-Control: no-store\r\n"));
    assert_non_null(strstr(out.p, "\r\nContent-Security-Policy: default-src 'none'; style-src "
                                  "'nonce-00000000000000000000000000000000'; "));
    assert_non_null(strstr(out.p, "frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"));
    assert_non_null(strstr(body, "<script nonce=\"00000000000000000000000000000000\">"));
    out.n = 0;
    in = SPAN("HEAD /" HOST "\r\n");
    assert_int_equal(run(&in).verdict, NET_MORE);
    out.p[out.n] = '\0';
    assert_int_equal(strstr(out.p, "\r\n\r\n") + 4 - out.p, out.n);
    assert_int_equal(count("status", SERVE_OK), 2);
}

static void status_json(void **state)
{
    (void)state;
    struct span in = SPAN(GET("/v1/status"));
    assert_int_equal(run(&in).verdict, NET_MORE);
    const char *body = body_of("200 OK");
    assert_non_null(strstr(out.p, "\r\nContent-Type: application/json\r\n"));
    assert_memory_equal(body, "{\"version\":\"" SIDFLAKE_VERSION "\",", 14);
    assert_int_equal(count("status_json", SERVE_OK), 1);
}

static int fresh_connection(void **state)
{
    return tear_down(state) || set_up(state);
}

static void closes(void **state)
{
    static const char *const polite[] = {
        "GET /livez HTTP/1.0\r\n\r\n",
        "GET /livez" HOST "Connection: close\r\n\r\n" GET("/livez"), /* not answered any more */
    };
    for (size_t i = 0; i < 2; i++) {
        struct span in = span_str(polite[i]);
        assert_int_equal(fresh_connection(state), 0);
        served = 0;
        assert_int_equal(run(&in).verdict, NET_CLOSE);
        assert_int_equal(served, 1);
        sent(response("200 OK", TEXT, "ok", false));
    }
    struct span in = SPAN("GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_int_equal(fresh_connection(state), 0);
    assert_int_equal(run(&in).verdict, NET_MORE);
    sent(response("200 OK", TEXT, "ok", true));
}

static void errors_close(void **state)
{
    (void)state;
    struct span in = SPAN("POST /v1/id/orders" HOST "Content-Length: 1\r\n\r\nx" GET("/livez"));
    assert_int_equal(run(&in).verdict, NET_CLOSE);
    assert_int_equal(in.n, 0);
    assert_string_equal(body_of("405"), "expected GET or HEAD, found POST\n");
    out.n = 0;
    in = SPAN("GET\r\n");
    assert_int_equal(run(&in).verdict, NET_CLOSE);
    (void)body_of("400");
    assert_int_equal(count("other", SERVE_REFUSED), 1);
    assert_int_equal(count("other", SERVE_INVALID), 1);
}

/* Byte by byte as at once. */
static void pieces(void **state)
{
    (void)state;
    static const char text[] = GET("/livez?verbose") "HEAD /readyz" HOST "\r\n" GET("/nowhere");
    static char whole[4096];
    struct span in = SPAN(GET("/livez?verbose") "HEAD /readyz" HOST "\r\n" GET("/nowhere"));
    assert_int_equal(run(&in).verdict, NET_MORE);
    memcpy(whole, out.p, out.n);
    size_t n = out.n, start = 0;
    buf_init(&out, memory, NET_OUT_MAX);
    static char kept[sizeof memory];
    size_t nkept = 0;
    for (size_t end = 1; end < sizeof text; end++) {
        in = span_of(text + start, end - start);
        assert_int_equal(run(&in).verdict, NET_MORE);
        start = end - in.n;
        memcpy(kept + nkept, out.p, out.n);
        nkept += out.n;
        out.n = 0;
    }
    assert_int_equal(nkept, n);
    assert_memory_equal(kept, whole, n);
}

static void heads(void **state)
{
    (void)state;
    static const char *const targets[] = {"/livez", "/readyz?verbose",   "/v1/id/orders?n=7",
                                          "/x",     "/v1/id/orders?n=x", "/v1/decode/5"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char in[128], head[1024];
        (void)snprintf(in, sizeof in, "GET %s" HOST "\r\n", targets[i]);
        struct span get = span_str(in);
        assert_int_equal(run(&get).verdict, NET_MORE);
        const char *body = body_of("");
        size_t n = (size_t)(body - out.p);
        assert_in_range(n, 1, sizeof head - 1);
        memcpy(head, out.p, n);
        head[n] = '\0';
        out.n = 0;
        (void)snprintf(in, sizeof in, "HEAD %s" HOST "\r\n", targets[i]);
        struct span request = span_str(in);
        assert_int_equal(run(&request).verdict, NET_MORE);
        sent(head);
    }
}

static void metrics_types(void **state)
{
    (void)state;
    static const struct {
        const char *accept, *type, *end;
    } table[] = {
        {"text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n", NULL},
        {"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
         "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n",
         "\n# EOF\n"},
    };
    for (size_t i = 0; i < 2; i++) {
        char in[256];
        (void)snprintf(in, sizeof in, "GET /metrics" HOST "Accept: %s\r\n\r\n", table[i].accept);
        struct span request = span_str(in);
        assert_int_equal(run(&request).verdict, NET_MORE);
        const char *body = body_of("200");
        assert_non_null(strstr(out.p, table[i].type));
        assert_non_null(strstr(body, "\nsidflake_workers_held 0\n"));
        const char *eof = strstr(body, "# EOF");
        assert_true(table[i].end ? eof && strcmp(eof - 1, table[i].end) == 0 : !eof);
        out.n = 0;
    }
    assert_int_equal(count("metrics", SERVE_OK), 2);
}

/* An answer that is too long for the output becomes a short one that says so. */
static void no_room(void **state)
{
    (void)state;
    struct span in = SPAN(GET("/metrics"));
    buf_init(&out, memory, 2048);
    assert_int_equal(run(&in).verdict, NET_MORE);
    assert_string_equal(body_of("500"), "expected an answer that fits the output, found \"a longer "
                                        "one\"\n");
    assert_int_equal(count("metrics", SERVE_FAILED), 1);
    in = SPAN(GET("/livez"));
    buf_init(&out, memory, 64);
    assert_int_equal(run(&in).verdict, NET_CLOSE);
    assert_int_equal(out.n, 0);
}

static void over_limit(void **state)
{
    (void)state;
    buf_put_span(&out, svc->refusal);
    assert_string_equal(body_of("503 Service Unavailable\r\n"), "too many open connections\n");
    assert_non_null(strstr(out.p, "\r\nConnection: close\r\n"));
}

static void labels(void **state)
{
    (void)state;
    static const char *const names[] = {"metrics", "livez",  "readyz",      "id",
                                        "decode",  "status", "status_json", "other"};
    for (unsigned i = 0; i < 8; i++)
        assert_string_equal(serve_command(SERVE_HTTP, i), names[i]);
    assert_null(serve_command(SERVE_HTTP, 8));
    assert_null(serve_command(SERVE_HTTP, SERVE_COMMANDS - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ready),
        TEST(a_coordinator_that_is_away_fails_no_check),
        TEST(what_fails_no_check_is_listed),
        TEST(no_worker),
        TEST(no_worker_for_the_clock),
        TEST(not_ready),
        TEST(list),
        TEST(closes),
        TEST(errors_close),
        TEST(pieces),
        TEST(heads),
        TEST(metrics_types),
        TEST(no_room),
        TEST(over_limit),
        TEST(labels),
        TEST(status_page),
        TEST(status_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
