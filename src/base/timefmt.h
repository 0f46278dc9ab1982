/*
 * Times and durations as people write them.
 *
 * Sources: RFC 3339 for times ("2026-01-01T00:00:00Z", "2026-01-01T01:30:00.250+01:30"); durations
 * are a decimal integer and one unit of us, ms, s, m, h, d ("15ms", "1h"), or a bare 0.
 */
#ifndef SIDFLAKE_BASE_TIMEFMT_H
#define SIDFLAKE_BASE_TIMEFMT_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define TIMEFMT_MAX 32 /* bytes that either writer below needs, NUL included */

/* Unix ms, any proleptic Gregorian year 0000..9999, to "YYYY-MM-DDTHH:MM:SS.mmmZ"; times outside
 * those years are written as the nearest one. Returns out. */
char *timefmt_rfc3339(char out[TIMEFMT_MAX], int64_t unix_ms);

/* Accepts what RFC 3339 does, with 1..9 fraction digits (cut to ms), 'T', 't' or a space, and
 * second 60 (read as the next one); also a bare date, as midnight UTC. */
bool timefmt_parse_rfc3339(struct span s, int64_t *unix_ms);

/* Microseconds >= 0. false, and *us untouched, on overflow, too. */
bool timefmt_parse_duration(struct span s, int64_t *us);

/* The shortest exact form: 15000 us is "15ms". us must be >= 0. Returns out. */
char *timefmt_duration(char out[TIMEFMT_MAX], int64_t us);

#endif
