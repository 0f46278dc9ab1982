#include "lease/recovery.h"
#include "lease/terms.h"

#include <limits.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define IDENTITY "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10"

static const char *with_password(const struct lease *l, const char *url, const char *file,
                                 size_t cap)
{
    static char text[1024];
    struct buf b;
    buf_init(&b, text, cap);
    recovery_put_command(&b, l,
                         &(struct recovery_place){.url = url, .pool = "p", .password_file = file});
    if (b.failed)
        return "";
    text[b.n] = '\0';
    return text;
}

static const char *command(const struct lease *l, const char *url, size_t cap)
{
    return with_password(l, url, NULL, cap);
}

static void all_that_the_pool_was_is_said(void **state)
{
    (void)state;
    static struct lease l = {.last_identity = IDENTITY, .last_known = true};
    l.last_params = (struct coord_params){.horizon_ms = 24 * 3600 * 1000,
                                          .first_horizon_ms = 30000,
                                          .mature_after_ms = 150000,
                                          .max_skew_ms = 1500,
                                          .grace_ms = 0,
                                          .replicas = 2,
                                          .worker_from = 100,
                                          .worker_to = 199};
    l.last_settle_ms = 600000;
    l.last_least_ms = 40000;
    assert_string_equal(
        command(&l, "redis://h:6379/0", 1000),
        "sidflakectl pool init --coordinator redis://h:6379/0 --pool p --after-loss --uuid "
        "11111111-2222-4333-8444-555555555555 --epoch 2026-01-01T00:00:00.000Z --workers 100-199 "
        "--horizon 1d --first-horizon 30s --mature-after 150s --max-skew 1500ms --grace 0s "
        "--replicas 2 --settle 10m --least-settle 40s");
    l.last_settle_ms = 0;
    assert_non_null(strstr(command(&l, "redis://h:6379/0", 1000), "2 --least-settle 40s"));
    l.last_least_ms = 0;
    l.last_ahead_ms = COORD_AHEAD_MAX_MS; /* of a pool before it: whoever has its ranges goes on */
    assert_non_null(strstr(command(&l, "redis://h:6379/0", 1000), "--replicas 2 --ahead 1442m"));
    assert_string_equal(command(&l, "redis://h:6379/0", 200), ""); /* whole or not at all */
}

static void a_pool_that_is_there_is_said_to_the_millisecond(void **state)
{
    (void)state;
    static struct coord_pool p = {.identity = IDENTITY, .epoch_ms = INT64_C(1767225600000)};
    char text[512];
    struct buf b;
    p.layout = layout_usual;
    p.params = coord_params_default;
    p.params.horizon_ms = 5399000;
    p.later = (struct coord_later){.settle_ms = 60000,
                                   .settle_before_ms = 630001,
                                   .settle_from_ms = 2000,
                                   .ahead_ms = 86404001};
    buf_init(&b, text, sizeof text - 1);
    recovery_put_pool(&b, &p, 1999); /* the shorter settle does not count yet */
    text[b.n] = '\0';
    assert_string_equal(text,
                        " --uuid 11111111-2222-4333-8444-555555555555 --epoch "
                        "2026-01-01T00:00:00.000Z --workers 0-32767 --horizon 5399s "
                        "--first-horizon 30s --mature-after 2m --max-skew 2s --grace 1m "
                        "--replicas 0 --settle 630001ms --least-settle 1m --ahead 86404001ms");
    p.later.settle_ms = 0;
    p.later.least_ms = 45000; /* raised since, and data of its time may come back */
    buf_init(&b, text, sizeof text - 1);
    recovery_put_pool(&b, &p, 2000);
    text[b.n] = '\0';
    assert_null(strstr(text, " --settle")); /* the horizon, which is none */
    assert_non_null(strstr(text, "--replicas 0 --least-settle 45s"));
    p.later.settle_ms = p.later.least_ms = 0;
    buf_init(&b, text, sizeof text - 1);
    recovery_put_pool(&b, &p, 2000);
    text[b.n] = '\0';
    assert_null(strstr(text, "-settle"));
}

