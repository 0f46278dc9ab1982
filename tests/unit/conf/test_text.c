#include "conf/conf.h"
#include "conf/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

static void check_quote(struct span s, const char *want)
{
    char out[CONF_QUOTE_MAX];
    assert_string_equal(conf_quote(out, s), want);
}

static void test_quote(void **state)
{
    (void)state;
    check_quote(SPAN(""), "\"\"");
    check_quote(span_of(NULL, 0), "\"\"");
    check_quote(SPAN("a\"b\\c"), "\"a\\\"b\\\\c\"");
    check_quote(SPAN("a\n\0\x7f\xc3"), "\"a\\x0a\\x00\\x7f\\xc3\"");
}

static void test_quote_hides_passwords(void **state)
{
    (void)state;
    check_quote(SPAN("redis://u:secret@h:1/0"), "\"redis://u:***@h:1/0\"");
    check_quote(SPAN("redis://:sec@ret@h"), "\"redis://:***@h\"");
    check_quote(SPAN("redis:///u:secret@h"), "\"redis:///u:***@h\"");
    check_quote(SPAN("redis:u:secret@h"), "\"redis:***@h\"");
    check_quote(SPAN("redis://u@h:1/0"), "\"redis://u@h:1/0\"");
    check_quote(SPAN("tcp://h:1"), "\"tcp://h:1\"");
}

/* Whatever the length: within bounds, whole escapes only, a mark where it was cut. */
static void test_quote_is_cut(void **state)
{
    char in[300], out[CONF_QUOTE_MAX + 1];
    (void)state;
    for (size_t n = 0; n <= sizeof in; n++) {
        memset(in, n % 2 ? 'a' : '\n', sizeof in);
        out[CONF_QUOTE_MAX] = '#';
        size_t len = strlen(conf_quote(out, span_of(in, n)));
        size_t full = 2 + (n % 2 ? n : 4 * n);
        assert_true(len < CONF_QUOTE_MAX);
        assert_int_equal(out[CONF_QUOTE_MAX], '#');
        assert_int_equal(out[len - 1], '"');
        if (len == full)
            continue;
        assert_true(full > CONF_QUOTE_MAX - 6); /* else it would have fitted */
        assert_true(len >= CONF_QUOTE_MAX - 8); /* no more is cut than must be */
        assert_string_equal(out + len - 4, "...\"");
        assert_int_equal(n % 2 ? 0 : (len - 5) % 4, 0);
    }
}

static void test_password(void **state)
{
    static const struct {
        const char *url, *password;
    } cases[] = {
        {"redis://u:p@h/0", "p"},   {"redis://:p:q@h", "p:q"},
        {"redis://u:p@q@h", "p@q"}, {"redis://u@h:1/0", ""},
        {"redis://h:1/0", ""},      {"redis+unix:///a:b@c?db=1", ""},
        {"sqlite:a:b@c", ""},       {"sqlite:///a:b@c", ""},
        {"redis://", ""},           {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span got = conf_text_password(span_str(cases[i].url));
        if (!span_eq(got, span_str(cases[i].password)))
            fail_msg("%s: found %.*s", cases[i].url, (int)got.n, got.p);
    }
}

static void test_clean(void **state)
{
    static const char *const clean[] = {
        "", "a ~", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc2\xa0"};
    static const char *const dirty[] = {"\n",           "\x7f",
                                        "\x80",         "\xc3",
                                        "\xc3(",        "\xc1\xa1",
                                        "\xe0\x83\xa4", "\xf0\x82\x82\xac",
                                        "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80", "\xc2\x85",
                                        "\xe2\x82",     "\xff"};
    (void)state;
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        assert_true(conf_text_clean(span_str(clean[i])));
    for (size_t i = 0; i < sizeof dirty / sizeof *dirty; i++)
        if (conf_text_clean(span_str(dirty[i])))
            fail_msg("case %zu: expected a refusal", i);
    assert_false(conf_text_clean(span_of("a\0", 2)));
    assert_true(conf_text_graphic(SPAN("!~")));
    assert_false(conf_text_graphic(SPAN("a b")));
    assert_false(conf_text_graphic(SPAN("\xc3\xa4")));
}

static void test_yaml(void **state)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    (void)state;
    assert_non_null(out);
    conf_text_put_yaml(SPAN("a\"\\\xc3\xa4\xf0\x9f\x98\x80\x7f"), out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "\"a\\\"\\\\\\U000000E4\\U0001F600\\U0000007F\"");
    free(text);
}

static void test_name(void **state)
{
    char name[CONF_TEXT_NAME_MAX + 3];
    (void)state;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(strlen(conf_text_name(name)), CONF_TEXT_NAME_MAX);
    assert_string_equal(conf_text_name("a.yaml"), "a.yaml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quote),        cmocka_unit_test(test_quote_hides_passwords),
        cmocka_unit_test(test_quote_is_cut), cmocka_unit_test(test_password),
        cmocka_unit_test(test_clean),        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
