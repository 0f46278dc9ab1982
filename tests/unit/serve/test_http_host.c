/* Hosts that requests are for, and sites on whose behalf browsers send them. */
#include "http_conn.h"

static void check(const char *path, const char *headers, int status)
{
    char text[512], want[8];
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n%s\r\n", path, headers);
    (void)snprintf(want, sizeof want, "%d ", status);
    struct span rest = span_str(text);
    out.n = 0;
    assert_int_equal(run(&rest).verdict, NET_MORE);
    out.p[out.n] = '\0';
    if (strncmp(out.p + strlen("HTTP/1.1 "), want, strlen(want)) != 0)
        fail_msg("%s %s: expected %d, found %.30s", path, headers, status, out.p);
}

static void hosts(void **state)
{
    static char extra[] = "ids.example.com", wild[] = "*.lan";
    static char *const list[] = {extra, wild};
    static const char *const right[] = {
        "127.0.0.1",  "127.0.0.1:9464", "[::1]",           "[fd00::1]:9464",
        "127.0.0.1:", "localhost",      "LOCALHOST:1",     "a.localhost",
        "sidflake",   "sidflake:80",    "sidflake.ns.svc", "sidflake.ns.svc.cluster.local",
        "x.ns.SVC.",  "localhost.",     "ids.example.com", "Ids.Example.Com:9464",
        "a.lan",      "a.b.lan",        "pod-1.own"};
    static const char *const wrong[] = {"evil.example",
                                        "evil.example:9464",
                                        "127.0.0.1.evil.example",
                                        "1.2.3",
                                        "1.2.3.4.5",
                                        "localhost.evil.example",
                                        ".lan",
                                        "lan.x",
                                        "xids.example.com",
                                        "ids.example.com.x",
                                        "svc.example",
                                        "[evil.example]",
                                        "xlocalhost.com",
                                        "evil.example.",
                                        "[::1].evil.example",
                                        "[::1]evil.example:80",
                                        "localhost:evil.example",
                                        "127.0.0.1:80:evil.example"};
    char text[128];
    (void)state;
    s.http_hosts = list;
    s.nhttp_hosts = 2;
    (void)snprintf(s.facts.host, sizeof s.facts.host, "pod-1.own");
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        (void)snprintf(text, sizeof text, "Host: %s\r\n", right[i]);
        check("/v1/id/orders", text, 200);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)snprintf(text, sizeof text, "Host: %s\r\n", wrong[i]);
        check("/v1/id/orders", text, 421);
        check("/metrics", text, 421);
        check("/", text, 421);
        check("/v1/status", text, 421);
        check("/v1/decode/1", text, 421);
        check("/livez", text, 200);
        check("/readyz", text, 200);
        check("/healthz", text, 200);
    }
    check("/v1/id/orders", "Host: evil.example\r\n", 421);
    assert_non_null(strstr(out.p, "listen.http_hosts has, as Host, found \"evil.example\"\n"));
}

#define LOCAL "Host: localhost:9464\r\n"

static void sites(void **state)
{
    static const struct {
        const char *headers;
        int id, page;
    } cases[] = {
        {LOCAL, 200, 200},
        {LOCAL "Sec-Fetch-Site: none\r\n", 200, 200},
        {LOCAL "Sec-Fetch-Site: same-origin\r\n", 200, 200},
        {LOCAL "Sec-Fetch-Site: same-site\r\n", 403, 403},
        {LOCAL "Sec-Fetch-Site: cross-site\r\n", 403, 403},
        {LOCAL "Sec-Fetch-Site: what-comes\r\n", 403, 403},
        {LOCAL "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: iframe\r\n", 403, 403},
        {LOCAL "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n", 403, 200},
        {LOCAL "Origin: http://localhost:9464\r\n", 200, 200},
        {LOCAL "Origin: https://localhost:9464\r\n", 200, 200},
        {LOCAL "Origin: http://localhost\r\n", 403, 403},
        {LOCAL "Origin: http://localhost:9464.evil.example\r\n", 403, 403},
        {LOCAL "Origin: https://localhost:9464.evil.example\r\n", 403, 403},
        {LOCAL "Origin: http://evil.example\r\n", 403, 403},
        {LOCAL "Origin: null\r\n", 403, 403},
        {LOCAL "Origin: http://evil.example\r\nSec-Fetch-Dest: document\r\n", 403, 403},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check("/v1/id/orders", cases[i].headers, cases[i].id);
        check("/", cases[i].headers, cases[i].page);
        check("/v1/status", cases[i].headers, cases[i].id);
        check("/metrics", cases[i].headers, 200);
    }
    assert_int_equal(gen.ids.stats.issued, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(hosts), TEST(sites)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
