#include "wire/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_reply(const struct buf *b, const char *expected)
{
    assert_false(b->failed);
    assert_int_equal(b->n, strlen(expected));
    assert_memory_equal(b->p, expected, b->n);
}

static void put_by_proto(struct buf *b, int proto)
{
    resp_put_null(b, proto);
    resp_put_null_array(b, proto);
    resp_put_map(b, proto, 7);
    resp_put_set(b, proto, 2);
    resp_put_push(b, proto, 3);
    resp_put_verbatim(b, proto, SPAN("abc"));
}

static void replies_by_protocol(void **state)
{
    (void)state;
    char mem[512];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    put_by_proto(&b, 2);
    check_reply(&b, "$-1\r\n*-1\r\n*14\r\n*2\r\n*3\r\n$3\r\nabc\r\n");
    buf_init(&b, mem, sizeof mem);
    put_by_proto(&b, 3);
    check_reply(&b, "_\r\n_\r\n%7\r\n~2\r\n>3\r\n=7\r\ntxt:abc\r\n");
}

static void replies(void **state)
{
    (void)state;
    char mem[512];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    resp_put_simple(&b, SPAN("OK"));
    resp_put_error(&b, SPAN("ERR a\r\nb"));
    resp_put_integer(&b, INT64_MIN);
    resp_put_integer(&b, INT64_MAX);
    resp_put_integer(&b, -1);
    resp_put_integer(&b, 0);
    resp_put_bulk(&b, SPAN(""));
    resp_put_bulk(&b, SPAN("a\r\nb"));
    resp_put_bulk_u64(&b, UINT64_MAX);
    resp_put_bulk_u64(&b, UINT64_C(123456789));
    resp_put_array(&b, 1024);
    resp_put_wrong_arity(&b, resp_lookup(SPAN("GET")));
    check_reply(&b, "+OK\r\n-ERR a  b\r\n:-9223372036854775808\r\n"
                    ":9223372036854775807\r\n:-1\r\n:0\r\n$0\r\n\r\n$4\r\na\r\nb\r\n"
                    "$20\r\n18446744073709551615\r\n$9\r\n123456789\r\n*1024\r\n"
                    "-ERR wrong number of arguments for 'get' command\r\n");
    buf_init(&b, mem, 3);
    resp_put_bulk_u64(&b, 7);
    assert_true(b.failed && b.n == 0);
}

static void unknown_command(void **state)
{
    (void)state;
    static struct resp_req req;
    char mem[1024], in[600];
    size_t used;
    struct buf b;
    const char words[] = "foo a \"b\\r\\n\" \"c\\x00d\"\r\n";
    buf_init(&b, mem, sizeof mem);
    assert_int_equal(resp_parse(span_str(words), &req, &used), WIRE_REQ);
    resp_put_unknown(&b, &req);
    check_reply(&b, "-ERR unknown command 'foo', with args beginning with: 'a' 'b  ' 'c' \r\n");

    /* 128 bytes of the name; args until 128 bytes of them are written, the last one cut. */
    memset(in, 'x', 200);
    snprintf(in + 200, sizeof in - 200, " %0100d %0100d c\r\n", 1, 2);
    assert_int_equal(resp_parse(span_str(in), &req, &used), WIRE_REQ);
    buf_init(&b, mem, sizeof mem);
    resp_put_unknown(&b, &req);
    char expected[600];
    snprintf(expected, sizeof expected,
             "-ERR unknown command '%.128s', with args beginning with: '%0100d' '%.25s' \r\n", in,
             1, "0000000000000000000000000000");
    check_reply(&b, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_by_protocol),
        cmocka_unit_test(replies),
        cmocka_unit_test(unknown_command),
    };
    return cmocka_run_group_tests_name("wire/resp_reply", tests, NULL, NULL);
}
