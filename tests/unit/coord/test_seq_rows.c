/* Definitions and rows as texts: each comes back as it went, and nothing else is read. */
#include "coord/seq_rows.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct seq_definition skips(int64_t rate)
{
    return (struct seq_definition){.start = 1,
                                   .increment = 1,
                                   .begins_ms = 1780000000000,
                                   .rate = rate,
                                   .burst = seq_burst(rate),
                                   .loss = SEQ_LOSS_SKIP};
}

static void a_definition_comes_back(void **state)
{
    (void)state;
    char text[SEQ_TEXT_MAX], again[SEQ_TEXT_MAX];
    struct seq_definition d = skips(1000), e;
    assert_string_equal(seq_definition_text(text, &d),
                        "start=1 increment=1 begins=1780000000000 rate=1000 burst=10000 subs=0"
                        " reset=never offset=0 loss=skip order=sidecar cycle=no");
    d = (struct seq_definition){.start = -SEQ_NUMBER_MAX,
                                .increment = -SEQ_NUMBER_MAX,
                                .begins_ms = 1780000000000,
                                .subs = SEQ_SUBS_MAX,
                                .reset = PERIOD_MONTH,
                                .offset_min = -PERIOD_OFFSET_MAX,
                                .loss = SEQ_LOSS_REFUSE,
                                .strict = true,
                                .cycle = true};
    assert_true(seq_definition_parse(span_str(seq_definition_text(text, &d)), &e));
    assert_string_equal(seq_definition_text(again, &e), text);
}

/* Each byte of it, changed and left out. */
static void what_is_no_definition(void **state)
{
    (void)state;
    char text[SEQ_TEXT_MAX], bad[SEQ_TEXT_MAX + 1];
    struct seq_definition d = skips(1000), e;
    size_t n = strlen(seq_definition_text(text, &d)), read = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(bad, text, n + 1);
        bad[i] = 'x';
        assert_false(seq_definition_parse(span_str(bad), &e));
        memmove(bad + i, text + i + 1, n - i);
        read += seq_definition_parse(span_str(bad), &e);
        assert_false(seq_definition_parse(span_of(text, i), &e));
    }
    assert_true(read < 20); /* a digit of the beginning, say, may be missing */
    (void)snprintf(bad, sizeof bad, "%s ", text);
    assert_false(seq_definition_parse(span_str(bad), &e));
}

/* What older versions do not know stands at the end, or is not there. */
static void a_template_and_hours_back_come_back(void **state)
{
    (void)state;
    static const char *const bad[] = {
        " back=0",        " back=01",    " back=-1",       " back=x",      " back=876001",
        " back=3 ",       " template=",  " template=A B",  " template=A ", " template=A back=3",
        " back=3 back=3", " back=3 x=1", " template=\x7f", " templates=A",
    };
    char text[SEQ_TEXT_MAX], again[2 * SEQ_TEXT_MAX];
    struct seq_definition e, d = {.start = -SEQ_NUMBER_MAX,
                                  .increment = -SEQ_NUMBER_MAX,
                                  .begins_ms = INT64_C(9999999999999),
                                  .rate = LINE_RATE_MAX,
                                  .burst = seq_burst(LINE_RATE_MAX),
                                  .loss = SEQ_LOSS_SKIP,
                                  .subs = SEQ_SUBS_MAX,
                                  .reset = PERIOD_MONTH,
                                  .offset_min = -PERIOD_OFFSET_MAX,
                                  .back_h = SEQ_BACK_MAX};
    memset(d.template, '~', TEMPLATE_TEXT_MAX);
    assert_true(seq_definition_parse(span_str(seq_definition_text(text, &d)), &e));
    assert_string_equal(seq_definition_text(again, &e), text);
    assert_int_equal(e.back_h, SEQ_BACK_MAX);
    assert_string_equal(e.template, d.template);
    d.back_h = 0;
    d.template[0] = '\0';
    (void)seq_definition_text(text, &d);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(again, sizeof again, "%s%s", text, bad[i]);
        if (seq_definition_parse(span_str(again), &e))
            fail_msg("\"%s\" was read", bad[i]);
    }
    (void)snprintf(again, sizeof again, "%s template=%0256d", text, 0);
    assert_false(seq_definition_parse(span_str(again), &e));
    d.reset = PERIOD_NEVER; /* no period has an end */
    d.offset_min = 0;
    (void)snprintf(again, sizeof again, "%s back=3", seq_definition_text(text, &d));
    assert_true(seq_definition_parse(span_str(text), &e));
    assert_false(seq_definition_parse(span_str(again), &e));
}

