/*
 * Who holds up others on a shared link, and is closed for that. Asking again would begin on the
 * shared one again, and be cut again: so for a while what its party (net_peer.id) asks for first on
 * each of the next connections goes on a link of its own, if there is room.
 *
 * Not on all of them: an address may have many clients, most of whom need none.
 *
 * A pause is charged when it ends, be it that its client has taken enough, is cut, or goes: to the
 * client, and to the account of all. Else one who goes in time would be back in no time, and so on.
 */
#include "base/log.h"
#include "net/upstream/links.h"

#include <sys/ioctl.h>

#define STALL_US INT64_C(250000)   /* that one, or all, may hold up others on a shared link … */
#define HURRY_US INT64_C(10000000) /* … and for so long after they have … */
#define FIRST_US INT64_C(200000)   /* … all more together, which is used up by those who do … */
#define MORE_US  INT64_C(80000)    /* … and comes again, up to this … */
#define COMES    4                 /* … a microsecond in so many … */
#define PART     8                 /* … and one of them has this part of what is left … */
#define WAKE_US  INT64_C(4000)     /* … or as long as it nearly always takes to wake up */
#define QUICK    32                /* bytes that who is quick takes in a microsecond */

#define CUT_US     INT64_C(60000000)
#define CUT_CONNS  64u
#define CUT_SAY_MS 10000

/* ---- how long ---------------------------------------------------------------------------------
 */

/* A part of it is with the kernel, which seldom asks for more. */
static size_t untaken(const struct conn *c)
{
    int there = 0;
    if (ioctl(c->rd.fd, TIOCOUTQ, &there) < 0 || there < 0)
        there = 0;
    return kept_span(&c->out).n + (size_t)there;
}

void cut_pause_begins(struct upstream_link *l, struct relay *r, int64_t now)
{
    l->stalled = r;
    l->stalled_us = now;
    l->stalled_n = untaken(r->c);
    peer_of(r->c->rd.fd, &l->stalled_by);
}

/* The pause so far, to r. */
static void add_up(const struct upstream_link *l, struct relay *r, int64_t now)
{
    int64_t paused_us = now - l->stalled_us;
    size_t left = untaken(r->c), taken = left < l->stalled_n ? l->stalled_n - left : 0;
    r->held_us += paused_us;
    r->slow_us += paused_us - (int64_t)(taken / QUICK);
    r->slow_us = r->slow_us > 0 ? r->slow_us : 0;
}

/* While the net rests all who ask wait until the shared links have run dry. */
bool cut_hurries(const struct upstream *up, int64_t now)
{
    return now < up->hurry_us || up->net->rests;
}

static void begin_hurry(struct upstream *up, int64_t now)
{
    if (now < up->hurry_us)
        return;
    up->hurry_us = now + HURRY_US;
    up->left_us = FIRST_US;
    up->charged_us = now;
}

/* What is left for all who hold up others. */
static int64_t left_us(const struct upstream *up, int64_t now)
{
    int64_t left = up->left_us + (now - up->charged_us) / COMES;
    int64_t most = now >= up->hurry_us ? STALL_US : up->left_us > MORE_US ? up->left_us : MORE_US;
    return left < most ? left : most;
}

static bool has_had_its_part(const struct upstream *up, const struct relay *r, int64_t now)
{
    int64_t part = left_us(up, now) / PART;
    return r->slow_us >= (part > WAKE_US ? part : WAKE_US);
}

static void charge(struct upstream *up, int64_t us, int64_t now)
{
    int64_t left = left_us(up, now) - us;
    up->left_us = left > 0 ? left : 0;
    up->charged_us = now;
    if (left <= 0)
        begin_hurry(up, now);
}

static void say(struct upstream *up, const struct upstream_link *l, const char *what, int64_t now)
{
    uint64_t more = 0;
    if (log_limit_pass(&up->cuts.said, now / 1000, CUT_SAY_MS, &more))
        log_info(what, kv_str("protocol", up->svc->name), kv_str("peer", l->stalled_by.text),
                 kv_u64("more", more));
}

void cut_pause_ends(struct upstream_link *l, int64_t now)
{
    struct upstream *up = l->up;
    struct relay *r = l->stalled;
    int64_t before = r->slow_us;
    l->stalled = NULL;
    if (!link_others_wait(l, r))
        return;
    add_up(l, r, now);
    bool noted = has_had_its_part(up, r, now);
    if (noted)
        cut_note(up, &l->stalled_by);
    if (noted && r->c->state == CONN_DEAD)
        say(up, l,
            "a client that took a reply slowly while others waited has gone; what it asks for next "
            "has an upstream connection of its own",
            now);
    charge(up, r->slow_us - before, now);
}

/* One that takes a little now and then is never paused for long: so the pauses add up. And others
 * wait for all that do so, one after the other: so they have little time together. But whatever
 * they do, who takes his reply as fast as he can has it: of his time what a quick one needs for as
 * much does not count then. */
bool cut_slow(struct upstream_link *l, int64_t now)
{
    struct upstream *up = l->up;
    struct conn *c = l->stalled->c;
    struct relay all = *l->stalled;
    add_up(l, &all, now);
    bool slow =
        all.held_us >= STALL_US || (cut_hurries(up, now) && has_had_its_part(up, &all, now));
    if (!slow || !link_others_wait(l, l->stalled))
        return false;
    link_read_on(l);
    begin_hurry(up, now);
    cut_note(up, &l->stalled_by);
    say(up, l,
        "closed a client that took a reply slowly while others waited; what it asks for next has "
        "an upstream connection of its own",
        now);
    conn_close(c);
    return true;
}

/* ---- who was ----------------------------------------------------------------------------------
 */

void cut_note(struct upstream *up, const struct net_peer *peer)
{
    int64_t now = upstream_now_us(up);
    struct cut *k = NULL;
    for (unsigned i = 0; i < CUTS; i++)
        if (up->cuts.of[i].id[0] == peer->id[0] && up->cuts.of[i].id[1] == peer->id[1])
            k = &up->cuts.of[i];
    if (!k)
        k = &up->cuts.of[up->cuts.at++ % CUTS];
    *k =
        (struct cut){.id = {peer->id[0], peer->id[1]}, .until_us = now + CUT_US, .left = CUT_CONNS};
    up->cuts.latest_us = now;
}

bool cut_recalls(struct upstream *up, const struct conn *c)
{
    struct net_peer peer;
    int64_t now = upstream_now_us(up);
    if (now >= up->cuts.latest_us + CUT_US) /* nobody was, as nearly always */
        return false;
    peer_of(c->rd.fd, &peer);
    for (unsigned i = 0; i < CUTS; i++) {
        struct cut *k = &up->cuts.of[i];
        if (k->id[0] == peer.id[0] && k->id[1] == peer.id[1] && now < k->until_us && k->left > 0) {
            k->left--;
            return true;
        }
    }
    return false;
}
