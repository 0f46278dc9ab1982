/*
 * The bare responder: what is left of a server when it does nothing. It reads once, counts line
 * feeds, and writes that many constant answers in one write: the limit of the kernel and of libev,
 * by which the sidecar is measured.
 *
 *   bare ADDRESS LINES ANSWER [HOW]
 *
 * ADDRESS as net/addr.h has it; LINES: line feeds of one request; ANSWER: sent for each request;
 * HOW: another way of doing it, of those in `hows`, to see what it costs.
 */
#include "base/dec.h"
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define IN_MAX  ((size_t)64 << 10)
#define OUT_MAX ((size_t)512 << 10)

struct how {
    const char *name;
    unsigned backend; /* of libev */
    bool again;       /* after a read another one, which finds nothing */
    bool late;        /* all that are ready are read from, then all are answered */
    bool plain;       /* read(2) and write(2) instead of recv(2) and send(2) */
    bool pieces;      /* two pieces in one writev(2) */
};

static const struct how hows[] = {
    {.name = "epoll", .backend = EVBACKEND_EPOLL},
    {.name = "poll", .backend = EVBACKEND_POLL},
    {.name = "select", .backend = EVBACKEND_SELECT},
    {.name = "linuxaio", .backend = EVBACKEND_LINUXAIO},
    {.name = "io_uring", .backend = EVBACKEND_IOURING},
    {.name = "again", .backend = EVBACKEND_EPOLL, .again = true},
    {.name = "late", .backend = EVBACKEND_EPOLL, .late = true},
    {.name = "plain", .backend = EVBACKEND_EPOLL, .plain = true},
    {.name = "writev", .backend = EVBACKEND_EPOLL, .pieces = true},
};

#define HOWS (sizeof hows / sizeof *hows)

struct bare {
    struct ev_loop *loop;
    const struct how *how;
    struct client *late; /* to be answered before the loop sleeps */
    size_t lines;        /* of a request */
    char *answers;       /* as many as fit, one after the other */
    size_t answer_n;     /* bytes of one */
    size_t fit;          /* answers there */
    char in[IN_MAX];
};

struct client {
    struct ev_io rd, wr;
    struct bare *bare;
    struct client *late;
    size_t lines; /* seen of the request under way */
    size_t owed;  /* bytes of answers not sent yet; a multiple of one answer, less what was cut */
};

static void client_end(struct client *c)
{
    ev_io_stop(c->bare->loop, &c->rd);
    ev_io_stop(c->bare->loop, &c->wr);
    (void)close(c->rd.fd);
    free(c);
}

static ssize_t put(const struct client *c, char *p, size_t n)
{
    struct iovec pieces[] = {{p, n / 2}, {p + n / 2, n - n / 2}};
    if (c->bare->how->plain)
        return write(c->rd.fd, p, n);
    if (c->bare->how->pieces)
        return writev(c->rd.fd, pieces, 2);
    return send(c->rd.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t get(const struct client *c)
{
    struct bare *b = c->bare;
    if (b->how->plain)
        return read(c->rd.fd, b->in, IN_MAX);
    ssize_t n = recv(c->rd.fd, b->in, IN_MAX, MSG_DONTWAIT), more = 0;
    if (n > 0 && b->how->again)
        more = recv(c->rd.fd, b->in + n, IN_MAX - (size_t)n, MSG_DONTWAIT);
    return more > 0 ? n + more : n;
}

/* Sends what is owed. false: the client is gone, or does not read. */
static bool pay(struct client *c)
{
    struct bare *b = c->bare;
    while (c->owed > 0) {
        size_t cut = (b->answer_n - c->owed % b->answer_n) % b->answer_n;
        size_t n = c->owed < b->fit * b->answer_n - cut ? c->owed : b->fit * b->answer_n - cut;
        ssize_t sent = put(c, b->answers + cut, n);
        if (sent < 0 && errno == EAGAIN) {
            ev_io_stop(b->loop, &c->rd);
            ev_io_start(b->loop, &c->wr);
            return false;
        }
        if (sent < 0) {
            client_end(c);
            return false;
        }
        c->owed -= (size_t)sent;
    }
    return true;
}

static size_t line_feeds(const char *p, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += p[i] == '\n';
    return found;
}

static void readable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    struct client *c = (struct client *)(void *)((char *)w - offsetof(struct client, rd));
    struct bare *b = c->bare;
    (void)loop;
    (void)revents;
    ssize_t n = get(c);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        client_end(c);
        return;
    }
    c->lines += line_feeds(b->in, (size_t)n);
    c->owed += c->lines / b->lines * b->answer_n;
    c->lines %= b->lines;
    if (!b->how->late) {
        (void)pay(c);
        return;
    }
    c->late = b->late;
    b->late = c;
}

