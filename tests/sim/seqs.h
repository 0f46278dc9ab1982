/*
 * Sequences in a world: beside its workerIds each node holds blocks of a few of them.
 *
 *   node: an area of its state page    process: ids/sequence <- mails -- blocks machine -> calls
 *
 * Only schedules of seeds from SEQS_FROM on have them. Without, nothing here draws by chance, and
 * so the schedules of other seeds are what they were before there were sequences.
 *
 * Invariants
 *   - As in world.h: all that happens follows from (seed, step number), and the code under test is
 *     the real one; what is written anew is only what ties it together: the supply of blocks, and
 *     the loop's side with its table of counters.
 *   - The two supplies of a node call the coordinator independently of each other, which is more
 *     than a keeper does, whose calls come one after another.
 *
 * What is checked is at the end of this file. Times are Unix ms of true time unless a name says
 * otherwise; numbers are told as indices (coord/seq_calls.h).
 */
#ifndef SIDFLAKE_TESTS_SIM_SEQS_H
#define SIDFLAKE_TESTS_SIM_SEQS_H

#include "ids/sequence.h"
#include "lease/blocks.h"
#include "sim/world.h"

#define SEQS_SPECS    3
#define SEQS_VERSIONS 6 /* definitions that one name has, one after another */
#define SEQS_SUBS     3
#define SEQS_PLACES   8 /* counters of a node at once */
#define SEQS_WAITING  5 /* requests of a strict one at once */
#define SEQS_NOTES    4
#define SEQS_MAILS    128
#define SEQS_FLIGHTS  48
#define SEQS_ALIEN    SEQS_VERSIONS /* added to the number of a version: what is no right cache */

#define SEQS_SLOTS (SEQS_PLACES * BLOCKS_SLOTS)
#define SEQS_AREA  (1024 + SEQS_SLOTS * 768)

/* A name, with the definitions that operators gave it. */
struct seqs_spec {
    char name[8];
    struct seq_create version[SEQS_VERSIONS], alien[SEQS_VERSIONS];
    char text[2 * SEQS_VERSIONS][SEQ_TEXT_MAX]; /* those of alien behind the others */
    unsigned versions;                          /* the latest is the one that is configured */
    bool dropped;                               /* as far as the operators know */
    bool has_alien;      /* some nodes have another definition in their cache */
    bool is_void;        /* an operator's word was not kept: nothing is promised any more */
    int64_t back_turn;   /* set back in this turn; 0: never */
    int64_t turns;       /* the highest turn that an operator ever began, on any branch */
    unsigned losses;     /* of the world, when it was */
    unsigned dropped_at; /* likewise */
    unsigned reused_at[SEQS_VERSIONS]; /* when the tombstone was made that this version is behind */
    int64_t top[SEQS_VERSIONS];        /* the highest index that max ever allowed */
    int64_t highest;                   /* index + 1 that was granted to anybody, ever */
};

/* What a place knows of a grant: whose numbers they are. */
struct seqs_note {
    int64_t lo, hi, turn, era;
    struct coord_token token;
    uint64_t definition;
};

struct seqs_request {
    int64_t ticket, n; /* ticket 0: none waits */
    int64_t floor;  /* highest index that somebody had been answered when it came; -1: none … */
    const void *of; /* … of what, of the ledger: it may be another definition that answers */
};

/* A counter that a process gives out from. */
struct seqs_place {
    bool open, open_due, closing, close_due, want_due;
    unsigned spec, sub;
    unsigned text; /* the version that is meant; SEQS_ALIEN added where it is one */
    bool has_text; /* or else whichever is there */
    char period[PERIOD_LABEL_MAX];
    bool known;
    enum period_reset reset;
    int offset_min;
    struct sequence s;
    struct blocks_want want;
    struct seqs_request waiting[SEQS_WAITING];
    /* Of the latest blocks; and of what came by OWN, the latest first; hi below lo: none. */
    struct seqs_note note[SEQS_NOTES], own[SEQUENCE_OWN];
    unsigned notes;
    struct seq_revoked told; /* of what was revoked, once all mails about it were read */
};

