#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_stream(WIREFEED_MEMCACHED_BINARY, data, size);
}
