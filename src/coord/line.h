/*
 * The line of a counter: which of its numbers may have been granted at a time, and when.
 *
 *     L(T) = burst - 1 + rate × (T - begins)        numbers are counted from 0: indices
 *
 *     index
 *       |            . L(T)     whatever a table granted that was lost lies below the line, so a
 *       |        .  '           counter that is raised to it repeats nothing
 *       |    . '
 *       | .'                    before `begins` there is nothing
 *       +-|------------------ T
 *      begins
 *
 * Pure. sequences.lua has the same two functions, which must give the same: what a line allows is
 * exact, with seconds and milliseconds apart, since the script counts in doubles, which are exact
 * below 2^53 only. What would be more is LINE_TOP.
 */
#ifndef SIDFLAKE_COORD_LINE_H
#define SIDFLAKE_COORD_LINE_H

#include <stdint.h>

#define LINE_TOP      INT64_C(9007199254740991) /* 2^53 - 1 */
#define LINE_RATE_MAX INT64_C(1000000000)

struct line {
    int64_t begins_ms; /* Unix ms, 0..LINE_TOP */
    int64_t rate;      /* numbers a second, 1..LINE_RATE_MAX */
    int64_t burst;     /* may be granted at once, 1..LINE_TOP */
};

/* The highest index that may have been granted at now_ms (0..LINE_TOP); -1: none. */
int64_t line_at(const struct line *l, int64_t now_ms);

/* The first time at which index (0..LINE_TOP) may be granted, Unix ms; LINE_TOP: that or later. */
int64_t line_when(const struct line *l, int64_t index);

#endif
