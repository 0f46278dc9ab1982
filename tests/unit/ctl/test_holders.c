/* Who holds what, in each order; and what happened between two snapshots. */
#include "ctl/changes.h"
#include "ctl/holders.h"
#include "ctl/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char who1[] = "{\"host\":\"b\",\"pod\":\"y\",\"pid\":7}";
static char who2[] = "{\"host\":\"a\\u001b[2J\\u00e9\",\"pid\":5}";
static char who3[] = "{no";
static char who4[] = "{\"host\":\"b\",\"pod\":\"x\"}";

static struct coord_worker workers[] = {
    {.worker = 1, .held = true, .n = 5, .hwm_ms = 500, .t0_ms = 100, .who = who1},
    {.worker = 2, .held = false, .n = 9, .hwm_ms = 50},
    {.worker = 3, .held = true, .n = 1, .hwm_ms = 300, .t0_ms = 200, .who = who2},
    {.worker = 4, .held = true, .stale = true, .n = 2, .hwm_ms = 200, .t0_ms = 50, .who = who3},
    {.worker = 7, .held = true, .n = 2, .hwm_ms = 300, .t0_ms = 60, .who = who4},
};

static struct coord_snapshot snap = {.workers = workers, .nworkers = 5, .pool = {.floor_ms = 400}};

static void order_is(enum ctl_sort by, bool reverse, const char *expected)
{
    struct ctl_holders h;
    char found[32] = "";
    assert_true(ctl_holders_of(&snap, &h));
    for (size_t i = 0; i < h.n; i++)
        ctl_holder_read(&h.v[i]);
    ctl_holders_sort(&h, by, reverse);
    for (size_t i = 0; i < h.n; i++)
        found[i] = (char)('0' + h.v[i].w->worker);
    ctl_holders_clear(&h);
    if (strcmp(found, expected) != 0)
        fail_msg("by %s: expected %s, found %s", ctl_sort_names[by], expected, found);
}

static void orders(void **state)
{
    (void)state;
    order_is(CTL_SORT_WORKER, false, "1347");
    order_is(CTL_SORT_WORKER, true, "7431");
    order_is(CTL_SORT_AGE, false, "3174"); /* the youngest first */
    order_is(CTL_SORT_AGE, true, "4713");
    order_is(CTL_SORT_LEFT, false, "3741"); /* 4 is of an earlier era: the floor counts */
    order_is(CTL_SORT_CEILING, true, "1437");
    order_is(CTL_SORT_HOLDER, false, "4371");
}

static void names(void **state)
{
    enum ctl_sort by = CTL_SORTS;
    (void)state;
    for (int i = 0; i < CTL_SORTS; i++) {
        assert_true(ctl_sort_parse(ctl_sort_names[i], &by));
        assert_int_equal(by, i);
    }
    assert_false(ctl_sort_parse("", &by));
    assert_false(ctl_sort_parse("Age", &by));
}

static void a_holder_cannot_speak_to_the_terminal(void **state)
{
    struct ctl_holders h;
    (void)state;
    assert_true(ctl_holders_of(&snap, &h));
    for (size_t i = 0; i < h.n; i++)
        ctl_holder_read(&h.v[i]);
    assert_string_equal(h.v[1].host, "a?[2J??");
    assert_string_equal(h.v[1].pod, "-");
    assert_int_equal(h.v[1].pid, 5);
    assert_string_equal(h.v[2].host, "-");
    assert_string_equal(h.v[0].pod, "y");
    ctl_holders_clear(&h);
}

static void changes(void **state)
{
    static struct ctl_past past;
    struct ctl_changes c;
    struct coord_worker before[5];
    (void)state;
    memcpy(before, workers, sizeof before);
    assert_false(ctl_changes_since(&past, &snap, &c));
    assert_true(ctl_changes_since(&past, &snap, &c));
    assert_int_equal(c.claims + c.renewals + c.returns, 0);
    workers[0].n += 3;      /* renewed thrice */
    workers[1].held = true; /* claimed */
    workers[1].t0_ms = 600;
    workers[2].held = false; /* returned */
    workers[4].t0_ms = 700;  /* returned, and claimed by another */
    workers[4].n += 2;
    assert_true(ctl_changes_since(&past, &snap, &c));
    assert_int_equal(c.renewals, 3);
    assert_int_equal(c.claims, 2);
    assert_int_equal(c.returns, 2);
    memcpy(workers, before, sizeof before);
}

