/*
 * What the files of the calls share, and nobody else includes.
 */
#ifndef SIDFLAKE_COORD_SEQ_WITHIN_H
#define SIDFLAKE_COORD_SEQ_WITHIN_H

#include "coord/seq_calls.h"

/* Whether it can be asked of this coordinator; name NULL: of none. false: *r says why not. */
bool seq_may_ask(struct coord *c, const char *identity, const char *name, struct coord_reply *r);

/* All rows of a prefix, as seq_driver.rows; each part has the whole timeout. The caller clears
 * *out. */
enum coord_status seq_read_rows(struct coord *c, const char *identity, const char *prefix,
                                struct seq_rows *out, struct coord_reply *r);

#endif
