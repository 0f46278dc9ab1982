/*
 * The counters that this sidecar gives out from, by name: each has a place, 0 .. counters - 1,
 * which whoever fetches their blocks knows it by.
 *
 *     key -> place          free --open--> open --close--> closing --closed--> free
 *              |
 *              '-- events: OPEN, WANT, CLOSE -->  who fetches  -- known, grant, refuse, ... -->
 *
 * A sequence that begins anew with each period has a place without numbers, its head, which says
 * what periods they are, one for the present period, and one for the next as soon as its numbers
 * may be granted. The coordinator's time decides which one is present.
 *
 * Invariants
 *   - Pure, as generator.h says. Memory is taken with the first request, and given back by
 *     sequence_table_clear.
 *   - A place is for another counter only once it is told that it is closed, and nobody keeps what
 *     was found by its old name (sequence_table_closed).
 *   - Names that nobody is known to have made have a share of the places, and make room for each
 *     other: however many are asked for, they close no counter that there is.
 *   - Of the others who is closed was not used for the longest time, about; nobody who waits for
 *     numbers is.
 *   - Numbers of a period are given out by a request that names none only in that period.
 */
#ifndef SIDFLAKE_IDS_SEQUENCE_TABLE_H
#define SIDFLAKE_IDS_SEQUENCE_TABLE_H

#include "base/err.h"
#include "ids/sequence_generator.h"

#define SEQUENCE_FAMILIES 64 /* sequences that are shown by name; the others are shown as one */

struct sequence_period {
    int64_t opens_ms, begins_ms, ends_ms; /* Unix ms; ends_ms: the first that is not in it */
};

/* What periods there are: of coord/period.h. */
struct sequence_calendar {
    bool (*label)(int reset, int offset_min, int64_t ms, char out[SEQUENCE_LABEL_MAX]);
    bool (*find)(int reset, int offset_min, struct span label, struct sequence_period *out);
    /* Whether it is one of any reset. What is none is not asked of the coordinator, which would
     * refuse the call whole, with all others' wants in it. */
    bool (*is_label)(struct span text);
};

struct sequence_options {
    uint32_t counters;  /* most at once, 1 ..; one with periods takes two or three */
    int64_t lasts_ms;   /* how long a block is to last */
    int64_t max;        /* most numbers of one, 1 .. */
    const char *prefix; /* for people: "seq:"; not copied, as what follows */
    const struct sequence_calendar *calendar;
    bool forgets; /* the coordinator can: who makes one has to say what happens then */
};

/* What takes came to, in classes. */
enum sequence_take {
    SEQUENCE_TAKE_GRANTED,
    SEQUENCE_TAKE_LOOKED,
    SEQUENCE_TAKE_LATER,
    SEQUENCE_TAKE_USED_UP,
    SEQUENCE_TAKE_UNKNOWN,
    SEQUENCE_TAKE_MISTAKEN, /* by a sub or a date that the sequence can't have */
    SEQUENCE_TAKE_REFUSED,
    SEQUENCE_TAKE_FAILED, /* not known to have come to anything */
    SEQUENCE_TAKES
};

/* What whoever fetches has told. Totals since start. */
struct sequence_told {
    uint64_t takes[SEQUENCE_TAKES];
    uint64_t given_back, dropped; /* numbers */
    struct histogram take_us;
    char page[ERR_TEXT_MAX]; /* why a restart finds nothing of what is held, or "" */
};

/* A sequence, whatever its counters: a generator that gives out nothing, and is shown. */
struct sequence_family {
    struct generator base;
    char name[SEQUENCE_NAME_MAX];
    struct link members;             /* places */
    uint64_t given, parked, refused; /* by those that were closed */
};

