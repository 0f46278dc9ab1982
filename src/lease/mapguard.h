/*
 * Guards of memory that is mapped from files: a store that its file does not take, because somebody
 * has cut it short or because its file system fails, ends the process at once with MAPGUARD_LOST
 * and a line in the log, instead of by a bare SIGBUS: what has no mark must not leave.
 *
 * The process's threads must not block SIGBUS. One thread at a time adds and removes.
 */
#ifndef SIDFLAKE_LEASE_MAPGUARD_H
#define SIDFLAKE_LEASE_MAPGUARD_H

#include <stddef.h>

#define MAPGUARD_MAX  2  /* at once; what is more is not guarded */
#define MAPGUARD_LOST 74 /* EX_IOERR of sysexits.h */

/* fd: the file, of n bytes, as long as p is guarded; path: for the log; msg: a literal. */
void mapguard_add(const void *p, size_t n, int fd, const char *path, const char *msg);

/* One that is not guarded, or NULL, is allowed. */
void mapguard_remove(const void *p);

#endif
