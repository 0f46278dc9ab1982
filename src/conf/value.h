/*
 * Single values: text to field and back, by the type of the option.
 *
 * Invariants
 *   - A failed call leaves the field as it was.
 *   - A field holds only values that its row in the table allows.
 *   - Error texts say what was expected, for which option, and what was found; where it stood is
 *     for the caller to add.
 */
#ifndef SIDFLAKE_CONF_VALUE_H
#define SIDFLAKE_CONF_VALUE_H

#include "base/err.h"
#include "conf/conf.h"
#include "conf/option.h"

#include <stdbool.h>
#include <stdio.h>

/* Sets the field to text; a list to its items, separated by commas, spaces around them dropped. */
enum err_code conf_value_set(const struct conf_option *o, struct conf *c, struct span text,
                             struct err *e) MUST_CHECK;

/* Lists only: appends one item, commas and all. */
enum err_code conf_value_add(const struct conf_option *o, struct conf *c, struct span item,
                             struct err *e) MUST_CHECK;

/* Frees the field and leaves it zeroed, which for a list is []. */
void conf_value_clear(const struct conf_option *o, struct conf *c);

/* Writes the field as YAML, on one line. */
void conf_value_put(const struct conf_option *o, const struct conf *c, FILE *out);

bool conf_value_equal(const struct conf_option *o, const struct conf *a, const struct conf *b);

/* "int", "list", … */
const char *conf_value_type(const struct conf_option *o);

/* What the option accepts: "1..16", "return|keep", … Returns out. */
#define CONF_VALUE_RANGE_MAX 128
char *conf_value_range(char out[CONF_VALUE_RANGE_MAX], const struct conf_option *o);

/* As error: expected WHAT for PATH, found FOUND. found is quoted already, or is a word such as
 * "a list". */
enum err_code conf_value_expected(const struct conf_option *o, enum err_code code,
                                  const char *found, struct err *e);

#endif
