#include "ids/snowflake.h"

#include "base/mark.h"

#include <string.h>

void snowflake_init(struct snowflake *s, int64_t epoch_ms, int64_t wait_below_ms,
                    unsigned want_active)
{
    memset(s, 0, sizeof *s);
    s->epoch_ms = epoch_ms;
    s->wait_below_ms = wait_below_ms;
    s->want_active = want_active;
    s->last_ms = INT64_MIN;
    s->seen_ms = INT64_MIN;
}

/* ---- members ----------------------------------------------------------------------------------
 */

static struct snowflake_member *find(struct snowflake *s, uint32_t handle)
{
    for (unsigned i = 0; i < s->nmembers; i++)
        if (s->member[i].handle == handle)
            return &s->member[i];
    return NULL;
}

/* What cur has given out of its millisecond counts once that is over; before, it is looked up. */
uint32_t snowflake_peak(const struct snowflake *s)
{
    return s->cur && s->cur->used > s->stats.peak ? s->cur->used : s->stats.peak;
}

static struct snowflake_member remove_at(struct snowflake *s, unsigned i)
{
    s->stats.peak = snowflake_peak(s);
    struct snowflake_member m = s->member[i];
    memmove(&s->member[i], &s->member[i + 1], (s->nmembers - i - 1) * sizeof m);
    s->nmembers--;
    s->nactive -= i < s->nactive;
    s->cur = NULL;
    return m;
}

static void insert(struct snowflake *s, struct snowflake_member m, bool active)
{
    s->stats.peak = snowflake_peak(s);
    unsigned i = s->nmembers;
    if (active)
        for (i = 0; i < s->nactive && s->member[i].worker < m.worker;)
            i++;
    memmove(&s->member[i + 1], &s->member[i], (s->nmembers - i) * sizeof m);
    s->member[i] = m;
    s->nmembers++;
    s->nactive += active;
    s->cur = NULL;
}

bool snowflake_grant(struct snowflake *s, uint32_t handle, uint16_t worker, int64_t last,
                     int64_t hi, volatile uint64_t *mark)
{
    if (s->nmembers == SNOWFLAKE_MEMBERS || find(s, handle))
        return false;
    struct snowflake_member m = {.worker = worker,
                                 .handle = handle,
                                 .used = LAYOUT_SEQUENCES,
                                 .last = last,
                                 .hi = hi,
                                 .mark = mark};
    insert(s, m, s->nactive < s->want_active);
    return true;
}

void snowflake_extend(struct snowflake *s, uint32_t handle, int64_t hi)
{
    struct snowflake_member *m = find(s, handle);
    if (m && hi > m->hi)
        m->hi = hi;
}

bool snowflake_revoke(struct snowflake *s, uint32_t handle, int64_t *last)
{
    struct snowflake_member *m = find(s, handle);
    if (!m)
        return false;
    *last = m->last;
    (void)remove_at(s, (unsigned)(m - s->member));
    return true;
}

/* ---- judging ----------------------------------------------------------------------------------
 */

static enum snowflake_status judge(const struct snowflake *s, const struct snowflake_member *m,
                                   int64_t now, uint32_t n)
{
    if (now > m->hi)
        return SNOWFLAKE_CEILING;
    if (now < m->last)
        return m->last - now < s->wait_below_ms ? SNOWFLAKE_BEHIND : SNOWFLAKE_STALLED;
    if (now == m->last && m->used + n > LAYOUT_SEQUENCES)
        return SNOWFLAKE_FULL;
    /* Order within the millisecond: never back to a lower workerId. */
    if (now == s->last_ms && m->worker < s->last_worker)
        return SNOWFLAKE_FULL;
    return SNOWFLAKE_OK;
}

/* What stands in the way, over all active members. */
struct verdict {
    int pick; /* index of the member to issue from, or -1 */
    bool any[SNOWFLAKE_EPOCH + 1];
    int64_t until; /* earliest time at which one that waits may go on */
};

static void note_until(struct verdict *v, int64_t until)
{
    if (until < v->until)
        v->until = until;
}

