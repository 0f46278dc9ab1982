/*
 * Why no workerId can be had, and what to do: for the log, /readyz and the status page.
 */
#ifndef SIDFLAKE_LEASE_EXPLAIN_H
#define SIDFLAKE_LEASE_EXPLAIN_H

#include "lease/workers.h"

/* One line of at most cap - 1 bytes, or "" where nothing is wrong. l: after the outcome. A command
 * in it is whole. cap: at least 256. */
void explain(const struct workers_options *k, const struct lease *l, const struct lease_outcome *o,
             char *why, size_t cap);

#endif
