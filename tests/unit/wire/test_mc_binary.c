/* The binary protocol, as mcb_parse reads it, and its answers byte for byte. */
#include "wire/mc_binary.h"

#include "support/wirefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define OPAQUE "\xde\xad\xbe\xef"
#define CAS0   "\0\0\0\0\0\0\0\0"
/* opcode, two bytes of key length, extras length, four bytes of body length */
#define HEAD(opcode, key, ext, body) "\x80" opcode key ext "\0\0\0" body OPAQUE CAS0
#define NO2                          "\0\0"

static void check(struct span in, const char *expected)
{
    static struct wirefeed_log log;
    wirefeed_check(WIREFEED_MEMCACHED_BINARY, in, 1, &log);
    assert_string_equal(log.text, expected);
}

#define CHECK(in, log) check(SPAN(in), (log))

#define REQ(verb, rest) "REQ " verb " " rest " opaque=\\xde\\xad\\xbe\\xef\n"
#define CLOSE(error)    "CLOSE error=" error " opaque=\\xde\\xad\\xbe\\xef\n"

static void reads(void **state)
{
    (void)state;
    CHECK(HEAD("\x00", "\0\4", "\0", "\0\0\0\4") "id:a", REQ("get", "opcode=0 key=id:a"));
    CHECK(HEAD("\x09", "\0\1", "\0", "\0\0\0\1") "k" HEAD("\x0a", NO2, "\0", "\0\0\0\0"),
          REQ("get", "opcode=9 key=k quiet") REQ("noop", "opcode=10"));
    CHECK(HEAD("\x0c", "\0\1", "\0", "\0\0\0\1") "k", REQ("get", "opcode=12 key=k with_key"));
    CHECK(HEAD("\x0d", "\0\1", "\0", "\0\0\0\1") "\n",
          REQ("get", "opcode=13 key=\\x0a quiet with_key"));
    CHECK(HEAD("\x1d", "\0\1", "\4", "\0\0\0\5") "1234k", REQ("gat", "opcode=29 key=k"));
    CHECK(HEAD("\x24", "\0\1", "\4", "\0\0\0\5") "1234k",
          REQ("gat", "opcode=36 key=k quiet with_key"));
    CHECK(HEAD("\x1c", "\0\1", "\4", "\0\0\0\5") "1234k", REQ("touch", "opcode=28 key=k"));
    CHECK(HEAD("\x10", NO2, "\0", "\0\0\0\0"), REQ("stats", "opcode=16"));
    CHECK(HEAD("\x10", "\0\5", "\0", "\0\0\0\5") "items", REQ("stats", "opcode=16 key=items"));
    CHECK(HEAD("\x0b", NO2, "\0", "\0\0\0\0"), REQ("version", "opcode=11"));
    CHECK(HEAD("\x17", NO2, "\0", "\0\0\0\0"), REQ("quit", "opcode=23 quiet"));
    CHECK(HEAD("\x00", "\0\4", "\0", "\0\0\0\4") "id:", "LEFT bytes=27\n");
}

static void writes(void **state)
{
    (void)state;
    CHECK(HEAD("\x05", "\0\1", "\x14", "\0\0\0\x15") "\0\0\0\0\0\0\1\2"
                                                     "\0\0\0\0\0\0\0\0"
                                                     "\0\0\0\7"
                                                     "k",
          REQ("incr", "opcode=5 key=k delta=258 expiration=7"));
    CHECK("\x80\x11\0\1\x08\0\0\0\0\0\0\x0c" OPAQUE "\1\2\0\0\0\0\0\3"
          "eeeeeeeekabc" HEAD("\x0a", NO2, "\0", "\0\0\0\0"),
          REQ("set", "opcode=17 key=k quiet cas=72620543991349251 body=3")
              REQ("noop", "opcode=10"));
    CHECK(HEAD("\x0e", "\0\1", "\0", "\0\0\0\1") "k", REQ("append", "opcode=14 key=k"));
    CHECK(HEAD("\x08", NO2, "\0", "\0\0\0\0") HEAD("\x18", NO2, "\4", "\0\0\0\4") "1234",
          REQ("flush_all", "opcode=8") REQ("flush_all", "opcode=24 quiet"));
    CHECK(HEAD("\x01", "\0\1", "\x08", "\x7f\xff\xff\xff") "eeeeeeeek",
          REQ("set", "opcode=1 key=k body=2147483638"));
    CHECK(HEAD("\x7f", "\0\1", "\2", "\0\0\0\6") "eekabc" HEAD("\xff", NO2, "\0", "\0\0\0\2") "xy",
          REQ("unknown", "opcode=127 key=k body=3") REQ("unknown", "opcode=255 body=2"));
}

