/*
 * Connecting a link to one of the server's addresses.
 */
#include "net/upstream/links.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* A socket whose connection to the address in use is under way, or -1. */
static int begin_connecting(const struct upstream *up)
{
    int on = 1;
    int fd = socket(up->addr[up->at].ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a no-op on unix sockets */
    /* Whoever is subscribed or blocked there asks nothing that could fail. */
    peer_watch_server(fd, up->timeout_us);
    if (connect(fd, (const struct sockaddr *)&up->addr[up->at], up->addr_n[up->at]) == 0 ||
        errno == EINPROGRESS)
        return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

/* What says nothing about the server: descriptors, memory and ports that we lack, or its own queue
 * that is full for the moment. */
static bool is_short(int why)
{
    static const int list[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EADDRNOTAVAIL, EAGAIN};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (why == list[i])
            return true;
    return false;
}

bool link_dial(struct upstream_link *l)
{
    struct upstream *up = l->up;
    int why = 0;
    l->state = LINK_CONNECTING;
    while (l->tries < up->naddr && !upstream_waits(up, l->lane, l->speaks)) {
        l->tries++;
        l->round = up->round;
        l->at = find_place(up, up->at);
        int fd = begin_connecting(up);
        if (fd >= 0) {
            l->tried_us = upstream_now_us(up);
            ev_io_set(&l->rd, fd, EV_READ);
            ev_io_set(&l->wr, fd, EV_WRITE);
            ev_io_start(up->net->loop, &l->wr);
            return true;
        }
        why = errno;
        if (!is_short(why))
            upstream_missed(l, strerror(why));
        else if (why == EADDRNOTAVAIL) /* also of a kind that this host has no address of */
            up->at = (up->at + 1) % up->naddr;
        else
            break;
    }
    if (is_short(why) && l->owner && !l->optional)
        upstream_short_of_own(up, strerror(why));
    else if (is_short(why))
        upstream_short(up, strerror(why));
    return false;
}

bool link_dial_elsewhere(struct upstream_link *l, const char *why)
{
    struct upstream *up = l->up;
    bool late = upstream_now_us(up) - l->since_us > up->timeout_us;
    upstream_missed(l, why);
    if (late)
        return false;
    ev_io_stop(up->net->loop, &l->wr);
    (void)close(l->wr.fd);
    ev_io_set(&l->rd, -1, EV_READ);
    ev_io_set(&l->wr, -1, EV_WRITE);
    return link_dial(l);
}
