/*
 * A configuration file as texts, by option. The only user of libcyaml.
 *
 * Values stay text here: one reader of values (value.h) then serves the file, the environment and
 * --set alike. The schema is made from the option table.
 */
#ifndef SIDFLAKE_CONF_DOC_H
#define SIDFLAKE_CONF_DOC_H

#include "base/err.h"
#include "base/span.h"
#include "conf/option.h"

#include <stdint.h>

/* What the file says of one option. */
struct conf_text {
    char *text;              /* of a scalar; NULL: not in the file */
    char **item;             /* of a list: n strings; NULL: not in the file, or empty */
    uint32_t n;              /* items */
    struct conf_text *group; /* internal: the texts of the group that this option opens */
};

struct conf_doc;

/* yaml has passed conf_marks_read and has content. The caller owns *out. */
enum err_code conf_doc_read(struct span yaml, struct conf_doc **out, struct err *e) MUST_CHECK;
void conf_doc_free(struct conf_doc *d); /* NULL is allowed */

/* Never NULL; owned by d. */
const struct conf_text *conf_doc_text(const struct conf_doc *d, const struct conf_option *o);

#endif
