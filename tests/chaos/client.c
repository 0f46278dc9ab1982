/*
 * What is printed is described in hammer.c.
 */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GAP_US   250000
#define RETRY_US 20000

/* One client's way of asking. Slow ones have no timeout to speak of, so that replies which a
 * stopped process had under way are received after all; quick ones give up and connect again. */
struct client_habit {
    const char *request;
    unsigned times;  /* the request, in one batch */
    unsigned spread; /* IDs that one number in a reply stands for: the last of so many */
    int64_t period_us;
    int64_t timeout_us;
    enum reply_status (*read)(const char *p, size_t n, struct reply *out);
};

#define PATIENT_US INT64_C(600000000)

static const struct client_habit habits[RECEIPT_KINDS] = {
    [RECEIPT_LPOP] = {"*3\r\n$4\r\nLPOP\r\n$4\r\nid:x\r\n$4\r\n1000\r\n", 1, 1, 40000, PATIENT_US,
                      reply_resp},
    [RECEIPT_GET] = {"*2\r\n$3\r\nGET\r\n$4\r\nid:x\r\n", 20, 1, 4000, 1000000, reply_resp},
    [RECEIPT_INCR] = {"*2\r\n$4\r\nINCR\r\n$4\r\nid:x\r\n", 8, 1, 2000, PATIENT_US, reply_resp},
    [RECEIPT_INCRBY] = {"*3\r\n$6\r\nINCRBY\r\n$4\r\nid:x\r\n$2\r\n64\r\n", 1, 64, 7000, 700000,
                        reply_resp},
    [RECEIPT_MC_MULTIGET] = {"get id:x", 1, 1, 20000, 1500000, reply_memcached},
    [RECEIPT_MC_GET] = {"get id:x\r\n", 100, 1, 10000, PATIENT_US, reply_memcached},
};

bool client_is_resp(enum receipt_kind kind)
{
    return habits[kind].read == reply_resp;
}

int64_t client_now_us(int clock)
{
    struct timespec ts;
    (void)clock_gettime((clockid_t)clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void give_up(const char *doing)
{
    (void)fprintf(stderr, "hammer: %s: %s\n", doing, strerror(errno));
    exit(2);
}

static void close_receipt(struct client *c)
{
    if (c->open.count == 0)
        return;
    receipt_put(c->out, c->open);
    c->open.count = 0;
}

static void enter(struct client *c, uint64_t first, uint32_t count, int64_t when)
{
    if (c->open.count > 0 && c->open.first + c->open.count == first) {
        c->open.count += count;
        return;
    }
    close_receipt(c);
    c->open = (struct receipt){.first = first,
                               .when_us = (uint64_t)when,
                               .count = count,
                               .sidecar = c->out->sidecar,
                               .kind = (uint8_t)c->kind,
                               .life = (uint8_t)c->connects};
}

/* The client has an ID again, or (at the end) still has none. */
static void feed(struct client *c, int64_t when)
{
    int64_t gap = when - c->fed_us;
    if (gap > c->longest_us)
        c->longest_us = gap;
    if (gap > GAP_US)
        (void)printf("gap %d %" PRId64 " %" PRId64 "\n", (int)c->kind, c->fed_us, gap);
    c->fed_us = when;
}

static void hang_up(struct client *c)
{
    close_receipt(c);
    c->lost += c->pending;
    c->pending = 0;
    (void)close(c->fd);
    c->fd = -1;
    c->phase = CLIENT_CLOSED;
    c->due_us = client_now_us(CLOCK_MONOTONIC) + RETRY_US;
}

static void dial(struct client *c)
{
    const struct sockaddr *to = (const struct sockaddr *)&c->address;
    int on = 1;
    c->connects++;
    c->in_n = 0;
    c->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        give_up("making a socket");
    if (to->sa_family == AF_INET)
        (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, to, c->address_n) == 0)
        c->phase = CLIENT_RESTING;
    else if (errno == EINPROGRESS)
        c->phase = CLIENT_CONNECTING;
    else
        hang_up(c);
}

static void connected(struct client *c)
{
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error != 0)
        hang_up(c);
    else
        c->phase = CLIENT_RESTING;
}

static void push(struct client *c)
{
    ssize_t n = send(c->fd, c->request + c->sent, c->request_n - c->sent, MSG_NOSIGNAL);
    if (n >= 0)
        c->sent += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        hang_up(c);
}

