#include "wire/frame.h"

#include "support/framefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct exchange {
    uint8_t kind;
    const char *in, *log;
};

static void check(frame_fn *fn, const struct exchange *e, size_t n, bool watch)
{
    static struct framefeed_log log;
    for (size_t i = 0; i < n; i++) {
        framefeed_check(fn, &e[i].kind, 1, watch, span_str(e[i].in), &log);
        assert_string_equal(log.mem, e[i].log);
    }
}

#define CHECK(fn, table, watch) check((fn), (table), sizeof(table) / sizeof *(table), (watch))

static void test_resp(void **state)
{
    static const struct exchange table[] = {
        {FRAME_RESP, "+OK\r\n:1\r\n", "+OK\\n;\n:1\\n;\n"},
        {FRAME_RESP, "-ERR x\r\n$-1\r\n", "-ERR x\\n error;\n$-1\\n;\n"},
        {FRAME_RESP, "$3\r\n\r\n+\r\n$0\r\n\r\n", "$3\\n\\n+\\n;\n$0\\n\\n;\n"},
        {FRAME_RESP, "*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n+x\r\n",
         "*2\\n$1\\na\\n*2\\n:1\\n*0\\n;\n+x\\n;\n"},
        {FRAME_RESP, "*-1\r\n*1\r\n*-1\r\n", "*-1\\n;\n*1\\n*-1\\n;\n"},
        {FRAME_RESP, "%1\r\n+a\r\n~2\r\n#t\r\n,1.5\r\n_\r\n",
         "%1\\n+a\\n~2\\n#t\\n,1.5\\n;\n_\\n;\n"},
        {FRAME_RESP, "=7\r\ntxt:abc\r\n!3\r\nERR\r\n(123\r\n",
         "=7\\ntxt:abc\\n;\n!3\\nERR\\n error;\n(123\\n;\n"},
        /* nobody subscribes on a link that is not his own: such a push would be somebody's reply */
        {FRAME_RESP, "+OK\r\n>2\r\n+a\r\n+b\r\n", "+OK\\n;\n BAD;\n"},
        {FRAME_RESP_MERGE, ">2\r\n+a\r\n+b\r\n", " BAD;\n"},
        {FRAME_RESP, "|1\r\n+ttl\r\n:1\r\n$1\r\nx\r\n:2\r\n",
         "|1\\n+ttl\\n:1\\n$1\\nx\\n;\n:2\\n;\n"},
        {FRAME_RESP, "*1\r\n$5\r\nab", "*1\\n$5\\nab MORE;\n"},
        {FRAME_RESP, "$1x\r\n", " BAD;\n"},
        {FRAME_RESP, "HTTP/1.1 400\r\n", " BAD;\n"},
        {FRAME_RESP, "*2\r\n?\r\n", "*2\\n BAD;\n"},
        {FRAME_RESP, "$-2\r\n", " BAD;\n"},
        {FRAME_RESP, "*281474976710655\r\n*281474976710655\r\n", "*281474976710655\\n BAD;\n"},
        {FRAME_RESP, "$99999999999999999999\r\n", " BAD;\n"},
        {FRAME_RESP_TUNNEL, "+OK\r\n?anything", "+OK\\n?anything"},
        /* messages and acknowledgements of RESP2 are replies where nobody has subscribed */
        {FRAME_RESP, "*3\r\n$7\r\nmessage\r\n+c\r\n+m\r\n", "*3\\n$7\\nmessage\\n+c\\n+m\\n;\n"},
    };
    (void)state;
    CHECK(frame_resp, table, false);
}

