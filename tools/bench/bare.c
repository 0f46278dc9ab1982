/*
 * The bare responder: what is left of a server when it does nothing. It reads once, counts line
 * feeds, and writes that many constant answers in one write: the limit of the kernel and of libev,
 * by which the sidecar is measured.
 *
 *   bare ADDRESS LINES ANSWER
 *
 * ADDRESS as net/addr.h has it; LINES: line feeds of one request; ANSWER: sent for each request.
 */
#include "base/dec.h"
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#define IN_MAX  ((size_t)64 << 10)
#define OUT_MAX ((size_t)512 << 10)

struct bare {
    struct ev_loop *loop;
    size_t lines;    /* of a request */
    char *answers;   /* as many as fit, one after the other */
    size_t answer_n; /* bytes of one */
    size_t fit;      /* answers there */
    char in[IN_MAX];
};

struct client {
    struct ev_io rd, wr;
    struct bare *bare;
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

/* Sends what is owed. false: the client is gone, or does not read. */
static bool pay(struct client *c)
{
    struct bare *b = c->bare;
    while (c->owed > 0) {
        size_t cut = (b->answer_n - c->owed % b->answer_n) % b->answer_n;
        size_t n = c->owed < b->fit * b->answer_n - cut ? c->owed : b->fit * b->answer_n - cut;
        ssize_t sent = send(c->rd.fd, b->answers + cut, n, MSG_NOSIGNAL | MSG_DONTWAIT);
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
    ssize_t n = recv(w->fd, b->in, IN_MAX, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        client_end(c);
        return;
    }
    c->lines += line_feeds(b->in, (size_t)n);
    c->owed += c->lines / b->lines * b->answer_n;
    c->lines %= b->lines;
    (void)pay(c);
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

int main(int argc, char **argv)
{
    static struct bare b;
    struct ev_io accept_io;
    struct addr a;
    struct err e;
    uint64_t lines = 0;
    if (argc != 4 || !dec_u64(span_str(argv[2]), &lines) || lines == 0 || !set_answer(&b, argv[3]))
        return fprintf(stderr, "Usage: bare ADDRESS LINES ANSWER\n"), 2;
    if (addr_parse(span_str(argv[1]), &a, &e))
        return fprintf(stderr, "bare: %s\n", e.text), 2;
    int fd = listen_on(&a);
    if (fd < 0)
        return fprintf(stderr, "bare: cannot listen on %s: %s\n", argv[1], strerror(errno)), 1;
    b.lines = lines;
    b.loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (!b.loop)
        return fprintf(stderr, "bare: cannot make an event loop\n"), 1;
    ev_io_init(&accept_io, acceptable, fd, EV_READ);
    accept_io.data = &b;
    ev_io_start(b.loop, &accept_io);
    ev_run(b.loop, 0);
    return 0;
}
