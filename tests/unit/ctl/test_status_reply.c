/* The status of a sidecar: what is read, what is refused, rates and quantiles. */
#include "ctl/status_reply.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "\"version\":\"1\",\"ready\":true"

static json_t *found;
static struct err e;

static enum err_code parse(const char *text)
{
    json_decref(found);
    return ctl_status_read(text, strlen(text), &found, &e);
}

static int forget(void **state)
{
    (void)state;
    json_decref(found);
    found = NULL;
    return 0;
}

static void near(double v, double expected)
{
    if (!(fabs(v - expected) <= 1e-9 * fabs(expected)))
        fail_msg("expected %.12g, found %.12g", expected, v);
}

static void members_are_read(void **state)
{
    char text[8];
    (void)state;
    assert_int_equal(parse("{" HEAD ",\"pool\":{\"free\":7,\"skew\":-1.5e-3,\"era\":null,"
                           "\"x\":\"y\",\"l\":[1],\"o\":{}}}"),
                     ERR_OK);
    near(ctl_status_number(found, "pool.free"), 7);
    near(ctl_status_number(found, "pool.skew"), -0.0015);
    assert_true(ctl_status_is(found, "pool.x", "y"));
    assert_false(ctl_status_is(found, "pool.x", "yy"));
    assert_string_equal(ctl_status_text(found, "version", text, sizeof text), "1");
    /* Null, other types, members of what has none, and those that nobody sent. */
    static const char *const none[] = {"pool",   "pool.era",    "pool.x",   "pool.l", "pool.o",
                                       "pool.y", "pool.free.x", "pool.l.x", "ready",  "",
                                       "pool.",  "no.such",     "version.x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_true(isnan(ctl_status_number(found, none[i])));
    assert_string_equal(ctl_status_text(found, "pool.free", text, sizeof text), "");
    assert_false(ctl_status_is(found, "pool.free", "7"));
    assert_true(isnan(ctl_status_number(NULL, "x")));
}

static void a_text_cannot_speak_to_the_terminal(void **state)
{
    char out[16];
    (void)state;
    assert_int_equal(parse("{" HEAD ",\"x\":\"a\\\"b\\u001b[2J\\n\\u009b\\ud83d\\ude00z\"}"),
                     ERR_OK);
    assert_string_equal(ctl_status_text(found, "x", out, sizeof out), "a\"b?[2J???????z");
    assert_string_equal(ctl_status_text(found, "x", out, 4), "a\"b");
}

static void what_is_no_status_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "<html>",
        "{",
        "{" HEAD,
        "{" HEAD "}}",
        "{" HEAD ",\"x\":1e999}",
        "{" HEAD ",\"x\":99999999999999999999}",
        "{" HEAD ",\"x\":\"\\u0000\"}",
        "{" HEAD ",\"x\":\"\xff\"}",
        "[]",
        "null",
        "7",
        "{}",
        "{\"version\":1,\"ready\":true}",
        "{\"version\":\"1\",\"ready\":1}",
        "{\"version\":\"1\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (parse(bad[i]) != ERR_INVALID)
            fail_msg("expected \"%s\" to be refused", bad[i]);
        assert_null(found);
    }
    size_t n = 1u << 20;
    char *deep = malloc(n);
    memset(deep, '[', n);
    assert_int_equal(ctl_status_read(deep, n, &found, &e), ERR_INVALID);
    free(deep);
}

static void lists(void **state)
{
    (void)state;
    assert_int_equal(parse("{" HEAD ",\"l\":[{\"p\":\"x\",\"r\":\"ok\",\"n\":3},7,null,[],"
                           "{\"p\":\"y\",\"r\":\"ok\",\"n\":4},{\"p\":\"y\",\"n\":\"5\"},"
                           "{\"p\":\"y\",\"n\":6},{\"p\":1,\"n\":100}]}"),
                     ERR_OK);
    near(ctl_status_sum(found, "l", "n", NULL, NULL), 113);
    near(ctl_status_sum(found, "l", "n", "p", "y"), 10);
    near(ctl_status_sum(found, "l", "n", "r", "ok"), 7);
    assert_true(isnan(ctl_status_sum(found, "l", "n", "p", "z")));
    assert_true(isnan(ctl_status_sum(found, "l", "m", NULL, NULL)));
    assert_true(isnan(ctl_status_sum(found, "version", "n", NULL, NULL)));
    near(ctl_status_number(ctl_status_row(found, "l", "p", "y"), "n"), 4);
    assert_null(ctl_status_row(found, "l", "p", "z"));
    json_t *sums = ctl_status_sums(found, "l", "n", "p");
    assert_int_equal(json_object_size(sums), 2);
    near(ctl_status_number(sums, "x"), 3);
    near(ctl_status_number(sums, "y"), 10);
    json_decref(sums);
}

