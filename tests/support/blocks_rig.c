#include "support/blocks_rig.h"

#include "base/int64.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct page_home home = {.boot = "0123456789abcde", .inode = 4711};
static const struct blocks_name names[BRIG_COUNTERS] = {
    {"orders", "", ""}, {"tickets", "", ""}, {"orders", "acme", ""}, {"bills", "", ""}};

const struct blocks_name *brig_name(unsigned counter)
{
    return &names[counter];
}

static unsigned index_of(const char *name, const char *sub)
{
    for (unsigned i = 0; i < BRIG_COUNTERS; i++)
        if (strcmp(name, names[i].name) == 0 && strcmp(sub, names[i].sub) == 0)
            return i;
    fail_msg("expected a counter of the rig, found %s %s", name, sub);
    return 0;
}

/* ---- the store ------------------------------------------------------------------------------- */

static int64_t line(const struct brig *r, int64_t ms)
{
    return BRIG_BURST - 1 + (ms - r->store.definition.begins_ms) * BRIG_RATE / 1000;
}

void brig_reopen(struct brig *r, const struct brig_table *from)
{
    struct seq_opening *o = &r->store.opening;
    if (from)
        r->store.table = *from;
    o->era++;
    o->topen_ms = r->wall;
    (void)snprintf(o->fingerprint, sizeof o->fingerprint, "run:%" PRId64, o->era);
}

static void take_one(struct brig *r, const struct seq_want *w, struct seq_grant *g)
{
    struct brig_store *s = &r->store;
    struct brig_counter *c = &s->table.counter[index_of(w->name, w->sub)];
    memset(g, 0, sizeof *g);
    g->how = s->how;
    g->wait_ms = s->wait_ms;
    if (s->how == SEQ_UNKNOWN)
        return;
    memcpy(g->text, s->text, sizeof g->text);
    g->definition = s->definition;
    g->gen = s->gen;
    g->turn = s->turn;
    g->max = s->max;
    g->revoked = s->revoked;
    bool again = c->taken && c->era == s->opening.era && c->turn == s->turn &&
                 coord_token_equal(c->token, w->token);
    int64_t skip = c->era == s->opening.era || s->opening.era == 1
                       ? 0
                       : line(r, s->opening.topen_ms + 2 * BRIG_SKEW_MS) + 1;
    int64_t lo = max64(c->next, skip);
    int64_t hi = min64(lo + w->count - 1, min64(s->max, line(r, r->wall)));
    if (s->how == SEQ_LOOKED && w->count > 0 && again) {
        g->how = SEQ_AGAIN;
        g->lo = c->lo;
        g->hi = c->hi;
    } else if (s->how == SEQ_LOOKED && w->count > 0 &&
               lo > s->max - (w->whole ? w->count - 1 : 0)) {
        g->how = SEQ_USED_UP;
    } else if (s->how == SEQ_LOOKED && w->count > 0 &&
               (hi < lo || (w->whole && hi - lo + 1 < w->count))) {
        g->how = SEQ_WAIT;
        g->wait_ms = 50;
    } else if (s->how == SEQ_LOOKED && w->count > 0) {
        *c = (struct brig_counter){true, true, w->token,       hi + 1, c->n + 1,
                                   lo,   hi,   s->opening.era, s->turn};
        g->how = SEQ_GRANTED;
        g->lo = lo;
        g->hi = hi;
    }
    g->n = c->n;
    g->next = c->next;
}

/* A silent rewind that one of them proves. */
static void listen(struct brig *r, const struct blocks_action *a)
{
    for (size_t i = 0; i < a->nitems; i++) {
        const struct seq_want *w = &a->wants[i];
        if (w->n > r->store.table.counter[index_of(w->name, w->sub)].n && !w->known_before &&
            blockpage_same_opening(&a->by.opening, &r->store.opening)) {
            r->store.proofs++;
            brig_reopen(r, NULL);
        }
    }
}

void brig_take(struct brig *r, const struct blocks_action *a, struct blocks_outcome *o)
{
    memset(o, 0, sizeof *o);
    o->status = r->store.status;
    if (o->status != COORD_OK)
        return;
    r->store.takes++;
    listen(r, a);
    for (size_t i = 0; i < a->nitems; i++)
        take_one(r, &a->wants[i], &o->grants[i]);
    o->opening = r->store.opening;
    o->reply.now_ms = r->wall;
}

