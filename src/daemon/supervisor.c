#include "daemon/supervisor.h"

#include "base/dec.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An absolute path, or, after an @, a name in the abstract name space. */
static bool address_of(const char *path, struct supervisor *s)
{
    size_t n = strlen(path);
    if (n < 2 || n >= sizeof s->to.sun_path || (path[0] != '/' && path[0] != '@'))
        return false;
    s->to.sun_family = AF_UNIX;
    memcpy(s->to.sun_path, path, n);
    if (path[0] == '@')
        s->to.sun_path[0] = '\0';
    s->to_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (path[0] == '/'));
    return true;
}

static bool number_in(const char *name, uint64_t *v)
{
    const char *text = getenv(name);
    return text && dec_u64(span_str(text), v);
}

static int64_t watchdog(void)
{
    uint64_t us, pid;
    if (!number_in("WATCHDOG_USEC", &us) || us == 0 || us > INT64_MAX)
        return 0;
    if (number_in("WATCHDOG_PID", &pid) && pid != (uint64_t)getpid())
        return 0;
    return (int64_t)us;
}

void supervisor_init(struct supervisor *s)
{
    const char *path = getenv("NOTIFY_SOCKET");
    memset(s, 0, sizeof *s);
    s->fd = -1;
    if (!path || !address_of(path, s))
        return;
    s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd >= 0)
        s->watchdog_us = watchdog();
}

void supervisor_clear(struct supervisor *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
}

static void tell(const struct supervisor *s, const char *text)
{
    if (s->fd < 0)
        return;
    ssize_t sent = sendto(s->fd, text, strlen(text), MSG_NOSIGNAL,
                          (const struct sockaddr *)(const void *)&s->to, s->to_n);
    (void)sent;
}

/* Only a loop that turns can say so. */
static void loop_turns(void *arg)
{
    tell(arg, "WATCHDOG=1");
}

void supervisor_started(struct supervisor *s, struct net *n)
{
    tell(s, "READY=1");
    if (s->watchdog_us > 0)
        net_every(n, s->watchdog_us / 2, loop_turns, s);
}

void supervisor_stopping(const struct supervisor *s)
{
    tell(s, "STOPPING=1");
}

void supervisor_reloading(const struct supervisor *s, int64_t mono_us)
{
    char text[64];
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, mono_us);
    tell(s, text);
}

void supervisor_reloaded(const struct supervisor *s)
{
    tell(s, "READY=1");
}

void supervisor_not_reloaded(const struct supervisor *s, const char *why)
{
    char text[SUPERVISOR_STATUS_MAX];
    int n = snprintf(text, sizeof text, "READY=1\nSTATUS=upgrade refused: %.200s", why);
    for (char *c = text + sizeof "READY=1"; c < text + n; c++)
        if (*c == '\n') /* what follows one is another word to it */
            *c = ' ';
    tell(s, text);
}

void supervisor_holds(struct supervisor *s, uint64_t workers, const char *why)
{
    char text[SUPERVISOR_STATUS_MAX];
    if (s->fd < 0)
        return;
    if (workers > 0 && why[0])
        (void)snprintf(text, sizeof text, "STATUS=no IDs: %.200s", why);
    else if (workers > 0)
        (void)snprintf(text, sizeof text, "STATUS=serving with %" PRIu64 " workerIds", workers);
    else
        (void)snprintf(text, sizeof text, "STATUS=no workerId: %.200s",
                       why[0] ? why : "none was claimed yet");
    if (strcmp(s->status, text) == 0)
        return;
    memcpy(s->status, text, sizeof text);
    tell(s, text);
}
