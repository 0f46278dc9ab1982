/*
 * A pool that was closed and is opened, from pool.lua in a real Redis and from the SQLite driver:
 * as it was, where it lives nowhere else, or as one that came back from elsewhere.
 */
#include "pair_rig.h"

#include <stdlib.h>

static enum coord_status shut(bool moved)
{
    enum coord_status s;
    ALL(s, coord_close(c, SETUP_IDENTITY, moved, &reply));
    return s;
}

/* lost_ahead_ms 0: it was made again nowhere. */
static enum coord_status unclose(int64_t lost_ahead_ms)
{
    enum coord_status s;
    ALL(s, coord_unclose(c, SETUP_IDENTITY, lost_ahead_ms, &reply));
    return s;
}

static bool has_moved(void)
{
    struct coord_pool p, q;
    assert_int_equal(coord_describe(pair.sqlite, &p, &reply), COORD_OK);
    pair_sync(&pair);
    assert_int_equal(coord_describe(pair.redis, &q, &reply), COORD_OK);
    assert_int_equal(p.moved, q.moved);
    assert_int_equal(p.closed, q.closed);
    return p.moved;
}

/* What renews while the pool is closed is refused, and heard. */
static void heard(const char *identity, const struct coord_grant *g, enum coord_status expected)
{
    const struct coord_renewal before = setup_renewal(g, 91, 92);
    struct coord_renewal item;
    enum coord_status s;
    ALL(s, (item = before, coord_renew(c, identity, setup_caller(pair.clock.ms), &item, 1,
                                       setup_terms(), &reply)));
    assert_int_equal(s, expected);
}

static void a_closed_pool_goes_on_as_it_was(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(shut(false), COORD_OK);
    assert_int_equal(claim(2, &y), COORD_CLOSED);
    heard(SETUP_IDENTITY, &x, COORD_CLOSED);
    assert_true(described().closed && !has_moved());
    pair.clock.ms += 5000;
    assert_int_equal(unclose(0), COORD_OK);
    assert_false(described().closed);
    assert_int_equal(reply.era, 1);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    assert_int_equal(claim(3, &y), COORD_OK);
    assert_int_equal(unclose(0), COORD_OK); /* an open one stays open … */
    assert_int_equal(unclose(A + 2 * S), COORD_OK);
    assert_int_equal(reply.era, 1); /* … and as it is */
}

/* The range of a holder that is cut off meanwhile is as safe as in an open pool. */
static void an_opened_pool_keeps_its_ranges(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(0);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(shut(false), COORD_OK);
    assert_int_equal(unclose(0), COORD_OK);
    pair.clock.ms = x.hi_ms;
    assert_int_equal(claim(2, &y), COORD_EXHAUSTED);
    pair.clock.ms += reply.wait_ms;
    assert_int_equal(claim(2, &y), COORD_OK);
    assert_int_equal(y.lo_ms, x.hi_ms + 1);
}

static void one_that_was_said_to_move_is_not_opened_beside_the_other(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(shut(true), COORD_OK);
    assert_int_equal(shut(false), COORD_OK); /* as `pool drain` does, once a second */
    assert_true(has_moved());
    assert_int_equal(unclose(0), COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "closed as moved"));
    assert_int_equal(claim(2, &y), COORD_CLOSED);
}

/* What was granted in the other place ends before anybody is granted something here. */
static void one_that_comes_back_waits_for_what_was_granted_elsewhere(void **state)
{
    (void)state;
    struct coord_grant x, y;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(shut(true), COORD_OK);
    pair.clock.ms += 10000;
    assert_int_equal(unclose(A + 2 * S), COORD_OK);
    assert_false(described().closed || has_moved());
    assert_int_equal(described().later.cause, COORD_CAUSE_BACK);
    assert_int_equal(claim(2, &y), COORD_WAIT);
    assert_int_equal(reply.wait_ms, A + 2 * S + 1);
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_REASSERTED);
    pair.clock.ms += 4 * COORD_EVERY_MS + 2 * S;
    assert_int_equal(nothing_lost(), COORD_REFUSED); /* no word takes that back */
    pair.clock.ms = T0 + 10000 + A + 2 * S + 1;
    assert_int_equal(claim(2, &y), COORD_OK);
    assert_int_equal(y.lo_ms, T0 + 10000 + A + 2 * S + 1);
}

