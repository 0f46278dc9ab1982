/*
 * How many connections there are file descriptors for.
 */
#ifndef SIDFLAKE_DAEMON_DESCRIPTORS_H
#define SIDFLAKE_DAEMON_DESCRIPTORS_H

#include "conf/conf.h"

/* At least 1 each, and at most what the configuration allows. */
struct descriptors {
    unsigned connections, http_connections;
};

/* Raises the process's soft limit as far as the configuration needs. Where the hard one is lower,
 * says so in the log, and leaves to clients what the coordinator, the state page and probes do not
 * need: who took the last descriptor would stop the renewals. */
struct descriptors descriptors_fit(const struct conf *c);

#endif
