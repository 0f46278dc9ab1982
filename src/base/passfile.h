/*
 * A file that holds one password and nothing else: for sidflake and sidflakectl the same one, so
 * they have to read the same from it.
 *
 * Invariants
 *   - The password is the whole file less one final line end: 1..PASSFILE_MAX bytes, none of them
 *     NUL. Nothing is cut off silently.
 *   - A file that others than its owner may write to is refused.
 *   - Who cannot wait reads a regular file alone; a command also takes a pipe, as of `<(...)`.
 */
#ifndef SIDFLAKE_BASE_PASSFILE_H
#define SIDFLAKE_BASE_PASSFILE_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>

#define PASSFILE_MAX 1024u /* bytes of a password */

/* Reads the file at path into out and ends it with NUL; waits: for as long as it takes. what: the
 * option that names the file, for errors. ERR_IO: it cannot be read; ERR_INVALID, ERR_RANGE: it is
 * no such file; out is "" then. The caller should wipe out after use. */
enum err_code passfile_read(const char *path, const char *what, bool waits,
                            char out[PASSFILE_MAX + 1], struct err *e) MUST_CHECK;

/* Whether a server's words may hold the password that it was sent, be it the beginning alone: an
 * unknown command is quoted by the server, its arguments cut somewhere. */
bool passfile_is_told(struct span words, struct span password);

#endif