static void rates(void **state)
{
    (void)state;
    near(ctl_status_rate(30, 10, 2000000), 10);
    near(ctl_status_rate(5, 10, 1000000), 5); /* it began anew */
    assert_true(isnan(ctl_status_rate(NAN, 10, 1000000)));
    assert_true(isnan(ctl_status_rate(10, NAN, 1000000)));
    assert_true(isnan(ctl_status_rate(10, 5, 0)));
}

static void read_histogram(const char *bounds, const char *counts, struct ctl_histogram *h)
{
    char text[256];
    (void)snprintf(text, sizeof text, "{" HEAD ",\"h\":{\"bounds_us\":%s,\"counts\":%s}}", bounds,
                   counts);
    assert_int_equal(parse(text), ERR_OK);
    ctl_histogram_read(found, "h", h);
}

static void quantiles(void **state)
{
    struct ctl_histogram h, before;
    (void)state;
    read_histogram("[10,20]", "[10,10,0]", &before);
    assert_int_equal(before.n, 3);
    near(ctl_histogram_quantile(&before, 0.25), 5e-6);
    near(ctl_histogram_quantile(&before, 0.5), 1e-5);
    near(ctl_histogram_quantile(&before, 0.75), 1.5e-5);
    read_histogram("[10,20]", "[10,0,10]", &h);
    near(ctl_histogram_quantile(&h, 0.5), 1e-5);
    assert_true(isinf(ctl_histogram_quantile(&h, 0.51)));

    /* Of two looks: what came between; all of it where the server began anew. */
    read_histogram("[10,20]", "[10,14,0]", &h);
    ctl_histogram_since(&h, &before);
    near(ctl_histogram_quantile(&h, 0.5), 1.5e-5);
    ctl_histogram_since(&h, &h);
    assert_true(isnan(ctl_histogram_quantile(&h, 0.5)));
    read_histogram("[10,20]", "[1,1,1]", &h);
    ctl_histogram_since(&h, &before);
    near(h.count[2], 3);
    read_histogram("[10,30]", "[10,14,0]", &h); /* another program, with other bounds */
    ctl_histogram_since(&h, &before);
    near(h.count[2], 24);
}

static void a_histogram_must_rise_and_have_an_end(void **state)
{
    static const char *const bad[][2] = {
        {"[]", "[]"},         {"[1]", "[1]"},       {"[1,2]", "[1,2]"}, {"[2,1]", "[1,2,3]"},
        {"[1,1]", "[1,2,3]"}, {"[0]", "[1,2]"},     {"[1]", "[-1,2]"},  {"[1]", "[1,null]"},
        {"[\"1\"]", "[1,2]"}, {"[1]", "[1,\"2\"]"}, {"7", "[1,2]"},     {"[1]", "{}"},
    };
    struct ctl_histogram h;
    char many[4 * CTL_BUCKETS] = "[0";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        read_histogram(bad[i][0], bad[i][1], &h);
        if (h.n != 0)
            fail_msg("expected %s, %s to be refused", bad[i][0], bad[i][1]);
        assert_true(isnan(ctl_histogram_quantile(&h, 0.5)));
    }
    for (int i = 0; i < CTL_BUCKETS; i++)
        strcat(many, ",1");
    read_histogram("[1]", strcat(many, "]"), &h);
    assert_int_equal(h.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(members_are_read, forget),
        cmocka_unit_test_teardown(a_text_cannot_speak_to_the_terminal, forget),
        cmocka_unit_test_teardown(what_is_no_status_is_refused, forget),
        cmocka_unit_test_teardown(lists, forget),
        cmocka_unit_test(rates),
        cmocka_unit_test_teardown(quantiles, forget),
        cmocka_unit_test_teardown(a_histogram_must_rise_and_have_an_end, forget),
    };
    return cmocka_run_group_tests_name("ctl/status_reply", tests, NULL, NULL);
}
