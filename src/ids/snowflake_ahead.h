/*
 * A snowflake whose IDs may be of times above its clock: a logical time in the clock's place.
 *
 *   borrow   a unit that is used up is carried into the next one, so that a burst does not wait
 *   hold     a clock that steps back is not followed: IDs go on in the latest time
 *
 *    clock    ----+------ now ----------------------- most -------> time
 *    logical      '---- max(now, latest) ---> carried up to here, and never above hi
 *
 * Both are this sidecar's own business, and no part of the pool's identity: whoever holds a
 * workerId issues in its range alone, and ranges of two holders have no ms in common, whatever the
 * clock of either says. Three things hold only of IDs that are not above the time, and are seen to
 * elsewhere:
 *   - A pool that has lost data may grant a workerId again above the time of the loss plus its
 *     settle (coord/rules.h). A settle is no shorter than a first horizon, so the logical time gets
 *     no farther than this above the time at which the coordinator heard of all that is held last,
 *     or than a clock would be believed: most_ms, which is the caller's to say.
 *   - A state page that was put back may have marks that are too old. Beginning above the clock
 *     makes up for that no more, so none is taken over (lease/lease.h).
 *   - With static:N nobody but the page knows up to when IDs were issued: refused.
 *
 * Invariants
 *   - The generator beneath is as it always is, and judges each time by its ranges: what is carried
 *     is the time that it is told. So its invariants are these, too: lo..hi, the mark
 *     before the ID.
 *   - With hold IDs strictly increase. The logical time outlives each change of workerId. A clock
 *     that is believed too soon would stay: told is what the coordinator's time bears out.
 *   - borrow alone lets IDs go back as rotations do: only where the clock has stepped back by
 *     wait_below.
 *   - A unit is carried once no active workerId has any more of it; with hold alone, once the clock
 *     has counted a unit since it was begun, so that a clock which is behind leads no faster than
 *     one which is right.
 */
#ifndef SIDFLAKE_IDS_SNOWFLAKE_AHEAD_H
#define SIDFLAKE_IDS_SNOWFLAKE_AHEAD_H

#include "base/int64.h"
#include "ids/snowflake.h"

struct snowflake_ahead {
    bool borrow, hold; /* neither: not ahead */
    int64_t floor_ms;  /* Unix ms: none is of an earlier unit, INT64_MIN: any */
    int64_t clock_ms; /* the unit of the highest clock since it stepped back; INT64_MIN: none yet */
    int64_t began_ms; /* what the clock said when the latest unit was begun */
    int64_t seen_ms;  /* what it said last */
    int64_t stuck_ms; /* the unit that was used up, with none that may come next; else INT64_MIN */
    uint64_t carried; /* requests whose IDs are of a later unit than was due */
};

/* What the clock is held to: the coordinator's time when it heard of all that is held last, and
 * what was counted since. */
struct snowflake_trust {
    int64_t ms, mono_ms; /* Unix ms, and the monotonic ms at which it was told */
    int64_t skew_ms;     /* with hold the clock is believed up to so much above it */
    int64_t reach_ms;    /* the time is carried no farther above ms than this, or than a clock is
                          * believed; 0: it was not told yet, ms is what is known */
};

/* The clock as it is believed, and how far the time may be carried, Unix ms both. */
struct snowflake_clock {
    int64_t now_ms, most_ms;
};

/* One that is farther ahead is wrong, and may be right again in a moment. Without hold it leaves no
 * trace then, so there it is taken as it is. */
static inline struct snowflake_clock snowflake_believed(const struct snowflake_ahead *a,
                                                        const struct snowflake_trust *t,
                                                        int64_t now_ms, int64_t mono_ms)
{
    int64_t time = t->ms + (mono_ms - t->mono_ms);
    int64_t most = t->reach_ms > 0 ? max64(t->ms + t->reach_ms, time + t->skew_ms) : time;
    return (struct snowflake_clock){a->hold ? min64(now_ms, time + t->skew_ms) : now_ms, most};
}

/* Unix ms of the unit of the latest ID, or below which none is; INT64_MIN: there was none. */
static inline int64_t snowflake_ahead_latest(const struct snowflake_ahead *a,
                                             const struct snowflake *s)
{
    return max64(s->last_ms, a->floor_ms);
}

/* What the generator s beneath has begun: right behind snowflake_init. latest_ms: Unix ms of the
 * latest ID that is known of, by a mark; 0: of none. */
void snowflake_ahead_init(struct snowflake_ahead *a, const struct snowflake *s, int64_t latest_ms);

/* As snowflake_some with some, else as snowflake_next of n IDs, of which *got is then n. *until_ms
 * is by the clock that was told. FULL with wants_renewal: all up to hi is used up, though now is
 * not there yet. */
enum snowflake_status snowflake_ahead_issue(struct snowflake_ahead *a, struct snowflake *s,
                                            struct snowflake_clock c, uint32_t n, bool some,
                                            uint64_t *first, uint32_t *got, int64_t *until_ms);

/* The usual case of it, inline: as snowflake_more. What the clock said last was judged then;
 * another time is judged anew. */
static inline bool snowflake_ahead_more(const struct snowflake_ahead *a, struct snowflake *s,
                                        int64_t now_ms, uint32_t n, uint64_t *first)
{
    return now_ms == a->seen_ms && snowflake_more(s, now_ms, n, first);
}

/* As snowflake_peek. */
enum snowflake_status snowflake_ahead_peek(const struct snowflake_ahead *a,
                                           const struct snowflake *s, struct snowflake_clock c);

#endif
