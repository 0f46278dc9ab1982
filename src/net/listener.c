#include "net/addr.h"
#include "net/passed_fd.h"
#include "net/private.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG      65535 /* net.core.somaxconn bounds it; who finds it full waits for a second */
#define ACCEPT_BATCH 16    /* connections taken per event, so that a flood leaves time to serve */
#define GROUPS_MAX   256   /* of a peer */
#define FULL_PAUSE_S 0.1   /* without accepting, when the process has run out of descriptors */
#define LOG_MS       10000 /* between two lines about who may not connect */
#define LOCK_TRIES   100   /* 1 ms apart: nobody needs a directory's lock for as long */

static void resume_accepting(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    listeners_accept(CONTAINER(w, struct net, resume), true);
}

static void out_of_descriptors(struct net *n)
{
    listeners_accept(n, false);
    ev_timer_init(&n->resume, resume_accepting, FULL_PAUSE_S, 0.);
    ev_timer_start(n->loop, &n->resume);
}

static bool has(const uint32_t *list, size_t n, uint32_t v)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* Any of the peer's supplementary groups; a peer with more of them than there is room for is taken
 * to have none. */
static bool has_group(const struct net_door *d, int fd)
{
    gid_t groups[GROUPS_MAX];
    socklen_t n = sizeof groups;
    if (d->ngids == 0 || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0)
        return false;
    for (size_t i = 0; i < n / sizeof *groups; i++)
        if (has(d->gids, d->ngids, groups[i]))
            return true;
    return false;
}

/* Whether the door is open to who holds the other end; TCP has nobody to ask. */
static bool let_in(const struct net_listener *l, int fd)
{
    const struct net_door *d = &l->door;
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (!l->path || d->nuids + d->ngids == 0)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return false;
    return has(d->uids, d->nuids, peer.uid) || has(d->gids, d->ngids, peer.gid) || has_group(d, fd);
}

