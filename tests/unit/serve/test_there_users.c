/* What goes to the server behind of users whose rights are limited; the test plays it. */
#include "login.h"
#include "serve/memcached/memcached.h"
#include "unit/serve/there_rig.h"

static uint32_t user; /* whoever connects is */

static void opened_by_user(struct net_service *svc, void *session, uint8_t mark)
{
    struct rds_session *ses = session;
    struct mcd_session *s = session;
    (void)svc;
    (void)mark;
    inner->open(inner, session, ACCESS_REQUIRED);
    if (inner == rig->svc)
        ses->access.user = user;
    else
        s->access.user = user;
}

static void start_with(struct net_service *svc, const char *rights)
{
    char line[256];
    (void)snprintf(line, sizeof line, "eve:" LOGIN_HASH "%s\n", rights);
    login_begin(&rig->serve);
    login_replace(&rig->serve, line);
    user = auth_user_named(rig->serve.auth, SPAN("eve"))->id;
    start(svc);
    b.svc.open = opened_by_user;
}

static int end_users(void **state)
{
    int r = 0;
    net_bench_stop(&b);
    login_end(&rig->serve);
    (void)close(server);
    if (inner != rig->svc)
        free(inner);
    rig_free(rig);
    (void)state;
    return r;
}

/* Nothing was on the way to the server before that. */
static void nothing_goes_there(int client, int link, const char *request, const char *reply)
{
    say(client, request);
    expect(client, reply);
    expect_silence(link, 20);
}

#define NO_KEY                                                                                     \
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
#define GET_PAGE "*2\r\n$3\r\nGET\r\n$6\r\npage:1\r\n"
#define GET_NONE "*2\r\n$3\r\nGET\r\n$5\r\nother\r\n"

/* Of the form of one that may. */
static void redis_looks_at_each_key(void **state)
{
    (void)state;
    start_with(rig->svc, ":upstream=read:keys=page:*");
    int client = dial(&b);
    say(client, GET_PAGE);
    int link = accepted();
    for (int i = 0; i < 3; i++) {
        expect(link, GET_PAGE);
        say(link, "$-1\r\n");
        expect(client, "$-1\r\n");
        nothing_goes_there(client, link, GET_NONE, NO_KEY);
        say(client, GET_PAGE);
    }
    (void)close(client);
    (void)close(link);
}

/* That would be of no effect here, and whoever has the connection next would be this user. */
static void redis_is_not_reset_behind_monitor(void **state)
{
    (void)state;
    start_with(rig->svc, ":upstream=all");
    int client = dial(&b);
    say(client, "PSYNC ? -1\r\n");
    int link = accepted();
    expect(link, "PSYNC ? -1\r\n");
    say(link, "-NOPERM\r\n");
    expect(client, "-NOPERM\r\n");
    say(client, "GET k\r\n");
    expect(link, "GET k\r\n");
    say(client, "RESET\r\n");
    expect(client, "-ERR a RESET, which logs out, is not supported behind MONITOR");
    expect_end(link);
    (void)close(client);
    (void)close(link);
}

static void do_answered(struct net_bench *n, void *arg)
{
    (void)n, (void)arg;
    (void)access_answered(&rig->serve);
}

/* The password is looked at, unless it is known already, and the request goes on. */
static void logs_in(int client, int hears, const char *request)
{
    struct pollfd p = {.fd = hears, .events = POLLIN};
    say(client, request);
    for (int left = 500; left > 0 && poll(&p, 1, 10) == 0; left--)
        net_bench_call(&b, do_answered, NULL);
}

static int newer(int client)
{
    say(client, "NEWER\r\n");
    int link = accepted();
    expect(link, "NEWER\r\n");
    say(link, "+NEW\r\n");
    expect(client, "+NEW\r\n");
    return link;
}

