/*
 * FNV-1a: a hash of bytes, for tables and as a check of what stands in a file.
 *
 * Invariants
 *   - What they come to stands in files and goes over at upgrades: it never changes.
 *   - Each step is a bijection: of two texts that differ in one byte the hashes differ.
 *   - No defence against those who look for collisions.
 */
#ifndef SIDFLAKE_BASE_FNV_H
#define SIDFLAKE_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FNV32_NOTHING UINT32_C(2166136261) /* the hash of no bytes */
#define FNV64_NOTHING UINT64_C(14695981039346656037)
#define FNV64_PRIME   UINT64_C(1099511628211)

static inline uint32_t fnv32_byte(uint32_t h, uint8_t byte)
{
    return (h ^ byte) * UINT32_C(16777619);
}

/* Of what h is the hash of, with n more bytes behind it. */
static inline uint32_t fnv32_on(uint32_t h, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        h = fnv32_byte(h, b[i]);
    return h;
}

static inline uint32_t fnv32(const void *p, size_t n)
{
    return fnv32_on(FNV32_NOTHING, p, n);
}

static inline uint32_t fnv32_str(const char *text)
{
    return fnv32(text, strlen(text));
}

static inline uint64_t fnv64(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t h = FNV64_NOTHING;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * FNV64_PRIME;
    return h;
}

static inline uint64_t fnv64_str(const char *text)
{
    return fnv64(text, strlen(text));
}

/* Of what is long: 8 bytes a step, in the order of this machine; n is a multiple of 8. A product
 * carries upwards alone, so the upper half is brought down in each step. */
static inline uint64_t fnv64_words(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t h = FNV64_NOTHING, word;
    for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, b + i, sizeof word);
        h = (h ^ word) * FNV64_PRIME;
        h ^= h >> 32;
    }
    return h;
}

#endif
