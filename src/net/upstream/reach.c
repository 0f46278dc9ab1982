/*
 * Whether a server can be reached, and when it is tried again.
 *
 * Only what says something about the server holds others back: addresses that let nobody connect,
 * and shared links that are not let in, or break off before they have brought a reply. A link of a
 * client's own that breaks, and what we are short of ourselves, concern those who met with it.
 *
 * It is reached when it serves: a shared link was let in, or a reply has come that is no refusal.
 */
#include "base/log.h"
#include "net/upstream/links.h"

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

static void found(struct upstream *up, bool is_up)
{
    if (up->stats.up != is_up || up->stats.since_us == 0)
        up->stats.since_us = upstream_now_us(up);
    up->stats.up = is_up;
}

/* Said once, until the log has said that it is back, or the reason is of another kind: a server
 * that broke off may let nobody in when it comes again. So may one that refuses in other words. */
static void lost(struct upstream *up, enum upstream_trouble t, const char *why)
{
    uint64_t more = 0;
    set_why(up, why);
    found(up, false);
    if ((up->said == SAID_LOST && up->said_of == t) || !may_say(up, t, &more))
        return;
    up->said = SAID_LOST;
    up->said_of = t;
    (void)snprintf(up->said_why, sizeof up->said_why, "%s", why);
    log_warn("upstream lost", kv_str("protocol", up->svc->name), kv_str("why", why),
             kv_str("address", up->text), kv_u64("more", more));
}

static bool has_shared(const struct upstream *up)
{
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++)
        if (up->shared[i] && up->shared[i]->state == LINK_OPEN)
            return true;
    return false;
}

static void say_nobody_else(struct upstream *up, const char *why)
{
    uint64_t more = 0;
    if (may_say(up, TROUBLE_LOGIN, &more))
        log_warn("upstream lets nobody else in", kv_str("protocol", up->svc->name),
                 kv_str("why", why), kv_u64("more", more));
}

/* Who shares is served all the same, so that nothing else would tell it. */
static void lets_in_no_own(struct upstream *up, const char *why)
{
    up->refusals++;
    up->stats.unowned++;
    up->stats.unowned_us = upstream_now_us(up);
    (void)snprintf(up->denial, sizeof up->denial, "%s", why);
}

/* Nobody can connect, which is of no matter to who shares, nor to who could as well. */
static void unreached(const struct upstream_link *l, const char *why)
{
    struct upstream *up = l->up;
    set_why(up, why);
    if (!has_shared(up)) {
        lost(up, TROUBLE_CONNECT, why);
    } else if (!l->optional) {
        lets_in_no_own(up, why);
        say_nobody_else(up, why);
    } else { /* it leaves the next attempt to who needs one, which is then told */
        upstream_unready(up, &up->unspared[l->speaks], "");
    }
}

/* Address; what is under way to the one before tells no more of it. */
static void go_to_next(struct upstream *up)
{
    up->round++;
    up->at = (up->at + 1) % up->naddr;
}

/* Which is seen by nothing else, while requests wait for another one. */
static void say_missed(struct upstream *up, const char *why)
{
    uint64_t more = 0;
    if (may_say(up, TROUBLE_ADDRESS, &more))
        log_info("one of the addresses of the server behind lets nobody connect: trying the next",
                 kv_str("protocol", up->svc->name), kv_str("why", why), kv_str("address", up->text),
                 kv_u64("more", more));
}

void upstream_missed(const struct upstream_link *l, const char *why)
{
    struct upstream *up = l->up;
    up->stats.errors++;
    if (l->round != up->round) /* others that tried at the same time have said so */
        return;
    go_to_next(up);
    if (++up->missed < up->naddr) {
        set_why(up, why);
        say_missed(up, why);
        return;
    }
    up->missed = 0;
    hold_back(&up->connects, upstream_now_us(up));
    unreached(l, why);
}

/* Who is served where l is not let in once more: those who share its lane, and beside a client's
 * own, if nobody does, those who share any, else it would be somewhere else than they are. */
