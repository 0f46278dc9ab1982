/*
 * A mark: a number in 8 bytes that tells a true one from a damaged one. Most are times; others
 * count numbers that were given out, or versions of what stands beside them.
 *
 *    63 ....................... 20   19 ......... 0
 *   |  44 bits: Unix ms            |  20 check bits  |
 *
 * One aligned 8-byte store replaces it whole, so that a process killed at any instant leaves either
 * the old or the new one behind. As times 44 bits last until the year 2527.
 */
#ifndef SIDFLAKE_BASE_MARK_H
#define SIDFLAKE_BASE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#define MARK_MAX_MS ((INT64_C(1) << 44) - 1)

static inline uint64_t mark_check(uint64_t ms)
{
    /* The top bits of a product with 2^64 / golden ratio depend on every bit of ms. */
    return ((ms + 1) * UINT64_C(0x9E3779B97F4A7C15)) >> 44;
}

/* unix_ms is held to 0..MARK_MAX_MS. */
static inline uint64_t mark_of(int64_t unix_ms)
{
    uint64_t ms = unix_ms < 0             ? 0
                  : unix_ms > MARK_MAX_MS ? (uint64_t)MARK_MAX_MS
                                          : (uint64_t)unix_ms;
    return ms << 20 | mark_check(ms);
}

/* false: no time was ever stored here, or it was damaged since. */
static inline bool mark_read(uint64_t mark, int64_t *unix_ms)
{
    uint64_t ms = mark >> 20;
    *unix_ms = (int64_t)ms;
    return (mark & 0xFFFFF) == mark_check(ms);
}

/* Stores of one thread to memory that outlives the process: the compiler must keep their order. */
static inline void mark_order_stores(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The cell is shared with another thread, or with whoever maps the page next. */
static inline void mark_store(volatile uint64_t *cell, int64_t unix_ms)
{
    __atomic_store_n(cell, mark_of(unix_ms), __ATOMIC_RELEASE);
}

static inline bool mark_load(const volatile uint64_t *cell, int64_t *unix_ms)
{
    return mark_read(__atomic_load_n(cell, __ATOMIC_ACQUIRE), unix_ms);
}

/* It holds neither a time nor, as one that was never stored to, nothing. */
static inline bool mark_is_damaged(const volatile uint64_t *cell)
{
    uint64_t mark = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
    int64_t unix_ms;
    return mark != 0 && !mark_read(mark, &unix_ms);
}

#endif
