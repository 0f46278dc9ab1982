#include "ids/names.h"

#include "base/fnv.h"

#include <stdlib.h>

/* The bucket that holds the name, or the empty one where it belongs. The names are the operator's:
 * nobody profits from a collision. */
static uint32_t *bucket_of(const struct names_prefix *n, struct span name)
{
    size_t mask = n->buckets - 1;
    for (size_t i = fnv32(name.p, name.n) & mask;; i = (i + 1) & mask) {
        uint32_t *b = &n->bucket[i];
        if (*b == 0)
            return b;
        const struct names_entry *e = &n->entry[*b - 1];
        if (span_eq(span_of(e->text, e->length), name))
            return b;
    }
}

static void clear(struct names_prefix *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->entry[i].text);
    free(p->entry);
    free(p->bucket);
    free(p->text);
    memset(p, 0, sizeof *p);
}

static enum err_code fill(struct names_prefix *p, char *const *list, size_t count, struct err *e)
{
    for (p->buckets = 8; p->buckets < 2 * count;)
        p->buckets *= 2;
    p->entry = calloc(count, sizeof *p->entry);
    p->bucket = calloc(p->buckets, sizeof *p->bucket);
    if (!p->entry || !p->bucket)
        goto nomem;
    for (size_t i = 0; i < count; i++) {
        struct span name = span_str(list[i]);
        uint32_t *b = bucket_of(p, name);
        if (*b)
            continue;
        struct names_entry *entry = &p->entry[p->count];
        entry->text = strdup(list[i]);
        if (!entry->text)
            goto nomem;
        entry->length = (uint32_t)name.n;
        entry->generator = p->generator;
        *b = (uint32_t)++p->count;
    }
    return ERR_OK;
nomem:
    return err_set(e, ERR_NOMEM, "no memory for %zu names of IDs", count);
}

enum err_code names_add(struct names *n, struct generator *g, const char *prefix, char *const *list,
                        size_t count, struct err *e)
{
    if (n->n == NAMES_PREFIXES)
        return err_set(e, ERR_INVALID, "expected at most %d prefixes", NAMES_PREFIXES);
    struct names_prefix *p = &n->prefix[n->n];
    *p = (struct names_prefix){
        .text = strdup(prefix), .length = strlen(prefix), .generator = g, .other.generator = g};
    if (!p->text)
        return err_set(e, ERR_NOMEM, "no memory for the prefix of IDs");
    enum err_code r = count > 0 ? fill(p, list, count, e) : ERR_OK;
    if (r) {
        clear(p);
        return r;
    }
    n->n++;
    n->count += p->count;
    return ERR_OK;
}

void names_clear(struct names *n)
{
    for (unsigned i = 0; i < n->n; i++)
        clear(&n->prefix[i]);
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

bool names_alike(struct span a, struct span b)
{
    return span_eq(span_cut(&a, '#'), span_cut(&b, '#'));
}

const struct names_prefix *names_prefix_of(const struct names *n, struct span key)
{
    const struct names_prefix *best = NULL;
    for (unsigned i = 0; i < n->n; i++) {
        const struct names_prefix *p = &n->prefix[i];
        if (p->length > 0 && (key.n == 0 || key.p[0] != p->text[0])) /* nearly all of the others */
            continue;
        if ((!best || p->length > best->length) && span_starts(key, span_of(p->text, p->length)))
            best = p;
    }
    return best;
}

const struct names_prefix *names_prefix_of_kind(const struct names *n, struct span kind)
{
    for (unsigned i = 0; i < n->n; i++)
        if (span_eq(kind, span_str(n->prefix[i].generator->kind->name)))
            return &n->prefix[i];
    return NULL;
}

/* Of generators by name the list has what stands before the first ':'. What can't be a name is none
 * of a server's behind either, which would count it without a word: their kind says what is wrong,
 * of an empty name, as nobody has promised that it can be shown. */
static struct names_entry *find_generator(const struct names_prefix *p, struct span rest,
                                          struct span part)
{
    struct span listed = rest, name = span_of(rest.p, name_length(rest));
    listed = span_cut(&listed, ':');
    listed = span_cut(&listed, '#');
    if (p->count > 0 && *bucket_of(p, listed) == 0)
        return NULL;
    return p->generator->kind->entry(p->generator, name, part);
}

/* part: as generator_kind.entry. */
static inline struct names_entry *find(struct names *n, struct span key, struct span part)
{
    struct names_prefix *p = (struct names_prefix *)names_prefix_of(n, key);
    if (!p)
        return NULL;
    struct span rest = span_skip(key, p->length);
    if (p->generator->kind->entry)
        return find_generator(p, rest, part);
    size_t length = name_length(rest);
    if (length == 0 || part.n > 0)
        return NULL;
    if (p->count == 0)
        return &p->other;
    uint32_t at = *bucket_of(p, span_of(rest.p, length));
    return at ? &p->entry[at - 1] : NULL;
}

struct names_entry *names_find(struct names *n, struct span key)
{
    return find(n, key, span_of("", 0));
}

struct names_entry *names_find_part(struct names *n, struct span key, struct span part)
{
    return find(n, key, part);
}

const struct names_entry *names_at(const struct names *n, size_t i,
                                   const struct names_prefix **prefix)
{
    *prefix = n->prefix;
    while (i >= (*prefix)->count)
        i -= (*prefix)++->count;
    return &(*prefix)->entry[i];
}

size_t names_enough(const struct names *n)
{
    size_t longest = 0;
    for (unsigned i = 0; i < n->n; i++)
        longest = n->prefix[i].length > longest ? n->prefix[i].length : longest;
    return longest + NAMES_LENGTH_MAX + 1;
}