/* What only the server may know of is not for it to say before that. */
static void redis_hears_nothing_of_who_has_not_logged_in(void **state)
{
    static const char *const asked[] = {"NEWER k\r\n", "HELLO 3\r\n", "GET k\r\n"};
    static const char *const answers[] = {
        "-ERR unknown command 'NEWER', with args beginning with: 'k' \r\n",
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
        "protocol version at the same time\r\n",
        "-NOAUTH Authentication required.\r\n"};
    (void)state;
    start_with(rig->svc, ":upstream=all");
    int client = dial(&b), link = newer(client);
    say(client, "RESET\r\n");
    expect(link, "*1\r\n$5\r\nRESET\r\n");
    say(link, "+RESET\r\n");
    expect(client, "+RESET\r\n");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        nothing_goes_there(client, link, asked[i], answers[i]);
    logs_in(client, link, "HELLO 3 AUTH eve secret\r\n");
    expect(link, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"); /* and of that what concerns it */
    (void)close(client);
    (void)close(link);
}

/* That it might be one that has keys which he may not have. */
static void redis_hears_of_no_command_that_nobody_knows(void **state)
{
    (void)state;
    start_with(rig->svc, ":upstream=read");
    int client = dial(&b);
    say(client, GET_PAGE);
    int link = accepted();
    expect(link, GET_PAGE);
    say(link, "$-1\r\n");
    expect(client, "$-1\r\n");
    nothing_goes_there(client, link, "NEWER k\r\n",
                       "-ERR unknown command 'NEWER', with args beginning with: 'k' \r\n");
    expect_silence(client, 20);
    (void)close(client);
    (void)close(link);
}

/* eve, who may all, and mal, whose rights these are. */
static void two_users(const char *rights)
{
    char lines[256];
    start_with(rig->svc, ":upstream=all");
    (void)snprintf(lines, sizeof lines, "eve:%s:upstream=all\nmal:%s%s\n", LOGIN_HASH, LOGIN_HASH,
                   rights);
    login_replace(&rig->serve, lines);
    user = auth_user_named(rig->serve.auth, SPAN("eve"))->id;
}

/* What one has subscribed to is not for another. */
static void who_becomes_another_while_subscribed_is_sent_away(void **state)
{
    static const char in[] = ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    (void)state;
    two_users(":upstream=all");
    for (int subscribed = 0; subscribed < 2; subscribed++) {
        int client = dial(&b), link = newer(client);
        say(client, "HELLO 3\r\n");
        expect(link, "HELLO 3\r\n");
        say(link, "%0\r\n");
        expect(client, "%0\r\n");
        say(client, "SUBSCRIBE c\r\n");
        expect(link, "SUBSCRIBE c\r\n");
        say(link, in);
        expect(client, in);
        if (!subscribed) {
            say(client, "UNSUBSCRIBE c\r\n");
            expect(link, "UNSUBSCRIBE c\r\n");
            say(link, ">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n");
            expect(client, ">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n");
        }
        logs_in(client, client, "AUTH eve secret\r\n");
        expect(client, "+OK\r\n");
        say(client, "ECHO x\r\n");
        expect(client, "$1\r\nx\r\n");
        logs_in(client, client, "AUTH mal secret\r\n");
        expect(client, "+OK\r\n");
        say(client, "ECHO x\r\n");
        if (subscribed)
            expect_end(client);
        else
            expect(client, "$1\r\nx\r\n");
        (void)close(client);
        (void)close(link);
    }
}

static void goes_there(int client, int link, const char *request, const char *reply)
{
    say(client, request);
    expect(link, request);
    say(link, reply);
    expect(client, reply);
}

#define NO_RUN(name) "-NOPERM this user has no permissions to run the '" name "' command\r\n"

/* What holds on a link is the server's to say, and who comes next on it goes on with that. */
static void who_may_nothing_there_tells_what_holds_there(void **state)
{
    (void)state;
    two_users(":upstream=none");
    int client = dial(&b), link = newer(client);
    logs_in(client, client, "AUTH mal secret\r\n");
    expect(client, "+OK\r\n");
    goes_there(client, link, "SELECT 31\r\n", "+OK\r\n");
    goes_there(client, link, "CLIENT SETNAME x\r\n", "+OK\r\n");
    goes_there(client, link, "HELLO 3\r\n", "%0\r\n");
    nothing_goes_there(client, link, GET_PAGE, NO_RUN("get"));
    nothing_goes_there(client, link, "NEWER\r\n", "-ERR unknown command 'NEWER'");
    logs_in(client, link, "HELLO 2 AUTH mal secret\r\n"); /* in front of the next one's */
    expect(link, "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n");
    say(link, "*0\r\n");
    (void)close(client);
    (void)close(link);
}

static void nor_in_his_transaction(void **state)
{
    static const char *const none[] = {"SELECT 2\r\n", "CLIENT SETNAME x\r\n"};
    static const char *const no[] = {NO_RUN("select"), NO_RUN("client|setname")};
    (void)state;
    two_users(":upstream=none");
    int client = dial(&b), link = newer(client);
    logs_in(client, client, "AUTH mal secret\r\n");
    expect(client, "+OK\r\n");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        nothing_goes_there(client, link, "MULTI\r\n", "+OK\r\n");
        nothing_goes_there(client, link, none[i], no[i]);
        nothing_goes_there(client, link, "EXEC\r\n",
                           "-EXECABORT Transaction discarded because of previous errors.\r\n");
    }
    say(client, "RESET\r\n");
    expect(link, "*1\r\n$5\r\nRESET\r\n");
    (void)close(client);
    (void)close(link);
}

