#include "ids/sequence.h"

#include "base/int64.h"

#include <string.h>

#define WINDOW_MS 1000     /* over which the rate is taken */
#define BURST_MS  100      /* what came in less counts as if it had taken so long */
#define PACE_MS   21600000 /* from six hours on, to twice as many, the pace is taken */
#define LOOKS     8        /* while what is in hand is used up, where nothing is asked for yet */

void sequence_init(struct sequence *s, int64_t lasts_ms, int64_t max, int64_t mono)
{
    memset(s, 0, sizeof *s);
    s->lasts_ms = lasts_ms;
    s->max = max;
    s->since_ms = s->since[0].mono = s->since[1].mono = mono;
}

void sequence_define(struct sequence *s, int64_t start, int64_t increment, bool strict)
{
    s->start = start;
    s->increment = increment;
    s->strict = strict;
}

static bool wants_few(int64_t n)
{
    return n <= SEQUENCE_FEW;
}

static int64_t rest(const struct sequence_block *b)
{
    return b->hi - b->next + 1;
}

int64_t sequence_left(const struct sequence *s)
{
    int64_t left = 0;
    for (unsigned i = 0; i < s->nblocks; i++)
        left += rest(&s->block[i]);
    return left;
}

int64_t sequence_last(const struct sequence *s)
{
    int64_t last = s->nblocks ? s->block[s->nblocks - 1].hi : -1;
    for (unsigned i = 0; i < SEQUENCE_OWN; i++)
        if (s->own[i].n > 0)
            last = max64(last, s->own[i].lo + s->own[i].n - 1);
    return last;
}

int64_t sequence_given(const struct sequence *s)
{
    return s->given + (s->nblocks ? s->block[0].next - s->counted : 0);
}

/* ---- the blocks ------------------------------------------------------------------------------ */

static void note_given(struct sequence *s, int64_t n)
{
    s->given += n;
    s->taken += n;
}

static void count(struct sequence *s)
{
    if (s->nblocks == 0)
        return;
    note_given(s, s->block[0].next - s->counted);
    s->counted = s->block[0].next;
}

/* The block in hand is over; what is left of it is a gap. The mark of one that is used up says so
 * already, and may be another block's by now. */
static void drop_first(struct sequence *s)
{
    struct sequence_block *b = &s->block[0];
    count(s);
    if (rest(b) > 0)
        sequence_mark(b, b->hi - b->lo + 1);
    s->dropped += rest(b);
    s->block[0] = s->block[1];
    s->nblocks--;
    if (s->nblocks)
        s->counted = s->block[0].next;
    else
        memset(&s->block[0], 0, sizeof s->block[0]);
    s->look = s->block[0].next;
}

static void drop_used(struct sequence *s)
{
    while (s->nblocks && rest(&s->block[0]) == 0)
        drop_first(s);
}

static void give(struct sequence *s, int64_t n, int64_t *index)
{
    struct sequence_block *b = &s->block[0];
    *index = b->next;
    b->next += n;
    sequence_mark(b, b->next - b->lo);
}

/* From the first block into the second, which follows without a gap. */
static void give_across(struct sequence *s, int64_t n, int64_t *index)
{
    int64_t first = rest(&s->block[0]), ignored;
    give(s, first, index);
    drop_first(s);
    give(s, n - first, &ignored);
}

/* ---- asking ---------------------------------------------------------------------------------- */

double sequence_pace(const struct sequence *s, int64_t mono)
{
    const struct sequence_since *from = &s->since[0];
    int64_t passed = max64(mono - from->mono, WINDOW_MS);
    return (double)(sequence_given(s) - from->given) / (double)passed;
}

static void keep_pace(struct sequence *s, int64_t mono)
{
    if (mono - s->since[1].mono < PACE_MS)
        return;
    s->since[0] = s->since[1];
    s->since[1] = (struct sequence_since){mono, sequence_given(s)};
}

/* Numbers a ms. A burst shows at once, an end of one after a while. */
static double rate_at(struct sequence *s, int64_t mono)
{
    int64_t passed = mono - s->since_ms;
    count(s);
    keep_pace(s, mono);
    if (passed >= WINDOW_MS) {
        s->rate = (double)s->taken / (double)passed;
        s->since_ms = mono;
        s->taken = 0;
        return s->rate;
    }
    double now = (double)s->taken / (double)max64(passed, BURST_MS);
    return now > s->rate ? now : s->rate;
}

