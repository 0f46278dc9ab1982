#include "place.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

bool place_parse(const char *text, struct place *out)
{
    memset(out, 0, sizeof *out);
    if (strncmp(text, "unix:", 5) == 0) {
        struct sockaddr_un *un = (struct sockaddr_un *)&out->sa;
        size_t n = strlen(text + 5);
        if (n == 0 || n >= sizeof un->sun_path)
            return false;
        un->sun_family = AF_UNIX;
        memcpy(un->sun_path, text + 5, n + 1);
        out->len = sizeof *un;
        return true;
    }
    char *end;
    long port = strncmp(text, "tcp:", 4) == 0 ? strtol(text + 4, &end, 10) : 0;
    if (port < 1 || port > 65535 || *end != '\0')
        return false;
    struct sockaddr_in *in = (struct sockaddr_in *)&out->sa;
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)port);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out->len = sizeof *in;
    return true;
}

int place_connect(const struct place *p, int receive, bool *done)
{
    int fd = socket(p->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int one = 1;
    if (p->sa.ss_family == AF_INET)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (receive > 0) {
        int segment = 536; /* the peer's system keeps less for who takes little at a time */
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
        if (p->sa.ss_family == AF_INET)
            setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    }
    *done = connect(fd, (const struct sockaddr *)&p->sa, p->len) == 0;
    if (*done || errno == EINPROGRESS)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

char *place_read(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    size_t room = 1 << 16, n = 0;
    char *data = malloc(room);
    while (f && data) {
        n += fread(data + n, 1, room - n, f);
        if (n < room)
            break;
        data = realloc(data, room *= 2);
    }
    if (!f || !data || ferror(f)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    fclose(f);
    *len = n;
    return data;
}

int64_t place_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
