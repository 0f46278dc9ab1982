#include "lease/blockpage.h"

#include "base/fnv.h"

#include <stddef.h>
#include <string.h>

static const char magic[8] = "SIDFBLKS";

_Static_assert(sizeof(struct blockpage_head) <= 1024, "the head keeps to its place");
_Static_assert(sizeof(struct blockpage_slot) == 768, "slots keep to theirs");
_Static_assert(offsetof(struct blockpage_copy, check) + 4 == sizeof(struct blockpage_copy),
               "no padding: every byte is checked");

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

static uint32_t head_check(const struct blockpage_head *h)
{
    return fnv32(h, offsetof(struct blockpage_head, check));
}

void blockpage_format(struct blockpage *p, unsigned slots, const struct page_home *home,
                      const char *identity)
{
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

void blockpage_clear(struct blockpage *p, const char *identity)
{
    const struct blockpage_head old = p->head;
    blockpage_format(p, old.slots, &old.home, identity);
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
    else if (h->version != BLOCKPAGE_VERSION || bytes != blockpage_size(h->slots))
        (void)err_set(why, ERR_UNSUPPORTED, "expected version %u, found %u, %u slots in %zu bytes",
                      BLOCKPAGE_VERSION, h->version, h->slots, bytes);
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

static bool copy_whole(const struct blockpage_copy *c)
{
    return c->check == fnv32(c, offsetof(struct blockpage_copy, check)) &&
           c->state <= PAGE_LEAVING && c->reset < PERIOD_RESETS &&
           ends(c->of.name, sizeof c->of.name) && ends(c->of.sub, sizeof c->of.sub) &&
           ends(c->of.period, sizeof c->of.period) &&
           (c->state == PAGE_FREE ||
            (c->lo >= 0 && c->lo <= c->hi && c->hi <= SEQ_INDEX_MAX && c->increment != 0));
}

/* The copy that the commit names, or NULL; *blank: nothing was ever committed. */
static const struct blockpage_copy *current(const struct blockpage_slot *s, bool *blank)
{
    int64_t version;
    *blank = s->commit == 0;
    if (*blank || !mark_load(&s->commit, &version))
        return NULL;
    for (unsigned i = 0; i < 2; i++)
        if (s->copy[i].version == (uint64_t)version && copy_whole(&s->copy[i]))
            return &s->copy[i];
    return NULL;
}

static void pack(struct blockpage_copy *c, const struct blockpage_record *r, uint64_t version)
{
    memset(c, 0, sizeof *c);
    c->version = version;
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
    c->check = fnv32(c, offsetof(struct blockpage_copy, check));
}

void blockpage_store(struct blockpage *p, unsigned slot, const struct blockpage_record *r)
{
    struct blockpage_slot *s = &p->slot[slot];
    bool blank;
    int64_t version = 0;
    const struct blockpage_copy *old = current(s, &blank);
    struct blockpage_copy *to = old == &s->copy[0] ? &s->copy[1] : &s->copy[0];
    if (!mark_load(&s->commit, &version))
        version = 0;
    if (r->state == PAGE_HELD && (!old || old->state != PAGE_HELD))
        mark_store(&s->mark, 0);
    pack(to, r, (uint64_t)version + 1);
    mark_order_stores();
    mark_store(&s->commit, version + 1);
}

bool blockpage_load(const struct blockpage *p, unsigned slot, struct blockpage_record *out)
{
    bool blank;
    const struct blockpage_copy *c = current(&p->slot[slot], &blank);
    *out = (struct blockpage_record){.state = PAGE_FREE};
    if (!c)
        return blank;
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

static const struct blockpage_opening *opened(const struct blockpage *p)
{
    int64_t version;
    const struct blockpage_head *h = &p->head;
    if (!mark_load(&h->opened, &version))
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        const struct blockpage_opening *o = &h->opening[i];
        bool whole = o->check == fnv32(o, offsetof(struct blockpage_opening, check)) &&
                     ends(o->of.fingerprint, sizeof o->of.fingerprint);
        if (o->version == (uint64_t)version && whole)
            return o;
    }
    return NULL;
}

bool blockpage_opening(const struct blockpage *p, struct seq_opening *out, uint32_t *serial)
{
    const struct blockpage_opening *o = opened(p);
    *out = o ? o->of : (struct seq_opening){0};
    *serial = o ? o->serial : 0;
    return o != NULL;
}

uint32_t blockpage_set_opening(struct blockpage *p, const struct seq_opening *of)
{
    struct blockpage_head *h = &p->head;
    const struct blockpage_opening *old = opened(p);
    if (old && blockpage_same_opening(&old->of, of))
        return old->serial;
    struct blockpage_opening *to = old == &h->opening[0] ? &h->opening[1] : &h->opening[0];
    int64_t version;
    if (!mark_load(&h->opened, &version))
        version = 0;
    uint32_t serial = (uint32_t)version + 1; /* whatever became of the one before */
    memset(to, 0, sizeof *to);
    to->version = (uint64_t)version + 1;
    to->of = *of;
    to->serial = serial;
    to->check = fnv32(to, offsetof(struct blockpage_opening, check));
    mark_order_stores();
    mark_store(&h->opened, version + 1);
    return serial;
}

/* ---- what proves it -------------------------------------------------------------------------- */

static const struct blockpage_witness *witness(const struct blockpage *p)
{
    int64_t version;
    if (!mark_load(&p->head.witnessed, &version))
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        const struct blockpage_witness *w = &p->head.witness[i];
        if (w->version == (uint64_t)version &&
            w->check == fnv32(w, offsetof(struct blockpage_witness, check)))
            return w;
    }
    return NULL;
}

bool blockpage_witness(const struct blockpage *p, unsigned *slot, struct coord_token *token)
{
    const struct blockpage_witness *w = witness(p);
    if (!w)
        return false;
    *slot = w->slot;
    *token = w->token;
    return true;
}

void blockpage_set_witness(struct blockpage *p, unsigned slot, struct coord_token token)
{
    const struct blockpage_witness *old = witness(p);
    struct blockpage_witness *to =
        old == &p->head.witness[0] ? &p->head.witness[1] : &p->head.witness[0];
    int64_t version;
    if (!mark_load(&p->head.witnessed, &version))
        version = 0;
    *to =
        (struct blockpage_witness){.version = (uint64_t)version + 1, .token = token, .slot = slot};
    to->check = fnv32(to, offsetof(struct blockpage_witness, check));
    mark_order_stores();
    mark_store(&p->head.witnessed, version + 1);
}

void blockpage_set_changed(struct blockpage *p, int64_t ns)
{
    struct blockpage_changed c = {.ns = ns};
    c.check = fnv32(&c, offsetof(struct blockpage_changed, check));
    p->head.changed = c;
}

bool blockpage_changed(const struct blockpage *p, int64_t *ns)
{
    const struct blockpage_changed *c = &p->head.changed;
    *ns = c->ns;
    return c->ns != 0 && c->check == fnv32(c, offsetof(struct blockpage_changed, check));
}
