#include "support/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_TRIES 500 /* of 20 ms each */

static void die(const char *what)
{
    perror(what);
    abort();
}

bool server_available(void)
{
    return system("command -v redis-server >/dev/null 2>&1") == 0;
}

/* Free a moment ago, and most likely still so when the server takes it. */
static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&a, sizeof a) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&a, &n) != 0)
        die("a free port");
    (void)close(fd);
    return ntohs(a.sin_port);
}

static _Noreturn void become_server(const struct server *s)
{
    char port[16];
    const char *argv[32] = {"redis-server",
                            "--port",
                            port,
                            "--bind",
                            "127.0.0.1",
                            "--unixsocket",
                            s->socket,
                            "--dir",
                            s->dir,
                            "--save",
                            "",
                            "--appendonly",
                            s->aof ? "yes" : "no",
                            "--appendfsync",
                            "always",
                            "--logfile",
                            "log",
                            "--slowlog-log-slower-than",
                            "-1",
                            "--repl-diskless-sync",
                            "no"};
    size_t n = 0;
    (void)snprintf(port, sizeof port, "%d", s->port);
    while (argv[n])
        n++;
    for (size_t i = 0; s->args[i]; i++)
        argv[n++] = s->args[i];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    (void)dup2(null, 1);
    (void)dup2(null, 2);
    (void)execvp(argv[0], (char *const *)(const void *)argv);
    _exit(127);
}

static void wait_ready(struct server *s)
{
    char out[256] = "";
    for (int i = 0; i < START_TRIES; i++) {
        if (SERVER_DO(s, out, "PING") || strncmp(out, "NOAUTH", 6) == 0)
            return;
        (void)usleep(20000);
    }
    (void)fprintf(stderr, "redis-server in %s: expected PONG, found %s\n", s->dir, out);
    abort();
}

void server_again(struct server *s)
{
    (void)unlink(s->socket);
    s->pid = fork();
    if (s->pid < 0)
        die("fork");
    if (s->pid == 0)
        become_server(s);
    wait_ready(s);
}

void server_start(struct server *s, bool aof, const char *const *args)
{
    memset(s, 0, sizeof *s);
    s->aof = aof;
    for (size_t i = 0; args && args[i] && i < SERVER_ARGS_MAX; i++)
        s->args[i] = args[i];
    const char *tmp = getenv("TMPDIR"); /* taken away though this process is killed */
    (void)snprintf(s->dir, sizeof s->dir, "%s/sidflake-redis-XXXXXX",
                   tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(s->dir))
        die(s->dir);
    (void)snprintf(s->socket, sizeof s->socket, "%s/s", s->dir);
    s->port = free_port();
    server_again(s);
}

void server_follow(const struct server *s, const struct server *master)
{
    char out[256];
    char port[16];
    (void)snprintf(port, sizeof port, "%d", master ? master->port : 0);
    bool good = master ? SERVER_DO(s, out, "REPLICAOF", "127.0.0.1", port)
                       : SERVER_DO(s, out, "REPLICAOF", "NO", "ONE");
    if (good)
        return;
    (void)fprintf(stderr, "REPLICAOF in %s: expected OK, found %s\n", s->dir, out);
    abort();
}

static size_t online(const struct server *s)
{
    char out[8192];
    size_t n = 0;
    if (!SERVER_DO(s, out, "INFO", "replication"))
        return 0;
    for (const char *at = out; (at = strstr(at, "state=online")); at++)
        n++;
    return n;
}

/* One that INFO calls online may wait for a second before it is sent anything: so something is
 * written, and its acknowledgement waited for. */
static bool in_step(const struct server *s, size_t n)
{
    const struct timeval limit = {10, 0};
    redisContext *c = redisConnectUnixWithTimeout(s->socket, limit);
    redisReply *r[2] = {NULL, NULL};
    if (c && !c->err) {
        r[0] = redisCommand(c, "SET followed x");
        r[1] = r[0] ? redisCommand(c, "WAIT %d 200", (int)n) : NULL;
    }
    bool good = r[1] && r[1]->type == REDIS_REPLY_INTEGER && r[1]->integer >= (long long)n;
    for (size_t i = 0; i < 2; i++) {
        if (r[i])
            freeReplyObject(r[i]);
    }
    if (c)
        redisFree(c);
    return good;
}

void server_wait_followed(const struct server *s, size_t n)
{
    for (int i = 0; i < START_TRIES; i++) {
        if (online(s) == n && (n == 0 || in_step(s, n)))
            return;
        (void)usleep(20000);
    }
    (void)fprintf(stderr, "redis-server in %s: expected %zu replicas, found %zu\n", s->dir, n,
                  online(s));
    abort();
}

char *server_url(const struct server *s, char out[SERVER_URL_MAX])
{
    (void)snprintf(out, SERVER_URL_MAX, "redis+unix://%.*s", (int)sizeof s->socket - 1, s->socket);
    return out;
}

void server_signal(const struct server *s, int signal)
{
    if (s->pid > 0)
        (void)kill(s->pid, signal);
}

void server_kill(struct server *s)
{
    server_signal(s, SIGKILL);
    if (s->pid > 0)
        (void)waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void server_free(struct server *s)
{
    server_kill(s);
    if (*s->dir)
        (void)nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    memset(s, 0, sizeof *s);
}

static void put_reply(const redisReply *r, char *out, size_t cap)
{
    size_t n = strlen(out);
    switch (r->type) {
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < r->elements; i++)
            put_reply(r->element[i], out, cap);
        break;
    case REDIS_REPLY_INTEGER:
        (void)snprintf(out + n, cap - n, "%s%lld", n ? "\n" : "", r->integer);
        break;
    case REDIS_REPLY_NIL:
        (void)snprintf(out + n, cap - n, "%s(nil)", n ? "\n" : "");
        break;
    default:
        (void)snprintf(out + n, cap - n, "%s%s", n ? "\n" : "", r->str);
        break;
    }
}

bool server_command(const struct server *s, char *out, size_t cap, int argc,
                    const char *const *argv)
{
    const struct timeval limit = {10, 0};
    redisContext *c = redisConnectUnixWithTimeout(s->socket, limit);
    redisReply *r = NULL;
    out[0] = '\0';
    if (c && !c->err && redisSetTimeout(c, limit) == REDIS_OK)
        r = redisCommandArgv(c, argc, (const char **)(const void *)argv, NULL);
    bool good = r && r->type != REDIS_REPLY_ERROR;
    if (r)
        put_reply(r, out, cap);
    else
        (void)snprintf(out, cap, "no reply: %s", c ? c->errstr : "no memory");
    if (r)
        freeReplyObject(r);
    if (c)
        redisFree(c);
    return good;
}
