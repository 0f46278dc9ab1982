#include "lease/trouble.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct trouble t;
static int64_t now_ms;

static int begin(void **state)
{
    (void)state;
    t = (struct trouble){.reason = 0};
    now_ms = 1000000;
    return 0;
}

static bool came(enum lease_action_kind kind, enum coord_status s, bool answered, const char *why)
{
    const struct trouble_call c = {
        .kind = kind, .status = s, .answered = answered, .why = why, .mono_ms = now_ms};
    return trouble_is_news(&t, &c);
}

static bool is_fine(enum lease_action_kind kind)
{
    return came(kind, COORD_OK, true, "");
}

static bool fails(enum lease_action_kind kind, const char *why)
{
    return came(kind, COORD_REFUSED, true, why);
}

static void a_trouble_is_told_once_and_so_is_its_end(void **state)
{
    (void)state;
    assert_false(is_fine(LEASE_CLAIM));
    assert_true(fails(LEASE_RENEW, "full"));
    assert_string_equal(trouble_message(&t), "coordinator refuses");
    assert_int_equal(trouble_level(&t), LOG_LVL_ERROR);
    for (int i = 0; i < 59; i++, now_ms += 1000)
        assert_false(fails(LEASE_RENEW, "full"));
    now_ms += 1000;
    assert_true(fails(LEASE_RENEW, "full")); /* a minute later */
    assert_false(fails(LEASE_RENEW, "full"));
    assert_true(is_fine(LEASE_RENEW));
    assert_string_equal(trouble_message(&t), "coordinator answers again");
    assert_int_equal(trouble_level(&t), LOG_LVL_INFO);
    assert_false(is_fine(LEASE_RENEW));
    assert_true(fails(LEASE_RENEW, "full"));
}

/* As on a full disk, and on a replica. */
static void what_needs_less_ends_no_trouble(void **state)
{
    static const enum lease_action_kind kinds[] = {LEASE_DESCRIBE, LEASE_RELEASE, LEASE_RENEW,
                                                   LEASE_CLAIM};
    (void)state;
    for (size_t failed = 0; failed < 4; failed++)
        for (size_t fine = 0; fine < 4; fine++) {
            begin(NULL);
            assert_true(fails(kinds[failed], "full"));
            assert_int_equal(is_fine(kinds[fine]), fine >= failed);
        }
    begin(NULL); /* the most that has failed counts, though it was not told */
    assert_true(fails(LEASE_DESCRIBE, "full"));
    assert_false(fails(LEASE_CLAIM, "full"));
    assert_false(is_fine(LEASE_RENEW));
    assert_true(is_fine(LEASE_CLAIM));
    begin(NULL); /* what needed so much is not asked for any more */
    assert_true(fails(LEASE_CLAIM, "full"));
    now_ms += 59999;
    assert_false(is_fine(LEASE_RENEW));
    now_ms += 1;
    assert_true(is_fine(LEASE_RENEW));
}

static void who_did_not_answer_is_back_with_any_answer(void **state)
{
    (void)state;
    assert_true(came(LEASE_CLAIM, COORD_DOWN, false, "Connection refused"));
    assert_string_equal(trouble_message(&t), "coordinator down");
    assert_true(is_fine(LEASE_DESCRIBE));
    assert_true(came(LEASE_CLAIM, COORD_DOWN, true, "-READONLY"));
    assert_string_equal(trouble_message(&t), "coordinator not ready");
    assert_false(is_fine(LEASE_DESCRIBE));
}

/* It answered all the while. */
static void a_pool_that_is_open_again_is_called_so(void **state)
{
    (void)state;
    assert_true(came(LEASE_RENEW, COORD_CLOSED, true, "closed"));
    assert_string_equal(trouble_message(&t), "the pool is closed");
    assert_true(is_fine(LEASE_RENEW));
    assert_string_equal(trouble_message(&t), "the pool is open again");
}

static void another_reason_is_told(void **state)
{
    (void)state;
    assert_true(came(LEASE_RENEW, COORD_DOWN, false, "Connection refused"));
    assert_false(came(LEASE_RENEW, COORD_DOWN, false, "Connection refused"));
    assert_true(came(LEASE_RENEW, COORD_DOWN, false, "No route to host"));
    now_ms += 10000;
    assert_true(came(LEASE_RENEW, COORD_DOWN, true, "No route to host"));
    now_ms += 10000;
    assert_true(came(LEASE_RENEW, COORD_NOPOOL, true, "No route to host"));
    assert_string_equal(trouble_message(&t), "no pool");
}

