/*
 * The SQLite file of a simulated coordinator, below the driver that uses it: copied, replaced,
 * damaged.
 *
 * Invariants
 *   - One is open at a time in a process, and nobody else opens its file: SQLite's own locks are
 *     taken once per connection, and its index of the log is in memory.
 *   - A copy is all that was committed, what is still in the log included; it is taken without
 *     closing the driver's connection. All else here closes it first.
 */
#ifndef SIDFLAKE_TESTS_SIM_POOLFILE_H
#define SIDFLAKE_TESTS_SIM_POOLFILE_H

#include "coord/coord.h"

struct poolfile {
    char dir[64], path[96];
};

/* Contents of a file; zeroed: none. */
struct poolfile_copy {
    void *bytes; /* owned */
    size_t n;
};

/* Files that are opened from now on are mapped, and have neither locks nor a journal (poolvfs.h);
 * false, as it is at first: SQLite's own way. */
void poolfile_mapped(bool mapped);

/* Makes a directory for it, without a file; ends the program where anything fails. */
void poolfile_open(struct poolfile *f);

/* The driver is closed. */
void poolfile_close(struct poolfile *f);

bool poolfile_exists(const struct poolfile *f);

/* False where there is no file; *c, which must be zeroed or a copy, is nothing then. */
bool poolfile_copy(const struct poolfile *f, struct poolfile_copy *c);
void poolfile_drop(struct poolfile_copy *c);

/* Another file with these contents takes its place: another inode. */
void poolfile_replace(struct poolfile *f, struct coord *driver, const struct poolfile_copy *c);

/* The contents within the same inode; the file is there, and nobody has it open. */
void poolfile_overwrite(struct poolfile *f, const struct poolfile_copy *c);

/* The file is gone; what the driver left beside it stays, or is gone, too. */
void poolfile_remove(struct poolfile *f, struct coord *driver);
void poolfile_forget(struct poolfile *f, struct coord *driver);

void poolfile_query(struct poolfile *f, struct coord *driver, const char *sql);

#endif
