#include "serve/watch/page_template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Names: v, which is `value`; i and j, the items of the lists "three" and "two"; and the list
 * "none". */
static const char *value;
static size_t item_i, item_j;

static bool put_value(void *arg, struct span name, struct buf *out)
{
    (void)arg;
    if (span_eq(name, SPAN("v")))
        buf_put_str(out, value);
    else if (span_eq(name, SPAN("i")))
        buf_put_u64(out, item_i);
    else if (span_eq(name, SPAN("j")))
        buf_put_u64(out, item_j);
    else
        return false;
    return true;
}

static int item(void *arg, struct span list, size_t i)
{
    (void)arg;
    if (span_eq(list, SPAN("three"))) {
        item_i = i;
        return i < 3;
    }
    if (span_eq(list, SPAN("two"))) {
        item_j = i;
        return i < 2;
    }
    return span_eq(list, SPAN("none")) ? 0 : -1;
}

static const struct page_template t = {.put = put_value, .item = item};
static char memory[4096];

static struct buf page(const char *text, size_t cap)
{
    struct buf b;
    memset(memory, '#', sizeof memory);
    buf_init(&b, memory, cap);
    BUF_PUT_LIT(&b, "<");
    page_template_put(&t, span_str(text), &b);
    return b;
}

static void becomes(const char *text, const char *expected)
{
    struct buf b = page(text, sizeof memory - 1);
    assert_false(b.failed);
    memory[b.n] = '\0';
    assert_int_equal(memory[0], '<');
    assert_string_equal(memory + 1, expected);
}

static void values(void **state)
{
    (void)state;
    value = "x";
    becomes("", "");
    becomes("plain { } {{", "plain { } {{");
    becomes("a{{v}}b{{v}}", "axbx");
    value = "";
    becomes("a{{v}}b", "ab");
}

static void everything_is_escaped(void **state)
{
    (void)state;
    value = "<script>alert(\"1\" & '2')</script>";
    becomes("{{v}}", "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
    becomes("<b>{{v}}</b>",
            "<b>&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;</b>");
    value = "{{i}}";
    becomes("{{v}}", "{{i}}");
    value = "&amp;";
    becomes("{{v}}", "&amp;amp;");
}

static void sections(void **state)
{
    (void)state;
    value = "x";
    becomes("{{#three}}{{i}},{{/three}}!", "0,1,2,!");
    becomes("{{#none}}{{i}}{{/none}}{{^none}}no{{v}}{{/none}}", "nox");
    becomes("{{^three}}no{{/three}}", "");
    becomes("{{#three}}{{#two}}{{i}}{{j}} {{/two}}{{/three}}", "00 01 10 11 20 21 ");
    becomes("{{#two}}a{{^none}}b{{/none}}{{/two}}", "abab");
}

static void fails(const char *text)
{
    if (!page(text, sizeof memory - 1).failed)
        fail_msg("expected a failure of \"%s\"", text);
}

static void mistakes_fail(void **state)
{
    (void)state;
    value = "x";
    fails("{{w}}");
    fails("{{}}");
    fails("{{#unknown}}{{/unknown}}");
    fails("{{#three}}{{i}}");
    fails("{{#three}}{{i}}{{/two}}");
    fails("{{/three}}");
    fails("{{#two}}{{#two}}{{#two}}{{#two}}{{#two}}{{#two}}{{#two}}{{#two}}{{#two}}"
          "{{/two}}{{/two}}{{/two}}{{/two}}{{/two}}{{/two}}{{/two}}{{/two}}{{/two}}");
}

/* Whatever does not fit fails, and nothing is written past the end. */
static void no_room(void **state)
{
    (void)state;
    static const char text[] = "ab{{v}}cd{{#three}}{{i}}{{/three}}";
    value = "<&>";
    struct buf whole = page(text, sizeof memory);
    assert_false(whole.failed);
    for (size_t cap = 0; cap < whole.n; cap++) {
        struct buf b = page(text, cap);
        assert_true(b.failed);
        assert_in_range(b.n, 0, cap);
        assert_int_equal(memory[cap], '#');
    }
    assert_false(page(text, whole.n).failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),   cmocka_unit_test(everything_is_escaped),
        cmocka_unit_test(sections), cmocka_unit_test(mistakes_fail),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
