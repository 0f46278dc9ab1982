#include "unit/serve/redis_rig.h"

#define NO_WORKER "no workerId is held yet"

static void single(void **state)
{
    struct rig *r = *state;
    rig_check(r, "GET id:a", rig_ids("", 0, 1));
    rig_check(r, "get id:b#1", rig_ids("", 1, 1));
    rig_check(r, "GETDEL id:a", rig_ids("", 2, 1));
    rig_check(r, "GETEX id:a", rig_ids("", 3, 1));
    rig_check(r, "LPOP id:a", rig_ids("", 4, 1));
    rig_check(r, "RPOP id:a", rig_ids("", 5, 1));
    rig_check(r, "SPOP id:a", rig_ids("", 6, 1));
    rig_check(r, "SRANDMEMBER id:a", rig_ids("", 7, 1));
    rig_check(r, "INCR id:a", rig_integer(8));
    rig_check(r, "GET a", "$-1\r\n");
    rig_check(r, "GET id:", "$-1\r\n");
    rig_check(r, "GET __Booksleeve_TieBreak", "$-1\r\n");
    assert_int_equal(r->serve.issuer.names.prefix[0].other.issued, 9);
    assert_int_equal(rig_counted(r, "get", SERVE_OK), 2);
    assert_int_equal(rig_counted(r, "get", SERVE_MISS), 3);
}

/* Replies are made from earlier ones: IDs of one time must not show up at another. */
static void repeated_as_time_goes_on(void **state)
{
    struct rig *r = *state;
    for (int64_t ms = 0; ms < 200; ms += 7) {
        rig_at(r, ms);
        for (uint32_t i = 0; i < 4; i++) {
            char answer[64];
            (void)snprintf(
                answer, sizeof answer, "$11\r\n%llu\r\n",
                (unsigned long long)layout_compose(&layout_usual, 1000 + ms, RIG_WORKER, i));
            rig_check(r, "GET id:a", answer);
        }
    }
}

static void getex_options(void **state)
{
    struct rig *r = *state;
    rig_check(r, "GETEX id:a PERSIST", rig_ids("", 0, 1));
    rig_check(r, "GETEX id:a ex 10", rig_ids("", 1, 1));
    rig_check(r, "GETEX id:a PXAT 10", rig_ids("", 2, 1));
    rig_check(r, "GETEX id:a EX 0", "-ERR invalid expire time in 'getex' command\r\n");
    rig_check(r, "GETEX id:a EX x", "-ERR value is not an integer or out of range\r\n");
    rig_check(r, "GETEX a EX x", "$-1\r\n");
    rig_check(r, "GETEX id:a EX", "-ERR syntax error\r\n");
    rig_check(r, "GETEX id:a FOO 1", "-ERR syntax error\r\n");
    rig_check(r, "GETEX id:a EX 10 EX 10", "-ERR syntax error\r\n");
    rig_check(r, "GET id:a", rig_ids("", 3, 1));
}

static void mget(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MGET id:a y", rig_both(rig_ids("*2\r\n", 0, 1), "$-1\r\n"));
    rig_check(r, "HELLO 3",
              "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"
              "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\n"
              "standalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n");
    rig_check(r, "MGET x y", "*2\r\n_\r\n_\r\n");
    rig_check(r, "MGET id:a id:a id:b", rig_ids("*3\r\n", 1, 3));
    /* more than are reachable by index */
    rig_check(r,
              "MGET id:1 id:2 id:3 id:4 id:5 id:6 id:7 id:8 id:9 id:a id:b id:c id:d id:e id:f "
              "id:g id:h id:i",
              rig_ids("*18\r\n", 4, 18));
    assert_int_equal(rig_counted(r, "mget", SERVE_OK), 3);
    assert_int_equal(rig_counted(r, "mget", SERVE_MISS), 1);
}

