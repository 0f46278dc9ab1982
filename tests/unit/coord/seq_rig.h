/*
 * Sequences of a pool in a real Redis, one in an SQLite file and a toy, asked the same: all that
 * are asked must agree. Included by one program each, since it brings the scripts that the driver
 * runs.
 */
#ifndef SIDFLAKE_UNIT_COORD_SEQ_RIG_H
#define SIDFLAKE_UNIT_COORD_SEQ_RIG_H

#include "coord/seq_rows.h"
#include "pair_rig.h"

#include <inttypes.h>
#include <stdlib.h>

extern char sequences_lua[];
extern size_t sequences_lua_len;
char sequences_lua[1 << 16];
size_t sequences_lua_len;

#define ONE(side)  (1u << (side))
#define EACH       (ONE(PAIR_SQLITE) | ONE(PAIR_REDIS) | ONE(PAIR_TOY))
#define FORGETTING (ONE(PAIR_REDIS) | ONE(PAIR_TOY)) /* SQLite has no line */

static unsigned asked = EACH;      /* who is */
static bool alone;                 /* the toy, of whose fingerprint nobody else knows */
static struct seq_opening opening; /* of the latest take */
static struct seq_opening openings[PAIR_SIDES]; /* the same of each */

/* With the status and how of the first that is asked, with which all must agree. */
#define ASK(same, grant, call)                                                                     \
    do {                                                                                           \
        bool first_ = true;                                                                        \
        for (size_t side = 0; side < PAIR_SIDES; side++) {                                         \
            struct seq_grant one;                                                                  \
            if (!(asked >> side & 1u))                                                             \
                continue;                                                                          \
            struct coord *c = alone ? pair.toy : pair_side(&pair, side);                           \
            enum coord_status s_ = COORD_DOWN;                                                     \
            s_ = (call);                                                                           \
            if (first_)                                                                            \
                (same) = s_, *(grant) = one;                                                       \
            if (s_ != (same))                                                                      \
                fail_msg("%s of side %zu, %s before: %s", coord_status_name(s_), side,             \
                         coord_status_name(same), reply.err.text);                                 \
            same_seq_grant(side, (grant), &one);                                                   \
            first_ = false;                                                                        \
        }                                                                                          \
    } while (0)

#define SAME_NUMBER(what)                                                                          \
    do {                                                                                           \
        if (a->what != b->what)                                                                    \
            fail_msg("side %zu: " #what " is %lld, and %lld at the first (%s, %s)", side,          \
                     (long long)b->what, (long long)a->what, seq_how_name(b->how),                 \
                     seq_how_name(a->how));                                                        \
    } while (0)

static inline void same_seq_grant(size_t side, const struct seq_grant *a, const struct seq_grant *b)
{
    SAME_NUMBER(how);
    SAME_NUMBER(gen);
    SAME_NUMBER(turn);
    SAME_NUMBER(max);
    SAME_NUMBER(lo);
    SAME_NUMBER(hi);
    SAME_NUMBER(n);
    SAME_NUMBER(next);
    SAME_NUMBER(wait_ms);
    SAME_NUMBER(revoked.turn);
    SAME_NUMBER(revoked.era);
    SAME_NUMBER(revoked.from);
    if (strcmp(a->text, b->text) != 0 || strcmp(a->period, b->period) != 0)
        fail_msg("side %zu: \"%s\" of \"%s\", and \"%s\" of \"%s\" at the first", side, b->text,
                 b->period, a->text, a->period);
}

static inline struct seq_want want_of(const char *name, int64_t count, uint8_t token)
{
    return (struct seq_want){.name = name,
                             .sub = "",
                             .period = "",
                             .text = "",
                             .count = count,
                             .token = setup_token(token)};
}

