#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static void system_fill(struct rng *r, void *out, size_t n)
{
    (void)r;
    for (char *p = out; n > 0;) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        p += got;
        n -= (size_t)got;
    }
}

struct rng *rng_system(void)
{
    static struct rng system = {system_fill};
    return &system;
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t v;
    r->fill(r, &v, sizeof v);
    return v;
}

/* Rejects the short last stretch of 2^64, so that no remainder is likelier than another. */
uint64_t rng_below(struct rng *r, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t v;
    do
        v = rng_u64(r);
    while (v >= limit);
    return v % bound;
}
