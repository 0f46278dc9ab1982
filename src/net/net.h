/*
 * The serving loop: listeners, connections, and waiting. The only room that knows libev.
 *
 * A connection moves between six states, and each has one place where it is found:
 *
 *   READING   its read watcher is on                     (nothing buffered but half a request)
 *   FLUSHING  its write watcher is on                    (the client reads slowly: not read from)
 *   MORE      in the list of turns               (its turn took as long as one may: in turn)
 *   QUEUED    in the queue for a time                    (the millisecond is used up: in turn)
 *   WAITING   in the list for a change                   (no workerId: until max_wait; a password
 *                                                         that is being checked: without a limit)
 *   BEHIND    with its upstream link                     (replies, room or a connection to come)
 *
 * Invariants
 *   - One read, then the whole requests that it brought, then one write: per turn and connection.
 *     A turn has a time, after which the rest waits for the others' turns (turns.c). What alone may
 *     take as long as dozens of IDs says so (net_step.cost), or is written once and kept.
 *   - Replies leave in the order of their requests; a request that cannot be answered yet holds
 *     back what follows it on its connection, and nobody else.
 *   - A connection has one close path, is freed at the end of the turn, and never inside a
 *     callback.
 *   - In no state does a client that has gone stay unnoticed: who is not read from is asked about
 *     (sweep.c), and who is gone without a word is found by TCP's keepalive.
 *   - An idle connection holds no buffers. One that is not read from holds at most NET_IN_MAX bytes
 *     of input, NET_HEARD_MAX while it is blocked at a server or takes no replies, and NET_OUT_MAX
 *     of output.
 *   - What is kept for all of them has a limit, and above it who keeps most is closed (memory.c).
 *   - Nothing here blocks. Nothing wakes an idle process; with busy_poll it is idle that much
 *     later.
 */
#ifndef SIDFLAKE_NET_NET_H
#define SIDFLAKE_NET_NET_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/histogram.h"
#include "base/parcel.h"
#include "wire/frame.h"
#include "wire/wire.h"

struct conn;
struct upstream;
struct upstream_greeting;

#define NET_IN_MAX    WIRE_IN_MAX
#define NET_OUT_MAX   ((size_t)512 << 10) /* room for any one reply */
#define NET_HEARD_MAX ((size_t)4 << 20)   /* input behind what may wait for ever */

/* What became of one call of serve. */
enum net_verdict {
    NET_DONE,  /* a request was answered, or a part of a long one taken: call again with the rest */
    NET_MORE,  /* the input holds no whole request */
    NET_QUEUE, /* not before until_ms: in turn with the others that wait for it */
    NET_YIELD, /* the quota is spent, or, with cost NET_DEAR, it is long: in turn, at once */
    NET_WAIT,  /* not before something changes, or until_ms, or max_wait has passed */
    NET_HOLD,  /* not before net_wake_one, however long: whoever holds a request sees to it */
    NET_BEHIND, /* not before its upstream is ready or has answered: see net/upstream/upstream.h */
    NET_CLOSE,  /* close when the output is sent */
};

#define NET_DEAR UINT8_MAX

struct net_step {
    enum net_verdict verdict;
    size_t used;      /* bytes of input that are dealt with; 0 unless DONE, MORE or CLOSE */
    int64_t until_ms; /* QUEUE, WAIT: Unix ms; INT64_MAX: no time is known */
    bool partial;     /* QUEUE, YIELD, WAIT, HOLD: what this call and those before it for the same
                         request wrote is to be kept back; serve finds it in out again */
    bool passed;      /* DONE: forwarded, and answered by others */
    bool begun;       /* MORE: what was used is a part of a request, and the rest is to come */
    uint8_t cost; /* DONE, YIELD: as many IDs it costs, about; NET_DEAR: more than one can say */
};

