/*
 * What the files of this room share, and nobody else includes.
 *
 * Invariant: a connection is on exactly one of the lists all+queue, all+waiting, all+holding, all,
 * or dead.
 */
#ifndef SIDFLAKE_NET_PRIVATE_H
#define SIDFLAKE_NET_PRIVATE_H

#include "net/addr.h"
#include "net/net.h"

#include <ev.h>
#include <sys/stat.h>

#define NET_SIGNALS 8
#define NET_BLOCK   4096 /* bytes: what is left of a turn is rarely more */
#define NET_SPARE   32   /* blocks not given back to the system: 128 KiB at most */

/* A doubly linked ring with a head; an element off any list points to itself. */
struct link {
    struct link *prev, *next;
};

static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}

static inline bool link_empty(const struct link *l)
{
    return l->next == l;
}

static inline void link_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}

static inline void link_append(struct link *head, struct link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void link_prepend(struct link *head, struct link *l)
{
    link_append(head->next, l);
}

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

enum conn_state {
    CONN_READING,
    CONN_FLUSHING,
    CONN_QUEUED,
    CONN_WAITING,
    CONN_DEAD, /* closed, freed before the loop sleeps again */
};

struct conn {
    struct ev_io rd, wr;
    struct net *net;
    struct net_service *svc;
    struct link all;  /* net.all, least recently active first; or net.dead */
    struct link park; /* net.queue, net.waiting or net.holding */
    enum conn_state state;
    uint8_t mark; /* of the listener it came by */
    bool eof;     /* the client sends no more */
    bool closing; /* close once the output is sent */
    uint32_t in_n, in_cap;
    uint32_t out_n, out_cap, out_off, out_held;
    char *in;  /* input not dealt with: part of a request, or what comes after one that waits */
    char *out; /* output not sent; its last out_held bytes belong to an unfinished reply */
    int64_t active_us;  /* monotonic: latest read */
    int64_t parked_us;  /* monotonic: when the request at the front was first held up; 0: was not */
    int64_t waiting_us; /* the same for its first WAIT */
    int64_t until_ms;   /* QUEUED, WAITING: Unix ms */
    _Alignas(8) char session[];
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
    struct link all, dead, queue, waiting, holding;
    uint64_t connections;
    int64_t now_us; /* monotonic: end of the latest turn since the loop slept; 0: none was */

    char *in;            /* NET_IN_MAX bytes: the input of the turn */
    char *out;           /* NET_OUT_MAX bytes: its output */
    struct spare *spare; /* blocks of NET_BLOCK bytes that no connection needs now … */
    unsigned nspare;     /* … at most NET_SPARE */

    int timer_fd; /* timerfd for QUEUE and WAIT: libev's own timers have 1 ms steps */
    struct ev_io timer;
    struct ev_timer idle;   /* idle_timeout, for the least recently active connection */
    struct ev_timer resume; /* accepting again after the descriptors ran out */
    struct ev_timer after;
    struct ev_timer every;
    struct ev_prepare prepare;
    struct ev_idle spin; /* active: the loop polls without sleeping … */
    int64_t spin_us;     /* … until then, monotonic */
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
    bool resuming; /* the timer is set once, when all have been resumed */
};

/* A block without an owner. */
struct spare {
    struct spare *next;
};

/* conn.c */
struct conn *conn_new(struct net *n, struct net_service *svc, int fd,
                      uint8_t mark); /* NULL: no memory */
void conn_accepted(struct net *n, struct net_service *svc, int fd, uint8_t mark);
void conn_refuse(struct net_service *svc, int fd, struct span why);
void conn_restore(struct conn *c, struct span in, struct span out, size_t held);
void conn_resume(struct conn *c, uint32_t quota);
void conn_close(struct conn *c);
void conn_drain(struct conn *c);
void conn_free_spare(struct net *n);

/* park.c: who waits, and the timer that ends it */
void park_queue(struct conn *c, bool first);
void park_wait(struct conn *c);
void park_hold(struct conn *c);
void park_leave(struct conn *c);
void park_arm(struct net *n);
void park_fired(struct net *n);
void park_wake(struct net *n);

/* listener.c */
void listeners_accept(struct net *n, bool on);
void listeners_close(struct net *n);

/* Whether one that is open now, of the same kind and mark, would let the connection in. */
bool listeners_let_in(const struct net *n, const struct net_service *svc, int fd, uint8_t mark);

/* carry.c */
bool carry_listener(struct net *n, struct span address, const struct net_service *svc,
                    const struct addr *a, uint32_t mode, int *fd);

/* loop.c */
void net_check_drained(struct net *n);
void net_touch_idle(struct net *n);
void net_spin(struct net *n, int64_t now_us); /* only with busy_poll */

#endif
