/*
 * The loop's side of sequences: what ids/sequence_table.h and the generator of sequences do with
 * mails, requests and places.
 */
#include "base/int64.h"
#include "sim/seqs.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- mails ------------------------------------------------------------------------------------
 */

static const struct seqs_note none = {.lo = 1};

static void refuse(struct seqs_place *p, const struct blocks_mail *m)
{
    enum blocks_kind kind = blocks_kind_of(m->how);
    bool stands = kind == BLOCKS_NEVER || kind == BLOCKS_MISS;
    const struct sequence_refusal why = {m->how, stands, m->when, m->hi, m->upto};
    sequence_refuse(&p->s, &why, m->keeps_on);
}

static void own_nothing(struct seqs_place *p)
{
    for (unsigned i = 0; i < SEQUENCE_OWN; i++)
        p->own[i] = none;
}

/* Who grants and knows of no such revocation has lost it: what he grants cannot be meant by it. */
static void forget_revoked(struct seqs_place *p, const struct seqs_mail *mail)
{
    if (mail->revoked < p->told.turn)
        p->told = (struct seq_revoked){0};
}

static void take_one(struct world *w, struct node *n, const struct seqs_mail *mail)
{
    struct seqs_holder *h = seqs_of(w, n);
    const struct blocks_mail *m = &mail->m;
    struct seqs_place *p = &h->place[m->counter];
    const struct sequence_block b = {m->lo, m->lo + m->given, m->hi, m->handle, m->mark};
    switch (m->kind) {
    case BLOCKS_MAIL_KNOWN:
        sequence_define(&p->s, m->start, m->increment, m->strict);
        p->known = true;
        p->reset = (enum period_reset)m->lo;
        p->offset_min = (int)m->hi;
        break;
    case BLOCKS_MAIL_GRANT:
        p->note[p->notes++ % SEQS_NOTES] = mail->note;
        forget_revoked(p, mail);
        own_nothing(p);
        sequence_grant(&p->s, node_mono(w, n), &b);
        break;
    case BLOCKS_MAIL_OWN:
        p->own[1] = p->s.strict ? p->own[0] : none;
        p->own[0] = mail->note;
        forget_revoked(p, mail);
        sequence_own(&p->s, m->lo, m->hi, m->when, m->given > 0);
        break;
    case BLOCKS_MAIL_REVOKE:
        sequence_revoke(&p->s, m->handle, m->hi);
        for (unsigned i = 0; i < SEQUENCE_OWN && m->handle == 0; i++)
            if (p->own[i].hi > m->hi)
                p->own[i] = none;
        break;
    case BLOCKS_MAIL_REFUSED:
        refuse(p, m);
        break;
    case BLOCKS_MAIL_LOST:
        for (unsigned i = 0; i < SEQS_PLACES; i++)
            sequence_let_go(&h->place[i].s);
        break;
    case BLOCKS_MAIL_CLOSED:
        memset(p, 0, sizeof *p);
        break;
    }
}

static void take_mails(struct world *w, struct node *n)
{
    struct seqs_holder *h = seqs_of(w, n);
    unsigned k = world_chance(w, 65) ? h->mails : (unsigned)world_draw(w, h->mails + 1u);
    for (unsigned i = 0; i < k; i++)
        take_one(w, n, &h->mail[i]);
    memmove(h->mail, h->mail + k, (h->mails - k) * sizeof *h->mail);
    h->mails -= k;
    bool waits[SEQS_PLACES] = {false};
    for (unsigned i = 0; i < h->mails; i++)
        waits[h->mail[i].m.counter] = true;
    for (unsigned i = 0; i < SEQS_PLACES; i++)
        if (!waits[i])
            h->place[i].told = h->told[i];
}

/* ---- places -----------------------------------------------------------------------------------
 */

static bool is_place_of(const struct seqs_place *p, unsigned spec, unsigned sub, const char *period)
{
    return p->open && p->spec == spec && p->sub == sub && strcmp(p->period, period) == 0;
}

static bool is_waited_for(const struct seqs_place *p)
{
    for (unsigned i = 0; i < SEQS_WAITING; i++)
        if (p->waiting[i].ticket > 0)
            return true;
    return false;
}

/* Somebody who is not asked for makes room. */
static void close_some(struct world *w, struct seqs_holder *h)
{
    struct seqs_place *p = &h->place[world_draw(w, SEQS_PLACES)];
    if (!p->open || p->open_due || p->closing || is_waited_for(p))
        return;
    sequence_let_go(&p->s);
    p->closing = p->close_due = true;
}

