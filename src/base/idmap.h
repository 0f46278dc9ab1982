/*
 * Which numbers of users and groups mean somebody in this user namespace. In one that does not map
 * all (systemd's PrivateUsers=yes, rootless containers), the kernel shows everybody else by the
 * same number, the overflow one, usually 65534: it means nobody, and whoever is let in by it is
 * anybody.
 *
 * Source: user_namespaces(7).
 */
#ifndef SIDFLAKE_BASE_IDMAP_H
#define SIDFLAKE_BASE_IDMAP_H

#include "base/span.h"

/* map: lines of /proc/PID/uid_map, "INSIDE OUTSIDE COUNT". */
bool idmap_tells(struct span map, uint32_t overflow, uint32_t id);

/* The same of this process. */
bool idmap_tells_here(bool group, uint32_t id);

#endif
