/*
 * Which period's numbers are given out.
 *
 *       yesterday          | today                          | tomorrow
 *     ---------------------+--------------------------------+------------->  the coordinator's time
 *          place of today  |              place of tomorrow |
 *           '- opened as soon as its numbers may be granted, `next`
 */
#include "ids/sequence_places.h"

#include <string.h>

/* The present period is not left for the one before for a clock that was corrected by less. */
#define BACK_MS 2000

bool sequence_period_fill(struct sequence_generator *s, int reset, int offset_min)
{
    const struct sequence_calendar *c = s->table->options.calendar;
    struct sequence_period own, next;
    char label[SEQUENCE_LABEL_MAX];
    if (!reset || !c->find(reset, offset_min, span_str(s->of.period), &own))
        return false;
    s->begins_ms = own.begins_ms;
    s->ends_ms = own.ends_ms;
    bool more = c->label(reset, offset_min, own.ends_ms, label) &&
                c->find(reset, offset_min, span_str(label), &next);
    s->next_opens_ms = more ? next.opens_ms : INT64_MAX;
    return true;
}

static struct sequence_generator *open_label(struct sequence_generator *head, int64_t ms)
{
    struct sequence_table *t = head->table;
    struct sequence_name of = head->of;
    if (!t->options.calendar->label(head->reset, head->offset_min, ms, of.period))
        return NULL;
    struct sequence_generator *s = sequence_places_find(t, &of);
    if (!s)
        s = sequence_places_open(t, &of, head);
    if (!s || !sequence_period_fill(s, head->reset, head->offset_min))
        return NULL;
    s->head = sequence_place_of(head) + 1;
    return s;
}

static struct sequence_generator *at(const struct sequence_generator *head, uint32_t place)
{
    return place ? &head->table->place[place - 1] : NULL;
}

/* What is left of one that is over is a gap. Whoever waits has a ticket of that, which may be
 * higher than what the present one has given: his request arrives there anew, with all others. */
static struct sequence_generator *turn_over(struct sequence_generator *head, int64_t now_ms)
{
    struct sequence_generator *old = at(head, head->present), *s = open_label(head, now_ms);
    if (old && old != s && now_ms >= old->ends_ms && old->state == SEQUENCE_OPEN)
        sequence_places_close(old);
    if (!s)
        return NULL;
    head->present = sequence_place_of(s) + 1;
    s->numbers.tickets = s->ticket_base = head->table->tickets;
    if (head->next == head->present)
        head->next = 0;
    if (old && old != s)
        sequence_follow(&s->numbers, &old->numbers, head->table->mono);
    return s;
}

/* So that nobody waits when it begins, as many as the present one asks for by now. */
static void look_ahead(struct sequence_generator *head, struct sequence_generator *present)
{
    struct sequence_generator *next = open_label(head, present->ends_ms);
    if (!next)
        return;
    head->next = sequence_place_of(next) + 1;
    sequence_follow(&next->numbers, &present->numbers, head->table->mono);
    sequence_prepare(&next->numbers);
    sequence_table_note(next);
}

enum sequence_cause sequence_period_present(struct sequence_generator *head, int64_t mono,
                                            struct sequence_generator **out)
{
    const struct sequence_table *t = head->table;
    if (t->time_ms == 0)
        return SEQUENCE_UNTIMED;
    int64_t now_ms = t->time_ms + (mono - t->time_mono);
    struct sequence_generator *s = at(head, head->present);
    if (!s || now_ms >= s->ends_ms || now_ms < s->begins_ms - BACK_MS)
        s = turn_over(head, now_ms);
    if (!s)
        return SEQUENCE_FULL;
    *out = s;
    s->uses++;
    if (!head->next && now_ms >= s->next_opens_ms)
        look_ahead(head, s);
    return SEQUENCE_GIVEN;
}

bool sequence_period_is_ahead(const struct sequence_generator *s, int64_t mono, int64_t *until_mono)
{
    const struct sequence_table *t = s->table;
    int64_t now_ms = t->time_ms + (mono - t->time_mono);
    if (!s->of.period[0] || s->ends_ms == 0 || now_ms >= s->begins_ms)
        return false;
    *until_mono = mono + (s->begins_ms - now_ms);
    return true;
}
