#include "net/addr.h"

#include "base/endpoint.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static_assert(sizeof((struct addr *)0)->host > ENDPOINT_HOST_MAX, "and NUL");

static int shown(struct span s)
{
    return (int)(s.n < 200 ? s.n : 200);
}

enum err_code addr_parse(struct span text, struct addr *out, struct err *e)
{
    struct endpoint p;
    memset(out, 0, sizeof *out);
    enum endpoint_fault f = endpoint_read(text, &p);
    if (f)
        return err_set(e, ERR_INVALID, "expected %s, found \"%.*s\"", endpoint_expected(f),
                       shown(p.wrong), p.wrong.p ? p.wrong.p : "");
    struct span host = p.is_unix ? p.path : p.host;
    out->is_unix = p.is_unix;
    memcpy(out->host, host.p, host.n);
    out->port = p.port;
    return ERR_OK;
}

static void put_inet(char out[ADDR_TEXT_MAX], const struct sockaddr_storage *ss)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (ss->ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, ss, sizeof in6);
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
        (void)snprintf(out, ADDR_TEXT_MAX, "tcp://[%s]:%u", host, ntohs(in6.sin6_port));
    } else {
        struct sockaddr_in in;
        memcpy(&in, ss, sizeof in);
        (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
        (void)snprintf(out, ADDR_TEXT_MAX, "tcp://%s:%u", host, ntohs(in.sin_port));
    }
}

char *addr_of_socket(char out[ADDR_TEXT_MAX], int fd)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof ss;
    (void)snprintf(out, ADDR_TEXT_MAX, "?");
    if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
        return out;
    if (ss.ss_family == AF_UNIX) {
        struct sockaddr_un un;
        memcpy(&un, &ss, sizeof un);
        (void)snprintf(out, ADDR_TEXT_MAX, "%s%.107s",
                       un.sun_path[0] == '/' ? "unix://" : "unix:", un.sun_path);
    } else {
        put_inet(out, &ss);
    }
    return out;
}

static int connect_one(const struct sockaddr *sa, socklen_t len, int64_t timeout_us)
{
    struct timeval tv = {.tv_sec = timeout_us / 1000000, .tv_usec = timeout_us % 1000000};
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* Linux bounds connect(2) by the send timeout, see socket(7). */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    if (connect(fd, sa, len) == 0)
        return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

static int connect_unix(const char *path, int64_t timeout_us)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%.107s", path);
    return connect_one((const struct sockaddr *)&un, sizeof un, timeout_us);
}

enum err_code addr_connect(const struct addr *a, int64_t timeout_us, int *fd, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char port[8];
    if (a->is_unix) {
        *fd = connect_unix(a->host, timeout_us);
        return *fd >= 0 ? ERR_OK : err_errno(e, errno, "cannot connect to %s", a->host);
    }
    (void)snprintf(port, sizeof port, "%u", a->port);
    int r = getaddrinfo(a->host, port, &hints, &list);
    if (r)
        return err_set(e, ERR_IO, "cannot look up %s: %s", a->host, gai_strerror(r));
    int why = 0;
    *fd = -1;
    for (const struct addrinfo *ai = list; ai && *fd < 0; ai = ai->ai_next) {
        *fd = connect_one(ai->ai_addr, ai->ai_addrlen, timeout_us);
        why = errno;
    }
    freeaddrinfo(list);
    return *fd >= 0 ? ERR_OK : err_errno(e, why, "cannot connect to %s port %s", a->host, port);
}
