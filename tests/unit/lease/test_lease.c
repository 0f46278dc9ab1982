/* The lease machine in one life: each arrow of its drawing, and each answer of a coordinator. */
#include "lease_bench.h"

/* ---- claiming ---------------------------------------------------------------------------------
 */

static void a_first_start_describes_and_claims(void **state)
{
    (void)state;
    begin();
    assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
    assert_int_equal(b.rig.mails[LEASE_MAIL_POOL], 1);
    assert_true(b.rig.pool.epoch_ms == RIG_EPOCH);
    assert_string_equal(b.rig.file.page->head.identity, RIG_IDENTITY);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    assert_int_equal(rig_held(&b.rig), 1);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(lease_held(&b.rig.lease), 2);
    assert_int_equal(rig_step(&b.rig), LEASE_IDLE);
    struct rig_grant *g = rig_first(&b.rig);
    assert_true(g->hi_ms == RIG_T0 + coord_params_default.first_horizon_ms);
    assert_true(g->last_ms == 0); /* never used before: the floor is 1 */
    end();
}

static void as_many_are_claimed_as_are_wanted(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.active = 16;
    conf.spare = 4;
    begin_with(conf, FAKE_COORD_WORKERS - 1);
    rig_pass(&b.rig, 3600000);
    assert_int_equal(rig_held(&b.rig), 20);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 20);
    end();
}

static void no_more_are_claimed_than_the_pool_has(void **state)
{
    (void)state;
    begin_with(rig_config(), 0);
    (void)rig_settle(&b.rig);
    assert_int_equal(rig_held(&b.rig), 1);
    assert_int_equal(count(FAKE_CLAIM), 1);
    rig_pass(&b.rig, 60000);
    assert_int_equal(count(FAKE_CLAIM), 1);
    end();
}

static void claims_that_come_to_nothing_are_repeated_later(void **state)
{
    (void)state;
    static const struct {
        enum coord_status status;
        int64_t soonest, latest; /* ms until the next claim, with jitter */
    } cases[] = {
        {COORD_WAIT, 560, 860},   {COORD_EXHAUSTED, 800, 1200}, {COORD_SKEW, 800, 1200},
        {COORD_DOWN, 80, 120},    {COORD_CLOSED, 80, 120},      {COORD_BADCLOCK, 800, 1200},
        {COORD_REFUSED, 80, 120},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        upset(FAKE_CLAIM, cases[i].status);
        (void)rig_settle(&b.rig);
        assert_int_equal(count(FAKE_CLAIM), 1);
        assert_int_equal(rig_held(&b.rig), 0);
        rig_pass(&b.rig, cases[i].soonest - 1);
        assert_int_equal(count(FAKE_CLAIM), 1);
        rig_pass(&b.rig, cases[i].latest - cases[i].soonest + 1);
        assert_int_equal(rig_held(&b.rig), 2);
        end();
    }
}

/* Who is refused a spare asks less often than who has none that is good for the clock. */
static void an_urgent_claim_is_repeated_within_a_second_or_so(void **state)
{
    (void)state;
    static const enum coord_status full[] = {COORD_EXHAUSTED, COORD_SKEW, COORD_BADCLOCK};
    for (unsigned i = 0; i < 2 * sizeof full / sizeof *full; i++) {
        bool urged = i % 2;
        begin();
        (void)rig_settle(&b.rig);
        rig_retire(&b.rig, rig_first(&b.rig));
        if (urged)
            lease_urge_claim(&b.rig.lease, rig_mono(&b.rig));
        for (unsigned k = 0; k < 3; k++)
            upset(FAKE_CLAIM, full[i / 2]);
        rig_pass(&b.rig, 4000);
        assert_int_equal(rig_held(&b.rig), urged ? 2 : 1);
        end();
    }
}

/* Why is told by what the pool is now: so it is described, and asked again at once, but once. */
static void who_waits_of_a_pool_reopened_just_now_asks_why_at_once(void **state)
{
    (void)state;
    begin();
    assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
    b.coord.reopened++;
    upset(FAKE_CLAIM, COORD_WAIT);
    upset(FAKE_CLAIM, COORD_WAIT);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    assert_int_equal(rig_step(&b.rig), LEASE_IDLE);
    end();
}

