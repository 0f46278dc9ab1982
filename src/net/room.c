/*
 * Who makes room when all places are taken.
 *
 *     lots, by how many connections they have:
 *                  1     2..3   4..7   8..15 ...
 *     strangers  [ A ]  [   ]  [ B ]  [   ]         B: the one that came first ... the latest
 *     guests     [ C ]  [ A ]  [   ]  [   ]
 *     known      [ D ]  [   ]  [   ]  [ B ]         make no room for who comes
 *
 * Of a party (net_peer.id) the strangers are one lot, and the guests, whom nobody asks who they
 * are, another. Of those who have logged in there is one for each user of each party, and a
 * connection is in that of the one who it is now. Those with slots make room among themselves, and
 * are a lot only for what is kept.
 *
 * The same lots tell who makes room for a link of another's own to the server behind (uplink.c),
 * and whose connections are closed when too much is kept (memory.c).
 *
 * Invariant: a step takes as long for any number of connections, whoever comes. (Not so for a link:
 * those that there may be are gone through, at the cost of who asks for one more.)
 */
#include "net/private.h"
#include "net/upstream/links.h"

#include <poll.h>
#include <stdlib.h>

#define LOOK    64               /* lots, or connections, that are looked at to find one */
#define LOG_MS  10000            /* between two lines about refusals */
#define GONE_US INT64_C(1000000) /* who has ended its side for so long may have gone */

struct party {
    struct party *next; /* in its bucket */
    uint64_t id[2];
    struct lot {
        struct party *party;
        struct link rank;  /* room.ranks, or none */
        struct link conns; /* conn.place */
        uint32_t n;        /* of them */
        struct room_kept kept;
    } lot[ROOM_KINDS];
};

/* ---- parties ----------------------------------------------------------------------------------
 */

static struct party **find(struct room *r, const uint64_t id[2])
{
    uint64_t mixed = (id[0] * 0x9e3779b97f4a7c15u ^ id[1]) * 0x9e3779b97f4a7c15u;
    struct party **at = &r->bucket[mixed >> 56];
    while (*at && ((*at)->id[0] != id[0] || (*at)->id[1] != id[1]))
        at = &(*at)->next;
    return at;
}

static struct party *party_of(struct room *r, const uint64_t id[2])
{
    struct party **at = find(r, id), *p = *at;
    if (p || !(p = calloc(1, sizeof *p)))
        return p;
    p->id[0] = id[0];
    p->id[1] = id[1];
    for (int i = 0; i < ROOM_KINDS; i++) {
        p->lot[i].party = p;
        link_init(&p->lot[i].rank);
        link_init(&p->lot[i].conns);
    }
    return *at = p;
}

/* After a change of its number. A party lives while it has anybody. */
static void rank(struct room *r, struct lot *l)
{
    struct party *p = l->party, **at;
    link_remove(&l->rank);
    if (l->n > 0) {
        link_append(&r->ranks[l - p->lot][31 - __builtin_clz(l->n)], &l->rank);
        return;
    }
    for (int i = 0; i < ROOM_KINDS; i++)
        if (p->lot[i].n > 0)
            return;
    at = find(r, p->id);
    *at = p->next;
    free(p);
}

void room_init(struct net *n)
{
    for (int i = 0; i < ROOM_KINDS; i++)
        for (int k = 0; k < ROOM_RANKS; k++)
            link_init(&n->room.ranks[i][k]);
}

/* Without memory for its party it is in no lot, and is not asked to make room. A user of a party
 * has a party's place to himself. */
void room_enter(struct conn *c, enum room_kind kind)
{
    struct net_peer peer;
    peer_of(c->rd.fd, &peer);
    c->user = kind == ROOM_KNOWN && c->svc->user ? c->svc->user(c->svc, c->session) : 0;
    peer.id[1] ^= c->user * UINT64_C(0x9e3779b97f4a7c15);
    room_leave(c);
    struct party *p = party_of(&c->net->room, peer.id);
    if (!p)
        return;
    c->lot = &p->lot[kind];
    c->lot->n++;
    link_append(&c->lot->conns, &c->place);
    rank(&c->net->room, c->lot);
}

