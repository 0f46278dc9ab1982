/* The binary protocol without sockets. Requests are written by their parts, answers read back. */
#include "memcached_rig.h"

#define ISSUED gen.ids.stats.issued
#define NONE   ((struct span){"", 0})

enum opcode {
    GET = 0x00,
    SET = 0x01,
    ADD = 0x02,
    REPLACE = 0x03,
    DELETE = 0x04,
    INCR = 0x05,
    DECR = 0x06,
    QUIT = 0x07,
    FLUSH = 0x08,
    GETQ = 0x09,
    NOOP = 0x0a,
    VERSION = 0x0b,
    GETK = 0x0c,
    GETKQ = 0x0d,
    APPEND = 0x0e,
    STAT = 0x10,
    SETQ = 0x11,
    INCRQ = 0x15,
    QUITQ = 0x17,
    TOUCH = 0x1c,
    GAT = 0x1d,
    GATKQ = 0x24,
    SASL_LIST = 0x20,
    SASL_AUTH = 0x21,
    SASL_STEP = 0x22,
};

/* A request; its opaque is 0xOO000007, OO the opcode. */
static char sent[2000];
static size_t sent_n;

static void put_number(char *at, uint64_t v, size_t bytes)
{
    for (size_t i = bytes; i-- > 0; v >>= 8)
        at[i] = (char)(v & 0xff);
}

static void write_with(unsigned opcode, struct span key, struct span extras, struct span value,
                       uint64_t cas)
{
    char *at = sent + sent_n;
    size_t n = key.n + extras.n + value.n;
    memset(at, 0, MCB_HEADER);
    at[0] = MCB_REQUEST;
    at[1] = at[12] = (char)opcode;
    at[15] = 7;
    put_number(at + 2, key.n, 2);
    put_number(at + 4, extras.n, 1);
    put_number(at + 8, n, 4);
    put_number(at + 16, cas, 8);
    struct buf b;
    buf_init(&b, at + MCB_HEADER, n);
    buf_put_span(&b, extras);
    buf_put_span(&b, key);
    buf_put_span(&b, value);
    assert_false(b.failed);
    sent_n += MCB_HEADER + n;
    assert_true(sent_n <= sizeof sent);
}

static void write_key(unsigned opcode, const char *key)
{
    write_with(opcode, span_str(key), NONE, NONE, 0);
}

static void write_delta(unsigned opcode, const char *key, uint64_t delta, uint32_t expiration)
{
    char extras[20] = {0};
    put_number(extras, delta, 8);
    put_number(extras + 16, expiration, 4);
    write_with(opcode, span_str(key), span_of(extras, 20), NONE, 0);
}

static void send_all(void)
{
    feed(sent, sent_n);
    sent_n = 0;
}

/* Takes one answer off the output and writes it down: "opcode status cas: key=value". */
static const char *answer(void)
{
    static char text[300];
    const unsigned char *p = (const unsigned char *)out.p;
    uint64_t cas = 0;
    assert_true(out.n >= MCB_HEADER);
    size_t key = p[2] * 256u + p[3], ext = p[4], body = (size_t)p[10] * 256 + p[11];
    assert_int_equal(p[0], 0x81);
    assert_int_equal(p[5] | p[8] | p[9] | p[13] | p[14], 0);
    assert_int_equal(p[12], p[1]); /* the opaque, see write_with */
    assert_int_equal(p[15], 7);
    for (unsigned i = 16; i < 24; i++)
        cas = cas << 8 | p[i];
    assert_true(out.n >= MCB_HEADER + body && key + ext <= body);
    const char *at = out.p + MCB_HEADER + ext;
    (void)snprintf(text, sizeof text, "%02x %02x %llu:%s %.*s=%.*s", p[1], p[6] * 256u + p[7],
                   (unsigned long long)cas, ext == 4 ? " flags" : "", (int)key, at,
                   (int)(body - key - ext), at + key);
    out.n -= MCB_HEADER + body;
    memmove(out.p, out.p + MCB_HEADER + body, out.n);
    turn.reply_start = 0;
    return text;
}

static void expect_answer(const char *want)
{
    assert_string_equal(answer(), want);
}

static void expect_silence(void)
{
    assert_int_equal(out.n, 0);
}

/* ---- IDs ---------------------------------------------------------------------------------------
 */

