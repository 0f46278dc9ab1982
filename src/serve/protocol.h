/*
 * The table of protocols: a row for each, which is all that the rest of the program knows of it.
 *
 *   PROTOCOLS ---> protocol_NAME, the row, in serve/NAME/NAME.c
 *       |
 *       '--name--> the options listen.NAME, upstream.NAME, ...: the row in conf/protocol_options.c
 *
 * Invariants
 *   - Whatever lists protocols does so over this table, in its order: the labels of metrics, the
 *     rows of pages, of stats and of JSON.
 *   - Only serve/NAME/ says SERVE_NAME.
 */
#ifndef SIDFLAKE_SERVE_PROTOCOL_H
#define SIDFLAKE_SERVE_PROTOCOL_H

#include <stdbool.h>

/* A new one is a line here, and a row in its own room. */
#define PROTOCOLS(ROW)                                                                             \
    ROW(MEMCACHED, memcached)                                                                      \
    ROW(REDIS, redis)                                                                              \
    ROW(HTTP, http)

#define PROTOCOL_ID(id, name)  SERVE_##id,
#define PROTOCOL_ROW(id, name) extern const struct protocol protocol_##name;

enum serve_protocol {
    PROTOCOLS(PROTOCOL_ID) SERVE_PROTOCOLS
};

struct greeting_form;
struct net_service;
struct serve;

struct protocol {
    const char *name;  /* "redis": label of metrics, and what its options end in */
    const char *title; /* "Redis": for people */
    /* Makes the service that speaks it; s must outlive it. free() ends it. NULL: no memory. */
    struct net_service *(*make)(struct serve *s);
    /* MAY: whatever the service has kept of names that were found (names.h) means nothing now. */
    void (*forget)(struct net_service *svc);
    /* The label of the command that is counted at this index; NULL: none is. */
    const char *(*command)(unsigned index);
    /* Its clients come for IDs: their times and failures are those of the history. */
    bool for_ids;
    /* MAY, with a server behind: how one logs in there, by lane; the last one is without put. */
    const struct greeting_form *logins;
    /* MAY, likewise: what the status page says of the server besides how it is. */
    const char *(*note)(const struct serve *s);
};

PROTOCOLS(PROTOCOL_ROW)

extern const struct protocol *const protocol_table[SERVE_PROTOCOLS];

static inline const struct protocol *protocol_of(enum serve_protocol p)
{
    return protocol_table[p];
}

static inline const char *serve_protocol_name(enum serve_protocol p)
{
    return protocol_of(p)->name;
}

/* As protocol.command. */
static inline const char *serve_command(enum serve_protocol p, unsigned index)
{
    return protocol_of(p)->command(index);
}

#endif
