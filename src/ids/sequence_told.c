/* What whoever fetches blocks tells the table of sequences. */
#include "ids/sequence_places.h"

#include <string.h>

/* The open place, or NULL: what is told of it comes too late. */
static struct sequence_generator *open_at(struct sequence_table *t, uint32_t place)
{
    struct sequence_generator *s =
        t->place && place < t->options.counters ? &t->place[place] : NULL;
    return s && s->state == SEQUENCE_OPEN ? s : NULL;
}

/* What period a request is for that names none is known, at a start, by what the numbers that were
 * found are of: nobody else may be there to say it. */
static void open_head(const struct sequence_generator *s, const struct sequence_facts *f)
{
    struct sequence_table *t = s->table;
    struct sequence_name of = s->of;
    of.period[0] = '\0';
    struct sequence_generator *head = sequence_places_find(t, &of);
    if (!head && (t->free || t->top < t->options.counters))
        head = sequence_places_open(t, &of, s);
    if (head && !head->known)
        sequence_table_known(t, sequence_place_of(head), f);
}

void sequence_table_known(struct sequence_table *t, uint32_t place, const struct sequence_facts *f)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s)
        return;
    bool head = f->reset && !s->of.period[0];
    s->known = true;
    s->formed = f->formed;
    s->template = f->template;
    s->subless = f->formed && !f->subs;
    s->told_at = 0;
    s->reset = f->reset;
    s->offset_min = f->offset_min;
    s->base.kind = head ? &sequence_period_kind : &sequence_kind;
    sequence_define(&s->numbers, f->start, f->increment, f->strict);
    if (head) {
        s->numbers.asked = false; /* nothing comes of it */
        s->numbers.refused.cause = 0;
    }
    if (s->of.period[0] && sequence_period_fill(s, f->reset, f->offset_min) && s->adopted)
        open_head(s, f);
    sequence_places_set_live(s, true);
    sequence_places_make_room(t, s);
}

void sequence_table_grant(struct sequence_table *t, uint32_t place, int64_t mono,
                          const struct sequence_block *b)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s)
        return;
    s->has_limit = false;
    s->top = b->hi + 1;
    sequence_grant(&s->numbers, mono, b);
    sequence_table_note(s);
}

void sequence_table_own(struct sequence_table *t, uint32_t place, int64_t lo, int64_t hi,
                        int64_t upto, bool whole)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s) {
        t->dropped += (uint64_t)(hi - lo + 1);
        return;
    }
    s->has_limit = false;
    s->told_at = 0;
    s->top = hi + 1;
    sequence_own(&s->numbers, lo, hi, upto, whole);
    sequence_table_note(s);
}

void sequence_table_beyond(struct sequence_table *t, uint32_t place, int64_t n)
{
    struct sequence_generator *s = open_at(t, place);
    if (s)
        s->beyond = n;
}

static bool says_gone(unsigned cause)
{
    return cause == SEQUENCE_UNKNOWN || cause == SEQUENCE_DROPPED || cause == SEQUENCE_NO_PERIOD;
}

/* Whatever was known of the sequence of a period that is not there is asked anew. */
static void look_again(struct sequence_generator *s)
{
    struct sequence_generator *head = s->head ? &s->table->place[s->head - 1] : NULL;
    if (!head)
        return;
    sequence_places_close(s);
    sequence_places_close(head);
}

void sequence_table_refuse(struct sequence_table *t, uint32_t place,
                           const struct sequence_refusal *r, bool keeps_on)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s)
        return;
    struct sequence_refusal why = *r;
    if (r->cause == SEQUENCE_CLOSED && s->of.period[0] && !s->head)
        why.cause = SEQUENCE_OVER;
    if (!keeps_on)
        s->told_at = 0;
    if (r->cause == SEQUENCE_USED_UP && r->count == 1)
        s->beyond = 0; /* others may have had the last one */
    sequence_refuse(&s->numbers, &why, keeps_on);
    if (sequence_kind.causes[why.cause].status == ISSUE_NEVER)
        sequence_places_show(s); /* it is there, though nothing may be known of it */
    if (r->cause == SEQUENCE_NO_SUBS)
        sequence_places_note_subless(s);
    if (!says_gone(r->cause))
        return;
    s->known = s->subless = false;
    s->base.kind = &sequence_kind;
    sequence_places_set_live(s, false);
    look_again(s);
}

void sequence_table_limit(struct sequence_table *t, uint32_t place, int64_t number)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s)
        return;
    s->has_limit = true;
    s->limit = number;
}

void sequence_table_late(struct sequence_table *t, uint32_t place, int64_t rate, int64_t wall_ms)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s)
        return;
    s->rate = rate;
    s->late_ms = wall_ms;
}

void sequence_table_revoke(struct sequence_table *t, uint32_t place, uint32_t handle, int64_t hi)
{
    struct sequence_generator *s = open_at(t, place);
    if (!s)
        return;
    sequence_revoke(&s->numbers, handle, hi);
    sequence_table_note(s);
}

void sequence_table_let_go(struct sequence_table *t)
{
    for (uint32_t i = 0; i < t->top; i++) {
        if (t->place[i].state != SEQUENCE_OPEN)
            continue;
        sequence_let_go(&t->place[i].numbers);
        sequence_table_note(&t->place[i]);
    }
}

void sequence_table_time(struct sequence_table *t, int64_t time_ms, int64_t mono)
{
    t->time_ms = time_ms;
    t->time_mono = mono;
}