void room_leave(struct conn *c)
{
    struct lot *l = c->lot;
    if (!l)
        return;
    memory_favour(c, false);
    c->lot = NULL;
    link_remove(&c->place);
    l->n--;
    rank(&c->net->room, l);
}

/* ---- making room ------------------------------------------------------------------------------
 */

/* The lot of a kind that has most; NULL: all are empty. Where many have about as many, it is the
 * largest of some of them. */
static struct lot *largest(struct room *r, enum room_kind kind)
{
    struct lot *most = NULL;
    int k = ROOM_RANKS - 1, left = LOOK;
    while (k > 0 && link_empty(&r->ranks[kind][k]))
        k--;
    const struct link *head = &r->ranks[kind][k];
    for (struct link *i = head->next; i != head && left-- > 0; i = i->next) {
        struct lot *l = CONTAINER(i, struct lot, rank);
        if (!most || l->n > most->n)
            most = l;
    }
    return most;
}

static struct conn *first_of(const struct lot *l)
{
    return CONTAINER(l->conns.next, struct conn, place);
}

static void go_behind(struct lot *l, struct conn *c)
{
    link_remove(&c->place);
    link_append(&l->conns, &c->place);
}

/* The first one among the next few that is so; those before it go behind the others. */
static struct conn *first_that(struct lot *l, bool (*is)(const struct conn *c))
{
    for (uint32_t i = 0; i < l->n && i < LOOK; i++) {
        struct conn *c = first_of(l);
        if (is(c))
            return c;
        go_behind(l, c);
    }
    return NULL;
}

static bool is_not_checked(const struct conn *c)
{
    return !conn_is_checked(c);
}

/* The one that came first, but for those whose first password is being looked at: they would never
 * get in, where many come at once. They make room for those alone who have fewer. */
static struct conn *stranger_of(struct lot *l, uint32_t newcomers)
{
    struct conn *c = first_that(l, is_not_checked);
    return !c && l->n > newcomers + 1 ? first_of(l) : c;
}

/* The one that was silent longest among the next few: those go behind the others. */
static struct conn *quietest_of(struct lot *l)
{
    struct conn *found = NULL;
    for (uint32_t i = 0; i < l->n && i < LOOK; i++) {
        struct conn *c = first_of(l);
        if (!found || c->active_us < found->active_us)
            found = c;
        go_behind(l, c);
    }
    return found;
}

/* One among the next few that is gone, or says no more and only waits for the server behind, for
 * longer than that mostly takes: over TCP most of those are gone, such as whoever gave up while
 * that stood still, and tried again. Who has a reply to take is there, and so was whoever took a
 * part of one. The end of one that waits with more requests stands behind those, unread. */
static struct conn *ended_of(const struct net *n, struct lot *l)
{
    struct pollfd fd[LOOK];
    struct conn *of[LOOK];
    nfds_t waiting = 0;
    int64_t since_us = clock_mono_us(n->conf.clock) - GONE_US;
    for (uint32_t i = 0; i < l->n && i < LOOK; i++) {
        struct conn *c = first_of(l);
        bool late = c->active_us < since_us;
        go_behind(l, c);
        if (c->state != CONN_BEHIND)
            continue;
        fd[waiting] = (struct pollfd){.fd = c->rd.fd, .events = late ? POLLRDHUP : 0};
        of[waiting++] = c;
    }
    if (waiting == 0 || poll(fd, waiting, 0) <= 0)
        return NULL;
    for (nfds_t i = 0; i < waiting; i++)
        if (fd[i].revents)
            return of[i];
    return NULL;
}

/* fd: of whoever is refused, or makes room. */
static void say(struct net *n, struct log_limit *limit, const char *what,
                const struct net_service *svc, uint64_t most, int fd)
{
    struct net_peer peer;
    uint64_t held_back = 0;
    if (!log_limit_pass(limit, clock_mono_ms(n->conf.clock), LOG_MS, &held_back))
        return;
    peer_of(fd, &peer);
    log_warn(what, kv_str("protocol", svc->name), kv_u64("limit", most), kv_str("peer", peer.text),
             kv_u64("lines_held_back", held_back));
}

