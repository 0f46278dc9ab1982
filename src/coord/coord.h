/*
 * A coordinator hands out workerIds and records the ranges of time in which each may be used.
 *
 * The operations and their rules are those of pool.lua, which says why they are safe; every driver
 * answers the same question the same way.
 *
 * Invariants
 *   - A driver is plain blocking code, used by one thread at a time. A call ends within the timeout
 *     given at coord_open, give or take a name look-up, and says COORD_DOWN when it does not know
 *     whether it took effect.
 *   - A range is recorded before it is handed out. For each workerId all ranges ever handed out are
 *     pairwise disjoint: (lo - 1, hi] of a grant lies above everything granted before.
 *   - hi is never above what the coordinator's time allows; below it where that is far ahead of the
 *     caller's.
 *
 * Times are Unix milliseconds, durations milliseconds, unless a name says otherwise.
 */
#ifndef SIDFLAKE_COORD_COORD_H
#define SIDFLAKE_COORD_COORD_H

#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/span.h"
#include "ids/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COORD_WORKERS       LAYOUT_WORKERS
#define COORD_IDENTITY_MAX  96   /* "uuid|epoch|layout", NUL included */
#define COORD_WHO_MAX       512  /* the holder's JSON, NUL included */
#define COORD_POOL_NAME_MAX 65   /* NUL included */
#define COORD_URL_MAX       1025 /* NUL included: as long as coordinator.url may be */
#define COORD_RENEW_MAX     32   /* items of one renewal */
#define COORD_REPAIR_MAX    1024 /* workerIds repaired in one step: some ms each */
#define COORD_REPLICAS_MAX  100u

/* What a call came to. The first four are answers of a working pool. */
enum coord_status {
    COORD_OK,
    COORD_WAIT,      /* nothing free is past its floor yet: ask again in reply.wait_ms */
    COORD_EXHAUSTED, /* nothing is free; in reply.wait_ms something is, were its holder gone */
    COORD_LOST,      /* the token is not, or no longer, the holder's */
    COORD_NOPOOL,    /* no such pool: `sidflakectl pool init` makes one */
    COORD_EXISTS,    /* init: there is one already */
    COORD_WRONGPOOL, /* the pool has another identity (err: both) */
    COORD_BADCLOCK,  /* the coordinator's clock is behind its own past (err: both times) */
    COORD_SKEW,      /* caller's and coordinator's clock differ by more than S (err: both): of a
                        claim, and of what would be the first after the coordinator restarted */
    COORD_CLOSED,    /* no more grants: the pool is about to move */
    COORD_REFUSED,   /* the coordinator answered, but not as it must (err: what) */
    COORD_DOWN,      /* no answer: unreachable, or timed out after sending (err: why); or it is not
                        ready to serve, and says so: err.code is ERR_BUSY then */
};

/* "ok", "wait", … for logs and metric labels; never NULL. */
const char *coord_status_name(enum coord_status s);

/* 128 random bits. Changes with every renewal, so that of two copies of a holder one goes on. */
struct coord_token {
    uint8_t b[16];
};

#define COORD_TOKEN_TEXT 33 /* 32 lower-case hex digits and NUL */
struct coord_token coord_token_new(struct rng *r);
bool coord_token_equal(struct coord_token a, struct coord_token b);
char *coord_token_text(char out[COORD_TOKEN_TEXT], struct coord_token t);
bool coord_token_parse(struct span s, struct coord_token *out);

/* Set when a pool is made, read by every sidecar. */
struct coord_params {
    int64_t horizon_ms;       /* A: longest range ahead of the coordinator's time; 1 min .. 24 h */
    int64_t first_horizon_ms; /* A0: the same for a young tenure */
    int64_t mature_after_ms;  /* D0: age from which a tenure is mature */
    int64_t max_skew_ms;      /* S */
    int64_t grace_ms;         /* G: rest of an expired workerId before it is queued again */
    uint32_t replicas;        /* K: replicas that must acknowledge a grant; 0..COORD_REPLICAS_MAX,
                                 for N nodes that fail over N / 2 rounded down; Redis only */
    uint16_t worker_from;     /* the pool's workerIds, both included */
    uint16_t worker_to;
};

extern const struct coord_params coord_params_default;

/* A + 2S: so far ahead of true time a pool may grant, clocks being within S of it. */
static inline int64_t coord_reach(const struct coord_params *p)
{
    return p->horizon_ms + 2 * p->max_skew_ms;
}

