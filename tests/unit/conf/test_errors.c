/* Every way in which a file can be wrong: the place and the words of the message. */
#include "conf/conf.h"
#include "conf/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

struct wrong {
    const char *yaml, *text; /* the message after "f.yaml:" */
};

static void check(const struct wrong *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct conf c;
        struct err e = {.text = ""};
        enum err_code rc =
            conf_load_text(&c, "f.yaml", span_str(w[i].yaml), NULL, 0, NULL, NULL, &e);
        if (rc == ERR_OK || strncmp(e.text, "f.yaml:", 7) != 0 ||
            strcmp(e.text + 7, w[i].text) != 0)
            fail_msg("%s\nexpected f.yaml:%s\nfound    %s", w[i].yaml, w[i].text,
                     rc ? e.text : "no error");
        if (rc != e.code)
            fail_msg("%s: the code is %d, the text's %d", w[i].yaml, (int)rc, (int)e.code);
    }
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))
#define TOP_KEYS                                                                                   \
    "listen, auth, upstream, ids, sequences, coordinator, workers, lease, clock, epoch, "          \
    "layout, state_dir, limits, "                                                                  \
    "log"
#define SYNTAX "expected well-formed YAML, found a syntax error "

static void test_syntax(void **state)
{
    static const struct wrong cases[] = {
        {"ids:\n  names: [\n",
         "3:1: " SYNTAX "(did not find expected node content while parsing a flow node)"},
        {"log:\n\tlevel: info\n",
         "2:1: " SYNTAX
         "(found character that cannot start any token while scanning for the next token)"},
        {"log:\n  level: \"info\n",
         "3:1: " SYNTAX "(found unexpected end of stream while scanning a quoted scalar)"},
        {"log:\n  level: \"\xff\"\n", "2:11: " SYNTAX "(invalid leading UTF-8 octet)"},
        {"log: {}\n---\nlog: {}\n", "2:1: expected one document, found a second"},
    };
    (void)state;
    CHECK(cases);
}

static void test_keys(void **state)
{
    static const struct wrong cases[] = {
        {"\nlimit: 1\n",
         "2:1: expected one of " TOP_KEYS ", found \"limit\" (did you mean limits?)"},
        {"limits:\n  batches: 1\n",
         "2:3: expected one of connections, http_connections, memory, "
         "login_timeout, request_timeout, idle_timeout, max_wait, "
         "batch in limits, found \"batches\" (did you mean limits.batch?)"},
        {"batch: 1\n",
         "1:1: expected one of " TOP_KEYS ", found \"batch\" (did you mean limits.batch?)"},
        {"log.level: info\n", "1:1: expected one of " TOP_KEYS ", found \"log.level\""},
        {"lg: {}\n", "1:1: expected one of " TOP_KEYS ", found \"lg\""},
        {"log:\n  level: info\n  format: text\n  level: info\n",
         "4:3: expected each key once, found \"level\" again after line 2"},
        {"log:\nids:\nlog:\n", "3:1: expected each key once, found \"log\" again after line 1"},
        {"epoch: \"\"\nepoch: \"\"\n",
         "2:1: expected each key once, found \"epoch\" again after line 1"},
        {"? [log]\n: x\n", "1:3: expected one of " TOP_KEYS ", found a list"},
        {"<<: {}\n", "1:1: expected one of " TOP_KEYS ", found \"<<\""},
    };
    (void)state;
    CHECK(cases);
}

static void test_shapes(void **state)
{
    static const struct wrong cases[] = {
        {"- log\n", "1:1: expected a mapping of options, found a list"},
        {"log\n", "1:1: expected a mapping of options, found \"log\""},
        {"log: info\n", "1:6: expected a mapping of options for log, found \"info\""},
        {"log: \"\"\n", "1:6: expected a mapping of options for log, found \"\""},
        {"log: [a]\n", "1:6: expected a mapping of options for log, found a list"},
        {"ids:\n  names: orders\n", "2:10: expected a list for ids.names, found \"orders\""},
        {"ids:\n  names:\n", "2:9: expected a list for ids.names, found nothing"},
        {"ids: {names: [a, [b]]}\n", "1:18: expected 1..200 bytes of printable ASCII without "
                                     "spaces for ids.names, found a list"},
        {"log:\n  level: [info]\n",
         "2:10: expected error|warn|info|debug for log.level, found a list"},
        {"log:\n  level: {a: b}\n",
         "2:10: expected error|warn|info|debug for log.level, found a mapping"},
        {"log:\n  level: ~\n", "2:10: expected error|warn|info|debug for log.level, found nothing"},
        {"ids: {prefix: &a \"id:\"}\nstate_dir: *a\n",
         "2:12: expected a non-empty path for state_dir, found an alias"},
        {"state_dir: \"a\\0b\"\n",
         "1:12: expected a non-empty path for state_dir, found \"a\\x00b\""},
    };
    (void)state;
    CHECK(cases);
}

