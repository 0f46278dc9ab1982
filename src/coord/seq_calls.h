/*
 * Sequences: numbers that count. A coordinator hands out blocks of them, and keeps for each counter
 * how far it is.
 *
 *     sequence  a name with a definition, which never changes; only its max rises
 *     counter   of a sequence: one, or one for each sub and each period (period.h)
 *     block     the indices lo..hi of a counter: number = start + index × increment
 *
 * The rules are those of sequences.lua, which says why they are safe; every store answers the same
 * question the same way.
 *
 * Invariants
 *   - A block is recorded before it is handed out. Within one counter of one generation all blocks
 *     ever handed out are pairwise disjoint, whatever the store forgets, as long as clocks are
 *     within S of the time; but where an operator gave his word for less: `trust`, `set` back,
 *     --no-older-data, `reopen`, nothing lost.
 *   - A sequence's identity is the text of its definition (seq_definition_text). Who names another
 *     one is refused, and told the one that is there.
 *   - Everything that an operation of the driver answers has been checked: indices are
 *     0..SEQ_INDEX_MAX, a block is not empty, not longer than was asked for, and within max.
 *   - One thread at a time, as coord.h says.
 *
 * Indices and counts are 0..SEQ_INDEX_MAX, times Unix milliseconds.
 */
#ifndef SIDFLAKE_COORD_SEQ_CALLS_H
#define SIDFLAKE_COORD_SEQ_CALLS_H

#include "coord/coord.h"
#include "coord/line.h"
#include "coord/period.h"
#include "ids/template.h"

#define SEQ_NAME_MAX    65  /* NUL included: 1..64 of letters, digits, '_', '.' and '-' */
#define SEQ_SUB_MAX     101 /* NUL included: printable, without a space */
#define SEQ_TEXT_MAX    568 /* NUL included: a definition as text */
#define SEQ_OPENING_MAX 96  /* NUL included: a fingerprint */
#define SEQ_INDEX_MAX   LINE_TOP
#define SEQ_NUMBER_MAX  LINE_TOP /* numbers are from its negative to it, which JSON bears */
#define SEQ_BLOCK_MAX   1000000  /* numbers of one grant */
#define SEQ_ITEMS_MAX   8        /* of one call: it takes no more room than a renewal */
#define SEQ_SUBS_MAX    1000000  /* of one sequence and period */
#define SEQ_BACK_MAX    876000   /* hours: a hundred years */
#define SEQ_KEPT_MAX    16       /* templates that a name had before */
#define SEQ_ROWS_MAX    4194304  /* of a list: a few hundred MiB */
#define SEQ_PARTS_MAX   100000   /* of a list, or a sweep: who has more keeps the asker asking */

/* ---- definitions ----------------------------------------------------------------------------- */

/* What happens where the store may have forgotten grants. One that does not forget (SQLite) takes
 * each of them for SEQ_LOSS_REFUSE. */
enum seq_loss {
    SEQ_LOSS_UNSAID, /* refused by a store that can forget */
    SEQ_LOSS_SKIP,   /* counters skip to the line */
    SEQ_LOSS_REFUSE, /* grants stop until an operator says how far they were */
    SEQ_LOSS_TRUST,  /* an operator's word that the store loses nothing; where a loss shows all the
                        same, as REFUSE */
    SEQ_LOSSES
};

struct seq_definition {
    int64_t start;           /* the first number, -SEQ_NUMBER_MAX..SEQ_NUMBER_MAX */
    int64_t increment;       /* not 0 */
    int64_t begins_ms;       /* b: nothing is granted before; 0: when it is made */
    int64_t rate;            /* SKIP: R, numbers a second, 1..LINE_RATE_MAX; else 0 */
    int64_t burst;           /* SKIP: B, seq_burst(rate); else 0 */
    int64_t subs;            /* how many subs it may have, in each period; 0: it has none */
    enum period_reset reset; /* when a counter begins anew */
    int offset_min;          /* of its periods from UTC; 0 where there are none */
    enum seq_loss loss;
    bool strict;    /* numbers rise over all sidecars, not within each one */
    bool cycle;     /* begins again behind max; strict only, and not SKIP */
    int64_t back_h; /* numbers of a period are granted for so many hours after its end,
                       0..SEQ_BACK_MAX; 0 where there are no periods */
    char template[TEMPLATE_TEXT_MAX + 1]; /* how they are written (coord/seq_template.h); "": there
                                             is none */
};

