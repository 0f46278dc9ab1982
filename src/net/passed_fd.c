#include "net/passed_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS /* asm-generic/socket.h of Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif
#define RIGHTS_MAX 253 /* of one message: SCM_MAX_FD of Linux */

bool passed_fd_refuse(int fd)
{
    int off = 0;
    return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
}

unsigned passed_fd_most(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = fd >= 0 && passed_fd_refuse(fd);
    if (fd >= 0)
        (void)close(fd);
    return refused ? 0 : RIGHTS_MAX;
}

static void close_at_once(int fd)
{
    struct linger none = {0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none); /* else it is no socket */
    (void)close(fd);
}

/* Whether there were any. */
static bool drop_all(struct msghdr *m)
{
    bool any = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            close_at_once(fd);
            any = true;
        }
    }
    return any;
}

ssize_t passed_fd_recv(int fd, void *to, size_t room)
{
    union {
        struct cmsghdr head; /* for its alignment */
        char room[CMSG_SPACE(RIGHTS_MAX * sizeof(int))];
    } control;
    struct iovec io = {.iov_base = to, .iov_len = room};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t r = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (r < 0 || !drop_all(&m))
        return r;
    errno = EPROTO;
    return -1;
}

void passed_fd_close(int fd)
{
    char unread[4096];
    int family = 0;
    socklen_t len = sizeof family;
    (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
    ssize_t r = family == AF_UNIX && shutdown(fd, SHUT_RD) == 0; /* then nothing comes any more */
    while (r > 0 || (r < 0 && errno == EPROTO))
        r = passed_fd_recv(fd, unread, sizeof unread);
    (void)close(fd);
}
