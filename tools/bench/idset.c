#include "idset.h"

#include "ids/layout.h"

#include <stddef.h>
#include <sys/mman.h>

#define WORDS (LAYOUT_SEQUENCES / 64)
#define BYTES ((size_t)IDSET_MS * IDSET_WORKERS * WORDS * sizeof(uint64_t))

bool idset_init(struct idset *s)
{
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    *s = (struct idset){.bits = p == MAP_FAILED ? NULL : p, .first = -1};
    return s->bits != NULL;
}

void idset_clear(struct idset *s)
{
    if (s->bits)
        (void)munmap(s->bits, BYTES);
    s->bits = NULL;
}

/* The place of a workerId, or IDSET_WORKERS where there is none left. */
static unsigned place_of(struct idset *s, uint32_t worker)
{
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i] == worker)
            return i;
    if (s->workers < IDSET_WORKERS)
        s->worker[s->workers++] = worker;
    else
        return IDSET_WORKERS;
    return s->workers - 1;
}

enum idset_verdict idset_add(struct idset *s, uint64_t id)
{
    struct layout_parts p;
    if (!layout_decompose(id, &p))
        return IDSET_OUTSIDE;
    if (s->first < 0)
        s->first = p.time - IDSET_MARGIN;
    int64_t ms = p.time - s->first;
    unsigned worker = place_of(s, p.worker);
    if (ms < 0 || ms >= IDSET_MS || worker == IDSET_WORKERS)
        return IDSET_OUTSIDE;
    uint64_t *word = s->bits + ((size_t)ms * IDSET_WORKERS + worker) * WORDS + p.sequence / 64;
    uint64_t bit = UINT64_C(1) << p.sequence % 64;
    bool seen = *word & bit;
    *word |= bit;
    return seen ? IDSET_DUPLICATE : IDSET_NEW;
}
