/*
 * The blocks machine: which numbers of which sequences this process holds, and what it must ask of
 * the coordinator next.
 *
 *                 take                       stop
 *          FREE ---------> HELD --------------------------> LEAVING
 *            ^   granted    |                                  |
 *            '- used up, ---'                                  |
 *            |  revoked, not proven                            |
 *            '--------------------------------------- given back, or kept there
 *
 * Pure: (state, event, now) -> action, as lease.h. It holds what the coordinator granted; what of
 * it was given out is the serving loop's (ids/sequence.h), which says it by the marks in the page
 * (blockpage.h), and by blocks_want when it wants more.
 *
 * Invariants
 *   - The page knows first: a block is in the page before it is mailed, LEAVING before it is given
 *     back. What was taken for one request (whole, or strict) is in no page: killed, it is a gap.
 *   - A block that is LEAVING is never given out from again, in this life or the next.
 *   - Blocks of a page that was taken over are mailed once blocks_prove says so, and nothing is
 *     taken for their counters before: a number has no clock that would make an older `next`
 *     harmless, and what would be taken first would lie above them.
 *   - While it is not known what became of a take it is repeated with the same token, count and
 *     tickets: nobody who came later may share it. Each counter has one take under way, and one
 *     call is under way in all, which carries the wants of up to BLOCKS_ITEMS counters.
 *   - Of a crowd that wants more than there is, the largest request is asked for by itself, and all
 *     others arrive anew; so does who is refused, or got none. What nobody waits for any more
 *     is not asked for again.
 *   - An outcome is taken once, of the action that is under way: what comes late or twice changes
 *     nothing.
 *   - Numbers of one counter rise: what is granted below what this process was granted before, by
 *     the same definition and turn, is not used. So a store that went back repeats nothing here.
 *   - A change count is told with the opening in which it was heard, and as of an earlier one once
 *     there was another. Who answers that there is no such sequence has heard of it, and no other
 *     does.
 *   - Only what lies on top of its counter goes back: the block of the latest take, of this era and
 *     turn, and what lies below without a gap; told by that take's token.
 *   - Once a block is LEAVING the page needs a new generation before the coordinator hears of it,
 *     so that states of the page in which it was HELD are not taken over: gave_up.
 *
 * Numbers are told as indices (coord/seq_calls.h). Times: mono is monotonic ms.
 */
#ifndef SIDFLAKE_LEASE_BLOCKS_H
#define SIDFLAKE_LEASE_BLOCKS_H

#include "base/rng.h"
#include "coord/seq_calls.h"
#include "lease/blockpage.h"
#include "lease/heard.h"
#include "lease/templates.h"

#include <assert.h>

#define BLOCKS_ITEMS    SEQ_ITEMS_MAX      /* of one call */
#define BLOCKS_MAIL_MAX (5 * BLOCKS_ITEMS) /* from one event or outcome, and one next */
#define BLOCKS_SLOTS    2                  /* of a counter: what is in hand, and what follows */

struct blocks_config {
    unsigned counters; /* most at once, 1 .. */
    int64_t stop_ms;   /* longest that giving back may take */
    bool empty;        /* nothing is to be taken over: the slots are not even looked at */
};

/* What a counter's requests are refused with: an enum seq_how, or one of these. */
enum blocks_refusal {
    BLOCKS_AWAY = SEQ_HOWS, /* the coordinator doesn't answer, or not as it must: asked again */
    BLOCKS_SHUT,            /* the pool is closed: likewise */
    BLOCKS_BACK,            /* the store gives numbers that this process had before */
    BLOCKS_REFUSALS
};

/* What that means for who waits. */
enum blocks_kind {
    BLOCKS_NONE,  /* nothing is refused */
    BLOCKS_LATER, /* not yet: it ends by itself at a time that is known */
    BLOCKS_RETRY, /* again later */
    BLOCKS_NEVER, /* not before somebody does something about it */
    BLOCKS_MISS   /* there is no such sequence */
};

/* how: up to BLOCKS_REFUSALS - 1. */
enum blocks_kind blocks_kind_of(unsigned how);

enum blocks_action_kind {
    BLOCKS_IDLE, /* nothing before mono `until` but what an event may bring */
    BLOCKS_TAKE,
    BLOCKS_RETURN,
    BLOCKS_FINISHED /* stopped, and all that could be given back was */
};

