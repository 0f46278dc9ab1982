#include "serve/print.h"

#include <stdlib.h>

static void drop(struct print *p)
{
    free(p->p);
    p->p = NULL;
    p->written = 0;
}

bool print_put(struct print *p, int64_t now_us, struct buf *out)
{
    if (now_us - p->since_us >= PRINT_US) {
        drop(p);
        p->since_us = now_us;
    }
    if (p->p)
        buf_put(out, p->p, p->n);
    return p->p != NULL;
}

/* Without memory the next one is written, too. */
void print_note(struct print *p, const struct buf *out, size_t start)
{
    if (++p->written < PRINT_FRESH || out->failed)
        return;
    p->n = out->n - start;
    p->p = malloc(p->n > 0 ? p->n : 1);
    if (p->p)
        memcpy(p->p, out->p + start, p->n);
}

void print_tidy(struct print *all, int64_t now_us)
{
    for (size_t i = 0; i < PRINTS; i++)
        if (now_us - all[i].since_us >= PRINT_US)
            drop(&all[i]);
}
