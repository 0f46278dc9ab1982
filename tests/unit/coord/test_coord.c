#include "coord/coord.h"

#include "conf/option.h"
#include "coord/redis_url.h"
#include "support/coord_setup.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define assert_says(text, part)                                                                    \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("expected \"%s\" within \"%s\"", (part), (text));                             \
    } while (0)

static void every_value_has_a_name(void **state)
{
    (void)state;
    for (int s = COORD_OK; s <= COORD_DOWN; s++)
        assert_string_not_equal(coord_status_name((enum coord_status)s), "unknown");
    for (int f = 0; f < COORD_FAULTS; f++)
        assert_string_not_equal(coord_fault_name((enum coord_fault)f), "unknown");
    assert_string_equal(coord_status_name((enum coord_status)99), "unknown");
    assert_string_equal(coord_fault_name(COORD_FAULTS), "unknown");
}

static void tokens_go_to_text_and_back(void **state)
{
    (void)state;
    char text[COORD_TOKEN_TEXT];
    struct coord_token t = {{0x00, 0x1f, 0xa0, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
    struct coord_token back;
    assert_string_equal(coord_token_text(text, t), "001fa0ff0102030405060708090a0b0c");
    assert_true(coord_token_parse(span_str(text), &back));
    assert_true(coord_token_equal(t, back));
    back.b[15] ^= 1;
    assert_false(coord_token_equal(t, back));
    assert_false(coord_token_parse(SPAN("001fa0ff0102030405060708090a0b0"), &back));
    assert_false(coord_token_parse(SPAN("001fa0ff0102030405060708090a0b0c0"), &back));
    assert_false(coord_token_parse(SPAN("001FA0ff0102030405060708090a0b0c"), &back));
    assert_false(coord_token_parse(SPAN("001fa0ff0102030405060708090a0b0\0"), &back));
    assert_false(coord_token_equal(coord_token_new(rng_system()), coord_token_new(rng_system())));
}

static void fill_with_ones(struct rng *r, void *out, size_t n)
{
    (void)r;
    memset(out, 0xff, n);
}

/* Whoever can guess a token is taken for its holder; two pools of one UUID are one. */
static void each_byte_is_drawn(void **state)
{
    (void)state;
    struct rng ones = {fill_with_ones};
    char token[COORD_TOKEN_TEXT], uuid[COORD_UUID_TEXT];
    assert_string_equal(coord_token_text(token, coord_token_new(&ones)),
                        "ffffffffffffffffffffffffffffffff");
    assert_string_equal(coord_uuid_new(uuid, &ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

static void identities_are_made_and_read(void **state)
{
    (void)state;
    char id[COORD_IDENTITY_MAX];
    struct err e;
    int64_t epoch = 0;
    struct layout layout;
    struct span uuid = SPAN("01234567-89ab-4cde-8f01-23456789abcd");
    assert_int_equal(coord_identity_make(id, uuid, 1767225600000, &layout_usual, &e), ERR_OK);
    assert_string_equal(id, "01234567-89ab-4cde-8f01-23456789abcd|1767225600000|38.15.10");
    assert_int_equal(coord_identity_read(id, &epoch, &layout, &e), ERR_OK);
    assert_int_equal(epoch, 1767225600000);
    assert_int_equal(coord_identity_make(id, SPAN("x"), 0, &layout_usual, &e), ERR_INVALID);
    assert_int_equal(coord_identity_make(id, uuid, -1, &layout_usual, &e), ERR_RANGE);
    assert_int_equal(coord_identity_make(id, uuid, 253402300800000, &layout_usual, &e), ERR_RANGE);
    assert_says(e.text, "253402300800000");
    char fresh[COORD_UUID_TEXT];
    assert_int_equal(coord_identity_make(id, span_str(coord_uuid_new(fresh, rng_system())), 0,
                                         &layout_usual, &e),
                     ERR_OK);
}

static void odd_identities_are_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "",
        "|",
        "||",
        "01234567-89ab-4cde-8f01-23456789abcd",
        "01234567-89ab-4cde-8f01-23456789abcd|5",
        "01234567-89ab-4cde-8f01-23456789abcd|5|",
        "01234567-89ab-4cde-8f01-23456789abcd|5|41.10.12",
        "01234567-89ab-4cde-8f01-23456789abcd|5|38.15.10|",
        "01234567-89ab-4cde-8f01-23456789abcd|5|t38.w15.s10", /* the usual one's other spelling */
        "01234567-89ab-4cde-8f01-23456789abcd|5|z1.t41.w10.s12",
        "01234567-89ab-4cde-8f01-23456789abcd|5|t41.w010.s12",
        "01234567-89ab-4cde-8f01-23456789abcd|5|t41*1.w10.s12",
        "01234567-89ab-4cde-8f01-23456789abcd|5|twitter",
        "01234567-89ab-4cde-8f01-23456789abcd|5|t42.w10.s12",
        "01234567-89ab-4cde-8f01-23456789abcd|05|38.15.10",
        "01234567-89ab-4cde-8f01-23456789abcd|-5|38.15.10",
        "01234567-89AB-4cde-8f01-23456789abcd|5|38.15.10",
        "0123456789ab-4cde-8f01-23456789abcd-|5|38.15.10",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct err e;
        struct layout layout;
        int64_t epoch = -7;
        if (coord_identity_read(odd[i], &epoch, &layout, &e) != ERR_INVALID || epoch != -7)
            fail_msg("taken: %s", odd[i]);
        assert_says(e.text, "UUID|EPOCH_MS|LAYOUT");
    }
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void refuses(struct coord_params p, enum err_code code, const char *name, const char *found)
{
    struct err e = {.text = ""};
    assert_int_equal(coord_params_check(&p, &e), code);
    assert_says(e.text, name);
    assert_says(e.text, found);
}

static void parameters_keep_their_ranges(void **state)
{
    (void)state;
    struct err e;
    struct coord_params p = coord_params_default;
    assert_int_equal(coord_params_check(&p, &e), ERR_OK);
#define WITH(field, value) (p = coord_params_default, p.field = (value), p)
    refuses(WITH(horizon_ms, 59999), ERR_RANGE, "horizon: expected 60000 ms", "59999");
    refuses(WITH(horizon_ms, 86400001), ERR_RANGE, "to 86400000 ms", "86400001");
    refuses(WITH(first_horizon_ms, 0), ERR_RANGE, "first-horizon", "found 0");
    refuses(WITH(first_horizon_ms, 3600001), ERR_RANGE, "3600000", "3600001");
    refuses(WITH(max_skew_ms, 0), ERR_RANGE, "max-skew", "found 0");
    refuses(WITH(max_skew_ms, -5), ERR_RANGE, "max-skew", "found -5");
    refuses(WITH(max_skew_ms, 10000), ERR_RANGE, "3 times max-skew, which is 30000", "30000 ms");
    refuses(WITH(first_horizon_ms, 15000), ERR_RANGE, "15000", "found 15000");
    refuses(WITH(mature_after_ms, 4000), ERR_RANGE, "4 times max-skew, which is 8000",
            "found 4000");
    refuses(WITH(mature_after_ms, 20000), ERR_RANGE, "renewal interval", "found 20000");
    refuses(WITH(grace_ms, -1), ERR_RANGE, "grace", "found -1");
    refuses(WITH(worker_to, 32768), ERR_RANGE, "0-32767", "0-32768");
    refuses(WITH(worker_from, 32768), ERR_RANGE, "0-32767", "32768-32767");
    refuses(WITH(replicas, 101), ERR_RANGE, "replicas: expected 0 to 100", "found 101");
    p = WITH(replicas, 100);
    assert_int_equal(coord_params_check(&p, &e), ERR_OK);
    p = WITH(horizon_ms, 60000);
    p.first_horizon_ms = 60000;
    p.worker_from = p.worker_to = 32767;
    assert_int_equal(coord_params_check(&p, &e), ERR_OK);
    struct layout l;
    assert_int_equal(coord_params_fit(&p, &layout_usual, &e), ERR_OK);
    assert_int_equal(layout_parse(SPAN("twitter"), &l, &e), ERR_OK);
    p.worker_from = 1023;
    p.worker_to = 1024;
    assert_int_equal(coord_params_fit(&p, &l, &e), ERR_RANGE);
    assert_says(e.text, "within 0-1023");
    p.worker_to = 1023;
    assert_int_equal(coord_params_fit(&p, &l, &e), ERR_OK);
#undef WITH
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum err_code try_open(const char *url, const char *pool, const char *password,
                              struct err *e)
{
    struct coord *c = NULL;
    const struct coord_options o = {
        .url = span_str(url),
        .pool = span_str(pool),
        .password = span_str(password),
        .timeout_us = 1000000,
        .clock = clock_system(),
    };
    enum err_code code = coord_open(&o, &c, e);
    assert_int_equal(code == ERR_OK, c != NULL);
    coord_free(c);
    return code;
}

static void urls_choose_the_driver(void **state)
{
    (void)state;
    static const char *const good[] = {
        "redis://h",
        "redis://h:1/0",
        "redis://h/?db=3",
        "redis://h?db=3",
        "redis://[::1]",
        "redis://[::1]:6379/2",
        "redis://[fe80::1%eth0.100]:6379/0",
        "redis://127.1",
        "redis://redis.1:6379",
        "redis://h.",
        "redis://[fe80::1%eth0.100]",
        "redis://user:p%40ss@h:1",
        "redis://:p@h",
        "redis+unix:///run/redis.sock",
        "redis+unix:///run/a@b?db=9",
        "redis+unix://u:p@/run/redis.sock",
        "redis+sentinel://h/m",
        "redis+sentinel://h:1,[::1]:2,[fe80::1],i/my.master-1_?db=3",
        "redis+sentinel://u:p%2Cq@h:1,i:2/m",
        "redis+sentinel://a,b,c,d,e,f,g,h/m",
        "sqlite:///var/lib/x.db",
        "sqlite:x.db",
        "sqlite:/x.db",
        "static:0",
        "static:32767?epoch=2020-01-01T00:00:00Z",
        "static:1023?layout=twitter",
        "static:1023?layout=t41.w10.s12&epoch=2020-01-01T00:00:00Z",
        "static:32767?layout=baidu",
    };
    struct err e;
    coord_free(NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (try_open(good[i], "p", "", &e) != ERR_OK)
            fail_msg("%s: %s", good[i], e.text);
    }
    assert_int_equal(try_open("redis://user@h", "p", "secret", &e), ERR_OK);
}

/* conf knows no driver, so the forms stand there once more. */
static void the_option_says_each_drivers_form(void **state)
{
    (void)state;
    for (size_t i = 0; coord_drivers[i]; i++)
        assert_says(conf_options[CONF_COORDINATOR_URL].what, coord_drivers[i]->forms);
}

static void a_redis_url_has_its_parts(void **state)
{
    static const struct {
        const char *url, *user, *password, *host, *master;
        unsigned port, db;
    } all[] = {
        {"redis://h", "", "", "h", "", 6379, 0},
        {"redis://u:p%40q@[::1]:7/5", "u", "p@q", "::1", "", 7, 5},
        {"redis://u:p@q@h/?db=6", "u", "p@q", "h", "", 6379, 6},
        {"redis://:p@h", "", "p", "h", "", 6379, 0},
        {"redis+unix://u:p@/run/r@1?db=2", "u", "p", "/run/r@1", "", 0, 2},
        {"redis+sentinel://u:p@h,i:7/m?db=3", "u", "p", "h", "m", 26379, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct redis_url a;
        struct err e;
        assert_int_equal(redis_url_parse(&a, span_str(all[i].url), &e), ERR_OK);
        assert_int_equal(a.user.n, strlen(all[i].user));
        assert_memory_equal(a.user.b, all[i].user, a.user.n);
        assert_int_equal(a.password.n, strlen(all[i].password));
        assert_memory_equal(a.password.b, all[i].password, a.password.n);
        assert_string_equal(a.node[0].host, all[i].host);
        assert_string_equal(a.master, all[i].master);
        assert_int_equal(a.node[0].port, all[i].port);
        assert_int_equal(a.db, all[i].db);
    }
}

static void bad_urls_are_refused_without_their_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *url, *says;
    } bad[] = {
        {"", "no such scheme"},
        {"hunter2", "no such scheme"},
        {"hunter2@h:1", "no such scheme"},
        {"rediss://:hunter2@h", "\"rediss:\""},
        {"redis:h", "redis://HOST"},
        {"redis://", "host"},
        {"redis://:hunter2@", "host of 1 to"},
        {"redis://u:hunter2@:1", "host of 1 to"},
        {"redis://u:hunter2@h:0", "port"},
        {"redis://u:hunter2@h:65536", "port of 1 to 65535, found \"65536\""},
        {"redis://u:hunter2@h:", "port"},
        {"redis://u:hunter2@h:1/x", "database of 0 to 65535, found \"x\""},
        {"redis://u:hunter2@h:1/65536", "database"},
        {"redis://u:hunter2@h:1/1?x=1", "db=N after the ?, found \"x=1\""},
        {"redis://u:hun/ter2@h", "%2F"},
        {"redis://u:9/hunter2@h", "%2F"},
        {"redis://u:hunter2%zz@h", "hex digits after each % of the password"},
        {"redis://u:hunter2%4@h", "hex digits"},
        {"redis://u%:hunter2@h", "of the user"},
        {"redis://hunter2@h", "password with the user"},
        {"redis://h/1?", "db=N"},
        {"redis://[::1", "[IPV6]:PORT"},
        {"redis://[::1]x", "[IPV6]:PORT"},
        {"redis://h1,h2/0", "name or the address of a host, found \"h1,h2\""},
        {"redis://h../0", "found \"h..\""},
        {"redis://%68/0", "found \"%68\""},
        {"redis://[h]", "found \"h\""},
        {"redis+unix://", "socket path"},
        {"redis+unix://hunter2/run/s", "before the path"},
        {"redis+unix:///a?b=1", "db=N"},
        {"redis+sentinel://", "host of 1 to"},
        {"redis+sentinel:///m", "host of 1 to"},
        {"redis+sentinel://h", "expected /MASTER after the sentinels"},
        {"redis+sentinel://h/", "expected /MASTER"},
        {"redis+sentinel://h?db=1", "expected /MASTER"},
        {"redis+sentinel://h/m/0", "letters, digits, '.', '-' and '_', found \"m/0\""},
        {"redis+sentinel://h/m m", "found \"m m\""},
        {"redis+sentinel://h/m?x=1", "db=N after the ?"},
        {"redis+sentinel://h,/m", "host of 1 to"},
        {"redis+sentinel://h,,i/m", "host of 1 to"},
        {"redis+sentinel://h:1,i:0/m", "port of 1 to 65535, found \"0\""},
        {"redis+sentinel://a,b,c,d,e,f,g,h,i/m", "at most 8 sentinels"},
        {"redis+sentinel://u:hun/ter2@h/m", "%2F"},
        {"redis+sentinel://hunter2@h/m", "password with the user"},
        {"redis+sentinel://:hunter2@h:x/m", "port"},
        {"sqlite:", "sqlite:///PATH"},
        {"sqlite://x.db", "sqlite:///PATH"},
        {"sqlite:///x/", "of a file"},
        {"static:", "N of 0 to 32767"},
        {"static:32768", "found \"static:32768\""},
        {"static:-1", "N of 0"},
        {"static:1?epoch=x", "?epoch=YYYY"},
        {"static:1024?layout=twitter", "N of 0 to 1023"},
        {"static:32768?layout=baidu", "N of 0 to 32767"},
        {"static:1?layout=x", "found \"x\""},
        {"static:1?layout=", "found \"\""},
        {"static:1?layout=twitter&", "found \"\""},
        {"static:1?", "?epoch=YYYY"},
        {"redis://h\n", "found byte 0x0a"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {.text = ""};
        if (try_open(bad[i].url, "p", "", &e) == ERR_OK)
            fail_msg("taken: %s", bad[i].url);
        assert_says(e.text, bad[i].says);
        assert_null(strstr(e.text, "ter2"));
    }
}

/* Whoever looks for the right scheme is shown those of all drivers. */
static void a_scheme_that_none_has(void **state)
{
    struct err e = {.text = ""};
    (void)state;
    assert_int_equal(try_open("etcd://h", "p", "", &e), ERR_INVALID);
    for (size_t i = 0; coord_drivers[i]; i++)
        assert_says(e.text, coord_drivers[i]->forms);
    assert_says(e.text, " or static:");
}

static void other_options_are_checked(void **state)
{
    (void)state;
    struct err e;
    char longest[COORD_POOL_NAME_MAX];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(try_open("static:1", longest, "", &e), ERR_OK);
    assert_int_equal(try_open("static:1", "", "", &e), ERR_INVALID);
    assert_int_equal(try_open("static:1", "a}b", "", &e), ERR_INVALID);
    assert_says(e.text, "0x7d at 1");
    assert_int_equal(try_open("static:1", "a\xe9", "", &e), ERR_INVALID);
    char over[COORD_POOL_NAME_MAX + 1];
    memset(over, 'a', sizeof over);
    over[sizeof over - 1] = '\0';
    assert_int_equal(try_open("static:1", over, "", &e), ERR_INVALID);
    assert_says(e.text, "found 65");
    struct coord *c;
    struct coord_options o = {.url = SPAN("static:1"), .pool = SPAN("p"), .clock = clock_system()};
    assert_int_equal(coord_open(&o, &c, &e), ERR_RANGE);
    assert_says(e.text, "timeout");
    char who[COORD_WHO_MAX] = {0};
    o.timeout_us = 1000;
    o.who = span_of(who, sizeof who);
    assert_int_equal(coord_open(&o, &c, &e), ERR_RANGE);
    assert_says(e.text, "holder");
    assert_null(c);
}

static void public_urls_hold_no_secret(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"redis://h:1/2", "redis://h:1/2"},
        {"redis://u:p@h:1/2", "redis://h:1/2"},
        {"redis://u:p@q@h/2", "redis://h/2"},
        {"redis://u:p/q@h/2", "redis://h/2"},
        {"redis+unix://u:p@/a@b/c?db=1", "redis+unix:///a@b/c?db=1"},
        {"redis+unix:///a@b/c", "redis+unix:///a@b/c"},
        {"redis+sentinel://u:p@h:1,i/m?db=1", "redis+sentinel://h:1,i/m?db=1"},
        {"redis+sentinel://h:1,i/m", "redis+sentinel://h:1,i/m"},
        {"sqlite:///a@b", "sqlite:///a@b"},
        {"static:7", "static:7"},
        {"other://u:p@h", "other://h"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(coord_url_public(span_str(pairs[i][0]), out, sizeof out), ERR_OK);
        assert_string_equal(out, pairs[i][1]);
    }
    assert_int_equal(coord_url_public(SPAN("static:7"), out, 9), ERR_OK);
    assert_int_equal(coord_url_public(SPAN("static:7"), out, 8), ERR_RANGE);
    assert_string_equal(out, "");
}

/* ---- the wrappers ---------------------------------------------------------------------------- */

static unsigned asked;

static enum coord_status fake_claim(struct coord *c, const char *identity, int64_t caller_ms,
                                    struct coord_token nxt, struct coord_grant *out,
                                    struct coord_reply *r)
{
    (void)c, (void)identity, (void)caller_ms, (void)nxt, (void)r;
    asked++;
    out->worker = 5;
    return COORD_OK;
}

/* Lowers every ceiling, as no coordinator may. */
static enum coord_status fake_renew(struct coord *c, const char *identity,
                                    const struct coord_caller *by, struct coord_renewal *items,
                                    size_t n, struct coord_terms *terms, struct coord_reply *r)
{
    (void)c, (void)identity, (void)by, (void)terms, (void)r;
    asked++;
    for (size_t i = 0; i < n; i++) {
        items[i].how = COORD_HOW_RENEWED;
        items[i].hi_ms--;
    }
    return COORD_OK;
}

static enum coord_status fake_release(struct coord *c, const char *identity,
                                      const struct coord_release *item, struct coord_reply *r)
{
    (void)c, (void)identity, (void)item, (void)r;
    asked++;
    return COORD_OK;
}

static const struct coord_driver fake_driver = {
    .claim = fake_claim,
    .renew = fake_renew,
    .release = fake_release,
};

static void arguments_are_checked_before_the_driver(void **state)
{
    (void)state;
    struct coord c = {&fake_driver};
    struct coord_reply r;
    struct coord_grant g;
    struct coord_token t = setup_token(1);
    struct coord_renewal items[COORD_RENEW_MAX + 1] = {{.worker = 0}};
    struct coord_release gone = {.worker = 32768};
    char longest[COORD_IDENTITY_MAX + 1];
    memset(longest, 'x', sizeof longest);
    asked = 0;
    assert_int_equal(coord_claim(&c, longest, 1, t, &g, &r), COORD_REFUSED);
    assert_int_equal(coord_claim(&c, "", 1, t, &g, &r), COORD_REFUSED);
    assert_int_equal(coord_claim(&c, "a b", 1, t, &g, &r), COORD_REFUSED);
    assert_int_equal(coord_claim(&c, "a", -1, t, &g, &r), COORD_REFUSED);
    assert_says(r.err.text, "found -1");
    assert_int_equal(coord_renew(&c, "a", setup_caller(1), items, 0, setup_terms(), &r),
                     COORD_REFUSED);
    assert_int_equal(
        coord_renew(&c, "a", setup_caller(1), items, COORD_RENEW_MAX + 1, setup_terms(), &r),
        COORD_REFUSED);
    assert_int_equal(coord_renew(&c, "a", setup_caller(1), items, 2, setup_terms(), &r),
                     COORD_REFUSED);
    assert_says(r.err.text, "found 0 twice");
    items[0].hi_ms = -1;
    assert_int_equal(coord_renew(&c, "a", setup_caller(1), items, 1, setup_terms(), &r),
                     COORD_REFUSED);
    items[0] = (struct coord_renewal){.worker = 32768};
    assert_int_equal(coord_renew(&c, "a", setup_caller(1), items, 1, setup_terms(), &r),
                     COORD_REFUSED);
    assert_int_equal(coord_release(&c, "a", &gone, &r), COORD_REFUSED);
    gone = (struct coord_release){.has_last = true, .last_ms = -1};
    assert_int_equal(coord_release(&c, "a", &gone, &r), COORD_REFUSED);
    assert_int_equal(asked, 0);
    assert_int_equal(coord_claim(&c, "a", 1, t, &g, &r), COORD_OK);
    assert_int_equal(g.worker, 5);
    gone.last_ms = 0;
    assert_int_equal(coord_release(&c, "a", &gone, &r), COORD_OK);
    assert_int_equal(asked, 2);
}

static void a_lowered_ceiling_is_not_passed_on(void **state)
{
    (void)state;
    struct coord c = {&fake_driver};
    struct coord_reply r;
    struct coord_renewal items[2] = {{.worker = 1, .hi_ms = 100}, {.worker = 2, .hi_ms = 200}};
    assert_int_equal(coord_renew(&c, "a", setup_caller(1), items, 2, setup_terms(), &r),
                     COORD_REFUSED);
    assert_says(r.err.text, "at least 100 ms, found 99");
    assert_int_equal(items[0].hi_ms, 100);
    assert_int_equal(items[1].hi_ms, 200);
    assert_int_equal(items[1].how, COORD_HOW_LOST);
}

static void absent_operations_are_refused(void **state)
{
    (void)state;
    struct coord c = {&fake_driver};
    struct coord_reply r;
    struct coord_snapshot s;
    coord_idle(&c);
    assert_int_equal(coord_evict(&c, "a", 1, &r), COORD_REFUSED);
    assert_int_equal(coord_close(&c, "a", false, &r), COORD_REFUSED);
    assert_int_equal(coord_repair(&c, "a", NULL, 0, &r), COORD_REFUSED);
    assert_int_equal(coord_snapshot(&c, &s, &r), COORD_REFUSED);
    assert_says(r.err.text, "snapshot");
}

/* ---- the audit ------------------------------------------------------------------------------- */

static void the_audit_finds_each_fault(void **state)
{
    (void)state;
    static struct coord_audit a;
    struct coord_worker workers[] = {
        {.worker = 1, .held = true},                /* sound */
        {.worker = 2},                              /* lost */
        {.worker = 3, .held = true},                /* orphaned */
        {.worker = 4, .held = true},                /* queued */
        {.worker = 5},                              /* indexed */
        {.worker = 6, .unreadable = true},          /* unreadable, and no more to say */
        {.worker = 7, .held = true, .stale = true}, /* queued is sound for a stale one */
        {.worker = 200, .held = true},              /* not of the pool */
    };
    uint32_t queue[] = {0, 0, 4, 5, 6, 7, 8, 9, 9, 10, UINT32_MAX};
    uint16_t index[] = {1, 4, 5, 7, 201}; /* the last one is none of the pool's, either */
    const struct coord_snapshot s = {
        .pool.params.worker_to = 9,
        .workers = workers,
        .nworkers = 8,
        .queue = queue,
        .nqueue = 11,
        .index = index,
        .nindex = 5,
    };
    assert_int_equal(coord_audit(&s, &a), 7); /* the doubled and the queued are no harm */
    assert_int_equal(a.free, 5);              /* 0, 5, 7, 8, 9 */
    assert_int_equal(a.count[COORD_FAULT_DOUBLED], 2);
    assert_int_equal(a.count[COORD_FAULT_LOST], 1);
    assert_int_equal(a.count[COORD_FAULT_ORPHANED], 1);
    assert_int_equal(a.count[COORD_FAULT_QUEUED], 1);
    assert_int_equal(a.count[COORD_FAULT_INDEXED], 2);
    assert_int_equal(a.count[COORD_FAULT_UNREADABLE], 1);
    assert_int_equal(a.strangers, 2);
    assert_int_equal(a.faults[0], 1 << COORD_FAULT_DOUBLED);
    assert_int_equal(a.faults[1], 0);
    assert_int_equal(a.faults[2], 1 << COORD_FAULT_LOST);
    assert_int_equal(a.faults[3], 1 << COORD_FAULT_ORPHANED);
    assert_int_equal(a.faults[4], 1 << COORD_FAULT_QUEUED);
    assert_int_equal(a.faults[5], 1 << COORD_FAULT_INDEXED);
    assert_int_equal(a.faults[6], 1 << COORD_FAULT_UNREADABLE);
    assert_int_equal(a.faults[7], 0);
    assert_int_equal(a.faults[9], 1 << COORD_FAULT_DOUBLED);
    assert_int_equal(a.faults[200], 0);
    assert_int_equal(a.faults[201], 1 << COORD_FAULT_INDEXED);
}

static void an_unused_pool_lacks_nothing(void **state)
{
    (void)state;
    static struct coord_audit a;
    static uint32_t queue[COORD_WORKERS];
    struct coord_snapshot s = {
        .pool.params = coord_params_default, .queue = queue, .nqueue = COORD_WORKERS};
    for (uint32_t i = 0; i < COORD_WORKERS; i++)
        queue[i] = i;
    assert_int_equal(coord_audit(&s, &a), 0);
    s.nqueue--;
    assert_int_equal(coord_audit(&s, &a), 1);
    assert_int_equal(a.faults[COORD_WORKERS - 1], 1 << COORD_FAULT_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_name),
        cmocka_unit_test(tokens_go_to_text_and_back),
        cmocka_unit_test(each_byte_is_drawn),
        cmocka_unit_test(identities_are_made_and_read),
        cmocka_unit_test(odd_identities_are_refused),
        cmocka_unit_test(parameters_keep_their_ranges),
        cmocka_unit_test(urls_choose_the_driver),
        cmocka_unit_test(the_option_says_each_drivers_form),
        cmocka_unit_test(a_redis_url_has_its_parts),
        cmocka_unit_test(bad_urls_are_refused_without_their_secrets),
        cmocka_unit_test(a_scheme_that_none_has),
        cmocka_unit_test(other_options_are_checked),
        cmocka_unit_test(public_urls_hold_no_secret),
        cmocka_unit_test(arguments_are_checked_before_the_driver),
        cmocka_unit_test(a_lowered_ceiling_is_not_passed_on),
        cmocka_unit_test(absent_operations_are_refused),
        cmocka_unit_test(the_audit_finds_each_fault),
        cmocka_unit_test(an_unused_pool_lacks_nothing),
    };
    return cmocka_run_group_tests_name("coord/coord", tests, NULL, NULL);
}
