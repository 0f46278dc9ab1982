/*
 * The snowflake generator: a pure function of its state and the time it is told.
 *
 * It holds workerIds, each with the range of times lo..hi in which it may issue. Of these some are
 * active (issued from), the others spares (ready to take over):
 *
 *   member[]   | active, by workerId ascending ... | spares ... |
 *              0                            nactive          nmembers
 *
 * Invariants
 *   - I2: a member issues only at times lo..hi, with (time, sequence) strictly rising. lo needs no
 *     test of its own: `last` starts at lo - 1 with its sequences used up.
 *   - IDs of one generator strictly increase, but for a rotation: within a millisecond it goes from
 *     lower to higher active workerIds and never back.
 *   - `last` of a member never falls, and is stored through `mark` before an ID of it is returned.
 *   - A member that was retired is never issued from again.
 *
 *               now > hi                       CEILING: a spare stands in; last is not touched
 *   issue at    now < last, by < wait_below    BEHIND: wait
 *   time now:   now < last, by more            rotate to another member, else STALLED
 *               now = last, sequences used up  next active one, else FULL: wait for the next ms
 *               otherwise                      OK
 *
 * The order of these tests matters: a clock that jumps past hi and back must leave no trace.
 *
 * Where the layout counts time in units of more than 1 ms, an ID's time is the first ms of the unit
 * that now is in, and it is that ms which has to be in the range: a unit belongs to one range, and
 * who is granted the rest of it waits for the next one (FULL). hi is above the present unit's
 * beginning for as long as it lasts, so IDs of a unit may still come when now has passed hi.
 *
 * Where the sequence stands above the workerId, another workerId within the unit would go back: it
 * waits for the next one.
 */
#ifndef SIDFLAKE_IDS_SNOWFLAKE_H
#define SIDFLAKE_IDS_SNOWFLAKE_H

#include "base/histogram.h"
#include "ids/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define SNOWFLAKE_MEMBERS 24 /* as many as the state page has slots */

enum snowflake_status {
    SNOWFLAKE_OK,
    SNOWFLAKE_FULL,      /* every ID of this unit is given out: *until is the next one */
    SNOWFLAKE_BEHIND,    /* the clock stepped back a little: *until is where it stood */
    SNOWFLAKE_NO_WORKER, /* no workerId is held */
    SNOWFLAKE_STALLED,   /* it stepped back by wait_below or more, and no member can stand in: ditto
                          */
    SNOWFLAKE_CEILING,   /* the clock is above every range held */
    SNOWFLAKE_EPOCH,     /* the time is before the epoch, or past the end of the time field */
    SNOWFLAKE_TOO_MANY,  /* no unit has so many */
};

struct snowflake_member {
    uint16_t worker;
    uint32_t handle; /* the name by which the holder of the lease knows this grant */
    uint32_t used;   /* sequences used in the unit of `last`: 0..layout_sequences */
    int64_t last;    /* Unix ms of the latest ID, at least lo - 1 */
    int64_t hi;      /* Unix ms, included */
    volatile uint64_t
        *mark; /* where `last` is stored (base/mark.h), or NULL; outlives the member */
};

/* A workerId that is given back: its last is exact. */
struct snowflake_retired {
    uint32_t handle;
    int64_t last;
};

struct snowflake_stats {
    uint64_t issued;
    uint64_t rotations;        /* members retired because the clock stepped back */
    uint64_t exhausted;        /* requests that found the unit used up */
    uint64_t rollbacks;        /* times that the clock was seen behind where it had been */
    struct histogram rollback; /* by how much */
    uint32_t peak;             /* as snowflake_peak, without those that cur may still add to */
};

struct snowflake {
    int64_t epoch_ms; /* Unix ms of time 0 */
    struct layout layout;
    int64_t wait_below_ms; /* a clock behind by less is waited for */
    unsigned want_active;
    unsigned nactive, nmembers;
    struct snowflake_member member[SNOWFLAKE_MEMBERS];

    /* The latest ID given out: its time, and the member it came from (NULL after a change of
     * members: then only last_ms and last_worker, by which order is kept, are known). */
    struct snowflake_member *cur;
    int64_t last_ms;
    uint16_t last_worker;
    int64_t cur_ms;     /* the time that was told when it was issued */
    uint64_t cur_first; /* cur's ID of sequence 0 in that unit */
    uint32_t sequences; /* of the layout, a unit */

    int64_t seen_ms; /* the time told last */

    /* For the holder of the leases, who takes and clears them. */
    struct snowflake_retired retired[SNOWFLAKE_MEMBERS];
    unsigned nretired;
    bool wants_renewal; /* the clock passed a ceiling */
    bool wants_worker;  /* the clock stepped back and nobody can stand in */

    struct snowflake_stats stats;
};

/* epoch_ms: Unix ms; layout is copied; wait_below_ms: 0 rotates at once; want_active:
 * 1..SNOWFLAKE_MEMBERS. */
void snowflake_init(struct snowflake *s, int64_t epoch_ms, const struct layout *layout,
                    int64_t wait_below_ms, unsigned want_active);

/* Adds a workerId that may issue at times above `last` up to hi. mark may be NULL. false: no room,
 * the handle is in use, or the layout has no room for the workerId; nothing changed. */
bool snowflake_grant(struct snowflake *s, uint32_t handle, uint16_t worker, int64_t last,
                     int64_t hi, volatile uint64_t *mark);

/* Raises the ceiling; a lower one, or an unknown handle, is ignored. */
void snowflake_extend(struct snowflake *s, uint32_t handle, int64_t hi);

/* Takes a workerId away at once. true: it was held, and *last is the exact last time used. */
bool snowflake_revoke(struct snowflake *s, uint32_t handle, int64_t *last);

/* n IDs, 1..layout_sequences, a stride of the layout apart, *first the lowest, all of the unit of
 * now_ms. *until_ms is set
 * with FULL, BEHIND and STALLED: the Unix ms at which to ask again. Never sleeps, never fails
 * otherwise; every status but OK leaves nothing issued. */
enum snowflake_status snowflake_next(struct snowflake *s, int64_t now_ms, uint32_t n,
                                     uint64_t *first, int64_t *until_ms);

/* The usual case of snowflake_next, inline: n more IDs at the same time, from the member that gave
 * out the latest ones. That was judged when the first of them was issued, hi only rises,
 * and any change of members forgets cur. false: nothing was done, ask snowflake_next. */
static inline bool snowflake_more(struct snowflake *s, int64_t now_ms, uint32_t n, uint64_t *first)
{
    struct snowflake_member *m = s->cur;
    if (!m || now_ms != s->cur_ms || m->used + n > s->sequences)
        return false;
    *first = s->cur_first + ((uint64_t)m->used << s->layout.sequence_shift);
    m->used += n;
    s->stats.issued += n;
    return true;
}

/* As snowflake_next, but 1..max IDs, as many as the workerId in turn has left in this unit; *got is
 * how many. */
enum snowflake_status snowflake_some(struct snowflake *s, int64_t now_ms, uint32_t max,
                                     uint64_t *first, uint32_t *got, int64_t *until_ms);

/* Whether an ID could be had now, without spending one: what snowflake_next would say to n = 1,
 * with FULL counted as OK. */
enum snowflake_status snowflake_peek(const struct snowflake *s, int64_t now_ms);

/* From when on a clock that is behind is behind no longer: the lowest last time of all members. */
int64_t snowflake_resumes(const struct snowflake *s);

/* Most IDs out of one workerId in one unit. */
uint32_t snowflake_peak(const struct snowflake *s);

#endif
