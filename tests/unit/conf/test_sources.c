/* Where values come from: file, environment, --set; who wins, who is blamed, what is warned of. */
#include "conf/conf.h"
#include "conf/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

struct given {
    const char *yaml;
    const char *env[5]; /* ended by NULL */
    const char *set[4]; /* the same */
};

static enum err_code load(const struct given *g, struct conf *c, struct err *e)
{
    char *env[5] = {NULL}, *set[4] = {NULL};
    size_t nenv = 0, nsets = 0;
    for (; g->env[nenv]; nenv++)
        env[nenv] = strdup(g->env[nenv]);
    for (; g->set[nsets]; nsets++)
        set[nsets] = strdup(g->set[nsets]);
    enum err_code rc =
        conf_load_text(c, "f.yaml", span_str(g->yaml ? g->yaml : ""), set, nsets, env, NULL, e);
    for (size_t i = 0; i < nenv; i++)
        free(env[i]);
    for (size_t i = 0; i < nsets; i++)
        free(set[i]);
    return rc;
}

static struct conf load_good(const struct given *g)
{
    struct conf c;
    struct err e;
    if (load(g, &c, &e) != ERR_OK)
        fail_msg("expected a configuration, found %s", e.text);
    return c;
}

static void check_error(struct given g, const char *text)
{
    struct conf c;
    struct err e = {.text = "no error"};
    if (load(&g, &c, &e) == ERR_OK || strcmp(e.text, text) != 0)
        fail_msg("expected %s\nfound    %s", text, e.text);
}

static void check_batch(struct given g, unsigned batch)
{
    struct conf c = load_good(&g);
    assert_int_equal(c.limits_batch, batch);
    assert_int_equal(c.warnings.n, 0);
    conf_clear(&c);
}

#define FILE_1 .yaml = "limits:\n  batch: 1\n"

static void test_order(void **state)
{
    (void)state;
    check_batch((struct given){FILE_1}, 1);
    check_batch((struct given){FILE_1, .env = {"SIDFLAKE_LIMITS_BATCH=2"}}, 2);
    check_batch(
        (struct given){FILE_1, .env = {"SIDFLAKE_LIMITS_BATCH=2"}, .set = {"limits.batch=3"}}, 3);
    check_batch((struct given){.set = {"limits.batch=3", "limits.batch=4"}}, 4);
    check_batch((struct given){.env = {"SIDFLAKE_LIMITS_BATCH=5", "SIDFLAKE_LIMITS_BATCH=6"}}, 5);
    check_batch((struct given){.env = {"sidflake_limits_batch=5", "LIMITS_BATCH=6"}}, 1024);
}

static void test_lists(void **state)
{
    struct given g = {.yaml = "ids: {names: [x, y, z]}\n",
                      .env = {"SIDFLAKE_IDS_NAMES=a, b ,c", "SIDFLAKE_LISTEN_HTTP="},
                      .set = {"listen.redis=unix:a,tcp://localhost:1"}};
    struct conf c = load_good(&g);
    (void)state;
    assert_int_equal(c.ids_names.n, 3);
    assert_string_equal(c.ids_names.item[1], "b");
    assert_string_equal(c.ids_names.item[2], "c");
    assert_int_equal(c.listen_http.n, 0);
    assert_int_equal(c.listen_redis.n, 2);
    assert_string_equal(c.listen_redis.item[1], "tcp://localhost:1");
    conf_clear(&c);
    /* Of the one all keys are IDs, of the other none is a number. */
    g = (struct given){.set = {"ids.prefix=", "sequences.prefix="}};
    c = load_good(&g);
    conf_clear(&c);
    /* As in a file. */
    g = (struct given){
        .yaml = "ids: {names: [x]}\n", .env = {"SIDFLAKE_IDS_NAMES=[]"}, .set = {"listen.http=[]"}};
    c = load_good(&g);
    assert_int_equal(c.ids_names.n, 0);
    assert_int_equal(c.listen_http.n, 0);
    conf_clear(&c);
}

/* A value may hold '=', and each option has its variable. */
static void test_every_variable(void **state)
{
    char env[CONF_OPTION_ENV_MAX];
    struct given g = {.set = {"coordinator.url=redis+unix:///r?db=1"}};
    struct conf c = load_good(&g);
    (void)state;
    assert_string_equal(c.coordinator_url, "redis+unix:///r?db=1");
    conf_clear(&c);
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        assert_ptr_equal(conf_option_find_env(span_str(conf_option_env(env, &conf_options[i]))),
                         &conf_options[i]);
    assert_string_equal(conf_option_env(env, &conf_options[CONF_COORDINATOR_PASSWORD_FILE]),
                        "SIDFLAKE_COORDINATOR_PASSWORD_FILE");
}

