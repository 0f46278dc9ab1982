/*
 * What the files of this room share, and nobody else includes.
 *
 * Invariant: a connection is on exactly one of the lists all+queue[i], all+waiting, all+turns,
 * all+ready, all+waiters, all+resting, all, or dead.
 */
#ifndef SIDFLAKE_NET_PRIVATE_H
#define SIDFLAKE_NET_PRIVATE_H

#include "base/log.h"
#include "base/ring.h"
#include "net/addr.h"
#include "net/net.h"
#include "net/resolve.h"
#include "net/upstream.h"

#include <ev.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NET_SIGNALS 8
#define TURNS_LINES 2    /* of turns.c */
#define NET_BLOCK   4096 /* bytes: what is left of a turn is rarely more */

/* block.c: bytes that outlive a turn: those from at up to n, in memory of its own. All 0: none. */
struct kept {
    char *p;
    uint32_t at, n, cap;
};

static inline struct span kept_span(const struct kept *k)
{
    return (struct span){k->p ? k->p + k->at : NULL, k->n - k->at};
}

/* Replaces them by bytes, which may be among them; puts bytes behind them. false: no memory, and
 * they are as before. */
bool kept_replace(struct net *n, struct kept *k, struct span bytes);
bool kept_add(struct net *n, struct kept *k, struct span bytes);
void kept_free(struct net *n, struct kept *k);

/* Most turns keep nothing, and find nothing kept: those make no call. */
static inline bool kept_set(struct net *n, struct kept *k, struct span bytes)
{
    return (bytes.n == 0 && !k->p) || kept_replace(n, k, bytes);
}

/* Moves them to `to`. Returns how many there were. */
static inline size_t kept_take(struct net *n, struct kept *k, char *to)
{
    if (!k->p)
        return 0;
    struct span have = kept_span(k);
    memcpy(to, have.p, have.n);
    kept_free(n, k);
    return have.n;
}

void blocks_free(struct net *n);

enum conn_state {
    CONN_READING,
    CONN_FLUSHING,
    CONN_QUEUED,
    CONN_WAITING,
    CONN_BEHIND,
    CONN_MORE, /* has input, and has had its time */
    CONN_DEAD, /* closed, freed before the loop sleeps again */
};

enum queue_line {
    QUEUE_CAME, /* asks, and has had nothing yet */
    QUEUE_MORE, /* has had a part */
    QUEUE_LINES
};

struct conn {
    struct ev_io rd, wr;
    struct net *net;
    struct net_service *svc;
    struct link all;     /* net.all, or net.dead */
    struct link quiet;   /* net.quiet */
    struct link park;    /* net.queue, .waiting, .turns, .ready or .resting, or link.waiters */
    struct link watch;   /* net.watched, or none */
    struct link slot;    /* net.slotted, or none */
    struct link place;   /* in lot */
    struct lot *lot;     /* of room.c; NULL: it is not asked to make room */
    struct relay *relay; /* NULL: nothing was forwarded yet */
    enum conn_state state;
    uint8_t mark;          /* of the listener it came by */
    bool eof;              /* the client sends no more */
    bool passing;          /* a part of a request was forwarded, and the client owes the rest */
    bool closing;          /* close once the output is sent */
    bool stranger, unread; /* unread: CONN_MORE, and it has sent something, too */
    uint8_t dear;          /* of turns.c: how dear its latest turns were */
    int untaken;           /* of idle.c: bytes with the kernel; 0: not known */
    uint32_t out_held;
    uint32_t walk;     /* net.walk of the latest that came by */
    size_t held;       /* bytes, by its session */
    struct kept in;    /* not dealt with: part of a request, or what comes after one that waits */
    struct kept out;   /* not sent; its last out_held bytes belong to an unfinished reply */
    int64_t active_us; /* monotonic: latest read */
    int64_t moved_us;  /* of idle.c: monotonic */
    int64_t since_us;  /* monotonic: accepted */
    /* Monotonic: the latest part came of a request that is not whole; 0: there is none. */
    int64_t begun_us;
    int64_t parked_us;  /* monotonic: when the request at the front was first held up; 0: was not */
    int64_t waiting_us; /* the same for its first WAIT */
    int64_t until_ms;   /* QUEUED, WAITING: Unix ms */
    _Alignas(8) char session[];
};

/* room.c: who makes room when all places are taken */
#define ROOM_RANKS 32 /* lots of 1, 2 to 3, 4 to 7 connections, and so on */

