#include "base/endpoint.h"
#include "conf/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

static struct conf_address read_good(const char *text)
{
    struct conf_address a;
    if (!conf_address_parse(span_str(text), &a))
        fail_msg("expected an address, found a refusal of %s", text);
    return a;
}

static void check_tcp(const char *text, const char *host, unsigned port)
{
    struct conf_address a = read_good(text);
    assert_false(a.is_unix);
    assert_int_equal(a.port, port);
    assert_int_equal(a.host.n, strlen(host));
    assert_memory_equal(a.host.p, host, a.host.n);
}

static void check_unix(const char *text, const char *path)
{
    struct conf_address a = read_good(text);
    assert_true(a.is_unix);
    assert_int_equal(a.path.n, strlen(path));
    assert_memory_equal(a.path.p, path, a.path.n);
}

static void test_good(void **state)
{
    (void)state;
    check_tcp("tcp://127.0.0.1:11212", "127.0.0.1", 11212);
    check_tcp("tcp://0.0.0.0:0", "0.0.0.0", 0);
    check_tcp("tcp://[::1]:65535", "::1", 65535);
    check_tcp("tcp://[fe80::1%eth0]:1", "fe80::1%eth0", 1);
    check_tcp("tcp://[fe80::1%eth0.100]:1", "fe80::1%eth0.100", 1);
    check_tcp("tcp://[fe80::1%fifteen-letters]:1", "fe80::1%fifteen-letters", 1);
    check_tcp("tcp://localhost:6380", "localhost", 6380);
    check_tcp("tcp://a-b_c.example.:80", "a-b_c.example.", 80);
    check_tcp("tcp://0x7f.example:1", "0x7f.example", 1);
    check_tcp("tcp://0xcafe-1:1", "0xcafe-1", 1);
    check_unix("unix:///run/x.sock", "/run/x.sock");
    check_unix("unix:build/x.sock", "build/x.sock");
    check_unix("unix:/run/x.sock", "/run/x.sock");
}

static void test_bad(void **state)
{
    static const char *const bad[] = {
        "",
        "tcp",
        "tcp:",
        "tcp://",
        "tcp://:1",
        "tcp://host",
        "tcp://host:",
        "tcp://host:65536",
        "tcp://host:-1",
        "tcp://host:+1",
        "tcp://host:1x",
        "tcp://host:000001",
        "tcp://host:1/",
        "tcp://1.2.3:1",
        "tcp://1.2.3.256:1",
        "tcp://0x7f000001:1",
        "tcp://127.0X1:1",
        "tcp://127.0.0.0x:1",
        "tcp://::1:1",
        "tcp://[::1]",
        "tcp://[::1]1",
        "tcp://[::1:1",
        "tcp://[]:1",
        "tcp://[::g]:1",
        "tcp://[1.2.3.4]:1",
        "tcp://[::1%]:1",
        "tcp://[::1%a b]:1",
        "tcp://[::1%a/b]:1",
        "tcp://[::1%a:b]:1",
        "tcp://[::1%\x7f]:1",
        "tcp://[::1%sixteen--letters]:1",
        "tcp://a..b:1",
        "tcp://.a:1",
        "tcp://.:1",
        "tcp://-a:1",
        "tcp://a b:1",
        "tcp://*:1",
        "TCP://host:1",
        "127.0.0.1:1",
        "unix:",
        "unix://",
        "unix:///",
        "unix://a/b",
        "udp://a:1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (conf_address_valid(span_str(bad[i])))
            fail_msg("expected a refusal, found an address in %s", bad[i]);
    assert_false(conf_address_valid(span_of("unix:a\0b", 8)));
    assert_false(conf_address_valid(span_of("tcp://1.2.3.4\0:1", 16)));
}

static void test_lengths(void **state)
{
    char text[400];
    (void)state;
    for (int n = ENDPOINT_PATH_MAX - 1; n <= ENDPOINT_PATH_MAX + 1; n++) {
        (void)snprintf(text, sizeof text, "unix:%0*d", n, 7);
        assert_int_equal(conf_address_valid(span_str(text)), n <= ENDPOINT_PATH_MAX);
    }
    for (int n = 62; n <= 64; n++) { /* a label: a run of zeros and a letter */
        (void)snprintf(text, sizeof text, "tcp://%0*da:1", n - 1, 0);
        assert_int_equal(conf_address_valid(span_str(text)), n <= 63);
    }
    for (int n = 252; n <= 254; n++) { /* labels of two, then a letter or two */
        size_t at = (size_t)snprintf(text, sizeof text, "tcp://");
        for (int i = 0; i < n; i++)
            text[at++] = i % 3 == 1 && i < n - 1 ? '.' : 'a';
        (void)snprintf(text + at, sizeof text - at, ":1");
        assert_int_equal(conf_address_valid(span_str(text)), n <= 253);
    }
}

static void test_same(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"tcp://a:1", "tcp://A:1", true},
        {"tcp://a:1", "tcp://a:2", false},
        {"tcp://a:1", "tcp://b:1", false},
        {"tcp://a:0", "tcp://a:0", false},
        {"unix:/x", "unix:///x", true},
        {"unix:x", "unix:X", false},
        {"unix:a", "tcp://a:1", false},
        {"tcp://[::1]:1", "tcp://[0:0::01]:1", true},
        {"tcp://[::ffff:10.1.2.3]:1", "tcp://10.1.2.3:1", true},
        {"tcp://[::a01:203]:1", "tcp://10.1.2.3:1", false},
        {"tcp://10.1.2.3:1", "tcp://10.1.2.30:1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conf_address a = read_good(cases[i].a), b = read_good(cases[i].b);
        if (conf_address_same(&a, &b) != cases[i].same)
            fail_msg("%s and %s: expected %d", cases[i].a, cases[i].b, cases[i].same);
    }
}

