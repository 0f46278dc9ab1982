/*
 * The operations of a coordinator whose pool is in a store with transactions (store.h): what a
 * driver of one fills its table with.
 *
 *     input ──copy──> begin ── now ── rules ── commit ──copy──> results
 *               ^                                │
 *               └──────────── conflict ──────────┘
 *
 * Invariants
 *   - Each run of the rules starts from what the caller gave: rules_renew writes into its items,
 *     and a second run would take the n of the first for what a holder knows of a lost table.
 *   - Each run has a time of its own, read behind the lock; the caller's clock is the caller's in
 *     all of them, or, where the operation tells none, `callers`, or the run's time.
 *   - Of a run that was not committed the caller sees nothing but the store's reason.
 *   - A conflict is run again until the call's time is up, so a store without luck should wait a
 *     little, at random, before it says so.
 */
#ifndef SIDFLAKE_COORD_TRANSACT_H
#define SIDFLAKE_COORD_TRANSACT_H

#include "coord/store.h"

/* First member of such a driver's own struct. */
struct transact {
    struct coord base;
    struct store *store;   /* the driver's */
    struct clock *clock;   /* of deadlines */
    struct clock *callers; /* theirs, of a store whose time is another host's; NULL: its own */
    int64_t timeout_us;
    char pool[COORD_POOL_NAME_MAX];
    char who[COORD_WHO_MAX];
};

void transact_init(struct transact *t, const struct coord_driver *driver, struct store *store,
                   const struct coord_options *o);

/* As in struct coord_driver. c: the base of a struct transact. */
enum coord_status transact_describe(struct coord *c, struct coord_pool *pool,
                                    struct coord_reply *r);
enum coord_status transact_new(struct coord *c, const struct coord_init *in, struct coord_reply *r);
enum coord_status transact_claim(struct coord *c, const char *identity, int64_t caller_ms,
                                 struct coord_token nxt, struct coord_grant *out,
                                 struct coord_reply *r);
enum coord_status transact_renew(struct coord *c, const char *identity,
                                 const struct coord_caller *by, struct coord_renewal *items,
                                 size_t n, struct coord_terms *terms, struct coord_reply *r);
enum coord_status transact_release(struct coord *c, const char *identity,
                                   const struct coord_release *item, struct coord_reply *r);
enum coord_status transact_evict(struct coord *c, const char *identity, uint16_t worker,
                                 struct coord_reply *r);
enum coord_status transact_close(struct coord *c, const char *identity, bool moved,
                                 struct coord_reply *r);
enum coord_status transact_unclose(struct coord *c, const char *identity, int64_t lost_ahead_ms,
                                   struct coord_reply *r);
enum coord_status transact_repair(struct coord *c, const char *identity, const uint16_t *workers,
                                  size_t n, struct coord_reply *r);
enum coord_status transact_settle(struct coord *c, const char *identity, int64_t settle_ms,
                                  struct coord_reply *r);
enum coord_status transact_nothing_lost(struct coord *c, const char *identity,
                                        struct coord_reply *r);
enum coord_status transact_clock_was_ahead(struct coord *c, const char *identity,
                                           struct coord_reply *r);
enum coord_status transact_snapshot(struct coord *c, struct coord_snapshot *out,
                                    struct coord_reply *r);

#endif
