/* Sessions that go from one program to the next. */
#include "unit/serve/memcached_rig.h"

/* The session in another connection, of a program with or without an upstream. */
static void carry(bool upstream)
{
    static char mem[8192];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    assert_true(svc->pack(svc, session, &b));
    assert_false(b.failed);
    svc->close(svc, session);
    free(session);
    session = calloc(1, svc->session_size);
    assert_non_null(session);
    /* that it is there is all that is asked */
    svc->upstream = upstream ? (struct upstream *)(void *)svc : NULL;
    assert_true(svc->unpack(svc, session, buf_span(&b)));
}

static uint8_t state_of_session(void)
{
    return ((const struct mcd_session *)session)->state;
}

static void become(enum mcd_state state)
{
    svc->close(svc, session);
    free(session);
    session = calloc(1, svc->session_size);
    assert_non_null(session);
    ((struct mcd_session *)session)->state = (uint8_t)state;
}

/* Of a program that packs more than is known here, nothing is known. */
static void what_has_more_behind_it_is_refused(void **state)
{
    (void)state;
    static char mem[8192];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    become(MCD_TEXT);
    assert_true(svc->pack(svc, session, &b));
    buf_put_char(&b, '\0');
    become(MCD_NEW);
    assert_false(svc->unpack(svc, session, buf_span(&b)));
}

/* Its first byte decided it: 0x80 later on is a bad command, and a letter a bad magic. Whether
 * there is a server behind may have changed. */
static void the_protocol_goes_over(void **state)
{
    (void)state;
    static const struct {
        enum mcd_state was, with, without;
    } all[] = {
        {MCD_NEW, MCD_NEW, MCD_NEW},
        {MCD_TEXT, MCD_THROUGH, MCD_TEXT},
        {MCD_BINARY, MCD_BINARY_THROUGH, MCD_BINARY},
        {MCD_THROUGH, MCD_THROUGH, MCD_TEXT},
        {MCD_BINARY_THROUGH, MCD_BINARY_THROUGH, MCD_BINARY},
        {MCD_SWALLOW, MCD_SWALLOW, MCD_SWALLOW},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        become(all[i].was);
        carry(true);
        assert_int_equal(state_of_session(), all[i].with);
        bool binary = all[i].with == MCD_BINARY_THROUGH;
        assert_int_equal(svc->speaks(session), binary ? UPSTREAM_BINARY : UPSTREAM_TEXT);
        become(all[i].was);
        carry(false);
        assert_int_equal(state_of_session(), all[i].without);
    }
    become(MCD_THROUGH);
    carry(false);
    expect("get id:x\r\n", "VALUE id:x 0 11\r\n" ID0 "\r\nEND\r\n");
}

/* A get of IDs and others that waits for the next millisecond with a part of its reply written. */
static void a_reply_ends_where_it_was_begun(void **state)
{
    (void)state;
    expect("incr id:a 1023\r\n", "33554440190\r\n");
    feed("get id:a k id:b\r\n", 17);
    assert_int_equal(step.verdict, NET_QUEUE);
    check_output("the first part", "VALUE id:a 0 11\r\n33554440191\r\n");
    carry(true);
    fake_clock_step(&clock_, 1);
    turn.wall_ms = T0 + 1;
    run();
    check_output("the rest", "VALUE id:b 0 11\r\n33587993600\r\nEND\r\n");
}

/* Whatever the program before says, it is a place within the request. */
static void a_place_behind_the_request_is_its_end(void **state)
{
    (void)state;
    ((struct mcd_session *)session)->done = 1000;
    carry(false);
    expect("get id:a\r\n", "END\r\n");
    expect("get id:a\r\n", "VALUE id:a 0 11\r\n" ID0 "\r\nEND\r\n");
}

/* It is refused when its last byte has come, wherever that is. Whether a server is there by then is
 * no matter. */
static void a_binary_value_that_is_passed_over_goes_over(void **state)
{
    (void)state;
    static const char set[] = "\x80\x01\0\1\x08\0\0\0\0\0\0\x0d"
                              "abcd\0\0\0\0\0\0\0\0"
                              "flagsexpkva"; /* two bytes are to come */
    feed(set, sizeof set - 1);
    assert_int_equal(step.verdict, NET_MORE);
    assert_int_equal(input_n, 0);
    carry(true);
    assert_int_equal(state_of_session(), MCD_BINARY_THROUGH);
    carry(true);
    feed("l", 1);
    assert_int_equal(out.n, 0);
    carry(false);
    assert_int_equal(state_of_session(), MCD_BINARY);
    carry(true);
    feed("u", 1);
    assert_true(out.n > 24 && out.n == 24 + (size_t)output[11]);
    assert_memory_equal(output, "\x81\x01", 2);
    assert_true(output[6] || output[7]); /* an error */
    assert_memory_equal(output + 12, "abcd", 4);
}

