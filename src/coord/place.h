/*
 * Which file is at a path, and on which boot of this machine: what tells a file from one that was
 * put in its place.
 */
#ifndef SIDFLAKE_COORD_PLACE_H
#define SIDFLAKE_COORD_PLACE_H

#include "coord/coord.h"
#include "coord/tally.h"

struct place {
    int64_t device;              /* good for one boot */
    char inode[TALLY_INODE_MAX]; /* and its birth, as text, since inode numbers are used again */
};

/* 0, or an error of errno(3). */
int place_find(const char *path, struct place *out);
bool place_same(const struct place *a, const struct place *b);

/* COORD_OK; or with create there is no directory to make the file in, of which SQLite says no more
 * than "unable to open"; or a journal stands beside it, left by somebody who may make files there
 * and not write to the pool's. */
enum coord_status place_check(const char *path, bool create, struct coord_reply *r);

/* The boot's id (proc(5)); "": not known. */
void place_boot(char out[TALLY_BOOT_MAX]);

#endif