static void test_blame(void **state)
{
    static const char batch[] = "expected an integer 1..8192 for limits.batch, found \"0\"";
    char text[300];
    (void)state;
    (void)snprintf(text, sizeof text, "--set limits.batch: %s", batch);
    check_error((struct given){.set = {"limits.batch=0"}}, text);
    (void)snprintf(text, sizeof text, "environment SIDFLAKE_LIMITS_BATCH: %s", batch);
    check_error((struct given){.env = {"SIDFLAKE_LIMITS_BATCH=0"}}, text);
    check_error((struct given){.set = {"limits"}}, "--set: expected PATH=VALUE, found \"limits\"");
    check_error((struct given){.set = {"limits=1"}},
                "--set: expected the path of an option (--help-config lists them), found "
                "\"limits\"");
    check_error((struct given){.set = {"ids.names=a,,b"}},
                "--set ids.names: expected 1..200 bytes of printable ASCII without spaces for "
                "ids.names, found \"\"");
    check_error((struct given){.set = {"ids.names=[a,b]"}},
                "--set ids.names: expected items separated by commas, without brackets, for "
                "ids.names, found \"[a,b]\"");
    /* Two options at odds: the one that was set last is blamed, never a default. */
    check_error((struct given){.set = {"listen.memcached=tcp://127.0.0.1:9464"}},
                "--set listen.memcached: expected each address once, found "
                "\"tcp://127.0.0.1:9464\" again, also in listen.http");
    check_error((struct given){.set = {"ids.prefix=seq:"}},
                "--set ids.prefix: expected another prefix than that of sequences.prefix for "
                "ids.prefix, found \"seq:\"");
    check_error((struct given){.yaml = "sequences: {prefix: \"id:\"}\n"},
                "f.yaml:1:21: expected another prefix than that of ids.prefix for "
                "sequences.prefix, found \"id:\"");
    check_error((struct given){.yaml = "coordinator: {auto_init: true}\n",
                               .env = {"SIDFLAKE_COORDINATOR_URL=static:1"}},
                "f.yaml:1:26: expected coordinator.auto_init false, or sqlite:///PATH for "
                "coordinator.url, found \"static:1\"");
}

static void test_long_lists(void **state)
{
    char set[600] = "listen.redis=unix:a", name[220] = "ids.names=";
    (void)state;
    for (int i = 0; i < 64; i++) {
        size_t n = strlen(set);
        (void)snprintf(set + n, sizeof set - n, ",unix:%d", i);
    }
    check_error((struct given){.set = {set}},
                "--set listen.redis: expected at most 64 items for listen.redis, found more");
    *strrchr(set, ',') = '\0';
    memset(name + strlen(name), 'n', 200);
    struct conf c = load_good(&(struct given){.set = {set, name}});
    assert_int_equal(c.listen_redis.n, 64);
    assert_int_equal(strlen(c.ids_names.item[0]), 200);
    conf_clear(&c);
    name[210] = 'n';
    struct err e;
    assert_int_equal(load(&(struct given){.set = {name}}, &c, &e), ERR_INVALID);
}

static void test_unknown_variables(void **state)
{
    struct given g = {
        .env = {"SIDFLAKE_LIMITS_BATCHES=1", "SIDFLAKEX=1", "PATH=/bin", "SIDFLAKE_NOVALUE"}};
    struct conf c = load_good(&g);
    (void)state;
    assert_int_equal(c.warnings.n, 1);
    assert_string_equal(c.warnings.item[0],
                        "environment: \"SIDFLAKE_LIMITS_BATCHES\" names no option and is ignored "
                        "(did you mean SIDFLAKE_LIMITS_BATCH?)");
    conf_clear(&c);
}

/* What Kubernetes sets for Services named sidflake and sidflake-redis. */
static void test_service_links(void **state)
{
    static const char *const links[] = {
        "SIDFLAKE_SERVICE_HOST=10.0.0.1",
        "SIDFLAKE_SERVICE_PORT=6380",
        "SIDFLAKE_SERVICE_PORT_REDIS=6380",
        "SIDFLAKE_PORT=tcp://10.0.0.1:6380",
        "SIDFLAKE_PORT_6380_TCP=tcp://10.0.0.1:6380",
        "SIDFLAKE_PORT_6380_TCP_PROTO=tcp",
        "SIDFLAKE_PORT_6380_TCP_PORT=6380",
        "SIDFLAKE_PORT_6380_UDP_ADDR=10.0.0.1",
        "SIDFLAKE_PORT_6380_SCTP_ADDR=10.0.0.1",
        "SIDFLAKE_REDIS_SERVICE_HOST=10.0.0.1",
        "SIDFLAKE_REDIS_PORT_6380_TCP_ADDR=10.0.0.1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct given g = {.env = {links[i]}};
        struct conf c = load_good(&g);
        if (c.warnings.n != 0)
            fail_msg("%s: expected silence, found %s", links[i], c.warnings.item[0]);
        conf_clear(&c);
    }
}

static void check_warning(const char *yaml, const char *start)
{
    struct given g = {.yaml = yaml};
    struct conf c = load_good(&g);
    if (c.warnings.n != 1 || strncmp(c.warnings.item[0], start, strlen(start)) != 0)
        fail_msg("%s\nexpected %s\nfound    %zu warnings, first %s", yaml, start, c.warnings.n,
                 c.warnings.n ? c.warnings.item[0] : "none");
    conf_clear(&c);
}

