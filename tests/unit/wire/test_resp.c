#include "wire/resp.h"

#include "support/wirefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PROTOCOL "CLOSE -ERR Protocol error: "
#define BIG      (3 * WIRE_IN_MAX)

struct exchange {
    const char *in, *log;
};

static void check(struct span in, const char *expected)
{
    static struct wirefeed_log log;
    wirefeed_check(WIREFEED_RESP, in, 1, &log);
    assert_string_equal(log.text, expected);
}

static void check_all(const struct exchange *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(span_str(e[i].in), e[i].log);
}

#define CHECK_ALL(table) check_all((table), sizeof(table) / sizeof *(table))

/* A long stream in the making. */
static struct buf *fresh(void)
{
    static char mem[BIG];
    static struct buf b;
    buf_init(&b, mem, sizeof mem);
    return &b;
}

static void put_filler(struct buf *b, char c, size_t n)
{
    memset(buf_room(b, n), c, n);
    buf_took(b, n);
}

static void multibulk(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"*2\r\n$3\r\nGET\r\n$9\r\nid:orders\r\n*1\r\n$4\r\nPING\r\n",
         "REQ argc=2 GET id:orders\nREQ argc=1 PING\n"},
        {"*0\r\n*-1\r\n*-9223372036854775808\r\n*1\r\n$4\r\nPING\r\n",
         "EMPTY\nEMPTY\nEMPTY\nREQ argc=1 PING\n"},
        {"*1\r\n$0\r\n\r\nPING\r\n", "REQ argc=1 \nINLINE argc=1 PING\n"},
        {"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", "REQ argc=1 PING\nREQ argc=1 PING\n"},
        {"*1\rx$4\ryPINGxx", "REQ argc=1 PING\n"},
        {"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\xff \r\n", "REQ argc=2 ECHO \\x0d\\x0a\\xff \n"},
        {"*2147483647\r\n$1\r\n", "LEFT bytes=17\n"},
        {"*1\r\n$536870912\r\n", "LEFT bytes=16\n"},
        {"*1\r\n\n", "LEFT bytes=5\n"},
        {"*1\r\n$4\r\nPING\r", "LEFT bytes=13\n"},
        {"*12\r\n$3\r\nDEL\r\n$10\r\n0123456789\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n"
         "$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n$0\r\n\r\n",
         "REQ argc=12 DEL 0123456789 a b c d e f g h i \n"},
    };
    CHECK_ALL(table);
    check(span_of("*1\r\n$3\r\na\0b\r\n", 13), "REQ argc=1 a\\x00b\n");
}

static void multibulk_errors(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"*x\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*+1\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*01\r\n$4\r\nPING\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*-0\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*2147483648\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*99999999999999999999\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*1\n$4\nPING\r\n", PROTOCOL "invalid multibulk length\n"},
        {"*1\r\nPING\r\n", PROTOCOL "expected '$', got 'P'\n"},
        {"*1\r\n\r\n", PROTOCOL "expected '$', got ' '\n"},
        {"*1\r\n\xff\r\n", PROTOCOL "expected '$', got '\\xff'\n"},
        {"*2\r\n$4\r\nECHO\r\n:1\r\n", PROTOCOL "expected '$', got ':'\n"},
        {"*1\r\n$x\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$-1\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$ 4\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$04\r\nPING\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$00\r\n\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$536870913\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$4\nPING\r\n", PROTOCOL "invalid bulk length\n"},
        {"*1\r\n$4\r\nPOST\r\nPING\r\n", "CLOSE\n"},
        {"*2\r\n$5\r\nhost:\r\n$1\r\nx\r\nPING\r\n", "CLOSE\n"},
    };
    CHECK_ALL(table);
}