/* Reopened while its clock was ahead; an operator's word has that time taken back. */
static void who_waits_of_a_pool_whose_clock_was_ahead_asks_why_at_once(void **state)
{
    (void)state;
    begin();
    b.coord.pool.topen_ms = rig_wall(&b.rig) + 3600000;
    upset(FAKE_CLAIM, COORD_BADCLOCK);
    upset(FAKE_CLAIM, COORD_WAIT);
    upset(FAKE_CLAIM, COORD_WAIT);
    rig_pass(&b.rig, 10);
    assert_int_equal(count(FAKE_DESCRIBE), 1);
    b.coord.pool.topen_ms = rig_wall(&b.rig);
    rig_pass(&b.rig, 1300);
    assert_int_equal(count(FAKE_CLAIM), 3);
    assert_int_equal(count(FAKE_DESCRIBE), 2);
    assert_int_equal(b.rig.lease.pool.topen_ms, b.coord.pool.topen_ms);
    end();
}

static void a_coordinator_that_stays_down_is_asked_less_and_less(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 60; i++)
        upset(FAKE_DESCRIBE, COORD_DOWN);
    rig_pass(&b.rig, 60000);
    assert_in_range(count(FAKE_DESCRIBE), 14, 22); /* 0.1 s doubling up to 5 s */
    b.coord.nfaults = 0;
    rig_pass(&b.rig, 6000);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

/* A rewound coordinator may hand out what is held here already. */
static void a_workerid_that_is_held_already_is_not_taken_again(void **state)
{
    (void)state;
    begin_with(rig_config(), 1);
    assert_int_equal(rig_step(&b.rig), LEASE_DESCRIBE);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    struct rig_grant *g = rig_first(&b.rig);
    struct page_record before = rig_record(&b.rig, g);
    b.coord.worker[g->worker].held = false;
    b.coord.worker[g->worker].hwm_ms = 0;
    b.coord.next = g->worker;
    (void)rig_settle(&b.rig);
    assert_int_equal(count(FAKE_CLAIM), 2);
    assert_int_equal(rig_held(&b.rig), 1);
    struct page_record after = rig_record(&b.rig, g);
    assert_true(after.hi_ms == before.hi_ms && coord_token_equal(after.cur, before.cur));
    rig_pass(&b.rig, 7000); /* the renewal finds another token: neither copy grows */
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 1);
    end();
}

/* ---- renewing ---------------------------------------------------------------------------------
 */

static void young_tenures_are_renewed_every_5_s_and_mature_ones_every_20_s(void **state)
{
    (void)state;
    begin();
    rig_pass(&b.rig, 100000);
    assert_in_range(count(FAKE_RENEW), 16, 25);
    rig_pass(&b.rig, 60000); /* past D0 = 120 s */
    unsigned before = count(FAKE_RENEW);
    rig_pass(&b.rig, 400000);
    assert_in_range(count(FAKE_RENEW) - before, 16, 25);
    struct rig_grant *g = rig_first(&b.rig);
    assert_true(g->hi_ms > rig_wall(&b.rig) + coord_params_default.horizon_ms - 25000);
    end();
}

static void a_renewal_moves_the_ceiling_and_the_token(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    struct rig_grant *g = rig_first(&b.rig);
    struct page_record before = rig_record(&b.rig, g);
    assert_false(before.renewing);
    rig_pass(&b.rig, 6500);
    struct page_record after = rig_record(&b.rig, g);
    const struct fake_coord_call *call = fake_coord_latest(&b.coord, FAKE_RENEW);
    assert_int_equal(count(FAKE_RENEW), 1);
    assert_int_equal(call->nitems, 2); /* one call for all */
    assert_false(after.renewing);
    assert_true(after.hi_ms > before.hi_ms);
    assert_true(g->hi_ms == after.hi_ms);
    assert_false(coord_token_equal(after.cur, before.cur));
    assert_true(coord_token_equal(after.cur, b.coord.worker[g->worker].token));
    assert_true(after.n == before.n + 1 && after.n == b.coord.worker[g->worker].n);
    assert_int_equal(b.rig.mails[LEASE_MAIL_EXTEND], 2);
    end();
}

static void repeat_a_renewal(bool takes_effect)
{
    begin();
    (void)rig_settle(&b.rig);
    for (int i = 0; i < 5; i++)
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, takes_effect && i == 2);
    rig_pass(&b.rig, 6500);
    rig_pass(&b.rig, 12000);
    assert_true(count(FAKE_RENEW) >= 6);
    const struct fake_coord_call *first = NULL;
    unsigned same = 0;
    for (unsigned i = 0; i < b.coord.ncalls && same < 6; i++) {
        const struct fake_coord_call *c = &b.coord.call[i];
        if (c->op != FAKE_RENEW)
            continue;
        first = first ? first : c;
        assert_true(coord_token_equal(c->items[0].cur, first->items[0].cur));
        assert_true(coord_token_equal(c->items[0].nxt, first->items[0].nxt));
        same++;
    }
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 0);
    struct rig_grant *g = rig_first(&b.rig);
    assert_true(coord_token_equal(rig_record(&b.rig, g).cur, b.coord.worker[g->worker].token));
    end();
}

