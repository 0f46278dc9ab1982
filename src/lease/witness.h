/*
 * The witness of an area of blocks: a token of worker.page, stored in the area once the coordinator
 * has answered it. Where the area and worker.page name the same one at a start, and the coordinator
 * says that it was the latest, the area is of no earlier time than that answer.
 */
#ifndef SIDFLAKE_LEASE_WITNESS_H
#define SIDFLAKE_LEASE_WITNESS_H

#include "lease/blockfile.h"
#include "lease/workers.h"

/* What is known of the area by what it had at the start. */
enum workers_word witness_word(const struct blockpage *p, const struct workers *w);

/* Of an area that is proven, as blockfile_set_witness. */
void witness_store(struct blockfile *f, const struct workers *w);

#endif
