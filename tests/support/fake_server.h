/*
 * TCP servers of one connection at a time, each a process of its own: what a hostile or broken
 * coordinator may send, and Redis or Sentinel as far as a few replies make one.
 */
#ifndef SIDFLAKE_TESTS_SUPPORT_FAKE_SERVER_H
#define SIDFLAKE_TESTS_SUPPORT_FAKE_SERVER_H

#include <stddef.h>
#include <sys/types.h>

struct fake_server {
    pid_t pid;
    int port;
};

/* The bytes are sent each time something has been read. delay_ms > 0: one at a time, so far apart.
 * Aborts where there is no port to be had. */
void fake_server_start(struct fake_server *s, const char *bytes, size_t n, int delay_ms);

/* What one command is answered with. */
struct fake_reply {
    const char *command; /* its first word, in any case */
    const char *bytes;   /* NULL: the connection is closed instead */
};

/* Commands are answered from the list, which ends with a NULL command: each time by the next reply
 * of that command, and by its last one from then on, over all connections. One that is not listed
 * closes the connection. */
void fake_server_script(struct fake_server *s, const struct fake_reply *replies);

void fake_server_stop(struct fake_server *s);

#endif