static void reads_give_ids_with_their_cas(void **state)
{
    (void)state;
    write_key(GET, "id:a");
    write_key(GETK, "id:a");
    write_key(GETKQ, "id:b");
    write_with(GAT, SPAN("id:a"), SPAN("\0\0\0\5"), NONE, 0);
    write_with(GATKQ, SPAN("id:a#9"), SPAN("\0\0\0\5"), NONE, 0);
    send_all();
    expect_answer("00 00 " ID0 ": flags =" ID0);
    expect_answer("0c 00 " ID1 ": flags id:a=" ID1);
    expect_answer("0d 00 " ID2 ": flags id:b=" ID2);
    expect_answer("1d 00 33554439171: flags =33554439171");
    expect_answer("24 00 33554439172: flags id:a#9=33554439172");
    expect_silence();
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 5);
    assert_int_equal(counted(MC_GET, SERVE_OK), 3);
    assert_int_equal(counted(MC_GAT, SERVE_OK), 2);
}

static void a_miss_is_told_or_silence(void **state)
{
    (void)state;
    write_key(GET, "x");
    write_key(GETK, "x");
    write_key(GETQ, "x");
    write_key(GETKQ, "id:");
    write_with(GATKQ, SPAN("x"), SPAN("\0\0\0\5"), NONE, 0);
    write_with(GETQ, SPAN("id:a\0"), NONE, NONE, 0);
    write_key(NOOP, "");
    send_all();
    expect_answer("00 01 0: =Not found");
    expect_answer("0c 01 0: x=");
    expect_answer("0a 00 0: =");
    expect_silence();
    assert_int_equal(counted(MC_GET, SERVE_MISS), 5);
    assert_int_equal(ISSUED, 0);
}

static void incr_gives_the_last_of_a_block(void **state)
{
    (void)state;
    write_delta(INCR, "id:a", 1, UINT32_MAX);
    write_delta(INCR, "id:a", 2, 0);
    write_delta(INCRQ, "id:a", 1, 0);
    send_all();
    expect_answer("05 00 " ID0 ": =" /* 8 bytes, the first of them 0 */);
    expect_answer("05 00 " ID2 ": =");
    expect_silence();
    assert_int_equal(ISSUED, 4);
    write_delta(INCRQ, "id:a", 1000, 0); /* that nobody is told */
    send_all();
    expect_silence();
    assert_int_equal(ISSUED, 5);
    static const uint64_t bad[] = {0, 1025, UINT64_MAX, UINT32_MAX + UINT64_C(2), 65};
    for (size_t i = 0; i < 5; i++) {
        serve.issuer.batch = i == 4 ? 64 : 1024; /* limits.batch */
        write_delta(i == 0 ? INCRQ : INCR, "id:a", bad[i], 0);
        send_all();
        assert_non_null(strstr(answer(), " 04 0: =Invalid arguments"));
    }
    write_delta(INCR, "x", 1, UINT32_MAX);
    write_delta(INCR, "x", 1, 0);
    write_delta(DECR, "x", 1, UINT32_MAX);
    write_delta(DECR, "id:a", 1, UINT32_MAX);
    send_all();
    expect_answer("05 01 0: =Not found");
    expect_answer("05 05 0: =Not stored.");
    expect_answer("06 01 0: =Not found");
    expect_answer("06 05 0: =Not stored.");
    assert_int_equal(ISSUED, 5);
}

static void a_number_is_eight_bytes(void **state)
{
    (void)state;
    write_delta(INCR, "id:a", 1, 0);
    send_all();
    assert_int_equal(out.n, MCB_HEADER + 8);
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v = v << 8 | (unsigned char)out.p[MCB_HEADER + i];
    assert_true(v == layout_compose(&layout_usual, 1000, 7, 0));
}

/* ---- refusals ----------------------------------------------------------------------------------
 */

