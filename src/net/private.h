/*
 * What the files of this room share, and nobody else includes.
 *
 * Invariant: a connection is on exactly one of the lists all+queue[i], all+waiting[i], all+woken,
 * all+due, all+turns, all+ready, all+waiters, all+resting, all, or dead.
 */
#ifndef SIDFLAKE_NET_PRIVATE_H
#define SIDFLAKE_NET_PRIVATE_H

#include "base/log.h"
#include "base/ring.h"
#include "net/addr.h"
#include "net/net.h"
#include "net/passed_fd.h"
#include "net/upstream/upstream.h"

#include <ev.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NET_SIGNALS  8
#define NET_STILL_US INT64_C(100000) /* of a timer, late by more: the process was stopped */
#define TURNS_LINES  2               /* of turns.c */
#define NET_BLOCK    4096            /* bytes: what is left of a turn is rarely more */

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
size_t kept_more(const struct kept *k, size_t n); /* bytes that it is larger by, behind n at most */
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

enum waiting_line {
    WAITING_CAME,  /* for the first time */
    WAITING_AGAIN, /* was resumed in vain, and so came before all of those */
    WAITING_LINES
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
    struct lot *lot;     /* of room.c; NULL: none, for want of memory */
    uint32_t user;       /* whose it is in that; 0: nobody's */
    struct relay *relay; /* NULL: nothing was forwarded yet */
    enum conn_state state;
    uint8_t tag;           /* of the listener it came by */
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
    int64_t active_us; /* monotonic: latest read; of one not read from, or write */
    int64_t moved_us;  /* of idle.c: monotonic */
    int64_t since_us;  /* monotonic: accepted */
    /* Monotonic: the latest part came of a request that is not whole; 0: there is none. */
    int64_t begun_us;
    int64_t parked_us;  /* monotonic: when the request at the front was first held up; 0: was not */
    int64_t waiting_us; /* the same for its first WAIT */
    int64_t ticket;     /* of net_turn, for the request at the front, … */
    uint32_t shared;    /* … and for so many behind it */
    uint32_t keys, keys_each;
    const void *whose;
    int64_t until_ms; /* QUEUED, WAITING: Unix ms */
    _Alignas(8) char session[];
};

/* room.c: who makes room when all places are taken */
#define ROOM_RANKS 32 /* lots of 1, 2 to 3, 4 to 7 connections, and so on */

enum room_kind {
    ROOM_STRANGERS,
    ROOM_GUESTS,  /* nobody asks them who they are */
    ROOM_KNOWN,   /* have logged in: whoever comes does not take their place */
    ROOM_SLOTTED, /* of a service with slots: a lot for what is kept alone */
    ROOM_KINDS
};

/* Of what there are so many: each has a limit of its own in the log. */
enum room_place {
    ROOM_SHARED, /* limits.connections */
    ROOM_SLOTS,  /* net_service.slots */
    ROOM_LINKS,  /* upstream.connections */
    ROOM_PLACES
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
    struct link all, dead;
    struct link waiting[WAITING_LINES];
    struct link woken, due; /* WAITING no more: for a change that came, and since their time has */
    bool wakes_again;       /* another has come before all of those had their turn */
    struct link queue[QUEUE_LINES], turns[TURNS_LINES];
    enum queue_line line;                 /* of the queue: whose turn is next */
    struct link ready;                    /* BEHIND, and may go on */
    struct link roomy;                    /* links that have room for those who wait for it */
    struct link uncrowded;                /* crowds where the first of those who wait may go on */
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
    uint32_t walk;              /* of conns_each, the latest */
    size_t bytes;               /* of memory.c */
    size_t peak;                /* of what was in use since it was given back */
    bool weighed;               /* in this round of the sweep, for … */
    const struct lot *heaviest; /* … of which most was kept; not to be looked into */
    unsigned nfavoured;         /* over all lots */
    struct log_limit evictions, waits, refusals, unwelcome, tardy, displaced[ROOM_PLACES];
    int64_t now_us;   /* monotonic: end of the latest turn since the loop looked; 0: none was */
    int64_t round_us; /* the same: begin of the first, or of a list's round */
    int64_t turns_us; /* monotonic: end of the latest turns_run */
    int64_t dear_us;  /* that one line of turns has had more than the other: see turns.c */

