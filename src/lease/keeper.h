/*
 * The keeper: the thread that runs the lease machine against a coordinator.
 *
 *     serving loop                                   keeper
 *        |  --- retire, urge, pause, stop -------------> |
 *        |  <-- notify, then keeper_take: mails, report  |  --- blocking calls ---> coordinator
 *
 * Invariants
 *   - The two mailboxes, one each way, under one mutex that is never held across a call, are all
 *     that is shared; but for the marks of the state page, which are single stores.
 *   - Mails arrive in the order in which they were posted, and none is lost.
 *   - The keeper logs what changes in the lease and the coordinator; nobody else does.
 */
#ifndef SIDFLAKE_LEASE_KEEPER_H
#define SIDFLAKE_LEASE_KEEPER_H

#include "base/clock.h"
#include "base/histogram.h"
#include "lease/lease.h"

struct keeper_options {
    struct lease_config lease;
    struct coord *coord;       /* used by the keeper alone from keeper_start to keeper_free */
    const char *coord_name;    /* URL without secrets, for the log; not copied */
    const char *pool_name;     /* for the commands that messages tell; not copied */
    const char *password_file; /* likewise: the coordinator's, or a word for it; NULL, "": none */
    struct pagefile *file;     /* likewise the keeper's, but for the marks */
    struct clock *clock;
    struct rng *rng;
    void (*notify)(void *arg); /* called when there is something to take, in the keeper's thread or
                                  keeper_start */
    void *arg;
};

/* Counters are totals since start. */
struct keeper_report {
    bool answered;            /* the coordinator has answered at all so far */
    bool up;                  /* its latest call was answered: coord_answered */
    bool serves;              /* … by the pool that is ours, if only with none free: no refusal */
    enum coord_status status; /* of the latest call */
    char why[ERR_TEXT_MAX];   /* why no workerId can be had, or ""; one line */
    uint64_t renewals[4];     /* by enum coord_how: LOST, RENEWED, AGAIN, REASSERTED */
    uint64_t renewals_failed; /* calls without an answer that counts */
    uint64_t data_loss;       /* times that the coordinator had forgotten what it granted */
    int64_t skew_ms;          /* coordinator's clock less ours, at the latest answer */
    uint64_t era;
    uint64_t free; /* workerIds in the pool's queue */
    unsigned held;
    struct histogram requests; /* time of calls to the coordinator */
    struct coord_pool pool;    /* as last described; identity "" before */
    unsigned risks;            /* enum coord_risk, or'ed, as last told */
    bool finished;             /* after keeper_stop: everything that could be released was */
    char page[ERR_TEXT_MAX];   /* why the next start will find no state page, or "" */
    bool paused; /* after keeper_pause: it does nothing, and the page changes by marks alone */
    bool proven; /* where paused: lease_proven */
};

struct keeper;

/* Starts the thread; what a page taken over grants at once can be taken when it returns. On failure
 * nothing is left behind. */
enum err_code keeper_start(const struct keeper_options *o, struct keeper **out,
                           struct err *e) MUST_CHECK;

/* Copies up to max mails and the report; returns the number of mails. Never blocks on the
 * coordinator. Call it until it returns less than max. */
size_t keeper_take(struct keeper *k, struct lease_mail *mails, size_t max,
                   struct keeper_report *report);

void keeper_retire(struct keeper *k, uint32_t handle);
void keeper_urge_renewal(struct keeper *k);
void keeper_urge_claim(struct keeper *k);

/* on: it rests as soon as no call to the coordinator is under way; report.paused follows. What is
 * held is issued from meanwhile. Off: it goes on. A stop ends the rest, too. */
void keeper_pause(struct keeper *k, bool on);

/* See lease_stop. Returns at once; report.finished follows. A second call ends it without waiting
 * for more releases. */
void keeper_stop(struct keeper *k, bool give_back);

/* Waits for the thread, which a stop ends, for at most one call to the coordinator; frees. */
void keeper_free(struct keeper *k);

#endif
