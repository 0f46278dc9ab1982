/* Definitions of sequences, as options and as one line. */
#include "coord/seq_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static enum err_code line(const char *text, struct seq_create *out, struct err *e)
{
    static char name[SEQ_NAME_MAX];
    return seq_line_read(span_str(text), name, out, e);
}

static void test_defaults(void **state)
{
    struct seq_create c;
    struct err e;
    (void)state;
    assert_int_equal(line("orders", &c, &e), ERR_OK);
    assert_string_equal(c.name, "orders");
    assert_int_equal(c.definition.start, 1);
    assert_int_equal(c.definition.increment, 1);
    assert_int_equal(c.definition.begins_ms, 0);
    assert_int_equal(c.definition.loss, SEQ_LOSS_UNSAID);
    assert_int_equal(c.definition.subs, 0);
    assert_int_equal(c.max, SEQ_NUMBER_MAX);
    assert_false(c.has_max || c.fresh || c.reuse || c.no_older);
}

static void test_all(void **state)
{
    struct seq_create c;
    struct err e;
    (void)state;
    assert_int_equal(line("  a.b-c_9  --start -5 --increment -2 --max -100005 --reset day "
                          "--timezone -03:30 --max-subs 7 --on-loss refuse "
                          "--begins 2026-01-01T00:00:00Z ",
                          &c, &e),
                     ERR_OK);
    assert_string_equal(c.name, "a.b-c_9");
    assert_int_equal(c.definition.start, -5);
    assert_int_equal(c.definition.increment, -2);
    assert_int_equal(c.max, -100005);
    assert_true(c.has_max);
    assert_int_equal(c.definition.reset, PERIOD_DAY);
    assert_int_equal(c.definition.offset_min, -210);
    assert_int_equal(c.definition.subs, 7);
    assert_int_equal(c.definition.loss, SEQ_LOSS_REFUSE);
    assert_int_equal(c.definition.begins_ms, INT64_C(1767225600000));
    assert_int_equal(line("a --order strict --cycle --max 9 --on-loss trust", &c, &e), ERR_OK);
    assert_true(c.definition.strict && c.definition.cycle && !c.fresh);
    assert_int_equal(c.definition.loss, SEQ_LOSS_TRUST);
    assert_int_equal(line("a --max-rate 1000 --subs", &c, &e), ERR_OK);
    assert_int_equal(c.definition.rate, 1000);
    assert_int_equal(c.definition.burst, 10000);
    assert_int_equal(seq_burst(99), 1000);
    assert_int_equal(c.definition.subs, SEQ_SUBS_DEFAULT);
}

static void test_wrong(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "expected a name of 1 to 64 letters, digits, '_', '.' and '-', found \"\""},
        {"a:b", "expected a name of 1 to 64 letters, digits, '_', '.' and '-', found \"a:b\""},
        {"a b",
         "expected an option of sidflakectl seq create, such as --start or --max-rate, found "
         "\"b\""},
        {"a --strat 1", "expected an option of sidflakectl seq create, such as --start or "
                        "--max-rate, found \"--strat\""},
        {"a --start", "--start: expected a whole number, at most 2^53-1 from 0, found \"\""},
        {"a --start 1x", "--start: expected a whole number, at most 2^53-1 from 0, found \"1x\""},
        {"a --start 9007199254740993",
         "--start: expected a whole number, at most 2^53-1 from 0, found \"9007199254740993\""},
        {"a --max-subs 0", "--max-subs: expected a number from 1 to 1000000, found \"0\""},
        {"a --begins now",
         "--begins: expected a time as in RFC 3339, such as 2026-01-01T00:00:00Z, found \"now\""},
        {"a --begins 1969-01-01", "--begins: expected a time after 1970, found one before"},
        {"a --order any", "--order: expected sidecar or strict, found \"any\""},
        {"a --reset week", "--reset: expected never, hour, day, month or year, found \"week\""},
        {"a --timezone UTC", "--timezone: expected with --reset hour, day, month or year, whose "
                             "beginnings it moves, found without"},
        {"a --max-rate 5 --on-loss trust", "expected one of --max-rate and --on-loss, found both"},
        {"a --on-loss skip",
         "--on-loss: expected refuse or trust, or --max-rate R in its place, found \"skip\""},
        {"a --reset hour --max-rate 1000 --max 3000000",
         "max: expected enough for a whole period at max-rate, to which numbers skip after a loss, "
         "found 2999999 numbers at 1000 a second, which last 0 days: a lower --max-rate, a larger "
         "--max, or --on-loss refuse"},
        {"a --increment 0", "increment: expected another number than 0, found 0"},
        {"a --cycle --subs --cycle", "--cycle: expected once, found twice"},
        {"a --start 1 --start 2", "--start: expected once, found twice"},
        {"a --new", "expected an option of sidflakectl seq create, such as --start or "
                    "--max-rate, found \"--new\""},
        {"a --reuse", "expected an option of sidflakectl seq create, such as --start or "
                      "--max-rate, found \"--reuse\""},
    };
    struct seq_create c;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum err_code r = line(cases[i].text, &c, &e);
        if (r != ERR_INVALID && r != ERR_RANGE)
            fail_msg("\"%s\": expected an error, found %d", cases[i].text, r);
        assert_string_equal(e.text, cases[i].why);
    }
}