static void what_can_be_none(void **state)
{
    (void)state;
    struct err e;
    struct seq_definition d = skips(1000);
    assert_int_equal(seq_check(&d, SEQ_NUMBER_MAX, &e), ERR_OK);
    assert_int_equal(seq_check(&d, INT32_MAX, &e), ERR_RANGE); /* 24 days */
    assert_non_null(strstr(e.text, "which last 24 days"));
    assert_int_equal(seq_check(&d, 0, &e), ERR_RANGE);
    d.increment = 0;
    assert_int_equal(seq_check(&d, 10, &e), ERR_RANGE);
    d = skips(0);
    assert_int_equal(seq_check(&d, SEQ_NUMBER_MAX, &e), ERR_RANGE);
    d = skips(1000);
    d.cycle = d.strict = true;
    assert_int_equal(seq_check(&d, SEQ_NUMBER_MAX, &e), ERR_INVALID);
    d.loss = SEQ_LOSS_TRUST;
    d.rate = d.burst = 0;
    assert_int_equal(seq_check(&d, 10, &e), ERR_OK);
    d.strict = false;
    assert_int_equal(seq_check(&d, 10, &e), ERR_INVALID);
    d = skips(1);
    d.reset = PERIOD_DAY; /* begins anew: it has to last its day, not 50 years */
    assert_int_equal(seq_check(&d, 100000, &e), ERR_OK);
    assert_int_equal(seq_check(&d, 90000, &e), ERR_RANGE);
    d.offset_min = PERIOD_OFFSET_MAX + 1;
    assert_int_equal(seq_check(&d, 100000, &e), ERR_RANGE);
}

static void numbers_and_indices(void **state)
{
    (void)state;
    struct seq_definition d = {.start = 100, .increment = 10};
    assert_int_equal(seq_number(&d, 3), 130);
    assert_int_equal(seq_index_from(&d, 130), 3);
    assert_int_equal(seq_index_from(&d, 131), 4);
    assert_int_equal(seq_index_from(&d, 5), 0);
    assert_int_equal(seq_max_index(&d, 139), 3);
    assert_int_equal(seq_max_index(&d, 99), -1);
    d = (struct seq_definition){.start = SEQ_NUMBER_MAX, .increment = -1};
    assert_int_equal(seq_max_index(&d, -SEQ_NUMBER_MAX), SEQ_INDEX_MAX - 1);
    assert_int_equal(seq_number(&d, SEQ_INDEX_MAX), 0);
    assert_int_equal(seq_index_from(&d, SEQ_NUMBER_MAX - 1), 1);
}

/* Whatever it is that is read. */
static void which_indices_there_can_be(void **state)
{
    (void)state;
    assert_true(seq_has_index(1, 1, 0));
    assert_true(seq_has_index(-SEQ_NUMBER_MAX, 1, SEQ_INDEX_MAX - 1));
    assert_false(seq_has_index(-SEQ_NUMBER_MAX, 1, SEQ_INDEX_MAX));
    assert_true(seq_has_index(1, -2, SEQ_INDEX_MAX / 2 + 1));
    assert_false(seq_has_index(1, -2, SEQ_INDEX_MAX / 2 + 2));
    assert_false(seq_has_index(1, 1, -1));
    assert_false(seq_has_index(1, 0, 0));
    assert_false(seq_has_index(1, INT64_MIN, 0));
    assert_false(seq_has_index(INT64_MAX, 1, 0));
    assert_false(seq_has_index(INT64_MIN, -1, 0));
}

