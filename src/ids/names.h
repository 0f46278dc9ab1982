/*
 * Names of ID sequences: which keys are IDs, and under which name they are counted.
 *
 *   id:orders#7    "id:" is the prefix, "orders" the name, "#7" is ignored
 *
 * Invariants
 *   - Every name draws on the same generator: IDs are unique across names.
 *   - The table is made at start and never changes afterwards.
 */
#ifndef SIDFLAKE_IDS_NAMES_H
#define SIDFLAKE_IDS_NAMES_H

#include "base/err.h"
#include "base/span.h"

#include <stdint.h>

#define NAMES_LENGTH_MAX 200 /* bytes of a name */

struct names_entry {
    char *text; /* NULL: the entry for all names that are not configured */
    uint32_t length;
    uint64_t issued; /* IDs given out under it */
};

struct names {
    char *prefix;
    size_t prefix_length;
    struct names_entry other; /* any other name, where any is accepted */
    struct names_entry *entry;
    size_t count;     /* 0: any name is accepted */
    uint32_t *bucket; /* open addressing: index into entry + 1, or 0 */
    size_t buckets;   /* a power of two, or 0 */
};

/* prefix and list are copied. A doubled name is one entry. */
enum err_code names_init(struct names *n, const char *prefix, char *const *list, size_t count,
                         struct err *e) MUST_CHECK;
void names_clear(struct names *n);

/* The entry that a key counts under, or NULL where the key is no ID: another prefix, an empty name,
 * one of over 200 bytes or with a byte that is not printable ASCII, or one that is not configured.
 */
struct names_entry *names_find(struct names *n, struct span key);

/* So many bytes from the front of a key, or all if it has fewer, tell what names_find says of it.
 */
static inline size_t names_enough(const struct names *n)
{
    return n->prefix_length + NAMES_LENGTH_MAX + 1;
}

#endif