/* Why the loop has closed a connection that did nothing wrong by its protocol. */
enum net_end {
    NET_END_IDLE,    /* idle_timeout */
    NET_END_LOGIN,   /* login_timeout, or more input than a login has */
    NET_END_REQUEST, /* request_timeout */
    NET_END_SLOT,    /* made room for another, in a slot or in those places that are shared */
    NET_END_MEMORY,  /* net_config.memory was reached, and it kept much */
    NET_END_GONE,    /* its client had gone, seen by the sweep */
    NET_ENDS
};

const char *net_end_name(enum net_end e);

/* What serve is told about the turn. */
struct net_turn {
    struct clock *clock;
    int64_t wall_ms;    /* read once per turn; serve may refresh it */
    int64_t mono_ms;    /* read by the first in a turn that goes by it; 0: not yet */
    int64_t waited_us;  /* how long the request at the front has been in WAIT */
    int64_t ticket;     /* its own word, for serve: 0 at first, kept while it waits */
    uint32_t shared;    /* so many requests behind it have the same ticket; set by serve */
    uint32_t keys;      /* likewise: so many keys of it, behind the one that waits, … */
    uint32_t keys_each; /* … and all but the first of each request that shares it … */
    const void *whose;  /* … where they are of the one that it is of */
    bool arrived;       /* its ticket is new; of serve's alone */
    uint32_t quota;     /* IDs that may be spent before YIELD; serve counts down */
    size_t reply_start; /* where in out the reply to the request at the front begins */
    struct conn *conn;  /* whose turn it is, for net/upstream/upstream.h */
    /* The request at the front, and what has come behind it; empty where its service does not say.
     */
    struct span front, behind;
};

/* The request at the front was answered: its ticket is the next one's, where that shares it. */
static inline void net_turn_answered(struct net_turn *t)
{
    t->waited_us = 0;
    if (t->shared > 0) {
        t->shared--;
        t->keys = t->keys_each;
    } else {
        t->ticket = t->keys = 0;
    }
}

/* How many requests of the same bytes as the one at the front stand right behind it, up to most. */
uint32_t net_turn_like(const struct net_turn *t, uint32_t most);

/* A protocol, as the connection sees it. */
struct net_service {
    const char *name;    /* "memcached", "redis", "http": label of metrics, literal */
    size_t session_size; /* bytes of state per connection, zeroed at accept */

    /* MUST: takes one request, or nothing, from `in` and appends its reply to out. in is the whole
     * of what is there; in.n == NET_IN_MAX is all that there will be. */
    struct net_step (*serve)(struct net_service *svc, void *session, struct span in,
                             struct net_turn *turn, struct buf *out);
    /* MAY: tells a session, once, by which listener it came: net_door.tag. */
    void (*open)(struct net_service *svc, void *session, uint8_t tag);
    /* MAY: whether it has still to show who it is. Where it has once not, it is not asked again. */
    bool (*stranger)(const struct net_service *svc, const void *session);
    /* MAY: the number of the user that it has shown to be; 0: it has none. */
    uint32_t (*user)(const struct net_service *svc, const void *session);
    /* MAY: of a stranger that waits: it is we who look at what it has shown first. Its time does
     * not end meanwhile. */
    bool (*checked)(const struct net_service *svc, const void *session);
    /* MAY: bytes that it refers to, as of now; asked after each turn. */
    size_t (*holds)(const struct net_service *svc, const void *session);
    /* MAY: whether it is there to be told something, other than what its relay knows: it is not
     * idle. */
    bool (*listens)(const struct net_service *svc, const void *session);
    /* MAY: frees what the session refers to. Called once, when the connection is closed. */
    void (*close)(struct net_service *svc, void *session);
    /* MAY: whether the session may go on; see net_review. */
    bool (*stands)(const struct net_service *svc, const void *session);
    /* MAY: appends to a parcel what another program needs to go on with the session; false: not as
     * it is now. Without it no connection is carried. */
    bool (*pack)(const struct net_service *svc, const void *session, struct buf *parcel);
    /* MUST, with pack: takes it over into a session that is zero. false: it is not understood, and
     * the connection is closed. */
    bool (*unpack)(struct net_service *svc, void *session, struct span packed);
    struct span
        refusal; /* sent to a connection over the limit, before it is closed; may be empty */
    /* Connections of its own, which those of other services do not take: one that comes when they
     * are used up takes the place of the one that was silent longest. 0: none, it shares
     * net_config.connections, and is refused but where another makes room for it: a stranger, of
     * the party (net_peer.id) that has most of them; without strangers, one of a party that has
     * more than half of all, and more than its own. Set before the first is accepted. */
    uint32_t slots;

