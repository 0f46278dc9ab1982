/*
 * What runs between the supply of blocks and the table of sequences: one of bridge.h's rows.
 *
 *     ids/sequence_table.h -- events --> here -- lease/sequences.h --> keeper
 *                          <-- told ---      <----- mails, report ----
 *
 * Invariant: it runs in the serving loop's thread alone.
 */
#ifndef SIDFLAKE_DAEMON_BRIDGE_SEQUENCES_H
#define SIDFLAKE_DAEMON_BRIDGE_SEQUENCES_H

#include "daemon/bridge.h"
#include "lease/sequences.h"

/* Before the keeper starts: the counters that the state page has keep their places. */
void bridge_sequences_adopt(struct sequence_table *t, const struct sequences *s);

void bridge_sequences_take(struct bridge *b, const struct supply_mail *m, const void *report);
void bridge_sequences_note(struct bridge *b, const void *report);

/* Passes on what the table has to tell. */
void bridge_sequences_settle(struct bridge *b);

#endif
