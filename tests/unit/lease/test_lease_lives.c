/* The lease machine from one life to the next: the state page taken over, set aside, left behind.
 */
#include "lease_bench.h"

/* Two workerIds held, the first of them used up to 2 s after the claim, 3 s ago. */
static struct rig_grant begin_used(void)
{
    begin();
    (void)rig_settle(&b.rig);
    fake_clock_pass(&b.clock, 3000000);
    rig_use(rig_first(&b.rig), RIG_T0 + 2000);
    return *rig_first(&b.rig);
}

/* ---- taking over ------------------------------------------------------------------------------
 */

static void a_restart_goes_on_where_the_killed_one_stopped(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    rig_restart(&b.rig);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 1);
    assert_true(b.rig.pool.epoch_ms == RIG_EPOCH);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW); /* the first thing it does */
    assert_int_equal(rig_held(&b.rig), 2);
    struct rig_grant *is = rig_of_worker(&b.rig, was.worker);
    assert_non_null(is);
    assert_true(is->last_ms == rig_wall(&b.rig));
    assert_true(is->hi_ms == was.hi_ms + 3000);
    assert_int_equal(b.rig.mails[LEASE_MAIL_EXTEND], 0);
    assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
    assert_int_equal(rig_step(&b.rig), LEASE_IDLE);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(count(FAKE_CLAIM), 2); /* those of the first life */
    end();
}

/* An upgrade: nothing is asked before IDs are issued, and the last time is the exact one. */
static void a_page_as_it_was_left_is_granted_at_once(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    assert_true(lease_proven(&b.rig.lease));
    b.rig.file.proven = true;
    rig_restart(&b.rig);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 1);
    struct rig_grant *is = rig_of_worker(&b.rig, was.worker);
    assert_non_null(is);
    assert_true(is->last_ms == RIG_T0 + 2000 && is->hi_ms == was.hi_ms);
    assert_true(lease_proven(&b.rig.lease));
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW); /* but then the first thing it does */
    assert_int_equal(b.rig.mails[LEASE_MAIL_EXTEND], 2);
    end();
}

/* An upgrade before the first renewal was answered has nothing to vouch for. */
static void a_page_that_waits_to_be_proven_is_not_passed_on_as_proven(void **state)
{
    (void)state;
    (void)begin_used();
    rig_restart(&b.rig);
    assert_false(lease_proven(&b.rig.lease));
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_true(lease_proven(&b.rig.lease));
    end();
}

/* Fewer are wanted than the life before held: what is too many goes back, whose last time is known
 * only once the page is proven. */
static void what_a_new_life_does_not_want_goes_back(void **state)
{
    (void)state;
    for (int proven = 0; proven < 2; proven++) {
        (void)begin_used();
        rig_use(&b.rig.grant[1], RIG_T0 + 1500);
        b.rig.conf.spare = 0;
        b.rig.file.proven = proven;
        rig_restart(&b.rig);
        assert_int_equal(rig_held(&b.rig), proven);
        (void)rig_settle(&b.rig);
        assert_int_equal(rig_held(&b.rig), 1);
        assert_int_equal(count(FAKE_RELEASE), 1);
        const struct coord_release *r = &fake_coord_latest(&b.coord, FAKE_RELEASE)->release;
        assert_null(rig_of_worker(&b.rig, r->worker));
        assert_false(b.coord.worker[r->worker].held);
        assert_true(r->has_last);
        assert_int_equal(r->n, b.coord.worker[r->worker].n); /* all changes were heard */
        if (proven)
            assert_true(r->last_ms == RIG_T0 + 1500);
        else /* a page put back may be older: no less than now */
            assert_true(r->last_ms == rig_wall(&b.rig));
        assert_true(lease_proven(&b.rig.lease));
        rig_pass(&b.rig, 60000);
        assert_int_equal(rig_held(&b.rig), 1);
        assert_int_equal(count(FAKE_CLAIM), 2);
        end();
    }
}

/* An answer to a pair of tokens out of the page proves nothing: then it takes one more. The loop,
 * which issues from it, tells its last time. */