enum room_kind {
    ROOM_STRANGERS,
    ROOM_GUESTS, /* nobody asks them who they are */
    ROOM_KINDS
};

struct room {
    struct link ranks[ROOM_KINDS][ROOM_RANKS];
    struct party *bucket[256];
};

struct net_listener {
    struct ev_io accept;
    struct net *net;
    struct net_service *svc;
    struct net_door door;
    struct net_listener *next;
    char *address; /* as configured */
    char *path;    /* unix: to be unlinked if it still is our file */
    struct stat file;
};

struct net_signal {
    struct ev_signal watcher;
    void (*fn)(void *arg, int signo);
    void *arg;
};

struct net {
    struct net_config conf;
    struct ev_loop *loop;
    struct net_listener *listeners;
    struct span left; /* records of the program before, until net_adopt */
    struct link all, dead, waiting;
    struct link queue[QUEUE_LINES], turns[TURNS_LINES];
    enum queue_line line;                 /* of the queue: whose turn is next */
    struct link ready;                    /* BEHIND, and may go on */
    struct link resting;                  /* BEHIND, expects nothing, until not rests */
    struct link upstreams, dirty, broken; /* upstream.all; links: to be flushed, to be freed */
    struct link watched;                  /* of sweep.c */
    struct link quiet;                    /* of idle.c */
    struct link slotted;                  /* connections to services with slots */
    uint64_t shared;                      /* connections to the others … */
    struct room room;                     /* … and which of them have to make room */
    size_t nturns;                        /* in all lines */
    size_t nwatched, unswept;             /* in that list; in this round not looked at yet */
    bool heard;                           /* something, in this round */
    uint64_t connections;
    uint32_t walk; /* of conns_each, the latest */
    size_t bytes;  /* of memory.c */
    size_t peak;   /* of what was in use since it was given back */
    struct log_limit evictions, refusals, tardy;
    int64_t now_us;   /* monotonic: end of the latest turn since the loop slept; 0: none was */
    int64_t round_us; /* the same: begin of the first */
    int64_t turns_us; /* monotonic: end of the latest turns_run */
    int64_t dear_us;  /* that one line of turns has had more than the other: see turns.c */

    char *in;            /* NET_IN_MAX bytes: the input of the turn */
    char *out;           /* NET_OUT_MAX bytes: its output */
    char *up;            /* NET_IN_MAX bytes: what came from upstream; NULL: there is none */
    struct spare *spare; /* of block.c: blocks of NET_BLOCK bytes that no connection needs now … */
    unsigned nspare;     /* … so many */

    int timer_fd; /* timerfd for QUEUE and WAIT: libev's own timers have 1 ms steps */
    struct ev_io timer;
    struct ev_timer idle;   /* of idle.c */
    struct ev_timer resume; /* accepting again after the descriptors ran out */
    struct ev_timer after, every;
    struct ev_timer sweep; /* runs while connections are watched */
    struct ev_prepare prepare;
    struct ev_idle awake; /* active: somebody is in turns */
    struct ev_idle spin;  /* active: the loop polls without sleeping … */
    int64_t spin_us;      /* … until then, monotonic */
    struct ev_async notify;
    struct net_signal signal[NET_SIGNALS];
    unsigned nsignals;
    void (*on_notify)(void *arg);
    void *notify_arg;
    void (*on_after)(void *arg);
    void *after_arg;
    void (*on_every)(void *arg);
    void *every_arg;
    void (*on_drained)(void *arg);
    void *drained_arg;
    bool draining;
    bool rests;    /* of upstreams_rest */
    bool resuming; /* the timer is set once, when all have been resumed */
};

/* conn.c */
struct conn *conn_new(struct net *n, struct net_service *svc, int fd, uint8_t mark); /* or NULL */
void conn_accepted(struct net *n, struct net_service *svc, int fd, uint8_t mark);
void conn_refuse(struct net_service *svc, int fd, struct span why);
/* look: it may be within a request of which a part was forwarded. */
void conn_restore(struct conn *c, struct span in, struct span out, size_t held, bool look);
bool conn_deliver(struct conn *c, struct span bytes); /* false: it is closed */
/* Of one that is not read from: takes in all that it has sent, up to NET_HEARD_MAX, if
 * limits.memory has room for it. All of one before the next: were each heard in part, no end would
 * show. Between turns. Returns how many bytes; without memory it is closed. */
