/*
 * The world of one schedule: true time, a coordinator, a network, and nodes with sidecars on them.
 *
 *   node: clocks, a state page    process: generator <- mails -- lease machine -> calls -> network
 *
 * Invariants
 *   - Everything that happens follows from (seed, step number): each step draws from a stream of
 *     its own, so that a schedule can be replayed with steps left out.
 *   - The code under test is the real one; what is written anew here is only what ties it together
 *     (keeper.c, workers.c and bridge.c, whose threads and mailboxes become steps).
 *
 * Times are Unix ms of true time unless a name says otherwise.
 */
#ifndef SIDFLAKE_TESTS_SIM_WORLD_H
#define SIDFLAKE_TESTS_SIM_WORLD_H

#include "coord/seq_calls.h"
#include "ids/snowflake_ahead.h"
#include "sim/server.h"

#define WORLD_NODES   32
#define WORLD_FLIGHTS 48
#define WORLD_WORKERS 64 /* workerIds of all pools: 0..63 */
#define WORLD_EPOCH   LAYOUT_EPOCH_DEFAULT_MS
#define NODE_MAILS    256
#define NODE_RETIRED  64

/* What can be done to a world; names and weights are in fault.c. */
enum fault {
    FAULT_KILL,
    FAULT_KILL_TORN,
    FAULT_STOP,
    FAULT_TERM_RETURN,
    FAULT_TERM_KEEP,
    FAULT_UPGRADE,
    FAULT_PAGE_LOST,
    FAULT_PAGE_COPIED,
    FAULT_PAGE_OLD,
    FAULT_PAGE_BACK,
    FAULT_PAGE_CUT,
    FAULT_PAGE_FLIP,
    FAULT_PAGE_FULL,
    FAULT_REBOOT,
    FAULT_CLOCK_SMALL,
    FAULT_CLOCK_EDGE,
    FAULT_CLOCK_YEARS,
    FAULT_CLOCK_RIGHT,
    FAULT_CLOCK_ALL_BACK,
    FAULT_REDIS_EMPTY,
    FAULT_REDIS_SUFFIX,
    FAULT_REDIS_WHOLE,
    FAULT_REDIS_OLD,
    FAULT_REDIS_BEFORE,
    FAULT_REDIS_FLUSH,
    FAULT_REDIS_EVICT,
    FAULT_REDIS_FAILOVER,
    FAULT_REDIS_IN_PLACE,
    FAULT_FILE_IN_PLACE,
    FAULT_GROUP_CUT,
    FAULT_GROUP_SPLIT,
    FAULT_GROUP_FAILOVER,
    FAULT_GROUP_LACKS,
    FAULT_GROUP_TWICE,
    FAULT_GROUP_STALE,
    FAULT_GROUP_FOLLOW,
    FAULT_GROUP_DEPOSED,
    FAULT_GROUP_RESTART,
    FAULT_GROUP_SHORT,
    FAULT_GROUP_OLD_SHORT,
    FAULT_GROUP_OLD_COUNTS,
    FAULT_GROUP_MEANWHILE,
    FAULT_REDIS_CLOCK,
    FAULT_REDIS_CLOCK_WILD,
    FAULT_REDIS_CLOCK_DAY,
    FAULT_REDIS_CLOCK_AHEAD,
    FAULT_REDIS_DOWN,
    FAULT_QUEUE_DOUBLED,
    FAULT_QUEUE_LOST,
    FAULT_INDEX_LOST,
    FAULT_OP_SETTLE,
    FAULT_OP_WORD,
    FAULT_BET_WON,
    FAULT_INIT_SAME,
    FAULT_INIT_OTHER,
    FAULT_INIT_FRESH,
    FAULT_INIT_STRANGER,
    FAULT_OP_EVICT,
    FAULT_OP_REPAIR,
    FAULT_OP_CLOSE,
    FAULT_OP_OPEN,
    FAULT_WRONG_POOL,
    FAULT_PARTITION,
    FAULT_NET_LOST_REQUEST,
    FAULT_NET_LOST_REPLY,
    FAULT_NET_DOUBLED,
    FAULT_NET_LATE,
    FAULT_LIFE_NO_DIR,
    FAULT_LIFE_EPOCH_END,
    FAULT_LIFE_FLEET,
    FAULT_LIFE_REPLICAS,
    FAULT_LIFE_AUTO_INIT,
    FAULT_LIFE_FIXED,
    FAULT_FIXED_PAGE,
    FAULT_FIXED_N,
    FAULT_FIXED_REFUSED,
    FAULTS
};

