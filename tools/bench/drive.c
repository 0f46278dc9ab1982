#include "drive.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define IN_MAX     ((size_t)256 << 10)
#define LINE_MAX   512 /* bytes of a reply's longest line */
#define EVENTS     256
#define PATIENCE   10000 /* ms without any reply */
#define CONNECT_US INT64_C(5000000)
#define NS         INT64_C(1000000000)
#define CHECK_1_IN 17 /* prime: no number of connections makes it miss some of them for ever */

struct peer {
    int fd;
    bool writing; /* EPOLLOUT is awaited */
    struct span batch;
    uint32_t first;   /* shape of its first request */
    size_t sent;      /* bytes of it */
    uint32_t request; /* FULL: of the batch, whose reply comes next */
    uint32_t line;    /* FULL: number of the next line in it */
    uint64_t left;    /* lines of the batch not seen yet */
    int64_t started;  /* monotonic ns of the batch */
    size_t held;      /* bytes of a line that is not whole */
    char hold[LINE_MAX];
};

struct driver {
    const struct drive_conf *conf;
    struct drive_result *result;
    struct err *err;
    int epoll;
    struct peer *peer;
    char *text; /* requests of all shapes in turn, and as many again as a batch has */
    char *in;   /* IN_MAX bytes */
    struct idset seen;
    uint64_t requests; /* since the start */
    uint64_t batches;  /* whose first reply has come; COUNT */
    int64_t now, begin, end;
    bool done;
};

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

/* ---- checking ---------------------------------------------------------------------------------
 */

static enum err_code check_line(struct driver *d, const struct shape *s, uint32_t line,
                                struct span text)
{
    uint64_t id = 0;
    if (text.n > 0 && text.p[text.n - 1] == '\r')
        text.n--;
    const char *expected = s->check(s, line, text, &id);
    d->result->checked++;
    if (expected)
        return err_set(d->err, ERR_CORRUPT, "reply line %u: expected %s, found \"%.*s\"", line,
                       expected, (int)(text.n < 100 ? text.n : 100), text.p);
    if (d->conf->check == DRIVE_CHECK_UNIQUE && s->has_id(s, line)) {
        enum idset_verdict v = idset_add(&d->seen, id);
        d->result->duplicates += v == IDSET_DUPLICATE;
        d->result->outside += v == IDSET_OUTSIDE;
    }
    return ERR_OK;
}

/* As many lines of a batch's first reply as have come: the others are taken to be like it. */
static enum err_code check_first(struct driver *d, const struct shape *s, struct span in)
{
    for (uint32_t line = 0; line < s->lines && in.n > 0; line++) {
        const char *end = memchr(in.p, '\n', in.n);
        if (!end)
            return ERR_OK;
        size_t n = (size_t)(end - in.p);
        if (check_line(d, s, line, span_of(in.p, n)))
            return d->err->code;
        in = span_skip(in, n + 1);
    }
    return ERR_OK;
}

static uint64_t line_feeds(const char *p, size_t n)
{
    uint64_t found = 0;
    for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        found++;
    return found;
}

/* Reading every reply would cost more than sending its request. */
static enum err_code count_lines(struct driver *d, struct peer *p, struct span in, uint64_t *lines)
{
    *lines = line_feeds(in.p, in.n);
    bool first = p->left == (uint64_t)d->conf->depth * d->conf->shapes->lines;
    return first && d->batches++ % CHECK_1_IN == 0 ? check_first(d, &d->conf->shapes[p->first], in)
                                                   : ERR_OK;
}

/* The rest of a line whose beginning is held. */
static enum err_code complete_line(struct driver *d, struct peer *p, struct span *in, size_t n)
{
    if (p->held + n > LINE_MAX)
        return err_set(d->err, ERR_CORRUPT, "expected lines of at most %d bytes, found %zu",
                       LINE_MAX, p->held + n);
    memcpy(p->hold + p->held, in->p, n);
    *in = span_of(p->hold, p->held + n);
    p->held = 0;
    return ERR_OK;
}

