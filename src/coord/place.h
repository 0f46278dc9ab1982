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

/* Whether a pool may be, or with create be made, at the path. COORD_OK; or SQLite would say no more
 * than "unable to open", or others than those who may write to the file may leave something beside
 * it that passes for ours: names (tally.h), or a journal that SQLite plays back. */
enum coord_status place_check(const char *path, bool create, struct coord_reply *r);

/* The boot's id (proc(5)); "": not known. */
void place_boot(char out[TALLY_BOOT_MAX]);

#endif
