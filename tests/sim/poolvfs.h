/*
 * SQLite's way to the file of a simulated coordinator, without its system calls: half of the time
 * of a schedule went into locks that nobody else takes and into a journal that no crash needs.
 *
 * Source: https://www.sqlite.org/c3ref/io_methods.html, https://www.sqlite.org/vfs.html
 *
 * Invariants
 *   - The file is a real one, mapped: whoever reads it by its path finds what was written last.
 *   - The journal is memory: nothing that is simulated ends a process within a transaction.
 *   - No lock is taken: one connection is open at a time (poolfile.h).
 */
#ifndef SIDFLAKE_TESTS_SIM_POOLVFS_H
#define SIDFLAKE_TESTS_SIM_POOLVFS_H

#include <stdbool.h>

/* The way of all connections that this process opens from now on; false: SQLite's own. Nonzero:
 * SQLite's code. */
int poolvfs_use(bool use);

#endif