static void batches(void **state)
{
    struct rig *r = *state;
    rig_check(r, "LPOP id:a 3", rig_ids("*3\r\n", 0, 3));
    rig_check(r, "RPOP id:a 1", rig_ids("*1\r\n", 3, 1));
    rig_check(r, "LPOP id:a 0", "*0\r\n");
    rig_check(r, "SPOP id:a 2", rig_ids("*2\r\n", 4, 2));
    rig_check(r, "SRANDMEMBER id:a -2", rig_ids("*2\r\n", 6, 2));
    rig_check(r, "LPOP id:a 100", rig_ids("*100\r\n", 8, 100));
    rig_check(r, "LPOP id:a 101", "-ERR value is out of range, must be between 0 and 100\r\n");
    rig_check(r, "LPOP id:a 4294967297",
              "-ERR value is out of range, must be between 0 and 100\r\n");
    rig_check(r, "SRANDMEMBER id:a -101",
              "-ERR value is out of range, must be between 0 and 100\r\n");
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "SPOP id:a 2", rig_ids("~2\r\n", 108, 2));
    rig_check(r, "SRANDMEMBER id:a 2", rig_ids("*2\r\n", 110, 2));
    rig_check(r, "RPOP id:a 2", rig_ids("*2\r\n", 112, 2));
    assert_int_equal(r->serve.issuer.names.prefix[0].other.issued, 114);
}

