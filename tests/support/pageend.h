/*
 * Memory that ends where a page ends, the next one being off limits: reading one byte too far
 * crashes, with and without a sanitizer. After picohttpparser's tests.
 *
 *     | room, readable and writable | guard |
 *                          '- span -'
 */
#ifndef SIDFLAKE_SUPPORT_PAGEEND_H
#define SIDFLAKE_SUPPORT_PAGEEND_H

#include "base/span.h"

struct pageend {
    char *map;
    size_t room; /* bytes before the guard, whole pages */
    size_t page; /* bytes of the guard */
};

/* Room for at least n bytes, as long as the process lives. Aborts if the system has none. */
void pageend_init(struct pageend *p, size_t n);

/* The last n bytes before the guard; n must be at most room. */
char *pageend_tail(const struct pageend *p, size_t n);

/* A copy of s right before the guard; it lives until the next copy. */
struct span pageend_copy(const struct pageend *p, struct span s);

#endif
