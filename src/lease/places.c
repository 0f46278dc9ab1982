#include "lease/places.h"

#include "base/int64.h"
#include "lease/blocks_left.h"
#include "lease/blocks_slots.h"

#include <string.h>
#include <sys/mman.h>

enum err_code places_init(struct places *p, uint32_t counters, struct err *e)
{
    size_t each = sizeof *p->told + sizeof *p->v + 2 * sizeof *p->busy;
    *p = (struct places){.counters = counters, .bytes = counters * each};
    void *m = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return err_set(e, ERR_NOMEM, "no memory for %u sequences", counters);
    p->told = m;
    p->v = (struct counter_place *)(void *)(p->told + counters);
    p->told_list = (uint32_t *)(void *)(p->v + counters);
    p->busy = p->told_list + counters;
    return ERR_OK;
}

void places_clear(struct places *p)
{
    if (p->told)
        (void)munmap(p->told, p->bytes);
    *p = (struct places){0};
}

/* ---- what is told ---------------------------------------------------------------------------- */

static struct told *note(struct places *p, uint32_t i)
{
    struct told *t = &p->told[i];
    if (!t->listed)
        p->told_list[p->ntold++] = i;
    t->listed = true;
    return t;
}

void places_tell_open(struct places *p, uint32_t i, const struct blocks_name *of)
{
    struct told *t = note(p, i);
    t->open = true;
    t->of = *of;
}

/* Only who wants numbers of a strict sequence has tickets: there it is more than was wanted. What
 * was told in a row may be a look and numbers, too. */
static void add_want(bool *wants, struct blocks_want *want, const struct blocks_want *w)
{
    bool look = w->look || (*wants && want->look);
    if (w->count == 0) {
        want->count = *wants ? want->count : 0;
        want->look = look;
        *wants = true;
        return;
    }
    int64_t before = *wants && w->upto > 0 ? want->count : 0;
    bool whole = before > 0 && want->whole;
    int64_t most = before > 0 ? want->most : 0;
    *wants = true;
    *want = *w;
    want->count = min64(before + w->count, SEQ_BLOCK_MAX);
    want->whole |= whole;
    want->look = look;
    want->most = max64(want->most, most);
}

void places_tell_want(struct places *p, uint32_t i, const struct blocks_want *w)
{
    struct told *t = note(p, i);
    add_want(&t->wants, &t->want, w);
}

void places_tell_close(struct places *p, uint32_t i)
{
    struct told *t = note(p, i);
    t->close = true;
    t->wants = false;
}

/* ---- what is heard --------------------------------------------------------------------------- */

static void make_busy(struct places *p, uint32_t i)
{
    if (!p->v[i].listed)
        p->busy[p->nbusy++] = i;
    p->v[i].listed = true;
}

void places_hold(struct places *p, uint32_t i, const struct blocks_want *w)
{
    struct counter_place *x = &p->v[i];
    if (!x->used || x->closing)
        return;
    add_want(&x->wants, &x->want, w);
    make_busy(p, i);
}

static void hear_one(struct places *p, uint32_t i, const struct defined *d)
{
    struct told *t = &p->told[i];
    struct counter_place *x = &p->v[i];
    if (t->open && !x->used) {
        bool listed = x->listed;
        *x = (struct counter_place){.of = t->of, .used = true, .listed = listed};
        x->defined = defined_find(d, t->of.name);
        p->nwait++;
    }
    if (t->wants)
        places_hold(p, i, &t->want);
    x->closing |= t->close && x->used;
    x->wants &= !x->closing;
    if (t->open || t->close)
        make_busy(p, i);
    *t = (struct told){.open = false};
}

void places_hear(struct places *p, const struct defined *d)
{
    for (uint32_t k = 0; k < p->ntold; k++)
        hear_one(p, p->told_list[k], d);
    p->ntold = 0;
}

void places_found(struct places *p, const struct blocks *b, const struct defined *d)
{
    for (uint32_t i = 0; i < p->counters; i++) {
        const struct blocks_counter *c = &b->counter[i];
        if (!c->open)
            continue;
        p->v[i] = (struct counter_place){.of = c->of, .used = true, .open = true};
        p->v[i].defined = defined_find(d, c->of.name);
    }
}

void places_forget(struct places *p, uint32_t i)
{
    p->v[i] = (struct counter_place){.used = false};
}

bool places_wait(const struct places *p)
{
    return p->nwait > 0;
}

/* ---- what the machine is told ---------------------------------------------------------------- */

void places_post(struct blocks *b, struct supply *s)
{
    for (unsigned m = 0; m < b->nmail; m++)
        supply_post(s, &b->mail[m], sizeof b->mail[m]);
    b->nmail = 0;
}

static void refuse(struct supply *s, uint32_t i, const struct counter_place *x, unsigned how,
                   int64_t until, bool keeps_on)
{
    const struct blocks_mail m = {.kind = BLOCKS_MAIL_REFUSED,
                                  .counter = i,
                                  .how = (uint8_t)how,
                                  .when = until,
                                  .keeps_on = keeps_on,
                                  .hi = 1,
                                  .upto = x->want.upto};
    supply_post(s, &m, sizeof m);
}

