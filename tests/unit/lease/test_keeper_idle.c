/* What the keeper's thread does between calls: its connection, and its rest while a program takes
 * another's place. */
#include "keeper_bench.h"

#include <signal.h>

static unsigned given_up(void)
{
    (void)pthread_mutex_lock(&b.coord.lock);
    unsigned n = b.coord.idles;
    (void)pthread_mutex_unlock(&b.coord.lock);
    return n;
}

static void it_gives_its_connection_up_before_it_sleeps_and_takes_no_signals(void **state)
{
    (void)state;
    sigset_t before, after;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    start_keeper();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < SIGRTMIN; i++) /* the caller's mask is as it was */
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
    AWAIT(held() == 2);
    AWAIT(b.mails[LEASE_MAIL_EXTEND] >= 4);
    assert_true(given_up() >= 2);
    stop(true);
}

static void keep_connections(int64_t ms)
{
    static struct coord_driver keeps;
    keeps = *b.coord.coord.driver;
    keeps.keep_ms = ms;
    b.coord.coord.driver = &keeps;
    start_keeper();
}

/* To connect and to log in takes longer than most calls. */
static void it_keeps_its_connection_where_calls_are_many(void **state)
{
    (void)state;
    keep_connections(1000LL * PATIENCE_MS);
    AWAIT(b.mails[LEASE_MAIL_EXTEND] >= 8);
    assert_int_equal(given_up(), 0);
    stop(true);
    assert_int_equal(given_up(), 1);
}

/* Where sentinels would name another server, who never ceased to ask would never hear. */
static void it_keeps_no_connection_for_long(void **state)
{
    (void)state;
    keep_connections(100);
    AWAIT(given_up() >= 3);
    stop(true);
}

static void it_keeps_no_connection_for_a_call_that_comes_alone(void **state)
{
    (void)state;
    fake_coord_fail(&b.coord, FAKE_DESCRIBE, COORD_DOWN, false);
    keep_connections(1000LL * PATIENCE_MS);
    AWAIT(held() == 2);
    assert_int_equal(given_up(), 1); /* behind the first, which has no other before it */
    stop(true);
}

/* While it rests there is no call, and the page changes by marks alone; then it goes on. */
static void it_rests_between_two_calls_and_goes_on(void **state)
{
    (void)state;
    static struct page as_it_rested;
    start_with_two();
    keeper_pause(b.keeper, true);
    AWAIT(b.keepers.paused);
    assert_true(b.keepers.proven);
    as_it_rested = *b.file.page;
    unsigned calls = fake_coord_count(&b.coord, FAKE_RENEW);
    for (int i = 0; i < 200; i++)
        nap();
    assert_int_equal(fake_coord_count(&b.coord, FAKE_RENEW), calls);
    assert_memory_equal(&as_it_rested, b.file.page, sizeof as_it_rested);
    keeper_pause(b.keeper, false);
    AWAIT(fake_coord_count(&b.coord, FAKE_RENEW) > calls);
    AWAIT(!b.keepers.paused);
    stop(true);
}

static void it_rests_when_the_call_under_way_has_come_back(void **state)
{
    (void)state;
    start_with_two();
    unsigned calls = fake_coord_count(&b.coord, FAKE_RENEW);
    fake_coord_block(&b.coord, true);
    assert_true(fake_coord_await_blocked(&b.coord));
    keeper_pause(b.keeper, true);
    for (int i = 0; i < 50; i++)
        nap();
    take(8);
    assert_false(b.keepers.paused);
    fake_coord_block(&b.coord, false);
    AWAIT(b.keepers.paused);
    assert_true(fake_coord_count(&b.coord, FAKE_RENEW) > calls);
    stop(true); /* a stop ends the rest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEEPER(it_gives_its_connection_up_before_it_sleeps_and_takes_no_signals),
        KEEPER(it_keeps_its_connection_where_calls_are_many),
        KEEPER(it_keeps_no_connection_for_long),
        KEEPER(it_keeps_no_connection_for_a_call_that_comes_alone),
        KEEPER(it_rests_between_two_calls_and_goes_on),
        KEEPER(it_rests_when_the_call_under_way_has_come_back),
    };
    return cmocka_run_group_tests_name("lease/keeper_idle", tests, NULL, NULL);
}
