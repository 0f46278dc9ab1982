/*
 * The kind of generator that gives out a sequence's numbers as people read them, `no:invoice`: by
 * its template (template.h), over the counter that `seq:invoice` has.
 *
 *     no:policy?date=2026-11-22&area=010      the counter of that day, and the template's @{arg}
 *     no:policy:acme?area=010                 of a sub
 *
 * Invariants
 *   - No number is spent on what can't be written: arguments, sub, workerId and, but for a strict
 *     sequence, the number's width are looked at before.
 *   - The text has the period of the counter that the number is of, whatever the clock says.
 *   - Causes are numbered as enum number_cause, which go on where those of sequences end.
 *   - What was found lasts as long as with sequences; what was said behind '?' until something else
 *     is looked for.
 */
#ifndef SIDFLAKE_IDS_NUMBER_GENERATOR_H
#define SIDFLAKE_IDS_NUMBER_GENERATOR_H

#include "base/rng.h"
#include "ids/sequence_table.h"
#include "ids/template_stencil.h"

enum number_cause {
    NUMBER_UNFORMED = SEQUENCE_CAUSES, /* whether there is a template is asked for */
    NUMBER_PLAIN,                      /* there is none */
    NUMBER_WRONG,                      /* what the caller said does not fit it */
    NUMBER_HOMELESS,                   /* it wants a workerId, and none is held */
    NUMBER_WIDE,                       /* numbers have become too large for it */
    NUMBER_CAUSES
};

struct number_table;

struct number_generator {
    struct generator base;
    struct names_entry entry;
    struct number_table *table;
    struct sequence_generator *of;   /* as it was found by name */
    struct sequence_generator *from; /* whose numbers it gave out, or would */
    unsigned cause;                  /* of the latest refusal */
    struct template_stencil stencil; /* of the latest text that could be one */
};

struct number_table {
    struct generator base; /* gives out nothing itself */
    struct sequence_table *sequences;
    const struct generator *ids; /* whose workerId @{worker} writes */
    struct rng *rng;
    const char *prefix;              /* for people: "no:" */
    struct number_generator *place;  /* one beside each of the sequences; NULL: none yet */
    struct number_generator fresh;   /* of what has no place, and all where there is no memory */
    char args[NAMES_LENGTH_MAX + 1]; /* what stood behind '?' in the latest that was looked for */
    char why[ERR_TEXT_MAX];          /* NUMBER_WRONG, of the latest */
};

extern const struct generator_kind number_table_kind, number_kind;

/* number_reading.c: generator_kind.read of the table. */
enum err_code number_table_read(const struct generator *g, struct span text, struct span name,
                                struct generator_reading *out, struct buf *why);

/* sequences, ids, rng and prefix outlive t. */
void number_table_init(struct number_table *t, struct sequence_table *sequences,
                       const struct generator *ids, struct rng *rng, const char *prefix);
void number_table_clear(struct number_table *t);

#endif