bool listeners_let_in(const struct net *n, const struct net_service *svc, int fd, uint8_t tag)
{
    int family = 0;
    socklen_t len = sizeof family;
    (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
    for (const struct net_listener *l = n->listeners; l; l = l->next)
        if (l->svc == svc && l->door.tag == tag && (l->path != NULL) == (family == AF_UNIX) &&
            let_in(l, fd))
            return true;
    return false;
}

/* A closed connection is all that the process itself sees of it. */
static void turn_away(struct net_listener *l, int fd)
{
    struct net_peer peer;
    uint64_t held_back = 0;
    if (log_limit_pass(&l->net->unwelcome, clock_mono_ms(l->net->conf.clock), LOG_MS, &held_back)) {
        peer_of(fd, &peer);
        log_warn("a process is refused by auth.allow_uids and auth.allow_gids",
                 kv_str("protocol", l->svc->name), kv_str("address", l->address),
                 kv_str("peer", peer.text), kv_u64("lines_held_back", held_back));
    }
    conn_refuse(l->net, l->svc, fd, SPAN(""));
}

static void acceptable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net_listener *l = CONTAINER(w, struct net_listener, accept);
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (let_in(l, fd))
                conn_accepted(l->net, l->svc, fd, l->door.tag);
            else
                turn_away(l, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            out_of_descriptors(l->net);
        if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

void listeners_accept(struct net *n, bool on)
{
    for (struct net_listener *l = n->listeners; l; l = l->next) {
        if (on)
            ev_io_start(n->loop, &l->accept);
        else
            ev_io_stop(n->loop, &l->accept);
    }
}

/* 1: it is the one that was made; 0: it is gone, or another's; -1: that cannot be seen. */
static int file_is_own(const struct net_listener *l)
{
    struct stat now;
    if (lstat(l->path, &now) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    return now.st_ino == l->file.st_ino && now.st_dev == l->file.st_dev;
}

static void remove_own_file(const struct net_listener *l)
{
    if (l->path && file_is_own(l) > 0)
        (void)unlink(l->path);
}

const char *net_lost_file(const struct net *n)
{
    for (const struct net_listener *l = n->listeners; l; l = l->next)
        if (l->path && file_is_own(l) == 0)
            return l->path;
    return NULL;
}

static void free_listener(struct net_listener *l)
{
    if (!l)
        return;
    free(l->address);
    free(l->path);
    free(l);
}

void listeners_close(struct net *n)
{
    ev_timer_stop(n->loop, &n->resume);
    while (n->listeners) {
        struct net_listener *l = n->listeners;
        n->listeners = l->next;
        ev_io_stop(n->loop, &l->accept);
        remove_own_file(l);
        (void)close(l->accept.fd);
        free_listener(l);
    }
}

/* ---- sockets ----------------------------------------------------------------------------------
 */

/* Whoever starts beside us would take a socket that is bound and does not listen yet for a stale
 * one, so each has its directory locked meanwhile. Where that cannot be had it goes without.
 * Returns what to close, or -1. */
static int lock_directory(const char *path)
{
    char text[sizeof(struct sockaddr_un)];
    (void)snprintf(text, sizeof text, "%.107s", path);
    int fd = open(dirname(text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
        (void)poll(NULL, 0, 1);
    return fd;
}

/* Removes a socket file that nobody listens on; anything else that stands there is in the way. */
static enum err_code clear_stale(const struct sockaddr_un *un, struct err *e)
{
    struct stat st;
    if (lstat(un->sun_path, &st) < 0)
        return errno == ENOENT ? ERR_OK : err_errno(e, errno, "cannot look at %s", un->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_EXISTS, "%s: expected a socket or nothing, found another file",
                       un->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, errno, "cannot make a socket");
    int r = connect(fd, (const struct sockaddr *)un, sizeof *un);
    int why = errno;
    (void)close(fd);
    if (r < 0 && (why == EACCES || why == EPERM)) /* by the file's permissions or a rule's */
        return err_errno(e, why, "cannot ask whether anybody listens on %s", un->sun_path);
    if (r == 0 || why != ECONNREFUSED)
        return err_set(e, ERR_BUSY, "%s: another process listens on it", un->sun_path);
    if (unlink(un->sun_path) < 0)
        return err_errno(e, errno, "cannot remove the stale socket %s", un->sun_path);
    return ERR_OK;
}

static enum err_code bind_unix(const struct addr *a, uint32_t mode, int *fd, struct err *e)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%.107s", a->host);
    enum err_code r = clear_stale(&un, e);
    if (r)
        return r;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return err_errno(e, errno, "cannot make a socket");
    /* The mode must hold from the first moment on, so it is not set by a chmod afterwards. */
    mode_t before = umask(~(mode_t)mode & 0777);
    int bound = bind(*fd, (const struct sockaddr *)&un, sizeof un);
    int why = errno;
    (void)umask(before);
    if (bound < 0)
        return err_errno(e, why, "cannot bind %s", a->host);
    return ERR_OK;
}

static int bind_to(const struct addrinfo *ai)
{
    int on = 1;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (ai->ai_family == AF_INET6) /* so that 0.0.0.0 and [::] can stand side by side */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0)
        return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

static enum err_code bind_tcp(const struct addr *a, int *fd, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    char port[8];
    (void)snprintf(port, sizeof port, "%u", a->port);
    int r = getaddrinfo(a->host, port, &hints, &list);
    if (r)
        return err_set(e, ERR_IO, "cannot look up %s: %s", a->host, gai_strerror(r));
    *fd = bind_to(list);
    int why = errno;
    freeaddrinfo(list);
    return *fd >= 0 ? ERR_OK : err_errno(e, why, "cannot bind tcp://%s:%s", a->host, port);
}

static enum err_code add(struct net *n, int fd, struct span address, const struct addr *a,
                         const struct net_door *door, struct net_service *svc, struct err *e)
{
    struct net_listener *l = calloc(1, sizeof *l);
    if (!l || !(l->address = strndup(address.p, address.n)) ||
        (a->is_unix && !(l->path = strdup(a->host)))) {
        free_listener(l);
        return err_set(e, ERR_NOMEM, "no memory for a listener");
    }
    if (l->path)
        (void)lstat(l->path, &l->file);
    l->net = n;
    l->svc = svc;
    l->door = *door;
    l->next = n->listeners;
    if (a->is_unix && !passed_fd_refuse(fd)) /* inherited, too */
        n->fds_come = true;
    peer_watch_client(fd); /* whoever is accepted inherits it */
    n->listeners = l;
    ev_io_init(&l->accept, acceptable, fd, EV_READ);
    ev_io_start(n->loop, &l->accept);
    return ERR_OK;
}

enum err_code net_listen(struct net *n, struct span address, const struct net_door *door,
                         struct net_service *svc, char *bound, size_t cap, struct err *e)
{
    struct addr a;
    int fd = -1, lock = -1;
    enum err_code r = addr_parse(address, &a, e);
    if (!r && carry_listener(n, address, svc, &a, door->mode, &fd)) {
        if (fd < 0) { /* a rehearsal: whoever asked listens there */
            if (bound)
                (void)snprintf(bound, cap, "%.*s", (int)address.n, address.p);
            return ERR_OK;
        }
    } else if (!r) {
        lock = a.is_unix ? lock_directory(a.host) : -1;
        r = a.is_unix ? bind_unix(&a, door->mode, &fd, e) : bind_tcp(&a, &fd, e);
    }
    if (!r && listen(fd, BACKLOG) < 0)
        r = err_errno(e, errno, "cannot listen on %.*s", (int)address.n, address.p);
    if (!r)
        r = add(n, fd, address, &a, door, svc, e);
    if (lock >= 0)
        (void)close(lock);
    if (r) {
        if (fd >= 0)
            (void)close(fd);
        return r;
    }
    if (bound) {
        char text[ADDR_TEXT_MAX];
        (void)snprintf(bound, cap, "%s", addr_of_socket(text, fd));
    }
    return ERR_OK;
}
