/*
 * The latest lines of the log, kept in memory for the status page.
 *
 *   serial   ... | 47 | 48 | 49 |      the ring holds the last EVENTS_MAX of them
 *
 * Invariants
 *   - log_write fills it, and nothing else: what is kept is what was logged, at level info or
 *     above, whatever log.level lets through to stderr.
 *   - A line that says the same as the one before it is counted there, so that a trouble that is
 *     told again and again leaves room for what led to it.
 *   - Any thread may add and read. The lock is held for the copy of one event, and never across a
 *     system call.
 */
#ifndef SIDFLAKE_BASE_EVENTS_H
#define SIDFLAKE_BASE_EVENTS_H

#include "base/log.h"

#define EVENTS_MAX     50
#define EVENT_TEXT_MAX 224 /* bytes, NUL included */

struct event {
    int64_t first_ms, last_ms; /* Unix ms: when it was logged first, and latest ... */
    int64_t last_mono_ms;      /* ... which on a clock that steps does not tell how long ago */
    uint64_t times;            /* in a row, at least 1 */
    const char *msg;           /* the literal that was logged */
    enum log_level level;
    char text[EVENT_TEXT_MAX]; /* its pairs, as a text line has them, or "" */
};

/* msg must be a literal; text is cut where it is too long. */
void events_add(enum log_level level, int64_t wall_ms, int64_t mono_ms, const char *msg,
                struct span text);

/* Serials go from 1 up; 0: there is none yet. */
uint64_t events_latest(void);

/* false: not logged yet, or not kept any more. */
bool events_get(uint64_t serial, struct event *out);

#endif