static void a_renewal_without_an_answer_is_repeated_with_the_same_tokens(void **state)
{
    (void)state;
    repeat_a_renewal(false);
    repeat_a_renewal(true); /* only the answer was lost: the repetition is answered "again" */
}

static void a_lost_workerid_is_dropped_and_another_claimed(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    struct rig_grant *g = rig_first(&b.rig);
    uint16_t lost = g->worker;
    fake_coord_steal(&b.coord, lost);
    rig_pass(&b.rig, 6500);
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], 1);
    assert_null(rig_of_worker(&b.rig, lost));
    rig_pass(&b.rig, 1);
    assert_int_equal(rig_held(&b.rig), 2);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 2);
    assert_int_equal(count(FAKE_RELEASE), 0); /* it is not ours to give back */
    end();
}

static void an_urgent_renewal_comes_at_most_once_a_second(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    rig_pass(&b.rig, 2000);
    lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
    (void)rig_settle(&b.rig);
    assert_int_equal(count(FAKE_RENEW), 1);
    for (int i = 0; i < 99; i++) {
        lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
        rig_pass(&b.rig, 10);
    }
    assert_int_equal(count(FAKE_RENEW), 1);
    lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
    rig_pass(&b.rig, 20);
    assert_int_equal(count(FAKE_RENEW), 2);
    end();
}

/* ---- giving back ------------------------------------------------------------------------------
 */

static void the_retired_is_released_with_its_exact_last(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    struct rig_grant *g = rig_first(&b.rig);
    uint16_t worker = g->worker;
    rig_use(g, RIG_T0 + 77);
    rig_retire(&b.rig, g);
    assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 1);
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    const struct fake_coord_call *c = fake_coord_latest(&b.coord, FAKE_RELEASE);
    assert_int_equal(c->status, COORD_OK);
    assert_int_equal(c->release.worker, worker);
    assert_true(c->release.has_last && c->release.last_ms == RIG_T0 + 77);
    assert_true(b.coord.worker[worker].hwm_ms == RIG_T0 + 77);
    assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 0);
    uint32_t handle = g->handle;
    lease_retire(&b.rig.lease, handle, rig_mono(&b.rig)); /* again: nobody is held by it */
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 1);
    rig_pass(&b.rig, 60000);
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 2); /* in its slot another one */
    lease_retire(&b.rig.lease, handle, rig_mono(&b.rig));
    assert_int_equal(rig_page_count(&b.rig, PAGE_HELD), 2);
    end();
}

/* static:N, or a pool of one that comes back from an old copy: only the page knows. */
static void a_coordinator_that_forgets_does_not_lower_the_last_time(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    for (unsigned life = 0; life < 3; life++) {
        begin_with(conf, 0);
        (void)rig_settle(&b.rig);
        rig_use(rig_first(&b.rig), RIG_T0 + 5000);
        rig_retire(&b.rig, rig_first(&b.rig));
        assert_int_equal(rig_step(&b.rig), LEASE_CLAIM); /* in vain: it is the only one */
        assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
        b.coord.worker[0].hwm_ms = RIG_T0 - 1;
        if (life == 1)
            rig_restart(&b.rig);
        if (life == 2)
            rig_reboot(&b.rig);
        rig_pass(&b.rig, 31000);
        assert_int_equal(rig_held(&b.rig), 1);
        assert_true(rig_first(&b.rig)->last_ms >= RIG_T0 + 5000);
        end();
    }
}

static void a_new_spare_is_claimed_within_30_s_of_a_rotation(void **state)
{
    (void)state;
    int64_t least = INT64_MAX, most = 0;
    for (unsigned seed = 1; seed <= 60; seed++) {
        begin();
        b.rig.rng = seeded_of(seed);
        (void)rig_settle(&b.rig);
        int64_t start = rig_mono(&b.rig);
        rig_retire(&b.rig, rig_first(&b.rig));
        while (rig_held(&b.rig) < 2)
            rig_pass(&b.rig, 50);
        int64_t took = rig_mono(&b.rig) - start;
        assert_true(took <= 30050);
        least = took < least ? took : least;
        most = took > most ? took : most;
        end();
    }
    assert_true(least < 5000 && most > 25000);
}

