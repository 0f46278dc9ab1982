/*
 * Pages from templates: text with places for values, in a small part of Mustache.
 *
 *   {{name}}                     a value, escaped
 *   {{#list}} ... {{/list}}      once for each item; a condition is a list of one item or none
 *   {{^list}} ... {{/list}}      once if there is no item
 *
 * Invariants
 *   - Every value is escaped; there is no way around it. So no byte from outside is ever markup.
 *   - A template is ours: a name that is not known, or a section that does not end, fails the
 *     buffer.
 *   - Sections nest at most TEMPLATE_DEPTH deep.
 */
#ifndef SIDFLAKE_SERVE_WATCH_PAGE_TEMPLATE_H
#define SIDFLAKE_SERVE_WATCH_PAGE_TEMPLATE_H

#include "base/buf.h"

#define TEMPLATE_DEPTH 8

struct page_template {
    void *arg;
    /* MUST: appends a value, not escaped. false: no such name. */
    bool (*put)(void *arg, struct span name, struct buf *out);
    /* MUST: makes item i of a list the one that values are of: 0, 1, ...; 0 again may follow.
     * Returns 1; 0: there are no more; -1: no such list. */
    int (*item)(void *arg, struct span list, size_t i);
};

/* Appends text with its values, escaped for HTML: in content, and in attributes within quotes. */
void page_template_put(const struct page_template *t, struct span text, struct buf *out);

#endif