size_t conn_hear(struct conn *c);
void conn_resume(struct conn *c, uint32_t quota);
void conn_go_on(struct conn *c, bool unread); /* of turns */
void conn_close(struct conn *c);
void conn_drain(struct conn *c);
void conn_end(struct conn *c, enum net_end why);

void room_init(struct net *n);
void room_enter(struct conn *c); /* one without a slot */
void room_leave(struct conn *c); /* twice does no harm */
/* There is a place for whoever holds the other end of fd; if need be another's, who is closed. */
bool room_for(struct net *n, const struct net_service *svc, int fd);
/* The same for one more link of c's own, where they are used up. */
bool room_for_link(struct upstream *up, const struct conn *c);
size_t *room_held(struct lot *l); /* for memory.c alone */

/* After a turn this is not asked of who has logged in, and it is in no lot. */
static inline bool conn_is_stranger(struct conn *c)
{
    if (!c->stranger || c->svc->stranger(c->svc, c->session))
        return c->stranger;
    room_leave(c);
    return c->stranger = false;
}

/* It waits for us to look at the first password that it has shown. */
static inline bool conn_is_checked(const struct conn *c)
{
    return c->state == CONN_WAITING && c->svc->checked && c->svc->checked(c->svc, c->session);
}

/* peer.c */
void peer_of(int fd, struct net_peer *out);
/* Of TCP, both: who is gone without a word is noticed after a quiet minute and four questions. A
 * server also when it has taken nothing of what was sent for as long. A client may live and take
 * nothing for any time: whether it is gone is known once the system has sent that again for its
 * time, a quarter of an hour. */
void peer_watch_client(int fd);
void peer_watch_server(int fd);

/* idle.c: who is silent for too long */
void idle_init(struct net *n);
void idle_enter(struct conn *c);
void idle_leave(struct conn *c);
void idle_touch(struct conn *c); /* a byte has come or gone */
void idle_reconfigure(struct net *n, int64_t timeout_us);

/* turns.c: who has more to do */
void turns_init(struct net *n);
void turns_add(struct conn *c); /* has input, and no verdict but DONE */
void turns_leave(struct conn *c);
void turns_run(struct net *n);
void turns_between(struct net *n); /* somebody's turn begins, and what came has taken long */
int64_t turns_length_us(const struct net *n);                         /* of a turn, about */
void turns_note(struct conn *c, int64_t us, bool ended, size_t work); /* what its turn has cost */
bool turns_waits(const struct conn *c);
bool turns_crowded(const struct net *n);

/* memory.c: what is kept, all together */
void memory_evict(struct net *n);
void memory_note(struct conn *c); /* of a service with holds: asks it */
bool memory_is_slack(const struct net *n);
void memory_trim(struct net *n);

static inline void memory_add(struct net *n, size_t bytes)
{
    n->bytes += bytes;
    size_t all = n->bytes + (n->connections << 10);
    n->peak = all > n->peak ? all : n->peak;
}

static inline bool memory_has_room(const struct net *n, size_t bytes)
{
    return n->conf.memory == 0 || n->bytes + bytes <= n->conf.memory;
}

static inline void memory_check(struct net *n)
{
    if (n->bytes > n->conf.memory && n->conf.memory > 0)
        memory_evict(n);
}

/* sweep.c: what no event tells */
void sweep_init(struct net *n);
/* Who is not READING, is a stranger, or has a request that is not whole; twice does no harm. */
void sweep_watch(struct conn *c);
void sweep_forget(struct conn *c);
void sweep_slack(struct net *n); /* something was given up: perhaps there is much to give back */

/* park.c: who waits, and the timer that ends it */
void park_queue(struct conn *c, enum queue_line line);
void park_wait(struct conn *c);
void park_hold(struct conn *c);
void park_leave(struct conn *c);
uint32_t park_quota(const struct net *n); /* of a turn that the queue does not give */
void park_arm(struct net *n);
void park_fired(struct net *n);
void park_wake(struct net *n);

