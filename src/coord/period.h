/*
 * The periods of sequences that begin anew: which one a time is in, and when one begins and ends.
 *
 *     reset   label           its numbers may be granted, before it begins, for
 *     hour    2026-11-22T14    5 min
 *     day     2026-11-22       2 h
 *     month   2026-11          2 h
 *     year    2026             1 d
 *
 * A label is the date at a fixed offset from UTC, which belongs to the sequence. Those of one reset
 * are ordered as texts are. Years are 1970 to 9999.
 *
 * Pure. sequences.lua has the same functions, which must give the same.
 */
#ifndef SIDFLAKE_COORD_PERIOD_H
#define SIDFLAKE_COORD_PERIOD_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define PERIOD_LABEL_MAX  14        /* NUL included */
#define PERIOD_OFFSET_MAX (14 * 60) /* minutes, east of UTC; and as many west of it */

enum period_reset {
    PERIOD_NEVER, /* there are none */
    PERIOD_HOUR,
    PERIOD_DAY,
    PERIOD_MONTH,
    PERIOD_YEAR,
    PERIOD_RESETS
};

/* "never", "hour", ... */
const char *period_reset_name(enum period_reset r);
bool period_reset_parse(struct span s, enum period_reset *out);

struct period {
    int64_t opens_ms;  /* from then on its numbers may be granted; Unix ms, as what follows; at
                          least 0 */
    int64_t begins_ms; /* from then on they may be given out; a year's that is 1970 may be below 0
                        */
    int64_t ends_ms;   /* the first that is not in it */
};

/* The label of the period that ms is in. false: there is none, or its year is out of range. */
bool period_label(enum period_reset r, int offset_min, int64_t ms, char out[PERIOD_LABEL_MAX]);

/* false: not a label of such a period, in the one form that period_label writes. */
bool period_find(enum period_reset r, int offset_min, struct span label, struct period *out);

/* For how long its numbers may be granted before it begins, ms; 0: PERIOD_NEVER. */
int64_t period_lead_ms(enum period_reset r);
/* The longest time for which such periods are open, likewise. */
int64_t period_longest_ms(enum period_reset r);

#endif
