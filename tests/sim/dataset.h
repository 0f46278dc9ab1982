/*
 * A Redis data set in memory, small and flat, with the commands that pool.lua uses.
 *
 * It answers as a real Redis does, which check_redis.c holds it to, reply by reply.
 *
 * Invariants
 *   - A key without elements does not exist, as in Redis.
 *   - Flat: a data set is copied by dataset_copy, so that persistence, replicas and backups are
 *     cheap.
 *   - A capacity that is passed ends the program: it is a bug of the simulation, never an answer.
 */
#ifndef SIDFLAKE_TESTS_SIM_DATASET_H
#define SIDFLAKE_TESTS_SIM_DATASET_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATASET_KEYS     6
#define DATASET_ELEMENTS 176 /* of one key */
#define DATASET_NAME_MAX 40
#define DATASET_SUB_MAX  40  /* field, list element or zset member */
#define DATASET_TEXT_MAX 384 /* value of a field */
#define DATASET_ARGS_MAX 200

/* In what INFO tells: replicas are connected, as many as a pool may ask for. Whether they
 * acknowledge is another thing, and the group's. */
#define DATASET_LISTENERS                                                                          \
    "slave0:state=online\r\nslave1:state=online\r\nslave2:state=online\r\nslave3:state=online\r\n"

enum dataset_type {
    DATASET_NONE,
    DATASET_HASH,
    DATASET_LIST,
    DATASET_ZSET
};

struct dataset_element {
    char sub[DATASET_SUB_MAX]; /* zero-padded */
    double score;              /* zset */
    uint8_t nsub;
    uint16_t ntext;
    char text[DATASET_TEXT_MAX]; /* hash */
};

struct dataset_key {
    char name[DATASET_NAME_MAX];
    size_t nname;
    enum dataset_type type; /* DATASET_NONE: no such key */
    unsigned n;
    unsigned hint; /* where to look first: after the element found last */
    struct dataset_element e[DATASET_ELEMENTS];
};

struct dataset {
    struct dataset_key key[DATASET_KEYS];
    /* Of the server rather than the data: what TIME and INFO tell. */
    int64_t now_us; /* Unix time */
    char run_id[41], replid[41];
};

enum dataset_kind {
    DATASET_NIL,
    DATASET_INT,
    DATASET_TEXT,
    DATASET_ERROR, /* text */
    DATASET_ARRAY, /* of items, each with its own kind DATASET_NIL or DATASET_TEXT */
    DATASET_PAGE,  /* a cursor, which is 0, and such an array */
};

struct dataset_item {
    bool nil;
    struct span text; /* into the store or into `scratch`, until the next command */
};

struct dataset_reply {
    enum dataset_kind kind;
    long long number;
    struct span text;
    size_t n;
    struct dataset_item item[2 * DATASET_ELEMENTS];
    char scratch[224];
};

void dataset_reset(struct dataset *s); /* no keys; the server's own stays */
void dataset_copy(struct dataset *to, const struct dataset *from); /* the keys alone */

/* NULL where there is none. */
struct dataset_key *dataset_find(struct dataset *s, const char *name);
void dataset_delete(struct dataset *s, const char *name);

/* Runs a command; false: not one that is known. */
bool dataset_command(struct dataset *s, size_t argc, const struct span *argv,
                     struct dataset_reply *out);

#endif
