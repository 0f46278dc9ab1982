/*
 * Where a Redis is, read from its URL.
 *
 *   redis://[USER:PASS@]HOST[:PORT][/DB]      HOST may be an IPv6 address in brackets
 *   redis+unix://[USER:PASS@]/PATH[?db=N]
 *
 * Source: the provisional "redis" scheme of IANA's registry, with RFC 3986 percent-encoding in user
 * and password. PATH is taken as it stands.
 *
 * Invariants: an error names the part that is wrong, and never shows user or password.
 */
#ifndef SIDFLAKE_COORD_ADDRESS_H
#define SIDFLAKE_COORD_ADDRESS_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_SECRET_MAX 1024 /* bytes of a user or password, decoded */
#define ADDRESS_HOST_MAX   256  /* RFC 1035: 255, and NUL */

struct address_secret {
    size_t n; /* 0: none */
    char b[ADDRESS_SECRET_MAX];
};

struct address {
    bool local;                  /* a Unix socket: host is its path */
    char host[ADDRESS_HOST_MAX]; /* name or address, without brackets; never empty */
    uint16_t port;               /* 1..65535; 0 where local */
    uint32_t db;                 /* 0..65535: for SELECT */
    struct address_secret user;
    struct address_secret password;
};

/* url begins with redis:// or redis+unix://; anything else is ERR_INVALID. */
enum err_code address_parse(struct address *a, struct span url, struct err *e) MUST_CHECK;

#endif