static struct seqs_place *open_place(struct world *w, struct node *n, unsigned spec, unsigned sub,
                                     const char *period)
{
    struct seqs_holder *h = seqs_of(w, n);
    for (unsigned i = 0; i < SEQS_PLACES; i++) {
        struct seqs_place *p = &h->place[i];
        if (p->open)
            continue;
        memset(p, 0, sizeof *p);
        p->open = p->open_due = true;
        p->spec = spec;
        p->sub = sub;
        own_nothing(p);
        p->has_text = h->texts;
        p->text = h->version[spec] + (h->alien[spec] ? SEQS_ALIEN : 0);
        memcpy(p->period, period, PERIOD_LABEL_MAX);
        sequence_init(&p->s, w->seqs->lasts_ms, w->seqs->cache_max, node_mono(w, n));
        return p;
    }
    close_some(w, h);
    return NULL;
}

static struct seqs_place *place_of(struct world *w, struct node *n, unsigned spec, unsigned sub,
                                   const char *period)
{
    struct seqs_holder *h = seqs_of(w, n);
    for (unsigned i = 0; i < SEQS_PLACES; i++)
        if (is_place_of(&h->place[i], spec, sub, period))
            return h->place[i].closing ? NULL : &h->place[i];
    return open_place(w, n, spec, sub, period);
}

/* The period that is now, by the coordinator's clock; or one that the caller names. "": it is not
 * known whether there are any, or which. */
