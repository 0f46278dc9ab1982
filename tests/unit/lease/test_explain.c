#include "lease/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COMMAND "sidflakectl pool init --coordinator "

static char why[ERR_TEXT_MAX];

static const char *explained(const struct lease *l, const char *url, struct lease_outcome o)
{
    const struct workers_options k = {.coord_name = url, .pool_name = "p"};
    explain(&k, l, &o, why, sizeof why);
    return why;
}

/* Who looks at the time that was told has an ID then. */
static void a_wait_is_not_said_shorter_than_it_is(void **state)
{
    static const struct {
        int64_t ms;
        const char *said;
    } table[] = {
        {1, "rests for 1 s more"},
        {1000, "rests for 1 s more"},
        {59001, "rests for 1 min 0 s more"},
        {3599001, "rests for 1 h 0 min 0 s more"},
        {3604000, "rests for 1 h 0 min 4 s more"},
    };
    static const struct lease l;
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_non_null(strstr(explained(&l, "redis://h:6379/0",
                                         (struct lease_outcome){.status = COORD_WAIT,
                                                                .reply = {.wait_ms = table[i].ms}}),
                               table[i].said));
}

/* Another word helps than after a reopening, or none. */
static void of_a_pool_made_again_that_is_said(void **state)
{
    static struct lease l = {
        .described = true,
        .pool = {.born_ms = 1000, .topen_ms = 1000, .floor_ms = 5000, .floor_short_ms = 5000}};
    const struct lease_outcome o = {.status = COORD_WAIT,
                                    .reply = {.now_ms = 2000, .wait_ms = 3001, .era = 2}};
    (void)state;
    assert_non_null(strstr(explained(&l, "redis://h:6379/0", o), "the pool was lost, and made"));
    l.pool.topen_ms = 1500;
    assert_non_null(strstr(explained(&l, "redis://h:6379/0", o), "the pool was reopened"));
}

/* Nobody types in vain what is taken in a minute and a half. */
static void of_a_pool_reopened_it_is_said_from_when_the_word_is_taken(void **state)
{
    static const struct lease l = {.described = true,
                                   .pool = {.topen_ms = 1000,
                                            .floor_ms = 3600000,
                                            .floor_short_ms = 3600000,
                                            .later = {.era_before = 2}}};
    struct lease_outcome o = {.status = COORD_WAIT,
                              .reply = {.now_ms = 2000, .wait_ms = 3598000, .era = 2}};
    const int64_t taken = coord_pool_word_from(&l.pool, 2);
    (void)state;
    assert_non_null(strstr(explained(&l, "redis://h:6379/0", o),
                           " --pool p`, which is taken from 1970-01-01T00:01:"));
    o.reply.now_ms = taken;
    o.reply.wait_ms = 3600000 - taken;
    const char *text = explained(&l, "redis://h:6379/0", o);
    assert_non_null(strstr(text, "pool reopen --nothing-lost"));
    assert_null(strstr(text, "taken from"));
}

/* With a URL that fits once the command goes first; with one that does not fit there is none. */
static void the_command_is_whole_or_not_there(void **state)
{
    static const struct lease l;
    static char url[ERR_TEXT_MAX + 1] = "redis://";
    const struct lease_outcome o = {.status = COORD_NOPOOL};
    unsigned twice = 0, once = 0, none = 0;
    (void)state;
    for (size_t n = strlen(url); n < ERR_TEXT_MAX; n++) {
        const char *text = explained(&l, url, o);
        const char *command = strstr(text, COMMAND);
        if (!command) {
            assert_string_equal(text, "no pool \"p\": see EXAMPLES in sidflakectl(1)");
            none++;
        } else {
            const char *at = command + sizeof COMMAND - 1;
            bool said = strstr(text, " at redis://");
            assert_int_equal(strncmp(at, url, n), 0);
            assert_non_null(strstr(at + n, " --fresh`"));
            assert_true(none == 0 && !(said && once > 0));
            twice += said;
            once += !said;
        }
        url[n] = 'h';
    }
    assert_true(twice > 100 && once > 100 && none > 100);
}

/* pool init takes no other where sentinels fail over; N is whoever types it to say. */
static void of_sentinels_the_command_asks_for_replicas(void **state)
{
    static const struct lease l;
    const struct lease_outcome o = {.status = COORD_NOPOOL};
    (void)state;
    assert_non_null(strstr(explained(&l, "redis://h:6379/0", o), " --pool p --fresh` if its"));
    assert_non_null(strstr(explained(&l, "redis+sentinel://h:26379/m", o),
                           " --pool p --fresh --replicas N` if its"));
}

/* Who asks in between is not sent to make it by hand. */
static void a_pool_that_is_made_by_the_next_call_needs_no_command(void **state)
{
    static const struct lease l = {.conf.auto_init = true, .fresh_ok = true};
    (void)state;
    assert_string_equal(
        explained(&l, "sqlite:/p.db", (struct lease_outcome){.status = COORD_NOPOOL}),
        "no pool \"p\" yet: auto_init makes it");
}

static void a_closed_pool_can_be_opened(void **state)
{
    static const struct lease l;
    (void)state;
    assert_string_equal(
        explained(&l, "redis://h:6379/0",
                  (struct lease_outcome){.status = COORD_CLOSED,
                                         .reply = {.err = {.text = "found it closed"}}}),
        "found it closed; `sidflakectl pool open --coordinator redis://h:6379/0 --pool p` takes "
        "that "
        "back, unless it was made again elsewhere");
}

static void of_a_clock_that_was_ahead_it_can_be_said(void **state)
{
    static const struct lease l;
    (void)state;
    assert_string_equal(
        explained(&l, "redis://h:6379/0",
                  (struct lease_outcome){.status = COORD_BADCLOCK,
                                         .reply = {.err = {.text = "found it behind"}}}),
        "found it behind: one that is behind is to be set right; if it was ahead then, see "
        "`sidflakectl pool reopen --clock-was-ahead --coordinator redis://h:6379/0 --pool p`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_not_said_shorter_than_it_is),
        cmocka_unit_test(of_a_pool_made_again_that_is_said),
        cmocka_unit_test(of_a_pool_reopened_it_is_said_from_when_the_word_is_taken),
        cmocka_unit_test(the_command_is_whole_or_not_there),
        cmocka_unit_test(of_sentinels_the_command_asks_for_replicas),
        cmocka_unit_test(a_pool_that_is_made_by_the_next_call_needs_no_command),
        cmocka_unit_test(a_closed_pool_can_be_opened),
        cmocka_unit_test(of_a_clock_that_was_ahead_it_can_be_said),
    };
    return cmocka_run_group_tests_name("lease/explain", tests, NULL, NULL);
}
