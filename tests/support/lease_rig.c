#include "support/lease_rig.h"

#include "lease/ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

int64_t rig_mono(const struct lease_rig *r)
{
    return r->clock->us_mono / 1000;
}

int64_t rig_wall(const struct lease_rig *r)
{
    return r->clock->us_wall / 1000;
}

/* ---- the loop's side --------------------------------------------------------------------------
 */

static void granted(struct lease_rig *r, const struct lease_mail *m)
{
    struct rig_grant *g = &r->grant[m->handle % LEASE_SLOTS];
    struct page_record rec;
    int64_t last;
    assert_false(g->held);
    assert_null(rig_of_worker(r, m->worker));
    assert_true(page_load(r->file.page, m->handle % LEASE_SLOTS, &rec));
    assert_int_equal(rec.state, PAGE_HELD);
    assert_int_equal(rec.worker, m->worker);
    assert_true(m->hi_ms <= rec.hi_ms);
    assert_ptr_equal(m->mark, &r->file.page->slot[m->handle % LEASE_SLOTS].mark);
    assert_true(mark_load(m->mark, &last) && last == m->last_ms && last >= rec.lo_ms - 1);
    *g = (struct rig_grant){true, m->handle, m->worker, m->last_ms, m->hi_ms, m->mark};
}

static void take_mail(struct lease_rig *r, const struct lease_mail *m)
{
    struct rig_grant *g = &r->grant[m->handle % LEASE_SLOTS];
    r->mails[m->kind]++;
    switch (m->kind) {
    case LEASE_MAIL_POOL:
        r->pool = r->lease.pool;
        break;
    case LEASE_MAIL_GRANT:
        granted(r, m);
        break;
    case LEASE_MAIL_EXTEND:
        assert_true(g->held && g->handle == m->handle && g->worker == m->worker);
        assert_true(m->hi_ms >= g->hi_ms);
        assert_true(rig_record(r, g).hi_ms >= m->hi_ms);
        g->hi_ms = m->hi_ms;
        break;
    case LEASE_MAIL_REVOKE:
        assert_true(g->held && g->handle == m->handle);
        g->held = false;
        break;
    case LEASE_MAIL_RETIRE:
        assert_true(g->held && g->handle == m->handle);
        rig_retire(r, g);
        break;
    }
}

static void take_mails(struct lease_rig *r)
{
    assert_true(r->lease.nmail <= LEASE_MAIL_MAX);
    for (unsigned i = 0; i < r->lease.nmail; i++)
        take_mail(r, &r->lease.mail[i]);
    r->lease.nmail = 0;
}

unsigned rig_held(const struct lease_rig *r)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        n += r->grant[i].held;
    return n;
}

struct rig_grant *rig_first(struct lease_rig *r)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (r->grant[i].held)
            return &r->grant[i];
    return NULL;
}

struct rig_grant *rig_of_worker(struct lease_rig *r, uint16_t worker)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (r->grant[i].held && r->grant[i].worker == worker)
            return &r->grant[i];
    return NULL;
}

void rig_use(struct rig_grant *g, int64_t ms)
{
    g->last_ms = ms;
    mark_store(g->mark, ms);
}

void rig_retire(struct lease_rig *r, struct rig_grant *g)
{
    g->held = false;
    lease_retire(&r->lease, g->handle, rig_mono(r));
}

struct page_record rig_record(const struct lease_rig *r, const struct rig_grant *g)
{
    struct page_record rec;
    assert_true(page_load(r->file.page, g->handle % LEASE_SLOTS, &rec));
    return rec;
}

unsigned rig_page_count(const struct lease_rig *r, enum page_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_record rec;
        assert_true(page_load(r->file.page, i, &rec));
        n += rec.state == state;
    }
    return n;
}

/* ---- running ----------------------------------------------------------------------------------
 */

static void check_renewal(const struct lease_rig *r, const struct lease_action *a)
{
    for (size_t i = 0; i < a->nitems; i++) {
        struct page_record rec;
        assert_true(page_load(r->file.page, a->slots[i], &rec));
        assert_int_equal(rec.state, PAGE_HELD);
        assert_true(rec.renewing);
        assert_int_equal(rec.worker, a->items[i].worker);
        assert_true(coord_token_equal(rec.cur, a->items[i].cur));
        assert_true(coord_token_equal(rec.nxt, a->items[i].nxt));
        assert_true(rec.hi_ms == a->items[i].hi_ms && rec.n == a->items[i].n);
    }
}