/* relay.c: what stands between a connection and its link */
struct relay {
    struct conn *c;          /* NULL: closed; replies are discarded */
    struct upstream_link *l; /* NULL: none; a shared one is there only while pending or blocked */
    uint32_t pending;        /* replies expected */
    uint32_t size;           /* bytes of a reply to it, about: see relay_measure */
    uint32_t window;         /* replies that it may expect; >= 1 */
    uint32_t enough;         /* it is woken when no more than so many are */
    bool own;                /* from now on: l is its own, or there is none */
    bool blocked;            /* waits for l: to open, or for room */
    bool called;             /* has waited so, and this is its turn */
    bool down;               /* what it waited for has failed */
    bool tunnel;             /* see net/upstream.h */
    bool loud;       /* got or sent something big: has a link of its own next, if there is room */
    bool broken;     /* a request could not be forwarded whole: close */
    bool late;       /* what has no reply may take any time, and so the next reply */
    bool owes;       /* the latest reply expected is to a request that is not whole yet */
    int64_t held_us; /* that others waited for it on shared links, in all pauses ended … */
    int64_t slow_us; /* … and without what a quick one needs for what it took; >= 0 */
    struct frame_subs subs; /* on its own link, as far as the replies have come */
};

void relay_closed(struct conn *c);      /* the connection closes */
void relay_settled(struct conn *c);     /* a turn has ended, or output was taken */
bool relay_waits(const struct conn *c); /* for replies that will come */
/* The server has something to do for it, or tells it what happens. */
bool relay_is_served(const struct conn *c);
/* Something that it does not expect has come in part: whatever were written now would be within. */
bool relay_hears_unasked(const struct relay *r);
void relay_behind(struct conn *c); /* it was set BEHIND */
void relay_answered(struct relay *r, uint32_t n);
/* n replies of so many bytes in all have come; 0: one has begun, of at least so many. */
void relay_measure(struct relay *r, uint32_t n, size_t bytes);
/* Gives it a link of its own that is open; false: no memory, and fd is closed. */
bool relay_adopt(struct conn *c, int fd);
/* n replies are to come on it; false: no memory. */
bool relay_expect(struct relay *r, uint8_t kind, uint32_t n, uint8_t flags, uint32_t acks);
void relay_wake(struct conn *c); /* if it is BEHIND, it goes on at the next net_go_on */
void net_go_on(struct net *n);

/* uplink.c: links to servers */
struct expect {
    struct relay *r;
    uint32_t n;
    uint8_t kind;  /* of enum frame_kind */
    uint8_t flags; /* of enum upstream_flag */
    uint32_t acks; /* 0, or n is 1, and it may end with so many: see upstream_expect_acks */
};

enum link_state {
    LINK_LOOKING, /* without a socket: the name is being looked up */
    LINK_CONNECTING,
    LINK_GREETING, /* connected: the login; see greet.c */
    LINK_PROBING,  /* shared, or optional: the service's probe */
    LINK_OPEN,
    LINK_BROKEN, /* freed before the loop sleeps again */
};

struct upstream_link {
    struct ev_io rd, wr;
    struct upstream *up;
    struct link all;       /* upstream.links, or net.broken */
    struct link dirty;     /* net.dirty */
    struct link waiters;   /* conn.park of those who are blocked */
    struct relay *owner;   /* NULL: shared */
    struct relay *stalled; /* shared: does not take its reply; reading has paused */
    enum link_state state;
    bool framing;  /* frame is under way */
    bool unasked;  /* nothing was expected when it began, whatever is by now */
    bool used;     /* something was sent */
    bool heard;    /* a reply has come that is no refusal … */
    bool refused;  /* … or was counted as one */
    bool done;     /* retired, and nothing is expected */
    bool mute;     /* of what was sent last no reply may tell that it was taken */
    bool optional; /* one's own, not open yet: where it is not let in, the shared one will do */
    uint8_t lane;
    uint8_t speaks;      /* the shared lane whose protocol it speaks: lane, where that is shared */
    uint8_t tries;       /* addresses tried */
    uint32_t round;      /* of upstream, when the one at hand was */
    struct kept out;     /* requests not sent */
    struct kept in;      /* what the framer wants to see again */
    struct expect *fifo; /* a ring, in the order of the requests */
    uint32_t fifo_at, fifo_n, fifo_cap;
    uint32_t replies; /* expected, over all entries */
    uint32_t patient; /* among them: those that may take any time */
    uint32_t orphans; /* among them, on a shared one: those of clients that are gone */
    uint32_t size;    /* bytes of a reply, about */
    struct frame frame;
    uint64_t frame_n;           /* bytes of it */
    int64_t since_us;           /* monotonic: latest sign of life while one is expected */
    int64_t stalled_us;         /* monotonic: since then … */
    size_t stalled_n;           /* … when so many bytes were not taken … */
    struct net_peer stalled_by; /* … by this one, who cannot be asked any more if he goes */
};

