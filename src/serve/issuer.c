#include "serve/issuer.h"

#include "base/human.h"
#include "base/timefmt.h"

#include <stdio.h>

static struct net_step wait_for(enum net_verdict verdict, int64_t until_ms)
{
    return (struct net_step){.verdict = verdict, .until_ms = until_ms};
}

static enum issue_status refusal_of(enum snowflake_status s)
{
    switch (s) {
    case SNOWFLAKE_STALLED:
        return ISSUE_STALLED;
    case SNOWFLAKE_CEILING:
        return ISSUE_CEILING;
    case SNOWFLAKE_EPOCH:
        return ISSUE_EPOCH;
    case SNOWFLAKE_OK:
    case SNOWFLAKE_FULL:
    case SNOWFLAKE_BEHIND:
        return ISSUE_OK;
    case SNOWFLAKE_NO_WORKER:
        break;
    }
    return ISSUE_LOADING;
}

/* A millisecond that is used up only queues, without a limit; anything else waits up to max_wait.
 */
static enum issue_status hold_up(const struct issuer *i, enum snowflake_status s, int64_t until,
                                 const struct net_turn *turn, struct net_step *step)
{
    if (s == SNOWFLAKE_FULL || s == SNOWFLAKE_BEHIND) {
        *step = wait_for(NET_QUEUE, until);
        return ISSUE_PARK;
    }
    if (s == SNOWFLAKE_EPOCH || turn->waited_us >= i->max_wait_us)
        return refusal_of(s);
    *step = wait_for(NET_WAIT, s == SNOWFLAKE_STALLED ? until : INT64_MAX);
    return ISSUE_PARK;
}

/* A clock behind the latest ID is time lost: as much of it as this request is going to wait. */
static void count_wait(struct issuer *i, enum snowflake_status s, int64_t until, int64_t now,
                       const struct net_turn *turn)
{
    int64_t us, left = i->max_wait_us - turn->waited_us;
    if (s != SNOWFLAKE_BEHIND && s != SNOWFLAKE_STALLED)
        return;
    us = (until - now) * 1000;
    if (s == SNOWFLAKE_STALLED && us > left)
        us = left;
    if (us > 0)
        i->waited_us += (uint64_t)us;
}

static enum snowflake_status attempt(struct issuer *i, int64_t now, uint32_t n, bool some,
                                     uint64_t *first, uint32_t *got, int64_t *until)
{
    if (!i->started)
        return SNOWFLAKE_NO_WORKER;
    if (some)
        return snowflake_some(&i->gen, now, n, first, got, until);
    *got = n;
    return snowflake_next(&i->gen, now, n, first, until);
}

static enum issue_status issue(struct issuer *i, struct net_turn *turn, uint32_t n, bool some,
                               uint64_t *first, uint32_t *got, struct net_step *step)
{
    int64_t until = 0;
    if (turn->quota == 0) {
        *step = wait_for(NET_YIELD, 0);
        return ISSUE_PARK;
    }
    if (some && n > turn->quota)
        n = turn->quota;
    enum snowflake_status s = attempt(i, turn->wall_ms, n, some, first, got, &until);
    if (s != SNOWFLAKE_OK) {
        int64_t now = clock_wall_ms(turn->clock);
        if (now != turn->wall_ms) {
            turn->wall_ms = now;
            s = attempt(i, now, n, some, first, got, &until);
        }
        count_wait(i, s, until, now, turn);
    }
    if (s != SNOWFLAKE_OK)
        return hold_up(i, s, until, turn, step);
    turn->quota -= *got < turn->quota ? *got : turn->quota;
    return ISSUE_OK;
}

enum issue_status issuer_next(struct issuer *i, struct net_turn *turn, uint32_t n, uint64_t *first,
                              struct net_step *step)
{
    uint32_t got;
    if (issuer_more(i, turn, n, first))
        return ISSUE_OK;
    return issue(i, turn, n, false, first, &got, step);
}

enum issue_status issuer_some(struct issuer *i, struct net_turn *turn, uint32_t max,
                              uint64_t *first, uint32_t *got, struct net_step *step)
{
    return issue(i, turn, max, true, first, got, step);
}

/* Which clock is wrong cannot be known from here; but a coordinator that answers is not away. */
static void say_above(const struct issuer *i, struct buf *b)
{
    if (i->why[0]) {
        BUF_PUT_LIT(b, "each range of time held has ended, and no other can be had: ");
        buf_put_str(b, i->why);
    } else if (i->ahead_ms == 0) {
        BUF_PUT_LIT(b, "each range of time held has ended: the coordinator is away for too long");
    } else {
        BUF_PUT_LIT(b, "the clock is above every range of time held: it is ");
        human_put_duration(b, i->ahead_ms);
        BUF_PUT_LIT(b, " ahead of the coordinator's");
    }
}

static void say_behind(const struct issuer *i, struct buf *b)
{
    char until[TIMEFMT_MAX];
    BUF_PUT_LIT(b, "the clock is behind the latest ID, and no other workerId can stand in: wait "
                   "until it is ");
    buf_put_str(b, timefmt_rfc3339(until, snowflake_resumes(&i->gen)));
    if (i->alone)
        BUF_PUT_LIT(b, ", or name an N in static:N that no sidecar ever had, and another "
                       "state_dir");
}

const char *issuer_refusal(const struct issuer *i, enum issue_status s)
{
    static char text[ERR_TEXT_MAX + 64];
    struct buf b;
    switch (s) {
    case ISSUE_STALLED:
        buf_init(&b, text, sizeof text - 1);
        say_behind(i, &b);
        text[b.n] = '\0';
        return text;
    case ISSUE_CEILING:
        buf_init(&b, text, sizeof text - 1);
        say_above(i, &b);
        text[b.n] = '\0';
        return text;
    case ISSUE_EPOCH:
        return "the clock is before the epoch, or past the end of the IDs' time field";
    default:
        (void)snprintf(text, sizeof text, "no workerId is held%s%s", i->why[0] ? ": " : " yet",
                       i->why);
        return text;
    }
}

enum issue_status issuer_ready(const struct issuer *i, int64_t wall_ms)
{
    return i->started ? refusal_of(snowflake_peek(&i->gen, wall_ms)) : ISSUE_LOADING;
}

int64_t issuer_until(const struct issuer *i)
{
    int64_t until = 0;
    for (unsigned m = 0; i->started && m < i->gen.nmembers; m++)
        if (i->gen.member[m].hi > until)
            until = i->gen.member[m].hi;
    int64_t end = until > 0 ? layout_end_ms(i->gen.epoch_ms) : until; /* static:N has no ceiling */
    return until < end ? until : end;
}