/* Closed first, then told. */
static void close_place(struct places *p, struct blocks *b, struct supply *s, uint32_t i,
                        int64_t *dropped)
{
    struct counter_place *x = &p->v[i];
    const struct blocks_mail m = {.kind = BLOCKS_MAIL_CLOSED, .counter = i};
    int64_t left = x->open ? blocks_left_of(b, i) : 0;
    if (x->open && !blocks_close(b, i))
        return;
    *dropped += left;
    p->nwait -= !x->open;
    *x = (struct counter_place){.listed = x->listed};
    supply_post(s, &m, sizeof m);
}

static void open_place(struct places *p, struct blocks *b, const struct defined_one *d,
                       struct supply *s, uint32_t i)
{
    struct counter_place *x = &p->v[i];
    blocks_open(b, i, &x->of, d && d->state == DEFINED_SO ? d->text : "");
    if (b->counter[i].known)
        blocks_post_known(b, i);
    places_post(b, s);
    x->open = true;
    p->nwait--;
}

/* What is not made for another reason than that it is refused is not there. */
static unsigned refusal_of(const struct defined_one *d)
{
    return blocks_kind_of(d->how) == BLOCKS_NONE ? SEQ_UNKNOWN : (unsigned)d->how;
}

/* One that is refused is wanted again by another want. */
static void pass_want(struct blocks *b, const struct defined_one *d, struct supply *s,
                      struct counter_place *x, uint32_t i)
{
    x->wants = false;
    if (d && d->state == DEFINED_REFUSED)
        refuse(s, i, x, refusal_of(d), d->due, false);
    else
        blocks_want(b, i, &x->want);
}

/* true: nothing is held back any more. */
static bool settle_one(struct places *p, struct blocks *b, struct defined *d, struct supply *s,
                       uint32_t i, int64_t mono, int64_t *dropped)
{
    struct counter_place *x = &p->v[i];
    struct defined_one *one = x->defined == DEFINED_NONE ? NULL : &d->v[x->defined];
    if (!x->used)
        return true;
    if (x->closing) {
        close_place(p, b, s, i, dropped);
        return !x->used;
    }
    if (one && x->wants)
        defined_urge(d, x->defined, mono);
    if (!b || (one && one->state == DEFINED_ASKED))
        return x->open && !x->wants;
    if (!x->open)
        open_place(p, b, one, s, i);
    if (x->wants)
        pass_want(b, one, s, x, i);
    return true;
}

bool places_settle(struct places *p, struct blocks *b, struct defined *d, struct supply *s,
                   int64_t mono, int64_t *dropped)
{
    uint32_t kept = 0, k = 0;
    for (; k < p->nbusy && s->nmail + 2 <= PLACES_MAILS; k++) {
        uint32_t i = p->busy[k];
        if (settle_one(p, b, d, s, i, mono, dropped))
            p->v[i].listed = false;
        else
            p->busy[kept++] = i;
    }
    bool more = k < p->nbusy;
    memmove(p->busy + kept, p->busy + k, (p->nbusy - k) * sizeof *p->busy);
    p->nbusy -= k - kept;
    return more;
}

static void soften_refusals(struct blocks *b, uint32_t i, int64_t mono)
{
    for (unsigned m = 0; m < b->nmail; m++) {
        struct blocks_mail *mail = &b->mail[m];
        if (mail->counter != i || mail->kind != BLOCKS_MAIL_REFUSED)
            continue;
        mail->how = BLOCKS_AWAY;
        mail->when = mono;
        mail->keeps_on = true;
    }
}

void places_hold_unknown(struct places *p, struct defined *d, struct blocks *b,
                         const struct blocks_action *a, const struct seq_grant *answers,
                         const struct blocks_want *wants, int64_t mono)
{
    for (size_t k = 0; k < a->nitems; k++) {
        uint32_t i = a->counter[k];
        size_t of = p->v[i].defined;
        enum seq_how how = answers[k].how;
        if (of == DEFINED_NONE || (how != SEQ_UNKNOWN && how != SEQ_DIFFERS))
            continue;
        defined_lost(d, of, mono);
        places_hold(p, i, &wants[k]);
        soften_refusals(b, i, mono);
    }
}

void places_refuse_held(const struct places *p, struct supply *s, size_t d, enum coord_status why,
                        int64_t until)
{
    unsigned how = why == COORD_CLOSED ? BLOCKS_SHUT : BLOCKS_AWAY;
    for (uint32_t k = 0; k < p->nbusy && s->nmail < PLACES_MAILS; k++) {
        const struct counter_place *x = &p->v[p->busy[k]];
        bool about = why == COORD_REFUSED ? x->defined == d : x->defined != DEFINED_NONE;
        if (x->used && x->wants && about)
            refuse(s, p->busy[k], x, how, until, true);
    }
}

void places_pin(const struct places *p, struct blocks *b, size_t d, const char *text)
{
    for (uint32_t i = 0; i < p->counters; i++)
        if (p->v[i].used && p->v[i].open && p->v[i].defined == d)
            blocks_pin(b, i, text);
}