    char *in;            /* NET_IN_MAX bytes: the input of the turn */
    char *out;           /* NET_OUT_MAX bytes: its output */
    char *up;            /* NET_IN_MAX bytes: what came from upstream; NULL: there is none */
    struct spare *spare; /* of block.c: blocks of NET_BLOCK bytes that no connection needs now … */
    unsigned nspare;     /* … so many */

    int timer_fd;     /* timerfd for QUEUE and WAIT: libev's own timers have 1 ms steps */
    int64_t fires_us; /* monotonic: when it does; INT64_MAX: not */
    struct ev_io timer;
    struct ev_timer idle;   /* of idle.c */
    struct ev_timer resume; /* accepting again after the descriptors ran out */
    struct ev_timer after, every;
    struct ev_timer sweep;             /* runs while connections are watched */
    int64_t idle_due_us, sweep_due_us; /* monotonic: when these two are to fire */
    struct ev_prepare prepare;
    struct ev_idle awake; /* active: somebody is in turns, or may go on */
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
    bool fds_come;    /* of passed_fd.h: the kernel does not refuse them */
    bool rests;       /* of upstreams_rest */
    uint64_t leaving; /* links in that state */
    bool revokes;     /* whoever is closed now is, since he may not go on */
    bool resuming;    /* those in the queue: the timer is set once they have been */
};

/* Where the kernel does not refuse descriptors, they have to be looked for. */
static inline ssize_t net_recv(const struct net *n, int fd, void *to, size_t room)
{
    return n->fds_come ? passed_fd_recv(fd, to, room) : recv(fd, to, room, MSG_DONTWAIT);
}

static inline void net_hang_up(const struct net *n, int fd)
{
    if (n->fds_come)
        passed_fd_close(fd);
    else
        (void)close(fd);
}

/* A timer that judges who is late, and is late itself: the process was stopped. That is nobody's
 * delay but ours, and what came meanwhile is not read yet. For how long it stood still, and a
 * moment in which that is read; or 0. */
static inline int64_t net_stood_still(int64_t due_us, int64_t now_us)
{
    return now_us - due_us > NET_STILL_US ? now_us - due_us + NET_STILL_US : 0;
}

/* What began at *since_us did so later by as much. */
static inline void net_excuse(int64_t *since_us, int64_t still_us, int64_t now_us)
{
    *since_us = *since_us + still_us < now_us ? *since_us + still_us : now_us;
}

/* conn.c */
struct conn *conn_new(struct net *n, struct net_service *svc, int fd, uint8_t tag); /* or NULL */
void conn_accepted(struct net *n, struct net_service *svc, int fd, uint8_t tag);
void conn_refuse(const struct net *n, struct net_service *svc, int fd, struct span why);
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
void room_enter(struct conn *c, enum room_kind kind); /* leaves another */
void room_leave(struct conn *c);                      /* twice does no harm */
/* There is a place for whoever holds the other end of fd; if need be another's, who is closed. */
bool room_for(struct net *n, const struct net_service *svc, int fd);
/* The same for one more link of c's own, where they are used up. */
bool room_for_link(struct upstream *up, const struct conn *c);

/* Of a lot, for memory.c and sweep.c alone. */
struct room_kept {
    size_t bytes; /* as they were weighed, and what was allowed since */
    struct favour {
        const struct conn *of; /* who is heard to the end, or NULL: open, and of the lot */
        size_t heard;          /* bytes of it that stood unread … */
        int64_t since_us;      /* … then, monotonic: it has gone on since, or has not */
    } favour;
};

struct room_kept *room_kept(struct lot *l);

