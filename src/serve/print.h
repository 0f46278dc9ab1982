/*
 * Answers that are long to write and alike for everybody: a page, COMMAND. Asked for now and then,
 * each is written anew; asked for again and again, the latest is given out for a while.
 *
 * Invariants
 *   - In a PRINT_US no more than PRINT_FRESH are written of a kind: what comes in between is as old
 *     as that at most.
 *   - Nothing is kept of what is asked for less often, and nothing for long: print_tidy, which
 *     serve_sample calls, frees it.
 */
#ifndef SIDFLAKE_SERVE_PRINT_H
#define SIDFLAKE_SERVE_PRINT_H

#include "base/buf.h"
#include "base/span.h"

#define PRINT_US    INT64_C(250000)
#define PRINT_FRESH 32u

enum print_kind {
    PRINT_STATUS,
    PRINT_STATUS_JSON,
    PRINT_METRICS,
    PRINT_OPENMETRICS,
    PRINT_COMMAND2, /* of RESP2 */
    PRINT_COMMAND3,
    PRINTS
};

struct print {
    char *p; /* NULL: it is to be written */
    size_t n;
    int64_t since_us; /* monotonic: of the count */
    unsigned written; /* since then */
};

/* Appends the one that is kept; false: there is none, the caller writes it behind what stands in
 * out, and tells print_note where it began. */
bool print_put(struct print *p, int64_t now_us, struct buf *out);
void print_note(struct print *p, const struct buf *out, size_t start);

/* Frees those of an array of PRINTS that are too old. */
void print_tidy(struct print *all, int64_t now_us);

#endif
