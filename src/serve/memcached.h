/*
 * What the two files of the memcached service share.
 */
#ifndef SIDFLAKE_SERVE_MEMCACHED_H
#define SIDFLAKE_SERVE_MEMCACHED_H

#include "serve/recent.h"
#include "serve/serve.h"
#include "wire/memcached.h"

struct memcached {
    struct net_service svc;
    struct serve *serve;
    struct recent recent; /* plain gets of one ID */
};

/* Answers `stats` and its forms by req->args; false: there is no such form. */
bool memcached_stats(struct memcached *m, const struct mc_req *req, struct buf *out);

#endif
