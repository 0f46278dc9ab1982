/*
 * The issuer: the generators that all protocols draw on, and what becomes of a request that one of
 * them cannot serve yet.
 *
 * Invariants
 *   - A clock reading older than the turn is never used; the clock is read once per turn, and again
 *     only when the generator says that it has to wait.
 *   - What is issued is counted here, under its name.
 */
#ifndef SIDFLAKE_SERVE_ISSUER_H
#define SIDFLAKE_SERVE_ISSUER_H

#include "ids/names.h"
#include "ids/sequence_generator.h" /* for issuer_more alone, which is inline, as is … */
#include "ids/snowflake_generator.h"
#include "net/net.h"

struct issuer {
    struct names names;
    struct generator *generators; /* all, by their `after`; the first is that of IDs */
    int64_t max_wait_us;          /* longest that a request waits for what may be granted */
    uint32_t batch;               /* most IDs of one request that names a count */

    struct refusal refused; /* of the latest request that was refused */
    uint64_t waited_us;     /* time that the clock was waited for, in all */
};

/* Adds a prefix to the names, as names_add, and its generator to the list if it is not there. */
enum err_code issuer_add(struct issuer *i, struct generator *g, const char *prefix,
                         char *const *list, size_t count, struct err *e) MUST_CHECK;

/* One number under this name. Fills *step with ISSUE_PARK; why it is refused is in i->refused. */
enum issue_status issuer_next(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                              int64_t *number, struct net_step *step);

/* The usual case of issuer_next, inline; false: nothing was done, ask issuer_next. */
static inline bool issuer_more(struct names_entry *name, struct net_turn *turn, int64_t *number)
{
    struct generator *g = name->generator;
    if (turn->quota == 0)
        return false;
    bool more = snowflake_generator_is(g) ? snowflake_generator_more(g, turn->wall_ms, number)
                : snowflake_ahead_generator_is(g)
                    ? snowflake_ahead_generator_more(g, turn->wall_ms, number)
                    : sequence_generator_more(g, number);
    if (!more)
        return false;
    turn->quota--;
    name->issued++;
    return true;
}

/* The same of those that give out texts, for a request that was answered before
 * (issuer_may_recall). */
bool issuer_more_text(struct names_entry *name, struct net_turn *turn, int64_t *number);

/* Whether a request for one number by this key, which the name was found by, may be known again by
 * its bytes: nothing but the name is said by it. */
static inline bool issuer_may_recall(const struct names_entry *name, struct span key)
{
    return !generator_is_text(name->generator) ||
           (name->generator->kind->more && !memchr(key.p, '?', key.n));
}

/* How many of n numbers are taken that nobody is told, since the client wants no reply. IDs that
 * nobody knows are of no use, so one stands for them: whoever asks for many so and is gone, which
 * no reply that fails shows, would have each millisecond's for hours. */
static inline uint32_t issuer_untold(const struct names_entry *name, uint32_t n)
{
    return name->generator->kind->counts ? n : 1;
}

/* n numbers in a row, 1..issuer_run(): all of them are the caller's, and *last is the last. */
enum issue_status issuer_row(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                             uint32_t n, int64_t *last, struct net_step *step);

/* Of one of several keys; others: some before it were served. Where there are no more it is missing
 * then, as from a list that has fewer: an error would lose what they had. */
static inline enum issue_status issuer_one_of(struct issuer *i, struct names_entry *name,
                                              struct net_turn *turn, bool others, int64_t *number,
                                              struct net_step *step)
{
    enum issue_status s = issuer_next(i, name, turn, number, step);
    if (s == ISSUE_OK || s == ISSUE_PARK || s == ISSUE_MISS || !others)
        return s;
    return refusal_ends(i->refused) ? ISSUE_MISS : s;
}

/* Once one of several keys waits, and turn->arrived: so many keys right behind it are of the same
 * name, for so many numbers each, and are answered with it. name: as it was asked with. */
void issuer_ahead(struct names_entry *name, struct net_turn *turn, uint32_t keys, uint32_t each);

/* 1..max numbers, as many as can be had at once. */
enum issue_status issuer_some(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                              uint32_t max, struct generator_run *out, struct net_step *step);

/* Whether there is something of that name, without spending a number: ISSUE_OK, ISSUE_MISS, or as
 * issuer_next. */
enum issue_status issuer_look(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                              struct net_step *step);

/* Most numbers of issuer_row. */
static inline uint32_t issuer_run(const struct issuer *i, const struct names_entry *name)
{
    return name->generator->kind->run(name->generator, i->batch);
}

/* Whether this sidecar is ready: by is NULL, or the first refusal that a request would come to now
 * and that fails a check. What only queues, as while the clock is behind by less than wait_below,
 * is none. */
struct refusal issuer_ready(const struct issuer *i, int64_t wall_ms);

#endif
