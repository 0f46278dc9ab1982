/*
 * Any bytes as an area of blocks, and any life on top of it: it is judged, taken over by a blocks
 * machine, proven or not, given out from, and left behind by kills, while a hostile coordinator
 * answers what the input says, within the bounds that coord/seq_calls.h keeps.
 *
 *   | flags | the area, as blocks_make.h says | events ... |
 *
 * Checked
 *   - The verdict and each record are those of blocks_oracle.h: what does not check holds nothing.
 *   - What is asked is sound: no answer leads to a question that the driver would not take.
 *   - No number is given out but of a block that the area or the coordinator gave, none of one
 *     before it is proven, or once it is LEAVING, none of one block twice; and they rise, restarts
 *     included, as long as the definition and the turn stay.
 *   - Strict: none goes to a request that had not arrived when its block was asked for.
 *   - The area knows first: it equals the machine at every call, and is whole at every kill.
 */
#include "blocks_make.h"

#include "base/fnv.h"
#include "ids/sequence.h"
#include "lease/blocks.h"
#include "support/seeded.h"

#define COUNTERS   BLOCKS_MAKE_COUNTERS
#define RANGES     64 /* of a counter that are watched */
#define WAITING    4  /* requests of a strict counter */
#define EVENTS_MAX 300
#define MONO_0     1000000

/* What may be given out, by what the area said at start and the coordinator since. */
struct range {
    int64_t lo, hi, last;
    bool found; /* in the area at start */
};

struct counter {
    struct sequence seq;
    bool known;
    struct range range[RANGES];
    unsigned nranges;
    int64_t last; /* index given out latest; -1: none */
    bool may_fall;
    int64_t gen, turn; /* as told latest, or found; gen 0: neither */
    uint64_t text;
    struct coord_token token; /* of the take under way, or latest, … */
    int64_t sent;             /* … and the tickets that there were when it was first sent */
    int64_t bound;            /* of the latest OWN */
    int64_t ticket[WAITING], wants[WAITING]; /* ticket 0: none */
};

static struct world {
    struct feed in;
    _Alignas(8) uint8_t bytes[BLOCKS_MAKE_BYTES];
    struct blockpage *page;
    struct page_home home;
    struct blocks machine;
    struct counter counter[COUNTERS];
    struct seeded rng;
    int64_t mono;
    bool plausible, proven, stopping;
    unsigned asked;                     /* times that the driver was */
    const struct blocks_action *action; /* that it is asked about */
} w;

enum {
    OWN, /* and on, as enum page_verdict */
    FOREIGN,
    BROKEN,
    ISSUED,
    ISSUED_AGAIN, /* what the area held */
    STRICT,
    WHOLE,
    RETURNED,
    REVOKED,
    WENT_BACK,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected an area that is taken over, found none",
        "expected an area of another boot, found none",
        "expected a broken area, found none",
        "expected numbers, found none",
        "expected numbers after an area was taken over, found none",
        "expected numbers of a strict sequence, found none",
        "expected numbers in a row of a block of their own, found none",
        "expected blocks that are given back, found none",
        "expected blocks that are revoked, found none",
        "expected a coordinator that went back to be noticed, found none",
    };
    return feed_unreached(names, PLACES);
}

/* Where a forger has written the area, nothing can be told but that nobody is harmed. */
static void must(bool holds, const char *what)
{
    feed_must(holds || !w.plausible, what);
}

/* ---- the loop's side -------------------------------------------------------------------------
 */

static void may_give(struct counter *c, int64_t lo, int64_t hi, bool found)
{
    if (c->nranges == RANGES)
        memmove(c->range, c->range + 1, --c->nranges * sizeof *c->range);
    c->range[c->nranges++] = (struct range){lo, hi, lo - 1, found};
}

static void give_one(struct counter *c, int64_t index)
{
    for (unsigned i = c->nranges; i-- > 0;) {
        struct range *r = &c->range[i];
        if (index < r->lo || index > r->hi || index <= r->last)
            continue;
        must(w.proven || !r->found, "what the area held is given out once that is proven");
        r->last = index;
        feed_reached(r->found ? ISSUED_AGAIN : ISSUED);
        return;
    }
    must(false, "a number is of a block that was given, and not given out before");
}

