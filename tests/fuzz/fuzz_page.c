/*
 * Any bytes as a state page, and any life on top of it: the page is judged, taken over by a lease
 * machine, issued from, and left behind by kills, while the coordinator answers what the input
 * says, within the bounds that coord/answer.h keeps.
 *
 *   | flags | workerIds wanted | the page, as page_make.h says | events ... |
 *
 * Checked
 *   - The verdict and each record are those of page_oracle.h: what does not check is never HELD.
 *   - Nothing is issued but inside a range that the page or the coordinator gave, above all that
 *     was issued from it before, and never from a slot that the page says is LEAVING.
 *   - The page knows first: it equals the machine at every call, and is whole at every kill.
 */
#include "page_make.h"

#include "ids/snowflake.h"
#include "lease/lease.h"
#include "support/seeded.h"

#define START_MS   MAKE_MS
#define CLOCK_MAX  (INT64_C(1) << 42) /* ms: a wall clock is kept within 0..this */
#define HOUR_MS    (INT64_C(3600) * 1000)
#define AHEAD_MAX  (25 * HOUR_MS) /* of an answer's ceiling: see coord/answer.h */
#define EVENTS_MAX 400
#define IDENTITY   MAKE_IDENTITY
#define OTHER      "99999999-2222-4333-8444-555555555555|1767225600000|38.15.10"
#define EPOCH2     "99999999-2222-4333-8444-555555555555|1700000000000|38.15.10"

enum {
    PINNED = 32, /* bits of the first byte beside page_make.h's: an epoch is configured, */
    AUTO_INIT = 64
};

/* What a slot may be issued from, by what the page said at start and the coordinator since. */
struct tenure {
    bool live;
    uint16_t worker;
    bool found;        /* in the page, not claimed in this life */
    int64_t floor, hi; /* above the one, up to the other */
    uint64_t latest;   /* ID, 0: none yet in this life */
};

struct world {
    struct feed in;
    struct page page;
    struct page_home home;
    struct pagefile file;
    struct lease_config conf;
    struct lease lease;
    struct snowflake gen;
    bool started;
    struct seeded rng;
    int64_t wall, mono;
    struct tenure tenure[LEASE_SLOTS];
    int64_t foreign_floor[COORD_WORKERS]; /* of an earlier boot's marks; 0: none */
};

static struct world w;

enum {
    OWN, /* and on, as enum page_verdict */
    FOREIGN,
    BROKEN,
    ISSUED,
    ISSUED_AGAIN, /* from a range that the page held */
    RENEWED,
    RELEASED,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected a page that is taken over, found none",
        "expected a page of another boot, found none",
        "expected a broken page, found none",
        "expected IDs, found none",
        "expected IDs after a page was taken over, found none",
        "expected a renewal that is OK, found none",
        "expected a release, found none",
    };
    return feed_unreached(names, PLACES);
}

/* ---- the loop's side -------------------------------------------------------------------------
 */

static void retire(uint32_t handle)
{
    int64_t last;
    (void)snowflake_revoke(&w.gen, handle, &last);
    lease_retire(&w.lease, handle, w.mono);
    unsigned slot = handle % LEASE_SLOTS;
    if (w.lease.slot[slot].handle == handle)
        w.tenure[slot].live = false;
}

static void take_grant(const struct lease_mail *m)
{
    unsigned slot = m->handle % LEASE_SLOTS;
    struct tenure *t = &w.tenure[slot];
    struct page_record r;
    int64_t mark;
    feed_must(page_load(&w.page, slot, &r) && r.state == PAGE_HELD && r.worker == m->worker,
              "a grant is HELD in the page before it is mailed");
    feed_must(m->mark == &w.page.slot[slot].mark && mark_load(m->mark, &mark) && mark == m->last_ms,
              "a grant's last time is its mark");
    feed_must(t->worker == m->worker && m->last_ms >= t->floor && m->hi_ms == t->hi,
              "a grant is the range that was given");
    feed_must(m->last_ms >= w.foreign_floor[m->worker], "a grant is above an earlier boot's mark");
    t->live = snowflake_grant(&w.gen, m->handle, m->worker, m->last_ms, m->hi_ms, m->mark);
    t->floor = m->last_ms;
    if (!t->live)
        lease_retire(&w.lease, m->handle, w.mono);
}

