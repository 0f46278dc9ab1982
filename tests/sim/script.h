/*
 * pool.lua, run in process on a data set of dataset.h: the real script, as src/coord/remote.c calls
 * it.
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

#include "coord/answer.h"
#include "sim/dataset.h"

/* Compiles a script of n bytes; ends the program where that fails. */
void script_open(const char *text, size_t n);
void script_close(void);

/* The data set that calls go to from now on; NULL: calls end the program. */
void script_on(struct dataset *s);

/* Runs the script. The answer is good until the next script_run. */
void script_run(size_t nkeys, const struct span *keys, size_t nargs, const struct span *args,
                struct answer *out);

#endif
