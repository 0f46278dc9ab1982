#include "ids/snowflake_ahead.h"

static int64_t unit_of(const struct snowflake *s, int64_t ms)
{
    return s->epoch_ms + layout_unit(&s->layout, ms - s->epoch_ms);
}

/* A mark may be any ms of its unit: what comes next is of a later one, whichever workerId it has.
 */
void snowflake_ahead_init(struct snowflake_ahead *a, const struct snowflake *s, int64_t latest_ms)
{
    a->floor_ms = latest_ms > 0 ? unit_of(s, latest_ms) + s->layout.unit_ms : INT64_MIN;
    a->clock_ms = a->seen_ms = a->stuck_ms = INT64_MIN;
    a->began_ms = INT64_MAX;
}

/* ---- the logical time -------------------------------------------------------------------------
 */

/* By as much as makes the generator beneath rotate: a little is not waited for, since the latest
 * time does not need the clock. */
static bool has_stepped_back(const struct snowflake_ahead *a, const struct snowflake *s,
                             int64_t now_ms)
{
    return !a->hold && now_ms < a->clock_ms && a->clock_ms - now_ms >= s->wait_below_ms;
}

static int64_t logical(const struct snowflake_ahead *a, const struct snowflake *s, int64_t now_ms)
{
    if (has_stepped_back(a, s, now_ms))
        return now_ms;
    return max64(now_ms, snowflake_ahead_latest(a, s));
}

static void note_clock(struct snowflake_ahead *a, struct snowflake *s, int64_t now_ms)
{
    if (now_ms < a->seen_ms) {
        s->stats.rollbacks++;
        histogram_add(&s->stats.rollback, (a->seen_ms - now_ms) * 1000, 1);
    }
    a->seen_ms = now_ms;
}

static void note_issued(struct snowflake_ahead *a, const struct snowflake *s, int64_t now_ms,
                        int64_t latest_before_ms)
{
    if (has_stepped_back(a, s, now_ms)) /* another workerId has begun at the clock */
        a->clock_ms = a->floor_ms = INT64_MIN;
    a->clock_ms = max64(a->clock_ms, unit_of(s, now_ms));
    if (s->last_ms != latest_before_ms)
        a->began_ms = now_ms;
}

/* ---- issuing ----------------------------------------------------------------------------------
 */

struct asked {
    uint32_t n;
    bool some;
    uint64_t *first;
    uint32_t *got;
};

static enum snowflake_status issue_at(struct snowflake *s, int64_t ms, const struct asked *q,
                                      int64_t *until)
{
    *q->got = q->n;
    s->seen_ms = INT64_MIN; /* it is told no clock: how that went back is counted above */
    return q->some ? snowflake_some(s, ms, q->n, q->first, q->got, until)
                   : snowflake_next(s, ms, q->n, q->first, until);
}

/* The unit before next is used up. Whether next may be begun now; else *until is when. */
static bool may_carry(const struct snowflake_ahead *a, const struct snowflake *s,
                      struct snowflake_clock c, int64_t next, int64_t *until)
{
    int64_t unit_ms = s->layout.unit_ms;
    bool is_ahead = c.now_ms < next - unit_ms;
    *until = is_ahead ? c.now_ms + unit_ms : next;
    if (next > c.most_ms)
        return false;
    if (a->borrow)
        return true;
    if (is_ahead && c.now_ms >= a->began_ms && c.now_ms < a->began_ms + unit_ms) {
        *until = a->began_ms + unit_ms;
        return false;
    }
    return is_ahead;
}

/* The unit at is used up, and the next one farther above what may be lent than is waited for: the
 * time by which it was lent was wrong, and was taken back. */
static bool is_beyond(const struct snowflake_ahead *a, const struct snowflake *s,
                      struct snowflake_clock c, int64_t at)
{
    return a->hold && c.now_ms < at && at > c.most_ms && at - c.most_ms >= s->wait_below_ms;
}

/* None that is held is good for the time yet, as where none was used before the clock stepped back.
 * The first ms of the unit in which one is. */
static int64_t good_from(const struct snowflake *s, int64_t until)
{
    return unit_of(s, until) + s->layout.unit_ms;
}

static bool is_behind(enum snowflake_status r)
{
    return r == SNOWFLAKE_BEHIND || r == SNOWFLAKE_STALLED;
}

/* Another time for which to ask, or the one that was refused: it is refused then. */
static int64_t another_time(const struct snowflake_ahead *a, const struct snowflake *s,
                            struct snowflake_clock c, enum snowflake_status r, int64_t refused,
                            int64_t *until)
{
    int64_t next = refused;
    if (r == SNOWFLAKE_FULL) {
        next = *until;
        return may_carry(a, s, c, next, until) ? next : refused;
    }
    if (a->hold && is_behind(r))
        next = good_from(s, *until);
    return next <= c.most_ms ? next : refused;
}

enum snowflake_status snowflake_ahead_issue(struct snowflake_ahead *a, struct snowflake *s,
                                            struct snowflake_clock c, uint32_t n, bool some,
                                            uint64_t *first, uint32_t *got, int64_t *until_ms)
{
    const struct asked q = {n, some, first, got};
    bool wanted = s->wants_worker, used_up = false;
    int64_t latest = s->last_ms, due = logical(a, s, c.now_ms), at, next = due;
    enum snowflake_status r;
    note_clock(a, s, c.now_ms);
    do {
        at = next;
        s->wants_worker = wanted;
        r = issue_at(s, at, &q, until_ms);
        used_up |= r == SNOWFLAKE_FULL;
        next = another_time(a, s, c, r, at, until_ms);
    } while (next > at);
    if (r == SNOWFLAKE_CEILING && used_up) { /* all up to hi is, and the clock is below */
        *until_ms = c.now_ms + s->layout.unit_ms;
        return SNOWFLAKE_FULL;
    }
    if (r == SNOWFLAKE_FULL && is_beyond(a, s, c, at)) {
        s->wants_renewal = true;
        *until_ms = a->stuck_ms = at;
        return SNOWFLAKE_CEILING;
    }
    if (r == SNOWFLAKE_OK) {
        a->stuck_ms = INT64_MIN;
        a->carried += at > due;
        note_issued(a, s, c.now_ms, latest);
    }
    return r;
}

enum snowflake_status snowflake_ahead_peek(const struct snowflake_ahead *a,
                                           const struct snowflake *s, struct snowflake_clock c)
{
    int64_t due = logical(a, s, c.now_ms);
    enum snowflake_status r = snowflake_peek(s, due);
    if (r == SNOWFLAKE_OK && due == a->stuck_ms && is_beyond(a, s, c, due))
        return SNOWFLAKE_CEILING;
    bool good = a->hold && is_behind(r) && good_from(s, snowflake_resumes(s)) <= c.most_ms;
    return good ? SNOWFLAKE_OK : r;
}
