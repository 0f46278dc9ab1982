/*
 * Who else on this host uses the directory of an SQLite pool.
 *
 * A file says nothing of those who used the one that stood in its place before. But its users are
 * processes of one host: each that has had a workerId holds flock(2) on the directory, shared,
 * until it ends, however it ends. So who can have the lock for itself knows that no earlier holder
 * lives. The lock is on the directory, since `rm pool.db*` would take away a file's. A trace in it,
 * with the boot's id, tells that there were users at all.
 *
 * Invariants
 *   - The shared lock is had before a workerId is, and never given up: who has it is a holder, and
 *     is not asked whether it is alone.
 *   - Where the file system does not share locks between all that mount it, or may not, nobody is
 *     alone. Only those known to be of one host are believed.
 */
#ifndef SIDFLAKE_COORD_SOLE_H
#define SIDFLAKE_COORD_SOLE_H

#include <stdbool.h>

enum sole_state {
    SOLE_HOLDER,  /* this process has had a workerId itself */
    SOLE_FIRST,   /* alone, and nobody ever used the directory */
    SOLE_ALONE,   /* alone: who used it during this boot has ended */
    SOLE_OTHERS,  /* somebody else holds, or held, a workerId, and lives */
    SOLE_UNKNOWN, /* of another boot, or not to be told */
};

struct sole {
    int dir; /* -1: not open */
    bool holder;
};

#define SOLE_INIT ((struct sole){.dir = -1})

/* path: of the pool's file. FIRST and ALONE: the lock is held by this process alone, until
 * sole_hold or sole_yield. Never blocks. */
enum sole_state sole_look(struct sole *s, const char *path);

/* Keeps others from being alone, until sole_hold or sole_yield. false: somebody is just now. */
bool sole_join(struct sole *s, const char *path);

/* Becomes a holder, after one of the two above, and leaves a trace. false: somebody came in
 * between. */
bool sole_hold(struct sole *s);

/* Gives up what was taken, but by a holder. */
void sole_yield(struct sole *s);

/* At the end. */
void sole_end(struct sole *s);

#endif
