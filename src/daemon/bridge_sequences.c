#include "daemon/bridge_sequences.h"

#include <assert.h>

/* ---- words ----------------------------------------------------------------------------------- */

/* Of whoever is refused by the coordinator's side. */
static unsigned cause_of(unsigned how)
{
    static const uint8_t causes[BLOCKS_REFUSALS] = {
        [SEQ_WAIT] = SEQUENCE_LATER,          [SEQ_CLOSED] = SEQUENCE_CLOSED,
        [SEQ_USED_UP] = SEQUENCE_USED_UP,     [SEQ_STOPPED] = SEQUENCE_STOPPED,
        [SEQ_FORGOTTEN] = SEQUENCE_FORGOTTEN, [SEQ_UNKNOWN] = SEQUENCE_UNKNOWN,
        [SEQ_DROPPED] = SEQUENCE_DROPPED,     [SEQ_DIFFERS] = SEQUENCE_DIFFERS,
        [SEQ_NO_SUBS] = SEQUENCE_NO_SUBS,     [SEQ_TOO_MANY_SUBS] = SEQUENCE_TOO_MANY_SUBS,
        [SEQ_NO_PERIOD] = SEQUENCE_NO_PERIOD, [SEQ_UNREADABLE] = SEQUENCE_UNREADABLE,
        [BLOCKS_AWAY] = SEQUENCE_AWAY,        [BLOCKS_SHUT] = SEQUENCE_SHUT,
        [BLOCKS_BACK] = SEQUENCE_BACK,
    };
    unsigned cause = how < BLOCKS_REFUSALS ? causes[how] : 0;
    return cause ? cause : SEQUENCE_OTHER;
}

static struct sequence_name name_of(const struct blocks_name *of)
{
    struct sequence_name name;
    memcpy(name.name, of->name, sizeof name.name);
    memcpy(name.sub, of->sub, sizeof name.sub);
    memcpy(name.period, of->period, sizeof name.period);
    return name;
}

static struct blocks_name blocks_name_of(const struct sequence_name *of)
{
    struct blocks_name name;
    memcpy(name.name, of->name, sizeof name.name);
    memcpy(name.sub, of->sub, sizeof name.sub);
    memcpy(name.period, of->period, sizeof name.period);
    return name;
}

void bridge_sequences_adopt(struct sequence_table *t, struct sequences *s)
{
    for (uint32_t i = 0; i < t->options.counters; i++) {
        const struct blocks_name *found = sequences_found(s, i);
        if (!found)
            continue;
        const struct sequence_name of = name_of(found);
        if (sequence_table_adopt(t, i, &of))
            continue;
        log_warn("numbers in the state page cannot be taken over", kv_str("sequence", of.name),
                 kv_str("sub", of.sub), kv_str("period", of.period));
        sequences_forget(s, i); /* or its numbers came to whoever has the place next */
    }
}

/* ---- from the keeper --------------------------------------------------------------------------
 */

static void known(struct sequence_table *t, const struct blocks_mail *m)
{
    sequence_table_known(t, m->counter,
                         &(struct sequence_facts){.start = m->start,
                                                  .increment = m->increment,
                                                  .strict = m->strict,
                                                  .formed = m->given > 0,
                                                  .subs = m->when > 0,
                                                  .template = m->template,
                                                  .reset = (int)m->lo,
                                                  .offset_min = (int)m->hi});
}

static void refused(struct sequence_table *t, const struct blocks_mail *m, int64_t wall_ms)
{
    enum blocks_kind kind = blocks_kind_of(m->how);
    if (m->how == SEQ_USED_UP && m->lo > 0)
        sequence_table_limit(t, m->counter, m->start + m->lo * m->increment);
    if (m->how == SEQ_WAIT && m->lo > 0)
        sequence_table_late(t, m->counter, m->lo, wall_ms);
    sequence_table_refuse(t, m->counter,
                          &(struct sequence_refusal){.cause = cause_of(m->how),
                                                     .stands = kind >= BLOCKS_NEVER,
                                                     .until_ms = m->when,
                                                     .count = m->hi,
                                                     .upto = m->upto},
                          m->keeps_on);
}

static void granted(struct sequence_table *t, const struct blocks_mail *m, int64_t mono)
{
    sequence_table_grant(t, m->counter, mono,
                         &(struct sequence_block){.lo = m->lo,
                                                  .next = m->lo + m->given,
                                                  .hi = m->hi,
                                                  .handle = m->handle,
                                                  .mark = m->mark,
                                                  .own = m->own});
    sequence_table_beyond(t, m->counter, m->beyond);
}

