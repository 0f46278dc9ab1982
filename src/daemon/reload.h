/*
 * Which options take effect without a restart.
 */
#ifndef SIDFLAKE_DAEMON_RELOAD_H
#define SIDFLAKE_DAEMON_RELOAD_H

#include "conf/conf.h"

/* Whether one that differs needs a restart, or SIGUSR2. Each of these is told to the log. */
bool reload_refuses(const struct conf *now, const struct conf *next);

#endif
