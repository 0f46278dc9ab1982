/*
 * Who this sidecar is, for operators: on its status page, and in `sidflakectl pool list`.
 */
#ifndef SIDFLAKE_DAEMON_SELF_H
#define SIDFLAKE_DAEMON_SELF_H

#include "coord/coord.h"

struct self {
    char host[128];          /* the pod's name (POD_NAME), else the host's */
    char who[COORD_WHO_MAX]; /* a JSON object: host, pod, pid, version, since */
};

void self_describe(struct self *s);

#endif
