/*
 * Where a Redis is, or who knows it, read from its URL.
 *
 *   redis://[USER:PASS@]HOST[:PORT][/DB]      HOST may be an IPv6 address in brackets
 *   redis+unix://[USER:PASS@]/PATH[?db=N]
 *   redis+sentinel://[USER:PASS@]HOST[:PORT][,HOST[:PORT]]…/MASTER[?db=N]
 *
 * Source: the provisional "redis" scheme of IANA's registry, with RFC 3986 percent-encoding in user
 * and password; the names that Redis Sentinel takes for a master. PATH is taken as it stands.
 *
 * Invariants: an error names the part that is wrong, and never shows user or password.
 */
#ifndef SIDFLAKE_COORD_REDIS_URL_H
#define SIDFLAKE_COORD_REDIS_URL_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define REDIS_URL_SECRET_MAX 1024 /* bytes of a user or password, decoded */
#define REDIS_URL_HOST_MAX   256  /* RFC 1035: 255, and NUL */
#define REDIS_URL_NODES_MAX  8    /* sentinels of one URL */
#define REDIS_URL_MASTER_MAX 129  /* a master's name, NUL included */

struct redis_url_secret {
    size_t n; /* 0: none */
    char b[REDIS_URL_SECRET_MAX];
};

/* One server. */
struct redis_url_node {
    char host[REDIS_URL_HOST_MAX]; /* name or address, without brackets; never empty */
    uint16_t port;                 /* 1..65535; 0: host is the path of a Unix socket */
};

struct redis_url {
    struct redis_url_node node[REDIS_URL_NODES_MAX]; /* the Redis, or the sentinels to ask for it */
    size_t nodes;                                    /* 1..REDIS_URL_NODES_MAX */
    char master[REDIS_URL_MASTER_MAX];               /* by what name; empty: node[0] is the Redis */
    uint32_t db;                                     /* 0..65535: for SELECT */
    struct redis_url_secret user;
    struct redis_url_secret password;
};

/* url begins with redis://, redis+unix:// or redis+sentinel://; anything else is ERR_INVALID. */
enum err_code redis_url_parse(struct redis_url *a, struct span url, struct err *e) MUST_CHECK;

/* "HOST port PORT", or the path of a socket. Returns out. */
#define REDIS_URL_TEXT_MAX (REDIS_URL_HOST_MAX + 16)
char *redis_url_text(char out[REDIS_URL_TEXT_MAX], const struct redis_url_node *n);

#endif
