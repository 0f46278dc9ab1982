/*
 * Who is at the other end of a connection, as far as the kernel knows.
 */
#include "net/private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
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
        out->id[1] = in.sin_addr.s_addr;
        (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
        (void)snprintf(out->text, sizeof out->text, "%s:%u", host, ntohs(in.sin_port));
    }
}

void net_peer(const struct net_turn *t, struct net_peer *out)
{
    struct sockaddr_storage ss = {0};
    struct ucred who;
    socklen_t n = sizeof ss, m = sizeof who;
    *out = (struct net_peer){.text = "?"};
    if (!t->conn || getpeername(t->conn->rd.fd, (struct sockaddr *)&ss, &n) < 0)
        return;
    if (ss.ss_family != AF_UNIX) {
        inet_peer(&ss, out);
        return;
    }
    if (getsockopt(t->conn->rd.fd, SOL_SOCKET, SO_PEERCRED, &who, &m) < 0)
        return;
    out->id[0] = (uint64_t)AF_UNIX << 32 | who.uid;
    out->id[1] = (uint64_t)who.pid;
    (void)snprintf(out->text, sizeof out->text, "uid %u pid %ld", who.uid, (long)who.pid);
}
