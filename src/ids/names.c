#include "ids/names.h"

#include <stdlib.h>

/* The bucket that holds the name, or the empty one where it belongs. The names are the operator's:
 * nobody profits from a collision. */
static uint32_t *bucket_of(struct names *n, struct span name)
{
    size_t mask = n->buckets - 1;
    for (size_t i = span_hash(name) & mask;; i = (i + 1) & mask) {
        uint32_t *b = &n->bucket[i];
        if (*b == 0)
            return b;
        const struct names_entry *e = &n->entry[*b - 1];
        if (span_eq(span_of(e->text, e->length), name))
            return b;
    }
}

enum err_code names_init(struct names *n, const char *prefix, char *const *list, size_t count,
                         struct err *e)
{
    memset(n, 0, sizeof *n);
    n->prefix = strdup(prefix);
    if (!n->prefix)
        return err_set(e, ERR_NOMEM, "no memory for the prefix of IDs");
    n->prefix_length = strlen(prefix);
    if (count == 0)
        return ERR_OK;
    for (n->buckets = 8; n->buckets < 2 * count;)
        n->buckets *= 2;
    n->entry = calloc(count, sizeof *n->entry);
    n->bucket = calloc(n->buckets, sizeof *n->bucket);
    if (!n->entry || !n->bucket)
        goto nomem;
    for (size_t i = 0; i < count; i++) {
        struct span name = span_str(list[i]);
        uint32_t *b = bucket_of(n, name);
        if (*b)
            continue;
        struct names_entry *entry = &n->entry[n->count];
        entry->text = strdup(list[i]);
        if (!entry->text)
            goto nomem;
        entry->length = (uint32_t)name.n;
        *b = (uint32_t)++n->count;
    }
    return ERR_OK;
nomem:
    names_clear(n);
    return err_set(e, ERR_NOMEM, "no memory for %zu names of IDs", count);
}

void names_clear(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->entry[i].text);
    free(n->entry);
    free(n->bucket);
    free(n->prefix);
    memset(n, 0, sizeof *n);
}

/* Length of the name at the front of s, up to '#' or the end; 0 where it is no name. */
static size_t name_length(struct span s)
{
    size_t i = 0;
    while (i < s.n && s.p[i] != '#') {
        if (s.p[i] <= ' ' || s.p[i] > '~' || i == NAMES_LENGTH_MAX)
            return 0;
        i++;
    }
    return i;
}

struct names_entry *names_find(struct names *n, struct span key)
{
    if (!span_starts(key, span_of(n->prefix, n->prefix_length)))
        return NULL;
    struct span rest = span_skip(key, n->prefix_length);
    size_t length = name_length(rest);
    if (length == 0)
        return NULL;
    if (n->count == 0)
        return &n->other;
    uint32_t at = *bucket_of(n, span_of(rest.p, length));
    return at ? &n->entry[at - 1] : NULL;
}
