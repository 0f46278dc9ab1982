/*
 * What a Redis is set up to lose: what it says of itself, and what is asked of a real one.
 */
#include "coord/risk.h"
#include "support/coord_setup.h"
#include "support/redis_server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static void what_it_says_is_judged(void **state)
{
    (void)state;
    static const struct {
        const char *info, *save; /* NULL: not told */
        unsigned risks;
    } cases[] = {
        {"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n", "", 0},
        {"maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n", "",
         COORD_RISK_EVICTION},
        {"maxmemory:99999999999\r\nmaxmemory_policy:allkeys-random\r\n", NULL, COORD_RISK_EVICTION},
        {"maxmemory:1\r\nmaxmemory_policy:volatile-lru\r\naof_enabled:1\r\n", "", 0},
        {"maxmemory:1\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n", "", 0},
        {"maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n", "", COORD_RISK_RESTART},
        {"aof_enabled:0\r\n", "3600 1", 0},
        {"aof_enabled:0\r\n", NULL, 0}, /* it may save: nobody tells */
        {"x:1\naof_enabled:0\n", "", COORD_RISK_RESTART},
        {"xaof_enabled:0\r\nmaxmemory", "", 0},
        {"", "", 0},
        {"maxmemory:\r\nmaxmemory_policy:allkeys-lru", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *save = cases[i].save;
        unsigned found = risk_of(span_str(cases[i].info), save != NULL, span_str(save ? save : ""));
        if (found != cases[i].risks)
            fail_msg("case %zu: expected %u, found %u", i, cases[i].risks, found);
    }
}

static void each_is_a_sentence(void **state)
{
    (void)state;
    assert_null(coord_risk_text(COORD_RISK_RESTART, 0));
    assert_non_null(strstr(coord_risk_text(COORD_RISK_EVICTION, 0), "noeviction"));
    assert_non_null(strstr(coord_risk_text(COORD_RISK_RESTART, 1), "appendonly yes"));
    assert_null(coord_risk_text(~0u, COORD_RISKS));
}

static unsigned risks_of(const char *url)
{
    unsigned risks = 99;
    struct coord *c = setup_open(url, "p", clock_system());
    assert_true(coord_risks(c, &risks));
    coord_free(c);
    return risks;
}

static void a_real_one_is_asked(void **state)
{
    (void)state;
    static const char *const args[] = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu",
                                       NULL};
    struct server s = {.pid = 0};
    char url[SERVER_URL_MAX], as[SERVER_URL_MAX + 16], out[64];
    server_start(&s, false, args);
    server_url(&s, url);
    assert_int_equal(risks_of(url), COORD_RISK_EVICTION | COORD_RISK_RESTART);
    (void)snprintf(as, sizeof as, "redis://u:pw@127.0.0.1:%d/0", s.port);
    assert_true(
        SERVER_DO(&s, out, "ACL", "SETUSER", "u", "on", ">pw", "+select", "+role", "+info"));
    assert_int_equal(risks_of(as), COORD_RISK_EVICTION); /* CONFIG is not his */
    assert_true(SERVER_DO(&s, out, "ACL", "SETUSER", "u", "+config|get"));
    assert_int_equal(risks_of(as), COORD_RISK_EVICTION | COORD_RISK_RESTART);
    assert_true(SERVER_DO(&s, out, "CONFIG", "SET", "maxmemory-policy", "noeviction"));
    assert_true(SERVER_DO(&s, out, "CONFIG", "SET", "save", "3600 1"));
    assert_int_equal(risks_of(as), 0);
    assert_true(SERVER_DO(&s, out, "CONFIG", "SET", "save", ""));
    assert_true(SERVER_DO(&s, out, "CONFIG", "SET", "appendonly", "yes"));
    assert_int_equal(risks_of(as), 0);
    server_free(&s);
}