/* For how long a period is open, ms, until the latest hour in which its numbers are granted. */
int64_t seq_open_ms(const struct seq_definition *d);

/* For how long numbers have to last at max-rate, ms: while a period is open, or 50 years. */
int64_t seq_lasting_ms(const struct seq_definition *d);

/* B: R × 10 s, at least 1,000. */
int64_t seq_burst(int64_t rate);

/* Whether such a sequence can be: ERR_RANGE or ERR_INVALID says what not. max: a number. */
enum err_code seq_check(const struct seq_definition *d, int64_t max, struct err *e) MUST_CHECK;

/* "start=1 increment=1 begins=1780000000000 ..."; out has SEQ_TEXT_MAX bytes. Returns out. */
char *seq_definition_text(char *out, const struct seq_definition *d);
/* false: it is not what seq_definition_text writes of one that can be, whatever its max. */
bool seq_definition_parse(struct span s, struct seq_definition *out);
/* Whether d is the one of that text; without a beginning of its own it has that one's. */
bool seq_definition_means(const struct seq_definition *d, int64_t begins_ms, const char *text);

/* The highest index up to max, a number; -1: max lies before start. */
int64_t seq_max_index(const struct seq_definition *d, int64_t max);
/* The highest that it can have, whatever its max: below SEQ_INDEX_MAX, since the next one, with
 * which a counter says that it is used up, is an index as well. */
int64_t seq_last_index(const struct seq_definition *d);
/* Whether one that counts so can have that index; the first two may be anything. */
bool seq_has_index(int64_t start, int64_t increment, int64_t index);
/* index: up to what seq_max_index gave. */
int64_t seq_number(const struct seq_definition *d, int64_t index);
/* The first index whose number is not before that one, seen in the direction of counting; above
 * SEQ_INDEX_MAX: none. */
int64_t seq_index_from(const struct seq_definition *d, int64_t number);

/* ---- what an operation comes to -------------------------------------------------------------- */

enum seq_how {
    SEQ_GRANTED, /* lo..hi are the caller's */
    SEQ_AGAIN,   /* the same, once more: this token's take was granted before */
    SEQ_LOOKED,  /* nothing was wanted, and grants are to be had */
    SEQ_DONE,    /* given back, made, altered, set, dropped, ... */
    SEQ_KEPT,   /* give back: it is not on top of the counter any more; create: it is there already,
                   the same */
    SEQ_WAIT,   /* not yet: ask again in wait_ms. The line, a beginning, a period not opened */
    SEQ_CLOSED, /* the period is over */
    SEQ_USED_UP,   /* max allows no more, or not as many at once */
    SEQ_STOPPED,   /* grants may have been forgotten: until nothing lost, or seq_reopen, is said */
    SEQ_FORGOTTEN, /* likewise; what is forgotten, or how far back, is such that seq_reopen alone
                      helps: no word that nothing was lost is taken for it */
    SEQ_UNKNOWN,   /* no such sequence */
    SEQ_DROPPED,   /* there was one */
    SEQ_DIFFERS,   /* it has another definition: text */
    SEQ_NO_SUBS,   /* it has no subs */
    SEQ_TOO_MANY_SUBS,
    SEQ_NO_PERIOD,   /* not a label of its periods, or it has none */
    SEQ_UNREADABLE,  /* its rows are not of the form that they must have: never handed out */
    SEQ_UNSAID,      /* create: what happens after a loss has to be said here */
    SEQ_NO_BEGIN,    /* create: the pool was reopened, so begins_ms has to be said, or `fresh` */
    SEQ_LOWER,       /* set, alter: that would go back */
    SEQ_NOT_STOPPED, /* reopen: it skips, and never stops */
    SEQ_HOWS
};

