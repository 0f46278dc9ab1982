/* AUTH and HELLO AUTH, NOAUTH, and names of IDs that a user may have. Texts as Redis 7.0.15 says
 * them; user names and ID names are ours. */
#include "login.h"
#include "redis_rig.h"

#define NOAUTH    "-NOAUTH Authentication required.\r\n"
#define WRONGPASS "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
#define NO_PASSWORD                                                                                \
    "-ERR AUTH <password> called without any password configured for the default user. Are you "   \
    "sure your configuration is correct?\r\n"
#define HELLO_NOAUTH                                                                               \
    "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "     \
    "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "        \
    "protocol version at the same time\r\n"
#define NOT_ALLOWED(key) "-ERR id key '" key "' is not allowed to user 'bob'\r\n"

static void set_mode(struct rig *r, enum access_mode mode)
{
    r->svc->open(r->svc, r->session, (uint8_t)mode);
}

static int begin(void **state)
{
    struct rig *r = rig_new(NULL);
    login_begin(&r->serve);
    set_mode(r, ACCESS_REQUIRED);
    *state = r;
    return 0;
}

static int end(void **state)
{
    struct rig *r = *state;
    login_end(&r->serve);
    rig_free(r);
    return 0;
}

/* Asks, waits for the checker where that is necessary, and compares. */
static void check(struct rig *r, const char *words, const char *expected)
{
    enum net_verdict v = rig_ask(r, words);
    while (v == NET_HOLD) {
        assert_int_equal(r->step.used, 0);
        login_wait();
        v = rig_pump(r);
    }
    assert_int_equal(v, NET_MORE);
    rig_expect(r, expected);
}

static void before_login(void **state)
{
    struct rig *r = *state;
    check(r, "GET id:a", NOAUTH);
    check(r, "PING", NOAUTH);
    check(r, "MULTI", NOAUTH);
    check(r, "CLIENT ID", NOAUTH);
    check(r, "INFO", NOAUTH);
    check(r, "SUBSCRIBE x", NOAUTH);
    check(r, "SET id:a 1", NOAUTH);
    check(r, "FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n");
    check(r, "GET", "-ERR wrong number of arguments for 'get' command\r\n");
    check(r, "CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n");
    check(r, "EXEC",
          "-EXECABORT Transaction discarded because of: NOAUTH Authentication required."
          "\r\n");
    check(r, "HELLO", HELLO_NOAUTH);
    check(r, "HELLO 3", HELLO_NOAUTH);
    check(r, "HELLO 3 SETNAME x", HELLO_NOAUTH);
    check(r, "HELLO 9", "-NOPROTO unsupported protocol version\r\n");
    check(r, "RESET", "+RESET\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
    assert_int_equal(rig_ask(r, "QUIT"), NET_CLOSE);
}

static void login(void **state)
{
    struct rig *r = *state;
    check(r, "AUTH a b c", "-ERR syntax error\r\n");
    check(r, "AUTH wrong", WRONGPASS);
    check(r, "AUTH eve secret", WRONGPASS);
    check(r, "GET id:a", NOAUTH);
    check(r, "AUTH secret", "+OK\r\n");
    check(r, "GET id:a", rig_ids("", 0, 1));
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "AUTH ann wrong", WRONGPASS); /* whoever is in stays so */
    check(r, "GET id:a", rig_ids("", 1, 1));
    rig_begins(r, "CLIENT INFO", "$");
    check(r, "RESET", "+RESET\r\n");
    check(r, "GET id:a", NOAUTH);
}

/* A password without a name is the default user's, and has that one's rights. */
static void a_password_alone(void **state)
{
    struct rig *r = *state;
    login_replace(&r->serve, "ann:" LOGIN_HASH "\ndefault:" LOGIN_HASH ":names=b\n");
    check(r, "AUTH secret", "+OK\r\n");
    check(r, "GET id:a", "-ERR id key 'id:a' is not allowed to user 'default'\r\n");
    check(r, "GET id:b", rig_ids("", 0, 1));
    login_replace(&r->serve, "ann:" LOGIN_HASH "\n");
    check(r, "AUTH secret", WRONGPASS);
}

static void hello(void **state)
{
    struct rig *r = *state;
    check(r, "HELLO 3 AUTH ann wrong SETNAME svc", WRONGPASS);
    assert_int_equal(rig_session(r)->proto, 2);
    assert_int_equal(rig_session(r)->name_n, 0);
    assert_int_equal(rig_ask(r, "HELLO 3 AUTH ann secret SETNAME svc"), NET_HOLD);
    login_wait();
    assert_int_equal(rig_pump(r), NET_MORE);
    assert_memory_equal(r->mem, "%7\r\n", 4);
    assert_int_equal(rig_session(r)->proto, 3);
    assert_int_equal(rig_session(r)->name_n, 3);
}

/* What comes behind an AUTH that is being checked waits for it. */
static void pipeline(void **state)
{
    struct rig *r = *state;
    assert_int_equal(rig_send(r, SPAN("PING\r\nAUTH ann secret\r\nPING\r\n")), NET_HOLD);
    rig_expect(r, NOAUTH);
    login_wait();
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "+OK\r\n+PONG\r\n");
}

static void within_multi(void **state)
{
    struct rig *r = *state;
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "MULTI", "+OK\r\n");
    check(r, "GET id:a", "+QUEUED\r\n");
    check(r, "AUTH bob secret", "+QUEUED\r\n");
    check(r, "GET id:b", "+QUEUED\r\n");
    check(r, "GET id:orders", "+QUEUED\r\n");
    check(r, "EXEC",
          "*4\r\n$11\r\n33554439168\r\n+OK\r\n" NOT_ALLOWED("id:b") "$11\r\n33554439169\r\n");
}

