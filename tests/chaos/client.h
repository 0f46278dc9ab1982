/*
 * One client: a connection to a sidecar, made again whenever it ends, on which batches of requests
 * follow each other.
 *
 * Invariants
 *   - A receipt is written for complete replies alone, and for each of them.
 *   - One batch is under way at a time; its replies come in order.
 */
#ifndef SIDFLAKE_CHAOS_CLIENT_H
#define SIDFLAKE_CHAOS_CLIENT_H

#include "receipt.h"
#include "reply.h"

#include <sys/socket.h>

#define CLIENT_IN_BYTES    (64u * 1024)
#define CLIENT_REQUEST_MAX (8u * 1024)

enum client_phase {
    CLIENT_CLOSED,
    CLIENT_CONNECTING,
    CLIENT_RESTING, /* until the next batch */
    CLIENT_ASKING
};

struct client {
    const struct client_habit *habit;
    enum receipt_kind kind;
    struct receipt_file *out; /* the hammer's */
    int slow;                 /* multiplies the time between batches; 1.. */
    struct sockaddr_storage address;
    socklen_t address_n;
    enum client_phase phase;
    int fd;         /* -1: none */
    int64_t due_us; /* monotonic: of the next connect or batch; ASKING: when to give up */
    char request[CLIENT_REQUEST_MAX];
    size_t request_n, sent;
    unsigned pending; /* requests of the batch without a whole reply */
    char in[CLIENT_IN_BYTES];
    size_t in_n;
    struct receipt open; /* being collected; count 0: none */
    uint64_t requests, answered, refused, lost, connects;
    int64_t fed_us;     /* true time of the latest ID: Unix microseconds */
    int64_t longest_us; /* time without one */
};

/* Whether it speaks the Redis protocol, else memcached's. */
bool client_is_resp(enum receipt_kind kind);

/* *c is zeroed, but for address. */
void client_init(struct client *c, enum receipt_kind kind, struct receipt_file *out, int slow);

/* What has come due by now_us, monotonic. */
void client_due(struct client *c, int64_t now_us);

/* Events of poll(2) to wait for, and those that came. */
short client_wanted(const struct client *c);
void client_ready(struct client *c, short events);

/* Writes down what is collected, and prints the sums. */
void client_finish(struct client *c);

/* Microseconds of a clock, CLOCK_REALTIME or CLOCK_MONOTONIC. */
int64_t client_now_us(int clock);

#endif
