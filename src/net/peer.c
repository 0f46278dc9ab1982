/*
 * Who is at the other end of a connection, as far as the kernel knows, and whether it still is.
 */
#include "net/private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>

static void inet_peer(const struct sockaddr_storage *ss, struct net_peer *out)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (ss->ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, ss, sizeof in6);
        out->id[0] = AF_INET6;
        memcpy(&out->id[1], &in6.sin6_addr, sizeof out->id[1]); /* the first half: /64 */
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
        (void)snprintf(out->text, sizeof out->text, "[%s]:%u", host, ntohs(in6.sin6_port));
    } else if (ss->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, ss, sizeof in);
        out->id[0] = AF_INET;
        bool here = ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET; /* whoever has one has all */
        out->id[1] = here ? IN_LOOPBACKNET : in.sin_addr.s_addr;
        (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
        (void)snprintf(out->text, sizeof out->text, "%s:%u", host, ntohs(in.sin_port));
    }
}

void peer_of(int fd, struct net_peer *out)
{
    struct sockaddr_storage ss = {0};
    struct ucred who;
    socklen_t n = sizeof ss, m = sizeof who;
    *out = (struct net_peer){.text = "?"};
    if (getpeername(fd, (struct sockaddr *)&ss, &n) < 0)
        return;
    if (ss.ss_family != AF_UNIX) {
        inet_peer(&ss, out);
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &m) < 0)
        return;
    out->id[0] = (uint64_t)AF_UNIX << 32 | who.uid;
    out->id[1] = (uint64_t)who.pid;
    (void)snprintf(out->text, sizeof out->text, "uid %u pid %ld", who.uid, (long)who.pid);
}

/* What a server does not take stays with us, where limits.memory counts it, and its client waits;
 * the kernel would keep up to 4 MiB of it for each link. Clients are another thing: many send a
 * whole pipeline before they take the first reply. */
#define UNSENT_MAX (256 << 10)

#define UNTAKEN_MS 120000

/* untaken_ms: 0 is the system's; the system counts a window of 0 that is answered for, too. */
static void watch(int fd, int untaken_ms)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, untaken_ms},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

void peer_watch_client(int fd)
{
    watch(fd, 0);
}

void peer_watch_server(int fd, int64_t timeout_us)
{
    const int most = UNSENT_MAX;
    int64_t ms = timeout_us / 1000;
    watch(fd, ms > UNTAKEN_MS ? (int)ms : UNTAKEN_MS); /* an hour at most */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
}

void net_peer(const struct net_turn *t, struct net_peer *out)
{
    *out = (struct net_peer){.text = "?"};
    if (t->conn)
        peer_of(t->conn->rd.fd, out);
}