static bool is_beside_shared(const struct upstream_link *l)
{
    const struct upstream_link *its = l->up->shared[l->speaks];
    bool any = l->owner && (!its || its->state != LINK_OPEN);
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++) {
        const struct upstream_link *s = l->up->shared[i];
        bool counts = s && s != l && (any || i == l->speaks);
        if (counts && s->state == LINK_OPEN && s->at == l->at)
            return true;
    }
    return false;
}

void upstream_turned_away(const struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (l->at != find_place(up, up->at) || is_beside_shared(l))
        return;
    go_to_next(up);
}

void upstream_lookup_failed(const struct upstream_link *l, const char *why)
{
    struct upstream *up = l->up;
    char text[ERR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "cannot look up %s: %s", up->host, why);
    up->stats.errors++;
    if (upstream_now_us(up) >= up->connects.until_us)
        hold_back(&up->connects, upstream_now_us(up));
    unreached(l, text);
}

void upstream_connected(struct upstream *up)
{
    up->round++;
    up->missed = 0;
    up->connects = (struct backoff){0, 0};
}

void upstream_says(struct upstream *up, const char *why)
{
    if (strcmp(up->said_why, why) != 0)
        up->said_of = TROUBLES;
}

/* A client's own link may be let in where a shared one is not: it logs in by itself. */
void upstream_refused(const struct upstream_link *l, const char *why)
{
    struct upstream *up = l->up;
    bool next = !l->owner && up->next[l->lane] == l;
    struct backoff *b = l->state == LINK_PROBING ? &up->lane[l->lane] : &up->refused[l->speaks];
    if (next) /* who shares is served, and should that end, there may be room for one */
        b = &up->unready[l->lane];
    up->stats.errors++;
    if (upstream_now_us(up) >= b->until_us) /* else others have said so */
        hold_back(b, upstream_now_us(up));
    set_why(up, why);
    if (has_shared(up) && (l->owner || next))
        lets_in_no_own(up, why);
    if (!has_shared(up))
        lost(up, TROUBLE_LOGIN, why);
    else
        say_nobody_else(up, why);
}

void upstream_unready(struct upstream *up, struct backoff *b, const char *why)
{
    uint64_t more = 0;
    up->stats.errors += *why != '\0';
    hold_back(b, upstream_now_us(up));
    if (*why)
        set_why(up, why);
    if (*why && may_say(up, TROUBLE_SHARED, &more))
        log_warn("no other upstream connection can take the place of the shared one",
                 kv_str("protocol", up->svc->name), kv_str("why", why), kv_u64("more", more));
}

/* By a shared link, if there is none. */
static void attempt(struct upstream *up)
{
    if (!up->shared[up->spoken] && !up->net->rests && !up->net->draining)
        (void)link_new(up, NULL, up->spoken);
}

static bool serves_owners(const struct upstream *up)
{
    for (const struct link *at = up->links.next; at != &up->links; at = at->next)
        if (CONTAINER(at, const struct upstream_link, all)->heard)
            return true;
    return false;
}

/* On a client's own link, that may lack a login of the client's: of one that serves others it says
 * nothing, unless the link breaks: one that lets in no more says so, and closes. Where it serves
 * nobody, a shared one tells which it was. */
void upstream_unserved(struct upstream_link *l, const char *why, bool alien)
{
    struct upstream *up = l->up;
    if (has_shared(up) && l->owner && !l->heard && !l->denied) {
        lets_in_no_own(up, why);
        say_nobody_else(up, why);   /* while the link stays, nothing else does */
        l->refusals = up->refusals; /* should it serve after all, that is over */
    }
    bool again = l->denied;
    l->denied = true;
    (void)snprintf(up->denial, sizeof up->denial, "%s", why);
    if (!again && l->owner && !alien && up->stats.up && !has_shared(up) && !serves_owners(up))
        attempt(up);
    if (l->refused || (alien ? has_shared(up) : up->stats.up))
        return;
    l->refused = true;
    up->stats.errors++;
    lost(up, TROUBLE_LOGIN, why);
}

void upstream_unanswered(struct upstream *up, const char *why)
{
    up->stats.faults++;
    up->stats.faulty_us = upstream_now_us(up);
    (void)snprintf(up->fault, sizeof up->fault, "%s", why);
}

