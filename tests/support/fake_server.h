/*
 * A TCP server of one connection at a time that answers everything with the same bytes: what a
 * hostile or broken coordinator may send.
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
void fake_server_stop(struct fake_server *s);

#endif
