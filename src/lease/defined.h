/*
 * The sequences that the configuration defines: what is made of them in the pool.
 *
 *     ASKED --- made, or there already ---> SO         their text is what counters must have
 *       ^  '--- it is another one, ... ---> REFUSED    that sequence alone
 *       '------ unknown after all, or somebody wants it still
 *
 * Invariants
 *   - A beginning that the configuration does not name is the pool's, and once it was learnt it is
 *     part of what is asked for: a pool that has lost the sequence gets it again as it was.
 *   - Pure: it calls nobody.
 */
#ifndef SIDFLAKE_LEASE_DEFINED_H
#define SIDFLAKE_LEASE_DEFINED_H

#include "base/rng.h"
#include "coord/seq_calls.h"

#define DEFINED_NONE SIZE_MAX

enum defined_state {
    DEFINED_ASKED,
    DEFINED_SO,
    DEFINED_REFUSED
};

struct defined_one {
    struct seq_create create; /* as it is asked for */
    bool dated;               /* the configuration says when it begins */
    enum defined_state state;
    enum seq_how how;         /* REFUSED: why */
    enum coord_status status; /* ASKED: what the latest call came to, where it failed */
    char text[SEQ_TEXT_MAX];  /* SO, and from then on: the definition that is there */
    int64_t due;              /* mono ms: ASKED: no call before; REFUSED: nor another look */
    unsigned fails;
};

struct defined {
    struct defined_one *v;
    size_t n, wanted; /* wanted: the latest that was; it comes first */
    struct rng *rng;
    int64_t call_due; /* mono ms: no call about any of them before; the latest had no answer */
};

/* in, and the names in it, outlive it. ERR_NOMEM. */
enum err_code defined_init(struct defined *d, const struct seq_create *in, size_t n,
                           struct rng *rng, int64_t mono, struct err *e) MUST_CHECK;
void defined_clear(struct defined *d);

/* DEFINED_NONE: the configuration knows none of that name. */
size_t defined_find(const struct defined *d, const char *name);

/* One that is to be asked for now; else DEFINED_NONE, and *until falls to when one is. */
size_t defined_due(const struct defined *d, int64_t mono, int64_t *until);

/* What came of its create. */
void defined_done(struct defined *d, size_t i, enum coord_status s, const struct seq_grant *g,
                  int64_t mono);

/* The pool does not have it: now. Another pool is asked: all of them. */
void defined_lost(struct defined *d, size_t i, int64_t mono);
void defined_lose_all(struct defined *d, int64_t mono);

/* Somebody wants it: it comes before others, and one that is refused is looked at again, now and
 * then. */
void defined_urge(struct defined *d, size_t i, int64_t mono);

#endif
