/*
 * Feeds a stream of bytes to a codec as a connection would, in pieces, and writes down what the
 * codec understood. Two transcripts of one stream must be equal, however it was cut.
 *
 * Invariants
 *   - The codec sees at most WIRE_IN_MAX bytes, which end at a guard page (support/pageend.h).
 *   - A codec that breaks its contract (WIRE_MORE on a full block, *used beyond the input) makes
 *     the program abort.
 */
#ifndef SIDFLAKE_SUPPORT_WIREFEED_H
#define SIDFLAKE_SUPPORT_WIREFEED_H

#include "base/buf.h"
#include "base/span.h"
#include "wire/wire.h"

#include <stdint.h>

enum wirefeed_codec {
    WIREFEED_MEMCACHED,
    WIREFEED_RESP,
    WIREFEED_HTTP,
    WIREFEED_MEMCACHED_BINARY
};

/* One line per event: "REQ …", "BAD …", "CLOSE …", "LEFT n". The hash covers all of it, the text
 * what fits. */
struct wirefeed_log {
    uint64_t hash;
    size_t n; /* bytes of text, a NUL behind them */
    char text[8192];
};

/* How the stream is cut: the first read brings first bytes, each further one piece bytes, or, if
 * seed is not 0, 1..piece of them by chance. */
struct wirefeed_cut {
    size_t first, piece;
    uint64_t seed;
};

void wirefeed_run(enum wirefeed_codec codec, struct span stream, struct wirefeed_cut cut,
                  struct wirefeed_log *log);

/* Aborts, with both transcripts on stderr, if the stream cut so reads otherwise than *whole. */
void wirefeed_compare(enum wirefeed_codec codec, struct span stream, struct wirefeed_cut cut,
                      const struct wirefeed_log *whole);

/* Feeds the stream whole, then cut at every offset and byte by byte if it is short, at some if it
 * is long, and compares. *log is the transcript of the whole. */
void wirefeed_check(enum wirefeed_codec codec, struct span stream, uint64_t seed,
                    struct wirefeed_log *log);

#endif
