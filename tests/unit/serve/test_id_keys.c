/* No request that names an ID reaches the server behind, which the test plays. */
#include "unit/serve/there_rig.h"

/* ---- Redis ------------------------------------------------------------------------------------
 */

#define APART "-ERR an ID key is not supported behind MONITOR, SYNC, PSYNC and REPLCONF"

static void behind_monitor_there_are_none(void **state)
{
    static const char *const asked[] = {"INCR id:a\r\n", "MGET k id:a\r\n", "NEWER id:a\r\n"};
    char got[4096];
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int client = dial(&b);
        say(client, "MONITOR\r\n");
        int link = accepted();
        expect(link, "MONITOR\r\n");
        say(link, "-NOPERM\r\n");
        expect(client, "-NOPERM\r\n");
        say(client, "GET k\r\n\nNEWER k\r\n"); /* an empty line is a sign of life */
        expect(link, "GET k\r\n\nNEWER k\r\n");
        expect_silence(client, 20);
        say(link, "$1\r\nv\r\n+NEW\r\n");
        expect(client, "$1\r\nv\r\n+NEW\r\n");
        say(client, asked[i]);
        (void)rest_of(client, got);
        assert_memory_equal(got, APART, sizeof APART - 1);
        assert_int_equal(rest_of(link, got), 0);
        (void)close(client);
        (void)close(link);
    }
}

static void within_multi_monitor_is_a_request_like_others(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "MULTI\r\n");
    expect(client, "+OK\r\n");
    say(client, "MONITOR\r\n");
    int link = accepted();
    expect(link, "*1\r\n$5\r\nMULTI\r\nMONITOR\r\n");
    say(link, "+OK\r\n+QUEUED\r\n");
    expect(client, "+QUEUED\r\n");
    for (int mixed = 0; mixed < 2; mixed++) {
        say(client, mixed ? "MGET k id:a\r\n" : "INCR id:a\r\n");
        expect(client, "-ERR an ID key cannot be used in a transaction that was begun with other "
                       "commands\r\n");
    }
    expect_silence(link, 20);
    (void)close(client);
    (void)close(link);
}

/* The server has unsubscribed already when it comes to what stands behind: what there is to tell it
 * from here comes later. */
static void while_subscribed_there_are_none(void **state)
{
    const char acks[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    const char why[] = "-ERR Can't execute 'incr': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                       "QUIT / RESET are allowed in this context\r\n";
    (void)state;
    start(rig->svc);
    for (int mute = 0; mute < 2; mute++) {
        int client = dial(&b);
        say(client, mute ? "CLIENT REPLY OFF\r\nSUBSCRIBE c\r\n" : "SUBSCRIBE c\r\n");
        int link = accepted();
        expect(link, mute ? "CLIENT REPLY OFF\r\nSUBSCRIBE c\r\n" : "SUBSCRIBE c\r\n");
        say(link, acks);
        expect(client, acks);
        if (mute) {
            say(client, "UNSUBSCRIBE c\r\nINCR id:a\r\nMGET k id:a\r\nGET k\r\n");
            expect(link, "UNSUBSCRIBE c\r\n");
            expect_silence(link, 20);
            say(link, "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n");
            expect(client, "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n");
        } else {
            say(client, "INCR id:a\r\nMGET k id:a\r\nGET k\r\n");
        }
        expect(link, "GET k\r\n");
        if (!mute) {
            expect(client, why);
            expect(client, "-ERR Can't execute 'mget'");
        }
        (void)close(client);
        (void)close(link);
    }
}

static void who_wants_no_replies_has_no_id_asked_for_there(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "CLIENT REPLY OFF\r\nMGET k id:a\r\nGET k\r\n");
    int link = accepted();
    expect(link, "CLIENT REPLY OFF\r\nGET k\r\n");
    (void)close(client);
    (void)close(link);
}

/* Redis reads the words of requests as C strings, and finds commands by a hash of all bytes. */
static void none_is_behind_a_word_that_ends_at_a_nul(void **state)
{
    static const struct {
        const char *request, *answer;
    } table[] = {
        {"SORT l \"STORE\\x00x\" id:a\r\nQUIT\r\n",
         "-ERR ID keys cannot be used together with others, but in MGET\r\n+OK\r\n"},
        {"\"MSET\\x00x\" a 1 id:a 2\r\nQUIT\r\n",
         "-ERR unknown command 'MSET', with args beginning with: 'a' '1' 'id:a' '2' \r\n+OK\r\n"},
    };
    char got[4096];
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int client = dial(&b);
        say(client, table[i].request);
        (void)rest_of(client, got);
        assert_string_equal(got, table[i].answer);
        (void)close(client);
    }
    int client = dial(&b);
    say(client, "MONITOR\r\n");
    int link = accepted();
    expect(link, "MONITOR\r\n");
    say(link, "+OK\r\n");
    expect(client, "+OK\r\n");
    say(client, "\"MSET\\x00x\" a 1 id:a 2\r\n");
    (void)rest_of(client, got);
    assert_memory_equal(got, "-ERR a command with a NUL in its name is not supported behind", 61);
    assert_int_equal(rest_of(link, got), 0);
    (void)close(client);
    (void)close(link);
}

