#include "wire/mc_canon.h"

#include "support/wirefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* 250 bytes */
#define K50  "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define K250 K50 K50 K50 K50 K50

struct written {
    const char *in, *line;
    size_t block;
    bool silent;
};

static void what_is_canonical_is_written(void **state)
{
    static const struct written table[] = {
        {"get a\r\nget b\r\n", "get a\r\n", 0, false},
        {"get a b c\r\n", "get a b c\r\n", 0, false},
        {"bget a b\r\n", "bget a b\r\n", 0, false},
        {"get a\n", "get a\r\n", 0, false},
        {"get  a   b \r\n", "get a b\r\n", 0, false},
        {" get a\r\n", "get a\r\n", 0, false},
        {"gets " K250 "\r\n", "gets " K250 "\r\n", 0, false},
        {"gat 0 a\r\n", "gat 0 a\r\n", 0, false},
        {"gats 2147483647 a b\r\n", "gats 2147483647 a b\r\n", 0, false},
        {"set k 0 0 3\r\nabc\r\nget a\r\n", "set k 0 0 3\r\n", 5, false},
        {"set k 4294967295 2147483647 0\r\n\r\n", "set k 4294967295 2147483647 0\r\n", 2, false},
        {"set k 0 0 2 noreply\r\n\r\n\r\n", "set k 0 0 2\r\n", 4, true},
        {"set noreply 0 0 1\r\nx\r\n", "set noreply 0 0 1\r\n", 3, false},
        {"add k 0 0 1\nx\r\n", "add k 0 0 1\r\n", 3, false},
        {"cas k 0 0 1 18446744073709551615\r\na\r\n", "cas k 0 0 1 18446744073709551615\r\n", 3,
         false},
        {"cas k 0 0 1 7 noreply \r\na\r\n", "cas k 0 0 1 7\r\n", 3, true},
        {"incr n 12\r\n", "incr n 12\r\n", 0, false},
        {"decr n 18446744073709551615 noreply\r\n", "decr n 18446744073709551615\r\n", 0, true},
        {"delete k\r\n", "delete k\r\n", 0, false},
        {"delete k noreply\r\n", "delete k\r\n", 0, true},
        {"touch ~! 60\r\n", "touch ~! 60\r\n", 0, false},
        {"version\r\n", "version\r\n", 0, false},
        {"version \n", "version\r\n", 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        static struct wirefeed_log log;
        struct mc_canon c;
        const struct written *w = &table[i];
        assert_true(mc_canon(span_str(w->in), &c));
        assert_true(span_eq(span_of(c.line, c.n), span_str(w->line)));
        assert_int_equal(c.block.n, w->block);
        assert_int_equal(c.silent, w->silent);
        wirefeed_check(WIREFEED_MEMCACHED, span_str(w->in), 1, &log); /* as it is parsed */
    }
}

static void nothing_else_is(void **state)
{
    static const struct span table[] = {
        SPAN(""),
        SPAN("\n"),
        SPAN("\r\n"),
        SPAN(" \r\n"),
        SPAN("get a"),
        SPAN("get a\r"),
        /* what ends words and lines */
        SPAN("get a\0\r\n"),
        SPAN("get a\0b\r\n"),
        SPAN("get\ta\r\n"),
        SPAN("get a\tb\r\n"),
        SPAN("get a\r\r\n"),
        SPAN("get a\rb\r\n"),
        SPAN("get a\x7f\r\n"),
        SPAN("get \xc3\xa4\r\n"),
        SPAN("touch k 0 noreply\0\r\n"),
        SPAN("set k 0 0 1 noreply\0\r\nx\r\n"),
        SPAN("version\0\r\n"),
        /* verbs */
        SPAN("GET a\r\n"),
        SPAN("Set k 0 0 1\r\nx\r\n"),
        SPAN("getx a\r\n"),
        SPAN("ge a\r\n"),
        SPAN("nosuch\r\n"),
        SPAN("stats\r\n"),
        SPAN("flush_all\r\n"),
        SPAN("verbosity 0\r\n"),
        SPAN("quit\r\n"),
        SPAN("mn\r\n"),
        SPAN("mg a v\r\n"),
        SPAN("ms k 1\r\nx\r\n"),
        SPAN("version x\r\n"),
        /* words */
        SPAN("get\r\n"),
        SPAN("get \r\n"),
        SPAN("get " K250 "k\r\n"),
        SPAN("get a " K250 "k\r\n"),
        SPAN("get a HTTP/1.1\r\n"),
        SPAN("delete\r\n"),
        SPAN("delete HTTP/1.1\r\n"),
        SPAN("delete k 0\r\n"),
        SPAN("delete k noreply x\r\n"),
        SPAN("delete k noreply noreply\r\n"),
        SPAN("touch k\r\n"),
        SPAN("touch k 0 x\r\n"),
        SPAN("touch k 0 NOREPLY\r\n"),
        SPAN("incr k\r\n"),
        SPAN("gat a\r\n"),
        SPAN("gat 0\r\n"),
        SPAN("cas k 0 0 1\r\na\r\n"),
        SPAN("set k 0 0 3 x\r\nabc\r\n"),
        SPAN("set k 0 0\r\n"),
        /* numbers */
        SPAN("incr k +1\r\n"),
        SPAN("incr k -1\r\n"),
        SPAN("incr k 01\r\n"),
        SPAN("incr k 1x\r\n"),
        SPAN("incr k 18446744073709551616\r\n"),
        SPAN("incr k 99999999999999999999999\r\n"),
        SPAN("touch k -1\r\n"),
        SPAN("touch k 2147483648\r\n"),
        SPAN("gat 00 a\r\n"),
        SPAN("gat -1 a\r\n"),
        SPAN("set k 4294967296 0 1\r\nx\r\n"),
        SPAN("set k 0 2147483648 1\r\nx\r\n"),
        SPAN("set k -1 0 1\r\nx\r\n"),
        SPAN("set k 0 0 01\r\nx\r\n"),
        SPAN("set k 0 0 +1\r\nx\r\n"),
        SPAN("set k 0 0 -1\r\nx\r\n"),
        SPAN("set k 0 0 4294967297\r\nx\r\n"),
        SPAN("set k 0 0 2147483646\r\nx\r\n"),
        SPAN("cas k 0 0 1 -1\r\na\r\n"),
        /* blocks */
        SPAN("set k 0 0 3\r\nabc"),
        SPAN("set k 0 0 3\r\nabc\r"),
        SPAN("set k 0 0 3\r\nabcde"),
        SPAN("set k 0 0 3\r\nabc\n\n"),
        SPAN("set k 0 0 3\r\nabcd\r\n"),
        SPAN("set k 0 0 3\r\n"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct mc_canon c;
        if (mc_canon(table[i], &c))
            fail_msg("it is none: %.*s", (int)table[i].n, table[i].p);
    }
}

/* memcached closes on lines without an end in 2,048 bytes. */
static void lines_are_short(void **state)
{
    static char in[4096];
    (void)state;
    for (size_t n = 1900; n < 2300; n++) {
        struct mc_canon c;
        memset(in, ' ', sizeof in);
        memcpy(in, "get a", 5);
        for (size_t i = 5; i + 2 < n; i += 100)
            in[i + 1] = 'k';
        memcpy(in + n - 2, "\r\n", 2);
        bool is = mc_canon(span_of(in, n), &c);
        assert_true(is == (n < MC_LINE_MAX - 2));
        for (size_t i = 5; i < n - 2; i++)
            in[i] = i % 100 ? 'k' : ' ';
        is = mc_canon(span_of(in, n), &c);
        assert_true(!is || c.n < MC_LINE_MAX);
        assert_true(is == (n < MC_LINE_MAX - 2));
    }
}

#define TEN(text) text text text text text text text text text text

/* That it is so, tests/e2e/test_passthrough_odd.py holds against memcached 1.6.18. */
static void what_memcached_makes_of_the_rest(void **state)
{
    static const struct {
        struct span in;
        bool answers;
        size_t block;
        enum frame_kind reply;
    } table[] = {
        {SPAN("touch k 0 noreply\0\r\n"), false, 0, FRAME_MC_LINES},
        {SPAN("touch k 0 noreply\r\n"), false, 0, FRAME_MC_LINES},
        {SPAN("touch k 0 noreply x\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("touch noreply\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("Touch k 0 noreply\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("lru" TEN(" a") " noreply\r\n"), false, 0, FRAME_MC_LINES},
        {SPAN("lru" TEN(" a") TEN(" b") " c noreply\r\n"), false, 0, FRAME_MC_LINES},
        {SPAN("lru" TEN(" a") TEN(" b") " c d noreply\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("lru" TEN(" a") TEN(" b") " c noreply d e\r\n"), false, 0, FRAME_MC_LINES},
        {SPAN("set k 0 0 +7\r\n"), true, 9, FRAME_MC_LINE},
        {SPAN("set k 0 0 \t07\t\r\n"), true, 9, FRAME_MC_LINE},
        {SPAN("set k 0 0 7x\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("set k 0 0 4294967303\r\n"), true, 9, FRAME_MC_LINE},
        {SPAN("set k 0 0 -4294967289\r\n"), true, 9, FRAME_MC_LINE},
        {SPAN("set k 0 0 -1\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("set k 0 0 2147483645\r\n"), true, 2147483647, FRAME_MC_LINE},
        {SPAN("set k 0 0 2147483646\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("set k 0 0 9223372036854775808\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("set k -1 0 7 noreply\r\n"), false, 0, FRAME_MC_LINE},
        {SPAN("set k 18446744073709551615 0 7 noreply\r\n"), false, 9, FRAME_MC_LINE},
        {SPAN("set k 0 -9223372036854775808 7 x\r\n"), true, 9, FRAME_MC_LINE},
        {SPAN("set k 0 0 7 x y\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("cas k 0 0 7\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("cas k 0 0 7 -1\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("cas k 0 0 7 +1\r\n"), true, 9, FRAME_MC_LINE},
        {SPAN("set " K250 "k 0 0 7\r\n"), true, 0, FRAME_MC_LINE},
        {SPAN("SET k 0 0 7\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("ms k 7 E1 Zz\r\n"), true, 9, FRAME_MC_META},
        {SPAN("ms k 7 q\r\n"), false, 9, FRAME_MC_META},
        {SPAN("ms q 7\r\n"), true, 9, FRAME_MC_META},
        {SPAN("ms k x\r\n"), true, 0, FRAME_MC_META},
        {SPAN("mg q\r\n"), true, 0, FRAME_MC_META},
        {SPAN("mg k q\0 v\r\n"), false, 0, FRAME_MC_META},
        {SPAN("mn q\r\n"), true, 0, FRAME_MC_UPTO_MN},
        {SPAN("me k q\r\n"), true, 0, FRAME_MC_META},
        {SPAN("get a b\r\n"), true, 0, FRAME_MC_VALUES},
        {SPAN("bget a b\r\n"), true, 0, FRAME_MC_VALUES},
        {SPAN("stats\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("\r\n"), true, 0, FRAME_MC_LINES},
        {SPAN("\n"), true, 0, FRAME_MC_LINE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct mc_there t = mc_there(table[i].in);
        if (t.answers != table[i].answers || t.block != table[i].block ||
            t.reply != table[i].reply || t.forgets)
            fail_msg("%.*s", (int)table[i].in.n, table[i].in.p);
    }
    assert_true(mc_there(SPAN("get a " K250 "k\r\n")).forgets);
    assert_false(mc_there(SPAN("get a\0 " K250 "k\r\n")).forgets);
    assert_int_equal(mc_there(SPAN(" gat 0  a b\r\n")).words, 4);
    assert_int_equal(mc_there(SPAN("bget a b\r\n")).words, 3);
    assert_int_equal(mc_there(SPAN("mg a v q\r\n")).words, 0);
    assert_true(mc_there(SPAN("watch mutations\r\n")).listens);
    assert_true(mc_there(SPAN(" watch\n")).listens);
    assert_false(mc_there(SPAN("watches\r\n")).listens);
    assert_false(mc_there(SPAN("get watch\r\n")).listens);
    assert_true(mc_there(SPAN("\x80 a\r\n")).binary);
    assert_false(mc_there(SPAN(" \x80 a\r\n")).binary);
}

/* What mc_parse takes, and memcached may take for something else. */
static void what_can_be_read_in_two_ways_is_not_clear(void **state)
{
    static const struct {
        struct span in;
        bool clear;
    } table[] = {
        {SPAN("get k \xc3\xa4\r\n"), true},
        {SPAN("delete k 0\r\n"), true},
        {SPAN("gat -1 k\n"), true},
        {SPAN("set k 0 -1 1\r\n"), true},
        {SPAN("mg k v O1 k\r\n"), true},
        {SPAN("mg YQ== v b\r\n"), true},
        {SPAN("ms k 5 T0\r\n"), true},
        {SPAN("me k\r\n"), true},
        {SPAN("me YQ== b\r\n"), true},
        /* words that end elsewhere */
        {SPAN("mg YQ== v O\0 b\r\n"), false},
        {SPAN("ms YQ== 5 O\0 b\r\n"), false},
        {SPAN("md YQ== O\0 b\r\n"), false},
        {SPAN("me YQ== b\0\r\n"), false},
        {SPAN("mg k O\t v\r\n"), false},
        {SPAN("mg k O\x7f\r\n"), false},
        {SPAN("mg k O\xc3\xa4\r\n"), false},
        {SPAN("incr k 1 x\0y\r\n"), false},
        {SPAN("flush_all 0 x\r\r\n"), false},
        /* base64, or not */
        {SPAN("mg YQ== bX\r\n"), false},
        {SPAN("me YQ== bX\r\n"), false},
        {SPAN("me YQ== v b\r\n"), false},
        /* blocks */
        {SPAN("SET k 0 0 1\r\n"), false},
        {SPAN("MS k 1\r\n"), false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct mc_req req;
        size_t used;
        assert_int_equal(mc_parse(table[i].in, &req, &used), WIRE_REQ);
        struct mc_there there = mc_there(table[i].in);
        if (mc_is_clear(&req, &there) != table[i].clear)
            fail_msg("clear is to be %d: %.*s", table[i].clear, (int)table[i].in.n, table[i].in.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_canonical_is_written),
        cmocka_unit_test(nothing_else_is),
        cmocka_unit_test(lines_are_short),
        cmocka_unit_test(what_memcached_makes_of_the_rest),
        cmocka_unit_test(what_can_be_read_in_two_ways_is_not_clear),
    };
    return cmocka_run_group_tests_name("wire/mc_canon", tests, NULL, NULL);
}
