/*
 * The rules in C on a data set of dataset.h, in the rows that the scripts write: what one of the
 * two has written the other reads, so any call may be run by either.
 *
 * They are one twin of the other, and in a simulation some three times as fast. Replicas are the
 * scripts' alone.
 *
 * Invariants
 *   - A call goes where script_to says, and to the data set that is there when it begins.
 *   - Nothing is kept between two calls but the names of keys.
 */
#ifndef SIDFLAKE_TESTS_SIM_TWIN_H
#define SIDFLAKE_TESTS_SIM_TWIN_H

#include "coord/coord.h"

/* o: as for coord_open, whose url is of no use here. Ends the program where there is no memory;
 * coord_free() ends it. */
struct coord *twin_open(const struct coord_options *o);

#endif
