/* Which args are keys, where options have to be walked for it. */
#include "wire/resp_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(const char *line, const char *want)
{
    static struct resp_req req;
    struct resp_range ranges[RESP_RANGES];
    char in[256], got[256];
    struct buf b;
    struct span arg;
    size_t used;
    int n = snprintf(in, sizeof in, "%s\r\n", line);
    assert_int_equal(resp_parse(span_of(in, (size_t)n), &req, &used), WIRE_REQ);
    unsigned found = resp_key_ranges(resp_lookup(req.argv[0]), &req, ranges);
    struct resp_walk w = resp_walk_from(&req, 0);
    buf_init(&b, got, sizeof got - 1);
    for (uint32_t i = 0; resp_next_arg(&w, &arg); i++)
        if (resp_is_key(ranges, found, i)) {
            buf_put_span(&b, b.n > 0 ? SPAN(" ") : SPAN(""));
            buf_put_span(&b, arg);
        }
    got[b.n] = '\0';
    if (strcmp(got, want) != 0)
        fail_msg("%s: expected the keys '%s', found '%s'", line, want, got);
}

static void streams(void **state)
{
    (void)state;
    check("XREAD STREAMS a b 0 0", "a b");
    check("xread count 1 block 5 streams a 0", "a");
    check("XREAD COUNT streams STREAMS a 0", "a");
    check("XREAD STREAMS streams a 0 0", "streams a");
    check("XREADGROUP GROUP g c STREAMS a >", "a");
    check("XREADGROUP NOACK BLOCK 0 GROUP g c COUNT 1 STREAMS a b > >", "a b");
    check("XREADGROUP COUNT 5 GROUP streams a STREAMS secret >", "secret");
    check("XREADGROUP NOACK COUNT 5 GROUP streams streams streams secret >", "secret");
    check("XREADGROUP GROUP g streams STREAMS secret >", "secret");
}

/* Redis compares them as C strings. */
static void options_end_at_a_nul(void **state)
{
    (void)state;
    check("XREAD COUNT \"1\" \"streams\\x00\" a 0", "a");
    check("XREADGROUP \"GROUP\\x00x\" g c STREAMS a >", "a");
    check("SORT a \"store\\x00x\" b", "a b");
    check("SORT a \"stor\\x00e\" b", "a");
    check("MIGRATE h 1 \"\" 0 9 \"keys\\x00\" a b", "a b");
}

static void what_does_not_parse_names_none(void **state)
{
    (void)state;
    check("XREAD WHATEVER STREAMS a 0", "");
    check("XREAD COUNT 1 2 STREAMS a 0", "");
    check("XREADGROUP GROUP g c CLAIM 5 STREAMS a >", "");
    check("XREADGROUP GROUP g c COUNT 5 NOACK STREAMS", "");
    check("XREADGROUP GROUP g c COUNT 5 NOACK BLOCK STREAMS", "");
    check("SORT a BY store STORE", "a");
    check("SORT a NOSUCH STORE b", "a");
}

static void stores_and_migrates(void **state)
{
    (void)state;
    check("SORT a LIMIT 0 1 GET # ASC ALPHA STORE b", "a b");
    check("SORT a BY store STORE b", "a b");
    check("SORT a GET store", "a");
    check("SORT a STORE b STORE c", "a c");
    check("GEORADIUS a 0 0 1 m COUNT 1 ANY DESC WITHCOORD STOREDIST b", "a b");
    check("GEORADIUSBYMEMBER a store 1 m STORE b", "a b");
    check("MIGRATE h 1 \"\" 0 9 COPY REPLACE KEYS a b", "a b");
    check("MIGRATE h 1 \"\" 0 9 AUTH keys KEYS a b", "a b");
    check("MIGRATE h 1 \"\" 0 9 AUTH2 u keys KEYS a", "a");
}

/* Of a request that is larger than the input: words, an arg that is cut, and so many more args. */
static void check_rest(const char *line, uint32_t more, const char *want)
{
    static struct resp_req words, req;
    static char in[WIRE_IN_MAX];
    struct resp_range r[RESP_RANGES];
    char text[256], got[64];
    struct buf b;
    struct span arg;
    size_t used;
    int n = snprintf(text, sizeof text, "%s\r\n", line);
    assert_int_equal(resp_parse(span_of(text, (size_t)n), &words, &used), WIRE_REQ);
    memset(in, 'x', sizeof in);
    buf_init(&b, in, sizeof in);
    resp_put_array(&b, words.argc + 1 + more);
    struct resp_walk w = resp_walk_from(&words, 0);
    while (resp_next_arg(&w, &arg))
        resp_put_bulk(&b, arg);
    size_t fore = b.n;
    buf_put_span(&b, SPAN("$100000\r\n"));
    assert_int_equal(resp_parse(span_of(in, sizeof in), &req, &used), WIRE_REQ);
    assert_true(req.truncated && req.fore == fore && req.whole == words.argc);
    unsigned ranges = resp_rest_ranges(resp_lookup(req.argv[0]), &req, r);
    buf_init(&b, got, sizeof got - 1);
    for (uint32_t i = req.whole; i < req.argc; i++)
        buf_put_char(&b, resp_is_key(r, ranges, i) ? 'k' : '-');
    got[b.n] = '\0';
    if (strcmp(got, want) != 0)
        fail_msg("%s ...: expected '%s', found '%s'", line, want, got);
}

