/*
 * What a coordinator's answer must come to; each fails the test otherwise, and says what was found.
 */
#ifndef SIDFLAKE_TESTS_SUPPORT_COORD_SAYS_H
#define SIDFLAKE_TESTS_SUPPORT_COORD_SAYS_H

#include "coord/coord.h"

/* The error holds this part. */
void coord_says(const struct coord_reply *r, const char *part);

/* The status is the one expected; else its error is shown, too. */
#define coord_came_to(r, found, expected) coord_came_to_at(r, found, expected, __LINE__)
void coord_came_to_at(const struct coord_reply *r, enum coord_status found,
                      enum coord_status expected, int line);

#endif