/* What the next life finds lies above. */
static void look_at_marks(unsigned i, const struct counter *c)
{
    for (unsigned k = 2 * i; k < 2 * i + 2; k++) {
        const struct blockpage_copy *b = oracle_block(w.page, k);
        if (!b || b->state != PAGE_HELD || c->may_fall)
            continue;
        int64_t size = b->hi - b->lo + 1, given = oracle_given(w.page, k, size);
        must(given == size || b->lo + given > c->last,
             "the mark is stored before a number is given out");
    }
}

static void given(unsigned i, int64_t index, int64_t n)
{
    struct counter *c = &w.counter[i];
    must(!w.stopping, "who stops gives out nothing");
    must(index > c->last || c->may_fall || c->seq.strict, "numbers rise");
    for (int64_t k = index; k < index + n; k++)
        give_one(c, k);
    (void)sequence_number(&c->seq, index + n - 1);
    c->last = index + n - 1;
    if (!c->seq.strict)
        look_at_marks(i, c);
}

static void next(unsigned i, int64_t n)
{
    struct counter *c = &w.counter[i];
    int64_t index;
    if (!c->known) {
        sequence_prepare(&c->seq);
        return;
    }
    if (sequence_more(&c->seq, n, &index) ||
        sequence_next(&c->seq, w.mono, n, &index) == SEQUENCE_OK)
        given(i, index, n);
}

static void some(unsigned i, int64_t most)
{
    struct counter *c = &w.counter[i];
    int64_t index, n;
    if (c->known && sequence_some(&c->seq, w.mono, most, &index, &n) == SEQUENCE_OK)
        given(i, index, n);
}

/* Who waits goes on; some are gone. */
static void serve(unsigned i, bool arrives, int64_t n)
{
    struct counter *c = &w.counter[i];
    for (unsigned k = 0; k < WAITING; k++) {
        int64_t index, before = c->ticket[k];
        if (before == 0 && arrives) {
            c->wants[k] = n;
            c->ticket[k] = sequence_arrive(&c->seq, n);
            arrives = false;
        } else if (before != 0 && sequence_strict(&c->seq, w.mono, &c->ticket[k], c->wants[k],
                                                  &index) == SEQUENCE_OK) {
            must(before <= c->bound, "a strict number is for who was there before it was asked");
            given(i, index, c->wants[k]);
            feed_reached(STRICT);
            c->ticket[k] = 0;
        }
    }
}

static void request(uint8_t what)
{
    unsigned i = what % COUNTERS;
    struct counter *c = &w.counter[i];
    uint8_t how = feed_u8(&w.in);
    int64_t n = how < 200 ? 1 : how < 250 ? how - 198 : 1 + feed_u16(&w.in) % 2000;
    if (w.stopping)
        return;
    if (c->known && c->seq.strict)
        serve(i, how & 1, n);
    else if (how & 2 && n > 1)
        some(i, n);
    else
        next(i, n);
}

/* ---- mails ----------------------------------------------------------------------------------- */

static void take_known(struct counter *c, const struct blocks_mail *m)
{
    sequence_define(&c->seq, m->start, m->increment, m->strict);
    if (!m->strict)
        memset(c->ticket, 0, sizeof c->ticket);
    c->known = true;
}

static void take_grant(unsigned i, struct counter *c, const struct blocks_mail *m)
{
    unsigned slot = 2 * i + (m->mark == &w.page->slot[2 * i + 1].mark);
    const struct blockpage_copy *b = oracle_block(w.page, slot);
    must(m->mark == &w.page->slot[slot].mark, "a grant's mark is of its counter");
    must(b && b->state == PAGE_HELD && b->lo == m->lo && b->hi == m->hi,
         "a block is HELD in the area before it is mailed");
    must(b && m->given == oracle_given(w.page, slot, b->hi - b->lo + 1),
         "a grant's numbers that were given out are its mark");
    const struct sequence_block block = {.lo = m->lo,
                                         .next = m->lo + m->given,
                                         .hi = m->hi,
                                         .handle = m->handle,
                                         .mark = m->mark,
                                         .own = m->own};
    sequence_grant(&c->seq, w.mono, &block);
}