/* From this seed on schedules have sequences, too. */
#define SEQS_FROM UINT64_C(1000000000)
/* From this one they have none again, and other layouts than the usual. */
#define LAYOUTS_FROM UINT64_C(2000000000)
/* From this one IDs are ahead of the clock as well: borrowed, or held when it steps back. */
#define AHEAD_FROM UINT64_C(3000000000)

/* What is counted of them; names are in seqs_fault.c. Those up to SEQS_FAULTS are faults. */
enum seqs_count {
    SEQS_SET,
    SEQS_SET_BACK,
    SEQS_DROP,
    SEQS_REUSE,
    SEQS_ALTER,
    SEQS_TEMPLATE,
    SEQS_SWEEP,
    SEQS_RESERVE,
    SEQS_REOPEN,
    SEQS_CREATE_AGAIN,
    SEQS_IN_PLACE,
    SEQS_CLOCK_DAY,
    SEQS_AREA_LOST,
    SEQS_AREA_OLD,
    SEQS_AREA_CUT,
    SEQS_AREA_FLIP,
    SEQS_AREA_BACK,
    SEQS_STATE_BACK,
    SEQS_STOP,
    SEQS_RETURN_LATE,
    SEQS_KILL_LEAVING,
    SEQS_REPLY_LOST,
    SEQS_KILL_TORN,
    SEQS_FAULTS,
    SEQS_LOST = SEQS_FAULTS,
    SEQS_DOUBLED,
    SEQS_REMADE,
    SEQS_PROVEN_TMPFS,
    SEQS_PROVEN_RENEWAL,
    SEQS_PROVEN_UPGRADE,
    SEQS_UNPROVEN,
    SEQS_ALIENS,
    SEQS_OTHER_POOL,
    SEQS_GIVEN,
    SEQS_GIVEN_STRICT,
    SEQS_GIVEN_WHOLE,
    SEQS_WENT_BACK,
    SEQS_COUNTS
};

/* How one life issued one grant. */
struct tenure {
    uint16_t worker;
    uint8_t node;
    bool used;
    uint32_t life, handle;
    int64_t first, last; /* times of its IDs, where used */
};

#define WORLD_TENURES 2048

/* A range that somebody may still issue in, or has issued in: both ends included. */
struct range {
    uint16_t worker;
    int64_t lo, hi;
};

#define NODE_RANGES (2 * LEASE_SLOTS)

enum keeper_phase {
    KEEPER_READY, /* to ask the lease machine */
    KEEPER_SEND,  /* an action is decided on, and what must be in the page is there */
    KEEPER_WAIT,  /* for the reply to call `serial` */
};

struct node {
    /* The machine. */
    int64_t wall_off, mono_off; /* its clocks less true time */
    struct page page;           /* the file's memory */
    struct page_home home;      /* of the machine and the file now */
    bool has_dir, has_file;
    bool cut;            /* the file was truncated */
    uint64_t generation; /* of the page: which file stands beside it; 0: none */
    struct page backup;
    bool has_backup;
    bool refused; /* to start, because of its page: static:N alone */
    bool back;    /* the page is an older one, put back in place: not to be believed unproven */
    struct page handed; /* as the program before left it … */
    bool proof; /* … to the one that starts now, with its word that all of it was proven */
    bool heir;  /* that is the next program in the same process */
    bool wrong_pool, partitioned;
    bool renewed; /* the coordinator has run a renewal of it since it was reopened */
    uint8_t side; /* the member of the coordinator that it talks to */

    /* What its holder was granted per workerId, as told by replies: I2's yardstick. */
    struct range granted[WORLD_WORKERS];
    struct range
        before[WORLD_WORKERS]; /* the grant before: the loop may not have heard of its end */

    /* The process. */
    bool alive;
    bool stopping;            /* SIGTERM: nothing is issued any more */
    bool stop_due, give_back; /* … and the keeper is yet to be told */
    int64_t stopped_until;    /* SIGSTOP; 0: runs */
    uint32_t life;
    struct pagefile file;
    struct lease lease;
    struct snowflake gen;
    struct snowflake_ahead ahead;
    struct snowflake_trust trust;
    bool gen_started;
    struct lease_mail mail[NODE_MAILS];
    unsigned mails;
    uint32_t retired[NODE_RETIRED];
    unsigned nretired;
    bool urge_renewal, urge_claim;
    enum keeper_phase phase;
    struct lease_action action;
    uint32_t serial;
    int64_t due_mono;                  /* READY: when the lease machine wants to be asked again */
    int16_t tenure[SNOWFLAKE_MEMBERS]; /* by handle % LEASE_SLOTS; -1: none */
    uint32_t tenure_of[SNOWFLAKE_MEMBERS];
    uint64_t last_id; /* latest of this life; with hold also of those before that its page tells */
};