/* "granted", "again", ... for logs and metric labels; never NULL. */
const char *seq_how_name(enum seq_how h);

/* What blocks a holder has to drop: those that it was granted in a turn before `turn` and in an era
 * before `era`, from index `from` on. All of its counters. turn 0: none. */
struct seq_revoked {
    int64_t turn, era, from;
};

/* A sequence and a counter as they are after an operation. What is not known is 0: all where how is
 * UNKNOWN or UNREADABLE, what is the counter's where it has none. */
struct seq_grant {
    enum seq_how how;
    char text[SEQ_TEXT_MAX]; /* the definition that is there */
    struct seq_definition definition;
    char period[PERIOD_LABEL_MAX]; /* that was meant; "": none */
    int64_t gen;                   /* how often the name was made; 1 .. */
    int64_t turn;                  /* of a block: rises with set and reopen */
    int64_t max;                   /* highest index */
    int64_t lo, hi;                /* GRANTED, AGAIN: the block */
    int64_t n;                     /* changes of the counter */
    int64_t next;                  /* index that would be next */
    int64_t wait_ms;               /* WAIT: 1 .. */
    struct seq_revoked revoked;
};

/* When and where a change count was told: the pool's latest reopening and the store's fingerprint.
 * era 0: never. */
struct seq_opening {
    int64_t era, topen_ms;
    char fingerprint[SEQ_OPENING_MAX];
};

/* Whether the store may forget what it answered, so that after a loss counters skip to their line.
 * false: there is no line, whatever a definition says; or there are no sequences. */
bool seq_forgets(struct coord *c);

/* Whether calls can carry them: else they are refused, with all that they carry. */
bool seq_is_opening(const struct seq_opening *o);
bool seq_are_names(const char *name, const char *sub, const char *period);

/* ---- what sidecars do ------------------------------------------------------------------------ */

/* Strings are the caller's, NUL-terminated, none NULL. */
struct seq_want {
    const char *name, *sub;   /* sub "": none */
    const char *period;       /* a label; "": none, or the one that the coordinator's time is in */
    const char *text;         /* the definition that is meant; "": whichever is there */
    int64_t count;            /* numbers, up to SEQ_BLOCK_MAX; 0: only looks */
    bool whole;               /* all of them or none; otherwise as many of them as there are */
    bool known_before;        /* gen and n were told in an earlier opening than seq_caller's */
    struct coord_token token; /* of this take; a repeated one has the same */
    int64_t gen, n;           /* as told last of this counter; 0: never. Where the sequence has
                                 periods they count only with a label */
    int64_t seen; /* highest index + 1 that the caller was granted; 0: none. For people */
};

struct seq_caller {
    int64_t now_ms; /* its clock, at least 0 */
    struct seq_opening opening;
};

/* n: 1..SEQ_ITEMS_MAX; out[0..n-1] is filled where the status is COORD_OK, with *opening: each item
 * has come to something of its own. SEQ_GRANTED is granted whatever the others came to. COORD_DOWN:
 * it is not known whether it took effect; the same call may be repeated. */
enum coord_status seq_take(struct coord *c, const char *identity, const struct seq_caller *by,
                           const struct seq_want *items, struct seq_grant *out, size_t n,
                           struct seq_opening *opening, struct coord_reply *r);

/* lo..hi are the caller's, none of them was given out or ever will be. hi is the top of the block
 * that was taken with token; what lies below it may be of earlier ones. */
struct seq_return {
    const char *name, *sub, *period;
    struct coord_token token;
    int64_t gen, n, lo, hi; /* gen and n: as told with that block */
};

/* how[0..n-1]: SEQ_DONE, SEQ_KEPT, or why the counter was not found. */
enum coord_status seq_give_back(struct coord *c, const char *identity,
                                const struct seq_return *items, enum seq_how *how, size_t n,
                                struct coord_reply *r);

