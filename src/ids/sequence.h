/*
 * The numbers of one counter that are in hand: given out in order, and more of them asked for in
 * time.
 *
 *        block[0]                block[1]
 *   |#####....look.....|   |..................|        own: |.....|  n in a row, for who asked
 *    given ^next       ^hi  lo              hi                      for more than is in hand
 *
 * Pure: it is told the time, and calls nobody. What it asks for is taken from it by sequence_asks;
 * what comes of that it is told by sequence_grant, sequence_own, sequence_refuse, sequence_revoke.
 *
 * Invariants
 *   - Indices that are given out rise. What lies below one that was given out is dropped, in its
 *     mark too, before that one is returned.
 *   - Each block's mark holds how many of its numbers were given out, or dropped, before they are
 *     returned: one 8-byte store.
 *   - More is asked for when what is in hand lasts less than `lasts_ms` at the present rate. That
 *     is looked at when numbers are taken: there is no timer.
 *   - One ask stands at a time; of a strict sequence those that follow add up.
 *   - Strict: a number goes only to a request whose ticket was known when its block was asked for.
 *
 * Counts and indices are 0..2^53 - 1; mono is monotonic ms.
 */
#ifndef SIDFLAKE_IDS_SEQUENCE_H
#define SIDFLAKE_IDS_SEQUENCE_H

#include "base/mark.h"

#include <stddef.h>

#define SEQUENCE_TOP   INT64_C(9007199254740991) /* highest index */
#define SEQUENCE_FIRST 10                        /* numbers of the first block */
#define SEQUENCE_FEW   100                       /* who wants no more is not behind who does */

#define SEQUENCE_ROW_MAX 1000000 /* numbers in a row, and of one call for a strict sequence */

struct sequence_block {
    int64_t lo, next, hi;    /* indices; next is hi + 1 when all are given out */
    uint32_t handle;         /* names the grant */
    volatile uint64_t *mark; /* next - lo, by base/mark.h; whoever grants owns it, and … */
    volatile uint64_t *own;  /* … the same once more, for itself; NULL: it wants none */
};

static inline void sequence_mark(const struct sequence_block *b, int64_t given)
{
    mark_store(b->mark, given);
    mark_store(b->own, given);
}

/* What is left of a block that is in no page: of one for whoever wanted it in a row, or, strict,
 * for all who had arrived before it was asked for. Of these one may come while the one before is
 * being handed out. */
#define SEQUENCE_OWN 2
struct sequence_own {
    int64_t lo, n; /* n 0: nothing */
    int64_t upto;  /* strict: the last ticket that it is for */
    bool whole;    /* strict: it is for one request, that wants as many */
};

/* What is to be had, and for whom. */
struct sequence_ask {
    int64_t count; /* numbers, at least 1; of a strict sequence: more than before */
    bool whole;    /* all of them in a row, for one request; strict: or none of them */
    int64_t upto;  /* strict: tickets up to it are known */
    int64_t most;  /* strict: of one request, out of count */
};

enum sequence_status {
    SEQUENCE_OK,
    SEQUENCE_EMPTY,  /* more was asked for: wait */
    SEQUENCE_REFUSED /* sequence.refused says why */
};

struct sequence_refusal {
    unsigned cause; /* of whoever refuses; 0: none */
    bool stands;    /* nothing changes it by itself; of a count: there are no more up to the end */
    int64_t until_ms; /* mono: then it is worth asking again */
    int64_t count;    /* who wants so many, or more, is refused; 1: everybody */
    int64_t upto;     /* strict: the last ticket that it is for */
};

struct sequence {
    struct sequence_block block[2]; /* [0] is given out from */
    unsigned nblocks;
    int64_t look; /* index of block[0] from which on the long way is taken; at most hi + 1 */
    int64_t start, increment;
    int64_t lasts_ms, max; /* how long a block is to last; most numbers of one */
    bool strict;

    struct sequence_own own[SEQUENCE_OWN]; /* in the order in which they came */
    int64_t tickets;                       /* strict: given so far */
    int64_t answered;                      /* strict: the last ticket that something has come of */
    int64_t given;                         /* numbers in all, but for those since `counted` */
    int64_t dropped; /* numbers that nobody will have, but for those of a grant that is revoked or
                        let go: whoever granted them counts these */

    int64_t counted;  /* index up to which they are counted */
    int64_t since_ms; /* since then … */
    int64_t taken;    /* … so many were given out, counted likewise; */
    double rate;      /* before that so many a ms */
    struct sequence_since {
        int64_t mono, given;
    } since[2];   /* what the pace is taken from: the one before, and the latest */
    int64_t size; /* of the latest block asked for; 0: none was */