/* The pool in its place had a longer horizon than it has itself. */
static void what_was_granted_elsewhere_may_last_longer(void **state)
{
    (void)state;
    struct coord_grant elsewhere = {.worker = 1, .n = 7, .t0_ms = T0}, y;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(shut(true), COORD_OK);
    assert_int_equal(unclose(COORD_AHEAD_MAX_MS + 1), COORD_REFUSED);
    assert_int_equal(unclose(-1), COORD_REFUSED);
    assert_int_equal(unclose(4 * A), COORD_OK);
    assert_int_equal(described().later.ahead_ms, 4 * A);
    assert_int_equal(claim(2, &y), COORD_WAIT);
    assert_int_equal(reply.wait_ms, 4 * A + 1);
    elsewhere.hi_ms = T0 + 4 * A;
    assert_int_equal(renew(&elsewhere, 1, 2), COORD_HOW_REASSERTED);
    pair.clock.ms = T0 + 4 * A + 1;
    assert_int_equal(claim(2, &y), COORD_OK);
    assert_int_equal(y.lo_ms, T0 + 4 * A + 1);
}

/* It says less of the other than this one may have granted itself. */
static void one_that_comes_back_waits_for_its_own_horizon_at_least(void **state)
{
    (void)state;
    struct coord_grant y;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(shut(true), COORD_OK);
    assert_int_equal(unclose(1), COORD_OK);
    assert_int_equal(described().later.ahead_ms, 0);
    assert_int_equal(claim(2, &y), COORD_WAIT);
    assert_int_equal(reply.wait_ms, A + 2 * S + 1);
}

/* It was granted and renewed by the pool in its place, and asks here once more. */
static void a_holder_that_knows_more_shows_that_it_moved(void **state)
{
    (void)state;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_int_equal(shut(false), COORD_OK);
    x.n += 5;
    heard(SETUP_IDENTITY, &x, COORD_CLOSED);
    assert_true(has_moved());
    assert_int_equal(unclose(0), COORD_REFUSED);
    assert_int_equal(unclose(A + 2 * S), COORD_OK);
    pair.clock.ms += 1000;
    pair_restart(&pair);
    assert_int_equal(shut(false), COORD_OK); /* in the next era again */
    x.n += 5;
    heard(SETUP_IDENTITY, &x, COORD_CLOSED);
    assert_true(has_moved());
}

static void so_does_a_holder_of_another_pool_that_can_issue(void **state)
{
    (void)state;
    struct coord_grant over = {.worker = 1, .n = 7, .hi_ms = T0 + A + 3 * S};
    struct coord_grant can = {.worker = 1, .n = 7, .hi_ms = T0 + 3 * A + 1}, x;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &x), COORD_OK); /* so that it takes nobody's uuid any more */
    pair.clock.ms = T0 + 3 * A;               /* long after what a stranger's word counts for */
    heard(SETUP_IDENTITY_OTHER, &can, COORD_WRONGPOOL);
    assert_int_equal(shut(false), COORD_OK);
    assert_false(has_moved());
    heard(SETUP_IDENTITY_OTHER, &over, COORD_WRONGPOOL);
    heard(SETUP_IDENTITY_EPOCH, &can, COORD_WRONGPOOL); /* of other IDs */
    assert_false(has_moved());
    heard(SETUP_IDENTITY_OTHER, &can, COORD_WRONGPOOL);
    assert_true(has_moved());
    assert_int_equal(unclose(0), COORD_REFUSED);
}

/* Floors are stamped with the coordinator's time. */
static void it_is_opened_for_a_clock_that_agrees(void **state)
{
    (void)state;
    enum coord_status s;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(shut(false), COORD_OK);
    pair_restart(&pair);
    ALL(s, coord_unclose(c, SETUP_IDENTITY_OTHER, A + 2 * S, &reply));
    assert_int_equal(s, COORD_WRONGPOOL);
    assert_int_equal(unclose(0), COORD_OK);
    assert_int_equal(reply.era, 2); /* after a restart it waits like any other */
    struct coord_grant y;
    assert_int_equal(claim(2, &y), COORD_WAIT);
}