struct seqs_mail {
    struct blocks_mail m;
    struct seqs_note note; /* GRANT and OWN, … */
    int64_t revoked; /* … in what turn the coordinator that granted it knew of a revocation */
};

/* The file: what a copy of it has. */
struct seqs_area {
    _Alignas(8) uint8_t bytes[SEQS_AREA];
    uint64_t generation; /* that it says it is of */
    int64_t noted_ctime; /* of the file, when it was formatted */
    struct seqs_witness {
        bool known;
        unsigned slot; /* of workerIds, whose token the coordinator has answered */
        struct coord_token token;
    } witness;
};

struct seqs_holder {
    /* The machine. */
    bool has_file, tmpfs;
    struct seqs_area area;
    uint64_t generation; /* that stands outside it */
    uint64_t inode;
    int64_t ctime;
    unsigned returns; /* give-backs that were sent, … */
    bool has_backup;
    unsigned backup_returns; /* … and had been */
    unsigned backup_losses;  /* of the world, by then */
    struct seqs_area backup;
    struct page backup_page;      /* of workerIds, at that time */
    struct seqs_area handed;      /* as the program before left it … */
    bool proof, heir;             /* … proven, to one in the same process */
    unsigned version[SEQS_SPECS]; /* of the definitions in its configuration, since its start */
    bool alien[SEQS_SPECS], texts;

    /* The process. */
    struct blocks b;
    bool has_b;
    bool settled;                          /* what the page says is proven, or dropped */
    struct coord_token found[LEASE_SLOTS]; /* of workerIds, in the page at the start … */
    enum seqs_word {
        SEQS_UNHEARD,
        SEQS_LATEST, /* … which nobody has renewed since */
        SEQS_DENIED,
    } word[LEASE_SLOTS];
    struct seqs_witness witness; /* of the area, at the start */
    bool back;                   /* the whole page was put back … */
    unsigned back_losses;        /* … when the world had had so many losses */
    bool finished;
    struct seqs_mail mail[SEQS_MAILS];
    unsigned mails;
    struct seq_revoked told[SEQS_PLACES]; /* by answers */
    struct seqs_place place[SEQS_PLACES];
    enum keeper_phase phase;
    struct blocks_action action;
    uint32_t serial;
    int64_t due_mono;
};

enum seqs_kind {
    SEQS_TAKE,
    SEQS_RETURN,
    SEQS_CREATE
};

/* A call with copies of all that it names. */
struct seqs_call {
    enum seqs_kind kind;
    struct blocks_action action;
    struct blocks_name of[BLOCKS_ITEMS];
    char text[BLOCKS_ITEMS][SEQ_TEXT_MAX];
    struct seq_create create;
    unsigned spec; /* CREATE */
    char identity[COORD_IDENTITY_MAX];
    int64_t wall_ms; /* the caller's clock when it asked */
    struct blocks_outcome outcome;
};

struct seqs_flight {
    bool used, answered, running;
    uint8_t side, node;
    uint32_t life, serial;
    struct seqs_call call;
};

struct seqs {
    struct seqs_spec spec[SEQS_SPECS];
    unsigned specs;
    int64_t lasts_ms, cache_max;
    int64_t called; /* when the latest call came to the server; it may have waited for replicas */
    unsigned sizes; /* of requests: how large they can be */
    uint8_t weight[SEQS_COUNTS]; /* of faults */
    struct seqs_holder holder[WORLD_NODES];
    struct seqs_flight flight[SEQS_FLIGHTS];
};

static inline struct seqs_holder *seqs_of(const struct world *w, const struct node *n)
{
    return &w->seqs->holder[n - w->node];
}

static inline struct blockpage *seqs_page(struct seqs_area *a)
{
    return (struct blockpage *)(void *)a->bytes;
}

extern const char *const seqs_names[SEQS_COUNTS];
void seqs_count(struct world *w, enum seqs_count c);

/* ---- what the world calls; each does nothing without sequences ------------------------------ */