static void sasl(void **state)
{
    (void)state;
    static char large[MCB_HEADER + 1 + MCB_VALUE_MAX + 1] =
        HEAD("\x21", "\0\1", "\0", "\0\0\4\1") "P";
    CHECK(HEAD("\x20", NO2, "\0", "\0\0\0\0"), REQ("sasl", "opcode=32"));
    CHECK(HEAD("\x21", "\0\5", "\0", "\0\0\0\x09") "PLAIN\0u\0p",
          REQ("sasl", "opcode=33 key=PLAIN value=\\x00u\\x00p"));
    CHECK(HEAD("\x22", "\0\5", "\0", "\0\0\0\5") "PLAIN", REQ("sasl", "opcode=34 key=PLAIN"));
    struct mcb_req req;
    size_t used;
    assert_int_equal(mcb_parse(span_of(large, sizeof large - 2), &req, &used), WIRE_MORE);
    assert_int_equal(mcb_parse(span_of(large, sizeof large - 1), &req, &used), WIRE_REQ);
    assert_int_equal(req.value.n, MCB_VALUE_MAX);
    assert_int_equal(req.body, 0);
    large[11] = 2;
    assert_int_equal(mcb_parse(span_of(large, sizeof large), &req, &used), WIRE_REQ);
    assert_int_equal(req.value.n, 0);
    assert_int_equal(req.body, MCB_VALUE_MAX + 1);
}