struct sequence_table {
    struct generator base; /* gives out nothing itself; shown as what all have in common */
    struct sequence_options options;
    struct sequence_generator *place;     /* options.counters of them; NULL: none yet */
    uint32_t *bucket;                     /* place + 1; 0: none */
    uint32_t buckets;                     /* a power of two */
    uint32_t *queue, queue_first, queued; /* a ring: places with something to tell */
    uint32_t top, free;      /* places from top on were never used; place + 1 of a free one below */
    uint32_t open, nunknown; /* places that are open; of those that are not live, … */
    struct link unknown;     /* … which stand here, the oldest first */
    uint32_t closing, hand;
    /* Set by whoever takes events: some who were told of numbers have not had their turn yet. */
    bool handing_out;
    int64_t tickets;            /* the highest given */
    int64_t mono;               /* of the latest request */
    int64_t time_ms, time_mono; /* the coordinator's, at a monotonic time; time_ms 0: not known */
    uint64_t evicted;           /* since start */
    uint64_t dropped;           /* numbers, by those who gave out: struct sequence has which */
    struct sequence_told told;
    struct sequence_family *family; /* SEQUENCE_FAMILIES + 1 of them; NULL: none yet */
    uint32_t families;              /* with a name; the last one is for all others */
    bool others;
    struct sequence_generator fresh; /* the latest that was looked for and has no place */
    char found[64];                  /* what is no name, for people; … */
    bool found_date;                 /* … or no label */
};

extern const struct generator_kind sequence_table_kind, sequence_family_kind;

void sequence_table_init(struct sequence_table *t, const struct sequence_options *o);
void sequence_table_clear(struct sequence_table *t);

/* ---- requests -------------------------------------------------------------------------------- */

/* As generator_kind.entry. */
struct names_entry *sequence_table_entry(struct generator *g, struct span name, struct span part);

/* The place that a request is to be served from: *g, or another. A cause: there is none yet. */
enum sequence_cause sequence_table_place(struct sequence_generator **g, int64_t mono,
                                         int64_t *until_mono);

/* After a request: what it has asked for is to be told, and what it has dropped is counted. */
void sequence_table_note(struct sequence_generator *g);

/* ---- events ---------------------------------------------------------------------------------- */

enum sequence_event_kind {
    SEQUENCE_EVENT_OPEN,
    SEQUENCE_EVENT_WANT,
    SEQUENCE_EVENT_CLOSE
};

struct sequence_event {
    enum sequence_event_kind kind;
    uint32_t place;
    const struct sequence_name *of;
    struct sequence_ask want;
    bool look; /* WANT: nothing, but to be told what it is */
};

/* The next thing to tell; false: nothing. */
bool sequence_table_event(struct sequence_table *t, struct sequence_event *out);

/* ---- what comes of it: of a place that is not open nothing is done but for closed -------------
 */

/* At the start, in the order of places: the place is this counter's already, and its blocks come.
 * false: it can't be. */
bool sequence_table_adopt(struct sequence_table *t, uint32_t place, const struct sequence_name *of);

struct sequence_facts {
    int64_t start, increment;
    bool strict;
    int reset, offset_min;
    bool formed; /* it is known whether it has a template, and subs */
    bool subs;
    const struct template *template; /* NULL: none; of whoever fetches, and outlives the table */
};

void sequence_table_known(struct sequence_table *t, uint32_t place, const struct sequence_facts *f);
void sequence_table_grant(struct sequence_table *t, uint32_t place, int64_t mono,
                          const struct sequence_block *b);
/* upto, whole: as of sequence_own. */
void sequence_table_own(struct sequence_table *t, uint32_t place, int64_t lo, int64_t hi,
                        int64_t upto, bool whole);
/* cause: an enum sequence_cause. limit, where has_limit: the last number. */
void sequence_table_refuse(struct sequence_table *t, uint32_t place,
                           const struct sequence_refusal *r, bool keeps_on);
void sequence_table_limit(struct sequence_table *t, uint32_t place, int64_t number);
/* So many more numbers there are behind what was granted last; -1: it never ends, or not known. */
void sequence_table_beyond(struct sequence_table *t, uint32_t place, int64_t n);
/* At wall_ms more was asked for than the line of its sequence, of so many numbers a second, allows.
 */
void sequence_table_late(struct sequence_table *t, uint32_t place, int64_t rate, int64_t wall_ms);
void sequence_table_revoke(struct sequence_table *t, uint32_t place, uint32_t handle, int64_t hi);

/* Nothing that was granted counts any more: another pool is asked, or what is left goes back. */
void sequence_table_let_go(struct sequence_table *t);

/* Its place may be another one's. Nobody may know a names_entry of it any more. */
void sequence_table_closed(struct sequence_table *t, uint32_t place);

/* The coordinator's time was time_ms at mono. */
void sequence_table_time(struct sequence_table *t, int64_t time_ms, int64_t mono);

#endif
