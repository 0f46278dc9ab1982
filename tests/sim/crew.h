/*
 * Many schedules on several processes.
 *
 * Invariants
 *   - A worker takes a few seeds at a time off one counter, so that all end at about the same time.
 *   - What a seed does depends on nothing but the seed: the sum of the statistics is the same for
 *     any number of workers.
 *   - The first failure stops all workers, unless all failures are to be counted; of several, the
 *     lowest seed is told.
 */
#ifndef SIDFLAKE_TESTS_SIM_CREW_H
#define SIDFLAKE_TESTS_SIM_CREW_H

#include "sim/world.h"

#define CREW_MAX 64

struct crew_job {
    uint64_t from, seeds;
    unsigned workers; /* 1..CREW_MAX */
    bool to_the_end;  /* go on after failures */
    /* Called in each worker: before its first seed, for each seed (true: it failed), after the
     * last. */
    void (*open)(struct stats *stats);
    bool (*run)(uint64_t seed);
    void (*close)(void);
};

struct crew_result {
    struct stats stats; /* of all workers */
    bool failed;
    uint64_t seed; /* the lowest that failed */
    double seconds;
};

/* Ends the program where a worker dies, and says of which seed. On a terminal or off it, a line
 * tells every 10 s how far it is. */
void crew_run(const struct crew_job *job, struct crew_result *out);

#endif