static void displace(struct conn *c, enum room_place of, uint64_t most)
{
    static const char *const what[ROOM_PLACES] = {
        [ROOM_SHARED] = "limits.connections is reached: one of those who have most makes room",
        [ROOM_SLOTS] = "all places are taken: who was silent longest makes room",
        [ROOM_LINKS] = "upstream.connections is reached: one of those who have most makes room",
    };
    say(c->net, &c->net->displaced[of], what[of], c->svc, most, c->rd.fd);
    conn_end(c, NET_END_SLOT);
}

static bool make_room(struct net *n, int fd)
{
    struct net_peer peer;
    peer_of(fd, &peer);
    struct party *p = *find(&n->room, peer.id);
    struct lot *strangers = largest(&n->room, ROOM_STRANGERS),
               *guests = largest(&n->room, ROOM_GUESTS);
    struct conn *c = NULL;
    if (strangers)
        c = stranger_of(strangers, p ? p->lot[ROOM_STRANGERS].n : 0);
    else if (guests && guests->n > n->conf.connections / 2 &&
             guests->n > (p ? p->lot[ROOM_GUESTS].n : 0) + 1) /* else they would take turns */
        c = quietest_of(guests);
    else if (p)
        c = ended_of(n, &p->lot[ROOM_GUESTS]);
    if (c)
        displace(c, ROOM_SHARED, n->conf.connections);
    return c != NULL;
}

/* Of its own service, the one that was silent longest goes. */
static bool make_slot(struct net *n, const struct net_service *svc)
{
    struct conn *oldest = NULL;
    for (struct link *l = n->slotted.next; l != &n->slotted; l = l->next) {
        struct conn *c = CONTAINER(l, struct conn, slot);
        if (c->svc == svc && (!oldest || c->active_us < oldest->active_us))
            oldest = c;
    }
    if (oldest)
        displace(oldest, ROOM_SLOTS, svc->slots);
    return oldest != NULL;
}

/* Above the limit, after a reload, they first have to become fewer. */
static bool shared_room(struct net *n, int fd)
{
    return n->shared < n->conf.connections ||
           (n->shared == n->conf.connections && make_room(n, fd));
}

bool room_for(struct net *n, const struct net_service *svc, int fd)
{
    if (svc->slots == 0) {
        bool room = shared_room(n, fd);
        if (!room)
            say(n, &n->refusals, "limits.connections is reached: connections are refused", svc,
                n->conf.connections, fd);
        return room;
    }
    while (svc->connections >= svc->slots)
        if (!make_slot(n, svc))
            return false;
    return true;
}

struct room_kept *room_kept(struct lot *l)
{
    return &l->kept;
}

/* ---- links of clients' own --------------------------------------------------------------------
 */

/* The lot of which more than half of the clients with a link of their own are, if there is one: it
 * is what is left when each client is struck out with one of another lot (Boyer and Moore 1991). */
static const struct lot *majority(const struct upstream *up)
{
    const struct lot *left = NULL;
    size_t n = 0;
    for (const struct link *i = up->links.next; i != &up->links; i = i->next) {
        const struct relay *owner = CONTAINER(i, struct upstream_link, all)->owner;
        if (owner && n == 0)
            left = owner->c->lot;
        if (owner)
            n += owner->c->lot == left ? 1 : (size_t)-1;
    }
    return left;
}

bool room_for_link(struct upstream *up, const struct conn *c)
{
    const struct lot *most = majority(up);
    struct conn *quietest = NULL;
    size_t n = 0, own = 0;
    for (const struct link *i = up->links.next; i != &up->links; i = i->next) {
        const struct relay *owner = CONTAINER(i, struct upstream_link, all)->owner;
        if (!owner)
            continue;
        own += owner->c->lot == c->lot;
        if (owner->c->lot != most)
            continue;
        n++;
        if (!quietest || owner->c->active_us < quietest->active_us)
            quietest = owner->c;
    }
    if (!most || n <= up->others_max / 2 || n <= own + 1) /* else they would take turns */
        return false;
    displace(quietest, ROOM_LINKS, up->others_max);
    return true;
}