/* At most twice or half of the last one. */
static int64_t size_for(const struct sequence *s, double rate)
{
    double needed = rate * (double)s->lasts_ms;
    if (s->size == 0)
        return min64(SEQUENCE_FIRST, s->max);
    int64_t most = min64(s->size * 2, s->max);
    int64_t least = max64(s->size / 2, 1);
    int64_t size = needed < (double)most ? (int64_t)needed + 1 : most;
    return max64(size, least);
}

static void ask(struct sequence *s, int64_t n, bool whole)
{
    s->asked = true;
    s->awaited = false;
    s->ask = (struct sequence_ask){.count = n, .whole = whole};
}

static void ask_block(struct sequence *s, double rate)
{
    s->size = min64(size_for(s, rate), s->max);
    ask(s, s->size, false);
}

bool sequence_refuses(const struct sequence *s, int64_t n)
{
    return s->refused.cause && n >= s->refused.count;
}

/* A refusal that stands is asked about again, now and then. */
static bool may_ask(const struct sequence *s, int64_t mono, int64_t n)
{
    return !s->asked && (!sequence_refuses(s, n) || mono >= s->refused.until_ms);
}

/* By the time that is left, and where the next look is due. */
static void look(struct sequence *s, int64_t mono)
{
    double rate = rate_at(s, mono);
    int64_t left = sequence_left(s);
    if (s->nblocks < 2 && may_ask(s, mono, 1) && (double)left < rate * (double)s->lasts_ms)
        ask_block(s, rate);
    const struct sequence_block *b = &s->block[0];
    if (s->nblocks == 0)
        s->look = b->next;
    else if (s->nblocks == 2 || s->asked)
        s->look = b->hi + 1;
    else
        s->look = min64(b->hi + 1, b->next + max64(left / LOOKS, 1));
    if (s->kept > 0 && s->nblocks > 0)
        s->look = min64(s->look, max64(b->hi + 1 - s->kept, b->next));
}

void sequence_follow(struct sequence *s, const struct sequence *before, int64_t mono)
{
    s->rate = before->rate;
    s->size = before->size;
    s->since_ms = mono;
    s->taken = 0;
    for (int i = 0; i < 2; i++) {
        s->since[i] = before->since[i];
        s->since[i].given += sequence_given(s) - sequence_given(before);
    }
}

void sequence_prepare(struct sequence *s)
{
    if (s->nblocks == 0 && !s->asked)
        ask(s, max64(s->size, 1), false);
}

bool sequence_asks(struct sequence *s, struct sequence_ask *out)
{
    *out = s->ask;
    s->ask = (struct sequence_ask){0};
    return out->count > 0;
}

/* What a request comes to that can't be served from what is in hand. What was asked for in advance,
 * and nobody knows of yet, makes way for what is waited for; what another waits for does not. Each
 * grant of its own drops the block, and who pipelines takes a whole one: who wants few would wait
 * for all who want more, one call each. So a block is asked for between them, and of that what the
 * others want is kept. */
