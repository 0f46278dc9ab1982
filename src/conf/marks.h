/*
 * Where in a file each value stands, and whether the file has the shape of a configuration.
 *
 * The file's events are walked once before libcyaml reads it: see marks.c.
 *
 * Invariants
 *   - A file that passes has one document: a mapping of known keys, none of them twice, whose
 *     values are scalars, lists of scalars and groups as the option table says. No aliases, no NUL.
 *   - Lines and columns count from 1; columns count characters.
 *   - The walk goes at most three levels deep, and passes over what is unknown to CONF_DEPTH_MAX
 *     more: of a file of n bytes it takes some n steps, and of one that has more no longer.
 *
 * Source: YAML 1.1 as libyaml reads it.
 */
#ifndef SIDFLAKE_CONF_MARKS_H
#define SIDFLAKE_CONF_MARKS_H

#include "base/err.h"
#include "base/span.h"
#include "conf/option.h"

#include <stdbool.h>
#include <stddef.h>

#define CONF_DEPTH_MAX                                                                             \
    16u /* levels of a value that is passed over: no option has more than one                      \
         */
#define CONF_DIRECTIVES_MAX 16u /* of a file: none is needed */

struct conf_mark {
    size_t line, column; /* 0, 0: not in the file */
};

/* The marks of one option. */
struct conf_marks_of {
    struct conf_mark value; /* of a list: its start */
    struct conf_mark *item; /* of a list: n marks */
    size_t n;
};

struct conf_marks {
    struct conf_marks_of of[CONF_OPTIONS];
    bool empty; /* the document has no content at all */
};

struct conf_load;

/* Fills l->marks, which the caller clears also after an error, and tries each value on l->conf, so
 * that what is wrong is found in the order of the file. */
enum err_code conf_marks_read(struct conf_load *l, struct span yaml) MUST_CHECK;
void conf_marks_clear(struct conf_marks *m);

/* Puts "NAME:LINE:COLUMN: " before the text of *e, and returns code as its code. */
enum err_code conf_marks_blame(const char *name, struct conf_mark at, enum err_code code,
                               struct err *e);

#endif