void brig_return(struct brig *r, const struct blocks_action *a, struct blocks_outcome *o)
{
    struct brig_store *s = &r->store;
    memset(o, 0, sizeof *o);
    o->status = s->status;
    s->returns += o->status == COORD_OK;
    for (size_t i = 0; o->status == COORD_OK && i < a->nitems; i++) {
        const struct seq_return *b = &a->returns[i];
        struct brig_counter *c = &s->table.counter[index_of(b->name, b->sub)];
        o->how[i] = SEQ_KEPT;
        if (!c->taken || c->era != s->opening.era || c->turn != s->turn || b->gen != s->gen ||
            b->n != c->n || !coord_token_equal(c->token, b->token) || b->hi != c->next - 1)
            continue;
        c->next = b->lo;
        c->taken = false;
        c->n++;
        o->how[i] = SEQ_DONE;
        for (int64_t k = b->lo; k <= b->hi && k < BRIG_TOP; k++) /* they were not given out */
            assert_false(r->given[index_of(b->name, b->sub)][k]);
    }
}

/* ---- a holder's loop ------------------------------------------------------------------------- */

void brig_watch(struct brig_holder *h, unsigned counter, int64_t index, int64_t n)
{
    struct brig *r = h->rig;
    for (int64_t k = index; k < index + n; k++) {
        assert_in_range(k, 0, BRIG_TOP - 1);
        if (r->given[counter][k] && !r->may_repeat)
            fail_msg("index %" PRId64 " of %s%s twice", k, names[counter].name, names[counter].sub);
        r->given[counter][k] = 1;
    }
    r->ngiven += (unsigned long)n;
    if (index <= h->last[counter] && !r->may_fall)
        fail_msg("expected an index above %" PRId64 ", found %" PRId64, h->last[counter], index);
    h->last[counter] = index + n - 1;
}

static void told(struct brig_holder *h, const struct blocks_mail *m)
{
    struct sequence *s = &h->seq[m->counter];
    h->mails[m->kind]++;
    if (m->kind == BLOCKS_MAIL_KNOWN) {
        sequence_define(s, m->start, m->increment, m->strict);
        h->known[m->counter] = true;
    } else if (m->kind == BLOCKS_MAIL_GRANT) {
        const struct sequence_block b = {.lo = m->lo,
                                         .next = m->lo + m->given,
                                         .hi = m->hi,
                                         .handle = m->handle,
                                         .mark = m->mark,
                                         .own = m->own};
        assert_int_equal(brig_count(h, m->counter, PAGE_LEAVING), 0);
        assert_true(brig_count(h, m->counter, PAGE_HELD) > 0);
        sequence_grant(s, h->rig->mono, &b);
    } else if (m->kind == BLOCKS_MAIL_OWN) {
        sequence_own(s, m->lo, m->hi, m->when, m->given > 0);
    } else if (m->kind == BLOCKS_MAIL_REFUSED) {
        bool stands =
            blocks_kind_of(m->how) == BLOCKS_NEVER || blocks_kind_of(m->how) == BLOCKS_MISS;
        const struct sequence_refusal why = {m->how, stands, m->when, m->hi, m->upto};
        sequence_refuse(s, &why, m->keeps_on);
        h->told = *m;
    } else if (m->kind == BLOCKS_MAIL_REVOKE) {
        sequence_revoke(s, m->handle, m->hi);
        h->told = *m;
    }
}

static void read_mails(struct brig_holder *h)
{
    assert_true(h->m.nmail <= BLOCKS_MAIL_MAX);
    for (unsigned i = 0; i < h->m.nmail; i++)
        told(h, &h->m.mail[i]);
    h->m.nmail = 0;
}

enum sequence_status brig_get(struct brig_holder *h, unsigned counter, int64_t n, int64_t *index)
{
    struct sequence *s = &h->seq[counter];
    enum sequence_status r =
        sequence_more(s, n, index) ? SEQUENCE_OK : sequence_next(s, h->rig->mono, n, index);
    if (r == SEQUENCE_OK)
        brig_watch(h, counter, *index, n);
    return r;
}

int64_t brig_must(struct brig_holder *h, unsigned counter, int64_t n)
{
    int64_t index;
    if (brig_get(h, counter, n, &index) == SEQUENCE_OK)
        return index;
    brig_settle(h);
    assert_int_equal(brig_get(h, counter, n, &index), SEQUENCE_OK);
    return index;
}

