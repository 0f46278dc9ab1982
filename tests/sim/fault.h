/*
 * What can go wrong, one function for each. It does its one thing where the world is such that it
 * can be done; true: it was done.
 */
#ifndef SIDFLAKE_TESTS_SIM_FAULT_H
#define SIDFLAKE_TESTS_SIM_FAULT_H

#include "sim/world.h"

/* An offset of a clock that is right within S, mostly at the edge. */
int64_t fault_within_skew(struct world *w);

/* fault_node.c: processes, pages, clocks. */
bool fault_kill_one(struct world *w);
bool fault_kill_torn(struct world *w);
bool fault_stop_one(struct world *w);
bool fault_term_return(struct world *w);
bool fault_term_keep(struct world *w);
bool fault_upgrade(struct world *w);
bool fault_page_lost(struct world *w);
bool fault_page_copied(struct world *w);
bool fault_page_old(struct world *w);
bool fault_page_cut(struct world *w);
bool fault_page_flip(struct world *w);
bool fault_reboot(struct world *w);
bool fault_clock_small(struct world *w);
bool fault_clock_edge(struct world *w);
bool fault_clock_years(struct world *w);
bool fault_clock_right(struct world *w);
bool fault_clock_all_back(struct world *w);

/* fixed.c */
bool fault_fixed_page(struct world *w);
bool fault_fixed_n(struct world *w);

/* fault_coordinator.c: a loss is allowed, and noted as one; some data set of before, or NULL. */
bool fault_may_lose(struct world *w);
const struct server_copy *fault_old_copy(struct world *w);

/* The page of n with contents of before in the same file; the next start begins with them, and goes
 * on until they are believed or not. */
bool fault_may_put_back(struct world *w, struct node *n, const struct page *before);
void fault_put_back(struct world *w, struct node *n, const struct page *before);

/* What a coordinator loses, what only its answer shows, and operators. */
bool fault_page_back(struct world *w);
bool fault_redis_empty(struct world *w);
bool fault_redis_suffix(struct world *w);
bool fault_redis_whole(struct world *w);
bool fault_redis_old(struct world *w);
bool fault_redis_before(struct world *w);
bool fault_redis_flush(struct world *w);
bool fault_redis_evict(struct world *w);
bool fault_redis_failover(struct world *w);
bool fault_redis_in_place(struct world *w);
bool fault_file_in_place(struct world *w);
bool fault_redis_clock(struct world *w);
bool fault_redis_clock_wild(struct world *w);
bool fault_redis_clock_day(struct world *w);
bool fault_redis_clock_ahead(struct world *w);
bool fault_redis_down(struct world *w);
bool fault_queue_doubled(struct world *w);
bool fault_queue_lost(struct world *w);
bool fault_index_lost(struct world *w);
bool fault_op_settle(struct world *w);
bool fault_op_word(struct world *w);
bool fault_init_same(struct world *w);
bool fault_init_other(struct world *w);
bool fault_init_fresh(struct world *w);
bool fault_init_stranger(struct world *w);
bool fault_op_evict(struct world *w);
bool fault_op_repair(struct world *w);
bool fault_op_close(struct world *w);
bool fault_op_open(struct world *w);

#endif