/* ---- what operators do: *out says how it went where the status is COORD_OK ------------------- */

struct seq_create {
    const char *name;
    struct seq_definition definition; /* burst is filled in here */
    bool has_max;
    int64_t max; /* a number; not said: SEQ_NUMBER_MAX, or its negative where it counts down */
    bool fresh;  /* --new: there was none of this name, ever; counts where the pool was reopened */
    bool reuse;  /* of a name that was dropped */
    bool no_older; /* an operator's word that no older data come back; for reuse */
};

/* DONE, KEPT, DIFFERS, DROPPED (reuse or no_older was not said), STOPPED (how far it was has to be
 * said first, by seq_reopen), UNSAID, NO_BEGIN. */
enum coord_status seq_create(struct coord *c, const char *identity, const struct seq_create *in,
                             struct seq_grant *out, struct coord_reply *r);
/* max: a number, not before the one that is there. */
enum coord_status seq_alter(struct coord *c, const char *identity, const char *name, int64_t max,
                            struct seq_grant *out, struct coord_reply *r);
/* From here on numbers are written by this template, whose texts none of the earlier ones can have
 * written; these are kept. DONE, or KEPT: it is the one that is there. */
enum coord_status seq_alter_template(struct coord *c, const char *identity, const char *name,
                                     const char *template, struct seq_grant *out,
                                     struct coord_reply *r);

struct seq_set {
    const char *name, *sub, *period;
    int64_t number; /* the next one, or the first behind it that the sequence has */
    bool back;      /* also to numbers that may have been given out: they repeat */
    bool no_older;  /* as above; for back */
};

/* WAIT: the line is not there yet. All blocks of the sequence are revoked. */
enum coord_status seq_set(struct coord *c, const char *identity, const struct seq_set *in,
                          struct seq_grant *out, struct coord_reply *r);
/* Its name stays taken. STOPPED: how far it was has to be said first, by seq_reopen. */
enum coord_status seq_drop(struct coord *c, const char *identity, const char *name,
                           struct seq_grant *out, struct coord_reply *r);
/* An operator's word that no number behind above was given out, by any counter of the sequence, at
 * the latest reopening: grants go on behind it, and blocks of before are revoked there. */
enum coord_status seq_reopen(struct coord *c, const char *identity, const char *name, int64_t above,
                             struct seq_grant *out, struct coord_reply *r);
/* Numbers for somebody who is no sidecar: a take of the whole. caller_ms: his clock. */
enum coord_status seq_reserve(struct coord *c, const char *identity, int64_t caller_ms,
                              const char *name, const char *sub, const char *period, int64_t count,
                              struct coord_token token, struct seq_grant *out,
                              struct coord_reply *r);
/* Closes the periods before this one for good, and drops the counters of what is closed or dropped.
 * period "": the latter only. WAIT: it has not begun. */
enum coord_status seq_sweep(struct coord *c, const char *identity, const char *name,
                            const char *period, struct seq_grant *out, struct coord_reply *r);
/* One part of it, for who has more to do meanwhile. *cursor: 0 at first, and when it is done. */
enum coord_status seq_sweep_part(struct coord *c, const char *identity, const char *name,
                                 const char *period, int64_t *cursor, struct seq_grant *out,
                                 struct coord_reply *r);

/* A sequence, or a counter of one, as the store has it. */
struct seq_info {
    char name[SEQ_NAME_MAX];
    bool unreadable; /* all below is 0 */
    bool dropped;
    char text[SEQ_TEXT_MAX];
    struct seq_definition definition;
    struct seq_revoked revoked;
    int64_t gen, turn, max;
    int64_t top;  /* highest index + 1 that any of its counters ever granted, or that set or reopen
                     skipped, as far as is known: none at or above it was granted */
    int64_t seen; /* the same that a sidecar told, where it is above top: so much was forgotten */
    int64_t subs; /* of the latest period */
    int64_t ok_era;                /* up to here operators have accounted for it */
    char closed[PERIOD_LABEL_MAX]; /* periods before this one are closed; "": none */
};