static void behind_a_command_with_a_nul_a_transaction_is_lost(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "MULTI\r\nGET k\r\n");
    int link = accepted();
    expect(link, "*1\r\n$5\r\nMULTI\r\nGET k\r\n");
    say(link, "+OK\r\n+QUEUED\r\n");
    expect(client, "+OK\r\n+QUEUED\r\n");
    say(client, "\"MSET\\x00x\" id:a 2\r\nEXEC\r\n");
    expect(link, "*1\r\n$7\r\nDISCARD\r\n");
    expect(client, "-ERR unknown command 'MSET', with args beginning with: 'id:a' '2' \r\n"
                   "-EXECABORT ");
    (void)close(client);
    (void)close(link);
}

/* Of a request of more than 64 KiB, so many bytes stand before the ID among its keys. */
static void put_long(struct buf *req, const char *name, uint32_t keys, size_t filler)
{
    static char x[1 << 17];
    memset(x, 'x', sizeof x);
    resp_put_array(req, keys + 3);
    resp_put_bulk(req, span_str(name));
    resp_put_bulk(req, span_of(x, filler));
    for (uint32_t i = 0; i < keys; i++)
        resp_put_bulk(req, SPAN("key"));
    resp_put_bulk(req, SPAN("id:a"));
}

static char mem[1 << 18];

/* Wherever the input ends, by what it holds at a time. */
static void no_key_is_behind_what_is_seen(void **state)
{
    static const struct {
        const char *name;
        uint32_t keys;
        size_t filler;
    } table[] = {
        {"MGET", 20000, 1},           {"DEL", 0, WIRE_IN_MAX - 30},  {"DEL", 0, WIRE_IN_MAX - 26},
        {"DEL", 0, WIRE_IN_MAX - 24}, {"MGET", 0, WIRE_IN_MAX - 33}, {"MGET", 0, WIRE_IN_MAX},
        {"MGET", 1, 100000},
    };
    static char got[4096];
    const char why[] = "-ERR an ID key cannot be used in a request of more than 64 KiB\r\n";
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct buf req;
        buf_init(&req, mem, sizeof mem);
        put_long(&req, table[i].name, table[i].keys, table[i].filler);
        assert_true(!req.failed && req.n > WIRE_IN_MAX);
        int client = dial(&b);
        say_span(client, buf_span(&req));
        int link = accepted();
        size_t n = rest_of(link, got);
        assert_true(n <= req.n - (sizeof "$4\r\nid:a\r\n" - 1));
        assert_null(strstr(got, "$4\r\nid:a"));
        (void)rest_of(client, got);
        assert_string_equal(got, why);
        (void)close(client);
        (void)close(link);
    }
}

static void the_replies_before_are_given_first(void **state)
{
    static char got[4096];
    struct buf req;
    (void)state;
    start(rig->svc);
    buf_init(&req, mem, sizeof mem);
    buf_put_span(&req, SPAN("ECHO2 x\r\n"));
    put_long(&req, "MGET", 20000, 1);
    int client = dial(&b);
    say_span(client, buf_span(&req));
    int link = accepted();
    for (size_t n = 0; n < 100000;) {
        ssize_t more = recv(link, got, sizeof got, 0);
        assert_true(more > 0);
        n += (size_t)more;
    }
    expect_silence(client, 50);
    say(link, "$1\r\nx\r\n");
    expect(client, "$1\r\nx\r\n-ERR an ID key cannot be used in a request of more than 64 KiB\r\n");
    expect_end(client);
    (void)close(client);
    (void)close(link);
}

/* ---- memcached --------------------------------------------------------------------------------
 */

