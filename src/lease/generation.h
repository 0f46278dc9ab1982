/*
 * The generation outside a page (page.h): which file it is, its inode and birth, nothing within.
 *
 * Invariant: a new one is renamed over it, so that no copy of page or generation, nor of both,
 * written over what stands there brings an earlier one back.
 */
#ifndef SIDFLAKE_LEASE_GENERATION_H
#define SIDFLAKE_LEASE_GENERATION_H

#include "base/err.h"
#include "lease/page.h"

#define GENERATION_NOT_AS_LEFT                                                                     \
    "it is an earlier state of itself, put back in place, or %s is not the one it had"

struct generation {
    char *path, *path_new; /* the file, and as it is made */
};

/* dir/NAME. false: no memory. */
bool generation_name(struct generation *g, const char *dir, const char *name);
void generation_clear(struct generation *g);

/* 0: there is none. */
uint64_t generation_there(const struct generation *g);

/* Begins a new one, which words, those of the page, expect by then. Looks at the disk. On an error
 * the one before goes on. */
enum err_code generation_begin(const struct generation *g, struct page_generation *words,
                               struct err *e) MUST_CHECK;

#endif