static void the_last_active_one_is_replaced_at_once(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.spare = 0;
    begin_with(conf, FAKE_COORD_WORKERS - 1);
    (void)rig_settle(&b.rig);
    rig_retire(&b.rig, rig_first(&b.rig));
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM); /* serving first … */
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_held(&b.rig), 1);
    end();
}

static void what_is_leaving_goes_before_a_spare_comes(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.rotation_jitter_ms = 0;
    begin_with(conf, FAKE_COORD_WORKERS - 1);
    (void)rig_settle(&b.rig);
    rig_retire(&b.rig, rig_first(&b.rig));
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(rig_step(&b.rig), LEASE_CLAIM);
    end();
}

static void a_release_is_repeated_until_it_is_answered(void **state)
{
    (void)state;
    static const enum coord_status answers[] = {COORD_OK, COORD_LOST, COORD_NOPOOL,
                                                COORD_WRONGPOOL};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        begin();
        (void)rig_settle(&b.rig);
        struct rig_grant *g = rig_first(&b.rig);
        rig_use(g, RIG_T0 + 5);
        rig_retire(&b.rig, g);
        upset(FAKE_RELEASE, COORD_DOWN);
        upset(FAKE_RELEASE, COORD_BADCLOCK);
        upset(FAKE_RELEASE, COORD_REFUSED);
        upset(FAKE_RELEASE, answers[i]);
        rig_pass(&b.rig, 100);
        assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 1);
        rig_pass(&b.rig, 4900);
        assert_int_equal(count(FAKE_RELEASE), 4);
        assert_true(fake_coord_latest(&b.coord, FAKE_RELEASE)->release.last_ms == RIG_T0 + 5);
        assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 0);
        end();
    }
}

/* Which of its tokens is the right one is not known: both are named. */
static void a_release_after_an_unanswered_renewal_names_both_tokens(void **state)
{
    (void)state;
    for (int effect = 0; effect < 2; effect++) {
        begin();
        (void)rig_settle(&b.rig);
        struct rig_grant *g = rig_first(&b.rig);
        uint16_t worker = g->worker;
        struct coord_token cur = rig_record(&b.rig, g).cur;
        fake_coord_fail(&b.coord, FAKE_RENEW, COORD_DOWN, effect != 0);
        while (count(FAKE_RENEW) == 0)
            rig_pass(&b.rig, 50);
        rig_retire(&b.rig, g);
        while (count(FAKE_RELEASE) == 0)
            rig_pass(&b.rig, 50);
        const struct fake_coord_call *c = fake_coord_latest(&b.coord, FAKE_RELEASE);
        assert_true(coord_token_equal(c->release.cur, cur));
        assert_false(coord_token_equal(c->release.nxt, cur));
        assert_int_equal(c->status, COORD_OK);
        assert_false(b.coord.worker[worker].held);
        end();
    }
}

/* Whoever has forgotten the holder hears it in time. */
static void between_renewals_and_tries_is_a_quarter_of_settle(void **state)
{
    (void)state;
    begin();
    b.coord.pool.later.settle_ms = 12000;
    (void)rig_settle(&b.rig);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(b.rig.lease.renew_due - rig_mono(&b.rig) <= 3000);
        rig_pass(&b.rig, 500);
    }
    assert_true(fake_coord_latest(&b.coord, FAKE_RENEW)->by.every_ms <= 3000); /* and says so */
    b.coord.pool.later.settle_ms = 0; /* a longer one is not gone by: older data may come back */
    for (unsigned i = 0; i < 30; i++)
        upset(FAKE_RENEW, COORD_DOWN);
    for (unsigned i = 0; i < 200; i++) {
        rig_pass(&b.rig, 500);
        assert_true(b.rig.lease.call_due - rig_mono(&b.rig) <= 3000);
        assert_true(b.rig.lease.renew_due - rig_mono(&b.rig) <= 3000);
    }
    end();
}

static void who_starts_later_keeps_to_a_shorter_settle_of_before(void **state)
{
    (void)state;
    begin();
    b.coord.pool.later.least_ms = 12000;
    (void)rig_settle(&b.rig);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(b.rig.lease.renew_due - rig_mono(&b.rig) <= 3000);
        rig_pass(&b.rig, 500);
    }
    end();
}