static void inline_commands(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"PING\r\nping\nget id:a\r\n",
         "INLINE argc=1 PING\nINLINE argc=1 ping\nINLINE argc=2 get id:a\n"},
        {"\r\n\n \t \r\n", "EMPTY\nEMPTY\nEMPTY\n"},
        {"  a\tb  c \r\n", "INLINE argc=3 a b c\n"},
        {"PING\x0b x\x0c\r\n", "INLINE argc=2 PING\\x0b x\\x0c\n"},
        {"PING \x0bx \x0c \x0b\r\n", "INLINE argc=2 PING x\n"},
        {"\x0bPING 'x'\x0cy\r\n", "INLINE argc=3 PING x y\n"},
        {"ECHO a\rb\r\r\n", "INLINE argc=3 ECHO a b\n"},
        {"\"\" ''\r\n", "INLINE argc=2  \n"},
        {"ECHO \"a\\x41\\n\\q\\\"\"\r\n", "INLINE argc=2 ECHO aA\\x0aq\"\n"},
        {"ECHO \"\\r\\t\\b\\a\\\\\"\r\n", "INLINE argc=2 ECHO \\x0d\\x09\\x08\\x07\\\n"},
        {"ECHO \"\\x4\" \"\\xg1\" \"\\xFf\"\r\n", "INLINE argc=4 ECHO x4 xg1 \\xff\n"},
        {"ECHO 'a\\'b\\x41\\\\.'\r\n", "INLINE argc=2 ECHO a'b\\x41\\\\.\n"},
        {"ECHO 'a\\\\'\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO a\"b c\" \"a'b\" a'b'\r\n", "INLINE argc=4 ECHO ab c a'b ab\n"},
        {"ECHO \\x41\r\n", "INLINE argc=2 ECHO \\x41\n"},
        {" *1\r\n", "INLINE argc=1 *1\n"},
        {"a b c d e f g h i j k l m n o p q \"r s\" t 'u'\r\nPING\r\n",
         "INLINE argc=20 a b c d e f g h i j k l m n o p q r s t u\nINLINE argc=1 PING\n"},
        {"ECHO \"abc\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO 'abc\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO \"abc\"d\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO 'abc'd\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO \"\\\"\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO \"\\\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO \"\\x4\n", PROTOCOL "unbalanced quotes in request\n"},
        {"ECHO a\"\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"a b c d e f g h i j k l m n o p q \"r\r\n", PROTOCOL "unbalanced quotes in request\n"},
        {"POST / HTTP/1.1\r\nPING\r\n", "CLOSE\n"},
        {"host: x\r\nPING\r\n", "CLOSE\n"},
        {"\"post\"\r\n", "CLOSE\n"},
        {"Host:x\r\n", "INLINE argc=1 Host:x\n"},
        {"posts\r\n", "INLINE argc=1 posts\n"},
        {"PING", "LEFT bytes=4\n"},
    };
    CHECK_ALL(table);
    check(span_of("ECHO a\0b\r\n", 10), "INLINE argc=2 ECHO a\\x00b\n");
}

static void quoted_words_are_bounded(void **state)
{
    (void)state;
    struct wirefeed_log log;
    for (size_t over = 0; over < 2; over++) {
        struct buf *b = fresh();
        BUF_PUT_LIT(b, "ECHO '");
        put_filler(b, 'x', RESP_SCRATCH - 2 + over);
        BUF_PUT_LIT(b, "' a 'yy'\r\n");
        wirefeed_check(WIREFEED_RESP, buf_span(b), 3, &log);
        if (over)
            assert_string_equal(log.text, PROTOCOL "too big inline request\n");
        else
            assert_non_null(strstr(log.text, "INLINE argc=4 ECHO  bytes=1022"));
    }
}

/* Behind argv, quoted words take turns in what is left of the scratch. */
static void many_quoted_words(void **state)
{
    (void)state;
    static struct wirefeed_log log;
    struct buf *b = fresh();
    BUF_PUT_LIT(b, "DEL 2 3 4 5 6 7 8 9 10 11 12 13 14 15 'the 16th'");
    for (int i = 0; i < 30; i++)
        BUF_PUT_LIT(b, " '0123456789 0123456789 0123456789 0123456789 0123456789'");
    BUF_PUT_LIT(b, "\r\n");
    wirefeed_check(WIREFEED_RESP, buf_span(b), 8, &log);
    assert_memory_equal(log.text, "INLINE argc=46 DEL 2 3", 22);
    assert_non_null(strstr(log.text, " 15 the 16th 0123456789 0123"));
}

