#include "wire/mc_text.h"

#include "support/wirefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define K10  "kkkkkkkkkk"
#define K50  K10 K10 K10 K10 K10
#define K250 K50 K50 K50 K50 K50

struct exchange {
    const char *in, *log;
};

static void check(struct span in, const char *expected)
{
    static struct wirefeed_log log;
    wirefeed_check(WIREFEED_MEMCACHED, in, 1, &log);
    assert_string_equal(log.text, expected);
}

static void check_all(const struct exchange *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(span_str(e[i].in), e[i].log);
}

#define CHECK_ALL(table) check_all((table), sizeof(table) / sizeof *(table))

#define FORMAT "BAD CLIENT_ERROR bad command line format"

static void retrieval(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"get id:orders\r\n", "REQ get key=id:orders keys=id:orders\n"},
        {"get a\nGET b\r\n", "REQ get key=a keys=a\nREQ get key=b keys=b\n"},
        {"  GeT   a  bb c  \r\n", "REQ get key=a keys=a,bb,c\n"},
        {"gets k\r\n", "REQ gets key=k keys=k cas\n"},
        {"bget k l\r\n", "REQ get key=k keys=k,l\n"},
        {"gat 10 a b\r\n", "REQ gat key=a keys=a,b\n"},
        {"gats -1 a\r\n", "REQ gats key=a keys=a cas\n"},
        {"get \xc3\xa4\r\n", "REQ get key=\\xc3\\xa4 keys=\\xc3\\xa4\n"},
        {"get " K250 "\r\n", "REQ get key=" K250 " keys=" K250 "\n"},
        {"get " K250 "k\r\n", FORMAT "\n"},
        {"get a " K250 "k b\r\n", FORMAT "\n"},
        {"get a\tb\r\nget c\r\n", FORMAT "\nREQ get key=c keys=c\n"},
        {"get a b\x7f\r\n", FORMAT "\n"},
        {"get a\r\r\n", FORMAT "\n"},
        {"get\r\n", "BAD ERROR\n"},
        {"gets  \r\n", "BAD ERROR\n"},
        {"gat\r\n", "BAD ERROR\n"},
        {"gat 1\r\n", "BAD ERROR\n"},
        {"gat x k\r\n", "BAD CLIENT_ERROR invalid exptime argument\n"},
        {"gat +1 k\r\n", "BAD CLIENT_ERROR invalid exptime argument\n"},
        {"gat x " K250 "k\r\n", "BAD CLIENT_ERROR invalid exptime argument\n"},
        {"gat +1 " K250 "k\r\n", FORMAT "\n"},
        {"gat +1\r\n", "BAD ERROR\n"},
        {"get k", "LEFT bytes=5\n"},
    };
    CHECK_ALL(table);
    check(span_of("get a\0b\r\n", 9), FORMAT "\n");
}

static void numbers(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"incr k 1\r\n", "REQ incr key=k delta=1\n"},
        {"DECR k 18446744073709551615 \n", "REQ decr key=k delta=18446744073709551615\n"},
        {"incr k 1 noreply\r\n", "REQ incr key=k delta=1 noreply\n"},
        {"incr k 1 foo\r\n", "REQ incr key=k delta=1\n"},
        {"incr k 1 NOREPLY\r\n", "REQ incr key=k delta=1\n"},
        {"incr k 18446744073709551616\r\n", "BAD CLIENT_ERROR invalid numeric delta argument\n"},
        {"incr k -1\r\n", "BAD CLIENT_ERROR invalid numeric delta argument\n"},
        {"incr k x noreply\r\nincr k 2\r\n", "BAD\nREQ incr key=k delta=2\n"},
        {"incr " K250 "k 1\r\n", FORMAT "\n"},
        {"incr k\r\n", "BAD ERROR\n"},
        {"incr\r\n", "BAD ERROR\n"},
        {"incr k 1 2 3\r\n", "BAD ERROR\n"},
        {"incr a b c d e f g h i j\r\n", "BAD ERROR\n"},
    };
    CHECK_ALL(table);
}

