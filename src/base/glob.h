/*
 * Patterns as Redis's KEYS, SCAN and CONFIG GET take them: * ? [abc] [^a-z] \x.
 *
 * Source: redis.io, command KEYS; corner cases compared with Redis 7.0.15 (stringmatchlen): an
 * unclosed class ends with the pattern, "[z-a]" is "[a-z]", a final backslash is itself. Unlike
 * there, "**" matches the empty string.
 *
 * Invariant: the time is bounded by pattern.n * (s.n + stars), whatever the pattern.
 */
#ifndef SIDFLAKE_BASE_GLOB_H
#define SIDFLAKE_BASE_GLOB_H

#include "base/span.h"

#define GLOB_MAX 128 /* bytes of a pattern that a caller should accept */

/* nocase: ASCII letters match in either case. */
bool glob_match(struct span pattern, struct span s, bool nocase);

/* A pattern that many texts are held against: a byte of these takes the same time, whatever the
 * pattern. Its bits are places in the pattern, between atoms, which are all but stars. */
struct glob {
    struct span pattern; /* must outlive it */
    unsigned atoms;
    bool starred;
    uint64_t stays[2];     /* where there is a star */
    uint64_t goes[256][2]; /* where the next atom has this byte */
};

/* pattern: of at most GLOB_MAX bytes. */
void glob_init(struct glob *g, struct span pattern);
bool glob_has(const struct glob *g, struct span s);

#endif
