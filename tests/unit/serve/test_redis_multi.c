#include "unit/serve/redis_rig.h"

#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\r\n"

static void transaction(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "INCRBY id:a 3", "+QUEUED\r\n");
    rig_check(r, "GET x", "+QUEUED\r\n");
    rig_check(r, "SET id:a 1", "+QUEUED\r\n");
    rig_check(r, "LPOP id:a 2", "+QUEUED\r\n");
    assert_int_equal(rig_send(r, SPAN("ping \"a b\"\r\n")), NET_MORE); /* inline requests, too */
    rig_expect(r, "+QUEUED\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
    assert_int_equal(rig_counted(r, "get", SERVE_MISS), 0);
    char expected[512] = "";
    struct buf b;
    buf_init(&b, expected, sizeof expected - 1);
    buf_put_str(&b, "*5\r\n");
    buf_put_str(&b, rig_integer(2));
    buf_put_str(&b, "$-1\r\n-ERR id key 'id:a' is read-only\r\n");
    buf_put_str(&b, rig_ids("*2\r\n", 3, 2));
    buf_put_str(&b, "$3\r\na b\r\n");
    rig_check(r, "EXEC", expected);
    assert_null(rig_session(r)->txn);
    assert_int_equal(rig_counted(r, "get", SERVE_MISS), 1);
    assert_int_equal(rig_counted(r, "exec", SERVE_OK), 1);
    rig_check(r, "GET id:a", rig_ids("", 5, 1));
}

/* A GET is known again by its bytes; in a transaction, or to a subscriber, it means something else.
 */
static void a_get_repeated_means_what_the_session_says(void **state)
{
    struct rig *r = *state;
    rig_check(r, "GET id:a", rig_ids("", 0, 1));
    rig_check(r, "GET id:a", rig_ids("", 1, 1));
    rig_check(r, "GET id:", "$-1\r\n");
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    rig_check(r, "EXEC", rig_ids("*1\r\n", 2, 1));
    rig_check(r, "GET id:a", rig_ids("", 3, 1));
    rig_begins(r, "SUBSCRIBE c", "*3\r\n");
    rig_begins(r, "GET id:a", "-ERR Can't execute 'get'");
    rig_begins(r, "UNSUBSCRIBE", "*3\r\n");
    rig_check(r, "GET id:a", rig_ids("", 4, 1));
    assert_int_equal(rig_counted(r, "get", SERVE_OK), 5);
    assert_int_equal(r->serve.issuer.names.prefix[0].other.issued, 5);
}