/* What was found by the name of who had the place is nobody's any more. */
static void closed(struct bridge *b, uint32_t place)
{
    serve_forget(b->serve);
    sequence_table_closed(b->sequences, place);
}

void bridge_sequences_take(struct bridge *b, const struct supply_mail *mail, const void *report)
{
    struct sequence_table *t = b->sequences;
    const struct blocks_mail m = sequences_mail(mail);
    (void)report;
    switch ((enum blocks_mail_kind)m.kind) {
    case BLOCKS_MAIL_KNOWN:
        known(t, &m);
        break;
    case BLOCKS_MAIL_GRANT:
        granted(t, &m, clock_mono_ms(b->clock));
        break;
    case BLOCKS_MAIL_OWN:
        sequence_table_own(t, m.counter, m.lo, m.hi, m.when, m.given > 0);
        sequence_table_beyond(t, m.counter, m.beyond);
        break;
    case BLOCKS_MAIL_REVOKE:
        sequence_table_revoke(t, m.counter, m.handle, m.hi);
        break;
    case BLOCKS_MAIL_REFUSED:
        refused(t, &m, clock_wall_ms(b->clock));
        break;
    case BLOCKS_MAIL_LOST:
        sequence_table_let_go(t);
        break;
    case BLOCKS_MAIL_CLOSED:
        closed(b, m.counter);
        break;
    }
}

static const uint8_t take_of[SEQ_HOWS] = {
    [SEQ_GRANTED] = SEQUENCE_TAKE_GRANTED,       [SEQ_AGAIN] = SEQUENCE_TAKE_GRANTED,
    [SEQ_LOOKED] = SEQUENCE_TAKE_LOOKED,         [SEQ_DONE] = SEQUENCE_TAKE_REFUSED,
    [SEQ_KEPT] = SEQUENCE_TAKE_REFUSED,          [SEQ_WAIT] = SEQUENCE_TAKE_LATER,
    [SEQ_CLOSED] = SEQUENCE_TAKE_MISTAKEN,       [SEQ_USED_UP] = SEQUENCE_TAKE_USED_UP,
    [SEQ_STOPPED] = SEQUENCE_TAKE_REFUSED,       [SEQ_FORGOTTEN] = SEQUENCE_TAKE_REFUSED,
    [SEQ_UNKNOWN] = SEQUENCE_TAKE_UNKNOWN,       [SEQ_DROPPED] = SEQUENCE_TAKE_UNKNOWN,
    [SEQ_DIFFERS] = SEQUENCE_TAKE_REFUSED,       [SEQ_NO_SUBS] = SEQUENCE_TAKE_MISTAKEN,
    [SEQ_TOO_MANY_SUBS] = SEQUENCE_TAKE_REFUSED, [SEQ_NO_PERIOD] = SEQUENCE_TAKE_MISTAKEN,
};

void bridge_sequences_note(struct bridge *b, const void *report)
{
    const struct sequences_report *r = report;
    struct sequence_told *told = &b->sequences->told;
    memset(told->takes, 0, sizeof told->takes);
    for (unsigned how = 0; how < SEQ_HOWS; how++)
        told->takes[how <= SEQ_NO_PERIOD ? take_of[how] : SEQUENCE_TAKE_REFUSED] += r->takes[how];
    told->takes[SEQUENCE_TAKE_FAILED] = r->takes_failed;
    told->given_back = r->given_back;
    told->dropped = r->dropped;
    told->take_us = r->take_us;
    memcpy(told->page, r->page, sizeof told->page);
    if (r->time_ms > 0)
        sequence_table_time(b->sequences, r->time_ms, r->time_mono);
}

/* ---- to the keeper ----------------------------------------------------------------------------
 */

static struct sequences_event event_of(const struct sequence_event *e)
{
    static const enum sequences_event_kind kinds[] = {[SEQUENCE_EVENT_OPEN] = SEQUENCES_OPEN,
                                                      [SEQUENCE_EVENT_WANT] = SEQUENCES_WANT,
                                                      [SEQUENCE_EVENT_CLOSE] = SEQUENCES_CLOSE};
    return (struct sequences_event){.kind = kinds[e->kind],
                                    .counter = e->place,
                                    .of = blocks_name_of(e->of),
                                    .want = {.count = e->want.count,
                                             .whole = e->want.whole,
                                             .upto = e->want.upto,
                                             .most = e->want.most,
                                             .look = e->look}};
}

void bridge_sequences_settle(struct bridge *b)
{
    struct sequence_event e;
    b->sequences->handing_out = net_is_waking(b->net);
    while (sequence_table_event(b->sequences, &e)) {
        const struct sequences_event told = event_of(&e);
        keeper_tell(b->keeper, SUPPLY_SEQUENCES, &told);
    }
}
