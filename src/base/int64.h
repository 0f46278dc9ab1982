/* The lesser and the greater of two, as of times and durations. */
#ifndef SIDFLAKE_BASE_INT64_H
#define SIDFLAKE_BASE_INT64_H

#include <stdint.h>

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