#define SIZE_BUFFER "expected a size in KiB or MiB, 64KiB..64MiB for upstream.buffer, found "
#define INT_BATCH   "expected an integer 1..8192 for limits.batch, found "
#define EPOCH       "expected a time 2000-01-01T00:00:00.000Z..now, or \"\" for epoch, found "
#define MODE        "expected an octal mode 0..0777 for listen.socket_mode, found "
#define WAIT        "expected a duration with its unit, 0s..1s for clock.wait_below, found "
#define POOL        "expected 1..64 letters, digits, '_', '.' or '-' for coordinator.pool, found "

static void test_values(void **state)
{
    static const struct wrong cases[] = {
        {"limits:\n  batch: 0\n", "2:10: " INT_BATCH "\"0\""},
        {"limits:\n  batch: 8193\n", "2:10: " INT_BATCH "\"8193\""},
        {"limits: {batch: -1}\n", "1:17: " INT_BATCH "\"-1\""},
        {"limits: {batch: 010}\n", "1:17: " INT_BATCH "\"010\""},
        {"limits: {batch: 1e3}\n", "1:17: " INT_BATCH "\"1e3\""},
        {"limits: {batch: 18446744073709551617}\n", "1:17: " INT_BATCH "\"18446744073709551617\""},
        {"limits: {batch: }\n", "1:17: " INT_BATCH "\"\""},
        {"clock: {wait_below: 15}\n", "1:21: " WAIT "\"15\""},
        {"clock: {wait_below: 1001ms}\n", "1:21: " WAIT "\"1001ms\""},
        {"clock: {wait_below: 1.5s}\n", "1:21: " WAIT "\"1.5s\""},
        {"upstream: {buffer: 65536}\n", "1:20: " SIZE_BUFFER "\"65536\""},
        {"upstream: {buffer: 63KiB}\n", "1:20: " SIZE_BUFFER "\"63KiB\""},
        {"upstream: {buffer: 65MiB}\n", "1:20: " SIZE_BUFFER "\"65MiB\""},
        {"upstream: {buffer: 1KB}\n", "1:20: " SIZE_BUFFER "\"1KB\""},
        {"upstream: {buffer: -1MiB}\n", "1:20: " SIZE_BUFFER "\"-1MiB\""},
        {"upstream: {buffer: 99999999999999MiB}\n", "1:20: " SIZE_BUFFER "\"99999999999999MiB\""},
        /* what is 1 MiB, or 0660, in the lowest 64 bits */
        {"upstream: {buffer: 17592186044417MiB}\n", "1:20: " SIZE_BUFFER "\"17592186044417MiB\""},
        {"coordinator: {auto_init: yes}\n",
         "1:26: expected true|false for coordinator.auto_init, found \"yes\""},
        {"lease: {on_stop: RETURN}\n",
         "1:18: expected return|keep for lease.on_stop, found \"RETURN\""},
        {"listen: {socket_mode: 1000}\n", "1:23: " MODE "\"1000\""},
        {"listen: {socket_mode: 8}\n", "1:23: " MODE "\"8\""},
        {"listen: {socket_mode: 10000000000000000000660}\n",
         "1:23: " MODE "\"10000000000000000000660\""},
        {"listen: {socket_mode: \"\"}\n", "1:23: " MODE "\"\""},
        {"epoch: 1999-12-31T23:59:59.999Z\n", "1:8: " EPOCH "\"1999-12-31T23:59:59.999Z\""},
        {"epoch: 9999-01-01\n", "1:8: " EPOCH "\"9999-01-01\""},
        {"epoch: yesterday\n", "1:8: " EPOCH "\"yesterday\""},
        {"coordinator: {pool: \"\"}\n", "1:21: " POOL "\"\""},
        {"coordinator: {pool: a/b}\n", "1:21: " POOL "\"a/b\""},
        {"state_dir: \"a\\nb\"\n",
         "1:12: expected a non-empty path for state_dir, found \"a\\x0ab\""},
        {"ids: {prefix: \"a b\"}\n", "1:15: expected at most 50 bytes of printable ASCII without "
                                     "spaces for ids.prefix, found \"a b\""},
    };
    (void)state;
    CHECK(cases);
}

