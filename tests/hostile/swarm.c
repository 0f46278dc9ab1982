/*
 * Hostile clients: many connections that say what they are told to, again and again, and read all,
 * little or nothing of what comes back. Prints "up N" once N are connected or half of the time is
 * over, and at the end a line of JSON.
 *
 * Invariants
 *   - Bounded: by --seconds, by --connections, and a closed connection is opened again only at the
 *     next tick, and only with --reopen.
 *   - Each connection has its turn: at most TURN bytes are sent and read before the next.
 */
#include "place.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TURN      ((size_t)64 << 10) /* bytes of one connection before the next has its turn */
#define TICK_US   5000               /* between two looks at what time alone changes */
#define EVENTS    256
#define WATCH_MAX 64   /* bytes of --watch */
#define LITTLE    4096 /* bytes of the receive buffer of who reads little or nothing */
#define AT_ONCE   512  /* connections begun in one tick */

enum state {
    AWAY,
    COMING,
    HERE,
    OVER, /* closed, and not to come again */
};

struct peer {
    int fd;
    enum state state;
    bool was_here;
    int64_t since_us; /* since when it is HERE */
    size_t first_sent, again_at;
    uint64_t said; /* how often it has said again */
    size_t tail_len;
    char tail[WATCH_MAX]; /* end of what was read last: the watched text may be cut */
};

struct swarm {
    struct place to;
    unsigned connections;
    double seconds;
    char *first, *again;
    size_t first_len, again_len;
    long read_rate; /* bytes a second of each connection; -1: all that comes, 0: nothing */
    bool reopen;
    long gone_ms;   /* closes so long after its first bytes; -1: never */
    long every_ms;  /* all say again at once, so often; 0: each for ever */
    uint64_t round; /* so often each may have said it */
    const char *watch;

    int epoll;
    struct peer *peers;
    unsigned here, ever_here;
    uint64_t opened, closed_by_peer, refused, sent, received, watched;
};

static void watch_for(struct swarm *s, struct peer *p, const char *data, size_t n)
{
    char joint[2 * WATCH_MAX];
    size_t want = strlen(s->watch), keep = want - 1;
    size_t front = n < keep ? n : keep;
    memcpy(joint, p->tail, p->tail_len);
    memcpy(joint + p->tail_len, data, front);
    if (memmem(joint, p->tail_len + front, s->watch, want))
        s->watched++;
    for (const char *at = data; (at = memmem(at, n - (size_t)(at - data), s->watch, want)); at++)
        s->watched++;
    if (n >= keep) {
        memcpy(p->tail, data + n - keep, keep);
        p->tail_len = keep;
    } else {
        size_t all = p->tail_len + n, drop = all > keep ? all - keep : 0;
        memmove(p->tail, joint + drop, all - drop);
        p->tail_len = all - drop;
    }
}

static void leave(struct swarm *s, struct peer *p)
{
    s->here -= p->state == HERE;
    close(p->fd);
    p->fd = -1;
    p->state = s->reopen ? AWAY : OVER;
}

static void expect_events(struct swarm *s, struct peer *p, bool writing)
{
    struct epoll_event ev = {.events = (writing ? EPOLLOUT : 0) | (s->read_rate < 0 ? EPOLLIN : 0),
                             .data.ptr = p};
    epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->fd, &ev);
}

static void come(struct swarm *s, struct peer *p)
{
    bool done;
    int fd = place_connect(&s->to, s->read_rate < 0 ? 0 : LITTLE, &done);
    if (fd < 0) {
        s->refused++;
        if (errno != EAGAIN && errno != ECONNREFUSED && !s->reopen)
            p->state = OVER;
        return;
    }
    *p = (struct peer){.fd = fd, .state = COMING, .was_here = p->was_here};
    struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = p};
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev);
}

static void arrived(struct swarm *s, struct peer *p)
{
    int why = 0;
    socklen_t len = sizeof why;
    if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0 || why != 0) {
        s->refused++;
        leave(s, p);
        return;
    }
    p->state = HERE;
    p->since_us = place_now_us();
    s->here++;
    s->opened++;
    s->ever_here += !p->was_here;
    p->was_here = true;
}

/* Sends from data on, at most *budget bytes; false: nothing more is taken now, or it is closed. */
static bool push(struct swarm *s, struct peer *p, const char *data, size_t len, size_t *at,
                 size_t *budget)
{
    while (*at < len) {
        size_t n = len - *at < *budget ? len - *at : *budget;
        if (n == 0)
            return false;
        ssize_t got = send(p->fd, data + *at, n, MSG_NOSIGNAL);
        if (got < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                s->closed_by_peer++;
                leave(s, p);
            }
            return false;
        }
        *at += (size_t)got;
        *budget -= (size_t)got;
        s->sent += (uint64_t)got;
    }
    return true;
}

static bool has_to_say(const struct swarm *s, const struct peer *p)
{
    return p->first_sent < s->first_len || (s->again_len > 0 && p->said < s->round);
}

static void speak(struct swarm *s, struct peer *p)
{
    size_t budget = TURN;
    if (!push(s, p, s->first, s->first_len, &p->first_sent, &budget))
        return;
    while (has_to_say(s, p) && push(s, p, s->again, s->again_len, &p->again_at, &budget)) {
        p->again_at = 0;
        p->said++;
    }
}