    struct sequence_ask ask; /* not taken yet; count 0: none */
    bool asked;              /* one stands, taken or not … */
    bool awaited;            /* … and somebody waits for what comes of it; not of a strict one */
    int64_t few;  /* so many are wanted by who wants few, and waits for what others asked for; */
    int64_t kept; /* of the block in hand so many, the last, are for who wants few */
    struct sequence_refusal refused;
};

/* lasts_ms, max (1..): as the fields. Its definition follows by sequence_define. */
void sequence_init(struct sequence *s, int64_t lasts_ms, int64_t max, int64_t mono);
void sequence_define(struct sequence *s, int64_t start, int64_t increment, bool strict);

static inline int64_t sequence_number(const struct sequence *s, int64_t index)
{
    return s->start + index * s->increment;
}

/* The usual case: n more (1..) of the block in hand. false: take the long way. */
static inline bool sequence_more(struct sequence *s, int64_t n, int64_t *index)
{
    struct sequence_block *b = &s->block[0];
    if (n > s->look - b->next)
        return false;
    *index = b->next;
    b->next += n;
    sequence_mark(b, b->next - b->lo);
    return true;
}

/* n (1..max) indices in a row, from *index on, all of them or none. Not of a strict one. */
enum sequence_status sequence_next(struct sequence *s, int64_t mono, int64_t n, int64_t *index);

/* 1..most indices in a row, as many as are at hand. */
enum sequence_status sequence_some(struct sequence *s, int64_t mono, int64_t most, int64_t *index,
                                   int64_t *n);

/* That so many can't be had is what was heard last, be it time to ask again or not. */
bool sequence_refuses(const struct sequence *s, int64_t n);

/* Strict: a request for n has arrived. Its ticket, with which it asks as often as it has to; of
 * whom nothing has come by then it is another one. _some: 1..most, fewer only where there are no
 * more up to the end. */
int64_t sequence_arrive(struct sequence *s, int64_t n);
/* false: it would be refused at once. What it wants is not asked for, or others, who are asked for
 * in the same call, were refused with it. */
bool sequence_may_arrive(const struct sequence *s, int64_t mono, int64_t n);
enum sequence_status sequence_strict(struct sequence *s, int64_t mono, int64_t *ticket, int64_t n,
                                     int64_t *index);
enum sequence_status sequence_strict_some(struct sequence *s, int64_t mono, int64_t *ticket,
                                          int64_t most, int64_t *index, int64_t *n);

/* So many more, or as many as there is room for, that want n each share the latest ticket. false:
 * there is no room, or what that wants is under way. */
bool sequence_expect(struct sequence *s, int64_t requests, int64_t n);

/* s takes before's place: numbers are wanted at the rate and pace, and in blocks, of that. */
void sequence_follow(struct sequence *s, const struct sequence *before, int64_t mono);

/* Asks for a first block before anybody wants a number. */
void sequence_prepare(struct sequence *s);

/* What is to be asked for now; false: nothing. */
bool sequence_asks(struct sequence *s, struct sequence_ask *out);

/* A block, above all of those before; next: its first number that was not given out yet. What does
 * not fit is dropped, in its mark too. */
void sequence_grant(struct sequence *s, int64_t mono, const struct sequence_block *granted);

/* lo..hi for one request that wanted them whole; of a strict one, for tickets up to upto, or,
 * whole, for one of them that wants as many. */
void sequence_own(struct sequence *s, int64_t lo, int64_t hi, int64_t upto, bool whole);

/* The ask came to nothing. keeps_on: it stands all the same, and is repeated. */
void sequence_refuse(struct sequence *s, const struct sequence_refusal *r, bool keeps_on);

/* Of that grant nothing above hi is given out any more; handle 0: of what sequence_own told, which
 * is dropped where it has any. */
void sequence_revoke(struct sequence *s, uint32_t handle, int64_t hi);

/* Nothing of what is in hand is given out any more; what is left may go back. */
void sequence_let_go(struct sequence *s);

/* Whether what a strict one asks for can wait until all who were told of numbers have had their
 * turn: of what came for them one block is being handed out, and the next one is there; or a call
 * is kept for those who want few, who may not have arrived anew yet. */
bool sequence_may_wait(const struct sequence *s);

/* Numbers in hand, those that were taken for one request not included; and given out so far. */
int64_t sequence_left(const struct sequence *s);

/* Index of the last number that is in hand: blocks need not adjoin. -1: none is. */
int64_t sequence_last(const struct sequence *s);
int64_t sequence_given(const struct sequence *s);

/* Numbers a ms of the latest hours, be there bursts and breaks in them. */
double sequence_pace(const struct sequence *s, int64_t mono);

#endif