/* Told by a description that comes before it, which somebody who waits asks for. */
static void a_renewal_is_brought_forward_when_a_shorter_settle_is_learnt(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    b.coord.pool.later.settle_ms = 4000;
    b.rig.lease.described = false;
    b.rig.lease.renew_due = rig_mono(&b.rig) + 15000;
    (void)rig_settle(&b.rig);
    assert_true(b.rig.lease.described);
    assert_true(b.rig.lease.renew_due - rig_mono(&b.rig) <= 1000);
    end();
}

static void a_renewal_tells_how_far_ahead_its_pool_grants(void **state)
{
    (void)state;
    struct lease_action a;
    begin();
    (void)rig_settle(&b.rig);
    b.coord.pool.params.horizon_ms /= 2; /* made again; the holder's are of the one before */
    fake_clock_pass(&b.clock, 7000000);
    rig_next(&b.rig, &a);
    assert_int_equal(a.kind, LEASE_RENEW);
    assert_true(a.by.ahead_ms ==
                coord_params_default.horizon_ms + 2 * coord_params_default.max_skew_ms);
    assert_true(a.by.every_ms == rig_config().renew_ms * 6 / 5);
    end();
}

static void a_pool_with_other_workerids_is_told(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    rig_pass(&b.rig, 10000);
    assert_false(b.rig.lease.range.code);
    b.coord.pool.params.worker_to--;
    rig_pass(&b.rig, 10000);
    assert_true(b.rig.lease.range.code);
    assert_non_null(strstr(b.rig.lease.range.text, "as the pool had, found 0 to"));
    end();
}

static void the_answer_of_a_renewal_does_not_revive_the_retired(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    struct lease_action a;
    struct lease_outcome o = {.status = COORD_OK};
    fake_clock_pass(&b.clock, 7000000);
    rig_next(&b.rig, &a);
    assert_int_equal(a.kind, LEASE_RENEW);
    struct rig_grant *g = rig_first(&b.rig);
    rig_retire(&b.rig, g);
    assert_int_equal(
        coord_renew(&b.coord.coord, RIG_IDENTITY, &a.by, a.items, a.nitems, &o.terms, &o.reply),
        COORD_OK);
    lease_done(&b.rig.lease, &a, &o, rig_mono(&b.rig), rig_wall(&b.rig));
    assert_int_equal(b.rig.lease.nmail, 1); /* EXTEND of the other one */
    assert_int_equal(rig_page_count(&b.rig, PAGE_LEAVING), 1);
    b.rig.lease.nmail = 0;
    assert_int_equal(rig_step(&b.rig), LEASE_RELEASE);
    assert_int_equal(fake_coord_latest(&b.coord, FAKE_RELEASE)->status, COORD_OK);
    end();
}

static void a_scribbled_mark_gives_back_nothing_of_the_range(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    struct rig_grant *g = rig_first(&b.rig);
    int64_t hi = g->hi_ms;
    *g->mark = 12345;
    rig_retire(&b.rig, g);
    (void)rig_settle(&b.rig);
    assert_true(fake_coord_latest(&b.coord, FAKE_RELEASE)->release.last_ms == hi);
    end();
}

static void an_urgent_claim_asks_for_one_more(void **state)
{
    (void)state;
    begin();
    (void)rig_settle(&b.rig);
    for (int i = 0; i < 5; i++)
        lease_urge_claim(&b.rig.lease, rig_mono(&b.rig));
    (void)rig_settle(&b.rig);
    assert_int_equal(rig_held(&b.rig), 3);
    rig_pass(&b.rig, 10000);
    assert_int_equal(rig_held(&b.rig), 3); /* and no more than one */
    rig_retire(&b.rig, rig_first(&b.rig));
    rig_pass(&b.rig, 60000);
    assert_int_equal(rig_held(&b.rig), 2);
    end();
}

/* ---- mails ------------------------------------------------------------------------------------
 */