static void take_mail(void)
{
    struct lease *l = &w.lease;
    for (unsigned i = 0; i < l->nmail; i++) {
        const struct lease_mail *m = &l->mail[i];
        struct tenure *t = &w.tenure[m->handle % LEASE_SLOTS];
        int64_t last;
        if (m->kind == LEASE_MAIL_POOL && (!w.started || w.gen.nmembers == 0)) {
            snowflake_init(&w.gen, l->pool.epoch_ms, &l->pool.layout, 15, l->conf.active);
            w.started = true;
        } else if (m->kind == LEASE_MAIL_GRANT) {
            take_grant(m);
        } else if (m->kind == LEASE_MAIL_EXTEND) {
            feed_must(m->hi_ms <= t->hi, "a ceiling is raised to what was given at most");
            snowflake_extend(&w.gen, m->handle, m->hi_ms);
        } else if (m->kind == LEASE_MAIL_REVOKE) {
            t->live = false;
            (void)snowflake_revoke(&w.gen, m->handle, &last);
        }
    }
    l->nmail = 0;
}

static struct tenure *tenure_of(uint32_t worker)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (w.tenure[i].live && w.tenure[i].worker == worker)
            return &w.tenure[i];
    return NULL;
}

static void issued(uint64_t first, uint64_t last)
{
    struct layout_parts a, b;
    feed_must(layout_decompose(&layout_usual, first, &a) &&
                  layout_decompose(&layout_usual, last, &b) && a.time == b.time &&
                  a.worker == b.worker,
              "IDs issued at once are of one millisecond and workerId");
    struct tenure *t = tenure_of(a.worker);
    feed_must(t, "a workerId that is issued from is held");
    int64_t ms = w.gen.epoch_ms + a.time, mark;
    unsigned slot = (unsigned)(t - w.tenure);
    struct page_record r;
    feed_must(ms > t->floor && ms <= t->hi, "an ID lies inside the range that was given");
    feed_must(first > t->latest, "IDs of a workerId rise");
    feed_must(page_load(&w.page, slot, &r) && r.state == PAGE_HELD && r.worker == a.worker,
              "a slot that is issued from is HELD");
    feed_must(mark_load(&w.page.slot[slot].mark, &mark) && mark == ms,
              "the mark is stored before an ID is given out");
    t->latest = last;
    feed_reached(t->found ? ISSUED_AGAIN : ISSUED);
}

/* As serve and bridge do it. */
static void issue(uint32_t n)
{
    uint64_t first;
    int64_t until;
    if (!w.started)
        return;
    if (snowflake_next(&w.gen, w.wall, n, &first, &until) == SNOWFLAKE_OK)
        issued(first, first + n - 1);
    for (unsigned i = 0; i < w.gen.nretired; i++)
        retire(w.gen.retired[i].handle);
    w.gen.nretired = 0;
    if (w.gen.wants_renewal)
        lease_urge_renewal(&w.lease, w.mono);
    if (w.gen.wants_worker)
        lease_urge_claim(&w.lease, w.mono);
    w.gen.wants_renewal = w.gen.wants_worker = false;
}

/* ---- the coordinator's side ------------------------------------------------------------------
 */

/* A ceiling as far ahead of T as the driver lets pass, or -1. */
static int64_t ceiling(int64_t now, int64_t least)
{
    int64_t d = feed_delta(&w.in) % AHEAD_MAX;
    int64_t hi = now + (d < 0 ? -d : d) * 100;
    if (hi < least)
        hi = least;
    return hi - now <= AHEAD_MAX ? hi : -1;
}

static void answer_claim_ok(const struct lease_action *a, struct lease_outcome *o)
{
    struct coord_grant *g = &o->grant;
    int64_t d = feed_delta(&w.in);
    g->worker = feed_u16(&w.in) % COORD_WORKERS;
    g->lo_ms = d < 0 && d > -w.wall ? w.wall + d + 1 : w.wall;
    g->hi_ms = ceiling(o->reply.now_ms, g->lo_ms);
    g->n = 1 + feed_u8(&w.in);
    g->t0_ms = o->reply.now_ms;
    if (g->lo_ms < 1 || g->hi_ms < 0) {
        o->status = COORD_REFUSED;
        return;
    }
    struct tenure *t = &w.tenure[a->slots[0]];
    bool held = false;
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        held |= w.lease.slot[i].rec.state != PAGE_FREE && w.lease.slot[i].rec.worker == g->worker;
    if (!held)
        *t = (struct tenure){.worker = g->worker, .floor = g->lo_ms - 1, .hi = g->hi_ms};
}