#define ADDRESS                                                                                    \
    "expected tcp://HOST:PORT[?auth=MODE], unix:///PATH or unix:PATH for listen.redis, found "
#define UPSTREAM                                                                                   \
    "expected tcp://HOST:PORT with a PORT of 1..65535, unix:///PATH or unix:PATH, or \"\" for "    \
    "upstream.redis, found "
#define PROTECTED                                                                                  \
    "expected auth.mode required, or listen.allow_unprotected true, for an address that other "    \
    "hosts can reach, found "
#define LOOP  "expected the address of another server, found "
#define HOST  "expected a host name, or *. and the end of one for listen.http_hosts, found "
#define USERS "expected auth.users_file with auth mode required, found none"
#define URL                                                                                        \
    "expected redis://HOST:PORT/DB, redis+unix:///PATH, redis+sentinel://HOST:PORT,.../MASTER, "   \
    "sqlite:///PATH or static:0..32767 for coordinator.url, found "

static void test_addresses(void **state)
{
    static const struct wrong cases[] = {
        {"listen:\n  redis:\n  - tcp://a:1\n  - tcp://a:70000\n",
         "4:5: " ADDRESS "\"tcp://a:70000\""},
        {"listen: {redis: [\"tcp://h:1\", \"tcp://H:1\"]}\n",
         "1:31: expected each address once, found \"tcp://H:1\" again, also in listen.redis"},
        {"listen:\n  http: [\"unix:a\"]\n  redis: [\"unix:a\"]\n",
         "2:10: expected each address once, found \"unix:a\" again, also in listen.redis"},
        {"listen: {memcached: [\"tcp://127.0.0.1:6380\"]}\n",
         "1:22: expected each address once, found \"tcp://127.0.0.1:6380\" again, also in "
         "listen.redis"},
        {"listen:\n  redis: [\"tcp://localhost:1\", \"tcp://0.0.0.0:2\"]\n",
         "2:32: " PROTECTED "\"tcp://0.0.0.0:2\""},
        {"listen: {memcached: [\"tcp://[::]:2?auth=accept_any\"]}\n",
         "1:22: " PROTECTED "\"tcp://[::]:2?auth=accept_any\""},
        {"listen: {redis: [\"tcp://h:2?auth=off\"]}\nauth: {mode: required}\n",
         "1:18: " PROTECTED "\"tcp://h:2?auth=off\""},
        {"auth:\n  mode: required\n", "2:9: " USERS},
        {"listen:\n  http: [\"unix:a\", \"unix:b?auth=required\"]\n", "2:20: " USERS},
        {"listen: {redis: [\"tcp://h:2?auth=of\"]}\n", "1:18: " ADDRESS "\"tcp://h:2?auth=of\""},
        {"upstream: {redis: \"tcp://h:1?auth=off\"}\n", "1:19: " UPSTREAM "\"tcp://h:1?auth=off\""},
        {"upstream: {redis: \"unix:///s?auth=required\"}\n",
         "1:19: " UPSTREAM "\"unix:///s?auth=required\""},
        {"sequences:\n  define: [\"a --max 9\", \"ab\", \" a\", \"b\"]\n",
         "2:31: expected each sequence once for sequences.define, found \"a\" again"},
        {"upstream: {redis: \"tcp://127.0.0.1:6380\"}\n",
         "1:19: " LOOP "\"tcp://127.0.0.1:6380\", where sidflake itself listens: see listen.redis"},
        {"upstream:\n  memcached: unix:a\nlisten: {http: [\"unix:a\"]}\n",
         "2:14: " LOOP "\"unix:a\", where sidflake itself listens: see listen.http"},
        {"upstream: {redis: \"tcp://0.0.0.0:6380\"}\n",
         "1:19: " LOOP "\"tcp://0.0.0.0:6380\", where sidflake itself listens: see listen.redis"},
        {"upstream: {redis: \"tcp://h:0\"}\n", "1:19: " UPSTREAM "\"tcp://h:0\""},
        {"upstream: {redis: \"h:1\"}\n", "1:19: " UPSTREAM "\"h:1\""},
        {"listen: {http_hosts: [a.b, x.example.]}\n", "1:28: " HOST "\"x.example.\""},
        {"listen: {http_hosts: [a..b]}\n", "1:23: " HOST "\"a..b\""},
        {"listen: {http_hosts: [.a]}\n", "1:23: " HOST "\".a\""},
        {"listen: {http_hosts: [\"*.\"]}\n", "1:23: " HOST "\"*.\""},
        {"auth: {allow_uids: [4294967295]}\n", /* (uid_t)-1 is no user */
         "1:21: expected a number, 0..4294967294 for auth.allow_uids, found \"4294967295\""},
        {"auth: {allow_uids: [1, -1]}\n",
         "1:24: expected a number, 0..4294967294 for auth.allow_uids, found \"-1\""},
        {"coordinator: {url: redis}\n", "1:20: " URL "\"redis\""},
        {"coordinator: {url: \":1\"}\n", "1:20: " URL "\":1\""},
        {"coordinator:\n  auto_init: true\n  url: redis://u:secret@h\n",
         "2:14: expected coordinator.auto_init false, or sqlite:///PATH for coordinator.url, found "
         "\"redis://u:***@h\""},
        {"ids: {overflow: lend}\n", "1:17: expected wait|borrow for ids.overflow, found \"lend\""},
        {"clock: {on_rollback: stop}\n",
         "1:22: expected rotate|hold for clock.on_rollback, found \"stop\""},
        {"coordinator: {url: \"static:1\"}\nids: {overflow: borrow}\n",
         "2:17: expected \"wait\" with static:N, which has no coordinator that knows up to when "
         "IDs "
         "were issued; found \"borrow\""},
        {"coordinator: {url: \"static:1\"}\nclock: {on_rollback: hold}\n",
         "2:22: expected \"rotate\" with static:N, which has no coordinator that knows up to when "
         "IDs were issued; found \"hold\""},
    };
    (void)state;
    CHECK(cases);
}