static void hear(struct swarm *s, struct peer *p, size_t most)
{
    static char buf[TURN];
    ssize_t n = recv(p->fd, buf, most < TURN ? most : TURN, 0);
    if (n > 0) {
        s->received += (uint64_t)n;
        if (s->watch)
            watch_for(s, p, buf, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        s->closed_by_peer++;
        leave(s, p);
    }
}

static void serve(struct swarm *s, struct peer *p, uint32_t events)
{
    if (p->state == COMING)
        arrived(s, p);
    if (p->state == HERE && (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)))
        speak(s, p);
    if (p->state == HERE && (events & EPOLLIN))
        hear(s, p, TURN);
    if (p->state == HERE && (events & (EPOLLHUP | EPOLLERR)) && s->read_rate >= 0) {
        s->closed_by_peer++;
        leave(s, p);
    } else if (p->state == HERE) {
        expect_events(s, p, has_to_say(s, p));
    }
}

static void tick(struct swarm *s, int64_t now_us)
{
    unsigned begun = 0;
    for (unsigned i = 0; i < s->connections; i++) {
        struct peer *p = &s->peers[i];
        if (p->state == AWAY && begun < AT_ONCE) {
            come(s, p);
            begun++;
        } else if (p->state == HERE && s->gone_ms >= 0 && p->first_sent == s->first_len &&
                   now_us - p->since_us >= s->gone_ms * 1000) {
            leave(s, p);
        } else if (p->state == HERE && s->read_rate > 0) {
            hear(s, p, (size_t)s->read_rate * TICK_US / 1000000 + 1);
        } else if (p->state == HERE && s->every_ms > 0 && has_to_say(s, p)) {
            serve(s, p, EPOLLOUT);
        }
    }
}

static void run(struct swarm *s)
{
    struct epoll_event events[EVENTS];
    int64_t start = place_now_us(), next_tick = start;
    int64_t end = start + (int64_t)(s->seconds * 1e6);
    bool told = false;
    for (int64_t now = start; now < end; now = place_now_us()) {
        if (now >= next_tick) {
            s->round =
                s->every_ms > 0 ? (uint64_t)((now - start) / 1000 / s->every_ms) : UINT64_MAX;
            tick(s, now);
            next_tick = now + TICK_US;
        }
        if (!told && (s->ever_here == s->connections || now - start > (end - start) / 2)) {
            printf("up %u\n", s->ever_here);
            fflush(stdout);
            told = true;
        }
        int n = epoll_wait(s->epoll, events, EVENTS, TICK_US / 1000);
        for (int i = 0; i < n; i++)
            serve(s, events[i].data.ptr, events[i].events);
    }
}

static void report(const struct swarm *s)
{
    printf("{\"connected\": %u, \"here\": %u, \"opened\": %ju, \"closed_by_peer\": %ju, "
           "\"refused\": %ju, \"sent\": %ju, \"received\": %ju, \"watched\": %ju}\n",
           s->ever_here, s->here, (uintmax_t)s->opened, (uintmax_t)s->closed_by_peer,
           (uintmax_t)s->refused, (uintmax_t)s->sent, (uintmax_t)s->received,
           (uintmax_t)s->watched);
}

static const char usage[] =
    "Usage: swarm --to tcp:PORT|unix:PATH [OPTION]...\n"
    "  --connections N   (1)\n"
    "  --seconds S       (1)\n"
    "  --first FILE      sent once on each connection\n"
    "  --again FILE      then sent again and again\n"
    "  --every MS        that is, once in so long, by all at the same time\n"
    "  --read N          bytes a second that each connection reads; 0: none (all)\n"
    "  --reopen          a connection that closes is opened again\n"
    "  --gone MS         closes a connection so long after it was opened\n"
    "  --watch TEXT      counts how often that comes back, 2 to 64 bytes\n";

static bool read_option(struct swarm *s, int option)
{
    switch (option) {
    case 't':
        return place_parse(optarg, &s->to);
    case 'c':
        return (s->connections = (unsigned)strtoul(optarg, NULL, 10)) > 0;
    case 's':
        return (s->seconds = strtod(optarg, NULL)) > 0;
    case 'f':
        s->first = place_read(optarg, &s->first_len);
        return true;
    case 'a':
        s->again = place_read(optarg, &s->again_len);
        return true;
    case 'r':
        return (s->read_rate = strtol(optarg, NULL, 10)) >= 0;
    case 'o':
        return s->reopen = true;
    case 'g':
        return (s->gone_ms = strtol(optarg, NULL, 10)) >= 0;
    case 'e':
        return (s->every_ms = strtol(optarg, NULL, 10)) > 0;
    case 'w':
        s->watch = optarg;
        return strlen(optarg) > 1 && strlen(optarg) <= WATCH_MAX;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"to", 1, NULL, 't'},      {"connections", 1, NULL, 'c'},
        {"seconds", 1, NULL, 's'}, {"first", 1, NULL, 'f'},
        {"again", 1, NULL, 'a'},   {"read", 1, NULL, 'r'},
        {"reopen", 0, NULL, 'o'},  {"gone", 1, NULL, 'g'},
        {"watch", 1, NULL, 'w'},   {"every", 1, NULL, 'e'},
        {NULL, 0, NULL, 0}};
    struct swarm s = {.connections = 1, .seconds = 1, .read_rate = -1, .gone_ms = -1};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (!read_option(&s, o)) {
            fputs(usage, stderr);
            return 2;
        }
    }
    s.peers = calloc(s.connections, sizeof *s.peers);
    s.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!s.to.len || !s.peers || s.epoll < 0) {
        fputs(usage, stderr);
        return 2;
    }
    run(&s);
    report(&s);
    free(s.peers);
    return 0;
}