static void take_refused(struct counter *c, const struct blocks_mail *m)
{
    enum blocks_kind kind = blocks_kind_of(m->how);
    const struct sequence_refusal why = {m->how, kind >= BLOCKS_NEVER, m->when, m->hi, m->upto};
    feed_must(kind != BLOCKS_NONE || m->how > SEQ_UNREADABLE || m->how < SEQ_WAIT,
              "a refusal means something");
    if (m->how == SEQ_USED_UP)
        (void)(m->start + m->lo * m->increment);
    if (m->how == BLOCKS_BACK)
        feed_reached(WENT_BACK);
    sequence_refuse(&c->seq, &why, m->keeps_on);
}

static void take_mail(void)
{
    struct blocks *b = &w.machine;
    feed_must(b->nmail <= BLOCKS_MAIL_MAX, "there is room for mails");
    for (unsigned k = 0; k < b->nmail; k++) {
        const struct blocks_mail *m = &b->mail[k];
        feed_must(m->counter < COUNTERS, "a mail is of a counter");
        struct counter *c = &w.counter[m->counter];
        if (m->kind == BLOCKS_MAIL_KNOWN) {
            take_known(c, m);
        } else if (m->kind == BLOCKS_MAIL_GRANT) {
            take_grant(m->counter, c, m);
        } else if (m->kind == BLOCKS_MAIL_OWN) {
            must(m->when <= c->sent, "a strict block is for no later ticket");
            c->bound = m->when;
            feed_reached(WHOLE);
            sequence_own(&c->seq, m->lo, m->hi, m->when, m->given > 0);
        } else if (m->kind == BLOCKS_MAIL_REVOKE) {
            feed_reached(REVOKED);
            sequence_revoke(&c->seq, m->handle, m->hi);
        } else if (m->kind == BLOCKS_MAIL_REFUSED) {
            take_refused(c, m);
        } else if (m->kind == BLOCKS_MAIL_LOST) {
            for (unsigned i = 0; i < COUNTERS; i++)
                sequence_let_go(&w.counter[i].seq);
        }
    }
    b->nmail = 0;
}

/* ---- the coordinator's side ------------------------------------------------------------------
 */

static const struct seq_definition definitions[] = {
    {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST},
    {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST, .strict = true},
    {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST, .strict = true, .cycle = true},
    {.start = -5, .increment = -3, .loss = SEQ_LOSS_REFUSE, .subs = 10},
    {.start = 0, .increment = 1, .loss = SEQ_LOSS_TRUST, .reset = PERIOD_DAY, .offset_min = 60},
    {.start = SEQ_NUMBER_MAX, .increment = -SEQ_NUMBER_MAX, .loss = SEQ_LOSS_TRUST},
};

/* A count: a step from `near`, or after 0x80 any. */
static int64_t any(int64_t near)
{
    int8_t step = (int8_t)feed_u8(&w.in);
    return step == INT8_MIN ? (int64_t)(feed_number(&w.in, 7) & SEQ_INDEX_MAX)
                            : (near + step) & SEQ_INDEX_MAX;
}

