/* What a service manager hears, and what of its environment is believed. */
#include "base/clock.h"
#include "daemon/supervisor.h"
#include "net/private.h"
#include "support/net_bench.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct supervisor s;
static int manager;
static char dir[64], path[128];

static void listen_at(const char *name, bool abstract)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(un.sun_path, name, n);
    if (abstract)
        un.sun_path[0] = '\0';
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + !abstract);
    assert_int_equal(bind(manager, (const struct sockaddr *)(const void *)&un, len), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
}

static int begin(void **state)
{
    (void)state;
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-notify-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/notify", dir);
    manager = -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    supervisor_clear(&s);
    if (manager >= 0)
        (void)close(manager);
    (void)unlink(path);
    return rmdir(dir);
}

static const char *heard(void)
{
    static char text[1024];
    ssize_t n = recv(manager, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void without_a_manager_nothing_is_done(void **state)
{
    (void)state;
    supervisor_init(&s);
    assert_int_equal(s.fd, -1);
    supervisor_stopping(&s);
    supervisor_holds(&s, 1, "");
    supervisor_not_reloaded(&s, "why");
    supervisor_clear(&s);
}

static void a_socket_is_a_path_or_an_abstract_name(void **state)
{
    (void)state;
    char name[64];
    (void)snprintf(name, sizeof name, "@sidflake-notify-%ld", (long)getpid());
    const char *const names[] = {path, name};
    for (size_t i = 0; i < 2; i++) {
        listen_at(names[i], i == 1);
        supervisor_init(&s);
        supervisor_stopping(&s);
        assert_string_equal(heard(), "STOPPING=1");
        supervisor_reloading(&s, 4711);
        assert_string_equal(heard(), "RELOADING=1\nMONOTONIC_USEC=4711");
        supervisor_reloaded(&s);
        assert_string_equal(heard(), "READY=1");
        supervisor_clear(&s);
        (void)close(manager);
    }
    manager = -1;
}

static void what_is_no_socket_is_none(void **state)
{
    (void)state;
    char longest[sizeof s.to.sun_path + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    const char *const no[] = {"", "/", "@", "relative/path", "vsock:2:1234", longest};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        assert_int_equal(setenv("NOTIFY_SOCKET", no[i], 1), 0);
        supervisor_init(&s);
        assert_int_equal(s.fd, -1);
    }
    longest[sizeof longest - 2] = '\0'; /* as long as one may be, with its NUL */
    assert_int_equal(setenv("NOTIFY_SOCKET", longest, 1), 0);
    supervisor_init(&s);
    assert_true(s.fd >= 0);
}

static void a_watchdog_is_ours_or_none(void **state)
{
    (void)state;
    char pid[32], another[32];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    (void)snprintf(another, sizeof another, "%ld", (long)getpid() + 1);
    const struct {
        const char *usec, *pid;
        int64_t want;
    } cases[] = {{"30000000", NULL, 30000000},
                 {"30000000", pid, 30000000},
                 {"30000000", another, 0},
                 {"0", NULL, 0},
                 {"x", NULL, 0},
                 {"-5", NULL, 0},
                 {"18446744073709551615", NULL, 0}};
    listen_at(path, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(setenv("WATCHDOG_USEC", cases[i].usec, 1), 0);
        if (cases[i].pid)
            assert_int_equal(setenv("WATCHDOG_PID", cases[i].pid, 1), 0);
        else
            (void)unsetenv("WATCHDOG_PID");
        supervisor_init(&s);
        assert_int_equal(s.watchdog_us, cases[i].want);
        supervisor_clear(&s);
    }
}

/* *period_us: -1 where there is none. */
static void do_start(struct net_bench *b, void *period_us)
{
    supervisor_started(&s, b->net);
    bool runs = ev_is_active(&b->net->every);
    *(int64_t *)period_us = runs ? (int64_t)(b->net->every.repeat * 1e6 + 0.5) : -1;
}

static void hears(const char *text)
{
    struct pollfd p = {.fd = manager, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 30000), 1);
    assert_string_equal(heard(), text);
}

/* One word that comes late must not be the end of a loop that turns. */
static void a_watchdog_hears_twice_in_its_time(void **state)
{
    static struct net_bench b;
    int64_t period_us = 0;
    (void)state;
    listen_at(path, false);
    assert_int_equal(setenv("WATCHDOG_USEC", "20000", 1), 0);
    supervisor_init(&s);
    net_bench_init(&b);
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_start, &period_us);
    assert_int_equal(period_us, 10000);
    hears("READY=1");
    hears("WATCHDOG=1");
    hears("WATCHDOG=1"); /* again and again */
    net_bench_stop(&b);
}

static void without_a_watchdog_the_loop_is_left_alone(void **state)
{
    static struct net_bench b;
    int64_t period_us = 0;
    (void)state;
    listen_at(path, false);
    supervisor_init(&s);
    net_bench_init(&b);
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_start, &period_us);
    assert_int_equal(period_us, -1);
    hears("READY=1");
    net_bench_stop(&b);
}

static void what_is_held_is_told_when_it_changes(void **state)
{
    (void)state;
    listen_at(path, false);
    supervisor_init(&s);
    supervisor_holds(&s, 0, "");
    assert_string_equal(heard(), "STATUS=no workerId: none was claimed yet");
    supervisor_holds(&s, 0, "no pool");
    assert_string_equal(heard(), "STATUS=no workerId: no pool");
    supervisor_holds(&s, 2, "");
    assert_string_equal(heard(), "STATUS=serving with 2 workerIds");
    supervisor_holds(&s, 2, "");
    assert_string_equal(heard(), "");
    supervisor_holds(&s, 2, "each range has ended");
    assert_string_equal(heard(), "STATUS=no IDs: each range has ended");
    supervisor_holds(&s, 2, "");
    assert_string_equal(heard(), "STATUS=serving with 2 workerIds");
    supervisor_not_reloaded(&s, "one\ntwo\nREADY=0");
    assert_string_equal(heard(), "READY=1\nSTATUS=upgrade refused: one two READY=0");
    supervisor_holds(&s, 2, ""); /* that stands until this changes */
    assert_string_equal(heard(), "");
}

/* A manager that is slow, or gone, holds nothing up. */
static void whoever_does_not_listen_is_not_waited_for(void **state)
{
    (void)state;
    listen_at(path, false);
    supervisor_init(&s);
    (void)alarm(30); /* whoever waits ends here */
    for (int i = 0; i < 100000; i++)
        supervisor_reloaded(&s);
    (void)alarm(0);
    (void)close(manager);
    manager = -1;
    supervisor_stopping(&s);
}

#define SUPERVISOR(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SUPERVISOR(without_a_manager_nothing_is_done),
        SUPERVISOR(a_socket_is_a_path_or_an_abstract_name),
        SUPERVISOR(what_is_no_socket_is_none),
        SUPERVISOR(a_watchdog_is_ours_or_none),
        SUPERVISOR(a_watchdog_hears_twice_in_its_time),
        SUPERVISOR(without_a_watchdog_the_loop_is_left_alone),
        SUPERVISOR(what_is_held_is_told_when_it_changes),
        SUPERVISOR(whoever_does_not_listen_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("daemon/supervisor", tests, NULL, NULL);
}
