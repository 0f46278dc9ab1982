/*
 * The framers of an upstream's replies: a stream gives the same frames however it is cut, and never
 * more is used than was shown.
 *
 *     | kind; the top bit: watch | stream, as fuzz_stream.h expands it |
 */
#include "fuzz_stream.h"
#include "support/framefeed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct framefeed_log log;
    if (size < 2)
        return 0;
    uint8_t kind = (data[0] & 0x7f) % FRAME_KINDS;
    frame_fn *fn = kind < FRAME_MC_LINE ? frame_resp : frame_memcached;
    framefeed_check(fn, &kind, 1, data[0] >> 7, fuzz_expand(data + 1, size - 1), &log);
    return 0;
}
