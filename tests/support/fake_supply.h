/*
 * Whoever fetches blocks for a table of sequences, and the store behind, in memory: what the table
 * asks for comes when the test says so.
 */
#ifndef SIDFLAKE_SUPPORT_FAKE_SUPPLY_H
#define SIDFLAKE_SUPPORT_FAKE_SUPPLY_H

#include "ids/sequence_table.h"

#define FAKE_PLACES   256
#define FAKE_COUNTERS 256
#define FAKE_MARKS    4096

/* A sequence of the store. Periods: reset 2, of a day from DAY_MS * n on; their numbers may be
 * granted two hours before. */
struct fake_sequence {
    const char *name;
    int64_t start, increment;
    int64_t top; /* highest index; 0: none */
    bool strict, subs, daily;
    const struct template *template; /* NULL: none */
};

#define FAKE_DAILY  2
#define FAKE_DAY_MS INT64_C(86400000)

struct fake_counter {
    struct sequence_name of;
    int64_t next; /* index */
};

struct fake_place {
    bool open, known;
    struct sequence_name of;
    struct sequence_ask want; /* count 0: nothing */
};

struct fake_supply {
    struct sequence_table *table;
    const struct fake_sequence *sequence;
    size_t nsequences;
    unsigned how; /* enum sequence_cause that all takes come to; 0: what they should */
    int64_t time_ms;
    int64_t largest;  /* numbers of one grant; 0: as many as are asked for */
    bool closes_late; /* what is to be closed is closed with fake_supply_close alone */

    struct fake_counter counter[FAKE_COUNTERS];
    unsigned ncounters;
    struct fake_place place[FAKE_PLACES];
    uint64_t mark[FAKE_MARKS];
    uint32_t handle; /* of the latest grant; its mark's place, too */
    unsigned opens, wants, closes, takes;
    unsigned forgets; /* closed: what was found has to be forgotten */
};

/* Takes what the table has to tell. */
void fake_supply_hear(struct fake_supply *f);

/* Answers what is wanted. */
void fake_supply_answer(struct fake_supply *f, int64_t mono);

/* Both. */
void fake_supply_serve(struct fake_supply *f, int64_t mono);

/* Frees what is to be closed. */
void fake_supply_close(struct fake_supply *f);

/* An empty table for so many counters, with the calendar of this store. sequence_table_clear() ends
 * it. */
void fake_supply_table(struct sequence_table *t, uint32_t counters);

#endif