static void test_watch(void **state)
{
    static const struct exchange table[] = {
        {FRAME_RESP, ">2\r\n+a\r\n+b\r\n+OK\r\n", ">2\\n+a\\n+b\\n push;\n+OK\\n;\n"},
        {FRAME_RESP, ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n",
         ">3\\n$9\\nsubscribe\\n$1\\na\\n:2\\n push ack 0: 2;\n"},
        {FRAME_RESP, ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n",
         ">3\\n$11\\nunsubscribe\\n_\\n:0\\n push ack 0: 0;\n"},
        {FRAME_RESP, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n+OK\r\n",
         "*3\\n$7\\nmessage\\n$1\\nc\\n$1\\nm\\n push;\n+OK\\n;\n"},
        {FRAME_RESP, "*4\r\n$8\r\npmessage\r\n+p\r\n+c\r\n+m\r\n",
         "*4\\n$8\\npmessage\\n+p\\n+c\\n+m\\n push;\n"},
        {FRAME_RESP, "*3\r\n$8\r\nsmessage\r\n+c\r\n+m\r\n",
         "*3\\n$8\\nsmessage\\n+c\\n+m\\n push;\n"},
        {FRAME_RESP, "*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:0\r\n",
         "*3\\n$12\\npunsubscribe\\n$-1\\n:0\\n push ack 1: 0;\n"},
        {FRAME_RESP, "*3\r\n$9\r\nsubscribe\r\n$2\r\n:9\r\n:41\r\n+OK\r\n",
         "*3\\n$9\\nsubscribe\\n$2\\n:9\\n:41\\n push ack 0: 41;\n+OK\\n;\n"},
        {FRAME_RESP, "*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n",
         "*3\\n$10\\nssubscribe\\n$1\\na\\n:1\\n push ack 2: 1;\n"},
        {FRAME_RESP_MERGE, ">1\r\n+p\r\n*1\r\n$0\r\n\r\n",
         ">1\\n+p\\n push;\n<*1><$0>$0\\n\\n<>;\n"},
        {FRAME_RESP, "*3\r\n$7\r\nmassage\r\n+c\r\n+m\r\n", "*3\\n$7\\nmassage\\n+c\\n+m\\n;\n"},
        {FRAME_RESP, "*3\r\n$-1\r\n+c\r\n+m\r\n", "*3\\n$-1\\n+c\\n+m\\n;\n"},
        {FRAME_RESP, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "*2\\n$4\\npong\\n$0\\n\\n;\n"},
    };
    (void)state;
    CHECK(frame_resp, table, true);
}

/* Channels and patterns are counted together, shards apart. */
static void test_acks(void **state)
{
    static const struct {
        uint8_t channel;
        uint64_t says, n[FRAME_CHANNELS];
        bool none;
    } table[] = {
        {FRAME_CHANNEL, 1, {1, 0, 0}, false}, {FRAME_CHANNEL, 2, {2, 0, 0}, false},
        {FRAME_CHANNEL, 2, {2, 0, 0}, false}, {FRAME_PATTERN, 3, {2, 1, 0}, false},
        {FRAME_SHARD, 1, {2, 1, 1}, false},   {FRAME_CHANNEL, 2, {1, 1, 1}, false},
        {FRAME_CHANNEL, 1, {0, 1, 1}, true},  {FRAME_CHANNEL, 1, {0, 1, 1}, true},
        {FRAME_PATTERN, 0, {0, 0, 1}, true},  {FRAME_SHARD, 0, {0, 0, 0}, true},
    };
    struct frame_subs subs = {.n = {0}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct frame f = {.channel = table[i].channel, .channels = table[i].says};
        assert_int_equal(frame_note_ack(&f, &subs), table[i].none);
        assert_memory_equal(subs.n, table[i].n, sizeof subs.n);
        assert_int_equal(frame_subscribed(&subs), i + 1 < sizeof table / sizeof *table);
    }
}

static void test_resp_merge(void **state)
{
    static const struct exchange table[] = {
        {FRAME_RESP_MERGE, "*2\r\n$1\r\na\r\n$-1\r\n", "<*2><$1>$1\\na\\n<$-1>$-1\\n<>;\n"},
        {FRAME_RESP_MERGE, "*1\r\n_\r\n", "<*1><_>_\\n<>;\n"},
        {FRAME_RESP_MERGE, "-NOAUTH x\r\n", "-NOAUTH x\\n error;\n"},
    };
    (void)state;
    CHECK(frame_resp, table, false);
}

#define FORGETS "SERVER_ERROR out of memory writing get response\r\n"

