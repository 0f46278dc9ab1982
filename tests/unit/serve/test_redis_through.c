/* Which requests may go on the connection to the upstream that clients share. */
#include "serve/redis/redis_through.h"

#include "unit/serve/redis_rig.h"

/* What resp_parse and rds_find make of the bytes, and whether they may be shared. */
static bool may_share(struct rig *r, struct span in)
{
    static struct resp_req req;
    size_t used;
    char mem[1024];
    struct buf out;
    buf_init(&out, mem, sizeof mem);
    assert_int_equal(resp_parse(in, &req, &used), WIRE_REQ);
    struct rds_call c = {.svc = (struct rds_service *)(void *)r->svc,
                         .ses = rig_session(r),
                         .req = &req,
                         .turn = &r->turn,
                         .out = &out,
                         .raw = {in.p, used}};
    (void)rds_find(&c);
    return rds_may_share(&c);
}

static struct span request(struct buf *b, struct span name, uint32_t argc)
{
    b->n = 0;
    resp_put_array(b, argc);
    resp_put_bulk(b, name);
    for (uint32_t i = 1; i < argc; i++)
        resp_put_bulk(b, SPAN("1"));
    return buf_span(b);
}

/* With as many args as it takes, and neither fewer nor more. */
static void commands_are_shared_by_their_mark(void **state)
{
    struct rig *r = *state;
    char mem[1024];
    struct buf b;
    size_t n;
    const struct resp_cmd *all = resp_commands(&n);
    buf_init(&b, mem, sizeof mem);
    for (size_t i = 0; i < n; i++) {
        struct span name = span_of(all[i].name, all[i].name_n);
        uint32_t least = (uint32_t)abs(all[i].arity);
        assert_int_equal(may_share(r, request(&b, name, least)), all[i].shared);
        assert_int_equal(may_share(r, request(&b, name, least + 1)),
                         all[i].shared && all[i].arity < 0);
        if (least > 1)
            assert_false(may_share(r, request(&b, name, least - 1)));
    }
}

static void what_is_odd_is_not_shared(void **state)
{
    static const struct span table[] = {
        SPAN("*2\r\n$3\r\nGET\r\n$1\r\na__"),
        SPAN("*2\r\n$3\r\nGETxx$1\r\na\r\n"),
        SPAN("*2\rx$3\r\nGET\r\n$1\r\na\r\n"),
        SPAN("*2\r\n$3\r\nGET\r\n$1\r\0a\r\n"),
        SPAN("GET a\r\n"),
        SPAN("*2\r\n$4\r\nGETS\r\n$1\r\na\r\n"),
        SPAN("*2\r\n$4\r\nGET\0\r\n$1\r\na\r\n"),
        SPAN("*1\r\n$0\r\n\r\n"),
    };
    assert_true(may_share(*state, SPAN("*2\r\n$3\r\nGET\r\n$1\r\na\r\n")));
    assert_true(may_share(*state, SPAN("*2\r\n$3\r\ngEt\r\n$3\r\n\0\r\n\r\n")));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_false(may_share(*state, table[i]));
}

/* A request larger than a connection's input, as far as it is there. */
static void what_is_not_whole_is_not_shared(void **state)
{
    static char in[WIRE_IN_MAX];
    static const char head[] = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100000\r\n";
    memset(in, 'x', sizeof in);
    memcpy(in, head, sizeof head - 1);
    assert_false(may_share(*state, span_of(in, sizeof in)));
}

/* A state that rds_forwards does not see would be a request on the wrong link. */
static void any_field_makes_it_other_than_plain(void **state)
{
    struct rds_there t = {.merge = NULL};
    uint8_t *bytes = (uint8_t *)&t;
    (void)state;
    assert_true(rds_is_plain(&t));
    for (size_t i = 0; i < offsetof(struct rds_there, zero); i++) {
        bytes[i] = 1;
        assert_false(rds_is_plain(&t));
        bytes[i] = 0;
    }
}

static int begin(void **state)
{
    *state = rig_new(NULL);
    return 0;
}

static int end(void **state)
{
    rig_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_are_shared_by_their_mark, begin, end),
        cmocka_unit_test_setup_teardown(what_is_odd_is_not_shared, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_whole_is_not_shared, begin, end),
        cmocka_unit_test(any_field_makes_it_other_than_plain),
    };
    return cmocka_run_group_tests_name("serve/redis_through", tests, NULL, NULL);
}
