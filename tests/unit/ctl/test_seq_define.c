/* What is said of a sequence to sidflakectl, and how it says it. */
#include "ctl/args.h"
#include "ctl/seq.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void zones(void **state)
{
    (void)state;
    assert_string_equal(ctl_seq_zone_text(0), "UTC");
    assert_string_equal(ctl_seq_zone_text(60), "+01:00");
    assert_string_equal(ctl_seq_zone_text(-210), "-03:30");
    assert_string_equal(ctl_seq_zone_text(840), "+14:00");
}

/* Reads options as seq create does. text is parted at its spaces. */
static enum err_code define(const char *text, struct seq_create *out, struct err *e)
{
    static char copy[512];
    static const struct ctl_command command = {
        .group = "seq",
        .name = "create",
        .takes = "start increment max cycle order reset timezone subs max-subs max-rate on-loss "
                 "begins new reuse no-older-data",
        .rest = "NAME",
        .rest_min = 1,
        .rest_max = 1,
    };
    struct ctl_args a = {.pool = NULL};
    char *argv[64] = {NULL}, *rest = NULL;
    int argc = 0, status = -1;
    (void)snprintf(copy, sizeof copy, "create %s name", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    optind = 0;
    assert_true(ctl_parse(&command, argc, argv, &a, &status));
    assert_string_equal(a.rest[0], "name");
    memset(out, 0, sizeof *out);
    return seq_words_read(&a.seq.words, out, e);
}

static void definitions(void **state)
{
    struct seq_create in;
    struct err e;
    (void)state;
    assert_int_equal(define("", &in, &e), ERR_OK);
    assert_true(in.definition.start == 1 && in.definition.increment == 1 &&
                in.max == SEQ_NUMBER_MAX && in.definition.loss == SEQ_LOSS_UNSAID && !in.has_max &&
                in.definition.begins_ms == 0 && in.definition.subs == 0 && !in.definition.strict);
    assert_int_equal(define("--start -5 --increment -2", &in, &e), ERR_OK);
    assert_true(in.definition.start == -5 && in.max == -SEQ_NUMBER_MAX);
    assert_int_equal(define("--max-rate 1000 --subs", &in, &e), ERR_OK);
    assert_true(in.definition.loss == SEQ_LOSS_SKIP && in.definition.rate == 1000 &&
                in.definition.burst == 10000 && in.definition.subs == 100000);
    assert_int_equal(define("--reuse --no-older-data --on-loss trust --max-subs 7", &in, &e),
                     ERR_OK);
    assert_true(in.reuse && in.no_older && in.definition.loss == SEQ_LOSS_TRUST &&
                in.definition.subs == 7);
    assert_int_equal(define("--new --on-loss refuse --order sidecar", &in, &e), ERR_OK);
    assert_true(in.fresh && in.definition.loss == SEQ_LOSS_REFUSE);
}

static void what_cannot_be(void **state)
{
    static const char *const wrong[][2] = {
        {"--order loose", "--order: expected sidecar or strict, found \"loose\""},
        {"--reset week", "found \"week\""},
        {"--reset never --timezone UTC", "--timezone: expected with --reset"},
        {"--reset day --timezone CET", "found \"CET\""},
        {"--on-loss skip", "found \"skip\""},
        {"--on-loss refuse --max-rate 5", "found both"},
        {"--reuse", "--no-older-data as well"},
        {"--no-older-data", "expected with --reuse"},
        {"--new --begins 2026-01-01T00:00:00Z", "expected one of --new"},
        {"--begins 1970-01-01T00:00:00Z", "expected a time after 1970"},
        {"--increment 0", "another number than 0"},
        {"--max-rate 0", "max-rate: expected 1 to"},
        {"--max-rate 9007199254740991", "max-rate: expected 1 to"},
        {"--max 0", "not before start"},
        {"--max-rate 1000 --max 2147483647", "50 years"},
        {"--cycle", "expected --order strict"},
    };
    struct seq_create in;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(define(wrong[i][0], &in, &e), ERR_OK);
        if (!strstr(e.text, wrong[i][1]))
            fail_msg("%s: expected \"%s\", found \"%s\"", wrong[i][0], wrong[i][1], e.text);
    }
}