/* Nor has he one for that. */
static void who_may_nothing_there_has_no_link_of_his_own(void **state)
{
    static const char *const asked[] = {"SELECT 2\r\n", "CLIENT SETNAME x\r\n", "RESET\r\n"};
    static const char *const answers[] = {"+OK\r\n", "+OK\r\n", "+RESET\r\n"};
    struct pollfd p = {.events = POLLIN};
    (void)state;
    start_with(rig->svc, ":upstream=none");
    int client = dial(&b);
    say(client, "CLIENT REPLY OFF\r\n");
    expect(client, "-ERR CLIENT REPLY is not supported: every request is answered\r\n");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        say(client, asked[i]);
        expect(client, answers[i]);
    }
    p.fd = server;
    assert_int_equal(poll(&p, 1, 50), 0);
    (void)close(client);
}

#define NOT_ALLOWED "CLIENT_ERROR not allowed to this user\r\n"

static int memcached_link(int client)
{
    say(client, "get page:1\r\n");
    int link = accepted();
    expect(link, "get page:1\r\n");
    say(link, "END\r\n");
    expect(client, "END\r\n");
    return link;
}

static void memcached_looks_at_each_key(void **state)
{
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":upstream=read:keys=page:*");
    int client = dial(&b);
    int link = memcached_link(client);
    nothing_goes_there(client, link, "get other\r\n", NOT_ALLOWED);
    nothing_goes_there(client, link, "get page:1 other\r\n", NOT_ALLOWED);
    nothing_goes_there(client, link, "delete page:1\r\n", NOT_ALLOWED);
    (void)close(client);
    (void)close(link);
}

static void an_id_that_is_not_allowed_is_asked_for_nowhere(void **state)
{
    static const char no[] = "CLIENT_ERROR id key is not allowed to this user\r\n";
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":names=orders:upstream=all");
    int client = dial(&b);
    int link = memcached_link(client);
    nothing_goes_there(client, link, "get k id:secret l\r\n", no);
    nothing_goes_there(client, link, "get id:orders k id:secret\r\n", no);
    (void)close(client);
    (void)close(link);
}

static char line[2 << 20];

/* "get page:1 page:1 ..." of about n bytes. */
static size_t long_get(size_t n)
{
    size_t at = 3;
    memcpy(line, "get", 3);
    for (; at < n; at += 7)
        memcpy(line + at, " page:1", 7);
    return at;
}

static void say_long(int client, size_t n, const char *end)
{
    size_t at = long_get(n);
    say_span(client, span_of(line, at));
    say(client, end);
}

/* With what comes behind the line, which is not read as requests. */
static void memcached_hears_nothing_of_what_is_not_allowed(void **state)
{
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":upstream=read:keys=page:*");
    int client = dial(&b);
    int link = memcached_link(client);
    nothing_goes_there(client, link, "set page:1 0 0 14\r\nget page:1\r\nmn\r\n", NOT_ALLOWED);
    expect_silence(client, 20);
    nothing_goes_there(client, link, "set page:1 0 0 x\r\n",
                       "CLIENT_ERROR bad command line format\r\n");
    nothing_goes_there(client, link, "mg page:1 v O\x01\r\n",
                       "CLIENT_ERROR not allowed to this user: not in a form in which it can be "
                       "judged\r\n");
    (void)close(client);
    (void)close(link);
}

static void memcached_hears_nothing_of_who_has_not_logged_in(void **state)
{
    static const char *const asked[] = {"get k\r\n", "lru_crawler crawl all\r\n", "incr k +1\r\n"};
    struct pollfd p = {.events = POLLIN};
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":upstream=all");
    user = 0;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int client = dial(&b);
        say(client, asked[i]);
        expect(client, "CLIENT_ERROR unauthenticated\r\n");
        (void)close(client);
    }
    int client = dial(&b);
    say_long(client, 3 * NET_IN_MAX / 2, "");
    expect_end(client);
    (void)close(client);
    p.fd = server;
    assert_int_equal(poll(&p, 1, 20), 0);
}

/* The same in binary. */
static void memcached_is_sent_no_packet_of_who_may_not(void **state)
{
    static const char set[] = "\x80\1\0\1\x08\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0\0\0"
                              "\0\0\0\0\0\0\0\0kv";
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":upstream=read");
    for (int known = 0; known < 2; known++) {
        struct pollfd p = {.fd = server, .events = POLLIN};
        char got[24];
        user = known ? auth_user_named(rig->serve.auth, SPAN("eve"))->id : 0;
        int client = dial(&b);
        say_span(client, span_of(set, sizeof set - 1));
        assert_int_equal(recv(client, got, sizeof got, MSG_WAITALL), sizeof got);
        assert_memory_equal(got, "\x81\1\0\0\0\0\0\x20", 8);
        assert_int_equal(poll(&p, 1, 20), 0);
        (void)close(client);
    }
}

static void become(const char *name)
{
    user = auth_user_named(rig->serve.auth, span_str(name))->id;
}