/* Whether the parameters keep what the protocol assumes of them: S > 0, 3S < A0 <= A, D0 > 4S, … */
enum err_code coord_params_check(const struct coord_params *p, struct err *e) MUST_CHECK;

/* Whether such a pool can have that settle, ms; 0: the horizon. */
static inline bool coord_params_settle(const struct coord_params *p, int64_t ms)
{
    return ms == 0 || (ms >= p->first_horizon_ms && ms <= p->horizon_ms);
}

/* The highest workerId that a pool of this layout may have. */
static inline uint16_t coord_worker_most(const struct layout *l)
{
    return (uint16_t)((layout_workers(l) < COORD_WORKERS ? layout_workers(l) : COORD_WORKERS) - 1);
}

/* Whether the workerIds fit into the layout's field for them. */
enum err_code coord_params_fit(const struct coord_params *p, const struct layout *l,
                               struct err *e) MUST_CHECK;

#define COORD_EVERY_MS 24000 /* time between two renewals, where no holder told a longer one */

/* What every answer of a pool carries. */
struct coord_reply {
    int64_t now_ms; /* the coordinator's time */
    uint64_t era;   /* 0: not told */
    uint64_t free;  /* of workerIds' operations: length of the queue; doubled entries count twice */
    int64_t wait_ms; /* COORD_WAIT; COORD_EXHAUSTED, 0: not known */
    struct err err;  /* every status but OK, WAIT, EXHAUSTED, LOST */
};

/* Somebody answered, if only that it cannot serve now. */
static inline bool coord_answered(enum coord_status s, const struct coord_reply *r)
{
    return s != COORD_DOWN || r->err.code == ERR_BUSY;
}

/* What an answered renewal says of the pool. */
struct coord_terms {
    int64_t settle_ms; /* 0: the horizon */
    int64_t worker_from, worker_to;
    int64_t born_ms;  /* another one is another pool, be it of the same identity and era */
    int64_t ahead_ms; /* as in coord_later */
};

/* Numbers of a pool that one made by version 0.1.0 lacks; then they are 0. They are the script's,
 * in its order, and coordinators keep them as an array. */
struct coord_later {
    int64_t settle_ms;        /* how long a bet lasts; 0: the horizon, which is none */
    int64_t settle_before_ms; /* the one before, which counts ... */
    int64_t settle_from_ms;   /* ... until then */
    int64_t floor_before_ms;  /* fl and fs before the latest reopening ... */
    int64_t floor_short_before_ms;
    int64_t era_before; /* ... which began this era */
    int64_t more_era;   /* the latest in which a holder was heard that knows more than the table */
    int64_t trust;      /* enum coord_trust */
    int64_t lent_ms;    /* until then ranges of before a bet may last */
    int64_t ahead_ms;   /* of T, what a holder's pool may have granted, where it is above A + 2S */
    int64_t every_ms;   /* longest time between two renewals that a holder told */
    int64_t cause;      /* enum coord_cause, of the latest reopening */
    int64_t fence_ms;   /* latest time seen of a clock that was said to have been ahead; 0: none */
    int64_t least_ms;   /* shortest settle that was raised since, since data of its time may come
                           back; 0: none */
    int64_t leap_ms;    /* how far T had gone ahead of all that was heard ... */
    int64_t leapt_ms;   /* ... when that was seen last; 0: never */
};

#define COORD_LATERS (sizeof(struct coord_later) / sizeof(int64_t))

#define COORD_CLOSED_MOVED 2 /* what coordinators keep for closed where the pool has moved */

/* What fs rests on. */
enum coord_trust {
    COORD_TRUST_NONE, /* on what can have been lost */
    COORD_TRUST_BET,  /* on settle */
    COORD_TRUST_WORD  /* on an operator's word */
};

/* Why a pool was reopened. */
enum coord_cause {
    COORD_CAUSE_NONE,     /* it was not, or by version 0.1.0 */
    COORD_CAUSE_MOVED,    /* another run_id or replication ID; SQLite: another file at the path */
    COORD_CAUSE_SET_BACK, /* SQLite: the file lacks what was answered */
    COORD_CAUSE_HOLDER,   /* a holder knew more than the table */
    COORD_CAUSE_STRANGER, /* a holder of a pool that was here before this one */
    COORD_CAUSE_BACK      /* it had been made again elsewhere, and was opened since */
};

