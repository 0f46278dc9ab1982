/*
 * Where a client of these tests connects to, and files read whole.
 *
 * Invariants
 *   - Addresses are tcp:PORT, which is 127.0.0.1, or unix:PATH: nothing else can be reached.
 */
#ifndef SIDFLAKE_TESTS_HOSTILE_PLACE_H
#define SIDFLAKE_TESTS_HOSTILE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct place {
    struct sockaddr_storage sa;
    socklen_t len;
};

/* false: not an address as above. */
bool place_parse(const char *text, struct place *out);

/* A non-blocking socket, on its way to p; -1 with errno. receive: bytes of its receive buffer, 0:
 * the system's choice. *done: connected already. */
int place_connect(const struct place *p, int receive, bool *done);

/* A file's bytes, never freed; exits where it cannot be read. */
char *place_read(const char *path, size_t *len);

/* CLOCK_MONOTONIC, in microseconds. */
int64_t place_now_us(void);

#endif
