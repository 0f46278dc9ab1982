#include "lease/blockpage.h"

#include "base/fnv.h"
#include "lease/pair.h"

#include <stddef.h>
#include <string.h>

#define LEAST_PAGE 4096 /* bytes of memory that are mapped at once, at least */

static const char magic[8] = "SIDFBLKS";

_Static_assert(sizeof(struct blockpage_head) <= 1024, "the head keeps to its place");
_Static_assert(sizeof(struct blockpage_slot) == 768, "slots keep to theirs");
PAIR_COPY(struct blockpage_copy);
PAIR_COPY(struct blockpage_opening);
PAIR_COPY(struct blockpage_witness);
PAIR_COPY(struct blockpage_time);

bool blockpage_same_opening(const struct seq_opening *a, const struct seq_opening *b)
{
    return a->era == b->era && a->topen_ms == b->topen_ms &&
           strcmp(a->fingerprint, b->fingerprint) == 0;
}

bool blocks_name_equal(const struct blocks_name *a, const struct blocks_name *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->sub, b->sub) == 0 &&
           strcmp(a->period, b->period) == 0;
}

size_t blockpage_size(unsigned slots)
{
    return sizeof(struct blockpage) + slots * sizeof(struct blockpage_slot);
}

/* Before a store to memory that may not be mapped yet: on tmpfs that would change the file's time,
 * by which it is proven, unless a load has come first. */
static void load_first(const void *p, size_t n)
{
    const volatile uint8_t *b = p;
    for (size_t i = 0; i < n; i += LEAST_PAGE)
        (void)b[i];
    (void)b[n - 1];
}

static uint32_t head_check(const struct blockpage_head *h)
{
    return fnv32(h, offsetof(struct blockpage_head, check));
}

void blockpage_format(struct blockpage *p, unsigned slots, const struct page_home *home,
                      const char *identity)
{
    load_first(p, blockpage_size(slots));
    memset(p, 0, blockpage_size(slots));
    blockpage_begin(p, slots, home, identity);
}

void blockpage_begin(struct blockpage *p, unsigned slots, const struct page_home *home,
                     const char *identity)
{
    memcpy(p->head.magic, magic, sizeof magic);
    p->head.version = BLOCKPAGE_VERSION;
    p->head.slots = slots;
    p->head.home = *home;
    memcpy(p->head.identity, identity, strnlen(identity, sizeof p->head.identity - 1));
    p->head.check = head_check(&p->head);
}

void blockpage_clear(struct blockpage *p, unsigned slots, const char *identity)
{
    const struct blockpage_head old = p->head;
    blockpage_format(p, slots, &old.home, identity);
    memcpy(p->head.witness, old.witness, sizeof old.witness);
    p->head.witnessed = old.witnessed;
    p->head.changed = old.changed;
    p->head.generation = old.generation;
}