static void choose_period(struct world *w, struct node *n, unsigned spec,
                          char out[PERIOD_LABEL_MAX])
{
    struct seqs_holder *h = seqs_of(w, n);
    const struct seq_definition *d = &w->seqs->spec[spec].version[h->version[spec]].definition;
    int64_t at = blocks_time(&h->b, node_mono(w, n)), off = 0;
    memset(out, 0, PERIOD_LABEL_MAX);
    if (d->reset == PERIOD_NEVER && world_chance(w, 1))
        (void)period_label(PERIOD_HOUR, 0, w->now, out); /* a caller who names what there is not */
    if (d->reset == PERIOD_NEVER || at == 0)
        return;
    if (world_chance(w, d->back_h > 0 ? 30 : 10))
        off = world_between(w, -d->back_h - 1, 1) * INT64_C(3600000);
    (void)period_label(d->reset, d->offset_min, max64(at + off, 0), out);
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static const struct seqs_note *note_at(const struct seqs_place *p, int64_t index)
{
    for (unsigned i = 0; i < SEQUENCE_OWN; i++)
        if (p->own[i].lo <= index && index <= p->own[i].hi)
            return &p->own[i];
    for (unsigned i = 0; i < SEQS_NOTES && i < p->notes; i++) {
        const struct seqs_note *note = &p->note[(p->notes - 1 - i) % SEQS_NOTES];
        if (note->lo <= index && index <= note->hi)
            return note;
    }
    return NULL;
}

/* What is given in a row may be of two blocks. */
static void give(struct world *w, struct node *n, const struct seqs_place *p, int64_t index,
                 int64_t count, const struct seqs_request *strict)
{
    while (count > 0 && !w->failed) {
        const struct seqs_note *note = note_at(p, index);
        if (!note) {
            world_fail(w, "%s: node %u gives out %lld, which it was not granted",
                       w->seqs->spec[p->spec].name, node_number(w, n), (long long)index);
            return;
        }
        int64_t k = min64(count, note->hi - index + 1);
        seqs_ledger_given(w, n, p, note, index, k, strict);
        index += k;
        count -= k;
    }
}

static void ask_some(struct world *w, struct node *n, struct seqs_place *p)
{
    static const uint16_t sizes[] = {1, 1, 1, 1, 2, 3, 10, 60, 900, 3000};
    int64_t index, k = sizes[world_draw(w, w->seqs->sizes)];
    enum sequence_status s;
    if (world_chance(w, 25))
        s = sequence_some(&p->s, node_mono(w, n), k, &index, &k);
    else
        s = sequence_more(&p->s, k, &index) ? SEQUENCE_OK
                                            : sequence_next(&p->s, node_mono(w, n), k, &index);
    if (s != SEQUENCE_OK)
        return;
    give(w, n, p, index, k, NULL);
    w->stats->seqs[SEQS_GIVEN_WHOLE] += k > 1;
}

static void arrive(struct world *w, struct seqs_place *p)
{
    for (unsigned i = 0; i < SEQS_WAITING; i++) {
        struct seqs_request *r = &p->waiting[i];
        if (r->ticket > 0)
            continue;
        r->n = world_chance(w, 25) ? world_between(w, 2, 5) : 1;
        seqs_ledger_asked(w, p, r);
        r->ticket = sequence_arrive(&p->s, r->n);
        return;
    }
}

/* As the loop resumes who waits, in whatever order; some have gone. */
static void resume(struct world *w, struct node *n, struct seqs_place *p)
{
    uint64_t from = world_draw(w, SEQS_WAITING);
    for (unsigned i = 0; i < SEQS_WAITING && !w->failed; i++) {
        struct seqs_request *r = &p->waiting[(from + i) % SEQS_WAITING];
        int64_t index;
        if (r->ticket > 0 && world_chance(w, 8))
            r->ticket = 0;
        if (r->ticket == 0 ||
            sequence_strict(&p->s, node_mono(w, n), &r->ticket, r->n, &index) != SEQUENCE_OK)
            continue;
        give(w, n, p, index, r->n, r);
        w->stats->seqs[SEQS_GIVEN_STRICT] += (uint64_t)r->n;
        r->ticket = 0;
    }
}

void seqs_hang_up(struct world *w, struct node *n)
{
    struct seqs_holder *h = seqs_of(w, n);
    for (unsigned i = 0; i < SEQS_PLACES * SEQS_WAITING; i++)
        if (world_chance(w, 60))
            h->place[i / SEQS_WAITING].waiting[i % SEQS_WAITING].ticket = 0;
}

void seqs_request(struct world *w, struct node *n, const struct blocks_name *of)
{
    unsigned spec = 0, sub = *of->sub ? (unsigned)(*of->sub - 'a') + 1 : 0;
    while (spec + 1 < w->seqs->specs && strcmp(w->seqs->spec[spec].name, of->name) != 0)
        spec++;
    struct seqs_place *p = place_of(w, n, spec, sub, of->period);
    if (p && p->known && p->s.strict)
        arrive(w, p);
    else if (p)
        ask_some(w, n, p);
}

static void request(struct world *w, struct node *n)
{
    unsigned spec = (unsigned)world_draw(w, w->seqs->specs);
    unsigned sub = w->seqs->spec[spec].version[0].definition.subs > 0 || world_chance(w, 1)
                       ? (unsigned)world_draw(w, SEQS_SUBS + 1)
                       : 0;
    char period[PERIOD_LABEL_MAX];
    choose_period(w, n, spec, period);
    struct seqs_place *p = place_of(w, n, spec, sub, period);
    if (!p)
        return;
    if (p->known && p->s.strict)
        arrive(w, p);
    else
        ask_some(w, n, p);
}

/* What is wanted goes to the keeper; what it has not heard yet is replaced, or, of a strict one,
 * more. */
static void tell(struct seqs_place *p, int64_t *due)
{
    struct sequence_ask ask;
    if (!p->open || p->closing || !sequence_asks(&p->s, &ask))
        return;
    int64_t before = p->s.strict ? p->want.count : 0;
    p->want.count = before + ask.count;
    p->want.whole = ask.whole || (before > 0 && p->want.whole);
    p->want.upto = max64(p->want.upto, ask.upto);
    p->want.most = max64(before > 0 ? p->want.most : 0, ask.most);
    p->want_due = true;
    *due = INT64_MIN;
}

void seqs_serve(struct world *w, struct node *n)
{
    if (!w->seqs || n->stopping)
        return;
    struct seqs_holder *h = seqs_of(w, n);
    take_mails(w, n);
    for (uint64_t k = world_draw(w, 6); k > 0 && !w->failed; k--)
        request(w, n);
    if (world_chance(w, 3))
        close_some(w, h);
    for (unsigned i = 0; i < SEQS_PLACES && !w->failed; i++) {
        if (h->place[i].known && h->place[i].s.strict)
            resume(w, n, &h->place[i]);
        tell(&h->place[i], &h->due_mono);
        if (h->place[i].close_due || h->place[i].open_due)
            h->due_mono = INT64_MIN;
    }
    if (h->has_file && world_chance(w, 20)) {
        h->backup = h->area;
        h->backup_page = n->page;
        h->backup_returns = h->returns;
        h->has_backup = true;
    }
}
