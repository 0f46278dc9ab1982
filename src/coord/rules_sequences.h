/*
 * sequences.lua in C, over the texts of a store: the same operations with the same answers.
 *
 * sequences.lua says why each rule is as it is; a change to either is a change to both, and
 * test_differential_sequences holds them together. A store that does not forget has no line: there
 * every definition is one of SEQ_LOSS_REFUSE, and only an older copy in its place stops grants.
 *
 * Invariants
 *   - Those of rules.h. Answers are built from nothing: a second run does as the first did.
 */
#ifndef SIDFLAKE_COORD_RULES_SEQUENCES_H
#define SIDFLAKE_COORD_RULES_SEQUENCES_H

#include "coord/rules.h"
#include "coord/seq_rows.h"

enum coord_status rules_seq_take(struct rules *u, const struct seq_opening *known,
                                 const struct seq_want *items, struct seq_grant *out, size_t n,
                                 struct seq_opening *opening);
enum coord_status rules_seq_give_back(struct rules *u, const struct seq_return *items,
                                      enum seq_how *how, size_t n);
enum coord_status rules_seq_operate(struct rules *u, const struct seq_order *in,
                                    struct seq_grant *out);
enum coord_status rules_seq_rows(struct rules *u, const char *prefix, struct seq_rows *out);

/* ---- what the two files of them share -------------------------------------------------------- */

/* A counter, found by its names. */
struct seq_place {
    const char *name, *sub;
    bool known; /* state and definition are there */
    struct seq_state state;
    struct seq_definition definition;
    char period[PERIOD_LABEL_MAX]; /* "": it has none */
    int64_t opens_ms, ends_ms;     /* of the period; of one without, from the beginning on */
    bool found;                    /* there is a record, which is */
    struct seq_counter counter;    /* 0 where it is not found */
    struct seq_faith faith;
    bool skips; /* to its line */
};

/* SEQ_LOOKED: found; otherwise why not. text "": any definition. */
enum seq_how rules_seq_find(struct rules *u, const char *name, const char *sub, const char *period,
                            const char *text, struct seq_place *p);

/* Whether nothing of note can have been forgotten since an era; 0: since before the pool's first.
 */
bool rules_seq_is_sound(const struct rules *u, const struct seq_place *p, int64_t era);

/* Why not: SEQ_STOPPED, where the word that nothing was lost would be taken, and reach as far back;
 * else SEQ_FORGOTTEN. */
enum seq_how rules_seq_halt(const struct rules *u, const struct seq_place *p, int64_t era);

/* SEQ_LOOKED: *next could be granted, for all that the counter's past says. SEQ_WAIT: *wait_ms. */
enum seq_how rules_seq_judge(struct rules *u, const struct seq_place *p, int64_t *next,
                             int64_t *wait_ms);

/* The highest index that may have been granted by now; the counter is one that skips. */
int64_t rules_seq_line(const struct seq_place *p, int64_t now_ms);
/* The first time at which it may. */
int64_t rules_seq_line_when(const struct seq_place *p, int64_t index);

/* The latest time that was seen, Unix ms. */
int64_t rules_seq_latest(const struct rules *u);
/* By which it is told what period it is, Unix ms: the latest, unless the clock is behind that. */
int64_t rules_seq_today(const struct rules *u);

/* Counts the sub of a counter that has no record yet, of those of its latest period; false: they
 * are too many. */
bool rules_seq_count_sub(struct seq_place *p);

/* Counts the change. */
void rules_seq_save(struct rules *u, struct seq_place *p);
void rules_seq_save_state(struct rules *u, const struct seq_place *p);
/* What is known of it. */
void rules_seq_tell(const struct seq_place *p, struct seq_grant *out);

/* Reads what reopenings mean, and brings it up to date. The pool has been come into. */
void rules_seq_believe(struct rules *u);

#endif
