#include "ids/sequence_places.h"
#include "support/fake_supply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HOUR    INT64_C(3600000)
#define WALL    INT64_C(1790000000000)
#define USED_UP "sidflake_sequence_used_up_seconds"

static struct sequence_table t;

static int64_t figure_of(const struct generator *g, const char *metric, int64_t now_ms)
{
    for (unsigned i = 0; i < g->kind->nfigures; i++)
        if (g->kind->figures[i].metric && strcmp(g->kind->figures[i].metric, metric) == 0)
            return g->kind->figures[i].value(g, now_ms);
    return -1;
}

static bool is_warned_of(const struct generator *g)
{
    char text[200];
    struct buf b;
    buf_init(&b, text, sizeof text);
    return g->kind->warnings[0].say(g, 0, &b);
}

static int64_t used_up(int64_t now_ms)
{
    return figure_of(t.base.after, USED_UP, now_ms);
}

static int begin(void **state)
{
    (void)state;
    fake_supply_table(&t, 16);
    assert_true(sequence_table_adopt(&t, 0, &(struct sequence_name){.name = "few", .sub = "a"}));
    assert_true(sequence_table_adopt(&t, 1, &(struct sequence_name){.name = "few", .sub = "b"}));
    t.mono = HOUR;
    return 0;
}

static int end(void **state)
{
    (void)state;
    sequence_table_clear(&t);
    return 0;
}

/* So many of it were given out since the start, which was an hour ago. */
static void given(uint32_t place, int64_t n)
{
    t.place[place].numbers.given = n;
}

static void the_time_until_the_max_is_shown(void **state)
{
    (void)state;
    assert_true(used_up(0) == GENERATOR_UNKNOWN);
    sequence_table_beyond(&t, 0, 100000);
    assert_true(used_up(0) == GENERATOR_UNKNOWN); /* nobody takes any */
    given(0, 900000);
    assert_int_equal(used_up(0), 400);
    sequence_table_beyond(&t, 1, SEQUENCE_TOP); /* it has no end */
    given(1, SEQUENCE_TOP);
    assert_int_equal(used_up(0), 400);
    sequence_table_beyond(&t, 1, 2000);
    given(1, 3600000);
    assert_int_equal(used_up(0), 2);
    given(1, 3600);
    assert_int_equal(used_up(0), 400);
    sequence_table_beyond(&t, 1, 0); /* there is none left, whatever the pace */
    given(1, 0);
    assert_int_equal(used_up(0), 0);
}

static void who_is_idle_lasts_longer(void **state)
{
    (void)state;
    sequence_table_beyond(&t, 0, 100000);
    given(0, 900000);
    sequence_table_time(&t, WALL, HOUR);
    assert_int_equal(used_up(WALL), 400);
    assert_int_equal(used_up(WALL + 9 * HOUR), 4000);
    assert_int_equal(used_up(WALL - 9 * HOUR), 400); /* a clock that is wrong */
}

/* Of what begins anew before it has come to its end there is no end. */
static void one_that_begins_anew_before_has_no_end(void **state)
{
    (void)state;
    sequence_table_beyond(&t, 0, 100000);
    given(0, 900000);
    t.place[0].ends_ms = WALL + 401000;
    assert_int_equal(used_up(WALL), 400);
    assert_true(used_up(WALL + 2000) == GENERATOR_UNKNOWN);
    sequence_table_beyond(&t, 0, 0);
    assert_int_equal(used_up(WALL + 2000), 0);
}

/* By others, as far as this sidecar knows. */
static void one_that_is_used_up_has_none_until_its_max(void **state)
{
    (void)state;
    struct sequence_refusal r = {.cause = SEQUENCE_USED_UP, .stands = true, .count = 4};
    sequence_table_beyond(&t, 0, 1000);
    sequence_table_refuse(&t, 0, &r, false);
    assert_int_equal(figure_of(t.base.after, "sidflake_sequence_until_max", 0), 1000);
    assert_false(is_warned_of(t.base.after)); /* who wants fewer in a row has them */
    r.count = 1;
    sequence_table_refuse(&t, 0, &r, false);
    assert_true(is_warned_of(t.base.after));
    assert_int_equal(figure_of(t.base.after, "sidflake_sequence_until_max", 0), 0);
    assert_int_equal(used_up(0), 0);
}