static void storage(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"set k 0 0 3\r\nabc\r\nget k\r\n",
         "REQ set key=k body=5\nSWALLOWED\nREQ get key=k keys=k\n"},
        {"set k 16 0 1 \r\n1\r\n", "REQ set key=k body=3\nSWALLOWED\n"},
        {"add k 0 2678400 0\n\r\n", "REQ add key=k body=2\nSWALLOWED\n"},
        {"replace k 0 -1 1 noreply\r\nx\r\n", "REQ replace key=k noreply body=3\nSWALLOWED\n"},
        {"append k 0 0 0\r\n\r\nprepend k 0 0 2147483645\r\n",
         "REQ append key=k body=2\nSWALLOWED\nREQ prepend key=k body=2147483647\n"},
        {"cas k 0 0 1 77\r\nx\r\n", "REQ cas key=k body=3\nSWALLOWED\n"},
        {"cas k 0 0 1 77 noreply\r\nx\r\n", "REQ cas key=k noreply body=3\nSWALLOWED\n"},
        {"set k 0 0 3\r\nabcde\r\nget k\r\n",
         "REQ set key=k body=5\nSWALLOWED bad\nBAD ERROR\nREQ get key=k keys=k\n"},
        {"set k 0 0 3\r\nabc\nx", "REQ set key=k body=5\nSWALLOWED bad\n"},
        {"set k 0 0 3\r\nabcx\n", "REQ set key=k body=5\nSWALLOWED bad\n"},
        {"set k 0 0 3\r\nabc\rx", "REQ set key=k body=5\nSWALLOWED bad\n"},
        {"set k 0 0 -1\r\nget k\r\n", FORMAT "\nREQ get key=k keys=k\n"},
        {"set k 0 0 x\r\n", FORMAT "\n"},
        {"set k 0 0 2147483646\r\n", FORMAT "\n"},
        {"set k 0 0 99999999999999999999\r\n", FORMAT "\n"},
        {"set k 0 0 x noreply\r\n", "BAD\n"},
        {"set k -1 0 3\r\nabc\r\nget k\r\n", FORMAT " body=5\nSWALLOWED\nREQ get key=k keys=k\n"},
        {"set k 0 x 3 noreply\r\nabc\r\n", "BAD body=5\nSWALLOWED\n"},
        {"set " K250 "k 0 0 3\r\nabc\r\n", FORMAT " body=5\nSWALLOWED\n"},
        {"cas k 0 0 3 x\r\nabc\r\n", FORMAT " body=5\nSWALLOWED\n"},
        {"set k 0 0\r\n", "BAD ERROR\n"},
        {"set k 0 0 3 4 5\r\n", "BAD ERROR\n"},
        {"cas k 0 0 3\r\n", "BAD ERROR\n"},
    };
    CHECK_ALL(table);
}