static void test_oddities(void **state)
{
    (void)state;
    check_warning("listen: {memcached: [], redis: [], http: []}\n",
                  "f.yaml:1:21: listen.memcached: no list has an address");
    check_warning("listen: {socket_mode: 0444}\n",
                  "f.yaml:1:23: listen.socket_mode: no write permission");
    check_warning("listen: {socket_mode: 432}\n", /* 0660, in decimal */
                  "f.yaml:1:23: listen.socket_mode: others can connect to a UNIX socket, and its "
                  "owner cannot");
    check_warning("auth: {users_file: /u}\n",
                  "f.yaml:1:20: auth.users_file: no listener requires users");
    check_warning("auth: {mode: accept_any}\nupstream: {memcached: \"unix:/m\"}\n",
                  "f.yaml:2:23: upstream.memcached: where auth is accept_any");
    check_warning("listen: {memcached: [\"unix:/s?auth=accept_any\"]}\n"
                  "upstream: {memcached: \"unix:/m\"}\n",
                  "f.yaml:2:23: upstream.memcached: where auth is accept_any");
    check_warning("ids: {prefix: \"\"}\nupstream: {redis: \"tcp://h:1\"}\n",
                  "f.yaml:1:15: ids.prefix: it is empty, so that every key is an ID");
    check_warning("ids: {names: [a#b]}\n", "f.yaml:1:14: ids.names: a name with '#'");
    check_warning("ids: {names: [\"id:a\"]}\n", "f.yaml:1:14: ids.names: a name begins with");
    check_warning("ids: {names: [a, b, a]}\n", "f.yaml:1:14: ids.names: a name is given twice");
    check_warning("ids: {names: [a, a]}\n", "f.yaml:1:14: ids.names: a name is given twice");
    check_warning("coordinator: {url: \"redis://:***@h\"}\n",
                  "f.yaml:1:20: coordinator.url: the password is \"***\"");
    check_warning("coordinator: {timeout: 20s}\n",
                  "f.yaml:1:24: coordinator.timeout: not below lease.renew_every");
    check_warning("lease: {renew_every: 1s}\n", "coordinator.timeout: not below lease.renew_every");
    check_warning("upstream: {redis: \"tcp://h:1\", buffer: 17MiB}\n",
                  "f.yaml:1:40: upstream.buffer: what the links that clients share keep");
    check_warning("upstream: {redis: \"tcp://h:1\", memcached: \"tcp://h:2\", buffer: 9MiB}\n",
                  "f.yaml:1:64: upstream.buffer: what the links that clients share keep");
    check_warning("lease: {on_stop: keep}\nids: {overflow: borrow}\n",
                  "f.yaml:1:18: lease.on_stop: with ids.overflow: borrow");
    check_warning("lease: {on_stop: keep}\nclock: {on_rollback: hold}\n",
                  "f.yaml:1:18: lease.on_stop: with ids.overflow: borrow");
    check_warning("limits: {max_wait: 14ms}\n",
                  "f.yaml:1:20: limits.max_wait: below clock.wait_below");
    struct given least = {.yaml = "limits: {max_wait: 15ms}\n"};
    struct conf c = load_good(&least);
    assert_int_equal(c.warnings.n, 0);
    conf_clear(&c);
}

#define SECRETS "build/test_sources.secrets"
#define SHOWN   ": everybody on this host may read the file"

/* Of each option that names a file of secrets, it is that file that is looked at. */
static void test_files_that_are_shown(void **state)
{
    static const struct {
        const char *yaml, *start;
    } all[] = {
        {"auth: {mode: required, users_file: " SECRETS "}\n", "f.yaml:1:36: auth.users_file" SHOWN},
        {"coordinator: {password_file: " SECRETS "}\n",
         "f.yaml:1:30: coordinator.password_file" SHOWN},
        {"upstream: {redis: \"unix:/r\", redis_password_file: " SECRETS "}\n",
         "f.yaml:1:51: upstream.redis_password_file" SHOWN},
        {"upstream: {memcached: \"unix:/m\", memcached_user: u, memcached_password_file: " SECRETS
         "}\n",
         "f.yaml:1:78: upstream.memcached_password_file" SHOWN},
    };
    (void)state;
    FILE *f = fopen(SECRETS, "w");
    assert_non_null(f);
    assert_true(fputs("secret\n", f) >= 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct given g = {.yaml = all[i].yaml};
        assert_int_equal(fchmod(fileno(f), 0640), 0);
        assert_int_equal(fflush(f), 0);
        struct conf c = load_good(&g);
        assert_int_equal(c.warnings.n, 0);
        conf_clear(&c);
        assert_int_equal(fchmod(fileno(f), 0644), 0);
        check_warning(all[i].yaml, all[i].start);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(unlink(SECRETS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_every_variable),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_unknown_variables),
        cmocka_unit_test(test_service_links),
        cmocka_unit_test(test_oddities),
        cmocka_unit_test(test_files_that_are_shown),
        cmocka_unit_test(test_long_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
