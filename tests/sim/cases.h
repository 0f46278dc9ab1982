/*
 * Schedules written by hand: what random ones meet too seldom to be relied on. Each is one that
 * went wrong with an earlier protocol, or would without what stands against it.
 */
#ifndef SIDFLAKE_TESTS_SIM_CASES_H
#define SIDFLAKE_TESTS_SIM_CASES_H

#include "sim/world.h"

#define CASES 5

extern const char *const case_names[CASES];

/* Runs one on w, whose server is a Redis; false, and w->why, where an invariant broke or the case
 * did not come to what it is about. */
bool case_run(struct world *w, unsigned i);

#endif