enum page_verdict blockpage_judge(const struct blockpage *p, size_t bytes,
                                  const struct page_home *home, struct err *why)
{
    const struct blockpage_head *h = &p->head;
    if (bytes < sizeof *p || memcmp(h->magic, magic, sizeof magic) != 0)
        (void)err_set(why, ERR_CORRUPT, "these are no blocks: expected \"SIDFBLKS\"");
    else if (h->version != BLOCKPAGE_VERSION)
        (void)err_set(why, ERR_UNSUPPORTED, "expected version %u, found %u", BLOCKPAGE_VERSION,
                      h->version);
    else if (bytes != blockpage_size(h->slots))
        (void)err_set(why, ERR_CORRUPT, "expected %zu bytes for its %u slots, found %zu",
                      blockpage_size(h->slots), h->slots, bytes);
    else if (h->check != head_check(h) || h->identity[sizeof h->identity - 1])
        (void)err_set(why, ERR_CORRUPT, "the head's check value does not match its contents");
    else if (memcmp(&h->home, home, sizeof *home) == 0)
        return PAGE_OWN;
    else {
        (void)err_set(why, ERR_INVALID, "it is of another boot, file or coordinator");
        return PAGE_FOREIGN;
    }
    return PAGE_BROKEN;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool ends(const char *s, size_t n)
{
    return memchr(s, '\0', n) != NULL;
}

static bool are_counts(const int64_t *v, size_t n)
{
    size_t i = 0;
    while (i < n && v[i] >= 0 && v[i] <= SEQ_INDEX_MAX)
        i++;
    return i == n;
}

/* It can have been granted: what is told of it in a call would be refused with the whole call. */
static bool grantable(const struct blockpage_copy *c)
{
    const int64_t counts[] = {c->gen, c->turn, c->era, c->n, c->lo};
    return are_counts(counts, sizeof counts / sizeof *counts) && c->lo <= c->hi &&
           c->hi - c->lo < SEQ_BLOCK_MAX && seq_has_index(c->start, c->increment, c->hi) &&
           seq_are_names(c->of.name, c->of.sub, c->of.period);
}

static bool possible(const struct blockpage_copy *c)
{
    return c->state <= PAGE_LEAVING && c->reset < PERIOD_RESETS &&
           ends(c->of.name, sizeof c->of.name) && ends(c->of.sub, sizeof c->of.sub) &&
           ends(c->of.period, sizeof c->of.period) && (c->state == PAGE_FREE || grantable(c));
}

/* The copy that counts, if it can be. */
static const struct blockpage_copy *current(const struct blockpage_slot *s)
{
    const struct blockpage_copy *c = pair_current(&s->commit, s->copy, sizeof *c);
    return c && possible(c) ? c : NULL;
}

void blockpage_store(struct blockpage *p, unsigned slot, const struct blockpage_record *r)
{
    struct blockpage_slot *s = &p->slot[slot];
    load_first(s, sizeof *s);
    const struct blockpage_copy *old = current(s);
    if (r->state == PAGE_HELD && (!old || old->state != PAGE_HELD))
        mark_store(&s->mark, 0);
    struct blockpage_copy *c = pair_begin(&s->commit, s->copy, sizeof *c);
    c->state = (uint8_t)r->state;
    c->of = r->of;
    memcpy(c->token, r->token.b, sizeof c->token);
    c->gen = r->gen;
    c->turn = r->turn;
    c->era = r->era;
    c->n = r->n;
    c->opening = r->opening;
    c->lo = r->lo;
    c->hi = r->hi;
    c->start = r->start;
    c->increment = r->increment;
    c->definition = r->definition;
    c->reset = (uint8_t)r->reset;
    c->offset_min = (int16_t)r->offset_min;
    pair_commit(&s->commit, c, sizeof *c);
}

bool blockpage_load(const struct blockpage *p, unsigned slot, struct blockpage_record *out)
{
    const struct blockpage_copy *c = current(&p->slot[slot]);
    *out = (struct blockpage_record){.state = PAGE_FREE};
    if (!c)
        return p->slot[slot].commit == 0;
    *out = (struct blockpage_record){.state = (enum page_state)c->state,
                                     .of = c->of,
                                     .gen = c->gen,
                                     .turn = c->turn,
                                     .era = c->era,
                                     .n = c->n,
                                     .opening = c->opening,
                                     .lo = c->lo,
                                     .hi = c->hi,
                                     .start = c->start,
                                     .increment = c->increment,
                                     .definition = c->definition,
                                     .reset = (enum period_reset)c->reset,
                                     .offset_min = c->offset_min};
    memcpy(out->token.b, c->token, sizeof c->token);
    return true;
}

int64_t blockpage_given(const struct blockpage *p, unsigned slot, int64_t size)
{
    int64_t given;
    bool known = mark_load(&p->slot[slot].mark, &given);
    return known && given < size ? given : size;
}

/* ---- the opening ----------------------------------------------------------------------------- */

static const struct blockpage_opening *opened(const struct blockpage_head *h)
{
    const struct blockpage_opening *o = pair_current(&h->opened, h->opening, sizeof *o);
    return o && seq_is_opening(&o->of) ? o : NULL;
}

bool blockpage_opening(const struct blockpage *p, struct seq_opening *out, uint32_t *serial)
{
    const struct blockpage_opening *o = opened(&p->head);
    *out = o ? o->of : (struct seq_opening){0};
    *serial = o ? o->serial : 0;
    return o != NULL;
}

uint32_t blockpage_set_opening(struct blockpage *p, const struct seq_opening *of)
{
    struct blockpage_head *h = &p->head;
    const struct blockpage_opening *old = opened(h);
    if (old && blockpage_same_opening(&old->of, of))
        return old->serial;
    struct blockpage_opening *to = pair_begin(&h->opened, h->opening, sizeof *to);
    to->of = *of;
    to->serial = (uint32_t)to->version; /* whatever became of the one before */
    pair_commit(&h->opened, to, sizeof *to);
    return to->serial;
}

/* ---- what proves it -------------------------------------------------------------------------- */

bool blockpage_witness(const struct blockpage *p, unsigned *slot, struct coord_token *token)
{
    const struct blockpage_head *h = &p->head;
    const struct blockpage_witness *w = pair_current(&h->witnessed, h->witness, sizeof *w);
    if (!w)
        return false;
    *slot = w->slot;
    *token = w->token;
    return true;
}

void blockpage_set_witness(struct blockpage *p, unsigned slot, struct coord_token token)
{
    struct blockpage_head *h = &p->head;
    struct blockpage_witness *w = pair_begin(&h->witnessed, h->witness, sizeof *w);
    w->token = token;
    w->slot = slot;
    pair_commit(&h->witnessed, w, sizeof *w);
}

/* ---- the coordinator's time ------------------------------------------------------------------ */

void blockpage_set_time(struct blockpage *p, int64_t ms, int64_t mono)
{
    struct blockpage_head *h = &p->head;
    struct blockpage_time *t = pair_begin(&h->timed, h->time, sizeof *t);
    t->ms = ms;
    t->mono = mono;
    pair_commit(&h->timed, t, sizeof *t);
}

bool blockpage_time(const struct blockpage *p, int64_t mono, int64_t *ms)
{
    const struct blockpage_time *t = pair_current(&p->head.timed, p->head.time, sizeof *t);
    bool known = t && t->ms > 0 && t->ms <= MARK_MAX_MS && t->mono >= 0 && t->mono <= mono;
    *ms = known ? t->ms + (mono - t->mono) : 0;
    return known;
}

/* ---- when it was changed --------------------------------------------------------------------- */

void blockpage_set_changed(struct blockpage *p, int64_t ns)
{
    struct blockpage_changed c = {.ns = ns};
    c.check = fnv32(&c, offsetof(struct blockpage_changed, check));
    load_first(&p->head, sizeof p->head);
    p->head.changed = c;
}

bool blockpage_changed(const struct blockpage *p, int64_t *ns)
{
    const struct blockpage_changed *c = &p->head.changed;
    *ns = c->ns;
    return c->ns != 0 && c->check == fnv32(c, offsetof(struct blockpage_changed, check));
}