/* A call on its way: to the server, or its reply back. */
struct flight {
    bool used, answered;
    bool running; /* the server has it */
    bool other_pool;
    uint8_t side; /* the member that it goes to */
    uint8_t node;
    uint32_t life, serial;
    struct server_call call;
};

/* The settings of a schedule, drawn from its seed. */
struct setting {
    struct coord_params params;
    struct lease_config lease;
    int64_t settle_ms; /* of the pool; 0: the horizon */
    int64_t wait_below_ms;
    unsigned nodes, steps;
    bool sqlite;
    bool fixed;                 /* static:N, and no coordinator */
    bool borrow, hold;          /* lease.ahead: IDs are ahead of the clock */
    unsigned replicas;          /* of the coordinator; 0: a single one, and K = 0 */
    unsigned catch_up_percent;  /* of replicas, each time one could */
    unsigned meanwhile_percent; /* of waits for replicas: something else happens */
    unsigned astray_percent;    /* of calls: the node asks another master from now on */
    unsigned stale_percent;     /* of promotions of a replica that follows a deposed master */
    uint8_t weight[FAULTS];     /* 0: never in this schedule */
    unsigned fault_percent;     /* of steps */
    unsigned copies_percent;    /* of calls: they leave a copy behind, which is run later */
};

struct stats {
    uint64_t schedules, failures, steps, ids, calls;
    uint64_t fault[FAULTS];
    uint64_t grants, renewals[4], rotations, takeovers, proven;
    uint64_t ahead; /* IDs of times above the clock */
    uint64_t status[COORD_DOWN + 1];
    uint64_t seqs[SEQS_COUNTS], seq_how[SEQ_HOWS];
    uint64_t digest; /* sum over the schedules */
};

struct world {
    uint64_t seed;
    unsigned step;
    struct rng rng;
    uint64_t stream; /* state of rng */
    struct setting set;
    int64_t now;
    struct server *server, *other;
    char identity[COORD_IDENTITY_MAX], other_identity[COORD_IDENTITY_MAX];
    int64_t down_until;
    int64_t least_ms; /* the shortest settle that the pool had; 0: none but the horizon */
    bool wild;       /* the server's clock was wrong by more than S: nothing may be lost any more */
    bool lossy;      /* something was lost: its clock must stay within S */
    unsigned losses; /* how often that may have been */
    bool layouts;    /* the schedule draws a layout */
    bool ahead;      /* and how IDs are ahead of the clock */
    bool unheard;    /* what a bet gives up is done as well, and breaks I1: expected to fail */
    int64_t word_era; /* began with a restart that lost nothing; 0: none did, or something was */
    int64_t fence_ms; /* the latest time that its clock has shown, being ahead of it with others */
    bool no_pool;     /* as far as the operator knows */
    bool waiting;     /* a call waits for replicas, and others are made meanwhile */
    struct node node[WORLD_NODES];
    struct flight flight[WORLD_FLIGHTS];
    struct tenure tenure[WORLD_TENURES];
    unsigned ntenure;
    uint64_t inodes;
    uint64_t digest; /* of what was answered and issued so far */
    bool failed;
    char why[256];
    bool trace;
    struct seqs *seqs; /* NULL: the schedule has none */
    struct stats *stats;
};

/* ---- world.c: time, chance, the record of what happens ----------------------------------------
 */