static void what_follows(void **state)
{
    (void)state;
    check_rest("SET k", 0, "-");
    check_rest("SET", 1, "k-");
    check_rest("MSET a v b", 3, "-k-k");
    check_rest("MGET a", 2, "kkk");
    check_rest("BITOP OR d a", 1, "kk");
    check_rest("EVAL", 3, "kkkk"); /* how many are keys is not seen yet */
    check_rest("EVAL s 2 a", 3, "k---");
    check_rest("SORT l BY", 2, "kkk"); /* STORE may follow */
    check_rest("XREAD STREAMS a", 2, "kkk");
    check_rest("NOSUCH", 2, "k--");
    check_rest("NOSUCH a", 2, "---");
    check("SORT a STORE b LIMIT 0 1", "a b");
}

/* A word that is cut is no word: the option before it stands. */
static void a_cut_word_is_none(void **state)
{
    static struct resp_req req;
    static char in[WIRE_IN_MAX];
    struct resp_range r[RESP_RANGES];
    const char head[] = "*8\r\n$4\r\nSORT\r\n$1\r\na\r\n$5\r\nSTORE\r\n$1\r\nb\r\n$2\r\nBY\r\n";
    const char end[] = "\r\n$5\r\nLIM";
    struct buf b;
    size_t used;
    (void)state;
    memset(in, 'x', sizeof in);
    buf_init(&b, in, sizeof in);
    buf_put(&b, head, sizeof head - 1);
    size_t by = sizeof in - b.n - (sizeof "$67890\r\n" - 1) - (sizeof end - 1);
    in[b.n + (size_t)snprintf(in + b.n, 16, "$%zu\r\n", by)] = 'x';
    memcpy(in + sizeof in - (sizeof end - 1), end, sizeof end - 1);
    assert_int_equal(resp_parse(span_of(in, sizeof in), &req, &used), WIRE_REQ);
    assert_int_equal(resp_key_ranges(resp_lookup(req.argv[0]), &req, r), 2);
    assert_true(r[1].from == 3 && r[1].to == 3);
}

static void counted(void **state)
{
    (void)state;
    check("EVAL s 2 a b c", "a b");
    check("LMPOP 1 a LEFT", "a");
    check("ZUNIONSTORE d 2 a b", "d a b");
    check("ZINTERSTORE d 2 a b", "d a b");
    check("ZDIFFSTORE d 2 a b", "d a b");
}

/* More than there are, be it that 32 bits of the number are not. */
static void a_count_that_is_too_high_counts_none(void **state)
{
    (void)state;
    check("LMPOP 3 a LEFT", "");
    check("LMPOP 4294967297 a LEFT", "");
    check("EVAL s 2 a", "");
    check("ZUNIONSTORE d 4294967297 a", "d");
}

static void behind_a_subcommand(void **state)
{
    (void)state;
    check("MEMORY USAGE a", "a");
    check("MEMORY DOCTOR", "");
    check("OBJECT ENCODING a", "a");
    check("XINFO STREAM a", "a");
    check("XGROUP CREATE a g 0", "a");
}

static bool blocks(struct span in)
{
    static struct resp_req req;
    size_t used;
    assert_int_equal(resp_parse(in, &req, &used), WIRE_REQ);
    return resp_blocks(resp_lookup(req.argv[0]), &req);
}

static void by_its_words(void **state)
{
    static char in[WIRE_IN_MAX];
    static const char head[] = "*6\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$100000\r\n";
    (void)state;
    assert_true(blocks(SPAN("BLPOP q 0\r\n")));
    assert_true(blocks(SPAN("XREAD BLOCK 5 STREAMS a 0\r\n")));
    assert_true(blocks(SPAN("xreadgroup group g c noack block 0 count 1 streams a >\r\n")));
    assert_false(blocks(SPAN("XREAD COUNT 1 STREAMS a 0\r\n")));
    assert_false(blocks(SPAN("XREAD STREAMS block block 0 0\r\n")));
    assert_false(blocks(SPAN("XREADGROUP GROUP block block STREAMS a >\r\n")));
    assert_false(blocks(SPAN("GET block\r\n")));
    assert_true(blocks(SPAN("XREADGROUP GROUP g c NEW BLOCK 5 STREAMS a >\r\n")));
    memset(in, 'x', sizeof in);
    memcpy(in, head, sizeof head - 1);
    assert_true(blocks(span_of(in, sizeof in)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams),
        cmocka_unit_test(options_end_at_a_nul),
        cmocka_unit_test(what_does_not_parse_names_none),
        cmocka_unit_test(stores_and_migrates),
        cmocka_unit_test(what_follows),
        cmocka_unit_test(a_cut_word_is_none),
        cmocka_unit_test(counted),
        cmocka_unit_test(a_count_that_is_too_high_counts_none),
        cmocka_unit_test(behind_a_subcommand),
        cmocka_unit_test(by_its_words),
    };
    return cmocka_run_group_tests_name("wire/resp_keys", tests, NULL, NULL);
}
