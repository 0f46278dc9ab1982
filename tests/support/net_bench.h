/*
 * A loop in a thread of its own, with a toy service to talk to, and clients with blocking sockets.
 *
 * The service answers lines:
 *
 *   TEXT         TEXT, as it came
 *   big N        N bytes and a line feed, all 'x' (N <= 400,000)
 *   wait         NET_WAIT until the gate is open: "open"; or until max_wait has passed: "late"
 *   half         the same, but "half " is written before the wait and kept back
 *   ticket       the same as wait, and then the words that this request had when it came and when
 *                it went on: "0 7", 7 being how many have asked so; up to net_bench.share of the
 *                same that had come with it share its word
 *   piece        NET_WAIT until there is a piece, which it takes: "piece"
 *   hold         NET_HOLD until the gate is open: what a TEXT is answered
 *   check        the same as hold, and is what net_service.checked says of a stranger
 *   until N      NET_WAIT for N ms from now at most: "time"
 *   take N       N tokens, of which there are 1,024 in each millisecond, in turn: "took N"
 *   spin N       "spun", after N us of work
 *   login        "welcome": it is a stranger no more, where strangers is set
 *   login N      the same, as the user of that number
 *   close        "bye", and closes; what follows it is not answered
 *
 * Invariants
 *   - What the loop's thread owns is touched by others only through net_bench_call.
 *   - A client that hears nothing for 30 s fails the test.
 */
#ifndef SIDFLAKE_SUPPORT_NET_BENCH_H
#define SIDFLAKE_SUPPORT_NET_BENCH_H

#include "net/net.h"

#include <pthread.h>

struct net_bench {
    struct net_service svc; /* first: the toy finds the bench by it */
    struct net_config conf;
    struct net_door door; /* of the listener; mode 0600 */
    struct net *net;
    char address[160]; /* of the listener, as addr_parse reads it */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    void (*fn)(struct net_bench *, void *arg); /* to be called in the loop; NULL: none */
    void *arg;
    bool running;
    bool halted; /* its thread ends behind the next call */

    /* The loop's own. */
    bool open;        /* the gate */
    bool strangers;   /* whoever comes is one */
    int64_t ms;       /* the tokens' millisecond … */
    uint32_t taken;   /* … and how many of them are gone */
    int64_t tickets;  /* given so far */
    uint32_t share;   /* most that a ticket is given to behind the first */
    unsigned pieces;  /* that are there */
    unsigned closed;  /* sessions ended */
    uint8_t tag;      /* of the door that the latest session came by */
    unsigned settled; /* turns */
    bool drained;     /* atomic */
};

/* conf.clock and conf.connections are set: the system's, 100. No listener yet. */
void net_bench_init(struct net_bench *b);

/* Listens on address ("tcp://127.0.0.1:0" where NULL) and runs. */
void net_bench_start(struct net_bench *b, const char *address);

/* The same, with what another loop has left (net_inherit). */
void net_bench_inherit(struct net_bench *b, struct span records, const char *address);

/* Runs fn in the loop and waits until it has returned. */
void net_bench_call(struct net_bench *b, void (*fn)(struct net_bench *, void *), void *arg);

/* The same, and the loop does nothing more, as one whose program has given way to another by
 * execve: what it has not read is the next one's. It may only be stopped then. fn may be NULL. */
void net_bench_halt(struct net_bench *b, void (*fn)(struct net_bench *, void *), void *arg);

/* Listens on a UNIX socket, too; inside has its address alone: for another party than who comes by
 * TCP. */
void net_bench_inside(struct net_bench *b, struct net_bench *inside);

/* Opens the gate and wakes those who wait. */
void net_bench_open_gate(struct net_bench *b);

/* Drains; drained is set when the loop says so. */
void net_bench_drain(struct net_bench *b, int64_t grace_us);

uint64_t net_bench_connections(struct net_bench *b);
uint64_t net_bench_bytes_in(struct net_bench *b);
uint64_t net_bench_accepted(struct net_bench *b);
uint64_t net_bench_turns(struct net_bench *b);
uint64_t net_bench_ended(struct net_bench *b, enum net_end why);

/* Stops the loop and frees it. Harmless when it does not run. */
void net_bench_stop(struct net_bench *b);

/* For tests whose state is a bench (cmocka_unit_test_prestate_setup_teardown): init and stop. */
int net_bench_begin(void **state);
int net_bench_end(void **state);

/* ---- clients */

int dial(const struct net_bench *b);
void say(int fd, const char *text);

/* The next bytes are these. */
void expect(int fd, const char *text);

/* The other side has closed: nothing else comes. */
void expect_end(int fd);

/* Nothing comes for ms. */
void expect_silence(int fd, int ms);

/* Whether the condition of the loop comes true in 30 s; looked at every millisecond. */
#define NET_AWAIT(condition)                                                                       \
    do {                                                                                           \
        int left_ = 30000;                                                                         \
        while (!(condition) && left_-- > 0)                                                        \
            (void)poll(NULL, 0, 1);                                                                \
        assert_true(left_ > 0);                                                                    \
    } while (0)

#endif