static void writes_are_not_stored(void **state)
{
    (void)state;
    static const unsigned opcodes[] = {SET, ADD, REPLACE, SETQ};
    for (size_t i = 0; i < 4; i++) {
        write_with(opcodes[i], SPAN("id:a"), SPAN("12345678"), SPAN("value"), 0);
        write_with(opcodes[i], SPAN("x"), SPAN("12345678"), SPAN("value"), 0);
        send_all();
        assert_non_null(strstr(answer(), " 05 0: =Not stored."));
        assert_non_null(strstr(answer(), opcodes[i] == REPLACE ? " 01 0: =Not found" : " 05 0: "));
    }
    write_with(SET, SPAN("x"), SPAN("12345678"), NONE, 5);
    write_with(SET, SPAN("id:a"), SPAN("12345678"), NONE, 5);
    write_with(APPEND, SPAN("x"), NONE, SPAN("v"), 0);
    write_key(DELETE, "id:a");
    write_key(FLUSH, "");
    write_with(TOUCH, SPAN("id:a"), SPAN("\0\0\0\1"), NONE, 0);
    write_with(TOUCH, SPAN("x"), SPAN("\0\0\0\1"), NONE, 0);
    send_all();
    expect_answer("01 01 0: =Not found");
    expect_answer("01 05 0: =Not stored.");
    expect_answer("0e 05 0: =Not stored.");
    expect_answer("04 01 0: =Not found");
    expect_answer("08 05 0: =Not stored.");
    expect_answer("1c 00 0: flags =");
    expect_answer("1c 01 0: =Not found");
    assert_int_equal(counted(MC_SET, SERVE_REFUSED), 6);
    assert_int_equal(ISSUED, 0);
}

static void unknown_opcodes_are_told_and_passed_over(void **state)
{
    (void)state;
    static char value[100000];
    memset(value, 0x80, sizeof value);
    write_with(0x7f, SPAN("k"), SPAN("ee"), NONE, 0);
    put_number(sent + 8, 3 + sizeof value, 4);
    send_all();
    for (size_t i = 0; i < sizeof value; i += 1000) {
        expect_silence();
        feed(value + i, 1000);
    }
    assert_int_equal(counted(MC_UNKNOWN, SERVE_INVALID), 1);
    write_key(NOOP, "");
    char text[64];
    assert_int_equal((unsigned char)out.p[1], 0x7f);
    (void)snprintf(text, sizeof text, "%s", answer());
    assert_string_equal(text, "7f 81 0: =Unknown command");
    send_all();
    expect_answer("0a 00 0: =");
}

static void what_cannot_be_is_closed(void **state)
{
    (void)state;
    write_key(NOOP, "");
    write_key(GET, "");
    send_all();
    expect_answer("0a 00 0: =");
    expect_answer("00 04 0: =Invalid arguments");
    assert_int_equal(step.verdict, NET_CLOSE);
    begin(NULL);
    write_key(NOOP, "");
    send_all();
    expect_answer("0a 00 0: =");
    feed("get id:a\r\n", 10); /* known or not: this connection is binary */
    expect_silence();
    assert_int_equal(step.verdict, NET_CLOSE);
    assert_int_equal(ISSUED, 0);
}

static void text_stays_text(void **state)
{
    (void)state;
    expect("get id:a\r\n", "VALUE id:a 0 11\r\n" ID0 "\r\nEND\r\n");
    expect("get id:a\r\n", "VALUE id:a 0 11\r\n" ID1 "\r\nEND\r\n");
    expect("\x80\r\n", "ERROR\r\n");
}

/* ---- SASL and the rest -------------------------------------------------------------------------
 */

static void sasl_takes_anybody_who_says_plain(void **state)
{
    (void)state;
    static const struct {
        unsigned opcode;
        const char *mechanism;
        struct span message;
        const char *want;
    } table[] = {
        {SASL_LIST, "", SPAN(""), "20 00 0: =PLAIN"},
        {SASL_AUTH, "PLAIN", SPAN("\0user\0secret"), "21 00 0: =Authenticated"},
        {SASL_AUTH, "PLAIN", SPAN("as\0user\0"), "21 00 0: =Authenticated"},
        {SASL_AUTH, "PLAIN", SPAN("user\0secret"), "21 20 0: =Auth failure."},
        {SASL_AUTH, "PLAIN", SPAN(""), "21 20 0: =Auth failure."},
        {SASL_AUTH, "CRAM-MD5", SPAN("\0u\0p"), "21 20 0: =Auth failure."},
        {SASL_STEP, "PLAIN", SPAN("\0u\0p"), "22 20 0: =Auth failure."},
    };
    static char large[MCB_VALUE_MAX + 1];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        write_with(table[i].opcode, span_str(table[i].mechanism), NONE, table[i].message, 0);
        send_all();
        expect_answer(table[i].want);
    }
    write_with(SASL_AUTH, SPAN("PLAIN"), NONE, span_of(large, sizeof large), 0);
    write_key(NOOP, "");
    send_all();
    expect_answer("21 20 0: =Auth failure.");
    expect_answer("0a 00 0: =");
}

