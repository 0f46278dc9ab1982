/*
 * A span: bytes that belong to somebody else, passed by value.
 *
 * Invariants
 *   - A span owns nothing and ends no string with NUL.
 *   - It dies when the call that was given it returns.
 */
#ifndef SIDFLAKE_BASE_SPAN_H
#define SIDFLAKE_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *p; /* may be NULL only if n is 0 */
    size_t n;      /* bytes */
};

#define SPAN(literal) ((struct span){"" literal, sizeof(literal) - 1})

static inline struct span span_of(const char *p, size_t n)
{
    return (struct span){p, n};
}

static inline struct span span_str(const char *s)
{
    return (struct span){s, strlen(s)};
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool span_starts(struct span s, struct span prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

/* s without its first n bytes; n must be at most s.n. */
static inline struct span span_skip(struct span s, size_t n)
{
    return (struct span){s.p ? s.p + n : s.p, s.n - n};
}

/* Equal but for the case of ASCII letters: the locale has no say. */
bool span_eq_nocase(struct span a, struct span b);

/* The text up to the first sep, which is dropped; *rest becomes what follows (empty, NULL at the
 * end: `while (rest.p)` walks "a,b," as "a", "b", ""). */
struct span span_cut(struct span *rest, char sep);

#endif
