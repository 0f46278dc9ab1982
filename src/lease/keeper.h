/*
 * The keeper: the thread that runs the supplies against a coordinator.
 *
 *     serving loop                                   keeper
 *        |  --- tell, pause, stop ---------------------> |
 *        |  <-- notify, then keeper_take: mails, reports |  --- blocking calls ---> coordinator
 *
 * One call at a time: of the supplies that are due, the first in the list has its call, and then
 * whoever follows the one that had the latest. So one that is always due, or always fails, costs
 * the others a call's time at most.
 *
 * Invariants
 *   - The two mailboxes, one each way, under one mutex that is never held across a call, are all
 *     that is shared; but for the marks of the state page, which are single stores.
 *   - Mails arrive in the order in which they were posted, and none is lost before a stop.
 *   - Where calls are few it has no connection between them; where they are many it keeps one for
 *     coord_keep_ms, and none for longer.
 *   - It logs nothing: what there is to say is the supplies' to say.
 */
#ifndef SIDFLAKE_LEASE_KEEPER_H
#define SIDFLAKE_LEASE_KEEPER_H

#include "base/clock.h"
#include "base/histogram.h"
#include "lease/supply.h"

struct keeper_options {
    struct supply *const *supplies; /* not copied; the keeper's alone from keeper_start to
                                       keeper_free, as is … */
    size_t nsupplies;               /* 1..SUPPLY_MAX */
    struct coord *coord;            /* … the coordinator */
    struct clock *clock;
    void (*notify)(void *arg); /* called when there is something to take, in the keeper's thread,
                                  keeper_start or keeper_pause */
    void *arg;
};

struct keeper_report {
    struct histogram requests; /* time of calls to the coordinator, since start */
    bool finished;             /* after keeper_stop: all that could be given back was */
    bool paused; /* after keeper_pause: it does nothing, and the page changes by marks alone */
    bool proven; /* where paused: all supplies are */
};

struct keeper;

/* Starts the thread; mails that the supplies have already can be taken when it returns. On failure
 * nothing is left behind. */
enum err_code keeper_start(const struct keeper_options *o, struct keeper **out,
                           struct err *e) MUST_CHECK;

/* Copies up to max mails, the report, and to reports[i] that of supply i, which has room for it;
 * NULL: it is not wanted. Returns the number of mails. Never blocks on the coordinator. Call it
 * until it returns less than max. */
size_t keeper_take(struct keeper *k, struct supply_mail *mails, size_t max,
                   struct keeper_report *report, void *const *reports);

/* An event for supply i, of its own type. */
void keeper_tell(struct keeper *k, size_t i, const void *event);

/* on: it rests as soon as no call to the coordinator is under way; report.paused follows. What is
 * held is issued from meanwhile. Off: it goes on. A stop ends the rest, too. */
void keeper_pause(struct keeper *k, bool on);

/* See supply_kind.stop. Returns at once; report.finished follows when all supplies have finished. A
 * second call ends it without waiting for what is still to be given back. */
void keeper_stop(struct keeper *k, bool give_back);

/* Whether the thread, which a stop ends, does so within ms: a call that is under way takes its
 * time. */
bool keeper_ends(struct keeper *k, int64_t ms);

/* Waits for the thread, for at most one call to the coordinator; frees. */
void keeper_free(struct keeper *k);

#endif