static void answer_renew_ok(struct lease_action *a, struct lease_outcome *o)
{
    int64_t hi[LEASE_SLOTS];
    for (size_t i = 0; i < a->nitems; i++) {
        a->items[i].how = (enum coord_how)(feed_u8(&w.in) % 4);
        hi[i] = ceiling(o->reply.now_ms, a->items[i].hi_ms);
        if (a->items[i].how != COORD_HOW_LOST && hi[i] < 0) {
            o->status = COORD_REFUSED;
            return;
        }
    }
    for (size_t i = 0; i < a->nitems; i++) {
        struct tenure *t = &w.tenure[a->slots[i]];
        if (a->items[i].how == COORD_HOW_LOST)
            continue;
        a->items[i].hi_ms = hi[i];
        a->items[i].n++;
        a->items[i].t0_ms = START_MS;
        if (hi[i] > t->hi)
            t->hi = hi[i];
    }
}

static void answer_pool(struct lease_outcome *o)
{
    static const char *const identities[] = {IDENTITY, IDENTITY, OTHER, EPOCH2};
    struct err e;
    const char *identity = identities[feed_u8(&w.in) % 4];
    memcpy(o->pool.identity, identity, strlen(identity) + 1);
    o->pool.params = coord_params_default;
    feed_must(coord_identity_read(identity, &o->pool.epoch_ms, &o->pool.layout, &e) == ERR_OK,
              "an identity");
}

static void answer(struct lease_action *a)
{
    struct lease_outcome o = {.status = (enum coord_status)(feed_u8(&w.in) % 16)};
    if (o.status > COORD_DOWN)
        o.status = COORD_OK;
    o.reply.now_ms = w.wall + (int8_t)feed_u8(&w.in);
    o.reply.now_ms = o.reply.now_ms < 0 ? 0 : o.reply.now_ms;
    o.reply.era = 1 + (uint64_t)(o.reply.now_ms & 3);
    o.reply.wait_ms = o.status == COORD_WAIT ? feed_u16(&w.in) : 0;
    if (o.status == COORD_OK && a->kind == LEASE_CLAIM)
        answer_claim_ok(a, &o);
    if (o.status == COORD_OK && a->kind == LEASE_RENEW)
        answer_renew_ok(a, &o);
    if (o.status == COORD_OK && a->kind == LEASE_DESCRIBE)
        answer_pool(&o);
    if (o.status == COORD_OK && a->kind == LEASE_RENEW)
        feed_reached(RENEWED);
    if (a->kind == LEASE_RELEASE)
        feed_reached(RELEASED);
    lease_done(&w.lease, a, &o, w.mono, w.wall);
}

/* ---- lives -----------------------------------------------------------------------------------
 */

static bool same(const struct page_record *a, const struct page_record *b)
{
    return a->worker == b->worker && a->renewing == b->renewing && a->ahead == b->ahead &&
           a->n == b->n && coord_token_equal(a->cur, b->cur) && coord_token_equal(a->nxt, b->nxt) &&
           a->lo_ms == b->lo_ms && a->hi_ms == b->hi_ms;
}

static void compare_page(void)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct page_record *ours = &w.lease.slot[i].rec;
        struct page_record r;
        feed_must(page_load(&w.page, i, &r) && r.state == ours->state, "the page knows each state");
        feed_must(r.state == PAGE_FREE || same(&r, ours), "the page knows each record");
    }
}

/* What the next life may hold: by the oracle alone. */
static void note_page(enum page_verdict v)
{
    memset(w.tenure, 0, sizeof w.tenure);
    memset(w.foreign_floor, 0, sizeof w.foreign_floor);
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        bool blank;
        int64_t last;
        const struct page_copy *c = oracle_record(&w.page, i, &blank);
        if (!c || v == PAGE_BROKEN || c->state == PAGE_FREE ||
            !oracle_mark(w.page.slot[i].mark, &last))
            continue;
        if (v == PAGE_FOREIGN)
            w.foreign_floor[c->worker] = last;
        else if (c->state == PAGE_HELD)
            w.tenure[i] =
                (struct tenure){.found = true, .worker = c->worker, .floor = last, .hi = c->hi_ms};
    }
}