/* As getopt_long has them, too. */
static void test_values_behind_an_equals_sign(void **state)
{
    struct seq_create c;
    struct err e;
    (void)state;
    assert_int_equal(line("a --start=5 --increment 2 --template=@{arg,x,width=1}-@{seq}", &c, &e),
                     ERR_OK);
    assert_int_equal(c.definition.start, 5);
    assert_string_equal(c.definition.template, "@{arg,x,width=1}-@{seq}");
    assert_int_equal(line("a --start= 5", &c, &e), ERR_INVALID);
    assert_string_equal(e.text, "--start: expected " SEQ_NUMBER_EXPECTED ", found \"\"");
    assert_int_equal(line("a --subs=1", &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "found \"--subs=1\""));
}

/* YAML knows how to say a NUL; numbers are not cut there. */
static void test_bytes_of_no_text(void **state)
{
    struct seq_create c;
    struct err e;
    char name[SEQ_NAME_MAX];
    (void)state;
    assert_int_equal(seq_line_read(SPAN("a --start 1\0002"), name, &c, &e), ERR_INVALID);
    assert_int_equal(seq_line_read(SPAN("a --start 12"), name, &c, &e), ERR_OK);
}

/* As sidflakectl has them: with those that no line may have, the latter of two counts. */
static void test_one_by_one(void **state)
{
    struct seq_words w = {0};
    struct err e;
    (void)state;
    assert_int_equal(seq_word_read("start", "1", &w, &e), ERR_OK);
    assert_int_equal(seq_word_read("start", "-7", &w, &e), ERR_OK);
    assert_int_equal(seq_word_read("max-subs", "5", &w, &e), ERR_OK);
    assert_int_equal(seq_word_read("order", "strict", &w, &e), ERR_OK);
    assert_int_equal(seq_word_read("reuse", NULL, &w, &e), ERR_OK);
    assert_int_equal(seq_word_read("no-older-data", NULL, &w, &e), ERR_OK);
    assert_true(w.has_start && w.start == -7 && w.max_subs == 5 && w.reuse && w.no_older);
    assert_string_equal(w.order, "strict");
    assert_false(w.has_max || w.fresh || w.cycle || w.has_begins);
    assert_int_equal(seq_word_read("strat", "1", &w, &e), ERR_INVALID);
    assert_int_equal(seq_word_read("start", "1x", &w, &e), ERR_INVALID);
    assert_string_equal(e.text,
                        "--start: expected a whole number, at most 2^53-1 from 0, found \"1x\"");
}

static void test_zones(void **state)
{
    static const char *const wrong[] = {"",      "utc",   "+1:00",         "+01:60", "+14:01",
                                        "01:00", "+0100", "Europe/Berlin", "+aa:00"};
    int min = 1;
    (void)state;
    assert_true(seq_zone_read(SPAN("Z"), &min) && min == 0);
    assert_true(seq_zone_read(SPAN("+14:00"), &min) && min == 840);
    assert_true(seq_zone_read(SPAN("-14:00"), &min) && min == -840);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(seq_zone_read(span_str(wrong[i]), &min));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_bytes_of_no_text),
        cmocka_unit_test(test_values_behind_an_equals_sign),
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_zones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
