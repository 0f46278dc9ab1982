/*
 * What the script's answers mean. Pure: spans in, status and structs out.
 *
 * An answer is a flat array of strings (pool.lua says which): status, T, for a working pool era,
 * length of the queue and K, then what the status carries.
 *
 * Invariants
 *   - An answer is believed only if its count of fields, the form of each number (decimal, no sign,
 *     no leading zero) and every range is as the script makes it; else COORD_REFUSED, and the text
 *     says what was expected and what was found.
 *   - The bounds reject nothing that a sound pool can answer. A ceiling is at most T + A, or one
 *     that was granted before: T steps back by 2S at most and a re-asserted one is at most
 *     A + 2S above a past T, so A + 4S above T. A <= 24 h and S <= 1 min make that less than 25 h.
 *   - Every call fills *r except r->wait_ms of other statuses than COORD_WAIT.
 */
#ifndef SIDFLAKE_COORD_ANSWER_H
#define SIDFLAKE_COORD_ANSWER_H

#include "coord/seq_calls.h"

#define ANSWER_HEAD       5  /* status, T, era, queue, K; then what is the operation's own */
#define ANSWER_TERMS      5  /* of a renewal: settle, from, to, born, ahead */
#define ANSWER_OPENING    2  /* of a take: topen, fingerprint */
#define ANSWER_GRANT      14 /* fields of one of its items, which sequences.lua names */
#define ANSWER_FIELDS_MAX (ANSWER_HEAD + ANSWER_TERMS + 4 * COORD_RENEW_MAX) /* a renewal's */
#define ANSWER_ROWS       2 /* of rows: cursor, rows of it that were told before */
#define ANSWER_NONCE_MAX  128

_Static_assert(ANSWER_HEAD + ANSWER_OPENING + ANSWER_GRANT * SEQ_ITEMS_MAX <= ANSWER_FIELDS_MAX,
               "an answer to a take fits");

struct answer {
    struct span f[ANSWER_FIELDS_MAX];
    size_t n;
};

/* Who asked for what; for the texts and the checks. */
struct answer_to {
    const char *pool;     /* name */
    const char *identity; /* NULL: asked without */
};

/* Decimal as the script writes it, 0..2^53-1. */
bool answer_number(struct span s, int64_t *out);

/* What must be so before an answer counts. */
struct answer_terms {
    uint32_t acks;     /* replicas that must have acknowledged all written up to it; 0: none */
    struct span nonce; /* not empty: it is no answer yet, and the call is to be made again with this
                          (1..ANSWER_NONCE_MAX bytes, inside the answer) */
};

/* COORD_OK or COORD_REFUSED; the rest of the answer is not judged. */
enum coord_status answer_terms(const struct answer *a, struct answer_terms *out,
                               struct coord_reply *r);

enum coord_status answer_init(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r);
enum coord_status answer_describe(const struct answer *a, const struct answer_to *to,
                                  struct coord_pool *pool, struct coord_reply *r);
enum coord_status answer_claim(const struct answer *a, const struct answer_to *to,
                               int64_t caller_ms, struct coord_grant *out, struct coord_reply *r);

/* items: what was asked; where the answer is COORD_OK they are filled as coord_renew says. */
enum coord_status answer_renew(const struct answer *a, const struct answer_to *to,
                               struct coord_renewal *items, size_t n, struct coord_terms *terms,
                               struct coord_reply *r);

/* Reads the head: COORD_OK, _WAIT, _EXHAUSTED, _LOST where the operation's own fields begin at
 * ANSWER_HEAD, or what to answer. And what is said of field i that is not what was expected. */
enum coord_status answer_head(const struct answer *a, const struct answer_to *to,
                              struct coord_reply *r);
enum coord_status answer_odd(const struct answer *a, size_t i, const char *expected,
                             struct coord_reply *r);

/* Of sequences.lua. items: what was asked; out, n of them, is filled where the answer is COORD_OK.
 */
enum coord_status answer_take(const struct answer *a, const struct answer_to *to,
                              const struct seq_want *items, struct seq_grant *out, size_t n,
                              struct seq_opening *opening, struct coord_reply *r);
enum coord_status answer_back(const struct answer *a, const struct answer_to *to, enum seq_how *how,
                              size_t n, struct coord_reply *r);
enum coord_status answer_order(const struct answer *a, const struct answer_to *to,
                               struct seq_grant *out, struct coord_reply *r);
/* Rows are added to out; *cursor 0: they were the last. */
enum coord_status answer_rows(const struct answer *a, const struct answer_to *to, int64_t *cursor,
                              int64_t *told, struct seq_rows *out, struct coord_reply *r);

/* release, evict, close, repair, settle, nothing lost: COORD_OK or COORD_LOST and nothing more. */
enum coord_status answer_plain(const struct answer *a, const struct answer_to *to,
                               struct coord_reply *r);

#endif
