/* What a coordinator said of sequences, and what the log has of it once they are lost. */
#include "lease/heard.h"

#include "lease/said.h"
#include "support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct blocks blocks;
static struct blocks_counter counter;

static struct seq_grant grant_of(const char *template, int64_t max)
{
    struct seq_grant g = {.how = SEQ_LOOKED, .gen = 1, .max = max};
    g.definition = (struct seq_definition){
        .start = 1, .increment = 1, .begins_ms = 1780000000000, .loss = SEQ_LOSS_REFUSE};
    memcpy(g.definition.template, template, strlen(template) + 1);
    (void)seq_definition_text(g.text, &g.definition);
    return g;
}

static const char *log_of_lost(const char *url)
{
    struct said said = {.at = {url, "eu", NULL}};
    blocks.counter = &counter;
    (void)snprintf(counter.of.name, sizeof counter.of.name, "inv");
    blocks.mail[0] = (struct blocks_mail){.kind = BLOCKS_MAIL_REFUSED, .how = SEQ_UNKNOWN};
    blocks.nmail = 1;
    capture_begin();
    said_mails(&said, &blocks, 0);
    return capture_end();
}

static int end(void **state)
{
    (void)state;
    heard_clear(&blocks.heard);
    return 0;
}

static void the_latest_counts(void **state)
{
    (void)state;
    struct seq_definition d;
    int64_t max;
    struct seq_grant g = grant_of("A@{seq}", 99), none = {.how = SEQ_UNKNOWN};
    assert_false(heard_find(&blocks.heard, "inv", &d, &max));
    heard_note(&blocks.heard, "inv", &g);
    heard_note(&blocks.heard, "inv", &none); /* which it is for as long as it is lost */
    assert_true(heard_find(&blocks.heard, "inv", &d, &max) && max == 99);
    assert_string_equal(d.template, "A@{seq}");
    g = grant_of("B@{seq}", 199);
    heard_note(&blocks.heard, "inv", &g);
    assert_true(heard_find(&blocks.heard, "inv", &d, &max) && max == 199);
    assert_string_equal(d.template, "B@{seq}");
    assert_false(heard_find(&blocks.heard, "in", &d, &max));
    g.how = SEQ_DROPPED;
    heard_note(&blocks.heard, "inv", &g);
    assert_false(heard_find(&blocks.heard, "inv", &d, &max));
    g.how = SEQ_LOOKED;
    heard_note(&blocks.heard, "inv", &g);
    assert_true(heard_find(&blocks.heard, "inv", &d, &max));
}

/* There may be many thousands. */
static void the_one_known_longest_makes_room(void **state)
{
    (void)state;
    struct seq_definition d;
    int64_t max;
    struct seq_grant g = grant_of("", 99);
    char name[SEQ_NAME_MAX];
    for (unsigned i = 0; i < HEARD_MAX + 2; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        heard_note(&blocks.heard, name, &g);
        heard_note(&blocks.heard, name, &g);
    }
    assert_int_equal(blocks.heard.n, HEARD_MAX);
    assert_false(heard_find(&blocks.heard, "s0", &d, &max));
    assert_false(heard_find(&blocks.heard, "s1", &d, &max));
    assert_true(heard_find(&blocks.heard, "s2", &d, &max));
    assert_true(heard_find(&blocks.heard, name, &d, &max));
}

static void it_is_told_whole_or_not_at_all(void **state)
{
    (void)state;
    static char far[LOG_LINE_MAX / 2] = "redis://";
    memset(far + strlen(far), 'h', 900 - strlen(far));
    struct seq_grant g = grant_of("A@{seq}", 99);
    assert_non_null(strstr(log_of_lost("redis://h"), "there is none: `sidflakectl seq create"));
    heard_note(&blocks.heard, "inv", &g);
    assert_non_null(
        strstr(log_of_lost("redis://h"),
               "why=\"there is none any more: as it was here it is made by `sidflakectl seq create "
               "--coordinator redis://h --pool eu inv --start 1 --increment 1 --max 100 --on-loss "
               "refuse --begins 2026-05-28T20:26:40.000Z --template 'A@{seq}'`\""));
    assert_non_null(strstr(log_of_lost(far), "there is none: `sidflakectl seq create"));
    g = grant_of("it's@{seq}", 99); /* of which a log shows something else */
    heard_note(&blocks.heard, "inv", &g);
    assert_non_null(strstr(log_of_lost("redis://h"), "there is none: `sidflakectl seq create"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_latest_counts, end),
        cmocka_unit_test_teardown(the_one_known_longest_makes_room, end),
        cmocka_unit_test_teardown(it_is_told_whole_or_not_at_all, end),
    };
    return cmocka_run_group_tests_name("lease/heard", tests, NULL, NULL);
}