static void rows_come_back(void **state)
{
    (void)state;
    char row[SEQ_ROW_MAX], again[SEQ_ROW_MAX], key[SEQ_KEY_MAX], name[SEQ_NAME_MAX];
    struct seq_state s = {.gen = 1,
                          .turn = 2,
                          .ok = 3,
                          .bturn = 4,
                          .bt_ms = 5,
                          .base = 6,
                          .max = SEQ_INDEX_MAX - 1,
                          .top = 8,
                          .seen = 9,
                          .subs = 10,
                          .revoked = {11, 12, 13},
                          .per = "2026-11",
                          .mark = ""},
                     t;
    struct seq_counter c = {.era = 1, .next = 2, .n = 3, .lo = 4, .hi = 5, .turn = 6, .gaps = 7}, e;
    struct seq_definition d = skips(7), got;
    struct seq_counter_info info;
    (void)seq_definition_text(s.text, &d);
    assert_true(seq_state_read(span_str(seq_state_write(row, &s)), &t, &got));
    assert_string_equal(seq_state_write(again, &t), row);
    assert_int_equal(got.rate, 7);
    assert_true(seq_counter_read(span_str(seq_counter_write(row, &c)), &e));
    assert_string_equal(seq_counter_write(again, &e), row);
    c.taken = true;
    memset(c.token.b, 0xab, sizeof c.token.b);
    assert_true(seq_counter_read(span_str(seq_counter_write(row, &c)), &e));
    assert_string_equal(seq_counter_write(again, &e), row);
    assert_string_equal(seq_counter_key(key, "a.b", 2, "", ""), "num a.b 2 -");
    assert_true(seq_counter_key_read(span_str(key), name, &info));
    assert_string_equal(seq_counter_key(key, "a.b", 2, "2026", "-"), "num a.b 2 2026 -");
    assert_true(seq_counter_key_read(span_str(key), name, &info));
    assert_string_equal(info.sub, "-");
    assert_string_equal(info.period, "2026");
    assert_string_equal(seq_state_key(key, "x"), "seq x");
    assert_true(seq_state_key_read(span_str(key), name));
    assert_string_equal(name, "x");
}

/* Rows that somebody else may have written. */
static void what_is_no_row(void **state)
{
    (void)state;
    static const char *const counters[] = {
        "",
        "1 2 3 - 4 5 6",
        "1 2 3 - 4 5 6 7 8",
        "1 2 3 - 4 5 6 7 ",
        "1 -2 3 - 4 5 6 7",
        "1 2 3 x 4 5 6 7",
        "1 2 3  4 5 6 7",
        "1 9007199254740992 3 - 4 5 6 7",
        "1 2 3 - 4 5 6 1e3",
        "01 2 3 - 4 5 6 7",
    };
    static const char *const keys[] = {"num",        "num ",       "num a",       "num a ",
                                       "num a 1",    "num a 1 ",   "num a 1 -  ", "num a 1 - b c",
                                       "num a! 1 -", "num a -1 -", "seq a 1 -",   "num a 1 20 x"};
    struct seq_counter c;
    struct seq_counter_info info;
    struct seq_state s;
    struct seq_definition d = skips(1);
    struct seq_faith f;
    char name[SEQ_NAME_MAX], row[SEQ_ROW_MAX], text[SEQ_TEXT_MAX];
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        assert_false(seq_counter_read(span_str(counters[i]), &c));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_false(seq_counter_key_read(span_str(keys[i]), name, &info));
    assert_false(seq_state_key_read(SPAN("seq"), name));
    assert_false(seq_state_key_read(SPAN("seq a b"), name));
    assert_false(seq_faith_read(SPAN("1 2"), &f));
    assert_false(seq_faith_read(SPAN("1 2 3 4"), &f));
    assert_true(seq_faith_read(SPAN("1 2 3"), &f));
    for (int i = 0; i < 2; i++) {
        (void)snprintf(row, sizeof row, "%d 0 0 0 0 0 0 0 0 0 0 0 0 0 - - %s", i,
                       seq_definition_text(text, &d));
        assert_int_equal(seq_state_read(span_str(row), &s, &d), i == 1);
    }
    (void)snprintf(row, sizeof row, "1 0 0 0 0 0 5 7 0 0 0 0 0 0 - - %s", /* top is above max */
                   seq_definition_text(text, &d));
    assert_false(seq_state_read(span_str(row), &s, &d));
    d.increment = 2; /* max would be a number above all */
    (void)snprintf(row, sizeof row, "1 0 0 0 0 0 9007199254740991 0 0 0 0 0 0 0 - - %s",
                   seq_definition_text(text, &d));
    assert_false(seq_state_read(span_str(row), &s, &d));
    assert_false(seq_state_read(SPAN("1 0 0 0 0 0 0 0 0 0 0 0 0 0 - -"), &s, &d));
    assert_false(seq_state_read(SPAN("1 0 0 0 0 0 0 0 0 0 0 0 0 0 - - x"), &s, &d));
}

