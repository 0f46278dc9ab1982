#include "base/human.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char text[64];
static struct buf b;

static struct buf *begin(void)
{
    memset(text, 0, sizeof text);
    buf_init(&b, text, sizeof text - 1);
    return &b;
}

static void counts(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        const char *text;
    } table[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {-1000000, "-1,000,000"},
        {1002003, "1,002,003"},
        {INT64_MAX, "9,223,372,036,854,775,807"},
        {INT64_MIN, "-9,223,372,036,854,775,808"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        human_put_count(begin(), table[i].n);
        assert_string_equal(text, table[i].text);
    }
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } table[] = {
        {0, "0 s"},
        {999, "999 ms"},
        {1999, "1 s"},
        {59999, "59 s"},
        {60000, "1 min"},
        {3599000, "59 min 59 s"},
        {3600000, "1 h"},
        {86399999, "23 h 59 min"},
        {INT64_C(86400000) * 366, "1 y 1 d"},
        {-61000, "-1 min 1 s"},
        {INT64_MAX, "292471208 y 247 d"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        human_put_duration(begin(), table[i].ms);
        assert_string_equal(text, table[i].text);
    }
}

static void latencies(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } table[] = {
        {1, "1 ns"},
        {999, "999 ns"},
        {1000, "1 \xc2\xb5s"},
        {12345, "12.3 \xc2\xb5s"},
        {16250, "16.3 \xc2\xb5s"},
        {1050000, "1.05 ms"},
        {123456789, "123 ms"},
        {2e9, "2 s"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        human_put_latency(begin(), table[i].ns);
        assert_string_equal(text, table[i].text);
    }
}

static void rates_and_bytes(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } table[] = {
        {0, "0"},           {0.004, "0"},   {0.25, "0.25"},    {9.999, "10"},
        {12.34, "12.3"},    {99.96, "100"}, {1234.5, "1,235"}, {999999.9, "1,000,000"},
        {1.25e6, "1.25 M"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        human_put_rate(begin(), table[i].v);
        assert_string_equal(text, table[i].text);
    }
    human_put_bytes(begin(), 2 * 1024 * 1024 + 300 * 1024);
    assert_string_equal(text, "2.29 MiB");
    human_put_bytes(begin(), 17);
    assert_string_equal(text, "17 B");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(durations),
        cmocka_unit_test(latencies),
        cmocka_unit_test(rates_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