/* As answer_sequences.c reads it: whatever is a number. */
static void answer_grant(unsigned i, const struct seq_want *want, struct seq_grant *g)
{
    const struct counter *c = &w.counter[i];
    uint8_t how = feed_u8(&w.in), which = feed_u8(&w.in);
    bool odd = which & 128;
    g->how = how < 160 ? SEQ_GRANTED : (enum seq_how)(how % SEQ_HOWS);
    (void)seq_definition_text(g->text, &definitions[which % 8 % 6]);
    g->text[0] = which & 64 ? '\0' : g->text[0];
    g->gen = odd ? any(c->gen) : 1;
    g->turn = odd ? any(c->turn) : 1;
    g->n = odd ? any(want->n) : (want->n + 1) & SEQ_INDEX_MAX;
    g->max = odd ? any(0) : SEQ_INDEX_MAX;
    if (g->max > seq_last_index(&definitions[which % 8 % 6]))
        g->max = seq_last_index(&definitions[which % 8 % 6]);
    if (g->how == SEQ_GRANTED || g->how == SEQ_AGAIN) {
        g->lo = any(c->last + 1);
        int64_t n = odd ? any(want->count) : want->count;
        g->hi = g->lo + (n > 0 ? n - 1 : 0);
        g->hi = g->hi > g->max && !odd ? g->max : g->hi;
    }
    g->wait_ms = g->how == SEQ_WAIT ? 1 + feed_u8(&w.in) : 0;
    if (odd && how & 1)
        g->revoked = (struct seq_revoked){any(c->turn), any(1), any(c->last)};
    if (how == 255)
        memset(g, 0, sizeof *g);
    g->how = how == 255 ? SEQ_UNKNOWN : g->how;
}

static enum coord_status status(void)
{
    unsigned s = feed_u8(&w.in) % 32;
    return s > COORD_DOWN ? COORD_OK : (enum coord_status)s;
}

static enum coord_status do_take(struct coord *c, const char *identity, const struct seq_caller *by,
                                 const struct seq_want *items, struct seq_grant *out, size_t n,
                                 struct seq_opening *opening, struct coord_reply *r)
{
    enum coord_status s = status();
    uint8_t era = feed_u8(&w.in);
    (void)c;
    (void)identity;
    (void)by;
    w.asked++;
    r->now_ms = any(INT64_C(1780000000000));
    *opening = (struct seq_opening){era < 250 ? 1 + era / 128 : any(0), 7, "run:1"};
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        answer_grant(w.action->counter[i], &items[i], &out[i]);
    return s;
}

static enum coord_status do_give_back(struct coord *c, const char *identity,
                                      const struct seq_return *items, enum seq_how *how, size_t n,
                                      struct coord_reply *r)
{
    (void)c;
    (void)identity;
    (void)items;
    (void)r;
    w.asked++;
    for (size_t i = 0; i < n; i++)
        how[i] = (enum seq_how)(feed_u8(&w.in) % SEQ_HOWS);
    return status();
}

static bool forgets(struct coord *c)
{
    (void)c;
    return true;
}

static const struct seq_driver hostile = {
    .forgets = forgets, .take = do_take, .give_back = do_give_back};
static const struct coord_driver driver = {.sequences = &hostile};
static struct coord coordinator = {&driver};

/* What of an answer that counts changes what may be given out: another definition, or what an
 * operator has set, or said, is no longer above what was before. */
static void note_grant(unsigned i, const struct seq_grant *g)
{
    struct counter *c = &w.counter[i];
    bool is_grant = g->how == SEQ_GRANTED || g->how == SEQ_AGAIN;
    if (g->gen == 0 && !is_grant)
        return;
    uint64_t text = fnv64_str(g->text);
    if (c->gen != 0 && (g->gen != c->gen || g->turn != c->turn || text != c->text))
        c->may_fall = true;
    c->may_fall |= g->definition.cycle || g->definition.strict;
    c->gen = g->gen;
    c->turn = g->turn;
    c->text = text;
    if (is_grant)
        may_give(c, g->lo, g->hi, false);
}

static void note_sent(const struct blocks_action *a)
{
    for (size_t k = 0; k < a->nitems; k++) {
        struct counter *c = &w.counter[a->counter[k]];
        if (coord_token_equal(c->token, a->wants[k].token))
            continue;
        c->token = a->wants[k].token;
        c->sent = c->seq.tickets;
    }
}

static void take(const struct blocks_action *a)
{
    struct blocks_outcome o = {.status = COORD_OK};
    note_sent(a);
    w.action = a;
    w.asked = 0;
    o.status = seq_take(&coordinator, BLOCKS_MAKE_IDENTITY, &a->by, a->wants, o.grants, a->nitems,
                        &o.opening, &o.reply);
    must(w.asked == 1, "what is asked is what the driver takes");
    for (size_t k = 0; k < a->nitems && o.status == COORD_OK; k++)
        note_grant(a->counter[k], &o.grants[k]);
    blocks_done(&w.machine, a, &o, w.mono);
    take_mail();
    if (!(feed_u8(&w.in) & 7))
        blocks_done(&w.machine, a, &o, w.mono); /* heard twice */
}

