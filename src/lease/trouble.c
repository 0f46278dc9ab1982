#include "lease/trouble.h"

#include "base/fnv.h"

#define REMIND_MS 60000 /* a trouble that goes on is told again, one without failures is over */
#define CHANGE_MS 10000

/* Nothing is needed but somebody who answers: 0. */
static unsigned needs(const struct trouble_call *c)
{
    static const unsigned of[] = {
        [LEASE_DESCRIBE] = 1, [LEASE_INIT] = 2,  [LEASE_RELEASE] = 2,
        [LEASE_RENEW] = 3,    [LEASE_CLAIM] = 4, [LEASE_FINISHED] = 0,
    };
    return c->answered ? of[c->kind] : 0;
}

/* Of what is no digit. */
static uint32_t reason_of(const char *why)
{
    uint32_t h = FNV32_NOTHING;
    for (; *why; why++)
        if (*why < '0' || *why > '9')
            h = fnv32_byte(h, (uint8_t)*why);
    return h;
}

static bool is_over(struct trouble *t, const struct trouble_call *c)
{
    bool quiet = c->mono_ms - t->failed_ms >= REMIND_MS;
    if (needs(c) < t->needs && !quiet)
        return false;
    t->needs = 0;
    if (t->status == COORD_OK)
        return false;
    t->ended = t->status;
    t->status = COORD_OK;
    return true;
}

static bool is_back(const struct trouble *t, const struct trouble_call *c)
{
    return c->status == t->ended && c->answered == t->answered &&
           c->mono_ms - t->began_ms < CHANGE_MS;
}

static bool may_tell(struct trouble *t, const struct trouble_call *c, bool same, bool state)
{
    struct log_limit *limit = same ? &t->remind : state ? &t->state : &t->why;
    if (t->status == COORD_OK)
        limit = is_back(t, c) ? &t->back : NULL;
    return !limit || log_limit_pass(limit, c->mono_ms, same ? REMIND_MS : CHANGE_MS, NULL);
}

bool trouble_is_news(struct trouble *t, const struct trouble_call *c)
{
    if (c->status == COORD_OK)
        return is_over(t, c);
    uint32_t reason = reason_of(c->why);
    bool state = t->status != c->status || t->answered != c->answered;
    bool same = !state && t->reason == reason;
    t->failed_ms = c->mono_ms;
    if (needs(c) > t->needs)
        t->needs = needs(c);
    if (!may_tell(t, c, same, state))
        return false;
    if (t->status == COORD_OK)
        t->began_ms = c->mono_ms;
    t->remind.next_ms = c->mono_ms + REMIND_MS;
    t->status = c->status;
    t->answered = c->answered;
    t->reason = reason;
    return true;
}

enum log_level trouble_level(const struct trouble *t)
{
    return t->status == COORD_OK || t->status == COORD_WAIT ? LOG_LVL_INFO : LOG_LVL_ERROR;
}

const char *trouble_message(const struct trouble *t)
{
    static const char *const messages[] = {
        [COORD_OK] = "coordinator answers again",
        [COORD_WAIT] = "a workerId is waited for",
        [COORD_EXHAUSTED] = "no workerId is free",
        [COORD_LOST] = "coordinator refuses",
        [COORD_NOPOOL] = "no pool",
        [COORD_EXISTS] = "coordinator refuses",
        [COORD_WRONGPOOL] = "the pool is another one",
        [COORD_BADCLOCK] = "the coordinator's clock is behind its own past",
        [COORD_SKEW] = "clocks differ",
        [COORD_CLOSED] = "the pool is closed",
        [COORD_REFUSED] = "coordinator refuses",
        [COORD_DOWN] = "coordinator down",
    };
    if (t->status == COORD_OK && t->ended == COORD_CLOSED) /* which answered all the while */
        return "the pool is open again";
    return t->status == COORD_DOWN && t->answered ? "coordinator not ready" : messages[t->status];
}
