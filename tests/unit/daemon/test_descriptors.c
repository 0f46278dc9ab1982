/* How many connections fit into a limit of descriptors, each in a process of its own: a limit that
 * was lowered stays so. */
#include "base/log.h"
#include "conf/protocol_options.h"
#include "daemon/descriptors.h"
#include "net/passed_fd.h"
#include "support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT 1000 /* limits.connections */

struct fitted {
    struct descriptors d;
    struct rlimit rl;
    bool warned;
    unsigned slots; /* that are wanted */
};

static struct fitted fit(rlim_t soft, rlim_t hard, bool upstream)
{
    struct fitted f = {.warned = false};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        static char server[] = "tcp://127.0.0.1:6379";
        struct conf c;
        struct err e;
        struct rlimit rl = {soft, hard};
        if (conf_load(&c, NULL, NULL, 0, environ, NULL, &e) || setrlimit(RLIMIT_NOFILE, &rl))
            _exit(1);
        char *before = c.upstream_redis;
        c.limits_connections = LIMIT;
        c.upstream_redis = upstream ? server : before;
        log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
        capture_begin();
        f.d = descriptors_fit(&c);
        f.warned = strstr(capture_end(), "fewer file descriptors than limits.connections needs");
        for (size_t i = 0; i < CONF_PROTOCOLS; i++)
            f.slots += conf_protocol_slots(&c, &conf_protocols[i]);
        c.upstream_redis = before;
        conf_clear(&c);
        if (getrlimit(RLIMIT_NOFILE, &f.rl) || write(ends[1], &f, sizeof f) != sizeof f)
            _exit(1);
        _exit(0);
    }
    int status;
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &f, sizeof f), sizeof f);
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return f;
}

/* Beside the clients' and the pages': our own, and on Linux before 6.16 one message's. */
static rlim_t spare(void)
{
    return 64 + passed_fd_most();
}

static void a_soft_limit_is_raised_as_far_as_is_needed(void **state)
{
    (void)state;
    struct fitted f = fit(64, 4096, false);
    assert_true(f.d.connections == LIMIT && f.d.slots == f.slots && !f.warned);
    assert_int_equal(f.rl.rlim_cur, LIMIT + spare() + f.slots);
    f = fit(4096, 4096, false);
    assert_true(f.d.connections == LIMIT && !f.warned);
    assert_int_equal(f.rl.rlim_cur, 4096);
}

/* Each client may have a link of its own there. */
static void with_a_server_behind_a_connection_takes_two(void **state)
{
    (void)state;
    struct fitted f = fit(64, 4096, true);
    assert_true(f.d.connections == LIMIT && !f.warned);
    assert_int_equal(f.rl.rlim_cur, 2 * LIMIT + spare() + f.slots);
    f = fit(64, LIMIT + spare() + f.slots, true);
    assert_true(f.d.connections == LIMIT / 2 && f.d.slots == f.slots && f.warned);
}

static void where_the_hard_limit_is_lower_clients_have_what_is_left(void **state)
{
    (void)state;
    struct fitted f = fit(64, 900, false);
    assert_true(f.d.connections == 900 - spare() - f.slots && f.d.slots == f.slots && f.warned);
    assert_int_equal(f.rl.rlim_cur, 900);
    f = fit(64, LIMIT + spare() + f.slots - 1, false);
    assert_true(f.d.connections == LIMIT - 1 && f.warned);
}

/* Half of what there is stays for others, down to one connection. */
static void of_next_to_nothing_half_is_kept(void **state)
{
    (void)state;
    for (rlim_t n = 24; n < 120; n++) {
        struct fitted f = fit(n, n, n % 2);
        assert_true(f.d.connections >= 1 && f.d.slots >= 1 && f.warned);
        assert_true(f.d.connections * (n % 2 ? 2 : 1) <= (n + 1) / 2);
        assert_true(f.d.slots <= f.slots && f.d.slots <= n / 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_soft_limit_is_raised_as_far_as_is_needed),
        cmocka_unit_test(with_a_server_behind_a_connection_takes_two),
        cmocka_unit_test(where_the_hard_limit_is_lower_clients_have_what_is_left),
        cmocka_unit_test(of_next_to_nothing_half_is_kept),
    };
    return cmocka_run_group_tests_name("daemon/descriptors", tests, NULL, NULL);
}