/* By the range that it was granted: a young tenure has short ones, also a moment before it is not
 * young. And never later than now. */
static void when_a_holder_has_renewed(void **state)
{
    (void)state;
    static const struct {
        int64_t age_ms, range_ms, horizon_ms;
    } table[] = {{0, 30000, 3600000},
                 {119999, 30000, 3600000},
                 {120000, 3600000, 3600000},
                 {119999, 30000, 60000}};
    struct coord_snapshot of = {.pool.params = coord_params_default};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        of.pool.params.horizon_ms = table[i].horizon_ms;
        struct coord_worker w = {.t0_ms = 1000};
        int64_t at = w.t0_ms + table[i].age_ms;
        w.hwm_ms = at + table[i].range_ms;
        assert_int_equal(ctl_holder_renewed(&of, &w, INT64_MAX), at);
        assert_int_equal(ctl_holder_renewed(&of, &w, at - 7), at - 7);
    }
}

/* After a loss a holder that renews has all of the horizon, young as it counts from then on. */
static void when_a_holder_has_renewed_after_a_loss(void **state)
{
    (void)state;
    struct coord_snapshot of = {.pool.params = coord_params_default};
    const struct coord_params *k = &of.pool.params;
    struct coord_worker w = {.t0_ms = 1000, .hwm_ms = 1000 + k->horizon_ms + 2 * k->max_skew_ms};
    int64_t most = w.t0_ms + k->mature_after_ms;
    assert_int_equal(ctl_holder_renewed(&of, &w, most - 7), most - 7);
    assert_int_equal(ctl_holder_renewed(&of, &w, most + 1800000), most);
    w.hwm_ms = most + k->horizon_ms;
    assert_int_equal(ctl_holder_renewed(&of, &w, most + 1800000), most);
    w.hwm_ms++;
    assert_int_equal(ctl_holder_renewed(&of, &w, most + 1800000), most + 1);
}

static void a_clock_that_was_ahead_counts(void **state)
{
    (void)state;
    struct ctl_session s = {.pool.params = coord_params_default,
                            .reply = {.now_ms = 1000000, .era = 1}};
    s.pool.tmax_ms = 1004000; /* two skews */
    assert_int_equal(ctl_session_grants_from(&s), 1000000);
    s.pool.tmax_ms = 9000000;
    assert_int_equal(ctl_session_grants_from(&s), 8996000);
    assert_int_equal(ctl_session_last_range(&s), 9000000 + 3600000 + 4000);
    s.first_ms = 9500000;
    assert_int_equal(ctl_session_grants_from(&s), 9500000);
}

static void ends(const struct coord_snapshot *s, int64_t after, int64_t end, uint64_t held)
{
    uint64_t n;
    assert_int_equal(ctl_holders_end(s, after, &n), end);
    assert_int_equal(n, held);
}

/* Who may issue until when is more than what is held. */
static void the_end_of_a_pool(void **state)
{
    (void)state;
    struct coord_worker w[] = {
        {.worker = 1, .held = true, .hwm_ms = 500},
        {.worker = 2, .held = true, .stale = true, .hwm_ms = 300},
        {.worker = 3, .hwm_ms = 299}, /* given back */
    };
    struct coord_snapshot s = {.workers = w, .nworkers = 3};
    ends(&s, 300, 500, 2);
    ends(&s, 301, 500, 1);
    ends(&s, 501, 0, 0);
    w[2].hwm_ms = 900; /* taken away; by a stranger that was heard, no word says so */
    ends(&s, 501, 900, 0);
    ends(&s, 901, 0, 0);
    s.pool.floor_ms = 1000; /* as after a reopening, or a loss: nobody knows who there is */
    ends(&s, 901, 1000, 1);
    s.nworkers = 0;
    ends(&s, 901, 1000, 0);
    s.pool.floor_short_ms = 1001;
    ends(&s, 1001, 1001, 0);
    ends(&s, 1002, 0, 0);
}

