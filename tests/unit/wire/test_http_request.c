#include "wire/http_request.h"

#include "support/wirefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define H "Host: x\r\n"

struct exchange {
    const char *in, *log;
};

static void check(struct span in, const char *expected)
{
    static struct wirefeed_log log;
    wirefeed_check(WIREFEED_HTTP, in, 1, &log);
    assert_string_equal(log.text, expected);
}

static void check_all(const struct exchange *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(span_str(e[i].in), e[i].log);
}

#define CHECK_ALL(table) check_all((table), sizeof(table) / sizeof *(table))

static void requests(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"GET /metrics HTTP/1.1\r\nHost: a:9464\r\nAccept: text/plain;version=0.0.4\r\n\r\n",
         "REQ GET /metrics host=a:9464 accept=text/plain;version=0.0.4 keep\n"},
        {"GET /livez?verbose HTTP/1.1\nhost:x\n\nHEAD / HTTP/1.0\n\n",
         "REQ GET /livez?verbose host=x keep\nREQ HEAD /\n"},
        {"\r\n\nGET /? HTTP/1.1\r\n" H "\r\n", "REQ GET /? host=x keep\n"},
        {"GET / HTTP/1.1\r\n" H "Connection: Close\r\n\r\n", "REQ GET / host=x\n"},
        {"GET / HTTP/1.1\r\n" H "Connection: foo, close\r\n\r\n", "REQ GET / host=x\n"},
        {"GET / HTTP/1.0\r\nConnection: a\r\nConnection: Keep-Alive\r\n\r\n", "REQ GET / keep\n"},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "REQ GET /\n"},
        {"GET / HTTP/1.9\r\n" H "\r\n", "REQ GET / host=x keep\n"},
        {"GET http://h:1/p?q HTTP/1.1\r\n" H "\r\n", "REQ GET /p?q host=h:1 keep\n"},
        {"GET HTTP://h HTTP/1.1\r\n" H "\r\n", "REQ GET / host=h keep\n"},
        {"GET http://h?q HTTP/1.1\r\n" H "\r\n", "REQ GET /?q host=h keep\n"},
        {"GET / HTTP/1.1\r\nHost:\r\nX-Y: \t\xe4 a \r\nEmpty:\r\n\r\n", "REQ GET / keep\n"},
        {"GET / HTTP/1.1\r\n" H "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
         "REQ GET / host=x keep\n"},
        {"GET / HTTP/1.1\r\n" H "accept: a\r\nAccept: b\r\n\r\n",
         "REQ GET / host=x accept=a keep\n"},
        {"GET / HTTP/1.1\r\n" H "\r", "LEFT bytes=26\n"},
        {"GE", "LEFT bytes=2\n"},
        {"\r\n\r", "LEFT bytes=3\n"},
    };
    CHECK_ALL(table);
}

