/*
 * Upstream: the real server behind a service, and the links to it.
 *
 *     client --\                 requests of many, in order        +--------+
 *     client ---- relay --------------- shared link -------------->|  real  |
 *     client --/                                                   | server |
 *     client ---- relay --------------- a link of its own -------->|        |
 *                                                                  +--------+
 *
 * A request is forwarded by serve, which says what is expected in return; replies go to the clients
 * byte for byte as they come. A client that uses state on the server, or that asks for what may not
 * go on a shared link, has a link of its own, opened when it first needs one and closed with it: if
 * either end closes, the other does, too. It never goes back to a shared one. (Who would merely be
 * better off with one, and is not let in, has not left the shared one yet.)
 *
 * Invariants
 *   - The replies of a client come in the order of its requests: a local answer waits until nothing
 *     is expected (NET_BEHIND), and so does a change of links.
 *   - What a client does not take holds up its own link; on a shared one it is closed once it has
 *     held up others for STALL_US, and for a while after that sooner, so that many that do so
 *     cannot add it up, nor one that goes in time and comes again; but never who takes it as fast
 *     as he can.
 *   - A client has little under way at the server, on whichever link: so many replies, and so many
 *     bytes of them, by the size of those that came before; one where they are large. A server
 *     deals with all of a connection's requests before it looks at the next one's, and on a shared
 *     link what one asks for the others wait for. All together on one have not much, either; half
 *     of that is for those of whom nothing is under way, one request each. Where there is no room
 *     at all, who has waited longest goes on first.
 *   - A shared link on which large replies come, or many for clients that are gone, makes way for
 *     another once that one is open and was let in. Clients' own are limited in number, so that
 *     the shared ones always find room at the server.
 *   - Bounded: unsent requests of a link and unsent replies of a client, by `buffer` and one block;
 *     replies expected, by count. Beyond that, the client is not read from.
 *   - A client's own link that fails concerns that client. Only what says something about the
 *     server keeps others from trying it at once: see reach.c.
 *   - Nothing blocks, and an idle link wakes nobody. A name is looked up for each new link and for
 *     each client that comes, by another thread; a shared link that is elsewhere makes way; see
 *     find.c.
 */
#ifndef SIDFLAKE_NET_UPSTREAM_UPSTREAM_H
#define SIDFLAKE_NET_UPSTREAM_UPSTREAM_H

#include "net/net.h"
#include "wire/frame.h"

/* Which link: one that all share, by what is spoken on it, or one's own. */
enum upstream_lane {
    UPSTREAM_TEXT,
    UPSTREAM_BINARY,
    UPSTREAM_SHARED, /* how many are shared */
    UPSTREAM_OWN = UPSTREAM_SHARED,
    UPSTREAM_REST, /* one's own, for the rest of a request: upstreams_rest does not stop it */
};

struct addrinfo;

/* As getaddrinfo(3); what it gives is freed by freeaddrinfo(3). */
typedef int upstream_look_up(const char *host, const char *port, const struct addrinfo *hints,
                             struct addrinfo **list);

struct upstream_config {
    struct span address;       /* as net/addr.h reads it */
    int64_t timeout_us;        /* for a connection, and for each reply; > 0 */
    size_t buffer;             /* bytes, see above */
    uint32_t connections;      /* most of clients' own, and such as are retired; 0: no limit */
    upstream_look_up *look_up; /* for tests, called by another thread; NULL: getaddrinfo(3) */
};

/* Gives svc a server to forward to, for as long as n lives. Reaches it only when asked to, or when
 * somebody looks at whether it is back: upstream_look. */
enum err_code upstream_new(struct net *n, struct net_service *svc, const struct upstream_config *c,
                           struct err *e) MUST_CHECK;

/* ---- who we are -------------------------------------------------------------------------------
 */

/* What a link begins with, before any client's request: a login, or a probe; see greet.c. */
struct upstream_greeting {
    struct span bytes;     /* empty: none */
    struct span user;      /* among them; empty: the default one */
    struct span secret;    /* among them: never said */
    enum frame_kind kind;  /* of its one reply … */
    struct span ok;        /* … which begins so, and is no error, if it lets us in; static */
    const struct span *no; /* instead of ok: all but these let us in; up to an empty one; static */
    size_t words;          /* bytes that stand before the words of another */
};

/* New links that speak as lane does begin with it. The shared one makes way: for one that was let
 * in with it where the user is the same, at once where it is another. Copies the bytes, and wipes
 * them after use. The same again changes nothing, but that such a one is tried again. false: no
 * memory, and nothing is changed. lane is a shared one. */
bool upstream_greet(struct net_service *svc, enum upstream_lane lane,
                    const struct upstream_greeting *g);

struct upstream_stats {
    bool up; /* it has let a shared link in, or answered otherwise than with a refusal, and since
                then neither were all its addresses in vain, nor was a shared link refused or did
                one break off; what becomes of a client's own is no matter, but that the shared
                one is asked where it timed out */
    int64_t since_us;     /* monotonic: since when it is up, or not; 0: neither was found yet */
    uint64_t connections; /* open now */
    uint64_t requests;    /* replies that were asked for */
    uint64_t errors;      /* connections that failed, broke off, or timed out */
    uint64_t most;        /* upstream.connections: those but the shared ones; 0: no limit */
    int64_t full_us;      /* monotonic: somebody was refused one for that last; 0: never */
    int64_t unshared_us;  /* monotonic: somebody who would share one was last told that there is
                           * none; 0: never, or one was let in since, or would have been */
    int64_t unowned_us;   /* monotonic: a client's own was last refused beside a shared one that
                           * serves, or could not be made here; 0: never, or one was let in since */
    uint64_t unowned;     /* how many were */
    uint64_t faults;   /* replies that are errors of the server's own, as of one that has no memory,
                        * and links of clients' own that were lost since none came in time */
    int64_t faulty_us; /* monotonic: when the latest came; 0: none has */
};