/* Strings are the machine's, valid until its done. */
struct blocks_action {
    enum blocks_action_kind kind;
    int64_t until;        /* IDLE */
    uint32_t serial;      /* which one it is */
    struct seq_caller by; /* TAKE; its clock is set by who makes the call */
    struct seq_want wants[BLOCKS_ITEMS];
    struct seq_return returns[BLOCKS_ITEMS];
    uint32_t counter[BLOCKS_ITEMS];
    size_t nitems;
};

struct blocks_outcome {
    enum coord_status status;
    struct coord_reply reply;
    struct seq_grant grants[BLOCKS_ITEMS]; /* TAKE, where COORD_OK */
    enum seq_how how[BLOCKS_ITEMS];        /* RETURN, where COORD_OK */
    struct seq_opening opening;            /* TAKE, where COORD_OK */
};

enum blocks_mail_kind {
    BLOCKS_MAIL_KNOWN,   /* what the counter is of: start, increment, strict, periods */
    BLOCKS_MAIL_GRANT,   /* give out lo + given .. hi, above all blocks before */
    BLOCKS_MAIL_OWN,     /* lo..hi for who wanted them whole; strict: for tickets up to upto */
    BLOCKS_MAIL_REVOKE,  /* of that grant nothing above hi; handle 0: of the latest OWN */
    BLOCKS_MAIL_REFUSED, /* how, until */
    BLOCKS_MAIL_LOST,    /* of no counter, and of all: nothing that was granted */
    BLOCKS_MAIL_CLOSED   /* its place is free; of lease/sequences.h */
};

/* To the serving loop. */
struct blocks_mail {
    uint8_t kind; /* enum blocks_mail_kind */
    uint8_t how;
    bool strict;      /* KNOWN */
    bool keeps_on;    /* REFUSED: it is asked again without a further want */
    uint32_t counter; /* its place, 0 .. */
    uint32_t handle;  /* names one grant, never used again */
    uint32_t given;   /* GRANT: so many of it were given out before; OWN, strict, 1: it is for one
                         request, that wants as many; KNOWN, 1: with its template and `when`, which
                         the page has not */
    int64_t lo, hi;   /* KNOWN: its enum period_reset and offset; REFUSED, hi: who wants as many, or
                         more, lo, where used up: its highest index; WAIT: the rate of its line,
                         where that is asked for more than it allows; 0: not so */
    union {
        int64_t when;           /* OWN: upto; REFUSED: mono, until; KNOWN: subs that it may have */
        volatile uint64_t *own; /* GRANT: as mark, out of the file that others may write over */
    };
    union {
        int64_t start;
        int64_t beyond; /* GRANT, OWN: so many more it has behind the latest; -1: it never ends, or
                           not known */
    };
    int64_t increment;
    union {
        volatile uint64_t *mark;         /* GRANT: how many were given out, stored before each is */
        int64_t upto;                    /* REFUSED, strict: tickets up to it are */
        const struct template *template; /* KNOWN, given: NULL: it has none */
    };
};

struct blocks_want {
    int64_t count; /* numbers, 1..SEQ_BLOCK_MAX; more is asked for as that. Of a strict sequence: in
                      addition to what was wanted and not asked for so far */
    bool whole;    /* in a row, for one request; strict: or none of them */
    int64_t upto;  /* strict: tickets that are known */
    int64_t most;  /* strict: that one request wants, of count */
    bool look;     /* none, but to know what the sequence is: count is 0 */
};

struct blocks_slot {
    enum page_state state;
    bool unproven;
    uint32_t handle;
    struct coord_token token;
    int64_t gen, turn, era;
    int64_t n; /* changes of the counter, as told with it */
    int64_t lo, hi, start, increment;
    uint64_t definition;
    volatile uint64_t own; /* a mark: how many were given out, by who has it; 0: nobody has */
};

struct blocks_counter {
    bool open, known; /* known: what it is of */
    bool strict, cycle, queued;
    struct blocks_name of;
    const char *text; /* of the definition that it must have; "": any. The caller's */
    enum period_reset reset;
    int offset_min;
    int64_t start, increment;
    int64_t beyond;      /* as in a mail */
    uint64_t definition; /* seq_definition_hash */
    uint64_t whole;      /* hash of its text, template and all; 0: it was not heard, but is known by
                            the page; then back_ms is not known, nor … */
    const struct template *template;
    int64_t back_ms, subs;
    bool look;
    int64_t gen, turn, n, top; /* as last told; top: highest index + 1 granted to us in this turn */
    uint32_t told;             /* the opening in which gen and n were */
    struct blocks_want want;   /* count 0: nothing */
    struct blocks_want taking; /* what is asked with token; count 0: a look */
    bool taken;                /* it is under way, or to be repeated */
    struct coord_token token, latest;   /* latest: of the take that was granted last */
    int64_t own_turn, own_era, own_end; /* of the latest OWN, which may not be given out yet:
                                           highest index + 1; 0: there is none */
    struct blocks_slot slot[BLOCKS_SLOTS];
};