/* Its block is passed over, by the program before in part. */
static void who_wants_no_reply_has_none(void **state)
{
    (void)state;
    const char set[] = "set k 0 0 5 noreply\r\nab";
    feed(set, sizeof set - 1);
    assert_int_equal(state_of_session(), MCD_SWALLOW);
    carry(false);
    expect("cde\r\nmn\r\n", "MN\r\n");
}

/* Who wants one has it, when all of the block has come. */
static void who_waits_for_an_answer_has_it(void **state)
{
    (void)state;
    char want[256];
    feed("add k 0 0 5\r\nabcde\r\n", 20);
    assert_true(out.n > 0 && out.n < sizeof want);
    memcpy(want, output, out.n);
    want[out.n] = '\0';
    forget_output();
    feed("add k 0 0 5\r\nab", 15);
    carry(false);
    carry(true);
    expect("cde\r\n", want);
    assert_int_equal(state_of_session(), MCD_THROUGH);
}

/* Words of a parcel, from its start. */
enum head {
    VERSION,
    DONE,
    STATE,
    BAD = 4,
    NOREPLY,
    PASSING,
    VERB,
    RESULT,
    OPCODE,
    ERROR,
    OPAQUE_N,
    OPAQUE,
};

static bool is_taken(struct span parcel)
{
    become(MCD_NEW);
    return svc->unpack(svc, session, parcel);
}

/* What would be counted where nothing is, or is in the middle of what is not carried. */
static void numbers_that_cannot_be_are_refused(void **state)
{
    static const struct {
        enum head which;
        uint64_t v;
        bool ok;
    } all[] = {
        {VERSION, 0, false},
        {VERSION, 1, true},
        {VERSION, 2, true},
        {VERSION, 3, false},
        {DONE, NET_IN_MAX, true},
        {DONE, NET_IN_MAX + 1, false},
        {STATE, MCD_STREAM, false},
        {STATE, MCD_LONG, false},
        {STATE, MCD_DISCARD, false},
        {STATE, UINT8_MAX + 1, false},
        {BAD, 2, false},
        {NOREPLY, 2, false},
        {PASSING, 2, false},
        {VERB, MC_VERB_COUNT - 1, true},
        {VERB, MC_VERB_COUNT, false},
        {RESULT, SERVE_RESULTS - 1, true},
        {RESULT, SERVE_RESULTS, false},
        {OPCODE, UINT8_MAX + 1, false},
        {ERROR, UINT8_MAX + 1, false},
    };
    static char mem[8192];
    struct buf b;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        become(MCD_TEXT);
        buf_init(&b, mem, sizeof mem);
        assert_true(svc->pack(svc, session, &b));
        memcpy(mem + all[i].which * sizeof all[i].v, &all[i].v, sizeof all[i].v);
        if (is_taken(buf_span(&b)) != all[i].ok)
            fail_msg("number %zu", i);
    }
}

/* An opaque of another size, and an answer that is longer than any. */
static void bytes_that_cannot_be_are_refused(void **state)
{
    static char mem[8192], answer[2049];
    struct mcd_session *s = session;
    uint64_t n = sizeof s->opaque + 1;
    char *at = mem + OPAQUE_N * sizeof n;
    struct buf b;
    (void)state;
    buf_init(&b, mem, sizeof mem);
    assert_true(svc->pack(svc, session, &b));
    memcpy(at, &n, sizeof n);
    at = mem + OPAQUE * sizeof n;
    memmove(at + 1, at, b.n - (size_t)(at - mem));
    assert_false(is_taken(span_of(mem, b.n + 1)));
    for (size_t more = 0; more < 2; more++) {
        become(MCD_SWALLOW);
        s = session;
        s->answer = span_of(answer, sizeof answer - 1 + more);
        buf_init(&b, mem, sizeof mem);
        assert_true(svc->pack(svc, session, &b));
        assert_true(is_taken(buf_span(&b)) == !more);
    }
    become(MCD_NEW);
}

static void what_is_being_forwarded_does_not(void **state)
{
    (void)state;
    const enum mcd_state all[] = {MCD_STREAM, MCD_LONG, MCD_BINARY_STREAM, MCD_DISCARD};
    char mem[8192];
    struct buf b;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        become(all[i]);
        buf_init(&b, mem, sizeof mem);
        assert_false(svc->pack(svc, session, &b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MC(what_has_more_behind_it_is_refused),
        MC(the_protocol_goes_over),
        MC(a_reply_ends_where_it_was_begun),
        MC(a_place_behind_the_request_is_its_end),
        MC(a_binary_value_that_is_passed_over_goes_over),
        MC(who_wants_no_reply_has_none),
        MC(who_waits_for_an_answer_has_it),
        MC(numbers_that_cannot_be_are_refused),
        MC(bytes_that_cannot_be_are_refused),
        MC(what_is_being_forwarded_does_not),
    };
    return cmocka_run_group_tests_name("serve/memcached_carry", tests, NULL, NULL);
}