static void no_odd_line_goes_there(void **state)
{
    static const struct {
        struct span line;
        const char *answer;
    } table[] = {
        {SPAN("gat +1 id:a\r\n"), "CLIENT_ERROR invalid exptime argument\r\n"},
        {SPAN("get id:a x\x01\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("gets id:a\0 x\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("set id:a +0 0 5\r\nhello\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("ms id:a +5\r\nhello\r\n"), "CLIENT_ERROR bad command line format\r\n"},
        {SPAN("set id:a 0 +0 5 noreply\r\nhello\r\n"), ""},
        {SPAN("mg aWQ6YQ== v b b\r\n"), "CLIENT_ERROR duplicate flag\r\n"},
        {SPAN("mg aW!Q6YQ== v b\r\n"), "CLIENT_ERROR error decoding key\r\n"},
        {SPAN("mg aWQ6eH=B b v\r\n"), "CLIENT_ERROR error decoding key\r\n"},
        {SPAN("mg aWQ6d=E= b v\r\n"), "CLIENT_ERROR error decoding key\r\n"},
        {SPAN("me aWQ6YQ== v b\r\n"), "CLIENT_ERROR bad command line format\r\n"},
    };
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        say_span(client, table[i].line);
        expect(client, table[i].answer);
    }
    say(client, "incr k +1\r\n");
    int link = accepted();
    expect(link, "incr k +1\r\n");
    say(link, "7\r\n");
    expect(client, "7\r\n");
    (void)close(client);
    (void)close(link);
}

/* memcached would read what is behind one from within its key. */
static void no_opcode_that_nobody_knows_goes_there(void **state)
{
    static const char unknown[] = "\x80\x60\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0k";
    static const char get[] = "\x80\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0k";
    char got[64] = "";
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, span_of(unknown, sizeof unknown - 1));
    assert_int_equal(recv(client, got, 24 + strlen("Unknown command"), MSG_WAITALL), 39);
    assert_memory_equal(got, "\x81\x60", 2);
    assert_string_equal(got + 24, "Unknown command");
    say_span(client, span_of(get, sizeof get - 1));
    int link = accepted();
    assert_int_equal(recv(link, got, sizeof get - 1, MSG_WAITALL), sizeof get - 1);
    assert_memory_equal(got, get, 2);
    (void)close(client);
    (void)close(link);
}

/* Found there or not, it would be none of ours. */
static void no_id_is_asked_for_there_in_binary(void **state)
{
    static const unsigned char opcodes[] = {0x00, 0x04, 0x0c}; /* GET, DELETE, GETK */
    char in[] = "\x80?\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0id:a", got[24];
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    for (size_t i = 0; i < sizeof opcodes; i++) {
        struct pollfd p = {.fd = server, .events = POLLIN};
        char body[256];
        in[1] = (char)opcodes[i];
        say_span(client, span_of(in, sizeof in - 1));
        assert_int_equal(poll(&p, 1, 20), 0);
        assert_int_equal(recv(client, got, sizeof got, MSG_WAITALL), sizeof got);
        assert_memory_equal(got, "\x81", 1);
        assert_int_equal((unsigned char)got[1], opcodes[i]);
        size_t n = (unsigned char)got[11];
        assert_int_equal(recv(client, body, n, MSG_WAITALL), n);
    }
    (void)close(client);
}

#define NO_CACHE                                                                                   \
    "-ERR client-side caching is not allowed: an ID from a cache would be used twice\r\n"

/* An ID from a cache would be used twice: within the server's transactions, too. */
static void nothing_is_tracked_there(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "MULTI\r\n");
    expect(client, "+OK\r\n");
    say(client, "GET k\r\n");
    int link = accepted();
    expect(link, "*1\r\n$5\r\nMULTI\r\nGET k\r\n");
    say(link, "+OK\r\n+QUEUED\r\n");
    expect(client, "+QUEUED\r\n");
    say(client, "CLIENT TRACKING ON\r\nCLIENT CACHING YES\r\nEXEC\r\n");
    expect(link, "*1\r\n$7\r\nDISCARD\r\n");
    say(link, "+OK\r\n");
    expect(client, NO_CACHE NO_CACHE "-EXECABORT ");
    (void)close(client);
    (void)close(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(behind_monitor_there_are_none, begin, end),
        cmocka_unit_test_setup_teardown(within_multi_monitor_is_a_request_like_others, begin, end),
        cmocka_unit_test_setup_teardown(while_subscribed_there_are_none, begin, end),
        cmocka_unit_test_setup_teardown(who_wants_no_replies_has_no_id_asked_for_there, begin, end),
        cmocka_unit_test_setup_teardown(none_is_behind_a_word_that_ends_at_a_nul, begin, end),
        cmocka_unit_test_setup_teardown(behind_a_command_with_a_nul_a_transaction_is_lost, begin,
                                        end),
        cmocka_unit_test_setup_teardown(no_key_is_behind_what_is_seen, begin, end),
        cmocka_unit_test_setup_teardown(the_replies_before_are_given_first, begin, end),
        cmocka_unit_test_setup_teardown(no_odd_line_goes_there, begin, end),
        cmocka_unit_test_setup_teardown(no_opcode_that_nobody_knows_goes_there, begin, end),
        cmocka_unit_test_setup_teardown(no_id_is_asked_for_there_in_binary, begin, end),
        cmocka_unit_test_setup_teardown(nothing_is_tracked_there, begin, end),
    };
    return cmocka_run_group_tests_name("serve/id_keys", tests, NULL, NULL);
}