/* A get that another user was answered is known by its bytes, in front of a server, too. */
static void an_id_that_another_has_had_is_not_allowed(void **state)
{
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start_with(protocol_memcached.make(&rig->serve), "");
    login_replace(&rig->serve, LOGIN_USERS);
    become("ann");
    int ann = dial(&b);
    say(ann, "get id:a\r\n");
    expect_to(ann, "VALUE id:a 0 ", "\r\nEND\r\n");
    become("bob");
    int bob = dial(&b);
    for (int i = 0; i < 30; i++) { /* within a millisecond, now and then */
        say(ann, "get id:a\r\n");
        say(bob, "get id:a\r\n");
        expect_to(ann, "VALUE id:a 0 ", "\r\nEND\r\n");
        expect(bob, "CLIENT_ERROR id key is not allowed to this user\r\n");
    }
    (void)close(ann);
    (void)close(bob);
}

/* ---- lines that are longer than a connection's input ------------------------------------------
 */

/* The line that comes there, whose values are sent; before that nobody has an answer. */
static void answer_line(int client, int link)
{
    char last = 0;
    while (last != '\n')
        assert_int_equal(recv(link, &last, 1, 0), 1);
    expect_silence(client, 20);
    say(link, "VALUE page:1 0 1\r\nx\r\nEND\r\n");
}

static void a_long_get_is_told_that_alone(const char *rights, const char *last, const char *why)
{
    start_with(protocol_memcached.make(&rig->serve), rights);
    int client = dial(&b);
    say_long(client, 3 * NET_IN_MAX / 2, last);
    int link = accepted();
    answer_line(client, link);
    expect(client, why);
    say(client, "get page:1\r\n");
    answer_line(client, link);
    expect(client, "VALUE page:1 0 1\r\nx\r\nEND\r\n");
    expect_silence(client, 20);
    (void)close(client);
    (void)close(link);
}

static void a_long_get_is_passed_on(void **state)
{
    (void)state;
    a_long_get_is_told_that_alone(":upstream=read:keys=page:*", "\r\n",
                                  "VALUE page:1 0 1\r\nx\r\nEND\r\n");
}

static void of_a_long_get_each_key_is_looked_at(void **state)
{
    (void)state;
    a_long_get_is_told_that_alone(":upstream=read:keys=page:*", " other\r\n", NOT_ALLOWED);
}

static void a_long_get_has_no_id(void **state)
{
    (void)state;
    a_long_get_is_told_that_alone(
        ":upstream=read", " id:a\r\n",
        "CLIENT_ERROR ids are not among so many keys: get them by a shorter line\r\n");
}

static void who_may_not_read_there_sends_no_long_get(void **state)
{
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":upstream=none");
    int client = dial(&b);
    say_long(client, 3 * NET_IN_MAX / 2, "\r\n");
    expect(client, NOT_ALLOWED);
    struct pollfd p = {.fd = server, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 50), 0);
    (void)close(client);
}

static void a_get_has_an_end(void **state)
{
    char tail[4096];
    (void)state;
    start_with(protocol_memcached.make(&rig->serve), ":upstream=all");
    int client = dial(&b);
    say_span(client, span_of(line, long_get((1 << 20) - 100)));
    int link = accepted();
    expect_silence(client, 50);
    (void)send(client, line, 200000, MSG_NOSIGNAL);
    assert_int_equal(rest_of(client, tail), 0);
    (void)close(client);
    (void)close(link);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end_users)
    const struct CMUnitTest tests[] = {
        TEST(redis_looks_at_each_key),
        TEST(redis_is_not_reset_behind_monitor),
        TEST(redis_hears_nothing_of_who_has_not_logged_in),
        TEST(redis_hears_of_no_command_that_nobody_knows),
        TEST(who_becomes_another_while_subscribed_is_sent_away),
        TEST(who_may_nothing_there_tells_what_holds_there),
        TEST(nor_in_his_transaction),
        TEST(who_may_nothing_there_has_no_link_of_his_own),
        TEST(memcached_looks_at_each_key),
        TEST(memcached_hears_nothing_of_what_is_not_allowed),
        TEST(memcached_hears_nothing_of_who_has_not_logged_in),
        TEST(memcached_is_sent_no_packet_of_who_may_not),
        TEST(an_id_that_is_not_allowed_is_asked_for_nowhere),
        TEST(an_id_that_another_has_had_is_not_allowed),
        TEST(a_long_get_is_passed_on),
        TEST(of_a_long_get_each_key_is_looked_at),
        TEST(a_long_get_has_no_id),
        TEST(who_may_not_read_there_sends_no_long_get),
        TEST(a_get_has_an_end),
    };
    return cmocka_run_group_tests_name("serve/there_users", tests, NULL, NULL);
}
