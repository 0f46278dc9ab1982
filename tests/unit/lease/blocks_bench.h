/* What the tests of the blocks machine begin with: two holders, of which h is the first. */
#ifndef SIDFLAKE_UNIT_LEASE_BLOCKS_BENCH_H
#define SIDFLAKE_UNIT_LEASE_BLOCKS_BENCH_H

#include "support/blocks_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct brig rig;
static struct brig_holder *h;

static inline void begin(void)
{
    brig_init(&rig, 2, 7);
    h = &rig.holder[0];
}

static inline void end(void)
{
    brig_clear(&rig);
}

static inline void use(unsigned counter, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        (void)brig_must(h, counter, 1);
}

static inline enum sequence_status try(unsigned counter, int64_t n)
{
    int64_t index;
    return brig_get(h, counter, n, &index);
}

#endif
