/*
 * The blocks machine on a bench: holders, each with its page and the loop's side, against a store
 * in memory that has the rules of sequences.lua in their shortest form, for sequences without subs
 * that skip to a line. The clock stands still unless it is moved.
 *
 * Invariants, checked at every step (a breach fails the test)
 *   - Page first: a block that is mailed is HELD in the page, one that is given back LEAVING.
 *   - Numbers that a holder is given rise within a counter, its restarts included, as long as no
 *     operator has set it back.
 *   - No number of a counter is given out twice, by whomever.
 */
#ifndef SIDFLAKE_SUPPORT_BLOCKS_RIG_H
#define SIDFLAKE_SUPPORT_BLOCKS_RIG_H

#include "ids/sequence.h"
#include "lease/blocks.h"
#include "support/seeded.h"

#define BRIG_T0       INT64_C(1780000000000)
#define BRIG_COUNTERS 4 /* of a holder, and of the store; all of them exist */
#define BRIG_HOLDERS  8
#define BRIG_TOP      200000 /* indices that are watched */
#define BRIG_RATE     2000   /* of the line, a second */
#define BRIG_BURST    20000
#define BRIG_SKEW_MS  100 /* S */

struct brig_counter { /* what can be lost */
    bool found, taken;
    struct coord_token token;
    int64_t next, n, lo, hi, era, turn;
};

struct brig_table {
    struct brig_counter counter[BRIG_COUNTERS];
};

struct brig_store {
    struct brig_table table, saved[4];
    struct seq_definition definition;
    char text[SEQ_TEXT_MAX];
    int64_t gen, turn, max;
    struct seq_revoked revoked;
    struct seq_opening opening;
    enum coord_status status; /* COORD_OK, or what every call comes to */
    enum seq_how how;         /* SEQ_LOOKED, or what every item comes to */
    int64_t wait_ms;          /* with SEQ_WAIT */
    unsigned takes, returns, proofs;
};

struct brig_holder {
    struct brig *rig;
    struct blocks m;
    struct blockpage *page;
    struct sequence seq[BRIG_COUNTERS];
    bool known[BRIG_COUNTERS];
    int64_t last[BRIG_COUNTERS]; /* index given latest; -1: none */
    struct blocks_mail told;     /* the latest REFUSED or REVOKE */
    unsigned mails[BLOCKS_MAIL_LOST + 1];
    int64_t lasts_ms, cache_max;
};

struct brig {
    struct seeded rng;
    int64_t mono, wall; /* ms */
    struct brig_store store;
    struct brig_holder holder[BRIG_HOLDERS];
    unsigned nholders;
    unsigned char given[BRIG_COUNTERS][BRIG_TOP];
    bool may_repeat, may_fall;
    unsigned long ngiven;
};

void brig_init(struct brig *r, unsigned holders, uint64_t seed);
void brig_clear(struct brig *r);
void brig_pass(struct brig *r, int64_t ms);

const struct blocks_name *brig_name(unsigned counter);

/* The store: begins from what it has, or from what was saved; the opening is another one. */
void brig_reopen(struct brig *r, const struct brig_table *from);
void brig_take(struct brig *r, const struct blocks_action *a, struct blocks_outcome *o);
void brig_return(struct brig *r, const struct blocks_action *a, struct blocks_outcome *o);

/* A holder's next life. page: it finds its page, proven; else an empty one. */
void brig_start(struct brig_holder *h, bool page);

/* What the loop wants goes to the machine, and what that wants is returned. Its mails were read. */
void brig_next(struct brig_holder *h, struct blocks_action *a);
void brig_done(struct brig_holder *h, const struct blocks_action *a,
               const struct blocks_outcome *o);
/* All of it, with a store that answers; returns the kind of the action. */
enum blocks_action_kind brig_step(struct brig_holder *h);
void brig_settle(struct brig_holder *h);

/* A request: SEQUENCE_OK, and the first number's index; watched. */
enum sequence_status brig_get(struct brig_holder *h, unsigned counter, int64_t n, int64_t *index);
/* The same, which must be had, at most after one round. */
int64_t brig_must(struct brig_holder *h, unsigned counter, int64_t n);
/* Notes n numbers of a counter as given out. */
void brig_watch(struct brig_holder *h, unsigned counter, int64_t index, int64_t n);

struct blockpage_record brig_record(const struct brig_holder *h, unsigned counter, unsigned slot);
unsigned brig_count(const struct brig_holder *h, unsigned counter, enum page_state state);

#endif
