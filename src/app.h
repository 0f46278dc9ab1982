/*
 * The composition root: builds the parts, wires them, runs the loop, and tears down in reverse.
 *
 *            keeper thread                        serving loop
 *   coord <-- lease --mails--> bridge (bridge.h) --> issuer <-- services <-- net
 *             page <--------------- marks -----------'
 */
#ifndef SIDFLAKE_APP_H
#define SIDFLAKE_APP_H

#include "conf/conf.h"

/* Runs the daemon with a configuration until a signal stops it. The other arguments are those of
 * conf_load, for a reload; all must outlive the call. Returns the process's exit status: 0 after a
 * stop, 1 where it could not start, 78 where the configuration cannot be carried out. */
int app_run(const struct conf *c, const char *file, char *const *sets, size_t nsets,
            char *const *envp);

#endif