/* Nobody waits for it, so that nobody else is told. */
void upstream_unsent(struct upstream *up, size_t bytes)
{
    uint64_t more = 0;
    up->stats.errors++;
    if (may_say(up, TROUBLE_LEFT, &more))
        log_warn("what a client had said before it went is lost", kv_str("protocol", up->svc->name),
                 kv_u64("bytes", bytes), kv_u64("more", more));
}

void upstream_faulty(struct upstream *up, const char *why)
{
    uint64_t more = 0;
    upstream_unanswered(up, why);
    if (may_say(up, TROUBLE_FAULT, &more))
        log_warn("requests fail at the server behind", kv_str("protocol", up->svc->name),
                 kv_str("why", why), kv_u64("more", more));
}

void upstream_moved(struct upstream *up)
{
    uint64_t more = 0;
    if (may_say(up, TROUBLE_MOVED, &more))
        log_info("the name of the server behind leads elsewhere", kv_str("protocol", up->svc->name),
                 kv_str("address", up->text), kv_u64("more", more));
}

void upstream_serves(struct upstream *up)
{
    if (up->stats.up)
        return;
    found(up, true);
    if (up->said != SAID_REACHED)
        log_info("upstream reached", kv_str("protocol", up->svc->name));
    up->said = SAID_REACHED;
}

/* A client's own link serves that was made since then: so would the next one, and a shared one,
 * unless it was refused as such. */
static void lets_in_own(const struct upstream_link *l)
{
    struct upstream *up = l->up;
    if (l->refusals != up->refusals)
        return;
    up->stats.unowned_us = 0;
    if (up->lane[l->speaks].step_us == 0)
        up->stats.unshared_us = 0;
}

void upstream_heard(struct upstream_link *l)
{
    if (l->lane < UPSTREAM_SHARED)
        l->up->lane[l->lane] = (struct backoff){0, 0};
    else if (!l->heard)
        lets_in_own(l);
    l->heard = true;
    upstream_serves(l->up);
}

/* Whether another link does what it did. */
static bool is_replaced(const struct upstream_link *l)
{
    const struct upstream_link *now = l->up->shared[l->lane];
    return now && now != l && now->state == LINK_OPEN;
}

/* Who tries nothing is told by nobody that it is back, and a timer would wake us for ever. */
void upstream_look(struct net_service *svc)
{
    struct upstream *up = svc->upstream;
    bool away = !up->stats.up && up->stats.since_us > 0;
    if (away)
        attempt(up);
}

/* It may have been that client's command; but where all have links of their own, nobody else would
 * notice a server that hangs. So what is shared is asked, where nothing is due on it that tells. */
void upstream_doubt(struct upstream *up)
{
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++)
        if (up->shared[i])
            greet_again(up->shared[i]);
    attempt(up);
}

void upstream_broke(const struct upstream_link *l, const char *why)
{
    uint64_t more = 0;
    char text[ERR_TEXT_MAX];
    struct upstream *up = l->up;
    up->stats.errors++;
    if (!*up->why)
        set_why(up, why);
    if (l->lane < UPSTREAM_SHARED && is_replaced(l)) {
        if (may_say(up, TROUBLE_RETIRED, &more))
            log_warn("an upstream connection was lost that another has replaced",
                     kv_str("protocol", up->svc->name), kv_str("why", why), kv_u64("more", more));
    } else if (l->lane < UPSTREAM_SHARED) {
        if (!l->heard) /* else it may be back at once */
            hold_back(&up->lane[l->lane], upstream_now_us(up));
        lost(up, TROUBLE_SHARED, why);
    } else if (may_say(up, TROUBLE_OWN, &more)) {
        bool denied = l->denied && !l->heard && strcmp(up->denial, why) != 0;
        (void)snprintf(text, sizeof text, "%s%s%s", denied ? up->denial : "", denied ? "; " : "",
                       why);
        log_warn("a client's own upstream connection was lost", kv_str("protocol", up->svc->name),
                 kv_str("why", text), kv_u64("more", more));
    }
}

/* Who shares, or has one, is served all the same, so that nothing else would tell it. */
void upstream_short_of_own(struct upstream *up, const char *why)
{
    lets_in_no_own(up, why);
    upstream_short(up, why);
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