/* ---- a holder -------------------------------------------------------------------------------- */

void brig_start(struct brig_holder *h, bool page)
{
    const struct blocks_config conf = {.counters = BRIG_COUNTERS, .stop_ms = 3000};
    struct err e;
    blocks_clear(&h->m);
    if (!page)
        blockpage_format(h->page, BRIG_COUNTERS * BLOCKS_SLOTS, &home, "pool");
    assert_int_equal(blocks_init(&h->m, &conf, h->page, &h->rig->rng.rng, h->rig->mono, &e),
                     ERR_OK);
    blocks_prove(&h->m, true);
    memset(h->known, 0, sizeof h->known);
    for (unsigned i = 0; i < BRIG_COUNTERS; i++) {
        if (!page)
            h->last[i] = -1;
        sequence_init(&h->seq[i], h->lasts_ms, h->cache_max, h->rig->mono);
        if (!h->m.counter[i].open)
            blocks_open(&h->m, i, &names[i], "");
    }
}

void brig_next(struct brig_holder *h, struct blocks_action *a)
{
    struct sequence_ask ask;
    for (unsigned i = 0; i < BRIG_COUNTERS; i++)
        if (sequence_asks(&h->seq[i], &ask)) {
            const struct blocks_want w = {ask.count, ask.whole, ask.upto, ask.most, false};
            blocks_want(&h->m, i, &w);
        }
    blocks_next(&h->m, h->rig->mono, a);
    read_mails(h);
    for (size_t i = 0; a->kind == BLOCKS_RETURN && i < a->nitems; i++)
        assert_true(brig_count(h, a->counter[i], PAGE_LEAVING) > 0);
}

void brig_done(struct brig_holder *h, const struct blocks_action *a, const struct blocks_outcome *o)
{
    blocks_done(&h->m, a, o, h->rig->mono);
    read_mails(h);
}

enum blocks_action_kind brig_step(struct brig_holder *h)
{
    struct blocks_action a;
    struct blocks_outcome o;
    brig_next(h, &a);
    if (a.kind == BLOCKS_TAKE)
        brig_take(h->rig, &a, &o);
    else if (a.kind == BLOCKS_RETURN)
        brig_return(h->rig, &a, &o);
    else
        return a.kind;
    brig_done(h, &a, &o);
    return a.kind;
}

void brig_settle(struct brig_holder *h)
{
    for (unsigned i = 0; i < 20; i++)
        if (brig_step(h) != BLOCKS_TAKE)
            return;
}

struct blockpage_record brig_record(const struct brig_holder *h, unsigned counter, unsigned slot)
{
    struct blockpage_record r;
    assert_true(blockpage_load(h->page, counter * BLOCKS_SLOTS + slot, &r));
    return r;
}

unsigned brig_count(const struct brig_holder *h, unsigned counter, enum page_state state)
{
    unsigned n = 0;
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        n += brig_record(h, counter, k).state == state;
    return n;
}

/* ---- life ------------------------------------------------------------------------------------ */

void brig_init(struct brig *r, unsigned holders, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->rng = seeded_of(seed);
    r->mono = 1000000;
    r->wall = BRIG_T0;
    r->nholders = holders;
    r->store.how = SEQ_LOOKED;
    r->store.gen = 1;
    r->store.max = SEQ_INDEX_MAX;
    r->store.definition = (struct seq_definition){.start = 1,
                                                  .increment = 1,
                                                  .begins_ms = BRIG_T0,
                                                  .rate = BRIG_RATE,
                                                  .burst = BRIG_BURST,
                                                  .subs = 10,
                                                  .loss = SEQ_LOSS_SKIP};
    (void)seq_definition_text(r->store.text, &r->store.definition);
    brig_reopen(r, NULL);
    for (unsigned i = 0; i < holders; i++) {
        struct brig_holder *h = &r->holder[i];
        h->rig = r;
        h->lasts_ms = 1000;
        h->cache_max = 1000;
        h->page = calloc(1, blockpage_size(BRIG_COUNTERS * BLOCKS_SLOTS));
        assert_non_null(h->page);
        brig_start(h, false);
    }
}

void brig_clear(struct brig *r)
{
    for (unsigned i = 0; i < r->nholders; i++) {
        blocks_clear(&r->holder[i].m);
        free(r->holder[i].page);
    }
}

void brig_pass(struct brig *r, int64_t ms)
{
    r->mono += ms;
    r->wall += ms;
}