static void in_an_outage_what_is_too_many_is_kept(void **state)
{
    (void)state;
    for (unsigned cut = 0; cut < 2; cut++) {
        (void)begin_used();
        b.rig.conf.spare = 0;
        upset(FAKE_RENEW, COORD_DOWN);
        if (cut) {
            lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
            assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
            upset(FAKE_RENEW, COORD_DOWN);
        }
        rig_restart(&b.rig);
        (void)rig_step(&b.rig);
        assert_int_equal(rig_held(&b.rig), 2);
        int64_t last = rig_wall(&b.rig) + 7;
        rig_use(&b.rig.grant[1], last);
        rig_pass(&b.rig, 1000);
        assert_int_equal(count(FAKE_RENEW), cut ? 3 : 2);
        assert_int_equal(rig_held(&b.rig), cut ? 2 : 1);
        rig_pass(&b.rig, 7000);
        assert_int_equal(rig_held(&b.rig), 1);
        assert_int_equal(b.rig.mails[LEASE_MAIL_RETIRE], 1);
        assert_int_equal(count(FAKE_RELEASE), 1);
        assert_true(fake_coord_latest(&b.coord, FAKE_RELEASE)->release.last_ms == last);
        lease_urge_claim(&b.rig.lease, rig_mono(&b.rig)); /* what is asked for later stays */
        rig_pass(&b.rig, 60000);
        assert_int_equal(rig_held(&b.rig), 2);
        end();
    }
}

/* A slot that was left before stays left. */
static void a_leaving_slot_of_a_proven_page_is_released(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    rig_retire(&b.rig, rig_of_worker(&b.rig, was.worker));
    b.rig.file.proven = true;
    rig_restart(&b.rig);
    assert_null(rig_of_worker(&b.rig, was.worker));
    assert_int_equal(rig_held(&b.rig), 1);
    (void)rig_settle(&b.rig);
    assert_int_equal(count(FAKE_RELEASE), 1);
    end();
}

/* The page may have been put back while a release of whoever left it is on its way: that names the
 * pair of the page, too. Only a token that nobody else knows proves that the workerId is held. */
static void a_restart_repeats_the_renewal_that_was_cut_short(void **state)
{
    (void)state;
    for (int arrived = 0; arrived < 2; arrived++) {
        (void)begin_used();
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, arrived != 0);
        while (count(FAKE_RENEW) == 0)
            rig_pass(&b.rig, 50);
        const struct fake_coord_call *cut = fake_coord_latest(&b.coord, FAKE_RENEW);
        rig_restart(&b.rig);
        assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
        const struct fake_coord_call *again = fake_coord_latest(&b.coord, FAKE_RENEW);
        assert_ptr_not_equal(cut, again);
        for (size_t i = 0; i < 2; i++) {
            assert_true(coord_token_equal(cut->items[i].cur, again->items[i].cur));
            assert_true(coord_token_equal(cut->items[i].nxt, again->items[i].nxt));
        }
        assert_int_equal(rig_held(&b.rig), 0);
        assert_int_equal(rig_step(&b.rig), LEASE_RENEW); /* at once */
        const struct fake_coord_call *own = fake_coord_latest(&b.coord, FAKE_RENEW);
        for (size_t i = 0; i < 2; i++) {
            assert_true(coord_token_equal(cut->items[i].nxt, own->items[i].cur));
            assert_false(coord_token_equal(cut->items[i].nxt, own->items[i].nxt));
        }
        assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 0);
        assert_int_equal(rig_held(&b.rig), 2);
        assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
        end();
    }
}

static void a_restart_with_the_coordinator_down_serves_all_the_same(void **state)
{
    (void)state;
    (void)begin_used();
    rig_restart(&b.rig);
    for (int i = 0; i < 20; i++)
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    rig_pass(&b.rig, 10000);
    assert_int_equal(rig_held(&b.rig), 2);
    b.coord.nfaults = 0;
    rig_pass(&b.rig, 7000);
    assert_true(rig_first(&b.rig)->hi_ms > RIG_T0 + 40000);
    end();
}

static void a_clock_that_went_back_does_not_lower_last(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    b.clock.us_wall -= 1500000;
    rig_restart(&b.rig);
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_true(rig_of_worker(&b.rig, was.worker)->last_ms == RIG_T0 + 2000);
    end();
}

/* What was issued cannot be above the ceiling, whatever the clock says. */
static void a_clock_that_is_years_ahead_uses_up_the_range_alone(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    b.clock.us_wall += INT64_C(100000000000000);
    rig_restart(&b.rig);
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_true(rig_of_worker(&b.rig, was.worker)->last_ms == was.hi_ms);
    end();
}

