/* HTTP with users: Basic for IDs, nothing for probes and metrics. */
#include "http_conn.h"
#include "login.h"

#define ANN             "YW5uOnNlY3JldA=="
#define BOB             "Ym9iOnNlY3JldA"
#define AS(who, target) "GET " target HOST "Authorization: Basic " who "\r\n\r\n"
#define EXPECTED        "expected the name and password of a user (Basic)\n"

static int begin(void **state)
{
    int r = set_up(state);
    svc->open(svc, session, ACCESS_REQUIRED);
    login_begin(&s);
    return r;
}

static int end(void **state)
{
    login_end(&s);
    return tear_down(state);
}

/* The status, body behind it, of one request. */
static const char *ask(const char *in)
{
    struct span rest = span_str(in);
    struct net_step step;
    out.n = 0;
    while ((step = run(&rest)).verdict == NET_HOLD)
        login_wait();
    assert_int_equal(step.verdict, NET_MORE);
    out.p[out.n] = '\0';
    return out.p + strlen("HTTP/1.1 ");
}

static void check(const char *in, const char *status)
{
    const char *found = ask(in);
    if (strncmp(found, status, strlen(status)) != 0)
        fail_msg("%s: expected %s, found %s", in, status, found);
}

static void nobody(void **state)
{
    (void)state;
    check(GET("/v1/id/orders") "\r\n", "401 Unauthorized\r\n");
    assert_non_null(strstr(out.p, "\r\nWWW-Authenticate: Basic realm=\"sidflake\""));
    assert_string_equal(body_of("401"), EXPECTED);
    check(GET("/v1/decode/1") "\r\n", "401 ");
    check("GET /v1/id/orders" HOST "Accept: application/json\r\n\r\n", "401 ");
    check(GET("/livez") "\r\n", "200 ");
    check(GET("/readyz") "\r\n", "200 ");
    check(GET("/") "\r\n", "401 "); /* it shows what is logged */
    check(GET("/v1/status") "\r\n", "401 ");
    assert_int_equal(count("id", SERVE_REFUSED), 2);
    assert_int_equal(gen.ids.stats.issued, 0);
}

static void users(void **state)
{
    (void)state;
    check(AS(ANN, "/v1/id/orders"), "200 ");
    check(AS(ANN, "/v1/id/orders?n=3"), "200 ");
    check(AS(BOB, "/v1/id/orders"), "200 ");
    check(AS(BOB, "/v1/id/a%22b%5cc%2fd"), "403 Forbidden\r\n");
    check(AS(ANN, "/v1/id/a%22b%5cc%2fd"), "200 ");
    check(AS(ANN, "/v1/decode/1"), "200 ");
    check(AS(ANN, "/"), "200 ");
    check(AS(ANN, "/v1/status"), "200 ");
    check("GET /v1/id/orders" HOST "authorization: basic   " ANN "\r\n\r\n", "200 ");
    check(GET("/v1/id/orders") "\r\n", "401 "); /* each request anew */
}

static void wrong(void **state)
{
    static const char *const bad[] = {
        AS("YW5uOnNlY3JlVA==", "/v1/id/orders"),
        AS("", "/v1/id/orders"),
        AS("YW5u", "/v1/id/orders"),
        AS("!!!!", "/v1/id/orders"),
        "GET /v1/id/orders" HOST "Authorization: Bearer " ANN "\r\n\r\n",
        "GET /v1/id/orders" HOST "Authorization: Basic\r\n\r\n",
        "GET /v1/id/orders" HOST "Authorization: Basic x\r\nAuthorization: Basic " ANN "\r\n\r\n"};
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check(bad[i], "401 ");
    int n = snprintf(text, sizeof text, "GET /v1/id/orders" HOST "Authorization: Basic ");
    memset(text + n, 'A', 1500);
    memcpy(text + n + 1500, "\r\n\r\n", 5);
    check(text, "401 ");
    assert_int_equal(gen.ids.stats.issued, 0);
}

/* What he has asked goes with his connection: an answer would be for whoever has its place. */
static void who_has_gone_is_not_answered(void **state)
{
    struct span in = span_str(AS(ANN, "/v1/id/orders"));
    unsigned answers = 0;
    void *who;
    (void)state;
    assert_int_equal(run(&in).verdict, NET_HOLD);
    svc->close(svc, session);
    svc->open(svc, session, ACCESS_REQUIRED);
    check(AS(BOB, "/v1/id/orders"), "200 "); /* looked at behind the other */
    while (auth_answered(s.auth, &who))
        answers++;
    assert_int_equal(answers, 0); /* he has had his own */
}

static void closed(void **state)
{
    (void)state;
    svc->open(svc, session, ACCESS_CLOSED);
    check(GET("/v1/id/orders") "\r\n", "403 ");
    check(AS(ANN, "/v1/id/orders"), "403 ");
    check(GET("/v1/decode/1") "\r\n", "403 ");
    check(GET("/") "\r\n", "200 ");
    check(GET("/v1/status") "\r\n", "200 ");
    check(GET("/readyz") "\r\n", "200 ");
}

static void not_required(void **state)
{
    (void)state;
    svc->open(svc, session, ACCESS_ANY);
    check(AS("!!", "/v1/id/orders"), "200 ");
    svc->open(svc, session, ACCESS_OFF);
    check(GET("/v1/id/orders") "\r\n", "200 ");
}

#define LOGIN_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {LOGIN_TEST(nobody), LOGIN_TEST(users),
                                       LOGIN_TEST(wrong),  LOGIN_TEST(who_has_gone_is_not_answered),
                                       LOGIN_TEST(closed), LOGIN_TEST(not_required)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