/* A line, or length line, may have WIRE_LINE_MAX bytes before its end; one more closes. */
static void long_lines(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        char filler;
        const char *end, *over;
    } table[] = {
        {"", 'x', "\n", PROTOCOL "too big inline request\n"},
        {"*", '1', "\r\n", PROTOCOL "too big mbulk count string\n"},
        {"*1\r\n$", '1', "\r\n", PROTOCOL "too big bulk count string\n"},
        {"*1\r\n", 'x', "\r\n", PROTOCOL "too big bulk count string\n"},
    };
    static struct wirefeed_log log;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t lead = table[i].before[0] == '*' && table[i].before[1] ? 4 : 0;
        for (size_t over = 0; over < 2; over++) {
            struct buf *b = fresh();
            buf_put_str(b, table[i].before);
            put_filler(b, table[i].filler, WIRE_LINE_MAX + over + lead - b->n);
            wirefeed_check(WIREFEED_RESP, buf_span(b), 4, &log);
            if (over)
                assert_string_equal(log.text, table[i].over);
            else
                assert_memory_equal(log.text, "LEFT", 4);
            buf_put_str(b, table[i].end);
            wirefeed_check(WIREFEED_RESP, buf_span(b), 4, &log);
            assert_int_equal(strcmp(log.text, table[i].over) == 0, over);
        }
    }
}

static void put_bulk(struct buf *b, char filler, size_t n)
{
    buf_put_char(b, '$');
    buf_put_u64(b, n);
    BUF_PUT_LIT(b, "\r\n");
    put_filler(b, filler, n);
    BUF_PUT_LIT(b, "\r\n");
}

/* What fits into the block to the last byte is whole; one byte more is truncated, and the request
 * behind it is found. */
static void too_big_value(void **state)
{
    (void)state;
    static const char head[] = "*3\r\n$3\r\nSET\r\n$4\r\nid:x\r\n";
    static struct wirefeed_log log;
    size_t fits = WIRE_IN_MAX - (sizeof head - 1) - sizeof "$67000\r\n\r\n" + 1;
    for (size_t more = 0; more < 4; more++) {
        struct buf *b = fresh();
        buf_put_str(b, head);
        put_bulk(b, 'v', fits + more);
        BUF_PUT_LIT(b, "PING\r\n");
        wirefeed_check(WIREFEED_RESP, buf_span(b), 5, &log);
        assert_memory_equal(log.text, "REQ argc=3 SET id:x  bytes=", 27);
        assert_int_equal(strstr(log.text, "truncated") != NULL, more > 0);
        assert_int_equal(strstr(log.text, "SWALLOWED") != NULL, more > 0);
        assert_non_null(strstr(log.text, "\nINLINE argc=1 PING\n"));
    }
    struct buf *b = fresh();
    buf_put_str(b, head);
    put_bulk(b, 'v', 2 * WIRE_IN_MAX);
    wirefeed_check(WIREFEED_RESP, span_of(b->p, WIRE_IN_MAX - 1), 6, &log);
    assert_string_equal(log.text, "LEFT bytes=67583\n");
    BUF_PUT_LIT(b, "*1\r\n$4\r\nPING\r\n");
    wirefeed_check(WIREFEED_RESP, buf_span(b), 6, &log);
    assert_non_null(strstr(log.text, " truncated\nSWALLOWED\nREQ argc=1 PING\n"));
}

