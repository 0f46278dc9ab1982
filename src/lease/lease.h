/*
 * The lease machine: which workerIds this process holds, and what it must ask of the coordinator
 * next.
 *
 *                   claim                    retire, stop
 *          FREE -----------> HELD ----------------------------> LEAVING
 *            ^    granted     | ^ | renewed, again, reasserted    |
 *            |                | '-'                               |
 *            '--- LOST -------'                                   |
 *            '------------------- released, or not ours any more -'
 *
 * Pure: (state, event, now) -> action. It calls nobody and reads no clock; lease/keeper.h runs it
 * on a thread against a real coordinator, the simulation against a faulty one. Each action is to be
 * run and its outcome told before the next is asked for.
 *
 * Invariants
 *   - The page knows first: a grant is in the page before it is mailed, a renewal's next token
 *     before the renewal is returned as an action, LEAVING before a release is.
 *   - A slot that is LEAVING is never issued from again, in this life or the next.
 *   - Once a slot is given up, or found to be lost, the page needs a new generation, so that states
 *     of it in which it was HELD are not taken over; and before that no release is sent.
 *   - A slot taken over is granted once a renewal with a token of this process is answered, or
 *     cannot be: a page may be an older state of itself, put back in place. A renewal that only
 *     repeats a pair out of the page proves nothing: a release on its way, by whoever left it, may
 *     name that pair, too. What is granted begins above the clock of that moment, so that a `last`
 *     which is too old does no harm either.
 *   - Where IDs may be ahead of the clock it does not make up for an old `last`, so no slot is
 * taken over but by the rule below: those of such a page are given back without a last time, and
 * rest until their ranges end, by what the coordinator knows of them. So a restart without one has
 *     nothing to issue from. The page says so of each slot, since the next life may be another's.
 *   - A page that is byte by byte what the program before left, a moment ago in this process, is no
 *     older state: its slots are granted at once, above their exact last times, if that program had
 *     them proven.
 *   - While the outcome of a renewal is unknown it is repeated with the same pair of tokens.
 *   - Between two renewals, and two tries of one, at most a quarter of the pool's settle goes by:
 *     by that a coordinator that has forgotten the holder hears it in time.
 *
 * Times: mono is monotonic ms, wall and everything named _ms otherwise Unix ms.
 */
#ifndef SIDFLAKE_LEASE_LEASE_H
#define SIDFLAKE_LEASE_LEASE_H

#include "base/rng.h"
#include "coord/coord.h"
#include "lease/pagefile.h"

#include <assert.h>

#define LEASE_SLOTS PAGE_SLOTS

static_assert(LEASE_SLOTS <= COORD_RENEW_MAX, "one renewal carries all workerIds");

struct lease_config {
    unsigned active, spare;     /* workerIds wanted: their sum is at most LEASE_SLOTS - 4 */
    int64_t renew_ms;           /* between renewals, +-20 %; at most 5 s while a tenure is young */
    int64_t rotation_jitter_ms; /* a new spare is claimed 0..this after a rotation */
    int64_t stop_ms;            /* longest that the releases of a stop may take */
    bool epoch_pinned;          /* the config names an epoch, and the pool must have it: */
    int64_t epoch_ms;   /* … this; without epoch_pinned, that of a pool made by auto_init */
    bool layout_pinned; /* likewise of a layout */
    struct layout layout;
    bool auto_init;        /* make a missing pool */
    bool page_knows_alone; /* static:N: no coordinator knows up to when IDs were issued */
    bool ahead;            /* IDs may be of times above the clock (ids/snowflake_ahead.h) … */
    bool rising;           /* … and rise from one life to the next, as far as the page tells */
};

enum lease_action_kind {
    LEASE_IDLE, /* nothing before mono `until` but what an event may bring */
    LEASE_DESCRIBE,
    LEASE_INIT,
    LEASE_CLAIM,
    LEASE_RENEW,
    LEASE_RELEASE,
    LEASE_FINISHED, /* stopped, and everything that could be released was */
};

struct lease_action {
    enum lease_action_kind kind;
    int64_t until;                           /* IDLE: monotonic ms */
    struct coord_token token;                /* CLAIM */
    struct coord_init init;                  /* INIT */
    struct coord_release release;            /* RELEASE */
    struct coord_caller by;                  /* RENEW; its clock is set by who makes the call */
    struct coord_renewal items[LEASE_SLOTS]; /* RENEW */
    size_t nitems;
    uint8_t slots[LEASE_SLOTS]; /* of items; slots[0] of CLAIM and RELEASE; LEASE_SLOTS: none */
};

/* The outcome; items of a renewal are answered in the action itself. */
struct lease_outcome {
    enum coord_status status;
    struct coord_reply reply;
    struct coord_pool pool;   /* DESCRIBE */
    struct coord_grant grant; /* CLAIM */
    struct coord_terms terms; /* RENEW */
};

enum lease_mail_kind {
    LEASE_MAIL_POOL,   /* the pool is known, or known anew: lease.pool; issue above last_ms, where
                          that is not 0 */
    LEASE_MAIL_GRANT,  /* issue at times above last_ms, up to hi_ms */
    LEASE_MAIL_EXTEND, /* up to hi_ms */
    LEASE_MAIL_REVOKE, /* not any more */
    LEASE_MAIL_RETIRE, /* not wanted any more: it comes back by lease_retire */
};