struct seq_counter_info {
    char period[PERIOD_LABEL_MAX], sub[SEQ_SUB_MAX];
    bool unreadable, stale; /* stale: not touched since the pool was reopened */
    int64_t gen, era, next, n;
    int64_t gaps; /* indices that were skipped: by the line, set and reopen */
};

/* Owned by the caller; free() them. Ordered by name; by generation, period and sub, as texts. */
struct seq_list {
    struct seq_info *v;
    size_t n;
};
struct seq_counters {
    struct seq_info sequence;
    struct seq_counter_info *v;
    size_t n;
    bool found; /* there is such a sequence */
};

/* Not of one moment where there are many. What is not COORD_OK leaves nothing to free. */
enum coord_status seq_list(struct coord *c, const char *identity, struct seq_list *out,
                           struct coord_reply *r);
enum coord_status seq_show(struct coord *c, const char *identity, const char *name,
                           struct seq_counters *out, struct coord_reply *r);

/* ---- the driver's side ----------------------------------------------------------------------- */

enum seq_verb {
    SEQ_VERB_CREATE, /* text, index: max, flag: fresh; gen: of the tombstone, with base */
    SEQ_VERB_ALTER,  /* index: max; to: another definition, or "" */
    SEQ_VERB_SET,    /* index, sub, period, flag: back */
    SEQ_VERB_DROP,
    SEQ_VERB_REOPEN, /* index: the first that may be granted */
    SEQ_VERB_SWEEP,  /* period; index: cursor, which the answer has in next, 0: the end */
    SEQ_VERBS
};

/* text: that is meant, pinned but for a creation; gen 0: there must be none yet. */
struct seq_order {
    enum seq_verb verb;
    const char *name, *sub, *period, *text;
    int64_t gen, index, base;
    int64_t top;  /* of the tombstone: base lies behind all indices below */
    int64_t kept; /* ALTER, CREATE: a template that it does not have any more is kept under this
                     number */
    const char *to;
    bool flag;
};

struct seq_row {
    char *key, *value; /* NUL-terminated, one block of memory that begins at key */
};

struct seq_rows {
    struct seq_row *v; /* sorted: by key, ascending as bytes, none twice */
    size_t n;
    struct seq_opening opening; /* era only */
    int64_t cursor, told;       /* where the next part begins; both 0: there is none */
};

void seq_rows_clear(struct seq_rows *rows);
/* The templates that a sequence had before the one that it has, by value; the caller clears *out,
 * which is empty at first, whatever the status. */
enum coord_status seq_templates(struct coord *c, const char *identity, const char *name,
                                struct seq_rows *out, struct coord_reply *r);
/* Copies a row behind the others; false: no memory, or they are SEQ_ROWS_MAX. */
bool seq_rows_add(struct seq_rows *rows, struct span key, struct span value);
void seq_rows_sort(struct seq_rows *rows);

/* The arguments have been checked, and out is all 0. definition is filled in by the wrappers. */
struct seq_driver {
    bool (*forgets)(struct coord *c); /* as seq_forgets */
    enum coord_status (*take)(struct coord *c, const char *identity, const struct seq_caller *by,
                              const struct seq_want *items, struct seq_grant *out, size_t n,
                              struct seq_opening *opening, struct coord_reply *r);
    enum coord_status (*give_back)(struct coord *c, const char *identity,
                                   const struct seq_return *items, enum seq_how *how, size_t n,
                                   struct coord_reply *r);
    enum coord_status (*operate)(struct coord *c, const char *identity, const struct seq_order *in,
                                 struct seq_grant *out, struct coord_reply *r);
    /* Rows whose key begins with prefix, where that ends with a space, else the one of that key:
     * one part of them, behind what is there. */
    enum coord_status (*rows)(struct coord *c, const char *identity, const char *prefix,
                              struct seq_rows *out, struct coord_reply *r);
};

#endif