/* On a link that clients share: what is no such reply as is due is somebody else's. */
static void test_text(void **state)
{
    static const struct exchange table[] = {
        {FRAME_MC_LINE, "STORED\r\n17\r\n", "STORED\\n;\n17\\n;\n"},
        {FRAME_MC_LINE, "SERVER_ERROR x\r\nOK", "SERVER_ERROR x\\n error;\n MORE;\n"},
        {FRAME_MC_LINE, "NOT_STORED\r\nEXISTS\r\nNOT_FOUND\r\nDELETED\r\nTOUCHED\r\nOK\r\n",
         "NOT_STORED\\n;\nEXISTS\\n;\nNOT_FOUND\\n;\nDELETED\\n;\nTOUCHED\\n;\nOK\\n;\n"},
        {FRAME_MC_LINE, "VERSION 1.6\r\nERROR\r\n", "VERSION 1.6\\n;\nERROR\\n error;\n"},
        {FRAME_MC_LINE, "VALUE a 0 1\r\nx\r\nEND\r\n", " BAD;\n"},
        {FRAME_MC_LINE, "VA 1\r\nx\r\n", " BAD;\n"},
        {FRAME_MC_LINE, "END\r\n", " BAD;\n"},
        {FRAME_MC_LINE, "HD\r\n", " BAD;\n"},
        {FRAME_MC_LINE, "STORED x\r\n", " BAD;\n"},
        {FRAME_MC_LINE, "\r\n", " BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 5 17\r\nEND\r\n\r\nVALUE b 1 0\r\n\r\nEND\r\nEND\r\n",
         "VALUE a 0 5 17\\nEND\\n\\nVALUE b 1 0\\n\\nEND\\n;\nEND\\n;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 1\r\nx\r\nSERVER_ERROR y\r\n",
         "VALUE a 0 1\\nx\\nSERVER_ERROR y\\n error;\n"},
        {FRAME_MC_VALUES, "STORED\r\n", " BAD;\n"},
        {FRAME_MC_VALUES, "1\r\n", " BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 x\r\n", " BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a\r\n", " BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 99999999999\r\n", " BAD;\n"},
        {FRAME_MC_META, "HD\r\n", " BAD;\n"},
        {FRAME_MC_META, "END\r\n", " BAD;\n"},
        {FRAME_MC_LINES, "STAT a 1\r\n", " BAD;\n"},
        {FRAME_MC_UPTO_MN, "MN\r\n", " BAD;\n"},
        {FRAME_MC_ANY, "x\r\n", " BAD;\n"},
        /* behind it there are fewer replies than expected */
        {FRAME_MC_LINE, "STORED\r\n" FORGETS, "STORED\\n;\n BAD;\n"},
        {FRAME_MC_VALUES, FORGETS, " BAD;\n"},
        {FRAME_MC_MERGE, "VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\ny\r\nEND\r\n",
         "<VALUE a 0 1>VALUE a 0 1\\nx\\n<VALUE b 0 1>VALUE b 0 1\\ny\\n<>END\\n;\n"},
        {FRAME_MC_MERGE, "END\r\n", "<>END\\n;\n"},
        {FRAME_MC_MERGE, "SERVER_ERROR x\r\n", "SERVER_ERROR x\\n error;\n"},
        {FRAME_MC_MERGE, "OK\r\n", " BAD;\n"},
    };
    (void)state;
    CHECK(frame_memcached, table, false);
}

/* A value that does not end where it should is another one than it seems: nothing behind it is
 * known for what it is. */
static void test_block_ends(void **state)
{
    static const struct exchange table[] = {
        {FRAME_MC_VALUES, "VALUE a 0 1\r\nxx\r\n", "VALUE a 0 1\\nx BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 1\r\nx\nEND\r\n", "VALUE a 0 1\\nx BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 1\r\nx\rx", "VALUE a 0 1\\nx BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 0\r\nEND\r\n", "VALUE a 0 0\\n BAD;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 3\r\nx\r\nEND\r\n", "VALUE a 0 3\\nx\\n BAD;\n"},
        {FRAME_MC_MERGE, "VALUE a 0 1\r\nxx\r\n", "<VALUE a 0 1>VALUE a 0 1\\nx BAD;\n"},
    };
    (void)state;
    CHECK(frame_memcached, table, false);
}

