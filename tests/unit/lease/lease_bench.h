/*
 * One lease machine with a coordinator and a clock of its own, and the words that its tests speak.
 */
#ifndef SIDFLAKE_UNIT_LEASE_BENCH_H
#define SIDFLAKE_UNIT_LEASE_BENCH_H

#include "support/lease_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct bench {
    struct fake_clock clock;
    struct fake_coord coord;
    struct lease_rig rig;
};

static struct bench b;

/* to: the last workerId of the pool. */
static inline void begin_with(struct lease_config conf, uint16_t to)
{
    fake_clock_init(&b.clock, RIG_T0);
    fake_coord_init(&b.coord, &b.clock.clock, RIG_IDENTITY, 0, to);
    rig_init(&b.rig, &conf, &b.coord, &b.clock, 1);
}

static inline void begin(void)
{
    begin_with(rig_config(), FAKE_COORD_WORKERS - 1);
}

static inline void end(void)
{
    rig_clear(&b.rig);
    fake_coord_clear(&b.coord);
}

static inline void upset(enum fake_coord_op op, enum coord_status s)
{
    fake_coord_fail(&b.coord, op, s, false);
}

static inline unsigned count(enum fake_coord_op op)
{
    return fake_coord_count(&b.coord, op);
}

#endif