/* Nothing that is read is too long for its place: the sanitizers look on. */
static void random_rows(void **state)
{
    (void)state;
    static const char letters[] = "0019 9--=.:aqenumsT\xff\x01";
    struct seeded r = seeded_of(3);
    for (size_t i = 0; i < 100000; i++) {
        char text[700], name[SEQ_NAME_MAX];
        size_t n = (size_t)seeded_in(&r, 0, sizeof text - 1);
        struct seq_counter c;
        struct seq_counter_info info;
        struct seq_state s;
        struct seq_definition d;
        for (size_t k = 0; k < n; k++)
            text[k] = letters[seeded_in(&r, 0, sizeof letters - 2)];
        size_t at = n > 8 && i % 2 ? 4 : 0;
        memcpy(text, i % 4 == 1 ? "num " : "seq ", at);
        (void)seq_counter_read(span_of(text, n), &c);
        (void)seq_state_read(span_of(text, n), &s, &d);
        (void)seq_state_key_read(span_of(text, n), name);
        (void)seq_counter_key_read(span_of(text, n), name, &info);
    }
}

static void rows_are_sorted_and_none_is_twice(void **state)
{
    (void)state;
    struct seq_rows rows = {.n = 0};
    static const char *const keys[] = {"b", "a", "c", "a", "b", "a"};
    for (size_t i = 0; i < 6; i++)
        assert_true(seq_rows_add(&rows, span_str(keys[i]), SPAN("v")));
    seq_rows_sort(&rows);
    assert_int_equal(rows.n, 3);
    assert_string_equal(rows.v[0].key, "a");
    assert_string_equal(rows.v[2].key, "c");
    assert_string_equal(rows.v[2].value, "v");
    size_t n = rows.n;
    rows.n = SEQ_ROWS_MAX; /* or who lists them takes all memory */
    assert_false(seq_rows_add(&rows, SPAN("d"), SPAN("v")));
    assert_int_equal(rows.n, SEQ_ROWS_MAX);
    rows.n = n;
    seq_rows_clear(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_definition_comes_back),
        cmocka_unit_test(what_is_no_definition),
        cmocka_unit_test(a_template_and_hours_back_come_back),
        cmocka_unit_test(what_can_be_none),
        cmocka_unit_test(numbers_and_indices),
        cmocka_unit_test(which_indices_there_can_be),
        cmocka_unit_test(rows_come_back),
        cmocka_unit_test(what_is_no_row),
        cmocka_unit_test(random_rows),
        cmocka_unit_test(rows_are_sorted_and_none_is_twice),
    };
    return cmocka_run_group_tests_name("coord/seq_rows", tests, NULL, NULL);
}
