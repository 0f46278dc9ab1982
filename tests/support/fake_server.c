#include "support/fake_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void answer(int fd, const char *bytes, size_t n, int delay_ms)
{
    char in[1 << 15];
    while (read(fd, in, sizeof in) > 0) {
        size_t step = delay_ms ? 1 : n;
        for (size_t i = 0; i < n; i += step) {
            if (send(fd, bytes + i, step, MSG_NOSIGNAL) < 0)
                return;
            if (delay_ms)
                (void)usleep((useconds_t)delay_ms * 1000);
        }
        if (n == 0)
            return;
    }
}

static _Noreturn void serve(int listener, const char *bytes, size_t n, int delay_ms)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            _exit(1);
        answer(fd, bytes, n, delay_ms);
        (void)close(fd);
    }
}

void fake_server_start(struct fake_server *s, const char *bytes, size_t n, int delay_ms)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&a, sizeof a) != 0 || listen(fd, 4) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&a, &size) != 0) {
        perror("a server to be");
        abort();
    }
    s->port = ntohs(a.sin_port);
    s->pid = fork();
    if (s->pid == 0)
        serve(fd, bytes, n, delay_ms);
    (void)close(fd);
}

void fake_server_stop(struct fake_server *s)
{
    if (s->pid > 0 && kill(s->pid, SIGKILL) == 0)
        (void)waitpid(s->pid, NULL, 0);
    s->pid = 0;
}
