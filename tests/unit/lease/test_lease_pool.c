/* The lease machine and its pool: lost, replaced, of another epoch, to be made first. */
#include "lease_bench.h"

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
    assert_int_equal(rig_held(&b.rig), 2);
    b.coord.missing = true; /* the file was deleted: IDs were issued before */
    rig_pass(&b.rig, 7000);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_INIT)->mode, COORD_INIT_AFTER_LOSS);
    assert_string_equal(fake_coord_latest(&b.coord, FAKE_INIT)->identity, b.rig.lease.identity);
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

/* What a pool was like is known from the page, too, after a restart and after a reboot. */
static void auto_init_makes_a_lost_pool_as_it_was(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = true;
    for (unsigned life = 0; life < 3; life++) {
        begin_with(conf, 5);
        b.coord.pool.params.horizon_ms = 24 * 3600 * 1000;
        b.coord.pool.params.max_skew_ms = 3000;
        rig_pass(&b.rig, 1000);
        assert_int_equal(rig_held(&b.rig), 2);
        b.coord.missing = true;
        if (life == 1)
            rig_restart(&b.rig);
        if (life == 2)
            rig_reboot(&b.rig);
        rig_pass(&b.rig, 7000);
        const struct fake_coord_call *made = fake_coord_latest(&b.coord, FAKE_INIT);
        assert_non_null(made);
        assert_int_equal(made->mode, COORD_INIT_AFTER_LOSS);
        assert_int_equal(made->params.horizon_ms, 24 * 3600 * 1000);
        assert_int_equal(made->params.max_skew_ms, 3000);
        assert_int_equal(made->params.worker_to, 5);
        assert_int_equal(made->lost_ahead_ms, 0); /* no more than these */
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

/* It lives on where it was; made here as it was, it would hand out the same workerIds. */
static void a_page_of_another_coordinator_tells_of_no_lost_pool(void **state)
{
    (void)state;
    begin_with(rig_config(), 5);
    rig_pass(&b.rig, 1000);
    struct pagefile f = b.rig.file;
    struct lease l;
    f.found = true;
    f.verdict = PAGE_FOREIGN;
    f.old = *f.page;
    lease_init(&l, &b.rig.lease.conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_string_equal(l.last_identity, b.rig.lease.identity);
    f.old.head.home.coordinator ^= 1;
    lease_init(&l, &b.rig.lease.conf, &f, &b.rig.rng.rng, rig_mono(&b.rig));
    assert_string_equal(l.last_identity, "");
    assert_false(l.last_known);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_of_a_lost_pool_go_on_to_their_ceilings),
        cmocka_unit_test(another_pool_is_not_joined_while_ranges_are_good),
        cmocka_unit_test(a_pool_of_another_epoch_is_refused_once_ids_may_have_been_issued),
        cmocka_unit_test(the_epoch_of_the_config_is_insisted_on),
        cmocka_unit_test(a_pool_of_another_epoch_before_the_first_grant_is_told_anew),
        cmocka_unit_test(without_auto_init_a_missing_pool_is_waited_for),
        cmocka_unit_test(auto_init_makes_a_missing_pool_fresh_only_without_a_page),
        cmocka_unit_test(auto_init_makes_a_lost_pool_as_it_was),
        cmocka_unit_test(a_page_of_another_coordinator_tells_of_no_lost_pool),
        cmocka_unit_test(auto_init_makes_no_pool_that_was_lost_and_is_not_known),
    };
    return cmocka_run_group_tests_name("lease/lease, pools", tests, NULL, NULL);
}
