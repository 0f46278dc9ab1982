#include "support/fake_server.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPLIES_MAX 64

static int listen_anywhere(struct fake_server *s)
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
    return fd;
}

static int next_connection(int listener)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        _exit(1);
    return fd;
}

/* ---- the same bytes -------------------------------------------------------------------------- */

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

void fake_server_start(struct fake_server *s, const char *bytes, size_t n, int delay_ms)
{
    int listener = listen_anywhere(s);
    s->pid = fork();
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int fd = next_connection(listener);
            answer(fd, bytes, n, delay_ms);
            (void)close(fd);
        }
    }
    (void)close(listener);
}

/* ---- replies by command ---------------------------------------------------------------------- */

/* The reply for this command, or NULL. */
static const char *choose(const struct fake_reply *replies, bool *used, const char *command)
{
    const char *bytes = NULL;
    for (size_t i = 0; replies[i].command && i < REPLIES_MAX; i++) {
        if (strcasecmp(replies[i].command, command) != 0)
            continue;
        bytes = replies[i].bytes;
        if (!used[i]) {
            used[i] = true;
            break;
        }
    }
    return bytes;
}

/* One whole command, however many reads it takes; false: there is no more to come. */
static bool next_command(int fd, redisReader *reader, char *command, size_t cap)
{
    char in[1 << 15];
    void *got = NULL;
    for (;;) {
        if (redisReaderGetReply(reader, &got) != REDIS_OK)
            return false;
        if (got)
            break;
        ssize_t n = read(fd, in, sizeof in);
        if (n <= 0 || redisReaderFeed(reader, in, (size_t)n) != REDIS_OK)
            return false;
    }
    const redisReply *r = got;
    bool good = r->type == REDIS_REPLY_ARRAY && r->elements > 0 && r->element[0]->str;
    if (good)
        (void)snprintf(command, cap, "%s", r->element[0]->str);
    freeReplyObject(got);
    return good;
}

static void converse(int fd, const struct fake_reply *replies, bool *used)
{
    char command[64];
    redisReader *reader = redisReaderCreate();
    while (reader && next_command(fd, reader, command, sizeof command)) {
        const char *bytes = choose(replies, used, command);
        if (!bytes || send(fd, bytes, strlen(bytes), MSG_NOSIGNAL) < 0)
            break;
    }
    redisReaderFree(reader);
}

void fake_server_script(struct fake_server *s, const struct fake_reply *replies)
{
    int listener = listen_anywhere(s);
    bool used[REPLIES_MAX] = {false};
    s->pid = fork();
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int fd = next_connection(listener);
            converse(fd, replies, used);
            (void)close(fd);
        }
    }
    (void)close(listener);
}

void fake_server_stop(struct fake_server *s)
{
    if (s->pid > 0 && kill(s->pid, SIGKILL) == 0)
        (void)waitpid(s->pid, NULL, 0);
    s->pid = 0;
}
