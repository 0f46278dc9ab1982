/*
 * What is given out here: a generator for each prefix.
 */
#ifndef SIDFLAKE_DAEMON_GENERATORS_H
#define SIDFLAKE_DAEMON_GENERATORS_H

#include "conf/conf.h"
#include "ids/number_generator.h"
#include "ids/sequence_table.h"
#include "ids/snowflake_generator.h"
#include "serve/serve.h"

struct generators {
    struct snowflake_generator ids;
    struct sequence_table sequences;
    struct number_table numbers;
};

/* Periods, as the coordinator has them. */
extern const struct sequence_calendar generators_calendar;

/* Whether there are sequences: a row of the prefixes, and the last one of the supplies. */
bool generators_have_sequences(const struct conf *c);

/* Adds all of them to the issuer, which they must outlive. */
enum err_code generators_open(struct generators *g, const struct conf *c, struct serve *s,
                              struct err *e) MUST_CHECK;

/* What they took since; names that were found are none any more. */
void generators_clear(struct generators *g);

/* Numbers given out since the start, of all. */
uint64_t generators_issued(const struct serve *s);

#endif