static void order_of_commands(void **state)
{
    struct rig *r = *state;
    rig_check(r, "EXEC", "-ERR EXEC without MULTI\r\n");
    rig_check(r, "DISCARD", "-ERR DISCARD without MULTI\r\n");
    rig_check(r, "UNWATCH", "+OK\r\n");
    rig_check(r, "WATCH id:a", "+OK\r\n");
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "MULTI", "-ERR MULTI calls can not be nested\r\n");
    rig_check(r, "WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n");
    rig_check(r, "EXEC", "*0\r\n"); /* neither spoils it */
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "UNWATCH", "+QUEUED\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    rig_check(r, "DISCARD", "+OK\r\n");
    rig_check(r, "EXEC", "-ERR EXEC without MULTI\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

static void aborted(void **state)
{
    static const char *const spoilers[][2] = {
        {"FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n"},
        {"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
        {"CLIENT foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n"},
        {"SAVE", "-ERR Command not allowed inside a transaction\r\n"},
        {"SHUTDOWN", "-ERR Command not allowed inside a transaction\r\n"},
    };
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof spoilers / sizeof *spoilers; i++) {
        rig_check(r, "MULTI", "+OK\r\n");
        rig_check(r, "GET id:a", "+QUEUED\r\n");
        rig_check(r, spoilers[i][0], spoilers[i][1]);
        rig_check(r, "GET id:a", "+QUEUED\r\n");
        rig_check(r, "EXEC", ABORTED);
    }
    rig_check(r, "FOO", spoilers[0][1]); /* outside of MULTI it spoils nothing */
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "EXEC", "*0\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

/* An error while it is carried out is an element like any other. */
static void protocol_changes_midway(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "SELECT 99", "+QUEUED\r\n");
    rig_check(r, "GET x", "+QUEUED\r\n");
    rig_check(r, "HELLO 3", "+QUEUED\r\n");
    rig_check(r, "GET x", "+QUEUED\r\n");
    rig_begins(r, "EXEC", "*4\r\n-ERR DB index is out of range\r\n$-1\r\n%7\r\n");
    rig_check(r, "GET x", "_\r\n");
}

static void quit_within(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    assert_int_equal(rig_ask(r, "QUIT"), NET_CLOSE);
    rig_expect(r, "+OK\r\n"); /* the teardown frees what was queued */
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static void parked(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    rig_check(r, "MGET x id:a id:b", "+QUEUED\r\n");
    rig_check(r, "LPOP id:a 3", "+QUEUED\r\n");
    rig_check(r, "PING", "+QUEUED\r\n");
    assert_int_equal(rig_send(r, SPAN("PING first\r\n")), NET_MORE);
    rig_expect(r, "+QUEUED\r\n");
    r->turn.quota = 1;
    assert_int_equal(rig_send(r, SPAN("EXEC\r\nPING last\r\n")), NET_YIELD);
    for (int i = 0; i < 5; i++) {
        assert_true(r->step.partial);
        assert_int_equal(r->turn.reply_start, 0);
        r->turn.quota = 1;
        assert_int_equal(rig_pump(r), i == 4 ? NET_MORE : NET_YIELD);
    }
    char expected[512] = "";
    struct buf b;
    buf_init(&b, expected, sizeof expected - 1);
    buf_put_str(&b, rig_ids("*5\r\n", 0, 1));
    buf_put_str(&b, rig_ids("*3\r\n$-1\r\n", 1, 2));
    buf_put_str(&b, rig_ids("*3\r\n", 3, 3));
    buf_put_str(&b, "+PONG\r\n$5\r\nfirst\r\n$4\r\nlast\r\n");
    rig_expect(r, expected);
    assert_int_equal(rig_counted(r, "mget", SERVE_OK), 1);
    assert_int_equal(r->gen.ids.stats.issued, 6);
}

/* Only the element that cannot be had is an error; what it had so far is taken back. */
static void refused_midway(void **state)
{
    struct rig *r = *state;
    int64_t last;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    rig_check(r, "LPOP id:a 3", "+QUEUED\r\n");
    rig_check(r, "PING", "+QUEUED\r\n");
    r->turn.quota = 2;
    assert_int_equal(rig_ask(r, "EXEC"), NET_YIELD);
    assert_true(snowflake_revoke(&r->gen.ids, 1, &last));
    r->turn.quota = 1;
    assert_int_equal(rig_pump(r), NET_WAIT);
    assert_true(r->step.partial);
    r->turn.waited_us = 100000;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r,
               rig_both(rig_ids("*3\r\n", 0, 1), "-LOADING no workerId is held yet\r\n+PONG\r\n"));
}

static void closed_while_parked(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "LPOP id:a 3", "+QUEUED\r\n");
    r->turn.quota = 1;
    assert_int_equal(rig_ask(r, "EXEC"), NET_YIELD); /* the teardown frees it */
}

/* ---- limits -----------------------------------------------------------------------------------
 */

static void limits(void **state)
{
    static const char too_large[] =
        "-ERR transaction is too large: expected at most 1024 requests and 65536 bytes\r\n";
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    for (int i = 0; i < 1024; i++)
        rig_check(r, "PING", "+QUEUED\r\n");
    rig_check(r, "PING", too_large);
    rig_check(r, "EXEC", ABORTED);
    rig_check(r, "MULTI", "+OK\r\n");
    char *words = malloc(40000);
    assert_non_null(words);
    memset(words, 'x', 40000);
    memcpy(words, "ECHO ", 5);
    words[33000] = '\0';
    rig_check(r, words, "+QUEUED\r\n");
    rig_check(r, words, too_large);
    words[32000] = '\0';
    rig_check(r, words, "+QUEUED\r\n");
    rig_check(r, "DISCARD", "+OK\r\n");
    free(words);
}