static enum err_code check_lines(struct driver *d, struct peer *p, struct span in, uint64_t *lines)
{
    for (*lines = 0; in.n > 0; ++*lines) {
        const char *end = memchr(in.p, '\n', in.n);
        size_t n = end ? (size_t)(end - in.p) : in.n;
        struct span line = span_of(in.p, n);
        if ((p->held || !end) && complete_line(d, p, &line, n))
            return d->err->code;
        if (!end) {
            p->held = line.n;
            break;
        }
        const struct shape *s = &d->conf->shapes[(p->first + p->request) % d->conf->nshapes];
        if (check_line(d, s, p->line, line))
            return d->err->code;
        p->line = p->line + 1 == s->lines ? 0 : p->line + 1;
        if (p->line == 0)
            p->request = p->request + 1 == d->conf->depth ? 0 : p->request + 1;
        in = span_skip(in, n + 1);
    }
    return ERR_OK;
}

/* ---- sending and receiving --------------------------------------------------------------------
 */

static void watch(struct driver *d, struct peer *p, bool writing, int op)
{
    struct epoll_event ev = {.events = EPOLLIN | (writing ? EPOLLOUT : 0u), .data.ptr = p};
    (void)epoll_ctl(d->epoll, op, p->fd, &ev);
    p->writing = writing;
}

static enum err_code send_rest(struct driver *d, struct peer *p)
{
    while (p->sent < p->batch.n) {
        ssize_t n = send(p->fd, p->batch.p + p->sent, p->batch.n - p->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            watch(d, p, true, EPOLL_CTL_MOD);
            return ERR_OK;
        }
        if (n < 0)
            return err_errno(d->err, errno, "cannot send a request");
        p->sent += (size_t)n;
    }
    if (p->writing)
        watch(d, p, false, EPOLL_CTL_MOD);
    return ERR_OK;
}

static enum err_code start_batch(struct driver *d, struct peer *p)
{
    p->sent = 0;
    p->left = (uint64_t)d->conf->depth * d->conf->shapes->lines;
    p->started = d->now;
    return send_rest(d, p);
}

static enum err_code end_batch(struct driver *d, struct peer *p)
{
    const struct drive_conf *c = d->conf;
    d->now = now_ns();
    d->requests += c->depth;
    if (d->now >= d->begin && d->now < d->end) {
        latency_add(&d->result->latency, (uint64_t)(d->now - p->started), c->depth);
        d->result->requests += c->depth;
    }
    if (d->now >= d->end || (c->requests > 0 && d->requests >= c->requests))
        d->done = true;
    return d->done || c->every_ns > 0 ? ERR_OK : start_batch(d, p);
}

static enum err_code receive(struct driver *d, struct peer *p)
{
    uint64_t lines;
    ssize_t n = recv(p->fd, d->in, IN_MAX, 0);
    if (n < 0 && errno == EAGAIN)
        return ERR_OK;
    if (n < 0)
        return err_errno(d->err, errno, "cannot receive a reply");
    if (n == 0)
        return err_set(d->err, ERR_IO, "expected a reply, found that the server has closed");
    struct span in = span_of(d->in, (size_t)n);
    bool counting = d->conf->check == DRIVE_CHECK_COUNT;
    if (counting ? count_lines(d, p, in, &lines) : check_lines(d, p, in, &lines))
        return d->err->code;
    if (lines > p->left)
        return err_set(d->err, ERR_CORRUPT, "expected %ju more lines, found %ju",
                       (uintmax_t)p->left, (uintmax_t)lines);
    p->left -= lines;
    return p->left == 0 ? end_batch(d, p) : ERR_OK;
}

static enum err_code turn(struct driver *d)
{
    struct epoll_event ev[EVENTS];
    int n = epoll_wait(d->epoll, ev, EVENTS, PATIENCE);
    if (n < 0 && errno != EINTR)
        return err_errno(d->err, errno, "cannot wait for replies");
    if (n == 0)
        return err_set(d->err, ERR_TIMEOUT, "expected a reply within %d ms, found none", PATIENCE);
    d->now = now_ns();
    for (int i = 0; i < n && !d->done; i++) {
        struct peer *p = ev[i].data.ptr;
        if ((ev[i].events & EPOLLOUT) && send_rest(d, p))
            return d->err->code;
        if ((ev[i].events & ~(uint32_t)EPOLLOUT) && receive(d, p))
            return d->err->code;
    }
    return ERR_OK;
}