static void the_rest_is_as_in_memcached(void **state)
{
    (void)state;
    write_key(VERSION, "");
    write_key(STAT, "sizes");
    write_key(STAT, "items");
    write_key(STAT, "reset");
    write_key(STAT, "detail on");
    write_key(STAT, "detail");
    write_key(STAT, "foo");
    write_key(STAT, "");
    send_all();
    expect_answer("0b 00 0: =" MCD_VERSION);
    expect_answer("10 00 0: sizes_status=disabled");
    expect_answer("10 00 0: =");
    expect_answer("10 00 0: =");
    expect_answer("10 00 0: =");
    expect_answer("10 00 0: =");
    expect_answer("10 01 0: =Not found");
    expect_answer("10 01 0: =Not found");
    unsigned rows = 0;
    while (strcmp(answer(), "10 00 0: =") != 0)
        rows++;
    assert_true(rows > 30);
    expect_silence();
}

static void quit_closes(void **state)
{
    (void)state;
    write_key(QUIT, "");
    write_key(NOOP, "");
    feed(sent, sent_n);
    assert_int_equal(step.verdict, NET_CLOSE);
    expect_answer("07 00 0: =");
    expect_silence();
    begin(NULL);
    sent_n = 0;
    write_key(QUITQ, "");
    send_all();
    assert_int_equal(step.verdict, NET_CLOSE);
    expect_silence();
}

/* ---- waiting and failing -----------------------------------------------------------------------
 */

static void no_id_is_temporary_and_never_a_miss(void **state)
{
    (void)state;
    take_worker_away();
    write_key(GETKQ, "id:a");
    write_key(GETQ, "x");
    write_delta(INCRQ, "id:a", 1, 0);
    write_key(NOOP, "");
    send_all();
    assert_int_equal(step.verdict, NET_WAIT);
    expect_silence();
    turn.waited_us = 100000;
    run();
    expect_answer("0d 86 0: =no workerId is held yet");
    expect_answer("15 86 0: =no workerId is held yet");
    expect_answer("0a 00 0: =");
    assert_int_equal(counted(MC_GET, SERVE_FAILED), 1);
    assert_int_equal(counted(MC_INCR, SERVE_FAILED), 1);
}

static void a_full_millisecond_queues(void **state)
{
    (void)state;
    write_delta(INCR, "id:a", 1023, 0);
    write_key(GETKQ, "id:a");
    write_key(GETKQ, "id:b");
    write_key(NOOP, "");
    send_all();
    assert_int_equal(step.verdict, NET_QUEUE);
    assert_non_null(strstr(answer(), "05 00 "));
    expect_answer("0d 00 33554440191: flags id:a=33554440191");
    expect_silence();
    fake_clock_step(&clock_, 1);
    turn.wall_ms = T0 + 1;
    run();
    expect_answer("0d 00 33587993600: flags id:b=33587993600");
    expect_answer("0a 00 0: =");
}

static void byte_by_byte_is_the_same_as_at_once(void **state)
{
    (void)state;
    write_key(GET, "id:a");
    write_key(GETKQ, "id:b");
    write_key(GETKQ, "x");
    write_with(SETQ, SPAN("id:a"), SPAN("12345678"), SPAN("\x80\0\0\0\0 some value"), 0);
    write_delta(INCR, "id:a", 5, 0);
    write_with(0x99, SPAN("k"), SPAN("e"), SPAN("vvv"), 0);
    write_with(SASL_AUTH, SPAN("PLAIN"), NONE, SPAN("\0u\0p"), 0);
    write_key(STAT, "sizes");
    write_key(NOOP, "");
    check_byte_by_byte(sent, sent_n);
    sent_n = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MC(reads_give_ids_with_their_cas),
        MC(a_miss_is_told_or_silence),
        MC(incr_gives_the_last_of_a_block),
        MC(a_number_is_eight_bytes),
        MC(writes_are_not_stored),
        MC(unknown_opcodes_are_told_and_passed_over),
        MC(what_cannot_be_is_closed),
        MC(text_stays_text),
        MC(sasl_takes_anybody_who_says_plain),
        MC(the_rest_is_as_in_memcached),
        MC(quit_closes),
        MC(no_id_is_temporary_and_never_a_miss),
        MC(a_full_millisecond_queues),
        MC(byte_by_byte_is_the_same_as_at_once),
    };
    return cmocka_run_group_tests_name("serve/memcached_binary", tests, NULL, NULL);
}
