/* The lists of a snapshot, from the rows of a store. */
#include "coord/store.h"

#include <stdlib.h>

static bool read_workers(struct store *s, int64_t era, struct coord_snapshot *out)
{
    struct store_row row;
    while (store_next(s, STORE_ALL_RECORDS, &row)) {
        if (row.worker == UINT32_MAX || out->nworkers == COORD_WORKERS)
            continue;
        struct coord_worker *w = &out->workers[out->nworkers++];
        w->worker = (uint16_t)row.worker;
        w->unreadable = row.found != STORE_FOUND;
        if (!w->unreadable) {
            w->held = row.record.held;
            w->stale = row.record.era != era;
            w->era = (uint64_t)row.record.era;
            w->n = (uint64_t)row.record.n;
            w->hwm_ms = row.record.hwm_ms;
            w->t0_ms = row.record.t0_ms;
        }
        w->who = *row.who ? strdup(row.who) : NULL;
        if (*row.who && !w->who)
            return false;
    }
    return true;
}

static void read_hints(struct store *s, uint64_t queued, struct coord_snapshot *out)
{
    struct store_row row;
    while (store_next(s, STORE_ALL_QUEUE, &row)) {
        if (out->nqueue < queued)
            out->queue[out->nqueue++] = row.worker;
    }
    while (store_next(s, STORE_ALL_DUE, &row)) {
        if (row.worker != UINT32_MAX && out->nindex < COORD_WORKERS)
            out->index[out->nindex++] = (uint16_t)row.worker;
    }
}

bool store_all(struct store *s, int64_t era, struct coord_snapshot *out)
{
    uint64_t queued = store_queue_count(s);
    out->workers = calloc(COORD_WORKERS, sizeof *out->workers);
    out->queue = calloc(queued + 1, sizeof *out->queue);
    out->index = calloc(COORD_WORKERS, sizeof *out->index);
    if (!out->workers || !out->queue || !out->index || !read_workers(s, era, out))
        return false;
    read_hints(s, queued, out);
    return true;
}