static void check_release(const struct lease_rig *r, const struct lease_action *a)
{
    struct page_record rec;
    int64_t last;
    if (a->slots[0] == LEASE_SLOTS) {
        assert_false(a->release.has_last);
        return;
    }
    assert_true(page_load(r->file.page, a->slots[0], &rec));
    assert_int_equal(rec.state, PAGE_LEAVING);
    assert_int_equal(rec.worker, a->release.worker);
    assert_true(a->release.has_last);
    if (mark_load(&r->file.page->slot[a->slots[0]].mark, &last))
        assert_true(a->release.last_ms == last || a->release.last_ms == rec.hi_ms);
}

void rig_next(struct lease_rig *r, struct lease_action *a)
{
    lease_next(&r->lease, rig_mono(r), a);
    if (a->kind == LEASE_RENEW)
        check_renewal(r, a);
    else if (a->kind == LEASE_RELEASE)
        check_release(r, a);
    else if (a->kind == LEASE_IDLE)
        assert_true(a->until > rig_mono(r));
}

enum lease_action_kind rig_step(struct lease_rig *r)
{
    struct lease_action a;
    struct lease_outcome o;
    rig_next(r, &a);
    if (a.kind == LEASE_IDLE || a.kind == LEASE_FINISHED)
        return a.kind;
    lease_ask(&r->coord->coord, r->lease.identity, rig_wall(r), &a, &o);
    lease_done(&r->lease, &a, &o, rig_mono(r), rig_wall(r));
    take_mails(r);
    return a.kind;
}

unsigned rig_settle(struct lease_rig *r)
{
    unsigned n = 0;
    for (;; n++) {
        enum lease_action_kind k = rig_step(r);
        if (k == LEASE_IDLE || k == LEASE_FINISHED)
            return n;
        assert_true(n < 1000); /* it never spins */
    }
}

void rig_pass(struct lease_rig *r, int64_t ms)
{
    int64_t end = rig_mono(r) + ms;
    for (;;) {
        struct lease_action a;
        (void)rig_settle(r);
        rig_next(r, &a);
        int64_t to = a.kind == LEASE_IDLE && a.until < end ? a.until : end;
        fake_clock_pass(r->clock, (to - rig_mono(r)) * 1000);
        if (to == end)
            break;
    }
    (void)rig_settle(r);
}

/* ---- lives ------------------------------------------------------------------------------------
 */

struct lease_config rig_config(void)
{
    return (struct lease_config){.active = 1,
                                 .spare = 1,
                                 .renew_ms = 20000,
                                 .rotation_jitter_ms = 30000,
                                 .stop_ms = 3000,
                                 .epoch_ms = RIG_EPOCH,
                                 .layout = layout_usual};
}

void rig_init(struct lease_rig *r, const struct lease_config *conf, struct fake_coord *coord,
              struct fake_clock *clock, uint64_t seed)
{
    struct err e;
    memset(r, 0, sizeof *r);
    r->conf = *conf;
    r->coord = coord;
    r->clock = clock;
    r->rng = seeded_of(seed);
    assert_int_equal(pagefile_memory(&r->file, false, &e), ERR_OK);
    lease_init(&r->lease, &r->conf, &r->file, &r->rng.rng, rig_mono(r));
    take_mails(r);
}

static void start_again(struct lease_rig *r, const struct page_home *home)
{
    r->file.found = true;
    r->file.verdict = page_judge(r->file.page, home, &r->file.why);
    assert_true(r->file.verdict != PAGE_BROKEN);
    if (r->file.verdict == PAGE_FOREIGN) {
        r->file.old = *r->file.page;
        page_format(r->file.page, home, 1);
        page_replace(r->file.page, &r->file.old);
    }
    memset(r->grant, 0, sizeof r->grant);
    memset(r->mails, 0, sizeof r->mails);
    lease_init(&r->lease, &r->conf, &r->file, &r->rng.rng, rig_mono(r));
    take_mails(r);
}

void rig_restart(struct lease_rig *r)
{
    struct page_home home = r->file.page->head.home;
    start_again(r, &home);
}

void rig_reboot(struct lease_rig *r)
{
    struct page_home home = r->file.page->head.home;
    home.boot[0]++;
    start_again(r, &home);
}

void rig_clear(struct lease_rig *r)
{
    pagefile_close(&r->file);
}