static enum page_verdict begin_life(void)
{
    static struct page before;
    struct err why = {.text = ""};
    enum page_verdict v = page_judge(&w.page, &w.home, &why);
    feed_must(v == oracle_verdict(&w.page, &w.home), "the verdict is the oracle's");
    feed_reached(v);
    feed_must(v == PAGE_OWN || why.text[0], "a page that is not taken over is explained");
    before = w.page;
    note_page(v);
    w.file = (struct pagefile){
        .page = &w.page, .fd = -1, .found = true, .verdict = v, .why = why, .old = before};
    if (v != PAGE_OWN)
        page_format(&w.page, &w.home, 2);
    w.started = false;
    memset(&w.gen, 0, sizeof w.gen);
    lease_init(&w.lease, &w.conf, &w.file, &w.rng.rng, w.mono);
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        bool blank;
        const struct page_copy *c = v == PAGE_OWN ? oracle_record(&before, i, &blank) : NULL;
        feed_must(w.lease.slot[i].rec.state != PAGE_HELD || (c && c->state == PAGE_HELD),
                  "only what the page holds is HELD");
    }
    return v;
}

static void restart(void)
{
    feed_must(begin_life() == PAGE_OWN, "a page that a kill leaves behind is whole");
    take_mail();
}

static void reboot(void)
{
    w.home.boot[0]++;
    feed_must(begin_life() == PAGE_FOREIGN, "another boot's page is not taken over");
    take_mail();
}

static void call(void)
{
    struct lease_action a;
    lease_next(&w.lease, w.mono, &a);
    compare_page();
    if (a.kind == LEASE_IDLE && a.until > w.mono && a.until < w.mono + HOUR_MS)
        w.mono = a.until;
    for (size_t i = 0; a.kind == LEASE_RENEW && i < a.nitems; i++)
        feed_must(w.lease.slot[a.slots[i]].rec.state == PAGE_HELD &&
                      w.lease.slot[a.slots[i]].rec.renewing,
                  "a renewal is noted before it is sent");
    if (a.kind == LEASE_RELEASE && a.slots[0] < LEASE_SLOTS)
        feed_must(w.lease.slot[a.slots[0]].rec.state == PAGE_LEAVING,
                  "a release is noted before it is sent");
    if (a.kind == LEASE_IDLE || a.kind == LEASE_FINISHED)
        return;
    answer(&a);
    take_mail();
}

static void pass(void)
{
    int64_t d = feed_delta(&w.in);
    w.mono += d < 0 || d > HOUR_MS ? 0 : d;
    if (d > -CLOCK_MAX && d < CLOCK_MAX && w.wall + d >= 0 && w.wall + d <= CLOCK_MAX)
        w.wall += d;
}

static void stop(void)
{
    lease_stop(&w.lease, feed_u8(&w.in) & 1, w.mono);
    w.started = false;
}

static void event(uint8_t what)
{
    if (what < 80)
        call();
    else if (what < 150)
        issue(1 + what % 7);
    else if (what < 155)
        issue(1024);
    else if (what < 220)
        pass();
    else if (what < 228)
        restart();
    else if (what < 232)
        reboot();
    else if (what < 238)
        lease_urge_renewal(&w.lease, w.mono);
    else if (what < 244)
        lease_urge_claim(&w.lease, w.mono);
    else if (what < 250)
        retire(w.gen.nmembers ? w.gen.member[0].handle : feed_u8(&w.in));
    else
        stop();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(&w, 0, sizeof w);
    w.in = (struct feed){data, size};
    w.wall = START_MS;
    w.mono = 1000000;
    w.rng = seeded_of(1);
    w.home = (struct page_home){{1, 2, 3}, 4, 5, 6, 7};
    unsigned flags = feed_u8(&w.in), shape = feed_u8(&w.in);
    w.conf = (struct lease_config){.active = 1 + shape % 4,
                                   .spare = shape / 4 % 3,
                                   .renew_ms = 20000,
                                   .rotation_jitter_ms = 30000,
                                   .stop_ms = 3000,
                                   .epoch_pinned = flags & PINNED,
                                   .layout = layout_usual,
                                   .epoch_ms = INT64_C(1767225600000),
                                   .auto_init = flags & AUTO_INIT};
    make_page(&w.page, &w.home, flags, &w.in);
    bool go_on = make_plausible(&w.page);
    (void)begin_life();
    if (!go_on)
        return 0;
    take_mail();
    for (unsigned i = 0; i < EVENTS_MAX && w.in.n > 0; i++)
        event(feed_u8(&w.in));
    return 0;
}
