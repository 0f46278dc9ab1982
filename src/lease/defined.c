#include "lease/defined.h"

#include "base/int64.h"
#include "lease/backoff.h"

#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS   5000  /* as of blocks: numbers wait for it */
#define RECHECK_MS       60000 /* somebody may have done something about a refusal */

enum err_code defined_init(struct defined *d, const struct seq_create *in, size_t n,
                           struct rng *rng, int64_t mono, struct err *e)
{
    *d = (struct defined){.rng = rng, .n = n};
    if (n == 0)
        return ERR_OK;
    d->v = calloc(n, sizeof *d->v);
    if (!d->v) {
        d->n = 0;
        return err_set(e, ERR_NOMEM, "no memory for %zu definitions of sequences", n);
    }
    for (size_t i = 0; i < n; i++) {
        const struct seq_definition *x = &in[i].definition;
        d->v[i] = (struct defined_one){
            .create = in[i], .dated = in[i].definition.begins_ms != 0, .due = mono};
        if (x->loss == SEQ_LOSS_SKIP && x->rate > 0 && x->rate <= LINE_RATE_MAX)
            d->v[i].create.definition.burst = seq_burst(x->rate);
    }
    return ERR_OK;
}

void defined_clear(struct defined *d)
{
    free(d->v);
    *d = (struct defined){0};
}

size_t defined_find(const struct defined *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->v[i].create.name, name) == 0)
            return i;
    return DEFINED_NONE;
}

size_t defined_due(const struct defined *d, int64_t mono, int64_t *until)
{
    for (size_t k = 0; k < d->n; k++) {
        size_t i = (d->wanted + k) % d->n;
        const struct defined_one *x = &d->v[i];
        int64_t due = max64(x->due, d->call_due);
        if (x->state != DEFINED_ASKED)
            continue;
        if (mono >= due)
            return i;
        *until = min64(*until, due);
    }
    return DEFINED_NONE;
}

/* What may be wrong with this one says nothing of the others. */
static void back_off(struct defined *d, struct defined_one *x, int64_t mono)
{
    int64_t ms = backoff_ms(BACKOFF_FIRST_MS, x->fails, BACKOFF_MAX_MS);
    x->fails++;
    x->due = mono + backoff_jitter(d->rng, ms);
    if (x->status != COORD_REFUSED)
        d->call_due = x->due;
}

void defined_done(struct defined *d, size_t i, enum coord_status s, const struct seq_grant *g,
                  int64_t mono)
{
    struct defined_one *x = &d->v[i];
    x->status = s;
    if (s != COORD_OK) {
        back_off(d, x, mono);
        return;
    }
    x->fails = 0;
    if (g->how == SEQ_DIFFERS && !x->dated && x->create.definition.begins_ms != 0) {
        x->create.definition.begins_ms = 0; /* it was made anew by others, and may begin later */
        x->due = mono;
        return;
    }
    x->how = g->how;
    x->state = g->how == SEQ_DONE || g->how == SEQ_KEPT ? DEFINED_SO : DEFINED_REFUSED;
    x->due = mono + RECHECK_MS;
    if (x->state != DEFINED_SO)
        return;
    memcpy(x->text, g->text, sizeof x->text);
    x->create.definition.begins_ms = g->definition.begins_ms;
}

void defined_lost(struct defined *d, size_t i, int64_t mono)
{
    d->v[i].state = DEFINED_ASKED;
    d->v[i].due = mono;
}

void defined_lose_all(struct defined *d, int64_t mono)
{
    for (size_t i = 0; i < d->n; i++)
        defined_lost(d, i, mono);
}

void defined_urge(struct defined *d, size_t i, int64_t mono)
{
    if (d->v[i].state == DEFINED_REFUSED && mono >= d->v[i].due)
        defined_lost(d, i, mono);
    if (d->v[i].state == DEFINED_ASKED)
        d->wanted = i;
}