/* On a client's own link: whatever comes is for it, and a block is never taken for lines. */
static void test_own(void **state)
{
    static const struct exchange table[] = {
        {FRAME_MC_LINE, "STORED\r\nVALUE\r\n", "STORED\\n;\nVALUE\\n;\n"},
        {FRAME_MC_LINE, "VA 4\r\n\r\n\r\n\r\nx\r\n", "VA 4\\n\\n\\n\\n;\nx\\n;\n"},
        {FRAME_MC_LINE, FORGETS, "SERVER_ERROR out of memory writing get response\\n error;\n"},
        {FRAME_MC_VALUES, "HD\r\nVALUE a 0 1\r\nxx\r\n", "HD\\n;\nVALUE a 0 1\\nxx\\n;\n"},
        {FRAME_MC_VALUES, "VALUE a 0 x\r\n", "VALUE a 0 x\\n;\n"},
        {FRAME_MC_LINES, "STAT a 1\r\nSTAT b 2\r\nEND\r\nRESET\r\n",
         "STAT a 1\\nSTAT b 2\\nEND\\n;\nRESET\\n;\n"},
        {FRAME_MC_META, "VA 2 f1\r\nHD\r\nHD\r\nEN\r\n", "VA 2 f1\\nHD\\n;\nHD\\n;\nEN\\n;\n"},
        {FRAME_MC_META, "VA x\r\n", "VA x\\n;\n"},
        {FRAME_MC_UPTO_MN, "MN\r\nMN\r\n", "MN\\n;\nMN\\n;\n"},
        {FRAME_MC_UPTO_MN, "CLIENT_ERROR unauthenticated\r\nERROR\r\n",
         "CLIENT_ERROR unauthenticated\\n error;\nERROR\\n error;\n"},
        {FRAME_MC_UPTO_MN, "NF q\r\nVA 4\r\nMN\r\n\r\nERROR\r\nMN\r\nx",
         "NF q\\nVA 4\\nMN\\n\\nERROR\\nMN\\n;\n MORE;\n"},
        {FRAME_MC_ANY, "x y\r\nVA 3\r\na\r\n\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
         "x y\\n;\nVA 3\\na\\n\\n;\nVALUE a 0 1\\nx\\n;\nEND\\n;\n"},
    };
    (void)state;
    CHECK(frame_memcached, table, true);
}

#define HEAD(op, status, body)                                                                     \
    "\x81" op "\0\0\0\0\0" status "\0\0\0" body "\0\0\0\0"                                         \
    "\0\0\0\0\0\0\0\0"

static void check_binary(uint8_t kind, struct span in, const char *frames)
{
    static struct framefeed_log log;
    char ends[16];
    struct buf b;
    framefeed_check(frame_memcached, &kind, 1, false, in, &log);
    buf_init(&b, ends, sizeof ends - 1);
    for (size_t i = 0; log.mem[i]; i++)
        if (log.mem[i] == '\n')
            buf_put_char(&b, log.mem[i - 2] == 'E' ? 'm' : log.mem[i - 2] == 'D' ? 'b' : '.');
    ends[b.n] = '\0';
    assert_string_equal(ends, frames);
}