/* A server notes each command that is refused, and this one is asked every ten minutes. */
static void what_is_refused_is_asked_once(void **state)
{
    (void)state;
    struct server s = {.pid = 0};
    char url[SERVER_URL_MAX], out[256];
    unsigned risks;
    server_start(&s, false, NULL);
    assert_true(
        SERVER_DO(&s, out, "ACL", "SETUSER", "u", "on", ">pw", "+select", "+role", "+info"));
    (void)snprintf(url, sizeof url, "redis://u:pw@127.0.0.1:%d/0", s.port);
    struct coord *c = setup_open(url, "p", clock_system());
    for (int i = 0; i < 3; i++)
        assert_true(coord_risks(c, &risks));
    assert_true(SERVER_DO(&s, out, "INFO", "commandstats"));
    char all[8192];
    assert_true(SERVER_DO(&s, all, "INFO", "commandstats"));
    assert_non_null(strstr(all, "cmdstat_config|get:calls=0,"));
    assert_non_null(strstr(all, "rejected_calls=1,"));
    coord_free(c);
    server_free(&s);
}

/* Memory, replicas, whatever it is that it refuses them for: it says so itself. */
static void who_takes_no_writes_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *value, *said;
        enum coord_status is;
    } cases[] = {
        {"maxmemory", "0", "", COORD_OK},
        {"maxmemory", "1", "found -OOM ", COORD_REFUSED},
        {"maxmemory", "0", "", COORD_OK},
        {"min-replicas-to-write", "1", "found -NOREPLICAS ", COORD_DOWN},
    };
    struct server s = {.pid = 0};
    char url[SERVER_URL_MAX], out[256];
    struct coord_reply r;
    server_start(&s, false, NULL);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d/0", s.port);
    struct coord *c = setup_open(url, "p", clock_system());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(SERVER_DO(&s, out, "CONFIG", "SET", cases[i].setting, cases[i].value));
        assert_int_equal(coord_writes(c, &r), cases[i].is);
        assert_non_null(strstr(r.err.text, cases[i].said));
    }
    assert_true(SERVER_DO(&s, out, "DBSIZE"));
    assert_string_equal(out, "0");
    coord_free(c);
    assert_true(SERVER_DO(&s, out, "ACL", "SETUSER", "u", "on", ">pw", "+select", "+role"));
    (void)snprintf(url, sizeof url, "redis://u:pw@127.0.0.1:%d/0", s.port);
    c = setup_open(url, "p", clock_system());
    assert_int_equal(coord_writes(c, &r), COORD_OK); /* may not ask */
    coord_free(c);
    server_free(&s);
}

static void a_file_is_asked_by_a_write_that_comes_to_nothing(void **state)
{
    (void)state;
    char dir[] = "/tmp/sidflake-risk-XXXXXX", url[96], path[64];
    const struct coord_init in = setup_init(
        "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10", COORD_INIT_FRESH, 7);
    struct rlimit before, none;
    struct coord_reply r;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/pool.db", dir);
    (void)snprintf(url, sizeof url, "sqlite://%s", path);
    struct coord *c = setup_open(url, "p", clock_system());
    assert_int_equal(coord_init(c, &in, &r), COORD_OK);
    assert_int_equal(coord_writes(c, &r), COORD_OK);
    assert_int_equal(coord_writes(c, &r), COORD_OK);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    enum coord_status is = coord_writes(c, &r);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(is, COORD_DOWN);
    assert_non_null(strstr(r.err.text, path));
    assert_int_equal(coord_writes(c, &r), COORD_OK);
    coord_free(c);
    setup_forget_tally(dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void one_without_a_server_has_none(void **state)
{
    (void)state;
    unsigned risks = 99;
    struct coord_reply r;
    struct coord *c = setup_open("static:1", "p", clock_system());
    assert_true(coord_risks(c, &risks));
    assert_int_equal(risks, 0);
    assert_int_equal(coord_writes(c, &r), COORD_OK);
    coord_free(c);
    c = setup_open("redis://127.0.0.1:1/0", "p", clock_system());
    risks = 7;
    assert_false(coord_risks(c, &risks)); /* nobody is there */
    assert_int_equal(risks, 7);
    assert_int_equal(coord_writes(c, &r), COORD_DOWN);
    coord_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says_is_judged),
        cmocka_unit_test(each_is_a_sentence),
        cmocka_unit_test(a_real_one_is_asked),
        cmocka_unit_test(what_is_refused_is_asked_once),
        cmocka_unit_test(who_takes_no_writes_says_why),
        cmocka_unit_test(a_file_is_asked_by_a_write_that_comes_to_nothing),
        cmocka_unit_test(one_without_a_server_has_none),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/risk", tests, NULL, NULL);
}
