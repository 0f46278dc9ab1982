/*
 * Where something listens, as it is written: the one grammar of addresses.
 *
 *   tcp://HOST:PORT   tcp://[IPV6]:PORT   unix:///PATH   unix:PATH     endpoint_read
 *   HOST   HOST:PORT   [IPV6]   [IPV6]:PORT                            endpoint_read_host
 *
 * Who reads one may expect more of it: conf/address.h that the host can be one, coord/redis_url.h
 * that a resolver may know it, and that the port is not 0.
 *
 * Pure: nothing is looked up or opened. Sources: RFC 3986 for brackets; unix(7) for paths.
 */
#ifndef SIDFLAKE_BASE_ENDPOINT_H
#define SIDFLAKE_BASE_ENDPOINT_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_HOST_MAX 255 /* RFC 1035 */
#define ENDPOINT_PATH_MAX 107 /* sun_path on Linux, less the NUL */

/* What of it is wrong. */
enum endpoint_fault {
    ENDPOINT_OK,
    ENDPOINT_FORM,     /* neither tcp:// nor unix: */
    ENDPOINT_BRACKETS, /* a host with a colon has none, or they are not around all of it */
    ENDPOINT_HOST,     /* not 1..ENDPOINT_HOST_MAX bytes without NUL */
    ENDPOINT_PORT,     /* not 0..65535 in at most 5 digits, or none with tcp:// */
    ENDPOINT_PATH      /* not 1..ENDPOINT_PATH_MAX bytes without NUL */
};

/* Spans point into the text that was read. */
struct endpoint {
    bool is_unix;
    struct span path; /* unix */
    struct span host; /* else: without brackets */
    bool bracketed;
    bool has_port;
    uint16_t port;     /* 0 without */
    struct span wrong; /* the part that is, after a fault */
};

enum endpoint_fault endpoint_read(struct span text, struct endpoint *out);
enum endpoint_fault endpoint_read_host(struct span text, struct endpoint *out);
enum endpoint_fault endpoint_read_path(struct span text, struct endpoint *out);

/* More than the grammar asks: what can be no host's name or address is told when it is written, not
 * when it is looked up. */
bool endpoint_may_be_host(const struct endpoint *p);

/* The same, and what only a resolver can tell: 127.1, redis.1. */
bool endpoint_may_resolve(const struct endpoint *p);

/* family: AF_INET or AF_INET6. */
bool endpoint_is_numeric(int family, struct span host);

/* For messages: what was expected instead, "a port of 0 to 65535". */
const char *endpoint_expected(enum endpoint_fault f);

#endif
