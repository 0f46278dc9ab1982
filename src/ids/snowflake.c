#include "ids/snowflake.h"

#include "base/mark.h"

#include <string.h>

void snowflake_init(struct snowflake *s, int64_t epoch_ms, const struct layout *layout,
                    int64_t wait_below_ms, unsigned want_active)
{
    memset(s, 0, sizeof *s);
    s->epoch_ms = epoch_ms;
    s->layout = *layout;
    s->sequences = layout_sequences(layout);
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
    if (s->nmembers == SNOWFLAKE_MEMBERS || find(s, handle) || worker >= layout_workers(&s->layout))
        return false;
    struct snowflake_member m = {.worker = worker,
                                 .handle = handle,
                                 .used = s->sequences,
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

/* A time that was told, and the beginning of its unit: not after it, and less than a unit before.
 */
struct instant {
    int64_t ms, unit;
};

static struct instant instant_of(const struct snowflake *s, int64_t now_ms)
{
    return (struct instant){now_ms, s->epoch_ms + layout_unit(&s->layout, now_ms - s->epoch_ms)};
}

static int64_t next_unit(const struct snowflake *s, struct instant now)
{
    return now.unit + s->layout.unit_ms;
}

/* Whether an ID of this member would be below one of that workerId, of the same unit. */
static bool is_below(const struct snowflake *s, const struct snowflake_member *m, uint16_t worker)
{
    return layout_worker_is_lowest(&s->layout) ? m->worker != worker : m->worker < worker;
}

/* Whether it would be below the latest one. Of a unit in which none was given out yet, those count
 * that members gave out before an upgrade or a restart. */
static bool goes_back(const struct snowflake *s, const struct snowflake_member *m,
                      struct instant now)
{
    if (now.unit == s->last_ms)
        return is_below(s, m, s->last_worker);
    for (unsigned i = 0; s->last_ms < now.unit && i < s->nmembers; i++)
        if (s->member[i].last == now.unit && is_below(s, m, s->member[i].worker))
            return true;
    return false;
}

static enum snowflake_status judge(const struct snowflake *s, const struct snowflake_member *m,
                                   struct instant now, uint32_t n)
{
    if (now.unit > m->hi)
        return SNOWFLAKE_CEILING;
    if (next_unit(s, now) <= m->last)
        return m->last - now.ms < s->wait_below_ms ? SNOWFLAKE_BEHIND : SNOWFLAKE_STALLED;
    /* The unit began before this member's range, or before what another life of it has used. */
    if (now.unit < m->last)
        return SNOWFLAKE_FULL;
    if (now.unit == m->last && m->used + n > s->sequences)
        return SNOWFLAKE_FULL;
    if (goes_back(s, m, now))
        return SNOWFLAKE_FULL;
    return SNOWFLAKE_OK;
}

/* What stands in the way, over all active members. */
struct verdict {
    int pick; /* index of the member to issue from, or -1 */
    bool any[SNOWFLAKE_TOO_MANY + 1];
    int64_t until; /* earliest time at which one that waits may go on */
};

static void note_until(struct verdict *v, int64_t until)
{
    if (until < v->until)
        v->until = until;
}

static struct verdict judge_active(const struct snowflake *s, struct instant now, uint32_t n)
{
    struct verdict v = {.pick = -1, .until = INT64_MAX};
    /* A little behind the latest ID given out: another member could issue, but out of order. */
    if (now.ms < s->last_ms && s->last_ms - now.ms < s->wait_below_ms && s->nactive > 0) {
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
            note_until(&v, next_unit(s, now));
        else if (r == SNOWFLAKE_BEHIND || r == SNOWFLAKE_STALLED)
            note_until(&v, m->last);
    }
    return v;
}

/* A spare that can issue, or -1; *full says whether one could in the next unit. */
static int usable_spare(const struct snowflake *s, struct instant now, uint32_t n, bool *full)
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
static void retire_stalled(struct snowflake *s, struct instant now)
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
static void step_back_expired(struct snowflake *s, struct instant now)
{
    for (unsigned i = 0; i < s->nactive;) {
        if (now.unit > s->member[i].hi)
            insert(s, remove_at(s, i), false);
        else
            i++;
    }
}

/* Puts a spare into the active set where no active member can issue, and judges again. */
static struct verdict stand_in(struct snowflake *s, struct instant now, uint32_t n,
                               struct verdict v)
{
    bool full;
    int spare = usable_spare(s, now, n, &full);
    if (spare < 0) {
        if (full) {
            v.any[SNOWFLAKE_FULL] = true;
            note_until(&v, next_unit(s, now));
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
static void promote(struct snowflake *s, struct instant now)
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

static uint64_t issue(struct snowflake *s, struct snowflake_member *m, struct instant now,
                      uint32_t n)
{
    s->stats.peak = snowflake_peak(s);
    if (m->last != now.unit) {
        m->last = now.unit;
        m->used = 0;
        if (m->mark)
            mark_store(m->mark, now.unit);
    }
    s->cur = m;
    s->cur_ms = now.ms;
    s->cur_first = layout_compose(&s->layout, now.unit - s->epoch_ms, m->worker, 0);
    s->last_ms = now.unit;
    s->last_worker = m->worker;
    uint64_t first = s->cur_first + ((uint64_t)m->used << s->layout.sequence_shift);
    m->used += n;
    s->stats.issued += n;
    return first;
}

static bool in_field(const struct snowflake *s, int64_t now_ms)
{
    return now_ms >= s->epoch_ms && now_ms <= layout_end_ms(&s->layout, s->epoch_ms);
}

/* The member to issue n IDs from, or NULL and why not. */
static struct snowflake_member *choose(struct snowflake *s, struct instant now, uint32_t n,
                                       enum snowflake_status *why, int64_t *until)
{
    note_time(s, now.ms);
    if (!in_field(s, now.ms)) {
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
    if (n > s->sequences) {
        *until_ms = INT64_MAX;
        return SNOWFLAKE_TOO_MANY;
    }
    struct instant now = instant_of(s, now_ms);
    struct snowflake_member *m = choose(s, now, n, &why, until_ms);
    if (!m)
        return why;
    *first = issue(s, m, now, n);
    return SNOWFLAKE_OK;
}

enum snowflake_status snowflake_some(struct snowflake *s, int64_t now_ms, uint32_t max,
                                     uint64_t *first, uint32_t *got, int64_t *until_ms)
{
    enum snowflake_status r = snowflake_next(s, now_ms, 1, first, until_ms);
    if (r != SNOWFLAKE_OK)
        return r;
    uint32_t left = s->sequences - s->cur->used;
    uint32_t more = max - 1 < left ? max - 1 : left;
    s->cur->used += more;
    s->stats.issued += more;
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
    if (!in_field(s, now_ms))
        return SNOWFLAKE_EPOCH;
    struct instant now = instant_of(s, now_ms);
    struct verdict v = judge_active(s, now, 1);
    bool full = false;
    if (v.pick >= 0 || v.any[SNOWFLAKE_FULL] || usable_spare(s, now, 1, &full) >= 0 || full)
        return SNOWFLAKE_OK;
    return refusal(&v);
}
