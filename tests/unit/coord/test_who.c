/* What operators are told of who holds a workerId: Redis and SQLite alike. */
#include "pair_rig.h"

#include <string.h>

#define ANOTHER "{\"host\":\"h\",\"pid\":2}"

/* The same pool, for the process after the one that all others are of. */
static struct coord *open_another(size_t side)
{
    struct coord *c;
    struct err e;
    char url[128];
    if (side == PAIR_REDIS)
        (void)server_url(&pair.server, url);
    else
        (void)snprintf(url, sizeof url, "sqlite://%s", pair.db);
    const struct coord_options o = {.url = span_str(url),
                                    .pool = SPAN(PAIR_POOL),
                                    .who = SPAN(ANOTHER),
                                    .timeout_us = 10000000,
                                    .clock = &pair.clock.clock};
    assert_int_equal(coord_open(&o, &c, &e), ERR_OK);
    return c;
}

static void assert_told(size_t side, const char *who)
{
    struct coord_snapshot snap;
    assert_int_equal(coord_snapshot(pair_side(&pair, side), &snap, &reply), COORD_OK);
    assert_int_equal(snap.nworkers, 1);
    assert_string_equal(snap.workers[0].who, who);
    coord_snapshot_clear(&snap);
}

/* A process that goes on with the workerId of the one before is the one to be looked for. */
static void whoever_renewed_last_is_told(void **state)
{
    static const size_t sides[] = {PAIR_SQLITE, PAIR_REDIS};
    struct coord_grant g;
    (void)state;
    init(1);
    assert_int_equal(claim(1, &g), COORD_OK);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        size_t side = sides[i];
        struct coord_renewal item = setup_renewal(&g, 1, 2);
        assert_told(side, SETUP_WHO);
        struct coord *another = open_another(side);
        assert_int_equal(coord_renew(another, SETUP_IDENTITY, setup_caller(pair.clock.ms), &item, 1,
                                     setup_terms(), &reply),
                         COORD_OK);
        assert_int_equal(item.how, COORD_HOW_RENEWED);
        coord_free(another);
        assert_told(side, ANOTHER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_renewed_last_is_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
