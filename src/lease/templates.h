/*
 * The templates of sequences, for the serving loop: each is parsed once, by whoever fetches
 * numbers.
 *
 * Invariants
 *   - One that was found stays as it is, where it is, until templates_clear: so the loop reads it
 *     without a lock.
 *   - There are as many as definitions with a template were heard of: an operator makes each.
 */
#ifndef SIDFLAKE_LEASE_TEMPLATES_H
#define SIDFLAKE_LEASE_TEMPLATES_H

#include "coord/seq_template.h"

/* All zero: none. */
struct templates {
    struct templates_one *first;
};

/* That of a definition, whose text says which it is; NULL: it has none, or none that can be, or
 * there is no memory. */
const struct template *templates_find(struct templates *t, const char *name,
                                      const struct seq_definition *d, const char *text);
void templates_clear(struct templates *t);

#endif