static void give_back(const struct blocks_action *a)
{
    struct blocks_outcome o = {.status = COORD_OK};
    for (size_t k = 0; k < a->nitems; k++) {
        const struct seq_return *r = &a->returns[k];
        const struct counter *c = &w.counter[a->counter[k]];
        bool leaving = false;
        for (unsigned s = 2 * a->counter[k]; s < 2 * a->counter[k] + 2; s++) {
            const struct blockpage_copy *b = oracle_block(w.page, s);
            leaving |= b && b->state == PAGE_LEAVING && b->hi == r->hi;
        }
        must(leaving, "what goes back is LEAVING in the area before");
        must(c->may_fall || c->last < r->lo || c->last > r->hi, "what was given out stays");
    }
    w.asked = 0;
    o.status =
        seq_give_back(&coordinator, BLOCKS_MAKE_IDENTITY, a->returns, o.how, a->nitems, &o.reply);
    must(w.asked == 1, "what goes back is what the driver takes");
    feed_reached(RETURNED);
    blocks_done(&w.machine, a, &o, w.mono);
}

/* ---- lives -----------------------------------------------------------------------------------
 */

static void compare_area(void)
{
    for (unsigned i = 0; i < BLOCKS_MAKE_SLOTS; i++) {
        const struct blocks_slot *s = &w.machine.counter[i / 2].slot[i % 2];
        const struct blockpage_copy *b = oracle_block(w.page, i);
        must((b ? b->state : PAGE_FREE) == (int)s->state, "the area knows each state");
        must(s->state == PAGE_FREE || (b && b->lo == s->lo && b->hi == s->hi && b->gen == s->gen &&
                                       b->turn == s->turn && b->era == s->era),
             "the area knows each block");
    }
}

static void call(void)
{
    struct blocks_action a;
    struct sequence_ask ask;
    for (uint32_t i = 0; i < COUNTERS; i++)
        if (sequence_asks(&w.counter[i].seq, &ask))
            blocks_want(&w.machine, i,
                        &(struct blocks_want){ask.count, ask.whole, ask.upto, ask.most, false});
    blocks_next(&w.machine, w.mono, &a);
    take_mail();
    compare_area();
    if (a.kind == BLOCKS_TAKE)
        take(&a);
    else if (a.kind == BLOCKS_RETURN)
        give_back(&a);
    else if (a.kind == BLOCKS_IDLE && a.until > w.mono && a.until < w.mono + 10000)
        w.mono = a.until;
    take_mail();
}

static void open_counter(uint32_t i, bool pinned)
{
    static char text[COUNTERS][SEQ_TEXT_MAX];
    struct blocks_name of = {.name = "a"};
    of.name[0] = (char)('a' + i);
    if (i == 2)
        memcpy(of.period, "2026-11-22", 11);
    (void)seq_definition_text(text[i], &definitions[i]);
    blocks_open(&w.machine, i, &of, pinned ? text[i] : "");
    if (pinned)
        take_known(&w.counter[i], &(struct blocks_mail){.start = definitions[i].start,
                                                        .increment = definitions[i].increment,
                                                        .strict = definitions[i].strict});
}

static void begin_counter(uint32_t i)
{
    struct counter *c = &w.counter[i];
    memset(c, 0, sizeof *c);
    c->last = -1;
    sequence_init(&c->seq, 60000, 1000000, w.mono);
}

static void found(unsigned slot)
{
    struct counter *c = &w.counter[slot / 2];
    const struct blockpage_copy *b = oracle_block(w.page, slot),
                                *other = oracle_block(w.page, slot ^ 1);
    if (!b || b->state != PAGE_HELD)
        return;
    int64_t n = oracle_given(w.page, slot, b->hi - b->lo + 1);
    if (n <= b->hi - b->lo)
        may_give(c, b->lo + n, b->hi, true);
    c->may_fall |=
        other && other->state == PAGE_HELD &&
        (other->turn != b->turn || other->gen != b->gen || other->definition != b->definition);
    c->gen = b->gen;
    c->turn = b->turn;
    c->text = b->definition;
}

