/* The lease machine and its pool: lost, replaced, of another epoch, to be made first. */
#include "lease_bench.h"

#include "lease/terms.h"

static void holders_of_a_lost_pool_go_on_to_their_ceilings(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    int64_t hi = rig_first(&b.rig)->hi_ms;
    b.coord.missing = true;
    while (rig_wall(&b.rig) < hi - 50) {
        rig_pass(&b.rig, 50);
        assert_int_equal(rig_held(&b.rig), 2);
        assert_true(rig_first(&b.rig)->hi_ms == hi);
    }
    rig_pass(&b.rig, 7000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 0);
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 2);
    b.coord.missing = false; /* another pool, of the same epoch */
    (void)strcpy(b.coord.pool.identity, RIG_OTHER);
    memset(b.coord.worker, 0, sizeof b.coord.worker);
    rig_pass(&b.rig, 7000);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_string_equal(b.rig.file.page->head.identity, RIG_OTHER);
    end();
}

static void make_again_with(uint16_t from, uint16_t to, int64_t floor)
{
    memset(b.coord.worker, 0, sizeof b.coord.worker);
    b.coord.pool.params.worker_from = from;
    b.coord.pool.params.worker_to = to;
    b.coord.pool.born_ms++;
    for (unsigned i = from; i <= to; i++)
        b.coord.worker[i].hwm_ms = floor;
}

/* A command with a range that was typed wrongly must not end what holders have. */
static void a_pool_made_again_with_others_takes_no_range(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    int64_t hi = rig_first(&b.rig)->hi_ms;
    make_again_with(10, 19, hi + 60000);
    while (rig_wall(&b.rig) < hi - 50) {
        rig_pass(&b.rig, 50);
        assert_int_equal(rig_held(&b.rig), 2);
        assert_true(rig_first(&b.rig)->hi_ms == hi);
    }
    assert_true(count(FAKE_CLAIM) > 3);
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 0);
    rig_pass(&b.rig, 30000); /* nothing is left of them */
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 2);
    assert_int_equal(rig_held(&b.rig), 0);
    rig_pass(&b.rig, 40000);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_true(rig_first(&b.rig)->worker >= 10);
    end();
}

/* One for one, so that a range never used before is changed over to at once; and then it is that
 * pool which would have to be made again. */
static void who_has_another_gives_up_what_the_pool_has_not(void **state)
{
    struct coord_params known;
    int64_t settle_ms, least_ms, ahead_ms;
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    make_again_with(10, 19, 0);
    rig_pass(&b.rig, 7000);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 2);
    assert_int_equal(b.rig.mails[LEASE_MAIL_GRANT], 4);
    assert_true(!rig_of_worker(&b.rig, 0) && !rig_of_worker(&b.rig, 1));
    assert_true(page_params(b.rig.file.page, &known, &settle_ms, &least_ms, &ahead_ms));
    assert_int_equal(known.worker_from, 10);
    assert_int_equal(known.worker_to, 19);
    end();
}

/* What only a page says is not believed against a coordinator that answers. */
static void what_is_not_proven_is_not_kept_outside_the_pool(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    rig_restart(&b.rig);
    make_again_with(10, 19, RIG_T0 + 3600000);
    rig_pass(&b.rig, 2000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 0);
    end();
}

/* By a clock that is wrong for some seconds all ranges are over; by the coordinator's none is. */
static void a_clock_that_is_ahead_gives_nothing_up(void **state)
{
    static const enum coord_status without[] = {COORD_NOPOOL, COORD_WRONGPOOL};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fake_clock server;
        begin();
        (void)rig_settle(&b.rig);
        fake_clock_init(&server, rig_wall(&b.rig));
        b.coord.clock = &server.clock;
        int64_t hi = rig_first(&b.rig)->hi_ms;
        for (unsigned k = 0; k < 20; k++)
            upset(FAKE_RENEW, without[i]);
        fake_clock_step(&b.clock, 7200000);
        rig_pass(&b.rig, 4000);
        lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
        rig_pass(&b.rig, 4000);
        assert_in_range(count(FAKE_RENEW), 1, 10); /* it asks on, and not in a loop */
        fake_clock_step(&b.clock, -7200000);
        assert_int_equal(rig_held(&b.rig), 2);
        assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 0);
        assert_true(rig_first(&b.rig)->hi_ms == hi);
        end();
    }
}

