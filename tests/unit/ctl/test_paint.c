/* Pages of cells: nothing outside, the right characters; and top's words. */
#include "ctl/args.h"
#include "ctl/top.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t length;

static FILE *begin(void)
{
    free(text);
    text = NULL;
    return open_memstream(&text, &length);
}

static const char *plain(const struct paint *p, bool utf8)
{
    FILE *f = begin();
    paint_plain(p, utf8, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static int forget(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void what_does_not_fit_is_cut(void **state)
{
    struct paint p = {0};
    (void)state;
    assert_true(paint_size(&p, 2, 5, false));
    paint_put(&p, PAINT_PLAIN, "abcdefgh");
    paint_next(&p);
    paint_right(&p, 5, PAINT_GOOD, "%s", "12");
    paint_next(&p);
    paint_put(&p, PAINT_PLAIN, "below");
    paint_at(&p, 9, 9);
    paint_bar(&p, PAINT_BAD, 1000, 1);
    assert_string_equal(plain(&p, true), "abcd…\n   12\n");
    assert_string_equal(plain(&p, false), "abcd~\n   12\n");
    assert_true(paint_size(&p, 100000, 100000, false));
    assert_int_equal(p.rows, PAINT_ROWS_MAX);
    assert_true(paint_size(&p, 0, 0, false));
    paint_put(&p, PAINT_PLAIN, "xy");
    assert_string_equal(plain(&p, true), "…\n");
    paint_free(&p);
}

/* In a pipe there is no edge: a reason and its command are whole. */
static void a_long_text_goes_on_where_nobody_sees_an_edge(void **state)
{
    struct paint p = {0};
    (void)state;
    assert_true(paint_size(&p, 2, 5, true));
    paint_put(&p, PAINT_PLAIN, "%0300d", 7);
    paint_next(&p);
    paint_right(&p, p.cols, PAINT_PLAIN, "12");
    assert_int_equal(strlen(plain(&p, false)), 300 + 1 + 5 + 1);
    assert_non_null(strstr(text, "07\n   12\n"));
    paint_free(&p);
}

static void only_characters_of_one_column(void **state)
{
    struct paint p = {0};
    (void)state;
    assert_true(paint_size(&p, 1, 40, false));
    paint_put(&p, PAINT_PLAIN, "%s", "µ\x1b[2J\n\x7f\xc2\x9b\xff\xe2\x82|\xf0\x9f\x98\x80|…");
    assert_string_equal(plain(&p, true), "µ?[2J?????"
                                         "?|?|…\n");
    assert_string_equal(plain(&p, false), "u?[2J?????"
                                          "?|?|~\n");
    paint_free(&p);
}

/* ESC and CSI, each in every form that is too long, and as C1; a surrogate; a direction. */
static void nothing_speaks_to_the_terminal(void **state)
{
    struct paint p = {0};
    (void)state;
    assert_true(paint_size(&p, 1, 80, false));
    paint_put(&p, PAINT_PLAIN, "%s",
              "\xc0\x9b|\xe0\x80\x9b|\xf0\x80\x80\x9b|\xc2\x9b|\xe0\x82\x9b|\xc2\x80|\xc2\x9f|"
              "\xed\xa0\x80|\xe2\x80\xae|\xc2\xa1");
    assert_string_equal(plain(&p, true), "??|???|????|?|???|?|?|???|?|¡\n");
    paint_free(&p);
}

static void bars_and_charts(void **state)
{
    struct paint p = {0};
    const double v[] = {9, 0, NAN, 7, 14};
    (void)state;
    assert_true(paint_size(&p, 8, 10, false));
    paint_bar(&p, PAINT_GOOD, 4, 0.5);
    paint_next(&p);
    paint_bar(&p, PAINT_GOOD, 4, 1e-9);
    paint_next(&p);
    paint_bar(&p, PAINT_GOOD, 4, 77);
    paint_next(&p);
    paint_bar(&p, PAINT_GOOD, 4, NAN);
    paint_put(&p, PAINT_PLAIN, "|");
    paint_next(&p);
    paint_chart(&p, PAINT_LINE, 6, v, 5);
    paint_next(&p);
    paint_chart(&p, PAINT_LINE, 2, v, 5);
    assert_string_equal(plain(&p, true), "██··\n▏···\n████\n····|\n ▆▁ ▅█\n▅█\n");
    assert_string_equal(plain(&p, false), "##..\n#...\n####\n....|\n *_ +#\n+#\n");
    paint_free(&p);
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(top_per_s(NAN), "- /s");
    assert_string_equal(top_per_s(0), "0 /s");
    assert_string_equal(top_per_s(0.05), "0.05 /s");
    assert_string_equal(top_per_s(4.25), "4.2 /s");
    assert_string_equal(top_per_s(1234567.6), "1,234,568 /s");
    assert_string_equal(top_per_s(1e300), "many /s");
    assert_string_equal(top_count(-1), "-");
    assert_string_equal(top_count(999), "999");
    assert_string_equal(top_seconds(0, 2), "0 s");
    assert_string_equal(top_seconds(4.75e-6, 2), "4.8 µs");
    assert_string_equal(top_seconds(-0.0123, 2), "-12 ms");
    assert_string_equal(top_seconds(INFINITY, 2), "> 2 s");
    assert_string_equal(top_seconds(NAN, 2), "-");
    assert_string_equal(top_span(28.4), "28 s");
    assert_string_equal(top_span(2), "2 s");
    assert_string_equal(top_span(-4.25), "-4.2 s");
    assert_string_equal(top_span(3581), "59 min 41 s");
    assert_string_equal(top_span(2468209e2), "7.8 years");
    assert_string_equal(top_span(INFINITY), "for ever");
    assert_string_equal(top_bytes(2202010), "2.1 MiB");
    assert_string_equal(top_bytes(12), "12 B");
    assert_string_equal(ctl_number(0), "0");
    assert_string_equal(ctl_number(UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(ctl_span(INT64_MIN), "-106751991167 d 7 h");
    assert_true(top_scale(20, 30, 360) == 30 && top_scale(30.5, 30, 360) == 30);
    assert_true(top_scale(40, 30, 360) == 360 && top_scale(361, 30, 360) == 360);
    assert_true(top_scale(1e9, 30, 360) == 1e9 && top_scale(40, NAN, NAN) == 40);
}

static void history_keeps_the_latest(void **state)
{
    static struct top_history h;
    (void)state;
    for (int i = 0; i < TOP_HISTORY + 3; i++)
        top_remember(&h, i);
    assert_int_equal(h.n, TOP_HISTORY);
    assert_true(h.v[0] == 3 && h.v[TOP_HISTORY - 1] == TOP_HISTORY + 2);
}

static void what_was_meant(void **state)
{
    static const char *const words[] = {"list", "init", "status", "ping"};
    (void)state;
    assert_string_equal(ctl_meant("lst", words, 4), "list");
    assert_string_equal(ctl_meant("statsu", words, 4), "status");
    assert_string_equal(ctl_meant("pong", words, 4), "ping");
    assert_null(ctl_meant("frobnicate", words, 4));
    assert_null(ctl_meant("", words, 4));
    assert_null(ctl_meant("a word that is longer than any command could be", words, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_does_not_fit_is_cut, forget),
        cmocka_unit_test_teardown(a_long_text_goes_on_where_nobody_sees_an_edge, forget),
        cmocka_unit_test_teardown(only_characters_of_one_column, forget),
        cmocka_unit_test_teardown(nothing_speaks_to_the_terminal, forget),
        cmocka_unit_test_teardown(bars_and_charts, forget),
        cmocka_unit_test(words),
        cmocka_unit_test(history_keeps_the_latest),
        cmocka_unit_test(what_was_meant),
    };
    return cmocka_run_group_tests_name("ctl/paint", tests, NULL, NULL);
}