/* By a caller who knows an opening: each side's own, where it is the latest one. */
static inline enum coord_status taken_at(int64_t caller_ms, const struct seq_opening *known,
                                         const struct seq_want *w, struct seq_grant *g)
{
    enum coord_status s = COORD_DOWN;
    struct seq_opening told;
    struct seq_caller by = {.now_ms = caller_ms};
    bool latest = known && memcmp(known, &opening, sizeof opening) == 0;
    ASK(s, g,
        (by.opening = latest  ? openings[side]
                      : known ? *known
                              : (struct seq_opening){.era = 0},
         s_ = seq_take(c, SETUP_IDENTITY, &by, w, &one, 1, &told, &reply),
         openings[side] = s_ == COORD_OK ? told : openings[side], s_));
    opening = openings[asked & ONE(PAIR_SQLITE) ? PAIR_SQLITE : PAIR_REDIS];
    return s;
}

static inline enum seq_how take(const struct seq_want *w, struct seq_grant *g)
{
    enum coord_status s = taken_at(pair.clock.ms, NULL, w, g);
    if (s != COORD_OK)
        fail_msg("%s: %s", coord_status_name(s), reply.err.text);
    return g->how;
}

static inline enum seq_how take_of(const char *name, int64_t count, uint8_t token,
                                   struct seq_grant *g)
{
    struct seq_want w = want_of(name, count, token);
    return take(&w, g);
}

static inline enum seq_how give_back(const char *name, const struct seq_grant *g, uint8_t token,
                                     int64_t lo)
{
    const struct seq_return item = {.name = name,
                                    .sub = "",
                                    .period = g->period,
                                    .token = setup_token(token),
                                    .gen = g->gen,
                                    .n = g->n,
                                    .lo = lo,
                                    .hi = g->hi};
    struct seq_grant how;
    enum coord_status s = COORD_DOWN;
    ASK(s, &how,
        (memset(&one, 0, sizeof one),
         seq_give_back(c, SETUP_IDENTITY, &item, &one.how, 1, &reply)));
    assert_int_equal(s, COORD_OK);
    return how.how;
}

static inline struct seq_definition skipping(int64_t rate)
{
    return (struct seq_definition){.start = 1, .increment = 1, .rate = rate, .loss = SEQ_LOSS_SKIP};
}

static inline struct seq_definition lossy(enum seq_loss loss)
{
    return (struct seq_definition){.start = 1, .increment = 1, .loss = loss};
}

static inline enum seq_how create_as(const struct seq_create *in, struct seq_grant *g)
{
    enum coord_status s = COORD_DOWN;
    ASK(s, g, seq_create(c, SETUP_IDENTITY, in, &one, &reply));
    if (s != COORD_OK)
        fail_msg("%s: %s", coord_status_name(s), reply.err.text);
    return g->how;
}

static inline enum seq_how create(const char *name, struct seq_definition d, struct seq_grant *g)
{
    const struct seq_create in = {.name = name, .definition = d};
    return create_as(&in, g);
}

/* One of the operators' operations, which must be answered. */
#define ORDER(grant, call)                                                                         \
    do {                                                                                           \
        enum coord_status order_ = COORD_DOWN;                                                     \
        ASK(order_, (grant), (call));                                                              \
        if (order_ != COORD_OK)                                                                    \
            fail_msg("%s: %s", coord_status_name(order_), reply.err.text);                         \
    } while (0)

static inline enum seq_how drop(const char *name, struct seq_grant *g)
{
    ORDER(g, seq_drop(c, SETUP_IDENTITY, name, &one, &reply));
    return g->how;
}

static inline enum seq_how reopen_above(const char *name, int64_t above, struct seq_grant *g)
{
    ORDER(g, seq_reopen(c, SETUP_IDENTITY, name, above, &one, &reply));
    return g->how;
}

static inline enum seq_how set_to(const char *name, int64_t number, bool back, struct seq_grant *g)
{
    const struct seq_set in = {
        .name = name, .sub = "", .period = "", .number = number, .back = back, .no_older = back};
    ORDER(g, seq_set(c, SETUP_IDENTITY, &in, &one, &reply));
    return g->how;
}

static inline int seq_setup(void **state)
{
    pair_sequences(sequences_lua, sizeof sequences_lua, &sequences_lua_len);
    return setup(state);
}

/* A pool for each test, and who is asked in it. */
static inline void begin(unsigned sides)
{
    pair.clock.ms = T0;
    asked = sides;
    init(3);
}

#endif
