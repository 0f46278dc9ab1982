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
    free(session);
    session = calloc(1, svc->session_size);
    assert_non_null(session);
    ((struct mcd_session *)session)->state = (uint8_t)state;
}

/* Its first byte decided it: 0x80 later on is a bad command, and a letter a bad magic. */
static void the_protocol_goes_over(void **state)
{
    (void)state;
    const enum mcd_state all[] = {MCD_NEW, MCD_TEXT, MCD_BINARY, MCD_THROUGH, MCD_BINARY_THROUGH};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        become(all[i]);
        carry(true);
        assert_int_equal(state_of_session(), all[i]);
    }
    become(MCD_THROUGH);
    carry(false);
    assert_int_equal(state_of_session(), MCD_TEXT);
    expect("get id:x\r\n", "VALUE id:x 0 11\r\n" ID0 "\r\nEND\r\n");
    become(MCD_BINARY_THROUGH);
    carry(false);
    assert_int_equal(state_of_session(), MCD_BINARY);
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
        MC(the_protocol_goes_over),
        MC(what_is_being_forwarded_does_not),
    };
    return cmocka_run_group_tests_name("serve/memcached_carry", tests, NULL, NULL);
}