static struct verdict judge_active(const struct snowflake *s, int64_t now, uint32_t n)
{
    struct verdict v = {.pick = -1, .until = INT64_MAX};
    /* A little behind the latest ID given out: another member could issue, but out of order. */
    if (now < s->last_ms && s->last_ms - now < s->wait_below_ms && s->nactive > 0) {
        v.any[SNOWFLAKE_BEHIND] = true;
        note_until(&v, s->last_ms);
        return v;
    }
    for (unsigned i = 0; i < s->nactive; i++) {
        const struct snowflake_member *m = &s->member[i];
        enum snowflake_status r = judge(s, m, now, n);
        v.any[r] = true;
        if (r == SNOWFLAKE_OK && v.pick < 0)
            v.pick = (int)i;
        else if (r == SNOWFLAKE_FULL)
            note_until(&v, now + 1);
        else if (r == SNOWFLAKE_BEHIND || r == SNOWFLAKE_STALLED)
            note_until(&v, m->last);
    }
    return v;
}

/* A spare that can issue, or -1; *full says whether one could in the next millisecond. */
static int usable_spare(const struct snowflake *s, int64_t now, uint32_t n, bool *full)
{
    *full = false;
    for (unsigned i = s->nactive; i < s->nmembers; i++) {
        enum snowflake_status r = judge(s, &s->member[i], now, n);
        if (r == SNOWFLAKE_OK)
            return (int)i;
        *full |= r == SNOWFLAKE_FULL;
    }
    return -1;
}

/* Waits are told before refusals, since they end by themselves. */
static enum snowflake_status refusal(const struct verdict *v)
{
    static const enum snowflake_status order[] = {SNOWFLAKE_FULL, SNOWFLAKE_BEHIND,
                                                  SNOWFLAKE_STALLED, SNOWFLAKE_CEILING};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        if (v->any[order[i]])
            return order[i];
    return SNOWFLAKE_NO_WORKER;
}

/* ---- rotation ---------------------------------------------------------------------------------
 */

/* Only with somebody to stand in: else the clock may pass `last` first, and the member goes on. */
static void retire_stalled(struct snowflake *s, int64_t now)
{
    for (unsigned i = 0; i < s->nactive;) {
        bool stalled = judge(s, &s->member[i], now, 1) == SNOWFLAKE_STALLED;
        if (!stalled || s->nretired == SNOWFLAKE_MEMBERS) {
            i++;
            continue;
        }
        struct snowflake_member m = remove_at(s, i);
        s->retired[s->nretired++] = (struct snowflake_retired){m.handle, m.last};
        s->stats.rotations++;
    }
}

/* A ceiling that was passed may be raised again: its member steps back, and is not given back. */
static void step_back_expired(struct snowflake *s, int64_t now)
{
    for (unsigned i = 0; i < s->nactive;) {
        if (now > s->member[i].hi)
            insert(s, remove_at(s, i), false);
        else
            i++;
    }
}

/* Puts a spare into the active set where no active member can issue, and judges again. */
static struct verdict stand_in(struct snowflake *s, int64_t now, uint32_t n, struct verdict v)
{
    bool full;
    int spare = usable_spare(s, now, n, &full);
    if (spare < 0) {
        if (full) {
            v.any[SNOWFLAKE_FULL] = true;
            note_until(&v, now + 1);
        }
        return v;
    }
    struct snowflake_member m = remove_at(s, (unsigned)spare);
    retire_stalled(s, now);
    step_back_expired(s, now);
    insert(s, m, true);
    return judge_active(s, now, n);
}

/* Fills empty places among the active with spares that can issue. */
static void promote(struct snowflake *s, int64_t now)
{
    while (s->nactive < s->want_active) {
        bool full;
        int spare = usable_spare(s, now, 1, &full);
        if (spare < 0)
            return;
        insert(s, remove_at(s, (unsigned)spare), true);
    }
}

/* ---- issuing ----------------------------------------------------------------------------------
 */