/* Each is answered with this status, and with nothing of what follows. */
static void errors(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *in;
    } table[] = {
        {400, "\x16\x03\x01"},
        {400, " GET / HTTP/1.1\r\n"},
        {400, "GET /\r\n"},
        {400, "GET  / HTTP/1.1\r\n"},
        {400, "GET / HTTP/1.1 \r\n"},
        {400, "GET / HTTP/1.10\r\n"},
        {400, "GET / http/1.1\r\n"},
        {400, "GET / HTTP/1-1\r\n"},
        {400, "GET / HTTP/x.1\r\n"},
        {400, "G(T / HTTP/1.1\r\n"},
        {400, " / HTTP/1.1\r\n"},
        {400, "GET /\x01 HTTP/1.1\r\n"},
        {400, "GET /\x7f HTTP/1.1\r\n"},
        {400, "GET /\xc3\xa4 HTTP/1.1\r\n"},
        {400, "GET /a#b HTTP/1.1\r\n"},
        {400, "GET * HTTP/1.1\r\n"},
        {400, "GET foo HTTP/1.1\r\n"},
        {400, "GET https://h/ HTTP/1.1\r\n"},
        {400, "GET http:/// HTTP/1.1\r\n"},
        {400, "GET http://u@h/ HTTP/1.1\r\n"},
        {400, "GET ?q HTTP/1.1\r\n"},
        {400, "GET /\r HTTP/1.1\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" H H "\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a b\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : a\r\n"},
        {400, "GET / HTTP/1.1\r\n Host: a\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "X\r\n"},
        {400, "GET / HTTP/1.1\r\n" H ": a\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "X(: a\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "X: a\rb\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "X: a\x01\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "Content-Length: x\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "Content-Length: +1\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 0\r\n"},
        {400, "GET / HTTP/1.1\r\n" H "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {405, "POST /v1/id/x HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcde"},
        {405, "OPTIONS * HTTP/1.1\r\n"},
        {405, "CONNECT a:1 HTTP/1.1\r\n"},
        {501, "get / HTTP/1.1\r\n"},
        {501, "BREW /pot HTTP/1.1\r\n"},
        {501, "GET / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n"},
        {501,
         "GET / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {413, "GET / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"},
        {413, "GET / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcde"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {505, "GET / HTTP/0.9\r\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "CLOSE status=%d\n", table[i].status);
        check(span_str(table[i].in), expected);
    }
    check(SPAN("GET / HTTP/1.1\r\n" H "X: a\0b\r\n"), "CLOSE status=400\n");
    check(SPAN("\0"), "CLOSE status=400\n");
}

/* before, filler, after: n bytes in all. */
static struct span sized(const char *before, char filler, const char *after, size_t n)
{
    static char text[2 * HTTP_HEAD_MAX];
    size_t a = strlen(before), z = strlen(after);
    memset(text, filler, n);
    memcpy(text, before, a);
    memcpy(text + n - z, after, z);
    return span_of(text, n);
}

static void long_heads(void **state)
{
    (void)state;
    static struct wirefeed_log log;
    const size_t max = HTTP_HEAD_MAX;
    wirefeed_check(WIREFEED_HTTP, sized("GET /", 'x', " HTTP/1.1\r\n" H "\r\n", max), 2, &log);
    assert_memory_equal(log.text, "REQ GET ", 8);
    check(sized("GET /", 'x', " HTTP/1.1\r\n" H "\r\n", max + 1), "CLOSE status=431\n");
    check(sized("GET /", 'x', "x", max - 1), "LEFT bytes=8191\n");
    check(sized("GET /", 'x', "x", max), "CLOSE status=414\n");
    check(sized("GET / HTTP/1.0\r\n", 'x', ": a\r\n\r\n", max), "REQ GET /\n");
    check(sized("GET / HTTP/1.0\r\n", 'x', ": a\r\n\r\n", max + 1), "CLOSE status=431\n");
    check(sized("GET / HTTP/1.0\r\nX: ", 'x', "x", max), "CLOSE status=431\n");
    check(sized("", '\n', "", max - 1), "LEFT bytes=8191\n");
    check(sized("", '\n', "", max + 1), "CLOSE status=414\n");
}

static void error_is_a_response(void **state)
{
    (void)state;
    static struct http_req req;
    size_t used;
    const struct span in = SPAN("POST / HTTP/1.1\r\n\r\n");
    assert_int_equal(http_parse(in, &req, &used), WIRE_CLOSE);
    assert_int_equal(used, in.n);
    assert_true(span_eq(req.error, SPAN("HTTP/1.1 405 Method Not Allowed\r\n"
                                        "Content-Type: text/plain; charset=utf-8\r\n"
                                        "Content-Length: 33\r\n"
                                        "Cache-Control: no-store\r\n"
                                        "X-Content-Type-Options: nosniff\r\n"
                                        "Allow: GET, HEAD\r\n"
                                        "Connection: close\r\n\r\n"
                                        "expected GET or HEAD, found POST\n")));
}

/* An error to HEAD has no body; a long method is not echoed whole, and every text fits. */
static void error_bodies(void **state)
{
    (void)state;
    static struct http_req req;
    size_t used;
    char in[400];
    assert_int_equal(http_parse(SPAN("HEAD / HTTP/1.1\r\n\r\n"), &req, &used), WIRE_CLOSE);
    assert_memory_equal(req.error.p + req.error.n - 4, "\r\n\r\n", 4);
    snprintf(in, sizeof in, "%0300d / HTTP/1.1\r\n", 7);
    assert_int_equal(http_parse(span_str(in), &req, &used), WIRE_CLOSE);
    assert_int_equal(req.status, 501);
    const struct span end = SPAN("HEAD, found 00000000000000000000000000000000\n");
    assert_memory_equal(req.error.p + req.error.n - end.n, end.p, end.n);
    assert_in_range(req.error.n, 1, HTTP_ERROR_MAX - 1);
}

static void heads(void **state)
{
    (void)state;
    char mem[512];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    http_put_head(&b, 200, SPAN("text/plain"), 12, true, SPAN("X: y\r\n"));
    assert_true(span_eq(buf_span(&b), SPAN("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                           "Content-Length: 12\r\nCache-Control: no-store\r\n"
                                           "X-Content-Type-Options: nosniff\r\nX: y\r\n"
                                           "Connection: keep-alive\r\n\r\n")));
    assert_string_equal(http_status_text(503), "Service Unavailable");
    assert_string_equal(http_status_text(410), "Gone"); /* of a sequence that is used up */
    assert_string_equal(http_status_text(299), "Unknown");
}

static void queries(void **state)
{
    (void)state;
    const struct span query = SPAN("verbose&n=5&empty=&n=6&a=b=c&&=x");
    struct span v = SPAN("before");
    assert_false(http_query_get(query, SPAN("verb"), &v));
    assert_false(http_query_get(query, SPAN("N"), &v));
    assert_false(http_query_get(span_of(NULL, 0), SPAN("n"), &v));
    assert_false(http_query_get(SPAN(""), SPAN("n"), &v));
    assert_true(span_eq(v, SPAN("before")));
    assert_true(http_query_get(query, SPAN("verbose"), &v) && v.n == 0 && v.p);
    assert_true(http_query_get(query, SPAN("n"), &v) && span_eq(v, SPAN("5")));
    assert_true(http_query_get(query, SPAN("empty"), &v) && v.n == 0);
    assert_true(http_query_get(query, SPAN("a"), &v) && span_eq(v, SPAN("b=c")));
}

static void lists(void **state)
{
    (void)state;
    const struct span accept = SPAN("application/openmetrics-text;version=1.0.0;q=0.5, Text/Plain");
    assert_true(http_list_has(accept, SPAN("application/openmetrics-text")));
    assert_true(http_list_has(accept, SPAN("text/plain")));
    assert_false(http_list_has(accept, SPAN("text")));
    assert_false(http_list_has(accept, SPAN("version=1.0.0")));
    assert_false(http_list_has(span_of(NULL, 0), SPAN("text")));
    static const char *const unwanted[] = {"a/b;q=0", "a/b; Q=0.000", "c, a/b ;v=1; q=0."};
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        assert_false(http_list_has(span_str(unwanted[i]), SPAN("a/b")));
    static const char *const wanted[] = {"a/b;q=0.001", "a/b;q=", "a/b;q=.0", "a/b;qq=0",
                                         "a/b;q=0, a/b"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_true(http_list_has(span_str(wanted[i]), SPAN("a/b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),     cmocka_unit_test(errors),
        cmocka_unit_test(long_heads),   cmocka_unit_test(error_is_a_response),
        cmocka_unit_test(error_bodies), cmocka_unit_test(heads),
        cmocka_unit_test(queries),      cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests_name("wire/http_request", tests, NULL, NULL);
}