/* It can be above the ceiling: the floor of a grant may come from another boot's page. */
static void a_last_time_above_the_ceiling_stays(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    rig_use(rig_first(&b.rig), was.hi_ms + 5000);
    b.clock.us_wall += INT64_C(100000000000000);
    rig_restart(&b.rig);
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_true(rig_of_worker(&b.rig, was.worker)->last_ms == was.hi_ms + 5000);
    end();
}

/* A page that was copied earlier comes back within the same file: it is an older state of itself.
 */
static void an_older_page_put_back_is_not_issued_from(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    struct page backup = *b.rig.file.page;
    rig_pass(&b.rig, 7000);
    assert_true(count(FAKE_RENEW) >= 1);
    *b.rig.file.page = backup;
    rig_restart(&b.rig);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW); /* with tokens that have been changed since */
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(b.rig.mails[LEASE_MAIL_GRANT] + b.rig.mails[LEASE_MAIL_REVOKE], 0);
    (void)rig_settle(&b.rig);
    assert_null(rig_of_worker(&b.rig, was.worker));
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

static void a_page_put_back_before_a_renewal_goes_on_above_what_was_issued(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    struct page backup = *b.rig.file.page;
    rig_use(rig_first(&b.rig), RIG_T0 + 2900);
    *b.rig.file.page = backup;
    rig_restart(&b.rig);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_true(rig_of_worker(&b.rig, was.worker)->last_ms >= RIG_T0 + 2900);
    end();
}

/* Nobody has said yet that the page's `last` is right. */
static void a_stop_before_the_first_renewal_tells_no_last(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    int64_t hwm = b.coord.worker[was.worker].hwm_ms;
    rig_restart(&b.rig);
    lease_stop(&b.rig.lease, true, rig_mono(&b.rig));
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_false(b.coord.worker[was.worker].held);
    assert_true(b.coord.worker[was.worker].hwm_ms == hwm);
    end();
}

static void what_was_lost_meanwhile_is_replaced(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    fake_coord_steal(&b.coord, was.worker);
    rig_restart(&b.rig);
    (void)rig_settle(&b.rig);
    assert_null(rig_of_worker(&b.rig, was.worker));
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

/* It may belong to somebody else by now: it is not issued from, only released once more. */
static void a_leaving_one_is_released_and_never_granted_again(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    rig_retire(&b.rig, rig_first(&b.rig));
    fake_coord_fail(&b.coord, FAKE_RELEASE, COORD_DOWN, false);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    rig_restart(&b.rig);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_int_equal(rig_held(&b.rig), 1);
    assert_null(rig_of_worker(&b.rig, was.worker));
    (void)rig_settle(&b.rig);
    const struct fake_coord_call *c = fake_coord_latest(&b.coord, FAKE_RELEASE);
    assert_int_equal(c->release.worker, was.worker);
    assert_true(c->release.has_last && c->release.last_ms == RIG_T0 + 2000);
    assert_int_equal(c->status, COORD_OK);
    assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 0);
    end();
}

/* From each of these on, an earlier state of the page could have what others have. */
static void what_is_given_up_makes_a_new_generation_due(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    assert_false(b.rig.lease.gave_up);
    rig_retire(&b.rig, rig_first(&b.rig));
    assert_true(b.rig.lease.gave_up);
    rig_restart(&b.rig); /* which does not know whether one was begun */
    assert_true(b.rig.lease.gave_up);
    (void)rig_settle(&b.rig);
    rig_restart(&b.rig);
    assert_false(b.rig.lease.gave_up);
    (void)rig_settle(&b.rig);
    fake_coord_steal(&b.coord, rig_first(&b.rig)->worker);
    rig_pass(&b.rig, 20000);
    assert_true(b.rig.lease.gave_up);
    b.rig.lease.gave_up = false;
    lease_stop(&b.rig.lease, true, rig_mono(&b.rig));
    assert_true(b.rig.lease.gave_up);
    assert_null(rig_of_worker(&b.rig, was.worker));
    end();
}

static void renew(struct lease_rig *r)
{
    lease_urge_renewal(&r->lease, rig_mono(r));
    assert_int_equal(rig_step(r), LEASE_RENEW);
}