/* ---- names ------------------------------------------------------------------------------------
 */

static char *name_of(struct coord *c, uint16_t worker)
{
    struct coord_snapshot snap;
    char *name = NULL;
    assert_int_equal(coord_snapshot(c, &snap, &reply), COORD_OK);
    for (size_t i = 0; i < snap.nworkers; i++)
        if (snap.workers[i].worker == worker && snap.workers[i].who)
            name = strdup(snap.workers[i].who);
    coord_snapshot_clear(&snap);
    return name;
}

/* An operator is shown who holds a workerId now, whatever the coordinator had of it. */
static void a_renewal_brings_the_name_of_who_renews(void **state)
{
    (void)state;
    char out[64];
    struct coord_grant x;
    pair.clock.ms = T0;
    init(3);
    assert_int_equal(claim(1, &x), COORD_OK);
    assert_true(SERVER_DO(&pair.server, out, "HSET", "sidflake:{p}:who", "0", "{\"pid\":1}"));
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_RENEWED);
    char *name = name_of(pair.redis, 0);
    assert_string_equal(name, SETUP_WHO);
    free(name);
    assert_true(SERVER_DO(&pair.server, out, "DEL", "sidflake:{p}:who"));
    assert_int_equal(renew(&x, 1, 2), COORD_HOW_AGAIN);
    name = name_of(pair.redis, 0);
    assert_string_equal(name, SETUP_WHO);
    free(name);
}

/* The same of a file: the process before had another name. */
static void a_renewal_brings_the_name_to_a_file_too(void **state)
{
    (void)state;
    char url[128];
    struct err e;
    struct coord *before;
    struct coord_grant x;
    pair.clock.ms = T0;
    init(3);
    (void)snprintf(url, sizeof url, "sqlite:%s", pair.db);
    struct coord_options o = {.url = span_str(url),
                              .pool = SPAN(PAIR_POOL),
                              .who = SPAN("{\"pid\":1}"),
                              .timeout_us = 2000000,
                              .clock = &pair.clock.clock};
    assert_int_equal(coord_open(&o, &before, &e), ERR_OK);
    assert_int_equal(coord_claim(before, SETUP_IDENTITY, T0, setup_token(1), &x, &reply), COORD_OK);
    char *name = name_of(pair.sqlite, x.worker);
    assert_string_equal(name, "{\"pid\":1}");
    free(name);
    struct coord_renewal item = setup_renewal(&x, 1, 2);
    assert_int_equal(
        coord_renew(pair.sqlite, SETUP_IDENTITY, setup_caller(T0), &item, 1, setup_terms(), &reply),
        COORD_OK);
    assert_int_equal(item.how, COORD_HOW_RENEWED);
    name = name_of(pair.sqlite, x.worker);
    assert_string_equal(name, SETUP_WHO);
    free(name);
    coord_free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_pool_goes_on_as_it_was),
        cmocka_unit_test(an_opened_pool_keeps_its_ranges),
        cmocka_unit_test(one_that_was_said_to_move_is_not_opened_beside_the_other),
        cmocka_unit_test(one_that_comes_back_waits_for_what_was_granted_elsewhere),
        cmocka_unit_test(what_was_granted_elsewhere_may_last_longer),
        cmocka_unit_test(one_that_comes_back_waits_for_its_own_horizon_at_least),
        cmocka_unit_test(a_holder_that_knows_more_shows_that_it_moved),
        cmocka_unit_test(so_does_a_holder_of_another_pool_that_can_issue),
        cmocka_unit_test(it_is_opened_for_a_clock_that_agrees),
        cmocka_unit_test(a_renewal_brings_the_name_of_who_renews),
        cmocka_unit_test(a_renewal_brings_the_name_to_a_file_too),
    };
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/unclose", tests, setup, teardown);
}