/* One that the configuration defines otherwise is never known here: it is shown all the same. */
static void one_that_is_refused_from_the_start_is_shown(void **state)
{
    char text[200];
    struct buf b;
    int64_t until;
    const struct sequence_refusal r = {.cause = SEQUENCE_DIFFERS, .stands = true, .count = 1};
    const struct generator *few = t.base.after, *odd;
    (void)state;
    assert_null(few->after);
    struct sequence_generator *s =
        (struct sequence_generator *)sequence_table_entry(&t.base, SPAN("odd:a"), SPAN(""))
            ->generator;
    assert_int_equal(sequence_table_place(&s, HOUR, &until), SEQUENCE_GIVEN);
    assert_null(few->after);
    sequence_table_refuse(&t, (uint32_t)(s - t.place), &r, false);
    assert_non_null(odd = few->after);
    assert_string_equal(odd->label, "odd");
    assert_int_equal(figure_of(odd, "sidflake_sequence_counters", 0), 1);
    buf_init(&b, text, sizeof text);
    assert_true(odd->kind->warnings[0].say(odd, 0, &b));
    assert_memory_equal(text, "sequence odd: ", 14);
    assert_false(s->live); /* of names that clients think of it takes the share */
}

/* Whoever has them: the keeper what it drops, and the loop. */
static void gaps_are_all_that_were_dropped(void **state)
{
    (void)state;
    static const char metric[] = "sidflake_sequence_gaps";
    t.told.dropped = 100;
    sequence_table_own(&t, 0, 0, 9, 0, false);
    sequence_table_own(&t, 0, 10, 29, 0, false);
    assert_int_equal(figure_of(&t.base, metric, 0), 110);
    sequence_table_revoke(&t, 0, 0, 28);
    assert_int_equal(figure_of(&t.base, metric, 0), 130);
    sequence_table_own(&t, 1, 0, 4, 0, false);
    sequence_table_let_go(&t);
    assert_int_equal(figure_of(&t.base, metric, 0), 135);
    sequence_table_own(&t, 7, 0, 1, 0, false); /* it was closed meanwhile */
    assert_int_equal(figure_of(&t.base, metric, 0), 137);
}

static void who_was_closed_is_counted_all_the_same(void **state)
{
    (void)state;
    t.place[0].parked = 3;
    t.place[0].refused = 4;
    given(0, 5);
    t.place[1].parked = t.place[1].refused = 1;
    sequence_places_close(&t.place[0]);
    assert_int_equal(figure_of(t.base.after, "sidflake_sequence_counters", 0), 1);
    assert_int_equal(figure_of(t.base.after, "sidflake_sequence_parked", 0), 4);
    assert_int_equal(figure_of(t.base.after, "sidflake_sequence_refused", 0), 5);
    assert_int_equal(figure_of(t.base.after, "sidflake_sequence_given", 0), 5);
}

static const char *late(int64_t now_ms)
{
    static char text[200];
    struct buf b;
    buf_init(&b, text, sizeof text - 1);
    bool is = t.base.after->kind->warnings[2].say(t.base.after, now_ms, &b);
    text[b.n] = '\0';
    return is ? text : "";
}

static void one_at_its_max_rate_is_warned_of_for_a_minute(void **state)
{
    (void)state;
    assert_string_equal(late(WALL), "");
    sequence_table_late(&t, 1, 50, WALL);
    assert_string_equal(late(WALL),
                        "sequence few: at its max rate: more than 50 a second are asked "
                        "for, and clients wait, or are refused");
    assert_string_not_equal(late(WALL + 59999), "");
    assert_string_equal(late(WALL + 60000), "");
    sequence_table_late(&t, 7, 50, WALL); /* a place that is not open */
}

/* A start that finds the numbers of some leaves the places between them to others. */
static void places_between_those_that_were_found_are_free(void **state)
{
    (void)state;
    const struct sequence_name far = {.name = "far"};
    char name[] = "few:0";
    int64_t until;
    assert_true(sequence_table_adopt(&t, 5, &far));
    sequence_places_close(&t.place[1]); /* or what nobody knows has no place */
    for (name[4] = '0'; name[4] < '3'; name[4]++) {
        struct sequence_generator *s =
            (struct sequence_generator *)sequence_table_entry(&t.base, span_str(name), SPAN(""))
                ->generator;
        assert_int_equal(sequence_table_place(&s, HOUR, &until), SEQUENCE_GIVEN);
        assert_in_range(s - t.place, 2, 4);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_time_until_the_max_is_shown),
        TEST(who_is_idle_lasts_longer),
        TEST(one_that_begins_anew_before_has_no_end),
        TEST(one_that_is_used_up_has_none_until_its_max),
        TEST(one_that_is_refused_from_the_start_is_shown),
        TEST(gaps_are_all_that_were_dropped),
        TEST(who_was_closed_is_counted_all_the_same),
        TEST(one_at_its_max_rate_is_warned_of_for_a_minute),
        TEST(places_between_those_that_were_found_are_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