/* Of who has logged in once this is not asked any more. */
static inline bool conn_is_stranger(const struct conn *c)
{
    return c->stranger && c->svc->stranger(c->svc, c->session);
}

/* After a turn, which may have been a login, the first or another. */
static inline void conn_note_user(struct conn *c)
{
    uint32_t user = c->user > 0 ? c->svc->user(c->svc, c->session) : 0;
    bool comes = c->stranger && !conn_is_stranger(c);
    c->stranger &= !comes;
    if (c->lot && (comes || (user > 0 && user != c->user)))
        room_enter(c, ROOM_KNOWN);
}

/* It waits for us to look at the first password that it has shown. */
static inline bool conn_is_checked(const struct conn *c)
{
    return c->state == CONN_WAITING && c->svc->checked && c->svc->checked(c->svc, c->session);
}

/* peer.c */
void peer_of(int fd, struct net_peer *out);
/* Of TCP, both: who is gone without a word is noticed after a quiet minute and four questions. A
 * server also when it has taken nothing of what was sent for as long, or for timeout_us. A client
 * may live and take nothing for any time: whether it is gone is known once the system has sent that
 * again for its time, a quarter of an hour. And of what a server does not take the kernel keeps
 * little. */
void peer_watch_client(int fd);
void peer_watch_server(int fd, int64_t timeout_us);

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
/* The time since the loop looked last, or since a list has its round, and what it is by now. */
void turns_begin(struct net *n);
void turns_tick(struct net *n);
bool turns_crowded(const struct net *n); /* that is a round */

/* Something has come: the first of it begins a round. */
static inline void turns_came(struct net *n)
{
    if (n->now_us == 0)
        turns_begin(n);
}

/* memory.c: what is kept, all together */
void memory_evict(struct net *n);
void memory_favour(struct conn *c, bool is); /* where no other of its lot is */
bool memory_favours(const struct conn *c);
void memory_note(struct conn *c); /* of a service with holds: asks it */
bool memory_is_slack(const struct net *n);
void memory_trim(struct net *n);
/* For so much more of c's, which stands still for good without. Those of whom most is kept make it
 * if need be, but for one of them: of each party they wait for each other. So above half of
 * limits.memory one of it at a time is heard to the end, its favoured; who is asked for first when
 * there is none is the one. Of a party that keeps less than another a part is for all, before. */
bool memory_has_room(struct conn *c, size_t bytes);

static inline void memory_add(struct net *n, size_t bytes)
{
    n->bytes += bytes;
    size_t all = n->bytes + (n->connections << 10);
    n->peak = all > n->peak ? all : n->peak;
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
void park_fired(struct net *n);
void park_wake(struct net *n);
/* Those who wait no more have their turn, for a round. */
void park_run_woken(struct net *n);

/* Whether that is to be called: those who were woken may be gone by then, and another change have
 * come before. */
static inline bool park_has_woken(const struct net *n)
{
    return !link_empty(&n->woken) || !link_empty(&n->due) || n->wakes_again;
}

/* listener.c */
void listeners_accept(struct net *n, bool on);
void listeners_close(struct net *n);

/* Whether one that is open now, of the same kind and tag, would let the connection in. */
bool listeners_let_in(const struct net *n, const struct net_service *svc, int fd, uint8_t tag);

/* carry.c */
/* The address of the server so called that the program before had reached, or 0. */
socklen_t carry_reached(const struct net *n, const char *text, struct sockaddr_storage *out);
bool carry_listener(struct net *n, struct span address, const struct net_service *svc,
                    const struct addr *a, uint32_t mode, int *fd);

/* loop.c */
/* Calls fn for each connection that is there when its turn comes, once and in order. fn may close
 * any of them, but not walk itself. */
void conns_each(struct net *n, void (*fn)(struct conn *c));
void net_check_drained(struct net *n);
void net_spin(struct net *n, int64_t now_us); /* only with busy_poll */

#endif