/* Memory that was copied with a renewal on its way: both copies have the token that it ends with.
 * README says how long. */
static void a_cloned_process_issues_until_its_second_renewal(void **state)
{
    (void)state;
    uint16_t worker = begin_used().worker;
    fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
    renew(&b.rig);
    struct lease_rig clone = b.rig;
    struct page page = *b.rig.file.page;
    clone.file.page = clone.lease.page = &page;
    clone.rng = seeded_of(2);
    for (int away = 0; away < 3; away++) {
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, false);
        fake_clock_pass(&b.clock, 6000000);
        renew(&clone);
        assert_non_null(rig_of_worker(&clone, worker));
    }
    for (int round = 0; round < 2; round++) {
        fake_clock_pass(&b.clock, 6000000);
        renew(&b.rig);
        renew(&clone);
        assert_non_null(rig_of_worker(&b.rig, worker));
        assert_true((rig_of_worker(&clone, worker) != NULL) == (round == 0));
    }
    end();
}

/* static:N: whatever page knew of later IDs, they are not repeated; a coordinator knows better. */
static void a_floor_counts_where_nothing_but_pages_knows(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        begin();
        b.rig.conf.page_knows_alone = alone;
        rig_restart(&b.rig);
        mark_store(&b.rig.file.page->head.floor, RIG_T0 + 700);
        (void)rig_settle(&b.rig);
        int64_t above = b.rig.lease.slot[0].rec.lo_ms - 1;
        assert_true(above < RIG_T0 + 700);
        assert_true(rig_first(&b.rig)->last_ms == (alone ? RIG_T0 + 700 : above));
        end();
    }
}

static void a_restart_under_another_epoch_takes_nothing_over(void **state)
{
    (void)state;
    (void)begin_used();
    b.rig.conf.epoch_pinned = true;
    b.rig.conf.epoch_ms = RIG_EPOCH + 1000;
    rig_restart(&b.rig);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 0);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 0);
    assert_int_equal(b.rig.lease.trouble.code, ERR_INVALID);
    rig_pass(&b.rig, 5000);
    assert_int_equal(rig_held(&b.rig), 0);
    end();
}

static void a_restart_under_another_layout_takes_nothing_over(void **state)
{
    (void)state;
    (void)begin_used();
    b.rig.conf.layout_pinned = true;
    assert_int_equal(layout_parse(SPAN("twitter"), &b.rig.conf.layout, NULL), ERR_OK);
    rig_restart(&b.rig);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 0);
    rig_pass(&b.rig, 5000);
    assert_int_equal(rig_held(&b.rig), 0);
    end();
}

static void handles_of_two_lives_may_agree_but_grants_do_not_repeat(void **state)
{
    (void)state;
    (void)begin_used();
    uint16_t worker = rig_first(&b.rig)->worker;
    for (int64_t life = 1; life <= 5; life++) {
        int64_t last = rig_of_worker(&b.rig, worker)->last_ms;
        rig_restart(&b.rig);
        assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
        struct rig_grant *g = rig_of_worker(&b.rig, worker);
        assert_true(g->last_ms >= last && g->last_ms == rig_wall(&b.rig));
        rig_use(g, rig_wall(&b.rig) + life);
        rig_pass(&b.rig, 1000);
    }
    end();
}

/* A slot that was lost and granted anew, before the loop had heard of the first: what it stored
 * meanwhile is of the holder before. */
static void a_mark_below_the_floor_is_not_told_at_a_release(void **state)
{
    (void)state;
    (void)begin_used();
    struct rig_grant *g = rig_first(&b.rig);
    struct page_record *rec = &b.rig.lease.slot[g->handle % LEASE_SLOTS].rec;
    int64_t hwm = b.coord.worker[g->worker].hwm_ms;
    uint16_t worker = g->worker;
    rec->lo_ms = RIG_T0 + 1;
    mark_store(g->mark, rec->lo_ms - 2);
    rig_retire(&b.rig, g);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    const struct fake_coord_call *c = fake_coord_latest(&b.coord, FAKE_RELEASE);
    assert_int_equal(c->release.worker, worker);
    assert_true(c->release.last_ms == rec->hi_ms);
    assert_true(b.coord.worker[worker].hwm_ms == hwm);
    end();
}