/* The block may end anywhere within an arg or its length line: pad moves that place about. */
static void too_many_args(void **state)
{
    (void)state;
    static struct wirefeed_log log;
    for (size_t pad = 0; pad < 40; pad++) {
        struct buf *b = fresh();
        BUF_PUT_LIT(b, "*6002\r\n$4\r\nMGET\r\n");
        put_bulk(b, 'p', pad);
        for (unsigned i = 0; i < 6000; i++)
            put_bulk(b, 'k', 10 + i % 3);
        BUF_PUT_LIT(b, "PING\r\n");
        wirefeed_run(WIREFEED_RESP, buf_span(b), (struct wirefeed_cut){0, 4096, pad + 1}, &log);
        assert_memory_equal(log.text, "REQ argc=6002 MGET p", pad ? 20 : 18);
        struct wirefeed_log whole;
        wirefeed_check(WIREFEED_RESP, buf_span(b), pad + 1, &whole);
        assert_true(whole.hash == log.hash);
    }
}

static void swallow_ends_where_it_must(void **state)
{
    (void)state;
    static const char rest[] = "\r\n$3\r\nabc\r\n$0\r\n\r\nPING\r\n";
    bool done, bad;
    for (size_t cut = 0; cut < sizeof rest - 1; cut++) {
        struct resp_swallow s = {.args_left = 2, .bytes_left = 2};
        size_t used = resp_swallow(&s, span_of(rest, cut), &done, &bad);
        assert_int_equal(used, cut < 17 ? cut : 17);
        assert_int_equal(done, cut >= 17);
        used += resp_swallow(&s, span_of(rest + used, sizeof rest - 1 - used), &done, &bad);
        assert_int_equal(used, 17);
        assert_true(done && !bad);
    }
}

static void swallow_errors(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"x", "-ERR Protocol error: expected '$', got 'x'\r\n"},
        {"\r", "-ERR Protocol error: expected '$', got ' '\r\n"},
        {"$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"$\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"$1111111111111111111111111", "-ERR Protocol error: invalid bulk length\r\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct resp_swallow s = {.args_left = 1};
        bool done, bad;
        resp_swallow(&s, span_str(table[i].in), &done, &bad);
        assert_true(bad);
        assert_true(span_eq(s.error, span_str(table[i].log)));
    }
}

/* A request whose next length line is broken right at the end of the block closes. */
static void broken_behind_the_block(void **state)
{
    (void)state;
    static struct wirefeed_log log;
    for (size_t at = 0; at < 3; at++) {
        struct buf *b = fresh();
        BUF_PUT_LIT(b, "*3\r\n$3\r\nSET\r\n");
        put_bulk(b, 'v', WIRE_IN_MAX - b->n - 10 - at);
        BUF_PUT_LIT(b, "$$$\r\nPING\r\n");
        wirefeed_check(WIREFEED_RESP, buf_span(b), 7, &log);
        assert_non_null(strstr(log.text, PROTOCOL "invalid bulk length\n"));
    }
}

/* Walking starts anywhere in argv and may be repeated. */
static void args_are_walked(void **state)
{
    (void)state;
    static struct resp_req req;
    static const char line[] = "a b c d e f g h i j k l m n o p 'q r' \"s\"\n";
    size_t used;
    struct span arg;
    assert_int_equal(resp_parse(span_str(line), &req, &used), WIRE_REQ);
    assert_int_equal(used, sizeof line - 1);
    for (int round = 0; round < 2; round++) {
        struct resp_walk w = resp_walk_from(&req, 15);
        assert_true(resp_next_arg(&w, &arg) && span_eq(arg, SPAN("p")));
        assert_true(resp_next_arg(&w, &arg) && span_eq(arg, SPAN("q r")));
        assert_true(resp_next_arg(&w, &arg) && span_eq(arg, SPAN("s")));
        assert_false(resp_next_arg(&w, &arg));
    }
}

