/*
 * pool.lua in C, over the rows of a store: the same operations with the same answers.
 *
 * pool.lua says why each rule is as it is; a change to either is a change to both, and
 * test_differential holds them together.
 *
 * A pool may bet that a server which was away for long has not come back with an older data set:
 * what its table calls free is granted again after `settle` (T + settle + 2S), not after A. What
 * is bet on is that each holder whose tenure such a data set lacks is heard before: holders that
 * reach the server renew every settle / 4 at least, and a renewal either re-asserts, or is refused
 * and ends the tenure. So who loses is a holder that is cut off or stopped for all of it; and one
 * that is gone, if its IDs were ahead of the time by settle, its clock being fast. Everything else
 * keeps its floor:
 *     what the table calls held keeps fl
 *     a holder heard with an n above that of a stale record shows that the data was older: fs = fl
 *     a rewind that was proven is no bet, and neither is a gap that is short by tmax
 *     while ranges of before a bet may last, no gap counts as short: what was lost with the last
 *     writes may be a re-assertion, and that has a long range
 * A shorter settle counts once the longer one before it has passed, so that all who renew know of
 * it. The shortest that was raised since is kept, and who comes later renews by that one, too: data
 * of its time may come back.
 *
 * An operator's word that nothing was lost takes the latest reopening's floors back. Holders that
 * know better would be heard within four of their renewals, so it is not taken before, nor once
 * one was heard; one that is heard later brings the floors back, for what is granted from then on.
 * It may find records that were freed since the word, with no floor: so that is a reopening, after
 * which they count as stale.
 *
 * What is lost is made up for by a clock that is within S of the time. As long as nothing is, the
 * clock may be wrong; and one that was a day ahead for some seconds must not leave the pool
 * unusable for a day, as its tmax and ceilings would. So a T that is more than 2S ahead of the
 * caller's clock is not followed: the caller's counts for tmax, sure and ceilings. This is safe,
 * since all three may be too low:
 *     a lower ceiling is recorded as granted, and lies below T + A, as the floors take all to do
 *     a lower tmax or sure makes what may have been lost look older, and then the floors are long
 * None of them falls, so a caller who is a day slow changes nothing for others: its own ceiling
 * alone follows its clock. One who is fast changes nothing at all. A reopening stamps floors and
 * topen with T. A day too high they would keep all newcomers waiting and refuse all holders, so it
 * is done for a caller whose clock is within S of T; until one comes, nothing is granted. But a
 * holder that knows more than the table is heard whatever its clock: it proves that something was
 * lost, T is right or nothing helps, and the next claim would not know of it.
 *
 * Where the caller's clock was ahead, too, tmax is, and by a T that is right again nobody is
 * granted a workerId until then: it could as well be T that is behind, by which young tenures count
 * as old. An operator's word says which. As long as the table was not rewound it knows all that was
 * granted meanwhile, and goes on by T. What it may come to lack was granted up to the fence, tmax
 * as it was then, or lies below A + 2S of it: so until that time each reopening has that for a
 * floor, and bets on nothing. It needs a caller whose clock agrees, and is given no pool but one
 * that is behind.
 *
 * A clock that is behind what it has shown before was ahead, with a caller's, or is wrong now.
 * Nobody begins a tenure by it, and it reopens nothing: tmax says how much a table lacks that comes
 * back, and knows nothing of what began by such a clock. What needs no tmax goes on, as long as
 * nobody knows more than the table:
 *     a renewal of records of this era, by a caller whose clock is within S of T: a table that
 *     lacks it says held, for which fl counts; and a release, which ends a tenure
 *     numbers, which have no time in them: lines are of T, and T says what period it is
 *
 * A holder of another pool of the same ID space may be one of a pool that was here before, in the
 * place of which this one was made as if there had been none. What it was granted then ends by the
 * floors that a pool made after a loss has, born + A + 2S, or more where its horizon was longer;
 * so until then it reopens this pool, with these floors. Who was granted a workerId that such a
 * one names, before the floors were there, loses it; others go on. A pool that lives beside this
 * one cannot always be told from a predecessor, so whatever a stranger says, its effect ends with
 * these floors. It has none at all
 *     on an older pool
 *     where its ceiling is above the floors: it was granted since this pool was born
 *     where it names none of this pool's workerIds
 *
 * Such a ceiling may be of a pool that was made in this one's place, if this one's data came back
 * after that. They did so no later than at the latest reopening, and what was granted before that
 * ends by topen + A + 2S, or by a longer horizon of theirs. Where it does end by then, the stranger
 * is as one who knows more than the table: there is no bet, nor any word, and no gap is short,
 * since how short is this pool's notion, and the other one's tenures may have been of other
 * lengths. One that lives beside can do as much, until these floors have passed, if it was granted
 * its range before the reopening; its horizon is not learnt for good. It is heard in time where it
 * renews as often as this pool's settle asks.
 *
 * Invariants
 *   - Each call stands within one transaction of the caller's, which is committed whatever the
 *     status, unless the store has failed: what the rules changed before they refused stays. After
 *     a conflict the same call comes again, in another transaction (transact.h).
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
    const char *who;         /* of the caller; for a claim and a renewal */
    const char *fingerprint; /* changes whenever the store may have been replaced */
    int64_t now_ms;          /* T */
    int64_t caller_ms;       /* the caller's clock */
    struct store_pool pool;  /* as read, and as changed since */
};

enum coord_status rules_describe(struct rules *u, struct coord_pool *out);
enum coord_status rules_init(struct rules *u, const struct coord_init *in);
enum coord_status rules_claim(struct rules *u, struct coord_token nxt, struct coord_grant *out);
enum coord_status rules_renew(struct rules *u, const struct coord_caller *by,
                              struct coord_renewal *items, size_t n, struct coord_terms *terms);
enum coord_status rules_release(struct rules *u, const struct coord_release *item);
enum coord_status rules_evict(struct rules *u, uint16_t worker);
enum coord_status rules_close(struct rules *u, bool moved);
enum coord_status rules_unclose(struct rules *u, int64_t lost_ahead_ms);
enum coord_status rules_repair(struct rules *u, const uint16_t *workers, size_t n);
enum coord_status rules_settle(struct rules *u, int64_t settle_ms);
enum coord_status rules_nothing_lost(struct rules *u);
enum coord_status rules_clock_was_ahead(struct rules *u);
enum coord_status rules_snapshot(struct rules *u, struct coord_snapshot *out);

#endif