/* ---- after a reboot ---------------------------------------------------------------------------
 */

static void after_a_reboot_everything_is_released_without_last(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    int64_t hwm = b.coord.worker[was.worker].hwm_ms;
    rig_retire(&b.rig, rig_first(&b.rig)); /* its mark may be younger on disk, or older */
    rig_reboot(&b.rig);
    assert_int_equal(rig_held(&b.rig), 0);
    assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    for (unsigned i = b.coord.ncalls - 2; i < b.coord.ncalls; i++) {
        assert_int_equal(b.coord.call[i].status, COORD_OK);
        assert_false(b.coord.call[i].release.has_last);
    }
    assert_true(b.coord.worker[was.worker].hwm_ms == hwm);
    (void)rig_settle(&b.rig);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(count(FAKE_RELEASE), 2);
    end();
}

/* Either of the two tokens may be the right one. */
static void after_a_reboot_what_was_being_renewed_is_released(void **state)
{
    (void)state;
    (void)begin_used();
    for (unsigned i = 0; i < 50; i++)
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, true);
    rig_pass(&b.rig, 7000);
    assert_true(count(FAKE_RENEW) > 0 && b.rig.lease.fails > 0);
    rig_reboot(&b.rig);
    (void)rig_settle(&b.rig);
    assert_int_equal(count(FAKE_RELEASE), 2);
    for (unsigned i = 0; i < b.coord.ncalls; i++)
        if (b.coord.call[i].op == FAKE_RELEASE)
            assert_int_equal(b.coord.call[i].status, COORD_OK);
    end();
}

static void another_pools_page_is_not_released_to_this_one(void **state)
{
    (void)state;
    (void)begin_used();
    rig_reboot(&b.rig);
    (void)strcpy(b.coord.pool.identity, RIG_OTHER);
    (void)rig_settle(&b.rig);
    assert_int_equal(count(FAKE_RELEASE), 0);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

/* ---- stopping ---------------------------------------------------------------------------------
 */

static void stop(bool give_back)
{
    lease_stop(&b.rig.lease, give_back, rig_mono(&b.rig));
}

static void a_stop_returns_everything_with_its_exact_last(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    stop(true);
    assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 2); /* before any release is sent */
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_true(b.coord.worker[was.worker].hwm_ms == RIG_T0 + 2000);
    assert_int_equal(rig_page_count(&b.rig, PAGE_FREE), PAGE_SLOTS);
    for (unsigned w = 0; w < FAKE_COORD_WORKERS; w++)
        assert_false(b.coord.worker[w].held);
    rig_restart(&b.rig);
    assert_int_equal(rig_held(&b.rig), 0);
    end();
}

static void a_stop_that_keeps_leaves_the_page_as_it_is(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    stop(false);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_int_equal(count(FAKE_RELEASE), 0);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 2);
    rig_restart(&b.rig);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_true(rig_of_worker(&b.rig, was.worker)->last_ms == rig_wall(&b.rig));
    end();
}

static void a_stop_that_keeps_still_releases_the_retired(void **state)
{
    (void)state;
    (void)begin_used();
    rig_retire(&b.rig, rig_first(&b.rig));
    stop(false);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 1);
    end();
}

static void a_stop_waits_for_a_coordinator_only_so_long(void **state)
{
    (void)state;
    struct rig_grant was = begin_used();
    for (int i = 0; i < 60; i++)
        fake_coord_fail(&b.coord, FAKE_RELEASE, COORD_DOWN, false);
    stop(true);
    int64_t start = rig_mono(&b.rig);
    struct lease_action a;
    for (;;) {
        (void)rig_settle(&b.rig);
        rig_next(&b.rig, &a);
        if (a.kind == LEASE_FINISHED)
            break;
        fake_clock_pass(&b.clock, (a.until - rig_mono(&b.rig)) * 1000);
    }
    assert_true(rig_mono(&b.rig) - start == 3000);
    assert_true(count(FAKE_RELEASE) >= 4);
    assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 2);
    b.coord.nfaults = 0;
    rig_restart(&b.rig); /* the next life does it, and issues from neither */
    assert_int_equal(rig_held(&b.rig), 0);
    (void)rig_settle(&b.rig);
    assert_true(b.coord.worker[was.worker].hwm_ms == RIG_T0 + 2000);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