static void others(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"delete k\r\n", "REQ delete key=k\n"},
        {"delete k 0\r\n", "REQ delete key=k\n"},
        {"delete k noreply\r\n", "REQ delete key=k noreply\n"},
        {"delete k 0 noreply\r\n", "REQ delete key=k noreply\n"},
        {"delete k 1\r\n",
         "BAD CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\n"},
        {"delete k 0 x\r\n",
         "BAD CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\n"},
        {"delete k 0 0 0\r\n", "BAD ERROR\n"},
        {"delete\r\n", "BAD ERROR\n"},
        {"touch k 1\r\n", "REQ touch key=k\n"},
        {"touch k 1 noreply\r\n", "REQ touch key=k noreply\n"},
        {"touch k x\r\n", "BAD CLIENT_ERROR invalid exptime argument\n"},
        {"touch k\r\n", "BAD ERROR\n"},
        {"flush_all\r\n", "REQ flush_all\n"},
        {"flush_all 0\r\n", "REQ flush_all\n"},
        {"flush_all noreply\r\n", "REQ flush_all noreply\n"},
        {"flush_all 0 noreply\r\n", "REQ flush_all noreply\n"},
        {"flush_all x\r\n", "BAD CLIENT_ERROR invalid exptime argument\n"},
        {"stats \r\n", "REQ stats args= \n"},
        {"stats settings\r\n", "REQ stats args= settings\n"},
        {"VERSION\r\nversion x\r\n", "REQ version\nREQ version\n"},
        {"verbosity 1\r\n", "REQ verbosity args= 1\n"},
        {"verbosity noreply\r\n", "BAD\n"},
        {"verbosity x\r\n", FORMAT "\n"},
        {"verbosity\r\n", "BAD ERROR\n"},
        {"quit\r\nget k\r\n", "REQ quit\nREQ get key=k keys=k\n"},
        {"foo\r\n\r\n  \r\ngetx k\r\nfoo noreply\r\n",
         "BAD ERROR\nBAD ERROR\nBAD ERROR\nBAD ERROR\nBAD ERROR\n"},
        {"flush\x7f"
         "all\r\n",
         "BAD ERROR\n"},
    };
    CHECK_ALL(table);
}

static void browsers(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\nget k\r\n", "CLOSE\n"},
        {"GET /" K250 K250 " HTTP/1.0\r\n", "CLOSE\n"},
        {"POST /set HTTP/2 \r\n", "CLOSE\n"},
        {"delete / HTTP/1.1\n", "CLOSE\n"},
        {"HTTP/1.1\n", "CLOSE\n"},
        {"get HTTP/1.1 b\r\n", "REQ get key=HTTP/1.1 keys=HTTP/1.1,b\n"},
        {"get id:HTTP/1.1\r\n", "REQ get key=id:HTTP/1.1 keys=id:HTTP/1.1\n"},
    };
    CHECK_ALL(table);
}

/* A line of n bytes, its end included: what, then filler as often as it fits, spaces, \n. */
static struct span long_line(const char *what, const char *filler, size_t n)
{
    static char line[2 * WIRE_IN_MAX];
    size_t at = strlen(what);
    memcpy(line, what, at);
    while (filler && at + strlen(filler) < n) {
        memcpy(line + at, filler, strlen(filler));
        at += strlen(filler);
    }
    memset(line + at, ' ', n - at);
    line[n - 1] = '\n';
    return span_of(line, n);
}

static void long_lines(void **state)
{
    (void)state;
    static const char *const gets[] = {"get ", "GETS ", "gat 1 ", "  gats 1 "};
    static struct wirefeed_log log;
    check(long_line("version ", NULL, MC_LINE_MAX), "REQ version\n");
    check(long_line("version ", NULL, MC_LINE_MAX + 1), "CLOSE\n");
    check(long_line("", "x", MC_LINE_MAX), "BAD ERROR\n");
    check(long_line("", "x", MC_LINE_MAX + 1), "CLOSE\n");
    check(long_line("", NULL, MC_LINE_MAX + 1), "CLOSE\n");
    check(long_line("set ", "k ", MC_LINE_MAX + 1), "CLOSE\n");
    for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
        wirefeed_check(WIREFEED_MEMCACHED, long_line(gets[i], "id:k ", WIRE_LINE_MAX), 2, &log);
        assert_memory_equal(log.text, "REQ ", 4);
        assert_non_null(strstr(log.text, "keys=id:k,id:k,id:k"));
        check(long_line(gets[i], "id:k ", WIRE_LINE_MAX + 1), "CLOSE\n");
    }
    check(long_line("get ", "k", MC_LINE_MAX + 1), FORMAT "\n");
    char indented[101 + sizeof "get "];
    (void)snprintf(indented, sizeof indented, "%101sget ", "");
    check(long_line(indented, "k ", MC_LINE_MAX + 1), "CLOSE\n");
    wirefeed_check(WIREFEED_MEMCACHED, long_line(indented + 1, "k ", MC_LINE_MAX + 1), 2, &log);
    assert_memory_equal(log.text, "REQ get ", 8);

    /* It is not waited for a byte more than may come. */
    check(span_of(long_line("set ", "k ", 9999).p, MC_LINE_MAX - 1), "LEFT bytes=2047\n");
    check(span_of(long_line("set ", "k ", 9999).p, MC_LINE_MAX), "CLOSE\n");
    check(span_of(long_line("get ", "k ", 99999).p, WIRE_LINE_MAX - 1), "LEFT bytes=65535\n");
    check(span_of(long_line("get ", "k ", 99999).p, WIRE_LINE_MAX), "CLOSE\n");
}

