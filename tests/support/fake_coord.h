/*
 * A coordinator in memory, honest by default, that can be told to fail: for tests of whoever talks
 * to one.
 *
 * It keeps what a pool must (a high mark, a token and a count per workerId), so that IDs issued
 * under its grants can be checked for duplicates, and writes down every call.
 *
 * Invariants
 *   - Its time is the clock it was given.
 *   - A call may come from any thread; the fields below `lock` are read with fake_coord_lock held,
 *     or when no call can be under way.
 */
#ifndef SIDFLAKE_SUPPORT_FAKE_COORD_H
#define SIDFLAKE_SUPPORT_FAKE_COORD_H

#include "coord/coord.h"

#include <pthread.h>

#define FAKE_COORD_WORKERS 64
#define FAKE_COORD_CALLS   4096
#define FAKE_COORD_FAULTS  64

enum fake_coord_op {
    FAKE_DESCRIBE,
    FAKE_INIT,
    FAKE_CLAIM,
    FAKE_RENEW,
    FAKE_RELEASE,
    FAKE_OPS
};

/* What goes wrong with one call. */
struct fake_coord_fault {
    enum fake_coord_op op;
    enum coord_status status; /* what the caller is told */
    bool takes_effect;        /* the request arrives all the same: only its answer is lost */
};

struct fake_coord_call {
    enum fake_coord_op op;
    enum coord_status status; /* as answered */
    char identity[COORD_IDENTITY_MAX];
    struct coord_token token;  /* CLAIM */
    enum coord_init_mode mode; /* INIT, as is what follows */
    bool identity_said;
    struct coord_params params;
    int64_t lost_ahead_ms, settle_ms, least_ms;
    struct coord_caller by; /* RENEW */
    struct coord_release release;
    struct coord_renewal items[COORD_RENEW_MAX]; /* as asked */
    size_t nitems;
};

struct fake_coord_worker {
    bool held;
    bool released; /* not held: an operator took it away */
    int64_t hwm_ms, t0_ms;
    struct coord_token token;
    uint64_t n;
};

struct fake_coord {
    struct coord coord; /* first: what the code under test is given */
    struct clock *clock;

    pthread_mutex_t lock;
    pthread_cond_t change;
    bool missing;      /* there is no pool */
    unsigned reopened; /* times */
    struct coord_pool pool;
    struct fake_coord_worker worker[FAKE_COORD_WORKERS];
    uint16_t next; /* workerId that the search for a free one begins at */
    struct fake_coord_fault fault[FAKE_COORD_FAULTS];
    unsigned nfaults;
    bool blocked;    /* calls do not return while this holds */
    unsigned inside; /* calls that are held so */
    struct fake_coord_call call[FAKE_COORD_CALLS];
    unsigned ncalls;
    unsigned idles; /* times that the connection was given up */
};

/* A pool of workerIds from..to, below FAKE_COORD_WORKERS, of the given identity. */
void fake_coord_init(struct fake_coord *f, struct clock *clock, const char *identity, uint16_t from,
                     uint16_t to);
void fake_coord_clear(struct fake_coord *f);

/* The next call of this kind that has no fault planned yet is answered so. */
void fake_coord_fail(struct fake_coord *f, enum fake_coord_op op, enum coord_status status,
                     bool takes_effect);

/* While on, calls block; off lets them go. */
void fake_coord_block(struct fake_coord *f, bool on);

/* Waits until a call is blocked, or for 10 s: false then. */
bool fake_coord_await_blocked(struct fake_coord *f);

/* How many calls of this kind were made. */
unsigned fake_coord_count(struct fake_coord *f, enum fake_coord_op op);

/* The latest call of this kind, or NULL. Stays valid. */
const struct fake_coord_call *fake_coord_latest(struct fake_coord *f, enum fake_coord_op op);

/* Another holder claims this workerId by force, as after an eviction by an operator. */
void fake_coord_steal(struct fake_coord *f, uint16_t worker);

#endif
