/* The memcached service where users are required: texts as memcached 1.6.18 -Y says them. */
#include "login.h"
#include "serve/memcached/memcached.h"
#include "support/fake_clock.h"

#define T0  (INT64_C(1767225600000) + 1000)
#define ID0 "33554439168"
#define ID1 "33554439169"

#define NO          "CLIENT_ERROR unauthenticated\r\n"
#define NOT_ALLOWED "CLIENT_ERROR id key is not allowed to this user\r\n"
#define LOGIN       "set any 0 0 10\r\nann secret\r\n"
#define LOGIN_BOB   "set any 0 0 10\r\nbob secret\r\n"

static struct fake_clock clock_;
static struct serve serve;
static struct snowflake_generator gen;
static struct net_service *svc;
static void *session;
static struct net_turn turn;
static enum net_verdict verdict; /* the latest */
static char output[NET_OUT_MAX];
static struct buf out;

static void connect_again(enum access_mode mode)
{
    free(session);
    session = calloc(1, svc->session_size);
    assert_non_null(session);
    svc->open(svc, session, (uint8_t)mode);
}

static int begin(void **state)
{
    struct err e;
    (void)state;
    memset(&serve, 0, sizeof serve);
    fake_clock_init(&clock_, T0);
    serve.clock = &clock_.clock;
    snowflake_generator_init(&gen, serve.facts.why);
    serve.issuer.batch = 1024;
    snowflake_generator_start(&gen, T0 - 1000, &layout_usual, 15, 1);
    assert_true(snowflake_grant(&gen.ids, 0, 7, T0 - 1, T0 + 3600000, NULL));
    assert_int_equal(issuer_add(&serve.issuer, &gen.base, "id:", NULL, 0, &e), ERR_OK);
    svc = protocol_memcached.make(&serve);
    serve.services[SERVE_MEMCACHED] = svc;
    turn = (struct net_turn){.clock = &clock_.clock, .wall_ms = T0, .quota = UINT32_MAX};
    buf_init(&out, output, sizeof output - 1);
    connect_again(ACCESS_REQUIRED);
    login_begin(&serve);
    return 0;
}

static int end(void **state)
{
    (void)state;
    login_end(&serve);
    free(svc);
    free(session);
    session = NULL;
    names_clear(&serve.issuer.names);
    return 0;
}

/* Feeds text, cut into pieces of n bytes, and compares what comes back. */
static void check_cut(const char *text, size_t n, const char *want)
{
    struct span rest = span_str(text);
    for (size_t have = n; rest.n > 0; have += n) {
        size_t all = strlen(text), fed = have < all ? have : all;
        struct span in = span_of(rest.p, fed - (size_t)(rest.p - text));
        struct net_step step;
        do {
            step = svc->serve(svc, session, in, &turn, &out);
            in = span_skip(in, step.used);
            rest = span_skip(rest, step.used);
            turn.reply_start = out.n;
            if (step.verdict == NET_HOLD)
                login_wait();
        } while (step.verdict == NET_DONE || step.verdict == NET_HOLD);
        verdict = step.verdict;
        if (verdict == NET_CLOSE || fed == all)
            break;
    }
    output[out.n] = '\0';
    if (strcmp(output, want) != 0)
        fail_msg("for \"%s\"\nexpected \"%s\"\nfound    \"%s\"", text, want, output);
    out.n = turn.reply_start = 0;
}

static void check(const char *text, const char *want)
{
    check_cut(text, 1000, want);
}

static void before_login(void **state)
{
    (void)state;
    check("get id:a\r\n", NO);
    check("version\r\n", NO);
    check("foo\r\n", NO);
    check("stats\r\n", NO);
    check("add k 0 0 10\r\nann secret\r\n", NO);
    check("set k 0 0 x\r\n", NO);
    check("set k x 0 3\r\nabc\r\n", NO);
    check("incr id:a 1 noreply\r\n", "");
    check("set k 0 0 2048\r\n", "");
    char block[2051];
    memset(block, 'x', 2048);
    memcpy(block + 2048, "\r\n", 3);
    check(block, NO);
    assert_int_equal(gen.ids.stats.issued, 0);
    check("quit\r\n", "");
    assert_int_equal(verdict, NET_CLOSE);
}