/* What is free then is said where nothing is now. */
static void the_first_to_be_free(void **state)
{
    (void)state;
    struct coord_worker w[] = {
        {.worker = 1, .held = true, .hwm_ms = 500},
        {.worker = 2, .held = true, .stale = true, .hwm_ms = 300},
        {.worker = 3, .hwm_ms = 100},
    };
    struct coord_snapshot s = {.workers = w, .nworkers = 3, .pool = {.floor_ms = 400}};
    s.pool.params.grace_ms = 60;
    assert_int_equal(ctl_holders_first(&s), 461);
    s.pool.floor_ms = 600;
    assert_int_equal(ctl_holders_first(&s), 561);
    w[0].held = w[1].held = false;
    assert_int_equal(ctl_holders_first(&s), 0);
}

/* What is in the queue can be had before anybody's range ends, but has its own rest. */
static void the_first_of_the_queue(void **state)
{
    (void)state;
    struct coord_worker w[] = {
        {.worker = 1, .held = true, .hwm_ms = 500},
        {.worker = 2, .stale = true, .hwm_ms = 100},
        {.worker = 3, .hwm_ms = 450},
        {.worker = 4, .unreadable = true},
    };
    uint32_t queue[] = {3, 4, UINT32_MAX, COORD_WORKERS, 9, 2};
    struct coord_snapshot s = {.workers = w,
                               .nworkers = 4,
                               .queue = queue,
                               .nqueue = 1,
                               .reply.era = 2,
                               .pool = {.floor_ms = 900, .floor_short_ms = 300}};
    s.pool.params.worker_to = 8;
    s.pool.params.grace_ms = 60;
    assert_int_equal(ctl_holders_first(&s), 451);
    s.nqueue = 5; /* nobody can have the rest of them, 9 being another pool's */
    assert_int_equal(ctl_holders_first(&s), 451);
    s.nqueue = 6;
    assert_int_equal(ctl_holders_first(&s), 301);
    s.pool.floor_short_ms = 50;
    assert_int_equal(ctl_holders_first(&s), 101);
    queue[4] = 8; /* never had by anybody */
    assert_int_equal(ctl_holders_first(&s), 51);
    s.reply.era = 1;
    assert_int_equal(ctl_holders_first(&s), 1);
}

/* A clock that is ahead by no more than two skews is the coordinator's, and so is one behind. */
static void the_time_that_counts(void **state)
{
    (void)state;
    struct coord_snapshot s = {.pool.params = coord_params_default};
    int64_t skews = 2 * coord_params_default.max_skew_ms;
    s.reply.now_ms = 100000;
    assert_int_equal(ctl_holders_now(&s, 100000 - skews), 100000);
    assert_int_equal(ctl_holders_now(&s, 100000 - skews - 1), 100000 - skews - 1);
    assert_int_equal(ctl_holders_now(&s, 900000), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),
        cmocka_unit_test(names),
        cmocka_unit_test(a_holder_cannot_speak_to_the_terminal),
        cmocka_unit_test(changes),
        cmocka_unit_test(when_a_holder_has_renewed),
        cmocka_unit_test(when_a_holder_has_renewed_after_a_loss),
        cmocka_unit_test(a_clock_that_was_ahead_counts),
        cmocka_unit_test(the_end_of_a_pool),
        cmocka_unit_test(the_time_that_counts),
        cmocka_unit_test(the_first_to_be_free),
        cmocka_unit_test(the_first_of_the_queue),
    };
    return cmocka_run_group_tests_name("ctl/holders", tests, NULL, NULL);
}
