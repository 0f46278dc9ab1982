/*
 * What happened in a pool between two snapshots. A record's n counts its changes: a claim, each
 * renewal, the return.
 */
#include "ctl/changes.h"

static void compare(const struct coord_worker *w, int64_t t0_before, uint64_t n_before,
                    struct ctl_changes *out)
{
    bool held = t0_before >= 0, same = w->held && held && w->t0_ms == t0_before;
    if (same && w->n > n_before)
        out->renewals += w->n - n_before;
    out->claims += w->held && !same;
    out->returns += held && !same;
}

bool ctl_changes_since(struct ctl_past *past, const struct coord_snapshot *snap,
                       struct ctl_changes *out)
{
    bool known = past->known;
    *out = (struct ctl_changes){0};
    for (size_t i = 0; !known && i < COORD_WORKERS; i++)
        past->t0_ms[i] = -1;
    for (size_t i = 0; i < snap->nworkers; i++) {
        const struct coord_worker *w = &snap->workers[i];
        if (w->worker >= COORD_WORKERS || w->unreadable)
            continue;
        if (known)
            compare(w, past->t0_ms[w->worker], past->n[w->worker], out);
        past->t0_ms[w->worker] = w->held ? w->t0_ms : -1;
        past->n[w->worker] = w->n;
    }
    past->known = true;
    return known;
}