/* What was granted by that time counts, as far as --ahead can say. */
static void a_pool_whose_clock_was_ahead_is_made_again_behind_that(void **state)
{
    (void)state;
    char text[512];
    struct buf b;
    struct coord_pool p = {.identity = IDENTITY, .params = coord_params_default};
    const int64_t now = INT64_C(1800000000000), hour = 3600000, skews = 4000;
    const struct {
        int64_t ahead_ms;
        const char *expected; /* NULL: there are none */
    } cases[] = {
        {0, ""},
        {skews, ""},
        {skews + 1, " --ahead 3608001ms"},
        {hour, " --ahead 7204s"},
        {COORD_AHEAD_MAX_MS - hour - skews, " --ahead 1442m"},
        {COORD_AHEAD_MAX_MS - hour - skews + 1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.tmax_ms = now + cases[i].ahead_ms;
        buf_init(&b, text, sizeof text - 1);
        recovery_put_pool(&b, &p, now);
        text[b.n] = '\0';
        assert_int_equal(b.failed, !cases[i].expected);
        if (cases[i].expected)
            assert_string_equal(strstr(text, " --replicas 0") + 13, cases[i].expected);
    }
}

/* What it was granted itself tells a holder by how much it was ahead, and so does the pool that is
 * made again by what each holder says. */
static void a_holder_that_was_granted_more_says_so(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1800000000000), hour = 3600000, reach = hour + 4000;
    const struct {
        int64_t left_ms, last_ms, told_ms; /* of its range; what follows */
    } cases[] = {
        {reach, 0, 0},
        {reach + 1, reach + 2001, reach + 2001},
        {25 * hour, 25 * hour + 2000, COORD_AHEAD_MAX_MS}, /* more than can be told */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lease l = {.last_identity = IDENTITY, .last_params = coord_params_default};
        struct coord_reply r = {.now_ms = now}; /* its own clock may be wrong */
        l.slot[1].rec =
            (struct page_record){.state = PAGE_HELD, .hi_ms = now - 1 + cases[i].left_ms};
        terms_learn_loss(&l, &r, now - 10 * hour);
        assert_int_equal(l.last_ahead_ms, 0); /* of a pool that it does not know */
        l.last_known = true;
        terms_learn_loss(&l, &r, now - 10 * hour);
        assert_int_equal(l.last_ahead_ms, cases[i].last_ms);
        assert_int_equal(l.ahead_ms, cases[i].told_ms);
        bool whole = cases[i].last_ms <= COORD_AHEAD_MAX_MS;
        assert_int_equal(*command(&l, "redis://h:6379/0", 1000) != '\0', whole);
        terms_learn_loss(&l, &(struct coord_reply){.now_ms = 0}, now + hour);
        assert_int_equal(l.last_ahead_ms, cases[i].last_ms); /* it only rises */
    }
}

/* A pool of the usual one in its place would be no pool of these sidecars'. */
static void the_layout_of_a_lost_pool_is_said(void **state)
{
    (void)state;
    static struct lease l = {.last_identity =
                                 "11111111-2222-4333-8444-555555555555|1767225600000|t41.w5+5.s12"};
    assert_string_equal(
        command(&l, "redis://h", 1000),
        "sidflakectl pool init --coordinator redis://h --pool p --after-loss --uuid "
        "11111111-2222-4333-8444-555555555555 --epoch 2026-01-01T00:00:00.000Z --layout "
        "t41.w5+5.s12");
    static struct lease none = {.conf = {.layout_pinned = true}};
    assert_int_equal(layout_parse(SPAN("sonyflake"), &none.conf.layout, NULL), ERR_OK);
    assert_string_equal(command(&none, "redis://h", 1000),
                        "sidflakectl pool init --coordinator redis://h --pool p --layout "
                        "'t39*10.s8.w16'"); /* zsh takes no pattern that matches nothing */
}

static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    static struct lease l = {.last_identity = IDENTITY};
    assert_string_equal(
        command(&l, "redis://h", 1000),
        "sidflakectl pool init --coordinator redis://h --pool p --after-loss --uuid "
        "11111111-2222-4333-8444-555555555555 --epoch 2026-01-01T00:00:00.000Z");
    l.last_identity[0] = '\0'; /* who never knew a pool cannot say that one was lost */
    assert_string_equal(command(&l, "redis://h", 1000),
                        "sidflakectl pool init --coordinator redis://h --pool p");
}

static void the_word_names_its_pool(void **state)
{
    (void)state;
    char text[256];
    struct buf b;
    struct recovery_place at = {
        .url = "redis://h:6379/0", .pool = "orders", .password_file = "/etc/a b"};
    buf_init(&b, text, sizeof text - 1);
    recovery_put_word(&b, &at);
    text[b.n] = '\0';
    assert_string_equal(text, "sidflakectl pool reopen --nothing-lost --coordinator "
                              "redis://h:6379/0 --password-file '/etc/a b' --pool orders");
}

/* A pool cannot be taken away again: one of another epoch would be in the way for good. */
static void the_epoch_of_the_configuration_is_said(void **state)
{
    (void)state;
    static struct lease l = {.conf = {.epoch_pinned = true, .epoch_ms = 1740787200000}};
    assert_string_equal(command(&l, "redis://h", 1000),
                        "sidflakectl pool init --coordinator redis://h --pool p --epoch "
                        "2025-03-01T00:00:00.000Z");
}

