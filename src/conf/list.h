/* Lists of strings: struct conf_list of conf.h. */
#ifndef SIDFLAKE_CONF_LIST_H
#define SIDFLAKE_CONF_LIST_H

#include "base/err.h"
#include "base/span.h"
#include "conf/conf.h"

#include <stdbool.h>

/* Appends a copy of item. ERR_NOMEM leaves the list as it was. */
enum err_code conf_list_add(struct conf_list *l, struct span item, struct err *e) MUST_CHECK;

/* Frees the items and leaves []. */
void conf_list_clear(struct conf_list *l);

/* The same strings in the same order. */
bool conf_list_equal(const struct conf_list *a, const struct conf_list *b);

#endif
