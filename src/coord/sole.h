/*
 * Whether anybody on this host ever used the directory of an SQLite pool.
 *
 * A file says nothing of those who used the one that stood in its place before, and who may still
 * issue. But its users are processes of one host: each that has had a workerId leaves a trace in
 * the directory, and holds flock(2) on it, shared, until it ends, however it ends. So a pool is
 * fresh, without anybody's word, only where there is neither. Both are on the directory, since
 * `rm pool.db*` would take away a file's.
 *
 * That a trace's owner has ended does not show that nobody can issue from what he was granted: his
 * state page outlives him. So there is no third answer.
 *
 * Invariants
 *   - The shared lock is had before a workerId is, and never given up.
 *   - Where the file system does not share locks between all that mount it, or may not, nobody is
 *     the first. Only those known to be of one host are believed.
 */
#ifndef SIDFLAKE_COORD_SOLE_H
#define SIDFLAKE_COORD_SOLE_H

#include <stdbool.h>

enum sole_state {
    SOLE_FIRST,   /* nobody ever used the directory, and nobody else begins to: the lock is held */
    SOLE_OTHERS,  /* somebody else holds, or held, a workerId, and lives */
    SOLE_UNKNOWN, /* it was used, or that cannot be told */
};

struct sole {
    int dir; /* -1: not open … */
    int why; /* … because of this, of errno(3) */
    bool holder;
};

#define SOLE_INIT ((struct sole){.dir = -1})

/* path: of the pool's file. FIRST lasts until sole_hold or sole_yield. Never blocks. */
enum sole_state sole_look(struct sole *s, const char *path);

/* Keeps others from being the first, until sole_hold or sole_yield. false: somebody is just now. */
bool sole_join(struct sole *s, const char *path);

/* Becomes a holder, after one of the two above, and leaves a trace. An error of errno(3):
 * EWOULDBLOCK, somebody came in between; else whoever comes later could not know that somebody was
 * here. 0: it is one, or nobody is believed to be the first there. */
int sole_hold(struct sole *s);

/* Gives up what was taken, but by a holder. */
void sole_yield(struct sole *s);

/* At the end. */
void sole_end(struct sole *s);

#endif
