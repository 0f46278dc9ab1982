/*
 * The places of counters: what the loop has told of each, and what of that the blocks machine
 * cannot be told yet.
 *
 *     told (by the loop, under the keeper's lock) --- hear ---> busy --- settle ---> machine
 *                                                                '-- CLOSED
 *
 * Invariants
 *   - Each place is in each list once at most; memory of places that nobody uses is not touched.
 *   - A counter of a sequence that the configuration defines is opened, and wants something, once
 *     it is known what the pool has by that name.
 *   - settle and refuse_held post PLACES_MAILS at most.
 */
#ifndef SIDFLAKE_LEASE_PLACES_H
#define SIDFLAKE_LEASE_PLACES_H

#include "lease/blocks.h"
#include "lease/defined.h"
#include "lease/supply.h"

#define PLACES_MAILS BLOCKS_MAIL_MAX

struct told {
    struct blocks_name of;
    struct blocks_want want;
    bool open, wants, close, listed;
};

struct counter_place {
    struct blocks_name of;
    struct blocks_want want; /* held back, where wants */
    size_t defined;          /* DEFINED_NONE: not by the configuration */
    bool used, open;         /* open: in the machine */
    bool wants, closing, listed;
};

struct places {
    uint32_t counters;
    size_t bytes; /* of the memory, which begins at told: */
    struct told *told;
    struct counter_place *v;
    uint32_t *told_list, *busy;
    uint32_t ntold, nbusy;
    uint32_t nwait; /* places that are not open in the machine */
};

enum err_code places_init(struct places *p, uint32_t counters, struct err *e) MUST_CHECK;
void places_clear(struct places *p);

/* From the loop. */
void places_tell_open(struct places *p, uint32_t i, const struct blocks_name *of);
void places_tell_want(struct places *p, uint32_t i, const struct blocks_want *w);
void places_tell_close(struct places *p, uint32_t i);

/* What was told becomes the places'. */
void places_hear(struct places *p, const struct defined *d);

/* The counters that a machine has taken over. */
void places_found(struct places *p, const struct blocks *b, const struct defined *d);

void places_forget(struct places *p, uint32_t i);

/* Tells the machine (NULL: there is none yet) what it can be told by now; *dropped: numbers of what
 * was closed. true: there is more, once the mails are taken. */
bool places_settle(struct places *p, struct blocks *b, struct defined *d, struct supply *s,
                   int64_t mono, int64_t *dropped);

/* The machine's mails become the supply's. */
void places_post(struct blocks *b, struct supply *s);

/* Whether some place is not open in the machine. */
bool places_wait(const struct places *p);

/* The want goes to the machine when it is known what the pool has. */
void places_hold(struct places *p, uint32_t i, const struct blocks_want *w);

/* After a take, as it was answered, and what was wanted before: what the pool lacks is made again
 * first, of what the configuration defines. Its requests wait for that instead of being told that
 * there is none. */
void places_hold_unknown(struct places *p, struct defined *d, struct blocks *b,
                         const struct blocks_action *a, const struct seq_grant *answers,
                         const struct blocks_want *wants, int64_t mono);

/* Whoever waits for what was asked about definition d, or about any where it is not that one that
 * is refused, hears that it has come to nothing, and is asked again at until. */
void places_refuse_held(const struct places *p, struct supply *s, size_t d, enum coord_status why,
                        int64_t until);

/* Counters of definition d must have this text, which outlives them. */
void places_pin(const struct places *p, struct blocks *b, size_t d, const char *text);

#endif
