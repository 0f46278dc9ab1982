/*
 * Memory files (memfd_create(2)): bytes that outlive the program that wrote them, for the next one
 * in its process or for a child.
 *
 *   memfile_room -> written (base/buf.h) -> memfile_seal -> execve(2) -> memfile_map
 *
 * Invariants
 *   - While bytes go into a file there is no second copy of all of them: what was copied is given
 *     back to the system at once.
 *   - What is sealed never changes.
 */
#ifndef SIDFLAKE_BASE_MEMFILE_H
#define SIDFLAKE_BASE_MEMFILE_H

#include "base/buf.h"

/* Empty, and closed by execve(2); -1 and errno. */
int memfile_new(const char *name);

/* A buffer of cap bytes, of which only those that are written to cost memory. false and errno; else
 * to be freed by memfile_room_free. */
bool memfile_room(struct buf *b, size_t cap);
void memfile_room_free(struct buf *b);

/* What b holds, which memfile_room has made, as a sealed file; b is empty then. -1 and errno: it
 * had failed (ENOSPC), or there is no memory; of what it held nothing is left. */
int memfile_seal(struct buf *b, const char *name);

/* The first n bytes of a file, n > 0, until memfile_unmap. They are shared with it: reading costs
 * no memory. false and errno. */
bool memfile_map(int fd, size_t n, struct span *out);
void memfile_unmap(struct span s); /* an empty one is none */

#endif