static void names(void **state)
{
    struct rig *r = *state;
    check(r, "AUTH bob secret", "+OK\r\n");
    check(r, "GET id:orders", rig_ids("", 0, 1));
    check(r, "GET id:orders#7", rig_ids("", 1, 1));
    check(r, "MGET id:inv-1 id:inv-", rig_ids("*2\r\n", 2, 2));
    check(r, "GET id:orders2", NOT_ALLOWED("id:orders2"));
    check(r, "MGET id:orders id:a", NOT_ALLOWED("id:a"));
    check(r, "INCR id:a", NOT_ALLOWED("id:a"));
    check(r, "LPOP id:a 3", NOT_ALLOWED("id:a"));
    check(r, "EXISTS id:a", NOT_ALLOWED("id:a"));
    check(r, "GET a", "$-1\r\n");
    check(r, "MULTI", "+OK\r\n");
    check(r, "GET id:a", NOT_ALLOWED("id:a"));
    check(r, "EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 4);
}

/* A request that another session has had answered is known by its bytes: it means something else to
 * whoever has not shown who he is, or may not have that name. */
static void known_requests(void **state)
{
    struct rig *r = *state;
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET id:a", rig_ids("", 0, 1));
    check(r, "GET id:a", rig_ids("", 1, 1));
    rig_disconnect(r);
    rig_connect(r);
    set_mode(r, ACCESS_REQUIRED);
    check(r, "GET id:a", NOAUTH);
    check(r, "AUTH bob secret", "+OK\r\n");
    check(r, "GET id:a", NOT_ALLOWED("id:a"));
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET id:a", rig_ids("", 2, 1));
    check(r, "GET id:a", rig_ids("", 3, 1));
}

static void reload(void **state)
{
    struct rig *r = *state;
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET id:a", rig_ids("", 0, 1));
    login_replace(&r->serve, LOGIN_USERS "new:" LOGIN_HASH "\n");
    check(r, "GET id:a", rig_ids("", 1, 1));
    assert_true(r->svc->stands(r->svc, r->session));
    login_replace(&r->serve, "ann:" LOGIN_HASH ":names=b\n");
    assert_false(r->svc->stands(r->svc, r->session));
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET id:a", "-ERR id key 'id:a' is not allowed to user 'ann'\r\n");
    check(r, "GET id:b", rig_ids("", 2, 1));
    login_replace(&r->serve, "bob:" LOGIN_HASH "\n");
    assert_false(r->svc->stands(r->svc, r->session));
    check(r, "RESET", "+RESET\r\n");
    assert_true(r->svc->stands(r->svc, r->session)); /* nobody's: it may log in */
}

static void off(void **state)
{
    struct rig *r = *state;
    set_mode(r, ACCESS_OFF);
    check(r, "AUTH p", NO_PASSWORD);
    check(r, "AUTH default p", "+OK\r\n");
    check(r, "AUTH u p", WRONGPASS);
    check(r, "HELLO 2 AUTH u p", WRONGPASS);
    check(r, "GET id:a", rig_ids("", 0, 1));
    check(r, "GET id:a", rig_ids("", 1, 1));
}

static void accept_any(void **state)
{
    struct rig *r = *state;
    set_mode(r, ACCESS_ANY);
    check(r, "GET id:a", rig_ids("", 0, 1));
    check(r, "AUTH p", "+OK\r\n");
    check(r, "AUTH u p", "+OK\r\n");
    rig_begins(r, "HELLO 2 AUTH u p", "*14\r\n");
    check(r, "GET id:a", rig_ids("", 1, 1));
}

/* One that began where nobody had to log in, and was taken over (SIGUSR2) to where all have to. */
static void a_transaction_of_before_is_no_more(void **state)
{
    struct rig *r = *state;
    static char mem[4096];
    struct buf parcel;
    set_mode(r, ACCESS_OFF);
    check(r, "MULTI", "+OK\r\n");
    check(r, "GET id:a", "+QUEUED\r\n");
    buf_init(&parcel, mem, sizeof mem);
    assert_true(r->svc->pack(r->svc, r->session, &parcel));
    rig_disconnect(r);
    rig_connect(r);
    set_mode(r, ACCESS_REQUIRED);
    assert_true(r->svc->unpack(r->svc, r->session, buf_span(&parcel)));
    check(r, "GET id:a", NOAUTH);
    check(r, "EXEC",
          "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n");
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET id:a", rig_ids("", 0, 1));
    check(r, "EXEC", "-ERR EXEC without MULTI\r\n");
}

/* Of a request that is too long the last key may be cut: its first bytes name nothing. */
static void a_key_that_is_cut_is_not_judged(void **state)
{
    struct rig *r = *state;
    static char block[NET_IN_MAX];
    struct span begin = SPAN("*3\r\n$3\r\nSET\r\n$80000\r\nid:secret");
    check(r, "AUTH bob secret", "+OK\r\n");
    check(r, "SET id:secret 1", NOT_ALLOWED("id:secret"));
    memset(block, 'x', sizeof block);
    memcpy(block, begin.p, begin.n);
    assert_int_equal(rig_send(r, span_of(block, sizeof block)), NET_MORE);
    rig_expect(r, "-ERR 'set' request is too long: expected at most 67584 bytes\r\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(before_login),
        TEST(login),
        TEST(hello),
        TEST(pipeline),
        TEST(within_multi),
        TEST(names),
        TEST(off),
        TEST(known_requests),
        TEST(reload),
        TEST(accept_any),
        TEST(a_password_alone),
        TEST(a_transaction_of_before_is_no_more),
        TEST(a_key_that_is_cut_is_not_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
