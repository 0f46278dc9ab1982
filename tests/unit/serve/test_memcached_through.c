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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_odd_packet_is_not_shared, begin, end),
    };
    return cmocka_run_group_tests_name("serve/memcached_through", tests, NULL, NULL);
}