void seqs_begin(struct world *w); /* behind the pool's making */
void seqs_started(struct world *w, struct node *n);
void seqs_killed(struct world *w, struct node *n);
void seqs_handed(struct world *w, struct node *n);
void seqs_told_to_stop(struct world *w, struct node *n);
bool seqs_finished(const struct world *w, const struct node *n);
void seqs_renewed(struct world *w, struct node *n, const struct lease_action *a,
                  const struct lease_outcome *o);
/* Its keeper and its loop, without faults. */
void seqs_live(struct world *w, struct node *n);
/* The keeper of n, from its decision to the answer. */
void seqs_keep(struct world *w, struct node *n);
void seqs_serve(struct world *w, struct node *n);
/* A step of the schedule that is about sequences; false: it is not. */
bool seqs_step(struct world *w);
/* The pool was made anew by mistake: where that was not noticed, nothing is promised. */
void seqs_made_fresh(struct world *w);

/* ---- seqs_keeper.c --------------------------------------------------------------------------- */

void seqs_keep_once(struct world *w, struct node *n); /* one phase on */
void seqs_answer(struct world *w, struct node *n, const struct blocks_action *a,
                 const struct blocks_outcome *o);
void seqs_time_out(struct world *w, struct node *n);
/* Has the keeper run, or take an answer (may be NULL), such that only a part of what it stores
 * reaches the area before a SIGKILL. */
void seqs_kill_torn(struct world *w, struct node *n, const struct seqs_call *call);
bool seqs_area_is_own(const struct world *w, const struct node *n);

/* ---- seqs_loop.c ----------------------------------------------------------------------------- */

/* Most of those who wait for strict numbers have waited long enough. */
void seqs_hang_up(struct world *w, struct node *n);
/* A request of somebody for a number of that counter. */
void seqs_request(struct world *w, struct node *n, const struct blocks_name *of);

/* ---- seqs_net.c ------------------------------------------------------------------------------ */

void seqs_send(struct world *w, struct node *n);
void seqs_send_create(struct world *w, struct node *n, unsigned spec, unsigned text);
bool seqs_net_step(struct world *w);
void seqs_round_trip(struct world *w, struct node *n);
/* What n is about to send, or has sent, as a call of its own; and the server runs it, which nobody
 * hears of. */
void seqs_copy_call(struct world *w, const struct node *n, struct seqs_call *c);
void seqs_run_copy(struct world *w, struct seqs_call *c);
/* Which of them has this name. */
unsigned seqs_spec_of(const struct world *w, const char *name);
/* Before any other, the server runs what n is about to send. */
enum coord_status seqs_call_first(struct world *w, struct node *n);

/* ---- seqs_operator.c, seqs_fault.c ----------------------------------------------------------- */

void seqs_draw(struct world *w); /* settings; makes the sequences */
void seqs_fault(struct world *w);

/* ---- seqs_ledger.c: what must hold ----------------------------------------------------------- */

void seqs_ledger_clear(void);

/* The server, on behalf of n or of an operator (NULL), grants lo..hi of a counter at now: never
 * above the line, before the beginning or for a period that is not open. */
void seqs_ledger_granted(struct world *w, unsigned spec, const struct seq_grant *g);

/* The same, told again: it may not have been heard before. */
void seqs_ledger_again(struct world *w, unsigned spec, const struct seq_grant *g);

/* n numbers from index on are given out: never twice within a definition of the name, since it was
 * set back, sub and period; each node's rise; none of a block that went back, or was revoked.
 * strict: the request; NULL where it is not of a strict one. */
void seqs_ledger_given(struct world *w, const struct node *n, const struct seqs_place *p,
                       const struct seqs_note *note, int64_t index, int64_t count,
                       const struct seqs_request *strict);

/* An operator took them for himself. */
void seqs_ledger_reserved(struct world *w, unsigned spec, const struct seq_grant *g);

/* A request of a strict one comes: what had been answered by then. */
void seqs_ledger_asked(struct world *w, const struct seqs_place *p, struct seqs_request *r);

/* The server took back lo..hi of a block: nobody was given one of them. */
void seqs_ledger_returned(struct world *w, unsigned spec, const struct seq_return *r);

#endif
