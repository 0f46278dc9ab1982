/*
 * A supply: what the keeper holds ready for one kind of generator, so that no request waits for a
 * coordinator. WorkerIds (lease/workers.h) are one.
 *
 *                          tell                  hear, stop
 *     serving loop --------------------> inbox -------------> machine
 *        ^                                                     |  ^
 *        |                                              next: CALL |
 *        |                                                     v  | done
 *        '------------ mails, report ------------------------ call ------> coordinator
 *
 * A kind is a table of functions. Whoever fills one in has a struct supply as the first member of
 * its own, and decides alone what a call asks for, what its events, mails and report are, and what
 * is logged of them: lease/keeper.h, which runs a list of supplies, knows nothing of that.
 *
 * Invariants
 *   - All but tell run in the keeper's thread; tell runs in the serving loop's. tell, hear, stop
 *     and next are called with the keeper's lock held, so they wait for nothing; call and done
 *     without.
 *   - A next that says CALL is followed by that call and its done before anything but tell; unless
 *     the keeper ends, after a second stop.
 *   - Each supply is asked again after what any of them has heard or done: one may look at another,
 *     as long as it is the keeper's thread that looks.
 *   - Only call talks to the coordinator. What must be in the state page before a call is there
 *     when next returns.
 *   - hear, stop, next and done may post mails, together SUPPLY_MAILS at most. The keeper takes
 *     them before it makes a call or sleeps, and after done; they arrive in that order, and with
 *     the report as it is then.
 *
 * Times: mono is monotonic ms, wall Unix ms.
 */
#ifndef SIDFLAKE_LEASE_SUPPLY_H
#define SIDFLAKE_LEASE_SUPPLY_H

#include "coord/coord.h"

#include <assert.h>
#include <string.h>

/* Each kind's place in the keeper's list. */
enum {
    SUPPLY_WORKERS,
    SUPPLY_SEQUENCES,
    SUPPLY_KINDS
};

#define SUPPLY_MAX   4  /* of one keeper */
#define SUPPLY_MAILS 96 /* of one supply, until they are taken */
#define SUPPLY_BODY  64 /* bytes of a mail */

/* To the serving loop. */
struct supply_mail {
    size_t supply; /* whose: its place in the list; the keeper sets it */
    _Alignas(8) unsigned char body[SUPPLY_BODY]; /* what it means is the supply's */
};

enum supply_next {
    SUPPLY_IDLE,    /* nothing before *until but what an event may bring */
    SUPPLY_CALL,    /* a call is due */
    SUPPLY_FINISHED /* stopped, and all that could be given back was */
};

struct supply;

struct supply_kind {
    /* From the loop: notes an event, which is of the supply's own type. It has no bounds but the
     * supply's, and nobody waits: events that come to the same are to be noted once. */
    void (*tell)(struct supply *s, const void *event);

    /* What was noted goes to the machine. */
    void (*hear)(struct supply *s, int64_t mono);

    /* Once: nothing more is fetched. give_back: what is held goes back to the coordinator; else it
     * stays in the state page for the next start. FINISHED follows in bounded time. */
    void (*stop)(struct supply *s, bool give_back, int64_t mono);

    /* What to do now; *until, of IDLE: monotonic ms, or INT64_MAX. */
    enum supply_next (*next)(struct supply *s, int64_t mono, int64_t *until);

    /* Makes the call that next has decided on, and keeps its outcome. Blocks, as long as a call may
     * last. */
    void (*call)(struct supply *s, struct coord *c, int64_t wall);

    /* What came of it goes to the machine; may look at files. */
    void (*done)(struct supply *s, int64_t mono, int64_t wall);

    /* Nothing in the state page waits to be proven: what it says of this supply may be passed on to
     * the next program as it is. */
    bool (*proven)(const struct supply *s);

    /* What it has to tell as of now: report_size bytes, of the supply's own type, which are valid
     * until the next call of any function here. */
    const void *(*report)(struct supply *s);
    size_t report_size;
};

struct supply {
    const struct supply_kind *kind;
    void *shared; /* room for a report: the latest that was handed over; under the keeper's lock */
    struct supply_mail mail[SUPPLY_MAILS];
    unsigned nmail;
};

/* Posts a mail of n bytes, at most SUPPLY_BODY. */
static inline void supply_post(struct supply *s, const void *body, size_t n)
{
    assert(s->nmail < SUPPLY_MAILS && n <= SUPPLY_BODY);
    memcpy(s->mail[s->nmail++].body, body, n);
}

#endif