/* ---- the run ----------------------------------------------------------------------------------
 */

static enum err_code connect_all(struct driver *d)
{
    int on = 1;
    for (uint32_t i = 0; i < d->conf->connections; i++) {
        struct peer *p = &d->peer[i];
        enum err_code r = addr_connect(&d->conf->to, CONNECT_US, &p->fd, d->err);
        if (r) {
            p->fd = -1;
            return r;
        }
        (void)setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)fcntl(p->fd, F_SETFL, O_NONBLOCK);
        watch(d, p, false, EPOLL_CTL_ADD);
    }
    return ERR_OK;
}

/* All connections at once, each as fast as it is answered. */
static enum err_code run_closed(struct driver *d)
{
    for (uint32_t i = 0; i < d->conf->connections; i++)
        if (start_batch(d, &d->peer[i]))
            return d->err->code;
    while (!d->done)
        if (turn(d))
            return d->err->code;
    return ERR_OK;
}

/* One batch per period: whoever is late loses the period, and the latency shows it. */
static enum err_code run_paced(struct driver *d)
{
    int64_t next = d->now;
    while (!d->done) {
        struct timespec t = {next / NS, next % NS};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
            ;
        d->now = now_ns();
        if (start_batch(d, &d->peer[0]))
            return d->err->code;
        while (d->peer[0].left > 0)
            if (turn(d))
                return d->err->code;
        next = next + d->conf->every_ns > d->now ? next + d->conf->every_ns : d->now;
    }
    return ERR_OK;
}

static bool write_batches(struct driver *d)
{
    const struct drive_conf *c = d->conf;
    uint32_t requests = c->nshapes + c->depth;
    size_t *at = malloc((requests + 1) * sizeof *at), n = 0;
    for (uint32_t i = 0; i < requests; i++)
        n += c->shapes[i % c->nshapes].text.n;
    d->text = malloc(n);
    n = 0;
    if (!at || !d->text) {
        free(at);
        return false;
    }
    for (uint32_t i = 0; i < requests; i++) {
        struct span text = c->shapes[i % c->nshapes].text;
        memcpy(d->text + n, text.p, text.n);
        at[i] = n;
        n += text.n;
    }
    for (uint32_t i = 0; i < c->connections; i++) {
        struct peer *p = &d->peer[i];
        p->first = (uint32_t)((uint64_t)i * c->depth % c->nshapes);
        p->batch = span_of(d->text + at[p->first], at[p->first + c->depth] - at[p->first]);
    }
    free(at);
    return true;
}

static enum err_code prepare(struct driver *d)
{
    const struct drive_conf *c = d->conf;
    d->in = malloc(IN_MAX);
    d->peer = calloc(c->connections, sizeof *d->peer);
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!d->in || !d->peer || d->epoll < 0 ||
        (c->check == DRIVE_CHECK_UNIQUE && !idset_init(&d->seen)) || !write_batches(d))
        return err_set(d->err, ERR_NOMEM, "no memory for %u connections", c->connections);
    return connect_all(d);
}

static void clear(struct driver *d)
{
    for (uint32_t i = 0; d->peer && i < d->conf->connections; i++)
        if (d->peer[i].fd > 0)
            (void)close(d->peer[i].fd);
    if (d->epoll >= 0)
        (void)close(d->epoll);
    idset_clear(&d->seen);
    free(d->peer);
    free(d->in);
    free(d->text);
}

enum err_code drive(const struct drive_conf *c, struct drive_result *out, struct err *e)
{
    struct driver d = {.conf = c, .result = out, .err = e, .epoll = -1};
    memset(out, 0, sizeof *out);
    enum err_code r = prepare(&d);
    if (!r) {
        d.now = now_ns();
        d.begin = d.now + c->warmup_ns;
        d.end = d.begin + c->length_ns;
        r = c->every_ns > 0 ? run_paced(&d) : run_closed(&d);
    }
    int64_t until = d.now < d.end ? d.now : d.end;
    out->seconds = until > d.begin ? (double)(until - d.begin) / 1e9 : 0;
    out->all = d.requests;
    out->ids = out->requests * c->shapes->count;
    clear(&d);
    return r;
}