static void a_stop_before_anything_was_found_finishes_at_once(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    fake_clock_init(&b.clock, RIG_T0);
    fake_coord_init(&b.coord, &b.clock.clock, RIG_IDENTITY, 0, 5);
    rig_init(&b.rig, &conf, &b.coord, &b.clock, 1);
    stop(true);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_int_equal(b.coord.ncalls, 0);
    end();
}

static void nothing_is_claimed_or_renewed_after_a_stop(void **state)
{
    (void)state;
    (void)begin_used();
    unsigned claims = count(FAKE_CLAIM), renewals = count(FAKE_RENEW);
    stop(false);
    lease_urge_claim(&b.rig.lease, rig_mono(&b.rig));
    lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
    fake_clock_pass(&b.clock, 60000000);
    assert_int_equal(rig_step(&b.rig), LEASE_FINISHED);
    assert_int_equal(count(FAKE_CLAIM), claims);
    assert_int_equal(count(FAKE_RENEW), renewals);
    end();
}

/* ---- all of it, by chance ---------------------------------------------------------------------
 */

#define SIDECARS 3

struct crowd {
    struct fake_clock clock;
    struct fake_coord coord;
    struct lease_rig rig[SIDECARS];
    struct seeded rng;
    /* (worker, ms) pairs must be used by one grant alone. */
    struct use {
        uint16_t worker;
        int64_t ms;
    } use[60000];
    size_t nuse;
};

/* An ID at a time near now, if the grant allows it: what the generator would do. */
static void use_one(struct crowd *c, struct lease_rig *r, int64_t now)
{
    struct rig_grant *g = &r->grant[seeded_in(&c->rng, 0, LEASE_SLOTS - 1)];
    if (!g->held)
        g = rig_first(r);
    if (!g || now <= g->last_ms || now > g->hi_ms || c->nuse == sizeof c->use / sizeof *c->use)
        return;
    rig_use(g, now);
    c->use[c->nuse++] = (struct use){g->worker, now};
}

static void misfortune(struct crowd *c, struct lease_rig *r)
{
    static const enum coord_status statuses[] = {COORD_DOWN, COORD_DOWN, COORD_WAIT, COORD_SKEW,
                                                 COORD_REFUSED};
    struct rig_grant *g = rig_first(r);
    switch (seeded_in(&c->rng, 0, 7)) {
    case 0:
        r->conf.spare = (unsigned)seeded_in(&c->rng, 0, 2);
        rig_restart(r);
        break;
    case 1:
        rig_reboot(r);
        break;
    case 2:
        if (g)
            rig_retire(r, g);
        break;
    case 3:
        lease_stop(&r->lease, seeded_in(&c->rng, 0, 1) != 0, rig_mono(r));
        for (int i = (int)seeded_in(&c->rng, 0, 3); i > 0; i--)
            (void)rig_step(r);
        rig_restart(r);
        break;
    case 4:
        lease_urge_claim(&r->lease, rig_mono(r));
        break;
    default:
        if (c->coord.nfaults < FAKE_COORD_FAULTS)
            fake_coord_fail(&c->coord, (enum fake_coord_op)seeded_in(&c->rng, 0, FAKE_OPS - 1),
                            statuses[seeded_in(&c->rng, 0, 4)], seeded_in(&c->rng, 0, 1) != 0);
    }
}

static int by_worker_and_time(const void *a, const void *b_)
{
    const struct use *x = a, *y = b_;
    int w = (x->worker > y->worker) - (x->worker < y->worker);
    return w ? w : (x->ms > y->ms) - (x->ms < y->ms);
}

