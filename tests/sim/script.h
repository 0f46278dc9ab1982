/*
 * pool.lua and sequences.lua, run in process on a data set of dataset.h: the real scripts, as
 * src/coord/remote.c and remote_sequences.c call them.
 *
 * It takes the place of the connection (coord/courier.h), so that the requests that the driver
 * writes and the answers that it reads are the real ones, too.
 *
 * Invariants
 *   - One interpreter serves all data sets, one call at a time; nothing of a call stays in it.
 *   - A script that fails ends the program and says why: no answer of a sound pool is an error.
 */
#ifndef SIDFLAKE_TESTS_SIM_SCRIPT_H
#define SIDFLAKE_TESTS_SIM_SCRIPT_H

#include "coord/courier.h"
#include "sim/dataset.h"

/* Compiles the scripts; ends the program where that fails. */
void script_open(struct span pool, struct span sequences);
void script_close(void);

/* The data set that script_run works on from now on. */
void script_on(struct dataset *s);

/* What a driver's call goes to. Both functions may have other calls made meanwhile, one deep. */
struct script_target {
    /* The data set, asked for before each run of the script; NULL: the connection is gone. */
    struct dataset *(*data)(struct script_target *t);
    /* Whether n replicas have acknowledged what the latest run wrote. */
    bool (*acknowledged)(struct script_target *t, uint32_t n);
};

/* Where calls go from now on; returns where they went before. NULL: they end the program. */
struct script_target *script_to(struct script_target *t);

/* The data set of a call that begins, by the target's function. */
struct dataset *script_data(void);

/* Runs the script. The answer is good until the next script_run. */
void script_run(enum courier_text which, size_t nkeys, const struct span *keys, size_t nargs,
                const struct span *args, struct answer *out);

#endif
