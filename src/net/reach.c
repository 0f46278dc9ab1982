/*
 * Whether a server can be reached, and when it is tried again.
 *
 * Only what says something about the server holds others back: addresses that let nobody connect,
 * and shared links that break off before they have brought anything. A link of a client's own that
 * breaks, and what we are short of ourselves, concern those who met with it.
 */
#include "base/log.h"
#include "net/private.h"

#include <stdio.h>

#define BACKOFF_US  INT64_C(50000) /* doubled with each failure, up to … */
#define BACKOFF_MAX INT64_C(1000000)
#define SAY_MS      10000 /* between two lines about the same */

static void hold_back(struct backoff *b, int64_t now_us)
{
    b->step_us = b->step_us == 0 ? BACKOFF_US : 2 * b->step_us;
    if (b->step_us > BACKOFF_MAX)
        b->step_us = BACKOFF_MAX;
    b->until_us = now_us + b->step_us;
}

bool upstream_waits(const struct upstream *up, unsigned lane, unsigned speaks)
{
    int64_t now = upstream_now_us(up);
    return now < up->connects.until_us || now < up->refused[speaks].until_us ||
           (lane < UPSTREAM_SHARED && now < up->lane[lane].until_us);
}

static bool may_say(struct upstream *up, enum upstream_trouble t, uint64_t *more)
{
    return log_limit_pass(&up->limit[t], upstream_now_us(up) / 1000, SAY_MS, more);
}

/* What clients are told that ask for it next. */
static void set_why(struct upstream *up, const char *why)
{
    (void)snprintf(up->why, sizeof up->why, "%s", why);
}

/* Said once, until the log has said that it is back. */
static void lost(struct upstream *up, enum upstream_trouble t, const char *why)
{
    uint64_t more = 0;
    set_why(up, why);
    up->stats.up = false;
    if (up->said == SAID_LOST || !may_say(up, t, &more))
        return;
    up->said = SAID_LOST;
    log_warn("upstream lost", kv_str("protocol", up->svc->name), kv_str("why", why),
             kv_u64("more", more));
}

static bool has_shared(const struct upstream *up)
{
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++)
        if (up->shared[i] && up->shared[i]->state == LINK_OPEN)
            return true;
    return false;
}

void upstream_missed(struct upstream *up, uint32_t round, const char *why)
{
    up->stats.errors++;
    if (round != up->round) /* others that tried at the same time have said so */
        return;
    up->round++;
    up->at = (up->at + 1) % up->naddr;
    if (++up->missed < up->naddr)
        return;
    up->missed = 0;
    hold_back(&up->connects, upstream_now_us(up));
    set_why(up, why);
    if (!has_shared(up))
        lost(up, TROUBLE_CONNECT, why);
}

void upstream_lookup_failed(struct upstream *up, const char *why)
{
    char text[ERR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "cannot look up %s: %s", up->host, why);
    up->stats.errors++;
    if (upstream_now_us(up) >= up->connects.until_us)
        hold_back(&up->connects, upstream_now_us(up));
    set_why(up, text);
    if (!has_shared(up))
        lost(up, TROUBLE_CONNECT, text);
}

void upstream_connected(struct upstream *up)
{
    up->round++;
    up->missed = 0;
    up->connects = (struct backoff){0, 0};
}

void upstream_refused(struct upstream *up, unsigned speaks, const char *why)
{
    uint64_t more = 0;
    up->stats.errors++;
    if (upstream_now_us(up) >= up->refused[speaks].until_us) /* else others have said so */
        hold_back(&up->refused[speaks], upstream_now_us(up));
    set_why(up, why);
    if (!has_shared(up))
        lost(up, TROUBLE_LOGIN, why);
    else if (may_say(up, TROUBLE_LOGIN, &more))
        log_warn("upstream lets nobody else in", kv_str("protocol", up->svc->name),
                 kv_str("why", why), kv_u64("more", more));
}

void upstream_heard(struct upstream *up, unsigned lane)
{
    if (lane < UPSTREAM_SHARED)
        up->lane[lane] = (struct backoff){0, 0};
    if (up->stats.up)
        return;
    up->stats.up = true;
    if (up->said != SAID_REACHED)
        log_info("upstream reached", kv_str("protocol", up->svc->name));
    up->said = SAID_REACHED;
}

void upstream_broke(struct upstream *up, unsigned lane, bool heard, const char *why)
{
    uint64_t more = 0;
    up->stats.errors++;
    if (lane < UPSTREAM_SHARED) {
        if (!heard) /* else it may be back at once */
            hold_back(&up->lane[lane], upstream_now_us(up));
        lost(up, TROUBLE_SHARED, why);
    } else if (may_say(up, TROUBLE_OWN, &more)) {
        log_warn("a client's own upstream connection was lost", kv_str("protocol", up->svc->name),
                 kv_str("why", why), kv_u64("more", more));
    }
}

void upstream_short(struct upstream *up, const char *why)
{
    uint64_t more = 0;
    up->stats.errors++;
    set_why(up, why);
    if (may_say(up, TROUBLE_HERE, &more))
        log_warn("no upstream connection can be made or kept here",
                 kv_str("protocol", up->svc->name), kv_str("why", why), kv_u64("more", more));
}
