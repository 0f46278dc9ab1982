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
 * than "unable to open"; or it is no file, as /dev/zero, which SQLite takes for an empty one; or it
 * has another name, a hard link or a mount of it alone; or there stands beside it what SQLite plays
 * back, left by somebody who may make files there and not write to the pool's. */
enum coord_status place_check(const char *path, bool create, struct coord_reply *r);

/* Makes the file, empty, if there is none: whoever may read it may lock it, and hold up all
 * commits. One that root makes is the directory's owner's: who serves is a user of its own most
 * often, and could not write to it. SQLite gives its other files the same owner and mode. */
void place_make(const char *path);

/* The boot's id (proc(5)); "": not known. */
void place_boot(char out[TALLY_BOOT_MAX]);

#endif
