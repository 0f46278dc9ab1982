#include "lease/pair.h"

#include "base/fnv.h"
#include "base/mark.h"

#include <string.h>

static uint64_t version_of(const void *copy)
{
    uint64_t v;
    memcpy(&v, copy, sizeof v);
    return v;
}

static bool is_whole(const void *copy, size_t size)
{
    uint32_t check;
    memcpy(&check, (const char *)copy + size - sizeof check, sizeof check);
    return check == fnv32(copy, size - sizeof check);
}

const void *pair_current(const volatile uint64_t *commit, const void *copies, size_t size)
{
    int64_t version;
    if (*commit == 0 || !mark_load(commit, &version))
        return NULL;
    for (const char *c = copies; c < (const char *)copies + 2 * size; c += size)
        if (version_of(c) == (uint64_t)version && is_whole(c, size))
            return c;
    return NULL;
}

void *pair_begin(const volatile uint64_t *commit, void *copies, size_t size)
{
    int64_t version;
    char *to = copies;
    if (pair_current(commit, copies, size) == to)
        to += size;
    uint64_t next = mark_load(commit, &version) ? (uint64_t)version + 1 : 1;
    memset(to, 0, size);
    memcpy(to, &next, sizeof next);
    return to;
}

void pair_commit(volatile uint64_t *commit, void *copy, size_t size)
{
    uint32_t check = fnv32(copy, size - sizeof check);
    memcpy((char *)copy + size - sizeof check, &check, sizeof check);
    mark_order_stores();
    mark_store(commit, (int64_t)version_of(copy));
    mark_order_stores();
}
