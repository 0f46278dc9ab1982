/*
 * The supply of blocks of sequences (lease/supply.h): the blocks machine, the calls that it asks
 * for, its area of the state page, and what is logged of all that.
 *
 *     serving loop (ids/sequence_table.h)                            this
 *        | --- sequences_event: OPEN, WANT, CLOSE, of a place --------> |
 *        | <-- blocks_mail: KNOWN, GRANT, OWN, REFUSED, ..., CLOSED --- |
 *
 * A counter has a place, 0 .. sequences_options.counters - 1, which the loop chooses. From OPEN to
 * the mail CLOSED it is that counter's.
 *
 * Invariants
 *   - Without a counter and a definition there is nothing: no file, no memory, no call.
 *   - What changes in the blocks and in what the coordinator says of sequences is logged here.
 *   - A definition that the configuration names is made where it is missing, with the text that it
 *     had; where the pool has another one, that sequence alone is refused.
 */
#ifndef SIDFLAKE_LEASE_SEQUENCES_H
#define SIDFLAKE_LEASE_SEQUENCES_H

#include "base/histogram.h"
#include "lease/blockfile.h"
#include "lease/blocks.h"
#include "lease/supply.h"
#include "lease/workers.h"

struct sequences_options {
    const char *state_dir; /* NULL: blocks end with the process; not copied, as … */
    const char *coord_name, *pool_name, *password_file; /* as in struct workers_options */
    const struct workers *workers;   /* … they: what proves the page, and names the pool */
    const struct seq_create *define; /* … and they; has_max, fresh as for seq_create */
    size_t ndefine;
    unsigned counters; /* most at once, 1 .. */
    int64_t stop_ms;
    struct rng *rng;
    struct clock *clock;               /* for the time of a call; NULL: the system's */
    const struct blockfile_left *left; /* by the program before in this process; NULL: nothing */
};

enum sequences_event_kind {
    SEQUENCES_OPEN,  /* of */
    SEQUENCES_WANT,  /* want */
    SEQUENCES_CLOSE, /* BLOCKS_MAIL_CLOSED follows */
};

struct sequences_event {
    enum sequences_event_kind kind;
    uint32_t counter;
    struct blocks_name of;
    struct blocks_want want; /* one that was told and not heard yet is replaced; of a strict
                                sequence they add up */
};

/* Counters are totals since start. */
struct sequences_report {
    int64_t time_ms, time_mono; /* the coordinator's clock by its latest answer; 0: not known */
    uint64_t takes[SEQ_HOWS];   /* items of takes that were answered, by what they came to, and
                                   definitions that were refused */
    uint64_t takes_failed;      /* calls without an answer that counts */
    uint64_t given_back;        /* numbers */
    uint64_t dropped;           /* numbers that became a gap: not proven, revoked, left behind */
    struct histogram take_us;   /* time of a call */
    char page[ERR_TEXT_MAX];    /* why the next start will find no blocks, or "" */
};

struct sequences;

/* Takes over what state_dir holds, unproven. mono: monotonic ms. */
enum err_code sequences_new(const struct sequences_options *o, int64_t mono, struct sequences **out,
                            struct err *e) MUST_CHECK;

struct supply *sequences_supply(struct sequences *s);

/* Before the keeper starts: the counter whose blocks were taken over at that place; NULL: none. */
const struct blocks_name *sequences_found(const struct sequences *s, uint32_t counter);

/* Likewise: whoever gives out cannot have it at that place, which is free. Its numbers are a gap.
 */
void sequences_forget(struct sequences *s, uint32_t counter);

/* For the heir: after the keeper has come to rest, when nothing is given out any more. */
struct blockfile_left sequences_leave(const struct sequences *s);

/* A mail of theirs. */
struct blocks_mail sequences_mail(const struct supply_mail *m);

/* After keeper_free. NULL is allowed. */
void sequences_free(struct sequences *s);

#endif