/* Canonical is what our own writer would write, to the last byte. */
static void canonical(void **state)
{
    static const struct {
        struct span in;
        bool canonical;
    } table[] = {
        {SPAN("*1\r\n$4\r\nPING\r\n"), true},
        {SPAN("*2\r\n$3\r\nGET\r\n$0\r\n\r\n"), true},
        {SPAN("*2\r\n$3\r\nGET\r\n$3\r\n\0\r\n\r\n"), true},
        {SPAN("*2\rX$3\r\nGET\r\n$1\r\na\r\n"), false},
        {SPAN("*2\r\n$3\r\rGET\r\n$1\r\na\r\n"), false},
        {SPAN("*2\r\n$3\r\nGET\r\n$1\r\0a\r\n"), false},
        {SPAN("*2\r\n$3\r\nGET__$1\r\na\r\n"), false},
        {SPAN("*2\r\n$3\r\nGET\r\n$1\r\na\n\r"), false},
        {SPAN("*2\r\n$3\r\nGET\r\n$1\r\na\r_"), false},
        {SPAN("*2\r\n$3\r\nGET\r\n$1\r\na_\n"), false},
        {SPAN("GET a\r\n"), false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        static struct resp_req req;
        size_t used;
        assert_int_equal(resp_parse(table[i].in, &req, &used), WIRE_REQ);
        assert_int_equal(used, table[i].in.n);
        assert_int_equal(req.canonical, table[i].canonical);
    }
}

/* What other numbers there are is no request at all. */
static void odd_numbers(void **state)
{
    static const char *const table[] = {
        "*+1\r\n$4\r\nPING\r\n",
        "*01\r\n$4\r\nPING\r\n",
        "* 1\r\n$4\r\nPING\r\n",
        "*1 \r\n$4\r\nPING\r\n",
        "*1\r\n$04\r\nPING\r\n",
        "*1\r\n$+4\r\nPING\r\n",
        "*1\r\n$-0\r\n\r\n",
        "*1\r\n$-1\r\n",
        "*4294967297\r\n$4\r\nPING\r\n",
        "*18446744073709551617\r\n",
        "*1\r\n$18446744073709551620\r\nPING\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        static struct resp_req req;
        size_t used;
        assert_int_equal(resp_parse(span_str(table[i]), &req, &used), WIRE_CLOSE);
    }
}

/* From where it stands, the bulk or nothing. */
static void one_bulk_at_a_time(void **state)
{
    static const struct {
        const char *in, *arg; /* NULL: none */
    } table[] = {
        {"$3\r\nabc\r\n$1\r\nx\r\n", "abc"},
        {"$0\r\n\r\n", ""},
        {"$2\r\n\r\n\r\n", "\r\n"},
        {"", NULL},
        {"$3\r\nabc\r", NULL},
        {"$3\r\nab", NULL},
        {"$3\r", NULL},
        {"$", NULL},
        {"$3\r\nabc\n\r", NULL},
        {"$3\r\nabc\r ", NULL},
        {"$3\r\nabc \n", NULL},
        {"$03\r\nabc\r\n", NULL},
        {"$-1\r\n", NULL},
        {"*1\r\nabc", NULL},
        {":1\r\n", NULL},
        {"$536870913\r\n", NULL},
        {"$99999999999999999999\r\n", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct span arg = SPAN("none");
        size_t at = 0;
        bool got = resp_next_bulk(span_str(table[i].in), &at, &arg);
        assert_int_equal(got, table[i].arg != NULL);
        assert_true(span_eq(arg, span_str(got ? table[i].arg : "none")));
        assert_int_equal(at, got ? arg.n + 6 : 0); /* each length has one digit */
    }
    size_t at = 9;
    struct span arg;
    assert_true(resp_next_bulk(span_str(table[0].in), &at, &arg));
    assert_true(span_eq(arg, SPAN("x")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bulk_at_a_time),
        cmocka_unit_test(canonical),
        cmocka_unit_test(odd_numbers),
        cmocka_unit_test(multibulk),
        cmocka_unit_test(multibulk_errors),
        cmocka_unit_test(inline_commands),
        cmocka_unit_test(quoted_words_are_bounded),
        cmocka_unit_test(many_quoted_words),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(too_big_value),
        cmocka_unit_test(too_many_args),
        cmocka_unit_test(swallow_ends_where_it_must),
        cmocka_unit_test(swallow_errors),
        cmocka_unit_test(broken_behind_the_block),
        cmocka_unit_test(args_are_walked),
    };
    return cmocka_run_group_tests_name("wire/resp", tests, NULL, NULL);
}
