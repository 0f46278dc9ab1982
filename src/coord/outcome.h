/*
 * How an answer other than OK is told, the same by every driver: the status, and a text that names
 * what was expected and what was found.
 *
 * Invariants
 *   - Each call fills r->err, leaves the rest of *r alone and returns the status it is named after.
 *   - A text is printable: bytes below space, which a hostile coordinator may send, become '?'.
 */
#ifndef SIDFLAKE_COORD_OUTCOME_H
#define SIDFLAKE_COORD_OUTCOME_H

#include "coord/coord.h"

/* 2^53 - 1: the script counts in doubles, which are exact up to here; no time or counter of a sound
 * pool is larger. */
#define COORD_NUMBER_MAX INT64_C(9007199254740991)

/* pool: its name. */
enum coord_status outcome_nopool(struct coord_reply *r, const char *pool);
enum coord_status outcome_exists(struct coord_reply *r, const char *pool);
enum coord_status outcome_closed(struct coord_reply *r, const char *pool);
enum coord_status outcome_wrongpool(struct coord_reply *r, const char *asked, struct span found);

/* In these r->now_ms is the coordinator's time already; times are Unix ms. */
enum coord_status outcome_badclock(struct coord_reply *r, int64_t tmax_ms);
enum coord_status outcome_skew(struct coord_reply *r, int64_t caller_ms, int64_t max_skew_ms);

/* COORD_REFUSED, likewise: an operator's word is not taken. That nothing was lost: before from_ms;
 * somebody knows more; there is no reopening to take back. That the clock was ahead: it is not
 * behind. That a pool was made again nowhere: it was. */
enum coord_status outcome_early(struct coord_reply *r, int64_t from_ms);
enum coord_status outcome_more(struct coord_reply *r, int64_t topen_ms);
enum coord_status outcome_none(struct coord_reply *r, int64_t topen_ms);
enum coord_status outcome_not_ahead(struct coord_reply *r);
enum coord_status outcome_gone(struct coord_reply *r);

/* With a text of the caller's. */

enum coord_status outcome_refused(struct coord_reply *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
enum coord_status outcome_down(struct coord_reply *r, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* An identity and parameters that this program can serve, or COORD_REFUSED: what a pool says of
 * itself is not believed unseen. Fills pool->epoch_ms and layout. */
enum coord_status outcome_of_pool(struct coord_pool *pool, struct coord_reply *r);

#endif