static void login(void **state)
{
    (void)state;
    check("set any 0 0 9\r\nann wrong\r\n", "CLIENT_ERROR authentication failure\r\n");
    check("set any 0 0 3\r\nann\r\n", "CLIENT_ERROR bad authentication token format\r\n");
    check("set any 0 0 0\r\n\r\n", "CLIENT_ERROR bad authentication token format\r\n");
    check("set any 0 0 3\r\nabcde", "CLIENT_ERROR bad data chunk\r\n");
    check("get id:a\r\n", NO);
    check(LOGIN "get id:a\r\n", "STORED\r\nVALUE id:a 0 11\r\n" ID0 "\r\nEND\r\n");
    check(LOGIN, "CLIENT_ERROR key is no id, and no upstream is configured to store it\r\n");
}

static void cut(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40; n++) {
        connect_again(ACCESS_REQUIRED);
        check_cut("get x\r\n" LOGIN "get x\r\n" LOGIN "get y\r\n", n,
                  NO "STORED\r\nEND\r\nCLIENT_ERROR key is no id, and no upstream is configured "
                     "to store it\r\nEND\r\n");
    }
}

static void names(void **state)
{
    (void)state;
    check(LOGIN_BOB, "STORED\r\n");
    check("get id:orders\r\n", "VALUE id:orders 0 11\r\n" ID0 "\r\nEND\r\n");
    check("get id:a\r\n", NOT_ALLOWED);
    check("get id:orders id:a\r\n", NOT_ALLOWED);
    check("incr id:a 1\r\n", NOT_ALLOWED);
    check("incr id:a 1 noreply\r\n", "");
    check("set id:a 0 0 1\r\nx\r\n", NOT_ALLOWED);
    check("get a\r\n", "END\r\n");
    check("get id:inv-\r\n", "VALUE id:inv- 0 11\r\n" ID1 "\r\nEND\r\n");
}

/* As for Redis: what another session was answered is no way in. */
static void known_requests(void **state)
{
    (void)state;
    check(LOGIN, "STORED\r\n");
    check("get id:a\r\n", "VALUE id:a 0 11\r\n" ID0 "\r\nEND\r\n");
    check("get id:a\r\n", "VALUE id:a 0 11\r\n" ID1 "\r\nEND\r\n");
    connect_again(ACCESS_REQUIRED);
    check("get id:a\r\n", NO);
    check(LOGIN_BOB, "STORED\r\n");
    check("get id:a\r\n", NOT_ALLOWED);
    connect_again(ACCESS_REQUIRED);
    check(LOGIN, "STORED\r\n");
    login_replace(&serve, "bob:" LOGIN_HASH "\n");
    assert_false(svc->stands(svc, session));
    assert_int_equal(gen.ids.stats.issued, 2);
}

/* A connection that closes takes its question along: whoever has its memory next is not told of it.
 */
static void a_login_ends_with_its_connection(void **state)
{
    void *who;
    (void)state;
    struct net_step step = svc->serve(svc, session, SPAN(LOGIN), &turn, &out);
    assert_int_equal(step.verdict, NET_HOLD);
    svc->close(svc, session);
    connect_again(ACCESS_REQUIRED);
    check("set any 0 0 9\r\nbob wrong\r\n", "CLIENT_ERROR authentication failure\r\n");
    assert_false(auth_answered(serve.auth, &who)); /* of two in turn */
}

/* One binary request with its answer's status; extras are none. */
static unsigned binary(uint8_t opcode, const char *key, const char *value, size_t value_n)
{
    char mem[256];
    struct buf b;
    size_t key_n = strlen(key), body = key_n + value_n;
    const unsigned char head[24] = {0x80, opcode, 0,
                                    (unsigned char)key_n, [11] = (unsigned char)body};
    buf_init(&b, mem, sizeof mem);
    buf_put(&b, head, sizeof head);
    buf_put(&b, key, key_n);
    buf_put(&b, value, value_n);
    struct span in = buf_span(&b);
    struct net_step step;
    while ((step = svc->serve(svc, session, in, &turn, &out)).verdict == NET_HOLD ||
           (step.verdict == NET_DONE && step.used < in.n)) {
        if (step.verdict == NET_HOLD)
            login_wait();
        in = span_skip(in, step.used);
    }
    assert_true(out.n >= 24 && output[0] == (char)0x81);
    unsigned status = (unsigned)(unsigned char)output[6] << 8 | (unsigned char)output[7];
    out.n = turn.reply_start = 0;
    return status;
}

#define PLAIN(text) "PLAIN", text, sizeof text - 1

