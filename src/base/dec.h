/*
 * Decimal numbers, strictly: digits only, no sign but '-' where negatives are allowed, no space, no
 * leading '+', nothing left over, no overflow. Leading zeros are accepted on input ("007" is 7)
 * except by dec_canonical_i64.
 */
#ifndef SIDFLAKE_BASE_DEC_H
#define SIDFLAKE_BASE_DEC_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEC_U64_MAX 20 /* digits of 18446744073709551615 */

/* true and *out set, or false and *out untouched. */
bool dec_u64(struct span s, uint64_t *out);
bool dec_i64(struct span s, int64_t *out);

/* As Redis reads numbers (string2ll): no leading zero, no "-0". */
bool dec_canonical_i64(struct span s, int64_t *out);

/* Writes v without NUL to out, which has room for DEC_U64_MAX bytes; returns the digits written. */
size_t dec_put_u64(char *out, uint64_t v);

/* The same with a '-' before a negative one. */
static inline size_t dec_put_i64(char *out, int64_t v)
{
    if (v >= 0)
        return dec_put_u64(out, (uint64_t)v);
    *out = '-';
    return 1 + dec_put_u64(out + 1, 0 - (uint64_t)v);
}

/* Writes v, below 10^8, as eight digits with leading zeros. */
void dec_put_eight(char *out, uint32_t v);

#endif
