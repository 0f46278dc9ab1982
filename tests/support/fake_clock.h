/*
 * A clock that stands until a test moves it.
 *
 * Invariants
 *   - Monotonic time only rises: fake_clock_pass moves both clocks, fake_clock_step the wall alone.
 *   - One thread at a time: there is no lock.
 */
#ifndef SIDFLAKE_SUPPORT_FAKE_CLOCK_H
#define SIDFLAKE_SUPPORT_FAKE_CLOCK_H

#include "base/clock.h"

struct fake_clock {
    struct clock clock; /* first: what the code under test is given */
    int64_t us_wall, us_mono;
    uint64_t reads; /* of the wall clock */
};

/* wall_ms: Unix ms. Monotonic time starts at 1,000 s. */
void fake_clock_init(struct fake_clock *c, int64_t wall_ms);

/* Time goes by: us >= 0. */
void fake_clock_pass(struct fake_clock *c, int64_t us);

/* The wall clock is set: by ms, of either sign. */
void fake_clock_step(struct fake_clock *c, int64_t ms);

#endif
