/* On which link a memcached request goes, to a server which the test plays. */
#include "unit/serve/there_rig.h"

#define GET(odd, key) "\x80\0\0\1\0" odd "\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0" key
#define MISS          "\x81\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static void expect_bytes(int fd, struct span bytes)
{
    char got[256];
    assert_true(bytes.n <= sizeof got);
    assert_int_equal(recv(fd, got, bytes.n, MSG_WAITALL), bytes.n);
    assert_memory_equal(got, bytes.p, bytes.n);
}

/* A packet whose data type is none that was ever meant: the server may read it otherwise. */
static void an_odd_packet_is_not_shared(void **state)
{
    (void)state;
    start(serve_memcached_new(&rig->serve));
    int client = dial(&b), other = dial(&b);
    say_span(client, SPAN(GET("\0", "k")));
    int shared = accepted();
    expect_bytes(shared, SPAN(GET("\0", "k")));
    say_span(shared, SPAN(MISS));
    expect_bytes(client, SPAN(MISS));
    say_span(other, SPAN(GET("\7", "o")));
    int own = accepted();
    expect_bytes(own, SPAN(GET("\7", "o")));
    say_span(own, SPAN(MISS));
    expect_bytes(other, SPAN(MISS));
    (void)close(client);
    (void)close(other);
    (void)close(shared);
    (void)close(own);
}

/* What is stored may look like requests. */
static void a_value_that_nobody_takes_is_passed_over(void **state)
{
    enum {
        NOOPS = 4000,
        HEADER = 24,
        VALUE = NOOPS * HEADER,
        BODY = 8 + 1 + VALUE
    };
    static char request[HEADER + BODY + HEADER];
    static const char noop[HEADER] = "\x80\x0a";
    const char why[] = "upstream unavailable";
    char *at = request;
    char got[256];
    (void)state;
    start(serve_memcached_new(&rig->serve));
    (void)close(server);
    server = -1;
    at[0] = '\x80';
    at[1] = 1; /* SET */
    at[3] = 1; /* bytes of its key */
    at[4] = 8; /* of its extras */
    for (size_t i = 0; i < 4; i++)
        at[8 + i] = (char)((unsigned)BODY >> (24 - 8 * i));
    at += HEADER + 8;
    *at++ = 'k';
    for (size_t i = 0; i <= NOOPS; i++, at += HEADER) /* the last one is a request */
        memcpy(at, noop, HEADER);
    assert_ptr_equal(at, request + sizeof request);
    int client = dial(&b);
    say_span(client, span_of(request, sizeof request));
    assert_int_equal(recv(client, got, HEADER + sizeof why - 1, MSG_WAITALL),
                     HEADER + sizeof why - 1);
    assert_memory_equal(got, "\x81\x01", 2);
    assert_memory_equal(got + HEADER, why, sizeof why - 1);
    assert_int_equal(recv(client, got, HEADER, MSG_WAITALL), HEADER);
    assert_memory_equal(got, "\x81\x0a", 2);
    expect_silence(client, 50);
    (void)close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_odd_packet_is_not_shared, begin, end),
        cmocka_unit_test_setup_teardown(a_value_that_nobody_takes_is_passed_over, begin, end),
    };
    return cmocka_run_group_tests_name("serve/memcached_through", tests, NULL, NULL);
}