static void what_cannot_be_is_closed(void **state)
{
    (void)state;
    CHECK("get id:a\r\n", "CLOSE\n");
    CHECK("\x81", "CLOSE\n");
    CHECK(HEAD("\x0a", NO2, "\0", "\0\0\0\0") "x", REQ("noop", "opcode=10") "CLOSE\n");
    CHECK(HEAD("\x00", "\0\5", "\0", "\0\0\0\4") "id:a", CLOSE("129"));
    CHECK(HEAD("\x7f", "\0\4", "\1", "\0\0\0\4") "id:a", CLOSE("129"));
    CHECK(HEAD("\x00", "\0\xfb", "\0", "\0\0\0\xfb") "k", CLOSE("4"));
    CHECK(HEAD("\x7f", "\0\xfb", "\0", "\0\0\0\xfb") "k", CLOSE("4"));
    CHECK(HEAD("\x00", NO2, "\0", "\0\0\0\0"), CLOSE("4"));
    CHECK(HEAD("\x00", "\0\1", "\0", "\0\0\0\2") "kv", CLOSE("4"));
    CHECK(HEAD("\x00", "\0\1", "\1", "\0\0\0\2") "ek", CLOSE("4"));
    CHECK(HEAD("\x1d", "\0\1", "\0", "\0\0\0\1") "k", CLOSE("4"));
    CHECK(HEAD("\x05", "\0\1", "\0", "\0\0\0\1") "k", CLOSE("4"));
    CHECK(HEAD("\x01", "\0\1", "\0", "\0\0\0\1") "k", CLOSE("4"));
    CHECK(HEAD("\x0a", "\0\1", "\0", "\0\0\0\1") "k", CLOSE("4"));
    CHECK(HEAD("\x0b", NO2, "\0", "\0\0\0\1") "v", CLOSE("4"));
    CHECK(HEAD("\x08", NO2, "\2", "\0\0\0\2") "ee", CLOSE("4"));
    CHECK(HEAD("\x10", NO2, "\4", "\0\0\0\4") "eeee", CLOSE("4"));
    CHECK(HEAD("\x21", NO2, "\0", "\0\0\0\0"), CLOSE("4"));
    CHECK(HEAD("\x01", "\0\1", "\x08", "\x80\0\0\0") "eeeeeeeek", CLOSE("4"));
    CHECK(HEAD("\xdf", NO2, "\0", "\xff\xff\xff\xff"), CLOSE("4"));
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static char mem[400];
static struct buf out;

static struct mcb_req request(struct span bytes)
{
    struct mcb_req req;
    size_t used;
    assert_int_equal(mcb_parse(bytes, &req, &used), WIRE_REQ);
    buf_init(&out, mem, sizeof mem);
    return req;
}

static void check_out(struct span want)
{
    assert_false(out.failed);
    assert_int_equal(out.n, want.n);
    assert_memory_equal(out.p, want.p, want.n);
}

static void answers(void **state)
{
    (void)state;
    const struct span none = {"", 0};
    struct mcb_req req = request(SPAN(HEAD("\x00", "\0\1", "\0", "\0\0\0\1") "k"));
    mcb_put_item(&out, &req, SPAN("123"), 123);
    check_out(SPAN("\x81\0\0\0\4\0\0\0\0\0\0\7" OPAQUE "\0\0\0\0\0\0\0\x7b"
                   "\0\0\0\0"
                   "123"));
    req = request(SPAN(HEAD("\x0d", "\0\1", "\0", "\0\0\0\1") "k"));
    mcb_put_item(&out, &req, SPAN("123"), 1);
    check_out(SPAN("\x81\x0d\0\1\4\0\0\0\0\0\0\x08" OPAQUE "\0\0\0\0\0\0\0\1"
                   "\0\0\0\0"
                   "k123"));
    req = request(SPAN(HEAD("\x0c", "\0\1", "\0", "\0\0\0\1") "k"));
    mcb_put_error(&out, &req, MCB_NOT_FOUND);
    check_out(SPAN("\x81\x0c\0\1\0\0\0\1\0\0\0\1" OPAQUE CAS0 "k"));
    req = request(SPAN(HEAD("\x05", "\0\1", "\x14", "\0\0\0\x15") "eeeeeeeeeeeeeeeeeeeek"));
    mcb_put_number(&out, &req, 0x0102030405060708, 9);
    check_out(SPAN("\x81\5\0\0\0\0\0\0\0\0\0\x08" OPAQUE "\0\0\0\0\0\0\0\x09"
                   "\1\2\3\4\5\6\7\x08"));
    req = request(SPAN(HEAD("\x10", NO2, "\0", "\0\0\0\0")));
    mcb_put(&out, &req, MCB_OK, SPAN("name"), SPAN("v"), 0);
    mcb_put(&out, &req, MCB_OK, none, none, 0);
    check_out(SPAN("\x81\x10\0\4\0\0\0\0\0\0\0\5" OPAQUE CAS0 "namev"
                   "\x81\x10\0\0\0\0\0\0\0\0\0\0" OPAQUE CAS0));
}

static void errors_have_memcacheds_texts(void **state)
{
    (void)state;
    static const struct {
        enum mcb_status status;
        const char *text;
    } table[] = {
        {MCB_NOT_FOUND, "Not found"},     {MCB_INVALID, "Invalid arguments"},
        {MCB_NOT_STORED, "Not stored."},  {MCB_AUTH_ERROR, "Auth failure."},
        {MCB_UNKNOWN, "Unknown command"}, {MCB_TEMPORARY, "Temporary failure"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct mcb_req req = request(SPAN(HEAD("\x00", "\0\1", "\0", "\0\0\0\1") "k"));
        mcb_put_error(&out, &req, table[i].status);
        assert_int_equal(out.n, MCB_HEADER + strlen(table[i].text));
        assert_memory_equal(out.p + MCB_HEADER, table[i].text, strlen(table[i].text));
        assert_int_equal((unsigned char)out.p[7], table[i].status);
    }
}

static void an_answer_without_room_fails(void **state)
{
    (void)state;
    struct mcb_req req = request(SPAN(HEAD("\x00", "\0\1", "\0", "\0\0\0\1") "k"));
    buf_init(&out, mem, MCB_HEADER + 4 + 2);
    mcb_put_item(&out, &req, SPAN("123"), 1);
    assert_true(out.failed);
    assert_int_equal(out.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(writes),
        cmocka_unit_test(sasl),
        cmocka_unit_test(what_cannot_be_is_closed),
        cmocka_unit_test(answers),
        cmocka_unit_test(errors_have_memcacheds_texts),
        cmocka_unit_test(an_answer_without_room_fails),
    };
    return cmocka_run_group_tests_name("wire/mc_binary", tests, NULL, NULL);
}
