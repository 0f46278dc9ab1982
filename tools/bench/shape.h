/*
 * What is asked and what must come back: one shape per kind of request.
 *
 * A reply is a fixed number of lines, each with a form of its own:
 *
 *   mc-get     VALUE KEY 0 LEN / NUMBER  per key, END        3 lines for one key
 *   resp-get   $LEN / NUMBER                                 2
 *   resp-text  $LEN / any text                               2
 *   resp-incr  :NUMBER                                       1
 *   resp-lpop  *COUNT, then $LEN / NUMBER per ID             2 * COUNT + 1
 *   mc-set     STORED                                        1
 *   mc-cas     EXISTS: the token is an old one               1
 *
 * Invariant: a line that has another form is told with what was expected.
 */
#ifndef SIDFLAKE_BENCH_SHAPE_H
#define SIDFLAKE_BENCH_SHAPE_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_COUNT_MAX 1024 /* keys of a get, IDs of an LPOP */
#define SHAPE_KEY_MAX   24

struct shape {
    const char *kind;
    uint32_t count;                   /* IDs of a reply */
    uint32_t lines;                   /* of a reply */
    struct span text;                 /* the request; owned */
    struct span key[SHAPE_COUNT_MAX]; /* mc-get: into text */
    struct span reply;                /* mc-set, mc-cas: a literal */
    /* NULL: the line has its form, and *id is set where it holds one; else what was expected. */
    const char *(*check)(const struct shape *s, uint32_t line, struct span text, uint64_t *id);
    bool (*has_id)(const struct shape *s, uint32_t line);
};

/* kind as above; key: 1..SHAPE_KEY_MAX bytes; count is 1 but for mc-get and resp-lpop. false: no
 * such shape. */
bool shape_init(struct shape *s, const char *kind, struct span key, uint32_t count);
void shape_clear(struct shape *s);

#endif