static void another_pool_is_not_joined_while_ranges_are_good(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    int64_t hi = rig_first(&b.rig)->hi_ms;
    (void)strcpy(b.coord.pool.identity, RIG_OTHER);
    rig_pass(&b.rig, 20000);
    assert_true(rig_wall(&b.rig) < hi);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_string_equal(b.rig.lease.identity, RIG_IDENTITY);
    for (unsigned i = 0; i < b.coord.ncalls; i++)
        if (b.coord.call[i].op == FAKE_RENEW)
            assert_string_equal(b.coord.call[i].identity, RIG_IDENTITY);
    end();
}

/* What was granted by the one before ends, and at that moment the other one is asked, be its clock
 * behind by what is allowed. */
static void another_pool_is_joined_when_the_ranges_end(void **state)
{
    (void)state;
    for (unsigned behind = 0; behind < 2; behind++) {
        struct fake_clock server;
        begin();
        (void)rig_settle(&b.rig);
        rig_pass(&b.rig, 20);
        struct rig_grant *g = rig_first(&b.rig);
        int64_t hi = g->hi_ms;
        fake_clock_init(&server, rig_wall(&b.rig));
        if (behind)
            fake_clock_step(&server, 1 - b.coord.pool.params.max_skew_ms);
        b.coord.clock = &server.clock;
        (void)strcpy(b.coord.pool.identity, RIG_OTHER);
        memset(b.coord.worker, 0, sizeof b.coord.worker);
        while (rig_wall(&b.rig) <= hi) {
            assert_string_equal(b.rig.lease.identity, RIG_IDENTITY);
            fake_clock_pass(&server, 1000);
            rig_pass(&b.rig, 1);
        }
        rig_pass(&b.rig, 100);
        assert_string_equal(b.rig.lease.identity, RIG_OTHER);
        assert_int_equal(rig_held(&b.rig), 2);
        end();
    }
}

