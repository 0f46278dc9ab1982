/*
 * The kind of generator that gives out the numbers of a counter, `seq:orders` or `seq:orders:acme`:
 * a place in the table (sequence_table.h), with the numbers that are in hand (sequence.h).
 *
 * Invariants
 *   - Causes are numbered as enum sequence_cause. Those from SEQUENCE_LATER to SEQUENCE_BACK are
 *     what the coordinator's side has refused.
 *   - A request is asked of with its ticket for as long as it waits. Of a strict sequence that is a
 *     ticket of its counter; of another, negative: it was counted among those that wait.
 */
#ifndef SIDFLAKE_IDS_SEQUENCE_GENERATOR_H
#define SIDFLAKE_IDS_SEQUENCE_GENERATOR_H

#include "base/ring.h"
#include "ids/names.h"
#include "ids/sequence.h"
#include "ids/template.h"

#define SEQUENCE_NAME_MAX  65 /* NUL included, as what follows */
#define SEQUENCE_SUB_MAX   101
#define SEQUENCE_LABEL_MAX 14

enum sequence_cause {
    SEQUENCE_GIVEN,
    SEQUENCE_WAITS,   /* the first ones were asked for */
    SEQUENCE_SPENT,   /* more was asked for */
    SEQUENCE_FULL,    /* all places are taken, or all that names have which nobody knows yet */
    SEQUENCE_UNTIMED, /* the coordinator's time is not known, and decides the period */
    SEQUENCE_UNMADE,  /* no memory for the table */
    SEQUENCE_NAME,    /* it can't be a name */
    SEQUENCE_DATE,    /* or the label of a period */
    SEQUENCE_LATER,
    SEQUENCE_CLOSED,
    SEQUENCE_USED_UP,
    SEQUENCE_STOPPED,
    SEQUENCE_FORGOTTEN,
    SEQUENCE_UNKNOWN,
    SEQUENCE_DROPPED,
    SEQUENCE_DIFFERS,
    SEQUENCE_NO_SUBS,
    SEQUENCE_TOO_MANY_SUBS,
    SEQUENCE_NO_PERIOD,
    SEQUENCE_UNREADABLE,
    SEQUENCE_AWAY,
    SEQUENCE_SHUT,
    SEQUENCE_BACK,
    SEQUENCE_OVER,  /* SEQUENCE_CLOSED, of a period that the request has named */
    SEQUENCE_OTHER, /* none of these */
    SEQUENCE_CAUSES
};

/* Which counter. NUL-terminated. */
struct sequence_name {
    char name[SEQUENCE_NAME_MAX];
    char sub[SEQUENCE_SUB_MAX];      /* "": none */
    char period[SEQUENCE_LABEL_MAX]; /* "": none */
};

enum sequence_place {
    SEQUENCE_FREE,
    SEQUENCE_OPEN,
    SEQUENCE_CLOSING /* until it is told that it is closed */
};

struct sequence_table;

struct sequence_generator {
    struct generator base; /* of sequence_kind, or of sequence_period_kind */
    struct sequence numbers;
    struct names_entry entry;
    struct sequence_table *table;
    struct sequence_name of;
    uint32_t hash, chain; /* of the table: place + 1 of the next with this bucket, or of the next
                             free one; 0: none */
    uint8_t state;        /* enum sequence_place */
    bool known;           /* what it is of was told */
    bool adopted;         /* its numbers were there at the start */
    bool live;            /* there is such a counter, as far as is known: closed last */
    bool queued, to_open, to_close, to_look;
    bool formed;           /* it is known whether it has a template, … */
    bool subless;          /* of one that names none: its sequence has no subs, … */
    bool sub_asked;        /* … and the coordinator was asked for one all the same */
    int64_t look_due;      /* whether that has changed by now is asked again from then on; mono */
    int reset, offset_min; /* of its sequence's periods; reset 0: it has none */
    /* Of one that has periods, and names none: places + 1 of those of the present one and of the
     * next; 0: none. Of these: its own. */
    uint32_t present, next, head;
    int64_t begins_ms, ends_ms, next_opens_ms; /* of its period: Unix ms */
    int64_t told_at; /* strict: since then what it wants is known, and nothing has come of it; mono;
                        0: nothing stands */
    int64_t ticket_base;      /* tickets up to it are of others */
    uint64_t uses, seen;      /* seen: uses and numbers given, at the latest look */
    uint64_t used_at;         /* the eviction before which it was used last, as far as was seen */
    uint64_t parked, refused; /* requests */
    bool has_limit;
    int64_t limit;  /* its last number, where it is used up */
    int64_t beyond; /* so many more it has, at the latest grant; -1: it never ends, or not known */
    int64_t top;    /* highest index + 1 that was granted here */
    int64_t rate, late_ms; /* numbers a second that its line allows, and when that was too few; Unix
                              ms; 0: never */
    const struct template *template; /* … and this is it, or NULL */
    struct sequence_family *family;
    struct link sibling; /* of the family */
    struct link line;    /* of the table's `unknown` */
};

/* Its numbers are given out inline; those of one with periods are not, since it takes a look at the
 * time. */
extern const struct generator_kind sequence_kind, sequence_period_kind;

/* Of a place that was found: as generator_kind.next and some, and why not. */
unsigned sequence_generator_give(struct sequence_generator *s, struct generator_ask *ask, bool some,
                                 struct generator_run *out);
unsigned sequence_generator_refuse(struct sequence_generator *s, struct generator_ask *ask,
                                   unsigned cause, int64_t until_mono);

/* So many numbers there are until its template takes no more, those in hand and those to come;
 * SEQUENCE_TOP: it takes any, or there is none. */
int64_t sequence_until_width(const struct sequence_generator *s);

/* The usual case, inline behind one test of the kind: one more of the block in hand. */
static inline bool sequence_generator_more(struct generator *g, int64_t *number)
{
    struct sequence_generator *s = (struct sequence_generator *)g;
    int64_t index;
    if (g->kind != &sequence_kind || !sequence_more(&s->numbers, 1, &index))
        return false;
    *number = sequence_number(&s->numbers, index);
    return true;
}

#endif
