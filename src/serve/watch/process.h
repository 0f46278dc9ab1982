/*
 * What the kernel knows about this process, for the process_* metrics.
 *
 * Invariants
 *   - A number that cannot be had (no /proc, another kernel) is PROCESS_UNKNOWN, never 0.
 *   - Reading it takes a few system calls, no allocation of ours, and never waits for a disk.
 *
 * Sources: proc(5) for /proc/self/stat, getrusage(2), getrlimit(2).
 */
#ifndef SIDFLAKE_SERVE_WATCH_PROCESS_H
#define SIDFLAKE_SERVE_WATCH_PROCESS_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_UNKNOWN INT64_MIN

struct process {
    int64_t cpu_us;         /* user and system, since start */
    int64_t open_fds;       /* descriptors open now */
    int64_t max_fds;        /* the soft limit; unknown where there is none */
    int64_t virtual_bytes;  /* address space */
    int64_t resident_bytes; /* in memory */
    int64_t threads;
};

void process_read(struct process *p);

/* Takes threads, virtual_bytes and resident_bytes from the text of /proc/PID/stat. page_bytes: of
 * memory. false: the text is not of that form, and *p is untouched. */
bool process_parse_stat(struct span text, int64_t page_bytes, struct process *p);

#endif
