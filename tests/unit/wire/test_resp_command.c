#include "wire/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void lookup(void **state)
{
    (void)state;
    size_t n;
    const struct resp_cmd *all = resp_commands(&n), *get = resp_lookup(SPAN("gEt"));
    assert_int_equal(n, 240);
    for (size_t i = 0; i < n; i++) {
        char upper[24];
        assert_int_equal(strlen(all[i].name), all[i].name_n);
        assert_true(i == 0 || strcmp(all[i - 1].name, all[i].name) < 0);
        for (size_t j = 0; j < sizeof upper; j++)
            upper[j] = (char)(all[i].name[j] - (all[i].name[j] >= 'a' ? 32 : 0));
        assert_ptr_equal(resp_lookup(span_of(upper, all[i].name_n)), &all[i]);
        assert_ptr_equal(resp_lookup(span_of(all[i].name, all[i].name_n)), &all[i]);
    }
    assert_int_equal(get->verb, RESP_GET);
    assert_true(resp_arity_ok(get, 2) && !resp_arity_ok(get, 1) && !resp_arity_ok(get, 3));
    assert_int_equal(get->flags, RESP_F_READONLY | RESP_F_FAST);
    assert_int_equal(resp_lookup(SPAN("evalsha_RO"))->verb, RESP_EVAL);
    assert_true(resp_lookup(SPAN("SET"))->flags & RESP_F_WRITE);
    assert_true(resp_arity_ok(resp_lookup(SPAN("set")), 9));
    assert_false(resp_arity_ok(resp_lookup(SPAN("set")), 2));
}

/* What goes on a connection that clients share: a command is added here by hand, or not at all. */
static void shared_commands(void **state)
{
    static const char listed[] =
        "append bitcount bitfield bitfield_ro bitop bitpos copy dbsize decr decrby "
        "del dump exists expire expireat expiretime geoadd geodist geohash geopos "
        "georadius_ro georadiusbymember_ro geosearch geosearchstore get getbit getdel getex "
        "getrange getset hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget "
        "hmset hrandfield hscan hset hsetnx hstrlen hvals incr incrby incrbyfloat info "
        "lastsave lcs lindex linsert llen lmove lpop lpos lpush lpushx lrange lrem lset ltrim "
        "mget mset msetnx persist pexpire pexpireat pexpiretime pfadd pfcount pfmerge ping "
        "psetex pttl randomkey rename renamenx restore rpop rpoplpush rpush rpushx sadd scan "
        "scard sdiff sdiffstore set setbit setex setnx setrange sinter sinterstore sismember "
        "smembers smismember smove spop srandmember srem sscan strlen substr sunion "
        "sunionstore time touch ttl type unlink xack xadd xautoclaim xclaim xdel xlen "
        "xpending xrange xrevrange xsetid xtrim zadd zcard zcount zincrby zlexcount zmscore "
        "zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem "
        "zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex "
        "zrevrangebyscore zrevrank zscan zscore";
    const unsigned never = RESP_F_ADMIN | RESP_F_PUBSUB | RESP_F_NOSCRIPT | RESP_F_BLOCKING |
                           RESP_F_MOVABLEKEYS | RESP_F_NO_MULTI;
    char found[sizeof listed + 1024];
    struct buf b;
    size_t n;
    const struct resp_cmd *all = resp_commands(&n);
    (void)state;
    buf_init(&b, found, sizeof found - 1);
    for (size_t i = 0; i < n; i++) {
        if (!all[i].shared)
            continue;
        assert_int_equal(all[i].flags & never, 0);
        assert_true(all[i].arity != 0);
        buf_put_str(&b, b.n ? " " : "");
        buf_put_str(&b, all[i].name);
    }
    found[b.n] = '\0';
    assert_string_equal(found, listed);
}

static void lookup_misses(void **state)
{
    (void)state;
    static const struct span names[] = {
        {"", 0},
        {"ge", 2},
        {"gets", 4},
        {"get\0", 4},
        {"zzzzzzzz", 8},
        {"\xe7"
         "et",
         3},
        {"get ", 4},
        {"0", 1},
        {"georadiusbymember_rx", 20},
        {"@", 1},
        {"rest\x4f[", 6},
        {"restore\x0d"
         "asking",
         14},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 38},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(resp_lookup(names[i]));
}

static void verbs_are_reached(void **state)
{
    (void)state;
    bool reached[RESP_VERB_COUNT] = {false};
    size_t n;
    const struct resp_cmd *all = resp_commands(&n);
    for (size_t i = 0; i < n; i++)
        reached[all[i].verb] = true;
    for (size_t v = 0; v < RESP_VERB_COUNT; v++)
        assert_true(reached[v]);
    assert_string_equal(resp_flag_name(0), "write");
    assert_string_equal(resp_flag_name(RESP_FLAGS - 1), "no_mandatory_keys");
    assert_int_equal(1 << (RESP_FLAGS - 1), RESP_F_NO_MANDATORY_KEYS);
    assert_string_equal(resp_flag_name(11), "asking");
    assert_int_equal(1 << 11, RESP_F_ASKING);
}

static void keys_of_commands(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t argc, from, to, step;
    } table[] = {
        {"get", 2, 1, 1, 1},   {"mget", 4, 1, 3, 1},  {"mset", 5, 1, 4, 2},
        {"blpop", 4, 1, 2, 1}, {"bitop", 5, 2, 4, 1}, {"rename", 3, 1, 2, 1},
    };
    uint32_t from, to, step;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_true(
            resp_keys(resp_lookup(span_str(table[i].name)), table[i].argc, &from, &to, &step));
        assert_int_equal(from, table[i].from);
        assert_int_equal(to, table[i].to);
        assert_int_equal(step, table[i].step);
    }
    assert_false(resp_keys(resp_lookup(SPAN("ping")), 2, &from, &to, &step));
    assert_false(resp_keys(resp_lookup(SPAN("eval")), 4, &from, &to, &step));
    assert_false(resp_keys(resp_lookup(SPAN("get")), 1, &from, &to, &step));
    assert_true(resp_keys(resp_lookup(SPAN("rename")), 2, &from, &to, &step) && to == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup),           cmocka_unit_test(lookup_misses),
        cmocka_unit_test(shared_commands),  cmocka_unit_test(verbs_are_reached),
        cmocka_unit_test(keys_of_commands),
    };
    return cmocka_run_group_tests_name("wire/resp_command", tests, NULL, NULL);
}