static void a_full_page_never_posts_more_than_there_is_room_for(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.active = 20;
    conf.spare = 4; /* more than the config allows */
    begin_with(conf, FAKE_COORD_WORKERS - 1);
    rig_pass(&b.rig, 1000);
    assert_int_equal(rig_held(&b.rig), LEASE_SLOTS);
    lease_urge_claim(&b.rig.lease, rig_mono(&b.rig));
    rig_pass(&b.rig, 1000); /* no slot is free: nothing is claimed, nothing spins */
    assert_int_equal(rig_held(&b.rig), LEASE_SLOTS);
    rig_restart(&b.rig);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_int_equal(b.rig.mails[LEASE_MAIL_GRANT], LEASE_SLOTS);
    rig_pass(&b.rig, 1000);
    lease_urge_renewal(&b.rig.lease, rig_mono(&b.rig));
    for (uint16_t w = 0; w < FAKE_COORD_WORKERS; w++)
        fake_coord_steal(&b.coord, w);
    assert_int_equal(rig_step(&b.rig), LEASE_RENEW);
    assert_int_equal(b.rig.mails[LEASE_MAIL_REVOKE], LEASE_SLOTS);
    assert_int_equal(rig_held(&b.rig), 0);
    end();
}

/* Who knows that nobody issues any more removes all there is of a pool, and the next one is fresh.
 */
static void a_unit_that_is_begun_is_over_before_there_is_a_fresh_pool(void **state)
{
    (void)state;
    struct lease_config conf = rig_config();
    conf.auto_init = conf.layout_pinned = true;
    assert_int_equal(layout_parse(SPAN("baidu"), &conf.layout, NULL), ERR_OK);
    for (int64_t begun = 0; begun < 1000; begun += 333) {
        begin_with(conf, 5);
        b.coord.missing = true;
        fake_clock_step(&b.clock, begun);
        rig_pass(&b.rig, 1000 - begun - 1);
        assert_int_equal(count(FAKE_INIT), 0);
        rig_pass(&b.rig, 1);
        assert_int_equal(count(FAKE_INIT), 1);
        rig_pass(&b.rig, 1000);
        assert_int_equal(rig_held(&b.rig), 2);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_start_describes_and_claims),
        cmocka_unit_test(a_unit_that_is_begun_is_over_before_there_is_a_fresh_pool),
        cmocka_unit_test(as_many_are_claimed_as_are_wanted),
        cmocka_unit_test(no_more_are_claimed_than_the_pool_has),
        cmocka_unit_test(claims_that_come_to_nothing_are_repeated_later),
        cmocka_unit_test(an_urgent_claim_is_repeated_within_a_second_or_so),
        cmocka_unit_test(who_waits_of_a_pool_reopened_just_now_asks_why_at_once),
        cmocka_unit_test(who_waits_of_a_pool_whose_clock_was_ahead_asks_why_at_once),
        cmocka_unit_test(a_coordinator_that_stays_down_is_asked_less_and_less),
        cmocka_unit_test(a_workerid_that_is_held_already_is_not_taken_again),
        cmocka_unit_test(young_tenures_are_renewed_every_5_s_and_mature_ones_every_20_s),
        cmocka_unit_test(a_renewal_moves_the_ceiling_and_the_token),
        cmocka_unit_test(a_renewal_without_an_answer_is_repeated_with_the_same_tokens),
        cmocka_unit_test(a_lost_workerid_is_dropped_and_another_claimed),
        cmocka_unit_test(an_urgent_renewal_comes_at_most_once_a_second),
        cmocka_unit_test(the_retired_is_released_with_its_exact_last),
        cmocka_unit_test(a_coordinator_that_forgets_does_not_lower_the_last_time),
        cmocka_unit_test(a_new_spare_is_claimed_within_30_s_of_a_rotation),
        cmocka_unit_test(the_last_active_one_is_replaced_at_once),
        cmocka_unit_test(what_is_leaving_goes_before_a_spare_comes),
        cmocka_unit_test(a_release_is_repeated_until_it_is_answered),
        cmocka_unit_test(a_release_after_an_unanswered_renewal_names_both_tokens),
        cmocka_unit_test(the_answer_of_a_renewal_does_not_revive_the_retired),
        cmocka_unit_test(between_renewals_and_tries_is_a_quarter_of_settle),
        cmocka_unit_test(who_starts_later_keeps_to_a_shorter_settle_of_before),
        cmocka_unit_test(a_renewal_is_brought_forward_when_a_shorter_settle_is_learnt),
        cmocka_unit_test(a_renewal_tells_how_far_ahead_its_pool_grants),
        cmocka_unit_test(a_pool_with_other_workerids_is_told),
        cmocka_unit_test(a_scribbled_mark_gives_back_nothing_of_the_range),
        cmocka_unit_test(an_urgent_claim_asks_for_one_more),
        cmocka_unit_test(a_full_page_never_posts_more_than_there_is_room_for),
    };
    return cmocka_run_group_tests_name("lease/lease", tests, NULL, NULL);
}
