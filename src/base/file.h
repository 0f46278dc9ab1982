/*
 * Reading files that are small and read as a whole.
 */
#ifndef SIDFLAKE_BASE_FILE_H
#define SIDFLAKE_BASE_FILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads fd until it ends or mem has cap bytes; *n: how many it has. A caller that allows so many
 * passes one byte more, to see that a file is too long. ERR_IO: errno says why. */
enum err_code file_read(int fd, char *mem, size_t cap, size_t *n) MUST_CHECK;

/* The same of the file at path, opened with these flags beside O_RDONLY and O_CLOEXEC. */
enum err_code file_load(const char *path, int flags, char *mem, size_t cap, size_t *n) MUST_CHECK;

/* For files that hold secrets. ERR_INVALID: fd is a regular file that others than its owner may
 * write to; what stands for it in the error. */
enum err_code file_check_guarded(int fd, const char *what, struct err *e) MUST_CHECK;

/* What was opened, with O_NONBLOCK by who cannot wait: a pipe's open, and its read, may take for
 * ever, and so may a terminal's read. */
bool file_is_pipe(int fd);
bool file_is_regular(int fd);

/* Whether others than its owner and its group may read the regular file at path. */
bool file_is_shown(const char *path);

#endif