/* reach.c: whether a server can be reached */
struct backoff {
    int64_t until_us; /* monotonic: not to be tried before; 0: at once */
    int64_t step_us;  /* the latest wait */
};

/* Each has a limit of its own in the log. */
enum upstream_trouble {
    TROUBLE_CONNECT,
    TROUBLE_LOGIN,
    TROUBLE_SHARED,
    TROUBLE_RETIRED,
    TROUBLE_OWN,
    TROUBLE_HERE,
    TROUBLES
};

/* cut.c: who held up others */
#define CUTS 64 /* parties; the one that came first makes room */

struct cut {
    uint64_t id[2]; /* net_peer.id */
    int64_t until_us;
    uint32_t left; /* connections */
};

struct cuts {
    struct cut of[CUTS];
    unsigned at;
    int64_t latest_us; /* monotonic: when it was */
    struct log_limit said;
};

/* greet.c: what links begin with */
struct greeting {
    char *bytes; /* of g, ours; NULL: none */
    struct upstream_greeting g;
};

struct upstream {
    struct net *net;
    struct net_service *svc;
    struct link all; /* net.upstreams */
    struct link links;
    struct upstream_link *shared[UPSTREAM_SHARED]; /* by lane; NULL: none */
    struct upstream_link *next[UPSTREAM_SHARED];   /* is to take its place once it is open */
    uint32_t others_max;                           /* links but these; 0: no limit */
    struct upstream_stats stats;
    struct ev_timer tick; /* runs while something is expected */
    int64_t timeout_us;
    size_t buffer;
    int64_t hurry_us;   /* monotonic: until then nobody may hold up others for long */
    int64_t left_us;    /* that all together may, before there is hurry or in it; >= 0 … */
    int64_t charged_us; /* … at this time, monotonic: when a pause ended */
    struct cuts cuts;
    struct backoff connects;              /* after a round of all addresses */
    struct backoff lane[UPSTREAM_SHARED]; /* after a shared link that brought no reply */
    struct greeting greeting[UPSTREAM_SHARED];
    struct backoff refused[UPSTREAM_SHARED]; /* after a login that did not let us in */
    struct backoff unready[UPSTREAM_SHARED]; /* after a successor that did not come to be */
    uint32_t round;  /* counts changes of what is known of the address in use */
    unsigned missed; /* addresses that failed, one after the other */
    unsigned spoken; /* the shared lane whose protocol the latest link speaks */
    enum {
        SAID_NOTHING,
        SAID_LOST,
        SAID_REACHED
    } said;                        /* by the log */
    enum upstream_trouble said_of; /* SAID_LOST: of what kind */
    struct log_limit limit[TROUBLES];
    char why[ERR_TEXT_MAX];
    char *text; /* its address, as configured */
    unsigned naddr, at;
    struct sockaddr_storage addr[ADDRESSES];
    socklen_t addr_n[ADDRESSES];

    /* find.c: of a server that has a name */
    struct resolver *resolver; /* NULL: the addresses are known for good */
    struct ev_async found;
    char host[256];
    int64_t found_us; /* monotonic: the addresses are from then; INT64_MIN: there are none */
};

struct upstream_link *link_new(struct upstream *up, struct relay *owner, unsigned lane);
struct upstream_link *link_adopt(struct upstream *up, struct relay *owner, int fd);
/* Its addresses are known, or not to be had. */
void link_found(struct upstream_link *l);
void link_opened(struct upstream_link *l);
void link_close(struct upstream_link *l); /* without a word to anybody */
void link_fail(struct upstream_link *l, const char *why);
void link_ended(struct upstream_link *l); /* the server has closed it, and owes nothing */
void link_spoil(struct upstream_link *l); /* the same for want of memory: not the server's fault */
void link_drop(struct upstream_link *l);  /* the same, and nothing is said of it */
bool link_has_room(const struct upstream_link *l);
/* Replies that r may expect on it; >= 1. */
uint32_t link_share(const struct upstream_link *l, const struct relay *r);
/* There may be one more link but the shared ones in use: a client's own, or one that is retired. */
bool upstream_may_own(const struct upstream *up);
bool link_put(struct upstream_link *l, struct span bytes);
bool link_expect(struct upstream_link *l, const struct expect *x);
/* Somebody expects a reply behind the one that is not taken, or rests until none is expected. */
bool link_others_wait(const struct upstream_link *l, const struct relay *stalled);
void link_retire(struct upstream_link *l);  /* shared: takes no more requests */
void link_replace(struct upstream_link *l); /* shared: the same, once another can take its place */
void link_deserted(struct upstream_link *l, uint32_t n); /* shared: who expects n replies is gone */
void link_read_on(struct upstream_link *l);
/* If it is open and has room, who has waited longest for it has its turn at the next net_go_on,
 * which then gives it to the next one. */