/* One letter a frame: '.' done, 'm' cut off, 'b' bad. */
static void test_binary(void **state)
{
    (void)state;
    check_binary(FRAME_MC_BINARY,
                 SPAN(HEAD("\1", "\0", "\0") HEAD("\0", "\0", "\3") "abc" HEAD("\0", "\1", "\0")),
                 "...");
    check_binary(FRAME_MC_BINARY, SPAN(HEAD("\0", "\0", "\3") "ab"), "m");
    check_binary(FRAME_MC_BINARY, SPAN("\x80"), "b");
    check_binary(FRAME_MC_BINARY, SPAN("\x81"), "m");
    check_binary(FRAME_MC_BINARY,
                 SPAN("\x80" /* whole, and a request */
                      "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
                 "b");
    check_binary(FRAME_MC_STATS,
                 SPAN(HEAD("\20", "\0", "\2") "ab" HEAD("\20", "\0", "\1") "c" HEAD(
                     "\20", "\0", "\0") HEAD("\20", "\1", "\2") "no" HEAD("\20", "\1", "\0")),
                 "...");
    check_binary(FRAME_MC_NOOP,
                 SPAN(HEAD("\15", "\0", "\1") "x" HEAD("\12", "\0", "\0") HEAD("\12", "\0", "\0")),
                 "..");
    /* our own is left out, and what it would bring with it would be the client's */
    check_binary(FRAME_MC_NOOP, SPAN(HEAD("\12", "\0", "\1") "x"), "b");
}

/* Our own NOOP is known by what only we know of it: a client's, or one in what it stored, is not.
 */
static void test_nonce(void **state)
{
    struct span in = SPAN(HEAD("\12", "\0", "\0") HEAD("\12", "\0", "\0"));
    char mem[48];
    struct frame f;
    size_t used;
    (void)state;
    memcpy(mem, in.p, in.n);
    memcpy(mem + 24 + 12, "\x12\x34\x56\x78", 4);
    frame_start(&f, FRAME_MC_NOOP, false);
    f.nonce = 0x12345678;
    assert_int_equal(frame_memcached(&f, span_of(mem, 24), &used), FRAME_MORE);
    assert_true(used == 24 && f.drop == 0);
    assert_int_equal(frame_memcached(&f, span_of(mem + 24, 24), &used), FRAME_DONE);
    assert_true(used == 24 && f.drop == 24);
}

/* A line is never kept, a header line never longer than what is kept. */
static void test_long(void **state)
{
    static char text[3000];
    static const uint8_t resp = FRAME_RESP, line = FRAME_MC_LINE, values = FRAME_MC_VALUES,
                         merge = FRAME_MC_MERGE;
    static struct framefeed_log log;
    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 2, "\r\n", 2);
    text[0] = '-';
    framefeed_check(frame_resp, &resp, 1, false, span_of(text, sizeof text), &log);
    assert_non_null(strstr(log.mem, "xx\\n error;\n"));
    memcpy(text, "ERROR", 5);
    framefeed_check(frame_memcached, &line, 1, false, span_of(text, sizeof text), &log);
    assert_non_null(strstr(log.mem, "xx\\n error;\n"));
    memset(text, 'x', 5);
    framefeed_check(frame_memcached, &line, 1, false, span_of(text, sizeof text), &log);
    assert_string_equal(log.mem, " BAD;\n");
    text[0] = '$';
    framefeed_check(frame_resp, &resp, 1, false, span_of(text, sizeof text), &log);
    assert_string_equal(log.mem, " BAD;\n");
    memcpy(text, "VALUE ", 6);
    framefeed_check(frame_memcached, &values, 1, false, span_of(text, sizeof text), &log);
    assert_string_equal(log.mem, " BAD;\n");
    framefeed_check(frame_memcached, &merge, 1, false, span_of(text, sizeof text), &log);
    assert_string_equal(log.mem, " BAD;\n");
    framefeed_check(frame_memcached, &values, 1, true, span_of(text, sizeof text), &log);
    assert_non_null(strstr(log.mem, "xx\\n;\n"));
}

/* Errors are looked at, one by one. */
static void test_run(void **state)
{
    static const struct {
        struct span in;
        uint32_t n;
        size_t used;
    } table[] = {
        {SPAN("+OK\r\n:1\r\n$1\r\na\r\n$-1\r\n"), 4, 21},
        {SPAN("+OK\r\n-ERR no\r\n:1\r\n"), 1, 5},
        {SPAN("-OOM\r\n+OK\r\n"), 0, 0},
        {SPAN("$1\r\na\r\n*0\r\n"), 1, 7},
        {SPAN(":1\r\n:2"), 1, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint32_t n;
        assert_int_equal(frame_run(FRAME_RESP, table[i].in, 9, &n), table[i].used);
        assert_int_equal(n, table[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resp),   cmocka_unit_test(test_watch),
        cmocka_unit_test(test_acks),   cmocka_unit_test(test_resp_merge),
        cmocka_unit_test(test_text),   cmocka_unit_test(test_block_ends),
        cmocka_unit_test(test_own),    cmocka_unit_test(test_run),
        cmocka_unit_test(test_binary), cmocka_unit_test(test_nonce),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