    /* MAY, all or none: with an upstream. */
    frame_fn *frame; /* where its replies end */
    /* By lane: what a shared link asks before it carries anything, to which a server that serves
     * has an answer; NULL: nothing. */
    const struct upstream_greeting *probe;
    /* How replies begin of a server that does not serve a connection, and say nothing of what was
     * asked for; up to an empty one; NULL: none. */
    const struct span *refusals;
    /* How replies begin that are due to what the server is in, whatever was asked; likewise. */
    const struct span *faults;
    struct span alien; /* how those of another kind of server begin; it may be empty */
    uint8_t unasked;   /* enum frame_kind: of what comes on a client's own link unasked */
    uint32_t nonce;    /* as frame.nonce */
    /* MAY: the enum upstream_lane whose protocol a session's own link is to speak; text without. */
    unsigned (*speaks)(const void *session);
    struct span lost; /* for a reply that will not come; may be empty: closes */
    /* A part of a merge begins (FRAME_PART): appends what stands before it to out. Or a reply has
     * ended of which that is to be told (UPSTREAM_TELL). true: out had no room for all of it; then
     * it is called once more, with the same and an out that has. */
    bool (*heard)(struct net_service *svc, void *session, const struct frame *f, struct buf *out);
    struct upstream *upstream; /* of net; NULL: none */

    /* Kept by net. */
    uint64_t connections; /* open now */
    uint64_t accepted;    /* since start */
    uint64_t refused;     /* over the limit, or not let in by the listener */
    uint64_t ended[NET_ENDS];
    uint64_t bytes_in, bytes_out;
    struct histogram duration; /* of requests, from being read to being handed to the kernel */
};

struct net_config {
    struct clock *clock;
    uint32_t connections;       /* limit, over all services without slots of their own */
    size_t memory;              /* bytes kept for all connections; 0: no limit */
    int64_t idle_timeout_us;    /* see idle.c; 0: never; so are the next two */
    int64_t login_timeout_us;   /* of strangers, since they were accepted */
    int64_t request_timeout_us; /* since a request began, or a part of a long one came */
    int64_t max_wait_us;        /* longest in WAIT */
    int64_t busy_poll_us; /* how long to look for input after a turn before sleeping; 0: not */
    /* MAY: after each turn in which serve was called, once the replies are written. */
    void (*settle)(void *arg);
    void *arg;
};

struct net;

enum err_code net_new(const struct net_config *c, struct net **out, struct err *e) MUST_CHECK;

/* Closes what is open and frees. NULL is allowed. */
void net_free(struct net *n);

/* Takes over new limits, on reload. */
void net_reconfigure(struct net *n, const struct net_config *c);

/* A listener's terms. */
struct net_door {
    uint32_t mode; /* permission bits of a socket file */
    uint8_t tag;   /* for svc->open; net makes nothing of it */
    /* UNIX sockets: users, by SO_PEERCRED, and groups, by SO_PEERGROUPS too, one of which a client
     * must have. Owned by the caller, to outlive net; both empty: anybody. */
    const uint32_t *uids, *gids;
    size_t nuids, ngids;
};

/* Listens on an address (net/addr.h) for svc, which must outlive n. A socket file that nobody
 * listens on is replaced; one that is in use is ERR_BUSY. bound, where not NULL, gets the address
 * with the port that the system chose. */
enum err_code net_listen(struct net *n, struct span address, const struct net_door *door,
                         struct net_service *svc, char *bound, size_t cap,
                         struct err *e) MUST_CHECK;