static void numbers_make_no_other_reason(void **state)
{
    (void)state;
    assert_true(fails(LEASE_RENEW, "at 12:00, 5 ms"));
    assert_false(fails(LEASE_RENEW, "at 13:59, 1234 ms"));
}

/* The latest one is told all the same, once there is room. */
static void reasons_that_take_turns_fill_no_log(void **state)
{
    unsigned told = 0;
    (void)state;
    for (int i = 0; i < 300; i++, now_ms += 100)
        told += fails(LEASE_RENEW, i % 2 ? "full" : "locked");
    assert_in_range(told, 3, 5);
    now_ms += 10000;
    assert_int_equal(fails(LEASE_RENEW, "full") + fails(LEASE_RENEW, "locked"), 1);
}

/* Who accepts and hangs up is heard of in two ways, as the kernel has it. */
static void reasons_that_take_turns_hold_back_no_other_state(void **state)
{
    (void)state;
    assert_true(came(LEASE_RENEW, COORD_DOWN, false, "closed"));
    assert_true(came(LEASE_RENEW, COORD_DOWN, false, "reset"));
    assert_false(came(LEASE_RENEW, COORD_DOWN, false, "closed"));
    assert_true(came(LEASE_RENEW, COORD_NOPOOL, true, "no pool"));
    assert_false(came(LEASE_RENEW, COORD_DOWN, false, "reset"));
    assert_false(came(LEASE_RENEW, COORD_NOPOOL, true, "made it is not"));
}

/* Each request for a number of a strict sequence is a call: who loses every other one is told of
 * as often as who has many reasons. */
static void what_comes_and_goes_fills_no_log(void **state)
{
    (void)state;
    int told = 0;
    for (int i = 0; i < 600; i++, now_ms += 100) {
        told += came(LEASE_RENEW, COORD_DOWN, false, "closed");
        told += is_fine(LEASE_RENEW);
    }
    assert_in_range(told, 12, 28); /* twice in ten seconds, and their ends */
    assert_true(came(LEASE_RENEW, COORD_NOPOOL, true, "none")); /* which nothing holds back */
    assert_true(is_fine(LEASE_RENEW));
}

/* Or a renewal would not end what a claim has had no part in. */
static void what_was_not_told_leaves_nothing_behind(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(came(LEASE_CLAIM, COORD_REFUSED, true, "full"));
        assert_true(is_fine(LEASE_CLAIM));
    }
    assert_false(came(LEASE_CLAIM, COORD_REFUSED, true, "full"));
    assert_false(is_fine(LEASE_CLAIM));
    assert_true(came(LEASE_RENEW, COORD_DOWN, false, "away"));
    assert_true(is_fine(LEASE_RENEW));
}

static void each_state_has_words_of_its_own(void **state)
{
    static const enum coord_status states[] = {
        COORD_WAIT, COORD_EXHAUSTED, COORD_NOPOOL, COORD_WRONGPOOL, COORD_BADCLOCK,
        COORD_SKEW, COORD_CLOSED,    COORD_DOWN,   COORD_REFUSED,
    };
    const char *said[sizeof states / sizeof *states];
    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        begin(NULL);
        assert_true(came(LEASE_CLAIM, states[i], states[i] != COORD_DOWN, "why"));
        said[i] = trouble_message(&t);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(said[i], said[k]);
        assert_int_equal(trouble_level(&t), states[i] == COORD_WAIT ? LOG_LVL_INFO : LOG_LVL_ERROR);
    }
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_trouble_is_told_once_and_so_is_its_end),
        TEST(what_needs_less_ends_no_trouble),
        TEST(who_did_not_answer_is_back_with_any_answer),
        TEST(a_pool_that_is_open_again_is_called_so),
        TEST(another_reason_is_told),
        TEST(numbers_make_no_other_reason),
        TEST(reasons_that_take_turns_fill_no_log),
        TEST(reasons_that_take_turns_hold_back_no_other_state),
        TEST(what_comes_and_goes_fills_no_log),
        TEST(what_was_not_told_leaves_nothing_behind),
        TEST(each_state_has_words_of_its_own),
    };
    return cmocka_run_group_tests_name("lease/trouble", tests, NULL, NULL);
}