static enum sequence_status lacks(struct sequence *s, int64_t mono, int64_t n, bool whole)
{
    bool refused = sequence_refuses(s, n), due = may_ask(s, mono, n);
    bool in_advance = s->ask.count > 0 && !s->awaited;
    if (whole && (due || in_advance))
        ask(s, s->few ? min64(2 * s->few, size_for(s, rate_at(s, mono))) : n, !s->few);
    else if (due)
        ask_block(s, rate_at(s, mono));
    else if (wants_few(n) && !refused)
        s->few += n;
    s->awaited = true;
    return refused && mono < s->refused.until_ms ? SEQUENCE_REFUSED : SEQUENCE_EMPTY;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* What is left below is dropped first: numbers rise, also after a restart. */
static void give_own(struct sequence *s, int64_t *index)
{
    while (s->nblocks)
        drop_first(s);
    *index = s->own[0].lo;
    note_given(s, s->own[0].n);
    s->own[0].n = 0;
}

static bool serve(struct sequence *s, int64_t n, int64_t *index)
{
    const struct sequence_block *b = s->block;
    drop_used(s);
    int64_t kept = wants_few(n) ? 0 : s->kept;
    int64_t first = s->nblocks > 0 ? rest(&b[0]) - kept : 0;
    int64_t second = s->nblocks > 1 ? rest(&b[1]) : 0;
    bool joined = second > 0 && b[0].hi + 1 == b[1].next;
    if (n <= first) {
        give(s, n, index);
    } else if (joined && n <= first + second) {
        give_across(s, n, index);
    } else if (n <= second) {
        drop_first(s);
        give(s, n, index);
    } else if (s->own[0].n == n) {
        give_own(s, index);
    } else {
        return false;
    }
    return true;
}

enum sequence_status sequence_next(struct sequence *s, int64_t mono, int64_t n, int64_t *index)
{
    if (!serve(s, n, index))
        return lacks(s, mono, n, n > 1);
    if (wants_few(n))
        s->kept = max64(s->kept - n, 0);
    drop_used(s);
    look(s, mono);
    return SEQUENCE_OK;
}

enum sequence_status sequence_some(struct sequence *s, int64_t mono, int64_t most, int64_t *index,
                                   int64_t *n)
{
    drop_used(s);
    *n = s->nblocks ? min64(most, rest(&s->block[0])) : 1;
    return sequence_next(s, mono, *n, index);
}

/* ---- strict ---------------------------------------------------------------------------------- */

/* Less than many want in a row is of no use to any of them, and would be a gap. For whom a call has
 * no room something else comes of it, and he arrives anew: where that was one who wants few, the
 * next call is not for who wants more, be it for nobody. */
int64_t sequence_arrive(struct sequence *s, int64_t n)
{
    bool first = s->ask.count == 0, few_wait = s->few > 0;
    s->tickets++;
    s->asked = true;
    s->ask.upto = s->tickets;
    s->few = first ? 0 : s->few;
    if (first && few_wait && !wants_few(n)) {
        s->ask.count = 1;
    } else if (s->ask.count + n <= SEQUENCE_ROW_MAX) {
        s->ask.count += n;
        s->ask.most = max64(s->ask.most, n);
        s->ask.whole = s->ask.most > 1;
    } else if (wants_few(n)) {
        s->few += n;
    }
    return s->tickets;
}

bool sequence_may_arrive(const struct sequence *s, int64_t mono, int64_t n)
{
    bool others = s->refused.stands && s->ask.most >= s->refused.count; /* they ask already */
    return !sequence_refuses(s, n) || (mono >= s->refused.until_ms && !others);
}

bool sequence_expect(struct sequence *s, int64_t requests, int64_t n)
{
    int64_t room = s->ask.count > 0 ? (SEQUENCE_ROW_MAX - s->ask.count) / n : 0;
    s->ask.count += min64(requests, room) * n;
    return room > 0;
}

/* Less than some want was asked for as that, since there are no more. */
static bool fits(const struct sequence_own *o, int64_t ticket, bool some, int64_t n)
{
    int64_t want = some && o->n > 0 ? min64(n, o->n) : n;
    return ticket <= o->upto && (o->whole ? want == o->n : want <= o->n);
}

static void own_is_gone(struct sequence *s, struct sequence_own *o)
{
    s->dropped += o->n;
    o->n = 0;
}

static void own_nothing(struct sequence *s)
{
    for (unsigned i = 0; i < SEQUENCE_OWN; i++)
        own_is_gone(s, &s->own[i]);
}

bool sequence_may_wait(const struct sequence *s)
{
    return s->own[1].n > 0 || (s->strict && s->ask.most == 0);
}

static void own_follows(struct sequence *s)
{
    own_is_gone(s, &s->own[0]);
    s->own[0] = s->own[1];
    s->own[1].n = 0;
}

static void give_of(struct sequence *s, struct sequence_own *o, int64_t n, int64_t *index)
{
    *index = o->lo;
    o->lo += n;
    o->n -= n;
    note_given(s, n);
    if (s->own[0].n == 0)
        own_follows(s);
}

/* Whoever was answered otherwise, and is still there, arrives anew: nobody else knows who is gone.
 */
static enum sequence_status strict(struct sequence *s, int64_t mono, int64_t *ticket, bool some,
                                   int64_t *n, int64_t *index)
{
    struct sequence_own *o = s->own;
    const struct sequence_refusal *r = &s->refused;
    keep_pace(s, mono);
    while (o < s->own + SEQUENCE_OWN && !fits(o, *ticket, some, *n))
        o++;
    if (o < s->own + SEQUENCE_OWN) {
        *n = min64(*n, o->n);
        give_of(s, o, *n, index);
        return SEQUENCE_OK;
    }
    bool refused = sequence_refuses(s, *n);
    bool fewer = refused && some && r->stands && r->count > 1;
    if (refused && !fewer && mono < r->until_ms)
        return SEQUENCE_REFUSED;
    if (*ticket <= s->answered)
        *ticket = sequence_arrive(s, fewer ? r->count - 1 : *n);
    return SEQUENCE_EMPTY;
}

enum sequence_status sequence_strict(struct sequence *s, int64_t mono, int64_t *ticket, int64_t n,
                                     int64_t *index)
{
    return strict(s, mono, ticket, false, &n, index);
}

enum sequence_status sequence_strict_some(struct sequence *s, int64_t mono, int64_t *ticket,
                                          int64_t most, int64_t *index, int64_t *n)
{
    *n = most;
    return strict(s, mono, ticket, true, n, index);
}

/* ---- what comes of it ------------------------------------------------------------------------ */

/* By so many numbers: whether there are more than these in a row they do not tell. */
static void answered(struct sequence *s, int64_t n)
{
    s->asked = s->ask.count > 0;
    if (sequence_refuses(s, n))
        s->refused.cause = 0;
}

void sequence_grant(struct sequence *s, int64_t mono, const struct sequence_block *granted)
{
    struct sequence_block of = *granted, *b = &of;
    b->own = b->own ? b->own : b->mark;
    answered(s, b->hi - b->lo + 1);
    drop_used(s);
    if (s->nblocks == 2) {
        sequence_mark(b, b->hi - b->lo + 1);
        s->dropped += rest(b);
        return;
    }
    own_nothing(s); /* below it: whoever wanted it asks again */
    s->block[s->nblocks++] = *b;
    s->kept = s->nblocks == 1 ? min64(s->few, rest(b)) : 0;
    s->few = 0;
    if (s->nblocks == 1)
        s->counted = b->next;
    look(s, mono);
}

void sequence_own(struct sequence *s, int64_t lo, int64_t hi, int64_t upto, bool whole)
{
    answered(s, hi - lo + 1);
    s->answered = max64(s->answered, upto);
    struct sequence_own *o = s->own;
    if (s->strict && o[1].n > 0)
        own_follows(s); /* whoever has not come for what was left had time enough */
    if (s->strict && o[0].n > 0)
        o++;
    own_is_gone(s, o);
    *o = (struct sequence_own){.lo = lo, .n = hi - lo + 1, .upto = upto, .whole = whole};
}

void sequence_refuse(struct sequence *s, const struct sequence_refusal *r, bool keeps_on)
{
    s->asked = keeps_on || s->ask.count > 0;
    if (!keeps_on)
        s->answered = max64(s->answered, r->upto);
    s->refused = *r;
    s->kept = s->few = 0;
    s->look = s->block[0].next; /* when to ask again is for the next request to see */
}

/* Its mark may be another block's by now. */
static void forget(struct sequence *s, unsigned i)
{
    count(s);
    if (i == 0)
        s->block[0] = s->block[1];
    s->nblocks--;
    if (s->nblocks == 0)
        memset(&s->block[0], 0, sizeof s->block[0]);
    s->counted = s->look = s->block[0].next;
}

void sequence_revoke(struct sequence *s, uint32_t handle, int64_t hi)
{
    for (unsigned i = 0; i < SEQUENCE_OWN && handle == 0; i++)
        if (s->own[i].lo + s->own[i].n - 1 > hi)
            own_is_gone(s, &s->own[i]);
    for (unsigned i = s->nblocks; i-- > 0;) {
        struct sequence_block *b = &s->block[i];
        if (b->handle != handle)
            continue;
        b->hi = min64(b->hi, max64(hi, b->next - 1));
        s->look = min64(s->look, s->block[0].hi + 1);
        if (hi < b->lo)
            forget(s, i);
    }
}

void sequence_let_go(struct sequence *s)
{
    own_nothing(s);
    while (s->nblocks)
        forget(s, s->nblocks - 1);
}