uint64_t world_draw(struct world *w, uint64_t bound); /* 0..bound-1 */
bool world_chance(struct world *w, unsigned percent);
int64_t world_between(struct world *w, int64_t from, int64_t to);
void world_fail(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void world_note(const struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void world_count(struct world *w, enum fault f);
void world_digest(struct world *w, uint64_t what);

struct node *world_some_node(struct world *w); /* by chance */
unsigned node_number(const struct world *w, const struct node *n);

/* The clocks of a node. */
int64_t node_wall(const struct world *w, const struct node *n);
int64_t node_mono(const struct world *w, const struct node *n);

/* A moment at which something turns, give or take a margin of the protocol: of a random node's
 * ranges, the pool's floors, a record. true time, as whose clock is told by *off (its offset). */
int64_t world_edge(struct world *w, int64_t *off);

/* ---- node.c: a machine and the process on it --------------------------------------------------
 */

void node_start(struct world *w, struct node *n);
void node_kill(struct world *w, struct node *n);
void node_upgrade(struct world *w, struct node *n); /* while its keeper has no call under way */
bool node_runs(const struct world *w, const struct node *n);

/* Whether what stands in its page is taken over at its next start. */
bool node_page_is_own(const struct node *n);

/* The keeper thread: one phase on. */
void node_keep(struct world *w, struct node *n);

/* A reply, or none (call NULL: timed out). */
void node_answer(struct world *w, struct node *n, const struct server_call *call);

/* Has the keeper run, or take an answer (may be NULL), such that only a part of what it stores
 * reaches the page before a SIGKILL. */
void node_kill_torn(struct world *w, struct node *n, const struct server_call *call);

/* The loop thread: some of the mails; then requests for IDs. */
void node_serve(struct world *w, struct node *n);
void node_term(struct world *w, struct node *n, bool give_back);

/* ---- ledger.c: the invariants -----------------------------------------------------------------
 */

void ledger_clear(void);

/* The page of a dead node, its home or what becomes of it may have changed: to be told after a
 * death and after a fault. */
void ledger_pages_changed(void);

/* All that node n may still issue in, by generator, lease or page. */
unsigned ledger_ranges(const struct world *w, const struct node *n, struct range out[NODE_RANGES]);

/* I1: what n may issue in is disjoint from what others may issue in, and from what was issued. */
void ledger_check(struct world *w, struct node *n);

/* The latest time at which n issued, in any life; 0: never. */
int64_t ledger_latest(const struct world *w, const struct node *n);

/* I1 for a range that is on its way to n. */
void ledger_check_range(struct world *w, const struct node *n, const struct range *r);

/* I2, and no ID twice. */
void ledger_issued(struct world *w, struct node *n, uint64_t first, uint32_t count, int64_t now);

void ledger_open(struct world *w, struct node *n, const struct lease_mail *m);

/* ---- net.c ------------------------------------------------------------------------------------
 */

void net_send(struct world *w, struct node *n);
bool net_step(struct world *w); /* one call or reply, by chance; false: none */
void net_round_trip(struct world *w, struct node *n); /* the call of n, at once */

/* ---- fixed.c: static:N. home.coordinator is N --------------------------------------------------
 */

/* The nodes of such a schedule, and what happens to them. */
void fixed_place(struct world *w);

/* A call of n, by its own driver. */
void fixed_run(struct world *w, struct node *n, struct server_call *c);

/* Starts n, with what an operator does about a page that is refused. */
void fixed_start(struct world *w, struct node *n);

/* ---- failover.c: the coordinator's replicas ---------------------------------------------------
 */

/* Has calls and faults go to some master from now on. */
void failover_choose(struct world *w);

/* The member that n sends its next call to. */
uint8_t failover_side(struct world *w, struct node *n);

/* The server's question whether replicas have what was written. */
bool failover_acknowledged(void *world, struct member *m, uint64_t written, uint32_t n);

/* Faults. */
bool failover_cut(struct world *w);
bool failover_split(struct world *w);
bool failover_clean(struct world *w);
bool failover_follow(struct world *w);
bool failover_restart(struct world *w);

/* ---- fault.c, schedule.c ----------------------------------------------------------------------
 */

extern const char *const fault_names[FAULTS];
void fault_draw_weights(struct world *w);
void fault_draw_rewinds(struct world *w);   /* the same for a schedule that is about those alone */
void fault_heal_pool(struct world *w);      /* the operator makes the missing pool again */
void fault_draw_failovers(struct world *w); /* … about replicas */
void fault_do(struct world *w, enum fault f);
void fault_step(struct world *w); /* some fault */

/* A step of those that can happen while a call waits for replicas. */
void schedule_meanwhile(struct world *w);

/* A world before its first step, with these settings; NULL: with some drawn from the seed. */
void schedule_begin(struct world *w, uint64_t seed, const struct setting *given);

/* The keeper of n, from its decision to the answer. */
void schedule_keep(struct world *w, struct node *n);

/* Life without faults up to `end`, in at most that many turns. */
void schedule_live(struct world *w, int64_t end, unsigned turns);

/* Runs the schedule of a seed, without the steps for which skip (may be NULL) is set. */
void schedule_run(struct world *w, uint64_t seed, const uint8_t *skip);

#endif
