/*
 * The rows in which a store keeps sequences, as texts: what sequences.lua writes into the pool's
 * hash, and the rules in C into a table.
 *
 *     seq                              from to lost
 *     seq NAME                         gen turn ok bturn bt base max top seen subs dropped rturn
 *                                      rera rfrom per mark TEXT
 *     num NAME GEN PERIOD [SUB]        era next n token lo hi turn gaps
 *     tpl NAME N                       the template that it had before, 0 ..
 *
 * Numbers are 0..2^53-1. A period, per or mark is "-" where there is none, as is a token.
 *
 * Invariants
 *   - What is read may be anything: false where it is not what the writer beside it writes.
 */
#ifndef SIDFLAKE_COORD_SEQ_ROWS_H
#define SIDFLAKE_COORD_SEQ_ROWS_H

#include "coord/seq_calls.h"

#define SEQ_KEY_MAX 224 /* NUL included, as below */
#define SEQ_ROW_MAX 896

/* What the pool's reopenings mean to sequences that do not skip. */
struct seq_faith {
    int64_t from,
        to;       /* nothing was lost at the reopenings between these eras, by operators' word */
    int64_t lost; /* the latest era that began with a loss which was proven */
};

struct seq_state {
    int64_t gen, turn;
    int64_t ok; /* the era in which it was made, or an operator said how far it is */
    int64_t bturn, bt_ms, base; /* counters of before that turn begin at base, unless they opened
                                   after bt; bt SEQ_INDEX_MAX: all, of a name that was dropped
                                   and made again */
    int64_t max, top, seen, subs, dropped;
    struct seq_revoked revoked;
    char per[PERIOD_LABEL_MAX];  /* of subs; "" where it is "-", as in mark */
    char mark[PERIOD_LABEL_MAX]; /* periods below are closed */
    char text[SEQ_TEXT_MAX];
};

struct seq_counter {
    int64_t era, next, n;
    bool taken; /* the latest change is a take, of this token and block */
    struct coord_token token;
    int64_t lo, hi, turn, gaps;
};

/* Each writes at most the maxima above; returns out. */
char *seq_state_key(char *out, const char *name);
char *seq_counter_key(char *out, const char *name, int64_t gen, const char *period,
                      const char *sub);
char *seq_template_key(char *out, const char *name, int64_t n);
char *seq_faith_write(char *out, const struct seq_faith *f);
char *seq_state_write(char *out, const struct seq_state *s);
char *seq_counter_write(char *out, const struct seq_counter *c);

bool seq_faith_read(struct span s, struct seq_faith *out);
/* d: of its text. */
bool seq_state_read(struct span s, struct seq_state *out, struct seq_definition *d);
bool seq_counter_read(struct span s, struct seq_counter *out);
/* The parts behind NAME; name has SEQ_NAME_MAX bytes, the others as in seq_counter_info. */
bool seq_state_key_read(struct span key, char *name);
bool seq_counter_key_read(struct span key, char *name, struct seq_counter_info *out);

bool seq_is_name(struct span s);
bool seq_is_sub(struct span s);    /* not empty */
bool seq_is_period(struct span s); /* of the letters of a label; not empty */

#endif