static void begin_life(void)
{
    const struct blocks_config conf = {.counters = COUNTERS, .stop_ms = 3000};
    struct err e = {.text = ""};
    enum page_verdict v = blockpage_judge(w.page, BLOCKS_MAKE_BYTES, &w.home, &e);
    feed_must(v == oracle_blocks_verdict(w.page, BLOCKS_MAKE_BYTES, &w.home),
              "the verdict is the oracle's");
    feed_must(v == PAGE_OWN || e.text[0], "an area that is not taken over is explained");
    feed_reached(v);
    if (v != PAGE_OWN)
        blockpage_format(w.page, BLOCKS_MAKE_SLOTS, &w.home, BLOCKS_MAKE_IDENTITY);
    for (unsigned i = 0; i < COUNTERS; i++)
        begin_counter(i);
    for (unsigned i = 0; i < BLOCKS_MAKE_SLOTS; i++) {
        struct blockpage_record r;
        const struct blockpage_copy *b = oracle_block(w.page, i);
        bool whole = blockpage_load(w.page, i, &r);
        feed_must(whole == (b || w.page->slot[i].commit == 0) &&
                      (int)r.state == (b ? b->state : PAGE_FREE),
                  "a record is the oracle's");
        found(i);
    }
    w.proven = w.stopping = false;
    feed_must(blocks_init(&w.machine, &conf, w.page, &w.rng.rng, w.mono, &e) == ERR_OK,
              "memory for a machine");
    for (uint32_t i = 0; i < COUNTERS; i++)
        if (!w.machine.counter[i].open)
            open_counter(i, false);
    take_mail();
}

static void restart(void)
{
    compare_area();
    blocks_clear(&w.machine);
    begin_life();
}

/* What it held is nobody's. */
static void forget_found(struct counter *c)
{
    for (unsigned k = 0; k < c->nranges; k++)
        if (c->range[k].found)
            c->range[k].last = c->range[k].hi;
}

static void prove(bool so)
{
    if (w.proven)
        return;
    for (unsigned i = 0; i < COUNTERS && !so; i++)
        forget_found(&w.counter[i]);
    w.proven = true;
    blocks_prove(&w.machine, so);
}

static void close_counter(uint32_t i, bool pinned)
{
    if (w.stopping || !blocks_close(&w.machine, i))
        return;
    begin_counter(i);
    open_counter(i, pinned);
}

static void lose(void)
{
    blocks_lose(&w.machine, BLOCKS_MAKE_IDENTITY);
    for (unsigned i = 0; i < COUNTERS; i++) {
        w.counter[i].nranges = 0;
        w.counter[i].may_fall = true;
        w.counter[i].gen = 0;
    }
    prove(true);
    take_mail();
}

static void event(uint8_t what)
{
    if (what < 90)
        call();
    else if (what < 200)
        request(what);
    else if (what < 215)
        w.mono += feed_u16(&w.in);
    else if (what < 225)
        prove(what != 215);
    else if (what < 235)
        restart();
    else if (what < 245)
        close_counter(what % COUNTERS, what & 1);
    else if (what < 248)
        lose();
    else if (!w.stopping) {
        w.stopping = true;
        blocks_stop(&w.machine, what & 1, w.mono);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(&w, 0, sizeof w);
    w.page = (void *)w.bytes;
    w.in = (struct feed){data, size};
    w.mono = MONO_0;
    w.rng = seeded_of(1);
    w.home = (struct page_home){{1, 2, 3}, 4, 5, 6, 7};
    blocks_make(w.page, &w.home, feed_u8(&w.in), &w.in);
    w.plausible = blocks_make_plausible(w.page);
    begin_life();
    for (unsigned i = 0; i < EVENTS_MAX && w.in.n > 0; i++)
        event(feed_u8(&w.in));
    blocks_clear(&w.machine);
    return 0;
}
