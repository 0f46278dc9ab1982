#include "conf/conf.h"
#include "conf/option.h"
#include "conf/protocol_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

#define DEFAULT_FILE "conf/sidflake.yaml"
#define SETS(...)    ((char *[]){__VA_ARGS__})
#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct conf load(const char *file, const char *yaml, char *const *sets, size_t nsets,
                        char *const *envp)
{
    struct conf c;
    struct err e;
    enum err_code rc =
        yaml ? conf_load_text(&c, "f.yaml", span_str(yaml), sets, nsets, envp, NULL, &e)
             : conf_load(&c, file, sets, nsets, envp, NULL, &e);
    if (rc != ERR_OK)
        fail_msg("expected a configuration, found %s", e.text);
    return c;
}

static struct conf load_yaml(const char *yaml)
{
    return load(NULL, yaml, NULL, 0, NULL);
}

static char *written(void (*write)(const struct conf *, FILE *), const struct conf *c)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    write(c, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void write_help(const struct conf *c, FILE *out)
{
    (void)c;
    conf_help(out);
}

static void check_same(const struct conf *a, const struct conf *b)
{
    const char *paths[CONF_OPTIONS_MAX];
    size_t n = conf_diff(a, b, paths);
    if (n > 0)
        fail_msg("expected equal configurations, found %zu options that differ, first %s", n,
                 paths[0]);
}

/* The contract's defaults, written out once more. */
static void test_defaults(void **state)
{
    struct conf c = load(NULL, NULL, NULL, 0, NULL);
    (void)state;
    assert_int_equal(c.listen_memcached.n, 1);
    assert_string_equal(c.listen_memcached.item[0], "tcp://127.0.0.1:11212");
    assert_int_equal(c.listen_redis.n, 1);
    assert_string_equal(c.listen_redis.item[0], "tcp://127.0.0.1:6380");
    assert_int_equal(c.listen_http.n, 1);
    assert_string_equal(c.listen_http.item[0], "tcp://127.0.0.1:9464");
    assert_int_equal(c.listen_socket_mode, 0660);
    assert_int_equal(c.listen_busy_poll_us, 0);
    assert_false(c.listen_allow_unprotected);
    assert_int_equal(c.auth_mode, CONF_AUTH_OFF);
    assert_string_equal(c.auth_users_file, "");
    assert_int_equal(c.auth_allow_uids.n, 0);
    assert_int_equal(c.auth_allow_gids.n, 0);
    assert_string_equal(c.ids_prefix, "id:");
    assert_int_equal(c.ids_names.n, 0);
    assert_string_equal(c.sequences_prefix, "seq:");
    assert_string_equal(c.sequences_numbers_prefix, "no:");
    assert_int_equal(c.sequences_cache_lasts_us, 60000000);
    assert_int_equal(c.sequences_cache_max, 1000000);
    assert_int_equal(c.sequences_counters, 1024);
    assert_int_equal(c.sequences_define.n, 0);
    assert_string_equal(c.coordinator_url, "sqlite:///var/lib/sidflake/pool.db");
    assert_string_equal(c.coordinator_password_file, "");
    assert_string_equal(c.coordinator_pool, "default");
    assert_false(c.coordinator_auto_init);
    assert_false(c.coordinator_static_unsafe);
    assert_int_equal(c.coordinator_timeout_us, 1000000);
    assert_int_equal(c.workers_active, 1);
    assert_int_equal(c.workers_spare, 1);
    assert_int_equal(c.lease_renew_every_us, 20000000);
    assert_int_equal(c.lease_on_stop, CONF_ON_STOP_RETURN);
    assert_int_equal(c.clock_wait_below_us, 15000);
    assert_false(conf_is_ahead(&c));
    assert_true(c.epoch_ms == CONF_EPOCH_OF_POOL);
    assert_string_equal(c.state_dir, "/var/lib/sidflake");
    assert_int_equal(c.limits_connections, 4096);
    assert_int_equal(c.limits_idle_timeout_us, 0);
    assert_int_equal(c.limits_max_wait_us, 100000);
    assert_int_equal(c.limits_batch, 1024);
    assert_int_equal(c.log_level, LOG_LVL_INFO);
    assert_int_equal(c.log_format, LOG_FMT_TEXT);
    assert_int_equal(c.warnings.n, 0);
    conf_clear(&c);
    conf_clear(&c);
}

/* Each option stands in the shipped file, under its group, and with its default. */
static void test_shipped_file(void **state)
{
    struct conf c = load(DEFAULT_FILE, NULL, NULL, 0, NULL);
    struct conf defaults = load(NULL, NULL, NULL, 0, NULL);
    char line[200], group[40] = "", path[80];
    bool seen[CONF_OPTIONS] = {false};
    (void)state;
    check_same(&c, &defaults);
    assert_int_equal(c.warnings.n, 0);
    FILE *f = fopen(DEFAULT_FILE, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        bool inner = strncmp(line, "  ", 2) == 0;
        char *key = line + (inner ? 2 : 0), *colon = strchr(key, ':');
        if (!colon || *key == '#' || *key == ' ')
            continue;
        *colon = '\0';
        if (!inner)
            (void)snprintf(group, sizeof group, "%s", key);
        (void)snprintf(path, sizeof path, "%s%s%s", inner ? group : "", inner ? "." : "", key);
        const struct conf_option *o = conf_option_find(span_str(path));
        if (o)
            seen[conf_option_id(o)] = true;
    }
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        if (!seen[i])
            fail_msg("expected %s in " DEFAULT_FILE ", found nothing", conf_options[i].path);
    conf_clear(&c);
    conf_clear(&defaults);
}

static void test_dev_file(void **state)
{
    struct conf c = load("conf/sidflake.dev.yaml", NULL, NULL, 0, NULL);
    (void)state;
    assert_int_equal(c.listen_memcached.n, 2);
    assert_string_equal(c.listen_redis.item[1], "unix:build/dev/redis.sock");
    assert_true(c.coordinator_auto_init);
    assert_int_equal(c.warnings.n, 0);
    conf_clear(&c);
}

/* One value per option that is not its default, at a bound where there is one. */
static const char every_option[] =
    "listen:\n  memcached: [\"unix:///run/m\", \"tcp://[::1]:0\", \"tcp://[::1]:0\"]\n"
    "  redis: []\n  http:\n  - 'tcp://h:80'\n  socket_mode: 0777\n  busy_poll: 1ms\n"
    "  allow_unprotected: true\n  http_hosts: [ids.example.com, '*.lan']\n"
    "auth: {mode: accept_any, users_file: /u, allow_uids: [0, 4294967294], allow_gids: [5]}\n"
    "upstream: {memcached: 'unix:///m', redis: 'tcp://r:1', timeout: 1h, buffer: 64MiB, "
    "connections: 1000000, ping: "
    "there}\n"
    "ids: {prefix: '', names: [\"a,b\", '\"\\'], overflow: borrow}\n"
    "sequences: {prefix: 's:', numbers_prefix: 'n:', cache_lasts: 1d, cache_max: 1, counters: "
    "65536, define: [\"a --max "
    "9\"]}\n"
    "coordinator: {url: \"redis://u:p@h:1/0\", password_file: \"\", pool: A_.-9, timeout: 10ms,\n"
    "  static_unsafe: true}\n"
    "workers: {active: 16, spare: 0}\nlease: {renew_every: 1h, on_stop: keep}\n"
    "clock: {wait_below: 0, on_rollback: hold}\nepoch: 2000-01-01\nlayout: sonyflake\nstate_dir: "
    "\"\xc3\xa4\\u20ac\"\n"
    "limits: {connections: 1000000, http_connections: 1, memory: 2047MiB, login_timeout: 1h,\n"
    "  request_timeout: 30d, idle_timeout: 30d, max_wait: 60s, batch: 8192}\n"
    "log: {level: debug, format: json}\n";

static void test_values(void **state)
{
    struct conf c = load_yaml(every_option);
    struct conf defaults = load(NULL, NULL, NULL, 0, NULL);
    const char *paths[CONF_OPTIONS_MAX];
    (void)state;
    assert_int_equal(c.listen_memcached.n, 3);
    assert_int_equal(c.listen_redis.n, 0);
    assert_string_equal(c.listen_http.item[0], "tcp://h:80");
    assert_int_equal(c.listen_socket_mode, 0777);
    assert_int_equal(c.listen_busy_poll_us, 1000);
    assert_true(c.listen_allow_unprotected);
    assert_string_equal(c.listen_http_hosts.item[1], "*.lan");
    assert_int_equal(c.auth_mode, CONF_AUTH_ACCEPT_ANY);
    assert_string_equal(c.auth_users_file, "/u");
    assert_string_equal(c.auth_allow_uids.item[1], "4294967294");
    assert_int_equal(c.auth_allow_gids.n, 1);
    assert_string_equal(c.upstream_memcached, "unix:///m");
    assert_string_equal(c.upstream_redis, "tcp://r:1");
    assert_int_equal(c.upstream_timeout_us, INT64_C(3600000000));
    assert_int_equal(c.upstream_buffer, 64 << 20);
    assert_int_equal(c.upstream_connections, 1000000);
    assert_int_equal(c.upstream_ping, CONF_PING_THERE);
    assert_string_equal(c.ids_prefix, "");
    assert_string_equal(c.ids_names.item[0], "a,b");
    assert_string_equal(c.ids_names.item[1], "\"\\");
    assert_string_equal(c.sequences_prefix, "s:");
    assert_string_equal(c.sequences_numbers_prefix, "n:");
    assert_int_equal(c.sequences_cache_lasts_us, INT64_C(86400000000));
    assert_string_equal(c.sequences_define.item[0], "a --max 9");
    assert_string_equal(c.coordinator_url, "redis://u:p@h:1/0");
    assert_int_equal(c.coordinator_timeout_us, 10000);
    assert_int_equal(c.lease_renew_every_us, INT64_C(3600000000));
    assert_int_equal(c.lease_on_stop, CONF_ON_STOP_KEEP);
    assert_int_equal(c.epoch_ms, INT64_C(946684800000));
    assert_string_equal(c.layout, "sonyflake");
    assert_int_equal(c.ids_overflow, CONF_OVERFLOW_BORROW);
    assert_int_equal(c.clock_on_rollback, CONF_ROLLBACK_HOLD);
    assert_string_equal(c.state_dir, "\xc3\xa4\xe2\x82\xac");
    assert_int_equal(c.limits_idle_timeout_us, INT64_C(2592000000000));
    assert_int_equal(c.limits_memory, 2047u << 20);
    assert_int_equal(c.limits_request_timeout_us, INT64_C(2592000000000));
    assert_int_equal(c.limits_max_wait_us, 60000000);
    assert_int_equal(c.log_level, LOG_LVL_DEBUG);
    assert_int_equal(c.log_format, LOG_FMT_JSON);
    /* All but auto_init, password files and those who have one, which cannot be changed without
     * SQLite or a file. */
    assert_int_equal(conf_diff(&c, &defaults, paths), CONF_OPTIONS - 6);
    assert_string_equal(paths[0], "listen.memcached");
    conf_clear(&c);
    conf_clear(&defaults);
}

static void test_dump(void **state)
{
    struct conf c = load_yaml(every_option);
    char *text = written(conf_dump, &c);
    struct conf again = load_yaml(text);
    const char *paths[CONF_OPTIONS_MAX];
    (void)state;
    assert_null(strstr(text, "u:p@"));
    assert_non_null(strstr(text, "  url: \"redis://u:***@h:1/0\"\n"));
    assert_non_null(strstr(text, "limits:\n  connections: 1000000\n  http_connections: 1\n"));
    assert_int_equal(conf_diff(&c, &again, paths), 1);
    assert_string_equal(paths[0], "coordinator.url");
    /* the masked password, users nobody needs, logins, what is kept for a start */
    assert_int_equal(again.warnings.n, 4);
    free(text);
    conf_clear(&c);
    conf_clear(&again);
}

static void test_empty_files(void **state)
{
    static const char *const empty[] = {"",    "\n# nothing\n", "---\n",
                                        "~\n", "{}\n",          "limits:\nlog: ~\nids: {}\n"};
    struct conf defaults = load(NULL, NULL, NULL, 0, NULL);
    (void)state;
    for (size_t i = 0; i < COUNT(empty); i++) {
        struct conf c = load_yaml(empty[i]);
        check_same(&c, &defaults);
        conf_clear(&c);
    }
    conf_clear(&defaults);
}

static void test_help(void **state)
{
    char *text = written(write_help, NULL), *at = text;
    (void)state;
    for (int line = -1; line < (int)CONF_OPTIONS; line++) {
        char *end = strchr(at, '\n');
        assert_non_null(end);
        *end = '\0';
        const char *path = line < 0 ? "# PATH" : conf_options[line].path;
        if (strncmp(at, path, strlen(path)) != 0 || strncmp(at + strlen(path), "  ", 2) != 0)
            fail_msg("expected %s first, found %s", path, at);
        size_t columns = 1;
        for (char *gap = at; (gap = strstr(gap, "  ")); columns++)
            gap += strspn(gap, " ");
        if (columns != 5)
            fail_msg("expected 5 columns, found %zu in %s", columns, at);
        at = end + 1;
    }
    assert_string_equal(at, "");
    free(text);
}

static void test_file_errors(void **state)
{
    static const char name[] = "build/test_conf.yaml";
    struct conf c;
    struct err e;
    (void)state;
    assert_int_equal(conf_load(&c, "/nonexistent/f", NULL, 0, NULL, NULL, &e), ERR_IO);
    assert_string_equal(
        e.text, "/nonexistent/f: expected a readable file, found: No such file or directory");
    assert_int_equal(conf_load(&c, "/", NULL, 0, NULL, NULL, &e), ERR_IO);
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (size_t i = 0; i < CONF_FILE_MAX; i++)
        (void)fputc('\n', f);
    assert_int_equal(fflush(f), 0);
    c = load(name, NULL, NULL, 0, NULL);
    conf_clear(&c);
    (void)fputc('\n', f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(conf_load(&c, name, NULL, 0, NULL, NULL, &e), ERR_RANGE);
    (void)unlink(name);
}

static void refuses_again(const char *file, const char *why)
{
    struct conf c;
    struct err e;
    assert_int_equal(conf_reload(&c, file, NULL, 0, NULL, NULL, &e), ERR_INVALID);
    if (!strstr(e.text, why))
        fail_msg("expected \"%s\", found \"%s\"", why, e.text);
}

/* Not what a start would take: a disk that was full, or somebody else, may have left it. */
static void test_read_again(void **state)
{
    static const char name[] = "build/test_conf_again.yaml";
    (void)state;
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    struct conf c = load(name, NULL, NULL, 0, NULL);
    conf_clear(&c);
    refuses_again(name, ": expected options, or {} for none, found an empty file");
    static const char *const nothing[] = {"\n", "# options:\n", "\xef\xbb\xbf", "---\n", "~\n"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        assert_int_equal(ftruncate(fileno(f), 0), 0);
        rewind(f);
        assert_true(fputs(nothing[i], f) >= 0 && fflush(f) == 0);
        refuses_again(name, ": expected options, or {} for none, found an empty file");
    }
    assert_int_equal(ftruncate(fileno(f), 0), 0);
    rewind(f);
    refuses_again("/dev/null", "/dev/null: expected a regular file, found another kind");
    refuses_again("/", "/: expected a regular file, found another kind");
    (void)fputs("{}\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(conf_reload(&c, name, NULL, 0, NULL, NULL, NULL), ERR_OK);
    conf_clear(&c);
    (void)unlink(name);
}

/* What commands that are printed say of a password: its file, a word for one, or nothing. */
static void test_password_word(void **state)
{
    static char bare[] = "coordinator.url=redis://h:6379/0",
                in_url[] = "coordinator.url=redis://:secret@h:6379/0";
    (void)state;
    struct conf c = load(NULL, NULL, SETS(bare), 1, NULL);
    assert_string_equal(conf_password_word(&c), "");
    conf_clear(&c);
    c = load(NULL, NULL, SETS(in_url), 1, NULL);
    assert_string_equal(conf_password_word(&c), "FILE");
    conf_clear(&c);
    c = load(NULL, NULL, SETS(bare), 1, NULL);
    free(c.coordinator_password_file);
    c.coordinator_password_file = strdup("/p");
    assert_string_equal(conf_password_word(&c), "/p");
    conf_clear(&c);
}

/* Of one workerId there is none to spare. */
static void test_spare(void **state)
{
    static char fixed[] = "coordinator.url=static:5";
    (void)state;
    struct conf c = load(NULL, NULL, NULL, 0, NULL);
    assert_int_equal(conf_spare(&c), c.workers_spare);
    assert_true(c.workers_spare > 0);
    conf_clear(&c);
    c = load(NULL, NULL, SETS(fixed), 1, NULL);
    assert_true(c.workers_spare > 0);
    assert_int_equal(conf_spare(&c), 0);
    conf_clear(&c);
}

/* What a password file may be is base/test_passfile's; here, that it is read and blamed. */
static void test_password(void **state)
{
    static const char name[] = "build/test_conf.password";
    char set[] = "coordinator.password_file=build/test_conf.password", out[PASSFILE_MAX + 1] = "x";
    struct err e;
    (void)state;
    struct conf c = load(NULL, NULL, NULL, 0, NULL);
    assert_int_equal(conf_password(&c, out, &e), ERR_OK);
    assert_string_equal(out, "");
    conf_clear(&c);
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs("two\nlines\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    c = load(NULL, NULL, SETS(set), 1, NULL);
    assert_int_equal(conf_password(&c, out, &e), ERR_OK);
    assert_string_equal(out, "two\nlines");
    assert_int_equal(truncate(name, 0), 0);
    assert_int_equal(conf_password(&c, out, &e), ERR_RANGE);
    conf_clear(&c);
    assert_int_equal(conf_load(&c, NULL, SETS(set), 1, NULL, NULL, &e), ERR_RANGE);
    assert_string_equal(e.text, "--set coordinator.password_file: expected 1..1024 bytes in "
                                "coordinator.password_file, found none");
    (void)unlink(name);
    assert_int_equal(conf_load_text(&c, "f", SPAN("coordinator:\n  password_file: /nonexistent\n"),
                                    NULL, 0, NULL, NULL, &e),
                     ERR_IO);
    assert_string_equal(e.text, "f:2:18: expected a readable file for coordinator.password_file, "
                                "found \"/nonexistent\": No such file or directory");
}

static void check_refused(const char *yaml, enum err_code code, const char *text)
{
    struct conf c;
    struct err e;
    assert_int_equal(conf_load_text(&c, "f", span_str(yaml), NULL, 0, NULL, NULL, &e), code);
    assert_string_equal(e.text, text);
}

/* A login at an upstream is a user and a password, or for Redis a password. */
static void test_upstream_logins(void **state)
{
    static const char name[] = "build/test_conf.upstream";
    static const char both[] =
        "upstream: {redis: 'tcp://h:1', redis_user: u, redis_password_file: build/"
        "test_conf.upstream, memcached_user: m, memcached_password_file: build/"
        "test_conf.upstream}\n";
    char out[PASSFILE_MAX + 1];
    struct err e;
    (void)state;
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs("secret\n", f) >= 0);
    assert_int_equal(fchmod(fileno(f), 0600), 0);
    assert_int_equal(fclose(f), 0);
    struct conf c = load_yaml(both);
    assert_string_equal(c.upstream_redis_user, "u");
    assert_string_equal(c.upstream_memcached_user, "m");
    assert_int_equal(conf_protocol_password(&c, conf_protocol_find("redis"), out, &e), ERR_OK);
    assert_string_equal(out, "secret");
    assert_int_equal(conf_protocol_password(&c, conf_protocol_find("http"), out, &e), ERR_OK);
    assert_string_equal(out, "");
    assert_int_equal(c.warnings.n, 1);
    assert_non_null(strstr(c.warnings.item[0], "there is no upstream.memcached to log in at"));
    conf_clear(&c);
    check_refused("upstream:\n  redis_user: u\n", ERR_INVALID,
                  "f:2:15: expected upstream.redis_password_file with upstream.redis_user, found "
                  "none");
    check_refused("upstream:\n  memcached_password_file: build/test_conf.upstream\n", ERR_INVALID,
                  "f:2:28: expected upstream.memcached_user with "
                  "upstream.memcached_password_file, found none");
    f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs("sec ret\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    check_refused("upstream:\n  memcached_user: u\n  memcached_password_file: build/"
                  "test_conf.upstream\n",
                  ERR_INVALID,
                  "f:3:28: expected a password without spaces for "
                  "upstream.memcached_password_file, found one with");
    (void)unlink(name);
    check_refused("upstream:\n  redis_password_file: /nonexistent\n", ERR_IO,
                  "f:2:24: expected a readable file for upstream.redis_password_file, found "
                  "\"/nonexistent\": No such file or directory");
}

/* It gives out no IDs there without users. */
static void test_http_guards_itself(void **state)
{
    (void)state;
    struct conf c = load_yaml("listen: {http: ['tcp://0.0.0.0:9464']}\n");
    assert_string_equal(c.listen_http.item[0], "tcp://0.0.0.0:9464");
    conf_clear(&c);
}

/* A template has them, too. */
static void test_commas_within_a_part_are_no_ends(void **state)
{
    char set[] =
        "sequences.define=a --template @{date,%Y}-@{seq,width=5},b --max 9 , c @,d {,e @{f,";
    static const char *const items[] = {"a --template @{date,%Y}-@{seq,width=5}", "b --max 9",
                                        "c @", "d {", "e @{f,"};
    (void)state;
    struct conf c = load(NULL, NULL, SETS(set), 1, NULL);
    assert_int_equal(c.sequences_define.n, COUNT(items));
    for (size_t i = 0; i < COUNT(items); i++)
        assert_string_equal(c.sequences_define.item[i], items[i]);
    conf_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_shipped_file),
        cmocka_unit_test(test_dev_file),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_file_errors),
        cmocka_unit_test(test_read_again),
        cmocka_unit_test(test_password_word),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_password),
        cmocka_unit_test(test_upstream_logins),
        cmocka_unit_test(test_http_guards_itself),
        cmocka_unit_test(test_commas_within_a_part_are_no_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
