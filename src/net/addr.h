/*
 * Addresses as people write them (base/endpoint.h), and sockets that are there.
 */
#ifndef SIDFLAKE_NET_ADDR_H
#define SIDFLAKE_NET_ADDR_H

#include "base/err.h"
#include "base/span.h"

#include <stdint.h>
#include <sys/socket.h>

#define ADDR_TEXT_MAX 128 /* bytes of a written address, NUL included */

struct addr {
    bool is_unix;
    char host[256]; /* TCP: name or number, without brackets; unix: the path */
    uint16_t port;  /* TCP: 0 lets the system choose */
};

enum err_code addr_parse(struct span text, struct addr *out, struct err *e) MUST_CHECK;

/* Writes a bound or connected socket's own address as addr_parse reads it. Returns out. */
char *addr_of_socket(char out[ADDR_TEXT_MAX], int fd);

/* A connected blocking socket, for tools. The caller closes *fd. timeout_us bounds the connection
 * and each later send and receive. */
enum err_code addr_connect(const struct addr *a, int64_t timeout_us, int *fd,
                           struct err *e) MUST_CHECK;

#endif