struct blocks {
    struct blocks_config conf;
    struct rng *rng;
    struct blockpage *page;
    char identity[COORD_IDENTITY_MAX]; /* the page's; the file may be written over */
    struct blocks_counter *counter;    /* conf.counters of them */
    struct templates templates;
    struct heard heard;
    uint32_t *line;        /* counters that want something, first come, first served: */
    uint32_t first, nline; /* a ring of conf.counters */
    uint32_t serial, handles;
    uint32_t under_way; /* serial of the action whose outcome is awaited; 0: none */
    struct seq_opening opening;
    uint32_t opened;   /* its number; 0: none is known */
    uint32_t unproven; /* first counter whose blocks may be unproven; conf.counters: none is */
    bool proven;       /* they may be mailed */
    bool gave_up;      /* a new generation of the page is due: whoever begins it clears this */
    int64_t call_due;  /* mono: no call before, after a failure */
    unsigned fails;    /* calls in a row that came to nothing */
    int64_t time_ms, time_mono; /* the coordinator's time by its latest answer; 0: none yet */
    bool stopping;
    int64_t stop_by; /* mono */

    struct blocks_mail mail[BLOCKS_MAIL_MAX];
    unsigned nmail;
};

/* page: of BLOCKS_SLOTS * conf->counters slots, formatted or judged PAGE_OWN, of the pool that will
 * be asked; it outlives the machine. What it holds is taken over, unproven. ERR_NOMEM. */
enum err_code blocks_init(struct blocks *b, const struct blocks_config *conf,
                          struct blockpage *page, struct rng *rng, int64_t mono,
                          struct err *e) MUST_CHECK;
void blocks_clear(struct blocks *b);

/* What to do now. May leave mails. */
void blocks_next(struct blocks *b, int64_t mono, struct blocks_action *a);

/* Tells what came of an action TAKE or RETURN; of another than is under way: ignored. */
void blocks_done(struct blocks *b, const struct blocks_action *a, const struct blocks_outcome *o,
                 int64_t mono);

/* ---- events ---------------------------------------------------------------------------------- */

/* The counter's place is used for it from here on. Whoever gives out chooses one that is not open;
 * of, text ("": any definition) are as in seq_want, text outlives it. */
void blocks_open(struct blocks *b, uint32_t counter, const struct blocks_name *of,
                 const char *text);

/* From here on it must have that definition: one that was taken over, or that was made again. */
void blocks_pin(struct blocks *b, uint32_t counter, const char *text);

/* Its place is free for another one: what is left of its blocks is a gap. false: a take is under
 * way, ask again later. */
bool blocks_close(struct blocks *b, uint32_t counter);

/* Before the first next: what was taken over at that place is not wanted. */
void blocks_forget(struct blocks *b, uint32_t counter);

/* The place of an open counter of that name; conf.counters: there is none. Looks at all of them. */
uint32_t blocks_find(const struct blocks *b, const struct blocks_name *of);

/* More is wanted. Nothing comes of it where the counter holds two blocks, or is of a sequence with
 * periods and names none; of what is wanted twice the latter counts. */
void blocks_want(struct blocks *b, uint32_t counter, const struct blocks_want *w);

/* What the page said is so: its blocks are mailed. Or no proof can come: they are dropped. */
void blocks_prove(struct blocks *b, bool so);

/* Another pool, of this identity, is the one that is asked: nothing that is held belongs to it, and
 * the page is empty. */
void blocks_lose(struct blocks *b, const char *identity);

/* No more takes. The loop gives out nothing any more. give_back: what can be given back is; all
 * else stays in the page for the next start. */
void blocks_stop(struct blocks *b, bool give_back, int64_t mono);

/* ---- what it knows --------------------------------------------------------------------------- */

/* What the page says may be passed on as it is. */
bool blocks_are_proven(const struct blocks *b);

/* The coordinator's time by its latest answer, Unix ms, a little late; 0: not known. */
int64_t blocks_time(const struct blocks *b, int64_t mono);

#endif
