/*
 * The 64 bits of an ID.
 *
 *    63   62 ........................ 25   24 ........... 10   9 ......... 0
 *   | 0 |  38 bits: ms since the epoch  |  15 bits: workerId  |  10: sequence |
 *
 * Invariants
 *   - IDs are positive as signed 64-bit numbers and sort by time, then workerId, then sequence.
 *   - The time field lasts 2^38 ms, which is 8 years and 259 days; it never wraps.
 *
 * Source: Twitter's Snowflake (2010), with the field widths of this project.
 */
#ifndef SIDFLAKE_IDS_LAYOUT_H
#define SIDFLAKE_IDS_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define LAYOUT_TIME_BITS     38
#define LAYOUT_WORKER_BITS   15
#define LAYOUT_SEQUENCE_BITS 10

#define LAYOUT_TIME_MAX  ((INT64_C(1) << LAYOUT_TIME_BITS) - 1) /* ms since the epoch */
#define LAYOUT_WORKERS   (1u << LAYOUT_WORKER_BITS)             /* 32,768 */
#define LAYOUT_SEQUENCES (1u << LAYOUT_SEQUENCE_BITS)           /* 1,024 a millisecond */

/* 2026-01-01T00:00:00Z, the epoch of a pool made without another. */
#define LAYOUT_EPOCH_DEFAULT_MS INT64_C(1767225600000)

/* "38.15.10": bits of time, workerId and sequence, as the identity of a pool names the layout. */
#define LAYOUT_TEXT_(bits) #bits
#define LAYOUT_TEXT(bits)  LAYOUT_TEXT_(bits)
#define LAYOUT_NAME                                                                                \
    LAYOUT_TEXT(LAYOUT_TIME_BITS)                                                                  \
    "." LAYOUT_TEXT(LAYOUT_WORKER_BITS) "." LAYOUT_TEXT(LAYOUT_SEQUENCE_BITS)

struct layout_parts {
    int64_t time;      /* ms since the epoch, 0..LAYOUT_TIME_MAX */
    uint32_t worker;   /* 0..32767 */
    uint32_t sequence; /* 0..1023 */
};

/* Parts out of range are the caller's mistake: they would run into each other. */
static inline uint64_t layout_compose(int64_t time, uint32_t worker, uint32_t sequence)
{
    return (uint64_t)time << (LAYOUT_WORKER_BITS + LAYOUT_SEQUENCE_BITS) |
           (uint64_t)worker << LAYOUT_SEQUENCE_BITS | sequence;
}

/* false: bit 63 is set, so this is no ID of this layout. */
static inline bool layout_decompose(uint64_t id, struct layout_parts *out)
{
    out->time = (int64_t)(id >> (LAYOUT_WORKER_BITS + LAYOUT_SEQUENCE_BITS));
    out->worker = (uint32_t)(id >> LAYOUT_SEQUENCE_BITS) & (LAYOUT_WORKERS - 1);
    out->sequence = (uint32_t)id & (LAYOUT_SEQUENCES - 1);
    return id >> 63 == 0;
}

/* Unix ms of the last millisecond that the time field can hold. */
static inline int64_t layout_end_ms(int64_t epoch_ms)
{
    return epoch_ms + LAYOUT_TIME_MAX;
}

#endif