static void test_too_many_items(void **state)
{
    char yaml[2000] = "listen:\n  redis: [\n";
    struct wrong w = {yaml, "67:1: expected at most 64 items for listen.redis, found more"};
    (void)state;
    for (int i = 0; i < 65; i++) {
        size_t n = strlen(yaml);
        (void)snprintf(yaml + n, sizeof yaml - n, "unix:%d,\n", i);
    }
    (void)strcat(yaml, "]\n");
    check(&w, 1);
}

/* 1024 names of four digits and n times c. */
static enum err_code load_names(char c, int n, struct err *e)
{
    static char yaml[1024 * 210];
    struct conf conf;
    int at = snprintf(yaml, sizeof yaml, "ids:\n  names:\n");
    for (int i = 0; i < 1024; i++) {
        at += snprintf(yaml + at, sizeof yaml - (size_t)at, "  - '%04d", i);
        memset(yaml + at, c, (size_t)n);
        at += n;
        at += snprintf(yaml + at, sizeof yaml - (size_t)at, "'\n");
    }
    enum err_code rc =
        conf_load_text(&conf, "f", span_of(yaml, (size_t)at), NULL, 0, NULL, NULL, e);
    if (!rc)
        conf_clear(&conf);
    return rc;
}

/* /metrics and /v1/status name them all, with a backslash before each of these. */
static void test_names_that_no_page_holds(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(load_names('x', 196, &e), ERR_OK);
    assert_int_equal(load_names('"', 98, &e), ERR_OK);
    assert_int_equal(load_names('\\', 98, &e), ERR_OK);
    assert_int_equal(load_names('\\', 99, &e), ERR_RANGE);
    assert_int_equal(load_names('"', 99, &e), ERR_RANGE);
    assert_string_equal(e.text, "f:3:3: expected at most 204800 bytes in all names, '\"' and '\\' "
                                "counted twice, for ids.names, found 206848");
}

