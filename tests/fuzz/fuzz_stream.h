/*
 * What the wire fuzzers share: a short input that stands for a long stream, and the check that a
 * stream reads the same however it is cut.
 *
 *     text as it is                       or, after a first byte '!':
 *     a byte 0xf0..0xff repeats the one before it 1 << (its low four bits) times
 */
#ifndef SIDFLAKE_FUZZ_STREAM_H
#define SIDFLAKE_FUZZ_STREAM_H

#include "support/wirefeed.h"

#include <stddef.h>
#include <stdint.h>

#define FUZZ_STREAM_MAX (WIRE_IN_MAX + 8192) /* bytes: enough to overflow a block and go on */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct span fuzz_expand(const uint8_t *data, size_t size)
{
    static char text[FUZZ_STREAM_MAX];
    struct buf b;
    buf_init(&b, text, sizeof text);
    if (size == 0 || data[0] != '!')
        return span_of((const char *)data, size);
    for (size_t i = 1; i < size; i++) {
        size_t n = data[i] >= 0xf0 ? (size_t)1 << (data[i] & 15) : 1;
        char c = data[i] >= 0xf0 && b.n > 0 ? b.p[b.n - 1] : (char)data[i];
        char *to = buf_room(&b, n);
        if (!to)
            break;
        memset(to, c, n);
        buf_took(&b, n);
    }
    return buf_span(&b);
}

static inline int fuzz_stream(enum wirefeed_codec codec, const uint8_t *data, size_t size)
{
    static struct wirefeed_log whole;
    struct span stream = fuzz_expand(data, size);
    wirefeed_run(codec, stream, (struct wirefeed_cut){0, SIZE_MAX, 0}, &whole);
    uint64_t seed = whole.hash | 1;
    if (stream.n == 0)
        return 0;
    if (stream.n < 300)
        wirefeed_compare(codec, stream, (struct wirefeed_cut){0, 1, 0}, &whole);
    wirefeed_compare(codec, stream, (struct wirefeed_cut){1 + seed % stream.n, SIZE_MAX, 0},
                     &whole);
    wirefeed_compare(codec, stream, (struct wirefeed_cut){0, stream.n / 5 + 2, seed}, &whole);
    return 0;
}

#endif
