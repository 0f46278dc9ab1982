/* Who is at the other end of a connection. */
#include "net/private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Of a connection from address `from`, both in digits of 127.0.0.0/8. */
static struct net_peer peer_from(const char *from)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t n = sizeof to;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&to, n), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&to, &n), 0);
    assert_int_equal(inet_pton(AF_INET, from, &in.sin_addr), 1);
    assert_int_equal(bind(client, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof to), 0);
    struct conn c = {.rd.fd = accept(server, NULL, NULL)};
    struct net_turn turn = {.conn = &c};
    struct net_peer peer;
    assert_true(c.rd.fd >= 0);
    net_peer(&turn, &peer);
    (void)close(c.rd.fd);
    (void)close(client);
    (void)close(server);
    return peer;
}

static void all_of_loopback_is_one(void **state)
{
    (void)state;
    struct net_peer usual = peer_from("127.0.0.1"), other = peer_from("127.9.8.7");
    assert_memory_equal(usual.id, other.id, sizeof usual.id);
    assert_int_equal(usual.id[0], AF_INET);
    assert_int_equal(strncmp(other.text, "127.9.8.7:", 10), 0);
}

/* Whoever has a /64 has all addresses in it. */
static void of_ipv6_the_first_half_is_who_it_is(void **state)
{
    (void)state;
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t n = sizeof to;
    int server = socket(AF_INET6, SOCK_STREAM, 0), client = socket(AF_INET6, SOCK_STREAM, 0);
    if (server < 0 || bind(server, (struct sockaddr *)&to, n) < 0)
        skip(); /* there is none here */
    struct net_peer peer;
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&to, &n), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof to), 0);
    int accepted = accept(server, NULL, NULL);
    peer_of(accepted, &peer);
    assert_true(peer.id[0] == AF_INET6 && peer.id[1] == 0);
    assert_int_equal(strncmp(peer.text, "[::1]:", 6), 0);
    (void)close(accepted);
    (void)close(client);
    (void)close(server);
}

static struct net_peer peer_of_pair(void)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    struct conn c = {.rd.fd = fd[0]};
    struct net_turn turn = {.conn = &c};
    struct net_peer peer;
    net_peer(&turn, &peer);
    (void)close(fd[0]);
    (void)close(fd[1]);
    return peer;
}

static void a_process_is_one_of_its_own(void **state)
{
    (void)state;
    struct net_peer peer = peer_of_pair();
    assert_true(peer.id[0] == ((uint64_t)AF_UNIX << 32 | getuid()));
    assert_true(peer.id[1] == (uint64_t)getpid());
}

static void nobody_is_known_without_a_connection(void **state)
{
    (void)state;
    struct net_turn turn = {.conn = NULL};
    struct net_peer peer;
    net_peer(&turn, &peer);
    assert_string_equal(peer.text, "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_loopback_is_one),
        cmocka_unit_test(of_ipv6_the_first_half_is_who_it_is),
        cmocka_unit_test(a_process_is_one_of_its_own),
        cmocka_unit_test(nobody_is_known_without_a_connection),
    };
    return cmocka_run_group_tests_name("net/peer", tests, NULL, NULL);
}
