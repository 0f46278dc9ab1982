#include "lease/ask.h"

#include <string.h>

void lease_ask(struct coord *c, const char *identity, int64_t wall, struct lease_action *a,
               struct lease_outcome *o)
{
    memset(o, 0, sizeof *o);
    switch (a->kind) {
    case LEASE_DESCRIBE:
        o->status = coord_describe(c, &o->pool, &o->reply);
        break;
    case LEASE_INIT:
        o->status = coord_init(c, &a->init, &o->reply);
        break;
    case LEASE_CLAIM:
        o->status = coord_claim(c, identity, wall, a->token, &o->grant, &o->reply);
        break;
    case LEASE_RENEW:
        a->by.now_ms = wall;
        o->status = coord_renew(c, identity, &a->by, a->items, a->nitems, &o->terms, &o->reply);
        break;
    case LEASE_RELEASE:
        o->status = coord_release(c, identity, &a->release, &o->reply);
        break;
    case LEASE_IDLE:
    case LEASE_FINISHED:
        break;
    }
}
