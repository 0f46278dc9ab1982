/*
 * A pool in a real Redis, one in an SQLite file and a toy, asked the same: all must agree. Included
 * by one program each, since it brings the script that the driver runs.
 */
#ifndef SIDFLAKE_UNIT_COORD_PAIR_RIG_H
#define SIDFLAKE_UNIT_COORD_PAIR_RIG_H

#include "support/coord_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The driver's script, in place of the library's: see pair_open. */
extern char pool_lua[];
extern size_t pool_lua_len;
char pool_lua[1 << 16];
size_t pool_lua_len;

#define T0 SETUP_T0_MS
#define A  coord_params_default.horizon_ms
#define A0 coord_params_default.first_horizon_ms
#define D0 coord_params_default.mature_after_ms
#define S  coord_params_default.max_skew_ms

static struct pair pair;
static struct coord_reply reply;

/* All are asked, and must agree; returns what they say. */
#define ALL(same, call)                                                                            \
    do {                                                                                           \
        enum coord_status answers[PAIR_SIDES];                                                     \
        for (size_t side = 0; side < PAIR_SIDES; side++) {                                         \
            struct coord *c = pair_side(&pair, side);                                              \
            answers[side] = (call);                                                                \
            assert_int_equal(answers[side], answers[0]);                                           \
        }                                                                                          \
        (same) = answers[0];                                                                       \
    } while (0)

static inline void init(uint16_t last_worker)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, last_worker);
    enum coord_status s;
    pair_wipe(&pair, true);
    ALL(s, coord_init(c, &in, &reply));
    assert_int_equal(s, COORD_OK);
}

static inline enum coord_status claim_at(int64_t caller_ms, uint8_t token, struct coord_grant *g)
{
    enum coord_status s;
    ALL(s, coord_claim(c, SETUP_IDENTITY, caller_ms, setup_token(token), g, &reply));
    return s;
}

static inline enum coord_status claim(uint8_t token, struct coord_grant *g)
{
    return claim_at(pair.clock.ms, token, g);
}

static bool was_released; /* by an operator, as the latest renewal was told */

/* By a holder whose clock shows caller_ms; *g is brought up to date. LOST, too, where the status is
 * not OK: it is in *s. */
static inline enum coord_how renew_at(int64_t caller_ms, struct coord_grant *g, uint8_t cur,
                                      uint8_t nxt, enum coord_status *s)
{
    const struct coord_renewal before = setup_renewal(g, cur, nxt);
    struct coord_renewal item;
    enum coord_status one;
    unsigned released = 0;
    ALL(*s, (item = before,
             one = coord_renew(c, SETUP_IDENTITY, setup_caller(caller_ms), &item, 1, setup_terms(),
                               &reply),
             released += item.released, one));
    assert_true(released == 0 || released == PAIR_SIDES);
    if (*s == COORD_OK && item.how != COORD_HOW_LOST)
        g->n = item.n, g->hi_ms = item.hi_ms;
    was_released = released > 0;
    return *s == COORD_OK ? item.how : COORD_HOW_LOST;
}

static inline enum coord_how renew(struct coord_grant *g, uint8_t cur, uint8_t nxt)
{
    enum coord_status s;
    enum coord_how how = renew_at(pair.clock.ms, g, cur, nxt, &s);
    assert_int_equal(s, COORD_OK);
    return how;
}

static inline struct coord_pool described(void)
{
    struct coord_pool p;
    enum coord_status s;
    ALL(s, coord_describe(c, &p, &reply));
    assert_int_equal(s, COORD_OK);
    return p;
}

static inline enum coord_status release(const struct coord_grant *g, uint8_t cur, uint8_t nxt,
                                        int64_t last_ms)
{
    const struct coord_release item = {.worker = g->worker,
                                       .cur = setup_token(cur),
                                       .nxt = setup_token(nxt),
                                       .n = g->n,
                                       .has_last = true,
                                       .last_ms = last_ms};
    enum coord_status s;
    ALL(s, coord_release(c, SETUP_IDENTITY, &item, &reply));
    return s;
}

/* From now on, for long enough for a short floor to pass, nobody is granted what x may use. */
static inline void is_safe(const struct coord_grant *x)
{
    struct coord_grant y;
    enum coord_status s = claim(90, &y); /* this reopens */
    for (int64_t passed = 0; s != COORD_OK && passed <= A0 + 4 * S; passed += S) {
        assert_int_equal(s, COORD_WAIT);
        pair.clock.ms += S;
        s = claim(90, &y);
    }
    if (s == COORD_OK && y.lo_ms <= x->hi_ms)
        fail_msg("a range from %lld on was granted, while another holder's ends at %lld",
                 (long long)(y.lo_ms - T0), (long long)(x->hi_ms - T0));
}

static inline enum coord_status nothing_lost(void)
{
    enum coord_status s;
    ALL(s, coord_nothing_lost(c, SETUP_IDENTITY, &reply));
    return s;
}

#define DAY INT64_C(86400000)

static inline int setup(void **state)
{
    (void)state;
    pair_open(&pair, pool_lua, sizeof pool_lua, &pool_lua_len);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    pair_close(&pair);
    return 0;
}

#endif