struct coord_pool {
    char identity[COORD_IDENTITY_MAX];
    struct coord_params params;
    int64_t born_ms;      /* when the pool was made */
    int64_t epoch_ms;     /* time 0 of its IDs; from the identity, as is … */
    struct layout layout; /* … this */
    int64_t topen_ms;     /* last reopening; the birth counts as one */
    int64_t floor_ms; /* fl: records that say held count as used up to here, if older than era */
    int64_t floor_short_ms; /* fs: the same for records that say free */
    int64_t tmax_ms;        /* latest time seen */
    bool closed;
    bool moved; /* closed, and made again elsewhere: by an operator's word, or a holder that was
                   heard since has what this pool does not know of */
    struct coord_later later;
    uint64_t held;     /* workerIds in the index of held ones */
    uint64_t replicas; /* connected to the server and in step; not told by a snapshot */
    int64_t unmet_ms;  /* Redis that restarted since it was asked last: fs, were it reopened now, as
                          the next call but this one does; 0: it did not; not told by a snapshot */
};

/* (lo, hi] in the protocol's words is lo_ms..hi_ms here, both included. */
struct coord_grant {
    uint16_t worker;
    int64_t lo_ms;
    int64_t hi_ms;
    uint64_t n;    /* changes of the record so far */
    int64_t t0_ms; /* start of the tenure, coordinator's time */
};

/* Who renews. */
struct coord_caller {
    int64_t now_ms;   /* its clock; for the other operations but a claim, the driver's own */
    int64_t ahead_ms; /* A + 2S of the pool that it knows, 0..COORD_AHEAD_MAX_MS; 0: of none */
    int64_t every_ms; /* longest time between its renewals, 0..COORD_HORIZON_MAX_MS */
};

/* ms: what coord_params_check allows at most; and so no pool ever granted further ahead of its time
 * than this. */
#define COORD_HORIZON_MAX_MS (INT64_C(24) * 3600 * 1000)
#define COORD_MAX_SKEW_MS    (INT64_C(60) * 1000)
#define COORD_AHEAD_MAX_MS   (COORD_HORIZON_MAX_MS + 2 * COORD_MAX_SKEW_MS)

enum coord_how {
    COORD_HOW_LOST,
    COORD_HOW_RENEWED,
    COORD_HOW_AGAIN,
    COORD_HOW_REASSERTED,
    COORD_HOWS
};

struct coord_renewal {
    /* in */
    uint16_t worker;
    struct coord_token cur, nxt;
    uint64_t n;
    int64_t hi_ms; /* in: ceiling held; out: the new one, never lower */
    /* out, where how is not LOST: hi_ms, n and */
    int64_t t0_ms;
    enum coord_how how;
    bool released; /* out, where LOST: an operator took it (coord_evict), and nothing was forgotten
                    */
};

struct coord_release {
    uint16_t worker;
    struct coord_token cur, nxt; /* either matches: a renewal may have been cut short */
    uint64_t n;                  /* changes of the record, as the holder knows it */
    bool has_last;               /* the exact last time used is known … */
    int64_t last_ms;             /* … and is this; at least lo - 1 of the grant */
};

/* Of what was before. */
enum coord_init_mode {
    COORD_INIT_FRESH,     /* there was nothing */
    COORD_INIT_RANGE,     /* nobody had these workerIds; of sequences nothing is said */
    COORD_INIT_AFTER_LOSS /* anything */
};

/* "fresh", "range", "after-loss". */
const char *coord_init_mode_name(enum coord_init_mode m);

struct coord_init {
    char identity[COORD_IDENTITY_MAX];
    struct coord_params params;
    enum coord_init_mode mode;
    bool unattended;    /* by nobody's word: FRESH is made only where nobody can have had a workerId
                           before; SQLite */
    bool identity_said; /* it is that of a pool of before, and stays: otherwise the first holder of
                           another pool that renews has it changed to its own, so as to go on */
    bool replicas_said; /* params.replicas 0 is meant so, whatever replicas the server has */
    int64_t settle_ms;  /* first_horizon_ms..horizon_ms; 0: the horizon */
    int64_t least_ms;   /* as in coord_later, of the pool of before: likewise; 0: none */
    int64_t lost_ahead_ms; /* AFTER_LOSS: how far ahead of its time the pool that was lost may have
                              granted, 0..COORD_AHEAD_MAX_MS; less than params allow counts as
                              what they do */
};