/* However little each of them costs. */
static void many_requests_are_carried_out_in_turns(void **state)
{
    struct rig *r = *state;
    struct net_step step;
    unsigned turns = 0;
    rig_check(r, "MULTI", "+OK\r\n");
    for (int i = 0; i < 300; i++)
        rig_check(r, "PING", "+QUEUED\r\n");
    do {
        step = r->svc->serve(r->svc, r->session, SPAN("EXEC\r\n"), &r->turn, &r->out);
        turns++;
    } while (step.verdict == NET_YIELD);
    assert_int_equal(step.verdict, NET_DONE);
    assert_int_equal(turns, 3);
    assert_int_equal(r->out.n, strlen("*300\r\n") + 300 * strlen("+PONG\r\n"));
}

/* 200 times 240 commands do not fit: one error, and what comes behind is not carried out. */
static void reply_too_long(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    for (int i = 0; i < 200; i++)
        rig_check(r, "COMMAND", "+QUEUED\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    rig_check(r, "EXEC", "-ERR the reply is too long: expected at most 524288 bytes\r\n");
    assert_null(rig_session(r)->txn);
    assert_int_equal(r->gen.ids.stats.issued, 0);
    rig_check(r, "PING", "+PONG\r\n");
}

/* ---- subscriptions ----------------------------------------------------------------------------
 */

static void subscriptions(void **state)
{
    struct rig *r = *state;
    rig_check(r, "SUBSCRIBE a b a",
              "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
              "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n");
    rig_check(r, "GET id:a",
              "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
              "RESET are allowed in this context\r\n");
    rig_check(r, "PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    rig_check(r, "PING x", "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
    rig_check(r, "UNSUBSCRIBE zz", "*3\r\n$11\r\nunsubscribe\r\n$2\r\nzz\r\n:2\r\n");
    rig_check(r, "PSUBSCRIBE p*", "*3\r\n$10\r\npsubscribe\r\n$2\r\np*\r\n:3\r\n");
    rig_check(r, "SSUBSCRIBE a", "*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n");
    rig_check(r, "UNSUBSCRIBE b", "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:2\r\n");
    rig_check(r, "UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n");
    rig_check(r, "UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:1\r\n");
    rig_check(r, "PUNSUBSCRIBE", "*3\r\n$12\r\npunsubscribe\r\n$2\r\np*\r\n:0\r\n");
    rig_check(r, "SUNSUBSCRIBE a", "*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n");
    assert_null(rig_session(r)->subs);
    rig_check(r, "GET id:a", rig_ids("", 0, 1));
}

static void subscriptions_resp3(void **state)
{
    struct rig *r = *state;
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "SUBSCRIBE a", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    rig_check(r, "GET id:a", rig_ids("", 0, 1)); /* allowed there */
    rig_check(r, "PING", "+PONG\r\n");
    rig_check(r, "UNSUBSCRIBE", ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n");
    rig_check(r, "UNSUBSCRIBE", ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n");
}

static void too_many_subscriptions(void **state)
{
    struct rig *r = *state;
    char words[4200] = "SUBSCRIBE ";
    memset(words + 10, 'c', 4000);
    rig_begins(r, words, "*3\r\n$9\r\nsubscribe\r\n$4000\r\n");
    static const char too_many[] =
        "-ERR too many subscriptions: expected at most 4096 bytes of channel names\r\n";
    memset(words + 10, 'd', 90);
    words[100] = '\0';
    assert_int_equal(rig_ask(r, words), NET_MORE);
    r->out.n = r->turn.reply_start = 0;
    rig_check(r, "SUBSCRIBE x", too_many);
    assert_int_equal(rig_session(r)->subs != NULL, 1);
    rig_check(r, "RESET", "+RESET\r\n");
    assert_null(rig_session(r)->subs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(transaction),
        RIG_TEST(a_get_repeated_means_what_the_session_says),
        RIG_TEST(order_of_commands),
        RIG_TEST(aborted),
        RIG_TEST(protocol_changes_midway),
        RIG_TEST(quit_within),
        RIG_TEST(parked),
        RIG_TEST(refused_midway),
        RIG_TEST(closed_while_parked),
        RIG_TEST(limits),
        RIG_TEST(many_requests_are_carried_out_in_turns),
        RIG_TEST(reply_too_long),
        RIG_TEST(subscriptions),
        RIG_TEST(subscriptions_resp3),
        RIG_TEST(too_many_subscriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