/* Runs until net_break. */
void net_run(struct net *n);
void net_break(struct net *n);

/* Calls fn in the loop when the signal arrives. At most 8 signals. */
enum err_code net_on_signal(struct net *n, int signo, void (*fn)(void *arg, int signo), void *arg,
                            struct err *e) MUST_CHECK;

/* fn is called in the loop some time after each net_notify, which any thread may call. One per net.
 */
void net_on_notify(struct net *n, void (*fn)(void *arg), void *arg);
void net_notify(struct net *n);

/* Calls fn in the loop once, after us microseconds; a second call replaces the first. */
void net_after(struct net *n, int64_t us, void (*fn)(void *arg), void *arg);

/* Calls fn in the loop every us microseconds, for as long as the loop runs. Once per net. */
void net_every(struct net *n, int64_t us, void (*fn)(void *arg), void *arg);

/* What requests in WAIT wait for may have come. */
void net_wake(struct net *n);

/* Some of those have not had their turn since. It ends soon, whatever comes, with a turn as a rule
 * (net_config.settle), or with a connection that is closed. */
bool net_is_waking(const struct net *n);

/* What the request of this connection, net_turn.conn, is in HOLD for has come. Not within a turn,
 * and not once its session was closed (svc->close). */
void net_wake_one(struct conn *c);

/* Who is at the other end: a process of this machine, an IPv4 address, or a network of IPv6, of 64
 * bits. Who is on this machine has all of 127.0.0.0/8. */
struct net_peer {
    uint64_t id[2]; /* equal for connections of the same */
    char text[64];  /* "10.0.0.7:40112", "[fd00::7]:40112", "uid 1000 pid 4711"; "?": not known */
};
void net_peer(const struct net_turn *t, struct net_peer *out);

/* Closes the connections whose session may not go on (svc->stands), whatever they do or wait for.
 * Not within a turn. Returns how many. */
uint64_t net_review(struct net *n);

/* Listens no more, answers what has arrived, and closes; then calls fn. Connections that do not
 * take their replies are closed after grace_us. */
void net_drain(struct net *n, int64_t grace_us, void (*fn)(void *arg), void *arg);

/* Bytes kept for connections: input, output, requests to the upstream, what sessions hold. */
uint64_t net_kept(const struct net *n);

/* Connections open, over all services. */
uint64_t net_connections(const struct net *n);

/* The path of a socket file that is gone or another's by now, so that nobody can come by it; or
 * NULL. Until the next call that changes the listeners. */
const char *net_lost_file(const struct net *n);

/* ---- carry.c: to and from a parcel (base/parcel.h), for a program that takes the place of this
 * one
 *
 *   | listeners | connections: input not dealt with, output not sent, session |
 */

/* Puts in what is open; their descriptors stay open here. Returns how many connections could not be
 * put in, and of how many clients that have gone what they left. purpose PARCEL_REHEARSE: only the
 * addresses that are listened on. */
uint64_t net_pack(struct net *n, enum parcel_purpose purpose, struct buf *parcel);

/* How many could not be put in as they are now, whatever room there is, and what clients that have
 * gone left to be sent: all that is kept for the others need not be copied to know that. */
uint64_t net_stuck(const struct net *n);

/* How many of those are stuck, whatever else they do, since replies to them are to come on links
 * that clients share. */
uint64_t net_expecting(const struct net *n);

/* From now on net_listen looks for an address in the records first: one listened on already is
 * taken over, where its socket file still is its own. The records must outlive net_adopt. */
void net_inherit(struct net *n, struct span records);

/* Takes over the connections to the services, if a listener of the same kind (TCP or UNIX) and tag
 * lets them in as they are now, and closes all that nobody took. Returns how many were taken;
 * *lost: how many were not. */
uint64_t net_adopt(struct net *n, struct net_service *const *services, size_t nservices,
                   uint64_t *lost);

#endif