/* IDs of two epochs in one process would collide. */
static void a_pool_of_another_epoch_is_refused_once_ids_may_have_been_issued(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    (void)strcpy(b.coord.pool.identity, RIG_EPOCH2);
    b.coord.pool.epoch_ms = 1700000000000;
    rig_pass(&b.rig, 3600000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(b.rig.lease.trouble.code, ERR_INVALID);
    assert_non_null(strstr(b.rig.lease.trouble.text, "expected a pool of epoch 2026-01-01"));
    assert_non_null(strstr(b.rig.lease.trouble.text, "found epoch 2023-11-14"));
    end();
}

static void the_epoch_of_the_config_is_insisted_on(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.epoch_pinned = true;
    conf.epoch_ms = RIG_EPOCH + 1;
    begin_with(conf, 5);
    rig_pass(&b.rig, 10000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(count(FAKE_CLAIM), 0);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 0);
    assert_int_equal(b.rig.lease.trouble.code, ERR_INVALID);
    end();
}

#define RIG_TWITTER "99999999-2222-4333-8444-555555555555|1767225600000|t41.w5+5.s12"

static void a_pool_of_another_layout_is_refused_once_ids_may_have_been_issued(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    (void)strcpy(b.coord.pool.identity, RIG_TWITTER);
    rig_pass(&b.rig, 3600000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(b.rig.lease.trouble.code, ERR_INVALID);
    assert_non_null(strstr(b.rig.lease.trouble.text,
                           "expected a pool of layout \"time:38 worker:15 sequence:10\", found "
                           "layout \"time:41 worker:5+5 sequence:12\""));
    end();
}

static void the_layout_of_the_config_is_insisted_on(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.layout_pinned = true;
    assert_int_equal(layout_parse(SPAN("twitter"), &conf.layout, NULL), ERR_OK);
    begin_with(conf, 5);
    rig_pass(&b.rig, 10000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(count(FAKE_CLAIM), 0);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 0);
    end();
}

/* IDs of the two would lie among each other within a unit. */
/* With as many workerIds as it has room for. */
static void auto_init_makes_a_pool_of_the_layout_of_the_config(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = conf.layout_pinned = true;
    assert_int_equal(layout_parse(SPAN("js53"), &conf.layout, NULL), ERR_OK);
    begin_with(conf, 5);
    b.coord.missing = true;
    rig_pass(&b.rig, 1000);
    const struct fake_coord_call *made = fake_coord_latest(&b.coord, FAKE_INIT);
    assert_non_null(strstr(made->identity, "|t38*10.w8.s7"));
    assert_int_equal(made->params.worker_from, 0);
    assert_int_equal(made->params.worker_to, 255);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

static void a_layout_with_the_workerid_lowest_wants_one(void **state)
{
    (void)state;
    for (unsigned active = 1; active <= 2; active++) {
        struct lease_config conf = rig_config();
        conf.active = active;
        begin_with(conf, 5);
        (void)strcpy(b.coord.pool.identity,
                     "11111111-2222-4333-8444-555555555555|1767225600000|t39*10.s8.w16");
        rig_pass(&b.rig, 10000);
        assert_int_equal(rig_held(&b.rig), active == 1 ? 2 : 0);
        if (active == 2)
            assert_non_null(
                strstr(b.rig.lease.trouble.text, "expected workers.active: 1 for the pool's"));
        end();
    }
}

/* Until something was granted the pool may change its epoch; the loop is told before any grant. */
static void a_pool_of_another_epoch_before_the_first_grant_is_told_anew(void **state)
{
    (void)state;
    begin();
    upset(FAKE_CLAIM, COORD_EXHAUSTED);
    (void)rig_settle(&b.rig);
    assert_true(b.rig.pool.epoch_ms == RIG_EPOCH);
    (void)strcpy(b.coord.pool.identity, RIG_EPOCH2);
    b.coord.pool.epoch_ms = 1700000000000;
    rig_pass(&b.rig, 10000);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 2);
    assert_true(b.rig.pool.epoch_ms == 1700000000000);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

static void without_auto_init_a_missing_pool_is_waited_for(void **state)
{
    (void)state;
    begin();
    b.coord.missing = true;
    rig_pass(&b.rig, 60000);
    assert_int_equal(count(FAKE_INIT), 0);
    b.coord.missing = false;
    rig_pass(&b.rig, 6000);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

static void auto_init_makes_a_missing_pool_fresh_only_without_a_page(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    begin_with(conf, 5);
    b.coord.missing = true;
    rig_pass(&b.rig, 1000);
    assert_int_equal(count(FAKE_INIT), 1);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->mode, COORD_INIT_FRESH);
    assert_false(fake_coord_latest(&b.coord, FAKE_INIT)->identity_said);
    assert_int_equal(rig_held(&b.rig), 2);
    b.coord.missing = true; /* the file was deleted: IDs were issued before */
    rig_pass(&b.rig, 7000);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->mode, COORD_INIT_AFTER_LOSS);
    assert_string_equal(fake_coord_latest(&b.coord, FAKE_INIT)->identity, b.rig.lease.identity);
    assert_true(fake_coord_latest(&b.coord, FAKE_INIT)->identity_said);
    end();

    begin_with(conf, 5);
    b.coord.missing = true;
    rig_restart(&b.rig); /* now there is a page, but it never knew a pool */
    rig_pass(&b.rig, 1000);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->mode, COORD_INIT_FRESH);
    rig_restart(&b.rig);
    b.coord.missing = true;
    rig_pass(&b.rig, 1000);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->mode, COORD_INIT_AFTER_LOSS);
    end();
}

