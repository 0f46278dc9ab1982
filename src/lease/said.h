/*
 * What the log has said of sequences that are refused: each once by name, until it is served again;
 * of what clients ask them for by mistake, once; and of one that is at its max rate, once until for
 * a minute it was not.
 * Of the latest SAID_MAX.
 */
#ifndef SIDFLAKE_LEASE_SAID_H
#define SIDFLAKE_LEASE_SAID_H

#include "base/log.h"
#include "lease/blocks.h"
#include "lease/defined.h"
#include "lease/recovery.h"

#define SAID_MAX 64

/* Zero-initialised but for the place of the pool: nothing was. Names that nobody has made, subs and
 * dates that there can't be are as many as clients think of: one a second is said, and
 * one in ten after the first few. */
struct said {
    struct recovery_place at; /* borrowed */
    struct log_limit clients, late;
    struct said_one {
        uint64_t name; /* hash */
        unsigned how;
        bool served;      /* again, since; then it is news once more … */
        int64_t again_at; /* … but not before this time, mono ms: subs may take turns. Of one that
                             is at its max rate it is from then on */
    } v[SAID_MAX];
    unsigned n, next;
};

/* true: it was not said yet, and counts as said from here on. */
bool said_is_news(struct said *s, const char *name, unsigned how);

/* Says it, where that is news, with what to do about it. how: an enum blocks_refusal of a sequence
 * by that name. */
void said_refused(struct said *s, const char *name, unsigned how, int64_t mono);
/* What the machine's mails say. */
void said_mails(struct said *s, const struct blocks *b, int64_t mono);

/* Likewise of one that the configuration defines, after its create; and of one that cannot be made
 * as it is defined. */
void said_defined(struct said *s, const struct defined_one *d, const struct seq_grant *g,
                  int64_t mono);
void said_impossible(struct said *s, const struct defined_one *d, const char *why);
void said_served(struct said *s, const char *name);

#endif