static void options_make_it_again(void **state)
{
    static const char *const all[] = {
        "--start 1 --increment 1 --on-loss refuse",
        "--start -7 --increment -3 --max -100 --on-loss trust",
        "--start 5 --increment 10 --max 95 --order strict --cycle --on-loss refuse",
        "--start 1 --increment 1 --reset hour --timezone -03:30 --max-subs 9 --max-rate 100 "
        "--begins 2026-11-25T20:30:42.674Z",
        "--start 9007199254740991 --increment -9007199254740991 --max -9007199254740991 --order "
        "strict --reset month --timezone +14:00 --max-subs 1000000 --on-loss refuse --begins "
        "9998-11-25T20:30:42.674Z",
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct seq_create in, again;
        struct err e;
        char told[SEQ_OPTIONS_MAX], text[2][SEQ_TEXT_MAX];
        if (define(all[i], &in, &e))
            fail_msg("%s: %s", all[i], e.text);
        (void)seq_options_text(told, &in.definition, seq_max_index(&in.definition, in.max));
        if (i < 2)
            assert_string_equal(
                told, i == 1 ? "--start -7 --increment -3 --max -100 --on-loss trust" : all[i]);
        assert_int_equal(define(told, &again, &e), ERR_OK);
        assert_string_equal(seq_definition_text(text[0], &in.definition),
                            seq_definition_text(text[1], &again.definition));
        assert_true(seq_max_index(&in.definition, in.max) ==
                    seq_max_index(&again.definition, again.max));
    }
}

/* What `seq show` has of one, behind its name, is a line of sequences.define. */
static void what_is_shown_is_a_line(void **state)
{
    static char most[201];
    const char *const templates[] = {
        "a'b@{seq}", "''@{seq}", "'@{seq}'", "'\\''@{seq}", "\"@{seq}\"", "@{seq}", most,
    };
    (void)state;
    memset(most, '\'', sizeof most - 1);
    memcpy(most, "@{seq}", 6);
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        struct seq_definition d = {.start = 1, .increment = 1, .loss = SEQ_LOSS_REFUSE};
        char told[SEQ_OPTIONS_MAX], line[SEQ_OPTIONS_MAX + 8], name[SEQ_NAME_MAX];
        struct seq_create in;
        struct err e = {.text = ""};
        memcpy(d.template, templates[i], strlen(templates[i]) + 1);
        (void)snprintf(line, sizeof line, "x %s", seq_options_text(told, &d, seq_last_index(&d)));
        if (seq_line_read(span_str(line), name, &in, &e))
            fail_msg("%s: %s", line, e.text);
        assert_string_equal(in.definition.template, templates[i]);
    }
}

static void what_a_coordinator_says_may_be_anything(void **state)
{
    struct seq_definition d = {.start = 1, .increment = SEQ_NUMBER_MAX};
    (void)state;
    assert_int_equal(ctl_seq_at(&d, SEQ_INDEX_MAX), 1);
    assert_int_equal(ctl_seq_at(&d, -5), 1);
    d.increment = -2;
    assert_int_equal(ctl_seq_at(&d, 3), -5);
    assert_string_equal(ctl_seq_highest(&d, 0), "-");
    assert_string_equal(ctl_seq_highest(&d, 2), "-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zones),
        cmocka_unit_test(definitions),
        cmocka_unit_test(what_cannot_be),
        cmocka_unit_test(options_make_it_again),
        cmocka_unit_test(what_is_shown_is_a_line),
        cmocka_unit_test(what_a_coordinator_says_may_be_anything),
    };
    return cmocka_run_group_tests_name("ctl/seq_define", tests, NULL, NULL);
}
