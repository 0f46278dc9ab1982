/*
 * The supply of workerIds: the lease machine, the calls that it asks for, and what is logged of
 * both.
 *
 * Invariant: it runs in the keeper's thread alone.
 */
#ifndef SIDFLAKE_LEASE_WORKERS_H
#define SIDFLAKE_LEASE_WORKERS_H

#include "base/log.h"
#include "lease/keeper.h"

/* What was said of something that may go wrong. */
struct told {
    enum coord_status status; /* COORD_OK: it goes well */
    struct log_limit remind;
};

struct workers {
    const struct keeper_options *o;
    struct lease lease;
    struct keeper_report report;
    struct told coordinator, claims;
    bool page_lost;  /* that was logged */
    bool undated;    /* likewise: no new generation of the page can be had */
    bool range_told; /* likewise: the pool's range is another one */
};

/* Of a call: monotonic us, and Unix ms at its end. */
struct workers_times {
    int64_t started_us, ended_us, wall_ms;
};

/* o: not copied. What a page taken over grants at once is in the machine's mails. */
void workers_init(struct workers *w, const struct keeper_options *o);

/* Runs an action, other than IDLE and FINISHED. Blocks. wall: our clock, Unix ms. */
void workers_call(struct workers *w, struct coord *c, struct lease_action *a,
                  struct lease_outcome *o, int64_t wall);

/* Tells the machine what came of it, and the log what has changed. */
void workers_done(struct workers *w, struct lease_action *a, const struct lease_outcome *o,
                  const struct workers_times *t);

#endif
