#include "support/idcheck.h"

#include <stdlib.h>
#include <string.h>

void idcheck_add(struct idcheck *c, uint64_t first, uint64_t n)
{
    struct idcheck_run *last = c->runs ? &c->run[c->runs - 1] : NULL;
    c->ids += n;
    if (last && last->first + last->n == first) {
        last->n += n;
        return;
    }
    if (c->runs == c->room) {
        c->room = c->room ? 2 * c->room : 1024;
        c->run = realloc(c->run, c->room * sizeof *c->run);
        if (!c->run)
            abort();
    }
    c->run[c->runs++] = (struct idcheck_run){first, n};
}

static int by_first(const void *a, const void *b)
{
    const struct idcheck_run *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

uint64_t idcheck_duplicates(struct idcheck *c, uint64_t *example)
{
    uint64_t doubled = 0, end = 0; /* end: above all IDs so far */
    if (c->runs > 0)
        qsort(c->run, c->runs, sizeof *c->run, by_first);
    for (size_t i = 0; i < c->runs; i++) {
        const struct idcheck_run *r = &c->run[i];
        uint64_t r_end = r->first + r->n;
        if (i > 0 && r->first < end) {
            doubled += (r_end < end ? r_end : end) - r->first;
            if (example)
                *example = r->first;
        }
        end = r_end > end ? r_end : end;
    }
    return doubled;
}

void idcheck_clear(struct idcheck *c)
{
    free(c->run);
    memset(c, 0, sizeof *c);
}