void link_wake(struct upstream_link *l);
void link_free(struct upstream_link *l);
void upstreams_flush(struct net *n);

/* reach.c, what has happened: */
bool upstream_waits(const struct upstream *up, unsigned lane, unsigned speaks); /* not now */
/* The address in use did not let us connect; round: of upstream, at the start of the attempt. */
void upstream_missed(struct upstream *up, uint32_t round, const char *why);
void upstream_lookup_failed(struct upstream *up, const char *why); /* of its name */
void upstream_connected(struct upstream *up);
/* The login was, or a shared link that was probed. */
void upstream_refused(const struct upstream_link *l, const char *why);
/* A reply says so before another has come; alien: it is of another kind. */
void upstream_unserved(struct upstream_link *l, const char *why, bool alien);
void upstream_serves(struct upstream *up);    /* a shared link was let in */
void upstream_heard(struct upstream_link *l); /* it has brought a reply that is no refusal */
void upstream_broke(const struct upstream_link *l, const char *why);
void upstream_short(struct upstream *up, const char *why); /* it is we who cannot */
void upstream_unready(struct upstream *up, unsigned lane, const char *why); /* a successor's end */

/* find.c: where it is */
enum err_code find_begin(struct upstream *up, const struct addr *a, upstream_look_up *look_up,
                         struct err *e) MUST_CHECK;
bool find_must_ask(struct upstream *up);  /* the name has to be looked up, and is being so */
bool find_has(const struct upstream *up); /* addresses that may be used */
void find_end(struct upstream *up);

/* dial.c: a connection to the address in use is under way, or to the next that lets it begin; the
 * second: what was under way could not be had. false: to none. */
bool link_dial(struct upstream_link *l);
bool link_dial_elsewhere(struct upstream_link *l, const char *why);

/* greet.c */
#define GREET_ALIEN "it does not speak the protocol"
/* It has connected. false: there is nothing to say. */
bool greet(struct upstream_link *l);
void greet_hear(struct upstream_link *l);
/* Whether the reply is one of a server that does not serve this connection, and if so what follows
 * for what is known of it. */
bool greet_is_refusal(struct upstream_link *l, struct span reply);
void greetings_free(struct upstream *up);

/* cut.c */
void cut_note(struct upstream *up, const struct net_peer *peer); /* it holds up others */
/* Closes the client that has stalled l, if that is for too long and others wait. */
bool cut_slow(struct upstream_link *l, int64_t now);
void cut_pause_begins(struct upstream_link *l, struct relay *r, int64_t now);
void cut_pause_ends(struct upstream_link *l, int64_t now); /* however; its client is still known */
bool cut_hurries(const struct upstream *up, int64_t now);  /* there is little time for that */
/* Whether c, which asks for the first time, should have a link of its own. */
bool cut_recalls(struct upstream *up, const struct conn *c);

/* upstream.c: servers */
void upstream_tick(struct upstream *up);      /* something is expected: its timer has to run */
void upstream_tick_anew(struct upstream *up); /* the same, and look sooner where there is hurry */
void upstreams_free(struct net *n);

static inline int64_t upstream_now_us(const struct upstream *up)
{
    return clock_mono_us(up->net->conf.clock);
}

/* feed.c: from a link to the clients */
void feed(struct upstream_link *l);

/* listener.c */
void listeners_accept(struct net *n, bool on);
void listeners_close(struct net *n);

/* Whether one that is open now, of the same kind and mark, would let the connection in. */
bool listeners_let_in(const struct net *n, const struct net_service *svc, int fd, uint8_t mark);

/* carry.c */
bool carry_listener(struct net *n, struct span address, const struct net_service *svc,
                    const struct addr *a, uint32_t mode, int *fd);

/* loop.c */
/* Calls fn for each connection that is there when its turn comes, once and in order. fn may close
 * any of them, but not walk itself. */
void conns_each(struct net *n, void (*fn)(struct conn *c));
void net_check_drained(struct net *n);
void net_spin(struct net *n, int64_t now_us); /* only with busy_poll */

#endif
