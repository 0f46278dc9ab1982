/*
 * What the two files of the memcached service share.
 */
#ifndef SIDFLAKE_SERVE_MEMCACHED_H
#define SIDFLAKE_SERVE_MEMCACHED_H

#include "serve/serve.h"
#include "wire/memcached.h"

/* The plain `get` of one ID answered last. A request is its bytes: one that begins with the same
 * line means the same, whoever sends it, and need not be parsed or looked up again. */
struct memcached_recent {
    char line[64];            /* with its end */
    size_t n;                 /* bytes of it; 0: none yet */
    struct span key;          /* into line */
    struct names_entry *name; /* of the table, which never changes */
};

struct memcached {
    struct net_service svc;
    struct serve *serve;
    struct memcached_recent recent;
};

/* Answers `stats` and its forms by req->args; false: there is no such form. */
bool memcached_stats(struct memcached *m, const struct mc_req *req, struct buf *out);

#endif
