/*
 * Names: which keys are given out here, by which generator, and under which name they are counted.
 *
 *   id:orders#7    "id:" is the prefix, "orders" the name, "#7" is ignored
 *
 *   struct names     a row for each prefix ----> the generator that all its names draw on
 *   names_entry      a name                ----> the same, so that a key that was found is enough
 *
 * Where each name is a generator of its own (generator_kind.entry), the row has the one that finds
 * them.
 *
 * Invariants
 *   - Numbers of one generator are unique across its names.
 *   - Rows and the names in them are made at start and never change afterwards. An entry that a
 *     generator has found is another name's only once everybody was told to forget what was found
 *     (protocol.forget); and one that was found and not issued from may be before the next search.
 */
#ifndef SIDFLAKE_IDS_NAMES_H
#define SIDFLAKE_IDS_NAMES_H

#include "base/err.h"
#include "base/span.h"
#include "ids/generator.h"

#include <stdint.h>

#define NAMES_LENGTH_MAX 200 /* bytes of a name */
#define NAMES_PREFIXES   4

struct names_entry {
    char *text; /* NULL: the entry for all names that are not configured */
    uint32_t length;
    uint64_t issued; /* numbers given out under it */
    struct generator *generator;
};

struct names_prefix {
    char *text;
    size_t length;
    struct generator *generator;
    struct names_entry other; /* any other name, where any is accepted; not of generators by name */
    struct names_entry *entry;
    size_t count;     /* 0: any name is accepted */
    uint32_t *bucket; /* open addressing: index into entry + 1, or 0 */
    size_t buckets;   /* a power of two, or 0 */
};

/* Zeroed memory knows no prefix. */
struct names {
    struct names_prefix prefix[NAMES_PREFIXES]; /* the first is that of IDs */
    unsigned n;
    size_t count; /* names configured, of all prefixes */
};

/* Adds a prefix. It and list are copied; g outlives n. A doubled name is one entry. After an error
 * n is as before. */
enum err_code names_add(struct names *n, struct generator *g, const char *prefix, char *const *list,
                        size_t count, struct err *e) MUST_CHECK;
void names_clear(struct names *n);

/* The longest prefix that the key begins with, or NULL. */
const struct names_prefix *names_prefix_of(const struct names *n, struct span key);

/* The first prefix whose generator is of the kind of this name, or NULL. */
const struct names_prefix *names_prefix_of_kind(const struct names *n, struct span kind);

/* Whether two keys differ in nothing but what stands behind '#'. */
bool names_alike(struct span a, struct span b);

/* The entry that a key counts under, or NULL where nothing is given out by it: another prefix, an
 * empty name, one of over 200 bytes or with a byte that is not printable ASCII, or one that is not
 * configured. Of generators by name the first three are an entry that gives out nothing. */
struct names_entry *names_find(struct names *n, struct span key);

/* The same; part: of that name's generator, as generator_kind.entry; NULL where that has no parts.
 */
struct names_entry *names_find_part(struct names *n, struct span key, struct span part);

/* Configured name number i, below n->count, and its prefix. */
const struct names_entry *names_at(const struct names *n, size_t i,
                                   const struct names_prefix **prefix);

/* So many bytes from the front of a key, or all if it has fewer, tell what names_find says of it.
 */
size_t names_enough(const struct names *n);

#endif