/* All were held or rested, so it has none; others may have had some. */
static void who_only_ever_waited_makes_a_lost_pool_as_it_was(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    begin_with(conf, 5);
    b.coord.pool.params.horizon_ms = 24 * 3600 * 1000;
    fake_coord_fail(&b.coord, FAKE_CLAIM, COORD_WAIT, false);
    rig_pass(&b.rig, 10);
    assert_int_equal(count(FAKE_CLAIM), 1);
    assert_int_equal(rig_held(&b.rig), 0);
    b.coord.missing = true;
    rig_pass(&b.rig, 60000);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->mode, COORD_INIT_AFTER_LOSS);
    assert_string_equal(fake_coord_latest(&b.coord, FAKE_INIT)->identity, RIG_IDENTITY);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->params.horizon_ms, 24 * 3600 * 1000);
    end();
}

/* What a pool was like is known from the page, too: after a restart, after one that came when all
 * ranges were over, and after a reboot. In another ID space IDs of before would come again. */
static void auto_init_makes_a_lost_pool_as_it_was(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    for (unsigned life = 0; life < 4; life++) {
        begin_with(conf, 5);
        (void)strcpy(b.coord.pool.identity, RIG_EPOCH2);
        b.coord.pool.epoch_ms = 1700000000000;
        b.coord.pool.params.horizon_ms = 24 * 3600 * 1000;
        b.coord.pool.params.max_skew_ms = 3000;
        b.coord.pool.later.settle_ms = 50000;
        b.coord.pool.later.least_ms = 40000;
        rig_pass(&b.rig, 1000);
        assert_int_equal(rig_held(&b.rig), 2);
        b.coord.missing = true;
        if (life == 2)
            fake_clock_pass(&b.clock, 2 * INT64_C(86400000000));
        if (life == 1 || life == 2)
            rig_restart(&b.rig);
        if (life == 3)
            rig_reboot(&b.rig);
        rig_pass(&b.rig, 7000);
        const struct fake_coord_call *made = fake_coord_latest(&b.coord, FAKE_INIT);
        assert_non_null(made);
        assert_int_equal(made->mode, COORD_INIT_AFTER_LOSS);
        assert_string_equal(made->identity, RIG_EPOCH2);
        assert_true(made->identity_said);
        assert_int_equal(made->params.horizon_ms, 24 * 3600 * 1000);
        assert_int_equal(made->params.max_skew_ms, 3000);
        assert_int_equal(made->params.worker_to, 5);
        assert_int_equal(made->settle_ms, 50000);
        assert_int_equal(made->least_ms, 40000);
        assert_int_equal(made->lost_ahead_ms, 0); /* no more than these */
        end();
    }
}

/* Somebody else made the pool again, of another epoch: a life that has issued nothing yet may not
 * join it either, unless the config says so. */
static void a_pool_of_another_epoch_than_that_of_ids_of_before_is_refused(void **state)
{
    (void)state;
    for (unsigned life = 0; life < 4; life++) {
        begin();
        if (life == 3) {
            (void)rig_step(&b.rig); /* a page that knows the pool, and no workerId of it */
        } else {
            (void)rig_settle(&b.rig);
            rig_use(rig_first(&b.rig), rig_wall(&b.rig));
        }
        b.coord.missing = true;
        fake_clock_pass(&b.clock, INT64_C(86400000000));
        if (life == 0)
            rig_reboot(&b.rig);
        if (life == 2) {
            b.rig.conf.epoch_pinned = true;
            b.rig.conf.epoch_ms = 1700000000000;
        }
        if (life > 0)
            rig_restart(&b.rig);
        rig_pass(&b.rig, 20000);
        b.coord.missing = false;
        (void)strcpy(b.coord.pool.identity, RIG_EPOCH2);
        b.coord.pool.epoch_ms = 1700000000000;
        memset(b.coord.worker, 0, sizeof b.coord.worker);
        rig_pass(&b.rig, 20000);
        assert_int_equal(rig_held(&b.rig), life < 2 ? 0 : 2);
        if (life < 2)
            assert_non_null(strstr(b.rig.lease.trouble.text, "expected a pool of epoch 2026"));
        end();
    }
}