/* Line and column survive a name that is too long for the text, which keeps the end of it. */
static void test_long_name(void **state)
{
    char name[1000];
    struct conf c;
    struct err e;
    (void)state;
    memset(name, 'd', sizeof name);
    memcpy(name + sizeof name - 8, "/f.yaml", 8);
    assert_int_equal(conf_load_text(&c, name, SPAN("x: 1\n"), NULL, 0, NULL, NULL, &e),
                     ERR_INVALID);
    assert_non_null(strstr(e.text, "d/f.yaml:1:1: expected one of " TOP_KEYS ", found \"x\""));
}

static void test_no_error_wanted(void **state)
{
    struct conf c;
    (void)state;
    assert_int_equal(conf_load_text(&c, "f", SPAN("x: 1\n"), NULL, 0, NULL, NULL, NULL),
                     ERR_INVALID);
    assert_int_equal(conf_load_text(&c, "f", SPAN("- ["), NULL, 0, NULL, NULL, NULL), ERR_INVALID);
    assert_int_equal(conf_load(&c, "/nonexistent", NULL, 0, NULL, NULL, NULL), ERR_IO);
    conf_clear(&c);
}

/* All that is wrong, in the order of the file, and no more of a value than that it is. */
static void test_all_at_once(void **state)
{
    static const char yaml[] = "listen:\n"
                               "  memcache: [{a: [1]}]\n"
                               "  redis: [\"tcp://127.0.0.1:99999\", \"unix:///x\", {a: {b: c}}]\n"
                               "limits:\n  batch: 0\n  batch: 5\n"
                               "log: [loud]\n"
                               "workers:\n  active: 99\n"
                               "state_dir: /x\n";
    static const char *const places[] = {"2:3", "3:11", "3:49", "5:10", "6:3", "7:6", "9:11"};
    struct conf c;
    struct err e;
    struct conf_list errors = {.n = 0};
    char *const sets[] = {strdup("limits.bach=1"), strdup("log.level=loud")};
    char *const env[] = {strdup("SIDFLAKE_IDS_PREFIX= "), NULL};
    size_t n = sizeof places / sizeof *places;
    (void)state;
    assert_int_equal(conf_load_text(&c, "f", span_str(yaml), sets, 2, env, &errors, &e),
                     ERR_INVALID);
    assert_int_equal(errors.n, n + 3);
    assert_string_equal(errors.item[0], e.text);
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(errors.item[i], "f:", 2);
        assert_memory_equal(errors.item[i] + 2, places[i], strlen(places[i]));
    }
    assert_memory_equal(errors.item[n], "environment SIDFLAKE_IDS_PREFIX: ", 33);
    assert_memory_equal(errors.item[n + 1], "--set: expected the path", 24);
    assert_memory_equal(errors.item[n + 2], "--set log.level: ", 17);
    conf_list_clear(&errors);
    free(sets[0]);
    free(sets[1]);
    free(env[0]);
}

static void test_no_end_of_errors(void **state)
{
    static char yaml[6 * 5000 + 1];
    struct conf c;
    struct err e;
    struct conf_list errors = {.n = 0};
    (void)state;
    for (size_t i = 0; i < 5000; i++)
        memcpy(yaml + 6 * i, "x: []\n", 6);
    assert_int_equal(conf_load_text(&c, "f", span_str(yaml), NULL, 0, NULL, &errors, &e),
                     ERR_INVALID);
    assert_int_equal(errors.n, CONF_ERRORS_MAX + 1);
    assert_string_equal(errors.item[CONF_ERRORS_MAX],
                        "more is wrong than these 64: the rest is not told");
    assert_memory_equal(e.text, "f:1:1: ", 7);
    conf_list_clear(&errors);
    yaml[6 * CONF_ERRORS_MAX] = '\0';
    assert_int_equal(conf_load_text(&c, "f", span_str(yaml), NULL, 0, NULL, &errors, &e),
                     ERR_INVALID);
    assert_int_equal(errors.n, CONF_ERRORS_MAX);
    assert_memory_equal(errors.item[CONF_ERRORS_MAX - 1], "f:64:1: ", 8);
    conf_list_clear(&errors);
}

