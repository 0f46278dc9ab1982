/*
 * What can go wrong with sequences, one function for each, as in fault.h.
 */
#ifndef SIDFLAKE_TESTS_SIM_SEQS_FAULT_H
#define SIDFLAKE_TESTS_SIM_SEQS_FAULT_H

#include "sim/seqs.h"

/* seqs_operator.c */
bool seqs_fault_set(struct world *w);
bool seqs_fault_set_back(struct world *w);
bool seqs_fault_drop(struct world *w);
bool seqs_fault_reuse(struct world *w);
bool seqs_fault_alter(struct world *w);
bool seqs_fault_template(struct world *w);
bool seqs_fault_sweep(struct world *w);
bool seqs_fault_reserve(struct world *w);
bool seqs_fault_reopen(struct world *w);
bool seqs_fault_create_again(struct world *w);

/* An operator takes n numbers of a counter without a sub for himself. */
bool seqs_reserve(struct world *w, unsigned spec, const char *period, int64_t n);

/* seqs_fault_node.c: the blocks in the page of a node. */
bool seqs_fault_area_lost(struct world *w);
bool seqs_fault_area_old(struct world *w);
bool seqs_fault_area_cut(struct world *w);
bool seqs_fault_area_flip(struct world *w);
bool seqs_fault_area_back(struct world *w);
bool seqs_fault_stop(struct world *w);
bool seqs_fault_state_back(struct world *w);

#endif
