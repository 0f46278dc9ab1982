/*
 * The supply of workerIds (lease/supply.h): the lease machine, the calls that it asks for, and what
 * is logged of both.
 *
 * Invariant: what changes in the lease and the coordinator is logged here, and nowhere else.
 */
#ifndef SIDFLAKE_LEASE_WORKERS_H
#define SIDFLAKE_LEASE_WORKERS_H

#include "lease/lease.h"
#include "lease/supply.h"

struct workers_options {
    struct lease_config lease;
    const char *coord_name;    /* URL without secrets, for the log; not copied */
    const char *pool_name;     /* for the commands that messages tell; not copied */
    const char *password_file; /* likewise: the coordinator's, or a word for it; NULL, "": none */
    struct pagefile *file;     /* not copied; the keeper's alone while it runs, but for the marks */
    struct rng *rng;           /* likewise */
};

/* Counters are totals since start. */
struct workers_report {
    bool answered;            /* the coordinator has answered at all so far */
    bool up;                  /* its latest call was answered: coord_answered */
    bool serves;              /* … by the pool that is ours, if only with none free: no refusal */
    enum coord_status status; /* of the latest call */
    char why[ERR_TEXT_MAX];   /* why no workerId can be had, or ""; one line */
    uint64_t renewals[COORD_HOWS]; /* by enum coord_how */
    uint64_t renewals_failed;      /* calls without an answer that counts */
    uint64_t data_loss;            /* times that the coordinator had forgotten what it granted */
    int64_t skew_ms;               /* coordinator's clock less ours, at the latest answer */
    int64_t time_ms, time_mono;    /* its time, at this monotonic ms; 0: it has not told yet */
    int64_t heard_ms, heard_mono;  /* the same, when it heard of all that is held; 0: never */
    uint64_t era;
    uint64_t free; /* workerIds in the pool's queue */
    unsigned held;
    struct coord_pool pool;  /* as last described; identity "" before */
    unsigned risks;          /* enum coord_risk, or'ed, as last told */
    char page[ERR_TEXT_MAX]; /* why the next start will find no state page, or "" */
};

/* What the loop tells of them (keeper_tell); each as the function of lease.h that it leads to. */
enum workers_event_kind {
    WORKERS_RETIRE, /* handle */
    WORKERS_URGE_RENEWAL,
    WORKERS_URGE_CLAIM,
};

struct workers_event {
    enum workers_event_kind kind;
    uint32_t handle;
};

struct workers;

/* A token of a workerId that the coordinator has answered, by which another page is told to be no
 * older than that answer (lease/blockpage.h). */
struct workers_witness {
    unsigned slot;
    struct coord_token token;
};

/* What the coordinator said of a token that the page had at the start. */
enum workers_word {
    WORKERS_UNHEARD,
    WORKERS_LATEST, /* nobody has renewed with a later one */
    WORKERS_DENIED  /* somebody may have, or nobody will ever say */
};

/* Takes over what the page holds: what that grants at once is posted. mono: monotonic ms. */
enum err_code workers_new(const struct workers_options *o, int64_t mono, struct workers **out,
                          struct err *e) MUST_CHECK;

struct supply *workers_supply(struct workers *w);

/* A mail of theirs. */
struct lease_mail workers_mail(const struct supply_mail *m);

/* For the other supplies: in the keeper's thread, or before it starts. */

/* The token to remember now; false: nothing is held that is proven. */
bool workers_witness(const struct workers *w, struct workers_witness *out);
enum workers_word workers_word(const struct workers *w, const struct workers_witness *x);

/* Of the pool that what is held is of; "": none is known. */
const char *workers_identity(const struct workers *w);

/* As pagefile_stands: whether state_dir still is the one that the lock of their page is for. */
bool workers_page_stands(const struct workers *w, struct err *why);

/* The coordinator's time was *ms at *mono: what the latest answer here says, unless it is older. */
void workers_time(const struct workers *w, int64_t *ms, int64_t *mono);

/* After keeper_free. NULL is allowed. */
void workers_free(struct workers *w);

#endif