/* It could have had a larger range than one would guess, or a smaller, beside another pool's. */
static void auto_init_makes_no_pool_that_was_lost_and_is_not_known(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    struct err e;
    conf.auto_init = true;
    begin_with(conf, 5);
    b.coord.missing = true;
    pagefile_close(&b.rig.file);
    assert_int_equal(pagefile_memory(&b.rig.file, true, &e), ERR_OK);
    lease_init(&b.rig.lease, &conf, &b.rig.file, &b.rig.rng.rng, rig_mono(&b.rig));
    rig_pass(&b.rig, 20000);
    assert_int_equal(count(FAKE_INIT), 0);
    assert_in_range(count(FAKE_DESCRIBE), 2, 30); /* it asks on, and not in a loop */
    b.coord.missing = false;                      /* somebody made it */
    rig_pass(&b.rig, 20000);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

/* Made again without it, the pool would wait for its horizon. */
static void the_settle_of_the_pool_is_known_when_it_is_lost(void **state)
{
    static const int64_t told[] = {40000, 50000, 0, 35000};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        struct coord_params params;
        int64_t settle, least, ahead;
        b.coord.pool.later.settle_ms = told[i]; /* as found, and as `pool set` changes it */
        rig_pass(&b.rig, 20000);
        assert_int_equal(b.rig.lease.last_settle_ms, told[i]);
        assert_int_equal(b.rig.lease.settle_ms,
                         i < 3 ? 40000 : 35000); /* the shortest is kept to */
        assert_true(page_params(b.rig.file.page, &params, &settle, &least, &ahead));
        assert_int_equal(settle, told[i]);
        assert_int_equal(least, i == 1 || i == 2 ? 40000 : 0);
    }
    b.coord.pool.later.settle_ms = 0; /* made again by who knows no shorter one */
    rig_pass(&b.rig, 20000);
    rig_restart(&b.rig);
    rig_pass(&b.rig, 20000);
    assert_int_equal(b.rig.lease.settle_ms, 35000);
    assert_int_equal(b.rig.lease.last_least_ms, 35000);
    b.coord.pool.params.first_horizon_ms =
        40000; /* made again with a longer one, which bounds it */
    b.coord.pool.born_ms++;
    rig_pass(&b.rig, 20000);
    assert_int_equal(b.rig.lease.last_least_ms, 40000);
    end();
    begin();
    b.coord.pool.later.settle_ms = 40000;
    rig_pass(&b.rig, 20000);
    b.coord.pool.later.settle_ms = 0; /* likewise, while this one was away */
    rig_restart(&b.rig);
    rig_pass(&b.rig, 20000);
    assert_int_equal(b.rig.lease.settle_ms, 40000);
    assert_int_equal(b.rig.lease.last_least_ms, 40000);
    end();
}

/* Ranges of a pool that was lost before this one was made last: until they end, nobody who makes it
 * again may forget them, be it a sidecar that has seen neither that pool nor a loss. */
static void how_far_a_pool_before_granted_is_known_when_it_is_lost(void **state)
{
    const int64_t day = COORD_AHEAD_MAX_MS, less = day - 1;
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    begin_with(conf, 5);
    b.coord.pool.later.ahead_ms = less; /* as it is described … */
    (void)rig_settle(&b.rig);
    assert_int_equal(b.rig.lease.last_ahead_ms, less);
    b.coord.pool.later.ahead_ms = day; /* … as it learns of a holder … */
    rig_pass(&b.rig, 20000);
    assert_int_equal(b.rig.lease.last_ahead_ms, day);
    b.coord.pool.later.ahead_ms = 0; /* … and one that was made again and knows no more */
    b.coord.pool.born_ms = 4711;
    rig_pass(&b.rig, 20000);
    rig_reboot(&b.rig);
    rig_restart(&b.rig);
    assert_int_equal(b.rig.lease.last_ahead_ms, day);
    b.coord.missing = true;
    rig_pass(&b.rig, 20000);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->lost_ahead_ms, day);
    end();
}