static void one_crowd(struct crowd *c, uint64_t seed)
{
    struct lease_config conf = rig_config();
    conf.rotation_jitter_ms = 500;
    c->rng = seeded_of(seed);
    c->nuse = 0;
    fake_clock_init(&c->clock, RIG_T0);
    fake_coord_init(&c->coord, &c->clock.clock, RIG_IDENTITY, 0,
                    (uint16_t)seeded_in(&c->rng, 1, 9));
    for (int i = 0; i < SIDECARS; i++)
        rig_init(&c->rig[i], &conf, &c->coord, &c->clock, seed * 10 + (uint64_t)i);
    for (int step = 0; step < 3000 && c->coord.ncalls < FAKE_COORD_CALLS - 40; step++) {
        struct lease_rig *r = &c->rig[seeded_in(&c->rng, 0, SIDECARS - 1)];
        (void)rig_step(r);
        /* A node's clock may be behind or ahead of the coordinator's. */
        use_one(c, r, rig_wall(r) + seeded_in(&c->rng, -300, seeded_in(&c->rng, 0, 9) ? 5 : 40000));
        if (seeded_in(&c->rng, 0, 24) == 0)
            misfortune(c, r);
        fake_clock_pass(&c->clock, seeded_in(&c->rng, 0, 400000));
    }
    for (int i = 0; i < SIDECARS; i++)
        rig_clear(&c->rig[i]);
    fake_coord_clear(&c->coord);
}

static void no_time_of_a_workerid_is_used_twice(void **state)
{
    (void)state;
    static struct crowd c;
    size_t used = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        one_crowd(&c, seed);
        qsort(c.use, c.nuse, sizeof *c.use, by_worker_and_time);
        for (size_t i = 1; i < c.nuse; i++)
            if (by_worker_and_time(&c.use[i - 1], &c.use[i]) == 0)
                fail_msg("seed %llu: workerId %u was used twice at %lld", (unsigned long long)seed,
                         c.use[i].worker, (long long)c.use[i].ms);
        used += c.nuse;
    }
    assert_true(used > 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_goes_on_where_the_killed_one_stopped),
        cmocka_unit_test(a_page_as_it_was_left_is_granted_at_once),
        cmocka_unit_test(a_page_that_waits_to_be_proven_is_not_passed_on_as_proven),
        cmocka_unit_test(what_a_new_life_does_not_want_goes_back),
        cmocka_unit_test(in_an_outage_what_is_too_many_is_kept),
        cmocka_unit_test(a_leaving_slot_of_a_proven_page_is_released),
        cmocka_unit_test(a_restart_repeats_the_renewal_that_was_cut_short),
        cmocka_unit_test(a_restart_with_the_coordinator_down_serves_all_the_same),
        cmocka_unit_test(a_clock_that_went_back_does_not_lower_last),
        cmocka_unit_test(a_clock_that_is_years_ahead_uses_up_the_range_alone),
        cmocka_unit_test(a_last_time_above_the_ceiling_stays),
        cmocka_unit_test(an_older_page_put_back_is_not_issued_from),
        cmocka_unit_test(a_page_put_back_before_a_renewal_goes_on_above_what_was_issued),
        cmocka_unit_test(a_stop_before_the_first_renewal_tells_no_last),
        cmocka_unit_test(what_was_lost_meanwhile_is_replaced),
        cmocka_unit_test(a_leaving_one_is_released_and_never_granted_again),
        cmocka_unit_test(what_is_given_up_makes_a_new_generation_due),
        cmocka_unit_test(a_floor_counts_where_nothing_but_pages_knows),
        cmocka_unit_test(a_cloned_process_issues_until_its_second_renewal),
        cmocka_unit_test(a_restart_under_another_epoch_takes_nothing_over),
        cmocka_unit_test(a_restart_under_another_layout_takes_nothing_over),
        cmocka_unit_test(handles_of_two_lives_may_agree_but_grants_do_not_repeat),
        cmocka_unit_test(a_mark_below_the_floor_is_not_told_at_a_release),
        cmocka_unit_test(after_a_reboot_everything_is_released_without_last),
        cmocka_unit_test(after_a_reboot_what_was_being_renewed_is_released),
        cmocka_unit_test(another_pools_page_is_not_released_to_this_one),
        cmocka_unit_test(a_stop_returns_everything_with_its_exact_last),
        cmocka_unit_test(a_stop_that_keeps_leaves_the_page_as_it_is),
        cmocka_unit_test(a_stop_that_keeps_still_releases_the_retired),
        cmocka_unit_test(a_stop_waits_for_a_coordinator_only_so_long),
        cmocka_unit_test(a_stop_before_anything_was_found_finishes_at_once),
        cmocka_unit_test(nothing_is_claimed_or_renewed_after_a_stop),
        cmocka_unit_test(no_time_of_a_workerid_is_used_twice),
    };
    return cmocka_run_group_tests_name("lease/lease, life by life", tests, NULL, NULL);
}
