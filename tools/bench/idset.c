#include "idset.h"

#include "ids/layout.h"

#include <stddef.h>
#include <sys/mman.h>

#define WORDS        (LAYOUT_SEQUENCES / 64)
#define BYTES        ((size_t)IDSET_MS * IDSET_WORKERS * WORDS * sizeof(uint64_t))
#define NUMBER_BYTES ((size_t)IDSET_NUMBERS / 8)

static uint64_t *reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool idset_init(struct idset *s)
{
    *s = (struct idset){.bits = reserve(BYTES), .numbers = reserve(NUMBER_BYTES), .first = -1};
    return s->bits && s->numbers;
}

void idset_clear(struct idset *s)
{
    if (s->bits)
        (void)munmap(s->bits, BYTES);
    if (s->numbers)
        (void)munmap(s->numbers, NUMBER_BYTES);
    s->bits = s->numbers = NULL;
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

static enum idset_verdict note(uint64_t *word, uint64_t bit)
{
    bool seen = *word & bit;
    *word |= bit;
    return seen ? IDSET_DUPLICATE : IDSET_NEW;
}

enum idset_verdict idset_add(struct idset *s, uint64_t id)
{
    struct layout_parts p;
    if (id < IDSET_NUMBERS)
        return note(&s->numbers[id / 64], UINT64_C(1) << id % 64);
    if (!layout_decompose(&layout_usual, id, &p))
        return IDSET_OUTSIDE;
    if (s->first < 0)
        s->first = p.time - IDSET_MARGIN;
    int64_t ms = p.time - s->first;
    unsigned worker = place_of(s, p.worker);
    if (ms < 0 || ms >= IDSET_MS || worker == IDSET_WORKERS)
        return IDSET_OUTSIDE;
    uint64_t *word = s->bits + ((size_t)ms * IDSET_WORKERS + worker) * WORDS + p.sequence / 64;
    return note(word, UINT64_C(1) << p.sequence % 64);
}