static void batch_errors(void **state)
{
    struct rig *r = *state;
    static const char positive[] = "-ERR value is out of range, must be positive\r\n";
    static const char integer[] = "-ERR value is not an integer or out of range\r\n";
    rig_check(r, "LPOP id:a -1", positive);
    rig_check(r, "RPOP x 1.5", positive);
    rig_check(r, "SPOP id:a 01", positive);
    rig_check(r, "SRANDMEMBER id:a x", integer);
    rig_check(r, "SRANDMEMBER id:a -9223372036854775808",
              "-ERR value is out of range, value must between -9223372036854775807 and "
              "9223372036854775807\r\n");
    rig_check(r, "LPOP id:a 1 2", "-ERR wrong number of arguments for 'lpop' command\r\n");
    rig_check(r, "SPOP id:a 1 2", "-ERR syntax error\r\n");
    rig_check(r, "LPOP x", "$-1\r\n");
    rig_check(r, "LPOP x 0", "*-1\r\n");
    rig_check(r, "SPOP x 1", "*0\r\n");
    rig_check(r, "SRANDMEMBER x 1", "*0\r\n");
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "RPOP x 1", "_\r\n");
    rig_check(r, "SPOP x 1", "~0\r\n");
    rig_check(r, "SRANDMEMBER x 1", "*0\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

static void incrby(void **state)
{
    struct rig *r = *state;
    static const char range[] = "-ERR value is not an integer or out of range\r\n";
    rig_check(r, "INCRBY id:a 101",
              "-ERR value is not an integer or out of range: expected 1 to 100, found 101\r\n");
    r->serve.issuer.batch = 8192;
    rig_check(r, "INCRBY id:a 1", rig_integer(0));
    rig_check(r, "INCRBY id:a 10", rig_integer(10));
    rig_check(r, "INCR id:a", rig_integer(11));
    rig_check(r, "INCRBY id:a 1012", rig_integer(1023));
    rig_at(r, 1);
    rig_begins(r, "INCRBY id:a 1024", ":");
    rig_check(r, "INCRBY id:a 1025",
              "-ERR value is not an integer or out of range: expected 1 to 1024, found 1025\r\n");
    rig_check(r, "INCRBY id:a 0",
              "-ERR value is not an integer or out of range: expected 1 to 1024, found 0\r\n");
    rig_check(r, "INCRBY id:a -1",
              "-ERR value is not an integer or out of range: expected 1 to 1024, found -1\r\n");
    rig_check(r, "INCRBY id:a 9223372036854775808", range);
    rig_check(r, "INCRBY id:a 1a", range);
    rig_check(r, "INCRBY x 1a", range);
    rig_check(r, "INCRBY x 1",
              "-ERR key 'x' is no id, and no upstream is configured to store it\r\n");
    rig_check(r, "INCR x", "-ERR key 'x' is no id, and no upstream is configured to store it\r\n");
    assert_int_equal(r->serve.issuer.names.prefix[0].other.issued, 2048);
}

static void counted_by_name(void **state)
{
    struct rig *r = *state;
    rig_check(r, "LPOP id:orders 2", rig_ids("*2\r\n", 0, 2));
    rig_check(r, "INCRBY id:users#9 5", rig_integer(6));
    rig_check(r, "GET id:unknown", "$-1\r\n");
    assert_int_equal(names_find(&r->serve.issuer.names, SPAN("id:orders"))->issued, 2);
    assert_int_equal(names_find(&r->serve.issuer.names, SPAN("id:users"))->issued, 5);
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static void parked_and_resumed(void **state)
{
    struct rig *r = *state;
    r->serve.issuer.batch = 1024;
    rig_begins(r, "INCRBY id:a 1020", ":");
    assert_int_equal(rig_ask(r, "LPOP id:a 6"), NET_QUEUE);
    assert_true(r->step.partial);
    assert_int_equal(r->step.used, 0);
    assert_int_equal(r->step.until_ms, RIG_MS + 1);
    assert_int_equal(r->turn.reply_start, 0);
    assert_int_equal(rig_session(r)->done, 4);
    rig_at(r, 1);
    assert_int_equal(rig_pump(r), NET_MORE);
    char expected[512];
    struct buf b;
    buf_init(&b, expected, sizeof expected);
    buf_put_str(&b, rig_ids("*6\r\n", 1020, 4));
    resp_put_bulk_u64(&b, layout_compose(&layout_usual, 1001, RIG_WORKER, 0));
    resp_put_bulk_u64(&b, layout_compose(&layout_usual, 1001, RIG_WORKER, 1));
    buf_put_char(&b, '\0');
    rig_expect(r, expected);
    assert_int_equal(rig_session(r)->done, 0);
}

/* A quota of 1 parks before each ID but the first. */
static void resumed_one_by_one(void **state)
{
    static const char *const asked[] = {"MGET id:1 x id:2 id:3", "LPOP id:a 3", "SPOP id:a 3"};
    struct rig *r = *state;
    for (size_t i = 0; i < 3; i++) {
        uint32_t first = (uint32_t)r->gen.ids.stats.issued;
        r->turn.quota = 1;
        assert_int_equal(rig_ask(r, asked[i]), NET_YIELD);
        for (int turns = 0; turns < 2; turns++) {
            assert_true(r->step.partial);
            r->turn.quota = 1;
            assert_int_equal(rig_pump(r), turns == 1 ? NET_MORE : NET_YIELD);
        }
        if (i == 0) {
            char expected[256] = "";
            struct buf b;
            buf_init(&b, expected, sizeof expected - 1);
            buf_put_str(&b, rig_ids("*4\r\n", first, 1));
            buf_put_str(&b, rig_ids("$-1\r\n", first + 1, 2));
            rig_expect(r, expected);
        } else {
            rig_expect(r, rig_ids("*3\r\n", first, 3));
        }
    }
    assert_int_equal(r->gen.ids.stats.issued, 9);
    assert_int_equal(rig_counted(r, "mget", SERVE_OK), 1);
}

/* Nothing of the reply stands there yet: nothing is to be kept back. */
static void parked_at_once(void **state)
{
    struct rig *r = *state;
    r->turn.quota = 0;
    assert_int_equal(rig_ask(r, "GET id:a"), NET_YIELD);
    assert_false(r->step.partial);
    r->turn.quota = 1;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, rig_ids("", 0, 1));
}

static void refused(struct rig *r, const char *words, const char *expected)
{
    r->turn.waited_us = 100000;
    assert_int_equal(rig_ask(r, words), NET_MORE);
    rig_expect(r, expected);
}

static void without_worker(void **state)
{
    struct rig *r = *state;
    int64_t last;
    assert_true(snowflake_revoke(&r->gen.ids, 1, &last));
    assert_int_equal(rig_ask(r, "GET id:a"), NET_WAIT);
    assert_false(r->step.partial);
    r->turn.waited_us = 100000;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "-LOADING " NO_WORKER "\r\n");
    refused(r, "MGET x id:a", "-LOADING " NO_WORKER "\r\n");
    refused(r, "LPOP id:a 5", "-LOADING " NO_WORKER "\r\n");
    refused(r, "INCR id:a", "-LOADING " NO_WORKER "\r\n");
    refused(r, "MGET x y", "*2\r\n$-1\r\n$-1\r\n");
    (void)snprintf(r->serve.facts.why, sizeof r->serve.facts.why, "no pool\r\n+OK");
    refused(r, "GET id:a", "-LOADING no workerId is held: no pool  +OK\r\n");
    assert_int_equal(rig_counted(r, "get", SERVE_FAILED), 2);
    assert_int_equal(r->serve.issuer.names.prefix[0].other.issued, 0);
}

