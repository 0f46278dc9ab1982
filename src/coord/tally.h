/*
 * How many transactions of a pool's file were answered: in the file, and once more beside it.
 *
 * A file that is set back in place (cp, or .restore of sqlite3) keeps its inode and its birth, so
 * nothing shows it but that it has fewer transactions than were answered. So they are numbered. The
 * file has the latest number, and so has the name of an empty file in its directory:
 *
 *     begin  tick 104 -> 105  commit | .pool.db-tally.105.NONCE | is it still there? | answer
 *
 * In this order: what was committed and not answered may be lost, and what was answered stands
 * beside. If the name stood there before the commit, each crash between the two would look like a
 * file that was set back. But between the two the file may have been set back, and others may have
 * gone on from there, to a 105 of their own, and the file with the first 105 may come back again.
 * So each transaction is known by a random number, too: once its name stands it is looked for in
 * the file, and whoever comes next looks there for the transaction that the highest name is of.
 *
 * It is a name because the highest counts: that needs no lock, and copying a whole directory back
 * into its place brings older names and leaves the newest. `rm pool.db*` and `cp pool.db*` pass by
 * it. A directory that is replaced as a whole brings a file with another inode.
 *
 * Invariants
 *   - What stands beside is a lower bound: lost, or of another mount, it costs the warning, and
 *     never makes a sound file look old.
 *   - A name counts whoever made it: who may make files there can have others wait, or with the
 *     last number that there is end the count, and no more.
 *
 * Functions return 0, or an error of errno(3). dir: a descriptor of the file's directory; path: of
 * the file, of which the last component is used.
 */
#ifndef SIDFLAKE_COORD_TALLY_H
#define SIDFLAKE_COORD_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#define TALLY_BOOT_MAX  40 /* NUL included, both */
#define TALLY_INODE_MAX 76
#define TALLY_TICK_MAX  INT64_C(999999999999999) /* nobody comes so far but by a name put there */
#define TALLY_NAME_MAX  200 /* of the file's own name: the one beside it is longer */

/* What the file has of it. */
struct tally {
    int64_t tick;                /* of its latest transaction; from 1 */
    int64_t turn;                /* the tick at which it was last seen to be set back; 0: never */
    int64_t device;              /* where it was then: a number that is good for one boot, … */
    char boot[TALLY_BOOT_MAX];   /* … of this id; "": not known */
    int64_t nonce;               /* says which of all with that tick it is */
    int64_t changes;             /* SQLite's count after it, … */
    char inode[TALLY_INODE_MAX]; /* … which is one for each file; "": not known */
};

/* The highest name beside the file. */
struct tally_name {
    int64_t tick;  /* -1: there is none */
    int64_t nonce; /* 0: it does not say */
    bool torn;     /* there are two of that tick, which are of different transactions */
};

#define TALLY_NAME_NONE ((struct tally_name){.tick = -1})

/* Where a transaction finds the file. */
struct tally_now {
    bool lost; /* what was answered with a tick that the file has is not in it */
    int64_t device;
    const char *boot;  /* "": not known */
    const char *inode; /* and its birth, as text */
    int64_t nonce;     /* 53 random bits */
    uint32_t changes;  /* by the count on the file's first page; it begins anew after the largest */
};

/* Pure: the next transaction's, which raises the file's count of changes by 1. known: the latest
 * tick that was answered, -1: none is known; it and the file's are below TALLY_TICK_MAX. A turn
 * that changes says that the file is older than what was answered, or a part of it than the tally,
 * or that another device with the same files was put in its place. */
void tally_next(struct tally *t, int64_t known, const struct tally_now *now);

/* Pure: *latest is the higher of the two, or what both say. */
void tally_merge(struct tally_name *latest, const struct tally_name *other);

int tally_look(int dir, const char *path, struct tally_name *latest);

/* Leaves a name there, and none of a lower tick. */
int tally_leave(int dir, const char *path, int64_t tick, int64_t nonce);

#endif
