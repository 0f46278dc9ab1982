/* Metrics pages: what is read, what is refused, rates and quantiles. */
#include "ctl/scrape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct scrape page;

static enum err_code parse(const char *text)
{
    struct err e;
    return scrape_parse(&page, strdup(text), strlen(text), &e);
}

static int forget(void **state)
{
    (void)state;
    scrape_clear(&page);
    return 0;
}

static void near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected)))
        fail_msg("expected %.12g, found %.12g", expected, found);
}

static void samples_are_read(void **state)
{
    (void)state;
    assert_int_equal(
        parse("# HELP a_total {x} 1\n# TYPE a_total counter\n"
              "a_total{p=\"x\",r=\"ok\"} 3\na_total{p=\"y\",r=\"ok\"} 4 1700000000\r\n\n"
              "b 1.5e-3\nc{} -2E+2\nd +Inf\ne NaN\nf .25\n"
              "g{name=\"a\\\"}b\\\\c\\n\\u00e9\",z=\"1\"} 7"),
        ERR_OK);
    assert_int_equal(page.n, 8);
    near(scrape_value(&page, "a_total", NULL, NULL), 3);
    near(scrape_value(&page, "a_total", "p", "y"), 4);
    near(scrape_sum(&page, "a_total", NULL, NULL), 7);
    near(scrape_sum(&page, "a_total", "r", "ok"), 7);
    near(scrape_value(&page, "b", NULL, NULL), 0.0015);
    near(scrape_value(&page, "c", NULL, NULL), -200);
    assert_true(isinf(scrape_value(&page, "d", NULL, NULL)));
    assert_true(isnan(scrape_value(&page, "e", NULL, NULL)));
    near(scrape_value(&page, "f", NULL, NULL), 0.25);
    near(scrape_value(&page, "g", "z", "1"), 7);
    assert_true(isnan(scrape_value(&page, "a", NULL, NULL)));
    assert_true(isnan(scrape_sum(&page, "a_total", "p", "z")));
    assert_true(isnan(scrape_sum(&page, "a_total", "q", "x")));
}

static void a_label_cannot_speak_to_the_terminal(void **state)
{
    char out[16];
    (void)state;
    assert_int_equal(parse("g{name=\"a\\\"}b\\\\\\n\x1b[2J\",le=\"x\"} 7\n"), ERR_OK);
    assert_true(scrape_label(&page.v[0], "name", out, sizeof out));
    assert_string_equal(out, "a\"}b\\??[2J");
    assert_true(scrape_label(&page.v[0], "name", out, 4));
    assert_string_equal(out, "a\"}");
    assert_false(scrape_label(&page.v[0], "nam", out, sizeof out));
}

static void what_is_no_page_is_refused(void **state)
{
    static const char *const bad[] = {
        "<html>",        "a",           "a ",          "a x",      "a 1x",
        "a 1e",          "a 1e999",     "a --1",       "a .",      "a{b=\"c\" 1",
        "a{b=\"c} 1",    "a{b=\"\\\"}", "{b=\"c\"} 1", " 1",       "a 0x10",
        "ok 1\nbad one", "a 1.2.3",     "a 1e+-5",     "a 1e\xff",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (parse(bad[i]) != ERR_INVALID)
            fail_msg("expected \"%s\" to be refused", bad[i]);
        assert_null(page.text);
        assert_null(page.v);
    }
    size_t n = SCRAPE_SAMPLES_MAX;
    char *many = malloc(n);
    struct err e;
    memset(many, '\n', n);
    assert_int_equal(scrape_parse(&page, many, n, &e), ERR_RANGE);
}

static void rates(void **state)
{
    (void)state;
    near(scrape_rate(30, 10, 2000000), 10);
    near(scrape_rate(5, 10, 1000000), 5); /* it began anew */
    assert_true(isnan(scrape_rate(NAN, 10, 1000000)));
    assert_true(isnan(scrape_rate(10, NAN, 1000000)));
    assert_true(isnan(scrape_rate(10, 5, 0)));
}

#define BUCKETS(p, a, b, c)                                                                        \
    "h_bucket{p=\"" p "\",le=\"1e-05\"} " #a "\nh_bucket{p=\"" p "\",le=\"2e-05\"} " #b            \
    "\nh_bucket{p=\"" p "\",le=\"+Inf\"} " #c "\nh_sum{p=\"" p "\"} 1\nh_count{p=\"" p "\"} 9\n"

static void quantiles(void **state)
{
    struct scrape_histogram h, before;
    (void)state;
    assert_int_equal(parse(BUCKETS("x", 10, 20, 20) BUCKETS("y", 10, 10, 20)), ERR_OK);
    scrape_histogram(&page, "h", "p", "x", &h);
    assert_int_equal(h.n, 3);
    near(scrape_quantile(&h, 0.25), 5e-6);
    near(scrape_quantile(&h, 0.5), 1e-5);
    near(scrape_quantile(&h, 0.75), 1.5e-5);
    before = h;
    scrape_histogram(&page, "h", "p", "y", &h);
    near(scrape_quantile(&h, 0.5), 1e-5);
    assert_true(isinf(scrape_quantile(&h, 0.51)));
    scrape_histogram(&page, "h", "p", "z", &h);
    assert_int_equal(h.n, 0);
    assert_true(isnan(scrape_quantile(&h, 0.5)));

    /* Of two looks: what came between; all of it where the server began anew. */
    scrape_clear(&page);
    assert_int_equal(parse(BUCKETS("x", 10, 24, 24) BUCKETS("y", 1, 2, 3)), ERR_OK);
    scrape_histogram(&page, "h", "p", "x", &h);
    scrape_histogram_since(&h, &before);
    near(scrape_quantile(&h, 0.5), 1.5e-5);
    scrape_histogram_since(&h, &h);
    assert_true(isnan(scrape_quantile(&h, 0.5)));
    scrape_histogram(&page, "h", "p", "y", &h);
    scrape_histogram_since(&h, &before);
    near(h.count[2], 3);
}

static void a_histogram_must_rise_and_have_an_end(void **state)
{
    static const char *const bad[] = {"h_bucket{le=\"1\"} 1\n",
                                      "h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 2\n",
                                      "h_bucket{le=\"1\"} 5\nh_bucket{le=\"+Inf\"} 4\n",
                                      "h_bucket{le=\"x\"} 1\n", "h_bucket 1\n"};
    struct scrape_histogram h;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i]), ERR_OK);
        scrape_histogram(&page, "h", NULL, NULL, &h);
        assert_int_equal(h.n, 0);
        scrape_clear(&page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(samples_are_read, forget),
        cmocka_unit_test_teardown(a_label_cannot_speak_to_the_terminal, forget),
        cmocka_unit_test_teardown(what_is_no_page_is_refused, forget),
        cmocka_unit_test(rates),
        cmocka_unit_test_teardown(quantiles, forget),
        cmocka_unit_test_teardown(a_histogram_must_rise_and_have_an_end, forget),
    };
    return cmocka_run_group_tests_name("ctl/scrape", tests, NULL, NULL);
}
