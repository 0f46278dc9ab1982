#include "base/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void hosts_and_ports_are_read(void **state)
{
    static const struct {
        const char *text, *host;
        bool bracketed, has_port;
        unsigned port;
    } cases[] = {
        {"h", "h", false, false, 0},          {"h:0", "h", false, true, 0},
        {"h:65535", "h", false, true, 65535}, {"h:00080", "h", false, true, 80},
        {"[::1]", "::1", true, false, 0},     {"[::1]:1", "::1", true, true, 1},
        {"[h]:1", "h", true, true, 1},        {"fe80%eth0:1", "fe80%eth0", false, true, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint p;
        assert_int_equal(endpoint_read_host(span_str(cases[i].text), &p), ENDPOINT_OK);
        assert_true(span_eq(p.host, span_str(cases[i].host)));
        assert_int_equal(p.bracketed, cases[i].bracketed);
        assert_int_equal(p.has_port, cases[i].has_port);
        assert_int_equal(p.port, cases[i].port);
        assert_false(p.is_unix);
    }
}

static void paths_are_read(void **state)
{
    static const char *const cases[][2] = {
        {"unix:///run/x.sock", "/run/x.sock"},
        {"unix:/run/x.sock", "/run/x.sock"},
        {"unix:x", "x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint p;
        assert_int_equal(endpoint_read(span_str(cases[i][0]), &p), ENDPOINT_OK);
        assert_true(p.is_unix);
        assert_true(span_eq(p.path, span_str(cases[i][1])));
    }
}

/* Each with the fault, and the part that is at fault. */
static void what_is_wrong_is_told(void **state)
{
    static const struct {
        const char *text;
        enum endpoint_fault fault;
        const char *wrong;
    } cases[] = {
        {"", ENDPOINT_FORM, ""},
        {"h:80", ENDPOINT_FORM, "h:80"},
        {"TCP://h:80", ENDPOINT_FORM, "TCP://h:80"},
        {"unix://h/p", ENDPOINT_FORM, "unix://h/p"},
        {"tcp://", ENDPOINT_HOST, ""},
        {"tcp://:1", ENDPOINT_HOST, ""},
        {"tcp://[]:1", ENDPOINT_HOST, ""},
        {"tcp://h", ENDPOINT_PORT, "tcp://h"},
        {"tcp://[::1]", ENDPOINT_PORT, "tcp://[::1]"},
        {"tcp://h:", ENDPOINT_PORT, ""},
        {"tcp://h:65536", ENDPOINT_PORT, "65536"},
        {"tcp://h:000080", ENDPOINT_PORT, "000080"},
        {"tcp://h:+1", ENDPOINT_PORT, "+1"},
        {"tcp://h:80/", ENDPOINT_PORT, "80/"},
        {"tcp://::1:80", ENDPOINT_BRACKETS, "::1:80"},
        {"tcp://::1", ENDPOINT_BRACKETS, "::1"},
        {"tcp://[::1:80", ENDPOINT_BRACKETS, "[::1:80"},
        {"tcp://[::1]80", ENDPOINT_BRACKETS, "[::1]80"},
        {"unix:", ENDPOINT_PATH, ""},
        {"unix:///", ENDPOINT_PATH, "unix:///"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint p;
        enum endpoint_fault f = endpoint_read(span_str(cases[i].text), &p);
        if (f != cases[i].fault || !span_eq(p.wrong, span_str(cases[i].wrong)))
            fail_msg("%s: expected %s at \"%s\", found %s at \"%.*s\"", cases[i].text,
                     endpoint_expected(cases[i].fault), cases[i].wrong, endpoint_expected(f),
                     (int)p.wrong.n, p.wrong.p ? p.wrong.p : "");
    }
}

static void lengths_are_bounded(void **state)
{
    char text[512];
    struct endpoint p;
    (void)state;
    memset(text, 'a', sizeof text);
    assert_int_equal(endpoint_read_host(span_of(text, 255), &p), ENDPOINT_OK);
    assert_int_equal(endpoint_read_host(span_of(text, 256), &p), ENDPOINT_HOST);
    assert_int_equal(endpoint_read_path(span_of(text, 107), &p), ENDPOINT_OK);
    assert_int_equal(endpoint_read_path(span_of(text, 108), &p), ENDPOINT_PATH);
    assert_int_equal(endpoint_read_path(span_of("a\0b", 3), &p), ENDPOINT_PATH);
    assert_int_equal(endpoint_read_host(span_of("a\0b:1", 5), &p), ENDPOINT_HOST);
    assert_int_equal(endpoint_read_host(span_of(NULL, 0), &p), ENDPOINT_HOST);
    assert_int_equal(endpoint_read(span_of(NULL, 0), &p), ENDPOINT_FORM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_ports_are_read),
        cmocka_unit_test(paths_are_read),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(lengths_are_bounded),
    };
    return cmocka_run_group_tests_name("base/endpoint", tests, NULL, NULL);
}