static void a_url_is_one_word_of_a_shell(void **state)
{
    (void)state;
    static struct lease l;
    assert_string_equal(command(&l, "redis+unix:///r?db=2", 1000),
                        "sidflakectl pool init --coordinator 'redis+unix:///r?db=2' --pool p");
    assert_string_equal(command(&l, "redis://a; b", 1000),
                        "sidflakectl pool init --coordinator 'redis://a; b' --pool p");
    /* In a log a backslash is two, a quotation mark has one before it, a ` ends the command, and
     * what is no printable ASCII is written otherwise. */
    static const char *const escaped[] = {"redis://a'; b", "redis://a\"b",      "redis://a\\b",
                                          "redis://a`b",   "redis://a\xc3\xa9", "redis://a\tb"};
    for (size_t i = 0; i < sizeof escaped / sizeof *escaped; i++) {
        assert_string_equal(command(&l, escaped[i], 1000), "");
        assert_string_equal(with_password(&l, "redis://h", escaped[i], 1000), "");
    }
}

static void a_password_is_named_by_its_file(void **state)
{
    (void)state;
    static struct lease l;
    assert_string_equal(with_password(&l, "redis://h", "", 1000), command(&l, "redis://h", 1000));
    assert_string_equal(
        with_password(&l, "redis://h", "/a b", 1000),
        "sidflakectl pool init --coordinator redis://h --password-file '/a b' --pool p");
    assert_non_null(strstr(with_password(&l, "redis://h", "FILE", 1000), "-file FILE --pool"));
}

/* It is typed elsewhere. */
static void a_password_file_is_named_from_the_root(void **state)
{
    (void)state;
    static struct lease l;
    char expected[PATH_MAX + 64], file[] = "a password XXXXXX", cwd[PATH_MAX];
    int fd = mkstemp(file);
    assert_true(fd >= 0 && getcwd(cwd, sizeof cwd));
    (void)snprintf(expected, sizeof expected, " --password-file '%s/%s' --pool p", cwd, file);
    const char *told = with_password(&l, "redis://h", file, 1000);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(close(fd), 0);
    assert_non_null(strstr(told, expected));
}

/* A command is typed elsewhere, and by somebody else: with sudo, where there is one. */
static void a_file_is_named_from_the_root_and_by_who_may(void **state)
{
    (void)state;
    char text[PATH_MAX + 128], cwd[PATH_MAX], expected[2 * PATH_MAX + 128];
    struct recovery_place at = {.url = "sqlite:./a b/pool.db", .pool = "p"};
    uid_t before = geteuid();
    struct buf b;
    assert_non_null(getcwd(cwd, sizeof cwd));
    for (int other = 0; other < 2; other++) {
        if (other && (before != 0 || seteuid(65534) != 0))
            break;
        struct passwd *own = getpwuid(geteuid());
        bool sudo = access("/usr/bin/sudo", X_OK) == 0;
        const char *as = geteuid() != 0 && sudo ? own->pw_name : "";
        buf_init(&b, text, sizeof text - 1);
        recovery_put_tool(&b, "pool list", &at);
        text[b.n] = '\0';
        (void)snprintf(
            expected, sizeof expected,
            "%s%s%ssidflakectl pool list --coordinator 'sqlite://%s/a b/pool.db' --pool p",
            *as ? "sudo -u " : "", as, *as ? " " : "", cwd);
        assert_string_equal(text, expected);
        at.url = "redis://h:1/0"; /* whose right it is there the URL says */
        buf_init(&b, text, sizeof text - 1);
        recovery_put_word(&b, &at);
        text[b.n] = '\0';
        assert_string_equal(text, "sidflakectl pool reopen --nothing-lost --coordinator "
                                  "redis://h:1/0 --pool p");
        at.url = "sqlite:a b/pool.db";
    }
    assert_int_equal(seteuid(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_the_pool_was_is_said),
        cmocka_unit_test(a_file_is_named_from_the_root_and_by_who_may),
        cmocka_unit_test(a_pool_that_is_there_is_said_to_the_millisecond),
        cmocka_unit_test(a_pool_whose_clock_was_ahead_is_made_again_behind_that),
        cmocka_unit_test(a_holder_that_was_granted_more_says_so),
        cmocka_unit_test(the_layout_of_a_lost_pool_is_said),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(the_word_names_its_pool),
        cmocka_unit_test(the_epoch_of_the_configuration_is_said),
        cmocka_unit_test(a_url_is_one_word_of_a_shell),
        cmocka_unit_test(a_password_is_named_by_its_file),
        cmocka_unit_test(a_password_file_is_named_from_the_root),
    };
    return cmocka_run_group_tests_name("lease/recovery", tests, NULL, NULL);
}