/* Lost and made again, it keeps its identity; it is what is there now that is to be told of. */
static void a_pool_made_again_is_described_anew(void **state)
{
    (void)state;
    begin_with(rig_config(), 5);
    (void)rig_settle(&b.rig);
    b.coord.pool.params.worker_to = 9; /* other workerIds, and no loss was seen */
    rig_pass(&b.rig, 20000);
    assert_int_equal(b.rig.lease.last_params.worker_to, 9);
    assert_true(b.rig.lease.range.code); /* of the one that what is held came from */
    b.coord.missing = true;
    rig_pass(&b.rig, 20000);
    b.coord.missing = false;
    b.coord.pool.born_ms = 4711; /* the same, but of another time */
    rig_pass(&b.rig, 20000);
    assert_true(b.rig.lease.pool.born_ms == 4711);
    unsigned before = count(FAKE_DESCRIBE);
    rig_pass(&b.rig, 60000);
    assert_int_equal(count(FAKE_DESCRIBE), before);
    b.coord.pool.params.worker_to = 5; /* and back */
    rig_pass(&b.rig, 20000);
    assert_false(b.rig.lease.range.code);
    assert_int_equal(b.rig.lease.last_params.worker_to, 5);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

/* Between two renewals, and with the era that the one before had: nothing but its birth tells. */
static void a_pool_made_again_unseen_is_described_anew(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    int64_t longer = 2 * b.coord.pool.params.horizon_ms;
    b.coord.pool.params.horizon_ms = longer;
    b.coord.pool.born_ms = 4711;
    rig_pass(&b.rig, 20000);
    assert_true(b.rig.lease.last_params.horizon_ms == longer);
    assert_true(b.rig.lease.ahead_ms == longer + 2 * b.coord.pool.params.max_skew_ms);
    unsigned before = count(FAKE_DESCRIBE);
    rig_pass(&b.rig, 60000);
    assert_int_equal(count(FAKE_DESCRIBE), before);
    end();
}

/* Another rest is some holder's range, and a word that nothing was lost ends none of these. */
static void a_wait_is_told_from_that_for_a_holder(void **state)
{
    static const struct {
        uint64_t era;
        int64_t floor, until;
        bool so;
    } cases[] = {
        {2, 3600000, 3600001, true},  /* as it was granted to nobody */
        {2, 3600000, 3600901, true},  /* by the coordinator's clock, the caller's being behind */
        {2, 3600000, 3599101, true},  /* or ahead */
        {2, 3600000, 3000000, false}, /* another range ends before */
        {2, 3600000, 7200000, false}, /* or later */
        {2, 1000, 1001, false},       /* the reopening is over */
        {1, 3600000, 3600001, false}, /* there was none */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct coord_pool p = {.params = coord_params_default, .floor_short_ms = cases[i].floor};
        struct coord_reply r = {
            .now_ms = 1000, .era = cases[i].era, .wait_ms = cases[i].until - 1000};
        p.params.max_skew_ms = 1000;
        if (terms_rest_of_reopening(&p, &r) != cases[i].so)
            fail_msg("case %zu", i);
    }
}

/* It takes back the latest reopening alone, and is not taken at once. */
static void a_word_is_named_where_it_helps(void **state)
{
    (void)state;
    struct coord_pool p = {.params = coord_params_default, .later = {.era_before = 3}};
    const int64_t from = coord_pool_word_from(&p, 3);
    struct coord_reply r = {.now_ms = 1000, .era = 3, .wait_ms = from - 1000};
    assert_false(terms_word_helps(&p, &r)); /* after a quick restart the wait is over before */
    r.wait_ms++;
    assert_true(terms_word_helps(&p, &r));
    p.later.floor_short_before_ms = 1001; /* of the one before */
    assert_false(terms_word_helps(&p, &r));
    p.later.floor_short_before_ms = 1000;
    assert_true(terms_word_helps(&p, &r));
    p.later.era_before = 0; /* said */
    assert_false(terms_word_helps(&p, &r));
    p.later.era_before = p.later.more_era = 3; /* somebody knows better */
    assert_false(terms_word_helps(&p, &r));
}

/* A pool with a shorter one in its place hears from whoever has longer ranges, also of the life
 * before and after it was described anew. */
static void a_longer_horizon_of_before_is_told(void **state)
{
    const int64_t day = 24 * 3600000;
    (void)state;
    for (unsigned restarts = 0; restarts < 2; restarts++) {
        begin();
        b.coord.pool.params.horizon_ms = day;
        (void)rig_settle(&b.rig);
        int64_t ahead = day + 2 * b.coord.pool.params.max_skew_ms;
        b.coord.pool.params.horizon_ms = 3600000; /* made again */
        b.coord.reopened++;
        if (restarts)
            rig_restart(&b.rig);
        unsigned before = count(FAKE_DESCRIBE);
        lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
        rig_pass(&b.rig, 20000);
        assert_true(count(FAKE_DESCRIBE) > before);
        for (unsigned i = 0; i < b.coord.ncalls; i++)
            if (b.coord.call[i].op == FAKE_RENEW)
                assert_int_equal(b.coord.call[i].by.ahead_ms, ahead);
        assert_int_equal(b.rig.lease.ahead_ms, ahead);
        end();
    }
}

static void a_pool_of_another_era_is_described_anew(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    b.coord.pool.floor_ms = 4711;
    b.coord.reopened++;
    rig_pass(&b.rig, 20000);
    assert_true(b.rig.lease.pool.floor_ms == 4711);
    end();
}

/* Also by a life later than that of the reboot: nobody else may know what to make. */
static void what_the_pool_was_is_known_in_each_life_after_a_reboot(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    begin_with(conf, 5);
    b.coord.pool.params.horizon_ms = 24 * 3600 * 1000;
    b.coord.pool.later.settle_ms = 50000;
    rig_pass(&b.rig, 1000);
    rig_reboot(&b.rig);
    rig_restart(&b.rig);
    assert_int_equal(b.rig.file.verdict, PAGE_OWN);
    assert_false(b.rig.lease.fresh_ok);
    assert_string_equal(b.rig.lease.last_identity, RIG_IDENTITY);
    assert_true(b.rig.lease.last_known);
    assert_int_equal(b.rig.lease.last_params.horizon_ms, 24 * 3600 * 1000);
    assert_int_equal(b.rig.lease.last_settle_ms, 50000);
    end();
}

/* One start with a mistake in `epoch` must not cost what is known for the next loss. */
static void what_the_pool_was_outlives_a_start_with_another_epoch(void **state)
{
    (void)state;
    struct lease_config conf = rig_config(), wrong = rig_config();
    wrong.epoch_pinned = true;
    wrong.epoch_ms = RIG_EPOCH + 86400000;
    begin_with(conf, 5);
    b.coord.pool.params.horizon_ms = 24 * 3600 * 1000;
    b.coord.pool.later.ahead_ms = COORD_AHEAD_MAX_MS;
    rig_pass(&b.rig, 1000);
    struct pagefile f = b.rig.file;
    struct lease l;
    f.found = true;
    f.verdict = PAGE_OWN;
    page_expect(f.page, 0, 7);
    lease_init(&l, &wrong, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_int_equal(lease_held(&l), 0);
    lease_init(&l, &conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_int_equal(lease_held(&l), 0); /* it was emptied */
    assert_string_equal(l.last_identity, RIG_IDENTITY);
    assert_true(l.last_known);
    assert_int_equal(l.last_params.horizon_ms, 24 * 3600 * 1000);
    assert_int_equal(l.last_ahead_ms, COORD_AHEAD_MAX_MS);
    assert_true(page_is_of(f.page, 7));
    page_clear(f.page);
    page_set_identity(f.page, "another");
    struct coord_params p;
    int64_t settle, least, ahead;
    assert_false(page_params(f.page, &p, &settle, &least, &ahead));
    end();
}

/* Nobody can tell what the page knew: neither the life that finds it so, nor any later one. */
static void a_damaged_page_is_a_trace_in_each_life(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    begin_with(conf, 5);
    rig_pass(&b.rig, 1000);
    struct pagefile f = b.rig.file;
    struct lease l;
    struct page_home home = f.page->head.home;
    page_format(f.page, &home, 1);
    f.found = false;
    memset(&f.old, 0, sizeof f.old);
    lease_init(&l, &conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_true(l.fresh_ok);
    page_replace(f.page, NULL);
    f.found = true;
    f.verdict = PAGE_BROKEN;
    lease_init(&l, &conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_false(l.fresh_ok);
    f.verdict = PAGE_OWN; /* the next one finds what that has begun */
    lease_init(&l, &conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_false(l.fresh_ok);
    end();
}

/* It lives on where it was; made here as it was, it would hand out the same workerIds. */
static void a_page_of_another_coordinator_tells_of_no_lost_pool(void **state)
{
    (void)state;
    begin_with(rig_config(), 5);
    rig_pass(&b.rig, 1000);
    struct pagefile f = b.rig.file;
    struct lease l;
    struct page_home home = f.page->head.home;
    f.found = true;
    f.verdict = PAGE_FOREIGN;
    f.old = *f.page;
    page_format(f.page, &home, 1);
    page_replace(f.page, &f.old);
    lease_init(&l, &b.rig.lease.conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_string_equal(l.last_identity, b.rig.lease.identity);
    home.coordinator ^= 1;
    page_format(f.page, &home, 1);
    page_replace(f.page, &f.old);
    lease_init(&l, &b.rig.lease.conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_string_equal(l.last_identity, "");
    assert_false(l.last_known);
    assert_false(l.fresh_ok); /* nor that nobody ever issued: it held workerIds */
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_of_a_lost_pool_go_on_to_their_ceilings),
        cmocka_unit_test(a_pool_made_again_with_others_takes_no_range),
        cmocka_unit_test(who_has_another_gives_up_what_the_pool_has_not),
        cmocka_unit_test(what_is_not_proven_is_not_kept_outside_the_pool),
        cmocka_unit_test(a_clock_that_is_ahead_gives_nothing_up),
        cmocka_unit_test(another_pool_is_not_joined_while_ranges_are_good),
        cmocka_unit_test(another_pool_is_joined_when_the_ranges_end),
        cmocka_unit_test(a_pool_of_another_epoch_is_refused_once_ids_may_have_been_issued),
        cmocka_unit_test(the_epoch_of_the_config_is_insisted_on),
        cmocka_unit_test(a_pool_of_another_layout_is_refused_once_ids_may_have_been_issued),
        cmocka_unit_test(the_layout_of_the_config_is_insisted_on),
        cmocka_unit_test(auto_init_makes_a_pool_of_the_layout_of_the_config),
        cmocka_unit_test(a_layout_with_the_workerid_lowest_wants_one),
        cmocka_unit_test(a_pool_of_another_epoch_before_the_first_grant_is_told_anew),
        cmocka_unit_test(without_auto_init_a_missing_pool_is_waited_for),
        cmocka_unit_test(auto_init_makes_a_missing_pool_fresh_only_without_a_page),
        cmocka_unit_test(auto_init_makes_a_lost_pool_as_it_was),
        cmocka_unit_test(who_only_ever_waited_makes_a_lost_pool_as_it_was),
        cmocka_unit_test(a_pool_of_another_epoch_than_that_of_ids_of_before_is_refused),
        cmocka_unit_test(the_settle_of_the_pool_is_known_when_it_is_lost),
        cmocka_unit_test(how_far_a_pool_before_granted_is_known_when_it_is_lost),
        cmocka_unit_test(a_pool_made_again_is_described_anew),
        cmocka_unit_test(a_pool_made_again_unseen_is_described_anew),
        cmocka_unit_test(a_wait_is_told_from_that_for_a_holder),
        cmocka_unit_test(a_word_is_named_where_it_helps),
        cmocka_unit_test(a_longer_horizon_of_before_is_told),
        cmocka_unit_test(a_pool_of_another_era_is_described_anew),
        cmocka_unit_test(what_the_pool_was_is_known_in_each_life_after_a_reboot),
        cmocka_unit_test(what_the_pool_was_outlives_a_start_with_another_epoch),
        cmocka_unit_test(a_damaged_page_is_a_trace_in_each_life),
        cmocka_unit_test(a_page_of_another_coordinator_tells_of_no_lost_pool),
        cmocka_unit_test(auto_init_makes_no_pool_that_was_lost_and_is_not_known),
    };
    return cmocka_run_group_tests_name("lease/lease, pools", tests, NULL, NULL);
}
