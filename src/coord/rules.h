/*
 * pool.lua in C, over the rows of a store: the same operations with the same answers.
 *
 * pool.lua says why each rule is as it is; a change to either is a change to both, and
 * test_differential holds them together.
 *
 * Invariants
 *   - Each call stands within one transaction of the caller's, which is committed whatever the
 *     status, unless the store has failed: what the rules changed before they refused stays.
 *   - now_ms was read after the transaction had its lock, so that it rises with the transactions.
 */
#ifndef SIDFLAKE_COORD_RULES_H
#define SIDFLAKE_COORD_RULES_H

#include "coord/store.h"

struct rules {
    struct store *store;
    struct coord_reply *r;   /* filled; now_ms is set by the caller */
    const char *name;        /* of the pool */
    const char *identity;    /* what the caller is pinned to; NULL where the operation has none */
    const char *fingerprint; /* changes whenever the store may have been replaced */
    int64_t now_ms;          /* T */
    struct store_pool pool;  /* as read, and as changed since */
};

enum coord_status rules_describe(struct rules *u, struct coord_pool *out);
enum coord_status rules_init(struct rules *u, const struct coord_init *in);
enum coord_status rules_claim(struct rules *u, int64_t caller_ms, struct coord_token nxt,
                              const char *who, struct coord_grant *out);
enum coord_status rules_renew(struct rules *u, struct coord_renewal *items, size_t n);
enum coord_status rules_release(struct rules *u, const struct coord_release *item);
enum coord_status rules_evict(struct rules *u, uint16_t worker);
enum coord_status rules_close(struct rules *u);
enum coord_status rules_repair(struct rules *u, const uint16_t *workers, size_t n);
enum coord_status rules_snapshot(struct rules *u, struct coord_snapshot *out);

#endif
