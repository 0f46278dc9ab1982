/* The operations of sequences over a store with transactions: as in struct seq_driver. c: the base
 * of a struct transact. */
#ifndef SIDFLAKE_COORD_TRANSACT_SEQUENCES_H
#define SIDFLAKE_COORD_TRANSACT_SEQUENCES_H

#include "coord/seq_calls.h"

extern const struct seq_driver transact_sequences;

#endif
