#include "support/coord_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define IDENTITY_7 "00000000-0000-0000-0000-000000000007|1767225600000|38.15.10"

struct fixture {
    struct setup_clock clock;
    struct coord *c;
    struct coord_reply r;
};

static int setup(void **state)
{
    static struct fixture f;
    setup_clock_init(&f.clock, SETUP_T0_MS);
    f.c = setup_open("static:7", "p", &f.clock.clock);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    coord_free(f->c);
    return 0;
}

static void describes_a_pool_of_one(void **state)
{
    struct fixture *f = *state;
    struct coord_pool p;
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_string_equal(p.identity, IDENTITY_7);
    assert_int_equal(p.epoch_ms, 1767225600000);
    assert_int_equal(p.params.worker_from, 7);
    assert_int_equal(p.params.worker_to, 7);
    assert_int_equal(p.params.horizon_ms, coord_params_default.horizon_ms);
    assert_int_equal(p.held, 1);
    assert_int_equal(f->r.now_ms, SETUP_T0_MS);
    struct coord_renewal item = {.worker = 7};
    struct coord_terms t;
    assert_int_equal(coord_renew(f->c, IDENTITY_7, setup_now(), &item, 1, &t, &f->r), COORD_OK);
    assert_int_equal(t.born_ms, p.born_ms);
    struct coord *c = setup_open("static:32767?epoch=2020-01-01T00:00:00Z", "p", &f->clock.clock);
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_OK);
    assert_string_equal(p.identity, "00000000-0000-0000-0000-000000032767|1577836800000|38.15.10");
    coord_free(c);
}

static void grants_renews_and_releases_its_own(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_token t = setup_token(1);
    int64_t caller = SETUP_T0_MS - 5000;
    assert_int_equal(coord_claim(f->c, IDENTITY_7, caller, t, &g, &f->r), COORD_OK);
    assert_int_equal(g.worker, 7);
    assert_int_equal(g.lo_ms, caller);
    assert_true(g.hi_ms >= SETUP_T0_MS + 3650LL * 86400000);
    f->clock.ms += 1000;
    struct coord_renewal items[2] = {{.worker = 7, .hi_ms = g.hi_ms, .n = g.n},
                                     {.worker = 8, .hi_ms = 12, .n = 3}};
    assert_int_equal(coord_renew(f->c, IDENTITY_7, setup_now(), items, 2, setup_terms(), &f->r),
                     COORD_OK);
    assert_int_equal(items[0].how, COORD_HOW_RENEWED);
    assert_int_equal(items[0].hi_ms, g.hi_ms + 1000);
    assert_int_equal(items[0].n, 2);
    assert_int_equal(items[1].how, COORD_HOW_LOST);
    assert_int_equal(items[1].hi_ms, 12);
    f->clock.ms -= 100000;
    int64_t hi = items[0].hi_ms;
    assert_int_equal(coord_renew(f->c, IDENTITY_7, setup_now(), items, 1, setup_terms(), &f->r),
                     COORD_OK);
    assert_int_equal(items[0].hi_ms, hi);
    struct coord_release gone = {.worker = 7, .has_last = true, .last_ms = caller};
    assert_int_equal(coord_release(f->c, IDENTITY_7, &gone, &f->r), COORD_OK);
    gone.worker = 8;
    assert_int_equal(coord_release(f->c, IDENTITY_7, &gone, &f->r), COORD_LOST);
}

static void another_pool_is_refused(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_renewal item = {.worker = 7};
    struct coord_release gone = {.worker = 7};
    assert_int_equal(coord_claim(f->c, SETUP_IDENTITY, 1, setup_token(1), &g, &f->r),
                     COORD_WRONGPOOL);
    assert_non_null(strstr(f->r.err.text, SETUP_IDENTITY));
    assert_non_null(strstr(f->r.err.text, IDENTITY_7));
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r),
                     COORD_WRONGPOOL);
    assert_int_equal(coord_release(f->c, SETUP_IDENTITY, &gone, &f->r), COORD_WRONGPOOL);
}

static void there_is_nothing_to_operate(void **state)
{
    struct fixture *f = *state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    struct coord_snapshot s;
    assert_int_equal(coord_init(f->c, &in, &f->r), COORD_REFUSED);
    assert_non_null(strstr(f->r.err.text, "static:7"));
    assert_int_equal(coord_evict(f->c, IDENTITY_7, 7, &f->r), COORD_REFUSED);
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(describes_a_pool_of_one, setup, teardown),
        cmocka_unit_test_setup_teardown(grants_renews_and_releases_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(another_pool_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_nothing_to_operate, setup, teardown),
    };
    return cmocka_run_group_tests_name("coord/static", tests, NULL, NULL);
}
