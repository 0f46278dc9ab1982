/*
 * What keeps others out of this process: who may connect to its UNIX sockets, and that nothing of
 * its memory is written to a disk.
 */
#ifndef SIDFLAKE_DAEMON_GUARD_H
#define SIDFLAKE_DAEMON_GUARD_H

#include "conf/conf.h"

#define GUARD_IDS 64 /* of auth.allow_uids, and of auth.allow_gids */

struct guard_ids {
    uint32_t id[GUARD_IDS];
    size_t n;
};

/* Numbers, as conf has seen to. One that means nobody here (base/idmap.h) is warned of, and becomes
 * one that nobody has: were it left out, a list of it alone would let in anybody. */
void guard_read_ids(const struct conf_list *list, bool groups, struct guard_ids *out);

/* No core files where passwords, or digests of them, are in memory; at the start, and after each
 * reload, which may have brought some. */
void guard_cores(const struct conf *c);

#endif
