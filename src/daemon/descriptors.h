/*
 * How many connections there are file descriptors for.
 */
#ifndef SIDFLAKE_DAEMON_DESCRIPTORS_H
#define SIDFLAKE_DAEMON_DESCRIPTORS_H

#include "conf/conf.h"

struct descriptors {
    unsigned connections; /* 1..limits.connections */
    unsigned slots;       /* no protocol may have more connections of its own; at least 1 */
};

/* Raises the process's soft limit as far as the configuration needs. Where the hard one is lower,
 * says so in the log, and leaves to clients what the coordinator, the state page and probes do not
 * need: who took the last descriptor would stop the renewals. */
struct descriptors descriptors_fit(const struct conf *c);

#endif