static void keys_are_walked(void **state)
{
    (void)state;
    struct span keys = SPAN("  a bb   c "), key = SPAN("before");
    assert_true(mc_next_key(&keys, &key) && span_eq(key, SPAN("a")));
    assert_true(mc_next_key(&keys, &key) && span_eq(key, SPAN("bb")));
    assert_true(mc_next_key(&keys, &key) && span_eq(key, SPAN("c")));
    assert_false(mc_next_key(&keys, &key));
    assert_true(span_eq(key, SPAN("c")));
}

static void replies(void **state)
{
    (void)state;
    char mem[1024];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    mc_put_value(&b, SPAN("id:a"), INT64_MIN, false);
    mc_put_value(&b, SPAN("k"), 7, true);
    mc_put_value(&b, SPAN("k"), -12, true);
    mc_put_end(&b);
    mc_put_number(&b, 0);
    mc_put_stat(&b, SPAN("n"), SPAN("a\r\nb"));
    mc_put_server_error(&b, SPAN("no\nway"));
    assert_true(span_eq(buf_span(&b), SPAN("VALUE id:a 0 20\r\n-9223372036854775808\r\n"
                                           "VALUE k 0 1 7\r\n7\r\n"
                                           "VALUE k 0 3 9223372036854775796\r\n-12\r\n"
                                           "END\r\n0\r\nSTAT n a  b\r\n"
                                           "SERVER_ERROR no way\r\n")));
    assert_false(b.failed);
}

/* The promised room is enough for the longest value, and not a byte is written where it lacks. */
static void value_wants_its_room(void **state)
{
    (void)state;
    char mem[MC_VALUE_ROOM(MC_KEY_MAX) + 1];
    const int64_t longest = -INT64_C(1000000000000000000); /* as a number, and as its cas */
    struct span key = SPAN(K250);
    struct buf b;
    buf_init(&b, mem, MC_VALUE_ROOM(MC_KEY_MAX));
    mc_put_value(&b, key, longest, true);
    assert_false(b.failed);
    assert_int_equal(b.n, 6 + 250 + 3 + 2 + 1 + 19 + 2 + 20 + 2);
    buf_init(&b, mem, MC_VALUE_ROOM(MC_KEY_MAX) - 1);
    mc_put_value(&b, key, longest, true);
    assert_true(b.failed);
    assert_int_equal(b.n, 0);
}

static void verbs_have_names(void **state)
{
    (void)state;
    for (int v = MC_UNKNOWN + 1; v < MC_VERB_COUNT; v++)
        assert_string_not_equal(mc_verb_name((enum mc_verb)v), "unknown");
    assert_string_equal(mc_verb_name(MC_UNKNOWN), "unknown");
    assert_string_equal(mc_verb_name(MC_FLUSH_ALL), "flush_all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retrieval),
        cmocka_unit_test(numbers),
        cmocka_unit_test(storage),
        cmocka_unit_test(others),
        cmocka_unit_test(browsers),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(keys_are_walked),
        cmocka_unit_test(replies),
        cmocka_unit_test(value_wants_its_room),
        cmocka_unit_test(verbs_have_names),
    };
    return cmocka_run_group_tests_name("wire/mc_text", tests, NULL, NULL);
}
