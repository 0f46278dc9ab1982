/*
 * Whether anybody on this host uses, or ever used, the path of an SQLite pool.
 *
 * A file says nothing of those who used the one that stood in its place before, and who may still
 * issue. But its users are processes of one host. Each that has, or asks for, a workerId holds a
 * lock until it ends, however it ends, and leaves a trace beside the file (tally.h). A pool is
 * fresh, without anybody's word, only where there is neither.
 *
 * The lock is a byte, chosen by the path, of the file's directory and of each one above it up to
 * the root. So `rm pool.db*` does not take it away, nor does a directory that is deleted, moved or
 * mounted over: its users still hold those above. In a container the root is its own, and what is
 * shared is the volume: whoever replaces all of that under those who use it is not seen.
 *
 * That a trace's owner has ended does not show that nobody can issue from what he was granted: his
 * state page outlives him. So there is no third answer.
 *
 * Who is the first is asked again when the file that he makes is there and locked; who wants to be
 * a holder has the lock before he looks which file is there. So either the first sees the holder,
 * or the holder comes to the file that the first has made.
 *
 * Invariants
 *   - A holder never gives up the lock; but a program that takes over its process has it with its
 *     first call. One whose directory is not the path's any more has the new one's before it leaves
 *     the old one's.
 *   - Where the file system does not share locks between all that mount it, or may not, nobody is
 *     the first. Only those known to be of one host are believed.
 */
#ifndef SIDFLAKE_COORD_SOLE_H
#define SIDFLAKE_COORD_SOLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOLE_DEPTH                                                                                 \
    12               /* directories that are locked; of a longer path the lowest and the root …  \
                      */
#define SOLE_PATHS 2 /* … of the path as it is written, and of the one that it stands for */

enum sole_state {
    SOLE_FIRST,   /* nobody uses the path, and nobody ever did */
    SOLE_OTHERS,  /* somebody who holds, or asked for, a workerId lives */
    SOLE_UNKNOWN, /* it was used, or that cannot be told */
};

struct sole {
    size_t n; /* 0: not open */
    struct sole_lock {
        int dir;
        int64_t at;                  /* offset of the byte */
    } lock[SOLE_DEPTH * SOLE_PATHS]; /* the file's directory first */
    bool holder;
};

#define SOLE_INIT ((struct sole){.n = 0})

/* path, throughout: of the pool's file. Nothing here blocks. */

/* The directory of the path. */
void sole_directory(const char *path, char out[PATH_MAX]);

/* Opens the directory that the path has now. *dir: its descriptor, which stays this one's. An error
 * of errno(3). */
int sole_enter(struct sole *s, const char *path, int *dir);

enum sole_state sole_look(struct sole *s, const char *path);

/* Becomes a holder, or stays one. An error of errno(3): whoever comes later could not know that
 * somebody was here. 0: it is one, or nobody is believed to be the first there. */
int sole_hold(struct sole *s, const char *path);

/* At the end. */
void sole_end(struct sole *s);

#endif
