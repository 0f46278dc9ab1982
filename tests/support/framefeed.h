/*
 * Feeds the bytes of a server to a framer as a link would, in pieces, and writes down what it made
 * of them. Two transcripts of one stream must be equal, however it was cut.
 *
 * Invariants
 *   - What the framer leaves is less than FRAME_HOLD bytes, and is shown again; the input ends at a
 *     guard page (support/pageend.h).
 *   - A framer that breaks its contract makes the program abort.
 */
#ifndef SIDFLAKE_SUPPORT_FRAMEFEED_H
#define SIDFLAKE_SUPPORT_FRAMEFEED_H

#include "base/buf.h"
#include "wire/frame.h"

/* One line per frame: what is for the client, escaped, with <LINE> where a part was told; then
 * push, error, BAD or MORE. The hash covers all of it, the text what fits. */
struct framefeed_log {
    uint64_t hash;
    struct buf text;
    char mem[8192];
};

/* kinds: of the frames that are expected, in order; the last one for all that follow.
 * watch: what frame.watch and frame.own are. */
void framefeed_run(frame_fn *fn, const uint8_t *kinds, size_t nkinds, bool watch,
                   struct span stream, size_t piece, struct framefeed_log *log);

/* Whole, in pieces of one byte, and cut in two at each offset of a short stream: aborts where the
 * transcripts differ. *log is that of the whole. */
void framefeed_check(frame_fn *fn, const uint8_t *kinds, size_t nkinds, bool watch,
                     struct span stream, struct framefeed_log *log);

#endif
