/*
 * What the service manager is told: systemd's notifications and watchdog.
 *
 * Invariants
 *   - Without NOTIFY_SOCKET in the environment every call does nothing.
 *   - Nothing blocks: a message that cannot be sent at once is lost, and the next one tells it all.
 *
 * Sources: sd_notify(3) and sd_watchdog_enabled(3) of systemd, which describe the datagrams and the
 * variables NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
 */
#ifndef SIDFLAKE_DAEMON_SUPERVISOR_H
#define SIDFLAKE_DAEMON_SUPERVISOR_H

#include "net/net.h"

#include <sys/socket.h>
#include <sys/un.h>

#define SUPERVISOR_STATUS_MAX 256

struct supervisor {
    int fd; /* -1: nobody to tell */
    struct sockaddr_un to;
    socklen_t to_n;
    int64_t watchdog_us;                /* 0: none; else it wants to hear at least this often */
    char status[SUPERVISOR_STATUS_MAX]; /* told last */
};

/* Reads the environment. */
void supervisor_init(struct supervisor *s);
void supervisor_clear(struct supervisor *s);

/* It listens. From now on the loop says that it turns, if anybody wants to hear it. */
void supervisor_started(struct supervisor *s, struct net *n);
void supervisor_stopping(const struct supervisor *s);
void supervisor_reloading(const struct supervisor *s, int64_t mono_us); /* monotonic, now */
void supervisor_reloaded(const struct supervisor *s);

/* The same, and a line of `systemctl status` that stands until what is held changes. */
void supervisor_not_reloaded(const struct supervisor *s, const char *why);

/* The line of `systemctl status`, told when it changes. why: no IDs can be had, with those
 * workerIds or without one; empty where they can, or that is not known. */
void supervisor_holds(struct supervisor *s, uint64_t workers, const char *why);

#endif