/* One workerId as the coordinator has it, for operators. */
struct coord_worker {
    uint16_t worker;
    bool held;
    bool stale;      /* the record is of an earlier era */
    bool unreadable; /* the record is not of the form it must have; all below is 0 */
    uint64_t era, n;
    int64_t hwm_ms; /* as recorded; a stale one counts as at least the pool's floor */
    int64_t t0_ms;
    char *who; /* held: JSON of the holder, or NULL */
};

/* Everything the pool knows, read at one moment. A workerId without a record is not listed: it is
 * free and was never used. Owned by the caller of coord_snapshot; coord_snapshot_clear frees it. */
struct coord_snapshot {
    struct coord_pool pool;
    struct coord_reply reply;
    struct coord_worker *workers; /* by workerId, ascending */
    size_t nworkers;
    uint32_t *queue; /* free list, head first; entries that are no workerId as UINT32_MAX */
    size_t nqueue;
    uint16_t *index; /* workerIds in the index of held ones, ascending */
    size_t nindex;
};

void coord_snapshot_clear(struct coord_snapshot *s);

enum coord_fault {
    COORD_FAULT_DOUBLED,    /* twice in the queue */
    COORD_FAULT_LOST,       /* free, but not in the queue: never handed out again */
    COORD_FAULT_ORPHANED,   /* held, but not in the index: never reaped */
    COORD_FAULT_QUEUED,     /* held in this era, but queued: of a pool that was made again, say */
    COORD_FAULT_INDEXED,    /* in the index, but not held */
    COORD_FAULT_UNREADABLE, /* its record cannot be read: never handed out */
    COORD_FAULTS
};

/* Until when the pool grants no workerId, since its clock is behind what it has shown before: Unix
 * ms; 0: it is not. */
int64_t coord_pool_behind_until(const struct coord_pool *p, int64_t now_ms);

/* How far ahead of its time, which is now_ms, the pool may have granted: more than coord_reach
 * where its clock was ahead, or a pool was lost to it that could more. ms. */
int64_t coord_pool_ahead(const struct coord_pool *p, int64_t now_ms);

/* The settle that a reopening at now_ms would go by. */
int64_t coord_pool_settle(const struct coord_pool *p, int64_t now_ms);

/* So many renewals of a holder lie at most so far apart, ms. */
int64_t coord_pool_renewals(const struct coord_pool *p, unsigned n);

/* The shortest that its data can have had, first_horizon_ms..horizon_ms. */
int64_t coord_pool_least_settle(const struct coord_pool *p);

/* Whether what was lost since tmax, by now_ms, can be but of young tenures. */
bool coord_pool_is_young(const struct coord_pool *p, int64_t now_ms);

/* The cause of the latest reopening, to follow "reopened: "; "": there was none, or it is not
 * known.
 */
const char *coord_pool_cause(const struct coord_pool *p);

/* From when on coord_nothing_lost would be taken, Unix ms; 0: there is nothing to take back, or a
 * holder was heard that knows better. era: as last told. */
int64_t coord_pool_word_from(const struct coord_pool *p, uint64_t era);

const char *coord_fault_name(enum coord_fault f);

struct coord_audit {
    uint64_t count[COORD_FAULTS];
    uint8_t faults[COORD_WORKERS]; /* bit 1 << enum coord_fault, per workerId */
    uint64_t strangers;            /* queue entries that are no workerId of the pool */
    uint64_t free;                 /* workerIds in the queue that a claim would not pass over */
};

/* A claim drops such an entry when it comes to it. */
static inline bool coord_fault_is_harmless(enum coord_fault f)
{
    return f == COORD_FAULT_DOUBLED || f == COORD_FAULT_QUEUED;
}

/* Pure: what is wrong with a snapshot. Returns the number of faults that are not harmless. */
uint64_t coord_audit(const struct coord_snapshot *s, struct coord_audit *out);

/* What the coordinator's server is set up to lose of a pool. */
enum coord_risk {
    COORD_RISK_EVICTION = 1 << 0, /* it drops keys when its memory is full */
    COORD_RISK_RESTART = 1 << 1   /* it keeps nothing over a restart */
};
#define COORD_RISKS 2

/* Number i of them in a sentence, with what to do; NULL where risks, or'ed, has it not. */
const char *coord_risk_text(unsigned risks, unsigned i);

/* How many of its nodes must acknowledge so that none of two halves grants by itself: half of all,
 * rounded down; 0: as many must already. */