static void sasl(void **state)
{
    enum {
        GET = 0x00,
        FLUSH = 0x08,
        VERSION = 0x0b,
        NOOP = 0x0a,
        STAT = 0x10,
        LIST = 0x20,
        AUTH = 0x21
    };
    (void)state;
    assert_int_equal(binary(GET, "id:a", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(NOOP, "", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(STAT, "", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(STAT, "sidflake", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(FLUSH, "", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(VERSION, "", "", 0), MCB_OK);
    assert_int_equal(binary(LIST, "", "", 0), MCB_OK);
    assert_int_equal(binary(AUTH, PLAIN("\0ann\0wrong")), MCB_AUTH_ERROR);
    assert_int_equal(binary(AUTH, PLAIN("ann")), MCB_AUTH_ERROR);
    assert_int_equal(binary(GET, "id:a", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(AUTH, PLAIN("\0bob\0secret")), MCB_OK);
    assert_int_equal(binary(GET, "id:orders", "", 0), MCB_OK);
    assert_int_equal(binary(GET, "id:a", "", 0), MCB_AUTH_ERROR);
    assert_int_equal(binary(GET, "a", "", 0), MCB_NOT_FOUND);
    assert_int_equal(binary(AUTH, PLAIN("\0ann\0secret")), MCB_OK);
    assert_int_equal(binary(GET, "id:a", "", 0), MCB_OK);
    assert_int_equal(gen.ids.stats.issued, 2);
}

static void meta(void **state)
{
    (void)state;
    check("mg id:orders v\r\n", NO);
    check("mn\r\n", NO);
    check("ms id:orders 1\r\nx\r\n", NO);
    check(LOGIN_BOB, "STORED\r\n");
    check("mg id:orders v\r\n", "VA 11\r\n" ID0 "\r\n");
    check("mg id:a v\r\n", NOT_ALLOWED);
    check("mg aWQ6YQ== b v\r\n", NOT_ALLOWED);                /* id:a */
    check("mg aWQ6b3JkZXJz b v\r\n", "VA 11\r\n" ID1 "\r\n"); /* id:orders */
    check("ma id:a v\r\n", NOT_ALLOWED);
    check("ms id:a 1\r\nx\r\n", NOT_ALLOWED);
    check("mn\r\n", "MN\r\n");
}

static void not_required(void **state)
{
    (void)state;
    for (unsigned mode = ACCESS_OFF; mode <= ACCESS_ANY; mode++) {
        connect_again((enum access_mode)mode);
        check("get a\r\n", "END\r\n");
        check("version\r\n", "VERSION " MCD_VERSION "\r\n");
    }
}

/* What of a line decides what becomes of it: the verb first, then whether it can be judged. */
static void rights_to_the_server_behind(void **state)
{
    static const struct {
        struct span in;
        enum mcd_rights may;
    } table[] = {
        {SPAN("get page:1\r\n"), MCD_RIGHTS_PASS},
        {SPAN("get page:1 x\r\n"), MCD_RIGHTS_REFUSED},
        {SPAN("delete page:1 0\r\n"), MCD_RIGHTS_PASS},
        {SPAN("mg page:1 v O\0 k\r\n"), MCD_RIGHTS_UNCLEAR},
        {SPAN("me page:1 b\0\r\n"), MCD_RIGHTS_UNCLEAR},
        {SPAN("SET page:1 0 0 1\r\nx\r\n"), MCD_RIGHTS_UNCLEAR},
        {SPAN("flush_all\r\n"), MCD_RIGHTS_REFUSED},
        {SPAN("version \0\r\n"), MCD_RIGHTS_HERE},
        {SPAN("stats\r\n"), MCD_RIGHTS_HERE},
        {SPAN("mn\r\n"), MCD_RIGHTS_PASS}, /* behind quiet requests there */
        {SPAN("quit\r\n"), MCD_RIGHTS_HERE},
    };
    (void)state;
    login_replace(&serve, "ann:" LOGIN_HASH ":upstream=all:keys=page:*\n");
    check(LOGIN, "STORED\r\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct mc_req req;
        size_t used;
        assert_int_equal(mc_parse(table[i].in, &req, &used), WIRE_REQ);
        struct mc_there there = mc_there(table[i].in);
        const struct mcd_session *s = session;
        enum mcd_rights may = mcd_rights((struct memcached *)svc, &s->access, &req, &there);
        if (may != table[i].may)
            fail_msg("expected %d, found %d: %.*s", table[i].may, may, (int)table[i].in.n,
                     table[i].in.p);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(before_login),
        TEST(login),
        TEST(cut),
        TEST(names),
        TEST(known_requests),
        TEST(not_required),
        TEST(sasl),
        TEST(meta),
        TEST(rights_to_the_server_behind),
        TEST(a_login_ends_with_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