static void test_reaches(void **state)
{
    static const struct {
        const char *to, *at;
        bool reaches;
    } cases[] = {
        {"tcp://h:1", "tcp://H:1", true},
        {"tcp://h:1", "tcp://i:1", false},
        {"unix:a", "unix:a", true},
        {"unix:a", "tcp://0.0.0.0:1", false},
        {"tcp://127.0.0.1:1", "tcp://[::]:1", false},
        {"tcp://[::1]:1", "tcp://0.0.0.0:1", false},
        {"tcp://127.0.0.1:1", "tcp://0.0.0.0:1", true},
        {"tcp://localhost:1", "tcp://0.0.0.0:1", true},
        {"tcp://[::1]:1", "tcp://[::]:1", true},
        {"tcp://0.0.0.0:1", "tcp://[::]:1", false},
        {"tcp://localhost:1", "tcp://[::]:1", true},
        {"tcp://[::ffff:127.0.0.1]:1", "tcp://[::]:1", false},
        {"tcp://h:1", "tcp://0.0.0.0:1", false},
        {"tcp://localhost:1", "tcp://127.0.0.1:1", true},
        {"tcp://[::1]:1", "tcp://localhost:1", true},
        {"tcp://localhost:1", "tcp://127.0.0.2:1", false},
        {"tcp://[::1]:1", "tcp://127.0.0.1:1", false},
        {"tcp://localhost:1", "tcp://127.0.0.1:2", false},
        {"tcp://127.0.0.1:1", "tcp://0.0.0.0:2", false},
        {"tcp://127.0.0.1:0", "tcp://0.0.0.0:0", false},
        {"tcp://0.0.0.0:1", "tcp://127.0.0.1:2", false},
        {"tcp://0.0.0.0:1", "tcp://127.0.0.1:1", true},
        {"tcp://0.0.0.0:1", "tcp://localhost:1", true},
        {"tcp://0.0.0.0:1", "tcp://127.0.0.2:1", false},
        {"tcp://0.0.0.0:1", "tcp://10.0.0.1:1", false},
        {"tcp://[::]:1", "tcp://[::1]:1", true},
        {"tcp://[::]:1", "tcp://[0:0::0]:1", true},
        {"tcp://[::ffff:127.0.0.1]:1", "tcp://127.0.0.1:1", true},
        {"tcp://[::ffff:127.0.0.1]:1", "tcp://0.0.0.0:1", true},
        {"tcp://[::ffff:7f00:1]:1", "tcp://localhost:1", true},
        {"tcp://[0::1]:1", "tcp://localhost:1", true},
        {"tcp://[fe80::1%lo]:1", "tcp://[fe80::1%LO]:1", true},
        {"tcp://[fe80::1%lo]:1", "tcp://[fe80::1]:1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conf_address to = read_good(cases[i].to), at = read_good(cases[i].at);
        if (conf_address_reaches(&to, &at) != cases[i].reaches)
            fail_msg("%s to %s: expected %d", cases[i].to, cases[i].at, cases[i].reaches);
    }
}

static void test_auth(void **state)
{
    struct conf_address a = read_good("tcp://[::1]:1?auth=required");
    struct conf c = {.auth_mode = CONF_AUTH_ACCEPT_ANY};
    (void)state;
    assert_int_equal(a.bare.n, strlen("tcp://[::1]:1"));
    assert_int_equal(conf_address_auth(&a, &c), CONF_AUTH_REQUIRED);
    a = read_good("unix:/a?b");
    assert_int_equal(a.bare.n, strlen("unix:/a?b"));
    assert_int_equal(conf_address_auth(&a, &c), CONF_AUTH_ACCEPT_ANY);
    a = read_good("unix:///a?auth=off");
    assert_int_equal(a.path.n, 2);
    assert_int_equal(conf_address_auth(&a, &c), CONF_AUTH_OFF);
    assert_false(conf_address_valid(SPAN("unix:///a?auth=")));
    assert_false(conf_address_valid(SPAN("unix:///a?auth=off?auth=off")));
    assert_false(conf_address_valid(SPAN("?auth=off")));
}

static void test_local(void **state)
{
    static const char *const local[] = {
        "unix:a",        "tcp://127.0.0.1:1", "tcp://127.255.0.1:1",
        "tcp://[::1]:1", "tcp://LocalHost:1", "tcp://[::ffff:127.0.0.1]:1"};
    static const char *const open[] = {
        "tcp://0.0.0.0:1",          "tcp://[::]:1", "tcp://128.0.0.1:1",
        "tcp://127.example:1",      "tcp://h:1",    "tcp://[fe80::1%lo]:1",
        "tcp://[::ffff:10.0.0.1]:1"};
    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        struct conf_address a = read_good(local[i]);
        if (!conf_address_local(&a))
            fail_msg("%s: expected a local address", local[i]);
    }
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        struct conf_address a = read_good(open[i]);
        if (conf_address_local(&a))
            fail_msg("%s: expected an address that is not local", open[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_bad),
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_same),
        cmocka_unit_test(test_reaches), cmocka_unit_test(test_auth),
        cmocka_unit_test(test_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