/* NULL: there is none behind it. svc may be NULL. */
const struct upstream_stats *upstream_stats(const struct net_service *svc);

/* Why it cannot be reached: one line, "" where nothing has failed. */
const char *upstream_why(const struct net_service *svc);

/* The words with which a client's own connection was refused last. */
const char *upstream_denial(const struct net_service *svc);

/* The latest of stats.faults, an error in the server's words. */
const char *upstream_fault(const struct net_service *svc);

/* A shared link goes on that began with another login than new ones do, or is where the server's
 * name leads no more: no other is under way in its place, since the server let in none, or there is
 * no room for one. */
enum upstream_outdated {
    UPSTREAM_PRESENT,
    UPSTREAM_CROWDED,  /* another login; no room */
    UPSTREAM_OUTDATED, /* another login; none was let in */
    UPSTREAM_ASTRAY    /* elsewhere; none was let in, as upstream_why says */
};
enum upstream_outdated upstream_outdated(const struct net_service *svc);

/* As it was configured. */
const char *upstream_address(const struct net_service *svc);

/* Somebody looks at these: a server that is said to be away is tried, if it is time, so that the
 * next look tells what is so. Between requests of clients nothing else tries it. */
void upstream_look(struct net_service *svc);

/* on: no request is forwarded any more; what is there of it waits (UPSTREAM_BUSY), so that soon no
 * reply is expected, and its connection can be carried (net_pack). Not on: all goes on. */
void upstreams_rest(struct net *n, bool on);

/* ---- for serve, during its turn ---------------------------------------------------------------
 */

enum upstream_ready {
    UPSTREAM_READY, /* forward now */
    UPSTREAM_FRESH, /* the same, on a link of one's own where nothing was sent before */
    UPSTREAM_BUSY,  /* answer NET_BEHIND: the same request is served again later */
    UPSTREAM_DOWN,  /* it cannot be reached */
};

/* Whoever has needed a link of its own has one from then on, whatever lane is asked for. words: of
 * the request, or about, where it begins; see upstream_weigh. */
enum upstream_ready upstream_ready(struct net_turn *t, enum upstream_lane lane, uint32_t words);

/* 1 << 0 comes from programs of 0.1.0 at an upgrade, and says nothing. */
enum upstream_flag {
    UPSTREAM_SKIP = 1 << 1,    /* the reply is not for the client; an error closes it */
    UPSTREAM_PATIENT = 1 << 2, /* the reply may take any time; if there is none, the next one */
    UPSTREAM_NEWS = 1 << 3,    /* messages and acknowledgements of RESP2 may come before the reply,
                                * and it cannot be taken for one */
    UPSTREAM_CLEARS = 1 << 4,  /* with the reply, all subscriptions have ended */
    UPSTREAM_FORGIVE = 1 << 5, /* with SKIP: an error is skipped, too */
    UPSTREAM_TELL = 1 << 6,    /* heard is called at the end of the reply; own links only */
    UPSTREAM_DROP = UPSTREAM_SKIP | UPSTREAM_FORGIVE, /* not for the client; nothing more of the
                                                       * request comes */
    UPSTREAM_FLAGS = (1 << 7) - 1
};

/* After READY or FRESH: sends bytes, and expects n replies of a kind to what was sent. A failure to
 * do so closes the connection at the end of the turn. */
void upstream_send(struct net_turn *t, struct span bytes);
void upstream_expect(struct net_turn *t, enum frame_kind kind, uint32_t n, unsigned flags);

/* The request sent last, whose reply is not expected yet, has so many words, or so many more. Many
 * keys are looked up one after the other, however short the reply is: so they count in what its
 * client, and all together, may have under way. */
void upstream_weigh(struct net_turn *t, uint32_t words);

/* Likewise for what was sent last, on a link of one's own: SUBSCRIBE and its kin have n
 * acknowledgements each, or one other reply, as an error is. */
void upstream_expect_acks(struct net_turn *t, uint32_t n);
#define UPSTREAM_ACKS_ALL UINT32_MAX /* as many as there are: until none of its kind is left */

/* Whether the replies that have come say that the client is subscribed to something. */
bool upstream_subscribed(const struct net_turn *t);

/* All four for a request that has one reply, if nothing stands in its way, as nearly always; lane
 * is a shared one. false: nothing was done, and upstream_ready says why. */
bool upstream_forward(struct net_turn *t, enum upstream_lane lane, struct span bytes,
                      uint32_t words, enum frame_kind kind);

/* Replies expected by this client; 1 where one comes that is not, and has not ended. */
uint32_t upstream_pending(const struct net_turn *t);

/* Who answers NET_BEHIND next is served again when no more than n of them are left. */
void upstream_wait_for(struct net_turn *t, uint32_t n);

/* Whether it has a link of its own. */
bool upstream_owns(const struct net_turn *t);

/* Whether its link began with a login of ours. */
bool upstream_logs_in(const struct net_turn *t);

/* Closes its own link, on which nothing is expected: the next request gets another one of its own,
 * on which nothing was said before. */
void upstream_renew(struct net_turn *t);

/* From here on all goes through, both ways, uninterpreted. */
void upstream_tunnel(struct net_turn *t);

#endif
