/* What is wrong with a pool, told from a snapshot of it. */
#include "coord/coord.h"

#include <stdlib.h>

static const char *const fault_names[COORD_FAULTS] = {
    [COORD_FAULT_DOUBLED] = "doubled",   [COORD_FAULT_LOST] = "lost",
    [COORD_FAULT_ORPHANED] = "orphaned", [COORD_FAULT_QUEUED] = "queued",
    [COORD_FAULT_INDEXED] = "indexed",   [COORD_FAULT_UNREADABLE] = "unreadable",
};

const char *coord_fault_name(enum coord_fault f)
{
    return (size_t)f < COORD_FAULTS ? fault_names[f] : "unknown";
}

void coord_snapshot_clear(struct coord_snapshot *s)
{
    for (size_t i = 0; i < s->nworkers; i++)
        free(s->workers[i].who);
    free(s->workers);
    free(s->queue);
    free(s->index);
    s->workers = NULL;
    s->queue = NULL;
    s->index = NULL;
    s->nworkers = s->nqueue = s->nindex = 0;
}

/* What is known of one workerId, gathered from the three places that can disagree. */
enum mark {
    MARK_HELD = 1 << 0,
    MARK_STALE = 1 << 1,
    MARK_UNREADABLE = 1 << 2,
    MARK_INDEXED = 1 << 3,
    MARK_QUEUED = 1 << 4,
    MARK_DOUBLED = 1 << 5,
};

static void gather(const struct coord_snapshot *s, uint8_t *marks, struct coord_audit *out)
{
    for (size_t i = 0; i < s->nworkers; i++) {
        const struct coord_worker *w = &s->workers[i];
        if (w->worker < COORD_WORKERS)
            marks[w->worker] = (uint8_t)((w->held ? MARK_HELD : 0) | (w->stale ? MARK_STALE : 0) |
                                         (w->unreadable ? MARK_UNREADABLE : 0));
    }
    for (size_t i = 0; i < s->nindex; i++) {
        if (s->index[i] < COORD_WORKERS)
            marks[s->index[i]] |= MARK_INDEXED;
    }
    for (size_t i = 0; i < s->nqueue; i++) {
        uint32_t w = s->queue[i];
        if (w < s->pool.params.worker_from || w > s->pool.params.worker_to || w >= COORD_WORKERS)
            out->strangers++;
        else
            marks[w] |= marks[w] & MARK_QUEUED ? MARK_DOUBLED : MARK_QUEUED;
    }
}

static unsigned faults_of(unsigned mark, bool in_pool)
{
    unsigned f = 0;
    bool held = mark & MARK_HELD;
    bool known = in_pool && !(mark & MARK_UNREADABLE);
    if (mark & MARK_DOUBLED)
        f |= 1u << COORD_FAULT_DOUBLED;
    if (known && !held && !(mark & MARK_QUEUED))
        f |= 1u << COORD_FAULT_LOST;
    if (known && held && !(mark & MARK_INDEXED))
        f |= 1u << COORD_FAULT_ORPHANED;
    if (known && held && !(mark & MARK_STALE) && (mark & MARK_QUEUED))
        f |= 1u << COORD_FAULT_QUEUED;
    if (!(known && held) && (mark & MARK_INDEXED))
        f |= 1u << COORD_FAULT_INDEXED;
    if (in_pool && (mark & MARK_UNREADABLE))
        f |= 1u << COORD_FAULT_UNREADABLE;
    return f;
}

uint64_t coord_audit(const struct coord_snapshot *s, struct coord_audit *out)
{
    uint8_t marks[COORD_WORKERS] = {0};
    memset(out, 0, sizeof *out);
    gather(s, marks, out);
    uint64_t total = out->strangers;
    for (uint32_t w = 0; w < COORD_WORKERS; w++) {
        bool in_pool = w >= s->pool.params.worker_from && w <= s->pool.params.worker_to;
        unsigned faults = faults_of(marks[w], in_pool);
        out->faults[w] = (uint8_t)faults;
        unsigned passed_over = 1u << COORD_FAULT_QUEUED | 1u << COORD_FAULT_UNREADABLE;
        out->free += in_pool && (marks[w] & MARK_QUEUED) && !(faults & passed_over);
        for (unsigned f = 0; faults && f < COORD_FAULTS; f++) {
            out->count[f] += faults >> f & 1u;
            total += coord_fault_is_harmless(f) ? 0 : faults >> f & 1u;
        }
    }
    return total;
}