uint64_t coord_acknowledge_short_of(const struct coord_pool *p);

struct coord_options {
    struct span url;           /* redis://[USER:PASS@]HOST:PORT/DB, redis+unix:///PATH?db=N,
                                  redis+sentinel://[USER:PASS@]HOST:PORT,…/MASTER?db=N,
                                  sqlite:///PATH or sqlite:PATH, static:N */
    struct span pool;          /* name, 1..64 of [A-Za-z0-9_.-] */
    struct span password;      /* overrides the URL's; empty: none */
    const char *password_file; /* copied: read again for each connection, since it may be another
                                  password by then; NULL: none */
    const char *password_of;   /* what operators call the place of a password that is not the URL's,
                                  for messages; a literal; NULL: there is none */
    struct span who;           /* JSON about this holder, for operators; may be empty */
    int64_t timeout_us;        /* of connecting, and of each request */
    struct clock *clock;       /* SQLite and static: the coordinator's time; Redis: the caller's,
                                  where no call names it; all: deadlines */
};

struct coord;
struct seq_driver;

/* The driver's side. All MUST unless marked MAY; the wrappers below check the arguments. A driver
 * whose pool is in a store with transactions has its operations from transact.h. */
struct coord_driver {
    const char *const *schemes; /* NULL-terminated: "redis", "redis+unix" */
    const char *forms;          /* of its URLs, for people: "sqlite:///PATH" */
    /* Reads the URL and allocates; connects to nothing. */
    enum err_code (*open)(const struct coord_options *o, struct coord **out, struct err *e);
    void (*free)(struct coord *c);
    void (*idle)(struct coord *c); /* MAY: gives up a connection until the next call */
    int64_t keep_ms;               /* as coord_keep_ms; MAY */
    bool (*risks)(struct coord *c, unsigned *out); /* MAY: where there is no server to ask */
    enum coord_status (*writes)(struct coord *c, struct coord_reply *r); /* MAY: likewise */
    enum coord_status (*describe)(struct coord *c, struct coord_pool *pool, struct coord_reply *r);
    enum coord_status (*init)(struct coord *c, const struct coord_init *in, struct coord_reply *r);
    enum coord_status (*claim)(struct coord *c, const char *identity, int64_t caller_ms,
                               struct coord_token nxt, struct coord_grant *out,
                               struct coord_reply *r);
    enum coord_status (*renew)(struct coord *c, const char *identity, const struct coord_caller *by,
                               struct coord_renewal *items, size_t n, struct coord_terms *terms,
                               struct coord_reply *r);
    enum coord_status (*release)(struct coord *c, const char *identity,
                                 const struct coord_release *item, struct coord_reply *r);
    /* MAY, together: absent where there is no pool to operate (static). */
    enum coord_status (*evict)(struct coord *c, const char *identity, uint16_t worker,
                               struct coord_reply *r);
    enum coord_status (*close)(struct coord *c, const char *identity, bool moved,
                               struct coord_reply *r);
    enum coord_status (*unclose)(struct coord *c, const char *identity, int64_t lost_ahead_ms,
                                 struct coord_reply *r);
    enum coord_status (*repair)(struct coord *c, const char *identity, const uint16_t *workers,
                                size_t n, struct coord_reply *r);
    enum coord_status (*settle)(struct coord *c, const char *identity, int64_t settle_ms,
                                struct coord_reply *r);
    enum coord_status (*nothing_lost)(struct coord *c, const char *identity, struct coord_reply *r);
    enum coord_status (*clock_was_ahead)(struct coord *c, const char *identity,
                                         struct coord_reply *r);
    enum coord_status (*snapshot)(struct coord *c, struct coord_snapshot *out,
                                  struct coord_reply *r);
    const struct seq_driver *sequences; /* MAY: NULL where there is no pool (seq_calls.h) */
};

/* First member of each driver's own struct. */
struct coord {
    const struct coord_driver *driver;
};

/* The table of drivers: the one line that a new one adds, and its name below. NULL-terminated. */
extern const struct coord_driver *const coord_drivers[];
extern const struct coord_driver coord_redis, coord_sqlite, coord_static;

/* Picks the driver by the URL's scheme. ERR_INVALID names the part of the URL that is wrong and
 * never prints a password. *out is owned by the caller; coord_free(NULL) is allowed. */
enum err_code coord_open(const struct coord_options *o, struct coord **out,
                         struct err *e) MUST_CHECK;
