/*
 * Numbers as people read them. No printf: a locale has no say.
 *
 *   1,234,567    3 d 4 h    59 min 12 s    250 ms    12.5 us (with a micro sign)    2.3 MiB
 */
#ifndef SIDFLAKE_BASE_HUMAN_H
#define SIDFLAKE_BASE_HUMAN_H

#include "base/buf.h"

/* With a comma between thousands. */
void human_put_count(struct buf *b, int64_t n);

/* The two largest units that matter, of y d h min s; below a second ms. A year has 365 days. */
void human_put_duration(struct buf *b, int64_t ms);

/* Three digits that count: ns, microseconds, ms or s. ns >= 0. */
void human_put_latency(struct buf *b, double ns);

/* Three digits that count: 0, 0.25, 12.5, 1,200, 1.25 M. v >= 0. */
void human_put_rate(struct buf *b, double v);

/* B, KiB, MiB, GiB. n >= 0. */
void human_put_bytes(struct buf *b, int64_t n);

#endif
