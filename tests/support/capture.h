/*
 * Stderr goes to a file in memory between begin and end. A check that fails between the two says so
 * into it.
 */
#ifndef SIDFLAKE_SUPPORT_CAPTURE_H
#define SIDFLAKE_SUPPORT_CAPTURE_H

void capture_begin(void);

/* All that was written since, NUL-terminated, valid until the next call; aborts above 1 MiB. */
const char *capture_end(void);

#endif