static void check_all(const char *yaml, const char *const *want, size_t n)
{
    struct conf c;
    struct err e;
    struct conf_list errors = {.n = 0};
    assert_int_not_equal(conf_load_text(&c, "f", span_str(yaml), NULL, 0, NULL, &errors, &e), 0);
    assert_int_equal(errors.n, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(errors.item[i], want[i]);
    conf_list_clear(&errors);
}

/* What no single value shows: all of it, too, in the order of the file, whatever found it, and what
 * is in no file behind that. */
static void test_all_at_odds(void **state)
{
#define GUARD                                                                                      \
    "expected auth.mode required, or listen.allow_unprotected true, for an address that "          \
    "other hosts can reach, found "
#define OTHER "expected the address of another server, found "
    static const char yaml[] = "upstream:\n"
                               "  redis: tcp://127.0.0.1:1\n"
                               "  memcached: tcp://127.0.0.1:2\n"
                               "listen:\n"
                               "  http: [tcp://127.0.0.1:3, tcp://127.0.0.1:3]\n"
                               "  memcached: [tcp://127.0.0.1:2, tcp://0.0.0.0:4]\n"
                               "  redis: [tcp://127.0.0.1:1, tcp://0.0.0.0:5, tcp://127.0.0.1:2]\n"
                               "coordinator: {auto_init: true, url: \"redis://h:1/0\"}\n";
    static const char *const want[] = {
        "f:2:10: " OTHER "\"tcp://127.0.0.1:1\", where sidflake itself listens: see listen.redis",
        "f:3:14: " OTHER "\"tcp://127.0.0.1:2\", where sidflake itself listens: see "
        "listen.memcached",
        "f:5:29: expected each address once, found \"tcp://127.0.0.1:3\" again, also in "
        "listen.http",
        "f:6:34: " GUARD "\"tcp://0.0.0.0:4\"",
        "f:7:30: " GUARD "\"tcp://0.0.0.0:5\"",
        "f:7:47: expected each address once, found \"tcp://127.0.0.1:2\" again, also in "
        "listen.memcached",
        "f:8:26: expected coordinator.auto_init false, or sqlite:///PATH for coordinator.url, "
        "found "
        "\"redis://h:1/0\"",
        "--set upstream.redis_user: expected upstream.redis_password_file with "
        "upstream.redis_user, "
        "found none",
    };
    char *const sets[] = {strdup("upstream.redis_user=u")};
    struct conf c;
    struct err e;
    struct conf_list errors = {.n = 0};
    (void)state;
    assert_int_equal(conf_load_text(&c, "f", span_str(yaml), sets, 1, NULL, &errors, &e),
                     ERR_INVALID);
    for (size_t i = 0; i < errors.n && i < sizeof want / sizeof *want; i++)
        assert_string_equal(errors.item[i], want[i]);
    assert_int_equal(errors.n, sizeof want / sizeof *want);
    assert_string_equal(e.text, want[0]);
    conf_list_clear(&errors);
    free(sets[0]);
}

static enum err_code no_users(const char *path, struct err *e)
{
    return *path ? err_set(e, ERR_IO, "%s: expected a readable users file", path) : ERR_OK;
}

static enum err_code no_coordinator(const struct conf *c, struct err *e)
{
    return err_set(e, ERR_INVALID, "nothing at %s", c->coordinator_url);
}

/* Values and what is at odds among those that are right, in one list, and in the file's order. */
static void test_values_and_odds(void **state)
{
    (void)state;
    check_all("coordinator: {auto_init: true, url: \"redis://h:1/0\"}\n"
              "limits:\n  batch: 0\n"
              "upstream: {redis_user: u}\n"
              "log: {level: loud}\n",
              (const char *[]){"f:1:26: expected coordinator.auto_init false, or sqlite:///PATH "
                               "for coordinator.url, found \"redis://h:1/0\"",
                               "f:3:10: expected an integer 1..8192 for limits.batch, found \"0\"",
                               "f:4:24: expected upstream.redis_password_file with "
                               "upstream.redis_user, found none",
                               "f:5:14: expected error|warn|info|debug for log.level, found "
                               "\"loud\""},
              4);
}

/* What is wrong, or not where it belongs, is not held against others. */
static void test_odds_of_what_is_wrong(void **state)
{
    static const char *const cases[] = {
        "auth: {mode: required, users_file: [a]}\n",
        "auth: {mode: required, users_fil: /u}\n",
        "auth: {mode: required}\nauth: {users_file: /u}\n",
        "auth: [a]\nlisten: {redis: [\"tcp://0.0.0.0:1\"]}\n",
        "auths: {mode: required}\nlisten: {redis: [\"tcp://0.0.0.0:1\"]}\n",
        "listen: {redis: [\"tcp://127.0.0.1:1\", \"tcp://127.0.0.1:1\", x]}\n",
        "listen: {redis: [\"tcp://127.0.0.1:1\"]}\nupstream: {redis: 5}\n",
        "coordinator: {url: \"redis://h:1/0\", auto_init: sure}\n",
        "upstream: {redis_user: u, redis_password_file: [x]}\n",
        "auth: {mode: required}\nstate_dir: \"x\n", /* what follows may put it right */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conf c;
        struct conf_list errors = {.n = 0};
        assert_int_not_equal(
            conf_load_text(&c, "f", span_str(cases[i]), NULL, 0, NULL, &errors, NULL), 0);
        if (errors.n != 1)
            fail_msg("%s%s\n%s", cases[i], errors.item[0], errors.item[errors.n - 1]);
        conf_list_clear(&errors);
    }
}

static void test_judges(void **state)
{
    static const char yaml[] = "log: {level: loud}\n"
                               "auth: {mode: required, users_file: /none}\n"
                               "coordinator: {url: \"redis://h:1/0\"}\n";
    (void)state;
    conf_judges.users = no_users;
    conf_judges.coordinator = no_coordinator;
    check_all(yaml,
              (const char *[]){"f:1:14: expected error|warn|info|debug for log.level, found "
                               "\"loud\"",
                               "f:2:36: /none: expected a readable users file",
                               "f:3:20: nothing at redis://h:1/0"},
              3);
    conf_judges = (struct conf_judges){.url = NULL};
}

/* What libyaml takes for ever over: the file ends there, and what was wrong before is told. */
static void test_depth(void **state)
{
#define DEEP(column) "f:2:" column ": expected at most 16 levels in a value, found more"
    static const char *const lists[] = {"f:2:1: expected one of " TOP_KEYS ", found \"x\"",
                                        DEEP("20")};
    static const char *const items[] = {"f:2:11: expected 1..200 bytes of printable ASCII without "
                                        "spaces for ids.names, found a list",
                                        DEEP("27")};
    static const char *const keys[] = {"f:2:3: expected one of " TOP_KEYS ", found a mapping",
                                       DEEP("67")};
    (void)state;
    check_all("log: {}\nx: [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\ny: 1\n",
              (const char *[]){lists[0], "f:3:1: expected one of " TOP_KEYS ", found \"y\""}, 2);
    check_all("log: {}\nx: [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]\ny: 1\n", lists, 2);
    check_all("ids:\n  names: [[[[[[[[[[[[[[[[[[", items, 2);
    check_all("log: {}\n? {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1",
              keys, 2);
}

static void test_directives(void **state)
{
#define FOUR "%TAG !a! y\n%TAG !b! y\r%TAG !c! y\r\n%TAG !d! y\xc2\x85"
    static const struct wrong cases[] = {
        {FOUR FOUR FOUR FOUR "%TAG !e! y\n", "9:13: expected at most 16 lines that begin with %, "
                                             "found more"},
        {"%YAML 1.1\n%TAG !a! a:\n%TAG !b! b:\n---\nx: \"%\"\n",
         "5:1: expected one of " TOP_KEYS ", found \"x\""},
    };
    (void)state;
    CHECK(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_all_at_odds),
        cmocka_unit_test(test_values_and_odds),
        cmocka_unit_test(test_odds_of_what_is_wrong),
        cmocka_unit_test(test_judges),
        cmocka_unit_test(test_no_end_of_errors),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_too_many_items),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_no_error_wanted),
        cmocka_unit_test(test_names_that_no_page_holds),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_directives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