/* What was written of the reply is taken back, whatever else stands in the output. */
static void refused_midway(void **state)
{
    struct rig *r = *state;
    int64_t last;
    r->turn.quota = 3;
    assert_int_equal(rig_ask(r, "LPOP id:a 2"), NET_MORE);
    assert_int_equal(rig_ask(r, "MGET id:a id:b"), NET_YIELD);
    assert_true(snowflake_revoke(&r->gen.ids, 1, &last));
    r->turn.quota = 1;
    r->turn.waited_us = 100000;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, rig_both(rig_ids("*2\r\n", 0, 2), "-LOADING " NO_WORKER "\r\n"));
    assert_int_equal(rig_session(r)->done, 0);
}

static void other_refusals(void **state)
{
    struct rig *r = *state;
    rig_at(r, 100);
    rig_begins(r, "GET id:a", "$11\r\n");
    rig_at(r, 0);
    assert_int_equal(rig_ask(r, "GET id:a"), NET_WAIT);
    r->turn.waited_us = 100000;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "-TRYAGAIN the clock is behind the latest ID, and no other workerId can stand "
                  "in: wait until it is 2026-01-01T00:00:01.100Z\r\n");
    rig_at(r, 3600001);
    refused(r, "GET id:a",
            "-ERR each range of time held has ended: the clock jumped ahead, or the coordinator is "
            "away\r\n");
    r->us = r->turn.wall_ms = 0;
    refused(r, "GET id:a",
            "-ERR the clock is before the epoch, or past the end of the IDs' time field\r\n");
}

/* Which is told, whether it would have gone on in another turn or not. */
static void a_reply_that_is_too_long(void **state)
{
    static const char *const asked[] = {"MGET id:1 id:2 id:3 id:4 id:5", "LPOP id:a 5"};
    struct rig *r = *state;
    size_t cap = r->out.cap;
    for (size_t i = 0; i < 2 * sizeof asked / sizeof *asked; i++) {
        r->out.cap = 70; /* of two */
        r->turn.quota = i % 2 ? UINT32_MAX : 4;
        rig_check(r, asked[i / 2], "-ERR the reply is too long: expected at most 70 bytes\r\n");
        assert_int_equal(rig_session(r)->done, 0);
        r->out.cap = cap;
        r->turn.quota = UINT32_MAX;
        rig_begins(r, "GET id:a", "$");
        rig_check(r, "MULTI", "+OK\r\n");
        rig_check(r, asked[i / 2], "+QUEUED\r\n");
        r->out.cap = 70;
        r->turn.quota = i % 2 ? UINT32_MAX : 4;
        rig_check(r, "EXEC", "-ERR the reply is too long: expected at most 70 bytes\r\n");
        assert_null(rig_session(r)->txn);
        r->out.cap = cap;
        r->turn.quota = UINT32_MAX;
        rig_check(r, "PING", "+PONG\r\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(single),
        RIG_TEST(repeated_as_time_goes_on),
        RIG_TEST(getex_options),
        RIG_TEST(mget),
        RIG_TEST(a_reply_that_is_too_long),
        RIG_TEST(batches),
        RIG_TEST(batch_errors),
        RIG_TEST(incrby),
        RIG_NAMES_TEST(counted_by_name),
        RIG_TEST(parked_and_resumed),
        RIG_TEST(resumed_one_by_one),
        RIG_TEST(parked_at_once),
        RIG_TEST(without_worker),
        RIG_TEST(refused_midway),
        RIG_TEST(other_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