static void ask(struct client *c, int64_t now)
{
    c->phase = CLIENT_ASKING;
    c->pending = c->habit->times;
    c->requests += c->pending;
    c->sent = 0;
    c->due_us = now + c->habit->timeout_us;
    push(c);
}

static void take(struct client *c, const struct reply *reply)
{
    int64_t when = client_now_us(CLOCK_REALTIME);
    uint32_t spread = c->habit->spread;
    for (size_t i = 0; i < reply->n; i++)
        enter(c, reply->id[i] - (spread - 1), spread, when);
    c->answered++;
    feed(c, when);
}

/* Every whole reply in the buffer; false: the connection is gone. */
static bool digest(struct client *c)
{
    static struct reply reply;
    size_t at = 0;
    while (c->pending > 0) {
        enum reply_status s = c->habit->read(c->in + at, c->in_n - at, &reply);
        if (s == REPLY_MORE)
            break;
        if (s == REPLY_BAD) {
            (void)printf("bad %d %s\n", (int)c->kind, reply.text);
            hang_up(c);
            return false;
        }
        if (s == REPLY_IDS)
            take(c, &reply);
        else
            c->refused++;
        c->pending--;
        at += reply.used;
    }
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
    return true;
}

static void pull(struct client *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_n, sizeof c->in - c->in_n, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(c);
        return;
    }
    c->in_n += (size_t)n;
    if (!digest(c) || (c->pending > 0 && c->in_n < sizeof c->in))
        return;
    if (c->pending > 0 || c->in_n > 0) { /* more than can be, or than was asked for */
        (void)printf("bad %d %zu bytes too many\n", (int)c->kind, c->in_n);
        hang_up(c);
        return;
    }
    close_receipt(c);
    c->phase = CLIENT_RESTING;
    c->due_us = client_now_us(CLOCK_MONOTONIC) + c->habit->period_us * c->slow;
}

void client_due(struct client *c, int64_t now_us)
{
    if (now_us < c->due_us)
        return;
    if (c->phase == CLIENT_CLOSED)
        dial(c);
    else if (c->phase == CLIENT_RESTING)
        ask(c, now_us);
    else if (c->phase == CLIENT_ASKING)
        hang_up(c);
}

void client_ready(struct client *c, short events)
{
    if (events == 0)
        return;
    if (c->phase == CLIENT_CONNECTING)
        connected(c);
    else if (c->phase == CLIENT_ASKING && c->sent < c->request_n && (events & POLLOUT))
        push(c);
    else if (c->phase == CLIENT_ASKING)
        pull(c);
    else if (c->phase == CLIENT_RESTING && (events & (POLLHUP | POLLERR | POLLIN)))
        hang_up(c); /* closed, or it speaks unasked: the next batch would find out anyhow */
}

short client_wanted(const struct client *c)
{
    if (c->phase == CLIENT_CONNECTING)
        return POLLOUT;
    return (short)(POLLIN | (c->phase == CLIENT_ASKING && c->sent < c->request_n ? POLLOUT : 0));
}

void client_finish(struct client *c)
{
    close_receipt(c);
    feed(c, client_now_us(CLOCK_REALTIME));
    (void)printf("sum %d requests %" PRIu64 " answered %" PRIu64 " refused %" PRIu64
                 " lost %" PRIu64 " connects %" PRIu64 " longest_us %" PRId64 "\n",
                 (int)c->kind, c->requests, c->answered, c->refused, c->lost + c->pending,
                 c->connects, c->longest_us);
}

static void set_request(struct client *c)
{
    size_t one = strlen(c->habit->request);
    for (unsigned i = 0; i < c->habit->times; i++) {
        memcpy(c->request + c->request_n, c->habit->request, one);
        c->request_n += one;
    }
    if (c->kind != RECEIPT_MC_MULTIGET)
        return;
    for (int i = 1; i < 100; i++)
        c->request_n += (size_t)snprintf(c->request + c->request_n,
                                         CLIENT_REQUEST_MAX - c->request_n, " id:x#%d", i);
    memcpy(c->request + c->request_n, "\r\n", 2);
    c->request_n += 2;
}

void client_init(struct client *c, enum receipt_kind kind, struct receipt_file *out, int slow)
{
    c->habit = &habits[kind];
    c->kind = kind;
    c->out = out;
    c->slow = slow;
    c->fd = -1;
    c->fed_us = client_now_us(CLOCK_REALTIME);
    set_request(c);
}
