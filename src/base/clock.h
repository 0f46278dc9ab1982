/*
 * Time as a parameter: whoever needs the time is given a struct clock, so that tests can move it.
 *
 * Invariants
 *   - base/clock.c is the only file that asks the system for the time.
 *   - Wall time may stand still, step back or jump; monotonic time never goes back.
 *   - The two are different numbers with different origins: never compare or subtract across.
 */
#ifndef SIDFLAKE_BASE_CLOCK_H
#define SIDFLAKE_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*wall_us)(struct clock *); /* MUST: microseconds since 1970-01-01T00:00:00Z */
    int64_t (*mono_us)(struct clock *); /* MUST: microseconds since some fixed point in the past */
};

/* The system's clocks. Never fails. The object is static and shared by all threads. */
struct clock *clock_system(void);

static inline int64_t clock_wall_us(struct clock *c)
{
    return c->wall_us(c);
}

static inline int64_t clock_mono_us(struct clock *c)
{
    return c->mono_us(c);
}

/* Milliseconds since 1970-01-01T00:00:00Z, rounded down (also before 1970). */
static inline int64_t clock_wall_ms(struct clock *c)
{
    int64_t us = c->wall_us(c);
    return us / 1000 - (us % 1000 < 0);
}

static inline int64_t clock_mono_ms(struct clock *c)
{
    return c->mono_us(c) / 1000;
}

#endif