static void note_time(struct snowflake *s, int64_t now)
{
    if (now < s->seen_ms) {
        s->stats.rollbacks++;
        histogram_add(&s->stats.rollback, (s->seen_ms - now) * 1000, 1);
    }
    s->seen_ms = now;
}

static uint64_t issue(struct snowflake *s, struct snowflake_member *m, int64_t now, uint32_t n)
{
    s->stats.peak = snowflake_peak(s);
    if (m->last != now) {
        m->last = now;
        m->used = 0;
        if (m->mark)
            mark_store(m->mark, now);
    }
    uint64_t first = layout_compose(now - s->epoch_ms, m->worker, m->used);
    m->used += n;
    s->cur = m;
    s->last_ms = now;
    s->last_worker = m->worker;
    s->stats.issued += n;
    return first;
}

/* The member to issue n IDs from, or NULL and why not. */
static struct snowflake_member *choose(struct snowflake *s, int64_t now, uint32_t n,
                                       enum snowflake_status *why, int64_t *until)
{
    note_time(s, now);
    if (now < s->epoch_ms || now > layout_end_ms(s->epoch_ms)) {
        *why = SNOWFLAKE_EPOCH;
        *until = INT64_MAX;
        return NULL;
    }
    if (s->nactive < s->want_active)
        promote(s, now);
    struct verdict v = judge_active(s, now, n);
    s->wants_renewal |= v.any[SNOWFLAKE_CEILING];
    bool waits = v.any[SNOWFLAKE_FULL] || v.any[SNOWFLAKE_BEHIND];
    if (v.pick < 0 && !waits)
        v = stand_in(s, now, n, v);
    if (v.pick < 0) {
        *why = refusal(&v);
        *until = v.until;
        s->stats.exhausted += *why == SNOWFLAKE_FULL;
        s->wants_worker |= *why == SNOWFLAKE_STALLED;
        return NULL;
    }
    if (v.any[SNOWFLAKE_STALLED]) {
        uint16_t worker = s->member[v.pick].worker;
        retire_stalled(s, now);
        for (v.pick = 0; s->member[v.pick].worker != worker;)
            v.pick++;
    }
    return &s->member[v.pick];
}

enum snowflake_status snowflake_next(struct snowflake *s, int64_t now_ms, uint32_t n,
                                     uint64_t *first, int64_t *until_ms)
{
    enum snowflake_status why = SNOWFLAKE_OK;
    if (snowflake_more(s, now_ms, n, first))
        return SNOWFLAKE_OK;
    struct snowflake_member *m = choose(s, now_ms, n, &why, until_ms);
    if (!m)
        return why;
    *first = issue(s, m, now_ms, n);
    return SNOWFLAKE_OK;
}

enum snowflake_status snowflake_some(struct snowflake *s, int64_t now_ms, uint32_t max,
                                     uint64_t *first, uint32_t *got, int64_t *until_ms)
{
    enum snowflake_status r = snowflake_next(s, now_ms, 1, first, until_ms);
    if (r != SNOWFLAKE_OK)
        return r;
    uint32_t left = LAYOUT_SEQUENCES - s->cur->used;
    uint32_t more = max - 1 < left ? max - 1 : left;
    if (more > 0)
        (void)issue(s, s->cur, now_ms, more);
    *got = 1 + more;
    return SNOWFLAKE_OK;
}

int64_t snowflake_resumes(const struct snowflake *s)
{
    int64_t at = s->nmembers ? s->member[0].last : 0;
    for (unsigned i = 1; i < s->nmembers; i++)
        at = s->member[i].last < at ? s->member[i].last : at;
    return at;
}

enum snowflake_status snowflake_peek(const struct snowflake *s, int64_t now_ms)
{
    if (now_ms < s->epoch_ms || now_ms > layout_end_ms(s->epoch_ms))
        return SNOWFLAKE_EPOCH;
    struct verdict v = judge_active(s, now_ms, 1);
    bool full = false;
    if (v.pick >= 0 || v.any[SNOWFLAKE_FULL] || usable_spare(s, now_ms, 1, &full) >= 0 || full)
        return SNOWFLAKE_OK;
    return refusal(&v);
}