/* To the serving loop. */
struct lease_mail {
    enum lease_mail_kind kind;
    uint32_t handle; /* names one grant, never used again */
    uint16_t worker;
    int64_t last_ms, hi_ms, t0_ms; /* t0_ms: 0 where not known yet */
    volatile uint64_t *mark;       /* GRANT: where the issuer stores its last time */
    bool released;                 /* REVOKE: an operator took it away */
};

#define LEASE_MAIL_MAX (3 * LEASE_SLOTS) /* at most this many from one event or outcome */

struct lease_slot {
    struct page_record rec;
    uint32_t handle;
    int64_t t0_ms;    /* 0: not known yet */
    bool young;       /* gets short ranges, and is renewed more often */
    bool outside;     /* HELD, and none of the pool's: good for its range, and not renewed */
    uint8_t unproven; /* HELD, but not granted before so many renewals: only a page says so */
    int64_t last_ms;  /* LEAVING, unproven: nothing above was issued, by the page */
};

struct lease {
    struct lease_config conf;
    struct rng *rng;
    struct page *page;
    struct lease_slot slot[LEASE_SLOTS];
    uint32_t serial; /* of grants, for handles */

    char identity[COORD_IDENTITY_MAX]; /* pinned to; "": none yet */
    struct coord_pool pool;            /* as last described */
    int64_t settle_ms;                 /* the shortest that was told; 0: none but horizons */
    int64_t ahead_ms; /* A + 2S of the pool that what is held came from; 0: not known */
    uint16_t range_from, range_to; /* where ahead_ms is known: that pool's workerIds */
    struct err range;              /* code not ERR_OK: its workerIds are others than they were */
    bool described;                /* pool is of `identity`, and not known to have changed since */
    char last_identity[COORD_IDENTITY_MAX]; /* of the pool known last, were it lost since; "": none
                                               was … */
    struct coord_params last_params;        /* … and its parameters: */
    int64_t last_settle_ms;                 /* … with its settle, 0: the horizon: */
    int64_t last_least_ms;                  /* … the shortest that it ever had, 0: that one: */
    int64_t last_ahead_ms;                  /* … and its reach, where above A + 2S: */
    bool last_known;                        /* … these are known, too */
    bool init_wanted;   /* auto_init, and the coordinator says that there is no pool */
    struct err trouble; /* code not ERR_OK: why the pool found cannot be used */
    bool fresh_ok;      /* auto_init may say that nobody ever issued IDs: no page, never held any */
    bool extra;         /* one workerId more than usual: the active ones are stalled */
    uint8_t surplus;    /* answered renewals until what is held beyond active and spare goes back,
                           having been granted unproven; 0: nothing is */
    bool gave_up;       /* a new generation of the page is due: whoever begins it clears this */

    /* Left behind by another boot, or ahead of a clock: nforeign of them to be released without
     * `last`; and what the marks of all say, which may be older than the truth, but is a floor all
     * the same. */
    struct page_record foreign[LEASE_SLOTS];
    int64_t foreign_last[LEASE_SLOTS];
    unsigned nforeign;
    char foreign_identity[COORD_IDENTITY_MAX];
    int64_t latest_ms; /* conf.ahead: IDs are above it, Unix ms; 0: any may be */

    int64_t call_due;  /* mono: no call before, after a failure */
    int64_t renew_due; /* mono */
    int64_t claim_due; /* mono */
    int64_t renewed;   /* mono: latest renewal sent */
    unsigned fails;    /* calls in a row that came to nothing */
    uint64_t era;      /* as last told */
    bool stopping;
    int64_t stop_by; /* mono */

    struct lease_mail mail[LEASE_MAIL_MAX];
    unsigned nmail;
};

/* Takes over what the page file holds: mails its grants, or notes what must be released. */
void lease_init(struct lease *l, const struct lease_config *conf, struct pagefile *f,
                struct rng *rng, int64_t mono);

/* What to do now. Stores in the page what must be there first. */
void lease_next(struct lease *l, int64_t mono, struct lease_action *a);

/* Tells what came of an action other than IDLE and FINISHED. wall: the caller's clock now. */
void lease_done(struct lease *l, const struct lease_action *a, const struct lease_outcome *o,
                int64_t mono, int64_t wall);

/* Events from the serving loop. */

/* The grant is not issued from any more, and its mark is its exact last time. A handle that is not
 * held any more is ignored. */
void lease_retire(struct lease *l, uint32_t handle, int64_t mono);

/* The clock jumped, or passed a ceiling: renew now (at most once a second). */
void lease_urge_renewal(struct lease *l, int64_t mono);

/* No workerId held can be issued from: claim one more than usual. */
void lease_urge_claim(struct lease *l, int64_t mono);

/* No more claims and renewals; nothing is issued any more. give_back: everything held is released
 * with its exact last time; else it stays in the page for the next start, and only what was retired
 * before is released. */
void lease_stop(struct lease *l, bool give_back, int64_t mono);

/* No slot waits to be proven: what the page says of those HELD may be passed on as proven. */
bool lease_proven(const struct lease *l);

/* auto_init, and it is known what the pool was, or that there was none. One that was lost, and is
 * not known, could have had workerIds that are no longer its own, or a longer horizon: there
 * somebody has to say. */
bool lease_may_init(const struct lease *l);

/* What came of the call a, which is done: the coordinator has heard of all that is held, so that
 * data which were put in its place before do not call that free. */
bool lease_heard_of_all(const struct lease *l, const struct lease_action *a,
                        const struct lease_outcome *o);

/* How many workerIds are HELD. */
unsigned lease_held(const struct lease *l);

#endif
