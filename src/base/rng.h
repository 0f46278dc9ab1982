/*
 * Random bytes as a parameter: the system's for tokens and jitter, a seeded stream for simulation.
 */
#ifndef SIDFLAKE_BASE_RNG_H
#define SIDFLAKE_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    void (*fill)(struct rng *, void *out, size_t n); /* MUST: fill all n bytes, always */
};

/* getrandom(2); aborts where the kernel has none to give, since a guessable token is a duplicate
 * waiting to happen. The object is static and shared by all threads. */
struct rng *rng_system(void);

uint64_t rng_u64(struct rng *r);

/* Uniform in 0..bound-1; bound must be at least 1. */
uint64_t rng_below(struct rng *r, uint64_t bound);

#endif