void coord_free(struct coord *c);

/* The URL without user and password, for logs and to tell one coordinator from another. */
enum err_code coord_url_public(struct span url, char *out, size_t cap) MUST_CHECK;

#define COORD_UUID_TEXT 37 /* 8-4-4-4-12 lower-case hex digits and NUL */

/* A random UUID (RFC 9562, version 4). Returns out. */
char *coord_uuid_new(char out[COORD_UUID_TEXT], struct rng *r);

/* Builds and reads "uuid|epoch|layout": a UUID in its usual form, 36 characters, Unix ms, and the
 * layout's name. What is not read leaves both as they were. */
enum err_code coord_identity_make(char out[COORD_IDENTITY_MAX], struct span uuid, int64_t epoch_ms,
                                  const struct layout *layout, struct err *e) MUST_CHECK;
enum err_code coord_identity_read(const char *identity, int64_t *epoch_ms, struct layout *layout,
                                  struct err *e) MUST_CHECK;
/* Epoch and layout of two identities: what must be the same for their IDs to share a space. */
bool coord_same_space(const char *a, const char *b);

/* The operations; *r is always filled. Those that a driver does not offer answer COORD_REFUSED. */
void coord_idle(struct coord *c);
/* Where calls follow each other as closely as that, their connection is worth keeping for as long;
 * ms; 0: it is given up as soon as there is nothing to ask. */
int64_t coord_keep_ms(const struct coord *c);
/* Asks the server what it is set up to lose: enum coord_risk, or'ed; what it does not tell is no
 * risk. false: it gave no answer, and *out is as it was. */
bool coord_risks(struct coord *c, unsigned *out);
/* Whether the server takes writes, asked by one that changes nothing. Who has no right to write
 * learns nothing, which is COORD_OK. */
enum coord_status coord_writes(struct coord *c, struct coord_reply *r);
enum coord_status coord_describe(struct coord *c, struct coord_pool *pool, struct coord_reply *r);
enum coord_status coord_init(struct coord *c, const struct coord_init *in, struct coord_reply *r);
enum coord_status coord_claim(struct coord *c, const char *identity, int64_t caller_ms,
                              struct coord_token nxt, struct coord_grant *out,
                              struct coord_reply *r);
enum coord_status coord_renew(struct coord *c, const char *identity, const struct coord_caller *by,
                              struct coord_renewal *items, size_t n, struct coord_terms *terms,
                              struct coord_reply *r);
enum coord_status coord_release(struct coord *c, const char *identity,
                                const struct coord_release *item, struct coord_reply *r);
enum coord_status coord_evict(struct coord *c, const char *identity, uint16_t worker,
                              struct coord_reply *r);
/* moved: the pool is made again elsewhere. It stays so until coord_unclose. */
enum coord_status coord_close(struct coord *c, const char *identity, bool moved,
                              struct coord_reply *r);
/* Opens a pool that was closed, by an operator's word. lost_ahead_ms 0: it was made again nowhere,
 * which is refused where pool.moved. Else the one in its place is closed, and may have granted so
 * far ahead of its time, 1..COORD_AHEAD_MAX_MS: what it granted counts as lost, holders go on, and
 * others wait for that, or this pool's A + 2S if longer. An open pool stays as it is. */
enum coord_status coord_unclose(struct coord *c, const char *identity, int64_t lost_ahead_ms,
                                struct coord_reply *r);
/* n may be 0: what is none of the pool's goes out of the queue in any case. */
enum coord_status coord_repair(struct coord *c, const char *identity, const uint16_t *workers,
                               size_t n, struct coord_reply *r);
/* settle_ms: first_horizon_ms..horizon_ms. A shorter one counts once the one before it has passed.
 */
enum coord_status coord_settle(struct coord *c, const char *identity, int64_t settle_ms,
                               struct coord_reply *r);
/* An operator's word that nothing was lost at the latest reopening, whose floors are taken back. */
enum coord_status coord_nothing_lost(struct coord *c, const char *identity, struct coord_reply *r);
/* An operator's word that the coordinator's clock is right, and was ahead: a pool that grants
 * nothing until then goes on, if the caller's clock agrees with it. Said again it changes nothing.
 */
enum coord_status coord_clock_was_ahead(struct coord *c, const char *identity,
                                        struct coord_reply *r);
enum coord_status coord_snapshot(struct coord *c, struct coord_snapshot *out,
                                 struct coord_reply *r);

#endif