/* Before the loop sleeps. */
static void pay_late(struct ev_loop *loop, struct ev_prepare *w, int revents)
{
    struct bare *b = w->data;
    (void)loop;
    (void)revents;
    for (struct client *c = b->late, *next; c; c = next) {
        next = c->late;
        (void)pay(c);
    }
    b->late = NULL;
}

static void writable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    struct client *c = (struct client *)(void *)((char *)w - offsetof(struct client, wr));
    (void)revents;
    ev_io_stop(loop, w);
    if (pay(c))
        ev_io_start(loop, &c->rd);
}

static void acceptable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    int on = 1, fd;
    (void)revents;
    while ((fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *c = calloc(1, sizeof *c);
        if (!c) {
            (void)close(fd);
            return;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->bare = w->data;
        ev_io_init(&c->rd, readable, fd, EV_READ);
        ev_io_init(&c->wr, writable, fd, EV_WRITE);
        ev_io_start(loop, &c->rd);
    }
}

/* A listening socket, or -1. Of TCP hosts only numbers are understood. */
static int listen_on(const struct addr *a)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    int on = 1;
    int fd = socket(a->is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int bound = -1;
    if (a->is_unix && strlen(a->host) < sizeof un.sun_path) {
        memcpy(un.sun_path, a->host, strlen(a->host) + 1);
        bound = bind(fd, (struct sockaddr *)&un, sizeof un);
    } else if (!a->is_unix && inet_pton(AF_INET, a->host, &in.sin_addr) == 1) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        bound = bind(fd, (struct sockaddr *)&in, sizeof in);
    }
    if (bound < 0 || listen(fd, 4096) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool set_answer(struct bare *b, const char *answer)
{
    b->answer_n = strlen(answer);
    if (b->answer_n == 0 || b->answer_n > OUT_MAX)
        return false;
    b->fit = OUT_MAX / b->answer_n;
    b->answers = malloc(OUT_MAX);
    for (size_t i = 0; b->answers && i < b->fit; i++)
        memcpy(b->answers + i * b->answer_n, answer, b->answer_n);
    return b->answers != NULL;
}

static const struct how *find_how(const char *name)
{
    for (size_t i = 0; i < HOWS; i++)
        if (strcmp(hows[i].name, name) == 0)
            return &hows[i];
    return NULL;
}

int main(int argc, char **argv)
{
    static struct bare b;
    struct ev_io accept_io;
    struct ev_prepare prepare;
    struct addr a;
    struct err e;
    uint64_t lines = 0;
    b.how = argc == 5 ? find_how(argv[4]) : hows;
    if (argc < 4 || argc > 5 || !b.how || !dec_u64(span_str(argv[2]), &lines) || lines == 0 ||
        !set_answer(&b, argv[3]))
        return fprintf(stderr, "Usage: bare ADDRESS LINES ANSWER [HOW]\n"), 2;
    if (addr_parse(span_str(argv[1]), &a, &e))
        return fprintf(stderr, "bare: %s\n", e.text), 2;
    (void)signal(SIGPIPE, SIG_IGN); /* write and writev have no MSG_NOSIGNAL */
    b.loop = ev_loop_new(b.how->backend | EVFLAG_NOENV);
    if (!b.loop)
        return fprintf(stderr, "bare: this libev has no backend for %s\n", b.how->name), 1;
    int fd = listen_on(&a);
    if (fd < 0)
        return fprintf(stderr, "bare: cannot listen on %s: %s\n", argv[1], strerror(errno)), 1;
    b.lines = lines;
    ev_io_init(&accept_io, acceptable, fd, EV_READ);
    accept_io.data = &b;
    ev_io_start(b.loop, &accept_io);
    ev_prepare_init(&prepare, pay_late);
    prepare.data = &b;
    if (b.how->late)
        ev_prepare_start(b.loop, &prepare);
    ev_run(b.loop, 0);
    return 0;
}
