#include "net/addr.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void addresses_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        unsigned port;
        bool is_unix;
    } cases[] = {
        {"tcp://127.0.0.1:11212", "127.0.0.1", 11212, false},
        {"tcp://localhost:0", "localhost", 0, false},
        {"tcp://[::1]:65535", "::1", 65535, false},
        {"tcp://[::]:1", "::", 1, false},
        {"tcp://a-b.example:080", "a-b.example", 80, false},
        {"unix:///run/sidflake.sock", "/run/sidflake.sock", 0, true},
        {"unix:/run/sidflake.sock", "/run/sidflake.sock", 0, true},
        {"unix:relative.sock", "relative.sock", 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct addr a;
        struct err e;
        assert_int_equal(addr_parse(span_str(cases[i].text), &a, &e), ERR_OK);
        assert_string_equal(a.host, cases[i].host);
        assert_int_equal(a.port, cases[i].port);
        assert_int_equal(a.is_unix, cases[i].is_unix);
    }
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",           "127.0.0.1:80", "tcp://",           "tcp://host",  "tcp://host:",
        "tcp://:80",  "tcp://host:x", "tcp://host:65536", "tcp://h:-1",  "tcp://h: 80",
        "tcp://h:+1", "tcp://::1:80", "tcp://[]:80",      "unix://",     "unix://host/path",
        "unix:",      "http://h:80",  "TCP://h:80",       "tcp://h:80/", "udp://h:80",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct addr a;
        struct err e = {.text = ""};
        if (addr_parse(span_str(cases[i]), &a, &e) != ERR_INVALID)
            fail_msg("\"%s\" was taken for an address", cases[i]);
        assert_non_null(strstr(e.text, "expected"));
        assert_non_null(strstr(e.text, "found"));
    }
}

static void lengths_are_bounded(void **state)
{
    (void)state;
    char text[600];
    struct addr a;
    struct err e;
    const size_t path_max = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    memset(text, 'a', sizeof text);
    memcpy(text, "unix:///", 8);
    assert_int_equal(addr_parse(span_of(text, 7 + path_max), &a, &e), ERR_OK);
    assert_int_equal(strlen(a.host), path_max);
    assert_int_equal(addr_parse(span_of(text, 8 + path_max), &a, &e), ERR_INVALID);
    memset(text, 'a', sizeof text);
    memcpy(text, "tcp://", 6);
    memcpy(text + 6 + 255, ":80", 3);
    assert_int_equal(addr_parse(span_of(text, 6 + 255 + 3), &a, &e), ERR_OK);
    text[6 + 255] = 'a';
    memcpy(text + 6 + 256, ":80", 3);
    assert_int_equal(addr_parse(span_of(text, 6 + 256 + 3), &a, &e), ERR_INVALID);
    assert_int_equal(addr_parse(span_of("unix:///a\0b", 11), &a, &e), ERR_INVALID);
    assert_int_equal(addr_parse(span_of("tcp://a\0b:80", 12), &a, &e), ERR_INVALID);
    assert_int_equal(addr_parse(span_of(NULL, 0), &a, &e), ERR_INVALID);
}

static void a_sockets_address_is_written_as_it_is_read(void **state)
{
    (void)state;
    char text[ADDR_TEXT_MAX];
    struct addr a;
    struct err e;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(addr_parse(span_str(addr_of_socket(text, fd)), &a, &e), ERR_OK);
    assert_string_equal(a.host, "127.0.0.1");
    assert_true(a.port > 0);
    (void)close(fd);
    assert_string_equal(addr_of_socket(text, fd), "?");

    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)memset(un.sun_path, 'p', sizeof un.sun_path - 1);
    memcpy(un.sun_path, "/tmp/", 5);
    (void)unlink(un.sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(addr_parse(span_str(addr_of_socket(text, fd)), &a, &e), ERR_OK);
    assert_string_equal(a.host, un.sun_path);
    (void)close(fd);
    (void)unlink(un.sun_path);
}

static void a_refused_connection_is_told(void **state)
{
    (void)state;
    struct addr a;
    struct err e;
    int fd = 7;
    assert_int_equal(addr_parse(SPAN("tcp://127.0.0.1:1"), &a, &e), ERR_OK);
    assert_int_equal(addr_connect(&a, 1000000, &fd, &e), ERR_IO);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(e.text, "127.0.0.1 port 1: Connection refused"));
    assert_int_equal(addr_parse(SPAN("unix:///nowhere/at/all"), &a, &e), ERR_OK);
    assert_int_equal(addr_connect(&a, 1000000, &fd, &e), ERR_IO);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(e.text, "/nowhere/at/all: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(a_sockets_address_is_written_as_it_is_read),
        cmocka_unit_test(a_refused_connection_is_told),
    };
    return cmocka_run_group_tests_name("net/addr", tests, NULL, NULL);
}
