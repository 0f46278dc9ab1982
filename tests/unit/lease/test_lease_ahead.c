/* The lease machine where IDs may be ahead of the clock: what a page tells is not enough there. */
#include "lease_bench.h"

static struct lease_config ahead(bool rising)
{
    struct lease_config conf = rig_config();
    conf.ahead = true;
    conf.rising = rising;
    return conf;
}

/* Two workerIds held, of the first one the time was used up to 5 s ahead of the clock. */
static struct rig_grant begin_used(struct lease_config conf)
{
    begin_with(conf, FAKE_COORD_WORKERS - 1);
    (void)rig_settle(&b.rig);
    fake_clock_pass(&b.clock, 3000000);
    rig_use(rig_first(&b.rig), RIG_T0 + 8000);
    return *rig_first(&b.rig);
}

/* They rest until their ranges end, which no page can say better than the coordinator. */
static void check_given_back(struct rig_grant was)
{
    assert_int_equal(rig_held(&b.rig), 0);
    (void)rig_settle(&b.rig);
    assert_int_equal(rig_held(&b.rig), b.rig.conf.active + b.rig.conf.spare);
    assert_null(rig_of_worker(&b.rig, was.worker));
    assert_int_equal(count(FAKE_RENEW), 0);
    assert_int_equal(count(FAKE_RELEASE), 2);
    const struct coord_release *r = &fake_coord_latest(&b.coord, FAKE_RELEASE)->release;
    assert_false(r->has_last);
    assert_false(b.coord.worker[was.worker].held);
    assert_true(b.coord.worker[was.worker].hwm_ms == was.hi_ms);
}

static void a_page_is_not_taken_over(void **state)
{
    (void)state;
    for (int rising = 0; rising < 2; rising++) {
        struct rig_grant was = begin_used(ahead(rising));
        rig_restart(&b.rig);
        assert_true(b.rig.lease.latest_ms == (rising ? RIG_T0 + 8000 : 0));
        assert_true(lease_proven(&b.rig.lease));
        check_given_back(was);
        end();
    }
}

/* Whoever had it went ahead, or whoever has it now would. */
static void nor_where_one_life_is_ahead_and_the_other_is_not(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct rig_grant was = begin_used(first ? ahead(false) : rig_config());
        b.rig.conf.ahead = !first;
        rig_restart(&b.rig);
        check_given_back(was);
        rig_restart(&b.rig); /* what was claimed since is as this life has it */
        assert_int_equal(rig_held(&b.rig), 0);
        assert_int_equal(b.rig.lease.nforeign, first ? 0 : 2);
        end();
    }
}

static void nor_while_nobody_can_be_asked(void **state)
{
    (void)state;
    (void)begin_used(ahead(true));
    for (int i = 0; i < 20; i++)
        upset(FAKE_DESCRIBE, COORD_DOWN);
    rig_restart(&b.rig);
    rig_pass(&b.rig, 10000);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(count(FAKE_RENEW), 0);
    end();
}

/* A kill before they were given back leaves no trace of them: they rest as long. */
static void what_is_not_gone_on_from_is_so_but_once(void **state)
{
    (void)state;
    struct page_record r;
    (void)begin_used(ahead(false));
    rig_restart(&b.rig);
    assert_true(b.rig.lease.gave_up); /* earlier states of the page, in which they were held */
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        assert_true(page_load(b.rig.file.page, i, &r) && r.state == PAGE_FREE);
    rig_restart(&b.rig);
    assert_int_equal(b.rig.lease.nforeign, 0);
    (void)rig_settle(&b.rig);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

static void an_upgrade_goes_on_at_once_above_the_exact_time(void **state)
{
    (void)state;
    for (int rising = 0; rising < 2; rising++)
        for (int before = 0; before < 2; before++) { /* … also from a program that was not ahead */
            struct rig_grant was = begin_used(before ? rig_config() : ahead(rising));
            b.rig.conf = ahead(rising);
            b.rig.file.proven = true;
            rig_restart(&b.rig);
            assert_int_equal(rig_held(&b.rig), 2);
            struct rig_grant *is = rig_of_worker(&b.rig, was.worker);
            assert_non_null(is);
            assert_true(is->last_ms == RIG_T0 + 8000 && is->hi_ms == was.hi_ms);
            assert_true(b.rig.lease.latest_ms == RIG_T0 + 8000);
            (void)rig_settle(&b.rig);
            b.rig.file.proven = false;
            b.rig.conf = rig_config(); /* the page says that it was ahead since */
            rig_restart(&b.rig);
            assert_int_equal(b.rig.lease.nforeign, 2);
            end();
        }
}

/* It was given up since its clock stepped back: who lets IDs go back for that goes on below. */
static void an_upgrade_does_not_wait_for_a_clock_that_was_ahead(void **state)
{
    (void)state;
    for (int rising = 0; rising < 2; rising++) {
        (void)begin_used(ahead(rising));
        rig_retire(&b.rig, rig_first(&b.rig));
        rig_pass(&b.rig, 40000); /* another one has its slot */
        assert_int_equal(rig_held(&b.rig), 2);
        b.rig.file.proven = true;
        rig_restart(&b.rig);
        assert_true(b.rig.lease.latest_ms == (rising ? RIG_T0 + 8000 : 0));
        end();
    }
}

static void a_clean_stop_tells_the_exact_time(void **state)
{
    (void)state;
    struct rig_grant was = begin_used(ahead(true));
    lease_stop(&b.rig.lease, true, rig_mono(&b.rig));
    (void)rig_settle(&b.rig);
    assert_int_equal(count(FAKE_RELEASE), 2);
    assert_true(b.coord.worker[was.worker].hwm_ms == RIG_T0 + 8000);
    rig_restart(&b.rig);
    assert_true(b.rig.lease.latest_ms == RIG_T0 + 8000); /* and the page, whoever has it next */
    end();
}

static void a_page_of_another_boot_tells_the_latest_time(void **state)
{
    (void)state;
    (void)begin_used(ahead(true));
    rig_reboot(&b.rig);
    assert_true(b.rig.lease.latest_ms == RIG_T0 + 8000);
    (void)rig_settle(&b.rig);
    rig_reboot(&b.rig);
    assert_true(b.rig.lease.latest_ms >= RIG_T0 + 8000);
    end();
    (void)begin_used(rig_config());
    rig_reboot(&b.rig);
    assert_true(b.rig.lease.latest_ms == 0);
    end();
}

/* Other workerIds have taken the slots, and the marks with them. */
static void a_life_without_an_id_forgets_nothing(void **state)
{
    (void)state;
    (void)begin_used(ahead(true));
    for (int i = 0; i < 3; i++) {
        rig_restart(&b.rig);
        assert_true(b.rig.lease.latest_ms == RIG_T0 + 8000);
        (void)rig_settle(&b.rig);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_not_taken_over),
        cmocka_unit_test(nor_where_one_life_is_ahead_and_the_other_is_not),
        cmocka_unit_test(nor_while_nobody_can_be_asked),
        cmocka_unit_test(what_is_not_gone_on_from_is_so_but_once),
        cmocka_unit_test(an_upgrade_goes_on_at_once_above_the_exact_time),
        cmocka_unit_test(an_upgrade_does_not_wait_for_a_clock_that_was_ahead),
        cmocka_unit_test(a_clean_stop_tells_the_exact_time),
        cmocka_unit_test(a_page_of_another_boot_tells_the_latest_time),
        cmocka_unit_test(a_life_without_an_id_forgets_nothing),
    };
    return cmocka_run_group_tests_name("lease/lease, ahead of the clock", tests, NULL, NULL);
}
