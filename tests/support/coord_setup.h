/*
 * What the tests of coordinators share: a clock to be set by hand, options, identities.
 */
#ifndef SIDFLAKE_TESTS_SUPPORT_COORD_SETUP_H
#define SIDFLAKE_TESTS_SUPPORT_COORD_SETUP_H

#include "coord/coord.h"

#define SETUP_T0_MS INT64_C(1780000000000) /* some time in 2026 */

#define SETUP_IDENTITY       "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10"
#define SETUP_IDENTITY_OTHER "99999999-2222-4333-8444-555555555555|1767225600000|38.15.10"
#define SETUP_IDENTITY_EPOCH "11111111-2222-4333-8444-555555555555|1700000000000|38.15.10"

/* A wall clock that stands until it is moved; the monotonic one is the system's. */
struct setup_clock {
    struct clock clock;
    int64_t ms;
};

void setup_clock_init(struct setup_clock *c, int64_t ms);

/* Opens or aborts: the URL must be good. who is SETUP_WHO; timeout 2 s. */
#define SETUP_WHO "{\"host\":\"test\"}"
struct coord *setup_open(const char *url, const char *pool, struct clock *clock);

/* The same with another timeout. */
struct coord *setup_open_within(const char *url, const char *pool, struct clock *clock,
                                int64_t timeout_ms);

/* Default parameters, workerIds 0..to. */
struct coord_init setup_init(const char *identity, enum coord_init_mode mode, uint16_t to);

/* Removes what stands beside the pools' files in a directory (tally.h). */
void setup_forget_tally(const char *dir);

/* Somebody whose clock shows ms, or the time; good until the next call. */
const struct coord_caller *setup_caller(int64_t ms);
const struct coord_caller *setup_now(void);

/* Room for what is not looked at. */
struct coord_terms *setup_terms(void);

struct coord_token setup_token(uint8_t fill);

/* That of a grant, with the tokens that cur and nxt fill. */
struct coord_renewal setup_renewal(const struct coord_grant *g, uint8_t cur, uint8_t nxt);

/* The number that the environment has under this name, or otherwise. */
uint64_t setup_wanted(const char *name, uint64_t otherwise);

#endif
