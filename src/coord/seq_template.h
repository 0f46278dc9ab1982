/*
 * How the numbers of a sequence are written, where its definition has a template (ids/template.h).
 *
 * Pure.
 */
#ifndef SIDFLAKE_COORD_SEQ_TEMPLATE_H
#define SIDFLAKE_COORD_SEQ_TEMPLATE_H

#include "coord/seq_calls.h"

/* d has one; max: a number. ERR_INVALID or ERR_RANGE says why the sequence cannot have it. */
enum err_code seq_template_parse(const char *name, const struct seq_definition *d, int64_t max,
                                 struct template *out, struct err *e) MUST_CHECK;

/* The identity of a definition without its template: numbers in hand are the same ones by any. */
uint64_t seq_definition_hash(struct span text);

#endif
